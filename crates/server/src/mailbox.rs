//! What other threads tell a worker.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use mio::Waker;
use parking_lot::Mutex;

use crate::conns::Gathering;
use crate::shared::Permit;

/// A letter to a worker.
#[derive(Debug)]
pub(crate) enum Letter {
    /// A connection to serve.
    Connection(OwnedFd, Permit),
    /// The end of a statement, or of a gathering.
    Reply(SqlReply),
    /// Events wait for a connection that watches.
    Events(Address),
    /// Somebody asks about all connections.
    Describe {
        /// Where to tell.
        gathering: Arc<Gathering>,
        /// The place to go on from.
        from: usize,
    },
}

/// The reply to a statement.
#[derive(Debug)]
pub(crate) struct SqlReply {
    /// Which connection.
    pub(crate) address: Address,
    /// The whole reply.
    pub(crate) bytes: Vec<u8>,
    /// The statement panicked, which costs the connection.
    pub(crate) panicked: bool,
}

/// A connection of a worker: its place, and its number so that a successor in the same place is not taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) place: usize,
    pub(crate) serial: u64,
}

/// A worker's mailbox. It holds at most two letters for each connection of that worker (a reply, and word of events),
/// and one for each connection anywhere that asks about all of them, so the limit of connections bounds it.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// The letters. Held for a push or a swap; no other lock is taken meanwhile.
    letters: Mutex<Vec<Letter>>,
    waker: Waker,
}

impl Mailbox {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { letters: Mutex::new(Vec::new()), waker }
    }

    /// Leaves a letter and wakes the worker.
    pub(crate) fn send(&self, letter: Letter) {
        self.letters.lock().push(letter);
        self.wake();
    }

    /// Wakes the worker without a letter.
    pub(crate) fn wake(&self) {
        // It can fail only if the counter behind it overflows, and then the worker is awake.
        let _awake = self.waker.wake();
    }

    /// Takes all letters out.
    pub(crate) fn take(&self) -> Vec<Letter> {
        std::mem::take(&mut *self.letters.lock())
    }
}
