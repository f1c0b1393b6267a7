//! From a command line to a request, one function for each family of commands.

use crate::frame::{Frame, Parsed};
use crate::limits::DATA_MAX;
use crate::meta::Key;
use crate::request::{Keys, Request, Verb};
use crate::token::{self, LINE_END, Words, client_flags, data_length};
use crate::{Limits, Malformed, Then, meta_command, operator};

/// Lines with fewer bytes than this, line end included, are no command to memcached 1.6.45, which answers them as
/// a badly formed command line instead of an unknown command.
const SHORTEST_LINE: usize = 4;

/// `get` and `gets`.
#[inline]
pub(crate) fn get<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8], cas: bool) -> Parsed<'a> {
    match keys(limits, rest) {
        Some(keys) => frame.complete(Request::Get { keys, cas }),
        None => frame.malformed(Malformed::CommandLine, 0),
    }
}

/// `gat` and `gats`.
pub(crate) fn get_and_touch<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8], cas: bool) -> Parsed<'a> {
    let mut words = Words::new(rest);
    let exptime = words.next();
    if words.clone().next().is_none() {
        return frame.malformed(Malformed::CommandLine, 0);
    }
    let Some(exptime) = exptime.and_then(token::exptime) else {
        return frame.malformed(Malformed::Exptime, 0);
    };
    match keys(limits, words.rest) {
        Some(keys) => frame.complete(Request::GetAndTouch { exptime, keys, cas }),
        None => frame.malformed(Malformed::CommandLine, 0),
    }
}

/// The keys of the rest of a line; `None` if there is none or one of them is no key. memcached finds a bad key
/// when it comes to it and takes back what it has answered; looking first gives the client the same.
#[inline]
fn keys<'a>(limits: &Limits, rest: &'a [u8]) -> Option<Keys<'a>> {
    let mut words = Words::new(rest);
    let first = words.next_key().filter(|key| token::is_key(key, limits.key_max))?;
    if words.rest.is_empty() {
        return Some(Keys::new(first));
    }
    while let Some(key) = words.next_key() {
        if !token::is_key(key, limits.key_max) {
            return None;
        }
    }
    Some(Keys::new(rest))
}

/// Which storage command a line begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreVerb {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Cas,
}

impl StoreVerb {
    /// The command that a word names.
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"set" => Self::Set,
            b"add" => Self::Add,
            b"replace" => Self::Replace,
            b"append" => Self::Append,
            b"prepend" => Self::Prepend,
            b"cas" => Self::Cas,
            _ => return None,
        })
    }
}

/// The line of a storage command.
pub(crate) struct StoreLine<'a> {
    pub(crate) verb: Verb,
    pub(crate) key: &'a [u8],
    pub(crate) flags: u32,
    pub(crate) exptime: i64,
    /// Bytes of the value.
    pub(crate) bytes: usize,
    pub(crate) noreply: bool,
}

impl<'a> StoreLine<'a> {
    /// The request with this value, or what has come of it.
    #[inline]
    pub(crate) fn with(self, value: &'a [u8]) -> Request<'a> {
        let Self { verb, key, flags, exptime, noreply, .. } = self;
        Request::Store { verb, key, flags, exptime, value, noreply }
    }
}

/// `set`, `add`, `replace`, `append`, `prepend` and `cas`.
#[inline]
pub(crate) fn store<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8], verb: StoreVerb) -> Parsed<'a> {
    let line = match store_line(limits, frame, rest, verb) {
        Ok(line) => line,
        Err(malformed) => return malformed,
    };
    let with_end = line.bytes.saturating_add(LINE_END);
    let Some((value, after)) = frame.data.split_at_checked(line.bytes) else {
        return frame.incomplete(with_end);
    };
    match after.get(..LINE_END) {
        None => frame.incomplete(with_end),
        Some(b"\r\n") => {
            Parsed::Complete { request: line.with(value), consumed: frame.consumed.saturating_add(with_end) }
        }
        Some(_) => Parsed::Malformed {
            reply: Malformed::DataChunk,
            consumed: frame.consumed.saturating_add(with_end),
            swallow: 0,
            then: Then::Continue,
            invalidate: None,
            noreply: line.noreply,
        },
    }
}

