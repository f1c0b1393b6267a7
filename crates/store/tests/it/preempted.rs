//! Preemption at one instruction: what others do between two steps of a thread, in every run.

use std::sync::Arc;
use std::time::Duration;

use arena::failpoint::{Point, disarm, step_in};
use store::{BUILT_IN, Expect, Expiry, ManualClock, Store, Table, hits_path, shared_path_beside};

use crate::common::{Bench, get, options, set, table};
use crate::restart::TempArena;

/// What is done to the row in between.
type Deed = fn(&Store, &Table);

/// Keeps what is at stake alive until the step was taken.
fn between(bench: &Bench, point: Point, deed: Deed) {
    let store = Arc::clone(&bench.store);
    step_in(point, move || deed(&store, store.catalog().table(BUILT_IN).unwrap()));
}

/// A deadline that all rows have, so that they lie in segments of one kind: an eviction that is stopped in the middle
/// lets nobody have another segment.
fn later(store: &Store) -> Expiry {
    Expiry::At(store.tick_after(Duration::from_hours(2)))
}

fn replace(store: &Store, table: &Table) {
    set(store, table, b"hot", b"new", later(store));
}

fn delete(store: &Store, table: &Table) {
    store.delete(table, b"hot", Expect::Anything, store.now()).unwrap();
}

/// Fills the memory more than once, so that other rows lie where the row lay.
fn overwrite(store: &Store, table: &Table) {
    delete(store, table);
    for n in 0..20_000 {
        set(store, table, format!("cold{n}").as_bytes(), &[b'c'; 1_000], Expiry::Table);
    }
}

/// A reader is stopped between finding a row and reading it: he has the row as it was, or looks again.
#[test]
fn a_row_that_goes_between_finding_and_reading_is_whole_or_gone() {
    let old = vec![b'o'; 5_000];
    for (deed, now) in [(replace as Deed, Some(&b"new"[..])), (delete, None), (overwrite, None)] {
        let bench = Bench::new(8);
        let catalog = bench.store.catalog();
        let table = catalog.table(BUILT_IN).unwrap();
        set(&bench.store, table, b"hot", &old, Expiry::Table);
        between(&bench, Point::Found, deed);
        let found = get(&bench.store, table, b"hot");
        assert_eq!(disarm(), 0);
        assert!(
            found.as_ref() == Some(&old) || found.as_deref() == now,
            "{:?}",
            found.map(|value| value.len())
        );
        assert_eq!(get(&bench.store, table, b"hot").as_deref(), now);
    }
}

/// Fills the memory with rows that nobody reads, until the row that is read often moves, and does something to it when
/// it is copied and the copy is not published.
fn do_while_it_moves(bench: &Bench, deed: Deed) {
    let catalog = bench.store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    set(&bench.store, table, b"hot", b"old", later(&bench.store));
    (0..8).for_each(|_| drop(get(&bench.store, table, b"hot")));
    for n in 0.. {
        set(&bench.store, table, format!("cold{n}").as_bytes(), &[b'c'; 1_000], later(&bench.store));
        if n % 16 == 0 {
            between(bench, Point::Copied, deed);
            bench.store.tick();
            if disarm() == 0 {
                return;
            }
        }
        assert!(n < 100_000, "the row never moves");
    }
}

/// A row that is replaced or removed while it moves is not brought back by its copy.
#[test]
fn a_row_that_moves_undoes_no_write() {
    for (deed, now) in [(replace as Deed, Some(&b"new"[..])), (delete, None)] {
        let bench = Bench::new(8);
        do_while_it_moves(&bench, deed);
        let catalog = bench.store.catalog();
        assert_eq!(get(&bench.store, catalog.table(BUILT_IN).unwrap(), b"hot").as_deref(), now);
    }
}

/// Nor does the copy go on without the deadline that the row was given meanwhile.
#[test]
fn a_row_that_moves_keeps_its_new_deadline() {
    let bench = Bench::new(8);
    do_while_it_moves(&bench, |store, table| {
        let soon = Expiry::At(store.tick_after(Duration::from_hours(1)));
        store.touch(table, b"hot", soon, store.now()).unwrap();
    });
    let catalog = bench.store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    assert_eq!(get(&bench.store, table, b"hot").as_deref(), Some(&b"old"[..]));
    bench.advance(Duration::from_mins(61));
    assert_eq!(get(&bench.store, table, b"hot"), None);
}

/// When a table goes to the other file, a new table takes its name. For a moment others could write the new one while
/// the old one still had its rows. A reader that held the old one then got an older version than the acknowledged one.
#[test]
fn nobody_reads_the_old_table_when_others_write_the_new_one() {
    let arena = TempArena::new("changes-file");
    let hands = ManualClock::new(1_700_000_000);
    let store = Store::open(&options(Some(arena.0.clone()), 8, &hands)).unwrap().store;
    let old = store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("value", "v")])).unwrap();
    set(&store, &old, b"hot", b"old", Expiry::Table);
    let (own, other) = (Arc::clone(&store), Arc::clone(&old));
    step_in(Point::Defined, move || {
        let new = Arc::clone(own.catalog().table("t").unwrap());
        assert_ne!(new.id(), other.id());
        set(&own, &new, b"hot", b"new", Expiry::Table);
        assert_eq!(get(&own, &other, b"hot"), None, "an older version than the acknowledged one");
    });
    store.set_options("t", &mut |options, columns| options.set("shared_memory", "on", columns)).unwrap();
    assert_eq!(disarm(), 0);
    assert_eq!(get(&store, store.catalog().table("t").unwrap(), b"hot").as_deref(), Some(&b"new"[..]));
    let shared = shared_path_beside(&arena.0);
    drop(store);
    for file in [hits_path(&shared), shared] {
        let _absent = std::fs::remove_file(file);
    }
}
