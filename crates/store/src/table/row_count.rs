//! How many rows a table has, without a look at them: an account of its keys, and what is known of their ends.
//!
//! The account counts keys in the hash index, also those whose rows have ended and wait to be cleared away, but for
//! those that went with all rows of the table. It is the number of live rows exactly where no row can have ended: none
//! is older than what the table's `ttl` and `max_ops` have ended, and no deadline of a row's own has come. Both bounds
//! are kept on the safe side by every write and made exact by every scan of the whole table.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::{NEVER, Tick};

/// What is known of a table's keys. Changed under the lock of the key's shard, in one step with the key's slot.
#[derive(Debug)]
pub(crate) struct RowCount {
    keys: AtomicU64,
    /// Rows of a smaller stamp are not counted: they went with all rows of the table, and their slots wait to be
    /// cleared away. Changed under the locks of all shards, so that it stands still for who has one.
    since: AtomicU64,
    /// No row that is counted has a smaller stamp. Only ever raised, by scans.
    oldest: AtomicU64,
    /// How often a row with a deadline of its own was written, in the upper half, and the earliest deadline of all
    /// rows, in the lower: a scan that is to raise the deadline notices a write that it may have missed.
    deadlines: AtomicU64,
}

/// What a scan has seen of a table, on its way to the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Findings {
    /// `RowCount::since` when the scan began.
    since: u64,
    oldest: u64,
    earliest: Tick,
    /// `RowCount::deadlines` when the scan began.
    began: u64,
}

impl RowCount {
    pub(crate) fn new() -> Self {
        let deadlines = AtomicU64::new(u64::from(NEVER));
        Self { keys: AtomicU64::new(0), since: AtomicU64::new(0), oldest: AtomicU64::new(0), deadlines }
    }

    /// The account begins: rows of a smaller stamp do not count. Nobody uses the table yet.
    pub(crate) fn begin(&self, first: u64) {
        self.since.store(first, Ordering::Relaxed);
        self.oldest.store(first, Ordering::Relaxed);
    }

    /// Every row that is there went, and those to come have this stamp or a greater one. The caller has all shards. A
    /// commit that drew its stamp before may still swap rows in, which are dead and do not count.
    pub(crate) fn empty(&self, first: u64) {
        self.since.store(first, Ordering::Relaxed);
        self.keys.store(0, Ordering::Relaxed);
        self.oldest.fetch_max(first, Ordering::Relaxed);
        // SeqCst, as in `note_deadline`; a scan that is under way has met rows that are gone.
        let began_anew =
            |packed: u64| Some((packed & !u64::from(Tick::MAX)).wrapping_add(1 << 32) | u64::from(NEVER));
        let _ = self.deadlines.fetch_update(Ordering::SeqCst, Ordering::SeqCst, began_anew);
    }

    /// The stamp under a key changed: a key came (`None` before), went, or has another version.
    #[inline]
    pub(crate) fn change(&self, before: Option<u64>, after: Option<u64>) {
        let since = self.since.load(Ordering::Relaxed);
        let counted = |stamp: Option<u64>| stamp.is_some_and(|stamp| stamp >= since);
        match (counted(before), counted(after)) {
            (false, true) => self.keys.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.keys.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
    }

    /// What changes with every key that comes, goes, or is given a deadline.
    pub(crate) fn standing(&self) -> [u64; 3] {
        let [keys, since] = [&self.keys, &self.since].map(|number| number.load(Ordering::Relaxed));
        [keys, since, self.deadlines.load(Ordering::SeqCst) >> 32]
    }

    /// The number of live rows, where none of those counted can have ended: who asks knows that nobody writes, or looks
    /// whether somebody did.
    pub(crate) fn exact(&self, now: Tick, dead_below: u64) -> Option<u64> {
        let rows = self.keys.load(Ordering::Relaxed);
        let none_ended = earliest(self.deadlines.load(Ordering::SeqCst)) > now
            && self.oldest.load(Ordering::Relaxed) >= dead_below;
        none_ended.then_some(rows)
    }

    /// A row is about to stand under a key with this expiry word.
    #[inline]
    pub(crate) fn note_deadline(&self, word: Tick) {
        if word == 0 || word == NEVER {
            return;
        }
        let noted = |packed: u64| {
            let earliest = earliest(packed).min(word);
            Some((packed & !u64::from(Tick::MAX)).wrapping_add(1 << 32) | u64::from(earliest))
        };
        // SeqCst, as in `settle`: a write and the end of a scan agree on which was first.
        let _ = self.deadlines.fetch_update(Ordering::SeqCst, Ordering::SeqCst, noted);
    }

    /// Begins to look at every row of the table.
    pub(crate) fn findings(&self, oldest_unseen: u64) -> Findings {
        // Commits in flight swap rows of an older stamp in behind the scan's back.
        Findings {
            since: self.since.load(Ordering::Relaxed),
            oldest: oldest_unseen,
            earliest: NEVER,
            began: self.deadlines.load(Ordering::SeqCst),
        }
    }

    /// Takes over what a scan of the whole table found.
    pub(crate) fn settle(&self, found: &Findings) {
        self.oldest.fetch_max(found.oldest, Ordering::Relaxed);
        let settled = (found.began & !u64::from(Tick::MAX)) | u64::from(found.earliest);
        // Where a deadline was written meanwhile, the next scan may know more.
        let _ = self.deadlines.compare_exchange(found.began, settled, Ordering::SeqCst, Ordering::SeqCst);
    }
}

impl Findings {
    /// A row of the table, live or not.
    #[inline]
    pub(crate) fn meet(&mut self, stamp: u64, expiry: Tick) {
        if stamp < self.since {
            return;
        }
        self.oldest = self.oldest.min(stamp);
        if expiry != 0 {
            self.earliest = self.earliest.min(expiry);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
fn earliest(packed: u64) -> Tick {
    packed as Tick
}
