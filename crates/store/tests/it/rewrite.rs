//! Rows that are read and then written again: what was found out by reading them is used, and never believed when it
//! has changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use store::definition::IndexDef;
use store::value::{Value, ValueRef};
use store::{Expect, Expiry, KeyBounds, NewRow, Renewal, RowBuf, Table, WriteError};

use crate::common::{Bench, all_rows, delete, key_of, put, seed, table, values};

/// Keys that are met and written again.
const KEYS: i64 = 40;
/// Keys beside them, whose rows make segments full and sparse.
const OTHERS: i64 = 2_000;

fn indexed(bench: &Bench) -> Arc<Table> {
    let columns = [("k", "INT"), ("page", "INT"), ("body", "TEXT"), ("n", "INT")];
    let mut def = table("t", &columns, 1, &[]);
    def.indexes = vec![IndexDef::new("t_page", vec![1], false), IndexDef::new("t_n", vec![3, 0], true)];
    bench.store.create_table(def).unwrap()
}

fn row(key: i64, page: i64, n: i64) -> Vec<Value> {
    let body = "x".repeat(usize::try_from(key * 7 % 300).unwrap());
    vec![Value::Integer(key), Value::Integer(page), Value::Text(body), Value::Integer(n)]
}

fn new_row(t: &Table, row: &[Value]) -> NewRow {
    let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
    let mut payload = Vec::new();
    t.encode_payload(&values, &mut payload).unwrap();
    NewRow { payload, expiry: Expiry::Table, client_flags: 0, cas: None, renewal: Renewal::default() }
}

/// Overwrites rows beside those that are met, so that segments are sealed and emptied.
fn churn(bench: &Bench, t: &Arc<Table>, random: &mut fastrand::Rng) {
    for _ in 0..OTHERS {
        let key = KEYS + random.i64(0..OTHERS);
        bench.store.commit(&[put(t, &row(key, -1, 0), Expect::Anything)]).unwrap();
    }
}

fn met_rows(bench: &Bench, t: &Arc<Table>) -> Vec<Vec<Value>> {
    let mut rows = all_rows(&bench.store, t);
    rows.retain(|row| matches!(row[0], Value::Integer(key) if key < KEYS));
    rows
}

