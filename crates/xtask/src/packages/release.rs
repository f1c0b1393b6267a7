//! What a page of releases holds, by one command: the packages for every machine, the installer, the list of what is
//! linked, the notes and the checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::machine::{self, Machine};
use super::{Order, build, copied, empty, listed, said, sbom, step, succeed, suffix, trial, written};
use crate::metadata::root;
use crate::{install, tools, version};

const USAGE: &str =
    "usage: cargo xtask release VERSION [--debug] [--untagged] [--only MACHINE] [--program PATH] [FOLDER]";

/// The file that has the checksum of each other; `install.sh` reads it.
const CHECKSUMS: &str = "SHA256SUMS";

/// What is asked for.
#[derive(Debug, Default)]
struct Wish {
    /// For tests: quickly packed, and with this program in place of one that is compiled.
    debug: bool,
    program: Option<PathBuf>,
    /// Whatever is committed and tagged.
    untagged: bool,
    /// One machine's daemon in place of everything.
    only: Option<&'static Machine>,
    into: Option<PathBuf>,
}

/// Builds a release into a folder, or `target/release-<version>`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let [wanted, rest @ ..] = arguments else { return Err(USAGE.into()) };
    let wish = read(rest)?;
    let changelog =
        fs::read_to_string(root().join("CHANGELOG.md")).map_err(|error| format!("CHANGELOG.md: {error}"))?;
    let notes = step("checking versions", || {
        let is = install::version()?;
        if is != *wanted {
            return Err(format!("the project has version {is}; 'make version VERSION={wanted}' changes it"));
        }
        if wish.untagged {
            return version::trial_notes(&changelog, wanted);
        }
        check_tag(wanted)?;
        version::notes(&changelog, wanted)
    })?;
    let into = wish.into.clone().unwrap_or_else(|| root().join(format!("target/release-{wanted}")));
    empty(&into)?;
    let machines = wish.only.map_or_else(machine::all, |only| vec![only]);
    for machine in machines {
        // The clients are for all machines, or are compiled where they are installed.
        let clients = machine.is_here() && wish.only.is_none();
        build(&Order {
            into: into.clone(),
            debug: wish.debug,
            program: wish.program.clone(),
            daemon: true,
            clients,
            revision: "1".to_owned(),
            machine,
        })?;
        let name = machine.debian;
        step(&format!("trying the program for {name}"), || {
            trial::run(machine, &archive_of(&into, machine)?, &into.join("trial"))
        })?;
    }
    step("installer, list of crates, notes, checksums", || {
        copied(&root().join("packaging/install.sh"), &into.join("install.sh"))?;
        sbom::write(&into.join(format!("sqlcached-{wanted}.cdx.json")))?;
        written(&into.join("NOTES.md"), &notes)?;
        checksums(&into)
    })?;
    listed(&into)
}

/// Puts what `run` built on the page of releases, with the forge's own program.
pub(crate) fn publish(version: &str) -> Result<(), String> {
    tools::install_publisher()?;
    let from = root().join(format!("target/release-{version}"));
    let entries = fs::read_dir(&from).map_err(|error| format!("{}: {error}", from.display()))?;
    let mut forge = Command::new("gh");
    forge.args(["release", "create", &format!("v{version}"), "--title", &format!("sqlcached {version}")]);
    forge.arg("--notes-file").arg(from.join("NOTES.md")).args(entries.flatten().map(|entry| entry.path()));
    succeed(forge.current_dir(root()))
}

fn read(mut arguments: &[&str]) -> Result<Wish, String> {
    let mut wish = Wish::default();
    loop {
        arguments = match arguments {
            [] => return Ok(wish),
            ["--debug", rest @ ..] => {
                wish.debug = true;
                rest
            }
            ["--untagged", rest @ ..] => {
                wish.untagged = true;
                rest
            }
            ["--only", name, rest @ ..] => {
                wish.only = Some(Machine::named(name)?);
                rest
            }
            ["--program", program, rest @ ..] => {
                wish.program = Some(PathBuf::from(program));
                rest
            }
            [folder] if !folder.starts_with('-') => {
                wish.into = Some(PathBuf::from(folder));
                &[]
            }
            _ => return Err(USAGE.into()),
        };
    }
}

/// The archive of a machine's program.
fn archive_of(into: &Path, machine: &Machine) -> Result<PathBuf, String> {
    let begin = format!("sqlcached-{}-", suffix(machine)?);
    let entries = fs::read_dir(into).map_err(|error| format!("{}: {error}", into.display()))?;
    let is_archive = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&begin) && name.ends_with(".tar.gz") && !name.contains("-symbols")
    };
    let archive = entries.flatten().map(|entry| entry.path()).find(is_archive);
    archive.ok_or_else(|| format!("there is no archive {begin}...tar.gz"))
}

/// A release is what its tag says: the last commit, and nothing beside it.
fn check_tag(version: &str) -> Result<(), String> {
    let git = |arguments: &[&str]| said(Command::new("git").args(arguments).current_dir(root()));
    let tag = format!("v{version}");
    let tagged = git(&["tag", "--points-at", "HEAD"])?;
    if !tagged.lines().any(|line| line == tag) {
        return Err(format!("the last commit has no tag {tag}; 'git tag {tag}' makes it"));
    }
    if !git(&["status", "--porcelain"])?.is_empty() {
        return Err("there are changes that are not committed".into());
    }
    Ok(())
}

/// Writes the checksum of each file, as `sha256sum --check` reads them.
fn checksums(into: &Path) -> Result<(), String> {
    let entries = fs::read_dir(into).map_err(|error| format!("{}: {error}", into.display()))?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    let sums = said(Command::new("sha256sum").arg("--").args(names).current_dir(into))?;
    written(&into.join(CHECKSUMS), &sums)
}
