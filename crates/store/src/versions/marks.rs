//! Marks: what a write meets of a commit that is about to write the same key.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::{CommitState, Hash, Location, Seen};
use parking_lot::MutexGuard;

use crate::row::RowBuf;
use crate::table::Table;
use crate::table::removal_cause::RemovalCause;
use crate::versions::commit::{Commit, Staged};
use crate::versions::shard::{OldVersion, Shard};
use crate::versions::swap::{Found, Indexes, SlotChange, Unique};
use crate::versions::{Versions, order};

/// How long a single-key write waits for a commit that goes first; then it dooms that one too, so that no list holds up
/// a worker for longer. To find and mark 10,000 rows takes a tenth of it.
const FIRM_WAIT_NS: u64 = 50_000_000;

impl Versions {
    /// Meets a mark before a single-key write: dooms a commit in staging, finishes the row of one that has turned. The
    /// lock is given up meanwhile where the commit goes first.
    #[inline]
    pub(crate) fn settle_mark(
        &self,
        shard: &mut MutexGuard<'_, Shard>,
        table: &Table,
        hash: Hash,
        key: &[u8],
    ) {
        if !shard.marks.is_empty() {
            self.settle_mark_of(shard, table, hash, key);
        }
    }

    #[cold]
    fn settle_mark_of(&self, shard: &mut MutexGuard<'_, Shard>, table: &Table, hash: Hash, key: &[u8]) {
        self.wait_for_firm(shard, table, hash, key);
        let Some((commit, write)) = shard.mark_of(hash, table.id(), key) else { return };
        let doomed = self.arena.private().doom(commit.slot)
            || matches!(self.arena.private().commit_state(commit.slot), CommitState::Doomed);
        if doomed {
            commit.lost.lock().push(write);
        } else {
            self.apply(shard, &commit, write);
        }
        shard.unmark(hash, &commit, write);
    }

    /// Waits while a commit that goes first has marked a key. The shard's lock is given up meanwhile.
    #[cold]
    fn wait_for_firm(&self, shard: &mut MutexGuard<'_, Shard>, table: &Table, hash: Hash, key: &[u8]) {
        let began = self.clock().precise_ns();
        while let Some((commit, _)) = shard.mark_of(hash, table.id(), key) {
            let goes_first =
                commit.firm && self.arena.private().commit_state(commit.slot) == CommitState::Staging;
            if !goes_first || self.clock().precise_ns().saturating_sub(began) > FIRM_WAIT_NS {
                return;
            }
            drop(commit);
            MutexGuard::unlocked(shard, std::thread::yield_now);
        }
    }

    /// Puts one row of a committed commit in its place, and says so in the redo record.
    pub(crate) fn apply(&self, shard: &mut Shard, commit: &Arc<Commit>, write: usize) {
        let staged = commit.rows.row(write);
        let found = self.find_row(shard, commit.rows.table(staged), staged.hash, commit.rows.key(staged));
        self.apply_to(shard, commit, write, found);
    }

    /// The same for who knows what was in the slot when the row was marked.
    pub(crate) fn apply_seen(
        &self,
        shard: &mut Shard,
        commit: &Arc<Commit>,
        write: usize,
        seen: Option<Seen>,
    ) {
        let staged = commit.rows.row(write);
        // Another place since: it was moved, or it left and the place in the index is a third one's.
        let found = seen.and_then(|seen| self.find_seen(shard, &seen)).or_else(|| {
            self.find_row(shard, commit.rows.table(staged), staged.hash, commit.rows.key(staged))
        });
        self.apply_to(shard, commit, write, found);
    }

    /// The same for who knows what is in the slot.
    pub(crate) fn apply_to(
        &self,
        shard: &mut Shard,
        commit: &Arc<Commit>,
        write: usize,
        found: Option<Found>,
    ) {
        if commit.keep.load(order::KEEP_LOAD) {
            self.keep(shard, commit, commit.rows.row(write), found.map(|found| found.entry.location));
        }
        self.apply_kept(shard, commit, write, found, Indexes::Follow);
    }

    /// The same when what the key held before was kept, if anybody needs it.
    pub(crate) fn apply_kept(
        &self,
        shard: &mut Shard,
        commit: &Arc<Commit>,
        write: usize,
        found: Option<Found>,
        indexes: Indexes,
    ) {
        let staged = commit.rows.row(write);
        let table = commit.rows.table(staged);
        let stamp = commit.stamp.load(Ordering::Relaxed);
        let dead = found.and_then(|found| self.dead(table, &found.head, self.now()));
        let was_live = found.is_some() && dead.is_none();
        // Unique values are spoken for, and a full hash index forgets the row as eviction would: nothing can refuse.
        let new = staged.new.map(|location| self.version_at(location));
        let change = SlotChange { hash: staged.hash, found, copy: None, was_live, new, stamp };
        let cause = dead.or_else(|| (was_live && staged.new.is_none()).then_some(RemovalCause::Invalidated));
        let swapped = match indexes {
            Indexes::Follow => self.swap(shard, table, &change, Unique::Reserved),
            Indexes::Left => self.swap_bare(shard, table, &change, Unique::Reserved),
        };
        if swapped.is_ok()
            && let Some(cause) = cause
        {
            table.state.counters.count(cause);
        }
        if let Some(redo) = &*commit.redo.lock() {
            self.arena.private().redo_done(redo, write);
        }
    }

    /// Copies what a key held before the commit for statements that do not see the commit.
    pub(crate) fn keep(
        &self,
        shard: &mut Shard,
        commit: &Arc<Commit>,
        staged: &Staged,
        location: Option<Location>,
    ) {
        let mut row = Box::new(RowBuf::new());
        let row = location.filter(|&location| self.load_stable(location, &mut row)).map(|_| row);
        let kept = OldVersion {
            hash: staged.hash,
            table: commit.rows.table(staged).id(),
            key: commit.rows.key(staged).into(),
            commit: Arc::clone(commit),
            row,
        };
        if self.old.add(kept.heap_bytes(), self.memory_bytes()) {
            shard.old_versions.push(kept);
        } else {
            let slot = usize::from(commit.slot.0);
            self.old.give_up(&self.statements, slot, commit.stamp(), || self.arena.private().next_stamp());
            // Last: a thread that settles a mark of the commit swaps without keeping when it sees this.
            commit.keep.store(false, order::KEEP_STORE);
        }
    }
}
