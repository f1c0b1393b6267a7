//! One way to write a value: as the stream of changes tells it.

use crate::verdict::GuardKind;

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
        GuardKind::Date => of_days(i32::from_le_bytes(bytes.try_into().ok()?)),
        GuardKind::Enum => label(u32::from_le_bytes(bytes.try_into().ok()?)),
    }
}

/// A text behind its four bytes of length.
pub(crate) fn text_of_datum(bytes: &[u8]) -> Option<String> {
    let (length, text) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length);
    // Two low bits say that it is neither short nor compressed.
    let plain = length.trailing_zeros() >= 2 && usize::try_from(length >> 2).ok()? == bytes.len();
    plain.then(|| String::from_utf8(text.to_vec()).ok())?
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
        GuardKind::Date => of_date(text),
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
        GuardKind::Date => of_days(i32::from_be_bytes(bytes.try_into().ok()?)),
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

/// `2026-11-29`, which means the same in each style of dates.
fn of_date(text: &str) -> Option<String> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text.as_bytes() else { return None };
    let digits = [y1, y2, y3, y4, m1, m2, d1, d2];
    let plain = digits.iter().all(|digit| digit.is_ascii_digit());
    (plain && !text.starts_with("0000")).then(|| text.to_owned())
}

/// Days from 1970-01-01 to 2000-01-01, from which PostgreSQL counts.
const DAYS_TO_2000: i64 = 10_957;

/// A date of the years 1 to 9999 by its days since 2000-01-01.
fn of_days(days: i32) -> Option<String> {
    // Years that begin in March, in eras of 400 years, as in Howard Hinnant's `civil_from_days`.
    let days = i64::from(days) + DAYS_TO_2000 + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day + 2) / 153;
    let day = day - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (1..=9_999).contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// The elements of `{a,"b c",NULL}` of one dimension.
fn elements_of_text(text: &str) -> Option<Vec<Option<String>>> {
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
fn elements_of_binary(kind: GuardKind, bytes: &[u8], is_utf8: bool) -> Option<Vec<Written>> {
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
