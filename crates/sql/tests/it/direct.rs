//! Statements on rows by their keys and indexes mean to the native executor what they mean to SQLite: each runs by
//! both.

use crate::common::{Db, seed};
use sql::ComputedBy;
use store::value::Value;

fn filled() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k TEXT PRIMARY KEY, page INT, tag TEXT, w REAL);
         CREATE INDEX t_page ON t (page, tag);
         CREATE TABLE p (a INT, b TEXT, c BLOB, PRIMARY KEY (a, b));
         INSERT INTO t VALUES ('a', 1, 'x', 1), ('b', 1, 'y', 2), ('17', 2, 'x', 3), ('n', NULL, NULL, NULL);
         INSERT INTO p VALUES (1, 'x', x'61'), (2, 'y', x'')",
    );
    db
}

/// The same by SQLite alone.
fn general() -> Db {
    let mut db = filled();
    db.session.set_native(Some(false));
    db
}

#[test]
fn point_queries_answer_like_sqlite() {
    let mut db = filled();
    let values = [
        Value::from("a"),
        Value::from("17"),
        Value::Integer(17),
        Value::Integer(1),
        Value::Real(1.0),
        Value::Real(1.5),
        Value::from("1"),
        Value::from("1.0"),
        Value::from("x"),
        Value::Blob(b"a".to_vec()),
        Value::Null,
    ];
    for value in &values {
        let one = std::slice::from_ref(value);
        for sql in [
            "SELECT k, w AS weight, k FROM t WHERE k = ?",
            "SELECT * FROM t WHERE ? = t.k",
            "SELECT c FROM p WHERE b = 'x' AND a = ?",
            "SELECT a FROM p WHERE (b = $1) AND (a = 1)",
        ] {
            let [native, sqlite] = db.both(|db| db.answer(false, sql, one));
            assert_eq!(native, sqlite, "{sql} {value:?}");
        }
    }
}

/// Values of every kind, and of sizes that a `LIMIT` may have.
fn any_value(random: &mut fastrand::Rng) -> Value {
    match random.u8(0..9) {
        0 => Value::Null,
        1 => Value::Real(f64::from(random.i8(-3..6)) / 2.0),
        2 => Value::from(format!("{}", random.u8(0..6)).as_str()),
        3 => Value::Blob(vec![b'0' + random.u8(0..6)]),
        4 => Value::from("x"),
        _ => Value::Integer(i64::from(random.i8(-2..6))),
    }
}

/// Random columns, orders and limits along an index, and lists of keys: the same rows in the same order as by SQLite.
#[test]
fn ranges_and_lists_answer_like_sqlite() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k TEXT PRIMARY KEY, page INT, n INT, tag TEXT);
         CREATE INDEX t_page ON t (page, n DESC, k);
         CREATE INDEX t_tag ON t (tag, n, k);
         CREATE TABLE i (k INTEGER PRIMARY KEY, v ANY)",
    );
    for number in 0..120 {
        let (page, n) = (random.u8(0..5), random.u8(0..9));
        db.run(&format!("INSERT INTO t VALUES ('{number}', {page}, nullif({n}, 0), '{n}')"));
        db.run(&format!("INSERT INTO i VALUES ({number} - 9, {n})"));
    }
    for round in 0..600 {
        let within = random.bool();
        if within {
            db.run("BEGIN;\nUPDATE t SET n = 7 WHERE k = '17';\nDELETE FROM t WHERE k = '18'");
        }
        let order = ["n DESC, k", "n, k DESC", "page, n DESC, k", "tag, n, k", "tag DESC, n DESC, k DESC"];
        let order = order[random.usize(..order.len())];
        let condition = ["page = ?1", "?1 = tag", "t.tag = ?1 AND n = 3"][random.usize(..3)];
        let limit =
            ["", " LIMIT ?2", " LIMIT 3", " LIMIT ?2 OFFSET ?3", " LIMIT -1 OFFSET 2"][random.usize(..5)];
        let values: Vec<Value> = (0..3).map(|_| any_value(&mut random)).collect();
        let count = 1 + usize::from(limit.contains("?2")) + usize::from(limit.contains("?3"));
        let sql = format!("SELECT k, n, tag FROM t WHERE {condition} ORDER BY {order}{limit}");
        let [a, b] = db.both(|db| db.answer(within, &sql, &values[..count]));
        assert_eq!(a, b, "SEED={seed} round {round}: {sql} {values:?}");
        for (table, columns) in [("t", "k, page"), ("i", "v, k AS key")] {
            let sql = format!("SELECT {columns} FROM {table} WHERE k IN (?1, '17', ?2, ?3, 5)");
            let [a, b] = db.both(|db| db.answer(within, &sql, &values));
            assert_eq!(a, b, "SEED={seed} round {round}: {sql} {values:?}");
        }
        if within {
            db.run("ROLLBACK");
        }
    }
}

