//! `CREATE INDEX`: columns, expressions and conditions.

use pgcatalog::predicate::predicate_column;
use pgcatalog::system;
use sqlite3_parser::ast::{Expr, Name, QualifiedName, SortOrder, SortedColumn};
use store::definition::{Collation, ColumnDef, Generated, IndexDef, TableDef};

use super::table::collation;
use super::{Defined, altered};
use crate::compute::check_definition;
use crate::core::{Core, check_schema};
use crate::error::{SqlError, state};
use crate::table::HIDDEN;
use crate::text::parse::Sql;
use crate::text::token::unquoted;

/// What an index is to be.
pub(super) struct Wanted<'t> {
    pub(super) unique: bool,
    pub(super) columns: &'t [SortedColumn<'t>],
    pub(super) condition: Option<&'t Expr<'t>>,
}

/// An index with the hidden columns that it needs, as if these stood behind the table's own.
pub(super) struct Form {
    pub(super) index: IndexDef,
    pub(super) hidden: Vec<ColumnDef>,
}

pub(super) fn create(
    core: &Core,
    if_not_exists: bool,
    (index, table): (&QualifiedName<'_>, &Name<'_>),
    wanted: &Wanted<'_>,
) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE INDEX";
    check_schema(index)?;
    let name = unquoted(index.name.0);
    let table = unquoted(table.0);
    system::refuse_change(&table)?;
    let table = core.catalog.table(&table).ok_or_else(|| SqlError::unknown_table(&table))?;
    if if_not_exists && core.catalog.index_owner(&name).is_some() {
        return Ok(Defined::present(TAG, &name));
    }
    let def = table.def();
    let mut form = index_form(def, wanted.columns)?;
    form.index = IndexDef { name: name.clone(), unique: wanted.unique, ..form.index };
    if let Some(condition) = wanted.condition {
        form.index.predicate = Some(def.columns.len() + form.hidden.len());
        form.hidden.push(predicate_column(&free_name(def, form.hidden.len()), &Sql(condition).to_string())?);
    }
    check_form(def, &form)?;
    let Form { index, hidden } = form;
    let first = def.columns.len();
    // The store gives the hidden columns their places.
    let placed = |positions: &[usize]| {
        let place = |at: usize| if at < first { at } else { positions[at - first] };
        IndexDef {
            columns: index.columns.iter().map(|&at| place(at)).collect(),
            predicate: index.predicate.map(place),
            ..index.clone()
        }
    };
    match core.store.create_index_with(table.name(), hidden, &placed) {
        Err(error) if error.state == state::DUPLICATE_TABLE && if_not_exists => {
            Ok(Defined::present(TAG, &name))
        }
        result => Ok(result.map(|()| Defined { undo: altered(table), ..TAG.into() })?),
    }
}

/// Proves the expressions in a copy of the definition.
fn check_form(def: &TableDef, form: &Form) -> Result<(), SqlError> {
    let mut copy = def.clone();
    copy.columns.extend(form.hidden.iter().cloned());
    copy.indexes.push(form.index.clone());
    check_definition(&copy)
}

/// The columns of a key or an index; what is no column becomes a hidden one.
pub(super) fn index_form(def: &TableDef, list: &[SortedColumn<'_>]) -> Result<Form, SqlError> {
    let mut form = Form { index: IndexDef::default(), hidden: Vec::new() };
    for item in list {
        let (expression, collation) = collated(&item.expr)?;
        let column = if let Some(name) = column_name(expression) {
            def.column_index(&name).ok_or_else(|| no_column(def, &name))?
        } else {
            let name = free_name(def, form.hidden.len());
            form.hidden.push(expression_column(&name, expression)?);
            def.columns.len() + form.hidden.len() - 1
        };
        form.index.columns.push(column);
        form.index.descending.push(item.order == Some(SortOrder::Desc));
        form.index.collations.push(collation);
    }
    // Both lists are empty where they say nothing.
    if !form.index.descending.contains(&true) {
        form.index.descending.clear();
    }
    if form.index.collations.iter().all(Option::is_none) {
        form.index.collations.clear();
    }
    Ok(form)
}

fn collated<'t>(expression: &'t Expr<'t>) -> Result<(&'t Expr<'t>, Option<Collation>), SqlError> {
    match expression {
        Expr::Collate(inner, name) => Ok((inner, Some(collation(&unquoted(name))?))),
        Expr::Parenthesized(inner) if inner.len() == 1 => collated(&inner[0]),
        other => Ok((other, None)),
    }
}

fn column_name(expression: &Expr<'_>) -> Option<String> {
    match expression {
        Expr::Id(id) => Some(unquoted(id.0)),
        Expr::Name(name) => Some(unquoted(name.0)),
        _ => None,
    }
}

/// What is said of a name that is no column of the table's rows.
fn no_column(def: &TableDef, name: &str) -> SqlError {
    if HIDDEN.iter().any(|(hidden, ..)| hidden.eq_ignore_ascii_case(name)) {
        return SqlError::not_supported(format!("an index of \"{name}\""))
            .with_hint("it is not stored in the row, and changes by itself");
    }
    SqlError::unknown_column(&def.name, name)
}

/// The hidden column of an indexed expression. It has the affinity of the expression, so that comparisons with it are
/// those with the expression: only a cast has one.
fn expression_column(name: &str, expression: &Expr<'_>) -> Result<ColumnDef, SqlError> {
    let declared = match expression {
        Expr::Cast { type_name: Some(of), .. } => Sql(of).to_string(),
        _ => String::new(),
    };
    let generated = Some(Generated { sql: Sql(expression).to_string(), stored: true });
    Ok(ColumnDef { hidden: true, generated, ..ColumnDef::new(name, &declared)? })
}

/// A name for the n-th hidden column to come, which nobody writes by accident.
fn free_name(def: &TableDef, ahead: usize) -> String {
    let taken = |name: &String| def.columns.iter().any(|column| column.name == *name);
    (1_usize..).map(|number| format!("#{number}")).filter(|name| !taken(name)).nth(ahead).unwrap_or_default()
}
