//! Each kind of statement, by example.

use crate::common::Db;
use sql::ComputedBy;
use store::value::Value;

fn fragments() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE frag (key TEXT PRIMARY KEY, page_id INT, body TEXT NOT NULL DEFAULT '-', w REAL);
         CREATE INDEX frag_page ON frag (page_id);
         INSERT INTO frag VALUES ('a', 1, 'A', 1.5), ('b', 1, 'B', NULL), ('c', 2, 'C', 3), ('d', NULL, 'D', 0);
        ",
    );
    db
}

/// A `set` was refused because a part of its key is no number.
#[test]
fn a_generated_column_takes_what_it_can_of_a_text() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (key TEXT PRIMARY KEY, id INT AS (CAST(split_part(key, '/', 2) AS INT)))");
    db.run("INSERT INTO t VALUES ('a'), ('a/17')");
    assert_eq!(db.query("SELECT id FROM t ORDER BY key"), "0;17");
}

/// It ended with the name of a function that no user knows.
#[test]
fn what_a_row_cannot_compute_by_itself_is_named() {
    let mut db = Db::new();
    db.run("CREATE TYPE mood AS ENUM ('sad', 'ok')");
    assert_eq!(
        db.state("CREATE TABLE t (id INT PRIMARY KEY, e mood, CHECK (greatest(e, 'sad') > 'sad'))"),
        "0A000"
    );
    db.run("CREATE TABLE t (id INT PRIMARY KEY, e mood, CHECK (coalesce(e, 'ok') > 'sad'))");
    assert_eq!(db.state("INSERT INTO t VALUES (1, 'sad')"), "23514");
}

/// Two rows that PostgreSQL takes for one were there: `'1 mon'` and `'30 days'` are one interval and two texts.
#[test]
fn no_key_tells_rows_apart_by_how_a_value_is_written() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, iv INTERVAL, j JSONB, n NUMERIC[], m NUMERIC UNIQUE)");
    for sql in [
        "CREATE TABLE u (iv INTERVAL PRIMARY KEY)",
        "CREATE TABLE u (id INT PRIMARY KEY, j JSONB UNIQUE)",
        "CREATE UNIQUE INDEX t_n ON t (id, n)",
        "ALTER TABLE t ADD UNIQUE (iv)",
        "ALTER TABLE t ADD COLUMN other INTERVAL UNIQUE",
    ] {
        assert_eq!(db.state(sql), "0A000", "{sql}");
    }
    db.run("CREATE INDEX t_iv ON t (iv)");
    db.run("INSERT INTO t VALUES (1, '1 mon', '1.0', '{1.0}', 1.0)");
    assert_eq!(db.state("INSERT INTO t (id, m) VALUES (2, 1)"), "23505");
}

/// An index by `gin` was made in silence, and each `tags @> ...` read all rows.
#[test]
fn an_index_of_another_method_says_what_it_is() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, tags DATE[])");
    db.session.take_notices();
    db.run("CREATE INDEX t_tags ON t USING gin (tags)");
    let notices = db.session.take_notices();
    assert!(notices.iter().any(|notice| notice.message.contains("no gin index")), "{notices:?}");
    // It is there, serves what it can, and EXPLAIN does not pretend more.
    assert!(db.plan("SELECT id FROM t WHERE tags = '{2026-01-15}'").contains("t_tags"));
    assert!(!db.plan("SELECT id FROM t WHERE tags @> '{2026-01-15}'").contains("t_tags"));
    db.run(
        "CREATE INDEX IF NOT EXISTS t_tags ON t USING gin (tags);\nCREATE INDEX other ON t USING btree (id)",
    );
    assert!(!db.session.take_notices().iter().any(|notice| notice.message.contains("gin index")));
    assert_eq!(db.state("CREATE INDEX another ON t USING frob (id)"), "42704");
}

