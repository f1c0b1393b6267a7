//! Functions of texts and bytes.

use std::collections::{HashMap, HashSet};

use SqlType::{Bytea, Int4, Int8, Text};
use serde_json::Value as Json;
use sqlite::meter::{self, TextArray};
use sqlite::random_bytes;
use sqltext::error::{SqlError, state};
use sqltext::token::{Kind, Token, Tokens, unquoted};
use store::definition::SqlType;
use store::scalar::simple::{hexadecimal, write_uuid};
use store::value::Value;

use super::def::{FunctionDef, Now, Numeric, Returns, Source, bytes, integer, length, text};
use crate::names::identifier;

#[expect(clippy::too_many_arguments, reason = "one line of a table, each part of it")]
const fn own(
    name: &'static str,
    arguments: &'static str,
    ty: SqlType,
    types: &'static [SqlType],
    source: Source,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    FunctionDef {
        name,
        arguments,
        returns: Returns::Type(ty),
        types,
        source,
        numeric: None,
        of_floats: None,
        of_spans: None,
        meaning,
        example,
        answer,
    }
}

/// Texts and bytes.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("ascii", "(text)", Int4, &[Text], Source::Own(|_, v| Ok(Value::Integer(text(v, 0)?.chars().next().map_or(0, |c| i64::from(u32::from(c))))), 1, 1),
        "the code of the first character", "ascii('A')", "65"),
    own("bit_length", "(text)", Int4, &[Text], Source::Own(|_, v| Ok(Value::Integer(count(bytes(v, 0)?.len() * 8))), 1, 1),
        "how many bits it takes", "bit_length('ab')", "16"),
    own("btrim", "(text, characters)", Text, &[Text, Text], Source::Own(btrim, 1, 2),
        "without these characters, or blanks, at both ends", "btrim('xxaxx', 'x')", "a"),
    own("decode", "(text, format)", Bytea, &[Text, Text], Source::Own(decode, 2, 2),
        "bytes from `hex`, `base64` or `escape`", "hex(decode('AAE=', 'base64'))", "0001"),
    own("encode", "(bytes, format)", Text, &[Bytea, Text], Source::Own(encode, 2, 2),
        "bytes as `hex`, `base64` or `escape`", "encode(x'00ff', 'hex')", "00ff"),
    own("format_values", "(pattern, value, ...)", Text, &[], Source::Raw(|_, v| format_values(v), -1, -1, false),
        "what `format` is where the pattern has `%I`, `%L` or places", "format('%I.%2$L', 'a b', 'it''s')", "\"a b\".'it''s'").numeric(Numeric::Text),
    own("gen_random_uuid", "()", SqlType::Uuid, &[], Source::Raw(|_, _| Ok(Value::Text(random_uuid())), 0, 0, true),
        "a random UUID (version 4)", "length(gen_random_uuid())", "36"),
    own("uuid_generate_v4", "()", SqlType::Uuid, &[], Source::Raw(|_, _| Ok(Value::Text(random_uuid())), 0, 0, true),
        "the same, as the extension `uuid-ossp` calls it", "length(uuid_generate_v4())", "36"),
    own("initcap", "(text)", Text, &[Text], Source::Own(|_, v| Ok(Value::Text(initcap(&text(v, 0)?))), 1, 1),
        "each word with a capital first letter", "initcap('hello WORLD')", "Hello World"),
    own("left", "(text, n)", Text, &[Text, Int4], Source::Own(left, 2, 2),
        "the first n characters; all but the last -n", "left('abcde', 2)", "ab"),
    own("lpad", "(text, length, fill)", Text, &[Text, Int4, Text], Source::Own(|_, v| pad(v, true), 2, 3),
        "filled up on the left, or cut", "lpad('7', 3, '0')", "007"),
    own("md5", "(text or bytes)", Text, &[Text], Source::Own(|_, v| Ok(Value::Text(hex(&digest::<md5::Md5>(&bytes(v, 0)?)))), 1, 1),
        "the MD5 digest in hexadecimal digits", "md5('abc')", "900150983cd24fb0d6963f7d28e17f72"),
    own("overlay", "(text PLACING other FROM start FOR count)", Text, &[Text, Text, Int4, Int4], Source::Own(overlay, 3, 4),
        "with a part replaced", "overlay('Txxxxas' placing 'hom' from 2 for 4)", "Thomas"),
    own("quote_ident", "(text)", Text, &[Text], Source::Own(|_, v| Ok(Value::Text(identifier(&text(v, 0)?))), 1, 1),
        "as a name in SQL", "quote_ident('Foo bar')", "\"Foo bar\""),
    own("quote_literal", "(text)", Text, &[Text], Source::Own(|_, v| Ok(Value::Text(quoted(&text(v, 0)?))), 1, 1),
        "as a literal in SQL", "quote_literal('it''s')", "'it''s'").numeric(Numeric::Text),
    own("quote_nullable", "(text)", Text, &[Text], Source::Raw(|_, v| Ok(Value::Text(if v.first().is_none_or(Value::is_null) { "NULL".to_owned() } else { quoted(&text(v, 0)?) })), 1, 1, false),
        "as `quote_literal`; `NULL` of NULL", "quote_nullable(NULL)", "NULL").numeric(Numeric::Text),
    own("repeat", "(text, n)", Text, &[Text, Int4], Source::Own(repeat, 2, 2),
        "n times", "repeat('ab', 3)", "ababab"),
    own("reverse", "(text)", Text, &[Text], Source::Own(|_, v| Ok(Value::Text(text(v, 0)?.chars().rev().collect())), 1, 1),
        "backwards", "reverse('abc')", "cba"),
    own("right", "(text, n)", Text, &[Text, Int4], Source::Own(right, 2, 2),
        "the last n characters; all but the first -n", "right('abcde', 2)", "de"),
    own("rpad", "(text, length, fill)", Text, &[Text, Int4, Text], Source::Own(|_, v| pad(v, false), 2, 3),
        "filled up on the right, or cut", "rpad('a', 3, 'xy')", "axy"),
    FunctionDef { returns: Returns::Part, ..own("text_part", "(text or bytes, start, count)", Text, &[], Source::Own(part, 2, 3),
        "what `substr` is where the part may begin before the first character", "text_part('abcdef', -1, 4)", "ab") },
    own("sha224", "(text or bytes)", Bytea, &[Bytea], Source::Own(|_, v| Ok(Value::Blob(digest::<sha2::Sha224>(&bytes(v, 0)?))), 1, 1),
        "the SHA-224 digest", "length(sha224('abc'))", "28"),
    own("sha256", "(text or bytes)", Bytea, &[Bytea], Source::Own(|_, v| Ok(Value::Blob(digest::<sha2::Sha256>(&bytes(v, 0)?))), 1, 1),
        "the SHA-256 digest, as bytes", "encode(sha256('abc'), 'hex')", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    own("sha384", "(text or bytes)", Bytea, &[Bytea], Source::Own(|_, v| Ok(Value::Blob(digest::<sha2::Sha384>(&bytes(v, 0)?))), 1, 1),
        "the SHA-384 digest", "length(sha384('abc'))", "48"),
    own("sha512", "(text or bytes)", Bytea, &[Bytea], Source::Own(|_, v| Ok(Value::Blob(digest::<sha2::Sha512>(&bytes(v, 0)?))), 1, 1),
        "the SHA-512 digest", "length(sha512('abc'))", "64"),
    own("split_part", "(text, separator, n)", Text, &[Text, Text, Int4], Source::Own(split_part, 3, 3),
        "the n-th part between separators, from the end if n is negative", "split_part('frag:17:42', ':', 2)", "17"),
    own("starts_with", "(text, beginning)", SqlType::Bool, &[Text, Text], Source::Own(|_, v| Ok(truth(text(v, 0)?.starts_with(&text(v, 1)?))), 2, 2),
        "whether it begins so", "starts_with('abc', 'ab')", "1"),
    FunctionDef { returns: Returns::Texts, ..own("parse_ident", "(name, strict)", Text, &[Text, SqlType::Bool], Source::Own(parse_ident, 1, 2),
        "the parts of a name as an array; strict: nothing may stand behind it, which is how it is without the argument", "parse_ident('a.\"B c\"')", "[\"a\",\"B c\"]") },
    FunctionDef { returns: Returns::Texts, ..own("string_to_array", "(text, separator)", Text, &[Text, Text], Source::Own(string_to_array, 2, 2),
        "its parts between separators as an array", "string_to_array('a,b', ',')", "[\"a\",\"b\"]") },
    own("strpos", "(text, part)", Int4, &[Text, Text], Source::Own(strpos, 2, 2),
        "where the part begins, from 1; 0: nowhere", "strpos('high', 'ig')", "2"),
    own("to_hex", "(integer)", Text, &[Int8], Source::Own(|_, v| Ok(Value::Text(format!("{:x}", integer(v, 0)?.unwrap_or(0)))), 1, 1),
        "in hexadecimal digits", "to_hex(255)", "ff"),
    own("translate", "(text, from, to)", Text, &[Text, Text, Text], Source::Own(translate, 3, 3),
        "each character of from replaced by the one of to", "translate('12345', '143', 'ax')", "a2x5"),
];

