//! Moments as values hold them.

use store::value::Value;

/// A moment given in Unix milliseconds, as text in UTC.
pub(super) fn moment(unix_ms: i64) -> Value {
    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
    let (days, in_day) = (unix_ms.div_euclid(DAY_MS), unix_ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    let (seconds, ms) = (in_day / 1_000, in_day % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    Value::Text(format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03}+00"))
}

/// The same, or NULL.
pub(super) fn moment_of(unix_ms: Option<i64>) -> Value {
    unix_ms.map_or(Value::Null, moment)
}

/// The date of a day counted from 1970-01-01, in the Gregorian calendar: by eras of 400 years that begin in March, so
/// that a leap day is the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    const DAYS_TO_1970: i64 = 719_468;
    const ERA: i64 = 146_097;
    let shifted = days + DAYS_TO_1970;
    let (era, in_era) = (shifted.div_euclid(ERA), shifted.rem_euclid(ERA));
    let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let day_of_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        for (ms, shown) in [
            (0, "1970-01-01 00:00:00.000+00"),
            (951_782_399_999, "2000-02-28 23:59:59.999+00"),
            (951_782_400_000, "2000-02-29 00:00:00.000+00"),
            (1_700_000_000_000, "2023-11-14 22:13:20.000+00"),
            (-1, "1969-12-31 23:59:59.999+00"),
        ] {
            assert_eq!(moment(ms), Value::from(shown));
        }
    }
}
