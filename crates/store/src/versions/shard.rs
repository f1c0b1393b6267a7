//! What one shard lock guards: the slots of its part of the hash index, marks of commits, versions kept for statements.

use std::sync::Arc;

use arena::{Hash, ShardToken, TableId};
use hashbrown::HashTable;
use parking_lot::Mutex;

use crate::row::RowBuf;
use crate::versions::commit::Commit;
use crate::versions::statement::Snapshot;

/// A shard and its lock, from the beginning of a cache line on: a write asks for that line before it needs it, and
/// threads that write to different shards share none.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Guarded(Mutex<Shard>);

impl std::ops::Deref for Guarded {
    type Target = Mutex<Shard>;

    #[inline]
    fn deref(&self) -> &Mutex<Shard> {
        &self.0
    }
}

/// One shard of the hash index. Its lock comes before every queue and index lock and after the eviction locks; no
/// thread holds two shard locks but who empties a table, who takes all of them in their order. In the order in which a
/// write looks at its parts: what most writes look at stands in the line of the lock.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shard {
    /// The right to change the shard's slots.
    pub(crate) token: ShardToken,
    /// Keys that a commit in staging, or one that is being swapped in, is about to write.
    pub(crate) marks: HashTable<Mark>,
    /// Versions that running statements may still need.
    pub(crate) old_versions: Vec<OldVersion>,
    pub(crate) removals: Removals,
}

/// Removals that one shard remembers: keys share them by their hash, so that one removal is taken for another once in
/// so many times. That costs a transaction whose row was evicted another try, and nobody anything else.
const REMOVALS: usize = 32;

/// When keys were last removed, so that a row which somebody removed is told from one that was evicted.
#[derive(Debug)]
pub(crate) struct Removals([u64; REMOVALS]);

impl Removals {
    /// Notes that a key was removed when this was the newest stamp.
    pub(crate) fn note(&mut self, hash: Hash, stamp: u64) {
        let last = &mut self.0[Self::place(hash)];
        *last = stamp.max(*last);
    }

    /// Whether the key may have been removed since this was the newest stamp.
    pub(crate) fn since(&self, hash: Hash, stamp: u64) -> bool {
        self.0[Self::place(hash)] >= stamp
    }

    /// By bits that choose neither shard nor bucket.
    fn place(hash: Hash) -> usize {
        usize::from(hash.0.to_be_bytes()[0]) % REMOVALS
    }
}

/// A commit's claim on one key.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) hash: Hash,
    pub(crate) commit: Arc<Commit>,
    /// Position in the commit's writes.
    pub(crate) write: usize,
}

/// What a key held before a commit of many rows.
#[derive(Debug)]
pub(crate) struct OldVersion {
    pub(crate) hash: Hash,
    pub(crate) table: TableId,
    pub(crate) key: Box<[u8]>,
    /// A statement that does not see this commit uses `row`.
    pub(crate) commit: Arc<Commit>,
    /// The version before; none when the commit inserted the row.
    pub(crate) row: Option<Box<RowBuf>>,
}

impl Shard {
    pub(crate) fn guarded(token: ShardToken) -> Guarded {
        Guarded(Mutex::new(Self::new(token)))
    }

    fn new(token: ShardToken) -> Self {
        Self { token, marks: HashTable::new(), old_versions: Vec::new(), removals: Removals([0; REMOVALS]) }
    }

    /// The commit that has marked a key, and which of its writes that is.
    pub(crate) fn mark_of(&self, hash: Hash, table: TableId, key: &[u8]) -> Option<(Arc<Commit>, usize)> {
        let mark = self
            .marks
            .find(hash.0, |mark| mark.hash == hash && mark.commit.is_write_of(mark.write, table, key))?;
        Some((Arc::clone(&mark.commit), mark.write))
    }

    /// Removes a commit's mark; false if it was settled before.
    pub(crate) fn unmark(&mut self, hash: Hash, commit: &Arc<Commit>, write: usize) -> bool {
        let own = |mark: &Mark| mark.write == write && Arc::ptr_eq(&mark.commit, commit);
        self.marks.find_entry(hash.0, own).map(hashbrown::hash_table::OccupiedEntry::remove).is_ok()
    }

    /// The version of a key that a statement sees instead of the current one: what the key held before the first
    /// commit that the statement does not see.
    pub(crate) fn old_version_for(
        &self,
        snapshot: &Snapshot,
        hash: Hash,
        table: TableId,
        key: &[u8],
    ) -> Option<&OldVersion> {
        let hidden = self
            .old_versions
            .iter()
            .filter(|kept| kept.is_of(hash, table, key) && !snapshot.includes(kept.commit.stamp()));
        hidden.min_by_key(|kept| kept.commit.stamp())
    }
}

impl OldVersion {
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.row.as_ref().map_or(0, |row| row.heap_bytes())
    }

    pub(crate) fn is_of(&self, hash: Hash, table: TableId, key: &[u8]) -> bool {
        self.hash == hash && self.table == table && *self.key == *key
    }
}
