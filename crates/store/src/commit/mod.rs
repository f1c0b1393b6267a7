//! Commits of many rows: all or nothing, seen at once by SQL statements, finished by recovery after a crash.
//!
//! Those of few rows hold the locks of their shards (`locked.rs`). A larger one stages its new rows where nothing
//! reaches them, marks its keys shard by shard while checking that each row is still what was read, draws its stamp,
//! writes a redo record, and turns committed by one store. From then on it cannot fail: the rows are swapped in slices,
//! and a single-key write that meets a mark applies the marked version first. A single-key write that meets a mark
//! earlier dooms the commit, which then evaluates the lost rows again.

pub(crate) mod write_set;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arena::{CommitSlot, CommitState, Hash, Location, Lookup, Queue, Redo, RedoEntry, RowHead, Seen};
use parking_lot::{MutexGuard, RwLock};

use crate::clock::Tick;
use crate::error::WriteError;
pub use crate::limits::COMMIT_ROWS_MAX;
use crate::limits::{LOCKED_ROWS_MAX, UNKEPT_ROWS_MAX};
use crate::memory::place::{EVICTIONS_PER_WRITE, Placed};
use crate::mutation::Mutation;
use crate::row::RowBuf;
use crate::row::new::NewRow;
use crate::row::request::{Expect, Outcome, check};
use crate::row::version::Version;
use crate::rows::Rows;
use crate::table::Table;
use crate::table::removal_event::Cause;
use crate::versions::commit::{Commit, Staged, StagedRows};
use crate::versions::shard::{Mark, Shard};
use crate::versions::tap::applies_peers;

mod chosen;
mod firm;
mod locked;
mod peer;
mod removals;
mod unique;
pub(crate) mod whole;

use removals::Carried;
pub use removals::Removals;

/// Rows marked or swapped under one hold of a shard lock, so that a worker waits for a few microseconds only.
const SWAP_SLICE: usize = 32;
/// One change of one row.
#[derive(Clone, Debug)]
pub struct Write {
    /// The table.
    pub table: Arc<Table>,
    /// The encoded primary key; a list in which a key stands twice is refused.
    pub key: Vec<u8>,
    /// What becomes of the row.
    pub change: Change,
    /// What must be there; otherwise the write is reported as lost.
    pub expect: Expect,
}

/// What becomes of a row.
#[derive(Clone, Debug)]
pub enum Change {
    /// It is written whole.
    Put(NewRow),
    /// It is removed.
    Delete,
}

/// What was found under a key when it was marked.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    seen: Option<Seen>,
    stamp: u64,
}

impl Before {
    fn location(&self) -> Option<Location> {
        self.seen.map(|seen| seen.location())
    }
}

/// What a write found under its key.
enum Sought {
    /// Not what it expects.
    Lost,
    /// No row, as it may be.
    Nothing,
    /// A row.
    Row(Seen, RowHead),
}

enum Attempt {
    Committed,
    /// Doomed by a write that wanted a unique value, not a row: the same list may be tried again.
    Again,
}

/// Commits of many rows, over [`Rows`].
#[derive(Debug)]
pub struct Commits {
    rows: Rows,
    /// Held for reading by each commit of many rows; who must know that all before it have ended takes it for writing.
    pub(crate) committing: RwLock<()>,
    /// Rows of a commit up to which it holds the locks of its shards. Relaxed: only tests change it.
    locked_rows_max: AtomicUsize,
}

impl Deref for Commits {
    type Target = Rows;

    #[inline]
    fn deref(&self) -> &Rows {
        &self.rows
    }
}

impl Commits {
    pub(crate) fn new(rows: Rows) -> Self {
        Self { rows, committing: RwLock::new(()), locked_rows_max: AtomicUsize::new(LOCKED_ROWS_MAX) }
    }

    /// Carries out commits of up to so many rows under the locks of their shards, and others by marks: tests try both.
    pub fn set_locked_rows_max(&self, rows: usize) {
        self.locked_rows_max.store(rows.min(LOCKED_ROWS_MAX), Ordering::Relaxed);
    }

    /// A CAS value that no row has had, for rows whose value must be known before they are committed.
    pub fn reserve_cas(&self) -> u64 {
        self.arena.private().next_stamp()
    }

