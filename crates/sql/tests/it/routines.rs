//! Functions and procedures: what they do, whole or not at all, and what is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Db, shown};
use sql::{Cancel, Executor, Limits, Session};
use store::value::Value;
use store::{Clock, Store, StoreOptions};

/// Runs statements that must work.
fn run(db: &mut Db, script: &str) {
    for piece in sql::split_statements(script) {
        db.execute(piece.sql, &[])
            .unwrap_or_else(|error| panic!("{}: {error} {:?}", piece.sql, error.detail));
    }
}

/// Accounts, and a payment from one to the other.
fn bank() -> Db {
    let mut db = Db::new();
    run(
        &mut db,
        "CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL CHECK (balance >= 0));
CREATE TABLE paid (id SERIAL PRIMARY KEY, payer INT, payee INT, amount INT);
INSERT INTO account VALUES (1, 100), (2, 0);
CREATE PROCEDURE pay(payer INT, payee INT, amount INT DEFAULT 10) LANGUAGE sql AS $$
    UPDATE account SET balance = balance - amount WHERE id = payer;
    UPDATE account SET balance = balance + amount WHERE id = payee;
    INSERT INTO paid (payer, payee, amount) VALUES (payer, payee, amount);
$$",
    );
    db
}

const BALANCES: &str = "SELECT balance FROM account ORDER BY id";

#[test]
fn a_procedure_writes_whole_or_not_at_all() {
    let mut db = bank();
    for (sql, expected) in [
        ("CALL pay(1, 2, 30)", "70;30"),
        ("CALL pay(1, 2)", "60;40"),
        ("call public.pay(payee => 1, payer => 2, amount := 5);", "65;35"),
        ("CALL pay(1, (SELECT max(id) FROM account), '5')", "60;40"),
    ] {
        let (done, _) = db.execute(sql, &[]).unwrap();
        assert_eq!(done.tag, "CALL", "{sql}");
        assert_eq!(db.query(BALANCES), expected, "{sql}");
    }
    let values = [Value::Integer(2), Value::Integer(1)];
    db.execute("CALL pay($1, $2, 40)", &values).unwrap();
    assert_eq!(db.query(BALANCES), "100;0");
    // The first statement of the body would have worked.
    run(&mut db, "INSERT INTO account VALUES (3, 5)");
    assert_eq!(db.state("CALL pay(3, 1, 6)"), "23514");
    run(
        &mut db,
        "CREATE PROCEDURE twice(a INT) LANGUAGE sql AS 'INSERT INTO account VALUES (a, 1); INSERT INTO account VALUES ($1, 2)'",
    );
    assert_eq!(db.state("CALL twice(9)"), "23505");
    assert_eq!(db.query("SELECT id FROM account ORDER BY id"), "1;2;3");
    assert_eq!(db.query("SELECT count(*) FROM paid"), "5");
}

#[test]
fn a_call_is_a_part_of_its_transaction() {
    let mut db = bank();
    run(&mut db, "BEGIN; CALL pay(1, 2, 30)");
    assert_eq!(db.query(BALANCES), "70;30");
    run(&mut db, "SAVEPOINT a");
    assert_eq!(db.state("CALL pay(1, 2, 300)"), "23514");
    assert_eq!(db.state("CALL pay(1, 2, 1)"), "25P02");
    run(&mut db, "ROLLBACK TO a; CALL pay(1, 2, 1); COMMIT");
    assert_eq!(db.query(BALANCES), "69;31");
    run(&mut db, "BEGIN; CALL pay(1, 2, 30); ROLLBACK");
    assert_eq!(db.query(BALANCES), "69;31");
    run(&mut db, "BEGIN READ ONLY");
    assert_eq!(db.state("CALL pay(1, 2, 30)"), "25006");
    run(&mut db, "ROLLBACK");
    // What it deletes without looking is computed again by COMMIT.
    run(
        &mut db,
        "CREATE PROCEDURE clear(least INT) LANGUAGE sql AS 'DELETE FROM paid WHERE amount < least'; CALL clear(1000)",
    );
    assert_eq!(db.query("SELECT count(*) FROM paid"), "0");
}

