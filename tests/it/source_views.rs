//! Materialized views whose query a real PostgreSQL runs.

use std::time::Duration;

use crate::daemon::free_port;
use crate::drivers::place::{Place, SqlDaemon};
use crate::drivers::postgresql::PostgreSql;
use crate::http::{is_content, page};
use crate::skipped;
use crate::sources::{asked, psql, server, shop, until, wait};

/// What of the shop the board shows, in the words of PostgreSQL.
const QUERY: &str = "SELECT p.id, p.name, p.price, count(r.id) AS reviews, max(r.body ->> 'text') AS last
     FROM product p LEFT JOIN (SELECT id, product_id, jsonb_build_object('text', body) AS body FROM review) r
     ON r.product_id = p.id GROUP BY p.id ORDER BY p.id";

fn board(options: &str) -> String {
    format!(
        "CREATE MATERIALIZED VIEW board
             WITH (source = 'pg', key = 'id', prefix = 'board:', value = 'name'{options}) AS {QUERY}"
    )
}

/// A daemon that knows the source, whose user may read.
fn cache(database: &PostgreSql) -> SqlDaemon {
    cache_with(database, &[])
}

fn cache_with(database: &PostgreSql, flags: &[&str]) -> SqlDaemon {
    psql(&database.place, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO cache");
    let daemon = SqlDaemon::start(flags);
    psql(&daemon.place, &server(database));
    daemon
}

fn figures(daemon: &SqlDaemon, columns: &str) -> String {
    psql(&daemon.place, &format!("SELECT {columns} FROM sqlcached_views WHERE view_name = 'board'"))
}

fn name_of(daemon: &SqlDaemon, id: u32) -> String {
    psql(&daemon.place, &format!("SELECT name FROM board WHERE id = {id}"))
}

/// What a statement that fails says: its state and message, with detail and hint behind them.
fn refused(place: &Place, sql: &str) -> String {
    asked(place, sql).expect_err(sql)
}

/// The query runs at the source, its rows are a table here: with types, an index, memcached's keys.
#[test]
fn a_view_has_the_rows_of_the_sources_query() {
    let database = shop(&[]);
    let daemon = cache(&database);
    psql(&database.place, "INSERT INTO review VALUES (1, 3, 'good'), (2, 3, 'better')");
    psql(&daemon.place, &board(""));
    assert_eq!(psql(&daemon.place, "SELECT * FROM board WHERE id = 3"), "3|product 3|3|2|good");
    assert_eq!(psql(&daemon.place, "SELECT count(*), sum(price) FROM board"), "10|55");
    let types = psql(
        &daemon.place,
        "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
         FROM pg_attribute WHERE attrelid = 'board'::regclass AND attnum > 0",
    );
    assert_eq!(types, "id integer, name text, price numeric, reviews bigint, last text");
    let mut client = daemon.daemon.connect();
    assert_eq!(client.get("board:3").as_deref(), Some(&b"product 3"[..]));
    assert_eq!(client.get("board:99"), None);
    psql(&daemon.place, "CREATE INDEX board_price ON board (price)");
    psql(
        &database.place,
        "UPDATE product SET price = 100, name = 'new' WHERE id = 3; DELETE FROM product WHERE id = 4",
    );
    // Nothing refreshes it by itself.
    assert_eq!(client.get("board:3").as_deref(), Some(&b"product 3"[..]));
    psql(&daemon.place, "REFRESH MATERIALIZED VIEW board");
    assert_eq!(client.get("board:3").as_deref(), Some(&b"new"[..]));
    assert_eq!(client.get("board:4"), None);
    assert_eq!(psql(&daemon.place, "SELECT id FROM board WHERE price = 100"), "3");
    assert_eq!(
        figures(&daemon, "source, populated, stale, rows, refreshes, errors, last_changed"),
        "pg|t|f|9|2|0|2"
    );
    psql(&daemon.place, "REFRESH MATERIALIZED VIEW CONCURRENTLY board");
    assert_eq!(figures(&daemon, "last_changed"), "0");
    assert_eq!(
        client.store("set board:3 0 0", b"x"),
        "SERVER_ERROR cannot change materialized view \"board\""
    );
    // A server that a view asks stays.
    let error = refused(&daemon.place, "DROP SERVER pg");
    assert!(
        error.contains("2BP01") && error.contains("materialized view board depends on server pg"),
        "{error}"
    );
    assert!(error.contains("DROP MATERIALIZED VIEW board first"), "{error}");
    psql(&daemon.place, "DROP MATERIALIZED VIEW board; DROP SERVER pg CASCADE");
    assert_eq!(client.get("board:3"), None);
}

/// Every type that is known here comes as it is there; any other is named, with what to do.
#[test]
fn types_are_those_of_the_source() {
    let database = shop(&[]);
    let daemon = cache(&database);
    psql(
        &database.place,
        "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN short AS varchar(5);
         CREATE TABLE kinds (a smallint, b bigint, c real, d double precision, e numeric(10, 2), f boolean, g char(3),
             h varchar(9), i bytea, j date, k time, l timestamp, m timestamptz, n interval, o uuid, p json, q jsonb,
             r int[], s text[], t short, u inet, v mood, w name, x date[], y oid);
         INSERT INTO kinds VALUES (1, 2, 1.5, 2.5, 10.50, true, 'ab', 'cd', '\\x00ff', '2026-11-27', '01:02:03',
             '2026-11-27 01:02:03.5', '2026-11-27 01:02:03+00', '1 day 02:00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
             '{\"a\": 1}', '{\"b\": [2]}', '{1,2,NULL}', '{a,\"b c\"}', 'short', '10.0.0.1', 'glad', 'n',
             '{2026-11-27}', 7);
         GRANT SELECT ON kinds TO cache",
    );
    let columns = "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v::text AS v, w, x, y";
    psql(
        &daemon.place,
        &format!("CREATE MATERIALIZED VIEW kinds WITH (source = 'pg') AS SELECT {columns} FROM kinds"),
    );
    let both = |sql: &str| (psql(&daemon.place, sql), psql(&database.place, sql));
    let (here, there) = both("SET timezone = 'UTC'; SELECT * FROM kinds");
    // The source tells no length of `char(3)`, so its blanks, which mean nothing, are not shown.
    assert_eq!(here, there.replace("|ab |", "|ab|"));
    assert_eq!(psql(&daemon.place, "SELECT a FROM kinds WHERE g = 'ab' AND g = 'ab   '"), "1");
    let types = |table: &str| {
        format!(
            "SELECT string_agg(attname || ' ' || atttypid::int, ', ' ORDER BY attnum)
             FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 AND attname NOT IN ('t', 'v')"
        )
    };
    let (here, there) = both(&types("kinds"));
    assert_eq!(here, there);
    let error =
        refused(&daemon.place, "CREATE MATERIALIZED VIEW m WITH (source = 'pg') AS SELECT v FROM kinds");
    assert!(
        error.contains("0A000") && error.contains("column v of the query has a type that is not known"),
        "{error}"
    );
    assert!(error.contains("convert it in the query: v::text AS v"), "{error}");
    let named =
        "CREATE MATERIALIZED VIEW m (x, y) WITH (source = 'pg', key = 'x') AS SELECT a, b, a FROM kinds";
    psql(&daemon.place, named);
    assert_eq!(psql(&daemon.place, "SELECT x, y, \"a:1\" FROM m"), "1|2|1");
}

/// By the clock, from a user who has no right to replicate and with no publication.
#[test]
fn a_view_is_refreshed_by_time_without_a_stream() {
    let database = shop(&["wal_level=replica"]);
    psql(&database.place, "ALTER ROLE cache NOREPLICATION; DROP PUBLICATION cache");
    let daemon = cache(&database);
    psql(&daemon.place, &board(", refresh = '1 s'"));
    psql(&database.place, "UPDATE product SET name = 'new' WHERE id = 1");
    until("the view is refreshed", || name_of(&daemon, 1) == "new");
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM sqlcached_sources"), "0");
    // One connection serves all of its refreshes, and only reads.
    let refreshes = || figures(&daemon, "refreshes").parse::<u64>().unwrap();
    let before = refreshes();
    until("it is refreshed again", || refreshes() > before + 1);
    let backends = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'cache'";
    until("one connection is left", || psql(&database.place, backends) == "1");
    let error = refused(
        &daemon.place,
        "CREATE MATERIALIZED VIEW writes WITH (source = 'pg') AS
             WITH gone AS (DELETE FROM product RETURNING id) SELECT * FROM gone",
    );
    assert!(error.contains("25006") && error.contains("read-only transaction"), "{error}");
    assert_eq!(psql(&database.place, "SELECT count(*) FROM product"), "10");
    // Nobody refreshes it any more: the connection ends when the server is another one.
    psql(&daemon.place, "DROP MATERIALIZED VIEW board; DROP SERVER pg CASCADE");
    until("no connection is left", || psql(&database.place, backends) == "0");
}

/// A change that psql makes at the source is a refresh here, however many rows it has; other tables' are none.
#[test]
fn a_view_is_refreshed_when_tables_of_the_source_change() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let source = &database.place;
    psql(source, "CREATE TABLE other (id INT PRIMARY KEY); ALTER PUBLICATION cache ADD TABLE other");
    psql(&daemon.place, &board(", refresh_on = 'product, public.review'"));
    wait(&daemon, "streaming");
    psql(source, "UPDATE product SET name = 'new' WHERE id = 1");
    until("the change is here", || name_of(&daemon, 1) == "new");
    psql(source, "INSERT INTO review VALUES (1, 5, 'good')");
    until("the review is here", || psql(&daemon.place, "SELECT last FROM board WHERE id = 5") == "good");
    psql(source, "TRUNCATE review");
    until("all reviews are gone", || psql(&daemon.place, "SELECT sum(reviews) FROM board") == "0");
    // All is seen: nothing refreshes it further.
    until("it is at rest", || figures(&daemon, "stale") == "f");
    let settled = "SELECT count(*) FROM sqlcached_sources WHERE unsettled = 0";
    until("all is settled", || psql(&daemon.place, settled) == "1" && figures(&daemon, "stale") == "f");
    std::thread::sleep(Duration::from_millis(500));
    let refreshes = || figures(&daemon, "refreshes").parse::<u64>().unwrap();
    let before = refreshes();
    psql(source, "INSERT INTO other SELECT generate_series(1, 100)");
    let lsn = psql(source, "SELECT pg_current_wal_lsn()");
    psql(&daemon.place, &format!("SELECT wait_for_source('pg', '{lsn}', '1 min')"));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(refreshes(), before, "another table's change is none of this view's");
    // Two hundred transactions are a few refreshes.
    let many: String = (0..200)
        .map(|n| format!("UPDATE product SET name = 'n{n}' WHERE id = 2"))
        .collect::<Vec<_>>()
        .join(";\n");
    let file = daemon.daemon.folder.write("many.sql", &many);
    let ran = source.program("psql").args(["-X", "-q", "-f"]).arg(file).status().unwrap();
    assert!(ran.success());
    until("the last of many changes is here", || name_of(&daemon, 2) == "n199");
    assert!(refreshes() < before + 100, "{} refreshes of 200 changes", refreshes() - before);
    // What it is refreshed on can change, and is checked.
    let error = refused(&daemon.place, "ALTER MATERIALIZED VIEW board SET (refresh_on = 'hidden')");
    assert!(
        error.contains("42P01") && error.contains("public.hidden does not exist on the source"),
        "{error}"
    );
    psql(source, "CREATE TABLE hidden (id INT PRIMARY KEY)");
    let error = refused(&daemon.place, "ALTER MATERIALIZED VIEW board SET (refresh_on = 'hidden')");
    assert!(
        error.contains("42704") && error.contains("ALTER PUBLICATION cache ADD TABLE public.hidden"),
        "{error}"
    );
    let error = refused(&daemon.place, "ALTER MATERIALIZED VIEW board SET (refresh_on = 'product(id)')");
    assert!(error.contains("22023") && error.contains("leave its columns out"), "{error}");
    psql(&daemon.place, "ALTER MATERIALIZED VIEW board RESET (refresh_on)");
    until("nobody follows the source", || {
        psql(&daemon.place, "SELECT count(*) FROM sqlcached_sources") == "0"
    });
}

