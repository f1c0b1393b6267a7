//! Reads and writes of 1 KB by one and more processes in shared memory: the lines of `sqlcached-bench shared`.

use std::path::Path;

use crate::address::Address;
use crate::failure::Result;
use crate::report::Report;
use crate::shared::{self, Candidate, Extent};

use super::lab::Lab;

/// Rows of 100 bytes, and of 1 KiB.
const ROWS: u64 = 1_000_000;
/// The same of a quick run.
const FEW_ROWS: u64 = 100_000;

/// Measures our builds, or the server that runs already, beside the peers.
pub(super) fn run(lab: &Lab, report: &mut Report) -> Result<()> {
    let mut candidates: Vec<Candidate> = lab.ours().iter().cloned().map(Candidate::Build).collect();
    match lab.running() {
        Some(address @ Address::Unix(_)) => candidates.push(Candidate::Running(address.clone())),
        Some(address) => {
            report.say(&format!(
                "\nSkipped: {address} is no Unix socket, and shared memory is reached by one."
            ));
            return Ok(());
        }
        None => {}
    }
    let rows = lab.effort.of(FEW_ROWS, ROWS, ROWS);
    let processes = lab.effort.of(2, 4, 8);
    let folder = Path::new(shared::SHARED_MEMORY);
    let extent = Extent { folder, rows, large_rows: rows, slices: lab.repetitions, processes };
    shared::measure(&candidates, extent, report)
}
