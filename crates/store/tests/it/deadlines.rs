//! `touch` and claims beside every command that writes another version of the row: both take effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::value::Value;
use store::{
    BUILT_IN, Change, Edit, Edited, Expect, Expiry, Mark, NewRow, Outcome, Renewal, RowBuf, Store, Table,
    WriteError, WriteSet,
};

use crate::common::{Bench, get, key_of, put, seed, set, table};

/// What the row is stored with, and what it is touched to: all of one time-to-live class.
const STORED: u32 = 16 * 100;
const TOUCHED: u32 = 16 * 150;

fn at(tick: u32) -> Expiry {
    Expiry::At(tick)
}

fn built_in(bench: &Bench) -> Arc<Table> {
    Arc::clone(bench.store.catalog().table(BUILT_IN).unwrap())
}

fn read(store: &Store, t: &Table, key: &str) -> RowBuf {
    let mut row = RowBuf::new();
    assert!(store.read(t, &key_of(t, &[Value::Text(key.into())]), store.now(), &mut row));
    row
}

fn touch(store: &Store, t: &Table, key: &str, expiry: Expiry) {
    let outcome = store.touch(t, key.as_bytes(), expiry, store.now()).unwrap();
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
}

/// The row with another value, all else as it was read.
fn changed(row: &RowBuf) -> NewRow {
    NewRow {
        payload: row.payload().to_vec(),
        expiry: row.deadline(),
        client_flags: row.client_flags(),
        cas: None,
        renewal: row.renewal(),
    }
}

/// `incr` and `append` read the row, and wrote the deadline that they had read over one that a `touch` had set since.
#[test]
fn an_edit_keeps_the_deadline_of_a_touch_that_came_between() {
    for mark in [Mark::Fresh, Mark::Same, Mark::Stale, Mark::StaleSameLease] {
        // Within its class it is touched in its place; with another, or without a deadline before, by a new version.
        for (stored, touched) in [
            (at(STORED), TOUCHED),
            (at(TOUCHED), STORED),
            (at(STORED), 16 * 9_000),
            (Expiry::Table, TOUCHED),
            (Expiry::Never, TOUCHED),
        ] {
            let bench = Bench::new(16);
            let (store, t) = (&bench.store, built_in(&bench));
            set(store, &t, b"k", b"1", stored);
            let mut times = 0;
            let how = Edit { mark, ..Edit::default() };
            let outcome = store.edit_item(&t, b"k", &how, store.now(), &mut |old, new| {
                times += 1;
                if times == 1 {
                    touch(store, &t, "k", at(touched));
                }
                new.extend_from_slice(old);
                new.push(b'0');
                Edited::New
            });
            assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
            assert_eq!(get(store, &t, b"k").as_deref(), Some(&b"10"[..]));
            assert_eq!(read(store, &t, "k").expiry(), touched, "{mark:?} {stored:?}");
        }
    }
}

/// An edit that says when the row ends has its way: it comes after the touch.
#[test]
fn an_edit_with_a_deadline_of_its_own_sets_it() {
    let bench = Bench::new(16);
    let (store, t) = (&bench.store, built_in(&bench));
    set(store, &t, b"k", b"1", at(STORED));
    let how = Edit { expiry: Some(at(77)), ..Edit::default() };
    let edited = store.edit_item(&t, b"k", &how, store.now(), &mut |_, _| {
        touch(store, &t, "k", at(TOUCHED));
        Edited::Same
    });
    assert!(matches!(edited, Ok(Outcome::Done(_))), "{edited:?}");
    assert_eq!(read(store, &t, "k").expiry(), 77);
}

/// A SQL `UPDATE` of one row, of several, and one in a transaction wrote the deadline that they had read, and the
/// lease.
#[test]
fn updates_keep_a_touch_and_a_claim_that_came_between() {
    for rows in [1, 2] {
        for in_transaction in [false, true] {
            let bench = Bench::new(16);
            let store = &bench.store;
            let def = table(
                "t",
                &[("k", "TEXT"), ("v", "TEXT")],
                1,
                &[("value", "v"), ("lease", "10s"), ("stale_for", "1s")],
            );
            let t = store.create_table(def).unwrap();
            let keys = ["a", "b"];
            for key in keys {
                let outcome = store.put_item(
                    &t,
                    key.as_bytes(),
                    &crate::common::item(b"1", at(STORED)),
                    Expect::Anything,
                    store.now(),
                );
                assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
            }
            let writes = keys[..rows].iter().map(|key| {
                let row = read(store, &t, key);
                let expect = Expect::Version(row.cas());
                store::Write {
                    table: Arc::clone(&t),
                    key: row.key().to_vec(),
                    change: Change::Put(changed(&row)),
                    expect,
                }
            });
            let mut writes: Vec<_> = writes.collect();
            if in_transaction {
                let mut own = WriteSet::new();
                own.lay(writes);
                writes = own.into_writes();
            }
            for key in keys {
                touch(store, &t, key, at(TOUCHED));
                let row = read(store, &t, key);
                let (seen, _) = store.look(&t, row.key(), store.now(), false).unwrap();
                assert!(store.take_lease(&t, row.key(), &seen, 99, store.now()));
            }
            store.commit(&writes).unwrap();
            for key in keys {
                let row = read(store, &t, key);
                assert_eq!((row.expiry(), row.renewal().lease), (TOUCHED, Some(99)), "{key} of {rows}");
            }
        }
    }
}