/// The table of the race: the stream has the change before the source shows it. The refresh that it causes reads the
/// old row, and counts for nothing: another one follows when the source shows the new row.
#[test]
fn a_refresh_from_before_the_source_shows_a_change_is_not_the_last() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let source = &database.place;
    psql(&daemon.place, &board(", refresh_on = 'product'"));
    wait(&daemon, "streaming");
    psql(source, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    psql(source, "SELECT pg_reload_conf()");
    until("commits wait", || psql(source, "SHOW synchronous_standby_names") == "nobody");
    until("it is at rest", || figures(&daemon, "stale") == "f");
    let mut update = source.program("psql");
    let mut update =
        update.args(["-X", "-q", "-c", "UPDATE product SET name = 'new' WHERE id = 1"]).spawn().unwrap();
    until("the change was streamed", || psql(&daemon.place, "SELECT events FROM sqlcached_sources") == "1");
    psql(&daemon.place, "REFRESH MATERIALIZED VIEW board");
    assert_eq!(name_of(&daemon, 1), "product 1", "the source shows the change only later");
    // A view that is made now reads the old row, and was not there when the change was streamed.
    let late = board(", refresh_on = 'product'").replace("VIEW board", "VIEW late");
    psql(&daemon.place, &late.replace("prefix = 'board:', value", "prefix = 'late:', value"));
    let late = || psql(&daemon.place, "SELECT name FROM late WHERE id = 1");
    assert_eq!(late(), "product 1");
    psql(source, "ALTER SYSTEM RESET synchronous_standby_names");
    psql(source, "SELECT pg_reload_conf()");
    update.wait().unwrap();
    until("the change is here", || name_of(&daemon, 1) == "new");
    until("it is in the late view", || late() == "new");
}

