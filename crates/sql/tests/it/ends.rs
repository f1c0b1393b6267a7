//! Statements end when they must, whatever they are doing: they are read, walked through, compiled or run.
//!
//! A table of shapes, each of them long. What is measured is the processor time of the test's own thread, so other work
//! on the machine does not count: a statement that took more than its timeout and [`BEYOND_MAX`] was not heard.

use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use sql::{Cancel, Executor, Limits, Session, SqlError};
use store::{Clock, Store};

use crate::common::{Rows, open_store};

/// How long a statement may run; and after how long it is cancelled.
const TIMEOUT: Duration = Duration::from_millis(20);

/// What it may take beyond that. A build for tests is some times slower than one that is delivered, and what has been
/// built up until then is taken down.
const BEYOND_MAX: Duration = Duration::from_millis(200);

/// Bytes of the shapes' texts in the usual run. `BYTES=1048576` asks for the longest that a statement may have.
const BYTES: usize = 128 << 10;

/// What a statement may end with that is too long: it worked, it was stopped, or it met a limit.
const STATES: &[&str] = &["57014", "54000", "54001", "54011", "54023", "53200", "42000", "08P01"];

/// A shape: what stands in front, what stands between, what is repeated (`#` is its number), what stands behind.
type Shape = (&'static str, &'static str, &'static str, &'static str);

const SHAPES: &[Shape] = &[
    ("VALUES ", ",", "(#)", ""),
    ("VALUES ", ",", "(#, 'a', #.5)", ""),
    ("SELECT count(*) FROM (VALUES ", ",", "(#)", ") AS v(a)"),
    ("INSERT INTO t VALUES ", ",", "(# + 1, lower('A'))", " ON CONFLICT (id) DO NOTHING"),
    ("INSERT INTO t SELECT * FROM (VALUES ", ",", "(#, 'a')", ") v ON CONFLICT DO NOTHING"),
    ("UPDATE t SET v = x.b FROM (VALUES ", ",", "(#, 'a')", ") AS x(a, b) WHERE t.id = x.a"),
    (
        "MERGE INTO t USING (VALUES ",
        ",",
        "(#, 'a')",
        ") AS x(a, b) ON id = a WHEN MATCHED THEN UPDATE SET v = b",
    ),
    ("MERGE INTO t USING t s ON t.id = s.id", "", " WHEN MATCHED AND s.id = # THEN DELETE", ""),
    ("SELECT count(*) FROM t WHERE id IN (", ",", "#", ")"),
    ("SELECT count(*) FROM t WHERE id IN (", ",", "# + 1", ")"),
    ("SELECT 1 IN (", ",", "#", ")"),
    ("SELECT * FROM t WHERE (id, v) IN (", ",", "(#, 'a')", ")"),
    ("DELETE FROM t WHERE id IN (", ",", "#", ")"),
    ("UPDATE t SET v = 'x' WHERE id IN (", ",", "#", ")"),
    ("SELECT count(*) FROM t WHERE id = ANY (ARRAY[", ",", "#", "])"),
    ("WITH ", ",", "w# AS (SELECT #)", " SELECT 1"),
    ("WITH ", ",", "w# AS (SELECT # AS a)", " SELECT * FROM w0"),
    ("EXPLAIN WITH ", ",", "w# AS (SELECT #)", " SELECT 1"),
    ("WITH ", ",", "w# AS (DELETE FROM t WHERE id = #)", " SELECT 1"),
    ("SELECT ", ",", "# AS c#", ""),
    ("SELECT ", ",", "id", " FROM t"),
    ("SELECT ", ",", "(SELECT #)", ""),
    ("SELECT ", ",", "(SELECT id FROM t WHERE id < #)", ""),
    ("SELECT 1 FROM ", ",", "t t#", ""),
    ("SELECT 1 FROM ", ",", "(SELECT #) t#", ""),
    ("SELECT 1 FROM t", "", ", LATERAL (SELECT #) l#", ""),
    ("SELECT count(*) FROM t t0 ", " ", "NATURAL JOIN t t#", ""),
    ("SELECT CASE 1 ", " ", "WHEN # THEN #", " END"),
    ("SELECT CASE ", " ", "WHEN id = # THEN #", " END FROM t"),
    ("SELECT coalesce(", ",", "NULL", ")"),
    ("SELECT concat(", ",", "'a'", ")"),
    ("SELECT count(*) FROM t WHERE ", " OR ", "id = #", ""),
    ("SELECT ", " + ", "1", ""),
    ("SELECT now()", "", " AT TIME ZONE 'UTC'", ""),
    ("SELECT 'a'", "", " ILIKE 'a'", ""),
    ("SELECT 'a'", "", " SIMILAR TO 'a'", ""),
    ("", " UNION ALL ", "SELECT #", ""),
    ("", " UNION ALL ", "VALUES (#)", ""),
    ("SELECT * FROM t ORDER BY ", ",", "id + #", ""),
    ("SELECT 1 FROM t GROUP BY ", ",", "id + #", ""),
    ("SELECT ", ",", "sum(id + #)", " FROM t"),
    ("SELECT ", ",", "sum(id) OVER (ORDER BY id + #)", " FROM t"),
    ("UPDATE t SET ", ",", "v = '#'", ""),
    ("INSERT INTO t VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET ", ",", "v = '#'", ""),
    ("DELETE FROM t WHERE id = 1 RETURNING ", ",", "id", ""),
    ("SELECT * FROM t WHERE id IN (", ",", "$#", ")"),
    ("SELECT ROW(", ",", "#", ")"),
    ("SELECT greatest(", ",", "#", ")"),
    ("SELECT a", "", ".a", ""),
    ("SELECT ", "", "a ", ""),
    ("CREATE TABLE z (id INT PRIMARY KEY, ", ",", "c# INT", ")"),
    ("CREATE TABLE z (id INT PRIMARY KEY, ", ",", "CHECK (id > #)", ")"),
    ("CREATE TABLE z (id INT PRIMARY KEY, ", ",", "UNIQUE (id)", ")"),
    ("CREATE INDEX z ON t (", ",", "(id + #)", ")"),
    ("CREATE VIEW z AS SELECT id FROM t WHERE id IN (", ",", "#", ")"),
    ("CREATE VIEW z AS SELECT ", ",", "# AS c#", ""),
    ("TRUNCATE ", ",", "t", ""),
];

