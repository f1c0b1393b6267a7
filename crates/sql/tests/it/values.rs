//! Values of PostgreSQL's operators and functions: arrays, JSON, numbers. Each answer is PostgreSQL 15's.

use crate::common::Db;
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
            (
                "SELECT * FROM unnest('{1,2}'::int[], '{}'::text[]) WITH ORDINALITY AS u(x, y, n)",
                "1,NULL,1;2,NULL,2",
            ),
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

/// `jsonb - key` was the number 0, which an UPDATE stored in the place of the value, and `||` joined the two texts.
#[test]
fn operators_of_jsonb() {
    check(
        "CREATE TABLE j (id INT PRIMARY KEY, d JSONB, name TEXT);\n\
         INSERT INTO j VALUES (1, '{\"a\": 1, \"b\": 2}', 'a')",
        &[
            ("SELECT d - 'a' FROM j", "{\"b\":2}"),
            ("SELECT d - name FROM j", "{\"b\":2}"),
            ("SELECT '{\"a\":1,\"b\":1.10}'::jsonb - 'a'", "{\"b\":1.10}"),
            ("SELECT d - ARRAY['a', 'b'], d - '{b}'::text[], d - NULL FROM j", "{},{\"a\":1},NULL"),
            ("SELECT '[1,2,3]'::jsonb - 0, '[1,2,3]'::jsonb - -1, '[1,2]'::jsonb - 5", "[2,3],[1,2],[1,2]"),
            ("SELECT '[\"a\",\"b\",\"a\",1]'::jsonb - 'a'", "[\"b\",1]"),
            ("SELECT d || '{\"b\": 3, \"c\": [1]}' FROM j", "{\"a\":1,\"b\":3,\"c\":[1]}"),
            ("SELECT '{\"x\":1}' || d FROM j", "{\"a\":1,\"b\":2,\"x\":1}"),
            ("SELECT '[1]'::jsonb || '2'::jsonb, '1'::jsonb || '2'::jsonb", "[1,2],[1,2]"),
            (
                "SELECT '{\"a\":1}'::jsonb || '1'::jsonb, '[1]'::jsonb || '{\"a\":1}'",
                "[{\"a\":1},1],[1,{\"a\":1}]",
            ),
            ("SELECT d || name, 'x'::text || d FROM j", "{\"a\": 1, \"b\": 2}a,x{\"a\": 1, \"b\": 2}"),
            ("SELECT d || NULL FROM j", "NULL"),
            (
                "SELECT '{\"a\":[1,{\"b\":2}]}'::jsonb #- '{a,1,b}', '{\"a\":[1,2]}'::jsonb #- '{a,-1}'",
                "{\"a\":[1,{}]},{\"a\":[1]}",
            ),
            ("SELECT d #- '{x,y}', d #- ARRAY['a'] FROM j", "{\"a\":1,\"b\":2},{\"b\":2}"),
        ],
    );
    let mut db = Db::new();
    db.run("CREATE TABLE j (id INT PRIMARY KEY, d JSONB);\nINSERT INTO j VALUES (1, '{\"a\": 1, \"b\": 2}')");
    db.run("UPDATE j SET d = d - 'a'");
    assert_eq!(db.query("SELECT d FROM j"), "{\"b\":2}");
    db.run("UPDATE j SET d = d || '{\"c\": {\"x\": 1}}'");
    db.execute("UPDATE j SET d = d || $1", &[Value::from("{\"b\": null}")]).unwrap();
    assert_eq!(db.query("SELECT d FROM j"), "{\"b\":null,\"c\":{\"x\":1}}");
    db.execute("UPDATE j SET d = d - $1", &[Value::from("b")]).unwrap();
    assert_eq!(db.query("SELECT d FROM j"), "{\"c\":{\"x\":1}}");
}

