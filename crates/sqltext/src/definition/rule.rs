//! `CREATE EXPIRY RULE` and `DROP EXPIRY RULE`.

use super::reader::Reader;
use super::{CreateRule, DropRule, Expression, Name};
use crate::error::SqlError;
use crate::token::{Kind, unquoted};

impl Reader<'_, '_> {
    /// What stands behind `CREATE EXPIRY RULE`.
    pub(super) fn create_rule(&mut self) -> Result<CreateRule, SqlError> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.name()?;
        self.expect_word("ON")?;
        let table = self.object()?;
        self.expect_word("WHEN")?;
        let condition = self.rule_condition()?;
        let every = if self.word("EVERY") { Some(self.span()?) } else { None };
        Ok(CreateRule { if_not_exists, name, table, condition, every })
    }

    /// A rule judges a row by what is in it.
    fn rule_condition(&mut self) -> Result<Expression, SqlError> {
        let missing = self.at_word("EVERY")
            && self.peek_at(1).is_some_and(|span| matches!(span.kind, Kind::Text | Kind::Number))
            && self.peek_at(2).is_none_or(|next| next.is_sign(";"));
        if missing {
            return Err(self.unexpected());
        }
        let first = self.number();
        let condition = self.expression()?;
        if let Some(token) = self.among(first..condition.tokens.end, "SELECT") {
            return Err(SqlError::not_supported("a subquery in an expiry rule")
                .with_hint(
                    "a rule can use the columns of the row itself, also hidden ones such as _age and _hits",
                )
                .at(self.sql, token.start));
        }
        Ok(condition)
    }

    /// The text of a time.
    fn span(&mut self) -> Result<Name, SqlError> {
        let token = self.peek().filter(|token| matches!(token.kind, Kind::Text | Kind::Number));
        let span =
            token.map(|token| Name { text: unquoted(token.text), namespace: None, place: token.start });
        let span = span.ok_or_else(|| self.unexpected())?;
        self.skip();
        Ok(span)
    }

    /// What stands behind `DROP EXPIRY RULE`.
    pub(super) fn drop_rule(&mut self) -> Result<DropRule, SqlError> {
        let if_exists = self.if_exists()?;
        Ok(DropRule { if_exists, name: self.name()? })
    }
}
