//! Functions of dates, times and spans.

use std::time::Duration;

use SqlType::{Date, Float8, Int4, Text, Timestamp, Timestamptz};
use sqltext::error::{SqlError, state};
use store::definition::SqlType;
use store::patience;
use store::scalar::interval::Interval;
use store::scalar::moment::{self, DAY_US};
use store::scalar::{accept, zone};
use store::value::Value;

use super::cast::convert;
use super::def::{FunctionDef, Now, Numeric, Returns, Source, integer, real, text};
use super::format;
use super::shown;
use super::text::unknown_word;
use crate::look;

#[expect(clippy::too_many_arguments, reason = "one line of a table, each part of it")]
const fn own(
    name: &'static str,
    arguments: &'static str,
    returns: Returns,
    types: &'static [SqlType],
    source: Source,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    FunctionDef {
        name,
        arguments,
        returns,
        types,
        source,
        numeric: None,
        of_floats: None,
        of_spans: None,
        meaning,
        example,
        answer,
    }
}

const fn ty(ty: SqlType) -> Returns {
    Returns::Type(ty)
}

const fn now(name: &'static str, meaning: &'static str, example: &'static str) -> FunctionDef {
    own(
        name,
        "()",
        ty(Timestamptz),
        &[],
        Source::Raw(|now, _| Ok(Value::Text(moment::write_timestamptz(now.us)?)), 0, 0, true),
        meaning,
        example,
        "1",
    )
}

const fn clock(
    name: &'static str,
    of: SqlType,
    run: fn(Now, &[Value]) -> Result<Value, SqlError>,
    meaning: &'static str,
    example: &'static str,
) -> FunctionDef {
    own(name, "()", ty(of), &[], Source::Raw(run, 0, 0, true), meaning, example, "1")
}

