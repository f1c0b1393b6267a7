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

/// The months in Roman digits.
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// The parts of patterns for moments, the longest first.
const PARTS: &[&str] = &[
    "Y,YYY", "SSSSS", "MONTH", "Month", "month", "YYYY", "IYYY", "IDDD", "HH24", "HH12", "SSSS", "A.M.",
    "P.M.", "a.m.", "p.m.", "A.D.", "B.C.", "a.d.", "b.c.", "IYY", "YYY", "DDD", "MON", "Mon", "mon", "DAY",
    "Day", "day", "TZH", "TZM", "tzh", "tzm", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "IY", "YY", "IW",
    "WW", "MM", "DD", "HH", "MI", "SS", "MS", "US", "AM", "PM", "am", "pm", "AD", "BC", "ad", "bc", "DY",
    "Dy", "dy", "TZ", "tz", "OF", "ID", "CC", "RM", "rm", "Q", "J", "D", "I", "Y", "W",
];

/// Parts that a span has.
const OF_SPANS: &[&str] = &[
    "Y,YYY", "YYYY", "YYY", "YY", "Y", "MM", "DD", "HH24", "HH12", "HH", "MI", "SS", "SSSS", "SSSSS", "MS",
    "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "A.M.", "P.M.", "a.m.", "p.m.", "AM", "PM", "am", "pm",
    "th", "TH",
];

/// `to_char(value, pattern)`
pub(super) fn to_char(now: Now, values: &[Value]) -> Result<Value, SqlError> {
    let pattern = text(values, 1)?;
    if matches!(values.first(), Some(Value::Integer(_) | Value::Real(_))) {
        return digits::to_char(now, values);
    }
    let own = text(values, 0)?;
    match moment::micros_of(&own) {
        Ok(Some(us)) if own.len() >= 10 => written_moment(us, own.ends_with("+00:00"), &pattern),
        Ok(None) => Ok(Value::Text(own)),
        _ => written_span(Interval::parse(&own)?, &pattern),
    }
}

/// A moment; one with a zone as it is where the session is.
fn written_moment(us: i64, zoned: bool, pattern: &str) -> Result<Value, SqlError> {
    let zone = zone::current().filter(|_| zoned);
    let utc = if zoned { "UTC" } else { "" };
    let (ahead, name) =
        zone.map_or_else(|| (0, utc.to_owned()), |zone| (zone.ahead(us), zone.abbreviation(us)));
    written(&Clock::of(us + ahead), &pieces(pattern)?, pattern, (&name, ahead)).map(Value::Text)
}

/// A span. What only a day of the calendar has is refused.
fn written_span(span: Interval, pattern: &str) -> Result<Value, SqlError> {
    let pieces = pieces(pattern)?;
    let foreign = pieces.iter().find(|piece| piece.is_part && !OF_SPANS.contains(&piece.text));
    if let Some(piece) = foreign {
        let message = format!("pattern \"{}\" means nothing of an interval", piece.text);
        return Err(SqlError::new("22007", message)
            .with_hint("a day of the calendar has it: add the interval to one"));
    }
    written(&Clock::of_span(span), &pieces, pattern, ("", 0)).map(Value::Text)
}

/// A moment taken apart, or a span, which has no day in the calendar.
struct Clock {
    /// Since 1970; 0 of a span.
    days: i64,
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    us: i64,
}

impl Clock {
    fn of(us: i64) -> Self {
        let (days, time) = (us.div_euclid(DAY_US), us.rem_euclid(DAY_US));
        let (year, month, day) = moment::date_of(days);
        Self { days, year, month, day, ..Self::of_time(time) }
    }

    fn of_span(span: Interval) -> Self {
        Self { year: span.months / 12, month: span.months % 12, day: span.days, ..Self::of_time(span.us) }
    }

    fn of_time(us: i64) -> Self {
        let (hour, minute, second) = (us / HOUR_US, us / MINUTE_US % 60, us / 1_000_000 % 60);
        Self { days: 0, year: 0, month: 0, day: 0, hour, minute, second, us: us % 1_000_000 }
    }
}

/// What a piece takes in a list that grows.
const PIECE_BYTES: usize = 3 * size_of::<Piece<'_>>();
/// What a character of a pattern becomes at most, while the text grows: `D` is a name of nine.
const WRITTEN_BYTES: usize = 3 * 9;

/// Microseconds of an hour and of a minute.
const HOUR_US: i64 = 3_600_000_000;
const MINUTE_US: i64 = 60_000_000;

/// A piece of a pattern.
#[derive(Clone, Copy)]
struct Piece<'p> {
    text: &'p str,
    /// It stands for something; else it is written as it stands.
    is_part: bool,
    /// Without blanks and zeros (`FM`).
    bare: bool,
}

/// A pattern's pieces.
fn pieces(pattern: &str) -> Result<Vec<Piece<'_>>, SqlError> {
    meter::take(pattern.len() * PIECE_BYTES)?;
    meter::work(pattern.len() * PARTS.len())?;
    let mut found = Vec::new();
    let mut rest = pattern;
    let mut bare = false;
    let as_it_stands = |text| Piece { text, is_part: false, bare: false };
    while let Some(first) = rest.chars().next() {
        // Names of other languages there are none, and reading is never loose.
        if let Some(behind) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("TM")) {
            bare = true;
            rest = behind;
            continue;
        }
        if let Some(behind) = rest.strip_prefix("FX") {
            rest = behind;
            continue;
        }
        if let Some(behind) = rest.strip_prefix("\\\"") {
            found.push(as_it_stands(&rest[1..2]));
            rest = behind;
            continue;
        }
        if let Some(behind) = rest.strip_prefix('"') {
            let end = behind.find('"').unwrap_or(behind.len());
            found.push(as_it_stands(&behind[..end]));
            rest = behind.get(end + 1..).unwrap_or_default();
            continue;
        }
        let part = PARTS.iter().find(|part| rest.starts_with(**part));
        let length = part.map_or_else(|| first.len_utf8(), |part| part.len());
        found.push(Piece { text: &rest[..length], is_part: part.is_some(), bare });
        bare &= part.is_none();
        rest = &rest[length..];
        // The ordinal's ending; and a number is never spelled.
        if part.is_some() && (rest.starts_with("th") || rest.starts_with("TH")) {
            found.push(Piece { text: &rest[..2], is_part: true, bare: false });
            rest = &rest[2..];
        } else if part.is_some() {
            rest = rest.strip_prefix("SP").unwrap_or(rest);
        }
    }
    Ok(found)
}

