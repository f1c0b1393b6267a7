//! Comparisons of every type with texts and parameters that have none: the answer is PostgreSQL's, or an error.
//!
//! Each cell is an expression of a typed table, a form of comparison, and the text beside it: a literal, or a parameter
//! whose type the client leaves open. The usual run takes some of them by
//! chance; `COMPARISONS` says how many, `SEED` replays a run.

use fastrand::Rng;

use super::{Answer, Both, number_of, seed_given};
use crate::harness::seed;

/// Cells of a short run, and its seed.
const COMPARISONS: u64 = 1_500;
const SHORT_RUN: u64 = 28;

const SETUP: &[&str] = &[
    "CREATE TABLE typed (id int PRIMARY KEY, i int, b bigint, f float8, n numeric, m numeric(10, 2), t text, d date,
        ts timestamp, tz timestamptz, iv interval, j jsonb, o boolean, u uuid)",
    "INSERT INTO typed VALUES
        (1, 5, 9, 2.5, 1.10, 1.10, '5', '2020-02-01', '2020-02-01 10:00', '2020-02-01 10:00+00', '2 hours',
            '{\"n\": 5, \"a\": [1, 2]}', true, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'),
        (2, 10, 5000000000, 10, 10, 10, '10', '1999-12-31', '1999-12-31 00:00', '1999-12-31 00:00+00', '3 days',
            '{\"n\": 10, \"a\": []}', false, 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'),
        (3, -3, -1, -0.5, 20.00, 20.00, 'x', '2020-12-31', '2020-12-31 23:59', '2020-12-31 23:59+00', '30 days',
            '{\"n\": \"5\", \"a\": {\"b\": null}}', true, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'),
        (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
];

/// Expressions of one type, and texts of it; the last is none.
struct Kind {
    expressions: &'static [&'static str],
    texts: &'static [&'static str],
}

const KINDS: &[Kind] = &[
    Kind {
        expressions: &[
            "i",
            "b",
            "i + 1",
            "-i",
            "b / 2",
            "abs(i)",
            "coalesce(i, 7)",
            "length(t)",
            "i::bigint",
            "greatest(i, 5)",
            "(SELECT max(q.i) FROM typed q)",
            "CASE WHEN o THEN i ELSE 10 END",
            "nullif(i, 5)",
            "(j->>'n')::int",
            "jsonb_array_length('[1,2]')",
            "array_length(ARRAY[i, 1], 1)",
            "i % 4",
        ],
        texts: &["5", "10", "-3", " 6 ", "9", "1.5", "x"],
    },
    Kind {
        expressions: &[
            "n",
            "m",
            "i * 1.5",
            "n * 2",
            "extract(year FROM d)",
            "extract(epoch FROM iv)",
            "coalesce(i, 1.5)",
            "round(n)",
            "coalesce(n, 0)",
            "i::numeric",
            "abs(n)",
            "(SELECT avg(q.i) FROM typed q)",
            "(SELECT sum(q.b) FROM typed q)",
            "CASE WHEN o THEN i ELSE 1.5 END",
            "greatest(i, 2.5)",
            "(SELECT avg(q.n) FROM typed q)",
            "-n",
        ],
        texts: &["5", "10", "1.10", "7.5", "2020", "15.0", "4", "x"],
    },
    Kind {
        expressions: &[
            "f",
            "f * 2",
            "i::float8",
            "sqrt(abs(f))",
            "coalesce(f, 1)",
            "(SELECT avg(q.f) FROM typed q)",
            "date_part('year', d)",
        ],
        texts: &["5", "10", "2.5", "2.5e0", "2020", "x"],
    },
    Kind {
        expressions: &[
            "iv",
            "iv * 2",
            "iv + interval '1 hour'",
            "ts - ts",
            "(SELECT sum(q.iv) FROM typed q)",
            "(SELECT max(q.iv) FROM typed q)",
            "(SELECT avg(q.iv) FROM typed q WHERE q.id < 3)",
            "greatest(iv, interval '3 days')",
            "(SELECT min(q.iv) FROM typed q)",
            "coalesce(iv, '1 day')",
            "tz - '2020-01-01 00:00+00'::timestamptz",
        ],
        texts: &["2 hours", "4 hours", "1 mon", "30 days", "72:00", "0", "x"],
    },
    Kind {
        expressions: &[
            "d",
            "d + 1",
            "ts",
            "ts::date",
            "date_trunc('day', ts)",
            "ts + iv",
            "coalesce(d, '2020-01-01')",
            "d - interval '1 day'",
            "(SELECT max(q.ts) FROM typed q)",
        ],
        texts: &["2020-02-01", "2020-02-02", "1999-12-31 00:00", "2020-12-31", "x"],
    },
    Kind {
        expressions: &[
            "j->'n'",
            "j",
            "jsonb_build_object('n', i)",
            "to_jsonb(i)",
            "j->'a'",
            "coalesce(j->'n', '1')",
            "j #> '{a}'",
        ],
        texts: &["5", "10", "\"5\"", "[1, 2]", "{\"n\": 5}", "[]", "null", "x"],
    },
    Kind { expressions: &["o", "i > 4", "NOT o", "o AND i > 4"], texts: &["true", "f", "1", "x"] },
    Kind { expressions: &["u", "coalesce(u, u)"], texts: &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "x"] },
    Kind {
        expressions: &["t", "t || ''", "upper(t)", "j->>'n'", "coalesce(t, 'x')"],
        texts: &["5", "10", "x", "X"],
    },
];

