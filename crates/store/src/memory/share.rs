//! How the memory limit is divided between segments, indexes and heap.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::SEGMENTS_PER_TICK;
use crate::clock::{TICKS_PER_SECOND, Tick, ticks_between};
use crate::limits::FREE_UNITS_MAX;
use crate::memory::take::RESERVE_UNITS_MIN;
use crate::memory::{Memory, Pause};

/// Units that the cleaner keeps free, as a share of the limit, so that writers seldom make room themselves.
const FREE_SHARE: u64 = 128;

/// What the heap took when it was counted last. Relaxed: the cleaner alone counts.
#[derive(Debug, Default)]
pub(crate) struct HeapShare {
    bytes: AtomicU64,
    /// The newest stamp then.
    stamp: AtomicU64,
    at: AtomicU32,
}

impl Memory {
    /// Divides the memory limit: what the rest of the files and the heap do not take is for segments.
    pub(crate) fn share_memory(&self, now: Tick) {
        let usage = self.arena.usage();
        let taken = usage.index_bytes + usage.hint_bytes + usage.frame_bytes + self.count_heap(now);
        let least = (RESERVE_UNITS_MIN + 4) * arena::UNIT_BYTES as u64;
        self.arena.private().set_limit(self.memory_bytes().saturating_sub(taken).max(least));
    }

    /// Counts what the heap takes, table by table, if somebody wrote since the last time, and once a second.
    fn count_heap(&self, now: Tick) -> u64 {
        let HeapShare { bytes, stamp, at } = &self.heap_share;
        let newest = self.arena.private().last_stamp();
        let is_old = ticks_between(at.load(Ordering::Relaxed), now) >= TICKS_PER_SECOND;
        if is_old || stamp.load(Ordering::Relaxed) != newest {
            bytes.store(self.heap_bytes(), Ordering::Relaxed);
            stamp.store(newest, Ordering::Relaxed);
            at.store(now, Ordering::Relaxed);
        }
        bytes.load(Ordering::Relaxed)
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
            + self.heap_share.bytes.load(Ordering::Relaxed);
        let above = taken.saturating_sub(self.memory_bytes());
        if above > 0 {
            self.arena.trim(above);
        }
    }
}
