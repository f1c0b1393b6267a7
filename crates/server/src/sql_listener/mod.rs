//! The PostgreSQL listener: sessions of SQL, served by the SQL threads themselves.
//!
//! ```text
//!   PostgreSQL acceptor: listeners, opening packets, cancel requests, timeouts
//!        | a connection whose session has begun
//!        v
//!   one epoll, all SQL threads wait on it --> whoever is told takes the connection, reads, executes, writes
//! ```
//!
//! There is no hand-over between threads on the way of a statement: the thread that the kernel wakes does all of it. A
//! long statement keeps one SQL thread; the others serve, and the acceptor still takes in connections and cancels.
//!
//! An event says "there is something"; who holds the connection's lock acts on it. A thread that is told of a
//! connection in another's hands leaves a mark and goes on, and the other looks once more before it leaves
//! ([`places`]). So an event costs one `recv`, one `send` and a part of an `epoll_wait`, and nothing is registered
//! again.

mod accept;
mod connection;
mod copy;
mod dialogue;
mod opening;
mod places;
mod rows;
mod turn;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, epoll, eventfd};

pub(crate) use accept::{SqlAcceptor, SqlCall};
pub(crate) use turn::{RequestLoop as SqlRequestLoop, serve};

use self::connection::Connection;
use self::places::{Place, Places};
use crate::cancels::Cancels;
use crate::forward::Forwarder;
use crate::run_permits::RunPermits;
use crate::shared::Shared;

/// The mark of the event that no connection causes: a statement of a memcached client waits, a connection wants
/// another turn, or the server stops.
const CALL: u64 = u64::MAX;

/// What is added to an event counter. The counters are in the order of the processor's bytes, which is this one on
/// x86-64 and aarch64.
const ONE: &[u8; 8] = &1_u64.to_le_bytes();

/// What the SQL threads and the listener's acceptor share.
#[derive(Debug)]
pub(crate) struct SqlListener {
    epoll: OwnedFd,
    /// Raised to call one thread.
    call: OwnedFd,
    /// Held for a moment; no other lock is taken meanwhile.
    told: Mutex<Told>,
    places: Places,
    pub(crate) cancels: Arc<Cancels>,
    /// Connections that have something to do without an event, each once.
    again: Mutex<VecDeque<usize>>,
    /// For the SQL threads that work.
    pub(crate) permits: RunPermits,
    pub(crate) shared: Arc<Shared>,
    pub(crate) forwarder: Arc<Forwarder>,
}

/// What the kernel has told, and nobody has acted on yet. A thread takes some events at once and works on the first;
/// the others wait here for whoever is free next, so that nobody waits behind a long statement while a thread is free.
#[derive(Debug, Default)]
struct Told {
    wakes: VecDeque<Wake>,
    /// Threads that wait for the kernel.
    waiting: usize,
    /// One of them was called for what is here, and has not come yet.
    called: bool,
}

impl Told {
    /// Whether a thread that waits has to be called: those that come later look here before they wait.
    #[inline]
    fn calls(&mut self) -> bool {
        let calls = self.waiting > 0 && !self.wakes.is_empty() && !self.called;
        self.called |= calls;
        calls
    }
}

/// What a SQL thread was woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// A connection has something to read, or room to write.
    Connection {
        /// Where it is.
        place: usize,
        /// Its peer has sent its last byte.
        half_closed: bool,
        /// Its peer is gone altogether.
        hung_up: bool,
    },
    /// See [`CALL`].
    Call,
}

impl Wake {
    fn of(event: &epoll::Event) -> Option<Self> {
        let (data, flags) = (event.data, event.flags);
        if data.u64() == CALL {
            return Some(Self::Call);
        }
        let hung_up = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        let half_closed = hung_up || flags.contains(epoll::EventFlags::RDHUP);
        usize::try_from(data.u64()).ok().map(|place| Self::Connection { place, half_closed, hung_up })
    }

    /// The same without what [`SqlListener::heed_end`] has seen to.
    fn without_end(self) -> Self {
        match self {
            Self::Connection { place, .. } => Self::Connection { place, half_closed: false, hung_up: false },
            Self::Call => Self::Call,
        }
    }
}

