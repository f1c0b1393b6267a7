//! Forms that PostgreSQL has and SQLite's grammar lacks.

use crate::common::{Db, shown};
use store::value::Value;

#[test]
fn a_delete_reads_other_tables() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k INT PRIMARY KEY, n INT);
         CREATE TABLE u (m INT, name TEXT);
         CREATE VIEW v AS SELECT k, n FROM t WHERE n > 1;
         INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5);
         INSERT INTO u VALUES (1, 'a'), (1, 'a'), (3, 'b'), (4, 'c')",
    );
    // A row that several others lead to is deleted once.
    let deleted = "DELETE FROM t AS x USING u WHERE x.n = u.m AND u.name = $1 RETURNING x.k";
    assert_eq!(shown(&db.execute(deleted, &[Value::from("a")]).unwrap().1.rows), "1");
    assert_eq!(
        db.query("DELETE FROM t USING u JOIN u AS w ON u.m = w.m WHERE k = u.m AND w.name = 'b' RETURNING k"),
        "3"
    );
    db.run("DELETE FROM v USING u WHERE v.n = u.m");
    assert_eq!(db.query("SELECT k FROM t ORDER BY k"), "2;5");
    let error = db.execute("DELETE FROM t USING nowhere WHERE k = 1", &[]).unwrap_err();
    assert_eq!((error.state, error.position), ("42P01", Some(21)));
}

#[test]
fn queries_in_parentheses_are_arms() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k INT PRIMARY KEY, name TEXT);\nINSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    );
    for (sql, rows) in [
        ("(SELECT 1) UNION (SELECT 2) ORDER BY 1", "1;2"),
        ("(SELECT k FROM t ORDER BY k DESC LIMIT 1) UNION ALL (SELECT k FROM t ORDER BY k LIMIT 1)", "3;1"),
        ("SELECT k FROM t WHERE k IN ((SELECT 1) UNION (SELECT 3)) ORDER BY k", "1;3"),
        ("SELECT k FROM t WHERE k IN ((SELECT 1)::int, 3) ORDER BY k", "1;3"),
        ("SELECT k FROM t WHERE k IN (((SELECT '3'))::int)", "3"),
        ("SELECT k FROM t WHERE k NOT IN ((SELECT 1) + 1, 3) ORDER BY k", "1"),
        ("SELECT k FROM t WHERE k IN ((SELECT 3 UNION SELECT 1) ORDER BY 1 LIMIT 1)", "1"),
        ("SELECT (SELECT max(x) FROM ((SELECT 4 AS x) UNION ALL (SELECT k FROM t)) AS y)", "4"),
        ("SELECT EXISTS ((SELECT 1) INTERSECT (SELECT 2))", "0"),
        ("(SELECT name FROM t WHERE k = 1)", "a"),
    ] {
        assert_eq!(db.query(sql), rows, "{sql}");
    }
    db.run("INSERT INTO t (SELECT k + 10, name FROM t) EXCEPT (SELECT 12, 'b')");
    assert_eq!(db.query("SELECT k FROM t WHERE k > 10 ORDER BY k"), "11;13");
}

#[test]
fn words_that_only_sqlite_reserves_are_names() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (k INT PRIMARY KEY, \"index\" INT);\nINSERT INTO t VALUES (1, 5)");
    let (_, rows) = db.execute("SELECT k AS primary, index AS \"Order\", k AS select FROM t", &[]).unwrap();
    assert_eq!(rows.names, ["primary", "Order", "select"]);
    assert_eq!(db.query("UPDATE t SET index = t.index + 1 WHERE index = 5 RETURNING index AS table"), "6");
    assert_eq!(db.query("INSERT INTO t (k, index) VALUES (2, 7) RETURNING index"), "7");
    let error = db.execute("SELECT nothing FROM t", &[]).unwrap_err();
    assert_eq!((error.state, error.position), ("42703", Some(8)));
}
