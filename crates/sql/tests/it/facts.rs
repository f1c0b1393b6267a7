//! The session's functions about its writes, and the hidden columns.

use std::time::Duration;

use crate::common::Db;
use sql::Session;

#[test]
fn a_session_knows_what_it_wrote() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);\nCREATE TABLE log (line TEXT)");
    assert_eq!(db.query("SELECT changes(), total_changes(), last_insert_rowid()"), "0,0,0");
    db.run("INSERT INTO t VALUES (7, 'x'), (9, 'y'), (8, 'z')");
    assert_eq!(db.query("SELECT changes(), total_changes(), last_insert_rowid()"), "3,3,8");
    db.run("UPDATE t SET b = 'w' WHERE a > 7");
    assert_eq!(db.query("SELECT changes(), total_changes(), last_insert_rowid()"), "2,5,8");
    assert_eq!(db.state("INSERT INTO t VALUES (100, 'a'), (7, 'taken')"), "23505");
    assert_eq!(
        db.query("SELECT changes(), total_changes(), last_insert_rowid()"),
        "0,5,8",
        "a failure wrote nothing"
    );
    db.run("INSERT OR IGNORE INTO t VALUES (7, 'ignored')");
    assert_eq!(db.query("SELECT changes(), last_insert_rowid()"), "0,8");
    db.run("INSERT INTO t VALUES (8, 'n') ON CONFLICT (a) DO UPDATE SET b = excluded.b");
    assert_eq!(db.query("SELECT changes(), last_insert_rowid()"), "1,8", "an update is no insertion");
    db.run("INSERT INTO log VALUES ('one');\nINSERT INTO log VALUES ('two')");
    let last = db.query("SELECT max(rowid) FROM log");
    assert_eq!(db.query("SELECT last_insert_rowid()"), last);
    db.run("INSERT INTO t VALUES (last_insert_rowid() + 1000, 'after')");
    assert_eq!(db.query("SELECT count(*) FROM t WHERE b = 'after' AND a > 1000"), "1");
    db.run("DELETE FROM t WHERE a = 9");
    assert_eq!(db.query("SELECT changes()"), "1");
    db.run("REPLACE INTO t VALUES (7, 'r')");
    assert_eq!(db.query("SELECT changes(), last_insert_rowid()"), "1,7");

    let own = std::mem::replace(&mut db.session, Session::new());
    assert_eq!(
        db.query("SELECT changes(), total_changes(), last_insert_rowid()"),
        "0,0,0",
        "another session"
    );
    db.session = own;
    assert_eq!(db.query("SELECT changes(), last_insert_rowid()"), "1,7");
}

#[test]
fn a_rows_end_is_a_column() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (a INT PRIMARY KEY, page INT) WITH (ttl = '1 min');
CREATE INDEX t_page ON t (page);
INSERT INTO t VALUES (1, 17), (2, 17), (3, 18);
INSERT INTO t (a, page, _ttl) VALUES (4, 18, 5), (5, 18, NULL)",
    );
    assert_eq!(db.query("SELECT a, _ttl FROM t ORDER BY a"), "1,60;2,60;3,60;4,5;5,NULL");
    db.run("UPDATE t SET _ttl = 600 WHERE page = 17");
    assert_eq!(db.query("SELECT a, _ttl FROM t ORDER BY a"), "1,600;2,600;3,60;4,5;5,NULL");
    db.run("UPDATE t SET _expires_at = 1700000030 WHERE a = 3");
    assert_eq!(db.query("SELECT _ttl, _expires_at FROM t WHERE a = 3"), "30,1700000030");
    // A write that does not name it keeps it; one of a whole new row does not.
    db.run("UPDATE t SET page = 19 WHERE a = 5;\nREPLACE INTO t VALUES (2, 17)");
    assert_eq!(db.query("SELECT a, _ttl FROM t WHERE a IN (2, 5) ORDER BY a"), "2,60;5,NULL");
    db.run("INSERT INTO t (a, page, _ttl) VALUES (1, 17, 20) ON CONFLICT (a) DO UPDATE SET _ttl = excluded._ttl + 1");
    assert_eq!(db.query("SELECT _ttl FROM t WHERE a = 1"), "21");
    assert_eq!(db.query("UPDATE t SET _ttl = _ttl * 2 WHERE a = 1 RETURNING a, _ttl"), "1,42");
    db.run("UPDATE t SET _ttl = 0 WHERE a = 1");
    assert_eq!(db.query("SELECT count(*) FROM t WHERE a = 1"), "0", "it has come to its end");
    db.clock.advance(Duration::from_secs(61));
    assert_eq!(db.query("SELECT a, _age >= 61, _expires_at FROM t"), "5,1,NULL");
    for read_only in ["_age", "_size", "_cas", "_hits"] {
        assert_eq!(db.state(&format!("UPDATE t SET {read_only} = 1")), "428C9");
        assert_eq!(db.state(&format!("INSERT INTO t (a, {read_only}) VALUES (9, 1)")), "428C9");
    }
    assert_eq!(db.state("UPDATE t SET _ttl = 'soon'"), "22P02");
}

