//! A thread that serves forwarded sessions, each until it ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use engine::{Counter, Tick, ticks_between};
use forward::{Answers, CHECK_PATIENCE};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;

use super::Forwarder;
use super::session::{Bench, Forwarded, Side};
use crate::cancels::Target;
use crate::limits::{EVENTS_PER_POLL, READ_BUFFER_BYTES, REPLY_BUFFER_KEPT_BYTES, SWEEP_INTERVAL};
use crate::pace::ticks;

/// The token of the mailbox.
const MAIL: u64 = u64::MAX;

/// Nothing can be sent any more, whatever is asked for.
const HUNG_UP: epoll::EventFlags = epoll::EventFlags::HUP.union(epoll::EventFlags::ERR);

/// What is added to an event counter, in the processor's order, which is this one on x86-64 and aarch64.
const ONE: &[u8; 8] = &1_u64.to_le_bytes();

/// Sessions that begin, and those whose statement is to be cancelled.
#[derive(Debug)]
pub(super) struct Mailbox {
    /// Held for a push or a swap, as the other; no other lock is taken meanwhile.
    sessions: Mutex<Vec<Forwarded>>,
    cancels: Mutex<Vec<Arc<Target>>>,
    event: OwnedFd,
}

impl Mailbox {
    pub(super) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { sessions: Mutex::default(), cancels: Mutex::default(), event })
    }

    pub(super) fn send(&self, session: Forwarded) {
        self.sessions.lock().push(session);
        self.wake();
    }

    /// Has the statement of a session cancelled, if the worker has that session.
    pub(super) fn cancel(&self, target: Arc<Target>) {
        let mut cancels = self.cancels.lock();
        // One for each session, however often its client asks.
        if !cancels.iter().any(|own| Arc::ptr_eq(own, &target)) {
            cancels.push(target);
        }
        drop(cancels);
        self.wake();
    }

    pub(super) fn wake(&self) {
        // It fails only when the counter is full, and then the worker is awake.
        let _raised = rustix::io::write(&self.event, ONE);
    }
}

impl Wake for Mailbox {
    fn wake(self: Arc<Self>) {
        Self::wake(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        Self::wake(self);
    }
}

/// See the module.
pub(super) struct Worker {
    forwarder: Arc<Forwarder>,
    mailbox: Arc<Mailbox>,
    waker: Waker,
    epoll: OwnedFd,
    answers: Answers,
    /// By place; a token is twice that, and one more for the source.
    sessions: Vec<Option<Box<Forwarded>>>,
    free: Vec<usize>,
    /// The places of sessions whose first request waits.
    waiting: Vec<usize>,
    buffer: Box<[u8]>,
    to_client: Vec<u8>,
    to_source: Vec<u8>,
    swept: Tick,
}

impl Worker {
    pub(super) fn new(forwarder: Arc<Forwarder>, mailbox: Arc<Mailbox>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let events = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &mailbox.event, epoll::EventData::new_u64(MAIL), events)?;
        let answers = Answers::new(&forwarder.shared.engine);
        let (swept, _) = answers.now();
        Ok(Self {
            forwarder,
            waker: Waker::from(Arc::clone(&mailbox)),
            mailbox,
            epoll,
            answers,
            sessions: Vec::new(),
            free: Vec::new(),
            waiting: Vec::new(),
            buffer: vec![0; READ_BUFFER_BYTES].into(),
            to_client: Vec::new(),
            to_source: Vec::new(),
            swept,
        })
    }

