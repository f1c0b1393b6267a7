//! Deletions and soft invalidations in transactions, while others fill the rows that they are about.
//!
//! A page cache lost one deletion in five: `BEGIN; DELETE ...; COMMIT` failed with 40001 whenever a fill came in
//! between, though nobody had asked what the rows held. And a row that was filled between `DELETE` and `COMMIT` stayed.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails says where")]
#![allow(clippy::disallowed_methods, reason = "a longer run is asked for by the environment")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Db, open_store};
use sql::{Cancel, Executor, Limits, Session};
use store::value::Value;
use store::{Clock, Store};

/// Another client of the same store.
fn beside(db: &Db) -> Db {
    let limits = Limits { statement_timeout: None, ..Limits::default() };
    let executor = Executor::new(Arc::clone(&db.store), limits).expect("an executor");
    let (store, clock) = (Arc::clone(&db.store), Arc::clone(&db.clock));
    Db { store, clock, executor, session: Session::new(), cancel: Cancel::new() }
}

/// Rows 1 and 2 of page 17, row 3 of page 18, and a table of pages.
fn pages() -> (Db, Db) {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE frag (k INT PRIMARY KEY, page INT, body TEXT) WITH (stale_for = '1 hour');
        CREATE INDEX frag_page ON frag (page);
        CREATE TABLE gone (page INT PRIMARY KEY);
        INSERT INTO frag VALUES (1, 17, 'a'), (2, 17, 'b'), (3, 18, 'c');
        INSERT INTO gone VALUES (17)",
    );
    let other = beside(&db);
    (db, other)
}

/// What a fill does to the page: a row is written again, one goes, one comes.
const FILL: &str = "INSERT OR REPLACE INTO frag VALUES (1, 17, 'A'), (4, 17, 'D'), (3, 18, 'C');
    DELETE FROM frag WHERE k = 2";

#[test]
fn a_fill_refuses_no_blind_deletion_and_does_not_survive_it() {
    for (what, statements, left) in [
        ("an index", "DELETE FROM frag WHERE page = 17", "3,18,C"),
        ("a key and a new row of it", "DELETE FROM frag WHERE k = 1", "3,18,C;4,17,D"),
        ("several keys", "DELETE FROM frag WHERE k IN (1, 2, 4)", "3,18,C"),
        ("alternatives", "DELETE FROM frag WHERE k = 1 OR page = 18", "4,17,D"),
        ("all rows", "DELETE FROM frag", ""),
        ("a look at every row", "DELETE FROM frag WHERE body LIKE 'A%'", "3,18,C;4,17,D"),
        ("a query", "DELETE FROM frag WHERE page IN (SELECT page FROM gone)", "3,18,C"),
        ("a query of the same table", "DELETE FROM frag WHERE k < (SELECT max(k) FROM frag)", "4,17,D"),
        ("several", "DELETE FROM frag WHERE page = 17;\nDELETE FROM frag WHERE page = 18", ""),
        (
            "another one in its place",
            "DELETE FROM frag WHERE page = 17;\nINSERT INTO frag VALUES (4, 17, 'new')",
            "3,18,C;4,17,new",
        ),
        (
            "a row that is given back",
            "DELETE FROM frag WHERE page = 17;\nINSERT INTO frag VALUES (4, 17, 'new') RETURNING k",
            "3,18,C;4,17,new",
        ),
        (
            "savepoints",
            "SAVEPOINT a;\nDELETE FROM frag WHERE page = 17;\nSAVEPOINT b;\nDELETE FROM frag;\nROLLBACK TO b;\nRELEASE a",
            "3,18,C",
        ),
        (
            "a way back to before it",
            "SAVEPOINT a;\nDELETE FROM frag;\nROLLBACK TO a;\nDELETE FROM frag WHERE page = 17",
            "3,18,C",
        ),
        (
            "a look elsewhere",
            "SELECT * FROM gone;\nDELETE FROM frag WHERE page = 17;\nSELECT * FROM gone",
            "3,18,C",
        ),
        (
            "new rows first",
            "INSERT INTO frag VALUES (9, 17, 'n'), (8, 18, 'n');\nDELETE FROM frag WHERE page = 17",
            "3,18,C;8,18,n",
        ),
    ] {
        for script in [statements.to_owned(), statements.replace("DELETE FROM frag", "DELETE FROM frag AS f")]
        {
            if script.contains("frag.") {
                continue;
            }
            let (mut db, mut other) = pages();
            db.run(&format!("BEGIN ISOLATION LEVEL REPEATABLE READ;\n{script}"));
            other.run(FILL);
            let (done, _) = db.execute("COMMIT", &[]).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(done.tag, "COMMIT", "{what}");
            assert_eq!(other.query("SELECT * FROM frag ORDER BY k"), left, "{what}: {script}");
        }
    }
}

