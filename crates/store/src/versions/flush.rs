//! All rows of a table gone in one step, whatever their number.
//!
//! Rows of a smaller stamp than the last flush are dead. The stamp of a flush is drawn while no shard is in another
//! hand, so that every write of one row came before it or comes after it, and the table's account of its rows starts
//! again.
//!
//! The tick of a flush to come stands in the table's line in the arena, so that it outlives the process and every
//! reader of the file can judge by it. Nobody has to be there at the moment: the log of ticks says what was written
//! before it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::MutexGuard;

use crate::clock::Tick;
use crate::error::WriteError;
use crate::mutation::Mutation;
use crate::store::Store;
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::versions::shard::Shard;
use crate::view::View;

/// How long who removes all rows of a table waits for commits of many rows that are under way; those of some ten
/// thousand rows are through by then. After that the rows are removed one by one, which waits for none.
const COMMITS_PATIENCE: Duration = Duration::from_millis(100);

/// The lock of every shard.
#[derive(Debug)]
struct AllShards<'s> {
    _guards: Vec<MutexGuard<'s, Shard>>,
}

/// What changes with every write and removal of a row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    census: [u64; 3],
    written: u64,
}

/// How many live rows a look at each of them found, and where the table stood then.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    rows: u64,
    standing: Standing,
}

impl Standing {
    fn of(table: &Table) -> Self {
        // Relaxed: who compares two of them took every shard's lock in between.
        let written = table.state.counters.written.load(Ordering::Relaxed);
        Self { census: table.state.census.standing(), written }
    }
}

impl View<'_> {
    /// Where a table stands whose rows are going to be counted.
    pub fn standing(&self, table: &Table) -> Standing {
        Standing::of(table)
    }

    /// What was counted since. `None`: a commit of many rows was on its way, of which the count may know the half.
    pub fn counted(&self, standing: Standing, rows: u64) -> Option<Counted> {
        let quiet = !self.store.is_unsettled() && self.store.statements.is_quiet(&self.sight);
        quiet.then_some(Counted { rows, standing })
    }
}

impl Store {
    /// Makes every row of a table invisible at once; its memory comes back later.
    pub fn flush(&self, table: &Table) {
        let all = self.lock_shards();
        let mutation = Mutation;
        self.statements.change(|| self.raise_flushed(&all, table, self.arena.next_stamp()));
        drop(mutation);
        drop(all);
        self.after_flush(table);
    }

    /// Ends every row of a table that was dropped, those too that are written under its number later: to who still has
    /// the table they are not there. A statement that reads the table fails.
    pub(crate) fn end_rows(&self, table: &Table) {
        let all = self.lock_shards();
        self.statements.change(|| {
            let state = &table.state;
            // Relaxed: see `TableState::removed_below`.
            state.removed_below.store(u64::MAX, Ordering::Relaxed);
            self.raise_flushed(&all, table, self.arena.next_stamp());
            // Release: pairs with the Acquire in `is_live`. Rows of a table that takes the number come later, so who
            // meets one sees this.
            state.limits.flushed_below.store(u64::MAX, Ordering::Release);
        });
        drop(all);
        self.after_flush(table);
    }

    /// Removes every row of a table in one step, as a commit of all of them would, and says how many there were. A
    /// statement that is reading the table fails. `None`, and nothing is done: only a look at each row can tell how
    /// many there are, or somebody wrote since they were `counted`.
    pub fn remove_whole(&self, table: &Table, counted: Option<Counted>) -> Result<Option<u64>, WriteError> {
        if self.is_unsettled() {
            return Ok(None);
        }
        let _mutation = Mutation;
        // A commit that has drawn its stamp and not swapped all its rows would be counted in part.
        let Some(_alone) = self.committing.try_write_for(COMMITS_PATIENCE) else { return Ok(None) };
        let all = self.lock_shards();
        if table.is_gone() {
            return Err(WriteError::TableGone);
        }
        let now = self.now();
        let standing = Standing::of(table);
        let counted = counted.filter(|counted| counted.standing == standing).map(|counted| counted.rows);
        let rows = match table.state.census.exact(now, self.dead_below(table, now)).or(counted) {
            Some(rows @ 1..) => rows,
            none => return Ok(none),
        };
        self.statements.change(|| {
            let stamp = self.arena.next_stamp();
            // Relaxed: `flushed_below` is stored after it, with Release.
            table.state.removed_below.fetch_max(stamp, Ordering::Relaxed);
            self.raise_flushed(&all, table, stamp);
        });
        drop(all);
        self.after_flush(table);
        self.count_operation(table);
        Ok(Some(rows))
    }

