//! The corners of statements, each answered as plain SQLite answers it, or as PostgreSQL does where SQLite has nothing
//! to say.

use crate::common::native::Native;
use crate::common::{Db, shown};
use store::value::Value;

/// Runs each statement here and on SQLite's own tables. Rows, counts, failures and sessions' numbers must be the same.
fn both(script: &[&str]) -> Db {
    let (mut db, native) = (Db::new(), Native::new());
    db.session.set_like(sql::LikeStyle::Sqlite);
    for sql in script {
        let theirs = native.query(sql).map(|rows| shown(&rows));
        let ours = db.execute(sql, &[]);
        match (&ours, &theirs) {
            (Ok((done, rows)), Ok(theirs)) if sql.contains("RETURNING") => {
                assert_eq!(sorted(&shown(&rows.rows)), sorted(theirs), "{sql}");
                assert_eq!(db.query("SELECT changes()"), done.affected.to_string(), "{sql}");
            }
            (Ok((done, rows)), Ok(theirs)) => {
                assert_eq!(shown(&rows.rows), *theirs, "{sql}");
                if ["INSERT", "UPDATE", "DELETE"].contains(&done.tag) {
                    assert_eq!(db.query("SELECT changes()"), native.changes().to_string(), "{sql}");
                }
            }
            (ours, theirs) => {
                assert!(ours.is_err() && theirs.is_err(), "{sql}: ours {ours:?}, SQLite's {theirs:?}");
            }
        }
    }
    db
}

/// Rows that come in no order.
fn sorted(rows: &str) -> Vec<&str> {
    let mut rows: Vec<&str> = rows.split(';').collect();
    rows.sort_unstable();
    rows
}

#[test]
fn a_row_is_looked_for_in_a_query_of_other_types() {
    let mut db = both(&[
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a TEXT, b INT, c)",
        "CREATE INDEX t_ab ON t (a, b)",
        "CREATE INDEX t_c ON t (c)",
        "CREATE TABLE u (x REAL, y INT, z TEXT)",
        "INSERT INTO t VALUES (1, '1', 1, '1'), (2, '1.0', 1, 1), (3, 'x', 2, 'x'), (4, '2', 2, 2.0)",
        "INSERT INTO u VALUES (1.0, 1, '1'), (2.0, 2, 'x'), (NULL, 2, '2')",
        "SELECT k FROM t WHERE (a, b) IN (SELECT x, y FROM u) ORDER BY k",
        "SELECT k FROM t WHERE (a, b) NOT IN (SELECT x, y FROM u WHERE x > 0) ORDER BY k",
        "SELECT k FROM t WHERE (a, b) IN (SELECT z, y FROM u) ORDER BY k",
        "SELECT k FROM t WHERE (b, a) IN (SELECT y, * FROM (SELECT x FROM u), (SELECT y FROM u LIMIT 1)) ORDER BY k",
        "SELECT k FROM t WHERE (a, b) IN (VALUES ('1', 1), ('x', 2)) ORDER BY k",
        "SELECT k FROM t WHERE (c, b) IN (SELECT x, y FROM u) OR (c, b) IN (SELECT z, y FROM u) ORDER BY k",
        "SELECT k FROM t AS o WHERE EXISTS (SELECT 1 FROM u WHERE (o.a, o.b) IN (SELECT x, y FROM u)) ORDER BY k",
        "WITH v AS (SELECT x AS a, y AS b FROM u) SELECT k FROM t WHERE (t.a, t.b) IN v ORDER BY k",
        "SELECT k FROM t WHERE (a, b) = (1.0, 1) ORDER BY k",
        "SELECT k FROM t WHERE (a, b) > ('1', 1) ORDER BY k",
        "UPDATE t SET c = 9 WHERE (a, b) IN (SELECT x, y FROM u)",
        "DELETE FROM t WHERE (a, b) IN (SELECT z, y FROM u) RETURNING k",
        "SELECT * FROM t ORDER BY k",
    ]);
    db.run("INSERT INTO t (a, b) SELECT g, g FROM generate_series(1000, 2000) AS g");
    let plan = db.plan("SELECT k FROM t WHERE (a, b) IN (SELECT z, y FROM u)");
    assert!(plan.contains("t_ab (a=? AND b=?)"), "texts alone are found by the index: {plan}");
    let plan = db.plan("SELECT k FROM t WHERE (a, b) IN (VALUES ('x', 2))");
    assert!(plan.contains("t_ab (a=? AND b=?)"), "{plan}");
}