/// What a character takes in a table that is looked up, while the table grows.
const CHANGE_BYTES: usize = 32;

/// How long the result of an encoding is at most, for each byte: four for `escape`.
const ENCODED_BYTES: usize = 4;

/// A text as a literal. One with a backslash is PostgreSQL's, which escapes it.
fn quoted(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if doubled.contains('\\') {
        format!("E'{}'", doubled.replace('\\', "\\\\"))
    } else {
        format!("'{doubled}'")
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn truth(truth: bool) -> Value {
    Value::Integer(i64::from(truth))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digits = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(digits[usize::from(digit)]))
        .collect()
}

fn digest<D: sha2::Digest>(bytes: &[u8]) -> Vec<u8> {
    D::digest(bytes).to_vec()
}

/// A version 4 UUID of SQLite's generator, which the system's randomness seeds.
fn random_uuid() -> String {
    let mut bytes: [u8; 16] = random_bytes();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    write_uuid(bytes)
}

fn btrim(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let characters = if values.len() > 1 { text(values, 1)? } else { " ".to_owned() };
    meter::take(characters.len() * CHANGE_BYTES)?;
    let characters: HashSet<char> = characters.chars().collect();
    Ok(Value::Text(text(values, 0)?.trim_matches(|c| characters.contains(&c)).to_owned()))
}

/// In lower case, each letter by itself, as PostgreSQL does it.
pub(super) fn lower(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    in_case(values, <[u8]>::make_ascii_lowercase, |text| cased(text, char::to_lowercase))
}

/// In upper case.
pub(super) fn upper(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    in_case(values, <[u8]>::make_ascii_uppercase, |text| cased(text, char::to_uppercase))
}

/// Of bytes that are no text the letters of ASCII.
fn in_case(
    values: &[Value],
    of_ascii: fn(&mut [u8]),
    of_text: fn(&str) -> String,
) -> Result<Value, SqlError> {
    let mut own = bytes(values, 0)?;
    meter::take(own.len() * 2)?;
    if !own.is_ascii()
        && let Ok(text) = std::str::from_utf8(&own)
    {
        return Ok(Value::Text(of_text(text)));
    }
    of_ascii(&mut own);
    Ok(String::from_utf8(own).map_or_else(|error| Value::Blob(error.into_bytes()), Value::Text))
}

/// Each letter that has one other form in it.
fn cased<I: Iterator<Item = char>>(text: &str, form: fn(char) -> I) -> String {
    let one = |letter: char| {
        let mut letters = form(letter);
        match (letters.next(), letters.next()) {
            (Some(one), None) => one,
            _ => letter,
        }
    };
    text.chars().map(one).collect()
}

fn initcap(text: &str) -> String {
    let mut inside = false;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        inside = c.is_alphanumeric();
    }
    out
}

