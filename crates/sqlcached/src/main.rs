//! The daemon: settings, start-up order, signals.

#![forbid(unsafe_code)]

fn main() {}
