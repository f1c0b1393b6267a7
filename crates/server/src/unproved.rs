//! Connections of peers that have proved nothing: they get a part of all places, so that nobody who may come in is kept
//! out by those who may not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::limits::{UNPROVED_MIN, UNPROVED_SHARE};
use crate::shared::Shared;

/// One of them. Given back when it is dropped: the peer has proved its role, or is gone.
#[derive(Debug)]
pub(crate) struct Unproved(Arc<Shared>);

impl Unproved {
    /// A place for one more, if there is one.
    pub(crate) fn admit(shared: &Arc<Shared>) -> Option<Self> {
        let places = shared.engine.connections_max.load(Ordering::Relaxed) / UNPROVED_SHARE;
        // Relaxed throughout: a count, which two acceptors may overstep by one.
        if shared.unproved.load(Ordering::Relaxed) >= places.max(UNPROVED_MIN) {
            return None;
        }
        shared.unproved.fetch_add(1, Ordering::Relaxed);
        Some(Self(Arc::clone(shared)))
    }
}

impl Drop for Unproved {
    fn drop(&mut self) {
        self.0.unproved.fetch_sub(1, Ordering::Relaxed);
    }
}
