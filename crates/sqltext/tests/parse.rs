//! What is read, what is refused, and where.
#![allow(unreachable_pub, dead_code, clippy::print_stdout, reason = "the modules are fuzz targets too")]

#[path = "../../../fuzz/src/grammar.rs"]
mod grammar;
#[path = "../../../fuzz/src/harness.rs"]
mod harness;
#[path = "../../../fuzz/src/sqltext.rs"]
mod target;

use std::fs;
use std::path::Path;

use harness::{Random, Run, fails};
use sqltext::conflict::Target;
use sqltext::{Fault, parse, token_at};
use target::{check, fuzz_sqltext};

/// The stack that a statement may take: a SQL thread has 2 MiB.
const STACK_BYTES: usize = 5 << 18;

fn repository(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The statements of a script of `sql/tests/logic`.
fn statements(script: &str) -> Vec<String> {
    let records = script.split("\n\n").map(str::trim);
    let body = |record: &str| {
        let mut lines = record.lines().skip_while(|line| line.starts_with('#'));
        let head = lines.next().filter(|head| head.starts_with("query") || *head == "statement ok")?;
        let sql: Vec<&str> = lines.take_while(|line| !line.starts_with("----")).collect();
        (!head.is_empty() && !sql.is_empty()).then(|| sql.join("\n"))
    };
    records.filter_map(body).collect()
}

#[test]
fn statements_of_the_tests_are_read() {
    let mut count = 0;
    for script in ["reading", "writing"] {
        for sql in statements(&repository(&format!("crates/sql/tests/it/logic/{script}.test"))) {
            let found = parse(&sql);
            assert!(found.is_ok(), "{sql}: {}", found.unwrap_err());
            count += 1;
        }
    }
    assert!(count > 60, "{count} statements are no corpus");
}

#[test]
fn forms_of_both_dialects_are_read() {
    for sql in [
        "SELECT a::int, '{1,2}'::int[], b[1], ARRAY[1, 2], $$x$$, E'\\n', U&'\\0061' FROM t AS x (a, b)",
        "SELECT a FROM t WHERE b = ANY ($1) AND c ILIKE 'x%' AND d ~* 'y' AND e @> '{}' AND f #>> '{a}' = 'x'",
        "SELECT extract(year FROM a), position('x' IN b), substring(b FROM 2 FOR 3), trim(BOTH 'x' FROM b) FROM t",
        "SELECT interval '1 day', timestamp with time zone '2026-01-01', date '2026-01-01', a AT TIME ZONE 'UTC' FROM t",
        "SELECT a FROM t WHERE b GLOB 'x*' AND c NOT GLOB 'y' AND d REGEXP 'z' AND e MATCH 'w' AND f IS 5 AND g IS NOT h",
        "SELECT a FROM t WHERE b ISNULL AND c NOTNULL AND d NOT NULL AND e == 1 AND f IN ()",
        "SELECT [a b], `c`, \"d\" FROM main.t LIMIT 2, 3",
        "SELECT sum(a) FILTER (WHERE b > 1) OVER (PARTITION BY c ORDER BY d ROWS 1 PRECEDING) FROM t",
        "SELECT user, value, key, date, name, type, line, point, box, path, sample, final FROM t",
        "SELECT a FROM t ORDER BY b DESC NULLS LAST FETCH FIRST 3 ROWS ONLY FOR UPDATE",
        "INSERT OR REPLACE INTO t (a) VALUES (DEFAULT) ON CONFLICT (a) DO UPDATE SET a = excluded.a WHERE t.b RETURNING *",
        "REPLACE INTO t VALUES (1, ?, ?2, $3, :name, @name)",
        "UPDATE OR IGNORE t SET (a, b) = (1, 2), c = DEFAULT FROM u WHERE t.k = u.k RETURNING t.*",
        "DELETE FROM t AS x WHERE x.k IN (SELECT k FROM u) RETURNING k",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n",
        "CREATE TABLE t (a INT PRIMARY KEY, b TEXT DEFAULT 'x' COLLATE NOCASE, c INT GENERATED ALWAYS AS (a + 1) STORED)",
        "CREATE UNIQUE INDEX IF NOT EXISTS i ON t USING btree (lower(a), b DESC) WHERE c > 1",
        "SELECT a.b.c, (x).y, f(DISTINCT a ORDER BY b), exists(SELECT 1) FROM generate_series(1, 5) WITH ORDINALITY",
        "SELECT -a ^ 2, NOT a = b, a || b + c, a < b AND c OR d, ~a & b | c << 2",
        "SELECT a FROM t INDEXED BY i JOIN u AS v NOT INDEXED ON b CROSS JOIN w ON c, ONLY x",
        "SELECT a FROM ONLY t WHERE b IN u AND c NOT IN f(1) AND d = (VALUES (1)) AND e IN (VALUES (1), (2))",
        "SELECT trim(LEADING FROM a), trim(FROM b), current_user(), current_user FROM t",
        "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (1) ON CONFLICT (lower(a), b DESC) WHERE c DO NOTHING \
         ON CONFLICT ON CONSTRAINT d DO UPDATE SET (a, b) = (1, 2) WHERE e ON CONFLICT DO NOTHING RETURNING a",
        "WITH x AS (SELECT 1) REPLACE INTO t SELECT * FROM x",
        "SELECT * FROM t CROSS JOIN u JOIN t AS x ON x.t0 = u.u2 WHERE t.t1 <> NULL",
        "SELECT * FROM (SELECT (t.t0 % u.u1), x.t0, t.t0 FROM t CROSS JOIN u JOIN t AS x ON x.a = 1 WHERE t.t1 <> NULL)",
        "SELECT sum(a) OVER (ORDER BY b ROWS 1 PRECEDING EXCLUDE TIES), sum(a) OVER (ORDER BY b EXCLUDE NO OTHERS) FROM t",
        "DELETE FROM t x WHERE x.a = 1 ORDER BY b LIMIT 2 OFFSET 1",
        "EXPLAIN UPDATE t AS x SET a = 1 RETURNING a ORDER BY b LIMIT 2, 1;",
        "UPDATE ONLY t INDEXED BY i SET a = 1 WHERE b ORDER BY c LIMIT 1",
    ] {
        let found = parse(sql);
        assert!(found.is_ok(), "{sql}: {}", found.unwrap_err());
    }
}

/// `ON CONFLICT` stands beside the tree of an `INSERT`, which has no room for several.
#[test]
fn conflicts_stand_beside_the_tree() {
    let sql = "INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE b DO NOTHING ON CONFLICT DO UPDATE SET a = 1 RETURNING a";
    let tail = parse(sql).unwrap().tail;
    let [first, second] = &tail.conflicts[..] else { panic!("two of them") };
    assert!(
        matches!(&first.target, Target::Terms(terms, Some(_)) if terms.len() == 1) && first.update.is_none()
    );
    assert!(matches!(second.target, Target::Any) && second.update.is_some());
    assert!(tail.returning.is_some());
    // A join's condition within parentheses is none.
    let sql = "INSERT INTO t SELECT * FROM (u JOIN v ON conflict) RETURNING a";
    assert!(parse(sql).unwrap().tail.conflicts.is_empty());
}

/// The places of the tree lead to the tokens of the text, and those of errors to what does not belong.
#[test]
fn places_are_those_of_the_text() {
    let sql = "SELECT  \u{e9}t\u{e9} -- \u{e9}\n FROM t WHERE \"b\u{e9}\" = 'x'";
    let tree = parse(sql).unwrap();
    let sqltext::ast::Statement::Query(query) = &tree.statement else { panic!("a query") };
    let select = query.body.as_select().unwrap();
    let item = tree.token_of(&select.projection[0]).unwrap();
    assert_eq!(tree.tokens[item].text, "\u{e9}t\u{e9}");
    let Some(sqltext::ast::Expr::BinaryOp { right, .. }) = &select.selection else { panic!("a comparison") };
    let place = token_at(sqltext::ast::Spanned::span(&**right).start).unwrap();
    assert_eq!((tree.tokens[place].text, &sql[tree.tokens[place].start..]), ("'x'", "'x'"));
    for (sql, fault, rest) in [
        ("DELETE FORM t", Fault::Unexpected, "FORM t"),
        ("INSERT INTO t\nVALUES (1,, 2)", Fault::Unexpected, ", 2)"),
        ("SELECT a, FROM t", Fault::Unexpected, "FROM t"),
        ("SELECT \u{e9} FROM t WHERE", Fault::Unfinished, ""),
        ("SELECT 1; SELECT 2", Fault::Another, "SELECT 2"),
        ("SELECT 1 1", Fault::Unexpected, "1"),
        ("SELECT 'open", Fault::Literal, "'open"),
        ("SELECT 'a' 'b'", Fault::Texts, "'b'"),
        ("SELECT E'\\0'", Fault::Literal, "E'\\0'"),
        (
            "INSERT INTO t VALUES (1,, 2) ON CONFLICT DO NOTHING",
            Fault::Unexpected,
            ", 2) ON CONFLICT DO NOTHING",
        ),
        ("INSERT INTO t VALUES (1 ON CONFLICT DO NOTHING", Fault::Unexpected, "ON CONFLICT DO NOTHING"),
        ("INSERT INTO t SELECT ON CONFLICT DO NOTHING", Fault::Unexpected, "ON CONFLICT DO NOTHING"),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTING", Fault::Unexpected, "NOTING"),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING; SELECT 1", Fault::Another, "SELECT 1"),
    ] {
        let error = parse(sql).unwrap_err();
        assert_eq!((error.fault, &sql[error.place..]), (fault, rest), "{sql}");
    }
}

