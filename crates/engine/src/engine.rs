//! What all sessions share.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use auth::Authenticated;
use parking_lot::Mutex;
use sql::limits::{SESSION_BYTES_MAX, SESSIONS_BYTES_MAX};
use sql::{Account, Executor, Invalidation, Limits, RuleRunner, SqlError, ViewRunner};
use store::{Pause, PinnedRow, RemovalEvent, Store, TICKS_PER_SECOND};

use crate::access::AccessControl;
use crate::activity::{Activity, FlushToCome, Happening, Who};
use crate::advisory::Locks;
use crate::audit::Audit;
use crate::buses::{Buses, Tap};
use crate::channels::Channels;
use crate::counters::{Counters, Totals};
use crate::hot::HotKeys;
use crate::json;
use crate::latency::Spread;
use crate::limits::{ITEM_SIZE_MAX, RESULT_SIZE_MAX, TICK_AGE_MAX_NS};
use crate::prefixes::Prefixes;
use crate::sources::Sources;
use crate::watch::{Watched, Watchers};

/// The engine's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// Bytes of the largest memcached value.
    pub item_size_max: usize,
    /// Bytes of the largest SQL result.
    pub result_size_max: usize,
    /// Bytes that one SQL session may hold between its statements.
    pub session_bytes_max: usize,
    /// Bytes that all of them may.
    pub sessions_bytes_max: usize,
    /// Whether `flush_all` is allowed.
    pub flush_enabled: bool,
    /// Whether keys may be listed.
    pub dump_enabled: bool,
    /// Whether clients may watch others.
    pub watch_enabled: bool,
    /// Whether clients may stop the server.
    pub shutdown_enabled: bool,
    /// The character that ends a key's prefix; given, commands are counted by prefix from the start.
    pub stat_delimiter: Option<u8>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            item_size_max: ITEM_SIZE_MAX,
            result_size_max: RESULT_SIZE_MAX,
            session_bytes_max: SESSION_BYTES_MAX,
            sessions_bytes_max: SESSIONS_BYTES_MAX,
            flush_enabled: true,
            dump_enabled: true,
            watch_enabled: true,
            shutdown_enabled: false,
            stat_delimiter: None,
        }
    }
}

/// The store with everything around it that all sessions share.
#[derive(Debug)]
pub struct Engine {
    pub(crate) store: Arc<Store>,
    pub(crate) options: EngineOptions,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) prefixes: Prefixes,
    /// Changes what is logged, and how much is.
    verbosity: (OnceLock<Verbosity>, AtomicU64),
    /// Reads certificates again.
    refresh: OnceLock<Refresh>,
    /// Who listens to what.
    pub(crate) channels: Channels,
    /// Advisory locks.
    pub(crate) locks: Locks,
    /// Who may connect, as whom.
    pub access: AccessControl,
    /// The databases behind the cache.
    pub sources: Sources,
    /// The buses on which caches tell one another what is not valid any more.
    pub buses: Arc<Buses>,
    /// What all SQL sessions hold between their statements.
    pub(crate) held: Arc<Account>,
    /// The counters of every thread context ever made. Taken for a moment, and only to make a context or to sum up.
    pub(crate) contexts: Mutex<Vec<Arc<Counters>>>,
    /// What `stats reset` saw; sums are given from there. Taken after `contexts` was let go.
    baseline: Mutex<Totals>,
    /// Names and values for `stats settings`, from those who know them.
    settings: Mutex<Vec<(&'static str, String)>>,
    /// Connections now, kept by the server.
    pub connections: AtomicUsize,
    /// Connections that may be.
    pub connections_max: AtomicUsize,
    /// Connections ever.
    pub connections_total: AtomicU64,
    /// Connections refused because there were too many.
    pub connections_rejected: AtomicU64,
    /// Memcached worker threads.
    pub workers: AtomicUsize,
    /// Whether statements that need no SQLite are run without it, where their session says nothing.
    native_execution: AtomicBool,
    pub(crate) started_ns: u64,
    /// When the housekeeping had its last turn, by the monotonic clock.
    ticked_ns: AtomicU64,
    /// When it started, by the wall clock.
    pub(crate) started_ms: i64,
    pub(crate) activity: Activity,
    audit: Arc<Audit>,
    pub(crate) flush_to_come: FlushToCome,
    pub(crate) hot_keys: HotKeys,
}

