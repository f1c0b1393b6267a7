//! The image for containers (OCI), made by `umoci` without a container engine: the program, the C library's files that
//! it is linked with, and nothing else. There is no shell in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Order, copied, daemon, said, succeed, suffix, written};
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
    fill(&files, program, notices)?;
    let version = install::version()?;
    let image = format!("{}:{version}", layout.display());
    succeed(umoci().args(["init", "--layout"]).arg(&layout))?;
    succeed(umoci().args(["new", "--image", &image]))?;
    succeed(umoci().args(["insert", "--rootless", "--image", &image]).arg(&files).arg("/"))?;
    succeed(&mut configured(&image, &version))?;
    let archive = order.into.join(format!("sqlcached-{}-oci.tar", suffix()?));
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
fn fill(files: &Path, program: &Path, notices: &str) -> Result<(), String> {
    daemon::stripped(program, &files.join("usr/bin/sqlcached"))?;
    for library in libraries(program)? {
        let relative = library.strip_prefix("/").unwrap_or(&library);
        copied(&library, &files.join(relative))?;
    }
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copied(&root().join(file), &files.join("usr/share/doc/sqlcached").join(file))?;
    }
    written(&files.join("usr/share/doc/sqlcached/third-party-licences.txt"), notices)?;
    copied(&root().join("docs/sqlcached.toml"), &files.join("etc/sqlcached/sqlcached.toml"))?;
    written(&files.join("etc/passwd"), "sqlcached:x:65532:65532::/:/usr/sbin/nologin\n")?;
    written(&files.join("etc/group"), "sqlcached:x:65532:\n")
}

/// The libraries that the loader takes for the program, and the loader itself.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, String> {
    let said = said(Command::new("ldd").arg(program))?;
    let paths: Vec<PathBuf> =
        said.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect();
    if paths.is_empty() { Err(format!("ldd {}: {said}", program.display())) } else { Ok(paths) }
}

/// In a container the network is its own, and `/dev/shm` has 64 MiB and ends with it. So the rows are in the server's
/// own memory there, if nobody says otherwise.
fn configured(image: &str, version: &str) -> Command {
    let mut config = umoci();
    config.args(["config", "--image", image, "--config.user", USER]);
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
