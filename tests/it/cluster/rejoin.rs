//! A cache that is new, or that did not believe its rows any more, takes the rows of the others: on a real NATS, while
//! clients write and caches are killed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::nats::Nats;
use super::relay::Relay;
use super::{PATIENT, figure, hear, options, until_noted, wait};
use crate::client::Client;
use crate::drivers::place::SqlDaemon;
use crate::seed;
use crate::sources::{psql, until};

const COLUMNS: &str = "id TEXT PRIMARY KEY, uid INT, body TEXT";
const OPTIONS: &str = "prefix = 's:', value = 'body', bus = 'bus', replicated = 'rows'";

/// Has a daemon be a cache on a bus; it lacks rows from now on.
fn define(daemon: &SqlDaemon, (bus, columns, more): (&str, &str, &str)) {
    psql(
        &daemon.place,
        &format!(
            "CREATE SERVER bus FOREIGN DATA WRAPPER nats OPTIONS ({bus}, stream 'sqlc');
             CREATE TABLE sess ({columns}) WITH ({OPTIONS}{more})"
        ),
    );
}

fn cold_on(url: &str, max_lag: &str, flags: &[&str]) -> SqlDaemon {
    let daemon = SqlDaemon::start(flags);
    define(&daemon, (&options(url, max_lag), COLUMNS, ""));
    wait(&daemon, "streaming");
    daemon
}

fn cold(nats: &Nats) -> SqlDaemon {
    cold_on(&nats.url(), PATIENT, &[])
}

/// A cache that does not look for rows any more.
fn whole(nats: &Nats) -> SqlDaemon {
    let daemon = cold(nats);
    until_whole(&daemon);
    daemon
}

fn until_whole(daemon: &SqlDaemon) {
    until("it lacks no rows", || figure(daemon, "tables_wanted") == 0);
}

/// Stores so many rows, session n of user n modulo 10.
fn fill(daemon: &SqlDaemon, count: usize, bytes: usize) {
    for from in (1..=count).step_by(20_000) {
        let to = count.min(from + 19_999);
        psql(
            &daemon.place,
            &format!(
                "INSERT INTO sess SELECT 'k' || n, n % 10, repeat('x', {bytes}) || n FROM generate_series({from}, {to}) n"
            ),
        );
        until("the bus has them", || figure(daemon, "outbox") == 0);
    }
}

/// How many rows there are, and a sum over all that is in them.
fn sum(daemon: &SqlDaemon) -> String {
    psql(
        &daemon.place,
        "SELECT count(*), sum(length(id) + uid), sum(length(body)), sum(CASE WHEN right(body, 1) = '7' THEN uid + 1 END) FROM sess",
    )
}

fn count(daemon: &SqlDaemon) -> usize {
    psql(&daemon.place, "SELECT count(*) FROM sess").parse().unwrap()
}

fn all(daemon: &SqlDaemon) -> String {
    psql(
        &daemon.place,
        "SELECT coalesce(string_agg(id || '=' || coalesce(body, '-'), ' ' ORDER BY id), '') FROM sess",
    )
}

/// Waits until each has heard the other.
fn settle(a: &SqlDaemon, b: &SqlDaemon) {
    hear(a, b);
    hear(b, a);
}

/// Waits until some rows were taken, and many are still to come.
fn until_under_way(daemon: &SqlDaemon) {
    until("some rows are taken", || figure(daemon, "rows_taken") > 0);
    assert_eq!(figure(daemon, "tables_wanted"), 1, "there was no time to disturb it");
}

fn quiet(caches: &[&SqlDaemon]) {
    for cache in caches {
        let says = psql(&cache.place, "SELECT * FROM sqlcached_buses");
        assert_eq!(figure(cache, "breaks") + figure(cache, "unapplied"), 0, "{says}");
    }
}

/// Waits until a cache has written down a place in the stream: the second time that it does so, for by then the bus has
/// what was written here before the first.
fn until_believed(daemon: &SqlDaemon) {
    until_noted(daemon);
    thread::sleep(Duration::from_millis(2_500));
}

/// A way to NATS on which each step takes a while, so that a test can do something in between.
fn slow_way(nats: &Nats) -> Relay {
    let relay = Relay::to(nats.port);
    relay.delay(40);
    relay
}

