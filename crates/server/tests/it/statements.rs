//! SQL through memcached's protocol, and one row seen from both sides.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use engine::testing::arm;

use crate::harness::{Client, Daemon, config, daemon, daemon_with};
use crate::lifecycle::{Folder, unix_config};

/// A statement that does not end by itself.
const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

fn sql(statement: &str) -> Vec<u8> {
    format!("sql {}\r\n{statement}\r\n", statement.len()).into_bytes()
}

fn sqlp(statement: &str, parameters: &str) -> Vec<u8> {
    format!("sqlp {} {}\r\n{statement}\r\n{parameters}\r\n", statement.len(), parameters.len()).into_bytes()
}

fn ask<S: Read + Write>(client: &mut Client<S>, statement: &str, expected: &str) {
    client.ask(&sql(statement), expected.as_bytes());
}

#[test]
fn rows_and_changes() {
    let daemon = daemon();
    let mut client = daemon.connect();
    ask(
        &mut client,
        "SELECT 1 AS one, 'a\"b' AS text, NULL AS none, x'00ff' AS bytes, 1.5 AS real",
        "{\"one\":1,\"text\":\"a\\\"b\",\"none\":null,\"bytes\":{\"base64\":\"AP8=\"},\"real\":1.5}\r\nEND\r\n",
    );
    ask(&mut client, "SELECT 1 AS a, 2 AS a", "{\"a\":1,\"a\":2}\r\nEND\r\n");
    ask(&mut client, "SELECT 1 AS a WHERE 0", "END\r\n");
    ask(&mut client, "CREATE TABLE t (id INT PRIMARY KEY, name TEXT)", "OK 0\r\n");
    ask(&mut client, "INSERT INTO t VALUES (1, 'a'), (2, 'b')", "OK 2\r\n");
    ask(&mut client, "UPDATE t SET name = name || '!' WHERE id = 2", "OK 1\r\n");
    ask(
        &mut client,
        "SELECT * FROM t ORDER BY id",
        "{\"id\":1,\"name\":\"a\"}\r\n{\"id\":2,\"name\":\"b!\"}\r\nEND\r\n",
    );
    ask(&mut client, "DELETE FROM t WHERE id = 2 RETURNING id", "{\"id\":2}\r\nEND\r\n");
    let insert = sqlp("INSERT INTO t VALUES (?, ?)", r#"[7, "sev\u0065n"]"#);
    client.ask(&insert, b"OK 1\r\n");
    client.ask(&sqlp("SELECT name FROM t WHERE id = $1", "[7]"), b"{\"name\":\"seven\"}\r\nEND\r\n");
    client.send(&insert);
    assert!(client.line().starts_with("ERROR 23505 "));
}

#[test]
fn refusals() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let table: &[(Vec<u8>, &str)] = &[
        (sql("SELEC 1"), "ERROR 42601 "),
        (sql("SELECT * FROM nowhere"), "ERROR 42P01 "),
        (sqlp("SELECT ?", "{"), "ERROR 22P02 "),
        (sqlp("SELECT ?", "[1, 2]"), "ERROR 08P01 "),
        (b"sql 9\r\nSELECT \xff\xff\r\n".to_vec(), "ERROR 22021 "),
        (b"sql x\r\n".to_vec(), "ERROR 08P01 "),
    ];
    for (request, expected) in table {
        client.send(request);
        let line = client.line();
        assert!(line.starts_with(expected), "{}: {line}", request.escape_ascii());
        client.ask(b"get a\r\n", b"END\r\n");
    }
}

#[test]
fn requests_behind_a_statement_wait_for_it() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let requests = [
        &b"set memcached 0 0 1\r\nx\r\n"[..],
        &sql("SELECT key, value FROM memcached"),
        b"delete memcached\r\n",
        &sql("SELECT count(*) AS n FROM memcached"),
        b"get memcached\r\n",
    ]
    .concat();
    let replies =
        b"STORED\r\n{\"key\":\"memcached\",\"value\":\"x\"}\r\nEND\r\nDELETED\r\n{\"n\":0}\r\nEND\r\nEND\r\n";
    for _ in 0..20 {
        client.ask(&requests, replies);
    }
    for byte in &requests {
        client.send(&[*byte]);
    }
    client.ask(b"", replies);
}

