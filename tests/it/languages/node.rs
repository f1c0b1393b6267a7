//! The Node package, built by its own install script over the installed C library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{HELLO, built, client, fetched, succeed, tell, with_library};
use crate::daemon::Daemon;

/// A folder of packages with ours in it, built once: a copy, because it is built beside its sources.
pub(super) fn packages() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = built("node_modules");
        let _ = fs::remove_dir_all(&place);
        let package = place.join("@sqlcached/shared-memory");
        fs::create_dir_all(package.parent().unwrap()).unwrap();
        succeed(Command::new("cp").arg("-r").arg(client("node")).arg(&package));
        let mut build = with_library("node");
        build
            .arg("build.js")
            .env("NODE_PATH", fetched("clients-node/node_modules"))
            .env("CFLAGS", "-O1 -Werror");
        succeed(build.current_dir(&package));
        place
    })
}

fn node() -> Command {
    let mut node = with_library("node");
    node.env("NODE_PATH", packages());
    node
}

#[test]
fn node_client() {
    let daemon = Daemon::start(&[]);
    let mut tests = node();
    tests.args(["--test", "--test-reporter", "tap"]).arg(client("node/test.js"));
    tell(&mut tests, &daemon);
    let (out, _) = succeed(&tests);
    assert!(out.contains("# fail 0\n") && out.matches("ok ").count() >= 10, "{out}");
}

#[test]
fn node_example() {
    let daemon = Daemon::start(&[]);
    let mut example = node();
    example.arg(client("node/example.js"));
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
}

/// The line of the README: npm 11 links a folder, and runs its script before it has what the folder depends on. That
/// ended with `Cannot find module 'node-api-headers'`.
#[test]
fn npm_installs_the_folder() {
    let place = built("npm");
    let _ = fs::remove_dir_all(&place);
    let (package, app) = (place.join("shared-memory"), place.join("app"));
    fs::create_dir_all(&app).unwrap();
    succeed(Command::new("cp").arg("-r").arg(client("node")).arg(&package));
    for made in ["node_modules", "build", "package-lock.json"] {
        let _ = fs::remove_dir_all(package.join(made));
        let _ = fs::remove_file(package.join(made));
    }
    // The headers come from what was fetched: the test needs no network.
    let headers = fetched("clients-node/node_modules/node-api-headers").canonicalize().unwrap();
    let manifest = fs::read_to_string(package.join("package.json")).unwrap();
    let asked = "\"node-api-headers\": \"1.9.0\"";
    assert!(manifest.contains(asked), "{manifest}");
    let given = format!("\"node-api-headers\": \"file:{}\"", headers.display());
    fs::write(package.join("package.json"), manifest.replace(asked, &given)).unwrap();
    fs::write(app.join("package.json"), "{\"name\": \"app\", \"version\": \"1.0.0\"}").unwrap();
    let mut npm = with_library("npm");
    npm.args(["install", "--offline", "--no-audit", "--no-fund", "../shared-memory"]).current_dir(&app);
    npm.env("npm_config_cache", place.join("cache"));
    succeed(&npm);
    let daemon = Daemon::start(&[]);
    let mut example = with_library("node");
    example.arg(client("node/example.js")).env("NODE_PATH", app.join("node_modules"));
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
}
