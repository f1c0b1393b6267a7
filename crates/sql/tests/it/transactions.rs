//! Transactions of several statements: what they see, what `COMMIT` refuses, and what the client is told.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Db, Rows, shown};
use sql::{Cancel, Done, Executor, Limits, Session, SqlError, TransactionStatus};
use store::Store;
use store::value::Value;

/// A client beside the one of `Db`.
struct Other {
    executor: Executor,
    session: Session,
}

impl Other {
    fn new(store: &Arc<Store>) -> Self {
        let executor = Executor::new(Arc::clone(store), Limits::default()).unwrap();
        Self { executor, session: Session::new() }
    }

    fn execute(&mut self, sql: &str) -> Result<(Done, Rows), SqlError> {
        let mut rows = Rows::default();
        let done = self.executor.execute(&mut self.session, sql, &[], &Cancel::new(), &mut rows)?;
        Ok((done, rows))
    }

    fn query(&mut self, sql: &str) -> String {
        shown(&self.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).1.rows)
    }

    fn state(&mut self, sql: &str) -> &'static str {
        self.execute(sql).expect_err(sql).state
    }
}

fn table() -> (Db, Other) {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (id INT PRIMARY KEY, g INT, name TEXT);
         CREATE INDEX t_g ON t (g);
         CREATE UNIQUE INDEX t_name ON t (name);
         INSERT INTO t VALUES (1, 10, 'a'), (2, 10, 'b'), (3, 20, 'c')",
    );
    let other = Other::new(&db.store);
    (db, other)
}

fn tag(db: &mut Db, sql: &str) -> &'static str {
    db.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}")).0.tag
}

fn notices(db: &mut Db) -> Vec<(&'static str, &'static str)> {
    db.session.take_notices().into_iter().map(|notice| (notice.severity, notice.state)).collect()
}

#[test]
fn own_writes_are_seen_through_every_plan_and_by_nobody_else() {
    let (mut db, mut other) = table();
    db.run(
        "BEGIN;
         INSERT INTO t VALUES (4, 10, 'd');
         UPDATE t SET g = 15 WHERE id = 2;
         DELETE FROM t WHERE id = 3",
    );
    for (sql, own, others) in [
        ("SELECT name FROM t WHERE id = 4", "d", ""),
        ("SELECT name FROM t WHERE id = 3", "", "c"),
        ("SELECT id FROM t WHERE g = 10 ORDER BY g, id", "1;4", "1;2"),
        ("SELECT id FROM t WHERE g >= 10 ORDER BY g DESC LIMIT 1", "2", "3"),
        ("SELECT id FROM t WHERE id IN (2, 3, 4) ORDER BY id", "2;4", "2;3"),
        ("SELECT id FROM t WHERE g IN (10, 15) AND id > 1 ORDER BY id", "2;4", "2"),
        ("SELECT id FROM t WHERE name = 'd'", "4", ""),
        ("SELECT count(*), sum(g), max(g), min(g) FROM t", "3,35,15,10", "3,40,20,10"),
        ("SELECT count(*) FROM t", "3", "3"),
        ("SELECT max(g) FROM t", "15", "20"),
        ("SELECT a.id, b.id FROM t a JOIN t b ON a.g = b.g AND a.id < b.id", "1,4", "1,2"),
        ("SELECT id FROM t WHERE g = (SELECT max(g) FROM t)", "2", "3"),
        ("SELECT id FROM t WHERE name LIKE 'd%'", "4", ""),
        ("SELECT count(*) FROM t WHERE _cas IS NULL", "2", "0"),
        ("SELECT _age, _ttl FROM t WHERE id = 2", "0,NULL", "0,NULL"),
    ] {
        assert_eq!(db.query(sql), own, "{sql}");
        assert_eq!(other.query(sql), others, "{sql}");
    }
    assert_eq!(tag(&mut db, "COMMIT"), "COMMIT");
    assert_eq!(other.query("SELECT id, g FROM t ORDER BY id"), "1,10;2,15;4,10");
    assert_eq!(db.query("SELECT count(*) FROM t WHERE _cas IS NULL"), "0");
}

#[test]
fn statements_build_upon_each_other() {
    let (mut db, mut other) = table();
    db.run("BEGIN");
    assert_eq!(db.query("UPDATE t SET g = g + 1 WHERE id = 1 RETURNING g"), "11");
    assert_eq!(db.query("UPDATE t SET g = g + 1 WHERE id = 1 RETURNING g"), "12");
    assert_eq!(
        db.query("INSERT INTO t VALUES (1, 0, 'z') ON CONFLICT (id) DO UPDATE SET g = t.g * 2 RETURNING g"),
        "24"
    );
    assert_eq!(db.query("INSERT INTO t VALUES (9, 0, 'a') ON CONFLICT (name) DO NOTHING RETURNING id"), "");
    assert_eq!(db.affected("INSERT OR REPLACE INTO t VALUES (9, 5, 'a')"), 1);
    assert_eq!(db.query("SELECT id FROM t WHERE name = 'a'"), "9");
    assert_eq!(
        db.query("INSERT INTO t SELECT id + 100, g, name || '2' FROM t ORDER BY id RETURNING id"),
        "102;103;109"
    );
    assert_eq!(db.affected("DELETE FROM t WHERE g = 5"), 2);
    assert_eq!(db.affected("DELETE FROM t WHERE id = 102"), 1);
    assert_eq!(db.affected("DELETE FROM t WHERE id = 102"), 0);
    assert_eq!(db.query("SELECT id, g, name FROM t ORDER BY id"), "2,10,b;3,20,c;103,20,c2");
    assert_eq!(other.query("SELECT id FROM t ORDER BY id"), "1;2;3");
    db.run("COMMIT");
    assert_eq!(other.query("SELECT id, g, name FROM t ORDER BY id"), "2,10,b;3,20,c;103,20,c2");
}

