//! `to_char` and its way back: moments and numbers by PostgreSQL's patterns.

use sqlite::meter;
use sqltext::error::SqlError;
use store::scalar::interval::Interval;
use store::scalar::moment::{self, DAY_US};
use store::scalar::zone;
use store::value::Value;

use super::def::{Now, text};
use super::digits;
use super::moment::{bad, iso_week};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The parts of patterns for moments, the longest first.
const PARTS: &[&str] = &[
    "Y,YYY", "YYYY", "IYYY", "HH24", "HH12", "SSSS", "MONTH", "Month", "month", "A.M.", "P.M.", "a.m.",
    "p.m.", "YYY", "DDD", "MON", "Mon", "mon", "DAY", "Day", "day", "YY", "IW", "WW", "MM", "DD", "HH", "MI",
    "SS", "MS", "US", "AM", "PM", "am", "pm", "DY", "Dy", "dy", "TZH", "TZM", "tzh", "tzm", "TZ", "tz", "OF",
    "ID", "CC", "Q", "J", "D", "Y", "W",
];

/// `to_char(value, pattern)`
pub(super) fn to_char(now: Now, values: &[Value]) -> Result<Value, SqlError> {
    let pattern = text(values, 1)?;
    if matches!(values.first(), Some(Value::Integer(_) | Value::Real(_))) {
        return digits::to_char(now, values);
    }
    let own = text(values, 0)?;
    let us = match moment::micros_of(&own) {
        Ok(Some(us)) if own.len() >= 10 => return written_moment(us, own.ends_with("+00:00"), &pattern),
        Ok(None) => return Ok(Value::Text(own)),
        // A span is written like the moment so long after 0000-00-00, as far as its hours.
        _ => Interval::parse(&own)?.us,
    };
    written(us, &pattern, ("UTC", 0)).map(Value::Text)
}

/// A moment; one with a zone as it is where the session is.
fn written_moment(us: i64, zoned: bool, pattern: &str) -> Result<Value, SqlError> {
    let zone = zone::current().filter(|_| zoned);
    let (ahead, name) =
        zone.map_or_else(|| (0, "UTC".to_owned()), |zone| (zone.ahead(us), zone.abbreviation(us)));
    written(us + ahead, pattern, (&name, ahead)).map(Value::Text)
}

/// What a piece takes in a list that grows.
const PIECE_BYTES: usize = 3 * size_of::<(&str, bool, bool)>();
/// What a character of a pattern becomes at most, while the text grows: `D` is a name of nine.
const WRITTEN_BYTES: usize = 3 * 9;

/// Microseconds of an hour and of a minute.
const HOUR_US: i64 = 3_600_000_000;
const MINUTE_US: i64 = 60_000_000;

/// A pattern's pieces: parts with whether blanks are left out (`FM`), or characters as they stand.
fn pieces(pattern: &str) -> Result<Vec<(&str, bool, bool)>, SqlError> {
    meter::take(pattern.len() * PIECE_BYTES)?;
    meter::work(pattern.len() * PARTS.len())?;
    let mut found = Vec::new();
    let mut rest = pattern;
    let mut bare = false;
    while let Some(first) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix("FM") {
            bare = true;
            rest = behind;
            continue;
        }
        if let Some(behind) = rest.strip_prefix('"') {
            let end = behind.find('"').unwrap_or(behind.len());
            found.push((&behind[..end], false, false));
            rest = behind.get(end + 1..).unwrap_or_default();
            continue;
        }
        let part = PARTS.iter().find(|part| rest.starts_with(**part));
        let length = part.map_or_else(|| first.len_utf8(), |part| part.len());
        found.push((&rest[..length], part.is_some(), bare));
        bare &= part.is_none();
        rest = &rest[length..];
        // The ordinal's ending.
        if part.is_some()
            && let Some(behind) = rest.strip_prefix("th").or_else(|| rest.strip_prefix("TH"))
        {
            found.push(("th", true, false));
            rest = behind;
        }
    }
    Ok(found)
}

fn sign_of(ahead: i64) -> char {
    if ahead < 0 { '-' } else { '+' }
}

