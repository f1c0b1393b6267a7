//! Walks through a whole table.
//!
//! Every key lies in one group of buckets, so a walk through the groups meets it once. What the buckets name is
//! gathered for many groups and read in the order of memory: rows that lie at random cost a cache miss each, and more
//! than all that is done with them. Each row is read as it was when it was gathered.

use std::sync::Arc;

use arena::{Arena, Gathered, Hash, Location, ScanShape};

use super::gathered::{BATCH_ROWS, Batch};
use super::{CHUNK, Chunk};
use crate::error::ReadError;
use crate::limits::SCAN_GROUPS_MAX;
use crate::row::RowBuf;
use crate::table::Table;
use crate::table::row_count::Findings;
use crate::view::View;

/// Groups of the first batch: many a statement wants a single row. Each further batch takes [`GROWTH`] times as many.
const FIRST_GROUPS: u64 = 16;
/// See [`FIRST_GROUPS`].
const GROWTH: u64 = 4;

/// What is asked for of a row before any was seen.
const FIRST_ROW_BYTES: usize = 128;

/// A walk through a whole table by the buckets of the hash index.
#[derive(Debug)]
pub struct TableScan {
    table: Arc<Table>,
    shape: ScanShape,
    /// The next group of buckets.
    group: u64,
    /// The group after the last one: that of the whole index, or of a sample.
    end: u64,
    /// How many groups the next batch takes.
    groups: u64,
    /// The first group of the batch at hand.
    first: u64,
    batch: Batch,
    /// Rows that were copied under the lock of their shard.
    rows: Chunk,
    locations: Vec<Location>,
    /// What the row count learns of a whole scan; `None` when it was told.
    found: Option<Findings>,
    /// The length of the row read last: the next ones may be as long.
    row_bytes: usize,
    /// Where the transaction's own rows go on, which come last.
    own_next: usize,
}

impl TableScan {
    pub(crate) fn new(view: &View<'_>, table: &Arc<Table>) -> Self {
        let shape = view.store.arena.of(table.id()).scan_shape();
        Self {
            table: Arc::clone(table),
            shape,
            group: 0,
            end: shape.groups,
            groups: FIRST_GROUPS,
            first: 0,
            batch: Batch::default(),
            rows: Chunk::default(),
            locations: Vec::new(),
            found: Some(table.state.row_count.findings(view.snapshot.oldest_unseen())),
            row_bytes: FIRST_ROW_BYTES,
            own_next: 0,
        }
    }

    /// A walk through so many neighbouring groups, from a place that `seed` chooses: keys lie in groups by their
    /// hashes, so the rows of any groups are a fair sample of the table's.
    pub(crate) fn of_sample(view: &View<'_>, table: &Arc<Table>, seed: u64, groups: u64) -> Self {
        // Moments that differ little choose places far apart.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut scan = Self::new(view, table);
        let places = scan.shape.groups.saturating_sub(groups) + 1;
        scan.group = (seed.wrapping_mul(SPREAD) >> 32) % places;
        scan.end = scan.shape.groups.min(scan.group + groups);
        // What is found there says nothing of the number of rows.
        scan.found = None;
        scan
    }

    /// Copies the next row; false at the end.
    pub fn next(&mut self, view: &View<'_>, row: &mut RowBuf) -> Result<bool, ReadError> {
        loop {
            if self.rows.pop(row) || self.next_gathered(view, row)? {
                view.check_whole(&self.table)?;
                if view.is_laid_over(&self.table, row) {
                    continue;
                }
                view.note_row(&self.table, row);
                return Ok(true);
            }
            if self.group >= self.end {
                view.check_whole(&self.table)?;
                if let Some(found) = self.found.take() {
                    self.table.state.row_count.settle(&found);
                }
                return Ok(view.next_own(&self.table, &mut self.own_next, row));
            }
            self.gather(view)?;
        }
    }

