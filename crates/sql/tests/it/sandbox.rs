//! What a statement must not do, must not survive, and must not take down.

use std::time::Duration;

use crate::common::{Db, open_store};
use sql::{Cancel, Executor, FaultPoint, Limits, arm_fault, panics_caught};
use store::Clock;
use store::value::Value;

#[test]
fn escapes_are_refused() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT PRIMARY KEY, b TEXT);\nINSERT INTO t VALUES (1, 'x')");
    let folder = "/nonexistent-sqlcached-test";
    for (sql, states) in [
        (format!("ATTACH '{folder}/x' AS x"), "42501"),
        (format!("VACUUM INTO '{folder}/x'"), "42501"),
        ("DETACH main".into(), "42501"),
        ("PRAGMA writable_schema = 1".into(), "42501"),
        ("PRAGMA temp_store_directory = '/tmp'".into(), "42501"),
        ("PRAGMA table_info(t)".into(), "42501"),
        ("EXPLAIN PRAGMA table_info(t)".into(), "0A000"),
        ("SELECT * FROM pragma_table_info('t')".into(), "42883"),
        ("SELECT count(*) FROM pragma_table_info('t')".into(), "42883"),
        ("SELECT * FROM pragma_database_list".into(), "42501 42P01"),
        ("SELECT * FROM sqlite_schema".into(), "42501"),
        ("SELECT * FROM sqlite_master".into(), "42501"),
        ("SELECT count(*) FROM sqlite_master".into(), "42501"),
        ("SELECT 1 FROM sqlite_temp_schema".into(), "42501"),
        ("SELECT * FROM main.sqlite_master".into(), "42501"),
        ("SELECT (SELECT sql FROM sqlite_schema)".into(), "42501"),
        ("WITH x AS (SELECT * FROM sqlite_schema) SELECT * FROM x".into(), "42501"),
        ("SELECT load_extension('x')".into(), "42501 42883"),
        ("SELECT fts3_tokenizer('x')".into(), "42501 42883"),
        ("SELECT sqlite_compileoption_get(1)".into(), "42501"),
        ("SELECT sqlite_version()".into(), "42501"),
        ("SELECT sqlite_source_id()".into(), "42501"),
        ("SELECT readfile('/etc/passwd')".into(), "42883 42501"),
        ("SELECT writefile('x', 'y')".into(), "42883 42501"),
        ("SELECT edit('x')".into(), "42883 42501"),
        ("SELECT * FROM dbstat".into(), "42501 42P01"),
        ("SELECT count(*) FROM dbstat".into(), "42501 42P01"),
        ("SELECT * FROM sqlite_stmt".into(), "42501 42P01"),
        ("SELECT * FROM bytecode('SELECT 1')".into(), "42883"),
        ("SELECT rtreecheck('x')".into(), "42501 42883"),
        ("CREATE VIRTUAL TABLE v USING fts5(a)".into(), "42501"),
        ("CREATE VIRTUAL TABLE v USING rtree(a, b, c)".into(), "42501"),
        ("CREATE TEMP TABLE v (a)".into(), "0A000"),
        ("CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END".into(), "0A000"),
        ("CREATE VIEW v AS SELECT * FROM sqlite_schema".into(), "42501"),
        ("CREATE VIEW v AS SELECT load_extension('x')".into(), "42501"),
        ("CREATE TABLE g (a TEXT, b AS (load_extension(a)))".into(), "42501"),
        ("CREATE TABLE g (a TEXT CHECK (a IN (SELECT sql FROM sqlite_schema)))".into(), "42P17"),
        ("CREATE TABLE g (a TEXT DEFAULT (readfile('/etc/passwd')))".into(), "42883"),
        ("CREATE TABLE sqlite_x (a INT)".into(), "42939"),
        ("CREATE TABLE json_each (a INT)".into(), "42939"),
        ("DROP TABLE sqlite_schema".into(), "42P01"),
        ("INSERT INTO sqlite_schema VALUES (1)".into(), "42P01"),
        ("DELETE FROM sqlite_schema".into(), "42P01"),
        ("UPDATE json_each SET value = 1".into(), "42P01"),
        ("INSERT INTO temp.t VALUES (2, 'y')".into(), "42P01"),
        ("INSERT INTO t SELECT 3, sql FROM sqlite_schema".into(), "42501"),
        ("DELETE FROM t WHERE b = (SELECT sql FROM sqlite_schema)".into(), "42501"),
        ("DELETE FROM t RETURNING load_extension('x')".into(), "42501 42883"),
        ("INSERT INTO t VALUES (1, 'z') ON CONFLICT (a) DO UPDATE SET b = sqlite_version()".into(), "42501"),
        ("UPDATE t SET b = sqlite_version()".into(), "42501"),
        ("COMMIT PREPARED 'x'".into(), "0A000"),
        ("SELECT 1; ATTACH 'x' AS y".into(), "42601"),
        ("SELECT 1\0; ATTACH 'x' AS y".into(), "42601"),
    ] {
        let error = db.error(&sql);
        assert!(states.split(' ').any(|state| state == error.state), "{sql}: {error}");
    }
    assert_eq!(db.query("SELECT * FROM t"), "1,x");
    assert_eq!(db.error("SELECT * FROM t(0)").state, "42883");
    assert_eq!(db.query("SELECT count(*) FROM t WHERE _pick = 1"), "0");
}

