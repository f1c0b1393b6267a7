//! Items that are received where they are going to lie: room is reserved when their length is known, and they are
//! published as any other when their last byte has come.
//!
//! The reservation is a writer's, as every write makes one for a moment; this one lasts as long as the peer takes, so
//! all of them together are bounded. What decides whether and how the item is stored is asked at its publication: the
//! condition, the definition, the deadline, the stamp. Where anything has changed that the row was begun by, the value
//! is stored in the ordinary way from where it lies.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::{Hash, Received, RowParts};

use crate::clock::Tick;
use crate::error::WriteError;
use crate::row::request::{Expect, Expiry, Outcome};
use crate::row::version::Version;
use crate::rows::item::Item;
use crate::rows::write::{Glance, Target};
use crate::store::Store;
use crate::table::Table;
use crate::table::queue::{SegmentSize, ttl_class};

/// The segments that rows received in place hold are at most this part of the memory: a peer that stalls in the middle
/// of a value keeps its segment from being evicted, and all of them together must leave eviction enough to choose from.
const IN_PLACE_PART: u64 = 8;

/// An item whose value is still to come.
#[derive(Clone, Copy, Debug)]
pub struct ComingItem {
    /// Bytes of its value.
    pub value_bytes: usize,
    /// The client's 32 bits.
    pub client_flags: u32,
    /// When it ends, as it stands now.
    pub expiry: Expiry,
    /// A CAS value of the client's own.
    pub cas: Option<u64>,
}

/// Room for an item, and what has come of it. Dropped without having been published it leaves nothing behind.
#[derive(Debug)]
pub struct InPlace {
    store: Arc<Store>,
    table: Arc<Table>,
    hash: Hash,
    item: ComingItem,
    version: Version,
    row: arena::InPlace,
    published: bool,
}

impl InPlace {
    /// Bytes of the value.
    pub fn value_bytes(&self) -> usize {
        self.row.value_bytes()
    }

    /// Bytes of it that have not come.
    pub fn missing(&self) -> usize {
        self.row.missing()
    }

    /// Appends bytes to the value, no more than are missing.
    pub fn append(&mut self, bytes: &[u8]) {
        self.store.arena.append(&mut self.row, bytes);
    }

    /// Reads once from a socket, up to `most` bytes of what is missing; what follows the last of them goes to `spill`.
    pub fn receive(&mut self, from: BorrowedFd<'_>, most: usize, spill: &mut [u8]) -> io::Result<Received> {
        self.store.arena.receive(&mut self.row, from, most, spill)
    }

    /// What has come of the value.
    fn value(&self) -> &[u8] {
        self.store.arena.received_bytes(&self.row)
    }

    /// Whether the row as it was begun is the one to be published.
    fn serves(&self, table: &Arc<Table>, expiry: Expiry, now: Tick) -> bool {
        let (begun, wanted) = (self.item.expiry.word(), expiry.word());
        let has_place = begun == wanted || (begun != 0 && wanted != 0);
        Arc::ptr_eq(&self.table, table) && has_place && !table.has_ended(expiry, now)
    }

    fn segment_bytes(&self) -> u64 {
        segment_bytes(self.version.bytes)
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        let store = &*self.store;
        if !self.published {
            store.arena.of(self.version.location).write_filler(self.version.location, self.version.bytes);
        }
        store.arena.of(self.version.segment).release(self.version.segment);
        store.dismiss_in_place(self.segment_bytes());
        // Who noted what is dead of the segment did not know whether this row would be.
        store.note_dead(&self.table, self.version.segment);
        if self.table.is_gone() {
            store.empty_dropped(&self.table, 1);
        }
    }
}

