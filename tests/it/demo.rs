//! `make demo`: the shop on memcached and on the daemon, in Debian's Chromium (`tests/drivers/demo/demo.js`). Figures
//! that the browser shows are those that were counted, and nobody sees an old price. And `make demo-source`,
//! `make demo-cluster` and `make demo-forward`.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::daemon::{PROGRAM, free_port, run};
use crate::skipped;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The demo with its two servers, which it ends when it is asked to stop.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

fn demo(arguments: &[&str]) -> Command {
    program("examples/demo/demo.py", arguments)
}

/// Runs a program in Python, without the settings in the environment of the tests.
fn program(path: &str, arguments: &[&str]) -> Command {
    // A shell lets what it runs in the background ignore Ctrl-C, and so would the demo.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", "python3", "-B"]).arg(Path::new(ROOT).join(path)).args(arguments);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SQLCACHED_"))
    {
        command.env_remove(name);
    }
    command
}

/// Starts it and waits until it names its page.
fn start(path: &str, arguments: &[&str], port: &str) -> Demo {
    let arguments = [&["--program", PROGRAM, "--port", port], arguments].concat();
    let mut child = program(path, &arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let demo = Demo(child);
    let lines: Vec<String> =
        output.lines().map(Result::unwrap).take_while(|line| !line.starts_with("Ctrl-C")).collect();
    assert!(lines.iter().any(|line| line.ends_with(&format!("http://127.0.0.1:{port}/"))), "{lines:?}");
    demo
}

/// Starts a demo, and has a browser go through it.
fn browse(path: &str, arguments: &[&str], script: &str, expected: &str) {
    let packages = Path::new(ROOT).join("target/drivers/console/node_modules");
    if !packages.is_dir() || !Path::new("/usr/bin/chromium").exists() {
        return skipped("Chromium or playwright-core is not installed; make tools does it");
    }
    let port = free_port().to_string();
    let _demo = start(path, arguments, &port);
    let mut browser = Command::new("node");
    browser.arg(Path::new(ROOT).join("tests/drivers/demo").join(script)).env("NODE_PATH", packages);
    browser.env("DEMO_URL", format!("http://127.0.0.1:{port}/"));
    let (code, out, error) = run(&mut browser);
    assert_eq!((code, out.as_str()), (Some(0), expected), "{error}");
}

#[test]
fn the_demo_in_a_browser() {
    browse("examples/demo/demo.py", &[], "demo.js", "7 checks\n");
}

/// Caches and servers of NATS are killed, paused and cut off by the page's buttons. Who hears nothing says so, and
/// nobody sees an old price.
#[test]
fn the_demo_of_three_caches_in_a_browser() {
    let demo = "examples/demo-cluster/demo.py";
    assert_eq!(run(&mut program(demo, &["--check"])).0, Some(0));
    browse(demo, &["--rate", "10"], "cluster.js", "8 checks\n");
}

/// A shop in Django beside itself: once at its PostgreSQL, once with the port of the cache. Both show the same after
/// edits by psql, and the page says of each statement what became of it.
#[test]
fn the_demo_of_forwarding_in_a_browser() {
    let demo = "examples/demo-forward/demo.py";
    assert_eq!(run(&mut program(demo, &["--check"])).0, Some(0));
    browse(demo, &["--sales", "2000"], "forward.js", "6 checks\n");
}

/// Ctrl-C goes to every program of the terminal: the servers ended first, and the demos' threads and psql printed a
/// traceback each.
#[test]
fn ctrl_c_ends_the_demos_with_a_line() {
    for demo in ["demo", "demo-source", "demo-cluster", "demo-forward"] {
        let path = &*format!("examples/{demo}/demo.py");
        let mut demo = program(path, &["--program", PROGRAM]);
        demo.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut demo = Demo(demo.spawn().unwrap());
        let mut lines = BufReader::new(demo.0.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.starts_with("Ctrl-C ends it.")), "{path}");
        let group = format!("-{}", demo.0.id());
        assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
        assert_eq!(lines.last().as_deref(), Some("stopped"), "{path}");
        let mut error = String::new();
        demo.0.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        let is_said = |line: &str| line.contains(" notice: stopped by SIGTERM after ");
        assert!(error.lines().all(is_said), "{path}: {error}");
        assert_eq!(demo.0.wait().unwrap().code(), Some(0), "{path}");
    }
}

/// An edit in the middle of a fill: nobody sees the old price afterwards, and the demo would count it.
#[test]
fn the_demo_refuses_a_late_fill() {
    let root = Path::new(ROOT);
    let mut script = Command::new("python3");
    script.arg("-B").arg(root.join("tests/drivers/demo/late_fill.py")).arg(root.join("examples/demo"));
    let (code, out, error) = run(script.arg(PROGRAM));
    assert_eq!((code, out.as_str()), (Some(0), "held\n"), "{error}");
}

/// The diagrams in `docs/pictures` show what the journal of measurements says.
#[test]
fn pictures_are_drawn_from_the_journal() {
    let mut pictures = Command::new("python3");
    pictures.args(["-B", "bench/pictures.py", "--check", "docs/pictures"]).current_dir(ROOT);
    let (code, out, error) = run(&mut pictures);
    assert_eq!((code, out.as_str()), (Some(0), "4 pictures\n"), "{error}");
}

/// Before anything is built, it says what is missing.
#[test]
fn the_demo_says_what_it_needs() {
    let (code, _, error) = run(demo(&["--program", "/nowhere/sqlcached"]).env("PATH", "/usr/bin:/bin"));
    assert_eq!(
        (code, error.as_str()),
        (Some(1), "/nowhere/sqlcached is not installed: make demo builds it\n")
    );
    assert_eq!(run(demo(&["--check"]).env("PATH", "/usr/bin:/bin")).0, Some(0));
}

/// `make demo-source`: a real PostgreSQL is changed by psql, and clients of memcached get each new page.
#[test]
fn the_demo_of_a_source() {
    let demo = |arguments: &[&str]| program("examples/demo-source/demo.py", arguments);
    assert_eq!(run(&mut demo(&["--check"])).0, Some(0));
    let rounds = ["--program", PROGRAM, "--rounds", "3", "--every", "0.1"];
    let (code, out, error) = run(&mut demo(&rounds));
    assert_eq!(code, Some(0), "{out}{error}");
    assert_eq!(out.matches("psql> UPDATE product SET price = ").count(), 3, "{out}");
    assert_eq!(out.matches("      get product:").count(), 3, "{out}");
    assert!(out.contains("3 changes; each new page was there"), "{out}");
    let (code, _, error) = run(&mut demo(&["--program", "/nowhere/sqlcached"]));
    assert_eq!(
        (code, error.as_str()),
        (Some(1), "/nowhere/sqlcached is not installed: make demo-source builds it\n")
    );
}
