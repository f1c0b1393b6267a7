//! Statements of several threads at once: nothing is lost, nothing is seen by halves, nobody is told to retry.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::common::{Rows, open_store};
use sql::{Cancel, Executor, Limits, Session};
use store::value::{Value, ValueRef};
use store::{Clock, Expiry, Outcome, Store};

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
    integer_of(&rows.rows[0][0])
}

fn integer_of(value: &Value) -> i64 {
    match value {
        Value::Integer(integer) => *integer,
        other => panic!("{other:?}"),
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

/// Runs statements on a row with `u = 7`, which another thread removes and inserts all the time.
fn beside_removals(mut work: impl FnMut(&Arc<Store>)) {
    let store = open_store(Clock::System);
    let mut main = executor(&store);
    run(&mut main, "CREATE TABLE c (id INT PRIMARY KEY, u INT UNIQUE, n INT)", &[]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut executor = executor(&store);
            // Relaxed: only tells when to stop.
            while !done.load(Ordering::Relaxed) {
                run(&mut executor, "DELETE FROM c WHERE u = 7", &[]);
                run(&mut executor, "INSERT OR IGNORE INTO c VALUES (1, 7, 0)", &[]);
            }
        });
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| work(&store)));
        done.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// An upsert looked twice: whether a row is in its way, and then for that row. Where the row was removed in between,
/// the statement failed with XX000; where it came in between, with 23505, although the statement said what to do about
/// it.
#[test]
fn an_upsert_beside_removals_inserts_or_updates() {
    let by_key = [
        // A function keeps it from the short way of plain upserts.
        "INSERT INTO c VALUES (1, 7, 1) ON CONFLICT (id) DO UPDATE SET n = c.n + abs(excluded.n)",
        "INSERT INTO c VALUES (1, 7, 1) ON CONFLICT (id) DO UPDATE SET n = c.n + abs(excluded.n) RETURNING n",
        "INSERT INTO c VALUES (1, 7, 1) ON CONFLICT (id) DO NOTHING",
        "INSERT OR REPLACE INTO c VALUES (1, 7, abs(1))",
    ];
    let by_index = [
        "INSERT INTO c VALUES (2, 7, 1) ON CONFLICT (u) DO UPDATE SET n = c.n + excluded.n",
        "INSERT INTO c VALUES (2, 7, 1) ON CONFLICT (id) DO NOTHING ON CONFLICT (u) DO UPDATE SET n = c.n + 1",
        "INSERT INTO c VALUES (2, 7, 1) ON CONFLICT DO NOTHING",
        "INSERT OR REPLACE INTO c VALUES (2, 7, abs(1))",
    ];
    for upserts in [by_key, by_index] {
        beside_removals(|store| {
            let mut executor = executor(store);
            for _ in 0..ROUNDS * 10 {
                for upsert in upserts {
                    run(&mut executor, upsert, &[]);
                }
            }
        });
    }
}

/// The same within a transaction, whose statements look for what is in their way before anything is committed.
#[test]
fn an_upsert_of_a_transaction_finds_what_is_in_its_way() {
    beside_removals(|store| {
        let (mut executor, mut session) = (executor(store), Session::new());
        let mut run = |sql: &str| {
            let run = executor.execute(&mut session, sql, &[], &Cancel::new(), &mut Rows::default());
            run.unwrap_or_else(|error| panic!("{sql}: {error}"));
        };
        for _ in 0..ROUNDS * 20 {
            run("BEGIN");
            run("INSERT INTO c VALUES (2, 7, 1) ON CONFLICT (u) DO UPDATE SET n = c.n + excluded.n");
            run("ROLLBACK");
            run("BEGIN");
            run("INSERT INTO c VALUES (1, 7, 1) ON CONFLICT (id) DO UPDATE SET n = c.n + excluded.n");
            run("ROLLBACK");
        }
    });
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

/// A row was chosen by its deadline, touched by somebody who was told so, and removed: `touch` leaves the CAS value as
/// it is.
#[test]
fn a_row_that_was_touched_after_it_was_chosen_by_its_deadline_stays() {
    const ROWS: i64 = 50;
    let store = open_store(Clock::System);
    let mut main = executor(&store);
    run(&mut main, "CREATE TABLE c (id INT PRIMARY KEY, n INT)", &[]);
    let table = Arc::clone(store.catalog().table("c").expect("the table"));
    let key = |id: i64| {
        let mut key = Vec::new();
        table.keys().encode(&[ValueRef::Integer(id)], &mut key).expect("a key");
        key
    };
    for round in 0..ROUNDS {
        run(
            &mut main,
            "INSERT OR REPLACE INTO c (id, n, _ttl) SELECT s.i, 0, 50 FROM generate_series(1, ?) AS s(i)",
            &[Value::Integer(ROWS)],
        );
        let touched: Vec<i64> = thread::scope(|scope| {
            let toucher = scope.spawn(|| {
                let touch = |id: &i64| {
                    let touched = store.touch(&table, &key(*id), Expiry::Never, store.now());
                    matches!(touched, Ok(Outcome::Done(_)))
                };
                (1..=ROWS).filter(touch).collect()
            });
            run(&mut main, "DELETE FROM c WHERE _ttl < 100", &[]);
            toucher.join().expect("touches")
        });
        let left = run(&mut main, "SELECT id FROM c ORDER BY id", &[]).rows;
        let left: Vec<i64> = left.iter().map(|row| integer_of(&row[0])).collect();
        assert_eq!(left, touched, "round {round}");
    }
}

/// An executor that began to look for names elsewhere while a table was made took the definitions of then, without that
/// table, and did not know it until the next definition.
#[test]
fn who_looks_elsewhere_while_a_table_is_made_knows_it() {
    const TABLES: u64 = 300;
    let store = open_store(Clock::System);
    let mut main = executor(&store);
    run(&mut main, "CREATE SCHEMA s", &[]);
    let (made, met) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut sessions = [["public", "s"], ["s", "public"]].map(|path| {
        let mut session = Session::new();
        session.set_path(Some(path.map(str::to_owned).to_vec()));
        session
    });
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut executor = executor(&store);
            let mut ask = |session: &mut Session, sql: &str| {
                executor.execute(session, sql, &[], &Cancel::new(), &mut Rows::default())
            };
            for table in 1..=TABLES {
                while made.load(Ordering::Acquire) < table {
                    for session in &mut sessions {
                        ask(session, "SELECT 1").unwrap();
                    }
                }
                let sql = format!("SELECT k FROM t{table} WHERE length(k) > 0 ORDER BY v");
                for session in &mut sessions {
                    let answer = ask(session, &sql);
                    assert!(answer.is_ok(), "{sql}: {answer:?}");
                }
                met.store(table, Ordering::Release);
            }
        });
        for table in 1..=TABLES {
            run(&mut main, &format!("CREATE TABLE t{table} (k TEXT PRIMARY KEY, v INT)"), &[]);
            made.store(table, Ordering::Release);
            while met.load(Ordering::Acquire) < table && !other.is_finished() {
                thread::yield_now();
            }
        }
    });
}
