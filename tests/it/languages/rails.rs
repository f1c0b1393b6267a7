//! The gem: the tests that Rails asks of its own cache and session stores, ours, and those of Rails again while the
//! daemon restarts. Rails is Debian's.

use std::process::Command;

use super::{HELLO, client, fetched, succeed, tell};
use crate::daemon::{Daemon, PROGRAM};
use crate::seed;

/// Runs files of `clients/ruby/test` at a daemon of their own; there must be so many tests, and none may be skipped.
fn minitest(files: &[&str], at_least: usize, arguments: &[&str]) {
    let daemon = Daemon::start(&[]);
    let (mut count, mut said) = (0, String::new());
    for file in files {
        let mut command = Command::new("ruby");
        command.arg(client("ruby/test").join(file)).args(arguments).current_dir(client("ruby"));
        command.env("SQLCACHED_SUITES", fetched("clients-ruby")).env("SQLCACHED_PROGRAM", PROGRAM);
        command.env("SEED", seed().to_string()).env("TMPDIR", &daemon.folder.0);
        tell(&mut command, &daemon);
        let (out, error) = succeed(&command);
        count += runs(&out).unwrap_or_else(|| panic!("{file}\n{out}{error}"));
        said.extend([out, error]);
    }
    // The seeds of random tests.
    println!("{said}");
    assert!(count >= at_least, "{count} tests were run");
}

/// The tests of Minitest's last line, `224 runs, 631 assertions, 0 failures, 0 errors, 0 skips`, if none failed or was
/// skipped.
fn runs(said: &str) -> Option<usize> {
    let line = said.lines().find(|line| line.ends_with(" 0 failures, 0 errors, 0 skips"))?;
    line.split_once(" runs,")?.0.parse().ok()
}

#[test]
fn rails_suite_of_caches() {
    minitest(&["suites/cache_test.rb"], 212, &[]);
}

#[test]
fn rails_suites_of_sessions() {
    minitest(&["suites/sessions_test.rb"], 19, &[]);
}

/// A restart changes no result: a relay restarts the daemon at requests that are drawn by lot.
#[test]
fn rails_suites_live_through_restarts() {
    minitest(&["restarts.rb"], 235, &["suites/cache_test.rb"]);
    minitest(&["restarts.rb"], 19, &["suites/sessions_test.rb"]);
}

#[test]
fn rails_package() {
    let own =
        ["access", "failure", "fragment", "input", "lease", "nothing_left", "pattern", "process", "session"];
    let files: Vec<String> = own.iter().map(|name| format!("own/{name}_test.rb")).collect();
    minitest(&files.iter().map(String::as_str).collect::<Vec<_>>(), 60, &[]);
}

#[test]
fn rails_example() {
    let daemon = Daemon::start(&[]);
    let mut example = Command::new("ruby");
    example.arg("-I").arg(client("ruby/lib")).arg(client("ruby/example.rb"));
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
}
