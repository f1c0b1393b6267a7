//! A sample shop of `examples/`, at a daemon of its own: its tutorial is followed, and its customers and its editor sit
//! at a browser.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{root, succeed};
use crate::daemon::free_port;
use crate::documents::run_document;
use crate::drivers::place::SqlDaemon;
use crate::skipped;

/// Until the shop answers: Rails takes seconds to load, and all of them more on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// The port that the tutorials name.
const PORT: &str = "8000";

/// Where a shop stands, and what its programs find in their environment.
pub(super) struct Premises {
    pub(super) folder: PathBuf,
    pub(super) environment: Vec<(&'static str, PathBuf)>,
}

pub(super) struct Shop {
    premises: Premises,
    daemon: SqlDaemon,
    server: Child,
    port: u16,
}

impl Premises {
    fn prepare<'c>(&self, command: &'c mut Command, daemon: &SqlDaemon) -> &'c mut Command {
        let own = &daemon.daemon.folder.0;
        command.env("SHOP_DATABASE", own.join("shop.data")).env("TMPDIR", own).env("LANG", "C.UTF-8");
        command.env("SQLCACHED", format!("127.0.0.1:{}", daemon.daemon.port));
        command.envs(self.environment.iter().map(|(name, value)| (name, value))).current_dir(&self.folder)
    }
}

impl Shop {
    /// Opens the shop. `fill`: the program that makes its goods, if it has one. `serve`: its server at a port.
    pub(super) fn open(
        premises: Premises,
        fill: Option<Command>,
        serve: impl FnOnce(u16) -> Command,
    ) -> Self {
        let (daemon, port) = (SqlDaemon::start(&[]), free_port());
        if let Some(mut fill) = fill {
            succeed(premises.prepare(&mut fill, &daemon));
        }
        let mut serve = serve(port);
        let server = premises.prepare(&mut serve, &daemon).stdout(Stdio::null()).stderr(Stdio::null());
        let server = server.spawn().unwrap();
        let shop = Self { premises, daemon, server, port };
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "{serve:?} does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        shop
    }

    /// Follows the tutorial, which has so many blocks at least. The tutorial's server is ours, at a port that nobody
    /// else has.
    pub(super) fn teach(&self, blocks: usize) {
        let here = |command: &mut Command| {
            let script: Vec<_> = command.get_args().map(std::ffi::OsStr::to_os_string).collect();
            let text = script[1].to_string_lossy().replace(PORT, &self.port.to_string());
            *command = Command::new("sh");
            command.arg("-ec").arg(text);
        };
        let document = self.premises.folder.join("README.md");
        let sql_port = self.daemon.place.port.to_string();
        let count = run_document(&document, (self.daemon.daemon.port, &sql_port), |command| {
            here(command);
            self.premises.prepare(command, &self.daemon)
        });
        assert!(count >= blocks, "{count} blocks");
    }

    fn browse(&self, packages: &Path) {
        let mut node = Command::new("node");
        node.arg(root().join("tests/drivers/console/shop.js")).env("NODE_PATH", packages);
        node.env("SHOP_URL", format!("http://127.0.0.1:{}/", self.port));
        assert_eq!(succeed(&node).0, "the shop works\n");
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = (self.server.kill(), self.server.wait());
    }
}

/// Customers and an editor in a browser.
pub(super) fn in_a_browser(open: impl FnOnce() -> Shop) {
    let packages = root().join("target/drivers/console/node_modules");
    if !packages.is_dir() || !Path::new("/usr/bin/chromium").exists() {
        return skipped("Chromium or playwright-core is not installed; make tools does it");
    }
    open().browse(&packages);
}
