//! `SELECT`.

use std::sync::Arc;

use dialect::lowered::{Listed, Node, Order, Select};
use pgcatalog::shape::type_of;
use pgcatalog::system::oid_of_table;
use store::Table;
use store::definition::SqlType;
use store::value::Value;

use super::super::access::{Access, Way};
use super::super::expr::Test;
use super::super::grouping::{Grouping, Shown};
use super::super::groups::Key;
use super::super::query::{Extent, Output, Query};
use super::super::scope::{Place, Scope};
use super::super::source::{led, whole};
use super::super::{Job, NativePlan};
use super::condition::Where;
use super::names::{any_place, is_built_in, place, scope_of};
use super::terms::{aggregate, number};
use crate::core::Core;
use crate::describe::ColumnDescription;
use crate::limits::GROUP_TERMS_MAX;
use crate::table::Nulls;
use crate::write::operand;

/// The plan of a query that needs no SQLite, or SQLite only to say what its columns are. `sql` is its text, whose words
/// name some columns.
pub(crate) fn of_query(core: &Core, select: &Select, (sql, parameters): (&str, usize)) -> Option<NativePlan> {
    let query = of(core, select, sql)?;
    Some(NativePlan::new(parameters, Job::Query(Box::new(query))))
}

/// A query of plain columns, aggregates or groups.
fn of(core: &Core, select: &Select, sql: &str) -> Option<Query> {
    let (scope, on) = scope_of(core, &select.tables)?;
    let wanted = Where::of(&scope, select.condition.as_ref())?;
    if let Some(table) = scope.alone().filter(|_| select.group.is_empty())
        && let Some(query) = of_table(&scope, table, &wanted, (select, sql))
    {
        return Some(query);
    }
    if !is_whole(select) || scope.sides().any(|(.., table)| is_built_in(table)) {
        return None;
    }
    let of_join = Where::of(&scope, on)?;
    of_tables(&scope, (&of_join, &wanted), &select.list, &select.group)
}

/// Whether it gives all rows, in any order.
fn is_whole(select: &Select) -> bool {
    select.order.is_empty() && select.limit.is_none()
}

/// A query of one table that conditions on equal columns lead to, of which everything is known here.
fn of_table(
    scope: &Scope,
    table: &Arc<Table>,
    wanted: &Where,
    (select, sql): (&Select, &str),
) -> Option<Query> {
    let access = wanted.access(scope)?;
    let is_whole = is_whole(select);
    let (output, columns) = match count_column(&select.list, sql).filter(|_| is_whole) {
        Some(column) => (Output::Count, vec![column]),
        None if access.way == Way::All => return None,
        None => {
            let (places, columns) = plain_columns(scope, table, &select.list)?;
            (Output::Columns(places), columns)
        }
    };
    let extent = if is_whole { Extent::default() } else { extent(scope, &access, select)? };
    Some(Query { source: access.into(), filter: None, output, extent, columns: Some(columns) })
}

