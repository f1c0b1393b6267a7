//! Steps that are a run of cargo: formatting, lints, tests.

use std::fs::{self, File};
use std::path::PathBuf;

use crate::Outcome;
use crate::metadata::{cargo, root};

/// How much of a failed step's output goes to the screen; all of it is in the log.
const TAIL_LINES: usize = 80;

/// A file to which a test that cannot run here appends its reason.
const SKIPPED_FILE: &str = "SQLCACHED_SKIPPED_FILE";

pub(crate) fn fmt() -> Outcome {
    plain("fmt", &["fmt", "--all", "--check"])
}

pub(crate) fn clippy() -> Outcome {
    plain("clippy", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
}

/// The tests inside the crates.
pub(crate) fn unit_tests() -> Outcome {
    tests("unit", &[], &["test", "--workspace", "--locked", "--lib", "--bins", "--no-fail-fast"])
}

/// The examples in the documentation of the crates.
pub(crate) fn doc_tests() -> Outcome {
    tests("doctest", &[], &["test", "--workspace", "--locked", "--doc", "--no-fail-fast"])
}

/// The tests with the real daemon and real clients, and any other file in a crate's `tests` folder.
pub(crate) fn integration_tests() -> Outcome {
    tests("it", &[], &["test", "--workspace", "--locked", "--test", "*", "--no-fail-fast"])
}

/// What is said to the tests and to the daemons that they start, so that SQLite runs every statement.
const BY_SQLITE: &[(&str, &str)] = &[("SQLCACHED_NATIVE_EXECUTION", "off")];

/// The tests of SQL and those with PostgreSQL's drivers once more, with SQLite for every statement: both executors must
/// mean the same.
pub(crate) fn tests_by_sqlite_alone() -> Outcome {
    let common = ["test", "--locked", "--no-fail-fast", "--package"];
    let of_sql = [&common[..], &["sql", "--test", "*"]].concat();
    let of_drivers = [&common[..], &["sqlcached", "--test", "it", "drivers::"]].concat();
    tests("sqlite", BY_SQLITE, &of_sql).and(tests("sqlite-drivers", BY_SQLITE, &of_drivers))
}

/// Runs cargo with its output in `target/ci/<step>.log`; gives back whether it succeeded and the log.
fn logged(step: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Result<(bool, String), String> {
    let folder = root().join("target/ci");
    let log: PathBuf = folder.join(format!("{step}.log"));
    let explain = |error: std::io::Error| format!("{}: {error}", log.display());
    fs::create_dir_all(&folder).map_err(explain)?;
    let file = File::create(&log).map_err(explain)?;
    let errors = file.try_clone().map_err(explain)?;
    let skipped = folder.join(format!("{step}.skipped"));
    let _ = fs::remove_file(&skipped);
    let status = cargo()
        .args(arguments)
        .env("CARGO_TERM_COLOR", "never")
        .env(SKIPPED_FILE, &skipped)
        .envs(variables.iter().copied())
        .stdout(file)
        .stderr(errors)
        .status()
        .map_err(explain)?;
    let text = fs::read(&log).map_err(explain)?;
    Ok((status.success(), String::from_utf8_lossy(&text).into_owned()))
}

fn plain(step: &str, arguments: &[&str]) -> Outcome {
    match logged(step, &[], arguments) {
        Ok((true, _)) => Outcome::new(1, Vec::new()),
        Ok((false, log)) => Outcome::broken(tail(&log)),
        Err(why) => Outcome::broken(why),
    }
}

fn tests(step: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Outcome {
    let (succeeded, log) = match logged(step, variables, arguments) {
        Ok(result) => result,
        Err(why) => return Outcome::broken(why),
    };
    let (passed, failed) = tally(&log);
    let mut failures: Vec<String> =
        failed.iter().map(|name| format!("  failed: {name}\n{}", said(&log, name))).collect();
    if !succeeded && failures.is_empty() {
        failures.push(tail(&log));
    }
    let reasons = fs::read_to_string(root().join(format!("target/ci/{step}.skipped"))).unwrap_or_default();
    let skipped: Vec<String> = reasons.lines().map(str::to_owned).collect();
    // A test that skipped itself looks passed to cargo.
    Outcome { passed: passed.saturating_sub(skipped.len()), failures, skipped }
}

/// Counts the lines that Rust's test runner prints: how many passed, and the names of those that did not.
fn tally(log: &str) -> (usize, Vec<String>) {
    let mut passed = 0;
    let mut failed = Vec::new();
    for line in log.lines() {
        let Some(rest) = line.strip_prefix("test ") else { continue };
        if rest.ends_with("... ok") {
            passed += 1;
        } else if let Some(name) = rest.strip_suffix("... FAILED") {
            failed.push(name.trim().to_owned());
        }
    }
    (passed, failed)
}

/// What a failed test printed: the runner shows it under a heading with the test's name.
fn said(log: &str, name: &str) -> String {
    let heading = format!("---- {name} stdout ----");
    let lines = log.lines().skip_while(|line| *line != heading).skip(1);
    let text: Vec<&str> =
        lines.take_while(|line| !line.starts_with("---- ") && *line != "failures:").collect();
    tail(&text.join("\n"))
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::{said, tally};

    #[test]
    fn a_failure_bears_what_its_test_printed() {
        let log = "test c ... FAILED\n\nfailures:\n\n---- c stdout ----\nwhy\n\n---- d stdout ----\nother\n\nfailures:\n    c\n";
        assert_eq!(said(log, "c").trim(), "why");
        assert_eq!(said(log, "d").trim(), "other");
    }

    #[test]
    fn counts_what_the_runner_prints() {
        let log = "running 3 tests\ntest a::b ... ok\ntest c ... FAILED\n\
                   test d ... ignored\ntest e - f (line 3) ... ok\n";
        assert_eq!(tally(log), (2, vec!["c".to_owned()]));
    }
}