impl Engine {
    /// An engine over an open store.
    pub fn new(store: Arc<Store>, options: EngineOptions) -> Arc<Self> {
        let audit = Arc::new(Audit::new(store.clock().clone()));
        let access = AccessControl::new(store.clock().clone(), Arc::clone(&audit));
        // Here, because every session and every listener begins with an engine. An executor comes with the first
        // statement, and a warm start serves memcached clients before that.
        sql::compute_definitions(&store);
        let started_ns = store.clock().now_ns();
        let started_ms = i64::try_from(store.clock().unix_ms()).unwrap_or(i64::MAX);
        let counts_prefixes = options.stat_delimiter.is_some();
        let activity = Activity::new(store.clock(), Arc::clone(&audit));
        let flush_to_come = FlushToCome::of_earlier(store.flush_to_come());
        let locks = Locks::new(store.clock().clone());
        let buses = Arc::<Buses>::default();
        store.tap_rows(Arc::new(Tap::new(&buses, store.clock())));
        let engine = Self {
            store,
            watchers: Arc::default(),
            prefixes: Prefixes::new(options.stat_delimiter),
            verbosity: (OnceLock::new(), AtomicU64::new(0)),
            refresh: OnceLock::new(),
            held: Account::new(options.sessions_bytes_max),
            options,
            channels: Channels::default(),
            locks,
            access,
            sources: Sources::default(),
            buses,
            contexts: Mutex::new(Vec::new()),
            baseline: Mutex::new(Totals::zero()),
            settings: Mutex::new(Vec::new()),
            connections: AtomicUsize::new(0),
            connections_max: AtomicUsize::new(0),
            connections_total: AtomicU64::new(0),
            connections_rejected: AtomicU64::new(0),
            workers: AtomicUsize::new(0),
            native_execution: AtomicBool::new(true),
            started_ns,
            ticked_ns: AtomicU64::new(started_ns),
            started_ms,
            activity,
            audit,
            flush_to_come,
            hot_keys: HotKeys::default(),
        };
        engine.watchers.set(Watched::PREFIXES, counts_prefixes);
        Arc::new(engine)
    }

    /// What all SQL sessions hold between their statements.
    pub fn held(&self) -> &Arc<Account> {
        &self.held
    }

    /// The store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The bytes of a value that is held.
    pub fn pinned_bytes(&self, row: &PinnedRow) -> &[u8] {
        self.store.pinned_bytes(row)
    }

    /// Lets go of a value that was held.
    pub fn unpin(&self, row: PinnedRow) {
        self.store.unpin(row);
    }

    /// An executor of SQL for the calling thread.
    pub fn executor(self: &Arc<Self>, statement_timeout: Option<Duration>) -> Result<Executor, SqlError> {
        let limits = Self::limits(statement_timeout, self.native_execution());
        let mut executor = Executor::new(Arc::clone(&self.store), limits)?;
        executor.set_server(Arc::<Self>::clone(self));
        Ok(executor)
    }

    /// Whether an expiry rule's time has come: not before the start has looked at all rows.
    pub fn has_rules_due(&self) -> bool {
        self.store.has_rules_due() && self.store.recovered().complete
    }

    /// Whether any table has an expiry rule.
    pub fn has_rules(&self) -> bool {
        self.store.catalog().ruled_tables().next().is_some()
    }

    /// What runs the expiry rules, for the calling thread.
    pub fn rule_runner(self: &Arc<Self>) -> Result<RuleRunner, SqlError> {
        let mut runner = RuleRunner::new(Arc::clone(&self.store))?;
        runner.set_server(Arc::<Self>::clone(self));
        Ok(runner)
    }

    /// Whether a materialized view is to be refreshed: not before the start has looked at all rows.
    pub fn has_due_views(&self) -> bool {
        self.store.recovered().complete && self.store.has_due_views()
    }

    /// Whether there are materialized views.
    pub fn has_views(&self) -> bool {
        self.store.catalog().materialized_views().next().is_some()
    }

