//! Locks by themselves: who gets them in which order, what ends a wait, what is left when all is over.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use sql::Cancel;
use store::ManualClock;

use super::*;
use LockMode::{Exclusive, Shared};
use LockScope::{Session, Transaction};

/// Sessions over one table of locks.
struct Daemon {
    locks: Locks,
    clock: Arc<ManualClock>,
    woken: Arc<AtomicU64>,
    cancel: Cancel,
}

impl Daemon {
    fn new() -> Self {
        let clock = ManualClock::new(1_700_000_000);
        let locks = Locks::new(Clock::Manual(Arc::clone(&clock)));
        Self { locks, clock, woken: Arc::default(), cancel: Cancel::new() }
    }

    /// Asks for a lock. `None`: the session waits for it.
    fn lock(&self, pid: i32, key: i64, mode: LockMode, scope: LockScope) -> Result<Option<()>, SqlError> {
        self.locks.begin(pid);
        if self.locks.call(pid, 0, LockCall::Wait(LockKey::one(key), mode, scope)).is_ok() {
            self.locks.end(pid, false);
            return Ok(Some(()));
        }
        let woken = Arc::clone(&self.woken);
        let patience = Patience {
            statement_timeout: Some(Duration::from_secs(30)),
            lock_timeout: None,
            cancel: self.cancel.clone(),
            wake: Arc::new(move || {
                woken.fetch_add(1, Ordering::Relaxed);
            }),
        };
        let waits = self.locks.enqueue(pid, patience)?;
        assert!(waits);
        Ok(None)
    }

    fn waits(&self, pid: i32, key: i64, mode: LockMode) {
        assert_eq!(self.lock(pid, key, mode, Session), Ok(None), "{pid} waits for {key}");
    }

    fn has(&self, pid: i32, key: i64, mode: LockMode) {
        assert_eq!(self.lock(pid, key, mode, Session), Ok(Some(())), "{pid} has {key}");
    }

    fn tries(&self, pid: i32, key: i64, mode: LockMode) -> bool {
        self.locks.call(pid, 0, LockCall::Try(LockKey::one(key), mode, Session)).unwrap()
    }

    fn unlocks(&self, pid: i32, key: i64, mode: LockMode) -> bool {
        self.locks.call(pid, 0, LockCall::Unlock(LockKey::one(key), mode)).unwrap()
    }

    /// Whether its wait is over; then its statement ends.
    fn has_got(&self, pid: i32) -> bool {
        if self.locks.waits(pid) {
            return false;
        }
        self.locks.take_end(pid).unwrap().unwrap();
        self.locks.end(pid, false);
        true
    }

    fn is_empty(&self) -> bool {
        let table = self.locks.table.lock();
        let none = table.locks.is_empty() && table.owners.is_empty() && table.entries == 0;
        none && table.of_transactions == 0 && self.locks.waiting.load(Ordering::Relaxed) == 0
    }
}

#[test]
fn a_lock_is_counted_and_those_who_wait_get_it_in_their_order() {
    let daemon = Daemon::new();
    daemon.has(1, 7, Exclusive);
    daemon.has(1, 7, Exclusive);
    assert!(!daemon.tries(2, 7, Shared));
    assert!(daemon.tries(2, 8, Shared) && daemon.tries(3, 8, Shared) && !daemon.tries(1, 8, Exclusive));
    daemon.waits(2, 7, Exclusive);
    daemon.waits(3, 7, Shared);
    daemon.waits(4, 7, Shared);
    assert!(daemon.unlocks(1, 7, Exclusive));
    assert!(!daemon.has_got(2), "it was taken twice");
    assert!(!daemon.unlocks(1, 7, Shared), "not in this way");
    assert!(daemon.unlocks(1, 7, Exclusive));
    assert!(daemon.has_got(2) && !daemon.has_got(3));
    assert!(!daemon.unlocks(1, 7, Exclusive), "no more");
    assert!(daemon.unlocks(2, 7, Exclusive));
    assert!(daemon.has_got(3) && daemon.has_got(4), "they share it");
    assert_eq!(daemon.woken.load(Ordering::Relaxed), 3);
    for pid in 1..=4 {
        daemon.locks.forget(pid);
    }
    assert!(daemon.is_empty());
}

#[test]
fn who_comes_later_does_not_pass_those_who_wait() {
    let daemon = Daemon::new();
    daemon.has(1, 7, Shared);
    daemon.waits(2, 7, Exclusive);
    assert!(!daemon.tries(3, 7, Shared), "behind the one who waits");
    daemon.waits(3, 7, Shared);
    assert!(daemon.tries(1, 7, Shared), "its own, once more");
    daemon.locks.forget(2);
    assert!(daemon.has_got(3), "nobody is between any more");
    daemon.locks.forget(1);
    daemon.locks.forget(3);
    assert!(daemon.is_empty());
}

