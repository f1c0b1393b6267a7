//! Rows that are removed as they were read: by the entries that were made then, under the locks of their shards or by
//! marks; and what others meet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::definition::IndexDef;
use store::value::{Value, ValueRef};
use store::{Expect, Expiry, Removals, RowBuf, Store, Table, View, WriteError};

use crate::common::{BOTH_WAYS, Bench, all_rows, item, key_of, put, seed, table, values};

/// Rows of a group: few enough for the locks of their shards.
const ROWS: i64 = 100;
/// Rows of others.
const OTHERS: i64 = 200;

fn current(store: &Store) -> Arc<Table> {
    Arc::clone(store.catalog().table("t").unwrap())
}

/// A row of a group, whose `spread` orders the rows otherwise.
fn row(key: i64, group: i64) -> [Value; 5] {
    let tags = format!("[\"all\", \"g{group}\", \"k{}\"]", key % 7);
    [
        Value::Integer(key),
        Value::Integer(group),
        Value::Text(format!("https://example.com/{}", key.wrapping_mul(7_919) % 10_007)),
        Value::Text(tags),
        Value::Integer(-key),
    ]
}

/// A table with indexes of each kind, and the rows of two groups.
fn made(bench: &Bench) -> Arc<Table> {
    let columns = [("k", "INT"), ("grp", "INT"), ("spread", "TEXT"), ("tags", "TEXT"), ("own", "INT")];
    let mut def = table("t", &columns, 1, &[]);
    def.indexes = vec![
        IndexDef::new("t_grp", vec![1], false),
        IndexDef::new("t_spread", vec![2], false),
        IndexDef::of_elements("t_tags", 3),
        IndexDef::new("t_own", vec![4], true),
    ];
    let table = bench.store.create_table(def).unwrap();
    for key in 0..ROWS + OTHERS {
        bench.store.commit(&[put(&table, &row(key, i64::from(key >= ROWS)), Expect::Absent)]).unwrap();
    }
    table
}

/// The keys that a walk meets, each once.
fn walked(view: &View<'_>, table: &Arc<Table>, index: &str, value: &ValueRef<'_>, reverse: bool) -> Vec<i64> {
    let index = table.indexes().iter().find(|own| own.name() == index).unwrap();
    let mut scan = view.equal(table, index, &[*value], reverse);
    let (mut row, mut keys) = (RowBuf::new(), Vec::new());
    while scan.next(view, &mut row).unwrap() {
        let Value::Integer(key) = values(table, &row)[0] else { panic!("no key") };
        keys.push(key);
    }
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "a row twice");
    keys
}

/// Every way to the rows of the first group, in both directions.
fn everywhere(store: &Store, table: &Arc<Table>) -> Vec<i64> {
    let view = store.view();
    let by_group = walked(&view, table, "t_grp", &ValueRef::Integer(0), false);
    assert_eq!(by_group, walked(&view, table, "t_grp", &ValueRef::Integer(0), true));
    for reverse in [false, true] {
        assert_eq!(by_group, walked(&view, table, "t_tags", &ValueRef::Text("g0"), reverse));
    }
    by_group
}

/// The rows of a group, read along its index.
fn group_of(store: &Store, table: &Arc<Table>, group: i64, reverse: bool) -> Removals {
    let view = store.view();
    let mut list = Removals::default();
    let mut scan = view.equal(table, &table.indexes()[0], &[ValueRef::Integer(group)], reverse);
    let mut row = RowBuf::new();
    while scan.next(&view, &mut row).unwrap() {
        store.list_removal(&mut list, table, &row);
    }
    list
}

fn group(store: &Store, table: &Arc<Table>) -> Removals {
    group_of(store, table, 0, false)
}

/// Whether every index has the entries of the rows that are there, and no other.
fn agree(store: &Store) {
    let table = current(store);
    let rows = all_rows(store, &table);
    for index in table.indexes() {
        let each = if index.name() == "t_tags" { 3 } else { 1 };
        assert_eq!(index.len(), each * rows.len() as u64, "{}", index.name());
    }
}

/// A statement that began before sees every row by every way, one that begins after sees none.
#[test]
fn a_statement_sees_the_rows_that_it_began_with() {
    for rows in BOTH_WAYS {
        let bench = Bench::new(64);
        bench.store.set_locked_rows_max(rows);
        let table = made(&bench);
        let list = group(&bench.store, &table);
        let view = bench.store.view();
        bench.store.remove_all(&table, &list).unwrap();
        assert_eq!(table.rows(), OTHERS.unsigned_abs());
        let all: Vec<i64> = (0..ROWS).collect();
        for reverse in [false, true] {
            assert_eq!(walked(&view, &table, "t_grp", &ValueRef::Integer(0), reverse), all);
            assert_eq!(walked(&view, &table, "t_tags", &ValueRef::Text("g0"), reverse), all);
            assert_eq!(walked(&view, &table, "t_own", &ValueRef::Integer(-5), reverse), [5]);
        }
        let mut row = RowBuf::new();
        assert!(view.get(&table, &key_of(&table, &[Value::Integer(5)]), &mut row).unwrap());
        drop(view);
        assert!(everywhere(&bench.store, &table).is_empty());
        agree(&bench.store);
    }
}