    /// Applies a list of writes, all or nothing, and returns the stamp. `Lost` names the writes whose rows changed
    /// since they were read; nothing was applied then.
    pub fn commit(&self, writes: &[Write]) -> Result<u64, WriteError> {
        let _mutation = Mutation;
        let now = self.now();
        self.checkpoint(now);
        for group in writes.chunk_by(|a, b| Arc::ptr_eq(&a.table, &b.table)) {
            self.count_operations(&group[0].table, group.len() as u64);
        }
        match writes {
            [] => Ok(self.arena.private().last_stamp()),
            [first, ..] if applies_peers(&first.table) => self.commit_of_peer(writes, now),
            [write] => self.commit_one(write, now),
            _ if writes.len() > COMMIT_ROWS_MAX => Err(WriteError::TooManyRows { limit: COMMIT_ROWS_MAX }),
            _ => self.commit_many(writes, now),
        }
    }

    fn commit_one(&self, write: &Write, now: Tick) -> Result<u64, WriteError> {
        let outcome = match &write.change {
            Change::Put(row) => {
                self.put(&write.table, &row.parts(&write.key, &[row.payload.as_slice()]), write.expect, now)?
            }
            Change::Delete => self.delete(&write.table, &write.key, write.expect, now)?,
        };
        match outcome {
            Outcome::Done(stamp) => Ok(stamp),
            Outcome::Missing if matches!(write.expect, Expect::Anything | Expect::Absent) => {
                Ok(self.arena.private().last_stamp())
            }
            // Why it is missing is asked there.
            Outcome::Missing if matches!(write.expect, Expect::Unremoved { .. }) => {
                self.commit_many(std::slice::from_ref(write), now)
            }
            _ => Err(WriteError::Lost(vec![0])),
        }
    }

    /// Removes rows of one table, all or none, and returns the stamp. `Lost` names those that changed since they were
    /// read.
    pub fn remove_all(&self, table: &Arc<Table>, removals: &Removals) -> Result<u64, WriteError> {
        let _mutation = Mutation;
        let now = self.now();
        self.checkpoint(now);
        match removals.len() {
            0 => return Ok(self.arena.private().last_stamp()),
            _ if applies_peers(table) => return self.remove_of_peer(table, removals, now),
            1 => return self.remove_one(table, removals, now),
            rows if rows > COMMIT_ROWS_MAX => {
                return Err(WriteError::TooManyRows { limit: COMMIT_ROWS_MAX });
            }
            _ => {}
        }
        let arena = self.arena.of(table.id());
        let read = removals.each().map(|(key, cas, place)| (key.len(), cas, place));
        let rows = StagedRows::removals(table, removals.keys().to_vec(), read, |key| {
            let hash = arena.hash(table.id(), key);
            // The rows were read just now; what they hang on was not.
            arena.prefetch_bucket(hash);
            hash
        });
        self.commit_rows(rows, removals.carried(), Vec::new(), now)
    }

    /// Adds a row, as it was read, to those of its table that are to be removed.
    pub fn list_removal(&self, list: &mut Removals, table: &Table, row: &RowBuf) {
        let arena = self.arena.of(table.id());
        let hash = arena.hash(table.id(), row.key());
        // The row was read just now; what it hangs on was not.
        arena.prefetch_bucket(hash);
        list.push_with_entries(table, hash, row);
    }

    fn remove_one(&self, table: &Table, removals: &Removals, now: Tick) -> Result<u64, WriteError> {
        let (key, cas) = removals.iter().next().unwrap_or_default();
        match self.delete(table, key, Expect::Version(cas), now)? {
            Outcome::Done(stamp) => Ok(stamp),
            _ => Err(WriteError::Lost(vec![0])),
        }
    }

    fn commit_many(&self, writes: &[Write], now: Tick) -> Result<u64, WriteError> {
        let (rows, placed) = self.stage(writes, now)?;
        self.commit_rows(rows, None, placed, now)
    }

    /// `placed` holds the new rows' places.
    fn commit_rows(
        &self,
        rows: StagedRows,
        carried: Option<&Carried>,
        placed: Vec<Placed<'_>>,
        now: Tick,
    ) -> Result<u64, WriteError> {
        let committing = self.committing.read();
        self.grow_index_for(placed.len() as u64);
        let commit = Arc::new(Commit::new(self.claim_commit(), rows));
        let result = self.attempts(&commit, carried, now);
        self.finish(&commit);
        let grown = !placed.is_empty();
        drop(placed);
        drop(committing);
        if grown {
            self.after_commit(&commit.rows, now);
        }
        result
    }

