//! Hears messages, in the order of their commits.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{PUBLICATION, keeper};
use crate::error::Error;
use crate::limits::{ANSWER_TIMEOUT, FEEDBACK_INTERVAL};
use crate::pgoutput::{Message, Reader, literal, quoted};
use crate::slot::of_slot;
use crate::stream::{KEEPALIVE, WAL_DATA, report_of};
use crate::time::now;
use crate::wire::{COPY_BOTH, COPY_DATA, Connection, ERROR, error_of};

/// A stream that was asked for.
#[derive(Debug)]
pub enum Begun {
    /// It comes.
    Listens(Box<Listener>),
    /// The log before this place is not kept any more.
    Gone(u64),
}

/// What has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// A message, and the place of its commit.
    pub message: Option<(u64, Bytes)>,
    /// All that was committed before this place has come with it.
    pub passed: u64,
}

/// See the module.
pub struct Listener {
    changes: Connection,
    prefix: String,
    reader: Reader,
    /// The messages of the transaction that is under way, and where it was committed.
    under_way: Option<(u64, Vec<Bytes>)>,
    ready: VecDeque<Heard>,
    passed: u64,
    /// What was said of that.
    told: u64,
    report_at: Instant,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("passed", &self.passed).finish_non_exhaustive()
    }
}

impl Listener {
    pub(super) fn begin(
        mut changes: Connection,
        prefix: &str,
        keeper: &str,
        from: u64,
    ) -> Result<Begun, Error> {
        let slot = format!("sqlcached_{}_{:08x}", std::process::id(), fastrand::u32(..));
        let copies =
            format!("SELECT pg_copy_logical_replication_slot({}, {}, true)", literal(keeper), literal(&slot));
        changes.query(&copies).map_err(of_slot)?;
        let kept = keeper::place_in(&slot, &mut changes)?;
        if kept > from {
            changes.end();
            return Ok(Begun::Gone(kept));
        }
        changes.ask(&format!(
            "START_REPLICATION SLOT {} LOGICAL {:X}/{:X} (proto_version '1', publication_names {}, messages 'true')",
            quoted(&slot),
            from >> 32,
            from & u64::from(u32::MAX),
            literal(PUBLICATION),
        ))?;
        let frame = changes.answer(now() + ANSWER_TIMEOUT).map_err(of_slot)?;
        if frame.tag != COPY_BOTH {
            return Err(Error::connection("the stream does not begin"));
        }
        Ok(Begun::Listens(Box::new(Self {
            changes,
            prefix: prefix.to_owned(),
            reader: Reader::new(),
            under_way: None,
            ready: VecDeque::new(),
            passed: from,
            told: from,
            report_at: now(),
        })))
    }

    /// The process there that serves it.
    pub fn process(&self) -> Option<u32> {
        self.changes.process()
    }

    /// What comes next, if it comes within this time.
    ///
    /// # Errors
    ///
    /// The stream has ended, or cannot be read.
    pub fn next_within(&mut self, wait: Duration) -> Result<Option<Heard>, Error> {
        if self.ready.is_empty() {
            let mut frame = self.changes.next_within(wait)?;
            while let Some(next) = frame {
                match next.tag {
                    COPY_DATA => self.take(&next.body)?,
                    ERROR => return Err(error_of(&next.body)),
                    b'c' => return Err(Error::connection("the database ended the stream")),
                    _ => {}
                }
                // Of what has come, messages first.
                frame = if self.ready.is_empty() { self.changes.take_frame()? } else { None };
            }
        }
        if now() >= self.report_at {
            self.report()?;
        }
        if let Some(heard) = self.ready.pop_front() {
            self.told = heard.passed;
            return Ok(Some(heard));
        }
        let is_new = mem::replace(&mut self.told, self.passed) < self.passed;
        Ok(is_new.then_some(Heard { message: None, passed: self.passed }))
    }

    /// Tells the database how far it was read, so that it need not keep what is before.
    fn report(&mut self) -> Result<(), Error> {
        self.report_at = now() + FEEDBACK_INTERVAL;
        self.changes.send(&report_of(self.passed, self.passed)?)
    }

    fn take(&mut self, body: &Bytes) -> Result<(), Error> {
        match body.first() {
            Some(&WAL_DATA) if body.len() > 25 => {
                let message = self.reader.read(body.slice(25..))?;
                self.meet(message);
                Ok(())
            }
            Some(&KEEPALIVE) => {
                let end = body.get(1..9).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
                let end = end.ok_or_else(|| Error::connection("a message of the stream is cut"))?;
                if self.under_way.is_none() {
                    self.passed = self.passed.max(end);
                }
                if body.get(17) == Some(&1) { self.report() } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn meet(&mut self, message: Message) {
        match message {
            Message::Begin { at, .. } => self.under_way = Some((at, Vec::new())),
            // One that stands in no transaction is not ours.
            Message::Note { prefix, content } if prefix == self.prefix => {
                if let Some((_, messages)) = &mut self.under_way {
                    messages.push(content);
                }
            }
            Message::Commit { end, .. } => {
                let Some((at, messages)) = self.under_way.take() else { return };
                // What has this place is there when the last of them is.
                let each = messages.into_iter().map(|bytes| Heard { message: Some((at, bytes)), passed: at });
                self.ready.extend(each);
                self.passed = self.passed.max(end);
                if let Some(last) = self.ready.back_mut() {
                    last.passed = self.passed;
                }
            }
            _ => {}
        }
    }

    /// Says that it ends.
    pub fn end(&mut self) {
        self.changes.end();
    }
}
