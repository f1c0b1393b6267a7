//! Schemas, which SQLite does not have: the walk leaves them out where it meets a name, and gives a table of a schema
//! beside `public` the name that it has in the store.

use pgcatalog::system;
use sqltext::error::state;
use sqltext::token::{Kind, Token, quoted_name, unquoted};
use store::BUILT_IN;
use store::definition::qualified;

use super::out::Out;
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
    let own = || is_name(schema, "sqlcached") && is_name(object, BUILT_IN);
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

/// A table that SQLite knows by another name than the client.
pub(super) struct Elsewhere {
    /// The name by which SQLite and the store know it.
    pub(super) registered: String,
    /// By which the client's columns are qualified.
    pub(super) bare: String,
    /// It is a table of users, not one of `information_schema`.
    pub(super) of_user: bool,
}

/// Where a table is looked for.
#[derive(Clone, Copy)]
enum Place<'t> {
    /// Where the session looks for it.
    Anywhere,
    /// In `public`.
    Public,
    /// In a schema of users.
    User(&'t str),
}

impl<'a> Translator<'a, '_> {
    fn ahead(&self) -> &'a [Token<'a>] {
        self.tokens.get(self.at..).unwrap_or_default()
    }

    /// Leaves out the schema before the name of a column, a function or a type. What stands before a column may be a
    /// table that is called like the schema.
    pub(super) fn pass_schema(&mut self) {
        let user = || self.peek().is_some_and(|token| self.names.namespace(&token).is_some());
        if self.next_is_sign(1, ".") && self.next_is_sign(3, ".") && user() {
            self.at += 2;
        } else if begins(self.ahead()) {
            let further = self.next_is_sign(3, ".") || self.next_is_sign(3, "(");
            if further || !self.scopes.list(&unquoted(self.tokens[self.at].text)) {
                self.at += 2;
            }
        }
    }

    /// The same before the name of a function that is a table.
    pub(super) fn pass_schema_of_function(&mut self) -> Step<()> {
        let ahead = self.ahead();
        let [schema, point, ..] = ahead else { return Ok(()) };
        if !point.is_sign(".") {
            return Ok(());
        }
        if !begins(ahead) {
            let message = format!("schema \"{}\" does not exist", unquoted(schema.text));
            return Err(self.error_at(Some(*schema), state::UNKNOWN_SCHEMA, message));
        }
        self.at += 2;
        Ok(())
    }

    /// Takes the name of a table that is known by another name than it has here. `written`: what a `WITH` calls so is
    /// not meant.
    pub(super) fn table_elsewhere(&mut self, written: bool) -> Step<Option<(Out<'a>, Elsewhere)>> {
        let first = self.peek();
        // The database, which is called as everybody likes, stands before the schema.
        if self.next_is_sign(1, ".") && self.next_is_sign(3, ".") {
            self.at += 2;
        }
        let ahead = self.ahead();
        let [schema, point, table, ..] = ahead else {
            return self.table_found(Place::Anywhere, first, written);
        };
        if !point.is_sign(".") {
            return self.table_found(Place::Anywhere, first, written);
        }
        let missing =
            || format!("relation \"{}.{}\" does not exist", unquoted(schema.text), unquoted(table.text));
        if is_name(schema, INFORMATION) {
            let registered = information_table(ahead);
            let registered =
                registered.ok_or_else(|| self.error_at(Some(*schema), state::UNKNOWN_TABLE, missing()))?;
            self.at += 2;
            let token = self.token()?;
            let bare = unquoted(token.text).to_lowercase();
            let elsewhere = Elsewhere { registered: registered.to_owned(), bare, of_user: false };
            return Ok(Some((Out::made(registered, token.start), elsewhere)));
        }
        if let Some(own) = self.names.namespace(schema) {
            self.at += 2;
            return self.table_found(Place::User(own), Some(*schema), true);
        }
        if begins(ahead) {
            self.at += 2;
            return self.table_found(Place::Public, first, true);
        }
        if matches!(schema.kind, Kind::Word | Kind::Quoted) && !is_name(schema, "main") {
            return Err(self.error_at(Some(*schema), state::UNKNOWN_TABLE, missing()));
        }
        Ok(None)
    }

    /// The table of users that the next name means, if it has another name.
    fn table_found(
        &mut self,
        place: Place<'_>,
        shown: Option<Token<'a>>,
        written: bool,
    ) -> Step<Option<(Out<'a>, Elsewhere)>> {
        let Some(token) = self.peek().filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted)) else {
            return Ok(None);
        };
        let bare = unquoted(token.text);
        let registered = match place {
            Place::Public => bare.clone(),
            Place::User(schema) => qualified(Some(schema), &bare),
            Place::Anywhere if !written && self.scopes.common(&bare).is_some() => return Ok(None),
            Place::Anywhere => self.names.found(&bare),
        };
        if registered == bare && !(matches!(place, Place::Public) && self.names.found(&bare) != bare) {
            return Ok(None);
        }
        if self.names.table(&registered).is_none() && !self.names.is_view(&registered) {
            let name = if let Place::User(_) = place { &registered } else { &bare };
            // A table of the system is found without its schema.
            if matches!(place, Place::User(_)) || self.names.is_users(&bare) {
                let message = format!("relation \"{name}\" does not exist");
                return Err(self.error_at(shown, state::UNKNOWN_TABLE, message));
            }
            return Ok(None);
        }
        self.at += 1;
        let out = Out::made(quoted_name(&registered), token.start);
        Ok(Some((out, Elsewhere { registered, bare, of_user: true })))
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
