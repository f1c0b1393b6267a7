//! A unique value stands in one live row, whoever writes, moves and expires meanwhile.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use store::definition::IndexDef;
use store::value::Value;
use store::{Change, Expect, Expiry, Store, Table, Write, WriteError};

use crate::common::{Bench, all_rows, put, seed, table};

fn unique_table(bench: &Bench, options: &[(&str, &str)]) -> Arc<Table> {
    let mut def = table("t", &[("k", "INT"), ("u", "TEXT"), ("n", "INT")], 1, options);
    def.indexes = vec![IndexDef::new("t_u", vec![1], true)];
    bench.store.create_table(def).unwrap()
}

fn write(t: &Arc<Table>, k: i64, u: &str, n: i64) -> Write {
    put(t, &[Value::Integer(k), Value::Text(u.into()), Value::Integer(n)], Expect::Anything)
}

fn with_deadline(mut write: Write, deadline: Expiry) -> Write {
    if let Change::Put(row) = &mut write.change {
        row.expiry = deadline;
    }
    write
}

fn is_unique_violation<T: std::fmt::Debug>(result: &Result<T, WriteError>) -> bool {
    matches!(result, Err(WriteError::Unique { .. }))
}

#[test]
fn a_dead_row_does_not_hold_its_value_for_its_next_version() {
    let bench = Bench::new(16);
    let t = unique_table(&bench, &[]);
    let soon = Expiry::At(bench.store.tick_after(Duration::from_secs(5)));
    bench.store.commit(&[with_deadline(write(&t, 1, "x", 0), soon)]).unwrap();
    // No tick: the row is dead, and still in its index.
    bench.hands.advance(Duration::from_secs(6));
    bench.store.commit(&[write(&t, 2, "x", 0)]).unwrap();
    assert!(is_unique_violation(&bench.store.commit(&[write(&t, 1, "x", 1)])));
    assert!(is_unique_violation(&bench.store.commit(&[write(&t, 1, "x", 1), write(&t, 3, "y", 1)])));
    assert_eq!(all_rows(&bench.store, &t).len(), 1);
    bench.store.commit(&[write(&t, 1, "z", 1)]).unwrap();
    assert_eq!(all_rows(&bench.store, &t).len(), 2);
    assert_eq!(t.indexes()[0].len(), 2, "the dead version left the index");
}

#[test]
fn a_dead_row_may_be_written_again_with_its_value() {
    let bench = Bench::new(16);
    let t = unique_table(&bench, &[]);
    let soon = Expiry::At(bench.store.tick_after(Duration::from_secs(5)));
    bench.store.commit(&[with_deadline(write(&t, 1, "x", 0), soon)]).unwrap();
    bench.hands.advance(Duration::from_secs(6));
    bench.store.commit(&[write(&t, 1, "x", 1)]).unwrap();
    assert_eq!(t.indexes()[0].len(), 1);
    bench.store.commit(&[write(&t, 1, "x", 2)]).unwrap();
    assert_eq!(t.indexes()[0].len(), 1);
    assert!(is_unique_violation(&bench.store.commit(&[write(&t, 2, "x", 0)])));
}

/// Two writers begin at the same moment to store one value under two keys.
#[test]
fn one_of_two_writers_gets_a_value() {
    const ROUNDS: i64 = 10_000;
    let bench = Bench::new(32);
    let t = unique_table(&bench, &[]);
    let arrived = AtomicUsize::new(0);
    let run = |writer: i64| {
        let (store, t, arrived): (&Store, _, _) = (&bench.store, &t, &arrived);
        move || {
            let mut stored = Vec::new();
            for round in 0..ROUNDS {
                let mine = write(t, round * 2 + writer, &format!("v{round}"), 0);
                arrived.fetch_add(1, Ordering::AcqRel);
                while arrived.load(Ordering::Acquire) < stored.len() * 2 + 2 {
                    std::thread::yield_now();
                }
                stored.push(store.commit(&[mine]).is_ok());
            }
            stored
        }
    };
    let [first, second] = std::thread::scope(|scope| {
        [scope.spawn(run(0)), scope.spawn(run(1))].map(|writer| writer.join().unwrap())
    });
    for (round, both) in first.iter().zip(&second).enumerate() {
        assert!(!(*both.0 && *both.1), "value {round} was stored twice");
    }
}

