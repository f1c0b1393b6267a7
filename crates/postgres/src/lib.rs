//! The PostgreSQL wire protocol: bytes to requests, answers to bytes. No I/O, no store.
//!
//! A connection opens with one packet without a type ([`opening`]); then every message has a type and a length, and
//! [`frontend::parse`] finds one in what has arrived, or says how much is missing. Answers are appended to a buffer
//! by [`backend`]. Values travel as text or binary, by their type's object identifier ([`oid`]): [`encode`](encode())
//! writes what a result holds, [`decode`](decode()) reads a parameter.
//!
//! `pgwire`'s codec reads the opening packet and writes what is sent once in a while: parameters, descriptions,
//! errors. What a prepared statement sends on each use (`Bind`, `Execute`, `Sync`, `DataRow`) is read and written in
//! place here: no message is copied to be looked at, and nothing is allocated for it. The requests are read here
//! too because `pgwire` replaces bytes that are not UTF-8, where PostgreSQL refuses them, and trusts the lengths
//! within a message.
//!
//! ```
//! use postgres::frontend::{self, Parsed, Request};
//!
//! let message = b"Q\0\0\0\x0dSELECT 1\0";
//! let Parsed::Complete { request, consumed } = frontend::parse(message) else { panic!("it is whole") };
//! assert_eq!(consumed, message.len());
//! assert!(matches!(request, Request::Query("SELECT 1")));
//! ```
#![forbid(unsafe_code)]

mod address;
mod array;
pub mod backend;
pub mod copy;
mod datetime;
mod datum;
mod decode;
mod encode;
pub mod frontend;
mod integer;
mod interval;
pub mod limits;
mod list;
mod numeric;
pub mod oid;
pub mod opening;
mod real;

pub use datum::{Datum, Format, Value, ValueError};
pub use decode::decode;
pub use encode::encode;
