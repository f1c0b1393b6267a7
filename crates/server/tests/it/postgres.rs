//! The PostgreSQL listener: dialogues, and what bad input costs: an answer to its sender, and nothing to anybody else.

use std::io::Read;
use std::net::Shutdown;
use std::time::Duration;

use engine::testing::arm;
use server::{Config, Drained};

use crate::harness::{Daemon, config, daemon_with};
use crate::pg::{Pg, SYNC, bind, describe, execute, message, packet, parse, query, startup};

/// A statement that does not end by itself.
const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

fn sql_config() -> Config {
    Config { sql_addresses: vec!["127.0.0.1:0".parse().unwrap()], ..config() }
}

/// The store's own, after which announcements come.
const TICK: Duration = Duration::from_nanos(engine::TICK_NS);

fn daemon() -> Daemon {
    daemon_with(&sql_config())
}

fn with_table(daemon: &Daemon) -> Pg {
    let mut pg = Pg::connect(daemon);
    assert_eq!(pg.ask("CREATE TABLE t (id INT PRIMARY KEY, name TEXT)"), ["C CREATE TABLE"]);
    assert_eq!(pg.ask("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)"), ["C INSERT 0 3"]);
    pg
}

#[test]
fn a_session_begins() {
    let daemon = daemon();
    for minor in [0, 2] {
        let mut pg = Pg::plain(&daemon);
        pg.send(&startup(minor));
        let heard = pg.until_ready();
        assert!(heard.contains(&"S client_encoding=UTF8".to_owned()), "{heard:?}");
        assert!(heard.contains(&"S application_name=tests".to_owned()), "{heard:?}");
        assert_eq!(pg.key.1.len(), if minor == 0 { 4 } else { 32 });
        assert_eq!(pg.ask("SELECT 1"), ["T", "D 1", "C SELECT 1"]);
    }
    // A protocol to come is negotiated down.
    let mut pg = Pg::plain(&daemon);
    pg.send(&startup(9_999));
    assert_eq!(pg.until_ready()[0], "v");
    // Encryption is refused with a letter, and the client goes on in the clear.
    let mut pg = Pg::plain(&daemon);
    for code in [80_877_103, 80_877_104] {
        pg.send(&packet(code, b""));
        let mut letter = [0];
        pg.stream.read_exact(&mut letter).unwrap();
        assert_eq!(&letter, b"N");
    }
    pg.send(&startup(0));
    pg.until_ready();
}

#[test]
fn who_comes_to_the_wrong_listener_is_told() {
    let daemon = daemon();
    for (bytes, expected) in [
        (&b"get a\r\nget b\r\n"[..], "E FATAL 08P01"),
        (b"GET / HTTP/1.1\r\n\r\n", "E FATAL 08P01"),
        (b"\0\0\0\0", "E FATAL 08P01"),
        (b"\xff\xff\xff\xff", "E FATAL 08P01"),
        (b"\0\0\0\x08\0\x02\0\0", "E FATAL 0A000"),
        (b"\0\0\0\x0c\0\x03\0\0user", "E FATAL 08P01"),
    ] {
        let mut pg = Pg::plain(&daemon);
        pg.send(bytes);
        let heard = pg.rest();
        assert!(heard.len() == 1 && heard[0].starts_with(expected), "{}: {heard:?}", bytes.escape_ascii());
    }
    for (parameters, expected) in [
        (&b"database\0x\0\0"[..], "E FATAL 28000"),
        (b"user\0me\0nonsense\x001\0\0", "E FATAL 42704"),
        (b"user\0me\0replication\0true\0\0", "E FATAL 0A000"),
        (b"user\0me\0client_encoding\0latin1\0\0", "E FATAL 22023"),
        (b"user\0me\0options\0-c x\0\0", "E FATAL 42601"),
    ] {
        let mut pg = Pg::plain(&daemon);
        pg.send(&packet(3 << 16, parameters));
        let heard = pg.rest();
        assert!(heard.len() == 1 && heard[0].starts_with(expected), "{heard:?}");
    }
    // Who says nothing is closed when its time is over.
    let mut silent = Pg::plain(&daemon);
    silent.send(b"\0\0");
    let mut pg = Pg::connect(&daemon);
    daemon.advance(Duration::from_secs(11));
    assert!(silent.rest()[0].starts_with("E FATAL 08006"));
    assert_eq!(pg.ask("SELECT 1"), ["T", "D 1", "C SELECT 1"]);
}

#[test]
fn simple_queries() {
    let daemon = daemon();
    let mut pg = with_table(&daemon);
    assert_eq!(pg.ask("SELECT name FROM t ORDER BY id"), ["T", "D a", "D b", "D NULL", "C SELECT 3"]);
    assert_eq!(pg.ask(""), ["I"]);
    assert_eq!(pg.ask(" ; -- nothing"), ["I"]);
    assert_eq!(pg.ask("SELECT 1; SELECT 2"), ["T", "D 1", "C SELECT 1", "T", "D 2", "C SELECT 1"]);
    let heard = pg.ask("SELECT 1; SELECT * FROM nowhere; SELECT 2");
    assert_eq!(heard.len(), 4);
    assert!(heard[3].starts_with("E ERROR 42P01"), "{heard:?}");
    // Statements sent together are one transaction.
    let heard = pg.ask("INSERT INTO t VALUES (9, 'x'); INSERT INTO t VALUES (9, 'y')");
    assert!(heard[1].starts_with("E ERROR 23505"), "{heard:?}");
    assert_eq!(pg.ask("SELECT count(*) FROM t"), ["T", "D 3", "C SELECT 1"]);
    pg.send(&query("BEGIN"));
    assert_eq!(pg.until_ready(), ["C BEGIN", "Z T"]);
    pg.send(&query("nonsense"));
    assert_eq!(pg.until_ready().last().unwrap(), "Z E");
    pg.send(&query("COMMIT"));
    assert_eq!(pg.until_ready(), ["C ROLLBACK", "Z I"]);
}

