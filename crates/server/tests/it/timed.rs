//! Every command of all three protocols of memcached's is timed in its class, and counted, however it ends.

use std::collections::BTreeMap;

use engine::{Measured, Session};
use memcache::Limits;
use memcache::binary::{self, Command, Parsed};

use crate::harness::{Daemon, config, daemon_with};

/// One command of a busy thread in so many is timed, and stands for the others.
const ONE_IN: u64 = 64;
/// Commands among which at least one is timed: the distance is random, and less than twice as long.
const REQUESTS: u64 = 2 * ONE_IN;

/// Text and meta commands, each with the class of its times. `{}` is a key.
const LINES: &[(&str, &str)] = &[
    ("get {}", "get"),
    ("gets {}", "get"),
    ("gat 0 {}", "get"),
    ("gats 0 {}", "get"),
    ("mg {} v", "get"),
    ("mg {} T0", "get"),
    ("mg {} N0", "get"),
    ("me {}", "get"),
    ("set {} 0 0 1\r\n1", "set"),
    ("add {} 0 0 1\r\n1", "set"),
    ("replace {} 0 0 1\r\n1", "set"),
    ("append {} 0 0 1\r\n1", "set"),
    ("prepend {} 0 0 1\r\n1", "set"),
    ("cas {} 0 0 1 7\r\n1", "set"),
    ("ms {} 1\r\n1", "set"),
    ("delete {}", "delete"),
    ("md {}", "delete"),
    ("md {} I", "delete"),
    ("incr {} 1", "other"),
    ("decr {} 1", "other"),
    ("ma {}", "other"),
    ("ma {} N0", "other"),
    ("touch {} 0", "other"),
    ("flush_all 1000", "other"),
];

/// Keys that are there with a number, with another text, that are not there, and that their table cannot have.
const KEYS: [&str; 4] = ["number", "text", "missing", "whole:none"];

/// The commands that were timed, by class, and all that was counted of commands.
fn figures(daemon: &Daemon) -> (BTreeMap<String, u64>, f64) {
    let (mut timed, mut counted) = (BTreeMap::new(), 0.0);
    let mut take = |name: &str, labels: &[&str], measured: Measured<'_>| match (name, measured) {
        ("sqlcached_command_duration_seconds", Measured::Spread(spread)) if labels[0] == "memcached" => {
            timed.insert(labels[1].to_owned(), spread.count());
        }
        ("sqlcached_commands_total", Measured::Count(count)) if !labels[0].starts_with("sql") => {
            counted += count as f64;
        }
        _ => {}
    };
    let metrics = Session::local()
        .metrics(&daemon.engine, &mut |metric, labels, measured| take(metric.name, labels, measured));
    metrics.unwrap();
    (timed, counted)
}

fn daemon() -> Daemon {
    let daemon = daemon_with(&server::Config { threads: 1, ..config() });
    let mut client = daemon.connect();
    let table = "CREATE TABLE whole (n INT PRIMARY KEY, v TEXT) WITH (prefix = 'whole:', value = 'v', strict_keys = on)";
    client.send(format!("sql {}\r\n{table}\r\n", table.len()).as_bytes());
    client.line();
    client.ask(b"set number 0 0 1\r\n1\r\n", b"STORED\r\n");
    client.ask(b"set text 0 0 1\r\nx\r\n", b"STORED\r\n");
    daemon
}

/// Runs a request so often that it is timed, and says in which class.
fn class_of(daemon: &Daemon, what: &str, request: &[u8], end: (&[u8], &[u8])) -> Option<String> {
    let (before, counted_before) = figures(daemon);
    let mut client = daemon.connect();
    client.send(&request.repeat(usize::try_from(REQUESTS).unwrap()));
    client.send(end.0);
    client.until(end.1);
    let (after, counted) = figures(daemon);
    let grown: Vec<_> = after.iter().filter(|(class, count)| before[*class] != **count).collect();
    let [(class, count)] = grown[..] else {
        assert!(grown.is_empty(), "{what}: {grown:?}");
        return None;
    };
    assert_eq!((count - before[class]) % ONE_IN, 0, "{what}");
    // memcached does not count a number that is none, nor do the metrics `me`.
    let is_counted = !what.contains("text") && !what.starts_with("me ");
    assert!(counted > counted_before || !is_counted, "{what} is not counted");
    Some(class.clone())
}

/// `gat` and `gats` were in no class.
#[test]
fn every_line_is_timed_in_its_class() {
    let daemon = daemon();
    for (line, class) in LINES {
        for key in KEYS {
            let line = line.replace("{}", key);
            let request = format!("{line}\r\n");
            let timed = class_of(&daemon, &line, request.as_bytes(), (b"mn\r\n", b"MN\r\n"));
            assert_eq!(timed.as_deref(), Some(*class), "{line}");
        }
    }
}

/// A binary request of this opcode, with extras of this length.
fn frame(opcode: u8, extras: usize, key: &str, value: &str) -> Vec<u8> {
    let mut head =
        vec![0x80, opcode, 0, u8::try_from(key.len()).unwrap(), u8::try_from(extras).unwrap(), 0, 0, 0];
    head.extend(u32::try_from(extras + key.len() + value.len()).unwrap().to_be_bytes());
    head.extend([0; 12]);
    [&head, &vec![0; extras][..], key.as_bytes(), value.as_bytes()].concat()
}

/// What the answer to the last request repeats.
const OPAQUE: [u8; 4] = *b"last";

fn noop() -> Vec<u8> {
    let mut noop = frame(0x0a, 0, "", "");
    noop[12..16].copy_from_slice(&OPAQUE);
    noop
}

/// The class of a command; none: it is about no row.
fn class(command: Command) -> Option<&'static str> {
    match command {
        Command::Get { .. } | Command::GetAndTouch { .. } => Some("get"),
        Command::Store { .. } | Command::Join { .. } => Some("set"),
        Command::Delete => Some("delete"),
        Command::Touch { .. } | Command::Arithmetic { .. } | Command::Flush { .. } => Some("other"),
        Command::Stat | Command::Noop | Command::Version | Command::Quit => None,
    }
}

/// `touch` and the two opcodes of `gat` were in no class.
#[test]
fn every_opcode_is_timed_in_its_class() {
    let daemon = daemon();
    let mut tried = 0;
    for opcode in 0..=u8::MAX {
        let forms = [0, 4, 8, 20].map(|extras| ["", "1"].map(|value| (extras, value)));
        for (extras, value) in forms.into_iter().flatten() {
            for key in KEYS.into_iter().chain([""]) {
                let request = frame(opcode, extras, key, value);
                let Parsed::Complete { request: parsed, .. } = binary::parse(&Limits::default(), &request)
                else {
                    continue;
                };
                let Some(class) = class(parsed.command) else { continue };
                let noop = (&noop()[..], &OPAQUE[..]);
                let what = format!("{opcode:#x} {extras} {key} {value}");
                let timed = class_of(&daemon, &what, &request, noop);
                assert_eq!(timed.as_deref(), Some(class), "{what}");
                tried += 1;
            }
        }
    }
    assert!(tried >= 100, "{tried} requests were tried");
}
