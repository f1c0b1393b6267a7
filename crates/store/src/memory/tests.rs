//! A copy of a row takes its place only while that very version stands there.

use std::sync::Arc;

use arena::{Hash, Lookup};

use crate::clock::{Clock, ManualClock};
use crate::row::RowBuf;
use crate::row::request::{Expect, Expiry, Outcome, Touch};
use crate::rows::item::Item;
use crate::store::{Store, StoreOptions};
use crate::table::Table;
use crate::value::ValueRef;
use crate::{BUILT_IN, TICKS_PER_SECOND};

/// Rows of this size have a run of their own, which is soon taken again for the next version.
const OWN_RUN_BYTES: usize = 300 << 10;
/// Versions after which the first place was taken again.
const VERSIONS: usize = 200;

struct Small {
    store: Arc<Store>,
    table: Arc<Table>,
    key: Vec<u8>,
    hash: Hash,
}

impl Small {
    /// A store of a few runs, and a key in its built-in table.
    fn new() -> Self {
        let clock = Clock::Manual(ManualClock::new(1_700_000_000));
        let options =
            StoreOptions { path: None, memory_bytes: 8 << 20, cold: false, clock, row_bytes_max: 1 << 20 };
        let store = Store::open(&options).unwrap().store;
        let table = Arc::clone(store.catalog().table(BUILT_IN).unwrap());
        let mut key = Vec::new();
        table.keys().encode(&[ValueRef::Text("k")], &mut key).unwrap();
        let hash = store.arena.of(table.id()).hash(table.id(), &key);
        Self { store, table, key, hash }
    }

    fn set(&self, version: usize, expiry: Expiry) {
        let mut value = format!("{version:08}").into_bytes();
        value.resize(OWN_RUN_BYTES, b'x');
        let item = Item { value: &value, client_flags: 0, expiry, cas: None, lease: None, tags: None };
        let now = self.store.now();
        let outcome = self.store.put_item(&self.table, &self.key, &item, Expect::Anything, now).unwrap();
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    }

    fn copy(&self) -> RowBuf {
        let Lookup::Hit(read) =
            self.store.arena.of(self.table.id()).lookup(self.hash, self.table.id(), &self.key)
        else {
            panic!("the row is there")
        };
        let mut row = RowBuf::new();
        assert!(row.load(&read));
        row
    }

    /// A copy of the first version, and the newest one, which stands where the first one stood.
    fn again(&self, expiry: Expiry) -> (RowBuf, RowBuf) {
        self.set(0, expiry);
        let first = self.copy();
        for version in 1..VERSIONS {
            self.set(version, expiry);
            let newest = self.copy();
            if newest.location() == first.location() {
                return (first, newest);
            }
        }
        panic!("the place was not taken again");
    }

    fn assert_newest(&self, newest: &RowBuf) {
        let now = self.copy();
        assert_eq!((now.stamp(), now.expiry()), (newest.stamp(), newest.expiry()));
        assert!(now.renewal() == newest.renewal() && now.payload() == newest.payload());
    }
}

/// `ALTER` copied the first version; the copy took the place of a later one, and every write in between was undone.
#[test]
fn a_rewritten_row_takes_no_later_versions_place() {
    let small = Small::new();
    let (first, newest) = small.again(Expiry::Table);
    let done = small.store.rewrite_row(&small.table, small.hash, &first, first.payload());
    assert_eq!(done, Ok(false));
    small.assert_newest(&newest);
}

/// A lease makes room for itself in a copy of the row, which is as old as the copy of `ALTER`.
#[test]
fn a_leased_copy_takes_no_later_versions_place() {
    let small = Small::new();
    let (first, newest) = small.again(Expiry::Table);
    let now = small.store.now();
    assert!(!small.store.lease_copy(&small.table, small.hash, &first, now + 10, now));
    small.assert_newest(&newest);
}

/// A row that is touched where it stands must be the one that was read.
#[test]
fn a_touch_changes_no_later_version() {
    let small = Small::new();
    let second = u32::try_from(TICKS_PER_SECOND).unwrap();
    let (first, newest) = small.again(Expiry::At(20 * second));
    let now = small.store.now();
    let touch = Touch { expect: Expect::Anything, expiry: Expiry::At(30 * second), lease: None };
    assert_eq!(small.store.touch_in_place(&small.table, &first, &touch, now), None);
    small.assert_newest(&newest);
}

/// What compaction and eviction copy stands in a closed segment. They ask all the same.
#[test]
fn a_moved_row_takes_no_later_versions_place() {
    let small = Small::new();
    let (first, newest) = small.again(Expiry::Table);
    let placed = {
        let payload = [first.payload()];
        let parts = super::copy_of(&first, &payload);
        let queue = small.store.queue_of(first.location());
        small.store.place_copy(&small.table, queue, &parts, false, small.store.now()).unwrap()
    };
    let mut shard = small.store.shard(small.hash).lock();
    assert!(small.store.relocate(&mut shard, &small.table, small.hash, &first, &placed.version).is_none());
    small.store.arena.of(placed.version.location).write_filler(placed.version.location, placed.version.bytes);
    drop(shard);
    drop(placed);
    small.assert_newest(&newest);
}
