//! Tables that were dropped, whose numbers rest.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::table::Table;

/// The tables that were dropped. Taken for a moment, with no other lock taken behind it.
#[derive(Debug, Default)]
pub(crate) struct Dropped(pub(crate) Mutex<Resting>);

#[derive(Debug, Default)]
pub(crate) struct Resting {
    /// Those that somebody may have, or that still have segments: the longest dropped first.
    pub(crate) tables: VecDeque<Arc<Table>>,
    /// The number given out last, of private tables and of shared ones.
    pub(crate) last: [u16; 2],
}

impl Resting {
    /// Forgets the tables that nobody has and that are empty.
    pub(crate) fn forget(&mut self) {
        self.tables.retain_mut(|table| has_segments(table) || !is_alone(table));
    }
}

/// Whether this is the only handle of the table under any of its definitions.
fn is_alone(table: &mut Arc<Table>) -> bool {
    Arc::get_mut(table).is_some_and(|table| Arc::get_mut(&mut table.state).is_some())
}

pub(crate) fn has_segments(table: &Table) -> bool {
    table.state.counters.segment_bytes() > 0
}
