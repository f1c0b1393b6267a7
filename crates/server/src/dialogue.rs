//! What a worker does with a connection's bytes: read, parse, execute, reply.

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::{Answer, Counter, ThreadContext, Tick, Use, Verb};
use memcache::compose::sql_error;
use memcache::{KEY_MAX, Keys, Limits, Malformed, Parsed, Parser, Reply, Request, Then, binary, compose};

use crate::ahead::{Ahead, Foresight, WINDOW, Window};
use crate::connection::{Connection, FirstRead, Protocol};
use crate::limits::{
    BULK_READ_BYTES, COMMANDS_PER_TURN, FIRST_READ_BYTES, GROUP, IN_PLACE_FROM_BYTES,
    IN_PLACE_READS_PER_TURN, ITEM_HEADER_BYTES, REPLY_BUFFER_KEPT_BYTES, SEND_AT_BYTES, STRANGER_BYTES,
};
use crate::mailbox::Mailbox;
use crate::meta;
use crate::pinned::Pinned;
use crate::proofs::Proofs;
use crate::reply::{TextValue, ValueSink, write_answer};
use crate::shared::Shared;
use crate::spare::SpareBuffers;
use crate::sql_threads::{Statement, Statements, Text};
use crate::stranger::Stranger;
use crate::telling::Held;

/// A worker's tools, which it uses for one connection after the other.
#[derive(Debug)]
pub(crate) struct RequestLoop {
    pub(crate) context: ThreadContext,
    pub(crate) shared: Arc<Shared>,
    pub(crate) parser: Parser,
    /// Where all connections are read to. A request that is not whole at the end of a turn moves to its connection.
    pub(crate) read: Vec<u8>,
    /// Buffers for large requests that come in pieces.
    pub(crate) spare: SpareBuffers,
    /// Where connections are read to ahead of their turns, a buffer for each of a group: a panic in the turn of one
    /// costs nobody else their bytes.
    first: [Vec<u8>; GROUP],
    /// The replies of this turn.
    pub(crate) out: Vec<u8>,
    /// Large values among them.
    pub(crate) pinned: Pinned,
    /// Replies of this turn that wait for the bus.
    pub(crate) held: Vec<Held>,
    /// How much of `out` are whole replies, which are sent even if the next command panics.
    pub(crate) whole: usize,
    statements: Statements,
    pub(crate) proofs: Proofs,
    /// Turns that connections may still have in this round to agree on keys.
    pub(crate) handshakes: usize,
    /// Where SQL threads send their replies.
    pub(crate) mailbox: Arc<Mailbox>,
    /// The mailboxes of all workers.
    pub(crate) colleagues: Arc<[Arc<Mailbox>]>,
}

/// What a connection wants after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// An event, or a message.
    Wait,
    /// Another turn, after the others had theirs.
    Again,
    /// To be closed.
    Close,
}

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Executed {
    /// Answered.
    Whole,
    /// A SQL thread has it; what follows waits.
    HandedOver,
    /// Answered in part; it comes again.
    InPart,
    /// The last one.
    Last,
}

/// How far a turn came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    pub(crate) consumed: usize,
    /// What is to be kept of the input ends here.
    pub(crate) end: usize,
    /// It ended in the middle of a request.
    pub(crate) waits_for_peer: bool,
    /// It executed something.
    pub(crate) progress: bool,
}

impl RequestLoop {
    pub(crate) fn new(
        context: ThreadContext,
        shared: Arc<Shared>,
        (statements, proofs): (Statements, Proofs),
        mailbox: Arc<Mailbox>,
        colleagues: Arc<[Arc<Mailbox>]>,
    ) -> Self {
        let item_size_max = context.engine().options().item_size_max;
        let value_max = item_size_max.saturating_sub(ITEM_HEADER_BYTES);
        let parser = Parser::new(Limits { value_max, ..Limits::default() });
        let read = vec![0; BULK_READ_BYTES];
        let first = std::array::from_fn(|_| vec![0; FIRST_READ_BYTES]);
        let out = Vec::new();
        let (pinned, spare) = (Pinned::default(), SpareBuffers::default());
        Self {
            context,
            shared,
            parser,
            read,
            spare,
            first,
            out,
            pinned,
            held: Vec::new(),
            whole: 0,
            statements,
            proofs,
            handshakes: 0,
            mailbox,
            colleagues,
        }
    }

