//! The memory limit holds, and S3-FIFO chooses what goes.

use store::value::Value;
use store::{BUILT_IN, Expect, Expiry};

use crate::common::{Bench, all_rows, get, put, seed, set, table};

#[test]
fn memory_stays_below_the_limit_and_the_newest_rows_stay() {
    let bench = Bench::new(16);
    let catalog = bench.store.catalog();
    let t = catalog.table(BUILT_IN).unwrap();
    for n in 0..200_000 {
        set(&bench.store, t, format!("key-{n}").as_bytes(), &[b'v'; 200], Expiry::Table);
        if n % 10_000 == 0 {
            bench.store.tick();
        }
    }
    let usage = bench.store.usage();
    assert!(usage.segment_bytes + usage.index_bytes + usage.heap_bytes <= 16 << 20, "{usage:?}");
    assert!(usage.rows > 30_000, "{usage:?}");
    assert!(usage.evicted > 100_000, "{usage:?}");
    assert!(get(&bench.store, t, b"key-199999").is_some());
    assert!(get(&bench.store, t, b"key-0").is_none());
}

#[test]
fn rows_of_every_size_find_room_again_and_again() {
    let mut random = fastrand::Rng::with_seed(seed());
    let bench = Bench::new(32);
    let catalog = bench.store.catalog();
    let t = catalog.table(BUILT_IN).unwrap();
    for round in 0..6 {
        let largest = [100, 5_000, 60_000, 1_500_000, 20_000, 300][round];
        let mut bytes = 0;
        while bytes < 80 << 20 {
            let value = vec![b'v'; random.usize(0..largest)];
            bytes += value.len() + 100;
            set(&bench.store, t, format!("{}", random.u32(0..1_000_000)).as_bytes(), &value, Expiry::Table);
        }
        bench.store.tick();
        let usage = bench.store.usage();
        assert!(
            usage.segment_bytes + usage.index_bytes + usage.heap_bytes <= 32 << 20,
            "round {round}: {usage:?}"
        );
    }
}

#[test]
fn a_table_keeps_to_its_rows() {
    let bench = Bench::new(16);
    let def = table("t", &[("k", "INT"), ("v", "TEXT")], 1, &[("max_rows", "100")]);
    let t = bench.store.create_table(def).unwrap();
    for n in 0..10_000 {
        bench
            .store
            .commit(&[put(&t, &[Value::Integer(n), Value::Text("x".into())], Expect::Absent)])
            .unwrap();
        assert!(t.rows() <= 101, "{} rows after {n}", t.rows());
    }
    assert_eq!(all_rows(&bench.store, &t).len() as u64, t.rows());
    assert!(t.rows() >= 99);
    assert!(bench.store.usage().segment_bytes < 4 << 20, "{:?}", bench.store.usage());
}

#[test]
fn rows_that_are_read_outlive_a_scan() {
    let bench = Bench::new(16);
    let def = table(
        "t",
        &[("k", "TEXT"), ("v", "TEXT")],
        1,
        &[("max_rows", "1000"), ("prefix", "t:"), ("value", "v")],
    );
    let t = bench.store.create_table(def).unwrap();
    for n in 0..100 {
        set(&bench.store, &t, format!("hot{n}").as_bytes(), b"1", Expiry::Table);
    }
    for n in 0..50_000 {
        if n % 100 == 0 {
            for hot in 0..100 {
                let _ = get(&bench.store, &t, format!("hot{hot}").as_bytes());
            }
        }
        set(&bench.store, &t, format!("cold{n}").as_bytes(), b"1", Expiry::Table);
    }
    let kept = (0..100).filter(|hot| get(&bench.store, &t, format!("hot{hot}").as_bytes()).is_some()).count();
    assert!(kept >= 95, "{kept} of 100 hot rows left");
}
