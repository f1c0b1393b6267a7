//! Definitions: from the tree of `CREATE`, `DROP`, and from our own readers of `TRUNCATE` and `ALTER`, to the
//! store.

mod alter;
mod index;
pub(crate) mod method;
mod of_query;
mod prepare;
mod refused;
mod table;
mod undo;
mod upkeep;
mod view;

use std::sync::Arc;

use pgcatalog::function::TABLE_FUNCTIONS;
use pgcatalog::system;
use sqlite3_parser::ast::{QualifiedName, Stmt};
use store::Table;
use store::definition::{IndexDef, TableDef};

use crate::core::{Core, check_schema};
use crate::error::{SqlError, state};
use crate::table::HIDDEN;
use crate::text::kind::StatementKind;
use crate::text::parse::with_tree;
use crate::text::storage::{Setting, split_parameters, truncate};
use crate::text::token::unquoted;

pub(crate) use alter::altered_table;
pub(crate) use undo::{Undo, Undoing};

/// What a definition was.
#[derive(Clone, Debug)]
pub(crate) struct Defined {
    pub(crate) tag: &'static str,
    /// `CREATE TABLE ... AS`: the table that is to be filled, and the statement that does it.
    pub(crate) fill: Option<(String, String)>,
    /// Nothing was done, as `IF EXISTS` or `IF NOT EXISTS` allows.
    pub(crate) skipped: Option<Skipped>,
    /// How `ROLLBACK` takes it back.
    pub(crate) undo: Undo,
}

/// What a client is told of a definition that had nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) state: &'static str,
    pub(crate) message: String,
}

impl Defined {
    /// `IF EXISTS`, where there is no such thing. `what`: `table`, `index`, `view`.
    pub(crate) fn missing(tag: &'static str, what: &str, name: &str) -> Self {
        let message = format!("{what} \"{name}\" does not exist, skipping");
        Self { skipped: Some(Skipped { state: state::SUCCESS, message }), ..tag.into() }
    }

    /// `IF NOT EXISTS`, where the name is taken.
    pub(crate) fn present(tag: &'static str, name: &str) -> Self {
        let message = format!("relation \"{name}\" already exists, skipping");
        Self { skipped: Some(Skipped { state: state::DUPLICATE_TABLE, message }), ..tag.into() }
    }
}

impl From<&'static str> for Defined {
    fn from(tag: &'static str) -> Self {
        Self { tag, fill: None, skipped: None, undo: Undo::Impossible }
    }
}

/// Carries out a definition and says what it was.
pub(crate) fn run(core: &Core, kind: StatementKind, sql: &str) -> Result<Defined, SqlError> {
    match kind {
        StatementKind::Truncate => run_truncate(core, sql).map(Defined::from),
        StatementKind::Alter => alter::run(core, sql),
        StatementKind::Upkeep => upkeep::run(core, sql).map(Defined::from),
        _ => {
            refused::check(sql)?;
            let (text, settings) = split_parameters(sql)?;
            let prepared = prepare::prepared(core, &text)?;
            let defined = with_tree(&prepared.sql, |tree| run_tree(core, tree, &settings, prepared.replace));
            defined.map_err(|error| prepared.relocate(error, sql))
        }
    }
}

fn run_truncate(core: &Core, sql: &str) -> Result<&'static str, SqlError> {
    let names = truncate(sql)?;
    names.iter().try_for_each(|name| system::refuse_change(name))?;
    let tables: Result<Vec<_>, _> = names
        .iter()
        .map(|name| core.catalog.table(name).ok_or_else(|| SqlError::unknown_table(name)))
        .collect();
    for table in tables? {
        core.store.truncate(table);
    }
    Ok("TRUNCATE TABLE")
}

