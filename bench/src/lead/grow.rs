//! Waits of small sets while a table grows: memory is found and cleared beside them, and the index grows.

use crate::cores::Cores;
use crate::failure::Result;
use crate::figures::Figures;
use crate::load::{Load, Workload};
use crate::paired::{self, Bench};
use crate::protocol::Operation;
use crate::report::Report;
use crate::server::{Kind, Setup};
use crate::summary::{Summary, digits, thousands};

/// Value sizes, how many rows are there before and how many are set at the rate: rows of a gibibyte together.
const SIZES: [(usize, u64, u64); 2] = [(32, 9_000_000, 1_000_000), (1_024, 0, 960_000)];
/// Room for all of one size and more: what grows is not to be evicted.
const MEMORY_MIB: u64 = 3_072;
/// Connections that a request finds one of free; each waits for its answer.
const CONNECTIONS: usize = 50;
/// Sets a second: a quarter of what one thread answers, so that a wait is the server's and not the queue's.
const PER_SECOND: u64 = 20_000;
/// Repetitions at most: each fills a server for most of a minute.
const REPETITIONS_MAX: usize = 2;
/// The p99.9 by that of the peer.
const REACH: f64 = 1.5;

/// Fills fresh servers in turn and adds the table.
pub(super) fn run(bench: &Bench, lines: &[String], report: &mut Report) -> Result<()> {
    // Who readies memory must not be held to the worker's core, and takes turns with the load for the other one.
    let setup = Setup { cores: Cores::free(), ..bench.setup(MEMORY_MIB) };
    Cores::release()?;
    let mut kinds = vec![Kind::Memcached];
    kinds.extend(bench.builds().iter().cloned());
    let mut rows = Vec::new();
    for (bytes, filled, keys) in SIZES {
        let name = format!("grow {bytes} B");
        if !lines.is_empty() && !lines.iter().any(|text| name.contains(text)) {
            continue;
        }
        let workload = Workload::fixed(Operation::Set, bytes, keys, 0);
        let before = Workload::fixed(Operation::Set, bytes, filled, 1);
        let mut figures: Vec<Vec<Figures>> = vec![Vec::new(); kinds.len()];
        for repetition in 0..bench.repetitions.min(REPETITIONS_MAX) {
            for turn in 0..kinds.len() {
                let index = (turn + repetition) % kinds.len();
                let Some(server) = Bench::start(&kinds[index], &setup, report) else { continue };
                let mut load = Load::connect(&server.address, server.protocol, CONNECTIONS)?;
                load.fill(&before)?;
                let seen = Figures::measure_at(&server, &mut load, &workload, PER_SECOND)?;
                seen.keep(&name, &server.label, repetition, report);
                figures[index].push(seen);
            }
        }
        report.progress(&name);
        rows.extend(kinds.iter().zip(&figures).map(|(kind, own)| row(&name, kind, own, &figures[0])));
    }
    bench.cores.pin_load()?;
    report.say("\n## Growth\n");
    report.say(&format!(
        "Each key set once on a fresh server (before those of 32 B nine times as many in a pipeline), {} a second \
         over {CONNECTIONS} connections (TCP), placed by the scheduler; a set counts from when it is due.",
        thousands(PER_SECOND as f64)
    ));
    let head = ["growth", "server", "p50 us", "p99 us", "p99.9 us", "ratio to peer", "reach", "longest us"];
    report.table(&[&head[..], &["CPU ns/set"]].concat(), &rows);
    Ok(())
}

fn row(name: &str, kind: &Kind, own: &[Figures], peers: &[Figures]) -> Vec<String> {
    let column = |figures: &[Figures], of: fn(&Figures) -> f64| figures.iter().map(of).collect::<Vec<f64>>();
    let middle = |of: fn(&Figures) -> f64| digits(Summary::of(&column(own, of)).median);
    let late = |figures: &Figures| figures.p999_us;
    let (ratio, reach) = if matches!(kind, Kind::Memcached) || peers.is_empty() {
        (String::new(), String::new())
    } else {
        paired::at_most(&Summary::of_ratios(&column(own, late), &column(peers, late)), REACH)
    };
    vec![
        name.to_owned(),
        kind.label().to_owned(),
        middle(|figures| figures.p50_us),
        middle(|figures| figures.p99_us),
        middle(late),
        ratio,
        reach,
        middle(|figures| figures.longest_us),
        middle(|figures| figures.server_ns),
    ]
}
