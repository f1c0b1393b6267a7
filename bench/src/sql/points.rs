//! A prepared point query by one and by eight clients, beside PostgreSQL and a memcached get.

use crate::failure::{Failure, Result};
use crate::load::{Load, Until, Workload};
use crate::postgres::{self, Wire};
use crate::protocol::{Operation, Protocol};
use crate::report::Report;
use crate::server::{Kind, Server};

use super::{Bench, Column, Goal, HEAD, keep, rows};

/// Rows of the table and keys of memcached.
const ROWS: u64 = 100_000;
/// Bytes of each value.
const VALUE_BYTES: usize = 32;
/// The load runs so long before it counts.
const WARM_UP_NS: u64 = 50_000_000;
/// How many clients each line has.
const CLIENTS: [usize; 2] = [1, 8];

/// Who answers, and in which protocol.
struct Subject<'s> {
    server: &'s Server,
    load: Load,
    column: Column,
}

/// Measures both lines and adds the table.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let servers = bench.start(&bench.everyone(), report);
    let workload = Workload::fixed(Operation::Get, VALUE_BYTES, ROWS, 3);
    for server in &servers {
        fill(server, &workload, report)?;
    }
    let mut table = Vec::new();
    for clients in CLIENTS {
        table.extend(line(bench, &servers, &workload, clients, report)?);
    }
    report.say("\n## Point queries\n");
    report.say(&format!(
        "`SELECT value FROM points WHERE key = $1`, prepared once; Bind, Execute and Sync for each, one at a time, over \
         TCP; {ROWS} rows of 16 B + {VALUE_BYTES} B. PostgreSQL's table is UNLOGGED. One server thread for memcached, \
         two SQL threads for sqlcached, all on one core."
    ));
    report.table(&HEAD, &table);
    Ok(())
}

/// The protocols that a server answers in, and what tables call it then.
fn faces(server: &Server) -> Vec<(Protocol, String)> {
    let sql = server.sql.as_ref().map(|_| (Protocol::Postgres, format!("{} SELECT", server.label)));
    let get = (server.protocol == Protocol::Memcached)
        .then(|| (Protocol::Memcached, format!("{} get", server.label)));
    sql.into_iter().chain(get).collect()
}

fn connect(server: &Server, protocol: Protocol, clients: usize) -> Result<Load> {
    let address = match protocol {
        Protocol::Postgres => server.sql.as_ref().ok_or_else(|| Failure::new("no PostgreSQL listener"))?,
        _ => &server.address,
    };
    Load::connect(address, protocol, clients)
}

fn fill(server: &Server, workload: &Workload, report: &Report) -> Result<()> {
    report.progress(&format!("fill {}: {}", server.label, server.command));
    if let Some(address) = &server.sql {
        let kind =
            if server.protocol == Protocol::Postgres { "CREATE UNLOGGED TABLE" } else { "CREATE TABLE" };
        Wire::connect(address)?.run(&postgres::POINTS.replace("CREATE TABLE", kind))?;
    }
    for (protocol, _) in faces(server) {
        connect(server, protocol, 1)?.fill(workload)?;
    }
    if server.protocol == Protocol::Postgres {
        let address = server.sql.as_ref().unwrap_or(&server.address);
        Wire::connect(address)?.run("VACUUM ANALYZE points")?;
    }
    Ok(())
}

fn line(
    bench: &Bench,
    servers: &[Server],
    workload: &Workload,
    clients: usize,
    report: &mut Report,
) -> Result<Vec<Vec<String>>> {
    let name = if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
    let mut subjects = Vec::new();
    for server in servers {
        for (protocol, label) in faces(server) {
            let load = connect(server, protocol, clients)?;
            subjects.push(Subject { server, load, column: Column { subject: label, ..Column::default() } });
        }
    }
    for repetition in 0..bench.repetitions {
        for turn in 0..subjects.len() {
            let index = (turn + repetition) % subjects.len();
            if let Some(subject) = subjects.get_mut(index) {
                subject.measure(workload, bench.slice_ns)?;
                keep(&name, &subject.column, repetition, report);
            }
        }
    }
    report.progress(&name);
    let columns: Vec<Column> = subjects.into_iter().map(|subject| subject.column).collect();
    let ours = |kind: &Kind| format!("{} SELECT", kind.label());
    Ok(if clients == 1 {
        let goals: Vec<Goal> = bench
            .ours
            .iter()
            .flat_map(|kind| {
                [
                    Goal::new(&ours(kind), "postgresql SELECT", 0.4),
                    Goal::new(&ours(kind), "memcached get", 1.3),
                ]
            })
            .collect();
        rows(&name, &columns, &goals, |column| &column.cpu_ns)
    } else {
        let goals: Vec<Goal> =
            bench.ours.iter().map(|kind| Goal::new(&ours(kind), "postgresql SELECT", 4.0)).collect();
        rows(&name, &columns, &goals, |column| &column.per_second)
    })
}

impl Subject<'_> {
    fn measure(&mut self, workload: &Workload, slice_ns: u64) -> Result<()> {
        self.load.run(workload, 1, Until::Elapsed(WARM_UP_NS))?;
        let before = self.server.cpu_ns()?;
        let seen = self.load.run(workload, 1, Until::Elapsed(slice_ns))?;
        let cpu = self.server.cpu_ns()? - before;
        let operations = seen.operations.max(1) as f64;
        self.column.cpu_ns.push(cpu as f64 / operations);
        self.column.per_second.push(operations / crate::clock::seconds(seen.wall_ns));
        Ok(())
    }
}