/// Dates and times. All moments are those of UTC.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("age", "(moment, earlier)", ty(SqlType::Interval), &[Timestamptz, Timestamptz], Source::Own(age, 1, 2),
        "the time between two moments in years, months and days; with one argument, from it to today", "age('2026-03-01'::date, '2025-01-15'::date)", "1 year 1 mon 17 days"),
    now("clock_timestamp", "when the statement began, as `now()`", "clock_timestamp() = now()"),
    clock("current_date", Date, |now, _| on_clock(now, Date),
        "the date in the session's time zone when the statement began; written without parentheses", "CURRENT_DATE > '2020-01-01'"),
    clock("current_time", SqlType::Timetz, |now, _| on_clock(now, SqlType::Timetz),
        "the time of day with its offset, as `CURRENT_DATE`", "CURRENT_TIME = now()::timetz"),
    now("current_timestamp", "when the statement began, as `now()`; written without parentheses", "CURRENT_TIMESTAMP = now()"),
    own("date_bin", "(stride, moment, origin)", Returns::Second, &[SqlType::Interval], Source::Own(date_bin, 3, 3),
        "cut down to a multiple of the stride since the origin", "date_bin('15 min', '2026-11-21 20:44:17'::timestamp, '2001-01-01'::timestamp)", "2026-11-21 20:30:00"),
    own("date_part", "(field, moment or interval)", ty(Float8), &[Text], Source::Own(date_part, 2, 2),
        "a field, as `extract(field FROM moment)`: `year`, `month`, `day`, `hour`, `minute`, `second`, `dow`, `isodow`, `doy`, `week`, `quarter`, `epoch`, `milliseconds`, `microseconds`, `decade`, `century`, `isoyear`", "date_part('year', '2026-11-21'::date)", "2026"),
    own("date_trunc", "(field, moment, zone)", Returns::Second, &[Text], Source::Own(date_trunc, 2, 3),
        "cut down to the field: `hour`, `day`, `week`, `month`, `quarter`, `year`...; by the clock of a zone, if one is named", "date_trunc('month', '2026-11-21 20:00'::timestamp)", "2026-11-01 00:00:00"),
    own("moment_round", "(moment, digits)", Returns::Argument, &[], Source::Own(rounded, 2, 2),
        "with so many digits behind the second, as `moment::timestamp(digits)`", "'20:44:17.86'::time(1)", "20:44:17.9").numeric(Numeric::Nearest),
    own("interval_divided", "(interval, number)", ty(SqlType::Interval), &[], Source::Own(|_, v| times(v, true), 2, 2),
        "what `interval / number` is", "interval '1 day' / 2", "12:00:00").numeric(Numeric::Nearest),
    own("interval_order", "(interval)", ty(SqlType::Int8), &[SqlType::Interval], Source::Own(|_, v| Ok(Value::Integer(Interval::parse(&text(v, 0)?)?.order())), 1, 1),
        "the microseconds by which it is compared, a month being 30 days", "interval_order('1 mon') = interval_order('30 days')", "1"),
    own("interval_seconds", "(interval)", ty(Float8), &[SqlType::Interval], Source::Own(|_, v| Ok(Value::Real(Interval::parse(&text(v, 0)?)?.seconds())), 1, 1),
        "its length in seconds", "interval_seconds('1 min')", "60.0"),
    own("interval_times", "(interval, number)", ty(SqlType::Interval), &[], Source::Own(|_, v| times(v, false), 2, 2),
        "what `interval * number` is", "interval '1 hour' * 1.5", "01:30:00").numeric(Numeric::Nearest),
    own("isfinite", "(moment or interval)", ty(SqlType::Bool), &[], Source::Own(|_, v| Ok(Value::Integer(i64::from(!text(v, 0)?.contains("infinity")))), 1, 1),
        "whether it is a moment, and not `infinity`", "isfinite('2026-11-21'::date)", "1"),
    own("justify_days", "(interval)", ty(SqlType::Interval), &[SqlType::Interval], Source::Own(|_, v| justified(v, Interval::days_as_months), 1, 1),
        "with thirty days as a month", "justify_days('40 days'::interval)", "1 mon 10 days"),
    own("justify_hours", "(interval)", ty(SqlType::Interval), &[SqlType::Interval], Source::Own(|_, v| justified(v, Interval::hours_as_days), 1, 1),
        "with 24 hours as a day", "justify_hours('30 hours'::interval)", "1 day 06:00:00"),
    clock("localtime", SqlType::Time, |now, _| on_clock(now, SqlType::Time),
        "the time of day, as `CURRENT_DATE`", "LOCALTIME = now()::time"),
    clock("localtimestamp", Timestamp, |now, _| on_clock(now, Timestamp),
        "the date and the time of day, as `CURRENT_DATE`", "LOCALTIMESTAMP = now()::timestamp"),
    own("make_interval", "(years, months, weeks, days, hours, mins, secs)", ty(SqlType::Interval), &[Int4, Int4, Int4, Int4, Int4, Int4, Float8], Source::Own(make_interval, 0, 7),
        "a span of its parts; what is left out is 0", "make_interval(days => 2, hours => 3)", "2 days 03:00:00").numeric(Numeric::Nearest),
    own("make_date", "(year, month, day)", ty(Date), &[Int4, Int4, Int4], Source::Own(make_date, 3, 3),
        "a date of its parts", "make_date(2026, 11, 21)", "2026-11-21"),
    own("make_time", "(hour, min, sec)", ty(SqlType::Time), &[Int4, Int4, Float8], Source::Own(make_time, 3, 3),
        "a time of day of its parts", "make_time(20, 5, 1.5)", "20:05:01.5").numeric(Numeric::Nearest),
    own("make_timestamp", "(year, month, mday, hour, min, sec)", ty(Timestamp), &[Int4, Int4, Int4, Int4, Int4, Float8], Source::Own(make_timestamp, 6, 6),
        "a moment of its parts", "make_timestamp(2026, 11, 21, 20, 5, 1.5)", "2026-11-21 20:05:01.5").numeric(Numeric::Nearest),
    own("moment_minus", "(moment, moment or interval)", ty(SqlType::Interval), &[], Source::Own(minus, 2, 2),
        "what `-` is where a side is a moment", "'2026-11-21'::date - '2026-11-01'::date", "20"),
    own("moment_plus", "(moment, interval)", Returns::Argument, &[], Source::Own(plus, 2, 2),
        "what `+` is where a side is a moment", "'2026-01-31'::timestamp + interval '1 month'", "2026-02-28 00:00:00"),
    now("now", "when the statement began", "now() > '2020-01-01'"),
    own("pg_sleep", "(seconds)", ty(SqlType::Void), &[Float8], Source::Raw(sleep, 1, 1, true),
        "waits, and keeps one of the SQL threads; stopped by `statement_timeout`", "pg_sleep(0)", "").numeric(Numeric::Nearest),
    now("statement_timestamp", "when the statement began, as `now()`", "statement_timestamp() = now()"),
    own("timezone", "(zone, moment)", ty(Timestamp), &[Text], Source::Own(timezone, 2, 2),
        "what `moment AT TIME ZONE zone` is; zones have the names of the IANA list. An offset as text counts to the west, as POSIX has it; an interval counts to the east", "'2026-11-21 20:00+00'::timestamptz AT TIME ZONE 'Europe/Berlin'", "2026-11-21 21:00:00"),
    own("timezone_away", "(interval, moment)", ty(Timestamp), &[SqlType::Interval], Source::Own(timezone_away, 2, 2),
        "what `moment AT TIME ZONE interval` is", "'2026-11-21 20:00+00'::timestamptz AT TIME ZONE interval '2 hours'", "2026-11-21 22:00:00"),
    own("time_minus", "(time, interval)", ty(SqlType::Time), &[SqlType::Time, SqlType::Interval], Source::Own(|_, v| time_moved(v, true), 2, 2),
        "what `time - interval` is: it goes round the clock", "'01:00'::time - interval '2 hours'", "23:00:00"),
    own("time_plus", "(time, interval)", ty(SqlType::Time), &[SqlType::Time, SqlType::Interval], Source::Own(|_, v| time_moved(v, false), 2, 2),
        "what `time + interval` is: it goes round the clock", "'12:00'::time + interval '13 hours'", "01:00:00"),
    own("to_char", "(moment, interval or number, pattern)", ty(Text), &[], Source::Own(format::to_char, 2, 2),
        "written by a pattern: `YYYY`, `MM`, `DD`, `HH24`, `HH12`, `MI`, `SS`, `MS`, `US`, `AM`, `Mon`, `Month`, `Dy`, `Day`, `D`, `DDD`, `IW`, `Q`, `TZ`, `FM`, \"text\"; numbers: `9`, `0`, `.`, `,`, `FM`", "to_char('2026-11-21 20:05'::timestamp, 'DD.MM.YYYY HH24:MI')", "21.11.2026 20:05").numeric(Numeric::Exact("numeric_to_char")).of_floats("numeric_to_char"),
    own("to_date", "(text, pattern)", ty(Date), &[Text, Text], Source::Own(|_, v| { let us = format::read(&text(v, 0)?, &text(v, 1)?)?; Ok(Value::Text(moment::write_date(us.div_euclid(DAY_US)))) }, 2, 2),
        "a date read by a pattern", "to_date('21.11.2026', 'DD.MM.YYYY')", "2026-11-21"),
    own("to_timestamp", "(seconds) or (text, pattern)", ty(Timestamptz), &[], Source::Own(to_timestamp, 1, 2),
        "a moment of Unix seconds, or read by a pattern", "to_timestamp(0)", "1970-01-01 00:00:00+00:00").numeric(Numeric::Nearest),
    now("transaction_timestamp", "when the statement began, as `now()`", "transaction_timestamp() = now()"),
    own("zoned_as", "(moment, type)", Returns::Open, &[], Source::Own(zoned_as, 2, 2),
        "the moment as a column of that type without a zone is assigned it", "zoned_as('2026-11-21 20:00+00'::timestamptz, 'date')", "2026-11-21"),
    own("zoned_local", "(moment)", ty(Timestamp), &[Timestamptz], Source::Own(|_, v| zoned(v), 1, 1),
        "what the clock of the session's time zone shows at the moment", "zoned_local('2026-11-21 20:00+00'::timestamptz)", "2026-11-21 20:00:00"),
];

