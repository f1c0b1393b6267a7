//! The listener's acceptor: takes connections in, hears cancel requests, and looks at the clock.
//!
//! It runs no statement, checks no password and waits for no connection, so that all this works while every SQL
//! thread is busy.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use engine::auth::{Authenticated, Refusal};
use engine::{ThreadContext, Tick, ticks_between};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;

use super::connection::{Connection, Overdue};
use super::opening::{Opening, Step, refuse_place};
use super::{ONE, SqlListener};
use crate::fatal::fatal;
use crate::limits::{ACCEPT_REST, ACCEPTS_PER_TURN, EVENTS_PER_POLL, HANDSHAKE_TURNS, SWEEP_INTERVAL};
use crate::listen::Listener;
use crate::origin::address_of;
use crate::pace::{ticks, wait_ticks};
use crate::password::RolePassword;
use crate::proofs::{Proof, Proofs};
use crate::shared::Shared;
use crate::socket::Socket;
use crate::unproved::Unproved;

/// Tokens below are listeners.
const LISTENERS: u64 = 1 << 16;

/// The token of [`SqlCall`].
const CALL: u64 = u64::MAX;

/// What other threads tell the acceptor: that the server drains, and what became of a password.
#[derive(Debug)]
pub(crate) struct SqlCall {
    /// Wakes it.
    event: OwnedFd,
    /// By the token of the connection: one for each at most, so that their number bounds it. Held for a push or a
    /// swap; no other lock is taken meanwhile.
    verdicts: Mutex<Vec<(u64, Verdict)>>,
}

/// Who was let in by a password, if it was right.
type Verdict = Result<Authenticated, Refusal>;

impl SqlCall {
    pub(crate) fn wake(&self) {
        // It fails only when the counter is full, and then the acceptor is awake.
        let _raised = rustix::io::write(&self.event, ONE);
    }

    /// Says what became of a connection's password.
    pub(crate) fn tell(&self, token: u64, verdict: Verdict) {
        self.verdicts.lock().push((token, verdict));
        self.wake();
    }
}

/// Somebody who is not let in.
#[derive(Debug)]
struct Refused {
    opening: Opening,
    /// What it will hear.
    answer: Vec<u8>,
    since: Tick,
    /// After so many ticks.
    wait: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct SqlAcceptor {
    epoll: OwnedFd,
    call: Arc<SqlCall>,
    proofs: Proofs,
    listeners: Vec<Listener>,
    listener: Arc<SqlListener>,
    shared: Arc<Shared>,
    context: ThreadContext,
    /// Connections whose session has not begun, by token.
    openings: HashMap<u64, Opening>,
    /// Those that are not let in: what each will hear, and when.
    refused: Vec<Refused>,
    /// The token of the next of them.
    next: u64,
    /// Turns that connections may still have in this round to agree on keys.
    handshakes: usize,
    swept: Tick,
}

impl SqlAcceptor {
    pub(crate) fn new(
        listeners: Vec<Listener>,
        listener: Arc<SqlListener>,
        proofs: Proofs,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (token, listener) in listeners.iter().enumerate() {
            epoll::add(&epoll, listener, epoll::EventData::new_u64(token as u64), epoll::EventFlags::IN)?;
        }
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(
            &epoll,
            &event,
            epoll::EventData::new_u64(CALL),
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )?;
        let shared = Arc::clone(&listener.shared);
        let context = shared.engine.context();
        let swept = context.now();
        Ok(Self {
            epoll,
            call: Arc::new(SqlCall { event, verdicts: Mutex::default() }),
            proofs,
            listeners,
            listener,
            shared,
            context,
            openings: HashMap::new(),
            refused: Vec::new(),
            next: LISTENERS,
            handshakes: 0,
            swept,
        })
    }

    pub(crate) fn call(&self) -> Arc<SqlCall> {
        Arc::clone(&self.call)
    }