#[test]
fn prepared_statements_and_portals() {
    let daemon = daemon();
    let mut pg = with_table(&daemon);
    let typed = message(b'P', b"p\0SELECT id, name FROM t WHERE id >= $1 ORDER BY id\0\0\x01\0\0\0\x17");
    pg.send(&[&typed[..], &describe(b'S', "p"), SYNC].concat());
    assert_eq!(pg.until_ready(), ["1", "t [23]", "T", "Z I"]);
    pg.send(&[&bind("", "p", &["2"])[..], &execute("", 0), SYNC].concat());
    assert_eq!(pg.until_ready(), ["2", "D 2|b", "D 3|NULL", "C SELECT 2", "Z I"]);
    // A portal with a limit is suspended, and ends with its transaction.
    let limited =
        [&bind("c", "p", &["1"])[..], &execute("c", 2), &execute("c", 2), &execute("c", 2), SYNC].concat();
    pg.send(&limited);
    let expected = ["2", "D 1|a", "D 2|b", "s", "D 3|NULL", "C SELECT 1", "C SELECT 0", "Z I"];
    assert_eq!(pg.until_ready(), expected);
    pg.send(&[&execute("c", 0)[..], SYNC].concat());
    assert!(pg.until_ready()[0].starts_with("E ERROR 34000"));
    // One failure skips everything up to Sync.
    let group = [&bind("", "p", &["x"])[..], &execute("", 0), &parse("q", "SELECT 1"), SYNC].concat();
    pg.send(&group);
    let heard = pg.until_ready();
    assert!(heard.len() == 2 && heard[0].starts_with("E ERROR 22P02"), "{heard:?}");
    for (request, state) in [
        (bind("", "nobody", &[]), "26000"),
        (bind("", "p", &[]), "08P01"),
        (parse("p", "SELECT 1"), "42P05"),
        (parse("", "SELECT 1; SELECT 2"), "42601"),
        (parse("", "SELECT nope FROM t"), "42703"),
        (describe(b'P', "nobody"), "34000"),
        (message(b'P', b"\0SELECT $1\0\0\x01\0\x0f\x0f\x0f"), "42704"),
        (message(b'B', b"\0p\0\0\x01\0\x07\0\0\0\0"), "22023"),
        (message(b'E', b"x"), "08P01"),
    ] {
        pg.send(&[&request[..], SYNC].concat());
        let heard = pg.until_ready();
        assert!(heard.len() == 2 && heard[0].starts_with(&format!("E ERROR {state}")), "{state}: {heard:?}");
    }
    // What is sent together is one transaction up to Sync; what comes behind it is another.
    let insert = |id: &str| {
        [parse("", "INSERT INTO t VALUES ($1, 'p')"), bind("", "", &[id]), execute("", 0)].concat()
    };
    pg.send(&[&insert("50")[..], &insert("51"), &insert("50"), SYNC, &insert("52"), SYNC].concat());
    let heard = pg.until_ready();
    assert!(heard[heard.len() - 2].starts_with("E ERROR 23505"), "{heard:?}");
    assert_eq!(pg.until_ready(), ["1", "2", "C INSERT 0 1", "Z I"]);
    assert_eq!(pg.ask("SELECT id FROM t WHERE id >= 50"), ["T", "D 52", "C SELECT 1"]);
    pg.send(&[&insert("53")[..], &insert("54")].concat());
    pg.send(SYNC);
    assert_eq!(pg.until_ready().last().unwrap(), "Z I");
    assert_eq!(pg.ask("DELETE FROM t WHERE id >= 50"), ["C DELETE 3"]);
    // A cursor takes values too.
    let declare = message(b'P', b"\0DECLARE k CURSOR FOR SELECT name FROM t WHERE id = $1\0\0\x01\0\0\0\x17");
    pg.ask("BEGIN");
    pg.send(&[&declare[..], &bind("", "", &["2"]), &execute("", 0), SYNC].concat());
    assert_eq!(pg.until_ready(), ["1", "2", "C DECLARE CURSOR", "Z T"]);
    assert_eq!(pg.ask("FETCH ALL FROM k"), ["T", "D b", "C FETCH 1"]);
    // `FETCH` may be prepared before there is its cursor, and has the columns of the one that there is when it runs.
    pg.send(&[&parse("early", "FETCH ALL FROM late")[..], SYNC].concat());
    assert_eq!(pg.until_ready(), ["1", "Z T"]);
    for (columns, row) in [("1 AS one", "D 1"), ("2 AS two, 3 AS three", "D 2|3")] {
        pg.ask(&format!("DECLARE late CURSOR FOR SELECT {columns}"));
        let fetch = [bind("", "early", &[]), describe(b'P', ""), execute("", 0)].concat();
        pg.send(&[&fetch[..], SYNC].concat());
        assert_eq!(pg.until_ready(), ["2", "T", row, "C FETCH 1", "Z T"]);
        pg.ask("CLOSE late");
    }
    // A portal that was bound and not run is a cursor too; it had no rows.
    pg.send(&[&bind("m", "p", &["1"])[..], SYNC].concat());
    assert_eq!(pg.until_ready(), ["2", "Z T"]);
    assert_eq!(pg.ask("MOVE FORWARD 1 FROM m"), ["C MOVE 1"]);
    pg.send(&[&execute("m", 1)[..], SYNC].concat());
    assert_eq!(pg.until_ready(), ["D 2|b", "s", "Z T"]);
    pg.ask("COMMIT");
    // Without Sync the answers come all the same.
    pg.send(&[&parse("", "SELECT 7")[..], &bind("", "", &[]), &execute("", 0), b"H\0\0\0\x04"].concat());
    let heard: Vec<String> = (0..4).filter_map(|_| pg.next()).collect();
    assert_eq!(heard, ["1", "2", "D 7", "C SELECT 1"]);
}

