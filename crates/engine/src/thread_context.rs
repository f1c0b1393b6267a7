//! What one serving thread keeps for itself.

use std::sync::Arc;

use sql::StatementText;
use store::{Catalog, Foreseen, Prefetched, Table, Tick, Use};

use crate::activity::{Counted, KnownStatements};
use crate::counters::{Counter, Counters};
use crate::engine::Engine;
use crate::watch::Watched;

/// One thread's way through the engine: nothing in it is shared for writing, so a command takes no lock here.
#[derive(Debug)]
pub struct ThreadContext {
    pub(crate) engine: Arc<Engine>,
    counters: Arc<Counters>,
    /// The catalogue as of `generation`; looking whether it is still the newest is one load.
    catalog: Arc<Catalog>,
    generation: u64,
    /// The tick of this batch: a deadline has a resolution of 1/16 s, so the clock need not be asked for each command.
    now: Tick,
    /// The encoded key of a table whose keys are not plain text; kept so that encoding allocates nothing.
    key: Vec<u8>,
    statements: KnownStatements,
    /// What anybody watches in this batch.
    pub(crate) watched: Watched,
    /// The descriptor of the connection that is served, for those who watch.
    pub(crate) connection: i32,
}

impl Engine {
    /// A context for the calling thread.
    pub fn context(self: &Arc<Self>) -> ThreadContext {
        let counters = Arc::new(Counters::new());
        self.contexts.lock().push(Arc::clone(&counters));
        ThreadContext::new(Arc::clone(self), counters)
    }
}

impl ThreadContext {
    pub(crate) fn new(engine: Arc<Engine>, counters: Arc<Counters>) -> Self {
        let generation = engine.store.generation();
        let catalog = engine.store.catalog();
        let now = engine.store.now();
        Self {
            engine,
            counters,
            catalog,
            generation,
            now,
            key: Vec::new(),
            statements: KnownStatements::default(),
            watched: Watched::NOTHING,
            connection: 0,
        }
    }

    /// Reads the clock. A thread calls it once for each batch of requests.
    #[inline]
    pub fn begin_batch(&mut self) {
        self.now = self.engine.store.now();
        self.watched = self.engine.watchers.wanted();
    }

    /// The tick of this batch.
    #[inline]
    pub fn now(&self) -> Tick {
        self.now
    }

    /// The engine that the thread works on.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The version of the definitions that keys are routed by.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counts.
    #[inline]
    pub fn count(&self, counter: Counter, by: u64) {
        self.counters.add(counter, by);
    }

    /// The figures of a statement, by its text.
    #[inline]
    pub(crate) fn statement(&mut self, text: &StatementText<'_>) -> Arc<Counted> {
        self.statements.find(text, &self.engine.activity.statements)
    }

    /// The table that answers to a memcached key, and the key in it; none when the key cannot be one of that table's.
    #[inline]
    pub(crate) fn route<'k>(&'k mut self, key: &'k [u8]) -> Route<'k> {
        let route = self.way_to(key);
        route.engine.store.count_operation(route.table);
        route
    }

    /// As [`ThreadContext::route`], for who only looks and is no operation.
    #[inline]
    pub(crate) fn way_to<'k>(&'k mut self, key: &'k [u8]) -> Route<'k> {
        if self.engine.store.generation() != self.generation {
            self.refresh();
        }
        let (table, rest) = self.catalog.route(key);
        let key = if table.keys().is_raw() {
            Ok(rest)
        } else {
            self.key.clear();
            match table.keys().from_text(rest, &mut self.key) {
                Ok(()) => Ok(&self.key[..]),
                Err(error) => Err(error.to_string()),
            }
        };
        Route { engine: &self.engine, counters: &self.counters, table, key, now: self.now }
    }

    /// Asks memory for what a command on this key will look at, while others are prepared. None where the key must be
    /// encoded first, which is not worth doing twice.
    #[inline]
    pub fn prefetch(&self, key: &[u8]) -> Option<Prefetched> {
        let (table, rest) = self.catalog.route(key);
        table.keys().is_raw().then(|| self.engine.store.prefetch(table, rest))
    }

    /// The second step, when some other keys went through the first.
    #[inline]
    pub fn prefetch_row(&self, ahead: Prefetched, purpose: Use) -> Foreseen {
        self.engine.store.prefetch_row(ahead, purpose)
    }

    /// The second once more, for a key whose first bucket did not name its row.
    #[inline]
    pub fn prefetch_further(&self, ahead: Prefetched, purpose: Use) -> Foreseen {
        self.engine.store.prefetch_further(ahead, purpose)
    }

    /// The third, when a key's value is going to be read soon.
    #[inline]
    pub fn prefetch_value(&self, row: Foreseen) {
        self.engine.store.prefetch_value(row);
    }

    #[cold]
    fn refresh(&mut self) {
        // The generation is read first: a change between the two loads is then noticed by the next command.
        self.generation = self.engine.store.generation();
        self.catalog = self.engine.store.catalog();
    }
}

/// A memcached key, resolved.
pub(crate) struct Route<'k> {
    pub(crate) engine: &'k Engine,
    pub(crate) counters: &'k Counters,
    pub(crate) table: &'k Arc<Table>,
    /// The key within the table, or why it can be none.
    pub(crate) key: Result<&'k [u8], String>,
    pub(crate) now: Tick,
}

impl Route<'_> {
    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        self.counters.add(counter, 1);
    }
}
