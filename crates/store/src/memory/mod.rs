//! Memory for rows: segments that expired come back whole, sparse ones are compacted, and S3-FIFO chooses what goes.
//!
//! Rows enter the small queue, or the main queue when the ghost remembers their key. The oldest row of the small queue
//! moves to the main queue if it was read twice, else it leaves and the ghost remembers it. The oldest row of the main
//! queue goes round again while it was read since, else it leaves. If it was ever read the ghost remembers it, too.

pub(crate) mod eviction;
pub(crate) mod expire;
pub(crate) mod place;
pub(crate) mod share;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arena::failpoint::{self, Point};
use arena::{Hash, Queue, SegmentId};
use parking_lot::Mutex;

use self::eviction::Evictions;
use self::share::HeapShare;
use crate::clock::Tick;
use crate::error::WriteError;
use crate::mutation::Mutation;
use crate::recovery::Recovery;
use crate::row::RowBuf;
use crate::row::new::NewParts;
use crate::row::renewal::Renewal;
use crate::table::queue::{SegmentSize, place};
use crate::table::removal_cause::RemovalCause;
use crate::table::sealed::SealedLists;
use crate::table::{Table, TableState};
use std::ops::ControlFlow;

mod compact;
mod empty;
mod look;
mod pressure;
mod rows;
mod take;
#[cfg(test)]
mod tests;

/// Segments that one tick empties at most: 16 MiB, so a tick takes a few milliseconds.
pub(crate) const SEGMENTS_PER_TICK: usize = 256;
/// Steps of making room before a write is refused as out of memory.
pub(crate) const FREE_ATTEMPTS: usize = 4_096;
/// Times that a writer gives way to others who hold every segment, before it is refused: a write holds its segment for
/// about a microsecond, longer only where its thread is off the processor.
const HELD_ROUNDS: usize = 64;
/// Reads in the small queue that earn a row a place in the main queue.
const PROMOTE_READS: u8 = 2;
/// The small queue's share of a table, in per cent.
const SMALL_PER_CENT: u64 = 10;
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
    pub(crate) leaving: RemovalCause,
    pub(crate) now: Tick,
}

/// The decision on one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Dead(RemovalCause),
    Leave { remember: bool },
    Move { queue: Queue, reads: u8 },
}

/// What the cleaner does between two pieces of work; `Break` puts the others off to the next tick.
pub type Pause<'p> = dyn FnMut() -> ControlFlow<()> + 'p;

/// Room for rows, over [`Recovery`].
#[derive(Debug)]
pub struct Memory {
    recovery: Recovery,
    /// Serialises making room.
    cleaning: Mutex<()>,
    /// Whether live rows make room for others.
    evictions: AtomicBool,
    /// See [`Memory::set_dead_memory_percent`].
    dead_per_cent: AtomicU64,
    evictions_seen: Evictions,
    heap_share: HeapShare,
    /// Bytes of the segments that rows received in place hold.
    pub(crate) in_place_bytes: AtomicU64,
    pub(crate) row_bytes_max: usize,
}

impl Deref for Memory {
    type Target = Recovery;

    #[inline]
    fn deref(&self) -> &Recovery {
        &self.recovery
    }
}

impl Memory {
    pub(crate) fn new(recovery: Recovery, row_bytes_max: usize) -> Self {
        Self {
            recovery,
            cleaning: Mutex::new(()),
            evictions: AtomicBool::new(true),
            dead_per_cent: AtomicU64::new(compact::DEAD_PER_CENT),
            evictions_seen: Evictions::default(),
            heap_share: HeapShare::default(),
            in_place_bytes: AtomicU64::new(0),
            row_bytes_max,
        }
    }

    /// Whether live rows make room for others when memory is short. Rows above a table's `max_rows` go all the same:
    /// the table asked for that.
    pub fn set_evictions(&self, on: bool) {
        // Relaxed: a setting that takes effect soon.
        self.evictions.store(on, Ordering::Relaxed);
    }