impl Store {
    /// Reserves room for an item whose value is to come. `None`: it is to be received elsewhere and stored whole, be it
    /// that there is no room for it here, that its table computes something of it, or that it would be refused as
    /// things are.
    pub fn reserve_item(
        self: &Arc<Self>,
        table: &Arc<Table>,
        key: &[u8],
        item: &ComingItem,
        expect: Expect,
        now: Tick,
    ) -> Option<InPlace> {
        let takes_bytes =
            !table.computes() && table.identity().is_none() && table.missing_default().is_none();
        if !takes_bytes || key.len() > arena::MAX_KEY_BYTES || table.has_ended(item.expiry, now) {
            return None;
        }
        table.check_current().ok()?;
        let before = table.layout().item_before(item.value_bytes)?;
        let [first, second, _] = before.parts();
        let parts = RowParts {
            table: table.id(),
            multi: false,
            stale: false,
            expiry: item.expiry.word(),
            lease: table.renews().then_some(0),
            client_flags: item.client_flags,
            cas: item.cas,
            key,
            payload: &[first, second],
        };
        let row_bytes = parts.total_bytes_before(item.value_bytes);
        if row_bytes > self.row_bytes_max || !self.admit_in_place(segment_bytes(row_bytes)) {
            return None;
        }
        let in_place = self.begin_in_place(table, &parts, item, row_bytes, expect, now);
        if in_place.is_none() {
            self.dismiss_in_place(segment_bytes(row_bytes));
        }
        in_place
    }

    fn begin_in_place(
        self: &Arc<Self>,
        table: &Arc<Table>,
        parts: &RowParts<'_>,
        item: &ComingItem,
        row_bytes: usize,
        expect: Expect,
        now: Tick,
    ) -> Option<InPlace> {
        let hash = self.arena.of(table.id()).hash(table.id(), parts.key);
        let Glance { queue, .. } = self.glance(table, hash, parts.key, expect, now).ok()?;
        let placed = self.reserve(table, queue, ttl_class(parts.expiry, now), row_bytes).ok()?;
        let version = Version { expiry: parts.expiry, ..placed.keep() };
        self.note_deadline(version.segment, parts.expiry);
        let row = self.arena.of(version.location).begin_in_place(version.location, parts, item.value_bytes);
        let (store, table) = (Arc::clone(self), Arc::clone(table));
        Some(InPlace { store, table, hash, item: *item, version, row, published: false })
    }

    /// Stores an item whose value has come, as [`Rows::put_item`](crate::Rows::put_item) does. `table` is the one that
    /// answers to the key now.
    pub fn put_in_place(
        &self,
        table: &Arc<Table>,
        key: &[u8],
        mut in_place: InPlace,
        expiry: Expiry,
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        debug_assert!(in_place.missing() == 0, "only a whole value is stored");
        if in_place.serves(table, expiry, now) {
            let outcome = self.publish_in_place(&mut in_place, key, expiry, expect, now);
            if outcome != Err(WriteError::TableChanged) {
                drop(in_place);
                self.after_write(table, now);
                return outcome;
            }
        }
        let ComingItem { client_flags, cas, .. } = in_place.item;
        let item = Item { value: in_place.value(), client_flags, expiry, cas, lease: None, tags: None };
        self.put_item(table, key, &item, expect, now)
    }

    fn publish_in_place(
        &self,
        in_place: &mut InPlace,
        key: &[u8],
        expiry: Expiry,
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        let table = &in_place.table;
        self.checkpoint(now);
        self.await_unique(table);
        if expiry.word() != in_place.item.expiry.word() {
            in_place.version.expiry = expiry.word();
            self.arena.of(in_place.version.location).set_expiry(in_place.version.location, expiry.word());
            self.note_deadline(in_place.version.segment, expiry.word());
        }
        self.arena.finish_in_place(&in_place.row);
        // What a glance met when the value began to come says nothing any more.
        let target = Target { hash: in_place.hash, key, seen: None, copy: None };
        let outcome = self.publish(table, &target, Some(in_place.version), expect, now);
        in_place.published = matches!(outcome, Ok(Outcome::Done(_)));
        outcome
    }

    /// Counts a row received in place that holds so many bytes of segments, if there is room for it.
    fn admit_in_place(&self, bytes: u64) -> bool {
        // Relaxed: a sum that only this comparison reads.
        let held = self.in_place_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let admitted = held <= self.memory_bytes() / IN_PLACE_PART;
        if !admitted {
            self.dismiss_in_place(bytes);
        }
        admitted
    }

    fn dismiss_in_place(&self, bytes: u64) {
        self.in_place_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes of the segment that a row lies in, at most.
fn segment_bytes(row_bytes: usize) -> u64 {
    u64::from(SegmentSize::of(row_bytes).units(u64::MAX)) * arena::UNIT_BYTES as u64
}
