//! Schemas beside `public`: what is in them, how names are looked for, what clients are told of them.

use crate::common::Db;
use store::definition::NAMESPACES_MAX;

fn db() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE SCHEMA s;
CREATE TYPE s.mood AS ENUM ('sad', 'happy');
CREATE TABLE s.t (id INT PRIMARY KEY CHECK (t.id > 0), m s.mood DEFAULT 'sad', u TEXT UNIQUE);
CREATE INDEX named ON s.t (lower(u));
CREATE TABLE t (id INT PRIMARY KEY, v TEXT);
CREATE INDEX named ON t (v);
INSERT INTO s.t VALUES (1, 'happy', 'x'), (2, DEFAULT, 'y');
INSERT INTO public.t VALUES (7, 'p')",
    );
    db
}

fn told(db: &mut Db, sql: &str) -> Vec<String> {
    db.session.take_notices();
    db.run(sql);
    db.session.take_notices().into_iter().map(|notice| notice.message).collect()
}

fn look_in(db: &mut Db, path: &[&str]) {
    db.session.set_path(Some(path.iter().map(|&name| name.to_owned()).collect()));
}

#[test]
fn statements_name_tables_with_their_schema() {
    let mut db = db();
    for (sql, expected) in [
        ("SELECT id FROM s.t ORDER BY id", "1;2"),
        ("SELECT t.id, s.t.u FROM \"s\".\"t\" WHERE s.t.id = 1", "1,x"),
        ("SELECT t.*, id FROM s.t ORDER BY t.id DESC LIMIT 1", "2,sad,y,2"),
        ("SELECT s.t.* FROM s.t WHERE t.u = 'x'", "1,happy,x"),
        ("SELECT a.id, b.v FROM s.t a JOIN t b ON b.id = a.id + 6", "1,p"),
        ("SELECT id FROM anything.s.t WHERE id = 1", "1"),
        ("SELECT t.v FROM t, s.t x WHERE x.id = 1", "p"),
        ("WITH t AS (SELECT 9 AS id) SELECT t.id FROM t", "9"),
        ("SELECT count(*) FROM S.T", "2"),
        ("SELECT 'happy'::s.mood, CAST('sad' AS s.mood), '{sad}'::s.mood[]", "happy,sad,[\"sad\"]"),
        ("SELECT id FROM s.t ORDER BY m DESC", "1;2"),
        ("INSERT INTO s.t VALUES (3, 'sad', 'z') RETURNING t.id, m", "3,sad"),
        ("INSERT INTO s.t VALUES (3) ON CONFLICT (id) DO UPDATE SET u = t.u || '!' RETURNING u", "z!"),
        ("UPDATE s.t SET u = 'w' WHERE t.id = 3 RETURNING s.t.u", "w"),
        ("UPDATE s.t a SET u = b.v FROM t b WHERE a.id = 3 RETURNING a.u", "p"),
        ("DELETE FROM s.t WHERE s.t.id = 3 RETURNING id", "3"),
    ] {
        let rows = db.query(sql);
        assert_eq!(rows, expected, "{sql}");
    }
    assert!(db.is_native("SELECT u FROM s.t WHERE id = 1"));
    for (sql, state, message) in [
        ("SELECT * FROM nosuch.t", "42P01", "relation \"nosuch.t\" does not exist"),
        ("SELECT * FROM s.nosuch", "42P01", "relation \"s.nosuch\" does not exist"),
        ("INSERT INTO s.nosuch VALUES (1)", "42P01", "relation \"s.nosuch\" does not exist"),
        ("SELECT 1::s.nosuch", "42704", "type \"s.nosuch\" does not exist"),
        ("SELECT 'x'::s.mood", "22P02", "invalid input value for enum mood: \"x\""),
        ("INSERT INTO s.t VALUES (4, 'sad', 'x')", "23505", "violates unique constraint \"t_u_key\""),
        ("INSERT INTO s.t VALUES (-4)", "23514", "relation \"t\" violates check constraint \"t_id_check\""),
    ] {
        let error = db.error(sql);
        assert_eq!(error.state, state, "{sql}: {error}");
        assert!(error.message.contains(message), "{sql}: {error}");
    }
    let error = db.error("INSERT INTO s.t VALUES (1, 'sad', 'q')");
    assert_eq!(error.table.as_deref(), Some(&("s".to_owned(), "t".to_owned())));
}

