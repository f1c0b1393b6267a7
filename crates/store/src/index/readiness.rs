//! Whether an index knows every row: after a start it is filled while others work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// How long the first plan that could use an index waits for it: the indexes of a small cache are there by then. Later
/// plans do without it until it is ready.
const PLAN_PATIENCE: Duration = Duration::from_millis(100);

/// Whether an index knows every row.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    /// Release when it does, Acquire by who looks.
    ready: AtomicBool,
    /// Somebody has waited in vain: nobody else does.
    long: AtomicBool,
    lock: Mutex<()>,
    signal: Condvar,
}

impl Readiness {
    /// An index that is filled before anybody can see it.
    pub(crate) fn ready() -> Self {
        Self { ready: AtomicBool::new(true), ..Self::default() }
    }

    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// As `is_ready`, after a little patience.
    pub(crate) fn is_soon(&self) -> bool {
        if self.is_ready() || self.long.load(Ordering::Relaxed) {
            return self.is_ready();
        }
        let mut guard = self.lock.lock();
        let waited = self.signal.wait_while_for(&mut guard, |()| !self.is_ready(), PLAN_PATIENCE);
        self.long.store(waited.timed_out(), Ordering::Relaxed);
        self.is_ready()
    }

    pub(crate) fn set(&self) {
        let _guard = self.lock.lock();
        self.ready.store(true, Ordering::Release);
        self.signal.notify_all();
    }
}
