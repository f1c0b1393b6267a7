//! A commit of many rows as others meet it: its rows, as they were staged, and how far it has come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arena::{CommitSlot, Hash, Location, Place, Redo, TableId};
use parking_lot::Mutex;

use crate::row::request::Expect;
use crate::row::version::{Keep, Version};
use crate::table::Table;

/// A commit between staging and publication, shared with whoever meets its marks.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) slot: CommitSlot,
    pub(crate) rows: StagedRows,
    /// Drawn once all keys are marked. Relaxed: read under a shard lock that was taken after the commit turned.
    pub(crate) stamp: AtomicU64,
    /// Whether old versions are kept for statements. Set with Relaxed, as above, and taken back with Release.
    pub(crate) keep: AtomicBool,
    /// Written before the commit turns committed.
    pub(crate) redo: Mutex<Option<Redo>>,
    /// Writes that a single-key write overtook.
    pub(crate) lost: Mutex<Vec<usize>>,
    /// The commit's number among the published; `u64::MAX` before.
    pub(crate) published: AtomicU64,
    /// Single-key writes wait for it instead of dooming it.
    pub(crate) firm: bool,
    /// What held its rows while its list was made, and the order of that one's rows. They share the commit word.
    pub(crate) held: Option<(Arc<Self>, Vec<usize>)>,
}

/// All rows of a commit. What they have in common stands once: a commit of many rows has few tables.
#[derive(Debug, Default)]
pub(crate) struct StagedRows {
    tables: Vec<Arc<Table>>,
    /// The keys, one behind the other.
    keys: Vec<u8>,
    list: Vec<Staged>,
    /// Bytes of the new rows.
    new_bytes: usize,
}

/// One row of a commit.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) hash: Hash,
    pub(crate) new: Option<Location>,
    pub(crate) expect: Expect,
    /// What the new version takes over when its key is marked. From then on who touches the row meets the mark.
    pub(crate) keep: Keep,
    /// Where the row was read that it replaces or removes, if that is known.
    pub(crate) place: Option<Place>,
    /// Among the commit's tables.
    pub(crate) table: usize,
    /// Where its key begins and ends.
    key: (usize, usize),
}

impl StagedRows {
    pub(crate) fn with_capacity(rows: usize, key_bytes: usize) -> Self {
        Self { list: Vec::with_capacity(rows), keys: Vec::with_capacity(key_bytes), ..Self::default() }
    }

    pub(crate) fn push(
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
        self.new_bytes += new.map_or(0, |new| new.bytes);
        let new = new.map(|new| new.location);
        self.list.push(Staged { hash, new, expect, keep, place: None, table, key: (begin, self.keys.len()) });
    }

    /// Rows of one table that are to be removed, each as it was read: how long its key is, its CAS value, and where it
    /// lay. `keys` are the keys, one behind the other.
    pub(crate) fn removals(
        table: &Arc<Table>,
        keys: Vec<u8>,
        rows: impl Iterator<Item = (usize, u64, Option<Place>)>,
        mut hash_of: impl FnMut(&[u8]) -> Hash,
    ) -> Self {
        let (mut list, mut begin) = (Vec::with_capacity(rows.size_hint().0), 0);
        for (key_len, cas, place) in rows {
            let (key, expect, keep) = ((begin, begin + key_len), Expect::Version(cas), Keep::default());
            let hash = hash_of(&keys[key.0..key.1]);
            list.push(Staged { hash, new: None, expect, keep, place, table: 0, key });
            begin = key.1;
        }
        Self { tables: vec![Arc::clone(table)], keys, list, new_bytes: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn new_bytes(&self) -> usize {
        self.new_bytes
    }

    #[inline]
    pub(crate) fn row(&self, write: usize) -> &Staged {
        &self.list[write]
    }

    #[inline]
    pub(crate) fn table(&self, row: &Staged) -> &Arc<Table> {
        &self.tables[row.table]
    }

    #[inline]
    pub(crate) fn key(&self, row: &Staged) -> &[u8] {
        &self.keys[row.key.0..row.key.1]
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Staged> {
        self.list.iter()
    }

    /// Each table that the commit writes; one under two definitions may come twice.
    pub(crate) fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// Takes back the values that a commit spoke for: they are in the indexes by now, or free again.
    pub(crate) fn give_back_reserved(&self, slot: CommitSlot) {
        for table in &self.tables {
            for index in table.state.maintained.load().iter().filter(|index| index.def().unique) {
                index.reserved.lock().retain(|_, of| *of != slot);
            }
        }
    }

    /// Positions of the writes by shard, then hash: the order in which every commit takes its marks.
    pub(crate) fn order(&self) -> Vec<usize> {
        // The lowest bits of a hash choose the shard: in front they order by shard, and the others behind.
        let place = |staged: &Staged| staged.hash.0.rotate_right(arena::SHARDS.trailing_zeros());
        let mut writes: Vec<usize> = (0..self.list.len()).collect();
        writes.sort_unstable_by_key(|&write| place(&self.list[write]));
        for alike in writes.chunk_by_mut(|&one, &other| self.list[one].hash == self.list[other].hash) {
            alike.sort_unstable_by(|&one, &other| self.compare(one, other));
        }
        writes
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
    pub(crate) fn has_twins(&self, order: &[usize]) -> bool {
        order.windows(2).any(|pair| {
            let [a, b] = [pair[0], pair[1]].map(|write| self.row(write));
            a.hash == b.hash && self.table(a).id() == self.table(b).id() && self.key(a) == self.key(b)
        })
    }
}

impl Commit {
    pub(crate) fn new(slot: CommitSlot, rows: StagedRows) -> Self {
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
    pub(crate) fn has_held(&self, other: &Arc<Self>) -> bool {
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