#[test]
fn operators_that_postgresql_has_not_are_refused() {
    let mut db = Db::new();
    db.run("CREATE TABLE j (id INT PRIMARY KEY, d JSONB, k JSON, a INT[]);\nINSERT INTO j VALUES (1, '{}', '{}', '{}')");
    for (sql, state) in [
        ("SELECT d + 1 FROM j", "42883"),
        ("SELECT d || 3 FROM j", "42883"),
        ("SELECT d - true FROM j", "42883"),
        ("SELECT d - d FROM j", "42883"),
        ("SELECT k - 'a' FROM j", "42883"),
        ("SELECT k || k FROM j", "42883"),
        ("SELECT a - 1 FROM j", "42883"),
        ("SELECT a || 'x'::text FROM j", "42883"),
        ("SELECT a || ARRAY['x'] FROM j", "42883"),
        ("SELECT d || a FROM j", "42883"),
        ("SELECT a || '3' FROM j", "22P02"),
        ("SELECT d || 'x' FROM j", "22P02"),
        ("SELECT d || coalesce(NULL, NULL) FROM j", "42725"),
        ("SELECT '{\"a\":1}'::jsonb - 1", "22023"),
        ("SELECT '1'::jsonb - 'a'", "22023"),
        ("SELECT '1'::jsonb #- '{a}'", "22023"),
        ("SELECT '{\"a\":[1]}'::jsonb #- '{a,x}'", "22P02"),
        ("SELECT k #- '{a}' FROM j", "42883"),
    ] {
        assert_eq!(db.state(sql), state, "{sql}");
    }
}

/// `ARRAY[1, 2] || 3` was the text `[1,2]3`.
#[test]
fn arrays_are_joined() {
    check(
        "CREATE TABLE t (id INT PRIMARY KEY, tags TEXT[], n INT[], b BOOL[]);\n\
         INSERT INTO t VALUES (1, '{x}', '{1,2}', '{t}')",
        &[
            ("SELECT ARRAY[1, 2] || 3, 3 || ARRAY[1, 2], ARRAY[1, 2] || ARRAY[3]", "[1,2,3],[3,1,2],[1,2,3]"),
            ("SELECT n || 3, n || id, 0 || n, n || n FROM t", "[1,2,3],[1,2,1],[0,1,2],[1,2,1,2]"),
            ("SELECT n || '{3}', '{3}' || n, n || NULL, NULL || n FROM t", "[1,2,3],[3,1,2],[1,2],[1,2]"),
            (
                "SELECT n || NULL::int, NULL::int[] || 3, NULL::int[] || NULL::int[] FROM t",
                "[1,2,null],[3],NULL",
            ),
            (
                "SELECT tags || 'a]\"b'::text, tags || '{p,q}' FROM t",
                "[\"x\",\"a]\\\"b\"],[\"x\",\"p\",\"q\"]",
            ),
            ("SELECT b || false, ARRAY[true, false] FROM t", "[true,false],[true,false]"),
        ],
    );
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, n INT[]);\nINSERT INTO t VALUES (1, '{1}')");
    db.run("UPDATE t SET n = n || 2");
    db.execute("UPDATE t SET n = n || $1", &[Value::from("{3}")]).unwrap();
    assert_eq!(db.query("SELECT n FROM t"), "[1,2,3]");
}

