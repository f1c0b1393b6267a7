//! Expiry and eviction under load: what memory holds, when it comes back, and who waits meanwhile.
//!
//! Four parts. [`sizes`]: the sizes of what is stored move from tiny to large and back, which strands the memory of
//! caches that divide it by size. [`due`]: a million rows end in the same second. [`lifetimes`]: mixes of times to live
//! as large services have them. [`batches`]: rows expire by an index, one to a hundred thousand at a time.

mod batches;
mod clusters;
mod due;
mod lifetimes;
mod others;
mod sizes;

use std::path::PathBuf;

use crate::cores::Cores;
use crate::failure::{Failure, Result};
use crate::machine::{self, Noise};
use crate::report::Report;
use crate::server::{Kind, Server, Setup};

/// What `expiry` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Our program, in place of the one built beside this one.
    #[arg(long)]
    sqlcached: Option<String>,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// How long the sizes move; each of the four mixes of times to live has a quarter of it.
    #[arg(long, default_value_t = 600.0)]
    seconds: f64,
    /// Repetitions of what is short: a million rows due, and expiry by an index.
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// The memory limit while sizes move, in MiB.
    #[arg(long, default_value_t = 256)]
    memory_mib: u64,
    /// Let the scheduler place server and load.
    #[arg(long)]
    unpinned: bool,
    /// Where the results go, in a folder named after the day.
    #[arg(long, default_value = "bench/results", value_name = "DIR")]
    results: PathBuf,
}

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Values from 50 B to 500 KB and back.
    Sizes,
    /// A million rows that end in the same second.
    Due,
    /// Mixes of times to live.
    Lifetimes,
    /// Expiry by an index, by the number of rows.
    Batches,
}

/// Runs one part.
type Run = fn(&Bench, &mut Report) -> Result<()>;

/// The parts in the order in which they run, the shortest first.
const PARTS: [(Part, Run); 4] = [
    (Part::Batches, batches::run),
    (Part::Due, due::run),
    (Part::Lifetimes, lifetimes::run),
    (Part::Sizes, sizes::run),
];

/// Who takes part and how.
#[derive(Clone, Debug)]
struct Bench {
    ours: Kind,
    cores: Cores,
    repetitions: usize,
    length_ns: u64,
    memory_mib: u64,
}

impl Bench {
    fn new(options: &Options) -> Result<Self> {
        let ours = crate::builds(options.sqlcached.as_slice()).into_iter().next();
        Ok(Self {
            ours: ours.ok_or_else(|| Failure::new("no program to start"))?,
            cores: if options.unpinned { Cores::free() } else { Cores::choose() },
            repetitions: options.repetitions.max(1),
            length_ns: crate::nanoseconds(options.seconds),
            memory_mib: options.memory_mib,
        })
    }

    /// Ours, then memcached where it can be had.
    fn start_both(&self, memory_mib: u64, report: &mut Report) -> Result<Vec<Server>> {
        let setup = Setup::new(memory_mib, self.cores);
        let mut servers = vec![Server::start(&self.ours, &setup)?];
        match Server::start(&Kind::Memcached, &setup) {
            Ok(server) => servers.push(server),
            Err(failure) => report.say(&format!("memcached: skipped: {failure}")),
        }
        Ok(servers)
    }
}

/// Runs the parts and writes the report after each.
pub(crate) fn run(options: &Options) -> Result<()> {
    let bench = Bench::new(options)?;
    bench.cores.pin_load()?;
    let mut report = Report::new("expiry");
    introduce(&bench, &mut report);
    for (part, run) in PARTS {
        if options.only.is_empty() || options.only.contains(&part) {
            let noise = Noise::sample();
            run(&bench, &mut report)?;
            report.say(&format!("\nNoise: {}.", noise.since()));
            println!("written: {}", report.write(&options.results)?.display());
        }
    }
    Ok(())
}

fn introduce(bench: &Bench, report: &mut Report) {
    report.say("# Expiry and eviction\n");
    report.say(&format!("Machine: {}; {}.", machine::describe(), bench.cores.describe()));
    for kind in [&bench.ours, &Kind::Memcached] {
        let version = kind.version().unwrap_or_else(|| "not found".into());
        report.say(&format!("- {}: {version}", kind.label()));
    }
}
