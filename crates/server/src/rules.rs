//! The thread of the expiry rules: it runs those that are due, and rests in between.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use engine::{Cancel, Engine, RuleRunner};

use crate::limits::{CLEAN_INTERVAL, IDLE_INTERVAL};

/// Looks for due rules each tick until the other end of `stop` is dropped; `cancel` stops the one that runs.
pub(crate) fn run(engine: &Arc<Engine>, stop: &Receiver<()>, cancel: &Cancel) {
    let (mut runner, mut rest) = (None, IDLE_INTERVAL);
    while stop.recv_timeout(rest) == Err(RecvTimeoutError::Timeout) {
        rest = if engine.has_rules() { CLEAN_INTERVAL } else { IDLE_INTERVAL };
        if engine.has_rules_due() {
            runner = run_due(engine, runner, cancel);
        }
    }
}

/// Runs the rules that are due, with a runner that is made for the first. One that panicked is not used again.
fn run_due(engine: &Arc<Engine>, runner: Option<RuleRunner>, cancel: &Cancel) -> Option<RuleRunner> {
    let mut runner = match runner.map_or_else(|| engine.rule_runner(), Ok) {
        Ok(runner) => runner,
        Err(error) => {
            tracing::error!(%error, "expiry rules cannot be run");
            return None;
        }
    };
    if catch_unwind(AssertUnwindSafe(|| runner.run_due(cancel))).is_ok() {
        return Some(runner);
    }
    tracing::error!("an expiry rule panicked; it will be tried again");
    None
}
