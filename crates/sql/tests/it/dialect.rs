//! PostgreSQL's dialect: statements with the answers that PostgreSQL 15 gives, and the types that clients are told.

use crate::common::Db;
use sql::SqlType;
use store::value::Value;

fn db() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (id INT PRIMARY KEY, name TEXT, flag BOOLEAN, at TIMESTAMPTZ, day DATE, u UUID, data JSONB, \
         n BIGINT, x DOUBLE PRECISION, amount NUMERIC(10,2), tags TEXT[]);\n\
         CREATE TABLE other (id INT PRIMARY KEY, t_id INT, note VARCHAR(20));\n\
         INSERT INTO t VALUES (1, 'Ann', 't', '2026-11-21 20:00:00+00', '2026-11-21', \
         'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{\"a\": {\"b\": [1, 2]}}', 10, 1.5, 2.50, '{x,y}');\n\
         INSERT INTO t (id, name, flag) VALUES (2, 'bob', false);\n\
         INSERT INTO other VALUES (1, 1, 'first'), (2, 1, 'second')",
    );
    db
}

/// Statement, answer. Columns by commas, rows by semicolons; booleans are 1 and 0 as the store has them.
const ANSWERS: &[(&str, &str)] = &[
    ("SELECT 1::text || 'x'", "1x"),
    ("SELECT '17'::int + 1", "18"),
    ("SELECT 1.5::int, '2'::int8::text, (1 + 2)::float8", "2,2,3.0"),
    ("SELECT id::text::int FROM t WHERE id = '1'::int", "1"),
    ("SELECT 't'::bool, 'off'::boolean, 1::bool, true::text", "1,0,1,true"),
    ("SELECT CAST('12' AS bigint) + 1, CAST('2026-11-21' AS date)", "13,2026-11-21"),
    ("SELECT '2026-11-21 22:00+02'::timestamptz", "2026-11-21 20:00:00+00:00"),
    (
        "SELECT timestamp '2026-11-21 20:00', date '2026-11-21', time '20:01'",
        "2026-11-21 20:00:00,2026-11-21,20:01:00",
    ),
    ("SELECT interval '1 day 2 hours', interval '90' minute", "1 day 02:00:00,01:30:00"),
    ("SELECT '{1,2}'::int[], ARRAY[1,2]::text[]", "[1,2],[\"1\",\"2\"]"),
    ("SELECT (ARRAY[10, 20])[2]", "20"),
    ("SELECT E'a\\tb', $$it's$$, U&'\\0061', $q$a$$b$q$", "a\tb,it's,a,a$$b"),
    ("SELECT name FROM t WHERE id = ANY(ARRAY[1, 3])", "Ann"),
    ("SELECT name FROM t WHERE id = ANY('{2,3}'::int[])", "bob"),
    ("SELECT name FROM t WHERE id = ANY('{2,3}')", "bob"),
    ("SELECT name FROM t WHERE id <> ALL('{2,3}')", "Ann"),
    ("SELECT name FROM t WHERE id > ALL(ARRAY[1])", "bob"),
    ("SELECT name FROM t WHERE id = ANY(SELECT t_id FROM other)", "Ann"),
    ("SELECT name FROM t WHERE name ILIKE 'a%'", "Ann"),
    // The least of bits was a text where a side was written as a decimal number.
    ("SELECT typeof(min(9007199254740993 & -0.0)) FROM t", "integer"),
    ("SELECT name FROM t WHERE name NOT ILIKE 'a%'", "bob"),
    ("SELECT name FROM t WHERE name ~ '^[A-Z]'", "Ann"),
    ("SELECT name FROM t WHERE name !~ '^[A-Z]'", "bob"),
    ("SELECT name FROM t WHERE name ~* '^B' AND id > 0", "bob"),
    ("SELECT name FROM t WHERE name !~* '^b'", "Ann"),
    ("SELECT name FROM t WHERE flag", "Ann"),
    ("SELECT 'foo'\n'bar' || E'-'\n'\\x41'", "foobar-A"),
    ("SELECT name FROM t WHERE flag = 't'", "Ann"),
    ("SELECT name FROM t WHERE flag IS TRUE", "Ann"),
    ("SELECT name FROM t WHERE NOT flag", "bob"),
    ("SELECT name FROM t WHERE flag IS NOT UNKNOWN ORDER BY id FETCH FIRST 1 ROW ONLY", "Ann"),
    ("SELECT id FROM t ORDER BY id OFFSET 1 ROWS FETCH NEXT 5 ROWS ONLY", "2"),
    ("SELECT id FROM t ORDER BY id LIMIT ALL OFFSET 1", "2"),
    ("SELECT id FROM t ORDER BY id OFFSET 1", "2"),
    ("SELECT id FROM t ORDER BY id OFFSET 0 LIMIT 1", "1"),
    ("(SELECT id FROM t WHERE id = 1) UNION (SELECT 5) ORDER BY id DESC", "5;1"),
    ("(SELECT id FROM t ORDER BY id DESC LIMIT 1) UNION ALL (SELECT id FROM t ORDER BY id LIMIT 1)", "2;1"),
    ("SELECT 7 UNION ALL (SELECT id FROM t ORDER BY id LIMIT 1) ORDER BY 1", "1;7"),
    ("(SELECT id FROM t ORDER BY id) LIMIT 1", "1"),
    ("((SELECT name FROM t WHERE flag))", "Ann"),
    ("SELECT 1 UNION ALL ((SELECT 2 UNION SELECT 2) EXCEPT SELECT 3)", "1;2"),
    ("SELECT count(*) FROM ((SELECT 1 AS a) UNION (SELECT 2)) x", "2"),
    ("SELECT name FROM t WHERE id IN ((SELECT t_id FROM other) EXCEPT (SELECT 9))", "Ann"),
    ("SELECT id FROM t WHERE name LIKE 'A%' ESCAPE ''", "1"),
    ("SELECT DISTINCT ON (t_id) t_id, note FROM other ORDER BY t_id, id DESC", "1,second"),
    ("SELECT DISTINCT ON (t_id) note FROM other ORDER BY t_id, id LIMIT 5 OFFSET 0", "first"),
    ("SELECT DISTINCT ON (1) t_id AS k, note FROM other ORDER BY k, 2 DESC", "1,second"),
    (
        "SELECT DISTINCT ON (o.t_id, length(o.note)) o.* FROM other o ORDER BY o.t_id, length(o.note) DESC",
        "2,1,second;1,1,first",
    ),
    ("SELECT DISTINCT ON (x.id) x.id, y.id FROM other x, other y ORDER BY x.id DESC, y.id DESC", "2,2;1,2"),
    ("SELECT count(*) FROM (SELECT DISTINCT ON (t_id) * FROM other) AS one", "1"),
    (
        "WITH one AS (SELECT DISTINCT ON (t_id) note AS n FROM other ORDER BY t_id, id) SELECT n FROM one",
        "first",
    ),
    ("(SELECT DISTINCT ON (t_id) note FROM other ORDER BY t_id, id) UNION ALL SELECT 'z'", "first;z"),
    ("SELECT DISTINCT ON (t_id) t_id, count(*) FROM other GROUP BY t_id, id ORDER BY t_id, id", "1,1"),
    ("SELECT DISTINCT ON (flag) id FROM t ORDER BY flag DESC NULLS LAST, id", "1;2"),
    ("SELECT id AS primary, id + 1 AS unique FROM t AS index WHERE index.id = 1", "1,2"),
    ("SELECT x.order, x.primary FROM (SELECT 1 AS order, 2 AS primary) AS x ORDER BY x.order", "1,2"),
    ("SELECT name FROM t WHERE at = '2026-11-21T21:00:00+01:00'", "Ann"),
    ("SELECT name FROM t WHERE at > '2026-11-21'", "Ann"),
    ("SELECT name FROM t WHERE at BETWEEN '2026-11-21' AND '2026-11-22'", "Ann"),
    ("SELECT name FROM t WHERE at < now() - interval '1 day'", ""),
    ("SELECT at + interval '1 month' FROM t WHERE id = 1", "2026-12-21 20:00:00+00:00"),
    ("SELECT at - '1 day'::interval FROM t WHERE id = 1", "2026-11-20 20:00:00+00:00"),
    ("SELECT at - '2026-11-20'::timestamptz FROM t WHERE id = 1", "1 day 20:00:00"),
    ("SELECT day + 1, day - 1, day - '2026-11-01' FROM t WHERE id = 1", "2026-11-22,2026-11-20,20"),
    ("SELECT day + interval '1 day' FROM t WHERE id = 1", "2026-11-22 00:00:00"),
    ("SELECT 2 * interval '1 hour', interval '1 day' / 2", "02:00:00,12:00:00"),
    ("SELECT name FROM t WHERE u = 'a0eebc999c0b4ef8bb6d6bb9bd380a11'", "Ann"),
    ("SELECT name FROM t WHERE u IN ('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11')", "Ann"),
    ("SELECT data -> 'a' ->> 'b' FROM t WHERE data @> '{\"a\": {\"b\": [2]}}'", "[1, 2]"),
    ("SELECT data #>> '{a,b,1}', data #> '{a,b}' FROM t WHERE id = 1", "2,[1,2]"),
    ("SELECT name FROM t WHERE 'x' = ANY(tags)", "Ann"),
    ("SELECT tags[1] FROM t WHERE id = 1", "x"),
    (
        "SELECT extract(year FROM at), extract(epoch FROM interval '1 minute'), date_part('dow', day) FROM t WHERE id = 1",
        "2026,60,6",
    ),
    (
        "SELECT date_trunc('hour', at), date_trunc('week', at) FROM t WHERE id = 1",
        "2026-11-21 20:00:00+00:00,2026-11-16 00:00:00+00:00",
    ),
    (
        "SELECT to_char(at, 'YYYY-MM-DD HH24:MI:SS'), to_char(at, 'FMDay, DDth FMMonth') FROM t WHERE id = 1",
        "2026-11-21 20:00:00,Saturday, 21st November",
    ),
    ("SELECT to_char(1234.5, 'FM9,999.00'), to_char(7, '000')", "1,234.50, 007"),
    (
        "SELECT position('b' IN 'abc'), substring('abcdef' FROM 2 FOR 3), substring('foobar' from 'o(.)b')",
        "2,bcd,o",
    ),
    ("SELECT trim(both 'x' from 'xax'), trim(leading from '  a'), trim('  b ')", "a,a,b"),
    ("SELECT overlay('Txxxxas' placing 'hom' from 2 for 4)", "Thomas"),
    ("SELECT greatest(1, NULL, 3), least(2, 1), coalesce(NULL, 'x'), nullif(1, 2)", "3,1,x,1"),
    (
        "SELECT string_agg(name, ',' ORDER BY name), bool_and(flag), bool_or(flag), every(flag) FROM t",
        "Ann,bob,0,1,0",
    ),
    ("SELECT array_agg(id ORDER BY id), count(*) FILTER (WHERE flag) FROM t", "[1,2],1"),
    ("SELECT jsonb_build_object('a', 1), json_build_array(1, 'x')", "{\"a\":1},[1,\"x\"]"),
    ("SELECT * FROM generate_series(1, 3) AS g(x)", "1;2;3"),
    ("SELECT n FROM generate_series(6, 1, -2) n", "6;4;2"),
    (
        "SELECT d FROM generate_series('2026-01-30'::date, '2026-02-01'::date, '1 day') AS d",
        "2026-01-30 00:00:00+00:00;2026-01-31 00:00:00+00:00;2026-02-01 00:00:00+00:00",
    ),
    ("SELECT id FROM unnest('{3,4}'::int[]) AS id", "3;4"),
    ("SELECT v.a, v.b FROM (VALUES (1, 'x'), (2, 'y')) AS v(a, b) ORDER BY 1", "1,x;2,y"),
    (
        "SELECT split_part('a:b:c', ':', -1), left('abc', -1), right('abc', 2), lpad('7', 3, '0'), initcap('hi you')",
        "c,ab,bc,007,Hi You",
    ),
    (
        "SELECT md5('abc'), encode(sha256('abc'::bytea), 'hex')",
        "900150983cd24fb0d6963f7d28e17f72,ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    ),
    (
        "SELECT regexp_replace('a1b2', '\\d', '#', 'g'), regexp_match('ab12', '([a-z]+)(\\d+)')",
        "a#b#,[\"ab\",\"12\"]",
    ),
    ("SELECT 2 ^ 3, 7 / 2, -7 / 2, 7 % 3", "8.0,3,-3,1"),
    ("SELECT '2026-11-21 20:00+00'::timestamptz AT TIME ZONE 'UTC'", "2026-11-21 20:00:00"),
    ("SELECT public.t.name FROM public.t WHERE t.id = 1", "Ann"),
    ("SELECT pg_catalog.length('abc')", "3"),
    ("SELECT name COLLATE \"C\" FROM t ORDER BY name COLLATE \"C\" DESC", "bob;Ann"),
    ("SELECT id FROM t WHERE (id, name) IN ((1, 'Ann'), (2, 'x'))", "1"),
    ("SELECT id FROM t WHERE name IS DISTINCT FROM 'Ann'", "2"),
    ("SELECT CASE WHEN flag THEN 'yes' ELSE 'no' END FROM t ORDER BY id", "yes;no"),
    ("SELECT 'x' || flag FROM t ORDER BY id", "xtrue;xfalse"),
    ("SELECT to_timestamp(0), make_date(2026, 2, 3)", "1970-01-01 00:00:00+00:00,2026-02-03"),
    ("SELECT array_length(ARRAY[1,2,3], 1)", "3"),
    ("WITH c(a) AS (SELECT id::text FROM t) SELECT string_agg(a, '+' ORDER BY a) FROM c", "1+2"),
    ("SELECT ARRAY(SELECT id FROM t ORDER BY id)", "[1,2]"),
    ("SELECT row_number() OVER (ORDER BY id DESC)::int FROM t ORDER BY id", "2;1"),
    ("SELECT gcd(12, 18), div(9, 2), sign(-2)", "6,4,-1"),
];

#[test]
fn statements_answer_as_postgresql_does() {
    let mut db = db();
    let mut wrong = Vec::new();
    for (sql, answer) in ANSWERS {
        let found = match db.execute(sql, &[]) {
            Ok((_, rows)) => crate::common::shown(&rows.rows),
            Err(error) => format!("{error}"),
        };
        if found != *answer {
            wrong.push(format!("{sql}\n  is     {found}\n  not as {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Statement; types of its parameters; its columns as PostgreSQL names them with their types.
const DESCRIPTIONS: &[(&str, &str, &str)] = &[
    (
        "SELECT 1, 'x', NULL, 1.5, 5000000000",
        "",
        "?column? int4, ?column? text, ?column? text, ?column? numeric, ?column? int8",
    ),
    (
        "SELECT * FROM t",
        "",
        "id int4, name text, flag bool, at timestamptz, day date, u uuid, data jsonb, n int8, x float8, amount numeric, tags text[]",
    ),
    ("SELECT id, t.name AS who FROM t WHERE id = $1", "int4", "id int4, who text"),
    (
        "SELECT count(*), sum(id), sum(n), sum(x), avg(id), max(at), min(name) FROM t",
        "",
        "count int8, sum int8, sum numeric, sum float8, avg numeric, max timestamptz, min text",
    ),
    (
        "SELECT id::text, '1'::int8, now(), $1::int, CAST($2 AS uuid) FROM t",
        "int4, uuid",
        "id text, int8 int8, now timestamptz, int4 int4, uuid uuid",
    ),
    (
        "SELECT id + 1, n * 2, x / 2, id = 1, name || 'x', NOT flag FROM t",
        "",
        "?column? int4, ?column? int8, ?column? float8, ?column? bool, ?column? text, ?column? bool",
    ),
    (
        "SELECT at - interval '1 day', at - at, day + 1, day - day FROM t",
        "",
        "?column? timestamptz, ?column? interval, ?column? date, ?column? int4",
    ),
    (
        "SELECT data -> 'a', data ->> 'a', data #> '{a}', data #>> '{a}', tags[1], ARRAY[1, 2] FROM t",
        "",
        "?column? jsonb, ?column? text, ?column? jsonb, ?column? text, tags text, array int4[]",
    ),
    (
        "SELECT CASE WHEN flag THEN id END, coalesce(name, $1), greatest(id, $2) FROM t",
        "text, int4",
        "case int4, coalesce text, greatest int4",
    ),
    (
        "SELECT EXISTS (SELECT 1 FROM t), (SELECT max(at) FROM t), true",
        "",
        "exists bool, max timestamptz, bool bool",
    ),
    ("SELECT round(1.5)::int, true::int, trim('x') FROM t", "", "round int4, int4 int4, btrim text"),
    ("SELECT extract(year FROM at)::int FROM t", "", "extract int4"),
    ("SELECT CASE WHEN flag THEN '' ELSE name::text END FROM t", "", "name text"),
    ("SELECT s.c, s.m FROM (SELECT count(*) AS c, max(day) AS m FROM t) s", "", "c int8, m date"),
    ("SELECT t.*, 1 AS one FROM other t", "", "id int4, t_id int4, note varchar, one int4"),
    ("SELECT name FROM t WHERE id = ANY($1) AND name = ANY($2::text[])", "int4[], text[]", "name text"),
    (
        "SELECT name FROM t WHERE id IN ($1, $2) AND at BETWEEN $3 AND $4",
        "int4, int4, timestamptz, timestamptz",
        "name text",
    ),
    (
        "SELECT name FROM t WHERE name LIKE $1 AND x > $2 AND flag = $3 LIMIT $4 OFFSET $5",
        "text, float8, bool, int8, int8",
        "name text",
    ),
    ("SELECT name FROM t WHERE at > now() - $1::interval AND n + $2 > 0", "interval, int8", "name text"),
    (
        "INSERT INTO t (id, u, at, data) VALUES ($1, $2, $3, $4) RETURNING id, at",
        "int4, uuid, timestamptz, jsonb",
        "id int4, at timestamptz",
    ),
    ("INSERT INTO other VALUES ($1, $2, $3), ($4, $5, $6)", "int4, int4, varchar, int4, int4, varchar", "-"),
    (
        "INSERT INTO other SELECT $1, id, $2 FROM t ON CONFLICT (id) DO UPDATE SET note = $3",
        "int4, varchar, varchar",
        "-",
    ),
    ("UPDATE t SET flag = $1, x = x + $2, at = $3 WHERE u = $4", "bool, float8, timestamptz, uuid", "-"),
    (
        "DELETE FROM t WHERE day < $1 RETURNING *, $2::text AS why",
        "date, text",
        "id int4, name text, flag bool, at timestamptz, day date, u uuid, data jsonb, n int8, x float8, amount numeric, tags text[], why text",
    ),
    ("SELECT iif(2 > 1, 17, 18), iif(flag, 'a', name), if(id, n) FROM t", "", "iif int4, iif text, if int8"),
    (
        "SELECT substr('abc', 2), substr(name, 1, 1), substr(x'00', 1) FROM t",
        "",
        "substr text, substr text, substr bytea",
    ),
    (
        "SELECT coalesce(1, 2.5), greatest(id, n, x), nullif('a', 'b') FROM t",
        "",
        "coalesce numeric, greatest float8, nullif text",
    ),
    (
        "SELECT coalesce(name, 'none'), coalesce(id, '5'), coalesce(data, '{}') FROM t",
        "",
        "coalesce text, coalesce int4, coalesce jsonb",
    ),
    (
        "SELECT CASE WHEN flag THEN 1 ELSE 2.5 END, CASE id WHEN 1 THEN 'a' ELSE 1 END FROM t",
        "",
        "case numeric, case text",
    ),
    (
        "SELECT round($1, 1), date_trunc('hour', at), mod(5, 2.5) FROM t",
        "text",
        "round text, date_trunc timestamptz, mod numeric",
    ),
    ("SELECT 1 AS a, 'x' AS b, NULL AS c UNION ALL SELECT 2.5, 'y', 7", "", "a numeric, b text, c int4"),
    ("SELECT id FROM t UNION SELECT '7' UNION SELECT n FROM t", "", "id int8"),
    ("VALUES (1, 'x'), (2.5, 'y'), (NULL, NULL)", "", "column1 numeric, column2 text"),
    ("WITH c(a) AS (SELECT 1 UNION ALL SELECT 2.5) SELECT a FROM c", "", "a numeric"),
    ("SELECT $1", "text", "?column? text"),
    ("SELECT ?, :a, :a", "text, text", "?column? text, ?column? text, ?column? text"),
    ("VALUES (1, 'x', $1)", "text", "column1 int4, column2 text, column3 text"),
    ("SELECT x FROM generate_series(1, $1) AS g(x)", "int4", "x int4"),
    ("BEGIN", "", "-"),
    (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i FROM n",
        "",
        "i int4",
    ),
    (
        "WITH a(x, \"Y\") AS (VALUES (1::int8, true)), b(z) AS NOT MATERIALIZED (SELECT x + 1 FROM a) SELECT \"Y\", z FROM a, b",
        "",
        "Y bool, z int8",
    ),
    ("WITH c AS (SELECT id FROM t) SELECT id FROM c", "", "id int4"),
];

fn type_name(ty: SqlType) -> String {
    format!("{}{}", ty.name(), if ty.is_array() { "[]" } else { "" })
}

fn described(db: &mut Db, sql: &str, chosen: &[Option<SqlType>]) -> (String, String) {
    let description =
        db.executor.describe(&db.session, sql, chosen).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let parameters: Vec<String> = description.parameters.iter().map(|ty| type_name(*ty)).collect();
    let columns = description.columns.map_or_else(
        || "-".to_owned(),
        |columns| {
            let columns = columns.iter().map(|column| format!("{} {}", column.label, type_name(column.ty)));
            columns.collect::<Vec<_>>().join(", ")
        },
    );
    (parameters.join(", "), columns)
}

#[test]
fn statements_are_described_before_they_run() {
    let mut db = db();
    let mut wrong = Vec::new();
    for (sql, parameters, columns) in DESCRIPTIONS {
        let found = described(&mut db, sql, &[]);
        if (found.0.as_str(), found.1.as_str()) != (*parameters, *columns) {
            wrong.push(format!(
                "{sql}\n  is     {} -> {}\n  not as {parameters} -> {columns}",
                found.0, found.1
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What a client chooses stands, and a column that is the parameter follows.
    let chosen = [Some(SqlType::Int8)];
    assert_eq!(described(&mut db, "SELECT $1", &chosen), ("int8".into(), "?column? int8".into()));
}

/// Whether a client that was told the type can read the value.
fn can_be(ty: SqlType, value: &Value) -> bool {
    match (ty, value) {
        (_, Value::Null) | (SqlType::Text | SqlType::Numeric, _) => true,
        (
            SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Float4 | SqlType::Float8,
            Value::Text(text),
        ) => text.parse::<i64>().is_ok(),
        (SqlType::Int2 | SqlType::Int4 | SqlType::Int8, value) => matches!(value, Value::Integer(_)),
        (SqlType::Bool, value) => matches!(value, Value::Integer(0 | 1)),
        (SqlType::Float4 | SqlType::Float8, value) => matches!(value, Value::Integer(_) | Value::Real(_)),
        (SqlType::Bytea, value) => matches!(value, Value::Blob(_) | Value::Text(_)),
        _ => matches!(value, Value::Text(_)),
    }
}

#[test]
fn what_is_told_of_a_choice_holds() {
    let mut db = db();
    let values =
        ["1", "2.5", "'a'", "'7'", "TRUE", "NULL", "x'00'", "id", "name", "flag", "n", "x", "at", "day"];
    let calls = [
        "coalesce(?, ?)",
        "coalesce(NULL, ?, ?)",
        "nullif(?, ?)",
        "greatest(?, ?)",
        "min(?, ?)",
        "iif(?, ?)",
        "iif(flag, ?, ?)",
        "iif(NOT flag, ?, ?)",
        "CASE WHEN flag THEN ? ELSE ? END",
        "CASE ? WHEN 0 THEN 1 ELSE ? END",
        "substr(?, ?)",
    ];
    let mut wrong = Vec::new();
    for call in calls {
        for (left, right) in values.iter().flat_map(|left| values.iter().map(move |right| (left, right))) {
            let sql = format!("SELECT {} FROM t", call.replacen('?', left, 1).replacen('?', right, 1));
            let Ok((_, rows)) = db.execute(&sql, &[]) else { continue };
            let described = db.executor.describe(&db.session, &sql, &[]).expect("it runs");
            let ty = described.columns.expect("it has a column")[0].ty;
            for row in &rows.rows {
                if !can_be(ty, &row[0]) {
                    wrong.push(format!("{sql}: {:?} told as {}", row[0], type_name(ty)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn values_are_bound_in_the_form_of_their_type() {
    let mut db = db();
    let one = |text: &str| [Value::from(text)];
    for (sql, parameters, answer) in [
        ("SELECT name FROM t WHERE flag = $1", one("true"), "Ann"),
        ("SELECT name FROM t WHERE at = $1", one("2026-11-21T21:00:00+01"), "Ann"),
        ("SELECT name FROM t WHERE u = $1", one("{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}"), "Ann"),
        ("SELECT name FROM t WHERE id = ANY($1)", one("{1,7}"), "Ann"),
        ("SELECT name FROM t WHERE id = ANY($1)", one("[2,7]"), "bob"),
        ("SELECT $1::int + 1", one(" 41 "), "42"),
        ("SELECT $1::date + 1", one("2026-12-31"), "2027-01-01"),
        ("SELECT name FROM t WHERE id = $1::int8", one("2"), "bob"),
    ] {
        assert_eq!(db.query_with(sql, &parameters), answer, "{sql}");
    }
    for (sql, parameters, state) in [
        ("SELECT name FROM t WHERE flag = $1", one("perhaps"), "22P02"),
        ("SELECT name FROM t WHERE at = $1", one("soon"), "22007"),
        ("SELECT name FROM t WHERE u = $1", one("x"), "22P02"),
        ("SELECT $1::int", one("x"), "22P02"),
        ("SELECT $1::int2", one("70000"), "22003"),
        ("SELECT name FROM t WHERE id = ANY($1)", one("{1"), "22P02"),
    ] {
        assert_eq!(db.execute(sql, &parameters).map_err(|error| error.state).err(), Some(state), "{sql}");
    }
}

/// Statement, SQLSTATE, and where in the user's text; 0: nowhere.
const ERRORS: &[(&str, &str, usize)] = &[
    ("SELECT 'x'::int", "22P02", 8),
    ("SELECT 1::frob", "42704", 11),
    ("SELECT name::text FROM t WHERE nme = 1", "42703", 32),
    ("SELECT id::text, FROM t", "42601", 18),
    ("SELECT id::text FROM t WHERE id = 1 name", "42601", 37),
    ("SELECT id FROM t WHERE at > 'soon'", "22007", 29),
    ("SELECT id FROM t WHERE flag = 'maybe'", "22P02", 31),
    ("SELECT '2026-02-30'::date", "22008", 8),
    ("SELECT DISTINCT ON (nme) name FROM t", "42703", 21),
    ("SELECT DISTINCT ON (id) name FROM t ORDER BY nme", "42703", 46),
    ("SELECT name FROM t WHERE name SIMILAR TO 'x'", "0A000", 31),
    ("(SELECT name FROM t) UNION (SELECT nme FROM t)", "42703", 36),
    ("SELECT * FROM nothing", "42P01", 15),
    ("SELECT name FROM t WHERE name ~ '('", "2201B", 0),
    ("INSERT INTO t (id) VALUES (9) ON CONFLICT ON CONSTRAINT nothing DO NOTHING", "42704", 57),
    ("SELECT now() AT TIME ZONE 'Europe/Nowhere'", "22023", 0),
    ("SELECT repeat('x', 1000000000)", "54000", 0),
    ("SELECT 'a' ~ (SELECT 'b' || repeat('(x{500}){500}', 2))", "2201B", 0),
    ("SELECT E'\\0'", "22025", 8),
];

#[test]
fn errors_have_states_and_places_in_the_users_text() {
    let mut db = db();
    let mut wrong = Vec::new();
    for (sql, state, place) in ERRORS {
        match db.execute(sql, &[]) {
            Ok((_, rows)) => wrong.push(format!("{sql}: {}", crate::common::shown(&rows.rows))),
            Err(error) => {
                if error.state != *state || (*place > 0 && error.position != Some(*place)) {
                    wrong.push(format!("{sql}: {error} at {:?}, not {state} at {place}", error.position));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn writes_in_postgresqls_words() {
    let mut db = db();
    db.run(
        "INSERT INTO other VALUES (9, DEFAULT, 'x'), (10, 2, DEFAULT);\n\
         INSERT INTO other (id, note) VALUES (1, 'again') ON CONFLICT ON CONSTRAINT other_pkey DO UPDATE SET note = EXCLUDED.note;\n\
         UPDATE other SET t_id = v.t FROM (VALUES (2, 77)) AS v(i, t) WHERE other.id = v.i;\n\
         UPDATE t SET at = '2030-01-01'::timestamptz + interval '1 day', flag = 'no' WHERE id = 1;\n\
         DELETE FROM other WHERE id = ANY('{9}'::int[])",
    );
    assert_eq!(db.query("SELECT id, t_id, note FROM other ORDER BY id"), "1,1,again;2,77,second;10,2,NULL");
    db.run(
        "INSERT INTO other VALUES (1, DEFAULT, 'b'::text) ON CONFLICT (id) DO UPDATE SET note = other.note || '!'::text \
         ON CONFLICT DO NOTHING",
    );
    assert_eq!(db.query("SELECT note FROM other WHERE id = 1"), "again!");
    db.run(
        "CREATE TABLE made (id INT PRIMARY KEY, twice INT AS (id * 2), token TEXT DEFAULT (upper('x' || 1)), n INT DEFAULT 7);\n\
         INSERT INTO made VALUES (1, DEFAULT, DEFAULT), (2, 'own', 8);\n\
         UPDATE made SET token = DEFAULT WHERE id = 2",
    );
    assert_eq!(db.query("SELECT id, twice, token, n FROM made ORDER BY id"), "1,2,X1,7;2,4,X1,8");
    assert_eq!(db.query("SELECT at, flag FROM t WHERE id = 1"), "2030-01-02 00:00:00+00:00,0");
    assert_eq!(db.query("SELECT id FROM t WHERE id = 1 FOR UPDATE"), "1");
    let notices = db.session.take_notices();
    assert!(notices.iter().any(|notice| notice.message.contains("not locked")), "{notices:?}");
}

#[test]
fn text_that_is_no_statement_never_panics() {
    const WORDS: &[&str] = &[
        "SELECT",
        "FROM",
        "WHERE",
        "t",
        "id",
        "::",
        "int",
        "[",
        "]",
        "(",
        ")",
        ",",
        "'x'",
        "$1",
        "ARRAY",
        "ANY",
        "=",
        "interval",
        "'1 day'",
        "E'\\",
        "$$",
        "~",
        "AT",
        "TIME",
        "ZONE",
        "CASE",
        "WHEN",
        "END",
        "LIMIT",
        "OFFSET",
        "VALUES",
        "INSERT",
        "INTO",
        "ON",
        "CONFLICT",
        "CONSTRAINT",
        "FOR",
        "UPDATE",
        "IS",
        "NOT",
        "BETWEEN",
        "AND",
        "DISTINCT",
        "AS",
        "generate_series",
        "unnest",
        "extract",
        "cast",
        "trim",
        "U&'",
        "\u{e9}",
        "--",
        "/*",
        "DEFAULT",
        "RETURNING",
        "*",
        ".",
    ];
    let mut random = fastrand::Rng::with_seed(crate::common::seed());
    let mut db = db();
    for _ in 0..20_000 {
        let words: Vec<&str> =
            (0..random.usize(0..24)).map(|_| WORDS[random.usize(0..WORDS.len())]).collect();
        let sql = words.join([" ", ""][usize::from(random.u8(0..4) == 0)]);
        let characters = sql.chars().count();
        if let Err(error) = db.executor.describe(&db.session, &sql, &[]) {
            assert!(error.position.is_none_or(|at| (1..=characters + 1).contains(&at)), "{sql}: {error:?}");
            assert!(!error.state.starts_with("XX"), "{sql}: {error}");
        }
    }
    for deep in [
        format!("SELECT {}1{}", "(".repeat(3_000), ")".repeat(3_000)),
        format!("SELECT {} 1", "NOT ".repeat(100_000)),
        format!("SELECT 1{}", "::int".repeat(10_000)),
        format!("SELECT {}1{}", "ARRAY[".repeat(5_000), "]".repeat(5_000)),
        format!("SELECT {}1", "CASE WHEN ".repeat(5_000)),
    ] {
        let _ = db.executor.describe(&db.session, &deep, &[]);
    }
    assert_eq!(db.query("SELECT 1"), "1");
}

/// Behind the words of a lock the count of rows was lost, and all rows were returned.
#[test]
fn a_limit_may_stand_behind_the_words_of_a_lock() {
    let mut db = db();
    for lock in ["UPDATE", "SHARE", "NO KEY UPDATE", "KEY SHARE", "UPDATE OF t NOWAIT"] {
        let ordered = format!("SELECT id FROM t ORDER BY id FOR {lock}");
        assert_eq!(db.query(&ordered), "1;2", "{lock}");
        assert_eq!(db.query(&format!("{ordered} LIMIT 1")), "1", "{lock}");
        assert_eq!(db.query(&format!("{ordered} LIMIT 1 OFFSET 1")), "2", "{lock}");
        assert_eq!(db.query(&format!("SELECT id FROM t ORDER BY id LIMIT 1 FOR {lock}")), "1", "{lock}");
    }
}

#[test]
fn texts_of_one_shape_share_a_plan_and_nothing_else() {
    let mut db = db();
    db.run("INSERT INTO t (id, name, flag) SELECT x, 'n' || x, x % 2 FROM generate_series(3, 400) AS g(x)");
    for id in 3..=400 {
        assert_eq!(
            db.query(&format!("SELECT name, flag FROM t WHERE id = {id}")),
            format!("n{id},{}", id % 2)
        );
        assert_eq!(db.query(&format!("SELECT name FROM t WHERE id = '{id}'")), format!("n{id}"));
    }
    assert_eq!(db.state("SELECT name FROM t WHERE id = 'x'"), "22P02");
    assert_eq!(db.query("SELECT name FROM t WHERE id = 1"), "Ann");
    // What is asked with parameters is not answered without them, and the other way round.
    assert_eq!(db.state("SELECT name FROM t WHERE id = ?"), "08P01");
    assert_eq!(db.query_with("SELECT name FROM t WHERE id = ?", &[Value::Integer(2)]), "bob");
    assert_eq!(db.affected("DELETE FROM t WHERE id = 3"), 1);
    assert_eq!(db.affected("DELETE FROM t WHERE id = 3"), 0);
    assert_eq!(db.affected("DELETE FROM t WHERE id = 4"), 1);
    // A literal that is shown is no parameter.
    assert_eq!(db.query("SELECT 5, name FROM t WHERE id = 1"), "5,Ann");
    assert_eq!(db.query("SELECT 6, name FROM t WHERE id = 2"), "6,bob");
}

/// Two tables whose columns share their names and nothing else.
fn namesakes() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE q1 (id INT PRIMARY KEY, at TIMESTAMPTZ, f BOOLEAN, c TEXT, u UUID, tags TEXT[]);\n\
         CREATE TABLE q2 (id INT PRIMARY KEY, at DATE, f INT, c INT, u INT, tags JSONB);\n\
         INSERT INTO q1 VALUES (1, '2020-01-01T00:00:00Z', true, 'b', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{x,y}');\n\
         INSERT INTO q2 VALUES (1, '2020-01-02', 7, 7, 8, '[1]');\n\
         CREATE VIEW v AS SELECT f AS g, at FROM q1",
    );
    db
}

/// A qualified column of a join lost its type when another table of the statement had one of its name: what stood
/// beside it was compared as it was written, and no row was found.
#[test]
fn a_column_has_the_type_of_its_own_table() {
    let mut db = namesakes();
    for (sql, answer) in [
        ("SELECT count(*) FROM q1 JOIN q2 USING (id) WHERE q1.f = 't'", "1"),
        ("SELECT count(*) FROM q1 JOIN q2 USING (id) WHERE q1.at = '2020-01-01T01:00:00+01'", "1"),
        ("SELECT count(*) FROM q1 a, q2 AS b WHERE a.id = b.id AND a.f = 'yes' AND b.f = '7'", "1"),
        (
            "SELECT count(*) FROM q2 JOIN (q1 JOIN q2 AS z ON q1.id = z.id) ON q1.f = 'on' AND q2.id = q1.id",
            "1",
        ),
        (
            "SELECT count(*) FROM q1 WHERE f = 't' AND EXISTS (SELECT 1 FROM q2 WHERE f = '7' AND q1.f = 't')",
            "1",
        ),
        (
            "SELECT count(*) FROM q1 WHERE u IN ('{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}') AND id IN (SELECT id FROM q2)",
            "1",
        ),
        (
            "SELECT count(*) FROM (SELECT f, at FROM q1) s, q2 WHERE s.f = 't' AND s.at = '2020-01-01T00:00:00Z'",
            "1",
        ),
        (
            "WITH s(h, k) AS (SELECT f, at FROM q1) SELECT count(*) FROM s x, q2 WHERE x.h = 't' AND k = '2020-01-01T00:00Z'",
            "1",
        ),
        ("WITH f AS (SELECT * FROM q1) SELECT count(*) FROM f, q2 WHERE f.f = 't' AND q2.f = '7'", "1"),
        ("SELECT count(*) FROM v, q2 WHERE g = 't' AND v.at = '2020-01-01T00:00:00Z'", "1"),
        ("SELECT q1.at = q2.at, q2.at > q1.at FROM q1, q2", "0,1"),
        ("SELECT count(*) FROM q1, q2 WHERE q1.tags @> '{x}' AND q2.tags @> '[1]'", "1"),
        ("SELECT f FROM q1 UNION ALL SELECT f FROM q2 WHERE f = '7' ORDER BY 1", "1;7"),
    ] {
        assert_eq!(db.query(sql), answer, "{sql}");
    }
    db.run(
        "UPDATE q1 SET f = 'no' FROM q2 WHERE q1.id = q2.id AND q1.f = 'y' AND q2.f = '7';\n\
         INSERT INTO q2 (id, f) VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET f = excluded.f + q2.f;\n\
         DELETE FROM q2 WHERE f = '16' AND id IN (SELECT q1.id FROM q1 WHERE f = 'off')",
    );
    assert_eq!(db.query("SELECT f, (SELECT count(*) FROM q2) FROM q1"), "0,0");
}

/// A column of unknown type beside a truth was told as a truth, and 7 was sent as `t`.
#[test]
fn choices_between_columns_of_one_name_have_the_type_of_their_own() {
    let mut db = namesakes();
    for (sql, types) in [
        ("SELECT max(q2.c), min(q1.at), max(q2.at) FROM q1, q2", "int4, timestamptz, date"),
        ("SELECT max(q2.c, q1.c IS NOT NULL) FROM q1, q2", "int4"),
        ("SELECT coalesce(q2.c, q1.c > 'a') FROM q1, q2", "int4"),
        ("SELECT CASE WHEN q1.f THEN q1.c > 'a' ELSE q2.c END FROM q1, q2", "int4"),
        ("SELECT q1.c > 'a' FROM q1 UNION SELECT c FROM q2", "int4"),
        (
            "SELECT coalesce(nothing_known(), true), CASE WHEN true THEN true ELSE nothing_known() END",
            "text, text",
        ),
        ("SELECT -(1 < 2), ~(1 < 2), - 1", "int4, int4, int4"),
        ("SELECT s.f, s.c FROM (SELECT * FROM q1) s, q2", "bool, text"),
        ("SELECT g, at FROM v", "bool, timestamptz"),
    ] {
        let sql = sql.replace("nothing_known()", "json_extract('7', '$')");
        let (_, columns) = described(&mut db, &sql, &[]);
        let found: Vec<&str> = columns.split(", ").filter_map(|column| column.rsplit(' ').next()).collect();
        assert_eq!(found.join(", "), types, "{sql}");
    }
}

/// The column was taken for the left side of a comparison, and converted: `SET cast_timestamptz(ts) = now()`.
#[test]
fn a_moment_is_assigned_to_a_column_of_another_kind_of_moment() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE m (id INT PRIMARY KEY, ts TIMESTAMP, d DATE, z TIMESTAMPTZ, s TEXT, f BOOLEAN, n INT DEFAULT 7);\n\
         CREATE TABLE o (id INT PRIMARY KEY, n INT DEFAULT 9);\n\
         INSERT INTO o VALUES (1, 2);\n\
         INSERT INTO m (id) VALUES (1)",
    );
    for (set, answer) in [
        ("ts = now()", "2023-11-14 22:13:20,NULL"),
        ("d = CURRENT_TIMESTAMP, z = now()", "2023-11-14 22:13:20,2023-11-14"),
        ("ts = now() + interval '1 day'", "2023-11-15 22:13:20,2023-11-14"),
        ("ts = z, d = z", "2023-11-14 22:13:20,2023-11-14"),
        ("ts = coalesce(ts, now()), d = clock_timestamp()", "2023-11-14 22:13:20,2023-11-14"),
        ("(ts, d) = (now(), now())", "2023-11-14 22:13:20,2023-11-14"),
        ("ts = '2030-01-02T03:04:05', d = '2030-01-02'", "2030-01-02 03:04:05,2030-01-02"),
        ("d = ts", "2030-01-02 03:04:05,2030-01-02"),
        ("ts = d", "2030-01-02 00:00:00,2030-01-02"),
    ] {
        for sql in [
            format!("UPDATE m SET {set} WHERE id = 1"),
            format!(
                "INSERT INTO m (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET {}",
                set.replace("= ts", "= m.ts")
            ),
        ] {
            assert_eq!(db.affected(&sql), 1, "{sql}");
            assert_eq!(db.query("SELECT ts, d FROM m"), answer, "{sql}");
        }
    }
    // The column's own default, not that of a namesake; a comparison that is assigned; a truth as the word it is.
    db.run("UPDATE m SET n = 1, s = f, f = m.id = 1 FROM o WHERE o.id = m.id;\nUPDATE m SET n = DEFAULT, s = f FROM o");
    assert_eq!(db.query("SELECT n, s, f FROM m"), "7,true,1");
    db.run("UPDATE m SET n = (DEFAULT), s = 'x' WHERE f = 't';\nUPDATE m SET (n, s) = (DEFAULT, m.id > 1)");
    assert_eq!(db.query("SELECT n, s FROM m"), "7,false");
    db.run("INSERT INTO m (id, s, d) SELECT 2, f, z FROM m WHERE id = 1;\nINSERT INTO m (id, s) VALUES (3, 1 = 1)");
    assert_eq!(db.query("SELECT s, d FROM m WHERE id > 1 ORDER BY id"), "true,2023-11-14;true,NULL");
}

/// What a call's parentheses held together fell apart, or was glued to the keyword before it, where the call was left
/// out: `SELECT cast($1 AS bool)` became `SELECT$1`, `NOT cast(a OR b AS bool)` became `NOT a OR b`.
#[test]
fn a_cast_that_changes_nothing_leaves_the_expression_whole() {
    let mut db = db();
    let truth = [Value::from("t")];
    for (sql, parameters, answer) in [
        ("SELECT cast($1 AS bool)", &truth[..], "1"),
        ("SELECT 1 WHERE true AND cast($1 AS bool)", &truth, "1"),
        ("SELECT NOT cast($1 AS bool)", &truth, "0"),
        ("SELECT CASE WHEN cast($1 AS bool)THEN cast('2026-01-01' AS date)END", &truth, "2026-01-01"),
        (
            "SELECT cast($1 AS uuid)",
            &[Value::from("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")],
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        ("SELECT cast($1 AS jsonb)", &[Value::from("[1]")], "[1]"),
        ("SELECT NOT cast(true OR true AS bool), cast(false OR true AS bool) AND false", &[], "0,0"),
        ("SELECT 5-cast(-x AS double precision), cast(x+1 AS float8)*2 FROM t WHERE id = 1", &[], "6.5,5.0"),
        ("SELECT 5-cast(-1.5::float4 AS float4), cast(1.5::float4+1::float4 AS float4)*2", &[], "6.5,5.0"),
    ] {
        assert_eq!(db.query_with(sql, parameters), answer, "{sql}");
    }
}

/// `FROM` between the arguments of a call was taken for the one of a query, and a qualified column for a schema.
#[test]
fn arguments_behind_from_may_be_qualified() {
    let mut db = db();
    for (sql, answer) in [
        ("SELECT extract(year FROM t.at), EXTRACT(month FROM \"t\".\"day\") FROM t WHERE id = 1", "2026,11"),
        ("SELECT extract(hour FROM t.at AT TIME ZONE 'UTC') FROM public.t WHERE t.id = 1", "20"),
        (
            "SELECT trim(BOTH 'A' FROM t.name), trim(LEADING FROM x.name), trim(x.name) FROM t JOIN t AS x USING (id) WHERE x.id = 1",
            "nn,Ann,Ann",
        ),
        (
            "SELECT substring(t.name FROM t.id FOR 2), overlay(t.name PLACING 'x' FROM t.id FOR 1) FROM t WHERE id = 1",
            "An,xnn",
        ),
        ("SELECT id FROM t WHERE extract(year FROM t.at) = 2026 AND t.name IS DISTINCT FROM t.u", "1"),
        ("SELECT t.at AT TIME ZONE 'UTC' FROM t WHERE t.id = 1", "2026-11-21 20:00:00"),
    ] {
        assert_eq!(db.query(sql), answer, "{sql}");
    }
}

/// A text beside an array was taken for JSON.
#[test]
fn arrays_contain_arrays() {
    let mut db = db();
    for (sql, parameters, answer) in [
        ("SELECT id FROM t WHERE tags @> '{x}'", vec![], "1"),
        ("SELECT id FROM t WHERE '{y,x,z}' @> tags", vec![], "1"),
        ("SELECT id FROM t WHERE tags <@ '{x,y,z}'", vec![], "1"),
        ("SELECT id FROM t WHERE tags @> $1", vec![Value::from("{y}")], "1"),
        ("SELECT id FROM t WHERE $1 <@ tags", vec![Value::from("{y,q}")], ""),
        (
            "SELECT id FROM t WHERE tags @> ARRAY['x'] AND tags @> ARRAY['x']::text[] AND tags @> '{}'",
            vec![],
            "1",
        ),
        (
            "SELECT ARRAY[1, NULL] @> ARRAY[NULL], ARRAY[1, 2, 2] <@ ARRAY[2, 1], ARRAY[1] @> '{1,2}'",
            vec![],
            "0,1,0",
        ),
        ("SELECT data @> '{\"a\": {}}', '[1]'::jsonb <@ '[1, 2]' FROM t WHERE id = 1", vec![], "1,1"),
    ] {
        assert_eq!(db.query_with(sql, &parameters), answer, "{sql}");
    }
    assert_eq!(described(&mut db, "SELECT 1 FROM t WHERE tags @> $1 AND data @> $2", &[]).0, "text[], jsonb");
    assert_eq!(db.state("SELECT id FROM t WHERE tags @> '{x'"), "22P02");
}

/// A list of columns with their types was told before the run, and another one by it: drivers that name the types of
/// their parameters got 0A000 for each value without a column beside it.
#[test]
fn types_that_a_client_chooses_are_those_of_the_statement() {
    let mut db = db();
    for (sql, chosen, value, columns, answer) in [
        ("SELECT $1", SqlType::Int2, Value::Integer(3), "?column? int2", "3"),
        ("SELECT $1", SqlType::Int4, Value::Integer(3), "?column? int4", "3"),
        ("SELECT $1", SqlType::Varchar, Value::from("x"), "?column? varchar", "x"),
        (
            "SELECT $1 AS a",
            SqlType::Timestamptz,
            Value::from("2026-01-01 00:00:00+00:00"),
            "a timestamptz",
            "2026-01-01 00:00:00+00:00",
        ),
        ("VALUES ($1)", SqlType::Int8, Value::Integer(3), "column1 int8", "3"),
        ("SELECT $1::int", SqlType::Int2, Value::Integer(3), "int4 int4", "3"),
        ("SELECT $1::int", SqlType::Float8, Value::Real(2.6), "int4 int4", "3"),
        ("SELECT $1::int", SqlType::Text, Value::from("41"), "int4 int4", "41"),
        ("SELECT $1::text", SqlType::Bool, Value::Integer(1), "text text", "true"),
        (
            "SELECT $1 + 1, coalesce(NULL, $1)",
            SqlType::Int8,
            Value::Integer(3),
            "?column? int8, coalesce int8",
            "4,3",
        ),
        (
            "SELECT s.a FROM (SELECT $1 AS a) s",
            SqlType::Date,
            Value::from("2026-01-01"),
            "a date",
            "2026-01-01",
        ),
        (
            "SELECT at - $1 FROM t WHERE id = 1",
            SqlType::Interval,
            Value::from("1 day"),
            "?column? timestamptz",
            "2026-11-20 20:00:00+00:00",
        ),
        ("SELECT name FROM t WHERE at > $1", SqlType::Date, Value::from("2026-11-21"), "name text", "Ann"),
        (
            "SELECT name FROM t WHERE at = $1",
            SqlType::Varchar,
            Value::from("2026-11-21T21:00:00+01"),
            "name text",
            "Ann",
        ),
        ("SELECT name FROM t WHERE id = $1", SqlType::Int8, Value::Integer(2), "name text", "bob"),
        (
            "SELECT tags @> $1 FROM t WHERE id = 1",
            SqlType::Text.array().expect("there are"),
            Value::from("[\"x\"]"),
            "?column? bool",
            "1",
        ),
    ] {
        let chosen = [Some(chosen)];
        let description =
            db.executor.describe(&db.session, sql, &chosen).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(description.parameters, [chosen[0].expect("it is there")], "{sql}");
        let (_, told) = described(&mut db, sql, &chosen);
        assert_eq!(told, columns, "{sql}");
        let mut rows = crate::common::Rows::default();
        let given = (&[value][..], &description.chosen[..]);
        db.executor
            .execute_text(&mut db.session, &sql::StatementText::new(sql), given, &db.cancel, &mut rows)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(crate::common::shown(&rows.rows), answer, "{sql}");
        let of_run: Vec<SqlType> = rows.types;
        let of_description: Vec<SqlType> =
            description.columns.expect("rows").iter().map(|column| column.ty).collect();
        assert_eq!(of_run, of_description, "{sql}");
    }
    // Who chooses nothing is told what the statement says, before and after.
    assert_eq!(described(&mut db, "SELECT $1", &[]), ("text".into(), "?column? text".into()));
    let same = db.executor.describe(&db.session, "SELECT name FROM t WHERE id = $1", &[Some(SqlType::Int2)]);
    assert_eq!(same.expect("it is right").chosen, []);
}
