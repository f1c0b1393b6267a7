//! What one cache tells the others: which rows are not valid any more.

use std::sync::Arc;

use sql::{SqlType, Told, ToldRows};
use store::scalar::zone::Zone;
use store::value::Value;
use store::{Replica, Table};

/// A table as caches name it to one another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableName {
    /// Its name, with its schema where that is not `public`.
    pub name: Arc<str>,
    /// What both tables have in common if they mean the same by a key and a column.
    pub likeness: u64,
}

impl TableName {
    /// Of a table of which other caches hear; none: they do not.
    pub fn of(table: &Table) -> Option<Self> {
        Some(Self { name: table.name().into(), likeness: table.likeness()? })
    }
}

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// It goes.
    Delete,
    /// It is stale, and ends in so many seconds if there is a number.
    Stale(Option<u32>),
    /// It goes everywhere, also where it was written: its bus did not have it in time, and others may have written it
    /// since.
    Withdraw,
}

/// A statement that chooses rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Its text.
    pub text: Arc<str>,
    /// The values of its parameters.
    pub values: Vec<Value>,
    /// The types that the client chose for them.
    pub types: Box<[Option<SqlType>]>,
    /// The time zone of the session, by its name; none is UTC.
    pub zone: Option<Box<str>>,
    /// `LIKE` is SQLite's.
    pub like_of_sqlite: bool,
}

/// Rows that are not valid any more.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// One row, by its key.
    Key {
        /// Of this table.
        table: TableName,
        /// The key, as the store has it.
        key: Box<[u8]>,
        /// What becomes of it.
        change: KeyChange,
    },
    /// One row, as it is now.
    Row {
        /// Of this table.
        table: TableName,
        /// The key, as the store has it.
        key: Box<[u8]>,
        /// What it is.
        row: Box<Replica>,
    },
    /// Those that a statement chooses.
    Statement {
        /// Of this table.
        table: TableName,
        /// The statement.
        said: Box<Said>,
    },
    /// All.
    Whole {
        /// Of this table.
        table: TableName,
    },
}

impl Operation {
    /// Of what a statement has told, in a session whose time zone is `zone` now and has this name; none: its table has
    /// no bus any more.
    pub(crate) fn of(told: Told, zone: (Option<Zone>, Option<&str>)) -> Option<Self> {
        let table = TableName::of(&told.table)?;
        Some(match told.what {
            ToldRows::All => Self::Whole { table },
            // The zone in which its texts were meant has no name any more.
            ToldRows::Chosen { .. } if told.zone != zone.0 || zone.0.is_some() && zone.1.is_none() => {
                Self::Whole { table }
            }
            ToldRows::Chosen { text, values, types } => {
                let zone = told.zone.and(zone.1).map(Into::into);
                let like_of_sqlite = told.like == sql::LikeStyle::Sqlite;
                Self::Statement { table, said: Box::new(Said { text, values, types, zone, like_of_sqlite }) }
            }
        })
    }

    /// The table.
    pub fn table(&self) -> &TableName {
        match self {
            Self::Key { table, .. }
            | Self::Row { table, .. }
            | Self::Statement { table, .. }
            | Self::Whole { table } => table,
        }
    }

    /// The key of which it says all that there is to say. Until it comes back of the stream, what others have told of
    /// the key before is of no account where it was written.
    pub(super) fn decided_key(&self) -> Option<&[u8]> {
        match self {
            Self::Row { key, .. }
            | Self::Key { key, change: KeyChange::Delete | KeyChange::Withdraw, .. } => Some(key),
            Self::Key { .. } | Self::Statement { .. } | Self::Whole { .. } => None,
        }
    }

    /// Whether nobody can say which keys it changes.
    pub fn is_broad(&self) -> bool {
        self.key().is_none()
    }

    /// What is said in its place when it comes too late: a row is not to undo what others have written since.
    #[must_use]
    pub fn withdrawn(self) -> Self {
        match self {
            Self::Row { table, key, .. } => Self::Key { table, key, change: KeyChange::Withdraw },
            other => other,
        }
    }

    /// The key of which it says something; none: of any.
    pub fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Key { key, .. } | Self::Row { key, .. } => Some(key),
            Self::Statement { .. } | Self::Whole { .. } => None,
        }
    }

    /// Bytes that it takes, in memory and on the wire, about.
    pub fn bytes(&self) -> usize {
        let own = match self {
            Self::Key { key, .. } => key.len(),
            Self::Row { key, row, .. } => key.len() + row.bytes(),
            Self::Statement { said, .. } => {
                let of = |value: &Value| match value {
                    Value::Text(text) => text.len(),
                    Value::Blob(bytes) => bytes.len(),
                    Value::Null | Value::Integer(_) | Value::Real(_) => 0,
                };
                said.text.len() + said.values.iter().map(|value| VALUE_BYTES + of(value)).sum::<usize>()
            }
            Self::Whole { .. } => 0,
        };
        OPERATION_BYTES + self.table().name.len() + own
    }
}

/// What an operation takes beside the name of its table and its content.
const OPERATION_BYTES: usize = 24;

/// What a value takes beside its text.
const VALUE_BYTES: usize = 16;
