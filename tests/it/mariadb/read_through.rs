//! Rows that clients miss, fetched from a real MariaDB.

use std::time::Duration;

use super::{change, server, shop};
use crate::client::Client;
use crate::drivers::mariadb::MariaDb;
use crate::drivers::place::SqlDaemon;
use crate::sources::{asked, psql, until, wait};

const TABLE: &str = "CREATE TABLE product (id INT PRIMARY KEY, name TEXT, price NUMERIC(10, 2))
     WITH (prefix = 'product:', value = 'name', source = 'shop', depends = 'product(id)', miss_ttl = '1 h',
           query = 'SELECT id, name, price FROM product WHERE id IN (?)')";

/// A daemon with a table that reads through.
fn cache(database: &MariaDb, table: &str) -> SqlDaemon {
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(database));
    psql(&daemon.place, table);
    wait(&daemon, "streaming");
    daemon
}

fn figure(daemon: &SqlDaemon, name: &str) -> u64 {
    psql(&daemon.place, &format!("SELECT {name} FROM sqlcached_sources")).parse().unwrap()
}

fn text(client: &mut Client, key: &str) -> Option<String> {
    client.get(key).map(|value| String::from_utf8(value).unwrap())
}

/// A miss is answered from the database, and the row stays until it changes there.
#[test]
fn a_miss_is_answered_from_the_database() {
    let database = shop(&[]);
    let daemon = cache(&database, TABLE);
    let mut client = daemon.daemon.connect();
    assert_eq!(text(&mut client, "product:1").as_deref(), Some("product 1"));
    assert_eq!(text(&mut client, "product:1").as_deref(), Some("product 1"));
    assert_eq!((figure(&daemon, "fetches"), figure(&daemon, "fills")), (1, 1));
    // A statement, with keys of which some are here.
    let rows = "SELECT id, name, price FROM product WHERE id IN (1, 2, 99) ORDER BY id";
    assert_eq!(psql(&daemon.place, rows), "1|product 1|1.00\n2|product 2|2.00");
    // A row that is not there is not asked for again, and comes when it is inserted.
    let before = figure(&daemon, "fetches");
    assert_eq!(text(&mut client, "product:99"), None);
    assert_eq!(figure(&daemon, "fetches"), before);
    change(&database, "INSERT INTO product VALUES (99, 'it''s \\\\ new', NULL, NULL)");
    until("the new row is found", || text(&mut client, "product:99").as_deref() == Some("it's \\ new"));
    change(&database, "UPDATE product SET name = 'other' WHERE id = 1");
    until("the change is here", || text(&mut client, "product:1").as_deref() == Some("other"));
    change(&database, "DELETE FROM product WHERE id = 2");
    until("the row is gone", || text(&mut client, "product:2").is_none());
}

/// The table of the race: a replica that never confirms, so that the change is streamed and the source still answers
/// with the old row. That answers who waits, and is not stored.
#[test]
fn a_row_from_before_a_change_that_was_applied_is_not_stored() {
    let database = shop(&[
        "--rpl-semi-sync-master-enabled=ON",
        "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
        "--rpl-semi-sync-master-timeout=1",
    ]);
    let daemon = cache(&database, TABLE);
    let mut client = daemon.daemon.connect();
    assert_eq!(text(&mut client, "product:1").as_deref(), Some("product 1"));
    database.ask("SET GLOBAL rpl_semi_sync_master_timeout = 600000");
    database
        .ask("SET GLOBAL rpl_semi_sync_master_enabled = OFF; SET GLOBAL rpl_semi_sync_master_enabled = ON");
    let before = figure(&daemon, "events");
    let mut update = database.client();
    let mut update =
        update.args(["-e", "UPDATE shop.product SET name = 'new' WHERE id = 1"]).spawn().unwrap();
    until("the change was streamed", || figure(&daemon, "events") > before);
    until("the row is gone", || psql(&daemon.place, "SELECT count(*) FROM product") == "0");
    for refused in 1..=3 {
        assert_eq!(text(&mut client, "product:1").as_deref(), Some("product 1"));
        assert_eq!(figure(&daemon, "fills_refused"), refused);
    }
    assert_eq!(psql(&daemon.place, "SELECT name FROM product WHERE id = 1"), "product 1");
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM product"), "0");
    // Another row is stored.
    assert_eq!(text(&mut client, "product:2").as_deref(), Some("product 2"));
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM product"), "1");
    database.ask("SET GLOBAL rpl_semi_sync_master_enabled = OFF");
    update.wait().unwrap();
    until("the new row is stored", || {
        assert_eq!(text(&mut client, "product:1").as_deref(), Some("new"));
        psql(&daemon.place, "SELECT count(*) FROM product") == "2"
    });
}

