//! Expiry of one page and of one user of the paper's data set: the engine alone, and a round trip.

use std::sync::Arc;

use sql::{Cancel, ColumnDescription, Executor, Limits, RowSink, Session, SqlError};
use store::value::{Value, ValueRef};

use crate::client::Client;
use crate::clock;
use crate::failure::{Context, Failure, Result};
use crate::pages::{self, Fragment};
use crate::report::{Figure, Report};
use crate::server::Server;
use crate::summary::{Summary, digits};

use crate::paired::Bench;

/// Expiries timed in one repetition.
const PAGES_TIMED: u64 = 300;
/// Users are thirty times larger.
const USERS_TIMED: u64 = 50;
/// Room for the data set.
const MEMORY_MIB: u64 = 256;

/// What is expired.
struct Line {
    name: &'static str,
    statement: &'static str,
    /// How many in one repetition; a divisor of all there are.
    count: u64,
    /// How many there are.
    owners: u64,
    /// Microseconds that the engine may take.
    reach: f64,
    owner: fn(&Fragment) -> u64,
}

const LINES: [Line; 2] = [
    Line {
        name: "one page (3.3 rows)",
        statement: pages::EXPIRE_PAGE,
        count: PAGES_TIMED,
        owners: pages::PAGES,
        reach: 5.0,
        owner: |fragment| fragment.page,
    },
    Line {
        name: "one user (100 rows)",
        statement: pages::EXPIRE_USER,
        count: USERS_TIMED,
        owners: pages::USERS,
        reach: 60.0,
        owner: |fragment| fragment.user,
    },
];

/// Something that runs statements and says what it cost.
trait Database {
    /// For tables.
    fn label(&self) -> String;
    /// Runs a statement with at most one parameter; rows it wrote.
    fn execute(&mut self, statement: &str, parameter: Option<u64>) -> Result<u64>;
    /// Processor time that it took so far.
    fn cpu_ns(&self) -> Result<u64>;
}

/// A daemon over its Unix socket.
struct Daemon<'s> {
    server: &'s Server,
    client: Client,
}

impl Database for Daemon<'_> {
    fn label(&self) -> String {
        format!("{}, round trip", self.server.label)
    }

    fn execute(&mut self, statement: &str, parameter: Option<u64>) -> Result<u64> {
        let parameters = parameter.map_or_else(|| "[]".to_owned(), |number| format!("[{number}]"));
        self.client.execute(statement, &parameters)
    }

    fn cpu_ns(&self) -> Result<u64> {
        self.server.cpu_ns()
    }
}

/// The SQL engine and the store in this process.
struct Inside {
    executor: Executor,
    session: Session,
    cancel: Cancel,
}

impl Inside {
    fn open() -> Result<Self> {
        let store = crate::inside::open(MEMORY_MIB)?;
        let executor =
            Executor::new(Arc::clone(&store), Limits::default()).map_err(|error| in_words(&error))?;
        Ok(Self { executor, session: Session::new(), cancel: Cancel::new() })
    }
}

impl Database for Inside {
    fn label(&self) -> String {
        "engine part".into()
    }

    fn execute(&mut self, statement: &str, parameter: Option<u64>) -> Result<u64> {
        let number = parameter.map(|number| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)));
        let done = self.executor.execute(
            &mut self.session,
            statement,
            number.as_slice(),
            &self.cancel,
            &mut Nothing,
        );
        Ok(done.map_err(|error| in_words(&error))?.affected)
    }

    fn cpu_ns(&self) -> Result<u64> {
        Ok(clock::thread_cpu_ns())
    }
}

fn in_words(error: &SqlError) -> Failure {
    Failure::new(format!("{} {}", error.state, error.message))
}

/// Statements that write have no rows.
struct Nothing;

impl RowSink for Nothing {
    fn columns(&mut self, _columns: &[ColumnDescription]) {}

