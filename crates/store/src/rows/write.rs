//! Writes of one row by its key: the path of memcached's commands and of single-row SQL statements.
//!
//! A row is copied into its segment first, where nothing reaches it, and published under the lock of its index shard
//! by one store of one slot word. Space once reserved is held against recycling until the `Placed` guard is dropped.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::{Entry, Hash, Location, Lookup, Queue, RowHead, RowParts, Seen, SegmentId, SlotId};

use crate::clock::Tick;
use crate::error::WriteError;
use crate::index::{Index, entry_of};
use crate::mutation::Mutation;
use crate::row::keep::Keep;
use crate::row::{NEVER, RowBuf};
use crate::store::Store;
use crate::table::Table;
use crate::table::departure::Cause;
use crate::table::leaving::Leaving;
use crate::table::queue::{SegmentSize, place, ttl_class};
use crate::time::renew::Renewal;
use crate::versions::shard::Shard;

use crate::row::request::{Expect, Expiry, Outcome};

/// Rows that a single write evicts at most to bring a table back to `max_rows`; the rest is the cleaner's.
pub(crate) const EVICTIONS_PER_WRITE: usize = 4;
/// Rows under one value of a unique index that a check looks at: one is live, the others expired and not yet cleared.
pub(crate) const EQUAL_MAX: usize = 64;
/// Attempts to append to an open segment before the write is refused; each failure means that another writer
/// filled one meanwhile.
const RESERVE_ATTEMPTS: usize = 64;

/// How a swap treats unique indexes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unique {
    /// A value held by another live row refuses the write.
    Check(Tick),
    /// A commit has spoken for the values before.
    Reserved,
}

/// What a slot holds, and the head of that row. Both are current while the shard is locked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) entry: Entry,
    pub(crate) head: RowHead,
}

/// What a look without a lock found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance {
    /// The queue for the new version.
    pub(crate) queue: Queue,
    /// The version that was there.
    pub(crate) seen: Option<Seen>,
}

/// The key that is written or removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'k> {
    pub(crate) hash: Hash,
    pub(crate) key: &'k [u8],
    /// Where a glance met its row.
    pub(crate) seen: Option<Seen>,
    /// A copy of that row.
    pub(crate) copy: Option<&'k RowBuf>,
}

/// Both versions of a row whose index entries change.
#[derive(Clone, Copy, Debug)]
struct Versions<'r> {
    hash: Hash,
    old: Option<&'r RowBuf>,
    /// Whether the old one is live: a dead row holds no unique value, another may have taken it since.
    held: bool,
    new: Option<&'r RowBuf>,
    /// Whether the new one's unique values were entered before, but for those that the old one held.
    checked: bool,
}

/// The slot of one key: what it holds, and what it is to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotChange<'r> {
    pub(crate) hash: Hash,
    pub(crate) found: Option<Found>,
    /// A copy of it, where there is one already.
    pub(crate) copy: Option<&'r RowBuf>,
    /// Whether what it holds is a live row.
    pub(crate) was_live: bool,
    pub(crate) new: Option<Version>,
    /// The stamp of the new version.
    pub(crate) stamp: u64,
}

/// A version in its place, to which nothing leads yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    pub(crate) location: Location,
    pub(crate) segment: SegmentId,
    pub(crate) queue: Queue,
    /// Bytes that it takes.
    pub(crate) bytes: usize,
    /// Its expiry word.
    pub(crate) expiry: Tick,
    /// What it takes over from the row that it replaces.
    pub(crate) keep: Keep,
}

/// What a version is for the accounts of its table.
#[derive(Clone, Copy, Debug)]
struct Weight {
    queue: Queue,
    bytes: usize,
}

/// A row to be written, in its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewParts<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) payload: &'a [&'a [u8]],
    pub(crate) client_flags: u32,
    pub(crate) expiry: Expiry,
    pub(crate) cas: Option<u64>,
    pub(crate) renewal: Renewal,
}

/// Space in a segment that this writer holds until it drops the guard.
#[derive(Debug)]
pub(crate) struct Placed<'s> {
    store: &'s Store,
    pub(crate) version: Version,
}

impl Placed<'_> {
    /// What it holds; from here on the caller gives it back.
    pub(crate) fn keep(self) -> Version {
        std::mem::ManuallyDrop::new(self).version
    }
}

