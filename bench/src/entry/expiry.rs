//! Expiry of one page and of one user of the paper's data set.

use crate::client::Client;
use crate::clock;
use crate::failure::{Failure, Result};
use crate::pages::{self, Fragment};
use crate::report::{Figure, Report};
use crate::server::Server;
use crate::summary::{Summary, digits};

use super::Bench;

/// Expiries timed in one repetition.
const PAGES_TIMED: u64 = 200;
/// Users are thirty times larger.
const USERS_TIMED: u64 = 20;
/// Room for the data set.
const MEMORY_MIB: u64 = 256;

/// What is expired, and what the engine part may take.
const LINES: [(&str, &str, u64, f64); 2] = [
    ("expire one page (3.3 rows)", pages::EXPIRE_PAGE, PAGES_TIMED, 5.0),
    ("expire one user (100 rows)", pages::EXPIRE_USER, USERS_TIMED, 60.0),
];

/// Round trips on each of our servers.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let servers = bench.start_ours(MEMORY_MIB, report);
    let mut rows = Vec::new();
    for server in &servers {
        round_trips(bench, server, &mut rows, report)?;
    }
    report.say("\n## Expiry of one page and one user\n");
    report.say(&format!(
        "{} rows, {} pages, {} users, both indexed. Round trip: `sqlp` over the Unix socket, one client.",
        pages::ROWS,
        pages::PAGES,
        pages::USERS
    ));
    report.table(&["line", "server", "median us", "quartiles", "server CPU us", "reach"], &rows);
    Ok(())
}

fn round_trips(
    bench: &Bench,
    server: &Server,
    rows: &mut Vec<Vec<String>>,
    report: &mut Report,
) -> Result<()> {
    let mut client = Client::connect(server.nearest())?;
    let all = pages::fragments();
    for definition in pages::DEFINITIONS {
        client.execute(definition, "[]")?;
    }
    refill(&mut client, &all)?;
    for (line, statement, count, _) in LINES {
        let mut wall = Vec::new();
        let mut cpu = Vec::new();
        for repetition in 0..bench.repetitions as u64 {
            let (repetition_wall, repetition_cpu) =
                expire(&mut client, server, &all, statement, count, repetition)?;
            let index = usize::try_from(repetition).unwrap_or(0);
            for (metric, value) in [("wall_us", repetition_wall), ("server_cpu_us", repetition_cpu)] {
                report.figure(&Figure { line, server: &server.label, repetition: index, metric, value });
            }
            wall.push(repetition_wall);
            cpu.push(repetition_cpu);
        }
        let summary = Summary::of(&wall);
        rows.push(vec![
            format!("{line}, round trip"),
            server.label.clone(),
            digits(summary.median),
            format!("{}-{}", digits(summary.low), digits(summary.high)),
            digits(Summary::of(&cpu).median),
            String::new(),
        ]);
    }
    client.execute(pages::DROP, "[]")?;
    Ok(())
}

/// Expires `count` pages or users one after the other and brings their rows back: microseconds of one.
fn expire(
    client: &mut Client,
    server: &Server,
    all: &[Fragment],
    statement: &str,
    count: u64,
    repetition: u64,
) -> Result<(f64, f64)> {
    let of_page = statement == pages::EXPIRE_PAGE;
    let first = repetition * count;
    let range = first..first + count;
    let belongs = |fragment: &Fragment| range.contains(if of_page { &fragment.page } else { &fragment.user });
    let gone = pages::chosen(all, belongs);
    let cpu = server.cpu_ns()?;
    let began = clock::now_ns();
    let mut affected = 0;
    for number in range.clone() {
        affected += client.execute(statement, &format!("[{number}]"))?;
    }
    let wall = clock::now_ns() - began;
    let cpu = server.cpu_ns()? - cpu;
    if affected != gone.len() as u64 {
        return Err(Failure::new(format!("{statement} removed {affected} rows in place of {}", gone.len())));
    }
    refill(client, &gone)?;
    let each = |ns: u64| ns as f64 / count as f64 / 1e3;
    Ok((each(wall), each(cpu)))
}

fn refill(client: &mut Client, rows: &[Fragment]) -> Result<()> {
    for statement in pages::inserts(rows) {
        client.execute(&statement, "[]")?;
    }
    Ok(())
}
