//! The binary protocol over real sockets: frames in, frames out.

use std::net::TcpStream;
use std::time::Duration;

use engine::Counter;

use crate::harness::{Client, daemon, seed};

const GET: u8 = 0x00;
const SET: u8 = 0x01;
const ADD: u8 = 0x02;
const DELETE: u8 = 0x04;
const QUIT: u8 = 0x07;
const NOOP: u8 = 0x0a;
const GETK: u8 = 0x0c;
const APPEND: u8 = 0x0e;
const STAT: u8 = 0x10;
const SETQ: u8 = 0x11;

/// Long enough to be received where it is going to lie.
const LONG: usize = 100_000;

/// A request, with the opaque 7.
fn frame(opcode: u8, cas: u64, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let body = u32::try_from(extras.len() + key.len() + value.len()).unwrap();
    let mut head = vec![0x80, opcode];
    head.extend(u16::try_from(key.len()).unwrap().to_be_bytes());
    head.extend([u8::try_from(extras.len()).unwrap(), 0, 0, 0]);
    head.extend(body.to_be_bytes());
    head.extend(7_u32.to_be_bytes());
    head.extend(cas.to_be_bytes());
    [&head[..], extras, key, value].concat()
}

fn set(opcode: u8, key: &[u8], value: &[u8]) -> Vec<u8> {
    frame(opcode, 0, b"\0\0\0\x05\0\0\0\0", key, value)
}

/// An answer without its CAS: opcode, status, extras, key and value.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    opcode: u8,
    status: u16,
    extras: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
}

fn answer(opcode: u8, status: u16, value: &[u8]) -> Answer {
    Answer { opcode, status, extras: vec![], key: vec![], value: value.to_vec() }
}

/// A value that is found, with the flags of [`set`].
fn found(opcode: u8, key: &[u8], value: &[u8]) -> Answer {
    Answer { extras: b"\0\0\0\x05".to_vec(), key: key.to_vec(), ..answer(opcode, 0, value) }
}

impl Client<TcpStream> {
    /// The next answer and its CAS.
    fn read_frame(&mut self) -> (Answer, u64) {
        let mut head = [0; 24];
        std::io::Read::read_exact(&mut self.stream, &mut head).unwrap();
        assert_eq!((head[0], &head[12..16]), (0x81, &7_u32.to_be_bytes()[..]), "{head:?}");
        let (key, extras) = (usize::from(u16::from_be_bytes([head[2], head[3]])), usize::from(head[4]));
        let length = u32::from_be_bytes(head[8..12].try_into().unwrap()) as usize;
        let mut body = vec![0; length];
        std::io::Read::read_exact(&mut self.stream, &mut body).unwrap();
        let value = body.split_off(extras + key);
        let key = body.split_off(extras);
        let status = u16::from_be_bytes([head[6], head[7]]);
        let cas = u64::from_be_bytes(head[16..24].try_into().unwrap());
        (Answer { opcode: head[1], status, extras: body, key, value }, cas)
    }

    /// Sends, and reads so many answers; a noop proves that there are no more.
    fn frames(&mut self, requests: &[u8], expected: &[Answer]) -> Vec<u64> {
        self.send(requests);
        self.send(&frame(NOOP, 0, b"", b"", b""));
        let mut versions = Vec::new();
        for expected in expected {
            let (found, cas) = self.read_frame();
            assert!(found == *expected, "{}", shown(&found, expected));
            versions.push(cas);
        }
        assert_eq!(self.read_frame(), (answer(NOOP, 0, b""), 0));
        versions
    }
}

fn shown(found: &Answer, expected: &Answer) -> String {
    let short = |answer: &Answer| {
        let value = answer.value[..answer.value.len().min(40)].escape_ascii();
        let (opcode, status, bytes) = (answer.opcode, answer.status, answer.value.len());
        format!("{opcode:#x} {status:#x} '{}' {bytes} '{value}'", answer.key.escape_ascii())
    };
    format!("found {}, expected {}", short(found), short(expected))
}