/// A join whose rows nobody asked for was left out, as if each number met one text at most.
#[test]
fn a_unique_text_is_not_unique_as_a_number() {
    both(&[
        "CREATE TABLE n (a INT)",
        "CREATE TABLE t (b TEXT PRIMARY KEY)",
        "CREATE TABLE s (c TEXT UNIQUE)",
        "INSERT INTO n VALUES (1), (2)",
        "INSERT INTO t VALUES ('1'), ('1.0'), ('x')",
        "INSERT INTO s VALUES ('1'), ('1.0'), ('x')",
        "SELECT a FROM n LEFT JOIN t ON n.a = t.b ORDER BY a",
        "SELECT a FROM n LEFT JOIN s ON n.a = s.c ORDER BY a",
    ]);
}

#[test]
fn an_index_is_asked_for_by_name() {
    let script = [
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a INT, b TEXT)",
        "CREATE INDEX t_a ON t (a)",
        "CREATE INDEX t_b ON t (b)",
        "CREATE INDEX t_some ON t (a) WHERE b = 'x'",
        "CREATE TABLE u (a INT)",
        "INSERT INTO t VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'x')",
        "INSERT INTO u VALUES (1), (2)",
        "SELECT k FROM t INDEXED BY t_b WHERE a = 1 AND b = 'x'",
        "SELECT k FROM t AS s INDEXED BY t_b WHERE s.a = 1 ORDER BY s.k",
        "SELECT k FROM t s NOT INDEXED WHERE s.a = 1 ORDER BY k",
        // Each side of the OR was looked up, and then thrown away.
        "SELECT k FROM t NOT INDEXED WHERE k = NULL OR k IS 2",
        "SELECT k FROM t INDEXED BY absent",
        "SELECT k FROM t INDEXED BY t_some WHERE a = 1",
        "SELECT k FROM t INDEXED BY t_some WHERE b = 'x' AND a > 0 ORDER BY k",
        "SELECT u.a, k FROM u LEFT JOIN main.t INDEXED BY t_a ON t.a = u.a AND k > 1 ORDER BY 1, 2",
        "SELECT (SELECT max(k) FROM t INDEXED BY t_a WHERE t.a = u.a) FROM u ORDER BY 1",
        "UPDATE t INDEXED BY t_a SET b = 'z' WHERE a = 1",
        "UPDATE t INDEXED BY absent SET b = 'z' WHERE k = 1",
        "DELETE FROM t NOT INDEXED WHERE k = 1",
        "DELETE FROM t INDEXED BY absent WHERE k = 2",
        "DELETE FROM t INDEXED BY t_some WHERE a = 1",
        "INSERT INTO u SELECT a FROM t INDEXED BY t_a WHERE a > 1",
        "SELECT a FROM u ORDER BY a",
        "CREATE VIEW v AS SELECT k FROM t INDEXED BY t_b WHERE a = 2",
        "SELECT * FROM v",
        "SELECT * FROM t ORDER BY k",
    ];
    let mut db = both(&script);
    for (sql, part) in [
        ("SELECT k FROM t INDEXED BY t_b WHERE a = 1 AND b = 'x'", "t_b (b=?)"),
        ("SELECT k FROM t AS s INDEXED BY t_b WHERE a = 1", ":t_b"),
        ("SELECT k FROM t NOT INDEXED WHERE a = 1", "every row"),
        ("SELECT k FROM t NOT INDEXED WHERE k = 1", "t_pkey (k=?)"),
        ("SELECT k FROM t INDEXED BY t_pkey WHERE k = 1 AND a = 1", "t_pkey (k=?)"),
        ("DELETE FROM t INDEXED BY t_b WHERE k = 1", ":t_b"),
        ("SELECT * FROM v", ":t_b"),
    ] {
        let plan = db.plan(sql);
        assert!(plan.contains(part), "{sql}: {plan}");
    }
    assert_eq!(db.state("SELECT k FROM t INDEXED BY absent"), "42704");
    assert_eq!(db.state("DELETE FROM t INDEXED BY absent"), "42704");
    assert_eq!(db.error("SELECT k FROM t INDEXED BY t_some WHERE a = 1").message, "no query solution");
}