#[test]
fn deletes_leave_what_sqlite_would_leave() {
    let values = [
        Value::from("a"),
        Value::Integer(1),
        Value::Integer(17),
        Value::Real(2.0),
        Value::Real(0.5),
        Value::from("1"),
        Value::from("x"),
        Value::Blob(b"a".to_vec()),
        Value::Null,
    ];
    for value in &values {
        for condition in ["k = ?", "page = ?", "page = ? AND tag = 'x'", "tag = 'y' AND ?1 = page"] {
            let (mut native, mut sqlite) = (filled(), general());
            let one = std::slice::from_ref(value);
            let sql = format!("DELETE FROM t WHERE {condition}");
            let [a, b] = [&mut native, &mut sqlite].map(|db| db.answer(false, &sql, one));
            assert_eq!(a, b, "{condition} {value:?}");
            let rest = "SELECT k FROM t ORDER BY k";
            assert_eq!(native.query(rest), sqlite.query(rest), "{condition} {value:?}");
        }
    }
}

/// Conditions joined by `OR`, of which several may be true of a row: the same rows go as by SQLite, and each counts
/// once.
#[test]
fn deletions_of_either_leave_what_sqlite_would_leave() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let definitions = "CREATE TABLE t (k TEXT PRIMARY KEY, page INT, n INT, tag TEXT);
         CREATE INDEX t_page ON t (page, n);
         CREATE INDEX t_tag ON t (tag)";
    let (mut native, mut sqlite) = (Db::new(), Db::new());
    sqlite.session.set_native(Some(false));
    native.run(definitions);
    sqlite.run(definitions);
    let conditions = [
        "page = ?1",
        "page = ?2 AND n = ?1",
        "t.tag = ?1",
        "(tag = 'x')",
        "k = ?2",
        "k = '7'",
        "(n = 2 AND ?2 = page)",
        // Nothing leads there.
        "n = ?1",
    ];
    for round in 0..200 {
        let rows: Vec<String> = (0..30)
            .map(|number| {
                let [page, n] = [random.u8(0..4), random.u8(0..4)];
                let tag = ["NULL", "'x'", "'1'", "'y'"][random.usize(..4)];
                format!("('{number}', nullif({page}, 0), {n}, {tag})")
            })
            .collect();
        let fill = format!("DELETE FROM t;\nINSERT INTO t VALUES {}", rows.join(", "));
        let within = random.bool();
        let chosen: Vec<&str> =
            (0..random.usize(2..11)).map(|_| conditions[random.usize(..conditions.len())]).collect();
        let condition = chosen.join(" OR ");
        let values = [any_value(&mut random), any_value(&mut random)];
        let values =
            &values[..if condition.contains("?2") { 2 } else { usize::from(condition.contains("?1")) }];
        let sql = format!("DELETE FROM t WHERE {condition}");
        let left = [&mut native, &mut sqlite].map(|db| {
            db.run(&fill);
            if within {
                db.run("BEGIN;\nINSERT INTO t VALUES ('own', 1, 2, 'x');\nDELETE FROM t WHERE k = '8'");
            }
            let done = db.execute(&sql, values).map(|(done, _)| done.affected).map_err(|error| error.state);
            if within {
                db.run("COMMIT");
            }
            (done, db.query("SELECT k, page, n, tag FROM t ORDER BY k"))
        });
        assert_eq!(left[0], left[1], "SEED={seed} round {round}: {condition} {values:?}");
    }
}

