//! No function takes more of a statement's memory than the statement may have, and none is deaf when it must stop: each
//! that a statement may call is called with large values of every kind.
//!
//! Functions in Rust once took what they liked (1.4 GB a statement where 64 MiB were allowed), and some took time that
//! grows with the square of their arguments within one operation, which no timeout and no cancel ended: two statements
//! kept both SQL threads for minutes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sql::{Cancel, ColumnDescription, Executor, Limits, RowSink, Session, SqlError};
use store::value::{Value, ValueRef};
use store::{Clock, Store, StoreOptions};

/// Counts what the process has allocated, and the most that it had.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is the system's allocator's work; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The tests of this file measure the process: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// What a statement may have.
const HEAP: usize = 2 << 20;
/// What a call takes beside it: its result and the arguments that are bound once more, plans, tables of the process.
const BESIDE: usize = HEAP + (1 << 20);
/// Bytes of a large argument.
const LARGE: usize = 96 << 10;
/// How long a statement may take.
const TIMEOUT: Duration = Duration::from_millis(100);
/// How long its thread may work then before it has heard that: some functions are one pass through their arguments.
const PATIENCE: Duration = Duration::from_millis(500);

struct Db {
    executor: Executor,
    session: Session,
}

#[derive(Default)]
struct Names(Vec<String>);

impl RowSink for Names {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        if let Some(ValueRef::Text(name)) = values.first() {
            self.0.push((*name).to_owned());
        }
        Ok(())
    }
}

impl Db {
    fn new(limits: Limits) -> Self {
        let options = StoreOptions {
            path: None,
            memory_bytes: 64 << 20,
            cold: true,
            clock: Clock::System,
            row_bytes_max: 2 << 20,
        };
        let store: Arc<Store> = Store::open(&options).expect("a store").store;
        Self { executor: Executor::new(store, limits).expect("an executor"), session: Session::new() }
    }

    fn run(&mut self, sql: &str, values: &[Value]) -> Result<Vec<String>, SqlError> {
        let mut names = Names::default();
        self.executor.execute(&mut self.session, sql, values, &Cancel::new(), &mut names)?;
        Ok(names.0)
    }

    /// Every function and conversion that a statement may call.
    fn functions(&mut self) -> Vec<String> {
        let mut names = self.run("SELECT DISTINCT proname FROM pg_proc ORDER BY 1", &[]).expect("functions");
        assert!(names.len() > 150, "{names:?}");
        let casts = [
            "int2",
            "int4",
            "int8",
            "float8",
            "numeric",
            "bool",
            "bytea",
            "uuid",
            "json",
            "jsonb",
            "date",
            "time",
            "timestamp",
            "timestamptz",
            "interval",
            "text",
            "array",
        ];
        names.extend(casts.map(|ty| format!("cast_{ty}")));
        names
    }
}

/// How long this thread has had a processor: others' work on a busy machine does not count.
fn worked() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a time")
}

/// A text of about [`LARGE`] bytes of these parts.
fn many(before: &str, part: impl Fn(usize) -> String, behind: &str) -> Value {
    let mut text = before.to_owned();
    let mut number = 0;
    while text.len() < LARGE {
        if number > 0 {
            text.push(',');
        }
        text += &part(number);
        number += 1;
    }
    Value::Text(text + behind)
}

/// Large values of every kind, each with another of its kind.
fn large() -> Vec<(Value, Value)> {
    let text = |of: &str| Value::Text(of.repeat(LARGE / of.len()));
    vec![
        (text("a"), text("b")),
        (text("a"), Value::Text("a".repeat(LARGE / 2) + "b")),
        (text(","), text(",a")),
        (text("%a_"), text("ab")),
        (text("\u{1}"), text("\u{e4}")),
        (many("[", |n| n.to_string(), "]"), many("[", |n| (LARGE + n).to_string(), "]")),
        (many("[", |_| "{}".to_owned(), "]"), many("[", |_| "{\"a\":2}".to_owned(), "]")),
        (many("[", |n| format!("[{n}]"), "]"), many("[", |n| format!("[{n},-1]"), "]")),
        (many("[", |n| format!("\"{n}\""), "]"), many("[", |n| format!("\"{n}x\""), "]")),
        (many("{", |n| format!("\"k{n}\":{n}"), "}"), many("{", |n| format!("\"l{n}\":{n}"), "}")),
        (many("{", |n| n.to_string(), "}"), many("{", |n| (LARGE + n).to_string(), "}")),
        (Value::Text("[".repeat(100) + &"]".repeat(100)), text("{\"a\":")),
        (Value::Blob(vec![0xff; LARGE]), Value::Blob(vec![0; LARGE])),
    ]
}

