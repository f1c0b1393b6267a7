//! Booleans, numbers, bytes, UUIDs and JSON.

use super::Refusal;
pub use crate::limits::JSON_DEPTH_MAX;
use crate::scalar::SqlType;
use crate::value::{Affinity, Value};

/// 1 and 0; `true`, `yes`, `on` and `t` with their opposites, as far as they are written, in any case.
pub(super) fn boolean(value: &Value) -> Result<Value, Refusal> {
    let truth = match value {
        Value::Integer(integer @ (0 | 1)) => Some(*integer == 1),
        Value::Text(text) => truth_of(text),
        _ => None,
    };
    truth.map(|truth| Value::Integer(i64::from(truth))).ok_or_else(|| Refusal::of_kind(SqlType::Bool, value))
}

/// The truth that a text spells.
pub fn truth_of(text: &str) -> Option<bool> {
    let word = text.trim().to_ascii_lowercase();
    let begins = |whole: &str| !word.is_empty() && whole.starts_with(&word);
    if begins("true") || begins("yes") || word == "on" || word == "1" {
        Some(true)
    } else if begins("false") || begins("no") || (word.len() > 1 && begins("off")) || word == "0" {
        Some(false)
    } else {
        None
    }
}

/// Integers, also as text. Floats are rounded, halves to the even neighbour.
pub(super) fn integer(ty: SqlType, value: Value) -> Result<Value, Refusal> {
    let value = match value {
        Value::Real(real) => Value::Integer(whole(real.round_ties_even()).ok_or_else(|| out_of_range(ty))?),
        other => other,
    };
    let digits = match &value {
        Value::Text(text) => is_integer(text.trim()),
        _ => false,
    };
    let narrow = |integer: i64| ty != SqlType::Int2 || i16::try_from(integer).is_ok();
    match value.with_affinity(Affinity::Integer) {
        Value::Integer(integer) if narrow(integer) => Ok(Value::Integer(integer)),
        Value::Integer(_) => Err(out_of_range(ty)),
        Value::Real(_) if digits => Err(out_of_range(ty)),
        other => Err(Refusal::of_kind(ty, &other)),
    }
}

/// A float without a fraction as the integer that it is, if 64 bits hold it.
pub fn whole(real: f64) -> Option<i64> {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "64 bits hold all numbers within the bounds")]
    (-BEYOND..BEYOND).contains(&real).then_some(real as i64)
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn out_of_range(ty: SqlType) -> Refusal {
    Refusal::new("22003", format!("{} out of range", ty.sql_name()))
}

/// A text of `CHAR(n)`: blanks behind it mean nothing there, so that it is the same text with them and without.
pub fn without_blanks(value: Value) -> Value {
    match value {
        Value::Text(text) if text.ends_with(' ') => Value::from(text.trim_end_matches(' ')),
        value => value,
    }
}

/// What the affinity makes of it, if that is of the kind.
pub(super) fn of_affinity(ty: SqlType, value: Value, affinity: Affinity) -> Result<Value, Refusal> {
    let value = match (&value, affinity) {
        (Value::Text(text), Affinity::Real) => infinite(text).map_or(value, Value::Real),
        _ => value,
    };
    if let (Value::Text(text), Affinity::Real) = (&value, affinity)
        && text.trim().parse().is_ok_and(|real| is_beyond(ty, real, text))
    {
        let message = format!("\"{text}\" is out of range for type {}", ty.sql_name());
        return Err(Refusal::new("22003", message));
    }
    let converted = value.with_affinity(affinity);
    let fits = match affinity {
        Affinity::Text => matches!(converted, Value::Text(_)),
        _ => matches!(converted, Value::Integer(_) | Value::Real(_)),
    };
    if fits { Ok(converted) } else { Err(Refusal::of_kind(ty, &converted)) }
}