#[test]
fn a_stream_cut_anywhere_is_understood_alike() {
    let daemon = daemon();
    let mut pg = with_table(&daemon);
    let group = [
        &parse("", "SELECT name FROM t WHERE id = $1")[..],
        &bind("", "", &["2"]),
        &execute("", 0),
        SYNC,
        &query("SELECT count(*) FROM t"),
    ]
    .concat();
    for cut in 1..group.len() {
        pg.send(&group[..cut]);
        pg.send(&group[cut..]);
        assert_eq!(pg.until_ready(), ["1", "2", "D b", "C SELECT 1", "Z I"]);
        assert_eq!(pg.until_ready(), ["T", "D 3", "C SELECT 1", "Z I"]);
    }
}

#[test]
fn lengths_that_lie_end_the_connection() {
    let daemon = daemon();
    for bytes in
        [&b"Q\0\0\0\0"[..], b"Q\xff\xff\xff\xff", b"Q\x7f\xff\xff\xff", b"S\0\x10\0\0", b"\x01\0\0\0\x04"]
    {
        let mut pg = Pg::connect(&daemon);
        pg.send(bytes);
        let heard = pg.rest();
        assert!(heard.len() == 1 && heard[0].starts_with("E FATAL 08P01"), "{heard:?}");
    }
    assert_eq!(Pg::connect(&daemon).ask("SELECT 1").len(), 3);
}

fn request_cancel(daemon: &Daemon, process: i32, secret: &[u8]) {
    let mut canceller = Pg::plain(daemon);
    canceller.send(&packet(80_877_102, &[&process.to_be_bytes()[..], secret].concat()));
    assert!(canceller.rest().is_empty());
}

/// Cancels the statement that a client has sent. A request that comes before it begins is for nobody, so it is made
/// until the client hears something.
fn cancel(daemon: &Daemon, of: &mut Pg) {
    of.stream.set_read_timeout(Some(TICK)).unwrap();
    let ended = (0..1_000).any(|_| {
        request_cancel(daemon, of.key.0, &of.key.1);
        of.stream.peek(&mut [0]).is_ok()
    });
    assert!(ended, "the statement was not cancelled");
    of.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
}

#[test]
fn a_long_statement_is_cancelled_and_others_are_served() {
    let daemon = daemon_with(&Config { sql_threads: 2, ..sql_config() });
    let mut busy = [Pg::connect(&daemon), Pg::connect(&daemon)];
    let mut other = Pg::connect(&daemon);
    busy[0].send(&query(ENDLESS));
    for _ in 0..50 {
        assert_eq!(other.ask("SELECT 1"), ["T", "D 1", "C SELECT 1"]);
    }
    busy[1].send(&query(ENDLESS));
    // Both threads are busy: a cancel request with a guessed key changes nothing, one with the right key does.
    let (process, secret) = busy[0].key.clone();
    request_cancel(&daemon, process, b"none");
    request_cancel(&daemon, 9_999, &secret);
    cancel(&daemon, &mut busy[1]);
    let heard = busy[1].until_ready();
    assert!(heard.iter().any(|line| line.starts_with("E ERROR 57014")), "{heard:?}");
    busy[0].stream.set_nonblocking(true).unwrap();
    assert!(busy[0].stream.peek(&mut [0]).is_err(), "the other statement goes on");
    busy[0].stream.set_nonblocking(false).unwrap();
    cancel(&daemon, &mut busy[0]);
    busy[0].until_ready();
    for pg in &mut busy {
        assert_eq!(pg.ask("SELECT 1"), ["T", "D 1", "C SELECT 1"]);
    }
}

/// While both threads are busy several clients ask, one of them for something endless. The kernel tells the first
/// thread that is free of all, and the other one serves those behind.
#[test]
fn nobody_waits_behind_a_long_statement_while_a_thread_is_free() {
    let daemon = daemon_with(&Config { sql_threads: 2, statement_timeout: None, ..sql_config() });
    let mut busy = Pg::connect(&daemon);
    let mut others: Vec<Pg> = (0..8).map(|_| Pg::connect(&daemon)).collect();
    let mut first = [Pg::connect(&daemon), Pg::connect(&daemon)];
    for round in 0..40 {
        for first in &mut first {
            first.send(&query("SELECT count(*) FROM generate_series(1, 20000)"));
        }
        for (at, other) in others.iter_mut().enumerate() {
            if at == round % 8 {
                busy.send(&query(ENDLESS));
            }
            other.send(&query("SELECT 1"));
        }
        for first in &mut first {
            assert_eq!(first.until_ready()[1], "D 20000");
        }
        for other in &mut others {
            assert_eq!(other.until_ready()[..3], ["T", "D 1", "C SELECT 1"]);
        }
        cancel(&daemon, &mut busy);
        let heard = busy.until_ready();
        assert!(heard.iter().any(|line| line.starts_with("E ERROR 57014")), "{heard:?}");
    }
}

