//! Functions and procedures through both protocols, and the ways around the gate that were thought of: nobody reads or
//! writes through one what the caller may not.

use crate::grants::{done, guarded, memcached, refusal, sql};
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

/// `SECURITY DEFINER` lends the owner's rights to the body, and to nothing else that its caller says.
#[test]
fn a_function_with_its_owners_rights_lends_them_to_its_body_alone() {
    let daemon = guarded(
        "CREATE USER a PASSWORD 'x'; CREATE USER maker; GRANT CREATE ON SCHEMA public TO maker;
         GRANT CREATE ON SCHEMA evil TO a;",
    );
    let (mut chief, mut maker) = (sql(&daemon, "chief"), sql(&daemon, "maker"));
    done(&mut chief, &["CREATE SCHEMA evil", "GRANT CREATE ON SCHEMA evil TO a"]);
    done(
        &mut maker,
        &[
            "CREATE TABLE secret (id INT PRIMARY KEY, v TEXT)",
            "INSERT INTO secret VALUES (1, 'hidden'), (2, 'too')",
            "CREATE FUNCTION peek(which INT) RETURNS TEXT LANGUAGE sql SECURITY DEFINER AS 'SELECT v FROM secret WHERE id = which'",
            "CREATE FUNCTION who() RETURNS TEXT LANGUAGE sql SECURITY DEFINER AS $$ SELECT current_user || '/' || session_user $$",
            "CREATE FUNCTION inner_peek() RETURNS TEXT LANGUAGE sql AS 'SELECT v FROM secret WHERE id = 2'",
            "CREATE FUNCTION nested() RETURNS TEXT LANGUAGE sql SECURITY DEFINER AS 'SELECT inner_peek()'",
            "CREATE FUNCTION echo(v TEXT) RETURNS TEXT LANGUAGE sql SECURITY DEFINER AS 'SELECT v'",
            "CREATE FUNCTION with_default(v TEXT DEFAULT (SELECT max(v) FROM secret)) RETURNS TEXT SECURITY DEFINER RETURN v",
            "CREATE PROCEDURE wipe(which INT) LANGUAGE sql SECURITY DEFINER AS 'DELETE FROM secret WHERE id = which'",
            "CREATE PROCEDURE fail() LANGUAGE sql SECURITY DEFINER AS $$ INSERT INTO secret VALUES (3, 'x'); INSERT INTO secret VALUES (1, 'x') $$",
        ],
    );
    let mut a = sql(&daemon, "a");
    for (statement, answer) in [
        ("SELECT peek(1)", "D hidden"),
        ("SELECT * FROM peek(2)", "D too"),
        ("SELECT who()", "D maker/a"),
        ("SELECT current_user", "D a"),
        ("SELECT nested()", "D too"),
    ] {
        assert_eq!(a.ask(statement)[1], answer, "{statement}");
    }
    // What is the caller's: statements beside it, arguments, defaults, and who may change it.
    for statement in [
        "SELECT v FROM secret",
        "SELECT echo((SELECT max(v) FROM secret))",
        "SELECT with_default()",
        "SELECT inner_peek()",
        "ALTER FUNCTION peek SECURITY INVOKER",
        "ALTER FUNCTION peek SET search_path = evil",
        "CREATE OR REPLACE FUNCTION peek(which INT) RETURNS TEXT SECURITY DEFINER RETURN 'x'",
    ] {
        assert_eq!(refusal(&a.ask(statement)), Some("42501"), "{statement}");
    }
    // A body that fails leaves nothing, and its caller as it was.
    assert_eq!(refusal(&a.ask("CALL fail()")), Some("23505"));
    assert_eq!(refusal(&a.ask("SELECT v FROM secret")), Some("42501"));
    assert_eq!(a.ask("SELECT current_user")[1], "D a");
    assert_eq!(maker.ask("SELECT count(*) FROM secret")[1], "D 2");
    // It stands in no larger statement, where its rights would end nowhere.
    for statement in ["SELECT peek(1) || 'x'", "SELECT v FROM peek(1) AS v WHERE v > ''"] {
        assert_eq!(refusal(&a.ask(statement)), Some("0A000"), "{statement}");
    }
    // What the caller puts in the way of a name is not found.
    done(
        &mut a,
        &[
            "CREATE TABLE evil.secret (id INT PRIMARY KEY, v TEXT)",
            "INSERT INTO evil.secret VALUES (1, 'planted')",
            "CREATE FUNCTION evil.inner_peek() RETURNS TEXT LANGUAGE sql AS 'SELECT max(v) FROM public.secret'",
            "SET search_path = evil, public",
        ],
    );
    assert_eq!(a.ask("SELECT v FROM secret")[1], "D planted");
    assert_eq!(a.ask("SELECT peek(1)")[1], "D hidden");
    assert_eq!(a.ask("SELECT public.nested()")[1], "D too");
    assert_eq!(a.ask("SELECT v FROM secret")[1], "D planted");
    done(&mut maker, &["ALTER FUNCTION peek SET search_path = evil"]);
    done(&mut a, &["GRANT SELECT ON evil.secret TO maker"]);
    assert_eq!(a.ask("SELECT peek(1)")[1], "D planted");
    done(&mut maker, &["ALTER FUNCTION peek RESET search_path"]);
    done(&mut a, &["RESET search_path"]);
    // COMMIT computes a deletion again, as whom it was.
    done(&mut a, &["BEGIN", "CALL wipe(1)", "COMMIT"]);
    assert_eq!(maker.ask("SELECT count(*) FROM secret")[1], "D 1");
    assert_eq!(refusal(&a.ask("DELETE FROM secret WHERE id = 2")), Some("42501"));
    // memcached's clients call it, too.
    let mut client = memcached(&daemon, "a");
    client.ask(b"call peek 3\r\n[2]\r\n", b"{\"peek\":\"too\"}\r\nEND\r\n");
    client.ask(b"call wipe 3\r\n[2]\r\n", b"OK 0\r\n");
    assert_eq!(maker.ask("SELECT count(*) FROM secret")[1], "D 0");
    // The owner lends what it has now.
    done(&mut maker, &["INSERT INTO secret VALUES (1, 'new')", "REVOKE SELECT ON secret FROM maker"]);
    assert_eq!(refusal(&a.ask("SELECT peek(1)")), Some("42501"));
    done(&mut maker, &["GRANT SELECT ON secret TO maker", "ALTER FUNCTION peek SECURITY INVOKER"]);
    assert_eq!(refusal(&a.ask("SELECT peek(1)")), Some("42501"));
    // Nobody becomes another one for longer than the body runs.
    done(
        &mut chief,
        &[
            "CREATE FUNCTION become() RETURNS TEXT LANGUAGE sql SECURITY DEFINER AS $$ SELECT set_config('role', 'chief', false) $$",
        ],
    );
    assert_eq!(refusal(&a.ask("SELECT become()")), Some("42501"));
    assert_eq!(a.ask("SELECT current_user")[1], "D a");
}