/// The line of a storage command, or why it is none.
#[inline]
pub(crate) fn store_line<'a>(
    limits: &Limits,
    frame: &Frame<'a>,
    rest: &'a [u8],
    verb: StoreVerb,
) -> Result<StoreLine<'a>, Parsed<'a>> {
    let mut words = Words::new(rest);
    let (key, flags, exptime) = (words.next_key(), words.next(), words.next());
    // Without a length it is unknown where the data ends: what follows is taken for commands, as memcached does.
    let Some(bytes) = words.next().and_then(data_length) else {
        return Err(frame.malformed(Malformed::CommandLine, 0));
    };
    let noreply = !words.rest.is_empty() && token::ends_in_noreply(words.rest);
    let with_end = bytes.saturating_add(LINE_END);
    let arguments = (
        key.filter(|key| token::is_key(key, limits.key_max)),
        flags.and_then(client_flags),
        exptime.and_then(token::exptime_of_value),
        store_condition(verb, &mut words),
    );
    let (Some(key), Some(flags), Some(exptime), Some(condition)) = arguments else {
        return Err(frame.swallowing(Malformed::CommandLine, with_end, noreply));
    };
    if bytes > limits.value_max {
        return Err(value_too_large(frame, verb, key, with_end, noreply));
    }
    Ok(StoreLine { verb: condition, key, flags, exptime, bytes, noreply })
}

/// The condition of a storage command; only that of `cas` has an argument.
#[inline]
fn store_condition(verb: StoreVerb, words: &mut Words<'_>) -> Option<Verb> {
    Some(match verb {
        StoreVerb::Set => Verb::Set,
        StoreVerb::Add => Verb::Add,
        StoreVerb::Replace => Verb::Replace,
        StoreVerb::Append => Verb::Append,
        StoreVerb::Prepend => Verb::Prepend,
        StoreVerb::Cas => Verb::Cas(token::unsigned(words.next()?)?),
    })
}

#[cold]
fn value_too_large<'a>(
    frame: &Frame<'a>,
    verb: StoreVerb,
    key: &'a [u8],
    swallow: usize,
    noreply: bool,
) -> Parsed<'a> {
    Parsed::Malformed {
        reply: Malformed::ValueTooLarge,
        consumed: frame.consumed,
        swallow,
        then: Then::Continue,
        invalidate: (verb == StoreVerb::Set).then_some(Key::plain(key)),
        noreply,
    }
}

/// `delete`. memcached once took a time, which old clients still send; other arguments are refused.
pub(crate) fn delete<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    let mut words = Words::new(rest);
    let key = words.next_key();
    let (first, second, third) = (words.next(), words.next(), words.next());
    let noreply = match (first, second, third) {
        (None, None, None) => false,
        (Some(b"noreply"), None, None) => true,
        (Some(time), None, None) if token::unsigned(time).is_some() => false,
        (Some(time), Some(b"noreply"), None) if token::unsigned(time).is_some() => true,
        _ => return frame.malformed_unless(Malformed::DeleteUsage, token::ends_in_noreply(rest)),
    };
    match key.filter(|key| token::is_key(key, limits.key_max)) {
        Some(key) => frame.complete(Request::Delete { key, noreply }),
        None => frame.malformed_unless(Malformed::CommandLine, noreply),
    }
}

/// `incr` and `decr`.
pub(crate) fn arithmetic<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8], incr: bool) -> Parsed<'a> {
    let mut words = Words::new(rest);
    let (Some(key), Some(delta)) = (words.next_key(), words.next()) else {
        return frame.malformed(Malformed::CommandLine, 0);
    };
    let noreply = token::ends_in_noreply(words.rest);
    if !token::is_key(key, limits.key_max) {
        return frame.malformed_unless(Malformed::CommandLine, noreply);
    }
    match token::unsigned(delta) {
        Some(delta) => frame.complete(Request::Arithmetic { incr, key, delta, noreply }),
        None => frame.malformed_unless(Malformed::Delta, noreply || delta == b"noreply"),
    }
}

