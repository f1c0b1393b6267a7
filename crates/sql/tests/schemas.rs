//! Random schemas held against plain SQLite: collations, checks, generated columns, and indexes of every kind, made before
//! and after the rows. The same statements give the same rows and fail on both sides or on none.
//!
//! `SEED=... cargo test -p sql --test schemas` replays one run.

mod common;

use common::native::Native;
use common::{Db, shown};

const SCHEMAS: usize = 150;
const STATEMENTS: usize = 60;

const COLLATIONS: &[&str] = &["", "COLLATE NOCASE", "COLLATE RTRIM", "COLLATE BINARY"];
const EXPRESSIONS: &[&str] = &[
    "length(a)",
    "b * 2",
    "a || c",
    "upper(a)",
    "b + length(c)",
    "coalesce(b, 0) % 3",
    "a = c",
    "substr(a, 1, 1)",
    "CASE WHEN b > 2 THEN a ELSE c END",
    "CAST(a AS INT)",
    "b IS NULL",
    "a < c",
];
const CONDITIONS: &[&str] =
    &["b > 2", "a IS NOT NULL", "a = c", "b % 2 = 0", "length(a) < 3", "c <> 'B'", "b BETWEEN 1 AND 4"];
const TEXTS: &[&str] = &["NULL", "''", "'a'", "'A'", "'a '", "'b'", "'B'", "'ab'", "'12'", "'Ab '"];

struct Generator {
    random: fastrand::Rng,
}

impl Generator {
    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.random.usize(..from.len())]
    }

    fn number(&mut self) -> String {
        if self.random.u8(..6) == 0 { "NULL".to_owned() } else { self.random.i8(-1..6).to_string() }
    }

    fn table(&mut self) -> String {
        let (a, c, g) = (self.pick(COLLATIONS), self.pick(COLLATIONS), self.pick(COLLATIONS));
        let (first, second) = (self.pick(EXPRESSIONS), self.pick(EXPRESSIONS));
        let kind = self.pick(&["STORED", "VIRTUAL", ""]);
        let check =
            if self.random.bool() { format!(", CHECK ({})", self.pick(CONDITIONS)) } else { String::new() };
        format!(
            "CREATE TABLE t (k INT PRIMARY KEY NOT NULL, a TEXT {a}, b INT DEFAULT (2 + 1), c TEXT {c}, \
             g AS ({first}) {kind} {g}, h AS (g IS NOT ({second})){check})"
        )
    }

    fn index(&mut self, number: usize) -> String {
        let unique = if self.random.u8(..4) == 0 { "UNIQUE " } else { "" };
        let mut columns = vec!["a", "b", "c", "g", "h"];
        self.random.shuffle(&mut columns);
        let terms: Vec<String> = (0..self.random.usize(1..4))
            .map(|at| {
                let term = match self.random.u8(..3) {
                    0 => self.pick(EXPRESSIONS),
                    _ => columns[at],
                };
                let order = self.pick(&["", " DESC", " ASC"]);
                let collation = if self.random.u8(..4) == 0 { self.pick(COLLATIONS) } else { "" };
                format!("{term} {collation}{order}")
            })
            .collect();
        let condition = if self.random.u8(..3) == 0 {
            format!(" WHERE {}", self.pick(CONDITIONS))
        } else {
            String::new()
        };
        format!("CREATE {unique}INDEX i{number} ON t ({}){condition}", terms.join(", "))
    }

    fn write(&mut self) -> String {
        let key = self.random.u8(..25);
        match self.random.u8(..10) {
            0 => format!("DELETE FROM t WHERE k = {key}"),
            1 => {
                let (a, b) = (self.pick(TEXTS), self.number());
                let or = self.pick(&["", "OR IGNORE ", "OR REPLACE "]);
                format!("UPDATE {or}t SET a = {a}, b = {b} WHERE k = {key}")
            }
            2 => format!("UPDATE t SET c = {} WHERE k = {key}", self.pick(TEXTS)),
            3 => format!("INSERT OR IGNORE INTO t (k, a) VALUES ({key}, {})", self.pick(TEXTS)),
            _ => {
                let or = self.pick(&["", "OR IGNORE ", "OR REPLACE "]);
                let (a, b, c) = (self.pick(TEXTS), self.number(), self.pick(TEXTS));
                format!("INSERT {or}INTO t VALUES ({key}, {a}, {b}, {c})")
            }
        }
    }

    fn comparison(&mut self) -> String {
        if self.random.u8(..3) == 0 {
            return self.pick(CONDITIONS).to_owned();
        }
        let left =
            if self.random.bool() { self.pick(EXPRESSIONS) } else { self.pick(&["a", "b", "c", "g", "h"]) };
        let value = if self.random.bool() { self.number() } else { self.pick(TEXTS).to_owned() };
        // The dialect takes what is compared with a truth for one too, as PostgreSQL does.
        if left.contains(['=', '<']) || left.contains("NULL") || matches!(left, "g" | "h") {
            let not = self.pick(&["", "NOT "]);
            return format!("{not}{left}");
        }
        match self.random.u8(..7) {
            0 => format!("{left} IS {value}"),
            1 => format!("{left} > {value}"),
            2 => format!("{left} <= {value}"),
            3 => format!("{left} IN ({value}, {}, 'A')", self.number()),
            4 => format!("{left} LIKE 'a%'"),
            5 => format!("{left} = {value} {}", self.pick(COLLATIONS)),
            _ => format!("{left} = {value}"),
        }
    }

    fn query(&mut self) -> String {
        let (one, other) = (self.comparison(), self.comparison());
        let joined = self.pick(&["AND", "OR", "AND NOT"]);
        let first =
            if self.random.bool() { self.pick(EXPRESSIONS) } else { self.pick(&["a", "b", "c", "g"]) };
        let (first_way, second_way) = (self.pick(&["", " DESC"]), self.pick(&["", " DESC"]));
        let second = self.pick(&["a", "b", "c", "h"]);
        format!(
            "SELECT * FROM t WHERE {one} {joined} {other} ORDER BY {first}{first_way}, {second}{second_way}, k"
        )
    }
}

