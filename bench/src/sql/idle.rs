//! Memory of connections that are open and do nothing.

use crate::failure::{Failure, Result};
use crate::postgres::Wire;
use crate::report::{Figure, Report};
use crate::summary::digits;

use super::Bench;

/// Open connections.
const CONNECTIONS: usize = 500;
/// KiB that each may take.
const REACH: f64 = 20.0;

/// Opens connections to each build of ours and adds the table.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut rows = Vec::new();
    for server in bench.start(&bench.ours, report) {
        let address = server.sql.as_ref().ok_or_else(|| Failure::new("no PostgreSQL listener"))?;
        // The first connections make what all of them share.
        for _ in 0..10 {
            Wire::connect(address)?.run("SELECT 1")?;
        }
        let before = server.memory()?;
        let mut open = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            let mut wire = Wire::connect(address)?;
            // A connection that did something once, as those of a pool have.
            wire.prepare("one", "SELECT 1")?;
            wire.execute("one", &[])?;
            open.push(wire);
        }
        let grown = server.memory()?.private_bytes.saturating_sub(before.private_bytes);
        let value = grown as f64 / CONNECTIONS as f64 / 1024.0;
        report.figure(&Figure {
            line: "idle connection",
            server: &server.label,
            repetition: 0,
            metric: "kib",
            value,
        });
        let verdict = if value <= REACH { "holds" } else { "missed" };
        rows.push(vec![server.label.clone(), digits(value), format!("<= {REACH:.0} {verdict}")]);
        drop(open);
    }
    report.say("\n## Idle connections\n");
    report.say(&format!(
        "Private memory that the daemon grew by with {CONNECTIONS} connections, each with one prepared statement that \
         ran once."
    ));
    report.table(&["server", "KiB each", "reach"], &rows);
    Ok(())
}