impl Drop for Placed<'_> {
    fn drop(&mut self) {
        self.store.arena.release(self.version.segment);
    }
}

impl Store {
    /// Writes one row if what is there meets the expectation.
    pub(crate) fn put(
        &self,
        table: &Table,
        new: &NewParts<'_>,
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        if Self::has_ended(table, new.expiry, now) {
            return self.remove_for_expired(table, new.key, expect, now);
        }
        let hash = self.arena.hash(table.id(), new.key);
        match self.glance(table, hash, new.key, expect, now) {
            Ok(Glance { queue, seen }) => {
                let target = Target { hash, key: new.key, seen, copy: None };
                self.put_at(table, &target, queue, new, expect, now)
            }
            Err(outcome) => Ok(outcome),
        }
    }

    /// Writes one row if what is there meets the expectation. A glance said where it goes, and it is not to end at
    /// once.
    pub(crate) fn put_at(
        &self,
        table: &Table,
        target: &Target<'_>,
        queue: Queue,
        new: &NewParts<'_>,
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        self.checkpoint(now);
        self.await_unique(table);
        let placed = self.place(table, queue, new, false, now)?;
        let outcome = self.publish(table, target, Some(placed.version), expect, now);
        drop(placed);
        self.after_write(table, now);
        outcome
    }

    /// Removes the row under a key if it meets the expectation.
    pub fn delete(
        &self,
        table: &Table,
        key: &[u8],
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        let hash = self.arena.hash(table.id(), key);
        self.publish(table, &Target { hash, key, seen: None, copy: None }, None, expect, now)
    }

    /// A write whose deadline has passed leaves no row behind, and answers as if it had been stored.
    pub(crate) fn remove_for_expired(
        &self,
        table: &Table,
        key: &[u8],
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        match (self.delete(table, key, expect, now)?, expect) {
            (Outcome::Missing, Expect::Anything | Expect::Absent) => {
                Ok(Outcome::Done(self.arena.last_stamp()))
            }
            (outcome, _) => Ok(outcome),
        }
    }

    /// Looks without a lock: where the new version goes, or the outcome when the expectation already fails.
    pub(crate) fn glance(
        &self,
        table: &Table,
        hash: Hash,
        key: &[u8],
        expect: Expect,
        now: Tick,
    ) -> Result<Glance, Outcome> {
        if let Lookup::Hit(row) = self.arena.lookup_place(hash, table.id(), key) {
            let queue = self.arena.queue_of(&row);
            if row.is_valid() {
                if self.is_live(table, row.head(), now) {
                    check(expect, Some(row.head()))?;
                }
                return Ok(Glance { queue, seen: row.seen() });
            }
        }
        // A doubtful answer is settled under the lock.
        let wanted = table.state.ghost_holds(hash);
        Ok(Glance { queue: if wanted { Queue::Main } else { Queue::Small }, seen: None })
    }

