//! No row is served past its time, none disappears before it.

use std::time::Duration;

use store::{BUILT_IN, Expiry};

use crate::common::{Bench, get, set, table};

#[test]
fn a_row_ends_at_its_tick() {
    let bench = Bench::new(16);
    let catalog = bench.store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    set(&bench.store, table, b"a", b"1", Expiry::At(bench.store.tick_after(Duration::from_secs(2))));
    bench.hands.advance(Duration::from_millis(1_999));
    assert!(get(&bench.store, table, b"a").is_some());
    bench.hands.advance(Duration::from_millis(64));
    assert!(get(&bench.store, table, b"a").is_none());
}

#[test]
fn a_table_ttl_ends_rows_without_a_deadline_of_their_own() {
    let bench = Bench::new(16);
    let def =
        table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("ttl", "10 s"), ("prefix", "t:"), ("value", "v")]);
    let table = bench.store.create_table(def).unwrap();
    set(&bench.store, &table, b"early", b"1", Expiry::Table);
    set(&bench.store, &table, b"long", b"1", Expiry::At(bench.store.tick_after(Duration::from_mins(1))));
    set(&bench.store, &table, b"ever", b"1", Expiry::Never);
    bench.advance(Duration::from_secs(5));
    set(&bench.store, &table, b"late", b"1", Expiry::Table);
    bench.advance(Duration::from_millis(4_900));
    assert!(get(&bench.store, &table, b"early").is_some());
    bench.advance(Duration::from_millis(200));
    assert!(get(&bench.store, &table, b"early").is_none());
    assert!(get(&bench.store, &table, b"late").is_some());
    bench.advance(Duration::from_secs(5));
    assert!(get(&bench.store, &table, b"late").is_none());
    assert!(get(&bench.store, &table, b"long").is_some() && get(&bench.store, &table, b"ever").is_some());
    bench.advance(Duration::from_mins(10));
    assert!(get(&bench.store, &table, b"long").is_none() && get(&bench.store, &table, b"ever").is_some());
}

#[test]
fn what_expired_does_not_come_back_when_the_rule_is_relaxed() {
    let bench = Bench::new(16);
    let def =
        table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("ttl", "1 s"), ("prefix", "t:"), ("value", "v")]);
    let old = bench.store.create_table(def).unwrap();
    set(&bench.store, &old, b"a", b"1", Expiry::Table);
    bench.advance(Duration::from_secs(2));
    assert!(get(&bench.store, &old, b"a").is_none());
    bench.store.set_options("t", &mut |options, _| options.reset("ttl")).unwrap();
    let catalog = bench.store.catalog();
    assert!(get(&bench.store, catalog.table("t").unwrap(), b"a").is_none());
}

#[test]
fn expired_memory_comes_back_without_reads() {
    let bench = Bench::new(16);
    let catalog = bench.store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    let deadline = Expiry::At(bench.store.tick_after(Duration::from_secs(30)));
    for n in 0..20_000 {
        set(&bench.store, table, format!("k{n}").as_bytes(), &[b'x'; 100], deadline);
    }
    let before = bench.store.usage().segment_bytes;
    bench.advance(Duration::from_secs(31));
    let after = bench.store.usage().segment_bytes;
    assert!(after * 4 < before, "{before} bytes before, {after} after");
    assert_eq!(bench.store.usage().rows, 0);
}

#[test]
fn a_flush_in_the_future_takes_what_is_there_then() {
    let bench = Bench::new(16);
    let catalog = bench.store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    set(&bench.store, table, b"a", b"1", Expiry::Table);
    bench.store.flush_reachable(Some(bench.store.tick_after(Duration::from_secs(5))));
    bench.advance(Duration::from_secs(3));
    assert!(get(&bench.store, table, b"a").is_some());
    set(&bench.store, table, b"b", b"1", Expiry::Table);
    bench.advance(Duration::from_secs(3));
    assert!(get(&bench.store, table, b"a").is_none() && get(&bench.store, table, b"b").is_none());
    set(&bench.store, table, b"c", b"1", Expiry::Table);
    assert!(get(&bench.store, table, b"c").is_some());
}
