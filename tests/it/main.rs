//! The daemon as its users meet it: the real program, started with flags, spoken to over sockets, by real clients
//! and by bytes. `SEED=n` replays a random test.
//!
//! One binary: it is linked once. Every test has a daemon, a directory and sockets of its own.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on stops, and says why")]
#![allow(clippy::disallowed_methods, reason = "these tests watch a real process from outside, in real time")]

mod client;
mod daemon;
mod relay;

mod access;
mod binary;
mod clients;
mod cluster;
mod console;
mod crash;
mod demo;
mod differential;
mod documents;
mod drivers;
mod dump;
mod forwarding;
mod guides;
mod http;
mod languages;
mod limits;
mod linearizability;
mod manifests;
mod mariadb;
mod memcached;
mod memory;
mod migrations;
mod operators;
mod orms;
mod packages;
mod placement;
mod read_through;
mod rules;
mod service;
mod settings;
mod shared_memory;
mod source_mirrors;
mod source_modes;
mod source_random;
mod source_views;
mod sources;
mod stampede;
mod start;
mod table_options;
mod tls;
mod top;
mod views;

use std::io::Write;

/// Says that this machine cannot run a test. `cargo xtask ci` counts what is said here as skipped, not as passed.
pub(crate) fn skipped(why: &str) {
    println!("skipped: {why}");
    if let Some(path) = std::env::var_os("SQLCACHED_SKIPPED_FILE") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{why}"));
    }
}

/// The seed of a random test: `SEED`, or a new one. Printed, so that a failure can be replayed.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("SEED").ok();
    let seed = given.map_or_else(|| fastrand::u64(..), |text| text.parse().expect("SEED is a number"));
    println!("SEED={seed}");
    seed
}