#[test]
fn locks_of_a_transaction_end_with_it_and_with_its_savepoint() {
    let daemon = Daemon::new();
    assert_eq!(daemon.lock(1, 1, Exclusive, Transaction), Ok(Some(())));
    let mark = daemon.locks.mark(1);
    assert_eq!(daemon.lock(1, 2, Exclusive, Transaction), Ok(Some(())));
    assert_eq!(daemon.lock(1, 1, Exclusive, Transaction), Ok(Some(())));
    daemon.has(1, 3, Exclusive);
    assert!(!daemon.unlocks(1, 1, Exclusive), "it is the transaction's");
    daemon.locks.end_transaction(1, mark);
    assert!(daemon.tries(2, 2, Exclusive) && !daemon.tries(2, 1, Exclusive));
    daemon.waits(2, 1, Exclusive);
    daemon.locks.end_transaction(1, 0);
    assert!(daemon.has_got(2) && !daemon.tries(2, 3, Exclusive));
    daemon.locks.unlock_all(1);
    assert!(daemon.tries(2, 3, Exclusive));
    daemon.locks.unlock_all(2);
    assert!(daemon.is_empty());
}

#[test]
fn circles_of_waits_are_found() {
    let daemon = Daemon::new();
    for pid in 1..=3 {
        daemon.has(pid, i64::from(pid), Exclusive);
    }
    daemon.waits(1, 2, Exclusive);
    daemon.waits(2, 3, Shared);
    let error = daemon.lock(3, 1, Exclusive, Session).unwrap_err();
    assert_eq!((error.state, error.message.as_str()), ("40P01", "deadlock detected"));
    // The two others wait on, and get theirs when the one that failed lets go.
    daemon.locks.end(3, false);
    daemon.locks.unlock_all(3);
    assert!(daemon.has_got(2));
    daemon.locks.unlock_all(2);
    assert!(daemon.has_got(1));
    daemon.locks.unlock_all(1);
    assert!(daemon.is_empty());
    // Two that share a lock, and each wants it alone.
    daemon.has(1, 9, Shared);
    daemon.has(2, 9, Shared);
    daemon.waits(1, 9, Exclusive);
    assert_eq!(daemon.lock(2, 9, Exclusive, Session).unwrap_err().state, "40P01");
}

#[test]
fn a_circle_over_a_queue_is_broken_by_overtaking() {
    let daemon = Daemon::new();
    daemon.has(1, 7, Shared);
    daemon.has(3, 8, Exclusive);
    daemon.waits(2, 7, Exclusive);
    daemon.waits(3, 7, Shared);
    // 1 waits for 3, which only stands behind 2, which waits for 1.
    daemon.waits(1, 8, Exclusive);
    assert!(daemon.has_got(3), "it goes before 2");
    assert!(!daemon.has_got(1) && !daemon.has_got(2));
    daemon.locks.forget(3);
    assert!(daemon.has_got(1));
    daemon.locks.forget(1);
    assert!(daemon.has_got(2));
}

#[test]
fn time_and_cancel_end_a_wait() {
    let daemon = Daemon::new();
    daemon.has(1, 7, Exclusive);
    daemon.waits(2, 7, Exclusive);
    daemon.waits(3, 7, Exclusive);
    daemon.clock.advance(Duration::from_secs(29));
    daemon.locks.tick();
    assert!(daemon.locks.waits(2) && daemon.locks.waits(3));
    daemon.clock.advance(Duration::from_secs(2));
    daemon.locks.tick();
    for pid in [2, 3] {
        let error = daemon.locks.take_end(pid).unwrap().unwrap_err();
        assert_eq!(error.message, "canceling statement due to statement timeout");
        daemon.locks.end(pid, true);
    }
    daemon.waits(2, 7, Exclusive);
    daemon.cancel.cancel();
    daemon.locks.tick();
    assert_eq!(daemon.locks.take_end(2).unwrap().unwrap_err().state, "57014");
    daemon.locks.end(2, true);
    daemon.locks.forget(1);
    assert!(daemon.is_empty());
}

#[test]
fn a_statement_that_is_run_again_locks_nothing_twice() {
    let daemon = Daemon::new();
    daemon.has(1, 2, Exclusive);
    let wait = |at, key| daemon.locks.call(5, at, LockCall::Wait(LockKey::one(key), Exclusive, Session));
    daemon.locks.begin(5);
    assert_eq!(wait(0, 1), Ok(true));
    assert_eq!(wait(1, 2).unwrap_err().state, "55P03");
    let patience = Patience {
        statement_timeout: None,
        lock_timeout: None,
        cancel: Cancel::new(),
        wake: Arc::new(|| {}),
    };
    assert_eq!(daemon.locks.enqueue(5, patience), Ok(true));
    daemon.locks.forget(1);
    assert_eq!(daemon.locks.take_end(5), Some(Ok(())));
    assert_eq!((wait(0, 1), wait(1, 2)), (Ok(true), Ok(true)));
    daemon.locks.end(5, true);
    assert!(daemon.unlocks(5, 1, Exclusive) && daemon.unlocks(5, 2, Exclusive));
    assert!(!daemon.unlocks(5, 1, Exclusive) && !daemon.unlocks(5, 2, Exclusive));
}

#[test]
fn there_are_so_many_and_no_more() {
    let daemon = Daemon::new();
    for key in 0..i64::try_from(ADVISORY_LOCKS_MAX).unwrap() {
        assert!(daemon.tries(1, key, Exclusive));
    }
    let call = LockCall::Try(LockKey::one(-1), Exclusive, Session);
    assert_eq!(daemon.locks.call(2, 0, call).unwrap_err().state, "53200");
    assert!(daemon.tries(1, 5, Exclusive), "one that it has already");
    daemon.locks.forget(1);
    assert_eq!(daemon.locks.call(2, 0, call), Ok(true));
    daemon.locks.forget(2);
    assert!(daemon.is_empty());
}