/// A shape's text of about so many bytes.
fn text_of((head, between, part, tail): &Shape, bytes: usize) -> String {
    let mut text = (*head).to_owned();
    let mut number = 0;
    while text.len() + between.len() + part.len() + tail.len() + 32 < bytes {
        if number > 0 {
            text.push_str(between);
        }
        text.push_str(&part.replace('#', &number.to_string()));
        number += 1;
    }
    text + tail
}

/// What the thread has computed.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

/// A store with a table, and who runs statements on it.
fn bench() -> (Arc<Store>, Executor) {
    let store = open_store(Clock::System);
    let limits = Limits { statement_timeout: Some(TIMEOUT), ..Limits::default() };
    let mut executor = Executor::new(Arc::clone(&store), Limits::default()).unwrap();
    let mut run = |sql: &str| {
        executor.execute(&mut Session::new(), sql, &[], &Cancel::new(), &mut Rows::default()).unwrap();
    };
    run("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)");
    run("INSERT INTO t SELECT g, 'a' FROM generate_series(1, 100) g");
    executor.set_limits(limits);
    (store, executor)
}

/// Runs a statement. Returns how it ended, and what it took beyond its time.
fn ended(executor: &mut Executor, sql: &str, cancel: &Cancel) -> (Result<(), SqlError>, Duration) {
    let began = processor();
    let result = executor.execute(&mut Session::new(), sql, &[], cancel, &mut Rows::default());
    (result.map(|_| ()), processor().saturating_sub(began).saturating_sub(TIMEOUT))
}

fn bytes() -> usize {
    #[expect(clippy::disallowed_methods, reason = "the environment says how long the texts are")]
    let asked = std::env::var("BYTES");
    asked.ok().map_or(BYTES, |bytes| bytes.parse().expect("BYTES is a number"))
}

/// A `WITH` of 20,000 names ran for a minute after its timeout of a second, and then succeeded; `VALUES` of 200,000
/// rows and a long `IN` stopped all other statements meanwhile. Nobody asked the time while a text was read, while
/// its tree was walked through, or while SQLite compared each of its constants with all others.
#[test]
fn long_statements_end_at_their_timeout() {
    let (_store, mut executor) = bench();
    let (mut wrong, mut longest) = (Vec::new(), Duration::ZERO);
    for shape in SHAPES {
        let mut size = BYTES;
        loop {
            let sql = text_of(shape, size);
            let (result, beyond) = ended(&mut executor, &sql, &Cancel::new());
            longest = longest.max(beyond);
            let state = result.as_ref().err().map_or("00000", |error| error.state);
            let known = result.is_ok() || STATES.contains(&state) || state.starts_with("42");
            if beyond > BEYOND_MAX || !known {
                wrong.push(format!("{} of {} bytes: {state} after {beyond:?}", &sql[..40], sql.len()));
            }
            if result.is_err() || size >= bytes() {
                break;
            }
            size = (2 * size).min(bytes());
        }
        let drop = "DROP TABLE IF EXISTS z; DROP VIEW IF EXISTS z";
        for sql in drop.split("; ") {
            let _gone = ended(&mut executor, sql, &Cancel::new());
        }
    }
    println!("the longest was {longest:?} beyond its timeout");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A cancel that came while a statement was read or compiled was not heard.
#[test]
fn a_cancel_is_heard_whatever_a_statement_does() {
    let (_store, mut executor) = bench();
    executor.set_limits(Limits { statement_timeout: None, ..Limits::default() });
    let mut wrong = Vec::new();
    for shape in [&SHAPES[0], &SHAPES[7], &SHAPES[13], &SHAPES[24]] {
        let (sql, cancel) = (text_of(shape, 512 << 10), Cancel::new());
        let from_outside = cancel.clone();
        let (result, beyond) = std::thread::scope(|threads| {
            threads.spawn(move || {
                std::thread::sleep(TIMEOUT);
                from_outside.cancel();
            });
            ended(&mut executor, &sql, &cancel)
        });
        if beyond > BEYOND_MAX || result.as_ref().is_ok_and(|()| beyond > Duration::ZERO) {
            wrong.push(format!("{}: {result:?} after {beyond:?}", &sql[..40]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
