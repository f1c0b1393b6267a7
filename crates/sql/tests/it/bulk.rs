//! Rows of literals that are taken out of an `INSERT`, and rows written in one go, mean what SQLite makes of them.
//!
//! Each random statement runs on three stores: as people write it, with parameters, and by SQLite alone. `SEED=...
//! cargo test -p sql --test it bulk` replays one run.

use crate::common::Db;
use fastrand::Rng;
use store::value::Value;

/// Rounds with a table of their own, and statements in each.
const ROUNDS: u64 = 50;
const STATEMENTS: usize = 40;

/// What follows an integer. No half: one that is written is a decimal and rounds away from zero, one that is bound is a
/// float and rounds to the even integer.
const FRACTIONS: &[f64] = &[0.0, 0.25, 0.75];

/// Types of columns; the last have forms of their own, which texts are brought into.
const KINDS: &[&str] = &[
    "INTEGER",
    "INTEGER",
    "REAL",
    "TEXT",
    "TEXT",
    "BLOB",
    "ANY",
    "BOOLEAN",
    "TIMESTAMP",
    "UUID",
    "JSON",
    "INTEGER[]",
];

struct World {
    rng: Rng,
    kinds: Vec<&'static str>,
    key: usize,
    /// As written, with parameters, and as written by SQLite alone.
    forms: [Db; 3],
}

/// One statement in its three forms.
struct Insert {
    head: String,
    rows: Vec<Vec<Value>>,
    tail: String,
}

#[test]
fn rows_of_an_insert_mean_the_same_in_every_form() {
    let given = crate::common::given_seed();
    let first: u64 = given.unwrap_or_else(|| fastrand::u64(..));
    for round in 0..if given.is_some() { 1 } else { ROUNDS } {
        let seed = first.wrapping_add(round);
        let mut world = World::new(seed);
        for _ in 0..STATEMENTS {
            world.step(seed);
        }
    }
}

/// Texts that differ in their rows only are one statement to the cache.
#[test]
fn many_texts_are_compiled_once() {
    let mut db = Db::new();
    db.session.set_native(Some(true));
    db.run("CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER, w REAL)");
    let before = format!("{:?}", db.executor);
    for round in 0..20 {
        let rows: Vec<String> = (0..50).map(|row| format!("('{round}:{row}', {row}, {row})")).collect();
        assert_eq!(db.affected(&format!("INSERT INTO t (k, n, w) VALUES {}", rows.join(", "))), 50);
    }
    assert_eq!(before, "Executor { cached: 0, .. }");
    assert_eq!(format!("{:?}", db.executor), "Executor { cached: 1, .. }");
    assert_eq!(db.query("SELECT count(*), sum(n), sum(w), typeof(max(w)) FROM t"), "1000,24500,24500.0,real");
}

