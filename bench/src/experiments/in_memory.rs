//! Databases with tables in memory promise a cache's speed: so many rows written and read one after the other by one
//! client, in caches, in our tables, and in PostgreSQL with and without durability.

use crate::failure::Result;
use crate::load::{Until, Workload};
use crate::plot::Axis;
use crate::protocol::Operation;
use crate::report::Report;
use crate::server::{Kind, Setup};

use super::faces::{Face, Sweep, faces, insert_and_read};
use super::lab::{self, Lab, start_each};

/// Rows written, then read.
const COUNTS: [u32; 3] = [1_000, 5_000, 10_000];
/// The ones of a quick run: a durable row takes a disk's time.
const FEW_COUNTS: [u32; 2] = [1_000, 5_000];
/// Bytes of a value.
const VALUE_BYTES: usize = 100;
/// Memory limit of each cache.
const MEMORY_MIB: u64 = 256;
/// The spaces of keys of two counts lie so far apart: more than there are repetitions.
const SPACES: u64 = 1_000;
/// What makes PostgreSQL durable again; these follow the settings that make it a cache.
const DURABLE: [&str; 6] = ["-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "full_page_writes=on"];

/// Measures each count.
pub(super) fn run(lab: &Lab, report: &mut Report) -> Result<()> {
    let setup = lab.setup(MEMORY_MIB);
    let peers = start_each(&[Kind::Memcached, Kind::PostgreSql], &setup, report);
    let durable = Setup { extra: DURABLE.map(str::to_owned).to_vec(), ..setup.clone() };
    let logged = lab::start(&Kind::PostgreSql, &durable, report);
    let ours = lab.start_ours(&setup, report);
    report.say(&format!(
        "\nOne client over TCP, one request at a time; keys of 16 B, values of {VALUE_BYTES} B; statements prepared, each a \
         transaction. The logged table's server writes to the disk of this machine's temporary files."
    ));
    let mut faces: Vec<Face<'_>> = faces(peers.iter().chain(&ours));
    for face in &mut faces {
        face.define(true)?;
        if face.label == Kind::PostgreSql.label() {
            face.label.push_str(" unlogged");
        }
    }
    if let Some(server) = &logged {
        let label = format!("{} logged, durable", server.label);
        let face = Face { server, protocol: server.protocol, label };
        face.define(false)?;
        faces.push(face);
    }
    sweep(lab, &mut faces, report)
}

fn sweep(lab: &Lab, faces: &mut Vec<Face<'_>>, report: &mut Report) -> Result<()> {
    let axis = || Axis::linear("rows, one after the other");
    let (mut writes, mut reads) = (Sweep::new(axis()), Sweep::new(axis()));
    for (place, &count) in (1..).zip(lab.effort.of(&FEW_COUNTS[..], &COUNTS, &COUNTS)) {
        let workload = Workload::fixed(Operation::Set, VALUE_BYTES, u64::from(count), place * SPACES);
        let line = format!("{count} rows");
        let (inserted, read) =
            insert_and_read(lab.repetitions, faces, &workload, 1, Until::EveryKeyOnce, &line, report)?;
        writes.push(f64::from(count), inserted);
        reads.push(f64::from(count), read);
    }
    for (name, sweep) in [("writes", &writes), ("reads", &reads)] {
        report.say(&format!("\n### Sequential {name}\n"));
        sweep.table(Kind::Memcached.label(), report);
        let y = Axis::logarithmic("milliseconds in all");
        let chart = sweep.chart(&format!("Sequential {name}"), y, |figures| figures.wall_ms)?;
        report.picture(&format!("6-{name}"), chart);
    }
    Ok(())
}
