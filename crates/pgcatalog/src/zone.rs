//! Time zones by their names, as `SET TIME ZONE` and `AT TIME ZONE` take them.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use sqltext::error::SqlError;
use store::scalar::moment::DAY_US;
use store::scalar::zone::{Offsets, Zone};

use crate::limits::ZONES_MAX;

/// A zone as a setting shows it, and what it is; none is UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name, in the case of the list of zones.
    pub name: String,
    /// None for UTC itself.
    pub zone: Option<Zone>,
}

/// Names that mean UTC.
const UTC: &[&str] =
    &["UTC", "GMT", "Z", "Zulu", "UCT", "Etc/UTC", "Etc/GMT", "Etc/UCT", "Etc/Zulu", "Universal"];

/// What has been looked up: each is made once and stays.
static KNOWN: OnceLock<Mutex<HashMap<String, Named>>> = OnceLock::new();

/// The zone that a setting names: also a number of hours east of Greenwich, as `2` and `-5.5`.
pub fn find_setting(name: &str) -> Result<Named, SqlError> {
    match name.trim().parse::<f64>() {
        #[expect(clippy::cast_possible_truncation, reason = "bounded before")]
        Ok(hours) if hours.abs() < 168.0 => of_seconds((hours * 3_600.0).round() as i64),
        _ => find(name),
    }
}

/// The zone of a name, or of an offset as POSIX writes it: `-02:00` is two hours east of Greenwich.
pub fn find(name: &str) -> Result<Named, SqlError> {
    let trimmed = name.trim();
    let known = KNOWN.get_or_init(Mutex::default);
    let mut known = known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(found) = known.get(trimmed) {
        return Ok(found.clone());
    }
    let found = made(trimmed).ok_or_else(|| unknown(name))?;
    if known.len() >= ZONES_MAX {
        return Err(SqlError::new("53400", "this daemon has looked up too many time zones"));
    }
    known.insert(trimmed.to_owned(), found.clone());
    Ok(found)
}

/// A zone as it is now.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) abbreviation: String,
    /// East of Greenwich.
    pub(crate) seconds: i32,
    /// Whether it is summer time.
    pub(crate) summer: bool,
}

/// All zones of the system's list.
pub(crate) fn listed() -> impl Iterator<Item = Listed> {
    let now = Timestamp::now();
    jiff::tz::db().available().filter_map(move |name| {
        let zone = TimeZone::get(name.as_str()).ok()?;
        let info = zone.to_offset_info(now);
        Some(Listed {
            name: name.as_str().to_owned(),
            abbreviation: info.abbreviation().to_owned(),
            seconds: info.offset().seconds(),
            summer: info.dst().is_dst(),
        })
    })
}

/// The zone that is so many seconds east of Greenwich: PostgreSQL calls it `<+02>-02`.
pub fn of_seconds(seconds: i64) -> Result<Named, SqlError> {
    let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
    let offset = match minutes % 60 {
        0 => format!("{:02}", minutes / 60),
        rest => format!("{:02}:{rest:02}", minutes / 60),
    };
    let other = if sign == '-' { '+' } else { '-' };
    find(&format!("<{sign}{offset}>{other}{offset}"))
}

#[cold]
fn unknown(name: &str) -> SqlError {
    SqlError::new("22023", format!("time zone \"{name}\" not recognized"))
        .with_hint("zones have the names of the IANA list, as Europe/Berlin; UTC and offsets work, too")
}

fn made(name: &str) -> Option<Named> {
    if let Some(utc) = UTC.iter().find(|utc| utc.eq_ignore_ascii_case(name)) {
        return Some(Named { name: (*utc).to_owned(), zone: None });
    }
    if let Some(seconds) = posix_offset(name) {
        return Some(fixed(name, seconds));
    }
    let zone = TimeZone::get(name).ok()?;
    let name = zone.iana_name()?.to_owned();
    let offsets: &'static Place = Box::leak(Box::new(Place(zone)));
    Some(Named { name, zone: Some(Zone::new(offsets)) })
}

fn fixed(name: &str, seconds: i64) -> Named {
    let offsets: &'static Fixed = Box::leak(Box::new(Fixed(seconds)));
    let zone = (seconds != 0).then(|| Zone::new(offsets));
    Named { name: name.to_owned(), zone }
}

/// Letters that the name of an offset has at least.
const NAME_LETTERS: usize = 3;

/// Seconds east of Greenwich of `+02:00`, `-05`, `<+02>-02`, `UTC+3`, `EST5`: POSIX counts to the west.
fn posix_offset(text: &str) -> Option<i64> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let text = match text.strip_prefix('<') {
        Some(named) => named.split_once('>')?.1,
        None => &text[letters..],
    };
    let named = letters >= NAME_LETTERS;
    let (sign, fields) = match text.as_bytes().first()? {
        b'+' if named || letters == 0 => (-1, &text[1..]),
        b'-' if named || letters == 0 => (1, &text[1..]),
        b'0'..=b'9' if named => (-1, text),
        _ => return None,
    };
    let mut seconds = 0;
    let mut unit = 3_600;
    for field in fields.split(':') {
        let short = (1..=2).contains(&field.len()) && field.bytes().all(|byte| byte.is_ascii_digit());
        seconds += field.parse::<i64>().ok().filter(|_| short && unit > 0)? * unit;
        unit /= 60;
    }
    (seconds < 168 * 3_600).then_some(sign * seconds)
}