fn sign_of(ahead: i64) -> char {
    if ahead < 0 { '-' } else { '+' }
}

fn written(
    clock: &Clock,
    pieces: &[Piece<'_>],
    pattern: &str,
    (zone, ahead): (&str, i64),
) -> Result<String, SqlError> {
    meter::take(pattern.len() * WRITTEN_BYTES)?;
    let mut out = String::new();
    let mut last = 0;
    for &Piece { text: piece, is_part, bare } in pieces {
        if !is_part {
            out.push_str(piece);
            continue;
        }
        let (number, text) = match piece {
            "th" => (None, ordinal(last).to_owned()),
            "TH" => (None, ordinal(last).to_uppercase()),
            "TZ" => (None, zone.to_owned()),
            "tz" => (None, zone.to_lowercase()),
            "TZH" | "tzh" => (None, format!("{}{:02}", sign_of(ahead), ahead.abs() / HOUR_US)),
            "TZM" | "tzm" => (None, format!("{:02}", ahead.abs() / MINUTE_US % 60)),
            "OF" => (None, crate::look::offset(ahead / 1_000_000)),
            _ => part(clock, piece),
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
fn part(clock: &Clock, part: &str) -> (Option<i64>, String) {
    let &Clock { days, year, month, day, hour, minute, second, us } = clock;
    let weekday = (days + 4).rem_euclid(7);
    let (iso_year, iso_week) = iso_week(days);
    let iso_day = (days + 3).rem_euclid(7) + 1;
    // A minus sign has a place of its own.
    let numeric = |number: i64, width: usize| {
        let width = width + usize::from(number < 0);
        (Some(number), format!("{number:0width$}"))
    };
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
        "IYYY" => numeric(iso_year, 4),
        "IYY" => numeric(iso_year % 1000, 3),
        "IY" => numeric(iso_year % 100, 2),
        "I" => numeric(iso_year % 10, 1),
        "CC" => numeric((year + 99) / 100, 2),
        "MM" => numeric(month, 2),
        "RM" => (None, format!("{:4}", name(&ROMAN, month - 1))),
        "rm" => (None, format!("{:4}", name(&ROMAN, month - 1).to_lowercase())),
        // Its minus sign has none.
        "DD" => (Some(day), format!("{day:02}")),
        "DDD" => numeric(days - moment::days_of(year, 1, 1) + 1, 3),
        "D" => numeric(weekday + 1, 1),
        "ID" => numeric(iso_day, 1),
        "IDDD" => numeric((iso_week - 1) * 7 + iso_day, 3),
        "IW" => numeric(iso_week, 2),
        "WW" => numeric((days - moment::days_of(year, 1, 1)) / 7 + 1, 2),
        "W" => numeric((day - 1) / 7 + 1, 1),
        "Q" => numeric((month + 2) / 3, 1),
        "J" => numeric(days + 2_440_588, 1),
        "HH24" => numeric(hour, 2),
        "HH" | "HH12" => numeric(if hour % 12 == 0 { 12 } else { hour % 12 }, 2),
        "MI" => numeric(minute, 2),
        "SS" => numeric(second, 2),
        "SSSS" | "SSSSS" => numeric((hour * 60 + minute) * 60 + second, 1),
        "MS" | "FF3" => numeric(us / 1_000, 3),
        "US" | "FF6" => numeric(us, 6),
        "FF1" => numeric(us / 100_000, 1),
        "FF2" => numeric(us / 10_000, 2),
        "FF4" => numeric(us / 100, 4),
        "FF5" => numeric(us / 10, 5),
        "MONTH" | "Month" | "month" => (None, format!("{:9}", cased(name(&MONTHS, month - 1), part))),
        "MON" | "Mon" | "mon" => (None, cased(name(&MONTHS, month - 1)[..3].to_owned(), part)),
        "DAY" | "Day" | "day" => (None, format!("{:9}", cased(name(&DAYS, weekday), part))),
        "DY" | "Dy" | "dy" => (None, cased(name(&DAYS, weekday)[..3].to_owned(), part)),
        // All years are of this era.
        "AD" | "BC" => (None, "AD".to_owned()),
        "ad" | "bc" => (None, "ad".to_owned()),
        "A.D." | "B.C." => (None, "A.D.".to_owned()),
        "a.d." | "b.c." => (None, "a.d.".to_owned()),
        other => (None, half(other, hour % 24)),
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
    for Piece { text: piece, is_part, .. } in pieces(pattern)? {
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
        if matches!(piece, "HH12" | "HH") && !(1..=12).contains(&value) {
            let message = format!("hour \"{value}\" is invalid for the 12-hour clock");
            return Err(SqlError::new("22007", message)
                .with_hint("use the 24-hour clock, HH24, or an hour from 1 to 12"));
        }
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
