//! Installs the programs that the tests talk to, where they are missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::metadata::root;

/// A program we start, and the Debian package that has it.
const PROGRAMS: &[(&str, &str)] = &[
    ("memcached", "memcached"),
    ("redis-server", "redis-server"),
    ("memccapable", "libmemcached-tools"),
    ("zstd", "zstd"),
    ("nc", "netcat-openbsd"),
    ("python3", "python3"),
    ("perl", "perl"),
];

/// The Python client, pinned, so that a new release cannot change what the tests mean.
const PYMEMCACHE: &str = "pymemcache==4.0.0";

/// Makes sure of every program, then of the Python environment in `target/venv`.
pub(crate) fn install() -> Result<(), String> {
    let mut missing: Vec<&str> =
        PROGRAMS.iter().filter(|(program, _)| !on_path(program)).map(|(_, package)| *package).collect();
    if !venv_works() {
        missing.push("python3-venv");
    }
    if !missing.is_empty() {
        apt_install(&missing)?;
    }
    if !python_has_pymemcache() {
        let venv = venv();
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        run(Command::new(venv.join("bin/pip")).args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            PYMEMCACHE,
        ]))?;
    }
    Ok(())
}

fn venv() -> PathBuf {
    root().join("target/venv")
}

fn python_has_pymemcache() -> bool {
    quiet(Command::new(venv().join("bin/python")).args(["-c", "import pymemcache"]))
}

/// Debian splits `ensurepip` off; without it a virtual environment has no pip.
fn venv_works() -> bool {
    quiet(Command::new("python3").args(["-c", "import ensurepip, venv"]))
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(usual).any(|folder| folder.join(program).is_file())
}

/// Installs without starting the packages' services: the tests start daemons of their own, on their own sockets.
fn apt_install(packages: &[&str]) -> Result<(), String> {
    if !on_path("apt-get") {
        return Err(format!("please install {}; this is not a Debian system", packages.join(", ")));
    }
    println!("installing {}", packages.join(", "));
    let install = || {
        let mut command = as_root();
        command.args(["apt-get", "install", "-y", "-qq", "--no-install-recommends"]).args(packages);
        quiet(&mut command)
    };
    // The package lists of a fresh machine are empty or old.
    if install() {
        return Ok(());
    }
    run(as_root().args(["apt-get", "update", "-qq"]))?;
    if install() {
        return Ok(());
    }
    Err(format!("apt-get install {} failed; it needs root or sudo", packages.join(" ")))
}

/// `env`, through sudo when we are not root, with Debian's installer told to ask nothing and start nothing.
fn as_root() -> Command {
    let mut command = if Path::new("/usr/bin/sudo").exists() && !is_root() {
        let mut sudo = Command::new("sudo");
        sudo.arg("env");
        sudo
    } else {
        Command::new("env")
    };
    command.args(["DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"]);
    command
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

fn quiet(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}
