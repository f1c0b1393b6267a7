//! One connection: its socket, and the bytes that wait on either side of it.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use engine::{Cancel, Session, Tick};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use crate::limits::{
    CARRY_BYTES_MAX, IDLE_BUFFER_BYTES, LINGER_BYTES_MAX, OUTPUT_BYTES_MAX, READ_BUFFER_BYTES,
};
use crate::mailbox::Address;
use crate::pace::Pace;
use crate::shared::{Permit, Shared};

/// Waiting bytes below this are not accounted for: they belong to the cost of a connection, and most turns then touch
/// no word that other threads write.
const ACCOUNTED_FROM_BYTES: usize = 16 << 10;

/// A peer and what waits for it.
#[derive(Debug)]
pub(crate) struct Connection {
    fd: OwnedFd,
    /// Gives the place back when the connection goes.
    _permit: Permit,
    shared: Arc<Shared>,
    pub(crate) session: Session,
    pub(crate) address: Address,
    /// What was read and not executed. Empty most of the time, for a worker executes from its own buffer.
    pub(crate) input: Vec<u8>,
    /// What was read ahead of the turn, in the worker's buffer for this purpose; only while `input` is empty.
    pub(crate) first_read: Option<FirstRead>,
    /// How many bytes `input` must hold before it can be a whole request, as far as that is known.
    pub(crate) needed: usize,
    /// How many bytes of `input` were searched for a line end in vain.
    pub(crate) searched: usize,
    /// Bytes still to come that belong to a refused request and are thrown away.
    pub(crate) swallow: usize,
    /// Keys of the first request in `input` that were answered already: a retrieval of many keys pauses when its
    /// replies have filled the connection.
    pub(crate) keys_done: usize,
    /// Replies that the socket did not take; those before `sent` it did.
    output: Vec<u8>,
    sent: usize,
    /// Bytes of this connection in the sum of all.
    accounted: usize,
    /// The statement that a SQL thread runs for it; nothing else is executed meanwhile.
    pub(crate) statement: Option<Cancel>,
    /// There may be something to read: the kernel announces new bytes only once.
    pub(crate) readable: bool,
    /// The kernel has announced the peer's last byte: reading goes on until that byte is reached.
    pub(crate) half_closed: bool,
    /// Nobody is left to read a reply.
    pub(crate) hung_up: bool,
    /// The peer has said its last word, and it was read; the peer may still listen.
    pub(crate) ended: bool,
    /// `input` begins with a whole request that was not executed yet.
    pub(crate) stalled: bool,
    /// To be closed when the replies are out.
    pub(crate) closing: bool,
    /// The socket failed.
    pub(crate) broken: bool,
    /// In the worker's queue of connections that have something to do without an event.
    pub(crate) queued: bool,
    /// Registered for room to write.
    pub(crate) awaits_room: bool,
    /// When it was last heard of.
    active: Tick,
    /// How fast the peer sends the request that it has begun.
    receiving: Pace,
    /// How fast the peer reads the replies that wait.
    sending: Pace,
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
    /// It has sent nothing for too long.
    Idle,
}

