//! Prepared statements beside definitions: the table that they name is dropped, and made again with its columns in
//! another order. A statement is run by the definition that is there, or fails and says why.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{
    Cancel, ClientSink, ColumnDescription, CopyOptions, Engine, EngineOptions, Formats, RowSink, SqlError,
    SqlSession, SqlThreadContext, Value, ValueRef,
};
use store::{Clock, Store, StoreOptions};

/// How often the table is dropped.
const DROPS: usize = 300;
const WORKERS: u64 = 2;
/// Every row has this many times its key in `n`, by whichever definition it was written.
const TIMES: i64 = 7;

/// The same columns in other places, with others between them.
const SHAPES: [&str; 3] = [
    "CREATE TABLE t (id INT PRIMARY KEY, n INT, a TEXT DEFAULT 'a')",
    "CREATE TABLE t (a TEXT DEFAULT 'b', n INT, b INT DEFAULT 3, id INT PRIMARY KEY)",
    "CREATE TABLE t (n INT, id INT PRIMARY KEY) WITH (shared_memory = off)",
];

/// Name, statement, and whether it takes the second parameter.
const STATEMENTS: [(&str, &str, bool); 6] = [
    ("get", "SELECT id, n FROM t WHERE id = $1", false),
    ("all", "SELECT id, n FROM t WHERE id >= $1 ORDER BY id", false),
    ("put", "INSERT INTO t (id, n) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET n = excluded.n", true),
    ("new", "INSERT INTO t (id, n) VALUES ($1, $2)", true),
    ("set", "UPDATE t SET n = $2 WHERE id = $1 RETURNING id, n", true),
    ("del", "DELETE FROM t WHERE id = $1 RETURNING id, n", false),
];

/// What a statement may fail with: the table or a column is not there, the rows are other ones, the table went while it
/// was read or written, the key is taken.
const EXPECTED: [&str; 6] = ["42P01", "42703", "0A000", "72000", "40001", "23505"];

/// Rows of two numbers.
#[derive(Default)]
struct Rows(Vec<(i64, i64)>);

impl ClientSink for Rows {
    fn begin_copy(&mut self, _: &CopyOptions, _: &Cancel) {}
}

impl RowSink for Rows {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let [ValueRef::Integer(id), ValueRef::Integer(n)] = values else { panic!("{values:?}") };
        self.0.push((*id, *n));
        Ok(())
    }
}

struct Client {
    context: SqlThreadContext,
    session: SqlSession,
}

impl Client {
    fn new(engine: &Arc<Engine>) -> Self {
        let mut session = SqlSession::local(Arc::clone(engine));
        session.set_wake(Box::new(|| {}));
        Self { context: SqlThreadContext::new(engine.context()), session }
    }

    fn run(&mut self, text: &str) -> Result<Rows, SqlError> {
        let mut rows = Rows::default();
        let result = self.session.run_text(&mut self.context, text, true, &mut rows).map(|_| rows);
        result.inspect_err(|error| self.session.fail(error))
    }

    /// Runs what was prepared by a message of the protocol.
    fn execute(&mut self, name: &str, values: Vec<Value>) -> Result<Rows, SqlError> {
        let mut rows = Rows::default();
        let prepared = Arc::clone(self.session.prepared(name)?);
        let result = self.session.bind("", prepared, values, Formats::Text);
        let result = result
            .and_then(|()| self.session.execute(&mut self.context, "", 0, false, &mut rows).map(|_| rows));
        let result = result.inspect_err(|error| self.session.fail(error));
        self.session.sync(&mut self.context)?;
        result
    }

    /// Prepares all statements, half of them in SQL's words. The table may be missing at first.
    fn prepare(&mut self) {
        for (name, text, _) in STATEMENTS {
            while let Err(error) = self.session.parse(&mut self.context, name, text, std::iter::empty()) {
                self.session.fail(&error);
                expected(text, &error);
            }
            while let Err(error) = self.run(&format!("PREPARE sql_{name} AS {text}")) {
                expected(text, &error);
            }
        }
    }
}

fn expected(text: &str, error: &SqlError) {
    assert!(EXPECTED.contains(&error.state), "{text}: {error}");
}

/// One worker's statements, and how often they ended how.
fn work(engine: &Arc<Engine>, seed: u64, stop: &AtomicBool, ended: &Mutex<BTreeMap<String, u64>>) {
    let (mut client, mut random) = (Client::new(engine), fastrand::Rng::with_seed(seed));
    client.prepare();
    // Relaxed: only tells when to stop.
    while !stop.load(Ordering::Relaxed) {
        let (name, text, both) = STATEMENTS[random.usize(..STATEMENTS.len())];
        let id = random.i64(0..20);
        let ran = if random.bool() {
            let mut values = vec![Value::Integer(id)];
            values.extend(both.then_some(Value::Integer(id * TIMES)));
            client.execute(name, values)
        } else {
            let second = if both { format!(", {}", id * TIMES) } else { String::new() };
            client.run(&format!("EXECUTE sql_{name} ({id}{second})"))
        };
        let state = match &ran {
            Ok(rows) => {
                assert!(rows.0.iter().all(|(id, n)| *n == id * TIMES), "{text}: {:?}", rows.0);
                "done"
            }
            Err(error) => {
                expected(text, error);
                error.state
            }
        };
        *ended.lock().expect("the counts").entry(format!("{name} {state}")).or_default() += 1;
    }
}

#[test]
fn prepared_statements_run_by_the_definition_that_is_there() {
    let seed = common::seed();
    let options = StoreOptions {
        path: None,
        memory_bytes: 64 << 20,
        cold: true,
        clock: Clock::System,
        row_bytes_max: 2 << 20,
    };
    let engine = Engine::new(Store::open(&options).expect("a store").store, EngineOptions::default());
    let (stop, ended) = (AtomicBool::new(false), Mutex::default());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (engine, stop, ended) = (&engine, &stop, &ended);
                scope.spawn(move || work(engine, seed ^ worker, stop, ended))
            })
            .collect();
        let (mut client, mut random) = (Client::new(&engine), fastrand::Rng::with_seed(seed));
        for _ in 0..DROPS {
            client.run(SHAPES[random.usize(..SHAPES.len())]).map(|_| ()).expect("the table is made");
            if random.bool() {
                client.run("CREATE INDEX t_n ON t (n)").map(|_| ()).expect("the index is made");
            }
            std::thread::sleep(std::time::Duration::from_micros(random.u64(..2_000)));
            client.run("DROP TABLE t").map(|_| ()).expect("the table is dropped");
            if workers.iter().any(std::thread::ScopedJoinHandle::is_finished) {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let ended = ended.into_inner().expect("the counts");
    for (name, _, _) in STATEMENTS {
        assert!(ended.contains_key(&format!("{name} done")), "{name} was never run: {ended:?}");
    }
}