/// A source that is gone, a query that fails, columns that are others now: the rows stay, and it is said why.
#[test]
fn an_error_keeps_the_rows() {
    let mut database = shop(&[]);
    let daemon = cache(&database);
    psql(&daemon.place, &board(", refresh = '1 s', refresh_on = 'product'"));
    wait(&daemon, "streaming");
    database.stop();
    until("the refresh fails", || figures(&daemon, "stale AND last_error LIKE 'cannot connect to%'") == "t");
    assert_eq!(psql(&daemon.place, "SELECT count(*), bool_and(_stale = 1) FROM board"), "10|t");
    let error = refused(&daemon.place, "REFRESH MATERIALIZED VIEW board");
    assert!(error.contains("08001") && error.contains("check host and port"), "{error}");
    let error =
        refused(&daemon.place, "CREATE MATERIALIZED VIEW new WITH (source = 'pg') AS SELECT 1 AS one");
    assert!(error.contains("08001") && error.contains("check host and port"), "{error}");
    database.start_again();
    psql(&database.place, "UPDATE product SET name = 'new' WHERE id = 1");
    until("the view is refreshed", || name_of(&daemon, 1) == "new");
    until("nothing is wrong", || figures(&daemon, "last_error IS NULL AND NOT stale") == "t");
    // A column of another type, and then as it was.
    psql(&database.place, "ALTER TABLE product ALTER price TYPE TEXT");
    let why = "query at server \"pg\": it gives (id integer, name text, price text, reviews bigint, last text) now%";
    until("the columns are others", || {
        figures(&daemon, &format!("stale AND last_error LIKE '{why}'")) == "t"
    });
    assert_eq!(psql(&daemon.place, "SELECT price FROM board WHERE id = 2"), "2");
    let error = refused(&daemon.place, "REFRESH MATERIALIZED VIEW board");
    assert!(error.contains("42804") && error.contains("drop the view and create it again"), "{error}");
    psql(&database.place, "ALTER TABLE product ALTER price TYPE NUMERIC USING price::numeric");
    until("nothing is wrong", || figures(&daemon, "last_error IS NULL AND NOT stale") == "t");
    // A column that is gone; a right that is taken.
    psql(&database.place, "ALTER TABLE product RENAME name TO title");
    until("the column is gone", || {
        figures(&daemon, "last_error LIKE '%column p.name does not exist'") == "t"
    });
    psql(&database.place, "ALTER TABLE product RENAME title TO name; REVOKE SELECT ON product FROM cache");
    until("it is not allowed", || {
        figures(&daemon, "last_error LIKE '%permission denied for table product'") == "t"
    });
    assert_eq!(name_of(&daemon, 1), "new");
}

