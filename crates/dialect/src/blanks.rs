//! `CHAR(n)` beside patterns: PostgreSQL matches the text with the blanks that fill it up, which are not stored.

use sqltext::ast::{Expr, Value as Literal};
use sqltext::error::{SqlError, state};
use sqltext::token::Token;
use store::definition::SqlType;

use super::out::{Out, call};
use super::scope::Source;
use super::{Step, Stop, Translator};
use crate::lowered::Node;

impl<'a> Translator<'a, '_> {
    /// The left side of a pattern. `pattern`: one of `LIKE`, where any text may follow at the end of it, blanks too.
    pub(super) fn filled_up(
        &self,
        left: Out<'a>,
        pattern: Option<&Expr>,
        operator: Token<'a>,
    ) -> Step<Out<'a>> {
        if left.ty != Some(SqlType::Bpchar) || pattern.is_some_and(is_open_at_its_end) {
            return Ok(left);
        }
        let Some(length) = self.length_of(&left) else {
            let message = format!("{} of a character(n) that is no column is not supported", operator.text);
            let error = SqlError::new(state::NOT_SUPPORTED, message).at(self.sql, operator.start);
            return Err(Stop::Error(error.with_hint("cast it to text, which has no blanks at its end")));
        };
        let label = left.label.clone();
        let length = Out::made(length.to_string(), operator.start);
        let mut filled = call("rpad", [left, length]).typed(SqlType::Text);
        filled.label = label;
        Ok(filled)
    }

    /// How many characters the column has that it is.
    fn length_of(&self, out: &Out<'a>) -> Option<usize> {
        let declared = self.declared_as(out)?;
        let digits = declared.split(['(', ')']).nth(1);
        Some(digits.and_then(|digits| digits.trim().parse().ok()).unwrap_or(1))
    }

    /// The type with which the table's column was declared that it is.
    pub(super) fn declared_as(&self, out: &Out<'a>) -> Option<String> {
        let Some(Node::Column { table, name }) = out.node() else { return None };
        for relations in self.scopes.around() {
            let of_this = |relation: &&super::scope::Relation| {
                table.as_ref().is_none_or(|table| relation.name.eq_ignore_ascii_case(table))
            };
            for relation in relations.iter().filter(of_this) {
                let Source::Named(own) = &relation.source else { continue };
                let Some(stored) = self.names.table(own) else { continue };
                let Some(at) = stored.def().column_index(name) else { continue };
                return Some(stored.def().columns[at].declared.clone());
            }
        }
        None
    }
}

/// Whether a pattern ends with a sign for any text.
fn is_open_at_its_end(pattern: &Expr) -> bool {
    let Expr::Value(value) = pattern else { return false };
    let Literal::SingleQuotedString(text) = &value.value else { return false };
    text.ends_with('%') && !text.ends_with("\\%")
}
