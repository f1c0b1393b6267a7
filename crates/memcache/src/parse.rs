//! From bytes to requests.

use crate::{Limits, Malformed, Request, Then};

/// Turns bytes into requests. It keeps nothing between calls: the bytes that are not consumed are its state.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    limits: Limits,
}

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
        /// How many bytes the buffer must hold before parsing again can give anything else; always more than the
        /// input has. It is the length of the whole request as soon as that is known, so that the buffer grows once.
        needed: usize,
        /// How many bytes at the beginning have been searched for the end of the line in vain.
        /// [`Parser::parse_from`] takes it, so that a long line arriving slowly is not searched again and again.
        searched: usize,
    },
    /// Not a request.
    Malformed {
        /// The rule it broke.
        reply: Malformed,
        /// How many bytes of the input it took; never 0 unless the connection is closed.
        consumed: usize,
        /// How many bytes after those belong to it and must be thrown away as they come.
        swallow: usize,
        /// What becomes of the connection.
        then: Then,
        /// The key whose old value must go: a `set` that failed must not leave what it meant to replace.
        invalidate: Option<&'a [u8]>,
        /// The peer asked for no answer, and gets none.
        noreply: bool,
    },
}

impl Parser {
    /// A parser that holds its peer to these limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits }
    }

    /// The limits it was made with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The first request of `input`.
    pub fn parse<'a>(&self, input: &'a [u8]) -> Parsed<'a> {
        self.parse_from(input, 0)
    }

    /// As [`Parser::parse`], where the last answer for the same bytes was `Incomplete` with this `searched`.
    pub fn parse_from<'a>(&self, input: &'a [u8], searched: usize) -> Parsed<'a> {
        let _ = searched;
        Parsed::Incomplete { needed: input.len().saturating_add(1), searched: 0 }
    }
}