/// A query of one table or two, compiled by SQLite too: it says what the columns are.
fn of_tables(
    scope: &Scope,
    (of_join, wanted): (&Where, &Where),
    list: &[Listed],
    terms: &[Node],
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
fn count_column(list: &[Listed], sql: &str) -> Option<ColumnDescription> {
    let [Listed::Value(Node::Call { name, arguments }, alias)] = list else { return None };
    if !name.eq_ignore_ascii_case("count") || !arguments.is_empty() {
        return None;
    }
    let (name, label) = if let Some(alias) = alias {
        (alias.clone(), alias.clone())
    } else {
        let written = format!("{name}(*)");
        // Written with blanks in between it is called so.
        (sql.contains(&written).then_some(written)?, "count".to_owned())
    };
    Some(ColumnDescription { name, label, ty: SqlType::Int8, table: None, modifier: -1 })
}

/// The columns of a list that names nothing else, and how clients see them.
fn plain_columns(
    scope: &Scope,
    table: &Arc<Table>,
    list: &[Listed],
) -> Option<(Vec<Place>, Vec<ColumnDescription>)> {
    let (mut places, mut columns) = (Vec::new(), Vec::new());
    for item in list {
        let alias = match item {
            Listed::All(None) if !is_built_in(table) => None,
            Listed::Value(Node::Column { .. }, alias) => alias.as_ref(),
            _ => return None,
        };
        for place in places_of(scope, item)? {
            let (column, def) = (place.column, &table.def().columns[place.column]);
            places.push(place);
            columns.push(ColumnDescription {
                ty: type_of(table, column),
                modifier: pgcatalog::system::modifier(&def.declared),
                table: u16::try_from(column + 1).ok().map(|number| (oid_of_table(table), number)),
                ..ColumnDescription::text(alias.unwrap_or(&def.name).clone())
            });
        }
    }
    Some((places, columns))
}

/// `ORDER BY` and `LIMIT`, where the index gives the order behind its equal columns, or where a whole key leads to the
/// only row.
fn extent(scope: &Scope, access: &Access, select: &Select) -> Option<Extent> {
    let mut extent = Extent::default();
    if !select.order.is_empty() {
        // A name may be one that the list gives.
        if select.list.iter().any(|item| matches!(item, Listed::Value(_, Some(_)))) {
            return None;
        }
        let order = &select.order;
        extent.reverse = match access.way {
            Way::Key => order.iter().all(|Order { by, .. }| place(scope, by).is_some()).then_some(false)?,
            Way::Index(index) => {
                let (reverse, nulls) = direction(scope, &access.table, (index, access.equals.len()), order)?;
                extent.nulls = nulls;
                reverse
            }
            Way::All | Way::Keys | Way::Elements(..) => return None,
        };
    }
    if let Some(limit) = &select.limit {
        if matches!(access.way, Way::All | Way::Keys | Way::Elements(..)) {
            return None;
        }
        extent.limit = Some(operand(limit)?);
        if let Some(offset) = &select.offset {
            extent.offset = Some(operand(offset)?);
        }
    }
    Some(extent)
}

/// Whether the rows behind so many equal columns of an index come in this order, and if so whether backwards, and where
/// those without a value in the first column come.
fn direction(
    scope: &Scope,
    table: &Table,
    (index, equal): (usize, usize),
    order: &[Order],
) -> Option<(bool, Nulls)> {
    let index = &table.indexes()[index];
    let columns = &index.def().columns;
    let (mut at, mut backwards, mut nulls) = (equal, None, Nulls::AsIndexed);
    for Order { by, descending, nulls_first } in order {
        let column = place(scope, by)?.column;
        if columns[..equal].contains(&column) {
            continue;
        }
        let own = index.collation(at) == table.def().columns[column].collation;
        let turned = *descending != index.def().is_descending(at);
        if columns.get(at) != Some(&column) || !own || *backwards.get_or_insert(turned) != turned {
            return None;
        }
        // An index has NULL before all values.
        if table.def().may_be_null(column) && *nulls_first == *descending {
            if at > equal {
                return None;
            }
            nulls = if *nulls_first { Nulls::First } else { Nulls::Last };
        }
        at += 1;
    }
    Some((backwards.unwrap_or(false), nulls))
}

/// The columns of a list that names nothing else, of all tables.
fn all_places(scope: &Scope, list: &[Listed]) -> Option<Vec<Place>> {
    Some(list.iter().map(|item| places_of(scope, item)).collect::<Option<Vec<_>>>()?.concat())
}

/// The columns that one item of a list stands for.
fn places_of(scope: &Scope, item: &Listed) -> Option<Vec<Place>> {
    let of = match item {
        Listed::Value(expression, _) => return Some(vec![any_place(scope, expression)?]),
        Listed::All(of) => of.as_ref(),
    };
    let meant = scope.sides().filter(|(_, name, _)| of.is_none_or(|of| of.eq_ignore_ascii_case(name)));
    let columns = meant.flat_map(|(side, _, table)| {
        table.def().visible_columns().map(move |(column, _)| Place { side, column })
    });
    Some(columns.collect())
}

/// Aggregates, and terms of `GROUP BY`; `None`: something else is in the list or in the terms.
fn grouping(scope: &Scope, list: &[Listed], terms: &[Node]) -> Option<Grouping> {
    if terms.len() > GROUP_TERMS_MAX {
        return None;
    }
    let keys: Vec<Key> = terms.iter().map(|term| group_key(scope, list, term)).collect::<Option<_>>()?;
    let (mut aggregates, mut columns) = (Vec::new(), Vec::new());
    for item in list {
        let Listed::Value(expression, _) = item else { return None };
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
fn group_key(scope: &Scope, list: &[Listed], term: &Node) -> Option<Key> {
    match term.bare() {
        Node::Value(Value::Integer(place)) => {
            let place = usize::try_from(*place).ok()?.checked_sub(1)?;
            let Listed::Value(expression, _) = list.get(place)? else { return None };
            key(scope, expression)
        }
        Node::Value(_) | Node::Signed(_) | Node::Negative(_) | Node::Not(_) | Node::Parameter(_) => None,
        Node::Column { table: None, name } if !scope.knows(name) => {
            if is_of_every_table(name) {
                return None;
            }
            let mut named = list.iter().filter_map(|item| match item {
                Listed::Value(expression, Some(alias)) => {
                    alias.eq_ignore_ascii_case(name).then_some(expression)
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

fn key(scope: &Scope, expression: &Node) -> Option<Key> {
    let text = place(scope, expression).and_then(|place| Key::text(scope, place));
    text.or_else(|| number(scope, expression).map(Key::Number))
}
