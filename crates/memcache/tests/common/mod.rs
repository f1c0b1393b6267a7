//! What the tests of this crate share: a connection that says in words what it understood.
#![allow(dead_code, unreachable_pub, reason = "each test uses its share")]
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::format_push_string, reason = "test support")]

#[path = "../../../../fuzz/src/binary.rs"]
pub mod binary;
#[path = "../../../../fuzz/src/memcache.rs"]
pub mod fuzz;
#[path = "../../../../fuzz/src/harness.rs"]
pub mod harness;

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
