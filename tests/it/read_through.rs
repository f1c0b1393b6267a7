//! Rows that clients miss, fetched from a real PostgreSQL.

use std::process::{Child, Command};
use std::sync::Barrier;

use crate::client::Client;
use crate::drivers::place::{Place, SqlDaemon};
use crate::drivers::postgresql::PostgreSql;
use crate::sources::{asked, psql, server, shop, until, wait};

/// What a fetch waits for in tests that say when it goes on: a lock of the source, taken behind its snapshot.
const HELD: &str = "(SELECT pg_advisory_xact_lock_shared(7)) held";

fn table(query: &str, options: &str) -> String {
    format!(
        "CREATE TABLE product (id INT PRIMARY KEY, name TEXT, price NUMERIC)
             WITH (prefix = 'product:', value = 'name', source = 'pg', depends = 'product(id)',
                   query = '{query}'{options})"
    )
}

const QUERY: &str = "SELECT id, name, price FROM product WHERE id = ANY($1)";

fn held_query() -> String {
    format!("SELECT p.id, p.name, p.price FROM {HELD} LEFT JOIN product p ON p.id = ANY($1)")
}

/// A daemon with a table that reads through.
fn cache(database: &PostgreSql, table: &str) -> SqlDaemon {
    psql(&database.place, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO cache");
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(database));
    psql(&daemon.place, table);
    wait(&daemon, "streaming");
    daemon
}

fn figure(daemon: &SqlDaemon, name: &str) -> u64 {
    psql(&daemon.place, &format!("SELECT {name} FROM sqlcached_sources")).parse().unwrap()
}

fn cached(daemon: &SqlDaemon) -> String {
    psql(&daemon.place, "SELECT coalesce(string_agg(id || ' ' || name, ', ' ORDER BY id), '') FROM product")
}

/// Somebody who holds the lock that fetches wait for, in a connection of his own.
struct Holder(Child);

impl Holder {
    fn hold(source: &Place) -> Self {
        let sql = "SELECT pg_advisory_lock(7); SELECT pg_sleep(600)";
        let child =
            source.program("psql").args(["-X", "-q", "-c", sql]).stdout(std::process::Stdio::null()).spawn();
        let holder = Self(child.unwrap());
        let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock'";
        until("the lock is held", || psql(source, held) == "1");
        holder
    }

    /// So many queries wait for the lock: each has its snapshot.
    fn until_waited(source: &Place, count: u64) {
        let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        until("fetches wait", || psql(source, waiting) == count.to_string());
    }

    fn let_go(mut self, source: &Place) {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'";
        psql(source, end);
        let _ = self.0.wait();
    }
}

fn ask(client: &mut Client, key: &str) {
    client.send(format!("get {key}\r\n").as_bytes());
}

/// What follows `get`: the value, if there is one.
fn answer(client: &mut Client) -> Option<String> {
    let line = client.line();
    if line == "END" {
        return None;
    }
    let length: usize = line.rsplit(' ').next().unwrap().parse().unwrap();
    let value = client.bytes(length).unwrap();
    assert_eq!((client.line().as_str(), client.line().as_str()), ("", "END"));
    Some(String::from_utf8(value).unwrap())
}

/// A miss is answered from the database by every command that reads; the next one is a hit, until the row changes.
#[test]
fn a_miss_is_answered_from_the_database() {
    let database = shop(&[]);
    let daemon = cache(&database, &table(QUERY, ""));
    let mut client = daemon.daemon.connect();
    assert_eq!(client.get("product:1").as_deref(), Some(&b"product 1"[..]));
    assert_eq!(figure(&daemon, "fills"), 1);
    assert_eq!(client.get("product:1").as_deref(), Some(&b"product 1"[..]));
    assert_eq!(figure(&daemon, "fetches"), 1);
    assert_eq!(psql(&daemon.place, "SELECT id, name, price FROM product"), "1|product 1|1");
    // A row that is not there.
    assert_eq!(client.get("product:99"), None);
    // Several keys at once, with one that is here: one query.
    let before = figure(&daemon, "fetches");
    client.send(b"gets product:1 product:2 product:98 product:3\r\n");
    let mut lines = Vec::new();
    loop {
        let line = client.line();
        if line == "END" {
            break;
        }
        lines.push(line);
    }
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(lines[2].starts_with("VALUE product:2 0 9 ") && lines[3] == "product 2", "{lines:?}");
    assert_eq!(figure(&daemon, "fetches"), before + 1);
    // The other commands.
    assert_eq!(client.ask("mg product:4 v k"), "VA 9 kproduct:4");
    assert_eq!(client.line(), "product 4");
    assert_eq!(client.ask("mg product:97 v"), "EN");
    client.send(b"gat 100 product:5\r\n");
    assert_eq!(answer(&mut client).as_deref(), Some("product 5"));
    // Many in one packet, mixed with others.
    client.send(b"get product:6\r\nset other 0 0 1\r\nx\r\nget product:7\r\nmn\r\n");
    assert_eq!(answer(&mut client).as_deref(), Some("product 6"));
    assert_eq!(client.line(), "STORED");
    assert_eq!(answer(&mut client).as_deref(), Some("product 7"));
    assert_eq!(client.line(), "MN");
    // A change at the source.
    psql(&database.place, "UPDATE product SET name = 'new' WHERE id = 1");
    until("the change is here", || client.get("product:1").as_deref() == Some(b"new"));
    psql(&database.place, "DELETE FROM product WHERE id = 2");
    until("the row is gone", || client.get("product:2").is_none());
    // What is deleted here comes again.
    assert_eq!(client.ask("delete product:3"), "DELETED");
    assert_eq!(client.get("product:3").as_deref(), Some(&b"product 3"[..]));
}

