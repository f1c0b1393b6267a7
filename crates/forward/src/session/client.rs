//! What the client sends: answered here, or forwarded.

use std::sync::Arc;

use postgres::frontend::Parse;

use super::own::Own;
use super::reads::{Asked, Way};
use super::{Expected, Hands, Out, Session, Waiting, is_due};
use crate::frame::{Next, next, put};
use crate::group::{Described, Ended, Group, Run, end_of_group, read};
use crate::hub::Hub;
use crate::limits::GROUP_BYTES_MAX;
use crate::text::{Statement, Text};

impl Session {
    /// Before the client sends anything: asks as whom it works, so that its first read may be answered here.
    pub fn begin(&mut self, out: &mut Out<'_>) {
        if self.hub.is_some() {
            self.ask_state(None, out);
        }
    }

    /// The client has sent these bytes.
    pub fn client_sent(&mut self, bytes: &[u8], hands: &mut Hands<'_>, out: &mut Out<'_>) {
        if self.raw {
            return out.source.extend_from_slice(bytes);
        }
        let mut rest = bytes;
        if self.through > 0 {
            let (passed, behind) = rest.split_at(self.through.min(rest.len()));
            out.source.extend_from_slice(passed);
            self.through -= passed.len();
            rest = behind;
        }
        let mut input = std::mem::take(&mut self.input);
        if input.is_empty() {
            let taken = self.take(rest, hands, out);
            input.extend_from_slice(&rest[taken..]);
        } else {
            input.extend_from_slice(rest);
            let taken = self.take(&input, hands, out);
            input.drain(..taken);
        }
        if input.is_empty() {
            input.shrink_to(GROUP_BYTES_MAX);
        }
        self.input = input;
    }

    /// Takes whole groups, and the messages of one that is too long to wait for. Returns how many bytes that were.
    fn take(&mut self, input: &[u8], hands: &mut Hands<'_>, out: &mut Out<'_>) -> usize {
        let mut taken = 0;
        while !self.awaits_state() {
            match end_of_group(&input[taken..], &mut self.looked) {
                Ended::At(len) => {
                    if !self.group(&input[taken..taken + len], hands, out) {
                        return taken;
                    }
                    taken += len;
                }
                Ended::Broken => {
                    self.pass_raw(out);
                    out.source.extend_from_slice(&input[taken..]);
                    return input.len();
                }
                Ended::Later if input.len() - taken < GROUP_BYTES_MAX => return taken,
                Ended::Later => return taken + self.pass(&input[taken..], out),
            }
        }
        taken
    }

    /// Forwards what has come of a group that is too long to wait for its end. Returns how many bytes that were.
    fn pass(&mut self, input: &[u8], out: &mut Out<'_>) -> usize {
        let whole = std::mem::take(&mut self.looked);
        if whole > 0 {
            self.forward(&input[..whole], out);
        }
        let Next::Part { kind, len } = next(&input[whole..]) else { return whole };
        if len < GROUP_BYTES_MAX {
            return whole;
        }
        if kind != b'd' {
            self.note_long(kind, out);
        }
        out.source.extend_from_slice(&input[whole..]);
        self.through = len - (input.len() - whole);
        input.len()
    }

    /// A request passes before all of it has come, so nothing is known of it but its kind.
    fn note_long(&mut self, kind: u8, out: &mut Out<'_>) {
        self.begin_at_source(out);
        self.doubt_names(out);
        let sent = self.group_under_way();
        match kind {
            b'P' => sent.prepares.push_back((Box::default(), None, 0, None)),
            b'Q' | b'F' => (sent.ended, sent.simple) = (true, true),
            _ => {}
        }
        self.note_change();
    }

    /// Understands nothing from here on: what has come and what comes passes as it is.
    pub(super) fn pass_raw(&mut self, out: &mut Out<'_>) {
        self.begin_at_source(out);
        out.source.append(&mut self.input);
        self.raw = true;
        self.hub = None;
    }

    /// A whole group; false: it has to wait.
    fn group(&mut self, bytes: &[u8], hands: &mut Hands<'_>, out: &mut Out<'_>) -> bool {
        if bytes == FLUSH {
            // It asks for what the source may hold back of its answers, and is not answered itself.
            out.source.extend_from_slice(bytes);
            return true;
        }
        let waited = self.waiting.take();
        // More of what the client sends says nothing of what it waits for.
        if let Some(waiting @ (Waiting::Answer { .. } | Waiting::Definitions { .. })) = waited
            && !is_due(self.hub.as_deref(), waiting, hands.now_us)
        {
            self.waiting = Some(waiting);
            return false;
        }
        let group = read(bytes);
        let hub = self.hub.clone();
        if waited.is_none() && self.awaits_definitions(&group, hands.now_us) {
            return false;
        }
        let waited = waited.filter(|waited| !matches!(waited, Waiting::Definitions { .. }));
        if let (Some(hub), Group::Simple(sql)) = (&hub, &group)
            && let Some(own) = Own::of(sql)
            && self.is_answered_soon()
        {
            let is_next = self.expected.is_empty();
            if is_next {
                self.answer_own(hub, &own, out);
            }
            return is_next;
        }
        let alone = self.may_read();
        if alone && !self.asked && self.wants_state(hub.as_deref(), &group) {
            self.asked = self.ask_state(None, out);
            if self.asked && self.awaits_state() {
                return false;
            }
        }
        self.asked = false;
        if let Some(hub) = hub.filter(|hub| (alone || self.may_follow()) && hub.is_source(self.identity)) {
            match group {
                Group::Simple(sql) if alone && self.begin_or_end(&hub, sql, bytes, out) => {}
                Group::Simple(sql) => {
                    let text = hub.text(sql, std::iter::empty());
                    let asked = Asked { text: &text, way: Way::Simple, run: None, bytes, waited };
                    self.read(&hub, &asked, hands, out);
                }
                Group::Run(run) => self.run(&hub, &run, bytes, waited, hands, out),
                Group::Prepare(parse, described) if alone => {
                    self.prepare(&hub, &parse, described, bytes, out);
                }
                Group::Describe(name, described) if alone => {
                    self.describe(&hub, name, described, bytes, out);
                }
                Group::Prepare(..) | Group::Describe(..) | Group::Other => self.forward(bytes, out),
            }
        } else {
            self.forward(bytes, out);
        }
        self.waiting.is_none()
    }

