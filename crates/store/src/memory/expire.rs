//! Memory of rows whose time came: segments come back whole, found by what is known of each, not by looking at rows.

use std::ops::ControlFlow;

use arena::SegmentId;

use crate::clock::Tick;
use crate::memory::look::Look;
use crate::memory::{Emptying, Memory, Pause, Purpose};
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::due::AT_ONCE;
use crate::table::removal_cause::RemovalCause;

/// Segments that the cleaner empties before others who make room get their turn: some hundred microseconds.
const SEGMENTS_PER_PIECE: usize = 2;

impl Memory {
    /// Recycles segments in which nothing can be live any more. Returns how many.
    pub(crate) fn expire_segments(&self, limit: usize, now: Tick) -> usize {
        if !self.due.has_come(now) {
            return 0;
        }
        self.due.begin_look();
        let mut freed = 0;
        for table in self.catalog().tables() {
            if freed < limit {
                freed += self.expire_in(table, limit - freed, now);
            }
            self.due.expect(table.state.due.moment());
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

    /// As [`Memory::expire_segments`], within one table. The caller holds the `cleaning` lock.
    pub(crate) fn expire_in(&self, table: &Table, limit: usize, now: Tick) -> usize {
        let due = &table.state.due;
        if !due.has_come(now) {
            return 0;
        }
        due.begin_look();
        let mut look = Look::at(self, table, now);
        look.seal_expired();
        let segments = look.take_due(limit);
        let empty = |segment: &SegmentId| {
            let queue = self.arena.of(*segment).tag(*segment).queue;
            let leaving = RemovalCause::Memory;
            self.empty(*segment, &Emptying { table, queue, purpose: Purpose::Expire, leaving, now })
        };
        let freed = segments.iter().filter(|segment| empty(segment)).count();
        due.expect(match segments.len() < limit {
            true => look.soonest,
            // There may be more; what could not be emptied waits for the next tick.
            false if freed == limit => AT_ONCE,
            false => now.saturating_add(1),
        });
        freed
    }

    /// The newest stamp of a segment's rows.
    pub(super) fn newest_in(&self, segment: SegmentId) -> Option<u64> {
        self.arena.of(segment).rows(segment, 0).map(|(_, head)| head.stamp).max()
    }
}
