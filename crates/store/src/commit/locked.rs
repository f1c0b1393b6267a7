//! Commits of few rows: the locks of all their shards are held at once, in place of marks.
//!
//! What was found under a lock stays until the lock is given up. So each row is looked for once, nobody can doom the
//! commit, and rows that are where they were read leave their indexes by the entries that were made then. A writer of
//! one of these shards waits meanwhile, which [`LOCKED_ROWS_MAX`](crate::limits::LOCKED_ROWS_MAX) and
//! [`LOCKED_BYTES_MAX`](crate::limits::LOCKED_BYTES_MAX) bound.
//!
//! No two threads wait for each other. Every thread locks shards in the same order, also to empty a table. While the
//! shards are locked, only locks that come after a shard's are waited for. Room for the redo record is made before. A
//! row that another commit has marked is waited for without the locks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::Arena;
use parking_lot::MutexGuard;

use super::{Carried, Commits, Sought, redo_entry};
use crate::clock::Tick;
use crate::error::WriteError;
use crate::limits::LOCKED_BYTES_MAX;
use crate::versions::commit::{Commit, StagedRows};
use crate::versions::order;
use crate::versions::shard::Shard;
use crate::versions::swap::{Found, Indexes};

/// Shards that are locked, in their order, each with the rows of the commit that are its.
type Locked<'s, 'o> = Vec<(MutexGuard<'s, Shard>, &'o [usize])>;

/// What became of looking for the rows of a commit.
enum Look {
    /// All are as they are expected to be.
    Found(Everything),
    /// Another commit has marked one.
    Marked,
    /// They are too large to be copied under the locks.
    Large,
}

/// What was found under the keys of a commit.
struct Everything {
    rows: Vec<Option<Found>>,
    /// Whether each row lies where it was read.
    in_place: bool,
}

impl Commits {
    /// Whether a commit is to hold the locks of its shards. One that speaks for unique values may have to wait for
    /// another that has spoken for the same, and one that goes first has marked its rows before.
    pub(super) fn goes_locked(&self, commit: &Commit) -> bool {
        let rows = &commit.rows;
        rows.len() <= self.locked_rows_max.load(Ordering::Relaxed)
            && rows.new_bytes() <= LOCKED_BYTES_MAX
            && commit.held.is_none()
            && !rows.iter().any(|staged| staged.new.is_some() && rows.table(staged).has_unique())
    }

    /// Carries a commit out under the locks of its shards; none, and nothing was done, where its rows are too large.
    pub(super) fn commit_locked(
        &self,
        commit: &Arc<Commit>,
        order: &[usize],
        carried: Option<&Carried>,
        now: Tick,
    ) -> Result<Option<u64>, WriteError> {
        *commit.redo.lock() = Some(self.reserve_redo(commit.rows.len())?);
        let (mut locked, found) = loop {
            let mut locked = self.lock_shards_of(&commit.rows, order);
            match self.find_all(&mut locked, commit, now)? {
                Look::Found(found) => break (locked, found),
                Look::Large => return Ok(None),
                Look::Marked => {}
            }
            drop(locked);
            std::thread::yield_now();
        };
        self.begin(commit, &found);
        self.carry_out(&mut locked, commit, &found, carried);
        let number = self.statements.publish(usize::from(commit.slot.0));
        // Release: pairs with the Acquire in `purge_old_versions`.
        commit.published.store(number, Ordering::Release);
        drop(locked);
        self.announce_replaced(commit, |write| found.rows[write].is_some());
        self.purge_old_versions();
        Ok(Some(commit.stamp()))
    }

    /// Locks the shards of all rows.
    fn lock_shards_of<'o>(&self, rows: &StagedRows, order: &'o [usize]) -> Locked<'_, 'o> {
        let shard_of = |write: usize| Arena::shard_of(rows.row(write).hash);
        let by_shard = order.chunk_by(|&a, &b| shard_of(a) == shard_of(b));
        by_shard.map(|writes| (self.shard_at(shard_of(writes[0])).lock(), writes)).collect()
    }

    /// Looks for what every write expects.
    fn find_all(&self, locked: &mut Locked<'_, '_>, commit: &Commit, now: Tick) -> Result<Look, WriteError> {
        let rows = &commit.rows;
        let mut all = Everything { rows: vec![None; rows.len()], in_place: true };
        let (mut lost, mut bytes) = (Vec::new(), rows.new_bytes());
        for (shard, writes) in locked {
            for &write in *writes {
                let staged = rows.row(write);
                let (table, key) = (rows.table(staged), rows.key(staged));
                if !self.is_unmarked(shard, commit, table, staged, key) {
                    return Ok(Look::Marked);
                }
                match self.find_expected(shard, table, staged, key, now)? {
                    Sought::Lost => lost.push(write),
                    Sought::Nothing => all.in_place = false,
                    Sought::Row(seen, head) => {
                        all.in_place &= staged.place == Some(seen.place());
                        all.rows[write] = Some(Found { entry: seen.entry(), head });
                        bytes += head.total_bytes;
                    }
                }
            }
        }
        match lost.is_empty() {
            false => Err(WriteError::Lost(lost)),
            true if bytes > LOCKED_BYTES_MAX => Ok(Look::Large),
            true => Ok(Look::Found(all)),
        }
    }

    /// Draws the stamp, writes the redo record and turns the commit.
    fn begin(&self, commit: &Commit, found: &Everything) {
        let slot = usize::from(commit.slot.0);
        let (stamp, keep) = self.statements.begin_commit(slot, false, || self.arena.private().next_stamp());
        commit.stamp.store(stamp, Ordering::Relaxed);
        commit.keep.store(keep, Ordering::Relaxed);
        let entries = commit.rows.iter().zip(&found.rows).map(|(staged, found)| {
            let old = found.map(|found| (found.entry.location, found.head.stamp));
            redo_entry(&commit.rows, staged, old)
        });
        if let Some(redo) = &*commit.redo.lock() {
            self.arena.private().fill_redo(redo, entries);
        }
        // A commit without marks is not doomed.
        self.seal(commit, stamp);
    }

    /// Swaps all rows in.
    fn carry_out(
        &self,
        locked: &mut Locked<'_, '_>,
        commit: &Arc<Commit>,
        found: &Everything,
        carried: Option<&Carried>,
    ) {
        let table = &commit.rows.tables()[0];
        // What is told of a row is read where it is swapped.
        let of_table = |carried: &&Carried| carried.is_of(table) && !table.replicates_rows();
        let Some(carried) = carried.filter(|_| found.in_place).filter(of_table) else {
            return each(locked, |shard, write| self.apply_to(shard, commit, write, found.rows[write]));
        };
        // What leaves an index must be kept before, for statements that do not see the commit.
        if commit.keep.load(order::KEEP_LOAD) {
            each(locked, |shard, write| {
                let location = found.rows[write].map(|found| found.entry.location);
                self.keep(shard, commit, commit.rows.row(write), location);
            });
        }
        // Before the rows: an entry must not outlive its row.
        carried.leave(&self.arena);
        each(locked, |shard, write| {
            self.apply_kept(shard, commit, write, found.rows[write], Indexes::Left);
        });
    }
}

/// Does something for every row, whose shard is locked.
fn each(locked: &mut Locked<'_, '_>, mut deed: impl FnMut(&mut Shard, usize)) {
    for (shard, writes) in locked {
        writes.iter().for_each(|&write| deed(shard, write));
    }
}