/// The same texts, by turns: a plan of the one executor is none of the other's.
#[test]
fn a_session_chooses_who_runs_its_statements() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, n INT);\nCREATE INDEX t_n ON t (n)");
    for id in 0..3 {
        for (native, by) in [(true, ComputedBy::Native), (false, ComputedBy::Sqlite)] {
            db.session.set_native(Some(native));
            for sql in [
                format!("INSERT INTO t VALUES ({id}, 7)"),
                "UPDATE t SET n = n + 1 WHERE id = 0".to_owned(),
                "SELECT n FROM t WHERE id = 0".to_owned(),
                format!("SELECT id FROM t WHERE n = {id}"),
                "SELECT count(*), sum(n) FROM t".to_owned(),
                "SELECT a.n FROM t AS a JOIN t AS b ON b.id = a.n WHERE a.id = 0".to_owned(),
                format!("DELETE FROM t WHERE id = {id}"),
            ] {
                let explained = db.query(&format!("EXPLAIN {sql}"));
                assert_eq!(explained.starts_with("Executor: native"), native, "{sql}: {explained}");
                assert_eq!(db.computed_by(&sql), by, "{sql}");
            }
        }
    }
    db.session.set_native(Some(true));
    assert_eq!(db.computed_by("CREATE INDEX other ON t (n)"), ComputedBy::Nobody);
    // Within a transaction, what one of several new rows breaks is found by the general way.
    db.run("BEGIN");
    for (sql, name, by) in [
        ("INSERT INTO t VALUES (8, 8), (9, 9)", "sqlite", ComputedBy::Sqlite),
        ("INSERT INTO t VALUES (10, 10)", "native", ComputedBy::Native),
    ] {
        assert!(db.query(&format!("EXPLAIN {sql}")).starts_with(&format!("Executor: {name}")));
        assert_eq!(db.computed_by(sql), by);
    }
    assert_eq!(db.computed_by("SELECT n FROM t WHERE id = 9"), ComputedBy::Native);
}

#[test]
fn rows_are_read_by_key_by_index_and_by_scan() {
    let mut db = fragments();
    assert_eq!(db.query("SELECT body FROM frag WHERE key = 'b'"), "B");
    assert_eq!(db.query("SELECT key FROM frag WHERE page_id = 1 ORDER BY key"), "a;b");
    assert_eq!(db.query("SELECT key FROM frag WHERE page_id > 1"), "c");
    assert_eq!(db.query("SELECT key FROM frag WHERE page_id IS NULL"), "d");
    assert_eq!(db.query("SELECT count(*), sum(w) FROM frag"), "4,4.5");
    assert_eq!(db.query("SELECT * FROM frag WHERE key = 'c'"), "c,2,C,3.0");
    assert_eq!(db.query("SELECT key FROM frag WHERE key IN ('a', 'c', 'x') ORDER BY 1"), "a;c");
    assert_eq!(db.query("SELECT key FROM frag WHERE page_id IN (2, 1) ORDER BY key DESC"), "c;b;a");
    assert_eq!(db.query("SELECT page_id FROM frag ORDER BY page_id DESC"), "NULL;2;1;1");
    assert_eq!(db.query("SELECT key FROM frag WHERE page_id < '2' ORDER BY key"), "a;b");
    assert_eq!(db.query("SELECT key FROM frag WHERE page_id = 1.0 AND body = 'B'"), "b");
    assert_eq!(
        db.query("SELECT x.key FROM frag x JOIN frag y ON y.page_id = x.page_id + 1 ORDER BY 1"),
        "a;b"
    );
    assert_eq!(db.query_with("SELECT body FROM frag WHERE key = $1", &[Value::from("c")]), "C");
    assert_eq!(db.query("VALUES (1, 'x'), (2, NULL)"), "1,x;2,NULL");
    assert_eq!(
        db.query(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n"
        ),
        "1;2;3"
    );
    assert_eq!(db.query("SELECT value FROM json_each('[1,2]')"), "1;2");
    assert_eq!(db.query("SELECT key, row_number() OVER (ORDER BY key) FROM frag LIMIT 2"), "a,1;b,2");
}