/// How long a sleep lasts until it looks whether its statement must stop.
const SLEEP_SLICE: Duration = Duration::from_millis(5);
/// What a slice counts as, at ten nanoseconds an operation: the expressions of a row may take a hundred thousand, for a
/// memcached worker waits for them.
const SLEEP_SLICE_OPERATIONS: u64 = 500_000;

fn sleep(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    if values.first().is_none_or(Value::is_null) {
        return Ok(Value::Null);
    }
    let mut left = Duration::try_from_secs_f64(real(values, 0)?.max(0.0)).unwrap_or(Duration::MAX);
    while !left.is_zero() {
        if patience::must_stop(SLEEP_SLICE_OPERATIONS) {
            return Err(SqlError::new(state::CANCELED, "the statement was stopped"));
        }
        let slice = left.min(SLEEP_SLICE);
        std::thread::sleep(slice);
        left -= slice;
    }
    Ok(Value::Text(String::new()))
}

fn rounded(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let digits = integer(values, 1)?.and_then(|digits| u32::try_from(digits).ok()).unwrap_or(moment::DIGITS);
    Ok(Value::Text(moment::rounded(&text(values, 0)?, digits)?))
}

fn date_bin(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let stride = Interval::parse(&text(values, 0)?)?;
    if stride.months != 0 {
        return Err(SqlError::not_supported("a stride of months or years in timestamps"));
    }
    let stride = stride.days.saturating_mul(DAY_US).saturating_add(stride.us);
    if stride <= 0 {
        return Err(SqlError::new("22008", "stride must be greater than zero"));
    }
    let (moment, origin) = (Moment::read(&text(values, 1)?)?, Moment::read(&text(values, 2)?)?);
    let since = moment.us.checked_sub(origin.us).ok_or_else(beyond)?;
    Moment::write(moment.us - since.rem_euclid(stride), moment.shape)
}

