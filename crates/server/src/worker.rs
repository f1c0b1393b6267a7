//! A worker: one readiness loop over many connections. It never waits for anything else.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use engine::{Counter, Happening, Tick, ticks_between};
use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use crate::ahead::Ahead;
use crate::connection::{Connection, HeldAnswer, Newcomer, Overdue};
use crate::conns;
use crate::dialogue::{Next, RequestLoop};
use crate::limits::{CONNS_PER_MESSAGE, EVENTS_PER_POLL, GROUP, HANDSHAKE_TURNS, SWEEP_INTERVAL};
use crate::mailbox::{Address, Gathering, Mailbox, Message, SqlReply};
use crate::pace::{ticks, wait_ticks};
use crate::password::Verdict;

/// The token of the mailbox; connections have their place as theirs.
pub(crate) const MAIL: Token = Token(usize::MAX);

/// One worker thread's connections and tools.
#[derive(Debug)]
pub(crate) struct Worker {
    poll: Poll,
    requests: RequestLoop,
    mailbox: Arc<Mailbox>,
    /// Connections by place. Boxed: a connection moves between free places and the table, and most of a large table
    /// of small places is empty.
    connections: Vec<Option<Box<Connection>>>,
    /// Places without a connection.
    free: Vec<usize>,
    /// Connections that have something to do without an event, in the order of their turns.
    queue: std::collections::VecDeque<usize>,
    /// The number of the next connection.
    serial: u64,
    swept: Tick,
    /// Every connection was told to finish.
    draining: bool,
}

impl Worker {
    pub(crate) fn new(poll: Poll, requests: RequestLoop, mailbox: Arc<Mailbox>) -> Self {
        let swept = requests.context.now();
        Self {
            poll,
            requests,
            mailbox,
            connections: Vec::new(),
            free: Vec::new(),
            queue: std::collections::VecDeque::new(),
            serial: 0,
            swept,
            draining: false,
        }
    }

