//! A store, an executor, and answers as text.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod native;

use std::sync::Arc;

use sql::{
    Cancel, ColumnDescription, ComputedBy, Done, Executor, Limits, RowSink, Session, SqlError, SqlType,
};
use store::value::{Value, ValueRef};
use store::{Clock, ManualClock, Store, StoreOptions};

pub(crate) struct Db {
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) executor: Executor,
    pub(crate) session: Session,
    pub(crate) cancel: Cancel,
}

/// Rows with the names of their columns.
#[derive(Debug, Default, Clone, PartialEq)]
#[expect(clippy::struct_field_names, reason = "the rows of an answer are its rows")]
pub(crate) struct Rows {
    pub(crate) names: Vec<String>,
    pub(crate) types: Vec<SqlType>,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl RowSink for Rows {
    fn columns(&mut self, columns: &[ColumnDescription]) {
        self.names = columns.iter().map(|column| column.name.clone()).collect();
        self.types = columns.iter().map(|column| column.ty).collect();
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.rows.push(values.iter().map(|value| Value::from(*value)).collect());
        Ok(())
    }
}

/// The seed that `SEED` asks for: it replays the run that printed it.
pub(crate) fn given_seed() -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "the environment says which run to replay")]
    let given = std::env::var("SEED");
    given.ok().map(|seed| seed.parse().expect("SEED is a number"))
}

/// The seed of a random test: `SEED`, or a new one. It is printed, so that a failure can be replayed.
#[allow(clippy::print_stdout, reason = "a failure shows what its test printed")]
pub(crate) fn seed() -> u64 {
    let seed = given_seed().unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    seed
}

pub(crate) fn open_store(clock: Clock) -> Arc<Store> {
    let options =
        StoreOptions { path: None, memory_bytes: 64 << 20, cold: true, clock, row_bytes_max: 4 << 20 };
    Store::open(&options).expect("a store in memory").store
}

/// Whether statements are run natively where they can be: what the environment says, as it does to the daemon.
pub(crate) fn native_execution() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the same tests run both ways")]
    let asked = std::env::var("SQLCACHED_NATIVE_EXECUTION");
    asked.as_deref() != Ok("off")
}

/// What a statement answered, whoever computed it; or an error's state.
pub(crate) type Answer = Result<(u64, &'static str, Rows), &'static str>;

impl Db {
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits { statement_timeout: None, ..Limits::default() })
    }

    pub(crate) fn with_limits(mut limits: Limits) -> Self {
        let clock = ManualClock::new(1_700_000_000);
        let store = open_store(Clock::Manual(Arc::clone(&clock)));
        limits.native &= native_execution();
        let executor = Executor::new(Arc::clone(&store), limits).expect("an executor");
        Self { store, clock, executor, session: Session::new(), cancel: Cancel::new() }
    }

    pub(crate) fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<(Done, Rows), SqlError> {
        let mut rows = Rows::default();
        let done = self.executor.execute(&mut self.session, sql, parameters, &self.cancel, &mut rows)?;
        Ok((done, rows))
    }

    /// Runs something by the native executor where it can, and then by SQLite alone.
    pub(crate) fn both<T>(&mut self, mut run: impl FnMut(&mut Self) -> T) -> [T; 2] {
        let results = [true, false].map(|native| {
            self.session.set_native(Some(native));
            run(self)
        });
        self.session.set_native(None);
        results
    }

    /// What a statement answers; within a transaction, which goes on after an error, it leaves nothing.
    pub(crate) fn answer(&mut self, within: bool, sql: &str, parameters: &[Value]) -> Answer {
        if within {
            self.run("SAVEPOINT before");
        }
        let result = self.execute(sql, parameters);
        if within {
            self.run("ROLLBACK TO before");
        }
        result.map(|(done, rows)| (done.affected, done.tag, rows)).map_err(|error| error.state)
    }

    /// Who computes a statement, which must work.
    pub(crate) fn computed_by(&mut self, sql: &str) -> ComputedBy {
        self.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}")).0.by
    }

    /// Whether it needs no SQLite; `EXPLAIN` says the same.
    pub(crate) fn is_native(&mut self, sql: &str) -> bool {
        self.session.set_native(Some(true));
        let explained = self.query(&format!("EXPLAIN {sql}"));
        let native = self.computed_by(sql) == ComputedBy::Native;
        self.session.set_native(None);
        let executor = if native { "native" } else { "sqlite" };
        assert!(explained.starts_with(&format!("Executor: {executor}")), "{sql}: {explained}");
        native
    }

    /// Runs statements that must work, separated by semicolons at line ends.
    pub(crate) fn run(&mut self, script: &str) {
        for sql in script.split(";\n").map(str::trim).filter(|sql| !sql.is_empty()) {
            self.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    /// Rows written.
    pub(crate) fn affected(&mut self, sql: &str) -> u64 {
        self.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}")).0.affected
    }

    /// Rows as text: columns by commas, rows by semicolons.
    pub(crate) fn query(&mut self, sql: &str) -> String {
        self.query_with(sql, &[])
    }

    pub(crate) fn query_with(&mut self, sql: &str, parameters: &[Value]) -> String {
        let (_, rows) = self.execute(sql, parameters).unwrap_or_else(|error| panic!("{sql}: {error}"));
        shown(&rows.rows)
    }

    pub(crate) fn error(&mut self, sql: &str) -> SqlError {
        self.execute(sql, &[]).expect_err(sql)
    }

    pub(crate) fn state(&mut self, sql: &str) -> &'static str {
        self.error(sql).state
    }

    /// The plan, one step a line.
    pub(crate) fn plan(&mut self, sql: &str) -> String {
        let (_, rows) = self
            .execute(&format!("EXPLAIN QUERY PLAN {sql}"), &[])
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let detail = rows.rows.iter().map(|row| match row.last() {
            Some(Value::Text(text)) => text.clone(),
            other => format!("{other:?}"),
        });
        detail.collect::<Vec<_>>().join("\n")
    }
}

pub(crate) fn shown(rows: &[Vec<Value>]) -> String {
    let row = |row: &Vec<Value>| row.iter().map(show).collect::<Vec<_>>().join(",");
    rows.iter().map(row).collect::<Vec<_>>().join(";")
}

pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(integer) => integer.to_string(),
        Value::Real(real) => format!("{real:?}"),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => format!("{bytes:02x?}"),
    }
}
