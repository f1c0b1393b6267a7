//! Segments: runs of 64 KiB units that rows are appended to, and the memory behind them.
//!
//! What the owner needs while it runs (fill, live bytes, latest expiry, a copy of the header) is private; the
//! headers in the file are for recovery. Which units are free, and the memory behind them, is `pool.rs`.

pub(crate) mod ahead;
pub(crate) mod dead_rows;
pub(crate) mod fill;
pub(crate) mod huge;
pub(crate) mod kind;
pub(crate) mod listed;
pub(crate) mod pool;
pub(crate) mod sweep;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use parking_lot::Mutex;

use crate::failpoint::{self, Point};
use crate::file::map::{Lazy, Zeroable};
use crate::layout::{
    BLOCK_UNITS, Location, Queue, SEGMENT_HEADER_BYTES, SegmentId, SegmentTag, UNIT_BYTES, word,
};
use crate::limits::MAX_SEGMENT_UNITS;
use crate::row::{FILLER_TABLE, RowHead};
use crate::segments::dead_rows::DeadRows;
use crate::segments::kind::{Kind, UNIT_FREE, UNIT_HEAD, UNIT_TAIL};
use crate::segments::listed::Listed;
use crate::segments::pool::{Budget, Pool};
use crate::{Arena, order};

/// Larger rows are large ones to who chooses their pages: on small pages a read of one costs a few hundredths more.
const SMALL_ROW_BYTES: usize = 2 << 10;
/// [`SegmentState::expiry`] of a segment with a row that never expires.
const NEVER: u64 = u64::MAX;

/// Private state of one unit; meaningful in the head of a run. One cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct SegmentState {
    /// See `fill.rs`.
    pub(crate) fill: AtomicU64,
    live: AtomicU64,
    expiry: AtomicU64,
    /// The header word as in the file.
    kind: AtomicU64,
    schema: AtomicU64,
    order: AtomicU64,
}

// SAFETY: integers only; a zeroed state is that of a free unit.
unsafe impl Zeroable for SegmentState {}

/// The segments' private side.
#[derive(Debug)]
pub(crate) struct Segments {
    pub(crate) states: Lazy<SegmentState>,
    pub(crate) pool: Mutex<Pool>,
    pub(crate) listed: Listed,
    pub(crate) dead_rows: DeadRows,
}

impl Segments {
    /// Asks memory for what the death of a row changes.
    #[inline]
    pub(crate) fn prefetch_accounts(&self, location: Location) {
        self.states.get(location.unit() as usize).into_iter().for_each(crate::line::line);
        self.dead_rows.prefetch(location);
    }
}

impl Arena {
    #[inline]
    pub(crate) fn state(&self, segment: SegmentId) -> &SegmentState {
        &self.segments.states[segment.unit() as usize]
    }

    #[inline]
    pub(crate) fn kind(&self, unit: u32) -> Kind {
        Kind::of(self.segments.states[unit as usize].kind.load(Ordering::Acquire))
    }

    /// The header words of a unit in the file: kind, schema, order.
    pub(crate) fn stored_header(&self, unit: u32) -> [u64; 3] {
        let at = self.header_word(unit);
        [0, 1, 2].map(|i| self.map.load(at + i, Ordering::Relaxed))
    }

    pub(crate) fn clear_stored_header(&self, unit: u32) {
        self.map.store(self.header_word(unit), UNIT_FREE, Ordering::Release);
    }

    /// Puts a segment that recovery found in force. It is sealed, empty until rows are counted.
    pub(crate) fn adopt_segment(&self, unit: u32, kind: Kind, schema: u64, order: u64) {
        self.set_kinds(unit, kind);
        let state = self.state(SegmentId(unit));
        state.schema.store(schema, Ordering::Relaxed);
        state.order.store(order, Ordering::Relaxed);
        self.open_fill(SegmentId(unit), kind);
        self.seal(SegmentId(unit));
    }

    pub(crate) fn set_used(&self, segment: SegmentId, bytes: u64) {
        let room = self.kind(segment.unit()).bytes().saturating_sub(bytes);
        // Who holds a row of it already goes on holding it. Relaxed: the segment is handed out behind its kind.
        let used = |word| Some(fill::with_room(word, room));
        let _before = self.state(segment).fill.fetch_update(Ordering::Relaxed, Ordering::Relaxed, used);
    }

