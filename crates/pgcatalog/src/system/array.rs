//! Arrays as values hold them: JSON text. PostgreSQL's own spellings are understood too.

use serde_json::Value as Json;
use sqlite::meter::{self, Text};
use sqltext::error::SqlError;
use store::scalar::float;
use store::value::Value;

use crate::function;
use crate::limits::NODE_UNITS;

/// An array of texts.
pub(super) fn of_texts(items: impl Iterator<Item = String>) -> Value {
    of_values(items.map(Value::Text))
}

/// An array of values. Where the statement may not have so much memory the call fails, and this is not looked at.
pub(super) fn of_values(items: impl Iterator<Item = Value>) -> Value {
    meter::part(|| written(items)).map_or(Value::Null, Value::Text)
}

fn written(items: impl Iterator<Item = Value>) -> Result<String, SqlError> {
    let mut text = Text::new();
    for (at, item) in items.enumerate() {
        text.push(if at == 0 { "[" } else { "," })?;
        text.push_json(&json_of(item))?;
    }
    text.push(if text.bytes() == 0 { "[]" } else { "]" })?;
    Ok(text.finish())
}

/// A row of named values, as values hold it: a JSON object.
pub(super) fn record<'n>(fields: impl Iterator<Item = (&'n str, Value)>) -> Value {
    let fields = fields.map(|(name, value)| (name.to_owned(), json_of(value)));
    Value::Text(Json::Object(fields.collect()).to_string())
}

fn json_of(value: Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(integer) => Json::from(integer),
        Value::Real(real) if real.is_finite() => Json::from(real),
        // JSON has no number for it.
        Value::Real(real) => Json::String(float::text(real)),
        Value::Text(text) => Json::String(text),
        Value::Blob(bytes) => Json::String(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

fn value_of(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Integer(i64::from(truth)),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Value::Integer(integer),
            (None, Some(real)) => Value::Real(real),
            (None, None) => Value::Null,
        },
        Json::String(text) => Value::Text(text),
        nested => Value::Text(nested.to_string()),
    }
}

/// An array's elements and the number of the first one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Elements {
    pub items: Vec<Value>,
    /// 1, but vectors of the catalogue (`pg_index.indkey`) count from 0.
    pub first: i64,
}

impl Elements {
    /// Reads `["a", "b"]`, `{a,b}`, or a vector `1 2`; two JSON arrays one after the other are one, so that `||`
    /// appends. `None` for NULL.
    ///
    /// Where the statement may not have so much memory the call fails, and what this gives is not looked at.
    pub(super) fn read(value: &Value) -> Option<Self> {
        if let Value::Text(text) = value {
            take_elements(text).ok()?;
        }
        match value {
            Value::Null => None,
            Value::Text(text) if text.starts_with('[') => {
                // The tree goes when the elements are made of it.
                Some(Self { items: meter::part(|| of_json(text)), first: 1 })
            }
            Value::Text(text) if text.starts_with('{') => Some(Self { items: of_braces(text), first: 1 }),
            Value::Text(text) => {
                let items = text.split_ascii_whitespace().map(number_or_text).collect();
                Some(Self { items, first: 0 })
            }
            Value::Integer(_) => Some(Self { items: vec![value.clone()], first: 0 }),
            other => Some(Self { items: vec![other.clone()], first: 1 }),
        }
    }

    /// The element of a number as SQL counts.
    pub(super) fn get(&self, number: i64) -> Value {
        let at = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.items.get(at)).cloned().unwrap_or_default()
    }

    /// The number of the last element.
    pub(super) fn last(&self) -> i64 {
        self.first + i64::try_from(self.items.len()).unwrap_or(i64::MAX) - 1
    }
}

/// What an element takes in a list that grows, with a short text of its own.
const ELEMENT_BYTES: usize = 3 * size_of::<Value>() + 32;

/// Asks for what the elements of a text take when they are read.
fn take_elements(text: &str) -> Result<(), SqlError> {
    let separators = |byte: &u8| matches!(byte, b',' | b' ' | b'[');
    let elements = 1 + text.bytes().filter(separators).count();
    meter::take(text.len() + elements * ELEMENT_BYTES)?;
    meter::work(text.len() + elements * NODE_UNITS)
}

fn of_json(text: &str) -> Vec<Value> {
    let mut items = Vec::new();
    function::each_json(text, |array| match array {
        Json::Array(more) => items.extend(more.into_iter().map(value_of)),
        other => items.push(value_of(other)),
    });
    items
}

fn number_or_text(word: &str) -> Value {
    word.parse().map_or_else(|_| Value::from(word), Value::Integer)
}

/// PostgreSQL's text of an array of one dimension.
fn of_braces(text: &str) -> Vec<Value> {
    let inside = text.strip_prefix('{').unwrap_or(text);
    let inside = inside.strip_suffix('}').unwrap_or(inside);
    let mut items = Vec::new();
    let mut item = String::new();
    let (mut in_quotes, mut was_quoted) = (false, false);
    let mut characters = inside.chars();
    let mut finish = |item: &mut String, was_quoted: &mut bool| {
        let text = std::mem::take(item);
        let is_null = !*was_quoted && text.eq_ignore_ascii_case("null");
        items.push(match (is_null, std::mem::take(was_quoted)) {
            (true, _) => Value::Null,
            (false, true) => Value::Text(text),
            (false, false) => number_or_text(text.trim()),
        });
    };
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                in_quotes = !in_quotes;
                was_quoted = true;
            }
            '\\' => item.extend(characters.next()),
            ',' if !in_quotes => finish(&mut item, &mut was_quoted),
            other => item.push(other),
        }
    }
    if !inside.is_empty() {
        finish(&mut item, &mut was_quoted);
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_read() {
        let texts = |items: &[&str]| items.iter().map(|item| Value::from(*item)).collect::<Vec<_>>();
        for (text, items, first) in [
            ("[\"a\",\"b,c\"]", texts(&["a", "b,c"]), 1),
            ("[\"a\"][\"b\"]", texts(&["a", "b"]), 1),
            ("{a,\"b,c\",\"d\\\"e\"}", texts(&["a", "b,c", "d\"e"]), 1),
            ("{1,2,NULL}", vec![Value::Integer(1), Value::Integer(2), Value::Null], 1),
            ("{}", vec![], 1),
            ("3 1", vec![Value::Integer(3), Value::Integer(1)], 0),
            ("", vec![], 0),
        ] {
            assert_eq!(Elements::read(&Value::from(text)), Some(Elements { items, first }), "{text}");
        }
        assert_eq!(Elements::read(&Value::Null), None);
    }

    #[test]
    fn vectors_count_from_zero() {
        let vector = Elements::read(&Value::from("3 1")).unwrap();
        assert_eq!((vector.get(0), vector.get(2), vector.last()), (Value::Integer(3), Value::Null, 1));
        let array = Elements::read(&Value::from("[3, 1]")).unwrap();
        assert_eq!((array.get(1), array.get(0), array.last()), (Value::Integer(3), Value::Null, 2));
    }
}