#[test]
fn plans_name_the_index() {
    let mut db = fragments();
    db.run(
        "CREATE TABLE pair (a INT, b TEXT, c INT, PRIMARY KEY (a, b));\nCREATE INDEX pair_c ON pair (c, b)",
    );
    for (sql, part) in [
        ("SELECT * FROM frag WHERE page_id = 1", "frag_page (page_id=?)"),
        ("SELECT * FROM frag WHERE page_id > 1 AND page_id < 3", "frag_page (page_id>? AND page_id<?)"),
        ("SELECT * FROM frag WHERE key = 'a'", "frag_pkey (key=?)"),
        ("SELECT * FROM frag ORDER BY page_id LIMIT 1", "frag_page"),
        ("SELECT * FROM pair WHERE a = 1 AND b = 'x'", "pair_pkey (a=? AND b=?)"),
        ("SELECT * FROM pair WHERE a = 1", "pair_pkey (a=?)"),
        ("SELECT * FROM pair WHERE c = 1 AND b LIKE 'p%'", "pair_c (c=? AND b LIKE ?)"),
        ("DELETE FROM frag WHERE page_id = 17", "frag_page (page_id=?)"),
        ("UPDATE frag SET body = 'x' WHERE key = 'a'", "frag_pkey (key=?)"),
    ] {
        let plan = db.plan(sql);
        assert!(plan.contains(part), "{sql}: {plan}");
    }
    assert!(!db.plan("SELECT * FROM pair WHERE c = 3 ORDER BY b").contains("TEMP B-TREE"));
    assert!(db.plan("SELECT * FROM frag WHERE body = 'x'").contains("every row"));
}

#[test]
fn inserts_and_their_conflicts() {
    let mut db = fragments();
    assert_eq!(db.affected("INSERT INTO frag (key, page_id) VALUES ('e', 3)"), 1);
    assert_eq!(db.query("SELECT * FROM frag WHERE key = 'e'"), "e,3,-,NULL");
    let error = db.error("INSERT INTO frag (key) VALUES ('f'), ('a')");
    assert_eq!(error.state, "23505");
    assert_eq!(error.message, "duplicate key value violates unique constraint \"frag_pkey\"");
    assert_eq!(db.query("SELECT count(*) FROM frag WHERE key = 'f'"), "0");
    assert_eq!(db.state("INSERT INTO frag (key) VALUES ('f'), ('f')"), "23505");
    assert_eq!(db.affected("INSERT OR IGNORE INTO frag (key) VALUES ('f'), ('a'), ('f')"), 1);
    assert_eq!(db.affected("REPLACE INTO frag (key, page_id) VALUES ('a', 9)"), 1);
    assert_eq!(db.query("SELECT * FROM frag WHERE key = 'a'"), "a,9,-,NULL");
    let upsert = "INSERT INTO frag (key, w) VALUES ('a', 5), ('g', #), ('h', 2) ON CONFLICT (key) DO UPDATE SET w = coalesce(w, 0) + excluded.w";
    // A row that one statement meets twice is an error.
    assert_eq!(db.state(&upsert.replace("'h'", "'g'").replace('#', "1")), "21000");
    assert_eq!(db.affected(&upsert.replace('#', "3")), 3);
    db.run("DELETE FROM frag WHERE key = 'h'");
    assert_eq!(db.query("SELECT w FROM frag WHERE key IN ('a', 'g') ORDER BY key"), "5.0;3.0");
    assert_eq!(db.affected("INSERT INTO frag (key, w) VALUES ('a', 5) ON CONFLICT DO NOTHING"), 0);
    assert_eq!(
        db.affected("INSERT INTO frag AS f (key, w) VALUES ('a', 5), ('c', 7) ON CONFLICT (key) DO UPDATE SET w = f.w + 1, body = excluded.key WHERE f.w > 4"),
        1
    );
    assert_eq!(db.query("SELECT w, body FROM frag WHERE key IN ('a', 'c') ORDER BY key"), "6.0,a;3.0,C");
    assert_eq!(db.state("INSERT INTO frag (key) VALUES ('z') ON CONFLICT (page_id) DO NOTHING"), "42P10");
    assert_eq!(
        db.affected("INSERT INTO frag (key, page_id) SELECT key || '2', page_id FROM frag WHERE page_id = 1"),
        1
    );
    assert_eq!(db.query("SELECT key FROM frag WHERE page_id = 1 ORDER BY key"), "b;b2");
    assert_eq!(db.state("INSERT INTO frag (key, body) VALUES ('n', NULL)"), "23502");
    assert_eq!(db.state("INSERT INTO frag (body) VALUES ('n')"), "23502");
    assert_eq!(db.state("INSERT INTO frag (key, page_id) VALUES ('n', 'x')"), "22P02");
    assert_eq!(db.state("INSERT INTO frag (key, nope) VALUES ('n', 1)"), "42703");
    assert_eq!(db.state("INSERT INTO nope VALUES (1)"), "42P01");
    assert_eq!(db.state("INSERT INTO frag (key, page_id) VALUES ('n')"), "42601");
    assert_eq!(db.state("INSERT INTO frag VALUES (1, 2, 3, 4, 5)"), "42601");
    db.run("WITH n(k) AS (VALUES ('w1'), ('w2')) INSERT INTO frag (key) SELECT k FROM n");
    assert_eq!(db.query("SELECT count(*) FROM frag WHERE key IN ('w1', 'w2')"), "2");
}

