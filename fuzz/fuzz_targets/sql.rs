//! `cargo +nightly fuzz run sql`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sqlcached_fuzz::sql::fuzz_sql(data));