/// PostgreSQL's `format`: `%s`, `%I`, `%L`, `%%`, and the number of a value as in `%2$s`.
fn format_values(values: &[Value]) -> Result<Value, SqlError> {
    if values.first().is_none_or(Value::is_null) {
        return Ok(Value::Null);
    }
    let pattern = text(values, 0)?;
    let (mut out, mut next, mut rest) = (String::new(), 1, &pattern[..]);
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        let place =
            behind.split_once('$').and_then(|(digits, rest)| Some((digits.parse::<usize>().ok()?, rest)));
        let (at, form) = place.unwrap_or((next, behind));
        let mut letters = form.chars();
        let letter = letters.next();
        rest = letters.as_str();
        if letter == Some('%') {
            out.push('%');
            continue;
        }
        next = at + 1;
        meter::take(out.len())?;
        out.push_str(&formatted(letter, at, values)?);
    }
    out.push_str(rest);
    Ok(Value::Text(out))
}

/// One value of [`format_values`].
fn formatted(letter: Option<char>, at: usize, values: &[Value]) -> Result<String, SqlError> {
    let Some(value) = values.get(at).filter(|_| at > 0) else {
        return Err(SqlError::new(state::BAD_PARAMETER, "too few arguments for format()"));
    };
    let missing = value.is_null();
    match letter {
        Some('s') if missing => Ok(String::new()),
        Some('s') => text(values, at),
        Some('I') if missing => {
            Err(SqlError::new("22004", "null values cannot be formatted as an SQL identifier"))
        }
        Some('I') => Ok(identifier(&text(values, at)?)),
        Some('L') if missing => Ok("NULL".to_owned()),
        Some('L') => Ok(quoted(&text(values, at)?)),
        _ => Err(SqlError::new(state::BAD_PARAMETER, "unrecognized format() type specifier")),
    }
}