#[test]
fn a_cold_cache_takes_the_rows_of_another_one() {
    const ROWS: usize = 100_000;
    let nats = Nats::start(&[]);
    let a = whole(&nats);
    fill(&a, ROWS, 60);
    let b = cold(&nats);
    let began = Instant::now();
    until_whole(&b);
    println!("{ROWS} rows {:?} after it served", began.elapsed());
    assert_eq!(sum(&a), sum(&b));
    assert_eq!((figure(&b, "rows_taken"), figure(&a, "rows_given")), (ROWS as u64, ROWS as u64));
    // From here on it is a cache like the other one, and gives its rows itself.
    drop(a);
    let c = whole(&nats);
    assert_eq!(count(&c), ROWS);
    quiet(&[&b, &c]);
}

/// Rows are as they are: values of all kinds, flags, deadlines. What is too large for a message stays where it is.
#[test]
fn each_row_is_what_it_was() {
    let nats = Nats::start(&[]);
    let a = whole(&nats);
    let mut one = a.daemon.connect();
    assert_eq!(one.store("set s:1 7 0", b"one"), "STORED");
    assert_eq!(one.store("set s:2 0 100", b"two"), "STORED");
    assert_eq!(one.store("set s:3 0 50", b"three"), "STORED");
    assert_eq!(one.store("set s:large 0 0", &vec![b'l'; 500_000]), "STORED");
    assert_eq!(one.store("set s:larger 0 0", &vec![b'x'; 600_000]), "STORED");
    psql(&a.place, "INSERT INTO sess VALUES ('4', NULL, NULL), ('caf\u{e9} 5', -7, '\u{2713}')");
    assert_eq!(one.ask("md s:3 I T900"), "HD");
    let b = whole(&nats);
    let mut other = b.daemon.connect();
    assert_eq!(other.ask("mg s:1 f v"), "VA 3 f7");
    assert_eq!(other.line(), "one");
    let left: u32 = other.ask("mg s:2 t").strip_prefix("HD t").unwrap().parse().unwrap();
    assert!((60..=100).contains(&left), "{left}");
    assert_eq!(other.get("s:3"), None, "what is stale is no use to anybody");
    assert!(other.get("s:large").is_some_and(|value| value.len() == 500_000));
    assert_eq!(other.get("s:larger"), None);
    let odd = "SELECT string_agg(coalesce(id, '?') || coalesce(uid::text, '-') || coalesce(body, '-'), ' ' ORDER BY id) FROM sess WHERE uid IS NULL AND body IS NULL OR uid < 0";
    assert_eq!(psql(&b.place, odd), psql(&a.place, odd));
    quiet(&[&a, &b]);
}

/// What is written, deleted and emptied while rows are taken is not undone by them.
#[test]
fn what_happens_meanwhile_counts() {
    let nats = Nats::start(&[]);
    let a = whole(&nats);
    fill(&a, 60_000, 60);
    let relay = slow_way(&nats);
    let b = cold_on(&relay.url(), PATIENT, &[]);
    until_under_way(&b);
    let mut one = a.daemon.connect();
    // Of each some have come and some have not.
    for key in 1..=200 {
        let key = key * 300;
        assert_eq!(one.ask(&format!("delete s:k{key}")), "DELETED");
        assert_eq!(one.store(&format!("set s:k{} 0 0", key - 1), b"new"), "STORED");
    }
    psql(&a.place, "DELETE FROM sess WHERE uid = 3");
    psql(&a.place, "UPDATE sess SET body = 'up' WHERE uid = 4 AND length(id) < 5");
    let mut other = b.daemon.connect();
    assert_eq!(other.store("set s:k77 0 0", b"mine"), "STORED");
    let _there_or_not = other.ask("delete s:k78");
    assert_eq!(figure(&b, "tables_wanted"), 1, "it was through before");
    psql(&b.place, "DELETE FROM sess WHERE uid = 5");
    until_whole(&b);
    settle(&a, &b);
    assert_eq!(sum(&a), sum(&b));
    assert_eq!(other.get("s:k77").unwrap(), b"mine");
    assert_eq!(psql(&b.place, "SELECT count(*) FROM sess WHERE uid IN (3, 5)"), "0");
    assert_eq!(psql(&b.place, "SELECT count(*) FROM sess WHERE body = 'new'"), "200");
    assert_eq!(other.get("s:k78"), None);
    quiet(&[&a, &b]);
}

