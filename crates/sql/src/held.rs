//! Memory that sessions hold between two statements: one account over all of them.
//!
//! A bound for each thing that a session keeps bounds nothing when there may be hundreds of such things and a thousand
//! sessions. So every kind of them is counted here: open transactions, cursors, prepared statements, values of portals.
//! A session has an [`Allowance`], which has its own limit and draws on the [`Account`] of all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sqlite::heap;

use crate::error::{SqlError, state};
use crate::limits::{SESSION_BYTES_MAX, SESSIONS_BYTES_MAX};

/// What all sessions hold. Relaxed throughout: sums that bound, in no order with anything.
#[derive(Debug)]
pub struct Account {
    bytes: AtomicUsize,
    max: usize,
}

impl Account {
    /// An account of so many bytes.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { bytes: AtomicUsize::new(0), max })
    }

    /// How many bytes are held.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// What one session holds.
#[derive(Debug)]
pub struct Allowance {
    all: Arc<Account>,
    bytes: AtomicUsize,
    max: usize,
}

impl Allowance {
    /// A session's part of an account, at most so many bytes.
    pub fn new(all: &Arc<Account>, max: usize) -> Arc<Self> {
        Arc::new(Self { all: Arc::clone(all), bytes: AtomicUsize::new(0), max })
    }

    /// For a session that nobody gave an allowance: one with an account of its own.
    pub(crate) fn alone() -> Arc<Self> {
        Self::new(&Account::new(SESSIONS_BYTES_MAX), SESSION_BYTES_MAX)
    }

    /// How many bytes the session holds.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Something that holds nothing yet.
    pub fn account(self: &Arc<Self>) -> Held {
        Held { of: Arc::clone(self), bytes: 0 }
    }

    /// Whether so many bytes more may be held. Two sessions that ask at once may both get a yes, so the account can
    /// be passed by what each of the SQL threads adds at a time.
    pub(crate) fn check_room(&self, more: usize) -> Result<(), SqlError> {
        if self.bytes().saturating_add(more) > self.max {
            let message = format!(
                "the session holds {} bytes in cursors, prepared statements and its transaction; {more} more would pass \
                 its limit of {}",
                self.bytes(),
                self.max
            );
            return Err(SqlError::new(state::SESSION_FULL, message)
                .with_hint("close cursors, DEALLOCATE statements, or end the transaction"));
        }
        if self.all.bytes().saturating_add(more) > self.all.max {
            let message = format!(
                "all sessions together hold {} bytes in cursors, prepared statements and transactions; {more} more would \
                 pass the limit of {}",
                self.all.bytes(),
                self.all.max
            );
            return Err(SqlError::new(state::OUT_OF_MEMORY, message)
                .with_hint("close unused cursors and transactions, or try again later"));
        }
        Ok(())
    }
}

/// One thing that a session holds; what it counts goes back when it is dropped.
#[derive(Debug)]
pub struct Held {
    of: Arc<Allowance>,
    bytes: usize,
}

impl Held {
    /// Holds this many bytes from now on, if they may be held.
    #[inline]
    pub fn try_set(&mut self, bytes: usize) -> Result<(), SqlError> {
        if bytes > self.bytes {
            self.of.check_room(bytes - self.bytes)?;
        }
        self.set(bytes);
        Ok(())
    }

    /// As [`Held::try_set`], for so many more.
    pub fn try_add(&mut self, more: usize) -> Result<(), SqlError> {
        self.try_set(self.bytes.saturating_add(more))
    }

    /// Holds this many bytes from now on, which are there already.
    pub fn set(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        heap::note_freed(self.bytes.saturating_sub(bytes));
        // Wrapping: a decrease is the addition of its complement.
        let change = bytes.wrapping_sub(self.bytes);
        self.of.bytes.fetch_add(change, Ordering::Relaxed);
        self.of.all.bytes.fetch_add(change, Ordering::Relaxed);
        self.bytes = bytes;
    }

    /// How many bytes it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether so many bytes more may be held.
    pub fn check_room(&self, more: usize) -> Result<(), SqlError> {
        self.of.check_room(more)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_counted_refused_and_given_back() {
        let all = Account::new(100);
        let (one, two) = (Allowance::new(&all, 70), Allowance::new(&all, 70));
        let mut first = one.account();
        first.try_set(60).unwrap();
        assert_eq!(first.try_add(11).unwrap_err().state, "53400");
        let mut second = two.account();
        assert_eq!(second.try_set(41).unwrap_err().state, "53200");
        second.try_set(40).unwrap();
        assert_eq!((all.bytes(), one.bytes(), two.bytes()), (100, 60, 40));
        first.try_set(10).unwrap();
        drop(second);
        assert_eq!((all.bytes(), one.bytes(), two.bytes()), (10, 10, 0));
    }
}
