//! Room and time: segments that expired come back whole, sparse ones are compacted, and S3-FIFO chooses what goes.
//!
//! Rows enter the small queue, or the main queue when the ghost remembers their key. The oldest row of the small queue
//! moves to the main queue if it was read twice, else it leaves and the ghost remembers it. The oldest row of the main
//! queue goes round again while it was read since, else it leaves.

use std::sync::atomic::Ordering;

use arena::{Entry, Hash, Location, Queue, RowHead, SegmentId, SegmentTag, SlotId};

use crate::clock::Tick;
use crate::departure::Cause;
use crate::error::WriteError;
use crate::mutation::Mutation;
use crate::queue::{NO_DEADLINE_CLASS, Sealed, SealedLists, SegmentSize, Standing, place};
use crate::renew::Renewal;
use crate::row::RowBuf;
use crate::shard::Shard;
use crate::store::Store;
use crate::table::{Cursor, Cursors, Table, TableState};
use crate::write::{NewParts, Placed, count};

/// Units that only eviction may take, so that a row worth keeping always finds a place to move to.
pub(crate) const RESERVE_UNITS: u64 = 4;
/// Steps of making room before a write is refused as out of memory.
const FREE_ATTEMPTS: usize = 4_096;
/// Times that a writer gives way to others who hold every segment, before it is refused: a write holds its segment for
/// about a microsecond, longer only where its thread is off the processor.
const HELD_ROUNDS: usize = 64;
/// Rows that row-by-row eviction looks at for each row it has to evict, before the next one goes whatever its reads.
const LOOKS_PER_EVICTION: usize = 256;
/// Reads in the small queue that earn a row a place in the main queue.
const PROMOTE_READS: u8 = 2;
/// The small queue's share of a table, in per cent.
const SMALL_PER_CENT: u64 = 10;
/// Sparse segments remembered for compaction; beyond it they wait for the queue to reach them.
const SPARSE_MAX: usize = 4_096;

/// A table may hold so many times its live bytes before its sparse segments are emptied although there is room: dead
/// memory that is used again is already mapped and often still cached. At three times, rows overwritten at random
/// leave a twentieth of a segment to move.
const WASTE_FACTOR: u64 = 3;
/// And so much beyond it, so that small tables are left alone.
const WASTE_BYTES: u64 = 16 << 20;
/// Segments emptied for each one taken by a table that wastes memory.
const REUSE_STEPS: usize = 2;

/// What happens to the live rows of a segment that is being emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// By the rules of the queue it stands in.
    Evict,
    /// All move to the end of the same queue.
    Compact,
    /// Only dead rows are expected; a live one moves.
    Expire,
    /// Nothing stays: the table is gone.
    Drop,
}

/// What is being emptied, and how.
#[derive(Clone, Copy, Debug)]
struct Emptying<'t> {
    table: &'t Table,
    queue: Queue,
    purpose: Purpose,
    now: Tick,
}

/// The decision on one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Dead,
    Leave { remember: bool },
    Move { queue: Queue, reads: u8 },
}

impl Store {
    /// Replaces the open segment `seen` of a group by a fresh one, unless another writer already did.
    pub(crate) fn renew_open(
        &self,
        table: &Table,
        queue: Queue,
        class: u8,
        size: SegmentSize,
        seen: Option<SegmentId>,
    ) -> Result<(), WriteError> {
        let fresh = self.allocate(table, queue, class, size)?;
        let queues = &table.state.queues;
        let mut lists = queues.lock();
        if queues.open(queue, class, size) != seen {
            drop(lists);
            self.discard(table, queue, fresh);
            return Ok(());
        }
        queues.set_open(&mut lists, queue, class, size, Some(fresh));
        if let Some(full) = seen {
            self.seal(&mut lists, full);
        }
        Ok(())
    }

    /// Closes a segment to writers and puts it at the end of its queue.
    pub(crate) fn seal(&self, lists: &mut SealedLists, segment: SegmentId) {
        self.arena.seal(segment);
        lists.push(self.standing(segment), self.arena.last_stamp());
    }

