//! The package for Node without a native part: Keyv's own suite, and its own tests with each framework.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{HELLO, built, client, fetched, node, root, succeed, tell};
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

/// Keyv's own suite, which starts a daemon of its own.
fn suite(name: &str) -> Command {
    let mut vitest = Command::new("node");
    vitest.args(["node_modules/vitest/vitest.mjs", "run", "--testTimeout", "60000", "test/suite.test.mjs"]);
    vitest.current_dir(package(name)).env("NO_COLOR", "1").env("CI", "1").env("SQLCACHED_PROGRAM", PROGRAM);
    vitest
}

#[test]
fn node_cache_keyv_s_suite() {
    let (out, _) = succeed(&suite("node-cache-suite"));
    assert!(out.contains("Tests  42 passed (42)"), "{out}");
}

/// A file of the package's own tests.
fn own(place: &Path, file: &str) -> Command {
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter", "tap", "--test-timeout", "600000"]).arg(format!("test/{file}"));
    node.current_dir(place).env("SQLCACHED_PROGRAM", PROGRAM);
    node
}

/// Runs it; there must be so many tests.
fn passes(node: &Command, at_least: usize) -> String {
    let (out, _) = succeed(node);
    let counted = out.matches("\nok ").count();
    assert!(
        out.contains("# fail 0\n") && out.contains("# skipped 0\n") && counted >= at_least,
        "{counted} tests\n{out}"
    );
    out
}

/// The files of tests, and how many there are in each.
const FILES: [(&str, usize); 6] = [
    ("cache.test.mjs", 10),
    ("own.test.mjs", 17),
    ("session.test.mjs", 13),
    ("unstorage.test.mjs", 9),
    ("libraries.test.mjs", 5),
    ("next.test.mjs", 13),
];

#[test]
fn node_cache_package() {
    let place = package("node-cache-own");
    for (file, at_least) in FILES {
        passes(&own(&place, file), at_least);
    }
}

/// With the other package beside it, rows are read from shared memory. Its parts are found by the path of modules, for
/// what was fetched has no room for it.
#[test]
fn node_cache_shared_memory() {
    let place = package("node-cache-memory");
    let daemon = Daemon::start(&[]);
    let mut tests = own(&place, "memory.test.mjs");
    tell(tests.env("NODE_PATH", node::packages()), &daemon);
    passes(&tests, 8);
    // Where the other package is missing, the error says so.
    let mut without = Command::new("node");
    without.args(["-e", "try { new (require(process.argv[1]).Cache)({ sharedMemory: true }) } catch (error) { console.log(String(error)) }"]);
    let (out, _) = succeed(without.arg(client("node-cache/src/index.js")));
    assert!(
        out.starts_with("TypeError: the option sharedMemory needs the package @sqlcached/shared-memory"),
        "{out}"
    );
}

/// How often a daemon restarted while tests ran.
fn restarts(out: &str) -> usize {
    let lines = out.lines().map(|line| line.trim().trim_start_matches("# "));
    lines
        .filter_map(|line| line.strip_suffix(" restarts"))
        .filter_map(|count| count.parse::<usize>().ok())
        .sum()
}

/// Nothing changes if the daemon restarts at random requests. `SEED=7` repeats a run.
#[test]
fn node_cache_through_restarts() {
    let (out, _) = succeed(suite("node-cache-suite-restarts").env("RESTARTS", "1"));
    assert!(out.contains("Tests  42 passed (42)") && restarts(&out) > 0, "{out}");
    let place = package("node-cache-restarts");
    for (file, at_least) in FILES {
        let out = passes(own(&place, file).env("RESTARTS", "1"), at_least);
        assert!(restarts(&out) > 0, "{out}");
    }
}

/// A program in TypeScript compiles, as a module of ECMAScript and of CommonJS; what is wrong in it is refused.
#[test]
fn node_cache_types() {
    let mut compiler = Command::new("node");
    compiler.args(["node_modules/typescript/bin/tsc", "--project", "test/tsconfig.json"]);
    let (out, _) = succeed(compiler.current_dir(package("node-cache-types")));
    assert_eq!(out, "");
}

/// Two servers of one application of Next: what one of them revalidates is seen in the other.
#[test]
fn node_cache_next() {
    let place = package("node-cache-next");
    let modules = fetched("clients-node-next/node_modules").canonicalize().unwrap();
    symlink(modules, place.join("test/next-app/node_modules")).unwrap();
    let mut node = own(&place, "next-app.test.mjs");
    // The application and Next's modules are below this folder.
    node.env("NEXT_ROOT", root().join("target").canonicalize().unwrap());
    passes(&node, 5);
}

/// The example names the package, which then is beside Keyv.
#[test]
fn node_cache_example() {
    let place = built("node-cache-example");
    let _ = fs::remove_dir_all(&place);
    let modules = place.join("node_modules");
    fs::create_dir_all(&modules).unwrap();
    for name in ["keyv", "@keyv"] {
        let from = fetched("clients-node-cache/node_modules").join(name).canonicalize().unwrap();
        symlink(from, modules.join(name)).unwrap();
    }
    symlink(client("node-cache"), modules.join("sqlcached")).unwrap();
    fs::copy(client("node-cache/example.mjs"), place.join("example.mjs")).unwrap();
    let daemon = Daemon::start(&[]);
    let mut example = Command::new("node");
    example.arg("example.mjs").current_dir(&place);
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
}
