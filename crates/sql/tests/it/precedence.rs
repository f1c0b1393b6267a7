//! Which operator binds tighter: as in PostgreSQL, although SQLite computes the expressions.

use crate::common::Db;

/// Statement, and the answer of PostgreSQL 15; truths are 1 and 0.
const ANSWERS: &[(&str, &str)] = &[
    ("SELECT 't' || 7 % 5", "t2"),
    ("SELECT 'a' || 2 * 3 || 'b'", "a6b"),
    ("SELECT 8 - 2 || ''", "6"),
    ("SELECT 1 + 1 || 'a' = '2a'", "1"),
    ("SELECT '{\"a\": 1}'::jsonb -> 'a' || '2'::jsonb", "[1,2]"),
    ("SELECT '{\"a\": \"5\"}'::jsonb ->> 'a' || 'x'", "5x"),
    ("SELECT 1 & 3 || 'x'", "1x"),
    ("SELECT 6 | 1 + 8, 2 + 1 & 6, 1 | 2 & 4", "15,2,0"),
    ("SELECT ~ 1 + 2, ~ 1 * 3, - 2 + 3, - 5 % 3", "-4,-4,1,-2"),
    ("SELECT true = 'ab' LIKE 'a%'", "1"),
    ("SELECT true > 'ab' LIKE 'x'", "1"),
    ("SELECT false = 2 IN (1, 3)", "1"),
    ("SELECT true <> 2 BETWEEN 1 AND 3", "0"),
    ("SELECT 3 BETWEEN 1 AND 5 = true, 3 BETWEEN 1 + 1 AND 2 * 2", "1,1"),
    ("SELECT 1 = 2 IS NOT DISTINCT FROM false", "1"),
    ("SELECT false IS NOT DISTINCT FROM 1 = 2", "1"),
    ("SELECT true IS DISTINCT FROM 1 < 2, 1 < 2 IS TRUE", "0,1"),
    ("SELECT NOT 1 = 2, NOT true IS NULL, false AND false OR true", "1,1,1"),
    ("SELECT 'abc' ~ 'b' || 'c', 'a' || 'b' ~ '^ab$', 'ab' LIKE 'a' || 'b'", "truec,1,1"),
    ("SELECT 10 - 4 - 3, 2 * 7 % 4, 2 ^ 3 * 2", "3,2,16.0"),
    ("SELECT 7 - 1 IN (6), 'a' || NULL IS NULL", "1,1"),
    // PostgreSQL takes no two comparisons without brackets: this is SQLite's meaning.
    ("SELECT 1 = 2 < 3, 0 = 2 < 1", "1,1"),
];

#[test]
fn operators_bind_as_postgresqls_do() {
    let mut db = Db::new();
    for (sql, answer) in ANSWERS {
        let (_, rows) = db.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(crate::common::shown(&rows.rows), *answer, "{sql}");
    }
}

/// Conditions are read by the native way, generated columns and checks by the store, queries by SQLite: one meaning.
#[test]
fn operators_bind_alike_wherever_an_expression_stands() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (id INT PRIMARY KEY, s TEXT, made TEXT AS (s || id % 2), \
         CHECK (true = s LIKE 'a%'), CHECK (s || id + 1 <> 'ab4'));\n\
         CREATE INDEX made ON t ((s || id + 1));\n\
         INSERT INTO t (id, s) VALUES (1, 'a'), (2, 'ab')",
    );
    for (sql, answer) in [
        ("SELECT made FROM t ORDER BY id", "a1;ab0"),
        ("SELECT id FROM t WHERE s || id + 1 = 'ab3'", "2"),
        ("SELECT id FROM t WHERE false = s LIKE 'ab%'", "1"),
        ("SELECT id FROM t WHERE s || id % 2 = 'ab0' AND id = 2", "2"),
        ("UPDATE t SET s = 'abc' || id * 2 WHERE true = id IN (2, 3) RETURNING s", "abc4"),
        ("DELETE FROM t WHERE true = id BETWEEN 2 AND 3 RETURNING id", "2"),
    ] {
        let (_, rows) = db.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(crate::common::shown(&rows.rows), answer, "{sql}");
    }
    let refused = db.execute("INSERT INTO t (id, s) VALUES (3, 'ab')", &[]).unwrap_err();
    assert_eq!(refused.state, "23514");
}
