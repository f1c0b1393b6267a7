//! Memory of rows whose time came: segments come back whole, found by what is known of each, not by looking at rows.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use arena::{Queue, SegmentId};

use crate::clock::{TICKS_PER_SECOND, Tick, moment_after};
use crate::memory::{Emptying, Memory, Pause, Purpose};
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::queue::{NO_DEADLINE_CLASS, SegmentSize};
use crate::table::removal_cause::RemovalCause;
use crate::table::sealed::Sealed;

/// Segments that the cleaner empties before others who make room get their turn: some hundred microseconds.
const SEGMENTS_PER_PIECE: usize = 2;

/// A place in a table's queues and the segment that is open there.
type Open = (Queue, u8, SegmentSize, SegmentId);

impl Memory {
    /// Recycles segments in which nothing can be live any more. Returns how many.
    pub(crate) fn expire_segments(&self, limit: usize, now: Tick) -> usize {
        let mut freed = 0;
        for table in self.catalog().tables() {
            if freed >= limit {
                break;
            }
            freed += self.expire_in(table, limit - freed, now);
        }
        if freed < limit {
            // Relaxed: a hint, read and written under the `cleaning` lock; a flush takes it back.
            self.nothing_due.store(now, Ordering::Relaxed);
        }
        freed
    }

    /// The same for the cleaner, in pieces with a pause between two of them, while it holds no lock.
    pub(crate) fn expire_with_pauses(
        &self,
        limit: usize,
        now: Tick,
        pause: &mut Pause<'_>,
    ) -> ControlFlow<()> {
        let mut freed = self.expire_first(now);
        if freed == 0 {
            return ControlFlow::Continue(());
        }
        pause()?;
        let catalog = self.catalog();
        for table in catalog.tables() {
            while freed < limit {
                let more = self.expire_piece(&catalog, table, now);
                if more == 0 {
                    break;
                }
                freed += more;
                pause()?;
            }
        }
        ControlFlow::Continue(())
    }

    /// One segment, so that the first pause is soon.
    fn expire_first(&self, now: Tick) -> usize {
        let _cleaning = self.cleaning.lock();
        self.expire_segments(1, now)
    }

    /// Some segments of a table. One that was dropped meanwhile has been emptied under the same lock, and rows must not
    /// move there any more.
    fn expire_piece(&self, catalog: &Catalog, table: &Table, now: Tick) -> usize {
        let _cleaning = self.cleaning.lock();
        let stands = self.generation() == catalog.generation;
        if stands { self.expire_in(table, SEGMENTS_PER_PIECE, now) } else { 0 }
    }

    /// As [`Memory::expire_segments`], within one table.
    pub(crate) fn expire_in(&self, table: &Table, limit: usize, now: Tick) -> usize {
        self.seal_expired(table, now);
        let dead_below = self.dead_below(table, now);
        // Acquire: pairs with the Release of a flush.
        let flushed_below = table.state.limits.flushed_below.load(Ordering::Acquire);
        let dead = |sealed: &Sealed| {
            self.all_due(table, sealed.segment, now)
                || (self.has_no_deadlines(sealed.segment) && sealed.newest < dead_below)
                || sealed.newest < flushed_below
        };
        let segments = table.state.queues.lock().take_if(limit, dead_below.max(flushed_below), dead);
        let empty = |segment: &SegmentId| {
            let queue = self.arena.of(*segment).tag(*segment).queue;
            let leaving = RemovalCause::Memory;
            self.empty(*segment, &Emptying { table, queue, purpose: Purpose::Expire, leaving, now })
        };
        segments.iter().filter(|segment| empty(segment)).count()
    }

    /// Whether the last row of a segment is past its deadline and the time that it may be served stale.
    fn all_due(&self, table: &Table, segment: SegmentId, now: Tick) -> bool {
        let grace = table.state.limits.stale_ticks.load(Ordering::Relaxed);
        self.arena.of(segment).max_expiry(segment).is_some_and(|last| moment_after(last, grace.into()) <= now)
    }

    fn has_no_deadlines(&self, segment: SegmentId) -> bool {
        self.arena.of(segment).tag(segment).ttl_class == NO_DEADLINE_CLASS
    }

    /// Seals open segments whose rows are all dead, and that nobody writes to just now.
    fn seal_expired(&self, table: &Table, now: Tick) {
        let queues = &table.state.queues;
        let dead_below = self.dead_below(table, now);
        // Acquire: pairs with the Release of a flush.
        let flushed_below = table.state.limits.flushed_below.load(Ordering::Acquire);
        let dead = |&(_, class, _, segment): &Open| {
            let below = if class == NO_DEADLINE_CLASS { dead_below } else { flushed_below };
            self.arena.of(segment).used(segment) > 0
                && (self.all_due(table, segment, now) || self.is_older(segment, below, now))
        };
        if !queues.open_segments().any(|open| dead(&open)) {
            return;
        }
        let mut lists = queues.lock();
        let open: Vec<Open> = queues.open_segments().filter(dead).collect();
        for (queue, class, size, segment) in open {
            queues.set_open(&mut lists, queue, class, size, None);
            self.arena.of(segment).seal(segment);
            // Nobody begins to write there any more; whoever still does has a stamp to come.
            let written = self.arena.of(segment).writers(segment) == 0;
            let newest = if written { self.newest_in(segment) } else { None };
            self.enlist(&mut lists, segment, newest.unwrap_or_else(|| self.arena.private().last_stamp()));
        }
    }

    /// Whether every row of an open segment is older than a stamp. The segment is walked only where its first row is,
    /// and once a second.
    fn is_older(&self, segment: SegmentId, below: u64, now: Tick) -> bool {
        if below == 0 || u64::from(now) % TICKS_PER_SECOND != u64::from(segment.0) % TICKS_PER_SECOND {
            return false;
        }
        let first = self.arena.of(segment).rows(segment, 0).next();
        first.is_some_and(|(_, head)| head.stamp < below)
            && self.arena.of(segment).writers(segment) == 0
            && self.newest_in(segment).is_some_and(|newest| newest < below)
    }

    /// The newest stamp of a segment's rows.
    fn newest_in(&self, segment: SegmentId) -> Option<u64> {
        self.arena.of(segment).rows(segment, 0).map(|(_, head)| head.stamp).max()
    }
}
