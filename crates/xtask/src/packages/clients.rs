//! What clients install: wheels, npm packages, a Composer package, a gem, a repository of Maven, archives of the C
//! library and of the Rust client.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{copied, packed, succeed};
use crate::metadata::root;
use crate::{install, tools};

/// The Python packages without native parts.
const PURE: &[&str] = &["django", "dogpile"];

/// The packages of Node.
const NODE: &[&str] = &["node", "node-cache"];

/// The packages for Java.
const JAVA: [&str; 5] = ["client", "map", "jcache", "hibernate", "spring"];

/// The crates that a Rust program needs.
const RUST: [&str; 3] = ["arena", "store", "client"];

/// Builds all of them. With `debug` native parts are built without optimization, for tests.
pub(super) fn build(into: &Path, debug: bool) -> Result<(), String> {
    tools::install_builders()?;
    println!("packages of the clients");
    native_wheel(into, debug)?;
    PURE.iter().try_for_each(|name| pure_wheel(name, into))?;
    NODE.iter().try_for_each(|name| npm(name, into))?;
    composer(into)?;
    gem(into)?;
    maven(into)?;
    library(into, debug)?;
    rust(into)
}

/// A program that `cargo xtask tools` fetched.
fn fetched(path: &str) -> Result<PathBuf, String> {
    let path = root().join("target/drivers").join(path);
    if path.exists() { Ok(path) } else { Err(format!("{} is missing", path.display())) }
}

fn native_wheel(into: &Path, debug: bool) -> Result<(), String> {
    let mut maturin = Command::new(fetched("clients-python/bin/maturin")?);
    maturin.args(["build", "--quiet", "--locked", "--profile", if debug { "dev" } else { "dist" }]);
    maturin.arg("--interpreter").arg(fetched("clients-python/bin/python")?);
    maturin.arg("--manifest-path").arg(root().join("clients/python/Cargo.toml")).arg("--out").arg(into);
    succeed(&mut maturin)
}

/// A wheel of Python files, from a copy of the sources: nothing is left beside them.
fn pure_wheel(name: &str, into: &Path) -> Result<(), String> {
    let copy = into.join(format!("{name}-source"));
    succeed(Command::new("cp").arg("-r").arg(root().join("clients").join(name)).arg(&copy))?;
    let mut pip = Command::new(fetched("clients-python/bin/pip")?);
    pip.args([
        "wheel",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
    ]);
    succeed(pip.arg("--wheel-dir").arg(into).arg(&copy))?;
    fs::remove_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))
}

/// An npm package. A native part is built where it is installed.
fn npm(name: &str, into: &Path) -> Result<(), String> {
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", "--ignore-scripts", "--pack-destination"]).arg(into);
    succeed(npm.current_dir(root().join("clients").join(name)))
}

/// The package of PHP: an archive that Composer installs from the folder where it is unpacked. It could install a zip
/// archive itself, but only with an extension of PHP that many have not.
fn composer(into: &Path) -> Result<(), String> {
    let mut composer = Command::new("composer");
    composer
        .args(["archive", "--quiet", "--no-interaction", "--no-plugins", "--format=tar", "--dir"])
        .arg(into);
    composer.env("COMPOSER_HOME", into.join("composer")).env("COMPOSER_ALLOW_SUPERUSER", "1");
    succeed(composer.current_dir(root().join("clients/php")))?;
    let _ = fs::remove_dir_all(into.join("composer"));
    Ok(())
}

/// The gem. It has no native part.
fn gem(into: &Path) -> Result<(), String> {
    let name = format!("sqlcached-{}.gem", install::version()?);
    let mut gem = Command::new("gem");
    gem.args(["build", "--silent", "--output"]).arg(into.join(name)).arg("sqlcached.gemspec");
    succeed(gem.current_dir(root().join("clients/ruby")))
}

/// The packages for Java, as a repository of Maven in an archive: jars with classes, sources and documentation, and the
/// files that describe them.
fn maven(into: &Path) -> Result<(), String> {
    let project = into.join("java-source");
    succeed(Command::new("cp").arg("-r").arg(root().join("clients/java")).arg(&project))?;
    let repository = fetched("clients-java-build/repository")?;
    let mut maven = Command::new("mvn");
    maven.args(["--offline", "--quiet", "--batch-mode", "package", "--file"]).arg(project.join("pom.xml"));
    succeed(maven.arg(format!("-Dmaven.repo.local={}", repository.display())))?;
    let version = install::version()?;
    let name = format!("sqlcached-java-{version}");
    let place = into.join(&name).join("org/sqlcached");
    let pom = |artifact: &str| place.join(format!("{artifact}/{version}/{artifact}-{version}.pom"));
    copied(&project.join("pom.xml"), &pom("sqlcached-java"))?;
    for module in JAVA {
        let artifact = format!("sqlcached-{module}");
        copied(&project.join(module).join("pom.xml"), &pom(&artifact))?;
        for kind in ["", "-sources", "-javadoc"] {
            let jar = format!("{artifact}-{version}{kind}.jar");
            copied(
                &project.join(module).join("target").join(&jar),
                &place.join(&artifact).join(&version).join(&jar),
            )?;
        }
    }
    fs::remove_dir_all(&project).map_err(|error| format!("{}: {error}", project.display()))?;
    packed(into, &name)
}

/// The C library with header, pkg-config file and manual page. It can be unpacked anywhere: pkg-config finds the rest
/// from the place of its own file.
fn library(into: &Path, debug: bool) -> Result<(), String> {
    let name = format!("sqlcached-client-{}-linux-{}", install::version()?, std::env::consts::ARCH);
    let staging = into.join("staging");
    let place = staging.display().to_string();
    let arguments: &[&str] = if debug { &["--debug", "/", &place] } else { &["/", &place] };
    install::run(arguments)?;
    let described = staging.join("lib/pkgconfig/sqlcached.pc");
    let explain = |error| format!("{}: {error}", described.display());
    let text = fs::read_to_string(&described).map_err(explain)?;
    fs::write(&described, text.replace("prefix=/\n", "prefix=${pcfiledir}/../..\n")).map_err(explain)?;
    let unpacked = into.join(&name);
    fs::rename(&staging, &unpacked).map_err(|error| format!("{}: {error}", unpacked.display()))?;
    packed(into, &name)
}

/// The crates of the Rust client, as a workspace of their own: a project names `crates/client` in it by its path. They
/// are not on crates.io, so that a `.crate` file would not find those that it needs.
fn rust(into: &Path) -> Result<(), String> {
    let name = format!("sqlcached-client-rust-{}", install::version()?);
    let place = into.join(&name);
    let crates = place.join("crates");
    fs::create_dir_all(&crates).map_err(|error| format!("{}: {error}", crates.display()))?;
    for each in RUST {
        succeed(Command::new("cp").arg("-r").arg(root().join("crates").join(each)).arg(&crates))?;
    }
    for file in ["Cargo.lock", "LICENSE-MIT", "LICENSE-APACHE"] {
        succeed(Command::new("cp").arg(root().join(file)).arg(&place))?;
    }
    let explain = |error| format!("{}: {error}", place.display());
    let manifest = fs::read_to_string(root().join("Cargo.toml")).map_err(explain)?;
    let members = RUST.map(|each| format!("\"crates/{each}\"")).join(", ");
    let lines = manifest.lines().map(|line| {
        if line.starts_with("members = ") { format!("members = [{members}]\n") } else { format!("{line}\n") }
    });
    fs::write(place.join("Cargo.toml"), lines.collect::<String>()).map_err(explain)?;
    packed(into, &name)
}