    /// Reads for a connection ahead of its turn, and asks memory for what its first request looks up.
    #[inline]
    pub(crate) fn read_first(&mut self, part: usize, connection: &mut Connection, ahead: &mut Ahead) {
        if !connection.may_read_first() {
            return;
        }
        let buffer = &mut self.first[part][..connection.first_read_bytes()];
        let len = connection.receive(buffer);
        self.context.count(Counter::BytesRead, len as u64);
        if len == 0 {
            return;
        }
        connection.first_read = Some(FirstRead { part, len });
        let read = &buffer[..len];
        let looked_up = match connection.protocol(read) {
            Protocol::Text => self.parser.parse(read).looks_up(),
            Protocol::Binary => binary::parse(self.parser.limits(), read).looks_up(),
        };
        if let Some((key, purpose)) = looked_up {
            ahead.bucket(&self.context, key, purpose);
        }
    }

    /// Gives a connection its turn: sends what waits, reads once, executes what is whole, sends the replies.
    #[inline]
    pub(crate) fn turn(&mut self, connection: &mut Connection) -> Next {
        if connection.socket.output_waiting() > 0 {
            let sent = connection.socket.flush();
            self.context.count(Counter::BytesWritten, sent as u64);
        }
        if connection.session.is_stranger() && self.must_wait(connection) {
            return Next::Again;
        }
        self.context.serves(connection.raw_fd());
        if connection.watching.is_some() {
            self.send_events(connection);
        }
        let may_execute = connection.statement.is_none()
            && connection.socket.keeps_up()
            && !connection.closing
            && (connection.stalled || connection.readable || connection.first_read.is_some());
        if may_execute {
            let run = self.work(connection);
            self.send(connection);
            if !connection.note_turn(self.context.now(), run.waits_for_peer, run.progress) {
                self.context.count(Counter::OutputKicks, 1);
                connection.socket.broken = true;
            }
            if self.out.capacity() > REPLY_BUFFER_KEPT_BYTES {
                self.out = Vec::new();
            }
        }
        self.next(connection)
    }

    /// Sends a watcher what happened, while it reads what it was sent before.
    #[cold]
    fn send_events(&mut self, connection: &mut Connection) {
        if let Some(watching) = connection.watching.as_ref().filter(|_| connection.socket.keeps_up()) {
            watching.take(&mut self.out);
            self.send(connection);
        }
    }

    /// The end of a statement: its reply goes out, and the connection goes on.
    pub(crate) fn finish_statement(
        &mut self,
        connection: &mut Connection,
        mut reply: Vec<u8>,
        panicked: bool,
    ) {
        connection.statement = None;
        connection.closing |= panicked;
        let sent = connection.socket.deliver(&mut reply, self.context.now());
        self.context.count(Counter::BytesWritten, sent as u64);
        if !connection.note_turn(self.context.now(), false, true) {
            self.context.count(Counter::OutputKicks, 1);
            connection.socket.broken = true;
        }
    }

    /// After a panic in `turn`: what was answered before goes out, and the peer learns that it was not its fault.
    #[cold]
    pub(crate) fn apologise(&mut self, connection: &mut Connection) {
        self.context.count(Counter::Panics, 1);
        self.held.clear();
        self.out.truncate(self.whole);
        self.pinned.truncate(self.whole, &self.shared.engine);
        // A frame would have to name the request that it answers.
        if connection.protocol == Some(Protocol::Text) {
            compose(&Reply::ServerError("internal error"), &mut self.out);
        }
        self.send(connection);
        self.read.resize(BULK_READ_BYTES, 0);
        self.first.iter_mut().for_each(|buffer| buffer.resize(FIRST_READ_BYTES, 0));
    }

    fn next(&self, connection: &Connection) -> Next {
        // A statement whose client is gone is canceled by closing. Other requests are executed to the last: their
        // effects were asked for.
        if connection.socket.broken || (connection.hung_up && connection.statement.is_some()) {
            return Next::Close;
        }
        if connection.statement.is_some() || !connection.socket.keeps_up() {
            return Next::Wait;
        }
        if !connection.closing && (connection.stalled || connection.readable) {
            return Next::Again;
        }
        let ended = connection.socket.ended && !connection.listens();
        let finished = connection.closing || ended || self.shared.is_draining();
        if finished && connection.socket.output_waiting() == 0 { Next::Close } else { Next::Wait }
    }

