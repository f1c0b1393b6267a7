//! The rows of a commit, as they were staged, and lists of rows that are to be removed together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arena::{CommitSlot, Hash, Location, Redo, TableId};
use parking_lot::Mutex;

use crate::row::RowBuf;
use crate::row::keep::Keep;
use crate::row::request::Expect;
use crate::rows::write::Version;
use crate::table::Table;

/// A commit between staging and publication, shared with whoever meets its marks.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(super) slot: CommitSlot,
    pub(super) rows: Rows,
    /// Drawn once all keys are marked. Relaxed: read under a shard lock that was taken after the commit turned.
    pub(super) stamp: AtomicU64,
    /// Whether old versions are kept for statements. Set with Relaxed, as above, and taken back with Release.
    pub(super) keep: AtomicBool,
    /// Written before the commit turns committed.
    pub(super) redo: Mutex<Option<Redo>>,
    /// Writes that a single-key write overtook.
    pub(super) lost: Mutex<Vec<usize>>,
    /// The commit's number among the published; `u64::MAX` before.
    pub(crate) published: AtomicU64,
    /// Single-key writes wait for it instead of dooming it.
    pub(super) firm: bool,
    /// What held its rows while its list was made, and the order of that one's rows. They share the commit word.
    pub(super) held: Option<(Arc<Self>, Vec<usize>)>,
}

/// All rows of a commit. What they have in common stands once: a commit of many rows has few tables.
#[derive(Debug, Default)]
pub(super) struct Rows {
    tables: Vec<Arc<Table>>,
    /// The keys, one behind the other.
    keys: Vec<u8>,
    list: Vec<Staged>,
}

/// One row of a commit.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) hash: Hash,
    pub(super) new: Option<Location>,
    pub(super) expect: Expect,
    /// What the new version takes over when its key is marked. From then on who touches the row meets the mark.
    pub(super) keep: Keep,
    /// Among the commit's tables.
    pub(super) table: usize,
    /// Where its key begins and ends.
    key: (usize, usize),
}

impl Rows {
    pub(super) fn with_capacity(rows: usize, key_bytes: usize) -> Self {
        Self { list: Vec::with_capacity(rows), keys: Vec::with_capacity(key_bytes), ..Self::default() }
    }

    pub(super) fn push(
        &mut self,
        table: &Arc<Table>,
        hash: Hash,
        key: &[u8],
        new: Option<&Version>,
        expect: Expect,
    ) {
        let known = self.tables.iter().rposition(|known| Arc::ptr_eq(known, table));
        let table = known.unwrap_or_else(|| {
            self.tables.push(Arc::clone(table));
            self.tables.len() - 1
        });
        let begin = self.keys.len();
        self.keys.extend_from_slice(key);
        let keep = new.map_or_else(Keep::default, |new| new.keep);
        let new = new.map(|new| new.location);
        self.list.push(Staged { hash, new, expect, keep, table, key: (begin, self.keys.len()) });
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    #[inline]
    pub(super) fn row(&self, write: usize) -> &Staged {
        &self.list[write]
    }

    #[inline]
    pub(super) fn table(&self, row: &Staged) -> &Arc<Table> {
        &self.tables[row.table]
    }

    #[inline]
    pub(super) fn key(&self, row: &Staged) -> &[u8] {
        &self.keys[row.key.0..row.key.1]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Staged> {
        self.list.iter()
    }

    /// Each table that the commit writes; one under two definitions may come twice.
    pub(super) fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// Takes back the values that a commit spoke for: they are in the indexes by now, or free again.
    pub(super) fn give_back_reserved(&self, slot: CommitSlot) {
        for table in &self.tables {
            for index in table.state.maintained.load().iter().filter(|index| index.def().unique) {
                index.reserved.lock().retain(|_, of| *of != slot);
            }
        }
    }

    /// Positions of the writes by shard, then hash: the order in which every commit takes its marks.
    pub(super) fn order(&self) -> Vec<usize> {
        let place = |staged: &Staged| (arena::Arena::shard_of(staged.hash), staged.hash.0);
        let mut order: Vec<_> = self.list.iter().map(place).zip(0..).collect();
        order.sort_unstable_by(|(a, one), (b, other)| a.cmp(b).then_with(|| self.compare(*one, *other)));
        order.into_iter().map(|(_, write)| write).collect()
    }

    /// The order of two rows whose hashes are the same.
    fn compare(&self, one: usize, other: usize) -> std::cmp::Ordering {
        let place = |write: usize| {
            let staged = self.row(write);
            (self.table(staged).id(), self.key(staged), write)
        };
        place(one).cmp(&place(other))
    }

    /// Whether two writes are of one key, which neither could mark after the other.
    pub(super) fn has_twins(&self, order: &[usize]) -> bool {
        order.windows(2).any(|pair| {
            let [a, b] = [pair[0], pair[1]].map(|write| self.row(write));
            a.hash == b.hash && self.table(a).id() == self.table(b).id() && self.key(a) == self.key(b)
        })
    }
}

impl Commit {
    pub(super) fn new(slot: CommitSlot, rows: Rows) -> Self {
        Self {
            slot,
            rows,
            stamp: AtomicU64::new(0),
            keep: AtomicBool::new(false),
            redo: Mutex::new(None),
            lost: Mutex::default(),
            published: AtomicU64::new(u64::MAX),
            firm: false,
            held: None,
        }
    }

    /// Whether another one's marks are those that this commit held its rows by.
    pub(super) fn has_held(&self, other: &Arc<Self>) -> bool {
        self.held.as_ref().is_some_and(|(held, _)| Arc::ptr_eq(held, other))
    }

    pub(crate) fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::Relaxed)
    }