/// All requests and their answers, in one piece and byte by byte.
fn both_ways(requests: &[Vec<u8>], expected: &[Answer]) {
    let daemon = daemon();
    daemon.connect().frames(&requests.concat(), expected);
    daemon.connect().frames(&frame(0x08, 0, b"", b"", b""), &[answer(0x08, 0, b"")]);
    let mut client = daemon.connect();
    for byte in requests.concat() {
        client.send(&[byte]);
    }
    client.frames(b"", expected);
}

#[test]
fn values_are_stored_fetched_and_removed() {
    let requests = [
        frame(GET, 0, b"", b"k", b""),
        frame(GETK, 0, b"", b"k", b""),
        frame(0x09, 0, b"", b"k", b""),
        set(SET, b"k", b"value"),
        frame(GET, 0, b"", b"k", b""),
        frame(0x0d, 0, b"", b"k", b""),
        set(ADD, b"k", b"other"),
        set(0x12, b"k", b"other"),
        set(0x03, b"none", b"other"),
        set(SETQ, b"k", b"b"),
        frame(0x19, 0, b"", b"k", b"c"),
        frame(0x0f, 0, b"", b"k", b"a"),
        frame(APPEND, 0, b"", b"none", b"a"),
        frame(0x23, 0, &60_u32.to_be_bytes(), b"k", b""),
        frame(0x1c, 0, &60_u32.to_be_bytes(), b"k", b""),
        frame(0x1c, 0, &60_u32.to_be_bytes(), b"none", b""),
        frame(0x14, 0, b"", b"k", b""),
        frame(DELETE, 0, b"", b"k", b""),
        frame(0x14, 0, b"", b"k", b""),
    ];
    let missing = |opcode| answer(opcode, 1, b"Not found");
    both_ways(
        &requests,
        &[
            missing(GET),
            Answer { key: b"k".to_vec(), ..answer(GETK, 1, b"") },
            answer(SET, 0, b""),
            found(GET, b"", b"value"),
            found(0x0d, b"k", b"value"),
            answer(ADD, 2, b"Data exists for key."),
            answer(0x12, 2, b"Data exists for key."),
            missing(0x03),
            answer(0x0f, 0, b""),
            answer(APPEND, 5, b"Not stored."),
            found(0x23, b"k", b"abc"),
            found(0x1c, b"", b""),
            missing(0x1c),
            missing(DELETE),
            missing(0x14),
        ],
    );
}

#[test]
fn numbers_are_made_and_counted() {
    let count = |opcode, delta: u64, initial: u64, exptime: u32, key: &[u8]| {
        let numbers = [delta.to_be_bytes(), initial.to_be_bytes()].concat();
        frame(opcode, 0, &[&numbers[..], &exptime.to_be_bytes()].concat(), key, b"")
    };
    let requests = [
        count(0x05, 3, 10, u32::MAX, b"n"),
        count(0x05, 3, 10, 0, b"n"),
        count(0x05, 3, 10, 0, b"n"),
        count(0x15, 1, 0, 0, b"n"),
        count(0x06, 5, 0, 0, b"n"),
        count(0x16, 100, 0, 0, b"n"),
        frame(GET, 0, b"", b"n", b""),
        set(SETQ, b"t", b"text"),
        count(0x15, 1, 0, 0, b"t"),
    ];
    both_ways(
        &requests,
        &[
            answer(0x05, 1, b"Not found"),
            answer(0x05, 0, &10_u64.to_be_bytes()),
            answer(0x05, 0, &13_u64.to_be_bytes()),
            answer(0x06, 0, &9_u64.to_be_bytes()),
            Answer { extras: vec![0; 4], ..answer(GET, 0, b"0 ") },
            answer(0x15, 6, b"Non-numeric server-side value for incr or decr"),
        ],
    );
}

