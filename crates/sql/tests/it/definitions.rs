//! Definitions: checks, collations, generated columns, defaults, identities, every kind of index, views, changes.

use std::sync::Arc;

use crate::common::Db;
use sql::{Cancel, Executor, Limits, Session};
use store::value::Value;
use store::{Clock, Expect, Expiry, Item, Outcome, Store, StoreOptions, WriteError};

/// What a memcached client would store.
fn set(store: &Store, key: &str, value: &str) -> Result<Outcome, WriteError> {
    let catalog = store.catalog();
    let (table, rest) = catalog.route(key.as_bytes());
    let item = Item {
        value: value.as_bytes(),
        client_flags: 0,
        expiry: Expiry::Table,
        cas: None,
        lease: None,
        tags: None,
    };
    store.put_item(table, rest, &item, Expect::Anything, store.now())
}

#[test]
fn checks_refuse_rows_by_name() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (
            a INT PRIMARY KEY CHECK (a > 0), b TEXT COLLATE NOCASE CONSTRAINT short CHECK (length(b) < 4),
            c INT, CHECK (c <> a), CONSTRAINT both CHECK (b <> 'x' OR c IS NULL))",
    );
    for (sql, name) in [
        ("INSERT INTO t VALUES (0, 'a', 1)", "t_a_check"),
        ("INSERT INTO t VALUES (1, 'abcd', 2)", "short"),
        ("INSERT INTO t VALUES (1, 'a', 1)", "t_check"),
        ("INSERT INTO t VALUES (1, 'X', 2)", "both"),
        ("INSERT OR REPLACE INTO t VALUES (0, 'a', 1)", "t_a_check"),
    ] {
        let error = db.error(sql);
        assert_eq!(error.state, "23514", "{sql}: {error}");
        assert!(error.message.contains(&format!("\"{name}\"")), "{sql}: {error}");
    }
    // NULL is not false.
    db.run("INSERT INTO t VALUES (1, NULL, NULL), (2, 'x', NULL);\nINSERT OR IGNORE INTO t VALUES (0, 'a', 9), (3, 'y', 9)");
    assert_eq!(db.query("SELECT a FROM t ORDER BY a"), "1;2;3");
    assert_eq!(db.state("UPDATE t SET c = a"), "23514");
    assert_eq!(db.affected("UPDATE OR IGNORE t SET c = 3"), 1);
    assert_eq!(
        db.state("INSERT INTO t VALUES (1, 'z', 5) ON CONFLICT (a) DO UPDATE SET b = 'wxyz'"),
        "23514"
    );
    assert_eq!(db.query("SELECT * FROM t ORDER BY a"), "1,NULL,3;2,x,NULL;3,y,9");
    for (sql, state) in [
        ("CREATE TABLE u (a INT CHECK (nope > 1))", "42703"),
        ("CREATE TABLE u (a INT CHECK (a IN (SELECT 1)))", "42P17"),
        ("CREATE TABLE u (a INT CHECK (nope(a)))", "42883"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}: {}", db.error(sql));
    }
}

#[test]
fn generated_columns_follow_their_row() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (
            k TEXT PRIMARY KEY, n INT, twice INT AS (n * 2) STORED, more INT GENERATED ALWAYS AS (twice + length(part)),
            part TEXT AS (split_part(k, ':', 1)), j TEXT, name AS (j ->> '$.name'));
         CREATE INDEX t_more ON t (more);
         CREATE UNIQUE INDEX t_name ON t (name);
         INSERT INTO t VALUES ('ab:1', 5, '{\"name\": \"x\"}'), ('abc:2', NULL, NULL)",
    );
    assert_eq!(
        db.query("SELECT k, twice, more, part, name FROM t ORDER BY k"),
        "ab:1,10,12,ab,x;abc:2,NULL,NULL,abc,NULL"
    );
    assert!(db.plan("SELECT * FROM t WHERE more = 12").contains("t_more"));
    db.run("UPDATE t SET n = 7 WHERE more = 12");
    assert_eq!(db.query("SELECT k FROM t WHERE more = 16"), "ab:1");
    assert_eq!(db.query("SELECT k FROM t WHERE more = 12"), "");
    db.run("UPDATE t SET k = 'a:1' WHERE k = 'ab:1'");
    assert_eq!(db.query("UPDATE t SET n = 1 WHERE k = 'a:1' RETURNING more, part"), "3,a");
    assert_eq!(db.state("UPDATE t SET j = '{\"name\": \"x\"}'"), "23505");
    assert_eq!(db.state("INSERT INTO t (k, twice) VALUES ('z', 1)"), "428C9");
    assert_eq!(db.state("UPDATE t SET part = 'z'"), "428C9");
    let error = db.error("INSERT INTO t (k, j) VALUES ('z', '{')");
    db.run("CREATE TABLE z (a INT, b INT AS (1 / a) STORED, CHECK (a % (a - 1) >= 0))");
    assert_eq!(db.state("INSERT INTO z VALUES (0)"), "22012");
    assert_eq!(db.state("INSERT INTO z VALUES (1)"), "22012");
    assert!(error.state == "22032" && error.message.contains("\"name\""), "{error}");
    db.run("INSERT INTO t (k, j) VALUES ('q', '{\"name\": \"y\"}') ON CONFLICT (name) DO NOTHING;\nINSERT OR REPLACE INTO t (k, j) VALUES ('r', '{\"name\": \"y\"}')");
    assert_eq!(db.query("SELECT k FROM t WHERE name = 'y'"), "r");
    for (sql, state) in [
        ("CREATE TABLE u (a INT AS (b), b INT AS (a))", "42000"),
        ("CREATE TABLE u (a INT, b INT AS (random()))", "42P17"),
        ("CREATE TABLE u (a INT, b INT AS (a) PRIMARY KEY)", "42P16"),
        ("CREATE TABLE u (a INT, b INT AS (a) DEFAULT 1)", "42P16"),
        ("CREATE TABLE u (a INT, b INT AS (nope))", "42703"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}: {}", db.error(sql));
    }
}