/// Arguments of one call.
fn calls() -> Vec<Vec<Value>> {
    let small = |text: &str| Value::from(text);
    let mut calls = Vec::new();
    for (one, two) in large() {
        calls.push(vec![one.clone()]);
        for other in [&two, &small(","), &small("hex"), &Value::Integer(1 << 40)] {
            calls.push(vec![one.clone(), other.clone()]);
        }
        calls.push(vec![two.clone(), one.clone()]);
        calls.push(vec![small(","), one.clone()]);
        calls.push(vec![one.clone(), small(","), two.clone()]);
        calls.push(vec![one.clone(), small("a"), two.clone()]);
        calls.push(vec![one.clone(), Value::Integer(1 << 20), small("xy")]);
        calls.push(vec![one.clone(), small("$.k1"), two.clone()]);
        calls.push(vec![one.clone(), small("(a)|(b)|."), small("\\1\\1\\1<\\&>"), small("g")]);
    }
    calls.push(vec![Value::Integer(1 << 40)]);
    calls.push(vec![Value::Integer(1 << 30), Value::Integer(1 << 30)]);
    calls.push(vec![small("x"), Value::Integer(1 << 27)]);
    calls.push(vec![small("x"), Value::Integer(1 << 27), small("y")]);
    calls.push(vec![small("%1000000000d"), Value::Integer(1)]);
    calls
}

fn expressions(db: &mut Db) -> Vec<(String, usize)> {
    let operators = [
        "a || b",
        "a @> b",
        "a <@ b",
        "a LIKE b",
        "a GLOB b",
        "a ~ b",
        "a ~* b",
        "a -> b",
        "a ->> b",
        "a #> b",
        "a = ANY (b::text[])",
        "a = ANY (b)",
        "a IN (SELECT unnest(b::text[]))",
        "a::int[] @> b::int[]",
        "a::text[] && b::text[]",
        "a::jsonb @> b::jsonb",
        "a = b",
        "a < b",
    ];
    let mut all: Vec<(String, usize)> = operators.map(|of| (of.to_owned(), 2)).into();
    for name in db.functions() {
        all.push((format!("\"{name}\"(a)"), 1));
        all.push((format!("\"{name}\"(a, b)"), 2));
        all.push((format!("\"{name}\"(a, b, c)"), 3));
        all.push((format!("\"{name}\"(a, b, c, d)"), 4));
    }
    all
}

