//! What left the tables that name a channel (`WITH (notify = '...')`), for clients that keep copies of their rows.
//!
//! A removal is noted after the row can no longer be read, under the lock that removed it; those of a commit of many
//! rows after its publication. So whoever hears of one and reads again reads what came after it. The engine fetches
//! the events at each tick and sends them to the listeners.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::limits::REMOVALS_WAITING_BYTES_MAX;
use crate::table::Table;

/// Bytes that one event takes beside its key.
const EVENT_BYTES: usize = 96;

/// Why a row left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Somebody removed, replaced or changed it.
    Invalidate,
    /// Its time came.
    Expire,
    /// Room was needed.
    Evict,
    /// Somebody removed all rows of the table, or too many left at once to name them.
    Flush,
}

impl Cause {
    /// As in the announcement.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalidate => "invalidate",
            Self::Expire => "expire",
            Self::Evict => "evict",
            Self::Flush => "flush",
        }
    }
}

/// A row that left, or all rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovalEvent {
    /// Where listeners wait for it.
    pub channel: Arc<str>,
    /// The table's name.
    pub table: Arc<str>,
    /// The key as memcached clients write it, with the table's prefix. `None`: all rows.
    pub key: Option<Vec<u8>>,
    /// Why.
    pub cause: Cause,
}

/// Removal events that nobody fetched yet.
#[derive(Debug, Default)]
pub(crate) struct RemovalEvents {
    /// Taken for a push or a swap, and last: after any shard's lock.
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    list: Vec<RemovalEvent>,
    bytes: usize,
}

impl RemovalEvents {
    /// Notes that a row left. Costs a table without a channel one comparison.
    #[inline]
    pub(crate) fn note(&self, table: &Table, key: impl FnOnce(&mut Vec<u8>), cause: Cause) {
        if table.def().options.notify.is_some() {
            let mut stored = Vec::new();
            key(&mut stored);
            self.push(table, Some(&stored), cause);
        }
    }

    /// Notes that all rows of a table left.
    pub(crate) fn note_all(&self, table: &Table) {
        self.push(table, None, Cause::Flush);
    }

    /// What left since the last call.
    pub(crate) fn take(&self) -> Vec<RemovalEvent> {
        std::mem::take(&mut *self.waiting.lock()).list
    }

    #[cold]
    fn push(&self, table: &Table, key: Option<&[u8]>, cause: Cause) {
        let options = &table.def().options;
        let Some(channel) = &options.notify else { return };
        let mut waiting = self.waiting.lock();
        let key = key.filter(|_| waiting.bytes < REMOVALS_WAITING_BYTES_MAX);
        let text = key.and_then(|key| {
            let mut text =
                options.prefix.as_ref().map_or_else(Vec::new, |prefix| prefix.clone().into_bytes());
            table.keys().to_text(key, &mut text).ok().map(|()| text)
        });
        let cause = if text.is_some() { cause } else { Cause::Flush };
        let last_of_table = |last: &RemovalEvent| last.cause == Cause::Flush && *last.table == *table.name();
        if text.is_none() && waiting.list.last().is_some_and(last_of_table) {
            return;
        }
        waiting.bytes += text.as_ref().map_or(0, Vec::len) + EVENT_BYTES;
        let (channel, table) = (channel.as_str().into(), table.name().into());
        waiting.list.push(RemovalEvent { channel, table, key: text, cause });
    }
}
