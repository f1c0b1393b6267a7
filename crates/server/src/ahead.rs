//! Looking ahead over pipelined requests.
//!
//! Executing a request on a large store is mostly waiting for memory: for the index bucket, then for the row. When
//! several requests have arrived together, the next few are parsed first and memory is asked for all their lines, so
//! that they come side by side.

use engine::{Foreseen, Prefetched, ThreadContext, Use};
use memcache::{Parsed, Request, Verb, binary};

/// Requests, or keys of one request, that are looked ahead over. A processor has some ten to sixteen line fills under
/// way at once; more would only wait in the queue before them.
pub(crate) const WINDOW: usize = 16;

/// How many requests before its turn a value is asked for: its head has come by then, and the value comes meanwhile.
const VALUES_AHEAD: usize = 2;

/// What parsing a protocol's bytes came to, for who looks ahead.
pub(crate) trait Foresight<'i> {
    /// How many bytes a whole request took; none where the bytes are something else.
    fn whole(&self) -> Option<usize>;
    /// The key that it looks up first, and for what.
    fn looks_up(&self) -> Option<(&'i [u8], Use)>;
}

impl<'i> Foresight<'i> for Parsed<'i> {
    #[inline]
    fn whole(&self) -> Option<usize> {
        if let Self::Complete { consumed, .. } = self { Some(*consumed) } else { None }
    }

    #[inline]
    fn looks_up(&self) -> Option<(&'i [u8], Use)> {
        let Self::Complete { request, .. } = self else { return None };
        key_of(request).map(|key| (key, use_of(request)))
    }
}

impl<'i> Foresight<'i> for binary::Parsed<'i> {
    #[inline]
    fn whole(&self) -> Option<usize> {
        if let Self::Complete { consumed, .. } = self { Some(*consumed) } else { None }
    }

    #[inline]
    fn looks_up(&self) -> Option<(&'i [u8], Use)> {
        let Self::Complete { request, .. } = self else { return None };
        let purpose = match request.command {
            binary::Command::Get { .. } => Use::Read,
            binary::Command::Store { .. } | binary::Command::Delete => Use::Replace,
            binary::Command::Stat => return None,
            _ => Use::Other,
        };
        (!request.key.is_empty()).then_some((request.key, purpose))
    }
}

/// The next requests, parsed.
#[derive(Debug)]
pub(crate) struct Window<P> {
    parsed: [Option<P>; WINDOW],
    /// How many there are.
    len: usize,
    /// How many of them were taken out.
    taken: usize,
    ahead: Ahead,
}

impl<'i, P: Foresight<'i>> Window<P> {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { parsed: [const { None }; WINDOW], len: 0, taken: 0, ahead: Ahead::new() }
    }

    /// The first request of `input`. The window fills itself when it is empty; until then `input` must be what follows
    /// the request taken last.
    #[inline]
    pub(crate) fn next(
        &mut self,
        context: &ThreadContext,
        input: &'i [u8],
        parse: impl FnMut(&'i [u8]) -> P,
    ) -> Option<P> {
        if self.taken == self.len {
            self.fill(context, input, parse);
        }
        self.ahead.values(context, self.taken);
        let next = self.parsed[self.taken].take();
        self.taken += 1;
        next
    }

    #[inline]
    fn fill(&mut self, context: &ThreadContext, input: &'i [u8], mut parse: impl FnMut(&'i [u8]) -> P) {
        (self.len, self.taken) = (0, 0);
        self.ahead.len = 0;
        let mut at = 0;
        while self.len < WINDOW && (at < input.len() || self.len == 0) {
            let parsed = parse(&input[at..]);
            let whole = parsed.whole();
            if let Some(consumed) = whole {
                at += consumed;
                if (at < input.len() || self.len > 0)
                    && let Some((key, purpose)) = parsed.looks_up()
                {
                    self.ahead.bucket(context, key, purpose);
                }
            }
            self.parsed[self.len] = Some(parsed);
            self.len += 1;
            if whole.is_none() {
                break;
            }
        }
        self.ahead.rows(context);
    }
}

const _: () = assert!(WINDOW <= 32, "a bit for each key");

/// Lines that were asked for.
#[derive(Debug)]
pub(crate) struct Ahead {
    keys: [Option<(Prefetched, Use)>; WINDOW],
    /// Where the rows whose values are going to be read seem to lie.
    rows: [Foreseen; WINDOW],
    len: usize,
}

impl Ahead {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { keys: [None; WINDOW], rows: [Foreseen::Nothing; WINDOW], len: 0 }
    }

    /// Asks for the bucket of one more key; beyond the window nothing happens.
    #[inline]
    pub(crate) fn bucket(&mut self, context: &ThreadContext, key: &[u8], purpose: Use) {
        if let Some(place) = self.keys.get_mut(self.len) {
            *place = context.prefetch(key).map(|ahead| (ahead, purpose));
            self.len += 1;
        }
    }

    /// How many keys there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Asks for the rows of all of them.
    #[inline]
    pub(crate) fn rows(&mut self, context: &ThreadContext) {
        self.rows = [Foreseen::Nothing; WINDOW];
        let mut further = 0_u32;
        for place in 0..self.len {
            let Some((ahead, purpose)) = self.keys[place] else { continue };
            let row = context.prefetch_row(ahead, purpose);
            further |= u32::from(row == Foreseen::Further) << place;
            if purpose == Use::Read {
                self.rows[place] = row;
            }
        }
        // About a tenth of the keys of an index that is growing.
        while further != 0 {
            let place = further.trailing_zeros() as usize;
            further &= further - 1;
            let Some((ahead, purpose)) = self.keys[place] else { continue };
            let row = context.prefetch_further(ahead, purpose);
            if purpose == Use::Read {
                self.rows[place] = row;
            }
        }
    }

    /// The key in this place has its turn now: asks for the values of those that have theirs soon.
    #[inline]
    pub(crate) fn values(&self, context: &ThreadContext, place: usize) {
        let from = if place == 0 { 1 } else { place + VALUES_AHEAD };
        for row in (from..=place + VALUES_AHEAD).filter(|place| *place < self.len) {
            context.prefetch_value(self.rows[row]);
        }
    }
}

/// What a request does with the row of the key that it looks up first.
#[inline]
fn use_of(request: &Request<'_>) -> Use {
    match request {
        Request::Get { .. } => Use::Read,
        Request::Store { verb: Verb::Append | Verb::Prepend, .. } => Use::Other,
        Request::Store { .. } | Request::MetaSet { .. } | Request::Delete { .. } => Use::Replace,
        _ => Use::Other,
    }
}

/// The key that a request looks up first.
#[inline]
fn key_of<'i>(request: &Request<'i>) -> Option<&'i [u8]> {
    match request {
        Request::Get { keys, .. } => keys.clone().next(),
        Request::MetaGet(meta) | Request::MetaSet { meta, .. } if !meta.key.base64 => Some(meta.key.text),
        Request::Store { key, .. }
        | Request::Delete { key, .. }
        | Request::Arithmetic { key, .. }
        | Request::Touch { key, .. } => Some(key),
        _ => None,
    }
}
