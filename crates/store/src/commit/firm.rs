//! Commits that go first: for a list that other writers overtook again and again.
//!
//! Such a commit marks the keys before its list is made. A single-key write that meets one of these marks waits, where
//! it would doom any other commit. So what the list was made from is still there when the list is applied.

use std::sync::Arc;

use hashbrown::HashSet;

use super::{Before, COMMIT_ROWS_MAX, Write};
use crate::clock::Tick;
use crate::commit::Commits;
use crate::error::WriteError;
use crate::mutation::Mutation;
use crate::row::request::Expect;
use crate::versions::commit::Commit;
use crate::versions::commit::StagedRows;

/// Keys that are marked. Dropped, it gives back what the commit has not taken over.
struct Held<'s> {
    commits: &'s Commits,
    commit: Arc<Commit>,
    order: Vec<usize>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.commits.withdraw(&self.commit, &self.order);
        self.commits.finish(&self.commit);
    }
}

impl Commits {
    /// Commits a list that is made while nobody else changes the rows of `keys`, of which only the keys count. The
    /// commit is refused (`Lost`) where the list has other keys, where a write expects what is not there, or where a
    /// writer waited for too long. `make` must not commit.
    pub fn commit_firmly<E>(
        &self,
        keys: &[Write],
        make: impl FnOnce() -> Result<Vec<Write>, E>,
    ) -> Result<Result<u64, WriteError>, E> {
        // One at a time: two would wait for each other's rows while their lists are made.
        let _turn = self.firm.lock();
        let now = self.now();
        self.checkpoint(now);
        let committing = self.committing.read();
        let held = match self.hold(keys, now) {
            Ok(held) => held,
            Err(error) => return Ok(Err(error)),
        };
        let writes = make()?;
        let result = self.commit_held(&held, &writes, now);
        drop(held);
        drop(committing);
        Ok(result)
    }

    fn hold(&self, keys: &[Write], now: Tick) -> Result<Held<'_>, WriteError> {
        let _mutation = Mutation;
        if keys.len() > COMMIT_ROWS_MAX {
            return Err(WriteError::TooManyRows { limit: COMMIT_ROWS_MAX });
        }
        let mut rows = StagedRows::with_capacity(keys.len(), keys.iter().map(|write| write.key.len()).sum());
        for Write { table, key, .. } in keys {
            rows.push(table, self.arena.of(table.id()).hash(table.id(), key), key, None, Expect::Anything);
        }
        let commit = Arc::new(Commit { firm: true, ..Commit::new(self.claim_commit(), rows) });
        let order = commit.rows.order();
        let held = Held { commits: self, commit, order };
        if held.commit.rows.has_twins(&held.order) {
            return Err(WriteError::Key("a key is more than once in the list".to_owned()));
        }
        let mut before = vec![Before::default(); keys.len()];
        self.mark_all(&held.commit, &held.order, &mut before, now)?;
        Ok(held)
    }

    fn commit_held(&self, held: &Held<'_>, writes: &[Write], now: Tick) -> Result<u64, WriteError> {
        let _mutation = Mutation;
        if writes.is_empty() {
            return Ok(self.arena.private().last_stamp());
        }
        let others = held.others(writes);
        if !others.is_empty() {
            return Err(WriteError::Lost(others));
        }
        for group in writes.chunk_by(|a, b| Arc::ptr_eq(&a.table, &b.table)) {
            self.count_operations(&group[0].table, group.len() as u64);
        }
        let (rows, placed) = self.stage(writes, now)?;
        self.grow_index_for(placed.len() as u64);
        let own = Commit::new(held.commit.slot, rows);
        let commit = Arc::new(Commit {
            firm: true,
            held: Some((Arc::clone(&held.commit), held.order.clone())),
            ..own
        });
        let result = self.attempts(&commit, None, now);
        // The commit word is given back once, and before the record that it points at.
        *held.commit.redo.lock() = commit.redo.lock().take();
        let grown = !placed.is_empty();
        drop(placed);
        if grown {
            self.after_commit(&commit.rows, now);
        }
        result
    }
}

impl Held<'_> {
    /// The writes whose keys are not held: who marked them now would do so out of order, and might wait in a circle.
    fn others(&self, writes: &[Write]) -> Vec<usize> {
        let rows = &self.commit.rows;
        let held: HashSet<_> = rows.iter().map(|row| (rows.table(row).id(), rows.key(row))).collect();
        let is_held = |write: &Write| held.contains(&(write.table.id(), write.key.as_slice()));
        (0..writes.len()).filter(|&at| !is_held(&writes[at])).collect()
    }
}
