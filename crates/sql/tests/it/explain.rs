//! `EXPLAIN`: what a person and a console read of a plan.

use crate::common::Db;
use serde_json::{Value as Json, json};
use sql::SqlType;
use store::value::Value;

fn tables() -> Db {
    let mut db = Db::new();
    db.session.set_native(Some(true));
    db.run(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT, name TEXT);\nCREATE INDEX t_n ON t (n);\n\
         CREATE TABLE u (id INT PRIMARY KEY, t_id INT);\n\
         INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c');\nINSERT INTO u VALUES (1, 1), (2, 3)",
    );
    db
}

/// The lines of a plan.
fn lines(db: &mut Db, sql: &str) -> Vec<String> {
    let values = if sql.contains('$') { vec![Value::Integer(1)] } else { Vec::new() };
    let (_, rows) = db.execute(sql, &values).expect(sql);
    assert_eq!(rows.names, ["QUERY PLAN"], "{sql}");
    let text = |row: &Vec<Value>| match &row[0] {
        Value::Text(text) => text.clone(),
        other => panic!("{sql}: {other:?}"),
    };
    rows.rows.iter().map(text).collect()
}

fn json_of(db: &mut Db, sql: &str) -> Json {
    serde_json::from_str(&lines(db, sql).join("\n")).expect(sql)
}

