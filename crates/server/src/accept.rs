//! The acceptor: the one way in, where the limit of connections is kept.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use engine::Session;
use engine::auth::{Peer, Protocol};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown};

use crate::connection::Newcomer;
use crate::limits::{ACCEPT_REST, ACCEPTS_PER_TURN};
use crate::listen::Listener;
use crate::mailbox::{Mailbox, Message};
use crate::origin::{MEMCACHED, Place, address_of, failed, origin_of};
use crate::shared::{Full, Shared};
use crate::socket::Socket;
use crate::tls::{Tls, Transport};
use crate::unproved::Unproved;

/// What a peer reads who came when all places were taken; memcached's words.
const TOO_MANY: &[u8] = b"ERROR Too many open connections\r\n";

/// The same where only its own address has none left.
const TOO_MANY_OF_ADDRESS: &[u8] =
    b"ERROR Too many open connections from this address (max_connections_per_address)\r\n";

/// What a peer reads whom the rules do not let in.
pub(crate) const REFUSED: &[u8] = b"ERROR connection refused by the rules (hba_file)\r\n";

/// Accepts connections and hands them to the workers in turn.
#[derive(Debug)]
pub(crate) struct Acceptor {
    poll: Poll,
    /// Kept so that the waker stays registered.
    waker: Arc<Waker>,
    listeners: Vec<Listener>,
    mailboxes: Vec<Arc<Mailbox>>,
    shared: Arc<Shared>,
    /// The worker that gets the next connection.
    next: usize,
}

/// The most common outcomes of trying to accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepted {
    /// Took one in, or turned it away.
    One,
    /// Nobody waits.
    Nobody,
    /// The kernel has no descriptor or memory to give.
    Exhausted,
}

impl Acceptor {
    pub(crate) fn new(
        listeners: Vec<Listener>,
        mailboxes: Vec<Arc<Mailbox>>,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        for (token, listener) in listeners.iter().enumerate() {
            let fd = listener.as_fd().as_raw_fd();
            poll.registry().register(&mut SourceFd(&fd), Token(token), Interest::READABLE)?;
        }
        let waker = Arc::new(Waker::new(poll.registry(), Token(listeners.len()))?);
        Ok(Self { poll, waker, listeners, mailboxes, shared, next: 0 })
    }

    /// Wakes the acceptor, so that it sees that the server drains.
    pub(crate) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Accepts until the server drains; the listening sockets are closed on return.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(self.listeners.len() + 1);
        let mut timeout = None;
        while !self.shared.is_draining() {
            if let Err(error) = self.poll.poll(&mut events, timeout)
                && error.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!(%error, "acceptor cannot wait for connections");
                std::thread::sleep(ACCEPT_REST);
            }
            timeout = self.accept_all();
        }
    }

    /// Accepts from each listener; says when to try again although no new connection is announced.
    fn accept_all(&mut self) -> Option<std::time::Duration> {
        let mut again = None;
        for at in 0..self.listeners.len() {
            for turn in 0..=ACCEPTS_PER_TURN {
                match self.accept(at) {
                    Accepted::One if turn == ACCEPTS_PER_TURN => again = Some(std::time::Duration::ZERO),
                    Accepted::One => continue,
                    Accepted::Nobody => {}
                    Accepted::Exhausted => again = Some(ACCEPT_REST),
                }
                break;
            }
        }
        again
    }

    fn accept(&mut self, listener: usize) -> Accepted {
        match self.listeners[listener].accept() {
            Ok(fd) => {
                self.welcome(fd, self.listeners[listener].transport);
                Accepted::One
            }
            Err(Errno::AGAIN) => Accepted::Nobody,
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS)) => {
                tracing::warn!(%error, "no descriptor for a new connection; raise the limit of open files");
                Accepted::Exhausted
            }
            // The peer went away while it waited.
            Err(_) => Accepted::One,
        }
    }

    /// The session of a peer: of this machine's, or of somebody who must prove a role. `None`: the rules refuse it.
    fn session_of(&self, fd: &OwnedFd) -> Option<Session> {
        let origin = origin_of(fd, false);
        let access = &self.shared.engine.access;
        let peer = Peer { origin: &origin, protocol: Protocol::Memcached, database: None, certificate: None };
        match access.current().admit_nameless(peer) {
            None => Some(Session::stranger()),
            Some(Ok(who)) => Some(Session::of(&who, access, address_of(fd), MEMCACHED)),
            Some(Err(_)) => {
                let address = address_of(fd);
                tracing::warn!(address = %Place(address), "memcached client refused by the rules");
                access.note_failure(failed(None, address, MEMCACHED, "refused by the rules"));
                None
            }
        }
    }

    fn welcome(&mut self, fd: OwnedFd, transport: Transport) {
        let permit = match self.shared.admit(address_of(&fd)) {
            Ok(permit) => permit,
            Err(full) => {
                return refuse(&fd, if full == Full::Server { TOO_MANY } else { TOO_MANY_OF_ADDRESS });
            }
        };
        let encryption = self.shared.encryption().filter(|_| transport != Transport::Plain);
        // Who encrypts is a stranger until the keys are agreed on: a certificate may say who it is.
        let session = if encryption.is_some() { Some(Session::stranger()) } else { self.session_of(&fd) };
        let Some(session) = session else {
            refuse(&fd, REFUSED);
            return;
        };
        let mut unproved = None;
        if session.is_stranger() {
            unproved = Unproved::admit(&self.shared, self.shared.engine.store().now(), address_of(&fd));
            if unproved.is_none() {
                refuse(&fd, TOO_MANY);
                return;
            }
        }
        let mut socket = Socket::new(fd);
        if let Some(encryption) = encryption {
            let Some(tls) = Tls::for_memcached(&encryption, transport) else { return };
            socket.begin_tls(tls, &mut Vec::new());
        }
        self.next = (self.next + 1) % self.mailboxes.len();
        let newcomer = Newcomer { socket, session, permit, unproved };
        self.mailboxes[self.next].send(Message::Connection(Box::new(newcomer)));
    }
}

/// Says why and closes. What the peer has sent already is read first, or the kernel would cut our words off.
fn refuse(fd: &OwnedFd, answer: &[u8]) {
    let mut sent_already = [0; 2048];
    let _refused = rustix::net::recv(fd, &mut sent_already, rustix::net::RecvFlags::empty());
    let _refused = rustix::net::send(fd, answer, SendFlags::NOSIGNAL);
    let _refused = rustix::net::shutdown(fd, Shutdown::Write);
}