#[test]
fn a_version_is_written_once() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let [first] = client.frames(&set(SET, b"k", b"1"), &[answer(SET, 0, b"")])[..] else { panic!() };
    let with = |opcode, cas| frame(opcode, cas, b"\0\0\0\x05\0\0\0\0", b"k", b"2");
    let exists = |opcode| answer(opcode, 2, b"Data exists for key.");
    // A version in the request is its whole condition, even of an add.
    client.frames(&with(SET, first + 1), &[exists(SET)]);
    let [second] = client.frames(&with(ADD, first), &[answer(ADD, 0, b"")])[..] else { panic!() };
    assert_ne!(first, second);
    client.frames(&with(SET, first), &[exists(SET)]);
    client.frames(&frame(APPEND, first, b"", b"k", b"3"), &[exists(APPEND)]);
    client.frames(&frame(DELETE, first, b"", b"k", b""), &[exists(DELETE)]);
    let [seen] = client.frames(&frame(GET, 0, b"", b"k", b""), &[found(GET, b"", b"2")])[..] else {
        panic!()
    };
    assert_eq!(seen, second);
    client.frames(&frame(DELETE, second, b"", b"k", b""), &[answer(DELETE, 0, b"")]);
    client.frames(&with(SET, second), &[answer(SET, 1, b"Not found")]);
}

#[test]
fn a_deadline_is_kept() {
    let daemon = daemon();
    let mut client = daemon.connect();
    client.frames(&frame(SET, 0, b"\0\0\0\x05\0\0\0\x0a", b"k", b"v"), &[answer(SET, 0, b"")]);
    daemon.advance(Duration::from_secs(9));
    let touch = frame(0x1d, 0, &100_u32.to_be_bytes(), b"k", b"");
    client.frames(&touch, &[found(0x1d, b"", b"v")]);
    daemon.advance(Duration::from_secs(90));
    client.frames(&frame(GET, 0, b"", b"k", b""), &[found(GET, b"", b"v")]);
    client.frames(&frame(0x18, 0, &5_u32.to_be_bytes(), b"", b""), &[]);
    daemon.advance(Duration::from_secs(6));
    client.frames(&frame(0x09, 0, b"", b"k", b""), &[]);
}

#[test]
fn keys_are_any_bytes_and_the_same_rows_in_both_protocols() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let key = b"with spaces,\r\nlines and \0";
    client.frames(&set(SET, key, b"v"), &[answer(SET, 0, b"")]);
    client.frames(&frame(GETK, 0, b"", key, b""), &[found(GETK, key, b"v")]);
    client.frames(&set(SET, b"k", b"v"), &[answer(SET, 0, b"")]);
    let mut text = daemon.connect();
    text.ask(b"get k\r\nset k 5 0 3\r\nnew\r\n", b"VALUE k 5 1\r\nv\r\nEND\r\nSTORED\r\n");
    client.frames(&frame(GET, 0, b"", b"k", b""), &[found(GET, b"", b"new")]);
}

/// PHP's sessions and several clients speak binary by default, and met a connection that was closed at once.
#[test]
fn the_first_byte_chooses_the_protocol_for_good() {
    let daemon = daemon();
    let mut client = daemon.connect();
    client.send(&[0x80]);
    client.send(&frame(0x0b, 0, b"", b"", b"")[1..]);
    let (version, _) = client.read_frame();
    assert!(version.value.starts_with(b"1.6."));
    // Text behind frames is no frame.
    client.send(b"version\r\n");
    assert_eq!(client.rest(), b"");
    // A frame behind text is no line.
    let mut client = daemon.connect();
    client.send(b"?\r\n");
    client.expect(b"CLIENT_ERROR bad command line format\r\n");
    client.ask(&[&frame(0x0b, 0, b"", b"", b"")[..], b"\r\n"].concat(), b"ERROR\r\n");
}

#[test]
fn quit_answers_and_closes() {
    let daemon = daemon();
    let mut client = daemon.connect();
    client.send(&[frame(QUIT, 0, b"", b"", b""), set(SET, b"k", b"v")].concat());
    assert_eq!(client.read_frame().0, answer(QUIT, 0, b""));
    assert_eq!(client.rest(), b"");
    let mut client = daemon.connect();
    client.send(&[frame(0x17, 0, b"", b"", b""), set(SET, b"k", b"v")].concat());
    assert_eq!(client.rest(), b"");
    daemon.connect().ask(b"get k\r\n", b"END\r\n");
}