/// A time of day so much later or earlier.
fn time_moved(values: &[Value], back: bool) -> Result<Value, SqlError> {
    let (time, span) = (Interval::parse(&text(values, 0)?)?.us, Interval::parse(&text(values, 1)?)?.us);
    let moved = if back { time.saturating_sub(span) } else { time.saturating_add(span) };
    Ok(Value::Text(moment::write_time(moved.rem_euclid(DAY_US))))
}

/// What the clock of the session's zone shows at a moment.
fn zoned(values: &[Value]) -> Result<Value, SqlError> {
    Ok(Value::Text(local(&text(values, 0)?)?))
}

/// The same of its text.
pub(super) fn local(of: &str) -> Result<String, SqlError> {
    let Some(us) = moment::micros_of(of)? else { return Ok(of.to_owned()) };
    let ahead = zone::current().map_or(0, |zone| zone.ahead(us));
    Ok(moment::write_timestamp(us + ahead)?)
}

/// What the clock of the session's zone shows when the statement began.
fn on_clock(now: Now, ty: SqlType) -> Result<Value, SqlError> {
    let shown = match (ty, zone::current()) {
        (SqlType::Timetz, Some(zone)) => look::write_zoned(zone, now.us)?,
        (SqlType::Timetz, None) => moment::write_timestamptz(now.us)?,
        _ => local(&moment::write_timestamptz(now.us)?)?,
    };
    Ok(accept(ty, Value::Text(shown))?)
}

/// A moment with the type that its form shows.
struct Moment {
    us: i64,
    shape: SqlType,
}

impl Moment {
    fn read(text: &str) -> Result<Self, SqlError> {
        let us = moment::micros_of(text)?;
        let us = us.ok_or_else(|| SqlError::new("22008", "infinite moments have no fields"))?;
        let shape = if text.len() <= 10 {
            Date
        } else if text.ends_with("+00:00") {
            Timestamptz
        } else {
            Timestamp
        };
        Ok(Self { us, shape })
    }

    /// What the clock shows: of the session's zone, where it is a moment with a zone.
    fn local(&self) -> i64 {
        match (self.shape, zone::current()) {
            (Timestamptz, Some(zone)) => self.us + zone.ahead(self.us),
            _ => self.us,
        }
    }

    /// The first moment of the session's day.
    fn today(now: Now, shape: SqlType) -> Self {
        let zone = zone::current();
        let local = now.us + zone.map_or(0, |zone| zone.ahead(now.us));
        let midnight = local - local.rem_euclid(DAY_US);
        let zoned = zone.filter(|_| shape == Timestamptz);
        Self { us: zoned.map_or(midnight, |zone| zone.to_utc(midnight)), shape }
    }

    /// With the time of day even where it was a date.
    fn write(us: i64, shape: SqlType) -> Result<Value, SqlError> {
        Ok(Value::Text(match shape {
            Timestamptz => moment::write_timestamptz(us)?,
            _ => moment::write_timestamp(us)?,
        }))
    }
}

fn beyond() -> SqlError {
    SqlError::new("22008", "timestamp out of range")
}

fn is_infinite(text: &str) -> bool {
    matches!(text, "infinity" | "-infinity")
}

/// An argument that is no moment of the calendar, which is the same in each zone and after each span.
fn infinite(values: &[Value], at: usize) -> Result<Option<Value>, SqlError> {
    let text = text(values, at)?;
    Ok(is_infinite(&text).then_some(Value::Text(text)))
}

/// Whether a text is a moment rather than a span; both are known by their canonical form.
fn is_moment(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 10 && bytes[4] == b'-' && bytes[7] == b'-'
}

/// Whether a text is a time of day.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 8 && bytes[2] == b':' && bytes[5] == b':'
}

