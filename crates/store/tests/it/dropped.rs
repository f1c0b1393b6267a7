//! Tables that are dropped under those who use them, and what their numbers do then.

use std::sync::Arc;

use store::definition::IndexDef;
use store::value::Value;
use store::{Expect, Expiry, Outcome, ReadError, RowBuf, Store, TABLES_MAX, Table, WriteError};

use crate::common::{Bench, delete, get, item, key_of, put, set, table, values};

/// Rows of the table that is dropped: more than one batch of a scan.
const ROWS: i64 = 5_000;

fn salaries(store: &Store) -> Arc<Table> {
    let def = table("salaries", &[("k", "TEXT"), ("n", "INT")], 1, &[("value", "n")]);
    store.create_table(def).unwrap();
    store.create_index("salaries", IndexDef::new("by_n", vec![1], false)).unwrap();
    let made = Arc::clone(store.catalog().table("salaries").unwrap());
    for n in 0..ROWS {
        let row = [Value::Text(format!("a{n}")), Value::Integer(n)];
        store.commit(&[put(&made, &row, Expect::Absent)]).unwrap();
    }
    made
}

fn secrets(store: &Store) -> Arc<Table> {
    let columns = [("k", "TEXT"), ("password", "TEXT"), ("x", "INT")];
    let made = store.create_table(table("secrets", &columns, 1, &[])).unwrap();
    for n in 0..2_000 {
        let row = [Value::Text(format!("b{n}")), Value::Text(format!("pw{n}")), Value::Integer(-n)];
        store.commit(&[put(&made, &row, Expect::Absent)]).unwrap();
    }
    made
}

/// Has every private number rest with somebody but that of the built-in table, and that of a table which was dropped
/// before: the next table takes the latter. Number 0 is no table.
fn use_up_numbers(store: &Store) -> Vec<Arc<Table>> {
    let numbers = usize::from(TABLES_MAX / 2) - 3;
    let make = |_| {
        let made = store.create_table(table("t", &[("k", "INT")], 1, &[])).unwrap();
        store.drop_table("t").unwrap();
        made
    };
    (0..numbers).map(make).collect()
}

/// Reads on where a scan stands, to its end or its failure; what it returned must not be another table's.
fn read_on(
    mut next: impl FnMut(&mut RowBuf) -> Result<bool, ReadError>,
    of: &Table,
) -> Result<(), ReadError> {
    let mut row = RowBuf::new();
    while next(&mut row)? {
        let got = values(of, &row);
        assert!(matches!(&got[0], Value::Text(key) if key.starts_with('a')), "another table's row: {got:?}");
    }
    Ok(())
}

/// The number of a dropped table went to the next one at once. A scan that was under way then returned the rows of that
/// one, read by the wrong definition: passwords as salaries. A `get` by the old handle found them too.
#[test]
fn whoever_reads_a_dropped_table_meets_no_row_of_the_table_that_has_its_number() {
    for used_up in [false, true] {
        let bench = Bench::new(32);
        let store = &bench.store;
        let old = salaries(store);
        let view = store.view();
        let (mut scan, mut row) = (view.scan(&old), RowBuf::new());
        let mut range = view.range(&old, &old.indexes()[0], &store::KeyBounds::ALL, false);
        assert!(scan.next(&view, &mut row).unwrap());
        assert!(range.next(&view, &mut row).unwrap());
        store.drop_table("salaries").unwrap();
        let others = if used_up { use_up_numbers(store) } else { Vec::new() };
        let new = secrets(store);
        // With a number left, one that somebody still has rests; with none left, it is the one that rested longest.
        assert_eq!(new.id() == old.id(), used_up, "{} tables hold their numbers", others.len());
        assert_eq!(read_on(|row| scan.next(&view, row), &old), Err(ReadError::SnapshotTooOld));
        assert_eq!(read_on(|row| range.next(&view, row), &old), Err(ReadError::SnapshotTooOld));
        let key = key_of(&old, &[Value::from("b7")]);
        for view in [&view, &store.view()] {
            assert_eq!(view.get(&old, &key, &mut row), Err(ReadError::SnapshotTooOld));
        }
        assert_eq!(get(store, &old, b"b7"), None);
        assert!(!store.read(&old, &key, store.now(), &mut row));
        assert!(store.look(&old, b"b7", store.now(), false).is_none());
    }
}