#[test]
fn a_soft_invalidation_marks_what_was_filled_meanwhile() {
    let (mut db, mut other) = pages();
    db.run("BEGIN;\nUPDATE frag SET _stale = TRUE WHERE page = 17");
    other.run(FILL);
    db.run("COMMIT");
    assert_eq!(other.query("SELECT k, body, _stale FROM frag ORDER BY k"), "1,A,1;3,C,0;4,D,1");
    // With a deadline, beside a deletion, and under a parameter.
    db.run("BEGIN");
    let sql = "UPDATE frag SET _stale = TRUE, _ttl = 90 WHERE page = $1";
    assert_eq!(db.execute(sql, &[Value::Integer(18)]).unwrap().0.affected, 1);
    db.run("DELETE FROM frag WHERE k = 1");
    other.run("INSERT OR REPLACE INTO frag VALUES (1, 17, 'x'), (3, 18, 'y')");
    db.run("COMMIT");
    assert_eq!(other.query("SELECT k, body, _stale, _ttl FROM frag ORDER BY k"), "3,y,1,90;4,D,1,NULL");
}

/// What the client saw, or what its other statements rest on, still decides.
#[test]
fn a_transaction_that_was_shown_its_rows_is_refused_as_before() {
    for statements in [
        "SELECT body FROM frag WHERE k = 1;\nDELETE FROM frag WHERE k = 1",
        "SELECT count(*) FROM frag;\nDELETE FROM frag WHERE page = 17",
        "DELETE FROM frag WHERE page = 17;\nSELECT * FROM frag WHERE page = 17",
        "DELETE FROM frag WHERE page = 17;\nSELECT sum(f.k) FROM gone g JOIN frag f ON f.page = g.page",
        "DELETE FROM frag WHERE page = 17 RETURNING body",
        "DELETE FROM frag WHERE page = 17 ORDER BY k LIMIT 1",
        "UPDATE frag SET body = body || '!' WHERE k = 1",
        "UPDATE frag SET body = 'x', _stale = TRUE WHERE k = 1",
        "UPDATE frag SET _leased = TRUE WHERE k = 1",
        "UPDATE frag SET _stale = TRUE WHERE k = 1;\nUPDATE frag SET body = body || '!' WHERE k = 1",
        "UPDATE frag SET body = 'x' WHERE k = 1;\nDELETE FROM frag WHERE k = 1",
        "DELETE FROM frag WHERE k = 1;\nINSERT OR IGNORE INTO frag VALUES (1, 17, 'n')",
        "INSERT INTO gone SELECT k FROM frag WHERE k = 1;\nDELETE FROM frag WHERE k = 1",
        "DELETE FROM frag WHERE k = 1;\nINSERT INTO gone SELECT count(*) FROM frag",
        // The row that the deletion made room for came again, and is none that it is about.
        "DELETE FROM frag WHERE page = 18;\nINSERT INTO frag VALUES (4, 18, 'n')",
    ] {
        let (mut db, mut other) = pages();
        db.run(&format!("BEGIN;\n{statements}"));
        other.run(FILL);
        assert_eq!(db.state("COMMIT"), "40001", "{statements}");
        assert_eq!(other.query("SELECT k, page, body FROM frag ORDER BY k"), "1,17,A;3,18,C;4,17,D");
        assert_eq!(other.query("SELECT * FROM gone"), "17");
    }
}

