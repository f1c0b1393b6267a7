//! Places in the log of the source: who wrote there waits until the stream has passed them.
//!
//! One connection asks for all who wait. A place that is asked for behind a commit is behind that commit's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// A place that was asked for. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

impl Ticket {
    /// The place of this number.
    pub fn of(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// How many were asked for.
    asked: Mutex<u64>,
    /// Wakes who asks the source.
    wanted: Condvar,
    /// All up to this one were passed.
    passed: AtomicU64,
    /// Whom to wake when the next is passed: one for each session that waits.
    sleepers: Mutex<Vec<Waker>>,
    /// How far the stream was applied, and who waits for that.
    applied: Mutex<u64>,
    advanced: Condvar,
}

impl Places {
    /// A place that is behind all that was committed before this call.
    pub(crate) fn ask(&self) -> Ticket {
        let mut asked = self.asked.lock();
        *asked += 1;
        self.wanted.notify_one();
        Ticket(*asked)
    }

    /// Whether the stream has passed a place.
    pub(crate) fn has_passed(&self, ticket: Ticket) -> bool {
        // Acquire: pairs with the Release of `pass`: what the changes before it removed is gone.
        self.passed.load(Ordering::Acquire) >= ticket.0
    }

    /// The last place that is asked for and was not passed, if one is within this time.
    pub(crate) fn next(&self, wait: Duration) -> Option<Ticket> {
        let mut asked = self.asked.lock();
        // Relaxed: only who calls this passes them.
        if *asked <= self.passed.load(Ordering::Relaxed) {
            let _timed_out = self.wanted.wait_for(&mut asked, wait);
        }
        (*asked > self.passed.load(Ordering::Relaxed)).then_some(Ticket(*asked))
    }

    /// The stream has passed a place and all before it.
    pub(crate) fn pass(&self, ticket: Ticket) {
        // Release: pairs with the Acquire of `has_passed`. A mark that comes late takes nothing back.
        self.passed.fetch_max(ticket.0, Ordering::Release);
        let sleepers = std::mem::take(&mut *self.sleepers.lock());
        sleepers.into_iter().for_each(Waker::wake);
    }

    /// Wakes this one when the next place is passed. Who waits for a place asks for it afterwards.
    pub(crate) fn wake(&self, waker: &Waker) {
        let mut sleepers = self.sleepers.lock();
        // Many sessions of one thread are woken together.
        if !sleepers.iter().any(|own| own.will_wake(waker)) {
            sleepers.push(waker.clone());
        }
    }

    /// The stream was applied so far.
    pub(crate) fn advance(&self, place: u64) {
        let mut applied = self.applied.lock();
        if *applied != place {
            *applied = place;
            self.advanced.notify_all();
        }
    }

    /// Whether it was, or is until then.
    pub(crate) fn wait_for(&self, place: u64, until: Instant) -> bool {
        let mut applied = self.applied.lock();
        while *applied < place {
            if self.advanced.wait_until(&mut applied, until).timed_out() {
                return *applied >= place;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_passed_with_all_before_it() {
        let places = Places::default();
        assert_eq!(places.next(Duration::ZERO), None);
        let (first, second) = (places.ask(), places.ask());
        let next = places.next(Duration::ZERO).unwrap();
        assert_eq!(next, second);
        let third = places.ask();
        places.pass(next);
        assert_eq!([first, second, third].map(|one| places.has_passed(one)), [true, true, false]);
        assert_eq!(places.next(Duration::ZERO), Some(third));
        places.pass(third);
        places.pass(first);
        assert!(places.has_passed(third));
    }
}
