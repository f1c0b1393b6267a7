//! Rows that a statement looked for by their keys and did not find, in tables that read through. Who runs the statement
//! has them fetched, and runs it again.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use store::Table;

use crate::limits::MISSING_KEYS_MAX;

/// A key of a table that reads through.
pub type MissingKey = (Arc<Table>, Box<[u8]>);

/// What is missing.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    wanted: Cell<bool>,
    keys: RefCell<Vec<MissingKey>>,
}

impl Missing {
    /// Says whether the statement that begins is run again.
    pub(crate) fn want(&self, wanted: bool) {
        self.wanted.set(wanted);
        self.keys.borrow_mut().clear();
    }

    /// There is no row of this key.
    #[inline]
    pub(crate) fn note(&self, table: &Arc<Table>, key: &[u8]) {
        if table.reads_through() && self.wanted.get() {
            self.keep(table, key);
        }
    }

    #[cold]
    fn keep(&self, table: &Arc<Table>, key: &[u8]) {
        let mut keys = self.keys.borrow_mut();
        if keys.len() < MISSING_KEYS_MAX {
            keys.push((Arc::clone(table), key.into()));
        }
    }

    pub(crate) fn take(&self) -> Vec<MissingKey> {
        self.wanted.set(false);
        std::mem::take(&mut self.keys.borrow_mut())
    }
}