#[test]
fn a_client_that_vanishes_leaves_nothing() {
    let daemon = daemon();
    let mut pg = with_table(&daemon);
    // In a transaction.
    let mut gone = Pg::connect(&daemon);
    gone.ask("BEGIN");
    gone.ask("INSERT INTO t VALUES (7, 'gone')");
    drop(gone);
    // In the middle of a COPY, within a transaction.
    let mut gone = Pg::connect(&daemon);
    gone.send(&query("BEGIN; COPY t FROM STDIN"));
    assert_eq!(gone.next().unwrap(), "C BEGIN");
    assert_eq!(gone.next().unwrap(), "G");
    gone.send(&message(b'd', b"8\tx\n"));
    drop(gone);
    // In the middle of a message.
    let mut gone = Pg::connect(&daemon);
    gone.send(&query("SELECT 1")[..7]);
    gone.stream.shutdown(Shutdown::Write).unwrap();
    assert!(gone.rest().is_empty());
    assert_eq!(pg.ask("SELECT count(*) FROM t"), ["T", "D 3", "C SELECT 1"]);
}

#[test]
fn copy_in_and_out() {
    let daemon = daemon();
    let mut pg = with_table(&daemon);
    pg.send(&query("COPY t FROM STDIN; SELECT count(*) FROM t"));
    assert_eq!(pg.next().unwrap(), "G");
    for piece in [&b"10\tt"[..], b"en\n11\t\\N", b"\n"] {
        pg.send(&message(b'd', piece));
    }
    pg.send(&message(b'c', b""));
    assert_eq!(pg.until_ready(), ["C COPY 2", "T", "D 5", "C SELECT 1", "Z I"]);
    let heard = pg.ask("COPY (SELECT * FROM t WHERE id > 2 ORDER BY id) TO STDOUT (FORMAT csv, HEADER)");
    assert_eq!(heard, ["H", "d id,name\n", "d 3,\n", "d 10,ten\n", "d 11,\n", "c", "C COPY 3"]);
    // The head of binary data comes with its first row.
    let heard = pg.ask("COPY (SELECT id FROM t WHERE id = 1) TO STDOUT (FORMAT binary)");
    assert!(heard.len() == 5 && heard[1].starts_with("d PGCOPY") && heard[1].ends_with('\u{1}'), "{heard:?}");
    // A row that does not fit names its line; what comes behind it is ignored.
    pg.send(&query("COPY t FROM STDIN"));
    pg.next().unwrap();
    pg.send(&[message(b'd', b"20\ta\nx\tb\n"), message(b'd', b"21\tc\n"), message(b'c', b"")].concat());
    let heard = pg.until_ready();
    assert!(heard.len() == 2 && heard[0].starts_with("E ERROR 22P02"), "{heard:?}");
    assert!(heard[0].ends_with(" (COPY t, line 2, column id: \"x\")"), "{heard:?}");
    pg.send(&query("COPY t FROM STDIN"));
    pg.next().unwrap();
    pg.send(&message(b'f', b"no more\0"));
    assert!(pg.until_ready()[0].starts_with("E ERROR 57014 COPY from stdin failed: no more"));
    assert_eq!(pg.ask("SELECT count(*) FROM t"), ["T", "D 5", "C SELECT 1"]);
    // By the extended protocol, with the Sync that a client sends ahead.
    let group = [&parse("", "COPY t FROM STDIN (FORMAT csv)")[..], &bind("", "", &[]), &execute("", 0), SYNC]
        .concat();
    pg.send(&group);
    pg.send(&[&message(b'd', b"30,x\n")[..], &message(b'c', b""), SYNC].concat());
    assert_eq!(pg.until_ready(), ["1", "2", "G", "C COPY 1", "Z I"]);
}

/// Rows are stored in batches: the error of one was told with the line of the last.
#[test]
fn an_error_of_copy_names_its_line() {
    let daemon = daemon();
    let mut pg = Pg::connect(&daemon);
    pg.ask("CREATE TABLE t (id INT PRIMARY KEY, n INT CHECK (n < 10), name TEXT UNIQUE, day DATE)");
    pg.ask("INSERT INTO t VALUES (7, 7, 'seven', NULL)");
    for begun in [false, true] {
        for (options, data, place) in [
            ("", "1\t1\ta\t\\N\n2\t20\tb\t\\N\n3\t3\tc\t\\N\n", "line 2"),
            ("", "1\t1\ta\t\\N\n7\t2\tb\t\\N\n3\t3\tc\t\\N\n", "line 2"),
            ("", "1\t1\ta\t\\N\n2\t2\tseven\t\\N\n3\t3\tc\t\\N\n", "line 2"),
            ("", "1\t1\ta\t\\N\n2\t2\tb\t\\N\n3\t3\tb\t\\N\n4\t4\td\t\\N\n", "line 3"),
            ("", "1\t1\ta\t\\N\n\\N\t2\tb\t\\N\n3\t3\tc\t\\N\n", "line 2"),
            ("", "1\t1\ta\t\\N\n2\t2\n", "line 2"),
            ("", "1\t1\ta\t2026-02-30\n", "line 1"),
            ("(FORMAT csv, HEADER)", "id,n,name,day\n1,1,\"a\nb\",\n2,x,c,\n", "line 4, column n: \"x\""),
            ("(FORMAT csv)", "1,1,a,\n2,2,\"b\n", "line 3"),
        ] {
            if begun {
                pg.ask("BEGIN");
            }
            pg.send(&query(&format!("COPY t FROM STDIN {options}")));
            assert_eq!(pg.next().unwrap(), "G");
            pg.send(&[message(b'd', data.as_bytes()), message(b'c', b"")].concat());
            let heard = pg.until_ready();
            assert!(heard[0].ends_with(&format!(" (COPY t, {place})")), "{data:?}: {heard:?}");
            if begun {
                pg.ask("ROLLBACK");
            }
        }
    }
    assert_eq!(pg.ask("SELECT count(*) FROM t"), ["T", "D 1", "C SELECT 1"]);
}

