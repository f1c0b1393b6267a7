//! Time comes from one place, so that a test can hold it.

#[cfg(debug_assertions)]
mod debug;
mod moment;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[cfg(debug_assertions)]
pub use debug::DebugClock;
pub use moment::{TICK_NS, TICKS_PER_SECOND, Tick, ticks_between};
pub(crate) use moment::{age_at, moment_after, moment_at, moment_before, moment_so_old};

/// What the coarse clock may lag behind: one interrupt of the timer, on the slowest kernels (100 a second).
const COARSE_LAG_NS: u64 = 10_000_000;

/// Where the time comes from.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The coarse monotonic clock of the kernel (4 ms resolution, no system call) and the wall clock.
    System,
    /// A clock that stands still until a test moves it.
    Manual(Arc<ManualClock>),
    /// The system's, until somebody moves it. Not in builds for use.
    #[cfg(debug_assertions)]
    Debug(Arc<DebugClock>),
}

/// The hands of a clock that a test moves.
#[derive(Debug)]
pub struct ManualClock {
    ns: AtomicU64,
    /// The wall clock's time in milliseconds when the other hand stood at zero.
    unix_ms_at_zero: AtomicU64,
}

impl ManualClock {
    /// A clock at monotonic time zero and the given wall-clock time in Unix seconds.
    pub fn new(unix_seconds: u64) -> Arc<Self> {
        Arc::new(Self { ns: AtomicU64::new(0), unix_ms_at_zero: AtomicU64::new(unix_seconds * 1_000) })
    }

    /// Moves both hands forward.
    pub fn advance(&self, by: Duration) {
        let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: the test that moves the clock orders its own steps.
        self.ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Sets the wall clock forward or back, as an operator or a time service does: the other hand does not notice.
    pub fn set_wall_clock(&self, by_seconds: i64) {
        // Relaxed: as above. Two's complement: adding a negative number takes away.
        self.unix_ms_at_zero.fetch_add((by_seconds * 1_000).cast_unsigned(), Ordering::Relaxed);
    }

    fn unix_ms(&self) -> u64 {
        self.unix_us() / 1_000
    }

    fn unix_us(&self) -> u64 {
        // Relaxed: as above.
        self.unix_ms_at_zero.load(Ordering::Relaxed) * 1_000 + self.ns.load(Ordering::Relaxed) / 1_000
    }
}

impl Clock {
    /// The clock of a daemon: the system's, which this build for tests can move.
    #[cfg(debug_assertions)]
    pub fn of_process() -> Self {
        Self::Debug(Arc::default())
    }

    /// The clock of a daemon: the system's.
    #[cfg(not(debug_assertions))]
    pub fn of_process() -> Self {
        Self::System
    }

    /// Monotonic nanoseconds since an arbitrary point of this boot.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match self {
            Self::System => nanoseconds(ClockId::MonotonicCoarse),
            // Relaxed: see `ManualClock::advance`.
            Self::Manual(clock) => clock.ns.load(Ordering::Relaxed),
            #[cfg(debug_assertions)]
            Self::Debug(clock) => clock.now_ns(ClockId::MonotonicCoarse),
        }
    }

    /// How far [`Clock::now_ns`] may lag behind: who promises at least a time from now adds it.
    #[inline]
    pub fn lag_ns(&self) -> u64 {
        match self {
            Self::Manual(_) => 0,
            _ => COARSE_LAG_NS,
        }
    }

    /// Monotonic nanoseconds as exactly as the machine has them, for measuring: five times the price of
    /// [`Clock::now_ns`].
    #[inline]
    pub fn precise_ns(&self) -> u64 {
        match self {
            Self::System => nanoseconds(ClockId::Monotonic),
            Self::Manual(_) => self.now_ns(),
            #[cfg(debug_assertions)]
            Self::Debug(clock) => clock.now_ns(ClockId::Monotonic),
        }
    }

    /// Wall-clock time in Unix seconds, for absolute expiry times.
    pub fn unix_seconds(&self) -> u64 {
        self.unix_ms() / 1_000
    }

    /// Wall-clock time in milliseconds since 1970.
    pub fn unix_ms(&self) -> u64 {
        match self {
            Self::System => nanoseconds(ClockId::RealtimeCoarse) / 1_000_000,
            Self::Manual(clock) => clock.unix_ms(),
            #[cfg(debug_assertions)]
            Self::Debug(clock) => clock.unix_ms(),
        }
    }

    /// The same in microseconds, as exactly as the machine has it: two statements of one millisecond have an order.
    pub fn unix_us(&self) -> u64 {
        match self {
            Self::System => nanoseconds(ClockId::Realtime) / 1_000,
            Self::Manual(clock) => clock.unix_us(),
            #[cfg(debug_assertions)]
            Self::Debug(clock) => clock.unix_ms() * 1_000,
        }
    }
}

#[inline]
fn nanoseconds(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanoseconds
}

/// The expiry word of a row that never expires although its table has a `ttl`.
pub(crate) const NEVER: Tick = Tick::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_clock_moves_both_hands() {
        let hands = ManualClock::new(1_000);
        let clock = Clock::Manual(Arc::clone(&hands));
        hands.advance(Duration::from_millis(2_500));
        assert_eq!(clock.now_ns(), 2_500_000_000);
        assert_eq!(clock.unix_seconds(), 1_002);
        hands.advance(Duration::from_micros(7));
        assert_eq!(clock.unix_us(), 1_002_500_007);
    }

    #[test]
    fn system_clock_does_not_go_back() {
        let before = Clock::System.now_ns();
        assert!(Clock::System.now_ns() >= before);
        assert!(Clock::System.unix_seconds() > 1_700_000_000);
    }
}