#[test]
fn a_table_without_a_key_takes_part() {
    let mut db = Db::new();
    db.run("CREATE TABLE log (line TEXT);\nINSERT INTO log VALUES ('a'), ('b')");
    db.run("BEGIN;\nINSERT INTO log VALUES ('c');\nUPDATE log SET line = line || '!'");
    db.run("SAVEPOINT s;\nDELETE FROM log;\nROLLBACK TO s;\nDELETE FROM log WHERE line = 'a!'");
    assert_eq!(db.query("SELECT line FROM log ORDER BY line"), "b!;c!");
    db.run("COMMIT");
    assert_eq!(db.query("SELECT line FROM log ORDER BY line"), "b!;c!");
}

#[test]
fn rollback_leaves_nothing() {
    let (mut db, _) = table();
    db.run("BEGIN;\nDELETE FROM t;\nINSERT INTO t VALUES (7, 7, 'g')");
    assert_eq!(tag(&mut db, "ROLLBACK"), "ROLLBACK");
    assert_eq!(db.query("SELECT id FROM t ORDER BY id"), "1;2;3");
    assert_eq!(db.session.status(), TransactionStatus::Idle);
}

#[test]
fn savepoints_nest_as_in_postgresql() {
    let (mut db, _) = table();
    db.run("BEGIN;\nSAVEPOINT a;\nUPDATE t SET g = 1;\nSAVEPOINT a;\nUPDATE t SET g = 2;\nSAVEPOINT b;\nDELETE FROM t");
    let groups = |db: &mut Db| db.query("SELECT g FROM t ORDER BY id");
    assert_eq!(groups(&mut db), "");
    db.run("ROLLBACK TO SAVEPOINT b");
    assert_eq!(groups(&mut db), "2;2;2");
    // The newer of two of one name.
    db.run("ROLLBACK TO a");
    assert_eq!(groups(&mut db), "1;1;1");
    assert_eq!(db.state("ROLLBACK TO b"), "3B001");
    // That failed the transaction; an older savepoint is a way back.
    assert_eq!(db.session.status(), TransactionStatus::Failed);
    db.run("ROLLBACK TO a;\nRELEASE a;\nUPDATE t SET g = 3;\nROLLBACK TO A");
    assert_eq!(groups(&mut db), "10;10;20");
    db.run("UPDATE t SET g = 4;\nRELEASE SAVEPOINT a");
    assert_eq!(db.state("RELEASE a"), "3B001");
    assert_eq!(tag(&mut db, "COMMIT"), "ROLLBACK");
    assert_eq!(groups(&mut db), "10;10;20");
}

#[test]
fn a_failed_transaction_refuses_everything_but_its_end() {
    let (mut db, _) = table();
    db.run("BEGIN;\nDELETE FROM t WHERE id = 1;\nSAVEPOINT s");
    for error in ["SELECT * FROM nowhere", "INSERT INTO t VALUES (2, 0, 'x')", "SELEC", "SELECT abs('x', 1)"]
    {
        db.error(error);
        assert_eq!(db.session.status(), TransactionStatus::Failed, "{error}");
        for refused in
            ["SELECT 1", "INSERT INTO t VALUES (5, 0, 'e')", "SAVEPOINT x", "BEGIN", "CREATE TABLE x (a)", ""]
        {
            assert_eq!(db.state(refused), "25P02", "{refused}");
        }
        let describe = |db: &mut Db, sql: &str| db.executor.describe(&db.session, sql, &[]).map(|_| ());
        assert_eq!(describe(&mut db, "SELECT 1").unwrap_err().state, "25P02");
        assert_eq!(describe(&mut db, "ROLLBACK"), Ok(()));
        db.run("ROLLBACK TO s");
        assert_eq!(db.session.status(), TransactionStatus::InBlock);
        assert_eq!(db.query("SELECT count(*) FROM t"), "2");
    }
    db.error("SELECT * FROM nowhere");
    assert_eq!(tag(&mut db, "COMMIT"), "ROLLBACK");
    assert_eq!(db.query("SELECT count(*) FROM t"), "3");
}

#[test]
fn a_statement_that_fails_leaves_nothing_of_itself() {
    let (mut db, _) = table();
    db.run("BEGIN;\nSAVEPOINT s");
    assert_eq!(db.state("INSERT INTO t VALUES (5, 0, 'e'), (6, 0, 'e')"), "23505");
    db.run("ROLLBACK TO s");
    assert_eq!(db.state("UPDATE t SET name = 'same'"), "23505");
    db.run("ROLLBACK TO s");
    // A unique value that a row of the same statement gives up is free.
    assert_eq!(db.affected("UPDATE t SET name = CASE id WHEN 1 THEN 'b' WHEN 2 THEN 'a' ELSE name END"), 3);
    assert_eq!(db.query("SELECT name FROM t ORDER BY id"), "b;a;c");
    assert_eq!(db.state("UPDATE t SET name = 'c' WHERE id = 1"), "23505");
    assert_eq!(tag(&mut db, "COMMIT"), "ROLLBACK");
}

