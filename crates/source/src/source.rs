//! What all that works for one source knows of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{Engine, SourceState};
use forward::Hub;
use store::definition::ServerDef;

use crate::batch::{Batch, Keys};
use crate::gate::{Gate, Touched};
use crate::limits::{MAX_LAG, MAX_LAG_MIN};
use crate::plan::{Plan, Target};

/// What a source's thread works with.
pub(crate) struct Source {
    pub(crate) engine: Arc<Engine>,
    pub(crate) server: Arc<ServerDef>,
    pub(crate) state: Arc<SourceState>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) stop: Arc<AtomicBool>,
    /// Where answers of forwarded statements are kept.
    pub(crate) hub: Option<Arc<Hub>>,
}

impl Source {
    /// Whether it is to end.
    pub(crate) fn must_stop(&self) -> bool {
        // Relaxed: the flag carries no data.
        self.stop.load(Ordering::Relaxed)
    }

    /// How old what was not applied may be.
    pub(crate) fn max_lag(server: &ServerDef) -> Duration {
        let said =
            server.option("max_lag").and_then(|text| store::definition::parse_span(text).ok().flatten());
        said.map_or(MAX_LAG, Duration::from_millis).max(MAX_LAG_MIN)
    }

    /// Has the gate refuse what was fetched before these changes, which are applied next.
    pub(crate) fn tell_gate(&self, plan: &Plan, batch: &Batch, transactions: &[u64]) {
        let touched = plan.touched(batch);
        self.gate.meet(transactions.to_vec(), touched.clone());
        self.tell_hub(plan, batch, transactions);
        for (table, touched) in touched {
            match touched {
                Touched::All => self.state.fetches.forget_absent(table, None),
                Touched::Keys(keys) => {
                    for key in &keys {
                        self.state.fetches.forget_absent(table, Some(key));
                    }
                }
            }
        }
    }

    /// Has no answer be kept that was read before these changes.
    fn tell_hub(&self, plan: &Plan, batch: &Batch, transactions: &[u64]) {
        let Some(hub) = &self.hub else { return };
        for (number, keys) in batch.targets() {
            if plan.targets.get(*number).is_some_and(Target::has_answers) {
                let touched = match keys {
                    Keys::All => forward::Touched::All,
                    Keys::Each(keys) => forward::Touched::Tags(
                        keys.iter().filter_map(|(key, _)| key.first()).map(|tag| &**tag).collect(),
                    ),
                };
                hub.arrive(transactions, touched);
            }
        }
    }

    /// Says in the log and in `sqlcached_sources` what it does from now on.
    pub(crate) fn enter(&self, state: &'static str) {
        if self.state.enter(state) {
            tracing::info!(source = %self.server.name, "source is {state}");
        }
    }
}
