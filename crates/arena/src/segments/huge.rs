//! Pages of 2 MiB: when they are asked for, and what replaces small pages by them in the background.
//!
//! A row at random costs a walk of the page tables beside the wait for the row itself, unless its page is large. A
//! tmpfs that is mounted as usual gives small pages, but makes a large one of an extent of them when it is asked to.
//! Fresh extents of segments are asked for as such (`pool.rs`). The rest is done by the owner's housekeeping, an extent
//! or two at a time: the index, which takes its memory in small pieces, segments that lost and regained some units, and
//! what an earlier process left. Where the kernel refuses, small pages do.
//!
//! What a large page takes depends on the machine: a sixth of what as many small ones take where memory is at hand, but
//! several times as much in a virtual machine whose free memory went back to its host, for blocks of 2 MiB go first. So
//! each is timed. Where they are slow to allocate, their memory is found and cleared before they are asked for, so that
//! no other thread waits meanwhile (`file/warm.rs`). Rows above 2 KiB, of which few lie in an extent, get small pages
//! there, and housekeeping takes its time.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::time::{ClockId, clock_gettime};

use crate::Arena;
use crate::file::map::Map;
use crate::file::warm::warm_extent;
use crate::index::growth::Buckets;
use crate::layout::{BUCKET_BYTES, EXTENT_BYTES};
use crate::segments::pool::EXTENT_UNITS;

/// Extents that one look makes large at most: each is a copy of 2 MiB, about a millisecond, and who reads there waits.
const EXTENTS_PER_LOOK: usize = 2;
/// Extents of segments that a search passes over: a hundred microseconds.
const SEARCH_EXTENTS: u32 = 16_384;
/// Looks that are left out after the kernel refused: about a second of them, and twice as many each time.
const FIRST_PAUSE: u32 = 16;
/// But no more than these: about a minute.
const LONGEST_PAUSE: u32 = 960;
/// One that takes more processor time than this kept others from running: the copy of an extent takes half as much, and
/// a fresh one a fifth.
const COLD_NS: u64 = 1_000_000;
/// A large page that takes more processor time is too slow: the small ones for as much memory take 1.1 to 1.4 ms.
const DEAR_NS: u64 = 2_000_000;
/// Fresh extents that large rows get in small pages after a dear one, 128 MiB, before the next is tried; twice as many
/// each time...
const FIRST_SPARED: u32 = 64;
/// ...but no more than these, 2 GiB.
const LONGEST_SPARED: u32 = 1_024;
/// Processor time that making large pages of segments may take from look to look: a sixtieth. After one that took
/// longer looks are left out, and after dear ones more and more, as after a refusal: who reads in an extent waits until
/// it is done, and who shares the processor too. The index does not wait: each lookup begins there, and it is small.
const LOOK_NS: u64 = 1_000_000;

/// Whether to ask for large pages now. Relaxed: what is seen late is done later.
#[derive(Debug)]
pub(crate) struct HugePages {
    on: AtomicBool,
    /// Looks until the kernel is asked again.
    pause: AtomicU32,
    next_pause: AtomicU32,
    /// Whether the last one took long: then the memory of the next is found and cleared before it is asked for.
    cold: AtomicBool,
    /// Fresh extents of large rows until one is tried as a large page again.
    spared: AtomicU32,
    next_spared: AtomicU32,
    /// Looks until segments get large pages again.
    rest: AtomicU32,
    next_rest: AtomicU32,
}

impl Default for HugePages {
    fn default() -> Self {
        Self {
            on: AtomicBool::new(false),
            pause: AtomicU32::new(0),
            next_pause: AtomicU32::new(FIRST_PAUSE),
            // Nobody knows yet, and that takes little where memory is at hand.
            cold: AtomicBool::new(true),
            spared: AtomicU32::new(0),
            next_spared: AtomicU32::new(FIRST_SPARED),
            rest: AtomicU32::new(0),
            next_rest: AtomicU32::new(FIRST_PAUSE),
        }
    }
}

impl HugePages {
    fn wanted(&self) -> bool {
        self.on.load(Ordering::Relaxed) && self.pause.load(Ordering::Relaxed) == 0
    }