#[test]
fn indexes_of_expressions_are_found_in_every_spelling() {
    let mut db = both(&[
        "CREATE TABLE t (k INTEGER PRIMARY KEY, kind TEXT, n INT, at TEXT)",
        "CREATE INDEX t_lower ON t ((lower(kind)))",
        "CREATE INDEX t_open ON t (n) WHERE kind = 'a' AND at IS NOT NULL",
        "CREATE INDEX t_double ON t (n * 2)",
        "CREATE INDEX t_two ON t (lower(kind), n DESC)",
        "CREATE TABLE u (m INT, kind TEXT)",
        "INSERT INTO t VALUES (1, 'A', 1, 'x'), (2, 'a', 2, 'y'), (3, 'b', 2, NULL), (4, 'a', 2, NULL)",
        "INSERT INTO u VALUES (2, 'a'), (4, 'b')",
    ]);
    for (sql, part) in [
        ("SELECT k FROM t WHERE lower(kind) = 'a'", "t_lower"),
        ("SELECT k FROM t AS s WHERE ( LOWER( s.kind ) ) == 'a'", "t_lower"),
        ("SELECT k FROM t WHERE 'a' = lower((kind))", "t_lower"),
        ("SELECT s.k FROM u JOIN t s ON lower(s.kind) = u.kind WHERE m = 2", "t_lower"),
        ("SELECT m FROM u WHERE EXISTS (SELECT 1 FROM t WHERE lower(t.kind) = u.kind)", "t_lower"),
        ("SELECT m FROM u WHERE m IN (SELECT n FROM t WHERE lower(kind) = 'a')", "t_lower"),
        ("SELECT * FROM (SELECT k FROM t WHERE lower(kind) = 'a') AS s", "t_lower"),
        ("WITH s AS (SELECT k FROM t WHERE lower(kind) = 'a') SELECT * FROM s", "t_lower"),
        ("SELECT k FROM t WHERE lower(kind) = 'a' UNION SELECT m FROM u", "t_lower"),
        ("SELECT u.m FROM (SELECT m FROM u) u, t WHERE t.n * 2 = u.m", "t_double"),
        ("SELECT k FROM t ORDER BY n * 2 LIMIT 1", "t_double"),
        ("SELECT k FROM t WHERE lower(kind) = 'a' AND n = 2", "t_two (#"),
        ("SELECT k FROM t WHERE lower(kind) = 'a' ORDER BY n DESC LIMIT 1", "t_two"),
        ("UPDATE t AS s SET n = n WHERE lower(s.kind) = 'b'", "t_lower"),
        ("SELECT k FROM t WHERE kind = 'a' AND n = 2 AND at > 'x'", "t_open"),
        ("SELECT k FROM t WHERE n = 2 AND (at IS NOT NULL AND 'a' = kind)", "t_open"),
        ("SELECT k FROM t WHERE n = 2 AND at IS NOT NULL AND kind = 'a'ORDER BY k", "t_open"),
        ("SELECT s.k FROM u, t s WHERE s.kind == 'a' AND s.at LIKE 'y%' AND s.n = u.m", "t_open"),
        (
            "SELECT s.k FROM u LEFT JOIN t s ON s.kind = 'a' AND s.at BETWEEN 'a' AND 'z' AND s.n = u.m",
            "t_open",
        ),
    ] {
        let plan = db.plan(sql);
        assert!(plan.contains(part), "{sql}: {plan}");
    }
    for (sql, part) in [
        ("SELECT k FROM t WHERE lower(kind || 'x') = 'a'", "t_lower"),
        ("SELECT k FROM u LEFT JOIN t ON n = m WHERE lower(t.kind) = 'a'", "t_lower"),
        ("SELECT k FROM t FULL JOIN u ON n = m WHERE lower(t.kind) = 'a'", "t_lower"),
        ("SELECT k FROM t WHERE kind = 'a' AND n = 2", "t_open"),
        ("SELECT k FROM t WHERE (kind = 'a' OR at > 'x') AND at IS NOT NULL AND n = 2", "t_open"),
        ("SELECT k FROM t WHERE kind = 'a' AND (at = 'x') IS NULL AND n = 2", "t_open"),
        ("WITH t AS (SELECT 'a' AS kind) SELECT * FROM t WHERE lower(kind) = 'a'", "t_lower"),
    ] {
        let plan = db.plan(sql);
        assert!(!plan.contains(part), "{sql}: {plan}");
    }
    db.run("CREATE VIEW v AS SELECT k, n FROM t WHERE lower(kind) = 'a'");
    assert!(db.plan("SELECT * FROM v").contains("t_lower"));
    db.run("DROP INDEX t_lower");
    assert_eq!(db.query("SELECT k FROM v ORDER BY k"), "1;2;4", "the view outlives the index");
    let ambiguous = "SELECT 1 FROM t, (SELECT kind FROM u) WHERE kind = 'a' AND at IS NOT NULL AND n = 2";
    assert_eq!(db.state(ambiguous), "42702");
}