#[test]
fn a_definition_that_others_change_meanwhile_is_heeded() {
    let (mut db, mut other) = pages();
    db.run("BEGIN;\nDELETE FROM frag WHERE page = 17");
    other.run("CREATE INDEX frag_body ON frag (body, k);\nINSERT INTO frag VALUES (5, 17, 'z')");
    db.run("COMMIT");
    assert_eq!(other.query("SELECT k FROM frag"), "3");
    db.run("BEGIN;\nDELETE FROM frag WHERE page = 18;\nTRUNCATE frag");
    other.run("INSERT INTO frag VALUES (6, 18, 'later')");
    db.run("COMMIT");
    assert_eq!(other.query("SELECT k FROM frag"), "6", "what is emptied is not emptied again by COMMIT");
    db.run("BEGIN;\nDELETE FROM frag WHERE page = 18");
    other.run("DROP TABLE frag");
    assert_eq!(db.state("COMMIT"), "42P01");
}

/// A row as the model has it. No two versions are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    page: i64,
    stale: bool,
    version: u64,
}

type Rows = BTreeMap<i64, Row>;

#[derive(Clone, Copy, Debug)]
enum Act {
    DeletePage(i64),
    DeleteKey(i64),
    Stale(i64),
    Insert(i64, i64),
}

impl Act {
    fn sql(self) -> String {
        match self {
            Self::DeletePage(page) => format!("DELETE FROM frag WHERE page = {page}"),
            Self::DeleteKey(k) => format!("DELETE FROM frag WHERE k = {k}"),
            Self::Stale(page) => format!("UPDATE frag SET _stale = TRUE WHERE page = {page}"),
            Self::Insert(k, page) => format!("INSERT INTO frag VALUES ({k}, {page}, 'own')"),
        }
    }

    /// What it makes of each key that it changes, and `None` if it must fail.
    fn changes(self, rows: &Rows) -> Option<BTreeMap<i64, Option<Row>>> {
        let of_page = |page| rows.iter().filter(move |(_, row)| row.page == page);
        Some(match self {
            Self::DeletePage(page) => of_page(page).map(|(k, _)| (*k, None)).collect(),
            Self::DeleteKey(k) => rows.get(&k).map(|_| (k, None)).into_iter().collect(),
            Self::Stale(page) => {
                of_page(page).map(|(k, row)| (*k, Some(Row { stale: true, ..*row }))).collect()
            }
            Self::Insert(k, _) if rows.contains_key(&k) => return None,
            Self::Insert(k, page) => BTreeMap::from([(k, Some(Row { page, stale: false, version: 0 }))]),
        })
    }
}

fn apply(rows: &mut Rows, changes: &BTreeMap<i64, Option<Row>>) {
    for (k, row) in changes {
        match row {
            Some(row) => drop(rows.insert(*k, *row)),
            None => drop(rows.remove(k)),
        }
    }
}

/// What the model knows of the open transaction.
#[derive(Clone, Default)]
struct Open {
    acts: Vec<Act>,
    /// What it made of keys, as its own statements see it.
    own: BTreeMap<i64, Option<Row>>,
    /// What it found under them.
    found: BTreeMap<i64, Option<Row>>,
}

impl Open {
    fn add(&mut self, act: Act, rows: &Rows) -> bool {
        let mut seen = rows.clone();
        apply(&mut seen, &self.own);
        let Some(changes) = act.changes(&seen) else { return false };
        for (k, row) in changes {
            self.found.entry(k).or_insert_with(|| rows.get(&k).copied());
            self.own.insert(k, row);
        }
        self.acts.push(act);
        true
    }

    /// What `COMMIT` leaves; `None` if it must be refused.
    fn committed(&self, rows: &Rows, looked: bool) -> Option<Rows> {
        let mut left = rows.clone();
        if looked {
            let counts = |(k, found): &(&i64, &Option<Row>)| found.is_some() || self.own[*k].is_some();
            let kept = self.found.iter().filter(counts).all(|(k, found)| rows.get(k) == found.as_ref());
            // A row that came and went within it leaves nothing.
            let own = self.own.iter().filter(|(k, own)| own.is_some() || self.found[*k].is_some());
            apply(&mut left, &own.map(|(k, own)| (*k, *own)).collect());
            return kept.then_some(left);
        }
        for act in &self.acts {
            let changes = act.changes(&left)?;
            apply(&mut left, &changes);
        }
        Some(left)
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|number| number.parse().expect("a number"))
}

