//! Writes of one row by its key: the path of memcached's commands and of single-row SQL statements.
//!
//! A row is copied into its segment first, where nothing reaches it (`memory/place.rs`), and published under the lock
//! of its index shard by one store of one slot word.

use arena::{Hash, Lookup, Queue, Seen};

use crate::clock::Tick;
use crate::error::WriteError;
use crate::mutation::Mutation;
use crate::row::RowBuf;
use crate::row::new::NewParts;
use crate::row::request::{Expect, Outcome, check};
use crate::row::version::Version;
use crate::rows::Rows;
use crate::table::Table;
use crate::table::removal_cause::RemovalCause;
use crate::versions::shard::Shard;
use crate::versions::swap::{Found, SlotChange, Unique};
use crate::versions::tap::applies_peers;

/// What a look without a lock found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance {
    /// The queue for the new version.
    pub(crate) queue: Queue,
    /// The version that was there.
    pub(crate) seen: Option<Seen>,
}

/// The key that is written or removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'k> {
    pub(crate) hash: Hash,
    pub(crate) key: &'k [u8],
    /// Where a glance met its row.
    pub(crate) seen: Option<Seen>,
    /// A copy of that row.
    pub(crate) copy: Option<&'k RowBuf>,
}

impl Rows {
    /// Writes one row if what is there meets the expectation.
    pub(crate) fn put(
        &self,
        table: &Table,
        new: &NewParts<'_>,
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        if table.has_ended(new.expiry, now) {
            return self.remove_for_expired(table, new.key, expect, now);
        }
        let hash = self.arena.of(table.id()).hash(table.id(), new.key);
        match self.glance(table, hash, new.key, expect, now) {
            Ok(Glance { queue, seen }) => {
                let target = Target { hash, key: new.key, seen, copy: None };
                self.put_at(table, &target, queue, new, expect, now)
            }
            Err(outcome) => Ok(outcome),
        }
    }

    /// Writes one row if what is there meets the expectation. A glance said where it goes, and it is not to end at
    /// once.
    pub(crate) fn put_at(
        &self,
        table: &Table,
        target: &Target<'_>,
        queue: Queue,
        new: &NewParts<'_>,
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        self.checkpoint(now);
        self.await_unique(table);
        let placed = self.place(table, queue, new, false, now)?;
        let outcome = self.publish(table, target, Some(placed.version), expect, now);
        drop(placed);
        self.after_write(table, now);
        outcome
    }

    /// Removes the row under a key if it meets the expectation.
    pub fn delete(
        &self,
        table: &Table,
        key: &[u8],
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        if applies_peers(table) {
            let removed = self.publish_of_peer(table, key, None, expect, now)?;
            return Ok(if removed { Outcome::Done(self.last_stamp()) } else { Outcome::Missing });
        }
        let hash = self.arena.of(table.id()).hash(table.id(), key);
        self.publish(table, &Target { hash, key, seen: None, copy: None }, None, expect, now)
    }

    /// A write whose deadline has passed leaves no row behind, and answers as if it had been stored.
    pub(crate) fn remove_for_expired(
        &self,
        table: &Table,
        key: &[u8],
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        match (self.delete(table, key, expect, now)?, expect) {
            (Outcome::Missing, Expect::Anything | Expect::Absent) => {
                // The writer is told the version of its row. Each is unique, and 0 means that there is none.
                Ok(Outcome::Done(self.arena.private().next_stamp()))
            }
            (outcome, _) => Ok(outcome),
        }
    }

    /// Looks without a lock: where the new version goes, or the outcome when the expectation already fails.
    pub(crate) fn glance(
        &self,
        table: &Table,
        hash: Hash,
        key: &[u8],
        expect: Expect,
        now: Tick,
    ) -> Result<Glance, Outcome> {
        if let Lookup::Hit(row) = self.arena.of(table.id()).lookup_place(hash, table.id(), key) {
            let queue = self.arena.queue_of(&row);
            if row.is_valid() {
                if self.is_live(table, row.head(), now) {
                    check(expect, Some(row.head()))?;
                }
                return Ok(Glance { queue, seen: row.seen() });
            }
        }
        // A doubtful answer is settled under the lock.
        let wanted = table.state.ghost_holds(hash);
        Ok(Glance { queue: if wanted { Queue::Main } else { Queue::Small }, seen: None })
    }

    /// Replaces, inserts or removes the row of a key in one step under its shard's lock.
    pub(crate) fn publish(
        &self,
        table: &Table,
        target: &Target<'_>,
        new: Option<Version>,
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        let mut shard = self.shard(target.hash).lock();
        let _mutation = Mutation;
        self.settle_mark(&mut shard, table, target.hash, target.key);
        self.publish_locked(&mut shard, table, target, new, expect, now)
    }

    /// The same of a key whose shard is locked, and whose mark is settled.
    #[inline]
    pub(crate) fn publish_locked(
        &self,
        shard: &mut Shard,
        table: &Table,
        &Target { hash, key, seen, copy }: &Target<'_>,
        mut new: Option<Version>,
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        // A row may go by any rules.
        if new.is_some() {
            table.check_current()?;
        } else {
            table.check_removable()?;
        }
        let (found, copy) = match seen.and_then(|seen| self.find_seen(shard, &seen)) {
            Some(found) => (Some(found), copy),
            None => (self.find_row(shard, table, hash, key), None),
        };
        let live = found.as_ref().map(|found| &found.head).filter(|head| self.is_live(table, head, now));
        if let Err(outcome) = check(expect, live) {
            return Ok(outcome);
        }
        if let (Some(new), Some(head)) = (&mut new, live)
            && new.keep.is_some()
            && !self.take_over(new, head)
        {
            return Ok(Outcome::Exists);
        }
        let was_live = live.is_some();
        if new.is_none() && !was_live {
            // It may have been evicted, and whoever removes a row that is not there wants it away all the same.
            shard.removals.note(hash, self.arena.private().last_stamp());
            if let Some(Found { entry, head }) = found
                && let Some(dead) = self.dead(table, &head, now)
            {
                self.unpublish(shard, table, entry, dead);
            }
            // Another cache may have it.
            if table.replicates_rows() {
                self.tell_row(table, key, None);
            }
            return Ok(Outcome::Missing);
        }
        let leaving = match (was_live, &found) {
            (true, _) => new.is_none().then_some(RemovalCause::Invalidated),
            (false, Some(found)) => self.dead(table, &found.head, now),
            (false, None) => None,
        };
        let stamp = self.arena.private().next_stamp();
        let change = SlotChange { hash, found, copy, was_live, new, stamp };
        self.swap(shard, table, &change, Unique::Check(now))?;
        if let Some(leaving) = leaving {
            table.state.counters.count(leaving);
        }
        Ok(Outcome::Done(stamp))
    }
}
