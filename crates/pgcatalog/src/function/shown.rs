//! Values as text where that is not how they are kept: moments in the session's zone, arrays in braces.

use SqlType::{Text, Timestamptz};
use sqltext::error::SqlError;
use store::definition::SqlType;
use store::scalar::{Refusal, array, float, moment, zone};
use store::value::Value;

use super::cast::take_elements;
use super::def::{FunctionDef, Numeric, Returns, Source, text};
use crate::look;

const fn own(
    name: &'static str,
    arguments: &'static str,
    types: &'static [SqlType],
    source: Source,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    let (returns, numeric, of_floats) = (Returns::Type(Text), None, None);
    FunctionDef {
        name,
        arguments,
        returns,
        types,
        source,
        numeric,
        of_floats,
        of_spans: None,
        meaning,
        example,
        answer,
    }
}

/// What conversions to text and to JSON become.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("array_text", "(array)", &[], Source::Own(|_, v| in_braces(v), 1, 1),
        "what `array::text` is", "ARRAY['a', 'b c']::text", "{a,\"b c\"}"),
    own("float4_text", "(number)", &[], Source::Own(|_, v| float_text(v, true), 1, 1),
        "what `number::text` is of a `REAL`", "(0.1::float4)::text", "0.1").numeric(Numeric::Nearest),
    own("float8_text", "(number)", &[], Source::Own(|_, v| float_text(v, false), 1, 1),
        "what `number::text` is of a `DOUBLE PRECISION`: the fewest digits that read back as the same number", "(100::float8)::text", "100").numeric(Numeric::Nearest),
    own("zoned_json", "(moment)", &[], Source::Own(|_, v| each(v, json), 1, 1),
        "the moment, or each of an array, as JSON has it; one with a zone by the session's time zone", "zoned_json('2026-11-21 20:00+00'::timestamptz)", "2026-11-21T20:00:00+00:00"),
    own("zoned_text", "(moment)", &[Timestamptz], Source::Own(|_, v| each(v, zoned), 1, 1),
        "what `moment::text` is, or each of an array: what the clock of the session's time zone shows, with its offset", "zoned_text('2026-11-21 20:00+00'::timestamptz)", "2026-11-21 20:00:00+00"),
];

/// An array as PostgreSQL writes it; what is none in JSON stays as it is.
fn in_braces(values: &[Value]) -> Result<Value, SqlError> {
    let whole = text(values, 0)?;
    take_elements(&whole)?;
    Ok(Value::Text(array::braces(&whole).unwrap_or(whole)))
}

/// A float as PostgreSQL writes it. What is no float is what SQLite has in the place of one.
fn float_text(values: &[Value], single: bool) -> Result<Value, SqlError> {
    #[allow(clippy::cast_precision_loss, reason = "the value's type is a float")]
    let number = match values.first() {
        Some(Value::Real(number)) => *number,
        Some(Value::Integer(number)) => *number as f64,
        _ => return Ok(Value::Text(text(values, 0)?)),
    };
    Ok(Value::Text(if single { float::single_text(number) } else { float::text(number) }))
}

/// A moment, or an array of moments, written otherwise.
fn each(values: &[Value], write: fn(&str) -> Result<String, Refusal>) -> Result<Value, SqlError> {
    let whole = text(values, 0)?;
    if !whole.starts_with('[') {
        return Ok(Value::Text(write(&whole)?));
    }
    take_elements(&whole)?;
    Ok(array::each_text(&whole, Text, |moment| write(&moment).map(Value::Text))?)
}

/// Whether it is a time of day with its offset: which clock a zone has then is not known without a date.
fn is_time(moment: &str) -> bool {
    moment.as_bytes().get(2) == Some(&b':')
}