    /// Where a segment stands among the sealed ones of its table.
    pub(crate) fn standing(&self, segment: SegmentId) -> Standing {
        let tag = self.arena.tag(segment);
        Standing { queue: tag.queue, class: tag.ttl_class, order: self.arena.order(segment), segment }
    }

    /// Takes a segment out of its table's lists, to be emptied. False: somebody else did.
    fn take_sealed(&self, table: &Table, segment: SegmentId) -> bool {
        table.state.queues.lock().take(self.standing(segment))
    }

    /// Takes units for a table, making room where there is none.
    pub(crate) fn allocate(
        &self,
        table: &Table,
        queue: Queue,
        class: u8,
        size: SegmentSize,
    ) -> Result<SegmentId, WriteError> {
        let tag = SegmentTag { table: table.id(), queue, ttl_class: class, schema: table.def().schema };
        let units = size.units();
        let moving = EVICTING.get();
        if !moving && wastes(table) {
            self.reuse();
        }
        for _ in 0..FREE_ATTEMPTS {
            let spare = if moving { 0 } else { RESERVE_UNITS };
            if self.arena.free_bytes() >= (u64::from(units) + spare) * arena::UNIT_BYTES as u64
                && let Some(segment) = self.arena.allocate(units, &tag)
            {
                table.state.counters.units[place(queue)].fetch_add(u64::from(units), Ordering::Relaxed);
                return Ok(segment);
            }
            if moving || !self.make_room() {
                break;
            }
        }
        Err(WriteError::Full)
    }

    /// One step of making room, waiting a little where other writers hold all that could be taken: they are done soon,
    /// unless one of them is a commit as large as the memory. False: the caller is out of memory.
    pub(crate) fn make_room(&self) -> bool {
        (0..HELD_ROUNDS).any(|round| {
            if round > 0 {
                std::thread::yield_now();
            }
            self.free_some()
        })
    }

    /// Makes sparse segments free again: more than the one that the caller is about to take, so that waste shrinks.
    fn reuse(&self) {
        let Some(_cleaning) = self.cleaning.try_lock() else { return };
        let now = self.now();
        for _ in 0..REUSE_STEPS {
            self.compact_one(now);
        }
    }

    /// Gives a segment's units back. Nothing points into it and nobody writes to it.
    fn give_up(&self, state: &TableState, queue: Queue, segment: SegmentId) {
        let units = u64::from(self.arena.units(segment));
        state.counters.units[place(queue)].fetch_sub(units, Ordering::Relaxed);
        self.arena.recycle(segment);
    }

    /// Gives a fresh segment back. Where a writer with an old idea of its number reserved in it, it waits in its list.
    pub(crate) fn discard(&self, table: &Table, queue: Queue, segment: SegmentId) {
        // Sealed first: no writer comes after the count was looked at.
        self.seal(&mut table.state.queues.lock(), segment);
        if self.arena.writers(segment) == 0 && self.take_sealed(table, segment) {
            self.give_up(&table.state, queue, segment);
        }
    }

    /// Frees the memory of one segment. False: there is nothing to take at this moment.
    pub(crate) fn free_some(&self) -> bool {
        let _cleaning = self.cleaning.lock();
        let _mutation = Mutation;
        let now = self.now();
        // Looking through the segments is worth it once a tick: nothing comes due in between.
        let may_expire = self.nothing_due.load(Ordering::Relaxed) != now;
        if (may_expire && self.expire_segments(1, now) > 0) || self.compact_one(now) {
            return true;
        }
        let catalog = self.catalog();
        let candidates = catalog.tables().filter_map(|table| {
            self.eviction_candidate(table).map(|(order, queue, segment)| (order, table, queue, segment))
        });
        let mut candidates: Vec<_> = candidates.collect();
        candidates.sort_by_key(|&(order, ..)| order);
        for (_, table, queue, segment) in candidates {
            if self.take_sealed(table, segment)
                && self.empty(segment, &Emptying { table, queue, purpose: Purpose::Evict, now })
            {
                return true;
            }
        }
        false
    }