    /// Reads on in the batch to the next row that is visible; false at its end.
    fn next_gathered(&mut self, view: &View<'_>, row: &mut RowBuf) -> Result<bool, ReadError> {
        let (arena, id) = (&view.store.arena, self.table.id());
        while let Some((gathered, ahead)) = self.batch.next() {
            if let Some(ahead) = ahead {
                arena.of(id).prefetch_gathered(ahead, self.row_bytes);
            }
            let there = arena.of(id).gathered_row(&gathered).is_some_and(|read| row.load(&read));
            if !there {
                self.look_up(view, &gathered)?;
                if self.rows.pop(row) {
                    return Ok(true);
                }
                continue;
            }
            self.row_bytes = row.size();
            if row.head().table == id {
                self.meet(row.stamp(), row.expiry());
                if view.is_visible(&self.table, row) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Gathers the rows of the next groups.
    fn gather(&mut self, view: &View<'_>) -> Result<(), ReadError> {
        let (store, id) = (view.store, self.table.id());
        self.batch.clear();
        self.rows.clear();
        self.first = self.group;
        let end = self.end.min(self.group + self.groups);
        self.groups = (self.groups * GROWTH).min(SCAN_GROUPS_MAX);
        while self.group < end && self.batch.len() < BATCH_ROWS && self.rows.rows().len() < CHUNK {
            let (group, shape) = (self.group, self.shape);
            let number = u32::try_from(group - self.first).unwrap_or(u32::MAX);
            let shard = store.shard_at(Arena::shard_of_group(group)).lock();
            // Where versions are kept, they and the rows have to be read together.
            let taken = shard.old_versions.is_empty()
                && self.batch.take(|rows| {
                    store.arena.of(id).gather_group(&shard.token, shape, group, id, number, rows);
                });
            drop(shard);
            if !taken {
                self.copy_group(view, group, None);
            }
            self.group += 1;
        }
        self.batch.order();
        view.check_snapshot()
    }

    /// Copies what stands in the place of a row whose memory was recycled since it was gathered: it moved, was
    /// replaced, or went. No other row of its group that was gathered is like it, so what is like it now was not met.
    #[cold]
    fn look_up(&mut self, view: &View<'_>, gathered: &Gathered) -> Result<(), ReadError> {
        self.rows.clear();
        self.copy_group(view, self.first + u64::from(gathered.group()), Some(gathered));
        view.check_snapshot()
    }

    fn meet(&mut self, stamp: u64, expiry: crate::clock::Tick) {
        if let Some(found) = &mut self.found {
            found.meet(stamp, expiry);
        }
    }

    /// Copies a group's rows under its shard lock, so that rows and kept versions belong together; `only`: those that
    /// may be of the same key.
    fn copy_group(&mut self, view: &View<'_>, group: u64, only: Option<&Gathered>) {
        let store = view.store;
        let id = self.table.id();
        let wanted = |hash: Hash| only.is_none_or(|only| only.may_be(hash));
        let shard = store.shard_at(Arena::shard_of_group(group)).lock();
        self.locations.clear();
        store.arena.of(id).scan_group(&shard.token, self.shape, group, id, &mut self.locations);
        for at in 0..self.locations.len() {
            let row = self.rows.buffer();
            if !store.load_stable(self.locations[at], row) || row.head().table != id {
                continue;
            }
            let hash = store.arena.of(id).hash(id, row.key());
            let replaced = shard.old_version_for(&view.snapshot, hash, id, row.key()).is_some();
            let (stamp, expiry) = (row.stamp(), row.expiry());
            if wanted(hash) && !replaced && view.is_visible(&self.table, row) {
                self.rows.keep();
            }
            self.meet(stamp, expiry);
        }
        for kept in &shard.old_versions {
            let of_group = kept.table == id && group_of(self.shape, kept.hash) == group && wanted(kept.hash);
            if of_group && let Some(row) = view.stands_for(&shard, kept, &self.table) {
                self.rows.buffer().clone_from_row(row);
                self.rows.keep();
            }
        }
    }
}

/// The group of buckets that a key lies in: groups are a power of two, and the low bits of a hash choose.
fn group_of(shape: ScanShape, hash: Hash) -> u64 {
    hash.0 & (shape.groups - 1)
}
