//! Which table gives a segment when memory is short, and how a table keeps to its own `max_memory`.

use std::sync::atomic::Ordering;

use arena::{Queue, SegmentId};

use super::{Emptying, Purpose, SMALL_PER_CENT, patiently};
use crate::clock::Tick;
use crate::error::WriteError;
use crate::memory::Memory;
use crate::mutation::Mutation;
use crate::table::Table;
use crate::table::removal_cause::RemovalCause;

/// The segment that a table would give.
struct Candidate<'t> {
    table: &'t Table,
    queue: Queue,
    segment: SegmentId,
    /// It is reserved by another table than that which asks for room.
    foreign: bool,
    /// How many segments were taken into use since, by the table's weight.
    age: u64,
}

impl Candidate<'_> {
    /// The smallest goes first.
    fn rank(&self) -> (bool, std::cmp::Reverse<u64>) {
        (self.foreign, std::cmp::Reverse(self.age))
    }
}

/// Ages are compared in these parts, so that a great weight leaves something to compare.
const AGE_SCALE: u64 = 10_000;

impl Memory {
    /// Frees the memory of one segment, for a write to `own` if it is for one. False: there is nothing to take at this
    /// moment.
    pub(crate) fn free_some(&self, own: Option<&Table>) -> bool {
        if self.is_unsettled() {
            return self.help_settling();
        }
        let _cleaning = self.cleaning.lock();
        let _mutation = Mutation;
        let now = self.now();
        if self.expire_segments(1, now) > 0 || self.compact_one(None, now) {
            return true;
        }
        if !self.evicts() {
            return false;
        }
        // What tables reserve is looked at only when there is nothing else.
        self.evict_one(own, false, now) || self.evict_one(own, true, now)
    }

    /// Evicts the segment that ranks first among those of all tables.
    fn evict_one(&self, own: Option<&Table>, reserved: bool, now: Tick) -> bool {
        let catalog = self.catalog();
        let next = self.arena.private().next_order();
        let candidate = |table| self.candidate(table, own, next, reserved);
        let mut candidates: Vec<Candidate<'_>> =
            catalog.tables().filter_map(|table| candidate(table.as_ref())).collect();
        candidates.sort_by_key(Candidate::rank);
        let taken = |&Candidate { table, queue, segment, .. }: &Candidate<'_>| {
            let leaving = RemovalCause::Memory;
            self.take_sealed(table, segment)
                && self.empty(segment, &Emptying { table, queue, purpose: Purpose::Evict, leaving, now })
        };
        candidates.iter().any(taken)
    }

    /// What a table could give; `reserved`: also of what it has for itself.
    fn candidate<'t>(
        &self,
        table: &'t Table,
        own: Option<&Table>,
        next: u64,
        reserved: bool,
    ) -> Option<Candidate<'t>> {
        // A view without some of its rows would lie.
        if table.def().materialized.is_some() {
            return None;
        }
        let options = &table.def().options;
        let bytes = table.state.counters.segment_bytes();
        let least = options.min_memory.filter(|_| !reserved).unwrap_or(0);
        // Its open segments are left open as long as there is nothing to take from them.
        if bytes <= least {
            return None;
        }
        let (order, queue, segment) = self.eviction_candidate(table)?;
        let given = u64::from(self.arena.of(segment).units(segment)) * arena::UNIT_BYTES as u64;
        let foreign = reserved && own.is_none_or(|own| own.id() != table.id());
        let age = next.saturating_sub(order).saturating_mul(AGE_SCALE);
        let age = age / u64::from(options.weight_or_default()).max(1);
        (bytes.saturating_sub(given) >= least).then_some(Candidate { table, queue, segment, foreign, age })
    }

    /// The segment that S3-FIFO would empty next in a table, with its place in the order of all.
    fn eviction_candidate(&self, table: &Table) -> Option<(u64, Queue, SegmentId)> {
        let units = &table.state.counters.units;
        let [small, main] = [0, 1].map(|at: usize| units[at].load(Ordering::Relaxed));
        let first = if small * 100 > (small + main) * SMALL_PER_CENT { Queue::Small } else { Queue::Main };
        let second = if first == Queue::Small { Queue::Main } else { Queue::Small };
        for queue in [first, second] {
            let oldest = || {
                table.state.queues.lock().oldest(queue, |segment| self.arena.of(segment).writers(segment) > 0)
            };
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

    /// Makes room for so many units within a table's own `max_memory`.
    pub(super) fn keep_to_memory(&self, table: &Table, units: u32) -> Result<(), WriteError> {
        let most = table.state.limits.memory_max.load(Ordering::Relaxed);
        if most == u64::MAX {
            return Ok(());
        }
        let bytes = u64::from(units) * arena::UNIT_BYTES as u64;
        if bytes > most {
            let limit = usize::try_from(most).unwrap_or(usize::MAX);
            return Err(WriteError::TooLarge { bytes: usize::try_from(bytes).unwrap_or(usize::MAX), limit });
        }
        for _ in 0..self.free_attempts() {
            if table.state.counters.segment_bytes() + bytes <= most {
                return Ok(());
            }
            if !patiently(|| self.shrink(table)) {
                break;
            }
        }
        Err(WriteError::Full)
    }

    /// Brings a table back to a `max_memory` that became less, some segments at a time.
    pub(crate) fn shrink_to_memory(&self, table: &Table, segments: usize) {
        let most = table.state.limits.memory_max.load(Ordering::Relaxed);
        for _ in 0..segments {
            if table.state.counters.segment_bytes() <= most || !self.shrink(table) {
                return;
            }
        }
    }

    /// Frees the memory of one segment of a table: of dead rows first, then by S3-FIFO.
    fn shrink(&self, table: &Table) -> bool {
        if self.is_unsettled() {
            return self.help_settling();
        }
        let _cleaning = self.cleaning.lock();
        let _mutation = Mutation;
        let now: Tick = self.now();
        if self.expire_in(table, 1, now) > 0 || self.compact_one(Some(table), now) {
            return true;
        }
        if table.def().materialized.is_some() {
            return false;
        }
        let Some((_, queue, segment)) = self.eviction_candidate(table) else { return false };
        let leaving = RemovalCause::MaxMemory;
        self.take_sealed(table, segment)
            && self.empty(segment, &Emptying { table, queue, purpose: Purpose::Evict, leaving, now })
    }
}
