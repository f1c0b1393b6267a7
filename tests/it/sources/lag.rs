//! Tables that look at their source (`on_lag = 'fail'` and `'through'`), while it cannot be followed and answers
//! queries.

use super::{TABLE, asked, psql, server, shop, until, wait};
use crate::daemon::signal;
use crate::drivers::place::{Place, SqlDaemon};
use crate::drivers::postgresql::PostgreSql;

/// The stream ends and does not come back; connections for queries stay.
fn stop_replication(source: &Place) {
    psql(source, "ALTER ROLE cache NOREPLICATION");
    psql(source, "SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
}

fn cache(database: &PostgreSql, options: &str) -> SqlDaemon {
    psql(&database.place, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO cache");
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(database));
    psql(
        &daemon.place,
        &format!(
            "CREATE TABLE product (id INT PRIMARY KEY, name TEXT)
             WITH (prefix = 'product:', value = 'name', source = 'pg', depends = 'product(id)', {options})"
        ),
    );
    wait(&daemon, "streaming");
    daemon
}

/// Who reads in SQL learns that the source is not followed, and memcached's clients miss. Writing goes on.
#[test]
fn a_table_may_fail_while_its_source_is_behind() {
    let database = shop(&[]);
    let daemon = cache(&database, "on_lag = 'fail'");
    let mut client = daemon.daemon.connect();
    let reads = [
        "SELECT name FROM product WHERE id = 1",
        "SELECT count(*) FROM product",
        "SELECT * FROM seen",
        "INSERT INTO other SELECT id FROM product",
        "WITH all_of AS (SELECT * FROM product) SELECT count(*) FROM all_of",
    ];
    psql(&daemon.place, "CREATE TABLE other (id INT PRIMARY KEY)");
    psql(&daemon.place, "CREATE VIEW seen AS SELECT upper(name) FROM product");
    until("the new definitions are known", || client.set("product:1", b"kettle") == "STORED");
    assert_eq!(client.get("product:1").as_deref(), Some(&b"kettle"[..]));
    assert_eq!(psql(&daemon.place, reads[0]), "kettle");

    stop_replication(&database.place);
    let fails = || asked(&daemon.place, reads[0]).err();
    until("the table fails", || fails().is_some());
    for read in reads {
        let error = asked(&daemon.place, read).unwrap_err();
        assert!(error.contains("is further behind its source than max_lag"), "{read}: {error}");
        assert!(error.contains("sqlcached_sources"), "{read}: {error}");
    }
    // What was there is not seen, and neither is what is written meanwhile.
    assert_eq!(client.get("product:1"), None);
    assert_eq!(client.set("product:1", b"teapot"), "STORED");
    assert_eq!(client.get("product:1"), None);
    assert_eq!(client.ask("mg product:1 v"), "EN");
    client.send(b"gat 100 product:1\r\n");
    assert_eq!(client.line(), "END");
    psql(&daemon.place, "INSERT INTO product VALUES (2, 'cup')");
    psql(&daemon.place, "DELETE FROM product WHERE id = 2");
    // Other tables are read as ever.
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM other"), "0");

    psql(&database.place, "ALTER ROLE cache REPLICATION");
    wait(&daemon, "streaming");
    until("the table is read again", || fails().is_none());
    assert_eq!(client.get("product:1"), None, "it was stored before the stream");
    assert_eq!(client.set("product:1", b"teapot"), "STORED");
    assert_eq!(client.get("product:1").as_deref(), Some(&b"teapot"[..]));
}

/// What is fetched while the source is not followed answers clients and is not stored, so nothing gets old.
#[test]
fn a_table_may_read_through_while_its_source_is_behind() {
    let database = shop(&[]);
    let query = "query = 'SELECT id, name FROM product WHERE id = ANY($1)', on_lag = 'through'";
    let daemon = cache(&database, query);
    let mut client = daemon.daemon.connect();
    until("rows are stored", || {
        assert_eq!(client.get("product:1").as_deref(), Some(&b"product 1"[..]));
        psql(&daemon.place, "SELECT count(*) FROM product") == "1"
    });

    stop_replication(&database.place);
    until("the table is empty", || psql(&daemon.place, "SELECT count(*) FROM product") == "0");
    for name in ["one", "two", "three"] {
        psql(&database.place, &format!("UPDATE product SET name = '{name}' WHERE id = 1"));
        assert_eq!(client.get("product:1").as_deref(), Some(name.as_bytes()));
        assert_eq!(psql(&daemon.place, "SELECT name FROM product WHERE id = 1"), name);
    }
    assert_eq!(psql(&daemon.place, "SELECT count(*) FROM product"), "0");

    psql(&database.place, "ALTER ROLE cache REPLICATION");
    wait(&daemon, "streaming");
    until("rows are stored again", || {
        assert_eq!(client.get("product:1").as_deref(), Some(&b"three"[..]));
        psql(&daemon.place, "SELECT count(*) FROM product") == "1"
    });
}

/// The same while the stream hangs. Nothing tells the daemon that it does, and changes of fetched rows are stuck in it.
#[test]
fn a_table_reads_through_while_its_stream_hangs() {
    let database = shop(&[]);
    let query = "query = 'SELECT id, name FROM product WHERE id = ANY($1)', on_lag = 'through'";
    let daemon = cache(&database, query);
    let mut client = daemon.daemon.connect();
    let sender = psql(&database.place, "SELECT pid FROM pg_stat_replication");
    let sender = sender.parse().unwrap();
    signal(sender, "STOP");
    wait(&daemon, "lagging");
    until("nothing is stored", || {
        client.get("product:1");
        psql(&daemon.place, "SELECT count(*) FROM product") == "0"
    });
    for name in ["one", "two", "three"] {
        psql(&database.place, &format!("UPDATE product SET name = '{name}' WHERE id = 1"));
        assert_eq!(client.get("product:1").as_deref(), Some(name.as_bytes()));
    }
    signal(sender, "CONT");
    wait(&daemon, "streaming");
    until("rows are stored again", || {
        assert_eq!(client.get("product:1").as_deref(), Some(&b"three"[..]));
        psql(&daemon.place, "SELECT count(*) FROM product") == "1"
    });
}

/// That its source is lost does not cling to a table that goes to another source.
#[test]
fn a_table_leaves_its_lost_source_behind() {
    let (database, other) = (shop(&[]), shop(&[]));
    let daemon = cache(&database, "on_lag = 'fail'");
    psql(&other.place, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO cache");
    psql(&daemon.place, &server(&other).replace("pg", "pg2"));
    // It is followed already when the table comes to it.
    let query = "CREATE TABLE other (id INT PRIMARY KEY) WITH (source = 'pg2', depends = 'product(id)')";
    psql(&daemon.place, query);
    let state = "SELECT state FROM sqlcached_sources WHERE source_name = 'pg2'";
    until("the other source is followed", || psql(&daemon.place, state) == "streaming");

    stop_replication(&database.place);
    let read = "SELECT count(*) FROM product";
    until("the table fails", || asked(&daemon.place, read).is_err());
    psql(&daemon.place, "ALTER TABLE product SET (source = 'pg2')");
    until("the table is read", || asked(&daemon.place, read).is_ok());
    let mut client = daemon.daemon.connect();
    until("the new definitions are known", || client.set("product:1", b"kettle") == "STORED");
    assert_eq!(psql(&daemon.place, read), "1");
    psql(&other.place, "UPDATE product SET name = 'pot' WHERE id = 1");
    until("the other source's change is applied", || psql(&daemon.place, read) == "0");
}

/// Each needs what it stands on, and a table says again what it was given.
#[test]
fn what_they_need_is_asked_for() {
    let database = shop(&[]);
    let daemon = SqlDaemon::start(&[]);
    psql(&daemon.place, &server(&database));
    psql(&daemon.place, TABLE);
    for (options, words) in [
        ("on_lag = 'through'", "needs query"),
        ("on_lag = 'never'", "write empty, stale, fail or through"),
        ("on_lag = 'fail', shared_memory = on", "needs shared_memory = off"),
        ("on_lag = 'fail', mode = 'mirror'", "for mode = 'invalidate'"),
    ] {
        let refused = asked(&daemon.place, &format!("ALTER TABLE page SET ({options})")).unwrap_err();
        assert!(refused.contains(words), "{options}: {refused}");
    }
    psql(&daemon.place, "ALTER TABLE page SET (on_lag = 'fail')");
    let options = "SELECT reloptions::text FROM pg_class WHERE relname = 'page'";
    assert!(psql(&daemon.place, options).contains("on_lag=fail"));
    psql(&daemon.place, "ALTER TABLE page RESET (on_lag)");
    assert!(!psql(&daemon.place, options).contains("on_lag"));
}
