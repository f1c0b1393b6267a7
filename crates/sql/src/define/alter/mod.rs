//! `ALTER TABLE` and `ALTER INDEX`, read by a reader of our own: SQLite's grammar knows a few of their forms only.

mod add;
mod column;
mod depend;
mod rename;

use pgcatalog::system;
use store::definition::{ColumnDef, DefinitionError, IndexDef, TableDef, TableOptions};

use self::depend::check_droppable;
use super::prepare::prepared;
use super::undo::{Undo, redefine};
use super::{Defined, is_of_key};
use crate::compute::mentions;
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::text::kind::refuse_tail;
use crate::text::storage::Reader;
use crate::text::token::{Kind, Token, Tokens};

pub(super) fn run(core: &Core, sql: &str) -> Result<Defined, SqlError> {
    let prepared = prepared(core, sql)?;
    run_text(core, &prepared.sql).map_err(|error| prepared.relocate(error, sql))
}

/// The table that an `ALTER TABLE` names.
pub(crate) fn altered_table(sql: &str) -> Option<String> {
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    let mut reader = Reader { sql, tokens: &tokens, at: 0 };
    reader.skip_semicolons();
    reader.keyword("ALTER").ok()?;
    reader.keyword("TABLE").ok()?;
    if_exists(&mut reader).ok()?;
    let _ = reader.keyword("ONLY");
    reader.table_name().ok()
}

fn run_text(core: &Core, sql: &str) -> Result<Defined, SqlError> {
    const TAG: &str = "ALTER TABLE";
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    let mut reader = Reader { sql, tokens: &tokens, at: 0 };
    reader.skip_semicolons();
    // Before the first change is made.
    refuse_tail(sql, end_of_statement(sql, &tokens[reader.at..]))?;
    reader.keyword("ALTER")?;
    if reader.keyword("INDEX").is_ok() {
        return rename::index(core, &mut reader);
    }
    if reader.keyword("TABLE").is_err() {
        return Err(SqlError::not_supported("ALTER of other objects than tables and indexes"));
    }
    let if_exists = if_exists(&mut reader)?;
    let _ = reader.keyword("ONLY");
    let table = reader.table_name()?;
    system::refuse_change(&table)?;
    if core.catalog.table(&table).is_none() {
        return if if_exists {
            Ok(Defined::missing(TAG, "relation", &table))
        } else {
            Err(SqlError::unknown_table(&table))
        };
    }
    let known = core.catalog.table(&table).cloned();
    let mut change = Change { core, table, destroys: false };
    let before = change.def()?;
    if let Err(error) = change.all(&mut reader) {
        redefine(&core.store, &change.table, &before)?;
        return Err(error);
    }
    let undo = known.filter(|_| !change.destroys).map(|known| Undo::Altered(known, Box::new(before)));
    Ok(Defined { undo: undo.unwrap_or(Undo::Impossible), ..TAG.into() })
}

/// Where the statement ends that begins with these tokens.
fn end_of_statement(sql: &str, tokens: &[Token<'_>]) -> usize {
    tokens.iter().find(|token| token.is_sign(";")).map_or(sql.len(), |token| token.start)
}

fn if_exists(reader: &mut Reader<'_, '_>) -> Result<bool, SqlError> {
    if reader.keyword("IF").is_err() {
        return Ok(false);
    }
    reader.keyword("EXISTS").map(|()| true)
}

/// What is done to one table. Several changes of one statement are made one after the other; when one fails, those
/// before it are taken back.
struct Change<'c> {
    core: &'c Core,
    table: String,
    /// Something is gone, or allowed, that rows may rest on before it could be taken back.
    destroys: bool,
}

