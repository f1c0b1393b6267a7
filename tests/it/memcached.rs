//! A memcached of a test's own, to compare with.

use std::process::{Child, Command, Stdio};

use crate::client::Client;
use crate::daemon::Folder;

/// A running memcached.
pub(crate) struct Memcached {
    child: Child,
    folder: Folder,
}

impl Memcached {
    /// Starts one on a Unix socket; none where memcached is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// As [`Memcached::start`], with these flags.
    pub(crate) fn start_with(flags: &[&str]) -> Option<Self> {
        let folder = Folder::new();
        let socket = folder.0.join("memcached");
        let mut command = Command::new("memcached");
        command.args(["-u", "root", "-m", "64"]).args(flags).arg("-s").arg(&socket);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let memcached = Self { child, folder };
        for _ in 0..2_000 {
            if socket.exists() {
                return Some(memcached);
            }
            // It tells nobody when it is ready.
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        None
    }

    /// A connection over the Unix socket.
    pub(crate) fn connect(&self) -> Client {
        Client::unix(&self.folder.0.join("memcached"))
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