/// Writes of single rows in transactions, while another session writes the same rows: the same answers, the same rows
/// seen before the end, the same end.
#[test]
fn writes_by_key_in_a_transaction_are_those_of_sqlite() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let definitions = "CREATE TABLE t (k INT PRIMARY KEY, n INT, tag TEXT NOT NULL) WITH (ttl = '1 h');
         CREATE INDEX t_tag ON t (tag, n);
         CREATE TABLE u (k INT PRIMARY KEY, n INT UNIQUE, tag TEXT)";
    let (mut native, mut sqlite) = (Db::new(), Db::new());
    native.session.set_native(Some(true));
    sqlite.session.set_native(Some(false));
    native.run(definitions);
    sqlite.run(definitions);
    let statements = [
        "INSERT INTO t VALUES (?1, ?2, 'x')",
        "INSERT INTO t (tag, k) VALUES (?2, ?1)",
        "INSERT INTO t VALUES (?1, ?2, 'y') ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (?1, ?2, 'z') ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n, tag = excluded.tag",
        "REPLACE INTO t VALUES (?1, ?2, 'r')",
        "UPDATE t SET n = n + 1, tag = ?2 WHERE k = ?1",
        "UPDATE t SET n = ?2 WHERE k = ?1 AND tag = 'x'",
        "DELETE FROM t WHERE k = ?1 OR n = ?2",
        "INSERT INTO u VALUES (?1, ?2, 'x')",
        "UPDATE u SET n = ?2 WHERE k = ?1",
        "REPLACE INTO u VALUES (?1, ?2, 'r')",
    ];
    let rows = "SELECT 't', k, n, tag FROM t UNION ALL SELECT 'u', k, n, tag FROM u ORDER BY 1, 2";
    for round in 0..400 {
        let run: Vec<(&str, [Value; 2])> = (0..random.usize(1..8))
            .map(|_| {
                (statements[random.usize(..statements.len())], [key(&mut random), any_value(&mut random)])
            })
            .collect();
        // Of a key that the transaction writes, so that one of both has to be refused.
        let written =
            run.iter().find_map(|(_, [key, _])| if let Value::Integer(k) = key { Some(*k) } else { None });
        let outside = written.filter(|_| random.bool()).map(|k| {
            ["DELETE FROM t WHERE k = ", "UPDATE t SET n = 9 WHERE k = "][random.usize(..2)].to_owned()
                + &k.to_string()
        });
        let ends = [&mut native, &mut sqlite].map(|db| {
            db.run("INSERT INTO t SELECT g, g, 'x' FROM generate_series(0, 5) AS g ON CONFLICT DO NOTHING");
            let mut other = sql::Session::new();
            std::mem::swap(&mut db.session, &mut other);
            // The session of a database is the one that writes outside, from here to the end.
            let mut answers = Vec::new();
            let inside = |db: &mut Db, own: &mut sql::Session, sql: &str, values: &[Value]| {
                std::mem::swap(&mut db.session, own);
                let answer = db.execute(sql, values);
                std::mem::swap(&mut db.session, own);
                answer.map(|(done, rows)| (done.affected, rows)).map_err(|error| error.to_string())
            };
            answers.push(inside(db, &mut other, "BEGIN", &[]));
            for (sql, values) in &run {
                answers.push(inside(db, &mut other, "SAVEPOINT s", &[]));
                let answer = inside(db, &mut other, sql, values);
                if answer.is_err() {
                    answers.push(inside(db, &mut other, "ROLLBACK TO s", &[]));
                }
                answers.push(answer);
            }
            answers.push(inside(db, &mut other, rows, &[]));
            if let Some(outside) = &outside {
                db.run(outside);
            }
            answers.push(inside(db, &mut other, "COMMIT", &[]));
            std::mem::swap(&mut db.session, &mut other);
            (answers, db.query(rows))
        });
        assert_eq!(ends[0], ends[1], "SEED={seed} round {round}: {run:?}, outside {outside:?}");
    }
}

fn key(random: &mut fastrand::Rng) -> Value {
    match random.u8(0..20) {
        0 => Value::Null,
        1 => Value::from("3"),
        2 => Value::Real(1.5),
        _ => Value::Integer(random.i64(0..6)),
    }
}

/// Several writes in a transaction need no SQLite, where the key is all that they may break.
#[test]
fn writes_by_key_in_a_transaction_need_no_sqlite() {
    let mut db = filled();
    db.session.set_native(Some(true));
    db.run("CREATE TABLE u (k INT PRIMARY KEY, n INT UNIQUE);\nBEGIN");
    for (sql, native) in [
        ("INSERT INTO t VALUES ('new', 1, 'x', NULL)", true),
        ("UPDATE t SET page = page + 1 WHERE k = 'new'", true),
        (
            "INSERT INTO t VALUES ('new', 1, 'x', NULL) ON CONFLICT (k) DO UPDATE SET page = excluded.page",
            true,
        ),
        ("INSERT INTO t VALUES ('new', 1, 'x', NULL) ON CONFLICT DO NOTHING", true),
        ("REPLACE INTO t VALUES ('b', 7, 'q', NULL)", true),
        ("INSERT INTO u VALUES (1, 1)", false),
    ] {
        assert_eq!(db.computed_by(sql) == ComputedBy::Native, native, "{sql}");
    }
    assert_eq!(db.state("INSERT INTO t VALUES ('new', 1, 'x', NULL)"), "23505");
}