impl Connection {
    pub(crate) fn new(fd: OwnedFd, permit: Permit, shared: Arc<Shared>, address: Address, now: Tick) -> Self {
        Self {
            fd,
            _permit: permit,
            shared,
            session: Session::local(),
            address,
            input: Vec::new(),
            first_read: None,
            needed: 0,
            searched: 0,
            swallow: 0,
            keys_done: 0,
            output: Vec::new(),
            sent: 0,
            accounted: 0,
            statement: None,
            readable: false,
            half_closed: false,
            hung_up: false,
            ended: false,
            stalled: false,
            closing: false,
            broken: false,
            queued: false,
            awaits_room: false,
            active: now,
            receiving: Pace::default(),
            sending: Pace::default(),
        }
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Whether the next bytes belong behind what has come, in memory of the connection's own: the request is too
    /// large for the worker's buffer, or too much of it is there to copy it around.
    #[inline]
    pub(crate) fn wants_own_buffer(&self) -> bool {
        self.input.len() > CARRY_BYTES_MAX || self.needed > READ_BUFFER_BYTES
    }

    /// Whether its next turn begins with reading, and with nothing else.
    #[inline]
    pub(crate) fn may_read_first(&self) -> bool {
        self.readable
            && !self.stalled
            && !self.closing
            && self.input.is_empty()
            && self.statement.is_none()
            && self.output.is_empty()
    }

    /// Reads once into `buffer`, which is not empty. Returns how many bytes came.
    #[inline]
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> usize {
        let space = buffer.len();
        let received = rustix::net::recv(&self.fd, buffer, RecvFlags::empty()).map(|(count, _)| count);
        self.received(received, space)
    }

    /// Reads once behind what `input` holds. The buffer grows as bytes arrive and not as the peer promises: to twice
    /// of what is there at most.
    pub(crate) fn receive_into_own(&mut self) -> usize {
        let len = self.input.len();
        let missing = self.needed.saturating_sub(len).max(CARRY_BYTES_MAX);
        let room = missing.min(len.max(READ_BUFFER_BYTES));
        self.input.reserve_exact(room);
        let space = self.input.capacity() - len;
        let received = rustix::net::recv(&self.fd, spare_capacity(&mut self.input), RecvFlags::empty())
            .map(|(count, _)| count);
        self.received(received, space)
    }

    #[inline]
    fn received(&mut self, received: rustix::io::Result<usize>, space: usize) -> usize {
        match received {
            Ok(0) => {
                self.ended = true;
                self.readable = false;
                0
            }
            Ok(count) => {
                // Fewer bytes than asked for: the socket is empty, and what comes next is announced anew. The end of
                // the stream is no byte, and was announced already if it came together with the last ones.
                self.readable = count == space || self.half_closed;
                self.receiving.bytes += count as u64;
                count
            }
            Err(Errno::INTR) => 0,
            Err(Errno::AGAIN) => {
                self.readable = false;
                0
            }
            Err(_) => {
                self.readable = false;
                self.broken = true;
                0
            }
        }
    }

    /// Keeps what was not executed for the next turn.
    #[inline]
    pub(crate) fn keep(&mut self, rest: &[u8]) {
        self.input.clear();
        if !rest.is_empty() {
            self.input.extend_from_slice(rest);
        } else if self.input.capacity() > IDLE_BUFFER_BYTES {
            self.input = Vec::new();
        }
    }

    /// As [`Connection::keep`], where `input` itself was executed up to `consumed`.
    pub(crate) fn keep_own(&mut self, mut input: Vec<u8>, consumed: usize) {
        if consumed == input.len() {
            input.clear();
        } else {
            input.drain(..consumed);
        }
        if input.len() <= CARRY_BYTES_MAX && input.capacity() > READ_BUFFER_BYTES {
            input.shrink_to_fit();
        }
        self.input = input;
        if self.input.is_empty() && self.input.capacity() > IDLE_BUFFER_BYTES {
            self.input = Vec::new();
        }
    }

    /// Bytes that the socket has not taken.
    #[inline]
    pub(crate) fn output_waiting(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Whether more replies may be made.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.output_waiting() < OUTPUT_BYTES_MAX
    }

    /// Sends `out`, and keeps what the socket does not take; `out` is empty afterwards. Returns how many bytes the
    /// socket took.
    #[inline]
    pub(crate) fn deliver(&mut self, out: &mut Vec<u8>, now: Tick) -> usize {
        if self.output_waiting() > 0 {
            self.output.extend_from_slice(out);
            out.clear();
            return self.flush();
        }
        if out.is_empty() || self.broken {
            out.clear();
            return 0;
        }
        let sent = self.send(out);
        if sent == out.len() || self.broken {
            out.clear();
        } else {
            self.hold(out, sent, now);
        }
        sent
    }

    /// Sends what waits. Returns how many bytes the socket took.
    pub(crate) fn flush(&mut self) -> usize {
        if self.output_waiting() == 0 {
            return 0;
        }
        let output = std::mem::take(&mut self.output);
        let sent = self.send(&output[self.sent..]);
        self.output = output;
        self.sent += sent;
        self.sending.bytes += sent as u64;
        if self.broken || self.sent == self.output.len() {
            self.output = Vec::new();
            self.sent = 0;
            self.sending = Pace::default();
        } else if self.sent > self.output.len() / 2 {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
        sent
    }

    #[cold]
    fn hold(&mut self, out: &mut Vec<u8>, sent: usize, now: Tick) {
        self.sending = Pace { since: now, bytes: 0 };
        // A large reply changes hands, a small one is copied so that the worker keeps its buffer.
        if out.len() - sent >= READ_BUFFER_BYTES {
            self.output = std::mem::take(out);
            self.sent = sent;
        } else {
            self.output.clear();
            self.output.extend_from_slice(&out[sent..]);
            self.sent = 0;
            out.clear();
        }
    }

    /// One `send`, begun again only when a signal came between.
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> usize {
        loop {
            match rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => return sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return 0,
                Err(_) => {
                    self.broken = true;
                    return 0;
                }
            }
        }
    }

    /// Notes the end of a turn. `waits_for_peer`: the turn ended in the middle of a request. `progress`: a whole
    /// request was executed. False: the waiting bytes of all connections pass their limit.
    #[inline]
    pub(crate) fn note_turn(&mut self, now: Tick, waits_for_peer: bool, progress: bool) -> bool {
        self.active = now;
        if !waits_for_peer {
            self.receiving.since = 0;
        } else if progress || self.receiving.since == 0 {
            self.receiving = Pace { since: now, bytes: 0 };
        }
        let waiting = self.input.capacity() + self.output_waiting();
        let accounted = if waiting < ACCOUNTED_FROM_BYTES { 0 } else { waiting };
        if accounted == self.accounted {
            return true;
        }
        let before = std::mem::replace(&mut self.accounted, accounted);
        self.shared.account(before, accounted)
    }

    /// What the clock says.
    pub(crate) fn overdue(&self, now: Tick, idle_ticks: Option<u64>) -> Option<Overdue> {
        if self.statement.is_some() {
            return None;
        }
        if self.receiving.is_too_slow(now) || self.sending.is_too_slow(now) {
            return Some(Overdue::Slow);
        }
        let idle = u64::from(now.saturating_sub(self.active));
        idle_ticks.filter(|&limit| self.output_waiting() == 0 && idle > limit).map(|_| Overdue::Idle)
    }

    /// Ends the connection so that the peer can read our last words: unread input would make the kernel throw them
    /// away.
    pub(crate) fn part(&mut self) {
        if self.broken || self.ended {
            return;
        }
        let _gone = rustix::net::shutdown(&self.fd, Shutdown::Write);
        let mut thrown_away = [0; 4096];
        let mut total = 0;
        while total < LINGER_BYTES_MAX {
            match rustix::net::recv(&self.fd, &mut thrown_away, RecvFlags::empty()) {
                Ok((count, _)) if count > 0 => total += count,
                _ => break,
            }
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
