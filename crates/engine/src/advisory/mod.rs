//! Advisory locks: `pg_advisory_lock()` and similar ones, for migration tools and job queues.
//!
//! A lock is a name that sessions agree on; no row is locked by it. A statement that must wait for one keeps no thread.
//! The function refuses, [`Locks::enqueue`] puts the session into the lock's queue, and the listener sets its
//! connection aside. When the lock is free, whoever frees it wakes the session, which runs the statement again. The
//! calls that had worked before are answered from [`Owner::calls`] then, so nothing is done twice.
//!
//! One mutex guards everything. These calls are rare, and each holds it for microseconds.

mod deadlock;
mod queue;
mod waiting;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use sql::{LockCall, LockFacts, LockKey, LockMode, LockScope, SqlError};
use store::Clock;

use crate::limits::{ADVISORY_CALLS_MAX, ADVISORY_LOCKS_MAX};
use queue::Lock;
pub(crate) use waiting::Patience;
use waiting::Wait;

/// Calls a session back. Called from any thread, without the table's lock.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// All advisory locks of the daemon.
#[derive(Debug)]
pub(crate) struct Locks {
    /// Held for microseconds; no other lock is taken and nobody is woken meanwhile.
    table: Mutex<Table>,
    clock: Clock,
    /// Sessions that wait. Relaxed: [`Locks::tick`] comes again.
    waiting: AtomicUsize,
    /// Locks that end with their transaction. A session reads it after its own statement wrote it, so Relaxed.
    of_transactions: AtomicUsize,
}

#[derive(Debug, Default)]
struct Table {
    locks: HashMap<LockKey, Lock>,
    owners: HashMap<i32, Owner>,
    /// Holders and waiters of all locks.
    entries: usize,
    of_transactions: usize,
}

/// What a session holds and asks for.
#[derive(Debug, Default)]
struct Owner {
    /// How many locks it holds, each way of holding one counted.
    holds: usize,
    /// The locks that end with the transaction, in the order in which they were taken.
    of_transaction: Vec<(LockKey, LockMode)>,
    /// The calls of the statement under way with their answers; none where the statement cannot wait.
    calls: Option<Vec<(LockCall, bool)>>,
    /// What the statement must wait for.
    wanted: Option<(LockKey, LockMode, LockScope)>,
    wait: Option<Wait>,
}

/// Sessions to wake when the table's lock is free again.
type Woken = Vec<Wake>;

impl Locks {
    pub(crate) fn new(clock: Clock) -> Self {
        let (waiting, of_transactions) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { table: Mutex::default(), clock, waiting, of_transactions }
    }

    /// Changes the table, then wakes whom that made ready.
    fn change<T>(&self, body: impl FnOnce(&mut Table, &mut Woken) -> T) -> T {
        let mut woken = Woken::new();
        let result = {
            let mut table = self.table.lock();
            let result = body(&mut table, &mut woken);
            self.of_transactions.store(table.of_transactions, Ordering::Relaxed);
            result
        };
        for wake in woken {
            wake();
        }
        result
    }

    /// A statement begins that may wait: its calls are noted.
    pub(crate) fn begin(&self, pid: i32) {
        self.table.lock().owners.entry(pid).or_default().calls = Some(Vec::new());
    }

    /// It has ended. `alone`: so has its transaction.
    pub(crate) fn end(&self, pid: i32, alone: bool) {
        self.change(|table, woken| {
            let Some(owner) = table.owners.get_mut(&pid) else { return };
            owner.calls = None;
            owner.wanted = None;
            if alone {
                table.end_transaction(pid, 0, woken);
            }
            table.forget_if_idle(pid);
        });
    }

    /// A function's call, the `at`th of its statement.
    pub(crate) fn call(&self, pid: i32, at: usize, call: LockCall) -> Result<bool, SqlError> {
        if pid == 0 {
            let message = "advisory locks need a session, which only PostgreSQL clients have";
            return Err(SqlError::new("0A000", message));
        }
        self.change(|table, woken| table.call(pid, at, call, woken))
    }

    /// How many locks the session's transaction has taken.
    #[inline]
    pub(crate) fn mark(&self, pid: i32) -> usize {
        if self.of_transactions.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.table.lock().owners.get(&pid).map_or(0, |owner| owner.of_transaction.len())
    }

    /// Releases the locks of the session's transaction, but for the first so many.
    #[inline]
    pub(crate) fn end_transaction(&self, pid: i32, mark: usize) {
        if self.of_transactions.load(Ordering::Relaxed) > 0 {
            self.release(pid, mark);
        }
    }

    #[cold]
    fn release(&self, pid: i32, mark: usize) {
        self.change(|table, woken| {
            table.end_transaction(pid, mark, woken);
            table.forget_if_idle(pid);
        });
    }

    /// Releases what the session holds for itself.
    pub(crate) fn unlock_all(&self, pid: i32) {
        self.change(|table, woken| {
            table.unlock_all(pid, woken);
            table.forget_if_idle(pid);
        });
    }

    /// The session has ended.
    pub(crate) fn forget(&self, pid: i32) {
        self.change(|table, woken| {
            if table.owners.contains_key(&pid) {
                self.give_up(table, pid, woken);
                table.unlock_all(pid, woken);
                table.end_transaction(pid, 0, woken);
                table.owners.remove(&pid);
            }
        });
    }