/// `touch`.
pub(crate) fn touch<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    let mut words = Words::new(rest);
    let (Some(key), Some(exptime)) = (words.next_key(), words.next()) else {
        return frame.malformed(Malformed::CommandLine, 0);
    };
    let noreply = token::ends_in_noreply(words.rest);
    if !token::is_key(key, limits.key_max) {
        return frame.malformed_unless(Malformed::CommandLine, noreply);
    }
    match token::exptime(exptime) {
        Some(exptime) => frame.complete(Request::Touch { key, exptime, noreply }),
        None => frame.malformed_unless(Malformed::Exptime, noreply || exptime == b"noreply"),
    }
}

/// `sql <bytes>` and the statement.
pub(crate) fn sql<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    let mut words = Words::new(rest);
    let (Some(length), None) = (words.next(), words.next()) else {
        return frame.malformed(Malformed::SqlUsage, 0);
    };
    let Some(bytes) = token::unsigned(length) else { return frame.malformed(Malformed::SqlUsage, 0) };
    let statement = Block { bytes, limit: limits.sql_statement_max };
    if let Some(limit) = statement.exceeded() {
        return sql_too_large(frame, Malformed::StatementTooLarge { bytes, limit }, &[bytes]);
    }
    match statement.take(frame.data, 0) {
        Taken::Whole { block, end } => Parsed::Complete {
            request: Request::Sql { statement: block },
            consumed: frame.consumed.saturating_add(end),
        },
        Taken::Part { wanted } => frame.incomplete(wanted),
        Taken::Unended { end } => frame.malformed(Malformed::SqlDataChunk, end),
    }
}

/// `sqlp <statement bytes> <parameter bytes>`, the statement and the parameters.
pub(crate) fn sql_params<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    let mut words = Words::new(rest);
    let (Some(first), Some(second), None) = (words.next(), words.next(), words.next()) else {
        return frame.malformed(Malformed::SqlUsage, 0);
    };
    let (Some(first), Some(second)) = (token::unsigned(first), token::unsigned(second)) else {
        return frame.malformed(Malformed::SqlUsage, 0);
    };
    let statement = Block { bytes: first, limit: limits.sql_statement_max };
    if let Some(limit) = statement.exceeded() {
        return sql_too_large(frame, Malformed::StatementTooLarge { bytes: first, limit }, &[first, second]);
    }
    let parameters = Block { bytes: second, limit: limits.sql_parameters_max };
    if let Some(limit) = parameters.exceeded() {
        return sql_too_large(
            frame,
            Malformed::ParametersTooLarge { bytes: second, limit },
            &[first, second],
        );
    }
    let (statement, end) = match statement.take(frame.data, 0) {
        Taken::Whole { block, end } => (block, end),
        // The parameters follow with at least one byte of line end.
        Taken::Part { wanted } => {
            return frame.incomplete(wanted.saturating_add(parameters.length()).saturating_add(1));
        }
        Taken::Unended { end } => return frame.malformed(Malformed::SqlDataChunk, end),
    };
    match parameters.take(frame.data, end) {
        Taken::Whole { block, end } => Parsed::Complete {
            request: Request::SqlParams { statement, parameters: block },
            consumed: frame.consumed.saturating_add(end),
        },
        Taken::Part { wanted } => frame.incomplete(wanted),
        Taken::Unended { end } => frame.malformed(Malformed::SqlDataChunk, end),
    }
}

/// `call <name> <bytes>` and the arguments.
pub(crate) fn call<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    let mut words = Words::new(rest);
    let (Some(name), Some(length), None) = (words.next(), words.next(), words.next()) else {
        return frame.malformed(Malformed::CallUsage, 0);
    };
    let Some(bytes) = token::unsigned(length) else { return frame.malformed(Malformed::CallUsage, 0) };
    let arguments = Block { bytes, limit: limits.sql_parameters_max };
    if let Some(limit) = arguments.exceeded() {
        return sql_too_large(frame, Malformed::ParametersTooLarge { bytes, limit }, &[bytes]);
    }
    match arguments.take(frame.data, 0) {
        Taken::Whole { block, end } => Parsed::Complete {
            request: Request::Call { name, arguments: block },
            consumed: frame.consumed.saturating_add(end),
        },
        Taken::Part { wanted } => frame.incomplete(wanted),
        Taken::Unended { end } => frame.malformed(Malformed::SqlDataChunk, end),
    }
}

