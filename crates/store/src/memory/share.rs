//! How the memory limit is divided between segments, indexes and heap.

use super::SEGMENTS_PER_TICK;
use crate::limits::FREE_UNITS_MAX;
use crate::memory::take::RESERVE_UNITS_MIN;
use crate::memory::{Memory, Pause};

/// Units that the cleaner keeps free, as a share of the limit, so that writers seldom make room themselves.
const FREE_SHARE: u64 = 128;

impl Memory {
    /// Divides the memory limit: what the rest of the files and the heap do not take is for segments.
    pub(crate) fn share_memory(&self) {
        let usage = self.arena.usage();
        let taken = usage.index_bytes + usage.hint_bytes + usage.frame_bytes + self.heap_bytes();
        let least = (RESERVE_UNITS_MIN + 4) * arena::UNIT_BYTES as u64;
        self.arena.private().set_limit(self.memory_bytes().saturating_sub(taken).max(least));
    }

    pub(crate) fn keep_units_free(&self, pause: &mut Pause<'_>) {
        let segments = self.memory_bytes() / arena::UNIT_BYTES as u64;
        let wanted = (segments / FREE_SHARE).min(FREE_UNITS_MAX) + self.reserve_units();
        for _ in 0..SEGMENTS_PER_TICK {
            if self.arena.private().free_bytes() >= wanted * arena::UNIT_BYTES as u64 || !self.free_some(None)
            {
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
}
