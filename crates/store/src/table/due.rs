//! When something comes due, so that who tidies up looks only where there is something to find.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::clock::{NEVER, Tick};

/// Look at the next opportunity.
pub(crate) const AT_ONCE: Tick = 0;

/// A moment before which nothing comes due, as far as is known.
///
/// Who looks forgets the moment first and says afterwards what he found. Who changes something so that it comes due
/// earlier says so afterwards. Both exchange the word: one of them sees what the other did, and no word is lost.
#[derive(Debug)]
pub(crate) struct Due(AtomicU32);

impl Default for Due {
    fn default() -> Self {
        Self(AtomicU32::new(AT_ONCE))
    }
}

impl Due {
    /// Whether there may be something to do.
    #[inline]
    pub(crate) fn has_come(&self, now: Tick) -> bool {
        // Acquire: pairs with the Release of `expect`.
        self.0.load(Ordering::Acquire) <= now
    }

    /// Somebody begins to look, and says with [`Due::expect`] what is left.
    pub(crate) fn begin_look(&self) {
        // Acquire: pairs with the Release of `expect`; what led to an earlier word is seen by this look.
        self.0.swap(NEVER, Ordering::AcqRel);
    }

    /// Something may come due at this moment.
    pub(crate) fn expect(&self, moment: Tick) {
        // Release: pairs with the Acquire of `begin_look`.
        self.0.fetch_min(moment, Ordering::AcqRel);
    }

    /// The moment.
    pub(crate) fn moment(&self) -> Tick {
        // Acquire: pairs with the Release of `expect`.
        self.0.load(Ordering::Acquire)
    }
}