/// The table is emptied in the middle, by the one and by the other.
#[test]
fn a_table_that_is_emptied_stays_empty() {
    let nats = Nats::start(&[]);
    let a = whole(&nats);
    let relay = slow_way(&nats);
    for at in 0..2 {
        fill(&a, 40_000, 60);
        let b = cold_on(&relay.url(), PATIENT, &[]);
        until_under_way(&b);
        let by = [&a, &b][at];
        psql(&by.place, "TRUNCATE sess");
        assert_eq!(count(by), 0);
        assert_eq!(by.daemon.connect().set("s:after", b"1"), "STORED");
        until_whole(&b);
        settle(&a, &b);
        assert_eq!((all(&a).as_str(), all(&b).as_str()), ("after=1", "after=1"));
        quiet(&[&a, &b]);
        psql(&a.place, "TRUNCATE sess");
    }
}

/// The one that gives is killed. Another one has all of them, too.
#[test]
fn another_cache_gives_the_rest() {
    let nats = Nats::start(&[]);
    let mut caches = [whole(&nats), whole(&nats)];
    fill(&caches[0], 60_000, 60);
    settle(&caches[0], &caches[1]);
    let relay = slow_way(&nats);
    let b = cold_on(&relay.url(), PATIENT, &[]);
    until_under_way(&b);
    let giver = usize::from(figure(&caches[1], "rows_given") > 0);
    caches[giver].daemon.kill();
    relay.delay(0);
    until_whole(&b);
    assert_eq!(sum(&caches[1 - giver]), sum(&b));
    assert!(figure(&caches[1 - giver], "rows_given") == 60_000);
    quiet(&[&b]);
}

/// The one that gives is stopped, and goes on when another one has done it.
#[test]
fn a_cache_that_answers_too_late_is_not_heard() {
    let nats = Nats::start(&[]);
    let caches = [whole(&nats), whole(&nats)];
    fill(&caches[0], 60_000, 60);
    settle(&caches[0], &caches[1]);
    let relay = slow_way(&nats);
    let b = cold_on(&relay.url(), PATIENT, &[]);
    until_under_way(&b);
    let giver = usize::from(figure(&caches[1], "rows_given") > 0);
    caches[giver].daemon.signal("STOP");
    relay.delay(0);
    until("another one gives", || figure(&caches[1 - giver], "rows_given") > 0);
    assert_eq!(caches[1 - giver].daemon.connect().ask("delete s:k1"), "DELETED");
    caches[giver].daemon.signal("CONT");
    until_whole(&b);
    for cache in &caches {
        settle(cache, &b);
    }
    assert_eq!(sum(&caches[0]), sum(&b));
    assert_eq!(count(&b), 59_999);
    quiet(&[&b, &caches[0], &caches[1]]);
}

/// The one that takes is killed, and takes the rest when it is back.
#[test]
fn a_cache_that_was_killed_goes_on_taking() {
    let nats = Nats::start(&[]);
    let a = whole(&nats);
    fill(&a, 60_000, 60);
    let relay = slow_way(&nats);
    let mut b = cold_on(&relay.url(), PATIENT, &[]);
    relay.delay(80);
    until_under_way(&b);
    until_believed(&b);
    assert_eq!(figure(&b, "tables_wanted"), 1, "it was through before");
    b.daemon.kill();
    assert_eq!(a.daemon.connect().ask("delete s:k1"), "DELETED");
    relay.delay(0);
    b.daemon.restart();
    until_whole(&b);
    settle(&a, &b);
    assert_eq!(sum(&a), sum(&b));
    assert!(figure(&b, "rows_taken") < 59_999, "it began again from nothing");
    // It lacks nothing when it starts the next time.
    until_believed(&b);
    b.daemon.kill();
    b.daemon.restart();
    until_whole(&b);
    assert_eq!((count(&b), figure(&b, "rows_taken")), (59_999, 0));
    quiet(&[&a, &b]);
}

