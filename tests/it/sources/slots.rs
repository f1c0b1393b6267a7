//! Named slots: rows stay over a reconnect and over a restart, if no change can have been missed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::{TABLE, asked, fill, psql, server, shop, stored, until, until_stored, wait};
use crate::client::Client;
use crate::daemon::run;
use crate::drivers::place::{Place, SqlDaemon};
use crate::drivers::postgresql::PostgreSql;

/// Kills in the loop; `KILLS=100` for more.
const KILLS: usize = 6;

const ALL: [u32; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// A daemon that follows by a slot named `cache`.
fn warm(database: &PostgreSql) -> SqlDaemon {
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(database));
    psql(&daemon.place, "ALTER SERVER pg OPTIONS (ADD slot 'cache')");
    psql(&daemon.place, TABLE);
    wait(&daemon, "streaming");
    daemon
}

fn filled(daemon: &SqlDaemon) -> Client {
    let mut client = daemon.daemon.connect();
    fill(daemon, &mut client);
    client
}

fn last_break(daemon: &SqlDaemon) -> String {
    psql(&daemon.place, "SELECT coalesce(last_break, 'none') FROM sqlcached_sources")
}

/// Waits until all that the source has written is applied, and shown by it.
fn until_applied(daemon: &SqlDaemon, source: &Place) {
    let lsn = psql(source, "SELECT pg_current_wal_lsn()");
    until("it is applied", || {
        psql(&daemon.place, &format!("SELECT wait_for_source('pg', '{lsn}', '30 s')")) == "t"
    });
    until("all is settled", || psql(&daemon.place, "SELECT max(unsettled) FROM sqlcached_sources") == "0");
}

