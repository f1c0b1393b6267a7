//! No row is served past its time, none disappears before it.

use std::ops::ControlFlow;
use std::time::Duration;

use store::definition::{ColumnDef, TableOptions};
use store::{BUILT_IN, Expiry, Freshness};

use crate::common::{Bench, get, set, table};

#[test]
fn a_row_ends_at_its_tick() {
    let bench = Bench::new(16);
    let catalog = bench.store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    set(&bench.store, table, b"a", b"1", Expiry::At(bench.store.tick_after(Duration::from_secs(2))));
    bench.hands.advance(Duration::from_millis(1_999));
    assert!(get(&bench.store, table, b"a").is_some());
    bench.hands.advance(Duration::from_millis(64));
    assert!(get(&bench.store, table, b"a").is_none());
}

#[test]
fn a_table_ttl_ends_rows_without_a_deadline_of_their_own() {
    let bench = Bench::new(16);
    let def =
        table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("ttl", "10 s"), ("prefix", "t:"), ("value", "v")]);
    let table = bench.store.create_table(def).unwrap();
    set(&bench.store, &table, b"early", b"1", Expiry::Table);
    set(&bench.store, &table, b"long", b"1", Expiry::At(bench.store.tick_after(Duration::from_mins(1))));
    set(&bench.store, &table, b"ever", b"1", Expiry::Never);
    bench.advance(Duration::from_secs(5));
    set(&bench.store, &table, b"late", b"1", Expiry::Table);
    bench.advance(Duration::from_millis(4_900));
    assert!(get(&bench.store, &table, b"early").is_some());
    bench.advance(Duration::from_millis(200));
    assert!(get(&bench.store, &table, b"early").is_none());
    assert!(get(&bench.store, &table, b"late").is_some());
    bench.advance(Duration::from_secs(5));
    assert!(get(&bench.store, &table, b"late").is_none());
    assert!(get(&bench.store, &table, b"long").is_some() && get(&bench.store, &table, b"ever").is_some());
    bench.advance(Duration::from_mins(10));
    assert!(get(&bench.store, &table, b"long").is_none() && get(&bench.store, &table, b"ever").is_some());
}

#[test]
fn what_expired_does_not_come_back_when_the_rule_is_relaxed() {
    let bench = Bench::new(16);
    let def =
        table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("ttl", "1 s"), ("prefix", "t:"), ("value", "v")]);
    let old = bench.store.create_table(def).unwrap();
    set(&bench.store, &old, b"a", b"1", Expiry::Table);
    bench.advance(Duration::from_secs(2));
    assert!(get(&bench.store, &old, b"a").is_none());
    bench.store.set_options("t", &mut |options, _| options.reset("ttl")).unwrap();
    let catalog = bench.store.catalog();
    assert!(get(&bench.store, catalog.table("t").unwrap(), b"a").is_none());
}

#[test]
fn expired_memory_comes_back_without_reads() {
    let bench = Bench::new(16);
    let catalog = bench.store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    let deadline = Expiry::At(bench.store.tick_after(Duration::from_secs(30)));
    for n in 0..20_000 {
        set(&bench.store, table, format!("k{n}").as_bytes(), &[b'x'; 100], deadline);
    }
    let before = bench.store.usage().segment_bytes;
    bench.advance(Duration::from_secs(31));
    let after = bench.store.usage().segment_bytes;
    assert!(after * 4 < before, "{before} bytes before, {after} after");
    assert_eq!(bench.store.usage().rows, 0);
}

/// Puts so many rows into a table that end after half a minute, and lets them end.
fn let_rows_end(bench: &Bench, table: &store::Table, rows: usize) {
    let deadline = Expiry::At(bench.store.tick_after(Duration::from_secs(30)));
    for n in 0..rows {
        set(&bench.store, table, format!("k{n}").as_bytes(), &[b'x'; 100], deadline);
    }
    bench.hands.advance(Duration::from_secs(31));
}

