//! How deep a tree can become, judged from the tokens before it is made.

use crate::limits::{NESTING_MAX, TABLES_NESTED_MAX};
use crate::token::{Kind, Token};

/// Operators that are words, and what begins a query.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "NOT", "CASE", "IS", "ISNULL", "NOTNULL", "COLLATE", "IN", "LIKE", "ILIKE", "SIMILAR", "GLOB", "REGEXP", "MATCH",
    "BETWEEN", "AT", "OPERATOR", "SELECT", "VALUES", "TABLE",
];

/// The place of the token with which a statement nests more than [`NESTING_MAX`] operators.
///
/// What lies within each other are parentheses and, between two commas, operators: those joined by `AND` and `OR`
/// lie beside each other, but each `AND` or `OR` is one step deeper. Parentheses around tables are bounded more
/// tightly: each takes much of the parser's stack.
pub fn too_deep(tokens: &[Token<'_>]) -> Option<usize> {
    let mut outer: Vec<Level> = Vec::new();
    let mut outside = 0_usize;
    let mut here = Level::default();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Sign => match token.text {
                "(" => {
                    outside += here.depth() + 1;
                    let tables = here.tables + usize::from(is_around_tables(tokens, at, here.tables > 0));
                    outer.push(std::mem::replace(&mut here, Level { tables, ..Level::default() }));
                }
                ")" => {
                    here = outer.pop().unwrap_or_default();
                    outside = outside.saturating_sub(here.depth() + 1);
                }
                "," => here = Level { tables: here.tables, ..Level::default() },
                "." => {}
                _ => here.term += 1,
            },
            Kind::Word if token.is("AND") || token.is("OR") => here.join(),
            Kind::Word if token.is_any(WORDS) => here.term += 1,
            _ => {}
        }
        if outside + here.depth() > NESTING_MAX || here.tables > TABLES_NESTED_MAX {
            return Some(token.start);
        }
    }
    None
}

/// Whether the parenthesis at a place stands where a table does.
fn is_around_tables(tokens: &[Token<'_>], at: usize, within: bool) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| &tokens[before]) else { return false };
    before.is_any(&["FROM", "JOIN", "LATERAL"]) || (within && (before.is_sign("(") || before.is_sign(",")))
}

/// What was met between two commas of one parenthesis.
#[derive(Default)]
struct Level {
    /// Parentheses around tables that this one and those around it are.
    tables: usize,
    /// `AND` and `OR`.
    joins: usize,
    /// Operators since the last of these.
    term: usize,
    /// The most operators between two of these.
    widest: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.joins + self.widest.max(self.term)
    }

    fn join(&mut self) {
        self.joins += 1;
        self.widest = self.widest.max(self.term);
        self.term = 0;
    }
}
