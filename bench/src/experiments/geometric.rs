//! Key-value reads and writes whose value sizes are geometrically distributed: many short values, few long ones.

use sqlcached_client::{Client, Lookup, Options as ClientOptions};

use crate::clock;
use crate::failure::{Failure, Result};
use crate::figures::Figures;
use crate::histogram::Histogram;
use crate::load::{Sizes, Until, Workload, key};
use crate::plot::Axis;
use crate::protocol::{Operation, Protocol};
use crate::report::Report;
use crate::server::{Kind, Server};

use super::faces::{Outcome, Point, Sweep, faces, measure};
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
/// Reads of shared memory of which one is timed.
const READS_TOGETHER: u64 = 100;
/// Every key is written so often before anything is measured: a first fill is the kernel clearing pages.
const FILLS: usize = 2;

/// Measures writes and reads at each mean.
pub(super) fn run(lab: &Lab, report: &mut Report) -> Result<()> {
    let peers = [Kind::Memcached, Kind::Redis];
    let servers = lab.start_all(&peers, &lab.setup(MEMORY_MIB), report);
    report.say(&format!(
        "\n{CONNECTIONS} clients over TCP, one request each at a time, keys of 16 B drawn evenly from up to {KEYS_MAX}, all \
         reads hit. SQL: prepared point statements through PostgreSQL's protocol. Shared memory: one process beside the \
         daemon, which takes no part; the processor time shown is the reader's own."
    ));
    let shared = share(&servers);
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
        let mut read = outcomes.next().unwrap_or_default();
        for (label, client) in &shared {
            let mut outcome = Outcome { label: label.clone(), figures: Vec::new() };
            for repetition in 0..lab.repetitions {
                let figures = read_shared(client, &workload, lab.slice_ns)?;
                figures.keep(&format!("get mean {mean} B"), label, repetition, report);
                outcome.figures.push(figures);
            }
            read.push(outcome);
        }
        reads.push(f64::from(mean), read);
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

/// Opens the shared memory of the servers that have some: their tables move there before they are filled.
fn share(servers: &[Server]) -> Vec<(String, Client)> {
    let open = |server: &Server| {
        let client = Client::connect(&ClientOptions::new(server.socket.as_ref()?.to_string())).ok()?;
        client.sql("ALTER TABLE memcached SET (shared_memory = on)", &[]).ok()?;
        Some((format!("{} shared memory", server.label), client))
    };
    let ours = servers.iter().filter(|server| server.protocol == Protocol::Memcached);
    ours.filter_map(open).collect()
}

/// Reads keys at random for a while. Nobody serves these reads, so the reader's processor time is all there is. One
/// read of a batch is timed: a look at the clock takes as long as a read.
fn read_shared(client: &Client, workload: &Workload, slice_ns: u64) -> Result<Figures> {
    let table = client.table("memcached")?;
    let (mut random, mut out, mut reads) = (fastrand::Rng::new(), Vec::new(), 0_u64);
    let mut read = || {
        out.clear();
        let key = key(workload.space, random.u64(..workload.keys));
        match client.get_into(&table, &key, &mut out)? {
            Lookup::Miss => Err(Failure::new("a row that was put is not in shared memory")),
            _ => Ok(()),
        }
    };
    let mut latency = Histogram::default();
    let (began, began_cpu) = (clock::now_ns(), clock::thread_cpu_ns());
    let mut now = began;
    while now - began < slice_ns {
        (1..READS_TOGETHER).try_for_each(|_| read())?;
        let before = clock::now_ns();
        read()?;
        now = clock::now_ns();
        latency.record(now - before);
        reads += READS_TOGETHER;
    }
    let cpu_ns = (clock::thread_cpu_ns() - began_cpu) as f64 / reads as f64;
    Ok(Figures {
        server_ns: cpu_ns,
        load_ns: cpu_ns,
        per_second: reads as f64 / clock::seconds(now - began),
        wall_ms: (now - began) as f64 / 1e6,
        p50_us: latency.percentile(0.5) as f64 / 1e3,
        p99_us: latency.percentile(0.99) as f64 / 1e3,
        p999_us: latency.percentile(0.999) as f64 / 1e3,
        longest_us: latency.percentile(1.0) as f64 / 1e3,
    })
}

/// As many keys as the bytes allow.
fn workload(mean: u32) -> Workload {
    let keys = (BYTES_MAX / u64::from(mean)).min(KEYS_MAX);
    let sizes = Sizes::Geometric(usize::try_from(mean).unwrap_or(usize::MAX));
    Workload { sizes, ..Workload::fixed(Operation::Set, 0, keys, u64::from(mean)) }
}
