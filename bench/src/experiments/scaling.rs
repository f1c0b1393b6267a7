//! How cost grows: with threads, connections, rows, and requests sent at once.

use crate::cores::Cores;
use crate::failure::Result;
use crate::load::{Until, Workload};
use crate::plot::Axis;
use crate::protocol::{Operation, Protocol};
use crate::report::Report;
use crate::server::{Kind, Server, Setup};

use super::faces::{Face, Point, Sweep, faces, measure};
use super::lab::{Lab, start_each};

/// Threads of a server.
const THREADS: [u32; 3] = [1, 2, 4];
/// Clients.
const CONNECTIONS: [u32; 7] = [1, 10, 50, 100, 250, 500, 1_000];
/// Rows.
const ROWS: [u32; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
/// Rows of a run that is not to take long.
const FEW_ROWS: [u32; 3] = [10_000, 100_000, 1_000_000];
/// Requests sent before the first answer is waited for.
const DEPTHS: [u32; 7] = [1, 2, 5, 10, 20, 50, 100];
/// What stands still while another quantity grows.
const USUAL_CONNECTIONS: usize = 50;
const USUAL_ROWS: u32 = 100_000;
const USUAL_DEPTH: u64 = 1;
/// Threads only pay where there is work for them.
const THREADS_DEPTH: u64 = 32;
/// Bytes of a value.
const VALUE_BYTES: usize = 32;
/// Memory limit of each cache: ten million rows lie in it.
const MEMORY_MIB: u64 = 4_096;

/// Makes all sweeps.
pub(super) fn run(lab: &Lab, report: &mut Report) -> Result<()> {
    raise_file_limit();
    report.say(&format!(
        "\nReads of {VALUE_BYTES} B by 16 B keys over TCP, all hits. Where nothing else is said: one server thread, \
         {USUAL_CONNECTIONS} clients, {USUAL_ROWS} rows, one request each at a time."
    ));
    if lab.running().is_some() {
        report.say("\nThe server that runs already has as many threads as it was started with: it sits out the first part.");
    }
    // Threads need all cores; what a server inherits, the load has too.
    Cores::release()?;
    threads(lab, report)?;
    lab.cores.pin_load()?;
    let setup = lab.setup(MEMORY_MIB);
    let servers = lab.start_all(&[Kind::Memcached, Kind::Redis], &setup, report);
    let all = faces(&servers);
    let workload = workload(USUAL_ROWS);
    for face in &all {
        face.define(true)?;
        face.fill(&workload, 2)?;
    }
    let point = |connections, depth, line: String| point(lab, &workload, connections, depth, line);
    let mut sweep = Sweep::new(Axis::logarithmic("clients"));
    let mut present = all.clone();
    for connections in CONNECTIONS {
        let point = point(size(connections), USUAL_DEPTH, format!("{connections} clients"));
        add(lab, &mut sweep, connections, &mut present, &point, report)?;
    }
    draw(&sweep, "clients", report)?;
    let mut sweep = Sweep::new(Axis::logarithmic("requests sent at once"));
    let mut present = all.clone();
    for depth in DEPTHS {
        let point = point(USUAL_CONNECTIONS, u64::from(depth), format!("pipeline {depth}"));
        add(lab, &mut sweep, depth, &mut present, &point, report)?;
    }
    draw(&sweep, "pipeline", report)?;
    rows(lab, &all, report)
}

/// One, two, four threads, wherever the scheduler puts them.
fn threads(lab: &Lab, report: &mut Report) -> Result<()> {
    let mut sweep = Sweep::new(Axis::linear("server threads"));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    for threads in THREADS.into_iter().filter(|&threads| size(threads) <= cores) {
        let setup = Setup { threads: size(threads), cores: Cores::free(), ..lab.setup(MEMORY_MIB) };
        let kinds: Vec<Kind> = [Kind::Memcached].into_iter().chain(lab.ours().iter().cloned()).collect();
        let servers: Vec<Server> = start_each(&kinds, &setup, report);
        let mut faces = by_memcached(&faces(&servers));
        let workload = workload(USUAL_ROWS);
        for face in &faces {
            face.fill(&workload, 2)?;
        }
        let line = format!("{threads} threads");
        let point = point(lab, &workload, USUAL_CONNECTIONS, THREADS_DEPTH, line);
        add(lab, &mut sweep, threads, &mut faces, &point, report)?;
    }
    draw(&sweep, "threads", report)
}

/// More and more rows; a database's table takes too long to fill.
fn rows(lab: &Lab, all: &[Face<'_>], report: &mut Report) -> Result<()> {
    let mut sweep = Sweep::new(Axis::logarithmic("rows"));
    let mut faces = by_memcached(all);
    for &rows in lab.effort.of(&FEW_ROWS[..], &FEW_ROWS, &ROWS) {
        let workload = workload(rows);
        for face in &faces {
            report.progress(&format!("{rows} rows: fill {}", face.label));
            face.fill(&workload, 1)?;
        }
        let point = point(lab, &workload, USUAL_CONNECTIONS, USUAL_DEPTH, format!("{rows} rows"));
        add(lab, &mut sweep, rows, &mut faces, &point, report)?;
    }
    draw(&sweep, "rows", report)
}

fn by_memcached<'s>(faces: &[Face<'s>]) -> Vec<Face<'s>> {
    faces.iter().filter(|face| face.protocol != Protocol::Postgres).cloned().collect()
}

/// Every number of rows has keys of its own.
fn workload(rows: u32) -> Workload {
    Workload::fixed(Operation::Get, VALUE_BYTES, u64::from(rows), u64::from(rows.ilog10()))
}

fn point(lab: &Lab, workload: &Workload, connections: usize, depth: u64, line: String) -> Point {
    Point { line, workload: workload.clone(), connections, depth, until: Until::Elapsed(lab.slice_ns) }
}

fn add(
    lab: &Lab,
    sweep: &mut Sweep,
    x: u32,
    faces: &mut Vec<Face<'_>>,
    point: &Point,
    report: &mut Report,
) -> Result<()> {
    let outcomes = measure(lab.repetitions, faces, report, |_| vec![point.clone()])?;
    sweep.push(f64::from(x), outcomes.into_iter().next().unwrap_or_default());
    Ok(())
}

fn draw(sweep: &Sweep, what: &str, report: &mut Report) -> Result<()> {
    report.say(&format!("\n### By {what}\n"));
    sweep.table(Kind::Memcached.label(), report);
    let cpu = sweep.chart(
        &format!("Server CPU of a read, by {what}"),
        Axis::logarithmic("server CPU, ns a read"),
        |figures| figures.server_ns,
    )?;
    report.picture(&format!("8-{what}-cpu"), cpu);
    let rate = sweep.chart(
        &format!("Reads a second, by {what}"),
        Axis::logarithmic("reads a second"),
        |figures| figures.per_second,
    )?;
    report.picture(&format!("8-{what}-rate"), rate);
    Ok(())
}

/// A thousand connections are more than a process may usually have; servers started from here inherit the limit.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where that is refused, the lines with many connections end early and say so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
