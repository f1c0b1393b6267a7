//! Statements through PostgreSQL's protocol, beside PostgreSQL 15 with tables that nothing makes durable, and beside
//! memcached where it can do the same.

mod engine;
mod idle;
mod points;
mod writes;

use std::path::PathBuf;

use crate::cores::Cores;
use crate::failure::Result;
use crate::machine::{self, Noise};
use crate::report::{Figure, Report};
use crate::server::{Kind, Server, Setup};
use crate::summary::{Summary, digits};

/// Memory limit of each cache.
const MEMORY_MIB: u64 = 1024;

/// What `sql` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Our program, written PATH or LABEL=PATH; more than one are compared with each other.
    #[arg(long, value_name = "[LABEL=]PATH")]
    sqlcached: Vec<String>,
    /// Repetitions of each measurement, each beside the peers'.
    #[arg(long, default_value_t = 7)]
    repetitions: usize,
    /// Seconds of one measurement.
    #[arg(long, default_value_t = 0.6)]
    seconds: f64,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Let the scheduler place server and load.
    #[arg(long)]
    unpinned: bool,
    /// Where the results go, in a folder named after the day.
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
}

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Point queries by one and by eight clients.
    Points,
    /// Upserts, and deletes of a page and of a user.
    Writes,
    /// Memory of connections that do nothing.
    Idle,
    /// Point queries in this process, without a socket.
    Engine,
}

/// What measures a part and adds its table.
type Measure = fn(&Bench, &mut Report) -> Result<()>;

/// How everything is measured.
#[derive(Clone, Debug)]
struct Bench {
    ours: Vec<Kind>,
    cores: Cores,
    repetitions: usize,
    slice_ns: u64,
}

/// What one subject did in one line of the experiment: a figure for each repetition.
#[derive(Clone, Debug, Default)]
struct Column {
    subject: String,
    /// Server CPU of an operation in nanoseconds.
    cpu_ns: Vec<f64>,
    /// Operations in a second.
    per_second: Vec<f64>,
}

/// A line of a table: the subject that is judged, another, and how much of the other's figure it may have.
struct Goal {
    subject: String,
    than: String,
    reach: f64,
}

impl Bench {
    /// Our builds with their PostgreSQL listener; a server that is not installed is skipped with a line.
    fn start(&self, kinds: &[Kind], report: &mut Report) -> Vec<Server> {
        let setup = Setup { sql_listener: true, ..Setup::new(MEMORY_MIB, self.cores) };
        let mut servers = Vec::new();
        for kind in kinds {
            match Server::start(kind, &setup) {
                Ok(server) => servers.push(server),
                Err(failure) => report.say(&format!("{}: skipped: {failure}", kind.label())),
            }
        }
        servers
    }

    /// Ours and all peers.
    fn everyone(&self) -> Vec<Kind> {
        self.ours.iter().cloned().chain([Kind::PostgreSql, Kind::Memcached]).collect()
    }
}

/// Runs the parts and writes the report.
pub(crate) fn run(options: &Options) -> Result<()> {
    let cores = if options.unpinned { Cores::free() } else { Cores::choose() };
    let bench = Bench {
        ours: crate::builds(&options.sqlcached),
        cores,
        repetitions: options.repetitions.max(1),
        slice_ns: crate::nanoseconds(options.seconds),
    };
    cores.pin_load()?;
    let mut report = Report::new("sql");
    let noise = Noise::sample();
    introduce(&bench, &mut report);
    let parts: [(Part, Measure); 4] = [
        (Part::Points, points::run),
        (Part::Writes, writes::run),
        (Part::Idle, idle::run),
        (Part::Engine, engine::run),
    ];
    for (part, measure) in parts {
        if options.only.is_empty() || options.only.contains(&part) {
            measure(&bench, &mut report)?;
        }
    }
    report.say(&format!("Noise: {}.", noise.since()));
    let path = report.write(&options.results)?;
    println!("written: {}", path.display());
    Ok(())
}

fn introduce(bench: &Bench, report: &mut Report) {
    report.say("# SQL through PostgreSQL's protocol\n");
    report.say(&format!("Machine: {}; {}.", machine::describe(), bench.cores.describe()));
    for kind in bench.everyone() {
        let version = kind.version().unwrap_or_else(|| "not found".into());
        report.say(&format!("- {}: {version}", kind.label()));
    }
    report.say(&format!(
        "\nMedians of {} paired, interleaved repetitions; in brackets the quartiles of the ratios.",
        bench.repetitions
    ));
}

/// Keeps one repetition in the report's list.
fn keep(line: &str, column: &Column, repetition: usize, report: &mut Report) {
    for (metric, values) in [("server_cpu_ns", &column.cpu_ns), ("per_second", &column.per_second)] {
        if let Some(&value) = values.last() {
            report.figure(&Figure { line, server: &column.subject, repetition, metric, value });
        }
    }
}

/// Rows of a table: each subject's medians, and behind it how it stands to the goals set for it.
fn rows(line: &str, columns: &[Column], goals: &[Goal], by: fn(&Column) -> &[f64]) -> Vec<Vec<String>> {
    let row = |column: &Column| {
        let found: Vec<String> = goals
            .iter()
            .filter(|goal| goal.subject == column.subject)
            .filter_map(|goal| {
                let than = columns.iter().find(|other| other.subject == goal.than)?;
                Some(goal.verdict(Summary::of_ratios(by(column), by(than))))
            })
            .collect();
        vec![
            line.to_owned(),
            column.subject.clone(),
            digits(Summary::of(&column.cpu_ns).median / 1e3),
            digits(Summary::of(&column.per_second).median),
            found.join("; "),
        ]
    };
    columns.iter().map(row).collect()
}

/// The head of these tables.
const HEAD: [&str; 5] = ["line", "server", "CPU us/op", "ops/s", "ratio (quartiles), reach"];

impl Goal {
    /// Less CPU than another's, by this factor; more operations in a second where `reach` is above one.
    fn new(subject: &str, than: &str, reach: f64) -> Self {
        Self { subject: subject.to_owned(), than: than.to_owned(), reach }
    }

    fn verdict(&self, ratio: Summary) -> String {
        let more = self.reach >= MORE;
        let holds = if more { ratio.median >= self.reach } else { ratio.median <= self.reach };
        format!(
            "{:.2} ({:.2}-{:.2}) of {}, {} {:.2} {}",
            ratio.median,
            ratio.low,
            ratio.high,
            self.than,
            if more { ">=" } else { "<=" },
            self.reach,
            if holds { "holds" } else { "missed" }
        )
    }
}

/// A goal this high is a throughput to reach; those below are costs to stay under.
const MORE: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::{Column, Goal, rows};

    #[test]
    fn goals_are_judged_by_paired_ratios() {
        let column = |subject: &str, cpu_ns: &[f64]| Column {
            subject: subject.to_owned(),
            cpu_ns: cpu_ns.to_vec(),
            per_second: vec![1.0; cpu_ns.len()],
        };
        let columns = [column("ours", &[10.0, 30.0]), column("peer", &[100.0, 100.0])];
        let goals = [Goal::new("ours", "peer", 0.4), Goal::new("ours", "nobody", 1.0)];
        let table = rows("line", &columns, &goals, |column| &column.cpu_ns);
        assert_eq!(table[0][4], "0.20 (0.15-0.25) of peer, <= 0.40 holds");
        assert_eq!(table[1][4], "");
    }
}