#[test]
fn defaults_are_computed_for_each_row() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (a INT, b INT NOT NULL DEFAULT (1 + 2), c TEXT DEFAULT CURRENT_TIMESTAMP,
            d INT DEFAULT (abs(random()) % 1000000007), e TEXT DEFAULT lower('X'));
         INSERT INTO t (a) VALUES (1), (2);
         INSERT INTO t (a, e) SELECT 3, NULL;
         INSERT INTO t DEFAULT VALUES;
         INSERT OR REPLACE INTO t (a, b) VALUES (5, NULL)",
    );
    assert_eq!(db.query("SELECT a, b, e FROM t ORDER BY a"), "1,3,x;2,3,x;3,3,NULL;5,3,x;NULL,3,x");
    assert_eq!(db.query("SELECT count(DISTINCT d) > 3, count(c) FROM t"), "1,5");
    assert_eq!(db.state("CREATE TABLE u (a INT, b INT DEFAULT (a))"), "42000");
    assert_eq!(db.state("INSERT INTO t (b) VALUES (NULL)"), "23502");
}

#[test]
fn identities_number_rows_once() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
         CREATE TABLE s (id SERIAL PRIMARY KEY, v TEXT);
         CREATE TABLE g (id BIGINT GENERATED ALWAYS AS IDENTITY, v TEXT);
         CREATE TABLE d (id INT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, v TEXT);
         CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT)",
    );
    for table in ["t", "s", "d", "a"] {
        db.run(&format!(
            "INSERT INTO {table} (v) VALUES ('a'), ('b');\nINSERT INTO {table} VALUES (NULL, 'c'), (10, 'd');\nINSERT INTO {table} (v) VALUES ('e');\nDELETE FROM {table} WHERE id = 11;\nINSERT INTO {table} (v) VALUES ('f')"
        ));
        assert_eq!(db.query(&format!("SELECT id, v FROM {table} ORDER BY id")), "1,a;2,b;3,c;10,d;12,f");
    }
    assert_eq!(db.query("INSERT INTO g VALUES ('a'), ('b') RETURNING id"), "1;2");
    assert_eq!(db.state("INSERT INTO g (id, v) VALUES (7, 'x')"), "428C9");
    db.run("INSERT INTO t VALUES (9223372036854775807, 'last')");
    assert_eq!(db.state("INSERT INTO t (v) VALUES ('one more')"), "2200H");
}

#[test]
fn collations_order_and_compare() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k INT PRIMARY KEY, a TEXT COLLATE NOCASE UNIQUE, b TEXT, r TEXT COLLATE RTRIM);
         CREATE INDEX t_b ON t (b COLLATE NOCASE);
         CREATE INDEX t_r ON t (r);
         INSERT INTO t VALUES (1, 'Abc', 'Abc', 'x  '), (2, 'abd', 'ABC', 'x'), (3, 'B', 'b', 'y')",
    );
    assert_eq!(db.state("INSERT INTO t VALUES (4, 'ABC', '', '')"), "23505");
    assert_eq!(db.query("SELECT k FROM t WHERE a = 'aBC'"), "1");
    assert_eq!(db.query("SELECT k FROM t WHERE a IN ('ABC', 'abc', 'b') ORDER BY k"), "1;3");
    assert!(db.plan("SELECT k FROM t WHERE a = 'aBC'").contains("t_a_key"));
    // The column compares by its bytes, the index does not: it serves only who asks as it does.
    assert_eq!(db.query("SELECT k FROM t WHERE b = 'ABC'"), "2");
    assert!(!db.plan("SELECT k FROM t WHERE b = 'ABC'").contains("t_b"));
    assert!(db.plan("SELECT k FROM t WHERE b = 'ABC' COLLATE NOCASE").contains("t_b"));
    assert_eq!(db.query("SELECT k FROM t WHERE b = 'ABC' COLLATE NOCASE ORDER BY k"), "1;2");
    assert_eq!(db.query("SELECT k FROM t WHERE r = 'x ' ORDER BY k"), "1;2");
    assert_eq!(db.query("SELECT k FROM t WHERE a > 'abc' ORDER BY a"), "2;3");
    assert_eq!(db.query("SELECT k FROM t WHERE a ILIKE 'AB%' ORDER BY a DESC"), "2;1");
    assert_eq!(db.query("SELECT k FROM t ORDER BY a COLLATE BINARY"), "1;3;2");
    assert_eq!(db.state("CREATE TABLE u (a TEXT COLLATE nope)"), "42704");
}

#[test]
fn indexes_descend_and_mix() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k INT PRIMARY KEY, a INT, b INT);
         CREATE INDEX t_ab ON t (a, b DESC);
         INSERT INTO t VALUES (1, 1, 1), (2, 1, NULL), (3, 1, 3), (4, 2, 2), (5, NULL, 9), (6, 2, 5)",
    );
    let sorted = |plan: &str| plan.contains("TEMP B-TREE");
    for (order, expected) in [
        ("a NULLS FIRST, b DESC NULLS LAST", "5;3;1;2;6;4"),
        ("a DESC NULLS LAST, b NULLS FIRST", "4;6;2;1;3;5"),
        ("a, b DESC NULLS LAST", "3;1;2;6;4;5"),
        ("a DESC, b NULLS FIRST", "5;4;6;2;1;3"),
    ] {
        let sql = format!("SELECT k FROM t WHERE k > 0 ORDER BY {order}");
        assert_eq!(db.query(&sql), expected, "{order}");
        assert!(!sorted(&db.plan(&format!("SELECT k FROM t ORDER BY {order}"))), "{order}");
    }
    assert!(sorted(&db.plan("SELECT k FROM t ORDER BY a, b")));
    // The rows without a value in the second column lie in as many places as there are values in the first.
    assert!(sorted(&db.plan("SELECT k FROM t ORDER BY a, b DESC")));
    assert_eq!(db.query("SELECT k FROM t ORDER BY a, b DESC"), "2;3;1;6;4;5");
    assert_eq!(db.query("SELECT k FROM t WHERE a = 1 AND b > 0 ORDER BY b"), "1;3");
    assert_eq!(db.query("SELECT k FROM t WHERE a = 1 AND b < 3"), "1");
    assert_eq!(db.query("SELECT k FROM t WHERE a = 1 AND b IS NULL"), "2");
    assert_eq!(db.query("SELECT k FROM t WHERE a IN (1, 2) AND b BETWEEN 2 AND 5 ORDER BY k"), "3;4;6");
    assert!(db.plan("SELECT k FROM t WHERE a = 1 AND b > 0").contains("t_ab (a=? AND b>?)"));
}

