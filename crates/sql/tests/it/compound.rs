//! Common table expressions that write: several parts over the rows that were there before, one commit.

use crate::common::Db;
use sql::{DoneKind, SqlType};
use store::value::Value;

fn queue() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE job (id INT PRIMARY KEY, state TEXT, cost NUMERIC(8, 2), at TIMESTAMPTZ, ok BOOL, tags TEXT[]);\n\
         CREATE TABLE done (id INT PRIMARY KEY, state TEXT, cost NUMERIC(8, 2), at TIMESTAMPTZ, ok BOOL, tags TEXT[]);\n\
         INSERT INTO job VALUES (1, 'new', 1.50, '2026-01-02 03:04:05.123456+01', true, '{a,\"b c\"}'), \
         (2, 'it''s \"q\\', 2, NULL, false, NULL), (3, NULL, NULL, NULL, NULL, '{}')",
    );
    db
}

#[test]
fn rows_move_from_one_table_to_another() {
    let mut db = queue();
    let before = db.query("SELECT * FROM job WHERE id <= 2 ORDER BY id");
    let sql =
        "WITH moved AS (DELETE FROM job WHERE id <= $1 RETURNING *) INSERT INTO done SELECT * FROM moved";
    let (done, _) = db.execute(sql, &[Value::Integer(2)]).unwrap();
    assert_eq!((done.tag, done.affected, done.kind), ("INSERT", 2, DoneKind::Write));
    assert_eq!(db.query("SELECT * FROM done ORDER BY id"), before);
    assert_eq!(db.query("SELECT id FROM job"), "3");
    // The types are those of the columns.
    let sql = "WITH x AS (UPDATE done SET cost = cost + 1 RETURNING *) SELECT cost, at, ok, tags, id FROM x ORDER BY id";
    let (done, rows) = db.execute(sql, &[]).unwrap();
    assert_eq!((done.tag, done.affected, done.kind), ("SELECT", 2, DoneKind::Rows));
    let types = [
        SqlType::Numeric,
        SqlType::Timestamptz,
        SqlType::Bool,
        SqlType::Text.array().unwrap(),
        SqlType::Int4,
    ];
    assert_eq!(rows.types, types);
    assert_eq!(rows.names, ["cost", "at", "ok", "tags", "id"]);
    assert_eq!(db.query("SELECT cost FROM done ORDER BY cost"), "2.50;3.00");
}

#[test]
fn every_part_sees_the_rows_before_the_statement() {
    let mut db = queue();
    for within in [false, true] {
        db.run(if within { "BEGIN" } else { "SELECT 1" });
        // What a part wrote, the others find in what it returns, not in the table.
        let found = db.query(
            "WITH gone AS (DELETE FROM job WHERE id = 1 RETURNING id), more AS (INSERT INTO job (id) SELECT id + 10 \
             FROM gone RETURNING id) SELECT (SELECT count(*) FROM job), (SELECT id FROM gone), (SELECT id FROM more)",
        );
        assert_eq!(found, "3,1,11", "{within}");
        assert_eq!(db.query("SELECT id FROM job ORDER BY id"), "2;3;11", "{within}");
        // A part is run once, whether or not it is read.
        assert_eq!(
            db.query("WITH x AS (UPDATE job SET state = 'x' || coalesce(state, '') RETURNING id) SELECT 1"),
            "1"
        );
        assert_eq!(db.query("WITH x AS (DELETE FROM job WHERE id = 11) SELECT count(*) FROM job"), "3");
        assert_eq!(
            db.query("WITH x AS (UPDATE done SET ok = true RETURNING id) SELECT a.id FROM x AS a, x AS b"),
            "",
            "{within}"
        );
        assert_eq!(db.query("SELECT state FROM job WHERE id = 3"), "x", "{within}");
        db.run(if within { "ROLLBACK" } else { "SELECT 1" });
        if !within {
            db.run("DELETE FROM job");
            db.run("INSERT INTO job (id) VALUES (1), (2), (3)");
        }
    }
    assert_eq!(db.query("SELECT count(*) FROM job"), "3");
}