fn stored(db: &mut Db) -> Vec<(i64, i64, bool)> {
    let (_, rows) = db.execute("SELECT k, page, _stale FROM frag ORDER BY k", &[]).expect("a query");
    let integer =
        |value: &Value| if let Value::Integer(number) = value { *number } else { panic!("{value:?}") };
    rows.rows.iter().map(|row| (integer(&row[0]), integer(&row[1]), integer(&row[2]) == 1)).collect()
}

/// Transactions of blind statements, new rows, savepoints and looks at the table, with others' writes in between,
/// against a model. While nobody looked, `COMMIT` does to the rows of that moment what the statements say, one after
/// the other.
#[test]
fn random_transactions_agree_with_a_model() {
    const KEYS: i64 = 8;
    let mut random = fastrand::Rng::with_seed(crate::common::seed());
    let (mut db, mut other) = pages();
    other.run("DELETE FROM frag");
    let mut rows = Rows::new();
    let (mut version, mut committed, mut refused, mut overtaken) = (0, 0, 0, 0);
    for round in 0..number("ROUNDS").unwrap_or(3_000) {
        db.run("BEGIN");
        let mut open = Open::default();
        let mut marks: Vec<Open> = Vec::new();
        let (mut looked, mut failed, mut foreign) = (false, false, false);
        for _ in 0..random.usize(2..9) {
            let page = random.i64(0..3);
            let key = random.i64(0..KEYS);
            let act = match random.u8(..16) {
                0 => {
                    db.run("SAVEPOINT s");
                    marks.push(open.clone());
                    continue;
                }
                1 => {
                    if let Some(mark) = marks.last() {
                        db.run("ROLLBACK TO s");
                        open = mark.clone();
                    }
                    continue;
                }
                2 => {
                    if marks.pop().is_some() {
                        db.run("RELEASE s");
                    }
                    continue;
                }
                3 if random.bool() => {
                    db.run("SELECT count(*) FROM frag");
                    looked = true;
                    continue;
                }
                4..=7 => {
                    version += 1;
                    other.run(&format!("INSERT OR REPLACE INTO frag VALUES ({key}, {page}, 'fill')"));
                    rows.insert(key, Row { page, stale: false, version });
                    foreign = true;
                    continue;
                }
                8 => {
                    other.run(&format!("DELETE FROM frag WHERE k = {key}"));
                    rows.remove(&key);
                    continue;
                }
                9 | 10 => Act::DeletePage(page),
                11 => Act::DeleteKey(key),
                12 | 13 => Act::Stale(page),
                _ => Act::Insert(key, page),
            };
            let worked = db.execute(&act.sql(), &[]);
            assert_eq!(worked.is_ok(), open.add(act, &rows), "round {round}: {act:?}: {worked:?}");
            failed = worked.is_err();
            if failed {
                break;
            }
        }
        if failed {
            db.run("ROLLBACK");
            continue;
        }
        let wanted = open.committed(&rows, looked);
        let result = db.execute("COMMIT", &[]);
        let Some(left) = wanted else {
            let state = result.map_or_else(|error| error.state, |(done, _)| done.tag);
            assert_eq!(state, "40001", "round {round}: {:?}, looked: {looked}", open.acts);
            refused += 1;
            continue;
        };
        assert!(result.is_ok(), "round {round}: {:?}, looked: {looked}: {result:?}", open.acts);
        overtaken += u64::from(foreign && !looked);
        committed += 1;
        // Each version is another one from here on.
        rows = left
            .into_iter()
            .map(|(k, row)| (k, Row { version: round * 100 + k.unsigned_abs() + (1 << 40), ..row }))
            .collect();
        let wanted: Vec<_> = rows.iter().map(|(k, row)| (*k, row.page, row.stale)).collect();
        assert_eq!(stored(&mut other), wanted, "round {round}: {:?}, looked: {looked}", open.acts);
    }
    println!("{committed} committed, {overtaken} of them beside fills, {refused} refused");
    assert!(overtaken > committed / 4 && refused > 0);
}

