//! Segments that cannot be walked: where their rows begin is kept in private memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::layout::SegmentId;

/// The rows of segments that cannot be walked: the words, from the start of the segment, at which they begin.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// How many there are, so that nobody takes the lock for nothing.
    count: AtomicUsize,
    rows: Mutex<HashMap<SegmentId, Arc<[u32]>>>,
}

impl Listed {
    pub(crate) fn of(&self, segment: SegmentId) -> Option<Arc<[u32]>> {
        // Acquire: pairs with the Release in `keep`, before which the segment is in nobody's list.
        (self.count.load(Ordering::Acquire) > 0).then(|| self.rows.lock().get(&segment).cloned()).flatten()
    }

    pub(crate) fn keep(&self, segment: SegmentId, rows: Vec<u32>) {
        self.rows.lock().insert(segment, rows.into());
        self.count.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn forget(&self, segment: SegmentId) {
        if self.count.load(Ordering::Acquire) > 0 && self.rows.lock().remove(&segment).is_some() {
            self.count.fetch_sub(1, Ordering::Release);
        }
    }
}