    /// What refreshes materialized views, for the calling thread.
    pub fn view_runner(self: &Arc<Self>) -> Result<ViewRunner, SqlError> {
        let mut runner = ViewRunner::new(Arc::clone(&self.store))?;
        runner.set_server(Arc::<Self>::clone(self));
        Ok(runner)
    }

    /// What a statement may take.
    pub(crate) fn limits(statement_timeout: Option<Duration>, native: bool) -> Limits {
        Limits { statement_timeout, native, ..Limits::default() }
    }

    /// Says whether statements that need no SQLite are run without it (`native_execution`).
    pub fn set_native_execution(&self, on: bool) {
        // Relaxed: a setting that takes effect soon.
        self.native_execution.store(on, Ordering::Relaxed);
    }

    pub(crate) fn native_execution(&self) -> bool {
        self.native_execution.load(Ordering::Relaxed)
    }

    /// The store's housekeeping: a bounded piece of work, to be called each tick.
    pub fn tick(&self) {
        self.tick_with_pauses(&mut || ControlFlow::Continue(()));
    }

    /// The same, with a pause between its pieces where there is much to do.
    pub fn tick_with_pauses(&self, pause: &mut Pause<'_>) {
        self.locks.tick();
        self.sources.tick();
        self.buses.tick();
        self.note_flush_that_came();
        self.store.tick_with_pauses(pause);
        self.announce();
        self.notify_evictions();
        self.record_history();
        self.hot_keys.count(&self.store, self.contexts.lock().iter().map(|counters| &counters.samples));
        // Relaxed: a moment by itself.
        self.ticked_ns.store(self.store.clock().now_ns(), Ordering::Relaxed);
    }

    /// Nanoseconds since the housekeeping had its last turn.
    pub(crate) fn tick_age_ns(&self) -> u64 {
        self.store.clock().now_ns().saturating_sub(self.ticked_ns.load(Ordering::Relaxed))
    }

    /// Whether the housekeeping goes on: without it nothing expires in time.
    pub fn is_alive(&self) -> bool {
        self.tick_age_ns() <= TICK_AGE_MAX_NS
    }

    /// Tells listeners which rows left the tables that name a channel.
    fn announce(&self) {
        for departure in self.store.take_removal_events() {
            self.channels.notify(SERVER_PROCESS, &departure.channel, &announcement(&departure));
        }
    }

    /// From how many milliseconds on a statement is slow (`log_min_duration_statement`); none: never.
    /// `value_bytes`: how much of each parameter is noted with it (`log_parameter_max_length`); 0: nothing, and no
    /// literals.
    pub fn set_slow_log(&self, from_ms: Option<u64>, value_bytes: usize) {
        self.activity.slow.set(from_ms, value_bytes);
    }

    /// Takes note of rows that a source's changes removed or, by an `UPDATE`, made stale, by a statement of this text;
    /// `whole`: all of the table's.
    pub fn note_source(
        &self,
        source: &str,
        (table, whole): (&str, bool),
        statement: &str,
        rows: u64,
        took: Duration,
    ) {
        if rows == 0 {
            return;
        }
        self.activity.keep(Happening {
            who: Arc::new(Who { role: source.to_owned(), protocol: "source", ..Who::default() }),
            statement: statement.into(),
            parameters: None,
            table: Some(table.to_owned()),
            how: match (statement.starts_with("UPDATE"), whole) {
                (true, _) => Invalidation::Stale,
                (false, true) => Invalidation::Flushed,
                (false, false) => Invalidation::Deleted,
            },
            rows,
            took_ns: u64::try_from(took.as_nanos()).ok(),
        });
    }

    /// Has the audit log written to this file, behind what it holds; none: there is none.
    pub fn set_audit_file(&self, path: Option<&Path>) -> io::Result<()> {
        self.audit.set_file(path)
    }

    /// Says how much is logged, and how that is changed.
    pub fn on_verbosity(&self, level: u64, change: Box<dyn Fn(u64) + Send + Sync>) {
        // Only the first counts: a process has one log.
        let _had = self.verbosity.0.set(Verbosity(change));
        self.verbosity.1.store(level, Ordering::Relaxed);
    }

