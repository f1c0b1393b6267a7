//! PostgreSQL's dialect: statements with the answers that PostgreSQL 15 gives, and the types that clients are told.

mod common;

use common::Db;

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
    ("SELECT interval '1 day 2 hours', interval '90' minute", "1 day 02:00:00,00:01:30"),
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
    ("SELECT name FROM t WHERE name NOT ILIKE 'a%'", "bob"),
    ("SELECT name FROM t WHERE name ~ '^[A-Z]'", "Ann"),
    ("SELECT name FROM t WHERE name !~ '^[A-Z]'", "bob"),
    ("SELECT name FROM t WHERE name ~* '^B' AND id > 0", "bob"),
    ("SELECT name FROM t WHERE name !~* '^b'", "Ann"),
    ("SELECT name FROM t WHERE flag", "Ann"),
    ("SELECT name FROM t WHERE flag = 't'", "Ann"),
    ("SELECT name FROM t WHERE flag IS TRUE", "Ann"),
    ("SELECT name FROM t WHERE NOT flag", "bob"),
    ("SELECT name FROM t WHERE flag IS NOT UNKNOWN ORDER BY id FETCH FIRST 1 ROW ONLY", "Ann"),
    ("SELECT id FROM t ORDER BY id OFFSET 1 ROWS FETCH NEXT 5 ROWS ONLY", "2"),
    ("SELECT id FROM t ORDER BY id LIMIT ALL OFFSET 1", "2"),
    ("SELECT id FROM t ORDER BY id OFFSET 1", "2"),
    ("SELECT id FROM t ORDER BY id OFFSET 0 LIMIT 1", "1"),
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
    ("SELECT data -> 'a' ->> 'b' FROM t WHERE data @> '{\"a\": {\"b\": [2]}}'", "[1,2]"),
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
        "2026-01-30 00:00:00;2026-01-31 00:00:00;2026-02-01 00:00:00",
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
            Ok((_, rows)) => common::shown(&rows.rows),
            Err(error) => format!("{error}"),
        };
        if found != *answer {
            wrong.push(format!("{sql}\n  is     {found}\n  not as {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
