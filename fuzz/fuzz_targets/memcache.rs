//! `cargo +nightly fuzz run memcache -- -dict=fuzz/dictionaries/memcache.dict`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sqlcached_fuzz::memcache::fuzz_memcache(data));
