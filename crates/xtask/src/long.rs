//! The random tests with more rounds, for as long as one likes: `make test-long`.

use std::time::{Duration, Instant};

use crate::metadata::root;
use crate::suites::{Program, Run, programs};

/// What a run takes when nothing else is asked for.
const MINUTES: u64 = 60;

/// Which tests do more, and how much: about ten times as much as in `make test`. No run is longer than some minutes, so
/// that the time that was asked for is kept.
struct More {
    package: &'static str,
    /// Only tests whose names contain one of these; all of them if there are none.
    filters: &'static [&'static str],
    /// What the tests read. One name has another usual number in each test, hence the rows by test.
    variables: &'static [(&'static str, &'static str)],
}

const MORE: &[More] = &[
    more("arena", &[], &[("FUZZ_SECONDS", "40"), ("READS", "40000000")]),
    more("store", &[], &[("FUZZ_SECONDS", "40"), ("LOADS", "40"), ("ROUNDS", "10000")]),
    more("sqltext", &[], &[("FUZZ_SECONDS", "40")]),
    more("memcache", &[], &[("FUZZ_SECONDS", "40")]),
    more("postgres", &[], &[("FUZZ_SECONDS", "40")]),
    more("engine", &[], &[("OPERATIONS", "1000000")]),
    more("sql", &["differential", "generated"], &[("FUZZ_SECONDS", "40"), ("STATEMENTS", "100000")]),
    more(
        "sql",
        &["bank", "blind", "crashes"],
        &[("OPERATIONS", "300000"), ("ROUNDS", "3000"), ("CRASHES", "8000")],
    ),
    more("server", &["generated", "hostile", "random"], &[("FUZZ_SECONDS", "40"), ("STATEMENTS", "20000")]),
    more("cluster", &[], &[("ROUNDS", "300"), ("CACHES", "1000")]),
    more("sqlcached", &["cluster::soak"], &[("INVALIDATIONS", "2000000")]),
    more("sqlcached", &["crash::"], &[("KILLS", "1000")]),
    more("sqlcached", &["migrations::", "slots::kill_9"], &[("KILLS", "60")]),
    more("sqlcached", &["linearizability::"], &[("OPERATIONS", "100000")]),
    more("sqlcached", &["binary::", "differential::"], &[("ACTS", "600000")]),
    more("sqlcached", &["outage"], &[("COMMITS", "500000")]),
    more("sqlcached", &["random_definitions"], &[("CHANGES", "3600"), ("DEFINITIONS", "120")]),
    more("sqlcached", &["no_answer_is_older"], &[("CHECKED_SECONDS", "120")]),
    more("sqlcached", &["no_version_is_older"], &[("READS", "1000000")]),
];

const fn more(
    package: &'static str,
    filters: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
) -> More {
    More { package, filters, variables }
}

/// `[--minutes N]`: runs the programs again and again, each time with other seeds, until the time is over.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let minutes = match arguments {
        [] => MINUTES,
        ["--minutes", number] => number.parse().map_err(|_| format!("'{number}' is no number of minutes"))?,
        _ => return Err("usage: cargo xtask long [--minutes N]".into()),
    };
    let end = Instant::now() + Duration::from_secs(minutes * 60);
    let programs = programs()?;
    let runs: Vec<Run<'_>> = MORE.iter().flat_map(|more| runs(more, &programs)).collect();
    let mut failed = 0;
    for (number, run) in runs.iter().cycle().enumerate() {
        if Instant::now() >= end {
            break;
        }
        failed += usize::from(!holds(number, run));
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} runs failed")) }
}

/// A run of each program of the package that has such tests.
fn runs<'p>(more: &More, programs: &'p [Program]) -> impl Iterator<Item = Run<'p>> {
    let (package, filters, variables) = (more.package, more.filters, more.variables);
    programs
        .iter()
        .filter(move |program| program.package == package && (filters.is_empty() || program.kind == "test"))
        .map(move |program| Run { program, filters, variables })
}

/// Runs a program, and prints how it came out. Each run has a log of its own, with its seeds.
fn holds(number: usize, run: &Run<'_>) -> bool {
    let folder = root().join("target/ci/long");
    let log = folder.join(format!("{number}-{}.log", run.name()));
    let start = Instant::now();
    let outcome = run.outcome(&log, &folder.join("skipped"));
    let (name, passed, failed) = (run.name(), outcome.passed, outcome.failures.len());
    let seconds = start.elapsed().as_secs_f64();
    let tests = run.filters.join(" ");
    println!("{number:>3} {name:<34} {passed:>4} passed  {failed:>3} failed  {seconds:>6.1} s  {tests}");
    for failure in &outcome.failures {
        println!("{failure}\n  its seeds: {}", log.display());
    }
    outcome.failures.is_empty()
}
