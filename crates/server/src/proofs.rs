//! The threads that check the passwords of clients.
//!
//! A listener knows a password that was right before. Any other takes a millisecond of computing. Clients that try
//! wrong passwords without pause would take the processors from the others. So one thread checks them, and only where a
//! processor is idle.
//!
//! On a machine that is never idle that thread gets a thousandth of a processor, and a login took longer than its
//! client waits. So another thread, as good as all others, checks what the first has not answered soon. It rests long
//! enough between two passwords that a flood of them takes little.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use engine::auth::Refusal;
use engine::{Cancel, Counter, ThreadContext};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

use crate::limits::{PROOF_QUEUE, PROOF_REST, PROOF_REST_MAX, PROOF_REST_SHARE};
use crate::mailbox::{Address, Mailbox, Message, SqlReply};
use crate::password::{self, RolePassword, Shown};
use crate::sql_listener::SqlCall;

/// A password on its way from a connection to the threads.
#[derive(Debug)]
pub(crate) struct Proof {
    of: Of,
    cancel: Cancel,
    /// One of the threads answers.
    answered: AtomicBool,
}

/// Whose password it is, and who waits for what becomes of it.
#[derive(Debug)]
enum Of {
    /// A memcached client's, and the mailbox of its worker.
    Memcached(Address, Arc<Mailbox>, Shown),
    /// That of a PostgreSQL client before its session, which the acceptor knows by a token.
    Sql(u64, Arc<SqlCall>, RolePassword),
}

/// The listeners' end of the queues.
#[derive(Clone, Debug)]
pub(crate) struct Proofs {
    idle: Sender<Arc<Proof>>,
    late: Sender<Arc<Proof>>,
    /// Nothing is sent here: it ends with the last listener.
    _open: Sender<()>,
}

/// The threads' end of the queues.
#[derive(Debug)]
pub(crate) struct Queues {
    pub(crate) idle: Receiver<Arc<Proof>>,
    pub(crate) late: Receiver<Arc<Proof>>,
    pub(crate) end: Receiver<()>,
}

impl Proof {
    pub(crate) fn of_memcached(address: Address, mailbox: Arc<Mailbox>, shown: Shown) -> Self {
        Self::new(Of::Memcached(address, mailbox, shown))
    }

    pub(crate) fn of_sql(token: u64, call: Arc<SqlCall>, shown: RolePassword) -> Self {
        Self::new(Of::Sql(token, call, shown))
    }

    fn new(of: Of) -> Self {
        Self { of, cancel: Cancel::new(), answered: AtomicBool::new(false) }
    }

    /// Whether there is nothing to do: a connection that is gone, or had to make room, waits for nothing.
    fn is_settled(&self) -> bool {
        // Relaxed: who sees it too late computes for nothing, and `claim` decides.
        self.cancel.is_canceled() || self.answered.load(Ordering::Relaxed)
    }

    /// Whether the caller is the one who answers.
    fn claim(&self) -> bool {
        // Relaxed: only that one of the two sees false. Nothing is handed over.
        !self.answered.swap(true, Ordering::Relaxed)
    }

    fn check(&self, context: &mut ThreadContext) {
        context.begin_batch();
        match &self.of {
            Of::Memcached(address, mailbox, shown) => self.check_memcached(context, *address, mailbox, shown),
            Of::Sql(token, call, shown) => self.check_sql(context, *token, call, shown),
        }
    }

    fn check_memcached(
        &self,
        context: &mut ThreadContext,
        address: Address,
        mailbox: &Mailbox,
        shown: &Shown,
    ) {
        let (engine, now) = (context.engine(), context.now());
        let who = catch_unwind(AssertUnwindSafe(|| password::proved(engine, shown)));
        if !self.claim() {
            return;
        }
        let mut bytes = Vec::new();
        let mut answer = |who| password::verdict(engine, shown, who, now, &mut bytes);
        let verdict = who.and_then(|who| catch_unwind(AssertUnwindSafe(|| answer(who)))).ok();
        let panicked = verdict.is_none();
        if panicked {
            context.count(Counter::Panics, 1);
        }
        mailbox.send(Message::Reply(SqlReply { address, bytes, panicked, verdict }));
    }

    fn check_sql(&self, context: &mut ThreadContext, token: u64, call: &SqlCall, shown: &RolePassword) {
        let access = &context.engine().access;
        let found = catch_unwind(AssertUnwindSafe(|| access.check_password(&shown.role, &shown.password)));
        if !self.claim() {
            return;
        }
        let verdict = found.unwrap_or_else(|_| {
            context.count(Counter::Panics, 1);
            Err(Refusal::Proof)
        });
        call.tell(token, verdict);
    }
}

impl Proofs {
    pub(crate) fn queue() -> (Self, Queues) {
        let (idle, to_idle) = bounded(PROOF_QUEUE);
        let (late, to_late) = bounded(PROOF_QUEUE);
        let (open, end) = bounded(0);
        (Self { idle, late, _open: open }, Queues { idle: to_idle, late: to_late, end })
    }

    /// Puts a password into the queues: what forgets it. `Break` when they are full.
    pub(crate) fn submit(&self, proof: Proof) -> ControlFlow<(), Cancel> {
        let (cancel, proof) = (proof.cancel.clone(), Arc::new(proof));
        if self.idle.try_send(Arc::clone(&proof)).is_err() {
            return ControlFlow::Break(());
        }
        // One that finds no room here was overtaken by many that were answered soon, as it will be.
        let _full = self.late.try_send(proof);
        ControlFlow::Continue(cancel)
    }
}

/// Checks passwords where a processor is idle, until the last listener is gone.
pub(crate) fn run(mut context: ThreadContext, queue: &Receiver<Arc<Proof>>) {
    // Whoever wakes up takes its processor at once, and is placed as if that were idle: beside a thread of the least
    // priority a worker waited a millisecond longer. A system that refuses lets it compete as an equal.
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let _refused = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
    for proof in queue {
        if !proof.is_settled() {
            proof.check(&mut context);
        }
    }
}

/// Checks passwords that wait because no processor is idle, until the last listener is gone.
pub(crate) fn run_late(mut context: ThreadContext, queue: &Receiver<Arc<Proof>>, end: &Receiver<()>) {
    let mut rest = PROOF_REST;
    for proof in queue {
        if proof.is_settled() {
            continue;
        }
        if end.recv_timeout(rest) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        if proof.is_settled() {
            continue;
        }
        let begin = context.engine().store().clock().precise_ns();
        proof.check(&mut context);
        let took = context.engine().store().clock().precise_ns().saturating_sub(begin);
        rest = (Duration::from_nanos(took) * PROOF_REST_SHARE).clamp(PROOF_REST, PROOF_REST_MAX);
    }
}
