//! A store that ends without a word is served by the next one.

use std::path::PathBuf;
use std::time::Duration;

use store::definition::IndexDef;
use store::value::Value;
use store::{BUILT_IN, Expect, Expiry, ManualClock, Start, Store};

use crate::common::{all_rows, delete, get, options, put, set, table};

pub(crate) struct TempArena(pub(crate) PathBuf);

impl TempArena {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sqlcached-store-{}-{name}.arena", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for TempArena {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn rows_definitions_and_deadlines_outlive_the_process() {
    let file = TempArena::new("warm");
    let hands = ManualClock::new(1_700_000_000);
    let options = options(Some(file.0.clone()), 16, &hands);
    let expected = {
        let store = Store::open(&options).unwrap().store;
        let catalog = store.catalog();
        let built_in = catalog.table(BUILT_IN).unwrap();
        set(&store, built_in, b"stays", b"1", Expiry::Table);
        set(&store, built_in, b"goes", b"1", Expiry::At(store.tick_after(Duration::from_secs(5))));
        set(&store, built_in, b"deleted", b"1", Expiry::Table);
        store.delete(built_in, b"deleted", Expect::Anything, store.now()).unwrap();
        let mut def = table("t", &[("a", "INT"), ("b", "INT"), ("c", "TEXT")], 2, &[]);
        def.indexes = vec![IndexDef::new("t_c", vec![2], false)];
        let t = store.create_table(def).unwrap();
        let row = |n: i64| [Value::Integer(n), Value::Integer(n * 2), Value::Text(format!("c{}", n % 7))];
        let all: Vec<_> = (0..500).map(|n| put(&t, &row(n), Expect::Absent)).collect();
        store.commit(&all).unwrap();
        let some: Vec<_> = (0..100).map(|n| delete(&t, &row(n * 3)[..2], Expect::Present)).collect();
        store.commit(&some).unwrap();
        all_rows(&store, &t)
    };
    hands.advance(Duration::from_secs(6));
    let opened = Store::open(&options).unwrap();
    assert!(matches!(opened.start, Start::Warm { .. }), "{:?}", opened.start);
    let store = opened.store;
    let catalog = store.catalog();
    let built_in = catalog.table(BUILT_IN).unwrap();
    assert_eq!(get(&store, built_in, b"stays").as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&store, built_in, b"goes"), None);
    assert_eq!(get(&store, built_in, b"deleted"), None);
    let t = catalog.table("t").unwrap();
    assert_eq!(all_rows(&store, t), expected);
    let recovered = store.recover();
    assert_eq!((recovered.dropped, recovered.complete), (0, true));
    let catalog = store.catalog();
    let t = catalog.table("t").unwrap();
    assert!(t.indexes().iter().all(|index| index.len() == expected.len() as u64));
    set(&store, built_in, b"new", b"1", Expiry::Table);
    assert!(get(&store, built_in, b"new").is_some());
}

#[test]
fn a_flush_outlives_the_process() {
    let file = TempArena::new("flush");
    let hands = ManualClock::new(1_700_000_000);
    let options = options(Some(file.0.clone()), 16, &hands);
    {
        let store = Store::open(&options).unwrap().store;
        let catalog = store.catalog();
        set(&store, catalog.table(BUILT_IN).unwrap(), b"a", b"1", Expiry::Table);
        store.flush_reachable(None);
    }
    let store = Store::open(&options).unwrap().store;
    let catalog = store.catalog();
    assert_eq!(get(&store, catalog.table(BUILT_IN).unwrap(), b"a"), None);
}

/// A flush in the future stood in the process only: one that ended before the moment forgot what it had acknowledged.
#[test]
fn a_flush_in_the_future_outlives_the_process() {
    for seconds_down in [0, 60] {
        let file = TempArena::new("future-flush");
        let hands = ManualClock::new(1_700_000_000);
        let options = options(Some(file.0.clone()), 16, &hands);
        {
            let store = Store::open(&options).unwrap().store;
            set(&store, store.catalog().table(BUILT_IN).unwrap(), b"a", b"1", Expiry::Table);
            store.flush_reachable(Some(store.tick_after(Duration::from_secs(5))));
        }
        hands.advance(Duration::from_secs(seconds_down));
        let opened = Store::open(&options).unwrap();
        assert!(matches!(opened.start, Start::Warm { .. }), "{:?}", opened.start);
        let store = opened.store;
        let catalog = store.catalog();
        let built_in = catalog.table(BUILT_IN).unwrap();
        assert_eq!(get(&store, built_in, b"a").is_some(), seconds_down == 0);
        // Definitions that change meanwhile leave it as it is.
        store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[])).unwrap();
        set(&store, built_in, b"b", b"1", Expiry::Table);
        hands.advance(Duration::from_secs(6));
        set(&store, built_in, b"c", b"1", Expiry::Table);
        let left = [&b"a"[..], b"b", b"c"].map(|key| get(&store, built_in, key).is_some());
        assert_eq!(left, [false, seconds_down != 0, true]);
        drop(store);
        let store = Store::open(&options).unwrap().store;
        let catalog = store.catalog();
        let built_in = catalog.table(BUILT_IN).unwrap();
        let left = [&b"a"[..], b"b", b"c"].map(|key| get(&store, built_in, key).is_some());
        assert_eq!(left, [false, seconds_down != 0, true], "the next process knows what was carried out");
    }
}

/// Rows that a relaxed `ttl` had ended were served again by the next process: their age mark was not in the arena.
#[test]
fn what_expired_under_an_earlier_rule_stays_dead_in_the_next_process() {
    let file = TempArena::new("aged");
    let hands = ManualClock::new(1_700_000_000);
    let options = options(Some(file.0.clone()), 16, &hands);
    {
        let store = Store::open(&options).unwrap().store;
        let def = table(
            "t",
            &[("k", "TEXT"), ("v", "TEXT")],
            1,
            &[("ttl", "1 s"), ("prefix", "t:"), ("value", "v")],
        );
        let t = store.create_table(def).unwrap();
        set(&store, &t, b"old", b"1", Expiry::Table);
        hands.advance(Duration::from_secs(2));
        store.set_options("t", &mut |options, _| options.reset("ttl")).unwrap();
        set(&store, &t, b"new", b"1", Expiry::Table);
    }
    let store = Store::open(&options).unwrap().store;
    let catalog = store.catalog();
    let t = catalog.table("t").unwrap();
    assert_eq!(get(&store, t, b"old"), None);
    assert_eq!(get(&store, t, b"new").as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_cold_start_is_cold() {
    let file = TempArena::new("cold");
    let hands = ManualClock::new(1_700_000_000);
    let mut options = options(Some(file.0.clone()), 16, &hands);
    {
        let store = Store::open(&options).unwrap().store;
        let catalog = store.catalog();
        set(&store, catalog.table(BUILT_IN).unwrap(), b"a", b"1", Expiry::Table);
    }
    options.cold = true;
    let opened = Store::open(&options).unwrap();
    assert!(matches!(opened.start, Start::Cold { .. }));
    let catalog = opened.store.catalog();
    assert_eq!(get(&opened.store, catalog.table(BUILT_IN).unwrap(), b"a"), None);
}

#[test]
fn a_second_store_is_refused_while_the_first_lives() {
    let file = TempArena::new("locked");
    let hands = ManualClock::new(1_700_000_000);
    let options = options(Some(file.0.clone()), 16, &hands);
    let _first = Store::open(&options).unwrap();
    assert!(Store::open(&options).is_err());
}
