//! The examples of `docs/drivers.md` run as they stand.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::daemon::{Folder, run};
use crate::drivers::place::{Place, SqlDaemon};
use crate::drivers::postgresql::PostgreSql;
use crate::drivers::suite::{fetched, go_build, node, root};

/// The port that the document names; the test's daemon has another.
const PORT: &str = "5433";

/// What each of them prints.
const OUTPUT: &str = "hello\n";

/// Makes the command that runs a file.
type Runner = fn(&Path) -> Command;

/// The words after the fence, and what runs a file with such a block; `sh` blocks are run by the test of all documents.
const LANGUAGES: &[(&str, &str, Runner)] = &[
    ("c", "example.c", c),
    ("python", "example.py", python),
    ("python sqlalchemy", "example.py", python),
    ("java", "Example.java", java),
    ("javascript", "example.js", node),
    ("go", "main.go", go),
    ("php", "example.php", php),
];

#[test]
fn examples_of_the_drivers_document() {
    let document = fs::read_to_string(root().join("docs/drivers.md")).unwrap();
    let SqlDaemon { daemon: _daemon, place } = SqlDaemon::start(&[]);
    for (fence, name, command) in LANGUAGES {
        let code = block(&document, fence).replace(PORT, &place.port.to_string());
        let folder = Folder::new();
        let file = folder.write(name, &code);
        // The example itself says where to connect to, and no more.
        let mut command = command(&file);
        command.env("PGUSER", "app");
        let (status, out, error) = run(&mut command);
        assert_eq!((status, out.as_str()), (Some(0), OUTPUT), "{fence}\n{error}");
    }
}

/// The statements for postgres_fdw delete the cache's row from within a PostgreSQL.
#[test]
fn example_of_postgres_fdw() {
    let document = fs::read_to_string(root().join("docs/drivers.md")).unwrap();
    let SqlDaemon { daemon, place } = SqlDaemon::start(&[]);
    let mut memcached = daemon.connect();
    memcached.change("CREATE TABLE frag (key TEXT PRIMARY KEY, page INT, body TEXT) WITH (prefix = 'frag:', value = 'body')");
    memcached.change("INSERT INTO frag VALUES ('a', 17, 'x'), ('b', 18, 'y')");
    let postgresql = PostgreSql::start();
    let script = block(&document, "sql").replace(PORT, &place.port.to_string());
    assert!(psql(&postgresql.place, &script).ends_with("DELETE 1\n"));
    assert_eq!((memcached.get("frag:a"), memcached.get("frag:b")), (None, Some(b"y".to_vec())));
}

fn psql(place: &Place, script: &str) -> String {
    let (code, out, error) = run(place
        .program("psql")
        .args(["-X", "-v", "ON_ERROR_STOP=1"])
        .args(script.split_inclusive(";\n").flat_map(|statement| ["-c", statement])));
    assert_eq!(code, Some(0), "{out}{error}");
    out
}

/// The block that opens with this fence.
fn block<'a>(document: &'a str, fence: &str) -> &'a str {
    let opening = format!("\n```{fence}\n");
    let start = document.find(&opening).unwrap_or_else(|| panic!("no example in {fence}")) + opening.len();
    let end = document[start..].find("\n```").unwrap() + start + 1;
    &document[start..end]
}

fn c(file: &Path) -> Command {
    let program = file.with_extension("");
    let mut gcc = Command::new("gcc");
    gcc.args(["-Wall", "-Werror", "-I/usr/include/postgresql"]).arg(file).arg("-o").arg(&program).arg("-lpq");
    let (code, out, error) = run(&mut gcc);
    assert_eq!(code, Some(0), "{out}{error}");
    Command::new(program)
}

fn python(file: &Path) -> Command {
    let mut command = Command::new(fetched("python/bin/python"));
    command.arg(file);
    command
}

/// A program of one file needs no compiler to be called first.
fn java(file: &Path) -> Command {
    let mut java = Command::new("java");
    java.arg("-cp").arg(fetched("java").join("*")).arg(file);
    java
}

fn go(file: &Path) -> Command {
    let program = file.with_file_name("example");
    let (code, out, error) = run(go_build(&program).arg(file));
    assert_eq!(code, Some(0), "{out}{error}");
    Command::new(program)
}

fn php(file: &Path) -> Command {
    let mut php = Command::new("php");
    php.arg(file);
    php
}
