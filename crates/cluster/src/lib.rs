//! Caches that hear each other: what one says of rows that are not valid any more, the others apply, or they know that
//! they did not.
//!
//! `wire` are the bytes of a message, `chain` the hash by which two caches compare what they have heard, `follow` the
//! checks of each message, `member` what a cache sends and where it goes on. None of them does I/O. `apply` does what
//! was heard, and `nats` carries it. Why it is made so: docs/cluster.md.
#![forbid(unsafe_code)]

#[cfg(feature = "nats")]
mod apply;
mod chain;
mod follow;
mod limits;
mod member;
#[cfg(feature = "nats")]
mod nats;
mod nodes;
#[cfg(feature = "nats")]
mod shown;
#[cfg(test)]
mod simulation;
mod wire;

#[cfg(feature = "nats")]
pub use nats::Buses;
