//! Random clients: what one hears through a session that keeps answers is what it hears through one that only forwards.

use std::sync::Arc;
use std::task::Waker;

use forward::{Answers, Hands, Hub, Out, Session};

use super::generated::{IDENTITY, World};
use super::source::{Source, message};

/// A client's session and its source.
struct Line {
    session: Session,
    source: Source,
    heard: Vec<u8>,
}

impl Line {
    fn new(hub: Option<Arc<Hub>>) -> Self {
        Self { session: Session::new(hub, IDENTITY), source: Source::new(), heard: Vec::new() }
    }

    /// The client sends this, in pieces, and the source answers in pieces.
    fn send(&mut self, bytes: &[u8], answers: &mut Answers, random: &mut fastrand::Rng) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(random.usize(1..=rest.len()));
            rest = behind;
            let mut to_source = Vec::new();
            let mut out = Out { client: &mut self.heard, source: &mut to_source };
            self.session.client_sent(piece, &mut hands(answers), &mut out);
            self.answer(to_source, answers, random);
        }
    }

    fn answer(&mut self, mut to_source: Vec<u8>, answers: &mut Answers, random: &mut fastrand::Rng) {
        while !to_source.is_empty() {
            let replies = self.source.feed(&to_source);
            to_source.clear();
            let mut rest = &replies[..];
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(random.usize(1..=rest.len()));
                rest = behind;
                let mut out = Out { client: &mut self.heard, source: &mut to_source };
                self.session.source_sent(piece, &mut hands(answers), &mut out);
            }
        }
    }
}

fn hands(answers: &mut Answers) -> Hands<'_> {
    Hands { answers, now_us: 0, waker: Waker::noop() }
}

/// What a client sends before it waits.
fn group(random: &mut fastrand::Rng) -> Vec<u8> {
    const TEXTS: [&str; 12] = [
        "SELECT 1 AS a",
        "SELECT 2 AS b",
        "SELECT 3 AS c",
        "SELECT 1 AS a",
        "SELECT 4 AS d",
        "INSERT x",
        "FAIL now",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "DEALLOCATE s1",
        "DISCARD ALL",
    ];
    const NAMES: [&str; 3] = ["", "s1", "s2"];
    let mut out = Vec::new();
    // Reads come far more often than what makes the session forget them.
    let text = TEXTS[if random.u8(..4) > 0 { random.usize(..5) } else { random.usize(..12) }];
    let name = NAMES[random.usize(..3)];
    let parse = [name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"].concat();
    let value = [b"x", b"y"][random.usize(..2)];
    let bind = [b"\0", name.as_bytes(), b"\0\0\0\0\x01\0\0\0\x01", value, b"\0\0"].concat();
    let statement = [b"S", name.as_bytes(), b"\0"].concat();
    let run = |described: bool, out: &mut Vec<u8>| {
        message(b'B', &bind, out);
        if described {
            message(b'D', b"P\0", out);
        }
        message(b'E', b"\0\0\0\0\0", out);
    };
    match random.u8(..12) {
        0..=2 => message(b'Q', &[text.as_bytes(), b"\0"].concat(), &mut out),
        3..=5 => {
            message(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"].concat(), &mut out);
            let unnamed = [&b"\0\0\0\0\0\x01\0\0\0\x01"[..], value, b"\0\0"].concat();
            message(b'B', &unnamed, &mut out);
            message(b'D', b"P\0", &mut out);
            message(b'E', b"\0\0\0\0\0", &mut out);
            message(b'S', &[], &mut out);
        }
        6 => {
            message(b'P', &parse, &mut out);
            message(b'D', &statement, &mut out);
            let end = if random.bool() { b'S' } else { b'H' };
            message(end, &[], &mut out);
            if end == b'H' {
                message(b'S', &[], &mut out);
            }
        }
        7 => {
            message(b'P', &parse, &mut out);
            message(b'S', &[], &mut out);
        }
        8 => {
            run(random.bool(), &mut out);
            message(b'S', &[], &mut out);
        }
        9 => {
            message(b'D', &statement, &mut out);
            message(b'S', &[], &mut out);
        }
        10 => {
            message(b'C', &statement, &mut out);
            message(b'S', &[], &mut out);
        }
        _ => {
            // A pipeline of several.
            run(false, &mut out);
            run(true, &mut out);
            message(b'S', &[], &mut out);
            run(false, &mut out);
            message(b'S', &[], &mut out);
        }
    }
    out
}

/// Random numbers by a seed that `SEED` may give.
#[expect(clippy::disallowed_methods, reason = "a test's own switch is no setting of the program")]
fn seeded() -> (u64, fastrand::Rng) {
    let given = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    (seed, fastrand::Rng::with_seed(seed))
}

#[test]
fn a_client_hears_the_same_whether_answers_are_kept_or_not() {
    let (seed, mut random) = seeded();
    let mut world = World::new();
    let (mut forwarded, mut executed) = (0, 0);
    for program in 0..200 {
        let (mut direct, mut kept) = (Line::new(None), Line::new(Some(Arc::clone(&world.hub))));
        let mut history = Vec::new();
        for step in 0..60 {
            let mut bytes = group(&mut random);
            if random.u8(..8) == 0 {
                bytes.extend(group(&mut random));
            }
            if random.u8(..30) == 0 {
                for line in [&mut direct, &mut kept] {
                    message(b'A', b"\0\0\0\x01channel\0payload\0", &mut line.source.aside);
                }
            }
            history.extend(messages(&bytes));
            direct.send(&bytes, &mut world.answers, &mut random);
            kept.send(&bytes, &mut world.answers, &mut random);
            world.tend(random.u8(..4) > 0);
            // What comes by itself comes with the next answer of the source, which is another one.
            let heard = |line: &mut Line| messages(&std::mem::take(&mut line.heard));
            assert_eq!(
                heard(&mut kept),
                heard(&mut direct),
                "program {program}, step {step}, SEED={seed}, sent {history:#?}"
            );
        }
        forwarded += direct.source.executed;
        executed += kept.source.executed;
    }
    println!("{executed} of {forwarded} statements reached the source");
    assert!(executed * 10 < forwarded * 9, "what is kept is read");
}

/// Messages but for notifications, as texts.
fn messages(bytes: &[u8]) -> Vec<String> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let len = u32::from_be_bytes(bytes[at + 1..at + 5].try_into().unwrap()) as usize + 1;
        if bytes[at] != b'A' {
            let body = String::from_utf8_lossy(&bytes[at + 5..at + len]);
            all.push(format!("{} {body}", char::from(bytes[at])));
        }
        at += len;
    }
    all
}

