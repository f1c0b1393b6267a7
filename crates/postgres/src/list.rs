//! Lists in results: the JSON array that is stored becomes PostgreSQL's array, in text and in binary.

use std::borrow::Cow;

use crate::datum::{Datum, Format, ValueError};
use crate::encode::{encode, with_short_offset};
use crate::oid;
use crate::real;

/// One element of the JSON.
#[derive(Debug, PartialEq)]
enum Element<'j> {
    Null,
    /// A number, a word, or a nested value, as it stands.
    Plain(&'j str),
    /// A text without its quotes.
    Text(Cow<'j, str>),
}

/// The elements of a JSON array; `None` for what is none.
fn elements(json: &str) -> Option<Vec<Element<'_>>> {
    let inside = json.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    let mut found = Vec::new();
    let mut rest = inside;
    while !rest.is_empty() {
        let end = element_end(rest);
        found.push(element(rest[..end].trim())?);
        rest = match rest[end..].strip_prefix(',') {
            Some(more) if !more.trim().is_empty() => more,
            Some(_) => return None,
            None => "",
        };
    }
    Some(found)
}

/// Where the first element ends: at the comma outside of all quotes and brackets, or at the end.
fn element_end(json: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in json.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return at,
            _ => {}
        }
    }
    json.len()
}

fn element(json: &str) -> Option<Element<'_>> {
    match json.strip_prefix('"') {
        Some(text) => unescaped(text.strip_suffix('"')?).map(Element::Text),
        None if json == "null" => Some(Element::Null),
        None if json.is_empty() => None,
        None => Some(Element::Plain(json)),
    }
}

/// The characters of a JSON string.
fn unescaped(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('\\') {
        return Some(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match characters.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => unicode(&mut characters)?,
            other => other,
        });
    }
    Some(Cow::Owned(out))
}

/// The character of four digits, or of twice four for one beyond the first plane.
fn unicode(characters: &mut std::str::Chars<'_>) -> Option<char> {
    let first = four_digits(characters)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    let (backslash, letter) = (characters.next()?, characters.next()?);
    let second = four_digits(characters).filter(|second| (0xdc00..0xe000).contains(second))?;
    let whole = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    (backslash == '\\' && letter == 'u').then(|| char::from_u32(whole)).flatten()
}

fn four_digits(characters: &mut std::str::Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |value, _| Some(value * 16 + characters.next()?.to_digit(16)?))
}

/// Writes a JSON array as PostgreSQL's text of one; false where it is none, and nothing is written.
pub(crate) fn write_text(element_oid: u32, json: &str, out: &mut Vec<u8>) -> bool {
    let Some(elements) = elements(json) else { return false };
    out.push(b'{');
    for (at, element) in elements.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        match element {
            Element::Null => out.extend_from_slice(b"NULL"),
            Element::Plain(plain) if element_oid == oid::BOOL => {
                out.push(if matches!(*plain, "0" | "false") { b'f' } else { b't' });
            }
            Element::Plain(text) if element_oid == oid::FLOAT4 || element_oid == oid::FLOAT8 => {
                write_float(element_oid, text, out);
            }
            Element::Plain(text) => write_element(text, out),
            Element::Text(text) if element_oid == oid::TIMESTAMPTZ || element_oid == oid::TIMETZ => {
                write_element(with_short_offset(text), out);
            }
            Element::Text(text) => write_element(text, out),
        }
    }
    out.push(b'}');
    true
}

/// A float, which JSON may have with a fraction of nothing.
fn write_float(oid: u32, text: &str, out: &mut Vec<u8>) {
    match text.parse::<f64>() {
        #[expect(clippy::cast_possible_truncation, reason = "it is a single")]
        Ok(number) if oid == oid::FLOAT4 => real::write_single(number as f32, out),
        Ok(number) => real::write(number, out),
        Err(_) => write_element(text, out),
    }
}

