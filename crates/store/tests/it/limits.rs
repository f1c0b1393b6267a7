//! The rules of one table together: operations, rows, memory, and what it has for itself; and every row is accounted
//! for.

use std::time::Duration;

use store::definition::{ColumnDef, TableOptions};
use store::{BUILT_IN, Expect, Expiry, Outcome, RemovalCause, Store, Table};

use crate::common::{Bench, get, item, options, seed, set, table};

const MIB: u64 = 1 << 20;

fn cache_table(bench: &Bench, name: &str, rules: &[(&str, &str)]) -> std::sync::Arc<Table> {
    let prefix = format!("{name}:");
    let all: Vec<(&str, &str)> =
        rules.iter().copied().chain([("prefix", prefix.as_str()), ("value", "v")]).collect();
    bench.store.create_table(table(name, &[("k", "TEXT"), ("v", "TEXT")], 1, &all)).unwrap()
}

fn alter(store: &Store, name: &str, option: &str, text: &str) {
    let change = &mut |options: &mut TableOptions, columns: &[ColumnDef]| options.set(option, text, columns);
    store.set_options(name, change).unwrap();
}

/// A memcached command does this for each key.
fn counted_get(store: &Store, table: &Table, key: &[u8]) -> Option<Vec<u8>> {
    store.count_operation(table);
    get(store, table, key)
}

fn counted_set(store: &Store, table: &Table, key: &[u8]) {
    store.count_operation(table);
    set(store, table, key, b"v", Expiry::Table);
}

#[test]
fn a_row_goes_after_max_ops_operations() {
    for max in [1, 2, 3, 10, 1_000] {
        let bench = Bench::new(16);
        let t = cache_table(&bench, "t", &[("max_ops", &max.to_string())]);
        counted_set(&bench.store, &t, b"a");
        for operation in 1..=max {
            assert!(counted_get(&bench.store, &t, b"a").is_some(), "{operation} of {max}");
        }
        assert!(counted_get(&bench.store, &t, b"a").is_none(), "after {max}");
        // Another write starts again.
        counted_set(&bench.store, &t, b"a");
        assert!(counted_get(&bench.store, &t, b"a").is_some());
    }
}

#[test]
fn a_large_max_ops_is_late_by_little_and_never_early() {
    let max = 100_000;
    let bench = Bench::new(16);
    let t = cache_table(&bench, "t", &[("max_ops", "100000")]);
    counted_set(&bench.store, &t, b"a");
    let lived = (0..2 * max).take_while(|_| counted_get(&bench.store, &t, b"a").is_some()).count();
    assert!((max..=max + max / 500 + 1).contains(&lived), "{lived}");
}

#[test]
fn operations_take_rows_with_deadlines_too_and_memory_comes_back() {
    let bench = Bench::new(16);
    let t = cache_table(&bench, "t", &[("max_ops", "1000")]);
    for n in 0..20_000 {
        let deadline = Expiry::At(bench.store.tick_after(Duration::from_hours(1)));
        let expiry = if n % 2 == 0 { deadline } else { Expiry::Table };
        bench.store.count_operation(&t);
        set(&bench.store, &t, format!("k{n}").as_bytes(), &[b'x'; 100], expiry);
    }
    for _ in 0..1_001 {
        bench.store.count_operation(&t);
    }
    for _ in 0..16 {
        bench.advance(Duration::from_millis(63));
    }
    let stats = t.stats();
    assert_eq!((stats.rows, stats.segment_bytes), (0, 0), "{stats:?}");
    assert_eq!(stats.left(RemovalCause::Operations), 20_000);
}

#[test]
fn max_ops_changes_while_rows_are_there() {
    let bench = Bench::new(16);
    let t = cache_table(&bench, "t", &[]);
    counted_set(&bench.store, &t, b"a");
    for _ in 0..100 {
        assert!(counted_get(&bench.store, &t, b"a").is_some());
    }
    // Operations count from the moment at which the option is set.
    alter(&bench.store, "t", "max_ops", "50");
    let catalog = bench.store.catalog();
    let t = catalog.table("t").unwrap();
    let lived = (0..100).take_while(|_| counted_get(&bench.store, t, b"a").is_some()).count();
    assert!((49..=51).contains(&lived), "{lived}");
    alter(&bench.store, "t", "max_ops", "off");
    assert!(get(&bench.store, t, b"a").is_none(), "what expired stays so");
}