/// The binary protocol: a get, and quiet ones in a pipeline.
#[test]
fn the_binary_protocol_reads_through() {
    let database = shop(&[]);
    let daemon = cache(&database, &table(QUERY, ""));
    let mut client = daemon.daemon.connect();
    let frame = |opcode: u8, key: &str| {
        let mut bytes = vec![0x80, opcode, 0, u8::try_from(key.len()).unwrap()];
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&u32::try_from(key.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(&[0; 12]);
        bytes.extend_from_slice(key.as_bytes());
        bytes
    };
    // GetQ of one that is there and one that is not, Get, NoOp.
    let requests =
        [frame(9, "product:1"), frame(9, "product:99"), frame(0, "product:2"), frame(10, "")].concat();
    client.send(&requests);
    let mut answers = Vec::new();
    for _ in 0..3 {
        let head = client.bytes(24).unwrap();
        let length = u32::from_be_bytes(head[8..12].try_into().unwrap());
        let body = client.bytes(length as usize).unwrap();
        let value = body.get(usize::from(head[4])..).unwrap_or_default();
        answers.push((head[1], head[7], String::from_utf8(value.to_vec()).unwrap()));
    }
    let expected = [(9, 0, "product 1"), (0, 0, "product 2"), (10, 0, "")];
    assert_eq!(answers, expected.map(|(opcode, status, value)| (opcode, status, value.to_owned())));
    assert_eq!(cached(&daemon), "1 product 1, 2 product 2");
}

/// A thousand clients miss one key at the same time: the source is asked once, as its own counter says.
#[test]
fn a_thousand_misses_of_one_key_are_one_query() {
    let database = shop(&["shared_preload_libraries=pg_stat_statements"]);
    let source = &database.place;
    psql(source, "CREATE EXTENSION pg_stat_statements");
    let daemon = cache(&database, &table(&held_query(), ", fetch_timeout = '1 min'"));
    let calls = "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query LIKE '%pg_current_snapshot%LATERAL%'";
    // The table was made with a query for no keys.
    psql(source, "SELECT pg_stat_statements_reset()");
    let holder = Holder::hold(source);
    let mut clients: Vec<Client> = (0..1_000).map(|_| daemon.daemon.connect()).collect();
    let barrier = Barrier::new(4);
    std::thread::scope(|scope| {
        for quarter in clients.chunks_mut(250) {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                for client in quarter {
                    ask(client, "product:1");
                }
            });
        }
    });
    Holder::until_waited(source, 1);
    holder.let_go(source);
    for client in &mut clients {
        assert_eq!(answer(client).as_deref(), Some("product 1"));
    }
    assert_eq!(psql(source, calls), "1");
    assert_eq!(figure(&daemon, "fills"), 1);
    // Keys that are asked for meanwhile are one query together.
    let holder = Holder::hold(source);
    psql(&daemon.place, "TRUNCATE product");
    // Each connection is busy with one.
    for (at, client) in clients.iter_mut().enumerate().take(4) {
        ask(client, &format!("product:{}", at + 1));
        Holder::until_waited(source, at as u64 + 1);
    }
    let before = figure(&daemon, "fetches");
    for (at, client) in clients.iter_mut().enumerate().skip(4).take(6) {
        ask(client, &format!("product:{}", at + 1));
    }
    until("all wait", || daemon.daemon.connect().stat("get_misses") >= 1_010);
    holder.let_go(source);
    for (at, client) in clients.iter_mut().enumerate().take(10) {
        assert_eq!(answer(client), Some(format!("product {}", at + 1)));
    }
    let more = figure(&daemon, "fetches") - before;
    assert!((1..=4).contains(&more), "{more} queries for six keys that waited");
}

