//! Caches that hear each other: three daemons on a real NATS server, or on a real PostgreSQL, that is killed, emptied
//! and written to by others.

mod alike;
mod faults;
mod nats;
mod near;
mod network;
mod postgres;
mod rejoin;
mod relay;
mod rows;
mod soak;
mod wrong;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::{Client, Reply};
use crate::daemon::free_port;
use crate::drivers::place::{Place, SqlDaemon};
use crate::sources::{asked, psql, until};
use nats::Nats;

const OPTIONS: &str = "bus = 'bus', replicated = 'invalidate'";

/// How old what others told may be where that is not what is tested: a machine that does much else makes nobody
/// distrust anything.
const PATIENT: &str = "600 s";

/// Has a daemon hear others on a bus with these options, with a table for pages and one for sessions.
fn define(daemon: &SqlDaemon, bus: &str) {
    define_at(&daemon.place, bus);
}

/// The same, by the place of the daemon.
fn define_at(place: &Place, bus: &str) {
    psql(
        place,
        &format!(
            "CREATE SERVER bus FOREIGN DATA WRAPPER nats OPTIONS ({bus}, stream 'sqlc');
             {}",
            tables()
        ),
    );
}

/// What makes the tables that hear the bus.
fn tables() -> String {
    format!(
        "CREATE TABLE page (id INT PRIMARY KEY, uid INT, body TEXT)
             WITH (prefix = 'page:', value = 'body', {OPTIONS});
         CREATE TABLE sess (id TEXT PRIMARY KEY, uid INT) WITH ({OPTIONS})"
    )
}

/// The options of a bus.
fn options(servers: &str, max_lag: &str) -> String {
    format!("servers '{servers}', max_lag '{max_lag}'")
}

fn state(daemon: &SqlDaemon) -> String {
    psql(&daemon.place, "SELECT state FROM sqlcached_buses")
}

fn wait(daemon: &SqlDaemon, wanted: &str) {
    until(&format!("the bus is {wanted}: {}", psql(&daemon.place, "SELECT * FROM sqlcached_buses")), || {
        state(daemon) == wanted
    });
}

fn figure(daemon: &SqlDaemon, column: &str) -> u64 {
    psql(&daemon.place, &format!("SELECT {column} FROM sqlcached_buses")).parse().unwrap()
}

fn cache(nats: &Nats) -> SqlDaemon {
    cache_on(&options(&nats.url(), PATIENT))
}

fn cache_on(bus: &str) -> SqlDaemon {
    let daemon = SqlDaemon::start(&[]);
    define(&daemon, bus);
    wait(&daemon, "streaming");
    daemon
}

/// Stores pages 1 to 10, page n of user n modulo 3.
fn fill(daemon: &SqlDaemon) -> Client {
    psql(
        &daemon.place,
        "INSERT INTO page SELECT n, n % 3, 'old' FROM generate_series(1, 10) n ON CONFLICT (id) DO NOTHING;
         INSERT INTO sess SELECT 's' || n, n % 3 FROM generate_series(1, 10) n ON CONFLICT (id) DO NOTHING",
    );
    daemon.daemon.connect()
}

fn pages(daemon: &SqlDaemon) -> String {
    psql(&daemon.place, "SELECT coalesce(string_agg(id::text, ' ' ORDER BY id), '') FROM page")
}

fn count(daemon: &SqlDaemon, table: &str) -> String {
    psql(&daemon.place, &format!("SELECT count(*) FROM {table}"))
}

/// Waits until what one has told is applied by another.
fn hear(from: &SqlDaemon, to: &SqlDaemon) {
    let sequence = psql(&from.place, "SELECT bus_sequence('bus')");
    assert_eq!(psql(&to.place, &format!("SELECT wait_for_bus('bus', {sequence}, '30 s')")), "t");
}