#[test]
fn indexes_of_expressions_and_of_some_rows() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (k INT PRIMARY KEY, name TEXT, j TEXT, gone INT NOT NULL DEFAULT 0, n INT)");
    for k in 0..200 {
        db.run(&format!(
            "INSERT INTO t VALUES ({k}, 'Name{}', '{{\"u\": {}}}', {}, {})",
            k % 50,
            k % 20,
            i32::from(k % 10 != 0),
            k % 7
        ));
    }
    db.run(
        "CREATE INDEX t_lower ON t (lower(name));
         CREATE INDEX t_u ON t (j ->> '$.u', n DESC);
         CREATE INDEX t_here ON t (n) WHERE gone = 0;
         CREATE UNIQUE INDEX t_one ON t (n + 100) WHERE k < 7",
    );
    for (sql, index, expected) in [
        ("SELECT count(*) FROM t WHERE lower(name) = 'name7'", "t_lower", "4"),
        ("SELECT count(*) FROM t AS x WHERE LOWER(x.name) = 'name8'", "t_lower", "4"),
        ("SELECT count(*) FROM t WHERE j ->> '$.u' = 3", "t_u", "10"),
        ("SELECT count(*) FROM t WHERE 3 = j->>'$.u' AND n > 3", "t_u", "3"),
        ("SELECT count(*) FROM t WHERE n = 3 AND gone = 0", "t_here", "3"),
        ("SELECT k FROM t WHERE gone = 0 AND n < 1 ORDER BY k", "t_here", "0;70;140"),
        ("SELECT k FROM t WHERE n + 100 = 103 AND k < 7", "t_one", "3"),
    ] {
        assert!(db.plan(sql).contains(index), "{sql}: {}", db.plan(sql));
        assert_eq!(db.query(sql), expected, "{sql}");
    }
    // What does not say the same, or not of this table, reads every row and answers the same.
    for (sql, index, expected) in [
        ("SELECT count(*) FROM t WHERE upper(name) = 'NAME7'", "t_lower", "4"),
        ("SELECT count(*) FROM t WHERE n = 3", "t_here", "29"),
        ("SELECT count(*) FROM t WHERE NOT gone = 0 AND n = 3", "t_here", "26"),
        ("SELECT count(*) FROM t WHERE n + 100 * 1 = 103", "t_one", "29"),
        ("SELECT count(*) FROM t WHERE k BETWEEN 1 AND gone = 0", "t_here", "199"),
        ("SELECT count(*) FROM (SELECT 'Name7' AS name) AS s WHERE lower(name) = 'name7'", "t_lower", "1"),
        (
            "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM json_each('[1]') WHERE lower(name) = 'name7')",
            "t_lower",
            "4",
        ),
    ] {
        assert!(!db.plan(sql).contains(index), "{sql}: {}", db.plan(sql));
        assert_eq!(db.query(sql), expected, "{sql}");
    }
    assert_eq!(db.state("UPDATE t SET n = 5 WHERE k = 6"), "23505");
    db.run("UPDATE t SET n = 5 WHERE k = 13");
    assert_eq!(db.affected("DELETE FROM t WHERE lower(name) = 'name7'"), 4);
    assert_eq!(
        db.query("UPDATE t SET name = 'X' WHERE lower(name) = 'name8' AND k < 9 RETURNING k, name"),
        "8,X"
    );
    assert_eq!(db.query("SELECT k FROM t WHERE lower(name) = 'x'"), "8");
    assert_eq!(db.query("SELECT * FROM t WHERE k = 8"), "8,X,{\"u\": 8},1,1");
    db.run("INSERT INTO t (k, n) VALUES (1000, 3) ON CONFLICT (n + 100) WHERE k < 7 DO NOTHING");
    assert_eq!(db.state("INSERT INTO t (k, n) VALUES (1001, 3) ON CONFLICT (n + 100) DO NOTHING"), "42P10");
    db.run("DROP INDEX t_u;\nDROP INDEX t_lower");
    assert_eq!(db.query("SELECT count(*) FROM t WHERE lower(name) = 'name9'"), "4");
    assert_eq!(db.state("CREATE INDEX t_bad ON t (json(name))"), "22032");
    assert_eq!(db.query("SELECT count(*) FROM t WHERE n = 3 AND gone = 0"), "4");
}

/// What the index adds to the view's condition once ran into the next word. The view was made all the same, and no view
/// could be read from then on.
#[test]
fn a_view_whose_condition_an_index_of_some_rows_serves_is_read() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (a INT PRIMARY KEY, b TEXT);
         CREATE INDEX t_b ON t (b) WHERE b IS NOT NULL;
         INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'x');
         CREATE VIEW u AS SELECT a FROM t;
         CREATE VIEW v AS SELECT a, count(*) OVER w FROM t WHERE b = 'x' WINDOW w AS (ORDER BY a);
         CREATE VIEW w AS SELECT a FROM t WHERE b = 'x'GROUP BY a;
         CREATE VIEW z AS SELECT a, count(*) OVER (w) FROM t WHERE b IN () AND b IS x'ff00' WINDOW w AS (PARTITION BY a)",
    );
    assert_eq!(db.query("SELECT * FROM z"), "");
    assert_eq!(db.query("SELECT * FROM v ORDER BY a"), "1,1;3,2");
    assert_eq!(db.query("SELECT * FROM w ORDER BY a"), "1;3");
    assert_eq!(db.query("SELECT count(*) FROM u"), "3");
}