#[test]
fn names_are_looked_for_along_the_path() {
    let mut db = db();
    db.run("CREATE TABLE only (a INT);\nCREATE SCHEMA e");
    for (path, sql, expected) in [
        (&["s", "public"][..], "SELECT count(*) FROM t", "2"),
        (&["public", "s"], "SELECT count(*) FROM t", "1"),
        (&["e", "nosuch", "s"], "SELECT u FROM t WHERE t.id = 1", "x"),
        (&["s", "public"], "SELECT p.v, t.u FROM public.t p JOIN t ON p.id - 5 = t.id", "p,y"),
        (&["s", "public"], "SELECT count(*) FROM only", "0"),
        (&["s"], "SELECT 'happy'::mood", "happy"),
        (
            &["s"],
            "SELECT relname FROM pg_class WHERE oid = 't'::regclass AND relnamespace = 's'::regnamespace",
            "t",
        ),
        (&["s"], "SELECT count(*) FROM memcached", "0"),
        (&["s", "public"], "SELECT current_schema(), current_schemas(false)", "s,[\"s\",\"public\"]"),
        (&["nosuch"], "SELECT current_schema()", "NULL"),
        (&["s"], "SELECT 't'::regclass::text, 'public.t'::regclass::text", "t,public.t"),
        (&["public"], "SELECT 't'::regclass::text, 's.t'::regclass::text", "t,s.t"),
        (&[], "SELECT 's.t'::regclass::text, 'public.t'::regclass::text", "s.t,public.t"),
        (
            &["s"],
            "SELECT pg_table_is_visible('t'::regclass), pg_table_is_visible('public.t'::regclass)",
            "1,0",
        ),
        (&["s"], "SELECT pg_type_is_visible('mood'::regtype), 'mood'::regtype::text", "1,s.mood"),
    ] {
        look_in(&mut db, path);
        assert_eq!(db.query(sql), expected, "{path:?} {sql}");
    }
    look_in(&mut db, &["s"]);
    for (sql, state) in [
        ("SELECT * FROM only", "42P01"),
        ("DROP TABLE only", "42P01"),
        ("INSERT INTO only VALUES (1)", "42P01"),
        ("SELECT 'only'::regclass", "42P01"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}");
    }
    // What is made without a schema is made in the first that there is.
    look_in(&mut db, &["nosuch", "s", "public"]);
    db.run(
        "CREATE TABLE made (a INT);\nCREATE VIEW seen AS SELECT a FROM made;\nINSERT INTO made VALUES (5)",
    );
    db.session.set_path(None);
    assert_eq!(db.query("SELECT a FROM s.made"), "5");
    assert_eq!(db.query("SELECT seen.a FROM s.seen"), "5");
    assert_eq!(db.state("SELECT * FROM made"), "42P01");
    // A schema that is called like the role is looked into first, as `"$user", public` says.
    db.run("CREATE SCHEMA AUTHORIZATION sqlcached_user");
    let identity = sql::Identity { role: "sqlcached_user".to_owned(), ..db.session.identity().clone() };
    db.session.set_identity(identity);
    db.run("CREATE TABLE mine (a INT)");
    assert_eq!(db.query("SELECT count(*) FROM sqlcached_user.mine"), "0");
    assert_eq!(db.query("SELECT count(*) FROM mine, t"), "0");
}

#[test]
fn definitions_are_made_changed_and_dropped() {
    let mut db = db();
    for (sql, state) in [
        ("CREATE SCHEMA s", "42P06"),
        ("CREATE SCHEMA public", "42P06"),
        ("CREATE SCHEMA pg_x", "42939"),
        ("CREATE SCHEMA main", "42939"),
        ("CREATE TABLE nosuch.t (a INT)", "3F000"),
        ("CREATE TYPE nosuch.x AS ENUM ('a')", "3F000"),
        ("CREATE TABLE s.t (a INT)", "42P07"),
        ("CREATE TYPE s.mood AS ENUM ('a')", "42710"),
        ("CREATE INDEX named ON s.t (m)", "42P07"),
        ("DROP TABLE nosuch.t", "3F000"),
        ("DROP INDEX s.nosuch", "42704"),
        ("DROP SCHEMA s", "2BP01"),
        ("DROP SCHEMA s RESTRICT", "2BP01"),
        ("DROP SCHEMA public CASCADE", "2BP01"),
        ("DROP TYPE s.mood", "2BP01"),
        ("ALTER TABLE s.t SET SCHEMA nosuch", "3F000"),
        ("ALTER TABLE s.t SET SCHEMA public", "42P07"),
        ("CREATE SCHEMA x CREATE TABLE y (a INT)", "0A000"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}");
    }
    let error = db.error("DROP SCHEMA s");
    assert_eq!(error.message, "cannot drop schema s because other objects depend on it");
    assert_eq!(error.detail.as_deref().map(String::as_str), Some("table s.t depends on schema s"));
    for (sql, message) in [
        ("CREATE SCHEMA IF NOT EXISTS s AUTHORIZATION joe", "schema \"s\" already exists, skipping"),
        ("DROP TABLE IF EXISTS nosuch.t", "table \"nosuch.t\" does not exist, skipping"),
        ("DROP SCHEMA IF EXISTS nosuch, nosuch2", "schema \"nosuch\" does not exist, skipping"),
    ] {
        assert_eq!(told(&mut db, sql)[0], message, "{sql}");
    }
    db.run(
        "DROP INDEX named;
ALTER TABLE s.t RENAME TO other;
ALTER TABLE s.other OWNER TO joe;
ALTER TABLE s.other SET SCHEMA public;
CREATE TABLE s.refers (r INT REFERENCES other (id));
ALTER TABLE other SET SCHEMA s;
ALTER TYPE s.mood ADD VALUE 'calm' BEFORE 'happy';
ALTER INDEX s.named RENAME TO renamed;
CREATE TABLE s.copied (LIKE s.other INCLUDING ALL);
COMMENT ON TABLE s.copied IS 'a copy';
COMMENT ON COLUMN s.copied.u IS 'a name';
COMMENT ON INDEX s.renamed IS 'in lower case';
ALTER SCHEMA s OWNER TO joe;
CREATE VIEW s.v AS SELECT other.id FROM s.other",
    );
    for (sql, expected) in [
        (
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'",
            "FOREIGN KEY (r) REFERENCES s.other(id)",
        ),
        (
            "SELECT obj_description('s.copied'::regclass), col_description('s.copied'::regclass, 3)",
            "a copy,a name",
        ),
        ("SELECT obj_description('s.renamed'::regclass)", "in lower case"),
        (
            "SELECT pg_get_indexdef('s.renamed'::regclass)",
            "CREATE INDEX renamed ON s.other USING btree (lower(u))",
        ),
        ("SELECT id FROM s.v ORDER BY id", "1;2"),
        ("SELECT 's.v'::regclass::text", "s.v"),
        ("SELECT count(*) FROM s.copied", "0"),
    ] {
        assert_eq!(db.query(sql), expected, "{sql}");
    }
    assert_eq!(told(&mut db, "DROP SCHEMA s CASCADE"), ["drop cascades to 5 other objects"]);
    assert_eq!(db.query("SELECT count(*) FROM t"), "1");
    assert_eq!(db.state("SELECT * FROM s.other"), "42P01");
    db.run("CREATE SCHEMA s;\nCREATE TABLE s.t (id BIGINT);\nDROP TABLE s.t;\nDROP SCHEMA s");
}

