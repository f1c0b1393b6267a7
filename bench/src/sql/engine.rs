//! What a point query takes in the engine alone, prepared and as text.

use std::sync::Arc;

use sql::{Cancel, ColumnDescription, Executor, Limits, RowSink, Session, SqlError};
use store::value::{Value, ValueRef};

use crate::clock;
use crate::failure::{Failure, Result};
use crate::load::{key, value};
use crate::postgres;
use crate::report::{Figure, Report};
use crate::summary::{Summary, digits};

use super::Bench;

/// Rows of the table.
const ROWS: u64 = 100_000;
/// Queries of one repetition.
const QUERIES: u64 = 50_000;
/// Key space of these rows.
const SPACE: u64 = 4;
/// Bytes of each value.
const VALUE_BYTES: usize = 32;

/// The engine with its table in this process.
struct Engine {
    executor: Executor,
    session: Session,
    cancel: Cancel,
    random: fastrand::Rng,
}

/// Takes one value of one row.
#[derive(Default)]
struct Sink {
    bytes: usize,
}

impl RowSink for Sink {
    fn columns(&mut self, _columns: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> std::result::Result<(), SqlError> {
        for value in values {
            if let ValueRef::Text(text) = value {
                self.bytes += text.len();
            }
        }
        Ok(())
    }
}

/// What is measured: its name, how one query is run, and the nanoseconds it may take.
type Line = (&'static str, fn(&mut Engine) -> Result<usize>, f64);

const LINES: [Line; 2] =
    [("prepared point SELECT", Engine::prepared, 600.0), ("textual point SELECT", Engine::textual, 1_500.0)];

/// Measures both lines and adds the table.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut engine = Engine::fill()?;
    let mut rows = Vec::new();
    for (line, query, reach) in LINES {
        let mut figures = Vec::new();
        for repetition in 0..bench.repetitions {
            let began = clock::thread_cpu_ns();
            for _ in 0..QUERIES {
                if query(&mut engine)? != VALUE_BYTES {
                    return Err(Failure::new("a row that was put is not there"));
                }
            }
            let value = (clock::thread_cpu_ns() - began) as f64 / QUERIES as f64;
            report.figure(&Figure { line, server: "engine", repetition, metric: "cpu_ns", value });
            figures.push(value);
        }
        let summary = Summary::of(&figures);
        let verdict = if summary.median <= reach { "holds" } else { "missed" };
        rows.push(vec![
            line.to_owned(),
            format!("{} ({}-{})", digits(summary.median), digits(summary.low), digits(summary.high)),
            format!("<= {reach:.0} {verdict}"),
        ]);
    }
    report.say("\n## The engine's part of a point query\n");
    report.say(&format!(
        "SQL and store in one process, {ROWS} rows, random keys. Prepared: one text with a parameter. Textual: each \
         text has its own key in it."
    ));
    report.table(&["line", "CPU ns (quartiles)", "reach"], &rows);
    Ok(())
}

impl Engine {
    fn fill() -> Result<Self> {
        let store = crate::inside::open(super::MEMORY_MIB)?;
        let executor =
            Executor::new(Arc::clone(&store), Limits::default()).map_err(|error| in_words(&error))?;
        let random = fastrand::Rng::with_seed(0x5eed);
        let mut engine = Self { executor, session: Session::new(), cancel: Cancel::new(), random };
        engine.execute(postgres::POINTS, &[])?;
        let value = Value::Text(String::from_utf8_lossy(&value(VALUE_BYTES)).into_owned());
        for index in 0..ROWS {
            let key = Value::Text(text_of(index));
            engine.execute("INSERT INTO points VALUES ($1, $2)", &[key, value.clone()])?;
        }
        Ok(engine)
    }

    fn prepared(&mut self) -> Result<usize> {
        let key = Value::Text(text_of(self.random.u64(..ROWS)));
        self.execute("SELECT value FROM points WHERE key = $1", &[key])
    }

    fn textual(&mut self) -> Result<usize> {
        let text = format!("SELECT value FROM points WHERE key = '{}'", text_of(self.random.u64(..ROWS)));
        self.execute(&text, &[])
    }

    /// Bytes of text that came back.
    fn execute(&mut self, statement: &str, parameters: &[Value]) -> Result<usize> {
        let mut sink = Sink::default();
        let done = self.executor.execute(&mut self.session, statement, parameters, &self.cancel, &mut sink);
        done.map_err(|error| in_words(&error))?;
        Ok(sink.bytes)
    }
}

fn text_of(index: u64) -> String {
    String::from_utf8_lossy(&key(SPACE, index)).into_owned()
}

fn in_words(error: &SqlError) -> Failure {
    Failure::new(format!("{} {}", error.state, error.message))
}
