//! Text that is no statement: cut anywhere, shuffled, stretched. It is answered with an error or with rows, and
//! the executor goes on.
//!
//! `SEED=... cargo test -p sql --test it garbage` replays a run.

use crate::common::Db;
use store::value::Value;

const STATEMENTS: &[&str] = &[
    "SELECT a, \"b\", [c] FROM t AS x WHERE a = 'it''s' AND b IN (1, 2.5e3, x'00') ORDER BY 1 DESC LIMIT 3",
    "INSERT INTO t (a, b) VALUES (?1, $2), (:n, -1) ON CONFLICT (a) DO UPDATE SET b = excluded.b WHERE t.b <> 1 RETURNING *",
    "UPDATE OR IGNORE t SET (a, b) = (SELECT a, b FROM t) FROM json_each('[1]') AS j WHERE t.a = j.value",
    "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 5) DELETE FROM t WHERE a IN (SELECT i FROM n)",
    "CREATE TABLE IF NOT EXISTS u (a INT PRIMARY KEY, b TEXT DEFAULT 'x' UNIQUE) WITH (ttl = '5 min', ordered)",
    "CREATE UNIQUE INDEX IF NOT EXISTS i ON t (a, b)",
    "ALTER TABLE t SET (ttl = '1 h', max_rows = 10)",
    "TRUNCATE TABLE t -- all of it",
    "/* a comment */ EXPLAIN QUERY PLAN SELECT CASE WHEN a THEN 1 ELSE 2 END OVER (PARTITION BY b) FROM t",
];

fn filled() -> Db {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT PRIMARY KEY, b TEXT, c BLOB);\nINSERT INTO t VALUES (1, 'x', x'00')");
    db
}

#[test]
fn statements_cut_at_every_byte() {
    let mut db = filled();
    for sql in STATEMENTS {
        for end in 0..=sql.len() {
            let _ = db.execute(&sql[..end], &[Value::Integer(1), Value::Null, Value::from("x")]);
            let _ = db.execute(&sql[end..], &[]);
        }
    }
    assert_eq!(db.query("SELECT 1"), "1");
}

#[test]
fn statements_of_random_words() {
    let mut random = fastrand::Rng::with_seed(crate::common::seed());
    let words: Vec<&str> =
        STATEMENTS.iter().flat_map(|sql| sql.split_inclusive([' ', '(', ',', ')'])).collect();
    let mut db = filled();
    for _ in 0..4_000 {
        let mut sql = String::new();
        if random.bool() {
            // Often the beginning is right, so that the end is reached.
            let whole = STATEMENTS[random.usize(0..STATEMENTS.len())];
            let end = random.usize(0..whole.len());
            sql.push_str(&whole[..end]);
        }
        for _ in 0..random.usize(0..12) {
            sql.push_str(words[random.usize(0..words.len())]);
        }
        let parameters = vec![Value::Integer(1); random.usize(0..4)];
        let _ = db.execute(&sql, &parameters);
    }
    assert_eq!(db.query("SELECT 1"), "1");
}