#[test]
fn a_row_that_others_changed_refuses_the_commit() {
    let (mut db, mut other) = table();
    for foreign in ["UPDATE t SET g = 99 WHERE id = 1", "DELETE FROM t WHERE id = 1"] {
        db.run("BEGIN;\nUPDATE t SET g = g + 1 WHERE id = 1;\nUPDATE t SET g = g + 1 WHERE id = 2");
        other.execute(foreign).unwrap();
        // Nobody waited, and the transaction goes on seeing its own row.
        assert_eq!(
            db.query("SELECT g FROM t WHERE id = 1"),
            if foreign.starts_with('U') { "11" } else { "100" }
        );
        let error = db.error("COMMIT");
        assert_eq!(error.state, "40001", "{foreign}");
        assert!(error.hint.is_some());
        assert_eq!(db.session.status(), TransactionStatus::Idle);
        assert_eq!(db.query("SELECT g FROM t WHERE id = 2"), "10", "nothing of it was applied");
    }
    // A row that came where the transaction found none.
    db.run("BEGIN;\nINSERT INTO t VALUES (8, 0, 'h')");
    other.execute("INSERT INTO t VALUES (8, 1, 'i')").unwrap();
    assert_eq!(db.state("COMMIT"), "40001");
    // A unique value that somebody took.
    db.run("BEGIN;\nINSERT INTO t VALUES (9, 0, 'j'), (10, 0, 'k')");
    other.execute("INSERT INTO t VALUES (11, 1, 'j')").unwrap();
    assert_eq!(db.state("COMMIT"), "23505");
    assert_eq!(db.query("SELECT count(*) FROM t WHERE id IN (9, 10)"), "0");
}

#[test]
fn statements_see_what_others_committed_before_they_began() {
    let (mut db, mut other) = table();
    db.run("BEGIN ISOLATION LEVEL SERIALIZABLE");
    assert_eq!(notices(&mut db), [("NOTICE", "00000")]);
    assert_eq!(db.session.isolation(), "serializable");
    assert_eq!(db.query("SELECT sum(g) FROM t"), "40");
    other.execute("UPDATE t SET g = 0").unwrap();
    assert_eq!(db.query("SELECT sum(g) FROM t"), "0");
    db.run("COMMIT");
}

#[test]
fn read_only_transactions_write_nothing() {
    let (mut db, _) = table();
    db.run("BEGIN READ ONLY;\nSAVEPOINT s");
    for write in [
        "INSERT INTO t VALUES (4, 0, 'd')",
        "DELETE FROM t WHERE id = 1",
        "UPDATE t SET g = 0",
        "TRUNCATE t",
        "CREATE TABLE u (a INT)",
        "SET TRANSACTION READ WRITE",
    ] {
        let wanted = if write.starts_with("SET") { "25001" } else { "25006" };
        assert_eq!(db.query("SELECT count(*) FROM t"), "3");
        assert_eq!(db.state(write), wanted, "{write}");
        db.run("ROLLBACK TO s");
    }
    assert!(db.session.read_only());
    db.run("COMMIT;\nSET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY");
    assert_eq!(db.state("DELETE FROM t"), "25006");
    db.run("BEGIN READ WRITE;\nDELETE FROM t;\nCOMMIT AND CHAIN");
    assert!(!db.session.read_only(), "the next one is like the last");
    db.run(
        "ROLLBACK;\nSET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE;\nINSERT INTO t VALUES (1, 1, 'a')",
    );
}

#[test]
fn what_makes_no_sense_is_said_as_postgresql_says_it() {
    let (mut db, _) = table();
    assert_eq!(tag(&mut db, "COMMIT"), "COMMIT");
    assert_eq!(tag(&mut db, "ROLLBACK"), "ROLLBACK");
    assert_eq!(tag(&mut db, "SET TRANSACTION READ ONLY"), "SET");
    assert_eq!(notices(&mut db), [("WARNING", "25P01"); 3]);
    for sql in ["SAVEPOINT a", "RELEASE a", "ROLLBACK TO a", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN"] {
        assert_eq!(db.state(sql), "25P01", "{sql}");
    }
    assert_eq!(tag(&mut db, "START TRANSACTION"), "START TRANSACTION");
    assert_eq!(tag(&mut db, "BEGIN"), "BEGIN");
    assert_eq!(notices(&mut db), [("WARNING", "25001")]);
    assert_eq!(tag(&mut db, "SAVEPOINT a"), "SAVEPOINT");
    assert_eq!(tag(&mut db, "RELEASE a"), "RELEASE");
    assert_eq!(db.query("SELECT 1"), "1");
    assert_eq!(db.state("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"), "25001");
    assert_eq!(tag(&mut db, "END"), "ROLLBACK");
    assert_eq!(db.state("BEGIN; SELECT 1"), "42601");
    assert_eq!(db.execute("BEGIN", &[Value::Null]).unwrap_err().state, "08P01");
    assert_eq!(notices(&mut db), []);
}

