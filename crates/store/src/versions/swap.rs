//! One version of a row in the place of another: in its slot, in every index of its table, and in the accounts.

use std::cell::RefCell;
use std::sync::Arc;

use arena::{Entry, Hash, Location, Queue, RowHead};

use crate::clock::Tick;
use crate::error::WriteError;
use crate::index::elements::ElementKeys;
use crate::index::{Index, entry_of, entry_of_element};
use crate::row::RowBuf;
use crate::row::version::Version;
use crate::table::Table;
use crate::table::removal_cause::RemovalCause;
use crate::table::removal_event::Cause;
use crate::versions::Versions;
use crate::versions::account::{balance, count};
use crate::versions::shard::Shard;

/// How a swap treats unique indexes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unique {
    /// A value held by another live row refuses the write.
    Check(Tick),
    /// A commit has spoken for the values before.
    Reserved,
}

/// What becomes of index entries when a row is swapped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Indexes {
    /// They follow it.
    Follow,
    /// Those of the old version have left, and no new one comes.
    Left,
}

/// What a slot holds, and the head of that row. Both are current while the shard is locked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) entry: Entry,
    pub(crate) head: RowHead,
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

/// Both versions of a row whose index entries change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'r> {
    pub(crate) hash: Hash,
    pub(crate) old: Option<&'r RowBuf>,
    /// Whether the old one is live: a dead row holds no unique value, another may have taken it since.
    pub(crate) held: bool,
    pub(crate) new: Option<&'r RowBuf>,
    /// Whether the new one's unique values were entered before, but for those that the old one held.
    pub(crate) checked: bool,
}

/// What a version is for the accounts of its table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    pub(crate) queue: Queue,
    pub(crate) bytes: usize,
}

