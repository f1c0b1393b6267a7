//! Walks through a table, by the hash index or along an ordered one, as one statement sees it.

use std::cell::RefCell;
use std::ops::Bound;
use std::sync::Arc;

use arena::{Hash, Location};
use hashbrown::HashSet;

use crate::error::ReadError;
use crate::index::elements::ElementKeys;
use crate::index::ordered::SortKeys;
use crate::index::ordered::{OrderedIndex, Range, Resume};
use crate::index::{Index, RowKeys, as_slice};
use crate::row::RowBuf;
use crate::table::Table;
use crate::view::View;
use crate::view::overlay::Merge;

mod gathered;
mod whole;

pub use whole::TableScan;

/// Index entries that a scan reads at first: many a statement wants a single row, or ten.
const FIRST_CHUNK: usize = 16;
/// Index entries read under one hold of an index lock.
const CHUNK: usize = 64;
/// Bytes copied under one hold of an index lock, so that large rows do not stretch it.
const CHUNK_BYTES: usize = 256 << 10;
/// Row buffers that a thread keeps for its next scan: a full chunk and what a group of buckets may hold.
const SPARE_ROWS: usize = 2 * CHUNK;
/// Larger buffers are not kept.
const SPARE_ROW_BYTES: usize = 8 << 10;

thread_local! {
    /// Buffers of earlier scans, so that a scan of a few rows allocates nothing.
    static SPARE: RefCell<Vec<RowBuf>> = const { RefCell::new(Vec::new()) };
}

/// Rows that were read at once, handed out in the order in which they came. The buffers are used again and again.
#[derive(Debug, Default)]
struct Chunk {
    /// The first `len` hold rows, the others nothing.
    rows: Vec<RowBuf>,
    len: usize,
    /// The row to be handed out next.
    next: usize,
    /// The most rows that it ever held.
    most: usize,
}

impl Chunk {
    /// The buffer behind the last row; what is in it counts when [`Chunk::keep`] says so.
    #[inline]
    fn buffer(&mut self) -> &mut RowBuf {
        if self.rows.is_empty() {
            self.rows = SPARE.take();
        }
        if self.len == self.rows.len() {
            self.rows.push(RowBuf::new());
        }
        &mut self.rows[self.len]
    }

    #[inline]
    fn keep(&mut self) {
        self.len += 1;
        self.most = self.most.max(self.len);
    }

    /// Swaps the next row into the caller's buffer.
    #[inline]
    fn pop(&mut self, row: &mut RowBuf) -> bool {
        if self.next == self.len {
            return false;
        }
        std::mem::swap(row, &mut self.rows[self.next]);
        self.next += 1;
        true
    }

    fn clear(&mut self) {
        (self.len, self.next) = (0, 0);
    }

    fn rows(&self) -> &[RowBuf] {
        &self.rows[..self.len]
    }

    /// Lets the rows be changed as a list.
    fn edit(&mut self, change: impl FnOnce(&mut Vec<RowBuf>)) {
        self.rows.truncate(self.len);
        change(&mut self.rows);
        self.len = self.rows.len();
        self.most = self.most.max(self.len);
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        self.rows.truncate(SPARE_ROWS);
        for row in self.rows.iter_mut().take(self.most) {
            if row.heap_bytes() > SPARE_ROW_BYTES {
                *row = RowBuf::new();
            }
        }
        let rows = std::mem::take(&mut self.rows);
        SPARE.with_borrow_mut(|kept| {
            if kept.len() < rows.len() {
                *kept = rows;
            }
        });
    }
}

/// A walk along an ordered index.
#[derive(Debug)]
pub struct IndexScan {
    pub(crate) table: Arc<Table>,
    pub(crate) index: Arc<Index>,
    pub(crate) lower: Bound<Vec<u8>>,
    pub(crate) upper: Bound<Vec<u8>>,
    pub(crate) reverse: bool,
    /// The last index entry read.
    after: Option<Resume>,
    /// Keys handed out, those with the sort key of `after` among them, so that a row which moved is not met twice.
    passed: Vec<u64>,
    /// The same, as far as anybody asked.
    met: HashSet<u64>,
    /// How many entries had come when the last chunk was read, and whether any came between two chunks: only then
    /// can a row have moved.
    arrivals: u64,
    moved: bool,
    /// Entries that the next chunk may hold.
    chunk: usize,
    locations: Vec<u64>,
    /// The rows of one chunk, in the order of the walk.
    rows: Chunk,
    ended: bool,
    /// Within a transaction: where its own rows stand in between.
    merge: Option<Box<Merge>>,
}