    /// Serves until the server drains and the last session has ended, or the server stops.
    pub(crate) fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS_PER_POLL);
        while !self.shared.is_stopping() {
            if !self.wait(&mut events) {
                std::thread::sleep(ACCEPT_REST);
            }
            self.context.begin_batch();
            if self.shared.is_draining() {
                if self.drain() {
                    return;
                }
                continue;
            }
            self.handshakes = HANDSHAKE_TURNS;
            for event in events.drain(..) {
                self.handle(event.data.u64());
            }
            self.answer_refused();
            self.sweep();
        }
    }

    fn wait(&self, events: &mut Vec<epoll::Event>) -> bool {
        events.clear();
        let soon = self.shared.is_draining() || !self.refused.is_empty();
        let patience = if soon { ACCEPT_REST } else { SWEEP_INTERVAL };
        let patience = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        let space = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, space, Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => true,
            Err(error) => {
                tracing::error!(%error, "the PostgreSQL listener cannot wait for connections");
                false
            }
        }
    }

    fn handle(&mut self, token: u64) {
        if token == CALL {
            self.hear();
        } else if token < LISTENERS {
            // Below the number of listeners.
            self.accept(usize::try_from(token).unwrap_or(0));
        } else if (self.handshakes > 0 || !self.is_handshaking(token))
            && let Some(opening) = self.openings.remove(&token)
        {
            self.step(token, opening);
        }
    }

    /// Whether a connection agrees on keys; if it has its turn later, it is announced again.
    fn is_handshaking(&self, token: u64) -> bool {
        self.openings.get(&token).is_some_and(|opening| opening.socket.is_handshaking())
    }

    /// Accepts those who wait; who is left is announced again.
    fn accept(&mut self, listener: usize) {
        for _ in 0..ACCEPTS_PER_TURN {
            if self.handshakes == 0 {
                return;
            }
            match self.listeners[listener].accept() {
                Ok(fd) => self.welcome(fd),
                Err(Errno::AGAIN) => return,
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS)) => {
                    tracing::warn!(%error, "no descriptor for a new connection; raise the limit of open files");
                    return std::thread::sleep(ACCEPT_REST);
                }
                // The peer went away while it waited.
                Err(_) => {}
            }
        }
    }

    fn welcome(&mut self, fd: OwnedFd) {
        // Not the time at which this turn began: a client that was refused may come back within the turn, when others
        // have been silent for long enough to lose their places.
        let now = self.shared.engine.store().now();
        let Some(unproved) = Unproved::admit(&self.shared, now, address_of(&fd)) else {
            return refuse_place(&fd);
        };
        let token = self.next;
        self.next += 1;
        let events = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        if epoll::add(&self.epoll, &fd, epoll::EventData::new_u64(token), events).is_ok() {
            self.step(token, Opening::new(Socket::new(fd), unproved, self.context.now()));
        }
    }

    /// Goes on with the connections whose passwords were checked. One that is gone is not there.
    fn hear(&mut self) {
        let verdicts = std::mem::take(&mut *self.call.verdicts.lock());
        for (token, verdict) in verdicts {
            if let Some(opening) = self.openings.remove(&token) {
                let step = opening.hear(&self.listener, verdict, self.context.now());
                self.follow(token, step);
            }
        }
    }

    fn step(&mut self, token: u64, opening: Opening) {
        let was_handshaking = opening.socket.is_handshaking();
        let step = opening.step(&self.listener, self.context.now());
        let is_handshaking = matches!(&step, Step::Wait(opening) if opening.socket.is_handshaking());
        if was_handshaking || is_handshaking {
            self.handshakes = self.handshakes.saturating_sub(1);
        }
        self.follow(token, step);
    }

    /// Does what a connection's step asks for.
    fn follow(&mut self, token: u64, step: Step) {
        match step {
            Step::Wait(opening) => {
                self.openings.insert(token, opening);
            }
            Step::Check(opening, shown) => self.check(token, opening, shown),
            Step::Begin(connection) => {
                let _served = epoll::delete(&self.epoll, connection.fd()).and_then(|()| {
                    // A connection that cannot be registered is dropped, which closes it.
                    self.listener.open(*connection).map_err(|_| Errno::NOMEM)
                });
            }
            Step::Forward(request) => {
                if epoll::delete(&self.epoll, &request.socket).is_ok() {
                    self.listener.forwarder.open(request);
                }
            }
            Step::Refused(opening, answer, wait) => {
                let _silent = epoll::delete(&self.epoll, &opening.socket);
                let wait = wait_ticks(wait);
                self.refused.push(Refused { opening, answer, since: self.context.now(), wait });
            }
            Step::End => {}
        }
    }

    /// Hands a password over to be checked.
    fn check(&mut self, token: u64, mut opening: Opening, shown: RolePassword) {
        match self.proofs.submit(Proof::of_sql(token, Arc::clone(&self.call), shown)) {
            ControlFlow::Continue(cancel) => {
                opening.await_verdict(cancel);
                self.openings.insert(token, opening);
            }
            ControlFlow::Break(()) => {
                let mut out = Vec::new();
                fatal("53300", "too many passwords wait to be checked; try again", &mut out);
                opening.send(&out);
            }
        }
    }

    /// Tells those who are not let in, when their time has come. Who had to make room hears nothing.
    fn answer_refused(&mut self) {
        let now = self.context.now();
        self.refused.retain_mut(|Refused { opening, answer, since, wait }| {
            let lost = opening.unproved.is_lost();
            let waits = !lost && ticks_between(*since, now) < *wait;
            if !waits && !lost {
                opening.send(answer);
            }
            waits
        });
    }

    /// Closes what has been silent for too long, and what reads or sends too slowly.
    fn sweep(&mut self) {
        let now = self.context.now();
        if ticks_between(self.swept, now) < ticks(SWEEP_INTERVAL) {
            return;
        }
        self.swept = now;
        let patience = ticks(self.shared.authentication_timeout());
        self.openings.retain(|_, opening| {
            let stays = ticks_between(opening.since, now) <= patience && !opening.unproved.is_lost();
            if !stays {
                opening.expire();
            }
            stays
        });
        let idle = self.shared.idle_timeout();
        for (place, found) in self.listener.places.all() {
            let Some(mut guard) = found.look() else { continue };
            if let Some(connection) = guard.as_mut()
                && let Some(Overdue { counter, state, message }) = connection.overdue(now, idle)
            {
                if let Some(counter) = counter {
                    self.context.count(counter, 1);
                }
                last_words(connection, state, message, now);
                self.listener.places.close(place, guard);
                continue;
            }
            drop(guard);
            if found.is_marked() {
                self.listener.turn_again(place);
            }
        }
    }

    /// Ends the sessions that wait for their clients; those that are served end with their turn. Says whether none is
    /// left.
    fn drain(&mut self) -> bool {
        self.listeners.clear();
        self.openings.clear();
        self.refused.clear();
        let now = self.context.now();
        let mut left = false;
        for (place, found) in self.listener.places.all() {
            let Some(mut guard) = found.look() else {
                left = true;
                continue;
            };
            let Some(connection) = guard.as_mut() else { continue };
            if !connection.closing {
                connection.closing = true;
                last_words(connection, "57P01", "terminating connection due to administrator command", now);
            }
            connection.socket.flush();
            if connection.socket.output_waiting() == 0 || connection.socket.broken {
                self.listener.places.close(place, guard);
            } else {
                left = true;
            }
        }
        !left
    }
}

fn last_words(connection: &mut Connection, state: &str, message: &str, now: Tick) {
    let mut out = Vec::new();
    fatal(state, message, &mut out);
    connection.socket.deliver(&mut out, now);
}
