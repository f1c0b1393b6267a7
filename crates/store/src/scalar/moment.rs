//! Dates and times: PostgreSQL's spellings in, one canonical text out.
//!
//! A moment is stored as text, because SQLite's date functions read it, people read it, and it sorts as time does:
//! the fields have fixed widths, and what may follow the seconds (`+`, `.`, a digit) sorts in this very order. Moments
//! with a zone are kept in UTC. `infinity` sorts behind every year and `-infinity` before.

use super::{Refusal, SqlType, zone};

/// Microseconds of a day.
pub const DAY_US: i64 = 86_400_000_000;
/// Digits behind a second: microseconds.
pub const DIGITS: u32 = 6;
const HOUR_US: i64 = 3_600_000_000;
const MINUTE_US: i64 = 60_000_000;
const SECOND_US: i64 = 1_000_000;

/// Later than every moment, as PostgreSQL has it.
pub const INFINITY: &str = "infinity";
/// Earlier than every moment.
pub const MINUS_INFINITY: &str = "-infinity";

/// The month of each name, by its first three letters.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The parts that a text gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Days since 1970-01-01.
    pub days: Option<i64>,
    /// Microseconds since midnight.
    pub time_us: Option<i64>,
    /// Seconds east of Greenwich.
    pub offset: Option<i64>,
}