    fn finish(&self, commit: &Commit) {
        self.arena.private().finish_commit(commit.slot);
        if let Some(redo) = commit.redo.lock().take() {
            self.arena.private().free_redo(redo);
        }
    }

    fn attempts(
        &self,
        commit: &Arc<Commit>,
        carried: Option<&Carried>,
        now: Tick,
    ) -> Result<u64, WriteError> {
        let order = commit.rows.order();
        if commit.rows.has_twins(&order) {
            return Err(WriteError::Key("a key is more than once in the list".to_owned()));
        }
        if self.goes_locked(commit)
            && let Some(stamp) = self.commit_locked(commit, &order, carried, now)?
        {
            return Ok(stamp);
        }
        loop {
            match self.attempt(commit, &order, now)? {
                Attempt::Committed => return Ok(commit.stamp()),
                Attempt::Again => self.arena.private().reset_commit(commit.slot),
            }
        }
    }

    /// Brings every table that a commit wrote back to its `max_rows`: its own thread pays, row by row.
    fn after_commit(&self, rows: &StagedRows, now: Tick) {
        for table in rows.tables() {
            self.keep_to_rows(table, rows.len() + EVICTIONS_PER_WRITE, now);
        }
    }

    fn claim_commit(&self) -> CommitSlot {
        loop {
            if let Some(slot) = self.arena.private().claim_commit() {
                return slot;
            }
            std::thread::yield_now();
        }
    }

    /// Copies the new rows into segments, unreachable so far.
    fn stage(&self, writes: &[Write], now: Tick) -> Result<(StagedRows, Vec<Placed<'_>>), WriteError> {
        let mut rows =
            StagedRows::with_capacity(writes.len(), writes.iter().map(|write| write.key.len()).sum());
        let mut placed = Vec::new();
        for write in writes {
            let hash = self.arena.of(write.table.id()).hash(write.table.id(), &write.key);
            let mut new = None;
            if let Change::Put(row) = &write.change
                && !write.table.has_ended(row.expiry, now)
            {
                self.await_unique(&write.table);
                let queue = self.staging_queue(&write.table, hash, &write.key);
                let space = self.place(
                    &write.table,
                    queue,
                    &row.parts(&write.key, &[row.payload.as_slice()]),
                    true,
                    now,
                )?;
                new = Some(space.version);
                placed.push(space);
            }
            rows.push(&write.table, hash, &write.key, new.as_ref(), write.expect);
        }
        Ok((rows, placed))
    }

    fn staging_queue(&self, table: &Table, hash: Hash, key: &[u8]) -> Queue {
        match self.arena.of(table.id()).lookup(hash, table.id(), key) {
            Lookup::Hit(row) => self.queue_of(row.location()),
            _ if table.state.ghost_holds(hash) => Queue::Main,
            _ => Queue::Small,
        }
    }

    fn attempt(&self, commit: &Arc<Commit>, order: &[usize], now: Tick) -> Result<Attempt, WriteError> {
        let mut before = vec![Before::default(); commit.rows.len()];
        let marked =
            self.mark_all(commit, order, &mut before, now).and_then(|()| self.reserve_unique(commit, now));
        if let Err(error) = marked {
            self.withdraw(commit, order);
            commit.rows.give_back_reserved(commit.slot);
            return Err(error);
        }
        // What is held and not written may change from here on.
        if let Some((held, order)) = &commit.held {
            self.withdraw(held, order);
        }
        let always_keep = commit.rows.len() > UNKEPT_ROWS_MAX;
        let (stamp, keep) = self
            .statements
            .begin_commit(usize::from(commit.slot.0), always_keep, || self.arena.private().next_stamp());
        commit.stamp.store(stamp, Ordering::Relaxed);
        commit.keep.store(keep, Ordering::Relaxed);
        let turned = self.turn(commit, &before, stamp);
        if turned == Ok(true) {
            self.swap_all(commit, order, &before);
        }
        let number = self.statements.publish(usize::from(commit.slot.0));
        // Release: pairs with the Acquire in `purge_old_versions`.
        commit.published.store(number, Ordering::Release);
        if turned != Ok(true) {
            self.withdraw(commit, order);
        }
        commit.rows.give_back_reserved(commit.slot);
        match turned {
            Ok(true) => {
                self.announce_replaced(commit, |write| before[write].seen.is_some());
                self.purge_old_versions();
                Ok(Attempt::Committed)
            }
            Ok(false) => {
                let lost = std::mem::take(&mut *commit.lost.lock());
                if lost.is_empty() { Ok(Attempt::Again) } else { Err(WriteError::Lost(lost)) }
            }
            Err(error) => Err(error),
        }
    }

