//! The cleaner: the store's housekeeping, a bounded piece each tick.

use std::sync::Arc;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use engine::Engine;

use crate::limits::CLEAN_INTERVAL;

/// Lets the store work each tick until the other end of `stop` is dropped.
pub(crate) fn run(engine: &Arc<Engine>, stop: &Receiver<()>) {
    while stop.recv_timeout(CLEAN_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        engine.tick();
    }
}
