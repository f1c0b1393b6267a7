//! Which statements run, and which commits of many rows they may see.
//!
//! A commit of many rows is *in flight* from the moment its stamp is drawn until all its rows are swapped. A statement
//! that begins meanwhile notes it and goes on using the versions before it. When no statement could need the old
//! versions, the commit does not keep them, and a statement that begins in just that time waits for its end.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;

use crate::limits::COMMITS_MAX;
use crate::limits::STATEMENTS_MAX;
use crate::versions::order;

/// The two registers and the order between them.
#[derive(Debug)]
pub(crate) struct Statements {
    /// Stamp << 1 | kept, or 0. Between its store and a look at the statements there is a fence, as between the
    /// registration of a statement and a look at it, so that of the two that begin together one sees the other.
    in_flight: [AtomicU64; COMMITS_MAX],
    /// Number of commits in flight: one load tells a statement that there is nothing to note.
    in_flight_count: AtomicUsize,
    /// Commits published so far.
    published: AtomicU64,
    /// For each running statement the value of `published` when it began, plus one; 0 = free.
    active: [AtomicU64; STATEMENTS_MAX],
    active_count: AtomicUsize,
    /// Commits draw their stamp and publish under this lock, so that a statement's notes can be checked by `version`.
    writers: Mutex<()>,
    /// Odd while `in_flight` changes, or a table is emptied; a statement re-reads its notes when it moved.
    version: AtomicU64,
}

/// What a statement noted when it began.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// The newest stamp drawn when the statement began.
    pub(crate) stamp: u64,
    /// Stamps of commits in flight then; the first `unseen_len` count.
    unseen: [u64; COMMITS_MAX],
    unseen_len: usize,
    slot: usize,
    /// `Statements::version` when it began.
    version: u64,
}

impl Snapshot {
    /// Whether the rows of the commit with this stamp belong to what the statement sees.
    #[inline]
    pub(crate) fn includes(&self, commit: u64) -> bool {
        commit <= self.stamp && !self.unseen[..self.unseen_len].contains(&commit)
    }
}

impl Snapshot {
    /// Every commit that the statement does not see, and every write after it, bears at least this stamp.
    pub(crate) fn oldest_unseen(&self) -> u64 {
        self.unseen[..self.unseen_len].iter().copied().fold(self.stamp + 1, u64::min)
    }
}

impl Statements {
    pub(crate) fn new() -> Self {
        Self {
            in_flight: [const { AtomicU64::new(0) }; COMMITS_MAX],
            in_flight_count: AtomicUsize::new(0),
            published: AtomicU64::new(0),
            active: [const { AtomicU64::new(0) }; STATEMENTS_MAX],
            active_count: AtomicUsize::new(0),
            writers: Mutex::new(()),
            version: AtomicU64::new(0),
        }
    }

    /// Registers a statement. `last_stamp` reads the newest stamp drawn.
    pub(crate) fn begin(&self, last_stamp: impl Fn() -> u64) -> Snapshot {
        let slot = self.claim_slot();
        loop {
            // Acquire: pairs with the Release stores of `change`, so that the notes below belong to this version.
            let version = self.version.load(order::NOTES_LOAD);
            if version.is_multiple_of(2)
                && let Some(snapshot) = self.note(slot, last_stamp(), version)
            {
                fence(order::NOTES_AGAIN);
                if self.version.load(Ordering::Relaxed) == version {
                    return snapshot;
                }
            }
            std::thread::yield_now();
        }
    }