impl Versions {
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
            return self.swap_bare(shard, table, change, unique);
        }
        let maintained = table.state.maintained.load();
        SWAP.with_borrow_mut(|scratch| {
            let SwapScratch { old, new, keys } = scratch;
            let load = |at: Option<Location>, row: &mut RowBuf| {
                at.is_some_and(|location| self.load_stable(location, row))
            };
            let versions = Pair {
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
            // Before the old one may be recycled, whose key it is.
            if table.replicates_rows()
                && let Some(row) = versions.new.or(versions.old)
            {
                self.tell_row(table, row.key(), versions.new);
            }
            // Last: a segment without live bytes is recycled at once, and an index entry must not outlive its row.
            self.part_with(table, change, came, unique);
            Ok(())
        })
    }

    /// The same without a look at the ordered indexes.
    pub(crate) fn swap_bare(
        &self,
        shard: &mut Shard,
        table: &Table,
        change: &SlotChange<'_>,
        unique: Unique,
    ) -> Result<(), WriteError> {
        let came = self.swap_slot(shard, table, change)?;
        self.part_with(table, change, came, unique);
        Ok(())
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
            if let Some(row) = self.arena.of(location).row(location) {
                row.copy_key(key);
            }
        };
        self.removal_events.note(table, copy_key, cause);
    }

    /// Returns what came.
    fn swap_slot(
        &self,
        shard: &mut Shard,
        table: &Table,
        change: &SlotChange<'_>,
    ) -> Result<Option<Weight>, WriteError> {
        let SlotChange { hash, ref found, ref new, stamp, .. } = *change;
        let row_count = &table.state.row_count;
        if new.is_none() {
            shard.removals.note(hash, stamp);
        }
        if let Some(Version { location, segment, queue, bytes, expiry, .. }) = *new {
            self.arena.of(location).stamp_row(location, stamp);
            row_count.note_deadline(expiry);
            if let Some(found) = found {
                self.arena.of(table.id()).replace(
                    &mut shard.token,
                    found.entry.slot,
                    hash,
                    table.id(),
                    location,
                );
            } else {
                let inserted = self.arena.of(table.id()).insert(&mut shard.token, hash, table.id(), location);
                inserted.map_err(|_| WriteError::Full)?;
            }
            row_count.change(found.as_ref().map(|found| found.head.stamp), Some(stamp));
            count(&table.state.counters.written);
            self.account_in(table, segment, bytes);
            return Ok(Some(Weight { queue, bytes }));
        }
        if let Some(found) = found {
            self.arena.of(found.entry.slot).remove(&mut shard.token, found.entry.slot);
            row_count.change(Some(found.head.stamp), None);
        }
        Ok(None)
    }

    /// Takes a row out of its slot and of every index, and counts it.
    pub(crate) fn unpublish(&self, shard: &mut Shard, table: &Table, entry: Entry, leaving: RemovalCause) {
        if !table.state.maintained.is_empty() {
            let maintained = table.state.maintained.load();
            SWAP.with_borrow_mut(|scratch| {
                let SwapScratch { old, keys, .. } = scratch;
                if self.load_stable(entry.location, old) {
                    let hash = self.arena.of(table.id()).hash(table.id(), old.key());
                    let old = Some(&*old);
                    let versions = Pair { hash, old, held: false, new: None, checked: false };
                    self.reorder(&maintained, &versions, keys);
                }
            });
        }
        self.arena.of(entry.slot).remove(&mut shard.token, entry.slot);
        let row = self.arena.of(entry.location).row(entry.location);
        let (stamp, bytes) = row.map_or((0, 0), |row| (row.head().stamp, row.head().total_bytes));
        table.state.row_count.change(Some(stamp), None);
        // A flush was announced for all rows at once.
        if let Some(cause) = leaving.cause() {
            self.announce(table, entry.location, cause);
        }
        table.state.counters.count(leaving);
        balance(table, None, Some(self.account_out(table, entry.location, bytes)));
    }

    /// Brings every index from the old version to the new one.
    fn reorder(&self, maintained: &[Arc<Index>], versions: &Pair<'_>, keys: &mut [Vec<u8>; 2]) {
        let [old_key, new_key] = keys;
        let entry = |row: &RowBuf| entry_of(versions.hash, row.location());
        for index in maintained {
            if index.is_of_elements() {
                self.reorder_elements(index, versions);
                continue;
            }
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
}

impl Versions {
    /// The same of an index over elements.
    fn reorder_elements(&self, index: &Index, versions: &Pair<'_>) {
        ELEMENTS.with_borrow_mut(|[old_keys, new_keys]| {
            let rows = index.rows(&self.arena);
            let read = |row: Option<&RowBuf>, keys: &mut ElementKeys| match row {
                Some(row) => index.element_keys(row, keys),
                None => keys.clear(),
            };
            read(versions.old, old_keys);
            read(versions.new, new_keys);
            if old_keys.len() + new_keys.len() == 0 {
                return;
            }
            let mut tree = index.tree.write();
            if let Some(old) = versions.old {
                for (ordinal, key) in old_keys.iter() {
                    let entry = entry_of_element(ordinal, old.location());
                    let kept = new_keys.ordinal(key).zip(versions.new);
                    let kept = kept.map(|(ordinal, new)| entry_of_element(ordinal, new.location()));
                    // An index that is being filled may not know the old version yet: it will meet the new one.
                    if !kept.is_some_and(|kept| tree.replace_location(key, entry, kept, &rows)) {
                        tree.remove(key, entry, &rows);
                    }
                }
            }
            if let Some(new) = versions.new {
                for (ordinal, key) in new_keys.iter().filter(|(_, key)| old_keys.ordinal(key).is_none()) {
                    tree.insert(key, entry_of_element(ordinal, new.location()), &rows);
                }
            }
        });
    }
}

#[derive(Debug, Default)]
struct SwapScratch {
    old: RowBuf,
    new: RowBuf,
    keys: [Vec<u8>; 2],
}

thread_local! {
    /// The elements of both versions.
    static ELEMENTS: RefCell<[ElementKeys; 2]> = RefCell::default();
    /// Both versions and their sort keys, kept from write to write so that a write allocates nothing.
    static SWAP: RefCell<SwapScratch> = RefCell::default();
}
