//! A SQL session: what a client of a door with sessions of its own has between two statements.
//!
//! Prepared statements, portals and cursors, settings, the open transaction. Any SQL thread can serve any session,
//! one at a time: what belongs to the thread is its [`SqlSeat`], what belongs to the client is here.

mod portal;
mod prepared;
mod rows;
mod seat;
mod split;

use std::sync::Arc;

use sql::{Cancel, Done, DoneKind, Identity, RowSink, SqlError, TransactionStatus};
use store::value::Value;

pub use portal::{Formats, Portal};
use portal::{Portals, State};
use prepared::{Body, Statements};
pub use prepared::{Prepared, ResultColumn};
use rows::Rows;
pub use rows::too_large as result_too_large;
pub use seat::SqlSeat;

use crate::activity::{Counted, Presence};
use crate::counters::Counter;
use crate::engine::Engine;
use crate::privilege::Command;
use crate::session::Session;

/// What a statement ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done: its tag, and a count where the tag has one.
    Complete {
        /// PostgreSQL's words for it.
        tag: &'static str,
        /// Rows given or changed.
        count: Option<u64>,
    },
    /// There are more rows.
    Suspended,
    /// There was no statement.
    Empty,
}

/// A client's session.
#[derive(Debug)]
pub struct SqlSession {
    session: Session,
    sql: sql::Session,
    statements: Statements,
    portals: Portals,
    cancel: Cancel,
    /// What others see of it; none for a session that nobody introduced.
    presence: Option<Presence>,
}

impl SqlSession {
    /// A session of somebody on this machine.
    pub fn local() -> Self {
        Self {
            session: Session::local(),
            sql: sql::Session::new(),
            statements: Statements::default(),
            portals: Portals::default(),
            cancel: Cancel::new(),
            presence: None,
        }
    }

    /// Says who speaks, how the client calls itself, and from where; others see the session from now on.
    pub fn introduce(
        &mut self,
        engine: &Arc<Engine>,
        identity: Identity,
        application: &str,
        address: Option<String>,
    ) {
        self.sql.set_identity(identity.clone());
        self.presence = Some(Presence::new(engine, identity, application.to_owned(), address));
    }

    /// What stops its statement.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Whether it is in a transaction.
    pub fn status(&self) -> TransactionStatus {
        self.sql.status()
    }

    /// What its statements had to say beside their answers.
    pub fn take_notices(&mut self) -> Vec<sql::Notice> {
        self.sql.take_notices()
    }

    /// Prepares a statement under a name; the empty name is taken again and again. `types` are those parameters'
    /// types that the client chose, by their numbers.
    pub fn parse(
        &mut self,
        seat: &mut SqlSeat,
        name: &str,
        text: &str,
        types: impl Iterator<Item = u32>,
    ) -> Result<(), SqlError> {
        let result = self.prepare(seat, text, types).and_then(|prepared| self.statements.put(name, prepared));
        counted(seat, result)
    }

    /// A prepared statement.
    pub fn prepared(&self, name: &str) -> Result<&Arc<Prepared>, SqlError> {
        self.statements.get(name)
    }

    /// Makes a portal of a prepared statement and values for its parameters.
    pub fn bind(
        &mut self,
        portal: &str,
        prepared: Arc<Prepared>,
        values: Vec<Value>,
        formats: Formats,
    ) -> Result<(), SqlError> {
        self.portals.put(portal, Portal::new(prepared, values, formats))
    }

    /// A portal.
    pub fn portal(&self, name: &str) -> Result<&Portal, SqlError> {
        self.portals.get(name)
    }

    /// An emptied list for the values of the next portal.
    #[inline]
    pub fn recycled_values(&mut self) -> Vec<Value> {
        self.portals.recycled_values()
    }

    /// Runs a portal, up to so many rows; 0 is all.
    #[inline]
    pub fn execute(
        &mut self,
        seat: &mut SqlSeat,
        name: &str,
        max_rows: u32,
        sink: &mut dyn RowSink,
    ) -> Result<Outcome, SqlError> {
        let mut portal = self.portals.take(name)?;
        let result = self.run_portal(seat, &mut portal, max_rows, sink);
        self.portals.give_back(name, portal);
        counted(seat, result)
    }

