//! Forwarded sessions beside a source that is simulated message by message.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends where something is missing, and says its seed"
)]

#[path = "../../../../fuzz/src/forward.rs"]
#[allow(missing_docs, unreachable_pub, clippy::new_without_default, reason = "what libFuzzer runs, too")]
mod generated;
#[path = "../../../../fuzz/src/harness.rs"]
#[allow(dead_code, missing_docs, unreachable_pub, reason = "shared with other crates, which use other parts")]
mod harness;
mod hostile;
mod programs;
mod source;
