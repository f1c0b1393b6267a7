//! A clock of the system's that can be stopped and moved forward while it runs: for whoever tests an application's
//! expiry, or ours, on a real daemon. Builds for use do not have it.

use std::time::Duration;

use parking_lot::Mutex;
use rustix::time::ClockId;

use super::nanoseconds;

/// The hands. It goes as the system's clocks do until it is touched.
#[derive(Debug, Default)]
pub struct DebugClock(Mutex<Hands>);

#[derive(Clone, Copy, Debug, Default)]
struct Hands {
    /// How far it is ahead of the system's; behind it after a pause.
    ahead_ns: i64,
    /// The moment, by its own count, at which it was stopped.
    stopped_ns: Option<u64>,
}

impl Hands {
    fn now_ns(self, system_ns: u64) -> u64 {
        self.stopped_ns.unwrap_or_else(|| system_ns.saturating_add_signed(self.ahead_ns))
    }
}

impl DebugClock {
    /// Stops it.
    pub fn stop(&self) {
        let mut hands = self.0.lock();
        hands.stopped_ns = Some(hands.now_ns(nanoseconds(ClockId::MonotonicCoarse)));
    }

    /// Lets it go on from where it stands.
    pub fn go_on(&self) {
        let mut hands = self.0.lock();
        if let Some(stopped_ns) = hands.stopped_ns.take() {
            hands.ahead_ns = stopped_ns.wrapping_sub(nanoseconds(ClockId::MonotonicCoarse)).cast_signed();
        }
    }

    /// Moves it forward, also while it is stopped.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        let mut hands = self.0.lock();
        match &mut hands.stopped_ns {
            Some(stopped_ns) => *stopped_ns = stopped_ns.saturating_add_signed(by),
            None => hands.ahead_ns = hands.ahead_ns.saturating_add(by),
        }
    }

    pub(super) fn now_ns(&self, id: ClockId) -> u64 {
        self.0.lock().now_ns(nanoseconds(id))
    }

    /// The wall clock, which is as far from the system's as the other hand.
    pub(super) fn unix_ms(&self) -> u64 {
        let system_ns = nanoseconds(ClockId::MonotonicCoarse);
        let moved_ns = self.0.lock().now_ns(system_ns).wrapping_sub(system_ns).cast_signed();
        nanoseconds(ClockId::RealtimeCoarse).saturating_add_signed(moved_ns) / 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::{DebugClock, Duration, Hands};
    use rustix::time::ClockId;

    #[test]
    fn hands_stop_move_and_go_on() {
        let clock = DebugClock::default();
        let now = || clock.now_ns(ClockId::MonotonicCoarse);
        let wall = clock.unix_ms();
        clock.stop();
        let stood = now();
        assert_eq!(now(), stood);
        clock.advance(Duration::from_hours(1));
        assert_eq!(now(), stood + 3_600_000_000_000);
        assert!(clock.unix_ms() >= wall + 3_590_000);
        clock.go_on();
        assert!((stood + 3_600_000_000_000..stood + 4_600_000_000_000).contains(&now()));
        clock.advance(Duration::from_hours(1));
        assert!(now() >= stood + 7_200_000_000_000);
    }

    #[test]
    fn it_does_not_go_back() {
        let stopped = Hands { ahead_ns: 0, stopped_ns: Some(5) };
        assert_eq!((stopped.now_ns(4), stopped.now_ns(900)), (5, 5));
        assert_eq!(Hands { ahead_ns: -3, stopped_ns: None }.now_ns(2), 0);
    }
}