#[test]
fn one_row_both_ways() {
    let daemon = daemon();
    let mut client = daemon.connect();
    client.ask(b"set frag:old 0 0 1\r\nx\r\n", b"STORED\r\n");
    ask(
        &mut client,
        "CREATE TABLE frag (key TEXT PRIMARY KEY, body TEXT, page_id INT DEFAULT 17) \
        WITH (prefix = 'frag:', value = 'body')",
        "OK 0\r\n",
    );
    // The table answers to the prefix now.
    client.ask(b"get frag:old\r\n", b"END\r\n");
    client.ask(b"set frag:a 5 0 5\r\nhello\r\n", b"STORED\r\n");
    ask(
        &mut client,
        "SELECT key, body, page_id FROM frag WHERE key = 'a'",
        "{\"key\":\"a\",\"body\":\"hello\",\"page_id\":17}\r\nEND\r\n",
    );
    ask(&mut client, "SELECT count(*) AS n FROM memcached", "{\"n\":0}\r\nEND\r\n");
    ask(&mut client, "INSERT INTO frag VALUES ('b', 'by sql', 18)", "OK 1\r\n");
    client.ask(
        b"get frag:a frag:b b\r\n",
        b"VALUE frag:a 5 5\r\nhello\r\nVALUE frag:b 0 6\r\nby sql\r\nEND\r\n",
    );
    client.ask(b"append frag:b 0 0 1\r\n!\r\n", b"STORED\r\n");
    ask(
        &mut client,
        "SELECT body, page_id FROM frag WHERE key = 'b'",
        "{\"body\":\"by sql!\",\"page_id\":18}\r\nEND\r\n",
    );
    ask(&mut client, "DELETE FROM frag WHERE page_id = 17", "OK 1\r\n");
    client.ask(b"get frag:a frag:b\r\n", b"VALUE frag:b 0 7\r\nby sql!\r\nEND\r\n");
    client.ask(b"flush_all\r\n", b"OK\r\n");
    ask(&mut client, "SELECT count(*) AS n FROM frag", "{\"n\":0}\r\nEND\r\n");
}

#[test]
fn composite_and_numeric_keys() {
    let daemon = daemon();
    let mut client = daemon.connect();
    ask(
        &mut client,
        "CREATE TABLE visits (day TEXT, page INT, n INT NOT NULL, PRIMARY KEY (day, page)) \
        WITH (prefix = 'v:', value = 'n')",
        "OK 0\r\n",
    );
    client.ask(b"set v:mon:7 0 0 1\r\n1\r\nincr v:mon:7 41\r\n", b"STORED\r\n42\r\n");
    ask(&mut client, "SELECT * FROM visits", "{\"day\":\"mon\",\"page\":7,\"n\":42}\r\nEND\r\n");
    ask(&mut client, "UPDATE visits SET n = 50", "OK 1\r\n");
    client.ask(b"get v:mon:7\r\n", b"VALUE v:mon:7 0 2\r\n50\r\nEND\r\n");
    // What is no key of the table names no row, and cannot be stored.
    client.ask(b"get v:mon\r\ndelete v:mon:x\r\n", b"END\r\nNOT_FOUND\r\n");
    client.send(b"set v:mon:07 0 0 1\r\n1\r\n");
    assert!(client.line().starts_with("CLIENT_ERROR "));
    client.send(b"set v:mon:8 0 0 1\r\nx\r\n");
    assert!(client.line().starts_with("SERVER_ERROR "));
    client.ask(b"get v:mon:8\r\n", b"END\r\n");
}