#[test]
fn definitions_take_effect_at_once() {
    let (mut db, mut other) = table();
    db.run("BEGIN;\nINSERT INTO t VALUES (4, 30, 'd');\nCREATE TABLE made (a INT)");
    assert_eq!(notices(&mut db), [("NOTICE", "00000")]);
    assert_eq!(other.query("SELECT count(*) FROM made"), "0");
    // An index that comes in the middle has the transaction's rows too.
    db.run("CREATE INDEX t_new ON t (g, id)");
    assert_eq!(db.query("SELECT id FROM t WHERE g = 30 AND id > 0 ORDER BY g, id"), "4");
    db.run("INSERT INTO made VALUES (1);\nTRUNCATE made");
    assert_eq!(notices(&mut db), [("NOTICE", "00000"), ("WARNING", "01000")]);
    db.run("ROLLBACK");
    assert_eq!(db.state("SELECT count(*) FROM made"), "42P01");
    assert_eq!(db.query("SELECT count(*) FROM t"), "3");
    // What was written to a table before it is emptied goes with it; what is written after stays.
    db.run("BEGIN;\nINSERT INTO t VALUES (5, 1, 'e');\nTRUNCATE t;\nINSERT INTO t VALUES (6, 1, 'e')");
    assert_eq!(db.query("SELECT id FROM t"), "6");
    assert_eq!(other.query("SELECT id FROM t"), "");
    db.run("COMMIT;\nCREATE TABLE made (a INT);\nBEGIN;\nINSERT INTO made VALUES (1);\nDROP TABLE made");
    db.run("INSERT INTO t VALUES (7, 1, 'g');\nCOMMIT");
    assert_eq!(other.query("SELECT id FROM t ORDER BY id"), "6;7");
}

/// The catalogue in words: what a failed migration must leave as it was.
fn catalogue(db: &mut Db) -> String {
    let mut found = db.query("SELECT table_name, column_name, is_nullable, column_default FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, ordinal_position");
    found += &db.query("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1");
    found += &db.query("SELECT viewname, definition FROM pg_views WHERE schemaname = 'public' ORDER BY 1");
    found
}

