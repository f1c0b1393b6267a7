//! What carries the bytes of a connection. It waits no longer than it is told.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use bytes::BytesMut;
use rustls::{ClientConnection, StreamOwned};

use crate::error::Error;
use crate::limits::{ANSWER_TIMEOUT, BUFFER_KEPT_BYTES, READ_BYTES};

/// What carries the bytes.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A socket that does not block, and what encrypts it.
pub(crate) type Parts = (OwnedFd, Option<Box<ClientConnection>>);

impl Stream {
    /// Connects to a Unix socket.
    pub(crate) fn connect_local(path: &Path) -> Result<Self, Error> {
        let failed = |error| refused(&path.display().to_string(), &error);
        UnixStream::connect(path).map(Self::Unix).map_err(failed)
    }

    /// Connects by name and port.
    pub(crate) fn connect(host: &str, port: u16, timeout: Duration) -> Result<Self, Error> {
        let failed = |error: io::Error| refused(&format!("{host}, port {port}"), &error);
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (host, port).to_socket_addrs().map_err(failed)? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true).map_err(failed)?;
                    return Ok(Self::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }

    /// The socket, which does not block any more, and what encrypts it.
    pub(crate) fn into_parts(self) -> io::Result<Parts> {
        Ok(match self {
            Self::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                (stream.into(), None)
            }
            Self::Unix(stream) => {
                stream.set_nonblocking(true)?;
                (stream.into(), None)
            }
            Self::Tls(stream) => {
                let StreamOwned { conn, sock } = *stream;
                sock.set_nonblocking(true)?;
                (sock.into(), Some(Box::new(conn)))
            }
        })
    }

    pub(crate) fn wait_at_most(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout.max(Duration::from_millis(1)));
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(timeout),
            Self::Unix(stream) => stream.set_read_timeout(timeout),
            Self::Tls(stream) => stream.sock.set_read_timeout(timeout),
        }
    }

    pub(crate) fn write_within(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_write_timeout(Some(timeout)),
            Self::Unix(stream) => stream.set_write_timeout(Some(timeout)),
            Self::Tls(stream) => stream.sock.set_write_timeout(Some(timeout)),
        }
    }

    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(bytes),
            Self::Unix(stream) => stream.read(bytes),
            Self::Tls(stream) => stream.read(bytes),
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Tls(stream) => {
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }
}

/// A stream, and what has come of it and was not taken yet.
pub(crate) struct Inbox {
    pub(crate) stream: Stream,
    received: BytesMut,
    /// How long a read waits now.
    wait: Duration,
    scratch: Box<[u8]>,
}

impl Inbox {
    pub(crate) fn over(stream: Stream) -> Result<Self, Error> {
        stream.write_within(ANSWER_TIMEOUT)?;
        let (received, scratch) = (BytesMut::with_capacity(READ_BYTES), vec![0; READ_BYTES].into());
        Ok(Self { stream, received, wait: Duration::ZERO, scratch })
    }

    /// What has come.
    pub(crate) fn received(&self) -> &[u8] {
        &self.received
    }

    /// Reads what is there; false: nothing came within this time.
    pub(crate) fn receive_within(&mut self, wait: Duration) -> Result<bool, Error> {
        if self.wait != wait {
            self.stream.wait_at_most(wait)?;
            self.wait = wait;
        }
        match self.stream.read(&mut self.scratch) {
            Ok(0) => Err(Error::connection("the source closed the connection")),
            Ok(count) => {
                self.received.extend_from_slice(&self.scratch[..count]);
                Ok(true)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ok(false),
                io::ErrorKind::Interrupted => Ok(true),
                _ => Err(error.into()),
            },
        }
    }

    /// Takes the first bytes. A buffer that one large message made is let go.
    pub(crate) fn take(&mut self, count: usize) -> BytesMut {
        let taken = self.received.split_to(count);
        if self.received.is_empty() && self.received.capacity() > BUFFER_KEPT_BYTES {
            self.received = BytesMut::with_capacity(READ_BYTES);
        }
        taken
    }
}

fn refused(place: &str, error: &io::Error) -> Error {
    Error::new("08001", format!("cannot connect to {place}: {error}"))
        .with_hint("check host and port: ALTER SERVER ... OPTIONS (SET host '...', SET port '...')")
}
