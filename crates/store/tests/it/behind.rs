//! Rows are served while they are still being proved and indexed behind the start, and nobody is told anything wrong.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use store::definition::IndexDef;
use store::value::Value;
use store::{
    BUILT_IN, Expect, Expiry, KeyBounds, ManualClock, RowBuf, Store, StoreOptions, Table, WriteError,
};

use crate::common::{all_rows, delete, get, options, put, seed, set, table, values};

/// Rows of the random test: some thousand chains of buckets, so that one is met proved and another not.
const KEYS: i64 = 6_000;
/// Starts of the random test.
const STARTS: usize = 5;
/// Operations after each.
const STEPS: usize = 2_000;

struct TempArena(PathBuf);

impl Drop for TempArena {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn temporary(name: &str) -> (TempArena, StoreOptions) {
    let path = std::env::temp_dir().join(format!("sqlcached-behind-{}-{name}.arena", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let hands = ManualClock::new(1_700_000_000);
    (TempArena(path.clone()), options(Some(path), 64, &hands))
}

fn make_table(store: &Store) -> Arc<Table> {
    let mut def = table("t", &[("k", "INT"), ("u", "INT"), ("n", "INT")], 1, &[]);
    def.indexes = vec![IndexDef::new("t_u", vec![1], true), IndexDef::new("t_n", vec![2], false)];
    store.create_table(def).unwrap()
}

fn row(k: i64, u: i64, n: i64) -> [Value; 3] {
    [k, u, n].map(Value::Integer)
}

fn current(store: &Store) -> Arc<Table> {
    Arc::clone(store.catalog().table("t").unwrap())
}

#[test]
fn a_key_is_served_although_nothing_was_checked() {
    let (_file, options) = temporary("first");
    {
        let store = Store::open(&options).unwrap().store;
        let catalog = store.catalog();
        let built_in = catalog.table(BUILT_IN).unwrap();
        for n in 0..KEYS {
            set(&store, built_in, format!("key{n}").as_bytes(), b"value", Expiry::Table);
        }
    }
    let store = Store::open(&options).unwrap().store;
    let catalog = store.catalog();
    let built_in = catalog.table(BUILT_IN).unwrap();
    assert_eq!(store.recovered().rows, 0);
    assert_eq!(get(&store, built_in, b"key7").as_deref(), Some(&b"value"[..]));
    let proved = store.recovered().rows;
    assert!(proved > 0 && proved < 100, "one chain was proved, not {proved} rows");
    assert_eq!(get(&store, built_in, b"absent"), None);
    set(&store, built_in, b"key7", b"changed", Expiry::Table);
    store.delete(built_in, b"key8", Expect::Present, store.now()).unwrap();
    // What counts rows looks at them instead of trusting an account that is not made up yet.
    assert_eq!(store.view().known_rows(built_in), None);
    let recovered = store.recover();
    assert!(recovered.complete && recovered.dropped == 0);
    assert_eq!(store.view().known_rows(built_in), Some(KEYS.cast_unsigned() - 1));
    assert_eq!(built_in.stats().rows, KEYS.cast_unsigned() - 1);
    assert_eq!(get(&store, built_in, b"key7").as_deref(), Some(&b"changed"[..]));
    assert_eq!(get(&store, built_in, b"key8"), None);
}

#[test]
fn a_unique_value_and_a_row_number_wait_for_what_they_need() {
    let (_file, options) = temporary("unique");
    {
        let store = Store::open(&options).unwrap().store;
        let t = make_table(&store);
        let rows: Vec<_> = (0..KEYS).map(|k| put(&t, &row(k, k, k % 10), Expect::Absent)).collect();
        store.commit(&rows).unwrap();
        let unnumbered = store.create_table(table("r", &[("v", "INT")], 0, &[])).unwrap();
        for _ in 0..100 {
            store.next_row_id(&unnumbered);
        }
        let mut write = put(&unnumbered, &[Value::Integer(1)], Expect::Absent);
        unnumbered.keys().encode(&[store::value::ValueRef::Integer(100)], &mut write.key).unwrap();
        store.commit(&[write]).unwrap();
    }
    let store = Store::open(&options).unwrap().store;
    let t = current(&store);
    assert!(t.indexes().iter().all(|index| !index.is_usable()), "nobody has filled them");
    let taken = store.commit(&[put(&t, &row(-1, 5, 0), Expect::Absent)]);
    assert!(matches!(taken, Err(WriteError::Unique { .. })), "{taken:?}");
    assert!(store.recovered().complete, "who must know every value has waited, and helped");
    assert_eq!(store.next_row_id(store.catalog().table("r").unwrap()), 101);
    drop(store);
    let store = Store::open(&options).unwrap().store;
    assert_eq!(store.next_row_id(store.catalog().table("r").unwrap()), 101, "it waits by itself");
    let t = current(&store);
    assert_eq!(
        found_by(&store, &t, 1, 3).len(),
        usize::try_from(KEYS / 10).unwrap(),
        "so does a walk along an index"
    );
}

/// The rows with this value in an index.
fn found_by(store: &Store, t: &Arc<Table>, index: usize, value: i64) -> Vec<Vec<Value>> {
    let view = store.view();
    let bounds = KeyBounds::equal(vec![Value::Integer(value)]);
    let mut scan = view.range(t, &t.indexes()[index], &bounds, false);
    let (mut row, mut rows) = (RowBuf::new(), Vec::new());
    while scan.next(&view, &mut row).unwrap() {
        rows.push(values(t, &row));
    }
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

/// The table as it must be: number of a row to its unique value and its group.
type Model = BTreeMap<i64, (i64, i64)>;

fn expected(model: &Model, fits: impl Fn(i64) -> bool) -> Vec<Vec<Value>> {
    let rows = model.iter().filter(|(_, (_, n))| fits(*n));
    let mut rows: Vec<Vec<Value>> = rows.map(|(k, (u, n))| row(*k, *u, *n).to_vec()).collect();
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

/// One random operation, told to the store and to the model.
fn step(store: &Store, t: &Arc<Table>, model: &mut Model, random: &mut fastrand::Rng, looks: bool) {
    let k = random.i64(0..KEYS);
    match random.u8(0..10) {
        0..5 => {
            let (u, n) = (random.i64(0..4 * KEYS), random.i64(0..20));
            let taken = model.iter().any(|(other, (own, _))| *own == u && *other != k);
            let written = store.commit(&[put(t, &row(k, u, n), Expect::Anything)]);
            assert_eq!(written.is_err(), taken, "{written:?}");
            if !taken {
                model.insert(k, (u, n));
            }
        }
        5..7 => {
            store.commit(&[delete(t, &[Value::Integer(k)], Expect::Anything)]).unwrap();
            model.remove(&k);
        }
        7 if looks => {
            let n = random.i64(0..20);
            assert_eq!(found_by(store, t, 1, n), expected(model, |own| own == n));
        }
        8 if random.u8(..) < 4 => assert_eq!(all_rows(store, t), expected(model, |_| true)),
        9 => store.tick(),
        _ => {
            let mut found = RowBuf::new();
            let key = crate::common::key_of(t, &[Value::Integer(k)]);
            let there = store.view().get(t, &key, &mut found).unwrap();
            let wanted = model.get(&k).map(|(u, n)| row(k, *u, *n).to_vec());
            assert_eq!(there.then(|| values(t, &found)), wanted);
        }
    }
}

#[test]
fn random_work_during_the_recovery_agrees_with_a_model() {
    let mut random = fastrand::Rng::with_seed(seed());
    let (_file, options) = temporary("random");
    let mut model = Model::new();
    {
        let store = Store::open(&options).unwrap().store;
        let t = make_table(&store);
        for _ in 0..2 * KEYS {
            step(&store, &t, &mut model, &mut random, false);
        }
    }
    for start in 0..STARTS {
        let store = Store::open(&options).unwrap().store;
        std::thread::scope(|scope| {
            // Some starts end before anything but what was asked for is proved.
            let behind = (start % 3 != 2).then(|| scope.spawn(|| store.recover()));
            let t = current(&store);
            for _ in 0..STEPS {
                step(&store, &t, &mut model, &mut random, behind.is_some());
            }
        });
        let t = current(&store);
        assert_eq!(all_rows(&store, &t), expected(&model, |_| true));
        if start % 3 == 2 {
            continue;
        }
        assert_eq!(store.recover().dropped, 0);
        assert_eq!(t.stats().rows, model.len() as u64);
        assert_eq!(store.view().known_rows(&t), Some(model.len() as u64));
        assert!(t.indexes().iter().all(|index| index.len() == model.len() as u64));
    }
}

/// A full arena can free nothing before its rows are proved. A writer that finds no room does a bounded share of that
/// and is refused politely; when all are proved, eviction makes room as ever.
#[test]
fn a_full_arena_takes_writes_again_when_its_rows_are_proved() {
    let (_file, mut options) = temporary("full");
    options.memory_bytes = 8 << 20;
    let value = vec![b'v'; 500];
    let fill = |store: &Store, from: u32| {
        let catalog = store.catalog();
        let built_in = catalog.table(BUILT_IN).unwrap();
        (from..from + 30_000)
            .filter(|n| {
                let item = crate::common::item(&value, Expiry::Table);
                let key = n.to_be_bytes();
                store.put_item(built_in, &key, &item, Expect::Anything, store.now()).is_ok()
            })
            .count()
    };
    assert_eq!(fill(&Store::open(&options).unwrap().store, 0), 30_000);
    let store = Store::open(&options).unwrap().store;
    assert!(fill(&store, 30_000) > 0, "there is always a little room left");
    store.recover();
    assert_eq!(fill(&store, 60_000), 30_000);
    assert_eq!(store.recovered().dropped, 0);
}
