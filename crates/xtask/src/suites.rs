//! The test programs: compiled once for all steps, and run side by side.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

use serde_json::Value;

use crate::Outcome;
use crate::metadata::{cargo, root, text};

/// How much of a failed program's output goes to the screen; all of it is in the log.
const TAIL_LINES: usize = 80;
/// How much of a failed test's words: several failures are to be read at once.
const SAID_FIRST: usize = 15;
const SAID_LAST: usize = 25;
const LINE_CHARS: usize = 300;

/// A file to which a test that cannot run here appends its reason.
const SKIPPED_FILE: &str = "SQLCACHED_SKIPPED_FILE";

/// So many programs run at once: while one waits for its servers, the other computes.
const LANES: usize = 2;

/// The tests of this package start daemons, servers and browsers, and mostly wait for them.
const WAITS: &str = "sqlcached";
/// So many of its tests run at once for each processor.
const WAITING_TESTS: usize = 2;

/// What is said to the tests and to the daemons that they start, so that SQLite runs every statement.
const BY_SQLITE: &[(&str, &str)] = &[("SQLCACHED_NATIVE_EXECUTION", "off")];

/// A compiled test program.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) package: String,
    target: String,
    /// `lib`, `bin` or `test`.
    pub(crate) kind: String,
    executable: PathBuf,
    /// The package's folder: cargo runs tests there.
    folder: PathBuf,
}

/// One run of a test program.
#[derive(Debug)]
pub(crate) struct Run<'p> {
    pub(crate) program: &'p Program,
    /// Only tests whose names contain one of these; all of them if there are none.
    pub(crate) filters: &'static [&'static str],
    pub(crate) variables: &'static [(&'static str, &'static str)],
}

/// Compiles everything that the other steps run.
pub(crate) fn build() -> Outcome {
    match programs() {
        Ok(programs) => Outcome::new(programs.len(), Vec::new()),
        Err(why) => Outcome::broken(why),
    }
}

/// The tests inside the crates.
pub(crate) fn unit_tests() -> Outcome {
    chosen("unit", |program| (program.kind != "test").then_some(Run::all(program)))
}

/// The tests with the real daemon and real clients, and any other file in a crate's `tests` folder.
pub(crate) fn integration_tests() -> Outcome {
    chosen("it", |program| (program.kind == "test").then_some(Run::all(program)))
}

/// The tests of SQL and those with PostgreSQL's drivers once more, with SQLite for every statement: both executors
/// must mean the same.
pub(crate) fn tests_by_sqlite_alone() -> Outcome {
    chosen("sqlite", |program| {
        let filters: &[&str] = match (program.package.as_str(), program.kind.as_str()) {
            ("sql", "test") => &[],
            ("sqlcached", "test") => &["drivers::"],
            _ => return None,
        };
        Some(Run { program, filters, variables: BY_SQLITE })
    })
}

/// Runs what `choose` makes of the programs.
fn chosen(step: &str, choose: impl Fn(&Program) -> Option<Run<'_>>) -> Outcome {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(why) => return Outcome::broken(why),
    };
    run_all(step, &programs.iter().filter_map(choose).collect::<Vec<_>>())
}

