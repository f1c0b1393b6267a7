//! Rows that made room for others, for operators who watch. While nobody does, an evicted row costs one load.

use std::sync::atomic::{AtomicBool, Ordering};

use arena::SlotId;
use parking_lot::Mutex;

use crate::clock::{TICKS_PER_SECOND, Tick};
use crate::limits::EVICTIONS_WAITING_MAX;
use crate::memory::Memory;
use crate::row::RowBuf;
use crate::row::meta::ItemMeta;
use crate::table::Table;

/// A row that was evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// Its key as memcached clients write it.
    pub key: Vec<u8>,
    /// Whether it was fetched, as far as this process knows.
    pub fetched: bool,
    /// Seconds that it had left, none without a deadline.
    pub seconds_left: Option<u64>,
    /// Seconds since it was last written or fetched.
    pub seconds_unused: u64,
    /// Bytes that it took.
    pub size: usize,
}

/// Evictions that nobody fetched yet.
#[derive(Debug, Default)]
pub(crate) struct Evictions {
    /// Relaxed: who begins to watch sees what happens from soon on.
    watched: AtomicBool,
    /// Taken for a push or a swap, and last: after any shard's lock.
    waiting: Mutex<Vec<Eviction>>,
}

impl Memory {
    /// Whether evictions are to be noted.
    pub fn watch_evictions(&self, on: bool) {
        self.evictions_seen.watched.store(on, Ordering::Relaxed);
    }

    /// What was evicted since the last call, while somebody watched.
    pub fn take_evictions(&self) -> Vec<Eviction> {
        if self.evictions_seen.watched.load(Ordering::Relaxed) {
            std::mem::take(&mut *self.evictions_seen.waiting.lock())
        } else {
            Vec::new()
        }
    }

    /// Notes that a row is about to be evicted from its slot.
    pub(crate) fn note_eviction(&self, table: &Table, row: &RowBuf, slot: SlotId, now: Tick) {
        if !self.evictions_seen.watched.load(Ordering::Relaxed) {
            return;
        }
        let mut key = table.def().options.prefix.clone().unwrap_or_default().into_bytes();
        if table.keys().to_text(row.key(), &mut key).is_err() {
            return;
        }
        let (meta, hits, age) =
            (ItemMeta::of(row.head(), 0), self.arena.of(slot).hits(slot, now), self.age_ticks(row.stamp()));
        let eviction = Eviction {
            key,
            fetched: hits.fetched,
            seconds_left: self.remaining(table, &meta, now).map(|ticks| ticks / TICKS_PER_SECOND),
            seconds_unused: if hits.fetched { age.min(hits.ticks_ago.into()) } else { age }
                / TICKS_PER_SECOND,
            size: row.size(),
        };
        let mut waiting = self.evictions_seen.waiting.lock();
        if waiting.len() < EVICTIONS_WAITING_MAX {
            waiting.push(eviction);
        }
    }
}
