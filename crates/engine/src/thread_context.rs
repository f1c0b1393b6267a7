//! What one serving thread keeps for itself.

use std::sync::Arc;

use sql::StatementText;
use store::codec;
use store::{Catalog, Foreseen, Prefetched, Table, Tick, Use};

use crate::activity::{Counted, KnownStatements};
use crate::answer::Answer;
use crate::buses::Receipt;
use crate::counters::{Counter, Counters};
use crate::engine::Engine;
use crate::hot::Sampling;
use crate::latency::Class;
use crate::limits::TIMED_STATEMENTS;
use crate::privilege::Command;
use crate::resolve::{Misfit, resolve};
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
    /// Commands and statements until the next that is timed.
    until_timed: [u32; 2],
    sampling: Sampling,
    /// For how many commands the one stands that is timed now.
    stands_for: u32,
    /// What anybody watches in this batch.
    pub(crate) watched: Watched,
    /// The last lookup missed a row that its source may have.
    pub(crate) missed: bool,
    /// What the last command has to wait for before it is answered: a bus.
    pub(crate) receipt: Option<Arc<Receipt>>,
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
        let mut sampling = Sampling::new(now);
        Self {
            engine,
            counters,
            catalog,
            generation,
            now,
            key: Vec::new(),
            statements: KnownStatements::default(),
            until_timed: [sampling.first(), TIMED_STATEMENTS],
            sampling,
            stands_for: 1,
            watched: Watched::NOTHING,
            missed: false,
            receipt: None,
            connection: 0,
        }
    }

    /// Reads the clock. A thread calls it once for each batch of requests.
    #[inline]
    pub fn begin_batch(&mut self) {
        self.now = self.engine.store.now();
        self.watched = self.engine.watchers.wanted();
        if self.sampling.tick() != self.now {
            self.until_timed[0] = self.sampling.turn(self.now, self.until_timed[0]);
        }
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

    /// Whether any table mirrors one of a source.
    #[inline]
    pub(crate) fn has_mirrors(&mut self) -> bool {
        if self.engine.store.generation() != self.generation {
            self.refresh();
        }
        self.catalog.has_mirrors()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counts.
    #[inline]
    pub fn count(&self, counter: Counter, by: u64) {
        self.counters.add(counter, by);
    }

    /// Begins a command: the moment, if it is one that is timed. Its key is sampled then.
    #[inline]
    pub(crate) fn begin_timed(&mut self, command: Command, key: Option<&[u8]>) -> Option<u64> {
        self.until_timed[0] -= 1;
        if self.until_timed[0] == 0 { Some(self.begin_sampled(command, key)) } else { None }
    }

    #[cold]
    fn begin_sampled(&mut self, command: Command, key: Option<&[u8]>) -> u64 {
        (self.stands_for, self.until_timed[0]) = self.sampling.next();
        if let Some(key) = key {
            self.counters.samples.add(key, command, self.stands_for);
        }
        self.engine.store.clock().precise_ns()
    }

    /// Ends a command that is timed.
    #[cold]
    pub(crate) fn end_timed(&self, began: u64, class: Class) {
        let took = self.engine.store.clock().precise_ns().saturating_sub(began);
        self.counters.latencies.note(class, took, self.stands_for);
    }

    /// Whether the statement that begins is one that is timed.
    #[inline]
    pub(crate) fn is_timed_statement(&mut self) -> bool {
        self.until_timed[1] -= 1;
        let is_timed = self.until_timed[1] == 0;
        if is_timed {
            self.until_timed[1] = TIMED_STATEMENTS;
        }
        is_timed
    }

    /// Takes note of such a statement.
    #[cold]
    pub(crate) fn note_statement_time(&self, class: Class, took_ns: u64) {
        self.counters.latencies.note(class, took_ns, TIMED_STATEMENTS);
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
        let (table, key) = resolve(&self.catalog, key, &mut self.key);
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
    pub(crate) key: Result<&'k [u8], Misfit<'k>>,
    pub(crate) now: Tick,
}

impl Route<'_> {
    /// The key within the table, or what tells a client why it can be none.
    #[inline]
    pub(crate) fn key_to_store(&self) -> Result<&[u8], Answer> {
        self.key.map_err(|misfit| {
            Answer::ClientError(codec::misfit(self.table.def(), misfit.rest, misfit.error).into())
        })
    }

    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        self.counters.add(counter, 1);
    }

    /// Counts a deadline that was to change.
    pub(crate) fn count_touch(&self, hit: bool) {
        self.count(Counter::CmdTouch);
        self.count(if hit { Counter::TouchHits } else { Counter::TouchMisses });
    }

    /// Counts a number that was to change.
    pub(crate) fn count_arithmetic(&self, decrement: bool, hit: bool) {
        self.count(match (decrement, hit) {
            (false, true) => Counter::IncrHits,
            (false, false) => Counter::IncrMisses,
            (true, true) => Counter::DecrHits,
            (true, false) => Counter::DecrMisses,
        });
    }

    /// Counts a key that was asked for, for the server and for its table.
    #[inline]
    pub(crate) fn count_get(&self, hit: bool) {
        self.count(Counter::CmdGet);
        self.count(if hit { Counter::GetHits } else { Counter::GetMisses });
        self.table.count_lookup(hit);
    }
}
