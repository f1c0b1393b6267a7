//! The commonest statements without SQLite: one row by its whole key, and rows deleted by what keys and indexes lead to.
//!
//! They mean exactly what the general way would make of them; anything the patterns here do not fit goes there.

use std::sync::Arc;

use sqlite3_parser::ast::{Expr, Literal, OneSelect, Operator, QualifiedName, Select, SelectTable, Stmt};
use store::value::Value;
use store::{RowBuf, Table};

use crate::describe::OwnedColumn;
use crate::error::SqlError;
use crate::executor::{ComputedBy, Core, Done, RowSink};
use crate::journal::Reach;
use crate::table::KeyList;
use crate::text::parameter::{Numbered, numbered};
use crate::text::parse::with_tree;
use crate::text::token::unquoted;
use crate::write::{Operand, operand};

mod count;
mod delete;
mod select;
mod values;

use select::Selection;
pub(crate) use values::{CONDITIONS_MAX, with_stored, with_values};

/// Conditions joined by `OR` at most: more are hardly written by hand, and each is judged for itself.
const BRANCHES_MAX: usize = 8;

/// Longer texts are hardly a point query, and need not be parsed to find out.
const TEXT_BYTES_MAX: usize = 512;

/// Rows found between two looks at the deadline.
const WATCH_ROWS: usize = 1_024;

/// A statement that needs no SQLite.
#[derive(Debug)]
pub(crate) struct DirectPlan {
    table: Arc<Table>,
    pub(crate) parameters: usize,
    /// Columns and what they equal, the columns of the way in their order.
    conditions: Conditions,
    way: Way,
    verb: Verb,
    /// Reused from run to run.
    row: RowBuf,
    key: Vec<u8>,
    keys: KeyList,
}

/// Columns and what they equal.
pub(crate) type Conditions = Vec<(usize, Operand)>;

/// How the rows are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// All rows.
    All,
    /// By the whole primary key.
    Key,
    /// By a primary key of one column, which each of the conditions may say.
    Keys,
    /// By leading columns of the index at this position.
    Index(usize),
}

#[derive(Debug)]
enum Verb {
    /// Columns of the rows found.
    Select(Box<Selection>),
    /// How many rows there are, under this name.
    Count(OwnedColumn),
    Delete,
    /// Rows deleted that any of these leads to.
    DeleteAny(Box<[Branch]>),
}

/// One of the conditions that `OR` joins, and how its rows are found.
#[derive(Debug)]
struct Branch {
    conditions: Conditions,
    way: Way,
}

/// The plan of a statement that fits a pattern.
pub(crate) fn plan(core: &Core, sql: &str) -> Option<DirectPlan> {
    if sql.len() > TEXT_BYTES_MAX {
        return None;
    }
    let numbered = numbered(sql).ok()?;
    with_tree(&numbered.sql, |tree| Ok(of_tree(core, tree, &numbered))).ok()?
}

fn of_tree(core: &Core, tree: &Stmt<'_>, text: &Numbered<'_>) -> Option<DirectPlan> {
    match tree {
        Stmt::Select(select) => of_select(core, select, text),
        Stmt::Delete {
            with: None,
            tbl_name,
            indexed: None,
            where_clause,
            returning: None,
            order_by: None,
            limit: None,
        } => {
            let all = core.table(tbl_name).ok().filter(|_| tbl_name.alias.is_none())?;
            let Some(condition) = where_clause.as_ref().filter(|condition| !is_true(&all, condition)) else {
                return Some(DirectPlan::by(all, text.count, Vec::new(), Way::All, Verb::Delete));
            };
            if let Some(branches) = branches(&all, condition) {
                let verb = Verb::DeleteAny(branches);
                return Some(DirectPlan::by(all, text.count, Vec::new(), Way::All, verb));
            }
            let (table, conditions) = table_and_conditions(core, tbl_name, condition)?;
            let (conditions, way) = way(&table, &conditions)?;
            Some(DirectPlan::by(table, text.count, conditions, way, Verb::Delete))
        }
        _ => None,
    }
}

/// Whether a condition is true of every row, as programs write that: `1`, `TRUE`, `1 = 1`.
fn is_true(table: &Table, condition: &Expr<'_>) -> bool {
    match condition {
        Expr::Literal(Literal::Numeric(digits)) => digits.parse::<u64>().is_ok_and(|number| number != 0),
        Expr::Id(id) => id.0.eq_ignore_ascii_case("TRUE") && table.def().column_index(id.0).is_none(),
        Expr::Binary(left, Operator::Equals, right) => match (&**left, &**right) {
            (Expr::Literal(Literal::Numeric(left)), Expr::Literal(Literal::Numeric(right))) => left == right,
            _ => false,
        },
        Expr::Parenthesized(inner) if inner.len() == 1 => {
            inner.first().is_some_and(|inner| is_true(table, inner))
        }
        _ => false,
    }
}