#[test]
fn short_ways_refuse_what_the_general_way_refuses() {
    let mut db = filled();
    assert_eq!(db.state("DELETE FROM t WHERE k = ?"), "08P01");
    assert_eq!(db.state("SELECT nope FROM t WHERE k = 'a'"), "42703");
    assert_eq!(db.state("SELECT k FROM nope WHERE k = 'a'"), "42P01");
    assert_eq!(db.state("DELETE FROM t WHERE nope = 'a'"), "42703");
    assert_eq!(db.query("SELECT key FROM memcached WHERE key = 'a'"), "");
    db.run("DROP INDEX t_page");
    assert_eq!(db.affected("DELETE FROM t WHERE page = 1"), 2);
}

/// Deletions of all rows, in one step and row by row, tell the same number and leave the same.
#[test]
fn a_deletion_of_all_rows_counts_them() {
    let every_form = [
        "DELETE FROM t",
        "DELETE FROM t WHERE 1",
        "DELETE FROM t WHERE TRUE",
        "DELETE FROM main.t WHERE (1 = 1)",
        "DELETE FROM t WHERE 1 = 1 OR k = 'a'",
        "DELETE FROM t WHERE k IS NOT NULL",
        "DELETE FROM t AS other",
    ];
    for sql in every_form {
        let mut db = filled();
        assert_eq!(db.affected(sql), 4, "{sql}");
        assert_eq!(db.query("SELECT count(*), count(k) FROM t"), "0,0", "{sql}");
        assert_eq!(db.query("SELECT count(*) FROM p"), "2", "{sql}");
        assert_eq!(db.affected(sql), 0, "{sql}");
        db.run("INSERT INTO t VALUES ('a', 1, 'x', 1)");
        assert_eq!(db.query("SELECT k FROM t WHERE page = 1"), "a", "{sql}");
        assert_eq!(db.affected(sql), 1, "{sql}");
    }
    let mut db = filled();
    for nothing in ["DELETE FROM t WHERE 0", "DELETE FROM t WHERE FALSE", "DELETE FROM t WHERE 1 = 2"] {
        assert_eq!(db.affected(nothing), 0, "{nothing}");
    }
    // A text of that word is no truth, and neither is a column of that name.
    assert_eq!(db.affected("DELETE FROM t WHERE 'true'"), 0);
    db.run("CREATE TABLE named (k INT PRIMARY KEY, \"true\" INT);\nINSERT INTO named VALUES (1, 0), (2, 1)");
    assert_eq!(db.affected("DELETE FROM named WHERE true"), 1);
    assert_eq!(db.query("DELETE FROM named RETURNING k"), "1");
    assert_eq!(db.state("DELETE FROM nowhere"), "42P01");
}

#[test]
fn a_deletion_of_all_rows_is_part_of_its_transaction() {
    let mut db = filled();
    db.run("BEGIN;\nINSERT INTO t VALUES ('own', 5, 'z', 5);\nSAVEPOINT s");
    assert_eq!(db.affected("DELETE FROM t"), 5);
    assert_eq!(db.query("SELECT count(*) FROM t"), "0");
    db.run("ROLLBACK TO s");
    assert_eq!(db.query("SELECT count(*) FROM t"), "5");
    assert_eq!(db.affected("DELETE FROM t WHERE 1"), 5);
    db.run("INSERT INTO t VALUES ('a', 9, 'new', 9);\nCOMMIT");
    assert_eq!(db.query("SELECT k, page FROM t"), "a,9");
    db.run("BEGIN;\nDELETE FROM t;\nROLLBACK");
    assert_eq!(db.query("SELECT k, page FROM t"), "a,9");
}

/// A transaction that read rows which all went meanwhile does not bring them back.
#[test]
fn who_read_rows_that_all_went_meanwhile_is_refused() {
    let mut db = filled();
    db.run("BEGIN;\nUPDATE t SET w = 7 WHERE k = 'a'");
    let table = db.store.catalog().table("t").cloned().unwrap();
    assert_eq!(db.store.remove_whole(&table, None).unwrap(), Some(4));
    assert_eq!(db.state("COMMIT"), "40001");
    assert_eq!(db.query("SELECT count(*) FROM t"), "0");
}

