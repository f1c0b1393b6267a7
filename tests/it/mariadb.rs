//! The database behind the cache, when it is a MariaDB: a real one changes, and rows here go.

mod read_through;

use std::process::Command;
use std::time::Duration;

use crate::client::Client;
use crate::daemon::run;
use crate::drivers::mariadb::MariaDb;
use crate::drivers::place::SqlDaemon;
use crate::sources::{asked, fill, psql, stored, until, until_stored, wait};

/// A MariaDB with a shop in it.
fn shop(settings: &[&str]) -> MariaDb {
    let database = MariaDb::start(settings);
    database.ask(
        "CREATE USER cache IDENTIFIED BY 'hidden';
         GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO cache;
         CREATE DATABASE shop CHARACTER SET utf8mb4;
         GRANT SELECT ON shop.* TO cache;
         USE shop;
         CREATE TABLE product (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(10,2), description LONGTEXT);
         CREATE TABLE review (id INT PRIMARY KEY, product_id INT, body TEXT);
         INSERT INTO product SELECT seq, CONCAT('product ', seq), seq, NULL FROM seq_1_to_10",
    );
    database
}

fn server(database: &MariaDb) -> String {
    format!(
        "CREATE SERVER shop FOREIGN DATA WRAPPER mariadb
             OPTIONS (host '127.0.0.1', port '{}', dbname 'shop', max_lag '2 s');
         CREATE USER MAPPING FOR PUBLIC SERVER shop OPTIONS (user 'cache', password 'hidden')",
        database.port
    )
}

const TABLE: &str = "CREATE TABLE page (id INT PRIMARY KEY, body TEXT)
     WITH (prefix = 'page:', value = 'body', source = 'shop', depends = 'product(id), review(product_id => id)')";

