//! Requests that are forwarded as they are, behind what the source needs for them: statements that the client takes for
//! prepared, and the beginning of its transaction.

use postgres::frontend::{Parsed, Request, Target, parse};

use super::block::Block;
use super::{Copying, DATABASE, Expected, Out, Sent, Session};
use crate::frame::{Next, next, put};
use crate::text::concerns_names;

/// Part of each text that changes a setting: SET, RESET, `set_config`.
const SETTING: &str = "SET";

impl Session {
    /// Forwards whole messages as they are, behind the statements that they need.
    pub(super) fn forward(&mut self, bytes: &[u8], out: &mut Out<'_>) {
        self.begin_at_source(out);
        let mut at = 0;
        while at < bytes.len() {
            let Next::Whole(frame) = next(&bytes[at..]) else { break };
            match frame.kind {
                // They belong to what is under way, and are no request.
                b'd' | b'X' | b'p' => {}
                b'c' | b'f' => self.end_copy(),
                _ => self.forward_request(frame.bytes, out),
            }
            out.source.extend_from_slice(frame.bytes);
            at += frame.bytes.len();
        }
    }

    /// The transaction of which the client was told begins at the source, too. What follows is no read, unless its
    /// caller knows better.
    pub(super) fn begin_at_source(&mut self, out: &mut Out<'_>) {
        self.last = DATABASE;
        match std::mem::take(&mut self.block) {
            Block::None => {}
            Block::Waiting { begin } => {
                put(b'Q', &[begin.as_bytes(), b"\0"], out.source);
                self.expected.push_back(Expected::Begin);
                self.block = Block::Other;
            }
            Block::Reading | Block::Other => self.block = Block::Other,
        }
    }

    fn forward_request(&mut self, bytes: &[u8], out: &mut Out<'_>) {
        if let Some(Expected::Group(sent)) = self.expected.back_mut()
            && sent.copy != Copying::No
        {
            // It is not answered, or ends what began before the data.
            if sent.copy == Copying::Ended && bytes.first() == Some(&b'S') {
                sent.copy = Copying::No;
            }
            return;
        }
        let Parsed::Complete { request, .. } = parse(bytes) else {
            self.group_under_way();
            return self.note_change();
        };
        match request {
            Request::Query(text) => {
                self.send_named(text, out);
                self.forget_name("");
                let sent = self.group_under_way();
                (sent.ended, sent.simple) = (true, true);
                self.note_change();
            }
            Request::Parse(parse) => {
                self.send_named(parse.sql, out);
                if parse.name.is_empty() {
                    self.forget_name("");
                } else {
                    // It is refused there, as a name that is taken.
                    self.send_name(parse.name, out);
                }
                let text = self.hub.as_ref().map(|hub| hub.text(parse.sql, parse.types()));
                let doubts = self.names.doubts;
                let state = self.state.as_ref().map(|state| *state.hash());
                self.group_under_way().prepares.push_back((parse.name.into(), text, doubts, state));
            }
            Request::Bind(bind) => {
                self.send_name(bind.statement, out);
                // What is not known here may be a DISCARD.
                if self.names.get(bind.statement).is_none_or(|text| text.concerns_names) {
                    self.doubt_names(out);
                }
            }
            Request::Describe(Target::Statement(name)) => self.send_name(name, out),
            Request::Close(Target::Statement(name)) => {
                self.group_under_way();
                self.forget_name(name);
            }
            Request::Execute { .. } => {
                self.group_under_way();
                self.note_change();
            }
            Request::FunctionCall => {
                self.group_under_way().ended = true;
                self.note_change();
            }
            Request::Sync => self.group_under_way().ended = true,
            _ => {
                self.group_under_way();
            }
        }
    }

    /// The client has sent all rows of a COPY.
    fn end_copy(&mut self) {
        if let Some(Expected::Group(sent)) = self.expected.back_mut()
            && sent.copy == Copying::Data
        {
            sent.copy = if sent.simple { Copying::No } else { Copying::Ended };
        }
    }

    /// The group that is being forwarded.
    pub(super) fn group_under_way(&mut self) -> &mut Sent {
        let is_open = matches!(self.expected.back(), Some(Expected::Group(sent)) if !sent.ended);
        if !is_open {
            self.expected.push_back(Expected::Group(Sent::default()));
        }
        match self.expected.back_mut() {
            Some(Expected::Group(sent)) => sent,
            _ => unreachable!("it was just put there"),
        }
    }

    /// A statement is no more, be it that the source has not even said that it is prepared.
    fn forget_name(&mut self, name: &str) {
        self.names.forget(name);
        for expected in &mut self.expected {
            let Expected::Group(sent) = expected else { continue };
            sent.prepares
                .iter_mut()
                .filter(|(own, ..)| **own == *name)
                .for_each(|(_, text, ..)| *text = None);
        }
    }

    /// Has the source prepare what the client was told is prepared.
    fn send_name(&mut self, name: &str, out: &mut Out<'_>) {
        let closes = name.is_empty() && self.names.close_hidden(out.source);
        let is_sent = self.names.send(name, out.source);
        let group = self.group_under_way();
        group.closed += usize::from(closes);
        if is_sent {
            group.deferred.push_back(name.into());
        }
    }

    /// A text may concern prepared statements by their names, or change what their literals mean.
    fn send_named(&mut self, text: &str, out: &mut Out<'_>) {
        if concerns_names(text) {
            self.doubt_names(out);
        } else if text.to_ascii_uppercase().contains(SETTING) {
            self.send_all_names(out);
        }
    }

    /// What the names of statements stand for from here on is not known. The source has all that the client knows.
    pub(super) fn doubt_names(&mut self, out: &mut Out<'_>) {
        self.send_all_names(out);
        self.names.doubt_all();
    }

    /// Has the source prepare all that the client was told is prepared.
    fn send_all_names(&mut self, out: &mut Out<'_>) {
        let names = self.names.send_all(out.source);
        let is_open = matches!(self.expected.back(), Some(Expected::Group(sent)) if !sent.ended);
        if is_open {
            self.group_under_way().deferred.extend(names);
        } else if !names.is_empty() {
            // One that fails would have the source pass over all that follows up to a `Sync`.
            put(b'S', &[], out.source);
            let sent =
                Sent { ended: true, reads: true, own: true, deferred: names.into(), ..Sent::default() };
            self.expected.push_back(Expected::Group(sent));
        }
    }
}
