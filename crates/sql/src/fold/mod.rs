//! Queries that SQLite compiles but need not run: `SELECT count(*), sum(n) FROM t WHERE n > 5 GROUP BY n % 10`,
//! `SELECT t.body, u.name FROM t JOIN u ON u.id = t.user_id WHERE t.page = 17`.
//!
//! The rows are those of a whole table, or those that equal columns of an index or a key lead to, of one table or from
//! there to a second one. What is told of them are their columns, or aggregates of whole numbers, where arithmetic has
//! one meaning; what turns out to be anything else while it runs (a sum that overflows, a parameter that is a text) is
//! left to SQLite, which begins anew: nothing was told until then. The statement is compiled by SQLite all the same, so
//! that its columns are called and typed as ever. Where another index may lead to fewer rows, SQLite has the statement
//! from the beginning.

use std::sync::Arc;

use sqlite3_parser::ast::{Expr, OneSelect, ResultColumn, Select, Stmt};
use store::definition::IndexDef;
use store::value::{Value, ValueRef};
use store::{RowBuf, Table, View};

use crate::describe::{OwnedColumn, lent};
use crate::error::SqlError;
use crate::executor::{Core, RowSink};
use crate::query::recycled;
use crate::text::parameter::numbered;
use crate::text::parse::with_tree;
use crate::text::token::unquoted;

mod aggregate;
mod grouping;
mod groups;
mod lead;
mod number;
mod scope;
mod walk;

use grouping::Grouping;
use lead::{Lead, lead};
use number::Test;
use scope::{Given, Place, Scope};
use walk::{Stop, Walk};

/// Longer texts are hardly so simple, and need not be parsed to find out.
const TEXT_BYTES_MAX: usize = 1_024;

/// Rows between two looks at the deadline.
const WATCH_ROWS: usize = 1_024;

/// A statement that needs SQLite for its columns' names only.
#[derive(Debug)]
pub(crate) struct Fold {
    source: Source,
    /// What is to hold of a row beside what led to it.
    condition: Option<Test>,
    told: Told,
    row: RowBuf,
}

/// Where the rows come from.
#[derive(Debug)]
enum Source {
    Whole(Arc<Table>),
    Led(Box<Lead>),
}

/// What is told of them.
#[derive(Debug)]
enum Told {
    Columns(Vec<Place>),
    Groups(Grouping),
}

/// The plan of a query that is so simple.
pub(crate) fn plan(core: &Core, sql: &str) -> Option<Fold> {
    if sql.len() > TEXT_BYTES_MAX {
        return None;
    }
    let numbered = numbered(sql).ok()?;
    with_tree(&numbered.sql, |tree| {
        Ok(match tree {
            Stmt::Select(select) => of_select(core, select),
            _ => None,
        })
    })
    .ok()?
}

fn of_select(core: &Core, select: &Select<'_>) -> Option<Fold> {
    let Select { with: None, body, order_by: None, limit: None } = select else { return None };
    let (OneSelect::Select { columns, from, where_clause, group_by, .. }, None) =
        (&body.select, &body.compounds)
    else {
        return None;
    };
    let OneSelect::Select { distinctness: None, having: None, window_clause: None, .. } = &body.select else {
        return None;
    };
    let (scope, on) = Scope::of(core, from.as_ref()?)?;
    let terms = group_by.unwrap_or_default();
    let told = match Grouping::of(&scope, columns, terms) {
        Some(grouping) => Told::Groups(grouping),
        None if terms.is_empty() => Told::Columns(places(&scope, columns)?),
        None => return None,
    };
    let whole = whole(&scope, where_clause.as_deref(), &told);
    let (source, condition) = if let Some((table, condition)) = whole {
        (Source::Whole(table), condition)
    } else {
        let (lead, condition) = lead(&scope, on, where_clause.as_deref())?;
        (Source::Led(Box::new(lead)), condition)
    };
    // Rows are told as they come, and what may be SQLite's to say is known too late.
    let late = matches!(told, Told::Columns(_)) && condition.is_some();
    (!late).then(|| Fold { source, condition, told, row: RowBuf::new() })
}