#[test]
fn functions_answer_with_rows() {
    let mut db = bank();
    run(&mut db,
        "CREATE FUNCTION balance_of(account INT) RETURNS INT LANGUAGE sql AS 'SELECT balance FROM account WHERE id = account';
CREATE FUNCTION rich(least INT) RETURNS TABLE (who INT, balance BIGINT) LANGUAGE sql STABLE
    AS 'SELECT id, balance FROM account WHERE balance >= least ORDER BY id';
CREATE FUNCTION ids() RETURNS SETOF INT LANGUAGE sql AS 'SELECT id FROM account ORDER BY id';
CREATE FUNCTION add(a INT, b INT) RETURNS INT STRICT RETURN a + b;
CREATE FUNCTION put(id INT, balance INT) RETURNS INT BEGIN ATOMIC
    INSERT INTO account VALUES (id, balance) RETURNING account.id;
END;
CREATE FUNCTION nothing() RETURNS void LANGUAGE sql AS ''",
    );
    for (sql, expected) in [
        ("SELECT balance_of(1)", "100"),
        ("SELECT balance_of(77)", "NULL"),
        ("SELECT * FROM balance_of(2) AS result", "0"),
        ("SELECT * FROM rich(1)", "1,100"),
        ("SELECT * FROM rich(least => 0)", "1,100;2,0"),
        ("SELECT ids()", "1;2"),
        ("SELECT add(2, 3)", "5"),
        ("SELECT add(2, NULL) AS five", "NULL"),
        ("SELECT put(5, 7)", "5"),
        ("SELECT * FROM rich(7) r", "1,100;5,7"),
        ("SELECT nothing()", "NULL"),
    ] {
        assert_eq!(db.query(sql), expected, "{sql}");
    }
    let described = db.executor.describe(&db.session, "SELECT * FROM rich($1)", &[]).unwrap();
    let names: Vec<_> =
        described.columns.unwrap().into_iter().map(|column| (column.label, column.ty)).collect();
    let types = [store::definition::SqlType::Int4, store::definition::SqlType::Int8];
    assert_eq!(names, [("who".to_owned(), types[0]), ("balance".to_owned(), types[1])]);
    assert_eq!(described.parameters, [types[0]]);
    let described = db.executor.describe(&db.session, "CALL pay($1, $2)", &[]).unwrap();
    assert_eq!((described.parameters.len(), described.columns, described.tag), (2, None, "CALL"));
}

