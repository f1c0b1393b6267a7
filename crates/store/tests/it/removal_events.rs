//! Who keeps copies of a table's rows hears of each that left, and of none that did not.

use std::sync::Arc;
use std::time::Duration;

use store::value::Value;
use store::{Cause, Expect, Expiry, Table};

use crate::common::{Bench, delete, item, put, set, table};

fn watched(bench: &Bench, options: &[(&str, &str)]) -> Arc<Table> {
    let common = [("prefix", "t:"), ("value", "v"), ("notify", "gone")];
    let options: Vec<_> = common.iter().chain(options).copied().collect();
    bench.store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &options)).unwrap()
}

/// What was announced since the last call: causes and keys.
fn heard(bench: &Bench) -> Vec<(Cause, String)> {
    let departures = bench.store.take_removal_events().into_iter();
    let told = departures.map(|left| {
        assert_eq!((&*left.channel, &*left.table), ("gone", "t"));
        (left.cause, left.key.map_or_else(String::new, |key| String::from_utf8(key).unwrap()))
    });
    told.collect()
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

#[test]
fn each_way_to_leave_is_told() {
    let bench = Bench::new(16);
    let (store, table) = (&bench.store, watched(&bench, &[]));
    set(store, &table, b"a", b"1", Expiry::Never);
    set(store, &table, b"b", b"1", Expiry::At(store.tick_after(Duration::from_secs(2))));
    assert_eq!(heard(&bench), []);
    set(store, &table, b"a", b"2", Expiry::Never);
    assert_eq!(heard(&bench), [(Cause::Invalidate, "t:a".into())]);
    // What was refused changed nothing.
    store.put_item(&table, b"a", &item(b"3", Expiry::Never), Expect::Absent, store.now()).unwrap();
    assert_eq!(heard(&bench), []);
    store.delete(&table, b"a", Expect::Anything, store.now()).unwrap();
    assert_eq!(heard(&bench), [(Cause::Invalidate, "t:a".into())]);
    bench.advance(Duration::from_secs(3));
    assert_eq!(heard(&bench), [(Cause::Expire, "t:b".into())]);
    store.truncate(&table);
    assert_eq!(heard(&bench), [(Cause::Flush, String::new())]);
}

#[test]
fn a_commit_tells_of_the_rows_that_were_there() {
    let bench = Bench::new(16);
    let (store, table) = (&bench.store, watched(&bench, &[]));
    set(store, &table, b"old", b"1", Expiry::Never);
    set(store, &table, b"gone", b"1", Expiry::Never);
    let writes = [
        put(&table, &[text("old"), text("2")], Expect::Anything),
        put(&table, &[text("new"), text("2")], Expect::Anything),
        delete(&table, &[text("gone")], Expect::Anything),
    ];
    store.commit(&writes).unwrap();
    let mut told = heard(&bench);
    told.sort_by(|a, b| a.1.cmp(&b.1));
    assert_eq!(told, [(Cause::Invalidate, "t:gone".into()), (Cause::Invalidate, "t:old".into())]);
}

#[test]
fn evicted_rows_are_told_one_by_one() {
    let bench = Bench::new(16);
    let table = watched(&bench, &[("max_rows", "100")]);
    for number in 0..1_000 {
        set(&bench.store, &table, format!("{number}").as_bytes(), b"1", Expiry::Never);
    }
    bench.advance(Duration::from_secs(1));
    let told = heard(&bench);
    assert!(told.iter().all(|(cause, _)| *cause == Cause::Evict), "{told:?}");
    assert_eq!(told.len() as u64 + table.rows(), 1_000);
}

#[test]
fn more_than_can_be_named_is_the_whole_table() {
    let bench = Bench::new(64);
    let (store, table) = (&bench.store, watched(&bench, &[]));
    for _ in 0..2 {
        for number in 0..100_000 {
            set(store, &table, format!("{number}").as_bytes(), b"1", Expiry::Never);
        }
    }
    let told = heard(&bench);
    assert!(told.len() < 100_000, "{} bounded", told.len());
    assert_eq!(told.last().unwrap().0, Cause::Flush);
}

#[test]
fn a_table_without_a_channel_tells_nothing() {
    let bench = Bench::new(16);
    let def = table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("prefix", "t:"), ("value", "v")]);
    let table = bench.store.create_table(def).unwrap();
    set(&bench.store, &table, b"a", b"1", Expiry::Never);
    set(&bench.store, &table, b"a", b"2", Expiry::Never);
    bench.store.truncate(&table);
    assert_eq!(heard(&bench), []);
}
