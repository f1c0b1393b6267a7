//! One connection of the door: its socket, its session, and the bytes that wait on either side.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use engine::{Cancel, Counter, SqlSession, Tick};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use super::SqlDoor;
use super::places::Key;
use crate::limits::{
    CARRY_BYTES_MAX, IDLE_BUFFER_BYTES, LINGER_BYTES_MAX, OUTPUT_BYTES_MAX, READ_BUFFER_BYTES,
};
use crate::pace::Pace;
use crate::shared::Permit;

/// Waiting bytes below this are not accounted for: they belong to the cost of a connection.
const ACCOUNTED_FROM_BYTES: usize = 16 << 10;

/// Why a connection is closed by the clock.
pub(crate) struct Overdue {
    pub(crate) counter: Counter,
    pub(crate) state: &'static str,
    pub(crate) message: &'static str,
}

/// A peer, its session, and what waits for it.
#[derive(Debug)]
pub(crate) struct Connection {
    fd: OwnedFd,
    door: Arc<SqlDoor>,
    /// Gives the place among all connections back when the connection goes.
    _permit: Permit,
    pub(crate) session: SqlSession,
    pub(crate) key: Key,
    /// What was read and not executed.
    input: Vec<u8>,
    /// Replies that the socket did not take; those before `sent` it did.
    output: Vec<u8>,
    sent: usize,
    /// Bytes of this connection in the sum of all.
    accounted: usize,
    /// Requests are skipped up to the next `Sync`: one before failed.
    pub(crate) skipping: bool,
    /// To be closed when the replies are out.
    pub(crate) closing: bool,
    /// The peer has said its last word, and it was read.
    pub(crate) ended: bool,
    /// The socket failed.
    pub(crate) broken: bool,
    /// Registered for room to write.
    pub(crate) awaits_room: bool,
    /// When its last turn was.
    pub(crate) active: Tick,
    /// How fast the peer sends the message that it has begun.
    pub(crate) receiving: Pace,
    /// How fast the peer reads the replies that wait.
    pub(crate) sending: Pace,
}

impl Connection {
    pub(crate) fn new(
        fd: OwnedFd,
        door: Arc<SqlDoor>,
        permit: Permit,
        session: SqlSession,
        key: Key,
        input: Vec<u8>,
        now: Tick,
    ) -> Self {
        Self {
            fd,
            door,
            _permit: permit,
            session,
            key,
            input,
            output: Vec::new(),
            sent: 0,
            accounted: 0,
            skipping: false,
            closing: false,
            ended: false,
            broken: false,
            awaits_room: false,
            active: now,
            receiving: Pace::default(),
            sending: Pace::default(),
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        self.session.cancel()
    }

    pub(crate) fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    pub(crate) fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    /// Keeps what was not executed.
    #[inline]
    pub(crate) fn keep(&mut self, rest: &[u8]) {
        self.input.clear();
        if !rest.is_empty() {
            self.input.extend_from_slice(rest);
        } else if self.input.capacity() > IDLE_BUFFER_BYTES {
            self.input = Vec::new();
        }
    }

    /// As [`Connection::keep`], where the bytes lie in the connection's own buffer.
    pub(crate) fn keep_own(&mut self, mut input: Vec<u8>, consumed: usize) {
        input.drain(..consumed);
        if input.len() <= CARRY_BYTES_MAX && input.capacity() > READ_BUFFER_BYTES {
            input.shrink_to_fit();
        }
        if !input.is_empty() || input.capacity() <= IDLE_BUFFER_BYTES {
            self.input = input;
        }
    }

    /// Reads once. Returns how many bytes came, and whether there may be more.
    #[inline]
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> (usize, bool) {
        loop {
            match rustix::net::recv(&self.fd, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => {
                    self.ended = true;
                    return (0, false);
                }
                Ok((count, _)) => {
                    self.receiving.bytes += count as u64;
                    return (count, count == buffer.len());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return (0, false),
                Err(_) => {
                    self.broken = true;
                    return (0, false);
                }
            }
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
        if sent < out.len() && !self.broken {
            self.sending = Pace { since: now, bytes: 0 };
            self.output.extend_from_slice(&out[sent..]);
        }
        out.clear();
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

    /// Notes the end of a turn. False: the waiting bytes of all connections pass their limit.
    #[inline]
    pub(crate) fn note_turn(&mut self, now: Tick, progress: bool) -> bool {
        self.active = now;
        if self.input.is_empty() {
            self.receiving.since = 0;
        } else if progress || self.receiving.since == 0 {
            self.receiving = Pace { since: now, bytes: 0 };
        }
        let waiting = self.input.capacity() + self.output.capacity();
        let accounted = if waiting < ACCOUNTED_FROM_BYTES { 0 } else { waiting };
        if accounted == self.accounted {
            return true;
        }
        let before = std::mem::replace(&mut self.accounted, accounted);
        self.door.shared.account(before, accounted)
    }

    /// What the clock says.
    pub(crate) fn overdue(&self, now: Tick, idle_ticks: Option<u64>) -> Option<Overdue> {
        if self.receiving.is_too_slow(now) || self.sending.is_too_slow(now) {
            let message = "terminating connection because it reads or sends too slowly";
            return Some(Overdue { counter: Counter::SlowKicks, state: "08006", message });
        }
        let idle = u64::from(now.saturating_sub(self.active));
        if self.output_waiting() == 0 && idle_ticks.is_some_and(|limit| idle > limit) {
            let message = "terminating connection due to idle-session timeout";
            return Some(Overdue { counter: Counter::IdleKicks, state: "57P05", message });
        }
        None
    }

    /// Ends the connection so that the peer can read our last words: unread input would make the kernel throw them
    /// away.
    fn part(&mut self) {
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
        self.part();
        self.door.cancels.forget(self.key.process);
        self.door.shared.account(self.accounted, 0);
    }
}
