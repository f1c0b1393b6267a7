//! One lock: who holds it, and who waits for it, in order.

use std::collections::VecDeque;

use sql::{LockFacts, LockKey, LockMode, LockScope};

use super::{Table, Woken};

/// See the module. There is none without a holder.
#[derive(Debug, Default)]
pub(super) struct Lock {
    holders: Vec<Holder>,
    queue: VecDeque<Waiter>,
}

/// A session that holds it.
#[derive(Debug)]
struct Holder {
    pid: i32,
    mode: LockMode,
    /// How often it was taken for the session.
    session: u64,
    /// Its transaction took it.
    transaction: bool,
}

/// A session that waits for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) pid: i32,
    pub(super) mode: LockMode,
    pub(super) scope: LockScope,
}

impl Lock {
    pub(super) fn is_empty(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    pub(super) fn holds(&self, pid: i32, mode: LockMode) -> bool {
        self.holders.iter().any(|holder| holder.pid == pid && holder.mode == mode)
    }

    pub(super) fn is_held_by(&self, pid: i32) -> bool {
        self.holders.iter().any(|holder| holder.pid == pid)
    }

    /// Sessions whose hold keeps this one from it.
    pub(super) fn holders_against(&self, pid: i32, mode: LockMode) -> impl Iterator<Item = i32> {
        let against = move |holder: &&Holder| holder.pid != pid && holder.mode.conflicts(mode);
        self.holders.iter().filter(against).map(|holder| holder.pid)
    }

    /// Those before a place in the queue that keep one behind them from it.
    pub(super) fn waiters_against(&self, before: usize, mode: LockMode) -> impl Iterator<Item = i32> {
        self.queue
            .iter()
            .take(before)
            .filter(move |waiter| waiter.mode.conflicts(mode))
            .map(|waiter| waiter.pid)
    }

    fn place_of(&self, pid: i32) -> Option<usize> {
        self.queue.iter().position(|waiter| waiter.pid == pid)
    }

    /// How a session waits for it, and its place in the queue.
    pub(super) fn waiter(&self, pid: i32) -> Option<(LockMode, usize)> {
        let place = self.place_of(pid)?;
        Some((self.queue[place].mode, place))
    }

    /// Whether a session that comes now must wait: for a holder, or behind others that wait.
    pub(super) fn is_busy(&self, pid: i32, mode: LockMode) -> bool {
        self.holders_against(pid, mode).next().is_some()
            || self.waiters_against(self.queue.len(), mode).any(|waiter| waiter != pid)
    }

    /// Notes a hold. True: it is the first of its transaction.
    pub(super) fn hold(&mut self, pid: i32, mode: LockMode, scope: LockScope) -> bool {
        let found = self.holders.iter_mut().position(|holder| holder.pid == pid && holder.mode == mode);
        let at = found.unwrap_or_else(|| {
            self.holders.push(Holder { pid, mode, session: 0, transaction: false });
            self.holders.len() - 1
        });
        let holder = &mut self.holders[at];
        match scope {
            LockScope::Session => holder.session += 1,
            LockScope::Transaction => return !std::mem::replace(&mut holder.transaction, true),
        }
        false
    }

    /// Ends one hold of the session.
    pub(super) fn unlock(&mut self, pid: i32, mode: LockMode) -> bool {
        let own = |holder: &&mut Holder| holder.pid == pid && holder.mode == mode && holder.session > 0;
        self.holders.iter_mut().find(own).map(|holder| holder.session -= 1).is_some()
    }

    /// Ends all holds of the session, but not of its transaction.
    pub(super) fn unlock_all(&mut self, pid: i32) {
        for holder in self.holders.iter_mut().filter(|holder| holder.pid == pid) {
            holder.session = 0;
        }
    }

    /// Ends the hold of the session's transaction.
    pub(super) fn end_transaction(&mut self, pid: i32, mode: LockMode) {
        let own = |holder: &&mut Holder| holder.pid == pid && holder.mode == mode;
        if let Some(holder) = self.holders.iter_mut().find(own) {
            holder.transaction = false;
        }
    }

    /// Puts a session into the queue: before the first that waits for what it holds itself, else to the end.
    pub(super) fn push(&mut self, waiter: Waiter) {
        let own: Vec<LockMode> =
            self.holders.iter().filter(|holder| holder.pid == waiter.pid).map(|holder| holder.mode).collect();
        let behind = |other: &Waiter| own.iter().any(|mode| mode.conflicts(other.mode));
        let at = self.queue.iter().position(behind).unwrap_or(self.queue.len());
        self.queue.insert(at, waiter);
    }

    /// Takes a session out of the queue.
    pub(super) fn leave(&mut self, pid: i32) -> bool {
        let before = self.queue.len();
        self.queue.retain(|waiter| waiter.pid != pid);
        self.queue.len() < before
    }

    /// Lets one that waits go before another.
    pub(super) fn overtake(&mut self, pid: i32, other: i32) {
        if let (Some(from), Some(to)) = (self.place_of(pid), self.place_of(other))
            && to < from
            && let Some(waiter) = self.queue.remove(from)
        {
            self.queue.insert(to, waiter);
        }
    }

    /// Forgets holds that have ended; returns whose they were.
    fn sweep(&mut self) -> Vec<i32> {
        let ended = self.holders.extract_if(.., |holder| holder.session == 0 && !holder.transaction);
        ended.map(|holder| holder.pid).collect()
    }

    /// Takes the next that need not wait any more out of the queue.
    fn next_ready(&mut self) -> Option<Waiter> {
        let ready = (0..self.queue.len()).find(|at| {
            let Waiter { pid, mode, .. } = self.queue[*at];
            self.holders_against(pid, mode).next().is_none()
                && self.waiters_against(*at, mode).next().is_none()
        })?;
        self.queue.remove(ready)
    }

    /// How it is shown.
    pub(super) fn facts(
        &self,
        key: LockKey,
        since: impl Fn(i32) -> Option<i64>,
    ) -> impl Iterator<Item = LockFacts> {
        let held = move |holder: &Holder| LockFacts {
            key,
            mode: holder.mode,
            pid: holder.pid,
            waits_since_ms: None,
        };
        let waited_for = move |waiter: &Waiter| LockFacts {
            key,
            mode: waiter.mode,
            pid: waiter.pid,
            waits_since_ms: Some(since(waiter.pid).unwrap_or(0)),
        };
        self.holders.iter().map(held).chain(self.queue.iter().map(waited_for))
    }
}

impl Table {
    /// A hold or a wait has ended: forgets what is over, and gives the lock to those that can have it now.
    pub(super) fn settle(&mut self, key: LockKey, woken: &mut Woken) {
        while let Some(lock) = self.locks.get_mut(&key) {
            let ended = lock.sweep();
            let ready = lock.next_ready();
            let is_empty = lock.is_empty();
            self.entries -= ended.len();
            for pid in ended {
                if let Some(owner) = self.owners.get_mut(&pid) {
                    owner.holds -= 1;
                }
            }
            let Some(waiter) = ready else {
                if is_empty {
                    self.locks.remove(&key);
                }
                return;
            };
            // It becomes a holder, and counts as before.
            self.grant(key, waiter, woken);
        }
    }

    fn grant(&mut self, key: LockKey, waiter: Waiter, woken: &mut Woken) {
        let Waiter { pid, mode, scope } = waiter;
        // It may hold the lock already, if it waits for it in another way; the same way is never waited for.
        self.hold(pid, key, mode, scope);
        if let Some(owner) = self.owners.get_mut(&pid) {
            if let Some(wait) = &mut owner.wait {
                wait.over = Some(Ok(()));
                woken.push(wait.wake.clone());
            }
            if let Some(calls) = &mut owner.calls {
                calls.push((sql::LockCall::Wait(key, mode, scope), true));
            }
        }
    }
}
