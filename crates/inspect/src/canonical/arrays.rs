//! Arrays that clients bind, taken apart.

use super::{Bound, Written, written};
use crate::verdict::GuardKind;

/// The elements of `{a,"b c",NULL}` of one dimension.
pub(super) fn elements_of_text(text: &str) -> Option<Vec<Option<String>>> {
    let mut rest = text.trim_ascii().strip_prefix('{')?.trim_ascii_start();
    let mut elements = Vec::new();
    if rest == "}" {
        return Some(elements);
    }
    loop {
        let (element, behind) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted_element(quoted)?
        } else {
            let (plain, behind) = rest.split_at(rest.find([',', '}', '{', '"', '\\'])?);
            let plain = plain.trim_ascii();
            if plain.is_empty() {
                return None;
            }
            ((!plain.eq_ignore_ascii_case("null")).then(|| plain.to_owned()), behind)
        };
        elements.push(element);
        match behind.trim_ascii_start().split_at_checked(1)? {
            (",", behind) => rest = behind.trim_ascii_start(),
            ("}", "") => return Some(elements),
            _ => return None,
        }
    }
}

/// An element behind its opening quote, and what follows its closing one.
fn quoted_element(text: &str) -> Option<(Option<String>, &str)> {
    let mut element = String::new();
    let mut characters = text.char_indices();
    loop {
        match characters.next()? {
            (at, '"') => return Some((Some(element), &text[at + 1..])),
            (_, '\\') => element.push(characters.next()?.1),
            (_, other) => element.push(other),
        }
    }
}

/// The elements of an array of one dimension in binary format.
pub(super) fn elements_of_binary(kind: GuardKind, bytes: &[u8], is_utf8: bool) -> Option<Vec<Written>> {
    let mut rest = bytes;
    let mut next = || {
        let (number, behind) = rest.split_first_chunk::<4>()?;
        rest = behind;
        Some(i32::from_be_bytes(*number))
    };
    let (dimensions, _flags, _type) = (next()?, next()?, next()?);
    if dimensions == 0 {
        return Some(Vec::new());
    }
    let (count, _lower_bound) = (next()?, next()?);
    if dimensions != 1 {
        return None;
    }
    let mut elements = Vec::new();
    for _ in 0..count {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        rest = behind;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            elements.push(Written::Null);
            continue;
        };
        let (element, behind) = rest.split_at_checked(length)?;
        rest = behind;
        elements.push(written(kind, Bound::Binary(element), is_utf8));
    }
    Some(elements)
}