    pub(crate) fn is_write_of(&self, write: usize, table: TableId, key: &[u8]) -> bool {
        let staged = self.rows.row(write);
        self.rows.table(staged).id() == table && self.rows.key(staged) == key
    }
}

/// Rows of one table that are to be removed together, each as it was read.
#[derive(Debug, Default)]
pub struct Removals {
    /// The keys, one behind the other.
    keys: Vec<u8>,
    /// Where each key ends, and the CAS value of its row.
    rows: Vec<(usize, u64)>,
}

impl Removals {
    /// Adds a row.
    #[inline]
    pub fn push(&mut self, row: &RowBuf) {
        self.add(row.key(), row.cas());
    }

    fn add(&mut self, key: &[u8], cas: u64) {
        self.keys.extend_from_slice(key);
        self.rows.push((self.keys.len(), cas));
    }

    /// Bytes of all keys.
    pub(super) fn key_bytes(&self) -> usize {
        self.keys.len()
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.rows.clear();
    }

    /// The keys, and the CAS values of their rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        let mut begin = 0;
        self.rows.iter().map(move |&(end, cas)| {
            let key = &self.keys[begin..end];
            begin = end;
            (key, cas)
        })
    }

    /// Leaves of each row that was added more than once only what was read last.
    pub fn drop_twins(&mut self) {
        let all: Vec<(&[u8], u64)> = self.iter().collect();
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_unstable_by_key(|&at| (all[at].0, at));
        if order.windows(2).all(|pair| all[pair[0]].0 != all[pair[1]].0) {
            return;
        }
        let mut left = Self::default();
        for twins in order.chunk_by(|&a, &b| all[a].0 == all[b].0) {
            if let Some(&(key, cas)) = twins.last().map(|&last| &all[last]) {
                left.add(key, cas);
            }
        }
        *self = left;
    }

    /// The same without the rows at these positions, and with those read again that `read` finds.
    pub fn judged_anew<E>(
        &self,
        lost: &[usize],
        mut read: impl FnMut(&[u8]) -> Result<Option<u64>, E>,
    ) -> Result<Self, E> {
        let mut left = Self::default();
        let lost: std::collections::HashSet<usize> = lost.iter().copied().collect();
        for (at, (key, cas)) in self.iter().enumerate() {
            let cas = if lost.contains(&at) { read(key)? } else { Some(cas) };
            if let Some(cas) = cas {
                left.add(key, cas);
            }
        }
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use super::Removals;

    #[test]
    fn what_was_read_last_stands_for_a_row() {
        let mut list = Removals::default();
        for (key, cas) in [("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)] {
            list.add(key.as_bytes(), cas);
        }
        list.drop_twins();
        let left: Vec<(&[u8], u64)> = list.iter().collect();
        assert_eq!(left, [(&b"a"[..], 5), (b"b", 3), (b"c", 4)]);
        assert_eq!(list.key_bytes(), 3);
    }
}