#[test]
fn what_is_refused() {
    let mut db = bank();
    run(
        &mut db,
        "CREATE FUNCTION one() RETURNS INT RETURN 1;
CREATE PROCEDURE self(a INT) LANGUAGE sql AS 'SELECT 1';
CREATE OR REPLACE PROCEDURE self(a INT) LANGUAGE sql AS 'CALL self(a + 1)'",
    );
    for (sql, state, message) in [
        ("CALL nosuch()", "42883", "procedure nosuch does not exist"),
        ("CALL one()", "42809", "one() is not a procedure"),
        ("SELECT pay(1, 2)", "42809", "pay(integer, integer, integer) is a procedure"),
        ("SELECT pay(1, 2) FROM account", "42809", "is a procedure"),
        ("SELECT * FROM pay(1, 2) AS result", "42809", "is a procedure"),
        ("CALL pay(1)", "42883", "does not exist"),
        ("CALL pay(1, 2, 3, 4)", "42883", "does not exist"),
        ("CALL pay(1, 2, payer => 3)", "42883", "does not exist"),
        ("CALL pay(payer => 1, 2)", "42883", "does not exist"),
        ("CALL pay(1, 2, other => 3)", "42883", "does not exist"),
        ("CALL pay('x', 2, 3)", "22P02", "invalid input"),
        ("CALL pay(1, 2, 3", "42601", ""),
        ("CALL self(1)", "54001", "16 deep"),
        ("CREATE FUNCTION one() RETURNS INT RETURN 2", "42723", "already exists"),
        ("CREATE OR REPLACE PROCEDURE one() LANGUAGE sql AS ''", "42809", "routine kind"),
        ("CREATE FUNCTION lower(a TEXT) RETURNS TEXT RETURN a", "42939", "built in"),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE plpgsql AS 'BEGIN END'", "0A000", "LANGUAGE plpgsql"),
        ("CREATE FUNCTION f() RETURNS INT AS 'SELECT 1'", "42P13", "no language"),
        ("CREATE FUNCTION f() LANGUAGE sql AS 'SELECT 1'", "42P13", "result type"),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE sql", "42P13", "no function body"),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE sql AS ''", "42P13", "return type mismatch"),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE sql AS 'SELECT 1, 2'", "42P13", "return type mismatch"),
        (
            "CREATE FUNCTION f() RETURNS INT LANGUAGE sql AS 'DELETE FROM paid'",
            "42P13",
            "return type mismatch",
        ),
        ("CREATE FUNCTION f(a INT, a INT) RETURNS INT RETURN 1", "42P13", "more than once"),
        (
            "CREATE FUNCTION f(a INT DEFAULT 1, b INT) RETURNS INT RETURN 1",
            "42P13",
            "must also have defaults",
        ),
        ("CREATE FUNCTION f() RETURNS INT RETURN nosuch", "42703", "nosuch"),
        ("CREATE FUNCTION f(a INT) RETURNS INT RETURN $2", "42P02", "no parameter $2"),
        ("CREATE FUNCTION f(VARIADIC a INT[]) RETURNS INT RETURN 1", "0A000", "VARIADIC parameters"),
        (
            "CREATE FUNCTION f(OUT a INT, OUT b INT) LANGUAGE sql AS 'SELECT 1'",
            "42P13",
            "return type mismatch",
        ),
        ("CREATE FUNCTION f(OUT a INT) RETURNS TEXT LANGUAGE sql AS 'SELECT 1'", "42P13", "must be INT"),
        (
            "CREATE FUNCTION f(OUT a INT DEFAULT 1) LANGUAGE sql AS 'SELECT 1'",
            "42P13",
            "only input parameters",
        ),
        ("CREATE FUNCTION f() RETURNS record LANGUAGE sql AS 'SELECT 1'", "0A000", "record"),
        ("CREATE PROCEDURE p(OUT a INT) LANGUAGE sql AS 'DELETE FROM paid'", "42P13", "return type mismatch"),
        ("CREATE FUNCTION pg_get_functiondef() RETURNS INT RETURN 1", "42939", "built in"),
        ("CREATE FUNCTION generate_series() RETURNS INT RETURN 1", "42939", "built in"),
        ("EXPLAIN CALL pay(1, 2)", "42601", "CALL"),
        ("CREATE PROCEDURE p() SECURITY LANGUAGE sql AS 'SELECT 1'", "42601", "LANGUAGE"),
        ("CREATE PROCEDURE p() SET work_mem = '1MB' LANGUAGE sql AS ''", "0A000", "SET work_mem"),
        ("CREATE PROCEDURE p() SET search_path = \"$user\" LANGUAGE sql AS ''", "0A000", "$user"),
        ("CREATE PROCEDURE p() SET search_path = LANGUAGE sql AS ''", "42601", "sql"),
        ("CREATE PROCEDURE p() LANGUAGE sql AS 'COMMIT'", "0A000", "COMMIT in a function"),
        ("CREATE PROCEDURE p() LANGUAGE sql AS 'DROP TABLE paid'", "0A000", "DROP in a function"),
        ("CREATE PROCEDURE p() LANGUAGE sql AS 'SELCT 1'", "42601", "SELCT"),
        ("CREATE PROCEDURE p() LANGUAGE sql AS 'DELETE FROM nosuch'", "42P01", "nosuch"),
        ("DROP FUNCTION pay", "42809", "is a procedure"),
        ("DROP PROCEDURE nosuch", "42883", "does not exist"),
    ] {
        let error = db.error(sql);
        assert_eq!(error.state, state, "{sql}: {error}");
        assert!(error.message.contains(message), "{sql}: {error}");
    }
    assert_eq!(db.query(BALANCES), "100;0");
    run(&mut db, "DROP PROCEDURE IF EXISTS nosuch(int); DROP ROUTINE self, one");
    assert_eq!(db.state("CALL self(1)"), "42883");
}

