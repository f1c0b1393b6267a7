//! The Perl module, built and tested as CPAN's modules are, over the installed C library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{HELLO, built, client, succeed, tell, with_library};
use crate::daemon::Daemon;

/// Where the module is built, once: a copy, because its makefile builds beside its sources.
fn module() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = built("perl");
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        succeed(Command::new("cp").arg("-r").arg(client("perl")).arg(&place));
        // Perl's own macros compute values that they do not use.
        let mut configure = with_library("perl");
        configure.args(["Makefile.PL", "OPTIMIZE=-O1 -Wall -Werror -Wno-unused-value"]);
        succeed(configure.current_dir(&place));
        succeed(with_library("make").arg("--quiet").current_dir(&place));
        place
    })
}

#[test]
fn perl_client() {
    let daemon = Daemon::start(&[]);
    let mut tests = with_library("prove");
    tests.args(["--blib", "--verbose", "t"]).current_dir(module());
    tell(&mut tests, &daemon);
    let (out, _) = succeed(&tests);
    assert!(out.contains("Result: PASS") && out.matches("\nok ").count() >= 8, "{out}");
}

#[test]
fn perl_example() {
    let daemon = Daemon::start(&[]);
    let mut example = with_library("perl");
    example.args(["-Mblib", "example.pl"]).current_dir(module());
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
}

#[test]
fn perl_documentation_is_well_formed() {
    let (out, error) = succeed(Command::new("podchecker").arg(client("perl/lib/Sqlcached.pm")));
    assert!((out + &error).contains("pod syntax OK"));
}
