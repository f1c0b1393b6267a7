//! sqllogictest scripts, run here and on SQLite's own tables: every statement must end alike and every query answer
//! alike, and as the script says, or stand in `differences.txt` with the reason.
//!
//! The scripts of this folder always run. SQLite's own corpus is no part of the project; whoever has it runs it by
//! `SQLLOGICTEST=<folder> cargo test -p sql --test it logic -- --ignored`.

mod script;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use crate::common::Db;
use crate::common::native::Native;
use script::{Kind, Record, Sort};
use store::value::Value;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/logic");

/// A record that is allowed to differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Difference {
    script: String,
    sql: String,
}

/// The records that may differ, and whether each does so every time.
type Differences = HashMap<Difference, bool>;

/// What running a folder of scripts came to.
#[derive(Default)]
struct Tally {
    records: usize,
    met: HashSet<Difference>,
    failures: Vec<String>,
}

#[test]
fn own_scripts_answer_as_sqlite_does() {
    check(Path::new(HERE), 100);
}

#[test]
#[ignore = "needs SQLite's own corpus; SQLLOGICTEST says where it is"]
#[expect(clippy::disallowed_methods, reason = "the test is told where the scripts are")]
fn sqlites_corpus_answers_as_sqlite_does() {
    let folder = std::env::var("SQLLOGICTEST").expect("SQLLOGICTEST names the folder of the scripts");
    check(Path::new(&folder), 4_000);
}

fn check(folder: &Path, records_min: usize) {
    let listed = differences();
    let mut tally = Tally::default();
    for path in script::scripts(folder) {
        run(&path, &listed, &mut tally);
    }
    let names: HashSet<String> = script::scripts(folder).iter().map(|path| name_of(path)).collect();
    let always = listed.iter().filter(|(_, always)| **always).map(|(difference, _)| difference);
    for gone in always.filter(|listed| names.contains(&listed.script) && !tally.met.contains(listed)) {
        tally.failures.push(format!("{}: differs no more, so its line goes: {}", gone.script, gone.sql));
    }
    let count = tally.failures.len();
    tally.failures.truncate(100);
    assert!(count == 0, "{count} failures\n{}", tally.failures.join("\n"));
    assert!(tally.records >= records_min, "only {} records were found", tally.records);
}

/// The list that only shrinks: `script | reason | statement`, blanks in the statement as single spaces.
fn differences() -> Differences {
    let text = fs::read_to_string(format!("{HERE}/differences.txt")).expect("the list of differences");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line: &str| {
        let mut parts = line.splitn(3, " | ");
        let (script, reason, sql) = (parts.next(), parts.next(), parts.next());
        let (Some(script), Some(reason), Some(sql)) = (script, reason, sql) else {
            panic!("not a difference: {line}")
        };
        let difference = Difference { script: script.to_owned(), sql: sql.to_owned() };
        (difference, !reason.starts_with("sometimes"))
    };
    lines.map(parse).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn run(path: &Path, listed: &Differences, tally: &mut Tally) {
    let text = fs::read_to_string(path).expect("a script");
    let mut db = Db::new();
    db.session.set_like(sql::LikeStyle::Sqlite);
    let native = Native::new();
    for record in script::records(&text) {
        tally.records += 1;
        let Err(why) = compare(&mut db, &native, &record) else { continue };
        let sql = record.sql.split_whitespace().collect::<Vec<_>>().join(" ");
        let difference = Difference { script: name_of(path), sql };
        if listed.contains_key(&difference) {
            tally.met.insert(difference);
        } else {
            tally
                .failures
                .push(format!("{}:{}: {}\n  {why}", difference.script, record.line, difference.sql));
        }
    }
}

fn compare(db: &mut Db, native: &Native, record: &Record) -> Result<(), String> {
    let mut ours: Result<Vec<Vec<Value>>, String> = Ok(Vec::new());
    let mut theirs = Ok(Vec::new());
    // A record may hold several statements: the first that fails ends it, the last one answers.
    for piece in sql::split_statements(&record.sql) {
        ours = ours.and_then(|_| {
            db.execute(piece.sql, &[]).map(|(_, rows)| rows.rows).map_err(|error| error.to_string())
        });
        theirs = theirs.and_then(|_| native.query(piece.sql));
    }
    if ours.is_ok() != theirs.is_ok() {
        return Err(format!("we: {ours:.200?}; SQLite: {theirs:.200?}"));
    }
    match &record.kind {
        Kind::Statement { fails } if *fails == ours.is_ok() => Err("not as the script says".to_owned()),
        Kind::Statement { .. } => Ok(()),
        Kind::Query { types, sort, expected } => {
            // Where both fail (checked above), as a sum that overflows does, there is no answer to compare.
            let (Ok(ours), Ok(theirs)) = (ours, theirs) else { return Ok(()) };
            let (ours, theirs) = (shown(&ours, types, *sort), shown(&theirs, types, *sort));
            if ours != theirs {
                return Err(format!("we: {ours:.20?}; SQLite: {theirs:.20?}"));
            }
            match expected {
                Some(expected) if !agree(expected, &ours) => {
                    Err(format!("we: {ours:?}; the script: {expected:?}"))
                }
                _ => Ok(()),
            }
        }
    }
}

/// Whether an answer is the script's. Real numbers were written with 16 digits at most.
fn agree(expected: &[String], ours: &[String]) -> bool {
    let same = |(expected, ours): (&String, &String)| match (expected.parse::<f64>(), ours.parse::<f64>()) {
        (Ok(expected), Ok(ours)) => (expected - ours).abs() <= expected.abs() * 1e-15,
        _ => expected == ours,
    };
    expected.len() == ours.len() && expected.iter().zip(ours).all(same)
}

/// An answer as scripts write it: one value a line.
fn shown(rows: &[Vec<Value>], types: &str, sort: Sort) -> Vec<String> {
    let row = |row: &Vec<Value>| -> Vec<String> {
        row.iter()
            .zip(types.chars().chain(std::iter::repeat('T')))
            .map(|(value, kind)| show(value, kind))
            .collect()
    };
    let mut rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    if sort == Sort::Rows {
        rows.sort();
    }
    let mut values = rows.concat();
    if sort == Sort::Values {
        values.sort();
    }
    values
}

/// A value under the column's letter: an integer, a real number with three decimals, or text.
fn show(value: &Value, kind: char) -> String {
    let number = || match value {
        Value::Integer(integer) => *integer as f64,
        Value::Real(real) => *real,
        Value::Text(text) => text.trim().parse().unwrap_or(0.0),
        _ => 0.0,
    };
    match (kind, value) {
        (_, Value::Null) => "NULL".to_owned(),
        ('I', Value::Integer(integer)) => integer.to_string(),
        #[expect(clippy::cast_possible_truncation, reason = "as SQLite converts for a script")]
        ('I', _) => (number() as i64).to_string(),
        ('R', _) => format!("{:.3}", number()),
        (_, Value::Text(text)) if text.is_empty() => "(empty)".to_owned(),
        (_, Value::Text(text)) => {
            text.chars().map(|c| if (' '..='~').contains(&c) { c } else { '@' }).collect()
        }
        (_, other) => crate::common::show(other),
    }
}