    fn lock_shards(&self) -> AllShards<'_> {
        AllShards { _guards: self.shards.iter().map(|shard| shard.lock()).collect() }
    }

    /// Lets the rows die that a table has now: those of a smaller stamp.
    fn raise_flushed(&self, _all: &AllShards<'_>, table: &Table, stamp: u64) {
        let state = &table.state;
        // The arena first: what somebody saw gone is gone in the next process too.
        self.arena.set_dead_below(table.id(), stamp);
        state.emptied_below.fetch_max(stamp, Ordering::Relaxed);
        // Release: pairs with the Acquire in `is_live`.
        state.limits.flushed_below.fetch_max(stamp, Ordering::Release);
        state.census.empty(stamp);
    }

    fn after_flush(&self, table: &Table) {
        if table.id().is_shared() {
            self.arena.wake_all();
        }
        // Whoever makes room next finds the flushed segments first.
        self.nothing_due.store(0, Ordering::Relaxed);
        self.departures.note_all(table);
    }

    /// Flushes every table that memcached can reach, now or at a tick to come, which takes the place of an earlier one.
    pub fn flush_reachable(&self, at: Option<Tick>) {
        let mut pending = self.pending_flush.lock();
        let now = self.now();
        let catalog = self.catalog();
        // One whose moment has passed was carried out then, whoever notices it.
        catalog.tables().for_each(|table| self.flush_due(table, now));
        *pending = at.filter(|&at| at > now);
        self.announce_flush(&catalog, *pending);
        if pending.is_none() {
            catalog
                .tables()
                .filter(|table| table.def().answers_to_memcached())
                .for_each(|table| self.flush(table));
        }
    }

    /// Tells every table of definitions that come into force when it is flushed.
    pub(crate) fn spread_flush(&self, catalog: &Catalog) {
        let pending = self.pending_flush.lock();
        // One whose moment has passed is in the words of the tables that it concerns.
        if let Some(at) = pending.filter(|&at| at > self.now()) {
            self.announce_flush(catalog, Some(at));
        }
    }

    fn announce_flush(&self, catalog: &Catalog, at: Option<Tick>) {
        for table in catalog.tables() {
            let own = at.filter(|_| table.def().answers_to_memcached()).unwrap_or(0);
            // The arena first: a crash in between must not forget what somebody has seen announced.
            self.arena.set_flush_at(table.id(), own);
            table.state.limits.flush_at.store(own, Ordering::Release);
        }
    }

    /// Takes up what an earlier process announced. Nobody else uses the store yet.
    pub(crate) fn resume_flush(&self) {
        let announced = self.catalog().tables().map(|table| self.arena.flush_at(table.id())).max();
        *self.pending_flush.lock() = announced.filter(|&at| at != 0);
    }

    /// Carries out the flush of a table whose moment has come. Whoever first looks at a row after that moment does so,
    /// under whatever lock.
    #[cold]
    pub(crate) fn flush_due(&self, table: &Table, now: Tick) {
        let (state, limits) = (&table.state, &table.state.limits);
        let at = limits.flush_at.load(Ordering::Acquire);
        if at == 0 || at > now {
            return;
        }
        // Each write notes its tick before it draws its stamp: what is below was begun before the moment, and what was
        // begun later is not, however late this is noticed.
        let below = self.first_stamp_after(at - 1, now);
        // The arena first, as for every flush.
        self.arena.set_dead_below(table.id(), below);
        state.emptied_below.fetch_max(below, Ordering::Relaxed);
        // Release: pairs with the Acquire in `is_live`.
        limits.flushed_below.fetch_max(below, Ordering::Release);
        self.arena.end_flush_at(table.id(), at);
        // Release: who sees it taken back sees the stamp.
        if limits.flush_at.compare_exchange(at, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
            self.after_flush(table);
        }
    }

    /// Carries out what nobody has noticed, so that memory comes back and listeners hear of it.
    pub(crate) fn flush_all_due(&self, now: Tick) {
        let catalog = self.catalog();
        catalog
            .tables()
            .filter(|table| table.state.limits.is_flush_due(now))
            .for_each(|table| self.flush_due(table, now));
        let mut pending = self.pending_flush.lock();
        if pending.is_some_and(|at| at <= now) {
            *pending = None;
        }
    }
}
