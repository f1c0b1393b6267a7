//! The packages for Java: the suites of JCache and of Guava's maps, and their own tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{HELLO, built, client, fetched, succeed, tell};
use crate::daemon::{Daemon, PROGRAM};

/// All files of Java in a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "java") {
            found.push(path);
        }
    }
}

/// Compiles files into a folder.
fn compile(files: &[PathBuf], with: &str, into: &Path) {
    let mut javac = Command::new("javac");
    javac.args(["--release", "17", "-Xlint:all,-processing,-path,-classfile", "-Werror", "-cp", with]);
    succeed(javac.arg("-d").arg(into).args(files));
}

/// The class path of the packages, compiled once, with the interfaces of JCache.
pub(crate) fn packages() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let (classes, interfaces) = (built("java/classes"), fetched("clients-java/cache-api-1.1.1.jar"));
        let _ = std::fs::remove_dir_all(&classes);
        let mut files = Vec::new();
        for module in ["client", "map", "jcache"] {
            sources(&client("java").join(module).join("src"), &mut files);
        }
        compile(&files, &interfaces.display().to_string(), &classes);
        let mut copy = Command::new("cp");
        succeed(copy.arg("-r").arg(client("java/jcache/src/main/resources/META-INF")).arg(&classes));
        format!("{}:{}", classes.display(), interfaces.display())
    })
}

/// A program with the packages, the tests and what these need, at a daemon of its own.
fn java(daemon: &Daemon, arguments: &[&str]) -> (String, String) {
    static PATH: OnceLock<String> = OnceLock::new();
    let path = PATH.get_or_init(|| {
        let (tests, others) = (built("java/tests"), fetched("clients-java").join("*"));
        let path = format!("{}:{}:{}", tests.display(), packages(), others.display());
        let mut files = Vec::new();
        sources(&client("java/tests"), &mut files);
        compile(&files, &path, &tests);
        succeed(Command::new("cp").arg(client("java/tests/ExcludeList")).arg(&tests));
        path
    });
    let mut command = Command::new("java");
    command.args(["-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true", "-cp", path]);
    command
        .arg(format!("-Dsqlcached.location=127.0.0.1:{}", daemon.port))
        .arg("-Dsqlcached.classes=org.jsr107.tck.**,domain.*");
    for (interface, own) in
        [("CacheManager", "SqlcachedManager"), ("Cache", "SqlcachedCache"), ("Cache.Entry", "Outside$Pair")]
    {
        command.arg(format!("-Djavax.cache.{interface}=org.sqlcached.jcache.{own}"));
    }
    command.env("SQLCACHED_PROGRAM", PROGRAM);
    tell(&mut command, daemon);
    succeed(command.args(arguments))
}

/// The suite of JCache. `ExcludeList` names the one test that fails by design.
#[test]
fn java_suite_of_jcache() {
    let daemon = Daemon::start(&[]);
    let (out, _) = java(&daemon, &["org.sqlcached.tests.Tck"]);
    assert!(out.contains("39 classes, 479 tests, 0 failures, 0 ignored"), "{out}");
}

#[test]
fn java_suite_of_guava_s_maps() {
    let daemon = Daemon::start(&[]);
    let (out, _) = java(&daemon, &["junit.textui.TestRunner", "org.sqlcached.tests.MapSuite"]);
    assert!(out.contains("OK (927 tests)"), "{out}");
}

#[test]
fn java_packages() {
    let daemon = Daemon::start(&[]);
    let classes = ["ClientTest", "FailureTest", "MapTest", "JcacheTest"]
        .map(|name| format!("org.sqlcached.tests.{name}"));
    let mut arguments = vec!["org.junit.runner.JUnitCore"];
    arguments.extend(classes.iter().map(String::as_str));
    let (out, _) = java(&daemon, &arguments);
    // The seeds of random tests.
    println!("{out}");
    let count = out.split_once("OK (").and_then(|(_, rest)| rest.split_once(' '));
    assert!(count.and_then(|(count, _)| count.parse().ok()).is_some_and(|count: usize| count >= 54), "{out}");
}

#[test]
fn java_example() {
    let daemon = Daemon::start(&[]);
    let mut example = Command::new("java");
    example.args(["-cp", packages()]).arg(client("java/Example.java"));
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
}