/// An element in quotes, where it needs them.
fn write_element(text: &str, out: &mut Vec<u8>) {
    let special = |byte: u8| matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\') || byte.is_ascii_whitespace();
    if !text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.bytes().any(special) {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Writes a JSON array as PostgreSQL's binary form of one.
pub(crate) fn write_binary(
    array_oid: u32,
    element_oid: u32,
    json: &str,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let elements = elements(json).ok_or_else(|| ValueError::syntax(array_oid, json))?;
    let count = i32::try_from(elements.len()).map_err(|_| ValueError::range(array_oid))?;
    let nulls = elements.contains(&Element::Null);
    out.extend_from_slice(&i32::from(count > 0).to_be_bytes());
    out.extend_from_slice(&i32::from(nulls).to_be_bytes());
    out.extend_from_slice(&element_oid.to_be_bytes());
    if count == 0 {
        return Ok(());
    }
    out.extend_from_slice(&count.to_be_bytes());
    // The number of the first element.
    out.extend_from_slice(&1_i32.to_be_bytes());
    for element in &elements {
        let datum = match element {
            Element::Null => {
                out.extend_from_slice(&(-1_i32).to_be_bytes());
                continue;
            }
            Element::Plain("true") => Datum::Integer(1),
            Element::Plain("false") => Datum::Integer(0),
            Element::Plain(text) => Datum::Text(text),
            Element::Text(text) => Datum::Text(text),
        };
        let place = out.len();
        out.extend_from_slice(&[0; 4]);
        encode(element_oid, Format::Binary, datum, out)?;
        let length = i32::try_from(out.len() - place - 4).map_err(|_| ValueError::range(array_oid))?;
        out[place..place + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(element: u32, json: &str) -> Option<String> {
        let mut out = Vec::new();
        write_text(element, json, &mut out).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn json_becomes_an_array() {
        for (element, json, expected) in [
            (oid::TEXT, "[]", Some("{}")),
            (oid::TEXT, "[\"a\", \"b c\", \"\", null, \"NULL\"]", Some("{a,\"b c\",\"\",NULL,\"NULL\"}")),
            (oid::TEXT, r#"["q\"\\,{}", "\u00e9\ud83d\ude00"]"#, Some("{\"q\\\"\\\\,{}\",\u{e9}\u{1f600}}")),
            (oid::INT4, "[1,-2, 3]", Some("{1,-2,3}")),
            (oid::BOOL, "[1,0,true,false]", Some("{t,f,t,f}")),
            (oid::FLOAT8, "[1.0,-2.5,1e20,3,\"NaN\"]", Some("{1,-2.5,1e+20,3,NaN}")),
            (oid::FLOAT4, "[0.1,1e7]", Some("{0.1,1e+07}")),
            (oid::JSON, "[{\"a\": [1, 2]}]", Some(r#"{"{\"a\": [1, 2]}"}"#)),
            (oid::TEXT, "{a}", None),
            (oid::TEXT, "[1,]", None),
            (oid::TEXT, "[\"a]", None),
            (oid::TEXT, r#"["\ud83d"]"#, None),
        ] {
            assert_eq!(text(element, json).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn binary_has_lengths() {
        let mut out = Vec::new();
        write_binary(oid::INT2_ARRAY, oid::INT2, "[7,null]", &mut out).unwrap();
        let expected: Vec<u8> = [1_i32, 1, 21, 2, 1, 2].into_iter().flat_map(i32::to_be_bytes).collect();
        assert_eq!(out[..24], expected[..]);
        assert_eq!(out[24..], [0, 7, 255, 255, 255, 255]);
        let mut out = Vec::new();
        write_binary(oid::TEXT_ARRAY, oid::TEXT, "[]", &mut out).unwrap();
        assert_eq!(out.len(), 12);
        assert!(write_binary(oid::INT2_ARRAY, oid::INT2, "[\"x\"]", &mut Vec::new()).is_err());
    }
}