/// `OR FAIL` keeps what the statement wrote before, and so its transaction; statements sent together are one.
#[test]
fn half_a_statement_stands_in_its_transaction() {
    let daemon = daemon();
    let mut pg = Pg::connect(&daemon);
    pg.ask("CREATE TABLE t (id INT PRIMARY KEY)");
    pg.ask("BEGIN");
    let half = "INSERT OR FAIL INTO t VALUES (1), (2), (1), (3)";
    pg.send(&query(half));
    let heard = pg.until_ready();
    assert!(heard[0].starts_with("E ERROR 23505") && heard[1] == "Z T", "{heard:?}");
    // By the extended protocol.
    pg.send(
        &[
            parse("", "INSERT OR FAIL INTO t VALUES (4), (1), (5)"),
            bind("", "", &[]),
            execute("", 0),
            SYNC.to_vec(),
        ]
        .concat(),
    );
    let heard = pg.until_ready();
    assert!(heard[2].starts_with("E ERROR 23505") && heard[3] == "Z T", "{heard:?}");
    assert_eq!(pg.ask("COMMIT"), ["C COMMIT"]);
    assert_eq!(pg.ask("SELECT id FROM t ORDER BY id"), ["T", "D 1", "D 2", "D 4", "C SELECT 3"]);
    pg.ask("DELETE FROM t");
    pg.send(&query(&format!("INSERT INTO t VALUES (9); {half}")));
    assert_eq!(pg.until_ready().last().unwrap(), "Z I");
    assert_eq!(pg.ask("SELECT count(*) FROM t"), ["T", "D 0", "C SELECT 1"]);
}

/// Announcements went from where they are counted to an output that nobody bounded: a client that did not read took
/// hundreds of megabytes, and never learned that it was behind.
#[test]
fn who_does_not_read_its_notifications_is_closed() {
    let daemon = daemon();
    let (mut slow, mut quick, mut other) = (Pg::connect(&daemon), Pg::connect(&daemon), Pg::connect(&daemon));
    slow.ask("LISTEN news");
    quick.ask("LISTEN news");
    let payload = "x".repeat(7_900);
    let all = 5_000;
    for n in 0..all {
        assert_eq!(other.ask(&format!("NOTIFY news, '{n} {payload}'")), ["C NOTIFY"]);
        assert!(quick.next().unwrap().starts_with(&format!("A news {n} ")));
    }
    let (mut heard, mut end) = (0, String::new());
    while let Some(said) = slow.next() {
        if said.starts_with('A') {
            assert!(said.starts_with(&format!("A news {heard} ")), "one is missing before {heard}");
            heard += 1;
        } else {
            end = said;
        }
    }
    assert!(end.contains("53400"), "{end}");
    // What the kernel holds for it, and what an output may have.
    assert!(heard < all * 3 / 4, "{heard} of {all}");
}

/// What a transaction sets and announces goes back with it, to a savepoint too.
#[test]
fn savepoints_bring_back_settings() {
    let daemon = daemon();
    let (mut pg, mut other) = (Pg::connect(&daemon), Pg::connect(&daemon));
    let shown = |pg: &mut Pg| pg.ask("SHOW work_mem")[1].clone();
    pg.ask("SET work_mem = '1MB'");
    other.ask("LISTEN news");
    for statement in [
        "BEGIN",
        "SET work_mem = '2MB'",
        "NOTIFY news, 'kept'",
        "SAVEPOINT a",
        "SET LOCAL work_mem = '3MB'",
        "NOTIFY news, 'lost'",
        "SAVEPOINT b",
        "SELECT set_config('work_mem', '4MB', false)",
        "RELEASE b",
    ] {
        pg.ask(statement);
    }
    assert_eq!(shown(&mut pg), "D 4MB");
    pg.ask("SELECT nonsense");
    pg.ask("ROLLBACK TO a");
    assert_eq!(shown(&mut pg), "D 2MB");
    pg.ask("SET work_mem = '5MB'");
    pg.ask("ROLLBACK TO SAVEPOINT a");
    assert_eq!(shown(&mut pg), "D 2MB");
    assert_eq!(pg.ask("COMMIT"), ["C COMMIT"]);
    assert_eq!(shown(&mut pg), "D 2MB");
    assert_eq!(other.next().unwrap(), "A news kept");
    pg.ask("BEGIN");
    pg.ask("SET work_mem = '6MB'");
    pg.ask("NOTIFY news, 'lost too'");
    pg.ask("ROLLBACK AND CHAIN");
    assert_eq!(shown(&mut pg), "D 2MB");
    pg.ask("NOTIFY news, 'last'");
    pg.ask("COMMIT");
    assert_eq!(other.next().unwrap(), "A news last");
}

#[test]
fn notifications_reach_those_who_listen() {
    let daemon = daemon();
    let (mut one, mut two) = (Pg::connect(&daemon), Pg::connect(&daemon));
    assert_eq!(one.ask("LISTEN news"), ["C LISTEN"]);
    assert_eq!(two.ask("NOTIFY news, 'now'"), ["C NOTIFY"]);
    assert_eq!(one.next().unwrap(), "A news now");
    two.ask("BEGIN");
    two.ask("NOTIFY news, 'never'");
    two.ask("ROLLBACK");
    two.ask("BEGIN");
    two.ask("NOTIFY news, 'then'");
    two.ask("COMMIT");
    assert_eq!(one.next().unwrap(), "A news then");
    // Within a transaction nothing is told; the answer to its end comes first.
    one.ask("BEGIN");
    two.ask("NOTIFY news, 'late'");
    assert_eq!(one.ask("SELECT 1"), ["T", "D 1", "C SELECT 1"]);
    assert_eq!(one.ask("COMMIT"), ["C COMMIT", "A news late"]);
    one.ask("UNLISTEN *");
    two.ask("NOTIFY news, 'nobody'");
    assert_eq!(one.ask("SELECT 1"), ["T", "D 1", "C SELECT 1"]);
}