#[test]
fn an_error_is_told_at_its_place_in_the_text() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (k TEXT PRIMARY KEY, at TIMESTAMP)");
    for (sql, state, position) in [
        ("INSERT INTO t (k, nowhere) VALUES ('a', 1), ('b', 2)", "42703", Some(19)),
        ("INSERT INTO t VALUES ('a', NULL), ('b', 'never')", "22007", Some(41)),
        ("INSERT INTO t VALUES ('a', NULL), ('b')", "42601", None),
        ("INSERT INTO t VALUES ('a', NULL), ('b', NULL) RETURNING $1", "08P01", None),
        ("INSERT INTO t VALUES ('a', NULL), ('a', NULL)", "23505", None),
    ] {
        let error = db.error(sql);
        assert_eq!((error.state, error.position), (state, position), "{sql}: {error}");
    }
    assert_eq!(db.query("SELECT count(*) FROM t"), "0");
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let count = rng.usize(2..6);
        let key = rng.usize(0..count);
        let mut kinds: Vec<&'static str> = (0..count).map(|_| KINDS[rng.usize(0..KINDS.len())]).collect();
        kinds[key] = ["TEXT", "TEXT", "INTEGER", "REAL"][rng.usize(0..4)];
        let column = |at: usize, rng: &mut Rng| {
            let rest = match rng.u32(0..14) {
                _ if at == key => " PRIMARY KEY",
                0 => " NOT NULL",
                1 => " DEFAULT NULL",
                2 if kinds[at] == "TEXT" => " DEFAULT 'd'",
                3 if kinds[at] == "INTEGER" => " CHECK (length(c0) IS NOT 3)",
                4 if kinds[at] == "TEXT" => " COLLATE NOCASE",
                5 if kinds[at] == "INTEGER" => " DEFAULT (1 + 1)",
                _ => "",
            };
            format!("c{at} {}{rest}", kinds[at])
        };
        let columns: Vec<String> = (0..count).map(|at| column(at, &mut rng)).collect();
        let mut script = vec![format!("CREATE TABLE t ({})", columns.join(", "))];
        for index in 0..rng.usize(0..3) {
            let unique = if rng.u32(0..3) == 0 { "UNIQUE " } else { "" };
            script.push(format!("CREATE {unique}INDEX i{index} ON t (c{})", rng.usize(0..count)));
        }
        let mut forms = [Db::new(), Db::new(), Db::new()];
        for db in &mut forms {
            db.run(&script.join(";\n"));
        }
        forms[2].session.set_native(Some(false));
        Self { rng, kinds, key, forms }
    }

    fn step(&mut self, seed: u64) {
        match self.rng.u32(0..16) {
            0 => return self.everywhere("DELETE FROM t WHERE c0 IN (SELECT c0 FROM t ORDER BY c0 LIMIT 5)"),
            1 => self.everywhere("BEGIN"),
            2 => self.everywhere("COMMIT"),
            _ => {}
        }
        let insert = self.insert();
        let texts = [insert.written(), insert.with_parameters(), insert.written()];
        let parameters: Vec<Value> = insert.rows.concat();
        let order: Vec<String> = (0..self.kinds.len()).map(|at| format!("c{at}")).collect();
        let mut answers = Vec::new();
        for (at, (db, text)) in self.forms.iter_mut().zip(&texts).enumerate() {
            let result = db.execute(text, if at == 1 { &parameters } else { &[] });
            let answer = result.map(|(done, _)| done.affected).map_err(|error| (error.state, error.message));
            let failed = answer.is_err();
            let after = if failed && db.session.status() == sql::TransactionStatus::Failed {
                db.run("ROLLBACK");
                String::new()
            } else {
                db.query("SELECT changes(), last_insert_rowid()")
            };
            let rows = db.query(&format!("SELECT * FROM t ORDER BY {}", order.join(", ")));
            answers.push((answer, after, rows));
        }
        for at in [1, 2] {
            assert_eq!(answers[0], answers[at], "SEED={seed}\n{}\n{}", texts[0], texts[at]);
        }
    }

    /// Runs a statement in all stores; it may fail in all of them.
    fn everywhere(&mut self, sql: &str) {
        let states = self.forms.each_mut().map(|db| db.execute(sql, &[]).err().map(|error| error.state));
        assert!(states.iter().all(|state| *state == states[0]), "{sql}: {states:?}");
    }

    fn insert(&mut self) -> Insert {
        let or = ["", "", "", " OR REPLACE", " OR IGNORE", " OR FAIL", " OR ABORT"][self.rng.usize(0..7)];
        let mut columns: Vec<usize> = (0..self.kinds.len()).collect();
        let named = self.rng.bool();
        if named {
            self.rng.shuffle(&mut columns);
            let (key, kept) = (self.key, self.rng.usize(1..=columns.len()));
            columns.truncate(kept);
            if !columns.contains(&key) {
                columns.push(key);
            }
        }
        let names: Vec<String> = columns.iter().map(|at| format!("c{at}")).collect();
        let list = if named { format!(" ({})", names.join(", ")) } else { String::new() };
        let count = if self.rng.bool() { self.rng.usize(1..3) } else { self.rng.usize(2..30) };
        let rows = (0..count).map(|_| columns.iter().map(|&at| self.value(at)).collect()).collect();
        let set = columns.iter().copied().find(|&at| at != self.key);
        let tail = match (or, self.rng.u32(0..8), set) {
            ("", 0, _) => " ON CONFLICT DO NOTHING".to_owned(),
            ("", 1, Some(set)) => {
                format!(" ON CONFLICT (c{}) DO UPDATE SET c{set} = excluded.c{set}", self.key)
            }
            _ => String::new(),
        };
        Insert { head: format!("INSERT{or} INTO t{list} VALUES"), rows, tail }
    }

    /// A value that mostly fits the column, and in its key is often one that is there.
    fn value(&mut self, at: usize) -> Value {
        let kind = match self.rng.u32(0..40) {
            0 => ["INTEGER", "REAL", "TEXT"][self.rng.usize(0..3)],
            _ => self.kinds[at],
        };
        if self.rng.u32(0..12) == 0 && at != self.key {
            return Value::Null;
        }
        let number = if self.rng.bool() { self.rng.i64(-20..400) } else { self.rng.i64(0..6) };
        match kind {
            "INTEGER" | "ANY" => Value::Integer(number),
            "BOOLEAN" => Value::Integer(number & 1),
            "REAL" if self.rng.bool() => Value::Integer(number),
            "REAL" => Value::Real(number as f64 + FRACTIONS[self.rng.usize(0..FRACTIONS.len())]),
            "TIMESTAMP" => Value::from(format!("2024-05-{:02} 10:00", 1 + number.rem_euclid(28)).as_str()),
            "UUID" => Value::from(format!("0189d6d0-1a2b-7c3d-8e4f-{:012x}", number.unsigned_abs()).as_str()),
            "JSON" => Value::from(format!("{{\"n\": {number}}}").as_str()),
            "INTEGER[]" => Value::from(format!("{{{number},2}}").as_str()),
            "BLOB" => Value::Null,
            _ => Value::from(
                [
                    format!("{number}"),
                    format!("it''s {number}"),
                    format!("'{number}"),
                    format!("\u{e9}{number}-"),
                ][self.rng.usize(0..4)]
                .as_str(),
            ),
        }
    }
}

impl Insert {
    fn written(&self) -> String {
        format!("{} {}{}", self.head, self.lists(literal), self.tail)
    }

    fn with_parameters(&self) -> String {
        let mut number = 0;
        let parameter = |_: &Value| {
            number += 1;
            format!("${number}")
        };
        format!("{} {}{}", self.head, self.lists(parameter), self.tail)
    }

    fn lists(&self, mut shown: impl FnMut(&Value) -> String) -> String {
        let lists = self.rows.iter().map(|row| {
            let values: Vec<String> = row.iter().map(&mut shown).collect();
            format!("({})", values.join(", "))
        });
        lists.collect::<Vec<_>>().join(", ")
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(integer) => integer.to_string(),
        Value::Real(real) => format!("{real:?}"),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Blob(bytes) => format!("{bytes:?}"),
    }
}
