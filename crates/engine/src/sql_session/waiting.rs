//! Statements that may wait for an advisory lock.
//!
//! Such a statement gives no row to the client before it has all its locks. If one is not free, the statement stops,
//! and the session says [`Outcome::Waiting`]. Its thread serves others meanwhile. When the session was woken, the
//! statement is run again from its beginning.

use std::sync::Arc;

use sql::{RowSink, SqlError, SqlType, StatementText, TransactionStatus};
use store::value::Value;

use super::{Outcome, SqlSession, SqlThreadContext};
use crate::activity::Counted;
use crate::advisory::Patience;

impl SqlSession {
    /// Whether its statement waits for a lock, for rows or for a bus, and must wait on.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        let fetches = self.fetching.as_ref().is_some_and(|fetching| !fetching.is_over());
        fetches || self.awaits_bus() || self.waiting && self.engine.locks.waits(self.sql.identity().pid)
    }

    /// Runs a statement that calls functions of advisory locks.
    #[cold]
    pub(super) fn run_locking(
        &mut self,
        context: &mut SqlThreadContext,
        counted: &Arc<Counted>,
        text: &str,
        parameters: (&[Value], &[Option<SqlType>]),
        sink: &mut dyn RowSink,
    ) -> Result<Outcome, SqlError> {
        let pid = self.sql.identity().pid;
        if std::mem::take(&mut self.waiting) {
            match self.engine.locks.take_end(pid) {
                None => {
                    self.waiting = true;
                    return Ok(Outcome::Waiting);
                }
                Some(Ok(())) => {}
                Some(Err(error)) => return self.end_locking(Err(error)),
            }
        } else if self.may_wait(text) {
            self.engine.locks.begin(pid);
        }
        let mut rows = self.kept();
        let result = self.run_through(context, counted, &StatementText::new(text), parameters, &mut rows);
        let outcome = match result {
            Err(error) if error.partial => self.wait(context, counted, error),
            result => self.end_locking(result),
        }?;
        if outcome != Outcome::Waiting && rows.0.has_columns() {
            rows.0.replay(0..rows.0.len(), sink)?;
        }
        Ok(outcome)
    }

    /// Whether a statement that stops may be run again: it wrote nothing, or what it wrote is not there.
    fn may_wait(&self, text: &str) -> bool {
        let first = sql::token::Tokens::new(text).next();
        let reads = first.is_some_and(|first| first.is("SELECT") || first.is("VALUES"));
        self.wake.is_some() && !self.at_once && (reads || self.status() == TransactionStatus::Idle)
    }

    /// The statement stopped: waits for the lock that it wanted, if that is why.
    fn wait(
        &mut self,
        context: &SqlThreadContext,
        counted: &Arc<Counted>,
        error: SqlError,
    ) -> Result<Outcome, SqlError> {
        let Some(wake) = self.wake.clone() else { return self.end_locking(Err(error)) };
        let patience = Patience {
            statement_timeout: self.sql.statement_timeout(context.timeout()),
            lock_timeout: self.settings.time("lock_timeout"),
            cancel: self.cancel.clone(),
            wake,
        };
        match self.engine.locks.enqueue(self.sql.identity().pid, patience) {
            Ok(true) => {
                self.waiting = true;
                if let Some(presence) = &self.presence {
                    presence.begin(counted);
                }
                Ok(Outcome::Waiting)
            }
            Ok(false) => self.end_locking(Err(error)),
            Err(refused) => self.end_locking(Err(refused)),
        }
    }

    /// The statement has ended, with its transaction if it stood alone.
    fn end_locking(&mut self, result: Result<Outcome, SqlError>) -> Result<Outcome, SqlError> {
        let alone = self.status() == TransactionStatus::Idle;
        self.engine.locks.end(self.sql.identity().pid, alone);
        if let (Err(_), Some(presence)) = (&result, &self.presence) {
            presence.end(self.sql.status());
        }
        result
    }

    /// Runs a statement that is a part of another, and cannot wait.
    pub(super) fn run_at_once(
        &mut self,
        context: &mut SqlThreadContext,
        text: &str,
        values: &[Value],
        sink: &mut dyn RowSink,
    ) -> Result<Outcome, SqlError> {
        let before = std::mem::replace(&mut self.at_once, true);
        let result = self.run_sql(context, text, values, sink);
        self.at_once = before;
        result
    }
}
