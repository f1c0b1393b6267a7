//! Tables whose rows are those of a real PostgreSQL: modes `update` and `mirror`.

use crate::drivers::place::SqlDaemon;
use crate::drivers::postgresql::PostgreSql;
use crate::sources::{asked, psql, until, wait};

/// A database with a table of many types, and a daemon that knows it as the server `pg`.
pub(crate) fn places() -> (PostgreSql, SqlDaemon) {
    let database = PostgreSql::start_with(&["wal_level=logical"]);
    psql(
        &database.place,
        "CREATE ROLE cache LOGIN REPLICATION PASSWORD 'hidden';
         CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
         CREATE DOMAIN price AS NUMERIC(10, 2);
         CREATE TABLE item (
             id INT PRIMARY KEY, name TEXT, price price, at TIMESTAMPTZ, tags TEXT[], doc JSONB, mood mood,
             raw BYTEA, ok BOOL, real FLOAT8, day DATE, uid UUID, note TEXT);
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO cache;
         INSERT INTO item (id, name) SELECT n, 'item ' || n FROM generate_series(1, 10) n;
         CREATE PUBLICATION cache FOR TABLE item",
    );
    let daemon = SqlDaemon::start(&[]);
    psql(
        &daemon.place,
        &format!(
            "CREATE SERVER pg FOREIGN DATA WRAPPER postgres
                 OPTIONS (host '127.0.0.1', port '{}', dbname 'postgres', publication 'cache', max_lag '30 s');
             CREATE USER MAPPING FOR PUBLIC SERVER pg OPTIONS (user 'cache', password 'hidden')",
            database.place.port
        ),
    );
    (database, daemon)
}

pub(crate) const COLUMNS: &str =
    "id INT PRIMARY KEY, name TEXT, price NUMERIC(10, 2), at TIMESTAMPTZ, tags TEXT[], doc JSONB,
     mood TEXT, raw BYTEA, ok BOOL, real FLOAT8, day DATE, uid UUID, note TEXT";

const ROW: &str = "SELECT id, name, price, at AT TIME ZONE 'UTC', tags, doc, mood, encode(raw, 'hex'), ok, real, day, uid, length(note)
     FROM item WHERE id = ";

/// Waits until what the source has now is applied here.
pub(crate) fn barrier(database: &PostgreSql, daemon: &SqlDaemon) {
    let lsn = psql(&database.place, "SELECT pg_current_wal_insert_lsn()");
    let applied = || psql(&daemon.place, &format!("SELECT wait_for_source('pg', '{lsn}', '30 s')")) == "t";
    // A machine that does much else applies large transactions slowly.
    assert!((0..4).any(|_| applied()), "{}", psql(&daemon.place, "SELECT * FROM sqlcached_sources"));
}

pub(crate) fn both(database: &PostgreSql, daemon: &SqlDaemon, sql: &str) -> (String, String) {
    (psql(&database.place, sql), psql(&daemon.place, sql))
}

