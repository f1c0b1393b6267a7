//! A transaction's list laid over the store, against a map that is changed at once.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use store::definition::IndexDef;
use store::value::Value;
use store::{
    Change, Expect, Expiry, KeyBounds, Moved, NewRow, RowBuf, Table, View, Write, WriteError, WriteSet,
};

use crate::common::{Bench, all_rows, delete, key_of, put, seed, table, values};

const KEYS: i64 = 60;
const GROUPS: i64 = 6;
const STEPS: usize = 3_000;

/// Key and group of each row.
type Model = BTreeMap<i64, i64>;

fn grouped(bench: &Bench) -> Arc<Table> {
    let mut def = table("t", &[("k", "INT"), ("g", "INT")], 1, &[]);
    def.indexes = vec![IndexDef::new("t_g", vec![1], false)];
    bench.store.create_table(def).unwrap()
}

fn row(k: i64, g: i64) -> [Value; 2] {
    [Value::Integer(k), Value::Integer(g)]
}

fn integers(t: &Table, row: &RowBuf) -> (i64, i64) {
    match values(t, row)[..] {
        [Value::Integer(k), Value::Integer(g)] => (k, g),
        ref other => panic!("{other:?}"),
    }
}

fn scanned(view: &View<'_>, t: &Arc<Table>) -> Model {
    let (mut scan, mut buf, mut rows) = (view.scan(t), RowBuf::new(), Model::new());
    while scan.next(view, &mut buf).unwrap() {
        let (k, g) = integers(t, &buf);
        assert_eq!(rows.insert(k, g), None, "row {k} came twice");
    }
    rows
}

fn ranged(view: &View<'_>, t: &Arc<Table>, bounds: &KeyBounds, reverse: bool) -> Vec<(i64, i64)> {
    let mut scan = view.range(t, &t.indexes()[0], bounds, reverse);
    let (mut buf, mut rows) = (RowBuf::new(), Vec::new());
    while scan.next(view, &mut buf).unwrap() {
        let (k, g) = integers(t, &buf);
        rows.push((g, k));
    }
    let sorted = |a: &(i64, i64), b: &(i64, i64)| if reverse { a.0 >= b.0 } else { a.0 <= b.0 };
    assert!(rows.is_sorted_by(sorted), "{rows:?}");
    rows.sort_unstable();
    rows
}

fn check(view: &View<'_>, t: &Arc<Table>, model: &Model, random: &mut fastrand::Rng) {
    assert_eq!(scanned(view, t), *model);
    let k = random.i64(0..KEYS);
    let mut buf = RowBuf::new();
    let found = view.get(t, &key_of(t, &[Value::Integer(k)]), &mut buf).unwrap();
    assert_eq!(found.then(|| integers(t, &buf).1), model.get(&k).copied());
    let (low, high) = (random.i64(0..GROUPS), random.i64(0..GROUPS));
    let bounds = KeyBounds {
        lower: if random.bool() { Bound::Included(vec![Value::Integer(low)]) } else { Bound::Unbounded },
        upper: if random.bool() { Bound::Excluded(vec![Value::Integer(high)]) } else { Bound::Unbounded },
    };
    let within = |g: i64| {
        (bounds.lower == Bound::Unbounded || g >= low) && (bounds.upper == Bound::Unbounded || g < high)
    };
    let mut wanted: Vec<(i64, i64)> =
        model.iter().filter(|(_, g)| within(**g)).map(|(k, g)| (*g, *k)).collect();
    wanted.sort_unstable();
    assert_eq!(ranged(view, t, &bounds, random.bool()), wanted, "{bounds:?}");
}

/// What a statement of the transaction would expect to find.
fn expected(view: &View<'_>, t: &Table, k: i64) -> Expect {
    let mut buf = RowBuf::new();
    let there = view.get(t, &key_of(t, &[Value::Integer(k)]), &mut buf).unwrap();
    if there { Expect::Version(buf.cas()) } else { Expect::Absent }
}

#[test]
fn reads_see_the_list_and_savepoints_bring_it_back() {
    let mut random = fastrand::Rng::with_seed(seed());
    let bench = Bench::new(16);
    let t = grouped(&bench);
    let mut committed = Model::new();
    for _ in 0..40 {
        let mut own = WriteSet::new();
        let mut model = committed.clone();
        // Each savepoint remembers the whole model.
        let mut marks: Vec<(String, Model)> = Vec::new();
        for _ in 0..STEPS / 40 {
            match random.u32(0..10) {
                0 => {
                    let name = random.u32(0..3).to_string();
                    own.savepoint(name.clone());
                    marks.push((name, model.clone()));
                }
                1 => {
                    let name = random.u32(0..3).to_string();
                    let mark = marks.iter().rposition(|mark| mark.0 == name);
                    assert_eq!(own.rollback_to(&name), mark.is_some());
                    if let Some(mark) = mark {
                        marks.truncate(mark + 1);
                        model.clone_from(&marks[mark].1);
                    }
                }
                2 => {
                    let name = random.u32(0..3).to_string();
                    let mark = marks.iter().rposition(|mark| mark.0 == name);
                    assert_eq!(own.release(&name), mark.is_some());
                    marks.truncate(mark.unwrap_or(marks.len()));
                }
                _ => {
                    let (k, g) = (random.i64(0..KEYS), random.i64(0..GROUPS));
                    let expect = expected(&bench.store.view_over(&own), &t, k);
                    if random.bool() {
                        own.lay(vec![put(&t, &row(k, g), expect)]);
                        model.insert(k, g);
                    } else {
                        own.lay(vec![delete(&t, &[Value::Integer(k)], expect)]);
                        model.remove(&k);
                    }
                }
            }
            check(&bench.store.view_over(&own), &t, &model, &mut random);
        }
        assert_eq!(scanned(&bench.store.view(), &t), committed, "others see nothing of it");
        if random.bool() {
            bench.store.commit(&own.into_writes()).unwrap();
            committed = model;
        }
        assert_eq!(scanned(&bench.store.view(), &t), committed);
    }
}

