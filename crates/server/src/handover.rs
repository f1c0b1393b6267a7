//! Listening sockets that outlive the process. A service manager keeps them while it restarts the server, so that no
//! connection is refused meanwhile: clients wait in the kernel's queue, and the next process takes them from there.

use std::fs::symlink_metadata;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use parking_lot::Mutex;
use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
use rustix::net::{SocketAddrAny, SocketAddrUnix, getsockname};

/// A listening socket.
#[derive(Debug)]
pub struct Kept {
    /// The socket.
    pub socket: OwnedFd,
    /// The number of its file, for one that has a path: a file of another number leads to another socket.
    pub file: Option<u64>,
}

/// What is taken over from the process before, and what the next one may take over.
#[derive(Debug, Default)]
pub struct Handover {
    /// Those of the process before that this one does not listen on.
    kept: Mutex<Vec<Kept>>,
    /// Further descriptors of those that it listens on.
    opened: Mutex<Vec<Kept>>,
}

impl Handover {
    /// Takes over from these what listens where the settings say.
    pub fn new(kept: Vec<Kept>) -> Self {
        Self { kept: Mutex::new(kept), opened: Mutex::default() }
    }

    /// Closes the sockets that listen nowhere where the server is to listen: they would be in the way of others. Says
    /// how many there were.
    pub fn close_others(&self, addresses: &[SocketAddr], paths: &[&Path]) -> usize {
        let mut kept = self.kept.lock();
        let before = kept.len();
        kept.retain(|own| {
            getsockname(&own.socket).is_ok_and(|name| {
                addresses.iter().any(|address| is_at(&name, *address))
                    || paths.iter().any(|path| is_on(&name, path) && own.file == file_of(path))
            })
        });
        before - kept.len()
    }

    /// The sockets that the server listens on, once: for who keeps them. As long as somebody has them, a client that
    /// connects waits for a process that accepts.
    pub fn take_opened(&self) -> Vec<Kept> {
        std::mem::take(&mut *self.opened.lock())
    }

    /// A socket that listens at this address.
    pub(crate) fn tcp(&self, address: SocketAddr) -> Option<OwnedFd> {
        self.take(|_, name| is_at(name, address))
    }

    /// A socket that listens at this path, as whose file it is there.
    pub(crate) fn unix(&self, path: &Path) -> Option<OwnedFd> {
        let file = file_of(path);
        self.take(|own, name| is_on(name, path) && own.file.is_some() && own.file == file)
    }

    fn take(&self, is_wanted: impl Fn(&Kept, &SocketAddrAny) -> bool) -> Option<OwnedFd> {
        let mut kept = self.kept.lock();
        let is_wanted = |own: &Kept| getsockname(&own.socket).is_ok_and(|name| is_wanted(own, &name));
        let at = kept.iter().position(is_wanted)?;
        let Kept { socket, .. } = kept.swap_remove(at);
        // As those that are opened here. One that cannot be made so is opened here.
        let made = fcntl_setfd(&socket, FdFlags::CLOEXEC).and_then(|()| ioctl_fionbio(&socket, true));
        made.is_ok().then_some(socket)
    }

    /// The server listens on this one. `path`: where its file is.
    pub(crate) fn note(&self, socket: &impl AsFd, path: Option<&Path>) -> io::Result<()> {
        let socket = socket.as_fd().try_clone_to_owned()?;
        self.opened.lock().push(Kept { socket, file: path.and_then(file_of) });
        Ok(())
    }
}

fn is_at(name: &SocketAddrAny, address: SocketAddr) -> bool {
    SocketAddr::try_from(name.clone()).is_ok_and(|own| own == address)
}

fn is_on(name: &SocketAddrAny, path: &Path) -> bool {
    let own = SocketAddrUnix::try_from(name.clone());
    own.is_ok_and(|own| SocketAddrUnix::new(path).is_ok_and(|wanted| own == wanted))
}

/// The number of the file of a socket; none: there is none there.
fn file_of(path: &Path) -> Option<u64> {
    let found = symlink_metadata(path).ok().filter(|found| found.file_type().is_socket());
    found.map(|found| found.ino())
}