    #[inline]
    pub(crate) fn send(&mut self, connection: &mut Connection) {
        let now = self.context.now();
        let sent = if self.pinned.is_empty() {
            connection.socket.deliver(&mut self.out, now)
        } else {
            self.send_pinned(connection, now)
        };
        self.context.count(Counter::BytesWritten, sent as u64);
        self.whole = 0;
    }

    /// Sends replies with large values between them from where these lie.
    fn send_pinned(&mut self, connection: &mut Connection, now: Tick) -> usize {
        let (engine, socket) = (&self.shared.engine, &mut connection.socket);
        let sent = self.pinned.with_slices(&self.out, engine, |slices| socket.deliver_slices(slices, now));
        self.pinned.unpin(engine);
        self.out.clear();
        sent
    }

    /// Whether so much is to be sent that it should not wait for the rest of the turn.
    #[inline]
    pub(crate) fn has_much_to_send(&self) -> bool {
        self.out.len() + self.pinned.bytes() >= SEND_AT_BYTES || !self.pinned.has_room()
    }

    /// Reads, unless whole requests are left from before, and executes.
    #[inline]
    fn work(&mut self, connection: &mut Connection) -> Run {
        let mut run = match connection.receiving.take() {
            Some(receiving) => self.continue_receiving(connection, receiving),
            None => self.work_in_buffer(connection),
        };
        // What has come with the line of a large value is mostly not all that waits.
        for _ in 1..IN_PLACE_READS_PER_TURN {
            let Some(receiving) = connection.receiving.take_if(|_| connection.readable) else { break };
            let more = self.continue_receiving(connection, receiving);
            run = Run { progress: run.progress || more.progress, ..more };
        }
        run
    }

    #[inline]
    fn work_in_buffer(&mut self, connection: &mut Connection) -> Run {
        if connection.stalled || connection.wants_own_buffer() {
            return self.work_in_own_buffer(connection);
        }
        match connection.first_read.take() {
            Some(FirstRead { part, len }) if len < FIRST_READ_BYTES || connection.sends_long => {
                // Taken out for the turn, because requests borrow from it while they are executed.
                let read = std::mem::take(&mut self.first[part]);
                let run = self.run_kept(connection, &read[..len]);
                self.first[part] = read;
                run
            }
            first => self.read_on(connection, first),
        }
    }

    /// Reads behind what is there of a connection's bytes, in the shared buffer, and executes.
    #[inline]
    fn read_on(&mut self, connection: &mut Connection, first: Option<FirstRead>) -> Run {
        let mut read = std::mem::take(&mut self.read);
        let there = match first {
            Some(FirstRead { part, len }) => &self.first[part][..len],
            None => &connection.input[..],
        };
        let carried = there.len();
        read[..carried].copy_from_slice(there);
        let most = connection.read_to(carried);
        let received = connection.receive(&mut read[carried..most]);
        self.context.count(Counter::BytesRead, received as u64);
        let run = self.run_kept(connection, &read[..carried + received]);
        self.read = read;
        run
    }

    /// Executes what is whole of what was read, and keeps the rest for the next turn.
    #[inline]
    fn run_kept(&mut self, connection: &mut Connection, read: &[u8]) -> Run {
        let run = self.run(connection, read);
        connection.note_read(read.len());
        connection.keep(&read[run.consumed..run.end], &mut self.spare);
        run
    }

    fn work_in_own_buffer(&mut self, connection: &mut Connection) -> Run {
        if !connection.stalled {
            let received = connection.receive_into_own();
            self.context.count(Counter::BytesRead, received as u64);
            if connection.input.len() < connection.needed {
                return Run { waits_for_peer: true, ..Run::default() };
            }
        }
        let mut input = std::mem::take(&mut connection.input);
        let run = self.run(connection, &input);
        input.truncate(run.end);
        connection.keep_own(input, run.consumed, &mut self.spare);
        run
    }

    /// Executes what is whole in `input`.
    #[inline]
    pub(crate) fn run(&mut self, connection: &mut Connection, input: &[u8]) -> Run {
        if connection.session.is_stranger() {
            return self.run_login(connection, input);
        }
        connection.session.refresh(&self.shared.engine.access);
        match connection.protocol(input) {
            Protocol::Text => self.run_text(connection, input),
            Protocol::Binary => self.run_binary(connection, input),
        }
    }