    /// Lets writers and holders into a segment that was closed, or never was one. Its kind is set.
    fn open_fill(&self, segment: SegmentId, kind: Kind) {
        let opened = |word| fill::opened(word, kind.bytes());
        // Release: pairs with the Acquire of `reserve` and of `pin_segment`; who is let in sees the kind, and the
        // generation that was raised since the last time.
        let before = self.state(segment).fill.fetch_update(order::FILL_OPEN, Ordering::Relaxed, opened);
        debug_assert!(before.is_ok(), "a segment begins where none is open: {before:x?}");
    }

    fn set_kinds(&self, unit: u32, kind: Kind) {
        for distance in 1..kind.units {
            let tail = &self.segments.states[(unit + distance) as usize];
            tail.kind.store(Kind::tail(distance).word(), Ordering::Release);
        }
        self.segments.states[unit as usize].kind.store(kind.word(), Ordering::Release);
    }

    /// Takes a free run of units. `None`: the limit is reached, there is no contiguous run, or the file system is full.
    pub fn allocate(&self, units: u32, tag: &SegmentTag) -> Option<SegmentId> {
        self.allocate_for(units, tag, 0)
    }

    /// The same for rows of about so many bytes; 0 where nobody knows.
    pub(crate) fn allocate_for(&self, units: u32, tag: &SegmentTag, row_bytes: usize) -> Option<SegmentId> {
        if units == 0 || units > self.layout.max_units.min(MAX_SEGMENT_UNITS) {
            return None;
        }
        let mut pool = self.segments.pool.lock();
        if !pool.budget.take(u64::from(units)) {
            return None;
        }
        let large_rows = units > 1 || row_bytes > SMALL_ROW_BYTES;
        let Some(unit) = pool.take(&self.map, &self.layout, units, large_rows) else {
            pool.budget.used.fetch_sub(u64::from(units), Ordering::Relaxed);
            return None;
        };
        let order = pool.budget.next_order.fetch_add(1, Ordering::Relaxed);
        let kind = Kind::head(units, tag);
        self.open_segment(unit, kind, tag.schema, order);
        Some(self.outer_segment(SegmentId(unit)))
    }

    /// Writes the headers, the head's last, and readies the private state. The pool is locked.
    fn open_segment(&self, unit: u32, kind: Kind, schema: u32, order: u64) {
        let end = u64::from(unit + kind.units);
        if self.map.load(word::UNITS_USED, Ordering::Relaxed) < end {
            // Release: pairs with the Acquire in `units_bound`; generations and headers below have pages.
            self.map.store(word::UNITS_USED, end, Ordering::Release);
        }
        let at = self.header_word(unit);
        self.map.store(at + 1, u64::from(schema), Ordering::Relaxed);
        self.map.store(at + 2, order, Ordering::Relaxed);
        for distance in 1..kind.units {
            self.map.store(self.header_word(unit + distance), Kind::tail(distance).word(), Ordering::Relaxed);
        }
        // Release: recovery and readers of the file find the words above behind this one.
        self.map.store(at, kind.word(), Ordering::Release);
        let state = self.state(SegmentId(unit));
        state.schema.store(u64::from(schema), Ordering::Relaxed);
        state.order.store(order, Ordering::Relaxed);
        state.live.store(0, Ordering::Relaxed);
        state.expiry.store(0, Ordering::Relaxed);
        (unit..unit + kind.units).for_each(|unit| self.segments.dead_rows.forget(unit));
        self.set_kinds(unit, kind);
        self.open_fill(SegmentId(unit), kind);
    }

