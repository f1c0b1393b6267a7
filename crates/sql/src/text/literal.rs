//! Literals of the tree as values, without asking SQLite.

use sqlite3_parser::ast::{Expr, Literal, UnaryOperator};
use sqltext::value::number;
use store::value::Value;

use super::token::unquoted;

/// The value of a literal, signs included; `None` for anything that has to be computed.
pub(crate) fn value_of(expression: &Expr<'_>) -> Option<Value> {
    match expression {
        Expr::Literal(literal) => value_of_literal(literal),
        Expr::Unary(UnaryOperator::Negative, Expr::Literal(Literal::Numeric(digits))) => {
            number(&format!("-{digits}"))
        }
        Expr::Unary(UnaryOperator::Positive, Expr::Literal(Literal::Numeric(digits))) => number(digits),
        Expr::Id(id) => truth(id.0),
        Expr::Parenthesized(inner) if inner.len() == 1 => value_of(inner.first()?),
        _ => None,
    }
}

fn value_of_literal(literal: &Literal<'_>) -> Option<Value> {
    match literal {
        Literal::Null => Some(Value::Null),
        Literal::Numeric(digits) => number(digits),
        Literal::String(text) => Some(Value::Text(unquoted(text))),
        Literal::Blob(digits) => bytes(digits).map(Value::Blob),
        Literal::Keyword(word) => truth(word),
        Literal::CurrentDate | Literal::CurrentTime | Literal::CurrentTimestamp => None,
    }
}

fn truth(word: &str) -> Option<Value> {
    if word.eq_ignore_ascii_case("true") {
        Some(Value::Integer(1))
    } else if word.eq_ignore_ascii_case("false") {
        Some(Value::Integer(0))
    } else {
        None
    }
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse::with_tree;
    use sqlite3_parser::ast::Stmt;

    fn read(literal: &str) -> Option<Value> {
        with_tree(&format!("DELETE FROM t WHERE {literal}"), |tree| match tree {
            Stmt::Delete { where_clause: Some(expression), .. } => Ok(value_of(expression)),
            _ => Ok(None),
        })
        .unwrap()
    }

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
            ("(2)", Value::Integer(2)),
        ] {
            assert_eq!(read(literal), Some(value), "{literal}");
        }
        for computed in ["0x10", "1 + 1", "a", "CURRENT_TIMESTAMP", "- - 1", "\"true\""] {
            assert_eq!(read(computed), None, "{computed}");
        }
    }
}
