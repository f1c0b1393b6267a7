//! What the tables of one connection see while a statement runs, and what the statement may do.

use std::cell::{Cell, Ref, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dialect::lateral::LATERAL;
use pgcatalog::function::{self, Caller, Now};
use pgcatalog::{began, system};
use sqlite::limits::PROGRESS_OPERATIONS;
use sqlite::{Action, LentView, Policy};
use store::patience::Watch as _;
use store::value::Value;
use store::{Clock, Renewal, Store, Table, View};

use super::foresight::Foresight;
use super::missing::Missing;
use crate::error::{SqlError, state};
use crate::facts::Facts;
use crate::limits::{BACKGROUND_REST, BACKGROUND_WORK, Limits};

/// Asks a running statement to stop; may be used from any thread.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag that nobody has raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the statement that watches this flag, and those that will.
    pub fn cancel(&self) {
        // Relaxed: nothing else is published by it.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes the request back, before the flag is used for another statement.
    pub fn reset(&self) {
        // Relaxed: see `cancel`.
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_canceled(&self) -> bool {
        // Relaxed: see `cancel`.
        self.0.load(Ordering::Relaxed)
    }
}

/// Work that rests in between, for nobody waits for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// On the store's clock.
    since_ns: u64,
}

impl Rest {
    /// Work begins.
    pub(crate) fn new(clock: &Clock) -> Self {
        Self { since_ns: clock.precise_ns() }
    }

    /// Sleeps, if it has worked for long enough.
    pub(crate) fn take_if_due(&mut self, clock: &Clock) {
        if u128::from(clock.precise_ns().saturating_sub(self.since_ns)) >= BACKGROUND_WORK.as_nanos() {
            std::thread::sleep(BACKGROUND_REST);
            self.since_ns = clock.precise_ns();
        }
    }
}

/// A row that exists in a statement only: what a write would replace, or what it would write.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ListRow {
    /// The table's columns.
    pub(crate) values: Vec<Value>,
    /// The CAS value, where the row has one already.
    pub(crate) cas: Option<u64>,
    /// The expiry word, as in a stored row.
    pub(crate) expiry: u32,
    /// The memcached client's flags.
    pub(crate) client_flags: u32,
    /// Whether it is stale, and whether a client refreshes it.
    pub(crate) renewal: Renewal,
}

/// The list of rows as they will be: `excluded`, or what `RETURNING` returns.
pub(crate) const NEW_ROWS: usize = 0;
/// The list of the row as it is, for `ON CONFLICT DO UPDATE`.
pub(crate) const OLD_ROWS: usize = 1;

/// A column that a statement reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnRead {
    /// The innermost view that reads it; `None`: the statement itself.
    pub(crate) view: Option<Box<str>>,
    /// The table or view.
    pub(crate) relation: Box<str>,
    /// The column.
    pub(crate) column: Box<str>,
}

/// Shared by a connection's tables, its authorizer and its executor, all on one thread.
#[derive(Debug)]
pub(crate) struct Sight {
    store: Arc<Store>,
    view: LentView,
    lists: [RefCell<Vec<ListRow>>; 2],
    picked: RefCell<Vec<Vec<u8>>>,
    /// Why a cursor failed, in better words than SQLite can carry.
    failure: RefCell<Option<SqlError>>,
    /// What the session's statements wrote so far.
    facts: Cell<Facts>,
    /// Tables that statements may read, in lower case.
    known: RefCell<HashSet<String>>,
    /// Whether a row's deadline or lease was looked at.
    reads_times: Cell<bool>,
    /// What statements read that are compiled now, while somebody wants to know.
    reads: RefCell<Option<Vec<ColumnRead>>>,
    /// On while this crate defines a view.
    defining: Cell<bool>,
    /// Off while this crate compiles its own statements on the connection.
    watch: Watch,
    pub(super) foresight: Foresight,
    /// Rows that are missing and may be fetched.
    pub(crate) missing: Missing,
}

/// When the running statement must stop.
#[derive(Debug, Default)]
struct Watch {
    cancel: RefCell<Option<Cancel>>,
    /// In nanoseconds of the store's clock.
    deadline_ns: Cell<Option<u64>>,
    operations_left: Cell<Option<u64>>,
    stopped_by: Cell<Option<&'static str>>,
    /// Where nobody waits for the statement.
    rest: Cell<Option<Rest>>,
}

