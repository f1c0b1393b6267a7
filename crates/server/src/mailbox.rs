//! What other threads tell a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mio::Waker;
use parking_lot::Mutex;

use crate::connection::Newcomer;
use crate::limits::CONNS_BYTES_MAX;
use crate::password::Verdict;

/// A message to a worker.
#[derive(Debug)]
pub(crate) enum Message {
    /// A connection to serve.
    Connection(Box<Newcomer>),
    /// The end of a statement, or of a gathering.
    Reply(SqlReply),
    /// Events wait for a connection that watches.
    Events(Address),
    /// The rows that a connection waits for have come from their source.
    Arrived(Address),
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
    /// It was no statement but a password.
    pub(crate) verdict: Option<Verdict>,
}

/// A connection of a worker: its place, and its number so that a successor in the same place is not taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) place: usize,
    pub(crate) serial: u64,
}

/// A worker's mailbox. It holds at most three messages for each connection of that worker (a reply, word of events
/// and of rows), and one for each connection anywhere that asks about all of them, so the limit of connections bounds
/// it.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// The messages. Held for a push or a swap; no other lock is taken meanwhile.
    messages: Mutex<Vec<Message>>,
    waker: Waker,
}

impl Mailbox {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { messages: Mutex::new(Vec::new()), waker }
    }

    /// Leaves a message and wakes the worker.
    pub(crate) fn send(&self, message: Message) {
        self.messages.lock().push(message);
        self.wake();
    }

    /// Wakes the worker without a message.
    pub(crate) fn wake(&self) {
        // It can fail only if the counter behind it overflows, and then the worker is awake.
        let _awake = self.waker.wake();
    }

    /// Takes all messages out.
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock())
    }
}

/// `stats conns` under way. Workers own their connections for good, so each is asked for its own, and reports some at a
/// time; the last one answers.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Who asked, and its worker.
    address: Address,
    mailbox: Arc<Mailbox>,
    /// Workers that have not told everything yet. AcqRel: the last sees what the others wrote; the text's lock orders
    /// it anyway.
    left: AtomicUsize,
    /// Taken for an append.
    text: Mutex<String>,
}

impl Gathering {
    /// Asks all workers.
    pub(crate) fn begin(address: Address, mailbox: &Arc<Mailbox>, workers: &[Arc<Mailbox>]) {
        let gathering = Arc::new(Self {
            address,
            mailbox: Arc::clone(mailbox),
            left: AtomicUsize::new(workers.len()),
            text: Mutex::default(),
        });
        for worker in workers {
            worker.send(Message::Describe { gathering: Arc::clone(&gathering), from: 0 });
        }
    }

    /// Takes in a worker's report of some connections.
    pub(crate) fn add(&self, lines: &str) {
        let mut text = self.text.lock();
        if text.len() + lines.len() <= CONNS_BYTES_MAX {
            text.push_str(lines);
        }
    }

    /// A worker has told everything.
    pub(crate) fn finish(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let mut bytes = std::mem::take(&mut *self.text.lock()).into_bytes();
        bytes.extend_from_slice(b"END\r\n");
        self.mailbox.send(Message::Reply(SqlReply {
            address: self.address,
            bytes,
            panicked: false,
            verdict: None,
        }));
    }
}
