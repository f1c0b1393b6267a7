//! Index entries of removed rows, which leave together: sorted once an index, and leaf by leaf.
//!
//! A commit that removes rows takes them out of their slots in the order of the shards, which is none that an index
//! has. So the entries are gathered, and leave when the rows of many shards have left their slots. What holds
//! meanwhile:
//!
//! - The segment of each such row is held, so that the row can be read as long as an entry names it. Where it is being
//!   emptied, nobody can hold it any more, and the row's entries leave at once, under the lock of its shard.
//! - No statement sees the difference. All of this lies between the turn and the publication of the commit. Who runs
//!   a statement then does not see the commit: the row comes by its entry, or from where its version was kept. Where
//!   nothing is kept, no statement runs.
//! - Entries of unique indexes leave at once. Who finds a key gone may take its unique values, and looks for them by
//!   their entries alone.
//! - A row that comes under the same key lies in another place, and so has other entries.
//! - A definition that brings or takes an index waits until the commit has ended.

use std::sync::Arc;

use arena::SegmentId;
use arena::failpoint::{self, Point};

use crate::error::WriteError;
use crate::index::Index;
use crate::index::ordered::EntryList;
use crate::limits::LEAVING_ENTRIES_MAX;
use crate::table::Table;
use crate::versions::Versions;
use crate::versions::shard::Shard;
use crate::versions::swap::{SlotChange, Unique};

/// Entries whose rows have left their slots.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    indexes: Vec<(Arc<Index>, EntryList)>,
    /// The segment of each row.
    held: Vec<SegmentId>,
}

impl Leaving {
    /// How many rows have entries here.
    pub(crate) fn rows(&self) -> usize {
        self.held.len()
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
        if table.state.maintained.is_empty() || !self.arena.of(segment).hold(segment) {
            return self.swap(shard, table, change, Unique::Reserved);
        }
        leaving.held.push(segment);
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
                    let list = leaving.of(index, at);
                    index.each_entry(change.hash, row, key, |key, entry| list.push(key, entry));
                }
            }
        });
        self.part_with(table, change, came, Unique::Reserved);
        Ok(())
    }

    /// Takes the gathered entries out of their indexes, and lets the segments go. No lock is held.
    pub(crate) fn part_with_entries(&self, leaving: &mut Leaving) {
        if leaving.rows() > 0 {
            failpoint::reach(Point::Unlinked);
        }
        for (index, list) in &mut leaving.indexes {
            list.sort();
            for some in list.chunks(LEAVING_ENTRIES_MAX) {
                index.tree.write().remove_listed(&some, &index.rows(&self.arena));
            }
            list.clear();
        }
        for segment in leaving.held.drain(..) {
            self.arena.of(segment).release(segment);
        }
    }
}
