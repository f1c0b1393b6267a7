//! Rows as JSON text, one object a line.
//!
//! Text is escaped as JSON wants it, integers and reals are numbers, NULL and what JSON has no number for (NaN,
//! infinities) are `null`, and bytes are an object of their own, `{"base64":"..."}`, which no column of another type
//! can look like. Columns keep their order, and names that occur twice stay twice.

use std::io::Write as _;

use store::value::ValueRef;

/// The key of the object that stands for bytes, in rows and in parameters.
pub(crate) const BASE64: &str = "base64";

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends a string with its quotes.
pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' | b'\\' => Some(byte),
            b'\n' => Some(b'n'),
            b'\r' => Some(b'r'),
            b'\t' => Some(b't'),
            0..=0x1f | 0x7f => None,
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[written..at]);
        written = at + 1;
        match short {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None => write_infallibly(out, format_args!("\\u{byte:04x}")),
        }
    }
    out.extend_from_slice(&text.as_bytes()[written..]);
    out.push(b'"');
}

/// Whether a text is a number as JSON writes it, without an exponent.
pub(crate) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    all(whole) && all(fraction) && (whole.len() == 1 || !whole.starts_with('0'))
}

/// Appends a value.
pub(crate) fn write_value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Integer(number) => write_infallibly(out, format_args!("{number}")),
        // The shortest digits that read back as the same number; always with a point or an exponent.
        ValueRef::Real(number) if number.is_finite() => write_infallibly(out, format_args!("{number:?}")),
        ValueRef::Null | ValueRef::Real(_) => out.extend_from_slice(b"null"),
        ValueRef::Text(text) => write_text(text, out),
        ValueRef::Blob(bytes) => {
            out.extend_from_slice(b"{\"base64\":\"");
            write_base64(bytes, out);
            out.extend_from_slice(b"\"}");
        }
    }
}

/// Appends base64 with padding (RFC 4648).
fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let [a, b, c] = group;
        let sextets = [a >> 2, (a & 3) << 4 | b >> 4, (b & 15) << 2 | c >> 6, c & 63];
        for (position, sextet) in sextets.into_iter().enumerate() {
            let letter = if position <= chunk.len() { ALPHABET[usize::from(sextet)] } else { b'=' };
            out.push(letter);
        }
    }
}

/// The bytes of base64 text; padding may be left out. None where it is no base64.
pub(crate) fn read_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for chunk in digits.chunks(4) {
        let mut group = 0_u32;
        for digit in chunk {
            let sextet = ALPHABET.iter().position(|letter| letter == digit)?;
            group = group << 6 | u32::try_from(sextet).ok()?;
        }
        let count = match chunk.len() {
            4 => 3,
            3 => 2,
            2 => 1,
            _ => return None,
        };
        group <<= 6 * (4 - chunk.len());
        bytes.extend_from_slice(&group.to_be_bytes()[1..=count]);
    }
    Some(bytes)
}

fn write_infallibly(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a Vec never fails.
    let _written = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: ValueRef<'_>) -> String {
        let mut out = Vec::new();
        write_value(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_class() {
        let table = [
            (ValueRef::Null, "null"),
            (ValueRef::Integer(i64::MIN), "-9223372036854775808"),
            (ValueRef::Real(1.0), "1.0"),
            (ValueRef::Real(0.1), "0.1"),
            (ValueRef::Real(1e300), "1e300"),
            (ValueRef::Real(f64::NAN), "null"),
            (ValueRef::Real(f64::NEG_INFINITY), "null"),
            (ValueRef::Text(""), "\"\""),
            (
                ValueRef::Text("a\"b\\c\r\n\t\u{1}\u{7f}\u{e9}"),
                "\"a\\\"b\\\\c\\r\\n\\t\\u0001\\u007f\u{e9}\"",
            ),
            (ValueRef::Blob(b""), "{\"base64\":\"\"}"),
            (ValueRef::Blob(b"f"), "{\"base64\":\"Zg==\"}"),
            (ValueRef::Blob(b"fo"), "{\"base64\":\"Zm8=\"}"),
            (ValueRef::Blob(b"foo"), "{\"base64\":\"Zm9v\"}"),
        ];
        for (value, expected) in table {
            assert_eq!(json(value), expected);
        }
    }

    #[test]
    fn base64_there_and_back() {
        let mut bytes = Vec::new();
        for length in 0..70_u8 {
            let mut text = Vec::new();
            write_base64(&bytes, &mut text);
            assert_eq!(read_base64(std::str::from_utf8(&text).unwrap()), Some(bytes.clone()));
            bytes.push(length.wrapping_mul(151));
        }
        assert_eq!(read_base64("Zg"), Some(b"f".to_vec()));
        assert_eq!(read_base64("Z"), None);
        assert_eq!(read_base64("Zm9v!"), None);
    }

    #[test]
    fn strings_are_read_by_others() {
        let text: String = (0..0x250_u32).filter_map(char::from_u32).collect();
        let mut out = Vec::new();
        write_text(&text, &mut out);
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}
