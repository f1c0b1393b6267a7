//! Values that are sent from where they lie, and the rows that move and go meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use store::{BUILT_IN, Expiry, ItemMeta, ItemSink, PinnedRow, Store, Table};

use crate::common::{Bench, get, seed, set};

/// Holds a value in place of copying it.
#[derive(Default)]
struct Pinning {
    copied: Vec<u8>,
    pinned: Option<PinnedRow>,
}

impl ItemSink for Pinning {
    fn open(&mut self, _meta: &ItemMeta) -> &mut Vec<u8> {
        &mut self.copied
    }
    fn close(&mut self) {}
    fn discard(&mut self) {
        self.copied.clear();
    }
    fn pins_from(&self) -> usize {
        4_096
    }
    fn pin(&mut self, row: PinnedRow) -> Result<(), PinnedRow> {
        self.pinned = Some(row);
        Ok(())
    }
}

fn pinned_row(store: &Store, table: &Table, key: &[u8]) -> Option<Pinning> {
    let mut sink = Pinning::default();
    store.get_item(table, key, store.now(), &mut sink).then_some(sink)
}

#[test]
fn a_pinned_value_stays_while_its_row_is_replaced_flushed_and_its_memory_wanted() {
    let bench = Bench::new(16);
    let store = &bench.store;
    let catalog = store.catalog();
    let t = catalog.table(BUILT_IN).unwrap();
    let (filler, after) = (vec![b'v'; 20_000], vec![b'w'; 300_000]);
    for bytes in [4_096, 10_000, 100_000, 400_000] {
        let value: Vec<u8> = (0..bytes).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect();
        set(store, t, b"pinned", &value, Expiry::Table);
        let mut sink = pinned_row(store, t, b"pinned").unwrap();
        let row = sink.pinned.take().expect("long enough to be pinned");
        assert!(sink.copied.is_empty() && row.byte_count() == bytes);
        set(store, t, b"pinned", b"another", Expiry::Table);
        for n in 0..4_000 {
            set(store, t, format!("{n}").as_bytes(), &filler, Expiry::Table);
        }
        store.flush(t);
        bench.advance(std::time::Duration::from_secs(1));
        set(store, t, b"after", &after, Expiry::Table);
        assert!(*store.pinned_bytes(&row) == *value, "{bytes} bytes");
        store.unpin(row);
        // Nothing stays behind: all that was flushed comes back.
        store.flush(t);
        bench.advance(std::time::Duration::from_secs(1));
        bench.advance(std::time::Duration::from_secs(1));
        let usage = store.usage();
        assert!(usage.segment_bytes < 2 << 20, "{usage:?}");
    }
}

/// `DROP` gave up on memory that somebody held a moment too long, and nobody came back for it before the next start.
#[test]
fn a_dropped_table_gives_back_what_was_pinned() {
    let bench = Bench::new(16);
    let store = &bench.store;
    let def =
        crate::common::table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("prefix", "t:"), ("value", "v")]);
    let before = store.usage().segment_bytes;
    let t = store.create_table(def).unwrap();
    set(store, &t, b"t:pinned", &vec![b'x'; 100_000], Expiry::Table);
    let row = pinned_row(store, &t, b"t:pinned").unwrap().pinned.expect("long enough to be pinned");
    store.drop_table("t").unwrap();
    bench.advance(std::time::Duration::from_secs(1));
    assert!(t.stats().segment_bytes > 0, "it is pinned");
    store.unpin(row);
    bench.advance(std::time::Duration::from_secs(1));
    assert_eq!((t.stats().segment_bytes, store.usage().segment_bytes), (0, before));
}

#[test]
fn a_short_value_is_copied() {
    let bench = Bench::new(16);
    let catalog = bench.store.catalog();
    let t = catalog.table(BUILT_IN).unwrap();
    set(&bench.store, t, b"short", &[b's'; 4_095], Expiry::Table);
    let sink = pinned_row(&bench.store, t, b"short").unwrap();
    assert!(sink.pinned.is_none() && sink.copied == [b's'; 4_095]);
}

/// A value that tells whether it is whole: every byte is the same.
fn uniform(random: &mut fastrand::Rng) -> Vec<u8> {
    vec![random.u8(..); random.usize(4_096..60_000)]
}

#[test]
fn pinned_values_are_whole_while_others_write_and_evict() {
    let seed = seed();
    let bench = Bench::new(16);
    let (done, pinned) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (store, done, pinned) = (&bench.store, &done, &pinned);
        let reader = move |seed: u64| {
            let mut random = fastrand::Rng::with_seed(seed);
            let catalog = store.catalog();
            let t = catalog.table(BUILT_IN).unwrap();
            while !done.load(Ordering::Relaxed) {
                let rows: Vec<PinnedRow> = (0..random.usize(1..8))
                    .filter_map(|_| pinned_row(store, t, format!("{}", random.u8(..)).as_bytes())?.pinned)
                    .collect();
                for row in rows {
                    let bytes = store.pinned_bytes(&row);
                    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "torn");
                    assert!(bytes.len() >= 4_096);
                    store.unpin(row);
                    pinned.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let readers = [1, 2].map(|number| scope.spawn(move || reader(seed ^ number)));
        let mut random = fastrand::Rng::with_seed(seed);
        let catalog = store.catalog();
        let t = catalog.table(BUILT_IN).unwrap();
        for n in 0..6_000 {
            set(store, t, format!("{}", random.u8(..)).as_bytes(), &uniform(&mut random), Expiry::Table);
            if n % 500 == 0 {
                store.tick();
            }
            // What fills the memory besides, so that segments are evicted and not only compacted.
            set(store, t, format!("filler {n}").as_bytes(), &[0; 3_000], Expiry::Table);
        }
        while pinned.load(Ordering::Relaxed) == 0 {
            set(store, t, b"0", &uniform(&mut random), Expiry::Table);
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    assert!(bench.store.usage().evicted > 0);
}

#[test]
fn rows_written_over_and_over_outlive_the_emptying_of_their_segments() {
    let mut random = fastrand::Rng::with_seed(seed());
    // Room for several times what lives: nothing is evicted, sparse segments are emptied all the same.
    let bench = Bench::new(64);
    let catalog = bench.store.catalog();
    let t = catalog.table(BUILT_IN).unwrap();
    let mut model: HashMap<u16, Vec<u8>> = HashMap::new();
    let mut taken = 0;
    for n in 0..200_000_u32 {
        let key = random.u16(0..5_000);
        let text = format!("key {key}");
        if random.u8(..) < 8 {
            let found =
                bench.store.delete(t, text.as_bytes(), store::Expect::Anything, bench.store.now()).unwrap();
            assert_eq!(matches!(found, store::Outcome::Done(_)), model.remove(&key).is_some());
            continue;
        }
        let value = vec![random.u8(..); random.usize(0..1_000)];
        set(&bench.store, t, text.as_bytes(), &value, Expiry::Table);
        taken += value.len();
        model.insert(key, value);
        if n % 20_000 == 0 {
            bench.store.tick();
        }
    }
    let usage = bench.store.usage();
    assert!(usage.evicted == 0 && taken as u64 > usage.segment_bytes, "memory was used again: {usage:?}");
    assert_eq!(usage.rows, model.len() as u64);
    for key in 0..5_000 {
        assert_eq!(
            get(&bench.store, t, format!("key {key}").as_bytes()).as_ref(),
            model.get(&key),
            "key {key}"
        );
    }
}
