//! Reads of clients: answered from what is kept, or forwarded so that their answers can be kept.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use inspect::{Bound, Dependences};
use postgres::Format;
use postgres::frontend::Bind;
use ring::digest::{Context, SHA256};

use super::block::{Block, end_of, is_begin};
use super::{CACHE, Expected, Fill, Hands, Out, Session, Waiting};
use crate::choice::Wish;
use crate::frame::put;
use crate::freshness::Freshness;
use crate::group::Run;
use crate::hub::Hub;
use crate::limits::{ANSWER_BYTES_MAX, CHECK_PATIENCE, INSPECT_AFTER, micros};
use crate::state::{self, Hash, finished};
use crate::text::{Statement, Text};

/// How a read is asked for: what its answer consists of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way<'b> {
    Simple,
    Bound { bind: &'b Bind<'b>, described: bool },
}

/// A statement that may be a read.
pub(super) struct Asked<'a> {
    pub(super) text: &'a Arc<Text>,
    pub(super) way: Way<'a>,
    /// None: it is a simple query.
    pub(super) run: Option<&'a Run<'a>>,
    /// The whole group.
    pub(super) bytes: &'a [u8],
    /// It has waited, for this.
    pub(super) waited: Option<Waiting>,
}

/// What became of a read that what is kept may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// It was answered.
    Answered,
    /// It waits until that is known to be fresh.
    Waits,
    /// The source has to answer.
    Nothing,
}

impl Session {
    /// A statement that may be a read: answered here, or forwarded so that its answer can be kept.
    pub(super) fn read(
        &mut self,
        hub: &Arc<Hub>,
        asked: &Asked<'_>,
        hands: &mut Hands<'_>,
        out: &mut Out<'_>,
    ) {
        let Asked { text, way, bytes, .. } = *asked;
        if asked.waited.is_none() {
            // Relaxed: a count.
            text.calls.fetch_add(1, Ordering::Relaxed);
        }
        if text.refusal.is_some() {
            return self.forward(bytes, out);
        }
        let Some(state) = self.state.clone().filter(|state| state.is_under(hub.definitions())) else {
            self.forward(bytes, out);
            return self.ask_state_behind(text, out);
        };
        let Some(statement) = text.in_state(&state) else { return self.forward(bytes, out) };
        if state.keeps_from_reading().is_some() || hub.refuses(text, &state).is_some() {
            return self.forward(bytes, out);
        }
        let Some(dependences) = statement.dependences() else {
            return self.forward_new(hub, &statement, bytes, hands, out);
        };
        if !state.has(&dependences.settings) {
            // No statement had read one of them when the state was asked for.
            self.forward(bytes, out);
            return self.ask_state_behind(text, out);
        }
        let id = id_of(&statement, &dependences, &state, way);
        let freshness = hub.freshness(text, &state);
        // What is answered here must not come before the answers to what was forwarded.
        let found = if self.expected.is_empty() && self.believes(hub, freshness) {
            // Before the answer is looked for: one that is found afterwards was not removed.
            let is_fresh = match freshness {
                Freshness::Own | Freshness::Stream => true,
                Freshness::Checked => {
                    matches!(asked.waited, Some(Waiting::Place { ticket, .. }) if hub.has_passed(ticket))
                }
                Freshness::Commit => hub.is_awaited(hands.now_us),
            };
            match self.answer(hub, &statement, &id, (freshness, is_fresh), asked, hands, out) {
                Found::Nothing => self.join(hub, (&statement, &state), &id, asked, hands),
                found => found,
            }
        } else {
            Found::Nothing
        };
        if found != Found::Nothing {
            return;
        }
        let Ok(tags) = dependences.tags(&way.parameters()) else { return self.forward(bytes, out) };
        let moment = hub.moment(text);
        let fill = moment.map(|moment| {
            let miss = hub.misses.begin(&id);
            Box::new(Fill { id, tags, moment, body: Vec::new(), complete: false, miss })
        });
        self.forward_read(bytes, &state, out);
        if let Some(Expected::Group(sent)) = self.expected.back_mut() {
            sent.execution = Some((Arc::clone(&statement), hands.now_us));
            sent.fill = fill;
        }
    }

