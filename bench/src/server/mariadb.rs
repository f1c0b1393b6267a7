//! How MariaDB is started: over an empty data folder of its own, without its tables of users.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::failure::Result;

/// The server, over a data folder made here. It refuses to run as root unless told so.
pub(super) fn prepare(directory: &Path) -> Result<Command> {
    fs::create_dir(directory.join("data"))?;
    Ok(Command::new("mariadbd"))
}

/// Its arguments: rows live in tables of the MEMORY engine, which may become large.
pub(super) fn arguments(command: &mut Command, port: SocketAddr, socket: &Path, directory: &Path) {
    command.arg("--no-defaults").arg(format!("--datadir={}", directory.join("data").display()));
    if rustix::process::geteuid().is_root() {
        command.arg("--user=root");
    }
    command.args([
        "--bind-address=127.0.0.1",
        "--skip-grant-tables",
        "--skip-name-resolve",
        "--skip-log-bin",
    ]);
    command.arg(format!("--port={}", port.port()));
    command.arg(format!("--socket={}", socket.display()));
    command.args(["--max-connections=200", "--max-heap-table-size=1G"]);
}
