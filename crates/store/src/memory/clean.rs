//! The cleaner's work: a bounded share at every tick.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use crate::clock::Tick;
use crate::memory::RESERVE_UNITS_MIN;
use crate::mutation::Mutation;
use crate::store::Store;
use crate::table::{Table, TableState};

/// Segments that one tick empties at most: 16 MiB, so a tick takes a few milliseconds.
const SEGMENTS_PER_TICK: usize = 256;
/// Rows that one tick evicts at most from a table above its `max_rows`.
const ROWS_PER_TICK: usize = 16_384;
/// Units that the cleaner keeps free, as a share of the limit, so that writers seldom make room themselves.
const FREE_SHARE: u64 = 128;
/// And at most so many.
const FREE_UNITS_MAX: u64 = 256;
/// Steps of index growth in a tick; an idle daemon catches up with what writers left.
const SPLITS_PER_TICK: usize = 1_024;

/// What the cleaner does between two pieces of work; `Break` puts the others off to the next tick.
pub type Pause<'p> = dyn FnMut() -> ControlFlow<()> + 'p;

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
        self.share_memory();
        self.arena.take_hits(now);
        // What is put off is found again.
        let _put_off = self.expire_with_pauses(SEGMENTS_PER_TICK, now, pause);
        for table in self.catalog().tables() {
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
        self.purge_kept();
    }

    /// Notes which stamp is the first of this tick, once a tick: so the age of every row is known.
    #[inline]
    pub fn checkpoint(&self, now: Tick) {
        // Acquire, and noted before it says so: who passes here draws a stamp that the note does not take for an
        // earlier tick's. A race only notes the tick twice, and the log ignores the second.
        if self.checkpointed.load(Ordering::Acquire) < now {
            self.arena.note_checkpoint(now, self.arena.last_stamp() + 1);
            self.checkpointed.fetch_max(now, Ordering::Release);
        }
    }

    /// Divides the memory limit: what the rest of the files and the heap do not take is for segments.
    pub(crate) fn share_memory(&self) {
        let usage = self.arena.usage();
        let taken = usage.index_bytes + usage.hint_bytes + usage.frame_bytes + self.heap_bytes();
        let least = (RESERVE_UNITS_MIN + 4) * arena::UNIT_BYTES as u64;
        self.arena.set_limit(self.memory_bytes().saturating_sub(taken).max(least));
    }

    fn keep_units_free(&self, pause: &mut Pause<'_>) {
        let segments = self.memory_bytes() / arena::UNIT_BYTES as u64;
        let wanted = (segments / FREE_SHARE).min(FREE_UNITS_MAX) + self.reserve_units();
        for _ in 0..SEGMENTS_PER_TICK {
            if self.arena.free_bytes() >= wanted * arena::UNIT_BYTES as u64 || !self.free_some(None) {
                break;
            }
            // Writers need the room now.
            let _go_on = pause();
        }
        // Free pages are kept for the next rows, for a fresh page costs a fault and a clearing. Only what lies above
        // the limit goes back to the system, when index or heap took from it.
        let usage = self.arena.usage();
        let taken = usage.committed_bytes
            + usage.index_bytes
            + usage.hint_bytes
            + usage.frame_bytes
            + self.heap_bytes();
        let above = taken.saturating_sub(self.memory_bytes());
        if above > 0 {
            self.arena.trim(above);
        }
    }

    /// Rows of smaller stamp are dead unless they bear a deadline of their own.
    pub(crate) fn dead_below(&self, table: &Table, now: Tick) -> u64 {
        if table.state.limits.is_flush_due(now) {
            self.flush_due(table, now);
        }
        self.aged_below(&table.state, now).max(flushed_below(&table.state))
    }
}

fn flushed_below(state: &TableState) -> u64 {
    // Acquire: pairs with the Release in `flush`.
    state.limits.flushed_below.load(Ordering::Acquire)
}