/// `->>` gave numbers and truths, so that `d ->> 'a' = '1'` was false, and `true` was 1.
#[test]
fn the_text_of_a_json_value_is_text() {
    check(
        "CREATE TABLE j (id INT PRIMARY KEY, d JSONB, n INT);\n\
         INSERT INTO j VALUES (1, '{\"a\": 1, \"t\": true, \"s\": \"x\\ny\", \"f\": 1.50, \"z\": null, \"l\": [1, {\"k\": 2}]}', 1), \
         (2, '{\"a\": 10}', 10)",
        &[
            ("SELECT id FROM j WHERE d->>'a' = '1'", "1"),
            ("SELECT id FROM j WHERE '1' = d->>'a' AND d->>'a' IN ('1', '3')", "1"),
            ("SELECT id FROM j WHERE d->>'t' = 'true'", "1"),
            ("SELECT id FROM j WHERE d->>'a' > '0' ORDER BY d->>'a' DESC", "2;1"),
            ("SELECT id FROM j WHERE d->>'a' BETWEEN '0' AND '2' ORDER BY 1", "1;2"),
            (
                "SELECT d->>'t', d->>'a', d->>'s', d->>'f', d->>'z', d->>'nothing' FROM j WHERE id = 1",
                "true,1,x\ny,1.50,NULL,NULL",
            ),
            (
                "SELECT d->>'l', d->'l'->>0, d->'l'->1->>'k', d->'l'->>-1 FROM j WHERE id = 1",
                "[1, {\"k\": 2}],1,2,{\"k\": 2}",
            ),
            ("SELECT typeof(d->>'a'), length(d->>'t'), (d->>'a') || 'x' FROM j WHERE id = 1", "text,4,1x"),
            (
                "SELECT (d->>'a')::int + 1, (d->>'t')::bool, CAST(d->>'a' AS integer) + 1 FROM j WHERE id = 1",
                "2,1,2",
            ),
            // SQLite's path gives SQLite's value.
            ("SELECT typeof(d->>'$.a'), d->>'$.t' FROM j WHERE id = 1", "integer,1"),
            ("SELECT id FROM j WHERE (d->>'a')::int > 9", "2"),
            ("SELECT id FROM j WHERE d->>'t'", "1"),
            ("SELECT id FROM j WHERE d->>'t' = true AND d->>'t' AND NOT d->>'t' IS NULL", "1"),
            ("SELECT CASE WHEN d->>'t' THEN 1 ELSE 2 END FROM j ORDER BY id", "1;2"),
        ],
    );
    let mut db = Db::new();
    db.run("CREATE TABLE j (id INT PRIMARY KEY, d JSONB);\nINSERT INTO j VALUES (1, '{\"a\": 1}')");
    // A text is greater than every number to SQLite: a deletion by such a condition took each row that has a text
    // there.
    for condition in ["d->>'a' > 9", "d->>'a' = id", "d->>'a' IN (1, 10)", "d->>'a' BETWEEN 0 AND 9"] {
        assert_eq!(db.state(&format!("DELETE FROM j WHERE {condition}")), "42883", "{condition}");
    }
    db.run("CREATE INDEX j_a ON j ((d->>'a'))");
    for given in [Value::from("1"), Value::Integer(1)] {
        assert_eq!(db.query_with("SELECT id FROM j WHERE d->>'a' = $1", &[given]), "1");
    }
    assert!(db.plan("SELECT id FROM j WHERE d->>'a' = '1'").contains("j_a"));
}

