//! Puts the C library where compilers, linkers and `man` look for it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::metadata::{cargo, metadata, packages, root, text};

/// The crate whose library it is.
const CRATE: &str = "sqlcached-client-c";

/// The number that rises when a program that was linked with the library before could not go on using it. The
/// library itself bears it: `crates/client-c/build.rs`.
const ABI: u32 = 0;

/// What the linker needs besides the archive, as `rustc --print native-static-libs` says.
const PRIVATE_LIBRARIES: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";

/// `[--debug] PREFIX [DESTDIR]`: builds the library and installs it for PREFIX, under DESTDIR where a packager
/// gives one.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let (profile, places) = match arguments {
        ["--debug", places @ ..] => ("dev", places),
        places => ("dist", places),
    };
    let (prefix, staging) = match places {
        [prefix] => (Path::new(prefix), PathBuf::new()),
        [prefix, staging] => (Path::new(prefix), PathBuf::from(staging)),
        _ => return Err("usage: cargo xtask install-client [--debug] PREFIX [DESTDIR]".into()),
    };
    if !prefix.is_absolute() {
        return Err(format!("{}: the prefix must be an absolute path", prefix.display()));
    }
    let built = build(profile)?;
    let version = version()?;
    // An absolute path would replace what it is joined to.
    let into = staging.join(if staging.as_os_str().is_empty() { prefix } else { relative(prefix) });
    let explain = |error: std::io::Error| format!("{}: {error}", into.display());
    libraries(&built, &into.join("lib"), &version).map_err(explain)?;
    documents(prefix, &into, &version).map_err(explain)
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// Builds both libraries; the folder in which they lie.
fn build(profile: &str) -> Result<PathBuf, String> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--profile", profile]);
    // The tests have compiled the whole workspace. One package alone has other features, and is compiled again; so has
    // the workspace without what tests and examples depend on.
    match profile {
        "dev" => build.args(["--workspace", "--lib", "--examples"]),
        _ => build.args(["--package", CRATE]),
    };
    let status = build.status().map_err(|error| format!("cargo build: {error}"))?;
    if !status.success() {
        return Err(format!("cargo build --package {CRATE}: {status}"));
    }
    let metadata = metadata(false)?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(Path::new(text(&metadata, "target_directory")).join(folder))
}

/// The version of the project.
pub(crate) fn version() -> Result<String, String> {
    let metadata = metadata(false)?;
    let package = packages(&metadata).iter().find(|package| text(package, "name") == CRATE);
    package
        .map(|package| text(package, "version").to_owned())
        .ok_or_else(|| format!("there is no crate {CRATE}"))
}

/// The shared library under its full name, with the names that the loader and the linker look for; the archive.
fn libraries(built: &Path, into: &Path, version: &str) -> std::io::Result<()> {
    fs::create_dir_all(into)?;
    let full = format!("libsqlcached.so.{version}");
    replace(&built.join("libsqlcached_c.so"), &into.join(&full))?;
    replace(&built.join("libsqlcached_c.a"), &into.join("libsqlcached.a"))?;
    let soname = format!("libsqlcached.so.{ABI}");
    link(&full, &into.join(&soname))?;
    link(&soname, &into.join("libsqlcached.so"))
}

/// The header, what pkg-config reads, and the manual page.
fn documents(prefix: &Path, into: &Path, version: &str) -> std::io::Result<()> {
    let source = root().join("crates/client-c");
    for folder in ["include", "lib/pkgconfig", "share/man/man3"] {
        fs::create_dir_all(into.join(folder))?;
    }
    replace(&source.join("include/sqlcached.h"), &into.join("include/sqlcached.h"))?;
    replace(&source.join("man/sqlcached.3"), &into.join("share/man/man3/sqlcached.3"))?;
    let template = fs::read_to_string(source.join("sqlcached.pc.in"))?;
    // Elsewhere than in the system's own place the loader does not look; in /usr/local it does after `ldconfig` only.
    let rpath = if prefix == Path::new("/usr") { "" } else { "-Wl,-rpath,${libdir} " };
    let filled = template
        .replace("@PREFIX@", &prefix.display().to_string())
        .replace("@VERSION@", version)
        .replace("@RPATH@", rpath)
        .replace("@PRIVATE_LIBRARIES@", PRIVATE_LIBRARIES);
    fs::write(into.join("lib/pkgconfig/sqlcached.pc"), filled)
}

/// Copies beside the old file and renames, so that a program that uses the old library keeps it whole.
fn replace(from: &Path, to: &Path) -> std::io::Result<()> {
    let new = to.with_extension("new");
    let explain =
        |error: std::io::Error| std::io::Error::new(error.kind(), format!("{}: {error}", from.display()));
    fs::copy(from, &new).map_err(explain)?;
    fs::rename(new, to)
}

fn link(target: &str, at: &Path) -> std::io::Result<()> {
    if at.symlink_metadata().is_ok() {
        fs::remove_file(at)?;
    }
    symlink(target, at)
}