/// The indexes of a table changed after its rows were read: the entries that were made then are not all.
#[test]
fn rows_leave_indexes_that_came_since_they_were_read() {
    for rows in BOTH_WAYS {
        let bench = Bench::new(64);
        bench.store.set_locked_rows_max(rows);
        let table = made(&bench);
        let list = group(&bench.store, &table);
        bench.store.create_index("t", IndexDef::new("t_new", vec![2, 1], false)).unwrap();
        bench.store.drop_index("t_spread").unwrap();
        let table = current(&bench.store);
        bench.store.remove_all(&table, &list).unwrap();
        assert_eq!(table.indexes().len(), 4);
        assert!(everywhere(&bench.store, &table).is_empty());
        agree(&bench.store);
    }
}

/// Some rows of the list carry their entries, others do not: they came too late, or were read again.
#[test]
fn entries_that_are_not_of_all_rows_are_not_used() {
    for rows in BOTH_WAYS {
        let bench = Bench::new(64);
        bench.store.set_locked_rows_max(rows);
        let table = made(&bench);
        let mut list = group(&bench.store, &table);
        let view = bench.store.view();
        let mut row = RowBuf::new();
        assert!(view.get(&table, &key_of(&table, &[Value::Integer(ROWS)]), &mut row).unwrap());
        list.push(&row);
        drop(view);
        bench.store.remove_all(&table, &list).unwrap();
        assert_eq!(table.rows(), OTHERS.unsigned_abs() - 1);
        agree(&bench.store);
        // More than carry their entries.
        let rest = group_of(&bench.store, &table, 1, true);
        assert_eq!(rest.len() as u64, table.rows());
        bench.store.remove_all(&table, &rest).unwrap();
        assert_eq!(table.rows(), 0);
        agree(&bench.store);
    }
}

/// Rows that are too large to be copied under the locks are marked, whether they come or go.
#[test]
fn large_rows_come_and_go_together() {
    let bench = Bench::new(64);
    let table = made(&bench);
    let large = |key: i64| {
        let mut row = row(key, 7);
        row[3] = Value::Text(format!("[\"all\", \"g7\", \"{}\"]", "x".repeat(100_000)));
        put(&table, &row, Expect::Anything)
    };
    for round in 0..3 {
        let writes: Vec<_> = (10..20).map(large).collect();
        bench.store.commit(&writes).unwrap();
        agree(&bench.store);
        let list = group_of(&bench.store, &table, 7, round == 1);
        assert_eq!(list.len(), 10);
        let view = bench.store.view();
        bench.store.remove_all(&table, &list).unwrap();
        assert_eq!(walked(&view, &table, "t_grp", &ValueRef::Integer(7), false).len(), 10);
        drop(view);
        assert!(group_of(&bench.store, &table, 7, false).is_empty());
        agree(&bench.store);
    }
}

/// Unique values of rows that left are free, and rows that come back stay.
#[test]
fn rows_come_back_after_they_left() {
    for rows in BOTH_WAYS {
        let bench = Bench::new(64);
        bench.store.set_locked_rows_max(rows);
        let table = made(&bench);
        bench.store.remove_all(&table, &group(&bench.store, &table)).unwrap();
        for key in [3, 70, ROWS - 1] {
            bench.store.commit(&[put(&table, &row(key, 0), Expect::Absent)]).unwrap();
        }
        let mut other = row(ROWS + OTHERS, 0);
        other[4] = Value::Integer(-11);
        bench.store.commit(&[put(&table, &other, Expect::Absent)]).unwrap();
        other[0] = Value::Integer(ROWS + OTHERS + 1);
        let refused = bench.store.commit(&[put(&table, &other, Expect::Absent)]);
        assert!(matches!(refused, Err(WriteError::Unique { .. })), "{refused:?}");
        assert_eq!(everywhere(&bench.store, &table), [3, 70, ROWS - 1, ROWS + OTHERS]);
        agree(&bench.store);
    }
}