/// Values of each type, and keys of several columns with letters that mean something to a source.
#[test]
fn values_and_keys_of_every_kind() {
    let database = shop(&[]);
    change(
        &database,
        "CREATE TABLE every (shop VARCHAR(20) COLLATE utf8mb4_bin, item BIGINT, b BOOLEAN, t TINYINT, u INT UNSIGNED,
             d DECIMAL(20, 5), f DOUBLE, day DATE, moment DATETIME(3), stamp TIMESTAMP NULL, clock TIME,
             bytes VARBINARY(20), doc JSON, kind ENUM('a', 'b'), big BIGINT UNSIGNED, PRIMARY KEY (shop, item));
         SET time_zone = '+05:00';
         INSERT INTO every VALUES
             ('it''s', 1, TRUE, -5, 4000000000, 1.5, 0.25, '2026-02-03', '2026-02-03 04:05:06.789',
              '2026-02-03 04:05:06', '23:59:01', X'00FF5C27', '{\"a\": [1]}', 'b', 18446744073709551615),
             ('\\\\\"?', -9223372036854775808, FALSE, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    );
    let daemon = cache(
        &database,
        "CREATE TABLE every (shop TEXT, item BIGINT, b BOOLEAN, t SMALLINT, u BIGINT, d NUMERIC, f FLOAT8, day DATE,
             moment TIMESTAMP, stamp TIMESTAMPTZ, clock TIME, bytes BYTEA, doc JSON, kind TEXT, big NUMERIC,
             PRIMARY KEY (shop, item))
         WITH (source = 'shop', depends = 'every(shop, item)', query = 'SELECT * FROM every WHERE (shop, item) IN (?)')",
    );
    assert_eq!(
        psql(&daemon.place, "SET timezone = 'UTC'; SELECT * FROM every WHERE shop = 'it''s' AND item = 1"),
        "it's|1|t|-5|4000000000|1.50000|0.25|2026-02-03|2026-02-03 04:05:06.789|2026-02-02 23:05:06+00|23:59:01|\
         \\x00ff5c27|{\"a\": [1]}|b|18446744073709551615"
    );
    let low = "SELECT shop, b, t, u FROM every WHERE shop = '\\\"?' AND item = -9223372036854775808";
    assert_eq!(psql(&daemon.place, low), "\\\"?|f|0|0");
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM every WHERE shop = '''); --' AND item = 1"), "0");
    assert_eq!(figure(&daemon, "fills_failed"), 0);
}

/// What a query must be is said when the table is made.
#[test]
fn a_query_that_does_not_fit_its_table_is_refused() {
    let database = shop(&[]);
    database.ask("CREATE DATABASE closed; CREATE TABLE closed.t (id INT PRIMARY KEY, name TEXT)");
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(&database));
    for (query, state, words) in [
        ("SELECT id, name, price FROM product", "42P02", "WHERE id IN (?)"),
        ("SELECT id, name, price FROM product WHERE id IN (?) OR id IN (?)", "42P02", "more than one"),
        ("SELECT id, title FROM product WHERE id IN (?)", "42703", "title"),
        ("SELECT id, description FROM product WHERE id IN (?)", "42703", "description"),
        ("SELECT name FROM product WHERE id IN (?)", "42703", "primary key"),
        ("SELECT id, name, name AS price FROM product WHERE id IN (?)", "42804", "price"),
        ("SELECT id, name FROM closed.t WHERE id IN (?)", "42501", "GRANT SELECT"),
        ("SELECT id, name FROM nowhere WHERE id IN (?)", "42P01", "nowhere"),
        ("SELEKT id FROM product WHERE id IN (?)", "42601", "syntax"),
    ] {
        let table = TABLE.replace("SELECT id, name, price FROM product WHERE id IN (?)", query);
        let refused = asked(&daemon.place, &table).unwrap_err();
        assert!(refused.contains(state) && refused.contains(words), "{query}: {refused}");
    }
}

/// A source that is away, or slow, costs a miss; when it is back, rows come again.
#[test]
fn a_source_that_does_not_answer_is_a_miss() {
    let mut database = shop(&[]);
    let daemon = cache(&database, &TABLE.replace("miss_ttl = '1 h'", "fetch_timeout = '500 ms'"));
    let mut client = daemon.daemon.connect();
    // The first answer of all may take longer than half a second on a machine that does much else.
    until("the source answers in time", || text(&mut client, "product:1").as_deref() == Some("product 1"));
    let mut holder = database.client();
    let lock = "LOCK TABLES shop.product WRITE; SELECT SLEEP(600)";
    let mut holder = holder.args(["-e", lock]).spawn().unwrap();
    let locked = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'";
    until("the table is locked", || database.ask(locked) == "1");
    let began = std::time::Instant::now();
    assert_eq!(text(&mut client, "product:2"), None);
    assert!(began.elapsed() < Duration::from_mins(1));
    holder.kill().unwrap();
    holder.wait().unwrap();
    database.stop();
    until("the source is lost", || figure(&daemon, "CASE state WHEN 'lost' THEN 1 ELSE 0 END") == 1);
    assert_eq!(text(&mut client, "product:3"), None);
    database.start_again();
    wait(&daemon, "streaming");
    until("rows come again", || text(&mut client, "product:2").as_deref() == Some("product 2"));
}