/// The days from 1970-01-01 to a date of the Gregorian calendar.
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is a year's last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day = days.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// How many days a month has.
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// `YYYY-MM-DD`
pub fn write_date(days: i64) -> String {
    let (year, month, day) = date_of(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `HH:MM:SS`, with as many decimals as it takes.
pub fn write_time(time_us: i64) -> String {
    let (hours, rest) = (time_us / HOUR_US, time_us % HOUR_US);
    let (minutes, rest) = (rest / MINUTE_US, rest % MINUTE_US);
    let (seconds, micros) = (rest / SECOND_US, rest % SECOND_US);
    let mut text = format!("{hours:02}:{minutes:02}:{seconds:02}");
    if micros != 0 {
        text.push_str(format!(".{micros:06}").trim_end_matches('0'));
    }
    text
}

/// `YYYY-MM-DD HH:MM:SS` of microseconds since 1970; an error beyond the years 1 to 9999.
pub fn write_timestamp(us: i64) -> Result<String, Refusal> {
    let days = us.div_euclid(DAY_US);
    check_days(days)?;
    Ok(format!("{} {}", write_date(days), write_time(us.rem_euclid(DAY_US))))
}

/// A canonical text with so many digits behind the second. Halves go away from the midnight at which a time of day
/// begins, and from that of the year 2000, as in PostgreSQL.
pub fn rounded(text: &str, digits: u32) -> Result<String, Refusal> {
    const YEAR_2000_US: i64 = 946_684_800 * SECOND_US;
    if infinite(text).is_some() {
        return Ok(text.to_owned());
    }
    let unit = 10_i64.pow(DIGITS.saturating_sub(digits));
    let round = |us: i64| us.signum() * ((us.abs() + unit / 2) / unit * unit);
    let Parts { days, time_us, offset } = parse(text)?;
    let time_us = time_us.ok_or_else(|| Refusal::moment(text))?;
    let Some(days) = days else {
        let time_us = round(time_us);
        return Ok(offset.map_or_else(|| write_time(time_us), |offset| write_timetz(time_us, offset)));
    };
    // One with a zone is in UTC.
    let us = YEAR_2000_US + round(days * DAY_US + time_us - YEAR_2000_US);
    if offset.is_some() { write_timestamptz(us) } else { write_timestamp(us) }
}

/// Whether a type's name may say how many digits stand behind the second.
pub fn has_digits(ty: SqlType) -> bool {
    matches!(ty, SqlType::Timestamp | SqlType::Timestamptz | SqlType::Time | SqlType::Timetz)
}

fn write_timetz(time_us: i64, offset: i64) -> String {
    let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
    format!("{}{sign}{:02}:{:02}", write_time(time_us), minutes / 60, minutes % 60)
}

/// The same with `+00:00`, which SQLite's date functions read as well.
pub fn write_timestamptz(us: i64) -> Result<String, Refusal> {
    Ok(write_timestamp(us)? + "+00:00")
}

/// Microseconds since 1970 of a text that names a moment or a date; a zone is taken into account, none is UTC.
/// `None` for the infinities.
pub fn micros_of(text: &str) -> Result<Option<i64>, Refusal> {
    if infinite(text).is_some() {
        return Ok(None);
    }
    let parts = parse(text)?;
    let days = parts.days.ok_or_else(|| Refusal::moment(text))?;
    Ok(Some(days * DAY_US + parts.time_us.unwrap_or(0) - parts.offset.unwrap_or(0) * SECOND_US))
}

/// The canonical text of a moment with a zone; without an offset it is of the zone of the thread's statement.
pub fn timestamptz(text: &str) -> Result<String, Refusal> {
    if let Some(infinite) = infinite(text) {
        return Ok(infinite.to_owned());
    }
    let parts = parse(text)?;
    let days = parts.days.ok_or_else(|| Refusal::moment(text))?;
    let local = days * DAY_US + parts.time_us.unwrap_or(0);
    write_timestamptz(match parts.offset {
        Some(offset) => local - offset * SECOND_US,
        None => zone::utc_of_local(local),
    })
}

/// The canonical text of a moment without a zone; a zone in the text is left out, as in PostgreSQL.
pub fn timestamp(text: &str) -> Result<String, Refusal> {
    if let Some(infinite) = infinite(text) {
        return Ok(infinite.to_owned());
    }
    let parts = parse(text)?;
    let days = parts.days.ok_or_else(|| Refusal::moment(text))?;
    write_timestamp(days * DAY_US + parts.time_us.unwrap_or(0))
}

/// The canonical text of a date; a time in the text is left out.
pub fn date(text: &str) -> Result<String, Refusal> {
    if let Some(infinite) = infinite(text) {
        return Ok(infinite.to_owned());
    }
    let days = parse(text)?.days.ok_or_else(|| Refusal::moment(text))?;
    check_days(days)?;
    Ok(write_date(days))
}

/// The canonical text of a time of day; a date in the text is left out.
pub fn time(text: &str) -> Result<String, Refusal> {
    let time_us = parse(text)?.time_us.ok_or_else(|| Refusal::moment(text))?;
    Ok(write_time(time_us))
}

/// The canonical text of a time of day with a zone; none is UTC.
pub fn timetz(text: &str) -> Result<String, Refusal> {
    let parts = parse(text)?;
    let time_us = parts.time_us.ok_or_else(|| Refusal::moment(text))?;
    Ok(write_timetz(time_us, parts.offset.unwrap_or(0)))
}

fn infinite(text: &str) -> Option<&'static str> {
    let text = text.trim();
    if text.eq_ignore_ascii_case(INFINITY) || text.eq_ignore_ascii_case("+infinity") {
        Some(INFINITY)
    } else if text.eq_ignore_ascii_case(MINUS_INFINITY) {
        Some(MINUS_INFINITY)
    } else {
        None
    }
}

/// The years that SQLite's date functions know.
fn check_days(days: i64) -> Result<(), Refusal> {
    if (days_of(1, 1, 1)..=days_of(9999, 12, 31)).contains(&days) {
        return Ok(());
    }
    Err(Refusal::range("date/time field value out of range: years go from 1 to 9999"))
}

/// Takes a text apart.
pub fn parse(text: &str) -> Result<Parts, Refusal> {
    let bad = || Refusal::moment(text);
    let text = text.trim();
    if text.is_empty() || text.len() > 64 || !text.is_ascii() {
        return Err(bad());
    }
    if text.eq_ignore_ascii_case("epoch") {
        return Ok(Parts { days: Some(0), time_us: Some(0), offset: Some(0) });
    }
    let mut parts = Parts::default();
    let (date, rest) = split_date(text);
    if let Some(date) = date {
        parts.days = Some(parse_date(date).ok_or_else(bad)??);
    }
    let names_zone = |first: char| first.is_ascii_alphabetic() || matches!(first, '+' | '-');
    if parts.days.is_some() && rest.starts_with(names_zone) {
        // A date with a zone, as JDBC writes one.
        parts.offset = Some(parse_zone(rest).ok_or_else(bad)?);
    } else if !rest.is_empty() {
        parse_clock(rest, &mut parts).ok_or_else(bad)??;
    }
    if parts.days.is_none() && parts.time_us.is_none() {
        return Err(bad());
    }
    Ok(parts)
}

/// The date that a text begins with, and what follows it.
fn split_date(text: &str) -> (Option<&str>, &str) {
    if text.as_bytes()[0].is_ascii_alphabetic() || word_date(text) {
        // `Jan 8, 1999 04:05`: the date ends behind its third word.
        let mut ends = text
            .match_indices([' ', '\t'])
            .map(|(at, _)| at)
            .filter(|&at| !text[..at].ends_with([' ', ',', '\t']) || text[..at].ends_with(','));
        // `8-Jan-1999` is one word.
        let hyphens = text.split(' ').next().is_some_and(|word| word.contains('-'));
        let end = ends.nth(if hyphens { 0 } else { 2 }).unwrap_or(text.len());
        return (Some(&text[..end]), text[end..].trim_start());
    }
    // The letters of `1999-Oct-08` are part of the date.
    let ends = |at: &usize| match text.as_bytes()[*at] {
        b' ' => true,
        byte => (byte.is_ascii_alphabetic() || byte == b'+') && text.as_bytes()[at - 1].is_ascii_digit(),
    };
    let end = (1..text.len()).find(ends).unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    let is_time = first.contains(':') || (first.len() == 6 && rest.is_empty());
    if is_time { (None, text) } else { (Some(first), rest.trim_start_matches([' ', 'T', 't'])) }
}

/// `8 Jan 1999`
fn word_date(text: &str) -> bool {
    let mut words = text.split([' ', '-']);
    let first = words.next().unwrap_or_default();
    first.bytes().all(|byte| byte.is_ascii_digit())
        && words.next().is_some_and(|word| month_of(word).is_some())
}

fn month_of(word: &str) -> Option<i64> {
    let word = word.trim_end_matches(['.', ',']).to_ascii_lowercase();
    let at = MONTHS.iter().position(|month| word.starts_with(month))?;
    i64::try_from(at + 1).ok()
}

fn digits(text: &str) -> Option<i64> {
    let fits = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

/// The days of a date; the inner error is a date that the calendar does not have.
fn parse_date(text: &str) -> Option<Result<i64, Refusal>> {
    let (year, month, day) = if let Some(compact) = digits(text).filter(|_| text.len() == 8) {
        (compact / 10_000, compact / 100 % 100, compact % 100)
    } else if text.contains(['a', 'e', 'o', 'u', 'A', 'E', 'O', 'U']) {
        named_date(text)?
    } else if let Some((month, rest)) = text.split_once('/') {
        let (day, year) = rest.split_once('/')?;
        if month.len() == 4 {
            (digits(month)?, digits(day)?, digits(year)?)
        } else {
            (digits(year)?, digits(month)?, digits(day)?)
        }
    } else {
        let (year, rest) = text.split_once('-')?;
        let (month, day) = rest.split_once('-')?;
        if year.len() < 4 {
            return None;
        }
        (digits(year)?, digits(month)?, digits(day)?)
    };
    let in_calendar = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day);
    Some(if in_calendar { Ok(days_of(year, month, day)) } else { Err(Refusal::field(text)) })
}

/// `January 8, 1999`, `8 Jan 1999`, `8-Jan-1999` and `1999-Jan-08`.
fn named_date(text: &str) -> Option<(i64, i64, i64)> {
    let words: Vec<&str> = text.split([' ', ',', '-', '\t']).filter(|word| !word.is_empty()).collect();
    let [first, second, year] = words[..] else { return None };
    match month_of(first) {
        Some(month) => Some((digits(year)?, month, digits(second)?)),
        None if first.len() > 2 => Some((digits(first)?, month_of(second)?, digits(year)?)),
        None => Some((digits(year)?, month_of(second)?, digits(first)?)),
    }
}

/// `HH:MM:SS.ffffff`, AM or PM, and a zone.
fn parse_clock(text: &str, parts: &mut Parts) -> Option<Result<(), Refusal>> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.'))).unwrap_or(text.len());
    let (clock, mut rest) = text.split_at(end);
    let mut time_us = match parse_time(clock)? {
        Ok(time_us) => time_us,
        Err(refusal) => return Some(Err(refusal)),
    };
    rest = rest.trim_start();
    for (word, afternoon) in [("AM", false), ("PM", true)] {
        if rest.get(..2).is_some_and(|begin| begin.eq_ignore_ascii_case(word)) {
            let noon = 12 * HOUR_US;
            if time_us >= noon + HOUR_US {
                return Some(Err(Refusal::field(text)));
            }
            time_us = time_us % noon + if afternoon { noon } else { 0 };
            rest = rest[2..].trim_start();
        }
    }
    parts.time_us = Some(time_us);
    if !rest.is_empty() {
        parts.offset = Some(parse_zone(rest)?);
    }
    Some(Ok(()))
}