/// The columns of a list that names nothing else.
fn places(scope: &Scope, list: &[ResultColumn<'_>]) -> Option<Vec<Place>> {
    let mut places = Vec::new();
    for item in list {
        let of = match item {
            ResultColumn::Expr(expression, _) => {
                places.push(scope.place(expression)?);
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

/// The table whose rows are all read for aggregates of them, unless SQLite may find an index of use: for the condition,
/// or for a single extreme.
fn whole(scope: &Scope, condition: Option<&Expr<'_>>, told: &Told) -> Option<(Arc<Table>, Option<Test>)> {
    let (table, Told::Groups(grouping)) = (scope.alone()?, told) else { return None };
    let condition = match condition {
        Some(condition) => Some(Test::of(scope, condition)?),
        None => None,
    };
    let def = table.def();
    let indexes = || table.indexes().iter().map(|index| index.def());
    let first = |index: &IndexDef| index.columns.first().copied();
    let leads = |place: Place| {
        def.primary_key.contains(&place.column) || indexes().any(|index| first(index) == Some(place.column))
    };
    // Of an expression, or of some rows: what it is of use for takes more to tell.
    let is_made = |index: &IndexDef| {
        index.predicate.is_some() || first(index).is_some_and(|column| def.columns[column].hidden)
    };
    let served = grouping.extreme().is_some_and(leads)
        || condition.as_ref().is_some_and(|condition| indexes().any(is_made) || condition.reads(&leads));
    (!served).then(|| (Arc::clone(table), condition))
}

impl Source {
    /// Gives `take` each row.
    fn each(
        &mut self,
        mut walk: Walk<'_>,
        row: &mut RowBuf,
        mut take: impl FnMut(Given<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        match self {
            Self::Whole(table) => walk.whole(table, row, &mut take),
            Self::Led(lead) => walk.led(lead, row, &mut take),
        }
    }
}

impl Fold {
    /// How many columns its rows have.
    pub(crate) fn width(&self) -> usize {
        match &self.told {
            Told::Columns(places) => places.len(),
            Told::Groups(grouping) => grouping.width(),
        }
    }

    /// Whether SQLite has a shorter way to the rows.
    pub(crate) fn is_long_way(&self, view: &View<'_>, parameters: &[Value]) -> bool {
        matches!(&self.source, Source::Led(lead) if lead.is_long_way(view, parameters))
    }

    /// Answers the statement, row by row to `out`; `None`: it is SQLite's to answer, and nothing was told.
    pub(crate) fn run(
        &mut self,
        core: &Core,
        view: &View<'_>,
        parameters: &[Value],
        columns: &[OwnedColumn],
        out: &mut dyn RowSink,
    ) -> Result<Option<u64>, SqlError> {
        if self.is_long_way(view, parameters) {
            return Ok(None);
        }
        let walk = Walk::new(core, view, parameters);
        let Self { source, condition, told, row } = self;
        let result = match told {
            Told::Columns(places) => tell(source, walk, row, places, columns, out),
            Told::Groups(grouping) => {
                let mut groups = grouping.begin();
                let heap_bytes_max = core.heap_bytes_max();
                let result = source.each(walk, row, |given| {
                    if let Some(condition) = condition
                        && condition.holds(given)? != Some(true)
                    {
                        return Ok(());
                    }
                    Ok(grouping.take(&mut groups, given, heap_bytes_max)?)
                });
                result.and_then(|()| {
                    out.columns(&lent(columns));
                    let groups = groups.in_order();
                    groups.iter().try_for_each(|group| out.row(&grouping.row(group)))?;
                    Ok(groups.len() as u64)
                })
            }
        };
        match result {
            Ok(rows) => Ok(Some(rows)),
            Err(Stop::Beyond) => Ok(None),
            Err(Stop::Failed(error)) => Err(*error),
        }
    }
}

/// Tells columns of each row.
fn tell(
    source: &mut Source,
    walk: Walk<'_>,
    row: &mut RowBuf,
    places: &[Place],
    columns: &[OwnedColumn],
    out: &mut dyn RowSink,
) -> Result<u64, Stop> {
    let mut rows = 0;
    let mut values: Vec<ValueRef<'static>> = Vec::new();
    source.each(walk, row, |given| {
        // Not before: a statement that told nothing can begin anew.
        if rows == 0 {
            out.columns(&lent(columns));
        }
        rows += 1;
        let mut shown: Vec<ValueRef<'_>> = recycled(std::mem::take(&mut values));
        shown.extend(places.iter().map(|place| given.column(*place)));
        let result = out.row(&shown);
        values = recycled(shown);
        Ok(result?)
    })?;
    if rows == 0 {
        out.columns(&lent(columns));
    }
    Ok(rows)
}
