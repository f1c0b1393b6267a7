//! The Debian package, by Debian's own tools (`debhelper`): they write what installs and removes a service, take the
//! symbols out, and know which libraries are needed. `packaging/debian` says the rest.

use std::path::Path;
use std::process::Command;

use super::{Order, copied, said, succeed, written};
use crate::install;
use crate::metadata::root;

/// What the package takes from the project, by the names that `packaging/debian` has for them.
const TAKEN: &[&str] =
    &["docs", "packaging/sqlcached.1", "packaging/completions", "README.md", "CHANGELOG.md"];

/// Builds `sqlcached_<version>_<machine>.deb`, and one with the symbols.
pub(super) fn build(order: &Order, program: &Path, notices: &str) -> Result<(), String> {
    let staging = order.into.join("debian-staging");
    let sources = staging.join("sqlcached");
    copied(&root().join("packaging/debian"), &sources.join("debian"))?;
    copied(program, &sources.join("program/sqlcached"))?;
    for path in TAKEN {
        copied(&root().join(path), &sources.join(path))?;
    }
    written(&sources.join("third-party-licences.txt"), notices)?;
    written(&sources.join("debian/changelog"), &changelog(&order.revision)?)?;
    let mut build = Command::new("dpkg-buildpackage");
    build.args(["--build=binary", "--no-sign", "--no-check-builddeps"]).current_dir(&sources);
    build.arg(format!("--host-arch={}", order.machine.debian));
    if order.debug {
        build.env("DEB_BUILD_OPTIONS", "noautodbgsym").env("SQLCACHED_COMPRESSION", "-Zgzip -z1");
    }
    succeed(&mut build)?;
    let moved = format!(
        "mv '{}'/*.deb '{}' && rm -r '{}'",
        staging.display(),
        order.into.display(),
        staging.display()
    );
    succeed(Command::new("sh").args(["-c", &moved]))
}

/// Debian's changelog names the version; what changed is in ours, which the package has, too. The time is that of the
/// last commit, so that the same sources make the same package.
fn changelog(revision: &str) -> Result<String, String> {
    let mut git = Command::new("git");
    let commit = said(git.args(["log", "-1", "--format=%cD"]).current_dir(root()));
    let time = commit.or_else(|_| said(Command::new("date").arg("-R")))?;
    Ok(format!(
        "sqlcached ({}-{revision}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- {}  {}\n",
        install::version()?,
        maintainer()?,
        time.trim()
    ))
}

fn maintainer() -> Result<String, String> {
    let control = std::fs::read_to_string(root().join("packaging/debian/control"))
        .map_err(|error| error.to_string())?;
    let line = control.lines().find_map(|line| line.strip_prefix("Maintainer: "));
    line.map(str::to_owned).ok_or_else(|| "packaging/debian/control names no maintainer".to_owned())
}