#[test]
fn frames_that_are_none_are_refused() {
    let daemon = daemon();
    let unknown = |opcode| answer(opcode, 0x81, b"Unknown command");
    // Verbosity, a command on a range, SASL: exactly their frames are thrown away.
    for opcode in [0x1b, 0x30, 0x20, 0xff] {
        daemon.connect().frames(&frame(opcode, 0, b"", b"", b""), &[unknown(opcode)]);
    }
    daemon.connect().frames(&frame(0x1b, 0, &[0; 4], b"", b""), &[unknown(0x1b)]);
    daemon.connect().frames(&frame(0x21, 0, b"", b"PLAIN", b"\0user\0password"), &[unknown(0x21)]);
    let mut short = set(SET, b"key", b"value");
    short[8..12].copy_from_slice(&5_u32.to_be_bytes());
    let mut huge = set(SET, b"key", b"value");
    huge[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
    let invalid = |opcode| answer(opcode, 4, b"Invalid arguments");
    for (request, expected) in [
        (short, unknown(SET)),
        (huge, invalid(SET)),
        (frame(GET, 0, b"", &[b'k'; 251], b""), invalid(GET)),
        (frame(GET, 0, b"", b"", b""), invalid(GET)),
        (frame(NOOP, 0, b"", b"k", b""), invalid(NOOP)),
    ] {
        let mut client = daemon.connect();
        // What follows is not executed.
        client.send(&[request, set(SET, b"k", b"v")].concat());
        assert_eq!(client.read_frame().0, expected);
        assert_eq!(client.rest(), b"");
    }
    daemon.connect().ask(b"get k\r\n", b"END\r\n");
}

#[test]
fn a_value_that_is_too_large_is_swallowed_and_takes_the_old_one_away() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let large = vec![b'x'; 3 << 20];
    for opcode in [SET, SETQ, ADD, APPEND] {
        client.frames(&set(SET, b"k", b"old"), &[answer(SET, 0, b"")]);
        let request =
            if opcode == APPEND { frame(APPEND, 0, b"", b"k", &large) } else { set(opcode, b"k", &large) };
        client.frames(&request, &[answer(opcode, 3, b"Too large.")]);
        let left = if matches!(opcode, SET | SETQ) { vec![] } else { vec![found(0x09, b"", b"old")] };
        client.frames(&frame(0x09, 0, b"", b"k", b""), &left);
    }
    assert!(daemon.engine.totals().of(Counter::StoreTooLarge) >= 2);
}

#[test]
fn statistics_end_with_an_empty_one() {
    let daemon = daemon();
    let mut client = daemon.connect();
    client.frames(&set(SET, b"a:k", b"v"), &[answer(SET, 0, b"")]);
    for (subject, name) in [
        (&b""[..], &b"curr_items"[..]),
        (b"settings", b"maxbytes"),
        (b"items", b"items:1:number"),
        (b"slabs", b"active_slabs"),
        (b"sizes", b"sizes_status"),
    ] {
        client.send(&frame(STAT, 0, b"", subject, b""));
        let mut names = Vec::new();
        loop {
            let (stat, _) = client.read_frame();
            assert_eq!((stat.opcode, stat.status), (STAT, 0));
            if stat.key.is_empty() {
                assert_eq!(stat.value, b"");
                break;
            }
            names.push(stat.key);
        }
        assert!(names.iter().any(|found| found == name), "{}", subject.escape_ascii());
    }
    let end = || answer(STAT, 0, b"");
    client.frames(&frame(STAT, 0, b"", b"nonsense", b""), &[answer(STAT, 1, b"Not found")]);
    client.frames(&frame(STAT, 0, b"", b"detail on", b""), &[end()]);
    client.frames(&frame(GET, 0, b"", b"a:none", b""), &[answer(GET, 1, b"Not found")]);
    let detail = b"PREFIX a get 1 hit 0 set 0 del 0\r\nEND\r\n";
    let detail = Answer { key: b"detailed".to_vec(), ..answer(STAT, 0, detail) };
    client.frames(&frame(STAT, 0, b"", b"detail dump", b""), &[detail, end()]);
    client.frames(&frame(STAT, 0, b"", b"detail off", b""), &[end()]);
    client.frames(&frame(STAT, 0, b"", b"reset", b""), &[end()]);
    assert_eq!(daemon.engine.totals().of(Counter::CmdSet), 0);
}

