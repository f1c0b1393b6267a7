//! Rows that travel (`replicated = 'rows'`): caches on a real NATS have the same ones, whoever wrote them and however,
//! also after kill -9.

use std::thread;

use super::nats::Nats;
use super::{PATIENT, figure, hear, options, until_noted, wait};
use crate::client::Client;
use crate::drivers::place::SqlDaemon;
use crate::relay::move_clock;
use crate::seed;
use crate::sources::{asked, psql, until};

const TABLE: &str = "CREATE TABLE sess (id TEXT PRIMARY KEY, uid INT, body TEXT)
     WITH (prefix = 's:', value = 'body', bus = 'bus', replicated = 'rows')";

fn cache(nats: &Nats) -> SqlDaemon {
    cache_on(nats, PATIENT)
}

fn cache_on(nats: &Nats, max_lag: &str) -> SqlDaemon {
    let daemon = SqlDaemon::start(&[]);
    let server = options(&nats.url(), max_lag);
    psql(
        &daemon.place,
        &format!("CREATE SERVER bus FOREIGN DATA WRAPPER nats OPTIONS ({server}, stream 'sqlc'); {TABLE}"),
    );
    wait(&daemon, "streaming");
    daemon
}

/// All rows, as one text.
fn rows(daemon: &SqlDaemon) -> String {
    let row = "id || '=' || coalesce(uid::text, '-') || ',' || coalesce(body, '-')";
    psql(&daemon.place, &format!("SELECT coalesce(string_agg({row}, ' ' ORDER BY id), '') FROM sess"))
}

/// Waits until both have heard each other, and returns what both have.
fn settled(a: &SqlDaemon, b: &SqlDaemon) -> String {
    hear(a, b);
    hear(b, a);
    let (one, other) = (rows(a), rows(b));
    assert_eq!(one, other);
    one
}

fn quiet(caches: &[&SqlDaemon]) {
    for cache in caches {
        assert_eq!(
            figure(cache, "breaks") + figure(cache, "unapplied"),
            0,
            "{}",
            psql(&cache.place, "SELECT * FROM sqlcached_buses")
        );
    }
}

