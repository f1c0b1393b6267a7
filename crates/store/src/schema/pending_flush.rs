//! A flush to come: its tick stands in the arena, in the line of each table that it concerns. So it outlives the
//! process, and every reader of the file can judge by it. Nobody has to be there at the moment: the log of ticks says
//! what was written before it.

use std::sync::atomic::Ordering;

use crate::clock::Tick;
use crate::schema::Schema;
use crate::table::catalog::Catalog;
use crate::table::due::AT_ONCE;

impl Schema {
    /// Tells every table of definitions that come into force when it is flushed.
    pub(crate) fn spread_flush(&self, catalog: &Catalog) {
        let pending = self.pending_flush.lock();
        // One whose moment has passed is in the words of the tables that it concerns.
        if let Some(at) = pending.filter(|&at| at > self.now()) {
            self.announce_flush(catalog, Some(at));
        }
    }

    pub(crate) fn announce_flush(&self, catalog: &Catalog, at: Option<Tick>) {
        for table in catalog.tables() {
            let own = at.filter(|_| table.def().is_flushed()).unwrap_or(0);
            // The arena first: a crash in between must not forget what somebody has seen announced.
            self.arena.of(table.id()).set_flush_at(table.id(), own);
            table.state.limits.flush_at.store(own, Ordering::Release);
        }
    }

    /// Takes up what an earlier process announced. Nobody else uses the store yet.
    pub(crate) fn resume_flush(&self) {
        let announced =
            self.catalog().tables().map(|table| self.arena.of(table.id()).flush_at(table.id())).max();
        *self.pending_flush.lock() = announced.filter(|&at| at != 0);
    }

    /// The tick of a flush to come.
    pub fn flush_to_come(&self) -> Option<Tick> {
        *self.pending_flush.lock()
    }

    /// Carries out what nobody has noticed, so that memory comes back and listeners hear of it.
    pub(crate) fn flush_all_due(&self, now: Tick) {
        let is_due = |pending: &Option<Tick>| pending.is_some_and(|at| at <= now);
        if !is_due(&self.pending_flush.lock()) {
            return;
        }
        let catalog = self.catalog();
        catalog
            .tables()
            .filter(|table| table.state.limits.is_flush_due(now))
            .for_each(|table| self.flush_due(table, now));
        let mut pending = self.pending_flush.lock();
        if is_due(&pending) {
            *pending = None;
        }
    }

    /// Has the next tick look through all segments for rows whose time has come, due or not.
    pub fn look_for_expired(&self) {
        self.catalog().tables().for_each(|table| self.expect(&table.state, AT_ONCE));
    }
}
