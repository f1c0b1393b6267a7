//! The Python package: a wheel as maturin builds it, in an environment that has pymemcache and nothing else of ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{HELLO, built, client, fetched, root, succeed, tell};
use crate::daemon::Daemon;

/// Where the wheel is unpacked, once.
pub(super) fn package() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let (wheels, site) = (built("wheels"), built("site"));
        for folder in [&wheels, &site] {
            let _ = fs::remove_dir_all(folder);
        }
        let mut maturin = Command::new(fetched("clients-python/bin/maturin"));
        maturin.args(["build", "--profile", "dev", "--locked", "--offline", "--out"]).arg(&wheels);
        maturin.arg("--manifest-path").arg(client("python/Cargo.toml"));
        maturin.arg("--interpreter").arg(fetched("clients-python/bin/python"));
        maturin.env("CARGO", env!("CARGO")).current_dir(root());
        succeed(&maturin);
        let wheel = fs::read_dir(&wheels).unwrap().next().unwrap().unwrap().path();
        let name = wheel.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with("sqlcached-") && name.contains("-cp310-abi3-"), "{name}");
        let mut pip = Command::new(fetched("clients-python/bin/pip"));
        pip.args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-index",
            "--target",
        ]);
        succeed(pip.arg(&site).arg(&wheel));
        site
    })
}

/// Python with the package and without our environment's other settings.
fn python() -> Command {
    let mut python = Command::new(fetched("clients-python/bin/python"));
    // No compiled files beside the sources.
    python.arg("-B").env("PYTHONPATH", package()).current_dir(client("python"));
    python
}

/// Runs a file of tests; how many there were.
fn tests(file: &str, at_least: usize) {
    let daemon = Daemon::start(&[]);
    let mut tests = python();
    tests.args(["-m", "unittest", &format!("tests/{file}")]);
    tell(&mut tests, &daemon);
    let (_, said) = succeed(&tests);
    let count = said.split_once("Ran ").and_then(|(_, rest)| rest.split_once(' ')).map(|(count, _)| count);
    let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{said}"));
    assert!(count >= at_least && said.trim_end().ends_with("OK"), "{said}");
}

#[test]
fn python_client() {
    tests("test_client.py", 25);
}

#[test]
fn python_near_cache() {
    tests("test_near_cache.py", 10);
}

/// pymemcache's own clients and ours answer the session that the tests have for pymemcache alike.
#[test]
fn python_near_cache_takes_the_place_of_pymemcache() {
    let daemon = Daemon::start(&[]);
    let session = fs::read_to_string(root().join("tests/clients/pymemcache_session.py")).unwrap();
    let near = session.replace("from pymemcache.client.base import Client, PooledClient\n", "").replace(
        "from pymemcache.client.hash import",
        "from sqlcached.pymemcache import Client, PooledClient,",
    );
    assert!(near.contains("from sqlcached.pymemcache import Client, PooledClient, HashClient"), "{near}");
    let mut python = python();
    python.arg("-c").arg(near).arg(daemon.socket()).arg(daemon.port.to_string());
    assert!(succeed(&python).0.ends_with("checks\n"));
}

#[test]
fn python_example() {
    let daemon = Daemon::start(&[]);
    let mut example = python();
    example.arg("example.py");
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
}

/// The package's annotations are right: among themselves, for who uses them, and beside what the native part has.
#[test]
fn python_types() {
    let mut mypy = python();
    mypy.env("MYPYPATH", package()).env("MYPY_CACHE_DIR", built("mypy"));
    // pymemcache itself has no annotations.
    let strict = ["--strict", "--disable-error-code", "import-untyped", "--allow-subclassing-any"];
    mypy.args(["-m", "mypy"]).args(strict).args(["--no-warn-return-any", "-p", "sqlcached"]);
    let (out, _) = succeed(&mypy);
    assert!(out.starts_with("Success: "), "{out}");
    let mut stubtest = python();
    stubtest.env("MYPYPATH", package()).env("MYPY_CACHE_DIR", built("mypy"));
    stubtest.args(["-m", "mypy.stubtest", "--ignore-disjoint-bases", "sqlcached._native"]);
    let (out, _) = succeed(&stubtest);
    assert!(out.starts_with("Success: "), "{out}");
}
