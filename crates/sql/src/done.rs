//! What a statement gives: its rows one by one, and how it ended.

use store::TableId;
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
    /// What it made invalid, other than one row by its key.
    pub invalidated: Option<Invalidated>,
}

/// Rows of a table that a statement made invalid together, by a condition or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalidated {
    /// The table; the first, where a statement empties several.
    pub table: TableId,
    /// How many rows.
    pub rows: u64,
    /// What became of them.
    pub how: Invalidation,
}

/// What becomes of rows that are made invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// `DELETE`: they left.
    Deleted,
    /// `TRUNCATE`, `flush_all`: their table was emptied in one step.
    Flushed,
    /// `UPDATE ... SET _stale`: they are served until they are refreshed.
    Stale,
    /// An expiry rule: they left.
    Expired,
}

impl Invalidation {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Flushed => "flushed",
            Self::Stale => "stale",
            Self::Expired => "expired",
        }
    }
}

impl Invalidated {
    /// This and what another statement of the same call did; the first says where.
    pub(crate) fn and(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(first), Some(second)) => Some(Self { rows: first.rows + second.rows, ..first }),
            (first, second) => first.or(second),
        }
    }
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
        Self { kind: DoneKind::Write, affected, tag, by: ComputedBy::Native, invalidated: None }
    }

    /// A statement that finds no rows and computes nothing.
    pub(crate) fn of_nobody(tag: &'static str) -> Self {
        Self { kind: DoneKind::Write, affected: 0, tag, by: ComputedBy::Nobody, invalidated: None }
    }

    /// The same, which made its rows invalid together.
    pub(crate) fn invalidating(self, table: TableId, how: Invalidation) -> Self {
        Self { invalidated: Some(Invalidated { table, rows: self.affected, how }), ..self }
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