/// Statements that may change any row come all the time, and the caches go on hearing each other.
#[test]
fn statements_that_come_all_the_time_stop_nobody() {
    let nats = Nats::start(&[]);
    let a = whole(&nats);
    fill(&a, 30_000, 60);
    let is_over = AtomicBool::new(false);
    let b = thread::scope(|scope| {
        let (mut client, is_over) = (a.daemon.connect(), &is_over);
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                client.change("DELETE FROM sess WHERE uid = 100");
            }
        });
        let b = cold(&nats);
        until("the rows are here", || {
            psql(&b.place, "DELETE FROM sess WHERE uid = 200");
            let lags = [&a, &b].map(|own| psql(&own.place, "SELECT lag_ms < 5000 FROM sqlcached_buses"));
            assert_eq!(lags, ["t", "t"]);
            figure(&b, "tables_wanted") == 0
        });
        is_over.store(true, Ordering::Relaxed);
        b
    });
    println!("{} rows were read for {}", figure(&a, "rows_given"), figure(&b, "rows_taken"));
    settle(&a, &b);
    assert_eq!(sum(&a), sum(&b));
    assert_eq!(count(&b), 30_000);
    quiet(&[&a, &b]);
}

/// Alone, a cache waits for nobody.
#[test]
fn where_nobody_is_a_cache_goes_on_with_what_it_has() {
    let nats = Nats::start(&[]);
    let a = cold(&nats);
    assert_eq!(a.daemon.connect().set("s:1", b"x"), "STORED");
    assert_eq!(figure(&a, "tables_wanted"), 1);
    until_whole(&a);
    assert_eq!((all(&a).as_str(), figure(&a, "rows_taken")), ("1=x", 0));
    // And where all of them lack rows, none waits for another.
    nats.remove_stream();
    until("the history is broken", || figure(&a, "breaks") == 1);
    until_whole(&a);
    assert_eq!(all(&a), "");
}

/// A table that is another one is named, and nothing of it is taken.
#[test]
fn rows_of_another_table_are_not_taken() {
    let nats = Nats::start(&[]);
    let a = whole(&nats);
    fill(&a, 100, 5);
    let b = SqlDaemon::start(&[]);
    define(&b, (&options(&nats.url(), PATIENT), "id TEXT PRIMARY KEY, body TEXT", ""));
    wait(&b, "streaming");
    until_whole(&b);
    let told = psql(&b.place, "SELECT last_unapplied FROM sqlcached_buses");
    assert!(told.contains("table \"sess\"") && told.contains("gives no rows"), "{told}");
    assert_eq!((count(&b), count(&a)), (0, 100));
    // When it is the same, its rows come.
    psql(&b.place, "DROP TABLE sess");
    psql(&b.place, &format!("CREATE TABLE sess ({COLUMNS}) WITH ({OPTIONS})"));
    until("the rows come", || count(&b) == 100);
}

/// Anybody may say something, and who says nonsense stops nobody.
#[test]
fn nonsense_is_not_heard() {
    let nats = Nats::start(&[]);
    let a = whole(&nats);
    fill(&a, 30_000, 60);
    let relay = slow_way(&nats);
    let b = cold_on(&relay.url(), PATIENT, &[]);
    let node = psql(&b.place, "SELECT node FROM sqlcached_buses");
    until_under_way(&b);
    let mut random = fastrand::Rng::with_seed(seed());
    for subject in ["sqlc.rows".to_owned(), format!("sqlc.rows.{node}")] {
        nats.publish(&subject, b"\x09hello", false);
        nats.publish(&subject, b"", false);
        nats.publish(&subject, &vec![1; 900_000], false);
        for kind in 0..7 {
            // Node 7 says something of this kind, and no more of it can be read.
            let tail = (0..random.usize(..60)).map(|_| random.u8(..));
            let word: Vec<u8> = [1, 7, 0, 0, 0, 0, 0, 0, 0, kind].into_iter().chain(tail).collect();
            nats.publish(&subject, &word, false);
        }
    }
    until_whole(&b);
    settle(&a, &b);
    assert_eq!(sum(&a), sum(&b));
    quiet(&[&a, &b]);
}

/// A cache whose place in the stream is gone believes nothing of what it has, and takes the rows of one that has heard
/// all.
#[test]
fn after_a_break_the_rows_come_back() {
    let nats = Nats::start(&[]);
    let (a, mut b) = (whole(&nats), whole(&nats));
    fill(&a, 1_000, 5);
    settle(&a, &b);
    until_believed(&b);
    b.daemon.kill();
    let mut one = a.daemon.connect();
    assert_eq!(one.ask("delete s:k1"), "DELETED");
    assert_eq!(one.set("s:k2", b"new"), "STORED");
    nats.command("PURGE.sqlc", "{\"keep\":1}");
    b.daemon.restart();
    until("it is a break", || figure(&b, "breaks") == 1);
    until_whole(&b);
    settle(&a, &b);
    assert_eq!((sum(&a), figure(&b, "rows_taken")), (sum(&b), 999));
    assert_eq!(figure(&a, "breaks"), 0);
}

