//! Definitions: from the tree of `CREATE`, `ALTER`, `DROP` and their like to the store.
//!
//! A definition is parsed once. Names, types and constraints are taken from its tree; each expression that is kept is
//! brought into SQLite's words by itself ([`words`]), and what SQLite says of it is asked in a database of its own.

mod alter;
mod comment;
mod constant;
mod drop;
mod enumeration;
mod grant;
mod index;
mod known;
mod like;
pub(crate) mod materialized;
mod method;
mod of_query;
pub(crate) mod rights;
pub(crate) mod routine;
mod schema;
mod sequence;
mod server;
mod storage;
mod table;
mod undo;
mod upkeep;
mod view;
mod words;
mod written;

use std::collections::HashSet;
use std::sync::Arc;

use pgcatalog::function::TABLE_FUNCTIONS;
use pgcatalog::system;
use sqltext::definition::{self, Definition, Name, Truncate, What};
use store::definition::{ColumnDef, Place, SqlType};
use store::{BUILT_IN, Catalog, Store, Table};

use crate::core::Core;
use crate::done::{Invalidated, Invalidation};
use crate::error::{SqlError, state};
use crate::needs::mirror_written;
use crate::rule;
use crate::table::HIDDEN;
use crate::text::token::tokens;

pub use grant::hand_over;
pub(crate) use undo::{Undo, Undoing, undo_all};
use words::Words;

/// What a definition was.
#[derive(Clone, Debug)]
pub(crate) struct Defined {
    pub(crate) tag: &'static str,
    /// What is to be filled.
    pub(crate) fill: Option<Fill>,
    /// Notices for the client.
    pub(crate) notes: Vec<Note>,
    /// Nothing was done, as `IF EXISTS` or `IF NOT EXISTS` allows.
    pub(crate) skipped: bool,
    /// How `ROLLBACK` takes it back, the last step first.
    pub(crate) undo: Vec<Undo>,
    /// What it emptied.
    pub(crate) invalidated: Option<Invalidated>,
}

/// How a table is filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// `CREATE TABLE ... AS`: the table, and the statement that does it.
    Insert {
        /// The table.
        table: String,
        /// The statement.
        insert: String,
    },
    /// A materialized view is refreshed; one that was just made goes again if it cannot.
    Refresh {
        /// The view.
        view: String,
        /// It was just made.
        created: bool,
    },
}

/// A notice about a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) state: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<&'static str>,
}

impl Note {
    /// One that says what to do about it.
    fn hinted(message: impl Into<String>, hint: &'static str) -> Self {
        Self { state: state::SUCCESS, message: message.into(), hint: Some(hint) }
    }

    /// One with nothing to do about it.
    fn plain(message: impl Into<String>) -> Self {
        Self { state: state::SUCCESS, message: message.into(), hint: None }
    }

    /// So many rows of the built-in table went, because a table answers to their keys now.
    fn claimed(rows: u64, prefix: Option<&str>) -> Option<Self> {
        let prefix = prefix.filter(|_| rows > 0)?;
        let rows = if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
        Some(Self::hinted(
            format!(
                "{rows} of table \"{BUILT_IN}\" went: their keys begin with '{prefix}' and belong to this table now"
            ),
            "Clients store them again as rows of this table.",
        ))
    }

    /// `IF EXISTS`, where there is no such thing. `what`: `table`, `index`, `view`.
    fn missing(what: &str, name: &str) -> Self {
        Self::plain(format!("{what} \"{name}\" does not exist, skipping"))
    }
}

impl Defined {
    /// It was done, and this takes it back.
    fn undone_by(tag: &'static str, undo: Undo) -> Self {
        let notes = Vec::new();
        Self { tag, fill: None, notes, skipped: false, undo: vec![undo], invalidated: None }
    }

    /// Nothing was to do.
    fn skipped(tag: &'static str, note: Note) -> Self {
        let notes = vec![note];
        Self { tag, fill: None, notes, skipped: true, undo: Vec::new(), invalidated: None }
    }

    /// `IF EXISTS`, where there is no such thing.
    pub(crate) fn missing(tag: &'static str, what: &str, name: &str) -> Self {
        Self::skipped(tag, Note::missing(what, name))
    }