/// A migration that failed half-way was left half applied: the next try failed because its table was there.
#[test]
fn definitions_are_taken_back_with_their_transaction() {
    const MIGRATION: &[&str] = &[
        "CREATE TABLE made (a INT PRIMARY KEY, b TEXT)",
        "CREATE INDEX made_b ON made (b)",
        "CREATE UNIQUE INDEX t_both ON t (g, id)",
        "CREATE INDEX t_lower ON t (lower(name))",
        "DROP INDEX t_g",
        "ALTER TABLE t ADD COLUMN extra TEXT DEFAULT 'x', ADD COLUMN twice INT GENERATED ALWAYS AS (g * 2) STORED",
        "ALTER TABLE t ALTER COLUMN g SET DEFAULT 5",
        "ALTER TABLE t ALTER COLUMN g SET NOT NULL",
        "ALTER TABLE t ADD CONSTRAINT small CHECK (id < 1000)",
        "ALTER TABLE t RENAME COLUMN name TO title",
        "ALTER TABLE t SET (ttl = '1 day')",
        "CREATE VIEW v2 AS SELECT id FROM t",
        "ALTER VIEW v2 RENAME TO v3",
        "ALTER VIEW v3 RENAME COLUMN id TO number",
        "CREATE OR REPLACE VIEW v AS SELECT id, g FROM w",
        "ALTER TABLE w RENAME COLUMN g TO height",
        "ALTER TABLE w RENAME TO w2",
        "ALTER TABLE made RENAME TO made2",
    ];
    let (mut db, mut other) = table();
    db.run("CREATE TABLE w (id INT, g INT);\nCREATE VIEW v AS SELECT id FROM w WHERE g > 10");
    let before = catalogue(&mut db);
    let rows = db.query("SELECT * FROM t ORDER BY id");
    for end in ["ROLLBACK", "COMMIT of a failed one", "ROLLBACK TO", "gone"] {
        db.run("BEGIN;\nSAVEPOINT s");
        for sql in MIGRATION {
            db.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        assert!(notices(&mut db).iter().all(|notice| *notice == ("NOTICE", "00000")), "{end}");
        other.execute("INSERT INTO t (id, g, title) VALUES (9, 9, 'by another')").unwrap();
        match end {
            "ROLLBACK" => db.run("ROLLBACK"),
            "ROLLBACK TO" => db.run("ROLLBACK TO s;\nCOMMIT"),
            "gone" => db.session = Session::new(),
            _ => {
                db.error("SELECT * FROM nowhere");
                assert_eq!(tag(&mut db, "COMMIT"), "ROLLBACK");
            }
        }
        assert_eq!(notices(&mut db), [], "{end}");
        assert_eq!(catalogue(&mut db), before, "{end}");
        assert_eq!(db.query("SELECT * FROM t WHERE id = 9"), "9,9,by another", "{end}: no row is lost");
        db.run("DELETE FROM t WHERE id = 9");
        assert_eq!(db.query("SELECT * FROM t ORDER BY id"), rows, "{end}");
        assert_eq!(db.query("SELECT id FROM t WHERE g = 10 ORDER BY id"), "1;2", "{end}");
    }
    db.run("BEGIN");
    for sql in MIGRATION {
        db.run(sql);
    }
    db.run("SAVEPOINT s;\nCREATE TABLE third (a INT);\nRELEASE s;\nCOMMIT");
    assert_ne!(catalogue(&mut db), before);
    assert_eq!(other.query("SELECT count(*) FROM third"), "0");
}

/// A dropped table, column or constraint was gone for good, whatever became of the transaction.
#[test]
fn what_a_definition_destroys_comes_back_without_the_rows_that_do_not_fit() {
    const TABLES: &str = "CREATE SCHEMA s;\nCREATE TYPE mood AS ENUM ('sad', 'ok');\nCREATE SEQUENCE q START 7;\n\
        CREATE TABLE u (a INT NOT NULL, b INT, c TEXT, m mood, CONSTRAINT less CHECK (a < b), UNIQUE (c));\n\
        CREATE INDEX u_lower ON u (lower(c));\nCREATE INDEX u_some ON u (a) WHERE b > 1;\n\
        CREATE TABLE s.keyed (id SERIAL PRIMARY KEY, v TEXT REFERENCES u (c)) WITH (prefix = 'k:', value = 'v');\n\
        CREATE VIEW r AS SELECT a, c FROM u;\nCREATE VIEW rr AS SELECT a FROM r;\n\
        CREATE EXPIRY RULE old ON u WHEN a > 100 EVERY '1 h'";
    const MIGRATION: &[&str] = &[
        "ALTER TABLE u DROP COLUMN b CASCADE",
        "ALTER TABLE u ALTER COLUMN a DROP NOT NULL",
        "ALTER TABLE u ADD COLUMN b TEXT",
        "ALTER TABLE s.keyed DROP CONSTRAINT keyed_v_fkey",
        "ALTER TABLE u DROP CONSTRAINT u_c_key",
        "DROP INDEX u_lower",
        "DROP EXPIRY RULE IF EXISTS old",
        "CREATE EXPIRY RULE newer ON u WHEN a > 7",
        "ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'",
        "ALTER TYPE mood ADD VALUE 'glad'",
        "DROP TYPE mood CASCADE",
        "DROP SEQUENCE q",
        "ALTER TABLE s.keyed ALTER COLUMN id DROP DEFAULT",
        "DROP SEQUENCE s.keyed_id_seq",
        "COMMENT ON TABLE u IS 'new'",
        "ALTER TABLE u ADD COLUMN d INT, DROP COLUMN d",
        "DROP SCHEMA s CASCADE",
        "DROP TABLE u CASCADE",
        "CREATE TABLE u (other INT)",
        "DROP TABLE u",
    ];
    let (mut db, mut other) = table();
    db.run(TABLES);
    db.run("INSERT INTO u VALUES (1, 2, 'x', 'ok')");
    let sql = "SELECT conname FROM pg_constraint ORDER BY 1";
    let all = |db: &mut Db| {
        let rules = db.query("SHOW EXPIRY RULES");
        let labels = db.query("SELECT enumlabel FROM pg_enum ORDER BY enumsortorder");
        let place = db.query("SELECT start_value, last_value FROM pg_sequences WHERE sequencename = 'q'");
        let keyed = db.query("SELECT count(*) FROM s.keyed");
        format!("{}\n{rules}\n{labels}\n{place}\n{keyed}\n{}", catalogue(db), db.query(sql))
    };
    let before = all(&mut db);
    for end in ["ROLLBACK", "ROLLBACK TO", "gone"] {
        db.run("BEGIN;\nSAVEPOINT x");
        for sql in MIGRATION {
            db.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        let told = notices(&mut db);
        assert!(told.iter().all(|notice| *notice == ("NOTICE", "00000")), "{end}: {told:?}");
        assert_eq!(other.state("SELECT * FROM u"), "42P01", "it took effect at once");
        match end {
            "ROLLBACK" => db.run("ROLLBACK"),
            "ROLLBACK TO" => db.run("ROLLBACK TO x;\nCOMMIT"),
            _ => db.session = Session::new(),
        }
        assert_eq!(notices(&mut db), [], "{end}");
        assert_eq!(all(&mut db), before, "{end}");
        assert_eq!(db.query("SELECT count(*) FROM u"), "0", "{end}: a dropped table comes back empty");
        assert_eq!(db.state("INSERT INTO u (a, b, c) VALUES (2, 1, 'y')"), "23514", "{end}");
        db.run("INSERT INTO u (a, b, c, m) VALUES (1, 2, 'y', 'ok')");
        assert_eq!(db.state("INSERT INTO u (a, b, c) VALUES (1, 2, 'y')"), "23505", "{end}");
        assert_eq!(db.query("SELECT a FROM rr"), "1", "{end}");
        assert_eq!(db.query("SELECT b FROM u WHERE lower(c) = 'y'"), "2", "{end}");
        db.run("DELETE FROM u");
    }
}

/// Rows that were there keep all their values; those that somebody wrote meanwhile may lack some, and go.
#[test]
fn rows_that_were_written_meanwhile_go_with_the_definition() {
    let (mut db, mut other) = table();
    db.run("DROP INDEX t_g");
    for (definition, meanwhile) in [
        ("ALTER TABLE t DROP COLUMN name", "INSERT INTO t (id, g) VALUES (9, 9)"),
        ("ALTER TABLE t ALTER COLUMN g TYPE TEXT", "INSERT INTO t (id, g) VALUES (9, 'nine')"),
        ("ALTER TABLE t ALTER COLUMN g DROP NOT NULL", "INSERT INTO t (id) VALUES (9)"),
        ("ALTER TABLE t DROP COLUMN name, ALTER COLUMN g DROP NOT NULL", "UPDATE t SET g = 5 WHERE id = 9"),
    ] {
        db.run("DELETE FROM t;\nINSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b');\nALTER TABLE t ALTER g SET NOT NULL");
        db.run("BEGIN");
        db.run(definition);
        other.execute(meanwhile).unwrap();
        db.run("ROLLBACK");
        assert_eq!(db.query("SELECT * FROM t ORDER BY id"), "1,10,a;2,20,b", "{definition}");
        assert_eq!(db.state("INSERT INTO t (id, name) VALUES (7, 'x')"), "23502", "{definition}");
    }
    // The second definition wrote every row again, without the dropped column.
    db.run("BEGIN;\nALTER TABLE t DROP COLUMN name;\nALTER TABLE t ALTER COLUMN g TYPE TEXT;\nROLLBACK");
    assert_eq!(db.query("SELECT count(*) FROM t"), "0");
}

/// What `ALTER` committed early stayed after `ROLLBACK`.
#[test]
fn rows_that_were_committed_early_go_with_their_transaction() {
    let (mut db, mut other) = table();
    db.run("BEGIN;\nINSERT INTO t VALUES (8, 1, 'h');\nUPDATE t SET g = 0 WHERE id = 1;\nALTER TABLE t ADD x INT");
    assert_eq!(other.query("SELECT id FROM t ORDER BY id"), "1;2;3;8");
    db.run("ROLLBACK");
    assert_eq!(db.query("SELECT * FROM t ORDER BY id"), "2,10,b;3,20,c");
}

/// Emptying a table is the one definition that lasts, and says so.
#[test]
fn a_definition_that_lasts_warns() {
    let (mut db, _) = table();
    db.run("BEGIN;\nTRUNCATE t");
    assert_eq!(notices(&mut db), [("WARNING", "01000")]);
    db.run("ROLLBACK");
    assert_eq!(db.query("SELECT count(*) FROM t"), "0");
}

/// A migration fills a column and then forbids NULL in it. The `ALTER` did not see the rows (23502), and where it
/// needed not to, `COMMIT` failed always.
#[test]
fn what_was_written_is_there_when_its_table_is_altered() {
    let (mut db, mut other) = table();
    db.run(
        "INSERT INTO t (id, name) VALUES (4, 'd');\nBEGIN;\nSAVEPOINT s;\nUPDATE t SET g = 0 WHERE g IS NULL",
    );
    db.run("ALTER TABLE t ALTER COLUMN g SET NOT NULL");
    assert_eq!(notices(&mut db), [("WARNING", "01000"), ("NOTICE", "00000")]);
    db.run("ALTER TABLE t ADD COLUMN h INT;\nUPDATE t SET h = g + 1;\nALTER TABLE t RENAME COLUMN h TO i");
    db.run("INSERT INTO t (id, g, name) VALUES (5, 1, 'e');\nRELEASE s;\nCOMMIT");
    assert_eq!(other.query("SELECT id, g, i FROM t ORDER BY id"), "1,10,11;2,10,11;3,20,21;4,0,1;5,1,NULL");
    // One that others overtook is refused before anything is altered.
    db.run("BEGIN;\nUPDATE t SET g = g + 1 WHERE id = 1");
    other.execute("UPDATE t SET g = 99 WHERE id = 1").unwrap();
    assert_eq!(db.state("ALTER TABLE t ADD COLUMN j INT"), "40001");
    db.run("ROLLBACK");
    assert_eq!(db.state("SELECT j FROM t"), "42703");
}

#[test]
fn a_table_that_others_drop_ends_the_transaction_that_wrote_it() {
    let (mut db, mut other) = table();
    db.run("BEGIN;\nUPDATE t SET g = 1");
    other.execute("DROP TABLE t").unwrap();
    other.execute("CREATE TABLE t (id INT PRIMARY KEY, g INT, name TEXT)").unwrap();
    assert_eq!(db.state("SELECT 1"), "42P01");
    assert_eq!(db.state("SELECT 1"), "25P02");
    assert_eq!(tag(&mut db, "COMMIT"), "ROLLBACK");
    db.run("BEGIN;\nINSERT INTO t VALUES (1, 1, 'a')");
    other.execute("DROP TABLE t").unwrap();
    assert_eq!(db.state("COMMIT"), "42P01");
    assert_eq!(db.session.status(), TransactionStatus::Idle);
}

#[test]
fn rows_of_a_transaction_may_expire_before_it_ends() {
    let (mut db, mut other) = table();
    db.run("BEGIN;\nINSERT INTO t (id, g, name, _ttl) VALUES (4, 10, 'd', 5);\nUPDATE t SET _ttl = 5 WHERE id = 1");
    assert_eq!(db.query("SELECT id, _ttl FROM t WHERE g = 10 ORDER BY id"), "1,5;2,NULL;4,5");
    db.clock.advance(Duration::from_secs(6));
    assert_eq!(db.query("SELECT id FROM t WHERE g = 10 ORDER BY id"), "2");
    // The name is free again.
    assert_eq!(db.affected("INSERT INTO t VALUES (5, 10, 'd')"), 1);
    db.run("COMMIT");
    assert_eq!(other.query("SELECT id FROM t WHERE g = 10 ORDER BY id"), "2;5");
}

#[test]
fn a_row_that_was_forgotten_meanwhile_is_no_conflict() {
    let (mut db, mut other) = table();
    db.run("UPDATE t SET _ttl = 5 WHERE id = 1;\nBEGIN;\nUPDATE t SET _ttl = NULL, g = g + 1 WHERE id = 1");
    db.clock.advance(Duration::from_secs(6));
    assert_eq!(other.query("SELECT count(*) FROM t WHERE id = 1"), "0");
    db.run("COMMIT");
    assert_eq!(other.query("SELECT g FROM t WHERE id = 1"), "11");
    // Who removes it means it: even where it has expired already.
    db.run("UPDATE t SET _ttl = 5 WHERE id = 1;\nBEGIN;\nUPDATE t SET _ttl = NULL WHERE id = 1");
    db.clock.advance(Duration::from_secs(6));
    let t = Arc::clone(db.store.catalog().table("t").unwrap());
    let mut key = Vec::new();
    t.keys().encode(&[store::value::ValueRef::Integer(1)], &mut key).unwrap();
    db.store.delete(&t, &key, store::Expect::Anything, db.store.now()).unwrap();
    assert_eq!(db.state("COMMIT"), "40001");
}

#[test]
fn a_listener_without_sessions_refuses_transactions() {
    let (mut db, _) = table();
    db.session = Session::for_single_statements();
    for sql in ["BEGIN", "COMMIT", "SAVEPOINT a", "SET TRANSACTION READ ONLY"] {
        let error = db.error(sql);
        assert_eq!(error.state, "0A000", "{sql}");
        assert!(error.hint.is_some());
    }
    assert_eq!(db.query("SELECT count(*) FROM t"), "3");
}

#[test]
fn a_transaction_has_a_bound() {
    let mut db = Db::new();
    db.run("CREATE TABLE b (id INT PRIMARY KEY, body BLOB);\nBEGIN;\nSAVEPOINT s");
    let fill = format!(
        "INSERT INTO b WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT i + $1, zeroblob(1048576) FROM n",
        63
    );
    let error = (0..8).find_map(|round| db.execute(&fill, &[Value::Integer(round * 64)]).err());
    let error = error.expect("256 MiB are a bound");
    assert_eq!(error.state, "54000");
    db.run("ROLLBACK TO s");
    assert_eq!(db.query("SELECT count(*) FROM b"), "0");
    db.run("INSERT INTO b VALUES (1, x'00');\nCOMMIT");
    assert_eq!(db.query("SELECT count(*) FROM b"), "1");
}

#[test]
fn a_client_that_is_gone_leaves_nothing() {
    let (mut db, mut other) = table();
    other.execute("BEGIN").unwrap();
    other.execute("UPDATE t SET g = 0").unwrap();
    // The same statement, now of another transaction, on the same executor.
    let mut gone = std::mem::take(&mut other.session);
    assert_eq!(other.query("SELECT sum(g) FROM t"), "40");
    assert_eq!(gone.status(), TransactionStatus::InBlock);
    gone.roll_back();
    assert_eq!(gone.status(), TransactionStatus::Idle);
    assert_eq!(db.query("SELECT sum(g) FROM t"), "40");
    assert_eq!(other.state("SAVEPOINT x"), "25P01");
}

/// An `UPDATE` wrote the deadline that it had read over the one that a `touch` had set before the commit.
#[test]
fn a_touch_before_the_commit_stands() {
    let touch = |db: &Db, id: i64, seconds: u64| {
        let table = Arc::clone(db.store.catalog().table("t").unwrap());
        let mut key = Vec::new();
        table.encode_key(&[store::value::ValueRef::Integer(id)], &mut key).unwrap();
        let until = store::Expiry::At(db.store.tick_after(Duration::from_secs(seconds)));
        let outcome = db.store.touch(&table, &key, until, db.store.now()).unwrap();
        assert!(matches!(outcome, store::Outcome::Done(_)), "{outcome:?}");
    };
    let statements = [
        "UPDATE t SET g = 1 WHERE id = 1",
        "UPDATE t SET g = g + 1 WHERE id < 3",
        "UPDATE t SET _flags = 4 WHERE id = 1",
        "UPDATE t SET _stale = true WHERE id = 1",
        "INSERT INTO t VALUES (1, 1, 'z') ON CONFLICT (id) DO UPDATE SET g = 5",
        "UPDATE t SET g = 1 WHERE id = 1;\nUPDATE t SET g = g + 1 WHERE id < 3",
    ];
    for statement in statements {
        for before in ["100", "NULL"] {
            let (mut db, _) = table();
            db.run(&format!("UPDATE t SET _ttl = {before} WHERE id = 1"));
            db.run(&format!("BEGIN;\n{statement}"));
            touch(&db, 1, 150);
            db.run("COMMIT");
            let left = db.query("SELECT _ttl FROM t WHERE id = 1");
            assert!(left.starts_with("150") || left.starts_with("149"), "{statement}: {left}");
        }
    }
    // What is computed of the deadline, and a row that goes to another key with it, must not miss the touch.
    for statement in ["UPDATE t SET _ttl = _ttl + 60 WHERE id = 1", "UPDATE t SET id = 9 WHERE id = 1"] {
        let (mut db, _) = table();
        db.run("UPDATE t SET _ttl = 100 WHERE id = 1");
        db.run(&format!("BEGIN;\n{statement}"));
        touch(&db, 1, 150);
        assert_eq!(db.state("COMMIT"), "40001", "{statement}");
    }
    // A row keeps its deadline under another key, and takes none of a row whose place it takes.
    let (mut db, _) = table();
    db.run("UPDATE t SET _ttl = 100 WHERE id = 1");
    db.run("UPDATE t SET id = 3 - id WHERE id < 3");
    assert_eq!(db.query("SELECT id, _ttl IS NULL FROM t WHERE id < 3 ORDER BY id"), "1,1;2,0");
}

/// A deletion whose parameter had a type of the client's was computed again by COMMIT as no statement at all: its rows
/// stayed.
#[test]
fn a_blind_deletion_keeps_the_types_that_the_client_chose() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE m (id INT PRIMARY KEY, at TIMESTAMPTZ);\n\
         INSERT INTO m VALUES (1, '2026-01-01 00:00Z'), (2, '2026-01-01 12:00Z'), (3, '2026-01-02 00:00Z')",
    );
    let chosen = [Some(sql::SqlType::Date)];
    let sql = "DELETE FROM m WHERE at = $1";
    let description = db.executor.describe(&db.session, sql, &chosen).expect("it is right");
    assert_eq!(description.chosen, chosen, "a date beside a moment is another statement");
    db.run("BEGIN");
    let values = [Value::from("2026-01-01")];
    let done = db.executor.execute_text(
        &mut db.session,
        &sql::StatementText::new(sql),
        (&values, &description.chosen),
        &db.cancel,
        &mut crate::common::Rows::default(),
    );
    assert_eq!(done.expect("it works").affected, 1);
    db.run("INSERT INTO m VALUES (4, NULL);\nCOMMIT");
    assert_eq!(db.query("SELECT id FROM m ORDER BY id"), "2;3;4");
}

