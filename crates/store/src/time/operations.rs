//! Operations on a table whose rows live by them (`max_ops`).

use std::sync::atomic::{Ordering, fence};

use crate::table::due::AT_ONCE;
use crate::table::operations::{BATCH_SHIFT, own_counter};
use crate::table::{Table, TableState};
use crate::time::Time;

impl Time {
    /// Counts an operation on a table whose rows live by them; others cost one comparison.
    #[inline]
    pub fn count_operation(&self, table: &Table) {
        self.count_operations(table, 1);
    }

    /// The same for several at once.
    #[inline]
    pub fn count_operations(&self, table: &Table, count: u64) {
        // Relaxed: a rule that changes takes effect soon.
        let max = table.state.limits.ops_max.load(Ordering::Relaxed);
        if max != 0 {
            self.count_in_own_counter(&table.state, count, max);
        }
    }

    fn count_in_own_counter(&self, state: &TableState, count: u64, max: u64) {
        let Some(operations) = state.operations.get() else { return };
        let batch = 1 << (max >> BATCH_SHIFT).max(1).ilog2();
        // Relaxed: see `Operations::total`.
        let before = operations.counters[own_counter()].0.fetch_add(count, Ordering::Relaxed);
        if before / batch != (before + count) / batch {
            self.settle_operations(state);
        }
    }

    /// Notes where the operations of a table stand, and lets the rows go whose count is full.
    pub(crate) fn settle_operations(&self, state: &TableState) {
        let max = state.limits.ops_max.load(Ordering::Relaxed);
        let Some(operations) = state.operations.get().filter(|_| max != 0) else { return };
        // Whoever has the log just now does the same.
        let Some(mut log) = operations.log.try_lock() else { return };
        // The stamp first: a row that comes in between is taken for younger than it is, not for older.
        let stamp = self.arena.private().last_stamp() + 1;
        fence(Ordering::Acquire);
        let total = operations.total();
        log.note(total, stamp, max);
        if let Some(below) = log.due(total, max) {
            // Release: pairs with the Acquire in `is_live`.
            state.limits.flushed_below.fetch_max(below, Ordering::Release);
            self.arena.of(state.id).set_dead_below(state.id, below);
            // Whoever makes room next finds the dead segments first.
            self.expect(state, AT_ONCE);
        }
    }
}
