//! Instructions of the hottest requests, counted by valgrind: more than 5 % above the number in the file fails, unless
//! the change writes the new number, and why, into its commit.
//!
//! The count is the difference of two runs of different length, so that what a start takes is no part of it. It is that
//! of the development profile, which every run of the tests builds anyway: it tells what a change costs, not what the
//! released program takes.

use std::fs;
use std::process::Command;

use crate::Outcome;
use crate::metadata::{cargo, root};

/// The numbers that hold.
const FILE: &str = "crates/server/instructions.txt";
/// The examples that run requests, and the requests.
const PROGRAMS: [(&str, &[&str]); 2] = [("instructions", &SERVED), ("shared_reads", &["shared"])];
/// What the server's example runs.
const SERVED: [&str; 9] = [
    "get",
    "set",
    "binary-get",
    "binary-set",
    "sql-select",
    "sql-text",
    "sql-upsert",
    "sql-delete",
    "sql-cold",
];
/// Requests of the short run, and of the long one.
const RUNS: [u64; 2] = [2_000, 8_000];
/// So many per cent above its number fails.
const TOLERANCE_PER_CENT: u64 = 5;

/// The C library copies and compares bytes with what the processor has; the count must not depend on the machine.
const PLAIN_PROCESSOR: &str = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM";

/// Counts, and compares with the file.
pub(crate) fn check() -> Outcome {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        let why = "valgrind is not installed; make tools does it".to_owned();
        return Outcome { passed: 0, failures: Vec::new(), skipped: vec![why] };
    }
    // For the whole workspace, as the tests: with another choice of packages everything would be compiled again.
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--workspace"]);
    build.args(PROGRAMS.iter().flat_map(|(example, _)| ["--example", example]));
    if !build.status().is_ok_and(|status| status.success()) {
        return Outcome::broken("the examples that are counted do not build");
    }
    let numbers = fs::read_to_string(root().join(FILE)).unwrap_or_default();
    let lines = numbers.lines().filter(|line| !line.starts_with('#'));
    let known = lines.filter_map(|line| line.split_once(' ')).map(|(verb, number)| compare(verb, number));
    let results: Vec<Result<(), String>> = known.collect();
    if results.is_empty() {
        return Outcome::broken(format!("{FILE} has no numbers"));
    }
    let passed = results.iter().filter(|result| result.is_ok()).count();
    Outcome::new(passed, results.into_iter().filter_map(Result::err).collect())
}

/// Compares the count of one request with its number.
fn compare(verb: &str, number: &str) -> Result<(), String> {
    let expected: u64 = number.trim().parse().map_err(|_| format!("{FILE}: '{number}' is no number"))?;
    let [short, long] = RUNS.map(|requests| collected(verb, requests));
    let found = (long? - short?) / (RUNS[1] - RUNS[0]);
    println!("  {verb}: {found} instructions, {expected} in {FILE}");
    if found * 100 > expected * (100 + TOLERANCE_PER_CENT) {
        return Err(format!(
            "  {verb}: {found} instructions, {expected} in {FILE}; if that is meant, write the new number there and why \
             into the commit"
        ));
    }
    Ok(())
}

/// Instructions of a whole run.
fn collected(verb: &str, requests: u64) -> Result<u64, String> {
    let runs = PROGRAMS.iter().find(|(_, verbs)| verbs.contains(&verb));
    let (example, _) = runs.ok_or_else(|| format!("{FILE}: nothing runs '{verb}'"))?;
    let program = root().join("target/debug/examples").join(example);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    valgrind.env("GLIBC_TUNABLES", PLAIN_PROCESSOR);
    let output = valgrind.args([verb, &requests.to_string()]).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let counted = said.lines().find_map(|line| line.split_once("Collected :").map(|(_, count)| count.trim()));
    counted.and_then(|count| count.parse().ok()).ok_or_else(|| format!("  {verb}: valgrind says\n{said}"))
}