    /// Serves until the server stops, or drains and the last session has ended.
    pub(super) fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS_PER_POLL);
        while !self.forwarder.shared.is_stopping() {
            if !self.wait(&mut events) {
                return;
            }
            self.answers.begin_turn();
            for event in events.drain(..) {
                match event.data.u64() {
                    MAIL => {
                        self.take_mail();
                        self.take_cancels();
                    }
                    token => {
                        let flags = event.flags;
                        self.serve(token, flags.intersects(HUNG_UP));
                    }
                }
            }
            self.look_again();
            self.sweep();
            if self.forwarder.is_closing() && self.drain() {
                return;
            }
        }
    }

    fn wait(&self, events: &mut Vec<epoll::Event>) -> bool {
        events.clear();
        let patience: Duration = if self.waiting.is_empty() { SWEEP_INTERVAL } else { CHECK_PATIENCE };
        let patience = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => true,
            Err(error) => {
                tracing::error!(%error, "forwarded sessions cannot be waited for");
                false
            }
        }
    }

    fn take_mail(&mut self) {
        let sessions = std::mem::take(&mut *self.mailbox.sessions.lock());
        for session in sessions {
            let place = self.free.pop().unwrap_or_else(|| {
                self.sessions.push(None);
                self.sessions.len() - 1
            });
            self.sessions[place] = Some(Box::new(session));
            self.with(place, |session, bench| {
                session.begin(bench);
                session.turn(Side::Client, bench)
            });
        }
    }

    fn take_cancels(&mut self) {
        let targets = std::mem::take(&mut *self.mailbox.cancels.lock());
        for target in targets {
            let is_its = |session: &Option<Box<Forwarded>>| {
                session.as_ref().is_some_and(|session| session.is_target(&target))
            };
            let Some(place) = self.sessions.iter().position(is_its) else { continue };
            self.with(place, |session, bench| {
                session.cancel(target);
                session.turn(Side::Client, bench)
            });
        }
    }

    fn serve(&mut self, token: u64, hung_up: bool) {
        let Ok(token) = usize::try_from(token) else { return };
        let side = if token.is_multiple_of(2) { Side::Client } else { Side::Source };
        self.with(token / 2, |session, bench| {
            if hung_up {
                session.hung_up(side);
            }
            let mut goes_on = session.turn(side, bench);
            while goes_on && (session.has_more(Side::Client) || session.has_more(Side::Source)) {
                goes_on = session.turn(Side::Client, bench) && session.turn(Side::Source, bench);
            }
            goes_on
        });
    }

    /// Gives a session what it works with; it is closed if `turn` says so, or panics.
    fn with(&mut self, place: usize, turn: impl FnOnce(&mut Forwarded, &mut Bench<'_>) -> bool) {
        let Some(Some(session)) = self.sessions.get_mut(place) else { return };
        let Self { answers, buffer, to_client, to_source, waker, .. } = self;
        let mut bench = Bench { answers, buffer, to_client, to_source, waker };
        // What a turn leaves behind is not looked at: the session is closed, and the statements are prepared again.
        let done = catch_unwind(AssertUnwindSafe(|| turn(session, &mut bench)));
        let goes_on = done.unwrap_or_else(|_| {
            let now = self.answers.now().0;
            session.say_last("XX000", "internal error", now);
            self.answers.count(Counter::Panics, 1);
            self.answers = Answers::new(&self.forwarder.shared.engine);
            self.to_client.clear();
            self.to_source.clear();
            false
        });
        if self.to_client.capacity() > REPLY_BUFFER_KEPT_BYTES {
            self.to_client = Vec::new();
        }
        if self.to_source.capacity() > REPLY_BUFFER_KEPT_BYTES {
            self.to_source = Vec::new();
        }
        if !goes_on || !self.watch(place) {
            return self.close(place);
        }
        let Some(session) = &mut self.sessions[place] else { return };
        if let Some(target) = session.cancel_now() {
            self.forwarder.cancel_there(target);
        }
        if session.waits() && !session.listed {
            session.listed = true;
            self.waiting.push(place);
        }
    }

    /// Something that sessions wait for may have come, or their patience is over.
    fn look_again(&mut self) {
        let (_, now_us) = self.answers.now();
        for place in std::mem::take(&mut self.waiting) {
            let Some(session) = &mut self.sessions[place] else { continue };
            // Another session may have taken the place of one that is gone.
            if !session.listed || !session.waits() {
                session.listed = false;
            } else if session.is_due(now_us) {
                session.listed = false;
                self.with(place, Forwarded::look_again);
            } else {
                self.waiting.push(place);
            }
        }
    }

    /// Asks for the events that a session waits for.
    fn watch(&mut self, place: usize) -> bool {
        let Some(Some(session)) = self.sessions.get_mut(place) else { return true };
        for (at, side) in [Side::Client, Side::Source].into_iter().enumerate() {
            let wanted = session.interest(side);
            if session.interests[at] == wanted {
                continue;
            }
            let before = std::mem::replace(&mut session.interests[at], wanted);
            let socket = if side == Side::Client { &session.client } else { &session.source };
            let token = token_of(place, side);
            let changed = match (before, wanted) {
                (Some(_), Some(wanted)) => epoll::modify(&self.epoll, socket, token, wanted),
                (None, Some(wanted)) => epoll::add(&self.epoll, socket, token, wanted),
                (_, None) => epoll::delete(&self.epoll, socket),
            };
            if changed.is_err() {
                return false;
            }
        }
        true
    }

    fn close(&mut self, place: usize) {
        if let Some(session) = self.sessions.get_mut(place).and_then(Option::take) {
            let _gone = epoll::delete(&self.epoll, session.client.as_fd());
            let _gone = epoll::delete(&self.epoll, session.source.as_fd());
            self.free.push(place);
        }
    }

    /// Closes clients that are silent for too long, or read too slowly.
    fn sweep(&mut self) {
        let now = self.answers.now().0;
        if ticks_between(self.swept, now) < ticks(SWEEP_INTERVAL) {
            return;
        }
        self.swept = now;
        let idle = self.forwarder.shared.idle_timeout().map(ticks);
        for place in 0..self.sessions.len() {
            let Some(session) = &mut self.sessions[place] else { continue };
            let silent = session.is_idle_for(now);
            let (counter, state, message) = if session.client.sending.is_too_slow(now) {
                (Counter::SlowKicks, "08006", "terminating connection because it reads too slowly")
            } else if idle.is_some_and(|idle| silent.is_some_and(|silent| silent > idle)) {
                (Counter::IdleKicks, "57P05", "terminating connection due to idle-session timeout")
            } else {
                continue;
            };
            session.say_last(state, message, now);
            self.answers.count(counter, 1);
            self.close(place);
        }
    }

    /// Ends the sessions in which nothing is under way. True: none is left.
    fn drain(&mut self) -> bool {
        let now = self.answers.now().0;
        for place in 0..self.sessions.len() {
            let Some(session) = &mut self.sessions[place] else { continue };
            if session.is_idle_for(now).is_some() {
                session.say_last("57P01", "terminating connection due to administrator command", now);
                self.close(place);
            }
        }
        self.sessions.iter().all(Option::is_none) && self.mailbox.sessions.lock().is_empty()
    }
}

fn token_of(place: usize, side: Side) -> epoll::EventData {
    epoll::EventData::new_u64(2 * place as u64 + u64::from(side == Side::Source))
}
