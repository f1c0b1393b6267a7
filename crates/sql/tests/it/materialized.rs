//! Materialized views: made, refreshed by statement, by time and by changes, kept on errors, and written by nobody
//! else. The clock is moved, never slept on.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Db, seed};
use sql::{Cancel, Executor, Limits, Session, ViewNews, ViewRunner};

fn runner(db: &Db) -> ViewRunner {
    ViewRunner::new(Arc::clone(&db.store)).expect("a runner")
}

/// Moves the clock and refreshes the views that came due; what is new of them.
fn pass(db: &Db, runner: &mut ViewRunner, ms: u64) -> Vec<ViewNews> {
    db.clock.advance(Duration::from_millis(ms));
    db.store.tick();
    runner.run_due(&Cancel::new())
}

fn shop() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE product (id INT PRIMARY KEY, name TEXT, price INT);
         CREATE TABLE orders (id INT PRIMARY KEY, product INT, pieces INT);
         INSERT INTO product VALUES (1, 'kettle', 25), (2, 'teapot', 40), (3, 'cup', 5);
         INSERT INTO orders VALUES (1, 1, 2), (2, 3, 10), (3, 3, 1)",
    );
    db
}

const BOARD: &str = "CREATE MATERIALIZED VIEW board WITH (key = 'id') AS \
     SELECT p.id, p.name, sum(o.pieces) AS pieces FROM product p JOIN orders o ON o.product = p.id GROUP BY p.id, p.name";

fn error(db: &mut Db, sql: &str) -> (&'static str, String) {
    let error = db.execute(sql, &[]).expect_err(sql);
    (error.state, error.message)
}

#[test]
fn a_view_has_the_rows_of_its_query_until_it_is_refreshed() {
    let mut db = shop();
    let (done, _) = db.execute(BOARD, &[]).unwrap();
    assert_eq!((done.tag, done.affected), ("SELECT", 2));
    let all = "SELECT id, name, pieces FROM board ORDER BY id";
    assert_eq!(db.query(all), "1,kettle,2;3,cup,11");
    db.run("INSERT INTO orders VALUES (4, 2, 7);\nDELETE FROM orders WHERE id = 1");
    assert_eq!(db.query(all), "1,kettle,2;3,cup,11");
    let before = db.query("SELECT _cas FROM board WHERE id = 3");
    let (done, _) = db.execute("REFRESH MATERIALIZED VIEW board", &[]).unwrap();
    assert_eq!(done.tag, "REFRESH MATERIALIZED VIEW");
    assert_eq!(db.query(all), "2,teapot,7;3,cup,11");
    assert_eq!(db.query("SELECT _cas FROM board WHERE id = 3"), before, "a row that is the same stays");
    assert_eq!(
        db.query(
            "SELECT view_name, populated, stale, rows, refreshes, errors, last_changed FROM sqlcached_views"
        ),
        "board,1,0,2,2,0,2"
    );
    assert!(db.is_native("SELECT name FROM board WHERE id = 3"));
}

