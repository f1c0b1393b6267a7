//! What the source sends: passed to the client, and kept where it may be.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::block::Block;
use super::reads::is_kept;
use super::{Copying, Expected, Fill, Hands, Out, Sent, Session};
use crate::answers::Answer;
use crate::frame::{Frame, Next, next};
use crate::hub::Hub;
use crate::limits::{INSPECT_AFTER, REPLY_BYTES_MAX};
use crate::state::{State, row_of};
use crate::text::Statement;

impl Session {
    /// The source has sent these bytes.
    pub fn source_sent(&mut self, bytes: &[u8], hands: &mut Hands<'_>, out: &mut Out<'_>) {
        if self.raw && self.reply.is_empty() {
            return out.client.extend_from_slice(bytes);
        }
        let (passed, rest) = bytes.split_at(self.reply_through.min(bytes.len()));
        out.client.extend_from_slice(passed);
        self.reply_through -= passed.len();
        let mut reply = std::mem::take(&mut self.reply);
        if reply.is_empty() {
            let taken = self.take_replies(rest, hands, out);
            reply.extend_from_slice(&rest[taken..]);
        } else {
            reply.extend_from_slice(rest);
            let taken = self.take_replies(&reply, hands, out);
            reply.drain(..taken);
        }
        if reply.is_empty() {
            reply.shrink_to(REPLY_BYTES_MAX);
        }
        self.reply = reply;
        if !self.input.is_empty() {
            // It may have waited for what has come.
            self.client_sent(&[], hands, out);
        }
    }

    /// Takes whole messages, and what has come of a long one. Returns how many bytes that were.
    fn take_replies(&mut self, bytes: &[u8], hands: &mut Hands<'_>, out: &mut Out<'_>) -> usize {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            match next(rest) {
                _ if self.raw => {
                    out.client.extend_from_slice(rest);
                    return bytes.len();
                }
                Next::Whole(frame) => {
                    self.reply(&frame, hands, out);
                    taken += frame.bytes.len();
                }
                Next::Part { len, .. } if len > REPLY_BYTES_MAX && self.passes_long() => {
                    out.client.extend_from_slice(rest);
                    self.reply_through = len - rest.len();
                    return bytes.len();
                }
                Next::Part { .. } | Next::Less => return taken,
                Next::Broken => self.pass_raw(out),
            }
        }
    }

    /// Whether a long message may pass as it comes: an answer that has one is not kept.
    fn passes_long(&mut self) -> bool {
        match self.expected.front_mut() {
            Some(Expected::Group(sent)) => {
                sent.fill = None;
                sent.description = None;
                true
            }
            Some(Expected::State { .. } | Expected::Begin) => false,
            None => true,
        }
    }

    fn reply(&mut self, frame: &Frame<'_>, hands: &mut Hands<'_>, out: &mut Out<'_>) {
        // A notification may be of a change that the client now looks for.
        if frame.kind == b'A' {
            self.fence = self.hub.as_ref().map(|hub| hub.ask_place());
        }
        if frame.kind == b'S' {
            self.names.note_setting(frame.body());
        }
        let passes = match self.expected.front_mut() {
            // A transaction that does not begin is an error that the client has to know of.
            Some(Expected::Begin) => matches!(frame.kind, b'A' | b'N' | b'S' | b'E'),
            Some(Expected::State { row, .. }) => {
                if frame.kind == b'D' {
                    *row = row_of(frame.body());
                }
                // What comes by itself is the client's.
                matches!(frame.kind, b'A' | b'N' | b'S')
            }
            Some(Expected::Group(sent)) => {
                let passes = !sent.swallows(frame.kind);
                if passes {
                    sent.collect(frame);
                    if frame.kind == b'1'
                        && let Some((name, text, doubts, state)) = sent.prepares.pop_front()
                    {
                        match text {
                            Some(text) => self.names.prepared(&name, text, doubts, state),
                            None => self.names.forget(&name),
                        }
                    }
                }
                passes
            }
            None => true,
        };
        let ends = frame.kind == b'Z' && !self.expected.is_empty();
        if ends {
            self.status = frame.body().first().copied().unwrap_or(b'E');
            self.follow_block();
            self.end_first(hands);
        }
        if passes {
            out.client.extend_from_slice(frame.bytes);
        }
    }

    /// The source has said whether it is in a transaction.
    fn follow_block(&mut self) {
        self.block = match (self.status, std::mem::take(&mut self.block)) {
            (b'I', waiting @ Block::Waiting { .. }) => waiting,
            (b'I', _) => Block::None,
            (b'T', Block::Reading) => Block::Reading,
            _ => Block::Other,
        };
    }

    /// The first that was expected was answered.
    fn end_first(&mut self, hands: &mut Hands<'_>) {
        match self.expected.pop_front() {
            Some(Expected::State { changes, question, row, behind }) => {
                let state = row.and_then(|row| State::read(row, question));
                if let (Some(hub), Some(text)) = (self.hub.clone(), behind) {
                    let statement = state.as_ref().and_then(|state| text.in_state(state));
                    if !statement.is_some_and(|statement| reads(&hub, &statement)) {
                        self.fence = Some(hub.ask_place());
                    }
                }
                // What was forwarded meanwhile may have changed it again.
                if changes == self.changes {
                    self.state = state;
                }
            }
            Some(Expected::Group(sent)) => self.end_group(sent, hands),
            Some(Expected::Begin) | None => {}
        }
    }

    fn end_group(&mut self, sent: Sent, hands: &mut Hands<'_>) {
        let Some(hub) = self.hub.clone() else { return };
        sent.deferred.iter().for_each(|name| self.names.unsend(name));
        if !sent.reads {
            // What was written here is not read from what is kept before the stream has passed it.
            self.fence = Some(hub.ask_place());
        }
        if let Some((statement, description)) = sent.description
            && is_description(&description)
        {
            statement.set_described(description);
        }
        let Some((statement, since_us)) = sent.execution else { return };
        // Relaxed: counts.
        statement.counts.forwarded.fetch_add(1, Ordering::Relaxed);
        let took = hands.now_us.saturating_sub(since_us);
        statement.counts.forwarded_us.fetch_add(took, Ordering::Relaxed);
        match sent.fill.filter(|fill| fill.complete && self.status != b'E') {
            Some(fill) => keep(&hub, &statement, *fill, hands),
            None => statement.note_unkept(),
        }
    }
}

