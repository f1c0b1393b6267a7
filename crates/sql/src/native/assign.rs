//! What a statement assigns: values of its own, and what it makes of a row's columns.

use store::value::{Value, ValueRef};
use store::{RowBuf, Store, Table};

use super::expr::Term;
use super::scope::Given;
use crate::error::SqlError;
use crate::table::is_stored_as_it_is;
use crate::write::{HeadColumn, NewHead, Operand, accept};

/// Columns that a statement assigns at most: their values are gathered on the stack.
pub(super) const COLUMNS_MAX: usize = 16;

/// Columns and what they become.
pub(super) type Sets = Vec<(usize, Term)>;

/// Columns of the row's head and what they become.
pub(super) type Heads = Vec<(HeadColumn, Operand)>;

/// Whether a column stores a value as it is.
fn fits(table: &Table, column: usize, value: ValueRef<'_>) -> bool {
    !is_missing(table, column, value) && is_stored_as_it_is(table, column, value)
}

fn is_missing(table: &Table, column: usize, value: ValueRef<'_>) -> bool {
    table.def().columns[column].not_null && matches!(value, ValueRef::Null)
}

/// Values of a statement that their columns do not store as they are, as they store them.
#[derive(Debug)]
pub(super) struct Converted(Vec<(usize, Value)>);

impl Converted {
    /// Those among values for columns; `None`: a column does not take its value, which the general plan says.
    pub(super) fn of<'v>(table: &Table, values: impl Iterator<Item = (usize, &'v Value)>) -> Option<Self> {
        let mut converted = Vec::new();
        for (column, value) in values {
            if fits(table, column, value.as_ref()) {
                continue;
            }
            let stored = accept(table, column, value.clone()).ok()?;
            if is_missing(table, column, stored.as_ref()) {
                return None;
            }
            converted.push((column, stored));
        }
        Some(Self(converted))
    }

    /// Those among what is assigned, as far as it is known before there is a row.
    pub(super) fn of_sets(table: &Table, sets: &Sets, parameters: &[Value]) -> Option<Self> {
        let known = sets.iter().filter_map(|(column, term)| match term {
            Term::Value(operand) => Some((*column, operand.value(parameters))),
            _ => None,
        });
        Self::of(table, known)
    }

    /// What a column stores of a value.
    pub(super) fn stored<'v>(&'v self, column: usize, value: ValueRef<'v>) -> ValueRef<'v> {
        self.0.iter().find(|(known, _)| *known == column).map_or(value, |(_, stored)| stored.as_ref())
    }
}

/// Appends the payload of a row with the assignments. False: the general plan must say what they come to.
pub(super) fn edit(
    (table, row): (&Table, &RowBuf),
    given: Given<'_>,
    (sets, converted): (&Sets, &Converted),
    payload: &mut Vec<u8>,
) -> Result<bool, SqlError> {
    let mut changes = [(0, ValueRef::Null); COLUMNS_MAX];
    for (change, (column, term)) in changes.iter_mut().zip(sets) {
        let Ok(value) = term.value(given) else { return Ok(false) };
        let value = match term {
            Term::Value(_) => converted.stored(*column, value),
            // It is stored so already, or was converted for this column.
            Term::Column(place) if place.column == *column => value,
            _ if fits(table, *column, value) => value,
            _ => return Ok(false),
        };
        *change = (*column, value);
    }
    Ok(table.edit_payload(row, &changes[..sets.len()], payload)?)
}

/// Assigns what a statement says of the row's head.
pub(super) fn assign_heads(
    head: &mut NewHead,
    (store, table): (&Store, &Table),
    heads: &Heads,
    parameters: &[Value],
) -> Result<(), SqlError> {
    heads.iter().try_for_each(|(column, operand)| {
        head.assign(store, table, *column, operand.value(parameters).clone())
    })
}
