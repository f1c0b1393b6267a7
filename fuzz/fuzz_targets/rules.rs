//! `cargo +nightly fuzz run rules`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sqlcached_fuzz::rules::check(data));