/// `replace`: it began with `CREATE OR REPLACE`.
fn run_tree(core: &Core, tree: &Stmt<'_>, settings: &[Setting], replace: bool) -> Result<Defined, SqlError> {
    if !settings.is_empty() && !matches!(tree, Stmt::CreateTable { .. }) {
        return Err(SqlError::not_supported("WITH (...) on anything but a table"));
    }
    if replace && !matches!(tree, Stmt::CreateView { .. }) {
        return Err(SqlError::not_supported("OR REPLACE of other objects than views"));
    }
    match tree {
        Stmt::CreateTable { temporary: true, .. } | Stmt::CreateView { temporary: true, .. } => {
            Err(SqlError::not_supported("a temporary table or view")
                .with_hint("rows of any table may expire: WITH (ttl = '5 min')"))
        }
        Stmt::CreateTable { if_not_exists, tbl_name, body, .. } => {
            check_schema(tbl_name)?;
            table::create(core, *if_not_exists, tbl_name, body, settings)
        }
        Stmt::CreateIndex { unique, if_not_exists, idx_name, tbl_name, columns, where_clause } => {
            let wanted = index::Wanted { unique: *unique, columns, condition: where_clause.as_ref() };
            index::create(core, *if_not_exists, (idx_name, tbl_name), &wanted)
        }
        Stmt::CreateView { if_not_exists, view_name, columns, select, .. } => {
            check_schema(view_name)?;
            let existing = view::Existing::of(*if_not_exists, replace);
            view::create(core, existing, view_name, *columns, select)
        }
        Stmt::DropTable { if_exists, tbl_name } => drop_table(core, *if_exists, tbl_name),
        Stmt::DropIndex { if_exists, idx_name } => drop_index(core, *if_exists, idx_name),
        Stmt::DropView { if_exists, view_name } => {
            check_schema(view_name)?;
            view::drop(core, *if_exists, view_name)
        }
        Stmt::CreateVirtualTable { .. } => Err(SqlError::new(
            state::FORBIDDEN,
            "CREATE VIRTUAL TABLE is not allowed: a table is made by CREATE TABLE",
        )),
        _ => Err(SqlError::not_supported("this definition")),
    }
}

/// Names that SQLite or this server keep for themselves.
fn check_table_name(name: &str) -> Result<(), SqlError> {
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

fn drop_table(core: &Core, if_exists: bool, name: &QualifiedName<'_>) -> Result<Defined, SqlError> {
    const TAG: &str = "DROP TABLE";
    check_schema(name)?;
    let name = unquoted(name.name.0);
    system::refuse_change(&name)?;
    match core.store.drop_table(&name) {
        Err(error) if error.state == state::UNKNOWN_TABLE && if_exists => {
            Ok(Defined::missing(TAG, "table", &name))
        }
        result => Ok(result.map(|()| TAG.into())?),
    }
}

/// Whether a constraint stands for a key that compares otherwise than by its bytes.
fn is_of_key(def: &TableDef, name: &str) -> bool {
    let is_so = |index: &IndexDef| index.constraint && index.columns == def.primary_key;
    def.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name) && is_so(index))
}

/// The table gets the definition of now again.
fn altered(table: &Arc<Table>) -> Undo {
    Undo::Altered(Arc::clone(table), Box::new(table.def().clone()))
}

/// Whether an index reads columns that nobody sees.
fn reads_hidden(def: &TableDef, name: &str) -> bool {
    let index = def.indexes.iter().find(|index| index.name.eq_ignore_ascii_case(name));
    let columns = index.map(|index| index.columns.iter().chain(&index.predicate));
    columns.is_some_and(|mut columns| columns.any(|&at| def.columns[at].hidden))
}

fn drop_index(core: &Core, if_exists: bool, name: &QualifiedName<'_>) -> Result<Defined, SqlError> {
    const TAG: &str = "DROP INDEX";
    check_schema(name)?;
    let name = unquoted(name.name.0);
    let owner = core.catalog.index_owner(&name);
    if owner.is_some_and(|table| is_of_key(table.def(), &name)) {
        let message = format!("index \"{name}\" defines which keys of the table are equal");
        return Err(SqlError::new(state::DEPENDED_ON, message));
    }
    match core.store.drop_index(&name) {
        Err(error) if error.state == state::UNKNOWN_OBJECT && if_exists => {
            Ok(Defined::missing(TAG, "index", &name))
        }
        // The hidden columns of indexed expressions go with their index, and rows come without them.
        result => Ok(result.map(|()| Defined {
            undo: owner.filter(|table| !reads_hidden(table.def(), &name)).map_or(Undo::Impossible, altered),
            ..TAG.into()
        })?),
    }
}
