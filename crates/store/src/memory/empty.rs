//! A segment that is being emptied: each of its rows leaves or moves, and the segment is free.

use arena::{Entry, Hash, Location, RowHead, SegmentId};

use super::{Emptying, Purpose, Verdict, s3fifo};
use crate::memory::Memory;
use crate::row::RowBuf;
use crate::table::Table;
use crate::table::removal_cause::RemovalCause;

/// Rows whose index buckets are asked for before the first of them is looked up: most of the time that rows which
/// end together take is waiting for memory, which brings all of these in the time of one.
const ROWS_AHEAD: usize = 32;

/// Room for a copy of a row, and for a key.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) row: RowBuf,
    pub(super) key: Vec<u8>,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// It is no row of this segment any more: it was dead, was replaced, or stands elsewhere.
    Done,
    /// It was live, and left the table.
    Left,
    /// It is live, and there is no room for it elsewhere.
    Stays,
}

impl Memory {
    /// Empties a segment that was taken from its list, and recycles it. False: a writer still holds it, or a live row
    /// of it found no room elsewhere and has to stay; it is back in its list.
    pub(crate) fn empty(&self, segment: SegmentId, work: &Emptying<'_>) -> bool {
        let state = &work.table.state;
        if !self.arena.of(segment).close(segment) {
            self.put_back(state, segment);
            return false;
        }
        let mut scratch = Scratch::default();
        // A writer that noted a death a moment ago may not have counted it yet: asking for each row again waits for it.
        let emptied = self.settle_in(work, segment, &mut scratch, |location| {
            !self.arena.of(location).is_noted_dead(location)
        }) && self.settle_in(work, segment, &mut scratch, |_| true);
        if emptied {
            self.give_up(state, work.queue, segment);
        } else {
            // It stays closed: until the next attempt its rows are copied to readers, not held for them.
            self.put_back(state, segment);
        }
        emptied
    }

    /// Decides on the rows of a segment being emptied that are worth looking at. False: a row has to stay.
    fn settle_in(
        &self,
        work: &Emptying<'_>,
        segment: SegmentId,
        scratch: &mut Scratch,
        worth: impl Fn(Location) -> bool,
    ) -> bool {
        let mut ahead = Vec::with_capacity(ROWS_AHEAD);
        let mut rows = self.arena.of(segment).rows(segment, 0).filter(|(location, _)| worth(*location));
        // What is left is dead when nothing is live: no writer is left who could publish a row of this segment.
        while self.arena.of(segment).live(segment) > 0
            && self.look_ahead(work.table, &mut rows, &mut ahead, &mut scratch.key)
        {
            for &(location, hash) in &ahead {
                if self.settle_row(work, location, hash, &mut scratch.row) == Settled::Stays {
                    return false;
                }
            }
        }
        true
    }

    /// Takes the next rows of a segment, and asks memory for their places in the index. False: there are no more.
    fn look_ahead(
        &self,
        table: &Table,
        rows: &mut impl Iterator<Item = (Location, RowHead)>,
        ahead: &mut Vec<(Location, Hash)>,
        key: &mut Vec<u8>,
    ) -> bool {
        ahead.clear();
        let mut more = false;
        for (location, head) in rows.take(ROWS_AHEAD) {
            more = true;
            if let Some(hash) = self.hash_of_row(table, location, &head, key) {
                self.arena.of(table.id()).prefetch_bucket(hash);
                ahead.push((location, hash));
            }
        }
        more
    }

    /// The hash of the row at a location; none if it is no row of the table.
    pub(super) fn hash_of_row(
        &self,
        table: &Table,
        location: Location,
        head: &RowHead,
        key: &mut Vec<u8>,
    ) -> Option<Hash> {
        let row = self.arena.of(location).row(location).filter(|_| head.table == table.id())?;
        key.clear();
        row.copy_key(key);
        Some(self.arena.of(table.id()).hash(table.id(), key))
    }

    /// Decides on one row of a segment being emptied, and carries it out.
    pub(super) fn settle_row(
        &self,
        work: &Emptying<'_>,
        location: Location,
        hash: Hash,
        row: &mut RowBuf,
    ) -> Settled {
        let table = work.table;
        let mut shard = self.shard(hash).lock();
        let Some(slot) = self.arena.of(location).find_location(&shard.token, hash, location) else {
            return Settled::Done;
        };
        // Judged by what stands there now: it may have been touched since it was met.
        let verdict = match (self.dead_there(table, location, work.now), work.purpose) {
            (_, Purpose::Drop) => Verdict::Dead(RemovalCause::Flushed),
            (Some(dead), _) => Verdict::Dead(dead),
            (None, Purpose::Compact | Purpose::Expire) => {
                Verdict::Move { queue: work.queue, reads: self.arena.of(slot).frequency(slot) }
            }
            (None, Purpose::Evict) => {
                let arena = self.arena.of(slot);
                s3fifo(work.queue, arena.frequency(slot), arena.hits(slot, work.now).fetched)
            }
        };
        if let Verdict::Dead(leaving) = verdict {
            self.unpublish(&mut shard, table, Entry { slot, location }, leaving);
            return Settled::Done;
        }
        let readable = self.load_stable(location, row);
        if let Verdict::Move { queue, reads } = verdict {
            drop(shard);
            if readable && self.move_row(&Emptying { queue, ..*work }, reads, hash, row) {
                return Settled::Done;
            }
            if readable && !self.may_evict(work) {
                return Settled::Stays;
            }
            shard = self.shard(hash).lock();
        }
        let Some(slot) = self.arena.of(location).find_location(&shard.token, hash, location) else {
            return Settled::Done;
        };
        if readable {
            self.note_eviction(table, row, slot, work.now);
        }
        self.unpublish(&mut shard, table, Entry { slot, location }, work.leaving);
        match verdict {
            Verdict::Leave { remember: true } => table.state.remember(hash, row.size()),
            Verdict::Leave { remember: false } => table.state.forget(hash),
            _ => {}
        }
        Settled::Left
    }

    /// Whether a live row for which there is no room elsewhere goes: somebody has asked for that, by the rules of
    /// eviction or by a limit of the table. Compaction and expiry only tidy up.
    fn may_evict(&self, work: &Emptying<'_>) -> bool {
        work.purpose == Purpose::Evict && (self.evicts() || work.leaving != RemovalCause::Memory)
    }
}
