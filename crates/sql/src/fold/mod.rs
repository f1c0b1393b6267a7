//! Aggregates over a whole table without SQLite: `SELECT count(*), sum(n) FROM t WHERE n > 5 GROUP BY n % 10`.
//!
//! They are of whole numbers, where arithmetic has one meaning; what turns out to be anything else while it runs (a sum
//! that overflows, a parameter that is a text) is left to SQLite, which begins anew: nothing was told until then. The
//! statement is compiled by SQLite all the same, so that its columns are called and typed as ever. Where an index could
//! lead to the rows, SQLite has the statement from the beginning.

use std::sync::Arc;

use sqlite3_parser::ast::{
    As, Expr, Literal, OneSelect, QualifiedName, ResultColumn, Select, SelectTable, Stmt,
};
use store::definition::IndexDef;
use store::value::{Value, ValueRef};
use store::{RowBuf, Table, View};

use crate::describe::{OwnedColumn, lent};
use crate::direct::column_of;
use crate::error::SqlError;
use crate::executor::{Core, RowSink};
use crate::text::parameter::numbered;
use crate::text::parse::with_tree;
use crate::text::token::unquoted;

mod aggregate;
mod groups;
mod number;

use aggregate::Aggregate;
use groups::{Group, Groups, Key};
use number::{Beyond, Given, Number, Test};

/// Longer texts are hardly so simple, and need not be parsed to find out.
const TEXT_BYTES_MAX: usize = 1_024;

/// Rows between two looks at the deadline.
const WATCH_ROWS: usize = 1_024;

/// A statement that folds a whole table.
#[derive(Debug)]
pub(crate) struct Fold {
    table: Arc<Table>,
    condition: Option<Test>,
    keys: Vec<Key>,
    grouped: bool,
    aggregates: Vec<Aggregate>,
    columns: Vec<Shown>,
    row: RowBuf,
}

/// A column of the result.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// The term of `GROUP BY` at this position.
    Key(usize),
    /// The aggregate at this position.
    Aggregate(usize),
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
    let from = from.as_ref().filter(|from| from.joins.is_none())?;
    let Some(SelectTable::Table(name, None, None)) = from.select else { return None };
    let table = table_of(core, name)?;
    let condition = match where_clause {
        Some(condition) => Some(Test::of(&table, condition)?),
        None => None,
    };
    let terms = group_by.unwrap_or_default();
    let keys: Option<Vec<Key>> = terms.iter().map(|term| group_key(&table, columns, term)).collect();
    let mut fold = Fold {
        table,
        condition,
        keys: keys?,
        grouped: !terms.is_empty(),
        aggregates: Vec::new(),
        columns: Vec::new(),
        row: RowBuf::new(),
    };
    fold.show(columns)?;
    (!fold.is_for_an_index()).then_some(fold)
}

/// The built-in table shows more than it stores.
fn table_of(core: &Core, name: &QualifiedName<'_>) -> Option<Arc<Table>> {
    core.table(name).ok().filter(|table| name.alias.is_none() && table.name() != store::BUILT_IN)
}