/// The table of the race: a change is streamed while the source still shows the old row to everybody. Who misses the
/// row then is answered with it, and it is not stored; when the source shows the change, the new row is.
#[test]
fn a_row_from_before_a_change_that_was_applied_is_not_stored() {
    let database = shop(&[]);
    let daemon = cache(&database, &table(QUERY, ", miss_ttl = '1 h'"));
    let (mut client, source) = (daemon.daemon.connect(), &database.place);
    psql(source, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    psql(source, "SELECT pg_reload_conf()");
    until("commits wait", || psql(source, "SHOW synchronous_standby_names") == "nobody");
    let mut changes: Vec<Child> =
        ["UPDATE product SET name = 'new' WHERE id = 1", "INSERT INTO product VALUES (11, 'new', 1)"]
            .iter()
            .map(|sql| source.program("psql").args(["-X", "-q", "-c", sql]).spawn().unwrap())
            .collect();
    until("the changes were streamed", || figure(&daemon, "events") == 2);
    for _ in 0..3 {
        assert_eq!(client.get("product:1").as_deref(), Some(&b"product 1"[..]), "the source says so");
        assert_eq!(client.get("product:11"), None, "and so");
        assert_eq!(client.ask("mg product:1 v"), "VA 9");
        assert_eq!(client.line(), "product 1");
    }
    assert_eq!(cached(&daemon), "", "nothing of it is stored");
    assert_eq!((figure(&daemon, "fills"), figure(&daemon, "fills_refused")), (0, 6));
    // Another row is not concerned.
    assert_eq!(client.get("product:2").as_deref(), Some(&b"product 2"[..]));
    assert_eq!(cached(&daemon), "2 product 2");
    psql(source, "ALTER SYSTEM RESET synchronous_standby_names");
    psql(source, "SELECT pg_reload_conf()");
    for change in &mut changes {
        change.wait().unwrap();
    }
    assert_eq!(
        client.get("product:1").as_deref(),
        Some(&b"new"[..]),
        "the source shows it, and so does the cache"
    );
    assert_eq!(client.get("product:11").as_deref(), Some(&b"new"[..]));
    until("it is stored", || {
        client.get("product:1");
        client.get("product:11");
        cached(&daemon) == "1 new, 2 product 2, 11 new"
    });
}

/// A change, a delete and a write between the snapshot of a fetch and its store: the fetched row is not stored.
#[test]
fn what_happens_during_a_fetch_refuses_what_it_read() {
    let database = shop(&[]);
    let daemon = cache(&database, &table(&held_query(), ", miss_ttl = '1 h'"));
    let (mut client, mut other, source) = (daemon.daemon.connect(), daemon.daemon.connect(), &database.place);
    let during = |key: &str, client: &mut Client, happen: &mut dyn FnMut()| {
        let holder = Holder::hold(source);
        ask(client, key);
        Holder::until_waited(source, 1);
        happen();
        holder.let_go(source);
        answer(client)
    };
    let applied = |events: u64| until("it was applied", || figure(&daemon, "transactions") == events);
    // The change of the source was applied, and the source shows it, before the row is stored.
    let settled = || until("it is settled", || figure(&daemon, "unsettled") == 0);
    let got = during("product:1", &mut client, &mut || {
        psql(source, "UPDATE product SET name = 'new' WHERE id = 1");
        applied(1);
        settled();
    });
    assert_eq!((got.as_deref(), cached(&daemon).as_str()), (Some("product 1"), ""));
    assert_eq!(figure(&daemon, "fills_refused"), 1);
    // A row that comes: that there is none is not remembered.
    let got = during("product:11", &mut client, &mut || {
        psql(source, "INSERT INTO product VALUES (11, 'new', 1)");
        applied(2);
    });
    assert_eq!((got, cached(&daemon).as_str()), (None, ""));
    assert_eq!(client.get("product:11").as_deref(), Some(&b"new"[..]));
    // Clients here.
    let got =
        during("product:2", &mut client, &mut || assert_eq!(other.ask("delete product:2"), "NOT_FOUND"));
    assert_eq!(got.as_deref(), Some("product 2"));
    let got = during("product:3", &mut client, &mut || assert_eq!(other.ask("flush_all"), "OK"));
    assert_eq!(got.as_deref(), Some("product 3"));
    let got = during("product:4", &mut client, &mut || {
        psql(&daemon.place, "DELETE FROM product WHERE id = 4");
    });
    assert_eq!(got.as_deref(), Some("product 4"));
    let got = during("product:5", &mut client, &mut || {
        psql(&daemon.place, "BEGIN; TRUNCATE product; COMMIT");
    });
    assert_eq!(got.as_deref(), Some("product 5"));
    assert_eq!(cached(&daemon), "");
    // What somebody stores stays, and answers.
    let got = during("product:6", &mut client, &mut || assert_eq!(other.set("product:6", b"own"), "STORED"));
    assert_eq!(got.as_deref(), Some("own"));
    assert_eq!(cached(&daemon), "6 own");
}

/// That the source has no row is remembered for `miss_ttl`, and until a row comes.
#[test]
fn a_row_that_is_not_there_is_remembered() {
    let database = shop(&[]);
    let daemon = cache(&database, &table(QUERY, ", miss_ttl = '1 h'"));
    let mut client = daemon.daemon.connect();
    for _ in 0..5 {
        assert_eq!(client.get("product:50"), None);
    }
    assert_eq!(figure(&daemon, "fetches"), 1);
    // One of several is known.
    client.send(b"get product:50 product:1\r\n");
    assert_eq!(answer(&mut client).as_deref(), Some("product 1"));
    psql(&database.place, "INSERT INTO product VALUES (50, 'late', 1)");
    until("the row is here", || client.get("product:50").as_deref() == Some(b"late"));
    assert_eq!(client.get("product:51"), None);
    psql(&daemon.place, "ALTER TABLE product SET (miss_ttl = '100 ms')");
    assert_eq!(client.get("product:51"), None);
    let before = figure(&daemon, "fetches");
    until("it is asked for again", || {
        assert_eq!(client.get("product:51"), None);
        figure(&daemon, "fetches") > before
    });
}

/// A source that does not answer in time, that is killed in the middle of a fetch, that is away, and that is back.
#[test]
fn a_source_that_does_not_answer_is_a_miss() {
    let mut database = shop(&[]);
    let daemon = cache(&database, &table(&held_query(), ", fetch_timeout = '300 ms'"));
    let mut client = daemon.daemon.connect();
    let holder = Holder::hold(&database.place);
    assert_eq!(client.get("product:1"), None, "its time was over");
    assert_eq!(figure(&daemon, "fills_failed"), 1);
    holder.let_go(&database.place);
    until("the next one is in time", || client.get("product:1").as_deref() == Some(b"product 1"));
    // Killed while a client waits.
    psql(&daemon.place, "ALTER TABLE product SET (fetch_timeout = '30 s')");
    let holder = Holder::hold(&database.place);
    ask(&mut client, "product:2");
    Holder::until_waited(&database.place, 1);
    let source = database.place.clone();
    database.stop();
    assert_eq!(answer(&mut client), None);
    drop(source);
    let mut holder = holder;
    let _ = holder.0.wait();
    assert_eq!(client.get("product:3"), None, "it is away");
    database.start_again();
    until("it is read again", || client.get("product:3").as_deref() == Some(b"product 3"));
    wait(&daemon, "streaming");
    until("and stored", || client.get("product:4").is_some() && cached(&daemon).contains("4 product 4"));
}

/// What a query lacks is said when a table names it, with what to do about it.
#[test]
fn a_query_that_does_not_fit_its_table_is_refused() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(&database));
    let denied = asked(&daemon.place, &table(QUERY, "")).unwrap_err();
    assert!(denied.contains("42501") && denied.contains("GRANT SELECT"), "{denied}");
    psql(&database.place, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO cache");
    for (query, state, hint) in [
        ("SELECT id, name, price FROM product WHERE id = 1", "42P02", "WHERE id = ANY($1)"),
        ("SELECT id, name, price FROM product WHERE id = ANY($1) AND id = $2", "42P02", "WHERE id = ANY($1)"),
        ("SELECT id, name, price, description FROM product WHERE id = ANY($1)", "42703", "just the table"),
        ("SELECT name, price FROM product WHERE id = ANY($1)", "42703", "just the table"),
        ("SELECT id, name, name, price FROM product WHERE id = ANY($1)", "42701", ""),
        ("SELECT id, name, name AS price FROM product WHERE id = ANY($1)", "42804", "price::numeric"),
        ("SELECT id::bigint, name, price FROM product WHERE id = ANY($1)", "42804", "id::integer"),
        ("SELECT id, name, prize AS price FROM product WHERE id = ANY($1)", "42703", ""),
        ("SELECT id, name FROM products WHERE id = ANY($1)", "42P01", ""),
        ("DELETE FROM product WHERE id = ANY($1) RETURNING id, name, price", "42601", ""),
        ("SELEKT", "42601", ""),
    ] {
        let error = asked(&daemon.place, &table(query, "")).err();
        let error = error.unwrap_or_else(|| panic!("{query}: the table was made"));
        assert!(error.contains(state) && error.contains(hint), "{query}: {error}");
    }
    let refused = |sql: &str| asked(&daemon.place, sql).unwrap_err();
    assert!(
        refused("CREATE TABLE t (id INT PRIMARY KEY, b TEXT) WITH (query = 'SELECT 1')")
            .contains("needs source")
    );
    assert!(
        refused("CREATE TABLE t (id INT PRIMARY KEY, b TEXT) WITH (miss_ttl = '1 s')").contains("need query")
    );
    // A column that the query does not give has its default, and must have one.
    psql(
        &daemon.place,
        "CREATE TABLE product (id INT PRIMARY KEY, name TEXT, seen INT DEFAULT 7, tag TEXT)
             WITH (prefix = 'product:', value = 'name', source = 'pg', depends = 'product(id)')",
    );
    let alter = |query: &str| format!("ALTER TABLE product SET (query = '{query}')");
    psql(&daemon.place, &alter("SELECT id, name FROM product WHERE id = ANY($1)"));
    assert!(refused(&alter("SELECT id, price FROM product WHERE id = ANY($1)")).contains("42703"));
    wait(&daemon, "streaming");
    until("a row comes", || daemon.daemon.connect().get("product:1").is_some());
    assert_eq!(psql(&daemon.place, "SELECT * FROM product"), "1|product 1|7|");
    psql(&daemon.place, "ALTER TABLE product RESET (query)");
    assert_eq!(daemon.daemon.connect().get("product:2"), None);
}

