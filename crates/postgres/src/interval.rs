//! Spans of time: the text in which they are kept, `1 year 2 mons 3 days 04:05:06.7`, and PostgreSQL's sixteen bytes.

use crate::datetime::Micros;

const MICROS_PER_SECOND: u64 = 1_000_000;

/// Months, days and microseconds apart, as PostgreSQL keeps them.
#[derive(Default)]
struct Span {
    micros: Micros,
    days: i32,
    months: i32,
}

/// The text of PostgreSQL's bytes: microseconds, days, months.
pub(crate) fn read_binary(bytes: [u8; 16]) -> String {
    let wide = u128::from_be_bytes(bytes);
    #[expect(clippy::cast_possible_truncation, reason = "the fields are cut out")]
    let span = Span { micros: (wide >> 64) as i64, days: (wide >> 32) as i32, months: wide as i32 };
    span.text()
}

/// PostgreSQL's bytes of a text; none when it is no span of time.
pub(crate) fn write_binary(text: &str) -> Option<[u8; 16]> {
    let span = Span::read(text)?;
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&span.micros.to_be_bytes());
    bytes[8..12].copy_from_slice(&span.days.to_be_bytes());
    bytes[12..].copy_from_slice(&span.months.to_be_bytes());
    Some(bytes)
}

impl Span {
    fn text(&self) -> String {
        let counted = [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")];
        let mut parts: Vec<String> = counted
            .iter()
            .filter(|(count, _)| *count != 0)
            .map(|(count, unit)| format!("{count} {unit}{}", if *count == 1 { "" } else { "s" }))
            .collect();
        if self.micros != 0 || parts.is_empty() {
            parts.push(clock_text(self.micros));
        }
        parts.join(" ")
    }

    /// Reads counted units, then perhaps a time, which may have more than 24 hours.
    fn read(text: &str) -> Option<Self> {
        let mut span = Self::default();
        let mut words = text.split_ascii_whitespace();
        while let Some(word) = words.next() {
            if word.contains(':') {
                span.micros = span.micros.checked_add(read_clock(word)?)?;
                continue;
            }
            let count: i32 = word.parse().ok()?;
            let (field, factor) = match words.next()?.trim_end_matches('s') {
                "year" => (&mut span.months, 12),
                "mon" => (&mut span.months, 1),
                "day" => (&mut span.days, 1),
                _ => return None,
            };
            *field = field.checked_add(count.checked_mul(factor)?)?;
        }
        Some(span)
    }
}

fn clock_text(micros: Micros) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let seconds = micros.unsigned_abs() / MICROS_PER_SECOND;
    let fraction = micros.unsigned_abs() % MICROS_PER_SECOND;
    let mut text = format!("{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        text.push('.');
        text.push_str(format!("{fraction:06}").trim_end_matches('0'));
    }
    text
}

fn read_clock(text: &str) -> Option<Micros> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut fields = digits.split(':');
    let hours: i64 = fields.next()?.parse().ok()?;
    let minutes: u8 = fields.next()?.parse().ok()?;
    let (seconds, fraction) = match fields.next()? {
        field if field.contains('.') => field.split_once('.')?,
        field => (field, ""),
    };
    let seconds: u8 = seconds.parse().ok()?;
    // Digits beyond microseconds are cut off.
    let fraction: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let whole = hours.checked_mul(3_600)?.checked_add(i64::from(minutes) * 60 + i64::from(seconds))?;
    let micros = whole.checked_mul(1_000_000)?.checked_add(fraction)?;
    fields.next().is_none().then_some(if negative { -micros } else { micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in [
            "00:00:00",
            "1 day",
            "40 days 30:00:00.000005",
            "1 year 2 mons 3 days 04:05:06.7",
            "-1 years -2 mons 3 days -00:00:01.5",
            "-2147483648 days",
        ] {
            assert_eq!(write_binary(text).map(read_binary).as_deref(), Some(text));
        }
    }

    #[test]
    fn the_bytes_are_postgresqls() {
        let mut bytes = [0; 16];
        bytes[7] = 5;
        bytes[11] = 3;
        bytes[15] = 14;
        assert_eq!(write_binary("1 year 2 mons 3 days 00:00:00.000005"), Some(bytes));
    }

    #[test]
    fn the_ends_of_the_range() {
        for bytes in [[0xff; 16], [0x80; 16], [0x7f; 16]] {
            assert_eq!(write_binary(&read_binary(bytes)), Some(bytes));
        }
        let least = i64::MIN.to_be_bytes();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&least);
        assert_eq!(read_binary(bytes), "-2562047788:00:54.775808");
    }

    #[test]
    fn what_is_none() {
        for text in ["1", "day", "1 fortnight", "1:2:3:4", "99999999999 days", "2147483647 years", "1:2:x"] {
            assert_eq!(write_binary(text), None, "{text}");
        }
    }
}
