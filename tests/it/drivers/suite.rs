//! The suites that are programs: how each is built and run, and what it said.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::daemon::run;
use crate::drivers::place::Place;

/// A suite takes a few seconds; one that hangs must not hang the tests.
const PATIENCE: Duration = Duration::from_mins(2);

/// What a suite said of one check.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) held: bool,
    pub(crate) text: String,
}

impl Line {
    /// A line that the suite did not print itself.
    pub(crate) fn failed(why: &str) -> Self {
        Self { held: false, text: format!("not ok - {why}") }
    }

    /// The check's name, without what was said of its failure.
    pub(crate) fn name(&self) -> &str {
        let text = self.text.strip_prefix("not ").unwrap_or(&self.text);
        let text = text.strip_prefix("ok - ").unwrap_or(text);
        if self.held { text } else { text.split_once(": ").map_or(text, |(name, _)| name) }
    }
}

/// A folder of `tests/drivers` or `tests/orms` and the command that runs it.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) command: fn() -> Command,
}

/// All of them.
pub(crate) const SUITES: &[Suite] = &[
    Suite { name: "libpq", command: libpq },
    Suite { name: "psycopg", command: || python("psycopg") },
    Suite { name: "sqlalchemy", command: || python("sqlalchemy") },
    Suite { name: "pgjdbc", command: pgjdbc },
    Suite { name: "node-postgres", command: node_postgres },
    Suite { name: "pgx", command: pgx },
    Suite { name: "pdo", command: pdo },
];

impl Suite {
    /// Runs it against a server and returns its lines.
    pub(crate) fn run(&self, place: &Place) -> Vec<Line> {
        let suite = (self.command)();
        let mut command = Command::new("timeout");
        command.arg(PATIENCE.as_secs().to_string()).arg(suite.get_program()).args(suite.get_args());
        for (name, value) in suite.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        place.tell(&mut command);
        let (code, out, error) = run(&mut command);
        let mut lines: Vec<Line> = out.lines().filter_map(line).collect();
        let all_held = lines.iter().all(|line| line.held);
        if (code == Some(0)) != all_held || !all_held {
            println!("--- {} ended with {code:?} and said:\n{out}{error}", self.name);
        }
        if code != Some(0) && all_held {
            lines.push(Line::failed(&format!("the suite itself ended with {code:?}")));
        }
        lines
    }
}

fn line(text: &str) -> Option<Line> {
    let held = text.starts_with("ok - ");
    (held || text.starts_with("not ok - ")).then(|| Line { held, text: text.to_owned() })
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn source(path: &str) -> PathBuf {
    root().join("tests/drivers").join(path)
}

/// What `cargo xtask tools` fetched.
pub(crate) fn fetched(path: &str) -> PathBuf {
    let path = root().join("target/drivers").join(path);
    assert!(path.exists(), "{} is missing; make tools fetches it", path.display());
    path
}

/// Where compiled suites go.
pub(crate) fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Compiles a suite, once for all the tests that run it.
pub(crate) fn build_once(done: &OnceLock<()>, command: &mut Command) {
    done.get_or_init(|| {
        let (code, out, error) = run(command);
        assert_eq!(code, Some(0), "{command:?}\n{out}{error}");
    });
}

fn libpq() -> Command {
    static DONE: OnceLock<()> = OnceLock::new();
    let program = built("libpq-suite");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I/usr/include/postgresql"]);
    gcc.arg(source("libpq/suite.c")).arg("-o").arg(&program).args(["-lpq", "-lpthread"]);
    build_once(&DONE, &mut gcc);
    Command::new(program)
}

fn python(suite: &str) -> Command {
    python_script(&source(suite).join("suite.py"))
}

/// A script that finds the Python packages.
pub(crate) fn python_script(script: &Path) -> Command {
    let mut command = Command::new(fetched("python/bin/python"));
    // No compiled files beside the sources.
    command.arg("-B").arg(script);
    command
}

fn pgjdbc() -> Command {
    static DONE: OnceLock<()> = OnceLock::new();
    let classes = built("pgjdbc-suite");
    let driver = fetched("java").join("*");
    let mut javac = Command::new("javac");
    javac.arg("-cp").arg(&driver).arg("-d").arg(&classes).arg(source("pgjdbc/Suite.java"));
    build_once(&DONE, &mut javac);
    let mut java = Command::new("java");
    // A short program starts sooner without the optimising compiler.
    java.arg("-XX:TieredStopAtLevel=1").arg("-cp");
    java.arg(format!("{}:{}", classes.display(), driver.display())).arg("Suite");
    java
}

fn node_postgres() -> Command {
    node(&source("node-postgres/suite.js"))
}

/// A script of Node's that finds the driver.
pub(crate) fn node(script: &Path) -> Command {
    let mut node = Command::new("node");
    node.arg(script).env("NODE_PATH", fetched("node/node_modules"));
    node
}

fn pgx() -> Command {
    static DONE: OnceLock<()> = OnceLock::new();
    let program = built("pgx-suite");
    build_once(&DONE, go_build(&program).arg("."));
    Command::new(program)
}

/// Go's compiler in the driver suite's module.
pub(crate) fn go_build(program: &Path) -> Command {
    go_build_in(&source("pgx"), &fetched("go"), program)
}

/// Go's compiler in a module, with what was fetched and nothing else.
pub(crate) fn go_build_in(module: &Path, fetched: &Path, program: &Path) -> Command {
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(program).current_dir(module);
    go.env("GOMODCACHE", fetched).env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
    go.env("GOFLAGS", "-mod=readonly -modcacherw");
    go
}

fn pdo() -> Command {
    let mut php = Command::new("php");
    php.arg(source("pdo/suite.php"));
    php
}
