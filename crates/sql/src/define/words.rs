//! The expressions and queries of a definition, in SQLite's words.

use std::ops::Range;
use std::sync::Arc;

use dialect::definition::{self, Piece};
use sqltext::ast::Expr;
use sqltext::definition::{Definition, Expression, Part, Read};
use sqltext::token::Kind;
use store::Table;
use store::definition::SqlType;

use super::written;
use crate::core::Core;
use crate::error::SqlError;

/// What a definition is made of, with what is needed to write it down.
pub(super) struct Words<'w> {
    core: &'w Core,
    definition: &'w Definition<'w>,
    /// The table whose columns expressions may name, if it is there.
    table: Option<&'w Arc<Table>>,
    /// The columns that the definition makes.
    columns: Vec<(String, SqlType)>,
}

impl<'w> Words<'w> {
    pub(super) fn new(core: &'w Core, definition: &'w Definition<'w>, table: Option<&'w Arc<Table>>) -> Self {
        Self { core, definition, table, columns: Vec::new() }
    }

    /// The same, of a definition that makes these columns.
    pub(super) fn with_columns(self, columns: Vec<(String, SqlType)>) -> Self {
        Self { columns, ..self }
    }

    fn known(&self) -> (Option<&'w Arc<Table>>, &[(String, SqlType)]) {
        (self.table, &self.columns)
    }

    pub(super) fn expression(&self, part: &Expression) -> Result<String, SqlError> {
        self.of_tokens(&part.node, part.tokens.clone())
    }

    /// An expression that is a part of another.
    pub(super) fn of_tokens(&self, expression: &Expr, tokens: Range<usize>) -> Result<String, SqlError> {
        definition::expression(&self.core.catalog, self.known(), self.definition, expression, tokens)
    }

    /// The same, with its type where that is known.
    pub(super) fn typed(
        &self,
        expression: &Expr,
        tokens: Range<usize>,
    ) -> Result<(String, Option<SqlType>), SqlError> {
        definition::typed_expression(&self.core.catalog, self.known(), self.definition, expression, tokens)
    }

    /// A default in which sequences have the names that are the same for every session.
    pub(super) fn with_sequences(&self, sql: &str) -> Result<String, SqlError> {
        super::sequence::resolved(&self.core.catalog, sql)
    }

    pub(super) fn query(&self, part: &Part<Read>) -> Result<Piece, SqlError> {
        definition::query(&self.core.catalog, self.definition, part)
    }

    /// A query as it is written, with its names in their schemas.
    pub(super) fn qualified(&self, part: &Part<Read>) -> String {
        let Definition { sql, tokens, .. } = self.definition;
        written::qualified(&self.core.catalog, sql, tokens.get(part.tokens.clone()).unwrap_or_default())
    }

    /// A query as it is written.
    pub(super) fn written(&self, part: &Part<Read>) -> String {
        let Definition { sql, tokens, .. } = self.definition;
        let tokens = tokens.get(part.tokens.clone()).unwrap_or_default();
        let ends = tokens.first().zip(tokens.last()).map(|(first, last)| first.start..last.end());
        ends.and_then(|range| sql.get(range)).unwrap_or_default().to_owned()
    }

    /// Whether these tokens have a parameter.
    pub(super) fn have_parameter(&self, tokens: &Range<usize>) -> bool {
        self.definition.tokens[tokens.clone()].iter().any(|token| token.kind == Kind::Parameter)
    }

    /// The last of these tokens that is this keyword.
    pub(super) fn last(&self, tokens: &Range<usize>, word: &str) -> Option<usize> {
        tokens.clone().rev().find(|&at| self.definition.tokens[at].is(word))
    }

    /// The same error at a place of the definition's text.
    pub(super) fn at(&self, error: SqlError, place: usize) -> SqlError {
        error.at(self.definition.sql, place)
    }

    /// An error of a text that this query became, with its place in the user's.
    pub(super) fn relocate(&self, query: &Piece, error: SqlError) -> SqlError {
        query.relocate(dialect::further_error(&query.sql, error), self.definition.sql)
    }
}

/// An expression without the parentheses around it, and its tokens.
pub(super) fn bare(part: &Expression) -> (&Expr, Range<usize>) {
    let (mut expression, mut tokens) = (&*part.node, part.tokens.clone());
    while let Expr::Nested(inner) = expression {
        (expression, tokens) = (inner, tokens.start + 1..tokens.end - 1);
    }
    (expression, tokens)
}
