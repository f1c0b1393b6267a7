//! All rows of a table removed in one step: how many there were, who sees it, and what stays.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use store::definition::IndexDef;
use store::value::Value;
use store::{Counted, Expect, Expiry, KeyBounds, ManualClock, ReadError, RowBuf, Store, Table};

use crate::common::{Bench, all_rows, delete, get, key_of, options, put, seed, set, table};
use crate::restart::TempArena;

/// Walks of the random test, each on a store of its own.
const WALKS: usize = 60;
/// Steps of a walk.
const STEPS: usize = 400;
/// Different keys; few, so that they meet often.
const KEYS: i64 = 60;

fn cached(bench: &Bench, settings: &[(&str, &str)]) -> Arc<Table> {
    let settings: Vec<_> = [("prefix", "t:"), ("value", "v")].iter().chain(settings).copied().collect();
    bench.store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &settings)).unwrap()
}

fn text(number: i64) -> Value {
    Value::Text(format!("key-{number}"))
}

/// Keys and the moment at which their rows end, in seconds.
#[derive(Default)]
struct Model {
    ends: BTreeMap<i64, Option<u64>>,
    now: u64,
    ttl: Option<u64>,
}

impl Model {
    fn write(&mut self, key: i64, lives: Option<u64>) {
        self.ends.insert(key, lives.or(self.ttl).map(|seconds| self.now + seconds));
    }

    fn live(&self) -> impl Iterator<Item = i64> {
        let live = self.ends.iter().filter(|(_, end)| end.is_none_or(|end| self.now < end));
        live.map(|(key, _)| *key)
    }
}

#[test]
fn the_number_of_rows_is_right_whatever_came_before() {
    let mut random = fastrand::Rng::with_seed(seed());
    let mut known = 0;
    for walk in 0..WALKS {
        known += random_walk(walk, &mut random);
    }
    assert!(known > WALKS, "only {known} removals in one step");
}

/// Returns how many removals were made in one step.
fn random_walk(walk: usize, random: &mut fastrand::Rng) -> usize {
    let bench = Bench::new(16);
    let store = &bench.store;
    let ttl = [None, None, Some(20)][walk % 3];
    let setting = ttl.map(|seconds| format!("{seconds} s"));
    let settings: Vec<_> = setting.iter().map(|ttl| ("ttl", ttl.as_str())).collect();
    let t = cached(&bench, &settings);
    let (mut model, mut known) = (Model { ttl, ..Model::default() }, 0);
    for step in 0..STEPS {
        let key = random.i64(0..KEYS);
        match random.u8(0..40) {
            0..16 => {
                let lives = random.bool().then(|| random.u64(1..60));
                let expiry = lives.map_or(Expiry::Table, |seconds| {
                    Expiry::At(store.tick_after(Duration::from_secs(seconds)))
                });
                set(store, &t, format!("key-{key}").as_bytes(), b"x", expiry);
                model.write(key, lives);
            }
            16..22 => {
                store.delete(&t, &key_of(&t, &[text(key)]), Expect::Anything, store.now()).unwrap();
                model.ends.remove(&key);
            }
            22..26 => {
                let many = (key..key + 5).map(|key| put(&t, &[text(key), "y".into()], Expect::Anything));
                store.commit(&many.collect::<Vec<_>>()).unwrap();
                (key..key + 5).for_each(|key| model.write(key, None));
            }
            26..28 => {
                let many = (key..key + 5).map(|key| delete(&t, &[text(key)], Expect::Anything));
                store.commit(&many.collect::<Vec<_>>()).unwrap();
                model.ends.retain(|own, _| !(key..key + 5).contains(own));
            }
            28..31 => {
                let seconds = random.u64(1..12);
                bench.advance(Duration::from_secs(seconds));
                model.now += seconds;
            }
            31 => {
                store.truncate(&t);
                model.ends.clear();
            }
            32..35 => {
                let one_step = store.remove_whole(&t, None).unwrap();
                known += usize::from(one_step.is_some());
                let rows = one_step.or_else(|| counted_and_removed(store, &t));
                assert_eq!(rows, Some(model.live().count() as u64), "walk {walk} step {step}");
                model.ends.clear();
            }
            35 => {
                // A count is not believed when somebody wrote after it.
                let counted = look_at_all(store, &t);
                set(store, &t, format!("key-{key}").as_bytes(), b"z", Expiry::Table);
                model.write(key, None);
                if let Some(rows) = store.remove_whole(&t, counted).unwrap() {
                    assert_eq!(rows, model.live().count() as u64, "walk {walk} step {step}");
                    model.ends.clear();
                }
            }
            36 => {
                if let Some(rows) = store.view().known_rows(&t) {
                    assert_eq!(rows, model.live().count() as u64, "walk {walk} step {step}");
                }
            }
            _ => {
                let rows = all_rows(store, &t);
                let keys = rows.into_iter().map(|row| row[0].clone());
                let mut expected: Vec<_> = model.live().map(text).collect();
                expected.sort_by_key(|key| format!("{:?}", [key, &Value::Null]));
                let mut keys: Vec<_> = keys.collect();
                keys.sort_by_key(|key| format!("{:?}", [key, &Value::Null]));
                assert_eq!(keys, expected, "walk {walk} step {step}");
            }
        }
    }
    known
}