#[test]
fn unique_indexes() {
    let mut db = Db::new();
    db.run("CREATE TABLE u (id INT PRIMARY KEY, a INT, b INT, c TEXT UNIQUE, UNIQUE (a, b));\n INSERT INTO u VALUES (1, 1, 1, 'x'), (2, 1, 2, 'y'), (3, NULL, 1, NULL), (4, NULL, 1, NULL)");
    let error = db.error("INSERT INTO u VALUES (5, 1, 2, 'z')");
    assert_eq!((error.state, error.message.contains("u_a_b_key")), ("23505", true), "{error}");
    assert_eq!(
        db.error("UPDATE u SET c = 'x' WHERE id = 2").message,
        "duplicate key value violates unique constraint \"u_c_key\""
    );
    assert_eq!(db.affected("INSERT OR REPLACE INTO u VALUES (5, 1, 1, 'y')"), 1);
    assert_eq!(db.query("SELECT id FROM u ORDER BY id"), "3;4;5");
    assert_eq!(
        db.affected("INSERT OR IGNORE INTO u VALUES (6, 1, 1, 'q'), (7, 8, 8, 'y'), (8, 8, 8, 'ok')"),
        1
    );
    assert_eq!(
        db.affected("INSERT INTO u VALUES (9, 8, 8, 'n') ON CONFLICT (a, b) DO UPDATE SET c = 'up'"),
        1
    );
    assert_eq!(db.query("SELECT id, c FROM u WHERE a = 8"), "8,up");
    assert_eq!(db.state("INSERT INTO u VALUES (9, 8, 8, 'n') ON CONFLICT (c) DO NOTHING"), "23505");
    assert_eq!(db.affected("UPDATE OR IGNORE u SET c = 'same' WHERE id >= 4"), 1);
    assert_eq!(db.affected("UPDATE OR REPLACE u SET c = 'same' WHERE id >= 4"), 3);
    assert_eq!(db.query("SELECT count(*) FROM u WHERE c = 'same'"), "1");
}