    /// `IF NOT EXISTS`, where the name is taken.
    pub(crate) fn present(tag: &'static str, name: &str) -> Self {
        let message = format!("relation \"{name}\" already exists, skipping");
        Self::skipped(tag, Note { state: state::DUPLICATE_TABLE, message, hint: None })
    }
}

impl From<&'static str> for Defined {
    fn from(tag: &'static str) -> Self {
        Self::undone_by(tag, Undo::Impossible)
    }
}

/// Reads a definition.
pub(crate) fn read<'a>(catalog: &Arc<Catalog>, sql: &'a str) -> Result<Definition<'a>, SqlError> {
    definition::read(sql, tokens(sql), Some(catalog))
}

/// Carries out a definition and says what it was.
pub(crate) fn run<'w>(core: &'w Core, definition: &'w Definition<'w>) -> Result<Defined, SqlError> {
    let words = |table: Option<&'w Arc<Table>>| Words::new(core, definition, table);
    match &definition.what {
        What::CreateTable(wanted) => {
            let columns = table::columns_made(core, wanted);
            table::create(core, &words(core.catalog.table(&wanted.name.text)).with_columns(columns), wanted)
        }
        What::CreateIndex(wanted) => {
            index::create(core, &words(core.catalog.table(&wanted.table.text)), wanted)
        }
        What::CreateView(wanted) => view::create(core, &words(None), wanted),
        What::CreateMaterialized(wanted) => materialized::create(core, &words(None), wanted),
        What::Refresh(wanted) => materialized::refresh(core, wanted),
        What::CreateRoutine(_) => Err(SqlError::new(state::INTERNAL, "a routine is made by the executor")),
        What::DropRoutine(dropped) => routine::drop(core, dropped),
        What::AlterRoutine(wanted) => routine::alter(core, wanted),
        What::Drop(dropped) => drop::run(core, &words(None), dropped),
        What::CreateEnum(wanted) => enumeration::create(core, wanted),
        What::AlterEnum(wanted) => enumeration::alter(core, &words(None), wanted),
        What::AlterTable(alter) => {
            let columns = table::columns_added(core, alter);
            alter::run(core, &words(core.catalog.table(&alter.table.text)).with_columns(columns), alter)
        }
        What::RenameIndex(rename) => alter::rename_index(core, rename),
        What::Truncate(emptied) => truncate(core, emptied),
        What::CreateRule(wanted) => rule::create(core, definition, wanted),
        What::DropRule(dropped) => rule::drop(core, dropped),
        What::Comment(wanted) => comment::run(core, wanted),
        What::CreateSchema(wanted) => schema::create(core, wanted),
        What::CreateSequence(wanted) => sequence::create(core, wanted),
        What::AlterSequence(wanted) => sequence::alter(core, wanted),
        What::Server(statement) => server::run(core, statement),
        What::Nothing(tag) => Ok(Defined { undo: Vec::new(), ..(*tag).into() }),
        What::Grant(grants) => grant::run(core, definition.sql, grants),
        What::Owner(wanted) => grant::change_owner(core, wanted),
        What::Known(known) => known::run(&words(None), known),
        What::Upkeep(upkeep) => {
            upkeep::run(core, upkeep).map(|tag| Defined { undo: Vec::new(), ..tag.into() })
        }
    }
}

fn truncate(core: &Core, emptied: &Truncate) -> Result<Defined, SqlError> {
    let names = || emptied.names.iter().map(|name| name.text.as_str());
    names().try_for_each(system::refuse_change)?;
    let tables: Result<Vec<_>, _> =
        names().map(|name| core.catalog.table(name).ok_or_else(|| SqlError::unknown_table(name))).collect();
    let (mut tables, mut invalidated, mut seen) = (tables?, None, HashSet::new());
    tables.retain(|table| seen.insert(table.id()));
    tables.iter().try_for_each(|table| materialized::refuse(table))?;
    if let Some(table) = tables.iter().find(|table| table.is_mirror())
        && !core.system.identity().is_source
    {
        return Err(mirror_written(table.name()));
    }
    for table in tables {
        let (table_id, rows) = (table.id(), table.stats().rows);
        let one = Invalidated { table: table_id, rows, how: Invalidation::Flushed };
        invalidated = Invalidated::and(invalidated, Some(one));
        core.store.truncate(table);
        if emptied.restart && table.def().identity().is_some() {
            core.store.restart_numbers(table);
        }
        if emptied.restart {
            restart_sequences(core, table)?;
        }
    }
    Ok(Defined { invalidated, ..Defined::from("TRUNCATE TABLE") })
}

