//! The short ways mean what the general way means: each statement runs in both forms.

mod common;

use common::Db;
use store::value::Value;

fn filled() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k TEXT PRIMARY KEY, page INT, tag TEXT, w REAL);
         CREATE INDEX t_page ON t (page, tag);
         CREATE TABLE p (a INT, b TEXT, c BLOB, PRIMARY KEY (a, b));
         INSERT INTO t VALUES ('a', 1, 'x', 1), ('b', 1, 'y', 2), ('17', 2, 'x', 3), ('n', NULL, NULL, NULL);
         INSERT INTO p VALUES (1, 'x', x'61'), (2, 'y', x'')",
    );
    db
}

#[test]
fn point_queries_answer_like_sqlite() {
    let mut db = filled();
    let values = [
        Value::from("a"),
        Value::from("17"),
        Value::Integer(17),
        Value::Integer(1),
        Value::Real(1.0),
        Value::Real(1.5),
        Value::from("1"),
        Value::from("1.0"),
        Value::from("x"),
        Value::Blob(b"a".to_vec()),
        Value::Null,
    ];
    for value in &values {
        let one = std::slice::from_ref(value);
        // Brackets around a column's name are no obstacle to SQLite but keep the statement from the short way.
        for (short, general) in [
            (
                "SELECT k, w AS weight, k FROM t WHERE k = ?",
                "SELECT k, w AS weight, k FROM t WHERE k = ? LIMIT 9",
            ),
            ("SELECT * FROM t WHERE ? = t.k", "SELECT * FROM t WHERE ? = t.k LIMIT 9"),
            ("SELECT c FROM p WHERE b = 'x' AND a = ?", "SELECT c FROM p WHERE b = 'x' AND a = ? LIMIT 9"),
            (
                "SELECT a FROM p WHERE (b = $1) AND (a = 1)",
                "SELECT a FROM p WHERE (b = $1) AND (a = 1) LIMIT 9",
            ),
        ] {
            let short = db.execute(short, one).unwrap();
            let general = db.execute(general, one).unwrap();
            assert_eq!(short, general, "{value:?}");
        }
    }
}

#[test]
fn deletes_leave_what_sqlite_would_leave() {
    let values = [
        Value::from("a"),
        Value::Integer(1),
        Value::Integer(17),
        Value::Real(2.0),
        Value::Real(0.5),
        Value::from("1"),
        Value::from("x"),
        Value::Blob(b"a".to_vec()),
        Value::Null,
    ];
    for value in &values {
        for condition in ["k = ?", "page = ?", "page = ? AND tag = 'x'", "tag = 'y' AND ?1 = page"] {
            let (mut short, mut general) = (filled(), filled());
            let one = std::slice::from_ref(value);
            let a = short.execute(&format!("DELETE FROM t WHERE {condition}"), one).unwrap().0;
            let b = general.execute(&format!("DELETE FROM t WHERE ({condition}) AND true"), one).unwrap().0;
            assert_eq!(a, b, "{condition} {value:?}");
            let rest = "SELECT k FROM t ORDER BY k";
            assert_eq!(short.query(rest), general.query(rest), "{condition} {value:?}");
        }
    }
}

#[test]
fn short_ways_refuse_what_the_general_way_refuses() {
    let mut db = filled();
    assert_eq!(db.state("DELETE FROM t WHERE k = ?"), "08P01");
    assert_eq!(db.state("SELECT nope FROM t WHERE k = 'a'"), "42703");
    assert_eq!(db.state("SELECT k FROM nope WHERE k = 'a'"), "42P01");
    assert_eq!(db.state("DELETE FROM t WHERE nope = 'a'"), "42703");
    assert_eq!(db.query("SELECT key FROM memcached WHERE key = 'a'"), "");
    db.run("DROP INDEX t_page");
    assert_eq!(db.affected("DELETE FROM t WHERE page = 1"), 2);
}