#[test]
fn a_broken_constraint_is_named() {
    let daemon = daemon();
    let mut client = daemon.connect();
    ask(
        &mut client,
        "CREATE TABLE u (key TEXT PRIMARY KEY, mail TEXT) WITH (prefix = 'u:', value = 'mail')",
        "OK 0\r\n",
    );
    ask(&mut client, "CREATE UNIQUE INDEX u_mail ON u (mail)", "OK 0\r\n");
    client.ask(b"set u:a 0 0 1\r\nx\r\n", b"STORED\r\n");
    client.send(b"set u:b 0 0 1\r\nx\r\n");
    let line = client.line();
    assert!(line.starts_with("SERVER_ERROR ") && line.contains("u_mail"), "{line}");
    client.ask(b"get u:a u:b\r\n", b"VALUE u:a 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn a_half_closed_peer_gets_its_rows() {
    let daemon = daemon();
    let mut client = daemon.connect();
    client.send(&[sql("SELECT 1 AS a"), sql("SELECT 2 AS a")].concat());
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), b"{\"a\":1}\r\nEND\r\n{\"a\":2}\r\nEND\r\n");
}

#[test]
fn a_panic_in_a_statement_costs_one_connection() {
    let daemon = daemon();
    let mut unlucky = daemon.connect();
    let mut other = daemon.connect();
    arm("sql", b"SELECT 'boom'");
    unlucky.send(&sql("SELECT 'boom'"));
    assert_eq!(unlucky.rest(), b"ERROR XX000 internal error\r\n");
    for _ in 0..4 {
        ask(&mut other, "SELECT 1 AS a", "{\"a\":1}\r\nEND\r\n");
    }
}

#[test]
fn a_statement_stops_when_its_client_is_gone() {
    let folder = Folder::new();
    let mut config = unix_config(&folder);
    config.sql_threads = 1;
    config.statement_timeout = None;
    let daemon = daemon_with(&config);
    let connect = || Client { stream: UnixStream::connect(config.unix_socket.as_ref().unwrap()).unwrap() };
    let mut gone = connect();
    gone.send(&sql(ENDLESS));
    // Whether the statement runs, waits or was not even read when its client goes: it must not hold the thread.
    let mut patient = connect();
    patient.send(&sql("SELECT 1 AS a"));
    drop(gone);
    patient.expect(b"{\"a\":1}\r\nEND\r\n");
    drop(daemon);
}

#[test]
fn too_many_statements_wait() {
    let folder = Folder::new();
    let mut config = unix_config(&folder);
    (config.sql_threads, config.sql_queue, config.statement_timeout) = (1, 1, None);
    let daemon = daemon_with(&config);
    let path = config.unix_socket.as_ref().unwrap();
    let (lines, refused) = sync_channel(4);
    let streams: Vec<UnixStream> = (0..4).map(|_| UnixStream::connect(path).unwrap()).collect();
    for stream in &streams {
        let mut client = Client { stream: stream.try_clone().unwrap() };
        client.send(&sql(ENDLESS));
        let lines = lines.clone();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            let _gone = client.stream.read_to_end(&mut line);
            lines.send(line)
        });
    }
    // One runs and one waits at most; of the others each is refused, and then its connection is served on.
    drop(lines);
    let mut other = Client { stream: UnixStream::connect(path).unwrap() };
    other.ask(b"get a\r\n", b"END\r\n");
    for stream in &streams {
        stream.shutdown(Shutdown::Both).unwrap();
    }
    let replies: Vec<Vec<u8>> = refused.iter().collect();
    let count = replies.iter().filter(|reply| reply.starts_with(b"ERROR 53300 ")).count();
    assert!(count <= 3, "{count}");
    drop(daemon);
}

#[test]
fn a_statement_that_takes_too_long() {
    let mut config = config();
    config.statement_timeout = Some(Duration::from_millis(100));
    let daemon = daemon_with(&config);
    let mut client = daemon.connect();
    client.send(&sql(ENDLESS));
    let line = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.line());
        let mut other = daemon.connect();
        // The statement begins when it begins; from then on its time runs out.
        while !waiting.is_finished() {
            other.ask(b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
            daemon.advance(Duration::from_millis(101));
        }
        waiting.join().unwrap()
    });
    assert!(line.starts_with("ERROR 57014 "), "{line}");
    ask(&mut client, "SELECT 1 AS a", "{\"a\":1}\r\nEND\r\n");
}

