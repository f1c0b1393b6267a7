//! Death and restart: what was acknowledged is there again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::client::{Client, Reply};
use crate::daemon::{Daemon, Folder};
use crate::seed;

/// Deaths in one test run; `KILLS=1000` asks for more.
const KILLS: usize = 100;

/// A death comes after so many acknowledged writes at the latest.
const WRITES_PER_LIFE: usize = 300;

/// Keys in play; together far smaller than the arena, so that eviction cannot excuse a loss.
const KEYS: usize = 400;

const TABLES: &str = "\
    CREATE TABLE page (id INT PRIMARY KEY, owner INT, title TEXT UNIQUE);\n\
    CREATE INDEX page_owner ON page (owner);\n\
    CREATE TABLE frag (key TEXT PRIMARY KEY, page_id INT, body TEXT) \
    WITH (prefix = 'frag:', value = 'body', shared_memory = on);\n";

/// What a client knows of its keys: acknowledged values, and for the write under way both the old and the new.
#[derive(Default)]
struct Known {
    sure: BTreeMap<String, Option<Vec<u8>>>,
    open: Option<(String, Option<Vec<u8>>)>,
}

#[test]
fn kill_9_loses_nothing_that_was_acknowledged() {
    let mut random = fastrand::Rng::with_seed(seed());
    let folder = Folder::new();
    let file = folder.write("init.sql", TABLES);
    let mut daemon = Daemon::start_in(folder, &["-m", "64", "--init-file", file.to_str().unwrap()]);
    let mut known = Known::default();
    let mut pages = BTreeMap::new();
    let kills = std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    for round in 0..kills {
        let enough = AtomicBool::new(false);
        let mut writer = random.fork();
        std::thread::scope(|scope| {
            let daemon_socket = daemon.socket();
            let (known, pages, enough) = (&mut known, &mut pages, &enough);
            let work = scope.spawn(move || {
                let mut client = Client::unix(&daemon_socket);
                write_until_death(&mut client, &mut writer, known, pages, enough, round);
            });
            while !enough.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            daemon.kill();
            work.join().unwrap();
        });
        daemon.restart();
        check(&mut daemon.connect(), &mut known, &mut pages, round);
    }
    println!("{kills} deaths; nothing that was acknowledged is lost, no commit is half there");
}

/// Sets, deletes and statements of many rows until the connection breaks.
fn write_until_death(
    client: &mut Client,
    random: &mut fastrand::Rng,
    known: &mut Known,
    pages: &mut BTreeMap<i64, (i64, bool)>,
    enough: &AtomicBool,
    round: usize,
) {
    let last = random.usize(1..WRITES_PER_LIFE);
    for step in 0.. {
        if step == last {
            // Release: pairs with the Acquire of the killer.
            enough.store(true, Ordering::Release);
        }
        let alive = if random.u8(..) < 8 {
            write_pages(client, random, pages, round)
        } else {
            write_key(client, random, known)
        };
        if !alive {
            return;
        }
    }
}

fn write_key(client: &mut Client, random: &mut fastrand::Rng, known: &mut Known) -> bool {
    let prefix = if random.bool() { "frag:" } else { "" };
    let key = format!("{prefix}key{}", random.usize(..KEYS));
    let value = (random.u8(..) > 40).then(|| {
        let length = if random.u8(..) < 5 { random.usize(..60_000) } else { random.usize(..300) };
        (0..length).map(|_| random.alphanumeric() as u8).collect::<Vec<u8>>()
    });
    let request = match &value {
        Some(value) => {
            let mut request = format!("set {key} 0 0 {}\r\n", value.len()).into_bytes();
            request.extend_from_slice(value);
            request.extend_from_slice(b"\r\n");
            request
        }
        None => format!("delete {key}\r\n").into_bytes(),
    };
    known.open = Some((key.clone(), value.clone()));
    if client.try_send(&request).is_err() {
        return false;
    }
    match client.try_line() {
        Ok(answer) if answer.is_empty() => false,
        Ok(answer) => {
            assert!(matches!(answer.as_str(), "STORED" | "DELETED" | "NOT_FOUND"), "{answer}");
            known.sure.insert(key, value);
            known.open = None;
            true
        }
        Err(_) => false,
    }
}

