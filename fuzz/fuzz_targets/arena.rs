//! `cargo +nightly fuzz run arena`
#![no_main]

use std::sync::LazyLock;

use sqlcached_fuzz::arena::{Specimen, fuzz_attach};

static SPECIMEN: LazyLock<Specimen> = LazyLock::new(|| Specimen::new(1));

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_attach(&SPECIMEN, data);
});
