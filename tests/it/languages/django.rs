//! The Django package: its wheel beside Django 5.2 and 4.2, with Django's own suites of caches and sessions, and with
//! its own tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{built, client, fetched, python, root, succeed};
use crate::daemon::PROGRAM;
use crate::documents::run_document;
use crate::drivers::place::SqlDaemon;

/// A version of Django that `cargo xtask tools` fetched, with its tests.
const NEW: &str = "clients-django";
const OLD: &str = "clients-django-4.2";

/// Where the wheel is unpacked, once.
fn package() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| unpacked("django"))
}

/// Builds the wheel of a folder in `clients` without a network, and unpacks it.
pub(super) fn unpacked(name: &str) -> PathBuf {
    let (source, wheels, site) =
        (built(&format!("{name}-source")), built(&format!("{name}-wheels")), built(&format!("{name}-site")));
    for folder in [&source, &wheels, &site] {
        let _ = fs::remove_dir_all(folder);
    }
    // The build leaves nothing beside the sources.
    fs::create_dir_all(source.parent().unwrap()).unwrap();
    succeed(Command::new("cp").arg("-r").arg(client(name)).arg(&source));
    let pip = || {
        let mut pip = Command::new(fetched("clients-python/bin/pip"));
        pip.env_remove("PIP_FIND_LINKS").env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
        pip
    };
    let mut wheel = pip();
    wheel.args(["wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir"]);
    succeed(wheel.arg(&wheels).arg(&source));
    let file = fs::read_dir(&wheels).unwrap().next().unwrap().unwrap().path();
    let mut install = pip();
    install.args(["install", "--quiet", "--no-deps", "--no-index", "--target"]);
    succeed(install.arg(&site).arg(&file));
    site
}

/// Python with this Django, our packages and Django's tests, in the project of our tests.
fn django(version: &str, daemon: &SqlDaemon) -> Command {
    let mut command = Command::new(fetched(version).join("bin/python"));
    let paths = [package().to_path_buf(), python::package().to_path_buf(), fetched(version).join("tests")];
    command.args(["-B", "-m", "django", "test"]).current_dir(client("django/tests"));
    command.env("PYTHONPATH", std::env::join_paths(paths).unwrap()).env("DJANGO_SETTINGS_MODULE", "settings");
    command.env("SQLCACHED_PORT", daemon.daemon.port.to_string());
    command.env("SQLCACHED_SQL_PORT", daemon.place.port.to_string()).env("SQLCACHED_PROGRAM", PROGRAM);
    command
}

/// Runs tests by their names; there must be so many, and only those may be skipped that Django skips for memcached.
fn tests(version: &str, names: &[&str], at_least: usize, skipped: usize) {
    let daemon = SqlDaemon::start(&[]);
    let mut command = django(version, &daemon);
    if names[0].starts_with("suite") {
        command.env("MORE_APPS", "cache sessions_tests");
    }
    let (_, said) = succeed(command.args(names));
    let count = said.split_once("Ran ").and_then(|(_, rest)| rest.split_once(' ')).map(|(count, _)| count);
    let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{said}"));
    let end = if skipped == 0 { "\nOK\n".to_owned() } else { format!("\nOK (skipped={skipped})\n") };
    assert!(count >= at_least && said.contains(&end), "{said}");
}

/// Django leaves out the two tests of culling for memcached, too, and one that needs a key that it refuses.
const OF_MEMCACHED: usize = 3;

#[test]
fn django_s_cache_suite() {
    tests(NEW, &["suite_of_django.Cache"], 57, OF_MEMCACHED);
}

#[test]
fn django_s_cache_suite_in_shared_memory() {
    tests(NEW, &["suite_of_django.NearCache"], 57, OF_MEMCACHED);
}

#[test]
fn django_s_other_suites() {
    let names = [
        "CacheUtils",
        "PrefixedCacheUtils",
        "CacheHEADTest",
        "CacheI18nTest",
        "PrefixedCacheI18nTest",
        "CacheMiddlewareTest",
        "TestWithTemplateResponse",
        "CacheSession",
        "CacheDBSession",
        "Session",
        "SessionMiddlewareTests",
    ];
    let names = names.map(|name| format!("suite_of_django.{name}"));
    tests(NEW, &names.each_ref().map(String::as_str), 250, 0);
}

#[test]
fn django_4_2_s_suites() {
    tests(OLD, &["suite_of_django.Cache", "suite_of_django.Session"], 80, OF_MEMCACHED);
}

#[test]
fn django_package() {
    tests(NEW, &["--pattern", "test_*.py"], 70, 0);
}

#[test]
fn django_package_with_django_4_2() {
    tests(OLD, &["--pattern", "test_*.py"], 70, 0);
}

/// The tutorial: its commands, in a copy of the shop.
#[test]
fn django_tutorial() {
    let daemon = SqlDaemon::start(&[]);
    let shop = daemon.daemon.folder.0.join("shop");
    succeed(Command::new("cp").arg("-r").arg(root().join("examples/django")).arg(&shop));
    let _ = fs::remove_file(shop.join("shop.sqlite3"));
    let programs = [fetched(NEW).join("bin"), PathBuf::from("/usr/bin"), PathBuf::from("/bin")];
    let path = std::env::join_paths(programs).unwrap();
    let sql_port = daemon.place.port.to_string();
    let count =
        run_document(&root().join("examples/django/README.md"), (daemon.daemon.port, &sql_port), |command| {
            command.env("PATH", &path).env("PYTHONPATH", package()).env("PYTHONDONTWRITEBYTECODE", "1");
            command.env("SQLCACHED", format!("127.0.0.1:{}", daemon.daemon.port)).current_dir(&shop);
            command.env("SQLCACHED_SQL_PORT", &sql_port)
        });
    assert!(count >= 10, "{count} blocks");
}

/// The package's annotations are right among themselves. Django itself has none.
#[test]
fn django_types() {
    let mut mypy = Command::new(fetched("clients-python/bin/python"));
    mypy.args([
        "-B",
        "-m",
        "mypy",
        "--ignore-missing-imports",
        "--disallow-untyped-defs",
        "--no-warn-return-any",
    ]);
    mypy.args(["--cache-dir"]).arg(built("mypy-django")).args(["-p", "django_sqlcached"]);
    let (out, _) = succeed(mypy.env("MYPYPATH", package()).current_dir(root()));
    assert!(out.starts_with("Success: "), "{out}");
}