    /// A transaction begins or ends; false: it does not.
    pub(super) fn begin_or_end(&mut self, hub: &Hub, sql: &str, bytes: &[u8], out: &mut Out<'_>) -> bool {
        if self.block == Block::None {
            if !is_begin(sql) || !hub.is_live() {
                return false;
            }
            put(b'C', &[b"BEGIN\0"], out.client);
            self.block = Block::Waiting { begin: sql.into() };
            put(b'Z', &[b"T"], out.client);
            if self.state.is_none() {
                self.ask_state(None, out);
            }
            self.names.hide_unnamed();
            return true;
        }
        let Some(end) = end_of(sql) else { return false };
        match (&self.block, self.state.clone()) {
            (Block::Waiting { .. }, _) => {
                self.block = Block::None;
                put(b'C', &[end.tag()], out.client);
                put(b'Z', &[b"I"], out.client);
                self.names.hide_unnamed();
            }
            (Block::Reading, Some(state)) => self.forward_read(bytes, &state, out),
            _ => return false,
        }
        true
    }

    /// Whether what is kept may be read: nothing that this session has written, or has heard of, is still to come.
    fn believes(&mut self, hub: &Hub, freshness: Freshness) -> bool {
        if self.fence.is_some_and(|ticket| hub.has_passed(ticket)) {
            self.fence = None;
        }
        (self.fence.is_none() || freshness == Freshness::Stream) && hub.is_live()
    }

    /// Answers from what is kept.
    #[expect(clippy::too_many_arguments, reason = "the parts of one request, and what is known of it")]
    fn answer(
        &mut self,
        hub: &Hub,
        statement: &Statement,
        id: &Hash,
        (freshness, is_fresh): (Freshness, bool),
        asked: &Asked<'_>,
        hands: &mut Hands<'_>,
        out: &mut Out<'_>,
    ) -> Found {
        let (before, run) = (out.client.len(), asked.run);
        if let Some(run) = run {
            if run.parse.is_some() {
                put(b'1', &[], out.client);
            }
            put(b'2', &[], out.client);
        }
        let any = hands.answers.find(&hub.answers, id, out.client);
        if !any || !is_fresh {
            out.client.truncate(before);
            let may_wait = any && freshness == Freshness::Checked;
            return if may_wait { self.wait(hub, asked.waited, hands) } else { Found::Nothing };
        }
        if run.is_some_and(|run| run.closed) {
            put(b'3', &[], out.client);
        }
        put(b'Z', &[&[self.shown_status()]], out.client);
        self.last = CACHE;
        match run.and_then(|run| run.parse.as_ref()) {
            Some(parse) => {
                let state = self.state.as_ref().map(|state| *state.hash());
                self.names.put(parse.name, Arc::clone(asked.text), false, state);
            }
            // A simple query ends the unnamed statement.
            None if run.is_none() => self.names.hide_unnamed(),
            None => {}
        }
        statement.counts.hits.fetch_add(1, Ordering::Relaxed);
        if matches!(asked.waited, Some(Waiting::Answer { .. })) {
            statement.counts.joined.fetch_add(1, Ordering::Relaxed);
        }
        Found::Answered
    }

    /// An answer is there, and may lack what was committed before its read began. Such a commit, as soon as others see
    /// it, is in the log before the place that is asked for. When the stream is there, what it changed was removed.
    fn wait(&mut self, hub: &Hub, waited: Option<Waiting>, hands: &Hands<'_>) -> Found {
        let waiting = match waited {
            None | Some(Waiting::Answer { .. } | Waiting::Definitions { .. }) => {
                Waiting::Place { ticket: hub.await_place(hands.waker), since_us: hands.now_us }
            }
            Some(waiting @ Waiting::Place { since_us, .. })
                if hands.now_us.saturating_sub(since_us) < micros(CHECK_PATIENCE) =>
            {
                hub.wake_again(hands.waker);
                waiting
            }
            Some(Waiting::Place { .. }) => return Found::Nothing,
        };
        self.waiting = Some(waiting);
        Found::Waits
    }

    /// No answer is there. Another session may be asking for it: a read waits for that once.
    fn join(
        &mut self,
        hub: &Hub,
        (statement, state): (&Statement, &state::State),
        id: &Hash,
        asked: &Asked<'_>,
        hands: &Hands<'_>,
    ) -> Found {
        let patience = if asked.waited.is_none() { statement.patience() } else { None };
        // Its own time at the source begins when it is sent there.
        let within = |patience: Duration| match state.timeout_ms() {
            Some(time) => patience.min(Duration::from_millis(time / 2)),
            None => patience,
        };
        let patience = patience.map(within);
        let Some(patience) = patience.filter(|_| hub.misses.wake(id, hands.waker)) else {
            return Found::Nothing;
        };
        let until_us = hands.now_us.saturating_add(micros(patience));
        self.waiting = Some(Waiting::Answer { id: *id, until_us });
        Found::Waits
    }

