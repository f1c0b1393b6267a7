//! A segment that is being emptied: each of its rows leaves or moves, and the segment is free.

use arena::{Entry, Hash, Location, RowHead, SegmentId};

use super::{Emptying, Purpose, Verdict, s3fifo};
use crate::leaving::Leaving;
use crate::row::RowBuf;
use crate::store::Store;
use crate::table::Table;

/// Rows whose index buckets are asked for before the first of them is looked up: most of the time that rows which
/// end together take is waiting for memory, which brings all of these in the time of one.
const ROWS_AHEAD: usize = 32;

/// Room for a copy of a row, and for a key.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) row: RowBuf,
    pub(super) key: Vec<u8>,
}

impl Store {
    /// Empties a segment that was taken from its list, and recycles it. False: a writer still holds it, and it is back
    /// in its list.
    pub(crate) fn empty(&self, segment: SegmentId, work: &Emptying<'_>) -> bool {
        let state = &work.table.state;
        if !self.arena.close(segment) {
            self.enlist(&mut state.queues.lock(), segment, self.arena.last_stamp());
            return false;
        }
        let mut scratch = Scratch::default();
        self.settle_in(work, segment, &mut scratch, |location| !self.arena.is_gone(location));
        // Whoever noted a death a moment ago may not have counted it yet: asking for each row again waits for him.
        self.settle_in(work, segment, &mut scratch, |_| true);
        self.give_up(state, work.queue, segment);
        true
    }

    /// Decides on the rows of a segment being emptied that are worth looking at.
    fn settle_in(
        &self,
        work: &Emptying<'_>,
        segment: SegmentId,
        scratch: &mut Scratch,
        worth: impl Fn(Location) -> bool,
    ) {
        let mut ahead = Vec::with_capacity(ROWS_AHEAD);
        let mut rows = self.arena.rows(segment, 0).filter(|(location, _)| worth(*location));
        // What is left is dead when nothing is live: no writer is left who could publish a row of this segment.
        while self.arena.live(segment) > 0
            && self.look_ahead(work.table, &mut rows, &mut ahead, &mut scratch.key)
        {
            for &(location, hash) in &ahead {
                let _left = self.settle_row(work, location, hash, &mut scratch.row);
            }
        }
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
                self.arena.prefetch_bucket(hash, table.id());
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
        let row = self.arena.row(location).filter(|_| head.table == table.id())?;
        key.clear();
        row.copy_key(key);
        Some(self.arena.hash(table.id(), key))
    }

    /// Decides on one row of a segment being emptied, and carries it out. True: a live row left the table.
    pub(super) fn settle_row(
        &self,
        work: &Emptying<'_>,
        location: Location,
        hash: Hash,
        row: &mut RowBuf,
    ) -> bool {
        let table = work.table;
        let mut shard = self.shard(hash).lock();
        let Some(slot) = self.arena.find_location(&shard.token, hash, location) else { return false };
        // Judged by what stands there now: it may have been touched since it was met.
        let verdict = match (self.dead_there(table, location, work.now), work.purpose) {
            (_, Purpose::Drop) => Verdict::Dead(Leaving::Flushed),
            (Some(dead), _) => Verdict::Dead(dead),
            (None, Purpose::Compact | Purpose::Expire) => {
                Verdict::Move { queue: work.queue, reads: self.arena.frequency(slot) }
            }
            (None, Purpose::Evict) => s3fifo(work.queue, self.arena.frequency(slot)),
        };
        if let Verdict::Dead(leaving) = verdict {
            self.unpublish(&mut shard, table, Entry { slot, location }, leaving);
            return false;
        }
        let readable = self.load_stable(location, row);
        if let Verdict::Move { queue, reads } = verdict {
            drop(shard);
            if readable && self.move_row(&Emptying { queue, ..*work }, reads, hash, row) {
                return false;
            }
            shard = self.shard(hash).lock();
        }
        let Some(slot) = self.arena.find_location(&shard.token, hash, location) else { return false };
        if readable {
            self.note_eviction(table, row, slot, work.now);
        }
        self.unpublish(&mut shard, table, Entry { slot, location }, work.leaving);
        if matches!(verdict, Verdict::Leave { remember: true }) {
            table.state.remember(hash);
        }
        true
    }
}
