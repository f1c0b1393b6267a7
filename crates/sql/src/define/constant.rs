//! Literals in SQLite's words as values, without asking SQLite.

use sqltext::token::{Kind, Token, Tokens};
use sqltext::value::{self, number};
use store::value::Value;

/// The value of a literal, signs included; `None` for anything that has to be computed.
pub(super) fn value_of(sql: &str) -> Option<Value> {
    let mut tokens = Tokens::new(sql);
    match (tokens.next()?, tokens.next(), tokens.next()) {
        (literal, None, None) => of_token(&literal),
        (sign, Some(digits), None) if digits.kind == Kind::Number => match sign.text {
            "-" => number(&format!("-{}", digits.text)),
            "+" => number(digits.text),
            _ => None,
        },
        _ => None,
    }
}

fn of_token(token: &Token<'_>) -> Option<Value> {
    match token.kind {
        Kind::Word if token.is("TRUE") => Some(Value::Integer(1)),
        Kind::Word if token.is("FALSE") => Some(Value::Integer(0)),
        _ => value::of_token(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read_as_sqlite_reads_them() {
        for (literal, value) in [
            ("17", Value::Integer(17)),
            ("-9223372036854775808", Value::Integer(i64::MIN)),
            ("9223372036854775808", Value::Real(9_223_372_036_854_775_808.0)),
            ("+1.5e3", Value::Real(1500.0)),
            (".5", Value::Real(0.5)),
            ("'it''s'", Value::from("it's")),
            ("x'00fF'", Value::Blob(vec![0, 255])),
            ("NULL", Value::Null),
            ("TRUE", Value::Integer(1)),
        ] {
            assert_eq!(value_of(literal), Some(value), "{literal}");
        }
        for computed in ["0x10", "1 + 1", "a", "CURRENT_TIMESTAMP", "- - 1", "\"true\"", ""] {
            assert_eq!(value_of(computed), None, "{computed}");
        }
    }
}