    /// Marks every key in the order of shards, the same for all commits, so that two of them never wait in a circle.
    fn mark_all(
        &self,
        commit: &Arc<Commit>,
        order: &[usize],
        before: &mut [Before],
        now: Tick,
    ) -> Result<(), WriteError> {
        let mut lost = Vec::new();
        for slice in slices(&commit.rows, order) {
            let mut shard = self.shard(commit.rows.row(slice[0]).hash).lock();
            for &write in slice {
                match self.mark(&mut shard, commit, write, now)? {
                    Some(found) => before[write] = found,
                    None => lost.push(write),
                }
            }
        }
        if lost.is_empty() { Ok(()) } else { Err(WriteError::Lost(lost)) }
    }

    /// Marks one key; `None`: there is not what the write expects. The shard's lock may be given up meanwhile.
    fn mark(
        &self,
        shard: &mut MutexGuard<'_, Shard>,
        commit: &Arc<Commit>,
        write: usize,
        now: Tick,
    ) -> Result<Option<Before>, WriteError> {
        let staged = commit.rows.row(write);
        let (table, key) = (commit.rows.table(staged), commit.rows.key(staged));
        while !self.is_unmarked(shard, commit, table, staged, key) {
            MutexGuard::unlocked(shard, std::thread::yield_now);
        }
        let before = match self.find_expected(shard, table, staged, key, now)? {
            Sought::Lost => return Ok(None),
            Sought::Nothing => Before::default(),
            Sought::Row(seen, head) => Before { seen: Some(seen), stamp: head.stamp },
        };
        let mark = Mark { hash: staged.hash, commit: Arc::clone(commit), write };
        shard.marks.insert_unique(staged.hash.0, mark, |mark| mark.hash.0);
        Ok(Some(before))
    }

    /// Looks for what a write expects under its key, and has it take over what it keeps of that.
    fn find_expected(
        &self,
        shard: &Shard,
        table: &Table,
        staged: &Staged,
        key: &[u8],
        now: Tick,
    ) -> Result<Sought, WriteError> {
        table.check_current()?;
        let found = self.find_staged(shard, table, staged, key);
        let live = found.as_ref().map(|(_, head)| head).filter(|head| self.is_live(table, head, now));
        let is_there =
            is_expected(shard, table, staged, live) && live.is_none_or(|live| self.takes_over(staged, live));
        Ok(match found {
            _ if !is_there => Sought::Lost,
            None => Sought::Nothing,
            Some((seen, head)) => Sought::Row(seen, head),
        })
    }

    /// The row under the key of a write, first where it was read. The place alone proves nothing: with its generation
    /// it names that very version, and a slot that names it is the key's.
    fn find_staged(
        &self,
        shard: &Shard,
        table: &Table,
        staged: &Staged,
        key: &[u8],
    ) -> Option<(Seen, RowHead)> {
        let there = |place| self.arena.of(place).find_place(&shard.token, staged.hash, &place);
        let of_table = |(_, head): &(Seen, RowHead)| head.table == table.id();
        staged.place.and_then(there).filter(of_table).or_else(|| {
            let arena = self.arena.of(table.id());
            let (entry, head) = arena.find_row(&shard.token, staged.hash, table.id(), key)?;
            Some((arena.seen(&shard.token, entry), head))
        })
    }

    /// Gives a staged row what it keeps of the one that it replaces; see [`Versions::take_over`](crate::Versions).
    fn takes_over(&self, staged: &Staged, live: &RowHead) -> bool {
        let Some(location) = staged.new.filter(|_| staged.keep.is_some()) else { return true };
        let mut version = Version { keep: staged.keep, ..self.version_at(location) };
        self.take_over(&mut version, live)
    }

    /// Whether no other commit is about to write a key. The row of one that has turned is applied, and what this one
    /// held is its own from here on.
    fn is_unmarked(
        &self,
        shard: &mut Shard,
        own: &Commit,
        table: &Table,
        staged: &Staged,
        key: &[u8],
    ) -> bool {
        if shard.marks.is_empty() {
            return true;
        }
        let Some((other, write)) = shard.mark_of(staged.hash, table.id(), key) else { return true };
        if !own.has_held(&other) {
            if self.arena.private().commit_state(other.slot) != CommitState::Committed {
                return false;
            }
            self.apply(shard, &other, write);
        }
        shard.unmark(staged.hash, &other, write);
        true
    }

