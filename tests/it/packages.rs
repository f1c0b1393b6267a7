//! What `make packages` builds of the daemon, with the program of the tests inside: the Debian package on a machine
//! that boots systemd, the archive in an empty folder, the image as an engine of containers starts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::daemon::{Folder, PROGRAM, free_port, run};
use crate::skipped;

/// For a program to serve that has just been started.
const PATIENCE: Duration = Duration::from_secs(30);

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn succeed(command: &mut Command) -> String {
    let (code, out, error) = run(command);
    assert_eq!(code, Some(0), "{command:?}\n{out}{error}");
    out
}

/// Builds the daemon's packages of a revision.
fn build(revision: &str, into: &Path) {
    let mut xtask = Command::new(env!("CARGO"));
    xtask.args([
        "xtask",
        "packages",
        "--debug",
        "--only",
        "daemon",
        "--program",
        PROGRAM,
        "--revision",
        revision,
    ]);
    succeed(xtask.arg(into).current_dir(root()));
}

/// The package in the folder whose file name ends so.
fn package(folder: &Path, end: &str) -> PathBuf {
    let mut paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.to_string_lossy().ends_with(end)).unwrap_or_else(|| panic!("no package {end}"))
}

fn script(name: &str) -> PathBuf {
    root().join("tests/it/packages").join(name)
}

/// Whether we may mount file systems that nobody else sees. Containers of a build farm often may not.
fn may_mount() -> bool {
    let mut trial = Command::new("unshare");
    trial.args(["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]);
    trial.output().is_ok_and(|output| output.status.success())
}

fn mounting(program: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh"]).arg(program);
    command
}

/// One test, because the packages are built once.
#[test]
fn the_packages_of_the_daemon_work() {
    let folder = Folder::new();
    let (first, second) = (folder.0.join("1"), folder.0.join("2"));
    build("1", &first);
    build("2", &second);
    let old = package(&first, ".deb");
    lintian_is_content(&old);
    the_archive_runs(&package(&first, ".tar.gz"), &folder);
    if !may_mount() {
        return skipped("no mounts are allowed here: the Debian package and the image were built, not run");
    }
    the_image_runs(&package(&first, "-oci.tar"), &folder);
    // systemd boots there, so this is a start by systemd, with all that the unit forbids.
    let said = succeed(
        mounting(&script("machine.sh")).arg(script("service.sh")).args([old, package(&second, ".deb")]),
    );
    assert!(said.ends_with("every step was taken\n"), "{said}");
}

/// What it reports at all is an error here. A program without optimization lacks what the compiler adds with it.
fn lintian_is_content(package: &Path) {
    let mut lintian = Command::new("lintian");
    lintian.args(["--no-cfg", "--allow-root", "--fail-on", "error,warning"]);
    let said = succeed(lintian.arg(package));
    assert_eq!(said, "");
}

fn the_archive_runs(archive: &Path, folder: &Folder) {
    let place = folder.0.join("unpacked");
    fs::create_dir(&place).unwrap();
    succeed(Command::new("tar").args(["--strip-components=1", "-xzf"]).arg(archive).arg("-C").arg(&place));
    let port = free_port();
    let mut program = Command::new(place.join("bin/sqlcached"));
    program.arg("--arena").arg(folder.0.join("arena")).args(["-s", "none", "--sql-port=0", "--http-port=0"]);
    serves(program.args(["-p", &port.to_string()]), port);
    for file in [
        "share/man/man1/sqlcached.1",
        "share/bash-completion/completions/sqlcached",
        "share/doc/sqlcached/LICENSE-MIT",
    ] {
        assert!(place.join(file).exists(), "{file}");
    }
    let licences = fs::read_to_string(place.join("share/doc/sqlcached/third-party-licences.txt")).unwrap();
    assert!(licences.contains("rustls 0.23") && licences.contains("Permission is hereby granted"));
}

fn the_image_runs(archive: &Path, folder: &Folder) {
    let place = folder.0.join("container");
    fs::create_dir(&place).unwrap();
    let port = free_port();
    let mut program = mounting(&script("container.sh"));
    program.arg(archive).arg(env!("CARGO_PKG_VERSION")).arg(&place);
    serves(program.args(["-p", &port.to_string(), "--sql-port=0", "--http-port=0"]), port);
}

/// Starts a program that must serve at the port, stores a row and reads it.
fn serves(command: &mut Command, port: u16) {
    struct Running(Child);
    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let mut running = Running(command.stdout(Stdio::null()).spawn().unwrap());
    let begin = Instant::now();
    let talk = "printf 'set k 0 0 5\\r\\nhello\\r\\nget k\\r\\nquit\\r\\n' | nc -w 5 127.0.0.1";
    loop {
        let (_, out, _) = run(Command::new("sh").args(["-c", &format!("{talk} {port}")]));
        if out == "STORED\r\nVALUE k 0 5\r\nhello\r\nEND\r\n" {
            return;
        }
        assert_eq!(running.0.try_wait().unwrap(), None, "{command:?}");
        assert!(begin.elapsed() < PATIENCE, "{command:?} does not serve: {out}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
