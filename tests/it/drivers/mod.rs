//! PostgreSQL's drivers, unchanged, at the PostgreSQL listener; and the same suites at a PostgreSQL, so that what they
//! expect is what PostgreSQL does. `tests/drivers/README.md` says what a suite is.

mod examples;
mod foreign;
pub(crate) mod mariadb;
pub(crate) mod place;
pub(crate) mod postgresql;
mod programs;
pub(crate) mod suite;
mod tokio_postgres;

use crate::drivers::place::{Place, SqlDaemon};
use crate::drivers::postgresql::PostgreSql;
use crate::drivers::suite::{Line, SUITES};

/// Checks that do not hold here yet, with the reason: `suite | check | reason`. The list may only shrink: a check of it
/// that holds fails the test until its line is taken away.
const MISSING: &str = include_str!("../../drivers/missing.txt");

/// The same for other tests.
pub(crate) fn missing() -> &'static str {
    MISSING
}

/// Runs the suite of this name at a daemon of its own.
fn at_sqlcached(name: &str) {
    let daemon = SqlDaemon::start(&[]);
    let suite = SUITES.iter().find(|suite| suite.name == name).unwrap();
    report(name, &expected(MISSING, name, suite.run(&daemon.place)));
}

/// The lines of a suite, those turned round that this list says do not hold.
pub(crate) fn expected(missing: &str, name: &str, lines: Vec<Line>) -> Vec<Line> {
    let missing: Vec<&str> = missing
        .lines()
        .filter_map(|line| line.split_once(" | "))
        .filter(|(suite, _)| *suite == name)
        .filter_map(|(_, rest)| rest.split_once(" | ").map(|(check, _)| check))
        .collect();
    let unknown: Vec<Line> = missing
        .iter()
        .filter(|check| !lines.iter().any(|line| line.name() == **check))
        .map(|check| Line::failed(&format!("missing.txt names {check}, which {name} has not")))
        .collect();
    let turn = |line: Line| {
        if !missing.contains(&line.name()) {
            return line;
        }
        if line.held {
            Line::failed(&format!("{} holds now: take it out of missing.txt", line.name()))
        } else {
            Line { held: true, text: format!("ok - {} is known not to hold", line.name()) }
        }
    };
    lines.into_iter().map(turn).chain(unknown).collect()
}

/// Prints a line for each check; panics when one did not hold.
pub(crate) fn report(name: &str, lines: &[Line]) {
    println!("{name}: {} checks", lines.len());
    for line in lines {
        println!("{}", line.text);
    }
    assert!(!lines.is_empty(), "{name} made no check");
    let failed: Vec<&str> = lines.iter().filter(|line| !line.held).map(|line| line.text.as_str()).collect();
    assert!(failed.is_empty(), "{} of {} checks of {name} failed", failed.len(), lines.len());
}

#[test]
fn libpq() {
    at_sqlcached("libpq");
}

#[test]
fn psycopg() {
    at_sqlcached("psycopg");
}

#[test]
fn sqlalchemy() {
    at_sqlcached("sqlalchemy");
}

#[test]
fn pgjdbc() {
    at_sqlcached("pgjdbc");
}

#[test]
fn node_postgres() {
    at_sqlcached("node-postgres");
}

#[test]
fn pgx() {
    at_sqlcached("pgx");
}

#[test]
fn php_pdo() {
    at_sqlcached("pdo");
}

#[test]
fn tokio_postgres_suite() {
    let daemon = SqlDaemon::start(&[]);
    report("tokio-postgres", &expected(MISSING, "tokio-postgres", tokio_postgres::run(&daemon.place)));
}

/// Every check that is not of sqlcached alone holds at a PostgreSQL.
#[test]
fn the_suites_expect_what_postgresql_does() {
    let server = PostgreSql::start();
    for (name, lines) in at_place(&server.place) {
        report(name, &lines);
    }
}

/// What all suites say of a server, one after the other.
pub(crate) fn at_place(place: &Place) -> impl Iterator<Item = (&'static str, Vec<Line>)> {
    let programs = SUITES.iter().map(|suite| (suite.name, suite.run(place)));
    programs.chain(std::iter::once_with(|| ("tokio-postgres", tokio_postgres::run(place))))
}
