//! What a statement gives: its rows one by one, and how it ended.

use store::value::ValueRef;

use crate::describe::ColumnDescription;
use crate::error::SqlError;

/// Takes the rows of a statement as they come.
pub trait RowSink {
    /// The columns, once, before the first row.
    fn columns(&mut self, columns: &[ColumnDescription]);

    /// One row. An error stops the statement and is what it answers.
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError>;
}

/// How a statement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Whether it answered with rows.
    pub kind: DoneKind,
    /// Rows returned by a read, or written by a write.
    pub affected: u64,
    /// What it was: `SELECT`, `INSERT`, `CREATE TABLE`...
    pub tag: &'static str,
    /// Who found its rows and computed their values.
    pub by: ComputedBy,
}

/// Who carries a statement out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputedBy {
    /// This crate alone.
    Native,
    /// SQLite, over the store's tables.
    Sqlite,
    /// It finds no rows and computes nothing: a definition, the end of a transaction.
    Nobody,
}

impl ComputedBy {
    /// Its name in `EXPLAIN`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Sqlite => "sqlite",
            Self::Nobody => "none",
        }
    }
}

impl Done {
    /// So many rows written without SQLite.
    pub(crate) fn wrote(tag: &'static str, affected: u64) -> Self {
        Self { kind: DoneKind::Write, affected, tag, by: ComputedBy::Native }
    }

    /// A statement that finds no rows and computes nothing.
    pub(crate) fn of_nobody(tag: &'static str) -> Self {
        Self { kind: DoneKind::Write, affected: 0, tag, by: ComputedBy::Nobody }
    }
}

/// What a statement answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoneKind {
    /// Rows, even if there are none.
    Rows,
    /// A count of rows written, 0 for a definition.
    Write,
}

/// Takes no rows.
pub(crate) struct Nobody;

impl RowSink for Nobody {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
        Ok(())
    }
}