/// A truth became 1, and JSON within JSON a text in quotes.
#[test]
fn json_is_built_of_values_of_their_types() {
    check(
        "CREATE TABLE t (id INT PRIMARY KEY, flag BOOL, d JSONB, tags TEXT[], at TIMESTAMPTZ, x DOUBLE PRECISION, b BYTEA);\n\
         INSERT INTO t VALUES (1, true, '{\"a\": 1}', '{p,q}', '2026-01-02 03:04:05.5+00', 2, '\\x00ff'), \
         (2, false, NULL, NULL, NULL, 1.5, NULL)",
        &[
            (
                "SELECT json_build_object('f', flag, 'd', d, 't', tags) FROM t WHERE id = 1",
                "{\"f\":true,\"d\":{\"a\":1},\"t\":[\"p\",\"q\"]}",
            ),
            (
                "SELECT jsonb_build_object('f', flag, 'd', d, 'x', x) FROM t WHERE id = 2",
                "{\"d\":null,\"f\":false,\"x\":1.5}",
            ),
            (
                "SELECT json_build_object(id, at, flag, x, 'b', b) FROM t WHERE id = 1",
                "{\"1\":\"2026-01-02T03:04:05.5+00:00\",\"true\":2,\"b\":\"\\\\x00ff\"}",
            ),
            (
                "SELECT json_build_array(flag, d, id > 1, NULL, 'x') FROM t WHERE id = 1",
                "[true,{\"a\":1},false,null,\"x\"]",
            ),
            (
                "SELECT json_agg(flag ORDER BY id DESC), jsonb_agg(d ORDER BY id), json_agg(x ORDER BY id) FROM t",
                "[false,true],[{\"a\":1},null],[2,1.5]",
            ),
            (
                "SELECT json_object_agg(id, flag ORDER BY id), jsonb_object_agg(id::text, d ORDER BY id) FROM t",
                "{\"1\":true,\"2\":false},{\"1\":{\"a\":1},\"2\":null}",
            ),
            (
                "SELECT json_agg(json_build_object('id', id, 'd', d) ORDER BY id) FROM t",
                "[{\"id\":1,\"d\":{\"a\":1}},{\"id\":2,\"d\":null}]",
            ),
            ("SELECT json_agg(DISTINCT flag) FROM t WHERE flag", "[true]"),
            ("SELECT json_agg(flag) FILTER (WHERE id = 2) FROM t", "[false]"),
            (
                "SELECT json_build_object('rows', coalesce(json_agg(flag), '[]')) FROM t WHERE id = 2",
                "{\"rows\":[false]}",
            ),
            (
                "SELECT coalesce(json_agg(flag), '[]'), json_agg(id), array_agg(id) FROM t WHERE id = 3",
                "[],NULL,NULL",
            ),
            (
                "SELECT to_json(ARRAY[1, 2]), to_jsonb(flag), to_json(d), to_json('a\"b'::text), to_json(id) FROM t WHERE id = 1",
                "[1,2],true,{\"a\":1},\"a\\\"b\",1",
            ),
            (
                "SELECT array_to_json(tags), to_json(at), to_json(x) FROM t WHERE id = 1",
                "[\"p\",\"q\"],\"2026-01-02T03:04:05.5+00:00\",2",
            ),
            ("SELECT array_agg(flag ORDER BY id) FROM t", "[true,false]"),
            (
                "SELECT json_build_object('o', (SELECT json_agg(d) FROM t AS u WHERE u.id = t.id)) FROM t WHERE id = 1",
                "{\"o\":[{\"a\":1}]}",
            ),
            (
                "SELECT json_build_object('o', q.j) FROM (SELECT json_build_object('f', flag) AS j FROM t WHERE id = 1) AS q",
                "{\"o\":{\"f\":true}}",
            ),
        ],
    );
}

/// JSON of more levels than functions read was taken, and refused by them afterwards.
#[test]
fn json_has_one_bound_of_levels() {
    let mut db = Db::new();
    db.run("CREATE TABLE j (id INT PRIMARY KEY, d JSONB)");
    let nested = |levels: usize| Value::from("[".repeat(levels) + &"]".repeat(levels));
    db.execute("INSERT INTO j VALUES (1, $1)", &[nested(127)]).unwrap();
    assert_eq!(
        db.query("SELECT jsonb_typeof(d), d @> d, jsonb_typeof(d #> '{0,0}') FROM j"),
        "array,1,array"
    );
    assert_eq!(db.query("SELECT length((d - 5)::text) FROM j"), "254");
    for sql in
        ["INSERT INTO j VALUES (2, $1)", "SELECT $1::jsonb", "SELECT $1::json", "SELECT json_typeof($1)"]
    {
        let error = db.execute(sql, &[nested(128)]).unwrap_err();
        assert_eq!(error.state, "54001", "{sql}");
    }
    assert_eq!(db.state("SELECT (repeat('[', 3000000) || repeat(']', 3000000))::jsonb"), "54001");
}

