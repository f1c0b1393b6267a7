//! Writing through a view, as PostgreSQL does: where a view is no more than columns of one table, with or without a
//! condition, a write to it is one to the table.
//!
//! `UPDATE` and `DELETE` find their rows through the view's own query, so its condition holds for them. `INSERT` writes
//! whatever it is given: a row that the view does not show is written all the same.

use std::sync::Arc;

use sqlite3_parser::ast::{As, Expr, OneSelect, ResultColumn, Select, SelectTable, Stmt};
use store::Table;
use store::definition::ViewDef;

use crate::core::Core;
use crate::error::{SqlError, state};
use crate::table::{Column, Shape};
use crate::text::parse::{Sql, with_tree};
use crate::text::token::{quoted_name, unquoted};

/// A view of one table.
#[derive(Debug)]
pub(super) struct TableView {
    name: String,
    pub(super) table: Arc<Table>,
    columns: Vec<ViewColumn>,
    /// What its query calls the table.
    called: String,
    condition: Option<String>,
}

#[derive(Debug)]
pub(super) struct ViewColumn {
    pub(super) name: String,
    /// In the words of the view's query.
    expression: String,
    /// The table's column that it is, by name; nothing else can be written.
    pub(super) column: Option<String>,
}

impl TableView {
    /// The view, if it can be written.
    pub(super) fn of(core: &Core, view: &ViewDef) -> Result<Self, SqlError> {
        let statement = core.compile(&view.sql)?;
        let names: Vec<String> = match view.columns.as_slice() {
            [] => (0..statement.columns()).map(|at| statement.column_name(at)).collect(),
            given => given.to_vec(),
        };
        with_tree(&view.sql, |tree| match tree {
            Stmt::Select(select) => Self::of_select(core, view, names, select),
            _ => Err(refused(view, "its query is not a plain SELECT")),
        })
    }

    fn of_select(
        core: &Core,
        view: &ViewDef,
        names: Vec<String>,
        select: &Select<'_>,
    ) -> Result<Self, SqlError> {
        let OneSelect::Select { distinctness, columns, from, where_clause, group_by, having, window_clause } =
            &select.body.select
        else {
            return Err(refused(view, "it reads no table"));
        };
        if select.with.is_some() || select.body.compounds.is_some() {
            return Err(refused(view, "it has WITH, UNION, INTERSECT or EXCEPT"));
        }
        if distinctness.is_some() || select.limit.is_some() {
            return Err(refused(view, "it has DISTINCT or LIMIT"));
        }
        if group_by.is_some() || having.is_some() || window_clause.is_some() {
            return Err(refused(view, "it has GROUP BY, HAVING or WINDOW"));
        }
        let from = from.as_ref().filter(|from| from.joins.as_ref().is_none_or(sqlite3_parser::Vec::is_empty));
        let Some(SelectTable::Table(name, alias, _)) = from.and_then(|from| from.select) else {
            return Err(refused(view, "it does not read exactly one table"));
        };
        let table = core
            .catalog
            .table(&unquoted(name.name.0))
            .ok_or_else(|| refused(view, "it does not read a table"))?;
        let called = match alias {
            Some(As::As(name) | As::Elided(name)) => unquoted(name.0),
            None => table.name().to_owned(),
        };
        let shape = Shape::of(table);
        let mut found: Vec<ViewColumn> = Vec::new();
        for item in *columns {
            add_columns(&shape, item, &mut found);
        }
        if found.len() != names.len() || calls_aggregate(core, select, columns) {
            return Err(refused(view, "its rows are not those of the table"));
        }
        for (column, name) in found.iter_mut().zip(names) {
            column.name = name;
        }
        Ok(Self {
            name: view.name.clone(),
            table: Arc::clone(table),
            columns: found,
            called: quoted_name(&called),
            condition: where_clause.as_ref().map(|condition| Sql(*condition).to_string()),
        })
    }

    /// The columns that `INSERT` without a list fills.
    pub(super) fn columns(&self) -> &[ViewColumn] {
        &self.columns
    }

