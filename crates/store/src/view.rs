//! The sight of one statement: rows as they are, but no half of a commit of many rows.
//!
//! A write of one row is seen at once. A commit of many rows is seen whole or not at all: where the statement began
//! before it was published, the versions before it are read from where they were kept.
//!
//! Within a transaction the sight is that with the transaction's own list laid over it (`overlay.rs`).

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

use arena::{Arena, Hash, Location, ScanShape};

use crate::clock::Tick;
use crate::error::ReadError;
use crate::index::{Index, KeyBounds, as_slice};
use crate::ordered::{Range, Resume};
use crate::overlay::Merge;
use crate::row::RowBuf;
use crate::shard::{Kept, Shard};
use crate::statement::Sight;
use crate::store::Store;
use crate::table::Table;
use crate::write_set::WriteSet;

/// Index entries read under one hold of an index lock.
const CHUNK: usize = 64;
/// Bytes copied under one hold of an index lock, so that large rows do not stretch it.
const CHUNK_BYTES: usize = 256 << 10;

/// One statement's sight. Ends when dropped; a statement drops it before it commits its own writes.
#[derive(Debug)]
pub struct View<'s> {
    store: &'s Store,
    sight: Sight,
    now: Tick,
    /// What the statement's transaction wrote.
    pub(crate) own: Option<&'s WriteSet>,
}

impl Store {
    /// Begins a statement.
    pub fn view(&self) -> View<'_> {
        let sight = self.statements.begin(|| self.arena.last_stamp());
        View { store: self, sight, now: self.now(), own: None }
    }

    /// Begins a statement of a transaction, which sees that transaction's writes too.
    pub fn view_over<'s>(&'s self, own: &'s WriteSet) -> View<'s> {
        let mut view = self.view();
        view.own = Some(own);
        view
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        let last = self.store.statements.end(&self.sight);
        if last {
            self.store.purge_kept();
        }
    }
}

impl View<'_> {
    /// The moment at which the statement judges deadlines.
    pub fn now(&self) -> Tick {
        self.now
    }

    /// The newest stamp when the statement began.
    pub fn stamp(&self) -> u64 {
        self.sight.stamp
    }

    /// Copies the row under a key as this statement sees it. False: there is none.
    pub fn get(&self, table: &Table, key: &[u8], row: &mut RowBuf) -> Result<bool, ReadError> {
        if let Some(own) = self.own
            && let Some(laid) = own.laid(table.id(), key)
        {
            return Ok(self.copy_own(laid, row));
        }
        let hash = self.store.arena.hash(table.id(), key);
        let found = self.store.read_hashed(table, hash, key, row);
        self.check_sight()?;
        if (found && self.hides(row)) || !self.store.kept.is_empty() {
            return Ok(self.get_kept(table, hash, key, row));
        }
        Ok(found && self.store.is_live(table, row.head(), self.now))
    }

    fn get_kept(&self, table: &Table, hash: Hash, key: &[u8], row: &mut RowBuf) -> bool {
        let shard = self.store.shard(hash).lock();
        let found = if let Some(kept) = shard.kept_for(&self.sight, hash, table.id(), key) {
            kept.row.as_ref().map(|old| row.clone_from_row(old)).is_some()
        } else {
            let entry = self.store.arena.find(&shard.token, hash, table.id(), key);
            entry.is_some_and(|entry| self.store.load_stable(entry.location, row)) && !self.hides(row)
        };
        found && self.store.is_live(table, row.head(), self.now)
    }

    /// The row that a kept version shows to this statement, if it is this one that stands for the current row.
    fn stands_for<'k>(&self, shard: &Shard, kept: &'k Kept, table: &Table) -> Option<&'k RowBuf> {
        if kept.table != table.id() {
            return None;
        }
        let first = shard.kept_for(&self.sight, kept.hash, kept.table, &kept.key)?;
        let row = kept.row.as_deref().filter(|_| std::ptr::eq(first, kept))?;
        self.store.is_live(table, row.head(), self.now).then_some(row)
    }

    /// All live rows of a table, each once, in no order.
    pub fn scan(&self, table: &Arc<Table>) -> TableScan {
        let shape = self.store.arena.scan_shape();
        TableScan {
            table: Arc::clone(table),
            shape,
            group: 0,
            locations: Vec::new(),
            rows: RowStack::default(),
            own_next: 0,
        }
    }

    /// About how many rows lie within bounds of an index.
    pub fn estimate(&self, index: &Index, bounds: &KeyBounds) -> u64 {
        index.estimate_in(&self.store.arena, bounds)
    }

    /// The live rows within bounds of an index, in its order or the reverse.
    pub fn range(
        &self,
        table: &Arc<Table>,
        index: &Arc<Index>,
        bounds: &KeyBounds,
        reverse: bool,
    ) -> IndexScan {
        let (lower, upper) = bounds.encoded();
        IndexScan {
            table: Arc::clone(table),
            index: Arc::clone(index),
            lower,
            upper,
            reverse,
            after: None,
            met: HashSet::new(),
            locations: Vec::new(),
            rows: RowStack::default(),
            ended: false,
            merge: self.own.is_some().then(Box::default),
        }
    }

    /// Whether a row belongs to a commit that this statement does not see, or is not published at all.
    #[inline]
    fn hides(&self, row: &RowBuf) -> bool {
        row.stamp() == 0 || (row.head().is_multi() && !self.sight.includes(row.stamp()))
    }

    fn check_sight(&self) -> Result<(), ReadError> {
        let given_up = self.store.kept.given_up();
        if given_up == 0 || self.sight.includes(given_up) { Ok(()) } else { Err(ReadError::SnapshotTooOld) }
    }

    fn is_visible(&self, table: &Table, row: &RowBuf) -> bool {
        !self.hides(row) && self.store.is_live(table, row.head(), self.now)
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
    /// Where the transaction's own rows go on, which come last.
    own_next: usize,
}