/// Whatever a client does to a row, in whatever protocol, the other cache has it when it has heard of it.
#[test]
fn a_row_is_the_same_everywhere() {
    let nats = Nats::start(&[]);
    let (a, b) = (cache(&nats), cache(&nats));
    let (mut one, mut other) = (a.daemon.connect(), b.daemon.connect());
    let said = |client: &mut Client, command: &str| client.ask(command);
    assert_eq!(one.store("set s:1 7 0", b"one"), "STORED");
    assert_eq!(one.store("add s:2 0 0", b"5"), "STORED");
    assert_eq!(settled(&a, &b), "1=-,one 2=-,5");
    assert_eq!(said(&mut other, "mg s:1 f v"), "VA 3 f7");
    assert_eq!(other.line(), "one");
    assert_eq!(other.store("append s:1 0 0", b"!"), "STORED");
    assert_eq!(said(&mut other, "incr s:2 10"), "15");
    assert_eq!(said(&mut other, "ma s:2 D2"), "HD");
    assert_eq!(settled(&a, &b), "1=-,one! 2=-,17");
    assert_eq!(one.store("replace s:2 0 0", b"six"), "STORED");
    assert_eq!(one.ask("md s:1"), "HD");
    assert_eq!(settled(&a, &b), "2=-,six");
    psql(&b.place, "INSERT INTO sess VALUES ('3', 1, 'three'), ('4', 2, NULL)");
    psql(
        &a.place,
        "INSERT INTO sess VALUES ('2', 9, 'up') ON CONFLICT (id) DO UPDATE SET uid = 9, body = 'up'",
    );
    assert_eq!(settled(&a, &b), "2=9,up 3=1,three 4=2,-");
    psql(&a.place, "UPDATE sess SET body = 'new' WHERE uid < 5");
    assert_eq!(settled(&a, &b), "2=9,up 3=1,new 4=2,new");
    psql(
        &b.place,
        "BEGIN; UPDATE sess SET uid = 7 WHERE id = '3'; DELETE FROM sess WHERE uid = 2; INSERT INTO sess VALUES ('5', 5, '5'); COMMIT",
    );
    assert_eq!(settled(&a, &b), "2=9,up 3=7,new 5=5,5");
    psql(&a.place, "BEGIN; DELETE FROM sess WHERE uid = 9; ROLLBACK");
    assert_eq!(other.sql("DELETE FROM sess WHERE uid = 7"), crate::client::Reply::Changed(1));
    assert_eq!(settled(&a, &b), "2=9,up 5=5,5");
    // The other cache has a row that this one has not.
    assert_eq!(one.ask("delete s:missing"), "NOT_FOUND");
    psql(&a.place, "TRUNCATE sess");
    assert_eq!(settled(&a, &b), "");
    psql(&a.place, "INSERT INTO sess SELECT 'k' || n, n, 'v' FROM generate_series(1, 1000) n");
    psql(&b.place, "UPDATE sess SET body = 'w' WHERE uid <= 300; DELETE FROM sess WHERE uid > 300");
    assert_eq!(settled(&a, &b).matches(",w").count(), 300);
    assert_eq!(one.ask("flush_all"), "OK");
    assert_eq!(settled(&a, &b), "");
    // Values of a size that is received in place, and one that no message has room for.
    let (large, larger) = (vec![b'l'; 300_000], vec![b'x'; 600_000]);
    assert_eq!(one.store("set s:large 0 0", &large), "STORED");
    assert_eq!(other.store("set s:larger 0 0", b"small"), "STORED");
    hear(&b, &a);
    assert_eq!(one.store("set s:larger 0 0", &larger), "STORED");
    hear(&a, &b);
    assert!(other.get("s:large").is_some_and(|value| value == large));
    assert_eq!(other.get("s:larger"), None, "it is fetched here, or not at all");
    quiet(&[&a, &b]);
    assert!(figure(&b, "rows_heard") > 1_000);
}

/// A deadline is a moment, and travels; what expires or is evicted in one cache does not.
#[test]
fn deadlines_travel() {
    let nats = Nats::start(&[]);
    let (a, b) = (cache(&nats), cache(&nats));
    let mut one = a.daemon.connect();
    assert_eq!(one.store("set s:1 0 100", b"x"), "STORED");
    assert_eq!(one.store("set s:2 0 0", b"x"), "STORED");
    assert_eq!(one.store("set s:3 0 100", b"x"), "STORED");
    assert_eq!(one.ask("touch s:3 900"), "TOUCHED");
    assert_eq!(settled(&a, &b), "1=-,x 2=-,x 3=-,x");
    let left = psql(&b.place, "SELECT string_agg(coalesce(_ttl::int::text, '-'), ' ' ORDER BY id) FROM sess");
    let left: Vec<&str> = left.split(' ').collect();
    let seconds = |at: usize| left[at].parse::<u32>().unwrap();
    assert!(
        (80..=100).contains(&seconds(0)) && left[1] == "-" && (880..=900).contains(&seconds(2)),
        "{left:?}"
    );
    // Here the time has come.
    move_clock(&b.daemon, 200);
    hear(&a, &b);
    assert_eq!(rows(&b), "2=-,x 3=-,x");
    assert_eq!(rows(&a), "1=-,x 2=-,x 3=-,x");
}

