//! Expiry rules: made, run when due, shown, and gone with their table. The clock is moved, never slept on.

use std::sync::Arc;
use std::time::Duration;

use crate::common::Db;
use sql::{Cancel, RuleRunner};
use store::RemovalCause;

fn runner(db: &Db) -> RuleRunner {
    RuleRunner::new(Arc::clone(&db.store)).expect("a runner")
}

/// Moves the clock by whole seconds and lets the rules run that came due.
fn pass(db: &Db, runner: &mut RuleRunner, seconds: u64) -> usize {
    db.clock.advance(Duration::from_secs(seconds));
    db.store.tick();
    runner.run_due(&Cancel::new())
}

const TABLE: &str = "CREATE TABLE t (k TEXT PRIMARY KEY, page INT, state TEXT)";

#[test]
fn rows_go_when_their_condition_is_true_and_the_rule_is_due() {
    let mut db = Db::new();
    db.run(TABLE);
    db.run("CREATE EXPIRY RULE done ON t WHEN state = 'done' AND _age >= 5 EVERY '10 s'");
    let mut rules = runner(&db);
    assert_eq!(pass(&db, &mut rules, 0), 1, "at once for the first time");
    db.run("INSERT INTO t VALUES ('a', 1, 'done'), ('b', 1, 'open')");
    assert_eq!(pass(&db, &mut rules, 9), 0, "not before its time");
    assert_eq!(db.query("SELECT k FROM t ORDER BY k"), "a;b");
    assert_eq!(pass(&db, &mut rules, 1), 1);
    assert_eq!(db.query("SELECT k FROM t ORDER BY k"), "b");
    db.run("INSERT INTO t VALUES ('c', 1, 'done')");
    assert_eq!(pass(&db, &mut rules, 4), 0);
    assert_eq!(pass(&db, &mut rules, 6), 1);
    assert_eq!(db.query("SELECT k FROM t ORDER BY k"), "b");
    assert_eq!(
        db.query(
            "SELECT rule_name, table_name, every, runs, rows, errors, last_rows FROM sqlcached_expiry_rules"
        ),
        "done,t,10 s,3,2,0,1"
    );
    assert_eq!(db.query("SELECT expired FROM sqlcached_tables WHERE table_name = 't'"), "2");
    let table = Arc::clone(db.store.catalog().table("t").unwrap());
    assert_eq!(table.stats().left(RemovalCause::Rule), 2);
    assert_eq!(db.query("SHOW EXPIRY RULES"), "done,t,state = 'done' AND _age >= 5,10 s,3,2,0,NULL");
}

#[test]
fn rows_that_are_read_stay_by_a_rule_about_hits() {
    let mut db = Db::new();
    db.run(TABLE);
    db.run("CREATE EXPIRY RULE unread ON t WHEN _hits = 0 AND _age > 60");
    let mut rules = runner(&db);
    db.run("INSERT INTO t VALUES ('read', 1, ''), ('unread', 1, '')");
    let now = db.store.now();
    let table = Arc::clone(db.store.catalog().table("t").unwrap());
    assert!(db.store.read(&table, b"read", now, &mut store::RowBuf::new()));
    pass(&db, &mut rules, 30);
    assert_eq!(db.query("SELECT count(*) FROM t"), "2");
    pass(&db, &mut rules, 32);
    assert_eq!(db.query("SELECT k FROM t"), "read");
}

#[test]
fn a_rule_uses_an_index_and_removes_more_than_one_slice() {
    let mut db = Db::new();
    db.run(TABLE);
    db.run("CREATE INDEX t_page ON t (page)");
    let rows = 150_000;
    db.run(&format!(
        "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {rows}) \
         INSERT INTO t SELECT 'k' || x, x % 3, 'x' FROM n"
    ));
    db.run("CREATE EXPIRY RULE pages ON t WHEN page IN (1, 2) EVERY '1 min'");
    let mut rules = runner(&db);
    assert_eq!(pass(&db, &mut rules, 1), 1);
    assert_eq!(db.query("SELECT count(*), min(page), max(page) FROM t"), format!("{},0,0", rows / 3));
    let plan = db.query("SELECT plan FROM sqlcached_expiry_rules");
    assert!(plan.contains("t_page"), "{plan}");
    assert_eq!(db.query("SELECT rows FROM sqlcached_expiry_rules"), (rows / 3 * 2).to_string());
}