/// Everybody may call a new function, until its maker says otherwise of all that are to come.
#[test]
fn functions_begin_with_the_privileges_of_their_maker() {
    let daemon = guarded(
        "CREATE USER a; CREATE USER b; CREATE USER maker; GRANT CREATE ON SCHEMA public TO maker;
         ALTER DEFAULT PRIVILEGES FOR ROLE maker REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;",
    );
    let mut chief = sql(&daemon, "chief");
    let (mut maker, mut a, mut b) = (sql(&daemon, "maker"), sql(&daemon, "a"), sql(&daemon, "b"));
    let acl = "SELECT defaclobjtype || array_to_string(defaclacl, ' ') FROM pg_default_acl";
    assert_eq!(chief.ask(acl)[1], "D fmaker=X/maker");
    done(&mut maker, &["CREATE FUNCTION one() RETURNS INT RETURN 1", "SELECT one()"]);
    assert_eq!(refusal(&a.ask("SELECT one()")), Some("42501"));
    done(&mut maker, &["ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON ROUTINES TO a"]);
    assert_eq!(chief.ask(acl)[1], "D fmaker=X/maker a=X/maker");
    done(&mut maker, &["CREATE PROCEDURE two() LANGUAGE sql AS ''"]);
    done(&mut a, &["CALL two()"]);
    assert_eq!(refusal(&b.ask("CALL two()")), Some("42501"));
    // Those of a schema are added; they take nothing away.
    done(&mut maker, &["ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT EXECUTE ON FUNCTIONS TO b"]);
    done(&mut maker, &["ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC"]);
    done(&mut maker, &["CREATE FUNCTION three() RETURNS INT RETURN 3"]);
    done(&mut a, &["SELECT three()"]);
    done(&mut b, &["SELECT three()"]);
    assert_eq!(
        maker.ask("SELECT array_to_string(proacl, ' ') FROM pg_proc WHERE proname = 'three'")[1],
        "D maker=X/maker a=X/maker b=X/maker"
    );
    done(
        &mut maker,
        &[
            "ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON FUNCTIONS FROM b",
            "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM a",
            "ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC",
            "CREATE FUNCTION four() RETURNS INT RETURN 4",
        ],
    );
    assert_eq!(chief.ask("SELECT count(*) FROM pg_default_acl")[1], "D 0");
    done(&mut b, &["SELECT four()"]);
    // All that are there, at once.
    done(&mut chief, &["REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC, a, b"]);
    for statement in ["SELECT one()", "SELECT three()", "SELECT four()"] {
        assert_eq!(refusal(&a.ask(statement)), Some("42501"), "{statement}");
    }
    done(&mut a, &["CALL two()"]);
    done(&mut maker, &["GRANT EXECUTE ON ALL ROUTINES IN SCHEMA public TO b"]);
    done(&mut b, &["SELECT four()", "CALL two()"]);
    assert_eq!(refusal(&a.ask("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA nowhere TO a")), Some("3F000"));
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
            "D k integer|text",
        ),
        (
            "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'of'",
            "D CREATE OR REPLACE FUNCTION public.of(k integer)\n RETURNS text\n LANGUAGE sql\n STRICT\nBEGIN ATOMIC\n SELECT t.v FROM t WHERE t.k = $1;\nEND\n",
        ),
    ] {
        assert_eq!(chief.ask(asked)[1], said);
    }
}