/// Whether a float of this type cannot say the number that a text spells: it became infinite, or nothing.
fn is_beyond(ty: SqlType, real: f64, text: &str) -> bool {
    let single = ty == SqlType::Float4;
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !digits.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    #[expect(clippy::cast_possible_truncation, reason = "it is asked what is left of it")]
    let narrow = if single { f64::from(real as f32) } else { real };
    infinite(text).is_none() && (narrow.is_infinite() || (narrow == 0.0 && !is_zero))
}

/// The float that a word means.
fn infinite(text: &str) -> Option<f64> {
    let text = text.trim();
    let word = text.strip_prefix(['-', '+']).unwrap_or(text);
    let known = ["infinity", "inf"].iter().any(|known| word.eq_ignore_ascii_case(known));
    known.then_some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY })
}

/// The bytes of a literal: hexadecimal digits behind `\\x`, or a text with escapes.
pub fn bytes_of_literal(text: &str) -> Result<Value, Refusal> {
    if text.starts_with("\\x") {
        return bytes(Value::from(text));
    }
    escaped(text).map(Value::Blob).ok_or_else(|| {
        let message =
            "invalid input syntax for type bytea: behind a backslash stands another, or three octal digits";
        Refusal::new("22P02", message)
    })
}

/// Bytes; of text `\x` and hexadecimal digits, or else the text's own bytes.
pub(super) fn bytes(value: Value) -> Result<Value, Refusal> {
    match value {
        Value::Blob(bytes) => Ok(Value::Blob(bytes)),
        Value::Text(text) => match text.strip_prefix("\\x") {
            Some(digits) => hexadecimal(digits).map(Value::Blob).ok_or_else(|| {
                Refusal::new("22P02", "invalid hexadecimal data: \\x is followed by pairs of digits")
            }),
            None => Ok(Value::Blob(text.into_bytes())),
        },
        other => Err(Refusal::of_kind(SqlType::Bytea, &other)),
    }
}

/// The bytes of a text in which `\\` is a backslash and `\047` a byte in octal digits.
fn escaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind) {
            (b'\\', [b'\\', tail @ ..]) => {
                bytes.push(b'\\');
                rest = tail;
            }
            (b'\\', [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', tail @ ..]) => {
                bytes.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
                rest = tail;
            }
            (b'\\', _) => return None,
            _ => bytes.push(byte),
        }
    }
    Some(bytes)
}

/// The bytes of pairs of hexadecimal digits.
pub fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

/// A UUID in lower case with hyphens; taken in any case, in braces, with hyphens between groups of four or without.
pub(super) fn uuid(value: &Value) -> Result<Value, Refusal> {
    let written = match value {
        Value::Text(text) => uuid_of(text),
        Value::Blob(bytes) => <[u8; 16]>::try_from(bytes.as_slice()).ok().map(write_uuid),
        _ => None,
    };
    written.map(Value::Text).ok_or_else(|| Refusal::of_kind(SqlType::Uuid, value))
}

fn uuid_of(text: &str) -> Option<String> {
    let text = text.trim();
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let mut digits = String::with_capacity(32);
    for (at, group) in inner.split('-').enumerate() {
        let whole_groups = group.len() % 4 == 0 && !group.is_empty();
        if at > 7 || !whole_groups {
            return None;
        }
        digits.push_str(group);
    }
    let bytes = hexadecimal(&digits).filter(|_| digits.len() == 32)?;
    Some(write_uuid(bytes.try_into().ok()?))
}

/// The canonical text of 16 bytes.
pub fn write_uuid(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    text
}

