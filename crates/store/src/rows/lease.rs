//! The lease of a row: of many who ask to refresh it, one gets it.

use arena::{Hash, Lookup, RowHead};

use crate::clock::Tick;
use crate::mutation::Mutation;
use crate::row::RowBuf;
use crate::row::meta::ItemMeta;
use crate::row::new::NewParts;
use crate::row::renewal::Renewal;
use crate::row::request::Expiry;
use crate::rows::Rows;
use crate::table::Table;

impl Rows {
    /// Takes the lease of a version, if it is still the current one, with the deadline that was seen, and nobody holds
    /// it. One of all who try gets it.
    pub fn take_lease(&self, table: &Table, key: &[u8], seen: &ItemMeta, until: Tick, now: Tick) -> bool {
        let hash = self.arena.of(table.id()).hash(table.id(), key);
        {
            let mut shard = self.shard(hash).lock();
            let _mutation = Mutation;
            self.settle_mark(&mut shard, table, hash, key);
            let Some(entry) = self.arena.of(table.id()).find(&shard.token, hash, table.id(), key) else {
                return false;
            };
            let is_seen = |head: &RowHead| (head.stamp, head.expiry) == (seen.stamp, seen.word);
            let head = self.live_head(table, entry.location, now).filter(is_seen);
            let Some(head) = head else { return false };
            if head.has_expiry() {
                let free = head.lease <= now;
                if free {
                    self.arena.of(entry.location).set_lease(entry.location, until);
                }
                return free;
            }
        }
        let mut row = RowBuf::new();
        // Not a read of the row, so its hint stays.
        let Lookup::Hit(found) = self.arena.of(table.id()).lookup(hash, table.id(), key) else {
            return false;
        };
        let same = row.load(&found) && row.stamp() == seen.stamp && !row.head().has_expiry();
        same && self.is_live(table, row.head(), now) && self.lease_copy(table, hash, &row, until, now)
    }

    /// As [`Rows::take_lease`], for a row without a word for it: a copy that has one takes its place, with the same
    /// stamp, so that age and CAS value stay.
    pub(crate) fn lease_copy(&self, table: &Table, hash: Hash, row: &RowBuf, until: Tick, now: Tick) -> bool {
        let parts = NewParts {
            key: row.key(),
            payload: &[row.payload()],
            client_flags: row.client_flags(),
            expiry: Expiry::Table,
            cas: row.head().explicit_cas,
            renewal: Renewal { lease: Some(until), ..Renewal::of(row.head()) },
        };
        // Without room nobody gets the lease; the row goes on being served as it is.
        let queue = self.queue_of(row.location());
        let Ok(placed) = self.place_copy(table, queue, &parts, row.head().is_multi(), now) else {
            return false;
        };
        let mut shard = self.shard(hash).lock();
        let _mutation = Mutation;
        self.settle_mark(&mut shard, table, hash, row.key());
        !table.is_gone() && self.relocate(&mut shard, table, hash, row, &placed.version).is_some()
    }
}
