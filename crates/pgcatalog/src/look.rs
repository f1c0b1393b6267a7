//! How values are shown that a session may want in another form: moments in its time zone, spans in its style.

use store::definition::SqlType;
use store::scalar::interval::{Interval, Style};
use store::scalar::zone::Zone;
use store::scalar::{Refusal, array, moment};
use store::value::Value;

/// What a session wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// `TimeZone`; none is UTC.
    pub zone: Option<Zone>,
    /// `IntervalStyle`
    pub style: Style,
}

impl Look {
    /// Whether values are shown as they are kept.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.zone.is_none() && self.style == Style::Postgres
    }

    /// How a value of a type is shown, where it is not as it is kept.
    pub fn shown(&self, type_oid: u32, text: &str) -> Option<String> {
        let ty = SqlType::of_oid(type_oid)?;
        if !ty.is_array() {
            return self.value_shown(ty, text);
        }
        let element = ty.scalar();
        if !matches!(element, SqlType::Timestamptz | SqlType::Interval) {
            return None;
        }
        let change = |text: String| Ok(Value::Text(self.value_shown(element, &text).unwrap_or(text)));
        match array::each_text(text, SqlType::Text, change) {
            Ok(Value::Text(array)) => Some(array),
            _ => None,
        }
    }

    fn value_shown(&self, ty: SqlType, text: &str) -> Option<String> {
        match ty {
            SqlType::Timestamptz => zoned(self.zone?, text),
            SqlType::Interval if self.style != Style::Postgres => {
                Interval::parse(text).ok().map(|span| span.write_as(self.style))
            }
            _ => None,
        }
    }
}

/// A moment with the offset of its zone; none for what is no moment.
fn zoned(zone: Zone, text: &str) -> Option<String> {
    let us = moment::micros_of(text).ok()??;
    write_zoned(zone, us).ok()
}

/// A moment as a zone's clock shows it, with its offset.
pub(crate) fn write_zoned(zone: Zone, us: i64) -> Result<String, Refusal> {
    let ahead = zone.ahead(us);
    let local = moment::write_timestamp(us + ahead)?;
    Ok(local + &offset(ahead / 1_000_000))
}

/// `+02`, `-05:30`, `+00:53:28`
pub(crate) fn offset(seconds: i64) -> String {
    let (sign, seconds) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match (minutes, rest) {
        (0, 0) => format!("{sign}{hours:02}"),
        (_, 0) => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}:{rest:02}"),
    }
}