/// Refuses JSON of more levels than functions read. What is no JSON is not looked at.
pub fn check_json_depth(text: &str) -> Result<(), Refusal> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                if depth > JSON_DEPTH_MAX {
                    let message = format!("JSON nests deeper than {JSON_DEPTH_MAX} levels");
                    return Err(Refusal::new("54001", message));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// JSON text, checked; `compact` gives it the form of `jsonb`.
pub(super) fn json(ty: SqlType, value: Value, compact: bool) -> Result<Value, Refusal> {
    let Value::Text(text) = value.with_affinity(Affinity::Text) else {
        return Err(Refusal::new(
            "22P02",
            format!("type {} takes text; json() converts bytes to it", ty.sql_name()),
        ));
    };
    check_json_depth(&text)?;
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        return Err(Refusal::new(
            "22P02",
            format!("invalid input syntax for type {}: {error}", ty.sql_name()),
        ));
    }
    Ok(Value::Text(if compact { super::jsonb::canonical(&text) } else { text }))
}

/// A type whose text has a form of its own.
pub(super) fn text_form(
    ty: SqlType,
    value: Value,
    form: impl Fn(&str) -> Result<String, Refusal>,
) -> Result<Value, Refusal> {
    match value {
        Value::Text(text) => form(&text).map(Value::Text),
        other => {
            let mut refusal = Refusal::of_kind(ty, &other);
            if ty != SqlType::Interval {
                refusal.state = "22007";
            }
            Err(refusal)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::accept;
    use super::*;

    fn text(value: &str) -> Value {
        Value::from(value)
    }

    #[test]
    fn common_spellings_are_taken() {
        use SqlType::{Bool, Bytea, Int2, Int8, Json, Jsonb, Numeric, Uuid};
        let uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for (ty, given, stored) in [
            (Bool, text("t"), Value::Integer(1)),
            (Bool, text(" TRUE "), Value::Integer(1)),
            (Bool, text("on"), Value::Integer(1)),
            (Bool, text("yes"), Value::Integer(1)),
            (Bool, text("of"), Value::Integer(0)),
            (Bool, text("n"), Value::Integer(0)),
            (Bool, Value::Integer(0), Value::Integer(0)),
            (Bool, Value::Null, Value::Null),
            (Int2, text(" 32767 "), Value::Integer(32_767)),
            (Int8, Value::Real(2.0), Value::Integer(2)),
            (Numeric, text("1.50"), text("1.50")),
            (Uuid, text("{A0EEBC99-9C0B4EF8-BB6D6BB9BD380A11}"), text(uuid)),
            (Uuid, text("a0eebc999c0b4ef8bb6d6bb9bd380a11"), text(uuid)),
            (Bytea, text("\\x00fF"), Value::Blob(vec![0, 255])),
            (Bytea, text("ab"), Value::Blob(b"ab".to_vec())),
            (Json, text(" {\"a\": 1} "), text(" {\"a\": 1} ")),
            (Jsonb, text(" {\"a b\\\" \" : [1, 2]} "), text("{\"a b\\\" \":[1,2]}")),
            (Json, Value::Integer(5), text("5")),
        ] {
            assert_eq!(accept(ty, given.clone()), Ok(stored), "{ty:?} {given:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        use SqlType::{Bool, Bytea, Int2, Int8, Interval, Json, Text, Timestamptz, Uuid};
        for (ty, given, state) in [
            (Bool, text("o"), "22P02"),
            (Bool, text(""), "22P02"),
            (Bool, Value::Integer(2), "22P02"),
            (Int2, Value::Integer(40_000), "22003"),
            (Int8, text("9223372036854775808"), "22003"),
            (Int8, text("x"), "22P02"),
            (Int8, Value::Real(1e19), "22003"),
            (Uuid, text("a0eebc99"), "22P02"),
            (Uuid, text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g"), "22P02"),
            (Bytea, text("\\x0"), "22P02"),
            (Json, text("{"), "22P02"),
            (Text, Value::Blob(vec![1]), "22P02"),
            (Timestamptz, text("soon"), "22007"),
            (Timestamptz, Value::Integer(5), "22007"),
            (Interval, text("soon"), "22007"),
        ] {
            assert_eq!(accept(ty, given.clone()).map_err(|refusal| refusal.state), Err(state), "{given:?}");
        }
    }
}
