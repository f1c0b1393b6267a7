//! Reads sqllogictest scripts: records of a statement that must work or fail, or of a query with its answer.

use std::fs;
use std::path::{Path, PathBuf};

/// The name under which `skipif` and `onlyif` lines speak of the dialect.
const ENGINE: &str = "sqlite";

/// One record of a script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Where it begins, counted from 1.
    pub(crate) line: usize,
    pub(crate) sql: String,
    pub(crate) kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A statement, and whether it must fail.
    Statement { fails: bool },
    /// A query: a letter for each column, how its answer is sorted, and the answer if it is spelled out.
    Query { types: String, sort: Sort, expected: Option<Vec<String>> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// As it comes.
    None,
    Rows,
    Values,
}

/// The scripts in a folder and the folders within it, by name.
pub(crate) fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of scripts") {
        let path = entry.expect("an entry of the folder").path();
        if path.is_dir() {
            found.extend(scripts(&path));
        } else if path.extension().is_some_and(|extension| extension == "test") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The records of a script that are meant for this dialect, up to its end or a `halt`.
pub(crate) fn records(text: &str) -> Vec<Record> {
    let mut records = Vec::new();
    let mut lines = text.lines().zip(1..).peekable();
    let mut meant = true;
    while let Some((line, number)) = lines.next() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] | ["hash-threshold", ..] => {}
            ["halt", ..] if meant => break,
            ["skipif", engine, ..] => meant &= *engine != ENGINE,
            ["onlyif", engine, ..] => meant &= *engine == ENGINE,
            [kind @ ("statement" | "query"), rest @ ..] => {
                let body: Vec<&str> =
                    std::iter::from_fn(|| lines.next_if(|(line, _)| !line.trim().is_empty()))
                        .map(|(line, _)| line)
                        .collect();
                if meant {
                    records.push(record(number, kind, rest, &body));
                }
                meant = true;
            }
            _ => meant = true,
        }
    }
    records
}

fn record(line: usize, kind: &str, rest: &[&str], body: &[&str]) -> Record {
    let end = body.iter().position(|line| *line == "----").unwrap_or(body.len());
    let sql = body[..end].join("\n");
    let kind = match (kind, rest) {
        ("statement", rest) => Kind::Statement { fails: rest.first() == Some(&"error") },
        (_, [types, rest @ ..]) => Kind::Query {
            types: (*types).to_owned(),
            sort: match rest.first() {
                Some(&"rowsort") => Sort::Rows,
                Some(&"valuesort") => Sort::Values,
                _ => Sort::None,
            },
            expected: spelled_out(body.get(end + 1..).unwrap_or_default()),
        },
        _ => panic!("line {line}: a query without types"),
    };
    Record { line, sql, kind }
}

/// The values of an answer; none where only their hash is there.
fn spelled_out(lines: &[&str]) -> Option<Vec<String>> {
    match lines {
        [line] if line.contains(" values hashing to ") => None,
        lines => Some(lines.iter().map(|line| (*line).to_owned()).collect()),
    }
}

#[test]
fn records_are_read() {
    let script = "# words\nstatement ok\nCREATE TABLE t (a)\n\nonlyif other\nstatement error\nx\n\n\
                  query IT rowsort label\nSELECT 1,\n 'a'\n----\n1\na\n\nskipif sqlite\nquery I nosort\nSELECT 2\n\
                  ----\n2\n\nquery I\nSELECT 3\n----\n3 values hashing to abc\n\nhalt\n\nstatement ok\ny\n";
    let read = records(script);
    assert_eq!(read.len(), 3, "{read:?}");
    assert_eq!((read[0].line, &read[0].kind), (2, &Kind::Statement { fails: false }));
    let expected = Some(vec!["1".to_owned(), "a".to_owned()]);
    assert_eq!(read[1].kind, Kind::Query { types: "IT".into(), sort: Sort::Rows, expected });
    assert_eq!(read[1].sql, "SELECT 1,\n 'a'");
    assert_eq!(read[2].kind, Kind::Query { types: "I".into(), sort: Sort::None, expected: None });
}
