//! The user's PostgreSQL as the bus: real servers that are killed, paused, restored, promoted and cut off, and that are
//! not set up as they must be.

mod wrong;

use std::time::{Duration, Instant};

use super::relay::Relay;
use super::{PATIENT, count, figure, fill, hear, pages, state, tables, until_noted, wait};
use crate::client::Client;
use crate::drivers::place::SqlDaemon;
use crate::drivers::postgresql::PostgreSql;
use crate::sources::{asked, psql, until};

/// The slot that keeps the messages.
pub(super) const KEEPER: &str = "sqlcached_bus_sqlcached";

/// What a server of the test's must be set to.
const SETTINGS: &[&str] = &["wal_level=logical", "max_slot_wal_keep_size=1GB"];

/// A database that may be a bus.
pub(super) fn database() -> PostgreSql {
    let database = PostgreSql::start_with(SETTINGS);
    make_role(&database);
    database
}

fn make_role(database: &PostgreSql) {
    psql(
        &database.place,
        "CREATE ROLE cache LOGIN REPLICATION PASSWORD 'hidden'; GRANT CREATE ON DATABASE postgres TO cache",
    );
}

/// What makes a bus of a database.
fn server(port: u16, max_lag: &str) -> String {
    format!(
        "CREATE SERVER bus FOREIGN DATA WRAPPER postgres OPTIONS
             (bus 'on', host '127.0.0.1', port '{port}', dbname 'postgres', connect_timeout '2', max_lag '{max_lag}');
         CREATE USER MAPPING FOR PUBLIC SERVER bus OPTIONS (user 'cache', password 'hidden')"
    )
}

pub(super) fn cache_by(port: u16, max_lag: &str) -> SqlDaemon {
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &format!("{}; {}", server(port, max_lag), tables()));
    wait(&daemon, "streaming");
    daemon
}

fn cache(database: &PostgreSql) -> SqlDaemon {
    cache_by(database.place.port, PATIENT)
}

fn breaks(daemons: &[&SqlDaemon]) -> u64 {
    daemons.iter().map(|daemon| figure(daemon, "breaks")).sum()
}

fn last_break(daemon: &SqlDaemon) -> String {
    psql(&daemon.place, "SELECT coalesce(last_break, '') FROM sqlcached_buses")
}

/// Deletes a page as often as it takes until the bus has acknowledged that.
fn delete(daemon: &SqlDaemon, id: u32) {
    let mut client = daemon.daemon.connect();
    until("a deletion is acknowledged", || {
        let answer = client.ask(&format!("delete page:{id}"));
        answer == "DELETED" || answer == "NOT_FOUND"
    });
}

/// Whatever removes rows in one cache removes them in the others, whether the first had them or not.
fn reaches_all(database: &PostgreSql) {
    let caches = [(); 3].map(|()| cache(database));
    let mut clients: Vec<Client> = caches.iter().map(fill).collect();
    let [a, b, c] = &caches;
    let heard = |wanted: &str| {
        for other in [b, c] {
            hear(a, other);
            assert_eq!(pages(other), wanted);
        }
    };
    assert_eq!(clients[0].ask("delete page:1"), "DELETED");
    heard("2 3 4 5 6 7 8 9 10");
    assert_eq!(clients[1].set("page:1", b"again"), "STORED");
    assert_eq!(clients[0].ask("delete page:1"), "NOT_FOUND");
    heard("2 3 4 5 6 7 8 9 10");
    psql(&a.place, "DELETE FROM page WHERE uid = 1");
    heard("2 3 5 6 8 9");
    psql(&a.place, "BEGIN; DELETE FROM sess WHERE uid = 2; DELETE FROM page WHERE id = 9; COMMIT");
    heard("2 3 5 6 8");
    assert_eq!(count(b, "sess"), "7");
    psql(&a.place, "BEGIN; DELETE FROM page; ROLLBACK");
    heard("2 3 5 6 8");
    psql(&a.place, "TRUNCATE page");
    heard("");
    fill(b);
    assert_eq!(clients[0].ask("flush_all"), "OK");
    heard("");
    // What the database itself is used for is no matter of the bus, nor what others say in its log.
    fill(b);
    psql(
        &database.place,
        "CREATE TABLE mine (id INT); INSERT INTO mine SELECT generate_series(1, 1000);
         SELECT pg_logical_emit_message(true, 'mine', 'text'), pg_logical_emit_message(false, 'mine', 'text')",
    );
    hear(a, b);
    assert_eq!(pages(b), "1 2 3 4 5 6 7 8 9 10");
    let nodes = "SELECT count(*), count(*) FILTER (WHERE own) FROM sqlcached_nodes";
    until("each sees three", || psql(&a.place, nodes) == "3|1");
    let history = "SELECT epoch FROM sqlcached_buses";
    until("all have one history", || {
        let own = psql(&a.place, history);
        !own.is_empty() && own == psql(&b.place, history) && own == psql(&c.place, history)
    });
    assert_eq!(breaks(&[a, b, c]) + figure(c, "unapplied"), 0);
    // One slot stays, and each cache has one that goes with it.
    let slots = "SELECT count(*) FILTER (WHERE temporary), count(*) FROM pg_replication_slots";
    until("each listens once", || psql(&database.place, slots) == "3|4");
    drop(caches);
    until("slots of caches go with them", || psql(&database.place, slots) == "0|1");
}

