//! The PHP package: the suites of PSR-16, PSR-6, Symfony and Laravel, and its own tests. The frameworks are Debian's.

use std::process::Command;

use super::{HELLO, client, fetched, succeed, tell};
use crate::daemon::{Daemon, Folder, PROGRAM};
use crate::relay::Relay;
use crate::seed;

/// The suites of others, with the tests of tags in PSR-6 beside Symfony's.
const PSR_16: [&str; 1] = ["Suites/Psr16Test.php"];
const SYMFONY: [&str; 2] = ["Suites/SymfonyTest.php", "Suites/TagsTest.php"];
const LARAVEL: [&str; 2] = ["Suites/LaravelTagsTest.php", "Suites/LaravelStoreTest.php"];

/// Runs files and folders of `clients/php/tests` in PHPUnit, at a daemon of their own; there must be so many tests, and
/// none may be skipped.
fn phpunit(files: &[&str], at_least: usize) {
    let daemon = Daemon::start(&[]);
    phpunit_at(daemon.port, files, at_least);
}

/// The same tests, while the daemon restarts again and again: that changes no result.
fn phpunit_with_restarts(files: &[&str], at_least: usize, restarts: usize) {
    let relay = Relay::start(Daemon::start(&[]), seed(), is_sent_again);
    phpunit_at(relay.port, files, at_least);
    let done = relay.restarts();
    println!("{done} restarts");
    assert!(done >= restarts, "{done} restarts");
}

/// Whether the package sends a request again that was not answered. It does not where the command must not be executed
/// twice: what stores on a condition, and arithmetic. The tests' own requests move the clock.
fn is_sent_again(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let line = text.lines().next().unwrap_or_default();
    let has = |flag: &str| line.split(' ').skip(2).any(|word| word.starts_with(flag));
    match line.split(' ').next() {
        Some("mg") => !line.starts_with("mg passed"),
        Some("ms") => !line.starts_with("ms passed") && !has("M") && !has("C"),
        Some("md") => !has("C"),
        Some("sqlp") => {
            !["ON CONFLICT", "_cas = ", "array_append", "UPDATE"].iter().any(|word| text.contains(word))
        }
        _ => false,
    }
}

fn phpunit_at(port: u16, files: &[&str], at_least: usize) {
    let folder = Folder::new();
    for file in files {
        assert!(client("php/tests").join(file).exists(), "{file}");
    }
    let mut command = Command::new("php");
    // Without assertions Symfony skips its tests of keys that are not allowed.
    command.args(["-d", "zend.assertions=1", "/usr/bin/phpunit", "--no-configuration"]);
    command.args(["--do-not-cache-result", "--fail-on-warning", "--fail-on-risky", "--fail-on-skipped"]);
    command.args(["--bootstrap", "tests/bootstrap.php", "--test-suffix", "Test.php"]);
    command.current_dir(client("php")).env("TMPDIR", &folder.0);
    command.env("SQLCACHED_SUITES", fetched("clients-php")).env("SQLCACHED_PROGRAM", PROGRAM);
    command.env("SQLCACHED_PORT", port.to_string());
    let (mut count, mut said) = (0, String::new());
    for file in files {
        let mut one = Command::new(command.get_program());
        one.args(command.get_args()).arg(format!("tests/{file}")).current_dir(client("php"));
        one.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let (out, error) = succeed(&one);
        let tests = out.split_once("OK (").and_then(|(_, rest)| rest.split_once(' ')).map(|(count, _)| count);
        count +=
            tests.and_then(|tests| tests.parse::<usize>().ok()).unwrap_or_else(|| panic!("{out}{error}"));
        said.push_str(&error);
    }
    // The seeds of random tests.
    println!("{said}");
    assert!(count >= at_least, "{count} tests were run");
}

#[test]
fn php_suite_of_psr_16() {
    phpunit(&PSR_16, 193);
}

#[test]
fn php_suite_of_symfony() {
    phpunit(&SYMFONY, 175);
}

#[test]
fn php_suites_of_laravel() {
    phpunit(&LARAVEL, 34);
}

#[test]
fn php_package() {
    phpunit(&["Own"], 130);
}

#[test]
fn php_suites_live_through_restarts() {
    phpunit_with_restarts(&[&PSR_16[..], &SYMFONY, &LARAVEL].concat(), 193 + 175 + 34, 10);
}

#[test]
fn php_sessions_and_random_calls_live_through_restarts() {
    phpunit_with_restarts(&["Own/SessionTest.php", "Own/RandomTest.php", "Own/LaravelTest.php"], 14, 10);
}

#[test]
fn php_example() {
    let daemon = Daemon::start(&[]);
    let mut example = Command::new("php");
    example.args(["-d", "zend.assertions=1"]).arg(client("php/example.php"));
    example.env("AUTOLOAD", client("php/tests/guides/vendor/autoload.php")).env("TMPDIR", &daemon.folder.0);
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
}