    /// The segment that S3-FIFO would empty next in a table, with its age.
    fn eviction_candidate(&self, table: &Table) -> Option<(u64, Queue, SegmentId)> {
        let units = &table.state.counters.units;
        let [small, main] = [0, 1].map(|at: usize| units[at].load(Ordering::Relaxed));
        let first = if small * 100 > (small + main) * SMALL_PER_CENT { Queue::Small } else { Queue::Main };
        let second = if first == Queue::Small { Queue::Main } else { Queue::Small };
        for queue in [first, second] {
            let oldest =
                || table.state.queues.lock().oldest(queue, |segment| self.arena.writers(segment) > 0);
            if let Some((order, segment)) = oldest() {
                return Some((order, queue, segment));
            }
            self.seal_open(table, queue);
            if let Some((order, segment)) = oldest() {
                return Some((order, queue, segment));
            }
        }
        None
    }

    /// Seals the open segments of a queue, for there are no others to take from.
    fn seal_open(&self, table: &Table, queue: Queue) {
        let queues = &table.state.queues;
        let mut lists = queues.lock();
        let open: Vec<_> = queues
            .open_segments()
            .filter(|&(of, .., segment)| of == queue && self.arena.used(segment) > 0)
            .collect();
        for (queue, class, size, segment) in open {
            queues.set_open(&mut lists, queue, class, size, None);
            self.seal(&mut lists, segment);
        }
    }

    /// Empties a segment that was taken from its list, and recycles it. False: a writer still holds it, and it is back
    /// in its list.
    fn empty(&self, segment: SegmentId, work: &Emptying<'_>) -> bool {
        let state = &work.table.state;
        if self.arena.writers(segment) > 0 {
            state.queues.lock().push(self.standing(segment), self.arena.last_stamp());
            return false;
        }
        let mut row = RowBuf::new();
        for (location, head) in self.arena.rows(segment, 0) {
            // The rest is dead: no writer is left who could publish a row of this segment.
            if self.arena.live(segment) == 0 {
                break;
            }
            let _left = self.settle_row(work, location, &head, &mut row);
        }
        self.give_up(state, work.queue, segment);
        true
    }

    /// Decides on one row of a segment being emptied, and carries it out. True: a live row left the table.
    fn settle_row(&self, work: &Emptying<'_>, location: Location, head: &RowHead, row: &mut RowBuf) -> bool {
        let table = work.table;
        if head.table != table.id() || !self.load_stable(location, row) {
            return false;
        }
        let hash = self.arena.hash(table.id(), row.key());
        let mut shard = self.shard(hash).lock();
        let Some(slot) = self.arena.find_location(&shard.token, hash, location) else { return false };
        let reads = self.arena.frequency(slot);
        let verdict = match work.purpose {
            Purpose::Drop => Verdict::Dead,
            // Judged by what stands there now: it may have been touched since it was copied.
            _ if !self.is_live_there(table, location, work.now) => Verdict::Dead,
            Purpose::Compact | Purpose::Expire => Verdict::Move { queue: work.queue, reads },
            Purpose::Evict => s3fifo(work.queue, reads),
        };
        if let Verdict::Move { queue, reads } = verdict {
            drop(shard);
            if self.move_row(&Emptying { queue, ..*work }, reads, hash, row) {
                return false;
            }
            shard = self.shard(hash).lock();
        }
        let Some(slot) = self.arena.find_location(&shard.token, hash, location) else { return false };
        let cause = if verdict == Verdict::Dead { Cause::Expire } else { Cause::Evict };
        self.unpublish(&mut shard, table, Entry { slot, location }, cause);
        match verdict {
            Verdict::Dead => count(&table.state.counters.expired),
            _ => count(&table.state.counters.evicted),
        }
        if matches!(verdict, Verdict::Leave { remember: true }) {
            table.state.remember(hash);
        }
        verdict != Verdict::Dead
    }