#[test]
fn who_keeps_copies_hears_which_rows_left() {
    let daemon = daemon();
    let (mut listener, mut writer) = (Pg::connect(&daemon), Pg::connect(&daemon));
    let create = "CREATE TABLE frag (k TEXT PRIMARY KEY, v TEXT) WITH (prefix = 'frag:', value = 'v', notify = 'gone')";
    assert_eq!(writer.ask(create), ["C CREATE TABLE"]);
    assert_eq!(listener.ask("LISTEN gone"), ["C LISTEN"]);
    assert_eq!(writer.ask("INSERT INTO frag VALUES ('17', 'old')"), ["C INSERT 0 1"]);
    assert_eq!(writer.ask("UPDATE frag SET v = 'new'"), ["C UPDATE 1"]);
    daemon.advance(TICK);
    assert_eq!(listener.next().unwrap(), r#"A gone {"event":"invalidate","table":"frag","key":"frag:17"}"#);
    assert_eq!(writer.ask("TRUNCATE frag"), ["C TRUNCATE TABLE"]);
    daemon.advance(TICK);
    assert_eq!(listener.next().unwrap(), r#"A gone {"event":"flush","table":"frag"}"#);
}

#[test]
fn rows_that_leave_by_a_rule_are_announced_as_expired() {
    let daemon = daemon();
    let (mut listener, mut writer) = (Pg::connect(&daemon), Pg::connect(&daemon));
    writer.ask("CREATE TABLE t (k TEXT PRIMARY KEY, v INT) WITH (notify = 'gone')");
    let create = "CREATE EXPIRY RULE two ON t WHEN v = 2 EVERY '1 min'";
    assert_eq!(writer.ask(create), ["C CREATE EXPIRY RULE"]);
    assert_eq!(writer.ask("INSERT INTO t VALUES ('a', 1), ('b', 2)"), ["C INSERT 0 2"]);
    listener.ask("LISTEN gone");
    daemon.engine.rule_runner().unwrap().run_due(&engine::Cancel::new());
    daemon.advance(TICK);
    assert_eq!(listener.next().unwrap(), r#"A gone {"event":"expire","table":"t","key":"b"}"#);
    assert_eq!(writer.ask("SHOW EXPIRY RULES"), ["T", "D two|t|v = 2|1 min|1|1|0|NULL", "C SELECT 1"]);
    assert_eq!(writer.ask("DROP EXPIRY RULE two"), ["C DROP EXPIRY RULE"]);
    let failed = writer.ask("DROP EXPIRY RULE two");
    assert!(failed.iter().any(|line| line.starts_with("E ERROR 42704")), "{failed:?}");
}

#[test]
fn pg_notify_is_notify() {
    let daemon = daemon();
    let (mut one, mut two) = (Pg::connect(&daemon), Pg::connect(&daemon));
    one.ask("LISTEN news");
    assert_eq!(two.ask("SELECT pg_notify('news', 'now')"), ["T", "D ", "C SELECT 1"]);
    assert_eq!(one.next().unwrap(), "A news now");
    two.ask("BEGIN");
    two.ask("SELECT pg_notify('news', 'never')");
    two.ask("ROLLBACK");
    let failed = two.ask("SELECT pg_notify('news', 'never'), 'x'::int");
    assert!(failed.iter().any(|line| line.starts_with("E ERROR 22P02")), "{failed:?}");
    two.ask("BEGIN");
    // The same once more in one statement is told once.
    two.ask("SELECT pg_notify('news', 'then') FROM (VALUES (1), (2))");
    two.ask("COMMIT");
    assert_eq!(one.next().unwrap(), "A news then");
    for (call, state) in [
        ("pg_notify('', 'x')", "22023"),
        ("pg_notify(NULL, 'x')", "22023"),
        ("pg_notify('news', repeat('x', 8000))", "22023"),
        ("pg_notify('news', n::text) FROM generate_series(1, 1001) AS s(n)", "54000"),
    ] {
        let heard = two.ask(&format!("SELECT {call}"));
        assert!(heard.iter().any(|line| line.starts_with(&format!("E ERROR {state}"))), "{call}: {heard:?}");
    }
    assert_eq!(one.ask("SELECT 1"), ["T", "D 1", "C SELECT 1"], "what failed told nothing");
}

#[test]
fn functions_see_and_change_a_sessions_settings() {
    let daemon = daemon();
    let (mut one, mut two) = (Pg::connect(&daemon), Pg::connect(&daemon));
    let get = |pg: &mut Pg| pg.ask("SELECT current_setting('WORK_MEM')")[1].clone();
    one.ask("SET work_mem = '1MB'");
    assert_eq!((get(&mut one), get(&mut two)), ("D 1MB".into(), "D 64MB".into()));
    let both = "SELECT set_config('work_mem', '2MB', false), current_setting('work_mem')";
    assert_eq!(one.ask(both)[1], "D 2MB|2MB");
    assert_eq!(one.ask("SHOW work_mem")[1], "D 2MB");
    one.ask("BEGIN");
    one.ask("SELECT set_config('work_mem', '3MB', true)");
    assert_eq!(get(&mut one), "D 3MB");
    one.ask("COMMIT");
    assert_eq!(get(&mut one), "D 2MB");
    one.ask("BEGIN");
    one.ask("SELECT set_config('work_mem', '4MB', false)");
    one.ask("ROLLBACK");
    assert_eq!(get(&mut one), "D 2MB");
    for (call, state) in [
        ("current_setting('nonsense')", "42704"),
        ("set_config('nonsense', 'x', false)", "42704"),
        ("set_config('server_version', 'x', false)", "55P02"),
        ("set_config('extra_float_digits', 'x', false)", "22023"),
        ("set_config(NULL, 'x', false)", "22004"),
    ] {
        let heard = one.ask(&format!("SELECT {call}"));
        assert!(heard.iter().any(|line| line.starts_with(&format!("E ERROR {state}"))), "{call}: {heard:?}");
    }
    assert_eq!(one.ask("SELECT current_setting('nonsense', true) IS NULL")[1], "D t");
}

#[test]
fn pg_cancel_backend_stops_another_sessions_statement() {
    let daemon = daemon_with(&Config { sql_threads: 2, ..sql_config() });
    let (mut busy, mut other) = (Pg::connect(&daemon), Pg::connect(&daemon));
    busy.send(&query(ENDLESS));
    let number = busy.key.0;
    // A cancellation before the statement begins would be forgotten.
    let cancel = format!(
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = {number} AND state = 'active'"
    );
    while other.ask(&cancel)[1] != "D t" {}
    let heard = busy.until_ready();
    assert!(heard.iter().any(|line| line.starts_with("E ERROR 57014")), "{heard:?}");
    assert_eq!(busy.ask("SELECT 1"), ["T", "D 1", "C SELECT 1"]);
    assert_eq!(other.ask("SELECT pg_cancel_backend(-1)")[1], "D f");
}

/// The session ends whether it sleeps or works, and its transaction is rolled back.
#[test]
fn pg_terminate_backend_ends_another_session() {
    let daemon = daemon_with(&Config { sql_threads: 2, ..sql_config() });
    let (mut idle, mut busy, mut other) = (Pg::connect(&daemon), Pg::connect(&daemon), Pg::connect(&daemon));
    other.ask("CREATE TABLE ended (k INT PRIMARY KEY)");
    idle.ask("BEGIN");
    idle.ask("INSERT INTO ended VALUES (1)");
    busy.send(&query(ENDLESS));
    for (number, state) in [(idle.key.0, "idle in transaction"), (busy.key.0, "active")] {
        let end = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = {number} AND state = '{state}'"
        );
        while other.ask(&end)[1] != "D t" {}
    }
    let heard = busy.until_ready();
    assert!(heard.iter().any(|line| line.starts_with("E ERROR 57014")), "{heard:?}");
    daemon.advance(Duration::from_secs(1));
    for session in [&mut idle, &mut busy] {
        let heard = session.rest();
        assert!(heard.iter().any(|line| line.starts_with("E FATAL 57P01")), "{heard:?}");
    }
    assert_eq!(other.ask("SELECT count(*) FROM ended")[1], "D 0");
    assert_eq!(other.ask(&format!("SELECT pg_terminate_backend({})", idle.key.0))[1], "D f");
}

#[test]
fn lastval_tells_the_number_made_last() {
    let daemon = daemon();
    let (mut one, mut two) = (Pg::connect(&daemon), Pg::connect(&daemon));
    one.ask("CREATE TABLE s (id SERIAL PRIMARY KEY, name TEXT)");
    for pg in [&mut one, &mut two] {
        let heard = pg.ask("SELECT lastval()");
        assert!(heard.iter().any(|line| line.starts_with("E ERROR 55000")), "{heard:?}");
    }
    for name in ["a", "b"] {
        let made = one.ask(&format!("INSERT INTO s (name) VALUES ('{name}') RETURNING id"))[1].clone();
        assert_eq!(one.ask("SELECT lastval()")[1], made);
    }
    let before = one.ask("SELECT lastval()");
    one.ask("INSERT INTO s VALUES (1000, 'given')");
    two.ask("INSERT INTO s (name) VALUES ('another session')");
    assert_eq!(one.ask("SELECT lastval()"), before);
}

#[test]
fn limits_are_errors_to_their_client_alone() {
    let daemon = daemon();
    let mut pg = with_table(&daemon);
    let mut group = Vec::new();
    for number in 0..10_000 {
        group.extend_from_slice(&parse(&format!("s{number}"), "SELECT name FROM t WHERE id = $1"));
    }
    group.extend_from_slice(SYNC);
    pg.send(&group);
    assert_eq!(pg.until_ready().len(), 10_001);
    assert_eq!(pg.ask("DEALLOCATE s9999"), ["C DEALLOCATE"]);
    pg.send(&[&bind("", "s9998", &["1"])[..], &execute("", 0), SYNC].concat());
    assert_eq!(pg.until_ready(), ["2", "D a", "C SELECT 1", "Z I"]);
    // A result beyond max_result_size.
    let big = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) \
               SELECT i, hex(zeroblob(1000000)) FROM n";
    pg.send(&query(big));
    let heard = pg.until_ready();
    assert!(heard.iter().any(|line| line.starts_with("E ERROR 54000")), "no error");
    // The same as the data of a COPY has no limit.
    let heard = pg.ask(&format!("COPY ({big}) TO STDOUT"));
    assert_eq!(heard.last().unwrap(), "C COPY 100");
    // A panic costs its connection.
    let mut victim = Pg::connect(&daemon);
    arm("sql session", b"SELECT 'panic'");
    victim.send(&query("SELECT 'panic'"));
    assert!(victim.rest()[0].starts_with("E FATAL XX000"));
    assert_eq!(pg.ask("SELECT 1"), ["T", "D 1", "C SELECT 1"]);
}

#[test]
fn sleepers_are_woken_by_the_clock() {
    let daemon = daemon();
    let (mut in_block, mut idle, mut awake) =
        (Pg::connect(&daemon), Pg::connect(&daemon), Pg::connect(&daemon));
    in_block.ask("SET idle_in_transaction_session_timeout = '10s'");
    in_block.ask("BEGIN");
    idle.ask("SET idle_session_timeout = '20s'");
    daemon.advance(Duration::from_secs(11));
    assert!(in_block.rest()[0].starts_with("E FATAL 25P03"));
    assert_eq!(idle.ask("SELECT 1").len(), 3);
    daemon.advance(Duration::from_secs(21));
    assert!(idle.rest()[0].starts_with("E FATAL 57P05"));
    assert_eq!(awake.ask("SELECT 1").len(), 3);
}

#[test]
fn places_are_limited_and_given_back() {
    let daemon = daemon_with(&Config { max_connections: 2, ..sql_config() });
    let mut first = Pg::connect(&daemon);
    let _second = Pg::connect(&daemon);
    // psql asks for encryption first, and shows no error that comes in place of the answer.
    let mut third = Pg::plain(&daemon);
    third.send(&packet(80_877_103, &[]));
    let mut answer = [0];
    third.stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"N");
    third.send(&startup(0));
    assert!(third.rest()[0].starts_with("E FATAL 53300"));
    // Lost once: with all places taken nobody could cancel a statement.
    first.send(&query(ENDLESS));
    cancel(&daemon, &mut first);
    assert!(first.until_ready().iter().any(|line| line.starts_with("E ERROR 57014")));
    drop(first);
    while daemon.engine.connections.load(std::sync::atomic::Ordering::Relaxed) == 2 {
        std::thread::yield_now();
    }
    Pg::connect(&daemon);
}