impl Change<'_> {
    fn all(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), SqlError> {
        loop {
            self.one(reader)?;
            if reader.sign(",").is_err() {
                return reader.end();
            }
        }
    }

    fn one(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), SqlError> {
        if reader.keyword("ADD").is_ok() {
            self.add(reader)
        } else if reader.keyword("DROP").is_ok() {
            self.destroys = true;
            self.drop(reader)
        } else if reader.keyword("RENAME").is_ok() {
            self.rename(reader)
        } else if reader.keyword("ALTER").is_ok() {
            let _ = reader.keyword("COLUMN");
            let column = reader.name()?;
            self.destroys |= !narrows(reader);
            self.column(&column, reader)
        } else if reader.keyword("SET").is_ok() {
            let settings = reader.settings()?;
            self.options(|options, columns| {
                settings.iter().try_for_each(|(name, value)| options.set(name, value, columns))
            })
        } else if reader.keyword("RESET").is_ok() {
            let settings = reader.settings()?;
            self.options(|options, _| settings.iter().try_for_each(|(name, _)| options.reset(name)))
        } else if let Some(word) = reader.peek() {
            let what = format!("ALTER TABLE ... {}", word.text.to_ascii_uppercase());
            Err(SqlError::not_supported(what)
                .with_hint("ADD, DROP, RENAME, ALTER COLUMN, SET (...) and RESET (...) are")
                .at(reader.sql, word.start))
        } else {
            Err(reader.unexpected())
        }
    }

    fn options(
        &self,
        mut change: impl FnMut(&mut TableOptions, &[ColumnDef]) -> Result<(), DefinitionError>,
    ) -> Result<(), SqlError> {
        Ok(self.core.store.set_options(&self.table, &mut change)?)
    }

    /// The definition as it is now.
    fn def(&self) -> Result<TableDef, SqlError> {
        let catalog = self.core.store.catalog();
        let table = catalog.table(&self.table).ok_or_else(|| SqlError::unknown_table(&self.table))?;
        Ok(table.def().clone())
    }

    fn alter(
        &self,
        mut change: impl FnMut(&mut TableDef) -> Result<(), DefinitionError>,
    ) -> Result<(), SqlError> {
        self.core.store.alter_table(&self.table, &mut change)?;
        Ok(())
    }

    /// `DROP [COLUMN] [IF EXISTS] name`, `DROP CONSTRAINT [IF EXISTS] name`
    fn drop(&self, reader: &mut Reader<'_, '_>) -> Result<(), SqlError> {
        let constraint = reader.keyword("CONSTRAINT").is_ok();
        if !constraint {
            let _ = reader.keyword("COLUMN");
        }
        let if_exists = if_exists(reader)?;
        let name = reader.name()?;
        let _ = reader.keyword("RESTRICT");
        if constraint { self.drop_constraint(&name, if_exists) } else { self.drop_column(&name, if_exists) }
    }

    fn drop_constraint(&self, name: &str, if_exists: bool) -> Result<(), SqlError> {
        let def = self.def()?;
        if def.checks.iter().any(|check| check.name.eq_ignore_ascii_case(name)) {
            return self.alter(|def| {
                def.checks.retain(|check| !check.name.eq_ignore_ascii_case(name));
                Ok(())
            });
        }
        let unique = |index: &IndexDef| index.constraint && index.name.eq_ignore_ascii_case(name);
        if def.indexes.iter().any(unique) {
            if is_of_key(&def, name) {
                let message = format!("constraint \"{name}\" defines which keys of the table are equal");
                return Err(SqlError::new(state::DEPENDED_ON, message));
            }
            return Ok(self.core.store.drop_index(name)?);
        }
        if if_exists { Ok(()) } else { Err(unknown_constraint(&def, name)) }
    }

    fn drop_column(&self, name: &str, if_exists: bool) -> Result<(), SqlError> {
        let def = self.def()?;
        let Some(at) = def.column_index(name) else {
            return if if_exists { Ok(()) } else { Err(SqlError::unknown_column(&def.name, name)) };
        };
        self.refuse_views("DROP COLUMN")?;
        check_droppable(&def, at)?;
        self.alter(|def| {
            if let Some(at) = def.column_index(name) {
                check_droppable(def, at).map_err(|error| DefinitionError::new(error.state, error.message))?;
                def.remove_column(at);
            }
            Ok(())
        })
    }

    /// A view's text names tables and columns; it would not find them any more.
    fn refuse_views(&self, what: &str) -> Result<(), SqlError> {
        match self.core.catalog.views().find(|view| mentions(&view.sql, &self.table)) {
            None => Ok(()),
            Some(view) => Err(SqlError::new(
                state::DEPENDED_ON,
                format!("{what} is refused: view \"{}\" reads table \"{}\"", view.name, self.table),
            )
            .with_hint("drop the view first")),
        }
    }
}

/// Whether a change of a column says what is stored from now on (`SET DEFAULT`, `DROP DEFAULT`), or forbids (`SET NOT
/// NULL`).
fn narrows(reader: &Reader<'_, '_>) -> bool {
    let word = |ahead: usize| reader.tokens.get(reader.at + ahead);
    let is = |ahead, text| word(ahead).is_some_and(|word| word.is(text));
    is(1, "DEFAULT") || (is(0, "SET") && is(1, "NOT"))
}

fn unknown_constraint(def: &TableDef, name: &str) -> SqlError {
    let message = format!("constraint \"{name}\" of table \"{}\" does not exist", def.name);
    SqlError::new(state::UNKNOWN_OBJECT, message)
}

/// The text up to the comma or the end that closes this change.
fn rest_of_change<'a>(reader: &mut Reader<'_, 'a>) -> &'a str {
    let start = reader.peek().map_or(reader.sql.len(), |token| token.start);
    let mut depth = 0_usize;
    let mut end = start;
    while let Some(token) = reader.peek() {
        match token.kind {
            Kind::Sign if token.is_sign("(") => depth += 1,
            Kind::Sign if token.is_sign(")") => depth = depth.saturating_sub(1),
            Kind::Sign if depth == 0 && matches!(token.text, "," | ";") => break,
            _ => {}
        }
        end = token.end();
        reader.at += 1;
    }
    reader.sql.get(start..end).unwrap_or_default()
}
