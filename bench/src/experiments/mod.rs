//! The experiments of the papers that this project grew from, each run again beside today's systems in one run.
//!
//! [`EXPERIMENTS`] lists them. Each is a module that starts its servers through the [`Lab`], measures them in turn,
//! repetition by repetition, and adds tables and pictures to the report. The report is written after every
//! experiment, so a run that is stopped keeps what it has.

mod cms;
mod faces;
mod geometric;
mod hit_ratio;
mod in_memory;
mod lab;
mod scaling;
mod shared_memory;
mod sweeps;
mod table2;

use std::path::PathBuf;

use crate::address::Address;
use crate::clock;
use crate::failure::{Failure, Result};
use crate::machine::{self, Noise};
use crate::report::Report;

use lab::{Effort, Lab};

/// What `experiments` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Run only these, by number.
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    only: Vec<u8>,
    /// Three minutes: fewer repetitions and points.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All experiments, more repetitions and points.
    #[arg(long)]
    full: bool,
    /// Repetitions of each measurement, each beside the peers'.
    #[arg(long)]
    repetitions: Option<usize>,
    /// Our program, written PATH or LABEL=PATH; more than one are compared with each other.
    #[arg(long, value_name = "[LABEL=]PATH")]
    sqlcached: Vec<String>,
    /// A server of ours that runs already (HOST:PORT or a Unix socket), in place of one started here. It loses its rows
    /// and its tables named fragments, parts and points; experiment 4 needs its Unix socket and puts its built-in table
    /// into shared memory, 7 changes its memory limit meanwhile.
    #[arg(long, value_name = "ADDRESS")]
    server: Option<Address>,
    /// Where that server speaks PostgreSQL's protocol.
    #[arg(long, value_name = "ADDRESS", requires = "server")]
    sql_server: Option<Address>,
    /// A folder with traces (*.be32, *.be64, also as *.zst) for the hit ratios. Without one: those of
    /// ../shared/traces, else the demo's trace.
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Let the scheduler place server and load.
    #[arg(long)]
    unpinned: bool,
    /// Where the results go, in a folder named after the day.
    #[arg(long, default_value = "bench/results", value_name = "DIR")]
    results: PathBuf,
}

/// One experiment.
struct Experiment {
    number: u8,
    name: &'static str,
    /// What it runs again.
    repeats: &'static str,
    /// Whether it runs without being named: the others take long, or ask for much memory.
    usual: bool,
    run: fn(&Lab, &mut Report) -> Result<()>,
}

const EXPERIMENTS: [Experiment; 8] = [
    Experiment {
        number: 1,
        name: "Values of geometrically distributed sizes",
        repeats: "SQLcached paper, figure 1",
        usual: true,
        run: geometric::run,
    },
    Experiment {
        number: 2,
        name: "Expiry of pages and users",
        repeats: "SQLcached paper, table 2",
        usual: true,
        run: table2::run,
    },
    Experiment {
        number: 3,
        name: "A content management system under edits",
        repeats: "SQLcached paper, the case study",
        usual: true,
        run: cms::run,
    },
    Experiment {
        number: 4,
        name: "Reads in shared memory",
        repeats: "swifty",
        usual: true,
        run: shared_memory::run,
    },
    Experiment {
        number: 5,
        name: "Longer keys, longer values, more readers",
        repeats: "memcached beside a database",
        usual: true,
        run: sweeps::run,
    },
    Experiment {
        number: 6,
        name: "Sequential writes and reads",
        repeats: "in-memory tables of a database server",
        usual: true,
        run: in_memory::run,
    },
    Experiment {
        number: 7,
        name: "Hits in equal memory",
        repeats: "traces of web applications",
        usual: false,
        run: hit_ratio::run,
    },
    Experiment {
        number: 8,
        name: "How cost grows",
        repeats: "threads, clients, rows, pipelines",
        usual: false,
        run: scaling::run,
    },
];

/// Runs the experiments and writes the report.
pub(crate) fn run(options: &Options) -> Result<()> {
    let chosen = chosen(options)?;
    let lab = Lab::new(options);
    lab.cores.pin_load()?;
    let mut report = Report::new("experiments");
    introduce(&lab, &mut report);
    let mut failed = Vec::new();
    let began = clock::now_ns();
    for (turn, experiment) in chosen.iter().enumerate() {
        let Experiment { number, name, repeats, .. } = experiment;
        println!("\n== {} of {}: experiment {number}, {name}", turn + 1, chosen.len());
        report.say(&format!("\n## {number}. {name}\n\nRepeats: {repeats}.\n"));
        let (noise, start) = (Noise::sample(), clock::now_ns());
        if let Err(failure) = (experiment.run)(&lab, &mut report) {
            report.say(&format!("**Failed: {failure}**"));
            failed.push(number.to_string());
        }
        let seconds = clock::seconds(clock::now_ns() - start);
        report.say(&format!("\nIt took {seconds:.0} s. Noise: {}.", noise.since()));
        let path = report.write(&options.results)?;
        println!("written: {}", path.display());
    }
    println!("\nall in {:.0} s", clock::seconds(clock::now_ns() - began));
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("failed: experiment {}", failed.join(", "))))
}

/// The experiments that the command line asks for, in order.
fn chosen(options: &Options) -> Result<Vec<&'static Experiment>> {
    if let Some(unknown) =
        options.only.iter().find(|&&number| EXPERIMENTS.iter().all(|one| one.number != number))
    {
        let known: Vec<String> =
            EXPERIMENTS.iter().map(|one| format!("{} {}", one.number, one.name)).collect();
        return Err(Failure::new(format!("there is no experiment {unknown}, but: {}", known.join("; "))));
    }
    let wanted = |one: &&Experiment| {
        if options.only.is_empty() { one.usual || options.full } else { options.only.contains(&one.number) }
    };
    Ok(EXPERIMENTS.iter().filter(wanted).collect())
}

fn introduce(lab: &Lab, report: &mut Report) {
    report.say("# Experiments\n");
    report.say(&format!("Machine: {}; {}.", machine::describe(), lab.cores.describe()));
    for kind in lab.kinds() {
        let version = kind.version().unwrap_or_else(|| "not found".into());
        report.say(&format!("- {}: {version}", kind.label()));
    }
    let effort = match lab.effort {
        Effort::Quick => "quick",
        Effort::Usual => "usual",
        Effort::Full => "full",
    };
    report.say(&format!(
        "\nA {effort} run: medians of {} paired, interleaved repetitions; in brackets, and as thin lines in the \
         pictures, the quartiles. CPU is the processor time of all threads of the server.",
        lab.repetitions
    ));
}

#[cfg(test)]
mod tests {
    use super::{EXPERIMENTS, Options, chosen};
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn numbers(arguments: &[&str]) -> Option<Vec<u8>> {
        let words = ["experiments"].iter().chain(arguments);
        let chosen = chosen(&Command::parse_from(words).options).ok()?;
        Some(chosen.iter().map(|one| one.number).collect())
    }

    #[test]
    fn the_list_is_in_order_and_flags_choose_from_it() {
        assert!(EXPERIMENTS.windows(2).all(|pair| pair[0].number < pair[1].number));
        let usual: Vec<u8> = EXPERIMENTS.iter().filter(|one| one.usual).map(|one| one.number).collect();
        assert_eq!(numbers(&["--quick"]), Some(usual));
        assert_eq!(numbers(&["--full"]).map(|all| all.len()), Some(EXPERIMENTS.len()));
        assert_eq!(numbers(&["--only", "2"]), Some(vec![2]));
        assert_eq!(numbers(&["--only", "99"]), None);
    }
}
