//! Rows that a transaction has read to write them later (`FOR UPDATE`), as it found them.
//!
//! They are not locked. When the transaction writes one of them, its commit asks for the row that was read, and not for
//! the one that the writing statement found: what another has changed in between is a conflict.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use arena::TableId;

use crate::limits::CHOSEN_ROWS_MAX;
use crate::row::RowBuf;
use crate::row::request::Expect;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// A statement reads rows to write them later.
    choosing: Cell<bool>,
    /// There were more than fit.
    overflowed: Cell<bool>,
    rows: RefCell<HashMap<TableId, OfTable>>,
    count: Cell<usize>,
}

/// The rows of one table, by their keys.
type OfTable = HashMap<Box<[u8]>, Found>;

/// A row as it was found.
#[derive(Clone, Copy, Debug)]
struct Found {
    cas: u64,
    /// The newest stamp when it was read.
    since: u64,
}

impl Chosen {
    pub(super) fn begin(&self) {
        self.choosing.set(true);
    }

    /// False: the transaction has read more rows than fit.
    pub(super) fn end(&self) -> bool {
        self.choosing.set(false);
        !self.overflowed.get()
    }

    /// Takes note of a row that a statement reads. What was read first counts.
    #[inline]
    pub(super) fn note(&self, table: TableId, row: &RowBuf, since: u64) {
        if self.choosing.get() {
            self.add(table, row, since);
        }
    }

    #[cold]
    fn add(&self, table: TableId, row: &RowBuf, since: u64) {
        if row.is_uncommitted() {
            return;
        }
        if self.count.get() >= CHOSEN_ROWS_MAX {
            return self.overflowed.set(true);
        }
        let mut rows = self.rows.borrow_mut();
        let of_table = rows.entry(table).or_default();
        if !of_table.contains_key(row.key()) {
            of_table.insert(row.key().into(), Found { cas: row.cas(), since });
            self.count.set(self.count.get() + 1);
        }
    }

    /// The transaction has written this key for good: what it read there is not to be found any more.
    pub(super) fn forget(&mut self, table: TableId, key: &[u8]) {
        let gone = self.rows.get_mut().get_mut(&table).and_then(|rows| rows.remove(key));
        *self.count.get_mut() -= usize::from(gone.is_some());
    }

    /// What a commit asks for that writes a key, where a statement asks for this.
    pub(super) fn expectation(&self, table: TableId, key: &[u8], asked: Expect) -> Expect {
        if self.count.get() == 0 {
            return asked;
        }
        let rows = self.rows.borrow();
        let Some(&Found { cas, since }) = rows.get(&table).and_then(|rows| rows.get(key)) else {
            return asked;
        };
        let (expiry, lease) = match asked {
            Expect::Unremoved { expiry, lease, .. } => (expiry, lease),
            _ => (None, None),
        };
        Expect::Unremoved { cas, since, expiry, lease }
    }
}