    /// Whether a group prepares a read under a name before the definitions of the source are known for the first time.
    /// It waits for them, for it would only be forwarded for as long as its client keeps it.
    fn awaits_definitions(&mut self, group: &Group<'_>, now_us: u64) -> bool {
        let (Some(hub), Some(parse)) = (&self.hub, named(group)) else { return false };
        let Some(until_us) = hub.await_definitions(now_us) else { return false };
        let waits = self.expected.is_empty() && hub.text(parse.sql, parse.types()).refusal.is_none();
        if waits {
            self.waiting = Some(Waiting::Definitions { until_us });
        }
        waits
    }

    /// Whether a group prepares a read under a name, of which the state says in which it means the same.
    fn wants_state(&self, hub: Option<&Hub>, group: &Group<'_>) -> bool {
        let (Some(hub), Some(parse), None) = (hub, named(group), &self.state) else { return false };
        let text = hub.text(parse.sql, parse.types());
        !text.is_typed && text.refusal.is_none()
    }

    fn run(
        &mut self,
        hub: &Arc<Hub>,
        run: &Run<'_>,
        bytes: &[u8],
        waited: Option<Waiting>,
        hands: &mut Hands<'_>,
        out: &mut Out<'_>,
    ) {
        let text = match &run.parse {
            Some(parse) if self.names.takes(parse.name) => hub.text(parse.sql, parse.types()),
            Some(_) => return self.forward(bytes, out),
            None => match self.known(run.bind.statement, hub) {
                Some(text) => text,
                None => return self.forward(bytes, out),
            },
        };
        let way = Way::Bound { bind: &run.bind, described: run.described };
        self.read(hub, &Asked { text: &text, way, run: Some(run), bytes, waited }, hands, out);
    }

    fn prepare(
        &mut self,
        hub: &Arc<Hub>,
        parse: &Parse<'_>,
        described: Option<Described>,
        bytes: &[u8],
        out: &mut Out<'_>,
    ) {
        let text = hub.text(parse.sql, parse.types());
        let statement = self.kept(&text).filter(|_| self.names.takes(parse.name));
        let Some(statement) = statement else {
            return self.forward_described(&text, described, bytes, out);
        };
        let description = match described {
            None => Some(&[][..]),
            Some(_) => statement.described(),
        };
        let Some(description) = description else {
            return self.forward_described(&text, described, bytes, out);
        };
        put(b'1', &[], out.client);
        out.client.extend_from_slice(description);
        if described != Some(Described::Flushed) {
            put(b'Z', &[&[self.shown_status()]], out.client);
        }
        self.names.put(parse.name, text, false, self.state.as_ref().map(|state| *state.hash()));
    }

    fn describe(
        &mut self,
        hub: &Arc<Hub>,
        name: &str,
        described: Described,
        bytes: &[u8],
        out: &mut Out<'_>,
    ) {
        let Some(text) = self.known(name, hub) else { return self.forward(bytes, out) };
        let statement = self.kept(&text);
        let Some(description) = statement.as_ref().and_then(|statement| statement.described()) else {
            return self.forward_described(&text, Some(described), bytes, out);
        };
        out.client.extend_from_slice(description);
        if described == Described::Synced {
            put(b'Z', &[&[self.shown_status()]], out.client);
        }
    }

    /// The text of a name, if that means now what it meant when it was prepared.
    fn known(&self, name: &str, hub: &Hub) -> Option<Arc<Text>> {
        let state = self.state.as_ref().map(|state| state.hash());
        self.names.get_in(name, state).filter(|text| hub.is_of_now(text)).cloned()
    }

    /// The statement of a text in the session's state, if its answers are kept.
    fn kept(&self, text: &Arc<Text>) -> Option<Arc<Statement>> {
        let statement = text.in_state(self.state.as_ref()?)?;
        statement.dependences().map(|_| statement)
    }

    /// Forwards a group that describes a statement, and keeps what the source says of it.
    fn forward_described(
        &mut self,
        text: &Arc<Text>,
        described: Option<Described>,
        bytes: &[u8],
        out: &mut Out<'_>,
    ) {
        let Some(state) = self.state.clone() else { return self.forward(bytes, out) };
        let statement = described.and_then(|_| text.in_state(&state));
        // Nothing is executed.
        self.forward_read(bytes, &state, out);
        if let Some(Expected::Group(sent)) = self.expected.back_mut() {
            sent.description = statement.map(|statement| (statement, Vec::new()));
        }
    }
}

/// A `Flush` alone: behind a `Sync`, for example.
const FLUSH: &[u8] = b"H\0\0\0\x04";

/// What a group prepares for later groups.
fn named<'g, 'b>(group: &'g Group<'b>) -> Option<&'g Parse<'b>> {
    match group {
        Group::Prepare(parse, _) => Some(parse),
        Group::Run(run) => run.parse.as_ref().filter(|parse| !parse.name.is_empty()),
        Group::Simple(_) | Group::Describe(..) | Group::Other => None,
    }
}
