//! The Node package, built by its own install script over the installed C library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{HELLO, built, client, fetched, succeed, tell, with_library};
use crate::daemon::Daemon;

/// A folder of packages with ours in it, built once: a copy, because it is built beside its sources.
fn packages() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = built("node_modules");
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).unwrap();
        let package = place.join("sqlcached");
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