/// Others write in the pauses, and what is put off is done at the ticks that follow.
#[test]
fn expiry_pauses_and_goes_on_at_the_next_tick() {
    let bench = Bench::new(16);
    let catalog = bench.store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    let_rows_end(&bench, table, 20_000);
    let (mut ticks, mut pauses) = (0, 0);
    while bench.store.usage().rows > pauses {
        assert!(ticks < 100, "{} rows are left", bench.store.usage().rows);
        ticks += 1;
        let before = bench.store.usage().rows;
        bench.store.tick_with_pauses(&mut || {
            let other = format!("other{pauses}");
            set(&bench.store, table, other.as_bytes(), b"1", Expiry::Never);
            pauses += 1;
            ControlFlow::Break(())
        });
        assert!(bench.store.usage().rows < before);
    }
    for pause in 0..pauses {
        assert!(get(&bench.store, table, format!("other{pause}").as_bytes()).is_some());
    }
}

/// A table may go while the cleaner pauses in the middle of it: what it held comes back once.
#[test]
fn a_table_is_dropped_while_its_rows_expire() {
    let bench = Bench::new(16);
    let def = table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("prefix", "t:"), ("value", "v")]);
    let before = bench.store.usage().segment_bytes;
    let table = bench.store.create_table(def).unwrap();
    let_rows_end(&bench, &table, 20_000);
    let mut pauses = 0;
    bench.store.tick_with_pauses(&mut || {
        if pauses == 1 {
            bench.store.drop_table("t").unwrap();
        }
        pauses += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(pauses, 2, "the cleaner goes no further in a table that is gone");
    bench.advance(Duration::from_secs(1));
    assert_eq!(bench.store.usage().rows, 0);
    assert_eq!(bench.store.usage().segment_bytes, before);
}

/// Open segments, too: nobody writes any more who would fill them.
#[test]
fn an_idle_table_gives_its_last_segments_back() {
    let bench = Bench::new(16);
    let def =
        table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("ttl", "10 s"), ("prefix", "t:"), ("value", "v")]);
    let table = bench.store.create_table(def).unwrap();
    set(&bench.store, &table, b"small", b"1", Expiry::Table);
    set(&bench.store, &table, b"large", &vec![b'x'; 50_000], Expiry::Table);
    bench.advance(Duration::from_secs(9));
    assert_eq!(table.stats().rows, 2);
    bench.advance(Duration::from_millis(1_100));
    for _ in 0..16 {
        bench.advance(Duration::from_millis(63));
    }
    assert_eq!((table.stats().rows, table.stats().segment_bytes), (0, 0));
    set(&bench.store, &table, b"own", b"1", Expiry::At(bench.store.tick_after(Duration::from_hours(1))));
    bench.store.flush(&table);
    for _ in 0..17 {
        bench.advance(Duration::from_millis(63));
    }
    assert_eq!((table.stats().rows, table.stats().segment_bytes), (0, 0), "after a flush");
}

#[test]
fn a_flush_in_the_future_takes_what_is_there_then() {
    let bench = Bench::new(16);
    let catalog = bench.store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    set(&bench.store, table, b"a", b"1", Expiry::Table);
    bench.store.flush_reachable(Some(bench.store.tick_after(Duration::from_secs(5))));
    bench.advance(Duration::from_secs(3));
    assert!(get(&bench.store, table, b"a").is_some());
    set(&bench.store, table, b"b", b"1", Expiry::Table);
    bench.advance(Duration::from_secs(3));
    assert!(get(&bench.store, table, b"a").is_none() && get(&bench.store, table, b"b").is_none());
    set(&bench.store, table, b"c", b"1", Expiry::Table);
    assert!(get(&bench.store, table, b"c").is_some());
}

