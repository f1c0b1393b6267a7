//! The clients that come from a language's own registry: pinned by a lock file under `tests/drivers`, `tests/orms` or
//! `clients`, put under `target/drivers`, and fetched again only when the lock file changed. The tests themselves need
//! no network.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{run, sources};
use crate::metadata::root;

/// A set of packages: the folder under `target/drivers` with what was fetched, the file that pins the versions, and
/// how to fetch it.
struct Packages {
    name: &'static str,
    pinned_by: &'static str,
    fetch: fn(from: &Path, to: &Path) -> Result<(), String>,
}

const PACKAGES: &[Packages] = &[
    Packages { name: "python", pinned_by: "tests/drivers/requirements.txt", fetch: fetch_python },
    Packages { name: "node", pinned_by: "tests/drivers/node-postgres/package-lock.json", fetch: fetch_node },
    Packages { name: "go", pinned_by: "tests/drivers/pgx/go.sum", fetch: fetch_go },
    Packages { name: "java", pinned_by: "tests/drivers/pgjdbc/pom.xml", fetch: fetch_java },
    Packages { name: "clients-python", pinned_by: "clients/python/requirements.txt", fetch: fetch_python },
    Packages { name: "clients-django", pinned_by: "clients/django/requirements.txt", fetch: fetch_django },
    Packages {
        name: "clients-django-4.2",
        pinned_by: "clients/django/requirements-4.2.txt",
        fetch: fetch_django,
    },
    Packages { name: "clients-php", pinned_by: "clients/php/tests/suites.txt", fetch: sources::fetch },
    Packages { name: "clients-ruby", pinned_by: "clients/ruby/test/suites.txt", fetch: sources::fetch },
    Packages {
        name: "wordpress",
        pinned_by: "clients/php/tests/wordpress/packages.txt",
        fetch: sources::unpack,
    },
    Packages { name: "clients-node", pinned_by: "clients/node/package-lock.json", fetch: fetch_node },
    Packages {
        name: "clients-node-cache",
        pinned_by: "clients/node-cache/package-lock.json",
        fetch: fetch_node,
    },
    Packages { name: "clients-java", pinned_by: "clients/java/tests/pom.xml", fetch: fetch_java },
    Packages {
        name: "clients-java-hibernate",
        pinned_by: "clients/java/hibernate/tests/pom.xml",
        fetch: fetch_java,
    },
    Packages {
        name: "clients-java-spring",
        pinned_by: "clients/java/spring/tests/pom.xml",
        fetch: fetch_java,
    },
    Packages { name: "java-25", pinned_by: "tests/drivers/java-25/requirements.txt", fetch: fetch_python },
    Packages { name: "clients-java-build", pinned_by: "clients/java/pom.xml", fetch: fetch_maven },
    Packages {
        name: "clients-node-next",
        pinned_by: "clients/node-cache/test/next-app/package-lock.json",
        fetch: fetch_node,
    },
    Packages {
        name: "bmemcached",
        pinned_by: "tests/drivers/bmemcached/requirements.txt",
        fetch: fetch_python,
    },
    Packages { name: "console", pinned_by: "tests/drivers/console/package-lock.json", fetch: fetch_node },
    Packages {
        name: "manifests",
        pinned_by: "tests/drivers/manifests/requirements.txt",
        fetch: fetch_python,
    },
    Packages { name: "compose", pinned_by: "tests/drivers/manifests/compose.txt", fetch: fetch_schema },
    Packages { name: "memjs", pinned_by: "tests/drivers/memjs/package-lock.json", fetch: fetch_node },
    Packages { name: "micronaut", pinned_by: "tests/drivers/micronaut/pom.xml", fetch: fetch_java },
    Packages { name: "nats", pinned_by: "tests/drivers/nats/requirements.txt", fetch: fetch_python },
    Packages { name: "orms-node", pinned_by: "tests/orms/node/package-lock.json", fetch: fetch_node },
    Packages { name: "orms-go", pinned_by: "tests/orms/go/go.sum", fetch: fetch_go },
    Packages { name: "orms-java", pinned_by: "tests/orms/java/pom.xml", fetch: fetch_java },
    Packages {
        name: "postgresql-17",
        pinned_by: "tests/drivers/postgresql-17/pom.xml",
        fetch: fetch_postgresql,
    },
    Packages { name: "quarkus", pinned_by: "tests/drivers/quarkus/pom.xml", fetch: fetch_maven },
    Packages { name: "site", pinned_by: "docs/site/requirements.txt", fetch: fetch_python },
    Packages { name: "spymemcached", pinned_by: "tests/drivers/spymemcached/pom.xml", fetch: fetch_java },
];

/// Fetches what is missing or was pinned otherwise.
pub(super) fn install() -> Result<(), String> {
    PACKAGES.iter().try_for_each(Packages::install)
}

/// Fetches one set of packages.
pub(super) fn install_one(name: &str) -> Result<(), String> {
    PACKAGES.iter().filter(|packages| packages.name == name).try_for_each(Packages::install)
}