    /// Copies a live row to the end of a queue and points its slot and index entries there. False: no room.
    fn move_row(&self, to: &Emptying<'_>, reads: u8, hash: Hash, row: &RowBuf) -> bool {
        let Ok(placed) = self.copy_row(to.table, to.queue, row, row.payload(), to.now) else { return false };
        let mut shard = self.shard(hash).lock();
        // Replaced meanwhile: the copy is dead bytes.
        if let Some(slot) = self.relocate(&mut shard, to.table, hash, row, &placed) {
            self.arena.set_frequency(slot, reads);
        }
        true
    }

    /// Gives a live row another payload that says the same of its columns, and more; the row stays the version that it
    /// is. False: it is not there any more.
    pub(crate) fn rewrite_row(
        &self,
        table: &Table,
        hash: Hash,
        row: &RowBuf,
        payload: &[u8],
    ) -> Result<bool, WriteError> {
        let _mutation = Mutation;
        let queue = self.queue_of(row.location());
        let placed = self.copy_row(table, queue, row, payload, self.now())?;
        let mut shard = self.shard(hash).lock();
        Ok(self.relocate(&mut shard, table, hash, row, &placed).is_some())
    }

    /// Points slot and index entries of a row at a copy of it, and keeps the hits; none if the row was replaced meanwhile.
    pub(crate) fn relocate(
        &self,
        shard: &mut Shard,
        table: &Table,
        hash: Hash,
        row: &RowBuf,
        placed: &Placed<'_>,
    ) -> Option<SlotId> {
        let from = row.location();
        let slot = self.arena.find_location(&shard.token, hash, from)?;
        self.arena.stamp_row(placed.location, row.stamp());
        self.carry_deadline(row, placed);
        self.arena.relocate(&mut shard.token, slot, hash, table.id(), placed.location);
        for index in table.state.maintained.load().iter().filter(|index| index.holds(row)) {
            let mut key = Vec::new();
            index.sort_key(row, &mut key);
            index.tree.write().replace_location(
                &key,
                from.bits(),
                placed.location.bits(),
                &index.rows(&self.arena),
            );
        }
        self.account_in(table, placed.location);
        self.account_out(table, from);
        Some(slot)
    }

    /// Gives the copy of a row the deadline and the lease that were set since it was copied. The shard is locked.
    fn carry_deadline(&self, copied: &RowBuf, placed: &Placed<'_>) {
        let Some(row) = self.arena.row(copied.location()) else { return };
        let (now, then) = (row.head(), copied.head());
        if now.expiry != then.expiry {
            self.note_deadline(placed.segment, now.expiry);
            self.arena.set_expiry(placed.location, now.expiry);
        }
        if now.lease != then.lease {
            self.arena.set_lease(placed.location, now.lease);
        }
    }