/// Keys of two columns, texts with quotes, and keys that the source's types do not have.
#[test]
fn keys_of_every_kind_are_asked_for() {
    let database = shop(&[]);
    let source = &database.place;
    psql(
        source,
        r#"CREATE TABLE price (shop TEXT, item INT, amount NUMERIC, PRIMARY KEY (shop, item));
           INSERT INTO price VALUES ('north', 1, 10), ('a "b" \ {c}', 2, 20);
           CREATE TABLE person (id UUID PRIMARY KEY, name TEXT);
           INSERT INTO person VALUES ('6f1c9a4e-0000-4000-8000-000000000001', 'Ada');
           ALTER PUBLICATION cache ADD TABLE price, person"#,
    );
    let daemon = cache(
        &database,
        "CREATE TABLE price (shop TEXT, item INT, amount TEXT, PRIMARY KEY (shop, item))
             WITH (prefix = 'price:', value = 'amount', source = 'pg', depends = 'price(shop, item)', query = '
                 SELECT shop, item, amount FROM price
                 WHERE (shop, item) IN (SELECT * FROM unnest($1::text[], $2::int[]))  -- by both')",
    );
    psql(
        &daemon.place,
        "CREATE TABLE person (id TEXT PRIMARY KEY, name TEXT)
             WITH (prefix = 'person:', value = 'name', source = 'pg', depends = 'person(id)',
                   query = 'SELECT id, name FROM person WHERE id = ANY($1)')",
    );
    let mut client = daemon.daemon.connect();
    assert_eq!(client.get("price:north:1").as_deref(), Some(&b"10"[..]));
    assert_eq!(client.get("price:north:2"), None);
    assert_eq!(
        psql(&daemon.place, r#"SELECT amount FROM price WHERE shop = 'a "b" \ {c}' AND item = 2"#),
        "20"
    );
    psql(source, "UPDATE price SET amount = 11 WHERE item = 1");
    until("the price is new", || client.get("price:north:1").as_deref() == Some(b"11"));
    // One of the keys is none that a UUID can be: the other one comes.
    client.send(b"get person:nobody person:6f1c9a4e-0000-4000-8000-000000000001 person:else\r\n");
    assert_eq!(answer(&mut client).as_deref(), Some("Ada"));
}

/// `SELECT` by the key reads through, whichever way it is said; scans see what is cached.
#[test]
fn statements_by_the_key_read_through() {
    let database = shop(&[]);
    let daemon = cache(&database, &table(QUERY, ", miss_ttl = '1 h'"));
    let here = &daemon.place;
    assert_eq!(psql(here, "SELECT count(*) FROM product"), "0", "a scan sees what is cached");
    assert_eq!(psql(here, "SELECT name FROM product WHERE id = 1"), "product 1");
    assert_eq!(
        psql(here, "SELECT name FROM product WHERE id IN (1, 2, 3, 77) ORDER BY id"),
        "product 1\nproduct 2\nproduct 3"
    );
    assert_eq!(psql(here, "SELECT sum(price) FROM product WHERE id = ANY(ARRAY[4, 5])"), "9");
    assert_eq!(psql(here, "SELECT name FROM product WHERE name = 'product 9'"), "");
    assert_eq!(psql(here, "SELECT count(*) FROM product"), "5");
    assert_eq!(psql(here, "SELECT name FROM product WHERE id = 78"), "");
    let before = figure(&daemon, "fetches");
    assert_eq!(psql(here, "SELECT name FROM product WHERE id = 78"), "");
    assert_eq!(figure(&daemon, "fetches"), before, "that there is none is known");
    // In a transaction, by a join, within an expression, and by SQLite alone.
    assert_eq!(psql(here, "BEGIN; SELECT name FROM product WHERE id = 6; COMMIT"), "product 6");
    assert_eq!(
        psql(here, "SELECT name FROM (VALUES (7), (8)) v(n) JOIN product ON id = n ORDER BY id"),
        "product 7\nproduct 8"
    );
    assert_eq!(
        psql(here, "SET native_execution = off; SELECT upper(name) FROM product WHERE id = 9"),
        "PRODUCT 9"
    );
    // Writes do not.
    assert_eq!(
        psql(here, "DELETE FROM product; UPDATE product SET name = 'x' WHERE id = 10 RETURNING id"),
        ""
    );
    assert_eq!(cached(&daemon), "");
}

/// While the source hides a change, a statement has the row that the source shows, and nothing is stored.
#[test]
fn a_statement_is_answered_with_a_row_that_is_not_stored() {
    let database = shop(&[]);
    let daemon = cache(&database, &table(QUERY, ""));
    let source = &database.place;
    psql(source, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    psql(source, "SELECT pg_reload_conf()");
    until("commits wait", || psql(source, "SHOW synchronous_standby_names") == "nobody");
    let mut update: Command = source.program("psql");
    let mut update =
        update.args(["-X", "-q", "-c", "UPDATE product SET name = 'new' WHERE id = 1"]).spawn().unwrap();
    until("the change was streamed", || figure(&daemon, "events") == 1);
    assert_eq!(
        psql(&daemon.place, "SELECT name, price FROM product WHERE id IN (1, 2) ORDER BY 1"),
        "product 1|1\nproduct 2|2"
    );
    assert_eq!(cached(&daemon), "2 product 2");
    psql(source, "ALTER SYSTEM RESET synchronous_standby_names");
    psql(source, "SELECT pg_reload_conf()");
    update.wait().unwrap();
    assert_eq!(psql(&daemon.place, "SELECT name FROM product WHERE id = 1"), "new");
}

/// A reader of shared memory asks the daemon for what is missing there, and reads it itself from then on.
#[test]
fn readers_of_shared_memory_read_through() {
    let database = shop(&[]);
    let daemon = cache(&database, &table(QUERY, ", shared_memory = on"));
    let client =
        sqlcached_client::Client::connect(&sqlcached_client::Options::new(daemon.daemon.socket())).unwrap();
    let table = client.table("product").unwrap();
    let value = |key: &[u8]| client.get_from(&table, key).unwrap().value().map(|value| value.bytes);
    assert_eq!(client.peek(&table, b"1", &mut Vec::new()).unwrap(), None, "the daemon's to answer");
    assert_eq!(value(b"1").as_deref(), Some(&b"product 1"[..]));
    assert!(client.peek(&table, b"1", &mut Vec::new()).unwrap().is_some());
    assert_eq!(value(b"99"), None);
    assert_eq!(figure(&daemon, "fetches"), 2);
    let row = client.row("product", b"2").unwrap().value().unwrap();
    assert_eq!(row.text("name"), Some("product 2"));
    psql(&database.place, "UPDATE product SET name = 'new' WHERE id = 1");
    until("the change is here", || value(b"1").as_deref() == Some(b"new"));
}
