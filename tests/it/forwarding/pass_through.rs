//! The same dialogue with a database and through a daemon in front of it, by PostgreSQL's own drivers and programs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use super::talk::Talk;
use super::{SETTINGS, Shop};
use crate::daemon::run;
use crate::drivers::place::Place;
use crate::drivers::suite::{python_script, root};
use crate::drivers::{at_place, report};
use crate::sources::{psql, until};

/// Bytes of a large answer, and those by which the daemon's memory may grow while it passes.
const LARGE: usize = 100 << 20;
const GROWTH_MAX: u64 = 24 << 20;

/// Every suite of PostgreSQL's drivers holds, as it does at the database itself.
fn suites_hold(options: &str) {
    let shop = Shop::start(options, "");
    for (name, lines) in at_place(&shop.through) {
        report(name, &lines);
    }
}

#[test]
fn driver_suites() {
    suites_hold("");
}

#[test]
fn driver_suites_with_a_cache() {
    suites_hold("cache 'auto'");
}

/// What a program prints when it is told this place, and what it complains of.
fn printed(mut command: Command, place: &Place) -> (String, String) {
    place.tell(&mut command);
    let (code, out, error) = run(&mut command);
    assert_eq!(code, Some(0), "{out}\n{error}");
    (out, error)
}

/// The first difference of two texts, with what comes before it.
fn assert_same(direct: &str, through: &str) {
    let differs = |(one, other): (&str, &str)| one != other;
    if let Some(at) = direct.lines().zip(through.lines()).position(differs) {
        let before: Vec<&str> = direct.lines().take(at).collect();
        let from = before.len().saturating_sub(6);
        panic!(
            "{}\ndirectly: {}\nthrough:  {}",
            before[from..].join("\n"),
            direct.lines().nth(at).unwrap(),
            through.lines().nth(at).unwrap()
        );
    }
    assert_eq!(direct.lines().count(), through.lines().count(), "one of them ends before the other");
}

/// Programs print the same, and complain of nothing that they do not complain of at the database itself.
fn assert_same_run((direct, complaints): &(String, String), (through, more): &(String, String)) {
    assert_same(direct, through);
    let new: Vec<&str> = more.lines().filter(|line| !complaints.contains(line)).collect();
    assert!(new.is_empty(), "{}", new.join("\n"));
}

fn dialogue_is_the_same(options: &str) -> Shop {
    let shop = Shop::start(options, "");
    let script = || python_script(&root().join("tests/drivers/forwarding/dialogue.py"));
    let direct = printed(script(), &shop.direct);
    let mut through = script();
    if !options.is_empty() {
        through.env("KEPT", "1");
    }
    assert_same_run(&direct, &printed(through, &shop.through));
    shop
}

#[test]
fn a_dialogue_of_psycopg_and_asyncpg() {
    dialogue_is_the_same("");
}

#[test]
fn a_dialogue_of_psycopg_and_asyncpg_with_a_cache() {
    let shop = dialogue_is_the_same("cache 'auto'");
    // The statements are forgotten with the definitions that the dialogue changes at its end.
    let hits =
        psql(&shop.daemon.place, "SELECT hits FROM sqlcached_tables WHERE table_name = 'shop_answers'");
    assert_ne!(hits, "0", "nothing was answered from what is kept");
}

