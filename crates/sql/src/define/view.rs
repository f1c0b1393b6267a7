//! `CREATE VIEW`: a view's text is kept among the definitions, and each connection knows it as a view of SQLite's.

use std::sync::Arc;

use sqlite::Statement;
use sqltext::definition::{AlterTable, Change, CreateView};
use sqltext::grant::Kind;
use store::Table;
use store::definition::{SqlType, ViewColumn, ViewDef, qualified};

use super::alter::depend::reads_all;
use super::alter::follow::{self, Relation};
use super::drop::materialized_reader_of;
use super::grant::of_new;
use super::words::Words;
use super::{Defined, Undo, check_column_name, check_public_name, check_table_name, refuse_temporary};
use crate::compute::mentions;
use crate::core::Core;
use crate::describe::ColumnDescription;
use crate::error::{SqlError, state};
use crate::governed::MATERIALIZED;
use crate::needs::check_calls;

pub(super) fn create(core: &Core, words: &Words<'_>, wanted: &CreateView) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE VIEW";
    refuse_temporary(wanted.temporary)?;
    let name = &wanted.name.text;
    let kept = wanted.if_not_exists && !wanted.replace;
    if kept && core.catalog.view(name).is_some() {
        return Ok(Defined::present(TAG, name));
    }
    check_table_name(&wanted.name)?;
    if words.have_parameter(&wanted.query.tokens) {
        return Err(SqlError::new(state::SYNTAX, "a view cannot have parameters"));
    }
    let query = words.query(&wanted.query)?;
    // The view keeps what the functions do that its query calls.
    let calls = query.calls.iter().map(String::as_str);
    check_calls(&core.catalog, &core.system.identity().holder(), calls)?;
    let columns: Vec<String> = wanted.columns.iter().map(|column| column.text.clone()).collect();
    // The query's mistakes are reported now, not when the view is read.
    let compiled = core.compile_query(&query.sql).map_err(|error| words.relocate(&query, error))?;
    let width = compiled.columns();
    if !columns.is_empty() && columns.len() != width {
        let message = format!("view \"{name}\" names {} columns, but its query has {width}", columns.len());
        return Err(SqlError::new(state::SYNTAX, message));
    }
    // One that is replaced keeps its owner and its privileges.
    let known = core.catalog.view(name).map(|view| view.access.clone());
    let access = known.unwrap_or_else(|| of_new(core, Kind::Table, wanted.name.namespace.as_deref()));
    let (sql, namespace) = (query.sql.trim().to_owned(), wanted.name.namespace.clone());
    let written = words.qualified(&wanted.query);
    let shape = shape(core, &compiled, &query.types, &columns);
    let view =
        ViewDef { id: 0, name: name.clone(), namespace, columns, sql, written, shape, comment: None, access };
    let before = core.catalog.view(name).map(|view| Undo::ViewGone(Box::new(ViewDef::clone(view))));
    let undo = before.unwrap_or_else(|| Undo::View(name.clone()));
    match core.store.create_view(view, wanted.replace) {
        Err(error) if error.state == state::DUPLICATE_TABLE && kept => Ok(Defined::present(TAG, name)),
        result => Ok(result.map(|()| Defined::undone_by(TAG, undo))?),
    }
}

/// `ALTER VIEW`, or `ALTER TABLE` of a view: it gets another name, another schema, other names of its columns.
pub(super) fn alter(
    core: &Core,
    tag: &'static str,
    view: &ViewDef,
    alter: &AlterTable,
) -> Result<Defined, SqlError> {
    let [change] = &alter.changes[..] else {
        return Err(refused(view, "this list of changes"));
    };
    let own = view.own_name();
    let undo = match change {
        Change::RenameTable(to) => renamed(core, view, &to.text, view.namespace.as_deref())?,
        Change::SetSchema(schema) => {
            renamed(core, view, own, schema.as_ref().map(|schema| schema.text.as_str()))?
        }
        Change::RenameColumn(from, to) => column_renamed(core, view, &from.text, &to.text)?,
        Change::AddColumn { .. } => return Err(refused(view, "ADD COLUMN")),
        Change::AddConstraint(_) => return Err(refused(view, "ADD CONSTRAINT")),
        Change::DropColumn { .. } => return Err(refused(view, "DROP COLUMN")),
        Change::DropConstraint { .. } | Change::RenameConstraint(..) => {
            return Err(refused(view, "DROP CONSTRAINT"));
        }
        Change::Column(..) => return Err(refused(view, "ALTER COLUMN")),
        Change::Set(_) | Change::Reset(_) => {
            return Err(SqlError::not_supported("an option of a view")
                .with_hint("a view reads with the rights of its owner, and checks nothing that is written"));
        }
    };
    Ok(Defined { undo, ..tag.into() })
}