#[test]
fn a_drain_says_goodbye() {
    let daemon = daemon();
    let mut idle = with_table(&daemon);
    let mut other = Pg::connect(&daemon);
    other.ask("BEGIN");
    assert_eq!(daemon.server.drain(Duration::from_secs(20)), Drained::Whole);
    for pg in [&mut idle, &mut other] {
        let heard = pg.rest();
        assert!(heard.len() == 1 && heard[0].starts_with("E FATAL 57P01"), "{heard:?}");
    }
}

/// What clients send before their first statement of one's own: asyncpg, Sequelize, Flyway and Django's migrations went
/// no further than this.
#[test]
fn what_frameworks_set_at_their_start() {
    let daemon = daemon();
    let mut named = Pg::plain(&daemon);
    named.send(&packet(3 << 16, b"user\0me\0client_encoding\0'utf-8'\0\0"));
    assert_eq!(named.until_ready().last().map(String::as_str), Some("Z I"));
    let mut one = Pg::connect(&daemon);
    for text in [
        "SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE",
        "SET client_encoding TO 'UTF-8'",
        "SET ROLE NONE",
        "SET SESSION AUTHORIZATION DEFAULT",
    ] {
        assert!(one.ask(text).contains(&"C SET".to_owned()), "{text}");
    }
    assert_eq!(one.ask("SET CONSTRAINTS ALL IMMEDIATE"), ["C SET CONSTRAINTS"]);
    for (text, state) in [
        ("SET TIME ZONE INTERVAL '1 month'", "22023"),
        ("SET ROLE somebody", "22023"),
        ("SHOW TABLES", "42704"),
        ("DESCRIBE memcached", "42601"),
    ] {
        let heard = one.ask(text);
        assert!(heard.iter().any(|line| line.starts_with(&format!("E ERROR {state}"))), "{text}: {heard:?}");
    }
}

