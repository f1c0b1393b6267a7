//! Functions and procedures through both protocols, and the ways around the gate that were thought of: nobody reads or
//! writes through one what the caller may not.

use crate::grants::{done, guarded, refusal, sql};
use crate::pg::{bind, execute, message, parse};

/// Whoever calls it, what it does is the caller's; and it takes EXECUTE.
#[test]
fn a_function_gives_nobody_what_the_caller_may_not() {
    let daemon = guarded("CREATE USER a; CREATE USER maker; GRANT CREATE ON SCHEMA public TO maker;");
    let mut chief = sql(&daemon, "chief");
    let setup = [
        "CREATE TABLE secret (id INT PRIMARY KEY, v TEXT)",
        "INSERT INTO secret VALUES (1, 'hidden')",
        "CREATE VIEW shown AS SELECT id FROM secret",
        "CREATE FUNCTION peek(which INT) RETURNS TEXT LANGUAGE sql AS 'SELECT v FROM secret WHERE id = which'",
        "CREATE FUNCTION outer_peek() RETURNS SETOF TEXT LANGUAGE sql AS 'SELECT v FROM (SELECT v FROM secret) AS x'",
        "CREATE FUNCTION ids() RETURNS SETOF INT LANGUAGE sql AS 'SELECT id FROM shown'",
        "CREATE PROCEDURE put(id INT) LANGUAGE sql AS 'INSERT INTO secret VALUES (id, NULL)'",
        "CREATE PROCEDURE wipe() BEGIN ATOMIC DELETE FROM secret; END",
        "CREATE PROCEDURE through() LANGUAGE sql AS 'CALL wipe()'",
        "CREATE FUNCTION with_default(v TEXT DEFAULT (SELECT max(v) FROM secret)) RETURNS TEXT RETURN v",
        "CREATE FUNCTION echo(v TEXT) RETURNS TEXT RETURN v",
        "GRANT SELECT ON shown TO a",
    ];
    done(&mut chief, &setup);
    let mut a = sql(&daemon, "a");
    for statement in [
        "SELECT peek(1)",
        "SELECT * FROM peek(1)",
        "SELECT * FROM outer_peek()",
        "CALL put(2)",
        "CALL wipe()",
        "CALL through()",
        "SELECT with_default()",
        "SELECT echo((SELECT v FROM secret))",
        "CALL put((SELECT max(id) FROM secret))",
        "CREATE FUNCTION mine() RETURNS INT RETURN 1",
        "CREATE OR REPLACE FUNCTION peek(which INT) RETURNS TEXT RETURN 'x'",
        "DROP FUNCTION peek",
        "DROP ROUTINE wipe",
        "GRANT EXECUTE ON FUNCTION peek TO a",
        "REVOKE EXECUTE ON PROCEDURE wipe FROM PUBLIC",
    ] {
        assert_eq!(refusal(&a.ask(statement)), Some("42501"), "{statement}");
    }
    done(&mut a, &["SELECT echo('x')", "SELECT ids()", "SELECT * FROM ids()"]);
    // By a prepared statement, too, and by one that was allowed before.
    a.send(
        &[parse("p", "SELECT peek($1)"), bind("", "p", &["1"]), execute("", 0), message(b'S', b"")].concat(),
    );
    assert!(a.until_ready().iter().any(|said| said.starts_with("E ERROR 42501")));
    done(&mut chief, &["GRANT SELECT ON secret TO a"]);
    assert_eq!(a.ask("SELECT peek(1)")[1], "D hidden");
    done(&mut chief, &["REVOKE SELECT ON secret FROM a"]);
    assert_eq!(refusal(&a.ask("SELECT peek(1)")), Some("42501"));
    // EXECUTE is everybody's, until it is taken away.
    done(&mut chief, &["GRANT ALL ON secret TO a", "REVOKE EXECUTE ON PROCEDURE wipe FROM PUBLIC"]);
    for statement in ["CALL wipe()", "CALL through()"] {
        assert_eq!(refusal(&a.ask(statement)), Some("42501"), "{statement}");
    }
    assert_eq!(chief.ask("SELECT count(*) FROM secret")[1], "D 1");
    done(&mut chief, &["GRANT EXECUTE ON PROCEDURE wipe() TO a"]);
    done(&mut a, &["CALL through()"]);
    assert_eq!(chief.ask("SELECT count(*) FROM secret")[1], "D 0");
    // Whoever makes one owns it.
    let mut maker = sql(&daemon, "maker");
    done(&mut maker, &["CREATE FUNCTION own() RETURNS TEXT LANGUAGE sql AS 'SELECT max(v) FROM secret'"]);
    assert_eq!(refusal(&maker.ask("SELECT own()")), Some("42501"));
    assert_eq!(refusal(&chief.ask("DROP ROLE maker")), Some("2BP01"));
    done(&mut maker, &["CREATE OR REPLACE FUNCTION own() RETURNS TEXT RETURN 'x'", "DROP FUNCTION own"]);
}

