//! `max_rows`: S3-FIFO row by row within one table.

use std::sync::atomic::Ordering;

use arena::{Location, Queue, RowHead};

use super::empty::{Scratch, Settled};
use super::{Emptying, Purpose, SMALL_PER_CENT};
use crate::clock::Tick;
use crate::memory::Memory;
use crate::mutation::Mutation;
use crate::row::RowBuf;
use crate::table::queue::place;
use crate::table::removal_cause::RemovalCause;
use crate::table::{Cursor, Cursors, Table};

/// Rows that row-by-row eviction looks at for each row it has to evict, before the next one goes whatever its reads.
const LOOKS_PER_EVICTION: usize = 256;

impl Memory {
    /// Evicts up to `rows` rows of a table that is above its `max_rows`, oldest first.
    pub(crate) fn evict_rows(&self, table: &Table, rows: usize, now: Tick) {
        let Some(mut cursors) = table.state.evicting.try_lock() else { return };
        let _mutation = Mutation;
        let limit = table.state.limits.rows_max.load(Ordering::Relaxed);
        table.state.size_ghost(limit);
        let mut scratch = Scratch::default();
        for _ in 0..rows {
            if table.rows() <= limit || !self.evict_row(table, &mut cursors, limit, now, &mut scratch) {
                return;
            }
        }
    }

    fn evict_row(
        &self,
        table: &Table,
        cursors: &mut Cursors,
        limit: u64,
        now: Tick,
        scratch: &mut Scratch,
    ) -> bool {
        for look in 0..LOOKS_PER_EVICTION {
            let small = table.state.counters.rows[place(Queue::Small)].load(Ordering::Relaxed);
            let main = table.state.counters.rows[place(Queue::Main)].load(Ordering::Relaxed);
            let queue = if small * 100 >= limit.max(1) * SMALL_PER_CENT || main == 0 {
                Queue::Small
            } else {
                Queue::Main
            };
            let Some((location, head)) = self.next_row(table, cursors, queue) else { return false };
            let before = table.rows();
            let tired = look + 1 == LOOKS_PER_EVICTION && queue == Queue::Main;
            if tired {
                self.forget_reads(table, location, &mut scratch.row);
            }
            let work =
                Emptying { table, queue, purpose: Purpose::Evict, leaving: RemovalCause::MaxRows, now };
            let left = self.hash_of_row(table, location, &head, &mut scratch.key).is_some_and(|hash| {
                self.settle_row(&work, location, hash, &mut scratch.row) == Settled::Left
            });
            if left || table.rows() < before {
                return true;
            }
        }
        false
    }

    fn forget_reads(&self, table: &Table, location: Location, row: &mut RowBuf) {
        if self.load_stable(location, row) {
            let hash = self.arena.of(table.id()).hash(table.id(), row.key());
            let shard = self.shard(hash).lock();
            if let Some(slot) = self.arena.of(location).find_location(&shard.token, hash, location) {
                self.arena.of(slot).set_frequency(slot, 0);
            }
        }
    }

    /// The next row at the old end of a queue, recycling segments that were passed.
    fn next_row(&self, table: &Table, cursors: &mut Cursors, queue: Queue) -> Option<(Location, RowHead)> {
        for _ in 0..LOOKS_PER_EVICTION {
            let at = &mut cursors.0[place(queue)];
            let cursor = match at {
                Some(cursor) => cursor,
                None => at.insert(self.next_cursor(table, queue)?),
            };
            let mut rows = self.arena.of(cursor.segment).rows(cursor.segment, cursor.word);
            if let Some(row) = rows.next() {
                cursor.word = rows.position();
                return Some(row);
            }
            let segment = cursor.segment;
            *at = None;
            self.give_up(&table.state, queue, segment);
        }
        None
    }

    fn next_cursor(&self, table: &Table, queue: Queue) -> Option<Cursor> {
        let oldest =
            || table.state.queues.lock().oldest(queue, |segment| self.arena.of(segment).writers(segment) > 0);
        let mut found = oldest();
        if found.is_none() {
            self.seal_open(table, queue);
            found = oldest();
        }
        let (_, segment) = found?;
        if !self.take_sealed(table, segment) {
            return None;
        }
        if !self.arena.of(segment).close(segment) {
            self.put_back(&table.state, segment);
            return None;
        }
        Some(Cursor { segment, word: 0 })
    }
}