/// Rows ready to be handed out, last first, and buffers to be used again.
#[derive(Debug, Default)]
struct RowStack {
    ready: Vec<RowBuf>,
    spare: Vec<RowBuf>,
}

impl RowStack {
    fn buffer(&mut self) -> RowBuf {
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

impl TableScan {
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
        }
    }

    /// Copies a group's rows under its shard lock, so that rows and kept versions belong together.
    fn read_group(&mut self, view: &View<'_>) {
        let store = view.store;
        let id = self.table.id();
        let shard = store.shard_at(Arena::shard_of_group(self.group)).lock();
        self.locations.clear();
        store.arena.scan_group(&shard.token, self.shape, self.group, id, &mut self.locations);
        for &location in &self.locations {
            let mut row = self.rows.buffer();
            let ours = store.load_stable(location, &mut row) && row.head().table == id;
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
    /// Rows handed out with the sort key of `after`, so that one which moved meanwhile is not met twice.
    met: HashSet<Hash>,
    locations: Vec<u64>,
    rows: RowStack,
    ended: bool,
    /// Within a transaction: where its own rows stand in between.
    merge: Option<Box<Merge>>,
}

impl IndexScan {
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
        let mut entries = Vec::with_capacity(CHUNK);
        let last = self.read_entries(view, &mut entries)?;
        let nothing_kept = view.store.kept.is_empty();
        if !nothing_kept {
            entries.retain(|entry| !entry.replaced(view, &self.table));
            self.gather_kept(view, last.as_ref(), &mut entries);
        }
        if let Some(after) = &self.after {
            entries.retain(|entry| {
                entry.sort_key != after.key || !self.met.contains(&entry.hash(view, &self.table))
            });
        }
        self.remember(view, last, &entries);
        if !nothing_kept {
            entries.sort_by(|a, b| a.sort_key.cmp(&b.sort_key));
            if self.reverse {
                entries.reverse();
            }
        }
        let visible = entries.into_iter().rev().filter(|entry| view.is_visible(&self.table, &entry.row));
        self.rows.ready.extend(visible.map(|entry| entry.row));
        Ok(())
    }

    /// Copies the rows of the next entries while the index lock keeps them in place; returns the last entry, if more
    /// may follow it.
    fn read_entries(
        &mut self,
        view: &View<'_>,
        entries: &mut Vec<Entry>,
    ) -> Result<Option<Resume>, ReadError> {
        let arena = &view.store.arena;
        let tree = self.index.tree.read();
        if self.index.is_retired() {
            return Err(ReadError::SnapshotTooOld);
        }
        self.locations.clear();
        let range = Range {
            lower: as_slice(&self.lower),
            upper: as_slice(&self.upper),
            reverse: self.reverse,
            resume_after: self.after.as_ref(),
        };
        let mut last = tree.range(&range, &self.index.rows(arena), CHUNK, &mut self.locations);
        let mut bytes = 0;
        for &location in &self.locations {
            let mut row = self.rows.buffer();
            if view.store.load_stable(Location::from_bits(location), &mut row) {
                let mut sort_key = Vec::new();
                self.index.sort_key(&row, &mut sort_key);
                bytes += row.size();
                entries.push(Entry { sort_key, row });
            }
            if bytes > CHUNK_BYTES {
                last = entries.last().map(|entry| Resume { key: entry.sort_key.clone(), location });
                break;
            }
        }
        self.ended = last.is_none();
        Ok(last)
    }

    /// Adds the kept versions between the entry before this chunk and its last one.
    fn gather_kept(&self, view: &View<'_>, last: Option<&Resume>, entries: &mut Vec<Entry>) {
        for shard in &view.store.shards {
            let shard = shard.lock();
            for kept in &shard.kept {
                let Some(row) = view.stands_for(&shard, kept, &self.table) else { continue };
                let mut sort_key = Vec::new();
                self.index.sort_key(row, &mut sort_key);
                if in_bounds(&self.lower, &self.upper, &sort_key) && self.in_chunk(&sort_key, last) {
                    entries.push(Entry { sort_key, row: row.duplicate() });
                }
            }
        }
    }

    fn in_chunk(&self, sort_key: &[u8], last: Option<&Resume>) -> bool {
        let follows = |a: &[u8], b: &[u8]| if self.reverse { a <= b } else { a >= b };
        self.after.as_ref().is_none_or(|after| follows(sort_key, &after.key))
            && last.is_none_or(|last| follows(&last.key, sort_key))
    }

    fn remember(&mut self, view: &View<'_>, last: Option<Resume>, entries: &[Entry]) {
        let Some(Resume { key, .. }) = &last else { return };
        if self.after.as_ref().is_none_or(|after| after.key != *key) {
            self.met.clear();
        }
        let same = entries.iter().filter(|entry| entry.sort_key == *key);
        self.met.extend(same.map(|entry| entry.hash(view, &self.table)));
        self.after = last;
    }
}

/// A row on its way out of an index scan.
#[derive(Debug)]
struct Entry {
    sort_key: Vec<u8>,
    row: RowBuf,
}

impl Entry {
    fn hash(&self, view: &View<'_>, table: &Table) -> Hash {
        view.store.arena.hash(table.id(), self.row.key())
    }

    /// Whether the statement sees an older version of this row's key instead.
    fn replaced(&self, view: &View<'_>, table: &Table) -> bool {
        let hash = self.hash(view, table);
        let shard = view.store.shard(hash).lock();
        shard.kept_for(&view.sight, hash, table.id(), self.row.key()).is_some()
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