fn refused(view: &ViewDef, action: &str) -> SqlError {
    let message = format!("ALTER action {action} cannot be performed on relation \"{}\"", view.own_name());
    SqlError::new(state::NOT_A_TABLE, message).with_detail("This operation is not supported for views.")
}

/// A view under another name. Views that read it go on doing so.
fn renamed(core: &Core, view: &ViewDef, own: &str, namespace: Option<&str>) -> Result<Vec<Undo>, SqlError> {
    if namespace.is_none() {
        check_public_name(own)?;
    }
    let before = Relation { namespace: view.namespace.as_deref(), own: view.own_name() };
    let after = Relation { namespace, own };
    let readers = match materialized_reader_of(core, &view.name) {
        Some(reader) => Err((MATERIALIZED, reader.name().to_owned())),
        None => follow::of_relation(core, &before, &after).ok_or_else(|| ("view", "that".to_owned())),
    };
    let readers = readers.map_err(|(word, name)| {
        let message =
            format!("{word} \"{name}\" reads view \"{}\", which cannot get another name", view.name);
        SqlError::new(state::DEPENDED_ON, message).with_hint("drop the view that reads it first")
    })?;
    let name = qualified(namespace, own);
    let mut undo = vec![follow::change(core, &view.name, &mut |view| {
        (view.name, view.namespace) = (name.clone(), namespace.map(ToOwned::to_owned));
    })?];
    undo.extend(follow::install(core, readers)?);
    Ok(undo)
}

/// A view with another name of a column. What reads it by the old name is refused.
fn column_renamed(core: &Core, view: &ViewDef, from: &str, to: &str) -> Result<Vec<Undo>, SqlError> {
    check_column_name(to)?;
    let named = |name: &str| view.shape.iter().position(|column| column.name.eq_ignore_ascii_case(name));
    let at = named(from).ok_or_else(|| SqlError::unknown_column(view.own_name(), from))?;
    if named(to).is_some_and(|other| other != at) {
        let message = format!("column \"{to}\" of relation \"{}\" already exists", view.own_name());
        return Err(SqlError::new(state::DUPLICATE_COLUMN, message));
    }
    let followed = readers_followed(core, view, from, to)?;
    let undo = follow::change(core, &view.name, &mut |view| {
        to.clone_into(&mut view.shape[at].name);
        view.columns = view.shape.iter().map(|column| column.name.clone()).collect();
    })?;
    let mut undo = vec![undo];
    undo.extend(follow::install(core, followed)?);
    Ok(undo)
}

/// The views that read a column of a view, as they are when it has another name.
fn readers_followed(core: &Core, view: &ViewDef, from: &str, to: &str) -> Result<Vec<ViewDef>, SqlError> {
    let refused = |word: &str, name: &str| {
        let message = format!("RENAME COLUMN is refused: {word} \"{name}\" reads view \"{}\"", view.name);
        SqlError::new(state::DEPENDED_ON, message).with_hint("drop the view that reads it first")
    };
    let reads = |sql: &str| mentions(sql, &view.name) && (reads_all(sql) || mentions(sql, from));
    let catalog = core.store.catalog();
    let is_reader =
        |table: &&Arc<Table>| table.def().materialized.as_ref().is_some_and(|own| reads(&own.sql));
    if let Some(table) = catalog.tables().find(is_reader) {
        return Err(refused(MATERIALIZED, table.name()));
    }
    let others = catalog.views().filter(|other| other.id != view.id && mentions(&other.sql, &view.name));
    let followed = others.filter(|other| reads(&other.sql) || mentions(&other.sql, to)).map(|other| {
        let followed = follow::of_column(&catalog, other, &view.name, (from, to));
        followed.ok_or_else(|| refused("view", &other.name))
    });
    followed.collect()
}

/// What the columns of a view are called, and of which types they are.
fn shape(core: &Core, query: &Statement, types: &[Option<SqlType>], names: &[String]) -> Vec<ViewColumn> {
    let described = core.columns_of(query);
    let column = |(at, own): (usize, ColumnDescription)| {
        let name = names.get(at).cloned().unwrap_or(own.name);
        let known = Some(own.ty).filter(|ty| *ty != SqlType::Unknown);
        let ty = types.get(at).copied().flatten().or(known).unwrap_or(SqlType::Text);
        let declared = query.origin(at).filter(|_| own.ty == ty).and_then(|(table, column)| {
            let table = core.catalog.table(&table)?;
            Some(table.def().columns[table.def().column_index(&column)?].declared.clone())
        });
        ViewColumn { name, ty: ty.oid(), declared: declared.unwrap_or_default() }
    };
    described.into_iter().enumerate().map(column).collect()
}