/// It answered SQLite's bytecode, then SQLite's steps.
#[test]
fn a_plan_is_told_in_postgresql_s_words() {
    let mut db = tables();
    let mut wrong = Vec::new();
    for (sql, plan) in [
        ("SELECT id FROM t WHERE n = 1", "Executor: native;Index Scan using t_n on t;  Index Cond: (n = ?)"),
        ("SELECT name FROM t", "Executor: sqlite;Seq Scan on t"),
        (
            "DELETE FROM t WHERE id = $1",
            "Executor: native;Delete on t;  ->  Index Scan using t_pkey on t;        Index Cond: (id = ?)",
        ),
        (
            "UPDATE t SET n = 3 WHERE n > 5",
            "Executor: sqlite;Update on t;  ->  Index Scan using t_n on t;        Index Cond: (n > ?)",
        ),
        ("INSERT INTO t SELECT id + 10, 1, name FROM t", "Executor: sqlite;Insert on t;  ->  Seq Scan on t"),
        ("SELECT count(*) FROM t WHERE name = 'a'", "Executor: sqlite;Aggregate;  ->  Seq Scan on t"),
        (
            "SELECT name FROM t ORDER BY name LIMIT 1",
            "Executor: sqlite;Limit;  ->  Sort;        ->  Seq Scan on t",
        ),
        ("SELECT name, count(*) FROM t GROUP BY name", "Executor: native;GroupAggregate;  ->  Seq Scan on t"),
        (
            "SELECT t.name FROM u JOIN t ON t.id = u.t_id",
            "Executor: sqlite;Nested Loop;  ->  Seq Scan on u;  ->  Index Scan using t_pkey on t;        Index Cond: (id = ?)",
        ),
        (
            "SELECT t.name FROM u LEFT JOIN t ON t.id = u.t_id",
            "Executor: sqlite;Nested Loop Left Join;  ->  Seq Scan on u;  ->  Index Scan using t_pkey on t;        Index Cond: (id = ?)",
        ),
        (
            "SELECT n FROM t UNION SELECT id FROM u",
            "Executor: sqlite;Unique;  ->  Index Scan using t_n on t;  ->  Sort;        ->  Seq Scan on u",
        ),
        ("SELECT 1", "Executor: sqlite;Result"),
        (
            "SELECT (SELECT max(u.id) FROM u WHERE u.t_id = t.id) FROM t",
            "Executor: sqlite;Seq Scan on t;  SubPlan 1;    ->  Seq Scan on u",
        ),
    ] {
        let found = lines(&mut db, &format!("EXPLAIN {sql}")).join(";");
        if found != plan {
            wrong.push(format!("{sql}\n  {found}\n  {plan}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(db.state("EXPLAIN SELECT unknown_one FROM t"), "42703");
    assert_eq!(db.state("EXPLAIN (FORMAT JSON) SELECT unknown_one FROM t"), "42703");
}

#[test]
fn a_run_is_measured() {
    let mut db = tables();
    let found = lines(&mut db, "EXPLAIN ANALYZE SELECT id FROM t WHERE n = 1");
    assert_eq!(found[0], "Executor: native");
    assert!(found[1].starts_with("Index Scan using t_n on t (actual time=0.000.."), "{found:?}");
    assert!(found[1].ends_with(" rows=2 loops=1)"), "{found:?}");
    assert!(found[3].starts_with("Planning Time: ") && found[4].starts_with("Execution Time: "), "{found:?}");
    let found = lines(&mut db, "EXPLAIN (ANALYZE, TIMING off, SUMMARY off) SELECT id FROM t WHERE n = $1");
    assert_eq!(found[1..], ["Index Scan using t_n on t (actual rows=2 loops=1)", "  Index Cond: (n = ?)"]);
    // A statement that writes does so, with its transaction.
    db.run("BEGIN");
    let found = lines(&mut db, "EXPLAIN (ANALYZE, TIMING off) DELETE FROM t WHERE n = 1 RETURNING id");
    assert_eq!(found[1], "Delete on t (actual rows=2 loops=1)");
    assert!(found[2].ends_with("on t (actual rows=2 loops=1)"), "{found:?}");
    assert_eq!(db.query("SELECT id FROM t"), "3");
    db.run("ROLLBACK");
    assert_eq!(db.query("SELECT count(*) FROM t"), "3");
    db.run("EXPLAIN DELETE FROM t");
    assert_eq!(db.query("SELECT count(*) FROM t"), "3");
    db.run("BEGIN READ ONLY");
    assert_eq!(db.state("EXPLAIN ANALYZE DELETE FROM t"), "25006");
    db.run("ROLLBACK");
    assert_eq!(db.state("EXPLAIN ANALYZE INSERT INTO t VALUES (1, 1, 'x')"), "23505");
}

#[test]
fn a_console_reads_a_plan() {
    let mut db = tables();
    let (_, rows) = db.execute("EXPLAIN (FORMAT JSON) SELECT id FROM t WHERE n = 1", &[]).unwrap();
    assert_eq!((rows.types, rows.rows.len()), (vec![SqlType::Json], 1));
    let pgadmin = "EXPLAIN (FORMAT JSON, ANALYZE true, VERBOSE false, COSTS false, BUFFERS false, TIMING false, \
                   SUMMARY false, SETTINGS false, WAL false)";
    let found = json_of(&mut db, &format!("{pgadmin} SELECT t.id FROM u JOIN t ON t.id = u.t_id"));
    let scan = |relation: &str, relationship: &str| json!({"Node Type": "Seq Scan", "Parent Relationship": relationship, "Relation Name": relation, "Alias": relation});
    let key = json!({"Node Type": "Index Scan", "Parent Relationship": "Inner", "Scan Direction": "Forward",
        "Index Name": "t_pkey", "Relation Name": "t", "Alias": "t", "Index Cond": "(id = ?)"});
    let plan = json!({"Node Type": "Nested Loop", "Join Type": "Inner", "Actual Rows": 2, "Actual Loops": 1,
        "Plans": [scan("u", "Outer"), key]});
    assert_eq!(found, json!([{"Executor": "sqlite", "Plan": plan}]));
    let xml = lines(&mut db, "EXPLAIN (FORMAT XML) DELETE FROM t WHERE n < 3");
    for part in [
        "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n    <Executor>",
        "    <Plan>\n      <Node-Type>ModifyTable</Node-Type>\n      <Operation>Delete</Operation>",
        "<Index-Cond>(n &lt; ?)</Index-Cond>",
        "  </Query>\n</explain>",
    ] {
        assert!(xml.len() == 1 && xml[0].contains(part), "{part}: {xml:?}");
    }
    let yaml = lines(&mut db, "EXPLAIN (FORMAT YAML) SELECT name FROM t ORDER BY name");
    let expected = "- Executor: \"sqlite\"\n  Plan:\n    Node Type: \"Sort\"\n    Plans:\n      \
                    - Node Type: \"Seq Scan\"\n        Parent Relationship: \"Outer\"\n        \
                    Relation Name: \"t\"\n        Alias: \"t\"";
    assert_eq!(yaml, [expected]);
}

#[test]
fn the_program_is_shown_where_it_is_asked_for() {
    let mut db = tables();
    let found = lines(&mut db, "EXPLAIN (BYTECODE) SELECT name FROM t");
    assert!(found[0].starts_with("addr  opcode"), "{found:?}");
    assert!(found.iter().any(|line| line.contains("VFilter") || line.contains("VOpen")), "{found:?}");
}