/// `NUMERIC` was divided as integers, and sums were those of floats.
#[test]
fn decimal_numbers_are_exact() {
    check(
        "CREATE TABLE m (id INT PRIMARY KEY, p NUMERIC(10,2), n NUMERIC, k INT, g TEXT);\n\
         INSERT INTO m VALUES (1, 5, 0.1, 2, 'a'), (2, 1.10, 0.2, 3, 'a'), (3, 2.345, 110, 0, 'b'), (4, NULL, NULL, NULL, 'b')",
        &[
            (
                "SELECT p / 2, p + 1, p - 0.05, p * 3, p % 2 FROM m WHERE id = 1",
                "2.5000000000000000,6.00,4.95,15.00,1.00",
            ),
            (
                "SELECT 1::numeric / 3, (1 + k) / 4::numeric FROM m WHERE id = 1",
                "0.33333333333333333333,0.75000000000000000000",
            ),
            ("SELECT (p + 1) / 4 FROM m WHERE id = 1", "1.5000000000000000"),
            (
                "SELECT sum(n), sum(p), avg(p), min(p), max(p), count(p) FROM m",
                "110.3,8.45,2.8166666666666667,1.10,5.00,3",
            ),
            ("SELECT sum(p) FROM m WHERE id > 9", "NULL"),
            ("SELECT coalesce(sum(p), 0) FROM m WHERE id > 9", "0"),
            ("SELECT coalesce(sum(p), 0) AS total FROM m WHERE id < 3", "6.10"),
            ("SELECT g, sum(p) AS s FROM m GROUP BY g ORDER BY s DESC", "a,6.10;b,2.35"),
            ("SELECT g, sum(p * k) FROM m GROUP BY 1 ORDER BY 2", "b,0.00;a,13.30"),
            ("SELECT g, sum(p) AS s FROM m GROUP BY g HAVING sum(p) > 5", "a,6.10"),
            ("SELECT id, p * 10 AS p FROM m WHERE p > 2 ORDER BY p DESC", "1,50.00;3,23.50"),
            ("SELECT id FROM m WHERE p / 2 > 1 AND p / 2 = '2.50' ORDER BY id", "1"),
            ("SELECT id FROM m WHERE n + n = 0.2 OR n + 0.1 = 0.3 ORDER BY id", "1;2"),
            ("SELECT id FROM m ORDER BY p * -1 NULLS LAST", "1;3;2;4"),
            (
                "SELECT round(p, 1), trunc(p), ceil(p), floor(p), abs(-p), -p, mod(p, 2), div(p, 2) FROM m WHERE id = 2",
                "1.1,1,2,1,1.10,-1.10,1.10,0",
            ),
            (
                "SELECT round(2.345::numeric, 2), round(-2.5::numeric), 2.5::numeric::int, '1.005'::numeric(10, 2)",
                "2.35,-3,3,1.01",
            ),
            (
                "SELECT p || 'x', p::text, '1.10'::numeric::text, CAST(k AS NUMERIC(10, 2)) FROM m WHERE id = 2",
                "1.10x,1.10,1.10,3.00",
            ),
            (
                "SELECT json_build_object('p', p, 's', p / 2) FROM m WHERE id = 1",
                "{\"p\":5.00,\"s\":2.5000000000000000}",
            ),
            ("SELECT s / 2 FROM (SELECT sum(p) AS s FROM m WHERE id = 1) AS q", "2.5000000000000000"),
            (
                "SELECT id, sum(p) OVER (ORDER BY id ROWS 1 PRECEDING) FROM m ORDER BY id",
                "1,5.00;2,6.10;3,3.45;4,2.35",
            ),
            ("SELECT sum(DISTINCT p), sum(p) FILTER (WHERE id > 1) FROM m", "8.45,3.45"),
            (
                "SELECT '9223372036854775807'::numeric + 1, '1e20'::numeric * 3",
                "9223372036854775808,300000000000000000000",
            ),
            ("SELECT DISTINCT p * 2 FROM m WHERE id = 1 UNION SELECT 10", "10"),
            ("SELECT id FROM m WHERE p = 1.1 UNION ALL SELECT id FROM m WHERE p = '1.10'", "2;2"),
        ],
    );
}

