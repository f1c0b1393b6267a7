//! `COPY`: what is copied, and how the data looks; rows that come in are stored in batches.

use std::fmt::Write as _;

use sql::{Held, SqlError, SqlType};
use store::value::Value;

use super::reader::Reader;
use super::settings::is_utf8;
use crate::limits::{COPY_BATCH_ROWS, COPY_BATCH_VALUES};

/// A `COPY` statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyStatement {
    pub(crate) what: What,
    pub(crate) direction: CopyDirection,
    pub(crate) options: CopyOptions,
}

/// What is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A table, by its name as it is written, and columns of it; none is all.
    Table(String, Option<String>),
    /// What a query gives.
    Query(String),
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyDirection {
    /// From the client.
    In,
    /// To the client.
    Out,
}

/// The layout of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyLayout {
    /// `FORMAT text`
    Text,
    /// `FORMAT csv`
    Csv,
    /// `FORMAT binary`
    Binary,
}

/// How the data looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOptions {
    /// `FORMAT`
    pub layout: CopyLayout,
    /// `HEADER`
    pub header: bool,
    /// `DELIMITER`
    pub delimiter: u8,
    /// `NULL`
    pub null: String,
    /// `QUOTE`
    pub quote: u8,
    /// `ESCAPE`
    pub escape: u8,
}

/// Options as far as they were given.
#[derive(Default)]
struct Given {
    layout: Option<CopyLayout>,
    header: bool,
    delimiter: Option<u8>,
    null: Option<String>,
    quote: Option<u8>,
    escape: Option<u8>,
}

/// Reads what follows the word `COPY`.
pub(crate) fn read(reader: &mut Reader<'_>) -> Result<CopyStatement, SqlError> {
    let what = if reader.at_sign("(") {
        What::Query(reader.parenthesised()?.to_owned())
    } else {
        let table = reader.written_name()?.to_owned();
        let columns = if reader.at_sign("(") { Some(reader.parenthesised()?.to_owned()) } else { None };
        What::Table(table, columns)
    };
    let direction = if reader.keyword("FROM") {
        CopyDirection::In
    } else {
        reader.expect("TO")?;
        CopyDirection::Out
    };
    // Either word stands for the client, as in PostgreSQL.
    if reader.one_of(&["STDIN", "STDOUT"]).is_none() {
        let message = "COPY with a file or program of the server is not supported; use STDIN or STDOUT";
        return Err(SqlError::new("42501", message).with_hint("psql's \\copy command works for anyone"));
    }
    if direction == CopyDirection::In && matches!(what, What::Query(_)) {
        return Err(SqlError::new("42601", "COPY FROM STDIN needs a table, not a query"));
    }
    reader.keyword("WITH");
    let mut given = Given::default();
    if reader.at_sign("(") {
        let inner = reader.parenthesised()?;
        new_options(&mut Reader::new(inner), &mut given)?;
    } else {
        old_options(reader, &mut given)?;
    }
    if reader.keyword("WHERE") {
        return Err(SqlError::new("0A000", "COPY FROM with WHERE is not supported"));
    }
    reader.end()?;
    Ok(CopyStatement { what, direction, options: given.checked()? })
}

/// `FORMAT csv, HEADER, DELIMITER ';'`
fn new_options(reader: &mut Reader<'_>, given: &mut Given) -> Result<(), SqlError> {
    loop {
        let name = reader.name()?;
        match name.as_str() {
            "format" => given.layout = Some(layout(&word(reader)?)?),
            "header" => given.header = switch(reader)?,
            "freeze" => _ = switch(reader)?,
            "encoding" => utf8(&reader.literal()?)?,
            name => one(name, reader, given)?,
        }
        if !reader.sign(",") {
            return reader.end();
        }
    }
}

/// `CSV HEADER DELIMITER AS ';'`, as before PostgreSQL 9.0.
fn old_options(reader: &mut Reader<'_>, given: &mut Given) -> Result<(), SqlError> {
    let words = &["BINARY", "CSV", "HEADER", "FREEZE", "DELIMITER", "NULL", "QUOTE", "ESCAPE", "ENCODING"];
    while let Some(word) = reader.one_of(words) {
        match word {
            "BINARY" => given.layout = Some(CopyLayout::Binary),
            "CSV" => given.layout = Some(CopyLayout::Csv),
            "HEADER" => given.header = true,
            "FREEZE" => {}
            "ENCODING" => utf8(&reader.literal()?)?,
            word => {
                reader.keyword("AS");
                one(&word.to_lowercase(), reader, given)?;
            }
        }
    }
    Ok(())
}