/// The cleaner carried out a flush whose moment had come: until it ran the rows were served, and then it took what had
/// been stored and acknowledged since the moment.
#[test]
fn a_flush_takes_what_was_stored_before_its_moment_whoever_notices_it() {
    let bench = Bench::new(16);
    let store = &bench.store;
    let catalog = store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    for first_comes_a_write in [false, true] {
        set(store, table, b"before", b"1", Expiry::Table);
        set(store, table, b"its own", b"1", Expiry::At(store.tick_after(Duration::from_mins(1))));
        store.flush_reachable(Some(store.tick_after(Duration::from_secs(5))));
        bench.hands.advance(Duration::from_millis(4_900));
        set(store, table, b"just before", b"1", Expiry::Table);
        bench.hands.advance(Duration::from_millis(200));
        if first_comes_a_write {
            set(store, table, b"after", b"1", Expiry::Table);
        }
        for key in [&b"before"[..], b"its own", b"just before"] {
            assert_eq!(get(store, table, key), None, "{}", String::from_utf8_lossy(key));
        }
        set(store, table, b"after", b"1", Expiry::Table);
        bench.advance(Duration::from_secs(1));
        assert!(get(store, table, b"after").is_some());
        assert_eq!(crate::common::all_rows(store, table).len(), 1);
        store.flush(table);
    }
}

/// One flush waits at a time; a table that is made meanwhile, or answers to memcached from then on, is flushed with the
/// others.
#[test]
fn a_flush_takes_the_place_of_an_earlier_one_and_reaches_tables_made_since() {
    let bench = Bench::new(16);
    let store = &bench.store;
    let built_in = std::sync::Arc::clone(store.catalog().table(BUILT_IN).unwrap());
    let after = |seconds| Some(store.tick_after(Duration::from_secs(seconds)));
    set(store, &built_in, b"a", b"1", Expiry::Table);
    store.flush_reachable(after(5));
    store.flush_reachable(after(10));
    let options = [("prefix", "t:"), ("value", "v")];
    let t = store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &options)).unwrap();
    let private =
        store.create_table(table("p", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("value", "v")])).unwrap();
    for table in [&t, &private] {
        set(store, table, b"t:a", b"1", Expiry::Table);
    }
    bench.hands.advance(Duration::from_secs(6));
    assert!(get(store, &built_in, b"a").is_some() && get(store, &t, b"t:a").is_some());
    bench.hands.advance(Duration::from_secs(5));
    assert!(get(store, &built_in, b"a").is_none() && get(store, &t, b"t:a").is_none());
    assert!(get(store, &private, b"t:a").is_some(), "memcached does not reach it");
    set(store, &built_in, b"a", b"1", Expiry::Table);
    store.flush_reachable(after(5));
    store.flush_reachable(None);
    set(store, &built_in, b"b", b"1", Expiry::Table);
    bench.hands.advance(Duration::from_secs(6));
    assert!(get(store, &built_in, b"a").is_none() && get(store, &built_in, b"b").is_some());
}

/// Eviction moves rows while they are touched: the deadline that was acknowledged last holds.
#[test]
fn a_touch_outlives_a_move() {
    const HOT: u32 = 48;
    let bench = Bench::new(32);
    let store = &bench.store;
    let t = store
        .create_table(table(
            "t",
            &[("k", "TEXT"), ("v", "TEXT")],
            1,
            &[("max_rows", "50"), ("prefix", "t:"), ("value", "v")],
        ))
        .unwrap();
    let name = |n: u32| format!("hot{n}").into_bytes();
    let deadline = |tick: u32| Expiry::At(store.now() + 2_000 + tick);
    let value = vec![b'v'; 4_000];
    for n in 0..HOT {
        set(store, &t, &name(n), &value, deadline(0));
    }
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (t, done, value) = (&t, &done, &value);
        let mover = scope.spawn(move || {
            let mut n = 0_u64;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                set(store, t, format!("cold{n}").as_bytes(), b"1", deadline(0));
                n += 1;
            }
        });
        for round in 1..2_000 {
            for n in 0..HOT {
                let outcome = store.touch(t, &name(n), deadline(round), store.now()).unwrap();
                let mut row = store::RowBuf::new();
                if outcome == store::Outcome::Missing {
                    set(store, t, &name(n), value, deadline(round));
                } else if store.read(t, &name(n), store.now(), &mut row) {
                    assert_eq!(Expiry::At(row.expiry()), deadline(round), "a touch of row {n} is lost");
                }
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        mover.join().unwrap();
    });
}

