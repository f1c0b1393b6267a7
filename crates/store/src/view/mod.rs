//! What one statement sees: rows as they are, but no half of a commit of many rows.
//!
//! A write of one row is seen at once. A commit of many rows is seen whole or not at all: where the statement began
//! before it was published, the versions before it are read from where they were kept.
//!
//! Within a transaction, the transaction's own list is laid over that (`overlay.rs`).

mod known;
pub(crate) mod overlay;
pub(crate) mod scan;

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::Hash;

use crate::clock::Tick;
use crate::codec::prefix_end;
use crate::commit::Commits;
use crate::commit::write_set::WriteSet;
use crate::error::ReadError;
use crate::index::{Index, KeyBounds};
use crate::row::RowBuf;
use crate::table::Table;
use crate::value::ValueRef;
use crate::versions::shard::{OldVersion, Shard};
use crate::versions::statement::Snapshot;
use crate::view::scan::{IndexScan, TableScan};

/// What one statement sees. Ends when dropped; a statement drops it before it commits its own writes.
#[derive(Debug)]
pub struct View<'s> {
    pub(crate) store: &'s Commits,
    pub(crate) snapshot: Snapshot,
    now: Tick,
    /// Whether its searches are operations on the tables.
    counted: bool,
    /// Whether its lookups by key are hits and misses of the tables: it is a query's.
    queries: bool,
    /// What the statement's transaction wrote.
    pub(crate) own: Option<&'s WriteSet>,
    /// It sees what another sees, which lasts longer.
    again: bool,
}

/// What a view sees, for others that see the same.
#[derive(Clone, Debug)]
pub struct Moment {
    snapshot: Snapshot,
    now: Tick,
}

impl Commits {
    /// Begins a statement.
    pub fn view(&self) -> View<'_> {
        let snapshot = self.statements.begin(|| self.arena.private().last_stamp());
        View {
            store: self,
            snapshot,
            now: self.now(),
            counted: true,
            queries: false,
            own: None,
            again: false,
        }
    }

    /// Begins a statement of the server's own, whose searches are no operations on the tables.
    pub fn own_view(&self) -> View<'_> {
        let mut view = self.view();
        view.counted = false;
        view
    }

    /// Begins a statement of a transaction, which sees that transaction's writes too.
    pub fn view_over<'s>(&'s self, own: &'s WriteSet) -> View<'s> {
        let mut view = self.view();
        view.own = Some(own);
        view
    }

    /// Sees what a view sees that has not ended yet: once it has, old versions are missing here.
    pub fn view_again<'s>(&'s self, moment: &Moment, own: &'s WriteSet) -> View<'s> {
        let Moment { snapshot, now } = moment.clone();
        View { store: self, snapshot, now, counted: true, queries: false, own: Some(own), again: true }
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        if self.again {
            return;
        }
        let last = self.store.statements.end(&self.snapshot);
        if last {
            self.store.purge_old_versions();
        }
    }
}

