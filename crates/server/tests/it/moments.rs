//! A statement has one moment, though its rows come in pieces.

use std::time::Duration;

use server::Config;

use crate::harness::{config, daemon_with};
use crate::pg::{Pg, message, query};

/// Rows of some pieces: each of 128 was a statement of its own, with a moment of its own.
const ROWS: u32 = 300;

#[test]
fn all_rows_of_a_copy_have_its_moment() {
    let addresses = vec!["127.0.0.1:0".parse().unwrap()];
    let daemon = daemon_with(&Config { sql_addresses: addresses, ..config() });
    let mut pg = Pg::connect(&daemon);
    pg.ask("CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMPTZ DEFAULT now())");
    pg.ask("CREATE TABLE began (at TIMESTAMPTZ)");
    pg.ask("INSERT INTO began VALUES (now())");
    pg.send(&query("COPY t (id) FROM STDIN"));
    assert_eq!(pg.next().unwrap(), "G");
    for id in 0..ROWS {
        daemon.clock.advance(Duration::from_millis(10));
        pg.send(&message(b'd', format!("{id}\n").as_bytes()));
    }
    pg.send(&message(b'c', b""));
    assert_eq!(pg.until_ready(), [format!("C COPY {ROWS}"), "Z I".to_owned()]);
    let moments = "SELECT count(*), count(DISTINCT t.at), min(t.at) = max(began.at) FROM t, began";
    assert_eq!(pg.ask(moments)[1], format!("D {ROWS}|1|t"));
    // What is no piece of it has its own moment again.
    pg.ask("INSERT INTO t (id) VALUES (-1)");
    assert_eq!(pg.ask("SELECT count(DISTINCT at) FROM t")[1], "D 2");
}