#[test]
fn calls_of_clients() {
    let daemon = guarded("");
    let mut chief = sql(&daemon, "chief");
    done(
        &mut chief,
        &[
            "CREATE TABLE t (k INT PRIMARY KEY, v TEXT)",
            "CREATE OR REPLACE PROCEDURE put(k INT, v TEXT DEFAULT 'none') LANGUAGE sql AS $$ INSERT INTO t VALUES (k, v); UPDATE t SET v = v || '!' $$",
            "CREATE FUNCTION of(k INT) RETURNS TEXT STRICT BEGIN ATOMIC SELECT t.v FROM t WHERE t.k = $1; END",
        ],
    );
    assert_eq!(chief.ask("CALL put(1, 'a')"), ["C CALL"]);
    chief.send(
        &[
            parse("", "CALL put($1, $2)"),
            message(b'D', b"S\0"),
            bind("", "", &["2", "b"]),
            execute("", 0),
            message(b'S', b""),
        ]
        .concat(),
    );
    assert_eq!(chief.until_ready(), ["1", "t [23, 25]", "n", "2", "C CALL", "Z I"]);
    assert_eq!(chief.ask("SELECT of(1)")[1], "D a!!");
    assert_eq!(chief.ask("SELECT * FROM of(2) AS result")[1], "D b!");
    assert_eq!(refusal(&chief.ask("CALL put(1)")), Some("23505"));
    assert_eq!(chief.ask("BEGIN; CALL put(3); ROLLBACK; SELECT count(*) FROM t")[3..5], ["T", "D 2"]);
    for (asked, said) in [
        (
            "SELECT prokind, proname, pronargs, proargnames FROM pg_proc WHERE proname = 'put'",
            "D p|put|2|{k,v}",
        ),
        (
            "SELECT pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc WHERE proname = 'of'",
            "D k INT|TEXT",
        ),
        (
            "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'of'",
            "D CREATE OR REPLACE FUNCTION public.of(k INT)\n RETURNS TEXT\n LANGUAGE sql\n STRICT\nBEGIN ATOMIC\n SELECT t.v FROM t WHERE t.k = $1;\nEND\n",
        ),
    ] {
        assert_eq!(chief.ask(asked)[1], said);
    }
}

/// Statements of memcached's clients call them, too.
#[test]
fn calls_over_memcached() {
    let daemon = crate::harness::daemon();
    let mut client = daemon.connect();
    let mut ask = |sql: &str| {
        client.send(format!("sql {}\r\n{sql}\r\n", sql.len()).as_bytes());
        client.line()
    };
    assert_eq!(ask("CREATE TABLE t (k INT PRIMARY KEY)"), "OK 0");
    assert_eq!(ask("CREATE PROCEDURE put(k INT) LANGUAGE sql AS 'INSERT INTO t VALUES (k)'"), "OK 0");
    assert_eq!(ask("CALL put(5)"), "OK 0");
    assert!(ask("CALL put(5)").starts_with("ERROR 23505"));
}
