//! Key-value reads and writes whose value sizes are geometrically distributed: many short values, few long ones.

use crate::failure::Result;
use crate::load::{Sizes, Until, Workload};
use crate::plot::Axis;
use crate::protocol::Operation;
use crate::report::Report;
use crate::server::Kind;

use super::faces::{Point, Sweep, faces, measure};
use super::lab::Lab;

/// Means of the distributions.
const MEANS: [u32; 5] = [64, 256, 1_024, 4_096, 16_384];
/// The ones of a quick run.
const FEW_MEANS: [u32; 3] = [64, 1_024, 16_384];
/// Bytes of all values of one mean, at most.
const BYTES_MAX: u64 = 128 << 20;
/// Keys of one mean, at most.
const KEYS_MAX: u64 = 100_000;
/// Memory limit of each cache: all means lie in it together.
const MEMORY_MIB: u64 = 2_048;
/// Clients, each with one request on its way.
const CONNECTIONS: usize = 50;
/// Every key is written so often before anything is measured: a first fill is the kernel clearing pages.
const FILLS: usize = 2;

/// Measures writes and reads at each mean.
pub(super) fn run(lab: &Lab, report: &mut Report) -> Result<()> {
    let peers = [Kind::Memcached, Kind::Redis];
    let servers = lab.start_all(&peers, &lab.setup(MEMORY_MIB), report);
    report.say(&format!(
        "\n{CONNECTIONS} clients over TCP, one request each at a time, keys of 16 B drawn evenly from up to {KEYS_MAX}, all \
         reads hit. SQL: prepared point statements through PostgreSQL's protocol."
    ));
    let mut faces = faces(&servers);
    for face in &faces {
        face.define(true)?;
    }
    let axis = || Axis::logarithmic("mean of the value sizes, B");
    let (mut writes, mut reads) = (Sweep::new(axis()), Sweep::new(axis()));
    for &mean in lab.effort.of(&FEW_MEANS[..], &MEANS, &MEANS) {
        let workload = workload(mean);
        for face in &faces {
            face.fill(&workload, FILLS)?;
        }
        let points = |_| {
            let point = |operation: Operation| Point {
                line: format!("{} mean {mean} B", operation.word()),
                workload: Workload { operation, ..workload.clone() },
                connections: CONNECTIONS,
                depth: 1,
                until: Until::Elapsed(lab.slice_ns),
            };
            vec![point(Operation::Set), point(Operation::Get)]
        };
        let mut outcomes = measure(lab.repetitions, &mut faces, report, points)?.into_iter();
        writes.push(f64::from(mean), outcomes.next().unwrap_or_default());
        reads.push(f64::from(mean), outcomes.next().unwrap_or_default());
    }
    for (name, sweep) in [("writes", &writes), ("reads", &reads)] {
        report.say(&format!("\n### Geometric {name}\n"));
        sweep.table(Kind::Memcached.label(), report);
        let cpu = Axis::logarithmic("server CPU, ns an operation");
        let title = format!("{name}: server CPU of an operation");
        report.picture(&format!("1-{name}-cpu"), sweep.chart(&title, cpu, |figures| figures.server_ns)?);
        let rate = Axis::logarithmic("operations a second");
        let title = format!("{name} a second, {CONNECTIONS} clients");
        report.picture(&format!("1-{name}-rate"), sweep.chart(&title, rate, |figures| figures.per_second)?);
    }
    Ok(())
}

/// As many keys as the bytes allow.
fn workload(mean: u32) -> Workload {
    let keys = (BYTES_MAX / u64::from(mean)).min(KEYS_MAX);
    let sizes = Sizes::Geometric(usize::try_from(mean).unwrap_or(usize::MAX));
    Workload { sizes, ..Workload::fixed(Operation::Set, 0, keys, u64::from(mean)) }
}