/// The query of a view is in words of ours: who refreshed one with such a query was told that there is no such table.
#[test]
fn a_view_of_rows_for_each_row_is_refreshed() {
    let mut db = shop();
    db.run(
        "CREATE FUNCTION of_product(which INT) RETURNS SETOF INT LANGUAGE sql AS \
         $$ SELECT pieces FROM orders WHERE product = which $$;
         CREATE FUNCTION first_of(which INT) RETURNS INT LANGUAGE sql AS \
         $$ SELECT pieces FROM orders WHERE product = which ORDER BY id $$;
         CREATE MATERIALIZED VIEW each AS SELECT p.id, n FROM product p, LATERAL (SELECT o.pieces AS n FROM orders o \
         WHERE o.product = p.id) AS l;
         CREATE MATERIALIZED VIEW called AS SELECT p.id, n FROM product p, of_product(p.id) AS f(n);
         CREATE MATERIALIZED VIEW firsts AS SELECT p.id, first_of(p.id) AS n FROM product p;
         CREATE MATERIALIZED VIEW series AS SELECT g FROM generate_series(1, 3) AS g",
    );
    for view in ["each", "called"] {
        assert_eq!(db.query(&format!("SELECT id, n FROM {view} ORDER BY id, n")), "1,2;3,1;3,10", "{view}");
    }
    db.run("INSERT INTO orders VALUES (9, 1, 5);\nREFRESH MATERIALIZED VIEW each;\nREFRESH MATERIALIZED VIEW called");
    for view in ["each", "called"] {
        assert_eq!(
            db.query(&format!("SELECT id, n FROM {view} ORDER BY id, n")),
            "1,2;1,5;3,1;3,10",
            "{view}"
        );
    }
    // A function gives its first row, where a query that stands for a value may have only one.
    assert_eq!(db.query("SELECT id, n FROM firsts ORDER BY id"), "1,2;2,NULL;3,10");
    assert_eq!(db.query("SELECT sum(g) FROM series"), "6");
    db.run("REFRESH MATERIALIZED VIEW firsts");
    let sql = "CREATE MATERIALIZED VIEW several AS SELECT (SELECT pieces FROM orders) AS n";
    assert_eq!(error(&mut db, sql).0, "21000");
}

#[test]
fn a_view_without_a_key_has_each_row_as_often_as_its_query() {
    let mut db = shop();
    db.run("CREATE MATERIALIZED VIEW bought AS SELECT product FROM orders");
    assert_eq!(db.query("SELECT product FROM bought ORDER BY 1"), "1;3;3");
    db.run("UPDATE orders SET product = 3 WHERE id = 1;\nREFRESH MATERIALIZED VIEW CONCURRENTLY bought");
    assert_eq!(db.query("SELECT product FROM bought ORDER BY 1"), "3;3;3");
    db.run("DELETE FROM orders WHERE id < 3;\nREFRESH MATERIALIZED VIEW bought");
    assert_eq!(db.query("SELECT product FROM bought"), "3");
    db.run("TRUNCATE orders;\nREFRESH MATERIALIZED VIEW bought");
    assert_eq!(db.query("SELECT count(*) FROM bought"), "0");
}

#[test]
fn columns_have_the_names_and_types_that_are_asked_for() {
    let mut db = shop();
    db.run("CREATE MATERIALIZED VIEW v (a, b) AS SELECT product, count(*), max(pieces) AS c FROM orders GROUP BY product");
    let (_, rows) = db.execute("SELECT * FROM v ORDER BY a LIMIT 1", &[]).unwrap();
    assert_eq!(rows.names, ["a", "b", "c"]);
    assert_eq!(rows.types[0], sql::SqlType::Int4);
    assert_eq!(rows.types[1], sql::SqlType::Int8);
    for (sql, state) in [
        ("CREATE MATERIALIZED VIEW w (a, b) AS SELECT 1 AS x", "42601"),
        ("CREATE MATERIALIZED VIEW w (a, a) AS SELECT 1 AS x, 2 AS y", "42701"),
        ("CREATE MATERIALIZED VIEW w AS SELECT $1::int AS x", "0A000"),
        ("CREATE MATERIALIZED VIEW w AS SELECT 1 AS x; SELECT 1", "42601"),
        ("CREATE MATERIALIZED VIEW w WITH (key = 'x')", "42601"),
        ("CREATE MATERIALIZED VIEW w AS SELECT missing FROM product", "42703"),
        ("CREATE MATERIALIZED VIEW w AS DELETE FROM product", "42601"),
        ("CREATE MATERIALIZED VIEW product AS SELECT 1 AS x", "42P07"),
        ("CREATE MATERIALIZED VIEW w WITH (key = 'y') AS SELECT 1 AS x", "42703"),
        ("CREATE MATERIALIZED VIEW w WITH (prefix = 'w:') AS SELECT 1 AS x, 2 AS y", "22023"),
        ("CREATE MATERIALIZED VIEW w WITH (ttl = '1 s') AS SELECT 1 AS x", "22023"),
        ("CREATE MATERIALIZED VIEW w WITH (refresh = '10 ms') AS SELECT 1 AS x", "22023"),
        ("CREATE MATERIALIZED VIEW w WITH (refresh_on = 'nowhere') AS SELECT 1 AS x", "42P01"),
        ("CREATE MATERIALIZED VIEW w WITH (source = 'pg') AS SELECT 1 AS x", "42704"),
        ("CREATE TABLE w (a INT) WITH (refresh = '10 s')", "22023"),
    ] {
        assert_eq!(error(&mut db, sql).0, state, "{sql}");
    }
    db.run("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1 AS x");
    assert_eq!(db.query("SELECT count(*) FROM v"), "2");
}