/// A row that is here becomes what the source's is, whatever its types; one that is not here does not come.
#[test]
fn rows_that_are_here_become_those_of_the_source() {
    let (database, daemon) = places();
    psql(
        &daemon.place,
        &format!(
            "CREATE TABLE item ({COLUMNS}) WITH (prefix = 'item:', value = 'name', source = 'pg', depends = 'item(id)', mode = 'update')"
        ),
    );
    wait(&daemon, "streaming");
    let mut client = daemon.daemon.connect();
    barrier(&database, &daemon);
    psql(&daemon.place, "INSERT INTO item (id, name) SELECT n, 'item ' || n FROM generate_series(1, 4) n");
    let lease = client.ask("mg item:5 c N30 v");
    let cas = lease.split(' ').find_map(|flag| flag.strip_prefix('c')).unwrap().to_owned();
    client.line();
    psql(
        &database.place,
        r#"BEGIN;
           UPDATE item SET name = 'new', price = 12345.6, at = '2024-02-29 12:00:00.123456+02', tags = '{a,"b c",NULL,"\"q\""}',
               doc = '{"a": [1, null, "e"]}', mood = 'happy', raw = '\x00ff10', ok = true, real = 1e-7, day = '1999-12-31',
               uid = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', note = 'x' WHERE id = 1;
           UPDATE item SET name = 'five' WHERE id = 5;
           UPDATE item SET name = 'six' WHERE id = 6;
           DELETE FROM item WHERE id = 2;
           UPDATE item SET id = 30, name = 'moved' WHERE id = 3;
           COMMIT"#,
    );
    barrier(&database, &daemon);
    let (theirs, ours) = both(&database, &daemon, &format!("{ROW} 1"));
    assert_eq!(theirs, ours);
    assert_eq!(client.get("item:1").as_deref(), Some(&b"new"[..]));
    // The row of a lease is there now, and the lease is none any more.
    client.send(format!("ms item:5 3 C{cas}\r\nold\r\n").as_bytes());
    assert_eq!(client.line(), "EX");
    assert_eq!(client.get("item:5").as_deref(), Some(&b"five"[..]));
    let rest = "SELECT string_agg(id::text, ',' ORDER BY id) FROM item";
    assert_eq!(psql(&daemon.place, rest), "1,4,5");
    // A row that moves to a key that is here; values to NULL.
    psql(&daemon.place, "INSERT INTO item (id, name) VALUES (30, 'older')");
    psql(
        &database.place,
        "UPDATE item SET id = 31 WHERE id = 30; UPDATE item SET price = NULL, tags = NULL, raw = NULL, ok = NULL WHERE id = 1",
    );
    barrier(&database, &daemon);
    let (theirs, ours) = both(&database, &daemon, &format!("{ROW} 1"));
    assert_eq!(theirs, ours);
    assert_eq!(psql(&daemon.place, rest), "1,4,5");
    let facts = "SELECT updated > 2, misfits, state FROM sqlcached_sources";
    assert_eq!(psql(&daemon.place, facts), "t|0|streaming");
    psql(&database.place, "TRUNCATE item");
    barrier(&database, &daemon);
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM item"), "0");
}

/// A large value that did not change is not sent: the row goes. With the whole old row it stays. A value that does not
/// fit removes its row too, is counted, and said once.
#[test]
fn what_cannot_be_told_goes() {
    let (database, daemon) = places();
    psql(
        &daemon.place,
        "CREATE TABLE item (number INT PRIMARY KEY, title TEXT, price SMALLINT, note TEXT, shown TEXT GENERATED ALWAYS AS (title || '!') STORED)
             WITH (source = 'pg', depends = 'item(id => number, name => title)', mode = 'update')",
    );
    wait(&daemon, "streaming");
    // Large, and not to be compressed.
    psql(
        &database.place,
        "UPDATE item SET price = 1, name = 'a', note = (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 1000))",
    );
    barrier(&database, &daemon);
    psql(
        &daemon.place,
        "INSERT INTO item (number, title, note) VALUES (1, 'a', 'n'), (2, 'a', 'n'), (3, 'a', 'n')",
    );
    let rows = "SELECT string_agg(number || shown, ',' ORDER BY number) FROM item";
    psql(&database.place, "UPDATE item SET name = 'b' WHERE id = 1");
    barrier(&database, &daemon);
    assert_eq!(psql(&daemon.place, rows), "2a!,3a!");
    psql(
        &database.place,
        "BEGIN; UPDATE item SET note = note || 'x', name = 'b' WHERE id = 2; UPDATE item SET name = 'c' WHERE id = 2; COMMIT",
    );
    barrier(&database, &daemon);
    assert_eq!(psql(&daemon.place, rows), "2c!,3a!");
    let length = "SELECT length(note) FROM item WHERE ";
    assert_eq!(psql(&daemon.place, &format!("{length} number = 2")), "32001");
    // The stream begins again, for it has to know what the source tells.
    psql(&database.place, "ALTER TABLE item REPLICA IDENTITY FULL");
    let again = "SELECT reconnects > 0 AND state = 'streaming' FROM sqlcached_sources";
    until("the stream begins again", || psql(&daemon.place, again) == "t");
    barrier(&database, &daemon);
    psql(&daemon.place, "INSERT INTO item (number, title, note) VALUES (2, 'c', 'n'), (3, 'a', 'n')");
    psql(&database.place, "UPDATE item SET name = 'd' WHERE id = 2");
    barrier(&database, &daemon);
    assert_eq!(psql(&daemon.place, rows), "2d!,3a!");
    assert_eq!(psql(&daemon.place, &format!("{length} number = 2")), "32001");
    psql(
        &database.place,
        "UPDATE item SET price = 99999999 WHERE id = 2; UPDATE item SET price = 0.5 WHERE id = 3",
    );
    barrier(&database, &daemon);
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM item"), "0");
    assert_eq!(psql(&daemon.place, "SELECT misfits, state FROM sqlcached_sources"), "2|streaming");
    assert_eq!(daemon.daemon.printed().matches("does not fit").count(), 1, "{}", daemon.daemon.printed());
    // A column that is dropped there: nothing can be told, so each change empties the table.
    psql(&daemon.place, "INSERT INTO item (number, title) VALUES (1, 'a'), (2, 'a')");
    psql(&database.place, "ALTER TABLE item DROP COLUMN note; UPDATE item SET name = 'e' WHERE id = 9");
    until("the table is empty", || psql(&daemon.place, "SELECT count(*) FROM item") == "0");
    let says = |words| daemon.daemon.printed().contains(words);
    until("the log says why", || says("does not tell the columns") || says("no column note"));
}

