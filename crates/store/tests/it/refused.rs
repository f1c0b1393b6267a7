//! What the kernel refuses: pages to a write or a definition, addresses to a start. What was acknowledged stays, and
//! who is refused learns what to do.

use std::collections::HashMap;

use arena::failpoint::{Point, disarm, refuse_after};
use rustix::io::Errno;
use store::value::Value;
use store::{
    BUILT_IN, Expect, Expiry, ManualClock, Outcome, Start, Store, Table, WriteError, shared_path_beside,
};

use crate::common::{Bench, all_rows, get, item, options, put, seed, set, table};
use crate::restart::TempArena;

/// More calls than anything here makes.
const ALWAYS: usize = 10_000;

/// A call that is refused from the first, the second, ... time on, until it is made so seldom that none is refused.
fn each_refusal(point: Point, why: Errno, mut attempt: impl FnMut(usize)) {
    for passes in 0.. {
        refuse_after(point, passes, ALWAYS, why);
        attempt(passes);
        if disarm() >= ALWAYS {
            return;
        }
    }
}

/// Writes at random where the file system sometimes has no pages; what each key holds by the acknowledgements, and how
/// many writes were refused.
fn write_where_pages_are_refused(bench: &Bench, table: &Table) -> (HashMap<String, Vec<u8>>, usize) {
    let mut random = fastrand::Rng::with_seed(seed());
    let (mut rows, mut refused) = (HashMap::new(), 0);
    for step in 0..4_000 {
        if random.u8(..20) == 0 {
            disarm();
            refuse_after(Point::Fallocate, random.usize(..4), random.usize(1..40), Errno::NOSPC);
        }
        let key = format!("k{}", random.usize(..3_000));
        let len = if random.u8(..30) == 0 { random.usize(..200_000) } else { random.usize(..2_000) };
        let value = vec![random.u8(b'a'..=b'z'); len];
        let row = item(&value, Expiry::Table);
        match bench.store.put_item(table, key.as_bytes(), &row, Expect::Anything, bench.store.now()) {
            Ok(Outcome::Done(_)) => drop(rows.insert(key, value)),
            Err(WriteError::Full) => refused += 1,
            other => panic!("{other:?}"),
        }
        if step % 200 == 0 {
            bench.store.tick();
        }
    }
    disarm();
    (rows, refused)
}

/// A write that finds no pages is refused, or evicts; no other row pays for it.
#[test]
fn writes_where_pages_are_refused_undo_no_other() {
    for evictions in [false, true] {
        let bench = Bench::new(64);
        bench.store.set_evictions(evictions);
        let catalog = bench.store.catalog();
        let table = catalog.table(BUILT_IN).unwrap();
        let (rows, refused) = write_where_pages_are_refused(&bench, table);
        println!("evictions {evictions}: {} rows, {refused} writes refused", rows.len());
        let mut lost = 0;
        for (key, value) in &rows {
            match get(&bench.store, table, key.as_bytes()) {
                Some(found) => assert_eq!(&found, value, "{key}"),
                None => lost += 1,
            }
        }
        let evicted = table.stats().evicted;
        assert!(lost <= evicted && (evictions || lost == 0), "{lost} of {}, {evicted} evicted", rows.len());
        // The pages are there again, and so is the memory.
        bench.store.tick();
        (0..100).for_each(|n| {
            let key = format!("after{n}");
            set(&bench.store, table, key.as_bytes(), &[b'x'; 1_000], Expiry::Table);
            assert_eq!(get(&bench.store, table, key.as_bytes()).unwrap().len(), 1_000);
        });
    }
}

/// A commit that finds no pages for one of its rows is none.
#[test]
fn a_commit_that_is_refused_pages_is_whole_or_nothing() {
    let bench = Bench::new(64);
    bench.store.set_evictions(false);
    let t = bench.store.create_table(table("t", &[("a", "INT"), ("b", "TEXT")], 1, &[])).unwrap();
    let mut committed = 0;
    each_refusal(Point::Fallocate, Errno::NOSPC, |passes| {
        let first = i64::try_from(passes * 1_000).unwrap();
        let row = |n: i64| [Value::Integer(first + n), Value::Text("x".repeat(20_000))];
        let all: Vec<_> = (0..200).map(|n| put(&t, &row(n), Expect::Absent)).collect();
        match bench.store.commit(&all) {
            Ok(_) => committed += 200,
            Err(error) => assert!(matches!(error, WriteError::Full), "{error:?}"),
        }
        // The memory is divided again, as once a tick.
        bench.store.tick();
        assert_eq!(all_rows(&bench.store, &t).len(), committed);
    });
    assert!(committed > 0);
}

/// A store whose files go with it: rows in the private file and in the shared one.
fn filled(file: &TempArena, hands: &std::sync::Arc<ManualClock>) {
    let store = Store::open(&options(Some(file.0.clone()), 16, hands)).unwrap().store;
    let catalog = store.catalog();
    let own = catalog.table(BUILT_IN).unwrap();
    let shared = table("s", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("shared_memory", "on"), ("value", "v")]);
    let shared = store.create_table(shared).unwrap();
    for n in 0..300 {
        let key = format!("k{n}");
        set(&store, own, key.as_bytes(), &[b'o'; 500], Expiry::Table);
        set(&store, &shared, key.as_bytes(), &[b's'; 500], Expiry::Table);
    }
}

