//! The commonest statements without SQLite: one row by its whole key, and rows deleted by what an index leads to.
//!
//! They mean exactly what the general way would make of them; anything the patterns here do not fit goes there.

use std::sync::Arc;

use sqlite3_parser::ast::{
    As, Expr, OneSelect, Operator, QualifiedName, ResultColumn, Select, SelectTable, Stmt,
};
use store::definition::ColumnKind;
use store::value::{Value, ValueRef};
use store::{Change, Expect, KeyBounds, Outcome, RowBuf, Table, View, Write, WriteError};

use crate::describe::{OwnedColumn, lent};
use crate::error::{SqlError, state};
use crate::executor::{Core, Done, DoneKind, RowSink, type_of};
use crate::limits::{RETRIES_MAX, ROWS_PER_STATEMENT_MAX};
use crate::table::{Sought, sought};
use crate::text::parameter::{Numbered, numbered};
use crate::text::parse::with_tree;
use crate::text::token::unquoted;
use crate::write::{Operand, operand};

mod count;

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
}

/// Columns and what they equal.
type Conditions = Vec<(usize, Operand)>;

/// How the rows are found.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// All rows.
    All,
    /// By the whole primary key.
    Key,
    /// By leading columns of the index at this position.
    Index(usize),
}

#[derive(Debug)]
enum Verb {
    /// Columns in the order asked for, and what clients are told of them.
    Select {
        columns: Vec<usize>,
        shown: Vec<OwnedColumn>,
    },
    /// How many rows there are, under this name.
    Count(OwnedColumn),
    Delete,
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
            let (table, conditions) = table_and_conditions(core, tbl_name, where_clause.as_ref()?)?;
            DirectPlan::new(table, text.count, &conditions, Verb::Delete)
        }
        _ => None,
    }
}

fn of_select(core: &Core, select: &Select<'_>, text: &Numbered<'_>) -> Option<DirectPlan> {
    if select.with.is_some() || select.order_by.is_some() || select.limit.is_some() {
        return None;
    }
    let OneSelect::Select { distinctness: None, columns, from: Some(from), where_clause, .. } =
        &select.body.select
    else {
        return None;
    };
    let OneSelect::Select { group_by: None, having: None, window_clause: None, .. } = &select.body.select
    else {
        return None;
    };
    let (Some(SelectTable::Table(name, None, None)), None, None) =
        (from.select, &from.joins, &select.body.compounds)
    else {
        return None;
    };
    if let Some(column) = count::column(columns, &text.sql) {
        return of_count(core, name, where_clause.as_deref(), column, text.count);
    }
    let (table, conditions) = table_and_conditions(core, name, where_clause.as_ref()?)?;
    let (columns, names) = result_columns(&table, columns)?;
    let shown = columns
        .iter()
        .zip(names)
        .map(|(&column, name)| OwnedColumn { ty: type_of(&table, column), ..OwnedColumn::text(name) });
    let shown = shown.collect();
    let plan = DirectPlan::new(table, text.count, &conditions, Verb::Select { columns, shown })?;
    // Through an index there may be many rows, whose order and number SQLite looks after.
    matches!(plan.way, Way::Key).then_some(plan)
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
        return DirectPlan::new(table, parameters, &conditions, verb);
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
            if found.iter().any(|(known, _)| *known == column) {
                return None;
            }
            found.push((column, value));
            Some(())
        }
        Expr::Parenthesized(inner) if inner.len() == 1 => gather(table, inner.first()?, found),
        _ => None,
    }
}

