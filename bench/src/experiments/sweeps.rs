//! memcached and a database beside each other: inserts and reads of ten thousand keys while the length of keys, the
//! length of values, and the number of readers grow. memcached ends at keys of 250 B and items of 1 MB.

use crate::failure::Result;
use crate::figures::Figures;
use crate::load::{Sizes, Until, Workload};
use crate::plot::{Axis, Wall};
use crate::protocol::Operation;
use crate::report::Report;
use crate::server::{Kind, Setup};

use super::faces::{Face, Point, Sweep, faces, insert_and_read, measure};
use super::lab::{Lab, start_each};

/// Bytes of keys, beyond what memcached takes at the end.
const KEY_BYTES: [u32; 8] = [10, 50, 100, 150, 200, 250, 500, 1_000];
/// The ones of a quick run.
const FEW_KEY_BYTES: [u32; 3] = [10, 250, 1_000];
/// Bytes of values while keys grow, and while readers become more.
const VALUE_BYTES: usize = 6 * 1024;
/// Bytes of values, beyond what memcached takes at the end.
const VALUES: [u32; 7] = [10_000, 31_600, 100_000, 316_000, 1_000_000, 2_000_000, 4_000_000];
/// The ones of a quick run.
const FEW_VALUES: [u32; 3] = [10_000, 100_000, 2_000_000];
/// Bytes of keys while values grow.
const SHORT_KEY_BYTES: usize = 100;
/// Readers.
const READERS: [u32; 6] = [1, 2, 5, 10, 20, 40];
/// The ones of a quick run.
const FEW_READERS: [u32; 3] = [1, 10, 40];
/// Keys of every measurement, where their values are not too large for it.
const KEYS: u64 = 10_000;
/// Bytes of all values of one measurement, at most.
const BYTES_MAX: u64 = 64 << 20;
/// Clients while keys and values grow.
const CONNECTIONS: usize = 10;
/// Memory limit of each cache: an insert finds its key absent in each repetition, so those of a sweep lie there
/// together, up to 3.4 GB in memcached, which has no other way to begin empty.
const MEMORY_MIB: u64 = 4_096;
/// Longest row that our server is told to take.
const ITEM_MAX: &str = "16m";
/// memcached's limits.
const KEY_WALL: u32 = 250;
const VALUE_WALL: u32 = 1 << 20;
/// Keys of different points lie so many spaces apart: more than there are repetitions.
const SPACES: u64 = 1_000;

