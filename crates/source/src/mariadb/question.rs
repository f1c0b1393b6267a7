//! The query of a table that reads through: one question mark in it stands for the list of keys.
//!
//! `SELECT id, name FROM product WHERE id IN (?)`, and where the key has several columns
//! `WHERE (shop, item) IN (?)`. Keys are written as numbers, and as bytes in hexadecimal digits: no text of a key can
//! be anything else, whatever the source takes for an escape.

use std::fmt::Write as _;

use postgres::oid;
use store::Table;
use store::definition::TableDef;

use super::cursor::hex;
use crate::error::Error;
use crate::fetch::key_text;

/// A query, before its list and behind it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    before: String,
    behind: String,
}

/// Types whose texts are numbers.
const NUMBERS: &[u32] = &[oid::INT2, oid::INT4, oid::INT8, oid::NUMERIC, oid::FLOAT4, oid::FLOAT8];

impl Question {
    /// Finds the mark. One within quotes or a comment is none.
    pub(super) fn read(query: &str) -> Result<Self, Error> {
        let wrong = |message: &str| {
            let hint = "write WHERE id IN (?), and WHERE (shop, item) IN (?) for a key of several columns";
            Err(Error::new("42P02", message).with_hint(hint))
        };
        match marks(query)[..] {
            [at] => {
                let (before, behind) = query.split_at(at);
                Ok(Self { before: before.to_owned(), behind: behind[1..].to_owned() })
            }
            [] => wrong("the query has no ? where the list of keys is to stand"),
            _ => wrong("the query has more than one ?"),
        }
    }

    /// The query for these keys.
    pub(super) fn for_keys(&self, table: &Table, keys: &[&[u8]]) -> Result<String, Error> {
        let def = table.def();
        let literal = |key: &[u8], (at, &column): (usize, &usize)| {
            let oid = def.columns[column].sql_type().oid();
            literal(oid, &key_text(table, key, at, oid)?)
        };
        let one = |key: &&[u8]| {
            let parts = def.primary_key.iter().enumerate().map(|part| literal(key, part));
            Ok(listed(&parts.collect::<Result<Vec<_>, Error>>()?))
        };
        let all: Vec<String> = keys.iter().map(one).collect::<Result<_, Error>>()?;
        Ok(self.with(&all.join(",")))
    }

    /// The query for no key.
    pub(super) fn for_nothing(&self, def: &TableDef) -> Result<String, Error> {
        for &column in &def.primary_key {
            literal(def.columns[column].sql_type().oid(), "0")?;
        }
        Ok(self.with(&listed(&vec!["NULL".to_owned(); def.primary_key.len()])))
    }

    fn with(&self, list: &str) -> String {
        [&self.before, list, &self.behind].concat()
    }
}

/// The columns of one key.
fn listed(parts: &[String]) -> String {
    match parts {
        [one] => one.clone(),
        several => format!("({})", several.join(",")),
    }
}

fn literal(oid: u32, text: &str) -> Result<String, Error> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    match oid {
        _ if NUMBERS.contains(&oid) && is_number && !text.is_empty() => Ok(text.to_owned()),
        oid::BOOL => Ok(u8::from(text.starts_with(['t', '1'])).to_string()),
        oid::BYTEA => Ok(format!("X'{}'", text.trim_start_matches("\\x"))),
        // No number here is one there: NaN, and infinity.
        _ if NUMBERS.contains(&oid) => Ok("NULL".to_owned()),
        oid::TIMESTAMPTZ | oid::TIMETZ | oid::INTERVAL => {
            let message = format!("MariaDB cannot be asked for keys of type {}", oid::name(oid));
            Err(Error::new("0A000", message))
        }
        _ => {
            let mut literal = "_utf8mb4 X'".to_owned();
            let _infallible = write!(literal, "{}'", hex(text.as_bytes()));
            Ok(literal)
        }
    }
}

/// Where the marks are that stand outside of quotes and comments.
fn marks(query: &str) -> Vec<usize> {
    let bytes = query.as_bytes();
    let (mut at, mut marks) = (0, Vec::new());
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        at += match byte {
            b'\'' | b'"' | b'`' => quoted(rest, byte),
            b'#' => line(rest),
            b'-' if rest.starts_with(b"-- ") => line(rest),
            b'/' if rest.starts_with(b"/*") => comment(rest),
            b'?' => {
                marks.push(at);
                1
            }
            _ => 1,
        };
    }
    marks
}

/// How long a text in quotes is. A quote that is doubled begins the next text.
fn quoted(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' if quote != b'`' => at += 2,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn line(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())
}

fn comment(text: &[u8]) -> usize {
    text.windows(2).skip(2).position(|two| two == b"*/").map_or(text.len(), |at| at + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_found() {
        for (query, before) in [
            ("SELECT id FROM t WHERE id IN (?)", "SELECT id FROM t WHERE id IN ("),
            (
                "SELECT '?', \"?\", `?` FROM t -- ?\n WHERE id IN (?)",
                "SELECT '?', \"?\", `?` FROM t -- ?\n WHERE id IN (",
            ),
            ("SELECT 'it''s \\'?', /* ? **/ 1 # ?\n IN (?)", "SELECT 'it''s \\'?', /* ? **/ 1 # ?\n IN ("),
        ] {
            let question = Question::read(query).unwrap();
            assert_eq!((question.before.as_str(), question.behind.as_str()), (before, ")"), "{query}");
        }
        for wrong in ["SELECT 1", "SELECT '?'", "SELECT ?, ?", "SELECT '?", "/* ?", "/*/ ?", ""] {
            assert!(Question::read(wrong).is_err_and(|error| error.state == "42P02"), "{wrong}");
        }
    }

    #[test]
    fn keys_are_written_as_what_they_are() {
        let write = |oid, text| literal(oid, text).unwrap();
        assert_eq!(write(oid::INT4, "-7"), "-7");
        assert_eq!(write(oid::NUMERIC, "1.50"), "1.50");
        assert_eq!(write(oid::FLOAT8, "NaN"), "NULL");
        assert_eq!(write(oid::BOOL, "t"), "1");
        assert_eq!(write(oid::BYTEA, "\\x00ff"), "X'00ff'");
        assert_eq!(write(oid::TEXT, "'); DROP"), "_utf8mb4 X'27293b2044524f50'");
        assert!(literal(oid::TIMESTAMPTZ, "0").is_err());
    }
}
