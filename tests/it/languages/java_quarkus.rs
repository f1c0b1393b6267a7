//! What builds a program with Quarkus: Maven, told by a home of its own to use no network, and a repository with
//! Quarkus and with our jars.

use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{built, client, fetched, java, succeed};

/// The version that guides name.
const VERSION: &str = "0.1.0";

/// Our packages that the program needs, and what is in the jar of each.
const MODULES: [(&str, &[&str]); 2] =
    [("client", &["org/sqlcached/client"]), ("jcache", &["org/sqlcached/jcache", "META-INF"])];

/// A home for Maven, which reads its settings there.
pub(crate) fn home() -> PathBuf {
    let home = built("java").join("quarkus");
    fs::create_dir_all(home.join(".m2")).unwrap();
    // Test programs that run side by side share it.
    let lock = File::create(home.join("lock")).unwrap();
    lock.lock().unwrap();
    let repository = fetched("quarkus/repository");
    let classes = java::packages().split(':').next().unwrap();
    let ours = repository.join("org/sqlcached");
    put(&ours, "sqlcached-java", &client("java/pom.xml"));
    for (module, folders) in MODULES {
        let name = format!("sqlcached-{module}");
        let base = put(&ours, &name, &client("java").join(module).join("pom.xml"));
        let mut jar = Command::new("jar");
        jar.arg("--create").arg("--file").arg(base.with_extension("jar"));
        for folder in folders {
            jar.args(["-C", classes, folder]);
        }
        succeed(&jar);
    }
    let settings = format!(
        "<settings><offline>true</offline><localRepository>{}</localRepository></settings>\n",
        repository.display()
    );
    fs::write(home.join(".m2/settings.xml"), settings).unwrap();
    home
}

/// Puts a project's description where Maven looks for it; its path, whose ending says what it is.
fn put(ours: &Path, name: &str, description: &Path) -> PathBuf {
    let folder = ours.join(name).join(VERSION);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{name}-{VERSION}.pom"));
    fs::copy(description, &path).unwrap();
    path
}