#[test]
fn an_invalidation_reaches_all_caches() {
    reaches_all(&database());
}

#[test]
fn an_invalidation_reaches_all_caches_by_version_17() {
    let Some(database) = PostgreSql::start_17(SETTINGS) else {
        return crate::skipped("PostgreSQL 17 cannot be run by its user here");
    };
    make_role(&database);
    reaches_all(&database);
}

/// A client that sends many deletions at once waits for few commits.
#[test]
fn deletions_that_come_together_go_together() {
    const COUNT: usize = 2_000;
    let database = database();
    let [a, b] = [cache(&database), cache(&database)];
    let mut client = fill(&a);
    fill(&b);
    let before = figure(&a, "published");
    let all = (1..=COUNT).map(|id| format!("delete page:{id}\r\n")).collect::<Vec<_>>().concat();
    client.send(all.as_bytes());
    let found = (0..COUNT).filter(|_| client.line() == "DELETED").count();
    assert_eq!(found, 10);
    hear(&a, &b);
    assert_eq!(pages(&b), "");
    let messages = figure(&a, "published") - before;
    assert!(messages < 100, "{messages} messages");
}

/// A cache that was killed hears what was told meanwhile before it serves; rows that nobody invalidated are there.
#[test]
fn a_cache_that_was_killed_joins_again_with_its_rows() {
    let database = database();
    let [a, mut b] = [cache(&database), cache(&database)];
    fill(&a);
    fill(&b);
    until_noted(&b);
    b.daemon.kill();
    psql(&a.place, "DELETE FROM page WHERE id <= 4");
    delete(&a, 9);
    // A transaction that stays open is waited for by nobody.
    let mut open = database.place.program("psql");
    let mut open = open.args(["-X", "-c", "CREATE TABLE held (id INT)", "-c", "SELECT 1"]);
    open = open.args(["-c", "BEGIN; INSERT INTO held VALUES (1); SELECT pg_sleep(600)"]);
    let mut open = open.stdout(std::process::Stdio::null()).spawn().unwrap();
    let asleep =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND wait_event = 'PgSleep'";
    until("it is open", || psql(&database.place, asleep) == "1");
    b.daemon.restart();
    assert_eq!(pages(&b), "5 6 7 8 10", "{}", psql(&b.place, "SELECT * FROM sqlcached_buses"));
    let cold = cache(&database);
    delete(&a, 10);
    hear(&a, &cold);
    assert_eq!(breaks(&[&a, &b, &cold]), 0);
    open.kill().unwrap();
    open.wait().unwrap();
}

