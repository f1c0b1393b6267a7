//! Sequences: numbers, defaults that take them, what changes and drops them, what clients are told of them.

use crate::common::Db;
use store::definition::SEQUENCES_MAX;
use store::value::Value;

#[test]
fn numbers_follow_one_another() {
    let mut db = Db::new();
    db.run(
        "CREATE SEQUENCE s;
CREATE SEQUENCE five INCREMENT BY 5 START WITH 10;
CREATE SEQUENCE down INCREMENT -1 MINVALUE -3;
CREATE SEQUENCE small AS SMALLINT START 32766;
CREATE SEQUENCE round MAXVALUE 2 CYCLE CACHE 7;
CREATE SEQUENCE IF NOT EXISTS s",
    );
    for (sql, expected) in [
        ("SELECT nextval('s'), nextval('s'::regclass), nextval('public.s')", "1,2,3"),
        ("SELECT currval('s'), lastval()", "3,3"),
        ("SELECT nextval('five'), nextval('five')", "10,15"),
        ("SELECT currval('s'), lastval()", "3,15"),
        ("SELECT nextval('down'), nextval('down'), nextval('down')", "-1,-2,-3"),
        ("SELECT nextval('small'), nextval('small')", "32766,32767"),
        ("SELECT nextval('round'), nextval('round'), nextval('round')", "1,2,1"),
        ("SELECT setval('s', 40), nextval('s')", "40,41"),
        ("SELECT setval('s', 50, false), nextval('s')", "50,50"),
        ("SELECT pg_sequence_last_value('s'::regclass)", "50"),
        ("SELECT nextval(n) FROM (VALUES ('s'), ('five')) AS v(n)", "51;20"),
        ("SELECT nextval(NULL)", "NULL"),
    ] {
        assert_eq!(db.query(sql), expected, "{sql}");
    }
    for (sql, state, message) in [
        ("SELECT nextval('down')", "2200H", "nextval: reached minimum value of sequence \"down\" (-3)"),
        ("SELECT nextval('small')", "2200H", "nextval: reached maximum value of sequence \"small\" (32767)"),
        (
            "SELECT setval('down', 1)",
            "22003",
            "setval: value 1 is out of bounds for sequence \"down\" (-3..-1)",
        ),
        ("SELECT nextval('nosuch')", "42P01", "relation \"nosuch\" does not exist"),
        ("CREATE SEQUENCE s", "42P07", "relation \"s\" already exists"),
        ("CREATE TABLE s (a INT)", "42P07", "relation \"s\" already exists"),
        ("CREATE SEQUENCE x INCREMENT 0", "22023", "INCREMENT must not be zero"),
        ("CREATE SEQUENCE x MINVALUE 5 MAXVALUE 5", "22023", "MINVALUE (5) must be less than MAXVALUE (5)"),
        ("CREATE SEQUENCE x START 0", "22023", "START value (0) cannot be less than MINVALUE (1)"),
        ("CREATE SEQUENCE x AS TEXT", "22023", "sequence type must be smallint, integer, or bigint"),
        ("CREATE TEMP SEQUENCE x", "0A000", "not supported"),
        ("ALTER SEQUENCE nosuch RESTART", "42P01", "relation \"nosuch\" does not exist"),
        ("ALTER SEQUENCE s MAXVALUE 3", "22023", "RESTART value (51) cannot be greater than MAXVALUE (3)"),
        ("ALTER SEQUENCE s OWNED BY nosuch.a", "42P01", "does not exist"),
        ("DROP SEQUENCE nosuch", "42P01", "sequence \"nosuch\" does not exist"),
    ] {
        let error = db.error(sql);
        assert_eq!(error.state, state, "{sql}: {error}");
        assert!(error.message.contains(message), "{sql}: {error}");
    }
    // Another session was given nothing.
    db.session = sql::Session::new();
    assert_eq!(db.state("SELECT currval('s')"), "55000");
    assert_eq!(db.state("SELECT lastval()"), "55000");
}