/// How many characters of `length` a signed count keeps.
fn kept(n: i64, length: usize) -> usize {
    let n = if n < 0 { count(length).saturating_add(n) } else { n };
    usize::try_from(n.max(0)).unwrap_or(usize::MAX).min(length)
}

fn left(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let text = text(values, 0)?;
    let keep = kept(integer(values, 1)?.unwrap_or(0), text.chars().count());
    Ok(Value::Text(text.chars().take(keep).collect()))
}

fn right(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let text = text(values, 0)?;
    let length = text.chars().count();
    let keep = kept(integer(values, 1)?.unwrap_or(0), length);
    Ok(Value::Text(text.chars().skip(length - keep).collect()))
}

fn pad(values: &[Value], left: bool) -> Result<Value, SqlError> {
    let (own, wanted) = (text(values, 0)?, length(values, 1)?);
    let fill = if values.len() > 2 { text(values, 2)? } else { " ".to_owned() };
    // The filling, and the two together.
    let longest = fill.chars().map(char::len_utf8).max().unwrap_or(0);
    let missing = wanted.saturating_sub(own.chars().count());
    meter::take((own.len() + missing * longest) * 2)?;
    meter::work(wanted)?;
    let filling: String = fill.chars().cycle().take(if fill.is_empty() { 0 } else { missing }).collect();
    let own: String = own.chars().take(wanted).collect();
    Ok(Value::Text(if left { filling + &own } else { own + &filling }))
}

fn repeat(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (own, times) = (text(values, 0)?, length(values, 1)?);
    let bytes = Value::Integer(count(own.len().saturating_mul(times)));
    let bytes = length(&[bytes], 0)?;
    meter::take(bytes)?;
    meter::work(bytes)?;
    Ok(Value::Text(own.repeat(times)))
}