/// Rows of a page that threads fill without a pause, and a transaction that deletes them.
struct Fill {
    store: Arc<Store>,
    stop: AtomicBool,
    /// The number that the newest acknowledged row of each key bears.
    acknowledged: Vec<AtomicU64>,
}

impl Fill {
    fn executor(&self) -> Executor {
        Executor::new(Arc::clone(&self.store), Limits::default()).expect("an executor")
    }

    fn run(&self, thread: u64, threads: u64) {
        let mut executor = self.executor();
        let (mut session, cancel, mut none) = (Session::new(), Cancel::new(), crate::common::Rows::default());
        let keys = self.acknowledged.len() as u64;
        let mut number = 0;
        while !self.stop.load(Ordering::Relaxed) {
            number += 1;
            // Each key has one thread that fills it, for there are as many for each: its numbers rise.
            let key = (number * threads + thread) % keys;
            let fill = "INSERT OR REPLACE INTO frag VALUES ($1, 17, $2)";
            let values = [key.cast_signed(), number.cast_signed()].map(Value::Integer);
            executor.execute(&mut session, fill, &values, &cancel, &mut none).expect("a fill");
            self.acknowledged[usize::try_from(key).expect("a key")].store(number, Ordering::SeqCst);
        }
    }
}

/// `COMMIT` comes to its end whatever the others do, and no row outlives it that was acknowledged before it was sent.
/// With 3 threads and 600 rows no list is ever marked before one of its rows is written again, so that the writers must
/// wait once.
fn delete_beside_fills(keys: usize, deletions: u64) {
    const THREADS: u64 = 3;
    let store = open_store(Clock::System);
    let fill = Fill {
        store: Arc::clone(&store),
        stop: AtomicBool::new(false),
        acknowledged: (0..keys).map(|_| AtomicU64::new(0)).collect(),
    };
    let mut executor = fill.executor();
    let (mut session, cancel) = (Session::new(), Cancel::new());
    let mut run = |sql: &str| {
        let mut rows = crate::common::Rows::default();
        executor.execute(&mut session, sql, &[], &cancel, &mut rows).map(|_| rows.rows)
    };
    run("CREATE TABLE frag (k INT PRIMARY KEY, page INT, body INT) WITH (stale_for = '1 hour')")
        .expect("a table");
    run("CREATE INDEX frag_page ON frag (page)").expect("an index");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let fill = &fill;
            scope.spawn(move || fill.run(thread, THREADS));
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 0..deletions {
                run("BEGIN ISOLATION LEVEL REPEATABLE READ").expect("BEGIN");
                let soft = round % 2 == 1;
                let sql = if soft {
                    "UPDATE frag SET _stale = TRUE WHERE page = 17"
                } else {
                    "DELETE FROM frag WHERE page = 17"
                };
                run(sql).expect(sql);
                std::thread::sleep(Duration::from_millis(1));
                let before: Vec<u64> =
                    fill.acknowledged.iter().map(|number| number.load(Ordering::SeqCst)).collect();
                run("COMMIT").unwrap_or_else(|error| panic!("deletion {round}: {error}"));
                for row in run("SELECT k, body FROM frag WHERE NOT _stale").expect("a query") {
                    let [Value::Integer(key), Value::Integer(number)] = row[..] else { panic!("{row:?}") };
                    let before = before[usize::try_from(key).expect("a key")];
                    assert!(
                        number.unsigned_abs() > before,
                        "deletion {round}: row {number} of {key} stayed, {before} was there"
                    );
                }
            }
        }));
        fill.stop.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn a_page_is_deleted_while_others_fill_it() {
    delete_beside_fills(9, number("ROUNDS").unwrap_or(300));
}

#[test]
fn many_rows_are_deleted_while_others_fill_them() {
    delete_beside_fills(600, number("ROUNDS").unwrap_or(100));
}
