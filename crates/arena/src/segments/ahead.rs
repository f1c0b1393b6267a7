//! Memory made ready ahead of writers: who fills an arena seldom waits for the kernel to find and clear pages.
//!
//! A thread of the caller's sleeps until a writer took a segment and little memory is ready behind it. Then it has the
//! next extents committed, without the pool's lock. The faster writers are, the more is kept ready.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::Arena;
use crate::layout::{EXTENT_BYTES, UNIT_BYTES};
use crate::segments::pool::EXTENT_UNITS;

/// Units kept ready at most: 8 MiB, what a gigabyte a second takes while the thread comes to run and the kernel works.
const MOST_UNITS: u32 = MOST_EXTENTS * EXTENT_UNITS;
/// The same in extents.
const MOST_EXTENTS: u32 = 4;
/// And no more than this part of the limit, for what is ready is not used; but an extent where no more than 64 MiB are
/// allowed, as where nothing else is said.
const SHARE: u64 = 16;
/// Writers that ask for nothing so long are slow again.
const CALM: Duration = Duration::from_millis(100);
/// A file system that had no room is left alone so long.
const PAUSE: Duration = Duration::from_secs(1);

/// What writers and the thread tell each other.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Units to keep ready; 0 where no thread does. Relaxed: what is seen late is ready a segment later.
    units: AtomicU32,
    /// Whether the writer who asked last fills memory with large rows. Relaxed: a guess.
    large_rows: AtomicBool,
    talk: Mutex<Talk>,
    asked: Condvar,
}

#[derive(Debug, Default)]
struct Talk {
    is_asked: bool,
    has_ended: bool,
    /// The last answer is not long ago.
    is_busy: bool,
}

impl Ahead {
    pub(crate) fn begin(&self) {
        *self.talk.lock() = Talk::default();
        self.units.store(EXTENT_UNITS, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.units.store(0, Ordering::Relaxed);
        self.talk.lock().has_ended = true;
        self.asked.notify_all();
    }

    /// Units to keep ready under a limit of so many.
    pub(crate) fn units(&self, limit: u64) -> u32 {
        let share = limit / SHARE / u64::from(EXTENT_UNITS) * u64::from(EXTENT_UNITS);
        u64::from(self.units.load(Ordering::Relaxed)).min(share) as u32
    }

    /// Asks for more to be made ready, for large rows or for small ones.
    pub(crate) fn ask(&self, large_rows: bool) {
        self.large_rows.store(large_rows, Ordering::Relaxed);
        let mut talk = self.talk.lock();
        if !talk.is_asked {
            talk.is_asked = true;
            self.asked.notify_one();
        }
    }

    /// Sleeps until somebody asks; false at the end.
    pub(crate) fn wait(&self) -> bool {
        let mut talk = self.talk.lock();
        while !talk.is_asked && !talk.has_ended {
            if !talk.is_busy {
                self.asked.wait(&mut talk);
            } else if self.asked.wait_for(&mut talk, CALM).timed_out() {
                talk.is_busy = false;
                self.units.store(EXTENT_UNITS, Ordering::Relaxed);
            }
        }
        if talk.is_busy && !talk.has_ended {
            let more = (self.units.load(Ordering::Relaxed) * 2).min(MOST_UNITS);
            self.units.store(more, Ordering::Relaxed);
        }
        talk.is_busy = true;
        talk.is_asked = false;
        !talk.has_ended
    }
}

impl Ahead {
    /// There was no room: writers are not heard for a while.
    pub(crate) fn pause(&self) {
        self.units.store(0, Ordering::Relaxed);
        let mut talk = self.talk.lock();
        while !talk.has_ended && !self.asked.wait_for(&mut talk, PAUSE).timed_out() {}
        if !talk.has_ended {
            self.units.store(EXTENT_UNITS, Ordering::Relaxed);
        }
    }
}

impl Arena {
    /// Commits extents until as many units are ready as are to be, unless the limit leaves no room: a bounded number,
    /// for writers ask again. False: the file system has none.
    pub(crate) fn commit_ahead(&self) -> bool {
        let budget = self.budget();
        for _ in 0..MOST_EXTENTS {
            let begun = self.segments.pool.lock().begin_ahead();
            let Some(first) = begun else { return true };
            // Who slept is owed time, which those would wait for who wake up meanwhile; who gives way is owed nothing.
            std::thread::yield_now();
            let byte = self.layout.segments * 8 + u64::from(first) * UNIT_BYTES as u64;
            let large_rows = budget.ahead.large_rows.load(Ordering::Relaxed);
            // The pool is not locked meanwhile, for writers want segments; to them these units are taken.
            let done = budget.huge.commit_fresh(&self.map, byte, EXTENT_BYTES, large_rows).ok();
            self.segments.pool.lock().end_ahead(first, done);
            if done.is_none() {
                return false;
            }
        }
        true
    }
}