#[test]
fn random_schemas_mean_what_they_mean_to_sqlite() {
    #[expect(clippy::disallowed_methods, reason = "a test may be told its seed")]
    let given = std::env::var("SEED").ok().map(|seed| seed.parse().expect("SEED is a number"));
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    let mut generator = Generator { random: fastrand::Rng::with_seed(seed) };
    let mut db = Db::new();
    let mut by_index = 0;
    for _ in 0..SCHEMAS {
        let native = Native::new();
        let mut script = vec![format!("-- SEED={seed}")];
        both(&mut db, &native, generator.table(), &mut script);
        for number in 0..STATEMENTS {
            let sql = match number {
                // Indexes of an empty table, and of a full one.
                0 | 1 | 30 | 31 => generator.index(number),
                _ if generator.random.u8(..3) == 0 => generator.query(),
                _ => generator.write(),
            };
            if sql.starts_with("SELECT") {
                by_index += usize::from(db.plan(&sql).contains(":i"));
            }
            both(&mut db, &native, sql, &mut script);
        }
        both(&mut db, &native, "SELECT * FROM t ORDER BY k".to_owned(), &mut script);
        db.run("DROP TABLE t");
    }
    assert!(by_index > SCHEMAS / 4, "only {by_index} queries were answered by an index");
}

/// Runs a statement on both sides, which must agree.
fn both(db: &mut Db, native: &Native, sql: String, script: &mut Vec<String>) {
    let ours = db.execute(&sql, &[]).map(|(_, rows)| shown(&rows.rows));
    let theirs = native.query(&sql).map(|rows| shown(&rows));
    script.push(sql);
    let same = match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        (ours, theirs) => ours.is_err() && theirs.is_err(),
    };
    assert!(same, "{}\n-- ours: {ours:?}\n-- SQLite: {theirs:?}", script.join(";\n"));
}