    pub(crate) fn change_verbosity(&self, level: u64) {
        if let Some(Verbosity(change)) = self.verbosity.0.get() {
            change(level);
            // Relaxed: for people to look at.
            self.verbosity.1.store(level, Ordering::Relaxed);
        }
    }

    pub(crate) fn verbosity(&self) -> u64 {
        self.verbosity.1.load(Ordering::Relaxed)
    }

    /// Says how certificates are read again.
    pub fn on_refresh(&self, refresh: Box<dyn Fn() + Send + Sync>) {
        let _had = self.refresh.set(Refresh(refresh));
    }

    pub(crate) fn refresh_certificates(&self) {
        if let Some(Refresh(refresh)) = self.refresh.get() {
            refresh();
        }
    }

    /// Whether the role of somebody who was let in may have one more connection.
    pub fn has_place_for(&self, who: &Authenticated) -> bool {
        let Some(name) = who.role() else { return true };
        let access = self.access.current();
        let limit =
            access.roles.as_ref().and_then(|roles| roles.get(name)).map_or(-1, |role| role.connection_limit);
        // A negative limit is none.
        let Ok(limit) = usize::try_from(limit) else { return true };
        self.activity.sessions.all().iter().filter(|session| session.user == name).count() < limit
    }

    /// The settings it was made with.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// What was counted since the start or the last reset.
    pub fn totals(&self) -> Totals {
        self.raw_totals().since(&self.baseline.lock())
    }

    /// Says what `stats settings` shall show, beside what the engine knows itself.
    pub fn describe(&self, settings: Vec<(&'static str, String)>) {
        *self.settings.lock() = settings;
    }

    /// Says what `pg_settings` and `sqlcached_settings` shall show.
    pub fn describe_settings(&self, settings: Vec<sql::SettingFacts>) {
        self.activity.set_settings(settings);
    }

    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        self.settings.lock().clone()
    }

    pub(crate) fn reset_counters(&self) {
        *self.baseline.lock() = self.raw_totals();
        self.activity.statements.reset();
        self.prefixes.clear();
        // Relaxed: a counter, in no order with anything.
        self.connections_rejected.store(0, Ordering::Relaxed);
    }

    /// The Unix second that comes in so many ticks: the nearest one, for a tick is a sixteenth.
    pub(crate) fn unix_second_in(&self, ticks: u64) -> u64 {
        (self.store.clock().unix_ms() + ticks * 1_000 / TICKS_PER_SECOND + 500) / 1_000
    }

    pub(crate) fn uptime_seconds(&self) -> u64 {
        self.store.clock().now_ns().saturating_sub(self.started_ns) / 1_000_000_000
    }

    /// How long the commands of a class took, since the start.
    pub(crate) fn latency(&self, class: usize) -> Spread {
        let mut spread = Spread::default();
        self.contexts.lock().iter().for_each(|counters| counters.latencies.add_to(class, &mut spread));
        spread
    }

    /// What was counted since the start.
    pub(crate) fn raw_totals(&self) -> Totals {
        let mut totals = Totals::zero();
        for counters in self.contexts.lock().iter() {
            totals.add(counters);
        }
        totals
    }
}

/// What changes the log's level.
struct Verbosity(Box<dyn Fn(u64) + Send + Sync>);

impl fmt::Debug for Verbosity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verbosity")
    }
}

/// What reads certificates again.
struct Refresh(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Refresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Refresh")
    }
}

/// The number under which the server itself announces: no session has it.
pub(crate) const SERVER_PROCESS: i32 = 0;

/// A departure as listeners get it: a JSON object of one line.
fn announcement(departure: &RemovalEvent) -> String {
    let mut text = format!("{{\"event\":\"{}\",\"table\":", departure.cause.name()).into_bytes();
    json::write_text(&departure.table, &mut text);
    if let Some(key) = &departure.key {
        text.extend_from_slice(b",\"key\":");
        match std::str::from_utf8(key) {
            Ok(key) => json::write_text(key, &mut text),
            Err(_) => json::write_value(store::value::ValueRef::Blob(key), &mut text),
        }
    }
    text.push(b'}');
    String::from_utf8_lossy(&text).into_owned()
}
