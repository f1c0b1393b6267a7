//! Listening sockets.

use std::fmt;
use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use engine::auth::{Access, Protocol};
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use rustix::process::umask;

use crate::handover::Handover;
use crate::tls::Transport;

/// Why the server does not listen.
#[derive(Debug)]
pub enum ListenError {
    /// An address that others than this machine can reach.
    NotLoopback(SocketAddr),
    /// The system refused an address.
    Address(SocketAddr, io::Error),
    /// The system refused the path.
    Path(PathBuf, io::Error),
    /// Something that is no socket lies at the path.
    NotASocket(PathBuf),
    /// Another process answers at the path.
    InUse(PathBuf),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLoopback(address) => write!(
                f,
                "refusing to listen on {address}: no rule asks its clients for a proof. Give roles_file, and hba_file \
                 with a line such as: host all all 10.0.0.0/8 scram-sha-256 (for http: password protocol=http)"
            ),
            Self::Address(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::Path(path, error) => write!(f, "cannot listen on {}: {error}", path.display()),
            Self::NotASocket(path) => write!(f, "{} exists and is not a socket", path.display()),
            Self::InUse(path) => write!(f, "another server listens on {}", path.display()),
        }
    }
}

impl std::error::Error for ListenError {}

impl ListenError {
    /// Whether another process has the place.
    pub(crate) fn is_in_use(&self) -> bool {
        match self {
            Self::Address(_, error) => error.kind() == io::ErrorKind::AddrInUse,
            other => matches!(other, Self::InUse(_)),
        }
    }
}

/// A socket that connections are accepted from.
#[derive(Debug)]
pub(crate) struct Listener {
    fd: OwnedFd,
    /// Where it listens, for TCP.
    pub(crate) address: Option<SocketAddr>,
    /// How it speaks.
    pub(crate) transport: Transport,
    /// The file to remove when it stops.
    path: Option<PathBuf>,
}

impl Listener {
    /// `rules`: who may connect. What this machine's peers alone can reach needs no proof.
    pub(crate) fn tcp(
        address: SocketAddr,
        (backlog, handover): Ways<'_>,
        (access, protocol): (&Access, Protocol),
    ) -> Result<Self, ListenError> {
        let ip = address.ip().to_canonical();
        if !ip.is_loopback() && !access.asks_for_proof(protocol, ip) {
            return Err(ListenError::NotLoopback(address));
        }
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let bound = || -> rustix::io::Result<(OwnedFd, SocketAddr)> {
            let fd = if let Some(fd) = handover.and_then(|handover| handover.tcp(address)) {
                fd
            } else {
                let fd = socket(family)?;
                sockopt::set_socket_reuseaddr(&fd, true)?;
                rustix::net::bind(&fd, &address)?;
                fd
            };
            rustix::net::listen(&fd, backlog)?;
            let address = SocketAddr::try_from(rustix::net::getsockname(&fd)?)?;
            Ok((fd, address))
        };
        let (fd, bound) = bound().map_err(|error| ListenError::Address(address, error.into()))?;
        note(handover, &fd, None).map_err(|error| ListenError::Address(address, error))?;
        Ok(Self { fd, address: Some(bound), transport: Transport::Usual, path: None })
    }

    /// The socket's file is born with its permissions: the process's mask is set around `bind`, which happens at the
    /// start, while no other thread makes files.
    pub(crate) fn unix(path: &Path, mode: u32, (backlog, handover): Ways<'_>) -> Result<Self, ListenError> {
        let refused = |error| ListenError::Path(path.to_owned(), error);
        let fd = if let Some(fd) = handover.and_then(|handover| handover.unix(path)) {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(refused)?;
            fd
        } else {
            remove_stale(path)?;
            bound(path, mode).map_err(|error| refused(error.into()))?
        };
        rustix::net::listen(&fd, backlog).map_err(|error| refused(error.into()))?;
        note(handover, &fd, Some(path)).map_err(refused)?;
        // The next process finds it as it is.
        let path = handover.is_none().then(|| path.to_owned());
        Ok(Self { fd, address: None, transport: Transport::Plain, path })
    }

    /// The same, speaking so.
    pub(crate) fn speaking(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Its socket, for another loop that waits. A file that it may have is removed.
    pub(crate) fn into_socket(self) -> io::Result<std::net::TcpListener> {
        Ok(self.fd.try_clone()?.into())
    }

    /// The next connection that waits, non-blocking, or `WouldBlock`.
    pub(crate) fn accept(&self) -> rustix::io::Result<OwnedFd> {
        let fd = rustix::net::accept_with(&self.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
        if self.address.is_some() {
            // A reply goes out whole with one call, so there is nothing to wait for. The connection works without.
            let _slower = sockopt::set_tcp_nodelay(&fd, true);
        }
        Ok(fd)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that stays is found stale at the next start.
            let _stays = std::fs::remove_file(path);
        }
    }
}

/// How many connections wait in the kernel, and who keeps sockets while the server restarts.
pub(crate) type Ways<'h> = (i32, Option<&'h Handover>);

fn note(handover: Option<&Handover>, fd: &OwnedFd, path: Option<&Path>) -> io::Result<()> {
    handover.map_or(Ok(()), |handover| handover.note(fd, path))
}

fn bound(path: &Path, mode: u32) -> rustix::io::Result<OwnedFd> {
    let fd = socket(AddressFamily::UNIX)?;
    let address = SocketAddrUnix::new(path)?;
    let before = umask(Mode::from_raw_mode(0o777 & !mode));
    let bound = rustix::net::bind(&fd, &address);
    umask(before);
    bound?;
    Ok(fd)
}

fn socket(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(family, SocketType::STREAM, flags, None)
}

/// Removes the socket file of a server that is gone. One that answers is left alone, and so is any other file.
fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.to_owned()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| ListenError::Path(path.to_owned(), error))
        }
        Err(error) => Err(ListenError::Path(path.to_owned(), error)),
        Ok(_) => Err(ListenError::InUse(path.to_owned())),
    }
}