#[test]
fn updates_and_deletes() {
    let mut db = fragments();
    assert_eq!(db.affected("UPDATE frag SET w = w + 1, body = body || '!' WHERE page_id = 1"), 2);
    assert_eq!(db.query("SELECT w, body FROM frag WHERE page_id = 1 ORDER BY key"), "2.5,A!;NULL,B!");
    assert_eq!(db.affected("UPDATE frag SET key = key || key WHERE page_id = 2"), 1);
    assert_eq!(db.query("SELECT key FROM frag ORDER BY key"), "a;b;cc;d");
    assert_eq!(db.state("UPDATE frag SET key = 'a' WHERE key = 'b'"), "23505");
    assert_eq!(db.state("UPDATE frag SET key = 'q'"), "23505");
    assert_eq!(
        db.affected("UPDATE frag SET key = CASE key WHEN 'a' THEN 'b' ELSE 'a' END WHERE key IN ('a', 'b')"),
        2
    );
    assert_eq!(db.query("SELECT body FROM frag WHERE key IN ('a', 'b') ORDER BY key"), "B!;A!");
    assert_eq!(db.affected("UPDATE frag SET (page_id, w) = (7, 8) WHERE key = 'd'"), 1);
    assert_eq!(db.affected("UPDATE frag SET (page_id, w) = (SELECT o.page_id + 1, 9 FROM frag o WHERE o.key = 'd') WHERE key = 'a'"), 1);
    assert_eq!(db.query("SELECT page_id, w FROM frag WHERE key IN ('a', 'd') ORDER BY key"), "8,9.0;7,8.0");
    assert_eq!(db.affected("UPDATE frag AS f SET w = n.value FROM (VALUES ('a', 1), ('d', 2)) AS m, json_each('[42]') AS n WHERE m.column1 = f.key"), 2);
    assert_eq!(db.state("UPDATE frag SET body = NULL"), "23502");
    assert_eq!(db.state("UPDATE frag SET page_id = 'x'"), "22P02");
    assert_eq!(db.affected("DELETE FROM frag WHERE page_id = 7"), 1);
    assert_eq!(db.affected("DELETE FROM frag WHERE key ILIKE 'C%'"), 1);
    assert_eq!(db.affected("DELETE FROM frag ORDER BY key LIMIT 1"), 1);
    assert_eq!(db.affected("DELETE FROM frag"), 1);
    assert_eq!(db.query("SELECT count(*) FROM frag"), "0");
}

#[test]
fn returning() {
    let mut db = fragments();
    assert_eq!(
        db.query("INSERT INTO frag (key, w) VALUES ('x', 1), ('y', 2) RETURNING key, w * 2 AS twice, body"),
        "x,2.0,-;y,4.0,-"
    );
    assert_eq!(db.query("UPDATE frag SET w = w + 1 WHERE key = 'x' RETURNING *"), "x,NULL,-,2.0");
    // Rows come in no order.
    let gone = db.query("DELETE FROM frag WHERE page_id = 1 RETURNING key, page_id");
    assert!(["a,1;b,1", "b,1;a,1"].contains(&gone.as_str()), "{gone}");
    assert_eq!(db.query("INSERT INTO frag (key, w) VALUES ('x', 5) ON CONFLICT (key) DO UPDATE SET w = excluded.w RETURNING w"), "5.0");
    let (done, rows) = db.execute("DELETE FROM frag WHERE key = 'x' RETURNING key AS gone", &[]).unwrap();
    assert_eq!((done.affected, done.tag, rows.names), (1, "DELETE", vec!["gone".to_owned()]));
    assert_eq!(db.state("DELETE FROM frag RETURNING nope"), "42703");
    assert_eq!(db.query("SELECT count(*) FROM frag"), "3");
}

