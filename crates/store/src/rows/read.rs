//! Reads of one row by its key, without a lock: the path of memcached's commands and of point queries.

use std::cell::RefCell;
use std::sync::atomic::Ordering;

use arena::{Foreseen, Hash, Hits, Location, Lookup, PinnedRow, RowHead, RowRead, TableId};

use crate::clock::Tick;
use crate::codec::{PayloadShape, ValueSpan};
use crate::row::RowBuf;
use crate::row::meta::ItemMeta;
use crate::rows::Rows;
use crate::table::Table;

/// Lock-free attempts before a reader takes the shard lock; only a bucket being reorganised needs more than one.
pub(crate) const LOOKUP_ATTEMPTS: usize = 8;
/// Bytes of a payload copied to find where the value lies in it: descriptors and small columns.
const VALUE_HEAD_BYTES: usize = 256;

thread_local! {
    /// The beginning of a payload.
    static SPAN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Takes an item in: head first, then the value straight from the arena.
pub trait ItemSink {
    /// Writes what precedes the value and hands out the buffer that the value is appended to.
    fn open(&mut self, meta: &ItemMeta) -> &mut Vec<u8>;
    /// The value is whole.
    fn close(&mut self);
    /// The copy was torn: undoes `open` and all that was appended. `open` is called again if the item is still there.
    fn discard(&mut self);
    /// A value of so many bytes is better handed over where it lies than copied.
    #[inline]
    fn pins_from(&self) -> usize {
        usize::MAX
    }
    /// Takes a value in its place, between `open` and `close`, and lets it go with [`Rows::unpin`]. Given back, it is
    /// copied.
    #[inline]
    fn pin(&mut self, row: PinnedRow) -> Result<(), PinnedRow> {
        Err(row)
    }
    /// Whether this counts as a read of the row, for eviction and for who asks when it was last read.
    #[inline]
    fn counts(&self) -> bool {
        true
    }
}

/// What is going to be done with the row of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Its value is going to be read.
    Read,
    /// It is replaced or removed, whatever it holds.
    Replace,
    /// Anything else.
    Other,
}

/// A key whose lines are on their way.
#[derive(Clone, Copy, Debug)]
pub struct Prefetched {
    hash: Hash,
    table: TableId,
}

/// Why there is no row under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// There was none, as far as is known.
    Missing,
    /// The one that is still in memory has ended.
    Ended,
    /// It was flushed with all rows of its table.
    Flushed,
}

impl Absence {
    /// Of a row that is not live.
    #[cold]
    fn of(table: &Table, head: &RowHead) -> Self {
        // Relaxed: it tells causes apart, not the dead from the living.
        let flushed = head.stamp < table.state.emptied_below.load(Ordering::Relaxed);
        if flushed { Self::Flushed } else { Self::Ended }
    }
}

impl Rows {
    /// Copies the live row under a key. False: there is none.
    pub fn read(&self, table: &Table, key: &[u8], now: Tick, row: &mut RowBuf) -> bool {
        let hash = self.arena.of(table.id()).hash(table.id(), key);
        self.read_hashed(table, hash, key, now, row) && self.is_live(table, row.head(), now)
    }

    /// Copies the current version of a key, live or not.
    pub(crate) fn read_hashed(
        &self,
        table: &Table,
        hash: Hash,
        key: &[u8],
        now: Tick,
        row: &mut RowBuf,
    ) -> bool {
        for _ in 0..LOOKUP_ATTEMPTS {
            match self.arena.of(table.id()).lookup(hash, table.id(), key) {
                Lookup::Hit(read) => {
                    if row.load(&read) {
                        read.touch(now);
                        return true;
                    }
                }
                Lookup::Miss => return false,
                Lookup::Busy => {}
            }
        }
        let shard = self.shard(hash).lock();
        let found = self.arena.of(table.id()).find(&shard.token, hash, table.id(), key);
        found.is_some_and(|entry| self.load_stable(entry.location, row))
    }

