//! Commits of many rows: all or nothing, seen whole by statements, never losing a single-key write.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use store::definition::IndexDef;
use store::value::Value;
use store::{BUILT_IN, Change, Expect, Expiry, KeyBounds, NewRow, Outcome, RowBuf, Store, Table, WriteError};

use crate::common::{BOTH_WAYS, Bench, all_rows, delete, get, key_of, put, seed, set, table, values};

fn accounts(bench: &Bench, count: i64) -> Arc<Table> {
    let t = bench.store.create_table(table("acc", &[("id", "INT"), ("n", "INT")], 1, &[])).unwrap();
    let rows: Vec<_> =
        (0..count).map(|id| put(&t, &[Value::Integer(id), Value::Integer(100)], Expect::Absent)).collect();
    bench.store.commit(&rows).unwrap();
    t
}

fn balance(store: &Store, t: &Arc<Table>) -> i64 {
    let amount = |row: &Vec<Value>| if let Value::Integer(n) = row[1] { n } else { panic!("{row:?}") };
    all_rows(store, t).iter().map(amount).sum()
}

#[test]
fn a_list_is_applied_whole_or_not_at_all() {
    for rows in BOTH_WAYS {
        let bench = Bench::new(16);
        bench.store.set_locked_rows_max(rows);
        let t = accounts(&bench, 10);
        let write = |id: i64, expect| put(&t, &[Value::Integer(id), Value::Integer(0)], expect);
        let lost = bench.store.commit(&[
            write(1, Expect::Present),
            write(99, Expect::Present),
            write(2, Expect::Absent),
        ]);
        let Err(WriteError::Lost(mut lost)) = lost else { panic!("{lost:?}") };
        lost.sort_unstable();
        assert_eq!(lost, vec![1, 2]);
        assert_eq!(balance(&bench.store, &t), 1_000);
        bench
            .store
            .commit(&[write(1, Expect::Present), delete(&t, &[Value::Integer(2)], Expect::Present)])
            .unwrap();
        assert_eq!(balance(&bench.store, &t), 800);
    }
}

#[test]
fn a_statement_sees_the_versions_before_a_later_commit() {
    for rows in BOTH_WAYS {
        let bench = Bench::new(16);
        bench.store.set_locked_rows_max(rows);
        let t = accounts(&bench, 50);
        let view = bench.store.view();
        let changes: Vec<_> = (0..50)
            .map(|id| match id % 3 {
                0 => delete(&t, &[Value::Integer(id)], Expect::Present),
                1 => put(&t, &[Value::Integer(id), Value::Integer(7)], Expect::Present),
                _ => put(&t, &[Value::Integer(id + 1_000), Value::Integer(1)], Expect::Absent),
            })
            .collect();
        bench.store.commit(&changes).unwrap();
        let mut row = RowBuf::new();
        let mut seen = 0;
        let mut scan = view.scan(&t);
        while scan.next(&view, &mut row).unwrap() {
            assert_eq!(values(&t, &row)[1], Value::Integer(100));
            seen += 1;
        }
        assert_eq!(seen, 50);
        for id in 0..50 {
            assert!(view.get(&t, &key_of(&t, &[Value::Integer(id)]), &mut row).unwrap(), "row {id}");
            assert_eq!(values(&t, &row)[1], Value::Integer(100));
        }
        assert!(!view.get(&t, &key_of(&t, &[Value::Integer(1_002)]), &mut row).unwrap());
        drop(view);
        assert_eq!(all_rows(&bench.store, &t).len(), 50 - 17 + 16);
        assert_eq!(balance(&bench.store, &t), 17 * 7 + 16 + 16 * 100);
    }
}

