//! The JSON array that carries a statement's parameters.

use serde_json::Value as Json;
use sql::SqlError;
use store::value::Value;

use crate::json::{BASE64, read_base64};
use crate::limits::PARAMETERS_MAX;

/// What the elements of the array stand for: NULL, integers, reals and text as themselves, true and false as 1 and 0,
/// and `{"base64":"..."}` as bytes.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<Value>, SqlError> {
    let elements: Vec<Json> = serde_json::from_slice(text)
        .map_err(|error| refused("22P02", format!("parameters are not a JSON array: {error}")))?;
    from_json(elements)
}

/// The same of elements that were read.
pub(crate) fn from_json(elements: Vec<Json>) -> Result<Vec<Value>, SqlError> {
    if elements.len() > PARAMETERS_MAX {
        return Err(refused(
            "54000",
            format!("{} parameters; the limit is {PARAMETERS_MAX}", elements.len()),
        ));
    }
    elements.into_iter().enumerate().map(|(position, element)| parameter(position + 1, element)).collect()
}

fn parameter(position: usize, element: Json) -> Result<Value, SqlError> {
    match element {
        Json::Null => Ok(Value::Null),
        Json::Bool(flag) => Ok(Value::Integer(i64::from(flag))),
        Json::String(text) => Ok(Value::Text(text)),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Ok(Value::Integer(integer)),
            (None, Some(real)) if !number.is_u64() => Ok(Value::Real(real)),
            _ => Err(refused("22003", format!("parameter {position}: {number} is not a 64-bit integer"))),
        },
        Json::Object(object) => {
            let text = object.get(BASE64).and_then(Json::as_str).filter(|_| object.len() == 1);
            let bytes = text.and_then(read_base64);
            bytes.map(Value::Blob).ok_or_else(|| not_scalar(position))
        }
        Json::Array(_) => Err(not_scalar(position)),
    }
}

fn not_scalar(position: usize) -> SqlError {
    let message = format!(
        "parameter {position} is not a value; use null, a number, a string, true, false or {{\"base64\":\"...\"}}"
    );
    refused("22P02", message)
}

pub(crate) fn refused(state: &'static str, message: String) -> SqlError {
    SqlError::new(state, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements() {
        let values = parse(br#"[null, true, -7, 1.5, "a\u0000b", {"base64":"AP8="}]"#).unwrap();
        let expected = [
            Value::Null,
            Value::Integer(1),
            Value::Integer(-7),
            Value::Real(1.5),
            Value::Text("a\0b".into()),
            Value::Blob(vec![0, 255]),
        ];
        assert_eq!(values, expected);
        assert_eq!(parse(b"[]").unwrap(), []);
    }

    #[test]
    fn refusals() {
        let table: &[(&[u8], &str)] = &[
            (b"", "22P02"),
            (b"{}", "22P02"),
            (b"[1", "22P02"),
            (b"[[1]]", "22P02"),
            (br#"[{"base64":"A"}]"#, "22P02"),
            (br#"[{"base64":"AA==","x":1}]"#, "22P02"),
            (b"[9223372036854775808]", "22003"),
            (b"[\"\xff\"]", "22P02"),
        ];
        for (text, state) in table {
            assert_eq!(parse(text).unwrap_err().state, *state, "{:?}", String::from_utf8_lossy(text));
        }
    }
}
