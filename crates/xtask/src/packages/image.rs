//! The image for containers (OCI), made by `umoci` without a container engine: the program, the C library's files that
//! it is linked with, and nothing else. There is no shell in it.

use std::path::Path;
use std::process::Command;

use super::machine::Machine;
use super::{Order, copied, daemon, succeed, suffix, written};
use crate::install;
use crate::metadata::root;

/// The user that the server runs as; the number is one that no distribution gives to others.
const USER: &str = "65532:65532";

/// The ports of memcached clients, PostgreSQL clients and HTTP.
const PORTS: [&str; 3] = ["11211/tcp", "5433/tcp", "11280/tcp"];

/// Builds `sqlcached-<version>-linux-<machine>-oci.tar`: a layout that podman, docker and skopeo read.
pub(super) fn build(order: &Order, program: &Path, notices: &str) -> Result<(), String> {
    let files = order.into.join("image-files");
    let layout = order.into.join("image");
    fill(order.machine, &files, program, notices)?;
    let version = install::version()?;
    let image = format!("{}:{version}", layout.display());
    succeed(umoci().args(["init", "--layout"]).arg(&layout))?;
    succeed(umoci().args(["new", "--image", &image]))?;
    succeed(umoci().args(["insert", "--rootless", "--image", &image]).arg(&files).arg("/"))?;
    succeed(&mut configured(order.machine, &image, &version))?;
    let archive = order.into.join(format!("sqlcached-{}-oci.tar", suffix(order.machine)?));
    succeed(
        Command::new("tar")
            .args(["--owner=0", "--group=0", "-cf"])
            .arg(archive)
            .arg("-C")
            .arg(&layout)
            .arg("."),
    )?;
    succeed(Command::new("rm").arg("-r").args([&layout, &files]))
}

fn umoci() -> Command {
    Command::new("umoci")
}

/// The files of the image.
fn fill(machine: &Machine, files: &Path, program: &Path, notices: &str) -> Result<(), String> {
    daemon::stripped(machine, program, &files.join("usr/bin/sqlcached"))?;
    for (library, place) in machine.libraries(program)? {
        copied(&library, &files.join(place.strip_prefix("/").unwrap_or(&place)))?;
    }
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copied(&root().join(file), &files.join("usr/share/doc/sqlcached").join(file))?;
    }
    written(&files.join("usr/share/doc/sqlcached/third-party-licences.txt"), notices)?;
    copied(&root().join("docs/sqlcached.toml"), &files.join("etc/sqlcached/sqlcached.toml"))?;
    written(&files.join("etc/passwd"), "sqlcached:x:65532:65532::/:/usr/sbin/nologin\n")?;
    written(&files.join("etc/group"), "sqlcached:x:65532:\n")
}

/// In a container the network is its own, and `/dev/shm` has 64 MiB and ends with it. So the rows are in the server's
/// own memory there, if nobody says otherwise.
fn configured(machine: &Machine, image: &str, version: &str) -> Command {
    let mut config = umoci();
    config.args(["config", "--image", image, "--config.user", USER]);
    config.args(["--architecture", machine.debian, "--os", "linux"]);
    config.args(["--config.entrypoint", "/usr/bin/sqlcached"]);
    config.args(["--config.cmd", "--config=/etc/sqlcached/sqlcached.toml"]);
    config.args(["--config.env", "SQLCACHED_ARENA=none", "--config.stopsignal", "SIGTERM"]);
    for port in PORTS {
        config.args(["--config.exposedports", port]);
    }
    for (name, value) in [("title", "sqlcached"), ("version", version), ("licenses", "MIT OR Apache-2.0")] {
        config.args(["--config.label", &format!("org.opencontainers.image.{name}={value}")]);
    }
    config
}
