//! Statements that read rows by their keys in tables that read through (`query`).
//!
//! Such a statement gives no row to the client before all rows that it misses were asked for. If some are, the session
//! says [`Outcome::Waiting`], and its thread serves others. When the rows have arrived the statement is run again from
//! its beginning. Rows that came and may not be stored are shown to it alone, in a transaction that does not commit.

use std::collections::HashSet;
use std::sync::Arc;

use sql::{
    ColumnDescription, Done, Identity, MissingKey, Rights, RowSink, SqlError, SqlType, StatementText,
    TransactionStatus,
};
use store::value::{Value, ValueRef};

use super::rows::Rows;
use super::{NoRows, Outcome, SqlSession, SqlThreadContext};
use crate::activity::{Concern, Counted};
use crate::fetches::{FetchedRow, Place, Waiter};
use crate::limits::{FETCH_ROUNDS_MAX, FETCH_SURE_BYTES};

/// What a statement has asked for.
#[derive(Debug)]
pub(super) struct Fetching {
    /// What it waits for.
    waiters: Vec<Arc<Waiter>>,
    /// Keys that it asked for already.
    asked: HashSet<Place>,
    /// Rows that are not stored.
    rows: Vec<Arc<FetchedRow>>,
    rounds: usize,
}

impl Fetching {
    pub(super) fn is_over(&self) -> bool {
        self.waiters.iter().all(|waiter| waiter.is_over())
    }
}

impl SqlSession {
    /// Runs a statement that concerns tables that read through.
    #[cold]
    pub(super) fn run_with_source(
        &mut self,
        context: &mut SqlThreadContext,
        (counted, concern): (&Arc<Counted>, Concern),
        text: &StatementText<'_>,
        parameters: (&[Value], &[Option<SqlType>]),
        sink: &mut dyn RowSink,
    ) -> Result<Outcome, SqlError> {
        if concern == Concern::Writes {
            self.spoil_fetches(counted);
            return self.run_through(context, counted, text, parameters, sink);
        }
        if self.wake.is_none() || self.at_once {
            return self.run_through(context, counted, text, parameters, sink);
        }
        let mut fetching = self.fetching.take().unwrap_or_else(|| {
            let (waiters, asked, rows) = (Vec::new(), HashSet::new(), Vec::new());
            Box::new(Fetching { waiters, asked, rows, rounds: 0 })
        });
        for waiter in fetching.waiters.drain(..) {
            fetching.rows.extend(waiter.rows());
            // One that comes and goes is asked for again.
            for place in waiter.stored() {
                fetching.asked.remove(&place);
            }
        }
        let mut sure = Sure { rows: self.kept().0, sink, passed: false };
        context.tools()?.1.want_missing(true);
        let result = if fetching.rows.is_empty() {
            self.run_through(context, counted, text, parameters, &mut sure)
        } else {
            self.run_seeing(context, &fetching.rows, |own, context| {
                own.run_through(context, counted, text, parameters, &mut sure)
            })
        };
        let missing = context.tools()?.1.take_missing();
        let outcome = result?;
        if !sure.passed && fetching.rounds < FETCH_ROUNDS_MAX && self.ask(&mut fetching, missing) {
            fetching.rounds += 1;
            if fetching.is_over() {
                // All of it is known at once.
                self.fetching = Some(fetching);
                let (counted, sink) = ((counted, concern), sure.sink);
                return self.run_with_source(context, counted, text, parameters, sink);
            }
            self.fetching = Some(fetching);
            if let Some(presence) = &self.presence {
                presence.begin(counted);
            }
            return Ok(Outcome::Waiting);
        }
        sure.pass()?;
        Ok(outcome)
    }

    /// Asks for what is missing and was not asked for before. False: for nothing.
    fn ask(&self, fetching: &mut Fetching, missing: Vec<MissingKey>) -> bool {
        let Some(wake) = &self.wake else { return false };
        let now_ns = self.engine.store.clock().now_ns();
        let mut missing: Vec<MissingKey> = missing
            .into_iter()
            .filter(|(table, key)| fetching.asked.insert((table.number(), key.clone())))
            .collect();
        missing.sort_by_key(|(table, _)| table.number());
        for some in missing.chunk_by(|(one, _), (other, _)| one.number() == other.number()) {
            let Some(table) = some.first().map(|(table, _)| table) else { continue };
            let Some(source) = self.engine.sources.of(table) else { continue };
            let keys = some.iter().map(|(_, key)| &**key);
            fetching.waiters.push(source.fetches.ask(table, keys, Arc::clone(wake), now_ns));
        }
        !fetching.waiters.is_empty()
    }

