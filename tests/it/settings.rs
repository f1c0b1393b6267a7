//! Flags, environment, file, SIGHUP.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Client, Reply};
use crate::daemon::{Daemon, Folder, free_port, program, run};

#[test]
fn wrong_settings_say_name_place_value_and_what_is_allowed() {
    let folder = Folder::new();
    let file = folder.write("conf", "threads = 2\nport = 99999\n");
    let file = file.to_str().unwrap();
    for (flags, variable, message) in [
        (
            &["-p", "eleven"][..],
            None,
            "port: 'eleven' (from the flag -p, --port) is not allowed; allowed is a whole number",
        ),
        (&["-m", "-5"], None, "memory_mb: '-5' (from the flag -m, --memory-mb) is not allowed"),
        (
            &["-I", "2t"],
            None,
            "max_item_size: '2t' (from the flag -I, --max-item-size) is not allowed; allowed is a size",
        ),
        (
            &["-l", "0.0.0.256"],
            None,
            "listen_addresses: '0.0.0.256' (from the flag -l, --listen-addresses) is not allowed",
        ),
        (&[], Some(("SQLCACHED_THREADS", "many")), "(from the environment variable SQLCACHED_THREADS)"),
        (
            &["--config", file],
            None,
            "conf line 2) is not allowed; allowed is a whole number from 0 to 65535, or -1",
        ),
        (&["--config", "/nowhere/conf"], None, "config: /nowhere/conf: No such file"),
        (&["--frobnicate"], None, "unexpected argument '--frobnicate'"),
        (&["--memroy", "64"], None, "a similar argument exists: '--memory-mb'"),
        (&["-m", "1000kB"], None, "allowed is a number of MiB from 1 to 16777216, or a size of whole MiB"),
        (&["-o", "hash_algoritm=jenkins"], None, "did you mean hash_algorithm?"),
        (&["get"], None, "unrecognized subcommand 'get'"),
    ] {
        let mut command = program();
        command.args(flags);
        if let Some((name, value)) = variable {
            command.env(name, value);
        }
        let (code, _, error) = run(&mut command);
        assert_eq!(code, Some(2), "{flags:?}: {error}");
        assert!(error.contains(message), "{flags:?}: {error}");
    }
}

#[test]
fn help_version_and_default_file() {
    let (code, help, _) = run(program().arg("--help"));
    assert_eq!(code, Some(0));
    for word in ["-p, --port", "-m, --memory-mb", "-I, --max-item-size", "--init-file", "SQLCACHED_<NAME>"] {
        assert!(help.contains(word), "{word}\n{help}");
    }
    let (code, version, _) = run(program().arg("-V"));
    assert_eq!((code, version.starts_with("sqlcached ")), (Some(0), true));
    let (_, printed, _) = run(program().arg("--print-config"));
    assert_eq!(printed, include_str!("../../docs/sqlcached.toml"));
}

