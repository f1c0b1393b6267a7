//! The list of steps and the line printed for each.

use std::thread;
use std::time::{Duration, Instant};

use crate::{
    Outcome, arrows, cargo_steps, instructions, licences, links, prose, rooms, site, suites, tidy, tools,
};

/// A check with a name.
struct Step {
    name: &'static str,
    /// What it takes on two idle processors, in seconds, in a clone where nothing is compiled yet. It is printed beside
    /// what the step took, and fails nothing: machines differ.
    budget: u64,
    take: fn() -> Outcome,
}

/// The steps of a group are taken side by side, the groups one after the other. Cheapest and most telling first: a
/// forgotten `cargo fmt` is said before anything is compiled. Programs are installed while the compiler works.
const GROUPS: &[&[Step]] = &[
    &[step("fmt", 5, cargo_steps::fmt)],
    &[step("tidy", 5, tidy::check)],
    &[step("prose", 5, prose::check)],
    &[step("arrows", 5, arrows::check)],
    &[step("rooms", 5, rooms::check)],
    &[step("licences", 5, licences::check)],
    &[step("links", 5, links::check)],
    &[step("tools", 300, tools::check), step("build", 480, suites::build)],
    &[step("clippy", 120, cargo_steps::clippy), step("site", 30, site::check)],
    &[step("unit", 20, suites::unit_tests)],
    &[step("doctest", 30, cargo_steps::doc_tests)],
    &[step("it", 450, suites::integration_tests)],
    &[step("sqlite", 60, suites::tests_by_sqlite_alone)],
    &[step("callgrind", 60, instructions::check)],
];

/// The steps that compile nothing.
pub(crate) const TIDY: &[&str] = &["fmt", "tidy", "prose", "arrows", "rooms", "licences", "links"];

const fn step(name: &'static str, budget: u64, take: fn() -> Outcome) -> Step {
    Step { name, budget, take }
}

/// Takes the steps named in `only`, or all of them, and prints the sum. True when nothing failed.
pub(crate) fn run(only: &[&str]) -> bool {
    let steps = || GROUPS.iter().copied().flatten();
    if let Some(unknown) = only.iter().find(|name| !steps().any(|step| step.name == **name)) {
        let known: Vec<&str> = steps().map(|step| step.name).collect();
        println!("no step '{unknown}'; there are: {}", known.join(", "));
        return false;
    }
    let start = Instant::now();
    let mut passed = 0;
    let mut failed: Vec<String> = Vec::new();
    for group in GROUPS {
        let chosen: Vec<&Step> =
            group.iter().filter(|step| only.is_empty() || only.contains(&step.name)).collect();
        for (step, outcome) in chosen.iter().zip(take(&chosen)) {
            passed += outcome.passed;
            failed.extend(outcome.failures.iter().map(|why| format!("{}: {}", step.name, first_line(why))));
        }
    }
    // Once more where the eye is when it ends: what failed may stand thousands of lines above.
    for failure in &failed {
        println!("{failure}");
    }
    println!("{:.0} s in all", start.elapsed().as_secs_f64());
    println!("{passed} passed, {} failed", failed.len());
    failed.is_empty()
}

/// Takes steps side by side, and prints a line for each when it ends.
fn take(steps: &[&Step]) -> Vec<Outcome> {
    let one = |step: &Step| {
        let start = Instant::now();
        let outcome = (step.take)();
        report(step, &outcome, start.elapsed());
        outcome
    };
    thread::scope(|scope| {
        let running: Vec<_> = steps.iter().map(|step| scope.spawn(|| one(step))).collect();
        running
            .into_iter()
            .map(|step| step.join().unwrap_or_else(|_| Outcome::broken("the step itself panicked")))
            .collect()
    })
}

/// Prints how a step came out.
fn report(step: &Step, outcome: &Outcome, took: Duration) {
    let skipped = match outcome.skipped.len() {
        0 => String::new(),
        count => format!("  {count} skipped"),
    };
    let (name, passed, failed) = (step.name, outcome.passed, outcome.failures.len());
    let (seconds, budget) = (took.as_secs_f64(), step.budget);
    println!("{name:<10} {passed:>6} passed  {failed:>3} failed{skipped}  {seconds:>7.1} s of {budget} s");
    for reason in &outcome.skipped {
        println!("  skipped: {reason}");
    }
    for failure in &outcome.failures {
        println!("{failure}");
    }
}

fn first_line(text: &str) -> &str {
    text.trim_start().lines().next().unwrap_or_default()
}
