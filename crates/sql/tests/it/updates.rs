//! `UPDATE` along keys and indexes, heads of rows and one row's upsert: the native executor leaves what SQLite leaves.

use crate::common::{Db, seed};
use sql::ComputedBy;
use store::value::Value;

/// A table as adapters make it, one with a unique value, and one that computes.
const TABLES: &str = "CREATE TABLE t (key TEXT PRIMARY KEY, body ANY, tags TEXT[], n INT)
        WITH (prefix = 't:', value = 'body', tags = 'tags', ttl = '1 h', stale_for = '10 min', lease = '30 s');
    CREATE INDEX t_tags ON t USING gin (tags);
    CREATE INDEX t_n ON t (n);
    CREATE TABLE longer (key TEXT PRIMARY KEY, body ANY) WITH (prefix = 't:k1:', value = 'body');
    CREATE TABLE u (k INT PRIMARY KEY, page INT, n INT UNIQUE, price NUMERIC(6, 2) NOT NULL DEFAULT 1);
    CREATE INDEX u_page ON u (page);
    CREATE TABLE c (k INT PRIMARY KEY, page INT, n INT CHECK (n < 5), d INT GENERATED ALWAYS AS (n * 2) STORED);
    CREATE INDEX c_page ON c (page)";

const STATEMENTS: [&str; 30] = [
    "UPDATE t SET _stale = TRUE WHERE tags && ?1",
    "UPDATE t SET _stale = TRUE WHERE 'a' = ANY (tags) OR n = ?2",
    "UPDATE t SET _stale = ?2 WHERE tags @> ?1",
    "UPDATE t SET _ttl = ?2 WHERE tags && ?1",
    "UPDATE t SET _expires_at = ?2, n = 7 WHERE n = 1",
    "UPDATE t SET _leased = TRUE WHERE key = 'k1'",
    "UPDATE t SET _leased = FALSE, _ttl = 60 WHERE n = 2",
    "UPDATE t SET _leased = TRUE, _stale = TRUE WHERE tags && '{a}'",
    "UPDATE t SET body = ?2, _flags = 9 WHERE tags && ?1",
    "UPDATE t SET tags = ?1, n = n + 1 WHERE n = ?2",
    "UPDATE t SET tags = ?1 WHERE tags && '{a,b}'",
    "UPDATE t SET body = ?2, tags = ?1, _flags = 3, _ttl = 30, _stale = FALSE WHERE key = 'k2'",
    "UPDATE t SET _flags = ?2 WHERE key IN ('k1', 'k2', 'k3')",
    "UPDATE t SET n = ?2",
    "UPDATE t SET _stale = TRUE",
    "REPLACE INTO t (body, tags, _flags, _ttl, key) VALUES (?2, ?1, 5, 600, 'k3')",
    "REPLACE INTO t (key, body, _ttl) VALUES ('k1:x', 1, ?2)",
    "INSERT INTO t (key, tags, _leased, _ttl) VALUES ('k4', ?1, TRUE, ?2) ON CONFLICT DO NOTHING",
    "INSERT INTO t (key, body, tags, n) VALUES ('k5', 'v', ?1, ?2) ON CONFLICT (key) DO UPDATE SET body = excluded.body, tags = excluded.tags, _ttl = 90",
    "INSERT INTO t (key, n, _stale) VALUES ('k6', ?2, TRUE) ON CONFLICT (key) DO UPDATE SET n = t.n + excluded.n, _stale = TRUE, _flags = 1",
    "INSERT INTO t (key, body) VALUES ('k7', ?2), ('k8', ?1), ('k1:y', 1)",
    "REPLACE INTO t (key, body) VALUES ('k7', ?2), ('k8', ?1)",
    "UPDATE u SET page = page + 1 WHERE page = ?2",
    "UPDATE u SET page = ?2, price = ?2 WHERE page = 1 OR k = 2",
    "UPDATE u SET n = ?2 WHERE page = 2",
    "UPDATE u SET _ttl = 50 WHERE n = ?2",
    "INSERT INTO u VALUES (3, ?2, 3, ?2) ON CONFLICT (k) DO UPDATE SET price = excluded.price, page = 1",
    "UPDATE c SET n = ?2 WHERE page = 1",
    "UPDATE c SET _stale = TRUE, _flags = 2 WHERE page = 1",
    "DELETE FROM t WHERE tags && ?1",
];

/// All that a row says of itself, but for the numbers of its versions.
const ROWS: [&str; 3] = [
    "SELECT key, body, tags, n, _ttl, _flags, _stale, _leased, _due FROM t ORDER BY key",
    "SELECT k, page, n, price, _ttl FROM u ORDER BY k",
    "SELECT k, page, n, d, _flags, _stale FROM c ORDER BY k",
];

const VERSIONS: &str = "SELECT key, _cas FROM t ORDER BY key";

fn filled(native: bool) -> Db {
    let mut db = Db::new();
    db.session.set_native(Some(native));
    db.run(TABLES);
    db
}

