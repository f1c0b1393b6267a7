//! CPU of the server for one request: unpipelined beside memcached, pipelined beside Redis.

use crate::failure::Result;
use crate::load::{Load, Shape, Workload};
use crate::paired::{self, Bench, Line, Side};
use crate::protocol::Operation;
use crate::report::Report;
use crate::server::{Kind, Server};

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

/// Measures every line and adds the table.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let setup = bench.setup(MEMORY_MIB);
    let ours = bench.start_ours(&setup, report);
    for server in &ours {
        fill(server, report)?;
    }
    let mut rows = Vec::new();
    for (kind, depth, reach) in &PAIRINGS {
        let peer = Bench::start(kind, &setup, report);
        if let Some(peer) = &peer {
            fill(peer, report)?;
        }
        let servers: Vec<&Server> = peer.iter().chain(&ours).collect();
        for line in lines(*depth) {
            let side = Side { servers: &servers, with_peer: peer.is_some(), reach: *reach };
            rows.extend(paired::measure(bench, &line, &side, report)?);
        }
    }
    report.say("\n## Server CPU of a request\n");
    report.say(&format!("{CONNECTIONS} connections over TCP, one server thread, 16 B keys, all hits."));
    report.table(&paired::HEAD, &rows);
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
    pairs.map(|(operation, size)| Line::of(workload(operation, size), shape, false)).collect()
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