#[test]
fn what_a_failing_write_leaves() {
    let mut db = both(&[
        "CREATE TABLE t (a INT PRIMARY KEY NOT NULL, b INT CHECK (b < 10), c INT NOT NULL DEFAULT 1)",
        "INSERT INTO t VALUES (3, 3, 3)",
        "INSERT OR FAIL INTO t VALUES (1, 1, 1), (3, 1, 1), (4, 1, 1)",
        "SELECT * FROM t ORDER BY a",
        "INSERT OR FAIL INTO t VALUES (5, 1, 1), (6, 10, 1), (7, 1, 1)",
        "INSERT OR FAIL INTO t VALUES (8, 1, 1), (9, 1, NULL), (10, 1, 1)",
        "INSERT OR ABORT INTO t VALUES (11, 1, 1), (3, 1, 1)",
        "INSERT OR ROLLBACK INTO t VALUES (12, 1, 1), (3, 1, 1)",
        "INSERT OR FAIL INTO t VALUES (13, 1, 1)",
        "SELECT * FROM t ORDER BY a",
        "UPDATE OR FAIL t SET b = b + 7 WHERE a = 3",
        "SELECT * FROM t ORDER BY a",
        "UPDATE OR ROLLBACK t SET a = 3 WHERE a = 1",
        "BEGIN",
        "INSERT INTO t VALUES (20, 1, 1)",
        "INSERT OR ROLLBACK INTO t VALUES (21, 1, 1), (3, 1, 1)",
        "SELECT * FROM t ORDER BY a",
        "INSERT INTO t VALUES (22, 1, 1)",
        "SELECT count(*) FROM t WHERE a >= 20",
        "BEGIN",
        "UPDATE OR ROLLBACK t SET b = 10 WHERE a = 3",
        // What OR FAIL leaves in a transaction was lost with it, though SQLite's users ask for it by this word.
        "BEGIN",
        "INSERT INTO t VALUES (30, 1, 1)",
        "SAVEPOINT s",
        "INSERT OR FAIL INTO t VALUES (31, 1, 1), (30, 1, 1), (32, 1, 1)",
        "UPDATE OR FAIL t SET a = 30 WHERE a = 31",
        "SELECT a FROM t ORDER BY a",
        "ROLLBACK TO s",
        "INSERT OR FAIL INTO t VALUES (33, 1, 1), (34, 10, 1), (35, 1, 1)",
        "COMMIT",
        "SELECT a FROM t ORDER BY a",
        "BEGIN",
        "ROLLBACK",
    ]);
    let state = db.state("UPDATE OR FAIL t SET b = b + 7 WHERE a < 4 ORDER BY a LIMIT 9");
    assert_eq!((state, db.query("SELECT changes()").as_str()), ("23514", "1"));
    assert_eq!(db.query("SELECT a, b FROM t WHERE a < 4 ORDER BY a"), "1,8;3,3");
}

/// What is made of a text before SQLite sees it must not move the places of what is wrong in it.
#[test]
fn mistakes_have_places_of_the_users_text_whatever_became_of_it() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a TEXT, b INT);\nCREATE TABLE u (a TEXT, b INT);\n\
         CREATE INDEX t_lower ON t (lower(a));\nCREATE INDEX t_some ON t (b) WHERE a IS NOT NULL",
    );
    let mistakes = [
        // A schema is left out.
        ("SELECT k FROM public.t WHERE wrong = 1", "42703", "wrong"),
        ("SELECT 1 FROM information_schema.tables WHERE wrong", "42703", "wrong"),
        ("DELETE FROM \"public\".t WHERE wrong = 1", "42703", "wrong"),
        // A parameter gets its number.
        ("SELECT $1::int, ?, :name, wrong FROM t", "42703", "wrong"),
        // The column of an index stands in the place of an expression, and a predicate is added.
        ("SELECT k FROM t WHERE lower(a) = 'x' AND wrong = 1", "42703", "wrong"),
        ("SELECT k FROM t WHERE b = 1 AND a = 'x' ORDER BY lower(a), wrong", "42703", "wrong"),
        // The planner is kept from a row.
        ("SELECT k FROM t WHERE (a, b) IN (SELECT b, b FROM u) AND wrong = 1", "42703", "wrong"),
        // An index is named.
        ("SELECT k FROM t INDEXED BY t_some WHERE wrong = 1", "42703", "wrong"),
        ("SELECT k FROM u, public.t AS s INDEXED BY absent WHERE s.b = 1", "42704", "absent"),
        // The grammar does not know it, and SQLite does not either.
        ("SELECT k FROM public.t WHERE a = 'x' AND b IS NOT", "42601", ""),
        ("EXPLAIN SELECT k FROM public.t WHERE lower(a) = 'x' GROUP BY 1 LIMIT 1 wrong", "42601", "wrong"),
        ("EXPLAIN QUERY PLAN SELECT k FROM public.t WHERE lower(a) = wrong", "42703", "wrong"),
    ];
    for (sql, state, wrong) in mistakes {
        let error = db.error(sql);
        let place = if wrong.is_empty() { sql.len() } else { sql.rfind(wrong).unwrap() };
        assert_eq!((error.state, error.position), (state, Some(place + 1)), "{sql}: {error}");
    }
}