#[test]
fn views_are_seen_by_every_connection() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (a INT PRIMARY KEY, b TEXT);
         INSERT INTO t VALUES (1, 'x'), (2, 'y');
         CREATE VIEW v AS SELECT a, upper(b) AS u FROM t WHERE a > 1;
         CREATE VIEW w (n) AS SELECT count(*) FROM v;
         CREATE VIEW IF NOT EXISTS v AS SELECT 1",
    );
    assert_eq!(db.query("SELECT * FROM v"), "2,Y");
    let limits = Limits { statement_timeout: None, ..Limits::default() };
    let other = Executor::new(Arc::clone(&db.store), limits).unwrap();
    let first = std::mem::replace(&mut db.executor, other);
    assert_eq!(db.query("SELECT n FROM w"), "1");
    db.run("CREATE OR REPLACE VIEW v AS SELECT b FROM t");
    db.executor = first;
    assert_eq!(db.query("SELECT * FROM v ORDER BY 1"), "x;y");
    assert_eq!(db.query("SELECT n FROM w"), "2");
    for (sql, state) in [
        ("CREATE VIEW v AS SELECT 1", "42P07"),
        ("CREATE TABLE v (a INT)", "42P07"),
        ("CREATE VIEW t AS SELECT 1", "42P07"),
        ("CREATE VIEW x AS SELECT nope FROM t", "42703"),
        ("CREATE VIEW x AS SELECT * FROM nope", "42P01"),
        ("CREATE VIEW x (a, b) AS SELECT 1", "42601"),
        ("DROP VIEW nope", "42P01"),
        ("INSERT INTO v VALUES ('z')", "23502"),
        ("DELETE FROM w", "55000"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}");
    }
    db.run("DROP VIEW w;\nDROP VIEW IF EXISTS w");
    assert_eq!(db.state("SELECT * FROM w"), "42P01");
    assert_eq!(db.query("SELECT count(*) FROM v"), "2");
}

#[test]
fn tables_are_made_of_queries() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (a INT PRIMARY KEY, b TEXT);
         INSERT INTO t VALUES (1, 'x'), (2, 'y');
         CREATE TABLE c WITH (ttl = '1 h') AS SELECT a, b || '!' AS b FROM t WHERE a > 1;
         CREATE TABLE IF NOT EXISTS c AS SELECT 1",
    );
    assert_eq!(db.query("SELECT * FROM c"), "2,y!");
    assert_eq!(db.affected("CREATE TABLE e AS VALUES (1), (2), (3)"), 3);
    assert_eq!(db.state("CREATE TABLE f AS SELECT json('{')"), "22032");
    assert_eq!(db.state("SELECT * FROM f"), "42P01");
}

