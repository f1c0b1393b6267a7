//! The same random commands to Debian's memcached 1.6.18 and to the daemon: the answers are equal, except the
//! differences listed in [`differs_as_written`].

use crate::client::Client;
use crate::daemon::Daemon;
use crate::memcached::Memcached;
use crate::{seed, skipped};

/// Commands compared in one run; a release compares a thousand times as many.
const COMMANDS: usize = 100_000;

/// Keys in play; few, so that commands meet each other's results.
const KEYS: usize = 24;

/// One of the two, and the `cas` it gave last for each key.
struct Side {
    client: Client,
    cas: Vec<String>,
}

/// A command: its line and data, in which `@` stands for the side's own `cas` of `key`.
struct Act {
    key: usize,
    text: String,
}

impl Side {
    fn new(client: Client) -> Self {
        Self { client, cas: vec!["9999999999".to_owned(); KEYS] }
    }

    fn send(&mut self, act: &Act) {
        // The answer to `version` cannot be mistaken for that of any other command.
        let request = act.text.replace('@', &self.cas[act.key]) + "version\r\n";
        self.client.send(request.as_bytes());
    }

    /// The answer to one command, each `cas` remembered and blotted out.
    fn answer(&mut self, key: usize) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.client.line();
            assert!(lines.len() < 1_000, "closed after {:?}", &lines[..20]);
            if line.starts_with("VERSION ") {
                return lines;
            }
            let words: Vec<&str> = line.split(' ').collect();
            if let ["VALUE", key, flags, bytes, cas] = words.as_slice() {
                if let Some(number) = key.strip_prefix('k').and_then(|number| number.parse::<usize>().ok()) {
                    (*cas).clone_into(&mut self.cas[number]);
                }
                lines.push(format!("VALUE {key} {flags} {bytes} CAS"));
            } else if let ["HD" | "VA", ..] = words.as_slice() {
                let words: Vec<String> = words.iter().map(|word| self.meta_word(key, word)).collect();
                lines.push(words.join(" "));
            } else {
                lines.push(line);
            }
        }
    }

    /// A word of a meta command's answer: the `cas` is remembered and blotted out, and so are seconds left, which pass.
    fn meta_word(&mut self, key: usize, word: &str) -> String {
        if let Some(cas) = word.strip_prefix('c').filter(|cas| cas.parse::<u64>().is_ok()) {
            cas.clone_into(&mut self.cas[key]);
            return "c".to_owned();
        }
        let passes = |seconds: &&str| seconds.parse::<u64>().is_ok_and(|seconds| seconds > 2);
        word.strip_prefix('t').filter(passes).map_or_else(|| word.to_owned(), |_| "t".to_owned())
    }
}

#[test]
fn answers_are_those_of_memcached() {
    // Its maintainer thread holds items for a moment after a `get`; `decr` then pads its result or does not, as the
    // race goes.
    let Some(memcached) = Memcached::start_with(&["-o", "no_lru_maintainer"]) else {
        skipped("memcached is not installed, so its answers cannot be compared");
        return;
    };
    let daemon = Daemon::start(&[]);
    let mut random = fastrand::Rng::with_seed(seed());
    let mut theirs = Side::new(memcached.connect());
    let mut ours = Side::new(daemon.connect());
    let mut history: Vec<String> = Vec::new();
    let mut counted = [false; KEYS];
    for _ in 0..COMMANDS {
        // One at a time: memcached writes a number in place and pads it with spaces, except while an answer with the
        // old one waits to be sent, which happens in a pipeline.
        let act = act(&mut random);
        theirs.send(&act);
        ours.send(&act);
        let (expected, found) = (theirs.answer(act.key), ours.answer(act.key));
        note_counting(&act, &expected, &mut counted);
        let forgets = counted[act.key] && forgets_its_marks(&expected, &found);
        if forgets || strays_beyond_the_value(&act, &expected, &mut theirs, &mut ours) {
            let again = Act { key: act.key, text: format!("delete k{}\r\n", act.key) };
            for side in [&mut theirs, &mut ours] {
                side.send(&again);
                side.answer(act.key);
            }
            continue;
        }
        history.push(format!("{:?} -> {found:?}", act.text.chars().take(200).collect::<String>()));
        assert!(
            expected == found || differs_as_written(&expected, &found),
            "memcached answers {expected:?}; before:\n{}",
            history[history.len().saturating_sub(60)..].join("\n")
        );
    }
}

