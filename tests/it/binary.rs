//! The binary protocol beside Debian's memcached 1.6.18: the same random requests to both, and frames that are none.
//! The answers are equal byte for byte, but for the CAS, which each side chooses, and what [`strays_beyond_the_value`]
//! and the tests say.

use crate::client::Client;
use crate::daemon::Daemon;
use crate::memcached::Memcached;
use crate::{seed, skipped};

/// Acts compared in one run; `ACTS` asks for more.
const ACTS: usize = 60_000;

/// Keys in play; few, so that requests meet each other's results.
const KEYS: usize = 24;

/// The opaque of the noop behind each act.
const END: u32 = 0xdead_beef;

/// An expiry time in January 1970.
const EXPIRED: u32 = 2_592_001;

const NOOP: u8 = 0x0a;
const STAT: u8 = 0x10;
const GET: u8 = 0x00;

/// A request; `own_cas` is replaced by the CAS that the side gave last for the key.
#[derive(Clone)]
struct Act {
    opcode: u8,
    /// Its place among the keys.
    at: usize,
    own_cas: bool,
    extras: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl std::fmt::Debug for Act {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { opcode, at, own_cas, extras, .. } = self;
        write!(out, "{opcode:#x} k{at} cas {own_cas} {extras:?} '{}'", short(&self.value))
    }
}

/// An answer. Its CAS is 0 or not.
#[derive(Clone, PartialEq, Eq)]
struct Answer {
    opcode: u8,
    status: u16,
    extras: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
    opaque: u32,
    has_cas: bool,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { opcode, status, extras, opaque, has_cas, .. } = self;
        let (key, value) = (short(&self.key), short(&self.value));
        write!(out, "{opcode:#x} {status:#x} {extras:?} '{key}' '{value}' #{opaque} cas {has_cas}")
    }
}

fn short(bytes: &[u8]) -> String {
    let shown = bytes[..bytes.len().min(40)].escape_ascii();
    if bytes.len() > 40 { format!("{shown}... {} bytes", bytes.len()) } else { shown.to_string() }
}

pub(crate) fn frame(opcode: u8, opaque: u32, cas: u64, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let body = u32::try_from(extras.len() + key.len() + value.len()).unwrap();
    let mut head = vec![0x80, opcode];
    head.extend(u16::try_from(key.len()).unwrap().to_be_bytes());
    head.extend([u8::try_from(extras.len()).unwrap(), 0, 0, 0]);
    head.extend(body.to_be_bytes());
    head.extend(opaque.to_be_bytes());
    head.extend(cas.to_be_bytes());
    [&head[..], extras, key, value].concat()
}

/// One of the two, and the CAS it gave last for each key.
struct Side {
    client: Client,
    cas: Vec<u64>,
}

impl Side {
    fn new(client: Client) -> Self {
        Self { client, cas: vec![99_999_999; KEYS] }
    }

    /// Sends some requests and a noop; what was answered before it.
    fn perform(&mut self, acts: &[Act]) -> Vec<Answer> {
        let mut bytes = Vec::new();
        for (opaque, act) in acts.iter().enumerate() {
            let cas = if act.own_cas { self.cas[act.at] } else { 0 };
            let opaque = u32::try_from(opaque).unwrap();
            bytes.extend(frame(act.opcode, opaque, cas, &act.extras, &act.key, &act.value));
        }
        bytes.extend(frame(NOOP, END, 0, b"", b"", b""));
        self.client.send(&bytes);
        let mut answers = Vec::new();
        loop {
            let (answer, cas) = self.read().unwrap_or_else(|| panic!("closed after {acts:?}"));
            if answer.opaque == END {
                return answers;
            }
            if cas != 0 {
                self.cas[acts[answer.opaque as usize].at] = cas;
            }
            // What statistics there are is compared elsewhere.
            if answer.opcode != STAT || answer.key.is_empty() {
                answers.push(answer);
            }
        }
    }

