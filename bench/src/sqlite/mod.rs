//! The SQL layer beside plain SQLite's in-memory tables, in one process and one thread, without a socket.
//!
//! Three tables hold the same rows: ours, SQLite's with row numbers, and SQLite's `WITHOUT ROWID`. Each statement is
//! prepared once and run on all three in turn, slice by slice; a ratio is ours by the faster of SQLite's two, in
//! processor time of the thread.

mod cases;
mod sides;

use crate::clock;
use crate::failure::{Failure, Result};
use crate::summary::{Summary, digits, thousands};

use cases::{CASES, Case, Reach};
use sides::{Native, Ours, Side};

/// Slices of each measurement.
const SLICES: usize = 11;
/// Processor time of one slice: long enough for the clock, short enough that the machine is the same for all three.
const SLICE_NS: u64 = 20_000_000;
/// Slices of a statement that takes longer than one.
const LONG_SLICES: usize = 5;

/// What `sqlite` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Rows of the tables; may be given more than once.
    #[arg(long, default_values_t = [10_000, 1_000_000])]
    rows: Vec<u64>,
    /// Measure only the lines whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Run our side alone, for a profiler.
    #[arg(long)]
    alone: bool,
    /// The store's memory limit in MiB.
    #[arg(long, default_value_t = 2048)]
    memory_mib: u64,
}

/// Prints the table of figures.
pub(crate) fn run(options: &Options) -> Result<()> {
    println!(
        "| rows | statement | ours ns | SQLite rowid ns | SQLite without rowid ns | ratio to the faster | reach |"
    );
    println!("|---|---|---|---|---|---|---|");
    for &rows in &options.rows {
        let wanted = |case: &&Case| {
            options.only.as_deref().is_none_or(|only| case.name.contains(only)) && case.rows_min <= rows
        };
        let cases: Vec<&Case> = CASES.iter().filter(wanted).collect();
        let mut bench = Bench::open(rows, options, cases.iter().any(|case| case.joined))?;
        for case in cases {
            bench.measure(case)?;
        }
    }
    Ok(())
}

/// The three tables.
struct Bench {
    rows: u64,
    alone: bool,
    ours: Ours,
    rowid: Native,
    without: Native,
}

/// Nanoseconds of one statement, slice by slice.
#[derive(Default)]
struct Figures([Vec<f64>; 3]);

impl Bench {
    fn open(rows: u64, options: &Options, joined: bool) -> Result<Self> {
        let mut bench = Self {
            rows,
            alone: options.alone,
            ours: Ours::open(options.memory_mib)?,
            rowid: Native::open("")?,
            without: Native::open(" WITHOUT ROWID")?,
        };
        bench.each(|side| cases::fill(side, rows, joined))?;
        Ok(bench)
    }

    fn each(&mut self, mut step: impl FnMut(&mut dyn Side) -> Result<()>) -> Result<()> {
        step(&mut self.ours)?;
        if self.alone {
            return Ok(());
        }
        step(&mut self.rowid)?;
        step(&mut self.without)
    }

    fn measure(&mut self, case: &Case) -> Result<()> {
        let mut figures = Figures::default();
        let mut random = fastrand::Rng::with_seed(0x5eed);
        // The first run compiles, warms up and says how many runs make a slice.
        let once = timed(&mut self.ours, case, &mut random.clone(), self.rows, 1)?.max(100.0);
        let once = timed(&mut self.ours, case, &mut random.clone(), self.rows, 3)?.min(once);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive, rough count"
        )]
        let runs = ((SLICE_NS as f64 / once) as u64).max(1);
        let slices = if runs == 1 { LONG_SLICES } else { SLICES };
        for _ in 0..slices {
            let seed = random.u64(..);
            let mut at = 0;
            let rows = self.rows;
            let Figures(all) = &mut figures;
            self.each(|side| {
                let mut random = fastrand::Rng::with_seed(seed);
                all[at].push(timed(side, case, &mut random, rows, runs)?);
                at += 1;
                Ok(())
            })?;
        }
        figures.show(case, self.rows);
        Ok(())
    }
}

/// The mean of so many runs. Values are made, and rows that were taken put back, outside the measured time.
fn timed(side: &mut dyn Side, case: &Case, random: &mut fastrand::Rng, rows: u64, runs: u64) -> Result<f64> {
    let mut spent = 0;
    let mut left = runs;
    while left > 0 {
        let now = left.min(case.batch);
        let values: Vec<_> = (0..now).map(|_| (case.values)(random, rows)).collect();
        let began = clock::thread_cpu_ns();
        for values in &values {
            let found = side.run(case.sql, values)?;
            if case.answers.is_some_and(|answers| answers != found) {
                return Err(Failure::new(format!("{} answered {found} rows", case.sql)));
            }
        }
        spent += clock::thread_cpu_ns() - began;
        if let Some(restore) = case.restore {
            values.iter().try_for_each(|values| restore(side, values))?;
        }
        left -= now;
    }
    Ok(spent as f64 / runs as f64)
}

impl Figures {
    fn show(&self, case: &Case, rows: u64) {
        let Self([ours, rowid, without]) = self;
        let peer: Vec<f64> = rowid.iter().zip(without).map(|(a, b)| a.min(*b)).collect();
        let ratio = Summary::of_ratios(ours, &peer);
        let median = |figures: &[f64]| Summary::of(figures).median;
        let (holds, reach) = match case.reach {
            Reach::Ratio(reach) => (ratio.median <= reach, format!("<= {reach:.2}")),
            Reach::Nanoseconds(reach) => (median(ours) <= reach, format!("<= {} us", reach / 1_000.0)),
        };
        println!(
            "| {} | {} | {} | {} | {} | {:.2} ({:.2}-{:.2}) | {reach} {} |",
            thousands(rows as f64),
            case.name,
            digits(median(ours)),
            digits(median(rowid)),
            digits(median(without)),
            ratio.median,
            ratio.low,
            ratio.high,
            if holds { "holds" } else { "missed" },
        );
    }
}