impl View<'_> {
    /// What it sees, for [`Commits::view_again`].
    pub fn moment(&self) -> Moment {
        Moment { snapshot: self.snapshot.clone(), now: self.now }
    }

    /// The moment at which the statement judges deadlines.
    pub fn now(&self) -> Tick {
        self.now
    }

    /// The statement starts again, and what it searches from now on was counted before.
    pub fn begin_anew(&mut self) {
        self.counted = false;
        self.queries = false;
    }

    /// The same for a query: its lookups by key are hits and misses of the tables.
    #[must_use]
    pub fn of_query(mut self) -> Self {
        self.queries = self.counted;
        self
    }

    /// The newest stamp when the statement began.
    pub fn stamp(&self) -> u64 {
        self.snapshot.stamp
    }

    /// Copies the row under a key as this statement sees it. False: there is none.
    #[inline]
    pub fn get(&self, table: &Table, key: &[u8], row: &mut RowBuf) -> Result<bool, ReadError> {
        let found = self.find(table, key, row)?;
        if self.queries {
            table.count_lookup(found);
        }
        Ok(found)
    }

    fn find(&self, table: &Table, key: &[u8], row: &mut RowBuf) -> Result<bool, ReadError> {
        self.count(table);
        if let Some(own) = self.own
            && let Some(laid) = own.laid(table.id(), key)
        {
            return Ok(self.copy_own(laid, row));
        }
        let hash = self.store.arena.of(table.id()).hash(table.id(), key);
        let found = self.store.read_hashed(table, hash, key, self.now, row);
        self.check_snapshot()?;
        let found = if (found && self.hides(row)) || !self.store.old.is_empty() {
            self.get_old(table, hash, key, row)
        } else {
            found && self.store.is_live(table, row.head(), self.now)
        };
        self.check_whole(table)?;
        if found {
            self.note_row(table, row);
        }
        Ok(found)
    }

    /// A row of this table is shown to the statement.
    #[inline]
    pub(crate) fn note_row(&self, table: &Table, row: &RowBuf) {
        if let Some(own) = self.own {
            own.note_row(table.id(), row, self.snapshot.stamp);
        }
    }

    /// Fails where all rows of a table were removed in one step since the statement began. Asked after each look at
    /// what is live, so that no row is missing which the statement has to see.
    #[inline]
    pub(crate) fn check_whole(&self, table: &Table) -> Result<(), ReadError> {
        let state = &table.state;
        // Acquire: pairs with the Release of a flush. Relaxed: see `TableState::removed_below`.
        let is_whole = state.limits.flushed_below.load(Ordering::Acquire) <= self.snapshot.stamp
            || state.removed_below.load(Ordering::Relaxed) <= self.snapshot.stamp;
        if is_whole { Ok(()) } else { Err(ReadError::SnapshotTooOld) }
    }

    fn get_old(&self, table: &Table, hash: Hash, key: &[u8], row: &mut RowBuf) -> bool {
        let shard = self.store.shard(hash).lock();
        let found = if let Some(kept) = shard.old_version_for(&self.snapshot, hash, table.id(), key) {
            kept.row.as_ref().map(|old| row.clone_from_row(old)).is_some()
        } else {
            let entry = self.store.arena.of(table.id()).find(&shard.token, hash, table.id(), key);
            entry.is_some_and(|entry| self.store.load_stable(entry.location, row)) && !self.hides(row)
        };
        found && self.store.is_live(table, row.head(), self.now)
    }

    /// The row that a kept version shows to this statement, if it is this one that stands for the current row.
    pub(crate) fn stands_for<'k>(
        &self,
        shard: &Shard,
        kept: &'k OldVersion,
        table: &Table,
    ) -> Option<&'k RowBuf> {
        if kept.table != table.id() {
            return None;
        }
        let first = shard.old_version_for(&self.snapshot, kept.hash, kept.table, &kept.key)?;
        let row = kept.row.as_deref().filter(|_| std::ptr::eq(first, kept))?;
        self.store.is_live(table, row.head(), self.now).then_some(row)
    }

    /// All live rows of a table, each once, in no order.
    pub fn scan(&self, table: &Arc<Table>) -> TableScan {
        self.count(table);
        TableScan::new(self, table)
    }

    /// The live rows of a table in so many groups of the hash index, from a place that `seed` chooses: a fair sample,
    /// whose cost does not grow with the table.
    pub fn sample(&self, table: &Arc<Table>, seed: u64, groups: u64) -> TableScan {
        self.count(table);
        TableScan::of_sample(self, table, seed, groups)
    }

    /// About how many rows lie within bounds of an index.
    pub fn estimate(&self, index: &Index, bounds: &KeyBounds) -> u64 {
        index.estimate_in(&self.store.arena, bounds)
    }

    /// The live rows within bounds of an index, in its order or the reverse. After a start it waits for an index that
    /// is still being filled.
    pub fn range(
        &self,
        table: &Arc<Table>,
        index: &Arc<Index>,
        bounds: &KeyBounds,
        reverse: bool,
    ) -> IndexScan {
        let (lower, upper) = bounds.encoded(index);
        self.walk(table, index, lower, upper, reverse)
    }

    /// The live rows whose leading columns of an index have these values, in its order or the reverse.
    pub fn equal(
        &self,
        table: &Arc<Table>,
        index: &Arc<Index>,
        values: &[ValueRef<'_>],
        reverse: bool,
    ) -> IndexScan {
        let lower = index.encoded(values.iter().copied());
        let upper = prefix_end(&lower).map_or(Bound::Unbounded, Bound::Excluded);
        self.walk(table, index, Bound::Included(lower), upper, reverse)
    }

    fn walk(
        &self,
        table: &Arc<Table>,
        index: &Arc<Index>,
        lower: Bound<Vec<u8>>,
        upper: Bound<Vec<u8>>,
        reverse: bool,
    ) -> IndexScan {
        self.count(table);
        if !index.is_ready() {
            self.store.recover();
        }
        IndexScan::new(self, table, index, lower, upper, reverse)
    }

    /// Counts a search.
    #[inline]
    fn count(&self, table: &Table) {
        if self.counted {
            self.store.count_operation(table);
        }
        if let Some(own) = self.own {
            own.note_read(table.id());
        }
    }

    /// Whether a row belongs to a commit that this statement does not see, or is not published at all.
    #[inline]
    pub(crate) fn hides(&self, row: &RowBuf) -> bool {
        row.stamp() == 0 || (row.head().is_multi() && !self.snapshot.includes(row.stamp()))
    }

    pub(crate) fn check_snapshot(&self) -> Result<(), ReadError> {
        let given_up = self.store.old.given_up();
        if given_up == 0 || self.snapshot.includes(given_up) {
            Ok(())
        } else {
            Err(ReadError::SnapshotTooOld)
        }
    }

    pub(crate) fn is_visible(&self, table: &Table, row: &RowBuf) -> bool {
        !self.hides(row) && self.store.is_live(table, row.head(), self.now)
    }
}
