//! Where a driver finds a server.

use std::path::PathBuf;
use std::process::Command;

/// An address on this machine, over TCP and over a Unix socket.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) port: u16,
    /// The folder of the socket `.s.PGSQL.<port>`.
    pub(super) sockets: PathBuf,
    pub(super) user: &'static str,
    pub(super) database: &'static str,
    /// Memcached's door to the same rows, where there is one.
    pub(super) memcached: Option<u16>,
}

impl Place {
    /// Tells a program the place by libpq's variables, and nothing else that our own environment says to drivers.
    pub(super) fn tell(&self, command: &mut Command) {
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
    pub(super) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        self.tell(&mut command);
        command
    }
}
