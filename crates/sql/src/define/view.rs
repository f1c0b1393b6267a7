//! `CREATE VIEW`: a view's text is kept among the definitions, and each connection knows it as a view of SQLite's.

use sqlite::Statement;
use sqltext::definition::CreateView;
use sqltext::grant::Kind;
use store::definition::{SqlType, ViewColumn, ViewDef};

use super::grant::of_new;
use super::words::Words;
use super::{Defined, Undo, check_table_name, refuse_temporary};
use crate::core::Core;
use crate::describe::ColumnDescription;
use crate::error::{SqlError, state};
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