/// What psql prints of a script, without the numbers of processes.
fn script(place: &Place, text: &str) -> String {
    let mut psql = place.program("psql");
    psql.args(["-X", "-a", "-v", "VERBOSITY=verbose"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = psql.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let line = |line: &str| match line.split_once("from server process with PID") {
        Some((before, _)) => before.to_owned(),
        None => line.to_owned(),
    };
    said.lines().map(line).collect::<Vec<_>>().join("\n")
}

const SCRIPT: &str = r"
DROP TABLE IF EXISTS ware;
CREATE TABLE ware (id INT PRIMARY KEY, name TEXT);
COPY ware FROM STDIN;
1	one
2	\N
\.
\copy (SELECT * FROM ware ORDER BY id) TO STDOUT CSV HEADER
\copy ware FROM PROGRAM 'seq 3 9 | sed s/$/\\tx/'
SELECT * FROM ware WHERE id = 1; SELECT * FROM ware WHERE id = 2 \; SELECT 3;
SELECT * FROM ware WHERE id = 1;
SELECT * FROM ware WHERE id = 1;
SELECT * FROM ware WHERE id = 1;
SELECT pg_sleep(0.3);
SELECT * FROM ware WHERE id = 1;
SELECT * FROM ware WHERE id = 1;
\d ware
\gdesc
SELECT id, name FROM ware WHERE id = 1 \gdesc
\set FETCH_COUNT 2
SELECT * FROM ware ORDER BY id;
\unset FETCH_COUNT
BEGIN; DECLARE c CURSOR FOR SELECT id FROM ware ORDER BY id; FETCH 2 FROM c; MOVE 1 FROM c; FETCH c; COMMIT;
PREPARE p (int) AS SELECT name FROM ware WHERE id = $1;
EXECUTE p (1);
EXECUTE p (2);
DEALLOCATE p;
EXECUTE p (1);
DISCARD ALL;
LISTEN shop;
NOTIFY shop, 'told';
SELECT 1;
BEGIN;
SELECT * FROM nothing;
SELECT 1;
SAVEPOINT s;
ROLLBACK;
COPY ware FROM STDIN;
broken
\.
SELECT * FROM ware WHERE id = 1;
SET TIME ZONE 'Asia/Tokyo';
SELECT '2026-02-03 04:05:06+00'::timestamptz;
\encoding LATIN1
SELECT chr(233);
\encoding UTF8
CREATE TEMP TABLE ware (id INT);
SELECT * FROM ware WHERE id = 1;
DROP TABLE pg_temp.ware;
DO $$ BEGIN RAISE NOTICE 'a notice'; END $$;
SELECT * FROM ware WHERE id = 1 \gx
DROP TABLE ware;
";

#[test]
fn a_script_of_psql() {
    for options in ["", "cache 'auto'"] {
        let shop = Shop::start(options, "");
        let direct = script(&shop.direct, SCRIPT);
        assert!(direct.contains("42P01") && direct.contains("told"), "{direct}");
        for _ in 0..2 {
            assert_same(&direct, &script(&shop.through, SCRIPT));
        }
    }
}

/// A hundred megabytes pass in many rows, in one row, in COPY of both ways; and the daemon keeps none of them.
#[test]
fn large_answers_pass_without_memory() {
    let shop = Shop::start("cache 'auto'", "CREATE TABLE large (body TEXT)");
    let (daemon, place) = (&shop.daemon.daemon, &shop.through);
    psql(place, "SELECT 1");
    let before = daemon.resident_bytes();
    let rows = LARGE >> 10;
    let many = format!("SELECT repeat('x', 1023) FROM generate_series(1, {rows})");
    let ways = [
        format!("psql -X -A -t -q -c \"{many}\" | wc -c"),
        format!("psql -X -q -c \"COPY ({many}) TO STDOUT\" | wc -c"),
        format!("psql -X -A -t -q -c \"SELECT repeat('x', {LARGE} - 1)\" | wc -c"),
        format!("psql -X -A -t -q -c \"{many}\" | (sleep 1; wc -c)"),
        format!(
            "yes {} | head -{rows} | psql -X -q -c 'COPY large FROM STDIN' && psql -X -A -t -q -c 'SELECT sum(length(body) + 1) FROM large'",
            "x".repeat(1_023)
        ),
        format!("psql -X -A -t -q -v FETCH_COUNT=1000 -c \"{many}\" | wc -c"),
    ];
    for way in ways {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&way).stdout(Stdio::piped()).stdin(Stdio::null());
        place.tell(&mut shell);
        let child = shell.spawn().unwrap();
        let mut most = 0;
        let counting = std::thread::spawn(move || child.wait_with_output().unwrap());
        while !counting.is_finished() {
            most = most.max(daemon.resident_bytes());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let output = counting.join().unwrap();
        let count = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert_eq!(count, LARGE.to_string(), "{}", &way[..40]);
        let grown = most.saturating_sub(before);
        assert!(grown < GROWTH_MAX, "{grown} bytes more while {} passed", &way[..40]);
    }
}

/// A client that vanishes, in whatever it does, leaves no session at the source, which looks whether it is there.
#[test]
fn sessions_of_clients_that_vanish_end() {
    let settings = [SETTINGS, &["client_connection_check_interval=100"]].concat();
    let shop = Shop::start_with("cache 'auto'", "CREATE TABLE ware (id INT PRIMARY KEY)", &settings, &[]);
    let sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = 'shop' AND application_name = 'vanishes'";
    for does in [
        "SELECT 1",
        "SELECT pg_sleep(100)",
        "COPY ware FROM STDIN",
        "BEGIN; LOCK TABLE ware",
        "SELECT * FROM generate_series(1, 100000000)",
    ] {
        let mut client = raw(&shop.through, "vanishes");
        send(&mut client, b'Q', format!("{does}\0").as_bytes());
        until("it has a session", || psql(&shop.direct, sessions) == "1");
        drop(client);
        until(does, || psql(&shop.direct, sessions) == "0");
    }
}

/// A connection that has begun a session, for bytes of the test's own.
pub(super) fn raw(place: &Place, name: &str) -> TcpStream {
    let mut socket = TcpStream::connect(("127.0.0.1", place.port)).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    let body = format!("user\0{}\0database\0{}\0application_name\0{name}\0\0", place.user, place.database);
    let mut start = u32::try_from(body.len() + 8).unwrap().to_be_bytes().to_vec();
    start.extend_from_slice(&196_608_u32.to_be_bytes());
    start.extend_from_slice(body.as_bytes());
    socket.write_all(&start).unwrap();
    let mut bytes = Vec::new();
    let mut piece = [0; 1_024];
    while !bytes.ends_with(b"Z\0\0\0\x05I") {
        let count = socket.read(&mut piece).unwrap();
        assert!(count > 0, "no session: {}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&piece[..count]);
    }
    socket
}

fn send(socket: &mut TcpStream, kind: u8, body: &[u8]) {
    let mut message = vec![kind];
    message.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    message.extend_from_slice(body);
    socket.write_all(&message).unwrap();
}

/// Garbage is answered as the source answers it, and hurts nobody else.
#[test]
fn garbage_ends_its_own_session_only() {
    let shop = Shop::cached("CREATE TABLE ware (id INT PRIMARY KEY); INSERT INTO ware VALUES (1)");
    let other = Talk::with(&shop.through);
    let mut random = fastrand::Rng::with_seed(crate::seed());
    for _ in 0..60 {
        let mut client = raw(&shop.through, "garbage");
        let mut bytes: Vec<u8> = (0..random.usize(1..200)).map(|_| random.u8(..)).collect();
        if random.bool() {
            // It begins well.
            let mut message = b"Q\0\0\0\x0dSELECT 1\0P\0\0\0\x20a\0SELECT id FROM ware\0".to_vec();
            message.truncate(random.usize(1..=message.len()));
            bytes = [message, bytes].concat();
        }
        client.write_all(&bytes).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = client.read_to_end(&mut Vec::new());
        assert_eq!(other.must("SELECT id FROM ware WHERE id = 1"), ["1"]);
    }
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'garbage'";
    until("their sessions end", || psql(&shop.direct, sessions) == "0");
}
