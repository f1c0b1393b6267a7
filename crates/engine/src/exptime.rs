//! memcached's expiry times as deadlines.

use std::time::Duration;

use store::{Expiry, Store};

use crate::limits::EXPTIME_RELATIVE_MAX;

/// 0: the table decides (the built-in table: never). Negative: at once. Up to 30 days: seconds from now. Above: a Unix
/// time, which may have passed.
#[inline]
pub(crate) fn expiry(store: &Store, exptime: i64) -> Expiry {
    // Of a second that has begun, what is over is no part of the time to a named moment.
    let mut begun = Duration::ZERO;
    let seconds = seconds_ahead(exptime, || {
        let now = store.clock().unix_ms();
        begun = Duration::from_millis(now % 1_000);
        now / 1_000
    });
    match seconds {
        None => Expiry::Table,
        Some(0) => Expiry::Now,
        Some(seconds) => Expiry::At(store.tick_after(Duration::from_secs(seconds).saturating_sub(begun))),
    }
}

/// Seconds from now until the moment that `exptime` names; 0 when it has come, none when there is no such moment.
pub(crate) fn seconds_ahead(exptime: i64, unix_seconds: impl FnOnce() -> u64) -> Option<u64> {
    match exptime {
        0 => None,
        ..0 => Some(0),
        1..=EXPTIME_RELATIVE_MAX => Some(exptime.unsigned_abs()),
        _ => Some(exptime.unsigned_abs().saturating_sub(unix_seconds())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries() {
        let now = 1_800_000_000;
        let table = [
            (0, None),
            (-1, Some(0)),
            (i64::MIN, Some(0)),
            (1, Some(1)),
            (2_592_000, Some(2_592_000)),
            // One more is a day in 1970, long past.
            (2_592_001, Some(0)),
            (1_799_999_999, Some(0)),
            (1_800_000_000, Some(0)),
            (1_800_000_001, Some(1)),
            (i64::from(i32::MAX), Some(347_483_647)),
            (i64::from(i32::MAX) + 1, Some(347_483_648)),
        ];
        for (exptime, expected) in table {
            assert_eq!(seconds_ahead(exptime, || now), expected, "exptime {exptime}");
        }
    }
}
