//! `max_ops`: a second clock for a table, which counts the operations on it.
//!
//! Operations are counted where the option is set, and nowhere else. Each thread counts in a counter of its own, so
//! that no two processors share a cache line for it. Now and then the sum of the counters is noted beside the next
//! stamp: rows of smaller stamps were written before that many operations, and are dead when `max_ops` more have been.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Counters of a table: as many as threads that are busy at once on a large machine; more threads share them.
const COUNTERS: usize = 16;
/// Notes within one `max_ops`: a row goes at most one part in so many later than it says.
const NOTES: u64 = 1_024;
/// Of an operation count's logarithm, what is left for one counter to count before it looks at the sum.
pub(crate) const BATCH_SHIFT: u32 = (NOTES * COUNTERS as u64).ilog2();

/// One thread's count. It fills two cache lines, for processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counter(pub(crate) AtomicU64);

/// The operations on one table.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    pub(crate) counters: [Counter; COUNTERS],
    /// Taken for a moment, and only by who gets it at once.
    pub(crate) log: Mutex<Log>,
}

/// Which stamp was the next when so many operations had been, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Log(VecDeque<(u64, u64)>);

impl Operations {
    /// Operations so far.
    pub(crate) fn total(&self) -> u64 {
        // Relaxed: each counter is right by itself, and an operation under way may be in the sum or not.
        self.counters.iter().map(|own| own.0.load(Ordering::Relaxed)).sum()
    }
}

impl Log {
    /// Notes the next stamp, if enough operations were since the last note.
    pub(crate) fn note(&mut self, operations: u64, stamp: u64, max: u64) {
        let step = max.div_ceil(NOTES).max(1);
        if self.0.back().is_none_or(|&(last, _)| operations >= last + step) {
            self.0.push_back((operations, stamp));
        }
    }

    /// The newest note that is `max` operations old or older: smaller stamps are dead.
    pub(crate) fn due(&mut self, operations: u64, max: u64) -> Option<u64> {
        let mut below = None;
        while let Some(&(noted, stamp)) = self.0.front()
            && noted.saturating_add(max) <= operations
        {
            below = Some(stamp);
            self.0.pop_front();
        }
        below
    }
}

/// No thread's number.
const UNNUMBERED: usize = usize::MAX;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(UNNUMBERED) };
}

/// The next thread's number.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The calling thread's number among those that count. No two have the same.
#[inline]
pub(crate) fn thread_number() -> usize {
    let known = NUMBER.get();
    if known == UNNUMBERED { next_number() } else { known }
}

#[cold]
fn next_number() -> usize {
    // Relaxed: only that no two are the same.
    let own = THREADS.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(own);
    own
}

/// The calling thread's counter of a table's operations.
pub(crate) fn own_counter() -> usize {
    thread_number() % COUNTERS
}

#[cfg(test)]
mod tests {
    use super::Log;

    #[test]
    fn a_note_is_due_after_so_many_operations() {
        let mut log = Log::default();
        for operations in 1..=10 {
            log.note(operations, operations * 100, 5);
        }
        assert_eq!(log.due(5, 5), None);
        assert_eq!(log.due(6, 5), Some(100));
        assert_eq!(log.due(6, 5), None, "once");
        assert_eq!(log.due(10, 5), Some(500));
    }

    #[test]
    fn notes_are_bounded() {
        let mut log = Log::default();
        for operations in (0..3_000_000).step_by(7) {
            log.note(operations, operations, 1_000_000);
            log.due(operations, 1_000_000);
            assert!(log.0.len() <= 1_026);
        }
    }
}
