//! Materialized views: what a refresh needs of the store beside the query.

use std::sync::Arc;

use crate::error::{DdlError, ddl};
use crate::limits::VIEWS_PER_CENT;
use crate::store::Store;
use crate::table::Table;
use crate::table::catalog::found;
use crate::table::refresh::Refresh;

impl Store {
    /// Begins a refresh: its query is to begin after this. What is written to its tables from here on, and what the
    /// query does not see, has the view refreshed again.
    pub fn begin_refresh(&self, view: &Table) -> Refresh {
        let refresh = self.new_refresh(view);
        if view.def().is_view_of_ours() && view.def().options.refresh_on.is_some() {
            // Who was counted already may not be seen yet: commits until they end, others while they have a shard.
            drop(self.committing.write());
            for shard in &self.shards {
                drop(shard.lock());
            }
        }
        refresh
    }

    /// Says whether a view was filled, and may be read.
    pub fn set_populated(&self, view: &str, populated: bool) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let table = found(&catalog, view)?;
        let mut def = table.def().clone();
        match &mut def.materialized {
            None => return Err(ddl("42809", format!("\"{view}\" is not a materialized view"))),
            Some(own) if own.populated == populated => return Ok(()),
            Some(own) => own.populated = populated,
        }
        let changed = Table::new(def, table.indexes().to_vec(), Arc::clone(&table.state));
        self.replace(&catalog, changed).map(drop)
    }

    /// Most bytes that the rows of a view may take: they are not evicted, so there is a bound for all views together,
    /// and the view may have one of its own.
    pub fn view_bytes_max(&self, view: &Table) -> u64 {
        let catalog = self.catalog();
        let others =
            catalog.tables().filter(|other| other.def().materialized.is_some() && !other.is_same(view));
        let taken: u64 = others.map(|other| other.stats().bytes).sum();
        let limit = self.memory_bytes().saturating_mul(VIEWS_PER_CENT) / 100;
        let own = view.def().options.max_memory.unwrap_or(u64::MAX);
        limit.saturating_sub(taken).min(own)
    }
}

impl Table {
    /// The handle by which a refresh writes a view.
    #[must_use]
    pub fn of_refresh(&self) -> Arc<Self> {
        let own = Self::new(self.def().clone(), self.indexes().to_vec(), Arc::clone(&self.state));
        Arc::new(own.written_by_refresh())
    }
}