    /// Every lock with its holders and waiters.
    pub(crate) fn all(&self) -> Vec<LockFacts> {
        let table = self.table.lock();
        let mut facts = Vec::new();
        for (key, lock) in &table.locks {
            facts.extend(lock.facts(*key, |pid| {
                table.owners.get(&pid).and_then(|owner| owner.wait.as_ref()).map(|wait| wait.since_ms)
            }));
        }
        facts
    }
}

impl Table {
    fn call(&mut self, pid: i32, at: usize, call: LockCall, woken: &mut Woken) -> Result<bool, SqlError> {
        if let Some(known) = self.known(pid, at, call) {
            return Ok(known);
        }
        let answer = match call {
            LockCall::Try(key, mode, scope) => self.take(pid, key, mode, scope)?,
            LockCall::Wait(key, mode, scope) => {
                if !self.take(pid, key, mode, scope)? {
                    return Err(self.must_wait(pid, (key, mode, scope)));
                }
                true
            }
            LockCall::Unlock(key, mode) => self.unlock(pid, key, mode, woken),
            LockCall::UnlockAll => {
                self.unlock_all(pid, woken);
                true
            }
        };
        if let Some(calls) = &mut self.owners.entry(pid).or_default().calls
            && calls.len() < ADVISORY_CALLS_MAX
        {
            calls.push((call, answer));
        }
        Ok(answer)
    }

    /// The answer that this call of the statement had before the statement waited.
    fn known(&mut self, pid: i32, at: usize, call: LockCall) -> Option<bool> {
        let calls = self.owners.get_mut(&pid)?.calls.as_mut()?;
        match calls.get(at) {
            Some((known, answer)) if *known == call => Some(*answer),
            // The rows are others now than when the statement began to wait.
            Some(_) => {
                calls.truncate(at);
                None
            }
            None => None,
        }
    }

    /// Notes what the statement must wait for, and stops it.
    fn must_wait(&mut self, pid: i32, wanted: (LockKey, LockMode, LockScope)) -> SqlError {
        let owner = self.owners.entry(pid).or_default();
        let noted = owner.calls.as_ref().is_some_and(|calls| calls.len() < ADVISORY_CALLS_MAX);
        owner.wanted = noted.then_some(wanted);
        // A transaction in which a statement waits goes on.
        SqlError { partial: noted, ..cannot_wait() }
    }

    /// Takes a lock if it is free.
    fn take(&mut self, pid: i32, key: LockKey, mode: LockMode, scope: LockScope) -> Result<bool, SqlError> {
        let lock = self.locks.entry(key).or_default();
        let new = !lock.holds(pid, mode);
        if new && lock.is_busy(pid, mode) {
            return Ok(false);
        }
        if new && self.entries >= ADVISORY_LOCKS_MAX {
            if lock.is_empty() {
                self.locks.remove(&key);
            }
            return Err(too_many());
        }
        self.entries += usize::from(new);
        self.hold(pid, key, mode, scope);
        Ok(true)
    }

    /// Writes down that a session holds a lock.
    fn hold(&mut self, pid: i32, key: LockKey, mode: LockMode, scope: LockScope) {
        let lock = self.locks.entry(key).or_default();
        let new = !lock.holds(pid, mode);
        let first = lock.hold(pid, mode, scope);
        let owner = self.owners.entry(pid).or_default();
        owner.holds += usize::from(new);
        if scope == LockScope::Transaction && first {
            owner.of_transaction.push((key, mode));
            self.of_transactions += 1;
        }
    }

    /// Releases one hold of a session. False: it has none.
    fn unlock(&mut self, pid: i32, key: LockKey, mode: LockMode, woken: &mut Woken) -> bool {
        let Some(lock) = self.locks.get_mut(&key) else { return false };
        let released = lock.unlock(pid, mode);
        self.settle(key, woken);
        released
    }

    fn unlock_all(&mut self, pid: i32, woken: &mut Woken) {
        if self.owners.get(&pid).is_none_or(|owner| owner.holds == 0) {
            return;
        }
        let held: Vec<LockKey> =
            self.locks.iter().filter(|(_, lock)| lock.is_held_by(pid)).map(|(key, _)| *key).collect();
        for key in held {
            if let Some(lock) = self.locks.get_mut(&key) {
                lock.unlock_all(pid);
            }
            self.settle(key, woken);
        }
    }

    /// Releases the locks that a transaction took after the first so many.
    fn end_transaction(&mut self, pid: i32, mark: usize, woken: &mut Woken) {
        let Some(owner) = self.owners.get_mut(&pid) else { return };
        let ended = owner.of_transaction.split_off(mark.min(owner.of_transaction.len()));
        self.of_transactions -= ended.len();
        for (key, mode) in ended {
            if let Some(lock) = self.locks.get_mut(&key) {
                lock.end_transaction(pid, mode);
            }
            self.settle(key, woken);
        }
    }

    /// A session that holds and wants nothing takes no room.
    fn forget_if_idle(&mut self, pid: i32) {
        if self
            .owners
            .get(&pid)
            .is_some_and(|owner| owner.holds == 0 && owner.calls.is_none() && owner.wait.is_none())
        {
            self.owners.remove(&pid);
        }
    }
}

#[cold]
fn too_many() -> SqlError {
    SqlError::new("53200", format!("there are {ADVISORY_LOCKS_MAX} advisory locks"))
        .with_hint("release those that are not needed; pg_locks shows who holds them")
}

#[cold]
fn cannot_wait() -> SqlError {
    SqlError::new("55P03", "the lock is not available, and this statement cannot wait for it")
        .with_hint("call pg_advisory_lock() in a SELECT of its own, or use pg_try_advisory_lock()")
}

#[cfg(test)]
mod tests;
