//! Generated dialogues with a running server: nothing that a peer sends hurts another peer.
#![allow(unreachable_pub, dead_code, clippy::print_stdout, reason = "the modules are fuzz targets too")]

#[path = "../../../../fuzz/src/dialogue.rs"]
mod dialogue;
#[path = "../../../../fuzz/src/harness.rs"]
pub(crate) mod harness;

use dialogue::{Daemon, FRAMES, REQUESTS};
use harness::{Random, Run, fails, words};

/// More than fit into a run's seconds.
const INPUTS: u64 = 50_000;

/// Words of the protocol, from the dictionary that libFuzzer uses too.
const DICTIONARY: &str = include_str!("../../../../fuzz/dictionaries/memcache.dict");

/// Whole requests, words in any order, and bytes; some of it flipped or cut.
fn stream(random: &mut Random, words: &[Vec<u8>]) -> Vec<u8> {
    let mut stream = vec![random.byte()];
    let binary = random.below(3) == 0;
    for _ in 0..=random.below(12) {
        match random.below(8) {
            _ if binary => stream.extend(FRAMES[random.below(FRAMES.len())]),
            0 => stream.extend(random.bytes(20)),
            1 => stream.extend(b"\r\n"),
            2 | 3 => (0..=random.below(5)).for_each(|_| stream.extend(&words[random.below(words.len())])),
            _ => stream.extend(REQUESTS[random.below(REQUESTS.len())]),
        }
    }
    if random.below(3) == 0 {
        let at = random.below(stream.len());
        stream[at] ^= 1 << random.below(8);
    }
    if random.below(4) == 0 {
        stream.truncate(random.below(stream.len()) + 1);
    }
    stream
}

#[test]
fn generated_dialogues_hurt_nobody() {
    let words = words(DICTIONARY);
    let target = || {
        let mut daemon = Daemon::new();
        move |data: &[u8]| daemon.check(data)
    };
    Run::new(INPUTS).of(target, move |random| stream(random, &words));
}

/// A command that panics ends its connection only, so the target must look closer.
#[test]
fn a_planted_panic_is_noticed() {
    let planted = |armed: bool| {
        move || {
            let mut daemon = Daemon::new();
            if armed {
                engine::testing::arm("get", b"planted");
            }
            move |_: &[u8]| daemon.check(b"\0get planted\r\n")
        }
    };
    assert!(fails(Run::new(1), planted(true), |_| Vec::new()));
    assert!(!fails(Run::new(1), planted(false), |_| Vec::new()));
}