/// Characters or bytes from a place on, which is counted from 1 and may lie before the first.
fn part(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let start = integer(values, 1)?.unwrap_or(1);
    let end = match values.get(2) {
        Some(_) => start.saturating_add(integer(values, 2)?.unwrap_or(0)),
        None => i64::MAX,
    };
    if end < start {
        return Err(SqlError::new("22011", "negative substring length not allowed"));
    }
    let place = |at: i64| usize::try_from(at.max(1) - 1).unwrap_or(usize::MAX);
    let (skipped, taken) = (place(start), place(end).saturating_sub(place(start)));
    if let Some(Value::Blob(bytes)) = values.first() {
        return Ok(Value::Blob(bytes.iter().skip(skipped).take(taken).copied().collect()));
    }
    Ok(Value::Text(text(values, 0)?.chars().skip(skipped).take(taken).collect()))
}

fn overlay(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (own, other) = (text(values, 0)?, text(values, 1)?);
    let start = integer(values, 2)?.unwrap_or(1);
    if start < 1 {
        return Err(SqlError::new("22011", "negative substring length not allowed"));
    }
    let replaced = integer(values, 3)?.unwrap_or_else(|| count(other.chars().count()));
    let head = usize::try_from(start - 1).unwrap_or(usize::MAX);
    let tail = usize::try_from((start - 1).saturating_add(replaced).max(0)).unwrap_or(usize::MAX);
    let before: String = own.chars().take(head).collect();
    let behind: String = own.chars().skip(tail).collect();
    Ok(Value::Text(before + &other + &behind))
}

fn split_part(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (own, separator) = (text(values, 0)?, text(values, 1)?);
    let n = integer(values, 2)?.unwrap_or(0);
    if n == 0 {
        return Err(SqlError::new("22023", "field position must not be zero"));
    }
    let at = usize::try_from(n.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let part = match (separator.is_empty(), n > 0) {
        (true, _) => (at == 0).then_some(own.as_str()),
        (false, true) => own.split(&separator).nth(at),
        (false, false) => own.rsplit(&separator).nth(at),
    };
    Ok(Value::from(part.unwrap_or_default()))
}

/// The parts of a name between points; what is not in quotes is in lower case.
fn parse_ident(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let name = text(values, 0)?;
    let strict = values.get(1).is_none_or(|strict| *strict != Value::Integer(0));
    let refused =
        || SqlError::new(state::BAD_PARAMETER, format!("string is not a valid identifier: \"{name}\""));
    let mut parts = Vec::new();
    let mut tokens = Tokens::new(&name);
    loop {
        match tokens.next() {
            Some(Token { kind: Kind::Word, text, .. }) => parts.push(text.to_lowercase()),
            Some(Token { kind: Kind::Quoted, text, .. }) if text.len() > 2 => parts.push(unquoted(text)),
            _ => return Err(refused()),
        }
        match tokens.next() {
            Some(token) if token.is_sign(".") => {}
            Some(_) if strict => return Err(refused()),
            _ => return Ok(Value::Text(Json::from(parts).to_string())),
        }
    }
}

fn string_to_array(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (own, separator) = (text(values, 0)?, text(values, 1)?);
    let mut parts = TextArray::new()?;
    match (own.is_empty(), separator.is_empty()) {
        (true, _) => {}
        (_, true) => parts.push(Some(&own))?,
        _ => own.split(&separator).try_for_each(|part| parts.push(Some(part)))?,
    }
    parts.finish().map(Value::Text)
}

/// The parts between separators; without one, the characters.
pub(crate) fn text_parts(values: &[Value]) -> Result<Vec<Value>, SqlError> {
    if values.first().is_none_or(Value::is_null) {
        return Ok(Vec::new());
    }
    let (own, separator) = (text(values, 0)?, text(values, 1)?);
    meter::take((own.len() + 1) * size_of::<Value>())?;
    let none = values.get(2).filter(|none| !none.is_null()).map(|_| text(values, 2)).transpose()?;
    let part = |part: &str| if none.as_deref() == Some(part) { Value::Null } else { Value::from(part) };
    Ok(match (own.is_empty(), values[1].is_null(), separator.is_empty()) {
        (true, ..) => Vec::new(),
        (_, true, _) => own.chars().map(|one| part(one.encode_utf8(&mut [0; 4]))).collect(),
        (_, _, true) => vec![part(&own)],
        _ => own.split(&separator).map(part).collect(),
    })
}

fn strpos(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let own = text(values, 0)?;
    let at = own.find(&text(values, 1)?);
    Ok(Value::Integer(at.map_or(0, |at| count(own[..at].chars().count() + 1))))
}

fn translate(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (own, from, to) = (text(values, 0)?, text(values, 1)?, text(values, 2)?);
    meter::take(from.len() * CHANGE_BYTES)?;
    let mut changes: HashMap<char, Option<char>> = HashMap::new();
    let mut to = to.chars();
    for c in from.chars() {
        let other = to.next();
        changes.entry(c).or_insert(other);
    }
    let change = |c: char| changes.get(&c).map_or(Some(c), |other| *other);
    Ok(Value::Text(own.chars().filter_map(change).collect()))
}

fn encode(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let own = bytes(values, 0)?;
    meter::take(own.len() * ENCODED_BYTES * 2)?;
    meter::work(own.len() * ENCODED_BYTES)?;
    let format = text(values, 1)?.to_ascii_lowercase();
    Ok(Value::Text(match format.as_str() {
        "hex" => hex(&own),
        "base64" => base64(&own),
        "escape" => own.iter().map(|&byte| escaped(byte)).collect(),
        other => return Err(unknown_format(other)),
    }))
}

fn escaped(byte: u8) -> String {
    match byte {
        b'\\' => "\\\\".to_owned(),
        0 | 0x80.. => format!("\\{byte:03o}"),
        other => char::from(other).to_string(),
    }
}

fn decode(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let own = text(values, 0)?;
    let format = text(values, 1)?.to_ascii_lowercase();
    let decoded = match format.as_str() {
        "hex" => hexadecimal(&own),
        "base64" => of_base64(&own),
        "escape" => of_escape(&own),
        other => return Err(unknown_format(other)),
    };
    decoded.map(Value::Blob).ok_or_else(|| SqlError::new("22023", format!("invalid {format} data")))
}

fn unknown_format(format: &str) -> SqlError {
    SqlError::new("22023", format!("unrecognized encoding: \"{format}\"; use hex, base64 or escape"))
}

/// `\\` is a backslash, `\ooo` a byte in octal digits.
fn of_escape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        let (byte, behind) = match (first, rest) {
            (b'\\', [b'\\', behind @ ..]) => (b'\\', behind),
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..]) => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), behind)
            }
            (b'\\', _) => return None,
            (other, behind) => (*other, behind),
        };
        bytes.push(byte);
        rest = behind;
    }
    Some(bytes)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 in lines of 76, as PostgreSQL writes it.