    /// What the kernel did: after a refusal it is left alone for a while, since looking for 2 MiB in one piece may take
    /// it long.
    fn note(&self, done: bool) {
        if done {
            self.next_pause.store(FIRST_PAUSE, Ordering::Relaxed);
        } else if self.wanted() {
            let pause = self.next_pause.load(Ordering::Relaxed);
            self.next_pause.store((pause * 2).min(LONGEST_PAUSE), Ordering::Relaxed);
            self.pause.store(pause, Ordering::Relaxed);
        }
    }

    /// Whether to ask for one for a fresh extent of large rows, which do without while they are slow: a row that fills
    /// many small pages wants few of their addresses for each of its bytes.
    fn wanted_for_large_rows(&self) -> bool {
        let spare = |left: u32| left.checked_sub(1);
        self.spared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spare).is_err()
    }

    /// Has a large page made, which says so; whether it did, and the processor time that it took.
    fn make<E>(&self, make: impl FnOnce() -> Result<bool, E>) -> Result<(bool, u64), E> {
        let began = thread_ns();
        if self.cold.load(Ordering::Relaxed) {
            warm_extent();
        }
        let is_huge = make()?;
        let ns = thread_ns() - began;
        self.note(is_huge);
        if is_huge {
            self.cold.store(ns > COLD_NS, Ordering::Relaxed);
        }
        Ok((is_huge, ns))
    }

    /// What a large page of a fresh extent took.
    pub(crate) fn note_cost(&self, ns: u64) {
        if ns <= DEAR_NS {
            self.spared.store(0, Ordering::Relaxed);
            self.next_spared.store(FIRST_SPARED, Ordering::Relaxed);
        } else if self.spared.load(Ordering::Relaxed) == 0 {
            let spared = self.next_spared.load(Ordering::Relaxed);
            self.spared.store(spared, Ordering::Relaxed);
            self.next_spared.store((spared * 2).min(LONGEST_SPARED), Ordering::Relaxed);
        }
    }

    /// Commits an extent, or the rest of one at the end of the file, that has no pages and is about to be written;
    /// whether it is one large page.
    pub(crate) fn commit_fresh(
        &self,
        map: &Map,
        byte: u64,
        bytes: u64,
        large_rows: bool,
    ) -> io::Result<bool> {
        let may_be = self.wanted() && bytes == EXTENT_BYTES;
        if !may_be || (large_rows && !self.wanted_for_large_rows()) {
            return map.commit_fresh(byte, bytes, false);
        }
        let (is_huge, ns) = self.make(|| map.commit_fresh(byte, bytes, true))?;
        if is_huge {
            self.note_cost(ns);
        }
        Ok(is_huge)
    }

    /// A look begins; whether it may ask.
    fn look(&self) -> bool {
        self.rest.store(self.rest.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        let pause = self.pause.load(Ordering::Relaxed);
        self.pause.store(pause.saturating_sub(1), Ordering::Relaxed);
        self.on.load(Ordering::Relaxed) && pause == 0
    }

    /// A look made a large page of small ones in so much time, which is the time of so many looks.
    fn tire(&self, ns: u64) {
        let mut looks = u32::try_from(ns.div_ceil(LOOK_NS)).unwrap_or(u32::MAX);
        let mut next = FIRST_PAUSE;
        if ns > DEAR_NS {
            let rest = self.next_rest.load(Ordering::Relaxed);
            looks = looks.max(rest);
            next = (rest * 2).min(LONGEST_PAUSE);
        }
        self.rest.store(if looks > 1 { looks } else { 0 }, Ordering::Relaxed);
        self.next_rest.store(next, Ordering::Relaxed);
    }

    fn is_rested(&self) -> bool {
        self.rest.load(Ordering::Relaxed) == 0
    }
}

