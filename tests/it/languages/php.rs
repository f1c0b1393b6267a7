//! The PHP package: the suites of PSR-16, PSR-6, Symfony and Laravel, and its own tests. The frameworks are Debian's.

use std::process::Command;

use super::{HELLO, client, fetched, succeed, tell};
use crate::daemon::{Daemon, PROGRAM};

/// Runs files and folders of `clients/php/tests` in PHPUnit, at a daemon of their own; there must be so many tests, and
/// none may be skipped.
fn phpunit(files: &[&str], at_least: usize) {
    let daemon = Daemon::start(&[]);
    for file in files {
        assert!(client("php/tests").join(file).exists(), "{file}");
    }
    let mut command = Command::new("php");
    // Without assertions Symfony skips its tests of keys that are not allowed.
    command.args(["-d", "zend.assertions=1", "/usr/bin/phpunit", "--no-configuration"]);
    command.args(["--do-not-cache-result", "--fail-on-warning", "--fail-on-risky", "--fail-on-skipped"]);
    command.args(["--bootstrap", "tests/bootstrap.php", "--test-suffix", "Test.php"]);
    command.current_dir(client("php")).env("TMPDIR", &daemon.folder.0);
    command.env("SQLCACHED_SUITES", fetched("clients-php")).env("SQLCACHED_PROGRAM", PROGRAM);
    tell(&mut command, &daemon);
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
    phpunit(&["Suites/Psr16Test.php"], 193);
}

#[test]
fn php_suite_of_symfony() {
    phpunit(&["Suites/SymfonyTest.php", "Suites/TagsTest.php"], 175);
}

#[test]
fn php_suites_of_laravel() {
    phpunit(&["Suites/LaravelTagsTest.php", "Suites/LaravelStoreTest.php"], 34);
}

#[test]
fn php_package() {
    phpunit(&["Own"], 130);
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
