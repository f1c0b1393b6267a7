//! What a session's statements wrote: `changes()`, `total_changes()`, `last_insert_rowid()`.
//!
//! SQLite has functions of these names, but it writes nothing here, so they are ours: a session keeps the numbers, and
//! the executor that runs its statement lends them to the functions.

use store::Table;
use store::definition::ColumnKind;
use store::value::ValueRef;

use crate::done::Done;

/// The numbers of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Rows that the last statement which writes wrote.
    pub(crate) changes: i64,
    /// Rows written since the session began.
    pub(crate) total: i64,
    /// The number of the last row inserted into a table that numbers its rows.
    pub(crate) last_row: i64,
}

impl Facts {
    /// Takes note of a statement that worked.
    pub(crate) fn note(&mut self, done: &Done) {
        // A pattern: it is compared without a call.
        if matches!(done.tag, "INSERT" | "UPDATE" | "DELETE" | "MERGE") {
            self.note_rows(done.affected);
        }
    }

    /// Takes note of what a statement wrote, whether it worked or not.
    pub(crate) fn note_rows(&mut self, rows: u64) {
        self.changes = i64::try_from(rows).unwrap_or(i64::MAX);
        self.total = self.total.saturating_add(self.changes);
    }

    /// Takes note of a row inserted under a key.
    pub(crate) fn note_inserted(&mut self, table: &Table, key: &[u8]) {
        if let Some(number) = row_number(table, key) {
            self.last_row = number;
        }
    }
}

/// The number of a row, where its key is one: in a table without a key, and under a single INTEGER key.
pub(crate) fn row_number(table: &Table, key: &[u8]) -> Option<i64> {
    if !table.def().primary_key.first().is_none_or(|&column| is_row_number(table, column)) {
        return None;
    }
    match table.keys().column(key, 0) {
        Ok(ValueRef::Integer(number)) => Some(number),
        _ => None,
    }
}

/// Whether this column is what SQLite calls the row's number.
pub(crate) fn is_row_number(table: &Table, column: usize) -> bool {
    let def = table.def();
    def.primary_key == [column] && def.columns[column].kind == ColumnKind::Integer
}
