//! Whether a row is within its time, and why not.

use std::sync::atomic::Ordering;

use arena::{Location, RowHead};

use crate::clock::{Tick, moment_so_old};
use crate::table::due::AT_ONCE;
use crate::table::removal_cause::RemovalCause;
use crate::table::{Table, TableState};
use crate::time::Time;

impl Time {
    /// Whether a row is within its time: not flushed, not past its own deadline or, without one, its table's, by more
    /// than the table lets it be served stale.
    #[inline]
    pub(crate) fn is_live(&self, table: &Table, head: &RowHead, now: Tick) -> bool {
        let limits = &table.state.limits;
        if limits.is_flush_due(now) {
            self.flush_due(table, now);
        }
        // Acquire: pairs with the Release in `flush`, so that who saw a flush acknowledged reads its number.
        if head.stamp < limits.flushed_below.load(Ordering::Acquire) {
            return false;
        }
        if head.expiry != 0 {
            return now < head.expiry || limits.is_in_grace(head.expiry, now);
        }
        head.stamp >= self.aged_below(&table.state, now)
    }

    /// Rows of smaller stamp have reached their table's `ttl`, and the end of being stale. Computed once a tick.
    pub(crate) fn aged_below(&self, state: &TableState, now: Tick) -> u64 {
        let limits = &state.limits;
        // Acquire: pairs with the Release below, so that the number is that of the tick.
        let ttl = limits.gone_ticks.load(Ordering::Relaxed);
        if ttl != 0 && limits.aged_at.load(Ordering::Acquire) != now {
            let below =
                moment_so_old(now, ttl.into()).map_or(0, |moment| self.first_stamp_after(moment, now));
            limits.aged_below.fetch_max(below, Ordering::Relaxed);
            limits.aged_at.store(now, Ordering::Release);
        }
        limits.aged_below.load(Ordering::Relaxed)
    }

    /// Rows of smaller stamp are dead unless they bear a deadline of their own.
    pub(crate) fn dead_below(&self, table: &Table, now: Tick) -> u64 {
        if table.state.limits.is_flush_due(now) {
            self.flush_due(table, now);
        }
        self.aged_below(&table.state, now).max(flushed_below(&table.state))
    }

    /// Why a row is dead; none if it is live.
    pub(crate) fn dead(&self, table: &Table, head: &RowHead, now: Tick) -> Option<RemovalCause> {
        if self.is_live(table, head, now) {
            return None;
        }
        let state = &table.state;
        // Acquire: pairs with the Release of a flush and of `settle_operations`.
        let below = head.stamp < state.limits.flushed_below.load(Ordering::Acquire);
        // Relaxed: see `TableState::emptied_below`.
        Some(match below {
            true if head.stamp < state.emptied_below.load(Ordering::Relaxed) => RemovalCause::Flushed,
            true => RemovalCause::Operations,
            false => RemovalCause::Ttl,
        })
    }

    /// Why the row at a location is dead; none if it is live. The caller's shard lock keeps it where it is.
    pub(crate) fn dead_there(&self, table: &Table, location: Location, now: Tick) -> Option<RemovalCause> {
        match self.arena.of(location).row(location) {
            Some(row) => self.dead(table, row.head(), now),
            None => Some(RemovalCause::Flushed),
        }
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
        self.arena.of(table.id()).set_dead_below(table.id(), below);
        state.emptied_below.fetch_max(below, Ordering::Relaxed);
        // Release: pairs with the Acquire in `is_live`.
        limits.flushed_below.fetch_max(below, Ordering::Release);
        self.arena.of(table.id()).end_flush_at(table.id(), at);
        // Release: who sees it taken back sees the stamp.
        if limits.flush_at.compare_exchange(at, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
            self.after_flush(table);
        }
    }

    pub(crate) fn after_flush(&self, table: &Table) {
        if table.id().is_shared() {
            self.arena.wake_all();
        }
        // Whoever makes room next finds the flushed segments first.
        self.expect(&table.state, AT_ONCE);
        self.removal_events.note_all(table);
    }
}

fn flushed_below(state: &TableState) -> u64 {
    // Acquire: pairs with the Release in `flush`.
    state.limits.flushed_below.load(Ordering::Acquire)
}
