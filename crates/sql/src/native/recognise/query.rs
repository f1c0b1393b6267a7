//! `SELECT`.

use std::sync::Arc;

use pgcatalog::shape::type_of;
use pgcatalog::system::oid_of_table;
use sqlite3_parser::ast::{As, Expr, Literal, OneSelect, ResultColumn, Select, SortOrder, SortedColumn};
use store::Table;
use store::definition::SqlType;

use super::super::access::{Access, Way};
use super::super::expr::Test;
use super::super::grouping::{Grouping, Shown};
use super::super::groups::Key;
use super::super::query::{Extent, Output, Query};
use super::super::scope::{Place, Scope, Side};
use super::super::source::{led, whole};
use super::condition::Where;
use super::names::{is_built_in, operand, place, scope_of};
use super::terms::{aggregate, number};
use crate::core::Core;
use crate::describe::OwnedColumn;
use crate::text::token::unquoted;

/// A query of plain columns, aggregates or groups. `sql` is the statement, whose words name some columns.
pub(super) fn of(core: &Core, select: &Select<'_>, sql: &str) -> Option<Query> {
    let Select { with: None, body, .. } = select else { return None };
    let (OneSelect::Select { columns, from: Some(from), where_clause, group_by, .. }, None) =
        (&body.select, &body.compounds)
    else {
        return None;
    };
    let OneSelect::Select { distinctness: None, having: None, window_clause: None, .. } = &body.select else {
        return None;
    };
    let (scope, on) = scope_of(core, from)?;
    let wanted = Where::of(&scope, where_clause.as_deref())?;
    let terms = group_by.unwrap_or_default();
    if let Some(table) = scope.alone().filter(|_| terms.is_empty())
        && let Some(query) = of_table(&scope, table, &wanted, select, (columns, sql))
    {
        return Some(query);
    }
    if select.order_by.is_some()
        || select.limit.is_some()
        || scope.sides().any(|(.., table)| is_built_in(table))
    {
        return None;
    }
    let of_join = Where::of(&scope, on)?;
    of_tables(&scope, (&of_join, &wanted), columns, terms)
}