/// Looks at each row.
fn look_at_all(store: &Store, t: &Arc<Table>) -> Option<Counted> {
    let view = store.view();
    let standing = view.standing(t);
    let (mut scan, mut row, mut rows) = (view.scan(t), RowBuf::new(), 0);
    while scan.next(&view, &mut row).unwrap() {
        rows += 1;
    }
    view.counted(standing, rows)
}

/// Removes all rows after a look at each; `None`: somebody wrote meanwhile.
fn counted_and_removed(store: &Store, t: &Arc<Table>) -> Option<u64> {
    let counted = look_at_all(store, t);
    counted.and_then(|counted| store.remove_whole(t, Some(counted)).unwrap())
}

/// Where nothing has a time to live, the number is known after every kind of removal.
#[test]
fn the_number_is_known_again_at_once() {
    let bench = Bench::new(16);
    let t = cached(&bench, &[]);
    for round in 0..3 {
        for key in 0..100 {
            set(&bench.store, &t, format!("key-{key}").as_bytes(), b"x", Expiry::Table);
        }
        assert_eq!(bench.store.view().known_rows(&t), Some(100), "round {round}");
        if round == 1 {
            bench.store.truncate(&t);
            assert_eq!(bench.store.remove_whole(&t, None).unwrap(), Some(0));
        } else {
            assert_eq!(bench.store.remove_whole(&t, None).unwrap(), Some(100), "round {round}");
        }
        assert_eq!(bench.store.view().known_rows(&t), Some(0), "round {round}");
    }
}

