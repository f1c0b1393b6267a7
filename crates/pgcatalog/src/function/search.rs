//! Functions in place of SQLite's that look for one text in another: `instr`, `replace`, and `trim` of given
//! characters.
//!
//! SQLite's own compare the second text at every place of the first, within a single step of its machine. Two texts of
//! a mebibyte, which a client need not even send (`repeat` makes them), keep a thread for minutes then, and nothing
//! stops it before it is done. These take time in proportion to the texts. Their answers are SQLite's, byte for byte.

use std::collections::HashSet;

use memchr::memmem;
use sqlite::meter;
use sqltext::error::{SqlError, state};
use store::value::Value;

use super::def::{Now, bytes};
use crate::limits::TEXT_BYTES_MAX;

/// The bytes of the longest character.
const CHARACTER_BYTES_MAX: usize = 4;

/// Where the part begins, from 1: counted in bytes if both are bytes, and in characters otherwise.
pub(super) fn instr(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (whole, part) = (bytes(values, 0)?, bytes(values, 1)?);
    let in_bytes = values.iter().all(|value| matches!(value, Value::Blob(_)));
    let place = if !in_bytes && part.first().is_some_and(|byte| continues(*byte)) {
        // Only bytes that are no text begin so, and SQLite looks for them at the first place alone.
        whole.starts_with(&part).then_some(0)
    } else {
        memmem::find(&whole, &part)
    };
    let place = match place {
        None => 0,
        Some(at) if in_bytes || at == 0 => at + 1,
        Some(at) => 1 + whole[1..=at].iter().filter(|byte| !continues(**byte)).count(),
    };
    Ok(Value::Integer(i64::try_from(place).unwrap_or(i64::MAX)))
}

/// The first with the second replaced by the third wherever it stands.
pub(super) fn replace(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (whole, part, other) = (bytes(values, 0)?, bytes(values, 1)?, bytes(values, 2)?);
    // What begins with a zero byte is an empty text in C, and so it is here for SQLite.
    if part.first().is_none_or(|byte| *byte == 0) {
        return Ok(text_of(whole));
    }
    let finder = memmem::Finder::new(&part);
    let places = finder.find_iter(&whole).count();
    let length = (whole.len() - places * part.len()).saturating_add(places.saturating_mul(other.len()));
    if length > TEXT_BYTES_MAX {
        let words = format!("the replaced text is too long; the limit is {TEXT_BYTES_MAX} bytes");
        return Err(SqlError::new(state::TOO_LARGE, words));
    }
    meter::take(length)?;
    meter::work(length)?;
    let mut out = Vec::with_capacity(length);
    let mut from = 0;
    for at in finder.find_iter(&whole) {
        out.extend_from_slice(&whole[from..at]);
        out.extend_from_slice(&other);
        from = at + part.len();
    }
    out.extend_from_slice(&whole[from..]);
    Ok(text_of(out))
}

/// `trim(text, characters)`
pub(super) fn trim(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    trimmed(values, true, true)
}

/// `ltrim(text, characters)`
pub(super) fn ltrim(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    trimmed(values, true, false)
}

/// `rtrim(text, characters)`
pub(super) fn rtrim(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    trimmed(values, false, true)
}

fn trimmed(values: &[Value], before: bool, behind: bool) -> Result<Value, SqlError> {
    let (whole, characters) = (bytes(values, 0)?, bytes(values, 1)?);
    meter::take(characters.len() * 3 * size_of::<&[u8]>())?;
    let characters: HashSet<&[u8]> = characters_of(&characters).collect();
    let mut rest = whole.as_slice();
    let lengths = |rest: &[u8]| 1..=rest.len().min(CHARACTER_BYTES_MAX);
    while before && let Some(length) = lengths(rest).find(|length| characters.contains(&rest[..*length])) {
        rest = &rest[length..];
    }
    while behind
        && let Some(length) = lengths(rest).find(|length| characters.contains(&rest[rest.len() - length..]))
    {
        rest = &rest[..rest.len() - length];
    }
    Ok(text_of(rest.to_vec()))
}

/// The characters of a text, each as its bytes.
fn characters_of(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let first = *bytes.first()?;
        let most = if first < 0xc0 { 1 } else { CHARACTER_BYTES_MAX.min(bytes.len()) };
        let length = 1 + bytes[1..most].iter().take_while(|byte| continues(**byte)).count();
        let (character, rest) = bytes.split_at(length);
        bytes = rest;
        Some(character)
    })
}

/// Whether a byte of UTF-8 goes on with a character.
fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// A text, or the bytes where they are none.
fn text_of(bytes: Vec<u8>) -> Value {
    String::from_utf8(bytes).map_or_else(|error| Value::Blob(error.into_bytes()), Value::Text)
}