/// A materialized view whose query MariaDB runs: its columns, what refreshes it, and what keeps its rows.
#[test]
fn a_view_has_the_rows_of_the_sources_query() {
    let mut database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(&database));
    change(
        &database,
        "CREATE TABLE kinds (a TINYINT, b SMALLINT UNSIGNED, c INT, d INT UNSIGNED, e BIGINT UNSIGNED, f FLOAT, g DOUBLE,
             h DECIMAL(10,2), i DATE, j TIME, k DATETIME(3), l TIMESTAMP, m YEAR, n CHAR(3), o TEXT, p VARBINARY(4),
             q ENUM('x', 'y'), r BIT(3));
         INSERT INTO kinds VALUES (-1, 65535, 3, 4294967295, 18446744073709551615, 1.5, 2.5, 10.50, '2026-11-27', '-12:30:00',
             '2026-11-27 01:02:03.5', FROM_UNIXTIME(0.0 + 86400), 2026, 'abc', NULL, X'00FF', 'y', 5)",
    );
    let columns = "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q";
    psql(
        &daemon.place,
        &format!("CREATE MATERIALIZED VIEW kinds WITH (source = 'shop') AS SELECT {columns} FROM kinds"),
    );
    let values = "-1|65535|3|4294967295|18446744073709551615|1.5|2.5|10.50|2026-11-27|-12:30:00|2026-11-27 01:02:03.5\
                  |1970-01-02 00:00:00+00|2026|abc||\\x00ff|y";
    assert_eq!(psql(&daemon.place, "SET timezone = 'UTC'; SELECT * FROM kinds"), values);
    let types = psql(
        &daemon.place,
        "SELECT string_agg(format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
         FROM pg_attribute WHERE attrelid = 'kinds'::regclass AND attnum > 0",
    );
    let expected = "smallint, integer, integer, bigint, numeric, real, double precision, numeric, date, interval, \
                    timestamp without time zone, timestamp with time zone, smallint, text, text, bytea, text";
    assert_eq!(types, expected);
    for (query, parts) in [
        ("SELECT r FROM kinds", ["0A000", "CAST(... AS CHAR)"]),
        ("SELECT * FROM nothing", ["42P01", "query at server \"shop\""]),
        ("SELECT a FROM kinds WHERE a = ?", ["0A000", "bound parameters"]),
        ("SELECT * FRM kinds", ["42601", "error in your SQL syntax"]),
    ] {
        let error =
            asked(&daemon.place, &format!("CREATE MATERIALIZED VIEW v WITH (source = 'shop') AS {query}"));
        let error = error.expect_err(query);
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    psql(
        &daemon.place,
        "CREATE MATERIALIZED VIEW board WITH (source = 'shop', refresh_on = 'product, shop.review', key = 'id', prefix = 'board:', value = 'name')
             AS SELECT p.id, p.name, COUNT(r.id) AS reviews FROM product p LEFT JOIN review r ON r.product_id = p.id GROUP BY p.id",
    );
    wait(&daemon, "streaming");
    let mut client = daemon.daemon.connect();
    assert_eq!(client.get("board:3").as_deref(), Some(&b"product 3"[..]));
    let board = |sql: &str| psql(&daemon.place, &format!("SELECT {sql} FROM board"));
    change(
        &database,
        "UPDATE product SET name = 'new' WHERE id = 3; INSERT INTO review VALUES (1, 4, 'good')",
    );
    until("the changes are here", || {
        board("string_agg(name, ',' ORDER BY id) FILTER (WHERE id = 3 OR reviews = 1)") == "new,product 4"
    });
    assert_eq!(client.get("board:3").as_deref(), Some(&b"new"[..]));
    change(&database, "TRUNCATE review");
    until("the reviews are gone", || board("sum(reviews)") == "0");
    // A query that takes too long ends there, too.
    psql(
        &daemon.place,
        "CREATE MATERIALIZED VIEW slow WITH (source = 'shop', refresh_timeout = '1 s') AS SELECT SLEEP(600) AS s, 'x' AS t WITH NO DATA",
    );
    let error = asked(&daemon.place, "REFRESH MATERIALIZED VIEW slow").expect_err("it sleeps");
    assert!(error.contains("57014") && error.contains("raise refresh_timeout"), "{error}");
    psql(&daemon.place, "ALTER MATERIALIZED VIEW slow SET (refresh_timeout = '10 min')");
    let error = asked(&daemon.place, "SET statement_timeout = '500 ms'; REFRESH MATERIALIZED VIEW slow")
        .expect_err("it sleeps");
    assert!(error.contains("57014") && error.contains("statement timeout"), "{error}");
    let asleep =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'cache' AND INFO LIKE '%SLEEP%'";
    until("nobody sleeps", || database.ask(asleep) == "0");
    // The rows stay while the source is away, and other columns are refused.
    database.stop();
    let failing = "SELECT stale AND last_error LIKE 'cannot connect to%' FROM sqlcached_views WHERE view_name = 'board'";
    until("the refresh fails", || psql(&daemon.place, failing) == "t");
    assert_eq!(client.get("board:3").as_deref(), Some(&b"new"[..]));
    database.start_again();
    change(&database, "UPDATE product SET name = 'newer' WHERE id = 3");
    until("the change is here", || client.get("board:3").as_deref() == Some(b"newer"));
    change(&database, "ALTER TABLE product MODIFY name VARBINARY(20)");
    let error = asked(&daemon.place, "REFRESH MATERIALIZED VIEW board").expect_err("other columns");
    assert!(error.contains("42804") && error.contains("name bytea"), "{error}");
    assert_eq!(client.get("board:3").as_deref(), Some(&b"newer"[..]));
}

/// A daemon in front of it.
fn cache(database: &MariaDb) -> SqlDaemon {
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(database));
    psql(&daemon.place, TABLE);
    wait(&daemon, "streaming");
    daemon
}

/// Changes the shop.
fn change(database: &MariaDb, sql: &str) {
    database.ask(&format!("USE shop; {sql}"));
}

/// Where the log is.
pub(crate) const PLACE: &str = "SELECT CONCAT(MAX(IF(VARIABLE_NAME LIKE '%FILE', VARIABLE_VALUE, '')), ':',
        MAX(IF(VARIABLE_NAME LIKE '%POSITION', VARIABLE_VALUE, '')))
    FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME LIKE 'BINLOG_SNAPSHOT_%'";