/// Transfers between accounts by several threads, increments of one row by others, and readers that add everything up:
/// no sum is ever wrong, no increment is lost.
#[test]
fn transfers_keep_the_sum_for_every_statement() {
    const ACCOUNTS: i64 = 40;
    const ROUNDS: usize = 3_000;
    let bench = Bench::new(32);
    let t = accounts(&bench, ACCOUNTS);
    let store = &bench.store;
    let seed = seed();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let t = &t;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed ^ writer);
                    let mut conflicts = 0;
                    for _ in 0..ROUNDS {
                        store.set_locked_rows_max(BOTH_WAYS[random.usize(..2)]);
                        while !transfer(store, t, &mut random, ACCOUNTS) {
                            conflicts += 1;
                        }
                    }
                    conflicts
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut sums = 0;
            while !done.load(Ordering::Relaxed) {
                assert_eq!(balance(store, &t), ACCOUNTS * 100, "after {sums} sums");
                sums += 1;
            }
            sums
        });
        let conflicts: usize = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        done.store(true, Ordering::Relaxed);
        println!("{conflicts} conflicts, {} sums", reader.join().unwrap());
    });
    assert_eq!(balance(store, &t), ACCOUNTS * 100);
}

fn transfer(store: &Store, t: &Arc<Table>, random: &mut fastrand::Rng, accounts: i64) -> bool {
    let from = random.i64(0..accounts);
    let to = (from + random.i64(1..accounts)) % accounts;
    let read = |id: i64| {
        let mut row = RowBuf::new();
        let view = store.view();
        assert!(view.get(t, &key_of(t, &[Value::Integer(id)]), &mut row).unwrap());
        let Value::Integer(n) = values(t, &row)[1] else { panic!() };
        (n, row.cas())
    };
    let ((from_n, from_cas), (to_n, to_cas)) = (read(from), read(to));
    let write = |id, n, cas| put(t, &[Value::Integer(id), Value::Integer(n)], Expect::Version(cas));
    match store.commit(&[write(from, from_n - 1, from_cas), write(to, to_n + 1, to_cas)]) {
        Ok(_) => true,
        Err(WriteError::Lost(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Single-key increments and commits of many increments meet on the same rows: every acknowledged one counts.
#[test]
fn no_increment_is_lost_between_protocols() {
    const KEYS: usize = 8;
    const ROUNDS: usize = 4_000;
    let bench = Bench::new(32);
    let store = &bench.store;
    let catalog = store.catalog();
    let t = catalog.table(BUILT_IN).unwrap();
    for key in 0..KEYS {
        set(store, t, format!("n{key}").as_bytes(), b"0", Expiry::Table);
    }
    let add = |old: &[u8], new: &mut Vec<u8>| {
        let n: u64 = std::str::from_utf8(old).unwrap().parse().unwrap();
        new.extend_from_slice((n + 1).to_string().as_bytes());
        true
    };
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let key = format!("n{}", (round + thread) % KEYS);
                    let outcome = store.rewrite_item(t, key.as_bytes(), store.now(), &mut { add }).unwrap();
                    assert!(matches!(outcome, Outcome::Done(_)));
                }
            });
        }
        scope.spawn(|| {
            for round in 0..ROUNDS / 8 {
                store.set_locked_rows_max(BOTH_WAYS[round % 2]);
                while !increment_all(store, t, KEYS) {}
            }
        });
    });
    let total: u64 = (0..KEYS).map(|key| parse(&get(store, t, format!("n{key}").as_bytes()).unwrap())).sum();
    assert_eq!(total, (2 * ROUNDS + ROUNDS / 8 * KEYS) as u64);
}

fn parse(text: &[u8]) -> u64 {
    std::str::from_utf8(text).unwrap().parse().unwrap()
}

