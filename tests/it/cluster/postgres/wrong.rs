//! Databases that are not set up as they must be: each is named with what to do.

use std::process::Stdio;

use super::{KEEPER, PATIENT, cache, database, server};
use crate::cluster::{figure, fill, pages, tables, wait};
use crate::drivers::place::SqlDaemon;
use crate::drivers::postgresql::PostgreSql;
use crate::sources::{asked, psql, until};

/// A cache on a bus that it cannot use.
fn stranded(port: u16) -> SqlDaemon {
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &format!("{}; {}", server(port, PATIENT), tables()));
    daemon
}

fn until_said(daemon: &SqlDaemon, words: &str) {
    let said = || psql(&daemon.place, "SELECT coalesce(last_error, '') FROM sqlcached_buses");
    until(&format!("it says: {words}; it says: {}", said()), || said().contains(words));
}

#[test]
fn what_is_wrong_is_named() {
    let database = PostgreSql::start_with(&["wal_level=replica"]);
    let admin = |sql: &str| psql(&database.place, sql);
    admin("CREATE ROLE cache LOGIN PASSWORD 'other'");
    let daemon = stranded(database.place.port);
    until_said(&daemon, "ALTER USER MAPPING FOR ... SERVER bus OPTIONS (SET password '...')");
    assert!(!daemon.daemon.printed().contains("hidden"));
    admin("ALTER ROLE cache PASSWORD 'hidden'");
    until_said(&daemon, "ALTER SYSTEM SET wal_level = logical on the source, and restart it");
}

#[test]
fn what_a_role_may_not_do_is_named() {
    let database = PostgreSql::start_with(&["wal_level=logical"]);
    let admin = |sql: &str| psql(&database.place, sql);
    admin("CREATE ROLE cache LOGIN PASSWORD 'hidden'");
    let daemon = stranded(database.place.port);
    until_said(&daemon, "ALTER ROLE cache REPLICATION on the source");
    admin("ALTER ROLE cache REPLICATION");
    until_said(&daemon, "let the owner of the database run CREATE PUBLICATION sqlcached_bus there, once");
    admin("CREATE PUBLICATION sqlcached_bus");
    wait(&daemon, "streaming");
}

/// The first cache makes the slot, which waits for transactions that are open.
#[test]
fn what_is_waited_for_is_named() {
    let database = database();
    psql(&database.place, "CREATE TABLE held (id INT)");
    let mut open = database.place.program("psql");
    open.args(["-X", "-c", "BEGIN; INSERT INTO held VALUES (1); SELECT pg_sleep(600)"]);
    let mut open = open.stdout(Stdio::null()).spawn().unwrap();
    let asleep =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND wait_event = 'PgSleep'";
    until("it is open", || psql(&database.place, asleep) == "1");
    let daemon = stranded(database.place.port);
    until_said(&daemon, "a slot waits for transactions that are open at the source: that of process");
    psql(
        &database.place,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
    );
    open.wait().unwrap();
    wait(&daemon, "streaming");
}

#[test]
fn standbys_and_slots_of_others_are_named() {
    let mut database = database();
    let standby = database.standby(&[]);
    let daemon = stranded(standby.place.port);
    until_said(&daemon, "is a standby, which takes no messages");
    let other = database.database("other");
    psql(&other, &format!("SELECT pg_create_logical_replication_slot('{KEEPER}', 'pgoutput')"));
    psql(&daemon.place, &format!("ALTER SERVER bus OPTIONS (SET port '{}')", database.place.port));
    until_said(&daemon, "name another stream: ALTER SERVER ... OPTIONS (ADD stream '...')");
    psql(&daemon.place, "ALTER SERVER bus OPTIONS (ADD stream 'mine')");
    wait(&daemon, "streaming");
}

/// Nobody else may say something by the name of the bus. Who does empties the tables, and stops nobody.
#[test]
fn garbage_is_named_and_nothing_is_believed() {
    let database = database();
    let daemon = cache(&database);
    for garbage in ["'x'", "''", "repeat('x', 2000000)"] {
        let before = figure(&daemon, "unapplied");
        fill(&daemon);
        psql(
            &database.place,
            &format!("SELECT pg_logical_emit_message(true, 'sqlcached bus sqlcached', {garbage})"),
        );
        until("it is noticed", || figure(&daemon, "unapplied") > before);
        until("nothing is believed", || pages(&daemon).is_empty());
    }
    wait(&daemon, "streaming");
    assert_eq!(figure(&daemon, "breaks"), 0);
}

/// The publication is gone for a while, with changes meanwhile: the database can never read that part of its log.
#[test]
fn a_log_that_cannot_be_read_is_given_up() {
    let database = database();
    let daemon = cache(&database);
    fill(&daemon);
    psql(
        &database.place,
        "CREATE TABLE mine (id INT PRIMARY KEY);
         DROP PUBLICATION sqlcached_bus; INSERT INTO mine VALUES (1)",
    );
    until("it is noticed", || figure(&daemon, "breaks") > 0);
    wait(&daemon, "streaming");
    assert_eq!(pages(&daemon), "");
}

/// A database is a bus or a source, and a bus is no database.
#[test]
fn statements_that_mean_something_else_are_refused() {
    let daemon = SqlDaemon::start(&[]);
    let refused = |sql: &str, words: &str| {
        let error = asked(&daemon.place, sql).unwrap_err();
        assert!(error.contains(words), "{sql}\n{error}");
    };
    let make = "CREATE SERVER bus FOREIGN DATA WRAPPER postgres OPTIONS (bus 'on'";
    refused(&format!("{make}, publication 'cache')"), "invalid option \"publication\"");
    refused(&format!("{make}, stream 'A-b')"), "lower-case letters");
    psql(&daemon.place, &format!("{make})"));
    refused(
        "CREATE TABLE t (id INT PRIMARY KEY) WITH (source = 'bus', depends = 'p(id)')",
        "is a bus, and no database",
    );
    psql(&daemon.place, "CREATE SERVER pg FOREIGN DATA WRAPPER postgres");
    refused(
        "CREATE TABLE t (id INT PRIMARY KEY) WITH (bus = 'pg', replicated = 'invalidate')",
        "or of postgres with the option bus 'on'",
    );
    psql(&daemon.place, "CREATE TABLE t (id INT PRIMARY KEY) WITH (bus = 'bus', replicated = 'invalidate')");
    refused("ALTER SERVER bus OPTIONS (SET bus 'off')", "table t depends on server bus");
}
