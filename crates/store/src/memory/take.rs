//! Units for a table: a run where one is free, room made for it where none is, and a reserve for rows that move.

use std::sync::atomic::Ordering;

use arena::{Queue, SegmentId, SegmentTag};

use super::{FREE_ATTEMPTS, MOVING, patiently};
use crate::error::WriteError;
use crate::memory::Memory;
use crate::recovery::SHARES_PER_WRITE;
use crate::table::Table;
use crate::table::queue::{SegmentSize, place};

/// Units that only moving rows may take, so that one worth keeping always finds a place to move to: as many as the
/// largest shared run has ...
const RESERVE_UNITS: u64 = arena::BLOCK_UNITS as u64;
/// ... but no more than this part of the memory.
const RESERVE_SHARE: u64 = 32;
/// And as many at least.
pub(crate) const RESERVE_UNITS_MIN: u64 = 4;

impl Memory {
    /// Takes units for rows of so many bytes of a table, making room where there is none.
    pub(crate) fn allocate(
        &self,
        table: &Table,
        queue: Queue,
        class: u8,
        row_bytes: usize,
    ) -> Result<SegmentId, WriteError> {
        let tag = SegmentTag { table: table.id(), queue, ttl_class: class, schema: table.def().schema };
        let memory =
            table.state.limits.memory_max.load(Ordering::Relaxed).min(self.arena.private().limit_bytes());
        let units = SegmentSize::of(row_bytes).units(memory);
        if MOVING.get() {
            // The row must go somewhere, and the reserve is for that.
            return self.take_run(table, row_bytes, units, 0, tag).ok_or(WriteError::Full);
        }
        if self.wastes(table) {
            self.reuse(table, units);
        }
        self.keep_to_memory(table, units)?;
        for _ in 0..self.free_attempts() {
            let spare = self.reserve_units();
            if self.has_units(u64::from(units) + spare)
                && let Some(segment) = self.take_run(table, row_bytes, units, spare, tag)
            {
                return Ok(segment);
            }
            if !self.make_room(Some(table)) {
                break;
            }
        }
        Err(WriteError::Full)
    }

    /// Takes a run for a table, so that `spare` units stay free. Where so many side by side are not available, a part
    /// of them that has room for a row of this size will do.
    fn take_run(
        &self,
        table: &Table,
        row_bytes: usize,
        units: u32,
        spare: u64,
        tag: SegmentTag,
    ) -> Option<SegmentId> {
        let parts = std::iter::successors(Some(units), |units| Some(units / 2));
        let least = SegmentSize::of(row_bytes).least_units();
        parts.take_while(|&units| units >= least).find_map(|units| {
            let has_units = self.has_units(u64::from(units) + spare);
            let segment = has_units.then(|| self.arena.allocate(units, &tag, row_bytes))??;
            table.state.counters.units[place(tag.queue)].fetch_add(u64::from(units), Ordering::Relaxed);
            Some(segment)
        })
    }

    fn has_units(&self, units: u64) -> bool {
        self.arena.private().free_bytes() >= units * arena::UNIT_BYTES as u64
    }

    /// Units that are kept for rows that move.
    pub(crate) fn reserve_units(&self) -> u64 {
        let share = self.arena.private().limit_bytes() / arena::UNIT_BYTES as u64 / RESERVE_SHARE;
        share.clamp(RESERVE_UNITS_MIN, RESERVE_UNITS)
    }

    /// Steps of making room before a write is refused as out of memory. After a start the segments of the rows that are
    /// there cannot be freed before all of them are proved, and a writer does a share of that only.
    pub(super) fn free_attempts(&self) -> usize {
        if self.is_unsettled() { SHARES_PER_WRITE } else { FREE_ATTEMPTS }
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
}