/// memcached 1.6.18 looks for a minus sign in numbers from 2^63, and looks on behind the value's end, where it may find
/// one and refuse to count. Where that may have happened, both are asked for the value.
fn strays_beyond_the_value(act: &Act, answer: &[String], theirs: &mut Side, ours: &mut Side) -> bool {
    let Some((down, delta)) = arithmetic(&act.text) else { return false };
    if !answer.is_empty() && !answer.iter().any(|line| line.contains("non-numeric")) {
        return false;
    }
    let [before, after] = [theirs, ours].map(|side| number(side, act.key));
    let (Some(before), Some(after)) = (before, after) else { return false };
    let counted = if down { before.saturating_sub(delta) } else { before.wrapping_add(delta) };
    before >= 1 << 63 && after == counted
}

/// Keeps, for each key, whether its value came out of counting.
fn note_counting(act: &Act, answer: &[String], counted: &mut [bool; KEYS]) {
    match arithmetic(&act.text) {
        Some(_) => counted[act.key] = true,
        None if answer.iter().any(|line| line == "STORED") => counted[act.key] = false,
        None => {}
    }
}

/// Whether a command counts down, and by how much; `None` when it does not count.
fn arithmetic(text: &str) -> Option<(bool, u64)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [verb @ ("incr" | "decr"), _, delta, ..] => Some((*verb == "decr", delta.parse().ok()?)),
        ["ma", _, flags @ ..] => {
            let delta = flags.iter().find_map(|flag| flag.strip_prefix('D')).unwrap_or("1");
            Some((flags.iter().any(|flag| ["MD", "M-"].contains(flag)), delta.parse().ok()?))
        }
        _ => None,
    }
}

/// The number that a side holds for a key; what follows it behind a space does not count.
fn number(side: &mut Side, key: usize) -> Option<u64> {
    side.send(&Act { key, text: format!("get k{key}\r\n") });
    side.answer(key).get(1)?.split(' ').next()?.parse().ok()
}

/// A number that `incr` makes longer is a fresh item to memcached, which forgets that it was stale and that somebody
/// recaches it; here arithmetic never makes a value fresh.
fn forgets_its_marks(theirs: &[String], ours: &[String]) -> bool {
    let ([theirs, ..], [ours, ..]) = (theirs, ours) else { return false };
    let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
    let without_marks = |line: &str| -> Vec<String> {
        words(line).into_iter().filter(|word| !["W", "X", "Z"].contains(&word.as_str())).collect()
    };
    let bears = |line: &str, mark: &str| words(line).iter().any(|word| word == mark);
    let forgotten = ["X", "Z"].iter().any(|mark| bears(ours, mark) && !bears(theirs, mark));
    forgotten && without_marks(theirs) == without_marks(ours)
}

/// Where we answer as memcached 1.6.45 does and 1.6.18 does not.
fn differs_as_written(theirs: &[String], ours: &[String]) -> bool {
    let theirs: Vec<&str> = theirs.iter().map(String::as_str).collect();
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    match (theirs.as_slice(), ours.as_slice()) {
        // Missing or surplus arguments; a `gat` without a key.
        (["ERROR" | "END"], [ours]) => ours.starts_with("CLIENT_ERROR bad command line format"),
        // Of two reasons to refuse `ma`, another value and none that is a number, the first is told.
        ([theirs], [ours]) if theirs.contains("non-numeric") && ours.starts_with("EX") => true,
        // The data of a refused storage command: 1.6.18 takes it for a command.
        ([error, rest @ ..], [same]) => {
            error == same && error.contains("ERROR") && rest.iter().all(|line| *line == "ERROR")
        }
        _ => false,
    }
}