/// A start that was refused addresses or pages took the file for an unusable one, removed it and started empty: a limit
/// on the process, or a full file system, cost all rows.
#[test]
fn a_start_that_is_refused_leaves_the_rows_to_the_next() {
    let file = TempArena::new("refused");
    let shared = TempArena(shared_path_beside(&file.0));
    let _hits = TempArena(store::hits_path(&shared.0));
    let hands = ManualClock::new(1_700_000_000);
    filled(&file, &hands);
    let mut refusals = 0;
    for (point, why) in
        [(Point::Mmap, Errno::NOMEM), (Point::Fallocate, Errno::NOSPC), (Point::Punch, Errno::IO)]
    {
        each_refusal(point, why, |passes| match Store::open(&options(Some(file.0.clone()), 16, &hands)) {
            Ok(opened) => {
                assert!(matches!(opened.start, Start::Warm { .. }), "{point:?} {passes}: {:?}", opened.start);
                let catalog = opened.store.catalog();
                for (name, value) in [(BUILT_IN, [b'o'; 500]), ("s", [b's'; 500])] {
                    let table = catalog.table(name).unwrap();
                    let found = |n: &usize| get(&opened.store, table, format!("k{n}").as_bytes());
                    assert!(
                        (0..300).all(|n| found(&n) == Some(value.to_vec())),
                        "{point:?} {passes}: {name}"
                    );
                }
            }
            Err(error) => {
                refusals += 1;
                let text = error.to_string();
                assert!(text.contains(&file.0.display().to_string()), "{text}");
                assert!(text.contains("ulimit -v") || text.contains("--shm-size"), "{text}");
            }
        });
    }
    assert!(refusals > 6, "{refusals}");
    // Who asked for a cold start has no use for them.
    refuse_after(Point::Mmap, 0, 1, Errno::NOMEM);
    let cold = store::StoreOptions { cold: true, ..options(Some(file.0.clone()), 16, &hands) };
    assert!(matches!(Store::open(&cold).unwrap().start, Start::Cold { .. }));
    assert_eq!(disarm(), 0);
}

/// A definition whose own file had room, and the one that readers see had none, was refused, and in force after a
/// restart: so a table that nobody could drop was gone then, with its rows.
#[test]
fn a_definition_that_is_refused_is_none_after_a_restart() {
    let file = TempArena::new("refused-definition");
    let shared = TempArena(shared_path_beside(&file.0));
    let _hits = TempArena(store::hits_path(&shared.0));
    let hands = ManualClock::new(1_700_000_000);
    filled(&file, &hands);
    let mut refusals = 0;
    for passes in 0.. {
        let store = Store::open(&options(Some(file.0.clone()), 16, &hands)).unwrap().store;
        refuse_after(Point::Fallocate, passes, ALWAYS, Errno::NOSPC);
        let dropped = store.drop_table("s");
        let is_over = disarm() >= ALWAYS;
        drop(store);
        let store = Store::open(&options(Some(file.0.clone()), 16, &hands)).unwrap().store;
        match dropped {
            Ok(()) => assert!(store.catalog().table("s").is_none()),
            Err(error) => {
                refusals += 1;
                assert_eq!(error.state, "53100", "{error}");
                assert!(get(&store, store.catalog().table("s").unwrap(), b"k7").is_some(), "{passes}");
            }
        }
        if is_over {
            break;
        }
        assert!(store.catalog().table("s").is_some());
    }
    assert!(refusals > 1, "{refusals}");
}

/// A table whose file cannot be made is none, and nothing of the file stays; the next try makes it.
#[test]
fn a_shared_table_whose_file_is_refused_can_be_made_later() {
    for (point, why) in [(Point::Mmap, Errno::NOMEM), (Point::Fallocate, Errno::NOSPC)] {
        let file = TempArena::new("refused-shared");
        let shared = TempArena(shared_path_beside(&file.0));
        let _hits = TempArena(store::hits_path(&shared.0));
        let hands = ManualClock::new(1_700_000_000);
        let store = Store::open(&options(Some(file.0.clone()), 16, &hands)).unwrap().store;
        let mut made = 0;
        each_refusal(point, why, |_| {
            let name = format!("s{made}");
            let def =
                table(&name, &[("k", "TEXT"), ("v", "TEXT")], 1, &[("shared_memory", "on"), ("value", "v")]);
            match store.create_table(def) {
                Ok(_) => made += 1,
                Err(error) => {
                    assert!(store.catalog().table(&name).is_none(), "{error}");
                    let text = error.to_string();
                    assert!(text.contains("ulimit -v") || text.contains("--shm-size"), "{text}");
                }
            }
        });
        assert!(made > 0);
        store.tick();
        for n in 0..made {
            set(&store, store.catalog().table(&format!("s{n}")).unwrap(), b"k", b"v", Expiry::Table);
        }
    }
}