#[test]
fn what_had_its_operations_stays_dead_in_the_next_process() {
    let file = crate::restart::TempArena::new("operations");
    let hands = store::ManualClock::new(1_700_000_000);
    let open = || Store::open(&options(Some(file.0.clone()), 16, &hands)).unwrap().store;
    let first = open();
    let def = table(
        "t",
        &[("k", "TEXT"), ("v", "TEXT")],
        1,
        &[("max_ops", "10"), ("prefix", "t:"), ("value", "v")],
    );
    let t = first.create_table(def).unwrap();
    counted_set(&first, &t, b"old");
    for _ in 0..6 {
        first.count_operation(&t);
    }
    counted_set(&first, &t, b"young");
    for _ in 0..5 {
        first.count_operation(&t);
    }
    assert!(get(&first, &t, b"old").is_none() && get(&first, &t, b"young").is_some());
    drop((t, first));
    let second = open();
    let catalog = second.catalog();
    let t = catalog.table("t").unwrap();
    assert!(get(&second, t, b"old").is_none() && get(&second, t, b"young").is_some());
    for _ in 0..12 {
        second.count_operation(t);
    }
    assert!(get(&second, t, b"young").is_none());
}

#[test]
fn a_table_keeps_to_its_memory() {
    let mut random = fastrand::Rng::with_seed(seed());
    let bench = Bench::new(64);
    let t = cache_table(&bench, "t", &[("max_memory", "4 MB")]);
    for n in 0..60_000 {
        let key = format!("k{}", random.u32(0..40_000));
        set(&bench.store, &t, key.as_bytes(), &vec![b'v'; random.usize(0..400)], Expiry::Table);
        let stats = t.stats();
        assert!(stats.segment_bytes <= 4 * MIB, "{n}: {stats:?}");
    }
    let stats = t.stats();
    assert!(stats.left(RemovalCause::MaxMemory) > 0 && stats.left(RemovalCause::Memory) == 0, "{stats:?}");
    assert!(stats.segment_bytes > 3 * MIB, "{stats:?}");
    // Less memory takes effect while nobody writes.
    alter(&bench.store, "t", "max_memory", "2 MB");
    bench.advance(Duration::from_millis(63));
    assert!(t.stats().segment_bytes <= 2 * MIB, "{:?}", t.stats());
}

#[test]
fn rows_of_every_size_share_a_tables_memory() {
    let mut random = fastrand::Rng::with_seed(seed());
    let bench = Bench::new(64);
    let t = cache_table(&bench, "t", &[("max_memory", "12 MB")]);
    for n in 0..3_000 {
        let largest = [100, 5_000, 60_000, 1_200_000][random.usize(0..4)];
        let value = vec![b'v'; random.usize(0..largest)];
        set(&bench.store, &t, format!("k{n}").as_bytes(), &value, Expiry::Table);
        // A row that is worth keeping moves to a segment before its old one is free.
        assert!(t.stats().segment_bytes <= 13 * MIB, "{:?}", t.stats());
    }
}

#[test]
fn a_row_larger_than_its_table_may_be_is_refused() {
    let bench = Bench::new(64);
    let t = cache_table(&bench, "t", &[("max_memory", "1 MB")]);
    let value = vec![b'v'; 1_500_000];
    let refused =
        bench.store.put_item(&t, b"k", &item(&value, Expiry::Table), Expect::Anything, bench.store.now());
    assert!(matches!(refused, Err(store::WriteError::TooLarge { .. })), "{refused:?}");
    set(&bench.store, &t, b"k", &value[..500_000], Expiry::Table);
}

#[test]
fn a_flood_does_not_evict_what_another_table_reserves() {
    let bench = Bench::new(32);
    let kept = cache_table(&bench, "kept", &[("min_memory", "8 MB")]);
    let flood = cache_table(&bench, "flood", &[]);
    let value = [b'v'; 200];
    for n in 0..20_000 {
        set(&bench.store, &kept, format!("k{n}").as_bytes(), &value, Expiry::Table);
    }
    for n in 0..400_000 {
        set(&bench.store, &flood, format!("k{n}").as_bytes(), &value, Expiry::Table);
        if n % 10_000 == 0 {
            bench.store.tick();
        }
    }
    assert_eq!(kept.stats().rows, 20_000);
    assert!(flood.stats().left(RemovalCause::Memory) > 100_000);
    let rest = (0..20_000).filter(|n| get(&bench.store, &kept, format!("k{n}").as_bytes()).is_some());
    assert_eq!(rest.count(), 20_000);
    // Beyond what it reserves a table gives like any other.
    for n in 20_000..200_000 {
        set(&bench.store, &kept, format!("k{n}").as_bytes(), &value, Expiry::Table);
    }
    assert!(kept.stats().left(RemovalCause::Memory) > 0);
}

