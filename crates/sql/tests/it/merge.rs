//! `MERGE`: one list of changes for all of its clauses, and what others do meanwhile.

use std::sync::Arc;
use std::thread;

use crate::common::{Db, open_store};
use sql::{Cancel, Executor, Invalidation, Limits, Session};
use store::Clock;
use store::value::Value;

fn stock() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k INT PRIMARY KEY, n INT, u TEXT UNIQUE);\n\
         INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')",
    );
    db
}

#[test]
fn all_of_it_or_nothing() {
    let mut db = stock();
    let merge = "MERGE INTO t USING (VALUES (1, 10), (2, 20), (9, 90)) AS s (k, n) ON t.k = s.k \
        WHEN MATCHED AND s.n = 10 THEN DELETE WHEN MATCHED THEN UPDATE SET n = s.n \
        WHEN NOT MATCHED THEN INSERT (k, n, u) VALUES (s.k, s.n, $1)";
    for within in [false, true] {
        db.run(if within { "BEGIN" } else { "SELECT 1" });
        let error = db.execute(merge, &[Value::from("c")]).unwrap_err();
        assert_eq!(error.state, "23505", "{within}");
        db.run(if within { "ROLLBACK" } else { "SELECT 1" });
        assert_eq!(db.query("SELECT k, n FROM t ORDER BY k"), "1,1;2,2;3,3", "{within}");
    }
    let (done, _) = db.execute(merge, &[Value::from("new")]).unwrap();
    assert_eq!((done.tag, done.affected), ("MERGE", 3));
    let invalidated = done.invalidated.map(|one| (one.rows, one.how));
    assert_eq!(invalidated, Some((1, Invalidation::Deleted)));
    assert_eq!(db.query("SELECT k, n, u FROM t ORDER BY k"), "2,20,b;3,3,c;9,90,new");
}

/// Other caches hear of them, and the list of invalidations has them.
#[test]
fn rows_that_become_stale_are_invalidated() {
    let merge = |clauses: &str| {
        let mut db = stock();
        let using = "MERGE INTO t USING (VALUES (1), (2), (9)) AS s (k) ON t.k = s.k";
        let (done, _) = db.execute(&format!("{using} {clauses}"), &[]).unwrap();
        done.invalidated.map(|one| (one.rows, one.how))
    };
    let stale = "WHEN MATCHED THEN UPDATE SET _stale = true";
    let new = "WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)";
    assert_eq!(merge(stale), Some((2, Invalidation::Stale)));
    assert_eq!(merge(&format!("{stale} {new}")), Some((2, Invalidation::Stale)));
    assert_eq!(
        merge(&format!("WHEN MATCHED AND s.k = 1 THEN DELETE {stale}")),
        Some((2, Invalidation::Deleted))
    );
    assert_eq!(
        merge(&format!("WHEN MATCHED AND s.k = 9 THEN DELETE {stale}")),
        Some((2, Invalidation::Stale))
    );
    assert_eq!(merge("WHEN MATCHED AND s.k = 9 THEN DELETE"), Some((0, Invalidation::Deleted)));
    assert_eq!(merge(&format!("WHEN MATCHED THEN UPDATE SET n = 5 {new}")), None);
}

/// Rows may take keys that others leave in the same statement.
#[test]
fn keys_that_are_left_are_free() {
    let mut db = stock();
    db.run(
        "MERGE INTO t USING (VALUES (1, 2), (2, 1), (3, 0)) AS s (k, to_k) ON t.k = s.k \
         WHEN MATCHED AND to_k = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET k = to_k",
    );
    assert_eq!(db.query("SELECT k, n FROM t ORDER BY k"), "1,2;2,1");
    db.run(
        "MERGE INTO t USING (VALUES (1, 'b'), (7, 'c')) AS s (k, u) ON t.k = s.k \
         WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, u) VALUES (s.k, s.u)",
    );
    assert_eq!(db.query("SELECT k, u FROM t ORDER BY k"), "2,a;7,c");
}

#[test]
fn what_decides_must_not_vary() {
    let mut db = stock();
    for source in ["(SELECT random() AS k)", "(SELECT 1 AS k ORDER BY random() LIMIT 1)"] {
        let sql = format!("MERGE INTO t USING {source} AS s ON t.k = s.k WHEN MATCHED THEN DELETE");
        assert_eq!(db.state(&sql), "0A000", "{sql}");
    }
    let sql =
        "MERGE INTO t USING (VALUES (1)) AS s (k) ON t.k = s.k WHEN MATCHED AND random() > 0 THEN DELETE";
    assert_eq!(db.state(sql), "0A000");
    // What is written may.
    db.run(
        "MERGE INTO t USING (VALUES (1)) AS s (k) ON t.k = s.k WHEN MATCHED THEN UPDATE SET u = gen_random_uuid()",
    );
    assert_eq!(db.query("SELECT length(u) FROM t WHERE k = 1"), "36");
}

#[test]
fn a_plan_says_what_is_merged() {
    let mut db = stock();
    let sql = "EXPLAIN MERGE INTO t USING (VALUES (1)) AS s (k) ON t.k = s.k WHEN MATCHED THEN DELETE";
    assert!(db.query(sql).contains("Merge on t"), "{}", db.query(sql));
    assert_eq!(db.query("SELECT count(*) FROM t"), "3");
}

/// A row that another client changed meanwhile is computed again, and one that came is found.
#[test]
fn no_increment_is_lost() {
    const THREADS: i64 = 3;
    const ROUNDS: i64 = 150;
    const MERGE: &str = "MERGE INTO c USING (VALUES (1), (2), (3)) AS s (id) ON c.id = s.id \
        WHEN MATCHED THEN UPDATE SET n = n + 1 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 1)";
    let store = open_store(Clock::System);
    let run = |executor: &mut Executor, sql: &str| {
        let mut rows = crate::common::Rows::default();
        let done = executor.execute(&mut Session::new(), sql, &[], &Cancel::new(), &mut rows);
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
        rows
    };
    let executor = || Executor::new(Arc::clone(&store), Limits::default()).unwrap();
    run(&mut executor(), "CREATE TABLE c (id INT PRIMARY KEY, n INT)");
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut executor = executor();
                (0..ROUNDS).for_each(|_| drop(run(&mut executor, MERGE)));
            });
        }
    });
    let rows = run(&mut executor(), "SELECT n FROM c ORDER BY id");
    let all = Value::Integer(THREADS * ROUNDS);
    assert_eq!(rows.rows, vec![vec![all.clone()], vec![all.clone()], vec![all]]);
}
