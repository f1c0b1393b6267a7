//! Sessions that wait for a lock: how they begin to, and what ends it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sql::{Cancel, LockKey, SqlError};

use super::queue::Waiter;
use super::{Locks, Table, Wake, Woken, too_many};
use crate::limits::ADVISORY_LOCKS_MAX;

/// A session's wait.
pub(super) struct Wait {
    /// The lock.
    pub(super) key: LockKey,
    pub(super) since_ms: i64,
    /// Nanoseconds of the clock at which it ends, and why.
    deadline: Option<(u64, &'static str, &'static str)>,
    cancel: Cancel,
    pub(super) wake: Wake,
    /// How it ended.
    pub(super) over: Option<Result<(), SqlError>>,
}

impl std::fmt::Debug for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wait").field("key", &self.key).field("over", &self.over).finish_non_exhaustive()
    }
}

/// How long a session waits, and how it is called back.
pub(crate) struct Patience {
    pub(crate) statement_timeout: Option<Duration>,
    pub(crate) lock_timeout: Option<Duration>,
    pub(crate) cancel: Cancel,
    pub(crate) wake: Wake,
}

impl Locks {
    /// Puts a session into the queue of the lock that its statement wanted. False: it wanted none.
    pub(crate) fn enqueue(&self, pid: i32, patience: Patience) -> Result<bool, SqlError> {
        let now_ns = self.clock.now_ns();
        let since_ms = i64::try_from(self.clock.unix_ms()).unwrap_or(i64::MAX);
        self.change(|table, woken| {
            let Some(owner) = table.owners.get_mut(&pid) else { return Ok(false) };
            let Some((key, mode, scope)) = owner.wanted.take() else { return Ok(false) };
            let Patience { statement_timeout, lock_timeout, cancel, wake } = patience;
            let end = |timeout: Duration| {
                now_ns.saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
            };
            let deadline = [
                statement_timeout.map(|timeout| (end(timeout), "57014", "statement timeout")),
                lock_timeout.map(|timeout| (end(timeout), "55P03", "lock timeout")),
            ];
            let deadline = deadline.into_iter().flatten().min_by_key(|(end, ..)| *end);
            if table.entries >= ADVISORY_LOCKS_MAX {
                return Err(too_many());
            }
            owner.wait = Some(Wait { key, since_ms, deadline, cancel, wake, over: None });
            table.entries += 1;
            self.waiting.fetch_add(1, Ordering::Relaxed);
            table.locks.entry(key).or_default().push(Waiter { pid, mode, scope });
            // It may have become free since the function found it taken.
            table.settle(key, woken);
            if table.is_deadlocked(pid, woken) {
                self.give_up(table, pid, woken);
                return Err(SqlError::new("40P01", "deadlock detected")
                    .with_hint("take the locks in the same order in all sessions"));
            }
            Ok(true)
        })
    }

    /// How a session's wait ended; none while it goes on, and where there is none. Asked once: it is forgotten then.
    pub(crate) fn take_end(&self, pid: i32) -> Option<Result<(), SqlError>> {
        let mut table = self.table.lock();
        let owner = table.owners.get_mut(&pid)?;
        owner.wait.as_ref()?.over.as_ref()?;
        let over = owner.wait.take()?.over;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        over
    }

    /// Whether a session waits, and goes on to.
    pub(crate) fn waits(&self, pid: i32) -> bool {
        let table = self.table.lock();
        let wait = table.owners.get(&pid).and_then(|owner| owner.wait.as_ref());
        wait.is_some_and(|wait| wait.over.is_none())
    }

    /// Takes a session out of the queue that it waits in.
    pub(super) fn give_up(&self, table: &mut Table, pid: i32, woken: &mut Woken) {
        let Some(wait) = table.owners.get_mut(&pid).and_then(|owner| owner.wait.take()) else { return };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        table.leave(pid, wait.key, woken);
    }

    /// Ends the waits that have taken too long, and those that were cancelled.
    #[inline]
    pub(crate) fn tick(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.end_waits();
        }
    }

    #[cold]
    fn end_waits(&self) {
        let now_ns = self.clock.now_ns();
        self.change(|table, woken| {
            let ended: Vec<(i32, SqlError)> = table
                .owners
                .iter()
                .filter_map(|(pid, owner)| Some((*pid, owner.wait.as_ref()?.failure(now_ns)?)))
                .collect();
            for (pid, error) in ended {
                let Some(wait) = table.owners.get_mut(&pid).and_then(|owner| owner.wait.as_mut()) else {
                    continue;
                };
                wait.over = Some(Err(error));
                woken.push(wait.wake.clone());
                let key = wait.key;
                table.leave(pid, key, woken);
            }
        });
    }
}

impl Wait {
    /// Why it ends now, if it does.
    fn failure(&self, now_ns: u64) -> Option<SqlError> {
        if self.over.is_some() {
            return None;
        }
        if self.cancel.is_canceled() {
            return Some(SqlError::new("57014", "canceling statement due to user request"));
        }
        let (_, state, reason) = self.deadline.filter(|(end, ..)| now_ns >= *end)?;
        Some(SqlError::new(state, format!("canceling statement due to {reason}")))
    }
}

impl Table {
    /// A session no longer waits for a lock.
    fn leave(&mut self, pid: i32, key: LockKey, woken: &mut Woken) {
        if let Some(lock) = self.locks.get_mut(&key)
            && lock.leave(pid)
        {
            self.entries -= 1;
        }
        self.settle(key, woken);
    }
}
