//! Enum types: their values, their order, what changes them, what clients are told of them.

use crate::common::Db;
use store::value::Value;

fn db() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE p (id INT PRIMARY KEY, m mood NOT NULL DEFAULT 'ok', ms mood[], CHECK (m <> 'sad' OR id < 9));
INSERT INTO p (id, m, ms) VALUES (1, 'happy', '{ok,sad}'), (2, 'sad', NULL), (3, 'ok', '{}')",
    );
    db
}

#[test]
fn values_are_labels() {
    let mut db = db();
    for (sql, state) in [
        ("INSERT INTO p (id, m) VALUES (4, 'bad')", "22P02"),
        ("INSERT INTO p (id, m) VALUES (4, 'OK')", "22P02"),
        ("INSERT INTO p (id, ms) VALUES (4, '{ok,bad}')", "22P02"),
        ("UPDATE p SET m = 'bad'", "22P02"),
        ("UPDATE p SET m = 'b' || 'ad'", "22P02"),
        ("SELECT 'bad'::mood", "22P02"),
        ("SELECT ('b' || 'ad')::mood", "22P02"),
        ("SELECT '{ok,bad}'::mood[]", "22P02"),
        ("SELECT id FROM p WHERE m = 'bad'", "22P02"),
        ("CREATE TYPE mood AS ENUM ('a')", "42710"),
        ("CREATE TYPE text AS ENUM ('a')", "42710"),
        ("CREATE TYPE bad AS ENUM ('a', 'a')", "42710"),
        ("CREATE TYPE bad AS ENUM ('')", "42602"),
        ("CREATE TYPE bad AS (a INT)", "0A000"),
        ("CREATE TABLE q (a nomood)", "42704"),
        ("CREATE TABLE q (m mood DEFAULT 'bad')", "42804"),
        ("DROP TYPE nomood", "42704"),
        ("DROP TYPE mood", "2BP01"),
        ("ALTER TYPE nomood ADD VALUE 'x'", "42704"),
        ("ALTER TYPE mood ADD VALUE 'ok'", "42710"),
        ("ALTER TYPE mood ADD VALUE 'x' AFTER 'y'", "22023"),
        ("ALTER TYPE mood RENAME VALUE 'x' TO 'y'", "22023"),
        ("ALTER TYPE mood RENAME VALUE 'ok' TO 'sad'", "42710"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}");
    }
    assert_eq!(db.error("SELECT 'bad'::mood").message, "invalid input value for enum mood: \"bad\"");
    assert_eq!(
        db.error("UPDATE p SET m = 'b' || 'ad'").message,
        "invalid input value for enum mood: \"bad\""
    );
    let bad = db.execute("SELECT id FROM p WHERE m = $1", &[Value::from("bad")]);
    assert_eq!(bad.map(|_| ()).map_err(|error| error.state), Err("22P02"));
    assert_eq!(db.query_with("SELECT id FROM p WHERE m = $1", &[Value::from("sad")]), "2");
    assert_eq!(
        db.query_with("SELECT id FROM p WHERE m = ANY ($1::mood[]) ORDER BY 1", &[Value::from("{sad,ok}")]),
        "2;3"
    );
}

#[test]
fn order_is_that_of_the_list() {
    let mut db = db();
    for index in ["", "CREATE INDEX p_m ON p (m)", "CREATE INDEX p_m_id ON p (m DESC, id)"] {
        if !index.is_empty() {
            db.run(index);
        }
        for (sql, expected) in [
            ("SELECT m FROM p ORDER BY m", "sad;ok;happy"),
            ("SELECT m FROM p ORDER BY m DESC, id", "happy;ok;sad"),
            ("SELECT id FROM p WHERE m > 'sad' ORDER BY id", "1;3"),
            ("SELECT id FROM p WHERE 'sad' < m AND m BETWEEN 'sad' AND 'ok' ORDER BY id", "3"),
            ("SELECT id FROM p WHERE m = 'ok'", "3"),
            ("SELECT id FROM p WHERE m IN ('ok', 'sad') ORDER BY m DESC", "3;2"),
            ("SELECT min(m), max(m) FROM p", "sad,happy"),
            ("SELECT m, count(*) FROM p GROUP BY m ORDER BY 1", "sad,1;ok,1;happy,1"),
            ("SELECT array_agg(m ORDER BY m) FROM p", "[\"sad\",\"ok\",\"happy\"]"),
            ("SELECT a.id FROM p a JOIN p b ON a.m < b.m WHERE b.id = 3", "2"),
            ("SELECT row_number() OVER (ORDER BY m), m FROM p ORDER BY 1", "1,sad;2,ok;3,happy"),
            ("SELECT m::text FROM p ORDER BY m::text", "happy;ok;sad"),
        ] {
            assert_eq!(db.query(sql), expected, "{sql} with {index}");
        }
    }
    assert!(db.plan("SELECT id FROM p WHERE m = 'ok'").contains("p_m"), "equality uses an index");
}