/// A column gave back 15 digits at most, without zeros at their end, and refused the others.
#[test]
fn decimal_numbers_are_stored_with_all_digits() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE m (id INT PRIMARY KEY, p NUMERIC(10,2), n NUMERIC);\n\
         CREATE INDEX m_p ON m (p);\n\
         INSERT INTO m VALUES (1, 5, 1)",
    );
    for sql in [
        "INSERT INTO m VALUES (2, 123456789, 0)",
        "INSERT INTO m VALUES (2, 'Infinity', 0)",
        "UPDATE m SET p = p * 100000000",
        "INSERT INTO m VALUES (2, 0, '1e2000')",
    ] {
        assert_eq!(db.state(sql), "22003", "{sql}");
    }
    db.run("UPDATE m SET p = p / 3, n = n / 3");
    assert_eq!(db.query("SELECT p, n FROM m"), "1.67,0.33333333333333333333");
    for (value, kept) in [
        ("12.50", "12.50"),
        ("1234567890.1234567", "1234567890.1234567"),
        ("'123456789012345678901234567890.5000'", "123456789012345678901234567890.5000"),
        ("'nan'", "NaN"),
        ("-1.10", "-1.10"),
    ] {
        db.run(&format!("INSERT INTO m VALUES (7, 1, {value})"));
        assert_eq!(db.query("SELECT n FROM m WHERE id = 7"), kept);
        db.run(&format!("UPDATE m SET n = 0 WHERE id = 7;\nUPDATE m SET n = {value} WHERE id = 7"));
        assert_eq!(db.query("SELECT n::text, n FROM m WHERE id = 7"), format!("{kept},{kept}"));
        db.run("DELETE FROM m WHERE id = 7");
    }
    db.execute(
        "INSERT INTO m VALUES (2, $1, $2)",
        &[Value::from("1.10"), Value::from("12345678901234567.0")],
    )
    .unwrap();
    assert_eq!(db.query("SELECT p, n FROM m WHERE p = 1.1"), "1.10,12345678901234567.0");
    for (sql, parameter) in [
        ("SELECT id FROM m WHERE p = $1", "1.10"),
        ("SELECT id FROM m WHERE p = $1::numeric", "1.100"),
        ("SELECT id FROM m WHERE p + $1 = 2.3", "1.2"),
        ("SELECT id FROM m WHERE p + p = $1", "2.20"),
        ("SELECT id FROM m WHERE p IN ($1, 7)", "1.10"),
    ] {
        assert_eq!(db.query_with(sql, &[Value::from(parameter)]), "2", "{sql}");
    }
    assert!(db.plan("SELECT id FROM m WHERE p = 1.10").contains("m_p"));
    assert!(db.plan("SELECT id FROM m WHERE p > 1.10 + 0.5").contains("m_p"));
    assert_eq!(db.state("SELECT 1::numeric / 0"), "22012");
    assert_eq!(db.state("SELECT p / (p - p) FROM m"), "22012");
    assert_eq!(db.state("SELECT 'x'::numeric"), "22P02");
    assert_eq!(db.state("SELECT id FROM m WHERE p = 'x'"), "22P02");
    assert_eq!(db.state("SELECT '123'::numeric(4, 2)"), "22003");
    assert_eq!(db.state("CREATE TABLE x (n NUMERIC COLLATE nocase)"), "42804");
    db.run("CREATE TABLE c AS SELECT id, p * 2 AS d FROM m");
    assert_eq!(db.query("SELECT id, d FROM c WHERE d > 3 ORDER BY d"), "1,3.34");
    db.run("CREATE VIEW w AS SELECT id, p * 2 AS d FROM m");
    assert_eq!(db.query("SELECT id, d FROM w ORDER BY d DESC"), "1,3.34;2,2.20");
}

