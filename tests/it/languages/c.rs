//! The C library: its header against its symbols, its manual page, its suite and its example.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{HELLO, built, client, installed, root, succeed, tell, with_library};
use crate::daemon::Daemon;

/// What a C compiler is asked to accept without a word.
const STRICT: &[&str] = &["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-O1"];

/// Compiles a program of `clients/c` with the flags that pkg-config gives.
fn compile(source: &str) -> PathBuf {
    let program = built(source.trim_end_matches(".c"));
    let (flags, _) = succeed(with_library("pkg-config").args(["--cflags", "--libs", "sqlcached"]));
    let mut gcc = Command::new("gcc");
    gcc.args(STRICT).arg(client("c").join(source)).arg("-o").arg(&program);
    succeed(gcc.args(flags.split_whitespace()).arg("-lpthread"));
    program
}

/// The same with the archive instead of the shared library, which is then not needed any more.
fn compile_static(source: &str) -> PathBuf {
    let program = built(source.trim_end_matches(".c")).with_extension("static");
    let ask = |what: &str| succeed(with_library("pkg-config").args(["--static", what, "sqlcached"])).0;
    let mut gcc = Command::new("gcc");
    gcc.args(STRICT).arg(client("c").join(source)).arg("-o").arg(&program);
    gcc.args(ask("--cflags").split_whitespace());
    let libraries = ask("--libs").replace("-lsqlcached", "-l:libsqlcached.a");
    succeed(gcc.args(libraries.split_whitespace()));
    program
}

#[test]
fn c_suite() {
    let daemon = Daemon::start(&[]);
    let mut suite = with_library(compile("suite.c"));
    tell(&mut suite, &daemon);
    let (out, _) = succeed(&suite);
    assert!(out.lines().all(|line| line.starts_with("ok - ")), "{out}");
    assert!(out.lines().count() >= 10, "{out}");
}

#[test]
fn c_example() {
    let daemon = Daemon::start(&[]);
    let mut example = with_library(compile("example.c"));
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
    let mut alone = Command::new(compile_static("example.c"));
    tell(&mut alone, &daemon);
    assert_eq!(succeed(&alone).0, HELLO);
}

/// The header is C++ too.
#[test]
fn the_header_is_cpp() {
    let header = built("header.cpp");
    installed();
    fs::write(&header, "#include <sqlcached.h>\nint main() { return sqlcached_version() == 0; }\n").unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-x", "c++"]).arg(&header);
    gcc.arg("-I").arg(installed().join("include"));
    succeed(&gcc);
}

/// Each function that the library exports is declared in the header and explained in the manual page, and none of
/// these names a function that does not exist.
#[test]
fn header_library_and_manual_agree() {
    let mut nm = Command::new("nm");
    nm.args(["--dynamic", "--defined-only", "--format=posix"]).arg(installed().join("lib/libsqlcached.so"));
    let (symbols, _) = succeed(&nm);
    let exported: BTreeSet<&str> = symbols
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| name.starts_with("sqlcached_"))
        .collect();
    let header = fs::read_to_string(root().join("crates/client-c/include/sqlcached.h")).unwrap();
    let manual = fs::read_to_string(root().join("crates/client-c/man/sqlcached.3")).unwrap();
    assert!(exported.len() > 10);
    assert_eq!(functions(&header), exported, "header");
    assert_eq!(functions(&manual), exported, "manual page");
}

/// The names that are followed by an opening bracket.
fn functions(text: &str) -> BTreeSet<&str> {
    let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.match_indices('(')
        .map(|(at, _)| {
            let before = &text[..at];
            &before[before.trim_end_matches(word).len()..]
        })
        .filter(|name| name.starts_with("sqlcached_"))
        .collect()
}

#[test]
fn the_manual_page_is_well_formed() {
    let mut groff = Command::new("groff");
    groff.args(["-ww", "-man", "-Tascii", "-P-c"]).arg(root().join("crates/client-c/man/sqlcached.3"));
    let (page, complaints) = succeed(&groff);
    assert!(page.contains("sqlcached_open"), "{page}");
    assert_eq!(complaints, "");
}