/// Has the sequences that go with a table begin again.
fn restart_sequences(core: &Core, table: &Table) -> Result<(), SqlError> {
    let goes =
        |own: &&Arc<store::Sequence>| own.def().owner.as_ref().is_some_and(|owner| owner.0 == table.def().id);
    for own in core.catalog.sequences().iter().filter(goes) {
        core.store.set_value(own, Place { last: own.def().start, called: false })?;
    }
    Ok(())
}

/// Refuses what is to go by itself.
fn refuse_temporary(temporary: bool) -> Result<(), SqlError> {
    if temporary {
        return Err(SqlError::not_supported("a temporary table or view")
            .with_hint("rows of any table may expire: WITH (ttl = '5 min')"));
    }
    Ok(())
}

/// Names that SQLite or this server keep for themselves. Those in a schema differ by it.
fn check_table_name(name: &Name) -> Result<(), SqlError> {
    if name.namespace.is_some() { Ok(()) } else { check_public_name(&name.text) }
}

fn check_public_name(name: &str) -> Result<(), SqlError> {
    const PREFIXES: &[&str] = &["sqlite_", "pragma_"];
    const NAMES: &[&str] =
        &["dbstat", "fts3tokenize", "bytecode", "tables_used", "sqlite_stmt", "rtree", "fts5vocab"];
    let lower = name.to_ascii_lowercase();
    let reserved = PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
        || system::is_reserved(&lower)
        || NAMES.contains(&lower.as_str())
        || TABLE_FUNCTIONS.contains(&lower.as_str());
    if reserved {
        return Err(SqlError::new(
            state::RESERVED_NAME,
            format!("the table name \"{name}\" is reserved; choose another"),
        ));
    }
    Ok(())
}

fn check_column_name(name: &str) -> Result<(), SqlError> {
    if HIDDEN.iter().any(|(hidden, ..)| hidden.eq_ignore_ascii_case(name)) {
        let message =
            format!("the column name \"{name}\" is reserved: every table has a hidden column of this name");
        return Err(SqlError::new(state::RESERVED_NAME, message));
    }
    Ok(())
}

/// A column of a declared type.
pub(crate) fn typed_column(catalog: &Catalog, name: &str, declared: &str) -> Result<ColumnDef, SqlError> {
    let bare = declared.strip_suffix("[]").map(str::trim_end);
    if bare.and_then(SqlType::of_declared) == Some(SqlType::Bytea) {
        return Err(SqlError::not_supported("a column of arrays of bytea"));
    }
    match catalog.enumeration(bare.unwrap_or(declared)) {
        Some(own) => Ok(ColumnDef::of_enum(name, own, bare.is_some())),
        None => Ok(ColumnDef::new(name, declared)?),
    }
}

/// A column of a type; `None`: no column is declared with it.
pub(crate) fn column_of_type(catalog: &Catalog, name: &str, ty: SqlType) -> Option<ColumnDef> {
    if let Some(id) = ty.enumeration() {
        return Some(ColumnDef::of_enum(name, catalog.enum_of(id)?, ty.is_array()));
    }
    ColumnDef::new(name, &ty.sql_name()).ok().filter(|column| column.sql_type() == ty)
}

/// The table gets the definition of now again.
fn altered(table: &Arc<Table>) -> Undo {
    Undo::Altered(Arc::clone(table), Box::new(table.def().clone()))
}

/// The same by its name, if there is one.
pub(crate) fn altered_by_name(store: &Store, table: &str) -> Option<Undo> {
    store.catalog().table(table).map(altered)
}

/// A name that is not taken: this one, or the first with a number behind it.
fn free_name(name: String, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (1..).map(|number: u32| format!("{name}{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(name)
}
