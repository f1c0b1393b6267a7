//! The thread of the materialized views: it refreshes those that are due, and rests in between.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use engine::{Cancel, Engine, ViewRunner};

use crate::limits::{CLEAN_INTERVAL, IDLE_INTERVAL};

/// Looks for due views each tick until the other end of `stop` is dropped; `cancel` stops the refresh that runs.
pub(crate) fn run(engine: &Arc<Engine>, stop: &Receiver<()>, cancel: &Cancel) {
    let (mut runner, mut rest) = (None, IDLE_INTERVAL);
    while stop.recv_timeout(rest) == Err(RecvTimeoutError::Timeout) {
        rest = if engine.has_views() { CLEAN_INTERVAL } else { IDLE_INTERVAL };
        if engine.has_due_views() {
            runner = run_due(engine, runner, cancel);
        }
    }
}

/// Refreshes the views that are due, with a runner that is made for the first. One that panicked is not used again.
fn run_due(engine: &Arc<Engine>, runner: Option<ViewRunner>, cancel: &Cancel) -> Option<ViewRunner> {
    let mut runner = match runner.map_or_else(|| engine.view_runner(), Ok) {
        Ok(runner) => runner,
        Err(error) => {
            tracing::error!(%error, "materialized views cannot be refreshed");
            return None;
        }
    };
    let Ok(news) = catch_unwind(AssertUnwindSafe(|| runner.run_due(cancel))) else {
        tracing::error!("a refresh of a materialized view panicked; it will be tried again");
        return None;
    };
    // A server that stops has stopped the refresh.
    for news in news.into_iter().filter(|_| !cancel.is_canceled()) {
        let view = news.view;
        if let Some(error) = news.error {
            tracing::warn!(view, error, "a materialized view keeps its rows: its refresh failed");
        } else {
            tracing::info!(view, "a materialized view is refreshed again");
        }
    }
    Some(runner)
}
