//! Server CPU of a request, for every size, pipeline and way in.
//!
//! Debian's memcached answers every pipelined get with a system call of its own, so those are compared with Redis. The
//! ratios to reach are those to memcached 1.6.45; where Redis stands for it they are divided by what Redis takes of it.

use crate::cores::Cores;
use crate::failure::Result;
use crate::load::{Blend, Load, Shape, Workload};
use crate::paired::{self, Bench, Line, Side};
use crate::protocol::Operation;
use crate::report::Report;
use crate::server::{Kind, Server, Setup};

use super::Part;

/// Connections of every line.
const CONNECTIONS: usize = 50;
/// Memory limit of each server: room for all sizes.
const MEMORY_MIB: u64 = 4_096;
/// Every key is set so many times before anything is measured; see the entry figures.
const FILLS: usize = 4;
/// Keys of a get of many.
const MANY: u64 = 100;
/// One in so many requests of the mix is a set.
const MIX: u64 = 11;

/// Value size and number of keys.
const SIZES: [(usize, u64); 4] = [(32, 1_000_000), (1_024, 100_000), (6_144, 50_000), (102_400, 4_000)];
const B32: usize = 0;
const KB1: usize = 1;
const KB6: usize = 2;
const KB100: usize = 3;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Get,
    Set,
    Mix,
    Many,
}

/// A line and the ratio to reach.
type Goal = (Ask, usize, u64, Kind, f64);

/// Lines that are measured on the same servers.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) part: Part,
    title: &'static str,
    unix: bool,
    threads: usize,
    goals: &'static [Goal],
}

/// All of them.
pub(super) const GROUPS: [Group; 3] = [
    Group {
        part: Part::Requests,
        title: "TCP, one server thread",
        unix: false,
        threads: 1,
        goals: &[
            (Ask::Get, B32, 1, Kind::Memcached, 0.84),
            (Ask::Set, B32, 1, Kind::Memcached, 0.77),
            (Ask::Get, KB1, 1, Kind::Memcached, 0.82),
            (Ask::Set, KB1, 1, Kind::Memcached, 0.77),
            (Ask::Get, B32, 32, Kind::Redis, 0.50),
            (Ask::Set, B32, 32, Kind::Redis, 0.52),
            (Ask::Mix, B32, 32, Kind::Redis, 0.50),
            (Ask::Get, KB1, 32, Kind::Redis, 0.47),
            (Ask::Set, KB1, 32, Kind::Redis, 0.50),
            (Ask::Many, B32, 1, Kind::Memcached, 0.36),
            (Ask::Many, KB1, 1, Kind::Memcached, 0.60),
            (Ask::Many, KB6, 1, Kind::Memcached, 0.85),
            (Ask::Get, KB6, 1, Kind::Memcached, 0.83),
            (Ask::Get, KB6, 32, Kind::Memcached, 0.62),
            (Ask::Set, KB6, 1, Kind::Memcached, 0.75),
            (Ask::Set, KB6, 32, Kind::Memcached, 0.55),
            (Ask::Get, KB100, 1, Kind::Memcached, 0.93),
            (Ask::Get, KB100, 32, Kind::Memcached, 0.95),
            (Ask::Set, KB100, 1, Kind::Memcached, 0.95),
            (Ask::Set, KB100, 32, Kind::Memcached, 0.80),
        ],
    },
    Group {
        part: Part::Unix,
        title: "Unix socket, one server thread",
        unix: true,
        threads: 1,
        goals: &[
            (Ask::Get, B32, 1, Kind::Memcached, 0.77),
            (Ask::Get, B32, 32, Kind::Redis, 0.53),
            (Ask::Set, B32, 1, Kind::Memcached, 0.75),
            (Ask::Set, B32, 32, Kind::Memcached, 0.34),
            (Ask::Get, KB1, 32, Kind::Redis, 0.55),
            (Ask::Set, KB1, 32, Kind::Memcached, 0.45),
        ],
    },
    Group {
        part: Part::Threads,
        title: "TCP, two server threads, placed by the scheduler; Redis has one",
        unix: false,
        threads: 2,
        goals: &[(Ask::Get, B32, 32, Kind::Redis, 0.53), (Ask::Set, B32, 32, Kind::Memcached, 0.25)],
    },
];

/// Measures the lines of a group and adds their table.
pub(super) fn run(bench: &Bench, group: &Group, only: &[String], report: &mut Report) -> Result<()> {
    let lines: Vec<(Line, &Kind, f64)> = group.goals.iter().map(|goal| line(group, goal)).collect();
    let wanted = |line: &Line| only.is_empty() || only.iter().any(|text| line.name.contains(text));
    let lines: Vec<_> = lines.into_iter().filter(|(line, ..)| wanted(line)).collect();
    if lines.is_empty() {
        return Ok(());
    }
    let setup = Setup { unix: group.unix, threads: group.threads, ..bench.setup(MEMORY_MIB) };
    let setup = if group.threads > 1 { Setup { cores: Cores::free(), ..setup } } else { setup };
    let ours = bench.start_ours(&setup, report);
    let mut peers = Vec::new();
    for kind in [Kind::Memcached, Kind::Redis] {
        if lines.iter().any(|(_, peer, _)| peer.label() == kind.label()) {
            peers.extend(Bench::start(&kind, &setup, report));
        }
    }
    for server in ours.iter().chain(&peers) {
        fill(server, &lines, report)?;
    }
    let mut rows = Vec::new();
    for (line, kind, reach) in &lines {
        let peer = peers.iter().find(|peer| peer.label == kind.label());
        let servers: Vec<&Server> = peer.into_iter().chain(&ours).collect();
        let side = Side { servers: &servers, with_peer: peer.is_some(), reach: *reach };
        rows.extend(paired::measure(bench, line, &side, report)?);
    }
    report.say(&format!("\n## Server CPU of a request: {}\n", group.title));
    report.say(&format!(
        "{CONNECTIONS} connections, 16 B keys, all hits. Of a get of many keys each counts as an operation."
    ));
    report.table(&paired::HEAD, &rows);
    Ok(())
}

fn line<'g>(group: &Group, goal: &'g Goal) -> (Line, &'g Kind, f64) {
    let (ask, size, depth, kind, reach) = goal;
    let (value_bytes, keys) = SIZES[*size];
    let (operation, blend) = match ask {
        Ask::Get => (Operation::Get, Blend::Alike),
        Ask::Set => (Operation::Set, Blend::Alike),
        Ask::Mix => (Operation::Get, Blend::SetIn(MIX)),
        Ask::Many => (Operation::Get, Blend::Together(MANY)),
    };
    let workload = Workload { blend, ..Workload::fixed(operation, value_bytes, keys, *size as u64) };
    let shape = Shape { connections: CONNECTIONS, depth: *depth };
    (Line::of(workload, shape, group.unix), kind, *reach)
}

/// Fills a server with the sizes that the lines use.
fn fill(server: &Server, lines: &[(Line, &Kind, f64)], report: &Report) -> Result<()> {
    report.progress(&format!("fill {}: {}", server.label, server.command));
    let mut load = Load::connect(server.nearest(), server.protocol, 4)?;
    for _ in 0..FILLS {
        for space in 0..SIZES.len() as u64 {
            if let Some((line, ..)) = lines.iter().find(|(line, ..)| line.workload.space == space) {
                load.fill(&line.workload)?;
            }
        }
    }
    Ok(())
}