    /// Stamps the rows, writes the redo record, and turns the commit. False: it was doomed.
    fn turn(&self, commit: &Commit, before: &[Before], stamp: u64) -> Result<bool, WriteError> {
        let redo = self.reserve_redo(commit.rows.len())?;
        let entries = commit.rows.iter().zip(before).map(|(staged, before)| {
            let old = before.location().map(|location| (location, before.stamp));
            redo_entry(&commit.rows, staged, old)
        });
        self.arena.private().fill_redo(&redo, entries);
        if let Some(earlier) = commit.redo.lock().replace(redo) {
            self.arena.private().free_redo(earlier);
        }
        Ok(self.seal(commit, stamp))
    }

    /// Stamps the new rows, and turns a commit whose redo record is written. False: it was doomed.
    fn seal(&self, commit: &Commit, stamp: u64) -> bool {
        for location in commit.rows.iter().filter_map(|staged| staged.new) {
            self.arena.of(location).stamp_row(location, stamp);
        }
        let redo = commit.redo.lock();
        redo.as_ref().is_some_and(|redo| self.arena.private().seal_commit(commit.slot, redo))
    }

    fn reserve_redo(&self, rows: usize) -> Result<Redo, WriteError> {
        loop {
            if let Some(redo) = self.arena.private().reserve_redo(rows) {
                return Ok(redo);
            }
            if !self.make_room(None) {
                return Err(WriteError::Full);
            }
        }
    }

    /// Notes for listeners which rows a published commit replaced or removed.
    fn announce_replaced(&self, commit: &Commit, was_there: impl Fn(usize) -> bool) {
        let rows = &commit.rows;
        if rows.tables().iter().all(|table| table.def().options.notify.is_none()) {
            return;
        }
        for (_, staged) in rows.iter().enumerate().filter(|&(write, _)| was_there(write)) {
            let key = |out: &mut Vec<u8>| out.extend_from_slice(rows.key(staged));
            self.removal_events.note(rows.table(staged), key, Cause::Invalidate);
        }
    }

    /// Swaps the rows in, a slice of a shard at a time.
    fn swap_all(&self, commit: &Arc<Commit>, order: &[usize], before: &[Before]) {
        for slice in slices(&commit.rows, order) {
            let mut shard = self.shard(commit.rows.row(slice[0]).hash).lock();
            for &write in slice {
                if shard.unmark(commit.rows.row(write).hash, commit, write) {
                    self.apply_seen(&mut shard, commit, write, before[write].seen);
                }
            }
        }
    }

    /// Takes the marks of a commit that was given up back, wherever they still are.
    fn withdraw(&self, commit: &Arc<Commit>, order: &[usize]) {
        for &write in order {
            let hash = commit.rows.row(write).hash;
            self.shard(hash).lock().unmark(hash, commit, write);
        }
    }
}

/// What recovery needs to finish the write of one row; where the old version lies, and its stamp.
fn redo_entry(rows: &StagedRows, staged: &Staged, old: Option<(Location, u64)>) -> RedoEntry {
    let (old, old_stamp) = (old.map(|(location, _)| location), old.map_or(0, |(_, stamp)| stamp));
    RedoEntry { hash: staged.hash, table: rows.table(staged).id(), new: staged.new, old, old_stamp }
}

/// The rows of a commit in the order of their shards, so many at a time as one hold of a shard's lock is for.
fn slices<'o>(rows: &StagedRows, order: &'o [usize]) -> impl Iterator<Item = &'o [usize]> {
    let shard_of = |write: usize| arena::Arena::shard_of(rows.row(write).hash);
    let shards = order.chunk_by(move |&a, &b| shard_of(a) == shard_of(b));
    shards.flat_map(|shard| shard.chunks(SWAP_SLICE))
}

/// Whether a write finds what it expects under its key: a live row of this CAS value, or none.
fn is_expected(shard: &Shard, table: &Table, staged: &Staged, live: Option<&RowHead>) -> bool {
    match (staged.expect, live) {
        // The shard's lock was taken after the flush that matters: one acknowledged before.
        (Expect::Unremoved { since, .. }, None) => {
            !shard.removals.since(staged.hash, since)
                && table.state.emptied_below.load(Ordering::Relaxed) <= since
        }
        (expect, live) => check(expect, live).is_ok(),
    }
}
