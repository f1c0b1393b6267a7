//! Pages of 2 MiB: when they are asked for, and what makes them of small ones behind everybody's back.
//!
//! A row at random costs a walk of the page tables beside the wait for the row itself, unless its page is large. A tmpfs
//! that is mounted as usual gives small pages, but makes a large one of an extent of them when it is asked to. Fresh
//! extents of segments are asked for as such (`pool.rs`). The rest is done by the owner's housekeeping, an extent or two
//! at a time: the index, which takes its memory in small pieces, segments that lost and regained some units, and what an
//! earlier process left. Where the kernel refuses, small pages do.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::Arena;
use crate::growth::Buckets;
use crate::layout::{BUCKET_BYTES, EXTENT_BYTES};
use crate::pool::EXTENT_UNITS;

/// Extents that one look makes large at most: each is a copy of 2 MiB, about a millisecond, and who reads there waits.
const EXTENTS_PER_LOOK: usize = 2;
/// Extents of segments that a search passes over: a hundred microseconds.
const SEARCH_EXTENTS: u32 = 16_384;
/// Looks that are left out after the kernel refused: about a second of them, and twice as many each time.
const FIRST_PAUSE: u32 = 16;
/// But no more than these: about a minute.
const LONGEST_PAUSE: u32 = 960;

/// Whether to ask for large pages now. Relaxed: what is seen late is done later.
#[derive(Debug)]
pub(crate) struct HugePages {
    on: AtomicBool,
    /// Looks until the kernel is asked again.
    pause: AtomicU32,
    next_pause: AtomicU32,
}

impl Default for HugePages {
    fn default() -> Self {
        Self { on: AtomicBool::new(false), pause: AtomicU32::new(0), next_pause: AtomicU32::new(FIRST_PAUSE) }
    }
}

impl HugePages {
    pub(crate) fn wanted(&self) -> bool {
        self.on.load(Ordering::Relaxed) && self.pause.load(Ordering::Relaxed) == 0
    }

    /// What the kernel did: after a refusal it is left alone for a while, since looking for 2 MiB in one piece may take
    /// it long.
    pub(crate) fn note(&self, done: bool) {
        if done {
            self.next_pause.store(FIRST_PAUSE, Ordering::Relaxed);
        } else if self.wanted() {
            let pause = self.next_pause.load(Ordering::Relaxed);
            self.next_pause.store((pause * 2).min(LONGEST_PAUSE), Ordering::Relaxed);
            self.pause.store(pause, Ordering::Relaxed);
        }
    }

    /// A look begins; whether it may ask.
    fn look(&self) -> bool {
        let pause = self.pause.load(Ordering::Relaxed);
        self.pause.store(pause.saturating_sub(1), Ordering::Relaxed);
        self.on.load(Ordering::Relaxed) && pause == 0
    }
}

impl Arena {
    /// Whether the kernel is asked for pages of 2 MiB from here on. What has them keeps them.
    pub fn set_huge_pages(&self, on: bool) {
        self.segments.pool.lock().budget.huge.on.store(on, Ordering::Relaxed);
    }

    /// Makes pages of 2 MiB of small ones, a bounded number. Called regularly by one thread.
    pub fn enlarge_pages(&self) {
        let budget = self.budget();
        if !budget.huge.look() {
            return;
        }
        for _ in 0..EXTENTS_PER_LOOK {
            let Some(done) = self.enlarge_index().or_else(|| self.enlarge_segments()) else { return };
            budget.huge.note(done);
            if !done {
                return;
            }
        }
    }

    /// An extent of segments; none if all that have their pages are large.
    fn enlarge_segments(&self) -> Option<bool> {
        let extent = self.segments.pool.lock().begin_collapse(SEARCH_EXTENTS)?;
        // The pool is not locked meanwhile, for writers want segments; it leaves the extent alone.
        let unit = u64::from(extent) * u64::from(EXTENT_UNITS);
        let done =
            self.map.collapse(self.layout.segments * 8 + unit * crate::UNIT_BYTES as u64, EXTENT_BYTES);
        self.segments.pool.lock().end_collapse(done);
        Some(done)
    }

    /// An extent of buckets; none if all that are full of committed ones are large. Buckets keep their pages for good.
    fn enlarge_index(&self) -> Option<bool> {
        let first = self.buckets.lock().next_small(self.layout.max_buckets)?;
        let done = self.map.collapse(self.bucket_word(first) * 8, EXTENT_BYTES);
        if done {
            self.buckets.lock().note_huge(first, self.layout.max_buckets);
        }
        Some(done)
    }

    /// Bytes known to be on pages of 2 MiB.
    pub(crate) fn huge_bytes(&self) -> u64 {
        let extents = self.segments.pool.lock().huge_extents + self.buckets.lock().huge_extents();
        extents * EXTENT_BYTES
    }
}

/// Buckets of an extent.
const EXTENT_BUCKETS: u64 = EXTENT_BYTES / BUCKET_BYTES;

impl Buckets {
    /// The first bucket of the next extent of committed buckets whose pages are small as far as is known.
    fn next_small(&self, max_buckets: u64) -> Option<u64> {
        let main = self.main_huge * EXTENT_BUCKETS;
        let overflow = self.overflow_huge * EXTENT_BUCKETS;
        if main + EXTENT_BUCKETS <= self.main_committed {
            return Some(main);
        }
        (overflow + EXTENT_BUCKETS <= self.overflow_committed).then_some(max_buckets + overflow)
    }

    fn note_huge(&mut self, first: u64, max_buckets: u64) {
        if first < max_buckets {
            self.main_huge = first / EXTENT_BUCKETS + 1;
        } else {
            self.overflow_huge = (first - max_buckets) / EXTENT_BUCKETS + 1;
        }
    }

    fn huge_extents(&self) -> u64 {
        self.main_huge + self.overflow_huge
    }
}
