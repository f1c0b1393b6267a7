//! The lead in memcached's protocol: every line that is to be ahead of memcached and Redis, with the ratio to reach.

mod binary;
mod everything;
mod fill;
mod grow;
mod indexed;
mod requests;

use crate::entry::memory;
use crate::failure::Result;
use crate::machine::Noise;
use crate::paired::{self, Bench};
use crate::report::Report;

/// Bytes that a row without further columns may take beyond key and value.
const PLAIN_ROW_BYTES: f64 = 55.0;

/// What `lead` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: paired::Options,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Of the requests, only the lines whose name holds one of these texts.
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    lines: Vec<String>,
}

/// A part of the lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// CPU per request over TCP.
    Requests,
    /// The same over a Unix socket.
    Unix,
    /// The same with two server threads.
    Threads,
    /// CPU per request in the binary protocol.
    Binary,
    /// The first fill with large values.
    Fill,
    /// Waits of small sets while a table grows.
    Grow,
    /// Deletion of everything.
    Everything,
    /// Memory of a row.
    Memory,
}

/// Runs the parts and writes the report.
pub(crate) fn run(options: &Options) -> Result<()> {
    let bench = Bench::new(&options.common);
    bench.cores.pin_load()?;
    let mut report = Report::new("lead");
    let noise = Noise::sample();
    bench.introduce("The lead in memcached's protocol", &mut report);
    let wanted = |part| options.only.is_empty() || options.only.contains(&part);
    for group in requests::GROUPS.iter().filter(|group| wanted(group.part)) {
        requests::run(&bench, group, &options.lines, &mut report)?;
    }
    if wanted(Part::Binary) {
        binary::run(&bench, &mut report)?;
    }
    if wanted(Part::Fill) {
        fill::run(&bench, &mut report)?;
    }
    if wanted(Part::Grow) {
        grow::run(&bench, &options.lines, &mut report)?;
    }
    if wanted(Part::Everything) {
        everything::run(&bench, &mut report)?;
    }
    if wanted(Part::Memory) {
        memory::run(&bench, &mut report, PLAIN_ROW_BYTES)?;
        indexed::run(&bench, &mut report)?;
    }
    report.say(&format!("Noise: {}.", noise.since()));
    let path = report.write(&options.common.results)?;
    println!("written: {}", path.display());
    Ok(())
}