/// Waits until all is applied that the source has.
fn catch_up(database: &MariaDb, daemon: &SqlDaemon) {
    let waited = format!("SELECT wait_for_source('shop', '{}', '100 ms')", database.ask(PLACE));
    until("all is applied", || psql(&daemon.place, &waited) == "t");
}

fn gone(daemon: &SqlDaemon, client: &mut Client, all: &[u32]) {
    let expected: Vec<u32> = (1..=10).filter(|id| !all.contains(id)).collect();
    until_stored(daemon, client, &expected);
}

/// What anybody changes at the source, memcached's clients do not find here; and nothing else is missing.
#[test]
fn a_change_of_the_source_invalidates_the_rows_made_of_it() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let mut client = daemon.daemon.connect();
    fill(&daemon, &mut client);
    change(&database, "UPDATE product SET price = 7 WHERE id = 3");
    gone(&daemon, &mut client, &[3]);
    // Rows of another table, which come, move and go.
    change(&database, "INSERT INTO review VALUES (1, 5, 'good')");
    gone(&daemon, &mut client, &[3, 5]);
    change(&database, "UPDATE review SET product_id = 6");
    gone(&daemon, &mut client, &[3, 5, 6]);
    fill(&daemon, &mut client);
    change(&database, "DELETE FROM review");
    gone(&daemon, &mut client, &[6]);
    // A key that moves, a transaction that is rolled back, a NULL, a transaction of several rows with a savepoint.
    change(&database, "UPDATE product SET id = 20 WHERE id = 1");
    gone(&daemon, &mut client, &[1, 6]);
    change(&database, "BEGIN; UPDATE product SET price = 0 WHERE id = 2; ROLLBACK");
    change(&database, "INSERT INTO review VALUES (2, NULL, 'nobody')");
    change(
        &database,
        "BEGIN; UPDATE product SET price = 0 WHERE id = 3; SAVEPOINT s; DELETE FROM product WHERE id = 4; COMMIT",
    );
    gone(&daemon, &mut client, &[1, 3, 4, 6]);
    change(&database, "TRUNCATE review");
    until_stored(&daemon, &mut client, &[]);
    let facts = psql(
        &daemon.place,
        "SELECT state, events > 5, transactions > 5, last_error IS NULL, applied_lsn ~ '^bin.000[0-9]+:[0-9]+$'
         FROM sqlcached_sources",
    );
    assert_eq!(facts, "streaming|t|t|t|t");
    until("the lag is known", || psql(&daemon.place, "SELECT lag_ms < 30000 FROM sqlcached_sources") == "t");
    psql(&daemon.place, "ALTER TABLE page RESET (source, depends); DROP SERVER shop CASCADE");
    let streams = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump'";
    until("the stream is gone", || {
        // A source sees that nobody listens when it has something to say.
        change(&database, "UPDATE product SET price = price + 1");
        database.ask(streams) == "0"
    });
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM sqlcached_sources"), "0");
}

/// Who wrote at the source waits for it, and does not find the old row.
#[test]
fn who_wrote_at_the_source_waits_until_it_is_here() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let mut client = daemon.daemon.connect();
    for round in 1..=20 {
        fill(&daemon, &mut client);
        let place =
            database.ask(&format!("USE shop; UPDATE product SET price = {round} WHERE id = 4; {PLACE}"));
        assert!(place.starts_with("bin."), "{place}");
        let waited = psql(&daemon.place, &format!("SELECT wait_for_source('shop', '{place}', '30 s')"));
        assert_eq!(waited, "t");
        assert_eq!(client.get("page:4"), None, "round {round}");
    }
    assert_eq!(psql(&daemon.place, "SELECT wait_for_source('shop', 'bin.999999:4', '20 ms')"), "f");
    assert!(asked(&daemon.place, "SELECT wait_for_source('shop', '0-1-7')").unwrap_err().contains("22P02"));
}

