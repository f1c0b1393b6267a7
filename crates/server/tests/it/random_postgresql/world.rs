//! What is asked.

use fastrand::Rng;

use super::bare::Bare;

/// What an expression is of, by the letter that stands for it in a form.
///
/// `$i` in a form is an expression of integers, and so on; `#i` a literal of them; `$?` an expression of a plain kind.
struct Kind {
    letter: char,
    column: &'static str,
    forms: &'static [&'static str],
}

const KINDS: &[Kind] = &[
    Kind {
        letter: 'i',
        column: "d.i",
        forms: &[
            "($i + $i)",
            "($i - $i)",
            "($i * $i)",
            "($i / $i)",
            "($i % $i)",
            "(- $i)",
            "length($s)",
            "coalesce($i, #i)",
            "nullif($i, $i)",
            "cardinality($a)",
            "abs($i)",
            "($a)[1]",
            "CASE WHEN $b THEN $i ELSE $i END",
            "strpos($s, #s)",
            "array_length($a, 1)",
            "array_position($a, #i)",
            "greatest($i, $i)",
            "least($i, $i)",
            "($d - $d)",
            "($n)::int",
            "($s || '7')::int",
            "octet_length($y)",
            "ascii($s)",
            "(SELECT max(q.i) FROM d q WHERE q.i < $i)",
            "mod($i, #i)",
            "(SELECT count(*)::int FROM e WHERE e.d = $i)",
        ],
    },
    Kind {
        letter: 'l',
        column: "d.l",
        forms: &[
            "($l + $l)",
            "($l - $i)",
            "($l * $i)",
            "($i)::bigint",
            "coalesce($l, $i)",
            "(SELECT count(*) FROM e WHERE e.d < $i)",
            "(SELECT sum(q.i) FROM d q WHERE q.i < $i)",
            "($l / #i)",
            "abs($l)",
            "greatest($l, $l)",
            "($n)::bigint",
        ],
    },
    Kind {
        letter: 'f',
        column: "d.x",
        forms: &[
            "($f + $f)",
            "($f - $f)",
            "($f * $f)",
            "($i)::float8",
            "($n)::float8",
            "abs($f)",
            "(- $f)",
            "coalesce($f, #f)",
            "floor($f)",
            "ceil($f)",
            "sqrt(abs($f))",
            "($f + $n)",
            "($f * $i)",
            "greatest($f, $f)",
            "CASE WHEN $b THEN $f ELSE $f END",
        ],
    },
    Kind {
        letter: 'n',
        column: "d.n",
        forms: &[
            "($n + $n)",
            "($n - $n)",
            "($n * $n)",
            "($n / $n)",
            "($n % $n)",
            "(- $n)",
            "round($n, 1)",
            "round($n)",
            "trunc($n, 1)",
            "ceil($n)",
            "floor($n)",
            "abs($n)",
            "sign($n)",
            "($n + $i)",
            "($i * $n)",
            "($n / #i)",
            "div($n, $n)",
            "mod($n, $n)",
            "power($n, 2)",
            "sqrt(abs($n))",
            "($n)::numeric(20,3)",
            "($i)::numeric",
            "coalesce($n, $n)",
            "coalesce($n, $i)",
            "nullif($n, $n)",
            "greatest($n, $n)",
            "least($n, $i)",
            "CASE WHEN $b THEN $n ELSE $n END",
            "CASE WHEN $b THEN $n ELSE $i END",
            "round(d.m, 3)",
            "(SELECT sum(q.n) FROM d q WHERE q.id < $i)",
            "(SELECT avg(q.n) FROM d q WHERE q.id < $i)",
            "round((SELECT max(q.m) FROM d q WHERE q.m < $n), 2)",
        ],
    },
    Kind {
        letter: 's',
        column: "d.s",
        forms: &[
            "upper($s)",
            "lower($s)",
            "($s || $s)",
            "($i)::text",
            "($n)::text",
            "($b)::text",
            "($j)::text",
            "($d)::text",
            "($u)::text",
            "($v)::text",
            "left($s, 2)",
            "right($s, 2)",
            "replace($s, 'a', #s)",
            "reverse($s)",
            "concat($s, $?)",
            "array_to_string($t, ',')",
            "substr($s, 2)",
            "substring($s FROM 2 FOR 1)",
            "initcap($s)",
            "split_part($s, 'a', 1)",
            "jsonb_typeof($j)",
            "($j ->> 'a')",
            "trim($s)",
            "lpad($s, 4, 'xy')",
            "rpad($s, 4, '.')",
            "repeat($s, 2)",
            "translate($s, 'ab', 'x')",
            "md5($s)",
            "encode($y, 'hex')",
            "coalesce($s, #s)",
            "to_char($d, 'YYYY-MM-DD')",
            "to_char($m, 'HH24:MI:SS Dy')",
            "regexp_replace($s, 'a', 'b')",
            "CASE WHEN $b THEN $s ELSE $s END",
            "(SELECT string_agg(q.s, ',' ORDER BY q.id) FROM d q WHERE q.id < $i)",
            "quote_literal($s)",
        ],
    },
    Kind {
        letter: 'b',
        column: "d.b",
        forms: &[
            "($i < $i)",
            "($i = $i)",
            "($i <> $l)",
            "($f < $f)",
            "($n < $n)",
            "($n = $n)",
            "($n > $i)",
            "($n <= $f)",
            "($n BETWEEN $n AND $n)",
            "($n IN ($n, #n, #i))",
            "($i BETWEEN #i AND $i)",
            "($s LIKE #p)",
            "($s ILIKE #p)",
            "($s NOT LIKE #p)",
            "($s ~ '^a')",
            "($s < $s)",
            "($a @> $a)",
            "($a && $a)",
            "($t && $t)",
            "($a = $a)",
            "($j ? 'a')",
            "($j ?| ARRAY['a', 'cc'])",
            "($j ?& ARRAY['a', 'b'])",
            "($j @> $j)",
            "($j = $j)",
            "($s IS NULL)",
            "($n IS NOT NULL)",
            "($i = ANY (#a))",
            "($i <> ALL (#a))",
            "($i IN (SELECT unnest(#a)))",
            "($i IN (SELECT q.i FROM d q))",
            "($b AND $b)",
            "($b OR $b)",
            "(NOT $b)",
            "($m <= $m)",
            "($z < $z)",
            "($d = $d)",
            "($d < $m)",
            "($v < #v)",
            "($v = $v)",
            "($u = $u)",
            "($y = $y)",
            "($s = $s)",
            "($b IS TRUE)",
            "(coalesce($s, 'x') LIKE ANY (ARRAY['a%', '_b%']))",
            "EXISTS (SELECT 1 FROM unnest($a) u WHERE u > #i)",
            "EXISTS (SELECT 1 FROM e WHERE e.d = $i)",
            "($i IS DISTINCT FROM $i)",
            "($n IS DISTINCT FROM $n)",
            "(($i, $s) = ($i, $s))",
        ],
    },
    Kind {
        letter: 'a',
        column: "d.a",
        forms: &[
            "array_append($a, #i)",
            "array_remove($a, #i)",
            "($a || $a)",
            "($a)[1:2]",
            "array_prepend(#i, $a)",
            "array_replace($a, #i, #i)",
            "ARRAY(SELECT u + 1 FROM unnest($a) u ORDER BY 1 NULLS FIRST)",
            "ARRAY[$i, $i]",
            "(SELECT array_agg(q.i ORDER BY q.id) FROM d q WHERE q.id < $i)",
        ],
    },
    Kind {
        letter: 't',
        column: "d.t",
        forms: &[
            "string_to_array($s, 'a')",
            "regexp_match($s, '(a)(.)')",
            "($t || #t)",
            "($t)[1:1]",
            "ARRAY[$s, 'x']",
        ],
    },
    Kind {
        letter: 'j',
        column: "d.j",
        forms: &[
            "($j -> 'a')",
            "jsonb_build_object('k', $?, 'a', $j)",
            "jsonb_build_array($?, $j)",
            "to_jsonb($c)",
            "($j || '{\"z\": 1}'::jsonb)",
            "($j #> '{a}')",
            "jsonb_strip_nulls($j)",
            "(SELECT jsonb_agg(q.n ORDER BY q.id) FROM d q WHERE q.id < $i)",
            "to_jsonb($n)",
        ],
    },
    Kind {
        letter: 'm',
        column: "d.at",
        forms: &[
            "($m + #v)",
            "($m - #v)",
            "date_trunc('month', $m)",
            "date_trunc('hour', $m)",
            "($d)::timestamp",
            "($z AT TIME ZONE 'Europe/Berlin')",
            "greatest($m, $m)",
            "($d + time '10:30')",
        ],
    },
    Kind {
        letter: 'z',
        column: "d.tz",
        forms: &[
            "($z + #v)",
            "($z - #v)",
            "date_trunc('day', $z)",
            "($m AT TIME ZONE 'America/New_York')",
            "coalesce($z, #z)",
            "($m)::timestamptz",
        ],
    },
    Kind {
        letter: 'v',
        column: "d.iv",
        forms: &[
            "($v + $v)",
            "($v - #v)",
            "($v * #i)",
            "(- $v)",
            "($m - $m)",
            "($z - $z)",
            "coalesce($v, #v)",
        ],
    },
    Kind { letter: 'u', column: "d.u", forms: &["coalesce($u, #u)", "($u)::text::uuid"] },
    Kind {
        letter: 'y',
        column: "d.y",
        forms: &["coalesce($y, #y)", "decode(encode($y, 'hex'), 'hex')", "($y || #y)", "sha256($y)"],
    },
    Kind {
        letter: 'd',
        column: "d.dy",
        forms: &["($d + #i)", "($d - #i)", "($m)::date", "coalesce($d, #d)", "least($d, $d)"],
    },
];