#[test]
fn tables_stay_that_a_body_needs() {
    let mut db = bank();
    run(
        &mut db,
        "CREATE FUNCTION balances() RETURNS BIGINT BEGIN ATOMIC SELECT sum(balance) FROM account; END;
CREATE FUNCTION poorest() RETURNS INT LANGUAGE sql AS 'SELECT min(balance) FROM account'",
    );
    assert_eq!(db.query("SELECT balances()"), "100");
    let error = db.error("DROP TABLE account");
    assert_eq!(error.state, "2BP01");
    assert_eq!(error.detail.unwrap().as_str(), "function balances depends on table account");
    run(&mut db, "DROP TABLE account CASCADE");
    assert_eq!(db.state("SELECT balances()"), "42883");
    assert_eq!(db.state("SELECT poorest()"), "42P01");
}

#[test]
fn a_rollback_takes_definitions_back() {
    let mut db = bank();
    run(&mut db, "BEGIN; CREATE FUNCTION one() RETURNS INT RETURN 1; DROP PROCEDURE pay; ROLLBACK");
    assert_eq!(db.state("SELECT one()"), "42883");
    run(&mut db, "CALL pay(1, 2); CREATE FUNCTION one() RETURNS INT RETURN 1");
    run(&mut db, "BEGIN; CREATE OR REPLACE FUNCTION one() RETURNS INT RETURN 2");
    assert_eq!(db.query("SELECT one()"), "2");
    run(&mut db, "ROLLBACK");
    assert_eq!(db.query("SELECT one()"), "1");
}