/// Before, what another wrote between `SELECT ... FOR UPDATE` and an `UPDATE` of constants was overwritten: an
/// acknowledged write was lost, and two workers had one job.
#[test]
fn a_row_that_was_read_for_update_is_not_written_over() {
    let reads = [
        "SELECT g FROM t WHERE id = 1 FOR UPDATE",
        "SELECT g FROM t WHERE g = 10 ORDER BY g, id LIMIT 1 FOR UPDATE SKIP LOCKED",
        "SELECT g + 1 FROM t WHERE g < 15 FOR SHARE",
        "SELECT a.g FROM t a JOIN t b ON a.id = b.id FOR UPDATE",
        "SELECT * FROM t FOR NO KEY UPDATE",
    ];
    let writes = [
        "UPDATE t SET g = 11 WHERE id = 1",
        "UPDATE t SET g = 11 WHERE name = 'a'",
        "INSERT INTO t VALUES (1, 11, 'a') ON CONFLICT (id) DO UPDATE SET g = excluded.g",
        "REPLACE INTO t VALUES (1, 11, 'a')",
        "DELETE FROM t WHERE id = 1",
    ];
    for (read, write) in reads.iter().flat_map(|read| writes.iter().map(move |write| (read, write))) {
        let (mut db, mut other) = table();
        db.run("BEGIN");
        db.query(read);
        other.execute("UPDATE t SET g = g + 100 WHERE id = 1").unwrap();
        db.run(write);
        assert_eq!(db.state("COMMIT"), "40001", "{read}; {write}");
        assert_eq!(other.query("SELECT g FROM t WHERE id = 1"), "110", "{read}; {write}");
        // Nobody has changed what it read now, or it writes another row than those.
        db.run("BEGIN");
        db.query(read);
        db.run(write);
        db.run("COMMIT");
        db.run("BEGIN");
        db.query(read);
        other.execute("UPDATE t SET g = g + 100 WHERE id = 3").unwrap();
        db.run("UPDATE t SET name = 'bb' WHERE id = 2");
        db.run("COMMIT");
    }
    // Who only reads, and who writes in one statement, has nothing to lose.
    let (mut db, mut other) = table();
    db.run("BEGIN");
    db.query("SELECT g FROM t WHERE id = 1");
    other.execute("UPDATE t SET g = g + 100 WHERE id = 1").unwrap();
    db.run("UPDATE t SET g = g + 1 WHERE id = 1");
    db.run("COMMIT");
    assert_eq!(other.query("SELECT g FROM t WHERE id = 1"), "111");
}

#[test]
fn rows_that_are_read_for_update_are_limited() {
    let (mut db, _) = table();
    let most = store::CHOSEN_ROWS_MAX;
    db.run(&format!("INSERT INTO t SELECT n, n, 'n' || n FROM generate_series(1000, {}) n", 900 + most));
    db.run("BEGIN");
    db.query("SELECT g FROM t FOR UPDATE");
    db.run("COMMIT");
    db.run("INSERT INTO t SELECT n, n, 'm' || n FROM generate_series(500, 700) n");
    db.run("BEGIN");
    assert_eq!(db.state("SELECT g FROM t FOR UPDATE"), "54000");
    assert_eq!(db.state("SELECT 1"), "25P02");
}
