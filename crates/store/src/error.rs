//! What the store refuses, named by who is at fault.

use std::fmt;

use crate::definition::DefinitionError;

/// The SQLSTATE of an expression without a value for a row.
pub const BAD_EXPRESSION: &str = "22000";

/// Why a read could not be finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// An old version that this statement needed had to be given up, or the index it read was dropped (SQLSTATE 72000).
    SnapshotTooOld,
    /// A row's bytes do not decode: memory was damaged. The row is named by its table.
    Corrupt(String),
}

/// Why a write was refused. Nothing of it was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The row is larger than the limit.
    TooLarge {
        /// Bytes of the row.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// No memory could be freed for the row.
    Full,
    /// A unique index holds the value for another row.
    Unique {
        /// The index's name.
        index: String,
        /// Position in the list of writes.
        write: usize,
    },
    /// A row changed, came or went since it was read: positions in the list of writes.
    Lost(Vec<usize>),
    /// The table was dropped meanwhile.
    TableGone,
    /// The table was redefined meanwhile: the write is to be made again, by its new definition.
    TableChanged,
    /// It is a materialized view (its name), which only a refresh writes.
    View(String),
    /// Whoever asked for it asked to stop.
    Canceled,
    /// A condition that every row of the table meets is false for this one (its name).
    Check(String),
    /// An expression of the table's definition could not be computed (the message says which, and why).
    Expression {
        /// Its SQLSTATE.
        state: &'static str,
        /// The message: which expression, and why.
        message: String,
    },
    /// The identity column of a table has reached the last number (the table's name).
    NumbersExhausted(String),
    /// A sequence has given out its last number.
    SequenceEnded {
        /// Its name.
        name: String,
        /// It rises.
        rises: bool,
        /// The last number.
        limit: i64,
    },
    /// A column that the server computes or numbers itself was given a value (its name).
    Generated(String),
    /// A column that must not be NULL has no value (its name).
    NotNull(String),
    /// A value does not fit its column's type (the message says which).
    Type(String),
    /// The key cannot be a key of this table (the message says why).
    Key(String),
    /// More rows than one commit may hold.
    TooManyRows {
        /// The limit.
        limit: usize,
    },
}

/// Why a definition was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DdlError {
    /// SQLSTATE as PostgreSQL uses it.
    pub state: &'static str,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SnapshotTooOld => {
                f.write_str("snapshot too old: rows that it needs were discarded; run the statement again")
            }
            Self::Corrupt(table) => write!(f, "a row of table \"{table}\" is damaged"),
        }
    }
}

impl WriteError {
    /// An expression that cannot be computed, for a reason that has no SQLSTATE of its own.
    pub fn expression(message: impl Into<String>) -> Self {
        Self::Expression { state: BAD_EXPRESSION, message: message.into() }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes, limit } => {
                write!(f, "row is {bytes} bytes; the limit is {limit} (max_row_size)")
            }
            Self::Full => f.write_str("out of memory storing object"),
            Self::Unique { index, .. } => {
                write!(f, "duplicate key value violates unique constraint \"{index}\"")
            }
            Self::Lost(writes) => {
                write!(f, "could not serialize access: {} rows changed meanwhile", writes.len())
            }
            Self::TableGone => f.write_str("the table was dropped meanwhile"),
            Self::TableChanged => f.write_str("the table was redefined meanwhile; try again"),
            Self::View(name) => write!(f, "cannot change materialized view \"{name}\""),
            Self::Canceled => f.write_str("canceling statement due to user request"),
            Self::Check(name) => write!(f, "new row violates check constraint \"{name}\""),
            Self::NumbersExhausted(table) => {
                write!(f, "the identity column of table \"{table}\" has reached its last number")
            }
            Self::SequenceEnded { name, rises, limit } => {
                let which = if *rises { "maximum" } else { "minimum" };
                write!(f, "nextval: reached {which} value of sequence \"{name}\" ({limit})")
            }
            Self::Generated(column) => {
                write!(f, "column \"{column}\" cannot be written: the server computes it")
            }
            Self::NotNull(column) => {
                write!(f, "null value in column \"{column}\" violates not-null constraint")
            }
            Self::Type(message) | Self::Key(message) | Self::Expression { message, .. } => {
                f.write_str(message)
            }
            Self::TooManyRows { limit } => write!(f, "the statement writes more than {limit} rows; split it"),
        }
    }
}

impl fmt::Display for DdlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}
impl std::error::Error for WriteError {}
impl std::error::Error for DdlError {}

pub(crate) fn ddl(state: &'static str, message: String) -> DdlError {
    DdlError { state, message }
}

impl From<DefinitionError> for DdlError {
    fn from(error: DefinitionError) -> Self {
        Self { state: error.sqlstate, message: error.message }
    }
}
