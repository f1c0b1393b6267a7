//! One connection of a memcached client: its socket, and where it is in the requests that it sent.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;

use engine::auth::{Authenticated, Proving};
use engine::{Cancel, Session, Tick, Waiter, Watching, ticks_between};

use crate::limits::{
    BULK_READ_BYTES, CARRY_BYTES_MAX, FIRST_READ_BYTES, IDLE_BUFFER_BYTES, LINE_READ_BYTES, READ_BUFFER_BYTES,
};
use crate::listing::Dumping;
use crate::mailbox::Address;
use crate::pace::Pace;
use crate::receiving::Receiving;
use crate::shared::{Permit, Shared};
use crate::socket::Socket;
use crate::spare::SpareBuffers;
use crate::unproved::Unproved;

/// Waiting bytes below this are not accounted for: they belong to the cost of a connection, and most turns then touch
/// no word that other threads write.
const ACCOUNTED_FROM_BYTES: usize = 16 << 10;

/// A connection on its way to its worker.
#[derive(Debug)]
pub(crate) struct Newcomer {
    pub(crate) socket: Socket,
    pub(crate) session: Session,
    pub(crate) permit: Permit,
    pub(crate) unproved: Option<Unproved>,
}

/// A peer and what waits for it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    /// Gives the place back when the connection goes.
    _permit: Permit,
    shared: Arc<Shared>,
    pub(crate) session: Session,
    /// Its place among those who have proved nothing.
    pub(crate) unproved: Option<Unproved>,
    /// The rules were asked about it: not before the keys of an encrypted connection are agreed on.
    pub(crate) ruled: bool,
    pub(crate) address: Address,
    /// What was read and not executed. Empty most of the time, for a worker executes from its own buffer.
    pub(crate) input: Vec<u8>,
    /// A large value that is on its way into its row.
    pub(crate) receiving: Option<Receiving>,
    /// What was read ahead of the turn, in the worker's buffer for this purpose; only while `input` is empty.
    pub(crate) first_read: Option<FirstRead>,
    /// How many bytes `input` must hold before it can be a whole request, as far as that is known.
    pub(crate) needed: usize,
    /// How many bytes of `input` were searched for a line end in vain.
    pub(crate) searched: usize,
    /// Which of memcached's protocols it speaks, once a byte has come.
    pub(crate) protocol: Option<Protocol>,
    /// Its first bytes were not those of another protocol.
    pub(crate) is_known: bool,
    /// Bytes still to come that belong to a refused request and are thrown away.
    pub(crate) swallow: usize,
    /// Keys of the first request in `input` that were answered already: a retrieval of many keys pauses when its
    /// replies have filled the connection.
    pub(crate) keys_done: usize,
    /// The list of keys that is the answer to the first request in `input`, where it has begun.
    pub(crate) dumping: Option<Box<Dumping>>,
    /// It watches what happens.
    pub(crate) watching: Option<Watching>,
    /// Bytes of this connection in the sum of all.
    accounted: usize,
    /// Where it is in an exchange that proves its role.
    pub(crate) sasl: Option<Box<Sasl>>,
    /// The answer to a wrong password, and when it goes out.
    pub(crate) held_answer: Option<Box<HeldAnswer>>,
    /// The statement that a SQL thread runs for it; nothing else is executed meanwhile.
    pub(crate) statement: Option<Cancel>,
    /// The rows of its first request that were asked for at a source.
    pub(crate) fetching: Option<Arc<Waiter>>,
    /// It waits for them.
    pub(crate) awaits_rows: bool,
    /// How often its first request asked.
    pub(crate) fetches: u8,
    /// Its last turn had more bytes than a first read takes: it is read at once, and much at a time.
    pub(crate) bulky: bool,
    /// It sends values that are received where they are going to lie: of what follows one only the next line is read.
    pub(crate) sends_long: bool,
    /// There may be something to read: the kernel announces new bytes only once.
    pub(crate) readable: bool,
    /// Nobody is left to read a reply.
    pub(crate) hung_up: bool,
    /// `input` begins with a whole request that was not executed yet.
    pub(crate) stalled: bool,
    /// To be closed when the replies are out.
    pub(crate) closing: bool,
    /// In the worker's queue of connections that have something to do without an event.
    pub(crate) queued: bool,
    /// Registered for room to write.
    pub(crate) awaits_room: bool,
    /// When it came.
    opened: Tick,
    /// When it was last heard of.
    active: Tick,
}

/// A protocol of memcached's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Lines.
    Text,
    /// Frames.
    Binary,
}