    #[inline]
    fn run_text(&mut self, connection: &mut Connection, input: &[u8]) -> Run {
        let mut run = Run { end: input.len(), ..Run::default() };
        let mut budget = COMMANDS_PER_TURN;
        let mut window = Window::new();
        connection.stalled = false;
        connection.needed = 0;
        while let Some(rest) = next_request(connection, &input[run.consumed..], &mut run) {
            if budget == 0 || !connection.socket.keeps_up() {
                self.context.count(Counter::ConnYields, 1);
                connection.stalled = true;
                break;
            }
            let (parser, mut searched) = (&self.parser, connection.searched);
            // Only of the first request a part was searched before.
            let parse = |input| parser.parse_from(input, std::mem::take(&mut searched));
            let Some(parsed) = window.next(&self.context, rest, parse) else { break };
            if self.is_behind_held(&parsed) {
                connection.stalled = true;
                break;
            }
            match parsed {
                Parsed::Complete { request, consumed } => {
                    connection.searched = 0;
                    connection.is_known = true;
                    budget -= 1;
                    match self.execute(connection, request, &mut budget) {
                        Executed::Whole => run.consumed += consumed,
                        Executed::HandedOver => {
                            run.consumed += consumed;
                            connection.stalled = run.consumed < input.len();
                            run.progress = true;
                            break;
                        }
                        Executed::InPart => {
                            connection.stalled = true;
                            run.progress = true;
                            break;
                        }
                        Executed::Last => {
                            connection.closing = true;
                            break;
                        }
                    }
                    connection.keys_done = 0;
                    run.progress = true;
                }
                Parsed::Malformed { reply: Malformed::Http, .. } if !connection.is_known => {
                    self.turn_away(Stranger::Http);
                    run.consumed = input.len();
                    connection.closing = true;
                    break;
                }
                Parsed::Incomplete { .. } | Parsed::Malformed { .. }
                    if self.is_stranger(connection, rest) =>
                {
                    run.consumed = input.len();
                    connection.closing = true;
                    break;
                }
                Parsed::Incomplete { needed, searched } => {
                    connection.needed = needed;
                    connection.searched = searched;
                    run.waits_for_peer = true;
                    if needed >= IN_PLACE_FROM_BYTES
                        && let Some(line) = self.begin_receiving(connection, rest)
                    {
                        run.end = run.consumed + line;
                    }
                    break;
                }
                Parsed::Malformed { reply, consumed, swallow, then, invalidate, noreply } => {
                    connection.searched = 0;
                    budget -= 1;
                    run.consumed += consumed;
                    run.progress = true;
                    connection.swallow = swallow;
                    if let Some(key) = invalidate {
                        connection.session.invalidate(&mut self.context, key.bytes(&mut [0; KEY_MAX]));
                    }
                    if !noreply {
                        reply.compose(&mut self.out);
                    }
                    if then == Then::Close {
                        connection.closing = true;
                        if reply == Malformed::Http {
                            self.shared.strangers.mention(Stranger::Http, self.context.now());
                        }
                        break;
                    }
                }
            }
            self.note_whole(connection);
        }
        self.await_bus(connection);
        self.whole = self.out.len();
        run
    }

    /// What was answered so far is whole, and goes out if it is much. What is held back is neither.
    #[inline]
    pub(crate) fn note_whole(&mut self, connection: &mut Connection) {
        if !self.held.is_empty() {
            return;
        }
        self.whole = self.out.len();
        if self.has_much_to_send() {
            self.send(connection);
        }
    }

    /// Whether a connection begins with another protocol. Only its first bytes are asked: later the same may be the
    /// rest of a value whose length was wrong.
    #[cold]
    fn is_stranger(&mut self, connection: &mut Connection, first: &[u8]) -> bool {
        if connection.is_known {
            return false;
        }
        let Some(stranger) = Stranger::on_memcached_port(first) else {
            // No command begins with a capital; HTTP's requests do, and are known by the end of their line.
            let may_be_http = first.first().is_some_and(u8::is_ascii_uppercase);
            connection.is_known = first.len() >= STRANGER_BYTES && !may_be_http;
            return false;
        };
        self.turn_away(stranger);
        true
    }

    /// Tells a peer of another protocol where that is spoken; the connection is closed.
    #[cold]
    fn turn_away(&mut self, stranger: Stranger) {
        self.shared.strangers.mention(stranger, self.context.now());
        stranger.answer(&self.shared.ports, &mut self.out);
    }

