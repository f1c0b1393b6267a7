//! Commits of many rows: all or nothing, seen at once by SQL statements, finished by recovery after a crash.
//!
//! A commit stages its new rows where nothing reaches them, marks its keys shard by shard while checking that each row
//! is still what was read, draws its stamp, writes a redo record, and turns committed by one store. From then on it
//! cannot fail: the rows are swapped in slices, and a single-key write that meets a mark applies the marked version
//! first. A single-key write that meets a mark earlier dooms the commit, which then evaluates the lost rows anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arena::{CommitSlot, CommitState, Hash, Location, Lookup, Queue, Redo, RedoEntry, RowHead, RowRead};
use parking_lot::Mutex;

use crate::clock::Tick;
use crate::departure::Cause;
use crate::error::WriteError;
use crate::mutation::Mutation;
use crate::renew::Renewal;
use crate::row::RowBuf;
use crate::shard::{Kept, Mark, Shard};
use crate::store::Store;
use crate::table::Table;
use crate::write::{
    EQUAL_MAX, EVICTIONS_PER_WRITE, Expect, Expiry, NewParts, Outcome, Placed, SlotChange, Unique, check,
};

/// Rows in one commit at most: the list, its marks and its redo record take about 300 bytes a row of heap and arena.
pub const COMMIT_ROWS_MAX: usize = 4_000_000;
/// Rows swapped under one hold of a shard lock, so that a worker waits for a few microseconds only.
const SWAP_SLICE: usize = 32;
/// Commits of more rows always keep old versions: a statement should not wait for them to be swapped.
const UNKEPT_ROWS_MAX: usize = 1_024;
/// Rounds a commit waits for another that holds a unique value or a key, before it gives way.
const WAIT_ROUNDS: usize = 1_000_000;

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

/// A whole new row but for its key.
#[derive(Clone, Debug)]
pub struct NewRow {
    /// The encoded columns outside the key.
    pub payload: Vec<u8>,
    /// When it ends.
    pub expiry: Expiry,
    /// The memcached client's 32 bits.
    pub client_flags: u32,
    /// A CAS value set by a client.
    pub cas: Option<u64>,
    /// Whether it is stale, and whether somebody makes it anew.
    pub renewal: Renewal,
}

/// A commit between staging and publication, shared with whoever meets its marks.
#[derive(Debug)]
pub(crate) struct Commit {
    slot: CommitSlot,
    staged: Vec<Staged>,
    /// Drawn once all keys are marked. Relaxed: read under a shard lock that was taken after the commit turned.
    stamp: AtomicU64,
    /// Whether old versions are kept for statements. Relaxed, as above.
    keep: AtomicBool,
    /// Written before the commit turns committed.
    redo: Mutex<Option<Redo>>,
    /// Writes that a single-key write overtook.
    lost: Mutex<Vec<usize>>,
    /// The commit's number among the published; `u64::MAX` before.
    pub(crate) published: AtomicU64,
}

#[derive(Debug)]
struct Staged {
    table: Arc<Table>,
    hash: Hash,
    key: Vec<u8>,
    new: Option<Location>,
    expect: Expect,
}

/// What was found under a key when it was marked.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    location: Option<Location>,
    stamp: u64,
}

/// The rows that a commit writes: what they hold is the commit's to give.
type OwnKeys<'c> = std::collections::HashSet<(arena::TableId, &'c [u8])>;

enum Attempt {
    Committed,
    /// Doomed by a write that wanted a unique value, not a row: the same list may be tried again.
    Again,
}

