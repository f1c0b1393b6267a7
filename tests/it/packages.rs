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

/// Builds a release with the daemon for this machine.
fn release(into: &Path) {
    let mut xtask = Command::new(env!("CARGO"));
    xtask.args([
        "xtask",
        "release",
        env!("CARGO_PKG_VERSION"),
        "--untagged",
        "--debug",
        "--program",
        PROGRAM,
    ]);
    succeed(xtask.args(["--only", machine()]).arg(into).current_dir(root()));
}

/// Debian's name of this machine.
fn machine() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
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
    release(&first);
    build("2", &second);
    let old = package(&first, ".deb");
    lintian_is_content(&old);
    the_installer_takes_the_archive(&first, &folder);
    the_installer_refuses(&first, &folder);
    the_crates_are_listed(&first);
    the_archive_runs(&package(&first, ".tar.gz"), &folder);
    if !may_mount() {
        return skipped("no mounts are allowed here: the Debian package and the image were built, not run");
    }
    the_image_runs(&package(&first, "-oci.tar"), &folder);
    // systemd boots there, so this is a start by systemd, with all that the unit forbids.
    let said = succeed(mounting(&script("machine.sh")).arg(script("service.sh")).args([
        old,
        package(&second, ".deb"),
        first.join("install.sh"),
        first.join("SHA256SUMS"),
    ]));
    assert!(said.ends_with("every step was taken\n"), "{said}");
}

/// What it reports at all is an error here. A program without optimization lacks what the compiler adds with it.
fn lintian_is_content(package: &Path) {
    let mut lintian = Command::new("lintian");
    lintian.args(["--no-cfg", "--allow-root", "--fail-on", "error,warning"]);
    let said = succeed(lintian.arg(package));
    assert_eq!(said, "");
}

/// The installer of a release, at a server that has its files.
fn install(release: &Path, prefix: &Path, path: Option<&Path>) -> (Option<i32>, String) {
    let _ = fs::remove_dir_all(prefix);
    let mut installer = Command::new("sh");
    installer.arg(release.join("install.sh")).arg("--from").arg(format!("file://{}", release.display()));
    if let Some(path) = path {
        installer.env("PATH", format!("{}:{}", path.display(), std::env::var("PATH").unwrap()));
    }
    let (code, out, error) = run(installer.arg("--prefix").arg(prefix));
    (code, out + &error)
}

fn the_installer_takes_the_archive(release: &Path, folder: &Folder) {
    let port = free_port();
    let mut server = Command::new("python3");
    server.args(["-m", "http.server", "--bind", "127.0.0.1", "--directory"]).arg(release);
    let mut server = server.arg(port.to_string()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < PATIENCE, "python3 -m http.server does not serve");
        std::thread::sleep(Duration::from_millis(20));
    }
    let prefix = folder.0.join("installed");
    let mut installer = Command::new("sh");
    installer.arg(release.join("install.sh")).args(["--from", &format!("http://127.0.0.1:{port}/")]);
    let (code, out, error) = run(installer.arg("--prefix").arg(&prefix));
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(code, Some(0), "{out}{error}");
    let version = succeed(Command::new(prefix.join("bin/sqlcached")).arg("--version"));
    let last = [
        "install.sh: its checksum is that of the release".to_owned(),
        format!("install.sh: installed {} in {}", version.trim(), prefix.display()),
        format!("install.sh: start it: {}/bin/sqlcached", prefix.display()),
    ];
    assert_eq!(out.lines().skip(1).collect::<Vec<_>>(), last);
}

/// What it does not know it refuses, and installs nothing.
fn the_installer_refuses(release: &Path, folder: &Folder) {
    let prefix = folder.0.join("refused");
    let uname = folder.0.join("uname");
    for (system, machine, why) in [
        ("Darwin", "arm64", "sqlcached runs on Linux; this is Darwin"),
        ("Linux", "riscv64", "there are files for x86_64 and aarch64; this is riscv64"),
        // This release was built for the other one only.
        ("Linux", if machine() == "arm64" { "x86_64" } else { "aarch64" }, "has no file for"),
    ] {
        fs::create_dir_all(&uname).unwrap();
        let text = format!("#!/bin/sh\ncase $1 in -s) echo {system} ;; -m) echo {machine} ;; esac\n");
        fs::write(uname.join("uname"), text).unwrap();
        succeed(Command::new("chmod").arg("+x").arg(uname.join("uname")));
        let (code, said) = install(release, &prefix, Some(&uname));
        assert!(code == Some(1) && said.contains(why), "{code:?} {said}");
        assert!(!prefix.exists());
    }
    // A file that was changed on its way.
    let other = folder.0.join("other");
    succeed(Command::new("cp").arg("-r").arg(release).arg(&other));
    let archive = package(&other, ".tar.gz");
    fs::write(&archive, [&fs::read(&archive).unwrap()[..], b"x"].concat()).unwrap();
    let (code, said) = install(&other, &prefix, None);
    assert!(
        code == Some(1) && said.contains("has another checksum than the release says"),
        "{code:?} {said}"
    );
    assert!(!prefix.exists());
    let (code, said) = install(&folder.0.join("nowhere"), &prefix, None);
    assert!(code == Some(1) || code == Some(2), "{code:?} {said}");
}

/// Each crate that is linked, once; and what is released has notes.
fn the_crates_are_listed(release: &Path) {
    let list = fs::read_to_string(package(release, ".cdx.json")).unwrap();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let components = list["components"].as_array().unwrap();
    assert!(components.iter().any(|component| component["name"] == "rustls"), "{list}");
    let names: std::collections::BTreeSet<_> =
        components.iter().map(|component| component["purl"].as_str().unwrap()).collect();
    assert_eq!(names.len(), components.len());
    assert!(fs::read_to_string(release.join("NOTES.md")).unwrap().contains("memcached's protocol"));
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
