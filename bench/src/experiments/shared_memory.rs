//! Reads of 1 KB by one and more processes in shared memory: the experiment is a command of its own, whose lines become
//! a part of the report.

use std::process::Command;

use crate::failure::{Context, Failure, Result};
use crate::report::Report;
use crate::server::Kind;

use super::lab::Lab;

/// Rows of 100 bytes, and of 1 KiB.
const ROWS: u64 = 1_000_000;
/// The same of a quick run.
const FEW_ROWS: u64 = 100_000;

/// Runs `shared` for each of our builds.
pub(super) fn run(lab: &Lab, report: &mut Report) -> Result<()> {
    let own = std::env::current_exe().context(|| "find this program".into())?;
    for kind in lab.kinds() {
        let Kind::Sqlcached { program, label } = kind else { continue };
        report.progress(&format!("shared memory: {label}"));
        let rows = lab.effort.of(FEW_ROWS, ROWS, ROWS).to_string();
        let output = Command::new(&own)
            .args(["shared", "--rows", &rows, "--large-rows", &rows, "--program"])
            .arg(&program)
            .output()
            .context(|| own.display().to_string())?;
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        report.say(&format!("{label}:\n\n```text\n{}\n```", lines.trim_end()));
        if !output.status.success() {
            return Err(Failure::new(format!("sqlcached-bench shared ended with {}", output.status)));
        }
    }
    Ok(())
}
