//! Values of a result, as their type wants them.

use crate::datum::{Datum, Format, ValueError};
use crate::{address, datetime, integer, interval, list, numeric, oid, real};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a value without its length. It is not [`Datum::Null`], which has no bytes.
///
/// The type is what the client was told; a value that is kept in another shape is converted where that loses nothing,
/// and refused where it would.
#[inline]
pub fn encode(type_oid: u32, format: Format, datum: Datum<'_>, out: &mut Vec<u8>) -> Result<(), ValueError> {
    match format {
        Format::Text => {
            let datum = fitting(type_oid, datum)?;
            write_text(type_oid, datum, out);
            Ok(())
        }
        Format::Binary => write_binary(type_oid, datum, out),
    }
}

/// A number that an integer of the type can be: a column of 64 bits may hold a larger one, and SQLite computes with
/// floats where integers end. A driver that reads such a text fails, or takes it for another number.
#[inline]
fn fitting(type_oid: u32, datum: Datum<'_>) -> Result<Datum<'_>, ValueError> {
    let fits = match (type_oid, datum) {
        (oid::INT4, Datum::Integer(number)) => i32::try_from(number).is_ok(),
        (oid::INT2, Datum::Integer(number)) => i16::try_from(number).is_ok(),
        (oid::INT8 | oid::INT4 | oid::INT2, Datum::Real(number)) => {
            let number = exactly(number).ok_or_else(|| ValueError::range(type_oid))?;
            return fitting(type_oid, Datum::Integer(number));
        }
        _ => true,
    };
    if fits { Ok(datum) } else { Err(ValueError::range(type_oid)) }
}

#[inline]
fn write_text(type_oid: u32, datum: Datum<'_>, out: &mut Vec<u8>) {
    match datum {
        Datum::Null => {}
        Datum::Integer(number) if type_oid == oid::BOOL => out.push(if number == 0 { b'f' } else { b't' }),
        // Functions of SQLite give a whole number for some floats.
        #[allow(clippy::cast_precision_loss, reason = "the column's values are doubles")]
        Datum::Integer(number) if type_oid == oid::FLOAT8 => real::write(number as f64, out),
        Datum::Integer(number) => integer::write(number, out),
        // Singles are kept as doubles.
        #[allow(clippy::cast_possible_truncation, reason = "the column's values are singles")]
        Datum::Real(number) if type_oid == oid::FLOAT4 => real::write_single(number as f32, out),
        Datum::Real(number) if type_oid == oid::NUMERIC => numeric::write_real(number, out),
        Datum::Real(number) => real::write(number, out),
        Datum::Text(text) if type_oid == oid::BYTEA => write_hex(text.as_bytes(), out),
        Datum::Text(text) if matches!(type_oid, oid::TIMESTAMPTZ | oid::TIMETZ) => {
            out.extend_from_slice(with_short_offset(text).as_bytes());
        }
        Datum::Text(text) => write_characters(type_oid, text, out),
        // Text on the wire is UTF-8, which other bytes are not.
        Datum::Bytes(bytes) => write_hex(bytes, out),
    }
}

/// JSON without blanks as PostgreSQL writes `jsonb`: with one behind each colon and comma.
fn write_spaced(json: &str, out: &mut Vec<u8>) {
    let (mut in_string, mut escaped) = (false, false);
    for &byte in json.as_bytes() {
        out.push(byte);
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else {
            in_string = byte == b'"';
            if matches!(byte, b',' | b':') {
                out.push(b' ');
            }
        }
    }
}

/// Text as it is; a list is kept as JSON, and one that is none goes as it is.
#[inline]
fn write_characters(type_oid: u32, text: &str, out: &mut Vec<u8>) {
    if type_oid == oid::JSONB {
        return write_spaced(text, out);
    }
    let element = if text.starts_with('[') { oid::element_of(type_oid) } else { None };
    if !element.is_some_and(|element| list::write_text(element, text, out)) {
        out.extend_from_slice(text.as_bytes());
    }
}

/// A moment as PostgreSQL writes it: the minutes of its offset only where there are some.
pub(crate) fn with_short_offset(text: &str) -> &str {
    match text.strip_suffix(":00") {
        Some(short) if matches!(short.as_bytes(), [.., b'+' | b'-', _, _]) => short,
        _ => text,
    }
}

fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\x");
    for byte in bytes {
        out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

fn write_binary(type_oid: u32, datum: Datum<'_>, out: &mut Vec<u8>) -> Result<(), ValueError> {
    match type_oid {
        oid::INT8 => out.extend_from_slice(&whole(type_oid, datum)?.to_be_bytes()),
        oid::INT4 => out.extend_from_slice(&narrow::<i32>(type_oid, datum)?.to_be_bytes()),
        oid::INT2 => out.extend_from_slice(&narrow::<i16>(type_oid, datum)?.to_be_bytes()),
        oid::OID => out.extend_from_slice(&narrow::<u32>(type_oid, datum)?.to_be_bytes()),
        oid::BOOL => out.push(u8::from(whole(type_oid, datum)? != 0)),
        oid::FLOAT8 => out.extend_from_slice(&fractional(type_oid, datum)?.to_be_bytes()),
        #[allow(clippy::cast_possible_truncation, reason = "the column's values are singles")]
        oid::FLOAT4 => out.extend_from_slice(&(fractional(type_oid, datum)? as f32).to_be_bytes()),
        oid::NUMERIC => write_numeric(datum, out)?,
        oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            out.extend_from_slice(&moment(type_oid, datum, datetime::read_timestamp)?.to_be_bytes());
        }
        oid::DATE => out.extend_from_slice(&moment(type_oid, datum, datetime::read_date)?.to_be_bytes()),
        oid::TIME => out.extend_from_slice(&moment(type_oid, datum, datetime::read_time)?.to_be_bytes()),
        oid::UUID => write_uuid(datum, out)?,
        oid::INET | oid::CIDR => {
            let read = |text: &str| address::binary(text, type_oid == oid::CIDR);
            out.extend_from_slice(&moment(type_oid, datum, read)?);
        }
        oid::JSONB => {
            // The version of the format.
            out.push(1);
            write_text(type_oid, datum, out);
        }
        oid::BYTEA => match datum {
            Datum::Bytes(bytes) => out.extend_from_slice(bytes),
            other => write_text(oid::TEXT, other, out),
        },
        oid::INTERVAL => {
            out.extend_from_slice(&moment(type_oid, datum, interval::write_binary)?);
        }
        _ => match (oid::element_of(type_oid), datum) {
            (None, datum) => write_text(type_oid, datum, out),
            (Some(element), Datum::Text(json)) => list::write_binary(type_oid, element, json, out)?,
            (Some(_), _) => return Err(ValueError::binary(type_oid)),
        },
    }
    Ok(())
}

fn whole(type_oid: u32, datum: Datum<'_>) -> Result<i64, ValueError> {
    match datum {
        Datum::Integer(number) => Ok(number),
        Datum::Real(number) => exactly(number).ok_or_else(|| ValueError::range(type_oid)),
        Datum::Text(text) => text.trim().parse().map_err(|_| ValueError::syntax(type_oid, text)),
        Datum::Null | Datum::Bytes(_) => Err(ValueError::binary(type_oid)),
    }
}

/// The whole number that a double is.
fn exactly(number: f64) -> Option<i64> {
    // 2^63; every whole double below it is a 64-bit number.
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    #[allow(clippy::cast_possible_truncation, reason = "the range and the fraction were looked at")]
    ((-BOUND..BOUND).contains(&number) && number.fract() == 0.0).then_some(number as i64)
}

fn narrow<N: TryFrom<i64>>(type_oid: u32, datum: Datum<'_>) -> Result<N, ValueError> {
    N::try_from(whole(type_oid, datum)?).map_err(|_| ValueError::range(type_oid))
}

fn fractional(type_oid: u32, datum: Datum<'_>) -> Result<f64, ValueError> {
    match datum {
        Datum::Integer(number) => Ok(number as f64),
        Datum::Real(number) => Ok(number),
        Datum::Text(text) => real::read(text).ok_or_else(|| ValueError::syntax(type_oid, text)),
        Datum::Null | Datum::Bytes(_) => Err(ValueError::binary(type_oid)),
    }
}

fn write_numeric(datum: Datum<'_>, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut text = Vec::new();
    write_text(oid::NUMERIC, datum, &mut text);
    let text = String::from_utf8_lossy(&text);
    if numeric::write_binary(&text, out) { Ok(()) } else { Err(ValueError::syntax(oid::NUMERIC, &text)) }
}

fn moment<N>(type_oid: u32, datum: Datum<'_>, read: impl Fn(&str) -> Option<N>) -> Result<N, ValueError> {
    match datum {
        Datum::Text(text) => read(text).ok_or_else(|| ValueError::syntax(type_oid, text)),
        _ => Err(ValueError::binary(type_oid)),
    }
}

fn write_uuid(datum: Datum<'_>, out: &mut Vec<u8>) -> Result<(), ValueError> {
    match datum {
        Datum::Text(text) => {
            let bytes = uuid_bytes(text).ok_or_else(|| ValueError::syntax(oid::UUID, text))?;
            out.extend_from_slice(&bytes);
            Ok(())
        }
        Datum::Bytes(bytes) if bytes.len() == 16 => {
            out.extend_from_slice(bytes);
            Ok(())
        }
        _ => Err(ValueError::binary(oid::UUID)),
    }
}

/// The bytes of a UUID's text; hyphens and braces may stand or be left out.
pub(crate) fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    let mut bytes = [0; 16];
    let mut count = 0;
    for digit in inner.bytes().filter(|byte| *byte != b'-') {
        let value = u8::try_from(char::from(digit).to_digit(16)?).ok()?;
        let byte = bytes.get_mut(count / 2)?;
        *byte = *byte << 4 | value;
        count += 1;
    }
    (count == 32).then_some(bytes)
}

/// The text of a UUID, as PostgreSQL writes it.
pub(crate) fn uuid_text(bytes: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from(HEX[usize::from(byte >> 4)]));
        text.push(char::from(HEX[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::with_short_offset;

    #[test]
    fn offsets_are_as_short_as_postgresql_writes_them() {
        for (kept, sent) in [
            ("2026-02-03 04:05:06.789+00:00", "2026-02-03 04:05:06.789+00"),
            ("2026-02-03 04:05:00-08:00", "2026-02-03 04:05:00-08"),
            ("2026-02-03 04:05:00+05:30", "2026-02-03 04:05:00+05:30"),
            ("2026-02-03 04:05:00", "2026-02-03 04:05:00"),
            ("infinity", "infinity"),
        ] {
            assert_eq!(with_short_offset(kept), sent);
        }
    }
}