    /// Writes a new row into a segment of its table, unreachable so far.
    pub(crate) fn place(
        &self,
        table: &Table,
        queue: Queue,
        new: &NewParts<'_>,
        multi: bool,
        now: Tick,
    ) -> Result<Placed<'_>, WriteError> {
        // A writer that still holds a dropped table takes no more room for it, and nobody writes by old rules.
        table.check_current()?;
        self.place_within(self.row_bytes_max, table, queue, new, multi, now)
    }

    /// Writes another copy of a row that is there. It was written by the rules of its time: neither a change of the
    /// definition nor a lower limit of a row's size since then concerns it.
    pub(crate) fn place_copy(
        &self,
        table: &Table,
        queue: Queue,
        copy: &NewParts<'_>,
        multi: bool,
        now: Tick,
    ) -> Result<Placed<'_>, WriteError> {
        if table.is_gone() {
            return Err(WriteError::TableGone);
        }
        self.place_within(usize::MAX, table, queue, copy, multi, now)
    }

    fn place_within(
        &self,
        limit: usize,
        table: &Table,
        queue: Queue,
        new: &NewParts<'_>,
        multi: bool,
        now: Tick,
    ) -> Result<Placed<'_>, WriteError> {
        let expiry = new.expiry.word();
        let parts = RowParts {
            table: table.id(),
            multi,
            stale: new.renewal.stale,
            expiry,
            lease: new.renewal.lease.or_else(|| table.renews().then_some(0)),
            client_flags: new.client_flags,
            cas: new.cas,
            key: new.key,
            payload: new.payload,
        };
        if new.key.len() > arena::MAX_KEY_BYTES {
            let limit = arena::MAX_KEY_BYTES;
            return Err(WriteError::Key(format!("key is {} bytes; the limit is {limit}", new.key.len())));
        }
        let bytes = parts.total_bytes();
        if bytes > limit {
            return Err(WriteError::TooLarge { bytes, limit });
        }
        let mut placed = self.reserve(table, queue, ttl_class(expiry, now), bytes)?;
        placed.version.expiry = expiry;
        placed.version.keep = Keep::of(new);
        self.arena.write_row(placed.version.location, &parts);
        self.note_deadline(placed.version.segment, expiry);
        Ok(placed)
    }

    /// Notes a row's expiry word for its segment, which comes back whole when the last deadline has passed.
    pub(crate) fn note_deadline(&self, segment: SegmentId, word: Tick) {
        self.arena.note_expiry(segment, if word == NEVER { 0 } else { word });
    }

    /// Reserves space in the open segment of the row's group, for a row that is not said to end.
    pub(crate) fn reserve(
        &self,
        table: &Table,
        queue: Queue,
        class: u8,
        bytes: usize,
    ) -> Result<Placed<'_>, WriteError> {
        let size = SegmentSize::of(bytes);
        for _ in 0..RESERVE_ATTEMPTS {
            if let SegmentSize::Own(_) = size {
                return self.reserve_own(table, queue, class, bytes);
            }
            let open = table.state.queues.open(queue, class, size);
            if let Some(segment) = open
                && let Some(location) = self.arena.reserve(segment, bytes)
            {
                let version = Version { location, segment, queue, bytes, expiry: 0, keep: Keep::default() };
                let placed = Placed { store: self, version };
                if table.state.queues.open(queue, class, size) == open {
                    return Ok(placed);
                }
                // The segment was sealed, and perhaps given away, between the look and the reservation.
                self.arena.write_filler(location, bytes);
                continue;
            }
            self.renew_open(table, queue, class, bytes, open)?;
        }
        Err(WriteError::Full)
    }

    fn reserve_own(
        &self,
        table: &Table,
        queue: Queue,
        class: u8,
        bytes: usize,
    ) -> Result<Placed<'_>, WriteError> {
        let segment = self.allocate(table, queue, class, bytes)?;
        let Some(location) = self.arena.reserve(segment, bytes) else {
            self.discard(table, queue, segment);
            return Err(WriteError::Full);
        };
        let version = Version { location, segment, queue, bytes, expiry: 0, keep: Keep::default() };
        let placed = Placed { store: self, version };
        self.seal(&mut table.state.queues.lock(), segment);
        Ok(placed)
    }

    /// Replaces, inserts or removes the row of a key in one step under its shard's lock.
    pub(crate) fn publish(
        &self,
        table: &Table,
        &Target { hash, key, seen, copy }: &Target<'_>,
        mut new: Option<Version>,
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        let mut shard = self.shard(hash).lock();
        let _mutation = Mutation;
        self.settle_mark(&mut shard, table, hash, key);
        // A row may go by any rules.
        if new.is_some() {
            table.check_current()?;
        } else if table.is_gone() {
            return Err(WriteError::TableGone);
        }
        let (found, copy) = match seen.and_then(|seen| self.find_seen(&shard, &seen)) {
            Some(found) => (Some(found), copy),
            None => (self.find_row(&shard, table, hash, key), None),
        };
        let live = found.as_ref().map(|found| &found.head).filter(|head| self.is_live(table, head, now));
        if let Err(outcome) = check(expect, live) {
            return Ok(outcome);
        }
        if let (Some(new), Some(head)) = (&mut new, live)
            && new.keep.is_some()
            && !self.take_over(new, head)
        {
            return Ok(Outcome::Exists);
        }
        let was_live = live.is_some();
        if new.is_none() && !was_live {
            // It may have been evicted, and whoever removes a row that is not there wants it away all the same.
            shard.removals.note(hash, self.arena.last_stamp());
            if let Some(Found { entry, head }) = found
                && let Some(dead) = self.dead(table, &head, now)
            {
                self.unpublish(&mut shard, table, entry, dead);
            }
            return Ok(Outcome::Missing);
        }
        let leaving = match (was_live, &found) {
            (true, _) => new.is_none().then_some(Leaving::Invalidated),
            (false, Some(found)) => self.dead(table, &found.head, now),
            (false, None) => None,
        };
        let stamp = self.arena.next_stamp();
        let change = SlotChange { hash, found, copy, was_live, new, stamp };
        self.swap(&mut shard, table, &change, Unique::Check(now))?;
        if let Some(leaving) = leaving {
            table.state.counters.count(leaving);
        }
        Ok(Outcome::Done(stamp))
    }

    /// What the slot of a key holds.
    pub(crate) fn find_row(&self, shard: &Shard, table: &Table, hash: Hash, key: &[u8]) -> Option<Found> {
        let (entry, head) = self.arena.find_row(&shard.token, hash, table.id(), key)?;
        Some(Found { entry, head })
    }

    /// What a glance saw, if the slot of the key still holds it.
    fn find_seen(&self, shard: &Shard, seen: &Seen) -> Option<Found> {
        let (entry, head) = self.arena.find_seen(&shard.token, seen)?;
        Some(Found { entry, head })
    }

    /// The slot of a row that was copied before the lock was taken, if it still names that very version. The place
    /// alone proves nothing: a later version of the key may have been written there since.
    pub(crate) fn find_copied(&self, shard: &Shard, hash: Hash, row: &RowBuf) -> Option<SlotId> {
        let slot = self.arena.find_location(&shard.token, hash, row.location())?;
        self.arena.row(row.location()).is_some_and(|there| row.is_copy_of(&there)).then_some(slot)
    }

    /// The head of the row at a location if it is live. The caller's shard lock keeps the row where it is.
    pub(crate) fn live_head(&self, table: &Table, location: Location, now: Tick) -> Option<RowHead> {
        let head = *self.arena.row(location)?.head();
        self.is_live(table, &head, now).then_some(head)
    }

    /// Puts a new version in the place of an old one, in the index slot and in every ordered index. Only a unique index
    /// and a full hash index can refuse, and then nothing has changed.
    pub(crate) fn swap(
        &self,
        shard: &mut Shard,
        table: &Table,
        change: &SlotChange<'_>,
        unique: Unique,
    ) -> Result<(), WriteError> {
        if table.state.maintained.is_empty() {
            let came = self.swap_slot(shard, table, change)?;
            self.part_with(table, change, came, unique);
            return Ok(());
        }
        let maintained = table.state.maintained.load();
        SWAP.with_borrow_mut(|scratch| {
            let SwapScratch { old, new, keys } = scratch;
            let load = |at: Option<Location>, row: &mut RowBuf| {
                at.is_some_and(|location| self.load_stable(location, row))
            };
            let versions = Versions {
                hash: change.hash,
                old: change
                    .copy
                    .or_else(|| load(change.found.map(|found| found.entry.location), old).then_some(&*old)),
                held: change.was_live,
                new: load(change.new.map(|new| new.location), new).then_some(&*new),
                checked: matches!(unique, Unique::Check(_)),
            };
            let taken = match unique {
                Unique::Check(now) => self.take_unique(table, &maintained, &versions, now, keys)?,
                Unique::Reserved => 0,
            };
            let came = match self.swap_slot(shard, table, change) {
                Ok(came) => came,
                Err(error) => {
                    self.give_back(&maintained[..taken], &versions, &mut keys[1]);
                    return Err(error);
                }
            };
            self.reorder(&maintained, &versions, keys);
            // Last: a segment without live bytes is recycled at once, and an index entry must not outlive its row.
            self.part_with(table, change, came, unique);
            Ok(())
        })
    }

    /// The version that was there is dead from here on, and the table's account holds what `came` in its place.
    fn part_with(&self, table: &Table, change: &SlotChange<'_>, came: Option<Weight>, unique: Unique) {
        let mut went = None;
        if let Some(Found { entry, head }) = &change.found {
            // Somebody was refreshing it, and others may wait for that.
            if table.id().is_shared() && head.lease != 0 {
                self.arena.wake(change.hash);
            }
            // A commit announces its rows itself, when it has been published.
            if matches!(unique, Unique::Check(_)) {
                self.announce(table, entry.location, Cause::Invalidate);
            }
            went = Some(self.account_out(table, entry.location, head.total_bytes));
        }
        balance(table, came, went);
    }

    /// Notes for listeners that the row at a location left. Its bytes still stand there.
    fn announce(&self, table: &Table, location: Location, cause: Cause) {
        let copy_key = |key: &mut Vec<u8>| {
            if let Some(row) = self.arena.row(location) {
                row.copy_key(key);
            }
        };
        self.departures.note(table, copy_key, cause);
    }

    /// Returns what came.
    fn swap_slot(
        &self,
        shard: &mut Shard,
        table: &Table,
        change: &SlotChange<'_>,
    ) -> Result<Option<Weight>, WriteError> {
        let SlotChange { hash, ref found, ref new, stamp, .. } = *change;
        let census = &table.state.census;
        if new.is_none() {
            shard.removals.note(hash, stamp);
        }
        if let Some(Version { location, segment, queue, bytes, expiry, .. }) = *new {
            self.arena.stamp_row(location, stamp);
            census.note_deadline(expiry);
            if let Some(found) = found {
                self.arena.replace(&mut shard.token, found.entry.slot, hash, table.id(), location);
            } else {
                let inserted = self.arena.insert(&mut shard.token, hash, table.id(), location);
                inserted.map_err(|_| WriteError::Full)?;
            }
            census.change(found.as_ref().map(|found| found.head.stamp), Some(stamp));
            count(&table.state.counters.written);
            self.account_in(table, segment, bytes);
            return Ok(Some(Weight { queue, bytes }));
        }
        if let Some(found) = found {
            self.arena.remove(&mut shard.token, found.entry.slot);
            census.change(Some(found.head.stamp), None);
        }
        Ok(None)
    }

    /// Takes a row out of its slot and of every index, and counts it.
    pub(crate) fn unpublish(&self, shard: &mut Shard, table: &Table, entry: Entry, leaving: Leaving) {
        if !table.state.maintained.is_empty() {
            let maintained = table.state.maintained.load();
            SWAP.with_borrow_mut(|scratch| {
                let SwapScratch { old, keys, .. } = scratch;
                if self.load_stable(entry.location, old) {
                    let hash = self.arena.hash(table.id(), old.key());
                    let old = Some(&*old);
                    let versions = Versions { hash, old, held: false, new: None, checked: false };
                    self.reorder(&maintained, &versions, keys);
                }
            });
        }
        self.arena.remove(&mut shard.token, entry.slot);
        let row = self.arena.row(entry.location);
        let (stamp, bytes) = row.map_or((0, 0), |row| (row.head().stamp, row.head().total_bytes));
        table.state.census.change(Some(stamp), None);
        // A flush was announced for all rows at once.
        if let Some(cause) = leaving.cause() {
            self.announce(table, entry.location, cause);
        }
        table.state.counters.count(leaving);
        balance(table, None, Some(self.account_out(table, entry.location, bytes)));
    }

    /// Copies a row that a lock of the caller's keeps in its place.
    pub(crate) fn load_stable(&self, location: Location, row: &mut RowBuf) -> bool {
        self.arena.row(location).is_some_and(|read| row.load(&read))
    }

    /// Enters the new row into the unique indexes first, for they may refuse. Returns how many indexes were passed.
    fn take_unique(
        &self,
        table: &Table,
        maintained: &[Arc<Index>],
        versions: &Versions<'_>,
        now: Tick,
        keys: &mut [Vec<u8>; 2],
    ) -> Result<usize, WriteError> {
        let Versions { hash, old, held, new: Some(new), .. } = *versions else { return Ok(0) };
        for (at, index) in maintained.iter().enumerate() {
            let [old_key, new_key] = keys;
            if !index.def().unique || !index.sort_key(new, new_key) {
                continue;
            }
            if let Some(old) = old.filter(|_| held)
                && index.sort_key(old, old_key)
                && old_key == new_key
            {
                continue;
            }
            let entry = entry_of(hash, new.location());
            if !self.enter_unique(table, index, new_key, old.map(RowBuf::location), entry, now) {
                self.give_back(&maintained[..at], versions, &mut keys[1]);
                return Err(WriteError::Unique { index: index.name().to_owned(), write: 0 });
            }
        }
        Ok(maintained.len())
    }

    /// Checks and enters a unique value under one lock. `own` is the version being replaced.
    fn enter_unique(
        &self,
        table: &Table,
        index: &Index,
        key: &[u8],
        own: Option<Location>,
        entry: u64,
        now: Tick,
    ) -> bool {
        let location = Location::from_bits(entry);
        let rows = index.rows(&self.arena);
        let mut tree = index.tree.write();
        let mut equal = Vec::new();
        tree.equal(key, &rows, EQUAL_MAX, &mut equal);
        let taken = equal
            .iter()
            .map(|&other| Location::from_bits(other))
            .any(|other| Some(other) != own && other != location && self.holds_values(table, other, now));
        if taken || !self.claim_reserved(index, key) {
            return false;
        }
        tree.insert(key, entry, &rows);
        true
    }

    /// Whether no commit has spoken for the value. One still in staging loses it: a single-key write never waits.
    pub(crate) fn claim_reserved(&self, index: &Index, key: &[u8]) -> bool {
        let mut reserved = index.reserved.lock();
        let Some(&slot) = reserved.get(key) else { return true };
        if !self.arena.doom(slot) {
            return false;
        }
        reserved.remove(key);
        true
    }

    /// Whether the row behind an index entry holds its unique values: it is live, or its writer entered it and is
    /// about to stamp and publish it.
    pub(crate) fn holds_values(&self, table: &Table, location: Location, now: Tick) -> bool {
        self.arena
            .row(location)
            .is_some_and(|row| row.head().stamp == 0 || self.is_live(table, row.head(), now))
    }

    /// Takes the new row out of the unique indexes that it was entered into.
    fn give_back(&self, passed: &[Arc<Index>], versions: &Versions<'_>, key: &mut Vec<u8>) {
        let Some(new) = versions.new else { return };
        let entry = entry_of(versions.hash, new.location());
        for index in passed {
            if index.def().unique && index.sort_key(new, key) {
                index.tree.write().remove(key, entry, &index.rows(&self.arena));
            }
        }
    }

    /// Brings every index from the old version to the new one.
    fn reorder(&self, maintained: &[Arc<Index>], versions: &Versions<'_>, keys: &mut [Vec<u8>; 2]) {
        let [old_key, new_key] = keys;
        let entry = |row: &RowBuf| entry_of(versions.hash, row.location());
        for index in maintained {
            let rows = index.rows(&self.arena);
            let [old, new] = [versions.old, versions.new].map(|row| row.filter(|row| index.holds(row)));
            let same = old.zip(new).is_some_and(|(old, new)| index.knows_alike(old, new));
            let checked = new.is_some_and(|new| index.sort_key(new, new_key)) && versions.checked;
            if let Some(old) = old.filter(|_| !same) {
                index.sort_key(old, old_key);
            }
            let equal = same || (old.is_some() && new.is_some() && old_key == new_key);
            let (old, new) = (old.map(entry), new.map(entry));
            let mut tree = index.tree.write();
            if equal
                && (versions.held || !checked)
                && let (Some(old), Some(new)) = (old, new)
            {
                // An index that is being filled may not know the old version yet.
                if !tree.replace_location(new_key, old, new, &rows) && checked {
                    tree.insert(new_key, new, &rows);
                }
                continue;
            }
            if let Some(old) = old {
                tree.remove(if same { new_key } else { old_key }, old, &rows);
            }
            // A value that the old version held was not entered, and it is the same.
            if let Some(new) = new.filter(|_| !checked) {
                tree.insert(new_key, new, &rows);
            }
        }
    }

    pub(crate) fn queue_of(&self, location: Location) -> Queue {
        self.arena.home_of(location).1
    }

    /// What lies at a location that nothing leads to yet, and that its writer holds.
    pub(crate) fn version_at(&self, location: Location) -> Version {
        let (segment, queue) = self.arena.home_of(location);
        let row = self.arena.row(location);
        let (expiry, bytes) = row.map_or((0, 0), |row| (row.head().expiry, row.head().total_bytes));
        Version { location, segment, queue, bytes, expiry, keep: Keep::default() }
    }

    /// Counts a version's bytes as alive. The caller holds the row's shard.
    fn account_in(&self, table: &Table, segment: SegmentId, bytes: usize) {
        self.arena.add_live(segment, bytes);
        if let SegmentSize::Own(_) = SegmentSize::of(bytes) {
            // Its run was sealed when it was taken, and was noted as dead as a whole until now.
            self.note_dead(table, segment);
        }
    }

    /// Counts them as dead. The caller holds the row's shard, and nothing leads to the row any more.
    fn account_out(&self, table: &Table, location: Location, bytes: usize) -> Weight {
        // Asked before the bytes die: without live ones the segment may be recycled, and be another queue's.
        let (segment, queue) = self.arena.home_of(location);
        self.arena.note_gone(location);
        let live = self.arena.sub_live(segment, bytes);
        self.note_death(table, segment, live + bytes, live);
        Weight { queue, bytes }
    }

    /// The accounts of a version that stands in another place from here on.
    pub(crate) fn account_moved(&self, table: &Table, from: Location, to: &Version) {
        self.account_in(table, to.segment, to.bytes);
        let came = Weight { queue: to.queue, bytes: to.bytes };
        let bytes = self.arena.row(from).map_or(0, |row| row.head().total_bytes);
        balance(table, Some(came), Some(self.account_out(table, from, bytes)));
    }

    /// What a writer owes after its write, within a bound: a step of index growth, and the table's own row limit.
    pub(crate) fn after_write(&self, table: &Table, now: Tick) {
        self.grow_index();
        self.keep_to_rows(table, EVICTIONS_PER_WRITE, now);
    }

    /// Evicts up to `rows` rows of a table that is above its `max_rows`.
    pub(crate) fn keep_to_rows(&self, table: &Table, rows: usize, now: Tick) {
        let most = table.state.limits.rows_max.load(Ordering::Relaxed);
        // Mostly there is no limit, and nothing to add up.
        if most < u64::MAX && table.rows() > most && !self.is_unsettled() {
            self.evict_rows(table, rows, now);
        }
    }
}

