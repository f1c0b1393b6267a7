//! Steps that are a run of cargo: formatting, lints, the examples in the documentation.

use std::fs;

use crate::Outcome;
use crate::metadata::{cargo, root};
use crate::suites::{create, judge, tail};

pub(crate) fn fmt() -> Outcome {
    plain("fmt", &["fmt", "--all", "--check"])
}

pub(crate) fn clippy() -> Outcome {
    plain("clippy", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
}

/// The examples in the documentation of the crates.
pub(crate) fn doc_tests() -> Outcome {
    match logged("doctest", &["test", "--workspace", "--locked", "--doc", "--no-fail-fast"]) {
        Ok((succeeded, log)) => judge(succeeded, &log, "doctest"),
        Err(why) => Outcome::broken(why),
    }
}

/// A step that succeeds or not.
fn plain(step: &str, arguments: &[&str]) -> Outcome {
    match logged(step, arguments) {
        Ok((true, _)) => Outcome::new(1, Vec::new()),
        Ok((false, log)) => Outcome::broken(tail(&log)),
        Err(why) => Outcome::broken(why),
    }
}

/// Runs cargo with its output in `target/ci/<step>.log`; gives back whether it succeeded and the log.
fn logged(step: &str, arguments: &[&str]) -> Result<(bool, String), String> {
    let log = root().join(format!("target/ci/{step}.log"));
    let explain = |error: std::io::Error| format!("{}: {error}", log.display());
    let file = create(&log)?;
    let errors = file.try_clone().map_err(explain)?;
    let mut command = cargo();
    command.args(arguments).env("CARGO_TERM_COLOR", "never").stdout(file).stderr(errors);
    let status = command.status().map_err(explain)?;
    let text = fs::read(&log).map_err(explain)?;
    Ok((status.success(), String::from_utf8_lossy(&text).into_owned()))
}