#[test]
fn a_flag_goes_before_the_environment_and_that_before_the_file() {
    let folder = Folder::new();
    let file = folder.write("conf", "max_connections = 11\nthreads = 3\nmemory_mb = 33\n");
    let socket = folder.0.join("sock");
    let mut command = program();
    command.args(["-p", "0", "-m", "31", "--arena", "none", "-s"]).arg(&socket);
    command.env("SQLCACHED_CONFIG", &file).env("SQLCACHED_THREADS", "2").env("SQLCACHED_MEMORY_MB", "32");
    let mut child = command.spawn().unwrap();
    while !socket.exists() && child.try_wait().unwrap().is_none() {
        // Waits for another process.
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut client = Client::unix(&socket);
    let found = (client.stat("limit_maxbytes"), client.stat("threads"), client.stat("max_connections"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found, (31 << 20, 2, 11));
}

#[test]
fn sighup_reads_the_file_again() {
    let folder = Folder::new();
    let file = folder.write("conf", "statement_timeout = '30s'\nsql_threads = 1\n");
    let daemon = Daemon::start_in(folder, &["--config", file.to_str().unwrap()]);
    let mut client = daemon.connect();
    fs::write(&file, "statement_timeout = '50ms'\nsql_threads = 2\n").unwrap();
    daemon.signal("HUP");
    daemon.wait_until_it_says("sql_threads changes at the next start");
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    assert!(matches!(client.sql(endless), Reply::Error(state, _) if state == "57014"));
    fs::write(&file, "statement_timeout = 'soon'\n").unwrap();
    daemon.signal("HUP");
    daemon.wait_until_it_says("the settings were not changed: statement_timeout: 'soon'");
    assert_eq!(client.sql("SELECT 1 AS one"), Reply::Rows(vec![json!({"one": 1})]));
}

/// At verbosity 0, the default, a daemon that did what its operator asked for said nothing.
#[test]
fn what_an_operator_asked_for_is_in_the_log_at_any_verbosity() {
    let folder = Folder::new();
    let file = folder.write("conf", "idle_timeout = '30s'\n");
    let mut daemon = Daemon::start_in(folder, &["--config", file.to_str().unwrap()]);
    daemon.signal("HUP");
    daemon.wait_until_it_says("settings read again: none changed");
    fs::write(&file, "idle_timeout = '50s'\nlog_min_duration_statement = '1s'\n").unwrap();
    daemon.signal("HUP");
    daemon.wait_until_it_says("settings read again: idle_timeout, log_min_duration_statement changed");
    for (signal, name) in [("INT", "SIGINT"), ("TERM", "SIGTERM")] {
        daemon.signal(signal);
        assert_eq!(daemon.wait().code(), Some(0));
        let lines = daemon.printed();
        let line = lines.lines().find(|line| line.contains(&format!("stopped by {name} after "))).unwrap();
        assert!(line.contains(" s; every reply was sent"), "{line}");
        daemon.restart();
    }
}

/// Who runs a statement is the daemon's to say, at any time, and a session's own.
#[test]
fn sqlite_runs_every_statement_where_that_is_wished() {
    let folder = Folder::new();
    let file = folder.write("conf", "native_execution = true\n");
    let daemon = Daemon::start_in(folder, &["--config", file.to_str().unwrap()]);
    let mut client = daemon.connect();
    let explain = "EXPLAIN SELECT value FROM memcached WHERE key = 'a'";
    let executor = |client: &mut Client| match client.sql(explain) {
        Reply::Rows(rows) => rows[0]["QUERY PLAN"].as_str().unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(executor(&mut client), "Executor: native");
    fs::write(&file, "native_execution = false\n").unwrap();
    daemon.signal("HUP");
    let end = Instant::now() + Duration::from_secs(20);
    while executor(&mut client) != "Executor: sqlite" {
        assert!(Instant::now() < end, "the setting has no effect");
    }
}

/// `SHOW` knew the session's settings only: `SHOW memory_mb` was an error where `current_setting('memory_mb')`
/// answered, and `SHOW ALL` listed none of the daemon's.
#[test]
fn show_tells_every_setting_as_the_catalogue_does() {
    let port = free_port().to_string();
    let daemon = Daemon::start(&["--sql-port", &port, "-m", "33"]);
    let ask = |statement: &str| -> Vec<String> {
        let mut psql = Command::new("psql");
        psql.args(["-h", "127.0.0.1", "-p", &port, "-U", "sqlcached", "-d", "sqlcached", "-XAtc", statement]);
        let output = psql.output().expect("psql is installed");
        assert!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    };
    let of_catalogue = ask("SELECT name || '|' || coalesce(setting, '') FROM sqlcached_settings");
    assert!(of_catalogue.contains(&"memory_mb|33".to_owned()), "{of_catalogue:?}");
    let all = ask("SHOW ALL");
    for line in &of_catalogue {
        let (name, value) = line.split_once('|').unwrap();
        assert_eq!(
            ask(&format!("SHOW {name}")).concat(),
            ask(&format!("SELECT current_setting('{name}')")).concat()
        );
        let in_session = ["statement_timeout", "native_execution"].contains(&name);
        let shown = all.iter().find(|shown| shown.starts_with(&format!("{name}|"))).expect(name);
        assert!(in_session || shown.starts_with(&format!("{name}|{value}|")), "{shown}");
    }
    assert_eq!(ask("SHOW server_version"), ask("SELECT current_setting('server_version')"));
    drop(daemon);
}
