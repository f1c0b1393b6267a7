//! Walks through a table, by the hash index or along an ordered one, as one statement sees it.

use std::cell::RefCell;
use std::ops::Bound;
use std::sync::Arc;

use arena::{Arena, Hash, Location, ScanShape};
use hashbrown::HashSet;

use crate::census::Findings;
use crate::error::ReadError;
use crate::index::{Index, KeyBounds, RowKeys, as_slice};
use crate::ordered::{OrderedIndex, Range, Resume};
use crate::overlay::Merge;
use crate::row::RowBuf;
use crate::table::Table;
use crate::view::View;

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

/// Rows ready to be handed out, last first, and buffers to be used again.
#[derive(Debug, Default)]
struct RowStack {
    ready: Vec<RowBuf>,
    spare: Vec<RowBuf>,
}

impl RowStack {
    fn buffer(&mut self) -> RowBuf {
        if self.spare.is_empty() {
            SPARE.with_borrow_mut(|kept| self.spare.append(kept));
        }
        self.spare.pop().unwrap_or_default()
    }

    /// Swaps the next row into the caller's buffer.
    fn pop(&mut self, row: &mut RowBuf) -> bool {
        let Some(mut next) = self.ready.pop() else { return false };
        std::mem::swap(row, &mut next);
        self.spare.push(next);
        true
    }
}

impl Drop for RowStack {
    fn drop(&mut self) {
        let rows = self.spare.drain(..).chain(self.ready.drain(..));
        let small = rows.filter(|row| row.heap_bytes() <= SPARE_ROW_BYTES);
        SPARE.with_borrow_mut(|kept| {
            let room = SPARE_ROWS.saturating_sub(kept.len());
            kept.extend(small.take(room));
        });
    }
}

/// A walk through a whole table by the buckets of the hash index: every key has one bucket, so it is met once.
#[derive(Debug)]
pub struct TableScan {
    table: Arc<Table>,
    shape: ScanShape,
    /// The next group of buckets.
    group: u64,
    locations: Vec<Location>,
    rows: RowStack,
    /// What the census learns of a whole scan.
    found: Findings,
    /// Where the transaction's own rows go on, which come last.
    own_next: usize,
}

impl TableScan {
    pub(crate) fn new(view: &View<'_>, table: &Arc<Table>) -> Self {
        Self {
            table: Arc::clone(table),
            shape: view.store.arena.scan_shape(table.id()),
            group: 0,
            locations: Vec::new(),
            rows: RowStack::default(),
            found: table.state.census.findings(view),
            own_next: 0,
        }
    }

    /// Copies the next row; false at the end.
    pub fn next(&mut self, view: &View<'_>, row: &mut RowBuf) -> Result<bool, ReadError> {
        loop {
            if self.rows.pop(row) {
                if view.is_laid_over(&self.table, row) {
                    continue;
                }
                return Ok(true);
            }
            if self.group >= self.shape.groups {
                return Ok(view.next_own(&self.table, &mut self.own_next, row));
            }
            self.read_group(view);
            view.check_sight()?;
            self.group += 1;
            if self.group == self.shape.groups {
                self.table.state.census.settle(&self.found);
            }
        }
    }

    /// Copies a group's rows under its shard lock, so that rows and kept versions belong together.
    fn read_group(&mut self, view: &View<'_>) {
        let store = view.store;
        let id = self.table.id();
        store.arena.prefetch_scan(self.shape, self.group, id);
        let shard = store.shard_at(Arena::shard_of_group(self.group)).lock();
        self.locations.clear();
        store.arena.scan_group(&shard.token, self.shape, self.group, id, &mut self.locations);
        for &location in &self.locations {
            let mut row = self.rows.buffer();
            let ours = store.load_stable(location, &mut row) && row.head().table == id;
            if ours {
                self.found.meet(row.stamp(), row.expiry());
            }
            let replaced = ours && !shard.kept.is_empty() && {
                let hash = store.arena.hash(id, row.key());
                shard.kept_for(&view.sight, hash, id, row.key()).is_some()
            };
            if ours && !replaced && view.is_visible(&self.table, &row) {
                self.rows.ready.push(row);
            } else {
                self.rows.spare.push(row);
            }
        }
        for kept in &shard.kept {
            let of_group = kept.table == id && group_of(self.shape, kept.hash) == self.group;
            if of_group && let Some(row) = view.stands_for(&shard, kept, &self.table) {
                self.rows.ready.push(row.duplicate());
            }
        }
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
    /// Rows handed out, those with the sort key of `after` among them, so that one which moved is not met twice.
    met: HashSet<u64>,
    /// How many entries had come when the last chunk was read, and whether any came between two chunks: only then
    /// can a row have moved.
    arrivals: u64,
    moved: bool,
    /// Entries that the next chunk may hold.
    chunk: usize,
    locations: Vec<u64>,
    /// The rows of one chunk, in the order of the walk.
    copied: Vec<RowBuf>,
    rows: RowStack,
    ended: bool,
    /// Within a transaction: where its own rows stand in between.
    merge: Option<Box<Merge>>,
}

impl IndexScan {
    pub(crate) fn new(
        view: &View<'_>,
        table: &Arc<Table>,
        index: &Arc<Index>,
        bounds: &KeyBounds,
        reverse: bool,
    ) -> Self {
        let (lower, upper) = bounds.encoded(index);
        Self {
            table: Arc::clone(table),
            index: Arc::clone(index),
            lower,
            upper,
            reverse,
            after: None,
            met: HashSet::new(),
            arrivals: 0,
            moved: false,
            chunk: FIRST_CHUNK,
            locations: Vec::new(),
            copied: Vec::new(),
            rows: RowStack::default(),
            ended: false,
            merge: view.own.is_some().then(Box::default),
        }
    }

