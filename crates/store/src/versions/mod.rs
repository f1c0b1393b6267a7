//! Which version stands under a key: shards of the hash index, marks of commits, old versions for statements.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use arena::{Arena, Hash, Location, Queue, RowHead, Seen, SlotId};
use parking_lot::Mutex;

use crate::clock::Tick;
use crate::mutation::Mutation;
use crate::row::RowBuf;
use crate::row::version::{Keep, Version};
use crate::schema::Schema;
use crate::table::Table;
use crate::versions::old_versions::OldVersions;
use crate::versions::shard::{Guarded, Shard};
use crate::versions::statement::Statements;
use crate::versions::swap::Found;

pub(crate) mod account;
pub(crate) mod commit;
pub(crate) mod flush;
pub(crate) mod marks;
pub(crate) mod old_versions;
pub(crate) mod order;
pub(crate) mod relocate;
pub(crate) mod shard;
pub(crate) mod statement;
pub(crate) mod swap;
pub(crate) mod tap;
pub(crate) mod unique;

/// The version under each key, over [`Schema`].
#[derive(Debug)]
pub struct Versions {
    schema: Schema,
    pub(crate) shards: Box<[Guarded]>,
    pub(crate) statements: Statements,
    pub(crate) old: OldVersions,
    /// Held by the one commit that goes first.
    pub(crate) firm: Mutex<()>,
    /// The limit, which may change while others read it: Relaxed, as each of them takes it for a moment's.
    pub(crate) memory_bytes: AtomicU64,
}

impl Deref for Versions {
    type Target = Schema;

    #[inline]
    fn deref(&self) -> &Schema {
        &self.schema
    }
}

impl Versions {
    pub(crate) fn new(schema: Schema, shards: Box<[Guarded]>, memory_bytes: u64) -> Self {
        Self {
            schema,
            shards,
            statements: Statements::new(),
            old: OldVersions::default(),
            firm: Mutex::new(()),
            memory_bytes: AtomicU64::new(memory_bytes),
        }
    }

    /// Bytes for everything that holds data.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn shard(&self, hash: Hash) -> &Mutex<Shard> {
        &self.shards[Arena::shard_of(hash)]
    }

    pub(crate) fn shard_at(&self, shard: usize) -> &Mutex<Shard> {
        &self.shards[shard]
    }

    /// What the slot of a key holds.
    pub(crate) fn find_row(&self, shard: &Shard, table: &Table, hash: Hash, key: &[u8]) -> Option<Found> {
        let (entry, head) = self.arena.of(table.id()).find_row(&shard.token, hash, table.id(), key)?;
        Some(Found { entry, head })
    }

    /// What a glance saw, if the slot of the key still holds it.
    pub(crate) fn find_seen(&self, shard: &Shard, seen: &Seen) -> Option<Found> {
        let (entry, head) = self.arena.of(*seen).find_seen(&shard.token, seen)?;
        Some(Found { entry, head })
    }

    /// The slot of a row that was copied before the lock was taken, if it still names that very version. The place
    /// alone proves nothing: a later version of the key may have been written there since.
    pub(crate) fn find_copied(&self, shard: &Shard, hash: Hash, row: &RowBuf) -> Option<SlotId> {
        let slot = self.arena.of(row.location()).find_location(&shard.token, hash, row.location())?;
        self.arena
            .of(row.location())
            .row(row.location())
            .is_some_and(|there| row.is_copy_of(&there))
            .then_some(slot)
    }

    /// The head of the row at a location if it is live. The caller's shard lock keeps the row where it is.
    pub(crate) fn live_head(&self, table: &Table, location: Location, now: Tick) -> Option<RowHead> {
        let head = *self.arena.of(location).row(location)?.head();
        self.is_live(table, &head, now).then_some(head)
    }

    /// Copies a row that a lock of the caller's keeps in its place.
    pub(crate) fn load_stable(&self, location: Location, row: &mut RowBuf) -> bool {
        self.arena.of(location).row(location).is_some_and(|read| row.load(&read))
    }

    pub(crate) fn queue_of(&self, location: Location) -> Queue {
        self.arena.of(location).home_of(location).1
    }

    /// What lies at a location that nothing leads to yet, and that its writer holds.
    pub(crate) fn version_at(&self, location: Location) -> Version {
        let (segment, queue) = self.arena.of(location).home_of(location);
        let row = self.arena.of(location).row(location);
        let (expiry, bytes) = row.map_or((0, 0), |row| (row.head().expiry, row.head().total_bytes));
        Version { location, segment, queue, bytes, expiry, keep: Keep::default() }
    }

    /// A step of index growth; false if none is due, or there is no room for it.
    pub(crate) fn grow_index(&self) -> bool {
        self.arena.split_due().is_some_and(|shard| {
            let mut shard = self.shards[shard].lock();
            let _mutation = Mutation;
            self.arena.split(&mut shard.token)
        })
    }

    /// Grows the index for rows that are about to come, all of one shard after the other, so that no chain of buckets
    /// becomes too long for one of them. The caller holds no shard.
    pub(crate) fn grow_index_for(&self, more: u64) {
        while let Some(shard) = self.arena.split_due_for(more) {
            let mut shard = self.shards[shard].lock();
            let _mutation = Mutation;
            // Another writer may have split the bucket; where there is no page for one, the rest goes on unsplit.
            if !self.arena.split_for(&mut shard.token, more)
                && self.arena.split_due_for(more) == Some(shard.token.shard())
            {
                return;
            }
        }
    }
}
