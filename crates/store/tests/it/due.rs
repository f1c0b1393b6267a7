//! The cleaner looks at a table only when something of it may have come due, and misses nothing by that.

use std::sync::Arc;
use std::time::Duration;

use store::{Expect, Expiry, Table};

use crate::common::{Bench, seed, set, table};

const TABLES: usize = 4;
const STEPS: usize = 400;
/// A tick of the store's clock.
const TICK: Duration = Duration::from_nanos(store::TICK_NS);

/// A store with tables that a test changes, in step with another one.
struct Side {
    bench: Bench,
    /// Whether it looks at everything at every tick.
    everything: bool,
}

impl Side {
    fn new(everything: bool) -> Self {
        let bench = Bench::new(64);
        for number in 0..TABLES {
            let name = format!("t{number}");
            let columns = [("k", "TEXT"), ("v", "TEXT")];
            let prefix = format!("{name}:");
            let def = table(&name, &columns, 1, &[("prefix", &prefix), ("value", "v")]);
            bench.store.create_table(def).unwrap();
        }
        Self { bench, everything }
    }

    fn tick(&self) {
        if self.everything {
            self.bench.store.look_for_expired();
        }
        self.bench.advance(TICK);
    }

    fn table(&self, number: usize) -> Arc<Table> {
        Arc::clone(self.bench.store.catalog().table(&format!("t{number}")).unwrap())
    }

    fn set_option(&self, number: usize, option: &str, text: &str) {
        let change = &mut |options: &mut store::definition::TableOptions,
                           columns: &[store::definition::ColumnDef]| {
            options.set(option, text, columns)
        };
        self.bench.store.set_options(&format!("t{number}"), change).unwrap();
    }

    /// Rows and bytes of segments of each table.
    fn figures(&self) -> Vec<(u64, u64)> {
        let stats = |number| self.table(number).stats();
        (0..TABLES).map(|number| (stats(number).rows, stats(number).segment_bytes)).collect()
    }
}

/// One thing that happens to both.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write { table: usize, rows: usize, bytes: usize, ticks: Option<u32> },
    Delete { table: usize, rows: usize },
    Flush { table: usize },
    FlushLater { seconds: u64 },
    Option { table: usize, option: &'static str, text: &'static str },
    Wait { ticks: usize },
}

impl Step {
    fn random(random: &mut fastrand::Rng) -> Self {
        let table = random.usize(..TABLES);
        let pick = |random: &mut fastrand::Rng, all: &[&'static str]| all[random.usize(..all.len())];
        match random.u8(..20) {
            0..8 => Self::Write {
                table,
                rows: random.usize(1..400),
                bytes: if random.u8(..10) == 0 { random.usize(1..300_000) } else { random.usize(1..2_000) },
                ticks: random.bool().then(|| random.u32(1..400)),
            },
            8 => Self::Delete { table, rows: random.usize(1..400) },
            9 => Self::Flush { table },
            10 => Self::FlushLater { seconds: random.u64(1..4) },
            11 => Self::Option { table, option: "ttl", text: pick(random, &["1 s", "5 s", "1 h"]) },
            12 => Self::Option { table, option: "stale_for", text: pick(random, &["1 s", "3 s"]) },
            13 => Self::Option { table, option: "max_ops", text: pick(random, &["50", "1000"]) },
            _ => Self::Wait { ticks: random.usize(1..60) },
        }
    }

    fn apply(self, side: &Side) {
        let store = &side.bench.store;
        match self {
            Self::Write { table, rows, bytes, ticks } => {
                let table = side.table(table);
                let rows = if bytes > 2_000 { rows.min(10) } else { rows };
                let deadline = |ticks| Expiry::At(store.tick_after(TICK * ticks));
                let expiry = ticks.map_or(Expiry::Table, deadline);
                for row in 0..rows {
                    set(store, &table, format!("k{row}").as_bytes(), &vec![b'x'; bytes], expiry);
                    store.count_operation(&table);
                }
            }
            Self::Delete { table, rows } => {
                let table = side.table(table);
                for row in 0..rows {
                    let key = format!("k{row}");
                    store.delete(&table, key.as_bytes(), Expect::Anything, store.now()).unwrap();
                }
            }
            Self::Flush { table } => store.flush(&side.table(table)),
            Self::FlushLater { seconds } => {
                let at = store.tick_after(Duration::from_secs(seconds));
                store.flush_reachable(Some(at));
            }
            Self::Option { table, option, text } => side.set_option(table, option, text),
            Self::Wait { .. } => {}
        }
    }

    fn ticks(self) -> usize {
        if let Self::Wait { ticks } = self { ticks } else { 1 }
    }
}

#[test]
fn a_look_that_was_left_out_would_have_found_nothing() {
    let mut random = fastrand::Rng::with_seed(seed());
    for _ in 0..3 {
        let (lazy, eager) = (Side::new(false), Side::new(true));
        for step in (0..STEPS).map(|_| Step::random(&mut random)) {
            for side in [&lazy, &eager] {
                step.apply(side);
            }
            for tick in 0..step.ticks() {
                lazy.tick();
                eager.tick();
                assert_eq!(lazy.figures(), eager.figures(), "{tick} ticks after {step:?}");
            }
        }
    }
}