/// Where a client is in an exchange that proves its role. What fails begins with the first message again.
#[derive(Debug)]
pub(crate) enum Sasl {
    /// It was asked for its proof.
    Asked(Proving),
    /// Its proof was right, and it has to hear the server's.
    Proved(Authenticated),
}

/// An answer that waits for its time.
#[derive(Debug)]
pub(crate) struct HeldAnswer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) since: Tick,
    /// In ticks.
    pub(crate) wait: u64,
}

/// Bytes that a worker has read for a connection before its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstRead {
    /// Which part of the buffer they are in.
    pub(crate) part: usize,
    /// How many.
    pub(crate) len: usize,
}

/// Why a connection is closed by the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// It sends or reads too slowly.
    Slow,
    /// It has sent nothing for too long, or proved nothing where a newer one wanted its place.
    Idle,
}

impl Connection {
    pub(crate) fn new(newcomer: Newcomer, shared: Arc<Shared>, address: Address, now: Tick) -> Self {
        let Newcomer { socket, session, permit, unproved } = newcomer;
        Self {
            ruled: socket.tls().is_none(),
            socket,
            _permit: permit,
            shared,
            session,
            unproved,
            address,
            input: Vec::new(),
            receiving: None,
            first_read: None,
            needed: 0,
            searched: 0,
            protocol: None,
            is_known: false,
            swallow: 0,
            keys_done: 0,
            dumping: None,
            watching: None,
            accounted: 0,
            sasl: None,
            held_answer: None,
            statement: None,
            fetching: None,
            awaits_rows: false,
            fetches: 0,
            bulky: false,
            sends_long: false,
            readable: false,
            hung_up: false,
            stalled: false,
            closing: false,
            queued: false,
            awaits_room: false,
            opened: now,
            active: now,
        }
    }

    /// Somebody was let in.
    pub(crate) fn let_in(&mut self, session: Session) {
        self.session = session;
        self.unproved = None;
    }

    /// Its protocol, which its first byte decides for good, as in memcached. `input` begins with that byte while it is
    /// undecided.
    #[inline]
    pub(crate) fn protocol(&mut self, input: &[u8]) -> Protocol {
        if let Some(protocol) = self.protocol {
            return protocol;
        }
        let binary = input.first() == Some(&memcache::binary::MAGIC);
        let protocol = if binary { Protocol::Binary } else { Protocol::Text };
        if !input.is_empty() {
            self.protocol = Some(protocol);
        }
        protocol
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.socket.as_fd().as_raw_fd()
    }

    /// Whether the next bytes belong behind what has come, in memory of the connection's own: the request is too
    /// large for the worker's buffer, or too much of it is there to copy it around.
    #[inline]
    pub(crate) fn wants_own_buffer(&self) -> bool {
        self.input.len() > CARRY_BYTES_MAX || self.needed > BULK_READ_BYTES
    }

    /// How far the worker's buffer is filled behind so many bytes that are there.
    #[inline]
    pub(crate) fn read_to(&self, carried: usize) -> usize {
        if self.sends_long {
            carried + LINE_READ_BYTES
        } else if self.bulky {
            BULK_READ_BYTES
        } else {
            READ_BUFFER_BYTES
        }
    }

    /// How much is read ahead of a turn.
    #[inline]
    pub(crate) fn first_read_bytes(&self) -> usize {
        if self.sends_long { LINE_READ_BYTES } else { FIRST_READ_BYTES }
    }

    /// Notes what a turn has read into the worker's buffer, for the next one to read as much as is good.
    #[inline]
    pub(crate) fn note_read(&mut self, bytes: usize) {
        self.sends_long = self.receiving.is_some() || (self.sends_long && bytes < LINE_READ_BYTES);
        self.bulky = !self.sends_long && bytes > FIRST_READ_BYTES;
    }

    /// Whether its next turn begins with reading, and with nothing else.
    #[inline]
    pub(crate) fn may_read_first(&self) -> bool {
        self.readable
            && !self.session.is_stranger()
            && !self.bulky
            && !self.stalled
            && !self.closing
            && self.input.is_empty()
            && self.statement.is_none()
            && self.socket.output_waiting() == 0
    }

    /// Reads once into `buffer`, which is not empty. Returns how many bytes came.
    #[inline]
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> usize {
        let (count, more) = self.socket.receive(buffer);
        self.readable = more;
        count
    }

    /// Reads once behind what `input` holds. The buffer grows as bytes arrive and not as the peer promises: to twice
    /// of what is there at most.
    pub(crate) fn receive_into_own(&mut self) -> usize {
        let len = self.input.len();
        let missing = self.needed.saturating_sub(len).max(CARRY_BYTES_MAX);
        let room = missing.min(len.max(READ_BUFFER_BYTES));
        self.input.reserve_exact(room);
        let (count, more) = self.socket.receive_behind(&mut self.input);
        self.readable = more;
        count
    }