/// A query of one table that conditions on equal columns lead to, of which everything is known here.
fn of_table(
    scope: &Scope,
    table: &Arc<Table>,
    wanted: &Where,
    select: &Select<'_>,
    (list, sql): (&[ResultColumn<'_>], &str),
) -> Option<Query> {
    let access = wanted.access(scope)?;
    let is_whole = select.order_by.is_none() && select.limit.is_none();
    if let Some(column) = count_column(list, sql).filter(|_| is_whole) {
        let (output, extent) = (Output::Count, Extent::default());
        return Some(Query {
            source: access.into(),
            filter: None,
            output,
            extent,
            columns: Some(vec![column]),
        });
    }
    if access.way == Way::All {
        return None;
    }
    let (places, columns) = plain_columns(scope, table, list)?;
    let extent = if is_whole { Extent::default() } else { extent(scope, &access, select)? };
    let output = Output::Columns(places);
    Some(Query { source: access.into(), filter: None, output, extent, columns: Some(columns) })
}

/// A query of one table or two, compiled by SQLite too: it says what the columns are.
fn of_tables(
    scope: &Scope,
    (of_join, wanted): (&Where, &Where),
    list: &[ResultColumn<'_>],
    terms: &[Expr<'_>],
) -> Option<Query> {
    let output = match grouping(scope, list, terms) {
        Some(grouping) => Output::Groups(grouping),
        None if terms.is_empty() => Output::Columns(all_places(scope, list)?),
        None => return None,
    };
    let all = match &output {
        Output::Groups(grouping) => whole(scope, wanted, grouping),
        _ => None,
    };
    let (source, tests) = match all {
        Some(source) => (source, wanted.as_tests(scope)?),
        None => (led(scope, of_join, wanted)?, [&wanted.tests[..], &of_join.tests].concat()),
    };
    let filter = tests.into_iter().reduce(Test::and);
    // Rows are given as they come, and what may be SQLite's to say is known too late.
    let late = matches!(output, Output::Columns(_)) && filter.is_some();
    (!late).then_some(Query { source, filter, output, extent: Extent::default(), columns: None })
}

/// The column of a list that is `count(*)` and nothing else. `sql` is the statement, whose words name the column.
fn count_column(list: &[ResultColumn<'_>], sql: &str) -> Option<OwnedColumn> {
    let [ResultColumn::Expr(expression, alias)] = list else { return None };
    let Expr::FunctionCallStar { name, filter_over: None } = expression else { return None };
    if !unquoted(name.0).eq_ignore_ascii_case("count") {
        return None;
    }
    let (name, label) = match alias {
        Some(As::As(alias) | As::Elided(alias)) => (unquoted(alias.0), unquoted(alias.0)),
        None => {
            let written = format!("{}(*)", name.0);
            // Written with blanks in between it is called so.
            (sql.contains(&written).then_some(written)?, "count".to_owned())
        }
    };
    Some(OwnedColumn { name, label, ty: SqlType::Int8, table: None, scale: None })
}

/// The columns of a list that names nothing else, and what clients are told of them.
fn plain_columns(
    scope: &Scope,
    table: &Arc<Table>,
    list: &[ResultColumn<'_>],
) -> Option<(Vec<Place>, Vec<OwnedColumn>)> {
    let (mut places, mut columns) = (Vec::new(), Vec::new());
    let mut push = |column: usize, name: String| {
        places.push(Place { side: Side::First, column });
        columns.push(OwnedColumn {
            ty: type_of(table, column),
            scale: table.def().columns[column].shown_scale(),
            table: u16::try_from(column + 1).ok().map(|number| (oid_of_table(table), number)),
            ..OwnedColumn::text(name)
        });
    };
    for item in list {
        match item {
            ResultColumn::Star if !is_built_in(table) => {
                table.def().visible_columns().for_each(|(at, column)| push(at, column.name.clone()));
            }
            ResultColumn::Expr(expression @ (Expr::Id(_) | Expr::Name(_) | Expr::Qualified(..)), alias) => {
                let column = place(scope, expression)?.column;
                push(
                    column,
                    match alias {
                        Some(As::As(name) | As::Elided(name)) => unquoted(name.0),
                        None => table.def().columns[column].name.clone(),
                    },
                );
            }
            _ => return None,
        }
    }
    Some((places, columns))
}

/// `ORDER BY` and `LIMIT`, where the index gives the order behind its equal columns.
fn extent(scope: &Scope, access: &Access, select: &Select<'_>) -> Option<Extent> {
    let Way::Index(index) = access.way else { return None };
    let mut extent = Extent::default();
    if let Some(order) = &select.order_by {
        let OneSelect::Select { columns, .. } = &select.body.select else { return None };
        // A name may be one that the list gives.
        if columns.iter().any(|item| matches!(item, ResultColumn::Expr(_, Some(_)))) {
            return None;
        }
        extent.reverse = direction(scope, &access.table, (index, access.equals.len()), order)?;
    }
    if let Some(limit) = &select.limit {
        extent.limit = Some(operand(&limit.expr)?);
        if let Some(offset) = &limit.offset {
            extent.offset = Some(operand(offset)?);
        }
    }
    Some(extent)
}

/// Whether the rows behind so many equal columns of an index come in this order, and if so whether backwards.
fn direction(
    scope: &Scope,
    table: &Table,
    (index, equal): (usize, usize),
    order: &[SortedColumn<'_>],
) -> Option<bool> {
    let index = &table.indexes()[index];
    let columns = &index.def().columns;
    let (mut at, mut backwards) = (equal, None);
    for SortedColumn { expr, order, nulls } in order {
        let column = place(scope, expr).filter(|_| nulls.is_none())?.column;
        if columns[..equal].contains(&column) {
            continue;
        }
        let own = index.collation(at) == table.def().columns[column].collation;
        let turned = matches!(order, Some(SortOrder::Desc)) != index.def().is_descending(at);
        if columns.get(at) != Some(&column) || !own || *backwards.get_or_insert(turned) != turned {
            return None;
        }
        at += 1;
    }
    Some(backwards.unwrap_or(false))
}

/// The columns of a list that names nothing else, of all tables.
fn all_places(scope: &Scope, list: &[ResultColumn<'_>]) -> Option<Vec<Place>> {
    let mut places = Vec::new();
    for item in list {
        let of = match item {
            ResultColumn::Expr(expression, _) => {
                places.push(place(scope, expression)?);
                continue;
            }
            ResultColumn::Star => None,
            ResultColumn::TableStar(name) => Some(unquoted(name.0)),
        };
        let meant = |name: &str| of.as_ref().is_none_or(|of| of.eq_ignore_ascii_case(name));
        for (side, _, table) in scope.sides().filter(|(_, name, _)| meant(name)) {
            places.extend(table.def().visible_columns().map(|(column, _)| Place { side, column }));
        }
    }
    Some(places)
}

/// Aggregates, and terms of `GROUP BY`; `None`: something else is in the list or in the terms.
fn grouping(scope: &Scope, list: &[ResultColumn<'_>], terms: &[Expr<'_>]) -> Option<Grouping> {
    let keys: Vec<Key> = terms.iter().map(|term| group_key(scope, list, term)).collect::<Option<_>>()?;
    let (mut aggregates, mut columns) = (Vec::new(), Vec::new());
    for item in list {
        let ResultColumn::Expr(expression, _) = item else { return None };
        columns.push(if let Some(aggregate) = aggregate(scope, expression) {
            aggregates.push(aggregate);
            Shown::Aggregate(aggregates.len() - 1)
        } else {
            let key = key(scope, expression)?;
            Shown::Key(keys.iter().position(|known| *known == key)?)
        });
    }
    Grouping::new(keys, aggregates, columns)
}

/// A term of `GROUP BY`: a place in the list, a column, a name that the list gives, or an expression.
fn group_key(scope: &Scope, list: &[ResultColumn<'_>], term: &Expr<'_>) -> Option<Key> {
    match super::names::bare(term) {
        Expr::Literal(Literal::Numeric(digits)) => {
            let place = digits.parse::<usize>().ok()?.checked_sub(1)?;
            let ResultColumn::Expr(expression, _) = list.get(place)? else { return None };
            key(scope, expression)
        }
        Expr::Literal(_) | Expr::Unary(..) | Expr::Variable(_) => None,
        Expr::Id(id) if !scope.knows(&unquoted(id.0)) => {
            if is_of_every_table(&unquoted(id.0)) {
                return None;
            }
            let mut named = list.iter().filter_map(|item| match item {
                ResultColumn::Expr(expression, Some(As::As(name) | As::Elided(name))) => {
                    unquoted(name.0).eq_ignore_ascii_case(&unquoted(id.0)).then_some(expression)
                }
                _ => None,
            });
            let expression = named.next()?;
            key(scope, expression).filter(|_| named.next().is_none())
        }
        expression => key(scope, expression),
    }
}

/// Whether a column that no definition names may be meant: those of the row itself, and its number.
fn is_of_every_table(name: &str) -> bool {
    name.starts_with('_') || ["rowid", "oid"].iter().any(|own| own.eq_ignore_ascii_case(name))
}

fn key(scope: &Scope, expression: &Expr<'_>) -> Option<Key> {
    let text = place(scope, expression).and_then(|place| Key::text(scope, place));
    text.or_else(|| number(scope, expression).map(Key::Number))
}
