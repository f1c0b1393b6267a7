//! `SELECT` of columns: of one row by its key, of those of an `IN` list, of what an index leads to.

use std::sync::Arc;

use sqlite3_parser::ast::{As, ResultColumn, Select, SortOrder, SortedColumn};
use store::value::{Value, ValueRef};
use store::{RowBuf, Table};

use super::values::with_values;
use super::{DirectPlan, Verb, WATCH_ROWS, Way, column_of};
use crate::describe::{OwnedColumn, lent};
use crate::error::{SqlError, state};
use crate::executor::{ComputedBy, Core, Done, DoneKind, RowSink, type_of};
use crate::query::ReadPlan;
use crate::system::oid_of_table;
use crate::table::is_plain;
use crate::text::token::unquoted;
use crate::write::{Operand, operand};

/// Columns whose values are gathered on the stack; of more they lie on the heap.
const COLUMNS_AT_HAND: usize = 16;

/// What is told of the rows, and how many of them.
#[derive(Debug)]
pub(super) struct Selection {
    /// In the order asked for.
    columns: Vec<usize>,
    /// What clients are told of them.
    shown: Vec<OwnedColumn>,
    /// From the end of the index to its beginning.
    reverse: bool,
    limit: Option<Operand>,
    offset: Option<Operand>,
    /// Some have a name of their own.
    renamed: bool,
    general: General,
}

/// The same statement by SQLite, for values whose meaning is SQLite's to say; compiled when it is needed.
#[derive(Debug)]
enum General {
    Text(String),
    Ready(Box<ReadPlan>),
}

impl General {
    fn run(&mut self, core: &Core, parameters: &[Value], out: &mut dyn RowSink) -> Result<Done, SqlError> {
        if let Self::Text(sql) = self {
            *self = Self::Ready(Box::new(ReadPlan::new(core, sql, "SELECT")?));
        }
        match self {
            Self::Ready(plan) => plan.run(core, parameters, out),
            Self::Text(_) => Err(SqlError::new(state::INTERNAL, "a query was not compiled")),
        }
    }
}

