//! The example in the documentation is what a client can send.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::understood;

const REFERENCE: &str = include_str!("../../../docs/memcached.md");

/// What the client sends in the first block of text that holds `command`.
fn sent(command: &str) -> String {
    let block = REFERENCE.split("```text\n").skip(1).find(|block| block.contains(command)).unwrap();
    let lines = block.split("```").next().unwrap().lines();
    lines.filter_map(|line| line.strip_prefix("> ")).flat_map(|line| [line, "\r\n"]).collect()
}

#[test]
fn the_sql_session_has_the_right_lengths() {
    let outcomes = understood(sent("> sqlp").as_bytes());
    let commands: Vec<&str> = outcomes.iter().filter_map(|outcome| outcome.split(' ').next()).collect();
    assert_eq!(commands, ["sql", "set", "sql", "sqlp", "sql", "get", "sql"], "{outcomes:#?}");
}

#[test]
fn every_fixed_error_is_listed() {
    for line in [
        "CLIENT_ERROR bad command line format",
        "CLIENT_ERROR bad command line",
        "CLIENT_ERROR bad data chunk",
        "CLIENT_ERROR invalid exptime argument",
        "CLIENT_ERROR invalid numeric delta argument",
        "CLIENT_ERROR cannot increment or decrement non-numeric value",
        "CLIENT_ERROR invalid flag",
        "CLIENT_ERROR duplicate flag",
        "CLIENT_ERROR invalid or duplicate flag",
        "CLIENT_ERROR options flags are too long",
        "CLIENT_ERROR bad token in command line format",
        "CLIENT_ERROR opaque token too long",
        "CLIENT_ERROR error decoding key",
        "CLIENT_ERROR incorrect length for M token",
        "CLIENT_ERROR invalid mode for ms M token",
        "CLIENT_ERROR invalid mode for ma M token",
        "CLIENT_ERROR Illegal slab id",
        "CLIENT_ERROR invalid shutdown mode",
        "CLIENT_ERROR line too long",
        "SERVER_ERROR object too large for cache",
        "SERVER_ERROR out of memory storing object",
        "ERROR Too many open connections",
    ] {
        assert!(REFERENCE.contains(&format!("| `{line}` |")), "{line}");
    }
}
