//! Permits to run for SQL threads: one that works has one, and one that waits for a slow client has none.
//!
//! A `COPY TO STDOUT` makes its rows as its client reads them, and its thread waits meanwhile. Two slow readers once
//! kept both threads, and nobody else's statement ran. So there are more threads than permits: the one that waits gives
//! its permit to one that stands by, and takes one again when its client has read. For that moment there may be one
//! more at work than there are permits; the next that has done its turn stands by.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

/// See the module.
#[derive(Debug)]
pub(crate) struct RunPermits {
    count: usize,
    /// Threads at work. Changed under the lock; read without it by those who ask whether they are one too many, who
    /// then ask again under it.
    working: AtomicUsize,
    standing_by: Mutex<StandingBy>,
    /// A permit is free, or the server ends.
    free: Condvar,
}

#[derive(Debug, Default)]
struct StandingBy {
    threads: usize,
    ended: bool,
}

impl RunPermits {
    pub(crate) fn new(count: usize) -> Self {
        Self { count, working: AtomicUsize::new(0), standing_by: Mutex::default(), free: Condvar::new() }
    }

    /// Waits for a permit.
    pub(crate) fn take(&self) {
        let mut standing_by = self.standing_by.lock();
        standing_by.threads += 1;
        while self.working.load(Ordering::Relaxed) >= self.count && !standing_by.ended {
            self.free.wait(&mut standing_by);
        }
        standing_by.threads -= 1;
        self.working.fetch_add(1, Ordering::Relaxed);
    }

    /// Stands by, if there are more at work than permits. Whoever has done a turn asks.
    #[inline]
    pub(crate) fn yield_if_crowded(&self) {
        // Relaxed: `leave` asks again under the lock.
        if self.working.load(Ordering::Relaxed) > self.count {
            self.leave();
        }
    }

    #[cold]
    fn leave(&self) {
        {
            let standing_by = self.standing_by.lock();
            if self.working.load(Ordering::Relaxed) <= self.count || standing_by.ended {
                return;
            }
            self.working.fetch_sub(1, Ordering::Relaxed);
        }
        self.take();
    }

    /// Gives the permit away while `wait` waits. `wait` is told how to find out that nobody is left to take it.
    pub(crate) fn without<T>(&self, wait: impl FnOnce(&dyn Fn() -> bool) -> T) -> T {
        struct Back<'s>(&'s RunPermits);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                let _order = self.0.standing_by.lock();
                self.0.working.fetch_add(1, Ordering::Relaxed);
            }
        }
        {
            let _order = self.standing_by.lock();
            self.working.fetch_sub(1, Ordering::Relaxed);
            self.free.notify_one();
        }
        let _back = Back(self);
        wait(&|| self.is_short())
    }

    /// Whether nobody works, and nobody stands by to do so.
    fn is_short(&self) -> bool {
        let standing_by = self.standing_by.lock();
        self.working.load(Ordering::Relaxed) == 0 && standing_by.threads == 0
    }

    /// The server ends: everybody who stands by goes on, and sees it.
    pub(crate) fn end(&self) {
        self.standing_by.lock().ended = true;
        self.free.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn who_waits_gives_its_permit_away_and_takes_one_again() {
        let permits = Arc::new(RunPermits::new(1));
        permits.take();
        let other = {
            let permits = Arc::clone(&permits);
            thread::spawn(move || {
                permits.take();
                while permits.working.load(Ordering::Relaxed) <= 1 {
                    thread::yield_now();
                }
                // The first is back: this one stands by until the end.
                permits.yield_if_crowded();
            })
        };
        permits.without(|is_short| {
            while permits.working.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            assert!(!is_short());
        });
        while permits.standing_by.lock().threads == 0 {
            thread::yield_now();
        }
        assert_eq!(permits.working.load(Ordering::Relaxed), 1);
        permits.end();
        other.join().unwrap();
    }

    #[test]
    fn it_is_known_that_nobody_is_left() {
        let permits = RunPermits::new(2);
        permits.take();
        permits.take();
        assert!(!permits.is_short());
        permits.without(|is_short| {
            assert!(!is_short(), "the other works");
            permits.without(|is_short| assert!(is_short()));
        });
        assert!(!permits.is_short());
    }
}