/// A view is kept in SQLite's words, which go through the walk again whenever the catalogue changes. They went on
/// meaning the same but for decimal numbers, which became floats on the way.
#[test]
fn words_of_sqlite_stay() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k INT PRIMARY KEY, a TEXT, j JSONB, n NUMERIC(12,2), at TIMESTAMPTZ, tags TEXT[]);\n\
         INSERT INTO t VALUES (1, 'xz', '{\"a\": \"x\", \"n\": 2, \"b\": [1]}', 123456789.5, \
         '2026-01-02 03:04:05', '{x,y}');\nINSERT INTO t VALUES (2, 'y', '{}', 1.5, NULL, '{}')",
    );
    let catalog = db.store.catalog();
    for expression in [
        "a ILIKE 'X%' AND a !~ '^y'",
        "j ->> 'a' = 'x' AND (j ->> 'n')::int > 1 AND j -> 'b' @> '[1]'",
        "(n * n + 1)::numeric(30,2)::text = '15241578873647311.25' AND n::text = '123456789.50'",
        "numeric_add(numeric_multiply(n, n), '1')::numeric(30,2)::text = '15241578873647311.25' AND round(n, 1) > 2",
        "at + '1 day' > '2026-01-03' AND at::date = '2026-1-2' AND extract(year FROM at) = 2026",
        "k = ANY('{1,2}') AND tags[1] = 'x' AND tags || ARRAY['z'] = ARRAY['x', 'y', 'z']",
        "(k, a) IN (SELECT k, a FROM t) AND (SELECT json_agg(a ORDER BY k) FROM t) IS NOT NULL",
        "CASE k WHEN 1 THEN 'x' ELSE E'y\\n' END = coalesce(a, 'z')::varchar(1)",
    ] {
        let written = format!("SELECT k, CASE WHEN {expression} THEN 'yes' END FROM t ORDER BY k");
        let once = dialect::view(&catalog, &written).expect(expression);
        let again = dialect::view(&catalog, &once).expect(&once);
        let expected = db.query(&written);
        assert!(expected.starts_with("1,yes;2,"), "{expression}: {expected}");
        assert_eq!([&once, &again].map(|sql| db.query(sql)), [expected.clone(), expected], "{once}\n{again}");
    }
}

#[test]
fn clauses_of_every_kind() {
    both(&[
        "CREATE TABLE t (id INTEGER PRIMARY KEY, k TEXT UNIQUE, n INT, m INT, UNIQUE (n, m))",
        "CREATE TABLE u (n INT, w TEXT)",
        "INSERT INTO u VALUES (1, 'one'), (2, 'two')",
        "INSERT INTO t (k, n, m) VALUES ('a', 1, 1), ('b', 2, 2) RETURNING id, k || n, upper(k) AS up",
        "SELECT last_insert_rowid(), changes(), total_changes() - 2",
        "INSERT INTO t VALUES (1, 'x', 9, 9) ON CONFLICT (k) DO NOTHING ON CONFLICT (id) DO UPDATE SET n = excluded.n + t.n RETURNING *",
        "INSERT INTO t VALUES (7, 'b', 9, 9) ON CONFLICT (id) DO NOTHING ON CONFLICT (k) DO UPDATE SET m = 5 WHERE excluded.n > 8 ON CONFLICT DO NOTHING RETURNING id",
        "INSERT INTO t VALUES (7, 'q', 2, 5) ON CONFLICT (k) DO NOTHING ON CONFLICT (n, m) DO UPDATE SET k = excluded.k",
        "INSERT INTO t VALUES (8, 'q', 2, 5) ON CONFLICT (id) DO NOTHING",
        "INSERT INTO t VALUES (8, 'q', 2, 5) ON CONFLICT (m) DO NOTHING",
        "SELECT * FROM t ORDER BY id",
        "SELECT last_insert_rowid(), changes()",
        "UPDATE t SET (k, m) = (SELECT w, n * 10 FROM u WHERE u.n = 2) WHERE id = 1 RETURNING id, k, m, (SELECT count(*) FROM u)",
        "UPDATE t SET (n, m) = (m, n) RETURNING n - m",
        "UPDATE t SET k = u.w || '!' FROM u WHERE u.n = t.id RETURNING t.id, t.k, u.w",
        "UPDATE t SET k = s.w FROM (SELECT n, w FROM u) AS s WHERE s.n = t.id",
        "WITH s(i) AS (SELECT min(id) FROM t) UPDATE t SET n = 77 WHERE id IN (SELECT i FROM s) RETURNING id",
        "WITH s(i) AS (VALUES (50), (51)) INSERT INTO t (id, n, m) SELECT i, i, i FROM s RETURNING id, n IS m",
        "WITH s AS (SELECT id FROM t WHERE id > 50) DELETE FROM t WHERE id IN s RETURNING *",
        "DELETE FROM t WHERE (n, m) = (77, 10) RETURNING n + m, typeof(k)",
        "REPLACE INTO t VALUES (60, 'two', 60, 60) RETURNING k",
        "INSERT INTO t DEFAULT VALUES RETURNING id",
        "SELECT last_insert_rowid()",
        "SELECT * FROM t ORDER BY id",
        "DELETE FROM t",
        "SELECT changes(), last_insert_rowid()",
    ]);
}