    /// Forwards a statement of which the source was not asked what it depends on.
    fn forward_new(
        &mut self,
        hub: &Arc<Hub>,
        statement: &Arc<Statement>,
        bytes: &[u8],
        hands: &Hands<'_>,
        out: &mut Out<'_>,
    ) {
        let after = if matches!(statement.text.wish(), Wish::Keep(_)) { 0 } else { INSPECT_AFTER };
        if statement.is_to_be_asked(after) {
            hub.inspect(statement);
        }
        self.forward(bytes, out);
        if let Some(Expected::Group(sent)) = self.expected.back_mut() {
            sent.execution = Some((Arc::clone(statement), hands.now_us));
        }
        // It may be a read: the next one finds out.
        self.ask_state_behind(&statement.text, out);
    }

    /// Forwards a group that only reads: the state stays what it was, and so does a transaction.
    pub(super) fn forward_read(&mut self, bytes: &[u8], state: &Arc<state::State>, out: &mut Out<'_>) {
        let in_block = self.block != Block::None;
        self.forward(bytes, out);
        self.state = Some(Arc::clone(state));
        if in_block {
            self.block = Block::Reading;
        }
        if let Some(Expected::Group(sent)) = self.expected.back_mut() {
            sent.reads = true;
        }
    }

    /// Asks for the session's state behind a statement that was forwarded.
    fn ask_state_behind(&mut self, text: &Arc<Text>, out: &mut Out<'_>) {
        if self.ask_state(Some(Arc::clone(text)), out) {
            let before = self.expected.len().saturating_sub(2);
            if let Some(Expected::Group(sent)) = self.expected.get_mut(before) {
                sent.reads = true;
            }
        }
    }

    /// Asks for the session's state, where that can be done. True: it was.
    pub(super) fn ask_state(&mut self, behind: Option<Arc<Text>>, out: &mut Out<'_>) -> bool {
        let whole = match self.expected.back() {
            None => true,
            Some(Expected::Group(sent)) => sent.ended,
            Some(_) => false,
        };
        // What is asked for in a transaction is part of it.
        let outside = matches!(self.block, Block::None | Block::Waiting { .. }) && self.status == b'I';
        let Some(hub) = self.hub.as_ref().filter(|_| whole && outside) else { return false };
        let question = hub.question();
        state::ask(&question, out.source);
        self.expected.push_back(Expected::State { changes: self.changes, question, row: None, behind });
        true
    }
}

/// The format of tags and answers. Answers that another version has kept are not found: changes are not told by their
/// tags.
const FORMAT: u8 = 1;

/// What identifies an answer: the statement with its state and the settings that it reads, what is asked for, and the
/// parameters.
fn id_of(statement: &Statement, dependences: &Dependences, state: &state::State, way: Way<'_>) -> Hash {
    let mut hash = Context::new(&SHA256);
    hash.update(&[FORMAT]);
    hash.update(statement.hash());
    hash.update(&statement.text.definitions.to_be_bytes());
    for name in &dependences.settings {
        state::add(&mut hash, state.asked(name).map(str::as_bytes));
    }
    if let Way::Bound { bind, described } = way {
        let formats = bind.result_formats();
        hash.update(&[1, u8::from(described)]);
        hash.update(&(formats.count() as u64).to_be_bytes());
        for at in 0..formats.count() {
            hash.update(&[u8::from(formats.of(at) == Format::Binary)]);
        }
        for (format, value) in bind.parameters() {
            hash.update(&[u8::from(format == Format::Binary)]);
            state::add(&mut hash, value);
        }
    }
    finished(hash)
}

impl<'b> Way<'b> {
    /// The values that it is asked with.
    fn parameters(self) -> Vec<Bound<'b>> {
        let Self::Bound { bind, .. } = self else { return Vec::new() };
        let value = |(format, value): (Format, Option<&'b [u8]>)| match (format, value) {
            (_, None) => Bound::Null,
            (Format::Text, Some(value)) => Bound::Text(value),
            (Format::Binary, Some(value)) => Bound::Binary(value),
        };
        bind.parameters().map(value).collect()
    }
}
/// Whether an answer of so many bytes is kept.
pub(super) fn is_kept(len: usize) -> bool {
    len <= ANSWER_BYTES_MAX
}
