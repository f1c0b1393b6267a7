//! Rows of literals in an `INSERT`, read in one pass: a statement that brings many is not parsed for each of them.
//!
//! What is left when the rows are taken out, with one row of parameters in their place, is compiled once and serves all
//! texts that differ in their rows only. Whatever is no plain literal (an expression, `DEFAULT`, a comment, a
//! parameter) makes the text none of these, and it goes the general way.

use memchr::memchr;
use sqltext::value::number;
use store::scalar::numeric::nearest_integer;
use store::value::ValueRef;

use super::token::{Kind, Tokens, number as number_length, word};

/// An `INSERT` whose rows were taken out.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    /// The statement with one row of parameters.
    pub(crate) statement: String,
    /// How many values each row has.
    pub(crate) width: usize,
    cells: Vec<Cell<'a>>,
    /// The texts that were written with doubled quotes, as they are meant.
    unescaped: String,
}

/// One value of a row.
#[derive(Clone, Copy, Debug)]
enum Cell<'a> {
    Value(ValueRef<'a>),
    /// A number with a fraction, as it was written.
    Number(&'a str),
    /// A piece of `unescaped`.
    Unescaped(usize, usize),
}

impl Rows<'_> {
    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.cells.len() / self.width
    }

    /// A value of a row.
    pub(crate) fn value(&self, row: usize, at: usize) -> ValueRef<'_> {
        match self.cells[row * self.width + at] {
            Cell::Value(value) => value,
            Cell::Number(text) => number(text).map_or(ValueRef::Null, |number| match number {
                store::value::Value::Integer(integer) => ValueRef::Integer(integer),
                store::value::Value::Real(real) => ValueRef::Real(real),
                _ => ValueRef::Null,
            }),
            Cell::Unescaped(start, end) => ValueRef::Text(&self.unescaped[start..end]),
        }
    }

    /// Rounds the numbers of a column, which is one of integers. One that is too great stays, for the column to refuse.
    pub(crate) fn round(&mut self, at: usize) {
        for cell in self.cells.iter_mut().skip(at).step_by(self.width) {
            if let Cell::Number(text) = *cell
                && let Some(integer) = nearest_integer(text)
            {
                *cell = Cell::Value(ValueRef::Integer(integer));
            }
        }
    }

    /// Gives the numbers of a column with all digits that were written, as texts: it is one of decimal numbers.
    pub(crate) fn spell_out(&mut self, at: usize) {
        for cell in self.cells.iter_mut().skip(at).step_by(self.width) {
            if let Cell::Number(text) = *cell {
                *cell = Cell::Value(ValueRef::Text(text));
            }
        }
    }
}

/// The rows of an `INSERT ... VALUES` of nothing but literals; `None` for any other text. Its size was checked.
pub(crate) fn rows_of(sql: &str) -> Option<Rows<'_>> {
    let verb = sql.as_bytes().first()?.to_ascii_uppercase();
    if !matches!(verb, b'I' | b'R') {
        return None;
    }
    let start = end_of_head(sql)?;
    let mut reader = Reader { sql, at: start, cells: Vec::new(), unescaped: String::new() };
    let width = reader.rows()?;
    let Reader { at, cells, unescaped, .. } = reader;
    let tail = &sql[at..];
    // A parameter there would take the number of one of the row's.
    if tail.bytes().any(|byte| matches!(byte, b'?' | b'$' | b':' | b'@')) {
        return None;
    }
    let parameters = vec!["?"; width].join(", ");
    Some(Rows { statement: format!("{} ({parameters}){tail}", &sql[..start]), width, cells, unescaped })
}

/// Where `INSERT INTO t (a, b) VALUES` ends.
fn end_of_head(sql: &str) -> Option<usize> {
    let mut tokens = Tokens::new(sql);
    let verb = tokens.next()?;
    if !verb.is("INSERT") && !verb.is("REPLACE") {
        return None;
    }
    for token in tokens {
        match token.kind {
            Kind::Word if token.is("VALUES") => return Some(token.end()),
            Kind::Word if token.is("SELECT") || token.is("WITH") => return None,
            Kind::Word | Kind::Quoted => {}
            Kind::Sign if matches!(token.text, "(" | ")" | "," | ".") => {}
            _ => return None,
        }
    }
    None
}

/// Reads rows from the text.
struct Reader<'a> {
    sql: &'a str,
    at: usize,
    cells: Vec<Cell<'a>>,
    unescaped: String,
}

impl<'a> Reader<'a> {
    /// All rows; returns how many values each has. The reader ends behind the last of them.
    fn rows(&mut self) -> Option<usize> {
        self.expect(b'(')?;
        self.row()?;
        let width = self.cells.len();
        loop {
            let end = self.at;
            if self.expect(b',').is_none() {
                self.at = end;
                return Some(width);
            }
            self.expect(b'(')?;
            let before = self.cells.len();
            self.row()?;
            if self.cells.len() - before != width {
                return None;
            }
        }
    }

    /// The values of one row, behind its parenthesis.
    fn row(&mut self) -> Option<()> {
        loop {
            self.skip_blanks();
            let cell = self.cell()?;
            self.cells.push(cell);
            self.skip_blanks();
            let sign = *self.sql.as_bytes().get(self.at)?;
            self.at += 1;
            match sign {
                b',' => {}
                b')' => return Some(()),
                _ => return None,
            }
        }
    }

