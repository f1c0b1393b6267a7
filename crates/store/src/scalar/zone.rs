//! The time zone of whoever's statement a thread runs: moments that are written without an offset are of this zone.
//!
//! It is the thread's, because texts become moments in many places, and all of them mean the same. A thread that sets
//! none has UTC: memcached's workers do, and whatever computes the expressions of a definition.

use std::cell::Cell;
use std::fmt;

/// How far a zone is from UTC, by moment. Who implements it knows the names.
pub trait Offsets: Sync {
    /// Seconds east of Greenwich at a moment, given in microseconds since 1970.
    fn at(&self, us: i64) -> i64;
    /// The same at a moment of the zone's own calendar and clock.
    fn at_local(&self, local_us: i64) -> i64;
    /// What people there call the offset of a moment.
    fn abbreviation(&self, us: i64) -> String;
}

/// A zone that lives as long as the process.
#[derive(Clone, Copy)]
pub struct Zone(&'static dyn Offsets);

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Zone")
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self.0, other.0)
    }
}

impl Eq for Zone {}

impl Zone {
    /// A zone of these offsets.
    pub fn new(offsets: &'static dyn Offsets) -> Self {
        Self(offsets)
    }

    /// Microseconds to add to a moment of UTC for the zone's own clock.
    pub fn ahead(self, us: i64) -> i64 {
        self.0.at(us) * 1_000_000
    }

    /// The moment of UTC at which the zone's clock shows this.
    pub fn to_utc(self, local_us: i64) -> i64 {
        local_us - self.0.at_local(local_us) * 1_000_000
    }

    /// What people there call the offset of a moment.
    pub fn abbreviation(self, us: i64) -> String {
        self.0.abbreviation(us)
    }
}

thread_local! {
    static CURRENT: Cell<Option<Zone>> = const { Cell::new(None) };
}

/// The zone of the statement that the thread runs; none is UTC.
#[inline]
pub fn current() -> Option<Zone> {
    CURRENT.get()
}

/// Changes it; returns the one before.
pub fn set_current(zone: Option<Zone>) -> Option<Zone> {
    CURRENT.replace(zone)
}

/// Runs `body` in a zone.
pub fn within<T>(zone: Option<Zone>, body: impl FnOnce() -> T) -> T {
    struct Restore(Option<Zone>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _restore = Restore(CURRENT.replace(zone));
    body()
}

/// The moment of UTC of one that has no offset: of the current zone.
pub(super) fn utc_of_local(local_us: i64) -> i64 {
    current().map_or(local_us, |zone| zone.to_utc(local_us))
}
