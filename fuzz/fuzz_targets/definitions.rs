//! `cargo +nightly fuzz run definitions`
#![no_main]

use std::sync::LazyLock;

use sqlcached_fuzz::definitions::{File, Specimen, fuzz_definitions};

static FILE: LazyLock<File> = LazyLock::new(|| File::new("definitions"));
static SPECIMEN: LazyLock<Specimen> = LazyLock::new(|| Specimen::new(&FILE));

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_definitions(&SPECIMEN, &FILE, data);
});
