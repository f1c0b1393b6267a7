//! One way to write a value: as the stream of changes tells it, without what values differ in that are equal.

mod arrays;
mod numbers;
mod times;

use std::borrow::Cow;

use postgres::{Format, Value, decode, oid};

use crate::verdict::GuardKind;
use arrays::{elements_of_binary, elements_of_text};

/// The value of a parameter as a client binds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound<'a> {
    /// NULL
    Null,
    /// In text format.
    Text(&'a [u8]),
    /// In binary format.
    Binary(&'a [u8]),
}

/// How a value is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Not at all: nothing is equal to NULL.
    Null,
    /// In this way, and in no other.
    Value(String),
    /// It is not known.
    Unknown,
}

impl From<Option<String>> for Written {
    fn from(value: Option<String>) -> Self {
        value.map_or(Self::Unknown, Self::Value)
    }
}

/// Writes what a client binds. `is_utf8`: whether its texts are in UTF-8; else only ASCII is known.
pub(crate) fn written(kind: GuardKind, value: Bound<'_>, is_utf8: bool) -> Written {
    match value {
        Bound::Null => Written::Null,
        Bound::Text(bytes) => of_text(kind, bytes, is_utf8).into(),
        Bound::Binary(bytes) => of_binary(kind, bytes, is_utf8).into(),
    }
}

/// The elements of an array that a client binds, written one by one; `None`: it is not known how. NULL has none.
pub(crate) fn written_elements(kind: GuardKind, value: Bound<'_>, is_utf8: bool) -> Option<Vec<Written>> {
    match value {
        Bound::Null => Some(Vec::new()),
        Bound::Text(bytes) => {
            let elements = elements_of_text(std::str::from_utf8(bytes).ok()?)?;
            let written_element = |element: &Option<String>| {
                let bound = element.as_ref().map_or(Bound::Null, |element| Bound::Text(element.as_bytes()));
                written(kind, bound, is_utf8)
            };
            Some(elements.iter().map(written_element).collect())
        }
        Bound::Binary(bytes) => elements_of_binary(kind, bytes, is_utf8),
    }
}

/// Writes the value of a literal, as it lies in the memory of a server that puts low bytes first; an enum's is an
/// OID, which `label` knows.
pub(crate) fn of_datum(
    kind: GuardKind,
    bytes: &[u8],
    label: impl Fn(u32) -> Option<String>,
) -> Option<String> {
    match kind {
        GuardKind::Integer => integer(bytes.iter().rev().copied()),
        GuardKind::Text | GuardKind::Char(_) => {
            let text = text_of_datum(bytes)?;
            of_text(kind, text.as_bytes(), true)
        }
        GuardKind::Uuid | GuardKind::Bool => of_binary(kind, bytes, true),
        GuardKind::Bytes => of_binary(kind, content(bytes)?, true),
        GuardKind::Numeric => of_binary(kind, &numbers::sent(content(bytes)?)?, true),
        GuardKind::Date | GuardKind::Timestamp | GuardKind::Timestamptz => {
            let sent: Vec<u8> = bytes.iter().rev().copied().collect();
            of_binary(kind, &sent, true)
        }
        GuardKind::Enum => label(u32::from_le_bytes(bytes.try_into().ok()?)),
    }
}

/// A value of the stream, of a column of this type, without what equal values of that type differ in.
pub fn told(type_oid: u32, value: &[u8]) -> Cow<'_, [u8]> {
    let plain = || numbers::plain(std::str::from_utf8(value).ok()?);
    match (type_oid == oid::NUMERIC).then(plain).flatten() {
        Some(plain) => Cow::Owned(plain.into_bytes()),
        None => Cow::Borrowed(value),
    }
}

/// A text behind its four bytes of length.
pub(crate) fn text_of_datum(bytes: &[u8]) -> Option<String> {
    String::from_utf8(content(bytes)?.to_vec()).ok()
}

/// What lies behind four bytes of length.
fn content(bytes: &[u8]) -> Option<&[u8]> {
    let (length, content) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length);
    // Two low bits say that it is neither short nor compressed.
    let plain = length.trailing_zeros() >= 2 && usize::try_from(length >> 2).ok()? == bytes.len();
    plain.then_some(content)
}

