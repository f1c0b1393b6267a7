//! When the statement under way began: what `now()` is, in it and in the defaults of the rows that it writes.
//!
//! The connection that runs a statement and the one that computes the definitions of the rows are two, on one thread.
//! They ask here, so that all rows of a statement have one moment.

use std::cell::Cell;

use store::Clock;

/// What is known of the moment.
#[derive(Clone, Copy, Debug)]
enum Began {
    /// Nanoseconds of the store's clock: most statements never ask for more.
    Ns(u64),
    /// Microseconds since 1970.
    Us(u64),
}

thread_local! {
    /// Of the statement under way; none: there is none.
    static BEGAN: Cell<Option<Began>> = const { Cell::new(None) };
}

/// A statement begins at this time of the store's clock, in nanoseconds.
#[inline]
pub fn begin(now_ns: u64) {
    BEGAN.set(Some(Began::Ns(now_ns)));
}

/// A piece of a longer statement begins, which itself began so many microseconds after 1970.
pub fn resume(us: u64) {
    BEGAN.set(Some(Began::Us(us)));
}

/// The statement has ended: what the thread writes from here on is of none.
#[inline]
pub fn end() {
    BEGAN.set(None);
}

/// Microseconds since 1970 when the statement under way began; `None`: there is none.
pub fn statement_us(clock: &Clock) -> Option<u64> {
    let us = match BEGAN.get()? {
        Began::Us(us) => us,
        Began::Ns(ns) => clock.unix_us().saturating_sub(clock.now_ns().saturating_sub(ns) / 1_000),
    };
    BEGAN.set(Some(Began::Us(us)));
    Some(us)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use store::ManualClock;

    use super::*;

    #[test]
    fn a_statement_has_one_moment() {
        let hands = ManualClock::new(1_000);
        let clock = Clock::Manual(Arc::clone(&hands));
        assert_eq!(statement_us(&clock), None);
        begin(clock.now_ns());
        hands.advance(Duration::from_secs(5));
        assert_eq!(statement_us(&clock), Some(1_000_000_000), "it is asked late");
        hands.advance(Duration::from_secs(5));
        hands.set_wall_clock(-3_000);
        assert_eq!(statement_us(&clock), Some(1_000_000_000), "it stays what it was");
        resume(7);
        assert_eq!(statement_us(&clock), Some(7));
        end();
        assert_eq!(statement_us(&clock), None);
    }
}