#[test]
fn nobody_else_writes_a_view() {
    let mut db = shop();
    db.run(BOARD);
    let cannot = "cannot change materialized view \"board\"".to_owned();
    for native in [true, false] {
        db.session.set_native(Some(native));
        for sql in [
            "INSERT INTO board VALUES (9, 'x', 1)",
            "INSERT INTO board SELECT id, name, 1 FROM product",
            "INSERT INTO board (id) VALUES (1) ON CONFLICT DO NOTHING",
            "UPDATE board SET pieces = 0",
            "UPDATE board SET _stale = true WHERE id = 1",
            "UPDATE board SET _ttl = 1 WHERE id = 1",
            "DELETE FROM board",
            "DELETE FROM board WHERE id = 1",
            "DELETE FROM board WHERE pieces > 1",
            "WITH d AS (DELETE FROM board RETURNING id) SELECT * FROM d",
        ] {
            assert_eq!(error(&mut db, sql), ("42809", cannot.clone()), "{sql}");
        }
    }
    db.session.set_native(None);
    db.run("CREATE VIEW over AS SELECT * FROM board");
    assert_eq!(error(&mut db, "DELETE FROM over").0, "42809");
    db.run("DROP VIEW over");
    for (sql, message) in [
        ("TRUNCATE board", "\"board\" is not a table"),
        ("DROP TABLE board", "\"board\" is not a table"),
        ("DROP MATERIALIZED VIEW product", "\"product\" is not a materialized view"),
        ("REFRESH MATERIALIZED VIEW product", "\"product\" is not a materialized view"),
        ("ALTER MATERIALIZED VIEW product RENAME TO p", "\"product\" is not a materialized view"),
        (
            "ALTER TABLE board ADD COLUMN x INT",
            "ALTER action ADD COLUMN cannot be performed on relation \"board\"",
        ),
        (
            "ALTER MATERIALIZED VIEW board DROP COLUMN name",
            "ALTER action DROP COLUMN cannot be performed on relation \"board\"",
        ),
        ("CREATE EXPIRY RULE r ON board WHEN pieces > 1", "\"board\" is not a table"),
    ] {
        assert_eq!(error(&mut db, sql), ("42809", message.to_owned()), "{sql}");
    }
    assert_eq!(error(&mut db, "REFRESH MATERIALIZED VIEW nowhere").0, "42P01");
    assert_eq!(error(&mut db, "DROP MATERIALIZED VIEW nowhere").0, "42P01");
    db.run("DROP MATERIALIZED VIEW IF EXISTS nowhere");
    assert_eq!(db.query("SELECT count(*) FROM board"), "2");
}

#[test]
fn what_was_never_filled_is_not_read() {
    let mut db = shop();
    db.run(&format!("{BOARD} WITH NO DATA"));
    db.run("CREATE VIEW over AS SELECT id FROM board");
    for sql in ["SELECT * FROM board", "SELECT count(*) FROM over", "SELECT (SELECT max(id) FROM board)"] {
        let (state, message) = error(&mut db, sql);
        assert_eq!(
            (state, message.as_str()),
            ("55000", "materialized view \"board\" has not been populated")
        );
    }
    assert_eq!(error(&mut db, "REFRESH MATERIALIZED VIEW CONCURRENTLY board").0, "0A000");
    assert_eq!(error(&mut db, "REFRESH MATERIALIZED VIEW CONCURRENTLY board WITH NO DATA").0, "42601");
    db.run("REFRESH MATERIALIZED VIEW board WITH DATA");
    assert_eq!(db.query("SELECT count(*) FROM over"), "2");
    db.run("REFRESH MATERIALIZED VIEW board WITH NO DATA");
    assert_eq!(error(&mut db, "SELECT * FROM board").0, "55000");
    db.run("REFRESH MATERIALIZED VIEW board");
    assert_eq!(db.query("SELECT count(*) FROM board"), "2");
}

