//! What each table's rows take, and how much of its segments is dead.

use std::sync::atomic::Ordering;

use arena::{Location, SegmentId};

use crate::row::version::Version;
use crate::table::queue::{SegmentSize, place};
use crate::table::sealed::{SealedLists, SegmentKind, Standing, parts_dead};
use crate::table::{Table, TableState};
use crate::versions::Versions;
use crate::versions::swap::Weight;

impl Versions {
    /// Counts a version's bytes as alive. The caller holds the row's shard.
    pub(crate) fn account_in(&self, table: &Table, segment: SegmentId, bytes: usize) {
        self.arena.of(segment).add_live(segment, bytes);
        if let SegmentSize::Own(_) = SegmentSize::of(bytes) {
            // Its run was sealed when it was taken, and was noted as dead as a whole until now.
            self.note_dead(table, segment);
        }
    }

    /// Counts them as dead. The caller holds the row's shard, and nothing leads to the row any more.
    pub(crate) fn account_out(&self, table: &Table, location: Location, bytes: usize) -> Weight {
        // Asked before the bytes die: without live ones the segment may be recycled, and be another queue's.
        let (segment, queue) = self.arena.of(location).home_of(location);
        self.arena.of(location).note_dead(location);
        let live = self.arena.of(segment).sub_live(segment, bytes);
        self.note_death(table, segment, live + bytes, live);
        Weight { queue, bytes }
    }

    /// The accounts of a version that stands in another place from here on.
    pub(crate) fn account_moved(&self, table: &Table, from: Location, to: &Version) {
        self.account_in(table, to.segment, to.bytes);
        let came = Weight { queue: to.queue, bytes: to.bytes };
        let bytes = self.arena.of(from).row(from).map_or(0, |row| row.head().total_bytes);
        balance(table, Some(came), Some(self.account_out(table, from, bytes)));
    }

    /// Notes deaths in a segment of a table, where another part of it died.
    pub(crate) fn note_death(&self, table: &Table, segment: SegmentId, before: usize, live: usize) {
        let (used, units) = self.arena.of(segment).extent(segment);
        if parts_dead(used, live, units) != parts_dead(used, before, units)
            && self.arena.of(segment).is_sealed(segment)
        {
            self.note_dead(table, segment);
        }
    }

    /// Notes how much of a segment is dead, if it is sealed.
    pub(crate) fn note_dead(&self, table: &Table, segment: SegmentId) {
        let mut lists = table.state.queues.lock();
        lists.note(segment, self.dead_parts(segment));
    }

    /// How many parts of a segment are dead.
    pub(crate) fn dead_parts(&self, segment: SegmentId) -> usize {
        let (used, units) = self.arena.of(segment).extent(segment);
        parts_dead(used, self.arena.of(segment).live(segment), units)
    }

    /// Puts a sealed segment into the lists of its table, with the newest stamp that can be in it.
    pub(crate) fn enlist(
        &self,
        state: &TableState,
        lists: &mut SealedLists,
        segment: SegmentId,
        newest: u64,
    ) {
        lists.push(self.standing(segment), newest, self.dead_parts(segment));
        self.expect(state, self.now().saturating_add(1));
    }

    /// As [`Versions::enlist`], of a segment whose rows may be as new as the last write.
    pub(crate) fn put_back(&self, state: &TableState, segment: SegmentId) {
        let mut lists = state.queues.lock();
        self.enlist(state, &mut lists, segment, self.arena.private().last_stamp());
    }

    /// Where a segment stands among the sealed ones of its table.
    pub(crate) fn standing(&self, segment: SegmentId) -> Standing {
        let tag = self.arena.of(segment).tag(segment);
        let kind = SegmentKind::of(self.arena.of(segment).units(segment));
        Standing {
            queue: tag.queue,
            class: tag.ttl_class,
            order: self.arena.of(segment).order(segment),
            segment,
            kind,
        }
    }
}

/// Brings a table's account up to date: a version came, or went, or one took another's place, which mostly changes
/// little.
pub(crate) fn balance(table: &Table, came: Option<Weight>, went: Option<Weight>) {
    let counters = &table.state.counters;
    let queues = [came, went].map(|weight| weight.map(|weight| weight.queue));
    if queues[0] != queues[1] {
        if let Some(queue) = queues[0] {
            counters.rows[place(queue)].fetch_add(1, Ordering::Relaxed);
        }
        if let Some(queue) = queues[1] {
            counters.rows[place(queue)].fetch_sub(1, Ordering::Relaxed);
        }
    }
    let [more, less] = [came, went].map(|weight| weight.map_or(0, |weight| weight.bytes as u64));
    if more != less {
        // Wraps where less came than went, and so does the sum.
        counters.bytes.fetch_add(more.wrapping_sub(less), Ordering::Relaxed);
    }
}

pub(crate) fn count(counter: &std::sync::atomic::AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
