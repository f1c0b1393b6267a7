//! Lists as parameters: PostgreSQL's array text and binary become a JSON array.

use crate::datum::{Format, Value, ValueError};
use crate::decode::decode;
use crate::{integer, oid, real};

/// The JSON of `{1,2,NULL,"a b"}`.
pub(crate) fn json_of_text(element: u32, text: &str) -> Result<String, ValueError> {
    let wrong = || {
        let shown: String = text.chars().take(100).collect();
        ValueError::new("22P02", format!("malformed array literal: \"{shown}\""))
    };
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or_else(wrong)?;
    let mut list = List::new();
    let mut rest = inner;
    while !rest.trim_start().is_empty() {
        let (item, after) = item(rest.trim_start()).ok_or_else(wrong)?;
        match item {
            Item::Text(item) => list.push(element, decode(element, Format::Text, item.as_bytes())?)?,
            Item::Null => list.push(element, Value::Null)?,
        }
        rest = match after.trim_start().strip_prefix(',') {
            Some(rest) if !rest.trim_start().is_empty() => rest,
            None if after.trim_start().is_empty() => "",
            _ => return Err(wrong()),
        };
    }
    Ok(list.finish())
}

/// An item of a list.
enum Item {
    Null,
    Text(String),
}

/// The first item, and what follows it.
fn item(text: &str) -> Option<(Item, &str)> {
    if text.starts_with('{') {
        return None;
    }
    let quoted = text.starts_with('"');
    let mut item = String::new();
    let mut chars = text.char_indices().skip(usize::from(quoted));
    while let Some((at, next)) = chars.next() {
        match next {
            '\\' => item.push(chars.next()?.1),
            '"' if quoted => return Some((Item::Text(item), &text[at + 1..])),
            '"' | '{' | '}' if !quoted => return None,
            ',' if !quoted => return Some((unquoted(&item)?, &text[at..])),
            _ => item.push(next),
        }
    }
    if quoted { None } else { Some((unquoted(&item)?, "")) }
}

fn unquoted(item: &str) -> Option<Item> {
    let item = item.trim_end();
    if item.is_empty() {
        return None;
    }
    Some(if item.eq_ignore_ascii_case("null") { Item::Null } else { Item::Text(item.to_owned()) })
}

/// The JSON of a binary array.
pub(crate) fn json_of_binary(element: u32, bytes: &[u8], dimensions_max: i32) -> Result<String, ValueError> {
    let wrong = || ValueError::new("22P03", "incorrect binary data format for an array".into());
    let mut rest = bytes;
    let mut word = || -> Result<i32, ValueError> {
        let (word, after) = rest.split_first_chunk().ok_or_else(wrong)?;
        rest = after;
        Ok(i32::from_be_bytes(*word))
    };
    let (dimensions, _has_null, sent) = (word()?, word()?, word()?.cast_unsigned());
    if dimensions > dimensions_max {
        return Err(ValueError::new("0A000", "a list with more than one dimension is not supported".into()));
    }
    if dimensions < 0 || sent != element {
        return Err(wrong());
    }
    let count = if dimensions == 0 { 0 } else { word()? };
    if dimensions == 1 {
        word()?;
    }
    let mut list = List::new();
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk().ok_or_else(wrong)?;
        rest = after;
        let length = i32::from_be_bytes(*length);
        if length == -1 {
            list.push(element, Value::Null)?;
            continue;
        }
        let length = usize::try_from(length).map_err(|_| wrong())?;
        let (item, after) = rest.split_at_checked(length).ok_or_else(wrong)?;
        rest = after;
        list.push(element, decode(element, Format::Binary, item)?)?;
    }
    if rest.is_empty() { Ok(list.finish()) } else { Err(wrong()) }
}

/// A JSON array under way.
struct List {
    json: Vec<u8>,
}

impl List {
    fn new() -> Self {
        Self { json: vec![b'['] }
    }

    fn push(&mut self, element: u32, value: Value) -> Result<(), ValueError> {
        if self.json.len() > 1 {
            self.json.push(b',');
        }
        match value {
            Value::Null => self.json.extend_from_slice(b"null"),
            Value::Integer(number) => integer::write(number, &mut self.json),
            Value::Real(number) if number.is_finite() => real::write(number, &mut self.json),
            Value::Real(_) => {
                let message = "a list of numbers cannot hold NaN or infinity".to_owned();
                return Err(ValueError::new("0A000", message));
            }
            Value::Text(text) => self.text(&text),
            Value::Bytes(_) => {
                let name = oid::name(element);
                return Err(ValueError::new("0A000", format!("a list of {name} is not supported")));
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.json.push(b'"');
        for byte in text.bytes() {
            match byte {
                b'"' | b'\\' => self.json.extend_from_slice(&[b'\\', byte]),
                0..=0x1f => self.json.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => self.json.push(byte),
            }
        }
        self.json.push(b'"');
    }

    fn finish(mut self) -> String {
        self.json.push(b']');
        String::from_utf8(self.json).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_lists() {
        let table = [
            (oid::INT4, "{}", "[]"),
            (oid::INT4, "{1, 2,NULL}", "[1,2,null]"),
            (oid::TEXT, r#"{a,"b \"c\" \\",NULL,"NULL",""}"#, r#"["a","b \"c\" \\",null,"NULL",""]"#),
            (oid::FLOAT8, "{1.5,2}", "[1.5,2]"),
            (oid::BOOL, "{t,f}", "[1,0]"),
        ];
        for (element, text, json) in table {
            assert_eq!(json_of_text(element, text).as_deref(), Ok(json), "{text}");
        }
        for text in ["", "{", "1,2", "{1,}", "{,}", "{{1},{2}}", "{\"a}", "{a\"b}", "{x}"] {
            assert!(json_of_text(oid::INT4, text).is_err(), "{text}");
        }
    }

    #[test]
    fn binary_lists() {
        let words = |words: &[i32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_be_bytes()).collect() };
        let list = words(&[1, 1, 23, 3, 1, 4, 7, -1, 4, -9]);
        assert_eq!(json_of_binary(oid::INT4, &list, 1).as_deref(), Ok("[7,null,-9]"));
        assert_eq!(json_of_binary(oid::INT4, &words(&[0, 0, 23]), 1).as_deref(), Ok("[]"));
        for cut in 0..list.len() {
            assert!(json_of_binary(oid::INT4, &list[..cut], 1).is_err());
        }
        for wrong in [
            words(&[2, 0, 23, 1, 1, 1, 1, 4, 7]),
            words(&[1, 0, 25, 1, 1, 4, 7]),
            words(&[1, 0, 23, i32::MAX, 1]),
        ] {
            assert!(json_of_binary(oid::INT4, &wrong, 1).is_err());
        }
    }
}
