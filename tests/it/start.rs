//! Starting and stopping: what is printed, what is refused, what an arena from before means.

use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Client, Reply};
use crate::daemon::{Daemon, Folder, PROGRAM, free_port, program, run};
use crate::skipped;

#[test]
fn it_says_how_to_reach_it_and_the_examples_work() {
    let daemon = Daemon::start(&[]);
    daemon.wait_until_it_says("try:");
    let printed = daemon.printed();
    assert!(printed.contains(&format!("memcached and SQL on 127.0.0.1:{}", daemon.port)), "{printed}");
    let examples: Vec<&str> = printed.lines().filter(|line| line.contains("| nc ")).collect();
    assert_eq!(examples.len(), 2, "{printed}");
    let answers: Vec<String> = examples
        .iter()
        .map(|example| {
            let output = Command::new("sh").args(["-c", example]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
        .collect();
    assert_eq!(answers[0], "STORED\r\nVALUE greeting 0 5\r\nhello\r\nEND\r\n");
    assert_eq!(answers[1], "{\"key\":\"greeting\",\"value\":\"hello\"}\r\nEND\r\n");
}

#[test]
fn sigterm_stops_and_the_next_start_is_warm() {
    let mut daemon = Daemon::start(&[]);
    daemon.connect().set("k", b"v");
    assert_eq!(daemon.terminate().code(), Some(0));
    assert!(!daemon.socket().exists());
    daemon.restart();
    daemon.wait_until_it_says("warm start: 1 MiB");
    assert_eq!(daemon.connect().get("k").as_deref(), Some(&b"v"[..]));
    daemon.signal("INT");
    assert_eq!(daemon.wait().code(), Some(0));
}

/// After each warm start such tables refused memcached's writes, with "nothing computes the expressions of table",
/// until somebody ran a statement: only a SQL thread's first one said how expressions are computed.
#[test]
fn a_warm_start_computes_what_memcached_writes_before_any_statement() {
    let mut daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    for table in [
        "CREATE TABLE page (key TEXT PRIMARY KEY, body TEXT, page_id INT AS (split_part(key, ':', 1))) \
         WITH (prefix = 'page:', value = 'body')",
        "CREATE TABLE seen (key TEXT PRIMARY KEY, body TEXT, at TEXT DEFAULT (upper('moment'))) \
         WITH (prefix = 'seen:', value = 'body')",
        "CREATE TABLE short (key TEXT PRIMARY KEY, body TEXT CHECK (length(body) < 3)) \
         WITH (prefix = 'short:', value = 'body')",
    ] {
        client.change(table);
    }
    drop(client);
    for (round, stop) in ["TERM", "KILL", "TERM"].into_iter().enumerate() {
        daemon.signal(stop);
        daemon.wait();
        daemon.restart();
        let mut client = daemon.connect();
        // One connection to each worker at least: what a thread lacks only its own clients notice.
        let mut others: Vec<Client> = (0..8).map(|_| daemon.connect_tcp()).collect();
        for (number, other) in others.iter_mut().enumerate() {
            assert_eq!(other.set(&format!("page:{number}:r{round}"), b"hi"), "STORED");
            assert_eq!(other.ask(&format!("ms seen:{round} 2\r\nok")), "HD");
            assert_eq!(other.store(&format!("append page:{number}:r{round} 0 0"), b"!"), "STORED");
        }
        assert_eq!(client.set(&format!("short:{round}"), b"ok"), "STORED");
        let refused = client.set("short:long", b"too long");
        assert!(refused.contains("violates check constraint"), "{refused}");
        let pages = "SELECT page_id, body FROM page WHERE key LIKE '%:r' || '2' ORDER BY page_id";
        let pages = client.rows(pages);
        if round == 2 {
            let expected: Vec<_> = (0..8).map(|number| json!({"page_id": number, "body": "hi!"})).collect();
            assert_eq!(pages, expected);
        }
        assert_eq!(
            client.rows(&format!("SELECT at FROM seen WHERE key = '{round}'")),
            [json!({"at": "MOMENT"})]
        );
    }
}

#[test]
fn cold_starts_empty() {
    let mut daemon = Daemon::start(&["--cold"]);
    daemon.connect().set("k", b"v");
    daemon.terminate();
    daemon.restart();
    assert_eq!(daemon.connect().get("k"), None);
    daemon.wait_until_it_says("cold start");
}

/// Two starts at once at a file that neither can take over: one of them serves, from the file that the next start
/// finds. It could be that both replaced it, and that the one which served did so from a file without a name.
#[test]
fn of_two_starts_at_once_one_serves_and_the_next_start_finds_its_arena() {
    // The one that does not serve waits for some seconds; so do those of other rounds meanwhile.
    const LANES: usize = 5;
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || (lane..20).step_by(LANES).for_each(start_two_at_once));
        }
    });
}

