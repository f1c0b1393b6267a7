//! A day and more of mixed rules on a clock that is moved, in an arena's first years and after them: no row is served
//! past its time, none goes before it. Around the edge rows were served up to a second past it: now was rounded down,
//! and their own moment was not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use store::{Expiry, RemovalCause, Table};

use crate::common::{Bench, get, seed, set, table};

const TICK_MS: u64 = 1_000 / store::TICKS_PER_SECOND;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const YEAR: u64 = 8_766 * HOUR;

/// A row as the test knows it, in milliseconds of its own account.
#[derive(Clone, Copy)]
struct Known {
    written: u64,
    ends: Ends,
}

#[derive(Clone, Copy)]
enum Ends {
    Never,
    /// At a moment of its own.
    At(u64),
    /// So long after it was written.
    After(u64),
}

/// How much earlier than its table's `ttl` says a row of that age may go: the log of ages grows coarse.
fn slack(age: u64) -> u64 {
    match age {
        _ if age < 4 * MINUTE => TICK_MS,
        _ if age < HOUR => SECOND,
        _ if age < 18 * HOUR => 16 * SECOND,
        _ => 256 * SECOND,
    }
}

/// Whether a row must be there; none where both are right. `resolution` is that of moments.
fn must_live(row: Known, now: u64, resolution: u64) -> Option<bool> {
    let (early, end) = match row.ends {
        Ends::Never => return Some(true),
        Ends::At(end) => (end.saturating_sub(resolution), end),
        Ends::After(ttl) => {
            let end = row.written + ttl;
            (end.saturating_sub(slack(ttl) + resolution), end)
        }
    };
    match now {
        _ if now < early => Some(true),
        _ if now >= end => Some(false),
        _ => None,
    }
}

struct Day {
    bench: Bench,
    tables: Vec<(Arc<Table>, Ends)>,
    known: BTreeMap<(usize, u32), Known>,
    /// Milliseconds since the arena was made.
    now: u64,
    /// Milliseconds by which a row may go early.
    resolution: u64,
    written: u64,
}

impl Day {
    /// Begins so long after the arena was made.
    fn new(begin: u64, resolution: u64) -> Self {
        let bench = Bench::new(64);
        bench.advance(Duration::from_millis(begin));
        let rules: [(&str, Ends); 5] = [
            ("off", Ends::Never),
            ("2 s", Ends::After(2 * SECOND)),
            ("3 min", Ends::After(3 * MINUTE)),
            ("45 min", Ends::After(45 * MINUTE)),
            ("12 h", Ends::After(12 * HOUR)),
        ];
        let tables = rules.iter().enumerate().map(|(at, (ttl, ends))| {
            let (name, prefix) = (format!("t{at}"), format!("t{at}:"));
            let options = [("ttl", *ttl), ("prefix", prefix.as_str()), ("value", "v")];
            let def = table(&name, &[("k", "TEXT"), ("v", "TEXT")], 1, &options);
            (bench.store.create_table(def).unwrap(), *ends)
        });
        let tables = tables.collect();
        Self { bench, tables, known: BTreeMap::new(), now: begin, resolution, written: 0 }
    }

    fn write(&mut self, random: &mut fastrand::Rng) {
        let at = random.usize(0..self.tables.len());
        let key = random.u32(0..2_000);
        let (table, table_ends) = &self.tables[at];
        let ahead = [SECOND, MINUTE, HOUR, 10 * HOUR][random.usize(0..4)];
        // What ends within a moment is not stored at all.
        let ahead = random.u64(self.resolution..=ahead);
        let (expiry, ends) = match random.u32(0..4) {
            0 => (Expiry::Never, Ends::Never),
            1 => {
                let tick = self.bench.store.tick_after(Duration::from_millis(ahead));
                (Expiry::At(tick), Ends::At(self.now + ahead))
            }
            _ => (Expiry::Table, *table_ends),
        };
        set(&self.bench.store, table, format!("k{key}").as_bytes(), &vec![b'v'; random.usize(0..80)], expiry);
        self.written += 1;
        self.known.insert((at, key), Known { written: self.now, ends });
    }

    fn advance(&mut self, ms: u64) {
        self.now += ms;
        self.bench.advance(Duration::from_millis(ms));
    }

    fn check(&mut self, random: &mut fastrand::Rng, share: u32) {
        let (now, resolution, bench, tables) = (self.now, self.resolution, &self.bench, &self.tables);
        self.known.retain(|(at, key), row| {
            if random.u32(0..share) != 0 {
                return true;
            }
            let there = get(&bench.store, &tables[*at].0, format!("k{key}").as_bytes()).is_some();
            if let Some(expected) = must_live(*row, now, resolution) {
                assert_eq!(there, expected, "t{at} k{key} written at {} ms, now {now} ms", row.written);
            }
            there
        });
    }
}

#[test]
fn a_day_of_mixed_rules() {
    mixed_rules(0, 26 * HOUR, TICK_MS + 1);
}

/// After 4.25 years moments are whole seconds.
#[test]
fn hours_of_mixed_rules_after_five_years() {
    mixed_rules(5 * YEAR, 13 * HOUR, SECOND);
}

/// The edge comes in the middle of it.
#[test]
fn hours_of_mixed_rules_when_moments_become_seconds() {
    let edge = ((1 << 31) - 1) * 1_000 / store::TICKS_PER_SECOND;
    mixed_rules(edge - 2 * HOUR, 4 * HOUR, SECOND);
}

/// Rows that a run writes at least.
const WRITES_MIN: u64 = 1_000;

fn mixed_rules(begin: u64, length: u64, resolution: u64) {
    let mut random = fastrand::Rng::with_seed(seed());
    let mut day = Day::new(begin, resolution);
    // A machine that slept long may have written little when the time is over.
    while day.now < begin + length || day.written <= WRITES_MIN {
        for _ in 0..random.u32(0..120) {
            day.write(&mut random);
        }
        // Mostly steps as the cleaner makes them; now and then the machine was asleep.
        let step = match random.u32(0..40) {
            0 => random.u64(0..3 * HOUR),
            1..12 => random.u64(0..10 * MINUTE),
            _ => random.u64(0..20 * SECOND),
        };
        day.advance(step);
        day.check(&mut random, 4);
    }
    day.check(&mut random, 1);
    // Nothing was evicted or lost: what left, left by its time.
    for (table, _) in &day.tables {
        let stats = table.stats();
        assert_eq!(
            (stats.evicted, stats.left(RemovalCause::Flushed), stats.left(RemovalCause::Invalidated)),
            (0, 0, 0)
        );
    }
}
