//! `count(*)` without a look at the rows is the number of rows, whatever has ended meanwhile.
//!
//! `SEED=... cargo test -p sql --test it counts` replays one run.

use std::time::Duration;

use crate::common::Db;
use fastrand::Rng;

const ROUNDS: u64 = 40;
const STEPS: usize = 150;

#[test]
fn the_number_of_rows_is_exact_at_every_moment() {
    let given = crate::common::given_seed();
    let first: u64 = given.unwrap_or_else(|| fastrand::u64(..));
    for seed in first..first + if given.is_some() { 1 } else { ROUNDS } {
        let mut rng = Rng::with_seed(seed);
        let mut db = Db::new();
        let options =
            ["", " WITH (ttl = '20 s')", " WITH (max_rows = 40)", " WITH (ttl = '9 s', max_rows = 30)"];
        let options = options[rng.usize(0..options.len())];
        db.run(&format!("CREATE TABLE t (a INT PRIMARY KEY, b INT){options};\nCREATE INDEX t_b ON t (b)"));
        let mut log = vec![options.to_owned()];
        for _ in 0..STEPS {
            log.push(step(&mut db, &mut rng));
            // Now and then a scan, which teaches the store what it need not look at again.
            let scan = rng.bool().then(|| db.query("SELECT total(b IS b) FROM t"));
            let counted = db.query("SELECT count(*) FROM t");
            let rows = db.query("SELECT a, b FROM t ORDER BY a");
            let number = if rows.is_empty() { 0 } else { rows.split(';').count() };
            let by_index = db.query("SELECT count(*) FROM t WHERE b = 3");
            let of_index = rows.split(';').filter(|row| row.ends_with(",3")).count();
            assert_eq!(counted, number.to_string(), "SEED={seed}\n{}\n{scan:?} {rows}", log.join(";\n"));
            assert_eq!(by_index, of_index.to_string(), "SEED={seed}\n{}", log.join(";\n"));
        }
    }
}

/// Changes something, and says what.
fn step(db: &mut Db, rng: &mut Rng) -> String {
    let (a, b) = (rng.i32(0..60), rng.i32(0..6));
    let sql = match rng.u32(0..14) {
        0..4 => format!("REPLACE INTO t VALUES ({a}, {b})"),
        4 => format!("INSERT OR IGNORE INTO t VALUES ({a}, {b}), ({}, {b}), ({}, {b})", a + 1, a + 2),
        5 => format!("REPLACE INTO t (a, b, _ttl) VALUES ({a}, {b}, {})", rng.i32(0..15)),
        6 => format!("UPDATE t SET _ttl = {} WHERE b = {b}", ["NULL", "1", "4", "30"][rng.usize(0..4)]),
        7 => format!("UPDATE t SET a = a + 60 WHERE a = {a}"),
        8 => format!("DELETE FROM t WHERE a = {a}"),
        9 => format!("DELETE FROM t WHERE b = {b}"),
        10 if rng.u32(0..6) == 0 => "TRUNCATE t".to_owned(),
        11 => {
            // The cleaner runs, or does not.
            db.store.tick();
            return "-- a tick".to_owned();
        }
        _ => {
            let by = Duration::from_millis(rng.u64(1..6_000));
            db.clock.advance(by);
            return format!("-- {by:?} pass");
        }
    };
    // A statement that takes another row's key is refused, and the count is right still.
    let _refused = db.execute(&sql, &[]);
    sql
}

#[test]
fn a_transaction_counts_what_it_sees() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT PRIMARY KEY);\nINSERT INTO t VALUES (1), (2)");
    db.run("BEGIN;\nINSERT INTO t VALUES (3);\nDELETE FROM t WHERE a = 1;\nDELETE FROM t WHERE a = 2");
    assert_eq!(db.query("SELECT count(*) FROM t"), "1");
    db.run("ROLLBACK");
    assert_eq!(db.query("SELECT count(*) AS n FROM t"), "2");
    assert_eq!(db.query("SELECT count(*) FROM t WHERE a = 1"), "1");
}

#[test]
fn a_count_does_not_look_at_the_rows() {
    let mut db = Db::with_limits(sql::Limits { statement_timeout: None, ..sql::Limits::default() });
    db.run("CREATE TABLE t (a INT PRIMARY KEY, b INT)");
    for chunk in 0..20 {
        let rows: Vec<String> = (0..500).map(|row| format!("({}, 1)", chunk * 500 + row)).collect();
        db.run(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    }
    let table = db.store.catalog().table("t").cloned().unwrap();
    assert_eq!(db.store.view().known_rows(&table), Some(10_000));
    // Not through SQLite, which would refuse so many steps.
    db.executor.set_limits(sql::Limits { operations_max: Some(1), ..sql::Limits::default() });
    assert_eq!(db.query("SELECT count(*) FROM t"), "10000");
    db.executor.set_limits(sql::Limits { statement_timeout: None, ..sql::Limits::default() });
    db.run("REPLACE INTO t (a, b, _ttl) VALUES (1, 1, 5)");
    assert_eq!(db.store.view().known_rows(&table), Some(10_000));
    db.clock.advance(Duration::from_secs(6));
    assert_eq!(db.store.view().known_rows(&table), None, "a row may have ended");
    assert_eq!(db.query("SELECT count(*) FROM t"), "9999");
    db.store.tick();
    assert_eq!(db.query("SELECT count(*) FROM t"), "9999");
    db.run("TRUNCATE t");
    assert_eq!(db.query("SELECT count(*) FROM t"), "0");
}