#[test]
fn writes_in_an_order_stop_at_their_limit() {
    // SQLite's own build lacks the clause: the same is said by the rows' numbers.
    let (mut db, native) = (Db::new(), Native::new());
    for sql in [
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b INT)",
        "INSERT INTO t VALUES (1, 5), (2, 4), (3, 3), (4, 2), (5, 1)",
    ] {
        db.run(sql);
        native.query(sql).unwrap();
    }
    for (write, rows) in [
        ("UPDATE t SET b = b + 10", "WHERE a > 1 ORDER BY b LIMIT 2"),
        ("DELETE FROM t", "ORDER BY b DESC LIMIT 1 OFFSET 1"),
        ("DELETE FROM t", "WHERE b > 3 ORDER BY a DESC LIMIT 1"),
        ("UPDATE t SET b = 0", "ORDER BY a LIMIT 0"),
    ] {
        db.run(&format!("{write} {rows}"));
        native.query(&format!("{write} WHERE a IN (SELECT a FROM t {rows})")).unwrap();
        let all = "SELECT * FROM t ORDER BY a";
        assert_eq!(db.query(all), shown(&native.query(all).unwrap()), "{write} {rows}");
    }
    assert_eq!(db.query("DELETE FROM t RETURNING a + 100 ORDER BY a LIMIT 1"), "101");
}

#[test]
fn a_plain_view_is_written_as_its_table() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, kind TEXT, n INT DEFAULT 7, twice INT AS (n * 2));
CREATE VIEW v AS SELECT id, kind AS what, n, n + 1 AS more FROM t AS s WHERE s.kind = 'a';
CREATE VIEW w (number, name) AS SELECT n, kind FROM t;
CREATE VIEW every AS SELECT * FROM t;
CREATE UNIQUE INDEX t_n ON t (n)",
    );
    assert_eq!(
        db.query("INSERT INTO v (what, n) VALUES ('a', 1), ('b', 2), ('a', 3) RETURNING id, what, more"),
        "1,a,2;2,b,3;3,a,4"
    );
    assert_eq!(db.query("SELECT id FROM v ORDER BY id"), "1;3", "what was written is not always seen");
    assert_eq!(
        db.query("UPDATE v SET n = more * 10 WHERE what = 'a' AND n > 1 RETURNING id, n, v.more"),
        "3,40,41"
    );
    assert_eq!(db.affected("UPDATE v SET n = 9 WHERE id = 2"), 0, "a row that the view does not show");
    assert_eq!(db.query("DELETE FROM v AS x WHERE x.n = 40 RETURNING *"), "3,a,40,41");
    assert_eq!(db.affected("DELETE FROM w"), 2);
    assert_eq!(db.affected("INSERT INTO w VALUES (5, 'c')"), 1);
    assert_eq!(db.affected("INSERT INTO w (name, number) SELECT 'd', max(number) + 1 FROM w"), 1);
    assert_eq!(db.query("INSERT INTO w VALUES (5, 'e') ON CONFLICT (number) DO UPDATE SET name = w.name || excluded.name RETURNING name"), "ce");
    assert_eq!(db.query("SELECT kind, n, twice FROM t ORDER BY n"), "ce,5,10;d,6,12");
    assert_eq!(
        db.query_with(
            "UPDATE every SET n = $1 WHERE kind = $2 RETURNING twice",
            &[Value::Integer(8), Value::from("d")]
        ),
        "16"
    );
    assert_eq!(
        db.query("UPDATE every SET kind = s.x FROM (SELECT 'f' AS x) AS s WHERE n = 8 RETURNING kind"),
        "f"
    );
    assert_eq!(db.query("SELECT kind FROM every WHERE n = 8"), "f");
    assert!(db.plan("DELETE FROM w WHERE number = 5").contains("t_n"), "the table's index serves");
    let mut refused = |sql: &str, state: &str| assert_eq!(db.state(sql), state, "{sql}");
    refused("UPDATE v SET more = 1", "0A000");
    refused("INSERT INTO v VALUES (1, 'a', 2, 3)", "0A000");
    refused("INSERT INTO every (twice) VALUES (1)", "428C9");
    refused("UPDATE v SET absent = 1", "42703");
    refused("UPDATE v SET kind = 'x'", "42703");
    refused("DELETE FROM v INDEXED BY t_n WHERE n = 1", "0A000");
    refused("INSERT INTO w VALUES (8, 'x')", "23505");
    refused("TRUNCATE v", "42P01");
    for query in [
        "SELECT DISTINCT kind FROM t",
        "SELECT kind, count(*) AS n FROM t GROUP BY kind",
        "SELECT max(n) AS n FROM t",
        "SELECT n, row_number() OVER () AS r FROM t",
        "SELECT a.n FROM t AS a JOIN t AS b ON a.n = b.n",
        "SELECT n FROM t LIMIT 1",
        "SELECT n FROM t UNION SELECT 1",
        "SELECT 1 AS n",
        "SELECT n FROM (SELECT n FROM t)",
        "SELECT n FROM w2",
        "WITH x AS (SELECT 1) SELECT n FROM t",
    ] {
        let mut db = Db::new();
        db.run("CREATE TABLE t (n INT, kind TEXT);\nCREATE VIEW w2 AS SELECT n FROM t");
        db.run(&format!("CREATE VIEW v AS {query}"));
        assert_eq!(db.state("DELETE FROM v"), "55000", "{query}");
    }
}

