//! What `make packages` builds of clients, each installed where there is nothing of ours, as a user installs it. The
//! tests use no network: what the packages depend on is there already.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{HELLO, built, client, fetched, root, succeed, tell};
use crate::daemon::Daemon;

/// The folder of packages, built once.
fn packages() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = built("packages");
        let mut xtask = Command::new(env!("CARGO"));
        succeed(
            xtask.args(["xtask", "packages", "--debug", "--only", "clients"]).arg(&place).current_dir(root()),
        );
        place
    })
}

/// The package whose file name begins and ends so.
fn package(begin: &str, end: &str) -> PathBuf {
    let entries = fs::read_dir(packages()).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with(begin) && name.ends_with(end)
    };
    entries.into_iter().find(is_it).unwrap_or_else(|| panic!("no {begin}*{end}"))
}

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let place = built(name);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).unwrap();
    place
}

#[test]
fn wheels_install() {
    let place = folder("empty-environment");
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&place));
    // Django, psycopg and dogpile.cache are seen from another environment.
    let libraries = fs::read_dir(place.join("lib")).unwrap().next().unwrap().unwrap().path();
    let python = libraries.file_name().unwrap().to_owned();
    let others = fetched("clients-django").join("lib").join(python).join("site-packages");
    fs::write(libraries.join("site-packages/others.pth"), format!("{}\n", others.display())).unwrap();
    let mut pip = Command::new(place.join("bin/pip"));
    pip.env_remove("PIP_FIND_LINKS").args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
    ]);
    pip.arg("--find-links").arg(packages()).args(["django-sqlcached[near,sql]", "dogpile-sqlcached"]);
    succeed(&pip);
    let daemon = Daemon::start(&[]);
    for example in ["python/example.py", "dogpile/example.py"] {
        let mut python = Command::new(place.join("bin/python"));
        tell(&mut python, &daemon);
        assert_eq!(succeed(python.arg(client(example)).current_dir(&place)).0, HELLO);
    }
    let script = "import os, django; from django.conf import settings; settings.configure(CACHES={'default': {\
        'BACKEND': 'django_sqlcached.cache.SqlcachedCache', 'LOCATION': os.environ['SQLCACHED_SOCKET'], \
        'OPTIONS': {'shared_memory': True}}}, INSTALLED_APPS=['django_sqlcached']); django.setup(); \
        from django.core.cache import cache; cache.set('k', 'hello', tags=['t']); assert cache.table.near_error is None; \
        print(cache.get('k'))";
    let mut python = Command::new(place.join("bin/python"));
    tell(&mut python, &daemon);
    assert_eq!(succeed(python.args(["-c", script]).current_dir(&place)).0, HELLO);
}

/// The C library's archive, unpacked anywhere.
fn unpacked(name: &str) -> PathBuf {
    let place = folder(name);
    let mut tar = Command::new("tar");
    let architecture = format!("-linux-{}.tar.gz", std::env::consts::ARCH);
    tar.arg("-xzf").arg(package("sqlcached-client-", &architecture)).arg("-C").arg(&place);
    succeed(tar.args(["--strip-components", "1"]));
    place
}

#[test]
fn the_c_library_s_archive() {
    let place = unpacked("unpacked-library");
    let mut flags = Command::new("pkg-config");
    flags.args(["--cflags", "--libs", "sqlcached"]).env("PKG_CONFIG_PATH", place.join("lib/pkgconfig"));
    let (flags, _) = succeed(&flags);
    let program = place.join("example");
    let mut gcc = Command::new("gcc");
    gcc.arg(client("c/example.c")).arg("-o").arg(&program).args(flags.split_whitespace());
    succeed(&gcc);
    let daemon = Daemon::start(&[]);
    let mut example = Command::new(program);
    tell(&mut example, &daemon);
    assert_eq!(succeed(example.env_remove("LD_LIBRARY_PATH")).0, HELLO);
}

