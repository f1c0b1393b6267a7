//! One command line, and what it turned out to be.

use crate::meta::Key;
use crate::{Malformed, Request, Then};

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
        /// How many bytes the buffer must hold before this can be a whole request; always more than the input has.
        /// (That it is malformed can show earlier, and is found all the same when so many are there.) It is the
        /// length of the whole request once the command line is there, and never more than the limits allow. It is
        /// what the peer claims, not what it has sent: grow the buffer as bytes arrive.
        needed: usize,
        /// How many bytes at the beginning have been searched for the end of the line in vain.
        /// [`Parser::parse_from`](crate::Parser::parse_from) takes it, so that a long line arriving slowly is not
        /// searched again and again.
        searched: usize,
    },
    /// Not a request.
    Malformed {
        /// The rule it broke.
        reply: Malformed,
        /// How many bytes of the input it took, at least one.
        consumed: usize,
        /// How many bytes after those belong to it and must be thrown away as they come.
        swallow: usize,
        /// What becomes of the connection.
        then: Then,
        /// The key whose old value must go: a `set` that failed must not leave what it meant to replace.
        invalidate: Option<Key<'a>>,
        /// The peer asked for no answer, and gets none.
        noreply: bool,
    },
}

/// A command line and what follows it.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// The line without its end.
    pub(crate) line: &'a [u8],
    /// Bytes of the line with its end.
    pub(crate) consumed: usize,
    /// What follows the line, as far as it has arrived.
    pub(crate) data: &'a [u8],
}

impl<'a> Frame<'a> {
    /// A request that is the line alone.
    #[inline]
    pub(crate) fn complete(&self, request: Request<'a>) -> Parsed<'a> {
        Parsed::Complete { request, consumed: self.consumed }
    }

    /// The line, and `after` bytes of data behind it, are not a request.
    pub(crate) fn malformed(&self, reply: Malformed, after: usize) -> Parsed<'a> {
        let consumed = self.consumed.saturating_add(after);
        Parsed::Malformed {
            reply,
            consumed,
            swallow: 0,
            then: Then::Continue,
            invalidate: None,
            noreply: false,
        }
    }

    /// As [`Frame::malformed`], and the peer may have asked for no answer.
    pub(crate) fn malformed_unless(&self, reply: Malformed, noreply: bool) -> Parsed<'a> {
        self.swallowing(reply, 0, noreply)
    }

    /// The line is not a request, and `swallow` bytes of data that come with it are thrown away.
    pub(crate) fn swallowing(&self, reply: Malformed, swallow: usize, noreply: bool) -> Parsed<'a> {
        Parsed::Malformed {
            reply,
            consumed: self.consumed,
            swallow,
            then: Then::Continue,
            invalidate: None,
            noreply,
        }
    }

    /// Nothing after this line can be trusted.
    pub(crate) fn closing(&self, reply: Malformed) -> Parsed<'a> {
        Parsed::Malformed {
            reply,
            consumed: self.consumed,
            swallow: 0,
            then: Then::Close,
            invalidate: None,
            noreply: false,
        }
    }

    /// The command line is there, and `data` bytes behind it are wanted.
    pub(crate) fn incomplete(&self, data: usize) -> Parsed<'a> {
        Parsed::Incomplete { needed: self.consumed.saturating_add(data), searched: 0 }
    }
}
