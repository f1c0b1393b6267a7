//! One and more processes that read at once.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::clock;
use crate::cores::Cores;
use crate::failure::{Context, Failure, Result};
use crate::plot::{Axis, Chart, Series};
use crate::report::{Figure, Report};
use crate::summary::{Summary, digits, thousands};

use super::readers::{Lmdb, Memcached, Ours, Peer};
use super::{Candidate, Extent};

/// How long a process reads.
const SLICE: Duration = Duration::from_millis(500);
/// Bytes of the row that all read.
const BYTES: usize = 1_000;
/// Reads between two looks at the clock.
const GLANCE: u64 = 1_000;

/// What one process read.
#[derive(Clone, Copy, Debug)]
struct Reads {
    /// In a second of its own processor time.
    per_cpu_second: f64,
    /// In a second.
    per_second: f64,
}

/// The child: reads one row for a while and prints what it read.
pub(super) fn read_for_another(peer: &str) -> Result<()> {
    Cores::release()?;
    let (name, path) = peer.split_once(':').ok_or_else(|| Failure::new("write PEER:PATH"))?;
    match name {
        "sqlcached" => read(&mut Ours::at(Path::new(path))?),
        "lmdb" => read(&mut Lmdb::at(path.into())?.reader()),
        _ => read(&mut Memcached::at(path.into())?),
    }
}

fn read(peer: &mut dyn Peer) -> Result<()> {
    let (mut out, mut reads) = (Vec::new(), 0_u64);
    let (began, began_cpu) = (clock::now_ns(), clock::thread_cpu_ns());
    while u128::from(clock::now_ns() - began) < SLICE.as_nanos() {
        for _ in 0..GLANCE {
            peer.read(0, &mut out)?;
        }
        reads += GLANCE;
    }
    println!("{reads} {} {}", clock::thread_cpu_ns() - began_cpu, clock::now_ns() - began);
    Ok(())
}

/// Starts so many readers at once; the sums of what they read.
fn readers(peer: &str, count: usize) -> Result<Reads> {
    let program = std::env::current_exe()?;
    let start = || {
        let mut command = Command::new(&program);
        command.args(["shared", "--read-at", peer]).stdout(Stdio::piped());
        command.spawn().context(|| "a reader".into())
    };
    let children: Vec<Child> = (0..count).map(|_| start()).collect::<Result<_>>()?;
    let mut sum = Reads { per_cpu_second: 0.0, per_second: 0.0 };
    for child in children {
        let text = String::from_utf8_lossy(&child.wait_with_output()?.stdout).into_owned();
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [reads, cpu_ns, wall_ns] = numbers[..] else {
            return Err(Failure::new(format!("a reader said: {text}")));
        };
        sum.per_cpu_second += reads * 1e9 / cpu_ns;
        sum.per_second += reads * 1e9 / wall_ns;
    }
    Ok(sum)
}

/// One, two, four processes, as many as are asked for.
pub(super) fn sweep(of: &[Candidate], extent: Extent<'_>, report: &mut Report) -> Result<()> {
    let (ours, lmdb) = (Ours::each(of, extent.folder, 1, BYTES)?, Lmdb::fill(extent.folder, 1, BYTES)?);
    let memcached = Memcached::start(1, BYTES)?;
    let at = |name: &str, path: PathBuf| format!("{name}:{}", path.display());
    let mut peers: Vec<(String, String)> =
        ours.iter().map(|ours| (ours.label(), at("sqlcached", ours.client.socket().to_owned()))).collect();
    peers.push(("LMDB".into(), at("lmdb", lmdb.directory.clone())));
    peers.push(("memcached, Unix socket".into(), at("memcached", memcached.socket.clone())));
    report.progress("processes that read at once");
    let counts: Vec<usize> = std::iter::successors(Some(1), |count| Some(count * 2))
        .take_while(|&n| n <= extent.processes)
        .collect();
    let mut seen = vec![vec![Vec::new(); counts.len()]; peers.len()];
    for repetition in 0..extent.slices {
        for ((label, peer), seen) in peers.iter().zip(&mut seen) {
            for (&count, seen) in counts.iter().zip(seen) {
                let reads = readers(peer, count)?;
                seen.push(reads);
                let line = format!("{count} processes read");
                let rates = [("per_cpu_second", reads.per_cpu_second), ("per_second", reads.per_second)];
                for (metric, value) in rates {
                    report.figure(&Figure { line: &line, server: label, repetition, metric, value });
                }
            }
        }
    }
    let labels: Vec<&str> = peers.iter().map(|(label, _)| label.as_str()).collect();
    tell(&labels, &counts, &seen, report)
}

fn tell(labels: &[&str], counts: &[usize], seen: &[Vec<Vec<Reads>>], report: &mut Report) -> Result<()> {
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for (label, seen) in labels.iter().zip(seen) {
        let mut points = Vec::new();
        let per_cpu = |reads: &[Reads]| reads.iter().map(|one| one.per_cpu_second).collect::<Vec<_>>();
        let one = seen.first().map(|reads| per_cpu(reads)).unwrap_or_default();
        for (&count, reads) in counts.iter().zip(seen) {
            let rate = Summary::of(&reads.iter().map(|one| one.per_second).collect::<Vec<_>>());
            let by_one = Summary::of_ratios(&per_cpu(reads), &one);
            let by_one =
                format!("{} ({}-{})", digits(by_one.median), digits(by_one.low), digits(by_one.high));
            let cpu_rate = thousands(Summary::of(&per_cpu(reads)).median);
            rows.push(vec![count.to_string(), (*label).to_owned(), thousands(rate.median), cpu_rate, by_one]);
            points.push((count as f64, rate));
        }
        series.push(Series { label: (*label).to_owned(), points });
    }
    let head = ["processes", "who", "reads/s", "in a CPU second of each, together", "by one process"];
    report.table(&head, &rows);
    let title = format!("Processes that read one row of {BYTES} B at once");
    let (x, y) = (Axis::linear("processes"), Axis::logarithmic("reads a second, together"));
    report.picture("shared-processes", Chart { title, x, y, series, walls: Vec::new() }.svg()?);
    Ok(())
}
