//! The entry figures: requests beside memcached and Redis, memory of a row, expiry of a page and of a user.

mod expiry;
mod memory;
mod requests;

use std::path::PathBuf;

use crate::address::Address;
use crate::cores::Cores;
use crate::failure::Result;
use crate::machine::{self, Noise};
use crate::protocol::Protocol;
use crate::report::Report;
use crate::server::{Kind, Server, Setup};

/// What `entry` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Our program, written PATH or LABEL=PATH; more than one are compared with each other.
    #[arg(long, value_name = "[LABEL=]PATH")]
    pub(crate) sqlcached: Vec<String>,
    /// A server of ours that runs already (HOST:PORT or a Unix socket), in place of one started here.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) server: Option<Address>,
    /// Repetitions of each measurement, each beside the peer's.
    #[arg(long, default_value_t = 7)]
    pub(crate) repetitions: usize,
    /// Seconds of one measurement.
    #[arg(long, default_value_t = 0.6)]
    pub(crate) seconds: f64,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<Part>,
    /// Let the scheduler place server and load.
    #[arg(long)]
    pub(crate) unpinned: bool,
    /// Where the results go, in a folder named after the day.
    #[arg(long, default_value = "bench/results")]
    pub(crate) results: PathBuf,
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

/// Who takes part and how.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    /// Our builds.
    ours: Vec<Kind>,
    /// A server that runs already.
    running: Option<Address>,
    cores: Cores,
    repetitions: usize,
    slice_ns: u64,
}

impl Bench {
    fn new(options: &Options) -> Self {
        let cores =
            if options.unpinned || options.server.is_some() { Cores::free() } else { Cores::choose() };
        let ours = match options.server {
            Some(_) => Vec::new(),
            None => crate::builds(&options.sqlcached),
        };
        Self {
            ours,
            running: options.server.clone(),
            cores,
            repetitions: options.repetitions.max(1),
            slice_ns: crate::nanoseconds(options.seconds),
        }
    }

    /// Our servers, started or found; one that cannot be had is skipped with a line.
    fn start_ours(&self, memory_mib: u64, report: &mut Report) -> Vec<Server> {
        let mut servers = Vec::new();
        for kind in &self.ours {
            servers.extend(self.start(kind, memory_mib, report));
        }
        if let Some(address) = &self.running {
            match Server::running(address, Protocol::Memcached) {
                Ok(server) => servers.push(server),
                Err(failure) => report.say(&format!("{address}: skipped: {failure}")),
            }
        }
        servers
    }

    /// A peer or a build of ours, with the experiment's flags; `None` after a line that says why.
    fn start(&self, kind: &Kind, memory_mib: u64, report: &mut Report) -> Option<Server> {
        match Server::start(kind, &Setup::new(memory_mib, self.cores)) {
            Ok(server) => Some(server),
            Err(failure) => {
                report.say(&format!("{}: skipped: {failure}", kind.label()));
                None
            }
        }
    }
}

/// Runs the parts and writes the report.
pub(crate) fn run(options: &Options) -> Result<()> {
    let bench = Bench::new(options);
    bench.cores.pin_load()?;
    let mut report = Report::new("entry");
    let noise = Noise::sample();
    introduce(&bench, &mut report);
    let wanted = |part| options.only.is_empty() || options.only.contains(&part);
    if wanted(Part::Requests) {
        requests::run(&bench, &mut report)?;
    }
    if wanted(Part::Memory) {
        memory::run(&bench, &mut report)?;
    }
    if wanted(Part::Expiry) {
        expiry::run(&bench, &mut report)?;
    }
    report.say(&format!("Noise: {}.", noise.since()));
    let path = report.write(&options.results)?;
    println!("written: {}", path.display());
    Ok(())
}

fn introduce(bench: &Bench, report: &mut Report) {
    report.say("# Entry figures\n");
    report.say(&format!("Machine: {}; {}.", machine::describe(), bench.cores.describe()));
    for kind in bench.ours.iter().chain([&Kind::Memcached, &Kind::Redis]) {
        let version = kind.version().unwrap_or_else(|| "not found".into());
        report.say(&format!("- {}: {version}", kind.label()));
    }
    report.say(&format!(
        "\nMedians of {} paired, interleaved repetitions; in brackets the quartiles of the ratios.",
        bench.repetitions
    ));
}