#[test]
fn definitions() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT, b TEXT DEFAULT 'x', c REAL DEFAULT -1.5) WITH (ttl = '5 min', max_rows = 1000)");
    db.run("CREATE TABLE IF NOT EXISTS t (z INT)");
    assert_eq!(db.state("CREATE TABLE t (z INT)"), "42P07");
    db.run("INSERT INTO t (a) VALUES (1), (1);\nINSERT INTO t DEFAULT VALUES");
    assert_eq!(db.query("SELECT * FROM t ORDER BY a"), "1,x,-1.5;1,x,-1.5;NULL,x,-1.5");
    db.run("CREATE INDEX t_a ON t (a);\nCREATE INDEX IF NOT EXISTS t_a ON t (a)");
    assert_eq!(db.state("CREATE INDEX t_a ON t (a)"), "42P07");
    assert_eq!(db.state("CREATE UNIQUE INDEX t_u ON t (a)"), "23505");
    db.run("ALTER TABLE t SET (ttl = '1 h');\nALTER TABLE t RESET (max_rows);\nDROP INDEX t_a;\nDROP INDEX IF EXISTS t_a");
    assert_eq!(db.state("DROP INDEX t_a"), "42704");
    db.run("TRUNCATE t");
    assert_eq!(db.query("SELECT count(*) FROM t"), "0");
    db.run("DROP TABLE t;\nDROP TABLE IF EXISTS t");
    assert_eq!(db.state("DROP TABLE t"), "42P01");
    assert_eq!(db.state("SELECT * FROM t"), "42P01");
    assert_eq!(db.state("TRUNCATE nope"), "42P01");
    assert_eq!(db.state("ALTER TABLE nope SET (ttl = 1)"), "42P01");
    for (sql, state) in [
        ("CREATE TEMP TABLE t (a INT)", "0A000"),
        ("CREATE TEMP VIEW v AS SELECT 1", "0A000"),
        ("CREATE TRIGGER r AFTER INSERT ON memcached BEGIN SELECT 1; END", "0A000"),
        ("CREATE TABLE t (a POINT)", "42704"),
        ("CREATE TABLE t (a INT, A INT)", "42701"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b))", "42703"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT, PRIMARY KEY (b))", "42P16"),
        ("CREATE TABLE t (_ttl INT)", "42939"),
        ("CREATE TABLE sqlite_x (a INT)", "42939"),
        ("CREATE TABLE t (a INT) WITH (nope = 1)", "22023"),
        ("CREATE TABLE t (a INT) WITH (shared_memory = on)", "0A000"),
        ("CREATE INDEX i ON memcached (lower(key))", "0A000"),
        ("CREATE INDEX i ON memcached (key) WHERE key > 'a'", "0A000"),
        ("DROP TABLE memcached", "42501"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}");
    }
}

#[test]
fn the_built_in_table() {
    let mut db = Db::new();
    db.run("INSERT INTO memcached VALUES ('k', 'v');\nINSERT INTO memcached (key, value, flags, expiry) VALUES ('t', 'w', 7, 1700000060)");
    assert_eq!(
        db.query("SELECT key, value, flags, expiry, size > 0, age FROM memcached ORDER BY key"),
        "k,v,0,NULL,1,0;t,w,7,1700000060,1,0"
    );
    db.run("UPDATE memcached SET flags = 3, expiry = NULL WHERE key = 't'");
    assert_eq!(db.query("SELECT flags, expiry FROM memcached WHERE key = 't'"), "3,NULL");
    assert_eq!(db.state("UPDATE memcached SET cas = 1"), "428C9");
    assert_eq!(db.query("SELECT _ttl, _expires_at, _flags FROM memcached WHERE key = 't'"), "NULL,NULL,3");
    db.run("UPDATE memcached SET _ttl = 10 WHERE key = 't'");
    assert_eq!(db.query("SELECT _ttl FROM memcached WHERE key = 't'"), "10");
    for seconds in [1, 8] {
        // The age is as exact as the store's last look at the clock.
        db.clock.advance(std::time::Duration::from_secs(seconds));
        db.store.tick();
    }
    assert_eq!(db.query("SELECT _ttl, age >= 8 FROM memcached WHERE key = 't'"), "1,1");
    db.clock.advance(std::time::Duration::from_secs(2));
    assert_eq!(db.query("SELECT count(*) FROM memcached"), "1");
}