#[test]
fn a_stale_row_ends_with_its_grace() {
    let bench = Bench::new(16);
    let options = [("ttl", "10 s"), ("stale_for", "30 s"), ("prefix", "t:"), ("value", "v")];
    let def = table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &options);
    let table = bench.store.create_table(def).unwrap();
    set(&bench.store, &table, b"table", b"1", Expiry::Table);
    set(&bench.store, &table, b"own", b"1", Expiry::At(bench.store.tick_after(Duration::from_secs(20))));
    let stale = |key: &[u8]| {
        let now = bench.store.now();
        let (meta, _) = bench.store.look(&table, key, now, false)?;
        Some(bench.store.freshness(&table, &meta, now) == Freshness::Stale)
    };
    assert_eq!((stale(b"table"), stale(b"own")), (Some(false), Some(false)));
    bench.advance(Duration::from_millis(10_200));
    assert_eq!((stale(b"table"), stale(b"own")), (Some(true), Some(false)));
    bench.advance(Duration::from_secs(10));
    assert_eq!((stale(b"table"), stale(b"own")), (Some(true), Some(true)));
    bench.advance(Duration::from_secs(20));
    assert_eq!((stale(b"table"), stale(b"own")), (None, Some(true)));
    bench.advance(Duration::from_secs(10));
    assert_eq!((stale(b"table"), stale(b"own")), (None, None));
}

#[test]
fn what_ended_before_stale_for_came_stays_gone() {
    let bench = Bench::new(16);
    let def = table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("prefix", "t:"), ("value", "v")]);
    let old = bench.store.create_table(def).unwrap();
    let after = |seconds| Expiry::At(bench.store.tick_after(Duration::from_secs(seconds)));
    set(&bench.store, &old, b"ended", b"1", after(5));
    set(&bench.store, &old, b"ends", b"1", after(20));
    bench.hands.advance(Duration::from_secs(10));
    let change =
        &mut |options: &mut TableOptions, columns: &[ColumnDef]| options.set("stale_for", "1 h", columns);
    bench.store.set_options("t", change).unwrap();
    let catalog = bench.store.catalog();
    let table = catalog.table("t").unwrap();
    assert!(get(&bench.store, table, b"ended").is_none());
    bench.advance(Duration::from_secs(20));
    assert!(get(&bench.store, table, b"ended").is_none());
    assert!(get(&bench.store, table, b"ends").is_some());
}

/// Deadlines were cut 8.5 years after the arena was made: what was to live until 2038 went in 2035.
#[test]
fn far_deadlines_are_kept() {
    let bench = Bench::new(16);
    let def = table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("value", "v")]);
    let table = &bench.store.create_table(def).unwrap();
    let year = Duration::from_hours(8_766);
    let years = [1, 4, 5, 8, 9, 12, 30, 70];
    for ahead in years {
        let deadline = Expiry::At(bench.store.tick_after(year * ahead));
        set(&bench.store, table, format!("{ahead}").as_bytes(), b"1", deadline);
    }
    let left = |key: &str| {
        let (meta, _) = bench.store.look(table, key.as_bytes(), bench.store.now(), false)?;
        bench.store.remaining(table, &meta, bench.store.now())
    };
    let mut passed = 0;
    for next in years {
        bench.advance((year * (next - passed)).saturating_sub(Duration::from_secs(5)));
        let key = next.to_string();
        let seconds = left(&key).unwrap() / store::TICKS_PER_SECOND;
        assert!((4..=5).contains(&seconds), "{seconds} s of {next} years are left");
        bench.advance(Duration::from_secs(5));
        assert_eq!(left(&key), None, "after {next} years");
        passed = next;
    }
}
