//! The databases behind the cache, as far as everybody may know of them. Their connections are the crate `source`'s.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use sql::{ForwardedFacts, SourceColumn, SourceFacts, SourceNote, SourceRows, SqlError};
use store::definition::{MaterializedDef, ServerDef, TableDef};
use store::{Clock, Table};

use crate::fetches::FetchQueue;

/// Who has connections to the databases behind the cache.
pub trait Behind: Send + Sync {
    /// Asks a source whether it can tell what changes for a table, and give its rows.
    fn check(&self, server: &ServerDef, table: &TableDef) -> Result<Vec<SourceNote>, SqlError>;
    /// Asks a source which columns a query gives.
    fn describe(&self, server: &ServerDef, sql: &str) -> Result<Vec<SourceColumn>, SqlError>;
    /// Has a source run the query of a view, which may take so long.
    fn run(
        &self,
        server: &ServerDef,
        view: &MaterializedDef,
        timeout: Duration,
        rows: &mut dyn SourceRows,
    ) -> Result<(), SqlError>;
}

/// All sources that run.
#[derive(Default)]
pub struct Sources {
    all: Mutex<Vec<Arc<SourceState>>>,
    behind: OnceLock<Box<dyn Behind>>,
    forwarded: OnceLock<Arc<dyn Forwarding>>,
}

/// Who forwards sessions to them.
pub trait Forwarding: Send + Sync {
    /// What is known of each statement.
    fn facts(&self) -> Vec<ForwardedFacts>;

    /// Whether a text may be one whose answers are kept.
    ///
    /// # Errors
    ///
    /// Why not.
    fn check(&self, statement: &str) -> Result<(), SqlError>;
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").field("all", &self.all).finish_non_exhaustive()
    }
}

/// What is known of a source: its thread writes it, everybody reads it.
#[derive(Debug)]
pub struct SourceState {
    facts: Mutex<SourceFacts>,
    /// Wakes who waits until more is applied.
    advanced: Condvar,
    clock: Clock,
    /// The rows of it that clients miss.
    pub fetches: FetchQueue,
}

impl SourceState {
    /// Changes what is known.
    pub fn update(&self, change: impl FnOnce(&mut SourceFacts)) {
        change(&mut self.facts.lock());
    }

    /// Its log was read and applied so far.
    pub fn advance(&self, received: u64, applied: u64) {
        let mut facts = self.facts.lock();
        (facts.received_lsn, facts.applied_lsn) = (received, applied);
        self.advanced.notify_all();
    }

    /// Whether it is applied so far, or is after a wait that is no longer than this.
    fn is_applied(&self, lsn: u64, wait: Duration) -> bool {
        let mut facts = self.facts.lock();
        // What was applied of a stream that broke says nothing about rows that were stored since.
        let done = |facts: &SourceFacts| facts.follows() && facts.applied_lsn >= lsn;
        if !done(&facts) {
            let _timed_out = self.advanced.wait_for(&mut facts, wait);
        }
        done(&facts)
    }

    /// Says what it does from now on; false: it did that already.
    pub fn enter(&self, state: &'static str) -> bool {
        let mut facts = self.facts.lock();
        let new = facts.state != state;
        if new {
            facts.reconnects += u64::from(facts.state == "lost");
            facts.state = state;
            facts.since_ms = i64::try_from(self.clock.unix_ms()).unwrap_or(i64::MAX);
        }
        new
    }

    /// What is known.
    pub fn facts(&self) -> SourceFacts {
        SourceFacts { fetches: self.fetches.facts(), ..self.facts.lock().clone() }
    }
}

impl Sources {
    /// A source that runs from now on.
    pub fn add(&self, name: &str, clock: &Clock) -> Arc<SourceState> {
        let facts = SourceFacts { name: name.to_owned(), ..SourceFacts::default() };
        let state = Arc::new(SourceState {
            facts: Mutex::new(facts),
            advanced: Condvar::new(),
            clock: clock.clone(),
            fetches: FetchQueue::default(),
        });
        state.enter("connecting");
        self.all.lock().push(Arc::clone(&state));
        state
    }

    /// It does not run any more.
    pub fn remove(&self, state: &Arc<SourceState>) {
        state.fetches.close();
        self.all.lock().retain(|own| !Arc::ptr_eq(own, state));
    }

    /// All that run, by their names.
    pub fn all(&self) -> Vec<SourceFacts> {
        let mut all: Vec<_> = self.all.lock().iter().map(|state| state.facts()).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Who forwards sessions from now on.
    pub fn attach_forwarding(&self, forwarding: Arc<dyn Forwarding>) {
        // Only the first counts: a process has one.
        let _had = self.forwarded.set(forwarding);
    }

    /// The statements that are forwarded.
    pub(crate) fn forwarded(&self) -> Vec<ForwardedFacts> {
        self.forwarded.get().map_or_else(Vec::new, |forwarding| forwarding.facts())
    }

    /// Whether the text of a cached query may be one whose answers are kept; where nobody forwards, any may.
    pub(crate) fn check_cached_query(&self, statement: &str) -> Result<(), SqlError> {
        self.forwarded.get().map_or(Ok(()), |forwarding| forwarding.check(statement))
    }

    /// See `Server::source_applied`.
    pub(crate) fn applied(&self, name: &str, lsn: u64, wait: Duration) -> Option<bool> {
        Some(self.named(name)?.is_applied(lsn, wait))
    }

    fn named(&self, name: &str) -> Option<Arc<SourceState>> {
        let named = |state: &&Arc<SourceState>| state.facts.lock().name.eq_ignore_ascii_case(name);
        self.all.lock().iter().find(named).cloned()
    }

    /// The source of a table.
    pub(crate) fn of(&self, table: &Table) -> Option<Arc<SourceState>> {
        self.named(table.def().options.source.as_deref()?)
    }

    /// Rows of a table are about to be deleted or written (none: any): what was read of its source before is not
    /// stored.
    /// When this returns, no such row is being stored.
    pub fn spoil_fetches(&self, table: &Table, key: Option<&[u8]>) {
        if table.reads_through()
            && let Some(source) = self.of(table)
        {
            source.fetches.spoil(table.number(), key);
        }
    }

    /// Ends the waits for rows that have taken too long.
    pub(crate) fn tick(&self) {
        for state in self.all.lock().iter() {
            state.fetches.expire(state.clock.now_ns());
        }
    }

    /// Who asks sources from now on.
    pub fn attach(&self, behind: Box<dyn Behind>) {
        // Only the first counts: a process has one set of sources.
        let _had = self.behind.set(behind);
    }

    /// Asks that; a program without connections to sources believes everything.
    pub(crate) fn check(&self, server: &ServerDef, table: &TableDef) -> Result<Vec<SourceNote>, SqlError> {
        self.behind.get().map_or(Ok(Vec::new()), |behind| behind.check(server, table))
    }

    /// Who asks a source for what only it knows.
    pub(crate) fn behind(&self, server: &ServerDef) -> Result<&dyn Behind, SqlError> {
        self.behind.get().map(|behind| &**behind).ok_or_else(|| sql::out_of_reach(server))
    }
}