/// The shortest way of an `UPDATE`: a row that was just read is replaced.
#[test]
fn a_rewritten_row_keeps_a_touch_that_came_between() {
    let bench = Bench::new(16);
    let (store, t) = (&bench.store, built_in(&bench));
    set(store, &t, b"k", b"1", at(STORED));
    let mut row = RowBuf::new();
    let met = store.meet(&t, &key_of(&t, &[Value::Text("k".into())]), store.now(), &mut row).unwrap();
    touch(store, &t, "k", at(TOUCHED));
    store.rewrite(&t, &met, &row, &changed(&row)).unwrap();
    assert_eq!(read(store, &t, "k").expiry(), TOUCHED);
}

/// A deadline that was computed of the earlier one is computed again where a touch came between.
#[test]
fn a_deadline_of_a_statements_own_is_lost_to_a_touch() {
    let bench = Bench::new(16);
    let (store, t) = (&bench.store, built_in(&bench));
    set(store, &t, b"k", b"1", at(STORED));
    let row = read(store, &t, "k");
    touch(store, &t, "k", at(TOUCHED));
    let expect = Expect::Untouched { cas: row.cas(), expiry: row.expiry(), lease: None };
    let new = NewRow { expiry: at(row.expiry() + 16), ..changed(&row) };
    let write =
        store::Write { table: Arc::clone(&t), key: row.key().to_vec(), change: Change::Put(new), expect };
    assert_eq!(store.commit(&[write]), Err(WriteError::Lost(vec![0])));
    assert_eq!(read(store, &t, "k").expiry(), TOUCHED);
}

/// A row that goes to another key takes no deadline and no lease of the row that stood there.
#[test]
fn a_new_row_takes_nothing_over() {
    let bench = Bench::new(16);
    let store = &bench.store;
    let t = store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[])).unwrap();
    let row = |expiry| {
        let mut write = put(&t, &[Value::Text("k".into()), Value::Text("v".into())], Expect::Anything);
        let Change::Put(new) = &mut write.change else { unreachable!("it is a put") };
        (new.expiry, new.renewal) = (expiry, Renewal::default());
        write
    };
    store.commit(&[row(at(STORED))]).unwrap();
    store.commit(&[row(at(TOUCHED))]).unwrap();
    assert_eq!(read(store, &t, "k").expiry(), TOUCHED);
    store.commit(&[row(Expiry::Kept(TOUCHED).settled())]).unwrap();
    assert_eq!(read(store, &t, "k").expiry(), TOUCHED);
}

/// Increments and touches at once, each of which is acknowledged and none of which may be lost.
#[test]
fn no_touch_is_lost_beside_increments() {
    const TOUCHES: u32 = 20_000;
    let bench = Bench::new(32);
    let (store, t) = (&bench.store, built_in(&bench));
    set(store, &t, b"k", b"0", at(STORED));
    let mut random = fastrand::Rng::with_seed(seed());
    let stop = AtomicBool::new(false);
    let (mut lost, mut increments) = (0, 0_u64);
    std::thread::scope(|scope| {
        let (stop, t) = (&stop, &t);
        let adder = scope.spawn(move || {
            let mut done = 0;
            while !stop.load(Ordering::Relaxed) {
                let outcome = store.rewrite_item(t, b"k", store.now(), &mut |old, new| {
                    let n: u64 = std::str::from_utf8(old).unwrap().parse().unwrap();
                    new.extend_from_slice((n + 1).to_string().as_bytes());
                    true
                });
                done += u64::from(matches!(outcome, Ok(Outcome::Done(_))));
            }
            done
        });
        for _ in 0..TOUCHES {
            let tick = STORED + random.u32(0..600);
            touch(store, t, "k", at(tick));
            lost += u32::from(read(store, t, "k").expiry() != tick);
        }
        stop.store(true, Ordering::Relaxed);
        increments = adder.join().unwrap();
    });
    assert_eq!(lost, 0, "of {TOUCHES} touches");
    assert_eq!(get(store, &t, b"k"), Some(increments.to_string().into_bytes()));
}
