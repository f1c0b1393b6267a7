//! Room and time: segments that expired come back whole, sparse ones are compacted, and S3-FIFO chooses what goes.
//!
//! Rows enter the small queue, or the main queue when the ghost remembers their key. The oldest row of the small queue
//! moves to the main queue if it was read twice, else it leaves and the ghost remembers it. The oldest row of the main
//! queue goes round again while it was read since, else it leaves.

use std::sync::atomic::Ordering;

use arena::{Hash, Queue, SegmentId, SegmentTag, SlotId};

use crate::clock::Tick;
use crate::error::WriteError;
use crate::index::entry_of;
use crate::leaving::Leaving;
use crate::mutation::Mutation;
use crate::queue::{SealedLists, SegmentSize, Standing, place};
use crate::renew::Renewal;
use crate::row::RowBuf;
use crate::shard::Shard;
use crate::store::Store;
use crate::table::{Table, TableState};
use crate::write::{NewParts, Placed};

mod empty;
mod pressure;
mod rows;

/// Units that only eviction may take, so that a row worth keeping always finds a place to move to.
pub(crate) const RESERVE_UNITS: u64 = 4;
/// Steps of making room before a write is refused as out of memory.
const FREE_ATTEMPTS: usize = 4_096;
/// Times that a writer gives way to others who hold every segment, before it is refused: a write holds its segment for
/// about a microsecond, longer only where its thread is off the processor.
const HELD_ROUNDS: usize = 64;
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
/// And so much beyond it, so that small tables are left alone; more would not stay in the cache of a core.
const WASTE_BYTES: u64 = 2 << 20;
/// Segments emptied for each one taken by a table that wastes memory.
const REUSE_STEPS: usize = 2;

/// What happens to the live rows of a segment that is being emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
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
pub(crate) struct Emptying<'t> {
    pub(crate) table: &'t Table,
    pub(crate) queue: Queue,
    pub(crate) purpose: Purpose,
    /// What a live row counts as that has to leave.
    pub(crate) leaving: Leaving,
    pub(crate) now: Tick,
}

/// The decision on one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Dead(Leaving),
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
        let memory = table.state.limits.memory_max.load(Ordering::Relaxed).min(self.arena.limit_bytes());
        let units = size.units(memory);
        let moving = EVICTING.get();
        if !moving && wastes(table) {
            self.reuse();
        }
        if !moving {
            self.keep_to_memory(table, units)?;
        }
        for _ in 0..self.free_attempts() {
            let spare = if moving { 0 } else { RESERVE_UNITS };
            if self.arena.free_bytes() >= (u64::from(units) + spare) * arena::UNIT_BYTES as u64
                && let Some(segment) = self.arena.allocate(units, &tag)
            {
                table.state.counters.units[place(queue)].fetch_add(u64::from(units), Ordering::Relaxed);
                return Ok(segment);
            }
            if moving || !self.make_room(Some(table)) {
                break;
            }
        }
        Err(WriteError::Full)
    }

    /// One step of making room, waiting a little where other writers hold all that could be taken: they are done soon,
    /// unless one of them is a commit as large as the memory. False: the caller is out of memory.
    pub(crate) fn make_room(&self, own: Option<&Table>) -> bool {
        // Without evictions there is nothing to wait for.
        if !self.evicts() {
            return self.free_some(own);
        }
        patiently(|| self.free_some(own))
    }

    /// Makes sparse segments free again: more than the one that the caller is about to take, so that waste shrinks.
    fn reuse(&self) {
        let Some(_cleaning) = self.cleaning.try_lock() else { return };
        let now = self.now();
        for _ in 0..REUSE_STEPS {
            self.compact_one(None, now);
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
            if self.arena.close(segment) {
                self.give_up(&table.state, queue, segment);
            } else {
                table.state.queues.lock().push(self.standing(segment), self.arena.last_stamp());
            }
        }
    }

    /// Seals the open segments of a queue, for there are no others to take from.
    pub(crate) fn seal_open(&self, table: &Table, queue: Queue) {
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
        if !table.state.maintained.is_empty() {
            for index in table.state.maintained.load().iter().filter(|index| index.holds(row)) {
                let mut key = Vec::new();
                index.sort_key(row, &mut key);
                index.tree.write().replace_location(
                    &key,
                    entry_of(hash, from),
                    entry_of(hash, placed.location),
                    &index.rows(&self.arena),
                );
            }
        }
        self.account_moved(table, from, placed.location);
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

    /// Moves the live rows of one sparse segment together with others; `only`: of this table.
    fn compact_one(&self, only: Option<&Table>, now: Tick) -> bool {
        loop {
            let Some(segment) = self.next_sparse(only) else { return false };
            let tag = self.arena.tag(segment);
            let catalog = self.catalog();
            let Some(table) = catalog.tables().find(|table| table.id() == tag.table) else { continue };
            let sparse = self.arena.live(segment) * 2 < self.arena.used(segment);
            // A segment that left its queue meanwhile is somebody else's already.
            if !sparse || !self.take_sealed(table, segment) {
                continue;
            }
            if self.empty(
                segment,
                &Emptying {
                    table,
                    queue: tag.queue,
                    purpose: Purpose::Compact,
                    leaving: Leaving::Memory,
                    now,
                },
            ) {
                return true;
            }
        }
    }

    fn next_sparse(&self, only: Option<&Table>) -> Option<SegmentId> {
        let mut sparse = self.sparse.lock();
        match only {
            None => sparse.pop_front(),
            Some(table) => {
                let at = sparse.iter().position(|&segment| self.arena.tag(segment).table == table.id())?;
                sparse.remove(at)
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
                self.empty(
                    cursor.segment,
                    &Emptying { table, queue, purpose: Purpose::Drop, leaving: Leaving::Flushed, now },
                );
            }
        }
        for _ in 0..FREE_ATTEMPTS {
            let segments = table.state.queues.lock().take_if(usize::MAX, u64::MAX, |_| true);
            if segments.is_empty() {
                return;
            }
            for segment in segments {
                let queue = self.arena.tag(segment).queue;
                if !self.empty(
                    segment,
                    &Emptying { table, queue, purpose: Purpose::Drop, leaving: Leaving::Flushed, now },
                ) {
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

/// Tries a few times, giving way to others in between.
fn patiently(attempt: impl Fn() -> bool) -> bool {
    (0..HELD_ROUNDS).any(|round| {
        if round > 0 {
            std::thread::yield_now();
        }
        attempt()
    })
}

/// Whether so much of a table's memory is dead that sparse segments are worth emptying although there is room.
fn wastes(table: &Table) -> bool {
    let counters = &table.state.counters;
    counters.segment_bytes() > WASTE_FACTOR * counters.bytes.load(Ordering::Relaxed) + WASTE_BYTES
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