#[test]
fn all_of_it_or_nothing() {
    let mut db = queue();
    db.run("INSERT INTO done (id) VALUES (2)");
    let sql = "WITH moved AS (DELETE FROM job RETURNING *) INSERT INTO done SELECT * FROM moved";
    for within in [false, true] {
        if within {
            db.run("BEGIN;\nSAVEPOINT s");
        }
        assert_eq!(db.state(sql), "23505", "{within}");
        if within {
            db.run("ROLLBACK TO s;\nCOMMIT");
        }
        assert_eq!(db.query("SELECT count(*) FROM job"), "3", "{within}");
        assert_eq!(db.query("SELECT count(*) FROM done"), "1", "{within}");
    }
    for (sql, state) in [
        // One row by two parts.
        ("WITH x AS (UPDATE job SET ok = true WHERE id = 1) DELETE FROM job WHERE id = 1", "21000"),
        ("WITH x AS (INSERT INTO done (id) VALUES (7)) INSERT INTO done (id) VALUES (7)", "21000"),
        // The key was there before the statement.
        ("WITH x AS (DELETE FROM job WHERE id = 1 RETURNING *) INSERT INTO job SELECT * FROM x", "23505"),
        ("WITH x AS (DELETE FROM job WHERE id = 1) SELECT state::int FROM job WHERE id = 2", "22P02"),
        ("WITH x AS (DELETE FROM job) SELECT * FROM x", "0A000"),
        ("WITH x AS (WITH y AS (SELECT 1) DELETE FROM job RETURNING id) SELECT * FROM x", "0A000"),
        ("EXPLAIN WITH x AS (DELETE FROM job RETURNING id) SELECT * FROM x", "0A000"),
        ("WITH x AS (DELETE FROM job RETURNING nothing) SELECT * FROM x", "42703"),
        ("WITH x AS (DELETE FROM nowhere RETURNING id) SELECT * FROM x", "42P01"),
        ("WITH x AS (DELETE FROM job RETURNING id) SELECT nothing FROM x", "42703"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}");
    }
    assert_eq!(db.query("SELECT count(*), (SELECT count(*) FROM done) FROM job"), "3,1");
    let sql = "WITH x AS (DELETE FROM job RETURNING id) SELECT nothing FROM x";
    assert_eq!(db.error(sql).position, Some(sql.find("nothing").unwrap() + 1));
    let sql =
        "WITH x AS (DELETE FROM job RETURNING id), y AS (INSERT INTO done (no) SELECT id FROM x) SELECT 1";
    assert_eq!(db.error(sql).position, Some(sql.find("no)").unwrap() + 1));
    db.run("BEGIN READ ONLY");
    assert_eq!(db.state("WITH x AS (DELETE FROM job RETURNING id) SELECT * FROM x"), "25006");
    db.run("ROLLBACK");
}

#[test]
fn parameters_are_those_of_all_parts() {
    let mut db = queue();
    let sql = "WITH a AS (INSERT INTO done (id, state) VALUES ($2, $1) RETURNING id, state), \
               b AS (SELECT $4::int AS four) SELECT a.id + four, a.state, $3 FROM a, b";
    let described = db.executor.describe(&db.session, sql, &[]).unwrap();
    assert_eq!(described.parameters, [SqlType::Text, SqlType::Int4, SqlType::Text, SqlType::Int4]);
    assert_eq!(described.columns.unwrap().len(), 3);
    for id in 0..3 {
        let values = [Value::from("s"), Value::Integer(id), Value::from("t"), Value::Integer(4)];
        assert_eq!(db.query_with(sql, &values), format!("{},s,t", id + 4));
    }
    let chosen = [Some(SqlType::Varchar), Some(SqlType::Int8), None, None];
    let described = db.executor.describe(&db.session, sql, &chosen).unwrap();
    assert_eq!(described.parameters[..2], [SqlType::Varchar, SqlType::Int8]);
}

#[test]
fn what_a_part_returns_is_bounded() {
    let mut db = queue();
    db.run("CREATE TABLE many (id INT PRIMARY KEY, body TEXT)");
    db.run("INSERT INTO many SELECT n, '' FROM generate_series(1, 100001) AS n");
    let error = db.error("WITH x AS (DELETE FROM many RETURNING id) SELECT count(*) FROM x");
    assert_eq!((error.state, error.hint.is_some()), ("54000", true), "{error}");
    assert_eq!(db.query("SELECT count(*) FROM many"), "100001");
    assert_eq!(
        db.query("WITH x AS (DELETE FROM many WHERE id > 1 RETURNING id) SELECT count(*) FROM x"),
        "100000"
    );
}
