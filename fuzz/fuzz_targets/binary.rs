//! `cargo +nightly fuzz run binary`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sqlcached_fuzz::binary::fuzz_binary(data));
