//! The program itself, and the archive that can be unpacked anywhere.

use std::fs;
use std::path::{Path, PathBuf};

use super::machine::Machine;
use super::{Order, copied, packed, said, succeed, suffix, written};
use crate::metadata::{cargo, metadata, root, text};

/// What is put beside the program in the archive, and where.
const BESIDE: &[(&str, &str)] = &[
    ("packaging/sqlcached.1", "share/man/man1/sqlcached.1"),
    ("packaging/completions/sqlcached", "share/bash-completion/completions/sqlcached"),
    ("packaging/completions/_sqlcached", "share/zsh/site-functions/_sqlcached"),
    ("packaging/completions/sqlcached.fish", "share/fish/vendor_completions.d/sqlcached.fish"),
    ("packaging/debian/sqlcached.service", "share/doc/sqlcached/sqlcached.service"),
    ("docs", "share/doc/sqlcached/docs"),
    ("README.md", "share/doc/sqlcached/README.md"),
    ("CHANGELOG.md", "share/doc/sqlcached/CHANGELOG.md"),
    ("LICENSE-MIT", "share/doc/sqlcached/LICENSE-MIT"),
    ("LICENSE-APACHE", "share/doc/sqlcached/LICENSE-APACHE"),
];

/// Builds the program for a machine; where it lies, with its symbols.
pub(super) fn build(machine: &Machine) -> Result<PathBuf, String> {
    let mut build = cargo();
    build.args([
        "build",
        "--quiet",
        "--locked",
        "--profile",
        "dist",
        "--package",
        "sqlcached",
        "--bin",
        "sqlcached",
    ]);
    machine.compiles(&mut build);
    succeed(&mut build)?;
    let built = if machine.is_here() { "" } else { machine.target };
    Ok(Path::new(text(&metadata(false)?, "target_directory")).join(built).join("dist/sqlcached"))
}

/// The program stripped, with what is read beside it; its symbols in an archive of their own. The name says which C
/// library it needs at least: linked with musl, which needs none, it would be slower.
pub(super) fn archive(order: &Order, program: &Path, notices: &str) -> Result<(), String> {
    let machine = order.machine;
    let name = format!("sqlcached-{}-glibc{}", suffix(machine)?, needed_libc(machine, program)?);
    let place = order.into.join(&name);
    stripped(machine, program, &place.join("bin/sqlcached"))?;
    BESIDE.iter().try_for_each(|(from, to)| copied(&root().join(from), &place.join(to)))?;
    written(&place.join("share/doc/sqlcached/third-party-licences.txt"), notices)?;
    packed(&order.into, &name)?;
    if order.debug {
        return Ok(());
    }
    let symbols = format!("{name}-symbols");
    let file = order.into.join(&symbols).join("bin/sqlcached.debug");
    fs::create_dir_all(file.parent().unwrap_or(&file))
        .map_err(|error| format!("{}: {error}", file.display()))?;
    succeed(machine.tool("objcopy").arg("--only-keep-debug").arg(program).arg(&file))?;
    packed(&order.into, &symbols)
}

/// Copies a program without its symbols. Debuggers look for `sqlcached.debug`.
pub(super) fn stripped(machine: &Machine, program: &Path, to: &Path) -> Result<(), String> {
    copied(program, to)?;
    succeed(machine.tool("strip").args(["--strip-unneeded", "--remove-section=.comment"]).arg(to))
}

/// The newest version of glibc that a symbol of the program asks for.
fn needed_libc(machine: &Machine, program: &Path) -> Result<String, String> {
    let table = said(machine.tool("objdump").arg("-T").arg(program))?;
    let versions = table.split(|char: char| !(char.is_alphanumeric() || "._".contains(char)));
    let numbers = |version: &str| -> Option<Vec<u32>> {
        version.split('.').map(|number| number.parse().ok()).collect()
    };
    let newest = versions.filter_map(|word| numbers(word.strip_prefix("GLIBC_")?)).max();
    let newest = newest.ok_or_else(|| format!("{}: no version of glibc is named", program.display()))?;
    Ok(newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_needed_libc_is_found() {
        let here = super::Machine::here().unwrap();
        let version = super::needed_libc(here, Path::new("/proc/self/exe")).unwrap();
        assert!(version.starts_with("2."), "{version}");
    }
}
