//! From a line of a meta command to a request.

use crate::frame::{Frame, Parsed};
use crate::meta::{Key, Meta, MetaOptions, Mode, Verb};
use crate::request::Request;
use crate::token::{self, LINE_END, Words, data_length};
use crate::{Limits, Malformed, Then, base64};

/// The key and the flags of a line, all looked at.
fn read<'a>(
    limits: &Limits,
    verb: Verb,
    text: Option<&'a [u8]>,
    words: &'a [u8],
) -> Result<(Meta<'a>, MetaOptions), Malformed> {
    let longest = base64::letters(limits.key_max);
    let text = text.filter(|text| token::is_key(text, longest)).ok_or(Malformed::CommandLine)?;
    let mut meta = Meta { key: Key::plain(text), words };
    if text.len() > limits.key_max && !meta.has_encoded_key() {
        return Err(Malformed::CommandLine);
    }
    let checked = meta.check(verb).and_then(|options| meta.check_key().map(|()| options));
    match checked {
        Ok(options) => Ok((meta, options)),
        Err(error @ (Malformed::CommandLine | Malformed::MetaFlags | Malformed::MetaArithmeticMode)) => {
            Err(error)
        }
        // These two have one answer for whatever else is wrong with a flag.
        Err(_) if matches!(verb, Verb::Delete | Verb::Arithmetic) => Err(Malformed::MetaFlag),
        Err(error) => Err(error),
    }
}

/// A command that is a line alone.
fn line<'a>(
    limits: &Limits,
    frame: &Frame<'a>,
    rest: &'a [u8],
    verb: Verb,
    request: impl FnOnce(Meta<'a>) -> Request<'a>,
) -> Parsed<'a> {
    let mut words = Words::new(rest);
    let key = words.next_key();
    match read(limits, verb, key, words.rest) {
        Ok((meta, _)) => frame.complete(request(meta)),
        Err(error) => frame.malformed(error, 0),
    }
}

/// `mg`.
pub(crate) fn get<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    line(limits, frame, rest, Verb::Get, Request::MetaGet)
}

/// `md`.
pub(crate) fn delete<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    line(limits, frame, rest, Verb::Delete, Request::MetaDelete)
}

/// `ma`.
pub(crate) fn arithmetic<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    line(limits, frame, rest, Verb::Arithmetic, Request::MetaArithmetic)
}

/// `me`.
pub(crate) fn debug<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    line(limits, frame, rest, Verb::Get, Request::MetaDebug)
}

/// `ms`, with its data.
pub(crate) fn set<'a>(limits: &Limits, frame: &Frame<'a>, rest: &'a [u8]) -> Parsed<'a> {
    let (meta, bytes) = match set_line(limits, frame, rest) {
        Ok(line) => line,
        Err(malformed) => return malformed,
    };
    let with_end = bytes.saturating_add(LINE_END);
    let Some((value, after)) = frame.data.split_at_checked(bytes) else {
        return frame.incomplete(with_end);
    };
    match after.get(..LINE_END) {
        None => frame.incomplete(with_end),
        Some(b"\r\n") => Parsed::Complete {
            request: Request::MetaSet { meta, value },
            consumed: frame.consumed.saturating_add(with_end),
        },
        Some(_) => frame.malformed(Malformed::DataChunk, with_end),
    }
}

/// The line of `ms` and the length of its data, or why it is none.
pub(crate) fn set_line<'a>(
    limits: &Limits,
    frame: &Frame<'a>,
    rest: &'a [u8],
) -> Result<(Meta<'a>, usize), Parsed<'a>> {
    let mut words = Words::new(rest);
    let key = words.next_key();
    // Without a length it is unknown where the data ends: what follows is taken for commands.
    let Some(bytes) = words.next().and_then(data_length) else {
        return Err(frame.malformed(Malformed::CommandLine, 0));
    };
    let with_end = bytes.saturating_add(LINE_END);
    let (meta, options) = match read(limits, Verb::Set, key, words.rest) {
        Ok(read) => read,
        Err(error) => return Err(frame.swallowing(error, with_end, false)),
    };
    if bytes > limits.value_max {
        return Err(Parsed::Malformed {
            reply: Malformed::ValueTooLarge,
            consumed: frame.consumed,
            swallow: with_end,
            then: Then::Continue,
            invalidate: (options.mode == Mode::Set).then_some(meta.key),
            noreply: false,
        });
    }
    Ok((meta, bytes))
}
