//! `UPDATE` of the rows that keys and indexes lead to: of what is in their heads, and of columns that no other row
//! depends on.

use std::collections::HashSet;
use std::sync::Arc;

use store::value::Value;
use store::{RowBuf, Table, Write, WriteError};

use super::Ran;
use super::access::{Access, Range, Stop, Walk};
use super::assign::{Converted, Heads, Sets, assign_heads, edit};
use super::scope::{Given, Standing};
use crate::core::Core;
use crate::done::{Done, Invalidation};
use crate::error::{SqlError, state};
use crate::limits::RETRIES_MAX;
use crate::table::Identity;
use crate::write::{Before, HeadColumn, NewHead, check_size};

/// What the statement is called.
pub(super) const TAG: &str = "UPDATE";

/// An update.
#[derive(Debug)]
pub(super) struct Update {
    table: Arc<Table>,
    /// Any of these leads to a row that is meant.
    branches: Box<[Access]>,
    sets: Sets,
    heads: Heads,
    /// The columns of `heads`.
    head_columns: Vec<HeadColumn>,
    row: RowBuf,
}

/// What one run writes, and what it writes it of.
struct Run<'r> {
    core: &'r Core,
    table: &'r Arc<Table>,
    sets: &'r Sets,
    converted: &'r Converted,
    heads: &'r Heads,
    head_columns: &'r [HeadColumn],
    parameters: &'r [Value],
}

impl Update {
    pub(super) fn new(table: &Arc<Table>, branches: Vec<Access>, sets: Sets, heads: Heads) -> Self {
        let head_columns = heads.iter().map(|(column, _)| *column).collect();
        let (table, branches) = (Arc::clone(table), branches.into());
        Self { table, branches, sets, heads, head_columns, row: RowBuf::new() }
    }

    /// Whether its values and the rows that are meant need no SQLite.
    pub(super) fn runs_with(&self, parameters: &[Value]) -> bool {
        self.branches.iter().all(|branch| branch.is_plain(parameters))
            && Converted::of_sets(&self.table, &self.sets, parameters).is_some()
    }

    pub(super) fn run<'c>(&mut self, core: &'c Core, parameters: &[Value]) -> Result<Ran<'c>, SqlError> {
        let Self { table, branches, sets, heads, head_columns, row } = self;
        let converted = Converted::of_sets(table, sets, parameters);
        let Some(converted) = converted.filter(|_| branches.iter().all(|branch| branch.is_plain(parameters)))
        else {
            return Ok(Ran::Left(None));
        };
        let run = Run { core, table, sets, converted: &converted, heads, head_columns, parameters };
        let Some(mut writes) = run.collect(branches)? else { return Ok(Ran::Left(None)) };
        for _ in 0..RETRIES_MAX {
            let rows = writes.len() as u64;
            match core.apply(&mut writes) {
                Ok(()) => return Ok(Ran::Done(run.done(rows))),
                Err(WriteError::Lost(lost)) => {
                    core.sight.check_watch()?;
                    writes = match run.judge_anew(writes, &lost, branches, row)? {
                        Some(writes) => writes,
                        None => return Ok(Ran::Left(None)),
                    };
                }
                // The general plan says what the row holds.
                Err(WriteError::NotNull(_) | WriteError::Check(_)) => return Ok(Ran::Left(None)),
                Err(error) => return Err(crate::write::refused(table, error)),
            }
        }
        Err(SqlError::new(state::LOST, "the rows kept changing while they were written; try again"))
    }
}

impl Run<'_> {
    fn done(&self, rows: u64) -> Done {
        let done = Done::wrote(TAG, rows);
        if self.head_columns.contains(&HeadColumn::Stale) {
            done.invalidating(self.table.id(), Invalidation::Stale)
        } else {
            done
        }
    }

    /// The writes of the rows that any of the branches leads to, each once. `None`: the general plan must compute them.
    fn collect(&self, branches: &mut [Access]) -> Result<Option<Vec<Write>>, SqlError> {
        // The view ends before the commit, which would otherwise keep old versions for it.
        let view = self.core.view();
        let mut walk = Walk::new(self.core, &view, self.parameters);
        let (mut writes, mut bytes) = (Vec::new(), 0);
        let mut met = (branches.len() > 1).then(HashSet::<Vec<u8>>::new);
        for branch in branches {
            let result = branch.each(&mut walk, Range::default(), &mut |_, (_, row), _| {
                if met.as_mut().is_some_and(|met| !met.insert(row.key().to_vec())) {
                    return Ok(());
                }
                bytes += row.key().len() + row.payload().len();
                check_size(writes.len(), bytes)?;
                writes.push(self.write(row)?.ok_or(Stop::Beyond)?);
                Ok(())
            });
            match result {
                Ok(()) => {}
                Err(Stop::Failed(error)) => return Err(*error),
                Err(Stop::Beyond | Stop::Enough) => return Ok(None),
            }
        }
        Ok(Some(writes))
    }

    /// The write of a row as it was read; `None`: the general plan must compute it.
    fn write(&self, row: &RowBuf) -> Result<Option<Write>, SqlError> {
        let Self { core, table, sets, converted, heads, head_columns, parameters } = *self;
        let given = Given { first: Standing::Row((table, row)), second: Standing::Nothing, parameters };
        let mut payload = Vec::new();
        if !edit((table, row), given, (sets, converted), &mut payload)? {
            return Ok(None);
        }
        let identity = Identity::of_row(row);
        let mut head = if sets.is_empty() {
            NewHead::same(&identity)
        } else {
            NewHead::fresh(identity.deadline, identity.client_flags)
        };
        assign_heads(&mut head, (&core.store, table), heads, parameters)?;
        if sets.is_empty() {
            head.keep_what_was_read(&core.store, table, &identity, head_columns);
        }
        let expect = Before::of_change(head_columns, &identity, false, Some(&head)).expect();
        let (table, key) = (Arc::clone(table), identity.key);
        Ok(Some(Write { table, key, change: head.change(payload), expect }))
    }

    /// The same list, with what the lost rows have become, where they are still meant.
    fn judge_anew(
        &self,
        writes: Vec<Write>,
        lost: &[usize],
        branches: &[Access],
        row: &mut RowBuf,
    ) -> Result<Option<Vec<Write>>, SqlError> {
        let view = self.core.view();
        let lost: HashSet<usize> = lost.iter().copied().collect();
        let mut left = Vec::with_capacity(writes.len());
        for (at, write) in writes.into_iter().enumerate() {
            if !lost.contains(&at) {
                left.push(write);
                continue;
            }
            let is_there = view.get(self.table, &write.key, row)?;
            if !is_there || !branches.iter().any(|branch| branch.is_true_of(self.parameters, row)) {
                continue;
            }
            match self.write(row)? {
                Some(write) => left.push(write),
                None => return Ok(None),
            }
        }
        Ok(Some(left))
    }
}