/// Whatever removes rows in one cache removes them in the others, whether the first had them or not.
#[test]
fn an_invalidation_reaches_all_caches() {
    let nats = Nats::start(&[]);
    let caches = [cache(&nats), cache(&nats), cache(&nats)];
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
    // It is not here any more, and others may have it again.
    assert_eq!(clients[1].set("page:1", b"again"), "STORED");
    assert_eq!(clients[0].ask("delete page:1"), "NOT_FOUND");
    heard("2 3 4 5 6 7 8 9 10");
    assert_eq!(clients[0].ask("md page:2"), "HD");
    heard("3 4 5 6 7 8 9 10");
    clients[0].send(b"delete page:3 noreply\r\nmn\r\n");
    assert_eq!(clients[0].line(), "MN");
    until("what needs no answer is heard, too", || pages(b) == "4 5 6 7 8 9 10");
    psql(&a.place, "DELETE FROM page WHERE uid = 1");
    heard("5 6 8 9");
    // Where the row has other values now, elsewhere it goes.
    psql(&a.place, "UPDATE page SET body = 'new' WHERE id = 5");
    heard("6 8 9");
    assert_eq!(psql(&a.place, "SELECT body FROM page WHERE id = 5"), "new");
    assert_eq!(clients[0].sql("DELETE FROM page WHERE body LIKE 'ol%' AND id IN (6, 8)"), Reply::Changed(2));
    heard("9");
    // A transaction over two tables is one message, and what is taken back is not told.
    psql(
        &a.place,
        "BEGIN; DELETE FROM sess WHERE uid = 2; SAVEPOINT s; DELETE FROM page; ROLLBACK TO s; COMMIT",
    );
    heard("9");
    assert_eq!(count(b, "sess"), "7");
    psql(&a.place, "BEGIN; DELETE FROM page; ROLLBACK");
    heard("9");
    // What each would understand otherwise empties the table.
    psql(&a.place, "DELETE FROM sess WHERE random() IS NULL");
    hear(a, b);
    assert_eq!((count(a, "sess"), count(b, "sess")), ("7".into(), "0".into()));
    psql(&a.place, "TRUNCATE page");
    heard("");
    fill(b);
    assert_eq!(clients[0].ask("flush_all"), "OK");
    heard("");
    // Fills are nobody else's.
    fill(a);
    hear(a, b);
    assert_eq!((pages(b).as_str(), figure(a, "breaks"), figure(b, "breaks")), ("", 0, 0));
    let nodes = "SELECT count(*), count(*) FILTER (WHERE own), min(length(name)) > 2 FROM sqlcached_nodes";
    until("each sees three", || psql(&a.place, nodes) == "3|1|t");
    let history = "SELECT epoch FROM sqlcached_buses";
    until("all have one history", || {
        let own = psql(&a.place, history);
        !own.is_empty() && own == psql(&b.place, history) && own == psql(&c.place, history)
    });
    assert_eq!(figure(c, "breaks") + figure(c, "unapplied"), 0);
}

/// A client that sends many deletions at once waits for few messages, and each of its answers is right.
#[test]
fn deletions_that_come_together_go_together() {
    const COUNT: usize = 2_000;
    let mut nats = Nats::start(&[]);
    let [a, b] = [cache(&nats), cache(&nats)];
    let mut client = fill(&a);
    fill(&b);
    let before = figure(&a, "published");
    let mut all = (1..=COUNT).map(|id| format!("delete page:{id}\r\n")).collect::<Vec<_>>().concat();
    // Others in between are answered in their turn.
    all += "get page:1\r\ndelete page:1 noreply\r\nmd page:3\r\nmn\r\nget page:2\r\n";
    client.send(all.as_bytes());
    let answers: Vec<String> = (0..COUNT + 4).map(|_| client.line()).collect();
    let (found, missing): (Vec<_>, Vec<_>) = answers[..COUNT].iter().partition(|answer| *answer == "DELETED");
    assert_eq!((found.len(), missing.len()), (10, COUNT - 10));
    assert!(missing.iter().all(|answer| *answer == "NOT_FOUND"));
    assert_eq!(&answers[COUNT..], ["END", "NF", "MN", "END"]);
    hear(&a, &b);
    assert_eq!(pages(&b), "");
    let messages = figure(&a, "published") - before;
    assert!(messages < 100, "{messages} messages");
    // What the bus does not have is said of each.
    nats.kill();
    client.send(b"delete page:1\r\nmd page:2 O7\r\nmn\r\n");
    let answers = [(); 3].map(|()| client.line());
    let unheard = |answer: &String| answer.starts_with("SERVER_ERROR the bus has not acknowledged it");
    assert!(unheard(&answers[0]) && unheard(&answers[1]) && answers[2] == "MN", "{answers:?}");
}