impl SqlListener {
    /// A listener whose connections so many threads serve at once.
    pub(crate) fn new(
        shared: Arc<Shared>,
        threads: usize,
        forwarder: Arc<Forwarder>,
    ) -> io::Result<Arc<Self>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let call = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Edge-triggered and never read: each call wakes one thread.
        epoll::add(
            &epoll,
            &call,
            epoll::EventData::new_u64(CALL),
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )?;
        Ok(Arc::new(Self {
            epoll,
            call,
            told: Mutex::default(),
            places: Places::new(),
            cancels: Arc::default(),
            again: Mutex::new(VecDeque::new()),
            permits: RunPermits::new(threads),
            shared,
            forwarder,
        }))
    }

    /// Waits until there is something to do. `events` holds as many as are taken from the kernel at once.
    pub(crate) fn wait(&self, events: &mut Vec<epoll::Event>) -> io::Result<Option<Wake>> {
        events.clear();
        let mut told = self.told.lock();
        let mut first = told.wakes.pop_front();
        if first.is_none() {
            told.waiting += 1;
            drop(told);
            let waited = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), None);
            first = events.first().and_then(Wake::of);
            let later = || events.iter().skip(1).filter_map(Wake::of);
            later().for_each(|wake| self.heed_end(wake));
            told = self.told.lock();
            told.waiting -= 1;
            waited?;
            told.wakes.extend(later().map(Wake::without_end));
            told.called &= !events.iter().any(|event| event.data.u64() == CALL);
        }
        let calls = told.calls();
        drop(told);
        if calls {
            self.call();
        }
        Ok(first)
    }

    /// Does at once what may not wait until an event has its turn: by then its place may be another connection's.
    fn heed_end(&self, wake: Wake) {
        let Wake::Connection { place, half_closed: true, hung_up } = wake else { return };
        self.note_half_closed(place);
        if hung_up
            && let Some(found) = self.places.get(place)
            && found.look().is_none()
        {
            // Nobody is left to read what the statement will answer.
            found.cancel();
        }
    }

    /// Notes that a peer has sent its last byte: the kernel says so once.
    #[cold]
    pub(crate) fn note_half_closed(&self, place: usize) {
        if let Some(found) = self.places.get(place) {
            found.half_close();
        }
    }

    /// Wakes one SQL thread.
    pub(crate) fn call(&self) {
        // It fails only when the counter is full, and then it was raised before.
        let _raised = rustix::io::write(&self.call, ONE);
    }

    /// A connection that wants another turn, if one does.
    pub(crate) fn next_again(&self) -> Option<usize> {
        let place = self.again.lock().pop_front()?;
        self.places.get(place)?.dequeue();
        Some(place)
    }

    /// Whether [`SqlListener::next_again`] would find one.
    pub(crate) fn has_again(&self) -> bool {
        !self.again.lock().is_empty()
    }

    /// Gives a connection another turn, behind those that wait already.
    fn turn_again(&self, place: usize) {
        if self.places.get(place).is_some_and(Place::enqueue) {
            self.again.lock().push_back(place);
            self.call();
        }
    }

    /// Takes a connection in.
    fn open(self: &Arc<Self>, connection: Connection) -> io::Result<()> {
        let has_input = connection.has_input() || connection.socket.has_decrypted();
        let data = |place: usize| epoll::EventData::new_u64(place as u64);
        let place = self.places.put(connection, |connection, place| {
            let listener = Arc::downgrade(self);
            connection.session.set_wake(Box::new(move || {
                if let Some(listener) = listener.upgrade() {
                    listener.turn_again(place);
                }
            }));
            Ok(epoll::add(&self.epoll, connection.fd(), data(place), interest(false))?)
        })?;
        // A thread may have been told of it before it was in its place.
        if has_input || self.places.get(place).is_some_and(Place::is_marked) {
            self.turn_again(place);
        }
        Ok(())
    }

    /// Asks for events of a connection, for room to write only while replies wait.
    fn watch(&self, place: usize, connection: &Connection, awaits_room: bool) -> io::Result<()> {
        let data = epoll::EventData::new_u64(place as u64);
        Ok(epoll::modify(&self.epoll, connection.fd(), data, interest(awaits_room))?)
    }

    /// Stops all statements: the server's patience has ended.
    pub(crate) fn stop(&self) {
        self.cancels.cancel_all();
        self.permits.end();
        self.call();
    }
}

fn interest(awaits_room: bool) -> epoll::EventFlags {
    let always = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
    if awaits_room { always | epoll::EventFlags::OUT } else { always }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_those_who_wait_is_called_for_what_was_set_aside() {
        let mut told = Told::default();
        told.wakes.push_back(Wake::Call);
        assert!(!told.calls(), "nobody waits");
        told.waiting = 2;
        assert!(told.calls());
        assert!(!told.calls(), "one is on its way");
        told.called = false;
        assert!(told.calls(), "one has come, and left something");
        told.called = false;
        told.wakes.clear();
        assert!(!told.calls(), "nothing is left");
    }
}
