//! Foreign servers and user mappings: kept, listed as PostgreSQL lists them, and no secret is shown.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use crate::common::Db;
use sql::{Cancel, Executor, Limits, Session};
use store::{Clock, ManualClock, Store, StoreOptions};

fn run(db: &mut Db, script: &str) {
    for piece in sql::split_statements(script) {
        db.execute(piece.sql, &[]).unwrap_or_else(|error| panic!("{}: {error}", piece.sql));
    }
}

fn refused(db: &mut Db, sql: &str) -> &'static str {
    db.execute(sql, &[]).map_or_else(|error| error.state, |_| "done")
}

fn db_of(store: Arc<Store>) -> Db {
    let executor = Executor::new(Arc::clone(&store), Limits::default()).unwrap();
    let (clock, session, cancel) = (ManualClock::new(0), Session::new(), Cancel::new());
    Db { store, clock, executor, session, cancel }
}

const MADE: &str = "CREATE SERVER pg TYPE 'shop' VERSION '15' FOREIGN DATA WRAPPER postgres
     OPTIONS (host 'db.example', port '5432', dbname 'shop', publication 'cache');
 CREATE USER MAPPING FOR PUBLIC SERVER pg OPTIONS (user 'cache', password 'hidden');
 CREATE USER MAPPING FOR app SERVER pg OPTIONS (user 'app')";

#[test]
fn servers_are_listed_and_change() {
    let mut db = Db::new();
    run(&mut db, MADE);
    for (sql, expected) in [
        (
            "SELECT string_agg(fdwname, ' ' ORDER BY fdwname) FROM pg_foreign_data_wrapper",
            "mariadb nats postgres",
        ),
        (
            "SELECT s.srvname, s.srvtype, s.srvversion, s.srvoptions FROM pg_foreign_server s
             JOIN pg_foreign_data_wrapper f ON f.oid = s.srvfdw",
            "pg,shop,15,[\"host=db.example\",\"port=5432\",\"dbname=shop\",\"publication=cache\"]",
        ),
        (
            "SELECT srvname, usename, umoptions FROM pg_user_mappings ORDER BY usename",
            "pg,app,[\"user=app\"];pg,public,[\"user=cache\",\"password=********\"]",
        ),
        ("SELECT count(*) FROM pg_user_mapping m JOIN pg_foreign_server s ON s.oid = m.umserver", "2"),
    ] {
        assert_eq!(db.query(sql), expected, "{sql}");
    }
    run(
        &mut db,
        "ALTER SERVER pg VERSION NULL OPTIONS (SET port '5433', DROP publication, ADD sslmode 'require');
         ALTER SERVER pg RENAME TO \"Shop\";
         ALTER USER MAPPING FOR app SERVER shop OPTIONS (ADD password 'hidden', SET user 'other');
         CREATE SERVER IF NOT EXISTS shop FOREIGN DATA WRAPPER postgres;
         CREATE USER MAPPING IF NOT EXISTS FOR app SERVER shop;
         DROP USER MAPPING IF EXISTS FOR nobody SERVER shop;
         DROP USER MAPPING IF EXISTS FOR app SERVER nowhere;
         DROP SERVER IF EXISTS nowhere",
    );
    assert_eq!(
        db.query("SELECT srvname, srvversion, srvoptions FROM pg_foreign_server"),
        "Shop,NULL,[\"host=db.example\",\"port=5433\",\"dbname=shop\",\"sslmode=require\"]"
    );
    assert_eq!(
        db.query("SELECT umoptions FROM pg_user_mappings WHERE usename = 'app'"),
        "[\"user=other\",\"password=********\"]"
    );
    run(&mut db, "DROP USER MAPPING FOR app SERVER shop; DROP SERVER shop CASCADE");
    run(&mut db, "CREATE SERVER shop FOREIGN DATA WRAPPER mariadb OPTIONS (host 'db', server_id '77')");
    assert_eq!(
        db.query(
            "SELECT f.fdwname, s.srvoptions FROM pg_foreign_server s
             JOIN pg_foreign_data_wrapper f ON f.oid = s.srvfdw"
        ),
        "mariadb,[\"host=db\",\"server_id=77\"]"
    );
    assert_eq!(db.query("SELECT count(*) FROM pg_user_mappings"), "0");
}