#[test]
fn defaults_take_numbers() {
    let mut db = Db::new();
    db.run(
        "CREATE SEQUENCE s START 7;
CREATE TABLE t (id BIGINT PRIMARY KEY DEFAULT nextval('s'), n INT DEFAULT nextval('s'::regclass), v TEXT);
CREATE TABLE u (v TEXT PRIMARY KEY, code TEXT DEFAULT 'A' || nextval('s'))",
    );
    assert_eq!(db.query("INSERT INTO t (v) VALUES ('a') RETURNING id, n"), "7,8");
    assert_eq!(db.query("INSERT INTO t (v, n) VALUES ('b', DEFAULT), ('c', 0) RETURNING id, v"), "10,b;11,c");
    assert_eq!(db.query("INSERT INTO u (v) VALUES ('x') RETURNING code"), "A12");
    assert_eq!(db.query("SELECT currval('s'), lastval()"), "12,12");
    assert_eq!(db.query_with("INSERT INTO t (v) VALUES ($1) RETURNING id", &[Value::from("d")]), "13");
    // Numbers are not taken back.
    db.run("BEGIN;\nINSERT INTO t (v) VALUES ('e');\nROLLBACK");
    assert_eq!(db.query("SELECT nextval('s')"), "17");
    assert_eq!(db.state("CREATE TABLE w (id INT DEFAULT nextval('nosuch'))"), "42P01");
    let error = db.error("DROP SEQUENCE s");
    assert_eq!(error.state, "2BP01");
    let detail = error.detail.expect("what needs it");
    assert_eq!(*detail, "default value for column id of table t depends on sequence s");
    // It keeps its default under another name.
    db.run("CREATE SCHEMA \"Shop\";\nALTER SEQUENCE s RENAME TO \"No 1\";\nALTER SEQUENCE \"No 1\" SET SCHEMA \"Shop\"");
    assert_eq!(db.query("INSERT INTO t (v) VALUES ('f') RETURNING id"), "18");
    assert_eq!(
        db.query("SELECT column_default FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position"),
        "nextval('\"Shop\".\"No 1\"'::regclass);nextval('\"Shop\".\"No 1\"'::regclass);NULL"
    );
    db.session.take_notices();
    db.run("DROP SEQUENCE \"Shop\".\"No 1\" CASCADE");
    let told: Vec<String> = db.session.take_notices().into_iter().map(|notice| notice.message).collect();
    assert_eq!(told[0], "drop cascades to default value for column id of table t");
    assert_eq!(db.state("INSERT INTO t (v) VALUES ('g')"), "23502");
}

#[test]
fn sequences_change() {
    let mut db = Db::new();
    db.run("CREATE SEQUENCE s;\nCREATE TABLE t (a INT PRIMARY KEY, b INT)");
    for (sql, expected) in [
        ("ALTER SEQUENCE s RESTART WITH 20", "20,21"),
        ("ALTER SEQUENCE s RESTART", "1,2"),
        ("ALTER SEQUENCE s INCREMENT BY 10", "12,22"),
        ("ALTER SEQUENCE s START 5 RESTART INCREMENT 1", "5,6"),
        ("ALTER SEQUENCE s MAXVALUE 8 CYCLE OWNER TO joe", "7,8"),
        ("ALTER SEQUENCE s NO MAXVALUE NO CYCLE", "9,10"),
        ("ALTER SEQUENCE s OWNER TO joe", "11,12"),
        ("ALTER SEQUENCE s AS integer", "13,14"),
    ] {
        if sql.contains("CYCLE OWNER") {
            assert_eq!(db.state(sql), "42601");
            db.run("ALTER SEQUENCE s MAXVALUE 8 CYCLE");
        } else {
            db.run(sql);
        }
        assert_eq!(db.query("SELECT nextval('s'), nextval('s')"), expected, "{sql}");
    }
    assert_eq!(db.query("SELECT seqmax FROM pg_sequence"), i32::MAX.to_string());
    // It goes with its column.
    db.run("ALTER SEQUENCE s OWNED BY t.b;\nALTER TABLE t RENAME COLUMN b TO c");
    assert_eq!(db.query("SELECT pg_get_serial_sequence('t', 'c')"), "public.s");
    db.run("TRUNCATE t RESTART IDENTITY");
    assert_eq!(db.query("SELECT nextval('s')"), "5");
    db.run("ALTER TABLE t DROP COLUMN c");
    assert_eq!(db.state("SELECT nextval('s')"), "42P01");
    db.run("CREATE SEQUENCE s OWNED BY public.t.a;\nALTER SEQUENCE s OWNED BY NONE;\nALTER SEQUENCE s OWNED BY t.a;\nDROP TABLE t");
    assert_eq!(db.state("DROP SEQUENCE s"), "42P01");
    db.run("DROP SEQUENCE IF EXISTS s");
}

#[test]
fn a_transaction_takes_them_back() {
    let mut db = Db::new();
    db.run("BEGIN;\nCREATE SEQUENCE s;\nROLLBACK");
    assert_eq!(db.state("SELECT nextval('s')"), "42P01");
    db.run("CREATE SEQUENCE s;\nCREATE TABLE t (a INT DEFAULT nextval('s'))");
    assert_eq!(db.query("SELECT nextval('s')"), "1");
    db.run("BEGIN;\nALTER SEQUENCE s INCREMENT 5;\nSELECT nextval('s');\nROLLBACK");
    assert_eq!(db.query("SELECT nextval('s')"), "7");
    db.run("BEGIN;\nALTER SEQUENCE s RESTART;\nROLLBACK");
    assert_eq!(db.query("SELECT nextval('s')"), "8");
    db.run("BEGIN;\nDROP SEQUENCE s CASCADE;\nROLLBACK");
    assert_eq!(db.query("INSERT INTO t DEFAULT VALUES RETURNING a"), "9");
    db.run("BEGIN;\nALTER SEQUENCE s RENAME TO r;\nROLLBACK");
    assert_eq!(db.query("INSERT INTO t DEFAULT VALUES RETURNING a"), "10");
}