    /// Reserves bytes (a multiple of 8) in a segment and counts the caller as a writer.
    /// `None`: full or sealed, and the caller is not counted.
    #[inline]
    pub fn reserve(&self, segment: SegmentId, bytes: usize) -> Option<Location> {
        debug_assert!(bytes.is_multiple_of(8) && bytes > 0);
        let state = self.state(segment);
        let mut word = state.fill.load(Ordering::Relaxed);
        loop {
            let next = fill::reserved(word, bytes as u64)?;
            failpoint::reach(Point::Reserve);
            // Acquire: the segment's words are ours to write after this; and pairs with the Release in `open_fill`.
            match state.fill.compare_exchange_weak(word, next, order::FILL_RESERVE, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        // Held now, so it is not recycled, and its kind stays. Relaxed: the word above came behind it.
        let kind = Kind::of(state.kind.load(Ordering::Relaxed));
        let location = Location::in_run(segment.unit(), (kind.bytes() - fill::room(word)) / 8);
        self.prefetch_places(location, bytes);
        Some(self.outer_location(location))
    }

    /// The writer that reserved is done: the row is published, or a filler is written.
    #[inline]
    pub fn release(&self, segment: SegmentId) {
        // Release: pairs with the Acquire in `writers` and `close`; who sees none sees what they wrote.
        let before = self.state(segment).fill.fetch_sub(fill::HOLDER, order::FILL_RELEASE);
        debug_assert!(fill::holders(before) > 0, "every release follows a reservation or a hold");
    }

    /// Refuses further reservations.
    pub fn seal(&self, segment: SegmentId) {
        self.state(segment).fill.fetch_or(fill::SEALED, order::FILL_SEAL);
    }

    /// Whether the segment is sealed.
    pub fn is_sealed(&self, segment: SegmentId) -> bool {
        self.state(segment).fill.load(order::FILL_LOOK) & fill::SEALED != 0
    }

    /// Those who hold the segment: writers that reserved and have not released, and who sends rows from it.
    pub fn writers(&self, segment: SegmentId) -> u32 {
        // Acquire: pairs with the Release in `release`.
        let holders = || fill::holders(self.state(segment).fill.load(order::FILL_LOOK)) as u32;
        let found = holders();
        if found > 0 && self.release_dropped() { holders() } else { found }
    }

    /// Bytes reserved so far.
    pub fn used(&self, segment: SegmentId) -> usize {
        let state = self.state(segment);
        let room = fill::room(state.fill.load(order::FILL_LOOK));
        // What is recycled meanwhile has nothing of which the caller could be sure.
        Kind::of(state.kind.load(Ordering::Relaxed)).bytes().saturating_sub(room) as usize
    }

    /// Bytes reserved so far, and units: [`Arena::used`] and [`Arena::units`] by one look.
    #[inline]
    pub fn extent(&self, segment: SegmentId) -> (usize, u32) {
        let state = self.state(segment);
        let room = fill::room(state.fill.load(order::FILL_LOOK));
        let kind = Kind::of(state.kind.load(Ordering::Acquire));
        // What is recycled meanwhile has nothing of which the caller could be sure.
        let units = if kind.state == UNIT_HEAD { kind.units } else { 0 };
        ((u64::from(units) * UNIT_BYTES as u64).saturating_sub(room) as usize, units)
    }

    /// What the segment was allocated for.
    pub fn tag(&self, segment: SegmentId) -> SegmentTag {
        let kind = self.kind(segment.unit());
        let schema = self.state(segment).schema.load(Ordering::Relaxed) as u32;
        SegmentTag { table: kind.table, queue: kind.queue(), ttl_class: kind.ttl_class, schema }
    }

    /// Units of the segment; 0 if it is free.
    pub fn units(&self, segment: SegmentId) -> u32 {
        let kind = self.kind(segment.unit());
        if kind.state == UNIT_HEAD { kind.units } else { 0 }
    }

    /// Its place in the order of allocations.
    pub fn order(&self, segment: SegmentId) -> u64 {
        self.state(segment).order.load(Ordering::Relaxed)
    }

    /// The place in that order of the next one.
    pub fn next_order(&self) -> u64 {
        self.segments.pool.lock().budget.next_order.load(Ordering::Relaxed)
    }

    /// The segment in which a location lies.
    #[inline]
    pub fn head_of(&self, location: Location) -> SegmentId {
        let unit = location.in_file().unit();
        let kind = self.kind(unit);
        let head = if kind.state == UNIT_TAIL { unit.saturating_sub(kind.units) } else { unit };
        self.outer_segment(SegmentId(head))
    }

    /// The same and its queue.
    #[inline]
    pub fn home_of(&self, location: Location) -> (SegmentId, Queue) {
        let unit = location.in_file().unit();
        let kind = self.kind(unit);
        if kind.state != UNIT_TAIL {
            return (self.outer_segment(SegmentId(unit)), kind.queue());
        }
        let head = unit.saturating_sub(kind.units);
        (self.outer_segment(SegmentId(head)), self.kind(head).queue())
    }

    /// Counts bytes as live; returns the live bytes.
    #[inline]
    pub fn add_live(&self, segment: SegmentId, bytes: usize) -> usize {
        let bytes = bytes as u64;
        (self.state(segment).live.fetch_add(bytes, Ordering::AcqRel) + bytes) as usize
    }

    /// Counts bytes as dead; returns the live bytes that remain.
    #[inline]
    pub fn sub_live(&self, segment: SegmentId, bytes: usize) -> usize {
        let before = self.state(segment).live.fetch_sub(bytes as u64, Ordering::AcqRel);
        debug_assert!(before >= bytes as u64, "only live bytes die");
        before.wrapping_sub(bytes as u64) as usize
    }

    /// The live bytes.
    pub fn live(&self, segment: SegmentId) -> usize {
        self.state(segment).live.load(Ordering::Acquire) as usize
    }

    /// Notes the expiry of a row in the segment; 0 (never) outranks every tick.
    #[inline]
    pub fn note_expiry(&self, segment: SegmentId, expiry: u32) {
        let expiry = if expiry == 0 { NEVER } else { u64::from(expiry) };
        let latest = &self.state(segment).expiry;
        if latest.load(Ordering::Relaxed) < expiry {
            latest.fetch_max(expiry, Ordering::Relaxed);
        }
    }

    /// The latest expiry noted; `None` if a row that never expires was noted, or no row at all.
    pub fn max_expiry(&self, segment: SegmentId) -> Option<u32> {
        u32::try_from(self.state(segment).expiry.load(Ordering::Relaxed)).ok().filter(|tick| *tick != 0)
    }

    /// The rows of a segment from a word on. It is sealed without writers, or the caller knows that what it
    /// visits is written.
    pub fn rows(&self, segment: SegmentId, from_word: u32) -> Rows<'_> {
        Rows {
            arena: self,
            head: segment.unit(),
            next: u64::from(from_word),
            end: self.used(segment) as u64 / 8,
            asked: u64::from(from_word),
            listed: self.segments.listed.of(SegmentId(segment.unit())),
        }
    }

    /// Frees a segment. No slot points into it and it has no writer; the caller has closed it, or nobody has held a row
    /// of it, and who comes with the place of an earlier one lets go at once. Its fill word stays closed.
    pub fn recycle(&self, segment: SegmentId) {
        let units = self.units(segment);
        debug_assert!(units > 0, "only a segment in use is recycled");
        let first = segment.unit();
        while !self.close(segment) {
            std::hint::spin_loop();
        }
        for unit in first..first + units {
            let at = self.layout.generations + u64::from(unit);
            let generation = self.map.load(at, Ordering::Relaxed);
            // Release: pairs with the Acquire of the first look at the generation; who sees it raised sees the
            // slots that pointed here cleared. The owner of the segment is alone in storing it.
            self.map.store(at, generation.wrapping_add(1), order::GENERATION_STORE);
        }
        // Everything that overwrites the bytes comes after the generations; pairs with a reader's Acquire fence.
        fence(order::RECYCLE_FENCE);
        for unit in first..first + units {
            self.clear_stored_header(unit);
            self.segments.states[unit as usize].kind.store(UNIT_FREE, Ordering::Release);
        }
        self.segments.listed.forget(SegmentId(first));
        let mut pool = self.segments.pool.lock();
        pool.mark(first, units, false);
        pool.budget.used.fetch_sub(u64::from(units), Ordering::Relaxed);
    }

    /// Every segment in use, by order of allocation.
    pub fn segments(&self) -> Vec<SegmentId> {
        let frontier = self.segments.pool.lock().frontier() * BLOCK_UNITS;
        let mut heads: Vec<_> =
            (0..frontier).filter(|unit| self.kind(*unit).state == UNIT_HEAD).map(SegmentId).collect();
        heads.sort_by_key(|segment| self.order(*segment));
        heads.into_iter().map(|segment| self.outer_segment(segment)).collect()
    }

    /// Sets the most bytes that segments may take; what is above it stays until it is recycled.
    pub fn set_limit(&self, segment_bytes: u64) {
        let units = (segment_bytes / UNIT_BYTES as u64).min(u64::from(self.layout.max_units));
        self.segments.pool.lock().budget.limit.store(units, Ordering::Relaxed);
    }

    /// Commits pages of the index, which takes a unit's worth of memory from segments for them. False: there are none,
    /// not even of free units.
    pub(crate) fn commit_index(&self, byte: u64, bytes: u64) -> bool {
        let mut pool = self.segments.pool.lock();
        pool.cede(&self.map, &self.layout);
        if !self.map.leaves_spare(bytes) {
            pool.release_free(&self.map, &self.layout, bytes.div_ceil(UNIT_BYTES as u64));
        }
        let done = pool.commit_beside(&self.map, &self.layout, byte, bytes);
        if !done {
            pool.take_back();
        }
        done
    }

    /// Commits pages of what is not counted as segments' or as the index's. False as above.
    pub(crate) fn commit_beside(&self, byte: u64, bytes: u64) -> bool {
        self.segments.pool.lock().commit_beside(&self.map, &self.layout, byte, bytes)
    }

    /// Bytes of the headers of segments that have pages.
    pub(crate) fn header_bytes(&self) -> u64 {
        u64::from(self.segments.pool.lock().header_units) * (8 + SEGMENT_HEADER_BYTES)
    }

    /// Bytes of addresses that segments may come to take: no limit can be higher.
    pub fn reserved_bytes(&self) -> u64 {
        self.layout.reserve_bytes
    }

    /// The most bytes that segments may take.
    pub fn limit_bytes(&self) -> u64 {
        self.segments.pool.lock().budget.limit() * UNIT_BYTES as u64
    }

    /// Bytes that may still be allocated.
    pub fn free_bytes(&self) -> u64 {
        let pool = self.segments.pool.lock();
        let used = pool.budget.used.load(Ordering::Relaxed);
        pool.budget.limit().saturating_sub(used) * UNIT_BYTES as u64
    }

    /// What this arena and others under one limit share of it.
    pub(crate) fn budget(&self) -> Arc<Budget> {
        Arc::clone(&self.segments.pool.lock().budget)
    }

    /// Units with pages that would be above the limit if so many more got some here.
    pub(crate) fn commit_excess(&self, units: u32) -> u64 {
        let pool = self.segments.pool.lock();
        let idle = pool.committed_units.saturating_sub(pool.used_units);
        let wanted = u64::from(units).saturating_sub(idle);
        (pool.budget.committed() + wanted).saturating_sub(pool.budget.limit()).min(wanted)
    }

    /// Gives the pages of so many free units back to the system; how many had some.
    pub(crate) fn release_units(&self, units: u64) -> u64 {
        self.segments.pool.lock().release_free(&self.map, &self.layout, units)
    }

    /// The same, but not of those that were freed a moment ago.
    pub(crate) fn release_calm_units(&self, units: u64) -> u64 {
        self.segments.pool.lock().release_calm(&self.map, &self.layout, units)
    }

    /// Gives the memory of all free units back to the system.
    #[cfg(test)]
    pub(crate) fn trim(&self) {
        self.release_units(u64::MAX);
    }

    /// Bytes of segments in use, and bytes committed.
    pub(crate) fn segment_usage(&self) -> (u64, u64) {
        let pool = self.segments.pool.lock();
        (pool.used_units * UNIT_BYTES as u64, pool.committed_units * UNIT_BYTES as u64)
    }
}

/// The rows of a segment, in order; fillers are skipped.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    arena: &'a Arena,
    head: u32,
    next: u64,
    end: u64,
    /// Dead rows before this word are asked for.
    asked: u64,
    /// Where the rows begin, if bytes between them cannot be walked.
    listed: Option<Arc<[u32]>>,
}

