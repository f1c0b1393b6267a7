//! A forwarded session, without I/O: bytes of both sides come in, bytes for both sides go out.
//!
//! ```text
//!   client --> client.rs: groups of requests --> reads.rs: answered here, from what is kept
//!                                            \-> requests.rs: forwarded, and noted in `expected`
//!   source --> source.rs: what the first that is expected answers --> the client; kept, where it may be
//! ```
//!
//! What is answered here is answered only while nothing is expected of the source, so that all answers come in their
//! order.

mod block;
mod client;
mod names;
mod own;
mod reads;
mod requests;
mod source;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use crate::answers::Answers;
use crate::gate::Moment;
use crate::hub::Hub;
use crate::limits::GROUP_BYTES_MAX;
use crate::misses::Miss;
use crate::places::Ticket;
use crate::state::{Hash, Question, State};
use crate::text::{Statement, Text};

use block::Block;
use names::Names;

/// What goes out.
#[derive(Debug)]
pub struct Out<'o> {
    /// To the client.
    pub client: &'o mut Vec<u8>,
    /// To the source.
    pub source: &'o mut Vec<u8>,
}

/// What a session works with for one turn.
pub struct Hands<'h> {
    /// Where answers are kept.
    pub answers: &'h mut Answers,
    /// The time, in microseconds.
    pub now_us: u64,
    /// Wakes the thread of the session.
    pub waker: &'h Waker,
}

impl std::fmt::Debug for Hands<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hands").field("now_us", &self.now_us).finish_non_exhaustive()
    }
}

/// See the module.
#[derive(Debug)]
pub struct Session {
    /// None: the server's answers are not kept, and the session only forwards.
    hub: Option<Arc<Hub>>,
    /// Which server its source is.
    identity: u64,
    /// Requests whose group's end has not come.
    input: Vec<u8>,
    /// How far the end was looked for.
    looked: usize,
    /// Bytes of a message that passes as it comes.
    through: usize,
    /// What the source has sent of a message.
    reply: Vec<u8>,
    /// Bytes of a message of the source that passes as it comes.
    reply_through: usize,
    /// What is forwarded is not understood any more, and passes as it comes.
    raw: bool,
    /// What the source is going to answer.
    expected: VecDeque<Expected>,
    names: Names,
    /// What the last `ReadyForQuery` said: idle, in a transaction, in one that failed.
    status: u8,
    /// None: it may have changed.
    state: Option<Arc<State>>,
    /// Counts what may have changed it.
    changes: u64,
    /// What is kept is not read before the stream has passed this place.
    fence: Option<Ticket>,
    /// What the first request waits for.
    waiting: Option<Waiting>,
    /// The client's transaction.
    block: Block,
    /// Who gave the last answer.
    last: &'static str,
    /// The state was asked for, for the request that is next.
    asked: bool,
}

/// What `SHOW sqlcached.last_answer` says.
const DATABASE: &str = "database";
const CACHE: &str = "cache";

/// What the source answers next.
#[derive(Debug)]
enum Expected {
    /// A group of the client's.
    Group(Sent),
    /// The beginning of a transaction, of which the client was told before.
    Begin,
    /// The session's state, as it is behind so many changes.
    State {
        changes: u64,
        question: Question,
        row: Option<Vec<Option<String>>>,
        /// What was forwarded in front of the question. Only in the state that comes it shows whether it is a read.
        behind: Option<Arc<Text>>,
    },
}

/// A statement that a group prepares: its name and text, how often names were doubted before, and the state.
type Prepares = (Box<str>, Option<Arc<Text>>, u64, Option<Hash>);

/// A group that was forwarded.
#[derive(Debug, Default)]
struct Sent {
    /// Its end was forwarded: `ReadyForQuery` follows.
    ended: bool,
    /// Statements of which the client was told before that they are prepared: their `ParseComplete` is ours.
    deferred: VecDeque<Box<str>>,
    /// Statements that it prepares, in their order.
    prepares: VecDeque<Prepares>,
    /// How often it closes what the client closed before: that `CloseComplete` is ours, too.
    closed: usize,
    /// The client has not sent it, and hears nothing of it.
    own: bool,
    /// It is a simple query.
    simple: bool,
    /// Whether rows come in.
    copy: Copying,
    /// It does nothing but read, or what it does is decided with the state that is asked for behind it.
    reads: bool,
    /// What it executes, and since when.
    execution: Option<(Arc<Statement>, u64)>,
    /// Its answer is to be kept.
    fill: Option<Box<Fill>>,
    /// The statement of which it asks for the description, and what came of it.
    description: Option<(Arc<Statement>, Vec<u8>)>,
}

/// `COPY FROM STDIN`. While its data comes, `Sync` and `Flush` are not answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Copying {
    #[default]
    No,
    Data,
    /// The data has ended, and the group ends with the next `Sync`.
    Ended,
}

/// What a read waits for. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    /// What is kept is to have all that was committed before the read began, when this was: the stream is to pass a
    /// place behind all of that.
    Place { ticket: Ticket, since_us: u64 },
    /// Another session's answer, until then.
    Answer { id: Hash, until_us: u64 },
    /// The definitions of the source, until then: what is prepared before they are known is only forwarded.
    Definitions { until_us: u64 },
}