fn increment_all(store: &Store, t: &Arc<Table>, keys: usize) -> bool {
    let mut writes = Vec::new();
    let mut row = RowBuf::new();
    for key in 0..keys {
        let name = format!("n{key}");
        assert!(store.read(t, name.as_bytes(), store.now(), &mut row));
        let Value::Text(text) = values(t, &row)[1].clone() else { panic!() };
        let next = Value::Text((parse(text.as_bytes()) + 1).to_string());
        writes.push(put(t, &[Value::Text(name), next], Expect::Version(row.cas())));
    }
    match store.commit(&writes) {
        Ok(_) => true,
        Err(WriteError::Lost(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// A row that a single-key delete removed stays removed, whatever commits of many rows are about.
#[test]
fn no_row_is_resurrected() {
    const ROUNDS: usize = 2_000;
    let bench = Bench::new(32);
    let store = &bench.store;
    let t = accounts(&bench, 4);
    let keys: Vec<Vec<u8>> = (0..4).map(|id| key_of(&t, &[Value::Integer(id)])).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                let value = Value::Integer(i64::try_from(round).unwrap());
                let all: Vec<_> =
                    (0..4).map(|id| put(&t, &[Value::Integer(id), value.clone()], Expect::Present)).collect();
                // Lost when a row is away just now: then nothing may have been written.
                let _ = store.commit(&all);
            }
        });
        scope.spawn(|| {
            let mut row = RowBuf::new();
            for round in 0..ROUNDS {
                let key = &keys[round % 4];
                store.delete(&t, key, Expect::Anything, store.now()).unwrap();
                for _ in 0..3 {
                    assert!(!store.read(&t, key, store.now(), &mut row), "round {round}: the row came back");
                }
                let id = Value::Integer(i64::try_from(round % 4).unwrap());
                store.commit(&[put(&t, &[id, Value::Integer(0)], Expect::Absent)]).unwrap();
            }
        });
    });
}

/// What a transaction read and finds gone is a conflict when somebody removed it, and none when it was forgotten.
#[test]
fn a_forgotten_row_is_no_conflict_and_a_removed_one_is() {
    for rows in BOTH_WAYS {
        const MAX: i64 = 50;
        let bench = Bench::new(16);
        bench.store.set_locked_rows_max(rows);
        let store = &bench.store;
        let t =
            store.create_table(table("t", &[("id", "INT"), ("n", "INT")], 1, &[("max_rows", "50")])).unwrap();
        let other = store.create_table(table("o", &[("id", "INT"), ("n", "INT")], 1, &[])).unwrap();
        let row = |id: i64| [Value::Integer(id), Value::Integer(0)];
        // A list of one row and one of two are checked alike.
        let commit = |cas, since, alone: bool| {
            let mut list =
                vec![put(&t, &row(1), Expect::Unremoved { cas, since, expiry: None, lease: None })];
            list.extend((!alone).then(|| put(&other, &row(1), Expect::Anything)));
            store.commit(&list)
        };
        let read = || {
            let (mut buf, since) = (RowBuf::new(), store.last_stamp());
            assert!(store.view().get(&t, &key_of(&t, &[Value::Integer(1)]), &mut buf).unwrap());
            (buf.cas(), since)
        };
        let is_there = || all_rows(store, &t).iter().any(|row| row[0] == Value::Integer(1));
        for alone in [false, true] {
            store.commit(&[put(&t, &row(1), Expect::Anything)]).unwrap();
            let (cas, since) = read();
            for id in 2..3 * MAX {
                store.commit(&[put(&t, &row(id), Expect::Anything)]).unwrap();
            }
            assert!(!is_there(), "it was evicted");
            commit(cas, since, alone).unwrap();
            assert!(is_there());
            let (cas, since) = read();
            store.commit(&[delete(&t, &[Value::Integer(1)], Expect::Present)]).unwrap();
            assert_eq!(commit(cas, since, alone), Err(WriteError::Lost(vec![0])), "it was deleted");
            store.commit(&[put(&t, &row(1), Expect::Anything)]).unwrap();
            let (cas, since) = read();
            store.commit(&[put(&t, &row(1), Expect::Present)]).unwrap();
            assert_eq!(commit(cas, since, alone), Err(WriteError::Lost(vec![0])), "it was changed");
            let (cas, since) = read();
            store.truncate(&t);
            assert_eq!(commit(cas, since, alone), Err(WriteError::Lost(vec![0])), "it was flushed");
            let mut brief = put(&t, &row(1), Expect::Anything);
            let Change::Put(NewRow { expiry, .. }) = &mut brief.change else { panic!() };
            *expiry = Expiry::At(store.tick_after(Duration::from_secs(5)));
            store.commit(&[brief]).unwrap();
            let (cas, since) = read();
            bench.advance(Duration::from_secs(6));
            assert!(!is_there(), "it expired");
            commit(cas, since, alone).unwrap();
            assert!(is_there());
        }
    }
}

