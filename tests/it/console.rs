//! The console in Debian's Chromium: `tests/drivers/console/console.js` clicks through it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::daemon::{Daemon, Folder, PROGRAM, free_port, run};
use crate::skipped;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// A name and a value that would run where they are taken for markup.
const CANARY: &str = "<img src=x onerror=document.title='taken'>";
/// Another name of this kind.
const SCRIPT: &str = "<script>document.title='taken'</script>";

/// A program in Chromium, and the console that it looks at; `None`: there is no Chromium.
fn browser(script: &str, port: u16) -> Option<Command> {
    let packages = Path::new(ROOT).join("target/drivers/console/node_modules");
    if !packages.is_dir() || !Path::new("/usr/bin/chromium").exists() {
        skipped("Chromium or playwright-core is not installed; make tools does it");
        return None;
    }
    let mut node = Command::new("node");
    node.arg(Path::new(ROOT).join("tests/drivers/console").join(script)).env("NODE_PATH", packages);
    node.env("CONSOLE_URL", format!("http://127.0.0.1:{port}/"));
    Some(node)
}

/// The console shows lists with these words: see `tests/drivers/console/shows.js`.
pub(crate) fn shows(port: u16, lists: &[&str]) {
    let Some(mut browser) = browser("shows.js", port) else { return };
    let (code, out, error) = run(browser.args(lists));
    assert_eq!((code, out.as_str()), (Some(0), "shown\n"), "{error}");
}

/// A role that is not shown something was told that there is none; and the page's own questions about rows that it may
/// not read filled the list of refusals.
#[test]
fn who_is_not_shown_something_is_told_so() {
    let folder = Folder::new();
    let rules = folder.write("rules", "local all all trust\nhost all all 0.0.0.0/0 password protocol=http\n");
    let roles = folder.write(
        "roles",
        "CREATE ROLE chief SUPERUSER LOGIN PASSWORD 'c';\nCREATE ROLE app LOGIN PASSWORD 'a';\n",
    );
    fs::set_permissions(&roles, fs::Permissions::from_mode(0o600)).unwrap();
    let port = free_port();
    let port_flag = port.to_string();
    let flags = ["--hba-file", rules.to_str().unwrap(), "--roles-file", roles.to_str().unwrap()];
    let flags = [&flags[..], &["--http-port", &port_flag, "--http-listen-addresses", "0.0.0.0"]].concat();
    let _daemon = Daemon::start_in(folder, &flags);
    let Some(mut app) = browser("shows.js", port) else { return };
    let lists = ["refusals", "slow", "invalidations", "forwarded"]
        .map(|name| format!("{name}/sqlcached_{name}/is not a member of pg_monitor"));
    let pages = [
        "/main/No figures/is not a member of pg_monitor",
        "table%2Fmemcached%2Frows/rows-words/may not read its rows",
        "table%2Fmemcached%2Fkeys/main/may not read its rows",
        "table%2Fmemcached/main/owner/chief/memcached_pkey",
    ];
    let (code, out, error) = run(app.env("CONSOLE_ROLE", "app:a").args(lists).args(pages));
    assert_eq!((code, out.as_str()), (Some(0), "shown\n"), "{error}");
    let Some(mut chief) = browser("shows.js", port) else { return };
    let nobody = "refusals/sqlcached_refusals/nobody was refused";
    let (code, out, error) = run(chief.env("CONSOLE_ROLE", "chief:c").arg(nobody));
    assert_eq!((code, out.as_str()), (Some(0), "shown\n"), "{error}");
}

#[test]
fn the_console_in_a_browser() {
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
    client.change("CREATE TABLE many (id INT PRIMARY KEY, page INT)");
    client.change("INSERT INTO many SELECT n, n / 10 * 10 FROM generate_series(0, 199) AS g(n)");
    for number in 0..200 {
        client.set(&format!("k{number}"), &[b'x'; 500]);
        client.get(&format!("k{}", number * 2));
    }
    let port_flag = port.to_string();
    let arena = daemon.folder.0.join("arena").to_str().unwrap().to_owned();
    let starts = [PROGRAM, "-p", "-1", "-s", "none", "--arena", &arena, "--sql-port", "0"];
    let starts = json!([&starts[..], &["--http-port", &port_flag]].concat());
    let Some(mut browser) = browser("console.js", port) else { return };
    let output = browser
        .env("CONSOLE_DAEMON", daemon.pid().to_string())
        .env("CONSOLE_STARTS", starts.to_string())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stderr), text(&output.stdout));
    assert!(text(&output.stdout).contains(" checks"), "{}", text(&output.stdout));
}

/// A server with many tables is one that somebody looks at in a hurry.
#[test]
fn the_first_figures_of_a_thousand_tables_come_at_once() {
    const TABLES: usize = 1_000;
    /// What a loaded machine may take; an idle one takes a tenth of it.
    const PATIENCE_MS: u64 = 5_000;
    let port = free_port();
    let daemon = Daemon::start(&["--http-port", &port.to_string()]);
    let mut client = daemon.connect();
    for number in 0..TABLES {
        client.change(&format!("CREATE TABLE t{number} (k TEXT PRIMARY KEY, v TEXT)"));
    }
    let Some(mut browser) = browser("first.js", port) else { return };
    let (code, out, error) = run(&mut browser);
    assert_eq!(code, Some(0), "{error}");
    println!("milliseconds to the first figures with {TABLES} tables: {out}");
    let measured: serde_json::Value = serde_json::from_str(&out).unwrap();
    for page in ["overview", "tables"] {
        for load in ["first", "again"] {
            assert!(measured[page][load].as_u64().unwrap() < PATIENCE_MS, "{measured}");
        }
    }
}
