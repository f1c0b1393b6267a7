//! Spans of time: months, days and microseconds apart, as PostgreSQL keeps them.

mod style;

use super::Refusal;
use super::moment::{self, DAY_US};
use crate::limits::INTERVAL_COUNT_MAX;

pub use style::Style;

/// A span of time. Months and days have no fixed length, so they are kept for themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Whole months, twelve for a year.
    pub months: i64,
    /// Whole days, seven for a week.
    pub days: i64,
    /// The rest in microseconds.
    pub us: i64,
}

/// Units with their names and what one of them is: months, days, microseconds.
const UNITS: &[(&[&str], Interval)] = &[
    (&["microsecond", "microseconds", "us", "usec", "usecs"], Interval { months: 0, days: 0, us: 1 }),
    (&["millisecond", "milliseconds", "ms", "msec", "msecs"], Interval { months: 0, days: 0, us: 1_000 }),
    (&["second", "seconds", "s", "sec", "secs"], Interval { months: 0, days: 0, us: 1_000_000 }),
    (&["minute", "minutes", "m", "min", "mins"], Interval { months: 0, days: 0, us: 60_000_000 }),
    (&["hour", "hours", "h", "hr", "hrs"], Interval { months: 0, days: 0, us: 3_600_000_000 }),
    (&["day", "days", "d"], Interval { months: 0, days: 1, us: 0 }),
    (&["week", "weeks", "w"], Interval { months: 0, days: 7, us: 0 }),
    (&["month", "months", "mon", "mons"], Interval { months: 1, days: 0, us: 0 }),
    (&["year", "years", "y", "yr", "yrs"], Interval { months: 12, days: 0, us: 0 }),
    (&["decade", "decades"], Interval { months: 120, days: 0, us: 0 }),
    (&["century", "centuries"], Interval { months: 1_200, days: 0, us: 0 }),
];