#[test]
fn tables_change() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k TEXT PRIMARY KEY, a INT, b TEXT) WITH (prefix = 't:', value = 'b');
         CREATE INDEX t_a ON t (a);
         INSERT INTO t VALUES ('x', 1, 'one'), ('y', 2, 'two');
         ALTER TABLE t ADD COLUMN c INT DEFAULT 7, ADD COLUMN d TEXT;
         ALTER TABLE t ADD COLUMN IF NOT EXISTS c INT;
         INSERT INTO t (k, a, d) VALUES ('z', 3, 'dd')",
    );
    assert_eq!(db.query("SELECT * FROM t ORDER BY k"), "x,1,one,7,NULL;y,2,two,7,NULL;z,3,NULL,7,dd");
    set(&db.store, "t:w", "w").unwrap();
    db.run(
        "ALTER TABLE t DROP COLUMN a;
         ALTER TABLE t DROP COLUMN IF EXISTS a;
         ALTER TABLE t RENAME COLUMN c TO n;
         ALTER TABLE t ADD a TEXT",
    );
    assert_eq!(
        db.query("SELECT * FROM t ORDER BY k"),
        "w,w,7,NULL,NULL;x,one,7,NULL,NULL;y,two,7,NULL,NULL;z,NULL,7,dd,NULL"
    );
    assert_eq!(db.state("ALTER TABLE t ALTER COLUMN n SET DEFAULT nope()"), "42883");
    db.run("ALTER TABLE t ALTER n DROP DEFAULT");
    assert_eq!(db.query("INSERT INTO t (k) VALUES ('q') RETURNING n"), "NULL");
    assert_eq!(db.state("ALTER TABLE t ALTER COLUMN n SET NOT NULL"), "23502");
    db.run(
        "UPDATE t SET n = 8 WHERE n IS NULL;
         ALTER TABLE t ALTER COLUMN n SET NOT NULL, ALTER COLUMN n SET DEFAULT 3 + 4;
         INSERT INTO t (k) VALUES ('r');
         ALTER TABLE t ADD CONSTRAINT small CHECK (n < 100)",
    );
    assert_eq!(db.query("SELECT n FROM t WHERE k = 'r'"), "7");
    assert_eq!(db.state("INSERT INTO t (k, n) VALUES ('s', NULL)"), "23502");
    assert_eq!(db.state("INSERT INTO t (k, n) VALUES ('s', 100)"), "23514");
    assert_eq!(db.state("ALTER TABLE t ADD CHECK (n < 8)"), "23514");
    assert_eq!(db.state("ALTER TABLE t ADD CONSTRAINT small CHECK (n < 9)"), "42710");
    assert_eq!(db.state("ALTER TABLE t ADD UNIQUE (n)"), "23505");
    db.run(
        "ALTER TABLE t DROP CONSTRAINT small;
         INSERT INTO t (k, n) VALUES ('s', 100);
         ALTER TABLE t ALTER COLUMN n DROP NOT NULL;
         ALTER TABLE t ALTER COLUMN n TYPE TEXT USING 'n' || n;
         ALTER TABLE t ADD COLUMN g TEXT AS (upper(n)) STORED;
         ALTER TABLE t ADD CONSTRAINT one UNIQUE (d);
         ALTER TABLE t RENAME CONSTRAINT one TO other;
         CREATE INDEX t_g ON t (g);
         ALTER INDEX t_g RENAME TO u_g;
         ALTER TABLE t RENAME TO u",
    );
    assert_eq!(db.query("SELECT k, n, g FROM u WHERE g > 'N7' ORDER BY k"), "q,n8,N8");
    assert!(db.plan("SELECT k FROM u WHERE g = 'N8'").contains("u_g"));
    assert_eq!(db.state("INSERT INTO u (k, d) VALUES ('dup', 'dd')"), "23505");
    assert_eq!(db.state("SELECT * FROM t"), "42P01");
    assert_eq!(db.state("ALTER TABLE u DROP COLUMN n"), "2BP01");
    set(&db.store, "t:m", "m").unwrap();
    assert_eq!(db.query("SELECT * FROM u WHERE k = 'm'"), "m,m,7,NULL,NULL,7");
    for (sql, state) in [
        ("ALTER TABLE u ALTER COLUMN g TYPE INT", "0A000"),
        ("ALTER TABLE u ALTER COLUMN k TYPE INT", "0A000"),
        ("ALTER TABLE u ALTER COLUMN a TYPE NOPE", "42704"),
        ("ALTER TABLE u ALTER COLUMN nope DROP DEFAULT", "42703"),
        ("ALTER TABLE u ADD COLUMN k INT", "42701"),
        ("ALTER TABLE u ADD COLUMN h INT NOT NULL", "23502"),
        ("ALTER TABLE u ADD COLUMN h INT PRIMARY KEY", "0A000"),
        ("ALTER TABLE u ADD COLUMN h INT CHECK (h > 0) DEFAULT 0", "23514"),
        ("ALTER TABLE u ADD COLUMN h AS (json(b))", "22032"),
        ("ALTER TABLE u DROP COLUMN k", "2BP01"),
        ("ALTER TABLE u DROP CONSTRAINT nope", "42704"),
        ("ALTER TABLE u RENAME COLUMN nope TO x", "42703"),
        ("ALTER TABLE u RENAME COLUMN n TO d", "42701"),
        ("ALTER TABLE u RENAME TO memcached", "42P07"),
        ("ALTER TABLE u FORCE ROW LEVEL SECURITY", "0A000"),
        ("ALTER TABLE memcached ADD COLUMN x INT", "42501"),
        ("ALTER INDEX nope RENAME TO x", "42704"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}: {}", db.error(sql));
    }
    assert_eq!(db.query("SELECT count(*) FROM u"), "8");
    db.run("ALTER TABLE IF EXISTS nope DROP COLUMN a;\nREINDEX;\nREINDEX TABLE u;\nANALYZE u;\nVACUUM");
    assert_eq!(db.state("ANALYZE nope"), "42P01");
}

#[test]
fn memcached_writes_obey_definitions() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE f (
            key TEXT PRIMARY KEY, value TEXT, page INT AS (split_part(key, ':', 1)), u AS (value ->> '$.u'),
            at TEXT DEFAULT (lower('NOW')), n INT GENERATED BY DEFAULT AS IDENTITY,
            CONSTRAINT known CHECK (u IS NOT 'nobody')) WITH (prefix = 'f:', value = 'value');
         CREATE INDEX f_page ON f (page);
         CREATE INDEX f_u ON f (u)",
    );
    let store = Arc::clone(&db.store);
    for (key, value) in [("f:17:1", "{\"u\": \"a\"}"), ("f:17:2", "{\"u\": \"b\"}"), ("f:18:1", "7")] {
        set(&store, key, value).unwrap();
    }
    assert_eq!(
        db.query("SELECT key, page, u, at, n FROM f ORDER BY key"),
        "17:1,17,a,now,1;17:2,17,b,now,2;18:1,18,NULL,now,3"
    );
    assert_eq!(
        set(&store, "f:x:1", "7"),
        Err(WriteError::Type("column \"page\" of type INT does not take 'x'".into()))
    );
    assert_eq!(set(&store, "f:1:1", "{\"u\": \"nobody\"}"), Err(WriteError::Check("known".into())));
    let Err(WriteError::Expression { message: why, .. }) = set(&store, "f:1:1", "{") else {
        panic!("malformed JSON was stored")
    };
    assert!(why.contains("\"u\""), "{why}");
    assert_eq!(db.query("SELECT count(*) FROM f"), "3");
    // incr and append keep what is computed; touch changes nothing of it.
    let catalog = store.catalog();
    let (table, key) = catalog.route(b"f:18:1");
    let edit = |new: &'static str| {
        store.rewrite_item(table, key, store.now(), &mut |_, out| {
            out.extend_from_slice(new.as_bytes());
            true
        })
    };
    assert!(matches!(edit("{\"u\": \"c\"}"), Ok(Outcome::Done(_))));
    assert_eq!(db.query("SELECT key, page, at, n FROM f WHERE u = 'c'"), "18:1,18,now,3");
    assert_eq!(edit("{\"u\": \"nobody\"}"), Err(WriteError::Check("known".into())));
    store.touch(table, key, Expiry::Never, store.now()).unwrap();
    assert_eq!(db.query("SELECT u FROM f WHERE page = 18"), "c");
    assert_eq!(db.affected("DELETE FROM f WHERE page = 17"), 2);
    assert_eq!(db.query("SELECT key FROM f"), "18:1");
}

