//! Lists of rows that are to be removed together.

use std::sync::Arc;

use arena::{Arenas, Hash, Place};

use crate::index::Index;
use crate::index::ordered::EntryList;
use crate::limits::{CARRIED_BYTES_MAX, LOCKED_ROWS_MAX};
use crate::row::RowBuf;
use crate::table::Table;

/// Rows whose memory a list keeps when it is cleared: a statement has one, and there may be thousands of statements.
const KEPT_ROWS: usize = 32;
/// Bytes of keys and entries whose memory it keeps.
const KEPT_BYTES: usize = 4 << 10;

/// Rows of one table that are to be removed together, each as it was read.
#[derive(Debug, Default)]
pub struct Removals {
    /// The keys, one behind the other.
    keys: Vec<u8>,
    rows: Vec<Removal>,
    carried: Carried,
}

/// The index entries of rows as they were read: who finds a row where it was read need not copy it once more to see
/// what it is called in the indexes.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// The indexes of the table when the first row was read.
    indexes: Option<Arc<Vec<Arc<Index>>>>,
    /// The entries that go from each of them.
    lists: Vec<EntryList>,
    /// How many rows they are of; fewer than the list has: they were not carried on.
    rows: usize,
    /// A key on its way into a list.
    key: Vec<u8>,
}

/// One row of the list.
#[derive(Clone, Copy, Debug)]
struct Removal {
    /// Where its key ends.
    end: usize,
    /// Its CAS value.
    cas: u64,
    /// Where it was read; none of a row that lay nowhere yet.
    place: Option<Place>,
}

impl Removals {
    /// Adds a row.
    #[inline]
    pub fn push(&mut self, row: &RowBuf) {
        self.add(row.key(), row.cas(), row.place());
    }

    /// Adds a row of a table with its index entries, as long as there are few.
    pub(super) fn push_with_entries(&mut self, table: &Table, hash: Hash, row: &RowBuf) {
        if self.carried.rows == self.rows.len() && self.rows.len() < LOCKED_ROWS_MAX {
            self.carried.take(table, hash, row);
        }
        self.push(row);
    }

    /// The index entries of all rows, if they were carried.
    pub(super) fn carried(&self) -> Option<&Carried> {
        (self.carried.rows == self.rows.len()).then_some(&self.carried)
    }

    fn add(&mut self, key: &[u8], cas: u64, place: Option<Place>) {
        self.keys.extend_from_slice(key);
        self.rows.push(Removal { end: self.keys.len(), cas, place });
    }

    /// All keys, one behind the other.
    pub(super) fn keys(&self) -> &[u8] {
        &self.keys
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Forgets all rows, and keeps memory for few.
    pub fn clear(&mut self) {
        let bytes = self.keys.capacity() + self.carried.bytes();
        if self.rows.capacity() > KEPT_ROWS || bytes > KEPT_BYTES {
            *self = Self::default();
        }
        self.keys.clear();
        self.rows.clear();
        self.carried.clear();
    }

    /// The keys, and the CAS values of their rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.each().map(|(key, cas, _)| (key, cas))
    }

    /// The same, and where each row was read.
    pub(super) fn each(&self) -> impl ExactSizeIterator<Item = (&[u8], u64, Option<Place>)> {
        let mut begin = 0;
        self.rows.iter().map(move |&Removal { end, cas, place }| {
            let key = &self.keys[begin..end];
            begin = end;
            (key, cas, place)
        })
    }

    /// Leaves of each row that was added more than once only what was read last.
    pub fn drop_twins(&mut self) {
        let all: Vec<(&[u8], u64, Option<Place>)> = self.each().collect();
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_unstable_by_key(|&at| (all[at].0, at));
        if order.windows(2).all(|pair| all[pair[0]].0 != all[pair[1]].0) {
            return;
        }
        let mut left = Self::default();
        for twins in order.chunk_by(|&a, &b| all[a].0 == all[b].0) {
            if let Some(&(key, cas, place)) = twins.last().map(|&last| &all[last]) {
                left.add(key, cas, place);
            }
        }
        *self = left;
    }

    /// The same without the rows at these positions, and with those that `read` finds under their keys, and copies.
    pub fn judged_anew<E>(
        &self,
        lost: &[usize],
        row: &mut RowBuf,
        mut read: impl FnMut(&[u8], &mut RowBuf) -> Result<bool, E>,
    ) -> Result<Self, E> {
        let mut left = Self::default();
        let lost: std::collections::HashSet<usize> = lost.iter().copied().collect();
        for (at, (key, cas, place)) in self.each().enumerate() {
            if !lost.contains(&at) {
                left.add(key, cas, place);
            } else if read(key, row)? {
                left.push(row);
            }
        }
        Ok(left)
    }
}

impl Carried {
    fn take(&mut self, table: &Table, hash: Hash, row: &RowBuf) {
        if self.rows == 0 {
            self.begin(table);
        }
        let Some(indexes) = &self.indexes else { return };
        for (index, list) in indexes.iter().zip(&mut self.lists) {
            index.each_entry(hash, row, &mut self.key, |key, entry| list.push(key, entry));
        }
        if self.bytes() <= CARRIED_BYTES_MAX {
            self.rows += 1;
        }
    }

    fn bytes(&self) -> usize {
        self.lists.iter().map(EntryList::bytes).sum()
    }

    fn begin(&mut self, table: &Table) {
        let indexes = arc_swap::Guard::into_inner(table.state.maintained.load());
        self.lists.resize_with(indexes.len(), EntryList::default);
        self.indexes = Some(indexes);
    }

    fn clear(&mut self) {
        self.lists.iter_mut().for_each(EntryList::clear);
        (self.indexes, self.rows) = (None, 0);
    }

    /// Whether the table has the same indexes still. No definition changes them while a commit is under way.
    pub(super) fn is_of(&self, table: &Table) -> bool {
        self.indexes.as_ref().is_some_and(|own| Arc::ptr_eq(own, &table.state.maintained.load()))
    }

    /// Takes the entries out of the indexes. The shards of their rows are locked.
    pub(super) fn leave(&self, arena: &Arenas) {
        for (index, list) in self.indexes.iter().flat_map(|indexes| indexes.iter()).zip(&self.lists) {
            index.tree.write().remove_listed(list, &index.rows(arena));
        }
    }
}

#[cfg(test)]
mod tests {
    use arena::{Location, Place};

    use super::Removals;

    #[test]
    fn what_was_read_last_stands_for_a_row() {
        let mut list = Removals::default();
        for (key, cas) in [("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)] {
            let place = Place { location: Location::from_bits(8 * cas), generation: 0 };
            list.add(key.as_bytes(), cas, Some(place));
        }
        list.drop_twins();
        let left: Vec<(&[u8], u64)> = list.iter().collect();
        assert_eq!(left, [(&b"a"[..], 5), (b"b", 3), (b"c", 4)]);
        assert_eq!(list.keys(), b"abc");
        assert!(
            list.each().all(|(_, cas, place)| place.is_some_and(|place| place.location.bits() == 8 * cas))
        );
    }
}
