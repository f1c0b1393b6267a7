//! The machines that packages are built for: this one, and the others by Debian's cross compilers.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::said;
use crate::tools;

/// A machine under each of its names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Machine {
    /// Rust's, which archives have in their names.
    pub(super) rust: &'static str,
    /// Debian's, and that of images.
    pub(super) debian: &'static str,
    /// What Rust builds for.
    pub(super) target: &'static str,
    /// What GNU's tools for it begin with, and Debian's folders of libraries are called.
    gnu: &'static str,
}

/// All of them.
const MACHINES: [Machine; 2] = [
    Machine { rust: "x86_64", debian: "amd64", target: "x86_64-unknown-linux-gnu", gnu: "x86_64-linux-gnu" },
    Machine {
        rust: "aarch64",
        debian: "arm64",
        target: "aarch64-unknown-linux-gnu",
        gnu: "aarch64-linux-gnu",
    },
];

impl Machine {
    /// The machine that this runs on.
    pub(super) fn here() -> Result<&'static Self, String> {
        let arch = std::env::consts::ARCH;
        let here = MACHINES.iter().find(|machine| machine.rust == arch);
        here.ok_or_else(|| format!("no packages are made for {arch}; they are for {}", names().join(", ")))
    }

    /// A machine by Debian's name.
    pub(super) fn named(name: &str) -> Result<&'static Self, String> {
        let named = MACHINES.iter().find(|machine| machine.debian == name);
        named.ok_or_else(|| format!("no packages are made for {name}; they are for {}", names().join(", ")))
    }

    pub(super) fn is_here(&self) -> bool {
        self.rust == std::env::consts::ARCH
    }

    /// A tool of binutils that reads this machine's programs.
    pub(super) fn tool(&self, name: &str) -> Command {
        if self.is_here() { Command::new(name) } else { Command::new(format!("{}-{name}", self.gnu)) }
    }

    /// Makes sure of what compiles for it.
    pub(super) fn install_compiler(&self) -> Result<(), String> {
        if self.is_here() { Ok(()) } else { tools::install_cross(self.gnu, self.debian, self.target) }
    }

    /// Has Cargo compile for it, and C code with it.
    pub(super) fn compiles(&self, cargo: &mut Command) {
        if self.is_here() {
            return;
        }
        let (gcc, target) = (format!("{}-gcc", self.gnu), self.target.replace('-', "_"));
        cargo.args(["--target", self.target]);
        cargo.env(format!("CC_{target}"), &gcc);
        cargo.env(format!("CARGO_TARGET_{}_LINKER", target.to_uppercase()), &gcc);
    }

    /// What runs its programs here, if it is another machine, and the folder with its libraries.
    pub(super) fn emulator(&self) -> Option<(String, String)> {
        (!self.is_here()).then(|| (format!("qemu-{}-static", self.rust), format!("/usr/{}", self.gnu)))
    }

    /// The libraries that the loader takes for a program, and the loader: where they lie here, and where there.
    pub(super) fn libraries(&self, program: &Path) -> Result<Vec<(PathBuf, PathBuf)>, String> {
        if self.is_here() {
            let said = said(Command::new("ldd").arg(program))?;
            let paths = said.split_whitespace().filter(|word| word.starts_with('/'));
            let paths: Vec<_> = paths.map(|path| (PathBuf::from(path), PathBuf::from(path))).collect();
            return if paths.is_empty() {
                Err(format!("ldd {}: {said}", program.display()))
            } else {
                Ok(paths)
            };
        }
        // Debian's cross compiler brings them; each names those that it needs itself.
        let here = PathBuf::from(format!("/usr/{}/lib", self.gnu));
        let there = PathBuf::from(format!("/lib/{}", self.gnu));
        let (mut found, mut next) = (Vec::new(), vec![program.to_path_buf()]);
        while let Some(file) = next.pop() {
            let headers = said(self.tool("objdump").arg("-p").arg(&file))?;
            let needed = headers.lines().filter_map(|line| line.trim().strip_prefix("NEEDED"));
            for name in needed.map(str::trim) {
                let from = here.join(name);
                if found.iter().all(|(known, _)| *known != from) {
                    // The program names its loader by this path.
                    let place = if name.starts_with("ld-linux") { "/lib".into() } else { there.clone() };
                    found.push((from.clone(), place.join(name)));
                    next.push(from);
                }
            }
        }
        Ok(found)
    }
}

/// All machines, this one first.
pub(super) fn all() -> Vec<&'static Machine> {
    let mut all: Vec<_> = MACHINES.iter().collect();
    all.sort_by_key(|machine| !machine.is_here());
    all
}

/// Debian's names of all machines.
fn names() -> Vec<&'static str> {
    MACHINES.iter().map(|machine| machine.debian).collect()
}