#[test]
fn a_list_in_which_a_key_stands_twice_is_refused() {
    for rows in BOTH_WAYS {
        let bench = Bench::new(16);
        bench.store.set_locked_rows_max(rows);
        let t = accounts(&bench, 3);
        let write = |id: i64| put(&t, &[Value::Integer(id), Value::Integer(0)], Expect::Present);
        let refused = bench.store.commit(&[write(1), write(2), write(1)]);
        assert!(matches!(refused, Err(WriteError::Key(_))), "{refused:?}");
        assert_eq!(balance(&bench.store, &t), 300);
        bench.store.commit(&[write(1), write(2)]).unwrap();
    }
}

/// Rows with equal keys stand in an index by their location, which every write changes. Whichever way they move while a
/// walk is under way, each is met once.
#[test]
fn a_walk_meets_every_row_once_though_rows_move_among_equals() {
    const ROWS: i64 = 300;
    let mut random = fastrand::Rng::with_seed(seed());
    let bench = Bench::new(32);
    let mut def = table("t", &[("id", "INT"), ("g", "INT")], 1, &[]);
    def.indexes = vec![IndexDef::new("t_g", vec![1], false)];
    let t = bench.store.create_table(def).unwrap();
    let write = |id: i64| put(&t, &[Value::Integer(id), Value::Integer(id / 250)], Expect::Anything);
    bench.store.commit(&(0..ROWS).map(write).collect::<Vec<_>>()).unwrap();
    // So few that each can be looked at, and so many that the index does not remember them.
    for rewritten in [3, 40, 700] {
        for reverse in [false, true] {
            let view = bench.store.view();
            let mut scan = view.range(&t, &t.indexes()[0], &KeyBounds::ALL, reverse);
            let (mut row, mut met) = (RowBuf::new(), Vec::new());
            while scan.next(&view, &mut row).unwrap() {
                let Value::Integer(id) = values(&t, &row)[0] else { panic!() };
                met.push(id);
                if met.len() % 10 == 0 && met.len() < 250 {
                    for _ in 0..rewritten {
                        bench.store.commit(&[write(random.i64(0..ROWS))]).unwrap();
                    }
                }
            }
            met.sort_unstable();
            assert_eq!(met, (0..ROWS).collect::<Vec<_>>(), "{rewritten} rewritten, reverse {reverse}");
        }
    }
}

/// A scan reads rows some time after it learned where they lie. Meanwhile half of the rows are written so often that
/// memory is recycled under them, and among the other half commits of many rows move amounts: each row is met once, and
/// the sum is that of before.
#[test]
fn a_scan_meets_every_row_once_though_memory_is_recycled_under_it() {
    const ROWS: i64 = 4_000;
    const AMOUNT: i64 = 100;
    let mut random = fastrand::Rng::with_seed(seed());
    let bench = Bench::new(64);
    let columns = [("id", "INT"), ("n", "INT"), ("body", "TEXT")];
    let t = bench.store.create_table(table("t", &columns, 1, &[])).unwrap();
    let body = Value::from("x".repeat(400).as_str());
    let write =
        |id: i64, n: i64| put(&t, &[Value::Integer(id), Value::Integer(n), body.clone()], Expect::Anything);
    let mut amounts: HashMap<i64, i64> = (0..ROWS).map(|id| (id, AMOUNT)).collect();
    for id in 0..ROWS {
        bench.store.commit(&[write(id, AMOUNT)]).unwrap();
    }
    for round in 0..12 {
        let view = bench.store.view();
        let (mut scan, mut row, mut met, mut sum) = (view.scan(&t), RowBuf::new(), Vec::new(), 0);
        while scan.next(&view, &mut row).unwrap() {
            let [Value::Integer(id), Value::Integer(n), _] = values(&t, &row)[..] else { panic!() };
            met.push(id);
            sum += if id % 2 == 0 { n } else { AMOUNT };
            for _ in 0..random.u32(0..6) {
                let id = random.i64(0..ROWS / 2) * 2 + 1;
                bench.store.commit(&[write(id, AMOUNT)]).unwrap();
            }
            if random.u32(0..50) == 0 {
                let [from, to] = [0, 1].map(|_| random.i64(0..ROWS / 2) * 2);
                if from != to {
                    let moved = [(from, -1), (to, 1)].map(|(id, more)| {
                        let amount = amounts.entry(id).or_default();
                        *amount += more;
                        write(id, *amount)
                    });
                    bench.store.commit(&moved).unwrap();
                }
            }
        }
        met.sort_unstable();
        assert_eq!(met, (0..ROWS).collect::<Vec<_>>(), "round {round}");
        assert_eq!(sum, ROWS * AMOUNT, "round {round}");
    }
}

