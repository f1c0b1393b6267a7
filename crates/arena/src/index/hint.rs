//! What is known of the hits on a row: a word of advice beside each index slot, in the owner's own memory.
//!
//! ```text
//!   15                       3  2        1        0
//!  | period of the last hit   | fetched | count of hits |
//! ```
//!
//! A hit on a hot row finds the word as it would leave it, and writes nothing. The words start again with the process.

use crate::limits::FREQUENCY_MAX;

/// The version that the slot holds was fetched.
const FETCHED: u16 = 4;
/// Bits below the period.
const PERIOD_SHIFT: u32 = 3;
/// Ticks of a period as a power of two: 64 s, about what memcached distinguishes. A shorter one would make every hot
/// row cost a write more often.
const PERIOD_TICKS_SHIFT: u32 = 10;
/// Periods that are told apart: six days, after which they are counted from the beginning again.
const PERIODS: u32 = 1 << (16 - PERIOD_SHIFT);

/// What the hint of a row says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// This version was fetched, as far as this process knows.
    pub fetched: bool,
    /// Ticks since the last hit: at most a period (64 s) too few, and counted modulo 6 days. 0 if it was not fetched.
    pub ticks_ago: u32,
}

impl Hits {
    #[inline]
    pub(crate) fn of(hint: u16, now: u32) -> Self {
        let fetched = hint & FETCHED != 0;
        let last = u32::from(hint >> PERIOD_SHIFT);
        let periods = (now >> PERIOD_TICKS_SHIFT).wrapping_sub(last) % PERIODS;
        Self { fetched, ticks_ago: if fetched { periods << PERIOD_TICKS_SHIFT } else { 0 } }
    }
}

/// The period of a tick, in its place in the word.
#[inline]
fn period(now: u32) -> u16 {
    ((now >> PERIOD_TICKS_SHIFT) << PERIOD_SHIFT) as u16
}

/// Whether a hit at `now` would change nothing.
#[inline]
pub(crate) fn is_saturated(hint: u16, now: u32) -> bool {
    hint == period(now) | FETCHED | FREQUENCY_MAX
}

/// The word after a hit.
#[inline]
pub(crate) fn after_hit(hint: u16, now: u32) -> u16 {
    period(now) | FETCHED | ((hint & FREQUENCY_MAX) + 1).min(FREQUENCY_MAX)
}

/// The word when another version takes the slot.
#[inline]
pub(crate) fn of_new_version(hint: u16) -> u16 {
    hint & FREQUENCY_MAX
}

#[inline]
pub(crate) fn frequency(hint: u16) -> u8 {
    (hint & FREQUENCY_MAX) as u8
}

#[inline]
pub(crate) fn with_frequency(hint: u16, frequency: u8) -> u16 {
    (hint & !FREQUENCY_MAX) | u16::from(frequency).min(FREQUENCY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_saturate_and_keep_their_time() {
        let mut hint = 0;
        let now = 5_000_000;
        assert_eq!(Hits::of(hint, now), Hits { fetched: false, ticks_ago: 0 });
        for hits in 1..=9_u8 {
            hint = after_hit(hint, now);
            assert_eq!(frequency(hint), hits.min(3));
            assert_eq!(is_saturated(hint, now), hits >= 3);
        }
        assert_eq!(Hits::of(hint, now), Hits { fetched: true, ticks_ago: 0 });
        let later = now + (7 << PERIOD_TICKS_SHIFT);
        assert_eq!(Hits::of(hint, later), Hits { fetched: true, ticks_ago: 7 << PERIOD_TICKS_SHIFT });
        assert!(!is_saturated(hint, later));
        assert_eq!(frequency(of_new_version(hint)), 3);
        assert!(!Hits::of(of_new_version(hint), later).fetched);
        assert!(Hits::of(with_frequency(hint, 1), later).fetched);
        assert_eq!(frequency(with_frequency(hint, 9)), 3);
    }
}
