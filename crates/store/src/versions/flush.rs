//! All rows of a table gone in one step, whatever their number.
//!
//! Rows of a smaller stamp than the last flush are dead. The stamp of a flush is drawn while no shard is in another
//! hand, so that every write of one row came before it or comes after it, and the table's account of its rows starts
//! again.

use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use crate::clock::Tick;
use crate::mutation::Mutation;
use crate::table::Table;
use crate::versions::Versions;
use crate::versions::shard::Shard;

/// The lock of every shard.
#[derive(Debug)]
pub(crate) struct AllShards<'s> {
    _guards: Vec<MutexGuard<'s, Shard>>,
}

impl Versions {
    /// Makes every row of a table invisible at once; its memory comes back later.
    pub fn flush(&self, table: &Table) {
        let all = self.lock_shards();
        let mutation = Mutation;
        self.statements.change(|| self.raise_flushed(&all, table, self.arena.private().next_stamp()));
        self.tell_emptied(table);
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
            self.raise_flushed(&all, table, self.arena.private().next_stamp());
            // Release: pairs with the Acquire in `is_live`. Rows of a table that takes the number come later, so who
            // meets one sees this.
            state.limits.flushed_below.store(u64::MAX, Ordering::Release);
        });
        drop(all);
        self.after_flush(table);
    }

    pub(crate) fn lock_shards(&self) -> AllShards<'_> {
        AllShards { _guards: self.shards.iter().map(|shard| shard.lock()).collect() }
    }

    /// Lets the rows die that a table has now: those of a smaller stamp.
    pub(crate) fn raise_flushed(&self, _all: &AllShards<'_>, table: &Table, stamp: u64) {
        let state = &table.state;
        // The arena first: what somebody saw gone is gone in the next process too.
        self.arena.of(table.id()).set_dead_below(table.id(), stamp);
        state.emptied_below.fetch_max(stamp, Ordering::Relaxed);
        // Release: pairs with the Acquire in `is_live`.
        state.limits.flushed_below.fetch_max(stamp, Ordering::Release);
        state.row_count.empty(stamp);
    }

    /// Flushes every table that memcached can reach and that does not say otherwise, now or at a tick to come, which
    /// takes the place of an earlier one.
    pub fn flush_reachable(&self, at: Option<Tick>) {
        let mut pending = self.pending_flush.lock();
        let now = self.now();
        let catalog = self.catalog();
        // One whose moment has passed was carried out then, whoever notices it.
        catalog.tables().for_each(|table| self.flush_due(table, now));
        *pending = at.filter(|&at| at > now);
        self.announce_flush(&catalog, *pending);
        if pending.is_none() {
            catalog.tables().filter(|table| table.def().is_flushed()).for_each(|table| self.flush(table));
        }
    }
}
