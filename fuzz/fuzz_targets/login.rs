//! `cargo +nightly fuzz run login -- -dict=fuzz/dictionaries/memcache.dict`
#![no_main]

use std::sync::LazyLock;

use sqlcached_fuzz::login::Target;

static TARGET: LazyLock<Target> = LazyLock::new(Target::new);

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET.check(data));