const WORDS: &[&str] =
    &["a", "ab", "Ab", "b_c", "100%", "a\\b", "\u{c9}", "\u{e9}", "", "x y", "\u{e9}a", "ABC"];
const PATTERNS: &[&str] = &["a%", "%b%", "_b", "A%", "%\\%%", "a\\\\b", "", "%", "\u{c9}%", "%a_%", "ab"];
const NUMBERS: &[&str] =
    &["0", "1.50", "2.25", "-3.10", "100", "0.01", "1.5", "12345678901234567890.123", "7"];

fn kind_of(letter: char) -> &'static Kind {
    KINDS.iter().find(|kind| kind.letter == letter).expect("a kind")
}

/// Makes statements.
pub(super) struct World {
    rng: Rng,
}

impl World {
    pub(super) fn new(rng: Rng) -> Self {
        Self { rng }
    }

    fn pick<'p>(&mut self, from: &[&'p str]) -> &'p str {
        from[self.rng.usize(0..from.len())]
    }

    fn letter(&mut self, letters: &str) -> char {
        char::from(letters.as_bytes()[self.rng.usize(0..letters.len())])
    }

    fn list(&mut self, letter: char) -> String {
        let items: Vec<String> = (0..self.rng.usize(0..4)).map(|_| self.literal(letter)).collect();
        items.join(", ")
    }

    fn json(&mut self, depth: u32) -> String {
        match self.rng.u32(0..if depth > 0 { 7 } else { 5 }) {
            0 => self.pick(&["0", "1", "-2", "1.50", "2.0", "1e2"]).to_owned(),
            1 => self.pick(&["\"a\"", "\"b\"", "\"x y\"", "\"q\""]).to_owned(),
            2 => "null".to_owned(),
            3 | 4 => self.pick(&["true", "false"]).to_owned(),
            5 => {
                let items: Vec<String> = (0..self.rng.usize(0..4)).map(|_| self.json(depth - 1)).collect();
                format!("[{}]", items.join(", "))
            }
            _ => {
                let members = (0..self.rng.usize(0..4))
                    .map(|_| format!("\"{}\": {}", self.pick(&["a", "b", "cc", "d"]), self.json(depth - 1)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn literal(&mut self, letter: char) -> String {
        match letter {
            'i' => self.pick(&["0", "1", "2", "3", "-1", "7", "10", "100"]).to_owned(),
            'l' => format!("{}::bigint", self.pick(&["0", "1", "-2", "5000000000", "'9223372036854775807'"])),
            'f' => format!("'{}'::float8", self.pick(&["0", "1.5", "-2.25", "1e10", "0.1", "100"])),
            'n' => format!("'{}'::numeric", self.pick(NUMBERS)),
            's' => format!("'{}'", self.pick(WORDS)),
            'p' => format!("'{}'", self.pick(PATTERNS)),
            'b' => self.pick(&["true", "false"]).to_owned(),
            'a' => format!("ARRAY[{}]::int[]", self.list('i')),
            't' => format!("ARRAY[{}]::text[]", self.list('s')),
            'j' => format!("'{}'::jsonb", self.json(2)),
            'm' => format!("'{}'::timestamp", self.moment()),
            'z' => format!("'{}+00'::timestamptz", self.moment()),
            'v' => {
                let spans =
                    ["1 day", "2 hours", "1 month", "90 minutes", "-3 days", "1 year 2 mons", "00:00:01.5"];
                format!("interval '{}'", self.pick(&spans))
            }
            'u' => {
                let last = self.pick(&["1", "2", "f"]);
                format!("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1{last}'::uuid")
            }
            'y' => format!("'{}'::bytea", self.pick(&["\\x", "\\x00ff", "\\x6162", "\\x61"])),
            _ => format!("'2024-{:02}-{:02}'::date", self.rng.u32(1..13), self.rng.u32(1..29)),
        }
    }

    fn moment(&mut self) -> String {
        let (month, day, hour) = (self.rng.u32(1..13), self.rng.u32(1..29), self.rng.u32(0..24));
        let rest = self.pick(&["00:00", "30:15", "59:59.5", "00:00.123456"]);
        format!("2024-{month:02}-{day:02} {hour:02}:{rest}")
    }

    /// An expression of the kind that a letter stands for.
    fn expression(&mut self, letter: char, depth: u32) -> String {
        let kind = kind_of(letter);
        if depth == 0 || self.rng.u32(0..4) == 0 {
            return if self.rng.bool() { kind.column.to_owned() } else { self.literal(letter) };
        }
        let form = self.pick(kind.forms);
        let mut out = String::new();
        let mut letters = form.chars().peekable();
        while let Some(sign) = letters.next() {
            match (sign, letters.peek().copied()) {
                ('$', Some(of)) if of.is_ascii_lowercase() || of == '?' => {
                    letters.next();
                    match of {
                        '?' => {
                            let of = self.letter("ibs");
                            out.push_str(&self.expression(of, depth - 1));
                        }
                        // Of a column, for a bare literal is of no type.
                        'c' => {
                            let of = self.letter("ilnsbat");
                            out.push_str(kind_of(of).column);
                        }
                        of => out.push_str(&self.expression(of, depth - 1)),
                    }
                }
                ('#', Some(of)) if of.is_ascii_lowercase() => {
                    letters.next();
                    out.push_str(&self.literal(of));
                }
                _ => out.push(sign),
            }
        }
        out
    }

    fn any(&mut self) -> String {
        let (letter, depth) = (self.letter("iilfnnnnssbbatjmzvuyd"), self.rng.u32(0..4));
        self.expression(letter, depth)
    }

    fn row(&mut self, id: u32) -> String {
        let values: Vec<String> = "ilfnnsbatjmzvuyd"
            .chars()
            .map(|letter| if self.rng.u32(0..7) == 0 { "NULL".to_owned() } else { self.stored(letter) })
            .collect();
        format!("INSERT INTO d VALUES ({id}, {})", values.join(", "))
    }

    /// A literal that fits its column.
    fn stored(&mut self, letter: char) -> String {
        match letter {
            'n' => format!("'{}'::numeric", self.pick(&NUMBERS[..7])),
            'l' => self.pick(&["0", "1", "-2", "5000000000"]).to_owned(),
            letter => self.literal(letter),
        }
    }

    /// Tables and rows of both servers.
    pub(super) fn setup(&mut self) -> Vec<String> {
        let mut setup = vec![
            "CREATE TABLE d (id int PRIMARY KEY, i int, l bigint, x float8, n numeric(8,2), m numeric, s text, b bool, \
             a int[], t text[], j jsonb, at timestamp, tz timestamptz, iv interval, u uuid, y bytea, dy date)"
                .to_owned(),
            "CREATE TABLE e (id int PRIMARY KEY, d int, s text, n numeric)".to_owned(),
            "CREATE INDEX d_m ON d (m)".to_owned(),
        ];
        setup.extend((0..12).map(|id| self.row(id)));
        for id in 0..8 {
            let (of, word, number) = (self.rng.u32(0..12), self.literal('s'), self.literal('n'));
            setup.push(format!("INSERT INTO e VALUES ({id}, {of}, {word}, {number})"));
        }
        setup
    }

    /// A query whose answer has one order.
    pub(super) fn statement(&mut self) -> String {
        match self.rng.u32(0..18) {
            0..=6 => {
                let (one, other) = (self.any(), self.any());
                let condition = if self.rng.bool() { "true".to_owned() } else { self.expression('b', 2) };
                format!("SELECT d.id, {one}, {other} FROM d WHERE {condition} ORDER BY d.id")
            }
            7 => {
                let letter = self.letter("at");
                let array = self.expression(letter, 2);
                format!("SELECT d.id, u.x, u.n FROM d, unnest({array}) WITH ORDINALITY u(x, n) ORDER BY 1, 3")
            }
            8 => {
                let letter = self.letter("isbdn");
                let value = self.expression(letter, 2);
                format!(
                    "SELECT d.id, x.v, x.w FROM d CROSS JOIN LATERAL (SELECT {value} AS v, e.s AS w FROM e \
                     WHERE e.d = d.id ORDER BY e.id LIMIT 2) x ORDER BY d.id, x.w COLLATE \"C\" NULLS FIRST, x.v NULLS FIRST"
                )
            }
            9 => {
                let last = self.pick(&["d.id % 3", "coalesce(d.i, 2) % 4", "2"]);
                format!("SELECT d.id, g FROM d, generate_series(1, {last}) g ORDER BY 1, 2")
            }
            10 | 11 => self.groups(),
            12 => {
                let (letter, arm) =
                    (self.letter("inlfs"), self.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]));
                let (one, other) = (self.expression(letter, 2), self.expression(letter, 2));
                // Of equal numbers any may stand for all.
                let round = if letter == 'n' { "round" } else { "" };
                format!(
                    "SELECT {round}({one}) AS v FROM d {arm} SELECT {round}({other}) FROM d ORDER BY 1 NULLS FIRST"
                )
            }
            13 => {
                let letter = self.letter("inlfsd");
                let value = self.expression(letter, 2);
                let value = if letter == 'n' { format!("round({value}, 3)") } else { value };
                format!(
                    "WITH q AS (SELECT d.id, {value} AS v FROM d) SELECT q.v, count(*) FROM q JOIN e ON e.d = q.id \
                     GROUP BY q.v ORDER BY q.v NULLS FIRST"
                )
            }
            14 => self.window(),
            15 | 16 => {
                let value = Bare { rng: &mut self.rng }.expression();
                format!("SELECT d.id, {value} FROM d ORDER BY d.id")
            }
            _ => format!(
                "SELECT x.k, jsonb_typeof(x.v) FROM d, jsonb_each(CASE WHEN jsonb_typeof(d.j) = 'object' THEN d.j END) \
                 x(k, v) WHERE d.id = {} ORDER BY 1",
                self.rng.u32(0..12)
            ),
        }
    }

    fn groups(&mut self) -> String {
        let letter = self.letter("binnsd");
        let key = self.expression(letter, 1);
        let (one, other) = (self.expression('i', 1), self.expression('d', 1));
        let (number, float) = (self.expression('n', 2), self.expression('l', 1));
        let key = if letter == 's' { format!("({key}) COLLATE \"C\"") } else { key };
        // Of equal numbers any may stand for its group.
        let shown = if letter == 'n' { format!("round({key}, 4)") } else { key };
        format!(
            "SELECT {shown} AS k, count(*), count(DISTINCT {one}), min({one}), max({other}), sum({number}), \
             avg({number}), sum({float}) FROM d GROUP BY 1 ORDER BY 1 NULLS FIRST"
        )
    }

    fn window(&mut self) -> String {
        let number = self.expression('n', 1);
        let letter = self.letter("isnd");
        // A bare literal is of no type, which PostgreSQL refuses here.
        let value = kind_of(letter).column;
        let function = self.pick(&["sum", "avg", "min", "max", "count"]);
        format!(
            "SELECT d.id, {function}(round({number}, 2)) OVER (ORDER BY d.id ROWS 2 PRECEDING), \
             lag({value}) OVER (ORDER BY d.id), row_number() OVER (ORDER BY d.id) FROM d ORDER BY d.id"
        )
    }
}