/// The table of the race. A replica that never confirms: the change is in the stream, and the source still answers with
/// the old row. Whoever stores that loses it when the source shows the new one, though no other event comes.
#[test]
fn a_fill_of_what_the_source_still_shows_does_not_stay() {
    let database = shop(&[
        "--rpl-semi-sync-master-enabled=ON",
        "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
        "--rpl-semi-sync-master-timeout=1",
    ]);
    let daemon = cache(&database);
    let mut client = daemon.daemon.connect();
    database.ask("SET GLOBAL rpl_semi_sync_master_timeout = 600000");
    // Commits do not wait any more once one has waited for too long; they do again when this is switched on again.
    database
        .ask("SET GLOBAL rpl_semi_sync_master_enabled = OFF; SET GLOBAL rpl_semi_sync_master_enabled = ON");
    let events = || psql(&daemon.place, "SELECT events FROM sqlcached_sources");
    let before: u64 = events().parse().unwrap();
    let mut update = database.client();
    let mut update =
        update.args(["-e", "UPDATE shop.product SET name = 'new' WHERE id = 1"]).spawn().unwrap();
    until("the change was streamed", || events().parse::<u64>().unwrap() > before);
    let old = database.ask("SELECT name FROM shop.product WHERE id = 1");
    assert_eq!(old, "product 1", "the source shows the change only later");
    // A fill by a lease that is taken behind the event, of what the source answers.
    let lease = client.ask("mg page:1 c N30 v");
    let cas = lease.split(' ').find_map(|flag| flag.strip_prefix('c')).unwrap().to_owned();
    client.line();
    client.send(format!("ms page:1 {} C{cas}\r\n{old}\r\n", old.len()).as_bytes());
    assert_eq!(client.line(), "HD");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(
        client.get("page:1").as_deref(),
        Some(old.as_bytes()),
        "it is settled only when the source shows it"
    );
    database.ask("SET GLOBAL rpl_semi_sync_master_enabled = OFF");
    update.wait().unwrap();
    assert_eq!(database.ask("SELECT name FROM shop.product WHERE id = 1"), "new");
    until("the old page is gone", || client.get("page:1").is_none());
}

