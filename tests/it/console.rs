//! The console in Debian's Chromium: `tests/drivers/console/console.js` clicks through it.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::daemon::{Daemon, PROGRAM, free_port};
use crate::skipped;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// A name and a value that would run where they are taken for markup.
const CANARY: &str = "<img src=x onerror=document.title='taken'>";
/// Another name of this kind.
const SCRIPT: &str = "<script>document.title='taken'</script>";

#[test]
fn the_console_in_a_browser() {
    let packages = Path::new(ROOT).join("target/drivers/console/node_modules");
    if !packages.is_dir() || !Path::new("/usr/bin/chromium").exists() {
        return skipped("Chromium or playwright-core is not installed; make tools does it");
    }
    let port = free_port();
    let flags = ["--http-port", &port.to_string(), "--log-min-duration-statement", "0"];
    let flags = [&flags[..], &["--log-parameter-max-length", "200"]].concat();
    let daemon = Daemon::start(&flags);
    let mut client = daemon.connect();
    client.change(&format!("CREATE TABLE \"{SCRIPT}\" (k BYTEA PRIMARY KEY)"));
    client.change(&format!("INSERT INTO \"{SCRIPT}\" VALUES ('\\x00ff3c7363726970743e')"));
    client.change(&format!("CREATE TABLE \"{CANARY}\" (k TEXT PRIMARY KEY, v TEXT)"));
    let quoted = CANARY.replace('\'', "''");
    client.change(&format!("INSERT INTO \"{CANARY}\" VALUES ('{quoted}', '{quoted}')"));
    // A statement and values with canaries invalidate rows.
    client.change(&format!("INSERT INTO \"{CANARY}\" VALUES ('a', 'gone'), ('b', 'gone')"));
    client.change(&format!("DELETE FROM \"{CANARY}\" WHERE v = 'gone' AND k <> '{quoted}'"));
    for number in 0..200 {
        client.set(&format!("k{number}"), &[b'x'; 500]);
        client.get(&format!("k{}", number * 2));
    }
    let port_flag = port.to_string();
    let starts = [PROGRAM, "-p", "-1", "-s", "none", "--arena", "none", "--sql-port", "0"];
    let starts = json!([&starts[..], &["--http-port", &port_flag]].concat());
    let output = Command::new("node")
        .arg(Path::new(ROOT).join("tests/drivers/console/console.js"))
        .env("NODE_PATH", packages)
        .env("CONSOLE_URL", format!("http://127.0.0.1:{port}/"))
        .env("CONSOLE_DAEMON", daemon.pid().to_string())
        .env("CONSOLE_STARTS", starts.to_string())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains(" checks"), "{}", text(&output.stdout));
}
