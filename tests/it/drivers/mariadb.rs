//! A MariaDB of the test's own, in a temporary directory.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::daemon::{Folder, free_port, run};
use crate::drivers::postgresql::is_root;

/// Making the tables of users and starting takes a few seconds on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running server; it ends with its owner.
#[derive(Debug)]
pub(crate) struct MariaDb {
    child: Child,
    pub(crate) port: u16,
    folder: Folder,
    settings: Vec<String>,
}

impl MariaDb {
    /// With a binary log, and with settings of the test's own.
    pub(crate) fn start(settings: &[&str]) -> Self {
        let folder = Folder::new();
        let mut install = program(&folder, "mariadb-install-db");
        install.args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]);
        let (code, out, error) = run(&mut install);
        assert_eq!(code, Some(0), "mariadb-install-db, of the package mariadb-server-core\n{out}{error}");
        let own = ["--log-bin=bin", "--server-id=1", "--binlog-format=ROW"];
        let settings: Vec<String> = own.iter().chain(settings).map(|setting| (*setting).to_owned()).collect();
        let port = free_port();
        let child = serve(&folder, port, &settings);
        let server = Self { child, port, folder, settings };
        server.wait_until_it_serves();
        server
    }

    /// Where it keeps its files.
    pub(crate) fn folder(&self) -> String {
        self.folder.0.display().to_string()
    }

    /// The path of its Unix socket.
    pub(crate) fn socket(&self) -> String {
        format!("{}/socket", self.folder())
    }

    /// Ends it at once.
    pub(crate) fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again with what it has.
    pub(crate) fn start_again(&mut self) {
        self.child = serve(&self.folder, self.port, &self.settings);
        self.wait_until_it_serves();
    }

    /// What statements of a superuser give, in the database `shop` where it exists.
    pub(crate) fn ask(&self, sql: &str) -> String {
        let (code, out, error) = run(self.client().args(["-e", sql]));
        assert_eq!(code, Some(0), "{sql}\n{error}");
        out.trim_end().to_owned()
    }

    /// MariaDB's client for a superuser, without headings.
    pub(crate) fn client(&self) -> Command {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "-uroot", "-N", "-B", "--default-character-set=utf8mb4"]);
        client.arg(format!("--socket={}", self.socket()));
        client
    }

    fn wait_until_it_serves(&self) {
        let end = Instant::now() + PATIENCE;
        while run(self.client().args(["-e", "SELECT 1"])).0 != Some(0) {
            let log = || std::fs::read_to_string(self.folder.0.join("log")).unwrap_or_default();
            assert!(Instant::now() < end, "MariaDB does not answer\n{}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One of its programs over its data, which refuse to run as root unless a flag says so.
fn program(folder: &Folder, name: &str) -> Command {
    // Each that starts removes temporary tables of others from a folder that they share.
    let temporary = folder.0.join("temporary");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut command = Command::new(name);
    command.env("TMPDIR", temporary);
    command.arg("--no-defaults").arg(format!("--datadir={}", folder.0.join("data").display()));
    if is_root() {
        command.arg("--user=root");
    }
    command
}

fn serve(folder: &Folder, port: u16, settings: &[String]) -> Child {
    let log = File::options().create(true).append(true).open(folder.0.join("log")).unwrap();
    let mut server = program(folder, "mariadbd");
    server.args(["--bind-address=127.0.0.1", "--skip-name-resolve"]);
    server.args(["--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0"]);
    server.arg(format!("--port={port}")).arg(format!("--socket={}", folder.0.join("socket").display()));
    server.args(settings);
    server.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}