/// Further ways to a file that SQLite, its shell or PostgreSQL have, each with a path that is watched.
fn ways_to_a_file(folder: &str) -> Vec<String> {
    let bait = format!("{folder}/bait");
    vec![
        format!("ATTACH DATABASE '{bait}' AS x"),
        format!("ATTACH 'file:{bait}?mode=rwc' AS x"),
        "ATTACH ':memory:' AS x".into(),
        format!("EXPLAIN ATTACH '{bait}' AS x"),
        format!("VACUUM INTO '{folder}/copy'"),
        format!("VACUUM main INTO '{folder}/copy'"),
        format!("PRAGMA temp_store_directory = '{folder}'"),
        format!("PRAGMA data_store_directory = '{folder}'"),
        "PRAGMA temp_store = FILE".into(),
        "PRAGMA journal_mode = WAL".into(),
        "PRAGMA trusted_schema = ON".into(),
        "PRAGMA cell_size_check = ON".into(),
        "PRAGMA wal_checkpoint".into(),
        "SELECT * FROM pragma_journal_mode".into(),
        format!("SELECT load_extension('{bait}')"),
        format!("SELECT load_extension('{bait}', 'init')"),
        format!("SELECT readfile('{bait}')"),
        format!("SELECT writefile('{folder}/made', 'x')"),
        format!("SELECT edit('x', '{bait}')"),
        format!("SELECT * FROM fsdir('{folder}')"),
        format!("SELECT lsmode(1), lsdir('{folder}')"),
        format!("SELECT * FROM zipfile('{bait}')"),
        format!("SELECT * FROM csv('{bait}')"),
        format!("SELECT sqlar_uncompress(readfile('{bait}'), 1)"),
        format!("CREATE VIRTUAL TABLE v USING csv(filename = '{bait}')"),
        format!("CREATE VIRTUAL TABLE temp.v USING csv(filename = '{bait}')"),
        format!("CREATE VIRTUAL TABLE v USING zipfile('{bait}')"),
        "CREATE VIRTUAL TABLE v USING fts5(a, content = 't')".into(),
        "CREATE VIRTUAL TABLE v USING dbstat".into(),
        "SELECT * FROM sqlite_dbpage".into(),
        "SELECT data FROM sqlite_dbdata".into(),
        "SELECT sqlite_log(1, 'x')".into(),
        "SELECT sqlite_offset(a) FROM t".into(),
        "SELECT fts5(NULL), fts5_source_id()".into(),
        "SELECT rtreenode(2, x'00')".into(),
        "SELECT geopoly_blob('[]')".into(),
        format!("INSERT INTO t SELECT 5, readfile('{bait}')"),
        format!("UPDATE t SET b = readfile('{bait}')"),
        format!("DELETE FROM t WHERE writefile('{folder}/made', b)"),
        format!("INSERT INTO t VALUES (1, 'x') ON CONFLICT (a) DO UPDATE SET b = readfile('{bait}')"),
        format!("INSERT INTO t VALUES (6, 'x') RETURNING writefile('{folder}/made', b)"),
        format!("WITH x AS (SELECT readfile('{bait}') AS y) SELECT * FROM x"),
        format!("SELECT * FROM t ORDER BY readfile('{bait}')"),
        format!("SELECT (SELECT readfile('{bait}'))"),
        format!("SELECT count(*) FILTER (WHERE readfile('{bait}')) FROM t"),
        format!("COPY t FROM '{bait}'"),
        format!("COPY t TO '{folder}/made'"),
        format!("COPY t TO PROGRAM 'touch {folder}/made'"),
        format!("COPY t FROM PROGRAM 'cat {bait}'"),
        format!("SELECT pg_read_file('{bait}')"),
        format!("SELECT pg_read_binary_file('{bait}')"),
        format!("SELECT pg_ls_dir('{folder}')"),
        format!("SELECT pg_stat_file('{bait}')"),
        format!("SELECT lo_import('{bait}')"),
        format!("SELECT lo_export(1, '{folder}/made')"),
        format!("LOAD '{bait}'"),
        "CREATE EXTENSION file_fdw".into(),
        "CREATE SERVER s FOREIGN DATA WRAPPER file_fdw".into(),
        format!("CREATE FUNCTION f() RETURNS int AS '{bait}' LANGUAGE c"),
        format!("CREATE TABLESPACE s LOCATION '{folder}'"),
        format!("DO $$ BEGIN PERFORM pg_read_file('{bait}'); END $$"),
        format!(".read {bait}"),
        format!("\\i {bait}"),
        format!("SELECT 1; ATTACH '{bait}' AS x"),
        format!("SELECT 1 /* ' */; ATTACH '{bait}' AS x -- '"),
    ]
}

