//! What a column in `INSERT (...)` or `SET` stands for, and the row that its values make.

use store::definition::{ColumnDef, Identity};
use store::value::Value;
use store::{Store, Table, WriteError};

use super::head::{HeadColumn, NewHead};
use crate::error::SqlError;
use crate::table::is_stored_as_it_is;
use crate::table::{Column, Head, Shape};

/// Where an assigned value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The table's column at this position.
    Stored(usize),
    /// A column of the row's head.
    Head(HeadColumn),
}

impl Target {
    /// What a column's name stands for; columns that are only read are refused.
    pub(crate) fn named(table: &Table, shape: &Shape, name: &str) -> Result<Self, SqlError> {
        Self::named_by(table, shape, name, false)
    }

    /// The same. `overrides`: numbers that the server gives may be given instead.
    pub(crate) fn named_by(
        table: &Table,
        shape: &Shape,
        name: &str,
        overrides: bool,
    ) -> Result<Self, SqlError> {
        let shown = shape.named(name).ok_or_else(|| SqlError::unknown_column(table.name(), name))?;
        match shown.column {
            Column::Stored(at) if overrides && table.def().columns[at].identity.is_some() => {
                Ok(Self::Stored(at))
            }
            Column::Stored(at) if is_made(&table.def().columns[at]) => {
                Err(WriteError::Generated(shown.name.clone()).into())
            }
            Column::Stored(at) => Ok(Self::Stored(at)),
            Column::Head(Head::Flags) => Ok(Self::Head(HeadColumn::Flags)),
            Column::Head(Head::ExpiresAt) => Ok(Self::Head(HeadColumn::ExpiresAt)),
            Column::Head(Head::Ttl) => Ok(Self::Head(HeadColumn::Ttl)),
            Column::Head(Head::Stale) => Ok(Self::Head(HeadColumn::Stale)),
            Column::Head(Head::Leased) => Ok(Self::Head(HeadColumn::Leased)),
            Column::Head(_) | Column::Absent(_) => {
                let message = format!("column \"{}\" can only be read: the server computes it", shown.name);
                Err(SqlError::new("428C9", message))
            }
        }
    }
}

/// A row as it will be written, before it is encoded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draft {
    /// One value for each column of the table.
    pub(crate) values: Vec<Value>,
    /// The columns that wait for the value of their default expression.
    pub(crate) defaults: Vec<usize>,
    pub(crate) head: NewHead,
}

impl Draft {
    /// A row of defaults.
    pub(crate) fn defaults(table: &Table) -> Self {
        let columns = &table.def().columns;
        let values = columns.iter().map(|column| column.default.clone().unwrap_or_default());
        let computed = (0..columns.len()).filter(|&at| columns[at].default_sql.is_some());
        Self { values: values.collect(), defaults: computed.collect(), head: NewHead::default() }
    }

    /// Assigns a computed value, converted to what the column stores.
    pub(crate) fn assign(
        &mut self,
        store: &Store,
        table: &Table,
        target: Target,
        value: Value,
    ) -> Result<(), SqlError> {
        match target {
            Target::Stored(at) => {
                self.values[at] = accept(table, at, value)?;
                self.defaults.retain(|&waiting| waiting != at);
            }
            Target::Head(column) => self.head.assign(store, table, column, value)?,
        }
        Ok(())
    }

    /// The first column that is NULL and must not be.
    pub(crate) fn null_column(&self, table: &Table) -> Option<usize> {
        let columns = table.def().columns.iter().zip(&self.values);
        columns.into_iter().position(|(column, value)| column.not_null && value.is_null())
    }
}

/// Whether the server alone makes the column's values.
fn is_made(column: &ColumnDef) -> bool {
    column.generated.is_some() || column.identity == Some(Identity::Always)
}

/// A value as the column stores it.
pub(crate) fn accept(table: &Table, at: usize, value: Value) -> Result<Value, SqlError> {
    if is_stored_as_it_is(table, at, value.as_ref()) { Ok(value) } else { Ok(table.accept(at, value)?) }
}