#[test]
fn a_refresh_that_fails_keeps_the_rows() {
    let mut db = shop();
    db.run("CREATE MATERIALIZED VIEW named WITH (key = 'name', refresh = '10 s') AS SELECT name, div(100, price::numeric) AS n FROM product");
    let all = "SELECT name, n, _stale FROM named ORDER BY name";
    assert_eq!(db.query(all), "cup,20,0;kettle,4,0;teapot,2,0");
    let mut views = runner(&db);
    for (bad, state) in [
        ("UPDATE product SET name = 'cup' WHERE id = 2", "23505"),
        ("UPDATE product SET price = 0 WHERE id = 2", "22012"),
        ("UPDATE product SET name = NULL WHERE id = 2", "23502"),
    ] {
        db.run(bad);
        let (refused, message) = error(&mut db, "REFRESH MATERIALIZED VIEW named");
        assert_eq!(refused, state, "{bad}: {message}");
        assert_eq!(db.query(all), "cup,20,1;kettle,4,1;teapot,2,1");
        assert_eq!(db.query("SELECT last_error FROM sqlcached_views"), message);
        assert_eq!(pass(&db, &mut views, 60_000), []);
        assert_eq!(db.query(all), "cup,20,1;kettle,4,1;teapot,2,1");
        db.run("UPDATE product SET name = 'teapot', price = 40 WHERE id = 2");
        let works = ViewNews { view: "named".into(), error: None };
        assert_eq!(pass(&db, &mut views, 60_000), [works]);
        assert_eq!(db.query(all), "cup,20,0;kettle,4,0;teapot,2,0");
    }
    assert_eq!(db.query("SELECT last_error FROM sqlcached_views"), "NULL");
}

#[test]
fn a_view_that_cannot_be_filled_is_not_made() {
    let mut db = shop();
    let sql = "CREATE MATERIALIZED VIEW twice WITH (key = 'product') AS SELECT product FROM orders";
    let failed = db.execute(sql, &[]).unwrap_err();
    assert_eq!(failed.state, "23505");
    assert_eq!(failed.detail.unwrap().as_str(), "Key (product)=(3) is duplicated.");
    assert_eq!(db.query("SELECT count(*) FROM pg_matviews"), "0");
    // More than half of 64 MiB.
    let large = "CREATE MATERIALIZED VIEW large AS WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n \
                 WHERE x < 40000) SELECT x, hex(zeroblob(500)) AS body FROM n";
    assert_eq!(error(&mut db, large).0, "53200");
    db.run("CREATE MATERIALIZED VIEW small WITH (max_memory = '1 MB') AS SELECT id FROM product");
    assert_eq!(db.query("SELECT count(*) FROM small"), "3");
}

#[test]
fn views_are_refreshed_by_time() {
    let mut db = shop();
    db.run(
        "CREATE MATERIALIZED VIEW dear WITH (refresh = '30 s') AS SELECT name FROM product WHERE price > 20",
    );
    let mut views = runner(&db);
    db.run("UPDATE product SET price = 30 WHERE id = 3");
    assert_eq!(pass(&db, &mut views, 20_000), []);
    assert_eq!(db.query("SELECT count(*), max(_age), max(_stale) FROM dear"), "2,20,0");
    assert_eq!(pass(&db, &mut views, 10_000), []);
    assert_eq!(db.query("SELECT count(*), max(_age), max(_stale) FROM dear"), "3,0,0");
    db.run("ALTER MATERIALIZED VIEW dear SET (refresh = '1 h');\nDELETE FROM product");
    pass(&db, &mut views, 60_000);
    assert_eq!(db.query("SELECT count(*) FROM dear"), "3");
    db.run("ALTER MATERIALIZED VIEW dear RESET (refresh)");
    pass(&db, &mut views, 3_600_000);
    assert_eq!(db.query("SELECT count(*), max(_stale) FROM dear"), "3,0");
}