fn base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (at, chunk) in bytes.chunks(3).enumerate() {
        if at > 0 && at % 19 == 0 {
            out.push('\n');
        }
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let [a, b, c] = group;
        let sextets = [a >> 2, (a & 3) << 4 | b >> 4, (b & 15) << 2 | c >> 6, c & 63];
        for (position, sextet) in sextets.into_iter().enumerate() {
            let letter = if position <= chunk.len() { ALPHABET[usize::from(sextet)] } else { b'=' };
            out.push(char::from(letter));
        }
    }
    out
}

fn of_base64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let padding = digits.iter().rev().take(2).take_while(|&&byte| byte == b'=').count();
    let digits = &digits[..digits.len() - padding];
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for chunk in digits.chunks(4) {
        let mut group = 0_u32;
        for digit in chunk {
            let sextet = ALPHABET.iter().position(|letter| letter == digit)?;
            group = group << 6 | u32::try_from(sextet).ok()?;
        }
        group <<= 6 * (4 - chunk.len());
        bytes.extend_from_slice(&group.to_be_bytes()[1..chunk.len()]);
    }
    Some(bytes)
}

/// An error for an argument that is none of those that a function knows.
pub(super) fn unknown_word(what: &str, word: &str) -> SqlError {
    SqlError::new(state::NOT_SUPPORTED, format!("{what} \"{word}\" is not supported"))
}
