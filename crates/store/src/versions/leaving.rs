//! Index entries of removed rows, which leave together: sorted once an index, and leaf by leaf.
//!
//! A commit that removes many rows takes them out of their slots in the order of the shards, which is none that an
//! index has. So the entries are gathered, and leave when the rows of many shards have left their slots. In a smaller
//! commit each row's entries leave with the row ([`LEAVING_ROWS_MIN`](crate::limits::LEAVING_ROWS_MIN)). What holds
//! meanwhile:
//!
//! - The segment of each such row is held, so that the row can be read as long as an entry names it. Where it is being
//!   emptied, nobody can hold it any more, and the row's entries leave at once, under the lock of its shard. So do they
//!   where half of the table's memory would be held: others find room in the rest.
//! - No statement sees the difference. All of this lies between the turn and the publication of the commit. Who runs
//!   a statement then does not see the commit: the row comes by its entry, or from where its version was kept. Where
//!   nothing is kept, no statement runs.
//! - Entries of unique indexes leave at once. Who finds a key gone may take its unique values, and looks for them by
//!   their entries alone.
//! - A row that comes under the same key lies in another place, and so has other entries.
//! - A definition that brings or takes an index waits until the commit has ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::failpoint::{self, Point};
use arena::{Arenas, SegmentId};
use hashbrown::HashMap;

use crate::error::WriteError;
use crate::index::Index;
use crate::index::ordered::EntryList;
use crate::limits::{LEAVING_BYTES_MAX, LEAVING_ENTRIES_MAX, LEAVING_ROWS_MAX, LEAVING_SHARE};
use crate::table::{Table, TableState};
use crate::versions::Versions;
use crate::versions::shard::Shard;
use crate::versions::swap::{SlotChange, Unique};

/// Entries whose rows have left their slots.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    indexes: Vec<(Arc<Index>, EntryList)>,
    /// The segments of the rows, by table, and their units.
    held: Vec<(Arc<TableState>, HashMap<SegmentId, u64>)>,
    rows: usize,
    /// Bytes of the entries.
    bytes: usize,
    /// A row met the bound of what is held of its table.
    is_refused: bool,
}

impl Leaving {
    /// Whether the entries should leave before more rows do.
    pub(crate) fn is_full(&self) -> bool {
        self.is_refused || self.rows >= LEAVING_ROWS_MAX || self.bytes >= LEAVING_BYTES_MAX
    }

    /// Sees to it that the segment of a row is held; the shard's lock keeps the row in its slot. False: the segment is
    /// being emptied, or too much of the table is held.
    fn hold(&mut self, arena: &Arenas, state: &Arc<TableState>, segment: SegmentId) -> bool {
        let at = self.held.iter().position(|(own, _)| Arc::ptr_eq(own, state)).unwrap_or_else(|| {
            self.held.push((Arc::clone(state), HashMap::new()));
            self.held.len() - 1
        });
        let segments = &mut self.held[at].1;
        if !segments.contains_key(&segment) {
            let (arena, counters) = (arena.of(segment), &state.counters);
            let units = u64::from(arena.units(segment));
            let held = counters.held_units.fetch_add(units, Ordering::Relaxed) + units;
            let is_refused = held > counters.units() / LEAVING_SHARE;
            if is_refused || !arena.hold(segment) {
                self.is_refused |= is_refused;
                counters.held_units.fetch_sub(units, Ordering::Relaxed);
                return false;
            }
            segments.insert(segment, units);
        }
        self.rows += 1;
        true
    }

    /// Lets all segments go: the entries have left.
    fn release(&mut self, arena: &Arenas) {
        for (state, segments) in &mut self.held {
            let mut units = 0;
            for (segment, own) in segments.drain() {
                arena.of(segment).release(segment);
                units += own;
            }
            state.counters.held_units.fetch_sub(units, Ordering::Relaxed);
        }
        (self.rows, self.bytes, self.is_refused) = (0, 0, false);
    }

    /// The entries of one index. The same index under another definition of its table is the same; `at` is where it
    /// stands if all rows are of one table.
    fn of(&mut self, index: &Arc<Index>, at: usize) -> &mut EntryList {
        let same = |(own, _): &(Arc<Index>, EntryList)| Arc::ptr_eq(&own.tree, &index.tree);
        let known = match self.indexes.get(at) {
            Some(own) if same(own) => Some(at),
            _ => self.indexes.iter().position(same),
        };
        let at = known.unwrap_or_else(|| {
            self.indexes.push((Arc::clone(index), EntryList::default()));
            self.indexes.len() - 1
        });
        &mut self.indexes[at].1
    }
}

impl Versions {
    /// Takes a row out of its slot, and gathers its index entries. The shard is locked.
    pub(crate) fn take_out(
        &self,
        shard: &mut Shard,
        table: &Table,
        change: &SlotChange<'_>,
        leaving: &mut Leaving,
    ) -> Result<(), WriteError> {
        let Some(location) = change.found.map(|found| found.entry.location) else {
            return self.swap(shard, table, change, Unique::Reserved);
        };
        let (segment, _) = self.arena.of(location).home_of(location);
        if table.state.maintained.is_empty() || !leaving.hold(&self.arena, &table.state, segment) {
            return self.swap(shard, table, change, Unique::Reserved);
        }
        let came = self.swap_slot(shard, table, change)?;
        let maintained = table.state.maintained.load();
        self.with_copy(location, |row, key| {
            for (at, index) in maintained.iter().enumerate() {
                if index.def().unique {
                    let rows = index.rows(&self.arena);
                    index.each_entry(change.hash, row, key, |key, entry| {
                        index.tree.write().remove(key, entry, &rows);
                    });
                } else {
                    let (list, mut bytes) = (leaving.of(index, at), 0);
                    index.each_entry(change.hash, row, key, |key, entry| {
                        list.push(key, entry);
                        bytes += EntryList::bytes(key);
                    });
                    leaving.bytes += bytes;
                }
            }
        });
        self.part_with(table, change, came, Unique::Reserved);
        Ok(())
    }

    /// Takes the gathered entries out of their indexes, and lets the segments go. No lock is held.
    pub(crate) fn part_with_entries(&self, leaving: &mut Leaving) {
        if leaving.rows > 0 {
            failpoint::reach(Point::Unlinked);
        }
        for (index, list) in &mut leaving.indexes {
            list.sort();
            for some in list.chunks(LEAVING_ENTRIES_MAX) {
                index.tree.write().remove_listed(&some, &index.rows(&self.arena));
            }
            list.clear();
        }
        leaving.release(&self.arena);
    }
}
