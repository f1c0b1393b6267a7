//! What a walk through the statements of clients, and random comparisons with PostgreSQL 15, found to differ.

use crate::common::Db;
use sql::SqlType;
use store::value::Value;

fn db() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (id INT PRIMARY KEY, n NUMERIC(8,2), s TEXT, j JSONB, tags TEXT[]);\n\
         INSERT INTO t VALUES (1, 1.50, '61', '{\"a\": 1, \"b\": 2}', '{x,y z}'), (2, 2, '', '[1]', '{}')",
    );
    db
}

/// Statement, and PostgreSQL's answer.
const ANSWERS: &[(&str, &str)] = &[
    // The same value, written otherwise.
    ("SELECT id FROM t WHERE j = '{\"b\":2,  \"a\":1}'", "1"),
    ("SELECT '{\"b\": 1, \"a\":2}'::jsonb = '{\"a\": 2,\"b\":1}'", "1"),
    ("SELECT to_jsonb(n) = to_jsonb(1.5::numeric) FROM t ORDER BY id", "1;0"),
    ("SELECT to_jsonb(n) = '2' FROM t ORDER BY id", "0;1"),
    ("SELECT jsonb_build_array(n) <> '[1.5]' FROM t ORDER BY id", "0;1"),
    ("SELECT '\"1.50\"'::jsonb || '[]' = '[\"1.5\"]'", "0"),
    // Queries in parentheses are numbers.
    ("SELECT nullif((SELECT sum(n) FROM t WHERE id = 1), (SELECT avg(n) FROM t WHERE id = 1)) IS NULL", "1"),
    ("SELECT nullif((SELECT 1.50::numeric), (SELECT 1.5::numeric)) IS NULL", "1"),
    // A condition of numbers does not say how the texts behind it are sorted.
    ("SELECT CASE WHEN n > 0 THEN s END AS v FROM t UNION SELECT 'b' ORDER BY 1", ";61;b"),
    ("SELECT iif(n > 0, s, 'x') AS v FROM t UNION SELECT '00ff' ORDER BY 1", ";00ff;61"),
];

#[test]
fn statements_answer_as_postgresql_does() {
    let mut db = db();
    for (sql, answer) in ANSWERS {
        assert_eq!(db.query(sql), *answer, "{sql}");
    }
}

#[test]
fn a_jsonb_parameter_has_the_form_of_its_type() {
    let mut db = db();
    let given = [Value::from("{\"b\" : 2, \"a\":1}")];
    assert_eq!(db.query_with("SELECT id FROM t WHERE j = $1", &given), "1");
    assert_eq!(db.query_with("SELECT $1::jsonb", &given), "{\"a\":1,\"b\":2}");
    let wrong = db.execute("SELECT id FROM t WHERE j = $1", &[Value::from("{")]).unwrap_err();
    assert_eq!(wrong.state, "22P02");
}

#[test]
fn a_column_is_named_by_its_outermost_cast() {
    let mut db = db();
    let sql = "SELECT 'integer'::regtype::oid, 1::int2::int8, (1::int2)::int4, length('x')::text, (1 + 1)::text, \
               id::int8::text, CAST(1::int2 AS int8) FROM t";
    let (_, rows) = db.execute(sql, &[]).unwrap();
    assert_eq!(rows.names, ["oid", "int8", "int4", "length", "text", "id", "int8"]);
}

#[test]
fn a_cast_of_what_fits_is_no_wider() {
    let mut db = db();
    let types = |db: &mut Db, sql: &str| db.execute(sql, &[]).unwrap().1.types;
    assert_eq!(
        types(&mut db, "SELECT CAST(id AS INT), CAST(1 AS int4) FROM t"),
        [SqlType::Int4, SqlType::Int4]
    );
    // It took what it could of a text, and cut fractions off.
    assert_eq!(types(&mut db, "SELECT CAST('12' AS INT), CAST(1.5 AS INT) FROM t"), [SqlType::Int4; 2]);
    assert_eq!(db.query("SELECT CAST(1.5 AS INT), CAST(2.5::float8 AS INT)"), "2,2");
    assert_eq!(db.execute("SELECT CAST(s AS INT) FROM t", &[]).unwrap_err().state, "22P02");
}