fn fill(db: &mut Db) {
    db.run(
        "DELETE FROM t;\nDELETE FROM u;\nDELETE FROM c;
         INSERT INTO t VALUES ('k1', 1, '{a,b}', 1), ('k2', x'00ff', '{b}', 2), ('k3', 'x', NULL, NULL), ('k5', 'y', '{c}', 1);\n
         INSERT INTO u VALUES (1, 1, 1, 1.50), (2, 2, 2, 2), (4, 1, NULL, 9);\n
         INSERT INTO c (k, page, n) VALUES (1, 1, 1), (2, 2, 2)",
    );
}

/// Which rows have the version still that they had.
fn versions_kept(db: &mut Db, before: &str) -> String {
    let now = db.query(VERSIONS);
    let kept = before.split(';').filter(|row| now.split(';').any(|other| other == *row));
    kept.filter_map(|row| row.split(',').next()).collect::<Vec<_>>().join(" ")
}

fn any_tags(random: &mut fastrand::Rng) -> Value {
    ["{a}", "{b}", "{a,b}", "{c,none}", "{}", "[\"a\"]", "no array"]
        .get(random.usize(0..9))
        .map_or(Value::Null, |&tags| Value::from(tags))
}

fn any_value(random: &mut fastrand::Rng) -> Value {
    match random.u8(0..12) {
        0 => Value::Null,
        1 => Value::Real(1.5),
        2 => Value::from("10 min"),
        3 => Value::from("text"),
        4 => Value::Blob(b"raw".to_vec()),
        5 => Value::from("3"),
        6 => Value::Integer(-1),
        _ => Value::Integer(random.i64(0..8)),
    }
}

/// Each statement with random values, alone and in transactions, by both: the same answers and the same rows.
#[test]
fn updates_leave_what_sqlite_would_leave() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut native, mut sqlite) = (filled(true), filled(false));
    for round in 0..800 {
        let within = random.bool();
        let run: Vec<(&str, [Value; 2])> = (0..random.usize(1..5))
            .map(|_| {
                let values = [any_tags(&mut random), any_value(&mut random)];
                (STATEMENTS[random.usize(..STATEMENTS.len())], values)
            })
            .collect();
        let [early, late] = [random.u64(0..40), random.u64(0..40)].map(std::time::Duration::from_secs);
        let left = [&mut native, &mut sqlite].map(|db| {
            fill(db);
            // What a table's ttl gave the rows is counted from here, and what a statement gives them from then.
            db.clock.advance(early);
            let before = db.query(VERSIONS);
            if within {
                db.run("BEGIN");
            }
            let mut answers = Vec::new();
            for (sql, values) in &run {
                let count = if sql.contains("?2") { 2 } else { usize::from(sql.contains("?1")) };
                if within {
                    db.run("SAVEPOINT s");
                }
                let answer = db.execute(sql, &values[..count]).map(|(done, _)| (done.affected, done.tag));
                if within && answer.is_err() {
                    db.run("ROLLBACK TO s");
                }
                answers.push(answer.map_err(|error| error.to_string()));
                if within {
                    answers.extend(ROWS.iter().map(|rows| Err(db.query(rows))));
                }
            }
            if within {
                db.run("COMMIT");
            }
            let kept = versions_kept(db, &before);
            db.clock.advance(late);
            (answers, kept, ROWS.map(|rows| db.query(rows)))
        });
        assert_eq!(left[0], left[1], "SEED={seed} round {round}: {run:?}, within {within}");
    }
}

