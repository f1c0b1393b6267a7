//! `cargo +nightly fuzz run sqltext`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sqlcached_fuzz::sqltext::fuzz_sqltext(data));
