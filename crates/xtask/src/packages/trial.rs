//! Whether the program of an archive works: it is started, and keeps a row. That of another machine runs in qemu, which
//! takes its instructions one by one; the C library is that of the cross compiler.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::machine::Machine;
use super::succeed;
use crate::tools;

/// For a program to serve that has just been started, also in qemu on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a client sends, and what it is answered.
const DIALOGUE: [&str; 2] =
    ["set k 0 0 5\r\nhello\r\nget k\r\nquit\r\n", "STORED\r\nVALUE k 0 5\r\nhello\r\nEND\r\n"];

/// Ends the program, however the trial came out.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Unpacks an archive into an empty folder, and tries its program.
pub(super) fn run(machine: &Machine, archive: &Path, folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    succeed(Command::new("tar").args(["--strip-components=1", "-xzf"]).arg(archive).arg("-C").arg(folder))?;
    let tried = serves(machine, &folder.join("bin/sqlcached"));
    std::fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    tried
}

fn serves(machine: &Machine, program: &Path) -> Result<(), String> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.map_err(|error| format!("no port is free: {error}"))?.port();
    let mut command = match machine.emulator() {
        None => Command::new(program),
        Some((emulator, libraries)) => {
            tools::install_emulator(&emulator)?;
            let mut command = Command::new(emulator);
            command.arg("-L").arg(libraries).arg(program);
            command
        }
    };
    command.args(["--arena=none", "-s", "none", "--sql-port=0", "--http-port=0", "-p", &port.to_string()]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let mut running = Running(child.map_err(|error| format!("{command:?}: {error}"))?);
    let begin = Instant::now();
    loop {
        let answer = ask(port).unwrap_or_default();
        if answer == DIALOGUE[1] {
            return Ok(());
        }
        if let Ok(Some(status)) = running.0.try_wait() {
            return Err(format!("{command:?}: {status}"));
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("{command:?} does not serve: '{answer}'"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn ask(port: u16) -> std::io::Result<String> {
    let mut client = TcpStream::connect(("127.0.0.1", port))?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.write_all(DIALOGUE[0].as_bytes())?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    Ok(answer)
}