#[test]
fn no_function_takes_more_memory_or_time_than_its_statement_may() {
    let _alone = ALONE.lock();
    let limits = || Limits { heap_bytes_max: HEAP, statement_timeout: Some(TIMEOUT), ..Limits::default() };
    let mut db = Db::new(limits());
    let calls = calls();
    let mut wrong = Vec::new();
    for (expression, count) in expressions(&mut db) {
        let columns = ["$1 AS a", "$2 AS b", "$3 AS c", "$4 AS d"][..count].join(", ");
        let sql = format!("SELECT ({expression}) IS NULL FROM (SELECT {columns})");
        for values in calls.iter().filter(|values| values.len() == count) {
            let before = NOW.load(Ordering::Relaxed);
            MOST.store(before, Ordering::Relaxed);
            let began = worked();
            let result = db.run(&sql, values);
            let (took, most) = (worked().saturating_sub(began), MOST.load(Ordering::Relaxed) - before);
            let shown = |value: &Value| format!("{value:?}").chars().take(12).collect::<String>();
            if took > PATIENCE || most > HEAP + BESIDE {
                let values: Vec<String> = values.iter().map(shown).collect();
                let state = result.as_ref().err().map(|error| error.state);
                wrong.push(format!("{expression} of {values:?}: {took:?}, {most} bytes, {state:?}"));
            }
            // What does not compile needs no other values.
            if result.is_err_and(|error| error.state.starts_with("42") && error.state != "42000") {
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} calls:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_function_that_is_stopped_says_why() {
    let _alone = ALONE.lock();
    let mut db = Db::new(Limits { operations_max: Some(10_000), ..Limits::default() });
    let error = db.run("SELECT length(repeat('a', 30000000))", &[]).expect_err("stopped");
    assert_eq!(
        (error.state, error.message.as_str()),
        ("57014", "canceling statement due to the limit of operations")
    );
}

/// Definitions that go through all rows once heard neither a timeout nor a cancel: ten seconds of a SQL thread each.
#[test]
fn definitions_over_all_rows_stop_and_leave_nothing_behind() {
    let _alone = ALONE.lock();
    let mut db = Db::new(Limits::default());
    db.run("CREATE TABLE t (a INT PRIMARY KEY, b INT, c TEXT, e TEXT)", &[]).expect("a table");
    db.run("INSERT INTO t SELECT g, g, 'x' || g, g FROM generate_series(1, 5000) g", &[]).expect("rows");
    let columns = "SELECT group_concat(column_name || data_type || is_nullable) FROM information_schema.columns \
                   WHERE table_name = 't'";
    let indexes = "SELECT group_concat(indexname || indexdef) FROM pg_indexes WHERE tablename = 't'";
    for sql in [
        "CREATE INDEX t_b ON t (b)",
        "CREATE UNIQUE INDEX t_c ON t (c)",
        "CREATE INDEX t_e ON t (upper(c))",
        "CREATE INDEX t_p ON t (b) WHERE b > 10",
        "ALTER TABLE t ADD COLUMN d INT AS (b + 1) STORED",
        "ALTER TABLE t ADD CONSTRAINT positive CHECK (b > 0)",
        "ALTER TABLE t ALTER COLUMN b SET NOT NULL",
        "ALTER TABLE t ALTER COLUMN e TYPE INT USING length(e)",
    ] {
        let before = (db.run(columns, &[]), db.run(indexes, &[]));
        db.executor.set_limits(Limits { operations_max: Some(20_000), ..Limits::default() });
        let error = db.run(sql, &[]).expect_err(sql);
        assert_eq!(error.state, "57014", "{sql}: {error:?}");
        db.executor.set_limits(Limits::default());
        assert_eq!((db.run(columns, &[]), db.run(indexes, &[])), before, "{sql} left something behind");
        db.run("UPDATE t SET b = b + 1 WHERE a % 100 = 0", &[]).expect(sql);
        db.run("DELETE FROM t WHERE a = -1", &[]).expect(sql);
        db.run(sql, &[]).expect(sql);
    }
    assert_eq!(db.run("SELECT count(*)::text FROM t", &[]), Ok(vec!["5000".to_owned()]));
}

/// What one row's expressions may take, whoever writes it: a memcached worker waits for them, and with it a part of all
/// clients. Two values of a megabyte once kept one for a minute.
#[test]
fn expressions_of_a_row_have_a_budget_of_time() {
    let _alone = ALONE.lock();
    let mut db = Db::new(Limits::default());
    for (column, value) in [
        (
            "n INT AS (length(json_patch('{}', v))) STORED",
            "'{' || string_agg('\"k' || g || '\":1', ',') || '}'",
        ),
        ("n INT AS (v::jsonb @> v::jsonb) STORED", "'[' || string_agg('[' || g || ']', ',') || ']'"),
        (
            "n INT AS (v::jsonb @> replace(v, '1', '2')::jsonb) STORED",
            "'[' || string_agg('[' || g || ',1]', ',') || ']'",
        ),
        ("CHECK (v ~ '(a|b|ab)*c$' OR length(v) > 0)", "string_agg('ab', '')"),
        (
            "CHECK (length(replace(replace(replace(v, 'a', 'bb'), 'b', 'aa'), 'a', 'b')) > 0)",
            "string_agg('ab', '')",
        ),
    ] {
        db.run(&format!("CREATE TABLE bomb (k INT PRIMARY KEY, v TEXT, {column})"), &[]).expect(column);
        let made = format!("SELECT {value} FROM generate_series(1, 60000) g");
        let value = Value::from(db.run(&made, &[]).expect(column).remove(0).as_str());
        let began = worked();
        let result = db.run("INSERT INTO bomb VALUES (1, $1)", &[value]);
        let took = worked().saturating_sub(began);
        assert!(took < Duration::from_secs(2), "{column}: {took:?}");
        if let Err(error) = result {
            let told = error.message.contains("the expressions of one row are too expensive")
                && (error.message.contains("\"n\"") || error.message.contains("\"bomb\""));
            assert!(told || error.message.contains("more memory"), "{column}: {error:?}");
        }
        db.run("DROP TABLE bomb", &[]).expect(column);
    }
}

/// `pg_sleep` in a default held a memcached worker for as long as it said: only the processor's time was counted.
#[test]
fn expressions_of_a_row_do_not_sleep() {
    let _alone = ALONE.lock();
    let mut db = Db::new(Limits::default());
    db.run("CREATE TABLE sleepy (k TEXT PRIMARY KEY, d TEXT DEFAULT pg_sleep(1000))", &[]).unwrap();
    let error = db.run("INSERT INTO sleepy (k) VALUES ('a')", &[]).expect_err("it sleeps");
    assert!(error.message.contains("too expensive"), "{error:?}");
}
