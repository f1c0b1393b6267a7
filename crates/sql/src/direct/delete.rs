//! `DELETE` of one row by its key, of the rows that indexes lead to, or of all rows.

use std::sync::Arc;

use store::value::{Value, ValueRef};
use store::{Expect, Outcome, ReadError, Removals, RowBuf, Table, View, WriteError};

use super::count::how_often;
use super::values::with_values;
use super::{Branch, Conditions, DirectPlan, Verb, WATCH_ROWS, Way};
use crate::error::{SqlError, state};
use crate::executor::{ComputedBy, Core, Done, DoneKind};
use crate::limits::{RETRIES_MAX, ROWS_PER_STATEMENT_MAX};

/// How often all rows are counted to be deleted in one step, before they are deleted one by one: to count takes a fortieth
/// of that.
const COUNTS_MAX: usize = 3;

impl DirectPlan {
    pub(super) fn delete(&mut self, core: &Core, parameters: &[Value]) -> Result<Done, SqlError> {
        let Self { table, conditions, way, row, key, .. } = self;
        with_values(table, conditions, parameters, |values| {
            let Some(values) = values else { return Ok(deleted(0)) };
            let found = match *way {
                Way::All => {
                    // In one step where nobody has to know which rows, and their number is known.
                    if !core.in_transaction()
                        && let Some(rows) = delete_whole(core, table, row)?
                    {
                        return Ok(deleted(rows));
                    }
                    Some(Found::All)
                }
                Way::Index(index) => Some(Found::By(index)),
                Way::Key | Way::Keys => None,
            };
            if let Some(found) = found {
                return delete_found(core, (table, found), (conditions, values), row);
            }
            key.clear();
            if table.keys().encode(values, key).is_err() {
                return Ok(deleted(0));
            }
            delete_one(core, table, key, row)
        })
    }

    /// Deletes the rows that any of the branches leads to, all in one commit.
    pub(super) fn delete_any(&mut self, core: &Core, parameters: &[Value]) -> Result<Done, SqlError> {
        let Self { table, verb, row, key, .. } = self;
        let Verb::DeleteAny(branches) = verb else { return Ok(deleted(0)) };
        let mut list = Removals::default();
        {
            let view = core.view();
            for branch in &*branches {
                branch.list(core, &view, (table, parameters), (key, row), &mut list)?;
            }
        }
        list.drop_twins();
        remove_listed(core, table, list, row, |row| {
            branches.iter().any(|branch| branch.is_true_of(table, parameters, row))
        })
    }
}

impl Branch {
    /// Lists the rows that it leads to.
    fn list(
        &self,
        core: &Core,
        view: &View<'_>,
        (table, parameters): (&Arc<Table>, &[Value]),
        (key, row): (&mut Vec<u8>, &mut RowBuf),
        list: &mut Removals,
    ) -> Result<(), SqlError> {
        with_values(table, &self.conditions, parameters, |values| {
            let Some(values) = values else { return Ok(()) };
            if let Way::Index(index) = self.way {
                let mut rows = view.equal(table, &table.indexes()[index], values, false);
                return list_rows(core, list, row, |row| rows.next(view, row));
            }
            key.clear();
            if table.keys().encode(values, key).is_ok() && view.get(table, key, row)? {
                list.push(row);
            }
            Ok(())
        })
    }

    fn is_true_of(&self, table: &Table, parameters: &[Value], row: &RowBuf) -> bool {
        with_values(table, &self.conditions, parameters, |values| {
            values.is_some_and(|values| matches(table, &self.conditions, values, row))
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
    Ok(deleted(u64::from(matches!(outcome, Outcome::Done(_)))))
}

/// Deletes all rows in one step; `None`: writers left no moment for it.
fn delete_whole(core: &Core, table: &Arc<Table>, row: &mut RowBuf) -> Result<Option<u64>, SqlError> {
    let mut deleted = core.store.remove_whole(table, None)?;
    for _ in 0..COUNTS_MAX {
        if deleted.is_some() {
            break;
        }
        let counted = {
            let view = core.view();
            let standing = view.standing(table);
            let mut rows = view.scan(table);
            let rows = how_often(core, || Ok(rows.next(&view, row)?))?;
            view.counted(standing, rows)
        };
        if let Some(counted) = counted {
            deleted = core.store.remove_whole(table, Some(counted))?;
        }
    }
    Ok(deleted)
}

/// What leads to the rows that are deleted.
#[derive(Clone, Copy)]
enum Found {
    /// A look at every row.
    All,
    /// The index at this position.
    By(usize),
}

fn delete_found(
    core: &Core,
    (table, found): (&Arc<Table>, Found),
    (conditions, values): (&Conditions, &[ValueRef<'_>]),
    row: &mut RowBuf,
) -> Result<Done, SqlError> {
    let mut list = Removals::default();
    {
        // The view ends before the commit, which would otherwise keep old versions for it.
        let view = core.view();
        match found {
            Found::All => {
                let mut rows = view.scan(table);
                list_rows(core, &mut list, row, |row| rows.next(&view, row))?;
            }
            Found::By(index) => {
                let mut rows = view.equal(table, &table.indexes()[index], values, false);
                list_rows(core, &mut list, row, |row| rows.next(&view, row))?;
            }
        }
    }
    remove_listed(core, table, list, row, |row| matches(table, conditions, values, row))
}

/// Removes the rows of a list, without those that changed meanwhile and are no longer meant.
fn remove_listed(
    core: &Core,
    table: &Arc<Table>,
    mut list: Removals,
    row: &mut RowBuf,
    is_meant: impl Fn(&RowBuf) -> bool,
) -> Result<Done, SqlError> {
    for _ in 0..RETRIES_MAX {
        match core.remove(table, &list) {
            Ok(()) => return Ok(deleted(list.len() as u64)),
            Err(WriteError::Lost(lost)) => {
                core.sight.check_watch()?;
                let view = core.view();
                list = list.judged_anew(&lost, |key| {
                    let there = view.get(table, key, row)? && is_meant(row);
                    Ok::<_, SqlError>(there.then(|| row.cas()))
                })?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(SqlError::new(state::LOST, "the rows kept changing while they were deleted; try again"))
}

/// Adds the rows that `next` finds to a list.
fn list_rows(
    core: &Core,
    list: &mut Removals,
    row: &mut RowBuf,
    mut next: impl FnMut(&mut RowBuf) -> Result<bool, ReadError>,
) -> Result<(), SqlError> {
    while next(row)? {
        if list.len() >= ROWS_PER_STATEMENT_MAX {
            let message = format!("the statement deletes more than {ROWS_PER_STATEMENT_MAX} rows; split it");
            return Err(SqlError::new(state::TOO_LARGE, message));
        }
        if list.len() % WATCH_ROWS == WATCH_ROWS - 1 {
            core.sight.check_watch()?;
        }
        list.push(row);
    }
    Ok(())
}

/// Whether the conditions are still true of a row.
fn matches(table: &Table, conditions: &Conditions, values: &[ValueRef<'_>], row: &RowBuf) -> bool {
    values.iter().zip(conditions).all(|(value, (column, _))| {
        let collation = table.def().columns[*column].collation;
        collation.compare(table.column(row, *column), *value).is_eq()
    })
}

fn deleted(rows: u64) -> Done {
    Done { kind: DoneKind::Write, affected: rows, tag: "DELETE", by: ComputedBy::Native }
}
