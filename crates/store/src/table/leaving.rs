//! Why rows leave a table, as it is counted.

use std::sync::atomic::Ordering;

use arena::{Location, RowHead};

use crate::clock::Tick;
use crate::store::Store;
use crate::table::Table;
use crate::table::departure::Cause;

/// Why a row left its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Somebody removed it.
    Invalidated,
    /// Somebody removed all rows of the table.
    Flushed,
    /// Its own deadline came, or its table's `ttl`.
    Ttl,
    /// It had `max_ops` operations.
    Operations,
    /// An expiry rule applied to it.
    Rule,
    /// The table had `max_rows`.
    MaxRows,
    /// The table had `max_memory`.
    MaxMemory,
    /// The server's memory was needed.
    Memory,
}

impl Leaving {
    /// How many causes there are.
    pub(crate) const COUNT: usize = Self::Memory as usize + 1;
    /// Those by which a row expires.
    pub(crate) const EXPIRED: &'static [Self] = &[Self::Ttl, Self::Operations, Self::Rule];
    /// Those by which it is evicted.
    pub(crate) const EVICTED: &'static [Self] = &[Self::MaxRows, Self::MaxMemory, Self::Memory];

    /// As it is announced; a flush is for the whole table.
    pub(crate) fn cause(self) -> Option<Cause> {
        match self {
            Self::Invalidated => Some(Cause::Invalidate),
            Self::Flushed => None,
            Self::Ttl | Self::Operations | Self::Rule => Some(Cause::Expire),
            Self::MaxRows | Self::MaxMemory | Self::Memory => Some(Cause::Evict),
        }
    }
}

impl Store {
    /// Why a row is dead; none if it is live.
    pub(crate) fn dead(&self, table: &Table, head: &RowHead, now: Tick) -> Option<Leaving> {
        if self.is_live(table, head, now) {
            return None;
        }
        let state = &table.state;
        // Acquire: pairs with the Release of a flush and of `settle_operations`.
        let below = head.stamp < state.limits.flushed_below.load(Ordering::Acquire);
        // Relaxed: see `TableState::emptied_below`.
        Some(match below {
            true if head.stamp < state.emptied_below.load(Ordering::Relaxed) => Leaving::Flushed,
            true => Leaving::Operations,
            false => Leaving::Ttl,
        })
    }

    /// Why the row at a location is dead; none if it is live. The caller's shard lock keeps it where it is.
    pub(crate) fn dead_there(&self, table: &Table, location: Location, now: Tick) -> Option<Leaving> {
        match self.arena.row(location) {
            Some(row) => self.dead(table, row.head(), now),
            None => Some(Leaving::Flushed),
        }
    }
}
