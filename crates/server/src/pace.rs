//! Whether a peer keeps a pace.

use std::time::Duration;

use engine::{TICK_NS, TICKS_PER_SECOND, Tick, ticks_between};

use crate::limits::{SLOW_BYTES_PER_SECOND, SLOW_GRACE};

/// How many bytes moved since when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// 0: nothing is waited for.
    pub(crate) since: Tick,
    pub(crate) bytes: u64,
}

impl Pace {
    pub(crate) fn is_too_slow(self, now: Tick) -> bool {
        let grace = SLOW_GRACE.as_secs() * TICKS_PER_SECOND;
        let earned = self.bytes * TICKS_PER_SECOND / SLOW_BYTES_PER_SECOND;
        self.since != 0 && ticks_between(self.since, now) > grace + earned
    }
}

/// A time in the store's ticks.
pub(crate) fn ticks(duration: Duration) -> u64 {
    duration.as_secs() * TICKS_PER_SECOND + u64::from(duration.subsec_nanos()) / TICK_NS
}

/// The ticks of a wait that is at least so many milliseconds long, in whichever part of a tick it begins.
pub(crate) fn wait_ticks(milliseconds: u64) -> u64 {
    (milliseconds * 1_000_000).div_ceil(TICK_NS) + 1
}

/// The store's ticks in milliseconds.
pub(crate) fn milliseconds(tick: Tick) -> u64 {
    u64::from(tick) * TICK_NS / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wait_is_shorter_than_asked() {
        for ms in [0, 1, 100, 800, 5_000] {
            // From the last moment of a tick to the first of another.
            let least_ns = (wait_ticks(ms) - 1) * TICK_NS;
            assert!((ms * 1_000_000..ms * 1_000_000 + TICK_NS).contains(&least_ns), "{ms}");
        }
    }

    #[test]
    fn a_peer_must_keep_a_pace() {
        let pace = Pace { since: 16, bytes: 10 * SLOW_BYTES_PER_SECOND };
        assert!(!pace.is_too_slow(16 + 40 * 16));
        assert!(pace.is_too_slow(17 + 40 * 16));
        assert!(!Pace { since: 0, bytes: 0 }.is_too_slow(Tick::MAX));
    }
}
