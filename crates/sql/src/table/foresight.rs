//! Rows that a join is about to look up by their keys, asked for ahead.
//!
//! SQLite looks up a row of the inner table for each row of the outer one, and each of these look-ups waits for memory
//! twice. What it looks up it has read from the outer row just before. So once a column was seen to lead to a table,
//! the keys in the rows that the outer cursor holds ready are asked for together. Nothing here has an effect but on
//! time.

use std::cell::{Cell, RefCell};
use std::iter;
use std::sync::Arc;

use store::definition::ColumnKind;
use store::{IndexScan, RowBuf, Store, Table};

use super::keys::{KEYS_AHEAD, KeyList, is_plain};

/// Leads of a statement at most: columns of outer tables by which inner ones are looked up.
const LEADS_MAX: usize = 4;

/// What the statement that runs was seen to look up.
#[derive(Debug, Default)]
pub(crate) struct Foresight {
    /// Cursors that were made.
    cursors: Cell<u64>,
    /// The cursor and the column that were read last.
    read: Cell<Option<(u64, usize)>>,
    /// Whether there are leads.
    leading: Cell<bool>,
    leads: RefCell<Vec<Lead>>,
}

/// A column whose values are looked up as keys of a table.
#[derive(Debug)]
struct Lead {
    cursor: u64,
    column: usize,
    table: Arc<Table>,
    kind: ColumnKind,
    /// Rows of the cursor whose keys were asked for already.
    left: usize,
    keys: KeyList,
}

impl Foresight {
    /// The number of a new cursor.
    pub(super) fn number(&self) -> u64 {
        self.cursors.set(self.cursors.get() + 1);
        self.cursors.get()
    }

    /// A cursor hands out a stored column of its row.
    #[inline]
    pub(super) fn note_read(&self, cursor: u64, column: usize) {
        self.read.set(Some((cursor, column)));
    }

    /// A row of a table is looked up by a key of one column: of what was read last.
    #[inline]
    pub(super) fn note_look_up(&self, table: &Arc<Table>, kind: ColumnKind) {
        let Some((cursor, column)) = self.read.take() else { return };
        let mut leads = self.leads.borrow_mut();
        let known =
            |lead: &Lead| (lead.cursor, lead.column) == (cursor, column) && Arc::ptr_eq(&lead.table, table);
        if leads.len() < LEADS_MAX && !leads.iter().any(known) {
            let (table, keys) = (Arc::clone(table), KeyList::default());
            leads.push(Lead { cursor, column, table, kind, left: 0, keys });
            self.leading.set(true);
        }
    }

    /// A cursor stands at a row of its table, and `scan` holds those that follow.
    #[inline]
    pub(super) fn look_ahead(
        &self,
        cursor: u64,
        (store, table): (&Store, &Table),
        row: &RowBuf,
        scan: &IndexScan,
    ) {
        if self.leading.get() {
            let mut leads = self.leads.borrow_mut();
            for lead in leads.iter_mut().filter(|lead| lead.cursor == cursor) {
                lead.follow(store, table, iter::once(row).chain(scan.ahead()));
            }
        }
    }

    /// The statement has ended.
    pub(super) fn forget(&self) {
        self.read.set(None);
        if self.leading.take() {
            self.leads.borrow_mut().clear();
        }
    }
}

impl Lead {
    /// Asks for the rows that the next of these lead to, when those that were asked for are through.
    fn follow<'r>(&mut self, store: &Store, table: &Table, rows: impl Iterator<Item = &'r RowBuf>) {
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        self.keys.clear();
        for row in rows.take(KEYS_AHEAD) {
            self.left += 1;
            let value = table.column(row, self.column);
            if is_plain(self.kind, value) {
                self.keys.encode(&self.table, &[value]);
            }
        }
        self.left -= 1;
        self.keys.prefetch(store, &self.table);
    }
}
