//! The backend of dogpile.cache: its wheel, dogpile.cache's own suites of backends and mutexes, and its example.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{HELLO, built, client, django, fetched, python, succeed, tell};
use crate::daemon::Daemon;

/// Where the wheel is unpacked, once.
fn package() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| django::unpacked("dogpile"))
}

/// Python with dogpile.cache, the backend and the client that reads shared memory.
fn dogpile(daemon: &Daemon) -> Command {
    let mut command = Command::new(fetched("clients-django/bin/python"));
    let paths = [package(), python::package()];
    command.arg("-B").env("PYTHONPATH", std::env::join_paths(paths).unwrap()).current_dir(client("dogpile"));
    tell(&mut command, daemon);
    command
}

#[test]
fn dogpile_s_suites() {
    let daemon = Daemon::start(&[]);
    let mut tests = dogpile(&daemon);
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "tests"]);
    let (out, _) = succeed(&tests);
    let count = out.lines().last().and_then(|line| line.split_once(" passed in "));
    let count: usize = count.and_then(|(count, _)| count.parse().ok()).unwrap_or_else(|| panic!("{out}"));
    assert!(count >= 75, "{out}");
}

#[test]
fn dogpile_example() {
    let daemon = Daemon::start(&[]);
    assert_eq!(succeed(dogpile(&daemon).arg("example.py")).0, HELLO);
}

#[test]
fn dogpile_types() {
    let mut mypy = Command::new(fetched("clients-python/bin/python"));
    mypy.args(["-B", "-m", "mypy", "--strict", "--ignore-missing-imports", "--no-warn-return-any"]);
    mypy.args(["--allow-subclassing-any", "--cache-dir"]).arg(built("mypy-dogpile"));
    let paths = std::env::join_paths([package(), python::package()]).unwrap();
    let (out, _) = succeed(mypy.args(["-p", "dogpile_sqlcached"]).env("MYPYPATH", paths));
    assert!(out.starts_with("Success: "), "{out}");
}