#[test]
fn keys_compare_by_their_collation() {
    let mut db = both(&[
        "CREATE TABLE t (k TEXT COLLATE NOCASE PRIMARY KEY NOT NULL, n INT)",
        "CREATE TABLE p (a TEXT NOT NULL, b INT NOT NULL, n INT, PRIMARY KEY (a COLLATE NOCASE, b))",
        "INSERT INTO t VALUES ('a', 1), ('B', 2)",
        "INSERT INTO t VALUES ('A', 3)",
        "INSERT OR IGNORE INTO t VALUES ('b', 3), ('c', 4)",
        "INSERT OR REPLACE INTO t VALUES ('b', 5)",
        "INSERT INTO t VALUES ('C', 6) ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n",
        "SELECT * FROM t ORDER BY k",
        "SELECT n FROM t WHERE k = 'A'",
        "SELECT n FROM t WHERE k = 'A' COLLATE BINARY",
        "SELECT n FROM t WHERE k IN ('A', 'b') ORDER BY 1",
        "SELECT n FROM t WHERE k > 'A' AND k < 'c'",
        "SELECT n FROM t WHERE k LIKE 'B%'",
        "UPDATE t SET n = 0 WHERE k = 'C' RETURNING k",
        "UPDATE t SET k = 'A' WHERE k = 'a'",
        "UPDATE t SET k = 'B' WHERE k = 'A'",
        "DELETE FROM t WHERE k = 'b'",
        "SELECT * FROM t ORDER BY k DESC",
        "INSERT INTO p VALUES ('a', 1, 1), ('A', 2, 2)",
        "INSERT INTO p VALUES ('A', 1, 3)",
        "INSERT INTO p VALUES ('A', 1, 3) ON CONFLICT (a, b) DO UPDATE SET n = 9",
        "SELECT * FROM p ORDER BY b",
        "SELECT n FROM p WHERE a = 'a' ORDER BY n",
        "SELECT n FROM p WHERE a = 'a' COLLATE NOCASE ORDER BY n",
    ]);
    let taken = db.error("INSERT INTO t VALUES ('C', 1)");
    assert_eq!(taken.message, "duplicate key value violates unique constraint \"t_k_key\"");
    assert_eq!(db.state("DROP INDEX t_k_key"), "2BP01");
    assert_eq!(db.state("ALTER TABLE t DROP CONSTRAINT t_k_key"), "2BP01");
    assert!(db.plan("SELECT n FROM t WHERE k = 'x'").contains("t_k_key (k=?)"));
}