/// The same where it was cut off for too long.
#[test]
fn who_was_cut_off_gets_its_rows_back() {
    let nats = Nats::start(&[]);
    let relay = Relay::to(nats.port);
    let a = whole(&nats);
    fill(&a, 1_000, 5);
    let b = cold_on(&relay.url(), "3 s", &[]);
    until_whole(&b);
    relay.cut(true);
    until("who is cut off believes nothing", || count(&b) == 0);
    assert_eq!(a.daemon.connect().ask("delete s:k1"), "DELETED");
    relay.cut(false);
    wait(&b, "streaming");
    until("its rows are there again", || count(&b) == 999);
    settle(&a, &b);
    assert_eq!(sum(&a), sum(&b));
    quiet(&[&a, &b]);
}

/// A cache with less memory takes what fits, and drives no more out.
#[test]
fn a_small_cache_takes_what_fits() {
    let nats = Nats::start(&[]);
    let a = whole(&nats);
    fill(&a, 30_000, 800);
    let b = cold_on(&nats.url(), PATIENT, &["-m", "12"]);
    until_whole(&b);
    let (taken, rows) = (figure(&b, "rows_taken"), count(&b));
    println!("{taken} rows were taken, {rows} are there");
    assert!(taken > 2_000 && taken < 25_000, "{taken}");
    quiet(&[&a, &b]);
}

/// What a client knows of a key that nobody else writes: the last number that it stored; none: it deleted it.
type Known = Option<u32>;

/// Writes and deletes keys of its own as fast as it can, until it is told to stop. Returns what they are.
fn write(daemon: &SqlDaemon, own: &str, seed: u64, is_over: &AtomicBool) -> Vec<Known> {
    const KEYS: usize = 400;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut client: Client = daemon.daemon.connect();
    let mut known = vec![None; KEYS];
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        let key = random.usize(..KEYS);
        number += 1;
        if random.u8(..3) == 0 {
            let _there = client.ask(&format!("delete s:{own}{key}"));
            known[key] = None;
        } else {
            assert_eq!(client.set(&format!("s:{own}{key}"), number.to_string().as_bytes()), "STORED");
            known[key] = Some(number);
        }
    }
    known
}

/// Caches come cold, one after the other, while clients write and delete at two others as fast as they can: in the end
/// each has what each client knows. `SEED` replays the writes.
#[test]
fn who_comes_while_all_write_has_the_same_rows() {
    let nats = Nats::start(&[]);
    let caches = [whole(&nats), whole(&nats)];
    fill(&caches[0], 20_000, 60);
    let (seed, is_over) = (seed(), AtomicBool::new(false));
    let (known, late) = thread::scope(|scope| {
        let writers: Vec<_> = (0..4_usize)
            .map(|at| {
                let (cache, is_over) = (&caches[at % 2], &is_over);
                scope.spawn(move || write(cache, &format!("w{at}-"), seed + at as u64, is_over))
            })
            .collect();
        let late: Vec<SqlDaemon> = (0..3)
            .map(|_| {
                let daemon = cold(&nats);
                until_whole(&daemon);
                daemon
            })
            .collect();
        is_over.store(true, Ordering::Relaxed);
        (writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>(), late)
    });
    for cache in &late {
        for other in &caches {
            hear(other, cache);
        }
        let mut client = cache.daemon.connect();
        for (at, keys) in known.iter().enumerate() {
            for (key, known) in keys.iter().copied().enumerate() {
                let found = client.get(&format!("s:w{at}-{key}"));
                let found = found.map(|value| String::from_utf8(value).unwrap().parse().unwrap());
                assert_eq!(found, known, "SEED={seed} {at} {key}");
            }
        }
        assert_eq!(sum(cache), sum(&caches[0]), "SEED={seed}");
    }
    quiet(&[&caches[0], &caches[1], &late[0], &late[1], &late[2]]);
}
