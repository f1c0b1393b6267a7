//! What `make test` runs.
//!
//! `cargo xtask ci` takes the steps of [`ci::STEPS`] in order, cheapest and most telling first, and prints one
//! line for each with its count and its time; the last line is `N passed, N failed`. What a step said goes to
//! `target/ci/<step>.log`, and to the screen when it failed.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for people at a terminal")]
#![allow(clippy::disallowed_methods, reason = "build automation reads the environment and the wall clock")]

mod arrows;
mod cargo_steps;
mod ci;
mod install;
mod instructions;
mod licences;
mod links;
mod long;
mod metadata;
mod packages;
mod prose;
mod quick;
mod rooms;
mod site;
mod suites;
mod tidy;
mod tools;
mod version;

use std::process::ExitCode;

/// How one step came out.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Checks that held.
    pub(crate) passed: usize,
    /// One paragraph for each check that did not.
    pub(crate) failures: Vec<String>,
    /// One reason for each check that this machine cannot make.
    pub(crate) skipped: Vec<String>,
}

impl Outcome {
    /// `count` checks that held, and what did not.
    pub(crate) fn new(passed: usize, failures: Vec<String>) -> Self {
        Self { passed, failures, skipped: Vec::new() }
    }

    /// One check that could not even be made.
    pub(crate) fn broken(why: impl Into<String>) -> Self {
        Self::new(0, vec![why.into()])
    }

    /// Both as one.
    pub(crate) fn and(mut self, mut other: Self) -> Self {
        self.passed += other.passed;
        self.failures.append(&mut other.failures);
        self.skipped.append(&mut other.skipped);
        self
    }
}

const USAGE: &str = "usage: cargo xtask ci [step...] | tidy | prose | quick CRATE | long [--minutes N] | tools [--bench] | install-client [--debug] PREFIX [DESTDIR] | \
                     packages [--debug] [--only daemon|clients] [--program PATH] [--machine amd64|arm64] [--revision N] [FOLDER] | \
                     site | version VERSION | release VERSION [--untagged] [FOLDER] | publish VERSION";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let good = match names.as_slice() {
        ["ci", only @ ..] => ci::run(only),
        ["tidy"] => ci::run(ci::TIDY),
        ["prose"] => said("prose", prose::report()),
        ["tools"] => said("tools", tools::install()),
        ["install-client", places @ ..] => said("install-client", install::run(places)),
        ["packages", places @ ..] => said("packages", packages::run(places)),
        ["release", arguments @ ..] => said("release", packages::release(arguments)),
        ["publish", version] => said("publish", packages::publish(version)),
        ["site"] => said("site", site::build()),
        ["version", version] => said("version", version::change(version)),
        ["quick", names @ ..] => said("quick", quick::run(names)),
        ["long", arguments @ ..] => said("long", long::run(arguments)),
        ["tools", "--bench"] => {
            tools::install_peers();
            true
        }
        _ => {
            eprintln!("{USAGE}");
            false
        }
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints why a command failed. True when it did not.
fn said(command: &str, outcome: Result<(), String>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(why) => {
            eprintln!("xtask {command}: {why}");
            false
        }
    }
}
