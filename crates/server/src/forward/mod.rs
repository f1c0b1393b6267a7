//! Forwarded sessions: connections to clients whose database is a foreign server, each with one to that server.
//!
//! ```text
//!   PostgreSQL acceptor: the client is let in, and names a server
//!        v
//!   openers: connect to the source, which may take its time
//!        v
//!   workers: each waits for its own sessions, both sides of them, and never for one of them
//! ```
//!
//! What a session does with bytes is the crate `forward`'s. No thread runs before the first such client comes.

mod open;
mod session;
mod worker;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use forward::Forwards;
use parking_lot::Mutex;

use crate::cancels::Target;
use crate::crew::{join, spawn};
use crate::limits::{FORWARD_OPENERS, FORWARD_OPENINGS_WAITING};
use crate::shared::Shared;

pub(crate) use open::{Request, server_of};
use session::Forwarded;
use worker::{Mailbox, Worker};

/// What may block, for an opener.
#[derive(Debug)]
enum Job {
    Open(Box<Request>),
    Cancel(Arc<Target>),
}

/// The threads of forwarded sessions.
#[derive(Debug)]
pub(crate) struct Forwarder {
    shared: Arc<Shared>,
    forwards: Arc<Forwards>,
    /// How many workers there are, once there are any.
    count: usize,
    running: Mutex<Running>,
    /// The next session goes to the worker behind that of the last.
    next: AtomicUsize,
    closing: AtomicBool,
}

#[derive(Debug, Default)]
struct Running {
    jobs: Option<Sender<Job>>,
    mailboxes: Vec<Arc<Mailbox>>,
    threads: Vec<JoinHandle<()>>,
    /// A copy is held by each worker until it ends.
    alive: Option<Sender<()>>,
}

impl Forwarder {
    /// None of its threads runs yet. `alive` is dropped when the last of them has ended.
    pub(crate) fn new(
        shared: Arc<Shared>,
        forwards: Arc<Forwards>,
        count: usize,
        alive: Sender<()>,
    ) -> Arc<Self> {
        let running = Mutex::new(Running { alive: Some(alive), ..Running::default() });
        Arc::new(Self {
            shared,
            forwards,
            count,
            running,
            next: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
        })
    }

    /// Begins a session for a client that was let in. It hears of every failure itself.
    pub(crate) fn open(self: &Arc<Self>, request: Box<Request>) {
        match self.jobs() {
            Ok(jobs) => {
                let full = jobs.try_send(Job::Open(request)).err().map(TrySendError::into_inner);
                if let Some(Job::Open(request)) = full {
                    request.refuse("53300", "too many sessions are being opened at the server; try again");
                }
            }
            Err(error) => request.refuse("53000", &format!("no thread for a forwarded session: {error}")),
        }
    }

    /// Has a source end the statement of a session. What its client has sent before that is forwarded first: a source
    /// that has not got the statement cancels nothing.
    pub(crate) fn cancel(&self, target: &Arc<Target>) {
        let mailboxes = self.running.lock().mailboxes.clone();
        for mailbox in mailboxes {
            mailbox.cancel(Arc::clone(target));
        }
    }

    /// Asks the source itself.
    fn cancel_there(&self, target: Arc<Target>) {
        if let Some(jobs) = &self.running.lock().jobs {
            // Whoever asks for it gets no answer in any case.
            let _full = jobs.try_send(Job::Cancel(target));
        }
    }

    /// Starts the threads with the first job.
    fn jobs(self: &Arc<Self>) -> io::Result<Sender<Job>> {
        let mut running = self.running.lock();
        if let Some(jobs) = &running.jobs {
            return Ok(jobs.clone());
        }
        if self.is_closing() {
            return Err(io::Error::other("the server stops"));
        }
        for number in 0..self.count {
            let mailbox = Arc::new(Mailbox::new()?);
            let (own, mail, alive) = (Arc::clone(self), Arc::clone(&mailbox), running.alive.clone());
            running.threads.push(spawn(format!("forward-{number}"), move || {
                // A worker's statements belong to its thread.
                match Worker::new(own, mail) {
                    Ok(worker) => worker.run(),
                    Err(error) => tracing::error!(%error, "forwarded sessions cannot be served"),
                }
                drop(alive);
            })?);
            running.mailboxes.push(mailbox);
        }
        let (jobs, queue) = bounded(FORWARD_OPENINGS_WAITING);
        for number in 0..FORWARD_OPENERS {
            let (own, queue): (_, Receiver<Job>) = (Arc::clone(self), queue.clone());
            // An opener may wait for a source as long as that takes: the end of the process does not wait for it.
            drop(spawn(format!("opener-{number}"), move || own.work(&queue))?);
        }
        running.jobs = Some(jobs.clone());
        Ok(jobs)
    }

    fn work(self: &Arc<Self>, queue: &Receiver<Job>) {
        while let Ok(job) = queue.recv() {
            match job {
                Job::Open(request) => {
                    if let Some(session) = open::open(self, *request) {
                        self.hand_over(session);
                    }
                }
                Job::Cancel(target) => {
                    if let Ok(gateway) = self.forwards.gateway(&target.server.name) {
                        gateway.cancel(&target.server, &target.secret);
                    }
                }
            }
        }
    }

    fn hand_over(&self, session: Forwarded) {
        let mailboxes = self.running.lock().mailboxes.clone();
        if mailboxes.is_empty() {
            return;
        }
        // Relaxed: which one it is does not matter.
        let at = self.next.fetch_add(1, Ordering::Relaxed) % mailboxes.len();
        mailboxes[at].send(session);
    }

    /// No session begins from now on; those that are there end when their statements have.
    pub(crate) fn close(&self) {
        // Release: pairs with the Acquire of `is_closing`.
        self.closing.store(true, Ordering::Release);
        let mut running = self.running.lock();
        running.alive = None;
        running.jobs = None;
        running.mailboxes.iter().for_each(|mailbox| mailbox.wake());
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Waits for the workers, which end at once when the server stops.
    pub(crate) fn end(&self) {
        self.close();
        let threads = std::mem::take(&mut self.running.lock().threads);
        threads.into_iter().for_each(join);
    }
}
