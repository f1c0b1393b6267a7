//! Caches that hear each other: what one says of rows that are not valid any more, the others apply, or they know that
//! they did not.
//!
//! `wire` are the bytes of a message, `chain` the hash by which two caches compare what they have heard, `follow` the
//! checks of each message, `member` what a cache sends and where it goes on, `rejoin` how it gets rows that it lacks.
//! None of them does I/O. `apply` does what was heard, and `drive` is a cache's life on a bus. `nats` and `postgres`
//! carry the messages, each as a `carrier`.
//! Why it is made so: docs/cluster.md.
#![forbid(unsafe_code)]

mod apply;
mod broken;
mod buses;
mod carrier;
mod chain;
mod drive;
mod follow;
mod guard;
mod limits;
mod member;
#[cfg(feature = "nats")]
mod nats;
mod nodes;
mod noted;
mod postgres;
mod rejoin;
mod settled;
mod shown;
#[cfg(test)]
mod simulation;
mod wire;

pub use buses::Buses;