fn start_two_at_once(round: usize) {
    let folder = Folder::new();
    let arena = folder.0.join("arena");
    std::fs::write(&arena, vec![0; 4_096]).unwrap();
    let start = |name: &str| {
        let mut command = program();
        command.args(["-p", "0", "-m", "64", "-s"]).arg(folder.0.join(name)).arg("--arena").arg(&arena);
        // Either both are asked for an empty arena, or none is.
        command.args((round % 2 == 1).then_some("--cold")).stdout(Stdio::null()).stderr(Stdio::null());
        Killed(command.spawn().unwrap())
    };
    let mut both = [start("a"), start("b")];
    let mut serving = Vec::new();
    for (child, name) in both.iter_mut().zip(["a", "b"]) {
        while child.0.try_wait().unwrap().is_none() {
            if UnixStream::connect(folder.0.join(name)).is_ok() {
                serving.push(name);
                break;
            }
            // Waits for another process.
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    assert_eq!(serving.len(), 1, "round {round}: {serving:?} serve");
    assert_eq!(Client::unix(&folder.0.join(serving[0])).set("k", b"v"), "STORED");
    drop(both);
    let daemon = Daemon::start_in(folder, &["-m", "64"]);
    assert_eq!(daemon.connect().get("k").as_deref(), Some(&b"v"[..]), "round {round}");
}

#[test]
fn the_init_file_makes_tables_once() {
    let folder = Folder::new();
    let file = folder.write(
        "init.sql",
        "-- fragments of pages; by page\n\
         CREATE TABLE frag (key TEXT PRIMARY KEY, page_id INT, body TEXT) WITH (prefix = 'frag:', value = 'body');\n\
         CREATE INDEX frag_page ON frag (page_id);\n\
         INSERT INTO frag (key, body) VALUES ('a', 'x;y');\n",
    );
    let mut daemon = Daemon::start_in(folder, &["--init-file", file.to_str().unwrap()]);
    let mut client = daemon.connect();
    assert_eq!(client.get("frag:a").as_deref(), Some(&b"x;y"[..]));
    client.change("DELETE FROM frag");
    daemon.terminate();
    daemon.restart();
    assert_eq!(daemon.connect().get("frag:a"), None);
}

/// What a daemon logged, up to its end.
fn ended(daemon: &mut Daemon) -> String {
    daemon.terminate();
    daemon.printed()
}

/// A reboot left an empty arena and a warm start left the file unread: tables that a new version of the application
/// needed were not there, and its keys fell into the built-in table.
#[test]
fn the_init_file_holds_at_every_start() {
    let folder = Folder::new();
    let first = "CREATE TABLE frag (key TEXT PRIMARY KEY, page INT, body TEXT) WITH (prefix = 'frag:', value = 'body', ttl = '10 min');\n\
                 INSERT INTO frag (key, page, body) VALUES ('a', 1, 'first');\n\
                 CREATE VIEW pages AS SELECT page FROM frag;\n";
    let file = folder.write("init.sql", first);
    let path = file.to_str().unwrap().to_owned();
    let flags = ["--init-file", &path, "-v"];
    let mut daemon = Daemon::start_in(folder, &flags);
    let mut client = daemon.connect();
    client.set("frag:mine", b"stays");
    client.change("DELETE FROM frag WHERE key = 'a'");
    // The same file: nothing is done, nothing is said.
    daemon.terminate();
    daemon.restart();
    assert_eq!(daemon.connect().get("frag:a"), None, "rows are not made again");
    let log = daemon.printed();
    assert!(!log.contains("init_file") && log.matches("init file:").count() == 1, "{log}");
    // A file that says more, and other things.
    daemon.terminate();
    std::fs::write(
        &file,
        "DROP TABLE IF EXISTS frag;\n\
         CREATE TABLE frag (key TEXT PRIMARY KEY, page INT, body BYTEA) WITH (prefix = 'frag:', value = 'body', ttl = '5 min', shared_memory = on);\n\
         CREATE INDEX frag_page ON frag (page);\n\
         CREATE VIEW pages AS SELECT page, count(*) AS n FROM frag GROUP BY page;\n\
         CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, data TEXT) WITH (prefix = 's:', value = 'data', shared_memory = on);\n\
         INSERT INTO session VALUES ('1', 'made');\n\
         INSERT INTO frag (key, page) VALUES ('b', 2);\n\
         CREATE EXPIRY RULE old ON frag WHEN page = 3 EVERY '10 s';\n\
         COMMENT ON TABLE frag IS 'fragments';\n",
    )
    .unwrap();
    daemon.restart();
    let mut client = daemon.connect();
    assert_eq!(client.get("frag:mine").as_deref(), Some(&b"stays"[..]));
    assert_eq!(client.get("s:1").as_deref(), Some(&b"made"[..]));
    assert_eq!(client.get("frag:b"), None);
    let said = |client: &mut Client, sql: &str| client.rows(sql)[0]["v"].clone();
    assert_eq!(said(&mut client, "SELECT ttl AS v FROM sqlcached_tables WHERE table_name = 'frag'"), "5 min");
    assert_eq!(said(&mut client, "SELECT count(*) AS v FROM pg_indexes WHERE indexname = 'frag_page'"), 1);
    assert_eq!(said(&mut client, "SELECT count(*) AS v FROM sqlcached_expiry_rules"), 1);
    assert_eq!(said(&mut client, "SELECT obj_description('frag'::regclass, 'pg_class') AS v"), "fragments");
    assert_eq!(said(&mut client, "SELECT n AS v FROM pages"), 1);
    let log = daemon.printed();
    assert!(log.contains("init.sql line 2: table frag is not what the file says"), "{log}");
    assert!(log.contains("Here: body TEXT; in the file: body BYTEA"), "{log}");
    assert!(log.contains("shared_memory stays"), "{log}");
    assert!(log.contains("line 4: view pages was changed as the file says"), "{log}");
    let left: Vec<_> =
        std::fs::read_dir(file.parent().unwrap()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_str().unwrap().contains("rehearsal")), "{left:?}");
    // A file that cannot be run changes nothing, and keeps nobody from the rows.
    daemon.terminate();
    std::fs::write(&file, "CREATE TABLE more (a INT PRIMARY KEY);\nCREATE TABEL b (x);\n").unwrap();
    daemon.restart();
    let mut client = daemon.connect();
    assert_eq!(client.get("frag:mine").as_deref(), Some(&b"stays"[..]));
    assert!(matches!(client.sql("SELECT 1 FROM more"), crate::client::Reply::Error(..)));
    let log = ended(&mut daemon);
    assert!(log.contains("init.sql line 2: 42601") && log.contains("are served as they are"), "{log}");
}

#[test]
fn a_variable_that_is_no_setting_is_named() {
    let folder = Folder::new();
    let socket = folder.0.join("sock");
    let mut command = program();
    command.args(["-p", "0", "-m", "64", "-v", "-s"]).arg(&socket).arg("--arena").arg(folder.0.join("arena"));
    let (daemon, _) = Started::new(command.env("SQLCACHED_MEMORY", "256"), &socket);
    let log = daemon.stop();
    let why = "SQLCACHED_MEMORY has no effect: there is no such setting; did you mean SQLCACHED_MEMORY_MB?";
    assert!(log.contains(why), "{log}");
}

/// Rows were evicted long before the memory that was asked for was used, and nothing said why.
#[test]
fn more_memory_than_the_file_system_has_is_named() {
    let folder = Folder::new();
    let socket = folder.0.join("sock");
    let found = rustix::fs::statvfs(&folder.0).unwrap();
    let more = (((found.f_blocks * found.f_frsize) >> 20) + 64).to_string();
    let mut command = program();
    command
        .args(["-p", "0", "-m", &more, "-v", "-s"])
        .arg(&socket)
        .arg("--arena")
        .arg(folder.0.join("arena"));
    let (daemon, _) = Started::new(&mut command, &socket);
    let log = daemon.stop();
    assert!(log.contains(&format!("less than the {more} MiB that rows may take")), "{log}");
}

#[test]
fn a_start_that_fails_leaves_no_arena() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = Folder::new();
    let file = folder.write(
        "init.sql",
        "CREATE TABLE a (k TEXT PRIMARY KEY, v TEXT) WITH (prefix = 'a:', value = 'v', shared_memory = on)",
    );
    let mut command = program();
    command.args(["-p", &port, "--init-file"]).arg(&file).arg("--arena").arg(folder.0.join("arena"));
    let (code, _, error) = run(command.arg("-s").arg(folder.0.join("sock")));
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("in use"), "{error}");
    let left: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_str().unwrap().starts_with("arena")), "{left:?}");
}