#[test]
fn definitions_outlive_the_process() {
    let path = std::env::temp_dir().join(format!("definitions-{}-{}", std::process::id(), fastrand::u64(..)));
    let options = StoreOptions {
        path: Some(path.clone()),
        memory_bytes: 64 << 20,
        cold: false,
        clock: Clock::System,
        row_bytes_max: 1 << 20,
    };
    let limits = || Limits { statement_timeout: None, ..Limits::default() };
    let open = |db: &mut Db| {
        // The old store lets go of the file before the new one takes it.
        let empty = crate::common::open_store(Clock::System);
        db.executor = Executor::new(Arc::clone(&empty), limits()).unwrap();
        db.store = empty;
        let store = Store::open(&options).unwrap().store;
        db.executor = Executor::new(Arc::clone(&store), limits()).unwrap();
        db.store = store;
        (db.session, db.cancel) = (Session::new(), Cancel::new());
    };
    let mut db = Db::new();
    open(&mut db);
    db.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT COLLATE NOCASE CHECK (a <> 'no'), b INT DEFAULT (1 + 1));
         INSERT INTO t (a) VALUES ('Ab'), ('cd');
         ALTER TABLE t ADD COLUMN c AS (upper(a)), ADD COLUMN d INT DEFAULT 5;
         CREATE INDEX t_l ON t (length(a), b DESC) WHERE b > 1;
         INSERT INTO t (a) VALUES ('efg');
         DELETE FROM t WHERE id = 3;
         CREATE VIEW v AS SELECT c, d FROM t;
         CREATE TYPE k AS ENUM ('b', 'a');
         CREATE TABLE e (k k DEFAULT 'a', ks k[]);
         INSERT INTO e (k) VALUES ('a'), ('b');
         ALTER TYPE k ADD VALUE 'c' BEFORE 'b'",
    );
    open(&mut db);
    db.run("INSERT INTO e (k, ks) VALUES ('c', '{a,c}')");
    assert_eq!(db.query("SELECT k FROM e ORDER BY k"), "c;b;a");
    assert_eq!(db.state("INSERT INTO e (k) VALUES ('d')"), "22P02");
    assert_eq!(db.state("INSERT INTO e (ks) VALUES ('{d}')"), "22P02");
    assert_eq!(
        db.query("SELECT * FROM t WHERE length(a) = 2 AND b > 1 ORDER BY id"),
        "1,Ab,2,AB,5;2,cd,2,CD,5"
    );
    db.store.recover();
    assert!(db.plan("SELECT * FROM t WHERE length(a) = 2 AND b > 1").contains("t_l"));
    assert_eq!(db.query("SELECT * FROM v ORDER BY c"), "AB,5;CD,5");
    assert_eq!(db.state("INSERT INTO t (a) VALUES ('NO')"), "23514");
    db.run("INSERT INTO t (a) VALUES ('x')");
    // Number 3 was given out, though its row is gone.
    assert_eq!(db.query("SELECT id > 3 FROM t WHERE a = 'X'"), "1");
    drop(db);
    std::fs::remove_file(path).unwrap();
}

/// Writers by both protocols and readers go on while the table changes under them; afterwards every row obeys the last
/// definition.
#[test]
fn tables_change_under_readers_and_writers() {
    use std::sync::atomic::{AtomicBool, Ordering};
    const KEYS: u32 = 500;
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let mut db = Db::new();
    db.run("CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT, n INT) WITH (prefix = 't:', value = 'v')");
    let stop = AtomicBool::new(false);
    let store = Arc::clone(&db.store);
    let limits = Limits { statement_timeout: None, ..Limits::default() };
    std::thread::scope(|scope| {
        // Also when a check below fails.
        let _stop = Stop(&stop);
        for writer in 0..2_u64 {
            let (stop, store) = (&stop, Arc::clone(&store));
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(writer);
                while !stop.load(Ordering::Relaxed) {
                    let key = format!("t:{}:{}", random.u32(..KEYS), writer);
                    set(&store, &key, &random.u32(..1_000).to_string()).unwrap();
                }
            });
        }
        let (stop_sql, sql_store, sql_limits) = (&stop, Arc::clone(&store), limits.clone());
        scope.spawn(move || {
            let mut executor = Executor::new(sql_store, sql_limits).unwrap();
            let (mut session, cancel) = (Session::new(), Cancel::new());
            let mut random = fastrand::Rng::with_seed(7);
            while !stop_sql.load(Ordering::Relaxed) {
                let key = Value::from(format!("{}:sql", random.u32(..KEYS)));
                let mut rows = crate::common::Rows::default();
                for sql in [
                    "INSERT OR REPLACE INTO t (k, v, n) VALUES ($1, '5', 1)",
                    "UPDATE t SET v = v || '0' WHERE k = $1",
                    "SELECT count(*), max(k) FROM t WHERE k >= $1",
                ] {
                    executor
                        .execute(&mut session, sql, std::slice::from_ref(&key), &cancel, &mut rows)
                        .unwrap_or_else(|error| panic!("{sql}: {error}"));
                }
            }
        });
        for _ in 0..6 {
            db.run(
                "ALTER TABLE t ADD COLUMN p TEXT AS (split_part(k, ':', 1));
                 CREATE INDEX t_p ON t (p);
                 CREATE INDEX t_len ON t (length(v)) WHERE n IS NULL;
                 ALTER TABLE t ADD CONSTRAINT sane CHECK (length(v) < 100);
                 ALTER TABLE t ADD COLUMN extra INT DEFAULT 9",
            );
            assert_eq!(
                db.query("SELECT count(*) FROM t WHERE p IS NOT split_part(k, ':', 1) OR extra <> 9"),
                "0"
            );
            let by_index = "SELECT count(*) FROM t WHERE length(v) = 1 AND n IS NULL";
            assert!(db.plan(by_index).contains("t_len"));
            db.run(
                "DROP INDEX t_p;
                 DROP INDEX t_len;
                 ALTER TABLE t DROP COLUMN p, DROP CONSTRAINT sane, DROP COLUMN extra",
            );
        }
        db.run("CREATE INDEX t_p ON t (split_part(k, ':', 1))");
    });
    let all = "SELECT k FROM t WHERE split_part(k, ':', 1) = '17' ORDER BY k";
    assert!(db.plan(all).contains("t_p"));
    let by_scan = db.query("SELECT k FROM t WHERE k LIKE '17:%' ORDER BY k");
    assert_eq!(db.query(all), by_scan);
    assert_eq!(db.query("SELECT count(*) > 100 FROM t"), "1");
}

