//! A forwarded session's two sockets, and what passes between them.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::task::Waker;

use engine::{Counter, SqlSession, Tick, ticks_between};
use forward::{Answers, Hands, Out, Session};
use rustix::event::epoll;

use crate::cancels::{Cancels, Key, Target};
use crate::fatal::fatal;
use crate::limits::FORWARD_READS_PER_TURN;
use crate::shared::Permit;
use crate::shared::Shared;
use crate::socket::Socket;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Source,
}

/// What a worker lends a session for a turn.
pub(super) struct Bench<'w> {
    pub(super) answers: &'w mut Answers,
    /// Where bytes are read to.
    pub(super) buffer: &'w mut [u8],
    pub(super) to_client: &'w mut Vec<u8>,
    pub(super) to_source: &'w mut Vec<u8>,
    /// Wakes the worker.
    pub(super) waker: &'w Waker,
}

/// What it is counted and found by.
pub(super) type Places = (Arc<Shared>, Arc<Cancels>);

/// See the module.
#[derive(Debug)]
pub(crate) struct Forwarded {
    pub(super) client: Socket,
    pub(super) source: Socket,
    session: Session,
    shared: Arc<Shared>,
    cancels: Arc<Cancels>,
    /// Gives the place among all connections back when the session goes.
    _permit: Permit,
    /// Shows the session among all others.
    _shown: SqlSession,
    key: Key,
    /// What the client has sent before its session began.
    early: Vec<u8>,
    /// Bytes of this session in the sum of all.
    accounted: usize,
    /// What each side waits for; none: no event of it is heard.
    pub(super) interests: [Option<epoll::EventFlags>; 2],
    /// How a request to cancel names it at its source, and one that waits until what its client has sent is forwarded.
    target: Arc<Target>,
    cancel: Option<Arc<Target>>,
    /// An answer came for a client that is gone. The source, too, goes on with such a one's requests until then.
    is_unheard: bool,
    /// When something came last.
    active: Tick,
    /// It is in its worker's list of those that wait.
    pub(super) listed: bool,
}

impl Forwarded {
    pub(super) fn new(
        client: Socket,
        source: Socket,
        session: Session,
        ((shared, cancels), permit, shown, key, target): (Places, Permit, SqlSession, Key, Arc<Target>),
        early: Vec<u8>,
        now: Tick,
    ) -> Self {
        let interests = [None; 2];
        Self {
            client,
            source,
            session,
            shared,
            cancels,
            _permit: permit,
            _shown: shown,
            key,
            early,
            accounted: 0,
            interests,
            target,
            cancel: None,
            is_unheard: false,
            active: now,
            listed: false,
        }
    }

    /// Begins with the source, and takes what the client sent before its session began.
    pub(super) fn begin(&mut self, bench: &mut Bench<'_>) {
        let Bench { to_client, to_source, .. } = bench;
        self.session.begin(&mut Out { client: to_client, source: to_source });
        self.source.deliver(to_source, self.active);
        let early = std::mem::take(&mut self.early);
        if !early.is_empty() {
            self.passed(Side::Client, &early, bench);
        }
    }

    /// Something has come from a side, or it has room. False: the session is over.
    pub(super) fn turn(&mut self, side: Side, bench: &mut Bench<'_>) -> bool {
        self.client.flush();
        self.source.flush();
        for _ in 0..FORWARD_READS_PER_TURN {
            if !self.may_read(side) {
                break;
            }
            let own = if side == Side::Client { &mut self.client } else { &mut self.source };
            let mut buffer = std::mem::take(&mut bench.buffer);
            let (count, more) = own.receive(buffer);
            if count > 0 {
                self.passed(side, &buffer[..count], bench);
            }
            std::mem::swap(&mut bench.buffer, &mut buffer);
            if !more {
                break;
            }
        }
        self.goes_on()
    }

    /// The other end of a side is gone, also for what it would still be sent.
    pub(super) fn hung_up(&mut self, side: Side) {
        // What it has sent before is still read.
        if side == Side::Client && self.client.ended {
            self.client.broken = true;
        }
    }

    /// The client sends nothing more. When the source was sent all that it had sent before, the source learns that.
    /// As for a client of its own, it answers the rest, and ends the session.
    fn end_source(&mut self) {
        let is_over = self.client.ended || self.client.broken;
        if is_over && !self.source.finished && self.session.has_sent_all() {
            self.source.finish();
        }
    }

    /// Whether bytes of a side may be read: the other one takes what it is sent.
    fn may_read(&self, side: Side) -> bool {
        let both = self.client.keeps_up() && self.source.keeps_up();
        let own = if side == Side::Client { &self.client } else { &self.source };
        let takes = side == Side::Source || self.session.takes_more();
        both && takes && !own.ended && !own.broken
    }