#[test]
fn what_savepoints_keep_is_counted_and_given_back() {
    let bench = Bench::new(16);
    let t = grouped(&bench);
    let mut own = WriteSet::new();
    own.savepoint("a".into());
    let empty = own.bytes();
    for g in 0..100 {
        own.lay(vec![put(&t, &row(1, g), Expect::Absent)]);
    }
    assert_eq!(own.changes(), 1);
    assert!(own.bytes() > empty + 100 * 16, "{} bytes", own.bytes());
    assert!(own.rollback_to("a"));
    assert_eq!((own.changes(), own.bytes()), (0, empty));
    own.lay(vec![put(&t, &row(1, 2), Expect::Absent)]);
    let one = own.bytes() - empty;
    own.lay(vec![put(&t, &row(1, 3), Expect::Absent)]);
    assert!(own.release("a"));
    assert_eq!(own.bytes(), one);
    own.forget(&t);
    assert_eq!((own.changes(), own.bytes()), (0, 0));
}

#[test]
fn an_own_row_ends_at_its_deadline_and_hides_the_stored_one() {
    let bench = Bench::new(16);
    let t = grouped(&bench);
    bench.store.commit(&[put(&t, &row(1, 1), Expect::Absent)]).unwrap();
    let mut own = WriteSet::new();
    let mut write = put(&t, &row(1, 2), Expect::Present);
    let Change::Put(NewRow { expiry, .. }) = &mut write.change else { panic!() };
    *expiry = Expiry::At(bench.store.tick_after(Duration::from_secs(5)));
    own.lay(vec![write]);
    let seen = |own: &WriteSet| scanned(&bench.store.view_over(own), &t);
    assert_eq!(seen(&own), Model::from([(1, 2)]));
    bench.advance(Duration::from_secs(6));
    assert_eq!(seen(&own), Model::new());
    bench.store.commit(&own.into_writes()).unwrap();
    assert_eq!(all_rows(&bench.store, &t).len(), 0);
}

#[test]
fn a_list_moves_with_new_indexes_and_ends_with_its_table() {
    let bench = Bench::new(16);
    let t = grouped(&bench);
    let mut own = WriteSet::new();
    own.lay((0..10).map(|k| put(&t, &row(k, k % 3), Expect::Absent)).collect());
    bench.store.drop_index("t_g").unwrap();
    let by_g = IndexDef::new("t_other", vec![1, 0], false);
    bench.store.create_index("t", by_g).unwrap();
    let catalog = bench.store.catalog();
    own.rebase(&catalog).unwrap();
    let t = Arc::clone(catalog.table("t").unwrap());
    let bounds = KeyBounds::equal(vec![Value::Integer(2)]);
    let view = bench.store.view_over(&own);
    assert_eq!(ranged(&view, &t, &bounds, false), [(2, 2), (2, 5), (2, 8)]);
    drop(view);
    bench.store.drop_table("t").unwrap();
    grouped(&bench);
    // The new table of that name is another one.
    assert_eq!(own.rebase(&bench.store.catalog()), Err(Moved::Dropped("t".into())));
    assert_eq!(bench.store.commit(&own.into_writes()), Err(WriteError::TableGone));
}

#[test]
fn a_commit_checks_what_the_transaction_found_first() {
    let bench = Bench::new(16);
    let t = grouped(&bench);
    bench.store.commit(&[put(&t, &row(1, 1), Expect::Absent), put(&t, &row(2, 1), Expect::Absent)]).unwrap();
    let mut own = WriteSet::new();
    for g in 2..5 {
        let expect = expected(&bench.store.view_over(&own), &t, 1);
        own.lay(vec![put(&t, &row(1, g), expect), put(&t, &row(7, g), Expect::Anything)]);
    }
    bench.store.commit(&[put(&t, &row(1, 9), Expect::Present)]).unwrap();
    let writes: Vec<Write> = own.into_writes();
    assert_eq!(bench.store.commit(&writes), Err(WriteError::Lost(vec![0])));
    assert_eq!(scanned(&bench.store.view(), &t), Model::from([(1, 9), (2, 1)]));
}