#[test]
fn a_row_lives_where_memcached_looks_for_it() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE frag (key TEXT PRIMARY KEY, body TEXT) WITH (prefix = 'frag:', value = 'body');
         CREATE TABLE page (key TEXT PRIMARY KEY, body TEXT) WITH (prefix = 'frag:page:', value = 'body');
         INSERT INTO frag VALUES ('a', 'x');
         INSERT INTO memcached VALUES ('other', 'y')",
    );
    assert_eq!(db.state("INSERT INTO memcached VALUES ('frag:a', 'x')"), "23514");
    assert_eq!(db.state("INSERT INTO frag VALUES ('page:1', 'x')"), "23514");
    assert_eq!(db.state("UPDATE memcached SET key = 'frag:b'"), "23514");
    assert_eq!(
        db.error("UPDATE frag SET key = 'page:2'").message,
        "key \"frag:page:2\" belongs to table \"page\"; write it there"
    );
    assert_eq!(db.query("SELECT key FROM memcached"), "other");
}

#[test]
fn parameters() {
    let mut db = fragments();
    let key = Value::from("a");
    assert_eq!(
        db.query_with("SELECT $2, $1 || ?3", &[key.clone(), Value::Integer(2), Value::from("z")]),
        "2,az"
    );
    assert_eq!(
        db.query_with(
            "UPDATE frag SET w = ? WHERE key = ? RETURNING w + ?",
            &[Value::Integer(4), key.clone(), Value::Integer(1)]
        ),
        "5.0"
    );
    assert_eq!(db.query_with("INSERT INTO frag (key, w) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET w = $2 * 2 RETURNING w", &[key, Value::Integer(8)]), "16.0");
    assert_eq!(db.state("SELECT ?"), "08P01");
    assert_eq!(db.execute("SELECT 1", &[Value::Null]).unwrap_err().state, "08P01");
    assert_eq!(db.execute("DELETE FROM frag", &[Value::Null]).unwrap_err().state, "08P01");
}

#[test]
fn mistakes_have_states_and_places() {
    let mut db = fragments();
    for (sql, state, position) in [
        ("SELECT * FORM frag", "42601", Some(10)),
        ("SELECT nope FROM frag", "42703", Some(8)),
        ("SELECT * FROM nope", "42P01", None),
        ("UPDATE frag SET nope = 1", "42703", Some(17)),
        ("DELETE FROM frag WHERE nope = 1", "42703", Some(24)),
        ("SELECT nope()", "42883", None),
        ("SELECT 1; SELECT 2", "42601", Some(11)),
        ("DELETE FROM frag; DELETE FROM frag", "42601", None),
        ("SELECT (", "42601", None),
    ] {
        let error = db.error(sql);
        assert_eq!(error.state, state, "{sql}: {error}");
        if position.is_some() {
            assert_eq!(error.position, position, "{sql}: {error}");
        }
    }
    assert_eq!(db.query("SELECT count(*) FROM frag"), "4");
}

