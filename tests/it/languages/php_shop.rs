//! The shop with Symfony's components in `examples/symfony`: its tutorial, and its customers and editor in a browser.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{client, root, succeed};
use crate::daemon::free_port;
use crate::documents::run_document;
use crate::drivers::place::SqlDaemon;
use crate::skipped;

/// Until PHP's web server answers: milliseconds, and more on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The port that the tutorial names.
const PORT: &str = "8000";

struct Shop {
    daemon: SqlDaemon,
    server: Child,
    port: u16,
}

fn prepared<'a>(command: &'a mut Command, daemon: &SqlDaemon) -> &'a mut Command {
    let folder = &daemon.daemon.folder.0;
    command.env("AUTOLOAD", client("php/tests/shop.php")).env("SHOP_DATABASE", folder.join("shop.sqlite3"));
    command.env("SQLCACHED", format!("127.0.0.1:{}", daemon.daemon.port)).env("TMPDIR", folder);
    command.current_dir(root().join("examples/symfony"))
}

impl Shop {
    fn open() -> Self {
        let (daemon, port) = (SqlDaemon::start(&[]), free_port());
        succeed(prepared(Command::new("php").arg("fill.php"), &daemon));
        let mut php = Command::new("php");
        php.args(["-S", &format!("127.0.0.1:{port}"), "-t", "public", "public/index.php"]);
        let php = prepared(&mut php, &daemon).stdout(Stdio::null()).stderr(Stdio::null());
        let server = php.spawn().unwrap();
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "PHP's web server does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { daemon, server, port }
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = (self.server.kill(), self.server.wait());
    }
}

#[test]
fn symfony_tutorial() {
    let shop = Shop::open();
    let sql_port = shop.daemon.place.port.to_string();
    // The tutorial's server is ours, at a port that nobody else has.
    let curl = |command: &mut Command| {
        let script: Vec<_> = command.get_args().map(std::ffi::OsStr::to_os_string).collect();
        let text = script[1].to_string_lossy().replace(PORT, &shop.port.to_string());
        *command = Command::new("sh");
        command.arg("-ec").arg(text);
    };
    let document = root().join("examples/symfony/README.md");
    let count = run_document(&document, (shop.daemon.daemon.port, &sql_port), |command| {
        curl(command);
        prepared(command, &shop.daemon)
    });
    assert!(count >= 4, "{count} blocks");
}

#[test]
fn the_symfony_shop_in_a_browser() {
    let packages = root().join("target/drivers/console/node_modules");
    if !packages.is_dir() || !std::path::Path::new("/usr/bin/chromium").exists() {
        return skipped("Chromium or playwright-core is not installed; make tools does it");
    }
    let shop = Shop::open();
    let mut node = Command::new("node");
    node.arg(root().join("tests/drivers/console/shop.js")).env("NODE_PATH", packages);
    node.env("SHOP_URL", format!("http://127.0.0.1:{}/", shop.port));
    assert_eq!(succeed(&node).0, "the shop works\n");
}
