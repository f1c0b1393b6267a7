//! The loop of somebody who changes one crate: `make quick CRATE=sql`.

use crate::ci;
use crate::metadata::{cargo, metadata, packages, text};

/// What a fuzz run takes here; `make test` gives it some seconds.
const FUZZ_SECONDS: &str = "0.2";

/// `CRATE`: formatting, tidiness, and the tests of the crate.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let [name] = arguments else { return Err("usage: make quick CRATE=sql".into()) };
    let metadata = metadata(false)?;
    let known: Vec<&str> = packages(&metadata).iter().map(|package| text(package, "name")).collect();
    if !known.contains(name) {
        return Err(format!("there is no crate '{name}'; there are: {}", known.join(", ")));
    }
    if !ci::run(ci::TIDY) {
        return Err("it is not tidy".into());
    }
    let mut tests = cargo();
    tests.args(["test", "--locked", "--package", name, "--lib", "--bins", "--tests"]);
    let status =
        tests.env("FUZZ_SECONDS", FUZZ_SECONDS).status().map_err(|error| format!("cargo test: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("the tests of {name} failed")) }
}