/// Numbers were compared, sorted and grouped as the nearest floats, and were floats behind a query around them.
#[test]
fn decimal_numbers_are_compared_with_all_digits() {
    let long = "100000000000000000000";
    let rows = [
        (1, "2.50"),
        (2, "10"),
        (3, "-3"),
        (4, "2.5"),
        (5, "100000000000000000000.1"),
        (6, "100000000000000000000.2"),
        (7, "NaN"),
        (8, "0.00"),
        (9, "-Infinity"),
    ];
    let values: Vec<String> = rows.iter().map(|(id, number)| format!("({id}, '{number}')")).collect();
    let setup = format!(
        "CREATE TABLE m (id INT PRIMARY KEY, n NUMERIC);\nCREATE TABLE i (id INT PRIMARY KEY, n NUMERIC);\n\
         CREATE INDEX i_n ON i (n);\nCREATE VIEW w AS SELECT id, n + 0 AS n FROM m;\n\
         INSERT INTO m VALUES {0};\nINSERT INTO i VALUES {0}",
        values.join(", ")
    );
    let mut questions = vec![
        ("SELECT min(id), count(*) FROM m GROUP BY n HAVING count(*) > 1".to_owned(), "1,2"),
        ("SELECT count(DISTINCT n), count(DISTINCT n + 1) FROM m".to_owned(), "8,8"),
        ("SELECT min(n), max(n), min(n + 1) FROM m WHERE id < 7".to_owned(), "-3,100000000000000000000.2,-2"),
        ("SELECT max(n) FROM m".to_owned(), "NaN"),
        ("SELECT count(*) FROM (SELECT DISTINCT n FROM m) AS q".to_owned(), "8"),
        (
            "SELECT count(*) FROM (SELECT n FROM m WHERE id = 1 UNION SELECT n FROM m WHERE id = 4) AS q"
                .to_owned(),
            "1",
        ),
        (format!("SELECT q.s = {long}.1 FROM (SELECT max(n) AS s FROM m WHERE id < 6) AS q"), "1"),
        (
            "SELECT CASE WHEN id = 1 THEN n ELSE 7 END FROM m WHERE id IN (1, 2) ORDER BY 1".to_owned(),
            "2.50;7",
        ),
        (
            "SELECT a.id, b.id FROM m a JOIN i b ON a.n = b.n WHERE a.id < 3 ORDER BY 1, 2".to_owned(),
            "1,1;1,4;2,2",
        ),
        ("SELECT id FROM m WHERE n = id * 5 ORDER BY 1".to_owned(), "2"),
        ("SELECT id FROM m WHERE id < 5 AND n > 2.4::float8 ORDER BY 1".to_owned(), "1;2;4"),
        ("SELECT n::int, n::float8, (n + 0.5)::int FROM m WHERE id = 1".to_owned(), "3,2.5,3"),
        (
            "SELECT power(n, 2), sqrt(n), sign(n) FROM m WHERE id = 1".to_owned(),
            "6.2500000000000000,1.581138830084190,1",
        ),
        ("SELECT sum(n) FROM m WHERE id < 7".to_owned(), "200000000000000000012.30"),
        ("SELECT sum(n), avg(n) FROM m".to_owned(), "NaN,NaN"),
        ("SELECT to_json(n), json_agg(n) FROM m WHERE id = 1 GROUP BY id".to_owned(), "2.50,[2.50]"),
        ("SELECT id FROM m WHERE n IN ((SELECT 2.5::numeric), '10'::numeric, 7) ORDER BY id".to_owned(), "1;2;4"),
        (
            "SELECT m.id FROM m, LATERAL (SELECT m.n IN ('10.0'::numeric, 2.500) AS v) AS x WHERE x.v ORDER BY 1"
                .to_owned(),
            "1;2;4",
        ),
        ("SELECT id FROM m WHERE (n) = ('2.500'::numeric) ORDER BY id".to_owned(), "1;4"),
        ("SELECT (interval '-3 days' * 10) = (- interval '1 month')".to_owned(), "1"),
        ("SELECT interval '1' day, interval '1 2:03:04', interval '2' hour".to_owned(), "1 day,1 day 02:03:04,02:00:00"),
        ("SELECT id FROM m WHERE n IS DISTINCT FROM 2.5 AND id < 3".to_owned(), "2"),
        (
            "SELECT lag(n) OVER (ORDER BY id) FROM m WHERE id < 3 ORDER BY 1 NULLS FIRST".to_owned(),
            "NULL;2.50",
        ),
    ];
    for table in ["m", "i", "w"] {
        questions.extend([
            (format!("SELECT id FROM {table} ORDER BY n, id"), "9;3;8;1;4;2;5;6;7"),
            (format!("SELECT id FROM {table} WHERE n = {long}.10"), "5"),
            (format!("SELECT id FROM {table} WHERE n > {long}.1 ORDER BY id"), "6;7"),
            (format!("SELECT id FROM {table} WHERE n BETWEEN 2.5 AND 10 ORDER BY id"), "1;2;4"),
            (format!("SELECT id FROM {table} WHERE n IN (2.5, 10.0) ORDER BY id"), "1;2;4"),
            (format!("SELECT id FROM {table} WHERE n < 0 ORDER BY id"), "3;9"),
            (format!("SELECT id FROM {table} WHERE n = 'NaN'"), "7"),
            (format!("SELECT id FROM {table} WHERE 10 = n"), "2"),
            // As texts they are others.
            (format!("SELECT id FROM {table} WHERE id IN (1, 2, 4) ORDER BY n::text"), "2;4;1"),
            (format!("SELECT count(*) FROM (SELECT DISTINCT n::varchar AS x FROM {table}) AS q"), "9"),
            (format!("SELECT count(*) FROM {table} WHERE n::text = '2.5'"), "1"),
        ]);
    }
    let questions: Vec<(&str, &str)> = questions.iter().map(|(sql, found)| (sql.as_str(), *found)).collect();
    check(&setup, &questions);
}

