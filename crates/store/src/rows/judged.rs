//! Rows that an expiry rule applies to.
//!
//! The store computes no condition. Who does, brings rows here as it saw them; one that was written, touched or taken
//! since stays.

use crate::clock::Tick;
use crate::mutation::Mutation;
use crate::rows::Rows;
use crate::table::Table;
use crate::table::removal_cause::RemovalCause;

/// A row as whoever judged it saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The encoded primary key.
    pub key: Vec<u8>,
    /// Its CAS value.
    pub cas: u64,
    /// Its expiry word.
    pub expiry: Tick,
}

impl Rows {
    /// Lets rows expire that are still what they were when they were judged. Returns how many.
    pub fn expire_rows(&self, table: &Table, rows: &[Judged]) -> u64 {
        let now = self.now();
        rows.iter().map(|row| u64::from(self.expire_row(table, row, now))).sum()
    }

    fn expire_row(&self, table: &Table, row: &Judged, now: Tick) -> bool {
        let hash = self.arena.of(table.id()).hash(table.id(), &row.key);
        let mut shard = self.shard(hash).lock();
        let _mutation = Mutation;
        // A commit is about to write it.
        if table.is_gone() || shard.mark_of(hash, table.id(), &row.key).is_some() {
            return false;
        }
        let Some(entry) = self.arena.of(table.id()).find(&shard.token, hash, table.id(), &row.key) else {
            return false;
        };
        let head = self.live_head(table, entry.location, now);
        let same = head.is_some_and(|head| head.cas() == row.cas && head.expiry == row.expiry);
        if same {
            self.unpublish(&mut shard, table, entry, RemovalCause::Rule);
        }
        same
    }
}