#[test]
fn views_are_refreshed_when_their_tables_change() {
    let mut db = shop();
    db.run(
        "CREATE MATERIALIZED VIEW total WITH (refresh_on = 'product, orders') AS \
            SELECT sum(price * pieces) AS total FROM product JOIN orders ON product.id = product;
            CREATE MATERIALIZED VIEW half WITH (refresh_on = 'total') AS SELECT total / 2 AS half FROM total;
            CREATE TABLE other (a INT)",
    );
    let mut views = runner(&db);
    pass(&db, &mut views, 1_000);
    let refreshes = "SELECT refreshes FROM sqlcached_views WHERE view_name = 'total'";
    assert_eq!(db.query("SELECT total, half FROM total, half"), "105,52");
    let before = db.query(refreshes);
    db.run("INSERT INTO other VALUES (1)");
    pass(&db, &mut views, 1_000);
    assert_eq!(db.query(refreshes), before, "nothing has changed");
    for (change, total) in [
        ("UPDATE product SET price = 26 WHERE id = 1", "107"),
        ("INSERT INTO orders VALUES (9, 2, 1)", "147"),
        ("DELETE FROM orders WHERE id = 9", "107"),
        ("TRUNCATE orders", "NULL"),
    ] {
        db.run(change);
        pass(&db, &mut views, 1_000);
        assert_eq!(db.query("SELECT total FROM total"), total, "{change}");
    }
    pass(&db, &mut views, 1_000);
    assert_eq!(db.query("SELECT half FROM half"), "NULL");
    let before: u64 = db.query(refreshes).parse().unwrap();
    for at in 0..500 {
        db.run(&format!("INSERT INTO orders VALUES ({at}, 1, 1)"));
    }
    pass(&db, &mut views, 1_000);
    pass(&db, &mut views, 1_000);
    assert_eq!(db.query(refreshes), (before + 1).to_string(), "one refresh for many changes");
    assert_eq!(db.query("SELECT total FROM total"), "13000");
}

#[test]
fn a_view_keeps_what_it_reads() {
    let mut db = shop();
    db.run(BOARD);
    db.run("CREATE MATERIALIZED VIEW names AS SELECT name FROM board");
    for sql in [
        "DROP TABLE product",
        "DROP MATERIALIZED VIEW board",
        "ALTER TABLE product RENAME TO goods",
        "ALTER TABLE product RENAME COLUMN name TO title",
        "ALTER TABLE product DROP COLUMN name",
        "ALTER MATERIALIZED VIEW board RENAME TO table_of_all",
    ] {
        assert_eq!(error(&mut db, sql).0, "2BP01", "{sql}");
    }
    db.run("ALTER MATERIALIZED VIEW names RENAME TO titles;\nALTER MATERIALIZED VIEW titles RENAME COLUMN name TO title");
    db.run("REFRESH MATERIALIZED VIEW titles");
    assert_eq!(db.query("SELECT title FROM titles ORDER BY 1"), "cup;kettle");
    db.run("DROP TABLE product CASCADE");
    assert_eq!(db.query("SELECT count(*) FROM pg_matviews"), "0");
}

#[test]
fn a_view_has_indexes_and_comments() {
    let mut db = shop();
    db.run(BOARD);
    db.run(
        "CREATE INDEX board_pieces ON board (pieces);
         CREATE UNIQUE INDEX board_name ON board (lower(name));
         COMMENT ON MATERIALIZED VIEW board IS 'what sells'",
    );
    db.run("UPDATE orders SET pieces = 20 WHERE id = 1;\nREFRESH MATERIALIZED VIEW board");
    assert_eq!(db.query("SELECT name FROM board WHERE pieces = 20"), "kettle");
    assert_eq!(db.query("SELECT id FROM board WHERE lower(name) = 'cup'"), "3");
    assert!(db.query("EXPLAIN QUERY PLAN SELECT name FROM board WHERE pieces = 20").contains("board_pieces"));
    assert_eq!(db.query("SELECT obj_description('board'::regclass, 'pg_class')"), "what sells");
    db.run("UPDATE product SET name = 'CUP' WHERE id = 1");
    assert_eq!(error(&mut db, "REFRESH MATERIALIZED VIEW board").0, "23505");
    assert_eq!(db.query("SELECT name FROM board ORDER BY id"), "kettle;cup");
}

