//! Connections whose commands made rows invalid of which other caches hear: they are answered when the bus has it. Such
//! a connection waits as for a statement, and the replies come as a statement's do.
//!
//! Commands of this kind that come one after another wait together, so that a client that sends many at once waits for
//! few messages of the bus. Any other command behind them is executed when they are answered.

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;

use engine::{Answer, Cancel, Receipt};
use memcache::binary::{self, Command, Id};
use memcache::{Parsed, Request};

use crate::connection::Connection;
use crate::dialogue::RequestLoop;
use crate::frame::refuse;
use crate::mailbox::{Message, SqlReply};
use crate::reply::write_answer;

/// A reply that is held back. It lies among the turn's.
#[derive(Debug)]
pub(crate) struct Held {
    start: usize,
    end: usize,
    receipt: Arc<Receipt>,
    /// The frame that it answers; none: a line.
    frame: Option<Id>,
}

impl RequestLoop {
    /// Holds the reply back that begins at this place of the turn's, if the command before told other caches something.
    #[inline]
    pub(crate) fn after_telling(&mut self, start: usize, frame: Option<Id>) {
        if let Some(receipt) = self.context.take_receipt() {
            self.held.push(Held { start, end: self.out.len(), receipt, frame });
        }
    }

    /// A command whose client wants no answer waits for nothing.
    #[inline]
    pub(crate) fn do_not_wait(&mut self) {
        let _receipt = self.context.take_receipt();
    }

    /// Whether a request has to wait until those before it are answered.
    #[inline]
    pub(crate) fn is_behind_held(&self, parsed: &Parsed<'_>) -> bool {
        !self.held.is_empty() && !waits_with_others(parsed)
    }

    /// The same of a frame.
    #[inline]
    pub(crate) fn is_frame_behind_held(&self, parsed: &binary::Parsed<'_>) -> bool {
        !self.held.is_empty() && !frame_waits_with_others(parsed)
    }

    /// The end of a turn: its connection waits for what is held back, if anything is.
    #[inline]
    pub(crate) fn await_bus(&mut self, connection: &mut Connection) {
        if let Some(first) = self.held.first() {
            let start = first.start;
            self.await_held(connection, start);
        }
    }

    #[cold]
    fn await_held(&mut self, connection: &mut Connection, start: usize) {
        let replies = Replies { held: mem::take(&mut self.held), start, bytes: self.out.split_off(start) };
        connection.statement = Some(Cancel::new());
        let (address, mailbox, last) = (connection.address, Arc::clone(&self.mailbox), replies.held.len());
        when_over(replies, last, move |bytes| {
            mailbox.send(Message::Reply(SqlReply { address, bytes, panicked: false, verdict: None }));
        });
    }
}

/// Commands whose replies may wait together: those of which other caches hear, and one that does nothing.
fn waits_with_others(parsed: &Parsed<'_>) -> bool {
    let Parsed::Complete { request, .. } = parsed else { return false };
    matches!(
        request,
        Request::Store { .. }
            | Request::Arithmetic { .. }
            | Request::Touch { .. }
            | Request::Delete { .. }
            | Request::FlushAll { .. }
            | Request::MetaSet { .. }
            | Request::MetaArithmetic(_)
            | Request::MetaDelete(_)
            | Request::MetaNoop
    )
}

fn frame_waits_with_others(parsed: &binary::Parsed<'_>) -> bool {
    let binary::Parsed::Complete { request, .. } = parsed else { return false };
    matches!(
        request.command,
        Command::Store { .. }
            | Command::Join { .. }
            | Command::Arithmetic { .. }
            | Command::Touch { .. }
            | Command::Delete
            | Command::Flush { .. }
            | Command::Noop
    )
}

/// The replies from the first that is held back to the end of a turn.
struct Replies {
    held: Vec<Held>,
    /// Where they began among the turn's.
    start: usize,
    bytes: Vec<u8>,
}

impl Replies {
    /// What is sent, now that everybody knows whether the bus has it.
    fn settled(self) -> Vec<u8> {
        if self.held.iter().all(|held| held.receipt.result().is_ok()) {
            return self.bytes;
        }
        let (mut out, mut at) = (Vec::with_capacity(self.bytes.len()), 0);
        for held in self.held.iter().filter(|held| held.receipt.result().is_err()) {
            out.extend_from_slice(&self.bytes[at..held.start - self.start]);
            match held.frame {
                None => write_answer(&UNHEARD, &mut out),
                Some(id) => refuse(id, &UNHEARD, &mut out),
            }
            at = held.end - self.start;
        }
        out.extend_from_slice(&self.bytes[at..]);
        out
    }
}

/// Calls back when the first `left` of these are over, from any thread. The last is waited for first: when it is over,
/// mostly all are.
fn when_over(replies: Replies, mut left: usize, then: impl FnOnce(Vec<u8>) + Send + 'static) {
    while let Some(last) = left.checked_sub(1) {
        let receipt = &replies.held[last].receipt;
        if !receipt.is_over() {
            let receipt = Arc::clone(receipt);
            let then: Box<dyn FnOnce(Vec<u8>) + Send> = Box::new(then);
            return receipt.when_over(move |_| when_over(replies, last, then));
        }
        left = last;
    }
    then(replies.settled());
}

/// What a client hears whose command took effect here, and of which the bus has not heard.
const UNHEARD: Answer = Answer::ServerError(Cow::Borrowed(
    "the bus has not acknowledged it; it took effect here, and the other caches hear of it later",
));
