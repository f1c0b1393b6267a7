//! Rows expired by an index, from one to a hundred thousand at a time: what a row costs, and who waits meanwhile.

use std::fmt::Write as _;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use crate::client::Client;
use crate::clock;
use crate::failure::{Failure, Result};
use crate::report::{Figure, Report};
use crate::server::{Server, Setup};
use crate::summary::{Summary, digits, thousands};

use super::Bench;
use super::others::Others;

/// How many rows a statement expires.
const SIZES: [u64; 6] = [1, 10, 100, 1_000, 10_000, 100_000];
/// Rows of the table, and so of all groups together where groups are large.
const ROWS: u64 = 100_000;
/// Groups expired in one repetition.
const GROUPS_MAX: u64 = 500;
/// Rows of one `INSERT`.
const INSERT: u64 = 200;
/// Bytes of each row's value.
const BODY_BYTES: usize = 100;
/// Room for the rows, twice.
const MEMORY_MIB: u64 = 256;
/// The time before the statements that counts as undisturbed.
const UNDISTURBED: Duration = Duration::from_millis(700);

const DEFINITIONS: [&str; 2] = [
    "CREATE TABLE batch (id INTEGER PRIMARY KEY, grp INTEGER NOT NULL, body TEXT NOT NULL)",
    "CREATE INDEX batch_grp ON batch (grp)",
];
const EXPIRE: &str = "DELETE FROM batch WHERE grp = ?";

/// What one repetition showed, in microseconds.
struct Seen {
    /// From the statement to its answer, for each row.
    row: f64,
    /// The server's processor time, for each row.
    row_cpu: f64,
    /// p99 of the other client's waits, before and meanwhile.
    undisturbed: f64,
    disturbed: f64,
}

/// Every size on our server.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let server = Server::start(&bench.ours, &Setup::new(MEMORY_MIB, bench.cores))?;
    let mut client = Client::connect(server.nearest())?;
    for definition in DEFINITIONS {
        client.execute(definition, "[]")?;
    }
    let mut seen: Vec<Vec<Seen>> = SIZES.iter().map(|_| Vec::new()).collect();
    for repetition in 0..bench.repetitions {
        report.progress(&format!("expiry by an index: repetition {}", repetition + 1));
        for (&size, all) in SIZES.iter().zip(&mut seen) {
            let one = measure(&server, &mut client, size)?;
            keep(&one, size, &server.label, repetition, report);
            all.push(one);
        }
    }
    let rows: Vec<Vec<String>> = SIZES.iter().zip(&seen).map(|(&size, all)| row(size, all)).collect();
    report.say("\n## Expiry by an index\n");
    report.say(&format!(
        "`{EXPIRE}` on a table of {} rows with one secondary index, each statement after the answer to the one before; \
         another client reads and writes two thousand times a second. Medians of {} repetitions, quartiles in \
         brackets; p99 of the other client before and meanwhile.",
        thousands(ROWS as f64),
        bench.repetitions
    ));
    let head = [
        "rows a statement",
        "us a row",
        "CPU us a row",
        "p99 before, us",
        "p99 meanwhile, us",
        "ratio",
        "reach",
    ];
    report.table(&head, &rows);
    Ok(())
}

fn keep(seen: &Seen, size: u64, server: &str, repetition: usize, report: &mut Report) {
    let line = format!("expire {size} by index");
    for (metric, value) in [
        ("row_us", seen.row),
        ("row_cpu_us", seen.row_cpu),
        ("p99_before_us", seen.undisturbed),
        ("p99_meanwhile_us", seen.disturbed),
    ] {
        report.figure(&Figure { line: &line, server, repetition, metric, value });
    }
}

fn row(size: u64, all: &[Seen]) -> Vec<String> {
    let of = |figure: fn(&Seen) -> f64| all.iter().map(figure).collect::<Vec<f64>>();
    let (before, meanwhile) = (of(|seen| seen.undisturbed), of(|seen| seen.disturbed));
    let (cost, ratio) = (Summary::of(&of(|seen| seen.row)), Summary::of_ratios(&meanwhile, &before));
    vec![
        thousands(size as f64),
        format!("{} ({}-{})", digits(cost.median), digits(cost.low), digits(cost.high)),
        digits(Summary::of(&of(|seen| seen.row_cpu)).median),
        digits(Summary::of(&before).median),
        digits(Summary::of(&meanwhile).median),
        format!("{} ({}-{})", digits(ratio.median), digits(ratio.low), digits(ratio.high)),
        format!("<= 2 {}", if ratio.median <= 2.0 { "holds" } else { "missed" }),
    ]
}

/// Fills the table with groups of one size and expires some of them.
fn measure(server: &Server, client: &mut Client, size: u64) -> Result<Seen> {
    client.execute("DELETE FROM batch", "[]")?;
    fill(client, size)?;
    let groups = (ROWS / size).min(GROUPS_MAX);
    let others = Others::begin(server.nearest())?;
    let quiet = clock::now_ns();
    thread::sleep(UNDISTURBED);
    // What the other client costs the server meanwhile is the same before and during the statements.
    let rest = server.cpu()?;
    let (rest_began, rest_ns) = (clock::now_ns(), UNDISTURBED.as_nanos() as f64);
    thread::sleep(UNDISTURBED);
    let resting = server.cpu_since(&rest)? as f64 / rest_ns.max((clock::now_ns() - rest_began) as f64);
    let before = server.cpu()?;
    let began = clock::now_ns();
    for group in 0..groups {
        let gone = client.execute(EXPIRE, &format!("[{group}]"))?;
        if gone != size {
            return Err(Failure::new(format!("{gone} rows expired in place of {size}")));
        }
    }
    let meanwhile: Range<u64> = began..clock::now_ns();
    let cpu = server.cpu_since(&before)? as f64;
    let waits = others.end()?;
    let (wall, rows) = ((meanwhile.end - meanwhile.start) as f64, (groups * size) as f64);
    Ok(Seen {
        row: wall / rows / 1e3,
        row_cpu: (cpu - resting * wall).max(0.0) / rows / 1e3,
        undisturbed: waits.p99_us(&(quiet..began)),
        disturbed: waits.p99_us(&meanwhile),
    })
}

fn fill(client: &mut Client, size: u64) -> Result<()> {
    for first in (0..ROWS).step_by(usize::try_from(INSERT).unwrap_or(usize::MAX)) {
        let mut text = String::from("INSERT INTO batch (id, grp, body) VALUES ");
        for id in first..ROWS.min(first + INSERT) {
            let comma = if id > first { "," } else { "" };
            // A write to a string cannot fail. Rows of a group lie apart, as pages' fragments do.
            let _ = write!(text, "{comma}({id},{},'{:-<BODY_BYTES$}')", id % (ROWS / size), id);
        }
        client.execute(&text, "[]")?;
    }
    Ok(())
}