/// `{e}` is the expression, `{a}` and `{b}` texts.
const FORMS: &[&str] = &[
    "{e} = {a}",
    "{a} = {e}",
    "{e} <> {a}",
    "{e} < {a}",
    "{a} < {e}",
    "{e} >= {a}",
    "{e} > {a}",
    "{e} IS DISTINCT FROM {a}",
    "{e} IS NOT DISTINCT FROM {a}",
    "{e} IN ({a}, {b})",
    "{e} NOT IN ({a}, {b})",
    "{e} BETWEEN {a} AND {b}",
    "{e} NOT BETWEEN {a} AND {b}",
    "{a} BETWEEN {e} AND {e}",
    "CASE {e} WHEN {a} THEN true ELSE false END",
    "({e}, 1) = ({a}, 1)",
    "({e}, id) IN (({a}, 1), ({b}, 2))",
    "nullif({e}, {a}) IS NULL",
    "coalesce({e}, {a}) = {b}",
    "greatest({e}, {a}) = {e}",
    "NOT ({e} = {a})",
];

/// `{c}` is the comparison.
const PLACES: &[&str] = &[
    "SELECT id, {c} FROM typed ORDER BY id",
    "SELECT id FROM typed WHERE {c} ORDER BY id",
    "SELECT count(*) FROM typed WHERE {c}",
    "SELECT id FROM typed JOIN (SELECT 1 AS one) AS k ON {c} ORDER BY id",
    "SELECT id, CASE WHEN {c} THEN 1 ELSE 2 END FROM typed ORDER BY id",
    "SELECT {c} AS c, count(*) FROM typed GROUP BY 1 ORDER BY 1 NULLS FIRST",
    "SELECT id FROM typed WHERE {c} ORDER BY {e} NULLS FIRST, id",
    "SELECT id FROM (SELECT id, {c} AS c FROM typed) AS q WHERE c ORDER BY id",
    "SELECT id FROM typed WHERE NOT ({c}) OR id = 4 ORDER BY id",
    "DELETE FROM typed WHERE {c} RETURNING id",
    "UPDATE typed SET i = 0 WHERE {c} RETURNING id",
    "SELECT id FROM (SELECT id, i, b, f, n, m, t, d, ts, tz, iv, j, o, u FROM typed WHERE id > 0 ORDER BY id) AS typed WHERE {c} ORDER BY id",
];

/// What is asked, with parameters in the place of texts.
struct Cell {
    sql: String,
    parameters: Vec<&'static str>,
}

fn cell(rng: &mut Rng) -> Cell {
    let kind = &KINDS[rng.usize(0..KINDS.len())];
    let pick = |rng: &mut Rng, from: &[&'static str]| from[rng.usize(0..from.len())];
    let mut expression = pick(rng, kind.expressions).to_owned();
    if expression.len() > 2 || rng.bool() {
        expression = format!("({expression})");
    }
    let (a, b) = (pick(rng, kind.texts), pick(rng, kind.texts));
    let (form, place) = (pick(rng, FORMS), pick(rng, PLACES));
    let opened = rng.bool();
    let spelled = |text: &str, number: usize| if opened { format!("${number}") } else { format!("'{text}'") };
    let condition =
        form.replace("{e}", &expression).replace("{a}", &spelled(a, 1)).replace("{b}", &spelled(b, 2));
    let place = place.replace("{e}", &expression);
    let parameters = match (opened, form.contains("{b}")) {
        (false, _) => vec![],
        (true, false) => vec![a],
        (true, true) => vec![a, b],
    };
    Cell { sql: place.replace("{c}", &condition), parameters }
}

#[test]
fn a_text_beside_a_computed_value_is_taken_as_postgresql_takes_it() {
    let (_servers, mut both) = Both::start();
    for statement in SETUP {
        both.set(statement);
    }
    let asked = number_of("COMPARISONS");
    let replayed = asked.is_some() || seed_given();
    let mut rng = Rng::with_seed(if replayed { seed() } else { SHORT_RUN });
    let (mut left, mut wrong, mut refused) = (number_of("DIFFERENCES").unwrap_or(1), Vec::new(), 0_u64);
    let cells = asked.unwrap_or(COMPARISONS);
    for _ in 0..cells {
        let Cell { sql, parameters } = cell(&mut rng);
        let writes = sql.starts_with("DELETE") || sql.starts_with("UPDATE");
        if writes {
            both.set("BEGIN");
        }
        let (mut expected, mut found) = both.ask_with(&sql, &parameters);
        if writes {
            both.set("ROLLBACK");
            // Who takes rows says not in which order.
            expected = expected.sorted();
            found = found.sorted();
        }
        if expected == found {
            continue;
        }
        // What is not supported says so.
        let unsupported = found == Answer::Failed("0A000".to_owned());
        if unsupported || matches!((&found, &expected), (Answer::Failed(_), Answer::Failed(_))) {
            refused += 1;
            continue;
        }
        wrong.push(format!("{sql} {parameters:?}\n  PostgreSQL: {expected:?}\n  here:       {found:?}\n"));
        left -= 1;
        if left == 0 {
            break;
        }
    }
    eprintln!("{cells} cells; {refused} are refused otherwise");
    assert!(wrong.is_empty(), "{}", wrong.concat());
}
