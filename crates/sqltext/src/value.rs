//! Literals as values, without asking SQLite.

use store::value::Value;

use crate::token::{Kind, Token, text_of};

/// The value of a literal; `None` for any other token, and for a number that is SQLite's to read.
pub fn of_token(token: &Token<'_>) -> Option<Value> {
    match token.kind {
        Kind::Number => number(token.text),
        Kind::Text | Kind::Foreign => text_of(token).map(Value::Text),
        Kind::Blob => bytes(token.text.get(2..)?.strip_suffix('\'')?).map(Value::Blob),
        Kind::Word if token.is("NULL") => Some(Value::Null),
        _ => None,
    }
}

/// A decimal number; hexadecimal ones and those with separators are SQLite's to read.
pub fn number(digits: &str) -> Option<Value> {
    if digits.contains(['x', 'X', '_']) {
        return None;
    }
    if let Ok(integer) = digits.parse::<i64>() {
        return Some(Value::Integer(integer));
    }
    digits.parse::<f64>().ok().filter(|real| real.is_finite()).map(Value::Real)
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tokens;

    #[test]
    fn literals_are_read_as_sqlite_reads_them() {
        for (literal, value) in [
            ("17", Value::Integer(17)),
            ("9223372036854775808", Value::Real(9_223_372_036_854_775_808.0)),
            (".5", Value::Real(0.5)),
            ("'it''s'", Value::from("it's")),
            ("x'00fF'", Value::Blob(vec![0, 255])),
            ("NULL", Value::Null),
        ] {
            assert_eq!(of_token(&tokens(literal)[0]), Some(value), "{literal}");
        }
        for other in ["0x10", "1e999", "a", "CURRENT_TIMESTAMP", "\"true\"", "x'0'", "$1"] {
            assert_eq!(of_token(&tokens(other)[0]), None, "{other}");
        }
        assert_eq!(number("-9223372036854775808"), Some(Value::Integer(i64::MIN)));
        assert_eq!(number("+1.5e3"), Some(Value::Real(1500.0)));
    }
}
