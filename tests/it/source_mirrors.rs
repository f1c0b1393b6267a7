//! `mode = 'mirror'`: a table of a real PostgreSQL, copied and followed.

use std::process::Child;

use crate::drivers::place::SqlDaemon;
use crate::drivers::postgresql::PostgreSql;
use crate::seed;
use crate::source_modes::{COLUMNS, barrier, both, places};
use crate::sources::{asked, psql, until, wait};

const ALL: &str = "SELECT id, name, price, at AT TIME ZONE 'UTC', tags, doc, mood, encode(raw, 'hex'), ok, real, day, uid, md5(note)
     FROM item ORDER BY id";

fn mirror(daemon: &SqlDaemon) {
    psql(
        &daemon.place,
        &format!(
            "CREATE TABLE item ({COLUMNS}) WITH (prefix = 'item:', value = 'name', source = 'pg', depends = 'item(id)', mode = 'mirror')"
        ),
    );
}

fn whole(daemon: &SqlDaemon) {
    until("the mirror is whole", || {
        asked(&daemon.place, "SELECT count(*) FROM item").is_ok()
            && psql(&daemon.place, "SELECT state FROM sqlcached_sources") == "streaming"
    });
}

fn compare(database: &PostgreSql, daemon: &SqlDaemon) {
    barrier(database, daemon);
    let (theirs, ours) = both(database, daemon, ALL);
    assert_eq!(theirs, ours);
}

/// A transaction of the source that stays open, for which the copy waits.
fn open_transaction(database: &PostgreSql) -> Child {
    let mut sleeper = database.place.program("psql");
    let statement = "BEGIN; SELECT pg_current_xact_id(); SELECT pg_sleep(60); COMMIT";
    let child =
        sleeper.args(["-X", "-q", "-c", statement]).stdout(std::process::Stdio::null()).spawn().unwrap();
    let sleeps =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND wait_event = 'PgSleep'";
    until("a transaction is open", || psql(&database.place, sleeps) == "1");
    child
}

/// A table with large values, not to be compressed.
fn large(database: &PostgreSql, rows: &str) {
    let note = "(SELECT string_agg(md5(random()::text || n), '') FROM generate_series(1, 1000) n)";
    psql(&database.place, &format!("UPDATE item SET note = {note} WHERE {rows}"));
}

#[test]
fn a_mirror_has_all_rows_or_says_that_it_has_not() {
    let (database, daemon) = places();
    large(&database, "id = 3");
    // The stream of the server runs already.
    psql(&daemon.place, "CREATE TABLE page (id INT PRIMARY KEY) WITH (source = 'pg', depends = 'item(id)')");
    wait(&daemon, "streaming");
    let mut sleeper = open_transaction(&database);
    mirror(&daemon);
    until("it is copied", || psql(&daemon.place, "SELECT state FROM sqlcached_sources") == "copying");
    for read in ["SELECT count(*) FROM item", "SELECT * FROM item WHERE id = 1"] {
        let refused = asked(&daemon.place, read).unwrap_err();
        assert!(refused.contains("55000") && refused.contains("does not have all rows"), "{refused}");
    }
    let ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    psql(&database.place, ends);
    let _ended = sleeper.wait();
    whole(&daemon);
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM item"), "10");
    compare(&database, &daemon);
    let mut client = daemon.daemon.connect();
    assert_eq!(client.get("item:4").as_deref(), Some(&b"item 4"[..]));
    // Nobody else writes it.
    for write in [
        "INSERT INTO item (id) VALUES (77)",
        "UPDATE item SET name = 'x'",
        "DELETE FROM item WHERE id = 1",
        "TRUNCATE item",
    ] {
        let refused = asked(&daemon.place, write).unwrap_err();
        assert!(refused.contains("42809") && refused.contains("mirrors its source"), "{write}: {refused}");
    }
    let refused = client.set("item:4", b"x");
    assert!(refused.contains("mirrors its source"), "{refused}");
    let refused = client.ask("delete item:4");
    assert!(refused.contains("mirrors its source"), "{refused}");
    assert_eq!(client.ask("flush_all"), "OK");
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM item"), "10");
    // Changes of all kinds; large values that did not change, of a row that moves too.
    psql(
        &database.place,
        r#"BEGIN; UPDATE item SET name = 'new', tags = '{a,"b c",NULL}', doc = '{"a": [1, null]}', mood = 'sad', raw = '\x00ff' WHERE id = 1;
           DELETE FROM item WHERE id = 2; UPDATE item SET name = 'large' WHERE id = 3; UPDATE item SET id = 33 WHERE id = 3;
           UPDATE item SET price = 3 WHERE id = 33; INSERT INTO item (id, name) VALUES (2, 'again'); COMMIT"#,
    );
    compare(&database, &daemon);
    psql(
        &database.place,
        "BEGIN; UPDATE item SET id = 34 WHERE id = 33; UPDATE item SET id = 33 WHERE id = 4; UPDATE item SET id = 4 WHERE id = 34; COMMIT",
    );
    compare(&database, &daemon);
    psql(
        &database.place,
        "BEGIN; INSERT INTO item (id) VALUES (50); TRUNCATE item; INSERT INTO item (id, name) VALUES (51, 'only'); COMMIT",
    );
    compare(&database, &daemon);
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM item"), "1");
    // A transaction that is larger than what is kept of one.
    psql(
        &database.place,
        "INSERT INTO item (id, name) SELECT n, 'row ' || n FROM generate_series(100, 6500) n",
    );
    compare(&database, &daemon);
    psql(&database.place, "BEGIN; UPDATE item SET price = id % 7; DELETE FROM item WHERE id % 3 = 0; COMMIT");
    compare(&database, &daemon);
}

