//! Generated streams: however they are cut, they mean the same, and nothing that is accepted breaks a rule.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::fuzz::fuzz_memcache;
use common::{Random, seed};

/// Inputs a run: a second or two. `FUZZ_INPUTS` asks for more.
const INPUTS: usize = 300_000;

/// Words of the protocol, from the dictionary that libFuzzer uses too.
const DICTIONARY: &str = include_str!("../../../fuzz/dictionaries/memcache.dict");

fn words() -> Vec<Vec<u8>> {
    DICTIONARY
        .lines()
        .filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'))
        .map(|word| {
            let mut bytes = Vec::new();
            let mut rest = word;
            while let Some((before, after)) = rest.split_once('\\') {
                bytes.extend_from_slice(before.as_bytes());
                let (byte, taken) = match after.as_bytes()[0] {
                    b'r' => (b'\r', 1),
                    b'n' => (b'\n', 1),
                    b'x' => (u8::from_str_radix(&after[1..3], 16).unwrap(), 3),
                    other => (other, 1),
                };
                bytes.push(byte);
                rest = &after[taken..];
            }
            bytes.extend_from_slice(rest.as_bytes());
            bytes
        })
        .collect()
}

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
#[allow(clippy::disallowed_methods, reason = "how long to run is asked for by hand")]
fn generated_streams_keep_the_rules() {
    let mut random = Random(seed());
    let words = words();
    let inputs = std::env::var("FUZZ_INPUTS").map_or(INPUTS, |inputs| inputs.parse().unwrap());
    for _ in 0..inputs {
        let input = stream(&mut random, &words);
        // The input is printed with the failure: it is the evidence, and the seed only the way back to it.
        let result = std::panic::catch_unwind(|| fuzz_memcache(&input));
        if let Err(cause) = result {
            eprintln!("input: {}", input.escape_ascii());
            std::panic::resume_unwind(cause);
        }
    }
}

#[test]
fn the_dictionary_is_read() {
    let words = words();
    assert!(words.contains(&b"get ".to_vec()));
    assert!(words.contains(&b"\r\n".to_vec()));
    assert!(words.contains(&vec![0x7f]));
    assert!(words.len() > 50);
}
