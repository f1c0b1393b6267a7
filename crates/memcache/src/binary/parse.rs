//! From bytes to requests.

use super::header::{HEADER_BYTES, Header, Id, MAGIC};
use super::opcode::Opcode;
use super::{Request, Status};
use crate::limits::BINARY_BODY_MAX;
use crate::{Limits, Then};

/// What the first bytes of the input are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A whole request.
    Complete {
        /// The request; it borrows from the input.
        request: Request<'a>,
        /// How many bytes of the input it took.
        consumed: usize,
    },
    /// The beginning of a request.
    Incomplete {
        /// How many bytes the buffer must hold before more can be said; always more than the input has. It is what the
        /// peer claims, not what it has sent, and never more than the limits allow.
        needed: usize,
    },
    /// A frame that is not executed.
    Refused {
        /// What its answer repeats.
        id: Id,
        /// Why; it is the answer.
        status: Status,
        /// How many bytes of the input it took.
        consumed: usize,
        /// How many bytes after those belong to it and must be thrown away as they come.
        swallow: usize,
        /// What becomes of the connection.
        then: Then,
        /// The key whose old value must go: a set that failed must not leave what it meant to replace.
        invalidate: Option<&'a [u8]>,
    },
    /// No frame: the stream is out of step, and is closed without an answer.
    OutOfStep,
}

/// The beginning of a request that stores a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToReceive<'a> {
    /// The request; its value is the part that has come.
    pub request: Request<'a>,
    /// Bytes of header, extras and key.
    pub head: usize,
    /// Bytes that the value is to have.
    pub bytes: usize,
}

/// The first request of `input`. The header alone decides whether a frame is refused, so nobody waits for the rest of
/// one that is.
#[inline]
pub fn parse<'a>(limits: &Limits, input: &'a [u8]) -> Parsed<'a> {
    if input.first().is_some_and(|magic| *magic != MAGIC) {
        return Parsed::OutOfStep;
    }
    let Some((header, rest)) = Header::split(input) else {
        return Parsed::Incomplete { needed: HEADER_BYTES };
    };
    let (opcode, bytes) = match judge(limits, &header) {
        Ok(judged) => judged,
        Err(refused) => return refused,
    };
    if bytes > limits.value_max && opcode.stores() {
        return too_large(opcode, &header, rest, bytes);
    }
    let Some(body) = rest.get(..header.body) else {
        return Parsed::Incomplete { needed: HEADER_BYTES.saturating_add(header.body) };
    };
    match request(opcode, &header, body) {
        Some(request) => Parsed::Complete { request, consumed: HEADER_BYTES.saturating_add(header.body) },
        // Not reached: what is served has a command.
        None => skip(&header, Status::UnknownCommand),
    }
}

/// The storing request whose head `input` begins with, when its value has not come whole; of anything else none.
pub fn receiving<'a>(limits: &Limits, input: &'a [u8]) -> Option<ToReceive<'a>> {
    let (header, rest) = Header::split(input).filter(|(header, _)| header.magic == MAGIC)?;
    let (opcode, bytes) = judge(limits, &header).ok()?;
    if !opcode.stores() || bytes > limits.value_max || rest.len() >= header.body {
        return None;
    }
    Some(ToReceive { request: request(opcode, &header, rest)?, head: header.head(), bytes })
}

/// The opcode of a header that may stand before a frame, and the bytes of its value.
#[inline]
fn judge<'a>(limits: &Limits, header: &Header) -> Result<(Opcode, usize), Parsed<'a>> {
    let Some(bytes) = header.value() else { return Err(close(header, Status::UnknownCommand)) };
    if header.key > limits.key_max || header.body > BINARY_BODY_MAX {
        return Err(close(header, Status::InvalidArguments));
    }
    match Opcode::of(header.id.opcode) {
        None => Err(skip(header, Status::UnknownCommand)),
        Some(opcode) if !opcode.fits(header.extras, header.key, bytes) => {
            Err(close(header, Status::InvalidArguments))
        }
        Some(opcode) if !opcode.is_served() => Err(skip(header, Status::UnknownCommand)),
        Some(opcode) => Ok((opcode, bytes)),
    }
}

/// The request of a header whose extras and key have come; the rest of `body` is its value, or what has come of it.
#[inline]
fn request<'a>(opcode: Opcode, header: &Header, body: &'a [u8]) -> Option<Request<'a>> {
    let (extras, rest) = body.split_at_checked(header.extras)?;
    let (key, value) = rest.split_at_checked(header.key)?;
    let command = opcode.command(extras)?;
    Some(Request { id: header.id, command, quiet: opcode.quiet, cas: header.cas, key, value })
}

/// A value above its limit: it is thrown away, and the connection goes on.
#[cold]
fn too_large<'a>(opcode: Opcode, header: &Header, rest: &'a [u8], bytes: usize) -> Parsed<'a> {
    let Some((_, key)) = rest.split_at_checked(header.extras) else {
        return Parsed::Incomplete { needed: header.head() };
    };
    let Some(key) = key.get(..header.key) else { return Parsed::Incomplete { needed: header.head() } };
    Parsed::Refused {
        id: header.id,
        status: Status::TooLarge,
        consumed: header.head(),
        swallow: bytes,
        then: Then::Continue,
        invalidate: opcode.replaces_always().then_some(key),
    }
}

/// A frame whose lengths can be trusted, thrown away whole. memcached throws away the body of a frame with extras or a
/// key once more.
#[cold]
fn skip<'a>(header: &Header, status: Status) -> Parsed<'a> {
    Parsed::Refused {
        id: header.id,
        status,
        consumed: HEADER_BYTES,
        swallow: header.body,
        then: Then::Continue,
        invalidate: None,
    }
}

/// A frame after which nothing can be trusted.
#[cold]
fn close<'a>(header: &Header, status: Status) -> Parsed<'a> {
    Parsed::Refused {
        id: header.id,
        status,
        consumed: HEADER_BYTES,
        swallow: 0,
        then: Then::Close,
        invalidate: None,
    }
}