/// What a definition or a statement cannot have is refused, with what to do.
#[test]
fn what_does_not_travel_is_refused() {
    let nats = Nats::start(&[]);
    let a = cache(&nats);
    let refused = |sql: &str, state: &str, words: &str| {
        let error = asked(&a.place, sql).unwrap_err();
        assert!(error.contains(state) && error.contains(words), "{sql}\n{error}");
    };
    let with = "WITH (bus = 'bus', replicated = 'rows'";
    refused(&format!("CREATE TABLE t (id INT) {with})"), "22023", "needs a PRIMARY KEY");
    refused(&format!("CREATE TABLE t (id SERIAL PRIMARY KEY) {with})"), "0A000", "identity");
    refused(&format!("CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE) {with})"), "0A000", "unique index");
    refused("CREATE UNIQUE INDEX u ON sess (uid)", "0A000", "unique index");
    refused(
        &format!("CREATE TABLE t (id INT PRIMARY KEY) {with}, acknowledge = 'local')"),
        "22023",
        "acknowledge",
    );
    psql(
        &a.place,
        "CREATE SERVER pg FOREIGN DATA WRAPPER postgres OPTIONS (bus 'on', host '127.0.0.1', dbname 'bus')",
    );
    refused(
        "CREATE TABLE t (id INT PRIMARY KEY) WITH (bus = 'pg', replicated = 'rows')",
        "0A000",
        "WRAPPER nats",
    );
    refused("DELETE FROM sess WHERE uid IN (SELECT 1)", "0A000", "SELECT the keys first");
    refused("UPDATE sess SET body = 'x' WHERE random() > 0.5", "0A000", "constants and parameters");
    psql(&a.place, "ALTER TABLE sess SET (replicated = 'invalidate')");
    psql(&a.place, "ALTER TABLE sess SET (replicated = 'rows')");
    let shown =
        psql(&a.place, "SELECT array_to_string(reloptions, ',') FROM pg_class WHERE relname = 'sess'");
    assert!(shown.contains("replicated=rows"), "{shown}");
}

/// A value that was fetched for a lease is this cache's, and an invalidation of the others removes it.
#[test]
fn a_fill_stays_where_it_was_made() {
    let nats = Nats::start(&[]);
    let (a, b) = (cache(&nats), cache(&nats));
    // A cache that still looks for rows would get it.
    for own in [&a, &b] {
        until("it lacks no rows", || figure(own, "tables_wanted") == 0);
    }
    let mut one = a.daemon.connect();
    let won = one.ask("mg s:1 v c N30");
    assert!(won.contains(" W"), "{won}");
    assert_eq!(one.line(), "");
    let cas = won.split(' ').find_map(|word| word.strip_prefix('c')).unwrap();
    one.send(format!("ms s:1 5 C{cas}\r\nfound\r\n").as_bytes());
    assert_eq!(one.line(), "HD");
    hear(&a, &b);
    assert_eq!((rows(&a).as_str(), rows(&b).as_str()), ("1=-,found", ""));
    assert_eq!(b.daemon.connect().ask("delete s:1"), "NOT_FOUND");
    assert_eq!(settled(&a, &b), "");
}

/// Writers at two caches, of few keys, by all kinds of commands: in the end both have the same rows. `SEED` replays it.
#[test]
fn who_writes_at_once_comes_to_the_same_rows() {
    let nats = Nats::start(&[]);
    let caches = [cache(&nats), cache(&nats), cache(&nats)];
    let seed = seed();
    thread::scope(|scope| {
        for (at, cache) in caches.iter().enumerate() {
            for writer in 0..2_u64 {
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed ^ (at as u64 * 10 + writer + 1));
                    let mut client = cache.daemon.connect();
                    for step in 0..400 {
                        write_something(&mut client, &mut random, &format!("{at}-{writer}-{step}"));
                    }
                });
            }
        }
    });
    let [a, b, c] = &caches;
    for (from, to) in [(a, b), (b, c), (c, a), (a, c), (b, a), (c, b)] {
        hear(from, to);
    }
    let all = caches.each_ref().map(rows);
    println!("{}", all[0]);
    assert!(all[0] == all[1] && all[0] == all[2], "SEED={seed}\n{}\n{}\n{}", all[0], all[1], all[2]);
    quiet(&[a, b, c]);
}