    /// The next answer; none when the peer closed.
    fn read(&mut self) -> Option<(Answer, u64)> {
        let head = self.client.bytes(24)?;
        assert_eq!((head[0], head[5]), (0x81, 0), "no answer: {head:?}");
        let key = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let body = self.client.bytes(u32::from_be_bytes(head[8..12].try_into().unwrap()) as usize)?;
        let (extras, rest) = body.split_at(usize::from(head[4]));
        let (key, value) = rest.split_at(key);
        let cas = u64::from_be_bytes(head[16..24].try_into().unwrap());
        let answer = Answer {
            opcode: head[1],
            status: u16::from_be_bytes([head[6], head[7]]),
            extras: extras.to_vec(),
            key: key.to_vec(),
            // They say which version they are.
            value: if head[1] == 0x0b { vec![] } else { value.to_vec() },
            opaque: u32::from_be_bytes(head[12..16].try_into().unwrap()),
            has_cas: cas != 0,
        };
        Some((answer, cas))
    }
}

#[test]
fn answers_are_those_of_memcached() {
    let Some(memcached) = Memcached::start_with(&["-o", "no_lru_maintainer"]) else {
        skipped("memcached is not installed, so its answers cannot be compared");
        return;
    };
    let daemon = Daemon::start(&[]);
    let mut random = fastrand::Rng::with_seed(seed());
    let keys: Vec<Vec<u8>> = (0..KEYS).map(|at| key(&mut random, at)).collect();
    let mut theirs = Side::new(memcached.connect());
    let mut ours = Side::new(daemon.connect());
    let mut history: Vec<String> = Vec::new();
    // A fresh daemon once gave a number that had expired no version.
    let expired = [&[0; 16][..], &EXPIRED.to_be_bytes()].concat();
    let first =
        [Act { opcode: 0x05, at: 0, own_cas: false, extras: expired, key: keys[0].clone(), value: vec![] }];
    assert_eq!(ours.perform(&first), theirs.perform(&first));
    let acts_wanted = std::env::var("ACTS").ok().and_then(|acts| acts.parse().ok()).unwrap_or(ACTS);
    for _ in 0..acts_wanted {
        let acts = some_acts(&mut random, &keys);
        let (expected, found) = (theirs.perform(&acts), ours.perform(&acts));
        if strays_beyond_the_value(&acts[0], &expected, &found) {
            let removal =
                Act { opcode: 0x14, own_cas: false, extras: vec![], value: vec![], ..acts[0].clone() };
            for side in [&mut theirs, &mut ours] {
                side.perform(std::slice::from_ref(&removal));
            }
            continue;
        }
        history.push(format!("{acts:?} -> {found:?}").chars().take(600).collect());
        assert!(
            expected == found || differs_as_written(&expected, &found),
            "memcached answers {expected:?}; before:\n{}",
            history[history.len().saturating_sub(30)..].join("\n")
        );
    }
}

/// memcached 1.6.18 looks for a minus sign in numbers from 2^63, and looks on behind the value's end, where it may find
/// one and refuse to count.
fn strays_beyond_the_value(act: &Act, theirs: &[Answer], ours: &[Answer]) -> bool {
    let ([theirs], [ours]) = (theirs, ours) else {
        // A quiet command is answered by the side that refuses.
        return matches!(act.opcode, 0x15 | 0x16)
            && theirs.iter().any(|answer| answer.status == 6)
            && ours.is_empty();
    };
    let counts = matches!(act.opcode, 0x05 | 0x06);
    counts && theirs.status == 6 && ours.status == 0
}

/// Of two reasons to refuse arithmetic, another version and none that is a number, each says one.
fn differs_as_written(theirs: &[Answer], ours: &[Answer]) -> bool {
    matches!((theirs, ours), ([theirs], [ours]) if theirs.status == 6 && ours.status == 2)
}

/// Keys of odd lengths and any bytes.
fn key(random: &mut fastrand::Rng, at: usize) -> Vec<u8> {
    let bytes = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 64, 249, 250][at % 13];
    let mut key: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(bytes).collect();
    // None like another.
    key[0] = u8::try_from(at).unwrap();
    if at >= KEYS / 2 {
        for byte in &mut key {
            *byte = b'a' + *byte % 26;
        }
        key[0] = b'A' + u8::try_from(at).unwrap();
    }
    key
}

/// One request, or several of which none counts: memcached pads a number in place, except while an answer with the old
/// one waits to be sent.
fn some_acts(random: &mut fastrand::Rng, keys: &[Vec<u8>]) -> Vec<Act> {
    let count = if random.u8(..4) == 0 { random.usize(2..8) } else { 1 };
    let acts: Vec<Act> = std::iter::repeat_with(|| act(random, keys)).take(count).collect();
    let counts = |act: &Act| matches!(act.opcode, 0x05 | 0x06 | 0x15 | 0x16);
    if acts.iter().any(counts) { acts[..1].to_vec() } else { acts }
}

