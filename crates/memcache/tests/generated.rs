//! Generated streams: however they are cut, they mean the same, and nothing that is accepted breaks a rule.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::fuzz::fuzz_memcache;
use common::harness::{Random, Run, fails, words};

/// Inputs of a run, if its seconds allow so many.
const INPUTS: u64 = 300_000;

/// Words of the protocol, from the dictionary that libFuzzer uses too.
const DICTIONARY: &str = include_str!("../../../fuzz/dictionaries/memcache.dict");

/// Mostly commands that are right or nearly so, with their data; some of it flipped or cut.
fn stream(random: &mut Random, words: &[Vec<u8>]) -> Vec<u8> {
    let mut stream = vec![random.next().to_le_bytes()[0]];
    for _ in 0..=random.below(6) {
        match random.below(8) {
            0 => valid_store(random, &mut stream),
            1 => (0..random.below(20)).for_each(|_| stream.push(random.next().to_le_bytes()[3])),
            2 => stream.extend(b"\r\n"),
            _ => {
                for _ in 0..random.below(5) {
                    stream.extend_from_slice(&words[random.below(words.len())]);
                }
                stream.extend_from_slice(if random.below(3) == 0 { b"\n" } else { b"\r\n" });
            }
        }
    }
    for _ in 0..random.below(3) {
        let at = random.below(stream.len());
        stream[at] ^= 1 << random.below(8);
    }
    if random.below(4) == 0 {
        stream.truncate(random.below(stream.len()) + 1);
    }
    stream
}

fn valid_store(random: &mut Random, stream: &mut Vec<u8>) {
    let bytes = random.below(24);
    let verb = ["set", "add", "cas", "append", "sql", "sqlp"][random.below(6)];
    let line = match verb {
        "sql" => format!("sql {bytes}\r\n"),
        "sqlp" => format!("sqlp {bytes} 2\r\n"),
        "cas" => format!("cas key 1 0 {bytes} 7\r\n"),
        _ => format!("{verb} key 1 0 {bytes}\r\n"),
    };
    stream.extend(line.bytes());
    stream.extend((0..bytes).map(|_| random.next().to_le_bytes()[2]));
    stream.extend(b"\r\n");
    if verb == "sqlp" {
        stream.extend(b"[]\r\n");
    }
}

#[test]
fn generated_streams_keep_the_rules() {
    let words = words(DICTIONARY);
    Run::new(INPUTS).of(|| fuzz_memcache, move |random| stream(random, &words));
}

/// A target that takes one command for a mistake.
#[test]
fn a_planted_mistake_is_noticed() {
    let planted = || |data: &[u8]| assert!(!data.windows(5).any(|word| word == b"touch"));
    let words = words(DICTIONARY);
    assert!(fails(Run::new(INPUTS), planted, move |random| stream(random, &words)));
}

#[test]
fn the_dictionary_is_read() {
    let words = words(DICTIONARY);
    assert!(words.contains(&b"get ".to_vec()));
    assert!(words.contains(&b"\r\n".to_vec()));
    assert!(words.contains(&vec![0x7f]));
    assert!(words.len() > 50);
}