/// Whether what is waited for may be there.
fn is_due(hub: Option<&Hub>, waiting: Waiting, now_us: u64) -> bool {
    match (hub, waiting) {
        (Some(hub), Waiting::Answer { id, until_us }) => now_us >= until_us || !hub.misses.has(&id),
        (Some(hub), Waiting::Definitions { until_us }) => now_us >= until_us || hub.knows_definitions(),
        _ => true,
    }
}

/// An answer that comes and may be kept.
#[derive(Debug)]
struct Fill {
    id: Hash,
    tags: Vec<String>,
    moment: Moment,
    body: Vec<u8>,
    /// It ended as an answer does.
    complete: bool,
    /// Others wait for it.
    miss: Option<Miss>,
}

impl Session {
    /// A session whose source connection has begun, at a server of this identity. None: what it reads is not kept.
    pub fn new(hub: Option<Arc<Hub>>, identity: u64) -> Self {
        Self {
            hub,
            identity,
            input: Vec::new(),
            looked: 0,
            through: 0,
            reply: Vec::new(),
            reply_through: 0,
            raw: false,
            expected: VecDeque::new(),
            names: Names::default(),
            status: b'I',
            state: None,
            changes: 0,
            fence: None,
            waiting: None,
            block: Block::None,
            last: DATABASE,
            asked: false,
        }
    }

    /// Whether nothing is expected of the source, and the client is in no transaction.
    pub fn is_idle(&self) -> bool {
        let in_block = self.status != b'I' || self.block != Block::None;
        self.expected.is_empty() && !in_block && self.input.is_empty()
    }

    /// Whether more of the client may be read: while the state is asked for, what comes has to wait.
    pub fn takes_more(&self) -> bool {
        self.input.len() < 2 * GROUP_BYTES_MAX
    }

    /// Whether its first request waits. It is looked at again when its thread is woken, or after
    /// [`CHECK_PATIENCE`](crate::CHECK_PATIENCE).
    pub fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether its first request, which waits, may have what it waits for; this is cheaper than to look at it.
    pub fn is_due(&self, now_us: u64) -> bool {
        self.waiting.is_none_or(|waiting| is_due(self.hub.as_deref(), waiting, now_us))
    }

    /// Its first request waits no more for another session's answer, or for what is not known yet.
    pub fn stop_joining(&mut self) {
        if let Some(Waiting::Answer { until_us, .. } | Waiting::Definitions { until_us }) = &mut self.waiting
        {
            *until_us = 0;
        }
    }

    /// Whether whole requests of the client wait here, for the session's state or for the stream.
    pub fn holds_requests(&self) -> bool {
        let only_state =
            self.expected.len() == 1 && matches!(self.expected.back(), Some(Expected::State { .. }));
        (self.waiting.is_some() || only_state) && !self.input.is_empty()
    }

    /// Looks again at the request that waits.
    pub fn look_again(&mut self, hands: &mut Hands<'_>, out: &mut Out<'_>) {
        self.client_sent(&[], hands, out);
    }

    /// Whether nothing more comes for the source if the client sends nothing more: no request waits here for what is
    /// still to come.
    pub fn has_sent_all(&self) -> bool {
        let goes_on = self.expected.is_empty() || !self.is_answered_soon();
        self.waiting.is_none() && (self.input.is_empty() || goes_on)
    }

    /// Whether the source has got whole messages, so that a further one may follow.
    pub fn is_between_messages(&self) -> bool {
        self.through == 0 && !self.raw
    }

    /// Bytes that it holds of messages that have not come whole.
    pub fn held(&self) -> usize {
        self.input.capacity() + self.reply.capacity()
    }

    /// What the client is told of its transaction: it does not know that one has not begun at the source.
    fn shown_status(&self) -> u8 {
        match self.block {
            Block::None => b'I',
            Block::Other => self.status,
            Block::Waiting { .. } | Block::Reading => b'T',
        }
    }

    /// Whether what comes next may be answered here, or kept: nothing is expected of the source, and a transaction has
    /// done nothing but read.
    fn may_read(&self) -> bool {
        let reads = match self.block {
            Block::None | Block::Waiting { .. } => self.status == b'I',
            Block::Reading => self.status == b'T',
            Block::Other => false,
        };
        self.expected.is_empty() && reads
    }

    /// Whether what comes next may be forwarded as a read behind others, which leave the state as it is.
    fn may_follow(&self) -> bool {
        let reads = |expected: &Expected| match expected {
            Expected::Group(sent) => sent.reads && sent.ended && sent.copy == Copying::No,
            Expected::Begin | Expected::State { .. } => false,
        };
        self.block == Block::None
            && self.status == b'I'
            && self.state.is_some()
            && self.expected.iter().all(reads)
    }

    /// Whether the state is asked for: it comes soon, and says what may be done with what follows.
    fn awaits_state(&self) -> bool {
        self.expected.iter().any(|expected| matches!(expected, Expected::State { .. }))
    }

    /// Whether all that is expected of the source comes without more of the client.
    fn is_answered_soon(&self) -> bool {
        let is_whole = |expected: &Expected| match expected {
            Expected::Group(sent) => sent.ended && sent.copy == Copying::No,
            Expected::Begin | Expected::State { .. } => true,
        };
        self.expected.iter().all(is_whole)
    }

    /// A statement may have changed the session's state, and what others read.
    fn note_change(&mut self) {
        self.state = None;
        self.changes += 1;
    }
}
