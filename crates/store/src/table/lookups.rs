//! Hits and misses of a table: lookups of a row by its whole key, and whether one was there.
//!
//! The first threads that count have a pair of words each in every table, which nobody else writes: a lookup costs one
//! load and one store, no lock and no exchange between processors. Threads that come later share the last pair.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::COUNTING_THREADS;
use crate::table::operations::thread_number;

/// One thread's counts of hits and misses. They fill two cache lines, for processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Own([AtomicU64; 2]);

/// The lookups of one table since the start.
#[derive(Debug)]
pub(crate) struct Lookups(Box<[Own; COUNTING_THREADS + 1]>);

impl Default for Lookups {
    fn default() -> Self {
        Self(Box::new(std::array::from_fn(|_| Own::default())))
    }
}

impl Lookups {
    /// Counts some lookups of one outcome.
    #[inline]
    pub(crate) fn count(&self, hit: bool) {
        let thread = thread_number();
        let word = &self.0[thread.min(COUNTING_THREADS)].0[usize::from(!hit)];
        // Relaxed: figures for people, in no order with anything.
        if thread < COUNTING_THREADS {
            word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        } else {
            word.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Hits and misses so far.
    pub(crate) fn totals(&self) -> [u64; 2] {
        // Relaxed: see `count`.
        [0, 1].map(|outcome| self.0.iter().map(|own| own.0[outcome].load(Ordering::Relaxed)).sum())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// More threads than have words of their own: none of their counts is lost.
    #[test]
    fn all_threads_count() {
        const EACH: u64 = 10_000;
        let lookups = Arc::new(Lookups::default());
        let threads: Vec<_> = (0..COUNTING_THREADS as u64 + 8)
            .map(|number| {
                let lookups = Arc::clone(&lookups);
                std::thread::spawn(move || (0..EACH).for_each(|at| lookups.count((at + number) % 4 != 0)))
            })
            .collect();
        let count = threads.len() as u64;
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(lookups.totals(), [count * EACH / 4 * 3, count * EACH / 4]);
    }
}
