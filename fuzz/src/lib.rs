//! Fuzz targets, one module for each. A target is a function of bytes, so that libFuzzer (which wants the nightly
//! toolchain) and ordinary tests (which do not) run the same checks.

pub mod arena;
pub mod binary;
pub mod definitions;
pub mod dialogue;
pub mod forward;
pub mod grammar;
pub mod harness;
pub mod login;
pub mod memcache;
pub mod postgres;
pub mod rules;
pub mod sql;
pub mod sqltext;
pub mod tls;