/// A moment with a zone, as the session's clock shows it.
pub(super) fn zoned(of: &str) -> Result<String, Refusal> {
    if is_time(of) {
        return Ok(of.strip_suffix(":00").unwrap_or(of).to_owned());
    }
    let Some(us) = moment::micros_of(of)? else { return Ok(of.to_owned()) };
    match zone::current() {
        Some(zone) => look::write_zoned(zone, us),
        None => Ok(moment::write_timestamp(us)? + "+00"),
    }
}

/// A moment with or without a zone, or a date, as JSON has it.
fn json(of: &str) -> Result<String, Refusal> {
    if !of.ends_with("+00:00") || is_time(of) {
        return Ok(of.replace(' ', "T"));
    }
    let shown = zoned(of)?.replace(' ', "T");
    // Whole hours have their minutes there.
    let is_short = matches!(shown.as_bytes(), [.., b'+' | b'-', _, _]);
    Ok(if is_short { shown + ":00" } else { shown })
}

#[cfg(test)]
mod tests {
    use store::scalar::zone::within;

    use super::*;

    const MOMENT: &str = "2024-07-01 10:30:00.25+00:00";

    fn asked(write: fn(&str) -> Result<String, Refusal>, of: &str) -> Value {
        each(&[Value::from(of)], write).unwrap()
    }

    #[test]
    fn moments_are_written_by_the_clock_of_the_zone() {
        for (name, text, iso) in [
            ("UTC", "2024-07-01 10:30:00.25+00", "2024-07-01T10:30:00.25+00:00"),
            ("Europe/Berlin", "2024-07-01 12:30:00.25+02", "2024-07-01T12:30:00.25+02:00"),
            ("Asia/Kolkata", "2024-07-01 16:00:00.25+05:30", "2024-07-01T16:00:00.25+05:30"),
        ] {
            let zone = crate::zone::find(name).unwrap().zone;
            within(zone, || {
                assert_eq!(asked(zoned, MOMENT), Value::from(text));
                assert_eq!(asked(json, MOMENT), Value::from(iso));
                let array = format!("[\"{MOMENT}\",null]");
                assert_eq!(asked(zoned, &array), Value::Text(format!("[\"{text}\",null]")));
                assert_eq!(asked(json, &array), Value::Text(format!("[\"{iso}\",null]")));
            });
        }
    }

    #[test]
    fn floats_are_written_as_postgresql_writes_them() {
        for (number, double, single) in [
            (0.0, "0", "0"),
            (1.0, "1", "1"),
            (-1.5, "-1.5", "-1.5"),
            (0.1, "0.1", "0.1"),
            (1e5, "100000", "100000"),
            (1e6, "1000000", "1e+06"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "1e-05", "1e-05"),
            (123_456_789_012_345.0, "123456789012345", "1.2345679e+14"),
            (1e15, "1e+15", "1e+15"),
            (1e30, "1e+30", "1e+30"),
            (f64::NEG_INFINITY, "-Infinity", "-Infinity"),
        ] {
            assert_eq!(float_text(&[Value::Real(number)], false), Ok(Value::from(double)));
            assert_eq!(float_text(&[Value::Real(number)], true), Ok(Value::from(single)));
        }
        assert_eq!(float_text(&[Value::Integer(7)], false), Ok(Value::from("7")));
        assert_eq!(float_text(&[Value::from("NaN")], false), Ok(Value::from("NaN")));
    }

    #[test]
    fn what_has_no_zone_stays() {
        for (of, text, iso) in [
            ("infinity", "infinity", "infinity"),
            ("[]", "[]", "[]"),
            ("20:05:00+00:00", "20:05:00+00", "20:05:00+00:00"),
        ] {
            assert_eq!(asked(zoned, of), Value::from(text));
            assert_eq!(asked(json, of), Value::from(iso));
        }
        assert_eq!(asked(json, "2024-07-01 10:30:00"), Value::from("2024-07-01T10:30:00"));
        assert_eq!(asked(json, "2024-07-01"), Value::from("2024-07-01"));
    }
}
