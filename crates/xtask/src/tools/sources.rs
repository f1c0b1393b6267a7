//! Frameworks' own tests, which are in Debian's source packages only, and packages that are unpacked and not installed.
//! They are fetched without a change of the machine's lists of packages, and need no root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{as_root, quiet, run};

/// Debian's own key: a list of ours names its key itself.
const KEY: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Fetches folders of source packages. Each line of `pins` has a package and a folder in it, which is then
/// `to/<package>/<folder>`.
pub(super) fn fetch(pins: &Path, to: &Path) -> Result<(), String> {
    let explain = |error| format!("{}: {error}", pins.display());
    let text = fs::read_to_string(pins).map_err(explain)?;
    let wanted: Vec<(&str, &str)> =
        text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' ')).collect();
    let place = to.join("apt");
    fs::create_dir_all(place.join("lists/partial")).map_err(explain)?;
    fs::create_dir_all(place.join("cache/archives/partial")).map_err(explain)?;
    fs::write(place.join("sources.list"), sources()?).map_err(explain)?;
    run(apt(&place).arg("update"))?;
    for (package, folder) in wanted {
        run(apt(&place).args(["source", "--download-only", package]))?;
        unpacked(&place, package, folder, &to.join(package))?;
    }
    fs::remove_dir_all(&place).map_err(explain)
}

/// Unpacks packages of Debian into a folder, without what they depend on: WordPress would bring a web server.
pub(super) fn unpack(pins: &Path, to: &Path) -> Result<(), String> {
    let text = fs::read_to_string(pins).map_err(|error| format!("{}: {error}", pins.display()))?;
    for package in text.lines().filter(|line| !line.starts_with('#')) {
        let mut download = Command::new("apt-get");
        download.args(["-qq", "-o", "APT::Sandbox::User=root", "download", package]).current_dir(to);
        if !quiet(&mut download) {
            // The package lists of a fresh machine are empty or old.
            run(as_root().args(["apt-get", "update", "-qq"]))?;
            run(&mut download)?;
        }
        let archive = archive_of(package, to)?;
        run(Command::new("dpkg").arg("-x").arg(&archive).arg(to))?;
        fs::remove_file(&archive).map_err(|error| format!("{}: {error}", archive.display()))?;
    }
    Ok(())
}

/// The package that was downloaded into a folder.
fn archive_of(package: &str, folder: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let begin = format!("{package}_");
    let mut names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let name = names
        .find(|name| name.starts_with(&begin) && Path::new(name).extension().is_some_and(|end| end == "deb"));
    Ok(folder.join(name.ok_or_else(|| format!("{package}: nothing was fetched"))?))
}

/// The lines of the source packages beside the packages that this machine installs from Debian.
fn sources() -> Result<String, String> {
    let mut found = listed()?;
    if found.is_empty() {
        // The package lists of a fresh machine are empty.
        run(as_root().args(["apt-get", "update", "-qq"]))?;
        found = listed()?;
    }
    if found.is_empty() { Err("apt-get knows no packages of Debian".to_owned()) } else { Ok(found) }
}

/// What updates of security bring has the same tests, and mirrors often lack its sources.
fn listed() -> Result<String, String> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)"]);
    let output = targets.arg("Created-By: Packages").output().map_err(|error| format!("apt-get: {error}"))?;
    let key = if Path::new(KEY).exists() { format!("[signed-by={KEY}] ") } else { String::new() };
    let said = String::from_utf8_lossy(&output.stdout);
    let ours = said.lines().filter_map(|line| line.strip_prefix("Debian "));
    let ours = ours.filter(|line| !line.contains("-security "));
    Ok(ours.flat_map(|line| ["deb-src ", &key, line, "\n"]).collect())
}

/// `apt-get` with lists and archives of our own.
fn apt(place: &Path) -> Command {
    let mut command = Command::new("apt-get");
    let option = |name: &str, value: &Path| format!("{name}={}", value.display());
    command.args(["-qq", "-o", &option("Dir::Etc::SourceList", &place.join("sources.list"))]);
    command.args(["-o", "Dir::Etc::SourceParts=-", "-o", &option("Dir::State::Lists", &place.join("lists"))]);
    command.args(["-o", &option("Dir::Cache", &place.join("cache")), "-o", "APT::Sandbox::User=root"]);
    command.current_dir(place);
    command
}

/// Takes a folder out of the archive of a source package.
fn unpacked(place: &Path, package: &str, folder: &str, to: &Path) -> Result<(), String> {
    let explain = |error| format!("{}: {error}", place.display());
    let entries = fs::read_dir(place).map_err(explain)?;
    let begin = format!("{package}_");
    let archive = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let archive = archive.filter(|name| name.starts_with(&begin)).find(|name| name.contains(".orig.tar."));
    let archive = archive.ok_or_else(|| format!("{package}: no archive was fetched"))?;
    fs::create_dir_all(to).map_err(explain)?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(place.join(archive)).arg("-C").arg(to);
    run(tar.args(["--strip-components", "1", "--wildcards", &format!("*/{folder}/*")]))
}
