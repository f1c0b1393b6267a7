//! A client at a limit gets an error; everybody else is served.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::Reply;
use crate::daemon::Daemon;

const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

#[test]
fn the_connection_limit_refuses_and_recovers() {
    let daemon = Daemon::start(&["-c", "10"]);
    let mut clients = vec![daemon.connect_alone()];
    clients.extend((0..9).map(|_| daemon.connect()));
    for client in &mut clients {
        assert!(client.ask("version").starts_with("VERSION "));
    }
    let refused = String::from_utf8(daemon.connect_tcp().rest()).unwrap();
    assert!(refused.starts_with("ERROR Too many open connections"), "{refused}");
    assert!(clients[3].ask("version").starts_with("VERSION "));
    clients.truncate(5);
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let mut client = daemon.connect_tcp();
        let _ = client.try_send(b"version\r\n");
        if client.try_line().is_ok_and(|line| line.starts_with("VERSION ")) {
            break;
        }
        assert!(Instant::now() < end, "nobody is let in though there is room");
        // Room is noticed when the worker meets the close.
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_statement_that_runs_away_is_stopped_while_others_are_served() {
    let daemon = Daemon::start(&["--statement-timeout", "5s", "--sql-threads", "2"]);
    let mut slow = daemon.connect();
    let begin = Instant::now();
    slow.send(format!("sql {}\r\n{ENDLESS}\r\n", ENDLESS.len()).as_bytes());
    let mut other = daemon.connect();
    for number in 0..100 {
        assert_eq!(other.set(&format!("k{number}"), b"v"), "STORED");
    }
    assert_eq!(other.sql("SELECT count(*) AS n FROM memcached"), Reply::Rows(vec![json!({"n": 100})]));
    // Far from the hundredths of a second that this takes, so that a busy machine does not look like a fault.
    assert!(begin.elapsed() < Duration::from_millis(4_500), "others waited for the slow statement");
    match slow.reply() {
        Reply::Error(state, message) => {
            assert!(state == "57014" && message.contains("timeout"), "{state} {message}");
        }
        other => panic!("{other:?}"),
    }
    assert!(begin.elapsed() >= Duration::from_secs(5));
    assert_eq!(slow.sql("SELECT 1 AS one"), Reply::Rows(vec![json!({"one": 1})]));
}

#[test]
fn a_slow_reader_of_large_replies_delays_nobody_and_costs_bounded_memory() {
    let daemon = Daemon::start(&["-m", "64", "-t", "1"]);
    let mut client = daemon.connect();
    client.set("large", &vec![b'x'; 1_000_000]);
    let before = daemon.resident_bytes();
    let mut slow = daemon.connect();
    // Two hundred megabytes asked for, nothing read. The sending may be held back: that is the point.
    let request = "get large\r\n".repeat(200);
    slow.send(request.as_bytes());
    for number in 0..1_000 {
        assert_eq!(client.set(&format!("k{number}"), b"v"), "STORED");
    }
    let grown = daemon.resident_bytes().saturating_sub(before);
    assert!(grown < 32 << 20, "a reader that does not read costs {grown} bytes");
    for _ in 0..200 {
        assert_eq!(slow.line().as_str(), "VALUE large 0 1000000");
        assert_eq!(slow.line().len(), 1_000_000);
        assert_eq!(slow.line(), "END");
    }
}

#[test]
fn a_value_over_the_limit_takes_the_old_one_away_and_keeps_the_connection() {
    let daemon = Daemon::start(&["-I", "64k"]);
    let mut client = daemon.connect();
    assert_eq!(client.set("k", b"old"), "STORED");
    assert_eq!(client.set("k", &vec![b'x'; 100_000]), "SERVER_ERROR object too large for cache");
    assert_eq!(client.get("k"), None);
    assert_eq!(client.set("k", &vec![b'x'; 60_000]), "STORED");
}

#[test]
fn other_protocols_on_the_port_are_sent_away() {
    let daemon = Daemon::start(&[]);
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"POST /set HTTP/1.0\r\nContent-Length: 5\r\n\r\nset x",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
        b"*1\r\n$4\r\nPING\r\n",
    ] {
        let mut client = daemon.connect_tcp();
        let _ = client.try_send(bytes);
        client.half_close();
        let answer = client.rest();
        assert!(answer.len() < 300, "{} bytes to {bytes:?}", answer.len());
        assert!(daemon.connect().ask("version").starts_with("VERSION "));
    }
}

#[test]
fn garbage_changes_nothing() {
    let daemon = Daemon::start(&[]);
    let mut random = fastrand::Rng::with_seed(crate::seed());
    let mut witness = daemon.connect();
    witness.set("witness", b"here");
    let words: [&[u8]; 12] = [
        b"set ",
        b"get ",
        b"sql ",
        b"sqlp ",
        b" 0 0 5",
        b"\r\n",
        b"\n",
        b"k ",
        b"99999999999 ",
        b"-1 ",
        b"\0\xff",
        b"noreply",
    ];
    for _ in 0..300 {
        let mut bytes = Vec::new();
        for _ in 0..random.usize(1..60) {
            bytes.extend_from_slice(words[random.usize(..words.len())]);
        }
        let mut client = daemon.connect();
        let _ = client.try_send(&bytes);
        client.half_close();
        client.rest();
    }
    assert_eq!(witness.get("witness").as_deref(), Some(&b"here"[..]));
    drop(witness);
    daemon.connect_alone();
}

#[test]
fn an_idle_connection_is_closed_when_asked() {
    let daemon = Daemon::start(&["--idle-timeout", "1s"]);
    let mut client = daemon.connect();
    let begin = Instant::now();
    assert_eq!(client.rest(), b"");
    assert!((1..25).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
}
