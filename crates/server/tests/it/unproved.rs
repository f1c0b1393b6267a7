//! Places of those who have proved nothing: who fails or says nothing keeps nobody out, at either listener.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use engine::auth::{Access, Roles, Rules};
use server::Config;

use crate::harness::{Client, Daemon, config, daemon_with};
use crate::pg::{Pg, message, packet};
use crate::tls;

/// A quarter of `max_connections`.
const PLACES: usize = 20;

/// Longer than a connection is safe from newer ones, and shorter than `authentication_timeout`.
const LATER: Duration = Duration::from_secs(3);

/// After so long every thread looks again for connections that are to be closed: the sweep before may have come too
/// early for the one that has just lost its place.
const SWEPT: Duration = Duration::from_secs(1);

/// Passwords whose check takes as long as can be asked for.
const SLOW: usize = 4;

/// The place of the scheduling policy in `/proc/.../stat`, behind the name.
const POLICY: usize = 38;
const SCHED_IDLE: &str = "5";

const TOO_MANY: &[u8] = b"ERROR Too many open connections\r\n";

fn guarded(config: &Config) -> Daemon {
    let daemon = daemon_with(&Config { max_connections: 4 * PLACES, ..config.clone() });
    let rules = Rules::parse("host all all 127.0.0.0/8 password").unwrap();
    let roles = Roles::parse("CREATE USER app PASSWORD 'x' IN ROLE pg_read_all_data;").unwrap();
    daemon.engine.access.set(Access { rules, roles: Some(roles), ..Access::default() });
    daemon
}

fn both_listeners() -> Config {
    Config { sql_addresses: vec!["127.0.0.1:0".parse().unwrap()], ..config() }
}

/// As many clients as there are places, each with something that is no proof.
fn as_many_as_places(daemon: &Daemon, say: &[u8]) -> Vec<Client<TcpStream>> {
    let come = |_| {
        let mut client = daemon.connect();
        client.send(say);
        client
    };
    (0..PLACES).map(come).collect()
}

/// The same, where none of them gives its place up. One more finds no place.
fn crowd(daemon: &Daemon, say: &[u8]) -> Vec<Client<TcpStream>> {
    let crowd = as_many_as_places(daemon, say);
    assert_eq!(daemon.connect().rest(), TOO_MANY);
    crowd
}

/// Whether somebody with the right password finds a place.
fn logs_in(daemon: &Daemon) -> bool {
    let mut client = daemon.connect();
    let _closed = client.stream.write_all(b"set login 0 0 5\r\napp x\r\n");
    let line = client.line();
    assert!(line == "STORED" || line.as_bytes() == TOO_MANY.trim_ascii_end(), "{line}");
    line == "STORED"
}

fn begun(daemon: &Daemon) -> Pg {
    let mut pg = Pg::plain(daemon);
    pg.send(&packet(3 << 16, b"user\0app\0\0"));
    pg
}

fn logs_in_with_sql(daemon: &Daemon) -> bool {
    let mut pg = begun(daemon);
    if pg.next().as_deref() != Some("R") {
        return false;
    }
    pg.send(&message(b'p', b"x\0"));
    pg.until_ready().contains(&"R".to_owned())
}

/// Tries until it succeeds, for somebody else's failure takes a thread some time. The clock stands still. That thread
/// has the time that nobody else wants, so the tries leave it some: on a busy machine they once took all of it.
fn soon(mut succeeds: impl FnMut() -> bool) {
    let succeeds = || {
        std::thread::sleep(Duration::from_millis(5));
        succeeds()
    };
    assert!(std::iter::repeat_with(succeeds).take(60_000).any(|good| good), "there is no place");
}

#[test]
fn who_says_nothing_makes_room() {
    for say in [&b""[..], b"set login 0 0 5\r\nap", b"\x80\x21\0"] {
        let daemon = guarded(&config());
        let mut silent = crowd(&daemon, say);
        assert!(!logs_in(&daemon));
        daemon.advance(LATER);
        assert!(logs_in(&daemon));
        daemon.advance(SWEPT);
        assert_eq!(silent[0].rest(), b"");
    }
}

#[test]
fn half_a_hello_makes_room() {
    let config = Config { tls: Some(tls::any_material()), ..config() };
    let daemon = guarded(&config);
    let mut silent = crowd(&daemon, &tls::half_a_hello());
    daemon.advance(LATER);
    let mut client = tls::client(&daemon);
    client.send(b"set login 0 0 5\r\napp x\r\n");
    client.expect(b"STORED\r\n");
    daemon.advance(SWEPT);
    // It hears the end as TLS says it.
    silent[0].rest();
}

/// Their answers wait for some seconds, and their places do not. The first of them may have failed before the last has
/// come, so nothing is said of one more.
#[test]
fn who_has_failed_makes_room_at_once() {
    let daemon = guarded(&both_listeners());
    let _failed = as_many_as_places(&daemon, b"set login 0 0 6\r\napp no\r\n");
    soon(|| logs_in(&daemon));
    let daemon = guarded(&both_listeners());
    let fail = |_| {
        let mut pg = begun(&daemon);
        assert_eq!(pg.next().as_deref(), Some("R"));
        pg.send(&message(b'p', b"no\0"));
        pg
    };
    let _failed: Vec<Pg> = (0..PLACES).map(fail).collect();
    soon(|| logs_in_with_sql(&daemon));
}

