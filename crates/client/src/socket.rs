//! Connections to the daemon: kept for the next request, opened when there is none, and never shared by two processes.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use rustix::net::RecvFlags;

use crate::error::Error;
use crate::limits::{IDLE_CONNECTIONS_MAX, LINE_BYTES_MAX, READ_BYTES};

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    /// Bytes received; those before `at` are read.
    received: Vec<u8>,
    at: usize,
}

/// Where the connections of this process are kept.
#[derive(Debug)]
pub(crate) struct Connections {
    socket: PathBuf,
    timeout: Duration,
    /// A child after `fork` finds its parent's process id here and starts again.
    idle: ArcSwap<Idle>,
}

#[derive(Debug)]
struct Idle {
    process: u32,
    connections: Mutex<Vec<Connection>>,
}

impl Idle {
    fn of_this_process() -> Arc<Self> {
        Arc::new(Self { process: std::process::id(), connections: Mutex::default() })
    }
}

impl Connections {
    pub(crate) fn new(socket: &Path, timeout: Duration) -> Self {
        Self { socket: socket.to_owned(), timeout, idle: ArcSwap::new(Idle::of_this_process()) }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    fn idle(&self) -> Arc<Idle> {
        let idle = self.idle.load_full();
        if idle.process == std::process::id() {
            return idle;
        }
        self.idle.store(Idle::of_this_process());
        self.idle.load_full()
    }

    /// A connection that lives, kept or new.
    pub(crate) fn take(&self) -> io::Result<Connection> {
        let idle = self.idle();
        // Nobody waits here: a lock that was held in the parent when this process was forked is never given back.
        while let Some(connection) = idle.connections.try_lock().ok().and_then(|mut kept| kept.pop()) {
            if connection.is_alive() {
                return Ok(connection);
            }
        }
        Connection::open(&self.socket, self.timeout)
    }

    /// Closes those that are kept.
    pub(crate) fn close(&self) {
        self.idle.store(Idle::of_this_process());
    }

    /// Keeps a connection on which everything was answered.
    pub(crate) fn give_back(&self, connection: Connection) {
        if let Ok(mut kept) = self.idle().connections.try_lock()
            && kept.len() < IDLE_CONNECTIONS_MAX
            && connection.is_drained()
        {
            kept.push(connection);
        }
    }
}

impl Connection {
    fn open(socket: &Path, timeout: Duration) -> io::Result<Self> {
        // The place belongs to the error: a socket that is not there is most often looked for in a wrong one.
        let placed =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", socket.display()));
        let stream = UnixStream::connect(socket).map_err(placed)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self { stream, received: Vec::new(), at: 0 })
    }

    /// The user that the daemon runs as.
    pub(crate) fn peer_user(&self) -> io::Result<u32> {
        Ok(rustix::net::sockopt::socket_peercred(&self.stream)?.uid.as_raw())
    }

    /// Whether the other end is there and has said nothing unasked: so that a request is not lost on a connection that
    /// ended while nobody used it.
    fn is_alive(&self) -> bool {
        let mut byte = [0_u8; 1];
        let peeked = rustix::net::recv(&self.stream, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(peeked, Err(rustix::io::Errno::AGAIN))
    }

    fn is_drained(&self) -> bool {
        self.at == self.received.len()
    }

    pub(crate) fn send(&mut self, requests: &[u8]) -> Result<(), Error> {
        self.stream.write_all(requests).map_err(Error::Socket)
    }

    /// The next line without its end.
    pub(crate) fn line(&mut self) -> Result<Vec<u8>, Error> {
        let mut searched = self.at;
        loop {
            if let Some(found) = self.received[searched..].iter().position(|&byte| byte == b'\n') {
                let end = searched + found;
                let line = self.received[self.at..end]
                    .strip_suffix(b"\r")
                    .unwrap_or_else(|| &self.received[self.at..end]);
                let line = line.to_vec();
                self.at = end + 1;
                return Ok(line);
            }
            if self.received.len() - self.at > LINE_BYTES_MAX {
                return Err(Error::Protocol("a line does not end".into()));
            }
            searched = self.received.len() - self.at;
            self.receive()?;
            searched += self.at;
        }
    }

    /// Appends a data block of so many bytes and the line end behind it.
    pub(crate) fn block(&mut self, bytes: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        while self.received.len() - self.at < bytes + 2 {
            self.receive()?;
        }
        let end = self.at + bytes;
        if self.received[end..end + 2] != *b"\r\n" {
            return Err(Error::Protocol("a value is longer than its declared length".into()));
        }
        out.extend_from_slice(&self.received[self.at..end]);
        self.at = end + 2;
        Ok(())
    }

    fn receive(&mut self) -> Result<(), Error> {
        self.received.drain(..self.at);
        self.at = 0;
        let len = self.received.len();
        // A long value is read in ever larger pieces, so that it is not moved again and again.
        self.received.resize(len + READ_BYTES.max(len), 0);
        let read = loop {
            match self.stream.read(&mut self.received[len..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.received.truncate(len + read.as_ref().copied().unwrap_or(0));
        match read? {
            0 => Err(Error::Socket(io::ErrorKind::UnexpectedEof.into())),
            _ => Ok(()),
        }
    }
}