/// The race: a change is streamed before the source shows it, and a fill in between stores the old row by a lease. When
/// the source shows the change, the row is the new one again.
#[test]
fn an_old_fill_is_updated_when_the_source_shows_the_change() {
    let (database, daemon) = places();
    psql(
        &daemon.place,
        "CREATE TABLE item (id INT PRIMARY KEY, name TEXT) WITH (prefix = 'item:', value = 'name', source = 'pg', depends = 'item(id)', mode = 'update')",
    );
    wait(&daemon, "streaming");
    let (mut client, source) = (daemon.daemon.connect(), &database.place);
    psql(source, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    psql(source, "SELECT pg_reload_conf()");
    until("commits wait", || psql(source, "SHOW synchronous_standby_names") == "nobody");
    let mut update = source.program("psql");
    let mut update =
        update.args(["-X", "-q", "-c", "UPDATE item SET name = 'new' WHERE id = 1"]).spawn().unwrap();
    until("the change was streamed", || psql(&daemon.place, "SELECT events FROM sqlcached_sources") == "1");
    let old = psql(source, "SELECT name FROM item WHERE id = 1");
    assert_eq!(old, "item 1", "the source shows the change only later");
    let lease = client.ask("mg item:1 c N30 v");
    let cas = lease.split(' ').find_map(|flag| flag.strip_prefix('c')).unwrap().to_owned();
    client.line();
    client.send(format!("ms item:1 {} C{cas}\r\n{old}\r\n", old.len()).as_bytes());
    assert_eq!(client.line(), "HD");
    psql(source, "ALTER SYSTEM RESET synchronous_standby_names");
    psql(source, "SELECT pg_reload_conf()");
    update.wait().unwrap();
    until("the row is the new one", || client.get("item:1").as_deref() == Some(b"new"));
}

/// What a table and its source must be for that, said when the table is made.
#[test]
fn what_does_not_fit_is_refused() {
    let (database, daemon) = places();
    psql(&database.place, "ALTER TABLE item ADD made TEXT GENERATED ALWAYS AS (name || '!') STORED");
    for (columns, depends, state, words) in [
        ("id INT PRIMARY KEY, nothing TEXT", "item(id)", "42703", "no column nothing"),
        ("id INT PRIMARY KEY, name INT", "item(id)", "42804", "type text"),
        ("id INT PRIMARY KEY, tags TEXT", "item(id)", "", ""),
        ("id INT PRIMARY KEY, tags INT[]", "item(id)", "42804", "text[]"),
        ("id INT PRIMARY KEY, made TEXT", "item(id)", "0A000", "generated"),
        ("id INT, name TEXT", "item(id)", "22023", "primary key"),
        ("id INT PRIMARY KEY, name TEXT", "item(name)", "22023", "column of the source for id"),
        ("id INT PRIMARY KEY, name TEXT", "item", "22023", "column of the source for id"),
        ("id INT PRIMARY KEY, name TEXT", "item(id), item(id)", "22023", "one table"),
        ("id INT PRIMARY KEY, name TEXT UNIQUE", "item(id)", "22023", "unique"),
        ("name TEXT PRIMARY KEY, id INT", "item(name)", "55000", "REPLICA IDENTITY"),
    ] {
        let table = format!(
            "CREATE TABLE t ({columns}) WITH (source = 'pg', depends = '{depends}', mode = 'update'); DROP TABLE t"
        );
        match asked(&daemon.place, &table) {
            Ok(_) => assert_eq!(state, "", "{table}"),
            Err(said) => {
                assert!(!state.is_empty() && said.contains(state) && said.contains(words), "{table}: {said}");
            }
        }
    }
    psql(&database.place, "ALTER TABLE item REPLICA IDENTITY FULL");
    let said = asked(
        &daemon.place,
        "CREATE TABLE t (name TEXT PRIMARY KEY, id INT) WITH (source = 'pg', depends = 'item(name)', mode = 'update')",
    );
    assert!(said.unwrap_err().contains("no unique key"));
    let said =
        asked(&daemon.place, "CREATE TABLE t (id INT PRIMARY KEY) WITH (mode = 'update')").unwrap_err();
    assert!(said.contains("22023"), "{said}");
}

/// Rows that do not have what the source has are found and counted, and named without their values. Others are not,
/// whatever their types.
#[test]
fn the_checker_finds_what_differs() {
    let (database, daemon) = places();
    psql(&database.place, "GRANT SELECT ON item TO cache");
    psql(&daemon.place, "ALTER SERVER pg OPTIONS (ADD check_rate '100')");
    psql(
        &daemon.place,
        &format!("CREATE TABLE item ({COLUMNS}) WITH (source = 'pg', depends = 'item(id)', mode = 'update')"),
    );
    wait(&daemon, "streaming");
    barrier(&database, &daemon);
    psql(&daemon.place, "INSERT INTO item (id) SELECT n FROM generate_series(1, 9) n");
    psql(
        &database.place,
        r#"UPDATE item SET name = 'new', price = 12345.6, at = '2024-02-29 12:00:00.123456+02', tags = '{a,"b c",NULL}',
               doc = '{"b": 1.50, "a": [1, null]}', mood = 'happy', raw = '\x00ff10', ok = true, real = 1e-7, day = '1999-12-31',
               uid = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', note = 'x'"#,
    );
    barrier(&database, &daemon);
    let checked = || -> u64 { psql(&daemon.place, "SELECT checked FROM sqlcached_sources").parse().unwrap() };
    let before = checked();
    until("rows are compared", || checked() > before + 20);
    assert_eq!(psql(&daemon.place, "SELECT differing FROM sqlcached_sources"), "0");
    psql(&daemon.place, "UPDATE item SET note = 'secret' WHERE id = 4");
    until("it is found", || psql(&daemon.place, "SELECT differing FROM sqlcached_sources") == "1");
    let said = daemon.daemon.printed();
    assert!(said.contains("item differs from public.item: key (4), column note"), "{said}");
    assert!(!said.contains("secret"), "{said}");
    // It is found once, and healed by the next change.
    let before = checked();
    until("rows are compared", || checked() > before + 20);
    assert_eq!(psql(&daemon.place, "SELECT differing FROM sqlcached_sources"), "1");
}