#[test]
fn a_wrong_init_file_is_named_with_its_line_and_leaves_no_arena() {
    let folder = Folder::new();
    let file = folder.write("init.sql", "CREATE TABLE a (x INT PRIMARY KEY);\n\nCREATE TABEL b (x);\n");
    let arena = folder.0.join("arena");
    let mut command = program();
    command.args(["-p", "0", "-s"]).arg(folder.0.join("sock")).arg("--arena").arg(&arena);
    let (code, _, error) = run(command.arg("--init-file").arg(&file));
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("init.sql line 3: 42601"), "{error}");
    assert!(!arena.exists());
}

/// A daemon by the flags of a test alone, ended when the test ends.
struct Started(std::process::Child);

impl Started {
    /// Starts it, waits until it answers on its Unix socket, and gives the answer to `version`.
    fn new(command: &mut Command, socket: &std::path::Path) -> (Self, String) {
        let mut started = Self(command.stderr(std::process::Stdio::piped()).spawn().unwrap());
        while !socket.exists() && started.0.try_wait().unwrap().is_none() {
            // The daemon tells nobody when it is ready.
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let answer = crate::client::Client::unix(socket).ask("version");
        (started, answer)
    }

    /// How many TCP sockets it has.
    fn tcp_sockets(&self) -> usize {
        let process = self.0.id();
        let sockets = std::fs::read_to_string(format!("/proc/{process}/net/tcp")).unwrap();
        let inodes = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        let own: Vec<String> = inodes
            .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
            .filter_map(|link| {
                Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
            })
            .collect();
        sockets.lines().filter(|line| own.iter().any(|inode| line.contains(&format!(" {inode} ")))).count()
    }

    /// Stops it, and gives what it logged.
    fn stop(mut self) -> String {
        Command::new("kill").arg(self.0.id().to_string()).status().unwrap();
        self.0.wait().unwrap();
        let mut log = String::new();
        std::io::Read::read_to_string(&mut self.0.stderr.take().unwrap(), &mut log).unwrap();
        log
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program as a user starts it: with the default for SQL.
fn plain() -> Command {
    let mut command = program();
    command.env_remove("SQLCACHED_SQL_PORT");
    command
}

#[test]
fn port_0_switches_tcp_off() {
    let folder = Folder::new();
    let socket = folder.0.join("sock");
    let (daemon, answer) =
        Started::new(program().args(["-p", "0", "--arena", "none", "-s"]).arg(&socket), &socket);
    assert!(answer.starts_with("VERSION "));
    assert_eq!(daemon.tcp_sockets(), 0);
}

/// It took TCP ports that nobody asked for, and so two daemons on two sockets were one too many.
#[test]
fn a_socket_alone_switches_tcp_off() {
    let folder = Folder::new();
    let sockets = ["one", "two"].map(|name| folder.0.join(name));
    let started = sockets.each_ref().map(|socket| Started::new(plain().arg("-s").arg(socket), socket));
    let private = format!("/dev/shm/sqlcached-{}", rustix::process::geteuid().as_raw());
    for ((daemon, answer), socket) in started.into_iter().zip(&sockets) {
        assert_eq!(answer, "VERSION 1.6.45");
        assert_eq!(daemon.tcp_sockets(), 0);
        daemon.stop();
        let arena = socket.to_str().unwrap().trim_start_matches('/').replace('/', "-");
        std::fs::remove_file(format!("{private}/{arena}.arena")).unwrap();
    }
    // Whoever asks for both gets both.
    let socket = folder.0.join("three");
    let port = free_port().to_string();
    let mut command = program();
    let (daemon, _) =
        Started::new(command.args(["-p", &port, "--arena", "none", "-s"]).arg(&socket), &socket);
    assert_eq!(daemon.tcp_sockets(), 1);
    assert!(crate::client::Client::tcp(port.parse().unwrap()).ask("version").starts_with("VERSION "));
}

/// Of two daemons that differ in their ports for memcached the second did not start.
#[test]
fn a_sql_port_that_nobody_asked_for_may_be_taken() {
    let folder = Folder::new();
    let ports = [free_port().to_string(), free_port().to_string()];
    let sockets = ["one", "two"].map(|name| folder.0.join(name));
    let start = |at: usize| {
        let mut command = plain();
        command.args(["-p", &ports[at], "--arena", "none", "-s"]);
        Started::new(command.arg(&sockets[at]), &sockets[at])
    };
    let (first, second) = (start(0), start(1));
    assert!(first.1.starts_with("VERSION ") && second.1.starts_with("VERSION "));
    let log = second.0.stop();
    assert!(log.contains("SQL clients cannot connect there"), "{log}");
    let held = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = held.local_addr().unwrap().port().to_string();
    let mut command = program();
    command.args(["-p", &free_port().to_string(), "--arena", "none", "-s", "none"]);
    let (code, _, error) = run(command.args(["--sql-port", &taken]));
    assert_eq!(code, Some(1));
    assert!(error.contains("cannot listen on"), "{error}");
}

/// A second daemon in another network namespace, with the same /dev/shm, found the first one's socket and arena there
/// and did not start: containers with a common /dev/shm are such.
#[test]
fn places_that_nobody_asked_for_may_belong_to_a_daemon_in_another_network_namespace() {
    let port = free_port().to_string();
    let private = format!("/dev/shm/sqlcached-{}", rustix::process::geteuid().as_raw());
    let (socket, arena) = (format!("{private}/{port}.sock"), format!("{private}/{port}.arena"));
    let first =
        Started::new(plain().args(["-p", &port, "--sql-port", &free_port().to_string()]), socket.as_ref());
    assert!(first.1.starts_with("VERSION "));
    for more in [&[][..], &["--arena", "none"]] {
        let mut second = Command::new("unshare");
        second
            .args(["-n", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\"", PROGRAM, "-p", &port])
            .args(more);
        let mut second = Started(second.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let mut greeting = String::new();
        let mut lines = std::io::BufReader::new(second.0.stdout.take().unwrap());
        while !greeting.contains("try:")
            && std::io::BufRead::read_line(&mut lines, &mut greeting).unwrap() > 0
        {}
        let log = second.stop();
        if log.contains("unshare") || log.contains("ip: ") {
            skipped("another network namespace is refused by this machine");
            break;
        }
        assert!(greeting.contains(&format!("memcached and SQL on 127.0.0.1:{port}\n")), "{greeting}{log}");
        assert!(!greeting.contains(&socket) && greeting.contains("memory of its own"), "{greeting}");
        assert!(log.contains(&format!("another server listens on {socket}; no memcached client")), "{log}");
        assert_eq!(
            log.contains("is in use by another process; rows are kept in memory"),
            more.is_empty(),
            "{log}"
        );
    }
    // Where the port is taken, too, it is one daemon too many.
    let (code, _, error) = run(plain().args(["-p", &port]));
    assert!(code == Some(1) && error.contains("a daemon is running already"), "{error}");
    let mut client = Client::unix(socket.as_ref());
    assert_eq!(client.set("k", b"v"), "STORED");
    drop(first);
    for file in [socket, arena] {
        let _ = std::fs::remove_file(file);
    }
}

#[test]
fn any_free_port_is_written_to_the_file_that_memcached_writes() {
    let folder = Folder::new();
    let (socket, file) = (folder.0.join("sock"), folder.0.join("ports"));
    let mut command = program();
    command.args(["-p", "-1", "-m", "3", "-l", "127.0.0.1", "-s"]).arg(&socket);
    let (daemon, _) = Started::new(command.env("MEMCACHED_PORT_FILENAME", &file), &socket);
    while !file.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let line = std::fs::read_to_string(&file).unwrap();
    let port = line.trim_end().strip_prefix("TCP INET: ").unwrap().parse().unwrap();
    assert_eq!(crate::client::Client::tcp(port).set("k", b"v"), "STORED");
    let log = daemon.stop();
    assert!(log.contains("memory_mb: less than 8 MiB is not enough"), "{log}");
}

#[test]
fn a_second_daemon_on_the_same_arena_is_refused() {
    let daemon = Daemon::start(&[]);
    let mut command = program();
    command.args(["-p", "0", "-s", "none", "-l", "127.0.0.1"]);
    command.arg("--arena").arg(daemon.folder.0.join("arena")).arg("-s").arg(daemon.folder.0.join("other"));
    let (code, _, error) = run(&mut command);
    assert_eq!(code, Some(1));
    assert!(error.contains("in use by another process") && error.contains("--arena"), "{error}");
    assert_eq!(daemon.connect().set("k", b"v"), "STORED");
}

/// A process that was killed leaves its port before its files. A start at that moment, on a busy machine, said that the
/// arena is in use, and there was no server.
#[test]
fn a_start_waits_for_the_files_of_the_process_before() {
    let mut daemon = Daemon::start(&[]);
    assert_eq!(daemon.connect().set("k", b"v"), "STORED");
    daemon.kill();
    let file = std::fs::File::open(daemon.folder.0.join("arena")).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let lets_go = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(file);
    });
    daemon.restart();
    lets_go.join().unwrap();
    assert_eq!(daemon.connect().get("k").unwrap(), b"v");
}

/// Kilobytes of addresses that a process here may have: enough for the program, and too few for an arena.
pub(crate) const FEW_ADDRESSES: &str = "ulimit -v 900000; exec \"$0\" \"$@\"";

/// An arena whose mapping was refused for want of addresses passed for an unusable file: it was removed, and its rows
/// with it.
#[test]
fn a_start_without_addresses_says_what_to_do_and_keeps_the_rows() {
    let mut daemon = Daemon::start(&[]);
    assert_eq!(daemon.connect().set("k", b"v"), "STORED");
    assert_eq!(daemon.terminate().code(), Some(0));
    let arena = daemon.folder.0.join("arena");
    let mut limited = Command::new("sh");
    limited.args(["-c", FEW_ADDRESSES, PROGRAM, "-p", "0", "--sql-port", "0"]);
    limited.arg("-s").arg(daemon.folder.0.join("other")).arg("--arena").arg(&arena);
    let (code, _, error) = run(&mut limited);
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains(&arena.display().to_string()) && error.contains("ulimit -v"), "{error}");
    daemon.restart();
    daemon.wait_until_it_says("warm start");
    assert_eq!(daemon.connect().get("k").as_deref(), Some(&b"v"[..]));
}

/// A flush that was asked for is carried out at its moment by the next process, however the first one ended; what is
/// written before it goes, too.
#[test]
fn a_flush_to_come_outlives_a_stop_and_a_kill() {
    let ended: Vec<_> = ["TERM", "KILL"].map(|stop| std::thread::spawn(|| flush_across(stop))).into();
    for thread in ended {
        thread.join().unwrap();
    }
}

fn flush_across(stop: &str) {
    let ahead = Duration::from_secs(4);
    let mut daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    assert_eq!(client.set("early", b"v"), "STORED");
    let asked = Instant::now();
    assert_eq!(client.ask(&format!("flush_all {}", ahead.as_secs())), "OK");
    let answered = Instant::now();
    drop(client);
    daemon.signal(stop);
    daemon.wait();
    daemon.restart();
    let mut client = daemon.connect();
    let early = client.get("early");
    assert_eq!(client.set("late", b"v"), "STORED");
    // The clock of deadlines counts in sixteenths of a second.
    if asked.elapsed() + Duration::from_millis(125) < ahead {
        assert_eq!(early.as_deref(), Some(&b"v"[..]), "{stop}: flushed before its moment");
    }
    std::thread::sleep((ahead + Duration::from_millis(1_125)).saturating_sub(answered.elapsed()));
    assert_eq!((client.get("early"), client.get("late")), (None, None), "{stop}");
    assert_eq!(client.set("after", b"v"), "STORED");
    assert_eq!(client.get("after").as_deref(), Some(&b"v"[..]), "{stop}");
}

/// SQLite compares the pattern with the text at each of its places, in one step of its machine: for some twenty seconds
/// here, and nothing stops it. A stop waits for answers, then for statements: seven seconds in all.
#[test]
fn a_function_that_hears_no_cancel_does_not_hold_up_a_stop() {
    let mut daemon = Daemon::start(&[]);
    assert_eq!(daemon.connect().set("k", b"v"), "STORED");
    let statement = "SELECT repeat('a', 30000000) GLOB '*' || repeat('[a-a]', 50) || 'b'";
    let mut busy = daemon.connect();
    busy.send(format!("sql {}\r\n{statement}\r\n", statement.len()).as_bytes());
    // Statements are taken in turn: one that came later is answered when the first has begun.
    assert_eq!(daemon.connect().rows("SELECT 1 AS one"), [json!({"one": 1})]);
    assert!(daemon.terminate().success());
    assert!(daemon.printed().contains("it ends with the process"), "{}", daemon.printed());
    daemon.restart();
    assert_eq!(daemon.connect().get("k").as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_file_that_never_was_an_arena_is_left_alone() {
    let folder = Folder::new();
    let path = folder.0.join("precious");
    for flag in ["--arena", "--shared-memory-file"] {
        std::fs::write(&path, "what somebody wrote").unwrap();
        let mut command = program();
        command.args(["-p", "0", "-l", "127.0.0.1", "-s"]).arg(folder.0.join("sock"));
        command.arg("--arena").arg(folder.0.join("arena")).arg(flag).arg(&path);
        let (code, _, error) = run(&mut command);
        assert_eq!(code, Some(1));
        assert!(error.contains("is not an arena and would be overwritten"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"what somebody wrote");
    }
}

#[test]
fn a_taken_port_and_a_taken_socket_are_refused() {
    let daemon = Daemon::start(&[]);
    let port = daemon.port.to_string();
    for (flags, message) in [
        (["-p", &port, "-s", "none"], "choose another port"),
        (["-p", "0", "-s", daemon.socket().to_str().unwrap()], "another server listens"),
    ] {
        let (code, _, error) = run(program().args(flags).args(["--arena", "none"]));
        assert_eq!(code, Some(1));
        assert!(error.contains(message), "{error}");
    }
    let (code, _, error) = run(program().args(["-p", "0", "-s", "none", "--arena", "none"]));
    assert_eq!(code, Some(1));
    assert!(error.contains("no address and no Unix socket"), "{error}");
}

#[test]
fn the_default_places_are_private() {
    let port = free_port().to_string();
    let uid = String::from_utf8(Command::new("id").arg("-u").output().unwrap().stdout).unwrap();
    let folder = format!("/dev/shm/sqlcached-{}", uid.trim());
    let mut child = program().args(["-p", &port]).spawn().unwrap();
    let socket = format!("{folder}/{port}.sock");
    for _ in 0..4_000 {
        if std::path::Path::new(&socket).exists() {
            break;
        }
        // The daemon tells nobody when it is ready.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mode = |path: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).map_or(0, |found| found.permissions().mode() & 0o777)
    };
    let (inside, arena, door) = (mode(&folder), mode(&format!("{folder}/{port}.arena")), mode(&socket));
    child.kill().unwrap();
    child.wait().unwrap();
    let _ = std::fs::remove_file(format!("{folder}/{port}.arena"));
    let _ = std::fs::remove_file(&socket);
    assert_eq!((inside, arena, door), (0o700, 0o600, 0o700));
}

/// A file system of a megabyte in place of /dev/shm, in a mount namespace that ends with the daemon.
#[test]
fn a_memory_file_system_that_is_too_small_is_named_at_the_start() {
    let folder = Folder::new();
    let script = format!(
        "mount -t tmpfs -o size=1m none /dev/shm && exec {PROGRAM} -p 0 -s /tmp/sqlcached-{}.sock",
        std::process::id()
    );
    let (code, _, error) =
        run(Command::new("unshare").args(["-m", "sh", "-c", &script]).current_dir(&folder.0));
    if error.contains("unshare") || error.contains("mount:") || error.contains("permission denied") {
        skipped("a small /dev/shm needs a private mount namespace, which this machine refuses");
        return;
    }
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("cannot hold another") && error.contains("--shm-size"), "{error}");
}

/// /dev/shm that has room for the start, but not for all of -m: what does not fit is evicted, nobody dies.
#[test]
fn a_memory_file_system_that_fills_up_evicts() {
    let may_mount = Command::new("unshare").args(["-m", "true"]).status().unwrap();
    if !may_mount.success() {
        return skipped(&format!("a small /dev/shm needs a private mount namespace; {may_mount}"));
    }
    let folder = Folder::new();
    let here = folder.0.join("small");
    std::fs::create_dir(&here).unwrap();
    let socket = std::env::temp_dir().join(format!("sqlcached-small-{}.sock", std::process::id()));
    let script = format!(
        "mount -t tmpfs -o size=24m none {here} && exec {PROGRAM} -p 0 --sql-port 0 -m 64 -s {} --arena {here}/arena",
        socket.display(),
        here = here.display(),
    );
    let mut child = Killed(Command::new("unshare").args(["-m", "sh", "-c", &script]).spawn().unwrap());
    for _ in 0..2_000 {
        let serves = std::os::unix::net::UnixStream::connect(&socket).is_ok();
        if serves || child.0.try_wait().unwrap().is_some() {
            break;
        }
        // Waits for another process.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(child.0.try_wait().unwrap(), None, "it serves");
    let mut client = crate::client::Client::unix(&socket);
    let value = vec![b'x'; 10_000];
    for number in 0..6_000 {
        assert_eq!(client.set(&format!("key-{number}"), &value), "STORED", "set {number}");
    }
    assert!(client.stat("evictions") > 0);
    assert!(client.get("key-5999").is_some());
    assert_eq!(client.sql("SELECT 1 AS one"), Reply::Rows(vec![json!({"one": 1})]));
    assert_eq!(child.0.try_wait().unwrap(), None, "it still serves");
    let _ = std::fs::remove_file(&socket);
}

/// A process that does not outlive its test, however that ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}