/// Processor time of this thread: what it waits for a processor is nobody's work.
fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither is negative.
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
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
            let segments = || if budget.huge.is_rested() { self.enlarge_segments() } else { None };
            let Some((done, ns)) = self.enlarge_index().or_else(segments) else { return };
            budget.huge.tire(ns);
            if !done || ns > LOOK_NS {
                return;
            }
        }
    }

    /// An extent of segments, and what it took; none if all that have their pages are large.
    fn enlarge_segments(&self) -> Option<(bool, u64)> {
        let extent = self.segments.pool.lock().begin_collapse(SEARCH_EXTENTS)?;
        // The pool is not locked meanwhile, for writers want segments; it leaves the extent alone.
        let unit = u64::from(extent) * u64::from(EXTENT_UNITS);
        let (done, ns) = self.collapse(self.layout.segments * 8 + unit * crate::UNIT_BYTES as u64);
        self.segments.pool.lock().end_collapse(done);
        Some((done, ns))
    }

    /// An extent of buckets, and what it took; none if all that are full of committed ones are large. Buckets keep
    /// their pages for good.
    fn enlarge_index(&self) -> Option<(bool, u64)> {
        let first = self.buckets.lock().next_small(self.layout.max_buckets)?;
        let (done, ns) = self.collapse(self.bucket_word(first) * 8);
        if done {
            self.buckets.lock().note_huge(first, self.layout.max_buckets);
        }
        Some((done, ns))
    }

    /// Makes the small pages of an extent one; whether it is, and the processor time that it took.
    fn collapse(&self, byte: u64) -> (bool, u64) {
        let made = self.budget().huge.make(|| Ok::<_, Infallible>(self.map.collapse(byte, EXTENT_BYTES)));
        let Ok(made) = made;
        made
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_rows_do_without_dear_pages_for_a_while() {
        let pages = HugePages::default();
        let left_out = || (0..=LONGEST_SPARED).take_while(|_| !pages.wanted_for_large_rows()).count() as u32;
        assert_eq!(left_out(), 0);
        let mut spared = FIRST_SPARED;
        for _ in 0..8 {
            pages.note_cost(DEAR_NS + 1);
            // Small rows go on asking, and what they find while large rows do without makes it no longer.
            pages.note_cost(DEAR_NS + 1);
            assert_eq!(left_out(), spared);
            spared = (spared * 2).min(LONGEST_SPARED);
        }
        pages.note_cost(DEAR_NS + 1);
        pages.note_cost(DEAR_NS);
        assert_eq!(left_out(), 0);
        pages.note_cost(DEAR_NS + 1);
        assert_eq!(left_out(), FIRST_SPARED);
    }

    #[test]
    fn memory_is_warmed_until_a_page_takes_little() {
        let pages = HugePages::default();
        let make = |ns: u64, is_huge: bool| {
            let work = || {
                let began = thread_ns();
                while thread_ns() - began < ns {}
                Ok::<_, Infallible>(is_huge)
            };
            let (made, took) = pages.make(work).unwrap();
            assert_eq!((made, took >= ns), (is_huge, true));
            pages.cold.load(Ordering::Relaxed)
        };
        assert!(pages.cold.load(Ordering::Relaxed), "nobody knows yet");
        assert!(make(COLD_NS + 1, true));
        assert!(make(0, false), "what was refused says nothing");
        pages.cold.store(false, Ordering::Relaxed);
        assert!(!make(0, true));
        assert!(!make(COLD_NS + 1, false));
        assert!(make(COLD_NS + 1, true));
    }

    #[test]
    fn housekeeping_rests_after_what_took_long() {
        let pages = HugePages::default();
        pages.on.store(true, Ordering::Relaxed);
        pages.tire(LOOK_NS);
        assert!(pages.is_rested());
        let looks_until_rested = |ns| {
            pages.tire(ns);
            std::iter::repeat_with(|| pages.look()).take_while(|_| !pages.is_rested()).count() + 1
        };
        assert_eq!(looks_until_rested(2 * LOOK_NS), 2);
        let dear = [(); 8].map(|()| looks_until_rested(DEAR_NS + 1));
        assert_eq!(dear, [16, 32, 64, 128, 256, 512, 960, 960]);
        assert_eq!(looks_until_rested(DEAR_NS), 2, "memory is at hand again");
        assert_eq!(looks_until_rested(DEAR_NS + 1), 16);
    }
}
