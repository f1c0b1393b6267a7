//! The database behind the cache: a real PostgreSQL changes, and rows here go.

mod definitions;
mod faults;
mod lag;
mod metrics;
mod slots;

use std::process::Command;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::daemon::run;
use crate::drivers::place::{Place, SqlDaemon};
use crate::drivers::postgresql::PostgreSql;

/// How long a change may take to arrive on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A database whose log tells changes, with a shop in it.
pub(crate) fn shop(settings: &[&str]) -> PostgreSql {
    let mut all = vec!["wal_level=logical"];
    all.extend_from_slice(settings);
    let database = PostgreSql::start_with(&all);
    make_shop(&database.place);
    database
}

fn make_shop(place: &Place) {
    psql(
        place,
        "CREATE ROLE cache LOGIN REPLICATION PASSWORD 'hidden';
         CREATE TABLE product (id INT PRIMARY KEY, name TEXT, price NUMERIC, description TEXT);
         CREATE TABLE review (id INT PRIMARY KEY, product_id INT, body TEXT);
         ALTER TABLE review REPLICA IDENTITY FULL;
         INSERT INTO product SELECT n, 'product ' || n, n FROM generate_series(1, 10) n;
         CREATE PUBLICATION cache FOR TABLE product, review",
    );
}

/// What psql answers at a place.
pub(crate) fn asked(place: &Place, sql: &str) -> Result<String, String> {
    let mut psql = place.program("psql");
    let (code, out, error) = run(psql.args([
        "-X",
        "-A",
        "-t",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-v",
        "VERBOSITY=verbose",
        "-c",
        sql,
    ]));
    if code == Some(0) { Ok(out.trim_end().to_owned()) } else { Err(error) }
}

pub(crate) fn psql(place: &Place, sql: &str) -> String {
    asked(place, sql).unwrap_or_else(|error| panic!("{sql}\n{error}"))
}

pub(crate) fn server(database: &PostgreSql) -> String {
    format!(
        "CREATE SERVER pg FOREIGN DATA WRAPPER postgres
             OPTIONS (host '127.0.0.1', port '{}', dbname 'postgres', publication 'cache', max_lag '2 s');
         CREATE USER MAPPING FOR PUBLIC SERVER pg OPTIONS (user 'cache', password 'hidden')",
        database.place.port
    )
}

const TABLE: &str = "CREATE TABLE page (id INT PRIMARY KEY, body TEXT)
     WITH (prefix = 'page:', value = 'body', source = 'pg', depends = 'product(id), review(product_id => id)')";

/// A daemon in front of it.
fn cache(database: &PostgreSql) -> SqlDaemon {
    cache_with(database, &[])
}

fn cache_with(database: &PostgreSql, flags: &[&str]) -> SqlDaemon {
    let daemon = SqlDaemon::start(flags);
    psql(&daemon.place, &server(database));
    psql(&daemon.place, TABLE);
    wait(&daemon, "streaming");
    daemon
}

pub(crate) fn wait(daemon: &SqlDaemon, state: &str) {
    until(&format!("the source is {state}"), || {
        psql(&daemon.place, "SELECT state FROM sqlcached_sources") == state
    });
}

pub(crate) fn until(what: &str, is_so: impl FnMut() -> bool) {
    until_within(PATIENCE, what, is_so);
}