#[test]
fn types_change_under_their_columns() {
    let mut db = db();
    db.run(
        "ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok';
ALTER TYPE mood ADD VALUE IF NOT EXISTS 'meh';
ALTER TYPE mood ADD VALUE 'glad' AFTER 'ok';
INSERT INTO p (id, m) VALUES (4, 'meh'), (5, 'glad')",
    );
    assert_eq!(db.query("SELECT m FROM p ORDER BY m"), "sad;meh;ok;glad;happy");
    db.run("ALTER TYPE mood RENAME TO feeling");
    assert_eq!(db.state("SELECT 'ok'::mood"), "42704");
    assert_eq!(db.query("SELECT 'ok'::feeling, pg_typeof(m) FROM p WHERE id = 1"), "ok,feeling");
    assert_eq!(
        db.state("ALTER TYPE feeling RENAME VALUE 'sad' TO 'blue'"),
        "0A000",
        "a check and arrays have it"
    );
    db.run(
        "ALTER TABLE p DROP COLUMN ms, DROP CONSTRAINT p_check;
ALTER TABLE p ALTER m SET DEFAULT 'sad';
ALTER TYPE feeling RENAME VALUE 'sad' TO 'blue';
INSERT INTO p (id) VALUES (6)",
    );
    assert_eq!(db.query("SELECT id, m FROM p WHERE m <= 'blue' ORDER BY id"), "2,blue;6,blue");
    assert_eq!(db.state("INSERT INTO p VALUES (7, 'sad')"), "22P02");
    db.run("ALTER TABLE p ALTER m DROP DEFAULT, ALTER m TYPE text;\nDROP TYPE feeling");
    assert_eq!(db.query("SELECT m FROM p ORDER BY m LIMIT 2"), "blue;blue", "a text again");
    db.run(
        "CREATE TYPE other AS ENUM ('ok', 'meh', 'happy', 'glad', 'blue');
ALTER TABLE p ALTER COLUMN m TYPE other USING m::text::other",
    );
    assert_eq!(db.query("SELECT m FROM p ORDER BY m LIMIT 3"), "ok;meh;happy");
    db.run("DROP TYPE IF EXISTS other, nothing CASCADE");
    assert_eq!(db.query("SELECT * FROM p WHERE id = 1"), "1", "the column went with its type");
}

#[test]
fn types_belong_to_their_transaction() {
    let mut db = db();
    db.run(
        "BEGIN;
CREATE TYPE later AS ENUM ('a');
ALTER TYPE mood ADD VALUE 'new';
ALTER TYPE mood RENAME TO feeling;
CREATE TABLE q (x later);
ROLLBACK",
    );
    assert_eq!(db.query("SELECT string_agg(typname, ',') FROM pg_type WHERE typtype = 'e'"), "mood");
    assert_eq!(db.state("INSERT INTO p VALUES (4, 'new')"), "22P02");
    db.run("BEGIN;\nCREATE TYPE later AS ENUM ('a');\nDROP TYPE later;\nROLLBACK;\nCREATE TYPE later AS ENUM ('b')");
}

#[test]
fn the_catalogue_has_them() {
    let mut db = db();
    for (sql, expected) in [
        (
            "SELECT typname, typtype, typcategory, nspname, typelem = 0 FROM pg_type t \
             JOIN pg_namespace n ON n.oid = typnamespace WHERE typname LIKE '%mood' ORDER BY 1",
            "_mood,b,A,public,0;mood,e,E,public,1",
        ),
        (
            "SELECT enumlabel, enumsortorder FROM pg_enum JOIN pg_type t ON t.oid = enumtypid \
             WHERE typname = 'mood' ORDER BY enumsortorder",
            "sad,1.0;ok,2.0;happy,3.0",
        ),
        (
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'p'::regclass AND attnum > 1 \
             ORDER BY attnum",
            "m,mood;ms,mood[]",
        ),
        (
            "SELECT data_type, udt_schema, udt_name, column_default FROM information_schema.columns \
             WHERE table_name = 'p' AND ordinal_position > 1 ORDER BY ordinal_position",
            "USER-DEFINED,public,mood,'ok'::mood;ARRAY,public,_mood,NULL",
        ),
        (
            "SELECT 'mood'::regtype = 'public.mood'::regtype, 'mood'::regtype::text, to_regtype('nomood') IS NULL",
            "1,mood,1",
        ),
        ("SELECT 'mood[]'::regtype::text, '\"pg_catalog\".\"int4\"'::regtype::text", "mood[],integer"),
    ] {
        assert_eq!(db.query(sql), expected, "{sql}");
    }
}
