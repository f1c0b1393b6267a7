//! Places of those who have proved nothing: who fails or says nothing keeps nobody out, at either listener.

use std::io::Write;
use std::net::TcpStream;
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

/// As many clients as there are places, each with something that is no proof. One more finds no place.
fn crowd(daemon: &Daemon, say: &[u8]) -> Vec<Client<TcpStream>> {
    let come = |_| {
        let mut client = daemon.connect();
        client.send(say);
        client
    };
    let crowd = (0..PLACES).map(come).collect();
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

/// Tries until it succeeds, for somebody else's failure takes a thread some time. The clock stands still.
fn soon(mut succeeds: impl FnMut() -> bool) {
    assert!((0..20_000).any(|_| succeeds()), "there is no place");
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

/// Their answers wait for some seconds, and their places do not.
#[test]
fn who_has_failed_makes_room_at_once() {
    let daemon = guarded(&both_listeners());
    let _failed = crowd(&daemon, b"set login 0 0 6\r\napp no\r\n");
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
