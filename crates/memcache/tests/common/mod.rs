//! What the tests of this crate share: a connection that says in words what it understood.
#![allow(dead_code, unreachable_pub, reason = "each test uses its share")]
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::format_push_string, reason = "test support")]

#[path = "../../../../fuzz/src/memcache.rs"]
pub mod fuzz;

use memcache::{Limits, Parser};

/// What a connection with the default limits understands of `stream`, however it is cut.
pub fn understood(stream: &[u8]) -> Vec<String> {
    understood_within(&Limits::default(), stream)
}

/// As [`understood`], with other limits.
pub fn understood_within(limits: &Limits, stream: &[u8]) -> Vec<String> {
    let parser = Parser::new(limits.clone());
    let whole = fuzz::transcript(&parser, [stream]);
    if stream.len() < 100_000 {
        assert_eq!(whole, fuzz::transcript(&parser, stream.chunks(1)), "byte by byte");
    }
    whole
}

/// A small generator of random numbers (xorshift): tests need no more, and its seed is all there is to replay.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

/// `SEED` of the environment, or a fresh one; a failing test prints it.
#[allow(clippy::disallowed_methods, reason = "the one setting of random tests")]
pub fn seed() -> u64 {
    let seed: u64 = match std::env::var("SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => std::process::id().into(),
    };
    println!("SEED={seed}");
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}
