//! Threads that run SQL: the PostgreSQL listener's connections, and the statements of memcached clients, so that no
//! worker waits for one.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use engine::{
    Asked, Cancel, Counter, Finished, JsonStatement, Session, SqlError, SqlSession, SqlThreadContext,
};
use memcache::compose::sql_error;
use rustix::io::Errno;
use tokio::sync::oneshot;

use crate::limits::{EVENTS_PER_SQL_WAIT, HTTP_RESULT_BYTES_MAX};
use crate::mailbox::{Address, Mailbox, Message, SqlReply};
use crate::reply::write_finished;
use crate::shared::Shared;
use crate::sql_listener::{self, SqlListener, SqlRequestLoop, Wake};

/// A statement on its way from a connection to a SQL thread.
#[derive(Debug)]
pub(crate) struct Statement {
    address: Address,
    session: Session,
    mailbox: Arc<Mailbox>,
    text: Text,
    cancel: Cancel,
}

/// What a statement says.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) statement: Vec<u8>,
    /// As JSON.
    pub(crate) parameters: Option<Vec<u8>>,
    /// It is the name of a function or procedure, to which the parameters go.
    pub(crate) calls: bool,
}

/// A statement of an HTTP client: with a session of its own, and somebody who waits for the answer.
#[derive(Debug)]
pub(crate) struct JsonWork {
    pub(crate) session: SqlSession,
    pub(crate) statement: JsonStatement,
    pub(crate) reply: oneshot::Sender<Result<Vec<u8>, SqlError>>,
}

/// What waits for a SQL thread.
#[derive(Debug)]
pub(crate) enum Work {
    /// Of a memcached client.
    Memcached(Statement),
    /// Of an HTTP client.
    Json(Box<JsonWork>),
}

/// The workers' end of the queue.
#[derive(Clone, Debug)]
pub(crate) struct Statements {
    queue: Sender<Work>,
    listener: Arc<SqlListener>,
}

impl Statement {
    pub(crate) fn new(address: Address, session: Session, mailbox: Arc<Mailbox>, text: Text) -> Self {
        Self { address, session, mailbox, text, cancel: Cancel::new() }
    }

    /// What stops it.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

impl Statements {
    /// The two ends of a queue that holds `length` statements. The listener's threads take them out.
    pub(crate) fn queue(length: usize, listener: Arc<SqlListener>) -> (Self, Receiver<Work>) {
        let (sender, receiver) = bounded(length);
        (Self { queue: sender, listener }, receiver)
    }

    /// Puts a statement into the queue; `Break` when it is full.
    pub(crate) fn submit(&self, statement: Statement) -> ControlFlow<()> {
        self.send(Work::Memcached(statement))
    }

    /// The same of an HTTP client.
    pub(crate) fn submit_json(&self, work: JsonWork) -> ControlFlow<()> {
        self.send(Work::Json(Box::new(work)))
    }