impl Packages {
    /// A copy of the pinning file, made last, says that all of it is there.
    fn install(&self) -> Result<(), String> {
        let pins = root().join(self.pinned_by);
        let folder = root().join("target/drivers").join(self.name);
        let stamp = folder.join("fetched");
        let wanted = fs::read(&pins).map_err(|error| format!("{}: {error}", pins.display()))?;
        if fs::read(&stamp).is_ok_and(|fetched| fetched == wanted) {
            return Ok(());
        }
        println!("fetching the packages of {}", self.pinned_by);
        let explain = |error| format!("{}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(explain)?;
        }
        fs::create_dir_all(&folder).map_err(explain)?;
        (self.fetch)(&pins, &folder)?;
        fs::write(&stamp, wanted).map_err(explain)
    }
}

/// A virtual environment with exactly the pinned packages.
fn fetch_python(requirements: &Path, to: &Path) -> Result<(), String> {
    run(Command::new("python3").args(["-m", "venv"]).arg(to))?;
    let mut pip = Command::new(to.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"]);
    run(pip.arg(requirements))
}

/// A virtual environment, and Django's own tests beside it: they are in its source distribution only.
fn fetch_django(requirements: &Path, to: &Path) -> Result<(), String> {
    fetch_python(requirements, to)?;
    let pins =
        fs::read_to_string(requirements).map_err(|error| format!("{}: {error}", requirements.display()))?;
    let django =
        pins.lines().find(|line| line.starts_with("Django==")).ok_or("no version of Django is pinned")?;
    let mut pip = Command::new(to.join("bin/pip"));
    pip.args(["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", "Django"]);
    run(pip.arg("--dest").arg(to.join("source")).arg(django))?;
    let archive = format!("django-{}", &django["Django==".len()..]);
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(to.join("source").join(format!("{archive}.tar.gz"))).arg("-C").arg(to);
    run(tar.args(["--strip-components", "1"]).arg(format!("{archive}/tests")))
}

/// The versions of the lock file, checked against its digests, without running what packages bring as scripts.
fn fetch_node(lock: &Path, to: &Path) -> Result<(), String> {
    for file in [lock.to_path_buf(), lock.with_file_name("package.json")] {
        let copy = to.join(file.file_name().unwrap_or_default());
        fs::copy(&file, &copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
    run(npm.current_dir(to))
}

/// A module cache, checked against `go.sum`, from which the test builds; the build here leaves it the modules compiled.
/// Go makes what it fetched read-only unless told otherwise, and then it could not be fetched again.
fn fetch_go(sums: &Path, to: &Path) -> Result<(), String> {
    for arguments in [&["mod", "download"][..], &["build", "-o", "/dev/null", "./..."]] {
        let mut go = Command::new("go");
        go.args(arguments).env("GOTOOLCHAIN", "local").env("GOMODCACHE", to).env("GOFLAGS", "-modcacherw");
        run(go.current_dir(sums.parent().unwrap_or_else(|| Path::new("."))))?;
    }
    Ok(())
}

/// The schema of compose files, out of the module that docker's own program reads them with. Of the module nothing is
/// compiled, so any version of Go will do.
fn fetch_schema(pin: &Path, to: &Path) -> Result<(), String> {
    let pinned = fs::read_to_string(pin).map_err(|error| format!("{}: {error}", pin.display()))?;
    let (module, sum) =
        pinned.trim().split_once(' ').ok_or_else(|| format!("{}: no checksum", pin.display()))?;
    let mut go = Command::new("go");
    go.args(["mod", "download", "-json", module]).env("GOTOOLCHAIN", "local").current_dir(to);
    let output = go
        .env("GOMODCACHE", to)
        .env("GOFLAGS", "-modcacherw")
        .output()
        .map_err(|error| format!("go: {error}"))?;
    let said: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("go mod download {module}: {error}"))?;
    if said["Sum"].as_str() != Some(sum) {
        return Err(format!("{module} is not what {} pins: {said}", pin.display()));
    }
    let schema = Path::new(said["Dir"].as_str().unwrap_or_default()).join("schema/compose-spec.json");
    fs::copy(&schema, to.join("compose-spec.json"))
        .map_err(|error| format!("{}: {error}", schema.display()))?;
    Ok(())
}

/// A PostgreSQL of a version that Debian does not have: an archive in an archive.
fn fetch_postgresql(project: &Path, to: &Path) -> Result<(), String> {
    fetch_java(project, to)?;
    let found = fs::read_dir(to).map_err(|error| format!("{}: {error}", to.display()))?;
    let jar = found
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "jar"));
    let jar = jar.ok_or_else(|| format!("{}: no archive was fetched", to.display()))?;
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&jar).arg(to))?;
    run(Command::new("tar").arg("-xJf").arg(to.join("postgres-linux-x86_64.txz")).arg("-C").arg(to))
}

/// The driver's archive and what it needs at run time.
fn fetch_java(project: &Path, to: &Path) -> Result<(), String> {
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "--file"]).arg(project).arg("dependency:copy-dependencies");
    run(maven.arg(format!("-DoutputDirectory={}", to.display())))
}

/// A repository with all that builds a project of Maven, which then needs no network: it is built once, from a copy.
fn fetch_maven(project: &Path, to: &Path) -> Result<(), String> {
    let copy = to.join("project");
    run(Command::new("cp").arg("-r").arg(project.parent().unwrap_or_else(|| Path::new("."))).arg(&copy))?;
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "package", "--file"]).arg(copy.join("pom.xml"));
    run(maven.arg(format!("-Dmaven.repo.local={}", to.join("repository").display())))?;
    fs::remove_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))
}
