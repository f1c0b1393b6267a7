//! Reads and writes of 1 KB by one and more processes in shared memory: the lines of `sqlcached-bench shared`.

use std::path::Path;

use crate::failure::Result;
use crate::report::Report;
use crate::server::Kind;
use crate::shared::{self, Extent};

use super::lab::Lab;

/// Rows of 100 bytes, and of 1 KiB.
const ROWS: u64 = 1_000_000;
/// The same of a quick run.
const FEW_ROWS: u64 = 100_000;

/// Measures each of our builds beside the peers.
pub(super) fn run(lab: &Lab, report: &mut Report) -> Result<()> {
    let rows = lab.effort.of(FEW_ROWS, ROWS, ROWS);
    let processes = lab.effort.of(2, 4, 8);
    let folder = Path::new(shared::SHARED_MEMORY);
    let extent = Extent { folder, rows, large_rows: rows, slices: lab.repetitions, processes };
    for kind in lab.kinds() {
        if let Kind::Sqlcached { label, .. } = &kind {
            report.say(&format!("\n### {label}\n"));
            shared::measure(&kind, extent, report)?;
        }
    }
    Ok(())
}