    /// See [`Memory::set_evictions`].
    pub fn evicts(&self) -> bool {
        self.evictions.load(Ordering::Relaxed)
    }

    /// Replaces the open segment `seen` for rows of so many bytes by a fresh one, unless another writer already did.
    pub(crate) fn renew_open(
        &self,
        table: &Table,
        queue: Queue,
        class: u8,
        row_bytes: usize,
        seen: Option<SegmentId>,
    ) -> Result<(), WriteError> {
        let fresh = self.allocate(table, queue, class, row_bytes)?;
        let size = SegmentSize::of(row_bytes);
        let queues = &table.state.queues;
        let mut lists = queues.lock();
        if queues.open(queue, class, size) != seen {
            drop(lists);
            self.discard(table, queue, fresh);
            return Ok(());
        }
        queues.set_open(&mut lists, queue, class, size, Some(fresh));
        if let Some(full) = seen {
            self.seal(&table.state, &mut lists, full);
        }
        drop(lists);
        self.expect(&table.state, self.now().saturating_add(1));
        Ok(())
    }

    /// Closes a segment to writers and puts it at the end of its queue.
    pub(crate) fn seal(&self, state: &TableState, lists: &mut SealedLists, segment: SegmentId) {
        self.arena.of(segment).seal(segment);
        self.enlist(state, lists, segment, self.arena.private().last_stamp());
    }

    /// Takes a segment out of its table's lists, to be emptied. False: somebody else did.
    fn take_sealed(&self, table: &Table, segment: SegmentId) -> bool {
        table.state.queues.lock().take(self.standing(segment))
    }

    /// Gives a segment's units back. Nothing points into it and nobody writes to it.
    fn give_up(&self, state: &TableState, queue: Queue, segment: SegmentId) {
        let units = u64::from(self.arena.of(segment).units(segment));
        state.counters.units[place(queue)].fetch_sub(units, Ordering::Relaxed);
        self.arena.of(segment).recycle(segment);
    }

    /// Gives a fresh segment back. Where a writer with an old idea of its number reserved in it, it waits in its list.
    pub(crate) fn discard(&self, table: &Table, queue: Queue, segment: SegmentId) {
        // Sealed first: no writer comes after the count was looked at.
        self.seal(&table.state, &mut table.state.queues.lock(), segment);
        if self.arena.of(segment).writers(segment) == 0 && self.take_sealed(table, segment) {
            if self.arena.of(segment).close(segment) {
                self.give_up(&table.state, queue, segment);
            } else {
                self.put_back(&table.state, segment);
            }
        }
    }

    /// Seals the open segments of a queue, for there are no others to take from.
    pub(crate) fn seal_open(&self, table: &Table, queue: Queue) {
        let queues = &table.state.queues;
        let mut lists = queues.lock();
        let open: Vec<_> = queues
            .open_segments()
            .filter(|&(of, .., segment)| of == queue && self.arena.of(segment).used(segment) > 0)
            .collect();
        for (queue, class, size, segment) in open {
            queues.set_open(&mut lists, queue, class, size, None);
            self.seal(&table.state, &mut lists, segment);
        }
    }

