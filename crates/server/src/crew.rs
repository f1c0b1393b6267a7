//! The threads that run statements, and their end.
//!
//! A statement hears that it is cancelled between two steps of SQLite's machine. A single call of a function of
//! SQLite's, `LIKE` in a text of many megabytes, say, is one step, however long it takes. So a server that ends waits
//! for these threads for a while only: the arena is whole at every moment, and a stop that never comes would keep the
//! next start from it.

use std::io;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use crate::limits::STATEMENTS_END;

/// Starts a thread.
pub(crate) fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name).spawn(body)
}

/// Waits for a thread's end.
pub(crate) fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread of the server panicked");
    }
}

/// Threads that may be deep in a statement.
#[derive(Debug)]
pub(crate) struct Crew {
    threads: Vec<JoinHandle<()>>,
    /// A copy is held by each thread until it ends.
    alive: Sender<()>,
    /// Disconnected when all copies are gone.
    end: Receiver<()>,
}

impl Crew {
    pub(crate) fn new() -> Self {
        let (alive, end) = bounded(0);
        Self { threads: Vec::new(), alive, end }
    }

    /// Starts one more.
    pub(crate) fn start(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let alive = self.alive.clone();
        self.threads.push(spawn(name, move || {
            run();
            drop(alive);
        })?);
        Ok(())
    }

    /// Waits for those that hear that the server ends, and leaves the others to the end of the process.
    pub(crate) fn end(&mut self) {
        if self.threads.is_empty() {
            return;
        }
        self.alive = bounded(0).0;
        let stuck = self.end.recv_timeout(STATEMENTS_END) == Err(RecvTimeoutError::Timeout);
        if stuck {
            tracing::warn!("a statement is in a function that cannot be stopped; it ends with the process");
        }
        for thread in self.threads.drain(..) {
            if !stuck || thread.is_finished() {
                join(thread);
            }
        }
    }
}