/// Rows that have ended are not counted, though they are not cleared away yet.
#[test]
fn a_deletion_of_all_rows_counts_no_row_that_has_ended() {
    let mut db = filled();
    db.run("UPDATE t SET _ttl = 10 WHERE k = 'b'");
    db.clock.advance(std::time::Duration::from_secs(11));
    assert_eq!(db.affected("DELETE FROM t"), 3);
    assert_eq!(db.affected("DELETE FROM t"), 0);
}

/// Ways to write one condition, literals of any length among them.
fn spellings() -> (Vec<String>, Vec<String>) {
    let by_key = [
        "k = 'a'",
        "'a' = k",
        "(k = 'a')",
        "((k) = ('a'))",
        "t.k = 'a'",
        "T.\"k\" = 'a'",
        "k = 'a' AND 1",
        "TRUE AND ('a' = t.k)",
        "/* a comment */ k = 'a' -- another",
    ];
    let by_index = [
        "page = 1 AND tag = 'x'",
        "tag = 'x' AND page = 1",
        "(page = 1) AND ('x' = t.tag)",
        "(t.page = 1 AND (tag = 'x'))",
    ];
    let long = |column: &str| format!("{column} = '{}'", "a".repeat(100_000));
    let by_key = by_key.iter().map(|&text| text.to_owned()).chain([long("k")]).collect();
    let by_index = by_index
        .iter()
        .map(|&text| text.to_owned())
        .chain([format!("page = 1 AND {}", long("tag"))])
        .collect();
    (by_key, by_index)
}

/// `UPDATE ... WHERE (k = 'a')` went the long way, where the same `DELETE` did not.
#[test]
fn statements_of_one_meaning_take_one_way() {
    let mut db = filled();
    let (by_key, by_index) = spellings();
    for condition in by_key.iter().chain(&by_index) {
        for statement in
            ["SELECT k, page FROM t WHERE", "SELECT * FROM t WHERE", "SELECT count(*) FROM t WHERE"]
        {
            assert!(db.is_native(&format!("{statement} {condition}")), "{statement} {condition:.100}");
        }
    }
    for condition in &by_key {
        for set in ["page = 7", "page = page + 1", "page = (t.page * 2), tag = 'x'"] {
            let sql = format!("UPDATE t SET {set} WHERE {condition}");
            assert!(db.is_native(&sql), "{sql:.100}");
        }
    }
    for condition in by_key.iter().chain(&by_index) {
        db.run("INSERT OR REPLACE INTO t VALUES ('a', 1, 'x', 1)");
        let sql = format!("DELETE FROM t WHERE {condition}");
        assert!(db.is_native(&sql), "{sql:.100}");
    }
    db.session.set_native(Some(true));
    for statement in [
        "SELECT x.k FROM t AS x WHERE x.k = 'a'",
        "SELECT k FROM t WHERE (page = 1) AND tag = ('x') ORDER BY t.tag LIMIT (3)",
        "SELECT k FROM t WHERE k IN ('a', ('b'))",
        "SELECT k, page FROM t WHERE t.k = 'a' ORDER BY t.page DESC, k LIMIT 1",
        "SELECT k FROM t WHERE k = 'a' LIMIT 1 OFFSET 1",
        "UPDATE t AS x SET page = x.page + 1 WHERE x.k = 'a'",
        "DELETE FROM t AS x WHERE x.k = 'none'",
        "DELETE FROM t WHERE k IN ('none', 'nobody')",
        "DELETE FROM t WHERE (k = 'none') OR ((page = 99) OR 98 = t.page)",
        "INSERT INTO t VALUES ('n1', 2, 'x', NULL)",
        "insert into main.T (page, \"k\") values ((2), ('n2'))",
        "REPLACE INTO t (k, page) VALUES ('n2', -3)",
        "INSERT INTO t (k, page) VALUES ('n2', 1) ON CONFLICT (k) DO UPDATE SET page = (excluded.page) + t.page",
        "INSERT INTO t (k, page) VALUES ('n3', 1), ('n4', 2)",
    ] {
        assert_eq!(db.computed_by(statement), ComputedBy::Native, "{statement}");
    }
}