#[test]
fn definitions_with_nothing_to_do_say_so() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (a INT PRIMARY KEY);\n CREATE INDEX t_a ON t (a);\n CREATE VIEW v AS SELECT a FROM t",
    );
    db.session.take_notices();
    for (sql, state, message) in [
        ("DROP TABLE IF EXISTS x", "00000", "table \"x\" does not exist, skipping"),
        ("DROP INDEX IF EXISTS x", "00000", "index \"x\" does not exist, skipping"),
        ("DROP VIEW IF EXISTS x", "00000", "view \"x\" does not exist, skipping"),
        ("ALTER TABLE IF EXISTS x ADD COLUMN a INT", "00000", "relation \"x\" does not exist, skipping"),
        ("ALTER INDEX IF EXISTS x RENAME TO y", "00000", "relation \"x\" does not exist, skipping"),
        ("CREATE TABLE IF NOT EXISTS t (a INT)", "42P07", "relation \"t\" already exists, skipping"),
        ("CREATE INDEX IF NOT EXISTS t_a ON t (a)", "42P07", "relation \"t_a\" already exists, skipping"),
        ("CREATE VIEW IF NOT EXISTS v AS SELECT 1", "42P07", "relation \"v\" already exists, skipping"),
    ] {
        db.run(sql);
        let told = db.session.take_notices();
        let told: Vec<_> =
            told.iter().map(|notice| (notice.severity, notice.state, notice.message.as_str())).collect();
        assert_eq!(told, [("NOTICE", state, message)], "{sql}");
    }
    db.run("DROP VIEW IF EXISTS v;\n DROP INDEX IF EXISTS t_a;\n DROP TABLE IF EXISTS t");
    assert_eq!(db.session.take_notices(), []);
}

/// Several changes of one statement are made together or not at all.
#[test]
fn a_change_that_fails_takes_back_those_before_it() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (a INT PRIMARY KEY, b TEXT DEFAULT 'b', c INT, d INT CHECK (d < 100), UNIQUE (c)) WITH (ttl = '1 min');
CREATE INDEX t_b ON t (b);
INSERT INTO t VALUES (1, 'x', 1, 10), (2, 'y', 2, 20)",
    );
    let shape = |db: &mut Db| {
        let table = db.store.catalog().table("t").map(|table| table.def().clone()).expect("t is there");
        let names = |names: Vec<&str>| names.join(",");
        let columns = names(table.columns.iter().map(|column| column.name.as_str()).collect());
        let mut indexes: Vec<&str> = table.indexes.iter().map(|index| index.name.as_str()).collect();
        indexes.sort_unstable();
        let indexes = names(indexes);
        let checks = names(table.checks.iter().map(|check| check.name.as_str()).collect());
        let default = format!("{:?}", table.columns[1].default);
        let rows = db.query("SELECT * FROM t ORDER BY a");
        format!("{columns} | {indexes} | {checks} | {default} | {:?} | {rows}", table.options.ttl_ms)
    };
    let before = shape(&mut db);
    for (changes, state) in [
        ("ADD COLUMN e INT DEFAULT 5, ADD CHECK (c > 1)", "23514"),
        ("DROP COLUMN d, ADD COLUMN e INT, DROP COLUMN a", "2BP01"),
        ("DROP CONSTRAINT t_d_check, DROP COLUMN d, ADD COLUMN d TEXT, DROP COLUMN absent", "42703"),
        (
            "ADD COLUMN e INT AS (c * 2), ALTER b SET DEFAULT 'z', ALTER b SET NOT NULL, ADD UNIQUE (e, absent)",
            "42703",
        ),
        ("DROP CONSTRAINT t_c_key, ALTER c TYPE TEXT, ADD UNIQUE (b, c), ADD CHECK (c = '1')", "23514"),
        ("SET (ttl = '5 min'), RENAME COLUMN b TO bb, RENAME TO other, ADD CHECK (a > 1)", "23514"),
        ("ADD COLUMN e INT DEFAULT 1 UNIQUE", "23505"),
        ("ADD COLUMN e INT; DROP COLUMN c", "42601"),
    ] {
        assert_eq!(db.state(&format!("ALTER TABLE t {changes}")), state, "{changes}");
        assert_eq!(shape(&mut db), before, "{changes}");
        assert_eq!(db.state("INSERT INTO t VALUES (3, 'z', 2, 1)"), "23505", "{changes}");
        assert_eq!(db.query("SELECT a FROM t WHERE c = 2 AND b = 'y' AND d = 20"), "2", "{changes}");
    }
    db.run(
        "ALTER TABLE t ADD COLUMN e INT UNIQUE, ADD COLUMN f TEXT DEFAULT 'f' CHECK (f <> ''), DROP CONSTRAINT t_d_check, DROP COLUMN d",
    );
}

