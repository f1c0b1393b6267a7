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
    pub(crate) fn of(table: &Table) -> Self {
        // Relaxed: who compares two of them took every shard's lock in between.
        let written = table.state.counters.written.load(Ordering::Relaxed);
        Self { row_count: table.state.row_count.standing(), written }
    }
}
