//! `DELETE` of one row by its key, of the rows that keys and indexes lead to, or of all rows.

use std::sync::Arc;

use store::value::Value;
use store::{Expect, Outcome, Removals, RowBuf, Table, WriteError};

use super::Ran;
use super::access::{Access, Range, Stop, Walk, Way};
use crate::core::Core;
use crate::done::{Done, Invalidation};
use crate::error::{SqlError, state};
use crate::limits::{RETRIES_MAX, ROWS_PER_STATEMENT_MAX};

/// What the statement is called.
pub(super) const TAG: &str = "DELETE";
/// How often all rows are counted to be deleted in one step, before they are deleted one by one: to count takes a
/// fortieth of that.
const COUNTS_MAX: usize = 3;

/// Rows counted between two looks at the deadline.
const WATCH_ROWS: u64 = 1_024;

/// A deletion.
#[derive(Debug)]
pub(super) struct Deletion {
    pub(super) table: Arc<Table>,
    /// Any of these leads to a row that is deleted.
    branches: Box<[Access]>,
    row: RowBuf,
    key: Vec<u8>,
    /// The rows that are to go.
    list: Removals,
}

impl Deletion {
    pub(super) fn new(table: &Arc<Table>, branches: Vec<Access>) -> Self {
        Self {
            table: Arc::clone(table),
            branches: branches.into(),
            row: RowBuf::new(),
            key: Vec::new(),
            list: Removals::default(),
        }
    }

    /// Whether SQLite has to say which rows are meant.
    pub(super) fn is_plain(&self, parameters: &[Value]) -> bool {
        self.branches.iter().all(|branch| branch.is_plain(parameters))
    }

    pub(super) fn run<'c>(&mut self, core: &'c Core, parameters: &[Value]) -> Result<Ran<'c>, SqlError> {
        if !self.is_plain(parameters) {
            return Ok(Ran::Left(None));
        }
        let Self { table, branches, row, key, list } = self;
        // A transaction has to know which rows leave its view.
        if let [only] = &**branches
            && !core.in_transaction()
        {
            match only.way {
                Way::Key => return delete_one(core, only, parameters, key).map(Ran::Done),
                Way::All => {
                    if let Some(rows) = delete_whole(core, table, row)? {
                        let done = Done::wrote(TAG, rows);
                        return Ok(Ran::Done(done.invalidating(table.id(), Invalidation::Deleted)));
                    }
                }
                Way::Keys | Way::Index(_) | Way::Elements(..) => {}
            }
        }
        let removed = collect(core, table, branches, parameters, list).and_then(|()| {
            let is_meant = |row: &RowBuf| branches.iter().any(|branch| branch.is_true_of(parameters, row));
            remove_listed(core, table, list, row, is_meant)
        });
        // At once: it holds the table's indexes, which may be dropped before the statement runs again.
        list.clear();
        let done = removed?;
        let of_one = matches!(&**branches, [Access { way: Way::Key, .. }]);
        let done = if of_one { done } else { done.invalidating(table.id(), Invalidation::Deleted) };
        Ok(Ran::Done(done))
    }
}

/// The row under the key that the conditions ask for.
fn delete_one(
    core: &Core,
    access: &Access,
    parameters: &[Value],
    key: &mut Vec<u8>,
) -> Result<Done, SqlError> {
    if !access.encode_key(parameters, key) {
        return Ok(Done::wrote(TAG, 0));
    }
    let outcome = core.store.delete(&access.table, key, Expect::Present, core.store.now())?;
    Ok(Done::wrote(TAG, u64::from(matches!(outcome, Outcome::Done(_)))))
}

/// Collects the rows that any of the branches leads to, each once.
fn collect(
    core: &Core,
    table: &Table,
    branches: &mut [Access],
    parameters: &[Value],
    list: &mut Removals,
) -> Result<(), SqlError> {
    // The view ends before the commit, which would otherwise keep old versions for it.
    let view = core.view();
    let mut walk = Walk::new(core, &view, parameters);
    for branch in &mut *branches {
        let result = branch.each(&mut walk, Range::default(), &mut |_, (_, row), _| {
            if list.len() >= ROWS_PER_STATEMENT_MAX {
                let message =
                    format!("the statement deletes more than {ROWS_PER_STATEMENT_MAX} rows; split it");
                return Err(SqlError::new(state::TOO_LARGE, message).into());
            }
            core.store.list_removal(list, table, row);
            Ok(())
        });
        match result {
            Ok(()) => {}
            Err(Stop::Failed(error)) => return Err(*error),
            // Whether values are plain was asked before.
            Err(Stop::Beyond | Stop::Enough) => {
                return Err(SqlError::new(state::INTERNAL, "a deletion stopped in its middle"));
            }
        }
    }
    if branches.len() > 1 {
        list.drop_twins();
    }
    Ok(())
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
            let mut count = 0;
            while rows.next(&view, row)? {
                count += 1;
                if count % WATCH_ROWS == 0 {
                    core.sight.check_watch()?;
                }
            }
            view.counted(standing, count)
        };
        if let Some(counted) = counted {
            deleted = core.store.remove_whole(table, Some(counted))?;
        }
    }
    Ok(deleted)
}

/// Removes the rows of a list, without those that changed meanwhile and are no longer meant.
fn remove_listed(
    core: &Core,
    table: &Arc<Table>,
    list: &mut Removals,
    row: &mut RowBuf,
    is_meant: impl Fn(&RowBuf) -> bool,
) -> Result<Done, SqlError> {
    for _ in 0..RETRIES_MAX {
        match core.remove(table, list) {
            Ok(()) => return Ok(Done::wrote(TAG, list.len() as u64)),
            Err(WriteError::Lost(lost)) => {
                core.sight.check_watch()?;
                let view = core.view();
                *list = list.judged_anew(&lost, row, |key, row| {
                    Ok::<_, SqlError>(view.get(table, key, row)? && is_meant(row))
                })?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(SqlError::new(state::LOST, "the rows kept changing while they were deleted; try again"))
}