/// Compiles the test programs. One call for the whole workspace: with another choice of packages, dependencies have
/// other features, and all that uses them is compiled again.
pub(crate) fn programs() -> Result<Vec<Program>, String> {
    let mut build = cargo();
    build.args([
        "test",
        "--workspace",
        "--locked",
        "--no-run",
        "--message-format",
        "json-render-diagnostics",
    ]);
    let log = root().join("target/ci/build.log");
    let errors = create(&log)?;
    let output = build.stderr(errors).output().map_err(|error| format!("cargo test --no-run: {error}"))?;
    if !output.status.success() {
        return Err(tail(&fs::read_to_string(&log).unwrap_or_default()));
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut programs: Vec<Program> = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter_map(|it| program(&it))
        .collect();
    // What takes longest begins first.
    programs.sort_by_key(|program| program.package != WAITS);
    Ok(programs)
}

/// The program of a message of cargo's, if it is a test program.
fn program(message: &Value) -> Option<Program> {
    if !message["profile"]["test"].as_bool().unwrap_or(false) {
        return None;
    }
    let manifest = Path::new(text(message, "manifest_path"));
    let folder = manifest.parent()?.to_path_buf();
    let target = &message["target"];
    let kind = target["kind"][0].as_str()?;
    let kind = if matches!(kind, "bin" | "test") { kind } else { "lib" };
    Some(Program {
        package: package_name(text(message, "package_id")).to_owned(),
        target: text(target, "name").to_owned(),
        kind: kind.to_owned(),
        executable: PathBuf::from(message["executable"].as_str()?),
        folder,
    })
}

/// The name in `path+file:///x/crates/sql#0.1.0` or `path+file:///x/bench#sqlcached-bench@0.1.0`.
fn package_name(id: &str) -> &str {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next().unwrap_or(place),
    }
}

impl<'p> Run<'p> {
    /// All tests of a program.
    fn all(program: &'p Program) -> Self {
        Self { program, filters: &[], variables: &[] }
    }

    /// Runs it with its output in `log`; gives back whether it succeeded.
    fn run(&self, log: &Path, skipped: &Path) -> Result<bool, String> {
        let file = create(log)?;
        let errors = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        let mut command = Command::new(&self.program.executable);
        command.current_dir(&self.program.folder).args(self.filters).stdout(file).stderr(errors);
        command.args(["--test-threads", &self.threads().to_string()]);
        command.env(SKIPPED_FILE, skipped).envs(self.variables.iter().copied());
        command.env("CARGO_MANIFEST_DIR", &self.program.folder);
        let status = command.status().map_err(|error| format!("{}: {error}", self.name()))?;
        Ok(status.success())
    }

    /// Runs it and reads what it said.
    pub(crate) fn outcome(&self, log: &Path, skipped: &Path) -> Outcome {
        match self.run(log, skipped) {
            Ok(succeeded) => {
                let said = fs::read(log).unwrap_or_default();
                judge(succeeded, &String::from_utf8_lossy(&said), &self.name())
            }
            Err(why) => Outcome::broken(why),
        }
    }

    /// How many of its tests run at once.
    fn threads(&self) -> usize {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        if self.program.package == WAITS { processors * WAITING_TESTS } else { processors }
    }

    pub(crate) fn name(&self) -> String {
        format!("{}-{}-{}", self.program.package, self.program.kind, self.program.target)
    }
}

/// Runs test programs, some at once. What they say is in `target/ci/<step>.log`, one after the other.
fn run_all(step: &str, runs: &[Run<'_>]) -> Outcome {
    let folder = root().join("target/ci").join(step);
    let skipped = root().join(format!("target/ci/{step}.skipped"));
    let _ = fs::remove_dir_all(&folder);
    let _ = fs::remove_file(&skipped);
    let outcomes: Mutex<Vec<(usize, Outcome)>> = Mutex::default();
    let waiting = Mutex::new(runs.iter().enumerate());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some((number, run)) = next() {
                    let outcome = run.outcome(&folder.join(format!("{}.log", run.name())), &skipped);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((number, outcome));
                }
            });
        }
    });
    join_logs(step, &folder, runs);
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(number, _)| *number);
    let mut sum = outcomes.into_iter().fold(Outcome::default(), |sum, (_, outcome)| sum.and(outcome));
    let reasons = fs::read_to_string(&skipped).unwrap_or_default();
    sum.skipped = reasons.lines().map(str::to_owned).collect();
    // A test that skipped itself looks passed to the runner.
    sum.passed = sum.passed.saturating_sub(sum.skipped.len());
    sum
}

