//! Compaction: the live rows of sparse segments move together, so that dead ones make room before live ones do.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::SegmentId;

use super::{Emptying, Purpose};
use crate::clock::Tick;
use crate::limits::REUSE_STEPS_MAX;
use crate::memory::Memory;
use crate::mutation::Mutation;
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::removal_cause::RemovalCause;
use crate::table::sealed::SegmentKind;

/// Looks for the sparsest segment before the oldest leaves instead: what was noted of one may be out of date.
const SPARSE_LOOKS: usize = 16;

/// Dead bytes that a table may hold for each hundred live ones before its sparse segments are emptied although there is
/// room: dead memory that is used again is already mapped and often still cached, and the longer a segment waits, the
/// fewer of its rows are left to move.
pub(super) const DEAD_PER_CENT: u64 = 200;
/// And so much beyond it, so that small tables are left alone; more would not stay in the cache of a core.
const WASTE_BYTES: u64 = 2 << 20;
/// For each unit taken by a table that wastes memory so many become free.
const REUSE_FACTOR: u64 = 2;

impl Memory {
    /// How many dead bytes a table may hold for each hundred live ones, beside a little that is fixed, while memory is
    /// free.
    pub fn set_dead_memory_percent(&self, per_cent: u64) {
        // Relaxed: a setting that takes effect soon.
        self.dead_per_cent.store(per_cent, Ordering::Relaxed);
    }

    /// Whether so much of a table's memory is dead that sparse segments are worth emptying although there is room.
    pub(super) fn wastes(&self, table: &Table) -> bool {
        let counters = &table.state.counters;
        let live = counters.bytes.load(Ordering::Relaxed);
        let dead = live.saturating_mul(self.dead_per_cent.load(Ordering::Relaxed)) / 100;
        counters.segment_bytes() > live + dead + WASTE_BYTES
    }

    /// Makes sparse segments of a table free again: more than the units that the caller is about to take, so that waste
    /// shrinks also where a long run is taken and single units are sparse.
    pub(super) fn reuse(&self, table: &Table, units: u32) {
        let Some(_cleaning) = self.cleaning.try_lock() else { return };
        let _mutation = Mutation;
        let now = self.now();
        let bytes = || table.state.counters.segment_bytes();
        let wanted = bytes().saturating_sub(REUSE_FACTOR * u64::from(units) * arena::UNIT_BYTES as u64);
        let kind = Some(SegmentKind::of(units));
        for _ in 0..REUSE_STEPS_MAX {
            if bytes() <= wanted || !self.compact_where(|| Some((table, self.sparsest(table, kind)?.1)), now)
            {
                break;
            }
        }
    }

    /// Moves the live rows of the sparsest segment together with others; `only`: of this table.
    pub(super) fn compact_one(&self, only: Option<&Table>, now: Tick) -> bool {
        if let Some(table) = only {
            return self.compact_where(|| Some((table, self.sparsest(table, None)?.1)), now);
        }
        let catalog = self.catalog();
        self.compact_where(|| self.sparsest_of_all(&catalog), now)
    }

    /// Moves the live rows of the segment that is found together with others.
    fn compact_where<'t>(&self, find: impl Fn() -> Option<(&'t Table, SegmentId)>, now: Tick) -> bool {
        for _ in 0..SPARSE_LOOKS {
            let Some((table, segment)) = find() else { return false };
            // A segment that left its queue meanwhile is somebody else's already.
            if self.take_sealed(table, segment) {
                let queue = self.arena.of(segment).tag(segment).queue;
                let work =
                    Emptying { table, queue, purpose: Purpose::Compact, leaving: RemovalCause::Memory, now };
                return self.empty(segment, &work);
            }
        }
        false
    }

    /// Whether a segment can be emptied now: nobody writes to it, and what is alive of it finds another place.
    fn is_movable(&self, segment: SegmentId) -> bool {
        self.arena.of(segment).writers(segment) == 0
            && self.arena.of(segment).live(segment) as u64 <= self.arena.private().free_bytes()
    }

    /// The sparsest segment of a table that can be emptied, for somebody who wants one of a kind, and how many of its
    /// parts are dead. Where the sparsest is a run that has no room to move to, a smaller segment has; if none has,
    /// S3-FIFO chooses what goes.
    fn sparsest(&self, table: &Table, wanted: Option<SegmentKind>) -> Option<(usize, SegmentId)> {
        let mut lists = table.state.queues.lock();
        for _ in 0..SPARSE_LOOKS {
            let (noted, segment) = lists.sparsest(wanted, |segment| self.is_movable(segment))?;
            let dead = self.dead_parts(segment);
            if dead >= noted {
                return Some((dead, segment));
            }
            // Writers who had reserved there have published since.
            lists.note(segment, dead);
        }
        None
    }

    fn sparsest_of_all<'c>(&self, catalog: &'c Catalog) -> Option<(&'c Table, SegmentId)> {
        let sparsest = |table: &'c Arc<Table>| {
            self.sparsest(table, None).map(|(dead, segment)| (dead, table.as_ref(), segment))
        };
        let (_, table, segment) = catalog.tables().filter_map(sparsest).max_by_key(|&(dead, ..)| dead)?;
        Some((table, segment))
    }
}