/// A query that takes too long, gives too much, or is given up: the source is told, and the rows stay.
#[test]
fn a_query_is_bounded() {
    let database = shop(&[]);
    let daemon = cache(&database);
    psql(
        &database.place,
        "CREATE TABLE pace (seconds INT, rows INT); INSERT INTO pace VALUES (0, 1); GRANT SELECT ON pace TO cache",
    );
    psql(
        &daemon.place,
        "CREATE MATERIALIZED VIEW board WITH (source = 'pg', key = 'n', refresh_timeout = '1 s', max_memory = '1 MB') AS
             SELECT n, repeat('x', 1000) AS body FROM (SELECT generate_series(1, rows), pg_sleep(seconds) FROM pace) AS s (n)",
    );
    let set = |seconds: u32, rows: u32| {
        psql(&database.place, &format!("UPDATE pace SET seconds = {seconds}, rows = {rows}"));
    };
    let running = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'cache' AND state = 'active'";
    set(600, 1);
    let error = refused(&daemon.place, "REFRESH MATERIALIZED VIEW board");
    assert!(error.contains("57014") && error.contains("raise refresh_timeout"), "{error}");
    psql(&daemon.place, "ALTER MATERIALIZED VIEW board SET (refresh_timeout = '10 min')");
    let error = refused(&daemon.place, "SET statement_timeout = '300 ms'; REFRESH MATERIALIZED VIEW board");
    assert!(error.contains("57014") && error.contains("statement timeout"), "{error}");
    until("the source stopped, too", || psql(&database.place, running) == "0");
    set(0, 100_000);
    let error = refused(&daemon.place, "REFRESH MATERIALIZED VIEW board");
    assert!(error.contains("53200") && error.contains("rows of the view take more than"), "{error}");
    until("the source stopped, too", || psql(&database.place, running) == "0");
    assert_eq!(figures(&daemon, "rows, errors"), "1|3");
    set(0, 10);
    psql(&daemon.place, "REFRESH MATERIALIZED VIEW board");
    assert_eq!(figures(&daemon, "rows, stale"), "10|f");
    // A key that comes twice.
    psql(&database.place, "INSERT INTO pace VALUES (0, 1)");
    let error = refused(&daemon.place, "REFRESH MATERIALIZED VIEW board");
    assert!(error.contains("23505") && error.contains("Key (n)=(1) is duplicated"), "{error}");
    assert_eq!(figures(&daemon, "rows"), "10");
}

