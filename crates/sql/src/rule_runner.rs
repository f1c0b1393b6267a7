//! Runs the expiry rules.

use std::sync::Arc;

use pgcatalog::session::{self, Holder};
use pgcatalog::system::Server;
use store::definition::ExpiryRule;
use store::value::ValueRef;
use store::{Judged, RuleRun, Store, Table};

use crate::describe::ColumnDescription;
use crate::done::RowSink;
use crate::error::{SqlError, state};
use crate::executor::Executor;
use crate::limits::{Limits, RULE_SLICE_BYTES, RULE_SLICE_ROWS, RULE_TIMEOUT};
use crate::rule::query;
use crate::session::Session;
use crate::table::{Cancel, Identity, Rest};

/// Rows removed between two looks at the time: some dozen microseconds of work.
const ROWS_AT_ONCE: usize = 64;

/// Runs the rules of all tables, on a thread that has nothing else to do.
#[derive(Debug)]
pub struct RuleRunner {
    store: Arc<Store>,
    executor: Executor,
    session: Session,
}

impl RuleRunner {
    /// A runner on this thread.
    pub fn new(store: Arc<Store>) -> Result<Self, SqlError> {
        let limits = Limits { statement_timeout: Some(RULE_TIMEOUT), background: true, ..Limits::default() };
        let executor = Executor::new(Arc::clone(&store), limits)?;
        Ok(Self { store, executor, session: Session::new() })
    }

    /// Lets it know roles: a rule has the privileges of its table's owner.
    pub fn set_server(&mut self, server: Arc<dyn Server>) {
        self.executor.set_server(server);
    }

    /// Runs every rule whose time has come, one after the other. Returns how many.
    pub fn run_due(&mut self, stop: &Cancel) -> usize {
        let due = self.store.due_rules();
        let mut ran = 0;
        for (table, rule) in &due {
            if stop.is_canceled() {
                break;
            }
            let began = self.store.clock().precise_ns();
            let mut run = RuleRun::default();
            let sql = query(table.def(), &rule.condition);
            run.plan = self.executor.plan_of(&sql);
            run.error = self.run(table, rule, &sql, &mut run.rows, stop).err().map(|error| error.message);
            if stop.is_canceled() {
                break;
            }
            run.ns = self.store.clock().precise_ns().saturating_sub(began);
            if run.rows > 0 {
                self.executor.server().note_rule(table.name(), &rule.name, run.rows, run.ns);
            }
            self.store.note_rule_run(table, rule, run);
            ran += 1;
        }
        ran
    }

    /// Slice after slice, until the query has no more rows.
    fn run(
        &mut self,
        table: &Arc<Table>,
        rule: &ExpiryRule,
        sql: &str,
        removed: &mut u64,
        stop: &Cancel,
    ) -> Result<(), SqlError> {
        self.session.set_identity(self.identity_of(table));
        loop {
            let mut slice = Slice::default();
            let result = self.executor.execute(&mut self.session, sql, &[], stop, &mut slice);
            if !slice.full {
                result?;
            }
            let expired = self.expire(table, &slice.rows, stop);
            *removed += expired;
            // Rows that stay are changed faster than they are judged; the next run sees them.
            if !slice.full || expired == 0 || self.store.catalog().rule(&rule.name).is_none() {
                return Ok(());
            }
        }
    }

    /// A rule looks at what its table's owner may read, and at nothing more.
    fn identity_of(&self, table: &Table) -> session::Identity {
        let Some(owner) = &table.def().access.owner else { return session::Identity::default() };
        let Holder { rights, roles } = self.executor.server().holder(owner).unwrap_or_else(Holder::nobody);
        session::Identity { role: owner.clone(), rights, roles, ..Default::default() }
    }

    /// Lets the rows of a slice go, some at a time.
    fn expire(&self, table: &Arc<Table>, rows: &[Judged], stop: &Cancel) -> u64 {
        let mut rest = Rest::new(self.store.clock());
        let mut expired = 0;
        for some in rows.chunks(ROWS_AT_ONCE) {
            if stop.is_canceled() {
                break;
            }
            expired += self.store.expire_rows(table, some);
            rest.take_if_due(self.store.clock());
        }
        expired
    }
}

/// The rows of one query, as many as one slice has room for.
#[derive(Debug, Default)]
struct Slice {
    rows: Vec<Judged>,
    bytes: usize,
    /// There may be more.
    full: bool,
}

impl RowSink for Slice {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        if let [ValueRef::Blob(bytes)] = values
            && let Some(Identity { cas, expiry, key, .. }) = Identity::decode(bytes)
        {
            self.bytes += key.len() + size_of::<Judged>();
            self.rows.push(Judged { key, cas, expiry });
        }
        self.full = self.rows.len() >= RULE_SLICE_ROWS || self.bytes >= RULE_SLICE_BYTES;
        if self.full { Err(SqlError::new(state::CANCELED, "the slice is full")) } else { Ok(()) }
    }
}
