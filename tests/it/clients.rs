//! Real clients, unchanged, and the twenty lines that make one for SQL.

use std::path::PathBuf;
use std::process::Command;

use crate::daemon::{Daemon, run};
use crate::skipped;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn script(name: &str) -> PathBuf {
    folder().join("tests/clients").join(name)
}

#[test]
fn pymemcache() {
    let python = folder().join("target/drivers/python/bin/python");
    assert!(python.exists(), "pymemcache is not installed; make tools does it");
    let daemon = Daemon::start(&[]);
    let mut command = Command::new(python);
    command.arg(script("pymemcache_session.py")).arg(daemon.socket()).arg(daemon.port.to_string());
    let (code, out, error) = run(&mut command);
    assert_eq!(code, Some(0), "{out}{error}");
    assert!(out.ends_with("checks\n"), "{out}");
}

/// libmemcached's conformance test: all 27 of its tests of each protocol.
#[test]
fn memccapable() {
    let daemon = Daemon::start(&[]);
    for protocol in ["-a", "-b"] {
        let mut command = Command::new("memccapable");
        command.args(["-h", "127.0.0.1", "-p", &daemon.port.to_string(), protocol]);
        if command.output().is_err() {
            skipped("memccapable is not installed; make tools does it");
            return;
        }
        let (code, out, error) = run(&mut command);
        let passed = (out.clone() + &error).matches("[pass]").count();
        assert!(code == Some(0) && passed == 27, "{protocol}: {passed} of 27 passed\n{out}{error}");
    }
}

/// Clients of the binary protocol, which most of them speak by default. Each command of a client's ends with `held`.
fn speaks_binary(client: &mut Command) {
    let daemon = Daemon::start(&[]);
    let (code, out, error) = run(client.arg(daemon.port.to_string()));
    assert_eq!((code, out.as_str()), (Some(0), "held\n"), "{error}");
}

/// Its sessions need the binary protocol with the extension's defaults: each page once waited for 30 s and failed.
#[test]
fn php_memcached_and_sessions() {
    speaks_binary(Command::new("php").arg(script("binary/memcached.php")));
}

#[test]
fn pylibmc_in_binary_mode() {
    speaks_binary(Command::new("/usr/bin/python3").arg(script("binary/pylibmc_binary.py")));
}

#[test]
fn python_binary_memcached() {
    let python = folder().join("target/drivers/bmemcached/bin/python");
    speaks_binary(Command::new(python).arg(script("binary/bmemcached_session.py")));
}

#[test]
fn dalli() {
    speaks_binary(Command::new("ruby").arg(script("binary/dalli.rb")));
}

#[test]
fn memjs() {
    let modules = folder().join("target/drivers/memjs/node_modules");
    speaks_binary(Command::new("node").env("NODE_PATH", modules).arg(script("binary/memjs.js")));
}

#[test]
fn spymemcached_in_binary_mode() {
    let jars = folder().join("target/drivers/spymemcached/*");
    let source = folder().join("tests/drivers/spymemcached/Binary.java");
    speaks_binary(Command::new("java").arg("-cp").arg(jars).arg(source));
}

#[test]
fn twenty_lines_of_python() {
    let daemon = Daemon::start(&[]);
    let (code, out, error) =
        run(Command::new("python3").arg(script("client.py")).arg(daemon.port.to_string()));
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert_eq!(out, "[{\"name\": \"one\"}, {\"name\": \"two\\nlines\"}]\n2\n");
}

#[test]
fn twenty_lines_of_perl() {
    let daemon = Daemon::start(&[]);
    let (code, out, error) = run(Command::new("perl").arg(script("client.pl")).arg(daemon.port.to_string()));
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert_eq!(out, "{\"id\":1,\"name\":\"one\"}\n{\"id\":2,\"name\":\"two\"}\n");
}

#[test]
fn twenty_lines_of_shell() {
    let daemon = Daemon::start(&[]);
    let (code, out, error) = run(Command::new("sh").arg(script("client.sh")).arg(daemon.port.to_string()));
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..4], ["OK 0", "OK 2", "{\"name\":\"two\"}", "END"]);
    assert!(lines[4].starts_with("ERROR 42703 "), "{out}");
}
