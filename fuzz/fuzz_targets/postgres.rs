//! `cargo +nightly fuzz run postgres`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sqlcached_fuzz::postgres::fuzz_postgres(data));
