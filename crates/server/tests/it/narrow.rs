//! What a role may do that was granted little: columns, reading alone, no look at the server's files.

use crate::grants::{done, guarded, refusal, sql};
use crate::harness::Daemon;
use crate::pg::Pg;

fn states(daemon: &Daemon, cases: &[(&str, &str, Option<&str>)]) {
    let mut wrong = Vec::new();
    for (role, statement, expected) in cases {
        let said = sql(daemon, role).ask(statement);
        if refusal(&said) != *expected {
            wrong.push(format!("{role}: {statement}: {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn besieged(more: &str) -> (Daemon, Pg) {
    let daemon = guarded(&format!("CREATE USER a; CREATE USER b; CREATE USER c; {more}"));
    let mut chief = sql(&daemon, "chief");
    done(
        &mut chief,
        &[
            "CREATE TABLE rk (k TEXT PRIMARY KEY, v TEXT, n INT)",
            "INSERT INTO rk VALUES ('s3cr3t', 'open', 1)",
            "CREATE SEQUENCE s",
        ],
    );
    (daemon, chief)
}

/// Who was granted a column without the key read the key in `_row`, by which a write finds its row.
#[test]
fn the_identity_of_a_row_is_for_who_may_read_its_key() {
    const TELLING: &[&str] = &[
        "SELECT _row FROM rk",
        "SELECT rk._ROW FROM rk",
        "SELECT v, length(\"_row\") FROM rk",
        "SELECT v FROM rk WHERE _row > ''",
        "SELECT v FROM rk ORDER BY _row",
        "SELECT max(_row) FROM rk",
        "SELECT v FROM rk GROUP BY v, _row",
        "WITH w AS (SELECT _row AS r FROM rk) SELECT r FROM w",
        "SELECT (SELECT x._row FROM rk x LIMIT 1) FROM rk",
        "SELECT x.v FROM rk x JOIN rk y ON x._row = y._row",
        "COPY (SELECT _row FROM rk) TO STDOUT",
        "EXPLAIN SELECT _row FROM rk",
        "PREPARE p AS SELECT _row FROM rk; EXECUTE p",
        "BEGIN; DECLARE c CURSOR FOR SELECT _row FROM rk; FETCH c",
        "UPDATE rk SET n = 2 WHERE _row IS NOT NULL",
        "UPDATE rk SET n = 2 RETURNING _row",
        "UPDATE rk SET v = _row::text",
        "DELETE FROM rk WHERE v = 'none' RETURNING _row",
    ];
    let (daemon, mut chief) = besieged("GRANT CREATE ON SCHEMA public TO b;");
    done(
        &mut chief,
        &[
            "GRANT SELECT (v, n), UPDATE (v, n) ON rk TO a, b",
            "GRANT DELETE ON rk TO a",
            "GRANT SELECT (k) ON rk TO c",
        ],
    );
    let refused: Vec<_> = TELLING.iter().map(|statement| ("a", *statement, Some("42501"))).collect();
    states(&daemon, &refused);
    states(
        &daemon,
        &[
            ("a", "SELECT v, _ttl, _age, _cas, _size, _hits FROM rk", None),
            ("a", "UPDATE rk SET n = 3 WHERE v = 'open' RETURNING v", None),
            ("c", "SELECT _row FROM rk", None),
            ("c", "SELECT v FROM rk", Some("42501")),
        ],
    );
    // A view is read with the rights of its owner, who cannot give what he has not.
    done(
        &mut sql(&daemon, "b"),
        &["CREATE VIEW seen AS SELECT v, _row AS r FROM rk", "GRANT SELECT ON seen TO c"],
    );
    states(
        &daemon,
        &[("b", "SELECT r FROM seen", Some("42501")), ("c", "SELECT r FROM seen", Some("42501"))],
    );
}

/// Roles were made and sequences went on where only reading was allowed.
#[test]
fn what_only_reads_changes_nothing() {
    const WRITING: &[&str] = &[
        "CREATE ROLE x",
        "CREATE USER x PASSWORD 'y'",
        "ALTER ROLE a PASSWORD 'y'",
        "ALTER ROLE a RENAME TO z",
        "DROP ROLE a",
        "DROP ROLE IF EXISTS nobody",
        "GRANT a TO b",
        "REVOKE a FROM b",
        "GRANT SELECT ON rk TO a",
        "REVOKE SELECT ON rk FROM a",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO a",
        "DROP OWNED BY a",
        "REASSIGN OWNED BY a TO b",
        "SELECT nextval('s')",
        "SELECT v, nextval('s') FROM rk",
        "SELECT setval('s', 7)",
        "SELECT setval('s', 7, false)",
        "VALUES (nextval('s'))",
        "INSERT INTO rk VALUES ('a')",
        "UPDATE rk SET n = 2",
        "DELETE FROM rk",
        "TRUNCATE rk",
        "CREATE TABLE x (a INT)",
        "CREATE VIEW x AS SELECT 1",
        "CREATE INDEX x ON rk (n)",
        "CREATE SEQUENCE x",
        "ALTER SEQUENCE s RESTART",
        "COMMENT ON TABLE rk IS 'x'",
        "DROP TABLE rk",
        "COPY rk FROM STDIN",
        "SELECT v FROM rk FOR UPDATE",
    ];
    const READING: &[&str] = &[
        "SELECT v FROM rk",
        "COPY rk TO STDOUT",
        "SHOW work_mem",
        "LISTEN x",
        "NOTIFY x",
        "EXPLAIN SELECT v FROM rk",
        "SELECT pg_sequence_last_value('s'::regclass)",
    ];
    let (daemon, mut chief) = besieged("");
    let before = chief.ask("SELECT count(*) FROM pg_roles");
    for begin in
        ["SET default_transaction_read_only = on", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"]
    {
        for (statements, expected) in [(WRITING, Some("25006")), (READING, None)] {
            for statement in statements {
                let mut pg = sql(&daemon, "chief");
                done(&mut pg, &[begin]);
                let said = pg.ask(statement);
                assert_eq!(refusal(&said), expected, "{statement}: {said:?}");
            }
        }
    }
    for statement in ["SELECT nextval('s')", "SELECT setval('s', 7)"] {
        let mut pg = sql(&daemon, "chief");
        done(&mut pg, &["BEGIN READ ONLY"]);
        assert_eq!(refusal(&pg.ask(statement)), Some("25006"), "{statement}");
    }
    assert_eq!(chief.ask("SELECT count(*) FROM pg_roles"), before);
    assert_eq!(chief.ask("SELECT nextval('s')")[1], "D 1", "the sequence went on");
}

/// `SELECT ... FOR UPDATE` and `LOCK TABLE` were for who may read, whatever else he may not do.
#[test]
fn who_locks_may_write() {
    let (daemon, mut chief) = besieged("");
    done(
        &mut chief,
        &["GRANT SELECT ON rk TO a, b", "GRANT UPDATE (n) ON rk TO b", "GRANT INSERT ON rk TO c"],
    );
    states(
        &daemon,
        &[
            ("a", "SELECT v FROM rk", None),
            ("a", "SELECT v FROM rk FOR UPDATE", Some("42501")),
            ("a", "SELECT v FROM rk FOR SHARE", Some("42501")),
            ("a", "SELECT x.v FROM rk x FOR NO KEY UPDATE OF x", Some("42501")),
            ("a", "SELECT v FROM rk LIMIT 1 FOR KEY SHARE", Some("42501")),
            ("a", "SELECT 1 FROM (SELECT v FROM rk FOR UPDATE) s", Some("42501")),
            ("b", "SELECT v FROM rk FOR UPDATE", None),
            ("a", "BEGIN; LOCK TABLE rk IN ACCESS SHARE MODE", None),
            ("a", "BEGIN; LOCK TABLE rk", Some("42501")),
            ("a", "BEGIN; LOCK TABLE rk IN SHARE MODE", Some("42501")),
            ("a", "BEGIN; LOCK TABLE rk IN ROW EXCLUSIVE MODE", Some("42501")),
            ("c", "BEGIN; LOCK TABLE rk IN ROW EXCLUSIVE MODE", None),
            ("c", "BEGIN; LOCK TABLE rk IN ACCESS SHARE MODE", Some("42501")),
            ("c", "BEGIN; LOCK TABLE rk IN EXCLUSIVE MODE", Some("42501")),
            ("chief", "BEGIN; LOCK TABLE rk", None),
            ("chief", "BEGIN; LOCK TABLE nothing", Some("42P01")),
        ],
    );
}