pub(crate) fn until_within(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + patience;
    while !is_so() {
        assert!(Instant::now() < end, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Stores pages 1 to 10, when no change is still to be applied for the second time, and no table is emptied again
/// because the stream lags: behind a large transaction it does, on a machine that does much else.
pub(crate) fn fill(daemon: &SqlDaemon, client: &mut Client) {
    let unrest = "SELECT count(*) FROM sqlcached_sources WHERE unsettled > 0 OR state = 'lagging'";
    until("all is settled", || psql(&daemon.place, unrest) == "0");
    for id in 1..=10 {
        assert_eq!(client.set(&format!("page:{id}"), b"old"), "STORED");
    }
}

pub(crate) fn stored(client: &mut Client) -> Vec<u32> {
    (1..=10).filter(|id| client.get(&format!("page:{id}")).is_some()).collect()
}

pub(crate) fn until_stored(daemon: &SqlDaemon, client: &mut Client, expected: &[u32]) {
    let end = Instant::now() + PATIENCE;
    loop {
        let pages = stored(client);
        if pages == expected {
            return;
        }
        assert!(
            Instant::now() < end,
            "pages {expected:?} are to be stored, and still these are: {pages:?}; {}",
            psql(&daemon.place, "SELECT * FROM sqlcached_sources")
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What psql changes at the source, memcached's clients do not find here; and nothing else is missing.
#[test]
fn a_change_of_the_source_invalidates_the_rows_made_of_it() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let mut client = daemon.daemon.connect();
    let source = &database.place;
    fill(&daemon, &mut client);
    psql(source, "UPDATE product SET price = 7 WHERE id = 3");
    until_stored(&daemon, &mut client, &[1, 2, 4, 5, 6, 7, 8, 9, 10]);
    // Rows of another table, which come, move and go.
    psql(source, "INSERT INTO review VALUES (1, 5, 'good')");
    until_stored(&daemon, &mut client, &[1, 2, 4, 6, 7, 8, 9, 10]);
    psql(source, "UPDATE review SET product_id = 6");
    until_stored(&daemon, &mut client, &[1, 2, 4, 7, 8, 9, 10]);
    fill(&daemon, &mut client);
    psql(source, "DELETE FROM review");
    until_stored(&daemon, &mut client, &[1, 2, 3, 4, 5, 7, 8, 9, 10]);
    // A key that moves, a transaction of several rows, one that is rolled back, a NULL.
    psql(source, "UPDATE product SET id = 20 WHERE id = 1");
    until_stored(&daemon, &mut client, &[2, 3, 4, 5, 7, 8, 9, 10]);
    psql(source, "BEGIN; UPDATE product SET price = 0 WHERE id = 2; ROLLBACK");
    psql(source, "INSERT INTO review VALUES (2, NULL, 'nobody')");
    psql(
        source,
        "BEGIN; UPDATE product SET price = 0 WHERE id = 3; DELETE FROM product WHERE id = 4; COMMIT",
    );
    until_stored(&daemon, &mut client, &[2, 5, 7, 8, 9, 10]);
    psql(source, "TRUNCATE review");
    until_stored(&daemon, &mut client, &[]);
    let facts = psql(
        &daemon.place,
        "SELECT state, events > 5, transactions > 5, last_error IS NULL FROM sqlcached_sources",
    );
    assert_eq!(facts, "streaming|t|t|t");
    until("the lag is known", || psql(&daemon.place, "SELECT lag_ms < 30000 FROM sqlcached_sources") == "t");
    // The source's slot goes with the connection.
    psql(&daemon.place, "ALTER TABLE page RESET (source, depends); DROP SERVER pg CASCADE");
    until("the slot is gone", || psql(source, "SELECT count(*) FROM pg_replication_slots") == "0");
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM sqlcached_sources"), "0");
}

/// The table of the race. A standby that never confirms: the change is in the stream, and the source still answers with
/// the old row. Whoever stores that loses it when the source shows the new one, though no other event comes.
#[test]
fn a_fill_of_what_the_source_still_shows_does_not_stay() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let (mut client, source) = (daemon.daemon.connect(), &database.place);
    psql(source, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    psql(source, "SELECT pg_reload_conf()");
    until("commits wait", || psql(source, "SHOW synchronous_standby_names") == "nobody");
    let mut update = source.program("psql");
    let mut update =
        update.args(["-X", "-q", "-c", "UPDATE product SET name = 'new' WHERE id = 1"]).spawn().unwrap();
    until("the change was streamed", || psql(&daemon.place, "SELECT events FROM sqlcached_sources") == "1");
    let old = psql(source, "SELECT name FROM product WHERE id = 1");
    assert_eq!(old, "product 1", "the source shows the change only later");
    // A fill by a lease that is taken behind the event, of what the source answers.
    let lease = client.ask("mg page:1 c N30 v");
    let cas = lease.split(' ').find_map(|flag| flag.strip_prefix('c')).unwrap().to_owned();
    client.line();
    client.send(format!("ms page:1 {} C{cas}\r\n{old}\r\n", old.len()).as_bytes());
    assert_eq!(client.line(), "HD");
    // Another lease that is taken in time, and used too late.
    let lease = client.ask("mg page:2 c N30 v");
    let late = lease.split(' ').find_map(|flag| flag.strip_prefix('c')).unwrap().to_owned();
    client.line();
    psql(source, "ALTER SYSTEM RESET synchronous_standby_names");
    psql(source, "SELECT pg_reload_conf()");
    update.wait().unwrap();
    assert_eq!(psql(source, "SELECT name FROM product WHERE id = 1"), "new");
    until("the old page is gone", || client.get("page:1").is_none());
    // The lease of a row that changes meanwhile is no lease any more.
    psql(source, "UPDATE product SET name = 'new' WHERE id = 2");
    until("it was applied", || psql(&daemon.place, "SELECT transactions FROM sqlcached_sources") == "2");
    client.send(format!("ms page:2 3 C{late}\r\nold\r\n").as_bytes());
    assert_eq!(client.line(), "NF");
}

/// Each fault of a source is named when a table is made, with what to do about it.
#[test]
fn what_a_source_lacks_is_said_when_a_table_names_it() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    let source = &database.place;
    psql(&daemon.place, &server(&database));
    let refused =
        |table: &str| asked(&daemon.place, table).err().unwrap_or_else(|| panic!("{table} was made"));
    let on = |depends: &str| {
        format!("CREATE TABLE t (id INT PRIMARY KEY, b TEXT) WITH (source = 'pg', depends = '{depends}')")
    };
    for (depends, state, hint) in [
        ("nothing(id)", "42P01", "shop.product(id)"),
        ("product(price => b)", "55000", "REPLICA IDENTITY FULL"),
        ("product(nothing => id)", "42703", ""),
    ] {
        let said = refused(&on(depends));
        assert!(said.contains(state) && said.contains(hint), "{depends}: {said}");
    }
    assert!(refused(&on("product(id => nothing)")).contains("22023"));
    assert!(refused("CREATE TABLE t (id INT PRIMARY KEY) WITH (source = 'pg')").contains("22023"));
    assert!(
        refused("CREATE TABLE t (id INT PRIMARY KEY) WITH (source = 'other', depends = 'a')")
            .contains("42704")
    );
    for (change, back, state, hint) in [
        (
            "ALTER PUBLICATION cache DROP TABLE product",
            "ALTER PUBLICATION cache ADD TABLE product",
            "42704",
            "ADD TABLE",
        ),
        (
            "ALTER PUBLICATION cache SET (publish = 'insert')",
            "ALTER PUBLICATION cache SET (publish = 'insert, update, delete, truncate')",
            "55000",
            "SET (publish",
        ),
        (
            "ALTER PUBLICATION cache SET TABLE product WHERE (id > 3), review",
            "ALTER PUBLICATION cache SET TABLE product, review",
            "0A000",
            "WHERE",
        ),
        (
            "ALTER PUBLICATION cache RENAME TO other",
            "ALTER PUBLICATION other RENAME TO cache",
            "42704",
            "CREATE PUBLICATION",
        ),
        (
            "ALTER ROLE cache NOREPLICATION",
            "ALTER ROLE cache REPLICATION",
            "42501",
            "ALTER ROLE cache REPLICATION",
        ),
        (
            "ALTER TABLE product REPLICA IDENTITY NOTHING",
            "ALTER TABLE product REPLICA IDENTITY DEFAULT",
            "55000",
            "REPLICA IDENTITY",
        ),
    ] {
        psql(source, change);
        let said = refused(&on("product(id)"));
        assert!(said.contains(state) && said.contains(hint), "{change}: {said}");
        psql(source, back);
    }
    psql(&daemon.place, "ALTER USER MAPPING FOR PUBLIC SERVER pg OPTIONS (SET password 'wrong')");
    let said = refused(&on("product(id)"));
    assert!(said.contains("28P01") && said.contains("SET password") && !said.contains("wrong"), "{said}");
    psql(&daemon.place, "ALTER USER MAPPING FOR PUBLIC SERVER pg OPTIONS (SET password 'hidden')");
    psql(&daemon.place, "ALTER SERVER pg OPTIONS (SET port '1')");
    assert!(refused(&on("product(id)")).contains("08001"));
    psql(&daemon.place, &format!("ALTER SERVER pg OPTIONS (SET port '{}')", source.port));
    psql(&daemon.place, &on("product(id)"));
    let said = refused("DROP SERVER pg CASCADE");
    assert!(said.contains("2BP01") && said.contains("RESET (source, depends)"), "{said}");
    let plain = PostgreSql::start();
    psql(&plain.place, "CREATE ROLE cache LOGIN REPLICATION PASSWORD 'hidden'");
    let said = refused_by(&daemon, plain.place.port);
    assert!(said.contains("55000") && said.contains("wal_level = logical"), "{said}");
}

/// What a table says of another server.
fn refused_by(daemon: &SqlDaemon, port: u16) -> String {
    psql(
        &daemon.place,
        &format!(
            "CREATE SERVER other FOREIGN DATA WRAPPER postgres OPTIONS (host '127.0.0.1', port '{port}', publication 'cache', dbname 'postgres');
             CREATE USER MAPPING FOR PUBLIC SERVER other OPTIONS (user 'cache', password 'hidden')"
        ),
    );
    asked(
        &daemon.place,
        "CREATE TABLE u (id INT PRIMARY KEY) WITH (source = 'other', depends = 'product(id)')",
    )
    .unwrap_err()
}

/// Who wrote at the source waits for it, and does not find the old row.
#[test]
fn who_wrote_at_the_source_waits_until_it_is_here() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let mut client = daemon.daemon.connect();
    let wait = |lsn: &str, time: &str| format!("SELECT wait_for_source('pg', '{lsn}', '{time}')");
    for round in 1..=20 {
        fill(&daemon, &mut client);
        psql(&database.place, &format!("UPDATE product SET price = {round} WHERE id = 4"));
        // Statements in one text are one transaction: among them the place would be one before the commit.
        let lsn = psql(&database.place, "SELECT pg_current_wal_lsn()");
        assert_eq!(psql(&daemon.place, &wait(&lsn, "30 s")), "t");
        assert_eq!(client.get("page:4"), None, "round {round}");
    }
    // A place that does not come.
    assert_eq!(psql(&daemon.place, &wait("FFFF/0", "20 ms")), "f");
    for (sql, state) in [
        ("SELECT wait_for_source('other', '0/1')", "42704"),
        ("SELECT wait_for_source('pg', 'far')", "22P02"),
        ("SELECT wait_for_source('pg', '0/1', '1 day')", "22023"),
        ("SET statement_timeout = '50 ms'; SELECT wait_for_source('pg', 'FFFF/0', '1 min')", "57014"),
    ] {
        let refused = asked(&daemon.place, sql).unwrap_err();
        assert!(refused.contains(state), "{sql}: {refused}");
    }
    assert_eq!(psql(&daemon.place, "SELECT wait_for_source(NULL, '0/1') IS NULL"), "t");
}

/// With `on_change = 'stale'` a row that a change invalidates stays: one client is asked for it, the others are served,
/// and what was computed before the change is refused.
#[test]
fn a_change_may_make_rows_stale() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let refused = asked(&daemon.place, "ALTER TABLE page SET (on_change = 'stale')").unwrap_err();
    assert!(refused.contains("needs stale_for"), "{refused}");
    psql(&daemon.place, "ALTER TABLE page SET (stale_for = '1 min', lease = '30 s', on_change = 'stale')");
    let mut client = daemon.daemon.connect();
    fill(&daemon, &mut client);
    let cas = |client: &mut Client| {
        let answer = client.ask("mg page:3 c");
        answer.strip_prefix("HD c").unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let before = cas(&mut client);
    psql(
        &database.place,
        "BEGIN; UPDATE product SET price = 7 WHERE id = 3; DELETE FROM product WHERE id = 9; COMMIT",
    );
    let stale = "SELECT string_agg(id::text, ',' ORDER BY id) FROM page WHERE _stale";
    until("two pages are stale", || psql(&daemon.place, stale) == "3,9");
    until("all is settled", || psql(&daemon.place, "SELECT max(unsettled) FROM sqlcached_sources") == "0");
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM page"), "10");
    // One client gets the miss, the next one the row.
    assert_eq!(client.get("page:3"), None);
    assert_eq!(client.get("page:3").as_deref(), Some(&b"old"[..]));
    client.send(format!("ms page:3 3 C{before}\r\nwas").as_bytes());
    assert_eq!(client.ask(""), "EX");
    assert_eq!(client.set("page:3", b"new"), "STORED");
    assert_eq!(psql(&daemon.place, stale), "9");
    assert_eq!(client.get("page:3").as_deref(), Some(&b"new"[..]));
    // What cannot be told row by row still empties the table.
    psql(&database.place, "TRUNCATE product CASCADE");
    until_stored(&daemon, &mut client, &[]);
}

/// Tables that are redefined, large values that did not change, a transaction without end: what cannot be told empties
/// the table, and what can be does not.
#[test]
fn definitions_and_large_changes_of_the_source() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let (mut client, source) = (daemon.daemon.connect(), &database.place);
    psql(source, "UPDATE product SET description = repeat(md5('x'), 100000), name = 'large' WHERE id = 1");
    fill(&daemon, &mut client);
    // The large value is not sent again.
    psql(source, "UPDATE product SET name = 'other' WHERE id = 1");
    until_stored(&daemon, &mut client, &[2, 3, 4, 5, 6, 7, 8, 9, 10]);
    // Pages may show columns that are others now, which no event tells.
    psql(source, "ALTER TABLE product DROP COLUMN price; ALTER TABLE product ADD colour TEXT");
    until_stored(&daemon, &mut client, &[]);
    wait(&daemon, "streaming");
    fill(&daemon, &mut client);
    psql(source, "UPDATE product SET colour = 'red' WHERE id = 2");
    until_stored(&daemon, &mut client, &[1, 3, 4, 5, 6, 7, 8, 9, 10]);
    // The column that says which row it is has another name: nothing is known any more.
    psql(source, "ALTER TABLE product RENAME id TO number");
    psql(source, "UPDATE product SET colour = 'blue' WHERE number = 3");
    until_stored(&daemon, &mut client, &[]);
    until("the column is named", || {
        psql(&daemon.place, "SELECT last_error FROM sqlcached_sources").contains("no column id")
    });
    psql(source, "ALTER TABLE product RENAME number TO id");
    wait(&daemon, "streaming");
    fill(&daemon, &mut client);
    psql(source, "UPDATE product SET colour = 'blue' WHERE id = 3");
    until_stored(&daemon, &mut client, &[1, 2, 4, 5, 6, 7, 8, 9, 10]);
    // More rows than are looked for one by one.
    let before = daemon.daemon.resident_bytes();
    psql(source, "INSERT INTO review SELECT n, n, 'x' FROM generate_series(1, 1000000) n");
    until_stored(&daemon, &mut client, &[]);
    let grown = daemon.daemon.resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for a transaction of a million rows");
    // On a busy machine the stream lags, and the table was empty for that before the transaction came.
    let lsn = psql(source, "SELECT pg_current_wal_lsn()");
    assert_eq!(psql(&daemon.place, &format!("SELECT wait_for_source('pg', '{lsn}', '60 s')")), "t");
    fill(&daemon, &mut client);
    psql(source, "UPDATE product SET colour = 'red' WHERE id = 9");
    until_stored(&daemon, &mut client, &[1, 2, 3, 4, 5, 6, 7, 8, 10]);
}

/// The source goes, its connection is cut, this program is killed: nothing older than the new stream is believed.
#[test]
fn whoever_dies_nothing_old_is_believed() {
    let mut database = shop(&[]);
    let mut daemon = cache(&database);
    let mut client = daemon.daemon.connect();
    fill(&daemon, &mut client);
    psql(&database.place, "SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
    until_stored(&daemon, &mut client, &[]);
    wait(&daemon, "streaming");
    fill(&daemon, &mut client);
    database.stop();
    wait(&daemon, "lost");
    // While it is away, what is stored does not stay longer than max_lag, twice.
    fill(&daemon, &mut client);
    until_stored(&daemon, &mut client, &[]);
    assert!(psql(&daemon.place, "SELECT last_error FROM sqlcached_sources").contains("08001"));
    database.start_again();
    wait(&daemon, "streaming");
    fill(&daemon, &mut client);
    psql(&database.place, "UPDATE product SET price = 1 WHERE id = 1");
    until_stored(&daemon, &mut client, &[2, 3, 4, 5, 6, 7, 8, 9, 10]);
    daemon.daemon.kill();
    psql(&database.place, "UPDATE product SET price = 1 WHERE id = 2");
    daemon.daemon.restart();
    let mut client = daemon.daemon.connect();
    assert_eq!(stored(&mut client), [] as [u32; 0]);
    wait(&daemon, "streaming");
    fill(&daemon, &mut client);
    psql(&database.place, "UPDATE product SET price = 2 WHERE id = 2");
    until_stored(&daemon, &mut client, &[1, 3, 4, 5, 6, 7, 8, 9, 10]);
}

/// Pages with tags: a list of ours has the value among its elements; and a table that every change empties.
#[test]
fn lists_and_whole_tables_depend_too() {
    let database = shop(&[]);
    let daemon = cache(&database);
    psql(
        &daemon.place,
        "CREATE TABLE board (name TEXT PRIMARY KEY, products INT[], body TEXT)
             WITH (source = 'pg', depends = 'product(id => products)');
         CREATE TABLE top (name TEXT PRIMARY KEY, body TEXT) WITH (source = 'pg', depends = 'product')",
    );
    let fill = "INSERT INTO board VALUES ('a', '{1,2}', 'x'), ('b', '{2,3}', 'x'), ('c', NULL, 'x') ON CONFLICT DO NOTHING;
         INSERT INTO top VALUES ('now', 'x') ON CONFLICT DO NOTHING";
    let count = "SELECT (SELECT count(*) FROM board), (SELECT count(*) FROM top)";
    // What is new is emptied once, when it is followed.
    until("both are followed", || {
        psql(&daemon.place, fill);
        std::thread::sleep(Duration::from_millis(200));
        psql(&daemon.place, count) == "3|1"
    });
    psql(&database.place, "UPDATE product SET price = 0 WHERE id = 1");
    until("what has the product is gone", || psql(&daemon.place, count) == "2|0");
    assert_eq!(psql(&daemon.place, "SELECT string_agg(name, ',' ORDER BY name) FROM board"), "b,c");
}

/// TLS with the source's own certificate, checked or not.
#[test]
fn the_stream_may_be_encrypted() {
    let database = shop(&[]);
    let folder = database.folder();
    let openssl = run(Command::new("openssl").args([
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-keyout",
        &format!("{folder}/key.pem"),
        "-out",
        &format!("{folder}/cert.pem"),
    ]));
    assert_eq!(openssl.0, Some(0), "{}", openssl.2);
    let owned = run(Command::new("sh").args([
        "-c",
        &format!(
            "chmod 600 {folder}/key.pem; chown postgres {folder}/key.pem || true; chmod 644 {folder}/cert.pem"
        ),
    ]));
    assert_eq!(owned.0, Some(0), "{}", owned.2);
    for set in [
        format!("ALTER SYSTEM SET ssl_cert_file = '{folder}/cert.pem'"),
        format!("ALTER SYSTEM SET ssl_key_file = '{folder}/key.pem'"),
        "ALTER SYSTEM SET ssl = on".to_owned(),
        "SELECT pg_reload_conf()".to_owned(),
    ] {
        psql(&database.place, &set);
    }
    until("the source has TLS", || psql(&database.place, "SHOW ssl") == "on");
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(&database));
    let verified = format!(
        "ALTER SERVER pg OPTIONS (SET host 'localhost', ADD sslmode 'verify-full', ADD sslrootcert '{folder}/cert.pem')"
    );
    psql(&daemon.place, &verified);
    psql(&daemon.place, TABLE);
    wait(&daemon, "streaming");
    let encrypted = "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.usename = 'cache'";
    assert_eq!(psql(&database.place, encrypted), "t");
    // The certificate is not for this name.
    psql(&daemon.place, "ALTER SERVER pg OPTIONS (SET host '127.0.0.1')");
    wait(&daemon, "lost");
    psql(&daemon.place, "ALTER SERVER pg OPTIONS (SET sslmode 'verify-ca')");
    wait(&daemon, "streaming");
}
