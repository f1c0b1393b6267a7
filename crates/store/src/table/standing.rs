//! Where a table stands: whether somebody wrote in between, two looks tell.

use std::sync::atomic::Ordering;

use crate::table::Table;

/// What changes with every write and removal of a row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    row_count: [u64; 3],
    written: u64,
}

impl Standing {
    /// So many times a table of a source was changed, or may have been.
    pub(crate) fn of_changes(count: u64) -> Self {
        Self { row_count: [0; 3], written: count }
    }

    pub(crate) fn of(table: &Table) -> Self {
        // Relaxed: who compares two of them took every shard's lock in between.
        let written = table.state.counters.written.load(Ordering::Relaxed);
        Self { row_count: table.state.row_count.standing(), written }
    }
}