/// A soft invalidation makes rows stale everywhere, where one client refreshes each.
#[test]
fn rows_become_stale_everywhere() {
    let nats = Nats::start(&[]);
    let options = "bus = 'bus', replicated = 'invalidate', stale_for = '1 min', on_lag = 'stale'";
    let [a, b] = [(); 2].map(|()| SqlDaemon::start(&[]));
    for daemon in [&a, &b] {
        let place = &daemon.place;
        psql(
            place,
            &format!(
                "CREATE SERVER bus FOREIGN DATA WRAPPER nats
                     OPTIONS (servers 'nats://127.0.0.1:{}', max_lag '{PATIENT}')",
                nats.port
            ),
        );
        psql(
            place,
            &format!(
                "CREATE TABLE page (id INT PRIMARY KEY, body TEXT) WITH (prefix = 'page:', value = 'body', {options})"
            ),
        );
        wait(daemon, "streaming");
        psql(place, "INSERT INTO page SELECT n, 'old' FROM generate_series(1, 6) n");
    }
    let stale = "SELECT coalesce(string_agg(id::text, ' ' ORDER BY id), '') FROM page WHERE _stale";
    psql(&a.place, "UPDATE page SET _stale = true WHERE id <= 2");
    assert_eq!(a.daemon.connect().ask("md page:3 I T30"), "HD");
    hear(&a, &b);
    assert_eq!(psql(&b.place, stale), "1 2 3");
    assert_eq!(count(&b, "page"), "6");
}

/// Waits until a cache has written down how far it has heard. It does so before it shows what it says of itself, and
/// only who knows the history says how far.
fn until_noted(daemon: &SqlDaemon) {
    let says = "SELECT count(*) FROM sqlcached_nodes WHERE own AND applied IS NOT NULL";
    until("what was heard is written down", || psql(&daemon.place, says) == "1");
}

/// A cache that was killed hears what was told meanwhile before it serves; rows that nobody invalidated are there.
#[test]
fn a_cache_that_was_killed_joins_again_with_its_rows() {
    let nats = Nats::start(&[]);
    let [a, mut b] = [cache(&nats), cache(&nats)];
    fill(&a);
    fill(&b);
    until_noted(&b);
    b.daemon.kill();
    psql(&a.place, "DELETE FROM page WHERE id <= 4");
    assert_eq!(a.daemon.connect().ask("delete page:9"), "DELETED");
    b.daemon.restart();
    assert_eq!(pages(&b), "5 6 7 8 10", "{}", psql(&b.place, "SELECT * FROM sqlcached_buses"));
    assert_eq!(figure(&b, "breaks"), 0);
    assert_eq!(figure(&a, "breaks"), 0);
}

