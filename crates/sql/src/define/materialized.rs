//! `CREATE MATERIALIZED VIEW` and `REFRESH MATERIALIZED VIEW`: a table that is filled by its query.

use pgcatalog::system::FIRST_USER_OID;
use sqltext::definition::{CreateMaterialized, Refresh, Setting};
use sqltext::grant::Kind;
use store::Table;
use store::definition::{ColumnDef, MaterializedDef, SqlType, TableDef};

use super::grant::of_new;
use super::table::TableMaker;
use super::words::Words;
use super::{Defined, Fill, Note, Undo, check_column_name, check_table_name, of_query, server, typed_column};
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::governed::MATERIALIZED;
use crate::needs::check_calls;

pub(super) fn create(
    core: &Core,
    words: &Words<'_>,
    wanted: &CreateMaterialized,
) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE MATERIALIZED VIEW";
    let name = &wanted.name.text;
    if wanted.if_not_exists && core.catalog.has(name) {
        return Ok(Defined::present(TAG, name));
    }
    check_table_name(&wanted.name)?;
    let mut maker = TableMaker::new(core, words, name);
    maker.def.namespace.clone_from(&wanted.name.namespace);
    let query = match source_in(&wanted.settings) {
        None => query_of(core, words, wanted, &mut maker.def.columns)?,
        Some(source) => source_query_of(core, words, (wanted, source), &mut maker.def.columns)?,
    };
    maker.def.materialized = Some(Box::new(query));
    let mut def = maker.finish(&wanted.settings)?;
    def.access = of_new(core, Kind::Table, wanted.name.namespace.as_deref());
    check_refreshed_on(core, &def)?;
    let mut notes = server::check_source(core, &def)?;
    let prefix = def.options.prefix.clone();
    match core.store.create_table_claiming(def) {
        Err(error) if error.state == state::DUPLICATE_TABLE && wanted.if_not_exists => {
            Ok(Defined::present(TAG, name))
        }
        Err(error) => Err(error.into()),
        Ok((table, claimed)) => {
            notes.extend(Note::claimed(claimed, prefix.as_deref()));
            let fill = wanted.populated.then(|| Fill::Refresh { view: name.clone(), created: true });
            Ok(Defined { fill, notes, ..Defined::undone_by(TAG, Undo::Table(table)) })
        }
    }
}

/// The query of a view over tables of this server, and the columns that it gives.
fn query_of(
    core: &Core,
    words: &Words<'_>,
    wanted: &CreateMaterialized,
    columns: &mut Vec<ColumnDef>,
) -> Result<MaterializedDef, SqlError> {
    if words.have_parameter(&wanted.query.tokens) {
        let message = "materialized views may not be defined using bound parameters";
        return Err(SqlError::not_supported(message));
    }
    let query = words.query(&wanted.query)?;
    // The view keeps what the functions do that its query calls.
    check_calls(&core.catalog, &core.system.identity().holder(), query.calls.iter().map(String::as_str))?;
    let found = of_query::columns(core, &query).map_err(|error| words.relocate(&query, error))?;
    let names: Vec<String> = wanted.columns.iter().map(|column| column.text.clone()).collect();
    *columns = named(found, &names)?;
    let sql = query.sql.trim().to_owned();
    let written = words.qualified(&wanted.query);
    Ok(MaterializedDef { sql, written, columns: names, populated: false, described: Vec::new() })
}

/// The server that is to run the query.
fn source_in(settings: &[Setting]) -> Option<&str> {
    let source = settings.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case("source"));
    source.map(|(_, server)| server.trim()).filter(|server| !server.is_empty())
}

