//! A `flush_all` with a time that has not come: when it does, the list of invalidations says how many rows went.

use std::sync::Arc;

use parking_lot::Mutex;
use sql::Invalidation;
use store::Tick;

use super::Happening;
use super::happened::Who;
use crate::engine::Engine;

/// The last one that was asked for; another takes its place, as in the store.
#[derive(Debug)]
pub(crate) struct FlushToCome(Mutex<Option<Announced>>);

#[derive(Debug)]
struct Announced {
    at: Tick,
    what: Happening,
    /// Rows at the last look before the moment: the housekeeping begins to clear them when it has come.
    rows: u64,
}

impl FlushToCome {
    /// Takes note of a flush, or that there is none to come, in one step with `flush`.
    pub(crate) fn announce(&self, flush: Option<(Tick, Happening)>, announce: impl FnOnce()) {
        let mut announced = self.0.lock();
        announce();
        *announced = flush.map(|(at, what)| Announced { at, what, rows: 0 });
    }

    /// Takes up one of an earlier process, which does not say who asked for it.
    pub(crate) fn of_earlier(at: Option<Tick>) -> Self {
        let what = Happening {
            who: Arc::new(Who { protocol: "memcached", ..Who::default() }),
            statement: "flush_all".into(),
            parameters: None,
            table: None,
            how: Invalidation::Flushed,
            rows: 0,
            took_ns: None,
        };
        Self(Mutex::new(at.map(|at| Announced { at, what, rows: 0 })))
    }

    /// Looks how many rows there are. The flush with its rows, once, when its moment has come.
    fn look(&self, now: Tick, rows: impl FnOnce() -> u64) -> Option<Happening> {
        let mut announced = self.0.lock();
        let flush = announced.as_mut()?;
        let rows = rows();
        if flush.at > now {
            flush.rows = rows;
            return None;
        }
        let Announced { what, rows: before, .. } = announced.take()?;
        Some(Happening { rows: rows.max(before), ..what })
    }
}

impl Engine {
    /// Rows of all tables that `flush_all` empties.
    pub(crate) fn rows_reached(&self) -> u64 {
        let catalog = self.store.catalog();
        let reached = catalog.tables().filter(|table| table.def().is_flushed());
        reached.map(|table| table.stats().rows).sum()
    }

    /// Takes note of a flush whose moment has come, before the housekeeping clears its rows.
    pub(crate) fn note_flush_that_came(&self) {
        if let Some(flush) = self.flush_to_come.look(self.store.now(), || self.rows_reached()) {
            self.activity.keep(flush);
            // Nobody waits for it. Other caches hear of it now: their clocks may say another time.
            let _receipt = self.tell_flush();
        }
    }
}
