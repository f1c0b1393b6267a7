//! Values of PostgreSQL's operators and functions: arrays, JSON, numbers. Each answer is PostgreSQL 15's.

mod common;

use common::Db;
use store::value::Value;

/// Runs each statement in a database made by the script and compares its rows.
fn check(script: &str, answers: &[(&str, &str)]) {
    let mut db = Db::new();
    db.run(script);
    for (sql, expected) in answers {
        assert_eq!(db.query(sql), *expected, "{sql}");
    }
}

/// Only the first array was stored, and NULL in the other columns: the bulk insert of several drivers.
#[test]
fn arrays_side_by_side_fill_a_column_each() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT PRIMARY KEY, b TEXT, c INT)");
    let arrays = [Value::from("{1,2,3}"), Value::from("{x,\"y,z\",NULL}"), Value::from("{7,8}")];
    db.execute("INSERT INTO t SELECT * FROM unnest($1::int[], $2::text[], $3::int[])", &arrays).unwrap();
    assert_eq!(db.query("SELECT * FROM t ORDER BY a"), "1,x,7;2,y,z,8;3,NULL,NULL");
    let more = [Value::from("{4}"), Value::from("{w}")];
    db.execute("INSERT INTO t (a, b) SELECT * FROM UNNEST($1::int[], $2::text[])", &more).unwrap();
    db.execute(
        "INSERT INTO t (b, a) SELECT u.b, u.a FROM unnest($1::int[], $2::text[]) AS u(a, b) \
         ON CONFLICT (a) DO UPDATE SET b = excluded.b || '!'",
        &more,
    )
    .unwrap();
    assert_eq!(db.query("SELECT * FROM t WHERE a = 4"), "4,w!,NULL");
    assert_eq!(db.state("SELECT * FROM unnest(ARRAY[1], ARRAY[2]) AS u(a, b, c)"), "42P10");
}

#[test]
fn rows_of_unnest() {
    check(
        "CREATE TABLE t (id INT PRIMARY KEY, tags TEXT[]);\n\
         INSERT INTO t VALUES (1, '{a,b}'), (2, '{}'), (3, NULL), (4, '{c}')",
        &[
            ("SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a'])", "1,a;2,NULL"),
            ("SELECT u.y, x + 1 FROM unnest('{1,2}'::int[], '{p,q}'::text[]) u(x, y)", "p,2;q,3"),
            ("SELECT * FROM unnest('{1,2}'::int[], '{}'::text[]) WITH ORDINALITY AS u(x, y, n)", "1,NULL,1;2,NULL,2"),
            ("SELECT sum(x) FROM unnest(ARRAY[1, 2], ARRAY['a']) AS u(x, y)", "3"),
            ("SELECT * FROM unnest(NULL::int[], NULL::int[]) AS u(x, y)", ""),
            ("SELECT id, unnest(tags) FROM t ORDER BY 1, 2", "1,a;1,b;4,c"),
            ("SELECT unnest(ARRAY[1, 2, 3]), unnest(ARRAY['a', 'b'])", "1,a;2,b;3,NULL"),
            ("SELECT UNNEST(ARRAY[1, 2]) AS n, generate_subscripts(ARRAY[7, 8], 1) AS s", "1,1;2,2"),
            ("SELECT id FROM t WHERE id IN (SELECT unnest('{4,1,9}'::int[])) ORDER BY id", "1;4"),
            ("SELECT x + 1 FROM (SELECT unnest('{4,1}'::int[]) AS x) AS q ORDER BY 1", "2;5"),
            ("SELECT e, o FROM unnest('{p,q}'::text[]) WITH ORDINALITY AS u(e, o)", "p,1;q,2"),
        ],
    );
}

/// The array was decoded once for each of its elements: 20,000 took 17 seconds, and these would take half an hour.
#[test]
fn an_array_in_a_list_is_decoded_once() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY);\nINSERT INTO t SELECT x FROM generate_series(1, 5) AS g(x)");
    let numbers: Vec<String> = (1..=200_000).map(|number: u32| number.to_string()).collect();
    let array = [Value::from(format!("{{{}}}", numbers.join(",")))];
    assert_eq!(db.query_with("SELECT count(*) FROM t WHERE id IN (SELECT unnest($1::int[]))", &array), "5");
    assert_eq!(db.query_with("SELECT count(*) FROM (SELECT unnest($1::int[])) AS q", &array), "200000");
}