fn plus(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    for at in 0..2 {
        if let Some(infinite) = infinite(values, at)? {
            return Ok(infinite);
        }
    }
    let (mut left, mut right) = (text(values, 0)?, text(values, 1)?);
    if is_moment(&right) && !is_moment(&left) {
        std::mem::swap(&mut left, &mut right);
    }
    if !is_moment(&left) {
        let sum = Interval::parse(&left)?.plus(Interval::parse(&right)?);
        return Ok(Value::Text(sum.write()));
    }
    let start = Moment::read(&left)?;
    if let Ok(days) = right.parse::<i64>() {
        let days = days.checked_add(start.us.div_euclid(DAY_US)).filter(|days| days.abs() < 4_000_000);
        return moment::date(&moment::write_date(days.ok_or_else(beyond)?))
            .map(Value::Text)
            .map_err(Into::into);
    }
    let span = Interval::parse(&right)?;
    if span.months == 0 && span.days == 0 {
        return Moment::write(start.us.checked_add(span.us).ok_or_else(beyond)?, start.shape);
    }
    // Days and months are those of the calendar, hours those of the clock after it.
    let calendar = Interval { us: 0, ..span }.after(start.local()).ok_or_else(beyond)?;
    let us = match (start.shape, zone::current()) {
        (Timestamptz, Some(zone)) => zone.to_utc(calendar),
        _ => calendar,
    };
    Moment::write(us.checked_add(span.us).ok_or_else(beyond)?, start.shape)
}

/// The moments from the first to the last one, by a span each: what `generate_series` gives of moments.
pub(crate) fn moment_series(values: &[Value]) -> Result<Box<dyn Iterator<Item = Value> + 'static>, SqlError> {
    if values.iter().any(Value::is_null) {
        return Ok(Box::new(std::iter::empty()));
    }
    let (first, last, span) = (text(values, 0)?, text(values, 1)?, text(values, 2)?);
    let (end, step) = (Moment::read(&last)?.us, Interval::parse(&span)?);
    let length = step.seconds();
    if length == 0.0 {
        return Err(SqlError::new(state::BAD_PARAMETER, "step size cannot equal zero"));
    }
    let within = move |moment: &String| {
        Moment::read(moment).is_ok_and(|at| if length > 0.0 { at.us <= end } else { at.us >= end })
    };
    let next = move |moment: &String| {
        let values = [Value::from(moment.as_str()), Value::from(span.as_str())];
        match plus(Now { us: 0 }, &values) {
            Ok(Value::Text(moment)) => Some(moment).filter(within),
            _ => None,
        }
    };
    Ok(Box::new(std::iter::successors(Some(first).filter(within), next).map(Value::Text)))
}

fn minus(now: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (left, right) = (text(values, 0)?, text(values, 1)?);
    if is_moment(&left) && is_moment(&right) {
        let (left, right) = (Moment::read(&left)?, Moment::read(&right)?);
        let us = left.us.saturating_sub(right.us);
        if (left.shape, right.shape) == (Date, Date) {
            return Ok(Value::Integer(us / DAY_US));
        }
        let span = Interval { months: 0, days: us / DAY_US, us: us % DAY_US };
        return Ok(Value::Text(span.write()));
    }
    if is_time(&left) && is_time(&right) && !is_moment(&left) {
        let span = Interval::parse(&left)?.plus(Interval::parse(&right)?.negated());
        return Ok(Value::Text(span.write()));
    }
    let negated = match right.parse::<i64>() {
        Ok(days) => days.saturating_neg().to_string(),
        Err(_) => Interval::parse(&right)?.negated().write(),
    };
    plus(now, &[Value::Text(left), Value::Text(negated)])
}

/// The microseconds that a span has at most: what 64 bits hold.
const SPAN_US_MAX: f64 = 9_223_372_036_854_775_807.0;

fn times(values: &[Value], divided: bool) -> Result<Value, SqlError> {
    let number = matches!(values.first(), Some(Value::Integer(_) | Value::Real(_)));
    let (span, by) =
        if number { (text(values, 1)?, real(values, 0)?) } else { (text(values, 0)?, real(values, 1)?) };
    if divided && by == 0.0 {
        return Err(SqlError::new("22012", "division by zero"));
    }
    let factor = if divided { 1.0 / by } else { by };
    let span = Interval::parse(&span)?;
    let beyond = |part: i64, most: f64| {
        let part = part as f64 * factor;
        part.is_nan() || part.abs() > most
    };
    let counted = f64::from(i32::MAX);
    if !factor.is_finite()
        || beyond(span.months, counted)
        || beyond(span.days, counted)
        || beyond(span.us, SPAN_US_MAX)
    {
        return Err(SqlError::new("22008", "interval out of range"));
    }
    Ok(Value::Text(if divided { span.divided(by) } else { span.times(by) }.write()))
}

