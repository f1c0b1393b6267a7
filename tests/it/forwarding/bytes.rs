//! What is kept, byte for byte beside what the source answers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::Shop;
use super::caching::{TIMES, WARES};
use super::pass_through::raw;
use crate::drivers::place::Place;
use crate::sources::{psql, until};

/// So often at most until all of them are hits: half a minute.
const TIMES_MAX: usize = 200;

/// A message of the protocol.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{sql}\0\0\0").as_bytes())
}

/// Binds the parameter 7, in a format, for columns in a format.
fn bind(name: &str, binary: bool, results: &[u8]) -> Vec<u8> {
    let value: &[u8] = if binary { &[0, 0, 0, 7] } else { b"7" };
    let mut body = format!("\0{name}\0").into_bytes();
    body.extend_from_slice(&[0, 1, 0, u8::from(binary), 0, 1]);
    body.extend_from_slice(&u32::try_from(value.len()).unwrap().to_be_bytes());
    body.extend_from_slice(value);
    body.extend_from_slice(&[0, u8::try_from(results.len()).unwrap()]);
    for format in results {
        body.extend_from_slice(&[0, *format]);
    }
    message(b'B', &body)
}

/// What is answered to some messages, up to the end that the last of them asks for.
fn answered(socket: &mut TcpStream, sent: &[u8], flushed: bool) -> Vec<u8> {
    socket.write_all(sent).unwrap();
    let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        let count = socket.read(&mut piece).unwrap();
        assert!(count > 0, "the connection ended");
        bytes.extend_from_slice(&piece[..count]);
        let mut kinds = Vec::new();
        let mut at = 0;
        while let Some(head) = bytes.get(at..at + 5) {
            kinds.push(head[0]);
            at += 1 + u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        }
        let last = if flushed { b"Tn".as_slice() } else { b"Z" };
        if at == bytes.len() && kinds.last().is_some_and(|kind| last.contains(kind)) {
            return bytes;
        }
    }
}

/// In each way in which drivers ask, what is kept is byte for byte what the source answers.
#[test]
fn hits_are_the_answers_of_the_source() {
    let shop = Shop::cached(WARES);
    let sql = "SELECT id, name, price, at, day, mood, body, ratio, NULL AS none FROM ware WHERE id = $1::int";
    let simple = message(b'Q', "SELECT id, name, at, body FROM ware WHERE id = 7\0".as_bytes());
    let empty = message(b'Q', "SELECT id, name FROM ware WHERE id = 700\0".as_bytes());
    let describe = message(b'D', b"P\0");
    let execute = message(b'E', b"\0\0\0\0\0");
    let sync = message(b'S', b"");
    let close = message(b'C', b"P\0");
    let groups: Vec<(&str, Vec<u8>, bool)> = vec![
        ("simple", simple, false),
        ("simple without rows", empty, false),
        ("unnamed", [parse("", sql), bind("", false, &[]), execute.clone(), sync.clone()].concat(), false),
        (
            "unnamed, described",
            [parse("", sql), bind("", false, &[]), describe.clone(), execute.clone(), sync.clone()].concat(),
            false,
        ),
        (
            "unnamed, binary",
            [parse("", sql), bind("", true, &[1]), describe.clone(), execute.clone(), sync.clone()].concat(),
            false,
        ),
        (
            "mixed",
            [
                parse("", sql),
                bind("", true, &[1, 0, 0, 1, 0, 0, 1, 1, 0]),
                describe.clone(),
                execute.clone(),
                sync.clone(),
            ]
            .concat(),
            false,
        ),
        (
            "closed",
            [parse("", sql), bind("", false, &[]), describe.clone(), execute.clone(), close, sync.clone()]
                .concat(),
            false,
        ),
        ("prepared", [parse("a", sql), message(b'D', b"Sa\0"), sync.clone()].concat(), false),
        ("run", [bind("a", true, &[1]), execute.clone(), sync.clone()].concat(), false),
        (
            "run, described",
            [bind("a", false, &[0]), describe.clone(), execute.clone(), sync.clone()].concat(),
            false,
        ),
        ("described", [message(b'D', b"Sa\0"), sync.clone()].concat(), false),
        ("described, flushed", [message(b'D', b"Sa\0"), message(b'H', b"")].concat(), true),
        ("synced", sync.clone(), false),
        ("forgotten", [message(b'C', b"Sa\0"), sync.clone()].concat(), false),
        ("unknown", [bind("a", true, &[1]), execute.clone(), sync.clone()].concat(), false),
        ("named without a description", [parse("b", sql), sync.clone()].concat(), false),
        ("twice", [parse("b", sql), sync.clone()].concat(), false),
        ("some rows", [bind("b", false, &[]), message(b'E', b"\0\0\0\0\x01"), sync.clone()].concat(), false),
        ("of a wrong number", [bind("b", false, &[1, 1]), execute, sync.clone()].concat(), false),
        ("ended", [message(b'C', b"Sb\0"), sync].concat(), false),
    ];
    let connect = |place: &Place| raw(place, "bytes");
    let (mut direct, mut through) = (connect(&shop.direct), connect(&shop.through));
    let texts = ["SELECT id, name, price", "SELECT id, name, at", "SELECT id, name FROM"];
    let are_hits = || texts.iter().all(|text| shop.count("hits", text) > 0);
    let mut turn = 0;
    // The source is asked what they depend on, and how soon that is over is the machine's to say.
    while turn < TIMES || !are_hits() {
        assert!(turn < TIMES_MAX, "they are never hits");
        for (what, sent, flushed) in &groups {
            let expected = answered(&mut direct, sent, *flushed);
            let found = answered(&mut through, sent, *flushed);
            assert_eq!(
                String::from_utf8_lossy(&found),
                String::from_utf8_lossy(&expected),
                "{what}, for the {turn}th time"
            );
        }
        if !are_hits() {
            std::thread::sleep(Duration::from_millis(150));
        }
        turn += 1;
    }
}

/// A client's texts may be in another encoding than those of the stream.
#[test]
fn a_change_is_told_in_another_encoding() {
    let shop = Shop::cached(
        "CREATE TABLE word (w TEXT PRIMARY KEY, n INT); INSERT INTO word VALUES ('\u{c3}\u{a9}', 1)",
    );
    let mut client = raw(&shop.through, "latin");
    answered(&mut client, &message(b'Q', b"SET client_encoding = 'LATIN1'\0"), false);
    let mut body = b"\0\0".to_vec();
    body.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 2, 0xc3, 0xa9, 0, 0]);
    let read = [
        parse("", "SELECT n FROM word WHERE w = $1::text"),
        message(b'B', &body),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ]
    .concat();
    let is = |answer: &[u8], n: u8| answer.windows(5).any(|part| part == [0, 0, 0, 1, n]);
    // Until it is clear whether its answer is kept.
    let clear =
        "SELECT count(*) FROM sqlcached_forwarded WHERE state IN ('kept', 'refused') OR reason IS NOT NULL";
    until("it was looked at", || {
        assert!(is(&answered(&mut client, &read, false), b'1'));
        psql(&shop.daemon.place, clear) != "0"
    });
    (0..3).for_each(|_| drop(answered(&mut client, &read, false)));
    psql(&shop.direct, "UPDATE word SET n = 2");
    shop.settle();
    assert!(is(&answered(&mut client, &read, false), b'2'), "the old answer is still there");
}
