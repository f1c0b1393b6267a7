//! CPU of the server for one request: unpipelined beside memcached, pipelined beside Redis.

use crate::failure::Result;
use crate::figures::Figures;
use crate::load::{Load, Shape, Sizes, Until, Workload};
use crate::protocol::Operation;
use crate::report::Report;
use crate::server::{Kind, Server};
use crate::summary::{Summary, digits, thousands};

use super::Bench;

/// Connections of every line.
const CONNECTIONS: usize = 50;
/// Memory limit of each server.
const MEMORY_MIB: u64 = 1024;

/// Every key is set so many times before anything is measured: a first fill is mostly the kernel's work of finding and
/// clearing pages, and a server that writes a log has its garbage collection running only then.
const FILLS: usize = 4;

/// Value size and number of keys.
const SIZES: [(usize, u64); 2] = [(32, 1_000_000), (1024, 100_000)];

/// What is compared: the peer, the pipeline, and the ratio to reach.
const PAIRINGS: [(Kind, u64, f64); 2] = [(Kind::Memcached, 1, 1.0), (Kind::Redis, 32, 0.9)];

/// A server with its open connections.
struct Subject<'s> {
    server: &'s Server,
    load: Load,
    figures: Vec<Figures>,
}

/// One line of the experiment.
#[derive(Clone, Debug)]
struct Line {
    workload: Workload,
    shape: Shape,
}

impl Line {
    fn name(&self) -> String {
        let Workload { operation, sizes: Sizes::Fixed(bytes) | Sizes::Geometric(bytes), .. } = self.workload;
        format!("{} {bytes} B pipeline {}", operation.word(), self.shape.depth)
    }
}

/// Measures every line and adds the table.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let ours = bench.start_ours(MEMORY_MIB, report);
    for server in &ours {
        fill(server, report)?;
    }
    let mut rows = Vec::new();
    for (kind, depth, reach) in &PAIRINGS {
        let peer = bench.start(kind, MEMORY_MIB, report);
        if let Some(peer) = &peer {
            fill(peer, report)?;
        }
        let servers: Vec<&Server> = peer.iter().chain(&ours).collect();
        for line in lines(*depth) {
            rows.extend(measure(bench, &line, &servers, peer.is_some(), *reach, report)?);
        }
    }
    report.say("\n## Server CPU of a request\n");
    report.say(&format!("{CONNECTIONS} connections over TCP, one server thread, 16 B keys, all hits."));
    let head = [
        "line",
        "server",
        "CPU ns/op",
        "ratio to peer",
        "reach",
        "ops/s",
        "p50 us",
        "p99 us",
        "load CPU ns/op",
    ];
    report.table(&head, &rows);
    Ok(())
}

fn workload(operation: Operation, size: usize) -> Workload {
    let (value_bytes, keys) = SIZES[size];
    Workload::fixed(operation, value_bytes, keys, size as u64)
}

fn lines(depth: u64) -> Vec<Line> {
    let shape = Shape { connections: CONNECTIONS, depth };
    let pairs =
        [Operation::Get, Operation::Set].into_iter().flat_map(|operation| [(operation, 0), (operation, 1)]);
    pairs.map(|(operation, size)| Line { workload: workload(operation, size), shape }).collect()
}

fn fill(server: &Server, report: &Report) -> Result<()> {
    report.progress(&format!("fill {}: {}", server.label, server.command));
    let mut load = Load::connect(&server.address, server.protocol, 4)?;
    for _ in 0..FILLS {
        for size in 0..SIZES.len() {
            load.fill(&workload(Operation::Set, size))?;
        }
    }
    Ok(())
}

/// One line on all servers, interleaved; the order changes from repetition to repetition.
fn measure(
    bench: &Bench,
    line: &Line,
    servers: &[&Server],
    with_peer: bool,
    reach: f64,
    report: &mut Report,
) -> Result<Vec<Vec<String>>> {
    let mut subjects = Vec::new();
    for &server in servers {
        let load = Load::connect(&server.address, server.protocol, line.shape.connections)?;
        subjects.push(Subject { server, load, figures: Vec::new() });
    }
    for repetition in 0..bench.repetitions {
        for turn in 0..subjects.len() {
            let index = (turn + repetition) % subjects.len();
            if let Some(subject) = subjects.get_mut(index) {
                let figures = subject.measure(line, bench.slice_ns)?;
                figures.keep(&line.name(), &subject.server.label, repetition, report);
                subject.figures.push(figures);
            }
        }
    }
    report.progress(&line.name());
    let peer = if with_peer { subjects.first() } else { None };
    Ok(subjects
        .iter()
        .enumerate()
        .map(|(index, subject)| {
            let peer = peer.filter(|_| index > 0);
            row(line, subject, peer, reach)
        })
        .collect())
}

impl Subject<'_> {
    fn measure(&mut self, line: &Line, slice_ns: u64) -> Result<Figures> {
        let until = Until::Elapsed(slice_ns);
        Figures::measure(self.server, &mut self.load, &line.workload, line.shape.depth, until)
    }

    fn summary(&self, figure: impl Fn(&Figures) -> f64) -> Summary {
        Summary::of(&self.column(figure))
    }

    fn column(&self, figure: impl Fn(&Figures) -> f64) -> Vec<f64> {
        self.figures.iter().map(figure).collect()
    }
}

fn row(line: &Line, subject: &Subject<'_>, peer: Option<&Subject<'_>>, reach: f64) -> Vec<String> {
    let (ratio, reach) = match peer {
        Some(peer) => {
            let ours = subject.column(|figures| figures.server_ns);
            let ratio = Summary::of_ratios(&ours, &peer.column(|figures| figures.server_ns));
            let verdict = if ratio.median <= reach { "holds" } else { "missed" };
            (
                format!("{:.2} ({:.2}-{:.2})", ratio.median, ratio.low, ratio.high),
                format!("<= {reach:.2} {verdict}"),
            )
        }
        None => (String::new(), String::new()),
    };
    vec![
        line.name(),
        subject.server.label.clone(),
        digits(subject.summary(|figures| figures.server_ns).median),
        ratio,
        reach,
        thousands(subject.summary(|figures| figures.per_second).median),
        digits(subject.summary(|figures| figures.p50_us).median),
        digits(subject.summary(|figures| figures.p99_us).median),
        digits(subject.summary(|figures| figures.load_ns).median),
    ]
}