/// A block of data whose length the command line declares.
struct Block {
    bytes: u64,
    limit: usize,
}

/// What has arrived of a block.
enum Taken<'a> {
    /// The block, and where its line end ends in the data.
    Whole { block: &'a [u8], end: usize },
    /// So much data is wanted.
    Part { wanted: usize },
    /// No line end follows; this is where one should have ended.
    Unended { end: usize },
}

impl Block {
    /// The limit, if the block is longer.
    fn exceeded(&self) -> Option<usize> {
        (self.length() > self.limit).then_some(self.limit)
    }

    fn length(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Takes the block from `data` at `start`. The line end behind it may be CRLF or LF alone, unlike that of a
    /// value, so that `printf` and a pipe make a client; both are told apart by their first byte.
    fn take<'a>(&self, data: &'a [u8], start: usize) -> Taken<'a> {
        let end = start.saturating_add(self.length());
        let Some(block) = data.get(start..end) else {
            return Taken::Part { wanted: end.saturating_add(1) };
        };
        let after_one = end.saturating_add(1);
        match (data.get(end), data.get(after_one)) {
            (None, _) => Taken::Part { wanted: after_one },
            (Some(b'\n'), _) => Taken::Whole { block, end: after_one },
            (Some(b'\r'), None) => Taken::Part { wanted: after_one.saturating_add(1) },
            (Some(b'\r'), Some(b'\n')) => Taken::Whole { block, end: after_one.saturating_add(1) },
            (Some(_), _) => Taken::Unended { end: after_one },
        }
    }
}

/// A statement or parameters beyond their limit. The declared bytes are thrown away with as long a line end as the
/// command line has; lengths that nobody would send mean that the stream is out of step, and close it.
#[cold]
fn sql_too_large<'a>(frame: &Frame<'a>, reply: Malformed, lengths: &[u64]) -> Parsed<'a> {
    let line_end = frame.consumed.saturating_sub(frame.line.len());
    let swallow = lengths.iter().try_fold(0usize, |sum, length| {
        let length = usize::try_from(*length).ok().filter(|_| *length <= DATA_MAX)?;
        sum.checked_add(length)?.checked_add(line_end)
    });
    match swallow {
        Some(swallow) => frame.swallowing(reply, swallow, false),
        None => frame.closing(reply),
    }
}

/// Everything that is not on the way of ordinary traffic.
#[cold]
pub(crate) fn rare<'a>(limits: &Limits, frame: &Frame<'a>, verb: &'a [u8], rest: &'a [u8]) -> Parsed<'a> {
    match verb {
        b"quit" => frame.complete(Request::Quit),
        b"version" => frame.complete(Request::Version),
        b"mn" => frame.complete(Request::MetaNoop),
        b"me" => meta_command::debug(limits, frame, rest),
        b"flush_all" => flush_all(frame, rest),
        b"verbosity" => verbosity(frame, rest),
        _ => operator::parse(frame, verb, rest).unwrap_or_else(|| unknown(frame, rest)),
    }
}

/// `flush_all`.
fn flush_all<'a>(frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    let noreply = token::ends_in_noreply(rest);
    let delay = match Words::new(rest).next() {
        None => None,
        Some(b"noreply") if noreply => None,
        Some(word) => match token::exptime(word) {
            Some(delay) => Some(delay),
            None => return frame.malformed_unless(Malformed::Exptime, noreply),
        },
    };
    frame.complete(Request::FlushAll { delay, noreply })
}

/// `verbosity`.
fn verbosity<'a>(frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    let noreply = token::ends_in_noreply(rest);
    match Words::new(rest).next().and_then(token::unsigned_32) {
        Some(level) => frame.complete(Request::Verbosity { level, noreply }),
        None => frame.malformed_unless(Malformed::CommandLine, noreply),
    }
}

/// No command: an HTTP request, an empty line, or something else.
fn unknown<'a>(frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    if Words::new(rest).last().is_some_and(|word| word.starts_with(b"HTTP/")) {
        return frame.closing(Malformed::Http);
    }
    if frame.consumed < SHORTEST_LINE {
        return frame.malformed(Malformed::CommandLine, 0);
    }
    frame.malformed_unless(Malformed::UnknownCommand, token::ends_in_noreply(rest))
}