#[test]
fn what_a_table_does_not_have_is_refused_with_advice() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT PRIMARY KEY)");
    for (sql, advice) in [
        ("CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM t; END", "generated columns"),
        ("DROP TRIGGER r", "generated columns"),
        ("CREATE TEMP TABLE u (a INT)", "ttl"),
        ("ALTER TABLE t ADD COLUMN b INT PRIMARY KEY", "new table"),
        ("ALTER TABLE t ADD COLUMN b INT GENERATED ALWAYS AS IDENTITY", "new table"),
    ] {
        let error = db.error(sql);
        assert_eq!(error.state, "0A000", "{sql}");
        assert!(error.hint.as_deref().unwrap_or_default().contains(advice), "{sql}: {:?}", error.hint);
    }
}

/// What is looked through before SQLite sees it must not take longer than SQLite would.
#[test]
fn endless_statements_end_at_once() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a TEXT, b INT);\nCREATE INDEX t_l ON t (lower(a)) WHERE b > 1");
    for part in [
        "SELECT ",
        "(",
        "(SELECT ",
        "a IN (",
        "(a, b) IN ",
        "((a,b) IN (SELECT a, ",
        "CHECK (",
        "FROM t ON ",
        "AND (a) ",
    ] {
        let text = part.repeat(200_000 / part.len());
        for begin in [
            "SELECT a FROM t WHERE ",
            "CREATE TABLE u (a INT ",
            "ALTER TABLE t ADD CHECK ",
            "DELETE FROM t WHERE ",
        ] {
            let error = db.error(&format!("{begin}{text}"));
            assert!(error.state.starts_with(['4', '5']), "{begin}{part}: {error}");
        }
    }
}

#[test]
fn statements_that_write_are_read_as_queries_are() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k INT PRIMARY KEY, n INT, name TEXT);
         INSERT INTO t SELECT k, sum(n) OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
             EXCLUDE CURRENT ROW), 'x' FROM (SELECT 1 AS k, 10 AS n UNION ALL SELECT 2, 20) AS v;
         UPDATE t x SET name = x.name || '!' WHERE x.k = 1;
         DELETE FROM t y WHERE y.k = 2 AND y.n = 10",
    );
    assert_eq!(db.query("SELECT * FROM t"), "1,20,x!");
    // A column is called as that of a query.
    let (_, updated) = db.execute("UPDATE t SET n = n+1 RETURNING n+1, length(name), k", &[]).unwrap();
    let (_, selected) = db.execute("SELECT n+1, length(name), k FROM t", &[]).unwrap();
    assert_eq!(updated, selected);
    // The parts of a statement are compiled apart, and parameters mean the same in all of them.
    let values = [Value::Integer(7), Value::from("b"), Value::Integer(1)];
    let sql = "INSERT INTO t VALUES ($3, $1, $2) ON CONFLICT (k) DO UPDATE SET n = excluded.n + $1, name = $2 \
               WHERE t.k = $3 RETURNING n, name, $1 + 1";
    assert_eq!(shown(&db.execute(sql, &values).unwrap().1.rows), "14,b,8");
    let named = "UPDATE t SET n = :a, name = :b WHERE k = :c AND n > :a RETURNING n, :b";
    assert_eq!(shown(&db.execute(named, &values).unwrap().1.rows), "7,b");
}

#[test]
fn a_statement_that_writes_and_cannot_be_read_shows_where() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (k INT PRIMARY KEY, n INT)");
    for (sql, state, position) in [
        ("INSERT INTO t VALUES (1,, 2)", "42601", Some(25)),
        ("INSERT INTO t VALUES (1, 2", "42601", Some(27)),
        ("DELETE FROM t WHERE", "42601", Some(20)),
        ("DELETE FROM t WHERE k = 1 n = 2", "42601", Some(27)),
        ("UPDATE t SET n = 'x", "42601", Some(18)),
        ("UPDATE t SET (n = 1", "42601", Some(17)),
        ("UPDATE t SET n = $0", "42601", Some(18)),
        ("UPDATE t SET n = $99999", "54001", Some(18)),
        ("UPDATE t SET (k, n) = 1", "42601", None),
        ("UPDATE t SET n = nowhere", "42703", Some(18)),
        ("UPDATE t SET n = references", "42703", Some(18)),
        ("UPDATE t SET n = \"no where\"", "42703", Some(18)),
        ("UPDATE t SET nothing = 1", "42703", Some(14)),
        ("EXPLAIN DELETE FROM t WHERE", "42601", Some(28)),
    ] {
        let error = db.execute(sql, &[]).unwrap_err();
        assert_eq!((error.state, error.position), (state, position), "{sql}: {error}");
    }
}