fn one(name: &str, reader: &mut Reader<'_>, given: &mut Given) -> Result<(), SqlError> {
    match name {
        "delimiter" => given.delimiter = Some(byte(name, &reader.literal()?)?),
        "null" => given.null = Some(reader.literal()?),
        "quote" => given.quote = Some(byte(name, &reader.literal()?)?),
        "escape" => given.escape = Some(byte(name, &reader.literal()?)?),
        "force_quote" | "force_not_null" | "force_null" | "default" | "on_error" | "log_verbosity" => {
            return Err(SqlError::new("0A000", format!("COPY option \"{name}\" is not supported")));
        }
        _ => return Err(SqlError::new("42601", format!("option \"{name}\" not recognized"))),
    }
    Ok(())
}

/// A word, which may stand in quotes.
fn word(reader: &mut Reader<'_>) -> Result<String, SqlError> {
    reader.literal().map(|word| word.to_lowercase()).or_else(|_| reader.name())
}

fn layout(name: &str) -> Result<CopyLayout, SqlError> {
    match name {
        "text" => Ok(CopyLayout::Text),
        "csv" => Ok(CopyLayout::Csv),
        "binary" => Ok(CopyLayout::Binary),
        _ => Err(SqlError::new("22023", format!("COPY format \"{name}\" not recognized"))),
    }
}

fn switch(reader: &mut Reader<'_>) -> Result<bool, SqlError> {
    if reader.one_of(&["FALSE", "OFF"]).is_some() {
        return Ok(false);
    }
    if reader.keyword("MATCH") {
        return Err(SqlError::new("0A000", "COPY option HEADER MATCH is not supported"));
    }
    let _on = reader.one_of(&["TRUE", "ON"]).is_some() || reader.number().is_some_and(|number| number == 1);
    Ok(true)
}

fn utf8(name: &str) -> Result<(), SqlError> {
    if is_utf8(&name.to_lowercase()) {
        return Ok(());
    }
    Err(SqlError::new("22023", format!("encoding \"{name}\" is not supported; data is UTF8")))
}

fn byte(name: &str, text: &str) -> Result<u8, SqlError> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(*byte),
        _ => Err(SqlError::new("0A000", format!("COPY {name} must be a single one-byte character"))),
    }
}

impl Given {
    fn checked(self) -> Result<CopyOptions, SqlError> {
        let layout = self.layout.unwrap_or(CopyLayout::Text);
        let csv = layout == CopyLayout::Csv;
        let wrong = |message: &str| Err(SqlError::new("42601", message));
        let looks = self.delimiter.is_some() || self.null.is_some() || self.header;
        if layout == CopyLayout::Binary && looks {
            return wrong("cannot specify DELIMITER, NULL or HEADER in BINARY mode");
        }
        if !csv && (self.quote.is_some() || self.escape.is_some()) {
            return wrong("COPY quote and escape are available only in CSV mode");
        }
        let delimiter = self.delimiter.unwrap_or(if csv { b',' } else { b'\t' });
        let quote = self.quote.unwrap_or(b'"');
        let null = self.null.unwrap_or_else(|| if csv { String::new() } else { "\\N".into() });
        if csv && delimiter == quote
            || !csv && (delimiter.is_ascii_alphanumeric() || b"\\.".contains(&delimiter))
        {
            return wrong("COPY delimiter cannot be a character that the data format needs");
        }
        if null.contains(['\n', '\r']) || null.as_bytes().contains(&delimiter) {
            return wrong("COPY null representation contains a delimiter or a line end");
        }
        Ok(CopyOptions {
            layout,
            header: self.header,
            delimiter,
            null,
            quote,
            escape: self.escape.unwrap_or(quote),
        })
    }
}

impl What {
    /// The query that gives what is copied out, or the columns of what is copied in.
    pub(crate) fn query(&self) -> String {
        match self {
            Self::Query(text) => text.clone(),
            Self::Table(table, columns) => {
                format!("SELECT {} FROM {table}", columns.as_deref().unwrap_or("*"))
            }
        }
    }
}

/// A `COPY FROM STDIN` under way.
#[derive(Debug)]
pub(crate) struct CopyIn {
    /// As the statement calls it.
    table: String,
    names: Vec<String>,
    /// `INSERT INTO t (a, b) ... VALUES `
    insert: String,
    pub(crate) options: CopyOptions,
    pub(crate) types: Vec<SqlType>,
    /// Rows that wait to be stored together, value by value.
    pub(crate) values: Vec<Value>,
    /// The line of the data that each of them ends in.
    pub(crate) lines: Vec<u64>,
    /// When it began, in microseconds since 1970: that is what `now()` is in the defaults of all its rows.
    pub(crate) began_us: u64,
    /// How many rows are stored.
    pub(crate) stored: u64,
    /// What the values take of the session's allowance.
    pub(crate) held: Held,
}