    /// Serves until the server drains and the last connection is gone, or the server stops.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_PER_POLL);
        loop {
            if let Err(error) = self.poll.poll(&mut events, self.patience())
                && error.kind() != io::ErrorKind::Interrupted
            {
                // Only a descriptor or an address that is wrong can cause this: our own mistake.
                tracing::error!(%error, "worker cannot wait for events");
                return;
            }
            self.requests.context.begin_batch();
            self.requests.handshakes = HANDSHAKE_TURNS;
            if self.handle(&events) {
                self.read_mail();
            }
            self.run_queue();
            self.sweep();
            if self.is_finished() {
                return;
            }
        }
    }

    /// How long to wait for events.
    fn patience(&self) -> Option<Duration> {
        if !self.queue.is_empty() {
            Some(Duration::ZERO)
        } else if self.free.len() == self.connections.len() {
            None
        } else {
            Some(SWEEP_INTERVAL)
        }
    }

    /// Serves the connections that have something to read or room to write; says whether there is mail.
    fn handle(&mut self, events: &Events) -> bool {
        let mut mail = false;
        let (mut group, mut count) = ([0; GROUP], 0);
        for event in events {
            if event.token() == MAIL {
                mail = true;
                continue;
            }
            self.note(event);
            group[count] = event.token().0;
            count += 1;
            if count == GROUP {
                self.serve(&group);
                count = 0;
            }
        }
        self.serve(&group[..count]);
        mail
    }

    #[inline]
    fn note(&mut self, event: &Event) {
        let Some(Some(connection)) = self.connections.get_mut(event.token().0) else { return };
        connection.hung_up |= event.is_error() || event.is_write_closed();
        connection.socket.half_closed |= event.is_read_closed();
        if (event.is_readable() || connection.socket.half_closed || connection.hung_up)
            && !connection.socket.ended
        {
            connection.readable = true;
        }
    }

    /// Reads for a group of connections, and gives each its turn.
    fn serve(&mut self, group: &[usize]) {
        if group.len() > 1 {
            let (requests, connections) = (&mut self.requests, &mut self.connections);
            // What was read is executed in the turns, whatever becomes of looking ahead.
            let _panicked = catch_unwind(AssertUnwindSafe(|| {
                let mut ahead = Ahead::new();
                for (part, place) in group.iter().enumerate() {
                    if let Some(Some(connection)) = connections.get_mut(*place) {
                        requests.read_first(part, connection, &mut ahead);
                    }
                }
                ahead.rows(&requests.context);
            }));
        }
        for place in group {
            self.turn(*place);
        }
    }

    /// Gives a connection its turn and sees to what it wants next.
    #[inline]
    fn turn(&mut self, place: usize) {
        let Some(Some(connection)) = self.connections.get_mut(place) else { return };
        let requests = &mut self.requests;
        // What the turn leaves behind is looked at by `apologise` only, which knows what to trust, and the connection
        // is closed.
        let next = catch_unwind(AssertUnwindSafe(|| requests.turn(connection))).unwrap_or_else(|_| {
            requests.apologise(connection);
            Next::Close
        });
        match next {
            Next::Close => {
                self.close(place, "normal");
                return;
            }
            Next::Again if !connection.queued => {
                connection.queued = true;
                self.queue.push_back(place);
            }
            Next::Again | Next::Wait => {}
        }
        let awaits_room = connection.socket.output_waiting() > 0;
        if awaits_room != connection.awaits_room {
            self.watch(place, awaits_room);
        }
    }

    /// Asks for events, for room to write only while replies wait: an event for each reply that a peer has read would
    /// double the work.
    fn watch(&mut self, place: usize, awaits_room: bool) {
        let Some(Some(connection)) = self.connections.get_mut(place) else { return };
        let interest = if awaits_room { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        connection.awaits_room = awaits_room;
        let fd = connection.raw_fd();
        if self.poll.registry().reregister(&mut SourceFd(&fd), Token(place), interest).is_err() {
            self.close(place, "error");
        }
    }

    /// One turn for each connection that was in the queue.
    fn run_queue(&mut self) {
        for _ in 0..self.queue.len() {
            let Some(place) = self.queue.pop_front() else { return };
            if let Some(Some(connection)) = self.connections.get_mut(place) {
                connection.queued = false;
                self.turn(place);
            }
        }
    }

    fn read_mail(&mut self) {
        for message in self.mailbox.take() {
            match message {
                Message::Connection(newcomer) => self.open(*newcomer),
                Message::Reply(reply) => self.finish_statement(reply),
                Message::Events(address) => self.wake(address),
                Message::Arrived(address) => self.go_on_with_rows(address),
                Message::Describe { gathering, from } => self.describe(&gathering, from),
            }
        }
        if self.requests.shared.is_draining() && !self.draining {
            self.draining = true;
            self.begin_drain();
        }
    }

    fn open(&mut self, newcomer: Newcomer) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let address = Address { place, serial: self.serial };
        self.serial += 1;
        let shared = Arc::clone(&self.requests.shared);
        let connection = Box::new(Connection::new(newcomer, shared, address, self.requests.context.now()));
        let fd = connection.raw_fd();
        self.report(&connection, None);
        self.connections[place] = Some(connection);
        // What the peer has sent already is announced by the registration.
        if self.poll.registry().register(&mut SourceFd(&fd), Token(place), Interest::READABLE).is_err() {
            self.close(place, "error");
        }
    }

    /// Reports to those who watch that a connection came, or went for a reason.
    fn report(&self, connection: &Connection, reason: Option<&'static str>) {
        let engine = &self.requests.shared.engine;
        if !engine.watches_connections() {
            return;
        }
        let address = conns::peer(connection);
        let peer = address.map_or_else(String::new, |address| address.ip().to_string());
        let (port, peer, connection) =
            (address.map_or(0, |address| address.port()), peer.as_str(), connection.raw_fd());
        engine.notify_connection(match reason {
            None => Happening::Connected { connection, peer, port },
            Some(reason) => Happening::Closed { connection, peer, port, reason },
        });
    }

    /// Gives a connection a turn that events wait for.
    fn wake(&mut self, address: Address) {
        if self
            .connections
            .get(address.place)
            .and_then(Option::as_ref)
            .is_some_and(|there| there.address == address)
        {
            self.turn(address.place);
        }
    }

    /// Lets a connection go on whose rows have arrived. A message may be left of rows for which it did not wait.
    fn go_on_with_rows(&mut self, address: Address) {
        let Some(Some(connection)) = self.connections.get_mut(address.place) else { return };
        let arrived = connection.fetching.as_ref().is_some_and(|waiter| waiter.is_over());
        if connection.address == address && connection.awaits_rows && arrived {
            connection.awaits_rows = false;
            connection.statement = None;
            self.turn(address.place);
        }
    }

    /// Reports some connections, and the next ones with another message, so that nobody waits for all of them.
    fn describe(&self, gathering: &Arc<Gathering>, from: usize) {
        let until = (from + CONNS_PER_MESSAGE).min(self.connections.len());
        let some = &self.connections[from.min(until)..until];
        gathering.add(&conns::lines_of(some.iter().flatten().map(Box::as_ref), self.requests.context.now()));
        if until < self.connections.len() {
            self.mailbox.send(Message::Describe { gathering: Arc::clone(gathering), from: until });
        } else {
            gathering.finish();
        }
    }

    fn close(&mut self, place: usize, reason: &'static str) {
        // Closing the descriptor takes it out of the epoll.
        let Some(connection) = self.connections.get_mut(place).and_then(Option::take) else { return };
        self.report(&connection, Some(reason));
        self.free.push(place);
        if connection.queued {
            self.queue.retain(|queued| *queued != place);
        }
    }

    fn finish_statement(&mut self, reply: SqlReply) {
        let SqlReply { address, bytes, panicked, verdict } = reply;
        if let Some(Some(connection)) = self.connections.get_mut(address.place)
            && connection.address == address
        {
            if let Some(Verdict { session, wait_ms }) = verdict {
                if let Some(session) = session {
                    connection.let_in(session);
                } else {
                    let since = self.requests.context.now();
                    let wait = wait_ticks(wait_ms);
                    connection.hold_answer(HeldAnswer { bytes, since, wait });
                    return;
                }
            }
            self.requests.finish_statement(connection, bytes, panicked);
            self.turn(address.place);
        }
    }

    /// Closes what is too slow, and what has been idle for too long.
    fn sweep(&mut self) {
        let now = self.requests.context.now();
        if ticks_between(self.swept, now) < ticks(SWEEP_INTERVAL) {
            return;
        }
        self.swept = now;
        let idle = self.requests.shared.idle_timeout();
        let idle_ticks = idle.map(ticks);
        let login_ticks = ticks(self.requests.shared.authentication_timeout());
        for place in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[place] else { continue };
            if let Some(held) =
                connection.held_answer.take_if(|held| ticks_between(held.since, now) >= held.wait)
            {
                self.requests.finish_statement(connection, held.bytes, false);
                self.turn(place);
                continue;
            }
            let (counter, reason) = match connection.overdue(now, idle_ticks, login_ticks) {
                None => continue,
                Some(Overdue::Slow) => (Counter::SlowKicks, "slow"),
                Some(Overdue::Idle) => (Counter::IdleKicks, "idle_timeout"),
            };
            self.requests.context.count(counter, 1);
            self.close(place, reason);
        }
    }

    /// Gives each connection a last chance to be read, after which it is closed as soon as nothing waits.
    fn begin_drain(&mut self) {
        for place in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[place] {
                connection.readable = !connection.socket.ended;
                self.turn(place);
            }
        }
    }

    fn is_finished(&self) -> bool {
        let empty = self.free.len() == self.connections.len();
        self.requests.shared.is_stopping() || (self.draining && empty)
    }
}
