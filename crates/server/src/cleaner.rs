//! The cleaner: the store's housekeeping, a bounded piece each tick.

use std::sync::Arc;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use engine::Engine;

use crate::limits::{CLEAN_INTERVAL, CLEANER_NICENESS};

/// Lets the store work each tick until the other end of `stop` is dropped.
pub(crate) fn run(engine: &Arc<Engine>, stop: &Receiver<()>) {
    // To Linux this is the calling thread alone. A system that refuses lets it compete as an equal.
    let _refused = rustix::process::setpriority_process(None, CLEANER_NICENESS);
    while stop.recv_timeout(CLEAN_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        engine.tick();
    }
}

/// Proves and indexes what an earlier process left, while everybody else works. Nobody waits for this thread at a stop:
/// the next start does what is left.
pub(crate) fn recover(engine: &Arc<Engine>) {
    let clock = engine.store().clock();
    let before = clock.now_ns();
    let recovered = engine.store().recover();
    let milliseconds = (clock.now_ns() - before) / 1_000_000;
    let (rows, dropped) = (recovered.rows, recovered.dropped);
    tracing::info!(
        "{rows} rows were checked and indexed in {milliseconds} ms; {dropped} torn rows were dropped"
    );
}
