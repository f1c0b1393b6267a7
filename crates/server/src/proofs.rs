//! The thread that checks the passwords of memcached's clients.
//!
//! The worker knows a password that was right before. Any other takes a millisecond of computing. Clients that try
//! wrong passwords without pause would take the processors from the others. So one thread checks them, at the lowest
//! priority.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use engine::{Cancel, Counter, ThreadContext};

use crate::limits::{PROOF_NICENESS, PROOF_QUEUE};
use crate::mailbox::{Address, Mailbox, Message, SqlReply};
use crate::password::{self, Shown};

/// A password on its way from a connection to the thread.
#[derive(Debug)]
pub(crate) struct Proof {
    address: Address,
    mailbox: Arc<Mailbox>,
    shown: Shown,
    cancel: Cancel,
}

/// The workers' end of the queue.
#[derive(Clone, Debug)]
pub(crate) struct Proofs(Sender<Proof>);

impl Proof {
    pub(crate) fn new(address: Address, mailbox: Arc<Mailbox>, shown: Shown) -> Self {
        Self { address, mailbox, shown, cancel: Cancel::new() }
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

/// Checks passwords until the last worker is gone.
pub(crate) fn run(mut context: ThreadContext, queue: &Receiver<Proof>) {
    // To Linux this is the calling thread alone. A system that refuses lets it compete as an equal.
    let _refused = rustix::process::setpriority_process(None, PROOF_NICENESS);
    for proof in queue {
        // A connection that is gone, or had to make room, waits for nothing.
        if !proof.cancel.is_canceled() {
            check(&mut context, proof);
        }
    }
}

fn check(context: &mut ThreadContext, proof: Proof) {
    let Proof { address, mailbox, shown, .. } = proof;
    context.begin_batch();
    let (engine, now) = (context.engine(), context.now());
    let mut bytes = Vec::new();
    let verdict = catch_unwind(AssertUnwindSafe(|| password::verdict(engine, &shown, now, &mut bytes))).ok();
    let panicked = verdict.is_none();
    if panicked {
        context.count(Counter::Panics, 1);
    }
    mailbox.send(Message::Reply(SqlReply { address, bytes, panicked, verdict }));
}