impl IndexScan {
    pub(crate) fn new(
        view: &View<'_>,
        table: &Arc<Table>,
        index: &Arc<Index>,
        lower: Bound<Vec<u8>>,
        upper: Bound<Vec<u8>>,
        reverse: bool,
    ) -> Self {
        Self {
            table: Arc::clone(table),
            index: Arc::clone(index),
            lower,
            upper,
            reverse,
            after: None,
            passed: Vec::new(),
            met: HashSet::new(),
            arrivals: 0,
            moved: false,
            chunk: FIRST_CHUNK,
            locations: Vec::new(),
            rows: Chunk::default(),
            ended: false,
            merge: view.own.is_some().then(Box::default),
        }
    }

    /// The same walk by a caller who wants no more than so many rows.
    #[must_use]
    pub fn expecting(mut self, rows: usize) -> Self {
        self.chunk = rows.clamp(1, CHUNK);
        self
    }

    /// Copies the next row; false at the end.
    pub fn next(&mut self, view: &View<'_>, row: &mut RowBuf) -> Result<bool, ReadError> {
        let found = match self.merge.take() {
            None => self.next_stored(view, row)?,
            Some(mut merge) => {
                let found = merge.next(self, view, row);
                self.merge = Some(merge);
                found?
            }
        };
        if found {
            view.note_row(&self.table, row);
        }
        Ok(found)
    }

    /// Rows that were read already and are handed out next, if the statement sees them.
    pub fn ahead(&self) -> impl Iterator<Item = &RowBuf> {
        self.rows.rows().iter().skip(self.rows.next)
    }

    pub(crate) fn next_stored(&mut self, view: &View<'_>, row: &mut RowBuf) -> Result<bool, ReadError> {
        loop {
            while self.rows.pop(row) {
                if view.is_visible(&self.table, row) {
                    view.check_whole(&self.table)?;
                    return Ok(true);
                }
            }
            if self.ended {
                view.check_whole(&self.table)?;
                return Ok(false);
            }
            self.read_chunk(view)?;
            view.check_snapshot()?;
        }
    }

    /// Reads some entries under the index lock, and after that the versions kept in their stead: what left the index
    /// before the first step was kept before the second.
    fn read_chunk(&mut self, view: &View<'_>) -> Result<(), ReadError> {
        let last = self.read_entries(view)?;
        let no_old_versions = view.store.old.is_empty();
        // A kept version stands in the chunk whose keys it lies between, wherever the current one is.
        if self.moved || !no_old_versions {
            let mut rows = std::mem::take(&mut self.rows);
            rows.edit(|rows| {
                if !no_old_versions {
                    self.lay_old(view, last.as_ref(), rows);
                }
                self.leave_out_met(view, rows);
            });
            self.rows = rows;
        }
        self.remember(view, last);
        Ok(())
    }

    /// Copies the rows of the next entries while the index lock keeps them in place; returns the last entry, if more
    /// may follow it.
    fn read_entries(&mut self, view: &View<'_>) -> Result<Option<Resume>, ReadError> {
        let arena = &view.store.arena;
        let index = Arc::clone(&self.index);
        let tree = index.tree.read();
        if index.is_retired() {
            return Err(ReadError::SnapshotTooOld);
        }
        let rows = index.rows(arena);
        self.rows.clear();
        self.catch_up(view, &tree, &rows);
        self.locations.clear();
        let range = Range {
            lower: as_slice(&self.lower),
            upper: as_slice(&self.upper),
            reverse: self.reverse,
            resume_after: self.after.as_ref(),
        };
        tree.locations(&range, &rows, self.chunk, &mut self.locations);
        let full = self.locations.len() == self.chunk;
        self.chunk = CHUNK;
        for &location in &self.locations {
            arena.of(Location::from_bits(location)).prefetch_location(Location::from_bits(location));
        }
        let (mut bytes, mut last) = (0, None);
        for (at, &location) in self.locations.iter().enumerate() {
            let row = self.rows.buffer();
            let there = view.store.load_stable(Location::from_bits(location), row);
            bytes += row.size();
            if bytes > CHUNK_BYTES || (full && at + 1 == self.locations.len()) {
                let mut key = Vec::new();
                if there && !index.is_of_elements() {
                    index.sort_key(row, &mut key);
                } else {
                    rows.sort_key(location, &mut key);
                }
                last = Some(Resume { key, location });
            }
            if there {
                self.rows.keep();
            }
            if bytes > CHUNK_BYTES {
                break;
            }
        }
        self.ended = last.is_none();
        Ok(last)
    }