/// While the bus is away a client hears that the others were not told, and they are told when it is back. Who hears
/// nothing believes nothing.
#[test]
fn a_bus_that_is_away_is_noticed_and_told_later() {
    let mut nats = Nats::start(&[]);
    let [a, b] = [(); 2].map(|()| cache_on(&options(&nats.url(), "3 s")));
    let mut client = fill(&a);
    fill(&b);
    nats.kill();
    let began = Instant::now();
    let answer = client.ask("delete page:1");
    assert!(answer.starts_with("SERVER_ERROR the bus has not acknowledged it"), "{answer}");
    assert!(began.elapsed() >= Duration::from_millis(1_900), "{:?}", began.elapsed());
    assert_eq!(client.get("page:1"), None);
    let error = asked(&a.place, "DELETE FROM page WHERE id = 2").unwrap_err();
    assert!(error.contains("HV000") && error.contains("has not acknowledged"), "{error}");
    assert!(psql(&a.place, "SELECT last_error FROM sqlcached_buses").contains("reached"));
    assert!(figure(&a, "outbox") > 0);
    // Nothing is heard for max_lag, so nothing is believed.
    until("what cannot be heard is not believed", || pages(&b).is_empty());
    nats.start_again();
    wait(&a, "streaming");
    wait(&b, "streaming");
    until("what was to be told is told", || figure(&a, "outbox") == 0);
    // It is a break for nobody: the stream is on a disk.
    assert_eq!(figure(&a, "breaks") + figure(&b, "breaks"), 0);
    fill(&b);
    assert_eq!(client.ask("delete page:3"), "NOT_FOUND");
    hear(&a, &b);
    assert!(!pages(&b).contains('3'));
}

/// A stream that was removed has lost what nobody can name: each cache distrusts its tables once, and goes on.
#[test]
fn a_stream_that_was_removed_is_a_break() {
    let nats = Nats::start(&[]);
    let [a, b] = [cache(&nats), cache(&nats)];
    until("they have a history", || psql(&b.place, "SELECT epoch IS NOT NULL FROM sqlcached_buses") == "t");
    fill(&a);
    fill(&b);
    nats.remove_stream();
    until("it is noticed", || figure(&a, "breaks") > 0 && figure(&b, "breaks") > 0);
    until("nothing is believed", || pages(&a).is_empty() && pages(&b).is_empty());
    wait(&a, "streaming");
    wait(&b, "streaming");
    fill(&b);
    let mut client = fill(&a);
    assert_eq!(client.ask("delete page:1"), "DELETED");
    hear(&a, &b);
    until("it is told by the new stream", || pages(&b) == "2 3 4 5 6 7 8 9 10");
    assert!(psql(&a.place, "SELECT last_break IS NOT NULL FROM sqlcached_buses") == "t");
}

/// Nobody else may write to the stream. Who does empties the tables, and stops nobody.
#[test]
fn garbage_is_named_and_nothing_is_believed() {
    let nats = Nats::start(&[]);
    let daemon = cache(&nats);
    for garbage in [b"\x09hello".to_vec(), b"x".to_vec(), vec![1; 900_000], vec![1; 1 << 20]] {
        let before = figure(&daemon, "unapplied");
        fill(&daemon);
        nats.publish("sqlc.told", &garbage, true);
        until("it is noticed", || figure(&daemon, "unapplied") > before);
        until("nothing is believed", || pages(&daemon).is_empty());
    }
    assert!(
        psql(&daemon.place, "SELECT last_unapplied FROM sqlcached_buses").contains("nobody else may write")
    );
    wait(&daemon, "streaming");
    assert_eq!(figure(&daemon, "breaks"), 0);
}

/// A table that means something else in another cache is emptied there.
#[test]
fn definitions_that_differ_empty_the_table() {
    let nats = Nats::start(&[]);
    let [a, b] = [cache(&nats), cache(&nats)];
    fill(&a);
    fill(&b);
    psql(&b.place, "ALTER TABLE page ADD COLUMN note TEXT");
    psql(&a.place, "DELETE FROM page WHERE id = 1");
    hear(&a, &b);
    assert_eq!(count(&b, "page"), "0");
    assert_eq!(count(&b, "sess"), "10");
    let told = psql(&b.place, "SELECT last_unapplied FROM sqlcached_buses");
    assert!(told.contains("table \"page\"") && told.contains("other columns"), "{told}");
}