#[test]
fn the_npm_package() {
    let (library, app) = (unpacked("library-of-node"), folder("npm-app"));
    let headers = fetched("clients-node/node_modules/node-api-headers").canonicalize().unwrap();
    fs::write(app.join("package.json"), "{\"name\": \"app\", \"version\": \"1.0.0\"}").unwrap();
    for what in [headers, package("sqlcached-shared-memory-", ".tgz")] {
        let mut npm = Command::new("npm");
        npm.args(["install", "--offline", "--no-audit", "--no-fund"]).arg(what).current_dir(&app);
        npm.env("npm_config_cache", app.join("cache")).env("PKG_CONFIG_PATH", library.join("lib/pkgconfig"));
        succeed(&npm);
    }
    let daemon = Daemon::start(&[]);
    let mut example = Command::new("node");
    example.arg(client("node/example.js")).env("NODE_PATH", app.join("node_modules"));
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
}

/// A program of somebody's own that names the client by its path.
const RUST_PROGRAM: &str = r#"
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = sqlcached_client::Client::connect(&sqlcached_client::Options::new("/run/sqlcached/sock"))?;
    client.set_key(b"k", b"v", 0, 300)?;
    Ok(())
}
"#;

#[test]
fn the_rust_client_s_archive() {
    // Beside the program: a workspace takes what is below it for its own.
    let (unpacked, app) = (folder("rust-client"), folder("rust-app"));
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(package("sqlcached-client-rust-", ".tar.gz")).arg("-C").arg(&unpacked);
    succeed(tar.args(["--strip-components", "1"]));
    let manifest = format!(
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
         sqlcached-client = {{ path = \"{}/crates/client\" }}\n",
        unpacked.display()
    );
    fs::create_dir_all(app.join("src")).unwrap();
    fs::write(app.join("Cargo.toml"), manifest).unwrap();
    fs::write(app.join("src/main.rs"), RUST_PROGRAM).unwrap();
    // The versions that are fetched already.
    fs::copy(root().join("Cargo.lock"), app.join("Cargo.lock")).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--quiet", "--offline"]).current_dir(&app);
    succeed(cargo.env("CARGO_TARGET_DIR", built("rust-app-target")));
}

/// Composer installs the unpacked archive, without a network. The interfaces of PSR-16 are Debian's.
#[test]
fn the_composer_package() {
    let app = folder("composer-app");
    let unpacked = app.join("packages/sqlcached-cache");
    fs::create_dir_all(&unpacked).unwrap();
    let archive = package("sqlcached-cache-", ".tar");
    succeed(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(&unpacked));
    assert!(!unpacked.join("tests").exists());
    let project = r#"{"require": {"sqlcached/cache": "^0.1"}, "repositories": [
        {"type": "path", "url": "packages/sqlcached-cache"}, {"packagist.org": false}]}"#;
    fs::write(app.join("composer.json"), project).unwrap();
    let mut composer = Command::new("composer");
    composer.args(["install", "--no-interaction", "--no-plugins", "--quiet"]).current_dir(&app);
    composer.env("COMPOSER_HOME", app.join("home")).env("COMPOSER_ALLOW_SUPERUSER", "1");
    succeed(&composer);
    let daemon = Daemon::start(&[]);
    let mut example = Command::new("php");
    example.args(["-d", "zend.assertions=1"]);
    example.args(["-d", "auto_prepend_file=/usr/share/php/Psr/SimpleCache/autoload.php"]);
    example.arg(client("php/example.php")).current_dir(&app).env("TMPDIR", &app);
    tell(&mut example, &daemon);
    example.env("AUTOLOAD", app.join("vendor/autoload.php"));
    assert_eq!(succeed(&example).0, HELLO);
}

