//! Rows that are overwritten at random stay while the memory has room for all of them: dead versions make room first.
//!
//! Lost once: segments more than half alive were evicted where they could have been compacted; of large rows those that
//! found no run of units to move to; and rows of many lengths, in one fill of twelve, because the sparsest segment was
//! a run without room to move to, or because rows in runs of their own passed for dead until somebody had looked.

use std::collections::HashMap;

use store::{BUILT_IN, Expiry, Table};

use crate::common::{Bench, get, seed, set};

/// Overwrites between two looks of the cleaner.
const WRITES_A_TICK: usize = 2_000;

/// How the lengths of values are drawn.
#[derive(Clone, Copy, Debug)]
enum Lengths {
    Fixed(usize),
    /// Geometrically distributed around a mean: many short ones, few long ones.
    Geometric(f64),
}

impl Lengths {
    fn draw(self, random: &mut fastrand::Rng) -> usize {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Geometric(mean) => whole(-(1.0 - random.f64()).ln() * mean),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a test, rounded down")]
fn whole(bytes: f64) -> usize {
    bytes as usize
}

/// A cache and the length of each value that was put there.
struct Filled {
    bench: Bench,
    lengths: HashMap<String, usize>,
    random: fastrand::Rng,
    writes: usize,
}

impl Filled {
    fn new(mib: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed());
        Self { bench: Bench::new(mib), lengths: HashMap::new(), random, writes: 0 }
    }

    fn put(&mut self, table: &Table, key: String, bytes: usize) {
        set(&self.bench.store, table, key.as_bytes(), &vec![b'v'; bytes], Expiry::Table);
        self.lengths.insert(key, bytes);
        self.writes += 1;
        if self.writes.is_multiple_of(WRITES_A_TICK) {
            self.bench.store.tick();
        }
    }

    /// Puts keys of one kind until rows take this share of the limit; how many.
    fn fill(&mut self, table: &Table, kind: &str, lengths: Lengths, share: f64) -> usize {
        let most = whole(self.bench.store.memory_bytes() as f64 * share) as u64;
        let mut keys = 0;
        while self.bench.store.usage().row_bytes < most {
            let bytes = lengths.draw(&mut self.random);
            self.put(table, format!("{kind}-{keys}"), bytes);
            keys += 1;
        }
        keys
    }

    /// Overwrites keys of one kind, each as often on average; `hot`: most of it in a fifth of them.
    fn overwrite(
        &mut self,
        table: &Table,
        kind: &str,
        keys: usize,
        lengths: Lengths,
        rounds: usize,
        hot: bool,
    ) {
        for _ in 0..keys * rounds {
            let among = if hot && self.random.u8(..5) > 0 { keys.div_ceil(5) } else { keys };
            let (key, bytes) = (self.random.usize(..among), lengths.draw(&mut self.random));
            self.put(table, format!("{kind}-{key}"), bytes);
        }
    }

    fn check(&self, table: &Table, what: &str) {
        let usage = self.bench.store.usage();
        let lost = self.lengths.iter().filter(|(key, bytes)| {
            get(&self.bench.store, table, key.as_bytes()).is_none_or(|value| value.len() != **bytes)
        });
        assert_eq!((lost.count(), usage.evicted), (0, 0), "{what}: {usage:?}");
    }
}

#[test]
fn overwritten_rows_stay_while_the_memory_has_room() {
    for (mib, share, lengths) in [
        (32, 0.65, Lengths::Fixed(100)),
        (32, 0.7, Lengths::Fixed(1_000)),
        (32, 0.65, Lengths::Fixed(6_000)),
        (32, 0.65, Lengths::Geometric(2_000.0)),
        (32, 0.6, Lengths::Fixed(100_000)),
    ] {
        for hot in [false, true] {
            let mut filled = Filled::new(mib);
            let catalog = filled.bench.store.catalog();
            let table = catalog.table(BUILT_IN).unwrap();
            let keys = filled.fill(table, "key", lengths, share);
            filled.overwrite(table, "key", keys, lengths, 4, hot);
            filled.check(table, &format!("{lengths:?}, share {share}, hot {hot}"));
        }
    }
}

/// Some 16 KiB each, the longest above 100: in segments of all sizes, beside runs of their own.
#[test]
fn overwritten_rows_of_many_lengths_stay() {
    for round in 0..40 {
        let mut filled = Filled::new(32);
        let catalog = filled.bench.store.catalog();
        let table = catalog.table(BUILT_IN).unwrap();
        let lengths = Lengths::Geometric(16_384.0);
        let keys = filled.fill(table, "key", lengths, 0.6);
        filled.overwrite(table, "key", keys, lengths, 4, round % 2 == 1);
        filled.check(table, &format!("round {round}"));
    }
}

/// Rows that fill a unit each, which were sealed before they were alive: who looks for dead ones is not to give up at
/// them.
#[test]
fn short_rows_are_overwritten_beside_rows_in_runs_of_their_own() {
    let mut filled = Filled::new(32);
    let catalog = filled.bench.store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    filled.fill(table, "long", Lengths::Fixed(62_000), 0.45);
    let lengths = Lengths::Fixed(1_000);
    let keys = filled.fill(table, "short", lengths, 0.55);
    filled.overwrite(table, "short", keys, lengths, 8, false);
    filled.check(table, "short rows");
}

#[test]
fn rows_of_many_sizes_written_one_kind_after_the_other_stay() {
    let mut filled = Filled::new(128);
    let catalog = filled.bench.store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    for (stage, mean) in [64.0, 256.0, 1_024.0, 4_096.0, 16_384.0].into_iter().enumerate() {
        let (kind, lengths) = (format!("{mean}"), Lengths::Geometric(mean));
        let keys = filled.fill(table, &kind, lengths, 0.13 * (stage + 1) as f64);
        filled.overwrite(table, &kind, keys, lengths, 5, false);
        filled.check(table, &format!("mean {mean}"));
    }
}

/// Lost once: where long runs were taken while single units were sparse, two of these were freed for sixteen taken, and
/// the table grew on and on into fresh memory.
#[test]
fn dead_memory_of_one_size_makes_room_for_another() {
    for dead_per_cent in [200, 100, 40] {
        let mut filled = Filled::new(256);
        filled.bench.store.set_dead_memory_percent(dead_per_cent);
        let catalog = filled.bench.store.catalog();
        let table = catalog.table(BUILT_IN).unwrap();
        let kinds = [("small", Lengths::Fixed(6_000)), ("large", Lengths::Fixed(100_000))];
        let mut keys = Vec::new();
        for (at, (kind, lengths)) in kinds.into_iter().enumerate() {
            keys.push(filled.fill(table, kind, lengths, 0.06 * (at + 1) as f64));
        }
        for stage in 0..6 {
            let (kind, lengths) = kinds[stage % 2];
            filled.overwrite(table, kind, keys[stage % 2], lengths, 8, false);
            let usage = filled.bench.store.usage();
            // The live rows and what may be dead, and what the next rows and those that move are about to fill.
            let most = usage.row_bytes * (100 + dead_per_cent) / 100 + (8 << 20);
            assert!(usage.segment_bytes <= most, "{dead_per_cent} %, stage {stage}: {usage:?}");
            filled.check(table, kind);
        }
    }
}

/// A smaller share of dead memory, set while the rows are there, is kept to as soon as rows are written.
#[test]
fn a_table_gives_dead_memory_back_when_it_may_keep_less() {
    let mut filled = Filled::new(256);
    let catalog = filled.bench.store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    let lengths = Lengths::Geometric(600.0);
    let keys = filled.fill(table, "key", lengths, 0.15);
    filled.overwrite(table, "key", keys, lengths, 6, false);
    let ratio = |filled: &Filled| {
        let usage = filled.bench.store.usage();
        usage.segment_bytes as f64 / usage.row_bytes as f64
    };
    let before = ratio(&filled);
    filled.bench.store.set_dead_memory_percent(50);
    filled.overwrite(table, "key", keys, lengths, 4, false);
    let after = ratio(&filled);
    assert!(before > 2.5 && after < 1.7, "{before} and {after} times the live rows");
    filled.check(table, "key");
}
