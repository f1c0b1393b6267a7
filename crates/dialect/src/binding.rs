//! How tightly SQLite's operators bind.
//!
//! The tree of a statement is PostgreSQL's, whose operators bind otherwise: `||` looser than `+`, `LIKE` tighter than
//! `<`. An operand that SQLite would take apart gets brackets.

use sqltext::token::Token;

/// SQLite's operators, the loosest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binding {
    Or,
    And,
    Not,
    /// `=`, `<>`, `IS`, `IN`, `LIKE`, `BETWEEN` and their like.
    Equality,
    /// `<`, `<=`, `>`, `>=`
    Order,
    /// `&`, `|`, `<<`, `>>`
    Bits,
    Sum,
    Product,
    /// `||`, `->`, `->>`
    Join,
    Collate,
    Sign,
    /// No operator: a literal, a name, a call, something in brackets.
    #[default]
    Whole,
}

impl Binding {
    /// Of an operator between two operands.
    pub(super) fn of(operator: Token<'_>) -> Self {
        match operator.text {
            "=" | "==" | "<>" | "!=" => Self::Equality,
            "<" | "<=" | ">" | ">=" => Self::Order,
            "&" | "|" | "<<" | ">>" => Self::Bits,
            "+" | "-" => Self::Sum,
            "*" | "/" | "%" => Self::Product,
            "||" | "->" | "->>" => Self::Join,
            _ if operator.is("OR") => Self::Or,
            _ if operator.is("AND") => Self::And,
            _ => Self::Equality,
        }
    }
}
