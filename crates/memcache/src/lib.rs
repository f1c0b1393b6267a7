//! memcached's protocols: bytes to requests, responses to bytes, no I/O. This page describes the text protocol;
//! [`binary`] is the other one.
//!
//! A [`Parser`] looks at the bytes that have arrived on a connection and says one of three things: they begin
//! with a *complete* [`Request`], they are *incomplete* (and how many bytes are wanted), or they are *malformed*
//! (which rule they break, how much to throw away, whether the connection can go on). The caller owns the socket
//! and the buffer, executes the request against whatever it has, and writes the answer with the functions of
//! [`compose`](mod@compose). Requests borrow from the buffer; nothing is copied or allocated on the way in.
//!
//! The parser keeps no state between calls. A request that arrives in pieces is parsed again from its beginning
//! when enough of it is there, which `needed` makes rare. Any split of a stream gives the same requests.
//!
//! Behaviour is memcached 1.6.45's, with the exceptions that `docs/memcached.md` lists. Beyond memcached there
//! are `sql` and `sqlp`, which carry a SQL statement.
//!
//! No input can make this crate panic: indexing, unchecked arithmetic, `unwrap` and `unsafe` are refused by lint.
//!
//! ```
//! use memcache::{Parsed, Parser, Reply, Request, Verb, compose};
//! use std::collections::HashMap;
//!
//! let parser = Parser::default();
//! let mut cache = HashMap::new();
//! let mut input: &[u8] = b"set greeting 0 0 5\r\nhello\r\nget greeting other\r\n";
//! let mut output = Vec::new();
//!
//! while let Parsed::Complete { request, consumed } = parser.parse(input) {
//!     match request {
//!         Request::Store { verb: Verb::Set, key, flags, value, noreply, .. } => {
//!             cache.insert(key.to_vec(), (flags, value.to_vec()));
//!             if !noreply {
//!                 compose(&Reply::Stored, &mut output);
//!             }
//!         }
//!         Request::Get { keys, cas: false } => {
//!             for key in keys {
//!                 if let Some((flags, value)) = cache.get(key) {
//!                     compose::value_header(key, *flags, value.len(), None, &mut output);
//!                     output.extend_from_slice(value);
//!                     compose::value_end(&mut output);
//!                 }
//!             }
//!             compose(&Reply::End, &mut output);
//!         }
//!         _ => compose(&Reply::Error, &mut output),
//!     }
//!     input = &input[consumed..];
//! }
//! assert_eq!(output, b"STORED\r\nVALUE greeting 0 5\r\nhello\r\nEND\r\n");
//! ```
#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        reason = "tests are meant to stop where something is wrong"
    )
)]

mod base64;
pub mod binary;
mod command;
pub mod compose;
pub mod event;
mod frame;
mod greeting;
mod limits;
pub mod login;
mod malformed;
mod meta;
mod meta_command;
mod meta_compose;
mod operator;
mod parse;
mod request;
mod token;

pub use compose::{Reply, compose};
pub use frame::Parsed;
pub use greeting::{Stranger, stranger};
pub use limits::*;
pub use malformed::{Malformed, Then};
pub use meta::{Key, KeyBuffer, Meta, MetaOptions, Mode};
pub use meta_compose::{ItemFacts, MetaCode, MetaFacts, TimeLeft, meta_debug, meta_line};
pub use parse::{Parser, ToReceive};
#[cfg(debug_assertions)]
pub use request::DebugTime;
pub use request::{Classes, Dump, Keys, Operator, Request, Stats, Verb, Watch};
