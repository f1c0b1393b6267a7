//! The shape of a short statement: its text with parameters in the place of literals.
//!
//! Clients that write values into the text send another text each time. Where the statement needs no SQLite, all texts
//! of one shape have the same plan, so it is looked up by the shape and the literals are its parameters.

use store::value::Value;

use super::token::{Kind, Tokens, unquoted};

/// Longer texts are hardly a point query.
const TEXT_BYTES_MAX: usize = 512;
/// More literals are hardly a point query's either.
const LITERALS_MAX: usize = 8;

/// A shape and the values of one text.
#[derive(Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) text: String,
    pub(crate) values: Vec<Value>,
}

/// The shape of a text that reads or deletes; `None` where it has no literals, parameters of its own, or something that
/// is not plainly a value.
pub(crate) fn shape_of(sql: &str) -> Option<Shape> {
    let verb = sql.as_bytes().first()?.to_ascii_uppercase();
    if sql.len() > TEXT_BYTES_MAX || !matches!(verb, b'S' | b'D') {
        return None;
    }
    let mut text = String::with_capacity(sql.len());
    let mut values = Vec::new();
    let mut copied = 0;
    for token in Tokens::new(sql) {
        let value = match token.kind {
            Kind::Text => Value::Text(unquoted(token.text)),
            Kind::Number => Value::Integer(token.text.parse().ok()?),
            Kind::Parameter | Kind::Blob => return None,
            _ => continue,
        };
        if values.len() >= LITERALS_MAX || (token.kind == Kind::Text && !token.text.ends_with('\'')) {
            return None;
        }
        values.push(value);
        text.push_str(&sql[copied..token.start]);
        text.push('?');
        copied = token.end();
    }
    if values.is_empty() {
        return None;
    }
    text.push_str(&sql[copied..]);
    Some(Shape { text, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_become_parameters() {
        for (sql, text, values) in [
            ("SELECT a FROM t WHERE b = 'it''s'", "SELECT a FROM t WHERE b = ?", vec![Value::from("it's")]),
            (
                "DELETE FROM t WHERE a=17 AND b = ''",
                "DELETE FROM t WHERE a=? AND b = ?",
                vec![Value::Integer(17), Value::from("")],
            ),
        ] {
            assert_eq!(shape_of(sql), Some(Shape { text: text.to_owned(), values }), "{sql}");
        }
        for sql in [
            "",
            "SELECT a FROM t",
            "SELECT a FROM t WHERE b = $1 AND c = 1",
            "SELECT a FROM t WHERE b = 1.5",
            "SELECT a FROM t WHERE b = x'00'",
            "SELECT a FROM t WHERE b = 'open",
            "INSERT INTO t VALUES (1)",
            "SELECT 1, 2, 3, 4, 5, 6, 7, 8, 9",
        ] {
            assert_eq!(shape_of(sql), None, "{sql}");
        }
    }
}