    /// Gives the session what has come from a side, and sends what it says.
    fn passed(&mut self, side: Side, bytes: &[u8], bench: &mut Bench<'_>) {
        let Bench { answers, to_client, to_source, waker, .. } = bench;
        let (now, now_us) = answers.now();
        self.active = now;
        let mut hands = Hands { answers, now_us, waker };
        let mut out = Out { client: to_client, source: to_source };
        match side {
            Side::Client => self.session.client_sent(bytes, &mut hands, &mut out),
            Side::Source => self.session.source_sent(bytes, &mut hands, &mut out),
        }
        self.is_unheard |= self.client.broken && !to_client.is_empty();
        let mut written = 0;
        if !to_source.is_empty() {
            written += self.source.deliver(to_source, now);
        }
        if !to_client.is_empty() {
            written += self.client.deliver(to_client, now);
        }
        answers.count(Counter::BytesRead, bytes.len() as u64);
        answers.count(Counter::BytesWritten, written as u64);
    }

    /// Whether this is it.
    pub(super) fn is_target(&self, target: &Arc<Target>) -> bool {
        Arc::ptr_eq(&self.target, target)
    }

    /// Its statement is to be cancelled.
    pub(super) fn cancel(&mut self, target: Arc<Target>) {
        self.cancel = Some(target);
        self.session.stop_joining();
    }

    /// What to cancel at the source, as soon as that was sent all that the client has sent.
    pub(super) fn cancel_now(&mut self) -> Option<Arc<Target>> {
        let is_sent = self.source.output_waiting() == 0 && !self.session.holds_requests();
        if is_sent { self.cancel.take() } else { None }
    }

    /// Whether its first request waits for the stream, or for another session's answer.
    pub(super) fn waits(&self) -> bool {
        self.session.waits()
    }

    /// Whether its first request, which waits, is to be looked at.
    pub(super) fn is_due(&self, now_us: u64) -> bool {
        self.session.is_due(now_us)
    }

    /// Looks again at the request that waits. False: the session is over.
    pub(super) fn look_again(&mut self, bench: &mut Bench<'_>) -> bool {
        self.passed(Side::Client, &[], bench);
        self.goes_on()
    }

    /// Whether there is still something to do.
    fn goes_on(&mut self) -> bool {
        self.end_source();
        let waiting = self.client.output_memory() + self.source.output_memory() + self.session.held();
        let before = std::mem::replace(&mut self.accounted, waiting);
        let within_memory = before == waiting || self.shared.account(before, waiting);
        // What the source has said last still goes to the client.
        let is_over = self.source.ended && self.client.output_waiting() == 0;
        within_memory && !is_over && !self.is_unheard && !self.source.broken
    }

    /// What it waits for from now on, of each side. Without anything, it is not to be told that the side is gone,
    /// either: it would be told so again and again.
    pub(super) fn interest(&self, side: Side) -> Option<epoll::EventFlags> {
        let own = if side == Side::Client { &self.client } else { &self.source };
        if own.broken || (side == Side::Source && own.ended) {
            return None;
        }
        let mut flags = epoll::EventFlags::empty();
        if self.may_read(side) {
            flags |= epoll::EventFlags::IN;
        }
        if own.output_waiting() > 0 {
            flags |= epoll::EventFlags::OUT;
        }
        Some(flags).filter(|flags| !flags.is_empty())
    }

    /// Whether decrypted bytes wait that no event announces.
    pub(super) fn has_more(&self, side: Side) -> bool {
        let own = if side == Side::Client { &self.client } else { &self.source };
        own.has_decrypted() && self.may_read(side)
    }

    /// Whether nothing is under way, and for so many ticks.
    pub(super) fn is_idle_for(&self, now: Tick) -> Option<u64> {
        self.session.is_idle().then(|| ticks_between(self.active, now))
    }

    /// Tells the client why the session ends.
    pub(super) fn say_last(&mut self, state: &str, message: &str, now: Tick) {
        let mut out = Vec::new();
        fatal(state, message, &mut out);
        self.client.deliver(&mut out, now);
    }
}

impl AsFd for Forwarded {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.client.as_fd()
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        // The source hears that nobody is there any more.
        if self.session.is_between_messages() && !self.source.finished {
            self.source.deliver(&mut b"X\0\0\0\x04".to_vec(), self.active);
        }
        self.cancels.forget(self.key.process);
        self.shared.account(self.accounted, 0);
    }
}
