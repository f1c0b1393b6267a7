//! Statements of several threads at once: nothing is lost, nothing is seen by halves, nobody is told to retry.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{Rows, open_store};
use sql::{Cancel, Executor, Limits, Session};
use store::value::Value;
use store::{Clock, Store};

const THREADS: i64 = 3;
const ROUNDS: i64 = 400;

fn executor(store: &Arc<Store>) -> Executor {
    Executor::new(Arc::clone(store), Limits::default()).expect("an executor")
}

fn run(executor: &mut Executor, sql: &str, parameters: &[Value]) -> Rows {
    let mut rows = Rows::default();
    executor
        .execute(&mut Session::new(), sql, parameters, &Cancel::new(), &mut rows)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows
}

fn integer(rows: &Rows) -> i64 {
    match rows.rows[0][0] {
        Value::Integer(integer) => integer,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn no_increment_is_lost() {
    let store = open_store(Clock::System);
    let mut main = executor(&store);
    run(&mut main, "CREATE TABLE c (id INT PRIMARY KEY, n INT)", &[]);
    run(&mut main, "INSERT INTO c VALUES (1, 0), (2, 0), (3, 0)", &[]);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                let mut executor = executor(store);
                for round in 0..ROUNDS {
                    match (thread + round) % 3 {
                        0 => run(&mut executor, "UPDATE c SET n = n + 1", &[]),
                        1 => run(
                            &mut executor,
                            "INSERT INTO c VALUES (1, 1), (2, 1), (3, 1) ON CONFLICT (id) DO UPDATE SET n = n + excluded.n",
                            &[],
                        ),
                        _ => {
                            for id in 1..=3 {
                                run(&mut executor, "UPDATE c SET n = n + 1 WHERE id = ?", &[Value::Integer(id)]);
                            }
                            Rows::default()
                        }
                    };
                }
            });
        }
    });
    let total = integer(&run(&mut main, "SELECT sum(n) FROM c", &[]));
    assert_eq!(total, 3 * THREADS * ROUNDS);
}

/// A statement that returns rows, and whose row was written before it could write it, was computed again for no row: it
/// changed nothing, and returned nothing, though its row was there all the time.
#[test]
fn a_statement_that_returns_its_row_finds_it_again_when_others_were_first() {
    let store = open_store(Clock::System);
    let mut main = executor(&store);
    run(&mut main, "CREATE TABLE c (id INT PRIMARY KEY, n INT)", &[]);
    run(&mut main, "INSERT INTO c VALUES (1, 0)", &[]);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut executor = executor(&store);
                for _ in 0..ROUNDS * 10 {
                    let rows = run(
                        &mut executor,
                        "UPDATE c SET n = n + 1 WHERE id = 1 AND n + 1 > 0 RETURNING n",
                        &[],
                    );
                    assert_eq!(rows.rows.len(), 1);
                }
            });
        }
    });
    assert_eq!(integer(&run(&mut main, "SELECT n FROM c", &[])), THREADS * ROUNDS * 10);
}

#[test]
fn a_statement_of_many_rows_is_seen_whole() {
    let store = open_store(Clock::System);
    let mut main = executor(&store);
    run(&mut main, "CREATE TABLE account (id INT PRIMARY KEY, owner TEXT, balance INT)", &[]);
    run(&mut main, "CREATE INDEX account_owner ON account (owner)", &[]);
    for id in 0..20 {
        run(&mut main, "INSERT INTO account VALUES (?, 'o', 100)", &[Value::Integer(id)]);
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let store = &store;
                scope.spawn(move || {
                    let mut executor = executor(store);
                    let mut random = fastrand::Rng::with_seed(u64::try_from(thread).unwrap_or(0));
                    for _ in 0..ROUNDS {
                        let (from, to) = (random.i64(0..20), random.i64(0..20));
                        run(
                            &mut executor,
                            "UPDATE account SET balance = balance + CASE id WHEN ?1 THEN -1 ELSE 1 END \
                             WHERE id IN (?1, ?2) AND ?1 <> ?2",
                            &[Value::Integer(from), Value::Integer(to)],
                        );
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut executor = executor(&store);
            loop {
                for sql in [
                    "SELECT sum(balance) FROM account",
                    "SELECT sum(balance) FROM account WHERE owner = 'o'",
                    "SELECT sum(balance) FROM account WHERE id IN (0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19)",
                ] {
                    assert_eq!(integer(&run(&mut executor, sql, &[])), 2_000, "{sql}");
                }
                // Relaxed: only tells when to stop.
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for writer in writers {
            writer.join().expect("a writer");
        }
        done.store(true, Ordering::Relaxed);
        reader.join().expect("the reader");
    });
    assert_eq!(integer(&run(&mut main, "SELECT sum(balance) FROM account", &[])), 2_000);
}

#[test]
fn definitions_change_under_running_statements() {
    let store = open_store(Clock::System);
    let mut main = executor(&store);
    run(&mut main, "CREATE TABLE t (a INT PRIMARY KEY, b INT)", &[]);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut executor = executor(&store);
                for id in 0..ROUNDS {
                    let id = [Value::Integer(id % 50)];
                    run(&mut executor, "REPLACE INTO t VALUES (?1, ?1)", &id);
                    run(&mut executor, "SELECT * FROM t WHERE b = ?", &id);
                    run(&mut executor, "DELETE FROM t WHERE b = ?", &id);
                }
            });
        }
        for _ in 0..40 {
            run(&mut main, "CREATE INDEX t_b ON t (b)", &[]);
            run(&mut main, "DROP INDEX t_b", &[]);
        }
    });
    assert_eq!(integer(&run(&mut main, "SELECT count(*) FROM t WHERE b <> a", &[])), 0);
}