/// A commit that goes first has marked some of the rows: one that holds locks waits until they are free, and holds
/// none meanwhile.
#[test]
fn a_commit_that_locks_waits_for_one_that_has_marked() {
    let bench = Bench::new(64);
    let table = made(&bench);
    let list = group(&bench.store, &table);
    let marked = [put(&table, &row(7, 0), Expect::Present), put(&table, &row(60, 0), Expect::Present)];
    let began = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let made = bench.store.commit_firmly(&marked, || {
            let removal = scope.spawn(|| {
                began.store(true, Ordering::Relaxed);
                bench.store.remove_all(&table, &list)
            });
            while !began.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            // Others write to the shards of all its rows, again and again, so they are not locked.
            for key in (ROWS..ROWS + OTHERS).cycle().take(2_000) {
                bench.store.commit(&[put(&table, &row(key, 1), Expect::Anything)]).unwrap();
            }
            assert!(!removal.is_finished(), "it waits");
            Ok::<_, ()>((removal, marked.to_vec())).map(|(removal, writes)| {
                scope.spawn(move || {
                    let Err(WriteError::Lost(lost)) = removal.join().unwrap() else { panic!("removed") };
                    assert_eq!(lost.len(), 2, "the rows that were written first");
                });
                writes
            })
        });
        made.unwrap().unwrap();
    });
    assert_eq!(table.rows(), (ROWS + OTHERS).unsigned_abs());
    agree(&bench.store);
}

/// Lists that were read before the rows changed: a place alone proves nothing.
#[test]
fn what_changed_since_it_was_read_is_lost() {
    let bench = Bench::new(64);
    let table = made(&bench);
    let list = group(&bench.store, &table);
    bench.store.commit(&[put(&table, &row(7, 0), Expect::Present)]).unwrap();
    bench
        .store
        .delete(&table, &key_of(&table, &[Value::Integer(9)]), Expect::Present, bench.store.now())
        .unwrap();
    let keys: Vec<Vec<u8>> = list.iter().map(|(key, _)| key.to_vec()).collect();
    let Err(WriteError::Lost(mut lost)) = bench.store.remove_all(&table, &list) else { panic!("removed") };
    lost.sort_unstable();
    let expected = |key: i64| keys.iter().position(|own| *own == key_of(&table, &[Value::Integer(key)]));
    let mut expected: Vec<usize> = [7, 9].into_iter().filter_map(expected).collect();
    expected.sort_unstable();
    assert_eq!(lost, expected);
    agree(&bench.store);
}

/// Memory has been used again, by the same keys too, since the list was read: nothing of what is there now is meant.
#[test]
fn places_of_an_earlier_life_name_nothing() {
    let bench = Bench::new(16);
    let table = made(&bench);
    let list = group(&bench.store, &table);
    for round in 0..30_i64 {
        for key in 0..ROWS {
            bench.store.commit(&[put(&table, &row(key, round % 5), Expect::Anything)]).unwrap();
        }
        bench.store.tick();
    }
    let Err(WriteError::Lost(lost)) = bench.store.remove_all(&table, &list) else { panic!("removed") };
    assert_eq!(lost.len(), list.len());
    assert_eq!(table.rows(), (ROWS + OTHERS).unsigned_abs());
    agree(&bench.store);
}

/// The table was dropped, and another one of its name has the same keys.
#[test]
fn places_in_a_dropped_table_name_nothing_in_the_next() {
    let bench = Bench::new(64);
    let before = made(&bench);
    let list = group(&bench.store, &before);
    bench.store.drop_table("t").unwrap();
    let table = made(&bench);
    assert!(matches!(bench.store.remove_all(&before, &list), Err(WriteError::TableGone)));
    let Err(WriteError::Lost(lost)) = bench.store.remove_all(&table, &list) else { panic!("removed") };
    assert_eq!(lost.len(), list.len());
    assert_eq!(table.rows(), (ROWS + OTHERS).unsigned_abs());
    agree(&bench.store);
}

/// A row that was only moved is the version that was read, wherever it lies.
#[test]
fn rows_that_were_moved_since_leave() {
    let bench = Bench::new(16);
    let table = made(&bench);
    // Most of what lies between the rows of the group dies, so that they are brought together.
    for key in (ROWS + OTHERS)..9_000 {
        bench.store.commit(&[put(&table, &row(key, i64::from(key % 8 != 0)), Expect::Absent)]).unwrap();
    }
    let (list, before) = (group(&bench.store, &table), table.stats().segment_bytes);
    for key in ROWS..9_000 {
        if key < ROWS + OTHERS || key % 8 != 0 {
            let key = key_of(&table, &[Value::Integer(key)]);
            bench.store.delete(&table, &key, Expect::Present, bench.store.now()).unwrap();
        }
    }
    bench.store.set_evictions(false);
    let catalog = bench.store.catalog();
    let cold = catalog.table(store::BUILT_IN).unwrap();
    let fill = |n: u32| {
        let (key, value) = (format!("cold{n}"), [b'c'; 1_000]);
        let item = item(&value, Expiry::Table);
        bench.store.put_item(cold, key.as_bytes(), &item, Expect::Absent, bench.store.now())
    };
    assert!((0..20_000).any(|n| fill(n).is_err()), "the memory is full");
    let stats = table.stats();
    assert_eq!((stats.rows, stats.evicted), (list.len() as u64, 0));
    assert!(stats.segment_bytes < before / 2, "{} of {before} bytes are left", stats.segment_bytes);
    bench.store.remove_all(&table, &list).unwrap();
    assert_eq!(table.rows(), 0);
    agree(&bench.store);
}