/// Each row is counted by one removal, or is there at the end, whoever writes meanwhile.
#[test]
fn every_row_is_removed_once() {
    const ROWS: i64 = 20_000;
    let bench = Bench::new(32);
    let t = cached(&bench, &[]);
    let store = &bench.store;
    let (removed, writing) = (AtomicU64::new(0), AtomicBool::new(true));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let t = &t;
                scope.spawn(move || {
                    for key in (writer..ROWS).step_by(2) {
                        if key % 1_000 < 20 {
                            let many: Vec<_> = (0..10)
                                .map(|part| {
                                    put(t, &[text(ROWS + key * 10 + part), "y".into()], Expect::Absent)
                                })
                                .collect();
                            store.commit(&many).unwrap();
                        }
                        set(store, t, format!("key-{key}").as_bytes(), b"x", Expiry::Table);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while writing.load(Ordering::Relaxed) {
                // One has ended, which nobody may count: from then on the number is known by a look at each row only.
                let ends = store.tick_after(Duration::from_secs(1));
                set(store, &t, b"ended", b"x", Expiry::At(ends));
                bench.hands.advance(Duration::from_secs(2));
                let rows = counted_and_removed(store, &t);
                let rows = rows.or_else(|| store.remove_whole(&t, None).unwrap());
                removed.fetch_add(rows.unwrap_or(0), Ordering::Relaxed);
                store.tick();
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        writing.store(false, Ordering::Relaxed);
    });
    bench.hands.advance(Duration::from_secs(2));
    let left = all_rows(store, &t).len() as u64;
    let written = ROWS.unsigned_abs() + (0..ROWS).filter(|key| key % 1_000 < 20).count() as u64 * 10;
    assert_eq!(removed.into_inner() + left, written);
}

/// How many rows a walk meets; `None`: the statement has to start again.
fn counted(store: &Store, t: &Arc<Table>, by_index: bool) -> Option<usize> {
    let view = store.view();
    let (mut row, mut rows) = (RowBuf::new(), 0);
    let mut scan = (!by_index).then(|| view.scan(t));
    let mut range = view.range(t, &t.indexes()[0], &KeyBounds::ALL, false);
    loop {
        let next = match &mut scan {
            Some(scan) => scan.next(&view, &mut row),
            None => range.next(&view, &mut row),
        };
        match next {
            Ok(true) => rows += 1,
            Ok(false) => return Some(rows),
            Err(error) => {
                assert_eq!(error, ReadError::SnapshotTooOld);
                return None;
            }
        }
    }
}

#[test]
fn a_statement_sees_all_rows_or_none() {
    const ROWS: i64 = 300;
    let bench = Bench::new(32);
    let t = cached(&bench, &[]);
    bench.store.create_index("t", IndexDef::new("by_value", vec![1], false)).unwrap();
    let t = Arc::clone(bench.store.catalog().table(t.name()).unwrap());
    let store = &bench.store;
    let writing = AtomicBool::new(true);
    std::thread::scope(|scope| {
        for by_index in [false, true] {
            let (t, writing) = (&t, &writing);
            scope.spawn(move || {
                while writing.load(Ordering::Relaxed) {
                    let rows = counted(store, t, by_index);
                    assert!(matches!(rows, None | Some(0 | 300)), "{rows:?} rows, by index {by_index}");
                }
            });
        }
        for _ in 0..300 {
            let rows: Vec<_> =
                (0..ROWS).map(|key| put(&t, &[text(key), "y".into()], Expect::Absent)).collect();
            store.commit(&rows).unwrap();
            assert_eq!(store.remove_whole(&t, None).unwrap(), Some(ROWS.unsigned_abs()));
        }
        writing.store(false, Ordering::Relaxed);
    });
}

#[test]
fn a_statement_that_began_before_begins_anew() {
    let bench = Bench::new(16);
    let (t, store) = (cached(&bench, &[]), &bench.store);
    let other = store.create_table(table("other", &[("k", "TEXT")], 1, &[])).unwrap();
    store.commit(&[put(&other, &[text(1)], Expect::Absent)]).unwrap();
    set(store, &t, b"key-1", b"x", Expiry::Table);
    let (view, mut row) = (store.view(), RowBuf::new());
    assert!(view.get(&t, &key_of(&t, &[text(1)]), &mut row).unwrap());
    assert_eq!(store.remove_whole(&t, None).unwrap(), Some(1));
    assert_eq!(view.get(&t, &key_of(&t, &[text(1)]), &mut row), Err(ReadError::SnapshotTooOld));
    assert!(view.get(&other, &key_of(&other, &[text(1)]), &mut row).unwrap(), "another table is as it was");
    drop(view);
    assert!(!store.view().get(&t, &key_of(&t, &[text(1)]), &mut row).unwrap());
}

#[test]
fn rows_that_were_removed_stay_away_in_the_next_process() {
    let file = TempArena::new("whole");
    let hands = ManualClock::new(1_700_000_000);
    let options = options(Some(file.0.clone()), 16, &hands);
    {
        let store = Store::open(&options).unwrap().store;
        let t = store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[])).unwrap();
        let rows: Vec<_> = (0..50).map(|key| put(&t, &[text(key), "y".into()], Expect::Absent)).collect();
        store.commit(&rows).unwrap();
        assert_eq!(store.remove_whole(&t, None).unwrap(), Some(50));
        store.commit(&rows[..7]).unwrap();
    }
    let store = Store::open(&options).unwrap().store;
    let catalog = store.catalog();
    let t = catalog.table("t").unwrap();
    assert_eq!(all_rows(&store, t).len(), 7);
    store.recover();
    assert_eq!(store.view().known_rows(t), Some(7), "what was removed is not counted");
    assert_eq!(store.remove_whole(t, None).unwrap(), Some(7));
    assert_eq!(get(&store, t, b"key-1"), None);
}