/// The gem is installed without a network. Rails is Debian's.
#[test]
fn the_gem() {
    let app = folder("gem-app");
    let home = |command: &mut Command| {
        command.current_dir(&app).env("HOME", &app).env("GEM_HOME", app.join("gems")).env_remove("RUBYLIB");
    };
    let mut gem = Command::new("gem");
    gem.args(["install", "--local", "--no-document", "--silent"]).arg(package("sqlcached-", ".gem"));
    home(&mut gem);
    succeed(&gem);
    assert!(!app.join("gems/gems/sqlcached-0.1.0/test").exists());
    let daemon = Daemon::start(&[]);
    let mut example = Command::new("ruby");
    example.arg(client("ruby/example.rb"));
    home(&mut example);
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
}

/// The stores for Node are installed without a network, and found by both kinds of modules.
#[test]
fn the_npm_package_of_stores() {
    let app = folder("npm-cache-app");
    fs::write(app.join("package.json"), "{\"name\": \"app\", \"version\": \"1.0.0\"}").unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--omit=dev", "--no-audit", "--no-fund"]);
    npm.arg(package("sqlcached-0", ".tgz"));
    succeed(npm.current_dir(&app).env("npm_config_cache", app.join("cache")));
    assert!(!app.join("node_modules/sqlcached/test").exists());
    let daemon = Daemon::start(&[]);
    for (kind, load) in [
        (
            "--input-type=commonjs",
            "const { KeyvSqlcached } = require('sqlcached/keyv'); require('sqlcached'); \
             require('sqlcached/next'); require('sqlcached/unstorage');",
        ),
        (
            "--input-type=module",
            "import { KeyvSqlcached } from 'sqlcached/keyv'; import 'sqlcached'; \
             import 'sqlcached/next'; import 'sqlcached/unstorage';",
        ),
    ] {
        let script = "const store = new KeyvSqlcached(`127.0.0.1:${process.env.SQLCACHED_PORT}`); \
            store.set('a', 'hello', 1000, ['t']).then(() => store.get('a')).then(console.log);";
        let mut node = Command::new("node");
        node.args([kind, "--eval", &format!("{load} {script}")]).current_dir(&app);
        tell(&mut node, &daemon);
        assert_eq!(succeed(&node).0, HELLO);
    }
}

/// The repository of Maven: its jars alone run the example, and Central would take what describes them.
#[test]
fn the_maven_packages() {
    let place = folder("maven-repository");
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(package("sqlcached-java-", ".tar.gz")).arg("-C").arg(&place);
    succeed(tar.args(["--strip-components", "1"]));
    let mut jars = Vec::new();
    for module in ["client", "map", "jcache", "hibernate", "spring"] {
        let artifact = place.join(format!("org/sqlcached/sqlcached-{module}/0.1.0/sqlcached-{module}-0.1.0"));
        let file = |end: &str| PathBuf::from(format!("{}{end}", artifact.display()));
        for end in ["-sources.jar", "-javadoc.jar", ".pom"] {
            assert!(file(end).exists(), "{}", file(end).display());
        }
        jars.push(file(".jar").display().to_string());
    }
    // Editors complete the settings of Spring Boot by it.
    let (list, _) = succeed(Command::new("jar").args(["--list", "--file"]).args(jars.last()));
    assert!(list.contains("META-INF/spring-configuration-metadata.json"), "{list}");
    let parent = place.join("org/sqlcached/sqlcached-java/0.1.0/sqlcached-java-0.1.0.pom");
    let parent = fs::read_to_string(parent).unwrap();
    for asked in ["<name>", "<description>", "<url>", "<licenses>", "<developers>", "<scm>"] {
        assert!(parent.contains(asked), "{asked}");
    }
    jars.push(fetched("clients-java/cache-api-1.1.1.jar").display().to_string());
    let daemon = Daemon::start(&[]);
    let mut java = Command::new("java");
    java.args(["-cp", &jars.join(":")]).arg(client("java/Example.java"));
    tell(&mut java, &daemon);
    assert_eq!(succeed(&java).0, HELLO);
}