    #[inline]
    fn execute(&mut self, connection: &mut Connection, request: Request<'_>, budget: &mut usize) -> Executed {
        let (answer, noreply) = match request {
            Request::Get { keys, cas } => return self.retrieve(connection, keys, cas, None, budget),
            Request::Store { verb, key, flags, exptime, value, noreply } => {
                let session = &connection.session;
                (session.store(&mut self.context, verb_of(verb), key, flags, exptime, value), noreply)
            }
            Request::GetAndTouch { exptime, keys, cas } => {
                return self.retrieve(connection, keys, cas, Some(exptime), budget);
            }
            Request::Delete { key, noreply } => (connection.session.delete(&mut self.context, key), noreply),
            Request::Arithmetic { incr, key, delta, noreply } => {
                (connection.session.arithmetic(&mut self.context, incr, key, delta), noreply)
            }
            Request::Touch { key, exptime, noreply } => {
                (connection.session.touch(&mut self.context, key, exptime), noreply)
            }
            Request::FlushAll { delay, noreply } => {
                (connection.session.flush_all(&mut self.context, delay), noreply)
            }
            Request::MetaGet(meta) => return self.meta_get(connection, &meta),
            Request::MetaSet { meta, value } => {
                let start = self.out.len();
                meta::set(&connection.session, &mut self.context, &meta, value, &mut self.out);
                self.after_telling(start, None);
                return Executed::Whole;
            }
            Request::Sql { statement } => return self.hand_over(connection, statement, None),
            Request::SqlParams { statement, parameters } => {
                return self.hand_over(connection, statement, Some(parameters));
            }
            Request::Call { name, arguments } => {
                let (statement, parameters) = (name.to_vec(), Some(arguments.to_vec()));
                return self.hand_over_text(connection, Text { statement, parameters, calls: true });
            }
            request => return self.execute_rare(connection, &request),
        };
        self.answer_telling(&answer, noreply)
    }

    /// Answers a command of which other caches may hear.
    #[inline]
    pub(crate) fn answer_telling(&mut self, answer: &Answer, noreply: bool) -> Executed {
        if noreply {
            self.do_not_wait();
            return Executed::Whole;
        }
        let start = self.out.len();
        write_answer(answer, &mut self.out);
        self.after_telling(start, None);
        Executed::Whole
    }

    /// `get`, `gets`, `gat` and `gats`: key by key, so that any number of keys and any size of values leaves this
    /// thread and the connection within their limits.
    #[inline]
    fn retrieve(
        &mut self,
        connection: &mut Connection,
        keys: Keys<'_>,
        cas: bool,
        exptime: Option<i64>,
        budget: &mut usize,
    ) -> Executed {
        let mut keys = keys.skip(connection.keys_done);
        // The keys that were looked ahead over, which of them is next, and how many they are.
        let (mut ahead, mut place, mut count) = (None, 0, 0);
        while let Some(key) = keys.next() {
            if place == count {
                ahead = self.look_ahead(key, keys.clone());
                (place, count) = (0, ahead.as_ref().map_or(1, Ahead::len));
            }
            if let Some(ahead) = &ahead {
                ahead.values(&self.context, place);
            }
            place += 1;
            if self.has_much_to_send() {
                self.whole = self.out.len();
                self.send(connection);
            }
            if *budget == 0 || !connection.socket.keeps_up() {
                return Executed::InPart;
            }
            *budget -= 1;
            let mut found = match connection.fetching {
                None => self.look_up(connection, (key, cas), exptime),
                Some(_) => self.look_up_fetched(connection, (key, cas), exptime),
            };
            if matches!(found, Ok(false)) && self.context.take_missed() {
                if self.await_rows(connection, std::iter::once(key).chain(keys.clone())) {
                    return Executed::InPart;
                }
                let arrived = self.give_arrived(connection, key, exptime, TextValue { key, cas });
                found = arrived.unwrap_or(Ok(false));
            }
            if let Err(refusal) = found {
                write_answer(&refusal, &mut self.out);
                connection.fetching = None;
                return Executed::Whole;
            }
            connection.keys_done += 1;
        }
        if connection.fetching.is_some() {
            (connection.fetching, connection.fetches) = (None, 0);
        }
        compose(&Reply::End, &mut self.out);
        Executed::Whole
    }

