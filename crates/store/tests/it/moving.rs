//! Rows that move: by compaction, by eviction, and by what `ALTER` computes of them, beside everybody else.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use store::definition::{ColumnDef, Generated};
use store::value::Value;
use store::{Compute, Expect, Expiry, Made, ManualClock, Start, Store, Table, Task, WriteError};

use crate::common::{Bench, get, item, options, seed, set, table};
use crate::restart::TempArena;

fn current(store: &Store, name: &str) -> Arc<Table> {
    Arc::clone(store.catalog().table(name).unwrap())
}

/// Changes of a definition in a test of many: `ROUNDS` in the environment, or a few seconds' worth.
fn rounds() -> usize {
    #[expect(clippy::disallowed_methods, reason = "a test that is asked to go on for longer")]
    let rounds = std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    rounds.unwrap_or(1_500)
}

type Hook = Box<dyn FnOnce() + Send>;

thread_local! {
    /// Whether this thread alters a table: the hook runs between the copy of its first row and the copy's publication.
    static ALTERS: Cell<bool> = const { Cell::new(false) };
}
static HOOK: Mutex<Option<Hook>> = Mutex::new(None);

/// Computes 1 for every generated column.
#[derive(Debug)]
struct One;

impl Compute for One {
    fn row(&mut self, task: &Task<'_>, made: &mut Made) -> Result<(), WriteError> {
        let columns = task.table.def().columns.iter().enumerate();
        made.extend(
            columns.filter(|(_, own)| own.generated.is_some()).map(|(at, _)| (at, Value::Integer(1))),
        );
        if ALTERS.get()
            && let Some(hook) = HOOK.lock().unwrap().take()
        {
            std::thread::spawn(hook).join().unwrap();
        }
        Ok(())
    }
}

/// While `ALTER` computed a column of a row, clients replaced the row until a version stood where the copied one had
/// stood. The copy took its place: all of these acknowledged writes were lost.
#[test]
fn adding_a_computed_column_undoes_no_write() {
    // Which of the counts brings a version to the same place hangs on the size of the memory.
    for sets in 1..=40_usize {
        let bench = Bench::new(8);
        let store = Arc::clone(&bench.store);
        store.set_compute(Arc::new(|| Box::new(One)));
        store.create_table(table("t", &[("k", "TEXT"), ("body", "TEXT")], 1, &[("value", "body")])).unwrap();
        let body = |n: usize| {
            let mut body = format!("{n:08}").into_bytes();
            body.resize(300 << 10, b'x');
            body
        };
        set(&store, &current(&store, "t"), b"K", &body(0), Expiry::Table);
        let writer = Arc::clone(&store);
        let hook = move || {
            (1..=sets).for_each(|n| set(&writer, &current(&writer, "t"), b"K", &body(n), Expiry::Table));
        };
        *HOOK.lock().unwrap() = Some(Box::new(hook));
        ALTERS.set(true);
        let generated = Some(Generated { sql: "1".into(), stored: true });
        let column = ColumnDef { generated, ..ColumnDef::new("g", "INT").unwrap() };
        store.add_generated("t", column).unwrap();
        ALTERS.set(false);
        let got = get(&store, &current(&store, "t"), b"K").unwrap();
        assert_eq!(String::from_utf8_lossy(&got[..8]), format!("{sets:08}"));
    }
}

/// A definition that changed while a segment was emptied had every move of a row refused, and the rows were dropped for
/// want of room: a table lost nearly all of them, without evictions and with two thirds of the memory free.
#[test]
fn altering_while_compacting_loses_no_row() {
    const KEYS: usize = 6_000;
    let bench = Bench::new(8);
    let store = &bench.store;
    store.set_evictions(false);
    store.create_table(table("t", &[("k", "TEXT"), ("body", "TEXT")], 1, &[("value", "body")])).unwrap();
    let body = [b'x'; 400];
    for n in 0..KEYS {
        set(store, &current(store, "t"), format!("k{n}").as_bytes(), &body, Expiry::Table);
    }
    let seed = seed();
    let (stop, alters) = (&AtomicBool::new(false), &AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for writer in 0..2 {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed + writer);
                while !stop.load(Ordering::Relaxed) {
                    let key = format!("k{}", random.usize(..KEYS));
                    let row = item(&body, Expiry::Table);
                    let t = current(store, "t");
                    // What is refused for want of room changes nothing.
                    match store.put_item(&t, key.as_bytes(), &row, Expect::Anything, store.now()) {
                        Ok(_) | Err(WriteError::Full) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            });
        }
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let name = if alters.fetch_add(1, Ordering::Relaxed) % 2 == 0 { "text" } else { "body" };
                let rename = &mut |def: &mut store::definition::TableDef| {
                    def.columns[1].name = name.into();
                    Ok(())
                };
                store.alter_table("t", rename).unwrap();
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        while alters.load(Ordering::Relaxed) < rounds() {
            store.tick();
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let t = current(store, "t");
    let left = (0..KEYS).filter(|n| get(store, &t, format!("k{n}").as_bytes()).is_some()).count();
    println!("{left} of {KEYS} rows after {alters:?} changes of the definition");
    assert_eq!((left, t.stats().evicted), (KEYS, 0));
}

/// Rows above the limit of a row's size, which was lowered by a restart, were dropped by the first compaction.
#[test]
fn compaction_keeps_rows_that_a_lower_limit_would_refuse() {
    const KEYS: usize = 40;
    let file = TempArena::new("lower-limit");
    let hands = ManualClock::new(1_700_000_000);
    let mut options = options(Some(file.0.clone()), 16, &hands);
    let key = |n: usize| format!("large{n}").into_bytes();
    {
        let store = Store::open(&options).unwrap().store;
        let t = current(&store, store::BUILT_IN);
        // Every second one dies, so that the segments are sparse.
        (0..2 * KEYS).for_each(|n| set(&store, &t, &key(n), &vec![b'x'; 20_000], Expiry::Table));
        (0..KEYS)
            .for_each(|n| drop(store.delete(&t, &encoded(&t, 2 * n + 1), Expect::Anything, store.now())));
    }
    options.row_bytes_max = 4_096;
    let opened = Store::open(&options).unwrap();
    assert!(matches!(opened.start, Start::Warm { .. }), "{:?}", opened.start);
    let store = opened.store;
    store.recover();
    store.set_evictions(false);
    let t = current(&store, store::BUILT_IN);
    let mut filled = 0;
    while store
        .put_item(
            &t,
            format!("small{filled}").as_bytes(),
            &item(&[b'y'; 3_000], Expiry::Table),
            Expect::Absent,
            store.now(),
        )
        .is_ok()
    {
        filled += 1;
    }
    assert!(filled > 1_000, "{filled} rows filled the memory");
    let left = (0..KEYS).filter(|n| get(&store, &t, &key(2 * n)).is_some()).count();
    assert_eq!((left, t.stats().evicted), (KEYS, 0));
}

fn encoded(t: &Table, n: usize) -> Vec<u8> {
    crate::common::key_of(t, &[Value::Text(format!("large{n}"))])
}