/// All processes of the database are killed, and then one of them, after which it recovers: nothing that was
/// acknowledged is missing, and nobody distrusts anything.
#[test]
fn a_database_that_was_killed_has_lost_nothing() {
    let mut database = database();
    let [a, b] = [cache(&database), cache(&database)];
    let mut client = fill(&a);
    fill(&b);
    delete(&a, 1);
    database.kill_all();
    let began = Instant::now();
    let answer = client.ask("delete page:2");
    assert!(answer.starts_with("SERVER_ERROR the bus has not acknowledged it"), "{answer}");
    assert!(began.elapsed() >= Duration::from_millis(1_900), "{:?}", began.elapsed());
    let error = asked(&a.place, "DELETE FROM page WHERE id = 3").unwrap_err();
    assert!(error.contains("HV000") && error.contains("has not acknowledged"), "{error}");
    assert!(figure(&a, "outbox") > 0 || figure(&a, "published") > 0);
    database.start_again();
    delete(&a, 4);
    hear(&a, &b);
    assert_eq!(pages(&b), "5 6 7 8 9 10");
    let one = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walsender' LIMIT 1";
    crate::daemon::signal(psql(&database.place, one).parse().unwrap(), "KILL");
    delete(&b, 5);
    hear(&b, &a);
    delete(&a, 6);
    hear(&a, &b);
    assert_eq!((pages(&a).as_str(), pages(&b).as_str()), ("7 8 9 10", "7 8 9 10"));
    assert_eq!(breaks(&[&a, &b]), 0, "{} {}", last_break(&a), last_break(&b));
}

/// It was paused: it is away as long. What was sent to it then and answered by nobody is not stored behind what came
/// later.
#[test]
fn a_database_that_was_paused_is_away() {
    let database = database();
    let [a, b] = [cache(&database), cache(&database)];
    fill(&b);
    database.signal_all("STOP");
    let answer = a.daemon.connect().ask("delete page:1");
    assert!(answer.starts_with("SERVER_ERROR the bus has not acknowledged it"), "{answer}");
    database.signal_all("CONT");
    until("it is told later", || pages(&b) == "2 3 4 5 6 7 8 9 10");
    for id in 2..=5 {
        delete(&a, id);
    }
    hear(&a, &b);
    assert_eq!(pages(&b), "6 7 8 9 10");
    assert_eq!(breaks(&[&a, &b]), 0, "{} {}", last_break(&a), last_break(&b));
}

/// One process of the database hangs, with a message that nobody has answered. It is sent once more by another one, but
/// not before the first is gone: it would come behind later ones, and the caches would take that for a loss.
#[test]
fn what_nobody_has_answered_does_not_come_late() {
    let database = database();
    let a = cache(&database);
    let own = "SELECT pid FROM pg_stat_activity WHERE usename = 'cache' AND backend_type = 'client backend'";
    let process = psql(&database.place, own).parse().unwrap();
    let b = cache(&database);
    fill(&b);
    crate::daemon::signal(process, "STOP");
    let answer = a.daemon.connect().ask("delete page:1");
    assert!(answer.starts_with("SERVER_ERROR the bus has not acknowledged it"), "{answer}");
    let said = || psql(&a.place, "SELECT coalesce(last_error, '') FROM sqlcached_buses");
    until("the first is waited for", || said().contains("an earlier connection of this cache does not end"));
    crate::daemon::signal(process, "CONT");
    for id in 2..=5 {
        delete(&a, id);
    }
    hear(&a, &b);
    assert_eq!(pages(&b), "6 7 8 9 10");
    assert_eq!(breaks(&[&a, &b]), 0, "{} {}", last_break(&a), last_break(&b));
}

/// Connections that an administrator ends are made again, and nothing is missing.
#[test]
fn connections_that_are_ended_are_made_again() {
    let database = database();
    let [a, b] = [cache(&database), cache(&database)];
    fill(&b);
    for id in 1..=4 {
        psql(
            &database.place,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'cache'",
        );
        delete(&a, id);
    }
    hear(&a, &b);
    assert_eq!(pages(&b), "5 6 7 8 9 10");
    assert_eq!(breaks(&[&a, &b]), 0, "{} {}", last_break(&a), last_break(&b));
}

/// Somebody removes the slot. Who listens goes on; who was away has missed what nobody can name.
#[test]
fn who_misses_what_was_not_kept_believes_nothing() {
    let database = database();
    let [a, mut b] = [cache(&database), cache(&database)];
    fill(&a);
    fill(&b);
    until_noted(&b);
    b.daemon.kill();
    psql(&database.place, &format!("SELECT pg_drop_replication_slot('{KEEPER}')"));
    delete(&a, 1);
    b.daemon.restart();
    wait(&b, "streaming");
    assert_eq!(pages(&b), "");
    assert_eq!((figure(&b, "breaks"), figure(&a, "breaks")), (1, 0));
    assert!(last_break(&b).contains("it expired or was removed"), "{}", last_break(&b));
    assert_eq!(pages(&a), "2 3 4 5 6 7 8 9 10");
    fill(&b);
    delete(&a, 2);
    hear(&a, &b);
    assert_eq!(pages(&b), "1 3 4 5 6 7 8 9 10");
}