/// The rows by an index, sorted as [`all_rows`] are.
fn rows_by(bench: &Bench, t: &Arc<Table>, index: usize) -> Vec<Vec<Value>> {
    let view = bench.store.view();
    let mut scan = view.range(t, &t.indexes()[index], &KeyBounds::ALL, false);
    let (mut row, mut rows) = (RowBuf::new(), Vec::new());
    while scan.next(&view, &mut row).unwrap() {
        rows.push(values(t, &row));
    }
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

#[test]
fn a_row_is_written_anew_unless_it_changed_since_it_was_met() {
    let mut random = fastrand::Rng::with_seed(seed());
    let bench = Bench::new(8);
    let t = indexed(&bench);
    let mut model: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
    let mut copy = RowBuf::new();
    for step in 0..400 {
        let key = random.i64(0..KEYS);
        let bytes = key_of(&t, &[Value::Integer(key)]);
        let met = bench.store.meet(&t, &bytes, bench.store.now(), &mut copy);
        assert_eq!(met.is_some().then(|| values(&t, &copy)), model.get(&key).cloned(), "step {step}");
        let Some(met) = met else {
            let new = row(key, random.i64(0..5), step);
            bench.store.commit(&[put(&t, &new, Expect::Absent)]).unwrap();
            model.insert(key, new);
            continue;
        };
        let mut changed = true;
        match random.u8(..8) {
            0 => {
                let other = row(key, random.i64(0..5), -step);
                bench.store.commit(&[put(&t, &other, Expect::Present)]).unwrap();
                model.insert(key, other);
            }
            1 => {
                bench.store.commit(&[delete(&t, &[Value::Integer(key)], Expect::Present)]).unwrap();
                model.remove(&key);
            }
            2 => {
                bench.store.flush(&t);
                model.clear();
            }
            3 => {
                churn(&bench, &t, &mut random);
                bench.advance(Duration::from_secs(1));
                changed = false;
            }
            _ => changed = false,
        }
        let new = row(key, random.i64(0..5), step);
        let written = bench.store.rewrite(&t, &met, &copy, &new_row(&t, &new));
        assert_eq!(written.is_err(), changed, "step {step}: {written:?}");
        match written {
            Ok(_) => {
                model.insert(key, new);
            }
            Err(error) => assert_eq!(error, WriteError::Lost(vec![0])),
        }
    }
    let mut wanted: Vec<Vec<Value>> = model.into_values().collect();
    wanted.sort_by_key(|row| format!("{row:?}"));
    assert_eq!(met_rows(&bench, &t), wanted);
    let all = all_rows(&bench.store, &t);
    assert!((0..2).all(|index| rows_by(&bench, &t, index) == all), "the indexes lead to what is there");
}

#[test]
fn a_unique_value_that_is_taken_is_refused_and_nothing_changes() {
    let bench = Bench::new(8);
    let columns = [("k", "INT"), ("u", "INT")];
    let mut def = table("t", &columns, 1, &[]);
    def.indexes = vec![IndexDef::new("t_u", vec![1], true)];
    let t = bench.store.create_table(def).unwrap();
    let pair = |k, u| [Value::Integer(k), Value::Integer(u)];
    for (k, u) in [(1, 10), (2, 20)] {
        bench.store.commit(&[put(&t, &pair(k, u), Expect::Absent)]).unwrap();
    }
    let mut copy = RowBuf::new();
    let bytes = key_of(&t, &[Value::Integer(1)]);
    let met = bench.store.meet(&t, &bytes, bench.store.now(), &mut copy).unwrap();
    let taken = bench.store.rewrite(&t, &met, &copy, &new_row(&t, &pair(1, 20)));
    assert!(matches!(taken, Err(WriteError::Unique { .. })));
    assert_eq!(all_rows(&bench.store, &t), [pair(1, 10), pair(2, 20)]);
    bench.store.rewrite(&t, &met, &copy, &new_row(&t, &pair(1, 30))).unwrap();
    assert_eq!(rows_by(&bench, &t, 0), [pair(1, 30), pair(2, 20)]);
}

#[test]
fn no_addition_is_lost_among_threads() {
    const THREADS: i64 = 4;
    const ADDITIONS: i64 = 300;
    let bench = Bench::new(8);
    let t = indexed(&bench);
    let keys = [0_i64, 1, 2];
    for key in keys {
        bench.store.commit(&[put(&t, &row(key, 0, 0), Expect::Absent)]).unwrap();
    }
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (t, store, keys) = (&t, &bench.store, &keys);
            scope.spawn(move || {
                let mut copy = RowBuf::new();
                for at in 0..ADDITIONS {
                    let key = keys[usize::try_from((at + number) % 3).unwrap()];
                    let bytes = key_of(t, &[Value::Integer(key)]);
                    loop {
                        let met = store.meet(t, &bytes, store.now(), &mut copy).unwrap();
                        let ValueRef::Integer(n) = t.column(&copy, 3) else { panic!("a number") };
                        let new = row(key, n % 7, n + 1);
                        if store.rewrite(t, &met, &copy, &new_row(t, &new)).is_ok() {
                            break;
                        }
                    }
                    // Others move what was met.
                    let key = KEYS + at + number * ADDITIONS;
                    store.commit(&[put(t, &row(key, -1, 0), Expect::Anything)]).unwrap();
                }
            });
        }
    });
    let sum = |row: &Vec<Value>| if let Value::Integer(n) = row[3] { n } else { 0 };
    assert_eq!(met_rows(&bench, &t).iter().map(sum).sum::<i64>(), THREADS * ADDITIONS);
    let all = all_rows(&bench.store, &t);
    assert!((0..2).all(|index| rows_by(&bench, &t, index) == all), "the indexes lead to what is there");
}

#[test]
fn a_row_that_is_to_end_at_once_goes() {
    let bench = Bench::new(8);
    let t = indexed(&bench);
    bench.store.commit(&[put(&t, &row(1, 0, 0), Expect::Absent)]).unwrap();
    let (mut copy, bytes) = (RowBuf::new(), key_of(&t, &[Value::Integer(1)]));
    let met = bench.store.meet(&t, &bytes, bench.store.now(), &mut copy).unwrap();
    let ended = NewRow { expiry: Expiry::Now, ..new_row(&t, &row(1, 0, 1)) };
    bench.store.rewrite(&t, &met, &copy, &ended).unwrap();
    assert_eq!((all_rows(&bench.store, &t).len(), t.indexes()[0].len()), (0, 0));
    assert_eq!(bench.store.rewrite(&t, &met, &copy, &ended), Err(WriteError::Lost(vec![0])));
}