    fn send(&self, work: Work) -> ControlFlow<()> {
        match self.queue.try_send(work) {
            Ok(()) => {
                self.listener.call();
                ControlFlow::Continue(())
            }
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Serves until the server stops. What was queued is done before.
pub(crate) fn run(shared: &Arc<Shared>, listener: &Arc<SqlListener>, queue: &Receiver<Work>) {
    let mut thread = SqlThread {
        shared,
        listener,
        queue,
        requests: SqlRequestLoop::new(SqlThreadContext::new(shared.engine.context())),
    };
    let mut events = Vec::with_capacity(EVENTS_PER_SQL_WAIT);
    listener.permits.take();
    loop {
        match listener.wait(&mut events) {
            Ok(Some(Wake::Connection { place, half_closed, hung_up })) => {
                if half_closed {
                    listener.note_half_closed(place);
                }
                thread.requests.context.set_timeout(shared.statement_timeout());
                sql_listener::serve(listener, &mut thread.requests, place, hung_up);
            }
            Ok(Some(Wake::Call)) => thread.answer_call(),
            Ok(None) => {}
            Err(error) if error.raw_os_error() == Some(Errno::INTR.raw_os_error()) => {}
            Err(error) => {
                // Only a descriptor or an address that is wrong can cause this: our own mistake.
                tracing::error!(%error, "SQL thread cannot wait for events");
                return;
            }
        }
        if shared.is_stopping() && queue.is_empty() {
            // The call that woke this thread was one for all.
            return listener.call();
        }
        listener.permits.yield_if_crowded();
    }
}

/// What a SQL thread works with.
struct SqlThread<'t> {
    shared: &'t Arc<Shared>,
    listener: &'t Arc<SqlListener>,
    queue: &'t Receiver<Work>,
    requests: SqlRequestLoop,
}

impl SqlThread<'_> {
    /// Takes one statement, or one connection that waits for a turn. A call may stand for several, so another thread
    /// is called before the work begins when there is more.
    fn answer_call(&mut self) {
        self.requests.context.set_timeout(self.shared.statement_timeout());
        if let Ok(work) = self.queue.try_recv() {
            if !self.queue.is_empty() || self.listener.has_again() {
                self.listener.call();
            }
            match work {
                Work::Memcached(statement) => self.answer(&statement),
                Work::Json(work) => self.answer_json(*work),
            }
        } else if let Some(place) = self.listener.next_again() {
            if self.listener.has_again() {
                self.listener.call();
            }
            sql_listener::serve(self.listener, &mut self.requests, place, false);
        }
    }

    fn answer(&mut self, statement: &Statement) {
        self.requests.context.context_mut().begin_batch();
        let reply = catch_unwind(AssertUnwindSafe(|| self.execute(statement)));
        let panicked = reply.is_err();
        let bytes = reply.unwrap_or_else(|_| self.apologise());
        let reply = SqlReply { address: statement.address, bytes, panicked, verdict: None };
        let mailbox = Arc::clone(&statement.mailbox);
        match self.requests.context.context_mut().take_receipt() {
            None => mailbox.send(Message::Reply(reply)),
            // Other caches are told of it. No thread waits for that.
            Some(receipt) => receipt.when_over(move |heard| {
                mailbox.send(Message::Reply(SqlReply { bytes: unless_unheard(heard, reply.bytes), ..reply }));
            }),
        }
    }

    /// Runs a statement of an HTTP client, unless the client is gone.
    fn answer_json(&mut self, work: JsonWork) {
        let JsonWork { mut session, statement, reply } = work;
        if reply.is_closed() {
            return;
        }
        let context = &mut self.requests.context;
        context.context_mut().begin_batch();
        let run = || session.run_as_json(context, &statement, HTTP_RESULT_BYTES_MAX);
        let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
            self.apologise();
            Err(SqlError::new("XX000", "internal error"))
        });
        session.when_heard(move |heard| {
            let result = result.and_then(|bytes| heard.map(|()| bytes));
            // Its connection may have closed meanwhile.
            let _gone = reply.send(result);
        });
    }

    /// The whole reply to a statement.
    fn execute(&mut self, statement: &Statement) -> Vec<u8> {
        let mut out = Vec::new();
        let Statement { session, cancel, text: Text { statement: text, parameters, calls }, .. } = statement;
        let parameters = parameters.as_deref();
        let asked = if *calls { Asked::Call(text) } else { Asked::Statement(text) };
        let finished = match self.requests.context.tools() {
            Ok((context, executor)) => session.sql(context, executor, asked, parameters, cancel, &mut out),
            Err(error) => Finished::Failed(error),
        };
        write_finished(&finished, &mut out);
        out
    }

    #[cold]
    fn apologise(&mut self) -> Vec<u8> {
        self.requests.context.context().count(Counter::Panics, 1);
        self.requests.context.distrust();
        let mut bytes = Vec::new();
        sql_error("XX000", "internal error", &mut bytes);
        bytes
    }
}

/// The reply to a statement, or the error of a bus that did not hear of it.
fn unless_unheard(heard: Result<(), SqlError>, reply: Vec<u8>) -> Vec<u8> {
    let Err(error) = heard else { return reply };
    let mut bytes = Vec::new();
    write_finished(&Finished::Failed(error), &mut bytes);
    bytes
}
