//! `cargo +nightly fuzz run tls`
#![no_main]

use std::sync::{LazyLock, Mutex};

use sqlcached_fuzz::tls::Daemon;

static DAEMON: LazyLock<Mutex<Daemon>> = LazyLock::new(|| Mutex::new(Daemon::new()));

libfuzzer_sys::fuzz_target!(|data: &[u8]| DAEMON.lock().expect("one thread").check(data));