/// A unique index takes numbers for equal that have other zeros at their end.
#[test]
fn unique_decimal_numbers_are_those_of_other_values() {
    let mut db = Db::new();
    db.run("CREATE TABLE u (n NUMERIC UNIQUE, id INT PRIMARY KEY);\nINSERT INTO u VALUES (1.50, 1)");
    assert_eq!(db.state("INSERT INTO u VALUES (1.5, 2)"), "23505");
    db.run("INSERT INTO u VALUES (1.5, 3) ON CONFLICT (n) DO UPDATE SET id = 9");
    assert_eq!(db.query("SELECT * FROM u"), "1.50,9");
    db.run("CREATE TABLE k (n NUMERIC PRIMARY KEY, v INT);\nINSERT INTO k VALUES (1.50, 1), (2, 2)");
    assert_eq!(db.state("INSERT INTO k VALUES (2.0, 3)"), "23505");
    db.run("UPDATE k SET v = 7 WHERE n = 2.000");
    db.run("DELETE FROM k WHERE n = 1.5");
    assert_eq!(db.query("SELECT * FROM k"), "2,7");
    let plan = db.plan("SELECT v FROM k WHERE n = 2");
    assert!(plan.contains("k_n_key"), "{plan}");
}

/// Tables of 1,988 to 2,000 columns were made and written, and no statement could read them.
#[test]
fn a_table_of_the_most_columns_is_read() {
    let mut db = Db::new();
    let columns = |count: usize| (1..count).map(|at| format!(", c{at} INT")).collect::<Vec<_>>().concat();
    db.run(&format!("CREATE TABLE wide (id INT PRIMARY KEY{})", columns(1_980)));
    db.run("INSERT INTO wide (id, c1979) VALUES (1, 7)");
    assert_eq!(db.query("SELECT sum(c1979), count(*), sum(_cas > 0) FROM wide"), "7,1,1");
    assert_eq!(db.state("ALTER TABLE wide ADD COLUMN more INT"), "54011");
    assert_eq!(db.state("CREATE INDEX wide_sum ON wide ((c1 + c2))"), "54011");
    db.run("ALTER TABLE wide DROP COLUMN c7");
    db.run("ALTER TABLE wide ADD COLUMN more INT");
    assert_eq!(db.state(&format!("CREATE TABLE wider (id INT PRIMARY KEY{})", columns(1_981))), "54011");
}