    fn skip_blanks(&mut self) {
        let rest = &self.sql.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn expect(&mut self, sign: u8) -> Option<()> {
        self.skip_blanks();
        (*self.sql.as_bytes().get(self.at)? == sign).then(|| self.at += 1)
    }

    fn cell(&mut self) -> Option<Cell<'a>> {
        let rest = &self.sql.as_bytes()[self.at..];
        match rest {
            [b'\'', ..] => self.text(),
            [b'0'..=b'9' | b'.', ..] => self.number(0),
            [b'-' | b'+', b'0'..=b'9' | b'.', ..] => self.number(1),
            _ => {
                let start = self.at;
                self.at += word(rest);
                let value = match &self.sql[start..self.at] {
                    null if null.eq_ignore_ascii_case("NULL") => ValueRef::Null,
                    truth if truth.eq_ignore_ascii_case("TRUE") => ValueRef::Integer(1),
                    truth if truth.eq_ignore_ascii_case("FALSE") => ValueRef::Integer(0),
                    _ => return None,
                };
                Some(Cell::Value(value))
            }
        }
    }

    fn number(&mut self, sign: usize) -> Option<Cell<'a>> {
        let start = self.at;
        self.at += sign + number_length(&self.sql.as_bytes()[start + sign..]);
        let value = match number(&self.sql[start..self.at])? {
            store::value::Value::Integer(integer) => ValueRef::Integer(integer),
            store::value::Value::Real(_) => return Some(Cell::Number(&self.sql[start..self.at])),
            _ => return None,
        };
        Some(Cell::Value(value))
    }

    fn text(&mut self) -> Option<Cell<'a>> {
        let start = self.at + 1;
        let mut from = start;
        let written = self.unescaped.len();
        loop {
            let quote = from + memchr(b'\'', &self.sql.as_bytes()[from..])?;
            self.at = quote + 1;
            if self.sql.as_bytes().get(self.at) != Some(&b'\'') {
                if from == start {
                    return Some(Cell::Value(ValueRef::Text(&self.sql[start..quote])));
                }
                self.unescaped.push_str(&self.sql[from..quote]);
                return Some(Cell::Unescaped(written, self.unescaped.len()));
            }
            // With the first of the two quotes.
            self.unescaped.push_str(&self.sql[from..self.at]);
            from = self.at + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> Option<(String, Vec<Vec<ValueRef<'_>>>)> {
        // The values live as long as the rows, which this test has no reason to free.
        let rows = Box::leak(Box::new(rows_of(sql)?));
        let values = (0..rows.len()).map(|row| (0..rows.width).map(|at| rows.value(row, at)).collect());
        let values = values.collect();
        Some((rows.statement.clone(), values))
    }

    #[test]
    fn rows_of_literals_are_taken_out() {
        use ValueRef::{Integer, Null, Real, Text};
        for (sql, statement, rows) in [
            (
                "INSERT INTO t VALUES (1,'a')",
                "INSERT INTO t VALUES (?, ?)",
                vec![vec![Integer(1), Text("a")]],
            ),
            (
                "insert or ignore into \"T\" (a, b) values\n( NULL , -1.5e3 ) , (TRUE,'it''s ''''') ON CONFLICT DO NOTHING",
                "insert or ignore into \"T\" (a, b) values (?, ?) ON CONFLICT DO NOTHING",
                vec![vec![Null, Real(-1500.0)], vec![Integer(1), Text("it's ''")]],
            ),
            (
                "REPLACE INTO t VALUES (''), ('\u{e9}'), ('''')",
                "REPLACE INTO t VALUES (?)",
                vec![vec![Text("")], vec![Text("\u{e9}")], vec![Text("'")]],
            ),
            (
                "INSERT INTO t VALUES (-9223372036854775808), (1e19), (+.5);",
                "INSERT INTO t VALUES (?);",
                vec![vec![Integer(i64::MIN)], vec![Real(1e19)], vec![Real(0.5)]],
            ),
        ] {
            assert_eq!(read(sql), Some((statement.to_owned(), rows)), "{sql}");
        }
    }

    #[test]
    fn what_is_no_plain_literal_is_left() {
        for sql in [
            "",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t DEFAULT VALUES",
            "INSERT INTO t VALUES (1), (1, 2)",
            "INSERT INTO t VALUES ()",
            "INSERT INTO t VALUES (1,)",
            "INSERT INTO t VALUES (1",
            "INSERT INTO t VALUES ('open",
            "INSERT INTO t VALUES (1),",
            "INSERT INTO t VALUES (1 + 1)",
            "INSERT INTO t VALUES (?)",
            "INSERT INTO t VALUES (DEFAULT)",
            "INSERT INTO t VALUES (x'00')",
            "INSERT INTO t VALUES (E'a')",
            "INSERT INTO t VALUES ('1'::int)",
            "INSERT INTO t VALUES (\"a\")",
            "INSERT INTO t VALUES (0x10), (1_000)",
            "INSERT INTO t VALUES (--1\n1)",
            "INSERT INTO t VALUES (- 1)",
            "INSERT INTO t VALUES (1e999)",
            "INSERT INTO t VALUES (1) RETURNING $1",
            "SELECT 1",
            "WITH x AS (SELECT 1) INSERT INTO t VALUES (1)",
        ] {
            assert!(rows_of(sql).is_none(), "{sql}");
        }
    }
}
