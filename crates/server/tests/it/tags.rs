//! Tags that a memcached client sends with a value: `ms key bytes L<tag>,<tag>`.

use std::net::TcpStream;

use server::Config;

use crate::harness::{Client, Daemon, config, daemon, daemon_with};
use crate::pg::Pg;

const TABLE: &str = "CREATE TABLE page (id INT PRIMARY KEY, body TEXT, owner INT DEFAULT 7, tags TEXT[]) WITH \
                     (prefix = 'page:', value = 'body', tags = 'tags')";

fn sql(client: &mut Client<TcpStream>, statement: &str) -> String {
    client.send(format!("sql {}\r\n{statement}\r\n", statement.len()).as_bytes());
    let mut rows = Vec::new();
    loop {
        let line = client.line();
        if !line.starts_with('{') {
            return if rows.is_empty() { line } else { rows.join(";") };
        }
        rows.push(line);
    }
}

/// What `SELECT tags` says of a page.
fn tags(client: &mut Client<TcpStream>, id: u8) -> String {
    sql(client, &format!("SELECT array_to_string(tags, ' ') AS t FROM page WHERE id = {id}"))
}

fn tagged(daemon: &Daemon) -> Client<TcpStream> {
    let mut client = daemon.connect();
    assert!(sql(&mut client, TABLE).starts_with("OK"));
    assert!(sql(&mut client, "CREATE INDEX page_tags ON page USING gin (tags)").starts_with("OK"));
    client
}

fn store(client: &mut Client<TcpStream>, key: &str, flags: &str, value: &str) -> String {
    client.send(format!("ms {key} {} {flags}\r\n{value}\r\n", value.len()).as_bytes());
    client.line()
}