#[test]
fn the_catalogue_shows_them() {
    let mut db = db();
    db.run("CREATE TABLE s.n (id SERIAL PRIMARY KEY);\nCREATE VIEW s.v AS SELECT id FROM s.n");
    for (sql, expected) in [
        ("SELECT nspname FROM pg_namespace WHERE oid >= 16384", "s"),
        ("SELECT schema_name FROM information_schema.schemata WHERE schema_name = 's'", "s"),
        (
            "SELECT n.nspname, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = 's' AND c.relkind IN ('r', 'v') ORDER BY 2",
            "s,n,r;s,t,r;s,v,v",
        ),
        ("SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = 's' ORDER BY 2", "s,n;s,t;s,v"),
        ("SELECT schemaname, tablename FROM pg_tables WHERE tablename = 't' ORDER BY 1", "public,t;s,t"),
        ("SELECT schemaname, indexname FROM pg_indexes WHERE indexname = 'named' ORDER BY 1", "public,named;s,named"),
        ("SELECT udt_schema, udt_name, column_default FROM information_schema.columns WHERE column_name = 'm'", "s,mood,'sad'::s.mood"),
        ("SELECT t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = 's' ORDER BY 1", "_mood;mood"),
        ("SELECT pg_get_serial_sequence('s.n', 'id')", "s.n_id_seq"),
        ("SELECT column_default FROM information_schema.columns WHERE table_name = 'n'", "nextval('s.n_id_seq'::regclass)"),
        ("SELECT nextval('s.n_id_seq'), nextval('s.n_id_seq'::regclass)", "1,2"),
        ("SELECT format_type('s.mood'::regtype, NULL)", "s.mood"),
        ("SELECT to_regnamespace('s')::text, to_regnamespace('nosuch')", "s,NULL"),
    ] {
        assert_eq!(db.query(sql), expected, "{sql}");
    }
}

/// `ROLLBACK` takes back what a transaction made.
#[test]
fn a_transaction_takes_its_definitions_back() {
    let mut db = db();
    db.run("BEGIN;\nCREATE SCHEMA x;\nCREATE TYPE x.e AS ENUM ('a');\nCREATE TABLE x.t (e x.e);\nROLLBACK");
    assert_eq!(db.query("SELECT count(*) FROM pg_namespace WHERE nspname = 'x'"), "0");
    db.run("CREATE SCHEMA x;\nBEGIN;\nDROP SCHEMA x;\nROLLBACK;\nCREATE TABLE x.t (a INT)");
    assert_eq!(db.query("SELECT count(*) FROM x.t"), "0");
    db.run("BEGIN;\nALTER TABLE x.t RENAME TO q;\nALTER TABLE x.q SET SCHEMA s;\nROLLBACK");
    assert_eq!(db.query("SELECT count(*) FROM x.t"), "0");
}

#[test]
fn there_are_so_many_at_most() {
    let mut db = Db::new();
    for number in 0..NAMESPACES_MAX {
        db.run(&format!("CREATE SCHEMA s{number}"));
    }
    let error = db.error("CREATE SCHEMA more");
    assert_eq!(
        (error.state, error.message),
        ("54000", format!("there are {NAMESPACES_MAX} schemas, which is the limit"))
    );
    db.run("DROP SCHEMA s7, s8;\nCREATE SCHEMA more");
    assert_eq!(
        db.query("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 's%'"),
        (NAMESPACES_MAX - 1).to_string()
    );
}