/// PostgreSQL's words in definitions mean what they mean in queries.
#[test]
fn definitions_speak_postgresqls_dialect() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (
    id INT PRIMARY KEY,
    name TEXT CHECK (name ILIKE 'a%' AND length(name)::int > 1) DEFAULT 'ab'::text,
    at TIMESTAMPTZ DEFAULT now() + interval '1 day' NOT NULL,
    n INT DEFAULT '4'::int + 1,
    day DATE GENERATED ALWAYS AS (at::date) STORED,
    CONSTRAINT small CHECK (n::text ~ '^[0-9]+$' AND n <> ALL(ARRAY[7, 8]))
);
INSERT INTO t (id) VALUES (1);
INSERT INTO t (id, name, at) VALUES (2, 'Anna', '2026-11-21 20:00+01')",
    );
    assert_eq!(db.query("SELECT name, n, at > now() + interval '23 hours' FROM t WHERE id = 1"), "ab,5,1");
    assert_eq!(db.query("SELECT day, n FROM t WHERE id = 2"), "2026-11-21,5");
    assert_eq!(db.state("INSERT INTO t (id, name) VALUES (3, 'bob')"), "23514");
    assert_eq!(db.error("INSERT INTO t (id, n) VALUES (3, 7)").state, "23514");
    db.run(
        "CREATE INDEX t_day ON t USING btree ((at::date), n DESC) WHERE name ILIKE 'a%';
CREATE VIEW recent AS SELECT id, at::date AS day, '1'::int AS one FROM t WHERE at > now() - interval '1 year' AND name ILIKE 'an%';
CREATE TABLE copy AS SELECT id, n::text AS n FROM t WHERE name ~ '^A';
ALTER TABLE copy ADD COLUMN at TIMESTAMPTZ DEFAULT '2026-11-21 20:00+01'::timestamptz, ADD CHECK (id::text <> '9');
ALTER TABLE copy ALTER COLUMN n SET DEFAULT (17::text || 'x');
ALTER TABLE copy ALTER COLUMN n TYPE INT USING n::int * 2",
    );
    let plan = db.plan("SELECT id FROM t WHERE at::date = '2026-11-21' AND name ILIKE 'a%'");
    assert!(plan.contains("t_day"), "{plan}");
    assert_eq!(db.query("SELECT id, day, one FROM recent"), "2,2026-11-21,1");
    assert_eq!(db.query("SELECT id, n, at FROM copy"), "2,10,2026-11-21 19:00:00+00:00");
    assert_eq!(db.state("INSERT INTO copy (id, n) VALUES (9, 1)"), "23514");
    let error = db.error("CREATE TABLE u (a INT CHECK (a::absent > 1))");
    assert_eq!((error.state, error.position.is_some()), ("42704", true), "{error}");
}

#[test]
fn a_new_prefix_says_which_rows_it_takes() {
    let mut db = Db::new();
    db.run("INSERT INTO memcached VALUES ('f:1', 'a'), ('f:2', 'b'), ('f:x', 'c'), ('g:1', 'd')");
    db.session.take_notices();
    db.run(
        "CREATE TABLE f (id INT PRIMARY KEY, v TEXT) WITH (prefix = 'f:', value = 'v', strict_keys = off)",
    );
    let told = |db: &mut Db| {
        let notices = db.session.take_notices();
        notices.iter().map(|notice| notice.message.clone()).collect::<Vec<_>>().join("; ")
    };
    let took = |rows, prefix| {
        format!(
            "{rows} of table \"memcached\" went: their keys begin with '{prefix}' and belong to this table now"
        )
    };
    assert_eq!(told(&mut db), took("2 rows", "f:"));
    assert_eq!(db.query("SELECT key FROM memcached ORDER BY key"), "f:x;g:1");
    db.run("ALTER TABLE f SET (strict_keys = on)");
    assert_eq!(told(&mut db), took("1 row", "f:"));
    db.run("CREATE TABLE h (id INT PRIMARY KEY, v TEXT) WITH (prefix = 'h:', value = 'v')");
    assert_eq!(told(&mut db), "");
    assert_eq!(db.query("SELECT key FROM memcached"), "g:1");
}

/// NULL comes where PostgreSQL has it, and an index still gives the order, whichever executor walks it.
#[test]
fn an_index_gives_the_order_of_a_column_with_nulls() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k INT PRIMARY KEY, g INT NOT NULL, a INT, d TEXT);
         CREATE INDEX t_ga ON t (g, a, k);
         CREATE INDEX t_a ON t (a DESC);
         CREATE INDEX t_d ON t (lower(d));
         INSERT INTO t VALUES (1, 1, 5, 'B'), (2, 1, NULL, NULL), (3, 1, 4, 'a'), (4, 2, NULL, 'c'), (5, 1, NULL, 'D')",
    );
    let served = [
        ("SELECT k FROM t ORDER BY a LIMIT 2", "3;1"),
        ("SELECT a FROM t ORDER BY a DESC LIMIT 4", "NULL;NULL;NULL;5"),
        ("SELECT a FROM t ORDER BY 1", "4;5;NULL;NULL;NULL"),
        ("SELECT x.a AS b FROM t x ORDER BY b", "4;5;NULL;NULL;NULL"),
        ("SELECT k FROM t WHERE g = 1 ORDER BY a, k", "3;1;2;5"),
        ("SELECT k FROM t WHERE g = 1 ORDER BY a DESC, k DESC", "5;2;1;3"),
        ("SELECT k FROM t WHERE g = 1 AND k <> 2 ORDER BY a DESC, k DESC LIMIT 2", "5;1"),
        ("SELECT k FROM t WHERE g = 1 AND a > 4 ORDER BY a", "1"),
        ("SELECT k FROM t WHERE g = 1 AND a IS NULL ORDER BY a, k", "2;5"),
        ("SELECT k FROM t ORDER BY lower(d)", "3;1;4;5;2"),
        ("SELECT x.k FROM t x JOIN t y ON y.k = x.k WHERE x.g = 1 ORDER BY x.a DESC, x.k DESC", "5;2;1;3"),
        ("SELECT k FROM t WHERE g = 1 ORDER BY a NULLS FIRST, k LIMIT 2", "2;5"),
    ];
    for (sql, expected) in served {
        assert_eq!(db.query(sql), expected, "{sql}");
        let plan = db.plan(sql);
        assert!(!plan.contains("TEMP B-TREE"), "{sql}: {plan}");
    }
}