/// Words of a segment before which its dead rows are asked for: where each begins is known, while of a row that is met
/// only its own head says where the next is.
const WALK_AHEAD: u64 = 1_024;

impl Rows<'_> {
    #[inline]
    fn ask_ahead(&mut self) {
        let until = self.end.min(self.next + WALK_AHEAD);
        while self.asked < until {
            let from = Location::in_run(self.head, self.asked);
            self.asked += self.arena.prefetch_dead(from);
        }
    }

    /// The word from the start of the segment at which the next row begins: where to resume.
    pub fn position(&self) -> u32 {
        self.next as u32
    }
}

impl Iterator for Rows<'_> {
    type Item = (Location, RowHead);

    fn next(&mut self) -> Option<Self::Item> {
        while self.next < self.end {
            if let Some(listed) = &self.listed {
                let at = listed.partition_point(|start| u64::from(*start) < self.next);
                self.next = listed.get(at).map_or(self.end, |start| u64::from(*start));
                if self.next >= self.end {
                    break;
                }
            }
            let location = Location::in_run(self.head, self.next);
            let first = self.arena.map.load(self.arena.layout.at(location), Ordering::Relaxed);
            if first as u16 == FILLER_TABLE {
                // A filler of nothing would hold the loop for ever; there is none, but bytes are bytes.
                self.next = self.next.saturating_add((first >> 16).max(1));
                continue;
            }
            self.ask_ahead();
            let Some(head) = self.arena.parse(location) else { break };
            self.next += head.total_bytes as u64 / 8;
            return Some((self.arena.outer_location(location), head));
        }
        self.next = self.next.min(self.end);
        None
    }
}