/// What cannot be is refused when the view is made, and says what to do.
#[test]
fn a_view_that_cannot_be_is_refused() {
    let database = shop(&[]);
    let daemon = cache(&database);
    let view = |options: &str, query: &str| {
        format!("CREATE MATERIALIZED VIEW v WITH (source = 'pg'{options}) AS {query}")
    };
    for (sql, parts) in [
        (view("", "SELECT * FROM nothing"), ["42P01", "relation \"nothing\" does not exist"]),
        (view("", "SELECT * FRM product"), ["42601", "syntax error at or near"]),
        (view("", "SELECT * FROM product WHERE id = $1"), ["0A000", "bound parameters"]),
        (view("", "SELECT FROM product"), ["42P16", "no columns"]),
        (view(", key = 'nothing'", "SELECT id FROM product"), ["42703", "nothing"]),
        (
            view(", refresh_on = 'nothing'", "SELECT id FROM product"),
            ["42P01", "public.nothing does not exist"],
        ),
        (
            view(", depends = 'product(id)'", "SELECT id FROM product"),
            ["22023", "depends is no option of a materialized view"],
        ),
        (
            view(", query = 'SELECT 1'", "SELECT id FROM product"),
            ["22023", "is no option of a materialized view"],
        ),
        (
            view(", mode = 'mirror'", "SELECT id FROM product"),
            ["22023", "mode is no option of a materialized view"],
        ),
        (
            view(", ttl = '1 s'", "SELECT id FROM product"),
            ["22023", "ttl is no option of a materialized view"],
        ),
        (
            "CREATE MATERIALIZED VIEW v WITH (source = 'none') AS SELECT 1 AS a".to_owned(),
            ["42704", "server \"none\" does not exist"],
        ),
    ] {
        let error = refused(&daemon.place, &sql);
        for part in parts {
            assert!(error.contains(part), "{sql}\n{error}");
        }
    }
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM sqlcached_views"), "0");
    psql(&database.place, "ALTER PUBLICATION cache DROP TABLE review");
    let error = refused(&daemon.place, &board(", refresh_on = 'product, review'"));
    assert!(
        error.contains("42704") && error.contains("ALTER PUBLICATION cache ADD TABLE public.review"),
        "{error}"
    );
    // A query that fails when it runs leaves nothing behind.
    let error = refused(&daemon.place, &view("", "SELECT 1 / (id - 1) AS x FROM product"));
    assert!(error.contains("division by zero"), "{error}");
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM sqlcached_views"), "0");
    psql(&daemon.place, &board(""));
    for (sql, part) in [
        ("ALTER MATERIALIZED VIEW board RESET (source)", "the source of a materialized view cannot change"),
        ("ALTER SERVER pg RENAME TO other", "materialized view board depends on server pg"),
    ] {
        let error = refused(&daemon.place, sql);
        assert!(error.contains(part), "{sql}\n{error}");
    }
}