    /// How often the row under a key was read, as eviction counts: up to 3, where 3 is three or more. A row that
    /// eviction passed over starts again. 0 where there is no row.
    pub fn hits(&self, table: &Table, key: &[u8]) -> u8 {
        let hash = self.arena.of(table.id()).hash(table.id(), key);
        match self.arena.of(table.id()).lookup(hash, table.id(), key) {
            Lookup::Hit(read) => read.slot().map_or(0, |slot| self.arena.of(slot).frequency(slot)),
            _ => 0,
        }
    }

    /// Asks memory for the index bucket of a key that is going to be looked up; [`Rows::prefetch_row`] is to follow,
    /// when the buckets of some other keys were asked for.
    #[inline]
    pub fn prefetch(&self, table: &Table, key: &[u8]) -> Prefetched {
        let hash = self.arena.of(table.id()).hash(table.id(), key);
        self.arena.of(table.id()).prefetch_bucket(hash);
        Prefetched { hash, table: table.id() }
    }

    /// Asks memory for the row whose bucket has come, as far as its use needs it. Where it stands in a further bucket,
    /// that is on its way then, and [`Rows::prefetch_further`] is to follow.
    #[inline]
    pub fn prefetch_row(&self, ahead: Prefetched, purpose: Use) -> Foreseen {
        if purpose == Use::Replace {
            arena::prefetch_line(self.shard(ahead.hash));
        }
        let foreseen = self.arena.of(ahead.table).foresee(ahead.hash, ahead.table);
        if let Foreseen::Row(location) = foreseen {
            self.prefetch_for(location, purpose);
        }
        foreseen
    }

    /// The same by the second bucket of the key.
    #[inline]
    pub fn prefetch_further(&self, ahead: Prefetched, purpose: Use) -> Foreseen {
        let Some(location) = self.arena.of(ahead.table).foresee_further(ahead.hash, ahead.table) else {
            return Foreseen::Nothing;
        };
        self.prefetch_for(location, purpose);
        Foreseen::Row(location)
    }

    #[inline]
    fn prefetch_for(&self, location: Location, purpose: Use) {
        match purpose {
            Use::Replace => self.arena.of(location).prefetch_replaced(location),
            Use::Read | Use::Other => self.arena.of(location).prefetch_location(location),
        }
    }

    /// Asks memory for the rest of a row that is going to be read.
    #[inline]
    pub fn prefetch_value(&self, row: Foreseen) {
        if let Foreseen::Row(location) = row {
            self.arena.of(location).prefetch_value(location);
        }
    }

    /// What there is to know of a live item but its value. `count`: this is a read of the row.
    pub fn look(&self, table: &Table, key: &[u8], now: Tick, count: bool) -> Option<(ItemMeta, Hits)> {
        let hash = self.arena.of(table.id()).hash(table.id(), key);
        for _ in 0..LOOKUP_ATTEMPTS {
            match self.arena.of(table.id()).lookup(hash, table.id(), key) {
                Lookup::Hit(read) => {
                    let live = self.is_live(table, read.head(), now);
                    let meta = live.then(|| ItemMeta::of(read.head(), value_len(table, &read)));
                    let hits = read.hits(now);
                    if read.is_valid() {
                        if live && count {
                            read.touch(now);
                        }
                        return meta.map(|meta| (meta, hits));
                    }
                }
                Lookup::Miss => return None,
                Lookup::Busy => {}
            }
        }
        let shard = self.shard(hash).lock();
        let entry = self.arena.of(table.id()).find(&shard.token, hash, table.id(), key)?;
        let read = self
            .arena
            .of(entry.location)
            .row(entry.location)
            .filter(|read| self.is_live(table, read.head(), now))?;
        Some((
            ItemMeta::of(read.head(), value_len(table, &read)),
            self.arena.of(entry.slot).hits(entry.slot, now),
        ))
    }

    /// Hands the value column of the live row under a key to the sink. False: there is no such row.
    #[inline]
    pub fn get_item(&self, table: &Table, key: &[u8], now: Tick, sink: &mut impl ItemSink) -> bool {
        self.find_item(table, key, now, sink).is_ok()
    }