    /// Copies the next row; false at the end.
    pub fn next(&mut self, view: &View<'_>, row: &mut RowBuf) -> Result<bool, ReadError> {
        let Some(mut merge) = self.merge.take() else { return self.next_stored(view, row) };
        let result = merge.next(self, view, row);
        self.merge = Some(merge);
        result
    }

    pub(crate) fn next_stored(&mut self, view: &View<'_>, row: &mut RowBuf) -> Result<bool, ReadError> {
        loop {
            if self.rows.pop(row) {
                return Ok(true);
            }
            if self.ended {
                return Ok(false);
            }
            self.read_chunk(view)?;
            view.check_sight()?;
        }
    }

    /// Reads some entries under the index lock, and after that the versions kept in their stead: what left the index
    /// before the first step was kept before the second.
    fn read_chunk(&mut self, view: &View<'_>) -> Result<(), ReadError> {
        let last = self.read_entries(view)?;
        let nothing_kept = view.store.kept.is_empty();
        let mut rows = std::mem::take(&mut self.copied);
        if !nothing_kept {
            self.lay_kept(view, last.as_ref(), &mut rows);
        }
        // A kept version stands in the chunk whose keys it lies between, wherever the current one is.
        if self.moved || !nothing_kept {
            self.leave_out_met(view, &mut rows);
        }
        self.remember(view, last, &rows);
        for row in rows.drain(..).rev() {
            let visible = view.is_visible(&self.table, &row);
            if visible { self.rows.ready.push(row) } else { self.rows.spare.push(row) }
        }
        self.copied = rows;
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
        self.catch_up(view, &tree, &rows);
        self.locations.clear();
        let range = Range {
            lower: as_slice(&self.lower),
            upper: as_slice(&self.upper),
            reverse: self.reverse,
            resume_after: self.after.as_ref(),
        };
        let mut last = tree.range(&range, &rows, self.chunk, &mut self.locations);
        self.chunk = CHUNK;
        for &location in &self.locations {
            arena.prefetch_location(Location::from_bits(location));
        }
        let mut bytes = 0;
        for &location in &self.locations {
            let mut row = self.rows.buffer();
            if !view.store.load_stable(Location::from_bits(location), &mut row) {
                self.rows.spare.push(row);
                continue;
            }
            bytes += row.size();
            self.copied.push(row);
            if bytes > CHUNK_BYTES {
                last = self.copied.last().map(|row| Resume { key: self.sort_key(row), location });
                break;
            }
        }
        self.ended = last.is_none();
        Ok(last)
    }

    /// Copies the rows that moved, since the last chunk, behind the place where the walk stands: equal keys are in the
    /// order of locations, and a write gives its row another one.
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
            let mut row = self.rows.buffer();
            let found = passed
                && view.store.load_stable(Location::from_bits(location), &mut row)
                && self.index.holds(&row)
                && {
                    self.index.sort_key(&row, &mut key);
                    key == after.key && tree.contains(&key, location, rows)
                };
            if found { self.copied.push(row) } else { self.rows.spare.push(row) }
        }
    }

    fn sort_key(&self, row: &RowBuf) -> Vec<u8> {
        let mut key = Vec::new();
        self.index.sort_key(row, &mut key);
        key
    }

    /// Puts the versions that the statement sees in the place of current ones, in the order of the walk. The kept ones
    /// are gathered first: what a commit replaces after that was read above as it was before.
    fn lay_kept(&self, view: &View<'_>, last: Option<&Resume>, rows: &mut Vec<RowBuf>) {
        let mut entries: Vec<(Vec<u8>, RowBuf)> = Vec::new();
        let mut replaced: HashSet<u64> = HashSet::new();
        for shard in &view.store.shards {
            let shard = shard.lock();
            for kept in &shard.kept {
                if kept.table == self.table.id() && !view.sight.includes(kept.commit.stamp()) {
                    replaced.insert(kept.hash.0);
                }
                let Some(row) = view.stands_for(&shard, kept, &self.table) else { continue };
                if !self.index.holds(row) {
                    continue;
                }
                let key = self.sort_key(row);
                if in_bounds(&self.lower, &self.upper, &key) && self.in_chunk(&key, last) {
                    entries.push((key, row.duplicate()));
                }
            }
        }
        let current = rows.drain(..).filter(|row| !replaced.contains(&self.hash(view, row).0));
        entries.extend(current.map(|row| (self.sort_key(&row), row)));
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
        let Some(after) = &self.after else { return };
        let mut key = Vec::new();
        rows.retain(|row| {
            self.index.sort_key(row, &mut key);
            key != after.key || !self.met.contains(&self.hash(view, row).0)
        });
    }

    /// Notes where the chunk ended, and which of the rows handed out could be met again there: all of the chunk, for
    /// to tell those of its last key apart costs more.
    fn remember(&mut self, view: &View<'_>, last: Option<Resume>, rows: &[RowBuf]) {
        let Some(last) = last else { return };
        if self.after.as_ref().is_none_or(|after| after.key != last.key) {
            self.met.clear();
        }
        self.met.reserve(rows.len());
        for row in rows {
            let hash = self.hash(view, row);
            self.met.insert(hash.0);
        }
        self.after = Some(last);
    }

    fn hash(&self, view: &View<'_>, row: &RowBuf) -> Hash {
        view.store.arena.hash(self.table.id(), row.key())
    }
}

/// The group of buckets that a key lies in: groups are a power of two, and the low bits of a hash choose.
fn group_of(shape: ScanShape, hash: Hash) -> u64 {
    hash.0 & (shape.groups - 1)
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
