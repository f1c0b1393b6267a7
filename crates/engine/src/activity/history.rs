//! The server's figures over time: a point for each of the last seconds, and one for each of the last minutes.
//!
//! The housekeeping takes them. A point has what was counted within it, so a chart divides by its length, and what held
//! at its end. The rings are made whole at the start: no traffic makes them larger. They outlive the process in a file
//! beside the arena, if there is one (`kept.rs`).

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;

use parking_lot::Mutex;
use sql::{Counts, HistoryFacts};
use store::{RemovalCause, TableId};

use super::kept::Kept;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::limits::{MINUTES_KEPT, SECONDS_KEPT, TABLES_IN_POINT};
use crate::process::processor_ticks;

const NS_PER_SECOND: u64 = 1_000_000_000;
/// Seconds in a point of the longer ring.
const MINUTE: u64 = 60;

/// What held at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    pub(super) connections: u64,
    pub(super) rows: u64,
    pub(super) row_bytes: u64,
    pub(super) segment_bytes: u64,
    pub(super) index_bytes: u64,
    /// The tables with the most memory, by their numbers; the number 0 with 0 bytes fills the rest.
    pub(super) tables: [(TableId, u64); TABLES_IN_POINT],
}

impl Default for Levels {
    fn default() -> Self {
        let tables = [(TableId(0), 0); TABLES_IN_POINT];
        Self { connections: 0, rows: 0, row_bytes: 0, segment_bytes: 0, index_bytes: 0, tables }
    }
}

impl Levels {
    /// Puts a table where it belongs by its memory, if it belongs among the largest.
    fn rank(&mut self, table: TableId, bytes: u64) {
        if let Some(place) = self.tables.iter().position(|known| known.1 < bytes) {
            self.tables[place..].rotate_right(1);
            self.tables[place] = (table, bytes);
        }
    }
}

/// A stretch of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Unix milliseconds: its end.
    pub(super) at_ms: i64,
    /// How long it is; never 0.
    pub(super) ns: u64,
    pub(super) counts: Counts,
    pub(super) levels: Levels,
}

/// One of the rings.
#[derive(Debug)]
struct Series {
    points: VecDeque<Point>,
    max: usize,
    /// Where the next point begins.
    since_ns: u64,
    /// What was counted until there.
    before: Counts,
}

impl Series {
    fn new(max: usize, now_ns: u64) -> Self {
        Self { points: VecDeque::with_capacity(max), max, since_ns: now_ns, before: Counts::default() }
    }

    fn add(&mut self, now_ns: u64, at_ms: i64, total: &Counts, levels: &Levels) -> Point {
        let counts = total.since(&self.before);
        let point = Point { at_ms, ns: now_ns - self.since_ns, counts, levels: *levels };
        self.keep(&point);
        (self.since_ns, self.before) = (now_ns, *total);
        point
    }

