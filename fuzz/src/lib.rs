//! Fuzz targets, one module for each parser. A target is a function of bytes, so that libFuzzer (which wants the
//! nightly toolchain) and ordinary tests (which do not) run the same checks.

pub mod memcache;