/// Adds a hundred rows in one statement. Sure when acknowledged; otherwise all or none must be there.
fn write_pages(
    client: &mut Client,
    random: &mut fastrand::Rng,
    pages: &mut BTreeMap<i64, (i64, bool)>,
    round: usize,
) -> bool {
    let first = i64::try_from(pages.len()).unwrap() * 1_000;
    let owner = i64::try_from(round).unwrap() * 1_000 + random.i64(..1_000);
    let statement = format!(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) \
         INSERT INTO page SELECT {first} + i, {owner}, 'title ' || ({first} + i) FROM n"
    );
    pages.insert(first, (owner, false));
    if client.try_send(format!("sql {}\r\n{statement}\r\n", statement.len()).as_bytes()).is_err() {
        return false;
    }
    match client.try_line() {
        Ok(answer) if answer == "OK 100" => {
            pages.insert(first, (owner, true));
            true
        }
        Ok(answer) if !answer.is_empty() => panic!("{answer}"),
        _ => false,
    }
}

fn check(client: &mut Client, known: &mut Known, pages: &mut BTreeMap<i64, (i64, bool)>, round: usize) {
    if let Some((key, new)) = known.open.take() {
        let found = client.get(&key);
        let old = known.sure.get(&key).cloned().unwrap_or(None);
        assert!(found == new || found == old, "round {round}: {key} is neither old nor new");
        known.sure.insert(key, found);
    }
    for (key, value) in &known.sure {
        assert_eq!(client.get(key).is_some(), value.is_some(), "round {round}: {key}");
        assert_eq!(&client.get(key), value, "round {round}: {key}");
    }
    for (first, (owner, sure)) in pages.iter_mut() {
        let last = *first + 99;
        let by_key =
            count(client, &format!("SELECT count(*) AS n FROM page WHERE id BETWEEN {first} AND {last}"));
        let title = format!("SELECT count(*) AS n FROM page WHERE title = 'title {last}'");
        assert!(by_key == 100 || (!*sure && by_key == 0), "round {round}: {by_key} of 100 rows from {first}");
        assert_eq!(count(client, &title), by_key / 100, "round {round}: unique index");
        let all =
            format!("SELECT count(*) AS n FROM page WHERE owner = {owner} AND id BETWEEN {first} AND {last}");
        assert_eq!(count(client, &all), by_key, "round {round}: index by owner");
        *sure = by_key == 100;
    }
    pages.retain(|_, (_, sure)| *sure);
    // The next block of pages begins beyond every one that was ever tried.
    let rows = count(client, "SELECT count(*) AS n FROM page");
    assert_eq!(rows, 100 * pages.len() as u64);
    client.change("DELETE FROM page");
    pages.clear();
}

fn count(client: &mut Client, statement: &str) -> u64 {
    client.rows(statement)[0]["n"].as_u64().unwrap()
}

#[test]
fn definitions_indexes_and_times_to_live_outlive_a_stop() {
    let mut daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    for statement in TABLES.split(";\n").filter(|statement| !statement.trim().is_empty()) {
        assert_eq!(client.sql(statement), Reply::Changed(0), "{statement}");
    }
    let pages = json!([1, 7, "one", 2, 7, "two", 3, 8, "three"]);
    let statement = "INSERT INTO page VALUES (?, ?, ?), (?, ?, ?), (?, ?, ?)";
    assert_eq!(client.sqlp(statement, &pages), Reply::Changed(3));
    assert_eq!(client.store("set short 5 100", b"x"), "STORED");
    assert_eq!(client.store("set long 9 0", b"y"), "STORED");
    for stop in ["TERM", "KILL"] {
        daemon.signal(stop);
        daemon.wait();
        daemon.restart();
        let mut client = daemon.connect();
        let plan = client.rows("EXPLAIN QUERY PLAN SELECT id FROM page WHERE owner = 7");
        assert!(format!("{plan:?}").contains("page_owner"), "{plan:?}");
        assert_eq!(
            client.rows("SELECT id FROM page WHERE owner = 7 ORDER BY id"),
            [json!({"id": 1}), json!({"id": 2})]
        );
        assert!(
            matches!(client.sql("INSERT INTO page VALUES (4, 1, 'two')"), Reply::Error(state, _) if state == "23505")
        );
        let ttl = client.rows("SELECT flags, expiry IS NULL AS forever FROM memcached ORDER BY key");
        assert_eq!(ttl.len(), 2, "{ttl:?}");
        assert_eq!(ttl[0]["flags"], json!(9));
        assert_eq!(ttl[1]["flags"], json!(5));
    }
}

/// Uploads under way when the daemon dies; each is received where its row was going to lie.
const UPLOADS: usize = 6;