/// Which moment is the later one says the clock of UTC, and how many months, days and hours lie between them that of
/// the session.
fn age(now: Now, values: &[Value]) -> Result<Value, SqlError> {
    let first = Moment::read(&text(values, 0)?)?;
    let (later, earlier) = if values.len() > 1 {
        (first, Moment::read(&text(values, 1)?)?)
    } else {
        (Moment::today(now, first.shape), first)
    };
    let span = if later.us < earlier.us {
        between(earlier.local(), later.local()).negated()
    } else {
        between(later.local(), earlier.local())
    };
    Ok(Value::Text(span.write()))
}

/// The years, months and days from one moment to a later one.
fn between(later: i64, earlier: i64) -> Interval {
    let fields = |us: i64| (moment::date_of(us.div_euclid(DAY_US)), us.rem_euclid(DAY_US));
    let ((year, month, day), time) = fields(later);
    let ((from_year, from_month, from_day), from_time) = fields(earlier);
    let mut span = Interval {
        months: (year - from_year) * 12 + month - from_month,
        days: day - from_day,
        us: time - from_time,
    };
    if span.us < 0 {
        span.us += DAY_US;
        span.days -= 1;
    }
    if span.days < 0 {
        span.days += moment::days_in_month(from_year, from_month);
        span.months -= 1;
    }
    span
}

/// A number without a fraction where it has none.
fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
    if value.fract() == 0.0 && value.abs() < 1e15 { Value::Integer(value as i64) } else { Value::Real(value) }
}

/// A time without its zone, which stands right behind its digits; a span has none, but may have a plus behind a blank.
fn without_zone(of: &str) -> &str {
    let of = of.trim_end_matches('Z');
    let zone = of.find('+').filter(|at| of[..*at].ends_with(|before: char| before.is_ascii_digit()));
    zone.map_or(of, |at| &of[..at])
}

fn date_part(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (field, of) = (text(values, 0)?.to_ascii_lowercase(), text(values, 1)?);
    if is_moment(&of) {
        let moment = Moment::read(&of)?;
        return part_of_moment(&field, moment.us, moment.local());
    }
    let span = Interval::parse(without_zone(&of))?;
    let seconds = (span.us % 60_000_000) as f64 / 1e6;
    Ok(number(match field.as_str() {
        "epoch" => span.seconds(),
        "year" => (span.months / 12) as f64,
        "month" => (span.months % 12) as f64,
        "quarter" => (span.months % 12 / 3 + 1) as f64,
        "day" => span.days as f64,
        "hour" => (span.us / 3_600_000_000) as f64,
        "minute" => (span.us / 60_000_000 % 60) as f64,
        "second" => seconds,
        "milliseconds" => seconds * 1e3,
        "microseconds" => seconds * 1e6,
        _ => return Err(unknown_word("field", &field)),
    }))
}

fn part_of_moment(field: &str, us: i64, local: i64) -> Result<Value, SqlError> {
    let (days, time) = (local.div_euclid(DAY_US), local.rem_euclid(DAY_US));
    let ahead = (local - us) / 1_000_000;
    let (year, month, day) = moment::date_of(days);
    let seconds = (time % 60_000_000) as f64 / 1e6;
    Ok(match field {
        "epoch" => number(us as f64 / 1e6),
        "year" => Value::Integer(year),
        "month" => Value::Integer(month),
        "day" => Value::Integer(day),
        "hour" => Value::Integer(time / 3_600_000_000),
        "minute" => Value::Integer(time / 60_000_000 % 60),
        "second" => number(seconds),
        "milliseconds" => number((time % 60_000_000) as f64 / 1e3),
        "microseconds" => Value::Integer(time % 60_000_000),
        "quarter" => Value::Integer((month + 2) / 3),
        "dow" => Value::Integer((days + 4).rem_euclid(7)),
        "isodow" => Value::Integer((days + 3).rem_euclid(7) + 1),
        "doy" => Value::Integer(days - moment::days_of(year, 1, 1) + 1),
        "week" => Value::Integer(iso_week(days).1),
        "isoyear" => Value::Integer(iso_week(days).0),
        "decade" => Value::Integer(year.div_euclid(10)),
        "century" => Value::Integer((year + 99) / 100),
        "timezone" => Value::Integer(ahead),
        "timezone_hour" => Value::Integer(ahead / 3_600),
        "timezone_minute" => Value::Integer(ahead / 60 % 60),
        _ => return Err(unknown_word("field", field)),
    })
}

/// The ISO year and week of a day: a week belongs to the year of its Thursday.
pub(super) fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - (days + 3).rem_euclid(7) + 3;
    let (year, _, _) = moment::date_of(thursday);
    (year, (thursday - moment::days_of(year, 1, 1)) / 7 + 1)
}