/// A deadline is kept to a sixteenth of a second, rounded up. Told in seconds rounded up again it grew by one with each
/// copy: 600, 601, 602.
#[test]
fn a_deadline_that_is_copied_does_not_grow() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT PRIMARY KEY, b INT)");
    // At all places between two ticks, and between two seconds.
    for step in 0..40 {
        db.clock.advance(Duration::from_millis(33));
        db.run("REPLACE INTO t (a, _ttl) VALUES (1, 600)");
        for _ in 0..3 {
            assert_eq!(db.query("UPDATE t SET _ttl = _ttl RETURNING _ttl"), "600", "step {step}");
            let upsert =
                "INSERT INTO t (a, _ttl) VALUES (1, 600) ON CONFLICT (a) DO UPDATE SET _ttl = excluded._ttl";
            assert_eq!(db.query(&format!("{upsert} RETURNING _ttl")), "600", "step {step}");
        }
        db.run("INSERT INTO t (a, _ttl) SELECT 2, _ttl FROM t WHERE a = 1");
        assert_eq!(db.query("DELETE FROM t WHERE a = 2 RETURNING _ttl"), "600", "step {step}");
    }
    db.clock.advance(Duration::from_millis(599_700));
    assert_eq!(db.query("SELECT _ttl FROM t"), "1", "a row that is there has time left");
    assert_eq!(db.query("UPDATE t SET _ttl = 0 RETURNING _ttl"), "0");
    assert_eq!(db.query("SELECT count(*) FROM t"), "0");
}

/// They were cut 8.5 years after the arena was made.
#[test]
fn far_deadlines_are_kept_and_told() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT PRIMARY KEY)");
    // Beyond 4.25 years a deadline is kept to the second, rounded down.
    for (value, moment) in
        [("_ttl = 1000000000", 2_700_000_000_u64), ("_expires_at = '2090-01-01'", 3_786_912_000)]
    {
        db.run("INSERT OR IGNORE INTO t VALUES (1)");
        let near = format!("{moment} - _expires_at IN (0, 1), {} - _ttl IN (0, 1)", moment - 1_700_000_000);
        assert_eq!(db.query(&format!("UPDATE t SET {value} RETURNING {near}")), "1,1", "{value}");
    }
}

/// A deadline may begin in the middle of a second, and is no second later for that.
#[test]
fn a_moment_that_has_come_takes_the_row_away() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT PRIMARY KEY)");
    db.clock.advance(Duration::from_millis(900));
    db.run("INSERT INTO t (a, _expires_at) VALUES (1, 1700000001), (2, 1700000002);\nINSERT INTO t (a, _ttl) VALUES (3, 1)");
    db.clock.advance(Duration::from_millis(100));
    assert_eq!(db.query("SELECT a FROM t ORDER BY a"), "2;3");
    db.clock.advance(Duration::from_millis(900));
    assert_eq!(db.query("SELECT a FROM t"), "2");
    db.clock.advance(Duration::from_millis(100));
    assert_eq!(db.query("SELECT count(*) FROM t"), "0");
}

#[test]
fn deadlines_are_spans_and_moments_too() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT PRIMARY KEY);\nINSERT INTO t VALUES (1);\nCREATE VIEW v AS SELECT a, _ttl FROM t");
    for (value, ttl) in [
        ("_ttl = '10 min'", "600"),
        ("_ttl = interval '1 hour'", "3600"),
        ("_ttl = '90'", "90"),
        ("_expires_at = now() + interval '2 hours'", "7200"),
        ("_expires_at = '2023-11-14 23:13:20+01'", "NULL"),
        ("_expires_at = '2023-11-14T22:14:20Z'", "60"),
        ("_expires_at = NULL", "NULL"),
    ] {
        // The clock stands at 2023-11-14 22:13:20; what has passed takes the row away.
        let told = db.query(&format!("UPDATE t SET {value} RETURNING _ttl"));
        let expected = if value.contains("+01") { "0" } else { ttl };
        assert_eq!(told, expected, "{value}");
        db.run("INSERT OR IGNORE INTO t VALUES (1)");
    }
    assert_eq!(db.state("UPDATE t SET _expires_at = 'then'"), "22P02");
    let (_, rows) = db.execute("SELECT _ttl FROM v", &[]).unwrap();
    assert_eq!(rows.types, [sql::SqlType::Int8], "a view's column of it has its type");
}

#[test]
fn a_rows_reads_are_counted_as_eviction_counts_them() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT PRIMARY KEY);\nINSERT INTO t VALUES (1), (2)");
    assert_eq!(db.query("SELECT a, _hits FROM t ORDER BY a"), "1,0;2,0", "a scan counts nothing");
    for _ in 0..5 {
        db.query("SELECT a FROM t WHERE a = 2");
    }
    assert_eq!(db.query("SELECT a, _hits FROM t ORDER BY a"), "1,0;2,3");
    assert_eq!(db.query("SELECT a FROM t WHERE _hits = 0 AND _age >= 0"), "1");
}
