//! memcached's binary protocol: frames to requests, answers to frames, no I/O.
//!
//! A frame is a header of [`HEADER_BYTES`] bytes, then extras, key and value, whose lengths the header says. [`parse`]
//! reports of the bytes that have arrived that they begin with a whole [`Request`], that bytes are missing, or that
//! the frame is refused (with which status, and whether the connection goes on). As the text parser it keeps nothing
//! between calls and copies nothing.
//!
//! A key is any bytes here: its length is declared, so nothing in it can begin another command.
//!
//! The commands of SASL are refused as a memcached without SASL does. Of peers that must prove a role they are read by
//! [`login`](crate::login).
//!
//! ```
//! use memcache::Limits;
//! use memcache::binary::{Answer, Command, Parsed, parse};
//!
//! // Noop with the opaque 7.
//! let frame = [0x80, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0];
//! let Parsed::Complete { request, consumed: 24 } = parse(&Limits::default(), &frame) else { panic!() };
//! assert_eq!(request.command, Command::Noop);
//! let mut out = Vec::new();
//! request.id.answer(&Answer::default(), &mut out);
//! assert_eq!(out[..16], [0x81, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
//! ```

mod answer;
mod header;
mod opcode;
mod parse;

pub use answer::{Answer, Status};
pub(crate) use header::Header;
pub use header::{HEADER_BYTES, Id, MAGIC};
pub use opcode::{Command, Condition};
pub use parse::{Parsed, ToReceive, parse, receiving};

/// One request. Its key is within the limit; key and value are empty where the command has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// What its answer repeats.
    pub id: Id,
    /// What is asked for.
    pub command: Command,
    /// Of a retrieval a miss is not answered, of any other command success is not.
    pub quiet: bool,
    /// The version that the command is about; 0 is any.
    pub cas: u64,
    /// The key, or the subject of `stat`.
    pub key: &'a [u8],
    /// The value to store.
    pub value: &'a [u8],
}
