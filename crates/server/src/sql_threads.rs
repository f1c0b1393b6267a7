//! Threads that run SQL statements, so that no worker waits for one.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use engine::{Cancel, Counter, Executor, Finished, Lane, Session, SqlError};
use memcache::compose::sql_error;

use crate::mailbox::{Address, Letter, Mailbox, SqlReply};
use crate::reply::write_finished;
use crate::shared::Shared;

/// A statement on its way from a connection to a SQL thread.
#[derive(Debug)]
pub(crate) struct Statement {
    address: Address,
    session: Session,
    mailbox: Arc<Mailbox>,
    text: Vec<u8>,
    parameters: Option<Vec<u8>>,
    cancel: Cancel,
}

/// The workers' end of the queue.
#[derive(Clone, Debug)]
pub(crate) struct Statements {
    queue: Sender<Statement>,
}

impl Statement {
    pub(crate) fn new(
        address: Address,
        session: Session,
        mailbox: Arc<Mailbox>,
        text: &[u8],
        parameters: Option<&[u8]>,
    ) -> Self {
        let parameters = parameters.map(<[u8]>::to_vec);
        Self { address, session, mailbox, text: text.to_vec(), parameters, cancel: Cancel::new() }
    }

    /// What stops it.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

impl Statements {
    /// The two ends of a queue that holds `length` statements.
    pub(crate) fn queue(length: usize) -> (Self, Receiver<Statement>) {
        let (sender, receiver) = bounded(length);
        (Self { queue: sender }, receiver)
    }

    /// Puts a statement into the queue; `Break` when it is full.
    pub(crate) fn submit(&self, statement: Statement) -> ControlFlow<()> {
        match self.queue.try_send(statement) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Runs statements until the queue's other ends are gone.
pub(crate) fn run(shared: &Arc<Shared>, queue: &Receiver<Statement>) {
    let mut thread = SqlThread { lane: shared.engine.lane(), executor: None, timeout: None };
    for statement in queue {
        thread.lane.begin_batch();
        let timeout = shared.statement_timeout();
        let reply = catch_unwind(AssertUnwindSafe(|| thread.execute(&statement, timeout)));
        let panicked = reply.is_err();
        let bytes = reply.unwrap_or_else(|_| thread.apologise());
        let reply = SqlReply { address: statement.address, bytes, panicked };
        statement.mailbox.send(Letter::Reply(reply));
    }
}

/// What a SQL thread keeps from statement to statement.
struct SqlThread {
    lane: Lane,
    /// None before the first statement, and after one that panicked: what it left behind is not trusted.
    executor: Option<Executor>,
    /// The timeout that the executor was made with.
    timeout: Option<Duration>,
}

impl SqlThread {
    /// The whole reply to a statement.
    fn execute(&mut self, statement: &Statement, timeout: Option<Duration>) -> Vec<u8> {
        let mut out = Vec::new();
        let finished = match self.renew_executor(timeout) {
            Ok(()) => self.run(statement, &mut out),
            Err(error) => Finished::Failed(error),
        };
        write_finished(&finished, &mut out);
        out
    }

    fn run(&mut self, statement: &Statement, out: &mut Vec<u8>) -> Finished {
        let Statement { session, text, parameters, cancel, .. } = statement;
        let executor = self.executor.as_mut().expect("renew_executor made one");
        session.sql(&mut self.lane, executor, text, parameters.as_deref(), cancel, out)
    }

    /// Makes an executor, unless there is one that has the same settings.
    fn renew_executor(&mut self, timeout: Option<Duration>) -> Result<(), SqlError> {
        if self.executor.is_none() || self.timeout != timeout {
            self.executor = Some(self.lane.engine().executor(timeout)?);
            self.timeout = timeout;
        }
        Ok(())
    }

    #[cold]
    fn apologise(&mut self) -> Vec<u8> {
        self.lane.count(Counter::Panics, 1);
        self.executor = None;
        let mut bytes = Vec::new();
        sql_error("XX000", "internal error", &mut bytes);
        bytes
    }
}
