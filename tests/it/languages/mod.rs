//! The clients under `clients/`, each built as its users build it, against a daemon of the test's own: the C library
//! installed and found by pkg-config, the Python wheels in empty environments, the Perl and Node modules over the C
//! library, the PHP package beside Symfony and Laravel, the packages for Java. Each brings tests and an example in its
//! own language; `docs/clients.md` shows the examples.

mod c;
mod django;
mod dogpile;
pub(crate) mod java;
pub(crate) mod java_quarkus;
mod node;
mod node_cache;
mod node_shop;
mod packages;
mod perl;
mod php;
mod php_shop;
mod python;
mod rails;
mod rails_shop;
mod shop;
mod wordpress;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::daemon::{Daemon, run};

/// Tests of a client take seconds, its build a minute, and many times that on a busy machine; one that hangs must not
/// hang the others.
const PATIENCE: Duration = Duration::from_mins(15);

/// What every example prints.
const HELLO: &str = "hello\n";

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().unwrap()
}

/// A file or folder under `clients`.
fn client(path: &str) -> PathBuf {
    root().join("clients").join(path)
}

/// Where a client is built; emptied by `cargo clean`.
fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients").join(name)
}

/// What `cargo xtask tools` fetched.
fn fetched(path: &str) -> PathBuf {
    let path = root().join("target/drivers").join(path);
    assert!(path.exists(), "{} is missing; make tools fetches it", path.display());
    path
}

/// Runs a program that must succeed, with a limit to its time; what it wrote to standard output and standard error.
fn succeed(command: &Command) -> (String, String) {
    let mut limited = Command::new("timeout");
    limited.arg(PATIENCE.as_secs().to_string()).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    let (code, out, error) = run(&mut limited);
    assert_eq!(code, Some(0), "{command:?}\n{out}{error}");
    (out, error)
}

/// Where the C library is installed for the tests, once.
fn installed() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let prefix = built("prefix");
        let mut xtask = Command::new(env!("CARGO"));
        xtask.args(["xtask", "install-client", "--debug"]).arg(&prefix).current_dir(root());
        succeed(&xtask);
        prefix
    })
}

/// A program that finds the installed library while it is built; what is linked with it finds it by itself while it
/// runs. Where the library lay elsewhere than in /usr/local, every program once needed `LD_LIBRARY_PATH`.
fn with_library(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("PKG_CONFIG_PATH", installed().join("lib/pkgconfig"));
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// Tells a test or an example where the daemon is.
fn tell(command: &mut Command, daemon: &Daemon) {
    command.env("SQLCACHED_SOCKET", daemon.socket()).env("SQLCACHED_PORT", daemon.port.to_string());
}

/// The examples in the documents are the files that the tests run.
#[test]
fn readmes_show_the_examples() {
    for (readme, example) in [
        ("c/README.md", "c/example.c"),
        ("python/README.md", "python/example.py"),
        ("dogpile/README.md", "dogpile/example.py"),
        ("perl/README.md", "perl/example.pl"),
        ("node/README.md", "node/example.js"),
        ("node-cache/README.md", "node-cache/example.mjs"),
        ("php/README.md", "php/example.php"),
        ("java/README.md", "java/Example.java"),
        ("java/README.md", "java/Shared.java"),
        ("ruby/README.md", "ruby/example.rb"),
    ] {
        let read = |file: &str| std::fs::read_to_string(client(file)).unwrap();
        assert!(
            read(readme).contains(&format!("\n{}```\n", read(example))),
            "{readme} does not show {example}"
        );
    }
}