/// A place of the list.
struct Place(TimeZone);

impl Offsets for Place {
    fn at(&self, us: i64) -> i64 {
        i64::from(self.0.to_offset(moment_of(us)).seconds())
    }

    /// Of an hour that is there twice the second, of one that is not there as if the clock had not been moved.
    fn at_local(&self, local_us: i64) -> i64 {
        let Some(local) = civil(local_us) else { return 0 };
        let moment = self.0.to_ambiguous_timestamp(local).later();
        let offset = moment.map(|moment| (local_us - moment.as_microsecond()).div_euclid(1_000_000));
        offset.unwrap_or_else(|_| self.at(local_us))
    }

    fn abbreviation(&self, us: i64) -> String {
        self.0.to_offset_info(moment_of(us)).abbreviation().to_owned()
    }
}

/// A moment; one of the last day of the year 9999 has the offset of the day before.
fn moment_of(us: i64) -> Timestamp {
    let (first, last) = (Timestamp::MIN.as_microsecond(), Timestamp::MAX.as_microsecond());
    Timestamp::from_microsecond(us.clamp(first, last)).unwrap_or_default()
}

fn civil(us: i64) -> Option<DateTime> {
    let days = i32::try_from(us.div_euclid(DAY_US)).ok()?;
    let midnight = DateTime::constant(1970, 1, 1, 0, 0, 0, 0).checked_add(days.days()).ok()?;
    midnight.checked_add(us.rem_euclid(DAY_US).microseconds()).ok()
}

/// An offset that never changes.
struct Fixed(i64);

impl Offsets for Fixed {
    fn at(&self, _: i64) -> i64 {
        self.0
    }

    fn at_local(&self, _: i64) -> i64 {
        self.0
    }

    fn abbreviation(&self, _: i64) -> String {
        let (sign, seconds) = (if self.0 < 0 { '-' } else { '+' }, self.0.abs());
        format!("{sign}{:02}", seconds / 3_600)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::scalar::moment::{micros_of, write_timestamp};

    #[test]
    fn zones_as_postgresql_knows_them() {
        for (name, shown, moment, local) in [
            ("Europe/Berlin", "Europe/Berlin", "2026-07-21 20:00", "2026-07-21 22:00:00"),
            ("europe/berlin", "Europe/Berlin", "2026-01-21 20:00", "2026-01-21 21:00:00"),
            ("Asia/Kolkata", "Asia/Kolkata", "2026-01-01 00:00", "2026-01-01 05:30:00"),
            ("EST5EDT", "EST5EDT", "2026-01-01 00:00", "2025-12-31 19:00:00"),
            ("2", "<+02>-02", "2026-01-01 00:00", "2026-01-01 02:00:00"),
            ("-5.5", "<-05:30>+05:30", "2026-01-01 00:00", "2025-12-31 18:30:00"),
            ("+02:00", "+02:00", "2026-01-01 00:00", "2025-12-31 22:00:00"),
            ("<+02>-02", "<+02>-02", "2026-01-01 00:00", "2026-01-01 02:00:00"),
            ("UTC+3", "UTC+3", "2026-01-01 00:00", "2025-12-31 21:00:00"),
            ("EST5", "EST5", "2026-01-01 00:00", "2025-12-31 19:00:00"),
            ("0", "<+00>-00", "2026-01-01 00:00", "2026-01-01 00:00:00"),
            ("utc", "UTC", "2026-01-01 00:00", "2026-01-01 00:00:00"),
        ] {
            let found = find_setting(name).unwrap();
            assert_eq!(found.name, shown, "{name}");
            let us = micros_of(moment).unwrap().unwrap();
            let ahead = found.zone.map_or(0, |zone| zone.ahead(us));
            assert_eq!(write_timestamp(us + ahead).unwrap(), local, "{name}");
        }
        for name in ["Nowhere/Berlin", "CEST", "", "+2:xx", "+99999"] {
            assert_eq!(find_setting(name).unwrap_err().state, "22023", "{name}");
        }
    }

    #[test]
    fn hours_that_are_not_there_or_there_twice() {
        let berlin = find("Europe/Berlin").unwrap().zone.unwrap();
        for (local, utc) in [
            ("2026-10-25 02:30", "2026-10-25 01:30:00"),
            ("2026-03-29 02:30", "2026-03-29 01:30:00"),
            ("2026-03-29 03:30", "2026-03-29 01:30:00"),
            ("2026-06-01 12:00", "2026-06-01 10:00:00"),
            ("0001-01-02 12:00", "0001-01-02 11:06:32"),
            ("9999-12-31 12:00", "9999-12-31 11:00:00"),
        ] {
            let us = micros_of(local).unwrap().unwrap();
            assert_eq!(write_timestamp(berlin.to_utc(us)).unwrap(), utc, "{local}");
        }
    }
}