    /// Ends a statement and says whether it was the last one running.
    pub(crate) fn end(&self, snapshot: &Snapshot) -> bool {
        // Release: what it read of old versions was read before somebody drops them.
        self.active[snapshot.slot].store(0, Ordering::Release);
        self.active_count.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether no commit of many rows has been on its way since the statement began.
    pub(crate) fn is_quiet(&self, snapshot: &Snapshot) -> bool {
        // Acquire, after a fence: what was read before is not read later.
        fence(Ordering::Acquire);
        snapshot.unseen_len == 0 && self.version.load(Ordering::Acquire) == snapshot.version
    }

    /// Number of the last commit that every running statement began after: versions kept for it and for earlier ones
    /// are of no more use.
    pub(crate) fn seen_by_all(&self) -> u64 {
        // Read before the scan: a statement that begins behind the scan's back notes commits that are published later,
        // and what they keep must stay.
        let published = self.published.load(order::PUBLISHED_LOAD);
        // Pairs with the fence in `claim_slot`: a statement that is not seen here sees these commits ended.
        fence(order::PURGE_FENCE);
        let begins = self.active.iter().map(|slot| slot.load(Ordering::Acquire)).filter(|&begin| begin != 0);
        begins.min().map_or(published, |begin| published.min(begin - 1))
    }

    /// Puts a commit in flight. Returns its stamp and whether old versions must be kept.
    pub(crate) fn begin_commit(
        &self,
        slot: usize,
        always_keep: bool,
        draw: impl FnOnce() -> u64,
    ) -> (u64, bool) {
        let stamp = self.change(|| {
            let stamp = draw();
            self.in_flight[slot].store(stamp << 1, order::FLIGHT_STORE);
            self.in_flight_count.fetch_add(1, order::FLIGHT_STORE);
            stamp
        });
        fence(order::FLIGHT_FENCE);
        // A statement that registered before this scan is seen by it; one that registers after it sees the commit
        // without the kept bit and waits.
        let keep = always_keep || self.active_count.load(Ordering::Relaxed) > 0;
        if keep {
            self.in_flight[slot].store(stamp << 1 | 1, order::FLIGHT_STORE);
        }
        (stamp, keep)
    }

    /// Says that a commit had to stop keeping old versions: statements that begin from now on wait for its end.
    pub(crate) fn stop_keeping(&self, slot: usize, stamp: u64) {
        self.in_flight[slot].store(stamp << 1, order::FLIGHT_STORE);
    }

    /// Ends a commit; every statement that begins from now on sees its rows. Returns its number.
    pub(crate) fn publish(&self, slot: usize) -> u64 {
        self.change(|| {
            self.in_flight[slot].store(0, order::FLIGHT_STORE);
            self.in_flight_count.fetch_sub(1, order::FLIGHT_STORE);
            self.published.fetch_add(1, order::PUBLISHED_STORE) + 1
        })
    }

    /// Changes something at one moment for all statements: each began before it, or sees it done.
    pub(crate) fn change<T>(&self, body: impl FnOnce() -> T) -> T {
        let _writer = self.writers.lock();
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(order::NOTES_FENCE);
        let result = body();
        // Release: pairs with the Acquire in `begin`.
        self.version.store(version + 2, order::NOTES_STORE);
        result
    }

    fn claim_slot(&self) -> usize {
        self.active_count.fetch_add(1, Ordering::Relaxed);
        loop {
            for (slot, word) in self.active.iter().enumerate() {
                let begin = self.published.load(Ordering::Relaxed) + 1;
                if word.load(Ordering::Relaxed) == 0
                    && word.compare_exchange(0, begin, Ordering::Acquire, Ordering::Relaxed).is_ok()
                {
                    // Pairs with the fences in `begin_commit` and `seen_by_all`.
                    fence(order::ACTIVE_FENCE);
                    return slot;
                }
            }
            std::thread::yield_now();
        }
    }

    /// The notes of this moment; none while a commit that keeps nothing is in flight.
    fn note(&self, slot: usize, stamp: u64, version: u64) -> Option<Snapshot> {
        let mut snapshot = Snapshot { stamp, unseen: [0; COMMITS_MAX], unseen_len: 0, slot, version };
        if self.in_flight_count.load(order::FLIGHT_LOAD) == 0 {
            return Some(snapshot);
        }
        for word in &self.in_flight {
            let entry = word.load(order::FLIGHT_LOAD);
            if entry == 0 {
                continue;
            }
            if entry & 1 == 0 {
                return None;
            }
            snapshot.unseen[snapshot.unseen_len] = entry >> 1;
            snapshot.unseen_len += 1;
        }
        Some(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_does_not_see_what_was_in_flight() {
        let statements = Statements::new();
        let first = statements.begin(|| 10);
        let (stamp, keep) = statements.begin_commit(3, false, || 11);
        assert_eq!((stamp, keep), (11, true));
        let second = statements.begin(|| 12);
        assert!(!first.includes(11) && !second.includes(11) && second.includes(12));
        let number = statements.publish(3);
        assert!(statements.seen_by_all() < number);
        statements.end(&first);
        assert!(statements.end(&second));
        assert_eq!(statements.seen_by_all(), number);
        let third = statements.begin(|| 12);
        assert!(third.includes(11));
        statements.end(&third);
    }

    #[test]
    fn nothing_is_kept_when_nobody_looks() {
        let statements = Statements::new();
        assert_eq!(statements.begin_commit(0, false, || 5), (5, false));
        statements.publish(0);
        assert_eq!(statements.begin_commit(0, true, || 6), (6, true));
    }
}
