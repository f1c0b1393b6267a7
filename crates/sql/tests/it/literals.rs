//! Statements that differ in their literals only are one statement, and mean what each of them says.

use crate::common::{Db, Rows};
use sql::{Done, Limits, SqlError};

/// Tables with columns of many types, and rows that the statements below find.
const TABLES: &str = "
    CREATE TABLE t (k INT PRIMARY KEY, page INT, name TEXT, price NUMERIC(10, 2), x DOUBLE PRECISION, ok BOOLEAN,
        at TIMESTAMPTZ, day DATE, u UUID, raw BYTEA, d JSONB, anything ANY, tags TEXT[]);
    CREATE INDEX t_tags ON t USING gin (tags);
    CREATE INDEX t_page ON t (page);
    CREATE INDEX t_lower ON t (lower(name), (page + 1));
    CREATE INDEX t_some ON t (name) WHERE page = 7;
    INSERT INTO t VALUES
        (1, 7, 'a', 1.50, 0.5, true, '2026-01-01 00:00Z', '2026-01-01', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\\x00', '{\"a\": 1}', 'b', '{a,b}'),
        (2, 7, 'it''s', 2.25, 1.5, false, '2026-01-02 00:00Z', '2026-01-02', NULL, '\\x01', '{\"a\": \"x\"}', 5, '{\"it''s\"}'),
        (3, 8, '5', 10, -2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)";

/// Statements of one shape each, and what stands in the place of `#` in turn.
const SHAPES: &[(&str, &[&str])] = &[
    ("SELECT k FROM t WHERE k = #", &["1", "2", "-1", "'2'", "2.0", "3000000000", "'x'"]),
    ("SELECT k, # FROM t WHERE page = 7 ORDER BY k", &["1", "'x'", "2.5"]),
    ("SELECT k FROM t WHERE name = # ORDER BY 1", &["'a'", "'it''s'", "E'it\\'s'", "$$a$$", "5", "''"]),
    ("SELECT k FROM t WHERE page = # AND name = 'a'", &["7", "8"]),
    ("SELECT k FROM t WHERE lower(name) = # AND page + 1 = 8", &["'a'", "'A'", "'it''s'"]),
    ("SELECT k FROM t WHERE page + # = 8 ORDER BY k", &["1", "0", "'1'"]),
    ("SELECT k FROM t WHERE price = # ORDER BY k", &["1.5", "1.50", "2.25", "10", "'1.50'", "'x'"]),
    ("SELECT k, price * 2 FROM t WHERE price * 2 > # ORDER BY k", &["3", "3.0", "4.49", "'4.5'"]),
    ("SELECT k FROM t WHERE x IN (#, 0.5) ORDER BY k", &["1", "1.5", "-2", "'1.5'"]),
    ("SELECT k FROM t WHERE ok = #", &["1", "'yes'", "'f'", "'maybe'", "true"]),
    (
        "SELECT k FROM t WHERE at >= # ORDER BY k",
        &["'2026-01-02'", "'2026-01-01 12:00'", "'yesterday?'", "5"],
    ),
    (
        "SELECT k FROM t WHERE day BETWEEN # AND '2026-01-02' ORDER BY k",
        &["'2026-01-01'", "'2026-01-02'", "'x'"],
    ),
    ("SELECT k FROM t WHERE u = #", &["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'x'"]),
    ("SELECT k FROM t WHERE raw = #", &["'\\x00'", "'\\x01'", "'b'"]),
    ("SELECT k FROM t WHERE anything = #", &["'b'", "5", "'5'"]),
    ("SELECT k FROM t WHERE d ->> 'a' = #", &["1", "'1'", "'x'"]),
    ("SELECT k FROM t WHERE (page, name) = (7, #)", &["'a'", "'5'"]),
    ("SELECT k FROM t WHERE (page, name) IN ((7, #), (8, '5')) ORDER BY k", &["'a'", "'b'", "5"]),
    ("SELECT page, count(*) FROM t GROUP BY page HAVING count(*) >= # ORDER BY 1", &["1", "2", "'2'"]),
    ("SELECT a.k FROM t a JOIN t b ON a.page = b.page AND b.k = # ORDER BY 1", &["1", "3"]),
    ("SELECT k FROM t WHERE name = # UNION SELECT 9 WHERE 1 = 1 ORDER BY 1", &["'a'", "'b'"]),
    ("SELECT (SELECT max(k) FROM t WHERE page = #)", &["7", "8", "9"]),
    ("SELECT CASE WHEN page = # THEN 'x' ELSE 'y' END FROM t WHERE k = 1", &["7", "8"]),
    ("SELECT k FROM t WHERE k = -#", &["1", "'1'"]),
    ("SELECT k FROM t WHERE page = # ORDER BY k LIMIT 1", &["7", "8"]),
    ("SELECT k FROM t ORDER BY k LIMIT # OFFSET 1", &["0", "1", "2", "-1", "'1'", "1.5"]),
    ("SELECT k FROM t ORDER BY k OFFSET # ROWS FETCH FIRST 1 ROWS ONLY", &["0", "1", "2"]),
    ("SELECT k FROM t ORDER BY k LIMIT #, 2", &["0", "1"]),
    ("SELECT k FROM t WHERE page IN (SELECT page FROM t ORDER BY page LIMIT #)", &["0", "1", "2"]),
    ("SELECT k FROM t WHERE k = ANY (ARRAY[#, 3]) ORDER BY k", &["1", "2", "'1'", "1.0"]),
    ("SELECT k FROM t WHERE name = ANY (ARRAY[#, 'a']) ORDER BY k", &["'5'", "'it''s'", "5"]),
    ("SELECT k FROM t WHERE k <> ALL (ARRAY[#, 3]) ORDER BY k", &["1", "2"]),
    ("SELECT k FROM t WHERE # = ANY (tags) ORDER BY k", &["'a'", "'it''s'", "5", "NULL"]),
    ("SELECT k FROM t WHERE tags && ARRAY[#, 'b'] ORDER BY k", &["'a'", "'it''s'", "NULL"]),
    ("SELECT k FROM t WHERE tags @> # ORDER BY k", &["'{a}'", "'{}'", "'{\"it''s\"}'", "'x'"]),
    ("SELECT k FROM t WHERE d @> # ORDER BY k", &["'{\"a\": 1}'", "'{}'", "'{'"]),
    ("SELECT k FROM t WHERE name LIKE # ORDER BY k", &["'a%'", "'%s'", "'5'"]),
    ("UPDATE t SET page = page + #, name = 'n' WHERE k = 3 RETURNING page, name", &["1", "2", "'3'", "1.5"]),
    (
        "UPDATE t SET price = # WHERE k = 3 RETURNING price",
        &["1.5", "1.005", "'2.5'", "7", "'x'", "12345678901234567"],
    ),
    (
        "UPDATE t SET at = #, ok = 'yes' WHERE k = 3 RETURNING at, ok",
        &["'2026-05-05'", "'no moment'", "NULL"],
    ),
    (
        "UPDATE t SET d = #, raw = '\\x0102' WHERE k = 3 RETURNING d, raw",
        &["'{\"b\": 1}'", "'[1, 2]'", "'{'"],
    ),
    ("UPDATE t SET name = # WHERE k = 3 RETURNING name", &["5", "1.50", "true", "'x'", "3000000000"]),
    (
        "INSERT INTO t (k, page, name) VALUES (4, abs(-2), #) ON CONFLICT (k) DO UPDATE SET page = t.page + 1, \
         name = excluded.name RETURNING k, page, name",
        &["'p'", "'q'", "7"],
    ),
    ("DELETE FROM t WHERE name = # AND page = 2 RETURNING k", &["'none'", "'q'"]),
    (
        "WITH s AS (SELECT k FROM t WHERE page = #) DELETE FROM t WHERE k IN (SELECT k FROM s) AND k > 90",
        &["7", "8"],
    ),
    ("SELECT k FROM t WHERE page = # AND", &["7", "8"]),
    ("SELECT nothing FROM t WHERE page = #", &["7", "8"]),
    ("SELECT k FROM nowhere WHERE page = #", &["7"]),
    ("SELECT k FROM t WHERE extract(year FROM at) = # ORDER BY 1", &["2026", "2025"]),
    ("SELECT k FROM t WHERE at < now() - interval '1 day' AND k = #", &["1", "2"]),
];

/// What a statement answers, with its rows in an order of their own.
fn answer(db: &mut Db, sql: &str) -> Result<(Done, Rows), SqlError> {
    let (done, mut rows) = db.execute(sql, &[])?;
    rows.rows.sort_by_key(|row| format!("{row:?}"));
    Ok((done, rows))
}

/// A statement answers the same whether it is compiled for itself or for all texts of its shape, errors and their
/// places too.
#[test]
fn each_text_means_what_it_says() {
    let mut shared = Db::new();
    let mut alone =
        Db::with_limits(Limits { cached_statements: 0, statement_timeout: None, ..Limits::default() });
    for db in [&mut shared, &mut alone] {
        for statement in sql::split_statements(TABLES) {
            db.execute(statement.sql, &[]).unwrap();
        }
    }
    // Twice, for the second time each is in the cache.
    for _ in 0..2 {
        for (shape, values) in SHAPES {
            for value in *values {
                let sql = shape.replacen('#', value, 1);
                assert_eq!(answer(&mut shared, &sql), answer(&mut alone, &sql), "{sql}");
            }
        }
    }
}

/// A thousand texts of each shape leave one statement in the cache.
#[test]
fn a_statement_is_compiled_once_for_all_literals() {
    for shape in [
        "SELECT name FROM t WHERE k = #",
        "SELECT k, name || '!' FROM t WHERE t.page = # ORDER BY k LIMIT 10",
        "SELECT k FROM t WHERE page * 2 = # AND name = 'n#'",
        "SELECT k FROM t ORDER BY k LIMIT 10 OFFSET #",
        "UPDATE t SET name = 'n#' WHERE k = #",
        "UPDATE t SET _stale = true WHERE page = #",
        "DELETE FROM t WHERE page = # AND name = 'n#'",
        "INSERT INTO t (k, page, name) VALUES (#, abs(-3), 'x') ON CONFLICT DO NOTHING",
    ] {
        let mut db = Db::new();
        db.run("CREATE TABLE t (k INT PRIMARY KEY, page INT, name TEXT)");
        for number in 0..100 {
            db.execute(&shape.replace('#', &number.to_string()), &[]).unwrap();
        }
        assert_eq!(format!("{:?}", db.executor), "Executor { cached: 1, .. }", "{shape}");
    }
}