fn parse_time(text: &str) -> Option<Result<i64, Refusal>> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fields: Vec<&str> = if whole.contains(':') {
        whole.split(':').collect()
    } else if whole.len() == 6 || whole.len() == 4 {
        let (hours, rest) = whole.split_at(2);
        let (minutes, seconds) = rest.split_at(2);
        if seconds.is_empty() { vec![hours, minutes] } else { vec![hours, minutes, seconds] }
    } else {
        return None;
    };
    if !(2..=3).contains(&fields.len()) {
        return None;
    }
    let (hours, minutes) = (digits(fields[0])?, digits(fields[1])?);
    let seconds = fields.get(2).map_or(Some(0), |seconds| digits(seconds))?;
    let micros = fraction_us(fraction)?;
    let us = hours * HOUR_US + minutes * MINUTE_US + seconds * SECOND_US + micros;
    let in_day = minutes < 60 && seconds <= 60 && us <= DAY_US;
    Some(if in_day { Ok(us) } else { Err(Refusal::field(text)) })
}

/// Decimals of a second in microseconds, rounded.
fn fraction_us(decimals: &str) -> Option<i64> {
    if !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seven = format!("{decimals:0<7}");
    Some((digits(seven.get(..7)?)? + 5) / 10)
}

/// Seconds east of Greenwich of `Z`, `UTC`, `+2`, `-05:30`, `+0530`.
fn parse_zone(text: &str) -> Option<i64> {
    if ["Z", "UTC", "GMT", "UCT", "Zulu", "Etc/UTC"].iter().any(|zone| zone.eq_ignore_ascii_case(text)) {
        return Some(0);
    }
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes, seconds) = if rest.contains(':') {
        let mut fields = rest.split(':');
        let hours = digits(fields.next()?)?;
        let minutes = digits(fields.next()?)?;
        (hours, minutes, fields.next().map_or(Some(0), digits)?)
    } else if rest.len() <= 2 {
        (digits(rest)?, 0, 0)
    } else if rest.len() == 4 {
        (digits(&rest[..2])?, digits(&rest[2..])?, 0)
    } else {
        return None;
    };
    (hours < 16 && minutes < 60 && seconds < 60).then_some(sign * (hours * 3_600 + minutes * 60 + seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_rounded() {
        for (text, digits, expected) in [
            ("2026-01-02 03:04:05.123456", 3, "2026-01-02 03:04:05.123"),
            ("2026-01-02 03:04:05.1235", 3, "2026-01-02 03:04:05.124"),
            ("2026-12-31 23:59:59.5", 0, "2027-01-01 00:00:00"),
            ("infinity", 0, "infinity"),
            ("1999-12-31 23:59:59.5", 0, "1999-12-31 23:59:59"),
            ("2026-01-02 03:04:05.6+00:00", 0, "2026-01-02 03:04:06+00:00"),
            ("23:59:59.5", 0, "24:00:00"),
            ("12:00:00.25+02:00", 1, "12:00:00.3+02:00"),
        ] {
            assert_eq!(rounded(text, digits).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn every_day_there_and_back() {
        let mut expected = (1, 1, 1);
        for days in days_of(1, 1, 1)..=days_of(9999, 12, 31) {
            let date = date_of(days);
            assert_eq!(date, expected);
            assert_eq!(days_of(date.0, date.1, date.2), days);
            let (year, month, day) = date;
            expected = match (month, day == days_in_month(year, month)) {
                (12, true) => (year + 1, 1, 1),
                (_, true) => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
        assert_eq!(days_of(1970, 1, 1), 0);
    }

    #[test]
    fn moments_in_many_spellings() {
        for (text, expected) in [
            ("2026-11-21 20:00:00+00", "2026-11-21 20:00:00+00:00"),
            ("2026-11-21 20:00:00.120+02", "2026-11-21 18:00:00.12+00:00"),
            ("2026-11-21T20:00:00Z", "2026-11-21 20:00:00+00:00"),
            ("2026-11-21T20:00:00.1234567-05:30", "2026-11-22 01:30:00.123457+00:00"),
            ("2026-11-21", "2026-11-21 00:00:00+00:00"),
            ("20261121 101112", "2026-11-21 10:11:12+00:00"),
            ("2026-11-21 8:05 PM", "2026-11-21 20:05:00+00:00"),
            ("2026-11-21 12:05 AM UTC", "2026-11-21 00:05:00+00:00"),
            ("11/21/2026 20:00", "2026-11-21 20:00:00+00:00"),
            ("Nov 21, 2026 20:00", "2026-11-21 20:00:00+00:00"),
            ("21 November 2026", "2026-11-21 00:00:00+00:00"),
            ("21-Nov-2026 01:02:03", "2026-11-21 01:02:03+00:00"),
            ("2024-02-29 24:00:00", "2024-03-01 00:00:00+00:00"),
            ("epoch", "1970-01-01 00:00:00+00:00"),
            (" Infinity ", "infinity"),
            ("-infinity", "-infinity"),
        ] {
            assert_eq!(timestamptz(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(timestamp("2026-11-21 20:00:00+02").as_deref(), Ok("2026-11-21 20:00:00"));
        assert_eq!(date("2026-11-21 20:00:00+02").as_deref(), Ok("2026-11-21"));
        assert_eq!(date("1980-01-02 +00").as_deref(), Ok("1980-01-02"));
        assert_eq!(timestamptz("1980-01-02 +01").as_deref(), Ok("1980-01-01 23:00:00+00:00"));
        for zoned in ["1980-01-02Z", "1980-01-02 z", "1980-01-02+00", "1980-01-02UTC", "19800102Z"] {
            assert_eq!(timestamptz(zoned).as_deref(), Ok("1980-01-02 00:00:00+00:00"), "{zoned}");
        }
        assert_eq!(date("1999-Oct-08").as_deref(), Ok("1999-10-08"));
        assert!(
            date("1980-01-02 +x").is_err() && date("1980-01-02X").is_err() && date("1980-01-02-08").is_err()
        );
        assert_eq!(time("20:01:02.5").as_deref(), Ok("20:01:02.5"));
        assert_eq!(timetz("20:01-05:30").as_deref(), Ok("20:01:00-05:30"));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for (text, state) in [
            ("", "22007"),
            ("yesterdayish", "22007"),
            ("2026-11", "22007"),
            ("2026-11-21 20", "22007"),
            ("2026-11-21 20:00 Nowhere/City", "22007"),
            ("2026-13-01", "22008"),
            ("2023-02-29", "22008"),
            ("2026-11-21 25:00", "22008"),
            ("2026-11-21 10:61", "22008"),
            ("0001-01-01 00:00:00+01", "22008"),
        ] {
            assert_eq!(timestamptz(text).map_err(|refusal| refusal.state), Err(state), "{text}");
        }
    }

    #[test]
    fn text_sorts_as_time_does() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..10_000 {
            let range = days_of(1, 1, 1) * DAY_US..days_of(9999, 12, 31) * DAY_US;
            let one = random.i64(range);
            let other = one + [1, 10, 1_000, SECOND_US, DAY_US][random.usize(0..5)];
            assert!(write_timestamptz(one).unwrap() < write_timestamptz(other).unwrap(), "{one} {other}");
            assert_eq!(micros_of(&write_timestamptz(one).unwrap()), Ok(Some(one)));
        }
    }
}
