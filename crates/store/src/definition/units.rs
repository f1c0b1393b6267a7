//! Times and sizes as people write them: one reader for table options, settings of the daemon and settings of sessions.

use crate::limits::PLACES_MAX;

/// Units of time with their milliseconds; the first name of each is the one printed.
pub(super) const TIME_UNITS: &[(u64, &[&str])] = &[
    (7 * 24 * 3_600_000, &["weeks", "week", "w"]),
    (24 * 3_600_000, &["days", "day", "d"]),
    (3_600_000, &["h", "hour", "hours", "hr", "hrs"]),
    (60_000, &["min", "mins", "minute", "minutes", "m"]),
    (1_000, &["s", "sec", "secs", "second", "seconds"]),
    (1, &["ms", "msec", "msecs", "millisecond", "milliseconds"]),
];

/// Units of memory with their bytes; the first name of each is the one printed.
pub(super) const SIZE_UNITS: &[(u64, &[&str])] = &[
    (1 << 40, &["TB", "TiB", "t"]),
    (1 << 30, &["GB", "GiB", "g"]),
    (1 << 20, &["MB", "MiB", "m"]),
    (1 << 10, &["kB", "KiB", "k"]),
    (1, &["B", "bytes", "byte"]),
];

type Units = [(u64, &'static [&'static str])];

/// Milliseconds of a text such as `5 min`, `1.5 h` or `1 day 2 hours`. `plain`: what a number without a unit counts, in
/// milliseconds. `None`: it is no such text, less than a millisecond is left over, or no number holds it.
pub fn time_ms(text: &str, plain: u64) -> Option<u64> {
    sum(text, TIME_UNITS, plain)
}

/// Bytes of a text such as `64 MB`, `64m`, `64 MiB` or `1.5 GB`; a number without a unit counts bytes. A kilobyte has
/// 1,024.
pub fn size_bytes(text: &str) -> Option<u64> {
    sum(text, SIZE_UNITS, 1)
}

/// The sum of all numbers with their units. A number without a unit stands alone.
fn sum(text: &str, units: &Units, plain: u64) -> Option<u64> {
    let (mut rest, mut total) = (text.trim(), 0_u64);
    if rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return scaled(rest, plain);
    }
    while !rest.is_empty() {
        let (number, behind) = split(rest, |byte| byte.is_ascii_digit() || byte == b'.');
        let (unit, behind) = split(behind.trim_start(), |byte| byte.is_ascii_alphabetic());
        let named = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(unit));
        let (scale, _) = units.iter().find(|(_, names)| named(names))?;
        total = total.checked_add(scaled(number, *scale)?)?;
        rest = behind.trim_start();
    }
    Some(total)
}

fn split(text: &str, belongs: impl Fn(u8) -> bool) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !belongs(byte)).unwrap_or(text.len()))
}

/// A decimal number of a unit, if that is whole.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, places) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && places.is_empty() || places.contains('.') || places.len() > PLACES_MAX {
        return None;
    }
    let digits: u128 = format!("{whole}{places}").parse().ok()?;
    let parts = digits.checked_mul(u128::from(scale))?;
    let one = 10_u128.pow(u32::try_from(places.len()).ok()?);
    parts.is_multiple_of(one).then(|| u64::try_from(parts / one).ok()).flatten()
}

/// A number with the largest unit that divides it.
pub(super) fn print(number: u64, units: &Units) -> String {
    let (scale, names) = units.iter().find(|(scale, _)| number.is_multiple_of(*scale)).unwrap_or(&(1, &[""]));
    format!("{} {}", number / scale, names[0])
}

#[cfg(test)]
mod tests {
    use super::{size_bytes, time_ms};

    #[test]
    fn times() {
        for (text, ms) in [
            ("10 mins", Some(600_000)),
            ("1 day 2 hours", Some(26 * 3_600_000)),
            ("1day2h", Some(26 * 3_600_000)),
            ("1.5 h", Some(5_400_000)),
            (".5s", Some(500)),
            ("5m", Some(300_000)),
            ("250 ms", Some(250)),
            ("2 Weeks", Some(14 * 86_400_000)),
            ("90", Some(90_000)),
            ("1.5", Some(1_500)),
            (" 30 s ", Some(30_000)),
            ("0", Some(0)),
            ("0.0001 s", None),
            ("1 day 2", None),
            ("1 2", None),
            ("", None),
            (".", None),
            ("1..5 s", None),
            ("h", None),
            ("-5 s", None),
            ("5 parsecs", None),
            ("5 MB", None),
            ("1 h,", None),
            ("99999999999999999999 h", None),
            ("18446744073709551615 ms 1 ms", None),
            ("1 \u{2003}h\u{e4}", None),
        ] {
            assert_eq!(time_ms(text, 1_000), ms, "{text:?}");
        }
        assert_eq!(time_ms("90", 1), Some(90));
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("64 MiB", Some(64 << 20)),
            ("64m", Some(64 << 20)),
            ("64MB", Some(64 << 20)),
            ("512k", Some(512 << 10)),
            ("1.5 GB", Some(3 << 29)),
            ("4096", Some(4096)),
            ("10 bytes", Some(10)),
            ("1 GB 512 MB", Some(3 << 29)),
            ("0.5 B", None),
            ("5 min", None),
            ("17179869184g", None),
            ("", None),
        ] {
            assert_eq!(size_bytes(text), bytes, "{text:?}");
        }
    }
}