/// Whatever nests is read or refused within a part of a SQL thread's stack, in a time that grows with the text.
#[test]
fn nesting_is_bounded() {
    let nested = |times: usize| {
        let around = |open: &str, inner: &str, close: &str| {
            format!("{}{inner}{}", open.repeat(times), close.repeat(times))
        };
        vec![
            format!("SELECT {}", around("(", "1", ")")),
            format!("SELECT {}", around("(", "1", "")),
            format!("SELECT {}", around("(SELECT ", "1", ")")),
            format!("SELECT {}", around("f(", "1", ")")),
            format!("SELECT {}", around("CASE WHEN a THEN ", "1", " END")),
            format!("SELECT {}", around("case-", "c", "")),
            format!("SELECT {}", around("if(current_time(", "x", "")),
            format!("SELECT {}", around("NOT ", "a", "")),
            format!("SELECT {}", around("- ", "a", "")),
            format!("SELECT {}", around("CAST(", "a", " AS int)")),
            format!("SELECT {}", around("ARRAY[", "a", "]")),
            format!("SELECT {}", around("interval ", "'1'", "")),
            format!("SELECT a{}", "::int".repeat(times)),
            format!("SELECT a{}", "[1]".repeat(times)),
            format!("SELECT a{}", ".b".repeat(times)),
            format!("SELECT a{}", " + 1".repeat(times)),
            format!("SELECT a{}", " AND a".repeat(times)),
            format!("SELECT a FROM {}", around("(", "t", ")")),
            format!("SELECT a FROM {}", around("(SELECT a FROM ", "t", ") x")),
            format!("SELECT a FROM {}", around("(t JOIN ", "u", " ON a)")),
            around("(", "SELECT 1", ")"),
            format!("{}SELECT 1", "SELECT 1 UNION ".repeat(times)),
            format!("{}SELECT 1", "EXPLAIN ".repeat(times)),
            format!("SELECT a FROM t WHERE {}", around("EXISTS (SELECT 1 WHERE ", "a", ")")),
            format!("WITH {}", around("a AS (WITH ", "a AS (SELECT 1) SELECT 1", ") SELECT 1")),
        ]
    };
    let body = move || {
        for times in [10, 40, 60, 150, 400, 900, 20_000] {
            for sql in nested(times) {
                let found = parse(&sql);
                if let (Err(error), 10) = (&found, times) {
                    assert_ne!(error.fault, Fault::Deep, "{sql}");
                }
                drop(found);
            }
        }
    };
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(body).unwrap().join().unwrap();
}

fn input(random: &mut Random) -> Vec<u8> {
    random.bytes(300)
}

#[test]
fn generated_texts_are_read_or_refused() {
    Run::new(200_000).of(|| fuzz_sqltext, input);
}

/// An error whose place is none of the text is noticed.
#[test]
fn a_planted_mistake_is_noticed() {
    assert!(fails(Run::new(1), || |_: &[u8]| assert!("\u{e9}".is_char_boundary(1)), input));
    assert!(!fails(Run::new(1), || |_: &[u8]| check("SELECT 1"), input));
}