#[test]
fn columns_have_sequences_too() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (id SERIAL PRIMARY KEY, v TEXT);
CREATE TABLE g (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 100) PRIMARY KEY, v TEXT);
CREATE TABLE p (id INT NOT NULL, v TEXT)",
    );
    for (sql, expected) in [
        ("INSERT INTO t (v) VALUES ('a') RETURNING id", "1"),
        ("SELECT currval('t_id_seq'), lastval(), nextval('t_id_seq')", "1,1,2"),
        ("INSERT INTO g (v) VALUES ('a') RETURNING id", "100"),
        ("SELECT currval(pg_get_serial_sequence('g', 'id'))", "100"),
        ("SELECT relname, relkind FROM pg_class WHERE relkind = 'S' ORDER BY 1", "g_id_seq,S;t_id_seq,S"),
        (
            "SELECT sequencename, last_value, data_type FROM pg_sequences ORDER BY 1",
            "g_id_seq,100,bigint;t_id_seq,2,integer",
        ),
        ("SELECT sequence_name FROM information_schema.sequences", "t_id_seq"),
        (
            "SELECT objid::regclass::text, refobjid::regclass::text, refobjsubid, deptype FROM pg_depend WHERE classid = 'pg_class'::regclass AND deptype <> 'e' ORDER BY 1",
            "g_id_seq,g,1,i;t_id_seq,t,1,a",
        ),
    ] {
        assert_eq!(db.query(sql), expected, "{sql}");
    }
    db.run("ALTER SEQUENCE t_id_seq RESTART WITH 50;\nALTER SEQUENCE t_id_seq OWNED BY t.id");
    assert_eq!(db.query("INSERT INTO t (v) VALUES ('b') RETURNING id"), "50");
    // It begins where it was said, not with 1.
    db.run("TRUNCATE g RESTART IDENTITY");
    assert_eq!(db.query("INSERT INTO g (v) VALUES ('b') RETURNING id"), "100");
    db.run("ALTER TABLE g ALTER COLUMN id RESTART");
    db.run("ALTER TABLE g ALTER COLUMN id RESTART WITH 300;\nALTER TABLE g ALTER id SET GENERATED ALWAYS");
    assert_eq!(db.query("INSERT INTO g (v) VALUES ('c') RETURNING id"), "300");
    for (sql, state) in [
        ("DROP SEQUENCE t_id_seq", "2BP01"),
        ("ALTER SEQUENCE t_id_seq INCREMENT 2", "0A000"),
        ("ALTER SEQUENCE t_id_seq RENAME TO x", "0A000"),
        ("CREATE SEQUENCE t_id_seq", "42P07"),
        ("ALTER TABLE p ALTER v ADD GENERATED ALWAYS AS IDENTITY", "55000"),
        ("ALTER TABLE t ALTER id ADD GENERATED ALWAYS AS IDENTITY", "55000"),
        ("ALTER TABLE p ALTER id RESTART", "55000"),
        ("ALTER TABLE p ALTER id DROP IDENTITY", "55000"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}");
    }
    db.run("ALTER TABLE p ALTER id ADD GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME public.p_id_seq START WITH 3 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1)");
    assert_eq!(db.query("INSERT INTO p (v) VALUES ('a'), ('b') RETURNING id"), "3;4");
    db.run("ALTER TABLE p ALTER id DROP IDENTITY;\nALTER TABLE p ALTER id DROP IDENTITY IF EXISTS");
    assert_eq!(db.state("INSERT INTO p (v) VALUES ('a')"), "23502");
}

#[test]
fn there_are_so_many_at_most() {
    let mut db = Db::new();
    for number in 0..SEQUENCES_MAX {
        db.run(&format!("CREATE SEQUENCE s{number}"));
    }
    let error = db.error("CREATE SEQUENCE more");
    assert_eq!(error.state, "54000");
    assert_eq!(error.message, format!("there are {SEQUENCES_MAX} sequences, which is the limit"));
    assert_eq!(
        db.query("SELECT sum(nextval(relname)), count(*) FROM pg_class WHERE relkind = 'S'"),
        format!("{SEQUENCES_MAX},{SEQUENCES_MAX}")
    );
    db.run("DROP SEQUENCE s1, s2;\nCREATE SEQUENCE more");
}
