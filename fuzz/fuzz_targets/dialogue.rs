//! `cargo +nightly fuzz run dialogue -- -dict=fuzz/dictionaries/memcache.dict`
#![no_main]

use std::sync::{LazyLock, Mutex};

use sqlcached_fuzz::dialogue::Daemon;

static DAEMON: LazyLock<Mutex<Daemon>> = LazyLock::new(|| Mutex::new(Daemon::new()));

libfuzzer_sys::fuzz_target!(|data: &[u8]| DAEMON.lock().expect("one thread").check(data));