#[test]
fn no_file_is_touched_while_escapes_are_tried() {
    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

    let folder = std::env::temp_dir().join(format!("sqlcached-sandbox-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("bait"), "secret").unwrap();
    let watch = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    add_watch(&watch, &folder, WatchFlags::ALL_EVENTS).unwrap();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = Reader::new(&watch, &mut buffer);
    let mut event =
        || events.next().ok().map(|event| format!("{:?} {:?}", event.events(), event.file_name()));
    // Other tests of this process open what they like elsewhere.
    let open = || {
        let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        all.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|path| path.starts_with(&folder))
    };

    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT PRIMARY KEY, b TEXT);\nINSERT INTO t VALUES (1, 'x')");
    let ways = ways_to_a_file(&folder.display().to_string());
    assert!(ways.len() >= 60, "{}", ways.len());
    for sql in &ways {
        let refusal = db.execute(sql, &[]).expect_err(sql);
        assert_ne!(refusal.state, "XX000", "{sql}: {refusal}");
        assert!(!refusal.message.contains("secret"), "{sql}: {refusal}");
        assert_eq!(event(), None, "{sql}");
    }
    assert!(!open(), "a descriptor stayed open");
    assert_eq!(db.query("SELECT * FROM t"), "1,x");
    // The watch sees what it should.
    std::fs::read(folder.join("bait")).unwrap();
    assert!(event().is_some());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn runaway_queries_are_stopped() {
    let mut db = Db::with_limits(Limits {
        statement_timeout: None,
        operations_max: Some(3_000_000),
        heap_bytes_max: 16 << 20,
        ..Limits::default()
    });
    db.run("CREATE TABLE t (a INT PRIMARY KEY)");
    for chunk in 0..10 {
        let rows: Vec<String> = (0..100).map(|row| format!("({})", chunk * 100 + row)).collect();
        db.run(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    }
    for (sql, states) in [
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", "57014"),
        ("SELECT count(*) FROM t a, t b, t c, t d, t e", "57014"),
        ("DELETE FROM t WHERE (SELECT count(*) FROM t a, t b, t c) > 0", "57014"),
        ("UPDATE t SET a = (SELECT count(*) FROM t a, t b, t c)", "57014"),
        ("INSERT INTO t SELECT a.a * 10000 + b.a FROM t a, t b, t c", "57014 54000"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT group_concat(i) FROM n",
            "57014 53200",
        ),
        (
            "WITH RECURSIVE n(i, s) AS (SELECT 1, 'x' UNION ALL SELECT i + 1, s || s FROM n) SELECT length(s) FROM n WHERE i > 90",
            "53200 54000",
        ),
        ("SELECT length(printf('%200000000d', 1))", "53200 54000"),
        ("SELECT hex(randomblob(100000000))", "53200 54000"),
        ("SELECT replace(hex(zeroblob(1000000)), '0', hex(zeroblob(1000)))", "53200 54000"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000) SELECT i, zeroblob(500) FROM n ORDER BY random() LIMIT 1 OFFSET 999999",
            "53200 57014",
        ),
        (
            "SELECT 'a' GLOB '%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a'",
            "54000",
        ),
    ] {
        let error = db.error(sql);
        assert!(states.split(' ').any(|state| state == error.state), "{sql}: {error}");
    }
    assert_eq!(db.query("SELECT count(*) FROM t"), "1000");
}

#[test]
fn the_timeout_stops_by_the_clock() {
    let store = open_store(Clock::System);
    let limits = Limits { statement_timeout: Some(Duration::from_millis(20)), ..Limits::default() };
    let mut executor = Executor::new(store, limits).unwrap();
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let error = executor
        .execute(&mut sql::Session::new(), sql, &[], &Cancel::new(), &mut crate::common::Rows::default())
        .unwrap_err();
    assert_eq!(
        (error.state, error.message.as_str()),
        ("57014", "canceling statement due to statement timeout")
    );
}

#[test]
fn a_raised_flag_stops_a_statement() {
    let mut db = Db::new();
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    db.cancel.cancel();
    let error = db.error(sql);
    assert_eq!((error.state, error.message.as_str()), ("57014", "canceling statement due to user request"));
    db.cancel.reset();
    assert_eq!(db.query("SELECT 1"), "1");
}

#[test]
fn sizes_are_limited() {
    let mut db = Db::new();
    let long = format!("SELECT '{}'", "x".repeat(sql::limits::STATEMENT_BYTES_MAX));
    assert_eq!(db.state(&long), "54000");
    let deep = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert_eq!(db.state(&deep), "54001", "{}", db.error(&deep));
    let wide = format!("SELECT {}1", "1+".repeat(5_000));
    assert_eq!(db.state(&wide), "54001");
    assert_eq!(db.state("SELECT ?99999"), "42601");
    let many = vec![Value::Null; sqltext::limits::PARAMETERS_MAX];
    assert_eq!(db.query_with("SELECT ?32766 IS NULL", &many), "1");
    // Neither a deep nor a wide statement that writes is parsed.
    let wide = format!("DELETE FROM memcached WHERE key = {}1", "1+".repeat(5_000));
    assert_eq!(db.state(&wide), "54001");
}

#[cfg(debug_assertions)]
#[test]
fn a_panic_in_a_callback_ends_the_statement_only() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a TEXT PRIMARY KEY, b INT);\nINSERT INTO t VALUES ('x', 1), ('y', 2)");
    // Without a literal: what fails to compile for all texts of its shape is compiled as it stands.
    let query = "SELECT a, b, rowid FROM t WHERE b IS NOT NULL ORDER BY b";
    for point in [
        FaultPoint::BestIndex,
        FaultPoint::Open,
        FaultPoint::Filter,
        FaultPoint::Next,
        FaultPoint::Column,
        FaultPoint::Rowid,
        FaultPoint::Authorize,
    ] {
        // Another definition makes the statement compile again, so that every callback runs.
        db.run("CREATE INDEX again ON t (b);\nDROP INDEX again");
        let before = panics_caught();
        arm_fault(point);
        let error = db.error(query);
        assert!(panics_caught() > before, "{point:?}: {error}");
        db.run("CREATE INDEX again ON t (b);\nDROP INDEX again");
        assert_eq!(db.execute(query, &[]).unwrap().1.rows.len(), 2, "{point:?}");
    }
    for (point, sql) in [
        (FaultPoint::Column, "UPDATE t SET b = b + 1 WHERE b > 0"),
        (FaultPoint::Next, "DELETE FROM t WHERE b > 0"),
    ] {
        arm_fault(point);
        db.error(sql);
        assert_eq!(db.query("SELECT b FROM t ORDER BY b"), "1;2", "{point:?}: nothing of it was applied");
    }
}