/// The connection is cut, this program is killed, the database is: the mirror is copied again, and never looks whole
/// before.
#[test]
fn a_mirror_is_copied_again_behind_a_gap() {
    let (mut database, mut daemon) = places();
    mirror(&daemon);
    whole(&daemon);
    psql(
        &database.place,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_replication; UPDATE item SET name = 'cut'",
    );
    compare(&database, &daemon);
    daemon.daemon.kill();
    psql(&database.place, "DELETE FROM item WHERE id < 4");
    daemon.daemon.restart();
    if let Ok(count) = asked(&daemon.place, "SELECT count(*) FROM item") {
        assert_eq!(count, "7", "it is whole, or nobody reads it");
    }
    whole(&daemon);
    compare(&database, &daemon);
    database.stop();
    until("it is lost", || psql(&daemon.place, "SELECT state FROM sqlcached_sources") == "lost");
    database.start_again();
    psql(&database.place, "INSERT INTO item (id, name) VALUES (99, 'later')");
    whole(&daemon);
    compare(&database, &daemon);
}

/// Tables that are redefined there while they are mirrored.
#[test]
fn a_mirror_follows_definitions_or_says_that_it_cannot() {
    let (database, daemon) = places();
    mirror(&daemon);
    whole(&daemon);
    psql(
        &database.place,
        "ALTER TABLE item ADD colour TEXT; UPDATE item SET colour = 'red', name = 'one' WHERE id = 1",
    );
    compare(&database, &daemon);
    psql(
        &database.place,
        "ALTER TABLE item ALTER price TYPE NUMERIC(12, 3) USING price + 1; UPDATE item SET name = 'two' WHERE id = 2",
    );
    until("it was copied again", || {
        asked(&daemon.place, ALL).is_ok_and(|ours| ours == psql(&database.place, ALL))
    });
    psql(
        &database.place,
        "ALTER TABLE item RENAME note TO remark; UPDATE item SET name = 'three' WHERE id = 3",
    );
    until("nobody reads it", || asked(&daemon.place, "SELECT count(*) FROM item").is_err());
    until("it says why", || {
        psql(&daemon.place, "SELECT last_error FROM sqlcached_sources").contains("no column note")
    });
    psql(&daemon.place, "ALTER TABLE item DROP COLUMN note");
    whole(&daemon);
    assert_eq!(psql(&daemon.place, "SELECT name FROM item WHERE id = 3"), "three");
}

/// A table that does not fit into memory is not whole, and says so.
#[test]
fn a_mirror_that_does_not_fit_says_so() {
    let (database, daemon) = places();
    psql(
        &database.place,
        "INSERT INTO item (id, note) SELECT n, repeat(md5(n::text), 1000) FROM generate_series(1000, 4000) n",
    );
    mirror(&daemon);
    until("it says why", || {
        psql(&daemon.place, "SELECT last_error FROM sqlcached_sources").contains("mirror item")
    });
    let refused = asked(&daemon.place, "SELECT count(*) FROM item").unwrap_err();
    assert!(refused.contains("55000"), "{refused}");
    psql(&database.place, "DELETE FROM item WHERE id >= 1000");
    whole(&daemon);
    compare(&database, &daemon);
}

fn random_write(random: &mut fastrand::Rng, round: u32) -> String {
    let (id, other) = (random.u32(1..40), random.u32(1..40));
    match random.u32(0..12) {
        0..3 => format!(
            "INSERT INTO item (id, name, price) VALUES ({id}, 'n{round}', {other}.5) ON CONFLICT (id) DO UPDATE SET name = 'again';"
        ),
        3 => format!(
            "UPDATE item SET note = (SELECT string_agg(md5({other}::text || n), '') FROM generate_series(1, 200) n) WHERE id = {id};"
        ),
        4 => format!("DELETE FROM item WHERE id = {id};"),
        5 | 6 => format!(
            "UPDATE item SET id = {id} WHERE id = {other} AND NOT EXISTS (SELECT FROM item WHERE id = {id});"
        ),
        7 => format!(
            "UPDATE item SET tags = ARRAY['{other}', NULL], doc = jsonb_build_object('a', {id}), at = now() WHERE id % 5 = {};",
            id % 5
        ),
        8 => format!(
            "UPDATE item SET note = NULL, raw = decode(md5('{id}'), 'hex'), ok = NOT ok, real = {other} / 3.0 WHERE id = {id};"
        ),
        9 if random.u32(0..10) == 0 => "TRUNCATE item;".to_owned(),
        10 => format!("SAVEPOINT s; DELETE FROM item WHERE id < {id}; ROLLBACK TO s;"),
        _ => format!(
            "UPDATE item SET name = name || '{other}', mood = 'ok', day = '2024-01-01'::date + {id} WHERE id BETWEEN {id} AND {};",
            id + 3
        ),
    }
}

/// Random writes in transactions; the whole table is compared whenever what was written is applied. In between this
/// program is killed and the stream is cut.
#[test]
fn random_writes_are_mirrored() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let (database, mut daemon) = places();
    mirror(&daemon);
    for round in 0..25 {
        let mut writes = String::from("BEGIN;");
        for _ in 0..random.usize(1..30) {
            writes.push_str(&random_write(&mut random, round));
        }
        psql(&database.place, &(writes + if random.u32(0..8) == 0 { "ROLLBACK" } else { "COMMIT" }));
        match random.u32(0..8) {
            0 => {
                daemon.daemon.kill();
                daemon.daemon.restart();
            }
            1 => drop(psql(&database.place, "SELECT pg_terminate_backend(pid) FROM pg_stat_replication")),
            _ => {}
        }
        whole(&daemon);
        compare(&database, &daemon);
    }
}
