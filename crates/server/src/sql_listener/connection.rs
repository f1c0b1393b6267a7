//! One connection of the PostgreSQL listener: its socket, its session, and what waits to be executed.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use engine::{Cancel, Counter, SqlSession, Tick, TransactionStatus, ticks_between};

use super::SqlListener;
use super::copy::CopyIn;
use super::dialogue::Parked;
use crate::cancels::Key;
use crate::limits::{CARRY_BYTES_MAX, IDLE_BUFFER_BYTES, READ_BUFFER_BYTES};
use crate::pace::{Pace, ticks};
use crate::shared::Permit;
use crate::socket::Socket;

/// Waiting bytes below this are not accounted for: they belong to the cost of a connection.
const ACCOUNTED_FROM_BYTES: usize = 16 << 10;

/// Why a connection is closed by the clock, or by another session.
pub(crate) struct Overdue {
    /// What counts it; none where somebody asked for it.
    pub(crate) counter: Option<Counter>,
    pub(crate) state: &'static str,
    pub(crate) message: &'static str,
}

/// A peer, its session, and what waits for it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    pub(crate) listener: Arc<SqlListener>,
    /// Gives the place among all connections back when the connection goes.
    _permit: Permit,
    pub(crate) session: SqlSession,
    pub(crate) key: Key,
    /// What was read and not executed.
    input: Vec<u8>,
    /// Bytes of this connection in the sum of all.
    accounted: usize,
    /// Requests are skipped up to the next `Sync`: one before failed.
    pub(crate) skipping: bool,
    /// Rows are coming in.
    pub(crate) copy: Option<Box<CopyIn>>,
    /// Its statement waits for a lock, and nothing is read meanwhile.
    pub(crate) parked: Option<Box<Parked>>,
    /// To be closed when the replies are out.
    pub(crate) closing: bool,
    /// Registered for room to write.
    pub(crate) awaits_room: bool,
    /// When its last turn was.
    active: Tick,
}

impl Connection {
    pub(crate) fn new(
        socket: Socket,
        listener: Arc<SqlListener>,
        permit: Permit,
        session: SqlSession,
        key: Key,
        input: Vec<u8>,
        now: Tick,
    ) -> Self {
        Self {
            socket,
            listener,
            _permit: permit,
            session,
            key,
            input,
            accounted: 0,
            skipping: false,
            copy: None,
            parked: None,
            closing: false,
            awaits_room: false,
            active: now,
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        self.session.cancel()
    }

    #[inline]
    pub(crate) fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Whether its next requests may be executed.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.socket.has_room() && !self.closing && self.parked.is_none()
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

    /// Notes the end of a turn. False: the waiting bytes of all connections pass their limit.
    #[inline]
    pub(crate) fn note_turn(&mut self, now: Tick, progress: bool) -> bool {
        self.active = now;
        let receiving = &mut self.socket.receiving;
        if self.input.is_empty() {
            receiving.since = 0;
        } else if progress || receiving.since == 0 {
            *receiving = Pace { since: now, bytes: 0 };
        }
        let waiting = self.input.capacity() + self.socket.output_memory();
        let accounted = if waiting < ACCOUNTED_FROM_BYTES { 0 } else { waiting };
        if accounted == self.accounted {
            return true;
        }
        let before = std::mem::replace(&mut self.accounted, accounted);
        self.listener.shared.account(before, accounted)
    }

    /// What the clock says. `idle` is how long any connection may be silent; a session may say so for itself.
    pub(crate) fn overdue(&self, now: Tick, idle: Option<Duration>) -> Option<Overdue> {
        if self.session.is_ended() {
            let message = "terminating connection due to administrator command";
            return Some(Overdue { counter: None, state: "57P01", message });
        }
        if self.parked.is_some() {
            return None;
        }
        if self.socket.receiving.is_too_slow(now) || self.socket.sending.is_too_slow(now) {
            let message = "terminating connection because it reads or sends too slowly";
            return Some(Overdue { counter: Some(Counter::SlowKicks), state: "08006", message });
        }
        if self.socket.output_waiting() > 0 {
            return None;
        }
        let silent = ticks_between(self.active, now);
        let passed = |limit: Option<Duration>| limit.is_some_and(|limit| silent > ticks(limit));
        let counter = Some(Counter::IdleKicks);
        if self.session.status() != TransactionStatus::Idle && passed(self.session.idle_timeout()) {
            let message = "terminating connection due to idle-in-transaction timeout";
            return Some(Overdue { counter, state: "25P03", message });
        }
        if passed(idle)
            || self.session.status() == TransactionStatus::Idle && passed(self.session.idle_timeout())
        {
            let message = "terminating connection due to idle-session timeout";
            return Some(Overdue { counter, state: "57P05", message });
        }
        None
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.listener.cancels.forget(self.key.process);
        self.listener.shared.account(self.accounted, 0);
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