fn of_select(core: &Core, select: &Select<'_>, text: &Numbered<'_>) -> Option<DirectPlan> {
    let OneSelect::Select { distinctness: None, columns, from: Some(from), where_clause, .. } =
        &select.body.select
    else {
        return None;
    };
    let OneSelect::Select { group_by: None, having: None, window_clause: None, .. } = &select.body.select
    else {
        return None;
    };
    let (Some(SelectTable::Table(name, None, None)), None, None, None) =
        (from.select, &from.joins, &select.body.compounds, &select.with)
    else {
        return None;
    };
    let whole = select.order_by.is_none() && select.limit.is_none();
    if let Some(column) = count::column(columns, &text.sql) {
        return of_count(core, name, where_clause.as_deref(), column, text.count).filter(|_| whole);
    }
    let condition = where_clause.as_ref()?;
    if let Some((table, keys)) = keys_of(core, name, condition).filter(|_| whole) {
        let verb = Verb::Select(Box::new(Selection::of(&table, columns, &text.sql)?));
        return Some(DirectPlan::by(table, text.count, keys, Way::Keys, verb));
    }
    let (table, conditions) = table_and_conditions(core, name, condition)?;
    let (conditions, way) = way(&table, &conditions)?;
    let mut selection = Selection::of(&table, columns, &text.sql)?;
    if !whole {
        let Way::Index(index) = way else { return None };
        selection.limit_to(&table, (index, conditions.len()), select)?;
    }
    Some(DirectPlan::by(table, text.count, conditions, way, Verb::Select(Box::new(selection))))
}

/// `key IN (value, ...)` and nothing else, under a key of one column.
fn keys_of(core: &Core, name: &QualifiedName<'_>, condition: &Expr<'_>) -> Option<(Arc<Table>, Conditions)> {
    let Expr::InList { lhs, not: false, rhs: Some(list) } = condition else { return None };
    let table = core.table(name).ok().filter(|_| name.alias.is_none())?;
    let column = column_of(&table, lhs).filter(|column| table.def().primary_key == [*column])?;
    let keys: Option<Conditions> = list.iter().map(|value| Some((column, operand(value)?))).collect();
    Some((table, keys?))
}

fn of_count(
    core: &Core,
    name: &QualifiedName<'_>,
    condition: Option<&Expr<'_>>,
    column: OwnedColumn,
    parameters: usize,
) -> Option<DirectPlan> {
    let verb = Verb::Count(column);
    if let Some(condition) = condition {
        let (table, conditions) = table_and_conditions(core, name, condition)?;
        let (conditions, way) = way(&table, &conditions)?;
        return Some(DirectPlan::by(table, parameters, conditions, way, verb));
    }
    let table = core.table(name).ok().filter(|_| name.alias.is_none())?;
    Some(DirectPlan::by(table, parameters, Vec::new(), Way::All, verb))
}

fn table_and_conditions(
    core: &Core,
    name: &QualifiedName<'_>,
    condition: &Expr<'_>,
) -> Option<(Arc<Table>, Conditions)> {
    if name.alias.is_some() {
        return None;
    }
    let table = core.table(name).ok()?;
    let mut conditions = Vec::new();
    gather(&table, condition, &mut conditions)?;
    Some((table, conditions))
}

/// `column = value AND ...`, each column once.
fn gather(table: &Table, condition: &Expr<'_>, found: &mut Conditions) -> Option<()> {
    match condition {
        Expr::Binary(left, Operator::And, right) => {
            gather(table, left, found)?;
            gather(table, right, found)
        }
        Expr::Binary(left, Operator::Equals, right) => {
            let (column, value) = match column_of(table, left) {
                Some(column) => (column, operand(right)?),
                None => (column_of(table, right)?, operand(left)?),
            };
            let again = found.iter().any(|(known, _)| *known == column);
            if again || found.len() == CONDITIONS_MAX {
                return None;
            }
            found.push((column, value));
            Some(())
        }
        Expr::Parenthesized(inner) if inner.len() == 1 => gather(table, inner.first()?, found),
        _ => None,
    }
}

/// Conditions joined by `OR`, where something leads to the rows of each.
fn branches(table: &Table, condition: &Expr<'_>) -> Option<Box<[Branch]>> {
    let mut found = Vec::new();
    gather_branches(table, condition, &mut found)?;
    (found.len() > 1).then(|| found.into())
}

