//! Whether sessions wait for one another in a circle.
//!
//! A session waits for those that hold its lock, and for those before it in the queue. A circle of holders alone can
//! only be broken by an error. In any other one, somebody goes before the one that it stands behind, as in PostgreSQL.

use std::collections::HashMap;

use sql::{LockKey, LockMode};

use super::{Table, Woken};
use crate::limits::OVERTAKING_MAX;

/// How a session was reached: from whom, and over which queue if that one stands behind it.
type Reached = HashMap<i32, (i32, Option<LockKey>)>;

impl Table {
    /// Whether this session waits for itself, over others, and only an error can end that.
    pub(super) fn is_deadlocked(&mut self, pid: i32, woken: &mut Woken) -> bool {
        for _ in 0..OVERTAKING_MAX {
            let Some(reached) = self.circle(pid) else { return false };
            let Some((behind, before, key)) = queued(&reached, pid) else { return true };
            if let Some(lock) = self.locks.get_mut(&key) {
                lock.overtake(behind, before);
            }
            self.settle(key, woken);
        }
        true
    }

    /// The way from a session to itself; none where there is none.
    fn circle(&self, pid: i32) -> Option<Reached> {
        let mut reached = Reached::new();
        let mut next = vec![pid];
        while let Some(from) = next.pop() {
            let Some((key, mode, place)) = self.waits_for(from) else { continue };
            let lock = self.locks.get(&key)?;
            let holders = lock.holders_against(from, mode).map(|holder| (holder, None));
            let waiters = lock.waiters_against(place, mode).map(|waiter| (waiter, Some(key)));
            for (to, over) in holders.chain(waiters) {
                if to == pid {
                    reached.insert(pid, (from, over));
                    return Some(reached);
                }
                reached.entry(to).or_insert_with(|| {
                    next.push(to);
                    (from, over)
                });
            }
        }
        None
    }

    /// The lock that a session waits for, how, and its place in the queue.
    fn waits_for(&self, pid: i32) -> Option<(LockKey, LockMode, usize)> {
        let wait = self.owners.get(&pid)?.wait.as_ref().filter(|wait| wait.over.is_none())?;
        let (mode, place) = self.locks.get(&wait.key)?.waiter(pid)?;
        Some((wait.key, mode, place))
    }
}

/// A place in the circle where somebody only stands behind another: the one behind, the one before, and the lock.
fn queued(reached: &Reached, pid: i32) -> Option<(i32, i32, LockKey)> {
    let mut to = pid;
    loop {
        let (from, over) = reached.get(&to)?;
        if let Some(key) = over {
            return Some((*from, to, *key));
        }
        if *from == pid {
            return None;
        }
        to = *from;
    }
}
