//! PostgreSQL's own client of another server: `postgres_fdw` in a trigger of the main database, which invalidates
//! pages of the cache in the transaction that changes what they show.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::daemon::run;
use crate::drivers::place::{Place, SqlDaemon};
use crate::drivers::postgresql::PostgreSql;

/// Changes of the main database's row in one script.
const CHANGES: usize = 200;

/// Changes after which fillers that still have not filled are taken for stuck.
const CHANGES_MAX: usize = 100 * CHANGES;

/// Fills that must have met the changes before the test believes what it saw.
const FILLS: u64 = 100;

const FILLERS: u64 = 2;

fn psql(place: &Place, script: &str) -> String {
    let mut psql = place.program("psql");
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", script]);
    let (code, out, error) = run(&mut psql);
    assert_eq!(code, Some(0), "{script}\n{out}{error}");
    out
}

/// A cache fill once refused the main database's transaction with 40001, one time in five.
#[test]
fn a_trigger_invalidates_through_postgres_fdw_while_others_fill() {
    let cache = SqlDaemon::start(&[]);
    let main = PostgreSql::start();
    psql(
        &cache.place,
        "CREATE TABLE page (key INT PRIMARY KEY, product INT, body TEXT) WITH (prefix = 'page:', value = 'body')",
    );
    psql(&cache.place, "CREATE INDEX page_product ON page (product)");
    let (host, port) = ("127.0.0.1", cache.place.port);
    for sql in [
        "CREATE EXTENSION postgres_fdw".to_owned(),
        format!(
            "CREATE SERVER cache FOREIGN DATA WRAPPER postgres_fdw \
             OPTIONS (host '{host}', port '{port}', dbname 'sqlcached')"
        ),
        "CREATE USER MAPPING FOR CURRENT_USER SERVER cache OPTIONS (user 'app')".to_owned(),
        "CREATE FOREIGN TABLE page (key INT, product INT, body TEXT) \
         SERVER cache OPTIONS (schema_name 'public')"
            .to_owned(),
        "CREATE TABLE product (id INT PRIMARY KEY, price INT); INSERT INTO product VALUES (17, 0)".to_owned(),
        "CREATE FUNCTION invalidate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         DELETE FROM page WHERE product = NEW.id; RETURN NEW; END $$"
            .to_owned(),
        "CREATE TRIGGER invalidate AFTER UPDATE ON product FOR EACH ROW EXECUTE FUNCTION invalidate()"
            .to_owned(),
    ] {
        psql(&main.place, &sql);
    }
    let stop = AtomicBool::new(false);
    let filled = AtomicU64::new(0);
    let mut changed = 0;
    std::thread::scope(|scope| {
        for filler in 0..FILLERS {
            let (cache, stop, filled) = (&cache, &stop, &filled);
            scope.spawn(move || {
                let mut client = cache.daemon.connect();
                while !stop.load(Ordering::Relaxed) {
                    for key in (filler..10).step_by(2) {
                        let sql = format!("INSERT OR REPLACE INTO page VALUES ({key}, 17, 'filled')");
                        assert_eq!(client.change(&sql), 1);
                        filled.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        // One session of the main database, as an application's: each change is a transaction of both servers.
        let changes = "UPDATE product SET price = price + 1 WHERE id = 17;\n".repeat(CHANGES);
        let mut session = main.place.program("psql");
        session.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        let script = cache.daemon.folder.write("changes.sql", &changes);
        session.arg("-f").arg(script);
        // The script again until enough fills have met it: how many meet one script depends on the machine.
        while filled.load(Ordering::Relaxed) < FILLS && changed < CHANGES_MAX {
            let (code, out, error) = run(&mut session);
            changed += CHANGES;
            if code != Some(0) {
                stop.store(true, Ordering::Relaxed);
                panic!("{out}{error}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(psql(&main.place, "SELECT price FROM product").trim(), changed.to_string());
    assert!(filled.load(Ordering::Relaxed) >= FILLS);
    // At rest: the wrapper reads rows from a cursor, and a change of the product takes them away.
    psql(&cache.place, "DELETE FROM page");
    psql(&cache.place, "INSERT INTO page VALUES (1, 17, 'a'), (2, 18, 'b')");
    let read = "BEGIN; SELECT key, body FROM page ORDER BY key; DELETE FROM page WHERE product = 18; COMMIT";
    assert_eq!(psql(&main.place, read), "1|a\n2|b\n");
    psql(&main.place, "UPDATE product SET price = 0");
    assert_eq!(psql(&cache.place, "SELECT count(*) FROM page").trim(), "0");
}
