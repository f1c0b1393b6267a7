//! `make` where the compiler is missing or too old: Debian's cargo once failed with words about the syntax of
//! Cargo.toml.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// What `make rust` says where cargo reports this version, or where there is no cargo.
fn said(version: Option<&str>) -> (bool, String) {
    let name = format!("cargo-{}", version.unwrap_or("none"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    if let Some(version) = version {
        let program = folder.join("cargo");
        fs::write(&program, format!("#!/bin/sh\necho 'cargo {version} (0 2022-07-01)'\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for program in ["sh", "sort", "cut", "echo"] {
        let _ = std::os::unix::fs::symlink(Path::new("/usr/bin").join(program), folder.join(program));
    }
    let mut make = Command::new("/usr/bin/make");
    let output = make.args(["--silent", "rust"]).env("PATH", &folder).current_dir(root()).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_compiler_that_is_too_old_is_said() {
    for (version, here) in [(Some("1.63.0"), "1.63.0"), (Some("1.9.0"), "1.9.0"), (None, "none")] {
        let (good, said) = said(version);
        assert!(!good, "{version:?}");
        assert!(said.contains(&format!("needs Rust 1.95 or later; here is {here}.")), "{said}");
        assert!(said.contains("rustup toolchain install stable"), "{said}");
    }
    for version in ["1.95.0", "1.100.0", "2.0.0"] {
        assert_eq!(said(Some(version)), (true, String::new()), "{version}");
    }
}

#[test]
fn make_wants_the_compiler_that_the_crates_want() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let wanted = manifest.split("rust-version = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert!(makefile.contains(&format!("RUST_WANTED = {wanted}\n")), "{wanted}");
}