/// What stands in a larger statement is asked of the caller, too.
#[test]
fn a_function_within_a_statement_gives_nobody_what_the_caller_may_not() {
    let daemon = guarded("CREATE USER a; CREATE USER viewer; GRANT CREATE ON SCHEMA public TO viewer;");
    let mut chief = sql(&daemon, "chief");
    done(
        &mut chief,
        &[
            "CREATE TABLE secret (id INT PRIMARY KEY, v TEXT, w TEXT)",
            "INSERT INTO secret VALUES (1, 'hidden', 'seen')",
            "CREATE FUNCTION peek(which INT) RETURNS TEXT LANGUAGE sql AS 'SELECT v FROM secret WHERE id = which'",
            "CREATE FUNCTION rest() RETURNS SETOF TEXT LANGUAGE sql AS 'SELECT w FROM secret'",
            "CREATE FUNCTION two(v TEXT DEFAULT (SELECT max(v) FROM secret)) RETURNS TEXT RETURN v",
            "CREATE FUNCTION through() RETURNS TEXT LANGUAGE sql AS 'SELECT peek(1) || 1'",
            "CREATE FUNCTION open() RETURNS INT RETURN 1",
        ],
    );
    let (mut a, mut viewer) = (sql(&daemon, "a"), sql(&daemon, "viewer"));
    let asked = [
        "SELECT peek(1), 1",
        "SELECT 1 FROM (VALUES (1)) AS x(id), LATERAL peek(x.id) AS p",
        "SELECT rest(), 1",
        "SELECT count(*) FROM rest() AS x WHERE x = 'seen'",
        "SELECT two() || 'x'",
        "SELECT through() || 'x'",
        "SELECT 1 WHERE peek(1) = 'hidden'",
        "EXPLAIN SELECT peek(1), 1",
        "COPY (SELECT peek(1), 1) TO STDOUT",
    ];
    for statement in asked {
        assert_eq!(refusal(&a.ask(statement)), Some("42501"), "{statement}");
    }
    assert_eq!(a.ask("SELECT open() + 1")[1], "D 2");
    // Columns count one by one.
    done(&mut chief, &["GRANT SELECT (id, w) ON secret TO a"]);
    assert_eq!(a.ask("SELECT count(*) FROM rest() AS x WHERE x = 'seen'")[1], "D 1");
    assert_eq!(refusal(&a.ask("SELECT peek(1), 1")), Some("42501"));
    done(&mut chief, &["GRANT SELECT ON secret TO a"]);
    assert_eq!(a.ask("SELECT through() || 'x'")[1], "D hidden1x");
    // EXECUTE, of what is called within, too.
    done(
        &mut chief,
        &["REVOKE EXECUTE ON FUNCTION peek FROM PUBLIC", "REVOKE EXECUTE ON FUNCTION open FROM PUBLIC"],
    );
    for statement in ["SELECT peek(1), 1", "SELECT through() || 'x'", "SELECT open() + 1"] {
        assert_eq!(refusal(&a.ask(statement)), Some("42501"), "{statement}");
    }
    assert_eq!(refusal(&viewer.ask("CREATE VIEW mine AS SELECT open() AS x")), Some("42501"));
    // A view that calls one shows what its owner may see.
    done(&mut chief, &["GRANT EXECUTE ON FUNCTION peek TO viewer"]);
    done(&mut viewer, &["CREATE VIEW mine AS SELECT peek(1) AS v", "GRANT SELECT ON mine TO a"]);
    assert_eq!(refusal(&a.ask("SELECT v FROM mine")), Some("42501"));
    done(&mut chief, &["GRANT SELECT ON secret TO viewer", "REVOKE SELECT ON secret FROM a"]);
    assert_eq!(a.ask("SELECT v FROM mine")[1], "D hidden");
}

