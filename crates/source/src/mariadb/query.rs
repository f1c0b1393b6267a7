//! Queries of materialized views that MariaDB runs.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use bytes::Bytes;
use postgres::oid;
use store::definition::ServerDef;

use super::cursor::{Cursor, hex};
use super::login::connect;
use super::table::{STRING, VARCHAR};
use super::types::type_of;
use super::wire::{Column, Connection, END, END_BYTES, ERROR, cells_of, error_of};
use crate::error::Error;
use crate::limits::{ANSWER_LOOK, ANSWER_ROWS_MAX};
use crate::query::{Cells, Described, Rows};
use crate::time::now;

/// Commands.
const QUERY: u8 = 3;
const PREPARE: u8 = 0x16;
const CLOSE: u8 = 0x19;
/// The state of an error that leaves the answer unknown.
const LOST: &str = "08006";
/// Types of results: times, and texts or bytes of each size.
const TIME: u8 = 11;
const TINY_BLOB: u8 = 249;
/// The collation of bytes.
const BYTES: u64 = 63;

/// A connection for queries that only read.
pub(crate) struct Runner {
    connection: Connection,
    /// Rows are still to come that nobody wants.
    broken: bool,
    /// The types of the columns of the last query that was described.
    types: Vec<u32>,
}

impl Runner {
    pub(crate) fn connect(server: &ServerDef) -> Result<Self, Error> {
        let mut connection = connect(server)?;
        connection.query("SET SESSION TRANSACTION READ ONLY")?;
        connection.query("SET time_zone = '+00:00'")?;
        Ok(Self { connection, broken: false, types: Vec::new() })
    }

    /// Has queries end after so long.
    pub(crate) fn set_timeout(&mut self, timeout: Duration) -> Result<(), Error> {
        let seconds = timeout.as_secs_f64();
        self.connection.query(&format!("SET max_statement_time = {seconds:.3}")).map(drop)
    }

    /// What a query gives. It is not run.
    pub(crate) fn describe(&mut self, sql: &str, until: Instant) -> Result<Described, Error> {
        self.connection.command(PREPARE, sql.as_bytes())?;
        // Until all of it has come.
        self.broken = true;
        let answer = self.connection.answer(until).inspect_err(|error| self.broken = error.state == LOST)?;
        let mut rest = Cursor(&answer);
        rest.byte()?;
        let statement = rest.take(4)?;
        let (columns, parameters) = (rest.size(2)?, rest.size(2)?);
        if parameters > 0 {
            // A packet ends them.
            (0..=parameters).try_for_each(|_| self.connection.answer(until).map(drop))?;
        }
        let mut described = Described { parameters, columns: Vec::new() };
        for _ in 0..columns {
            let column = Column::read(&self.connection.answer(until)?)?;
            let oid = type_here(&column)?;
            described.columns.push((column.name, oid));
        }
        if columns > 0 {
            self.connection.answer(until)?;
        }
        self.connection.command(CLOSE, statement)?;
        self.broken = false;
        self.types = described.columns.iter().map(|(_, oid)| *oid).collect();
        Ok(described)
    }

    /// Runs the query that was described last, and gives each of its rows to `rows`.
    pub(crate) fn fetch_all(&mut self, sql: &str, until: Instant, rows: &mut dyn Rows) -> Result<(), Error> {
        self.connection.command(QUERY, sql.as_bytes())?;
        // Until it has ended.
        self.broken = true;
        let columns = Cursor(&self.next(until, rows)?).packed_size()?;
        if columns != self.types.len() || columns > ANSWER_ROWS_MAX {
            return Err(Error::new("42804", "the query gives other columns than a moment ago"));
        }
        for _ in 0..=columns {
            self.next(until, rows)?;
        }
        loop {
            let packet = self.next(until, rows)?;
            if packet.first() == Some(&END) && packet.len() < END_BYTES {
                self.broken = false;
                return Ok(());
            }
            let values = values_of(&packet, &self.types)?;
            let cells: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
            let cells: &Cells<'_> = &cells;
            rows.row(cells)?;
        }
    }

    /// The next packet, if the query is to go on. Behind an error nothing comes.
    fn next(&mut self, until: Instant, rows: &mut dyn Rows) -> Result<Bytes, Error> {
        loop {
            let left = until.saturating_duration_since(now()).min(ANSWER_LOOK);
            if left.is_zero() {
                return Err(Error::connection("the source does not answer"));
            }
            match self.connection.next_within(left)? {
                Some(packet) if packet.first() == Some(&ERROR) => {
                    self.broken = false;
                    return Err(error_of(&packet));
                }
                Some(packet) => return Ok(packet),
                None => rows.look()?,
            }
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether the source has not ended it meanwhile.
    pub(crate) fn is_there(&mut self) -> bool {
        matches!(self.connection.next_within(Duration::from_millis(1)), Ok(None))
    }

    /// Has the source end what runs on this connection.
    pub(crate) fn cancel(&self, server: &ServerDef) -> Result<(), Error> {
        let mut other = connect(server)?;
        other.query(&format!("KILL QUERY {}", self.connection.number))?;
        other.end();
        Ok(())
    }

    pub(crate) fn end(&mut self) {
        self.connection.end();
    }
}

/// The type here of a column: one that holds all of its values.
fn type_here(column: &Column) -> Result<u32, Error> {
    match column.kind {
        // Of hours without end, and with a sign.
        TIME => Ok(oid::INTERVAL),
        VARCHAR | TINY_BLOB..=STRING if column.collation == BYTES => Ok(oid::BYTEA),
        _ => type_of(column, None),
    }
}

/// The values of a row, as PostgreSQL would write them.
fn values_of<'p>(packet: &'p [u8], types: &[u32]) -> Result<Vec<Option<Cow<'p, [u8]>>>, Error> {
    let written = |(cell, oid): (Option<&'p [u8]>, &u32)| {
        cell.map(|text| match *oid {
            oid::BYTEA => Cow::Owned(format!("\\x{}", hex(text)).into_bytes()),
            // The session's time is UTC.
            oid::TIMESTAMPTZ => Cow::Owned([text, b"+00"].concat()),
            _ => Cow::Borrowed(text),
        })
    };
    Ok(cells_of(packet, types.len())?.into_iter().zip(types).map(written).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_types_that_hold_all_their_values() {
        let column =
            |kind, collation| Column { name: "c".to_owned(), collation, length: 1, kind, is_unsigned: true };
        for (kind, collation, expected) in [
            (3, 63, oid::INT8),
            (8, 63, oid::NUMERIC),
            (11, 63, oid::INTERVAL),
            (12, 63, oid::TIMESTAMP),
            (253, 45, oid::TEXT),
            (252, 63, oid::BYTEA),
            (249, 45, oid::TEXT),
        ] {
            assert_eq!(type_here(&column(kind, collation)), Ok(expected), "{kind}");
        }
        assert_eq!(type_here(&column(16, 63)).unwrap_err().state, "0A000");
    }

    #[test]
    fn values_are_written_as_postgresql_does() {
        let read = values_of(b"\x02ab\xfb\x012", &[oid::BYTEA, oid::TEXT, oid::INT4]).unwrap();
        assert_eq!(read, [Some(Cow::Borrowed(&b"\\x6162"[..])), None, Some(Cow::Borrowed(&b"2"[..]))]);
    }
}