/// Wrong words are refused with what to do, and a wrong password is named.
#[test]
fn what_is_wrong_is_named() {
    let nats = Nats::start(&["--user", "cache", "--pass", "right"]);
    let daemon = SqlDaemon::start(&[]);
    let place = &daemon.place;
    let refused = |sql: &str, words: &str| {
        let error = asked(place, sql).unwrap_err();
        assert!(error.contains(words), "{sql}\n{error}");
    };
    refused("CREATE SERVER bus FOREIGN DATA WRAPPER nats", "needs the option servers");
    refused(
        "CREATE SERVER bus FOREIGN DATA WRAPPER nats OPTIONS (servers 'localhost:4222')",
        "expected: addresses with commas",
    );
    let server = format!(
        "CREATE SERVER bus FOREIGN DATA WRAPPER nats OPTIONS (servers 'nats://127.0.0.1:{}')",
        nats.port
    );
    psql(place, &server);
    psql(place, "CREATE USER MAPPING FOR PUBLIC SERVER bus OPTIONS (user 'cache', password 'wrong')");
    refused("CREATE TABLE t (id INT PRIMARY KEY) WITH (bus = 'bus')", "bus needs replicated = 'invalidate'");
    refused("CREATE TABLE t (id INT PRIMARY KEY) WITH (replicated = 'invalidate')", "need bus");
    refused(
        "CREATE TABLE t (id INT PRIMARY KEY) WITH (bus = 'other', replicated = 'invalidate')",
        "does not exist",
    );
    refused(
        "CREATE TABLE t (id INT PRIMARY KEY) WITH (bus = 'bus', replicated = 'all')",
        "write invalidate or rows",
    );
    refused(
        "CREATE TABLE t (id INT PRIMARY KEY) WITH (source = 'bus', depends = 'p(id)')",
        "is a bus, and no database",
    );
    psql(place, &format!("CREATE TABLE page (id INT PRIMARY KEY) WITH ({OPTIONS})"));
    refused("DROP SERVER bus CASCADE", "table page depends on server bus");
    let said = || psql(place, "SELECT coalesce(last_error, '') FROM sqlcached_buses");
    until("the password is wrong", || said().contains("NATS refuses the user \"cache\""));
    assert!(!daemon.daemon.printed().contains("wrong\""));
    psql(place, "ALTER USER MAPPING FOR PUBLIC SERVER bus OPTIONS (SET password 'right')");
    wait(&daemon, "streaming");
    refused("SELECT wait_for_bus('other', 1)", "is not followed");
    assert_eq!(psql(place, "SELECT wait_for_bus('bus', 1000000, '10 ms')"), "f");
}

#[test]
fn figures_of_a_bus_are_metrics() {
    let nats = Nats::start(&[]);
    let port = free_port();
    let daemon = SqlDaemon::start(&["--http-port", &port.to_string()]);
    define(&daemon, &options(&nats.url(), PATIENT));
    wait(&daemon, "streaming");
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    socket.read_to_string(&mut page).unwrap();
    let of_buses = engine::METRICS.iter().filter(|metric| metric.labels.first() == Some(&"bus"));
    let names: Vec<&str> = of_buses.map(|metric| metric.name).collect();
    assert!(names.len() > 3, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("\n{name}{{bus=\"bus\"")), "no {name} in\n{page}");
    }
}

/// A word as `today` chooses other rows where a clock shows another day: the statement is not told, but the table.
#[test]
fn what_hangs_on_the_clock_empties_the_table() {
    let nats = Nats::start(&[]);
    let (here, there) = (cache(&nats), cache(&nats));
    let _clients = (fill(&here), fill(&there));
    let count = || psql(&there.place, "SELECT count(*) FROM page");
    assert_eq!(count(), "10");
    psql(&here.place, "DELETE FROM page WHERE body = 'today'");
    until("the table is emptied", || count() == "0");
    assert_eq!(psql(&here.place, "SELECT count(*) FROM page"), "10");
}