fn act(random: &mut fastrand::Rng) -> Act {
    let key = random.usize(..KEYS);
    let name = format!("k{key}");
    let quiet = if random.u8(..) < 20 { " noreply" } else { "" };
    let text = match random.u8(..130) {
        0..30 => {
            let verb = random.choice(["set", "set", "add", "replace", "append", "prepend"]).unwrap_or("set");
            storage(random, &format!("{verb} {name}"), "", quiet)
        }
        30..36 => storage(random, &format!("cas {name}"), " @", quiet),
        36..50 => format!("get {}\r\n", keys(random, key)),
        50..62 => format!("gets {}\r\n", keys(random, key)),
        62..66 => format!("gat {} {}\r\n", exptime(random), keys(random, key)),
        66..68 => format!("gats {} {}\r\n", exptime(random), keys(random, key)),
        68..72 => format!("touch {name} {}{quiet}\r\n", exptime(random)),
        72..84 => {
            let verb = random.choice(["incr", "decr"]).unwrap_or("incr");
            let delta = random.choice([
                "1",
                "7",
                "100",
                "18446744073709551615",
                "0",
                "x",
                "-1",
                "18446744073709551616",
            ]);
            format!("{verb} {name} {}{quiet}\r\n", delta.unwrap_or("1"))
        }
        84..90 => format!("delete {name}{quiet}\r\n"),
        90 => format!("delete {name} 0{quiet}\r\n"),
        91 => format!("flush_all{quiet}\r\n"),
        92 => "verbosity 1\r\n".to_owned(),
        93..125 => meta(random, key),
        _ => malformed(random, &name),
    };
    Act { key, text }
}

/// A meta command with random flags: those that 1.6.18 has, without what it counts differently (see docs/memcached.md).
fn meta(random: &mut fastrand::Rng, key: usize) -> String {
    let (name, encoded) = (format!("k{key}"), base64(&format!("b{key}")));
    match random.u8(..20) {
        0..9 => {
            let flags = [
                "v", "s", "t", "c", "f", "k", "q", "Oxyz", "u", "P", "N1000", "R500", "R2000", "R3000000",
                "T2500",
            ];
            format!("mg {name}{}\r\n", some(random, &flags))
        }
        9..13 => {
            let modes = ["ME", "MR", "MS", "MA", "MP"];
            let mode = random.choice(modes).filter(|_| random.bool()).unwrap_or("MS");
            let flags =
                ["F5", "T1500", "T-1", "T0", "T2147483647", "C@", "C8888888888", "I", "k", "c", "q", "Oz"];
            let data = random.choice(["1", "77", "", "some text"]).unwrap_or("");
            format!("ms {name} {} {mode}{}\r\n{data}\r\n", data.len(), some(random, &flags))
        }
        13..15 => {
            let flags = ["I", "T1800", "q", "k", "Oz", "C@", "C8888888888"];
            format!("md {name}{}\r\n", some(random, &flags))
        }
        15..18 => {
            let modes = ["MI", "M+", "MD", "M-"];
            let mode = random.choice(modes).unwrap_or("MI");
            // No `T`: memcached gives the new time to the item that was, if the number became longer.
            let flags = ["N1200", "J13", "D5", "D18446744073709551615", "q", "t", "c", "v", "k", "Oz", "C@"];
            let flags = some(random, &flags);
            // 1.6.18 answers a quiet command that makes a missing number, and only then.
            let flags = if flags.contains(" N") { flags.replace(" q", "") } else { flags };
            format!("ma {name} {mode}{flags}\r\n")
        }
        18 => {
            let data = "bytes";
            format!("ms {encoded} {} b k\r\n{data}\r\nmg {encoded} b k v s t f\r\n", data.len())
        }
        _ => {
            let lines = [
                "mg k1 v v\r\n",
                "mg k1 Z\r\n",
                "mg k1 T\r\n",
                "mg k1 Tx v\r\n",
                "mg !!! b\r\n",
                "md k1 v v\r\n",
                "ma k1 Dx\r\n",
                "ma k1 MX\r\n",
                "ms k1 2 MX\r\nhi\r\n",
                "ms k1 2 Z\r\nhi\r\n",
                "mn\r\n",
            ];
            random.choice(lines).unwrap_or("mn\r\n").to_owned()
        }
    }
}

