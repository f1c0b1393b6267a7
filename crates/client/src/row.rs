//! Rows with all their columns.

use serde_json::{Map, Number, Value as Json};
use store::value::Value;

/// One row: its columns with their values, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    columns: Vec<(String, Value)>,
}

impl Row {
    /// A row of these columns.
    pub fn new(columns: Vec<(String, Value)>) -> Self {
        Self { columns }
    }

    /// The value of a column; names match in any ASCII case, as in SQL.
    pub fn get(&self, column: &str) -> Option<&Value> {
        self.columns.iter().find(|(name, _)| name.eq_ignore_ascii_case(column)).map(|(_, value)| value)
    }

    /// All columns in their order.
    pub fn columns(&self) -> &[(String, Value)] {
        &self.columns
    }

    /// The columns, owned.
    pub fn into_columns(self) -> Vec<(String, Value)> {
        self.columns
    }

    /// The text of a column; none for NULL, a number, or bytes that are no text.
    pub fn text(&self, column: &str) -> Option<&str> {
        match self.get(column) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// A row of the text protocol.
pub(crate) fn from_json(row: Json) -> Row {
    let Json::Object(columns) = row else { return Row::default() };
    Row::new(columns.into_iter().map(|(name, value)| (name, value_of(value))).collect())
}

fn value_of(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Integer(i64::from(truth)),
        Json::Number(number) => {
            number.as_i64().map_or_else(|| Value::from(number.as_f64().unwrap_or(f64::NAN)), Value::Integer)
        }
        Json::String(text) => Value::Text(text),
        Json::Object(object) => {
            let base64 = object.get("base64").and_then(Json::as_str).unwrap_or_default();
            Value::Blob(read_base64(base64.as_bytes()))
        }
        Json::Array(_) => Value::Text(json.to_string()),
    }
}

/// A value as a parameter of the text protocol.
pub(crate) fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(integer) => Json::from(*integer),
        Value::Real(real) => Number::from_f64(*real).map_or(Json::Null, Json::Number),
        Value::Text(text) => Json::String(text.clone()),
        Value::Blob(bytes) => {
            let mut base64 = Vec::new();
            write_base64(bytes, &mut base64);
            let text = String::from_utf8_lossy(&base64).into_owned();
            Json::Object(Map::from_iter([("base64".to_owned(), Json::String(text))]))
        }
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the base64 of some bytes.
pub(crate) fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place)) as usize & 63];
            out.push(if place > chunk.len() { b'=' } else { digit });
        }
    }
}

/// The bytes of base64; what is no digit of it is passed over.
fn read_base64(text: &[u8]) -> Vec<u8> {
    let digits: Vec<u32> = text
        .iter()
        .filter_map(|byte| DIGITS.iter().position(|digit| digit == byte))
        .filter_map(|digit| u32::try_from(digit).ok())
        .collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for chunk in digits.chunks(4) {
        let word = chunk.iter().fold(0, |word, digit| word << 6 | digit) << (6 * (4 - chunk.len()));
        let whole = word.to_be_bytes();
        bytes.extend_from_slice(&whole[1..=chunk.len() * 3 / 4]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_comes_back() {
        for len in 0..70_u8 {
            let bytes: Vec<u8> = (0..len).map(|byte| byte.wrapping_mul(37)).collect();
            let mut text = Vec::new();
            write_base64(&bytes, &mut text);
            assert_eq!(text.len() % 4, 0);
            assert_eq!(read_base64(&text), bytes);
        }
        let mut text = Vec::new();
        write_base64(b"hello", &mut text);
        assert_eq!(text, b"aGVsbG8=");
    }

    #[test]
    fn values_come_back() {
        for value in [
            Value::Null,
            Value::Integer(i64::MIN),
            Value::Real(0.5),
            Value::Text("a\u{1f600}".into()),
            Value::Blob(vec![0, 255, 7]),
        ] {
            assert_eq!(value_of(to_json(&value)), value);
        }
    }
}