/// Bytes of the longest statements by HTTP, about: a body has a megabyte.
const HTTP_BYTES: usize = 1_000_000;

/// What stands in front, what is repeated (`#` is its number) with commas between, what stands behind.
const LONG: &[(&str, &str, &str)] = &[
    ("VALUES ", "(#, 'a', #.5)", ""),
    ("SELECT count(*) FROM t WHERE id IN (", "# + 1", ")"),
    ("SELECT * FROM t WHERE (id, v) IN (", "(#, 'a')", ")"),
    ("WITH ", "w# AS (SELECT # AS a)", " SELECT * FROM w0"),
    ("SELECT ", "(SELECT id FROM t WHERE id < #)", ""),
    ("INSERT INTO t VALUES ", "(# + 1, lower('A'))", " ON CONFLICT (id) DO NOTHING"),
    ("MERGE INTO t USING (VALUES ", "(#, 'a')", ") AS x(a, b) ON id = a WHEN MATCHED THEN UPDATE SET v = b"),
    ("CREATE VIEW z AS SELECT id FROM t WHERE id IN (", "#", ")"),
];

fn long((head, part, tail): &(&str, &str, &str)) -> String {
    let mut parts = Vec::new();
    let mut bytes = head.len() + tail.len();
    while bytes < HTTP_BYTES - 2 * part.len() {
        let part = part.replace('#', &parts.len().to_string());
        bytes += part.len() + 1;
        parts.push(part);
    }
    format!("{head}{}{tail}", parts.join(","))
}

/// The answer to a statement by HTTP, its head included.
fn post(daemon: &Daemon, statement: &str) -> String {
    let body = format!("{{\"statement\": \"{statement}\", \"write\": true}}");
    let head =
        "POST /sql HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n";
    let mut client = Client::tcp(daemon.server.http_addresses()[0]);
    client.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    String::from_utf8_lossy(&client.rest()).into_owned()
}

/// Where the daemon had no limit of its own, or a longer one, a statement by HTTP ran up to that: what the session was
/// given counted from its second setting on.
#[test]
fn a_statement_by_http_ends_whatever_it_does() {
    let mut config = config();
    (config.statement_timeout, config.http_addresses) = (None, vec!["127.0.0.1:0".parse().unwrap()]);
    let daemon = daemon_with(&config);
    let mut client = daemon.connect();
    ask(&mut client, "CREATE TABLE t (id INT PRIMARY KEY, v TEXT)", "OK 0\r\n");
    let shapes = LONG.iter().map(long).chain([ENDLESS.to_owned()]);
    for statement in shapes {
        let answer = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| post(&daemon, &statement));
            let mut other = daemon.connect();
            while !waiting.is_finished() {
                other.ask(b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
                daemon.advance(Duration::from_secs(11));
            }
            waiting.join().unwrap()
        });
        let known = ["HTTP/1.1 200", "57014", "54000", "54001", "54023", "53200", "\"42"];
        let head = &answer[..answer.len().min(300)];
        assert!(known.iter().any(|known| answer.contains(known)), "{}: {head}", &statement[..40]);
        assert!(statement != ENDLESS || answer.contains("57014"), "{head}");
    }
}

#[test]
fn a_result_too_large() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let statement = format!("{} LIMIT 40000", ENDLESS.replace("count(*)", "printf('%2000d', i) AS t"));
    client.send(&sql(&statement));
    let line = client.line();
    assert!(line.starts_with("ERROR 54000 ") && line.contains("LIMIT"), "{line}");
    let fits = statement.replace("40000", "20000");
    let rows: Vec<String> = (1..=20_000).map(|row| format!("{{\"t\":\"{row:2000}\"}}\r\n")).collect();
    client.ask(&sql(&fits), format!("{}END\r\n", rows.concat()).as_bytes());
}