/// A stream that breaks, a daemon that stops, one that is killed: what changed meanwhile is gone, and all else stays.
#[test]
fn rows_stay_over_a_reconnect_and_a_restart() {
    let database = shop(&["max_slot_wal_keep_size=1GB"]);
    let mut daemon = warm(&database);
    let source = &database.place;
    let mut client = filled(&daemon);
    psql(source, "SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
    psql(source, "UPDATE product SET price = 7 WHERE id = 1");
    until("it streams again", || {
        psql(&daemon.place, "SELECT state, reconnects FROM sqlcached_sources") == "streaming|1"
    });
    until_applied(&daemon, source);
    assert_eq!(stored(&mut client), ALL[1..]);
    drop(client);
    assert!(daemon.daemon.terminate().success());
    psql(source, "UPDATE product SET price = 7 WHERE id = 2");
    daemon.daemon.restart();
    // All that changed before the start is gone before anybody is served.
    let mut client = daemon.daemon.connect();
    assert_eq!(stored(&mut client), ALL[2..]);
    assert_eq!(last_break(&daemon), "none");
    daemon.daemon.kill();
    psql(source, "DELETE FROM product WHERE id = 3; INSERT INTO review VALUES (1, 4, 'x')");
    daemon.daemon.restart();
    let mut client = daemon.daemon.connect();
    assert_eq!(stored(&mut client), ALL[4..]);
    let facts = "SELECT slot, wal_status, lag_bytes < 100000 FROM sqlcached_sources";
    until("the slot's state is known", || psql(&daemon.place, facts) == "cache|reserved|t");
    // A table that did not follow begins with nothing, and the other keeps its rows.
    psql(
        &daemon.place,
        "CREATE TABLE other (id INT PRIMARY KEY, body TEXT) WITH (source = 'pg', depends = 'product(id)')",
    );
    thread::sleep(Duration::from_millis(300));
    assert_eq!(stored(&mut client), ALL[4..]);
    // A slot that nobody follows does not stay.
    psql(&daemon.place, "ALTER TABLE page RESET (source, depends); DROP TABLE other");
    until("the slot is gone", || psql(source, "SELECT count(*) FROM pg_replication_slots") == "0");
}

/// Where the source does not come back in time, the start does not wait for it, and nothing old is served.
#[test]
fn a_start_without_the_source_believes_nothing() {
    let mut database = shop(&["max_slot_wal_keep_size=1GB"]);
    let mut daemon = warm(&database);
    drop(filled(&daemon));
    assert!(daemon.daemon.terminate().success());
    database.stop_cleanly();
    daemon.daemon.restart();
    let mut client = daemon.daemon.connect();
    assert_eq!(stored(&mut client), [] as [u32; 0]);
    database.start_again();
    wait(&daemon, "streaming");
    assert_eq!(last_break(&daemon), "none", "the slot's stream goes on");
}

/// What may happen to a slot behind our back is told apart: in each case rows are not believed, it is said why, and the
/// stream begins again.
#[test]
fn what_became_of_a_slot_is_named() {
    let database = shop(&["max_slot_wal_keep_size=16MB"]);
    let mut daemon = warm(&database);
    let source = &database.place;
    let lose =
        "SELECT pg_switch_wal(); CREATE TABLE IF NOT EXISTS x (a INT); INSERT INTO x VALUES (1); CHECKPOINT";
    for (what, change, says) in [
        ("missing", vec!["SELECT pg_drop_replication_slot('cache')"; 1], "is missing"),
        (
            "moved",
            vec![
                "UPDATE product SET price = 8 WHERE id = 1",
                "SELECT pg_replication_slot_advance('cache', pg_current_wal_lsn())",
            ],
            "somebody else has read slot cache",
        ),
        ("invalidated", vec![lose; 6], "was invalidated"),
        (
            "published",
            vec![
                "ALTER PUBLICATION cache DROP TABLE product",
                "UPDATE product SET price = 9 WHERE id = 1",
                "ALTER PUBLICATION cache ADD TABLE product",
            ],
            "the publication",
        ),
        ("identity", vec!["ALTER TABLE product REPLICA IDENTITY FULL"], "the identity"),
    ] {
        drop(filled(&daemon));
        daemon.daemon.kill();
        // A killed daemon's connection ends soon.
        until("nobody uses the slot", || {
            psql(source, "SELECT count(*) FROM pg_replication_slots WHERE active") == "0"
        });
        for sql in change {
            psql_each(source, sql);
        }
        daemon.daemon.restart();
        wait(&daemon, "streaming");
        let mut client = daemon.daemon.connect();
        assert_eq!(stored(&mut client), [] as [u32; 0], "{what}");
        assert!(last_break(&daemon).contains(says), "{what}: {}", last_break(&daemon));
        assert_eq!(
            psql(source, "SELECT active, wal_status <> 'lost' FROM pg_replication_slots"),
            "t|t",
            "{what}"
        );
        fill(&daemon, &mut client);
        psql(source, "UPDATE product SET price = price + 1 WHERE id = 2");
        until_stored(&daemon, &mut client, &[1, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
}

/// Each statement for itself: some may stand in no transaction with others.
/// A publication that was away while a table changed is missing for that change for ever, so the slot could never be
/// read again: the source stayed lost, and its tables empty, until somebody removed the slot by hand.
#[test]
fn a_slot_that_cannot_be_read_any_more_is_replaced() {
    let database = shop(&["max_slot_wal_keep_size=1GB"]);
    let daemon = warm(&database);
    let source = &database.place;
    let mut client = filled(&daemon);
    psql_each(
        source,
        "ALTER PUBLICATION cache RENAME TO hidden; UPDATE product SET price = 7 WHERE id = 1; \
         ALTER PUBLICATION hidden RENAME TO cache; UPDATE product SET price = 8 WHERE id = 2",
    );
    until("it streams from a new slot", || {
        psql(&daemon.place, "SELECT state, slot, last_break IS NOT NULL FROM sqlcached_sources")
            == "streaming|cache|t"
    });
    assert!(last_break(&daemon).contains("is missing"), "{}", last_break(&daemon));
    until_applied(&daemon, source);
    assert!(!stored(&mut client).iter().any(|id| [1, 2].contains(id)));
    fill(&daemon, &mut client);
    psql(source, "UPDATE product SET price = 9 WHERE id = 3");
    until_applied(&daemon, source);
    assert_eq!(stored(&mut client), [1, 2, 4, 5, 6, 7, 8, 9, 10]);
}

fn psql_each(place: &Place, all: &str) {
    all.split("; ").for_each(|sql| drop(psql(place, sql)));
}

/// Somebody else streams from the slot: that is said, with what to do, and ends when they do.
#[test]
fn a_slot_in_use_is_not_taken() {
    let database = shop(&["max_slot_wal_keep_size=1GB"]);
    let mut daemon = warm(&database);
    drop(filled(&daemon));
    daemon.daemon.kill();
    until("nobody uses the slot", || {
        psql(&database.place, "SELECT count(*) FROM pg_replication_slots WHERE active") == "0"
    });
    let mut reader = database.place.program("pg_recvlogical");
    reader.args(["-d", "postgres", "--slot", "cache", "--start", "-f", "/dev/null", "-n"]);
    let mut reader = reader.args(["-o", "proto_version=1", "-o", "publication_names=cache"]).spawn().unwrap();
    until("somebody reads it", || psql(&database.place, "SELECT active FROM pg_replication_slots") == "t");
    daemon.daemon.restart();
    let mut error = String::new();
    until("it is said", || {
        error = psql(&daemon.place, "SELECT state, last_error FROM sqlcached_sources");
        error.starts_with("lost|")
    });
    assert!(error.contains("in use by another") && error.contains("pg_recvlogical"), "{error}");
    assert!(error.contains("55006") && error.contains("SET slot"), "{error}");
    reader.kill().unwrap();
    reader.wait().unwrap();
    wait(&daemon, "streaming");
}

/// A slot keeps the log of a source that nobody reads: who makes one is told.
#[test]
fn a_slot_without_a_limit_is_warned_of() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(&database));
    psql(&daemon.place, "ALTER SERVER pg OPTIONS (ADD slot 'cache')");
    let (code, _, said) = run(daemon.place.program("psql").args(["-X", "-c", TABLE]));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("NOTICE") && said.contains("max_slot_wal_keep_size = "), "{said}");
    daemon.daemon.wait_until_it_says("max_slot_wal_keep_size");
    for (option, state) in [("SET slot 'Not-a-slot'", "HV024"), ("ADD failover 'perhaps'", "HV024")] {
        let said = asked(&daemon.place, &format!("ALTER SERVER pg OPTIONS ({option})")).unwrap_err();
        assert!(said.contains(state), "{said}");
    }
}

/// A psql that stays connected.
pub(super) struct Talk {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Talk {
    pub(super) fn with(place: &Place) -> Self {
        let mut psql = place.program("psql");
        psql.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1"]);
        let mut child = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// Runs a statement and returns the lines of its answer.
    pub(super) fn ask(&mut self, sql: &str) -> Vec<String> {
        writeln!(self.input, "{sql};\n\\echo --").unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "psql ended at {sql}");
            match line.trim_end() {
                "--" => return lines,
                line => lines.push(line.to_owned()),
            }
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Fills pages with what the source says, by leases, as clients should; and goes on when the daemon is killed.
fn fill_by_leases(place: &Place, port: u16, stop: &AtomicBool) {
    let mut source = Talk::with(place);
    let mut rng = fastrand::Rng::new();
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut client) = Client::try_at("127.0.0.1", port) else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        while !stop.load(Ordering::Relaxed) && fill_one(&mut source, &mut client, rng.u32(1..=10)).is_some() {
        }
    }
}

/// `None`: the connection broke.
fn fill_one(source: &mut Talk, client: &mut Client, id: u32) -> Option<()> {
    client.try_send(format!("mg page:{id} c N30 v\r\n").as_bytes()).ok()?;
    let lease = client.try_line().ok().filter(|line| !line.is_empty())?;
    if lease.starts_with("VA") {
        client.try_line().ok()?;
    }
    let Some(cas) = lease.split(' ').find_map(|flag| flag.strip_prefix('c')).map(str::to_owned) else {
        return Some(());
    };
    if !lease.contains(" W") {
        return Some(());
    }
    let price = source.ask(&format!("SELECT price FROM product WHERE id = {id}")).concat();
    client.try_send(format!("ms page:{id} {} C{cas}\r\n{price}\r\n", price.len()).as_bytes()).ok()?;
    client.try_line().ok().filter(|line| !line.is_empty()).map(drop)
}

/// The position that is confirmed to the source is never ahead of the rows here: whenever the daemon is killed, a row
/// that is found after the next start is what the source says, or newer changes are still to come.
#[test]
fn kill_9_at_any_moment_leaves_no_old_row() {
    let kills = std::env::var("KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let database = shop(&["max_slot_wal_keep_size=1GB"]);
    let mut daemon = warm(&database);
    let (place, port) = (database.place.clone(), daemon.place.memcached.unwrap());
    let mut kept = 0;
    let mut rng = fastrand::Rng::new();
    for round in 0..kills {
        let stop = Arc::new(AtomicBool::new(false));
        let (own, from) = (Arc::clone(&stop), place.clone());
        let filler = thread::spawn(move || fill_by_leases(&from, port, &own));
        let (own, from) = (Arc::clone(&stop), place.clone());
        let writer = thread::spawn(move || {
            let (mut talk, mut rng) = (Talk::with(&from), fastrand::Rng::new());
            while !own.load(Ordering::Relaxed) {
                talk.ask(&format!("UPDATE product SET price = price + 1 WHERE id = {}", rng.u32(1..=5)));
                thread::sleep(Duration::from_millis(rng.u64(0..20)));
            }
        });
        thread::sleep(Duration::from_millis(rng.u64(50..2_500)));
        daemon.daemon.kill();
        thread::sleep(Duration::from_millis(rng.u64(0..100)));
        daemon.daemon.restart();
        let mut client = daemon.daemon.connect();
        // Rows 6 to 10 do not change, and need not be filled again.
        kept += stored(&mut client).iter().filter(|id| **id > 5).count();
        thread::sleep(Duration::from_millis(rng.u64(0..300)));
        stop.store(true, Ordering::Relaxed);
        filler.join().unwrap();
        writer.join().unwrap();
        wait(&daemon, "streaming");
        until_applied(&daemon, &database.place);
        for id in 1..=10 {
            let price = psql(&database.place, &format!("SELECT price FROM product WHERE id = {id}"));
            // No row is empty. An empty value is a reservation of `mg ... N` whose client was cut off.
            if let Some(page) = client.get(&format!("page:{id}")).filter(|page| !page.is_empty()) {
                assert_eq!(String::from_utf8_lossy(&page), price, "page {id} in round {round}");
            }
        }
        assert_eq!(last_break(&daemon), "none", "round {round}");
    }
    assert!(kept >= kills, "a restart is warm: {kept} rows in {kills} rounds");
}

/// What was applied once and is not yet shown by the source is not confirmed to it: a process that takes over has it
/// again, and so the second look at it. Otherwise a fill from before that moment would stay.
#[test]
fn a_change_that_the_source_does_not_show_comes_again() {
    let database = shop(&["max_slot_wal_keep_size=1GB"]);
    let mut daemon = warm(&database);
    let source = &database.place;
    drop(filled(&daemon));
    psql(source, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    psql(source, "SELECT pg_reload_conf()");
    until("commits wait", || psql(source, "SHOW synchronous_standby_names") == "nobody");
    let mut update = source.program("psql");
    let mut update =
        update.args(["-X", "-q", "-c", "UPDATE product SET name = 'new' WHERE id = 1"]).spawn().unwrap();
    until("the change was streamed", || psql(&daemon.place, "SELECT events FROM sqlcached_sources") == "1");
    let confirmed = "SELECT confirmed_flush_lsn FROM pg_replication_slots";
    // Positions are confirmed meanwhile, as each second.
    let before = psql(source, "SELECT pg_current_wal_lsn()");
    until_received(&daemon, &before);
    let mut client = daemon.daemon.connect();
    for _ in 0..2 {
        let place = psql(source, confirmed);
        assert_eq!(client.set("page:1", b"product 1"), "STORED");
        thread::sleep(Duration::from_millis(1_500));
        assert_eq!(psql(source, &format!("SELECT '{place}'::pg_lsn < '{before}'")), "t");
        daemon.daemon.kill();
        daemon.daemon.restart();
        client = daemon.daemon.connect();
        assert_eq!(client.get("page:1"), None, "the change came again");
        assert_eq!(stored(&mut client), ALL[1..]);
    }
    // And is looked at again when the source shows it.
    assert_eq!(client.set("page:1", b"product 1"), "STORED");
    psql(source, "ALTER SYSTEM RESET synchronous_standby_names");
    psql(source, "SELECT pg_reload_conf()");
    update.wait().unwrap();
    until("the old page is gone", || client.get("page:1").is_none());
    assert_eq!(last_break(&daemon), "none");
}

/// Waits until the stream was applied so far, be it shown or not.
fn until_received(daemon: &SqlDaemon, lsn: &str) {
    until("it is applied", || {
        psql(&daemon.place, &format!("SELECT wait_for_source('pg', '{lsn}', '30 s')")) == "t"
    });
}

/// With `on_lag = 'stale'` rows that may have missed changes stay: one client is asked for each, and what was read
/// before the new stream began is refused.
#[test]
fn rows_of_a_lost_source_may_become_stale() {
    let mut database = shop(&[]);
    let daemon = super::cache(&database);
    let refused = asked(&daemon.place, "ALTER TABLE page SET (on_lag = 'stale')").unwrap_err();
    assert!(refused.contains("needs stale_for"), "{refused}");
    psql(&daemon.place, "ALTER TABLE page SET (stale_for = '1 h', lease = '1 h', on_lag = 'stale')");
    let mut client = filled(&daemon);
    let stale = "SELECT count(*) FILTER (WHERE _stale), count(*) FROM page";
    assert_eq!(psql(&daemon.place, stale), "0|10");
    database.stop();
    until("all are stale", || psql(&daemon.place, stale) == "10|10");
    let lease = |client: &mut Client, id: u32| {
        let answer = client.ask(&format!("mg page:{id} c"));
        assert!(answer.contains(" W"), "{answer}");
        answer.split(' ').find_map(|flag| flag.strip_prefix('c')).unwrap().to_owned()
    };
    // One client refreshes while the source is away, and is stale again; the others are served meanwhile.
    let (early, late) = (lease(&mut client, 1), lease(&mut client, 2));
    assert_eq!(client.get("page:1").as_deref(), Some(&b"old"[..]));
    client.send(format!("ms page:1 3 C{early}\r\nnew\r\n").as_bytes());
    assert_eq!(client.line(), "HD");
    until("it is stale again", || psql(&daemon.place, stale) == "10|10");
    database.start_again();
    wait(&daemon, "streaming");
    assert_eq!(psql(&daemon.place, stale), "10|10");
    client.send(format!("ms page:2 3 C{late}\r\nold\r\n").as_bytes());
    assert_eq!(client.line(), "EX", "it was read before the new stream began");
    let now = lease(&mut client, 3);
    client.send(format!("ms page:3 3 C{now}\r\nnew\r\n").as_bytes());
    assert_eq!(client.line(), "HD");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(psql(&daemon.place, stale), "9|10");
    // Changes invalidate as before.
    psql(&database.place, "DELETE FROM product WHERE id = 3");
    until("it is gone", || psql(&daemon.place, "SELECT count(*) FROM page") == "9");
}

/// A commit that was not flushed is seen by readers, and lost by a crash, which a process of the source's own brings
/// about, too. A row that was read from it stayed for good, for no change ends what has never been.
#[test]
fn rows_of_commits_that_a_crash_lost_do_not_survive_it() {
    let settings = ["max_slot_wal_keep_size=1GB", "synchronous_commit=off", "wal_writer_delay=10s"];
    let mut database = shop(&settings);
    let daemon = warm(&database);
    let mut client = filled(&daemon);
    psql(&database.place, "UPDATE product SET name = 'ghost' WHERE id = 1");
    assert_eq!(client.set("page:1", b"ghost"), "STORED");
    database.stop();
    database.start_again();
    until("the crash is known", || last_break(&daemon).contains("recovered from a crash"));
    wait(&daemon, "streaming");
    assert_eq!(stored(&mut client), [] as [u32; 0]);
    // The server stays, and its processes are others.
    fill(&daemon, &mut client);
    let before = psql(&daemon.place, "SELECT reconnects FROM sqlcached_sources");
    let backend = database.place.program("psql").args(["-X", "-q", "-c", "SELECT pg_sleep(60)"]).spawn();
    let pid = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    until("it sleeps", || !psql(&database.place, pid).is_empty());
    let pid = psql(&database.place, pid);
    assert!(Command::new("kill").args(["-s", "KILL", &pid]).status().unwrap().success());
    backend.unwrap().wait().unwrap();
    until("it is followed again", || {
        psql(&daemon.place, "SELECT state FROM sqlcached_sources") == "streaming"
            && psql(&daemon.place, "SELECT reconnects FROM sqlcached_sources") != before
    });
    assert_eq!(stored(&mut client), [] as [u32; 0]);
    // A clean stop loses nothing, and rows stay.
    fill(&daemon, &mut client);
    database.stop_cleanly();
    database.start_again();
    wait(&daemon, "streaming");
    assert_eq!(stored(&mut client), ALL);
}
