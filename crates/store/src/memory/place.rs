//! Places for rows: a row is copied into its segment first, where nothing reaches it. Space once reserved is held
//! against recycling until the [`Placed`] guard is dropped.

use std::sync::atomic::Ordering;

use arena::{Arenas, Queue, RowParts};

use crate::clock::Tick;
use crate::error::WriteError;
use crate::memory::Memory;
use crate::row::new::NewParts;
use crate::row::version::{Keep, Version};
use crate::table::Table;
use crate::table::queue::{SegmentSize, ttl_class};

/// Rows that a single write evicts at most to bring a table back to `max_rows`; the rest is the cleaner's.
pub(crate) const EVICTIONS_PER_WRITE: usize = 4;

/// Attempts to append to an open segment before the write is refused; each failure means that another writer
/// filled one meanwhile.
const RESERVE_ATTEMPTS: usize = 64;

/// Space in a segment that this writer holds until it drops the guard.
#[derive(Debug)]
pub(crate) struct Placed<'s> {
    arena: &'s Arenas,
    pub(crate) version: Version,
}

impl Placed<'_> {
    /// What it holds; from here on the caller gives it back.
    pub(crate) fn keep(self) -> Version {
        std::mem::ManuallyDrop::new(self).version
    }
}

impl Drop for Placed<'_> {
    fn drop(&mut self) {
        self.arena.of(self.version.segment).release(self.version.segment);
    }
}

impl Memory {
    /// Writes a new row into a segment of its table, unreachable so far.
    pub(crate) fn place(
        &self,
        table: &Table,
        queue: Queue,
        new: &NewParts<'_>,
        multi: bool,
        now: Tick,
    ) -> Result<Placed<'_>, WriteError> {
        // A writer that still holds a dropped table takes no more room for it, and nobody writes by old rules.
        table.check_current()?;
        self.place_within(self.row_bytes_max, table, queue, new, multi, now)
    }

    /// Writes another copy of a row that is there. It was written by the rules of its time: neither a change of the
    /// definition nor a lower limit of a row's size since then concerns it.
    pub(crate) fn place_copy(
        &self,
        table: &Table,
        queue: Queue,
        copy: &NewParts<'_>,
        multi: bool,
        now: Tick,
    ) -> Result<Placed<'_>, WriteError> {
        if table.is_gone() {
            return Err(WriteError::TableGone);
        }
        self.place_within(usize::MAX, table, queue, copy, multi, now)
    }

    fn place_within(
        &self,
        limit: usize,
        table: &Table,
        queue: Queue,
        new: &NewParts<'_>,
        multi: bool,
        now: Tick,
    ) -> Result<Placed<'_>, WriteError> {
        let expiry = new.expiry.word();
        let parts = RowParts {
            table: table.id(),
            multi,
            stale: new.renewal.stale,
            expiry,
            lease: new.renewal.lease.or_else(|| table.renews().then_some(0)),
            client_flags: new.client_flags,
            cas: new.cas,
            key: new.key,
            payload: new.payload,
        };
        if new.key.len() > arena::MAX_KEY_BYTES {
            let limit = arena::MAX_KEY_BYTES;
            return Err(WriteError::Key(format!("key is {} bytes; the limit is {limit}", new.key.len())));
        }
        let bytes = parts.total_bytes();
        if bytes > limit {
            return Err(WriteError::TooLarge { bytes, limit });
        }
        let mut placed = self.reserve(table, queue, ttl_class(expiry, now), bytes)?;
        placed.version.expiry = expiry;
        placed.version.keep = Keep::of(new);
        self.arena.of(placed.version.location).write_row(placed.version.location, &parts);
        self.note_deadline(placed.version.segment, expiry);
        Ok(placed)
    }

    /// Reserves space in the open segment of the row's group, for a row that is not said to end.
    pub(crate) fn reserve(
        &self,
        table: &Table,
        queue: Queue,
        class: u8,
        bytes: usize,
    ) -> Result<Placed<'_>, WriteError> {
        let size = SegmentSize::of(bytes);
        for _ in 0..RESERVE_ATTEMPTS {
            if let SegmentSize::Own(_) = size {
                return self.reserve_own(table, queue, class, bytes);
            }
            let open = table.state.queues.open(queue, class, size);
            if let Some(segment) = open
                && let Some(location) = self.arena.of(segment).reserve(segment, bytes)
            {
                let version = Version { location, segment, queue, bytes, expiry: 0, keep: Keep::default() };
                let placed = Placed { arena: &self.arena, version };
                if table.state.queues.open(queue, class, size) == open {
                    return Ok(placed);
                }
                // The segment was sealed, and perhaps given away, between the look and the reservation.
                self.arena.of(location).write_filler(location, bytes);
                continue;
            }
            self.renew_open(table, queue, class, bytes, open)?;
        }
        Err(WriteError::Full)
    }

    fn reserve_own(
        &self,
        table: &Table,
        queue: Queue,
        class: u8,
        bytes: usize,
    ) -> Result<Placed<'_>, WriteError> {
        let segment = self.allocate(table, queue, class, bytes)?;
        let Some(location) = self.arena.of(segment).reserve(segment, bytes) else {
            self.discard(table, queue, segment);
            return Err(WriteError::Full);
        };
        let version = Version { location, segment, queue, bytes, expiry: 0, keep: Keep::default() };
        let placed = Placed { arena: &self.arena, version };
        self.seal(&table.state, &mut table.state.queues.lock(), segment);
        Ok(placed)
    }

    /// What a writer owes after its write, within a bound: a step of index growth, and the table's own row limit.
    pub(crate) fn after_write(&self, table: &Table, now: Tick) {
        self.grow_index();
        self.keep_to_rows(table, EVICTIONS_PER_WRITE, now);
    }

    /// Evicts up to `rows` rows of a table that is above its `max_rows`.
    pub(crate) fn keep_to_rows(&self, table: &Table, rows: usize, now: Tick) {
        let most = table.state.limits.rows_max.load(Ordering::Relaxed);
        // Mostly there is no limit, and nothing to add up.
        if most < u64::MAX && table.rows() > most && !self.is_unsettled() {
            self.evict_rows(table, rows, now);
        }
    }
}