#[test]
fn a_value_brings_its_tags() {
    let daemon = daemon();
    let mut client = tagged(&daemon);
    assert_eq!(store(&mut client, "page:1", "T60 Lshop,user:3", "one"), "HD");
    assert_eq!(store(&mut client, "page:2", "Lshop", "two"), "HD");
    assert_eq!(store(&mut client, "page:3", "L,,a,\"b\\,", "three"), "HD");
    assert_eq!(tags(&mut client, 1), r#"{"t":"shop user:3"}"#);
    assert_eq!(tags(&mut client, 3), r#"{"t":"a \"b\\"}"#);
    assert_eq!(sql(&mut client, "SELECT owner FROM page WHERE 'user:3' = ANY (tags)"), r#"{"owner":7}"#);
    assert_eq!(sql(&mut client, "DELETE FROM page WHERE 'shop' = ANY (tags)"), "OK 2");
    client.send(b"mg page:1 v\r\nmg page:3 v\r\n");
    client.expect(b"EN\r\nVA 5\r\nthree\r\n");
}

/// Where the whole value is replaced, the tags are as well. What changes a value leaves them.
#[test]
fn tags_are_those_of_the_last_value() {
    let daemon = daemon();
    let mut client = tagged(&daemon);
    assert_eq!(store(&mut client, "page:1", "La,b", "one"), "HD");
    assert_eq!(store(&mut client, "page:1", "MA Lc", "+"), "HD");
    assert_eq!(store(&mut client, "page:1", "ME Lc", "other"), "NS");
    assert_eq!(tags(&mut client, 1), r#"{"t":"a b"}"#);
    assert_eq!(store(&mut client, "page:1", "MR Lc", "two"), "HD");
    assert_eq!(tags(&mut client, 1), r#"{"t":"c"}"#);
    assert_eq!(store(&mut client, "page:1", "L", "three"), "HD");
    assert_eq!(tags(&mut client, 1), r#"{"t":""}"#);
    client.send(b"set page:1 0 0 1\r\nx\r\n");
    client.expect(b"STORED\r\n");
    assert_eq!(tags(&mut client, 1), r#"{"t":null}"#);
    assert_eq!(store(&mut client, "page:2", "MA N60 Lmade", "made"), "HD");
    assert_eq!(tags(&mut client, 2), r#"{"t":"made"}"#);
}

/// A value that is long enough to be received where it is going to lie.
#[test]
fn large_values_have_tags() {
    let daemon = daemon();
    let mut client = tagged(&daemon);
    let value = "v".repeat(300_000);
    let request = format!("ms page:1 {} La,b\r\n{value}\r\n", value.len());
    for piece in request.as_bytes().chunks(70_000) {
        client.send(piece);
    }
    assert_eq!(client.line(), "HD");
    assert_eq!(tags(&mut client, 1), r#"{"t":"a b"}"#);
    assert_eq!(
        sql(&mut client, "SELECT length(body) AS n FROM page WHERE 'b' = ANY (tags)"),
        r#"{"n":300000}"#
    );
}

#[test]
fn tags_in_wrong_places() {
    let daemon = daemon();
    let mut client = tagged(&daemon);
    // A table without the option: memcached ignores the flag, and so does this.
    assert_eq!(store(&mut client, "other", "La,b", "one"), "HD");
    client.send(b"ms page:1 1 L\xff\r\nx\r\nmn\r\n");
    assert_eq!(client.line(), "SERVER_ERROR tags are not UTF-8");
    assert_eq!(client.line(), "MN");
    for (statement, reason) in [
        (
            "CREATE TABLE a (k INT PRIMARY KEY, v TEXT, t TEXT) WITH (prefix = 'a:', value = 'v', tags = 't')",
            "TEXT[]",
        ),
        (
            "CREATE TABLE a (k INT PRIMARY KEY, v TEXT[]) WITH (prefix = 'a:', value = 'v', tags = 'v')",
            "TEXT[]",
        ),
        (
            "CREATE TABLE a (k INT PRIMARY KEY, v TEXT, t TEXT[] AS (string_to_array(v, ','))) WITH (tags = 't')",
            "TEXT[]",
        ),
        ("ALTER TABLE page SET (tags = 'nothing')", "no such column"),
        ("ALTER TABLE page DROP COLUMN tags", "tags column of memcached clients"),
    ] {
        let said = sql(&mut client, statement);
        assert!(said.starts_with("ERROR") && said.contains(reason), "{statement}: {said}");
    }
    for statement in ["ALTER TABLE page DROP COLUMN owner", "ALTER TABLE page RENAME tags TO labels"] {
        assert!(sql(&mut client, statement).starts_with("OK"), "{statement}");
    }
    assert_eq!(store(&mut client, "page:1", "La,b", "one"), "HD");
    assert_eq!(sql(&mut client, "SELECT labels[2] AS l FROM page"), r#"{"l":"b"}"#);
    assert!(sql(&mut client, "ALTER TABLE page RESET (tags)").starts_with("OK"));
    assert_eq!(store(&mut client, "page:1", "La,b", "one"), "HD");
    assert_eq!(sql(&mut client, "SELECT labels FROM page"), r#"{"labels":null}"#);
    assert!(sql(&mut client, "ALTER TABLE page DROP COLUMN labels").starts_with("OK"));
}

/// A definition that is taken back leaves no option that names a column of its own.
#[test]
fn an_option_of_a_column_that_is_taken_back() {
    let daemon = daemon_with(&Config { sql_addresses: vec!["127.0.0.1:0".parse().unwrap()], ..config() });
    let mut pg = Pg::connect(&daemon);
    let told = pg.ask(
        "CREATE TABLE page (id INT PRIMARY KEY, body TEXT) WITH (prefix = 'page:', value = 'body'); BEGIN; \
         ALTER TABLE page ADD COLUMN tags TEXT[]; ALTER TABLE page SET (tags = 'tags')",
    );
    assert!(!told.iter().any(|line| line.starts_with('E')), "{told:?}");
    let mut client = daemon.connect();
    assert_eq!(store(&mut client, "page:1", "La", "one"), "HD");
    assert_eq!(tags(&mut client, 1), r#"{"t":"a"}"#);
    pg.ask("ROLLBACK");
    assert_eq!(store(&mut client, "page:1", "La", "two"), "HD");
    assert_eq!(sql(&mut client, "SELECT * FROM page"), r#"{"id":1,"body":"two"}"#);
}
