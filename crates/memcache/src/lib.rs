//! The memcached protocol: bytes to requests, responses to bytes, no I/O.
#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

pub mod compose;
mod limits;
mod malformed;
mod parse;
mod request;
mod token;

pub use compose::{Reply, compose};
pub use limits::*;
pub use malformed::{Malformed, Then};
pub use parse::{Parsed, Parser};
pub use request::{Dump, Keys, Operator, Request, Stats, Verb};
