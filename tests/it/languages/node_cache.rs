//! The package for Node without a native part: Keyv's own suite, and its own tests with each framework.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{HELLO, built, client, fetched, root, succeed, tell};
use crate::daemon::{Daemon, PROGRAM};

/// A copy of the package in which Node finds what was fetched: modules of ECMAScript are looked up beside the file.
fn package(name: &str) -> PathBuf {
    let place = built(name);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    succeed(Command::new("cp").arg("-r").arg(client("node-cache")).arg(&place));
    symlink(fetched("clients-node-cache/node_modules").canonicalize().unwrap(), place.join("node_modules"))
        .unwrap();
    place
}

#[test]
fn node_cache_keyv_s_suite() {
    let daemon = Daemon::start(&[]);
    let mut vitest = Command::new("node");
    vitest.args(["node_modules/vitest/vitest.mjs", "run", "test/suite.test.mjs"]);
    vitest.current_dir(package("node-cache-suite")).env("NO_COLOR", "1").env("CI", "1");
    tell(&mut vitest, &daemon);
    let (out, _) = succeed(&vitest);
    assert!(out.contains("Tests  42 passed (42)"), "{out}");
}

/// Runs a file of the package's own tests; there must be so many.
fn own(file: &str, at_least: usize) {
    own_in(&package(&format!("node-cache-{file}")), file, at_least);
}

fn own_in(place: &Path, file: &str, at_least: usize) {
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter", "tap", "--test-timeout", "600000"]).arg(format!("test/{file}"));
    node.current_dir(place).env("SQLCACHED_PROGRAM", PROGRAM);
    // The application of Next and Next's modules are below this folder.
    node.env("NEXT_ROOT", root().join("target").canonicalize().unwrap());
    let (out, _) = succeed(&node);
    let counted = out.matches("\nok ").count();
    assert!(
        out.contains("# fail 0\n") && out.contains("# skipped 0\n") && counted >= at_least,
        "{counted} tests\n{out}"
    );
}

#[test]
fn node_cache_package() {
    own("own.test.mjs", 17);
}

#[test]
fn node_cache_sessions_of_express() {
    own("session.test.mjs", 13);
}

#[test]
fn node_cache_unstorage() {
    own("unstorage.test.mjs", 9);
}

#[test]
fn node_cache_libraries_over_keyv() {
    own("libraries.test.mjs", 5);
}

#[test]
fn node_cache_next_s_handlers() {
    own("next.test.mjs", 13);
}

/// Two servers of one application of Next: what one of them revalidates is seen in the other.
#[test]
fn node_cache_next() {
    let place = package("node-cache-next");
    let modules = fetched("clients-node-next/node_modules").canonicalize().unwrap();
    symlink(modules, place.join("test/next-app/node_modules")).unwrap();
    own_in(&place, "next-app.test.mjs", 5);
}

/// The example names the package, which then is beside Keyv.
#[test]
fn node_cache_example() {
    let place = built("node-cache-example");
    let _ = fs::remove_dir_all(&place);
    let modules = place.join("node_modules");
    fs::create_dir_all(modules.join("@sqlcached")).unwrap();
    for name in ["keyv", "@keyv"] {
        let from = fetched("clients-node-cache/node_modules").join(name).canonicalize().unwrap();
        symlink(from, modules.join(name)).unwrap();
    }
    symlink(client("node-cache"), modules.join("@sqlcached/cache")).unwrap();
    fs::copy(client("node-cache/example.mjs"), place.join("example.mjs")).unwrap();
    let daemon = Daemon::start(&[]);
    let mut example = Command::new("node");
    example.arg("example.mjs").current_dir(&place);
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
}
