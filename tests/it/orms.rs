//! ORMs and migration tools, unchanged, at the PostgreSQL listener; and the same suites at a PostgreSQL, so that what
//! they expect is what PostgreSQL does, and at one behind a daemon that forwards to it and keeps answers.
//! `tests/orms/README.md` says what a suite is.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

use crate::drivers::place::SqlDaemon;
use crate::drivers::postgresql::PostgreSql;
use crate::drivers::suite::{Line, Suite, build_once, built, fetched, go_build_in, python_script, root};
use crate::drivers::{expected, report};
use crate::forwarding::{SETTINGS, in_front_of};
use crate::sources::psql;

/// Steps that PostgreSQL takes and that fail here, with the reason: `suite | step | reason`. The list may only shrink:
/// a step of it that succeeds fails the test until its line is taken away.
const MISSING: &str = include_str!("../orms/missing.txt");

const SUITES: &[Suite] = &[
    Suite { name: "django", command: || python_script(&source("django/suite.py")) },
    Suite { name: "alembic", command: || python_script(&source("alembic/suite.py")) },
    Suite { name: "asyncpg", command: || python_script(&source("asyncpg/suite.py")) },
    Suite { name: "sequelize", command: || node("sequelize") },
    Suite { name: "typeorm", command: || node("typeorm") },
    Suite { name: "drizzle", command: || node("drizzle") },
    Suite { name: "knex", command: || node("knex") },
    Suite { name: "gorm", command: || go("gorm") },
    Suite { name: "sqlx", command: || go("sqlx") },
    Suite { name: "golang-migrate", command: || go("golang-migrate") },
    Suite { name: "hibernate", command: || java("HibernateSuite") },
    Suite { name: "flyway", command: || java("FlywaySuite") },
    Suite { name: "liquibase", command: || java("LiquibaseSuite") },
    Suite { name: "activerecord", command: || ruby("activerecord") },
];

fn source(path: &str) -> PathBuf {
    root().join("tests/orms").join(path)
}

fn node(suite: &str) -> Command {
    let mut node = Command::new("node");
    node.arg(source(suite).join("suite.js")).env("NODE_PATH", fetched("orms-node/node_modules"));
    node
}

/// All of Go's suites are one module: built at once, what they share is compiled once.
fn go(suite: &str) -> Command {
    static DONE: OnceLock<()> = OnceLock::new();
    let programs = built("orms-go");
    // The slash says that it is a folder, one program for each suite.
    let mut go = go_build_in(&source("go"), &fetched("orms-go"), &programs.join(""));
    build_once(&DONE, go.arg("./..."));
    Command::new(programs.join(suite))
}

/// All of Java's suites are compiled at once.
fn java(suite: &str) -> Command {
    static DONE: OnceLock<()> = OnceLock::new();
    let (folder, classes) = (source("java"), built("orms-java"));
    let tools = fetched("orms-java").join("*");
    let mut javac = Command::new("javac");
    javac.arg("-nowarn").arg("-cp").arg(&tools).arg("-d").arg(&classes).arg("-sourcepath").arg(&folder);
    javac.args(["Hibernate", "Flyway", "Liquibase"].map(|tool| folder.join(format!("{tool}Suite.java"))));
    build_once(&DONE, &mut javac);
    let mut java = Command::new("java");
    // A short program starts sooner without the optimising compiler. The folder has the migrations.
    java.arg("-XX:TieredStopAtLevel=1").arg("-cp");
    java.arg(format!("{}:{}:{}", classes.display(), tools.display(), folder.display())).arg(suite);
    java
}

fn ruby(suite: &str) -> Command {
    let mut ruby = Command::new("ruby");
    ruby.arg(source(suite).join("suite.rb"));
    ruby
}

/// The PostgreSQL of the suites that run at the same time. It ends with the last of them.
fn postgresql() -> Arc<PostgreSql> {
    static SHARED: Mutex<Weak<PostgreSql>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(PostgreSql::start_with(SETTINGS));
        *shared = Arc::downgrade(&server);
        server
    })
}

/// Runs the suite of this name at a PostgreSQL, which must take every step, through a daemon that keeps its answers,
/// and at a daemon of its own.
fn compared(name: &str) {
    let suite = SUITES.iter().find(|suite| suite.name == name).unwrap();
    let server = postgresql();
    let there = Instant::now();
    report(name, &suite.run(&server.database(suite.name)));
    let through = Instant::now();
    forwarded(suite, &server);
    let here = Instant::now();
    let daemon = SqlDaemon::start(&[]);
    let lines = suite.run(&daemon.place);
    said(name, &lines, (through - there).as_secs_f64(), here.elapsed().as_secs_f64());
    report(name, &expected(MISSING, name, lines));
}

/// A published table without a primary key takes no UPDATE and no DELETE: PostgreSQL wants an identity of each row.
const IDENTITIES: &str = "
    CREATE PUBLICATION cache FOR ALL TABLES;
    CREATE SCHEMA aside;
    CREATE FUNCTION aside.identify() RETURNS event_trigger LANGUAGE plpgsql AS $$
    DECLARE one regclass;
    BEGIN
        FOR one IN SELECT c.oid FROM pg_event_trigger_ddl_commands() d JOIN pg_class c ON c.oid = d.objid
            WHERE d.classid = 'pg_class'::regclass AND relkind IN ('r', 'p') AND relpersistence = 'p'
            AND relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary)
        LOOP
            EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', one);
        END LOOP;
    END $$;
    CREATE EVENT TRIGGER identify ON ddl_command_end EXECUTE FUNCTION aside.identify()";

/// Runs a suite at a database of the server behind a daemon, which must take every step, too.
fn forwarded(suite: &Suite, server: &PostgreSql) {
    // As long as the test: a place has a name that is known when it is compiled.
    let direct = server.database(Box::leak(format!("{}_behind", suite.name).into_boxed_str()));
    psql(&direct, IDENTITIES);
    let (daemon, through) = in_front_of(&direct, "cache 'auto'", &[]);
    report(suite.name, &suite.run(&through));
    drop(daemon);
}

/// One line with the figures of a suite, also for `make test-orms`.
fn said(name: &str, lines: &[Line], there: f64, here: f64) {
    let held = lines.iter().filter(|line| line.held).count();
    println!("{name}: {held} of {} steps of PostgreSQL's; {there:.1} s there, {here:.1} s here", lines.len());
}

#[test]
fn django() {
    compared("django");
}

#[test]
fn alembic() {
    compared("alembic");
}

#[test]
fn asyncpg() {
    compared("asyncpg");
}

#[test]
fn sequelize() {
    compared("sequelize");
}

#[test]
fn typeorm() {
    compared("typeorm");
}

#[test]
fn drizzle() {
    compared("drizzle");
}

#[test]
fn knex() {
    compared("knex");
}

#[test]
fn gorm() {
    compared("gorm");
}

#[test]
fn sqlx() {
    compared("sqlx");
}

#[test]
fn golang_migrate() {
    compared("golang-migrate");
}

#[test]
fn hibernate() {
    compared("hibernate");
}

#[test]
fn flyway() {
    compared("flyway");
}

#[test]
fn liquibase() {
    compared("liquibase");
}

#[test]
fn activerecord() {
    compared("activerecord");
}