    /// The name of the table's column that a column of the view is.
    pub(super) fn column(&self, name: &str) -> Result<&str, SqlError> {
        let column = self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
        let column = column.ok_or_else(|| SqlError::unknown_column(&self.name, name))?;
        column.column.as_deref().ok_or_else(|| {
            SqlError::not_supported(format!("writing column \"{name}\" of view \"{}\"", self.name))
                .with_hint("it is computed; write the columns of the table instead")
        })
    }

    /// The list of rows as the view would show it, whatever its condition.
    pub(super) fn rows_of_list(&self, list: usize, name: &str) -> String {
        let rows = format!("{}({list}) AS {}", quoted_name(self.table.name()), self.called);
        format!("(SELECT {} FROM {rows}) AS {name}", self.shown().join(", "))
    }

    /// The view's rows, with what a write needs to know of the table's.
    pub(super) fn rows(&self, name: &str) -> String {
        let own = |column: &str| format!("{}.{}", self.called, quoted_name(column));
        let mut columns = self.shown();
        columns.push(format!("{} AS \"_row\"", own("_row")));
        for (at, column) in self.table.def().columns.iter().enumerate().filter(|(_, column)| !column.pending)
        {
            columns.push(format!("{} AS {}", own(&column.name), quoted_name(&self.hidden_name(at))));
        }
        let table = quoted_name(self.table.name());
        let condition =
            self.condition.as_ref().map_or_else(String::new, |condition| format!(" WHERE {condition}"));
        format!("(SELECT {} FROM {table} AS {}{condition}) AS {name}", columns.join(", "), self.called)
    }

    /// What [`Self::rows`] calls the table's column at a position: no column of the view is called so.
    pub(super) fn hidden_name(&self, at: usize) -> String {
        let mut name = format!("#{at}");
        while self.columns.iter().any(|column| column.name == name) {
            name.insert(0, '#');
        }
        name
    }

    fn shown(&self) -> Vec<String> {
        let shown = |column: &ViewColumn| format!("{} AS {}", column.expression, quoted_name(&column.name));
        self.columns.iter().map(shown).collect()
    }
}

fn add_columns(shape: &Shape, item: &ResultColumn<'_>, found: &mut Vec<ViewColumn>) {
    let name = String::new;
    match item {
        ResultColumn::Star | ResultColumn::TableStar(_) => {
            for shown in shape.visible() {
                let stored = matches!(shown.column, Column::Stored(_));
                found.push(ViewColumn {
                    name: name(),
                    expression: quoted_name(&shown.name),
                    column: stored.then(|| shown.name.clone()),
                });
            }
        }
        ResultColumn::Expr(expression, _) => {
            let named = match expression {
                Expr::Id(id) => Some(unquoted(id.0)),
                Expr::Name(name) | Expr::Qualified(_, name) => Some(unquoted(name.0)),
                _ => None,
            };
            let column = named.filter(|name| shape.named(name).is_some());
            found.push(ViewColumn { name: name(), expression: Sql(expression).to_string(), column });
        }
    }
}

/// Whether a column is made of several rows: an aggregate or a window function, which may not stand in a condition.
fn calls_aggregate(core: &Core, select: &Select<'_>, columns: &[ResultColumn<'_>]) -> bool {
    let Some(from) = from_of(select) else { return true };
    columns.iter().any(|item| match item {
        ResultColumn::Expr(Expr::Id(_) | Expr::Name(_) | Expr::Qualified(..), _) => false,
        ResultColumn::Expr(expression, _) => {
            core.compile(&format!("SELECT 1 FROM {from} WHERE {}", Sql(expression))).is_err()
        }
        _ => false,
    })
}

fn from_of(select: &Select<'_>) -> Option<String> {
    match &select.body.select {
        OneSelect::Select { from: Some(from), .. } => Some(Sql(from).to_string()),
        _ => None,
    }
}

fn refused(view: &ViewDef, why: &str) -> SqlError {
    SqlError::new(state::NOT_IN_STATE, format!("cannot write to view \"{}\": {why}", view.name))
        .with_hint("write to the table that it reads")
}