    fn row(&mut self, _values: &[ValueRef<'_>]) -> std::result::Result<(), SqlError> {
        Ok(())
    }
}

/// The engine part, then a round trip to each of our servers.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut rows = Vec::new();
    measure(bench, &mut Inside::open()?, &mut rows, report, true)?;
    for server in &bench.start_ours(&bench.setup(MEMORY_MIB), report) {
        let client = Client::connect(server.nearest())?;
        measure(bench, &mut Daemon { server, client }, &mut rows, report, false)?;
    }
    report.say("\n## Expiry of one page and one user\n");
    report.say(&format!(
        "{} rows, {} pages, {} users, both indexed; `DELETE ... WHERE page_id = ?`, means of {PAGES_TIMED} pages or \
         {USERS_TIMED} users. Engine part: SQL and store in one process, prepared by the statement cache. Round \
         trip: `sqlp` over the Unix socket, one client.",
        pages::ROWS,
        pages::PAGES,
        pages::USERS
    ));
    report.table(&["expire", "where", "CPU us", "wall us (quartiles)", "reach"], &rows);
    Ok(())
}

/// Every line on one database; what it filled is taken away at the end.
fn measure(
    bench: &Bench,
    database: &mut dyn Database,
    rows: &mut Vec<Vec<String>>,
    report: &mut Report,
    with_reach: bool,
) -> Result<()> {
    let all = pages::fragments();
    let label = database.label();
    report.progress(&format!("expiry: {label}"));
    for definition in pages::DEFINITIONS {
        database.execute(definition, None).context(|| definition.into())?;
    }
    refill(database, &all)?;
    for line in &LINES {
        let (mut wall, mut cpu) = (Vec::new(), Vec::new());
        for repetition in 0..bench.repetitions {
            let (one_wall, one_cpu) = expire(database, &all, line, repetition as u64)?;
            for (metric, value) in [("wall_us", one_wall), ("cpu_us", one_cpu)] {
                report.figure(&Figure { line: line.name, server: &label, repetition, metric, value });
            }
            wall.push(one_wall);
            cpu.push(one_cpu);
        }
        let (wall, cpu) = (Summary::of(&wall), Summary::of(&cpu));
        let verdict = if cpu.median <= line.reach { "holds" } else { "missed" };
        rows.push(vec![
            line.name.to_owned(),
            label.clone(),
            digits(cpu.median),
            format!("{} ({}-{})", digits(wall.median), digits(wall.low), digits(wall.high)),
            if with_reach { format!("<= {:.0} {verdict}", line.reach) } else { String::new() },
        ]);
    }
    database.execute(pages::DROP, None)?;
    Ok(())
}

/// Expires pages or users one after the other and brings their rows back: microseconds of one, wall and CPU.
fn expire(database: &mut dyn Database, all: &[Fragment], line: &Line, repetition: u64) -> Result<(f64, f64)> {
    let first = repetition * line.count % line.owners;
    let range = first..first + line.count;
    let gone = pages::chosen(all, |fragment| range.contains(&(line.owner)(fragment)));
    let cpu = database.cpu_ns()?;
    let began = clock::now_ns();
    let mut affected = 0;
    for number in range {
        affected += database.execute(line.statement, Some(number))?;
    }
    let wall = clock::now_ns() - began;
    let cpu = database.cpu_ns()? - cpu;
    if affected != gone.len() as u64 {
        return Err(Failure::new(format!(
            "{} removed {affected} rows in place of {}",
            line.statement,
            gone.len()
        )));
    }
    refill(database, &gone)?;
    let each = |ns: u64| ns as f64 / line.count as f64 / 1e3;
    Ok((each(wall), each(cpu)))
}

fn refill(database: &mut dyn Database, rows: &[Fragment]) -> Result<()> {
    for statement in pages::inserts(rows) {
        database.execute(&statement, None).context(|| "insert fragments".into())?;
    }
    Ok(())
}
