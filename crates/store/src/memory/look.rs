//! A look at the segments of a table for those whose rows are all dead, which also finds when the next one may be.
//!
//! Between two looks rows only come that end later: a segment is due when its last row is. So what a look finds of a
//! segment stays a bound, and only a new segment, a flush or another rule asks for an earlier look.

use std::sync::atomic::Ordering;

use arena::{Queue, SegmentId};

use crate::clock::{NEVER, TICKS_PER_SECOND, Tick, moment_after};
use crate::memory::Memory;
use crate::table::Table;
use crate::table::queue::{NO_DEADLINE_CLASS, SegmentSize};
use crate::table::sealed::Sealed;

/// A place in a table's queues and the segment that is open there.
type Open = (Queue, u8, SegmentSize, SegmentId);

/// See the module.
pub(super) struct Look<'l> {
    memory: &'l Memory,
    table: &'l Table,
    now: Tick,
    /// Rows of smaller stamp are dead unless they bear a deadline.
    dead_below: u64,
    /// And these with one.
    flushed_below: u64,
    /// How long rows are served after their deadline.
    grace: u64,
    /// How long rows without one live; 0: as long as they may.
    gone: u64,
    /// When something that is not due may be.
    pub(super) soonest: Tick,
}

impl<'l> Look<'l> {
    pub(super) fn at(memory: &'l Memory, table: &'l Table, now: Tick) -> Self {
        let limits = &table.state.limits;
        Self {
            memory,
            table,
            now,
            dead_below: memory.dead_below(table, now),
            // Acquire: pairs with the Release of a flush.
            flushed_below: limits.flushed_below.load(Ordering::Acquire),
            // Relaxed: who changes a rule asks for another look.
            grace: limits.stale_ticks.load(Ordering::Relaxed).into(),
            gone: limits.gone_ticks.load(Ordering::Relaxed).into(),
            soonest: NEVER,
        }
    }

    /// Seals open segments whose rows are all dead, and that nobody writes to just now.
    pub(super) fn seal_expired(&mut self) {
        let queues = &self.table.state.queues;
        let due: Vec<Open> = queues.open_segments().filter(|open| self.is_open_due(open)).collect();
        if due.is_empty() {
            return;
        }
        let mut lists = queues.lock();
        for (queue, class, size, segment) in due {
            // Another writer may have filled it meanwhile.
            if queues.open(queue, class, size) != Some(segment) {
                continue;
            }
            queues.set_open(&mut lists, queue, class, size, None);
            let memory = self.memory;
            memory.arena.of(segment).seal(segment);
            // Nobody begins to write there any more; whoever still does has a stamp to come.
            let written = memory.arena.of(segment).writers(segment) == 0;
            let newest = if written { memory.newest_in(segment) } else { None };
            let newest = newest.unwrap_or_else(|| memory.arena.private().last_stamp());
            memory.enlist(&self.table.state, &mut lists, segment, newest);
        }
    }

    /// Takes up to so many sealed segments out of their lists in which nothing is live.
    pub(super) fn take_due(&mut self, limit: usize) -> Vec<SegmentId> {
        let below = self.dead_below.max(self.flushed_below);
        let mut lists = self.table.state.queues.lock();
        let taken = lists.take_if(limit, below, |sealed| self.is_sealed_due(sealed));
        let oldest = lists.oldest_without_deadline();
        drop(lists);
        if let Some(oldest) = oldest {
            self.put_off(self.reaches_age(oldest, self.gone));
        }
        taken
    }

    fn is_sealed_due(&mut self, sealed: &Sealed) -> bool {
        let has_no_deadlines = self.class_of(sealed.segment) == NO_DEADLINE_CLASS;
        if sealed.newest < if has_no_deadlines { self.dead_below } else { self.flushed_below } {
            return true;
        }
        let end = self.end_of(sealed.segment, has_no_deadlines);
        self.is_due(end)
    }

    fn is_open_due(&mut self, &(_, class, _, segment): &Open) -> bool {
        let has_no_deadlines = class == NO_DEADLINE_CLASS;
        let end = if self.memory.arena.of(segment).used(segment) == 0 {
            self.later(TICKS_PER_SECOND)
        } else if has_no_deadlines {
            self.end_of(segment, true).min(self.age_of_open(segment, self.dead_below, self.gone))
        } else {
            self.end_of(segment, false).min(self.age_of_open(segment, self.flushed_below, 0))
        };
        self.is_due(end)
    }

    /// When the last row of a segment is past its deadline and the time that it may be served stale.
    fn end_of(&self, segment: SegmentId, has_no_deadlines: bool) -> Tick {
        match self.memory.arena.of(segment).max_expiry(segment) {
            Some(last) => moment_after(last, self.grace),
            None if has_no_deadlines => NEVER,
            // Its writer has not noted one yet, or an earlier process left it.
            None => self.later(TICKS_PER_SECOND),
        }
    }

    /// When every row of an open segment may be older than a stamp that grows with the time `gone`. Its rows are looked
    /// at only where the first one is, and once a second.
    fn age_of_open(&self, segment: SegmentId, below: u64, gone: u64) -> Tick {
        let arena = self.memory.arena.of(segment);
        let Some((_, first)) = arena.rows(segment, 0).next() else { return self.later(TICKS_PER_SECOND) };
        if first.stamp >= below {
            return self.reaches_age(first.stamp, gone);
        }
        let to_go = u64::from(segment.0.wrapping_sub(self.now)) % TICKS_PER_SECOND;
        if to_go > 0 {
            return self.later(to_go);
        }
        if arena.writers(segment) > 0 {
            return self.later(1);
        }
        match self.memory.newest_in(segment) {
            Some(newest) if newest < below => self.now,
            Some(newest) => self.reaches_age(newest, gone),
            None => self.later(TICKS_PER_SECOND),
        }
    }

    /// When a row of this stamp, which is not so old now, is as old as `gone`; 0: never.
    fn reaches_age(&self, stamp: u64, gone: u64) -> Tick {
        let age = moment_after(self.memory.written_at(stamp), gone);
        if gone == 0 { NEVER } else { age.max(self.later(1)) }
    }

    fn is_due(&mut self, end: Tick) -> bool {
        if end > self.now {
            self.put_off(end);
        }
        end <= self.now
    }

    fn put_off(&mut self, end: Tick) {
        self.soonest = self.soonest.min(end);
    }

    /// So many ticks from now on, but at the next number at the earliest.
    fn later(&self, ticks: u64) -> Tick {
        moment_after(self.now, ticks).max(self.now.saturating_add(1))
    }

    fn class_of(&self, segment: SegmentId) -> u8 {
        self.memory.arena.of(segment).tag(segment).ttl_class
    }
}