/// Each fault of a source is named when a table is made, with what to do about it.
#[test]
fn what_a_source_lacks_is_said_when_a_table_names_it() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(&database));
    let on = |depends: &str| {
        format!("CREATE TABLE t (id INT PRIMARY KEY, b TEXT) WITH (source = 'shop', depends = '{depends}')")
    };
    let refused = |depends: &str, state: &str, hint: &str, why: &str| {
        let said =
            asked(&daemon.place, &on(depends)).err().unwrap_or_else(|| panic!("{why}: the table was made"));
        assert!(said.contains(state) && said.contains(hint), "{why}: {said}");
    };
    change(
        &database,
        "CREATE VIEW cheap AS SELECT * FROM product WHERE price < 5;
         CREATE TABLE place (id INT PRIMARY KEY, at POINT, name VARCHAR(9) CHARACTER SET sjis);
         CREATE TABLE line (id INT PRIMARY KEY, product_id INT,
             CONSTRAINT of_product FOREIGN KEY (product_id) REFERENCES product (id) ON DELETE CASCADE);
         CREATE TABLE firm (id INT PRIMARY KEY, product_id INT, FOREIGN KEY (product_id) REFERENCES product (id))",
    );
    for (depends, state, hint) in [
        ("nothing(id)", "42P01", "shop.product(id)"),
        ("elsewhere.product(id)", "42P01", "GRANT SELECT"),
        ("product(nothing => id)", "42703", "no column nothing"),
        ("cheap(id)", "0A000", "tables that it reads"),
        ("place(at => id)", "0A000", "point"),
        ("place(name => id)", "0A000", "utf8mb4"),
        ("line(product_id => id)", "55000", "ON DELETE RESTRICT"),
    ] {
        refused(depends, state, hint, depends);
    }
    for (change, back, state, hint) in [
        (
            "SET GLOBAL binlog_format = MIXED",
            "SET GLOBAL binlog_format = ROW",
            "55000",
            "binlog_format = ROW",
        ),
        (
            "SET GLOBAL binlog_row_image = MINIMAL",
            "SET GLOBAL binlog_row_image = FULL",
            "55000",
            "binlog_row_image = FULL",
        ),
        (
            "REVOKE REPLICATION SLAVE ON *.* FROM cache",
            "GRANT REPLICATION SLAVE ON *.* TO cache",
            "42501",
            "GRANT REPLICATION SLAVE",
        ),
        (
            "REVOKE BINLOG MONITOR ON *.* FROM cache",
            "GRANT BINLOG MONITOR ON *.* TO cache",
            "42501",
            "GRANT BINLOG MONITOR",
        ),
        ("REVOKE SELECT ON shop.* FROM cache", "GRANT SELECT ON shop.* TO cache", "42501", "GRANT SELECT"),
        ("RENAME USER cache TO cash", "RENAME USER cash TO cache", "28P01", "SET password"),
    ] {
        database.ask(change);
        refused("product(id)", state, hint, change);
        database.ask(back);
    }
    for (change, back, state, hint) in [
        (
            "ALTER SERVER shop OPTIONS (DROP dbname)",
            "ALTER SERVER shop OPTIONS (ADD dbname 'shop')",
            "HV00J",
            "dbname",
        ),
        (
            "ALTER SERVER shop OPTIONS (SET dbname 'x')",
            "ALTER SERVER shop OPTIONS (SET dbname 'shop')",
            "42501",
            "GRANT",
        ),
        (
            "ALTER SERVER shop OPTIONS (ADD sslmode 'require')",
            "ALTER SERVER shop OPTIONS (DROP sslmode)",
            "08001",
            "TLS",
        ),
        (
            "ALTER USER MAPPING FOR PUBLIC SERVER shop OPTIONS (SET password 'wrong')",
            "ALTER USER MAPPING FOR PUBLIC SERVER shop OPTIONS (SET password 'hidden')",
            "28P01",
            "SET password",
        ),
        ("ALTER SERVER shop OPTIONS (SET port '1')", "", "08001", "host and port"),
    ] {
        psql(&daemon.place, change);
        refused("product(id)", state, hint, change);
        psql(&daemon.place, back);
    }
    psql(&daemon.place, &format!("ALTER SERVER shop OPTIONS (SET port '{}')", database.port));
    psql(&daemon.place, &on("product(id), shop.review(product_id => id), firm(product_id => id)"));
    let copied = "CREATE TABLE c (id INT PRIMARY KEY, name TEXT)
         WITH (source = 'shop', depends = 'product(id)', mode = 'update')";
    assert!(asked(&daemon.place, copied).unwrap_err().contains("0A000"));
    // Over the Unix socket.
    psql(&daemon.place, &format!("ALTER SERVER shop OPTIONS (SET host '{}')", database.socket()));
    wait(&daemon, "streaming");
    let silent = MariaDb::start(&["--skip-log-bin"]);
    silent.ask("CREATE USER cache IDENTIFIED BY 'hidden'");
    let said = refused_by(&daemon, "mariadb", silent.port);
    assert!(said.contains("55000") && said.contains("set log_bin"), "{said}");
    // Another protocol on the port.
    let said = refused_by(&daemon, "mariadb", daemon.place.memcached.unwrap());
    assert!(said.contains("08006"), "{said}");
}

/// What a table says of another server.
fn refused_by(daemon: &SqlDaemon, wrapper: &str, port: u16) -> String {
    psql(
        &daemon.place,
        &format!(
            "DROP SERVER IF EXISTS other CASCADE;
             CREATE SERVER other FOREIGN DATA WRAPPER {wrapper} OPTIONS (host '127.0.0.1', port '{port}', connect_timeout '1');
             CREATE USER MAPPING FOR PUBLIC SERVER other OPTIONS (user 'cache', password 'hidden')"
        ),
    );
    asked(
        &daemon.place,
        "CREATE TABLE u (id INT PRIMARY KEY) WITH (source = 'other', depends = 'shop.product(id)')",
    )
    .unwrap_err()
}