impl Interval {
    /// Reads `1 day 02:03:04`, `2 hours ago`, `P1DT2H` and their like.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let bad = || Refusal::new("22007", format!("invalid input syntax for type interval: \"{text}\""));
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.len() > 128 {
            return Err(bad());
        }
        let parsed = match trimmed.strip_prefix(['P', 'p']) {
            Some(rest) => iso(rest),
            None => words(trimmed),
        };
        parsed.ok_or_else(bad)
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            months: self.months.saturating_add(other.months),
            days: self.days.saturating_add(other.days),
            us: self.us.saturating_add(other.us),
        }
    }

    /// The same backwards.
    #[must_use]
    pub fn negated(self) -> Self {
        Self {
            months: self.months.saturating_neg(),
            days: self.days.saturating_neg(),
            us: self.us.saturating_neg(),
        }
    }

    /// So many times as long; what is left of a month becomes days, of a day hours.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        self.scaled(|part| part * factor)
    }

    /// The same of a division, which is more exact than its factor would be.
    #[must_use]
    pub fn divided(self, divisor: f64) -> Self {
        self.scaled(|part| part / divisor)
    }

    fn scaled(self, scale: impl Fn(f64) -> f64) -> Self {
        // As PostgreSQL rounds them: to a millionth of a day, and of a second.
        let rounded = |part: f64| (part * 1e6).round_ties_even() / 1e6;
        let (months, days) = (scale(self.months as f64), scale(self.days as f64));
        let more_days = rounded(months.fract() * 30.0);
        let seconds = rounded((days.fract() + more_days.fract()) * 86_400.0);
        let us = scale(self.us as f64) + (seconds % 86_400.0) * 1e6;
        let days = days.trunc() + more_days.trunc() + (seconds / 86_400.0).trunc();
        Self { months: whole(months), days: whole(days), us: whole(us.round_ties_even()) }
    }

    /// Thirty days become a month, in the direction of the months.
    #[must_use]
    pub fn days_as_months(self) -> Self {
        let months = self.months.saturating_add(self.days / 30);
        let (months, days) = of_one_sign(months, self.days % 30, 30);
        Self { months, days, ..self }
    }

    /// Twenty-four hours become a day, in the direction of the days.
    #[must_use]
    pub fn hours_as_days(self) -> Self {
        let days = self.days.saturating_add(self.us / DAY_US);
        let (days, us) = of_one_sign(days, self.us % DAY_US, DAY_US);
        Self { days, us, ..self }
    }

    /// Cut down to a field; `None`: there is no such field of a span.
    pub fn truncated(self, field: &str) -> Option<Self> {
        let Self { months, days, us } = self;
        let of_time = |unit: i64| Self { months, days, us: us - us % unit };
        let of_months = |unit: i64| Self { months: months - months % unit, days: 0, us: 0 };
        Some(match field {
            "microseconds" => self,
            "milliseconds" => of_time(1_000),
            "second" => of_time(1_000_000),
            "minute" => of_time(60_000_000),
            "hour" => of_time(3_600_000_000),
            "day" => Self { us: 0, ..self },
            "month" => of_months(1),
            "quarter" => of_months(3),
            "year" => of_months(12),
            "decade" => of_months(120),
            "century" => of_months(1_200),
            "millennium" => of_months(12_000),
            _ => return None,
        })
    }

    /// The moment so much later; a day that the month does not have becomes the month's last.
    pub fn after(self, us: i64) -> Option<i64> {
        let (days, time) = (us.div_euclid(DAY_US), us.rem_euclid(DAY_US));
        let (year, month, day) = moment::date_of(days);
        let months = (year * 12 + month - 1).checked_add(self.months)?;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        if !(-10_000..20_000).contains(&year) {
            return None;
        }
        let day = day.min(moment::days_in_month(year, month));
        let days = moment::days_of(year, month, day).checked_add(self.days)?;
        days.checked_mul(DAY_US)?.checked_add(time)?.checked_add(self.us)
    }

    /// Its length in seconds, a month being 30 days and a year 365.25 of them.
    pub fn seconds(self) -> f64 {
        let years = self.months / 12;
        let months = self.months % 12;
        let days = years as f64 * 365.25 + (months * 30 + self.days) as f64;
        days * 86_400.0 + self.us as f64 / 1e6
    }

    /// Microseconds by which it is compared, a month being 30 days.
    pub fn order(self) -> i64 {
        let days = self.months.saturating_mul(30).saturating_add(self.days);
        days.saturating_mul(86_400_000_000).saturating_add(self.us)
    }

    /// As PostgreSQL writes it: `1 year 2 mons 3 days 04:05:06`.
    pub fn write(self) -> String {
        let mut parts = Vec::new();
        // Behind a part that goes backwards one that goes forwards says so.
        let mut before = false;
        let mut part = |count: i64, unit: &str| {
            if count != 0 {
                let plural = if count == 1 { "" } else { "s" };
                let sign = if before && count > 0 { "+" } else { "" };
                parts.push(format!("{sign}{count} {unit}{plural}"));
                before = count < 0;
            }
        };
        part(self.months / 12, "year");
        part(self.months % 12, "mon");
        part(self.days, "day");
        if self.us != 0 || parts.is_empty() {
            let sign = match (self.us < 0, before) {
                (true, _) => "-",
                (false, true) => "+",
                _ => "",
            };
            parts.push(format!("{sign}{}", moment::write_time(self.us.saturating_abs())));
        }
        parts.join(" ")
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates, and texts are bounded")]
fn whole(number: f64) -> i64 {
    number.trunc() as i64
}

/// `1 day 2 hours`, `3 days 04:05:06`, `-1 day +02:03`, with `ago` for all of it backwards.
fn words(text: &str) -> Option<Interval> {
    let lower = text.to_ascii_lowercase();
    let lower = lower.trim_start_matches('@').trim();
    let (body, ago) = match lower.strip_suffix("ago") {
        Some(body) => (body.trim(), true),
        None => (lower, false),
    };
    let mut sum = Interval::default();
    let mut rest = body;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || "+-.:".contains(c))).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        if number.contains(':') {
            sum = sum.plus(clock(number)?);
            rest = behind.trim_start();
            continue;
        }
        let behind = behind.trim_start();
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        if unit.is_empty()
            && let Some(months) = years_and_months(number)
        {
            sum = sum.plus(months);
            rest = behind;
            continue;
        }
        // A number without a unit is days before a time of day, and seconds by itself.
        let time_behind = behind.split([' ', '\t']).next().is_some_and(|next| next.contains(':'));
        let unit = match unit {
            "" if time_behind => "d",
            "" if sum == Interval::default() => "s",
            unit => unit,
        };
        sum = sum.plus(counted(number, unit)?);
        rest = behind.trim_start_matches([' ', ',', '\t']);
    }
    Some(if ago { sum.negated() } else { sum })
}

/// A count of a larger unit and of a smaller one, `size` of which are the larger: what goes the other way borrows.
fn of_one_sign(large: i64, small: i64, size: i64) -> (i64, i64) {
    match (large.signum(), small.signum()) {
        (1, -1) => (large - 1, small + size),
        (-1, 1) => (large + 1, small - size),
        _ => (large, small),
    }
}

/// `1-2`: a year and two months.
fn years_and_months(text: &str) -> Option<Interval> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (years, months) = text.split_once('-')?;
    let (years, months): (u32, u32) = (years.parse().ok()?, months.parse().ok()?);
    let months = i64::from(years) * 12 + i64::from(months);
    let span = Interval { months, days: 0, us: 0 };
    Some(if negative { span.negated() } else { span })
}

fn counted(number: &str, unit: &str) -> Option<Interval> {
    let count: f64 = number.parse().ok()?;
    let (_, one) = UNITS.iter().find(|(names, _)| names.contains(&unit))?;
    (count.abs() <= INTERVAL_COUNT_MAX).then(|| one.times(count))
}