/// Eviction moves rows all the while; a commit that leaves the unique values as they are is never refused for them.
#[test]
fn a_moving_row_is_no_rival_of_its_own_commit() {
    const ROWS: i64 = 48;
    let bench = Bench::new(32);
    let store = &bench.store;
    let t = unique_table(&bench, &[("max_rows", "50")]);
    let mut random = fastrand::Rng::with_seed(seed());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stop, table) = (&done, &t);
        let mover = scope.spawn(move || {
            let mut n = 1_000;
            while !stop.load(Ordering::Relaxed) {
                store.commit(&[write(table, n, &format!("cold{n}"), 0)]).unwrap();
                all_rows(store, table);
                n += 1;
            }
        });
        let mut violations = 0;
        for _ in 0..3_000 {
            let first = random.i64(0..ROWS);
            let rows: Vec<_> = (0..ROWS / 2).map(|k| (first + k) % ROWS).collect();
            let writes: Vec<_> =
                rows.iter().map(|&k| write(&t, k, &format!("v{k}"), random.i64(0..100))).collect();
            match store.commit(&writes) {
                Err(WriteError::Unique { .. }) => violations += 1,
                Ok(_) | Err(WriteError::Lost(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        done.store(true, Ordering::Relaxed);
        mover.join().unwrap();
        assert_eq!(violations, 0);
    });
}

/// Commits are under way while a unique index is made: it is refused, or what it promises holds.
#[test]
fn an_index_made_among_commits_holds() {
    const ROUNDS: usize = 300;
    let bench = Bench::new(32);
    let store = &bench.store;
    let made = AtomicUsize::new(0);
    for round in 0..ROUNDS {
        let name = format!("t{round}");
        let t = store.create_table(table(&name, &[("k", "INT"), ("u", "TEXT")], 1, &[])).unwrap();
        let start = Barrier::new(3);
        std::thread::scope(|scope| {
            for writer in 0..2_i64 {
                let (t, start) = (&t, &start);
                scope.spawn(move || {
                    start.wait();
                    let rows = (0..40).map(|k| {
                        let value = Value::Text(format!("v{}", k + writer * 39));
                        put(t, &[Value::Integer(writer * 100 + k), value], Expect::Anything)
                    });
                    let _refused = store.commit(&rows.collect::<Vec<_>>());
                });
            }
            start.wait();
            let def = IndexDef::new(format!("{name}_u"), vec![1], true);
            if store.create_index(&name, def).is_ok() {
                made.fetch_add(1, Ordering::Relaxed);
            }
        });
        if store.catalog().index_owner(&format!("{name}_u")).is_some() {
            let mut values: Vec<_> =
                all_rows(store, &t).into_iter().map(|row| format!("{:?}", row[1])).collect();
            let all = values.len();
            values.sort();
            values.dedup();
            assert_eq!(values.len(), all, "round {round}: a value stands twice under a unique index");
        }
        store.drop_table(&name).unwrap();
    }
    println!("{} indexes were made", made.load(Ordering::Relaxed));
}

/// Two commits that wanted the same values in opposite order waited for each other until one gave way, with all of
/// their keys marked: most of a second each time, and at times both were refused.
#[test]
fn of_two_commits_that_want_the_same_values_one_succeeds_at_once() {
    const VALUES: i64 = 400;
    let bench = Bench::new(32);
    let t = unique_table(&bench, &[]);
    for round in 0..40 {
        let row =
            |side: i64, n: i64| write(&t, (round * 2 + side) * VALUES + n, &format!("{round}:{n}"), side);
        let up: Vec<_> = (0..VALUES).map(|n| row(0, n)).collect();
        let down: Vec<_> = (0..VALUES).rev().map(|n| row(1, n)).collect();
        let barrier = Barrier::new(2);
        let results = std::thread::scope(|scope| {
            let commits = [&up, &down].map(|list| {
                let (barrier, store) = (&barrier, &bench.store);
                scope.spawn(move || {
                    barrier.wait();
                    store.commit(list)
                })
            });
            commits.map(|commit| commit.join().unwrap())
        });
        let done = results.iter().filter(|result| result.is_ok()).count();
        assert!(done == 1 && results.iter().any(is_unique_violation), "round {round}: {results:?}");
    }
    assert_eq!(all_rows(&bench.store, &t).len(), 40 * usize::try_from(VALUES).unwrap());
}