#[test]
fn they_outlive_their_process() {
    let path = std::env::temp_dir().join(format!("sqlcached-routines-{}", std::process::id()));
    let options = StoreOptions {
        path: Some(path.clone()),
        memory_bytes: 16 << 20,
        cold: false,
        clock: Clock::System,
        row_bytes_max: 1 << 20,
    };
    let answer = |statements: &[&str]| {
        let store = Store::open(&options).unwrap().store;
        let mut executor = Executor::new(store, Limits::default()).unwrap();
        let (mut session, cancel, mut rows) = (Session::new(), Cancel::new(), crate::common::Rows::default());
        for sql in statements {
            executor.execute(&mut session, sql, &[], &cancel, &mut rows).unwrap();
        }
        shown(&rows.rows)
    };
    let made = "CREATE FUNCTION twice(a INT DEFAULT 4) RETURNS INT RETURN a * 2";
    assert_eq!(answer(&[made, "SELECT twice()"]), "8");
    assert_eq!(answer(&["SELECT twice(5)"]), "10");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn outputs_are_columns() {
    let mut db = bank();
    run(
        &mut db,
        "CREATE PROCEDURE move(INOUT amount INT, IN payer INT, OUT rest INT) LANGUAGE sql AS $$
    UPDATE account SET balance = balance - amount WHERE id = payer;
    SELECT amount, balance FROM account WHERE id = payer;
$$;
CREATE FUNCTION both(a INT, OUT twice INT, OUT half NUMERIC) LANGUAGE sql AS 'SELECT a * 2, a / 2.0';
CREATE FUNCTION one(a INT, OUT twice INT) LANGUAGE sql AS 'SELECT a * 2';
CREATE FUNCTION all_of(OUT id INT, OUT balance INT) RETURNS SETOF record LANGUAGE sql
    AS 'SELECT id, balance FROM account ORDER BY id';
CREATE FUNCTION nothing(a INT) RETURNS void LANGUAGE sql AS 'UPDATE account SET balance = a WHERE account.id = 2'",
    );
    for (sql, names, expected) in [
        ("CALL move(30, 1, NULL)", "amount,rest", "30,70"),
        ("CALL move(payer => 1, rest => NULL, amount => 5)", "amount,rest", "5,65"),
        ("SELECT * FROM both(3)", "twice,half", "6,1.5000000000000000"),
        ("SELECT one(4)", "one", "8"),
        ("SELECT one(4) AS eight", "eight", "8"),
        ("SELECT * FROM one(4)", "twice", "8"),
        ("SELECT * FROM all_of()", "id,balance", "1,65;2,0"),
        ("SELECT nothing(7)", "nothing", "NULL"),
        ("SELECT * FROM all_of() AS a WHERE a.balance < 50", "id,balance", "2,7"),
    ] {
        let described = db.executor.describe(&db.session, sql, &[]).unwrap().columns.unwrap();
        let labels: Vec<_> = described.iter().map(|column| column.label.as_str()).collect();
        assert_eq!(labels.join(","), names, "{sql}");
        assert_eq!(db.query(sql), expected, "{sql}");
    }
    let (done, _) = db.execute("CALL move(1, 1, NULL)", &[]).unwrap();
    assert_eq!((done.tag, done.affected), ("CALL", 1));
    for (sql, state) in
        [("CALL move(1, 1)", "42883"), ("SELECT both(3)", "0A000"), ("SELECT 1, both(3)", "0A000")]
    {
        assert_eq!(db.state(sql), state, "{sql}");
    }
    // Whoever describes a call is told the type of what stands in the place of an output.
    let described = db.executor.describe(&db.session, "CALL move($1, $2, $3)", &[]).unwrap();
    assert_eq!(described.parameters, [store::definition::SqlType::Int4; 3]);
}

/// What only reads may stand wherever a value or a table may.
#[test]
fn a_function_that_reads_is_a_part_of_a_statement() {
    let mut db = bank();
    run(
        &mut db,
        "INSERT INTO paid (payer, payee, amount) VALUES (1, 2, 5), (1, 3, 6), (2, 1, 7);
CREATE FUNCTION balance_of(account INT) RETURNS INT LANGUAGE sql AS 'SELECT balance FROM account WHERE id = account';
CREATE FUNCTION add(a INT, b INT DEFAULT 10) RETURNS INT STRICT RETURN a + b;
CREATE FUNCTION payments(of INT) RETURNS TABLE (payee INT, amount INT) LANGUAGE sql
    AS 'SELECT payee, amount FROM paid WHERE payer = of ORDER BY id';
CREATE FUNCTION ids() RETURNS SETOF INT LANGUAGE sql AS 'SELECT id FROM account ORDER BY id';
CREATE FUNCTION deep(id INT) RETURNS INT LANGUAGE sql AS 'SELECT add(balance_of(id), 1) * 2';
CREATE FUNCTION half(n NUMERIC) RETURNS NUMERIC RETURN n / 2;
CREATE FUNCTION shout(t TEXT) RETURNS TEXT RETURN upper(t) || '!';
CREATE FUNCTION richest(OUT id INT, OUT balance INT) LANGUAGE sql
    AS 'SELECT id, balance FROM account WHERE balance > 1000 ORDER BY balance DESC';
CREATE FUNCTION note(a INT) RETURNS INT LANGUAGE sql AS 'INSERT INTO paid (amount) VALUES (a) RETURNING amount';
CREATE SCHEMA s; CREATE FUNCTION s.three() RETURNS INT RETURN 3",
    );
    let mut wrong = Vec::new();
    for (sql, expected) in [
        ("SELECT id, balance_of(id) FROM account ORDER BY id", "1,100;2,0"),
        ("SELECT id FROM account AS account WHERE balance_of(id) > 50", "1"),
        ("SELECT balance_of(1) + 1", "101"),
        ("SELECT add(1) + add(b => 2, a => 3)", "16"),
        ("SELECT add(NULL) IS NULL, add(1, NULL) IS NULL", "1,1"),
        ("SELECT sum(add(amount, payer)) FROM paid", "22"),
        (
            "SELECT p.payer, x.amount FROM (VALUES (1), (2)) AS p(payer), LATERAL payments(p.payer) AS x ORDER BY 2",
            "1,5;1,6;2,7",
        ),
        ("SELECT a.id, payments.* FROM account a, payments(a.id) ORDER BY a.id, amount", "1,2,5;1,3,6;2,1,7"),
        (
            "SELECT a.id, p.amount FROM account a LEFT JOIN payments(a.id) p ON p.amount > 6 ORDER BY 1",
            "1,NULL;2,7",
        ),
        ("SELECT count(*) FROM ids() AS a(x), ids() AS b WHERE a.x <= b", "3"),
        ("SELECT ids() + 0 AS x, 7", "1,7;2,7"),
        ("SELECT id, ids() FROM account ORDER BY 1, 2", "1,1;1,2;2,1;2,2"),
        ("SELECT deep(1), deep(2), deep(9) IS NULL", "202,2,1"),
        ("SELECT half(3), half(0.1) * 3", "1.5000000000000000,0.15000000000000000000"),
        ("SELECT shout('it''s') || shout(NULL) IS NULL, shout('it''s')", "1,IT'S!"),
        ("SELECT r.id IS NULL, r.balance FROM richest() AS r", "1,NULL"),
        ("SELECT s.three() + public.add(1, 1)", "5"),
        ("SELECT EXISTS (SELECT 1 FROM payments(3)), ARRAY(SELECT amount FROM payments(1))", "0,[5,6]"),
        ("SELECT balance_of(account.id) FROM account GROUP BY balance_of(account.id) ORDER BY 1", "0;100"),
        ("WITH w AS (SELECT balance_of(1) AS b) SELECT b FROM w", "100"),
        ("SELECT (SELECT balance_of(p.payer)) FROM paid p ORDER BY p.id", "100;100;0"),
        ("UPDATE account SET balance = balance_of(1) + add(1) WHERE id = 2 RETURNING balance", "111"),
        ("INSERT INTO account SELECT 10 + x, balance_of(x) FROM ids() AS x RETURNING id", "11;12"),
        ("DELETE FROM account WHERE id = add(1, 11) RETURNING id", "12"),
    ] {
        match db.execute(sql, &[]) {
            Ok((_, rows)) if shown(&rows.rows) == expected => {}
            Ok((_, rows)) => wrong.push(format!("{sql}: {} and not {expected}", shown(&rows.rows))),
            Err(error) => wrong.push(format!("{sql}: {error} {:?}", error.detail)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let values = [Value::Integer(1), Value::Integer(2)];
    let sql = "SELECT balance_of($1), add($2, 1) FROM account WHERE id = balance_of($1) - 99";
    let described = db.executor.describe(&db.session, sql, &[]).unwrap();
    assert_eq!(described.parameters, [store::definition::SqlType::Int4; 2]);
    assert_eq!(shown(&db.execute(sql, &values).unwrap().1.rows), "100,3");
    assert!(db.query("EXPLAIN SELECT balance_of(id) FROM account").contains("account"));
    run(&mut db, "CREATE VIEW shown AS SELECT id, balance_of(id) AS b FROM account");
    assert_eq!(db.query("SELECT b FROM shown ORDER BY id"), "100;111;100");
    for (sql, state, message) in [
        ("SELECT note(1), 2", "0A000", "within a larger statement"),
        ("SELECT * FROM account WHERE id = note(1)", "0A000", "within a larger statement"),
        ("SELECT * FROM account, note(1)", "0A000", "within a larger statement"),
        ("SELECT pay(1, 2), 3", "42809", "pay is a procedure"),
        ("SELECT add(1, 2, 3) + 1", "42883", "with these arguments"),
        ("SELECT add() + 1", "42883", "with these arguments"),
        ("SELECT add(c => 1) + 1", "42883", "with these arguments"),
        ("SELECT add('x') + 1", "22P02", "invalid input"),
        ("SELECT 1 FROM account WHERE ids() = 1", "0A000", "returns a set"),
        ("SELECT x FROM payments(1) WITH ORDINALITY AS t(a, b, x)", "0A000", "WITH ORDINALITY"),
        ("SELECT add(DISTINCT 1) + 1", "42809", "no aggregate"),
        ("CREATE TABLE d (a INT DEFAULT half(1))", "0A000", "in this place"),
        ("CREATE TABLE d (a INT, CHECK (half(a) > 1))", "0A000", "in this place"),
    ] {
        match db.execute(sql, &[]) {
            Err(error) if error.state == state && error.message.contains(message) => {}
            Err(error) => wrong.push(format!("{sql}: {} {error}", error.state)),
            Ok(_) => wrong.push(format!("{sql}: allowed")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // One that calls itself ends, whatever it would find.
    run(
        &mut db,
        "CREATE FUNCTION loop(a INT) RETURNS INT RETURN a;
CREATE OR REPLACE FUNCTION loop(a INT) RETURNS INT RETURN loop(a) + 1",
    );
    assert_eq!(db.state("SELECT loop(1)"), "54001");
    assert_eq!(db.state("SELECT loop(1) + 1"), "54001");
    // What a function does now is what it does in a statement that ran before.
    assert_eq!(db.query("SELECT add(1) * 2"), "22");
    run(&mut db, "CREATE OR REPLACE FUNCTION add(a INT, b INT DEFAULT 10) RETURNS INT STRICT RETURN a - b");
    assert_eq!(db.query("SELECT add(1) * 2"), "-18");
    run(&mut db, "DROP FUNCTION shout");
    assert_eq!(db.state("SELECT shout('x') || 'y'"), "42883");
}

#[test]
fn a_call_that_runs_out_of_time_changes_nothing() {
    let limits =
        Limits { statement_timeout: Some(std::time::Duration::from_millis(100)), ..Limits::default() };
    let mut own = Executor::new(crate::common::open_store(Clock::System), limits).unwrap();
    let mut ask = |sql: &str| {
        let mut rows = crate::common::Rows::default();
        let done = own.execute(&mut Session::new(), sql, &[], &Cancel::new(), &mut rows);
        done.map(|_| shown(&rows.rows))
    };
    ask("CREATE TABLE t (k INT PRIMARY KEY)").unwrap();
    ask("CREATE PROCEDURE slow() LANGUAGE sql AS $$
    INSERT INTO t VALUES (1);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT count(*) FROM n;
    INSERT INTO t VALUES (2);
$$")
    .unwrap();
    assert_eq!(ask("CALL slow()").unwrap_err().state, "57014");
    assert_eq!(ask("SELECT count(*) FROM t").unwrap(), "0");
}

/// Whatever becomes of it meanwhile, a call is all of one body, or an error and nothing.
#[test]
fn a_procedure_that_is_replaced_or_dropped_while_it_runs_is_whole() {
    const ROUNDS: usize = 200;
    let store = crate::common::open_store(Clock::System);
    let ask = |executor: &mut Executor, sql: &str| {
        let mut rows = crate::common::Rows::default();
        let done = executor.execute(&mut Session::new(), sql, &[], &Cancel::new(), &mut rows);
        done.map(|_| shown(&rows.rows))
    };
    let made = |step: usize| {
        format!(
            "CREATE OR REPLACE PROCEDURE both() LANGUAGE sql AS \
             'UPDATE t SET n = n + {step} WHERE k = 1; UPDATE t SET n = n + {step} WHERE k = 2'"
        )
    };
    let mut main = Executor::new(Arc::clone(&store), Limits::default()).unwrap();
    for sql in ["CREATE TABLE t (k INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 0), (2, 0)", &made(1)]
    {
        ask(&mut main, sql).unwrap();
    }
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let mut own = Executor::new(Arc::clone(&store), Limits::default()).unwrap();
            let mut worked = 0;
            // Relaxed: nothing else goes with it.
            while !ended.load(Ordering::Relaxed) || worked == 0 {
                match ask(&mut own, "CALL both()") {
                    Ok(_) => worked += 1,
                    Err(error) => assert_eq!(error.state, "42883", "{error}"),
                }
                assert_eq!(ask(&mut own, "SELECT count(DISTINCT n) FROM t").unwrap(), "1");
            }
        });
        for round in 0..ROUNDS {
            if round % 10 == 5 {
                ask(&mut main, "DROP PROCEDURE both").unwrap();
            }
            ask(&mut main, &made(1 + round % 3)).unwrap();
        }
        ended.store(true, Ordering::Relaxed);
        caller.join().unwrap();
    });
}

#[test]
fn a_function_gets_another_name() {
    let mut db = bank();
    run(&mut db, "CREATE SCHEMA s; CREATE FUNCTION s.one() RETURNS INT RETURN 1");
    run(&mut db, "ALTER PROCEDURE pay(int, int, int) RENAME TO give; ALTER FUNCTION s.one RENAME TO uno");
    run(&mut db, "CALL give(1, 2); ALTER ROUTINE give OWNER TO CURRENT_USER; ALTER FUNCTION s.uno() STABLE");
    assert_eq!(db.query("SELECT s.uno() + 1"), "2");
    for (sql, state) in [
        ("CALL pay(1, 2)", "42883"),
        ("ALTER FUNCTION give RENAME TO x", "42809"),
        ("ALTER FUNCTION nosuch RENAME TO x", "42883"),
        ("ALTER FUNCTION s.uno SET work_mem TO 1", "0A000"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}");
    }
    run(&mut db, "CREATE FUNCTION two() RETURNS INT RETURN 2");
    assert_eq!(db.state("ALTER FUNCTION two RENAME TO give"), "42723");
    run(&mut db, "BEGIN; ALTER FUNCTION two RENAME TO zwei; ROLLBACK");
    assert_eq!(db.query("SELECT two()"), "2");
}