impl Store {
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
            [] => Ok(self.arena.last_stamp()),
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
            Outcome::Missing if write.expect == Expect::Anything => Ok(self.arena.last_stamp()),
            // Why it is missing is asked there.
            Outcome::Missing if matches!(write.expect, Expect::Unremoved { .. }) => {
                self.commit_many(std::slice::from_ref(write), now)
            }
            _ => Err(WriteError::Lost(vec![0])),
        }
    }

    fn commit_many(&self, writes: &[Write], now: Tick) -> Result<u64, WriteError> {
        let (staged, placed) = self.stage(writes, now)?;
        let committing = self.committing.read();
        self.grow_index_for(placed.len() as u64);
        let commit = Arc::new(Commit::new(self.claim_commit(), staged));
        let order = commit.order();
        let result = self.attempts(&commit, &order, now);
        self.arena.finish_commit(commit.slot);
        if let Some(redo) = commit.redo.lock().take() {
            self.arena.free_redo(redo);
        }
        drop(placed);
        drop(committing);
        self.after_commit(writes, now);
        result
    }

    fn attempts(&self, commit: &Arc<Commit>, order: &[usize], now: Tick) -> Result<u64, WriteError> {
        if commit.has_twins(order) {
            return Err(WriteError::Key("a key stands more than once in the list".to_owned()));
        }
        loop {
            match self.attempt(commit, order, now)? {
                Attempt::Committed => return Ok(commit.stamp()),
                Attempt::Again => self.arena.reset_commit(commit.slot),
            }
        }
    }

    /// Brings every table that a commit wrote back to its `max_rows`: its own thread pays, row by row.
    fn after_commit(&self, writes: &[Write], now: Tick) {
        let mut tables: Vec<&Arc<Table>> = writes.iter().map(|write| &write.table).collect();
        tables.sort_by_key(|table| table.id());
        tables.dedup_by_key(|table| table.id());
        for table in tables {
            self.keep_to_rows(table, writes.len() + EVICTIONS_PER_WRITE, now);
        }
    }

    fn claim_commit(&self) -> CommitSlot {
        loop {
            if let Some(slot) = self.arena.claim_commit() {
                return slot;
            }
            std::thread::yield_now();
        }
    }

    /// Copies the new rows into segments, unreachable so far.
    fn stage(&self, writes: &[Write], now: Tick) -> Result<(Vec<Staged>, Vec<Placed<'_>>), WriteError> {
        let mut staged = Vec::with_capacity(writes.len());
        let mut placed = Vec::new();
        for write in writes {
            let hash = self.arena.hash(write.table.id(), &write.key);
            let mut new = None;
            if let Change::Put(row) = &write.change
                && !Self::has_ended(&write.table, row.expiry, now)
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
                new = Some(space.location);
                placed.push(space);
            }
            let table = Arc::clone(&write.table);
            staged.push(Staged { table, hash, key: write.key.clone(), new, expect: write.expect });
        }
        Ok((staged, placed))
    }

    fn staging_queue(&self, table: &Table, hash: Hash, key: &[u8]) -> Queue {
        match self.arena.lookup(hash, table.id(), key) {
            Lookup::Hit(row) => self.queue_of(row.location()),
            _ if table.state.ghost_holds(hash) => Queue::Main,
            _ => Queue::Small,
        }
    }

    fn attempt(&self, commit: &Arc<Commit>, order: &[usize], now: Tick) -> Result<Attempt, WriteError> {
        let mut before = vec![Before::default(); commit.staged.len()];
        let marked =
            self.mark_all(commit, order, &mut before, now).and_then(|()| self.reserve_unique(commit, now));
        if let Err(error) = marked {
            self.withdraw(commit, order);
            return Err(error);
        }
        let always_keep = commit.staged.len() > UNKEPT_ROWS_MAX;
        let (stamp, keep) =
            self.statements.begin_commit(usize::from(commit.slot.0), always_keep, || self.arena.next_stamp());
        commit.stamp.store(stamp, Ordering::Relaxed);
        commit.keep.store(keep, Ordering::Relaxed);
        let turned = self.turn(commit, &before, stamp);
        if turned == Ok(true) {
            self.swap_all(commit, order);
        }
        let number = self.statements.publish(usize::from(commit.slot.0));
        // Release: pairs with the Acquire in `purge_kept`.
        commit.published.store(number, Ordering::Release);
        self.withdraw(commit, order);
        match turned {
            Ok(true) => {
                self.announce_replaced(commit, &before);
                self.purge_kept();
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
        for &write in order {
            let staged = &commit.staged[write];
            let mut shard = self.lock_unmarked(staged);
            staged.table.check_current()?;
            let found = self.arena.find(&shard.token, staged.hash, staged.table.id(), &staged.key);
            let row = found.and_then(|entry| self.arena.row(entry.location));
            let live = row.as_ref().filter(|row| self.is_live(&staged.table, row.head(), now));
            if !is_expected(&shard, staged, live.map(RowRead::head)) {
                lost.push(write);
                continue;
            }
            before[write] = Before {
                location: found.map(|entry| entry.location),
                stamp: row.map_or(0, |row| row.head().stamp),
            };
            let mark = Mark { hash: staged.hash, commit: Arc::clone(commit), write };
            shard.marks.insert_unique(staged.hash.0, mark, |mark| mark.hash.0);
        }
        if lost.is_empty() { Ok(()) } else { Err(WriteError::Lost(lost)) }
    }

    /// Locks a key's shard when no other commit has marked the key.
    fn lock_unmarked(&self, staged: &Staged) -> parking_lot::MutexGuard<'_, Shard> {
        loop {
            let mut shard = self.shard(staged.hash).lock();
            let id = staged.table.id();
            let Some((other, write)) = shard.mark_of(staged.hash, id, &staged.key) else { return shard };
            if matches!(self.arena.commit_state(other.slot), CommitState::Committed) {
                self.apply(&mut shard, &other, write);
                shard.unmark(staged.hash, &other, write);
                return shard;
            }
            drop(shard);
            std::thread::yield_now();
        }
    }

    /// Speaks for the unique values of the new rows, so that none can be refused once the commit has turned.
    fn reserve_unique(&self, commit: &Arc<Commit>, now: Tick) -> Result<(), WriteError> {
        if commit.staged.iter().all(|staged| !staged.table.has_unique()) {
            return Ok(());
        }
        // By key, not by place: eviction may move a row that the commit replaces.
        let own: OwnKeys<'_> =
            commit.staged.iter().map(|staged| (staged.table.id(), staged.key.as_slice())).collect();
        let mut row = RowBuf::new();
        let mut key = Vec::new();
        for (write, staged) in commit.staged.iter().enumerate() {
            let Some(location) = staged.new.filter(|_| staged.table.has_unique()) else { continue };
            if !self.load_stable(location, &mut row) {
                continue;
            }
            for index in staged.table.state.maintained.load().iter() {
                if !index.sort_key(&row, &mut key) {
                    continue;
                }
                if !self.reserve_value(commit.slot, &staged.table, index, &key, &own, now) {
                    return Err(WriteError::Unique { index: index.name().to_owned(), write });
                }
            }
        }
        Ok(())
    }

    fn reserve_value(
        &self,
        slot: CommitSlot,
        table: &Table,
        index: &crate::index::Index,
        key: &[u8],
        own: &OwnKeys<'_>,
        now: Tick,
    ) -> bool {
        let mut row = RowBuf::new();
        for _ in 0..WAIT_ROUNDS {
            let rows = index.rows(&self.arena);
            let tree = index.tree.read();
            let mut equal = Vec::new();
            tree.equal(key, &rows, EQUAL_MAX, &mut equal);
            let taken = equal.iter().map(|&at| Location::from_bits(at)).any(|at| {
                let foreign = self.load_stable(at, &mut row) && !own.contains(&(table.id(), row.key()));
                foreign && self.holds_values(table, at, now)
            });
            if taken {
                return false;
            }
            let mut reserved = index.reserved.lock();
            match reserved.get(key) {
                None => {
                    reserved.insert(key.into(), slot);
                    return true;
                }
                // Two rows of one commit want the same value.
                Some(&other) if other == slot => return false,
                Some(_) => {}
            }
            drop(reserved);
            drop(tree);
            std::thread::yield_now();
        }
        false
    }

    /// Stamps the rows, writes the redo record, and turns the commit. False: it was doomed.
    fn turn(&self, commit: &Commit, before: &[Before], stamp: u64) -> Result<bool, WriteError> {
        let mut entries = Vec::with_capacity(commit.staged.len());
        for (staged, before) in commit.staged.iter().zip(before) {
            if let Some(location) = staged.new {
                self.arena.stamp_row(location, stamp);
            }
            entries.push(RedoEntry {
                hash: staged.hash,
                table: staged.table.id(),
                new: staged.new,
                old: before.location,
                old_stamp: before.stamp,
            });
        }
        let redo = self.write_redo(&entries)?;
        let mut held = commit.redo.lock();
        if let Some(earlier) = held.take() {
            self.arena.free_redo(earlier);
        }
        Ok(self.arena.seal_commit(commit.slot, held.insert(redo)))
    }

    fn write_redo(&self, entries: &[RedoEntry]) -> Result<Redo, WriteError> {
        loop {
            if let Some(redo) = self.arena.write_redo(entries) {
                return Ok(redo);
            }
            if !self.make_room(None) {
                return Err(WriteError::Full);
            }
        }
    }

    /// Notes for listeners which rows a published commit replaced or removed.
    fn announce_replaced(&self, commit: &Commit, before: &[Before]) {
        for (staged, _) in commit.staged.iter().zip(before).filter(|(_, before)| before.location.is_some()) {
            let key = |out: &mut Vec<u8>| out.extend_from_slice(&staged.key);
            self.departures.note(&staged.table, key, Cause::Invalidate);
        }
    }

    /// Swaps the rows in, a slice of a shard at a time.
    fn swap_all(&self, commit: &Arc<Commit>, order: &[usize]) {
        let shard_of = |&write: &usize| arena::Arena::shard_of(commit.staged[write].hash);
        for group in order.chunk_by(|a, b| shard_of(a) == shard_of(b)) {
            for slice in group.chunks(SWAP_SLICE) {
                let mut shard = self.shard(commit.staged[slice[0]].hash).lock();
                for &write in slice {
                    if shard.unmark(commit.staged[write].hash, commit, write) {
                        self.apply(&mut shard, commit, write);
                    }
                }
            }
        }
    }

    /// Puts one row of a committed commit in its place, and says so in the redo record.
    fn apply(&self, shard: &mut Shard, commit: &Arc<Commit>, write: usize) {
        let staged = &commit.staged[write];
        let found = self.arena.find(&shard.token, staged.hash, staged.table.id(), &staged.key);
        if commit.keep.load(Ordering::Relaxed) {
            self.keep(shard, commit, staged, found.map(|entry| entry.location));
        }
        let stamp = commit.stamp.load(Ordering::Relaxed);
        // Unique values are spoken for, and a full hash index forgets the row as eviction would: nothing can refuse.
        let change = SlotChange { hash: staged.hash, found, new: staged.new, stamp };
        let old = found.and_then(|entry| self.arena.row(entry.location)).map(|row| *row.head());
        let leaving = old.and_then(|old| self.leaving(&staged.table, &old, staged.new.is_none(), self.now()));
        if self.swap(shard, &staged.table, &change, Unique::Reserved).is_ok()
            && let Some(leaving) = leaving
        {
            staged.table.state.counters.count(leaving);
        }
        if let Some(redo) = &*commit.redo.lock() {
            self.arena.redo_done(redo, write);
        }
    }

    /// Copies what a key held before the commit for statements that do not see the commit.
    fn keep(&self, shard: &mut Shard, commit: &Arc<Commit>, staged: &Staged, location: Option<Location>) {
        let mut row = Box::new(RowBuf::new());
        let row = location.filter(|&location| self.load_stable(location, &mut row)).map(|_| row);
        let kept = Kept {
            hash: staged.hash,
            table: staged.table.id(),
            key: staged.key.as_slice().into(),
            commit: Arc::clone(commit),
            row,
        };
        if self.kept.add(kept.heap_bytes()) {
            shard.kept.push(kept);
        } else {
            commit.keep.store(false, Ordering::Relaxed);
            self.kept.give_up(commit.stamp());
            self.statements.stop_keeping(usize::from(commit.slot.0), commit.stamp());
        }
    }

    /// Takes marks and reserved values back, wherever they still are.
    fn withdraw(&self, commit: &Arc<Commit>, order: &[usize]) {
        for &write in order {
            let staged = &commit.staged[write];
            self.shard(staged.hash).lock().unmark(staged.hash, commit, write);
        }
        let mut tables: Vec<&Arc<Table>> = commit.staged.iter().map(|staged| &staged.table).collect();
        tables.dedup_by_key(|table| table.id());
        for table in tables {
            for index in table.state.maintained.load().iter().filter(|index| index.def().unique) {
                index.reserved.lock().retain(|_, slot| *slot != commit.slot);
            }
        }
    }

    /// Meets a mark before a single-key write: dooms a commit in staging, finishes the row of one that has turned.
    pub(crate) fn settle_mark(&self, shard: &mut Shard, table: &Table, hash: Hash, key: &[u8]) {
        if shard.marks.is_empty() {
            return;
        }
        let Some((commit, write)) = shard.mark_of(hash, table.id(), key) else { return };
        let doomed = self.arena.doom(commit.slot)
            || matches!(self.arena.commit_state(commit.slot), CommitState::Doomed);
        if doomed {
            commit.lost.lock().push(write);
        } else {
            self.apply(shard, &commit, write);
        }
        shard.unmark(hash, &commit, write);
    }
}

