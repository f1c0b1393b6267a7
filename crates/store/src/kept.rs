//! The account of old versions kept on the heap for running statements, and their end.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::store::Store;

/// Heap for kept versions. Beyond it the statements that need them fail with "snapshot too old".
const KEPT_BYTES_MAX: usize = 64 << 20;

/// How much is kept, and which statements had to be given up.
#[derive(Debug, Default)]
pub(crate) struct KeptAccount {
    /// Raised before the slot of the kept row changes, under its shard lock; a reader that sees the change (Acquire in
    /// the arena) therefore sees the count.
    rows: AtomicUsize,
    bytes: AtomicUsize,
    /// Newest commit whose old versions are not all kept.
    given_up: AtomicU64,
}

impl KeptAccount {
    /// Counts a version in; false when there is no room.
    pub(crate) fn add(&self, bytes: usize) -> bool {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > KEPT_BYTES_MAX {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.rows.fetch_add(1, Ordering::Release);
        true
    }

    pub(crate) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.rows.fetch_sub(1, Ordering::Release);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.load(Ordering::Acquire) == 0
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn give_up(&self, commit: u64) {
        self.given_up.fetch_max(commit, Ordering::Release);
    }

    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Acquire)
    }
}

impl Store {
    /// Drops the kept versions that no running statement can need.
    pub(crate) fn purge_kept(&self) {
        if self.kept.is_empty() {
            return;
        }
        let seen = self.statements.seen_by_all();
        for shard in &self.shards {
            shard.lock().kept.retain(|kept| {
                // Acquire: pairs with the Release at publication.
                let needed = kept.commit.published.load(Ordering::Acquire) > seen;
                if !needed {
                    self.kept.remove(kept.heap_bytes());
                }
                needed
            });
        }
    }
}
