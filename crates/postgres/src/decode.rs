//! Parameters, as their type has them.

use crate::datum::{Format, Value, ValueError};
use crate::encode::{uuid_bytes, uuid_text};
use crate::limits::ARRAY_DIMENSIONS_MAX;
use crate::{address, datetime, interval, numeric, oid, real};

/// Reads a parameter that is not NULL. Lists become JSON text, which the engine takes for a list.
#[inline]
pub fn decode(type_oid: u32, format: Format, bytes: &[u8]) -> Result<Value, ValueError> {
    match format {
        Format::Text => read_text(type_oid, text_of(bytes)?),
        Format::Binary => read_binary(type_oid, bytes),
    }
}

#[inline]
fn text_of(bytes: &[u8]) -> Result<&str, ValueError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        ValueError::new(
            "22021",
            format!("invalid byte sequence for encoding \"UTF8\" at byte {at} of a value"),
        )
    })?;
    // Many times as fast in a long value as the library's own search for a character.
    if memchr::memchr(0, bytes).is_some() {
        return Err(ValueError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00".into()));
    }
    Ok(text)
}

fn read_text(type_oid: u32, text: &str) -> Result<Value, ValueError> {
    let wrong = || ValueError::syntax(type_oid, text);
    Ok(match type_oid {
        oid::INT2 => Value::Integer(whole(type_oid, text, i64::from(i16::MIN)..=i64::from(i16::MAX))?),
        oid::INT4 => Value::Integer(whole(type_oid, text, i64::from(i32::MIN)..=i64::from(i32::MAX))?),
        oid::INT8 => Value::Integer(whole(type_oid, text, i64::MIN..=i64::MAX)?),
        oid::OID => Value::Integer(whole(type_oid, text, 0..=i64::from(u32::MAX))?),
        oid::BOOL => Value::Integer(i64::from(truth(text).ok_or_else(wrong)?)),
        oid::FLOAT4 | oid::FLOAT8 => Value::Real(real::read(text).ok_or_else(wrong)?),
        oid::NUMERIC => number(text).ok_or_else(wrong)?,
        oid::BYTEA => Value::Bytes(bytes_of(text).ok_or_else(wrong)?),
        oid::UUID => Value::Text(uuid_text(&uuid_bytes(text).ok_or_else(wrong)?)),
        array => match oid::element_of(array) {
            Some(element) => Value::Text(crate::array::json_of_text(element, text)?),
            None => Value::Text(text.to_owned()),
        },
    })
}

fn whole(type_oid: u32, text: &str, range: std::ops::RangeInclusive<i64>) -> Result<i64, ValueError> {
    let trimmed = text.trim();
    match trimmed.parse::<i64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        Ok(_) => Err(ValueError::range(type_oid)),
        Err(error) => Err(match error.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                ValueError::range(type_oid)
            }
            _ => ValueError::syntax(type_oid, text),
        }),
    }
}

/// A truth value: any unambiguous beginning of PostgreSQL's words.
fn truth(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    match text.as_str() {
        "on" | "1" => return Some(true),
        "of" | "off" | "0" => return Some(false),
        "" => return None,
        _ => {}
    }
    let begins = |word: &str| word.starts_with(&text);
    if begins("true") || begins("yes") {
        Some(true)
    } else if begins("false") || begins("no") {
        Some(false)
    } else {
        None
    }
}

/// A decimal number as its text, with all its digits.
fn number(text: &str) -> Option<Value> {
    let trimmed = text.trim();
    let known = trimmed.parse::<i64>().is_ok() || real::read(trimmed).is_some();
    known.then(|| Value::Text(trimmed.to_owned()))
}

/// The bytes of `\x00ff`, or of the older form where `\\` and `\ooo` stand for bytes.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let Some(digits) = text.strip_prefix("\\x") else { return escaped_bytes(text.as_bytes()) };
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

fn escaped_bytes(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                after
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                after
            }
            (b'\\', _) => return None,
            (byte, after) => {
                bytes.push(*byte);
                after
            }
        };
    }
    Some(bytes)
}

fn read_binary(type_oid: u32, bytes: &[u8]) -> Result<Value, ValueError> {
    let wrong = || ValueError::binary(type_oid);
    Ok(match type_oid {
        oid::INT2 => Value::Integer(i64::from(i16::from_be_bytes(fixed(type_oid, bytes)?))),
        oid::INT4 => Value::Integer(i64::from(i32::from_be_bytes(fixed(type_oid, bytes)?))),
        oid::INT8 => Value::Integer(i64::from_be_bytes(fixed(type_oid, bytes)?)),
        oid::OID => Value::Integer(i64::from(u32::from_be_bytes(fixed(type_oid, bytes)?))),
        oid::BOOL => Value::Integer(i64::from(fixed::<1>(type_oid, bytes)?[0] != 0)),
        oid::FLOAT4 => Value::Real(f64::from(f32::from_be_bytes(fixed(type_oid, bytes)?))),
        oid::FLOAT8 => Value::Real(f64::from_be_bytes(fixed(type_oid, bytes)?)),
        oid::NUMERIC => Value::Text(numeric::read_binary(bytes).ok_or_else(wrong)?),
        oid::BYTEA => Value::Bytes(bytes.to_vec()),
        oid::TIMESTAMP => {
            let micros = i64::from_be_bytes(fixed(type_oid, bytes)?);
            Value::Text(datetime::timestamp_text(micros).ok_or_else(|| out_of_range(type_oid))?)
        }
        oid::TIMESTAMPTZ => {
            let micros = i64::from_be_bytes(fixed(type_oid, bytes)?);
            let text = datetime::timestamp_text(micros).ok_or_else(|| out_of_range(type_oid))?;
            Value::Text(format!("{text}+00"))
        }
        oid::DATE => {
            let days = i32::from_be_bytes(fixed(type_oid, bytes)?);
            Value::Text(datetime::date_text(days).ok_or_else(|| out_of_range(type_oid))?)
        }
        oid::TIME => {
            let micros = i64::from_be_bytes(fixed(type_oid, bytes)?);
            Value::Text(datetime::time_text(micros).ok_or_else(|| out_of_range(type_oid))?)
        }
        oid::UUID => Value::Text(uuid_text(&fixed(type_oid, bytes)?)),
        oid::INET | oid::CIDR => Value::Text(address::text(bytes).ok_or_else(wrong)?),
        oid::JSONB => match bytes {
            [1, text @ ..] => Value::Text(text_of(text)?.to_owned()),
            _ => return Err(wrong()),
        },
        oid::INTERVAL => Value::Text(interval::read_binary(fixed(type_oid, bytes)?)),
        array => match oid::element_of(array) {
            Some(element) => Value::Text(crate::array::json_of_binary(element, bytes, ARRAY_DIMENSIONS_MAX)?),
            None => Value::Text(text_of(bytes)?.to_owned()),
        },
    })
}

fn out_of_range(type_oid: u32) -> ValueError {
    ValueError::new("22008", format!("{} out of range: years 0 to 9999 are kept", oid::name(type_oid)))
}

#[inline]
fn fixed<const N: usize>(type_oid: u32, bytes: &[u8]) -> Result<[u8; N], ValueError> {
    bytes.try_into().map_err(|_| ValueError::binary(type_oid))
}
