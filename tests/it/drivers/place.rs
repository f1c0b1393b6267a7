//! Where a driver finds a server.

use std::path::PathBuf;
use std::process::Command;

use crate::daemon::{Daemon, Folder, free_port};

/// An address on this machine, over TCP and over a Unix socket.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) port: u16,
    /// The folder of the socket `.s.PGSQL.<port>`.
    pub(crate) sockets: PathBuf,
    pub(crate) user: &'static str,
    pub(crate) database: &'static str,
    /// memcached's port for the same rows, if there is one.
    pub(crate) memcached: Option<u16>,
}

impl Place {
    /// Tells a program the place by libpq's variables, and nothing else that our own environment says to drivers.
    pub(crate) fn tell(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        command.env("PGHOST", "127.0.0.1").env("PGPORT", self.port.to_string());
        command.env("PGUSER", self.user).env("PGDATABASE", self.database).env("SOCKET_DIR", &self.sockets);
        match self.memcached {
            Some(port) => command.env("MEMCACHED_PORT", port.to_string()),
            None => command.env_remove("MEMCACHED_PORT"),
        };
    }

    /// A client program of PostgreSQL's, told the place.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        self.tell(&mut command);
        command
    }
}

/// A daemon with a PostgreSQL listener on a port of its own.
#[derive(Debug)]
pub(crate) struct SqlDaemon {
    pub(crate) daemon: Daemon,
    pub(crate) place: Place,
}

impl SqlDaemon {
    /// Starts with these flags besides the places.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let folder = Folder::new();
        let port = free_port();
        let (port_text, sockets) = (port.to_string(), folder.0.clone());
        let sockets_text = sockets.display().to_string();
        let mut all = vec!["--sql-port", &port_text, "--sql-socket-dir", &sockets_text];
        all.extend_from_slice(flags);
        let daemon = Daemon::start_in(folder, &all);
        let memcached = Some(daemon.port);
        Self { daemon, place: Place { port, sockets, user: "app", database: "sqlcached", memcached } }
    }
}