fn write_something(client: &mut Client, random: &mut fastrand::Rng, value: &str) {
    let key = random.u32(..8);
    match random.u32(..10) {
        0..5 => assert_eq!(client.store(&format!("set s:{key} 0 0"), value.as_bytes()), "STORED"),
        5 => drop(client.store(&format!("append s:{key} 0 0"), b"+")),
        6 => drop(client.ask(&format!("delete s:{key}"))),
        7 => {
            client.change(&format!(
                "INSERT INTO sess VALUES ('{key}', {key}, '{value}') ON CONFLICT (id) DO UPDATE SET body = '{value}', uid = {key}"
            ));
        }
        8 => {
            client.change(&format!("UPDATE sess SET body = '{value}', uid = {key} WHERE id < '{key}'"));
        }
        _ => {
            client.change(&format!("DELETE FROM sess WHERE uid = {key}"));
        }
    }
}

/// A cache that is killed while it and another one are written to: what was acknowledged is there when it is back, in
/// both, and nothing that only it knew of.
#[test]
fn a_cache_that_was_killed_comes_back_with_the_same_rows() {
    let nats = Nats::start(&[]);
    let (mut a, b) = (cache(&nats), cache(&nats));
    let mut known = std::collections::BTreeMap::new();
    for round in 0..4 {
        let mut one = a.daemon.connect();
        for key in 0..200 {
            assert_eq!(one.store(&format!("set s:{key} 0 0"), format!("{round}").as_bytes()), "STORED");
            known.insert(key, round);
        }
        until_noted(&a);
        // The bus does not get these: nobody else may know of them.
        nats.signal("STOP");
        let lost = (0..50).fold(String::new(), |all, key| format!("{all}set s:{key} 0 0 4\r\nlost\r\n"));
        one.send(lost.as_bytes());
        let mut reader = a.daemon.connect();
        until("it took effect here", || reader.get("s:49").is_some_and(|value| value == b"lost"));
        a.daemon.kill();
        nats.signal("CONT");
        wait(&b, "streaming");
        assert_eq!(b.daemon.connect().store("set s:meanwhile 0 0", b"b"), "STORED");
        a.daemon.restart();
        wait(&a, "streaming");
        hear(&b, &a);
        let (own, others) = (rows(&a), rows(&b));
        assert!(own.contains("meanwhile=-,b") && others.contains("meanwhile=-,b"), "{own}\n{others}");
        // What was sent and not acknowledged may be there, but then it is everywhere.
        let all: Vec<&str> = others.split(' ').collect();
        assert!(own.split(' ').all(|row| all.contains(&row)), "{own}\n{others}");
        for key in 50..200 {
            let row = format!(" {key}=-,{round}");
            assert!(
                format!(" {own} ").contains(&row) && format!(" {others} ").contains(&row),
                "{row}: {own}\n{others}"
            );
        }
        quiet(&[&b]);
    }
}

/// While the bus is away, a client hears that. The row is not told later: another cache may have written it since.
#[test]
fn a_row_that_comes_too_late_is_withdrawn() {
    let mut nats = Nats::start(&[]);
    let (a, b) = (cache(&nats), cache(&nats));
    assert_eq!(a.daemon.connect().set("s:1", b"old"), "STORED");
    hear(&a, &b);
    nats.kill();
    let answer = a.daemon.connect().set("s:1", b"late");
    assert!(answer.starts_with("SERVER_ERROR the bus has not acknowledged it"), "{answer}");
    let error = asked(&b.place, "INSERT INTO sess VALUES ('2', 1, 'late')").unwrap_err();
    assert!(error.contains("HV000"), "{error}");
    nats.start_again();
    wait(&a, "streaming");
    wait(&b, "streaming");
    until("nothing waits", || figure(&a, "outbox") + figure(&b, "outbox") == 0);
    assert_eq!(settled(&a, &b), "");
    assert_eq!(a.daemon.connect().set("s:1", b"new"), "STORED");
    assert_eq!(settled(&a, &b), "1=-,new");
    quiet(&[&a, &b]);
}