/// Without rows at first; a table here of the same name as one of the query's is nothing to it.
#[test]
fn a_view_without_data_waits_for_its_first_refresh() {
    let database = shop(&[]);
    let daemon = cache(&database);
    psql(&daemon.place, "CREATE TABLE product (id INT PRIMARY KEY)");
    psql(&daemon.place, &format!("{} WITH NO DATA", board("")));
    let error = refused(&daemon.place, "SELECT * FROM board");
    assert!(error.contains("55000") && error.contains("has not been populated"), "{error}");
    psql(&daemon.place, "REFRESH MATERIALIZED VIEW board");
    assert_eq!(name_of(&daemon, 1), "product 1");
    psql(&daemon.place, "ALTER TABLE product RENAME TO other; DROP TABLE other");
    let shown = psql(&daemon.place, "SELECT definition FROM pg_matviews");
    assert_eq!(shown, format!("{QUERY};"));
    psql(&daemon.place, "REFRESH MATERIALIZED VIEW board WITH NO DATA");
    assert!(refused(&daemon.place, "SELECT * FROM board").contains("has not been populated"));
    // Who rolls back has the view as it was.
    psql(&daemon.place, "BEGIN; DROP MATERIALIZED VIEW board; ROLLBACK; REFRESH MATERIALIZED VIEW board");
    assert_eq!(name_of(&daemon, 1), "product 1");
}