#[test]
fn a_large_commit_leaves_no_row_out() {
    const ROWS: i64 = 150_000;
    let bench = Bench::new(128);
    let t = bench.store.create_table(table("t", &[("id", "INT"), ("n", "INT")], 1, &[])).unwrap();
    let rows: Vec<_> =
        (0..ROWS).map(|id| put(&t, &[Value::Integer(id), Value::Integer(id)], Expect::Absent)).collect();
    bench.store.commit(&rows).unwrap();
    assert_eq!(t.rows(), ROWS.unsigned_abs());
    assert_eq!(all_rows(&bench.store, &t).len(), rows.len());
}

#[test]
fn a_commit_keeps_every_table_to_its_rows() {
    let bench = Bench::new(32);
    let tables = ["a", "b"].map(|name| {
        let def = table(name, &[("id", "INT"), ("n", "INT")], 1, &[("max_rows", "100")]);
        bench.store.create_table(def).unwrap()
    });
    let rows: Vec<_> = (0..1_000)
        .map(|id| {
            put(&tables[usize::from(id >= 500)], &[Value::Integer(id), Value::Integer(id)], Expect::Absent)
        })
        .collect();
    bench.store.commit(&rows).unwrap();
    for t in &tables {
        assert!(t.rows() <= 100, "{} holds {} rows", t.name(), t.rows());
    }
}

/// A table that is dropped while commits stage and swap rows of it: what they took comes back.
#[test]
fn a_table_dropped_under_commits_gives_its_memory_back() {
    const ROWS: i64 = 4_000;
    let bench = Bench::new(64);
    let store = &bench.store;
    let before = store.usage().segment_bytes;
    for round in 0..12 {
        let t = store.create_table(table("dropped", &[("k", "TEXT"), ("v", "TEXT")], 1, &[])).unwrap();
        let row = |n: i64| [Value::Text(format!("k{n}")), Value::Text("x".repeat(200))];
        let writes: Vec<_> = (0..ROWS).map(|n| put(&t, &row(n), Expect::Anything)).collect();
        std::thread::scope(|scope| {
            let commit = scope.spawn(|| store.commit(&writes));
            // At another moment of the commit in each round.
            let wait = before + round * (1 << 17);
            while store.usage().segment_bytes < wait && !commit.is_finished() {
                std::thread::yield_now();
            }
            store.drop_table("dropped").unwrap();
            let result = commit.join().unwrap();
            assert!(matches!(result, Ok(_) | Err(WriteError::TableGone)), "{result:?}");
        });
        drop((t, writes));
        bench.advance(Duration::from_millis(100));
        let after = store.usage().segment_bytes;
        assert!(after <= before + (1 << 17), "round {round}: {before} bytes before, {after} after");
    }
}