/// `HH:MM` and `HH:MM:SS.f`, with a sign; hours may be many.
fn clock(text: &str) -> Option<Interval> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut fields = text.split(':');
    let hours: u32 = fields.next()?.parse().ok()?;
    let minutes: u32 = fields.next()?.parse().ok()?;
    let seconds: f64 = fields.next().map_or(Some(0.0), |seconds| seconds.parse().ok())?;
    if fields.next().is_some() || minutes >= 60 || !(0.0..61.0).contains(&seconds) {
        return None;
    }
    let us =
        i64::from(hours) * 3_600_000_000 + i64::from(minutes) * 60_000_000 + whole((seconds * 1e6).round());
    Some(Interval { months: 0, days: 0, us: if negative { -us } else { us } })
}

/// What follows the `P` of ISO 8601: `1Y2M3DT4H5M6S`, `1W`.
fn iso(text: &str) -> Option<Interval> {
    let upper = text.to_ascii_uppercase();
    let (date, time) = upper.split_once('T').unwrap_or((&upper, ""));
    let mut sum = Interval::default();
    for (part, units) in [(date, ["y", "mon", "w", "d"]), (time, ["h", "min", "s", "s"])] {
        let letters = if units[0] == "y" { ['Y', 'M', 'W', 'D'] } else { ['H', 'M', 'S', 'S'] };
        let mut rest = part;
        while !rest.is_empty() {
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            let letter = rest[end..].chars().next()?;
            let at = letters.iter().position(|known| *known == letter)?;
            sum = sum.plus(counted(&rest[..end], units[at])?);
            rest = &rest[end + 1..];
        }
    }
    (!date.is_empty() || !time.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_in_many_spellings() {
        for (text, expected) in [
            ("1 day", "1 day"),
            ("2 hours 30 minutes", "02:30:00"),
            ("1 year 2 months 3 days 04:05:06.7", "1 year 2 mons 3 days 04:05:06.7"),
            ("@ 1 minute", "00:01:00"),
            ("3 days ago", "-3 days"),
            ("-1 day +02:03", "-1 days +02:03:00"),
            ("1.5 days", "1 day 12:00:00"),
            ("0.5 month", "15 days"),
            ("90", "00:01:30"),
            ("36:00", "36:00:00"),
            ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
            ("PT0.5S", "00:00:00.5"),
            ("1week", "7 days"),
            ("0", "00:00:00"),
            ("-00:00:01.5", "-00:00:01.5"),
            ("1 2:03:04", "1 day 02:03:04"),
            ("1-2", "1 year 2 mons"),
            ("-1-2 3 4:05", "-1 years -2 mons +3 days 04:05:00"),
        ] {
            assert_eq!(Interval::parse(text).map(Interval::write).as_deref(), Ok(expected), "{text}");
        }
        for text in
            ["", "day", "1 fortnight", "1 day 2", "P", "P1", "1:99", "1e400 days", "99999999999 years"]
        {
            assert_eq!(Interval::parse(text).map_err(|refusal| refusal.state), Err("22007"), "{text}");
        }
    }

    #[test]
    fn spans_are_justified_and_cut() {
        let parsed = |text: &str| Interval::parse(text).unwrap();
        for (text, days, hours) in [
            ("40 days 30 hours", "1 mon 10 days 30:00:00", "41 days 06:00:00"),
            ("-40 days", "-1 mons -10 days", "-40 days"),
            ("1 day -1 hour", "1 day -01:00:00", "23:00:00"),
            ("1 mon -5 days", "25 days", "1 mon -5 days"),
        ] {
            assert_eq!(parsed(text).days_as_months().write(), days, "{text}");
            assert_eq!(parsed(text).hours_as_days().write(), hours, "{text}");
        }
        let span = parsed("1 year 5 mons 3 days 04:05:06.7");
        for (field, cut) in [
            ("hour", "1 year 5 mons 3 days 04:00:00"),
            ("day", "1 year 5 mons 3 days"),
            ("quarter", "1 year 3 mons"),
            ("year", "1 year"),
        ] {
            assert_eq!(span.truncated(field).map(Interval::write).as_deref(), Some(cut), "{field}");
        }
        assert_eq!(span.truncated("week"), None);
    }

    #[test]
    fn months_end_where_they_end() {
        let at = |text: &str| moment::micros_of(text).unwrap().unwrap();
        for (from, span, to) in [
            ("2026-01-31", "1 month", "2026-02-28 00:00:00"),
            ("2024-01-31", "1 month", "2024-02-29 00:00:00"),
            ("2026-03-31", "-1 month", "2026-02-28 00:00:00"),
            ("2026-12-31 23:59:59", "1 second", "2027-01-01 00:00:00"),
            ("2024-02-29", "1 year", "2025-02-28 00:00:00"),
        ] {
            let span = Interval::parse(span).unwrap();
            assert_eq!(moment::write_timestamp(span.after(at(from)).unwrap()).as_deref(), Ok(to), "{from}");
        }
    }
}
