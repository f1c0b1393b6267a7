//! How many rows a statement sees, where that is known without a look at each.

use std::sync::Arc;

use crate::commit::whole::Counted;
use crate::table::Table;
use crate::table::standing::Standing;
use crate::view::View;

impl View<'_> {
    /// Where a table stands whose rows are going to be counted.
    pub fn standing(&self, table: &Table) -> Standing {
        Standing::of(table)
    }

    /// What was counted since. `None`: a commit of many rows was on its way, of which the count may know the half.
    pub fn counted(&self, standing: Standing, rows: u64) -> Option<Counted> {
        let quiet = !self.store.is_unsettled() && self.store.statements.is_quiet(&self.snapshot);
        quiet.then_some(Counted { rows, standing })
    }

    /// How many rows of a table the statement sees, where that is known exactly without a look at them.
    pub fn known_rows(&self, table: &Arc<Table>) -> Option<u64> {
        if self.own.is_some() || self.store.is_unsettled() || !self.store.statements.is_quiet(&self.snapshot)
        {
            return None;
        }
        // Who writes has the shard's lock until its account is right, so whatever anybody was told of is counted.
        for shard in &self.store.shards {
            drop(shard.lock());
        }
        let rows = table.state.row_count.exact(self.now(), self.store.dead_below(table, self.now()));
        rows.filter(|_| self.store.statements.is_quiet(&self.snapshot))
    }
}