/// The database is put back to a copy of before: what was told since is gone, and each cache notices it.
#[test]
fn a_database_that_was_restored_is_a_break() {
    let mut database = database();
    let [a, b] = [cache(&database), cache(&database)];
    until("they have a history", || psql(&b.place, "SELECT epoch IS NOT NULL FROM sqlcached_buses") == "t");
    database.copy_files();
    fill(&a);
    fill(&b);
    delete(&a, 1);
    hear(&a, &b);
    // Its log grows behind the place where the caches were.
    database.restore_files();
    psql(&database.place, "CREATE TABLE much AS SELECT n, md5(n::text) FROM generate_series(1, 100000) n");
    until("it is noticed", || figure(&a, "breaks") > 0 && figure(&b, "breaks") > 0);
    until("nothing is believed", || pages(&a).is_empty() && pages(&b).is_empty());
    wait(&a, "streaming");
    wait(&b, "streaming");
    println!("{}; {}", last_break(&a), last_break(&b));
    fill(&b);
    delete(&a, 2);
    hear(&a, &b);
    until("it is told in the new log", || pages(&b) == "1 3 4 5 6 7 8 9 10");
}

/// A standby takes over: it may lack what was told last.
#[test]
fn a_database_that_was_promoted_is_a_break() {
    let mut database = database();
    let standby = database.standby(&[]);
    let [a, b] = [cache(&database), cache(&database)];
    fill(&a);
    fill(&b);
    until_noted(&a);
    until_noted(&b);
    database.stop();
    psql(&standby.place, "SELECT pg_promote()");
    for daemon in [&a, &b] {
        psql(&daemon.place, &format!("ALTER SERVER bus OPTIONS (SET port '{}')", standby.place.port));
        until("it is noticed", || figure(daemon, "breaks") == 1);
        assert!(last_break(daemon).contains("was promoted or restored (timeline 2, before 1)"));
        wait(daemon, "streaming");
        assert_eq!(pages(daemon), "");
    }
    fill(&b);
    delete(&a, 1);
    hear(&a, &b);
    assert_eq!(pages(&b), "2 3 4 5 6 7 8 9 10");
    // Another database altogether. Who knows no history could not tell it from the one of before.
    until("it has a history", || psql(&b.place, "SELECT epoch IS NOT NULL FROM sqlcached_buses") == "t");
    let published = figure(&b, "published");
    until("it is written down", || figure(&b, "published") > published + 3);
    let other = self::database();
    psql(&b.place, &format!("ALTER SERVER bus OPTIONS (SET port '{}')", other.place.port));
    until("it is noticed", || last_break(&b).contains("is another database now"));
    wait(&b, "streaming");
    assert_eq!(pages(&b), "");
}

/// A cable is out, and nobody is told. Who is behind it believes nothing after `max_lag`, the others go on, and when it
/// is in again nothing is missing.
#[test]
fn who_is_cut_off_believes_nothing() {
    let database = database();
    let relay = Relay::to(database.place.port);
    let (a, b) = (cache_by(relay.port, "3 s"), cache(&database));
    fill(&a);
    fill(&b);
    relay.cut(true);
    delete(&b, 1);
    until("who is cut off believes nothing", || pages(&a).is_empty());
    assert_ne!(state(&a), "streaming");
    assert_eq!(pages(&b), "2 3 4 5 6 7 8 9 10");
    relay.cut(false);
    wait(&a, "streaming");
    fill(&a);
    delete(&b, 2);
    hear(&b, &a);
    assert!(!pages(&a).contains('2'), "{}", pages(&a));
    delete(&a, 3);
    hear(&a, &b);
    assert_eq!(pages(&b), "4 5 6 7 8 9 10");
    assert_eq!(breaks(&[&a, &b]), 0, "{} {}", last_break(&a), last_break(&b));
}