/// What psql and pgjdbc ask of functions is answered as PostgreSQL answers.
#[test]
fn the_catalogue_of_functions_is_postgresqls() {
    let (_servers, mut both) = crate::random_postgresql::Both::start();
    let (made, asked) = include_str!("routines.sql").split_once("-- asked\n").expect("two parts");
    for statement in made.lines() {
        both.set(statement);
    }
    let (mut count, mut wrong) = (0, Vec::new());
    for asked in asked.split(";\n").map(str::trim).filter(|asked| !asked.is_empty()) {
        count += 1;
        let (theirs, ours) = both.ask(asked);
        if theirs != ours {
            wrong.push(format!("{asked}\n  PostgreSQL: {theirs:?}\n  here:       {ours:?}"));
        }
    }
    assert!(count >= 12 && wrong.is_empty(), "of {count}: {}", wrong.join("\n"));
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
    assert_eq!(
        ask(
            "CREATE FUNCTION below(high INT) RETURNS SETOF INT LANGUAGE sql AS 'SELECT k FROM t WHERE k < high'"
        ),
        "OK 0"
    );
    assert_eq!(
        ask("CREATE PROCEDURE plus(a INT, OUT b INT, c INT DEFAULT 3) LANGUAGE sql AS 'SELECT a + c'"),
        "OK 0"
    );
    // The verb for it.
    for (line, block, answer) in [
        ("put", "[6]", "OK 0"),
        ("public.put", "[7]", "OK 0"),
        ("PUT", "[6]", "ERROR 23505"),
        ("put", "[\"x\"]", "ERROR 22P02"),
        ("put", "[]", "ERROR 42883"),
        ("put", "[1, 2]", "ERROR 42883"),
        ("nosuch", "[]", "ERROR 42883"),
        ("plus", "[1]", "{\"b\":4}"),
        ("plus", "[1, 1]", "{\"b\":2}"),
        ("below", "[6]", "{\"below\":5}"),
        ("put", "{}", "ERROR"),
    ] {
        client.send(format!("call {line} {}\r\n{block}\r\n", block.len()).as_bytes());
        let found = client.line();
        assert!(found.starts_with(answer), "call {line} {block}: {found}");
        if found.starts_with('{') {
            assert_eq!(client.line(), "END");
        }
    }
    for line in ["call put", "call put x", "call", "call put 1 2"] {
        client.send(format!("{line}\r\n").as_bytes());
        assert_eq!(
            client.line(),
            "ERROR 08P01 usage: call <name> <bytes>, then the arguments as a JSON array"
        );
    }
}
