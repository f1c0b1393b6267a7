//! Rows of a commit have left their slots, and their index entries are still there: what others meet in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arena::failpoint::{Point, disarm, step_in};
use store::definition::IndexDef;
use store::value::{Value, ValueRef};
use store::{Expect, Expiry, Removals, RowBuf, Store, Table, View, WriteError};

use crate::common::{Bench, all_rows, item, key_of, put, seed, set, table, values};

/// More than a commit has that keeps nothing: statements may begin while it is under way.
const ROWS: i64 = 1_500;
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
    made_with(bench, &[])
}

fn made_with(bench: &Bench, options: &[(&str, &str)]) -> Arc<Table> {
    let columns = [("k", "INT"), ("grp", "INT"), ("spread", "TEXT"), ("tags", "TEXT"), ("own", "INT")];
    let mut def = table("t", &columns, 1, options);
    def.indexes = vec![
        IndexDef::new("t_grp", vec![1], false),
        IndexDef::new("t_spread", vec![2], false),
        IndexDef::of_elements("t_tags", 3),
        IndexDef::new("t_own", vec![4], true),
    ];
    let table = bench.store.create_table(def).unwrap();
    for key in 0..ROWS + OTHERS {
        let mut row = row(key, i64::from(key >= ROWS));
        if let (ROWS.., Value::Text(tags)) = (key, &mut row[3]) {
            // The first group has less than half of the memory, and so may leave at once.
            tags.push_str(&" ".repeat(8_000));
        }
        bench.store.commit(&[put(&table, &row, Expect::Absent)]).unwrap();
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

fn group(store: &Store, table: &Arc<Table>) -> Removals {
    let view = store.view();
    let mut list = Removals::default();
    let mut scan = view.equal(table, &table.indexes()[0], &[ValueRef::Integer(0)], false);
    let mut row = RowBuf::new();
    while scan.next(&view, &mut row).unwrap() {
        list.push(&row);
    }
    list
}

/// Deletes the first group, and does something when its rows have left their slots and not the indexes.
fn delete_group(bench: &Bench, deed: impl FnOnce(&Arc<Store>, &Arc<Table>) + 'static) {
    let (store, table) = (Arc::clone(&bench.store), current(&bench.store));
    let list = group(&bench.store, &table);
    assert_eq!(list.len(), usize::try_from(ROWS).unwrap());
    step_in(Point::Unlinked, move || deed(&store, &current(&store)));
    bench.store.remove_all(&table, &list).unwrap();
    assert_eq!(disarm(), 0);
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

#[test]
fn a_statement_sees_the_rows_until_the_commit_is_published() {
    let bench = Bench::new(64);
    let table = made(&bench);
    delete_group(&bench, |store, table| {
        assert_eq!(table.indexes()[0].len(), (ROWS + OTHERS).unsigned_abs(), "the entries are there");
        assert_eq!(table.rows(), OTHERS.unsigned_abs(), "the rows are not");
        assert_eq!(everywhere(store, table), (0..ROWS).collect::<Vec<_>>());
        let mut row = RowBuf::new();
        assert!(!store.read(table, &key_of(table, &[Value::Integer(5)]), store.now(), &mut row));
        assert!(store.view().get(table, &key_of(table, &[Value::Integer(5)]), &mut row).unwrap());
    });
    assert!(everywhere(&bench.store, &table).is_empty());
    agree(&bench.store);
}

#[test]
fn rows_that_come_back_meanwhile_stay() {
    let bench = Bench::new(64);
    let table = made(&bench);
    delete_group(&bench, |store, table| {
        for key in [3, 700, ROWS - 1] {
            // Its unique value is free, for its slot is.
            store.commit(&[put(table, &row(key, 0), Expect::Absent)]).unwrap();
            store.commit(&[put(table, &row(key, 0), Expect::Present)]).unwrap();
        }
        // Another row may take the unique value of one that left.
        let mut other = row(ROWS + OTHERS, 0);
        other[4] = Value::Integer(-11);
        store.commit(&[put(table, &other, Expect::Absent)]).unwrap();
        let mut taken = row(ROWS + OTHERS + 1, 0);
        taken[4] = Value::Integer(-11);
        let refused = store.commit(&[put(table, &taken, Expect::Absent)]);
        assert!(matches!(refused, Err(WriteError::Unique { .. })), "{refused:?}");
        // Each row once, though it has entries of two versions.
        let seen: BTreeSet<i64> = everywhere(store, table).into_iter().collect();
        assert!((0..ROWS).all(|key| seen.contains(&key)));
    });
    assert_eq!(everywhere(&bench.store, &table), [3, 700, ROWS - 1, ROWS + OTHERS]);
    agree(&bench.store);
}

/// Rows that left their slots lie in segments that are wanted: what is read by their entries is still theirs.
#[test]
fn memory_is_not_recycled_under_an_entry() {
    let bench = Bench::new(8);
    let table = made(&bench);
    delete_group(&bench, |store, table| {
        let catalog = store.catalog();
        let cold = catalog.table(store::BUILT_IN).unwrap();
        for n in 0..20_000 {
            set(store, cold, format!("cold{n}").as_bytes(), &[b'c'; 1_000], Expiry::Table);
        }
        store.tick();
        let view = store.view();
        for reverse in [false, true] {
            let keys = walked(&view, table, "t_grp", &ValueRef::Integer(0), reverse);
            assert_eq!(keys, (0..ROWS).collect::<Vec<_>>());
        }
    });
    assert!(everywhere(&bench.store, &table).is_empty());
    agree(&bench.store);
    let catalog = bench.store.catalog();
    let cold = catalog.table(store::BUILT_IN).unwrap();
    for n in 0..20_000 {
        set(&bench.store, cold, format!("cold{n}").as_bytes(), &[b'd'; 1_000], Expiry::Table);
    }
    assert_eq!(all_rows(&bench.store, &table).len() as u64, table.rows());
}

/// One table has nearly all of the memory, and all of its rows leave: others go on writing.
#[test]
fn writers_have_room_while_most_of_memory_leaves() {
    let bench = Bench::new(16);
    let table = made(&bench);
    let long = "x".repeat(900);
    for key in ROWS + OTHERS..20_000 {
        let mut row = row(key, 0);
        row[2] = Value::Text(format!("{key}{long}"));
        bench.store.commit(&[put(&table, &row, Expect::Absent)]).unwrap();
    }
    let store = Arc::clone(&bench.store);
    let list = group(&store, &table);
    assert!(list.len() > 8_000, "{} rows fill the memory", list.len());
    step_in(Point::Unlinked, move || {
        let catalog = store.catalog();
        let cold = catalog.table(store::BUILT_IN).unwrap();
        for n in 0..5_000 {
            set(&store, cold, format!("cold{n}").as_bytes(), &[b'c'; 1_000], Expiry::Table);
        }
    });
    bench.store.remove_all(&table, &list).unwrap();
    assert_eq!(disarm(), 0);
    agree(&bench.store);
}

/// Deletes the group while another thread does something that begins when the rows have left their slots. A change of
/// indexes waits for the commit's end.
fn delete_group_beside(bench: &Bench, deed: impl FnOnce(&Store) + Send + 'static) {
    let beside = Arc::new(Mutex::new(None));
    let begun = Arc::clone(&beside);
    delete_group(bench, move |store, _| {
        let store = Arc::clone(store);
        *begun.lock().unwrap() = Some(std::thread::spawn(move || deed(&store)));
        // Time to come as far as it can; either order must be right.
        std::thread::sleep(Duration::from_millis(20));
    });
    let thread = beside.lock().unwrap().take().unwrap();
    thread.join().unwrap();
}

#[test]
fn indexes_come_and_go_meanwhile() {
    let bench = Bench::new(64);
    made(&bench);
    delete_group_beside(&bench, |store| store.drop_index("t_spread").unwrap());
    agree(&bench.store);
    assert_eq!(current(&bench.store).indexes().len(), 3);

    let bench = Bench::new(64);
    made(&bench);
    delete_group_beside(&bench, |store| {
        store.create_index("t", IndexDef::new("t_new", vec![2, 1], false)).unwrap();
    });
    agree(&bench.store);
    assert_eq!(current(&bench.store).indexes().len(), 5);
}

#[test]
fn a_table_changes_or_ends_meanwhile() {
    let bench = Bench::new(64);
    made(&bench);
    delete_group(&bench, |store, _| {
        store.set_options("t", &mut |options, columns| options.set("ttl", "60s", columns)).unwrap();
    });
    agree(&bench.store);

    let bench = Bench::new(64);
    made(&bench);
    delete_group(&bench, |store, table| store.flush(table));
    assert!(all_rows(&bench.store, &current(&bench.store)).is_empty());

    let bench = Bench::new(64);
    made(&bench);
    delete_group_beside(&bench, |store| store.drop_table("t").unwrap());
    assert!(bench.store.catalog().table("t").is_none());
    bench.store.tick();
    made(&bench);
    agree(&bench.store);
}

/// Eviction row by row has closed the oldest segment: its rows leave the indexes at once, the others later.
#[test]
fn rows_of_a_segment_that_is_being_emptied_leave_at_once() {
    let bench = Bench::new(64);
    let table = made_with(&bench, &[("max_rows", "2000")]);
    for key in ROWS + OTHERS..2_050 {
        bench.store.commit(&[put(&table, &row(key, 1), Expect::Absent)]).unwrap();
    }
    let list = group(&bench.store, &table);
    let (before, leaving) = (table.indexes()[0].len(), list.len() as u64);
    assert!(1_024 < leaving && leaving < ROWS.unsigned_abs(), "{leaving} rows of a group were not evicted");
    let own = Arc::clone(&table);
    step_in(Point::Unlinked, move || {
        let left = before - own.indexes()[0].len();
        assert!(0 < left && left < leaving, "{left} of {leaving} entries have left");
    });
    bench.store.remove_all(&table, &list).unwrap();
    assert_eq!(disarm(), 0);
    assert!(everywhere(&bench.store, &table).is_empty());
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

/// Deletions by index beside writers and walkers; at the end every index has what the table has.
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
        for _ in 0..60 {
            let gone = random.i64(0..5);
            let mut list = Removals::default();
            {
                let view = bench.store.view();
                let mut scan =
                    view.equal(&table, &table.indexes()[0], &[ValueRef::Integer(gone)], random.bool());
                let mut row = RowBuf::new();
                while scan.next(&view, &mut row).unwrap() {
                    list.push(&row);
                }
            }
            bench.store.remove_all(&table, &list).unwrap();
            model.retain(|_, group| *group != gone);
            for _ in 0..random.usize(1..600) {
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