/// What an operator's tools read of a view.
#[test]
fn the_metrics_follow_a_view() {
    let (database, port) = (shop(&[]), free_port());
    let daemon = cache_with(&database, &["--http-port", &port.to_string()]);
    psql(&daemon.place, &board(""));
    psql(&database.place, "ALTER TABLE product RENAME TO gone");
    refused(&daemon.place, "REFRESH MATERIALIZED VIEW board");
    let of = |name: &str| -> f64 {
        let (page, name) = (page(port, "/metrics"), format!("sqlcached_view_{name}{{view=\"board\"}} "));
        let value = page.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok());
        value.unwrap_or_else(|| panic!("{name}\n{page}"))
    };
    let counts = || ["refreshes_total", "refresh_errors_total", "failing"].map(|name| of(name).to_string());
    assert_eq!(counts(), ["2", "1", "1"]);
    assert!(of("refresh_seconds") > 0.0 && of("refresh_seconds") < 60.0);
    let age = of("age_seconds");
    until("the rows get older", || of("age_seconds") > age);
    psql(&database.place, "ALTER TABLE gone RENAME TO product");
    psql(&daemon.place, "REFRESH MATERIALIZED VIEW board");
    assert_eq!(counts(), ["3", "1", "0"]);
    if !is_content(&page(port, "/metrics")) {
        skipped("promtool is not installed");
    }
}

/// The next process serves the rows before the source answers, says that they may be old, and refreshes them.
#[test]
fn a_view_survives_the_daemon() {
    let mut database = shop(&[]);
    let mut daemon = cache(&database);
    psql(&daemon.place, &board(", refresh_on = 'product'"));
    wait(&daemon, "streaming");
    daemon.daemon.kill();
    psql(&database.place, "UPDATE product SET name = 'new' WHERE id = 1");
    database.stop();
    daemon.daemon.restart();
    assert_eq!(name_of(&daemon, 1), "product 1");
    until("the refresh fails", || figures(&daemon, "stale AND last_error LIKE 'cannot connect to%'") == "t");
    let mut client = daemon.daemon.connect();
    assert_eq!(client.get("board:1").as_deref(), Some(&b"product 1"[..]));
    database.start_again();
    until("the change is here", || name_of(&daemon, 1) == "new");
    assert_eq!(client.get("board:1").as_deref(), Some(&b"new"[..]));
    psql(&database.place, "UPDATE product SET name = 'newer' WHERE id = 1");
    until("the next change is here", || name_of(&daemon, 1) == "newer");
}

/// `pg_dump` writes the view with its options, and the statements make the same view elsewhere.
#[test]
fn a_view_is_dumped_and_made_again() {
    let database = shop(&[]);
    let daemon = cache(&database);
    psql(&daemon.place, &board(", refresh = '1 min'"));
    psql(&daemon.place, "CREATE INDEX board_price ON board (price)");
    let (code, dump, error) = crate::daemon::run(daemon.place.program("pg_dump").args(["-t", "board"]));
    assert_eq!(code, Some(0), "{error}");
    let other = SqlDaemon::start(&[]);
    psql(&other.place, &server(&database));
    let file = other.daemon.folder.write("dump.sql", &dump);
    let mut restore = other.place.program("psql");
    let (code, _, error) =
        crate::daemon::run(restore.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"]).arg(file));
    assert_eq!(code, Some(0), "{error}\n{dump}");
    let look =
        "SELECT v.*, i.indexdef FROM (SELECT source, refresh, rows, populated, query FROM sqlcached_views) v,
                    pg_indexes i WHERE i.indexname = 'board_price'";
    assert_eq!(psql(&other.place, look), psql(&daemon.place, look));
}

/// An init file is carried out before sources are connected: it says so.
#[test]
fn an_init_file_cannot_make_such_a_view() {
    let folder = crate::daemon::Folder::new();
    let file = folder.write(
        "init.sql",
        "CREATE SERVER pg FOREIGN DATA WRAPPER postgres OPTIONS (host '127.0.0.1');
         CREATE MATERIALIZED VIEW v WITH (source = 'pg') AS SELECT 1 AS a;",
    );
    let mut program = crate::daemon::program();
    program.arg("-s").arg(folder.0.join("sock")).arg("--arena").arg(folder.0.join("arena"));
    let (code, out, error) = crate::daemon::run(program.arg("--init-file").arg(&file));
    assert!(code != Some(0) && error.contains("are no part of init_file"), "{out}{error}");
}