    /// Copies the rows that moved, since the last chunk, behind the place where the walk stands: equal keys are in the
    /// order of their entries, and a write gives its row another one.
    fn catch_up(&mut self, view: &View<'_>, tree: &OrderedIndex, rows: &RowKeys<'_>) {
        let before = std::mem::replace(&mut self.arrivals, tree.arrivals());
        let Some(after) = self.after.as_mut().filter(|_| before != tree.arrivals()) else { return };
        self.moved = true;
        let Some(arrived) = tree.arrived_since(before) else {
            // Too many to look at one by one: once more through the keys equal to the last one.
            after.location = if self.reverse { u64::MAX } else { 0 };
            return;
        };
        let mut key = Vec::new();
        for location in arrived {
            let passed = if self.reverse { location > after.location } else { location < after.location };
            let row = self.rows.buffer();
            let found = passed
                && view.store.load_stable(Location::from_bits(location), row)
                && self.index.holds(row)
                && {
                    key.clear();
                    rows.sort_key(location, &mut key);
                    key == after.key && tree.contains(&key, location, rows)
                };
            if found {
                self.rows.keep();
            }
        }
    }

    /// The key of a row: of an index over elements the one that is walked along, or nothing, which lies in no bounds.
    pub(crate) fn sort_key(&self, row: &RowBuf, key: &mut Vec<u8>) {
        if !self.index.is_of_elements() {
            self.index.sort_key(row, key);
            return;
        }
        key.clear();
        let mut keys = ElementKeys::default();
        self.index.element_keys(row, &mut keys);
        let mut within = keys.iter().filter(|(_, key)| in_bounds(&self.lower, &self.upper, key));
        key.extend(within.next().map(|(_, key)| key).unwrap_or_default());
    }

    fn own_key(&self, row: &RowBuf) -> Vec<u8> {
        let mut key = Vec::new();
        self.sort_key(row, &mut key);
        key
    }

    /// Puts the versions that the statement sees in the place of current ones, in the order of the walk. The kept ones
    /// are gathered first: what a commit replaces after that was read above as it was before.
    fn lay_old(&self, view: &View<'_>, last: Option<&Resume>, rows: &mut Vec<RowBuf>) {
        let mut entries: Vec<(Vec<u8>, RowBuf)> = Vec::new();
        let mut replaced: HashSet<u64> = HashSet::new();
        for shard in &view.store.shards {
            let shard = shard.lock();
            for kept in &shard.old_versions {
                if kept.table == self.table.id() && !view.snapshot.includes(kept.commit.stamp()) {
                    replaced.insert(kept.hash.0);
                }
                let Some(row) = view.stands_for(&shard, kept, &self.table) else { continue };
                if !self.index.holds(row) {
                    continue;
                }
                let key = self.own_key(row);
                if in_bounds(&self.lower, &self.upper, &key) && self.in_chunk(&key, last) {
                    entries.push((key, row.duplicate()));
                }
            }
        }
        let current = rows.drain(..).filter(|row| !replaced.contains(&self.hash(view, row).0));
        entries.extend(current.map(|row| (self.own_key(&row), row)));
        entries.sort_by(|a, b| if self.reverse { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) });
        rows.extend(entries.into_iter().map(|(_, row)| row));
    }

    fn in_chunk(&self, sort_key: &[u8], last: Option<&Resume>) -> bool {
        let follows = |a: &[u8], b: &[u8]| if self.reverse { a <= b } else { a >= b };
        self.after.as_ref().is_none_or(|after| follows(sort_key, &after.key))
            && last.is_none_or(|last| follows(&last.key, sort_key))
    }

    /// Takes out rows that were handed out before and moved behind the place where the walk stands.
    fn leave_out_met(&mut self, view: &View<'_>, rows: &mut Vec<RowBuf>) {
        self.met.extend(self.passed.drain(..));
        let Some(after) = &self.after else { return };
        let mut key = Vec::new();
        rows.retain(|row| {
            self.sort_key(row, &mut key);
            key != after.key || !self.met.contains(&self.hash(view, row).0)
        });
    }

    /// Notes where the chunk ended, and which of the rows handed out could be met again there: all of the chunk, for
    /// to tell those of its last key apart costs more.
    fn remember(&mut self, view: &View<'_>, last: Option<Resume>) {
        let Some(last) = last else { return };
        if self.after.as_ref().is_none_or(|after| after.key != last.key) {
            self.passed.clear();
            self.met.clear();
        }
        let mut passed = std::mem::take(&mut self.passed);
        passed.extend(self.rows.rows().iter().map(|row| self.hash(view, row).0));
        self.passed = passed;
        self.after = Some(last);
    }

    fn hash(&self, view: &View<'_>, row: &RowBuf) -> Hash {
        view.store.arena.of(self.table.id()).hash(self.table.id(), row.key())
    }
}

fn in_bounds(lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    let above = match lower {
        Bound::Unbounded => true,
        Bound::Included(bound) => key >= bound.as_slice(),
        Bound::Excluded(bound) => key > bound.as_slice(),
    };
    above
        && match upper {
            Bound::Unbounded => true,
            Bound::Included(bound) => key <= bound.as_slice(),
            Bound::Excluded(bound) => key < bound.as_slice(),
        }
}
