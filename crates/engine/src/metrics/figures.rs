//! What the metrics are read from, taken once for all of them.

use sql::{BusFacts, SourceFacts};
use store::{RefreshFigures, RemovalCause, StoreUsage, Table, TableStats};

use crate::counters::Totals;
use crate::engine::Engine;
use crate::latency::{CLASSES, Spread};
use crate::limits::LABELLED_TABLES_MAX;
use crate::process::{processor_ticks, resident_bytes};

/// The label of the tables beyond [`LABELLED_TABLES_MAX`].
const OTHER: &str = "other";

/// See the module.
pub(super) struct Figures<'e> {
    pub(super) engine: &'e Engine,
    /// Since the start, whatever `stats reset` says: a counter does not fall.
    pub(super) totals: Totals,
    pub(super) usage: StoreUsage,
    pub(super) tables: Vec<OfTable>,
    /// Processor time in user and in system mode, in 1/100 s.
    pub(super) processor: [u64; 2],
    pub(super) resident_bytes: u64,
    /// How long commands take, by the classes of [`CLASSES`].
    pub(super) latencies: Vec<Spread>,
    /// The databases behind the cache; superusers define them, so there are few.
    pub(super) sources: Vec<SourceFacts>,
    pub(super) buses: Vec<BusFacts>,
    /// The materialized views.
    pub(super) views: Vec<OfView>,
}

/// The figures of one table, or of the rest of them.
#[derive(Debug, Default)]
pub(super) struct OfTable {
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) segment_bytes: u64,
    pub(super) written: u64,
    pub(super) hits: u64,
    pub(super) misses: u64,
    /// Rows that left, by the causes of [`CAUSES`].
    pub(super) removed: [u64; CAUSES.len()],
}

/// The figures of one materialized view, or of the rest of them.
#[derive(Debug, Default)]
pub(super) struct OfView {
    pub(super) name: String,
    pub(super) refreshes: u64,
    pub(super) errors: u64,
    /// The last refresh failed; of the rest, that of some.
    pub(super) failing: bool,
    /// Time of the last refresh; of the rest, the longest.
    pub(super) last_ns: u64,
    /// How long ago the query of its rows began; of the rest, the longest. None: not in this process.
    pub(super) age_ms: Option<u64>,
}

/// Why rows leave, and what is counted as that.
pub(super) const CAUSES: [(&str, Cause); 4] = [
    ("expired", |stats| stats.expired),
    ("evicted", |stats| stats.evicted),
    ("invalidated", |stats| stats.left(RemovalCause::Invalidated)),
    ("flushed", |stats| stats.left(RemovalCause::Flushed)),
];

type Cause = fn(&TableStats) -> u64;

impl<'e> Figures<'e> {
    pub(super) fn of(engine: &'e Engine) -> Self {
        Self {
            engine,
            totals: engine.raw_totals(),
            usage: engine.store.usage(),
            tables: tables_of(engine),
            processor: processor_ticks(),
            resident_bytes: resident_bytes(),
            latencies: (0..CLASSES.len()).map(|class| engine.latency(class)).collect(),
            sources: engine.sources.all(),
            buses: engine.buses.facts(),
            views: views_of(engine),
        }
    }

    /// Rows that left, by the causes of [`CAUSES`].
    pub(super) fn removed(&self, cause: usize) -> u64 {
        self.tables.iter().map(|table| table.removed[cause]).sum()
    }

    pub(super) fn uptime_seconds(&self) -> f64 {
        let engine = self.engine;
        engine.store.clock().now_ns().saturating_sub(engine.started_ns) as f64 / 1e9
    }

    /// Seconds since the store's housekeeping had its turn.
    pub(super) fn tick_age_seconds(&self) -> f64 {
        self.engine.tick_age_ns() as f64 / 1e9
    }
}

/// The oldest tables by name, so that a new one does not take a name away from another, and the rest as one.
fn tables_of(engine: &Engine) -> Vec<OfTable> {
    let catalog = engine.store.catalog();
    let mut tables: Vec<_> = catalog.tables().collect();
    tables.sort_by_key(|table| table.id().0);
    let (named, rest) = tables.split_at(tables.len().min(LABELLED_TABLES_MAX));
    let mut all: Vec<OfTable> = named.iter().map(|table| OfTable::of(table)).collect();
    if !rest.is_empty() {
        let mut other = OfTable { name: OTHER.to_owned(), ..OfTable::default() };
        for table in rest {
            other.add(&table.stats());
        }
        all.push(other);
    }
    all
}

/// The oldest views by name, as tables, and the rest as one.
fn views_of(engine: &Engine) -> Vec<OfView> {
    let catalog = engine.store.catalog();
    let mut views: Vec<_> = catalog.tables().filter(|table| table.def().materialized.is_some()).collect();
    views.sort_by_key(|view| view.id().0);
    let now_ms = engine.store.clock().unix_ms();
    let mut all: Vec<OfView> = Vec::new();
    for (at, view) in views.into_iter().enumerate() {
        if at <= LABELLED_TABLES_MAX {
            let name = if at < LABELLED_TABLES_MAX { view.name() } else { OTHER };
            all.push(OfView { name: name.to_owned(), ..OfView::default() });
        }
        if let (Some(own), Some(figures)) = (all.last_mut(), view.refresh_figures()) {
            own.add(&figures, now_ms);
        }
    }
    all
}

impl OfView {
    fn add(&mut self, figures: &RefreshFigures, now_ms: u64) {
        let began = figures.last_refresh_ms.and_then(|ms| u64::try_from(ms).ok());
        self.refreshes += figures.refreshes;
        self.errors += figures.errors;
        self.failing |= figures.last_error.is_some();
        self.last_ns = self.last_ns.max(figures.last_ns);
        self.age_ms = self.age_ms.max(began.map(|began| now_ms.saturating_sub(began)));
    }
}

impl OfTable {
    fn of(table: &Table) -> Self {
        let mut own = Self { name: table.name().to_owned(), ..Self::default() };
        own.add(&table.stats());
        own
    }

    fn add(&mut self, stats: &TableStats) {
        self.rows += stats.rows;
        self.bytes += stats.bytes;
        self.segment_bytes += stats.segment_bytes;
        self.written += stats.written;
        self.hits += stats.hits;
        self.misses += stats.misses;
        for (sum, (_, cause)) in self.removed.iter_mut().zip(CAUSES) {
            *sum += cause(stats);
        }
    }
}
