//! Listening sockets that outlive the process. A service manager keeps them while it restarts the server, so that no
//! connection is refused meanwhile: clients wait in the kernel's queue, and the next process takes them from there.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use parking_lot::Mutex;
use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
use rustix::net::{SocketAddrAny, SocketAddrUnix, getsockname};

/// What is taken over from the process before, and what the next one may take over.
#[derive(Debug, Default)]
pub struct Handover {
    /// Those of the process before that this one does not listen on.
    kept: Mutex<Vec<OwnedFd>>,
    /// Further descriptors of those that it listens on.
    opened: Mutex<Vec<OwnedFd>>,
}

impl Handover {
    /// Takes over from these what listens where the settings say.
    pub fn new(kept: Vec<OwnedFd>) -> Self {
        Self { kept: Mutex::new(kept), opened: Mutex::default() }
    }

    /// The sockets that the server listens on, once: for who keeps them. As long as somebody has them, a client that
    /// connects waits for a process that accepts.
    pub fn take_opened(&self) -> Vec<OwnedFd> {
        std::mem::take(&mut *self.opened.lock())
    }

    /// A socket that listens at this address.
    pub(crate) fn tcp(&self, address: SocketAddr) -> Option<OwnedFd> {
        self.take(|own| SocketAddr::try_from(own).is_ok_and(|own| own == address))
    }

    /// A socket that listens at this path. Whoever removed its file has it listen nowhere.
    pub(crate) fn unix(&self, path: &Path) -> Option<OwnedFd> {
        let wanted = SocketAddrUnix::new(path).ok()?;
        let found = self.take(|own| SocketAddrUnix::try_from(own).is_ok_and(|own| own == wanted));
        found.filter(|_| path.exists())
    }

    fn take(&self, is_wanted: impl Fn(SocketAddrAny) -> bool) -> Option<OwnedFd> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|socket| getsockname(socket).is_ok_and(&is_wanted))?;
        let socket = kept.swap_remove(at);
        // As those that are opened here. One that cannot be made so is opened here.
        let made = fcntl_setfd(&socket, FdFlags::CLOEXEC).and_then(|()| ioctl_fionbio(&socket, true));
        made.is_ok().then_some(socket)
    }

    /// The server listens on this one.
    pub(crate) fn note(&self, socket: &impl AsFd) -> io::Result<()> {
        self.opened.lock().push(socket.as_fd().try_clone_to_owned()?);
        Ok(())
    }
}