/// ORMs show the detail to who looks for the row in question.
#[test]
fn a_row_that_breaks_a_constraint_is_said() {
    let mut db = db();
    db.run(
        "CREATE TABLE c (id INT PRIMARY KEY, s TEXT NOT NULL, at TIMESTAMPTZ, a TEXT[], f BOOL, j JSONB, b BYTEA, \
         CONSTRAINT short CHECK (length(s) < 100));\n\
         INSERT INTO c VALUES (1, 'x')",
    );
    let long = "y".repeat(120);
    for (sql, state, detail) in [
        ("INSERT INTO c VALUES (2, NULL)".to_owned(), "23502", "(2, null, null, null, null, null, null)"),
        (
            "INSERT INTO c VALUES (2, NULL, '2026-01-02 03:04:05+00', '{a,b c}', true, '{\"a\":1}', '\\x00ff')".to_owned(),
            "23502",
            "(2, null, 2026-01-02 03:04:05+00, {a,\"b c\"}, t, {\"a\": 1}, \\x00ff)",
        ),
        ("UPDATE c SET s = NULL".to_owned(), "23502", "(1, null, null, null, null, null, null)"),
        ("UPDATE c SET s = NULL WHERE id = 1".to_owned(), "23502", "(1, null, null, null, null, null, null)"),
        (
            "INSERT INTO c VALUES (1, 'z') ON CONFLICT (id) DO UPDATE SET s = NULL".to_owned(),
            "23502",
            "(1, null, null, null, null, null, null)",
        ),
        (
            format!("INSERT INTO c VALUES (3, '{long}')"),
            "23514",
            &format!("(3, {}..., null, null, null, null, null)", &long[..64]),
        ),
    ] {
        let error = db.execute(&sql, &[]).unwrap_err();
        assert_eq!(error.state, state, "{sql}");
        let expected = format!("Failing row contains {detail}.");
        assert_eq!(error.detail.as_deref(), Some(&expected), "{sql}");
    }
}

/// Such an array was `{true}`, and one that was read had NULL for each element.
#[test]
fn arrays_of_bytes_are_refused() {
    let mut db = Db::new();
    db.run("CREATE TABLE b (id INT PRIMARY KEY, b BYTEA);\nINSERT INTO b VALUES (1, '\\x01ff')");
    for sql in [
        "SELECT ARRAY['\\x01'::bytea]",
        "SELECT ARRAY[b, NULL] FROM b",
        "SELECT '{}'::bytea[]",
        "SELECT array_agg(b) FROM b",
        "SELECT ARRAY(SELECT b FROM b)",
        "SELECT array_agg(x) FROM (VALUES ('\\x01'::bytea), (NULL)) v (x)",
        "CREATE TABLE c (b BYTEA[])",
        "ALTER TABLE b ADD COLUMN c BYTEA ARRAY",
    ] {
        assert_eq!(db.state(sql), "0A000", "{sql}");
    }
    assert_eq!(db.query("SELECT array_agg(encode(b, 'hex')) FROM b"), "[\"01ff\"]");
}

/// The rows of such a view were lost: the query's columns had names that the user's table had, too.
#[test]
fn a_lateral_query_in_a_view_has_its_own_columns() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE ra (id INT, c0 BYTEA);\nINSERT INTO ra VALUES (1, '\\x02');\n\
         CREATE TABLE rb (id INT, t TEXT);\nINSERT INTO rb VALUES (1, 'hello');\n\
         CREATE VIEW r AS SELECT y.t FROM ra x CROSS JOIN LATERAL (SELECT z.t FROM rb z WHERE z.id = x.id) y \
         WHERE y.t = 'hello'",
    );
    assert_eq!(db.query("SELECT * FROM r"), "hello");
}

/// A table with a column of the hidden one's name could not be read.
#[test]
fn a_column_may_be_called_like_the_hidden_one() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE s (id INT PRIMARY KEY, \"_null 2\" INT, b INT);\nCREATE INDEX s_b ON s (b);\n\
         INSERT INTO s VALUES (1, 7, NULL), (2, 8, 5)",
    );
    assert_eq!(db.query("SELECT id, \"_null 2\" FROM s WHERE id > 0 ORDER BY b"), "2,8;1,7");
}
