//! Time: the clock in ticks of the arena, and what it does to rows.
//!
//! Whether a row is live is decided here, for every read and write: by its own deadline, by its table's `ttl` and
//! `max_ops`, and by flushes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arena::Arenas;

use crate::clock::{Clock, Tick, age_at, moment_at};
use crate::table::TableState;
use crate::table::due::Due;
use crate::table::removal_event::{RemovalEvent, RemovalEvents};
use row_tap::RowTap;

pub(crate) mod live;
pub(crate) mod operations;
pub(crate) mod renew;
pub(crate) mod row_tap;

/// The clock, the arena whose ticks it counts, and what must be known to judge rows.
#[derive(Debug)]
pub struct Time {
    pub(crate) arena: Arenas,
    pub(crate) clock: Clock,
    /// The tick whose first stamp was noted.
    checkpointed: AtomicU32,
    /// When a segment of some table may come due.
    pub(crate) due: Due,
    pub(crate) removal_events: RemovalEvents,
    /// Who hears of rows that other caches are to have.
    pub(crate) row_tap: OnceLock<Arc<dyn RowTap>>,
}

impl Time {
    pub(crate) fn new(arena: Arenas, clock: Clock) -> Self {
        Self {
            arena,
            clock,
            checkpointed: AtomicU32::new(0),
            due: Due::default(),
            removal_events: RemovalEvents::default(),
            row_tap: OnceLock::new(),
        }
    }

    /// Where this store's time comes from.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The current tick.
    #[inline]
    pub fn now(&self) -> Tick {
        self.tick_at(self.clock.now_ns())
    }

    /// The tick of a moment on the store's clock.
    #[inline]
    pub fn tick_at(&self, now_ns: u64) -> Tick {
        moment_at(now_ns.saturating_sub(self.arena.private().epoch_ns()))
    }

    /// The deadline that lies so far ahead, rounded down to a whole tick: nothing outlives its time.
    pub fn tick_after(&self, ahead: Duration) -> Tick {
        let elapsed = self.clock.now_ns().saturating_sub(self.arena.private().epoch_ns());
        let ahead = u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX);
        moment_at(elapsed.saturating_add(ahead))
    }

    /// How long ago the write with this stamp happened, in ticks, as exactly as the checkpoints say.
    pub fn age_ticks(&self, stamp: u64) -> u64 {
        age_at(self.now(), self.written_at(stamp))
    }

    /// When the write with this stamp happened, as exactly as the checkpoints say.
    pub(crate) fn written_at(&self, stamp: u64) -> Tick {
        self.arena.private().checkpoints().tick_of(stamp).unwrap_or(0)
    }

    /// Every smaller stamp was issued at this moment or before, as exactly as the log of checkpoints says.
    pub(crate) fn first_stamp_after(&self, moment: Tick, now: Tick) -> u64 {
        self.checkpoint(now);
        self.arena.private().checkpoints().first_after(moment).unwrap_or(0)
    }

    /// Notes which stamp is the first of this tick, once a tick: so the age of every row is known.
    #[inline]
    pub fn checkpoint(&self, now: Tick) {
        // Acquire, and noted before it says so: who passes here draws a stamp that the note does not take for an
        // earlier tick's. A race only notes the tick twice, and the log ignores the second.
        if self.checkpointed.load(Ordering::Acquire) < now {
            self.arena.note_checkpoint(now, self.arena.private().last_stamp() + 1);
            self.checkpointed.fetch_max(now, Ordering::Release);
        }
    }

    /// Something of a table comes due at this moment, before what was known of it.
    pub(crate) fn expect(&self, state: &TableState, moment: Tick) {
        // The table first: who begins to look at all sees it.
        state.due.expect(moment);
        self.due.expect(moment);
    }

    /// The newest stamp drawn: no version that is read from now on is older than what stands there now.
    pub fn last_stamp(&self) -> u64 {
        self.arena.private().last_stamp()
    }

    /// Has rows heard from now on that other caches are to have. The first who asks hears them.
    pub fn tap_rows(&self, tap: Arc<dyn RowTap>) {
        let _heard_already = self.row_tap.set(tap);
    }

    /// What left tables that name a channel since the last call.
    pub fn take_removal_events(&self) -> Vec<RemovalEvent> {
        self.removal_events.take()
    }
}
