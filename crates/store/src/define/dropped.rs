//! Tables that were dropped, or that went to the other file: what becomes of their rows and of their numbers.
//!
//! Rows are found by the number of their table, and numbers are few, so each is given out again. Whoever still has a
//! handle of the table that had the number before must not meet rows of the next one:
//!
//! - A dropped table has no live row, whatever stamp a row bears. A lookup by its handle finds nothing, a statement
//!   that reads it fails, and under the lock of a shard nobody writes it.
//! - A number rests while anybody in this process has its table: a scan, a plan, a commit, a catalogue that a thread
//!   keeps.
//! - Numbers are given out in turn, so that even a number that nobody has rests for long.
//!
//! Idle threads keep a catalogue until their next command, so all numbers may rest. Then the one that has rested
//! longest is given out: the first rule still protects it. Other processes compare the number of the definitions before
//! and after each read (`reader.rs`).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::{SHARED_TABLES, TableId};

use crate::error::{DdlError, ddl};
use crate::limits::TABLES_MAX;
use crate::memory::FREE_ATTEMPTS;
use crate::store::Store;
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::dropped::has_segments;

impl Store {
    /// Ends a table: from here on it has no row, and nobody writes it.
    pub(crate) fn end_table(&self, table: &Table) {
        // Release: pairs with the Acquire under the shard lock, where writers look.
        table.state.gone.store(true, Ordering::Release);
        self.end_rows(table);
    }

    /// Takes back what a table that has ended holds, when the catalogue has it no longer.
    pub(crate) fn bury(&self, table: &Arc<Table>) {
        self.empty_dropped(table, FREE_ATTEMPTS);
        self.dropped.0.lock().tables.push_back(Arc::clone(table));
    }

    /// Empties what came to a dropped table late: a commit that had turned swaps its rows in, and a writer takes a
    /// segment before it is refused.
    pub(crate) fn clear_dropped(&self) {
        let full: Vec<Arc<Table>> =
            self.dropped.0.lock().tables.iter().filter(|table| has_segments(table)).cloned().collect();
        for table in full {
            self.empty_dropped(&table, 1);
        }
        self.dropped.0.lock().forget();
    }

    /// A number for a table, of those that may be read by others or of those that may not. The caller holds the lock of
    /// definitions.
    pub(crate) fn free_table_id(&self, catalog: &Catalog, shared: bool) -> Result<TableId, DdlError> {
        let segments =
            self.arena.segments().into_iter().map(|segment| self.arena.of(segment).tag(segment).table);
        let taken: HashSet<TableId> = segments.chain(catalog.tables().map(|table| table.id())).collect();
        // 0 is no table, 1 the built-in one.
        let numbers = if shared { SHARED_TABLES..TABLES_MAX } else { 1..SHARED_TABLES };
        let open = self.open.lock();
        let mut dropped = self.dropped.0.lock();
        dropped.forget();
        let resting: HashSet<TableId> = dropped.tables.iter().map(|table| table.id()).collect();
        let is_taken = |id: TableId| taken.contains(&id) || open.has_table(id.0);
        let last = dropped.last[usize::from(shared)];
        let (later, earlier): (Vec<u16>, Vec<u16>) = numbers.clone().partition(|&number| number > last);
        let in_turn = later.into_iter().chain(earlier).map(TableId);
        let free = in_turn.into_iter().find(|id| !is_taken(*id) && !resting.contains(id));
        let is_fit = |table: &Arc<Table>| table.id().is_shared() == shared && !is_taken(table.id());
        let oldest = || dropped.tables.iter().find(|table| is_fit(table)).map(|table| table.id());
        let Some(id) = free.or_else(oldest) else {
            let limit = numbers.len();
            return Err(ddl(
                "54000",
                format!("there are too many tables of this kind; the limit is {limit}"),
            ));
        };
        dropped.last[usize::from(shared)] = id.0;
        dropped.tables.retain(|table| table.id() != id);
        drop(dropped);
        drop(open);
        if free.is_none() {
            // A commit that had turned before the table was dropped puts its rows under the number.
            drop(self.committing.write());
        }
        Ok(id)
    }
}
