//! The first fill of large values: fresh memory, which the kernel has yet to find and to clear.

use crate::cores::Cores;
use crate::failure::Result;
use crate::figures::Figures;
use crate::load::{Load, Until, Workload};
use crate::paired::{self, Bench};
use crate::protocol::Operation;
use crate::report::Report;
use crate::server::{Kind, Setup};
use crate::summary::{Summary, digits, thousands};

/// Value sizes and how many of each: 400 to 500 MB.
const SIZES: [(usize, u64); 3] = [(102_400, 4_000), (409_600, 1_200), (1_000_000, 500)];
/// Room for all of one size and more.
const MEMORY_MIB: u64 = 1_024;
/// Connections; each waits for its answer.
const CONNECTIONS: usize = 4;
/// Inserts a second by those of the peer.
const REACH: f64 = 2.0;

/// Fills fresh servers in turn and adds the table.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    // Who clears memory ahead of the worker must not be held to the worker's core.
    let extra = vec!["-I".to_owned(), "2m".to_owned()];
    let setup = Setup { cores: Cores::free(), extra, ..bench.setup(MEMORY_MIB) };
    let mut kinds = vec![Kind::Memcached];
    kinds.extend(bench.builds().iter().cloned());
    let mut rows = Vec::new();
    for (bytes, keys) in SIZES {
        let workload = Workload::fixed(Operation::Set, bytes, keys, 0);
        let mut figures: Vec<Vec<Figures>> = vec![Vec::new(); kinds.len()];
        for repetition in 0..bench.repetitions {
            for turn in 0..kinds.len() {
                let index = (turn + repetition) % kinds.len();
                let Some(server) = Bench::start(&kinds[index], &setup, report) else { continue };
                let mut load = Load::connect(&server.address, server.protocol, CONNECTIONS)?;
                let seen = Figures::measure(&server, &mut load, &workload, 1, Until::EveryKeyOnce)?;
                seen.keep(&format!("first fill {bytes} B"), &server.label, repetition, report);
                figures[index].push(seen);
            }
        }
        report.progress(&format!("first fill {bytes} B"));
        for (kind, own) in kinds.iter().zip(&figures) {
            rows.push(row(bytes, kind, own, &figures[0]));
        }
    }
    report.say("\n## First fill\n");
    report.say(&format!(
        "Each key set once on a server just started, {CONNECTIONS} connections over TCP, placed by the scheduler."
    ));
    report.table(&["first fill", "server", "inserts/s", "ratio to peer", "reach", "CPU us/insert"], &rows);
    Ok(())
}

fn row(bytes: usize, kind: &Kind, own: &[Figures], peers: &[Figures]) -> Vec<String> {
    let column = |figures: &[Figures], of: fn(&Figures) -> f64| figures.iter().map(of).collect::<Vec<f64>>();
    let rate = |figures: &Figures| figures.per_second;
    let is_peer = matches!(kind, Kind::Memcached);
    let (ratio, reach) = if is_peer || peers.is_empty() {
        (String::new(), String::new())
    } else {
        paired::at_least(&Summary::of_ratios(&column(own, rate), &column(peers, rate)), REACH)
    };
    vec![
        format!("{} B", thousands(bytes as f64)),
        kind.label().to_owned(),
        thousands(Summary::of(&column(own, rate)).median),
        ratio,
        reach,
        digits(Summary::of(&column(own, |figures| figures.server_ns / 1e3)).median),
    ]
}