/// Whether a statement that was forwarded while the state was not known turns out to be a read. It counts as every
/// other one that comes.
fn reads(hub: &Hub, statement: &Arc<Statement>) -> bool {
    let is_read = statement.dependences().is_some();
    if !is_read {
        // Relaxed: a count.
        statement.counts.forwarded.fetch_add(1, Ordering::Relaxed);
        if statement.is_to_be_asked(INSPECT_AFTER) {
            hub.inspect(statement);
        }
    }
    is_read
}

fn keep(hub: &Hub, statement: &Statement, fill: Fill, hands: &mut Hands<'_>) {
    let Fill { id, tags, moment, body, miss, .. } = fill;
    let kept = hub.let_in(moment, &tags, || {
        hands.answers.keep(&hub.answers, Answer { id, statement: statement.number, tags: &tags, body })
    });
    statement.note_kept(kept);
    // Whoever waits for it finds it now.
    drop(miss);
}

impl Sent {
    /// Whether a message answers what the client has not asked.
    fn swallows(&mut self, kind: u8) -> bool {
        match kind {
            b'1' if self.deferred.pop_front().is_some() => true,
            b'3' if self.closed > 0 => {
                self.closed -= 1;
                true
            }
            // What comes by itself is the client's.
            kind => self.own && !matches!(kind, b'A' | b'N' | b'S'),
        }
    }

    fn collect(&mut self, frame: &Frame<'_>) {
        if frame.kind == b'G' {
            self.copy = if self.ended { Copying::Data } else { Copying::No };
        }
        if let Some((_, description)) = &mut self.description {
            match frame.kind {
                b't' | b'T' | b'n' => description.extend_from_slice(frame.bytes),
                b'1' | b'Z' => {}
                _ => self.description = None,
            }
        }
        if let Some(fill) = &mut self.fill
            && (!fill.collect(frame) || !is_kept(fill.body.len()))
        {
            self.fill = None;
        }
    }
}

impl Fill {
    /// Takes a message of the answer; false: it is none that is kept.
    fn collect(&mut self, frame: &Frame<'_>) -> bool {
        match frame.kind {
            b'T' | b'D' => self.body.extend_from_slice(frame.bytes),
            b'C' => {
                self.body.extend_from_slice(frame.bytes);
                self.complete = true;
            }
            b'1' | b'2' | b'3' | b'Z' => {}
            _ => return false,
        }
        true
    }
}

/// Whether it says which parameters a statement takes, and then which columns it gives.
fn is_description(bytes: &[u8]) -> bool {
    let Next::Whole(first) = next(bytes) else { return false };
    let rest = &bytes[first.bytes.len()..];
    first.kind == b't'
        && matches!(next(rest), Next::Whole(Frame { kind: b'T', bytes }) if bytes.len() == rest.len())
}