    /// Runs one statement as text, without parameters.
    pub fn run_text(
        &mut self,
        seat: &mut SqlSeat,
        text: &str,
        sink: &mut dyn RowSink,
    ) -> Result<Outcome, SqlError> {
        let result = self.run_sql(seat, text, &[], sink);
        counted(seat, result)
    }

    /// The client has ended a group of requests: outside a transaction its portals end with it.
    #[inline]
    pub fn sync(&mut self) {
        if self.sql.status() == TransactionStatus::Idle {
            self.portals.clear();
        }
    }

    /// Forgets a prepared statement; one that does not exist is forgotten already.
    pub fn close_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// Forgets a portal.
    pub fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    fn prepare(
        &mut self,
        seat: &mut SqlSeat,
        text: &str,
        types: impl Iterator<Item = u32>,
    ) -> Result<Prepared, SqlError> {
        let text = split::single(text)?;
        if text.is_empty() {
            return Ok(Prepared::empty());
        }
        let chosen = prepared::chosen_types(types)?;
        let description = seat.executor()?.describe(&self.sql, text, &chosen)?;
        Ok(Prepared::new(text, description))
    }

    #[inline]
    fn run_portal(
        &mut self,
        seat: &mut SqlSeat,
        portal: &mut Portal,
        max_rows: u32,
        sink: &mut dyn RowSink,
    ) -> Result<Outcome, SqlError> {
        match portal.state {
            State::Fresh if max_rows == 0 || portal.prepared.columns().is_none() => {
                portal.state = State::Ended;
                match portal.prepared.body() {
                    Body::Empty => Ok(Outcome::Empty),
                    Body::Sql => self.run_sql(seat, portal.prepared.text(), &portal.values, sink),
                }
            }
            State::Fresh => {
                let mut rows = Rows::new(seat.lane().engine().options().result_size_max);
                self.run_sql(seat, portal.prepared.text(), &portal.values, &mut rows)?;
                portal.state = State::Rows { rows, next: 0 };
                portal.replay(max_rows, sink)
            }
            State::Rows { .. } => portal.replay(max_rows, sink),
            State::Ended => portal.again(),
        }
    }

    /// Runs a statement: the gate for all of them.
    #[inline]
    fn run_sql(
        &mut self,
        seat: &mut SqlSeat,
        text: &str,
        values: &[Value],
        sink: &mut dyn RowSink,
    ) -> Result<Outcome, SqlError> {
        seat.lane().count(Counter::CmdSql, 1);
        if self.session.allow(Command::Sql).is_err() {
            return Err(SqlError::new("42501", "permission denied"));
        }
        self.cancel.reset();
        let counted = seat.lane_mut().statement(text);
        if let Some(presence) = &self.presence {
            presence.begin(&counted);
        }
        let done = self.run_counted(seat, &counted, text, values, sink);
        if let Some(presence) = &self.presence {
            presence.end(self.sql.status());
        }
        done.map(outcome)
    }

    #[inline]
    fn run_counted(
        &mut self,
        seat: &mut SqlSeat,
        counted: &Counted,
        text: &str,
        values: &[Value],
        sink: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let (lane, executor) = seat.tools()?;
        counted.run(&lane.engine().store, executor, text, |executor| {
            executor.execute(&mut self.sql, text, values, &self.cancel, sink)
        })
    }
}

fn counted<T>(seat: &SqlSeat, result: Result<T, SqlError>) -> Result<T, SqlError> {
    if result.is_err() {
        seat.lane().count(Counter::SqlErrors, 1);
    }
    result
}

/// The outcome as clients are told it.
#[inline]
fn outcome(done: Done) -> Outcome {
    if done.tag.is_empty() {
        return Outcome::Empty;
    }
    let counted = matches!(done.kind, DoneKind::Rows) && done.tag != "EXPLAIN"
        || matches!(done.tag, "SELECT" | "INSERT" | "UPDATE" | "DELETE");
    Outcome::Complete { tag: done.tag, count: counted.then_some(done.affected) }
}
