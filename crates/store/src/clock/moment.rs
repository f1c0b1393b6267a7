//! How 32 bits name the moments of 72 years.
//!
//! For 4.25 years after the arena's epoch a moment is the number of its tick. From there on numbers count whole
//! seconds. A later moment never has a smaller number, so who asks only which of two comes first compares numbers, as
//! readers in other processes do. How far apart two moments are is asked here.

use crate::clock::NEVER;

/// A moment since the arena's epoch: the number of its tick, from 1 on, and from 2^31 on that of its second. 0 stands
/// for "never".
pub type Tick = u32;

/// Nanoseconds of one tick, the resolution of every deadline: 1/16 s.
pub const TICK_NS: u64 = 1_000_000_000 / TICKS_PER_SECOND;
/// Ticks in a second.
pub const TICKS_PER_SECOND: u64 = 16;

/// The first number that counts a second: half of all numbers, so that deadlines are exact to a tick for the first 4.25
/// years of an arena, and are told apart for 68 more.
const SECONDS_FROM: u64 = 1 << 31;

/// The last moment; the number after it is [`NEVER`].
const LAST: Tick = NEVER - 1;

/// The moment so many nanoseconds after the epoch, rounded down.
#[inline]
pub(crate) fn moment_at(elapsed_ns: u64) -> Tick {
    moment_of(elapsed_ns / TICK_NS + 1)
}

/// The moment in which the tick of this number lies, all ticks being counted.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "below 2^31")]
fn moment_of(tick: u64) -> Tick {
    if tick < SECONDS_FROM { tick as Tick } else { moment_far_ahead(tick) }
}

#[cold]
fn moment_far_ahead(tick: u64) -> Tick {
    let seconds = (tick - SECONDS_FROM) / TICKS_PER_SECOND;
    Tick::try_from(SECONDS_FROM + seconds).map_or(LAST, |moment| moment.min(LAST))
}

/// The number of the first tick of a moment, all ticks being counted.
#[inline]
fn tick_of(moment: Tick) -> u64 {
    let moment = u64::from(moment);
    let beyond = moment.saturating_sub(SECONDS_FROM);
    moment + beyond * (TICKS_PER_SECOND - 1)
}

/// Ticks from one moment to another; 0 if the other comes first.
#[inline]
pub fn ticks_between(from: Tick, to: Tick) -> u64 {
    tick_of(to).saturating_sub(tick_of(from))
}

/// The moment so many ticks after another, at most the last one.
#[inline]
pub(crate) fn moment_after(moment: Tick, ticks: u64) -> Tick {
    moment_of(tick_of(moment).saturating_add(ticks))
}

/// The moment so many ticks before another; `None` before the epoch.
#[inline]
pub(crate) fn moment_before(moment: Tick, ticks: u64) -> Option<Tick> {
    tick_of(moment).checked_sub(ticks).map(moment_of)
}

/// The last moment that is so many ticks behind at some time within `now`: what is that old is never taken for younger
/// because `now` was rounded down to its second. `None` before the epoch.
#[inline]
pub(crate) fn moment_so_old(now: Tick, ticks: u64) -> Option<Tick> {
    last_tick_of(now).checked_sub(ticks).map(moment_of)
}

/// How many ticks a moment is behind at the end of `now`: what [`moment_so_old`] finds has reached that age, and
/// nothing later has.
#[inline]
pub(crate) fn age_at(now: Tick, moment: Tick) -> u64 {
    last_tick_of(now).saturating_sub(tick_of(moment))
}

#[inline]
fn last_tick_of(moment: Tick) -> u64 {
    tick_of(moment.saturating_add(1)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const YEAR_SECONDS: u64 = 31_557_600;

    #[test]
    fn a_later_moment_has_no_smaller_number() {
        let edge = (SECONDS_FROM - 1) * TICK_NS;
        let years = (0..75).map(|year| year * YEAR_SECONDS * SECOND_NS);
        let around = (0..200).map(|step| edge - 100 * TICK_NS / 3 + step * TICK_NS / 3);
        let mut all: Vec<u64> = years.chain(around).collect();
        all.sort_unstable();
        assert!(all.iter().map(|&ns| moment_at(ns)).is_sorted());
        assert_eq!(moment_at(0), 1);
        assert_eq!(moment_at(edge - 1), u32::try_from(SECONDS_FROM - 1).unwrap());
        assert_eq!(moment_at(edge), u32::try_from(SECONDS_FROM).unwrap());
        assert_eq!(moment_at(edge + SECOND_NS - 1), u32::try_from(SECONDS_FROM).unwrap());
        assert_eq!(moment_at(edge + SECOND_NS), u32::try_from(SECONDS_FROM + 1).unwrap());
    }

    #[test]
    fn moments_reach_far_and_end_before_never() {
        assert!(moment_at(72 * YEAR_SECONDS * SECOND_NS) < LAST);
        assert_eq!(moment_at(73 * YEAR_SECONDS * SECOND_NS), LAST);
        assert_eq!(moment_at(u64::MAX), LAST);
        assert_eq!(moment_after(LAST, u64::MAX), LAST);
        assert_eq!(moment_after(5, u64::MAX), LAST);
    }

    #[test]
    fn spans_are_the_same_on_both_sides_of_the_edge() {
        let edge = Tick::try_from(SECONDS_FROM).unwrap();
        for (from, ticks, to) in [
            (1, 16, 17),
            (edge - 16, 16, edge),
            (edge - 16, 31, edge),
            (edge - 16, 32, edge + 1),
            (edge, 15, edge),
            (edge, 16, edge + 1),
            (edge + 7, 160, edge + 17),
        ] {
            assert_eq!(moment_after(from, ticks), to, "{ticks} after {from}");
            // A moment beyond the edge is a whole second, which begins up to 15 ticks before the one that was meant.
            let between = ticks_between(from, to);
            assert!(between <= ticks && ticks < between + 16, "{between} from {from} to {to}");
            assert_eq!(moment_before(to, between), Some(from));
        }
        // Beyond the edge the tick of now is not known: it is taken for the last of its second.
        assert_eq!(moment_so_old(edge - 1, 10), Some(edge - 11));
        assert_eq!(moment_so_old(edge, 20), Some(edge - 5));
        assert_eq!(moment_so_old(edge + 9, 40), Some(edge + 7));
        assert_eq!(moment_so_old(5, 6), None);
        for (now, moment) in
            [(edge - 1, edge - 11), (edge, edge - 5), (edge + 9, edge + 7), (edge + 1, edge + 1)]
        {
            let age = age_at(now, moment);
            assert_eq!(moment_so_old(now, age), Some(moment), "{age}");
            assert!(moment_so_old(now, age + 1) < Some(moment), "{age}");
        }
        assert_eq!(ticks_between(7, 5), 0);
        assert_eq!(moment_before(5, 6), None);
    }
}
