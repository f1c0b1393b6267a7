//! Deletion of everything: how long whoever asks for it waits, and what the server works for it, by the number of rows.

use crate::client::Client;
use crate::clock;
use crate::failure::Result;
use crate::load::{Load, Workload};
use crate::pages;
use crate::paired::Bench;
use crate::protocol::Operation;
use crate::report::{Figure, Report};
use crate::server::{Kind, Server};
use crate::summary::{Summary, digits};

/// Numbers of items that are flushed.
const ITEMS: [u64; 3] = [10_000, 100_000, 1_000_000];
/// Bytes of a value.
const VALUE_BYTES: usize = 100;
/// Room for all of them.
const MEMORY_MIB: u64 = 1_024;
/// Milliseconds that it may take, whatever the number.
const REACH_MS: f64 = 0.5;
/// Statements that empty a table of the paper's data set.
const STATEMENTS: [&str; 2] = ["TRUNCATE fragments", "DELETE FROM fragments"];

/// Flushes and empties, and adds the table.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let setup = bench.setup(MEMORY_MIB);
    let ours = bench.start_ours(&setup, report);
    let peer = Bench::start(&Kind::Memcached, &setup, report);
    let mut rows = Vec::new();
    for items in ITEMS {
        for server in peer.iter().chain(&ours) {
            rows.push(flush(bench, server, items, report)?);
        }
    }
    for server in &ours {
        for statement in STATEMENTS {
            rows.push(empty(bench, server, statement, report)?);
        }
    }
    report.say("\n## Deletion of everything\n");
    report.say("From the request to its answer, one client, TCP; and the server's CPU until then.");
    report.table(&["delete", "server", "wall ms (quartiles)", "reach", "CPU ms"], &rows);
    Ok(())
}

fn flush(bench: &Bench, server: &Server, items: u64, report: &mut Report) -> Result<Vec<String>> {
    let workload = Workload::fixed(Operation::Set, VALUE_BYTES, items, items);
    let mut client = Client::connect(&server.address)?;
    let name = format!("flush_all of {items} items");
    let mut times = Times::default();
    for repetition in 0..bench.repetitions {
        Load::connect(&server.address, server.protocol, 4)?.fill(&workload)?;
        times.note(&name, server, repetition, report, || {
            client.out.extend_from_slice(b"flush_all\r\n");
            client.send()?;
            client.expect(b"OK")
        })?;
    }
    Ok(times.row(name, server))
}

fn empty(bench: &Bench, server: &Server, statement: &str, report: &mut Report) -> Result<Vec<String>> {
    let mut client = Client::connect(&server.address)?;
    for definition in pages::DEFINITIONS {
        client.execute(definition, "[]")?;
    }
    let name = format!("{statement} of {} rows, two indexes", pages::ROWS);
    let mut times = Times::default();
    for repetition in 0..bench.repetitions {
        for insert in pages::inserts(&pages::fragments()) {
            client.execute(&insert, "[]")?;
        }
        times.note(&name, server, repetition, report, || client.execute(statement, "[]").map(drop))?;
    }
    client.execute(pages::DROP, "[]")?;
    Ok(times.row(name, server))
}

/// Milliseconds of each repetition.
#[derive(Debug, Default)]
struct Times {
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

impl Times {
    fn note(
        &mut self,
        line: &str,
        server: &Server,
        repetition: usize,
        report: &mut Report,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let before = server.cpu()?;
        let began = clock::now_ns();
        work()?;
        let wall = (clock::now_ns() - began) as f64 / 1e6;
        let cpu = server.cpu_since(&before)? as f64 / 1e6;
        for (metric, value) in [("wall_ms", wall), ("cpu_ms", cpu)] {
            report.figure(&Figure { line, server: &server.label, repetition, metric, value });
        }
        self.wall.push(wall);
        self.cpu.push(cpu);
        Ok(())
    }

    fn row(&self, name: String, server: &Server) -> Vec<String> {
        let (wall, cpu) = (Summary::of(&self.wall), Summary::of(&self.cpu));
        let verdict = if wall.median <= REACH_MS { "holds" } else { "missed" };
        let is_peer = server.label == Kind::Memcached.label();
        vec![
            name,
            server.label.clone(),
            format!("{} ({}-{})", digits(wall.median), digits(wall.low), digits(wall.high)),
            if is_peer { String::new() } else { format!("<= {REACH_MS} {verdict}") },
            digits(cpu.median),
        ]
    }
}