/// Whether a write finds what it expects under its key: a live row of this CAS value, or none.
fn is_expected(shard: &Shard, staged: &Staged, live: Option<&RowHead>) -> bool {
    match (staged.expect, live) {
        // The shard's lock was taken after the flush that matters: one acknowledged before.
        (Expect::Unremoved { since, .. }, None) => {
            !shard.removals.since(staged.hash, since)
                && staged.table.state.emptied_below.load(Ordering::Relaxed) <= since
        }
        (expect, live) => check(expect, live).is_ok(),
    }
}

impl Commit {
    fn new(slot: CommitSlot, staged: Vec<Staged>) -> Self {
        Self {
            slot,
            staged,
            stamp: AtomicU64::new(0),
            keep: AtomicBool::new(false),
            redo: Mutex::new(None),
            lost: Mutex::default(),
            published: AtomicU64::new(u64::MAX),
        }
    }

    pub(crate) fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::Relaxed)
    }

    /// Positions of the writes by shard, then hash: the order in which every commit takes its marks.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.staged.len()).collect();
        let place = |write: usize| {
            let Staged { hash, table, key, .. } = &self.staged[write];
            (arena::Arena::shard_of(*hash), hash.0, table.id(), key)
        };
        order.sort_unstable_by(|&a, &b| place(a).cmp(&place(b)));
        order
    }

    /// Whether two writes are of one key, which neither could mark after the other.
    fn has_twins(&self, order: &[usize]) -> bool {
        order.windows(2).any(|pair| {
            let [a, b] = [pair[0], pair[1]].map(|write| &self.staged[write]);
            a.hash == b.hash && a.table.id() == b.table.id() && a.key == b.key
        })
    }

    pub(crate) fn is_write_of(&self, write: usize, table: arena::TableId, key: &[u8]) -> bool {
        let staged = &self.staged[write];
        staged.table.id() == table && staged.key == key
    }
}

impl NewRow {
    pub(crate) fn parts<'a>(&self, key: &'a [u8], payload: &'a [&'a [u8]; 1]) -> NewParts<'a> {
        let Self { client_flags, expiry, cas, renewal, .. } = *self;
        NewParts { key, payload, client_flags, expiry, cas, renewal }
    }
}
