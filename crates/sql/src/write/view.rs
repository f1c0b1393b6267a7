//! Writing through a view, as PostgreSQL does: where a view is no more than columns of one table, with or without a
//! condition, a write to it is one to the table.
//!
//! `UPDATE` and `DELETE` find their rows through the view's own query, so its condition holds for them. `INSERT` writes
//! whatever it is given: a row that the view does not show is written all the same.

use std::ops::Range;
use std::sync::Arc;

use sqltext::ast::{
    Expr, GroupByExpr, Ident, ObjectNamePart, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
};
use sqltext::{Tree, token_at};
use store::Table;
use store::definition::ViewDef;

use crate::core::Core;
use crate::error::{SqlError, state};
use crate::table::{Column, Shape};
use crate::text::token::quoted_name;

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
        let statement = core.compile_query(&view.sql)?;
        let names: Vec<String> = match view.columns.as_slice() {
            [] => (0..statement.columns()).map(|at| statement.column_name(at)).collect(),
            given => given.to_vec(),
        };
        let served = dialect::view(&core.catalog, &view.sql);
        let tree = sqltext::parse(served.as_deref().unwrap_or(&view.sql)).ok();
        match tree.as_ref().map(|tree| (tree, &tree.statement)) {
            Some((tree, Statement::Query(query))) => Self::of_query(core, view, names, (tree, query)),
            _ => Err(refused(view, "its query is not a plain SELECT")),
        }
    }

    fn of_query(
        core: &Core,
        view: &ViewDef,
        names: Vec<String>,
        (tree, query): (&Tree<'_>, &Query),
    ) -> Result<Self, SqlError> {
        let select = plain_select(view, query)?;
        let (table, called, first) = read_table(core, view, select)?;
        let clauses = Clauses::of(tree, first);
        let shape = Shape::of(&table);
        let mut found: Vec<ViewColumn> = Vec::new();
        let mut computed = Vec::new();
        for (item, range) in select.projection.iter().zip(&clauses.list) {
            let text = tree.text(expression_of(tree, item, range));
            add_columns(&shape, item, text, &mut found);
            computed.extend((!is_name(item)).then_some(text));
        }
        if found.len() != names.len() || calls_aggregate(core, tree.text(clauses.from), &computed) {
            return Err(refused(view, "its rows are not those of the table"));
        }
        for (column, name) in found.iter_mut().zip(names) {
            column.name = name;
        }
        Ok(Self {
            name: view.name.clone(),
            table,
            columns: found,
            called: quoted_name(&called),
            condition: clauses.condition.map(|condition| tree.text(condition).to_owned()),
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

/// The query as a `SELECT` of rows as they are.
fn plain_select<'q>(view: &ViewDef, query: &'q Query) -> Result<&'q Select, SqlError> {
    let select = match &*query.body {
        SetExpr::Select(select) if query.with.is_none() => select,
        SetExpr::Select(_) | SetExpr::SetOperation { .. } => {
            return Err(refused(view, "it has WITH, UNION, INTERSECT or EXCEPT"));
        }
        _ => return Err(refused(view, "it reads no table")),
    };
    if select.distinct.is_some() || query.limit_clause.is_some() || query.fetch.is_some() {
        return Err(refused(view, "it has DISTINCT or LIMIT"));
    }
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(terms, _) if terms.is_empty());
    if grouped || select.having.is_some() || !select.named_window.is_empty() {
        return Err(refused(view, "it has GROUP BY, HAVING or WINDOW"));
    }
    Ok(select)
}

/// The only table that it reads, what the query calls it, and the number of its name's first token.
fn read_table(core: &Core, view: &ViewDef, select: &Select) -> Result<(Arc<Table>, String, usize), SqlError> {
    let factor = match &select.from[..] {
        [from] if from.joins.is_empty() => Some(&from.relation),
        _ => None,
    };
    let Some(TableFactor::Table { name, alias, args: None, .. }) = factor else {
        return Err(refused(view, "it does not read exactly one table"));
    };
    let parts: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
    let first = parts.first().and_then(|first| token_at(first.span.start));
    let table = parts.last().and_then(|last| core.catalog.table(&last.value));
    let (Some(first), Some(table)) = (first, table) else {
        return Err(refused(view, "it does not read a table"));
    };
    let called = alias.as_ref().map_or_else(|| table.name().to_owned(), |alias| alias.name.value.clone());
    Ok((Arc::clone(table), called, first))
}

/// Where the clauses of a plain `SELECT` stand, in tokens.
struct Clauses {
    list: Vec<Range<usize>>,
    from: Range<usize>,
    condition: Option<Range<usize>>,
}

impl Clauses {
    /// `table`: where the name of the only table is.
    fn of(tree: &Tree<'_>, table: usize) -> Self {
        let tokens = &tree.tokens;
        let mut depth = 0_usize;
        let (mut list, mut begin) = (Vec::new(), None);
        let (mut filter, mut end) = (None, tokens.len());
        for (at, token) in tokens.iter().enumerate() {
            depth += usize::from(token.is_sign("("));
            depth = depth.saturating_sub(usize::from(token.is_sign(")")));
            if depth > 0 {
                continue;
            }
            match begin {
                None if token.is("SELECT") => begin = Some(at + 1),
                Some(first) if at < table && (token.is_sign(",") || at + 1 == table) => {
                    list.push(first..at);
                    begin = Some(at + 1);
                }
                _ if at > table && token.is("WHERE") => filter = Some(at),
                _ if at > table && (token.is("ORDER") || token.is_sign(";")) => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        let condition = filter.map(|filter| filter + 1..end);
        Self { list, from: table..filter.unwrap_or(end), condition }
    }
}

/// Where the expression of an item stands, without the name that it is given.
fn expression_of(tree: &Tree<'_>, item: &SelectItem, range: &Range<usize>) -> Range<usize> {
    let alias = match item {
        SelectItem::ExprWithAlias { alias, .. } => token_at(alias.span.start),
        _ => None,
    };
    let Some(alias) = alias else { return range.clone() };
    let explicit = tree.tokens.get(alias.wrapping_sub(1)).is_some_and(|word| word.is("AS"));
    range.start..alias - usize::from(explicit)
}

/// Whether it shows columns of the table as they are.
fn is_name(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        }
        _ => true,
    }
}

fn add_columns(shape: &Shape, item: &SelectItem, text: &str, found: &mut Vec<ViewColumn>) {
    let name = String::new;
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        for shown in shape.visible() {
            let stored = matches!(shown.column, Column::Stored(_));
            found.push(ViewColumn {
                name: name(),
                expression: quoted_name(&shown.name),
                column: stored.then(|| shown.name.clone()),
            });
        }
        return;
    };
    let named = match expr {
        Expr::Identifier(name) => Some(&name.value),
        Expr::CompoundIdentifier(parts) => parts.last().map(|name| &name.value),
        _ => None,
    };
    let column = named.filter(|name| shape.named(name).is_some()).cloned();
    found.push(ViewColumn { name: name(), expression: text.to_owned(), column });
}

/// Whether a column is made of several rows: an aggregate or a window function, which may not stand in a condition.
fn calls_aggregate(core: &Core, from: &str, computed: &[&str]) -> bool {
    computed.iter().any(|text| core.compile(&format!("SELECT 1 FROM {from} WHERE {text}")).is_err())
}

fn refused(view: &ViewDef, why: &str) -> SqlError {
    SqlError::new(state::NOT_IN_STATE, format!("cannot write to view \"{}\": {why}", view.name))
        .with_hint("write to the table that it reads")
}