/// A query in the words of a source, and the columns that it gives there.
fn source_query_of(
    core: &Core,
    words: &Words<'_>,
    (wanted, source): (&CreateMaterialized, &str),
    columns: &mut Vec<ColumnDef>,
) -> Result<MaterializedDef, SqlError> {
    let server = server::usable(core, source)?;
    let written = words.written(&wanted.query);
    let described = core.system.server().describe_query(server, &written)?;
    let mut found: Vec<ColumnDef> = Vec::with_capacity(described.len());
    for (name, oid) in &described {
        let declared = type_of_source(name, *oid)?;
        let name = of_query::free_name(&found, name);
        found.push(typed_column(&core.catalog, &name, &declared)?);
    }
    let names: Vec<String> = wanted.columns.iter().map(|column| column.text.clone()).collect();
    *columns = named(found, &names)?;
    Ok(MaterializedDef { sql: String::new(), written, columns: names, populated: false, described })
}

/// The type here of a column of a source. Types that somebody made there have numbers of their own.
fn type_of_source(column: &str, oid: u32) -> Result<String, SqlError> {
    let own = SqlType::of_oid(oid).filter(|_| oid < FIRST_USER_OID);
    let Some(own) = own else {
        let message = format!("column {column} of the query has a type that is not known here (OID {oid})");
        return Err(SqlError::new(state::NOT_SUPPORTED, message)
            .with_hint(format!("convert it in the query: {column}::text AS {column}")));
    };
    let brackets = if own.is_array() { "[]" } else { "" };
    Ok(format!("{}{brackets}", own.name()))
}

/// The columns under the names that they are given.
fn named(found: Vec<ColumnDef>, names: &[String]) -> Result<Vec<ColumnDef>, SqlError> {
    if names.len() > found.len() {
        return Err(SqlError::new(state::SYNTAX, "too many column names were specified"));
    }
    let column = |(at, own): (usize, ColumnDef)| {
        let name = names.get(at).unwrap_or(&own.name);
        check_column_name(name)?;
        Ok(ColumnDef { name: name.clone(), ..own })
    };
    found.into_iter().enumerate().map(column).collect()
}

/// The tables here whose changes have a view refreshed are there.
pub(super) fn check_refreshed_on(core: &Core, def: &TableDef) -> Result<(), SqlError> {
    if def.source_of_view().is_some() {
        return Ok(());
    }
    let missing = def.options.refresh_tables().find(|name| core.catalog.table(name).is_none());
    missing.map_or(Ok(()), |name| Err(SqlError::unknown_table(name)))
}

/// `REFRESH MATERIALIZED VIEW`: what is to be done is left to who runs queries.
pub(super) fn refresh(core: &Core, wanted: &Refresh) -> Result<Defined, SqlError> {
    const TAG: &str = "REFRESH MATERIALIZED VIEW";
    let view = of_name(core, &wanted.name.text)?;
    let populated = view.def().materialized.as_ref().is_some_and(|own| own.populated);
    if wanted.concurrently && !populated {
        let message = "CONCURRENTLY cannot be used when the materialized view is not populated";
        return Err(SqlError::new(state::NOT_SUPPORTED, message));
    }
    let fill = if wanted.populated {
        Some(Fill::Refresh { view: view.name().to_owned(), created: false })
    } else {
        core.store.set_populated(view.name(), false)?;
        core.store.truncate(view);
        None
    };
    Ok(Defined { fill, undo: Vec::new(), ..TAG.into() })
}

/// The materialized view of this name.
pub(crate) fn of_name<'c>(core: &'c Core, name: &str) -> Result<&'c Table, SqlError> {
    match core.catalog.table(name) {
        Some(table) if table.def().materialized.is_some() => Ok(table),
        None if core.catalog.view(name).is_none() => Err(SqlError::unknown_table(name)),
        _ => Err(SqlError::new(state::NOT_A_TABLE, format!("\"{name}\" is not a {MATERIALIZED}"))),
    }
}

/// Refuses what is meant for tables.
pub(crate) fn refuse(table: &Table) -> Result<(), SqlError> {
    if table.def().materialized.is_none() {
        return Ok(());
    }
    let message = format!("\"{}\" is not a table", table.def().own_name());
    Err(SqlError::new(state::NOT_A_TABLE, message))
}