/// One of the sweeps.
type Sweeping = fn(&Lab, &[Face<'_>], &mut Report) -> Result<()>;

/// Makes all three sweeps, each with servers that begin empty.
pub(super) fn run(lab: &Lab, report: &mut Report) -> Result<()> {
    report.say(&format!(
        "\n{KEYS} keys, or as many as make {} MiB; {CONNECTIONS} clients over TCP unless said otherwise, one request each at \
         a time. An insert finds its key absent. PostgreSQL's table is UNLOGGED and does not compress values.",
        BYTES_MAX >> 20
    ));
    let sweeps: [Sweeping; 3] = [keys, values, readers];
    sweeps.into_iter().try_for_each(|sweep| with_servers(lab, sweep, report))
}

fn with_servers(lab: &Lab, sweep: Sweeping, report: &mut Report) -> Result<()> {
    let setup = lab.setup(MEMORY_MIB);
    let peers = start_each(&[Kind::Memcached, Kind::PostgreSql], &setup, report);
    let roomy = Setup { extra: vec!["-I".into(), ITEM_MAX.into()], ..setup };
    let ours = lab.start_ours(&roomy, report);
    sweep(lab, &faces(peers.iter().chain(&ours)), report)
}

/// Longer and longer keys.
fn keys(lab: &Lab, faces: &[Face<'_>], report: &mut Report) -> Result<()> {
    let axis = || Axis::linear("key length, B");
    let wall = Wall { at: f64::from(KEY_WALL), label: "memcached: 250 B".into() };
    let base = Workload::fixed(Operation::Set, VALUE_BYTES, KEYS, 0);
    let points = lab.effort.of(&FEW_KEY_BYTES[..], &KEY_BYTES, &KEY_BYTES);
    let points = points.iter().map(|&bytes| (bytes, Workload { key_bytes: size(bytes), ..base.clone() }));
    grow(lab, faces, "key", points.collect(), (axis(), axis()), &wall, report)
}

/// Longer and longer values.
fn values(lab: &Lab, faces: &[Face<'_>], report: &mut Report) -> Result<()> {
    let axis = || Axis::logarithmic("value length, B");
    let wall = Wall { at: f64::from(VALUE_WALL), label: "memcached: 1 MiB".into() };
    let points = lab.effort.of(&FEW_VALUES[..], &VALUES, &VALUES);
    let points = points.iter().map(|&bytes| {
        let keys = (BYTES_MAX / u64::from(bytes)).min(KEYS);
        let base = Workload::fixed(Operation::Set, 0, keys, 0);
        (bytes, Workload { sizes: Sizes::Fixed(size(bytes)), key_bytes: SHORT_KEY_BYTES, ..base })
    });
    grow(lab, faces, "value", points.collect(), (axis(), axis()), &wall, report)
}

/// Inserts and reads at each point, and what they came to. The tables of databases begin empty, at each point.
fn grow(
    lab: &Lab,
    faces: &[Face<'_>],
    what: &str,
    points: Vec<(u32, Workload)>,
    (inserts, reads): (Axis, Axis),
    wall: &Wall,
    report: &mut Report,
) -> Result<()> {
    let (mut inserts, mut reads) = (Sweep::new(inserts), Sweep::new(reads));
    let mut faces = faces.to_vec();
    report.say(&format!("\n### Longer {what}s\n"));
    for (place, (bytes, workload)) in points.into_iter().enumerate() {
        for face in &faces {
            face.define(true)?;
        }
        let workload = Workload { space: (place as u64 + 1) * SPACES, ..workload };
        let line = format!("{what} of {bytes} B");
        let until = Until::Elapsed(lab.slice_ns);
        let (inserted, read) =
            insert_and_read(lab.repetitions, &mut faces, &workload, CONNECTIONS, until, &line, report)?;
        inserts.push(f64::from(bytes), inserted);
        reads.push(f64::from(bytes), read);
    }
    for (name, sweep) in [("inserts", &mut inserts), ("reads", &mut reads)] {
        sweep.walls.push(wall.clone());
        report.say(&format!("\nLonger {what}s, {name}:\n"));
        draw(sweep, name, &format!("5-{what}s-{name}"), report)?;
    }
    Ok(())
}

/// More and more readers.
fn readers(lab: &Lab, faces: &[Face<'_>], report: &mut Report) -> Result<()> {
    let mut faces = faces.to_vec();
    let workload = Workload {
        key_bytes: SHORT_KEY_BYTES,
        ..Workload::fixed(Operation::Get, VALUE_BYTES, KEYS, SPACES * SPACES)
    };
    for face in &faces {
        face.define(true)?;
        face.fill(&workload, 1)?;
    }
    let mut sweep = Sweep::new(Axis::linear("readers"));
    for &readers in lab.effort.of(&FEW_READERS[..], &READERS, &READERS) {
        let point = Point {
            line: format!("{readers} readers"),
            workload: workload.clone(),
            connections: size(readers),
            depth: 1,
            until: Until::Elapsed(lab.slice_ns),
        };
        let outcomes = measure(lab.repetitions, &mut faces, report, |_| vec![point.clone()])?;
        sweep.push(f64::from(readers), outcomes.into_iter().next().unwrap_or_default());
    }
    report.say("\n### More readers\n");
    draw(&sweep, "reads", "5-readers", report)
}

fn draw(sweep: &Sweep, name: &str, file: &str, report: &mut Report) -> Result<()> {
    sweep.table(Kind::Memcached.label(), report);
    let rate: fn(&Figures) -> f64 = |figures| figures.per_second;
    let chart =
        sweep.chart(&format!("{name} a second"), Axis::logarithmic(format!("{name} a second")), rate)?;
    report.picture(&format!("{file}-rate"), chart);
    let cpu: fn(&Figures) -> f64 = |figures| figures.server_ns;
    let axis = Axis::logarithmic("server CPU, ns an operation");
    report.picture(&format!("{file}-cpu"), sweep.chart(&format!("{name}: server CPU"), axis, cpu)?);
    Ok(())
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