fn gather_branches(table: &Table, condition: &Expr<'_>, found: &mut Vec<Branch>) -> Option<()> {
    match condition {
        Expr::Binary(left, Operator::Or, right) => {
            gather_branches(table, left, found)?;
            gather_branches(table, right, found)
        }
        Expr::Parenthesized(inner) if inner.len() == 1 => gather_branches(table, inner.first()?, found),
        _ if found.len() == BRANCHES_MAX => None,
        _ => {
            let mut conditions = Vec::new();
            gather(table, condition, &mut conditions)?;
            let (conditions, way) = way(table, &conditions)?;
            found.push(Branch { conditions, way });
            Some(())
        }
    }
}

/// A stored column; names that mean something else go the general way.
pub(crate) fn column_of(table: &Table, expression: &Expr<'_>) -> Option<usize> {
    let name = match expression {
        Expr::Id(id) => unquoted(id.0),
        Expr::Name(name) => unquoted(name.0),
        Expr::Qualified(of, name) if unquoted(of.0).eq_ignore_ascii_case(table.name()) => unquoted(name.0),
        _ => return None,
    };
    let column = table.def().column_index(&name)?;
    let def = &table.def().columns[column];
    // What is hidden has no name, and texts that compare otherwise than by their bytes are SQLite's to compare.
    (!def.hidden && !def.pending && def.collation.is_binary()).then_some(column)
}

/// The conditions on just these columns, in their order; `None` unless they are all there is.
fn ordered<V: Clone>(conditions: &[(usize, V)], columns: &[usize]) -> Option<Vec<(usize, V)>> {
    if columns.len() != conditions.len() {
        return None;
    }
    let find = |column: &usize| conditions.iter().find(|(known, _)| known == column).cloned();
    columns.iter().map(find).collect()
}

/// How rows of these conditions are found: by the key, or along the first index that begins with just these columns.
pub(crate) fn way<V: Clone>(table: &Table, conditions: &[(usize, V)]) -> Option<(Vec<(usize, V)>, Way)> {
    let by_key = ordered(conditions, &table.def().primary_key).filter(|conditions| !conditions.is_empty());
    if let Some(conditions) = by_key {
        return Some((conditions, Way::Key));
    }
    let count = conditions.len();
    table.indexes().iter().enumerate().find_map(|(at, index)| {
        // The conditions compare by the columns' own collations, and no predicate is known to hold.
        let columns = index.def().columns.get(..count)?;
        let own =
            |(at, &column): (usize, &usize)| index.collation(at) == table.def().columns[column].collation;
        let fits =
            index.is_usable() && index.def().predicate.is_none() && columns.iter().enumerate().all(own);
        Some((ordered(conditions, columns).filter(|_| fits)?, Way::Index(at)))
    })
}

impl DirectPlan {
    fn by(table: Arc<Table>, parameters: usize, conditions: Conditions, way: Way, verb: Verb) -> Self {
        let (row, key, keys) = (RowBuf::new(), Vec::new(), KeyList::default());
        Self { table, parameters, conditions, way, verb, row, key, keys }
    }

    /// The columns of its rows; `None` when it returns none.
    pub(crate) fn columns(&self) -> Option<&[OwnedColumn]> {
        match &self.verb {
            Verb::Select(selection) => Some(selection.shown()),
            Verb::Count(column) => Some(std::slice::from_ref(column)),
            Verb::Delete | Verb::DeleteAny(_) => None,
        }
    }

    pub(crate) fn writes(&self) -> bool {
        matches!(self.verb, Verb::Delete | Verb::DeleteAny(_))
    }

    /// What it shows of its table.
    pub(crate) fn reach(&self) -> Reach {
        if self.writes() { Reach::Blind(self.table.id()) } else { Reach::Reads(None) }
    }

    /// Who runs it with these parameters.
    pub(crate) fn computed_by(&self, parameters: &[Value]) -> ComputedBy {
        let plain = match &self.verb {
            Verb::Select(selection) if matches!(self.way, Way::Index(_)) => selection.is_plain(parameters),
            Verb::Select(_) if self.way == Way::Keys => self.has_plain_keys(parameters),
            _ => true,
        };
        if plain { ComputedBy::Native } else { ComputedBy::Sqlite }
    }

    pub(crate) fn tag(&self) -> &'static str {
        match &self.verb {
            Verb::Select(_) | Verb::Count(_) => "SELECT",
            Verb::Delete | Verb::DeleteAny(_) => "DELETE",
        }
    }

    pub(crate) fn run(
        &mut self,
        core: &Core,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        match &self.verb {
            Verb::Select(_) => self.select(core, parameters, out),
            Verb::Count(column) => {
                let column = column.clone();
                self.count(core, &column, parameters, out)
            }
            Verb::Delete => self.delete(core, parameters),
            Verb::DeleteAny(_) => self.delete_any(core, parameters),
        }
    }
}