fn written(us: i64, pattern: &str, (zone, ahead): (&str, i64)) -> Result<String, SqlError> {
    let pieces = pieces(pattern)?;
    meter::take(pattern.len() * WRITTEN_BYTES)?;
    let mut out = String::new();
    let mut last = 0;
    for (piece, is_part, bare) in pieces {
        if !is_part {
            out.push_str(piece);
            continue;
        }
        if piece == "th" {
            out.push_str(ordinal(last));
            continue;
        }
        let (number, text) = match piece {
            "TZ" => (None, zone.to_owned()),
            "tz" => (None, zone.to_lowercase()),
            "TZH" | "tzh" => (None, format!("{}{:02}", sign_of(ahead), ahead.abs() / HOUR_US)),
            "TZM" | "tzm" => (None, format!("{:02}", ahead.abs() / MINUTE_US % 60)),
            "OF" => (None, crate::look::offset(ahead / 1_000_000)),
            _ => part(us, piece),
        };
        last = number.unwrap_or(last);
        match number {
            Some(number) if bare => out.push_str(&number.to_string()),
            _ if bare => out.push_str(text.trim_end()),
            _ => out.push_str(&text),
        }
    }
    Ok(out)
}

pub(super) fn ordinal(number: i64) -> &'static str {
    match (number % 10, number % 100) {
        (1, other) if other != 11 => "st",
        (2, other) if other != 12 => "nd",
        (3, other) if other != 13 => "rd",
        _ => "th",
    }
}

/// A part as a number, if it is one, and as text.
fn part(us: i64, part: &str) -> (Option<i64>, String) {
    let (days, time) = (us.div_euclid(DAY_US), us.rem_euclid(DAY_US));
    let (year, month, day) = moment::date_of(days);
    let hour = time / 3_600_000_000;
    let weekday = (days + 4).rem_euclid(7);
    let numeric = |number: i64, width: usize| (Some(number), format!("{number:0width$}"));
    let name = |names: &[&str], at: i64| {
        names.get(usize::try_from(at).unwrap_or(0)).copied().unwrap_or_default().to_owned()
    };
    let cased = |name: String, part: &str| match (part.chars().next(), part.chars().nth(1)) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_uppercase() => name.to_uppercase(),
        (Some(first), _) if first.is_lowercase() => name.to_lowercase(),
        _ => name,
    };
    match part {
        "YYYY" => numeric(year, 4),
        "Y,YYY" => (None, format!("{},{:03}", year / 1000, year % 1000)),
        "YYY" => numeric(year % 1000, 3),
        "YY" => numeric(year % 100, 2),
        "Y" => numeric(year % 10, 1),
        "IYYY" => numeric(iso_week(days).0, 4),
        "CC" => numeric((year + 99) / 100, 2),
        "MM" => numeric(month, 2),
        "DD" => numeric(day, 2),
        "DDD" => numeric(days - moment::days_of(year, 1, 1) + 1, 3),
        "D" => numeric(weekday + 1, 1),
        "ID" => numeric((days + 3).rem_euclid(7) + 1, 1),
        "IW" => numeric(iso_week(days).1, 2),
        "WW" => numeric((days - moment::days_of(year, 1, 1)) / 7 + 1, 2),
        "W" => numeric((day - 1) / 7 + 1, 1),
        "Q" => numeric((month + 2) / 3, 1),
        "J" => numeric(days + 2_440_588, 1),
        "HH24" => numeric(hour, 2),
        "HH" | "HH12" => numeric((hour + 11) % 12 + 1, 2),
        "MI" => numeric(time / 60_000_000 % 60, 2),
        "SS" => numeric(time / 1_000_000 % 60, 2),
        "SSSS" => numeric(time / 1_000_000, 1),
        "MS" => numeric(time / 1_000 % 1_000, 3),
        "US" => numeric(time % 1_000_000, 6),
        "MONTH" | "Month" | "month" => (None, format!("{:9}", cased(name(&MONTHS, month - 1), part))),
        "MON" | "Mon" | "mon" => (None, cased(name(&MONTHS, month - 1)[..3].to_owned(), part)),
        "DAY" | "Day" | "day" => (None, format!("{:9}", cased(name(&DAYS, weekday), part))),
        "DY" | "Dy" | "dy" => (None, cased(name(&DAYS, weekday)[..3].to_owned(), part)),
        other => (None, half(other, hour)),
    }
}