/// A session that keeps nothing passes every byte as it is, whatever it is.
#[test]
fn what_is_only_forwarded_is_not_changed() {
    let (seed, mut random) = seeded();
    let mut world = World::new();
    for _ in 0..300 {
        let mut session = Session::new(None, 0);
        let (mut sent, mut to_source, mut said, mut heard) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..random.usize(1..40) {
            let mut bytes = match random.u8(..4) {
                0 => (0..random.usize(..40)).map(|_| random.u8(..)).collect(),
                1 => {
                    let mut out = Vec::new();
                    message(
                        *b"dPBDZ".get(random.usize(..5)).unwrap(),
                        &vec![1; random.usize(..200_000)],
                        &mut out,
                    );
                    out
                }
                _ => group(&mut random),
            };
            let mut out = Out { client: &mut heard, source: &mut to_source };
            let mut hands = hands(&mut world.answers);
            if random.bool() {
                session.client_sent(&bytes, &mut hands, &mut out);
                sent.append(&mut bytes);
            } else {
                session.source_sent(&bytes, &mut hands, &mut out);
                said.append(&mut bytes);
            }
            assert!(sent.starts_with(&to_source), "SEED={seed}");
            let same = said.iter().zip(&heard).take_while(|(one, other)| one == other).count();
            assert!(same == heard.len(), "{same} {} {} SEED={seed}", said.len(), heard.len());
            assert!(sent.len() - to_source.len() < 200_000, "SEED={seed}");
        }
    }
}

/// A request to cancel waits for requests that wait here, and for nothing that waits for what is to be cancelled: half
/// a request behind a statement that runs once kept the statement running for ever.
#[test]
fn a_cancel_does_not_wait_for_what_runs() {
    let mut world = World::new();
    let mut session = Session::new(Some(Arc::clone(&world.hub)), IDENTITY);
    let (mut heard, mut to_source) = (Vec::new(), Vec::new());
    let mut out = Out { client: &mut heard, source: &mut to_source };
    let mut hands = hands(&mut world.answers);
    session.begin(&mut out);
    let query = |text: &str| {
        let mut bytes = Vec::new();
        message(b'Q', format!("{text}\0").as_bytes(), &mut bytes);
        bytes
    };
    session.client_sent(&query("SELECT 9 AS running"), &mut hands, &mut out);
    assert!(session.holds_requests(), "it waits for the session's state, which the source tells at once");
    let question = std::mem::take(out.source);
    let mut source = Source::new();
    let told = source.feed(&question);
    session.source_sent(&told, &mut hands, &mut out);
    assert!(!session.holds_requests() && !out.source.is_empty(), "it is sent");
    let half = query("SELECT 8 AS next");
    session.client_sent(&half[..9], &mut hands, &mut out);
    assert!(!session.holds_requests(), "what is to be cancelled runs");
}