/// The account's amount and the row's CAS value.
fn amount(store: &Store, t: &Arc<Table>, id: i64) -> (i64, u64) {
    let mut row = RowBuf::new();
    assert!(store.view().get(t, &key_of(t, &[Value::Integer(id)]), &mut row).unwrap());
    match values(t, &row)[1] {
        Value::Integer(n) => (n, row.cas()),
        ref other => panic!("{other:?}"),
    }
}

/// What goes first is never overtaken: a list that is made of many rows, each of which is written all the time, was
/// else doomed each time. The writers wait, and no write of either side is lost.
#[test]
fn a_commit_that_goes_first_lets_writers_wait() {
    const ACCOUNTS: i64 = 200;
    let bench = Bench::new(32);
    let t = accounts(&bench, ACCOUNTS);
    let store = &bench.store;
    let done = AtomicBool::new(false);
    let added: i64 = std::thread::scope(|scope| {
        let add = |first: i64| {
            let (mut added, mut id) = (0, first);
            while !done.load(Ordering::Relaxed) {
                id = (id + 7) % ACCOUNTS;
                let (n, cas) = amount(store, &t, id);
                let values = [Value::Integer(id), Value::Integer(n + 1)];
                match store.commit(&[put(&t, &values, Expect::Version(cas))]) {
                    Ok(_) => added += 1,
                    Err(WriteError::Lost(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            added
        };
        let writers: Vec<_> = (0..2).map(|writer| scope.spawn(move || add(writer))).collect();
        let all: Vec<_> =
            (0..ACCOUNTS).map(|id| delete(&t, &[Value::Integer(id)], Expect::Present)).collect();
        for _ in 0..100 {
            let made = store.commit_firmly(&all, || {
                std::thread::sleep(Duration::from_millis(1));
                let write = |id| {
                    let (n, cas) = amount(store, &t, id);
                    put(&t, &[Value::Integer(id), Value::Integer(n + 1_000_000)], Expect::Version(cas))
                };
                Ok::<_, ()>((0..ACCOUNTS - 1).map(write).collect())
            });
            made.unwrap().unwrap();
            // What a writer read before is of no use to it now; in between it has time to write.
            std::thread::sleep(Duration::from_millis(1));
        }
        done.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert!(added > 0);
    assert_eq!(balance(store, &t), ACCOUNTS * 100 + added + 100 * (ACCOUNTS - 1) * 1_000_000);
}

/// A list that takes too long to make holds up nobody for longer than 50 ms: the writer goes on, and the list is lost.
#[test]
fn a_writer_waits_for_a_commit_that_goes_first_no_longer_than_it_may() {
    let bench = Bench::new(16);
    let t = accounts(&bench, 2);
    let (_, cas) = amount(&bench.store, &t, 0);
    let row = |n| [Value::Integer(0), Value::Integer(n)];
    let made = bench.store.commit_firmly(&[delete(&t, &[Value::Integer(0)], Expect::Present)], || {
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| bench.store.commit(&[put(&t, &row(7), Expect::Anything)]).unwrap());
            std::thread::sleep(Duration::from_millis(20));
            assert!(!writer.is_finished(), "it waits");
            bench.hands.advance(Duration::from_millis(60));
            writer.join().unwrap();
        });
        Ok::<_, ()>(vec![put(&t, &row(8), Expect::Version(cas))])
    });
    assert_eq!(made, Ok(Err(WriteError::Lost(vec![0]))));
    assert_eq!(amount(&bench.store, &t, 0).0, 7);
    // A key that was not held is refused, and so is a list that fails; both leave the rows to others.
    let other = [delete(&t, &[Value::Integer(1)], Expect::Present)];
    let made = bench.store.commit_firmly(&other, || Ok::<_, ()>(vec![put(&t, &row(9), Expect::Anything)]));
    assert_eq!(made, Ok(Err(WriteError::Lost(vec![0]))));
    assert_eq!(bench.store.commit_firmly(&other, || Err("no")), Err("no"));
    bench.store.commit(&[put(&t, &row(10), Expect::Present), other[0].clone()]).unwrap();
    assert_eq!(all_rows(&bench.store, &t).len(), 1);
}