#[test]
fn more_requests_than_a_turn_takes_are_all_answered() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let requests = [set(SET, b"k", b"v"), frame(GET, 0, b"", b"k", b"")].concat().repeat(5_000);
    let mut writer = Client { stream: client.stream.try_clone().unwrap() };
    std::thread::scope(|scope| {
        scope.spawn(move || writer.send(&requests));
        for _ in 0..5_000 {
            assert_eq!(client.read_frame().0, answer(SET, 0, b""));
            assert_eq!(client.read_frame().0, found(GET, b"", b"v"));
        }
    });
}

/// A random pipeline of long and short values, and what must be answered.
fn script(random: &mut fastrand::Rng) -> (Vec<u8>, Vec<Answer>) {
    let mut keys: [Option<Vec<u8>>; 3] = [const { None }; 3];
    let (mut requests, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..random.usize(1..12) {
        let at = random.usize(..3);
        let key = format!("k{at}").into_bytes();
        let bytes =
            *random.choice(&[0, 5, 4_095, 16_350, 16_384, 20_000, 65_536, LONG, 262_144, 700_000]).unwrap();
        let bytes = bytes + random.usize(..3);
        let value: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(bytes).collect();
        match random.u8(..5) {
            0 => {
                requests.extend(set(SETQ, &key, &value));
                keys[at] = Some(value);
            }
            1 => {
                requests.extend(set(ADD, &key, &value));
                let there = keys[at].is_some();
                let exists = answer(ADD, 2, b"Data exists for key.");
                answers.push(if there { exists } else { answer(ADD, 0, b"") });
                keys[at] = keys[at].take().or(Some(value));
            }
            2 => {
                requests.extend(frame(0x14, 0, b"", &key, b""));
                if keys[at].take().is_none() {
                    answers.push(answer(0x14, 1, b"Not found"));
                }
            }
            _ => {
                requests.extend(set(SET, &key, &value));
                answers.push(answer(SET, 0, b""));
                keys[at] = Some(value);
            }
        }
        requests.extend(frame(0x0d, 0, b"", &key, b""));
        answers.extend(keys[at].iter().map(|value| found(0x0d, &key, value)));
    }
    (requests, answers)
}

#[test]
fn pipelines_of_long_values_cut_anywhere_mean_the_same() {
    let daemon = daemon();
    let mut random = fastrand::Rng::with_seed(seed());
    for _ in 0..6 {
        daemon.connect().ask(b"flush_all\r\n", b"OK\r\n");
        let (requests, answers) = script(&mut random);
        let mut reader = daemon.connect();
        let mut client = Client { stream: reader.stream.try_clone().unwrap() };
        let most = *random.choice(&[700, 5_000, 30_000, 200_000, 1_000_000]).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for expected in answers {
                    let (found, _) = reader.read_frame();
                    assert!(found == expected, "{}", shown(&found, &expected));
                }
            });
            let mut rest = &requests[..];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(random.usize(1..=most).min(rest.len()));
                client.send(piece);
                rest = after;
            }
        });
    }
}

#[test]
fn a_peer_that_goes_in_the_middle_of_a_value_leaves_nothing() {
    let daemon = daemon();
    let whole = set(SET, b"k", &vec![b'x'; LONG]);
    for at in [1, 23, 24, 30, 33, 50_000, whole.len() - 1] {
        let mut client = daemon.connect();
        client.send(&whole[..at]);
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(client.rest(), b"");
        daemon.connect().ask(b"get k\r\n", b"END\r\n");
    }
}
