//! Materialized views: which are to be refreshed, and a note of each refresh.

use std::sync::Arc;

use crate::clock::Tick;
use crate::schema::Schema;
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::refresh::Refresh;
use crate::table::standing::Standing;

impl Schema {
    /// Whether there are views to be refreshed.
    pub fn has_due_views(&self) -> bool {
        !self.due_views().is_empty()
    }

    /// The views that are to be refreshed now, but for those that somebody refreshes.
    pub fn due_views(&self) -> Vec<Arc<Table>> {
        let (now, catalog) = (self.now(), self.catalog());
        let is_due = |view: &&Arc<Table>| {
            !view.is_refreshed_now() && view.is_refresh_due(now, &standings(&catalog, view))
        };
        catalog.materialized_views().filter(is_due).cloned().collect()
    }

    /// Takes note of a refresh, from whose end the time to the next counts.
    pub fn note_refresh(&self, view: &Table, refresh: Refresh) {
        view.note_refresh(refresh, self.now());
    }

    /// A note of a refresh that begins now.
    pub(crate) fn new_refresh(&self, view: &Table) -> Refresh {
        Refresh {
            began: self.now(),
            began_ms: i64::try_from(self.clock.unix_ms()).unwrap_or(i64::MAX),
            seen: standings(&self.catalog(), view),
            ..Refresh::default()
        }
    }

    /// The tick of now.
    pub fn tick(&self) -> Tick {
        self.now()
    }
}

/// Where the tables stand that have a view refreshed; one that is not there stands nowhere.
fn standings(catalog: &Catalog, view: &Table) -> Vec<Option<Standing>> {
    if view.def().source_of_view().is_some() {
        return vec![Some(view.source_standing())];
    }
    view.def()
        .options
        .refresh_tables()
        .map(|name| catalog.table(name).map(|table| Standing::of(table)))
        .collect()
}