fn justified(values: &[Value], change: fn(Interval) -> Interval) -> Result<Value, SqlError> {
    Ok(Value::Text(change(Interval::parse(&text(values, 0)?)?).write()))
}

fn make_time(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (hour, minute) = (integer(values, 0)?.unwrap_or(0), integer(values, 1)?.unwrap_or(0));
    let text = format!("{hour:02}:{minute:02}:{:09.6}", real(values, 2)?);
    Ok(store::scalar::accept(SqlType::Time, Value::Text(text))?)
}

fn date_trunc(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (field, of) = (text(values, 0)?.to_ascii_lowercase(), text(values, 1)?);
    if let (Err(_), Ok(span)) = (Moment::read(&of), Interval::parse(&of)) {
        let cut = span.truncated(&field).ok_or_else(|| unknown_word("field", &field))?;
        return Ok(Value::Text(cut.write()));
    }
    if is_infinite(&of) {
        return Ok(Value::Text(of));
    }
    if values.len() > 2 {
        return date_trunc_at(&field, &of, &text(values, 2)?);
    }
    let at = Moment::read(&of)?;
    match at.shape {
        Timestamp => Moment::write(cut(&field, at.us)?, Timestamp),
        // Of a date PostgreSQL makes a moment with a zone.
        Date => {
            let us = zone::current().map_or(at.us, |zone| zone.to_utc(at.us));
            Moment::write(cut_zoned(&field, us, zone::current())?, Timestamptz)
        }
        shape => Moment::write(cut_zoned(&field, at.us, zone::current())?, shape),
    }
}

/// A moment cut down by the clock of a zone.
fn date_trunc_at(field: &str, of: &str, zone: &str) -> Result<Value, SqlError> {
    let zone = crate::zone::find(zone)?.zone;
    let at = Moment::read(of)?;
    let us = match (at.shape, zone::current()) {
        (Date | Timestamp, Some(session)) => session.to_utc(at.us),
        _ => at.us,
    };
    Moment::write(cut_zoned(field, us, zone)?, Timestamptz)
}

/// Parts of a day, which are cut down with the offset that the moment has: an hour of the clock may be there twice.
const PARTS_OF_DAYS: &[&str] = &["microseconds", "milliseconds", "second", "minute", "hour"];

/// A moment of UTC cut down by the clock of a zone.
fn cut_zoned(field: &str, us: i64, zone: Option<zone::Zone>) -> Result<i64, SqlError> {
    let Some(zone) = zone else { return cut(field, us) };
    let ahead = zone.ahead(us);
    let local = cut(field, us + ahead)?;
    Ok(if PARTS_OF_DAYS.contains(&field) { local - ahead } else { zone.to_utc(local) })
}

/// What a clock shows, down to a field.
fn cut(field: &str, local: i64) -> Result<i64, SqlError> {
    let (days, time) = (local.div_euclid(DAY_US), local.rem_euclid(DAY_US));
    let (year, month, _) = moment::date_of(days);
    let of_day = |unit: i64| days * DAY_US + time - time % unit;
    Ok(match field {
        "microseconds" => local,
        "milliseconds" => of_day(1_000),
        "second" => of_day(1_000_000),
        "minute" => of_day(60_000_000),
        "hour" => of_day(3_600_000_000),
        "day" => days * DAY_US,
        "week" => (days - (days + 3).rem_euclid(7)) * DAY_US,
        "month" => moment::days_of(year, month, 1) * DAY_US,
        "quarter" => moment::days_of(year, (month - 1) / 3 * 3 + 1, 1) * DAY_US,
        "year" => moment::days_of(year, 1, 1) * DAY_US,
        "decade" => moment::days_of(year.div_euclid(10) * 10, 1, 1) * DAY_US,
        "century" => moment::days_of((year - 1).div_euclid(100) * 100 + 1, 1, 1) * DAY_US,
        _ => return Err(unknown_word("field", field)),
    })
}

fn make_date(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let field = |at: usize| Ok::<_, SqlError>(integer(values, at)?.unwrap_or(0));
    let text = format!("{:04}-{:02}-{:02}", field(0)?, field(1)?, field(2)?);
    Ok(Value::Text(moment::date(&text)?))
}

