//! Arrays: JSON text in the store, so that SQLite's JSON functions work on them; PostgreSQL's braces are taken too.

use super::{Refusal, accept as accept_scalar, float};
use crate::limits::ARRAY_ELEMENTS_MAX;
use crate::scalar::SqlType;
use crate::value::Value;
use serde_json::Value as Json;

/// The array as JSON text, its elements in the form of their type.
pub(super) fn accept(element: SqlType, value: Value) -> Result<Value, Refusal> {
    let Value::Text(text) = value else { return Err(bad(element, "a value")) };
    let trimmed = text.trim();
    let elements = if trimmed.starts_with('{') {
        of_braces(trimmed).ok_or_else(|| bad(element, trimmed))?
    } else {
        of_json(trimmed).ok_or_else(|| bad(element, trimmed))?
    };
    let mut json = Vec::with_capacity(elements.len());
    for value in elements {
        json.push(to_json(accept_scalar(element, value)?, element));
    }
    Ok(Value::Text(Json::Array(json).to_string()))
}

/// An array of texts, as it is stored, with another text in the place of each.
pub fn each_text(
    array: &str,
    element: SqlType,
    change: impl Fn(String) -> Result<Value, Refusal>,
) -> Result<Value, Refusal> {
    let changed = |value: Value| match value {
        Value::Text(text) => Ok(to_json(change(text)?, element)),
        other => Ok(to_json(other, element)),
    };
    let elements = of_json(array).ok_or_else(|| bad(element, array))?;
    Ok(Value::Text(Json::Array(elements.into_iter().map(changed).collect::<Result<_, _>>()?).to_string()))
}

fn bad(element: SqlType, text: &str) -> Refusal {
    let name = element.sql_name();
    Refusal::new("22P02", format!("malformed array of {name}: \"{}\"", super::shortened(text)))
}

fn of_json(text: &str) -> Option<Vec<Value>> {
    let elements: Vec<Json> = serde_json::from_str(text).ok()?;
    elements.into_iter().map(of_json_value).collect()
}

fn of_json_value(json: Json) -> Option<Value> {
    Some(match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Integer(i64::from(truth)),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => Value::Real(number.as_f64()?),
        },
        Json::String(text) => Value::Text(text),
        // An array within the array, or an object, stays what it is: JSON text.
        other => Value::Text(other.to_string()),
    })
}

fn to_json(value: Value, element: SqlType) -> Json {
    match value {
        Value::Integer(integer) if element == SqlType::Bool => Json::Bool(integer != 0),
        Value::Integer(integer) => Json::from(integer),
        Value::Real(real) if real.is_finite() => Json::from(real),
        // JSON has no number for it.
        Value::Real(real) => Json::String(float::text(real)),
        Value::Text(text) => Json::String(text),
        Value::Null | Value::Blob(_) => Json::Null,
    }
}

/// The elements of `{1,2,NULL,"a, b"}`; `None` for what is none, arrays within arrays included.
pub fn of_braces(text: &str) -> Option<Vec<Value>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut elements = Vec::new();
    let mut rest = inner.trim_start();
    if rest.is_empty() {
        return Some(elements);
    }
    loop {
        let (element, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_element(quoted)?,
            None => bare_element(rest)?,
        };
        elements.push(element);
        rest = behind.trim_start();
        if rest.is_empty() {
            return Some(elements);
        }
        rest = rest.strip_prefix(',')?.trim_start();
        if elements.len() > ARRAY_ELEMENTS_MAX {
            return None;
        }
    }
}

/// An array's JSON as PostgreSQL writes an array. `None`: it is no such JSON.
pub fn braces(json: &str) -> Option<String> {
    let elements: Vec<Json> = serde_json::from_str(json).ok()?;
    let element = |element: &Json| match element {
        Json::Null => "NULL".to_owned(),
        Json::Bool(truth) => if *truth { "t" } else { "f" }.to_owned(),
        Json::String(text) => quoted_if_needed(text),
        // No decimal number is a number of JSON, for that has no trailing zeros.
        Json::Number(number) if number.is_f64() => number.as_f64().map_or_else(String::new, float::text),
        other => quoted_if_needed(&other.to_string()),
    };
    Some(format!("{{{}}}", elements.iter().map(element).collect::<Vec<_>>().join(",")))
}

fn quoted_if_needed(text: &str) -> String {
    let special = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\') || c.is_ascii_whitespace();
    if !text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.contains(special) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn quoted_element(text: &str) -> Option<(Value, &str)> {
    let mut element = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Value::Text(element), &text[at + 1..])),
            '\\' => element.push(chars.next()?.1),
            other => element.push(other),
        }
    }
    None
}

fn bare_element(text: &str) -> Option<(Value, &str)> {
    let end = text.find(',').unwrap_or(text.len());
    let element = text[..end].trim_end();
    if element.is_empty() || element.contains(['{', '}', '"', '\\']) {
        return None;
    }
    let value = if element.eq_ignore_ascii_case("null") { Value::Null } else { Value::from(element) };
    Some((value, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_become_json() {
        for (element, given, stored) in [
            (SqlType::Int4, "{1, 2,NULL}", "[1,2,null]"),
            (SqlType::Int4, "[1, \"2\"]", "[1,2]"),
            (SqlType::Text, "{a,\"b, \\\"c\\\"\",null,\"null\"}", "[\"a\",\"b, \\\"c\\\"\",null,\"null\"]"),
            (SqlType::Bool, "{t,f}", "[true,false]"),
            (SqlType::Text, "{}", "[]"),
            (SqlType::Date, "{2026-1-2}", "[\"2026-01-02\"]"),
        ] {
            assert_eq!(accept(element, Value::from(given)), Ok(Value::from(stored)), "{given}");
        }
        for given in ["", "{", "{1,}", "{,}", "{{1},{2}}", "[1", "{\"a}", "x", "{a\"b}"] {
            assert_eq!(
                accept(SqlType::Int4, Value::from(given)).map_err(|refusal| refusal.state),
                Err("22P02")
            );
        }
        assert_eq!(accept(SqlType::Int4, Value::from("{x}")).map_err(|refusal| refusal.state), Err("22P02"));
    }
}
