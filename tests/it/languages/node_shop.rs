//! The shop with Express in `examples/node`: its tutorial, and its customers and editor in a browser.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{built, client, fetched, root, succeed};
use crate::daemon::free_port;
use crate::documents::run_document;
use crate::drivers::place::SqlDaemon;
use crate::skipped;

/// Until the shop answers: less than a second, and more on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The port that the tutorial names.
const PORT: &str = "8000";

/// The package's name, which is its folder below a scope.
const PACKAGE: &str = "@sqlcached/cache";

struct Shop {
    daemon: SqlDaemon,
    server: Child,
    port: u16,
    place: PathBuf,
}

/// A copy of the shop beside the packages that npm would install.
fn installed(name: &str) -> PathBuf {
    let place = built(name);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    succeed(Command::new("cp").arg("-r").arg(root().join("examples/node")).arg(&place));
    let modules = place.join("node_modules");
    let package = modules.join(PACKAGE);
    fs::create_dir_all(package.parent().unwrap()).unwrap();
    for entry in fs::read_dir(fetched("clients-node-cache/node_modules")).unwrap() {
        let path = entry.unwrap().path().canonicalize().unwrap();
        symlink(&path, modules.join(path.file_name().unwrap())).unwrap();
    }
    succeed(Command::new("cp").arg("-r").arg(client("node-cache")).arg(&package));
    place
}

fn prepared<'a>(command: &'a mut Command, daemon: &SqlDaemon, place: &Path) -> &'a mut Command {
    command.env("SHOP_DATABASE", daemon.daemon.folder.0.join("shop.json"));
    command.env("SQLCACHED", format!("127.0.0.1:{}", daemon.daemon.port)).current_dir(place)
}

impl Shop {
    fn open(name: &str) -> Self {
        let (daemon, port, place) = (SqlDaemon::start(&[]), free_port(), installed(name));
        let mut node = Command::new("node");
        node.arg("shop.js").env("PORT", port.to_string()).stdout(Stdio::null());
        let server = prepared(&mut node, &daemon, &place).spawn().unwrap();
        let shop = Self { daemon, server, port, place };
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "the shop does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        shop
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = (self.server.kill(), self.server.wait());
    }
}

#[test]
fn express_tutorial() {
    let shop = Shop::open("node-shop-tutorial");
    let sql_port = shop.daemon.place.port.to_string();
    // The tutorial's server is ours, at a port that nobody else has.
    let here = |command: &mut Command| {
        let script: Vec<_> = command.get_args().map(std::ffi::OsStr::to_os_string).collect();
        let text = script[1].to_string_lossy().replace(PORT, &shop.port.to_string());
        *command = Command::new("sh");
        command.arg("-ec").arg(text);
    };
    let document = root().join("examples/node/README.md");
    let count = run_document(&document, (shop.daemon.daemon.port, &sql_port), |command| {
        here(command);
        prepared(command, &shop.daemon, &shop.place)
    });
    assert!(count >= 3, "{count} blocks");
}

#[test]
fn the_express_shop_in_a_browser() {
    let packages = root().join("target/drivers/console/node_modules");
    if !packages.is_dir() || !Path::new("/usr/bin/chromium").exists() {
        return skipped("Chromium or playwright-core is not installed; make tools does it");
    }
    let shop = Shop::open("node-shop-browser");
    let mut node = Command::new("node");
    node.arg(root().join("tests/drivers/console/shop.js")).env("NODE_PATH", packages);
    node.env("SHOP_URL", format!("http://127.0.0.1:{}/", shop.port));
    assert_eq!(succeed(&node).0, "the shop works\n");
}