fn of_text(kind: GuardKind, bytes: &[u8], is_utf8: bool) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| is_utf8 || text.is_ascii())?;
    match kind {
        GuardKind::Text | GuardKind::Enum => Some(text.to_owned()),
        GuardKind::Char(length) => {
            let text = text.trim_end_matches(' ');
            let blanks = length.saturating_sub(text.chars().count());
            Some(format!("{text}{}", " ".repeat(blanks)))
        }
        GuardKind::Integer => {
            let text = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| text.parse::<i64>().ok())?.map(|number| number.to_string())
        }
        GuardKind::Bool => of_truth(text),
        GuardKind::Uuid => of_uuid(text),
        GuardKind::Date => times::date(text),
        GuardKind::Timestamp => times::timestamp(text),
        GuardKind::Timestamptz => times::timestamptz(text),
        GuardKind::Numeric => numbers::plain(text.trim_ascii()),
        GuardKind::Bytes => decoded(oid::BYTEA, Format::Text, bytes),
    }
}

/// A value that has one way to be written, as `postgres` reads it.
fn decoded(type_oid: u32, format: Format, bytes: &[u8]) -> Option<String> {
    match decode(type_oid, format, bytes).ok()? {
        Value::Text(text) => Some(text),
        Value::Bytes(bytes) => {
            Some(bytes.iter().fold("\\x".to_owned(), |text, byte| format!("{text}{byte:02x}")))
        }
        Value::Integer(_) | Value::Real(_) | Value::Null => None,
    }
}

fn of_binary(kind: GuardKind, bytes: &[u8], is_utf8: bool) -> Option<String> {
    match kind {
        GuardKind::Integer => integer(bytes.iter().copied()),
        GuardKind::Text | GuardKind::Char(_) | GuardKind::Enum => of_text(kind, bytes, is_utf8),
        GuardKind::Bool => match bytes {
            [0] => Some("f".to_owned()),
            [1] => Some("t".to_owned()),
            _ => None,
        },
        GuardKind::Uuid => {
            let digits = bytes.iter().fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"));
            of_uuid(&digits)
        }
        GuardKind::Date => times::of_binary(oid::DATE, bytes),
        GuardKind::Timestamp => times::of_binary(oid::TIMESTAMP, bytes),
        GuardKind::Timestamptz => times::of_binary(oid::TIMESTAMPTZ, bytes),
        GuardKind::Numeric => numbers::plain(&decoded(oid::NUMERIC, Format::Binary, bytes)?),
        GuardKind::Bytes => decoded(oid::BYTEA, Format::Binary, bytes),
    }
}

/// An integer of 2, 4 or 8 bytes, the high one first.
fn integer(bytes: impl ExactSizeIterator<Item = u8>) -> Option<String> {
    let bits = 8 * u32::try_from(bytes.len()).ok()?;
    if !matches!(bits, 16 | 32 | 64) {
        return None;
    }
    let number = bytes.fold(0_u64, |number, byte| number << 8 | u64::from(byte));
    let unused = 64 - bits;
    Some(((number << unused).cast_signed() >> unused).to_string())
}

/// PostgreSQL takes any beginning of a word that no other has.
fn of_truth(text: &str) -> Option<String> {
    let text = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']).to_ascii_lowercase();
    match text.as_str() {
        "t" | "tr" | "tru" | "true" | "y" | "ye" | "yes" | "on" | "1" => Some("t".to_owned()),
        "f" | "fa" | "fal" | "fals" | "false" | "n" | "no" | "of" | "off" | "0" => Some("f".to_owned()),
        _ => None,
    }
}

