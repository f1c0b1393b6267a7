//! Numbers that a table gives out: of rows without a key, and of identity columns.
//!
//! A number of an identity column is never given out twice, not after a crash either: a range of them is written into
//! the definitions before the first of it is used, and the next process goes on behind it.

use std::sync::atomic::Ordering;

use crate::error::WriteError;
use crate::schema::Schema;
use crate::table::Table;

/// Numbers reserved at a time: a write of the definitions for each thousand rows, and at most as many numbers left out
/// by a restart.
const NUMBERS_AHEAD: i64 = 1_024;

impl Schema {
    /// The next number of the table's identity column.
    pub fn next_number(&self, table: &Table) -> Result<i64, WriteError> {
        let state = &table.state;
        // Relaxed: only that no two are the same.
        let raised = |number: i64| number.checked_add(1);
        let number = state
            .next_number
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, raised)
            .map_err(|_| WriteError::NumbersExhausted(table.name().to_owned()))?;
        self.reserve_numbers(table, number)?;
        Ok(number)
    }

    /// Notes a number that a row brought along: those given out go on behind it.
    pub fn note_number(&self, table: &Table, number: i64) -> Result<(), WriteError> {
        // Relaxed: as in `next_number`.
        let next = table.state.next_number.fetch_max(number.saturating_add(1), Ordering::Relaxed);
        if number < next { Ok(()) } else { self.reserve_numbers(table, number) }
    }

    /// Goes on with this number, which a client asked for, even if it was given out. After a crash the numbers go on
    /// behind all that were.
    pub fn set_number(&self, table: &Table, next: i64) -> Result<(), WriteError> {
        if next > 1 {
            self.reserve_numbers(table, next - 1)?;
        }
        // Relaxed: as in `next_number`.
        table.state.next_number.store(next.max(1), Ordering::Relaxed);
        Ok(())
    }

    /// Begins again with the first number: of a table whose rows just went. Nothing is written down, for what the
    /// definitions say is passed by the next number that is reserved.
    pub fn restart_numbers(&self, table: &Table) {
        let _one = self.definitions.lock();
        // Release: pairs with the Acquire in `reserve_numbers`, which then writes the definitions.
        table.state.numbers_below.store(0, Ordering::Release);
        // Relaxed: as in `next_number`.
        table.state.next_number.store(table.def().numbers_from.max(1), Ordering::Relaxed);
    }

    /// Has the definitions say that this number may be in use.
    fn reserve_numbers(&self, table: &Table, number: i64) -> Result<(), WriteError> {
        let below = &table.state.numbers_below;
        // Acquire: pairs with the Release below, so that what it says is written.
        if number < below.load(Ordering::Acquire) {
            return Ok(());
        }
        let _one = self.definitions.lock();
        let before = below.load(Ordering::Acquire);
        if number < before {
            return Ok(());
        }
        below.store(number.saturating_add(NUMBERS_AHEAD), Ordering::Release);
        self.save(&self.catalog()).map_err(|_| {
            below.store(before, Ordering::Release);
            WriteError::Full
        })
    }
}
