//! From bytes to requests: finding the line, and choosing the command.

use crate::frame::{Frame, Parsed};
use crate::limits::LEADING_SPACES_MAX;
use crate::token::Words;
use crate::{Limits, Malformed, Request, Then, command, meta_command};

/// Turns bytes into requests. It keeps nothing between calls: the bytes that are not consumed are its state.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    limits: Limits,
}

/// The beginning of a storage command: its line, and what has come of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToReceive<'a> {
    /// The request; its value is the part that has come.
    pub request: Request<'a>,
    /// Bytes of the line with its end.
    pub line: usize,
    /// Bytes that the value is to have; a line end follows it.
    pub bytes: usize,
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
    #[inline]
    pub fn parse<'a>(&self, input: &'a [u8]) -> Parsed<'a> {
        self.parse_from(input, 0)
    }

    /// As [`Parser::parse`], where the last answer for the same bytes, and perhaps fewer of them, was
    /// `Incomplete` with this `searched`.
    pub fn parse_from<'a>(&self, input: &'a [u8], searched: usize) -> Parsed<'a> {
        let unsearched = input.get(searched..).unwrap_or_default();
        let Some(found) = memchr::memchr(b'\n', unsearched) else { return self.unfinished_line(input) };
        let end = searched.saturating_add(found);
        let Some((line, rest)) = input.split_at_checked(end) else { return self.unfinished_line(input) };
        let frame = Frame {
            line: line.strip_suffix(b"\r").unwrap_or(line),
            consumed: end.saturating_add(1),
            data: rest.get(1..).unwrap_or_default(),
        };
        if frame.line.len() > self.limits.line_max && frame.line.len() > self.line_max(frame.line) {
            return too_long(input);
        }
        self.command(frame)
    }

    /// The storage command whose line `input` begins with, when its data has not come whole; of anything else none.
    pub fn receiving<'a>(&self, input: &'a [u8]) -> Option<ToReceive<'a>> {
        let (line, rest) = input.split_at_checked(memchr::memchr(b'\n', input)?)?;
        let frame = Frame {
            line: line.strip_suffix(b"\r").unwrap_or(line),
            consumed: line.len().saturating_add(1),
            data: rest.get(1..).unwrap_or_default(),
        };
        if frame.line.len() > self.limits.line_max {
            return None;
        }
        let mut words = Words::new(frame.line);
        let verb = words.next()?;
        let value = frame.data;
        let (bytes, request) = if verb == b"ms" {
            let (meta, bytes) = meta_command::set_line(&self.limits, &frame, words.rest).ok()?;
            (bytes, Request::MetaSet { meta, value })
        } else {
            let verb = command::StoreVerb::of(verb)?;
            let line = command::store_line(&self.limits, &frame, words.rest, verb).ok()?;
            (line.bytes, line.with(value))
        };
        (value.len() < bytes).then_some(ToReceive { request, line: frame.consumed, bytes })
    }

    /// The input holds no line end. It may still grow into a request, or is too long already.
    fn unfinished_line<'a>(&self, input: &'a [u8]) -> Parsed<'a> {
        // A carriage return at the end may be half a line end, which does not count.
        let line = input.strip_suffix(b"\r").unwrap_or(input);
        if line.len() > self.limits.line_max && line.len() > self.line_max(line) {
            return too_long(input);
        }
        Parsed::Incomplete { needed: input.len().saturating_add(1), searched: input.len() }
    }

    /// How long this line may be: retrievals of many keys are allowed more than the others.
    #[cold]
    fn line_max(&self, line: &[u8]) -> usize {
        let spaces = line.iter().take_while(|byte| **byte == b' ').count();
        let command = line.get(spaces..).unwrap_or_default();
        let retrieval = [&b"get "[..], b"gets ", b"gat ", b"gats "];
        if spaces <= LEADING_SPACES_MAX && retrieval.iter().any(|verb| command.starts_with(verb)) {
            self.limits.retrieval_line_max.max(self.limits.line_max)
        } else {
            self.limits.line_max
        }
    }

    fn command<'a>(&self, frame: Frame<'a>) -> Parsed<'a> {
        let mut words = Words::new(frame.line);
        let verb = words.next().unwrap_or_default();
        let rest = words.rest;
        let limits = &self.limits;
        // The two that come most often are compared first.
        match verb {
            b"get" => command::get(limits, &frame, rest, false),
            b"set" => command::store(limits, &frame, rest, command::StoreVerb::Set),
            b"gets" => command::get(limits, &frame, rest, true),
            b"delete" => command::delete(limits, &frame, rest),
            b"incr" => command::arithmetic(limits, &frame, rest, true),
            b"decr" => command::arithmetic(limits, &frame, rest, false),
            b"add" => command::store(limits, &frame, rest, command::StoreVerb::Add),
            b"replace" => command::store(limits, &frame, rest, command::StoreVerb::Replace),
            b"append" => command::store(limits, &frame, rest, command::StoreVerb::Append),
            b"prepend" => command::store(limits, &frame, rest, command::StoreVerb::Prepend),
            b"cas" => command::store(limits, &frame, rest, command::StoreVerb::Cas),
            b"touch" => command::touch(limits, &frame, rest),
            b"gat" => command::get_and_touch(limits, &frame, rest, false),
            b"gats" => command::get_and_touch(limits, &frame, rest, true),
            b"sql" => command::sql(limits, &frame, rest),
            b"sqlp" => command::sql_params(limits, &frame, rest),
            b"mg" => meta_command::get(limits, &frame, rest),
            b"ms" => meta_command::set(limits, &frame, rest),
            b"md" => meta_command::delete(limits, &frame, rest),
            b"ma" => meta_command::arithmetic(limits, &frame, rest),
            b"call" => command::call(limits, &frame, rest),
            _ => command::rare(limits, &frame, verb, rest),
        }
    }
}

#[cold]
fn too_long(input: &[u8]) -> Parsed<'_> {
    Parsed::Malformed {
        reply: Malformed::LineTooLong,
        consumed: input.len(),
        swallow: 0,
        then: Then::Close,
        invalidate: None,
        noreply: false,
    }
}