#[test]
fn the_level_of_isolation_is_shown_as_asked() {
    let daemon = daemon();
    let mut one = Pg::connect(&daemon);
    let shown = |one: &mut Pg| one.ask("SHOW transaction_isolation")[1].clone();
    assert_eq!(shown(&mut one), "D read committed");
    one.ask("BEGIN ISOLATION LEVEL SERIALIZABLE");
    assert_eq!(shown(&mut one), "D serializable");
    one.ask("COMMIT AND CHAIN");
    assert_eq!(shown(&mut one), "D serializable");
    one.ask("ROLLBACK");
    assert_eq!(shown(&mut one), "D read committed");
    one.ask("SET default_transaction_isolation = 'repeatable read'");
    assert_eq!(shown(&mut one), "D repeatable read");
    let listed = "SELECT setting FROM pg_settings WHERE name = 'default_transaction_isolation'";
    assert_eq!(one.ask(listed)[1], "D repeatable read");
    one.ask("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    one.ask("SET work_mem = '1MB'");
    one.ask("BEGIN");
    assert_eq!(shown(&mut one), "D serializable");
}

/// Any other `SET` made a session writable that was to read only.
#[test]
fn the_characteristics_of_a_session_outlive_its_other_settings() {
    let daemon = daemon();
    let mut one = Pg::connect(&daemon);
    one.ask("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY");
    one.ask("SET work_mem = '1MB'");
    assert_eq!(one.ask("SHOW default_transaction_read_only")[1], "D on");
    let heard = one.ask("CREATE TABLE t (k INT)");
    assert!(heard.iter().any(|line| line.starts_with("E ERROR 25006")), "{heard:?}");
    one.ask("RESET default_transaction_read_only");
    assert_eq!(one.ask("CREATE TABLE t (k INT)"), ["C CREATE TABLE"]);
}