    fn keep(&mut self, point: &Point) {
        if self.points.len() >= self.max {
            self.points.pop_front();
        }
        self.points.push_back(*point);
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct History {
    /// Locked once a second, and by who reads it.
    rings: Mutex<[Series; 2]>,
    /// Where they outlive the process. Locked by the housekeeping, and never together with the rings: who reads these
    /// does not wait for a file.
    kept: Mutex<Option<Kept>>,
}

/// How many seconds a point of each ring has.
const RESOLUTIONS: [u64; 2] = [1, MINUTE];

impl History {
    /// Nothing yet: time begins now.
    pub(crate) fn new(now_ns: u64) -> Self {
        let rings = [Series::new(SECONDS_KEPT, now_ns), Series::new(MINUTES_KEPT, now_ns)];
        Self { rings: Mutex::new(rings), kept: Mutex::new(None) }
    }

    /// Writes points where they outlive the process. A file that cannot be written is given up.
    fn write(&self, points: &[Option<Point>; 2]) {
        let mut kept = self.kept.lock();
        let Some(file) = &mut *kept else { return };
        let mut due = points.iter().enumerate().filter_map(|(ring, point)| Some((ring, point.as_ref()?)));
        if let Err(error) = due.try_for_each(|(ring, point)| file.write(ring, point)) {
            tracing::warn!(%error, "the history cannot be written any more; it ends with this process");
            *kept = None;
        }
    }
}

impl Engine {
    /// Goes on with the history that a file has, and keeps it there. `tables_are_known`: the tables of this process
    /// have the numbers that they had in the one before.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written.
    pub fn keep_history(&self, file: File, tables_are_known: bool) -> io::Result<()> {
        let (kept, before) = Kept::open(file)?;
        let mut rings = self.activity.history.rings.lock();
        for (series, mut points) in rings.iter_mut().zip(before) {
            for point in points.iter_mut().filter(|_| !tables_are_known) {
                point.levels.tables = Levels::default().tables;
            }
            // Those that this process took already are the newest.
            points.extend(series.points.drain(..));
            for point in &points {
                series.keep(point);
            }
        }
        drop(rings);
        *self.activity.history.kept.lock() = Some(kept);
        Ok(())
    }

    /// Takes the points whose end has come. Called each tick; most have nothing to do.
    pub(crate) fn record_history(&self) {
        let now = self.store.clock().now_ns();
        let mut rings = self.activity.history.rings.lock();
        let is_due = |ring: usize, since: u64| now.saturating_sub(since) >= RESOLUTIONS[ring] * NS_PER_SECOND;
        if !is_due(0, rings[0].since_ns) {
            return;
        }
        let at_ms = i64::try_from(self.store.clock().unix_ms()).unwrap_or(i64::MAX);
        let (total, levels) = self.measured();
        let mut taken = [None; 2];
        for (ring, series) in rings.iter_mut().enumerate() {
            if is_due(ring, series.since_ns) {
                taken[ring] = Some(series.add(now, at_ms, &total, &levels));
            }
        }
        drop(rings);
        self.activity.history.write(&taken);
    }

    /// What was counted since the start, and what holds now. A table that is dropped takes its counts along, so a sum
    /// may fall.
    fn measured(&self) -> (Counts, Levels) {
        let (mut counts, mut levels) = (self.counted(), self.levels());
        for table in self.store.catalog().tables() {
            let stats = table.stats();
            counts.hits += stats.hits;
            counts.misses += stats.misses;
            counts.written += stats.written;
            counts.expired += stats.expired;
            counts.evicted += stats.evicted;
            counts.invalidated += stats.left(RemovalCause::Invalidated);
            counts.flushed += stats.left(RemovalCause::Flushed);
            levels.rank(table.id(), stats.segment_bytes);
        }
        (counts, levels)
    }

    /// What all threads counted.
    fn counted(&self) -> Counts {
        let totals = self.raw_totals();
        let of = |all: &[Counter]| all.iter().map(|counter| totals.of(*counter)).sum::<u64>();
        let ticks = processor_ticks();
        Counts {
            gets: of(&[Counter::CmdGet]),
            sets: of(&[Counter::CmdSet]),
            deletes: of(&[Counter::DeleteHits, Counter::DeleteMisses]),
            others: of(&[
                Counter::IncrHits,
                Counter::IncrMisses,
                Counter::DecrHits,
                Counter::DecrMisses,
                Counter::CmdTouch,
                Counter::CmdFlush,
            ]),
            memcached_statements: of(&[Counter::SqlByMemcached]),
            http_statements: of(&[Counter::SqlByHttp]),
            postgresql_statements: of(&[Counter::CmdSql])
                .saturating_sub(of(&[Counter::SqlByMemcached, Counter::SqlByHttp])),
            errors: of(&[Counter::SqlErrors]),
            read_bytes: of(&[Counter::BytesRead]),
            written_bytes: of(&[Counter::BytesWritten]),
            // A tick of the processor's account is a hundredth of a second.
            cpu_ms: (ticks[0] + ticks[1]) * 10,
            ..Counts::default()
        }
    }

    fn levels(&self) -> Levels {
        let usage = self.store.usage();
        Levels {
            // Relaxed: a figure for people.
            connections: self.connections.load(std::sync::atomic::Ordering::Relaxed) as u64,
            rows: usage.rows,
            row_bytes: usage.row_bytes,
            segment_bytes: usage.segment_bytes,
            index_bytes: usage.index_bytes + usage.heap_bytes,
            tables: Levels::default().tables,
        }
    }

    /// All points, the oldest of each ring first.
    pub(crate) fn history(&self) -> Vec<HistoryFacts> {
        let catalog = self.store.catalog();
        // Looked up some thousand times, among perhaps as many tables.
        let names: HashMap<u16, &str> = catalog.tables().map(|table| (table.id().0, table.name())).collect();
        let name = |id: TableId| names.get(&id.0).map(|name| (*name).to_owned());
        let rings = self.activity.history.rings.lock();
        let mut all = Vec::with_capacity(rings.iter().map(|ring| ring.points.len()).sum());
        for (ring, resolution) in rings.iter().zip(RESOLUTIONS) {
            all.extend(ring.points.iter().map(|point| point.facts(resolution, &name)));
        }
        all
    }
}

impl Point {
    fn facts(&self, resolution: u64, name: &dyn Fn(TableId) -> Option<String>) -> HistoryFacts {
        let Self { at_ms, ns, counts, levels } = *self;
        let known = levels.tables.iter().filter(|(_, bytes)| *bytes > 0);
        HistoryFacts {
            at_ms,
            resolution,
            seconds: ns as f64 / NS_PER_SECOND as f64,
            counts,
            connections: levels.connections,
            rows: levels.rows,
            row_bytes: levels.row_bytes,
            segment_bytes: levels.segment_bytes,
            index_bytes: levels.index_bytes,
            tables: known.filter_map(|(id, bytes)| Some((name(*id)?, *bytes))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A day of traffic takes the memory of the first minute.
    #[test]
    fn rings_have_a_bound() {
        let mut series = Series::new(SECONDS_KEPT, 0);
        let room = series.points.capacity();
        for second in 1..=2 * SECONDS_KEPT as u64 {
            let total = Counts { gets: second * 3, ..Counts::default() };
            series.add(second * NS_PER_SECOND, 0, &total, &Levels::default());
        }
        assert_eq!((series.points.len(), series.points.capacity()), (SECONDS_KEPT, room));
        assert!(series.points.iter().all(|point| point.counts.gets == 3 && point.ns == NS_PER_SECOND));
        // A table that was dropped takes its counts along.
        series.add(700 * NS_PER_SECOND, 0, &Counts::default(), &Levels::default());
        assert_eq!(series.points.back().unwrap().counts, Counts::default());
    }
}
