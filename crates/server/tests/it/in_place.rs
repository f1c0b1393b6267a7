//! Large values, received where they are going to lie: they come in pieces of any size, and what they are to meet
//! changes while they come.

use std::net::Shutdown;
use std::time::Duration;

use crate::harness::{Daemon, daemon, seed};

/// Long enough to be received where it is going to lie.
const LONG: usize = 100_000;

fn value(random: &mut fastrand::Rng, bytes: usize) -> Vec<u8> {
    // Line ends in it are no line ends.
    std::iter::repeat_with(|| *random.choice(b"ab\r\n").unwrap_or(&b'a')).take(bytes).collect()
}

fn set(verb: &str, key: &str, value: &[u8], more: &str) -> Vec<u8> {
    [format!("{verb} {key} 7 0 {}{more}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

/// The answer to `get`.
fn shown(key: &str, value: Option<&Vec<u8>>) -> Vec<u8> {
    let item =
        value.map(|value| [format!("VALUE {key} 7 {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat());
    [item.unwrap_or_default(), b"END\r\n".to_vec()].concat()
}

/// A random pipeline of storage commands and what must be answered, over a model of the keys.
struct Script {
    random: fastrand::Rng,
    keys: [Option<Vec<u8>>; 3],
    requests: Vec<u8>,
    replies: Vec<u8>,
}

impl Script {
    fn step(&mut self) {
        let random = &mut self.random;
        let at = random.usize(..3);
        let key = format!("k{at}");
        let bytes = *random
            .choice(&[0, 5, 3_000, 4_094, 16_383, 16_384, 16_385, 20_000, 65_536, LONG, 262_144, 700_000])
            .unwrap_or(&LONG);
        let bytes = bytes + random.usize(..3);
        let body = value(random, bytes);
        let was = self.keys[at].is_some();
        let (request, reply, stored): (_, &[u8], _) = match random.u8(..9) {
            0 | 1 => (set("set", &key, &body, ""), b"STORED\r\n", true),
            2 => (set("set", &key, &body, " noreply"), b"", true),
            3 => (set("add", &key, &body, ""), stored(!was), !was),
            4 => (set("replace", &key, &body, ""), stored(was), was),
            5 => {
                let line = format!("ms {key} {} F7 O{at}\r\n", body.len());
                let reply = [&b"HD O0\r\n"[..], b"HD O1\r\n", b"HD O2\r\n"][at];
                ([line.as_bytes(), &body, b"\r\n"].concat(), reply, true)
            }
            6 => {
                let line = format!("ms {key} {} F7 ME\r\n", body.len());
                let reply: &[u8] = if was { b"NS\r\n" } else { b"HD\r\n" };
                ([line.as_bytes(), &body, b"\r\n"].concat(), reply, !was)
            }
            7 => {
                let mut bad = set("set", &key, &body, "");
                let end = bad.len() - 1 - random.usize(..2);
                bad[end] = b'x';
                (bad, b"CLIENT_ERROR bad data chunk\r\n", false)
            }
            _ => {
                self.keys[at] = None;
                let reply: &[u8] = if was { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" };
                (format!("delete {key}\r\n").into_bytes(), reply, false)
            }
        };
        if stored {
            self.keys[at] = Some(body);
        }
        self.requests.extend(request);
        self.replies.extend(reply);
        self.requests.extend(format!("get {key}\r\n").as_bytes());
        self.replies.extend(shown(&key, self.keys[at].as_ref()));
    }
}

fn stored(is: bool) -> &'static [u8] {
    if is { b"STORED\r\n" } else { b"NOT_STORED\r\n" }
}

#[test]
fn pipelines_of_long_values_cut_anywhere_mean_the_same() {
    let daemon = daemon();
    let mut random = fastrand::Rng::with_seed(seed());
    for _ in 0..6 {
        daemon.connect().ask(b"flush_all\r\n", b"OK\r\n");
        let mut script =
            Script { random: random.fork(), keys: [const { None }; 3], requests: vec![], replies: vec![] };
        (0..random.usize(1..12)).for_each(|_| script.step());
        let mut client = daemon.connect();
        let mut reader = crate::harness::Client { stream: client.stream.try_clone().unwrap() };
        let most = *random.choice(&[700, 5_000, 30_000, 200_000, 1_000_000]).unwrap();
        std::thread::scope(|scope| {
            let replies = &script.replies;
            scope.spawn(move || reader.expect(replies));
            let mut rest = &script.requests[..];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(random.usize(1..=most).min(rest.len()));
                client.send(piece);
                rest = after;
            }
        });
    }
}

/// Begins to send a value on a connection of its own and returns when the server has taken in what was sent.
fn begun(daemon: &Daemon, request: &[u8]) -> crate::harness::Client<std::net::TcpStream> {
    let mut client = daemon.connect();
    client.ask(b"", b"");
    let before = read_bytes(daemon);
    client.send(request);
    // Bytes that were read were executed, or put where they lie, before anything else is answered by the same worker.
    while read_bytes(daemon) < before + request.len() as u64 {
        std::thread::yield_now();
    }
    client
}

fn read_bytes(daemon: &Daemon) -> u64 {
    daemon.engine.totals().of(engine::Counter::BytesRead)
}

#[test]
fn what_happens_while_a_value_comes_comes_before_it() {
    let daemon = daemon();
    let mut other = daemon.connect();
    let body = value(&mut fastrand::Rng::with_seed(1), LONG);
    let whole = set("set", "k", &body, "");
    let (first, second) = whole.split_at(50_000);
    let cases: [(&[u8], &[u8]); 5] = [
        (b"flush_all\r\n", b"OK\r\n"),
        (b"set k 7 0 1\r\nx\r\n", b"STORED\r\n"),
        (b"delete k\r\n", b"NOT_FOUND\r\n"),
        (b"sql 19\r\nTRUNCATE memcached;\r\n", b"OK 0\r\n"),
        (b"get k\r\n", b"END\r\n"),
    ];
    for (meanwhile, answer) in cases {
        other.ask(b"delete k noreply\r\n", b"");
        let mut receiving = begun(&daemon, first);
        if meanwhile.starts_with(b"sql") {
            other.send(meanwhile);
            let _changed = other.line();
        } else {
            other.ask(meanwhile, answer);
        }
        receiving.ask(second, b"STORED\r\n");
        other.ask(b"get k\r\n", &shown("k", Some(&body)));
    }
}

#[test]
fn conditions_are_asked_when_the_value_has_come() {
    let daemon = daemon();
    let mut other = daemon.connect();
    let body = value(&mut fastrand::Rng::with_seed(2), LONG);
    for (verb, before, meanwhile, answer) in [
        ("add", &b"delete k noreply\r\n"[..], &b"set k 0 0 1 noreply\r\nx\r\n"[..], &b"NOT_STORED\r\n"[..]),
        ("add", b"delete k noreply\r\n", b"get none\r\n", b"STORED\r\n"),
        ("replace", b"set k 0 0 1 noreply\r\nx\r\n", b"delete k noreply\r\n", b"NOT_STORED\r\n"),
        ("replace", b"set k 0 0 1 noreply\r\nx\r\n", b"set k 0 0 1 noreply\r\ny\r\n", b"STORED\r\n"),
    ] {
        other.ask(before, b"");
        let whole = set(verb, "k", &body, "");
        let (first, second) = whole.split_at(60_000);
        let mut receiving = begun(&daemon, first);
        let nothing: &[u8] = if meanwhile.starts_with(b"get") { b"END\r\n" } else { b"" };
        other.ask(meanwhile, nothing);
        receiving.ask(second, answer);
        let kept = answer == b"STORED\r\n";
        other.ask(
            b"mg k s\r\n",
            if kept {
                b"HD s100000\r\n"
            } else if verb == "add" {
                b"HD s1\r\n"
            } else {
                b"EN\r\n"
            },
        );
    }
    // A `cas` whose number is not that of the value any more.
    other.ask(b"set k 0 0 1\r\nx\r\n", b"STORED\r\n");
    other.send(b"gets k\r\n");
    let cas = other.line().split(' ').nth(4).unwrap().to_owned();
    other.expect(b"x\r\nEND\r\n");
    for (changed, answer) in [(true, &b"EXISTS\r\n"[..]), (false, b"EXISTS\r\n")] {
        let whole = set("cas", "k", &body, &format!(" {cas}"));
        let (first, second) = whole.split_at(60_000);
        let mut receiving = begun(&daemon, first);
        if changed {
            other.ask(b"set k 0 0 1\r\ny\r\n", b"STORED\r\n");
        }
        receiving.ask(second, answer);
        other.ask(b"get k\r\n", b"VALUE k 0 1\r\ny\r\nEND\r\n");
    }
}

#[test]
fn the_key_may_be_another_tables_when_the_value_has_come() {
    let daemon = daemon();
    let mut other = daemon.connect();
    let body = value(&mut fastrand::Rng::with_seed(3), LONG);
    let whole = set("set", "frag:k", &body, "");
    let (first, second) = whole.split_at(60_000);
    let sql = |text: &str| format!("sql {}\r\n{text}\r\n", text.len()).into_bytes();
    let create = "CREATE TABLE frag (key TEXT PRIMARY KEY, n INT AS (length(body)), body TEXT) \
                  WITH (prefix = 'frag:', value = 'body')";
    for (statement, count) in [
        (create, "{\"n\":100000}\r\nEND\r\n"),
        ("ALTER TABLE frag ADD COLUMN more INT DEFAULT 5", "{\"n\":100000}\r\nEND\r\n"),
        ("TRUNCATE frag", "{\"n\":100000}\r\nEND\r\n"),
    ] {
        let mut receiving = begun(&daemon, first);
        other.send(&sql(statement));
        let _changed = other.line();
        receiving.ask(second, b"STORED\r\n");
        other.ask(&sql("SELECT n FROM frag"), count.as_bytes());
        other.ask(b"get frag:k\r\n", &shown("frag:k", Some(&body)));
    }
    let mut receiving = begun(&daemon, first);
    other.send(&sql("DROP TABLE frag"));
    let _changed = other.line();
    other.ask(b"get frag:k\r\n", b"END\r\n");
    receiving.ask(second, b"STORED\r\n");
    other.ask(b"get frag:k\r\n", &shown("frag:k", Some(&body)));
}

#[test]
fn more_values_than_there_is_room_for_are_received_all_the_same() {
    let daemon = daemon();
    let body = value(&mut fastrand::Rng::with_seed(4), 300_000);
    let set = |n: usize| set("set", &format!("k{n}"), &body, "");
    let mut receiving: Vec<_> = (0..60).map(|n| begun(&daemon, &set(n)[..100_000])).collect();
    // What others store finds room beside them.
    let mut other = daemon.connect();
    for n in 0..2_000 {
        let small = format!("set small{n} 0 0 20000\r\n{}\r\n", "s".repeat(20_000));
        other.ask(small.as_bytes(), b"STORED\r\n");
    }
    for (n, receiving) in receiving.iter_mut().enumerate() {
        receiving.ask(&set(n)[100_000..], b"STORED\r\n");
        other.ask(format!("get k{n}\r\n").as_bytes(), &shown(&format!("k{n}"), Some(&body)));
    }
}

#[test]
fn peers_that_vanish_in_the_middle_give_all_memory_back() {
    let daemon = daemon();
    let body = value(&mut fastrand::Rng::with_seed(5), 900_000);
    let mut other = daemon.connect();
    other.ask(b"set kept 7 0 4\r\nkept\r\n", b"STORED\r\n");
    for n in 0..200 {
        let mut gone = begun(&daemon, &set("set", "k", &body, "")[..20_000 + n]);
        gone.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(gone.rest(), b"");
    }
    other.ask(b"get k kept\r\n", b"VALUE kept 7 4\r\nkept\r\nEND\r\n");
    // What they left is used again before anything that lives.
    assert_eq!(daemon.engine.totals().of(engine::Counter::StoreNoMemory), 0);
    other.ask(&set("set", "k", &body, ""), b"STORED\r\n");
    other.ask(b"get k\r\n", &shown("k", Some(&body)));
}

#[test]
fn a_sender_that_stops_within_a_long_value_is_cut() {
    let daemon = daemon();
    let body = value(&mut fastrand::Rng::with_seed(6), LONG);
    let mut slow = begun(&daemon, &set("set", "k", &body, "")[..70_000]);
    let mut quiet = daemon.connect();
    quiet.ask(b"", b"");
    while daemon.engine.totals().of(engine::Counter::SlowKicks) == 0 {
        daemon.advance(Duration::from_secs(41));
        quiet.ask(b"", b"");
    }
    assert_eq!(slow.rest(), b"");
    quiet.ask(b"get k\r\n", b"END\r\n");
}

#[test]
fn a_deadline_that_comes_with_the_value_is_met() {
    let daemon = daemon();
    let body = value(&mut fastrand::Rng::with_seed(7), LONG);
    let mut other = daemon.connect();
    let request = [format!("set k 7 10 {LONG}\r\n").as_bytes(), &body, b"\r\n"].concat();
    let mut receiving = begun(&daemon, &request[..60_000]);
    daemon.advance(Duration::from_secs(8));
    receiving.ask(&request[60_000..], b"STORED\r\n");
    // Ten seconds from when it was stored.
    daemon.advance(Duration::from_secs(9));
    other.ask(b"get k\r\n", &shown("k", Some(&body)));
    daemon.advance(Duration::from_secs(3));
    other.ask(b"get k\r\n", b"END\r\n");
    // A moment that has come before the value.
    let moment = crate::harness::UNIX_SECONDS + 60;
    let request = [format!("set k 7 {moment} {LONG}\r\n").as_bytes(), &body, b"\r\n"].concat();
    let mut receiving = begun(&daemon, &request[..60_000]);
    daemon.advance(Duration::from_secs(90));
    receiving.ask(&request[60_000..], b"STORED\r\n");
    other.ask(b"get k\r\n", b"END\r\n");
}