    /// Keeps what was not executed for the next turn; where that is much, in a spare buffer.
    #[inline]
    pub(crate) fn keep(&mut self, rest: &[u8], spare: &mut SpareBuffers) {
        self.input.clear();
        if !rest.is_empty() {
            if rest.len() > CARRY_BYTES_MAX && self.input.capacity() < rest.len() {
                self.input = spare.take();
            }
            self.input.extend_from_slice(rest);
        } else if self.input.capacity() > IDLE_BUFFER_BYTES {
            spare.give(std::mem::take(&mut self.input));
        }
    }

    /// As [`Connection::keep`], where `input` itself was executed up to `consumed`.
    pub(crate) fn keep_own(&mut self, mut input: Vec<u8>, consumed: usize, spare: &mut SpareBuffers) {
        if consumed == input.len() {
            input.clear();
        } else {
            input.drain(..consumed);
        }
        if input.len() <= CARRY_BYTES_MAX && input.capacity() > READ_BUFFER_BYTES {
            let rest = input.as_slice().to_vec();
            spare.give(std::mem::replace(&mut input, rest));
        }
        self.input = input;
        if self.input.is_empty() && self.input.capacity() > IDLE_BUFFER_BYTES {
            self.input = Vec::new();
        }
    }

    /// Notes the end of a turn. `waits_for_peer`: the turn ended in the middle of a request. `progress`: a whole
    /// request was executed. False: the waiting bytes of all connections pass their limit.
    #[inline]
    pub(crate) fn note_turn(&mut self, now: Tick, waits_for_peer: bool, progress: bool) -> bool {
        self.active = now;
        if !waits_for_peer {
            self.socket.receiving.since = 0;
        } else if progress || self.socket.receiving.since == 0 {
            self.socket.receiving = Pace { since: now, bytes: 0 };
        }
        let waiting = self.input.capacity() + self.socket.output_waiting();
        let accounted = if waiting < ACCOUNTED_FROM_BYTES { 0 } else { waiting };
        if accounted == self.accounted {
            return true;
        }
        let before = std::mem::replace(&mut self.accounted, accounted);
        self.shared.account(before, accounted)
    }

    /// A wrong proof was shown, and its answer waits.
    pub(crate) fn hold_answer(&mut self, answer: HeldAnswer) {
        if let Some(unproved) = &mut self.unproved {
            unproved.note_failure();
        }
        self.held_answer = Some(Box::new(answer));
    }

    /// What the clock says.
    pub(crate) fn overdue(&self, now: Tick, idle_ticks: Option<u64>, login_ticks: u64) -> Option<Overdue> {
        if self.unproved.as_ref().is_some_and(Unproved::is_lost) {
            return Some(Overdue::Idle);
        }
        if self.statement.is_some() {
            return None;
        }
        if self.session.is_stranger() && ticks_between(self.opened, now) > login_ticks {
            return Some(Overdue::Idle);
        }
        if self.socket.receiving.is_too_slow(now) || self.socket.sending.is_too_slow(now) {
            return Some(Overdue::Slow);
        }
        // Who watches has nothing to say.
        let waits = self.socket.output_waiting() == 0 && self.watching.is_none();
        let idle = self.idle_ticks(now);
        idle_ticks.filter(|&limit| waits && idle > limit).map(|_| Overdue::Idle)
    }

    /// For how long nothing was heard of it.
    pub(crate) fn idle_ticks(&self, now: Tick) -> u64 {
        ticks_between(self.active, now)
    }

    /// Whether it still wants what happens, although it has said its last word: a watcher has nothing more to say.
    pub(crate) fn listens(&self) -> bool {
        self.watching.is_some() && !self.hung_up
    }

    /// What it does, in memcached's words.
    pub(crate) fn state(&self) -> &'static str {
        if self.watching.is_some() {
            "conn_watch"
        } else if self.closing {
            "conn_closing"
        } else if self.socket.output_waiting() > 0 {
            "conn_mwrite"
        } else if self.statement.is_some() || self.stalled {
            "conn_parse_cmd"
        } else if self.receiving.is_some() {
            "conn_nread"
        } else {
            "conn_read"
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(statement) = &self.statement {
            statement.cancel();
        }
        self.shared.account(self.accounted, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<Connection>() + IDLE_BUFFER_BYTES < 8 << 10);
    }
}