impl CopyIn {
    /// Rows for columns of these names and types of a table, since this moment.
    pub(crate) fn new(
        table: &str,
        names: &[&str],
        (types, began_us): (Vec<SqlType>, u64),
        options: CopyOptions,
        held: Held,
    ) -> Self {
        let quoted: Vec<String> = names.iter().map(|name| sql::token::quoted_name(name)).collect();
        // What a dump holds is stored as it is.
        let insert = format!("INSERT INTO {table} ({}) OVERRIDING SYSTEM VALUE VALUES ", quoted.join(", "));
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let (table, values, lines) = (table.to_owned(), Vec::new(), Vec::new());
        Self { table, names, insert, options, types, values, lines, began_us, stored: 0, held }
    }

    /// The statement that stores a row of nothing.
    pub(crate) fn one_row(&self) -> String {
        format!("{}({})", self.insert, vec!["NULL"; self.names.len()].join(", "))
    }

    /// A place in the data, in PostgreSQL's words.
    pub(crate) fn place(&self, line: u64, column: Option<usize>) -> String {
        let mut place = format!("COPY {}, line {line}", self.table);
        if let Some(name) = column.and_then(|column| self.names.get(column)) {
            place.push_str(", column ");
            place.push_str(name);
        }
        place
    }

    /// The line of one of the rows that wait; of the last, where it is not known which it was.
    pub(crate) fn line_of(&self, row: Option<u32>) -> Option<u64> {
        let row = row.and_then(|row| usize::try_from(row).ok());
        row.and_then(|row| self.lines.get(row)).or_else(|| self.lines.last()).copied()
    }

    /// Rows that one statement stores.
    pub(crate) fn rows_per_batch(&self) -> usize {
        (COPY_BATCH_VALUES / self.types.len().max(1)).clamp(1, COPY_BATCH_ROWS)
    }

    /// The statement that stores so many rows. The same number gives the same text, which is compiled once.
    pub(crate) fn statement(&self, rows: usize) -> String {
        let mut text = self.insert.clone();
        let columns = self.types.len();
        for row in 0..rows {
            text.push_str(if row == 0 { "(" } else { ", (" });
            for column in 0..columns {
                let comma = if column == 0 { "" } else { ", " };
                // Writing to a String never fails.
                let _written = write!(text, "{comma}${}", row * columns + column + 1);
            }
            text.push(')');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::utility::{Utility, read};
    use super::*;

    fn copy(text: &str) -> CopyStatement {
        match read(text) {
            Ok(Some(Utility::Copy(copy))) => *copy,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn both_ways_of_writing_options() {
        let csv = CopyOptions {
            layout: CopyLayout::Csv,
            header: true,
            delimiter: b';',
            null: "-".into(),
            quote: b'\'',
            escape: b'\'',
        };
        for text in [
            "COPY t (a, \"B\") FROM STDIN (FORMAT csv, HEADER true, DELIMITER ';', NULL '-', QUOTE '''')",
            "copy t (a, \"B\") from stdin with csv header delimiter as ';' null '-' quote ''''",
        ] {
            let found = copy(text);
            assert_eq!(found.options, csv, "{text}");
            assert_eq!(found.what, What::Table("t".into(), Some("a, \"B\"".into())));
        }
        let out = copy("COPY (SELECT (1)) TO STDOUT WITH (FORMAT binary)");
        assert_eq!(out.what, What::Query("SELECT (1)".into()));
        assert_eq!(out.direction, CopyDirection::Out);
        assert_eq!(copy("COPY a.b TO STDOUT DELIMITER E'\\t'").what.query(), "SELECT * FROM a.b");
    }

    #[test]
    fn what_is_refused() {
        for (text, state) in [
            ("COPY t FROM '/etc/passwd'", "42501"),
            ("COPY t TO PROGRAM 'rm'", "42501"),
            ("COPY (SELECT 1) FROM STDIN", "42601"),
            ("COPY t FROM STDIN (FORMAT xml)", "22023"),
            ("COPY t FROM STDIN (FORMAT csv, DELIMITER '\"')", "42601"),
            ("COPY t FROM STDIN (FORMAT binary, HEADER)", "42601"),
            ("COPY t FROM STDIN (QUOTE 'x')", "42601"),
            ("COPY t FROM STDIN (DELIMITER 'ab')", "0A000"),
            ("COPY t FROM STDIN (ENCODING 'latin1')", "22023"),
            ("COPY t FROM STDIN nonsense", "42601"),
            ("COPY t", "42601"),
        ] {
            assert_eq!(read(text).unwrap_err().state, state, "{text}");
        }
    }

    #[test]
    fn statements_for_batches() {
        let types = vec![SqlType::Int4, SqlType::Text];
        let options = copy("COPY t FROM STDIN").options;
        let allowance = sql::Allowance::new(&sql::Account::new(0), 0);
        let copy = CopyIn::new("t", &["a", "b c"], (types, 0), options, allowance.account());
        assert_eq!(
            copy.statement(2),
            "INSERT INTO t (\"a\", \"b c\") OVERRIDING SYSTEM VALUE VALUES ($1, $2), ($3, $4)"
        );
    }
}
