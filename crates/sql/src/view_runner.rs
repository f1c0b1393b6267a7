//! Refreshes materialized views when their time has come or a table has changed.

use std::sync::Arc;
use std::time::Duration;

use pgcatalog::system::Server;
use sqltext::token::quoted_name;
use store::{Store, Table};

use crate::done::Nobody;
use crate::error::SqlError;
use crate::executor::Executor;
use crate::limits::{Limits, REFRESH_TIMEOUT};
use crate::session::Session;
use crate::table::Cancel;

/// Refreshes views, on a thread that has nothing else to do.
#[derive(Debug)]
pub struct ViewRunner {
    store: Arc<Store>,
    executor: Executor,
    session: Session,
}

/// A view that began to fail, or works again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewNews {
    /// The view.
    pub view: String,
    /// Why it fails; none: it works again.
    pub error: Option<String>,
}

impl ViewRunner {
    /// A runner on this thread.
    pub fn new(store: Arc<Store>) -> Result<Self, SqlError> {
        let executor = Executor::new(Arc::clone(&store), Limits::default())?;
        Ok(Self { store, executor, session: Session::new() })
    }

    /// Lets it know roles: a view has the privileges of its owner.
    pub fn set_server(&mut self, server: Arc<dyn Server>) {
        self.executor.set_server(server);
    }

    /// Refreshes every view whose time has come, one after the other. Returns what is new of each.
    pub fn run_due(&mut self, stop: &Cancel) -> Vec<ViewNews> {
        let due = self.store.due_views();
        due.iter().take_while(|_| !stop.is_canceled()).filter_map(|view| self.refresh(view, stop)).collect()
    }

    fn refresh(&mut self, view: &Arc<Table>, stop: &Cancel) -> Option<ViewNews> {
        let def = view.def();
        let timeout = def.options.refresh_timeout_ms.map_or(REFRESH_TIMEOUT, Duration::from_millis);
        self.executor.set_limits(Limits { statement_timeout: Some(timeout), ..Limits::default() });
        let failed = view.refresh_figures().is_some_and(|figures| figures.last_error.is_some());
        let schema = def.namespace.as_deref().unwrap_or("public");
        let name = format!("{}.{}", quoted_name(schema), quoted_name(def.own_name()));
        let sql = format!("REFRESH MATERIALIZED VIEW {name}");
        let result = self.executor.execute(&mut self.session, &sql, &[], stop, &mut Nobody);
        // One that goes meanwhile is no news.
        self.store.catalog().current(view)?;
        let error = result.err().map(|error| error.message);
        (failed != error.is_some()).then(|| ViewNews { view: view.name().to_owned(), error })
    }
}
