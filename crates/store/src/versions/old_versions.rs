//! The account of old versions kept on the heap for running statements, and their end.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use crate::limits::OLD_VERSIONS_BYTES_MAX;
use crate::versions::statement::Statements;
use crate::versions::{Versions, order};

/// And no more than this part of the memory limit: they are taken off it at the next tick only.
const OLD_VERSIONS_PART: u64 = 8;

/// How much is kept, and which statements had to be given up.
#[derive(Debug, Default)]
pub(crate) struct OldVersions {
    /// Raised before the slot of the kept row changes, under its shard lock; a reader that sees the change (Acquire in
    /// the arena) therefore sees the count.
    rows: AtomicUsize,
    bytes: AtomicUsize,
    /// Statements that began before this stamp was drawn may lack versions that they need.
    given_up: AtomicU64,
}

impl OldVersions {
    /// Counts a version in; false when there is no room.
    pub(crate) fn add(&self, bytes: usize, memory_bytes: u64) -> bool {
        let most = (memory_bytes / OLD_VERSIONS_PART).min(OLD_VERSIONS_BYTES_MAX);
        if (self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes) as u64 > most {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.rows.fetch_add(1, order::KEPT_STORE);
        true
    }

    pub(crate) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.rows.fetch_sub(1, Ordering::Release);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.load(order::KEPT_LOAD) == 0
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A commit stops keeping old versions. Called before the first row is swapped whose version is not kept.
    ///
    /// The stamp is drawn here: the commit's own would say nothing to a statement that began after a younger commit,
    /// and sees that one, but not this. Every statement that is running began before the new stamp and fails if it
    /// reads on; one that begins from here on waits for the commit's end.
    pub(crate) fn give_up(
        &self,
        statements: &Statements,
        slot: usize,
        commit: u64,
        draw: impl FnOnce() -> u64,
    ) {
        statements.stop_keeping(slot, commit);
        // Release: pairs with the Acquire of `last_stamp`; a statement that begins at this stamp or later sees the
        // commit keep nothing.
        fence(order::GIVE_UP_FENCE);
        // Release: pairs with the Acquire below, and with the store of the slot of a row that is swapped after it.
        self.given_up.fetch_max(draw(), order::GIVEN_UP_STORE);
    }

    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(order::GIVEN_UP_LOAD)
    }
}

impl Versions {
    pub(crate) fn heap_bytes(&self) -> u64 {
        let catalog = self.catalog();
        let tables = catalog.tables().map(|table| {
            let indexes: usize = table.indexes().iter().map(|index| index.heap_bytes()).sum();
            indexes + table.state.ghost.lock().memory_bytes()
        });
        (tables.sum::<usize>() + self.old.bytes()) as u64
    }

    /// Drops the kept versions that no running statement can need.
    pub(crate) fn purge_old_versions(&self) {
        if self.old.is_empty() {
            return;
        }
        let seen = self.statements.seen_by_all();
        for shard in &self.shards {
            shard.lock().old_versions.retain(|kept| {
                // Acquire: pairs with the Release at publication.
                let needed = kept.commit.published.load(Ordering::Acquire) > seen;
                if !needed {
                    self.old.remove(kept.heap_bytes());
                }
                needed
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two commits were under way, and the younger had stopped keeping and ended when a statement began. Then the older
    /// stopped, and since its stamp was not the greater one, the statement went on without the rows that it replaced.
    #[test]
    fn a_statement_fails_whichever_commit_stops_keeping() {
        let (statements, kept) = (Statements::new(), OldVersions::default());
        let goes_on = |snapshot: &crate::versions::statement::Snapshot| {
            let given_up = kept.given_up();
            given_up == 0 || snapshot.includes(given_up)
        };
        let (older, _) = statements.begin_commit(0, true, || 10);
        let (younger, _) = statements.begin_commit(1, true, || 20);
        let first = statements.begin(|| 21);
        kept.give_up(&statements, 1, younger, || 22);
        assert!(!goes_on(&first));
        statements.publish(1);
        let second = statements.begin(|| 25);
        assert!(second.includes(younger) && !second.includes(older) && goes_on(&second));
        kept.give_up(&statements, 0, older, || 26);
        assert!(!goes_on(&second), "it needs what the older commit replaces");
        statements.publish(0);
        assert!(goes_on(&statements.begin(|| 26)), "it sees both commits");
    }
}
