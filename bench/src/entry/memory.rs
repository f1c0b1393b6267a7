//! Memory of a row over its key and value: one million rows of 16 B and 100 B.

use crate::client::Client;
use crate::failure::Result;
use crate::load::{KEY_BYTES, Load, Workload};
use crate::protocol::Operation;
use crate::report::{Figure, Report};
use crate::server::{Kind, Server};
use crate::summary::digits;

use crate::paired::Bench;

/// Rows of the experiment.
const ROWS: u64 = 1_000_000;
/// Bytes of each value.
const VALUE_BYTES: usize = 100;
/// Room for all rows in every server.
const MEMORY_MIB: u64 = 1024;
/// What a row may cost beyond its key and value.
pub(crate) const REACH: f64 = 65.0;

/// Fills each server and adds the table.
pub(crate) fn run(bench: &Bench, report: &mut Report, reach: f64) -> Result<()> {
    let setup = bench.setup(MEMORY_MIB);
    let mut servers = bench.start_ours(&setup, report);
    servers.extend(Bench::start(&Kind::Memcached, &setup, report));
    let mut rows = Vec::new();
    for server in &servers {
        rows.push(measure(server, reach, report)?);
    }
    report.say("\n## Memory of a row beyond its key and value\n");
    report.say(&format!(
        "{ROWS} rows of {KEY_BYTES} B + {VALUE_BYTES} B. Grown: blocks of the arena file and private pages after \
         the fill, less those of the empty server. In all: without subtracting the empty server. By its own \
         account: `bytes` of `stats`."
    ));
    report.table(&["server", "grown B/row", "in all B/row", "own account B/row", "reach"], &rows);
    Ok(())
}

fn measure(server: &Server, reach: f64, report: &mut Report) -> Result<Vec<String>> {
    let mut client = Client::connect(&server.address)?;
    let own_before = client.stat("bytes")?;
    let before = server.memory()?;
    let workload = Workload::fixed(Operation::Set, VALUE_BYTES, ROWS, 7);
    Load::connect(&server.address, server.protocol, 4)?.fill(&workload)?;
    let after = server.memory()?;
    let own =
        client.stat("bytes")?.zip(own_before).map(|(after, before)| beyond(after.saturating_sub(before)));
    let grown = beyond(after.total().saturating_sub(before.total()));
    let all = beyond(after.total());
    for (metric, value) in
        [("grown_bytes", grown), ("all_bytes", all), ("own_bytes", own.unwrap_or(f64::NAN))]
    {
        report.figure(&Figure {
            line: "memory of a row",
            server: &server.label,
            repetition: 0,
            metric,
            value,
        });
    }
    let verdict = if grown <= reach { "holds" } else { "missed" };
    let reach = if server.label == Kind::Memcached.label() {
        String::new()
    } else {
        format!("<= {reach:.0} {verdict}")
    };
    Ok(vec![server.label.clone(), digits(grown), digits(all), own.map_or_else(String::new, digits), reach])
}

/// Bytes of a row beyond its key and value.
fn beyond(bytes: u64) -> f64 {
    bytes as f64 / ROWS as f64 - (KEY_BYTES + VALUE_BYTES) as f64
}
