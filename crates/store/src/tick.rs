//! The cleaner's work: a bounded share at every tick.

use std::ops::ControlFlow;

use crate::memory::{Pause, SEGMENTS_PER_TICK};
use crate::mutation::Mutation;
use crate::store::Store;

/// Rows that one tick evicts at most from a table above its `max_rows`.
const ROWS_PER_TICK: usize = 16_384;
/// Steps of index growth in a tick; an idle daemon catches up with what writers left.
const SPLITS_PER_TICK: usize = 1_024;

impl Store {
    /// A bounded share of the work that nobody waits for. Called sixteen times a second by one thread.
    pub fn tick(&self) {
        self.tick_with_pauses(&mut || ControlFlow::Continue(()));
    }

    /// The same, in pieces of some segments where there is much to do: `pause` is called between them, while no lock is
    /// held. Only what has expired is put off.
    pub fn tick_with_pauses(&self, pause: &mut Pause<'_>) {
        let _mutation = Mutation;
        let now = self.now();
        self.flush_all_due(now);
        self.checkpoint(now);
        self.arena.heartbeat(self.clock.now_ns());
        self.arena.sweep_pages();
        self.share_memory(now);
        self.arena.take_hits(now);
        // What is put off is found again.
        let _put_off = self.expire_with_pauses(SEGMENTS_PER_TICK, now, pause);
        for table in self.catalog().limited_tables() {
            self.settle_operations(&table.state);
            self.keep_to_rows(table, ROWS_PER_TICK, now);
            self.shrink_to_memory(table, SEGMENTS_PER_TICK);
        }
        self.clear_dropped();
        self.keep_units_free(pause);
        for _ in 0..SPLITS_PER_TICK {
            if !self.grow_index() {
                break;
            }
        }
        self.arena.enlarge_pages();
        self.purge_old_versions();
    }
}
