//! The thread that checks the passwords of clients.
//!
//! A listener knows a password that was right before. Any other takes a millisecond of computing. Clients that try
//! wrong passwords without pause would take the processors from the others. So one thread checks them, and only where a
//! processor is idle.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use engine::auth::Refusal;
use engine::{Cancel, Counter, ThreadContext};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

use crate::limits::PROOF_QUEUE;
use crate::mailbox::{Address, Mailbox, Message, SqlReply};
use crate::password::{self, RolePassword, Shown};
use crate::sql_listener::SqlCall;

/// A password on its way from a connection to the thread.
#[derive(Debug)]
pub(crate) struct Proof {
    of: Of,
    cancel: Cancel,
}

/// Whose password it is, and who waits for what becomes of it.
#[derive(Debug)]
enum Of {
    /// A memcached client's, and the mailbox of its worker.
    Memcached(Address, Arc<Mailbox>, Shown),
    /// That of a PostgreSQL client before its session, which the acceptor knows by a token.
    Sql(u64, Arc<SqlCall>, RolePassword),
}

/// The listeners' end of the queue.
#[derive(Clone, Debug)]
pub(crate) struct Proofs(Sender<Proof>);

impl Proof {
    pub(crate) fn of_memcached(address: Address, mailbox: Arc<Mailbox>, shown: Shown) -> Self {
        Self { of: Of::Memcached(address, mailbox, shown), cancel: Cancel::new() }
    }

    pub(crate) fn of_sql(token: u64, call: Arc<SqlCall>, shown: RolePassword) -> Self {
        Self { of: Of::Sql(token, call, shown), cancel: Cancel::new() }
    }
}

impl Proofs {
    pub(crate) fn queue() -> (Self, Receiver<Proof>) {
        let (sender, receiver) = bounded(PROOF_QUEUE);
        (Self(sender), receiver)
    }

    /// Puts a password into the queue: what forgets it. `Break` when the queue is full.
    pub(crate) fn submit(&self, proof: Proof) -> ControlFlow<(), Cancel> {
        let cancel = proof.cancel.clone();
        match self.0.try_send(proof) {
            Ok(()) => ControlFlow::Continue(cancel),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Checks passwords until the last listener is gone.
pub(crate) fn run(mut context: ThreadContext, queue: &Receiver<Proof>) {
    // Whoever wakes up takes its processor at once, and is placed as if that were idle: beside a thread of the least
    // priority a worker waited a millisecond longer. A system that refuses lets it compete as an equal.
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let _refused = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
    for proof in queue {
        // A connection that is gone, or had to make room, waits for nothing.
        if proof.cancel.is_canceled() {
            continue;
        }
        context.begin_batch();
        match proof.of {
            Of::Memcached(address, mailbox, shown) => {
                check_memcached(&mut context, address, &mailbox, &shown);
            }
            Of::Sql(token, call, shown) => check_sql(&mut context, token, &call, &shown),
        }
    }
}

fn check_memcached(context: &mut ThreadContext, address: Address, mailbox: &Mailbox, shown: &Shown) {
    let (engine, now) = (context.engine(), context.now());
    let mut bytes = Vec::new();
    let verdict = catch_unwind(AssertUnwindSafe(|| password::verdict(engine, shown, now, &mut bytes))).ok();
    let panicked = verdict.is_none();
    if panicked {
        context.count(Counter::Panics, 1);
    }
    mailbox.send(Message::Reply(SqlReply { address, bytes, panicked, verdict }));
}

fn check_sql(context: &mut ThreadContext, token: u64, call: &SqlCall, shown: &RolePassword) {
    let access = &context.engine().access;
    let found = catch_unwind(AssertUnwindSafe(|| access.check_password(&shown.role, &shown.password)));
    let verdict = found.unwrap_or_else(|_| {
        context.count(Counter::Panics, 1);
        Err(Refusal::Proof)
    });
    call.tell(token, verdict);
}