fn act(random: &mut fastrand::Rng, keys: &[Vec<u8>]) -> Act {
    let at = random.usize(..KEYS);
    let quietly = random.u8(..3) == 0;
    let one_of = |random: &mut fastrand::Rng, loud: &[u8], quiet: &[u8]| {
        let place = random.usize(..loud.len());
        if quietly { quiet[place] } else { loud[place] }
    };
    let mut act = Act { opcode: 0, at, own_cas: false, extras: vec![], key: keys[at].clone(), value: vec![] };
    match random.u8(..100) {
        0..30 => {
            act.opcode = one_of(random, &[0x01, 0x01, 0x02, 0x03], &[0x11, 0x11, 0x12, 0x13]);
            act.extras = [random.choice([0, 5, u32::MAX]).unwrap().to_be_bytes(), exptime(random)].concat();
            act.value = value(random);
            act.own_cas = random.u8(..5) == 0;
        }
        30..36 => {
            act.opcode = one_of(random, &[0x0e, 0x0f], &[0x19, 0x1a]);
            act.value = value(random);
            act.own_cas = random.u8(..5) == 0;
        }
        36..54 => act.opcode = one_of(random, &[GET, 0x0c], &[0x09, 0x0d]),
        54..62 => {
            act.opcode = one_of(random, &[0x1d, 0x23, 0x1c], &[0x1e, 0x24, 0x1c]);
            act.extras = exptime(random).to_vec();
        }
        62..80 => {
            act.opcode = one_of(random, &[0x05, 0x06], &[0x15, 0x16]);
            let number =
                |random: &mut fastrand::Rng| random.choice([0, 1, 7, 100, 1 << 63, u64::MAX]).unwrap();
            let (delta, initial) = (number(random), number(random));
            let exptime = if random.bool() { exptime(random) } else { u32::MAX.to_be_bytes() };
            act.extras = [&delta.to_be_bytes()[..], &initial.to_be_bytes(), &exptime].concat();
            act.own_cas = random.u8(..5) == 0;
        }
        80..88 => {
            act.opcode = one_of(random, &[0x04], &[0x14]);
            act.own_cas = random.u8(..4) == 0;
        }
        rest => {
            act.key = vec![];
            match rest {
                88 => {
                    act.opcode = one_of(random, &[0x08], &[0x18]);
                    act.extras = if random.bool() { vec![0; 4] } else { vec![] };
                }
                89..92 => act.opcode = NOOP,
                92 => act.opcode = 0x0b,
                93..96 => {
                    act.opcode = STAT;
                    let subjects =
                        ["", "settings", "items", "slabs", "sizes", "reset", "detail on", "nonsense"];
                    act.key = random.choice(subjects).unwrap().as_bytes().to_vec();
                }
                96 => act.opcode = 0x1b,
                97 => act.opcode = 0x20,
                // memcached throws the body of an unknown command away and then its extras and key once more.
                _ => {
                    act.opcode = random.u8(0x25..);
                    act.value = if random.bool() { value(random) } else { vec![] };
                }
            }
        }
    }
    act
}

fn exptime(random: &mut fastrand::Rng) -> [u8; 4] {
    // Never, in a while, in 1970, in 2100, and as late as can be said.
    let times = [0_u32, 0, 0, 1_000, 2_592_000, EXPIRED, 4_102_444_800, u32::MAX];
    random.choice(times).unwrap().to_be_bytes()
}

fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let value = any_value(random);
    // In blanks alone memcached looks for a number behind their end.
    let blank = !value.is_empty() && value.iter().all(|byte| *byte == b' ' || (b'\t'..=b'\r').contains(byte));
    if blank { b"blank".to_vec() } else { value }
}

fn any_value(random: &mut fastrand::Rng) -> Vec<u8> {
    match random.u8(..10) {
        0 => vec![],
        1..5 => {
            let numbers = ["1", "10", "99", "100", "007", " 5", "18446744073709551615", "5x"];
            random.choice(numbers).unwrap().as_bytes().to_vec()
        }
        5..9 => {
            let bytes = random.usize(..130);
            std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
        }
        // Together below the 512 KiB from which memcached keeps a value in pieces and adds nothing to it.
        _ => vec![random.u8(..); random.usize(..40_000)],
    }
}