/// A column of each type whose values can be told: the row here whose text is the value goes, and its neighbour stays.
#[test]
fn keys_of_every_type_are_told() {
    let columns = [
        ("tiny", "TINYINT", "-128", "-128"),
        ("tinyu", "TINYINT UNSIGNED", "255", "255"),
        ("small", "SMALLINT", "-32768", "-32768"),
        ("medium", "MEDIUMINT", "-8388608", "-8388608"),
        ("mediumu", "MEDIUMINT UNSIGNED", "16777215", "16777215"),
        ("large", "BIGINT", "-9223372036854775808", "-9223372036854775808"),
        ("largeu", "BIGINT UNSIGNED", "18446744073709551615", "18446744073709551615"),
        ("boolean", "BOOL", "true", "1"),
        ("price", "DECIMAL(20,5)", "-1234567890.12345", "-1234567890.12345"),
        ("small_price", "DECIMAL(4,2)", "0.05", "0.05"),
        ("whole", "DECIMAL(9,0)", "7", "7"),
        ("real8", "DOUBLE", "0.1", "0.1"),
        ("real4", "FLOAT", "1.5", "1.5"),
        ("fixed", "CHAR(40)", "'k\u{fc}che '", "k\u{fc}che"),
        ("wide", "CHAR(255)", "'wide'", "wide"),
        ("varied", "VARCHAR(20)", "'\u{65e5}\u{672c}'", "\u{65e5}\u{672c}"),
        ("long_one", "VARCHAR(3000)", "REPEAT('x', 300)", ""),
        (
            "western",
            "VARCHAR(20) CHARACTER SET latin1",
            "'10 \u{20ac} f\u{fc}r \u{d6}l'",
            "10 \u{20ac} f\u{fc}r \u{d6}l",
        ),
        ("body", "TEXT", "'body'", "body"),
        ("bytes", "VARBINARY(20)", "X'00ff'", "\\x00ff"),
        ("bytes4", "BINARY(4)", "X'ff00'", "\\xff000000"),
        ("day", "DATE", "'2024-02-29'", "2024-02-29"),
        ("moment", "DATETIME", "'1999-12-31 23:59:59'", "1999-12-31 23:59:59"),
        ("moment6", "DATETIME(6)", "'2024-02-29 01:02:03.000450'", "2024-02-29 01:02:03.00045"),
        ("moment3", "DATETIME(3)", "'2024-02-29 01:02:03.400'", "2024-02-29 01:02:03.4"),
        ("stamp", "TIMESTAMP(2) NULL", "'2024-02-29 01:02:03.25'", "2024-02-29 01:02:03.25+00"),
        ("clock", "TIME", "'-838:59:58'", "-838:59:58"),
        ("clock4", "TIME(4)", "'-00:00:00.2500'", "-00:00:00.25"),
        ("clock2", "TIME(2)", "'23:59:59.99'", "23:59:59.99"),
        ("year_of", "YEAR", "2024", "2024"),
        ("kind", "ENUM('a','it''s','\u{fc}')", "'it''s'", "it's"),
        ("tags", "SET('a','b','c')", "'a,c'", "a,c"),
        (
            "universal",
            "UUID",
            "'11223344-5566-7788-99aa-bbccddeeff00'",
            "11223344-5566-7788-99aa-bbccddeeff00",
        ),
    ];
    let database = shop(&["--default-time-zone=+00:00", "--binlog-checksum=NONE"]);
    let list = |part: &dyn Fn(usize) -> String| (0..columns.len()).map(part).collect::<Vec<_>>().join(", ");
    change(
        &database,
        &format!(
            "CREATE TABLE every (id INT PRIMARY KEY, {}, computed INT AS (id + 1) VIRTUAL, touched INT);
             INSERT INTO every (id, {}) VALUES (1, {})",
            list(&|at| format!("{} {}", columns[at].0, columns[at].1)),
            list(&|at| columns[at].0.to_owned()),
            list(&|at| columns[at].2.to_owned()),
        ),
    );
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(&database));
    let long = "x".repeat(300);
    for (name, ..) in columns {
        psql(
            &daemon.place,
            &format!(
                "CREATE TABLE by_{name} (k TEXT PRIMARY KEY, b TEXT) WITH (source = 'shop', depends = 'every({name} => k)')"
            ),
        );
    }
    // Another connection follows all of them: each is emptied when it is begun, and when it streams.
    psql(&daemon.place, "ALTER SERVER shop OPTIONS (SET max_lag '10 s')");
    let all = format!(
        "SELECT state = 'streaming' AND emptied >= {} AND unsettled = 0 FROM sqlcached_sources",
        2 * columns.len()
    );
    until("all tables are followed", || psql(&daemon.place, &all) == "t");
    let expected = |text: &str| if text.is_empty() { long.clone() } else { text.replace('\'', "''") };
    for (name, _, _, text) in columns {
        psql(
            &daemon.place,
            &format!("INSERT INTO by_{name} VALUES ('{}', 'x'), ('other', 'x')", expected(text)),
        );
    }
    change(&database, "UPDATE every SET touched = 1");
    until("it was applied", || {
        psql(&daemon.place, "SELECT unsettled = 0 AND transactions > 0 FROM sqlcached_sources") == "t"
    });
    for (name, _, _, text) in columns {
        let left = psql(&daemon.place, &format!("SELECT string_agg(k, ' ') FROM by_{name}"));
        assert_eq!(left, "other", "{name}: {text} is to be gone, and nothing else");
    }
}