/// One log for a step, as its programs are listed.
fn join_logs(step: &str, folder: &Path, runs: &[Run<'_>]) {
    let mut whole = Vec::new();
    for run in runs {
        whole.extend_from_slice(format!("     Running {}\n", run.name()).as_bytes());
        whole.extend(fs::read(folder.join(format!("{}.log", run.name()))).unwrap_or_default());
    }
    let _ = fs::write(root().join(format!("target/ci/{step}.log")), whole);
}

/// What a run of tests means, by its end and its log.
pub(crate) fn judge(succeeded: bool, log: &str, name: &str) -> Outcome {
    let (passed, failed) = tally(log);
    let mut failures: Vec<String> =
        failed.iter().map(|test| format!("  failed: {test}\n{}", said(log, test))).collect();
    if !succeeded && failures.is_empty() {
        failures.push(format!("  failed: {name}\n{}", tail(log)));
    }
    Outcome::new(passed, failures)
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
    let text = lines.take_while(|line| !line.starts_with("---- ") && *line != "failures:");
    both_ends(&text.filter(|line| !is_of_backtrace(line)).collect::<Vec<_>>())
}

/// Whether a line names a call: a test's own words say more, and several failures are to be read at once.
fn is_of_backtrace(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    number || line.starts_with("at ") || line.starts_with("note: ") || line == "stack backtrace:"
}

/// How a text begins, which is why a test failed, and how it ends, which is what its servers said.
fn both_ends(lines: &[&str]) -> String {
    let (first, last) = (SAID_FIRST.min(lines.len()), lines.len().saturating_sub(SAID_LAST));
    let between = if last > first { vec!["..."] } else { Vec::new() };
    let lines = lines[..first].iter().chain(&between).chain(&lines[last.max(first)..]);
    let cut =
        |line: &&str| line.char_indices().nth(LINE_CHARS).map_or(*line, |(end, _)| &line[..end]).to_owned();
    lines.map(cut).collect::<Vec<_>>().join("\n")
}

/// The end of a text.
pub(crate) fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// A new file, with its folder.
pub(crate) fn create(path: &Path) -> Result<File, String> {
    let explain = |error: std::io::Error| format!("{}: {error}", path.display());
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(explain)?;
    File::create(path).map_err(explain)
}

#[cfg(test)]
mod tests {
    use super::{package_name, said, tally};

    #[test]
    fn a_failure_bears_what_its_test_printed() {
        let log = "test c ... FAILED\n\nfailures:\n\n---- c stdout ----\nwhy\n\n---- d stdout ----\nother\n\nfailures:\n    c\n";
        assert_eq!(said(log, "c").trim(), "why");
        assert_eq!(said(log, "d").trim(), "other");
    }

    #[test]
    fn of_many_words_the_first_and_the_last_are_shown() {
        let said = (0..100).map(|line| format!("word {line}")).collect::<Vec<_>>().join("\n");
        let log = format!(
            "---- c stdout ----\nwhy\nstack backtrace:\n   0: run\n             at ./a.rs:1:2\n{said}\nfailures:\n"
        );
        let shown = super::said(&log, "c");
        assert!(shown.starts_with("why\nword 0\n") && shown.ends_with("word 99"), "{shown}");
        assert_eq!(shown.lines().count(), super::SAID_FIRST + 1 + super::SAID_LAST);
    }

    #[test]
    fn counts_what_the_runner_prints() {
        let log = "running 3 tests\ntest a::b ... ok\ntest c ... FAILED\n\
                   test d ... ignored\ntest e - f (line 3) ... ok\n";
        assert_eq!(tally(log), (2, vec!["c".to_owned()]));
    }

    #[test]
    fn a_package_is_named_by_its_id() {
        assert_eq!(package_name("path+file:///src/crates/sql#0.1.0"), "sql");
        assert_eq!(package_name("path+file:///src/bench#sqlcached-bench@0.1.0"), "sqlcached-bench");
    }
}