#[test]
fn transactions_see_a_refresh_at_once_and_what_they_wrote_after_their_end() {
    let mut db = shop();
    db.run(BOARD);
    let mut views = runner(&db);
    db.run("BEGIN;\nINSERT INTO orders VALUES (4, 2, 7);\nREFRESH MATERIALIZED VIEW board");
    assert_eq!(db.query("SELECT count(*) FROM board"), "2");
    db.run("COMMIT");
    pass(&db, &mut views, 1_000);
    assert_eq!(db.query("SELECT count(*) FROM board"), "3");
    db.run("BEGIN;\nCREATE MATERIALIZED VIEW gone AS SELECT 1 AS x;\nROLLBACK");
    assert_eq!(db.query("SELECT count(*) FROM pg_matviews"), "1");
    db.run("BEGIN;\nDROP MATERIALIZED VIEW board;\nROLLBACK");
    assert_eq!(error(&mut db, "SELECT * FROM board").0, "55000", "it has no rows");
    db.run("REFRESH MATERIALIZED VIEW board");
    assert_eq!(db.query("SELECT count(*) FROM board"), "3");
}

#[test]
fn tools_find_a_view() {
    let mut db = shop();
    db.run(BOARD);
    for (sql, expected) in [
        (
            "SELECT relkind, relispopulated, reloptions::text FROM pg_class WHERE relname = 'board'",
            "m,1,{key=id}",
        ),
        ("SELECT matviewname, ispopulated, hasindexes FROM pg_matviews", "board,1,0"),
        ("SELECT count(*) FROM pg_tables WHERE tablename = 'board'", "0"),
        ("SELECT count(*) FROM information_schema.tables WHERE table_name = 'board'", "0"),
        ("SELECT count(*) FROM information_schema.columns WHERE table_name = 'board'", "0"),
        ("SELECT count(*) FROM pg_constraint WHERE conrelid = 'board'::regclass", "0"),
        ("SELECT count(*) FROM pg_attribute WHERE attrelid = 'board'::regclass AND attnum > 0", "3"),
    ] {
        assert_eq!(db.query(sql), expected, "{sql}");
    }
    let shown = db.query("SELECT pg_get_viewdef('board'::regclass)");
    assert!(shown.contains("FROM public.product p JOIN public.orders o"), "{shown}");
}