fn make_interval(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let field = |at: usize| Ok::<_, SqlError>(integer(values, at)?.unwrap_or(0));
    let beyond = || SqlError::new("22008", "interval out of range");
    let part = if values.len() > 6 { (real(values, 6)? * 1e6).round_ties_even() } else { 0.0 };
    if part.is_nan() || part.abs() >= SPAN_US_MAX {
        return Err(beyond());
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
    let part = part as i64;
    // PostgreSQL has 32 bits for these.
    let narrow = |count: i64| i32::try_from(count).ok().map(i64::from);
    let whole = |unit: i64, count: i64, rest: i64| unit.checked_mul(count)?.checked_add(rest);
    let months = whole(12, field(0)?, field(1)?).and_then(narrow);
    let days = whole(7, field(2)?, field(3)?).and_then(narrow);
    let us = whole(60, field(4)?, field(5)?).and_then(|minutes| whole(60_000_000, minutes, part));
    let (Some(months), Some(days), Some(us)) = (months, days, us) else { return Err(beyond()) };
    Ok(Value::Text(Interval { months, days, us }.write()))
}

fn make_timestamp(now: Now, values: &[Value]) -> Result<Value, SqlError> {
    let Value::Text(date) = make_date(now, values)? else { return Ok(Value::Null) };
    let (hour, minute) = (integer(values, 3)?.unwrap_or(0), integer(values, 4)?.unwrap_or(0));
    let text = format!("{date} {hour:02}:{minute:02}:{:09.6}", real(values, 5)?);
    Ok(Value::Text(moment::timestamp(&text)?))
}

fn to_timestamp(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    if values.len() > 1 {
        let local = format::read(&text(values, 0)?, &text(values, 1)?)?;
        let us = zone::current().map_or(local, |zone| zone.to_utc(local));
        return Ok(Value::Text(moment::write_timestamptz(us)?));
    }
    let seconds = real(values, 0)?;
    if !seconds.is_finite() || seconds.abs() > 1e12 {
        return Err(beyond());
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
    let us = (seconds * 1e6).round() as i64;
    Ok(Value::Text(moment::write_timestamptz(us)?))
}

fn zoned_as(now: Now, values: &[Value]) -> Result<Value, SqlError> {
    let name = text(values, 1)?;
    let ty = SqlType::all().find(|ty| ty.name() == name);
    let moment = match ty {
        Some(SqlType::Timestamp | SqlType::Date | SqlType::Time) => zoned(&values[..1])?,
        _ => Value::Text(shown::zoned(&text(values, 0)?)?),
    };
    convert(now, ty, moment)
}

fn timezone(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let zone = crate::zone::find(&text(values, 0)?)?.zone;
    if let Some(infinite) = infinite(values, 1)? {
        return Ok(infinite);
    }
    let at = Moment::read(&text(values, 1)?)?;
    match (at.shape, zone) {
        (Timestamptz, zone) => Moment::write(at.us + zone.map_or(0, |zone| zone.ahead(at.us)), Timestamp),
        (_, Some(zone)) => Moment::write(zone.to_utc(at.us), Timestamptz),
        (_, None) => Moment::write(at.us, Timestamptz),
    }
}

fn timezone_away(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (span, at) = (Interval::parse(&text(values, 0)?)?, Moment::read(&text(values, 1)?)?);
    if span.months != 0 || span.days != 0 {
        return Err(SqlError::new("22023", "interval time zone must not include months or days"));
    }
    match at.shape {
        Timestamptz => Moment::write(at.us.checked_add(span.us).ok_or_else(beyond)?, Timestamp),
        _ => Moment::write(at.us.checked_sub(span.us).ok_or_else(beyond)?, Timestamptz),
    }
}

/// A word without the blanks and signs around it, which mean nothing there: `now()` is `now`.
pub fn bare_word(text: &str) -> &str {
    text.trim_matches(|sign: char| sign.is_ascii_whitespace() || matches!(sign, '(' | ')' | ','))
}

/// `now`, `today`, `tomorrow` and `yesterday`, which a cast takes.
pub(super) fn of_word(now: Now, word: &str) -> Option<String> {
    // A day begins where the session is.
    let (ahead, zone) = (zone::current().map_or(0, |zone| zone.ahead(now.us)), zone::current());
    let midnight = (now.us + ahead).div_euclid(DAY_US) * DAY_US;
    let at = |local: i64| zone.map_or(local, |zone| zone.to_utc(local));
    let us = match bare_word(word).to_ascii_lowercase().as_str() {
        "now" => now.us,
        "today" => at(midnight),
        "tomorrow" => at(midnight + DAY_US),
        "yesterday" => at(midnight - DAY_US),
        _ => return None,
    };
    moment::write_timestamptz(us).ok()
}

/// A state that a caller may want for a value of another kind.
pub(super) fn bad(message: &str) -> SqlError {
    SqlError::new(state::BAD_VALUE, message)
}
