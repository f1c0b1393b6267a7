//! The list of steps and the line printed for each.

use std::time::Instant;

use crate::{Outcome, arrows, cargo_steps, instructions, licences, links, prose, rooms, tidy};

/// A named step and the function that takes it.
type Step = (&'static str, fn() -> Outcome);

/// Cheapest and most telling first: a forgotten `cargo fmt` is said before anything is compiled.
const STEPS: &[Step] = &[
    ("fmt", cargo_steps::fmt),
    ("tidy", tidy::check),
    ("prose", prose::check),
    ("arrows", arrows::check),
    ("rooms", rooms::check),
    ("licences", licences::check),
    ("links", links::check),
    ("clippy", cargo_steps::clippy),
    ("unit", cargo_steps::unit_tests),
    ("doctest", cargo_steps::doc_tests),
    ("it", cargo_steps::integration_tests),
    ("sqlite", cargo_steps::tests_by_sqlite_alone),
    ("callgrind", instructions::check),
];

/// Takes the steps named in `only`, or all of them, and prints the sum. True when nothing failed.
pub(crate) fn run(only: &[&str]) -> bool {
    if let Some(unknown) = only.iter().find(|name| !STEPS.iter().any(|(step, _)| step == *name)) {
        let known: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
        println!("no step '{unknown}'; there are: {}", known.join(", "));
        return false;
    }
    let mut passed = 0;
    let mut failed: Vec<String> = Vec::new();
    for (name, step) in STEPS.iter().filter(|(name, _)| only.is_empty() || only.contains(name)) {
        let start = Instant::now();
        let outcome = step();
        let seconds = start.elapsed().as_secs_f64();
        let skipped = match outcome.skipped.len() {
            0 => String::new(),
            count => format!("  {count} skipped"),
        };
        println!(
            "{name:<10} {:>6} passed  {:>3} failed{skipped}  {seconds:>7.1} s",
            outcome.passed,
            outcome.failures.len()
        );
        for reason in &outcome.skipped {
            println!("  skipped: {reason}");
        }
        for failure in &outcome.failures {
            println!("{failure}");
        }
        passed += outcome.passed;
        failed.extend(outcome.failures.iter().map(|failure| format!("{name}: {}", first_line(failure))));
    }
    // Once more where the eye is when it ends: what failed may stand thousands of lines above.
    for failure in &failed {
        println!("{failure}");
    }
    println!("{passed} passed, {} failed", failed.len());
    failed.is_empty()
}

fn first_line(text: &str) -> &str {
    text.trim_start().lines().next().unwrap_or_default()
}
