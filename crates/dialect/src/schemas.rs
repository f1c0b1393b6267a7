//! Schemas, which SQLite does not have: the walk leaves them out where it meets a name.

use pgcatalog::system;
use sqltext::error::state;
use sqltext::token::{Kind, Token, unquoted};

use super::{Step, Translator};

/// Schemas in which names are looked for without them, too.
const SCHEMAS: &[&str] = &["pg_catalog", "public", INFORMATION];
/// The schema whose tables SQLite knows by other names.
pub(super) const INFORMATION: &str = "information_schema";

fn is_name(token: &Token<'_>, name: &str) -> bool {
    match token.kind {
        Kind::Word => token.text.eq_ignore_ascii_case(name),
        Kind::Quoted => unquoted(token.text) == name,
        _ => false,
    }
}

/// Whether these tokens begin with a schema that is left out.
fn begins(tokens: &[Token<'_>]) -> bool {
    let [schema, point, object, ..] = tokens else { return false };
    let own = || is_name(schema, "sqlcached") && is_name(object, store::BUILT_IN);
    point.is_sign(".") && (SCHEMAS.iter().any(|known| is_name(schema, known)) || own())
}

/// The name by which SQLite knows a table of `information_schema`, if these tokens name one.
pub(super) fn information_table(tokens: &[Token<'_>]) -> Option<&'static str> {
    match tokens {
        [schema, point, table, ..] if is_name(schema, INFORMATION) && point.is_sign(".") => {
            system::information_table(&unquoted(table.text))
        }
        _ => None,
    }
}

impl<'a> Translator<'a, '_> {
    fn ahead(&self) -> &'a [Token<'a>] {
        self.tokens.get(self.at..).unwrap_or_default()
    }

    /// Leaves out the schema before the name of a column, a function or a type. What stands before a column may be a
    /// table that is called like the schema.
    pub(super) fn pass_schema(&mut self) {
        if begins(self.ahead()) {
            let further = self.next_is_sign(3, ".") || self.next_is_sign(3, "(");
            if further || !self.scopes.list(&unquoted(self.tokens[self.at].text)) {
                self.at += 2;
            }
        }
    }

    /// The same before the name of a table, or of a function that is one. Returns the name by which SQLite knows a
    /// table of `information_schema`.
    pub(super) fn pass_schema_of_table(&mut self) -> Step<Option<&'static str>> {
        let ahead = self.ahead();
        let [schema, point, table, ..] = ahead else { return Ok(None) };
        if !point.is_sign(".") {
            return Ok(None);
        }
        let registered = information_table(ahead);
        if registered.is_none() && is_name(schema, INFORMATION) && !self.next_is_sign(3, "(") {
            let message = format!("relation \"information_schema.{}\" does not exist", unquoted(table.text));
            return Err(self.error_at(Some(*schema), state::UNKNOWN_TABLE, message));
        }
        if begins(ahead) {
            self.at += 2;
        } else if matches!(schema.kind, Kind::Word | Kind::Quoted) && !is_name(schema, "main") {
            let message = format!("schema \"{}\" does not exist", unquoted(schema.text));
            return Err(self.error_at(Some(*schema), state::UNKNOWN_SCHEMA, message));
        }
        Ok(registered)
    }

    /// The operator that is next: `OPERATOR(pg_catalog.~)` is `~`.
    pub(super) fn operator(&mut self) -> Step<Token<'a>> {
        if !self.peek().is_some_and(|token| token.is("OPERATOR")) {
            return self.token();
        }
        self.at += if self.next_is_sign(3, ".") { 4 } else { 2 };
        let operator = self.token()?;
        self.sign(")")?;
        Ok(operator)
    }

    /// Leaves out a collation that changes nothing.
    pub(super) fn pass_collation(&mut self) {
        self.at += sqltext::bytewise_collation(self.tokens, self.at);
    }
}
