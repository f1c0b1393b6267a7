//! Dates and times, in the style ISO, which means the same in each style of dates.

use postgres::{Datum, Format, encode, oid};

use super::decoded;

/// `2026-11-29`
pub(super) fn date(text: &str) -> Option<String> {
    is_like(text, "0000-00-00").then(|| text.to_owned()).filter(|text| is_in_range(text))
}

/// `2026-11-29 10:00:00.5`, without a zone: PostgreSQL would pass over one.
pub(super) fn timestamp(text: &str) -> Option<String> {
    let zone = zone_of(text)?;
    if zone.is_empty() { through_binary(oid::TIMESTAMP, text) } else { None }
}

/// The same with a zone: without one it means that of the session.
pub(super) fn timestamptz(text: &str) -> Option<String> {
    let zone = zone_of(text)?;
    let digits = zone.strip_prefix(['+', '-']).unwrap_or_default();
    let is_known = zone == "Z" || ["00", "0000", "00:00"].iter().any(|like| is_like(digits, like));
    if is_known { through_binary(oid::TIMESTAMPTZ, text) } else { None }
}

/// A value in binary format, of a year from 1 to 9999.
pub(super) fn of_binary(type_oid: u32, bytes: &[u8]) -> Option<String> {
    decoded(type_oid, Format::Binary, bytes).filter(|text| is_in_range(text))
}

/// The year before 1 is written in another way.
fn is_in_range(text: &str) -> bool {
    !text.starts_with("0000")
}

fn through_binary(type_oid: u32, text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    encode(type_oid, Format::Binary, Datum::Text(text), &mut bytes).ok()?;
    of_binary(type_oid, &bytes)
}

/// What follows a date, a time, and up to six digits of a second's fraction.
fn zone_of(text: &str) -> Option<&str> {
    let (head, rest) = text.split_at_checked("2026-11-29 10:00:00".len())?;
    let is_plain = is_like(head, "0000-00-00 00:00:00") || is_like(head, "0000-00-00T00:00:00");
    let Some(fraction) = rest.strip_prefix('.') else { return is_plain.then_some(rest) };
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    (is_plain && (1..=6).contains(&digits)).then(|| &fraction[digits..])
}

/// Whether a text has digits where the other has zeros, and else the same.
fn is_like(text: &str, like: &str) -> bool {
    let same = |(own, like): (u8, u8)| if like == b'0' { own.is_ascii_digit() } else { own == like };
    text.len() == like.len() && text.bytes().zip(like.bytes()).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_are_written_in_one_way() {
        let day = "2026-11-29 10:00:00";
        for (text, plain, zoned) in [
            (day, Some(day), None),
            ("2026-11-29T10:00:00", Some(day), None),
            ("2026-11-29 10:00:00.500", Some("2026-11-29 10:00:00.5"), None),
            ("2026-11-29 10:00:00.1234567", None, None),
            ("2026-11-29 10:00:00+00", None, Some("2026-11-29 10:00:00+00")),
            ("2026-11-29 10:00:00.250Z", None, Some("2026-11-29 10:00:00.25+00")),
            ("2026-11-29 10:00:00+05:30", None, Some("2026-11-29 04:30:00+00")),
            ("2026-12-31 23:00:00-02", None, Some("2027-01-01 01:00:00+00")),
            ("2026-11-29 10:00:00 Europe/Berlin", None, None),
            ("2026-02-30 10:00:00", None, None),
            ("0000-01-01 00:00:00", None, None),
            ("29.11.2026 10:00:00", None, None),
            ("2026-11-29", None, None),
            ("infinity", None, None),
        ] {
            assert_eq!((timestamp(text).as_deref(), timestamptz(text).as_deref()), (plain, zoned), "{text}");
        }
    }
}
