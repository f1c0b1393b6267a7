//! `stats conns`: what each connection is and does. Workers own their connections for good, so each is asked for its
//! own by letter, and reports some at a time; the last one answers.

use std::fmt::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::{TICKS_PER_SECOND, Tick};
use parking_lot::Mutex;
use rustix::net::SocketAddrUnix;

use crate::connection::Connection;
use crate::limits::CONNS_BYTES_MAX;
use crate::mailbox::{Address, Letter, Mailbox, SqlReply};

/// What is gathered for one who asked.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Who asked, and its worker.
    address: Address,
    mailbox: Arc<Mailbox>,
    /// Workers that have not told everything yet. AcqRel: the last sees what the others wrote; the text's lock orders
    /// it anyway.
    left: AtomicUsize,
    /// Taken for an append.
    text: Mutex<String>,
}

impl Gathering {
    /// Asks all workers.
    pub(crate) fn begin(address: Address, mailbox: &Arc<Mailbox>, workers: &[Arc<Mailbox>]) {
        let gathering = Arc::new(Self {
            address,
            mailbox: Arc::clone(mailbox),
            left: AtomicUsize::new(workers.len()),
            text: Mutex::default(),
        });
        for worker in workers {
            worker.send(Letter::Describe { gathering: Arc::clone(&gathering), from: 0 });
        }
    }

    /// Takes in a worker's report of some connections.
    pub(crate) fn add(&self, connections: &mut dyn Iterator<Item = &Connection>, now: Tick) {
        let mut lines = String::new();
        for connection in connections {
            describe(connection, now, &mut lines);
        }
        let mut text = self.text.lock();
        if text.len() + lines.len() <= CONNS_BYTES_MAX {
            text.push_str(&lines);
        }
    }

    /// A worker has told everything.
    pub(crate) fn finish(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let mut bytes = std::mem::take(&mut *self.text.lock()).into_bytes();
        bytes.extend_from_slice(b"END\r\n");
        self.mailbox.send(Letter::Reply(SqlReply { address: self.address, bytes, panicked: false }));
    }
}

fn describe(connection: &Connection, now: Tick, lines: &mut String) {
    let fd = connection.raw_fd();
    let named = |address: Option<SocketAddr>| match address {
        Some(address) => format!("tcp:{address}"),
        None => format!("unix:{}", own_path(connection)),
    };
    let state = connection.state();
    let idle = connection.idle_ticks(now) / TICKS_PER_SECOND;
    // Writing to a string does not fail.
    let _ = write!(
        lines,
        "STAT {fd}:addr {}\r\nSTAT {fd}:listen_addr {}\r\nSTAT {fd}:state {state}\r\n\
         STAT {fd}:secs_since_last_cmd {idle}\r\n",
        named(peer(connection)),
        named(own(connection)),
    );
}

/// The peer's address; none on the Unix socket, and when it is gone.
pub(crate) fn peer(connection: &Connection) -> Option<SocketAddr> {
    let address = rustix::net::getpeername(connection.socket.as_fd()).ok()??;
    SocketAddr::try_from(address).ok()
}

/// The path of the Unix socket that it came by.
fn own_path(connection: &Connection) -> String {
    let address = rustix::net::getsockname(connection.socket.as_fd()).ok();
    let address = address.and_then(|address| SocketAddrUnix::try_from(address).ok());
    let path = address.as_ref().and_then(SocketAddrUnix::path_bytes).unwrap_or_default();
    String::from_utf8_lossy(path).into_owned()
}

fn own(connection: &Connection) -> Option<SocketAddr> {
    SocketAddr::try_from(rustix::net::getsockname(connection.socket.as_fd()).ok()?).ok()
}