    #[inline]
    fn look_up(
        &mut self,
        connection: &Connection,
        (key, cas): (&[u8], bool),
        exptime: Option<i64>,
    ) -> Result<bool, Answer> {
        let mut sink = ValueSink::new(&mut self.out, &mut self.pinned, TextValue { key, cas });
        match exptime {
            None => connection.session.get(&mut self.context, key, &mut sink),
            Some(exptime) => connection.session.get_and_touch(&mut self.context, exptime, key, &mut sink),
        }
    }

    /// What came of a source for a key of this request, or else what is there.
    #[cold]
    fn look_up_fetched(
        &mut self,
        connection: &Connection,
        (key, cas): (&[u8], bool),
        exptime: Option<i64>,
    ) -> Result<bool, Answer> {
        let arrived = self.give_arrived(connection, key, exptime, TextValue { key, cas });
        arrived.unwrap_or_else(|| self.look_up(connection, (key, cas), exptime))
    }

    /// Asks memory for the rows of a key and of some that follow it; not for one alone.
    #[inline]
    fn look_ahead<'k>(&self, first: &'k [u8], following: impl Iterator<Item = &'k [u8]>) -> Option<Ahead> {
        let mut following = following.take(WINDOW - 1).peekable();
        following.peek()?;
        let mut ahead = Ahead::new();
        for key in std::iter::once(first).chain(following) {
            ahead.bucket(&self.context, key, Use::Read);
        }
        ahead.rows(&self.context);
        Some(ahead)
    }

    fn execute_rare(&mut self, connection: &mut Connection, request: &Request<'_>) -> Executed {
        let out = &mut self.out;
        match request {
            Request::Version => compose(&Reply::Version(connection.session.version()), out),
            Request::Quit => return Executed::Last,
            Request::MetaDelete(meta) => {
                let start = out.len();
                meta::delete(&connection.session, &mut self.context, meta, out);
                self.after_telling(start, None);
            }
            Request::MetaArithmetic(meta) => {
                let start = out.len();
                meta::arithmetic(&connection.session, &mut self.context, meta, out);
                self.after_telling(start, None);
            }
            Request::MetaDebug(meta) => meta::debug(&connection.session, &mut self.context, meta, out),
            Request::MetaNoop => compose(&Reply::MetaNoop, out),
            Request::Stats(subject) => return self.stats(connection, *subject),
            request => return self.operate(connection, request),
        }
        Executed::Whole
    }

    /// Gives a statement to the SQL threads.
    fn hand_over(
        &mut self,
        connection: &mut Connection,
        statement: &[u8],
        parameters: Option<&[u8]>,
    ) -> Executed {
        let (statement, parameters) = (statement.to_vec(), parameters.map(<[u8]>::to_vec));
        self.hand_over_text(connection, Text { statement, parameters, calls: false })
    }

    fn hand_over_text(&mut self, connection: &mut Connection, text: Text) -> Executed {
        match self.submit(connection, text) {
            ControlFlow::Continue(()) => Executed::HandedOver,
            ControlFlow::Break(()) => {
                sql_error("53300", "too many statements wait (sql_queue); try again later", &mut self.out);
                Executed::Whole
            }
        }
    }

    /// Lets a connection wait for the end of its statement.
    fn submit(&self, connection: &mut Connection, text: Text) -> ControlFlow<()> {
        let (address, session) = (connection.address, connection.session.clone());
        let statement = Statement::new(address, session, Arc::clone(&self.mailbox), text);
        let cancel = statement.cancel();
        self.statements.submit(statement)?;
        connection.statement = Some(cancel);
        ControlFlow::Continue(())
    }
}

/// What is left of the input after what must be thrown away; none when nothing is left.
#[inline]
pub(crate) fn next_request<'i>(
    connection: &mut Connection,
    mut rest: &'i [u8],
    run: &mut Run,
) -> Option<&'i [u8]> {
    if connection.swallow > 0 {
        let thrown_away = connection.swallow.min(rest.len());
        connection.swallow -= thrown_away;
        run.consumed += thrown_away;
        run.waits_for_peer = connection.swallow > 0;
        rest = &rest[thrown_away..];
    }
    (!rest.is_empty()).then_some(rest)
}

#[inline]
pub(crate) fn verb_of(verb: memcache::Verb) -> Verb {
    match verb {
        memcache::Verb::Set => Verb::Set,
        memcache::Verb::Add => Verb::Add,
        memcache::Verb::Replace => Verb::Replace,
        memcache::Verb::Append => Verb::Append,
        memcache::Verb::Prepend => Verb::Prepend,
        memcache::Verb::Cas(cas) => Verb::Cas(cas),
    }
}