impl Selection {
    /// Plain columns, of all rows found. `sql` is the whole statement.
    pub(super) fn of(table: &Table, list: &[ResultColumn<'_>], sql: &str) -> Option<Self> {
        let (columns, names) = result_columns(table, list)?;
        let show = |(&column, name): (&usize, String)| OwnedColumn {
            ty: type_of(table, column),
            scale: table.def().columns[column].shown_scale(),
            table: u16::try_from(column + 1).ok().map(|number| (oid_of_table(table), number)),
            ..OwnedColumn::text(name)
        };
        let shown = columns.iter().zip(names).map(show).collect();
        let renamed = list.iter().any(|item| matches!(item, ResultColumn::Expr(_, Some(_))));
        let (limit, offset, general) = (None, None, General::Text(sql.to_owned()));
        Some(Self { columns, shown, reverse: false, limit, offset, renamed, general })
    }

    /// Takes `ORDER BY` and `LIMIT` over, where the index gives the order behind so many equal columns.
    pub(super) fn limit_to(
        &mut self,
        table: &Table,
        (index, equal): (usize, usize),
        select: &Select<'_>,
    ) -> Option<()> {
        if let Some(order) = &select.order_by {
            // A name may be one that the list gives.
            if self.renamed {
                return None;
            }
            self.reverse = direction(table, index, equal, order)?;
        }
        if let Some(limit) = &select.limit {
            self.limit = Some(operand(&limit.expr)?);
            if let Some(offset) = &limit.offset {
                self.offset = Some(operand(offset)?);
            }
        }
        Some(())
    }

    pub(super) fn shown(&self) -> &[OwnedColumn] {
        &self.shown
    }

    /// How many rows are passed over, and how many told at most; `None` where SQLite has to say.
    fn extent(&self, parameters: &[Value]) -> Option<(u64, u64)> {
        let number = |operand: &Option<Operand>, negative: u64, none: u64| match operand {
            None => Some(none),
            Some(operand) => match operand.value(parameters) {
                Value::Integer(number) => Some(u64::try_from(*number).unwrap_or(negative)),
                _ => None,
            },
        };
        Some((number(&self.offset, 0, 0)?, number(&self.limit, u64::MAX, u64::MAX)?))
    }

    /// Whether its `LIMIT` is a number.
    pub(super) fn is_plain(&self, parameters: &[Value]) -> bool {
        self.extent(parameters).is_some()
    }

    fn tell(&self, table: &Table, row: &RowBuf, out: &mut dyn RowSink) -> Result<(), SqlError> {
        let mut few = [ValueRef::Null; COLUMNS_AT_HAND];
        let Some(few) = few.get_mut(..self.columns.len()) else {
            let all: Vec<_> = self.columns.iter().map(|&column| table.column(row, column)).collect();
            return out.row(&all);
        };
        for (value, &column) in few.iter_mut().zip(&self.columns) {
            *value = table.column(row, column);
        }
        out.row(few)
    }
}

/// The columns of a list and what they are called; `None` where something else is in it.
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

/// Whether the rows behind so many equal columns of an index come in this order, and if so whether backwards.
fn direction(table: &Table, index: usize, equal: usize, order: &[SortedColumn<'_>]) -> Option<bool> {
    let index = &table.indexes()[index];
    let columns = &index.def().columns;
    let (mut at, mut backwards) = (equal, None);
    for SortedColumn { expr, order, nulls } in order {
        let column = column_of(table, expr).filter(|_| nulls.is_none())?;
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

/// Tells a selection's columns before the first row, for a statement that told nothing can begin anew.
struct Teller<'t, 'o> {
    table: &'t Arc<Table>,
    selection: &'t Selection,
    out: &'o mut dyn RowSink,
    rows: u64,
}

impl<'t, 'o> Teller<'t, 'o> {
    fn new(table: &'t Arc<Table>, selection: &'t Selection, out: &'o mut dyn RowSink) -> Self {
        Self { table, selection, out, rows: 0 }
    }

    fn row(&mut self, row: &RowBuf) -> Result<(), SqlError> {
        if self.rows == 0 {
            self.out.columns(&lent(&self.selection.shown));
        }
        self.rows += 1;
        self.selection.tell(self.table, row, self.out)
    }

    fn done(self) -> Done {
        if self.rows == 0 {
            self.out.columns(&lent(&self.selection.shown));
        }
        Done { kind: DoneKind::Rows, affected: self.rows, tag: "SELECT", by: ComputedBy::Native }
    }
}

impl DirectPlan {
    pub(super) fn select(
        &mut self,
        core: &Core,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let Self { table, conditions, way, verb, row, key, .. } = self;
        let Verb::Select(selection) = verb else {
            return Err(SqlError::new(state::INTERNAL, "a query was expected"));
        };
        match *way {
            Way::Keys => self.select_keys(core, parameters, out),
            Way::Index(index) => match selection.extent(parameters) {
                None => selection.general.run(core, parameters, out),
                Some(extent) => {
                    let teller = Teller::new(table, selection, out);
                    with_values(table, conditions, parameters, |values| {
                        select_range(core, teller, (index, values), extent, row)
                    })
                }
            },
            Way::Key | Way::All => {
                let mut teller = Teller::new(table, selection, out);
                key.clear();
                let has_key = with_values(table, conditions, parameters, |values| {
                    values.is_some_and(|values| table.keys().encode(values, key).is_ok())
                });
                if has_key && core.view().get(table, key, row)? {
                    teller.row(row)?;
                }
                Ok(teller.done())
            }
        }
    }

    /// Whether each value of a list of keys is one that its column holds, or none.
    pub(super) fn has_plain_keys(&self, parameters: &[Value]) -> bool {
        let is_plain = |(column, operand): &(usize, Operand)| {
            let value = operand.value(parameters).as_ref();
            value == ValueRef::Null || is_plain(self.table.def().columns[*column].kind, value)
        };
        self.conditions.iter().all(is_plain)
    }

    /// The rows of a list of keys, each once.
    fn select_keys(
        &mut self,
        core: &Core,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let Self { table, conditions, verb, row, keys, .. } = self;
        let Verb::Select(selection) = verb else {
            return Err(SqlError::new(state::INTERNAL, "a query was expected"));
        };
        keys.clear();
        for (column, operand) in conditions.iter() {
            let value = operand.value(parameters).as_ref();
            if is_plain(table.def().columns[*column].kind, value) {
                keys.encode(table, &[value]);
            } else if value != ValueRef::Null {
                return selection.general.run(core, parameters, out);
            }
        }
        keys.sort();
        let mut teller = Teller::new(table, selection, out);
        let view = core.view();
        keys.prefetch(&core.store, table);
        while let Some(key) = keys.next() {
            if view.get(table, key, row)? {
                teller.row(row)?;
            }
        }
        Ok(teller.done())
    }
}

/// The rows whose leading columns of an index have these values, from the first to be told on.
fn select_range(
    core: &Core,
    mut teller: Teller<'_, '_>,
    (index, values): (usize, Option<&[ValueRef<'_>]>),
    (skip, most): (u64, u64),
    row: &mut RowBuf,
) -> Result<Done, SqlError> {
    let Some(values) = values else { return Ok(teller.done()) };
    let table = teller.table;
    let view = core.view();
    let wanted = usize::try_from(skip.saturating_add(most)).unwrap_or(usize::MAX);
    let index = &table.indexes()[index];
    let mut rows = view.equal(table, index, values, teller.selection.reverse).expecting(wanted);
    let mut passed = 0;
    while teller.rows < most && rows.next(&view, row)? {
        passed += 1;
        if passed % WATCH_ROWS as u64 == 0 {
            core.sight.check_watch()?;
        }
        if passed > skip {
            teller.row(row)?;
        }
    }
    Ok(teller.done())
}