    /// As [`Rows::get_item`], and says why there is none.
    pub fn find_item(
        &self,
        table: &Table,
        key: &[u8],
        now: Tick,
        sink: &mut impl ItemSink,
    ) -> Result<(), Absence> {
        let hash = self.arena.of(table.id()).hash(table.id(), key);
        for _ in 0..LOOKUP_ATTEMPTS {
            match self.arena.of(table.id()).lookup(hash, table.id(), key) {
                Lookup::Hit(read) => {
                    if !self.is_live(table, read.head(), now) {
                        let why = Absence::of(table, read.head());
                        if read.is_valid() {
                            return Err(why);
                        }
                        continue;
                    }
                    if self.pour(table, &read, sink) {
                        if sink.counts() {
                            read.touch(now);
                        }
                        return Ok(());
                    }
                }
                Lookup::Miss => return Err(Absence::Missing),
                Lookup::Busy => {}
            }
        }
        let shard = self.shard(hash).lock();
        let found = self.arena.of(table.id()).find(&shard.token, hash, table.id(), key);
        let read = found.and_then(|entry| self.arena.of(entry.location).row(entry.location));
        let there =
            read.is_some_and(|read| self.is_live(table, read.head(), now) && self.pour(table, &read, sink));
        if there { Ok(()) } else { Err(Absence::Missing) }
    }

    /// Hands a row's value to the sink; false if the row was torn, and the sink is as before.
    #[inline]
    fn pour(&self, table: &Table, read: &RowRead<'_>, sink: &mut impl ItemSink) -> bool {
        let head = read.head();
        let meta = |len| ItemMeta::of(head, len);
        if let Some((offset, len)) = value_span(table.layout().shape(), read) {
            if len >= sink.pins_from()
                && let Some(row) = self.arena.pin(read, offset, len)
            {
                let _head = sink.open(&meta(len));
                let Err(row) = sink.pin(row) else {
                    sink.close();
                    return true;
                };
                self.arena.unpin(row);
                sink.discard();
            }
            read.copy_payload(offset, len, sink.open(&meta(len)));
        } else {
            let mut row = RowBuf::new();
            if !row.load(read) {
                return false;
            }
            let mut text = Vec::new();
            table.write_item_value(&row, &mut text);
            sink.open(&meta(text.len())).extend_from_slice(&text);
        }
        if read.is_valid() {
            sink.close();
            return true;
        }
        sink.discard();
        false
    }

    /// The bytes of a value that is pinned.
    pub fn pinned_bytes(&self, row: &PinnedRow) -> &[u8] {
        self.arena.pinned_bytes(row)
    }

    /// Lets a value go: its memory may be given to others from here on.
    pub fn unpin(&self, row: PinnedRow) {
        self.arena.unpin(row);
    }
}

/// Bytes of a row's value as a memcached client reads it.
pub(crate) fn value_len(table: &Table, read: &RowRead<'_>) -> usize {
    if let Some((_, len)) = value_span(table.layout().shape(), read) {
        return len;
    }
    let mut row = RowBuf::new();
    let mut text = Vec::new();
    if row.load(read) {
        table.write_item_value(&row, &mut text);
    }
    text.len()
}

/// Where the value's bytes lie in the payload, if they are stored as bytes and that shows in the payload's beginning.
#[inline]
pub(crate) fn value_span(shape: &PayloadShape, read: &RowRead<'_>) -> Option<(usize, usize)> {
    let lone = shape.lone_value(read.payload_word(), read.head().payload_len);
    // By value: a row whose address is nobody's stays in registers.
    lone.or_else(|| span_behind_others(shape, *read))
}

/// As [`value_span`], where other columns precede the value.
fn span_behind_others(shape: &PayloadShape, read: RowRead<'_>) -> Option<(usize, usize)> {
    SPAN.with_borrow_mut(|head| {
        head.clear();
        read.copy_payload(0, VALUE_HEAD_BYTES, head);
        match shape.value_span(head, read.head().payload_len) {
            Ok(ValueSpan::Raw { offset, len }) => Some((offset, len)),
            _ => None,
        }
    })
}