/// The places are counted at both listeners together, and each makes room at the other one.
#[test]
fn listeners_make_room_for_each_other() {
    let daemon = guarded(&both_listeners());
    let mut silent = crowd(&daemon, b"");
    assert!(!logs_in_with_sql(&daemon));
    daemon.advance(LATER);
    assert!(logs_in_with_sql(&daemon));
    daemon.advance(SWEPT);
    assert_eq!(silent[0].rest(), b"");
    drop(silent);
    let daemon = guarded(&both_listeners());
    let mut silent: Vec<Pg> = (0..PLACES).map(|_| begun(&daemon)).collect();
    for pg in &mut silent {
        assert_eq!(pg.next().as_deref(), Some("R"));
    }
    assert!(!logs_in(&daemon));
    daemon.advance(LATER);
    assert!(logs_in(&daemon));
    daemon.advance(SWEPT);
    assert!(silent[0].next().unwrap().starts_with("E FATAL 08006"));
}

/// The role `slow` asks for so many rounds. Somebody who is trusted, and has logged in.
fn slow_to_check(daemon: &Daemon, rounds: u32) -> Pg {
    let rules = Rules::parse("host all app 127.0.0.0/8 trust\nhost all slow 127.0.0.0/8 password").unwrap();
    let key = format!("{}=", "A".repeat(43));
    let slow = format!("SCRAM-SHA-256${rounds}:c2FsdHNhbHQ=${key}:{key}");
    let roles = format!("CREATE USER app SUPERUSER; CREATE USER slow PASSWORD '{slow}';");
    let roles = Some(Roles::parse(&roles).unwrap());
    daemon.engine.access.set(Access { rules, roles, ..Access::default() });
    let mut pg = begun(daemon);
    pg.until_ready();
    pg
}

/// A client that has shown a wrong password of `slow`.
fn show_wrong(daemon: &Daemon) -> Pg {
    let mut pg = Pg::plain(daemon);
    pg.send(&packet(3 << 16, b"user\0slow\0\0"));
    assert_eq!(pg.next().as_deref(), Some("R"));
    pg.send(&message(b'p', b"no\0"));
    pg
}

/// How many were refused until now.
fn refusals(operator: &mut Pg) -> usize {
    let said = operator.ask("SELECT count(*) FROM sqlcached_refusals").swap_remove(1);
    said.strip_prefix("D ").unwrap().parse().unwrap()
}

/// The check of a password takes processor time, here a fifth of a second, for the role asks for many rounds. The
/// acceptor lets others in meanwhile.
#[test]
fn a_password_that_is_checked_holds_nobody_up() {
    let daemon = guarded(&both_listeners());
    let mut operator = slow_to_check(&daemon, 1_000_000);
    let _slow: Vec<Pg> = (0..SLOW).map(|_| show_wrong(&daemon)).collect();
    begun(&daemon).until_ready();
    // An acceptor that checks them itself has refused each before it greets the next.
    let refused = refusals(&mut operator);
    assert!(refused < SLOW - 1, "{refused}");
}

/// Takes all processors, until it is dropped.
struct Busy(Arc<AtomicBool>, Vec<JoinHandle<()>>);

impl Busy {
    /// With more threads than processors none is ever idle, also where other tests end meanwhile.
    fn begin() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let spin = |ends: Arc<AtomicBool>| {
            move || {
                while !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let count = 2 * std::thread::available_parallelism().unwrap().get();
        let threads = (0..count).map(|_| std::thread::spawn(spin(Arc::clone(&ends)))).collect();
        Self(ends, threads)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        for thread in self.1.drain(..) {
            let _ended = thread.join();
        }
    }
}

/// Where no processor was idle, logins took longer than clients wait. This password takes so long to check that the
/// thread which only has what nobody else wants would need minutes.
#[test]
fn passwords_are_checked_on_a_machine_without_an_idle_processor() {
    let daemon = guarded(&both_listeners());
    let mut operator = slow_to_check(&daemon, 500_000);
    let _busy = Busy::begin();
    let mut client = daemon.connect();
    client.send(b"set login 0 0 7\r\nslow no\r\n");
    let _slow = show_wrong(&daemon);
    soon(|| refusals(&mut operator) == 2);
}

/// Failed logins take the time that nobody else wants.
#[test]
fn passwords_are_checked_by_an_idle_thread() {
    let daemon = guarded(&config());
    assert!(logs_in(&daemon));
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.join("stat")).ok());
    let policies: Vec<String> = stats
        .filter_map(|stat| stat.split_once("(proofs) ").map(|(_, rest)| rest.to_owned()))
        .map(|rest| rest.split(' ').nth(POLICY).unwrap().to_owned())
        .collect();
    // Other tests have daemons in this process, too, and a thread begins as its parent is.
    assert!(policies.contains(&SCHED_IDLE.to_owned()), "{policies:?}");
}