#[test]
fn reserves_leave_room_for_others() {
    let bench = Bench::new(64);
    cache_table(&bench, "a", &[("min_memory", "40 MB")]);
    let def = table("b", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("min_memory", "10 MB")]);
    let refused = bench.store.create_table(def).unwrap_err();
    assert_eq!(refused.state, "53200", "{}", refused.message);
    let more =
        &mut |options: &mut TableOptions, columns: &[ColumnDef]| options.set("min_memory", "50 MB", columns);
    assert_eq!(bench.store.set_options("a", more).unwrap_err().state, "53200");
    alter(&bench.store, "a", "min_memory", "48 MB");
}

#[test]
fn a_heavier_table_keeps_more() {
    let bench = Bench::new(32);
    let heavy = cache_table(&bench, "heavy", &[("weight", "4")]);
    let light = cache_table(&bench, "light", &[]);
    for n in 0..300_000 {
        for t in [&heavy, &light] {
            set(&bench.store, t, format!("k{n}").as_bytes(), &[b'v'; 200], Expiry::Table);
        }
        if n % 10_000 == 0 {
            bench.store.tick();
        }
    }
    let (heavy, light) = (heavy.stats().rows, light.stats().rows);
    assert!(heavy > 3 * light && heavy < 5 * light, "{heavy} beside {light}");
}

/// Whatever rules are at work: what went in is there, was replaced by the test, or is counted by the reason it left
/// for.
#[test]
fn every_row_is_accounted_for() {
    let mut random = fastrand::Rng::with_seed(seed());
    let bench = Bench::new(16);
    let built_in = std::sync::Arc::clone(bench.store.catalog().table(BUILT_IN).unwrap());
    let rules: &[&[(&str, &str)]] = &[
        &[],
        &[("ttl", "3 s"), ("max_rows", "2000")],
        &[("max_ops", "3000"), ("ttl", "1 h")],
        &[("max_memory", "1 MB"), ("min_memory", "512 kB")],
        &[("ttl", "10 s"), ("stale_for", "5 s"), ("weight", "0.5")],
    ];
    let mut tables = vec![built_in];
    for (at, rules) in rules.iter().enumerate() {
        tables.push(cache_table(&bench, &format!("t{at}"), rules));
    }
    let mut replaced = vec![0; tables.len()];
    for _ in 0..150_000 {
        let at = random.usize(0..tables.len());
        let t = &tables[at];
        let key = format!("k{}", random.u32(0..8_000));
        bench.store.count_operation(t);
        match random.u32(0..1_000) {
            0..600 => {
                let ahead = Duration::from_secs(random.u64(1..20));
                let deadline = Expiry::At(bench.store.tick_after(ahead));
                let expiry = [Expiry::Table, Expiry::Never, deadline][random.usize(0..3)];
                let value = vec![b'v'; random.usize(0..300)];
                let new = item(&value, expiry);
                let now = bench.store.now();
                let put = |expect| bench.store.put_item(t, key.as_bytes(), &new, expect, now).unwrap();
                // Making room for a row may evict the very one that it is to replace.
                if put(Expect::Present) == Outcome::Missing {
                    put(Expect::Absent);
                } else {
                    replaced[at] += 1;
                }
            }
            600..800 => {
                bench.store.delete(t, key.as_bytes(), Expect::Anything, bench.store.now()).unwrap();
            }
            800..998 => drop(get(&bench.store, t, key.as_bytes())),
            998 => bench.advance(Duration::from_millis(random.u64(0..400))),
            _ if random.u32(0..5) == 0 => bench.store.flush(t),
            _ => {}
        }
    }
    for (t, replaced) in tables.iter().zip(replaced) {
        let stats = t.stats();
        let left = stats.evicted
            + stats.expired
            + stats.left(RemovalCause::Invalidated)
            + stats.left(RemovalCause::Flushed);
        assert_eq!(stats.written, stats.rows + left + replaced, "{}: {stats:?}", t.name());
    }
    let expired: u64 = tables.iter().map(|t| t.stats().expired).sum();
    assert!(expired > 1_000 && tables.iter().any(|t| t.stats().left(RemovalCause::Flushed) > 0));
}
