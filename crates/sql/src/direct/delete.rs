//! `DELETE` of one row by its key, or of the rows that an index leads to.

use std::sync::Arc;

use store::value::{Value, ValueRef};
use store::{Expect, Outcome, Removals, RowBuf, Table, View, WriteError};

use super::values::with_values;
use super::{Conditions, DirectPlan, WATCH_ROWS, Way};
use crate::error::{SqlError, state};
use crate::executor::{Core, Done, DoneKind};
use crate::limits::{RETRIES_MAX, ROWS_PER_STATEMENT_MAX};

impl DirectPlan {
    pub(super) fn delete(&mut self, core: &Core, parameters: &[Value]) -> Result<Done, SqlError> {
        let Self { table, conditions, way, row, key, .. } = self;
        with_values(table, conditions, parameters, |values| {
            let Some(values) = values else { return Ok(deleted(0)) };
            if let Way::Index(index) = *way {
                return delete_range(core, (table, index), (conditions, values), row);
            }
            key.clear();
            if table.keys().encode(values, key).is_err() {
                return Ok(deleted(0));
            }
            delete_one(core, table, key, row)
        })
    }
}

fn delete_one(core: &Core, table: &Arc<Table>, key: &[u8], row: &mut RowBuf) -> Result<Done, SqlError> {
    if core.in_transaction() {
        // The row leaves the transaction's sight.
        if !core.view().get(table, key, row)? {
            return Ok(deleted(0));
        }
        let mut list = Removals::default();
        list.push(row);
        core.remove(table, &list)?;
        return Ok(deleted(1));
    }
    let outcome = core.store.delete(table, key, Expect::Present, core.store.now())?;
    Ok(deleted(usize::from(matches!(outcome, Outcome::Done(_)))))
}

fn delete_range(
    core: &Core,
    (table, index): (&Arc<Table>, usize),
    (conditions, values): (&Conditions, &[ValueRef<'_>]),
    row: &mut RowBuf,
) -> Result<Done, SqlError> {
    let mut list = {
        // The view ends before the commit, which would otherwise keep old versions for it.
        let view = core.view();
        find(core, &view, (table, index), values, row)?
    };
    for _ in 0..RETRIES_MAX {
        match core.remove(table, &list) {
            Ok(()) => return Ok(deleted(list.len())),
            Err(WriteError::Lost(lost)) => {
                core.sight.check_watch()?;
                let view = core.view();
                list = list.judged_anew(&lost, |key| {
                    let there = view.get(table, key, row)? && matches(table, conditions, values, row);
                    Ok::<_, SqlError>(there.then(|| row.cas()))
                })?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(SqlError::new(state::LOST, "the rows kept changing while they were deleted; try again"))
}

fn find(
    core: &Core,
    view: &View<'_>,
    (table, index): (&Arc<Table>, usize),
    values: &[ValueRef<'_>],
    row: &mut RowBuf,
) -> Result<Removals, SqlError> {
    let mut list = Removals::default();
    let mut rows = view.equal(table, &table.indexes()[index], values, false);
    while rows.next(view, row)? {
        if list.len() >= ROWS_PER_STATEMENT_MAX {
            let message = format!("the statement deletes more than {ROWS_PER_STATEMENT_MAX} rows; split it");
            return Err(SqlError::new(state::TOO_LARGE, message));
        }
        if list.len() % WATCH_ROWS == WATCH_ROWS - 1 {
            core.sight.check_watch()?;
        }
        list.push(row);
    }
    Ok(list)
}

/// Whether the conditions are still true of a row.
fn matches(table: &Table, conditions: &Conditions, values: &[ValueRef<'_>], row: &RowBuf) -> bool {
    values.iter().zip(conditions).all(|(value, (column, _))| {
        let collation = table.def().columns[*column].collation;
        collation.compare(table.column(row, *column), *value).is_eq()
    })
}

fn deleted(rows: usize) -> Done {
    Done { kind: DoneKind::Write, affected: rows as u64, tag: "DELETE" }
}
