//! A fixed number of reads in shared memory as a client's are, for counting their instructions: `cargo xtask ci
//! callgrind` runs it under valgrind. Arguments: `shared`, and how many.

#![allow(clippy::unwrap_used, reason = "a count of something that failed would be worse than none")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::definition::{ColumnDef, TableDef, TableOptions};
use store::{
    Clock, Expect, Expiry, Found, Item, ManualClock, Outcome, Reader, Store, StoreOptions, shared_path_beside,
};

/// Keys in play: few enough to fit every cache, for instructions are counted and not time.
const KEYS: usize = 1_000;
/// Bytes of each value.
const VALUE_BYTES: usize = 100;

/// The folder of the arena's files, which ends with the program.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some("shared"), Some(count)) = (arguments.next().as_deref(), arguments.next()) else {
        panic!("usage: shared_reads shared count");
    };
    let count: usize = count.parse().unwrap();
    let folder = Folder(std::env::temp_dir().join(format!("sqlcached-shared-reads-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let hands = ManualClock::new(1_800_000_000);
    let _store = filled(&folder.0.join("arena"), &hands);
    let own = [rustix::process::geteuid().as_raw()];
    let path = shared_path_beside(&folder.0.join("arena"));
    let reader = Reader::open(&path, &own, Clock::Manual(hands)).unwrap();
    let definitions = reader.definitions();
    let table = definitions.table("t").unwrap();
    let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    let mut value = Vec::with_capacity(VALUE_BYTES);
    for key in keys.iter().cycle().take(count) {
        value.clear();
        let now = reader.begin().filter(|_| reader.is_current(table)).unwrap();
        let found = reader.value(table, key, now, &mut value);
        assert!(matches!(found, Found::Hit(_)) && value.len() == VALUE_BYTES);
    }
}

/// A store with all keys in a shared table.
fn filled(arena: &Path, hands: &Arc<ManualClock>) -> Arc<Store> {
    let options = StoreOptions {
        path: Some(arena.to_owned()),
        memory_bytes: 64 << 20,
        cold: true,
        clock: Clock::Manual(Arc::clone(hands)),
        row_bytes_max: 2 << 20,
    };
    let store = Store::open(&options).unwrap().store;
    let columns = vec![ColumnDef::new("k", "TEXT").unwrap(), ColumnDef::new("v", "TEXT").unwrap()];
    let mut set = TableOptions::default();
    set.set("shared_memory", "on", &columns).unwrap();
    set.set("value", "v", &columns).unwrap();
    let table =
        store.create_table(TableDef { options: set, ..TableDef::new("t", columns, vec![0]) }).unwrap();
    let item = Item {
        value: &[b'x'; VALUE_BYTES],
        client_flags: 0,
        expiry: Expiry::Table,
        cas: None,
        lease: None,
        tags: None,
    };
    for number in 0..KEYS {
        let outcome = store.put_item(&table, &key(number), &item, Expect::Anything, store.now()).unwrap();
        assert!(matches!(outcome, Outcome::Done(_)));
    }
    store
}

fn key(number: usize) -> Vec<u8> {
    format!("key:{number:06}").into_bytes()
}