impl Sight {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            view: LentView::default(),
            lists: Default::default(),
            picked: RefCell::default(),
            failure: RefCell::default(),
            facts: Cell::default(),
            known: RefCell::default(),
            reads: RefCell::default(),
            reads_times: Cell::new(false),
            defining: Cell::new(false),
            watch: Watch::default(),
            foresight: Foresight::default(),
            missing: Missing::default(),
        }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Notes that a row's deadline or lease was looked at.
    pub(crate) fn note_times_read(&self) {
        self.reads_times.set(true);
    }

    /// Whether one was, since this was asked last.
    pub(crate) fn take_times_read(&self) -> bool {
        self.reads_times.take()
    }

    /// Lets the connection's tables see the store through this view for the length of `body`.
    pub(crate) fn lend<T>(&self, view: &View<'_>, body: impl FnOnce() -> T) -> T {
        let result = self.view.lend(view, body);
        self.foresight.forget();
        result
    }

    /// Reads the store through the statement's view. `E` is what can go wrong there: what a row's read gives back is
    /// small.
    #[inline]
    pub(crate) fn with_view<T, E: Into<SqlError>>(
        &self,
        body: impl FnOnce(&View<'_>) -> Result<T, E>,
    ) -> Result<T, String> {
        match self.view.with(body) {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(self.note_failure(error.into())),
            None => {
                Err(self.note_failure(SqlError::new(state::INTERNAL, "a table was read outside a statement")))
            }
        }
    }

    /// Keeps an error for the executor, and gives SQLite its words.
    #[cold]
    fn note_failure(&self, error: SqlError) -> String {
        let words = error.message.clone();
        *self.failure.borrow_mut() = Some(error);
        words
    }

    /// The error that a cursor or the watch left, if any; it says more than SQLite's own.
    pub(crate) fn take_failure(&self) -> Option<SqlError> {
        if let Some(reason) = self.watch.stopped_by.take() {
            // A function that was stopped has left its own words.
            self.failure.take();
            return Some(SqlError::new(state::CANCELED, format!("canceling statement due to {reason}")));
        }
        self.failure.take()
    }

    /// Fills a list for `table(n)`.
    pub(crate) fn set_list(&self, list: usize, rows: Vec<ListRow>) {
        *self.lists[list].borrow_mut() = rows;
    }

    /// Empties a list and gives its rows back.
    pub(crate) fn take_list(&self, list: usize) -> Vec<ListRow> {
        self.lists[list].take()
    }

    pub(crate) fn list(&self, list: usize) -> Ref<'_, Vec<ListRow>> {
        self.lists[list.min(OLD_ROWS)].borrow()
    }

    /// Sets the keys that `_pick = 1` reads.
    pub(crate) fn set_picked(&self, keys: Vec<Vec<u8>>) {
        *self.picked.borrow_mut() = keys;
    }

    pub(crate) fn picked(&self) -> Vec<Vec<u8>> {
        self.picked.borrow().clone()
    }

    /// Lends a session's numbers to the functions that return them.
    pub(crate) fn set_facts(&self, facts: Facts) {
        self.facts.set(facts);
    }

    pub(crate) fn facts(&self) -> Facts {
        self.facts.get()
    }

    /// Takes note of a statement that failed when so many rows were written.
    pub(crate) fn note_failed(&self, written: u64) {
        let mut facts = self.facts.get();
        facts.note_rows(written);
        self.facts.set(facts);
    }

    /// Takes note of a row inserted under a key.
    pub(crate) fn note_inserted(&self, table: &Table, key: &[u8]) {
        let mut facts = self.facts.get();
        facts.note_inserted(table, key);
        self.facts.set(facts);
    }

    /// What statements read that are compiled by `body`.
    pub(crate) fn reads_of<T>(&self, body: impl FnOnce() -> T) -> (T, Vec<ColumnRead>) {
        *self.reads.borrow_mut() = Some(Vec::new());
        let result = body();
        (result, self.reads.borrow_mut().take().unwrap_or_default())
    }

    /// Sets which tables statements may read.
    pub(crate) fn set_known(&self, names: impl Iterator<Item = String>) {
        *self.known.borrow_mut() = names.collect();
    }

    /// Lets this crate define a view on the connection.
    pub(crate) fn defining<T>(&self, body: impl FnOnce() -> T) -> T {
        self.defining.set(true);
        let result = body();
        self.defining.set(false);
        result
    }

    /// Starts to watch a statement: its deadline counts from now, and it has at least its time.
    pub(crate) fn start_watch(&self, limits: &Limits, timeout: Option<Duration>, cancel: &Cancel) {
        let timeout = timeout.map(|timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        let clock = self.store.clock();
        let now_ns = clock.now_ns();
        began::begin(now_ns);
        self.watch
            .deadline_ns
            .set(timeout.map(|timeout| now_ns.saturating_add(timeout).saturating_add(clock.lag_ns())));
        self.watch.operations_left.set(limits.operations_max);
        self.watch.rest.set(limits.background.then(|| Rest::new(self.store.clock())));
        self.watch.stopped_by.set(None);
        self.failure.take();
        let mut watched = self.watch.cancel.borrow_mut();
        // The statements of one session mostly have the same flag.
        if !watched.as_ref().is_some_and(|watched| Arc::ptr_eq(&watched.0, &cancel.0)) {
            *watched = Some(cancel.clone());
        }
    }

    /// Whether the statement's time is over; a loop of this crate asks before each round.
    pub(crate) fn check_watch(&self) -> Result<(), SqlError> {
        if self.must_stop(u64::from(PROGRESS_OPERATIONS.unsigned_abs()))
            && let Some(error) = self.take_failure()
        {
            return Err(error);
        }
        Ok(())
    }

    /// The same behind a stage that took steps of the watch: its work is no operation.
    pub(crate) fn check_stage(&self) -> Result<(), SqlError> {
        match self.must_stop(0).then(|| self.take_failure()).flatten() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn stop(&self, reason: &'static str) -> bool {
        self.watch.stopped_by.set(Some(reason));
        true
    }
}

impl Caller for Sight {
    fn now(&self) -> Now {
        let clock = self.store.clock();
        let now_us = began::statement_us(clock).unwrap_or_else(|| clock.unix_us());
        Now { us: i64::try_from(now_us).unwrap_or(0) }
    }

    fn fail(&self, error: SqlError) -> String {
        let words = error.message.clone();
        *self.failure.borrow_mut() = Some(error);
        words
    }
}

impl Policy for Sight {
    fn allows(&self, action: Action<'_>) -> bool {
        if self.defining.get() {
            return true;
        }
        match action {
            Action::Select | Action::Recursive => true,
            Action::Read { table, column, view } => {
                if let Some(reads) = &mut *self.reads.borrow_mut() {
                    let view = view.map(Into::into);
                    reads.push(ColumnRead { view, relation: table.into(), column: column.into() });
                }
                let known = self.known.borrow();
                known.contains(table)
                    || known.contains(&table.to_lowercase())
                    || system::is_table(table)
                    || system::is_rows_table(table)
                    || table.eq_ignore_ascii_case(system::UNNEST)
                    || table.eq_ignore_ascii_case(LATERAL)
                    || function::TABLE_FUNCTIONS.iter().any(|name| name.eq_ignore_ascii_case(table))
            }
            // The name of a common table expression is any name, and only SQLite's own tables and functions are
            // anything else: tables of ours are known to the parser before.
            Action::Rows(name) => {
                let name = name.to_ascii_lowercase();
                !["sqlite_", "pragma_", "dbstat", "bytecode", "tables_used"]
                    .iter()
                    .any(|own| name.starts_with(own))
            }
            Action::Function(name) => system::is_function(name),
            Action::Other => false,
        }
    }
}

impl store::patience::Watch for Sight {
    fn must_stop(&self, operations: u64) -> bool {
        let watch = &self.watch;
        if let Some(mut rest) = watch.rest.get() {
            rest.take_if_due(self.store.clock());
            watch.rest.set(Some(rest));
        }
        if watch.cancel.borrow().as_ref().is_some_and(Cancel::is_canceled) {
            return self.stop("user request");
        }
        if let Some(left) = watch.operations_left.get() {
            watch.operations_left.set(Some(left.saturating_sub(operations)));
            if left < operations {
                return self.stop("the limit of operations");
            }
        }
        match watch.deadline_ns.get() {
            Some(deadline) if self.store.clock().now_ns() >= deadline => self.stop("statement timeout"),
            _ => false,
        }
    }
}