#[derive(Debug, Default)]
struct SwapScratch {
    old: RowBuf,
    new: RowBuf,
    keys: [Vec<u8>; 2],
}

thread_local! {
    /// Both versions and their sort keys, kept from write to write so that a write allocates nothing.
    static SWAP: RefCell<SwapScratch> = RefCell::default();
}

/// Brings a table's account up to date: a version came, or went, or one took another's place, which mostly changes
/// little.
fn balance(table: &Table, came: Option<Weight>, went: Option<Weight>) {
    let counters = &table.state.counters;
    let queues = [came, went].map(|weight| weight.map(|weight| weight.queue));
    if queues[0] != queues[1] {
        if let Some(queue) = queues[0] {
            counters.rows[place(queue)].fetch_add(1, Ordering::Relaxed);
        }
        if let Some(queue) = queues[1] {
            counters.rows[place(queue)].fetch_sub(1, Ordering::Relaxed);
        }
    }
    let [more, less] = [came, went].map(|weight| weight.map_or(0, |weight| weight.bytes as u64));
    if more != less {
        // Wraps where less came than went, and so does the sum.
        counters.bytes.fetch_add(more.wrapping_sub(less), Ordering::Relaxed);
    }
}

pub(crate) fn count(counter: &std::sync::atomic::AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Compares what is there, a live row or nothing, with what is expected.
#[inline]
pub(crate) fn check(expect: Expect, live: Option<&RowHead>) -> Result<(), Outcome> {
    match (expect, live) {
        (Expect::Absent, Some(_)) => Err(Outcome::Exists),
        (Expect::Anything | Expect::Absent, None) => Ok(()),
        (_, None) => Err(Outcome::Missing),
        (Expect::Lease { cas, lease }, Some(head)) if (cas, lease) != (head.cas(), head.lease) => {
            Err(Outcome::Exists)
        }
        (Expect::Version(wanted) | Expect::Unremoved { cas: wanted, .. }, Some(head))
            if wanted != head.cas() =>
        {
            Err(Outcome::Exists)
        }
        (Expect::Untouched { cas, expiry, lease }, Some(head))
            if (cas, expiry) != (head.cas(), head.expiry)
                || lease.is_some_and(|lease| lease != head.lease) =>
        {
            Err(Outcome::Exists)
        }
        (Expect::Unremoved { expiry, lease, .. }, Some(head))
            if expiry.is_some_and(|expiry| expiry != head.expiry)
                || lease.is_some_and(|lease| lease != head.lease) =>
        {
            Err(Outcome::Exists)
        }
        (Expect::Stamp(wanted), Some(head)) if wanted != head.stamp => Err(Outcome::Exists),
        (Expect::Unclaimed { stamp, lease }, Some(head)) if (stamp, lease) != (head.stamp, head.lease) => {
            Err(Outcome::Exists)
        }
        _ => Ok(()),
    }
}