#[test]
fn kill_9_in_the_middle_of_large_values_leaves_the_ones_that_were_there() {
    let mut random = fastrand::Rng::with_seed(seed());
    let mut daemon = Daemon::start(&["-m", "64"]);
    for round in 0..8 {
        let mut client = daemon.connect();
        let old: Vec<Vec<u8>> =
            (0..UPLOADS).map(|_| vec![random.u8(..); random.usize(10..200_000)]).collect();
        for (n, value) in old.iter().enumerate() {
            assert_eq!(client.set(&format!("k{n}"), value), "STORED");
            assert_eq!(client.set(&format!("beside{n}"), value), "STORED");
        }
        let before = client.stat("bytes_read");
        let mut sent = 0;
        let _uploads: Vec<Client> = (0..UPLOADS)
            .map(|n| {
                let bytes = random.usize(100_000..900_000);
                let mut request = format!("set k{n} 0 0 {bytes}\r\n").into_bytes();
                request.resize(request.len() + random.usize(..bytes), b'n');
                let mut upload = daemon.connect();
                upload.send(&request);
                sent += request.len() as u64;
                upload
            })
            .collect();
        while client.stat("bytes_read") < before + sent {
            std::thread::yield_now();
        }
        daemon.kill();
        daemon.restart();
        let mut client = daemon.connect();
        for (n, value) in old.iter().enumerate() {
            for key in [format!("k{n}"), format!("beside{n}")] {
                assert!(client.get(&key).as_ref() == Some(value), "round {round}: {key}");
            }
        }
        assert_eq!(client.stat("curr_items"), 2 * UPLOADS as u64);
    }
}

/// A `cas` from before the restart must not pass for a later version: stamps never repeat.
#[test]
fn cas_values_do_not_repeat_after_a_death() {
    let mut daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    client.set("k", b"1");
    let head = client.ask("gets k");
    let old = head.rsplit(' ').next().unwrap().to_owned();
    daemon.kill();
    daemon.restart();
    let mut client = daemon.connect();
    client.set("k", b"2");
    assert_eq!(client.store(&format!("cas k 0 0 1 {old}\r\n3\r\nversion"), b""), "EXISTS");
}

/// What a procedure of three writes works on.
const CALLED: &str = "\
    CREATE TABLE counter (k INT PRIMARY KEY, n INT);\n\
    CREATE TABLE entry (n INT PRIMARY KEY);\n\
    INSERT INTO counter VALUES (1, 0), (2, 0);\n";
const PUT: &str = "CREATE PROCEDURE put() LANGUAGE sql AS $$ UPDATE counter SET n = n + 1 WHERE k = 1; \
    UPDATE counter SET n = n + 1 WHERE k = 2; INSERT INTO entry SELECT n FROM counter WHERE k = 2 $$";

/// Deaths in the middle of calls.
const CALL_KILLS: u64 = 25;

#[test]
fn kill_9_leaves_a_call_whole_or_not_at_all() {
    let mut random = fastrand::Rng::with_seed(seed());
    let folder = Folder::new();
    let file = folder.write("init.sql", CALLED);
    let mut daemon = Daemon::start_in(folder, &["-m", "64", "--init-file", file.to_str().unwrap()]);
    daemon.connect().change(PUT);
    let mut sure = 0;
    for round in 0..CALL_KILLS {
        let (enough, last) = (AtomicBool::new(false), random.u64(1..80));
        let answered = std::thread::scope(|scope| {
            let (socket, enough) = (daemon.socket(), &enough);
            let work = scope.spawn(move || call_until_death(&mut Client::unix(&socket), last, enough));
            while !enough.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            daemon.kill();
            work.join().unwrap()
        });
        daemon.restart();
        let asked =
            "SELECT min(n) AS low, max(n) AS high, (SELECT count(*) FROM entry) AS entries FROM counter";
        let found = daemon.connect().rows(asked);
        let [low, high, entries] = ["low", "high", "entries"].map(|name| found[0][name].as_u64().unwrap());
        assert!(low == high && high == entries, "round {round}: {found:?}");
        // The last call may have been carried out, though nobody was told.
        let known = sure + answered;
        assert!((known..=known + 1).contains(&high), "round {round}: {known} acknowledged, {high} there");
        sure = high;
    }
}

/// How many calls were acknowledged.
fn call_until_death(client: &mut Client, last: u64, enough: &AtomicBool) -> u64 {
    for done in 0.. {
        if done == last {
            // Release: pairs with the Acquire of the killer.
            enough.store(true, Ordering::Release);
        }
        if client.try_send(b"call put 2\r\n[]\r\n").is_err() {
            return done;
        }
        match client.try_line() {
            Ok(answer) if answer == "OK 0" => {}
            Ok(answer) if answer.is_empty() => return done,
            Ok(answer) => panic!("{answer}"),
            Err(_) => return done,
        }
    }
    0
}
