//! Reads and writes of rows in shared memory, as a process beside the daemon sees them: ours, LMDB on the same file
//! system, memcached over a Unix socket, and what no such read can be faster than.
//!
//! In-process figures are processor time of the reading thread, so that other users of the machine count as little as
//! they can; those of requests over a socket are wall time, since the time of a request is spent in two processes.
//! Peers are measured in turn, slice by slice.

mod lines;
mod processes;
mod readers;

use std::path::{Path, PathBuf};

use crate::address::Address;
use crate::failure::Result;
use crate::machine::{self, Noise};
use crate::report::Report;
use crate::server::Kind;

/// Where Linux has its shared memory.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// What `shared` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A build of ours, as PATH; without it the one beside this program.
    #[arg(long)]
    program: Option<PathBuf>,
    /// How many rows of 100 bytes.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// How many rows of 1 KiB.
    #[arg(long, default_value_t = 1 << 20)]
    large_rows: u64,
    /// Where the rows lie, of ours and of LMDB: a file system in memory. On one mounted with `huge=always` their pages
    /// are of 2 MiB.
    #[arg(long, default_value = SHARED_MEMORY, value_name = "DIR")]
    memory_folder: PathBuf,
    /// Slices of each measurement; the median counts.
    #[arg(long, default_value_t = 9)]
    slices: usize,
    /// Where the results go, in a folder named after the day.
    #[arg(long, default_value = "bench/results", value_name = "DIR")]
    results: PathBuf,
    /// Read rows of this peer for a while, and print the reads, their processor time and their wall time.
    #[arg(long, hide = true, value_name = "PEER:PATH")]
    read_at: Option<String>,
}

/// A daemon of ours whose rows are read.
#[derive(Clone, Debug)]
pub(crate) enum Candidate {
    /// Started here, again for each line.
    Build(Kind),
    /// One that runs already, on a Unix socket. It loses its rows.
    Running(Address),
}

impl Candidate {
    /// What tables call it.
    fn label(&self) -> &str {
        match self {
            Self::Build(kind) => kind.label(),
            Self::Running(_) => "running",
        }
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent<'a> {
    /// Where the rows lie.
    pub(crate) folder: &'a Path,
    /// Rows of 100 bytes.
    pub(crate) rows: u64,
    /// Rows of 1 KiB.
    pub(crate) large_rows: u64,
    /// Slices of each measurement.
    pub(crate) slices: usize,
    /// The most processes that read at once.
    pub(crate) processes: usize,
}

/// As the command line says.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(peer) = &options.read_at {
        return processes::read_for_another(peer);
    }
    let program = options.program.as_ref().map(|path| path.display().to_string());
    let builds = crate::builds(&program.into_iter().collect::<Vec<_>>());
    let candidates: Vec<Candidate> = builds.into_iter().map(Candidate::Build).collect();
    let Options { rows, large_rows, slices, .. } = *options;
    let folder = &options.memory_folder;
    let mut report = Report::new("shared");
    report.say(&format!(
        "# Shared memory\n\nMachine: {}; rows in {}.\n",
        machine::describe(),
        folder.display()
    ));
    let noise = Noise::sample();
    let extent = Extent { folder, rows, large_rows, slices: slices.max(1), processes: 4 };
    measure(&candidates, extent, &mut report)?;
    report.say(&format!("\nNoise: {}.", noise.since()));
    println!("written: {}", report.write(&options.results)?.display());
    Ok(())
}

/// All lines of our candidates and their peers, in turn.
pub(crate) fn measure(ours: &[Candidate], extent: Extent<'_>, report: &mut Report) -> Result<()> {
    report.say(&format!(
        "Medians of {} slices, quartiles in brackets: ns of processor time of the reading thread; over a socket, and of \
         writes, wall time. The bound: a hash table of this process, the key compared, the value copied. LMDB: a \
         renewed transaction for each read, without syncing.",
        extent.slices
    ));
    lines::hot(ours, 1_000, extent, report)?;
    lines::hot(ours, 100, extent, report)?;
    lines::random(ours, extent.rows, 100, extent, report)?;
    lines::random(ours, extent.large_rows, 1 << 10, extent, report)?;
    lines::writes(ours, extent, report)?;
    lines::beside_a_writer(ours, extent, report)?;
    processes::sweep(ours, extent, report)
}
