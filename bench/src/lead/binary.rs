//! Server CPU of a request in memcached's binary protocol, beside memcached's binary protocol and our own text.

use crate::failure::Result;
use crate::load::{Load, Shape, Workload};
use crate::paired::{self, Bench, Line, Side};
use crate::protocol::{Operation, Protocol};
use crate::report::Report;
use crate::server::{Kind, Server};

/// Connections of every line.
const CONNECTIONS: usize = 50;
/// Memory limit of each server: room for both sizes.
const MEMORY_MIB: u64 = 2_048;
/// Every key is set so many times before anything is measured; see the entry figures.
const FILLS: usize = 4;
/// Value size and number of keys.
const SIZES: [(usize, u64); 2] = [(32, 1_000_000), (1_024, 100_000)];
/// Requests sent before the first answer is waited for.
const DEPTHS: [u64; 2] = [1, 32];
/// The ratio to memcached's binary protocol, and to our text protocol.
const REACHES: [f64; 2] = [0.9, 1.0];

/// Measures all lines and adds a table for each peer.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let setup = bench.setup(MEMORY_MIB);
    let Some(memcached) = Bench::start(&Kind::Memcached, &setup, report) else { return Ok(()) };
    let ours = bench.start_ours(&setup, report);
    for server in ours.iter().chain([&memcached]) {
        report.progress(&format!("fill {}: {}", server.label, server.command));
        let mut load = Load::connect(server.nearest(), server.protocol, 4)?;
        for _ in 0..FILLS {
            for (space, (bytes, keys)) in (0..).zip(SIZES) {
                load.fill(&Workload::fixed(Operation::Set, bytes, keys, space))?;
            }
        }
    }
    let theirs = in_binary(&memcached)?;
    for server in &ours {
        let binary = in_binary(server)?;
        for (peer, reach) in [&theirs, server].into_iter().zip(REACHES) {
            let mut rows = Vec::new();
            for line in lines() {
                let side = Side { servers: &[peer, &binary], with_peer: true, reach };
                rows.extend(paired::measure(bench, &line, &side, report)?);
            }
            report.say(&format!("\n## Binary protocol beside {}\n", peer.label));
            report
                .say(&format!("{CONNECTIONS} connections over TCP, one server thread, 16 B keys, all hits."));
            report.table(&paired::HEAD, &rows);
        }
    }
    Ok(())
}

/// The same server, spoken to in the binary protocol.
fn in_binary(server: &Server) -> Result<Server> {
    let mut binary = Server::running(&server.address, Protocol::Binary)?;
    binary.label = format!("{} binary", server.label);
    Ok(binary)
}

fn lines() -> impl Iterator<Item = Line> {
    let each = |(space, (bytes, keys)): (u64, (usize, u64))| {
        DEPTHS.into_iter().flat_map(move |depth| {
            [Operation::Get, Operation::Set].map(|operation| {
                let shape = Shape { connections: CONNECTIONS, depth };
                Line::of(Workload::fixed(operation, bytes, keys, space), shape, false)
            })
        })
    };
    (0..).zip(SIZES).flat_map(each)
}