/// Deletions by index beside writers and walkers, few rows and many, by locks and by marks in turn; at the end every
/// index has what the table has.
#[test]
fn random_deletions_by_index_leave_what_a_model_says() {
    let mut random = fastrand::Rng::with_seed(seed());
    let bench = Bench::new(32);
    let table = made(&bench);
    let mut model: BTreeMap<i64, i64> = (0..ROWS + OTHERS).map(|key| (key, i64::from(key >= ROWS))).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reverse in [false, true] {
            let (store, table, stop) = (&bench.store, &table, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let view = store.view();
                    for group in 0..5 {
                        let keys = walked(&view, table, "t_grp", &ValueRef::Integer(group), reverse);
                        // A group is deleted whole, and comes one by one.
                        let by_tag = format!("g{group}");
                        let _tagged = walked(&view, table, "t_tags", &ValueRef::Text(&by_tag), reverse);
                        drop(keys);
                    }
                }
            });
        }
        for _ in 0..200 {
            let gone = random.i64(0..5);
            bench.store.set_locked_rows_max(BOTH_WAYS[random.usize(..2)]);
            let list = group_of(&bench.store, &table, gone, random.bool());
            bench.store.remove_all(&table, &list).unwrap();
            model.retain(|_, group| *group != gone);
            for _ in 0..random.usize(1..400) {
                let (key, group) = (random.i64(0..2_000), random.i64(0..5));
                bench.store.commit(&[put(&table, &row(key, group), Expect::Anything)]).unwrap();
                model.insert(key, group);
            }
            if random.u8(0..4) == 0 {
                bench.store.tick();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let rows: BTreeMap<i64, i64> = all_rows(&bench.store, &table)
        .iter()
        .map(|row| match row[..2] {
            [Value::Integer(key), Value::Integer(group)] => (key, group),
            _ => panic!("{row:?}"),
        })
        .collect();
    assert_eq!(rows, model);
    agree(&bench.store);
}

/// So many entries of one value that no other lies between them: they leave under many holds of the index's lock, and
/// others read and write the index meanwhile.
#[test]
fn many_rows_of_one_value_leave() {
    let rows: i64 = if cfg!(debug_assertions) { 30_000 } else { 1_000_000 };
    let bench = Bench::new(1_024);
    bench.store.create_table(table("t", &[("k", "INT"), ("grp", "INT")], 1, &[])).unwrap();
    bench.store.create_index("t", IndexDef::new("t_grp", vec![1], false)).unwrap();
    let table = current(&bench.store);
    let put =
        |key: i64, group: i64| put(&table, &[Value::Integer(key), Value::Integer(group)], Expect::Anything);
    for begin in (0..rows).step_by(1_000) {
        let writes: Vec<_> = (begin..begin + 1_000).map(|key| put(key, 0)).collect();
        bench.store.commit(&writes).unwrap();
    }
    bench.store.commit(&[put(-1, -1), put(-2, 1)]).unwrap();
    let list = group(&bench.store, &table);
    assert_eq!(list.len() as u64, rows.unsigned_abs());
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            bench.store.remove_all(&table, &list).unwrap();
            ended.store(true, Ordering::Relaxed);
        });
        while !ended.load(Ordering::Relaxed) {
            // On both sides of the entries that leave.
            bench.store.commit(&[put(-1, -1)]).unwrap();
            bench.store.commit(&[put(-2, 1)]).unwrap();
            let view = bench.store.view();
            assert_eq!(walked(&view, &table, "t_grp", &ValueRef::Integer(-1), false), [-1]);
            assert_eq!(walked(&view, &table, "t_grp", &ValueRef::Integer(1), true), [-2]);
        }
    });
    assert_eq!(table.indexes()[0].len(), 2);
    assert!(walked(&bench.store.view(), &table, "t_grp", &ValueRef::Integer(0), false).is_empty());
}