/// Tables that are redefined, statements instead of rows, prepared transactions, compressed events, other engines: what
/// cannot be told empties the table, and what can be does not.
#[test]
fn definitions_and_other_events_of_the_source() {
    let database = shop(&["--max-binlog-size=1M"]);
    let daemon = cache(&database);
    let mut client = daemon.daemon.connect();
    fill(&daemon, &mut client);
    change(&database, "ALTER TABLE review ADD COLUMN stars INT FIRST, ADD COLUMN more INT");
    until_stored(&daemon, &mut client, &[]);
    fill(&daemon, &mut client);
    change(&database, "INSERT INTO review (id, product_id) VALUES (1, 5)");
    gone(&daemon, &mut client, &[5]);
    // The column that says which row it is has another name: nothing is known any more.
    change(&database, "ALTER TABLE product RENAME COLUMN id TO number");
    until("the source says what is missing", || {
        psql(&daemon.place, "SELECT last_error FROM sqlcached_sources").contains("no column id")
    });
    change(&database, "ALTER TABLE product RENAME COLUMN number TO id");
    catch_up(&database, &daemon);
    fill(&daemon, &mut client);
    // Another table of no interest, and another file of the log.
    change(
        &database,
        "CREATE TABLE other (id INT); INSERT INTO other VALUES (1); FLUSH LOGS; DROP TABLE other",
    );
    change(&database, "UPDATE product SET price = 80 WHERE id = 8");
    gone(&daemon, &mut client, &[8]);
    // Compressed rows, and a transaction that waits for a second word.
    change(
        &database,
        "SET GLOBAL log_bin_compress = ON;
         UPDATE product SET description = REPEAT('long ', 1000000) WHERE id = 9;
         XA START 'g', 'b'; UPDATE product SET price = 20 WHERE id = 2; XA END 'g', 'b'; XA PREPARE 'g', 'b'",
    );
    gone(&daemon, &mut client, &[8, 9]);
    database.ask("SET GLOBAL log_bin_compress = OFF; XA COMMIT 'g', 'b'");
    gone(&daemon, &mut client, &[2, 8, 9]);
    // An engine without transactions.
    change(&database, "ALTER TABLE review ENGINE = MyISAM");
    until_stored(&daemon, &mut client, &[]);
    fill(&daemon, &mut client);
    change(&database, "INSERT INTO review (id, product_id) VALUES (2, 7), (3, 8)");
    gone(&daemon, &mut client, &[7, 8]);
    // A session that writes statements.
    change(&database, "SET binlog_format = STATEMENT; UPDATE product SET price = 10 WHERE id = 1");
    until_stored(&daemon, &mut client, &[]);
    fill(&daemon, &mut client);
    // More rows than are looked for one by one.
    let before = daemon.daemon.resident_bytes();
    change(&database, "INSERT INTO review (id, product_id) SELECT seq, seq FROM seq_10_to_300000");
    until_stored(&daemon, &mut client, &[]);
    let grown = daemon.daemon.resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for a transaction of 300,000 rows");
    fill(&daemon, &mut client);
    change(&database, "DROP TABLE review; CREATE TABLE review (id INT PRIMARY KEY, product_id BIGINT)");
    until_stored(&daemon, &mut client, &[]);
    catch_up(&database, &daemon);
    fill(&daemon, &mut client);
    change(&database, "INSERT INTO review VALUES (2, 7)");
    gone(&daemon, &mut client, &[7]);
}

