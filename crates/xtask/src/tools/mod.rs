//! Installs the programs that the tests talk to, where they are missing.

mod packages;
mod sources;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::metadata::root;

/// A program we start, and the Debian package that has it.
const PROGRAMS: &[(&str, &str)] = &[
    ("memcached", "memcached"),
    ("redis-server", "redis-server"),
    ("memccapable", "libmemcached-tools"),
    ("valgrind", "valgrind"),
    ("zstd", "zstd"),
    ("nc", "netcat-openbsd"),
    ("ip", "iproute2"),
    ("python3", "python3"),
    ("perl", "perl"),
    ("gcc", "gcc"),
    ("psql", "postgresql-client-15"),
    ("pgbouncer", "pgbouncer"),
    ("php", "php-cli"),
    ("phpunit", "phpunit"),
    ("composer", "composer"),
    ("ruby", "ruby"),
    ("go", "golang-go"),
    ("javac", "default-jdk-headless"),
    ("mvn", "maven"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("pkg-config", "pkg-config"),
    ("xsubpp", "perl"),
    ("make", "make"),
    ("groff", "groff-base"),
    ("systemd-analyze", "systemd"),
    ("curl", "curl"),
    ("promtool", "prometheus"),
    ("chromium", "chromium"),
    ("systemd-nspawn", "systemd-container"),
    ("lintian", "lintian"),
];

/// What builds the daemon's packages.
const PACKERS: &[(&str, &str)] = &[
    ("dpkg-buildpackage", "dpkg-dev"),
    ("dh", "debhelper"),
    ("dh_installsysusers", "debhelper"),
    ("strip", "binutils"),
    ("umoci", "umoci"),
];

/// A file that no program of the search path shows, and the Debian package that has it.
const FILES: &[(&str, &str)] = &[
    ("/usr/lib/postgresql/15/bin/postgres", "postgresql-15"),
    ("/usr/include/postgresql/libpq-fe.h", "libpq-dev"),
    ("/usr/sbin/mariadbd", "mariadb-server-core"),
    ("/usr/bin/mariadb", "mariadb-client-core"),
    ("/usr/lib/python3/dist-packages/pylibmc/__init__.py", "python3-pylibmc"),
    ("/usr/share/rubygems-integration/all/specifications/dalli-3.0.6.gemspec", "ruby-dalli"),
    // Debian's updates change the version, and with it all other files.
    ("/var/lib/dpkg/info/ruby-activerecord.list", "ruby-activerecord"),
    ("/var/lib/dpkg/info/ruby-actionpack.list", "ruby-actionpack"),
    ("/var/lib/dpkg/info/ruby-railties.list", "ruby-railties"),
    ("/var/lib/dpkg/info/ruby-minitest.list", "ruby-minitest"),
    ("/var/lib/dpkg/info/ruby-mocha.list", "ruby-mocha"),
    ("/var/lib/dpkg/info/ruby-sqlite3.list", "ruby-sqlite3"),
    ("/usr/bin/puma", "puma"),
    ("/usr/sbin/iptables", "iptables"),
    ("/usr/share/rubygems-integration/3.1.0/specifications/pg-1.4.5.gemspec", "ruby-pg"),
    ("/usr/share/php/Psr/SimpleCache/autoload.php", "php-psr-simple-cache"),
    ("/usr/share/php/Cache/IntegrationTests/autoload.php", "php-cache-integration-tests"),
    ("/usr/share/php/Symfony/Component/Cache/autoload.php", "php-symfony-cache"),
    ("/usr/share/php/Symfony/Component/HttpFoundation/autoload.php", "php-symfony-http-foundation"),
    ("/usr/share/php/Symfony/Component/Routing/autoload.php", "php-symfony-routing"),
    ("/usr/share/php/Twig/autoload.php", "php-twig"),
    ("/usr/share/php/Illuminate/Cache/autoload.php", "php-illuminate-cache"),
    ("/usr/share/php/Illuminate/Config/autoload.php", "php-illuminate-config"),
    ("/usr/share/php/Illuminate/Events/autoload.php", "php-illuminate-events"),
];

/// PHP's drivers, and the Debian package of each.
const MODULES: &[(&str, &str)] = &[
    ("pdo_pgsql", "php-pgsql"),
    ("pdo_sqlite", "php-sqlite3"),
    ("mysqli", "php-mysql"),
    ("memcached", "php-memcached"),
    ("memcache", "php-memcache"),
];

/// The servers that experiments compare with: a file of each, and its Debian package. Tests need not all of them.
const PEERS: &[(&str, &str)] = &[
    ("/usr/bin/memcached", "memcached"),
    ("/usr/bin/redis-server", "redis-server"),
    ("/usr/lib/postgresql/15/bin/postgres", "postgresql-15"),
    ("/usr/sbin/mariadbd", "mariadb-server-core"),
];

/// Makes sure of the servers that experiments compare with. The experiments skip one that cannot be had.
pub(crate) fn install_peers() {
    for (file, package) in PEERS.iter().filter(|(file, _)| !Path::new(file).exists()) {
        if let Err(why) = apt_install(&[package]) {
            println!("{file} is missing: {why}");
        }
    }
}

/// As a step of `make test`.
pub(crate) fn check() -> Outcome {
    match install() {
        Ok(()) => Outcome::new(1, Vec::new()),
        Err(why) => Outcome::broken(why),
    }
}

/// Makes sure of every program, then of the packages that languages have registries of their own for.
pub(crate) fn install() -> Result<(), String> {
    let programs = missing(PROGRAMS).chain(missing(PACKERS));
    let files = FILES.iter().filter(|(file, _)| !Path::new(file).exists());
    let mut missing: Vec<&str> = programs.chain(files.map(|(_, package)| *package)).collect();
    if !venv_works() {
        missing.push("python3-venv");
    }
    missing.extend(MODULES.iter().filter(|(module, _)| !php_has(module)).map(|(_, package)| *package));
    if !missing.is_empty() {
        apt_install(&missing)?;
    }
    packages::install()
}

/// Makes sure of what makes the documents a site.
pub(crate) fn install_site() -> Result<(), String> {
    if !venv_works() {
        apt_install(&["python3-venv"])?;
    }
    packages::install_one("site")
}

/// Makes sure of what builds the daemon's packages.
pub(crate) fn install_packers() -> Result<(), String> {
    let missing: Vec<&str> = missing(PACKERS).collect();
    if missing.is_empty() { Ok(()) } else { apt_install(&missing) }
}

/// Makes sure of what runs the programs of another machine.
pub(crate) fn install_emulator(program: &str) -> Result<(), String> {
    if on_path(program) { Ok(()) } else { apt_install(&["qemu-user-static"]) }
}

/// Makes sure of the program that talks to the page of releases.
pub(crate) fn install_publisher() -> Result<(), String> {
    if on_path("gh") { Ok(()) } else { apt_install(&["gh"]) }
}

/// Makes sure of what compiles for another machine: Debian's compiler and C library for it, and Rust's own libraries.
pub(crate) fn install_cross(gnu: &str, debian: &str, target: &str) -> Result<(), String> {
    if !on_path(&format!("{gnu}-gcc")) {
        apt_install(&[&format!("gcc-{gnu}"), &format!("libc6-dev-{debian}-cross")])?;
    }
    let mut rustup = Command::new("rustup");
    if quiet(rustup.args(["target", "add", target]).current_dir(root())) {
        return Ok(());
    }
    Err(format!(
        "rustup target add {target} failed: without Rust's libraries for it nothing is compiled for {debian}"
    ))
}

/// The packages of the programs that are not there.
fn missing(programs: &'static [(&str, &str)]) -> impl Iterator<Item = &'static str> {
    programs.iter().filter(|(program, _)| !on_path(program)).map(|(_, package)| *package)
}

/// Makes sure of what builds clients' packages: Python with maturin, Composer, Ruby's gem, and Maven.
pub(crate) fn install_builders() -> Result<(), String> {
    let builders =
        [("composer", "composer"), ("gem", "ruby"), ("javac", "default-jdk-headless"), ("mvn", "maven")];
    for (program, package) in builders {
        if !on_path(program) {
            apt_install(&[package])?;
        }
    }
    packages::install_one("clients-java-build")?;
    packages::install_one("clients-python")
}

/// PHP's drivers are modules of the interpreter.
fn php_has(module: &str) -> bool {
    let modules = Command::new("php").arg("-m").output();
    modules.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).lines().any(|line| line == module))
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