#[test]
fn the_query_stops_in_time() {
    let mut db = Db::with_limits(Limits::default());
    db.run("CREATE MATERIALIZED VIEW v AS SELECT 1 AS x WITH NO DATA;
            CREATE MATERIALIZED VIEW slow WITH (refresh_timeout = '1 s', refresh = '10 s') AS WITH RECURSIVE n (x) AS \
            (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) AS n FROM n WITH NO DATA");
    let (store, clock) = (Arc::clone(&db.store), Arc::clone(&db.clock));
    let mut views = runner(&db);
    let moving = std::thread::spawn(move || {
        // The watch looks at the clock, which stands still unless somebody moves it.
        while store.catalog().table("slow").unwrap().refresh_figures().unwrap().errors == 0 {
            clock.advance(Duration::from_millis(100));
            std::thread::yield_now();
        }
    });
    let news = pass(&db, &mut views, 0);
    moving.join().unwrap();
    let failed = "canceling statement due to statement timeout".to_owned();
    assert_eq!(news, [ViewNews { view: "slow".into(), error: Some(failed) }]);
}

/// Random changes of two tables, beside the plain view of the same query.
#[test]
fn a_refreshed_view_has_the_rows_of_the_plain_one() {
    let mut random = fastrand::Rng::with_seed(seed());
    let mut db = Db::new();
    db.run("CREATE TABLE a (id INT PRIMARY KEY, g INT, t TEXT);\nCREATE TABLE b (g INT, n NUMERIC)");
    let queries = [
        ("g", "SELECT a.g, count(*) AS n, min(t) AS t FROM a WHERE g IS NOT NULL GROUP BY a.g"),
        ("", "SELECT a.t, b.n, a.g FROM a LEFT JOIN b ON a.g = b.g"),
        ("", "SELECT g, n FROM b UNION ALL SELECT g, id FROM a"),
        ("id", "SELECT id, t, CASE WHEN g > 2 THEN 'high' END AS h FROM a"),
    ];
    for (at, (key, query)) in queries.iter().enumerate() {
        let key = if key.is_empty() { String::new() } else { format!("key = '{key}', ") };
        db.run(&format!("CREATE VIEW p{at} AS {query};\nCREATE MATERIALIZED VIEW m{at} WITH ({key}refresh_on = 'a, b') AS {query}"));
    }
    let mut views = runner(&db);
    for round in 0..120 {
        for _ in 0..random.usize(0..6) {
            let (id, g) = (random.u32(0..30), random.u32(0..5));
            db.run(&match random.u8(0..6) {
                0 => format!("INSERT INTO a VALUES ({id}, {g}, 't{g}') ON CONFLICT DO NOTHING"),
                1 => {
                    format!("INSERT INTO a VALUES ({id}, NULL, NULL) ON CONFLICT (id) DO UPDATE SET t = 'x'")
                }
                2 => format!("DELETE FROM a WHERE id = {id}"),
                3 => format!("INSERT INTO b VALUES ({g}, {id}.50)"),
                4 => format!("DELETE FROM b WHERE n > {id}"),
                _ => format!("UPDATE a SET g = {g} WHERE id < {id}"),
            });
        }
        pass(&db, &mut views, 5_000);
        for at in 0..queries.len() {
            let differ = format!("SELECT * FROM p{at} EXCEPT ALL SELECT * FROM m{at}");
            let sorted = |db: &mut Db, name: &str| {
                let mut rows: Vec<String> =
                    db.query(&format!("SELECT * FROM {name}{at}")).split(';').map(str::to_owned).collect();
                rows.sort();
                rows
            };
            assert_eq!(sorted(&mut db, "p"), sorted(&mut db, "m"), "round {round}: {differ}");
        }
    }
}

/// Readers count while the view changes between two states that differ in every row.
#[test]
fn readers_see_the_old_rows_or_the_new_ones() {
    const ROWS: i64 = 3_000;
    let mut db = Db::new();
    db.run(&format!(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT);
         INSERT INTO t WITH RECURSIVE s (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM s WHERE x < {ROWS}) SELECT x, 0 FROM s;
         CREATE MATERIALIZED VIEW keyed WITH (key = 'id') AS SELECT id, n FROM t;
         CREATE MATERIALIZED VIEW loose AS SELECT n FROM t"
    ));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|threads| {
        let readers: Vec<_> = ["keyed", "loose"]
            .into_iter()
            .map(|view| {
                let (store, stop) = (Arc::clone(&db.store), &stop);
                threads.spawn(move || {
                    let mut executor = Executor::new(store, Limits::default()).unwrap();
                    let (mut session, mut looks) = (Session::new(), 0_u32);
                    while !stop.load(relaxed) {
                        let mut rows = crate::common::Rows::default();
                        let sql = format!("SELECT count(*), min(n), max(n) FROM {view}");
                        executor.execute(&mut session, &sql, &[], &Cancel::new(), &mut rows).unwrap();
                        let [count, least, most] = rows.rows[0].as_slice() else { panic!() };
                        assert_eq!(*count, store::value::Value::Integer(ROWS), "{view}");
                        assert_eq!(least, most, "{view}");
                        looks += 1;
                    }
                    looks
                })
            })
            .collect();
        for _ in 0..15 {
            db.run(
                "UPDATE t SET n = n + 1;\nREFRESH MATERIALIZED VIEW keyed;\nREFRESH MATERIALIZED VIEW loose",
            );
        }
        stop.store(true, relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
}