/// What adapters send needs no SQLite, and `EXPLAIN` says so.
#[test]
fn what_adapters_send_needs_no_sqlite() {
    let mut db = filled(true);
    fill(&mut db);
    for sql in [
        "UPDATE t SET _stale = TRUE WHERE tags && '{a}'",
        "UPDATE t SET _ttl = 60 WHERE tags && '{a}' OR 'b' = ANY (tags)",
        "UPDATE t SET _leased = FALSE WHERE n = 1",
        "UPDATE t SET body = 'x', n = n + 1 WHERE n = 2",
        "UPDATE t SET _leased = TRUE WHERE key = 'k1'",
        "UPDATE t SET _stale = TRUE WHERE key = 'k1'",
        "UPDATE t SET body = 'v', tags = '{z}', _flags = 1, _ttl = 9, _stale = FALSE WHERE key = 'k1'",
        "REPLACE INTO t (body, tags, _flags, _ttl, key) VALUES ('v', '{a,b}', 1, 60, 'k1')",
        "INSERT INTO t (body, tags, _flags, _ttl, key) VALUES ('v', '{a,b}', 1, 60, 'k9') ON CONFLICT DO NOTHING",
        "INSERT INTO t (body, tags, key) VALUES ('v', '{a}', 'k1') ON CONFLICT (key) DO UPDATE SET body = excluded.body, tags = excluded.tags, _ttl = 60",
        "INSERT INTO t (key, body) VALUES ('k1', 1) ON CONFLICT DO NOTHING",
        "REPLACE INTO memcached (key, value) VALUES ('other', 'v')",
        "UPDATE c SET _stale = TRUE WHERE page = 1",
    ] {
        assert!(db.is_native(sql), "{sql}");
    }
    db.session.set_native(Some(true));
    for sql in [
        "UPDATE u SET n = 5 WHERE page = 2",
        "UPDATE c SET n = 3 WHERE page = 1",
        "UPDATE t SET _stale = TRUE WHERE body = 'x'",
        "UPDATE t SET _stale = TRUE WHERE tags && '{a}' RETURNING key",
        "UPDATE t SET _ttl = 5 + 5 WHERE tags && '{a}'",
        "UPDATE t SET _stale = TRUE WHERE n = 1 LIMIT 1",
    ] {
        assert_eq!(db.computed_by(sql), ComputedBy::Sqlite, "{sql}");
    }
    // The longest prefix owns a key.
    for sql in [
        "REPLACE INTO t (key, body) VALUES ('k1:x', 1)",
        "INSERT INTO t (key, body) VALUES ('new', 1), ('k1:x', 1)",
        "INSERT INTO memcached (key, value) VALUES ('t:1', 'v')",
    ] {
        assert_eq!(db.state(sql), "23514", "{sql}");
    }
}

/// `RETURNING _cas` was NULL, so that who reserved a row had to ask for its version.
#[test]
fn the_version_that_a_row_gets_is_returned() {
    for native in [true, false] {
        let mut db = filled(native);
        let reserve =
            "INSERT INTO t (key, _leased, _ttl) VALUES ('k', TRUE, 30) ON CONFLICT DO NOTHING RETURNING _cas";
        let cas = db.query(reserve);
        assert_eq!(cas, db.query("SELECT _cas FROM t"));
        assert_eq!(db.query(reserve), "", "it is taken");
        let fill = format!("UPDATE t SET body = 'v' WHERE key = 'k' AND _cas = {cas} RETURNING \"_cas\"");
        let newer = db.query(&fill);
        assert_eq!(newer, db.query("SELECT _cas FROM t"));
        assert!(newer.parse::<u64>().unwrap() > cas.parse().unwrap(), "{newer} {cas}");
        assert_eq!(db.query(&fill), "", "the version is another one");
        // A claim keeps the version, a deletion returns that which went.
        let claimed = db.query("UPDATE t SET _leased = TRUE WHERE key = 'k' AND NOT _leased RETURNING _cas");
        assert_eq!(claimed, newer);
        assert_eq!(db.query("DELETE FROM t RETURNING _cas"), newer);
        // Within a transaction it is known before the end, and stays.
        db.run("BEGIN");
        let within = db.query("INSERT INTO t (key) VALUES ('a') RETURNING _cas");
        assert_eq!(db.query("SELECT _cas FROM t"), within);
        assert_eq!(db.affected(&format!("UPDATE t SET body = 1 WHERE _cas = {within}")), 1);
        let last = db.query("UPDATE t SET body = 2 RETURNING _cas");
        db.run("COMMIT");
        assert_eq!(db.query("SELECT _cas FROM t"), last);
        let returned = db.query("REPLACE INTO memcached (key, value) VALUES ('m', 'v') RETURNING cas");
        assert_eq!(returned, db.query("SELECT cas FROM memcached"));
    }
}

/// `_ttl = DEFAULT` was NULL, so that the row never ended, whatever its table's `ttl` says.
#[test]
fn the_default_of_a_deadline_is_the_tables() {
    let mut db = filled(true);
    fill(&mut db);
    db.run("UPDATE t SET _ttl = NULL, _flags = 7, _stale = TRUE");
    assert_eq!(db.query("SELECT DISTINCT _ttl, _flags, _stale FROM t"), "NULL,7,1");
    db.run("UPDATE t SET _ttl = DEFAULT, _flags = DEFAULT, _stale = DEFAULT");
    assert_eq!(db.query("SELECT DISTINCT _ttl, _flags, _stale FROM t"), "3600,0,0");
    db.run("UPDATE t SET _expires_at = NULL WHERE key = 'k1';\nUPDATE t SET _expires_at = DEFAULT WHERE key = 'k1'");
    assert_eq!(db.query("SELECT _ttl FROM t WHERE key = 'k1'"), "3600");
    db.run("INSERT INTO t (key, _ttl) VALUES ('new', DEFAULT), ('never', NULL)");
    assert_eq!(db.query("SELECT key, _ttl FROM t WHERE key LIKE 'ne%' ORDER BY key"), "never,NULL;new,3600");
    db.run("UPDATE u SET _ttl = 5;\nUPDATE u SET _ttl = DEFAULT");
    assert_eq!(db.query("SELECT DISTINCT _ttl FROM u"), "NULL", "a table without a ttl");
}
