//! Functions and procedures: what they do, whole or not at all, and what is refused.

mod common;

use common::{Db, shown};
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
        ("CALL one()", "42809", "is not a procedure"),
        ("SELECT pay(1, 2)", "42809", "is a procedure"),
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
        ("CREATE PROCEDURE p(OUT a INT) LANGUAGE sql AS 'SELECT 1'", "0A000", "OUT parameters"),
        ("CREATE PROCEDURE p() SECURITY DEFINER LANGUAGE sql AS 'SELECT 1'", "0A000", "SECURITY DEFINER"),
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
        let (mut session, cancel, mut rows) = (Session::new(), Cancel::new(), common::Rows::default());
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
