//! Dates and times: text as people read it, and PostgreSQL's binary counts from the year 2000.

/// Days from 1970-01-01 to 2000-01-01.
const EPOCH_DAYS: i64 = 10_957;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Years that are read and written; PostgreSQL's own range is wider, SQLite's is this one.
const YEARS: std::ops::RangeInclusive<i64> = 0..=9999;

/// A point in time: microseconds since 2000-01-01 00:00 UTC.
pub(crate) type Micros = i64;

/// Days since 2000-01-01 of a date in the proleptic Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March put the leap day at their end.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 - EPOCH_DAYS
}

/// The date of a number of days since 2000-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Text under way of being read.
struct Reader<'t> {
    rest: &'t [u8],
}

impl Reader<'_> {
    /// So many digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        digits.iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })
    }

    fn sign(&mut self, sign: u8) -> bool {
        let found = self.rest.first() == Some(&sign);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn date(&mut self) -> Option<i64> {
        let year = self.digits(4)?;
        let month = self.sign(b'-').then(|| self.digits(2))??;
        let day = self.sign(b'-').then(|| self.digits(2))??;
        let days = days_of(year, month, day);
        // A day that its month does not have is another date.
        (date_of(days) == (year, month, day)).then_some(days)
    }

    fn time(&mut self) -> Option<Micros> {
        let hour = self.digits(2)?;
        let minute = self.sign(b':').then(|| self.digits(2))??;
        let mut micros = (hour * 60 + minute) * 60 * MICROS_PER_SECOND;
        let mut second = 0;
        if self.sign(b':') {
            second = self.digits(2)?;
            micros += second * MICROS_PER_SECOND;
            if self.sign(b'.') {
                micros += self.fraction();
            }
        }
        (hour <= 24 && minute <= 59 && second <= 60 && micros <= MICROS_PER_DAY).then_some(micros)
    }

    /// Microseconds; digits beyond are cut off.
    fn fraction(&mut self) -> Micros {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        (0..6).fold(0, |number, at| number * 10 + digits.get(at).map_or(0, |digit| i64::from(digit - b'0')))
    }

    /// An offset from UTC.
    fn zone(&mut self) -> Option<Micros> {
        self.rest = self.rest.trim_ascii_start();
        if self.sign(b'Z') || self.sign(b'z') || self.rest.eq_ignore_ascii_case(b"utc") {
            self.rest = &[];
            return Some(0);
        }
        let negative = self.sign(b'-');
        if !negative && !self.sign(b'+') {
            return Some(0);
        }
        let hours = self.digits(2)?;
        let minutes = if self.sign(b':') || !self.rest.is_empty() { self.digits(2)? } else { 0 };
        let offset = (hours * 60 + minutes) * 60 * MICROS_PER_SECOND;
        Some(if negative { -offset } else { offset })
    }
}

/// Reads `2026-11-21 20:51:39.5+01`; the time and the zone may be left out.
pub(crate) fn read_timestamp(text: &str) -> Option<Micros> {
    let mut reader = Reader { rest: text.trim().as_bytes() };
    let mut micros = reader.date()? * MICROS_PER_DAY;
    if reader.sign(b' ') || reader.sign(b'T') || reader.sign(b't') {
        micros += reader.time()?;
        micros -= reader.zone()?;
    }
    reader.rest.is_empty().then_some(micros)
}

/// Reads `2026-11-21` as days since 2000; a time behind it is left out.
pub(crate) fn read_date(text: &str) -> Option<i32> {
    let mut reader = Reader { rest: text.trim().as_bytes() };
    let days = reader.date()?;
    let ends = reader.rest.is_empty() || matches!(reader.rest[0], b' ' | b'T' | b't');
    ends.then(|| i32::try_from(days).ok())?
}

/// Reads `20:51:39.5`.
pub(crate) fn read_time(text: &str) -> Option<Micros> {
    let mut reader = Reader { rest: text.trim().as_bytes() };
    let micros = reader.time()?;
    reader.rest.is_empty().then_some(micros)
}

/// The text of a date; none beyond the year 9999.
pub(crate) fn date_text(days: i32) -> Option<String> {
    let (year, month, day) = date_of(i64::from(days));
    YEARS.contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// The text of a time of day.
pub(crate) fn time_text(micros: Micros) -> Option<String> {
    (0..=MICROS_PER_DAY).contains(&micros).then(|| {
        let seconds = micros / MICROS_PER_SECOND;
        let mut text = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let fraction = micros % MICROS_PER_SECOND;
        if fraction > 0 {
            text.push('.');
            text.push_str(format!("{fraction:06}").trim_end_matches('0'));
        }
        text
    })
}

/// The text of a point in time, without a zone.
pub(crate) fn timestamp_text(micros: Micros) -> Option<String> {
    let days = i32::try_from(micros.div_euclid(MICROS_PER_DAY)).ok()?;
    Some(format!("{} {}", date_text(days)?, time_text(micros.rem_euclid(MICROS_PER_DAY))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in [
            "2000-01-01 00:00:00",
            "1970-01-01 00:00:00",
            "1969-12-31 23:59:59.999999",
            "2026-11-21 20:51:39.5",
            "0000-03-01 00:00:00",
            "9999-12-31 23:59:59",
            "2024-02-29 12:00:00.000001",
        ] {
            let micros = read_timestamp(text).unwrap();
            assert_eq!(timestamp_text(micros).as_deref(), Some(text));
        }
        assert_eq!(read_timestamp("2000-01-02"), Some(MICROS_PER_DAY));
        assert_eq!(read_timestamp("2000-01-01T01:30:00+01:30"), Some(0));
        assert_eq!(read_timestamp("2000-01-01 00:00:00-01"), Some(3_600 * MICROS_PER_SECOND));
        assert_eq!(read_date("1999-12-31"), Some(-1));
        assert_eq!(date_text(-1).as_deref(), Some("1999-12-31"));
        assert_eq!(read_time("01:02:03.25").and_then(time_text).as_deref(), Some("01:02:03.25"));
    }

    #[test]
    fn every_day_of_a_cycle() {
        for days in -150_000..150_000_i64 {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), days);
        }
    }

    #[test]
    fn what_is_none() {
        for text in [
            "",
            "2001-02-29",
            "2001-13-01",
            "2001-1-1",
            "2001-01-01 25:00:00",
            "2001-01-01 00:61",
            "2001-01-01x",
        ] {
            assert_eq!(read_timestamp(text), None, "{text}");
        }
        assert_eq!(timestamp_text(i64::MAX), None);
        assert_eq!(timestamp_text(i64::MIN), None);
    }
}