#[test]
fn what_cannot_be_is_refused_as_postgresql_does() {
    let mut db = Db::new();
    run(&mut db, MADE);
    for (sql, state) in [
        ("CREATE SERVER pg FOREIGN DATA WRAPPER postgres", "42710"),
        ("CREATE SERVER x FOREIGN DATA WRAPPER oracle", "42704"),
        ("CREATE SERVER x FOREIGN DATA WRAPPER postgres OPTIONS (hots 'a')", "HV00D"),
        ("CREATE SERVER x FOREIGN DATA WRAPPER postgres OPTIONS (server_id '1')", "HV00D"),
        ("CREATE SERVER x FOREIGN DATA WRAPPER mariadb OPTIONS (publication 'a')", "HV00D"),
        ("CREATE SERVER x FOREIGN DATA WRAPPER postgres OPTIONS (port 'a')", "HV024"),
        ("CREATE SERVER x FOREIGN DATA WRAPPER postgres OPTIONS (host 'a', host 'b')", "42710"),
        ("CREATE SERVER x FOREIGN DATA WRAPPER postgres OPTIONS (password 'a')", "HV00D"),
        ("ALTER SERVER nowhere OPTIONS (SET host 'a')", "42704"),
        ("ALTER SERVER pg OPTIONS (ADD host 'a')", "42710"),
        ("ALTER SERVER pg OPTIONS (SET sslmode 'a')", "42704"),
        ("ALTER SERVER pg OPTIONS (SET port 'a')", "HV024"),
        ("DROP SERVER pg", "2BP01"),
        ("DROP SERVER nowhere", "42704"),
        ("CREATE USER MAPPING FOR PUBLIC SERVER pg", "42710"),
        ("CREATE USER MAPPING FOR PUBLIC SERVER nowhere", "42704"),
        ("CREATE USER MAPPING FOR x SERVER pg OPTIONS (host 'a')", "HV00D"),
        ("ALTER USER MAPPING FOR x SERVER pg OPTIONS (SET user 'a')", "42704"),
        ("DROP USER MAPPING FOR x SERVER pg", "42704"),
    ] {
        assert_eq!(refused(&mut db, sql), state, "{sql}");
    }
    assert_eq!(db.query("SELECT count(*) FROM pg_user_mappings"), "2");
}

#[test]
fn a_transaction_takes_them_back() {
    let mut db = Db::new();
    run(&mut db, "CREATE SERVER kept FOREIGN DATA WRAPPER postgres OPTIONS (host 'a')");
    run(&mut db, "BEGIN");
    run(&mut db, MADE);
    run(
        &mut db,
        "ALTER SERVER kept OPTIONS (SET host 'b'); ALTER SERVER kept RENAME TO other;
         CREATE USER MAPPING FOR PUBLIC SERVER other; ROLLBACK",
    );
    assert_eq!(db.query("SELECT srvname, srvoptions FROM pg_foreign_server"), "kept,[\"host=a\"]");
    assert_eq!(db.query("SELECT count(*) FROM pg_user_mappings"), "0");
}

/// What nobody may see is in the file that only its owner can read.
#[test]
fn the_next_start_has_them() {
    let directory = std::env::temp_dir().join(format!("sqlcached-servers-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("arena");
    let open = || {
        let clock = Clock::System;
        let options = StoreOptions {
            path: Some(path.clone()),
            memory_bytes: 32 << 20,
            cold: false,
            clock,
            row_bytes_max: 1 << 20,
        };
        Store::open(&options).unwrap().store
    };
    let mut db = db_of(open());
    run(&mut db, MADE);
    drop(db);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let store = open();
    let server = store.catalog().server("pg").cloned().unwrap();
    assert_eq!(server.mapping().and_then(|own| own.password()), Some("hidden"));
    let mut db = db_of(store);
    assert_eq!(
        db.query("SELECT usename, umoptions FROM pg_user_mappings WHERE usename = 'public'"),
        "public,[\"user=cache\",\"password=********\"]"
    );
    std::fs::remove_dir_all(&directory).unwrap();
}

/// What psql sends for `\des+` and `\deu+`.
#[test]
fn psql_lists_them() {
    let mut db = Db::new();
    run(&mut db, MADE);
    let servers = "SELECT s.srvname AS \"Name\", pg_catalog.pg_get_userbyid(s.srvowner) AS \"Owner\",
          f.fdwname AS \"Foreign-data wrapper\",
          CASE WHEN srvoptions IS NULL THEN '' ELSE   '(' || pg_catalog.array_to_string(ARRAY(SELECT
          pg_catalog.quote_ident(option_name) ||  ' ' || pg_catalog.quote_literal(option_value)  FROM
          pg_catalog.pg_options_to_table(srvoptions)),  ', ') || ')'   END AS \"FDW options\"
        FROM pg_catalog.pg_foreign_server s
             JOIN pg_catalog.pg_foreign_data_wrapper f ON f.oid=s.srvfdw ORDER BY 1";
    let listed = db.query(servers);
    assert!(
        listed.ends_with("(host 'db.example', port '5432', dbname 'shop', publication 'cache')"),
        "{listed}"
    );
    let mappings = "SELECT um.srvname AS \"Server\",  um.usename AS \"User name\",
         CASE WHEN umoptions IS NULL THEN '' ELSE   '(' || pg_catalog.array_to_string(ARRAY(SELECT
         pg_catalog.quote_ident(option_name) ||  ' ' || pg_catalog.quote_literal(option_value)  FROM
         pg_catalog.pg_options_to_table(umoptions)),  ', ') || ')'   END AS \"FDW options\"
        FROM pg_catalog.pg_user_mappings um ORDER BY 1, 2";
    assert!(!db.query(mappings).contains("hidden"));
}