#[test]
fn a_row_that_changed_since_it_was_judged_stays() {
    let mut db = Db::new();
    db.run(TABLE);
    db.run("INSERT INTO t VALUES ('a', 1, ''), ('b', 1, '')");
    let table = Arc::clone(db.store.catalog().table("t").unwrap());
    let mut row = store::RowBuf::new();
    assert!(db.store.read(&table, b"a", db.store.now(), &mut row));
    let mut judged = store::Judged { key: b"a".to_vec(), cas: row.cas(), expiry: row.expiry() };
    db.run("UPDATE t SET page = 2 WHERE k = 'a'");
    assert_eq!(db.store.expire_rows(&table, &[judged.clone()]), 0);
    assert!(db.store.read(&table, b"a", db.store.now(), &mut row));
    judged.cas = row.cas();
    db.run("UPDATE t SET _ttl = 100 WHERE k = 'a'");
    assert_eq!(db.store.expire_rows(&table, &[judged]), 0, "it has another deadline");
}

#[test]
fn a_rule_that_fails_says_so_and_stops_no_other() {
    let mut db = Db::new();
    db.run(TABLE);
    db.run("INSERT INTO t VALUES ('a', 1, 'not json'), ('b', 2, '{\"x\": 1}')");
    db.run("CREATE EXPIRY RULE bad ON t WHEN state ->> '$.x' = 1 EVERY '1 s'");
    db.run("CREATE EXPIRY RULE good ON t WHEN page = 2 EVERY '1 s'");
    let mut rules = runner(&db);
    assert_eq!(pass(&db, &mut rules, 1), 2);
    assert_eq!(db.query("SELECT k FROM t"), "a");
    let shown = db.query("SELECT rule_name, runs, errors, last_error FROM sqlcached_expiry_rules ORDER BY 1");
    assert!(
        shown.starts_with("bad,1,1,") && shown.contains("JSON") && shown.contains("good,1,0,NULL"),
        "{shown}"
    );
    // It works again when there is nothing left to fail on.
    db.run("DELETE FROM t");
    assert_eq!(pass(&db, &mut rules, 2), 2);
    let shown =
        db.query("SELECT runs, errors, last_error FROM sqlcached_expiry_rules WHERE rule_name = 'bad'");
    assert_eq!(shown, "2,1,NULL");
}

#[test]
fn mistakes_are_told_when_the_rule_is_made() {
    let mut db = Db::new();
    db.run(TABLE);
    db.run("CREATE EXPIRY RULE r ON t WHEN page = 1");
    for (sql, state) in [
        ("CREATE EXPIRY RULE x ON nowhere WHEN page = 1", "42P01"),
        ("CREATE EXPIRY RULE x ON t WHEN absent = 1", "42703"),
        ("CREATE EXPIRY RULE x ON t WHEN absent(page)", "42883"),
        ("CREATE EXPIRY RULE x ON t WHEN page = ", "42601"),
        ("CREATE EXPIRY RULE x ON t WHEN page = 1) OR (page = 2", "42601"),
        ("CREATE EXPIRY RULE x ON t WHEN page = (SELECT 1)", "0A000"),
        ("CREATE EXPIRY RULE x ON t WHEN page = $1", "42601"),
        ("CREATE EXPIRY RULE x ON t WHEN page = 1 EVERY 'soon'", "22023"),
        ("CREATE EXPIRY RULE x ON sqlcached_tables WHEN rows = 0", "42501"),
        ("CREATE EXPIRY RULE R ON t WHEN page = 2", "42710"),
        ("DROP EXPIRY RULE x", "42704"),
        ("ALTER TABLE t DROP COLUMN page", "2BP01"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}");
    }
    db.run("CREATE EXPIRY RULE IF NOT EXISTS r ON t WHEN page = 2;\nDROP EXPIRY RULE IF EXISTS x");
    assert_eq!(db.query("SELECT condition FROM sqlcached_expiry_rules"), "page = 1");
    for n in 0..31 {
        db.run(&format!("CREATE EXPIRY RULE r{n} ON t WHEN page = {n}"));
    }
    assert_eq!(db.state("CREATE EXPIRY RULE more ON t WHEN page = 1"), "54000");
}

