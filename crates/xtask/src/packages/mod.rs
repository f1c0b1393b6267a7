//! What users install: the daemon as a Debian package, an archive and an image for containers; its clients.

mod clients;
mod daemon;
mod debian;
mod image;
mod machine;
mod notices;
mod release;
mod sbom;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::machine::Machine;
use crate::metadata::root;
use crate::{install, tools};

/// What to build.
#[derive(Debug)]
struct Order {
    into: PathBuf,
    /// For tests: native parts of clients without optimization, and everything packed quickly.
    debug: bool,
    /// The daemon, if it is built already.
    program: Option<PathBuf>,
    daemon: bool,
    clients: bool,
    /// The Debian revision of the package. Two of them make an upgrade.
    revision: String,
    /// The machine that the daemon is for.
    machine: &'static Machine,
}

const USAGE: &str = "usage: cargo xtask packages [--debug] [--only daemon|clients] [--program PATH] \
                     [--machine amd64|arm64] [--revision N] [FOLDER]";

pub(crate) use self::release::{publish, run as release};

/// Builds the packages into a folder, or `target/packages`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let order = read(arguments)?;
    empty(&order.into)?;
    build(&order)?;
    listed(&order.into)
}

/// Builds what is ordered, beside what the folder has.
fn build(order: &Order) -> Result<(), String> {
    if order.daemon {
        tools::install_packers()?;
        order.machine.install_compiler()?;
        let name = order.machine.debian;
        let program = match &order.program {
            Some(program) => program.clone(),
            None => step(&format!("compiling sqlcached for {name}"), || daemon::build(order.machine))?,
        };
        let notices = notices::all()?;
        step(&format!("archive for {name}"), || daemon::archive(order, &program, &notices))?;
        step(&format!("Debian package for {name}"), || debian::build(order, &program, &notices))?;
        step(&format!("image for {name}"), || image::build(order, &program, &notices))?;
    }
    if order.clients {
        clients::build(&order.into, order.debug)?;
    }
    Ok(())
}

/// Says what is done while it is done: some of it takes minutes.
fn step<T>(what: &str, take: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    println!("{what}");
    take()
}

fn read(mut arguments: &[&str]) -> Result<Order, String> {
    let mut order = Order {
        into: root().join("target/packages"),
        debug: false,
        program: None,
        daemon: true,
        clients: true,
        revision: "1".to_owned(),
        machine: Machine::here()?,
    };
    loop {
        arguments = match arguments {
            [] => return Ok(order),
            ["--debug", rest @ ..] => {
                order.debug = true;
                rest
            }
            ["--only", which @ ("daemon" | "clients"), rest @ ..] => {
                (order.daemon, order.clients) = (*which == "daemon", *which == "clients");
                rest
            }
            ["--program", program, rest @ ..] => {
                order.program = Some(PathBuf::from(program));
                rest
            }
            ["--machine", name, rest @ ..] => {
                order.machine = Machine::named(name)?;
                rest
            }
            ["--revision", revision, rest @ ..] => {
                (*revision).clone_into(&mut order.revision);
                rest
            }
            [folder] if !folder.starts_with('-') => {
                order.into = PathBuf::from(folder);
                &[]
            }
            _ => return Err(USAGE.into()),
        };
    }
}

/// What of an archive names its version and machine.
fn suffix(machine: &Machine) -> Result<String, String> {
    Ok(format!("{}-linux-{}", install::version()?, machine.rust))
}

fn empty(folder: &Path) -> Result<(), String> {
    let explain = |error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(explain)?;
    }
    fs::create_dir_all(folder).map_err(explain)
}

/// Copies a file or a folder of the project, or a file that was made, to a place whose folder is made.
fn copied(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    succeed(Command::new("cp").args(["--recursive", "--dereference"]).arg(from).arg(to))
}

fn written(to: &Path, text: &str) -> Result<(), String> {
    fs::write(to, text).map_err(|error| format!("{}: {error}", to.display()))
}

/// Makes an archive of a folder, and removes the folder.
fn packed(into: &Path, name: &str) -> Result<(), String> {
    let archive = into.join(format!("{name}.tar.gz"));
    succeed(
        Command::new("tar")
            .args(["--owner=0", "--group=0", "-czf"])
            .arg(archive)
            .arg("-C")
            .arg(into)
            .arg(name),
    )?;
    fs::remove_dir_all(into.join(name)).map_err(|error| format!("{name}: {error}"))
}

fn listed(into: &Path) -> Result<(), String> {
    let entries = fs::read_dir(into).map_err(|error| format!("{}: {error}", into.display()))?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    names.sort();
    for name in names {
        let size = fs::metadata(&name).map_or(0, |found| found.len());
        println!("{} ({} KiB)", name.display(), size.div_ceil(1 << 10));
    }
    Ok(())
}

fn succeed(command: &mut Command) -> Result<(), String> {
    said(command).map(|_| ())
}

/// What a program that must succeed wrote to standard output.
fn said(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(format!("{command:?}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr)))
}
