//! What libFuzzer's target and the tests of this crate share.
#![allow(dead_code, unreachable_pub, reason = "each test uses its share")]
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::format_push_string, reason = "test support")]
#![allow(clippy::float_cmp, reason = "a value comes back as the same number, or is compared by a margin")]

#[path = "../../../../fuzz/src/postgres.rs"]
pub mod fuzz;
#[path = "../../../../fuzz/src/harness.rs"]
pub mod harness;