    /// Runs something that sees these rows, which nobody else sees, and which go then.
    fn run_seeing<T>(
        &mut self,
        context: &mut SqlThreadContext,
        rows: &[Arc<FetchedRow>],
        run: impl FnOnce(&mut Self, &mut SqlThreadContext) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        const MARK: &str = "sqlcached_fetched";
        let in_block = self.status() != TransactionStatus::Idle;
        let begin = if in_block { format!("SAVEPOINT {MARK}") } else { "BEGIN".to_owned() };
        let own = self.sql.identity().clone();
        self.sql.set_identity(Identity { rights: Rights::ALL, ..own.clone() });
        let mut made = self.quietly(context, &begin, &[]).map(drop);
        for row in rows {
            made = made.and_then(|()| self.quietly(context, &row.insert, &row.values).map(drop));
        }
        self.sql.set_identity(own);
        // A transaction that may not write does not see them.
        let result = match made {
            Ok(()) => run(self, context),
            Err(error) if error.state == "25006" => run(self, context),
            Err(error) => Err(error),
        };
        let ends = if in_block {
            [format!("ROLLBACK TO SAVEPOINT {MARK}"), format!("RELEASE SAVEPOINT {MARK}")].to_vec()
        } else {
            vec!["ROLLBACK".to_owned()]
        };
        // A statement that failed in a block leaves the block failed, as ever.
        if !in_block || result.is_ok() {
            for end in ends {
                self.quietly(context, &end, &[])?;
            }
        }
        result
    }

    /// A statement of this program's own within the client's session.
    fn quietly(
        &mut self,
        context: &mut SqlThreadContext,
        text: &str,
        values: &[Value],
    ) -> Result<Done, SqlError> {
        let (_, executor) = context.tools()?;
        executor.execute_text(
            &mut self.sql,
            &StatementText::new(text),
            (values, &[]),
            &self.cancel,
            &mut NoRows,
        )
    }

    /// The statement may delete or write rows that are being fetched, be they here or not: what was read before is not
    /// stored. In a transaction it does so again when it commits.
    fn spoil_fetches(&mut self, counted: &Counted) {
        // What this program does itself does not: a source's changes pass the gate.
        if self.who.is_none() {
            return;
        }
        let catalog = self.engine.store.catalog();
        for table in catalog.tables().filter(|table| table.reads_through() && counted.names(table)) {
            self.engine.sources.spoil_fetches(table, None);
            if !self.spoiled.iter().any(|known| known.number() == table.number()) {
                self.spoiled.push(Arc::clone(table));
            }
        }
    }

    /// Once more before a transaction ends.
    #[cold]
    pub(super) fn spoil_again(&mut self) {
        if self.status() == TransactionStatus::Idle {
            return self.spoiled.clear();
        }
        for table in &self.spoiled {
            self.engine.sources.spoil_fetches(table, None);
        }
    }
}

/// Keeps the rows of a statement back until it is sure that none is missing; a large result is given as it comes.
struct Sure<'s> {
    rows: Rows,
    sink: &'s mut dyn RowSink,
    passed: bool,
}

impl Sure<'_> {
    fn pass(&mut self) -> Result<(), SqlError> {
        if !std::mem::replace(&mut self.passed, true) && self.rows.has_columns() {
            self.rows.replay(0..self.rows.len(), self.sink)?;
        }
        Ok(())
    }
}

impl RowSink for Sure<'_> {
    fn columns(&mut self, columns: &[ColumnDescription]) {
        self.rows.columns(columns);
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        if self.passed {
            return self.sink.row(values);
        }
        self.rows.row(values)?;
        if self.rows.bytes() > FETCH_SURE_BYTES { self.pass() } else { Ok(()) }
    }
}
