//! For tests: a store to begin with, and named points at which a command panics.
//!
//! A point is armed together with a key, so that tests that run side by side in one process do not meet.

use parking_lot::Mutex;
pub use store::{Clock, ManualClock, Store, StoreOptions};

static ARMED: Mutex<Vec<(&'static str, Vec<u8>)>> = Mutex::new(Vec::new());

/// The next command that passes `point` with this key panics, once.
pub fn arm(point: &'static str, key: &[u8]) {
    ARMED.lock().push((point, key.to_vec()));
}

/// Panics if armed.
pub(crate) fn pass(point: &'static str, key: &[u8]) {
    let mut armed = ARMED.lock();
    let found = armed.iter().position(|(name, armed_key)| *name == point && armed_key == key);
    if let Some(position) = found {
        armed.swap_remove(position);
        drop(armed);
        panic!("fault injected at {point}");
    }
}