/// A definition is brought into other words before it is read. The places of its mistakes were those of the other
/// text, which may lie behind the end of the user's.
#[test]
fn mistakes_behind_rewritten_words_have_places_of_the_users_text() {
    let mut db = fragments();
    for (sql, mistake) in [
        ("CREATE TABLE n AS SELECT now() AS at; DELETE FORM frag", "DELETE"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1 AS a; DELETE FORM frag", "DELETE"),
        ("CREATE UNLOGGED TABLE n (a INT, b TEXT DEFAULT now()::text, FORM FORM FORM,)", ")"),
        ("CREATE INDEX i ON frag USING btree (w) FORM", "FORM"),
        ("ALTER TABLE frag ADD COLUMN n TEXT DEFAULT now()::text, FORM n", "FORM"),
    ] {
        let error = db.error(sql);
        let place = sql.rfind(mistake).map(|at| at + 1);
        assert_eq!(error.position, place, "{sql}: {error}");
    }
    let sql = "CREATE TABLE \"\" AS SELECT \"T\".* FROM sqlite_schema WHERE EXISTS (VALUES (1, 2, 3)); \
               UPDATE OR IGNORE t SET _ttl = --  RETURNING *";
    let error = db.error(sql);
    let place = sql.find("UPDATE").map(|at| at + 1);
    assert_eq!((error.state, error.position), ("42601", place), "{error}");
}

/// The columns of `CREATE TABLE ... AS` were called by the whole text of an expression, which a name has no room for,
/// and had the type of the first of several queries, which the rows of the others are not of.
#[test]
fn tables_made_of_any_query() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE a (x INT, z NUMERIC, b BLOB);
CREATE TABLE c (y TEXT);
INSERT INTO a VALUES (1, 2.5, x'61');
INSERT INTO c VALUES ('one');
CREATE VIEW v AS SELECT x FROM a UNION ALL SELECT z FROM a;
CREATE TABLE p AS SELECT x FROM a UNION ALL SELECT z FROM a;
CREATE TABLE r AS SELECT * FROM v;
CREATE TABLE s AS VALUES (1, x'61'), (2.5, x'62');
CREATE TABLE t AS SELECT x, x, x + 1 AS X, y FROM a, c;
CREATE TABLE u AS SELECT count(*) FILTER (WHERE x BETWEEN 1 AND 100 AND x IS NOT NULL AND b IS NOT NULL) FROM a",
    );
    assert_eq!(db.query("SELECT x FROM p ORDER BY x"), "1;2.5");
    assert_eq!(db.query("SELECT x FROM r ORDER BY x"), "1;2.5");
    assert_eq!(db.query("SELECT column1, hex(column2) FROM s ORDER BY column1"), "1,61;2.5,62");
    for query in ["SELECT x FROM a UNION ALL SELECT b FROM a", "VALUES (1, x'61'), (x'62', 2.5)"] {
        assert_eq!(db.state(&format!("CREATE TABLE w AS {query}")), "42804", "{query}");
    }
    let (_, rows) = db.execute("SELECT * FROM t", &[]).unwrap();
    assert_eq!(rows.names, ["x", "x:1", "X:2", "y"]);
    assert_eq!(
        db.state("INSERT INTO t (x) VALUES ('no number')"),
        "22P02",
        "a column unchanged keeps its type"
    );
    let (_, rows) = db.execute("SELECT * FROM u", &[]).unwrap();
    assert_eq!((rows.names[0].len(), &rows.rows[0][0]), (63, &store::value::Value::Integer(1)));
}

/// What there is not is told by its name, with what to do instead, and not as a mistake of grammar.
#[test]
fn what_there_is_not_is_told() {
    let mut db = Db::new();
    db.run("CREATE UNLOGGED TABLE t (a INT, b INT);\nCREATE INDEX CONCURRENTLY t_a ON t (a);\nDROP INDEX CONCURRENTLY t_a");
    for (sql, state) in [
        ("CREATE TEMP SEQUENCE s", "0A000"),
        ("CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1", "0A000"),
        ("CREATE TRIGGER r BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()", "0A000"),
        ("CREATE INDEX i ON t (_ttl)", "0A000"),
        ("SELECT ROW(a, b) FROM t", "0A000"),
        ("SELECT (a, b) IS NULL FROM t", "0A000"),
        ("SELECT jsonb_path_query('{}', '$.a')", "0A000"),
    ] {
        let error = db.error(sql);
        assert_eq!((error.state, error.hint.is_some()), (state, true), "{sql}: {error:?}");
    }
}
