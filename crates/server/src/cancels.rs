//! Requests to cancel: which connections they name, and what they stop.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use engine::Cancel;
use parking_lot::Mutex;
use store::definition::ServerDef;

use crate::limits::SECRET_BYTES;

/// What cancel requests name: connections by number, each with a secret.
#[derive(Debug, Default)]
pub(crate) struct Cancels {
    /// Taken when a connection comes, goes or is to be cancelled; no other lock is taken while it is held.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    last: i32,
    sessions: HashMap<i32, (Vec<u8>, Canceller)>,
}

/// A session at a source, as a request to cancel names it.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) server: Arc<ServerDef>,
    pub(crate) secret: Vec<u8>,
}

/// What a request to cancel stops.
#[derive(Clone, Debug)]
pub(crate) enum Canceller {
    /// The statement of a session here.
    Session(Cancel),
    /// That of one at a source.
    Source(Arc<Target>),
}

impl Known {
    /// A number that no session has.
    fn next(&mut self) -> i32 {
        loop {
            self.last = self.last.checked_add(1).unwrap_or(1);
            if !self.sessions.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

impl Canceller {
    /// The number that a session has at its source.
    fn process(&self) -> Option<i32> {
        let Self::Source(target) = self else { return None };
        target.secret.first_chunk().map(|process| i32::from_be_bytes(*process))
    }
}

/// A connection's number and secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) process: i32,
    pub(crate) secret: Vec<u8>,
}

impl Cancels {
    /// A number and a secret for a new session. Up to protocol 3.0 a secret has four bytes. A session at a source has
    /// the number that it has there, which notifications name, unless that is taken here.
    pub(crate) fn admit(&self, canceller: Canceller, long: bool) -> io::Result<Key> {
        let mut secret = vec![0; if long { SECRET_BYTES } else { 4 }];
        let filled = rustix::rand::getrandom(&mut secret[..], rustix::rand::GetRandomFlags::empty())?;
        if filled < secret.len() {
            return Err(io::Error::other("no random bytes"));
        }
        let mut known = self.known.lock();
        let there = canceller.process().filter(|process| !known.sessions.contains_key(process));
        let process = there.unwrap_or_else(|| known.next());
        known.sessions.insert(process, (secret.clone(), canceller));
        Ok(Key { process, secret })
    }

    pub(crate) fn forget(&self, process: i32) {
        self.known.lock().sessions.remove(&process);
    }

    /// Cancels the statement of the session that the key belongs to, if there is one. One at a source is returned.
    pub(crate) fn cancel(&self, process: i32, secret: &[u8]) -> Option<Arc<Target>> {
        let known = self.known.lock();
        let (right, canceller) = known.sessions.get(&process)?;
        if !same(right, secret) {
            return None;
        }
        match canceller {
            Canceller::Session(cancel) => {
                cancel.cancel();
                None
            }
            Canceller::Source(target) => Some(Arc::clone(target)),
        }
    }

    pub(crate) fn cancel_all(&self) {
        for (_, canceller) in self.known.lock().sessions.values() {
            if let Canceller::Session(cancel) = canceller {
                cancel.cancel();
            }
        }
    }
}

/// Compares without telling by its time where the first difference is.
fn same(right: &[u8], given: &[u8]) -> bool {
    right.len() == given.len() && right.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}