/// The source goes, its connection is cut, its log begins again, this program is killed: nothing older than the new
/// stream is believed.
#[test]
fn whoever_dies_nothing_old_is_believed() {
    let mut database = shop(&[]);
    let mut daemon = cache(&database);
    let mut client = daemon.daemon.connect();
    fill(&daemon, &mut client);
    // The check has had one, too, which ends by itself.
    let streams =
        "SELECT CONCAT('KILL ', ID) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump'";
    database.ask(streams).lines().for_each(|kill| {
        let _ended = run(database.client().args(["-e", kill]));
    });
    until_stored(&daemon, &mut client, &[]);
    wait(&daemon, "streaming");
    fill(&daemon, &mut client);
    database.stop();
    wait(&daemon, "lost");
    // While it is away, what is stored does not stay longer than max_lag, twice.
    for id in 1..=10 {
        assert_eq!(client.set(&format!("page:{id}"), b"old"), "STORED");
    }
    until_stored(&daemon, &mut client, &[]);
    assert!(psql(&daemon.place, "SELECT last_error FROM sqlcached_sources").contains("08001"));
    database.start_again();
    wait(&daemon, "streaming");
    fill(&daemon, &mut client);
    change(&database, "UPDATE product SET price = 101 WHERE id = 1");
    gone(&daemon, &mut client, &[1]);
    // The log begins again from its first file.
    database.ask("RESET MASTER");
    change(&database, "UPDATE product SET price = 102 WHERE id = 1");
    until_stored(&daemon, &mut client, &[]);
    catch_up(&database, &daemon);
    fill(&daemon, &mut client);
    change(&database, "UPDATE product SET price = 103 WHERE id = 1");
    gone(&daemon, &mut client, &[1]);
    daemon.daemon.kill();
    change(&database, "UPDATE product SET price = 104 WHERE id = 2");
    daemon.daemon.restart();
    let mut client = daemon.daemon.connect();
    assert_eq!(stored(&mut client), [] as [u32; 0]);
    wait(&daemon, "streaming");
    fill(&daemon, &mut client);
    change(&database, "UPDATE product SET price = 105 WHERE id = 2");
    gone(&daemon, &mut client, &[2]);
}

/// TLS with the source's own certificate, checked or not.
#[test]
fn the_stream_may_be_encrypted() {
    let folder = crate::daemon::Folder::new();
    let (key, certificate) = (folder.0.join("key.pem"), folder.0.join("cert.pem"));
    let openssl = run(Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate));
    assert_eq!(openssl.0, Some(0), "{}", openssl.2);
    let database = shop(&[
        &format!("--ssl-key={}", key.display()),
        &format!("--ssl-cert={}", certificate.display()),
        "--ssl",
    ]);
    database.ask("ALTER USER cache REQUIRE SSL");
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(&database));
    assert!(asked(&daemon.place, TABLE).unwrap_err().contains("28P01"));
    psql(
        &daemon.place,
        &format!(
            "ALTER SERVER shop OPTIONS (SET host 'localhost', ADD sslmode 'verify-full', ADD sslrootcert '{}')",
            certificate.display()
        ),
    );
    psql(&daemon.place, TABLE);
    wait(&daemon, "streaming");
    // The certificate is not for this name.
    psql(&daemon.place, "ALTER SERVER shop OPTIONS (SET host '127.0.0.1')");
    wait(&daemon, "lost");
    psql(&daemon.place, "ALTER SERVER shop OPTIONS (SET sslmode 'verify-ca')");
    wait(&daemon, "streaming");
    let mut client = daemon.daemon.connect();
    fill(&daemon, &mut client);
    change(&database, "UPDATE product SET price = 106 WHERE id = 2");
    gone(&daemon, &mut client, &[2]);
}