/// Nor does anybody write it.
#[test]
fn nobody_writes_a_dropped_table_nor_the_one_that_has_its_number() {
    let bench = Bench::new(32);
    let store = &bench.store;
    let old =
        store.create_table(table("old", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("value", "v")])).unwrap();
    store.drop_table("old").unwrap();
    let _others = use_up_numbers(store);
    let new =
        store.create_table(table("new", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("value", "v")])).unwrap();
    assert_eq!(new.id(), old.id());
    set(store, &new, b"k", b"new", Expiry::Table);
    let now = store.now();
    let gone = |outcome: Result<Outcome, WriteError>| assert_eq!(outcome.unwrap_err(), WriteError::TableGone);
    gone(store.put_item(&old, b"k", &item(b"old", Expiry::Table), Expect::Anything, now));
    gone(store.delete(&old, b"k", Expect::Anything, now));
    let row = [Value::from("k"), Value::from("old")];
    for list in [
        vec![put(&old, &row, Expect::Anything)],
        vec![
            put(&old, &row, Expect::Anything),
            put(&old, &[Value::from("l"), Value::from("old")], Expect::Anything),
        ],
        vec![
            delete(&old, &[Value::from("k")], Expect::Anything),
            delete(&old, &[Value::from("l")], Expect::Anything),
        ],
    ] {
        assert_eq!(store.commit(&list).unwrap_err(), WriteError::TableGone);
    }
    assert!(!matches!(store.touch(&old, b"k", Expiry::At(now + 1), now), Ok(Outcome::Done(_))));
    assert_eq!(get(store, &new, b"k").as_deref(), Some(&b"new"[..]));
    assert_eq!(new.rows(), 1);
}

/// A definition that is dropped and made again, as migrations do, takes numbers in turn and runs out of none.
#[test]
fn numbers_of_dropped_tables_do_not_run_out() {
    let bench = Bench::new(32);
    let store = &bench.store;
    let (mut first, mut turns) = (None, 0);
    for _ in 0..2 * usize::from(TABLES_MAX) {
        let made = store.create_table(table("t", &[("k", "INT"), ("v", "TEXT")], 1, &[])).unwrap();
        store.commit(&[put(&made, &[Value::Integer(1), Value::from("v")], Expect::Absent)]).unwrap();
        let first = *first.get_or_insert_with(|| made.id());
        turns += usize::from(first == made.id());
        drop(made);
        store.drop_table("t").unwrap();
    }
    assert!((4..=5).contains(&turns), "a number comes back after all others: {turns} times");
}

/// A table that goes to the other file is another one; who has the one before reads and writes nothing of it.
#[test]
fn whoever_has_a_table_before_it_changed_its_file_meets_no_row() {
    let file = crate::restart::TempArena::new("changed");
    let hands = store::ManualClock::new(1_700_000_000);
    let store = Store::open(&crate::common::options(Some(file.0.clone()), 32, &hands)).unwrap().store;
    let old = salaries(&store);
    let view = store.view();
    let (mut scan, mut row) = (view.scan(&old), RowBuf::new());
    assert!(scan.next(&view, &mut row).unwrap());
    for shared in ["on", "off", "on", "off"] {
        store
            .set_options("salaries", &mut |options, columns| options.set("shared_memory", shared, columns))
            .unwrap();
    }
    let new = Arc::clone(store.catalog().table("salaries").unwrap());
    assert_ne!(new.id(), old.id());
    store.commit(&[put(&new, &[Value::from("b7"), Value::Integer(7)], Expect::Absent)]).unwrap();
    assert_eq!(read_on(|row| scan.next(&view, row), &old), Err(ReadError::SnapshotTooOld));
    assert_eq!(get(&store, &old, b"b7"), None);
    assert_eq!(get(&store, &new, b"b7").as_deref(), Some(&b"7"[..]));
    let _ = std::fs::remove_file(store::shared_path_beside(&file.0));
    let _ = std::fs::remove_file(store::hits_path(&store::shared_path_beside(&file.0)));
}