    /// Copies a live row to the end of a queue and points its slot and index entries there. False: no room.
    fn move_row(&self, to: &Emptying<'_>, reads: u8, hash: Hash, row: &RowBuf) -> bool {
        let moving = Moving::begin();
        let payload = [row.payload()];
        let parts = copy_of(row, &payload);
        let placed = self.place_copy(to.table, to.queue, &parts, row.head().is_multi(), to.now);
        drop(moving);
        let Ok(placed) = placed else { return false };
        failpoint::reach(Point::Copied);
        let mut shard = self.shard(hash).lock();
        // Replaced meanwhile: the copy is dead bytes.
        if let Some(slot) = self.relocate(&mut shard, to.table, hash, row, &placed.version) {
            self.arena.of(slot).set_frequency(slot, reads);
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
        let payload = [payload];
        let parts = copy_of(row, &payload);
        let placed = self.place(table, queue, &parts, row.head().is_multi(), self.now())?;
        failpoint::reach(Point::Copied);
        let mut shard = self.shard(hash).lock();
        Ok(self.relocate(&mut shard, table, hash, row, &placed.version).is_some())
    }

    /// Recycles what a dropped table holds, but for segments that somebody still holds after so many attempts.
    pub(crate) fn empty_dropped(&self, table: &Table, attempts: usize) {
        let _cleaning = self.cleaning.lock();
        let _mutation = Mutation;
        let now = self.now();
        let mut cursors = table.state.evicting.lock();
        for queue in [Queue::Small, Queue::Main] {
            self.seal_open(table, queue);
            if let Some(cursor) = cursors.0[place(queue)].take() {
                self.empty(
                    cursor.segment,
                    &Emptying { table, queue, purpose: Purpose::Drop, leaving: RemovalCause::Flushed, now },
                );
            }
        }
        for _ in 0..attempts {
            let segments = table.state.queues.lock().take_if(usize::MAX, u64::MAX, |_| true);
            if segments.is_empty() {
                return;
            }
            for segment in segments {
                let queue = self.arena.of(segment).tag(segment).queue;
                if !self.empty(
                    segment,
                    &Emptying { table, queue, purpose: Purpose::Drop, leaving: RemovalCause::Flushed, now },
                ) {
                    std::thread::yield_now();
                }
            }
        }
    }
}

/// The parts of a row under another payload, which says the same of its columns.
fn copy_of<'a>(row: &'a RowBuf, payload: &'a [&'a [u8]]) -> NewParts<'a> {
    let head = row.head();
    NewParts {
        key: row.key(),
        payload,
        client_flags: head.client_flags,
        expiry: crate::row::request::Expiry::of_word(head.expiry),
        cas: head.explicit_cas,
        renewal: Renewal::of(head),
    }
}

/// S3-FIFO's word on a live row at the old end of a queue: how often it was read since its last turn, and whether ever.
///
/// Beyond S3-FIFO, a row of the main queue is remembered if it was ever read, and forgotten if not. Otherwise rows that
/// are more than the main queue holds would come back there for ever, and drive each other out before any is read.
fn s3fifo(queue: Queue, reads: u8, fetched: bool) -> Verdict {
    match queue {
        Queue::Small if reads >= PROMOTE_READS => Verdict::Move { queue: Queue::Main, reads: 0 },
        Queue::Small => Verdict::Leave { remember: true },
        _ if reads > 0 => Verdict::Move { queue: Queue::Main, reads: reads - 1 },
        _ => Verdict::Leave { remember: fetched },
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

thread_local! {
    /// Whether this thread is moving a row: then it may use the reserve, and must not evict within evicting.
    static MOVING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Says that this thread moves a row until it is dropped, also by a panic.
struct Moving {
    outer: bool,
}

impl Moving {
    fn begin() -> Self {
        Self { outer: MOVING.replace(true) }
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        MOVING.set(self.outer);
    }
}

impl TableState {
    /// Whether a key that left the small queue comes back soon.
    pub(crate) fn ghost_holds(&self, hash: Hash) -> bool {
        self.ghost_used.load(Ordering::Relaxed) && self.ghost.lock().contains(hash.0)
    }

    /// Forgets a row that left: it has to pass the small queue again.
    fn forget(&self, hash: Hash) {
        if self.ghost_used.load(Ordering::Relaxed) {
            self.ghost.lock().remove(hash.0);
        }
    }

    /// Remembers a row that left, and had so many bytes.
    fn remember(&self, hash: Hash, bytes: usize) {
        let mut ghost = self.ghost.lock();
        // Relaxed: a row more or less.
        let limit = self.limits.rows_max.load(Ordering::Relaxed);
        if self.counters.rows() >= limit - limit / 100 * SMALL_PER_CENT {
            ghost.insert(hash.0);
        } else {
            let main = self.counters.units[place(Queue::Main)].load(Ordering::Relaxed);
            ghost.insert_sized(hash.0, bytes as u64, main * arena::UNIT_BYTES as u64);
        }
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
