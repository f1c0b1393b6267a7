//! The entry figures: requests beside memcached and Redis, memory of a row, expiry of a page and of a user.

mod expiry;
pub(crate) mod memory;
mod requests;

use crate::failure::Result;
use crate::machine::Noise;
use crate::paired::{self, Bench};
use crate::report::Report;

/// What `entry` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: paired::Options,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
}

/// A part of the entry figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// CPU per request beside memcached and Redis.
    Requests,
    /// Memory of a row.
    Memory,
    /// Expiry of a page and of a user.
    Expiry,
}

/// Runs the parts and writes the report.
pub(crate) fn run(options: &Options) -> Result<()> {
    let bench = Bench::new(&options.common);
    bench.cores.pin_load()?;
    let mut report = Report::new("entry");
    let noise = Noise::sample();
    bench.introduce("Entry figures", &mut report);
    let wanted = |part| options.only.is_empty() || options.only.contains(&part);
    if wanted(Part::Requests) {
        requests::run(&bench, &mut report)?;
    }
    if wanted(Part::Memory) {
        memory::run(&bench, &mut report, memory::REACH)?;
    }
    if wanted(Part::Expiry) {
        expiry::run(&bench, &mut report)?;
    }
    report.say(&format!("Noise: {}.", noise.since()));
    let path = report.write(&options.common.results)?;
    println!("written: {}", path.display());
    Ok(())
}
