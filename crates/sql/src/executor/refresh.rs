//! Refreshes of materialized views: the query runs as the view's owner, its rows wait aside, and one commit makes them
//! those of the view. Whatever fails leaves the rows that are there.

use std::sync::Arc;
use std::time::Duration;

use pgcatalog::system::SourceRows;
use store::Table;
use store::definition::MaterializedDef;
use store::value::ValueRef;

use super::{Done, Executor};
use crate::define::materialized;
use crate::done::RowSink;
use crate::error::{SqlError, state};
use crate::limits::{GIVEN_UP_MAX, REFRESH_LOOK, REFRESH_TIMEOUT};
use crate::session::Session;
use crate::write::ViewRows;

impl Executor {
    /// The second half of `CREATE MATERIALIZED VIEW` and of `REFRESH`: a view that was just made and cannot be filled
    /// goes again.
    pub(super) fn fill_view(
        &mut self,
        session: &mut Session,
        view: &str,
        created: bool,
    ) -> Result<Done, SqlError> {
        let result = self.refresh_view(session, view);
        if created && result.is_err() {
            self.core.store.drop_table(view)?;
        }
        let rows = result?;
        if let Some(block) = &mut session.block {
            block.refreshed(view);
        }
        Ok(if created {
            Done { affected: rows, ..Done::of_nobody("SELECT") }
        } else {
            Done::of_nobody("REFRESH MATERIALIZED VIEW")
        })
    }

    /// Makes the rows of a view those of its query. Returns how many there are.
    fn refresh_view(&mut self, session: &mut Session, view: &str) -> Result<u64, SqlError> {
        self.refresh()?;
        let catalog = Arc::clone(&self.core.catalog);
        materialized::of_name(&self.core, view)?;
        let Some(view) = catalog.table(view) else { return Ok(0) };
        let _alone = loop {
            match view.begin_refresh(REFRESH_LOOK) {
                Some(alone) => break alone,
                None => self.core.sight.check_watch()?,
            }
        };
        let store = Arc::clone(&self.core.store);
        let began = store.clock().precise_ns();
        let mut refresh = store.begin_refresh(view);
        let result = self.replace_rows(session, view, &mut refresh.changed);
        refresh.ns = store.clock().precise_ns().saturating_sub(began);
        refresh.error = result.as_ref().err().map(|error| error.message.clone());
        store.note_refresh(view, refresh);
        result
    }

    /// Gives a view the rows of its query; again where it was redefined meanwhile, as by `CREATE INDEX`.
    fn replace_rows(
        &mut self,
        session: &Session,
        view: &Arc<Table>,
        changed: &mut u64,
    ) -> Result<u64, SqlError> {
        let mut view = Arc::clone(view);
        let mut tries = 0;
        loop {
            let rows = self.rows_of(session, &view)?;
            let count = rows.count();
            match rows.apply() {
                Err(error) if error.state == state::LOST && tries < GIVEN_UP_MAX => tries += 1,
                applied => {
                    *changed = applied?;
                    self.core.store.set_populated(view.name(), true)?;
                    return Ok(count);
                }
            }
            self.refresh()?;
            let now = self.core.catalog.current(&view).cloned();
            view = now.ok_or_else(|| SqlError::unknown_table(view.name()))?;
        }
    }

    /// The rows that a view's query gives to the view's owner.
    fn rows_of(&mut self, session: &Session, view: &Arc<Table>) -> Result<ViewRows, SqlError> {
        let Some(query) = &view.def().materialized else { return Err(SqlError::unknown_table(view.name())) };
        if let Some(source) = view.def().source_of_view() {
            return self.rows_of_source(source, view, query);
        }
        let mut own = Session::new();
        own.set_identity(self.owner_of(view)?);
        self.choose_executor(&own);
        self.meet(&own);
        let mut given_up = 0;
        let result = loop {
            let mut rows = ViewRows::new(&self.core.store, &self.core.catalog, view);
            let prepared = self.prepare_view(&query.sql);
            let run = |mut prepared| self.core.run_prepared(&mut own, &mut prepared, &[], &mut rows);
            match prepared.and_then(run) {
                Ok(_) => break Ok(rows),
                Err(error) if error.state == state::SNAPSHOT_TOO_OLD && given_up < GIVEN_UP_MAX => {
                    given_up += 1;
                    self.core.system.restart();
                }
                Err(error) => break Err(self.core.sight.take_failure().unwrap_or(error)),
            }
        };
        self.choose_executor(session);
        self.meet(session);
        result
    }

    /// The rows that a source gives for a view's query.
    fn rows_of_source(
        &self,
        source: &str,
        view: &Arc<Table>,
        query: &MaterializedDef,
    ) -> Result<ViewRows, SqlError> {
        let core = &self.core;
        let server = core.catalog.server(source).ok_or_else(|| {
            SqlError::new(state::UNKNOWN_OBJECT, format!("server \"{source}\" does not exist"))
        })?;
        let timeout = view.def().options.refresh_timeout_ms.map_or(REFRESH_TIMEOUT, Duration::from_millis);
        let rows = ViewRows::new(&core.store, &core.catalog, view);
        let mut rows = FromSource { rows, look: || core.sight.check_watch() };
        core.system.server().run_query(server, query, timeout, &mut rows)?;
        Ok(rows.rows)
    }
}

/// Takes the rows of a source, as long as the statement is to go on.
struct FromSource<L> {
    rows: ViewRows,
    look: L,
}

impl<L: FnMut() -> Result<(), SqlError>> SourceRows for FromSource<L> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.rows.row(values)
    }

    fn look(&mut self) -> Result<(), SqlError> {
        (self.look)()
    }
}