    fn copy_row(
        &self,
        table: &Table,
        queue: Queue,
        row: &RowBuf,
        payload: &[u8],
        now: Tick,
    ) -> Result<Placed<'_>, WriteError> {
        let head = row.head();
        let parts = NewParts {
            key: row.key(),
            payload: &[payload],
            client_flags: head.client_flags,
            expiry: crate::write::Expiry::of_word(head.expiry),
            cas: head.explicit_cas,
            renewal: Renewal::of(head),
        };
        let _moving = Moving::begin();
        self.place(table, queue, &parts, head.is_multi(), now)
    }

    /// Evicts up to `rows` rows of a table that is above its `max_rows`, oldest first.
    pub(crate) fn evict_rows(&self, table: &Table, rows: usize, now: Tick) {
        let Some(mut cursors) = table.state.evicting.try_lock() else { return };
        let limit = table.state.limits.rows_max.load(Ordering::Relaxed);
        table.state.size_ghost(limit);
        let mut row = RowBuf::new();
        for _ in 0..rows {
            if table.rows() <= limit || !self.evict_row(table, &mut cursors, limit, now, &mut row) {
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
        row: &mut RowBuf,
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
                self.forget_reads(table, location, row);
            }
            let left = self.settle_row(
                &Emptying { table, queue, purpose: Purpose::Evict, now },
                location,
                &head,
                row,
            );
            if left || table.rows() < before {
                return true;
            }
        }
        false
    }

    fn forget_reads(&self, table: &Table, location: Location, row: &mut RowBuf) {
        if self.load_stable(location, row) {
            let hash = self.arena.hash(table.id(), row.key());
            let shard = self.shard(hash).lock();
            if let Some(slot) = self.arena.find_location(&shard.token, hash, location) {
                self.arena.set_frequency(slot, 0);
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
            let mut rows = self.arena.rows(cursor.segment, cursor.word);
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
        let oldest = || table.state.queues.lock().oldest(queue, |segment| self.arena.writers(segment) > 0);
        let mut found = oldest();
        if found.is_none() {
            self.seal_open(table, queue);
            found = oldest();
        }
        let (_, segment) = found?;
        if !self.take_sealed(table, segment) {
            return None;
        }
        Some(Cursor { segment, word: 0 })
    }

    /// Recycles segments in which nothing can be live any more. Returns how many.
    pub(crate) fn expire_segments(&self, limit: usize, now: Tick) -> usize {
        let mut freed = 0;
        for table in self.catalog().tables() {
            if freed >= limit {
                break;
            }
            self.seal_expired(table, now);
            let dead_below = self.dead_below(table, now);
            let dead = |sealed: &Sealed| {
                self.all_due(table, sealed.segment, now)
                    || (self.has_no_deadlines(sealed.segment) && sealed.newest < dead_below)
                    || sealed.newest < table.state.limits.flushed_below.load(Ordering::Acquire)
            };
            let segments = table.state.queues.lock().take_if(limit - freed, dead);
            for segment in segments {
                let queue = self.arena.tag(segment).queue;
                freed += usize::from(
                    self.empty(segment, &Emptying { table, queue, purpose: Purpose::Expire, now }),
                );
            }
        }
        if freed < limit {
            // Relaxed: a hint, read and written under the `cleaning` lock; a flush takes it back.
            self.nothing_due.store(now, Ordering::Relaxed);
        }
        freed
    }

    /// Whether the last row of a segment is past its deadline and the time that it may be served stale.
    fn all_due(&self, table: &Table, segment: SegmentId, now: Tick) -> bool {
        let grace = table.state.limits.stale_ticks.load(Ordering::Relaxed);
        self.arena.max_expiry(segment).is_some_and(|last| last.saturating_add(grace) <= now)
    }

    fn has_no_deadlines(&self, segment: SegmentId) -> bool {
        self.arena.tag(segment).ttl_class == NO_DEADLINE_CLASS
    }

    /// Seals open segments whose rows have all reached their deadline.
    fn seal_expired(&self, table: &Table, now: Tick) {
        let queues = &table.state.queues;
        let expired = |segment| self.arena.used(segment) > 0 && self.all_due(table, segment, now);
        if !queues.open_segments().any(|(.., segment)| expired(segment)) {
            return;
        }
        let mut lists = queues.lock();
        let open: Vec<_> = queues.open_segments().filter(|&(.., segment)| expired(segment)).collect();
        for (queue, class, size, segment) in open {
            queues.set_open(&mut lists, queue, class, size, None);
            self.seal(&mut lists, segment);
        }
    }

    /// Notes a sealed segment that is less than half alive, each time its live bytes have halved again.
    pub(crate) fn note_sparse(&self, segment: SegmentId, before: usize, live: usize) {
        let halved = before.checked_ilog2() != live.checked_ilog2();
        if halved && live * 2 < self.arena.used(segment) && self.arena.is_sealed(segment) {
            let mut sparse = self.sparse.lock();
            if sparse.len() < SPARSE_MAX && sparse.back() != Some(&segment) {
                sparse.push_back(segment);
            }
        }
    }

    /// Moves the live rows of one sparse segment together with others.
    fn compact_one(&self, now: Tick) -> bool {
        loop {
            let Some(segment) = self.sparse.lock().pop_front() else { return false };
            let tag = self.arena.tag(segment);
            let catalog = self.catalog();
            let Some(table) = catalog.tables().find(|table| table.id() == tag.table) else { continue };
            let sparse = self.arena.live(segment) * 2 < self.arena.used(segment);
            // A segment that left its queue meanwhile is somebody else's already.
            if !sparse || !self.take_sealed(table, segment) {
                continue;
            }
            if self.empty(segment, &Emptying { table, queue: tag.queue, purpose: Purpose::Compact, now }) {
                return true;
            }
        }
    }

    /// Recycles everything that a dropped table held.
    pub(crate) fn empty_dropped(&self, table: &Table) {
        let _cleaning = self.cleaning.lock();
        let now = self.now();
        let mut cursors = table.state.evicting.lock();
        for queue in [Queue::Small, Queue::Main] {
            self.seal_open(table, queue);
            if let Some(cursor) = cursors.0[place(queue)].take() {
                self.empty(cursor.segment, &Emptying { table, queue, purpose: Purpose::Drop, now });
            }
        }
        for _ in 0..FREE_ATTEMPTS {
            let segments = table.state.queues.lock().take_if(usize::MAX, |_| true);
            if segments.is_empty() {
                return;
            }
            for segment in segments {
                let queue = self.arena.tag(segment).queue;
                if !self.empty(segment, &Emptying { table, queue, purpose: Purpose::Drop, now }) {
                    std::thread::yield_now();
                }
            }
        }
    }
}

/// S3-FIFO's word on a live row at the old end of a queue.
fn s3fifo(queue: Queue, reads: u8) -> Verdict {
    match queue {
        Queue::Small if reads >= PROMOTE_READS => Verdict::Move { queue: Queue::Main, reads: 0 },
        Queue::Small => Verdict::Leave { remember: true },
        _ if reads > 0 => Verdict::Move { queue: Queue::Main, reads: reads - 1 },
        _ => Verdict::Leave { remember: false },
    }
}

/// Whether so much of a table's memory is dead that sparse segments are worth emptying although there is room.
fn wastes(table: &Table) -> bool {
    let counters = &table.state.counters;
    let units: u64 = counters.units.iter().map(|units| units.load(Ordering::Relaxed)).sum();
    let live = counters.bytes.load(Ordering::Relaxed);
    units * arena::UNIT_BYTES as u64 > WASTE_FACTOR * live + WASTE_BYTES
}

thread_local! {
    /// Whether this thread is moving a row: then it may use the reserve, and must not evict within evicting.
    static EVICTING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Says that this thread moves a row until it is dropped, also by a panic.
struct Moving {
    outer: bool,
}

impl Moving {
    fn begin() -> Self {
        Self { outer: EVICTING.replace(true) }
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        EVICTING.set(self.outer);
    }
}

impl TableState {
    /// Whether a key that left the small queue comes back soon.
    pub(crate) fn ghost_holds(&self, hash: Hash) -> bool {
        self.ghost_used.load(Ordering::Relaxed) && self.ghost.lock().contains(hash.0)
    }

    fn remember(&self, hash: Hash) {
        let mut ghost = self.ghost.lock();
        let rows = self.counters.rows[place(Queue::Main)].load(Ordering::Relaxed);
        let wanted = usize::try_from(rows).unwrap_or(usize::MAX).max(GHOST_MIN);
        if ghost.capacity() < wanted {
            ghost.set_capacity(wanted.next_power_of_two());
        }
        ghost.insert(hash.0);
        self.ghost_used.store(true, Ordering::Relaxed);
    }

    /// With a limit of rows the ghost is as long as the main queue may become.
    fn size_ghost(&self, limit: u64) {
        let main = limit - limit * SMALL_PER_CENT / 100;
        let wanted = usize::try_from(main).unwrap_or(usize::MAX).max(1);
        let mut ghost = self.ghost.lock();
        if limit < u64::MAX && ghost.capacity() != wanted {
            ghost.set_capacity(wanted);
        }
    }
}

/// Keys that the ghost of a small table remembers.
const GHOST_MIN: usize = 1_024;