/// What both answer to bytes and the end of them, until they close.
fn until_closed(mut client: Client, bytes: &[u8]) -> Vec<u8> {
    // A peer that has closed already does not take all of it.
    let _ = client.try_send(bytes);
    client.half_close();
    client.rest()
}

#[test]
fn frames_that_are_none_meet_what_they_meet_at_memcached() {
    let Some(memcached) = Memcached::start_with(&["-I", "1m"]) else {
        skipped("memcached is not installed, so its answers cannot be compared");
        return;
    };
    let daemon = Daemon::start(&[]);
    let noop = frame(NOOP, 1, 0, b"", b"", b"");
    let set = frame(0x01, 2, 0, &[0; 8], b"key", b"value");
    let with = |at: usize, bytes: &[u8]| {
        let mut frame = set.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        frame
    };
    let mut streams = vec![
        // The body is shorter than extras and key, or than nothing.
        with(8, &10_u32.to_be_bytes()),
        with(8, &0_u32.to_be_bytes()),
        with(2, &300_u16.to_be_bytes()),
        // Text in the middle, an answer, nothing.
        [&noop[..], b"get key and more than a header of frames\r\n"].concat(),
        [&noop[..], &with(0, &[0x81])].concat(),
        [&noop[..], &with(0, &[0])].concat(),
        // Too large: thrown away, and the connection goes on.
        frame(0x01, 3, 0, &[0; 8], b"key", &vec![b'x'; 2 << 20]),
        frame(0x12, 3, 0, &[0; 8], b"key", &vec![b'x'; 2 << 20]),
        frame(0x0e, 3, 0, b"", b"key", &vec![b'x'; 2 << 20]),
        // SASL where there is none.
        frame(0x20, 4, 0, b"", b"", b""),
        frame(0x21, 4, 0, b"", b"PLAIN", b"\0user\0password"),
        frame(0x22, 4, 0, b"", b"PLAIN", b""),
        frame(0x21, 4, 0, b"", b"", b"data"),
        frame(0x07, 5, 0, b"", b"", b""),
        frame(0x17, 5, 0, b"", b"", b""),
    ];
    // Extras, key or value that an opcode does not have. Of a touch memcached does not look at the body.
    let extras = [&b""[..], &[0; 4], &[0; 8], &[0; 20]];
    for opcode in (0..=0x1a).chain([0x20]).filter(|opcode| *opcode != STAT) {
        for extras in extras {
            for (key, value) in
                [(&b""[..], &b""[..]), (b"k", b""), (b"k", b"v"), (b"", b"v"), (&[b'k'; 251], b"")]
            {
                streams.push(frame(opcode, 6, 0, extras, key, value));
            }
        }
    }
    // memcached waits for as much as the header says before it refuses; what follows a frame that is whole is none.
    let mut streams: Vec<Vec<u8>> =
        streams.into_iter().map(|stream| [&stream[..], &noop, &[b'x'; 600]].concat()).collect();
    // Cut off, and nothing follows.
    streams.extend((0..set.len()).map(|cut| set[..cut].to_vec()));
    // A frame behind text is text.
    streams.push([b"version\r\n", &frame(0x0b, 1, 0, b"", b"", b"")[..], b"\r\nget key\r\n"].concat());
    for stream in streams {
        let [expected, found] =
            [memcached.connect(), daemon.connect()].map(|client| versionless(&until_closed(client, &stream)));
        assert!(
            expected == found,
            "to {} memcached answers {}, found {}",
            short(&stream),
            expected.escape_ascii(),
            found.escape_ascii()
        );
    }
}

/// Without the CAS of stores, and with one version of the two.
fn versionless(answers: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = answers;
    while let Some((head, after)) = rest.split_first_chunk::<24>().filter(|(head, _)| head[0] == 0x81) {
        let body = u32::from_be_bytes(head[8..12].try_into().unwrap()) as usize;
        let (body, after) = after.split_at(body.min(after.len()));
        out.extend_from_slice(&head[..16]);
        out.extend_from_slice(body);
        rest = after;
    }
    out.extend_from_slice(rest);
    String::from_utf8_lossy(&out).replace("1.6.18", "1.6.45").into_bytes()
}