/// A stored column; names that mean something else go the general way.
fn column_of(table: &Table, expression: &Expr<'_>) -> Option<usize> {
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

fn result_columns(table: &Table, list: &[ResultColumn<'_>]) -> Option<(Vec<usize>, Vec<String>)> {
    let (mut columns, mut names) = (Vec::new(), Vec::new());
    for item in list {
        match item {
            // The built-in table shows more than it stores.
            ResultColumn::Star if table.name() != store::BUILT_IN => {
                for (at, column) in table.def().visible_columns() {
                    columns.push(at);
                    names.push(column.name.clone());
                }
            }
            ResultColumn::Expr(expression, alias) => {
                let column = column_of(table, expression)?;
                columns.push(column);
                names.push(match alias {
                    Some(As::As(name) | As::Elided(name)) => unquoted(name.0),
                    None => table.def().columns[column].name.clone(),
                });
            }
            _ => return None,
        }
    }
    Some((columns, names))
}

/// The conditions on just these columns, in their order; `None` unless they are all there is.
fn ordered(conditions: &[(usize, Operand)], columns: &[usize]) -> Option<Conditions> {
    if columns.len() != conditions.len() {
        return None;
    }
    let find = |column: &usize| conditions.iter().find(|(known, _)| known == column).cloned();
    columns.iter().map(find).collect()
}

impl DirectPlan {
    fn new(
        table: Arc<Table>,
        parameters: usize,
        conditions: &[(usize, Operand)],
        verb: Verb,
    ) -> Option<Self> {
        let count = conditions.len();
        let by_key =
            ordered(conditions, &table.def().primary_key).filter(|conditions| !conditions.is_empty());
        let by_index = || {
            let mut indexes = table.indexes().iter().enumerate();
            indexes.find_map(|(at, index)| {
                // The conditions compare by the columns' own collations, and no predicate is known to hold.
                let fits =
                    index.is_usable()
                        && index.def().predicate.is_none()
                        && index.def().columns.iter().enumerate().take(count).all(|(at, &column)| {
                            index.collation(at) == table.def().columns[column].collation
                        });
                if !fits {
                    return None;
                }
                Some((ordered(conditions, index.def().columns.get(..count)?)?, Way::Index(at)))
            })
        };
        let (conditions, way) = by_key.map(|conditions| (conditions, Way::Key)).or_else(by_index)?;
        Some(Self::by(table, parameters, conditions, way, verb))
    }

    fn by(table: Arc<Table>, parameters: usize, conditions: Conditions, way: Way, verb: Verb) -> Self {
        Self { table, parameters, conditions, way, verb, row: RowBuf::new(), key: Vec::new() }
    }

    /// The columns of its rows; `None` when it returns none.
    pub(crate) fn columns(&self) -> Option<&[OwnedColumn]> {
        match &self.verb {
            Verb::Select { shown, .. } => Some(shown),
            Verb::Count(column) => Some(std::slice::from_ref(column)),
            Verb::Delete => None,
        }
    }

    pub(crate) fn writes(&self) -> bool {
        matches!(self.verb, Verb::Delete)
    }

    pub(crate) fn tag(&self) -> &'static str {
        match &self.verb {
            Verb::Select { .. } | Verb::Count(_) => "SELECT",
            Verb::Delete => "DELETE",
        }
    }

    pub(crate) fn run(
        &mut self,
        core: &Core,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let values = self.values(parameters);
        match (&self.verb, values) {
            (Verb::Select { .. }, values) => self.select(core, values.as_deref(), out),
            (Verb::Count(column), values) => {
                let column = column.clone();
                self.count(core, &column, values, out)
            }
            (Verb::Delete, None) => Ok(deleted(0)),
            (Verb::Delete, Some(values)) => match self.way {
                Way::Index(index) => self.delete_range(core, index, &values),
                Way::Key | Way::All => self.delete_one(core, &values),
            },
        }
    }

    /// What the columns hold where the conditions are true; `None` where no row can match.
    fn values(&self, parameters: &[Value]) -> Option<Vec<Value>> {
        let value = |(column, operand): &(usize, Operand)| {
            let kind = self.table.def().columns[*column].kind;
            match sought(kind, operand.value(parameters).clone(), true) {
                // Text is stored as text; bytes that are text were never equal to it.
                Sought::Value(Value::Blob(bytes)) if kind == ColumnKind::Text => {
                    std::str::from_utf8(&bytes).is_err().then_some(Value::Blob(bytes))
                }
                Sought::Value(value) => Some(value),
                Sought::Nothing | Sought::Unclear => None,
            }
        };
        self.conditions.iter().map(value).collect()
    }

    /// The key of these values; false when they are none.
    fn encode_key(&mut self, values: &[Value]) -> bool {
        self.key.clear();
        if let [value] = values {
            return self.table.keys().encode(&[value.as_ref()], &mut self.key).is_ok();
        }
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        self.table.keys().encode(&values, &mut self.key).is_ok()
    }

    fn select(
        &mut self,
        core: &Core,
        values: Option<&[Value]>,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let has_key = values.is_some_and(|values| self.encode_key(values));
        let found = has_key && core.view().get(&self.table, &self.key, &mut self.row)?;
        let Verb::Select { columns, shown } = &self.verb else {
            return Err(SqlError::new(state::INTERNAL, "a query was expected"));
        };
        out.columns(&lent(shown));
        if found {
            let row: Vec<ValueRef<'_>> =
                columns.iter().map(|&column| self.table.column(&self.row, column)).collect();
            out.row(&row)?;
        }
        Ok(Done { kind: DoneKind::Rows, affected: u64::from(found), tag: "SELECT" })
    }

    fn delete_one(&mut self, core: &Core, values: &[Value]) -> Result<Done, SqlError> {
        if !self.encode_key(values) {
            return Ok(deleted(0));
        }
        if core.in_transaction() {
            return self.delete_one_later(core);
        }
        let outcome = core.store.delete(&self.table, &self.key, Expect::Present, core.store.now());
        match outcome {
            Ok(outcome) => Ok(deleted(usize::from(matches!(outcome, Outcome::Done(_))))),
            Err(error) => Err(error.into()),
        }
    }

    /// Within a transaction: the row leaves its sight.
    fn delete_one_later(&mut self, core: &Core) -> Result<Done, SqlError> {
        if !core.view().get(&self.table, &self.key, &mut self.row)? {
            return Ok(deleted(0));
        }
        core.apply(&mut vec![self.deletion()])?;
        Ok(deleted(1))
    }

    /// The removal of the row in the buffer.
    fn deletion(&self) -> Write {
        Write {
            table: Arc::clone(&self.table),
            key: self.row.key().to_vec(),
            change: Change::Delete,
            expect: Expect::Version(self.row.cas()),
        }
    }

    fn delete_range(&mut self, core: &Core, index: usize, values: &[Value]) -> Result<Done, SqlError> {
        let mut writes = {
            // The view ends before the commit, which would otherwise keep old versions for it.
            let view = core.view();
            self.find(core, &view, index, values.to_vec())?
        };
        for _ in 0..RETRIES_MAX {
            let count = writes.len();
            match core.apply(&mut writes) {
                Ok(()) => return Ok(deleted(count)),
                Err(WriteError::Lost(lost)) => {
                    core.sight.check_watch()?;
                    let view = core.view();
                    self.look_again(&view, values, &mut writes, &lost)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(SqlError::new(state::LOST, "the rows kept changing while they were deleted; try again"))
    }

    fn find(
        &mut self,
        core: &Core,
        view: &View<'_>,
        index: usize,
        values: Vec<Value>,
    ) -> Result<Vec<Write>, SqlError> {
        let mut writes = Vec::new();
        let mut rows =
            view.range(&self.table, &self.table.indexes()[index], &KeyBounds::equal(values), false);
        while rows.next(view, &mut self.row)? {
            if writes.len() >= ROWS_PER_STATEMENT_MAX {
                let message =
                    format!("the statement deletes more than {ROWS_PER_STATEMENT_MAX} rows; split it");
                return Err(SqlError::new(state::TOO_LARGE, message));
            }
            if writes.len() % WATCH_ROWS == WATCH_ROWS - 1 {
                core.sight.check_watch()?;
            }
            writes.push(self.deletion());
        }
        Ok(writes)
    }

    /// Judges the lost rows anew: those that are gone or no longer match leave the list.
    fn look_again(
        &mut self,
        view: &View<'_>,
        values: &[Value],
        writes: &mut Vec<Write>,
        lost: &[usize],
    ) -> Result<(), SqlError> {
        let mut gone = Vec::new();
        for &at in lost {
            let Some(write) = writes.get_mut(at) else { continue };
            let there = view.get(&self.table, &write.key, &mut self.row)?;
            write.expect = Expect::Version(self.row.cas());
            let matches = |(value, (column, _)): (&Value, &(usize, Operand))| {
                let collation = self.table.def().columns[*column].collation;
                collation.compare(self.table.column(&self.row, *column), value.as_ref()).is_eq()
            };
            if !there || !values.iter().zip(&self.conditions).all(matches) {
                gone.push(at);
            }
        }
        gone.sort_unstable();
        for at in gone.into_iter().rev() {
            writes.swap_remove(at);
        }
        Ok(())
    }
}

fn deleted(rows: usize) -> Done {
    Done { kind: DoneKind::Write, affected: rows as u64, tag: "DELETE" }
}