/// `AM`, `p.m.` and their like.
fn half(part: &str, hour: i64) -> String {
    let letter = if hour < 12 { 'A' } else { 'P' };
    let text = if part.contains('.') { format!("{letter}.M.") } else { format!("{letter}M") };
    if part.starts_with(char::is_lowercase) { text.to_lowercase() } else { text }
}

/// Microseconds since 1970 of a text that was written by a pattern.
pub(super) fn read(text: &str, pattern: &str) -> Result<i64, SqlError> {
    let mut rest = text.trim_start();
    let (mut year, mut month, mut day, mut us) = (1, 1, 1, 0);
    let mut half = None;
    for (piece, is_part, _) in pieces(pattern)? {
        if !is_part {
            // Anything but a digit or letter stands for any separator.
            let skipped = rest.chars().next().filter(|c| !c.is_alphanumeric()).map_or(0, char::len_utf8);
            rest = if piece.chars().all(char::is_alphanumeric) {
                rest.strip_prefix(piece).unwrap_or(rest)
            } else {
                &rest[skipped..]
            };
            continue;
        }
        rest = rest.trim_start();
        if let Some(value) = named(&mut rest, piece) {
            match piece.to_ascii_uppercase().as_str() {
                "MON" | "MONTH" => month = value + 1,
                "AM" | "PM" | "A.M." | "P.M." => half = Some(value),
                _ => {}
            }
            continue;
        }
        let width = match piece {
            "YYYY" | "IYYY" => 4,
            "MS" | "DDD" => 3,
            "US" => 6,
            _ => 2,
        };
        let length = rest.bytes().take(width).take_while(u8::is_ascii_digit).count();
        let value: i64 = rest[..length].parse().map_err(|_| invalid(text, piece))?;
        rest = &rest[length..];
        match piece {
            "YYYY" => year = value,
            "YY" => year = if value < 70 { 2000 + value } else { 1900 + value },
            "MM" => month = value,
            "DD" => day = value,
            "HH24" | "HH12" | "HH" => us += value * 3_600_000_000,
            "MI" => us += value * 60_000_000,
            "SS" => us += value * 1_000_000,
            "MS" => us += value * 1_000,
            "US" => us += value,
            _ => return Err(bad(&format!("pattern \"{piece}\" is for writing only"))),
        }
    }
    let noon = 12 * 3_600_000_000;
    if let Some(afternoon) = half {
        us = us % noon + afternoon * noon;
    }
    let date = moment::date(&format!("{year:04}-{month:02}-{day:02}"))?;
    let start = moment::micros_of(&date)?.unwrap_or(0);
    if us > DAY_US {
        return Err(SqlError::new("22008", format!("date/time field value out of range: \"{text}\"")));
    }
    Ok(start + us)
}

fn invalid(text: &str, part: &str) -> SqlError {
    SqlError::new("22007", format!("invalid value in \"{text}\" for \"{part}\""))
}

/// The number of a name that stands where a part wants one.
fn named(rest: &mut &str, part: &str) -> Option<i64> {
    let upper = part.to_ascii_uppercase();
    let (names, short): (&[&str], bool) = match upper.as_str() {
        "MON" => (&MONTHS, true),
        "MONTH" => (&MONTHS, false),
        "DAY" => (&DAYS, false),
        "DY" => (&DAYS, true),
        "AM" | "PM" => (&["AM", "PM"], false),
        "A.M." | "P.M." => (&["A.M.", "P.M."], false),
        _ => return None,
    };
    let at = names.iter().position(|name| {
        let name = if short { &name[..3] } else { name };
        rest.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    })?;
    *rest = &rest[if short { 3 } else { names[at].len() }..];
    i64::try_from(at).ok()
}