#[test]
fn rules_follow_their_table() {
    let mut db = Db::new();
    db.run(TABLE);
    db.run("INSERT INTO t VALUES ('a', 1, ''), ('b', 2, '')");
    db.run("CREATE EXPIRY RULE r ON t WHEN t.page = 1 OR state::text = 'x' EVERY '1 s'");
    db.run("ALTER TABLE t RENAME COLUMN page TO leaf;\nALTER TABLE t RENAME TO u");
    let mut rules = runner(&db);
    assert_eq!(pass(&db, &mut rules, 1), 1);
    assert_eq!(db.query("SELECT k FROM u"), "b");
    assert_eq!(db.query("SELECT table_name, errors FROM sqlcached_expiry_rules"), "u,0");
    db.run("DROP EXPIRY RULE r;\nUPDATE u SET leaf = 1");
    assert_eq!(pass(&db, &mut rules, 5), 0);
    assert_eq!(db.query("SELECT count(*) FROM u"), "1");
    db.run("CREATE EXPIRY RULE r ON u WHEN true;\nDROP TABLE u");
    assert_eq!(db.query("SELECT count(*) FROM sqlcached_expiry_rules"), "0");
    assert_eq!(pass(&db, &mut rules, 5), 0);
}

#[test]
fn runs_are_no_operations_and_listeners_hear_of_expiry() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (k TEXT PRIMARY KEY, v INT) WITH (max_ops = 10, notify = 'gone')");
    db.run("INSERT INTO t VALUES ('a', 1), ('b', 2)");
    db.run("CREATE EXPIRY RULE r ON t WHEN v = 2 EVERY '1 s'");
    let before = db.store.catalog().table("t").unwrap().stats().operations;
    let mut rules = runner(&db);
    for _ in 0..20 {
        assert_eq!(pass(&db, &mut rules, 1), 1);
    }
    assert_eq!(db.store.catalog().table("t").unwrap().stats().operations, before);
    let told: Vec<_> = db.store.take_removal_events();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].cause, told[0].key.as_deref()), (store::Cause::Expire, Some(&b"b"[..])));
    assert_eq!(db.query("SELECT k FROM t"), "a");
}

/// Several rules over a table that others write: nothing goes early, and everything that was due at a run is gone after
/// it.
#[test]
fn nothing_goes_early_and_nothing_late() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (k INT PRIMARY KEY, life INT, kind INT)");
    db.run("CREATE INDEX t_kind ON t (kind)");
    db.run("CREATE EXPIRY RULE life ON t WHEN _age >= life EVERY '10 s'");
    db.run("CREATE EXPIRY RULE kind ON t WHEN kind = 7 AND _age >= 30 EVERY '10 s'");
    let mut rules = runner(&db);
    let mut random = fastrand::Rng::with_seed(42);
    let mut expected: Vec<(i64, i64, i64, i64)> = Vec::new();
    let start = 1_700_000_000;
    for step in 0..200_i64 {
        let now = start + step * 10;
        for n in 0..5 {
            let (k, life, kind) = (step * 5 + n, random.i64(1..600), random.i64(0..10));
            db.run(&format!("INSERT INTO t VALUES ({k}, {life}, {kind})"));
            expected.push((k, life, kind, now));
        }
        assert_eq!(pass(&db, &mut rules, 10), 2);
        let now = now + 10;
        expected
            .retain(|&(_, life, kind, written)| now - written < life && !(kind == 7 && now - written >= 30));
        let left: Vec<String> = expected.iter().map(|(k, ..)| k.to_string()).collect();
        assert_eq!(db.query("SELECT k FROM t ORDER BY k"), left.join(";"), "step {step}");
    }
}