/// A term of `GROUP BY`: a place in the list, a column, a name that the list gives, or an expression.
fn group_key(table: &Table, list: &[ResultColumn<'_>], term: &Expr<'_>) -> Option<Key> {
    match term {
        Expr::Literal(Literal::Numeric(digits)) => {
            let place = digits.parse::<usize>().ok()?.checked_sub(1)?;
            let ResultColumn::Expr(expression, _) = list.get(place)? else { return None };
            key(table, expression)
        }
        Expr::Literal(_) | Expr::Unary(..) | Expr::Variable(_) => None,
        Expr::Parenthesized(one) if one.len() == 1 => group_key(table, list, one.first()?),
        Expr::Id(id) if table.def().column_index(&unquoted(id.0)).is_none() => {
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
            key(table, expression).filter(|_| named.next().is_none())
        }
        expression => key(table, expression),
    }
}

/// Whether a column that no definition names may be meant: those that tell of the row itself, and its number.
fn is_of_every_table(name: &str) -> bool {
    name.starts_with('_') || ["rowid", "oid"].iter().any(|own| own.eq_ignore_ascii_case(name))
}

fn key(table: &Table, expression: &Expr<'_>) -> Option<Key> {
    let text = column_of(table, expression).and_then(|column| Key::text(table, column));
    text.or_else(|| Number::of(table, expression).map(Key::Number))
}

impl Fold {
    /// Takes the list of results: aggregates, and terms of `GROUP BY`.
    fn show(&mut self, list: &[ResultColumn<'_>]) -> Option<()> {
        for item in list {
            let ResultColumn::Expr(expression, _) = item else { return None };
            let shown = if let Some(aggregate) = Aggregate::of(&self.table, expression) {
                self.aggregates.push(aggregate);
                Shown::Aggregate(self.aggregates.len() - 1)
            } else {
                let key = key(&self.table, expression)?;
                Shown::Key(self.keys.iter().position(|known| *known == key)?)
            };
            self.columns.push(shown);
        }
        (self.grouped || !self.aggregates.is_empty()).then_some(())
    }

    /// Whether SQLite may find an index of use: for the condition, or for a single extreme.
    fn is_for_an_index(&self) -> bool {
        let def = self.table.def();
        let indexes = || self.table.indexes().iter().map(|index| index.def());
        let first = |index: &IndexDef| index.columns.first().copied();
        let leads =
            |column| def.primary_key.contains(&column) || indexes().any(|index| first(index) == Some(column));
        let extreme = match self.aggregates.as_slice() {
            [only] if !self.grouped => only.extreme(),
            _ => None,
        };
        // Of an expression, or of some rows: what it is of use for takes more to tell.
        let is_made = |index: &IndexDef| {
            index.predicate.is_some() || first(index).is_some_and(|column| def.columns[column].hidden)
        };
        extreme.is_some_and(leads)
            || self
                .condition
                .as_ref()
                .is_some_and(|condition| indexes().any(is_made) || condition.reads(&leads))
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
        let Some(groups) = self.groups(core, view, parameters)? else { return Ok(None) };
        out.columns(&lent(columns));
        for group in &groups {
            let values: Vec<ValueRef<'_>> =
                self.columns.iter().map(|shown| self.shown(group, *shown)).collect();
            out.row(&values)?;
        }
        Ok(Some(groups.len() as u64))
    }

    fn shown<'g>(&self, group: &'g Group, shown: Shown) -> ValueRef<'g> {
        match shown {
            Shown::Key(at) => group.key.get(at).map_or(ValueRef::Null, Value::as_ref),
            Shown::Aggregate(at) => match (self.aggregates.get(at), group.running.get(at)) {
                (Some(aggregate), Some(running)) => aggregate.result(*running),
                _ => ValueRef::Null,
            },
        }
    }

    /// All groups; `None`: SQLite has to say.
    fn groups(
        &mut self,
        core: &Core,
        view: &View<'_>,
        parameters: &[Value],
    ) -> Result<Option<Vec<Group>>, SqlError> {
        let count = self.aggregates.len();
        let mut groups = if self.grouped { Groups::default() } else { Groups::one(count) };
        let mut row = std::mem::take(&mut self.row);
        let mut rows = view.scan(&self.table);
        let mut met = 0;
        while rows.next(view, &mut row)? {
            met += 1;
            if met % WATCH_ROWS == 0 {
                core.sight.check_watch()?;
            }
            let given = Given { table: &self.table, row: &row, parameters };
            if self.take(&mut groups, given, core.heap_bytes_max()).is_err() {
                return Ok(None);
            }
        }
        self.row = row;
        Ok(Some(groups.in_order()))
    }

    /// Takes a row in.
    #[inline]
    fn take(&self, groups: &mut Groups, given: Given<'_>, heap_bytes_max: usize) -> Result<(), Beyond> {
        if let Some(condition) = &self.condition
            && condition.holds(given)? != Some(true)
        {
            return Ok(());
        }
        let group = groups.of_row(&self.keys, given, self.aggregates.len(), heap_bytes_max)?;
        for (aggregate, running) in self.aggregates.iter().zip(&mut group.running) {
            aggregate.step(running, given)?;
        }
        Ok(())
    }
}