/// 32 digits, with the four hyphens at their places or without any.
fn of_uuid(text: &str) -> Option<String> {
    let hyphens: Vec<usize> = text.match_indices('-').map(|(at, _)| at).collect();
    let digits = text.replace('-', "").to_ascii_lowercase();
    let well_placed = hyphens.is_empty() || hyphens == [8, 13, 18, 23];
    if !well_placed || digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let part = |from: usize, to: usize| &digits[from..to];
    Some(format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use GuardKind::{Bool, Char, Date, Enum, Integer, Text, Uuid};

    fn text(kind: GuardKind, value: &str) -> Option<String> {
        of_text(kind, value.as_bytes(), true)
    }

    #[test]
    fn texts_are_written_in_one_way() {
        let uuid = "0123abcd-0123-abcd-0123-abcd0123abcd";
        for (kind, value, written) in [
            (Integer, " +007 ", Some("7")),
            (Integer, "-5", Some("-5")),
            (Integer, "-0", Some("0")),
            (Integer, "0x10", None),
            (Integer, "1_000", None),
            (Integer, "99999999999999999999", None),
            (Integer, "", None),
            (Text, " a ", Some(" a ")),
            (Char(3), "a  ", Some("a  ")),
            (Char(3), "\u{e9}", Some("\u{e9}  ")),
            (Char(1), "abc", Some("abc")),
            (Bool, " TRUE ", Some("t")),
            (Bool, "of", Some("f")),
            (Bool, "o", None),
            (Uuid, uuid, Some(uuid)),
            (Uuid, "0123ABCD0123abcd0123abcd0123abcd", Some(uuid)),
            (Uuid, "0123-abcd0123abcd0123abcd0123abcd", None),
            (Date, "2026-11-29", Some("2026-11-29")),
            (Date, "29.11.2026", None),
            (Enum, "open", Some("open")),
        ] {
            assert_eq!(text(kind, value).as_deref(), written, "{kind:?} {value:?}");
        }
    }

    #[test]
    fn other_encodings_are_known_in_ascii_only() {
        assert_eq!(of_text(Text, "\u{e9}".as_bytes(), false), None);
        assert_eq!(of_text(Text, b"e", false).as_deref(), Some("e"));
        assert_eq!(of_text(Text, b"\xe9", true), None);
    }

    #[test]
    fn binary_values_are_those_of_the_texts() {
        for (kind, value, written) in [
            (Integer, &(-2_i16).to_be_bytes()[..], Some("-2")),
            (Integer, &7_i32.to_be_bytes(), Some("7")),
            (Integer, &i64::MIN.to_be_bytes(), Some("-9223372036854775808")),
            (Integer, &[1], None),
            (Bool, &[1], Some("t")),
            (Bool, &[2], None),
            (Date, &0_i32.to_be_bytes(), Some("2000-01-01")),
            (Date, &9_829_i32.to_be_bytes(), Some("2026-11-29")),
            (Date, &(-60_i32).to_be_bytes(), Some("1999-11-02")),
            (Date, &i32::MAX.to_be_bytes(), None),
            (Uuid, &[0xab; 16], Some("abababab-abab-abab-abab-abababababab")),
            (Uuid, &[0xab; 15], None),
        ] {
            assert_eq!(of_binary(kind, value, true).as_deref(), written, "{kind:?} {value:?}");
        }
    }

    #[test]
    fn literals_lie_with_the_low_byte_first() {
        let none = |_| None;
        assert_eq!(of_datum(Integer, &(-3_i32).to_le_bytes(), none).as_deref(), Some("-3"));
        assert_eq!(of_datum(Text, &[20, 0, 0, 0, b'a'], none).as_deref(), Some("a"));
        assert_eq!(of_datum(Text, &[24, 0, 0, 0, b'a'], none), None);
        assert_eq!(of_datum(Text, &[5, b'a'], none), None);
        assert_eq!(of_datum(Enum, &[7, 0, 0, 0], |oid| Some(oid.to_string())).as_deref(), Some("7"));
    }

    #[test]
    fn arrays_are_written_element_by_element() {
        let elements = |text: &str| {
            written_elements(Text, Bound::Text(text.as_bytes()), true).map(|elements| {
                let shown = elements.into_iter().map(|element| match element {
                    Written::Value(value) => value,
                    other => format!("{other:?}"),
                });
                shown.collect::<Vec<_>>().join("|")
            })
        };
        assert_eq!(elements(r#"{a, "b c" ,NULL,"NULL","q\"\\"}"#).as_deref(), Some(r#"a|b c|Null|NULL|q"\"#));
        assert_eq!(elements("{}").as_deref(), Some(""));
        for bad in ["", "{", "{a", "{a}b", "{{a}}", "{a,}", "[0:0]={a}"] {
            assert_eq!(elements(bad), None, "{bad}");
        }
        let binary: Vec<u8> =
            [1_i32, 1, 23, 2, 1, 4, 5, -1].iter().flat_map(|number| number.to_be_bytes()).collect();
        let written = written_elements(Integer, Bound::Binary(&binary), true).unwrap();
        assert_eq!(written, [Written::Value("5".to_owned()), Written::Null]);
        assert_eq!(written_elements(Integer, Bound::Binary(&binary[..30]), true), None);
    }
}