/// Some of these flags, in any order.
fn some(random: &mut fastrand::Rng, flags: &[&str]) -> String {
    let mut flags: Vec<&str> = flags.iter().copied().filter(|_| random.u8(..10) < 3).collect();
    random.shuffle(&mut flags);
    let mut seen = Vec::new();
    // Each letter once, and no new deadline for a place that `N` takes.
    flags.retain(|flag| {
        let new = !seen.contains(&flag.as_bytes()[0]);
        seen.push(flag.as_bytes()[0]);
        new
    });
    flags.iter().flat_map(|flag| [" ", flag]).collect()
}

fn base64(text: &str) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in text.as_bytes().chunks(3) {
        let word =
            group.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = letters[(word >> (18 - 6 * place)) as usize & 63];
            out.push(if place > group.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

fn storage(random: &mut fastrand::Rng, head: &str, tail: &str, quiet: &str) -> String {
    let data = match random.u8(..10) {
        0 => String::new(),
        1..5 => random
            .choice(["1", "10", "99", "100", "007", " 5", "18446744073709551615", "5x"])
            .unwrap_or("1")
            .to_owned(),
        5..9 => "abc".repeat(random.usize(..40)),
        // Together below the 512 KiB from which memcached keeps a value in pieces and adds nothing to it.
        _ => "large".repeat(random.usize(..2_000)),
    };
    let flags = random.choice(["0", "1", "+1", "4294967295"]).unwrap_or("0");
    format!("{head} {flags} {} {}{tail}{quiet}\r\n{data}\r\n", exptime_of_value(random), data.len())
}

/// No deadline that could pass while the test runs: the two would meet it at different commands.
fn exptime(random: &mut fastrand::Rng) -> &'static str {
    random
        .choice([
            "0",
            "0",
            "0",
            "1000",
            "+1000",
            "-1",
            "-2147483648",
            "2592000",
            "2592001",
            "2100000000",
            "2147483647",
        ])
        .unwrap_or("0")
}

/// One of them, or one that only storage commands take: of more than 32 bits, or a negative number as clients in C send
/// it.
fn exptime_of_value(random: &mut fastrand::Rng) -> &'static str {
    let longer = ["2147483648", "4294967295", "4294967296", "4294968296", "9223372036854775807"];
    if random.u8(..4) > 0 { exptime(random) } else { random.choice(longer).unwrap_or("0") }
}

fn keys(random: &mut fastrand::Rng, first: usize) -> String {
    let more = if random.bool() { 0 } else { random.usize(..6) };
    let others = (0..more).map(|_| random.usize(..KEYS + 4).min(KEYS - 1));
    let keys: Vec<String> = std::iter::once(first).chain(others).map(|key| format!("k{key}")).collect();
    keys.join(" ")
}

fn malformed(random: &mut fastrand::Rng, name: &str) -> String {
    let long = "k".repeat(251);
    let lines = [
        "get\r\n".to_owned(),
        "GET x\r\n".to_owned(),
        "nonsense\r\n".to_owned(),
        format!("get {}\r\n", "k".repeat(250)),
        format!("touch {name}\r\n"),
        format!("touch {name} soon\r\n"),
        format!("touch {name} 9223372036854775808\r\n"),
        format!("gat -9223372036854775809 {name}\r\n"),
        format!("mg {name} T9223372036854775808\r\n"),
        format!("incr {name}\r\n"),
        format!("delete {name} x\r\n"),
        format!("delete {name} a b c\r\n"),
        format!("set {name} 0 0\r\n"),
        format!("set {name} x 0 1\r\n1\r\n"),
        format!("set {name} 0 x 1\r\n1\r\n"),
        format!("set {name} 0 9223372036854775808 1\r\n1\r\n"),
        format!("set {name} 0 -9223372036854775809 1\r\n1\r\n"),
        format!("set {long} 0 0 1\r\n1\r\n"),
        format!("set {name} 0 0 -1\r\n"),
        format!("cas {name} 0 0 1 x\r\n1\r\n"),
        "flush_all soon\r\n".to_owned(),
    ];
    let index = random.usize(..lines.len());
    lines[index].clone()
}
