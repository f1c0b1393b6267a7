//! Spans of time in groups and side by side.
//!
//! A span is stored as the text that it is written as, and texts have another order and no sum. So a sum is computed
//! here, and what looks for the longest or the shortest is given keys that sort as spans do.

use std::cmp::Ordering;
use std::rc::Rc;

use sqlite::{Aggregate, Arguments, Connection};
use sqltext::error::{SqlError, state};
use store::definition::SqlType;
use store::scalar::interval::Interval;
use store::value::Value;

use super::def::{Caller, FunctionDef, Returns, Source, text};

const fn own(
    name: &'static str,
    arguments: &'static str,
    returns: SqlType,
    source: Source,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    FunctionDef {
        name,
        arguments,
        returns: Returns::Type(returns),
        types: &[],
        source,
        numeric: None,
        of_floats: None,
        of_spans: None,
        meaning,
        example,
        answer,
    }
}

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("interval_key", "(interval)", SqlType::Text, Source::Own(|_, v| key(&text(v, 0)?), 1, 1),
        "a text that sorts as the interval does; `max`, `min`, `greatest` and `least` compare it", "interval_key('1 mon') > interval_key('29 days')", "1"),
    own("interval_of_key", "(key)", SqlType::Interval, Source::Own(|_, v| of_key(&text(v, 0)?), 1, 1),
        "the interval of such a text", "interval_of_key(interval_key('1 mon'))", "1 mon"),
    own("interval_nullif", "(interval, other)", SqlType::Interval, Source::Raw(|_, v| nullif(v), 2, 2, false),
        "what `nullif` is of intervals: NULL where they are equally long", "coalesce(nullif(interval '30 days', interval '1 mon'), interval '0')", "00:00:00"),
    own("interval_sum", "(interval)", SqlType::Interval, Source::Group,
        "what `sum` is of intervals", "(SELECT interval_sum(value) FROM json_each('[\"1 day\", \"2 days\"]'))", "3 days"),
    own("interval_avg", "(interval)", SqlType::Interval, Source::Group,
        "what `avg` is of intervals", "(SELECT interval_avg(value) FROM json_each('[\"1 day\", \"3 days\"]'))", "2 days"),
];

/// Digits of an order that is counted from the least one.
const KEY_DIGITS: usize = 20;

fn key(span: &str) -> Result<Value, SqlError> {
    // From the least number to zero, so that negative ones sort as well.
    let order = Interval::parse(span)?.order().wrapping_sub(i64::MIN).cast_unsigned();
    Ok(Value::Text(format!("{order:0KEY_DIGITS$}{span}")))
}

fn of_key(key: &str) -> Result<Value, SqlError> {
    let span =
        key.get(KEY_DIGITS..).ok_or_else(|| SqlError::new(state::BAD_VALUE, "no key of an interval"))?;
    Ok(Value::Text(Interval::parse(span)?.write()))
}

fn nullif(values: &[Value]) -> Result<Value, SqlError> {
    let [span, other] = values else { return Ok(Value::Null) };
    if span.is_null() || other.is_null() {
        return Ok(span.clone());
    }
    let order = |at| Ok::<_, SqlError>(Interval::parse(&text(values, at)?)?.order());
    Ok(if order(0)? == order(1)? { Value::Null } else { span.clone() })
}

/// The sum of a group under way, or its mean.
struct Spans<C> {
    mean: bool,
    caller: Rc<C>,
    sum: Interval,
    count: i64,
}

impl<C: Caller> Spans<C> {
    fn taken(&self, arguments: &Arguments<'_>) -> Result<Option<Interval>, String> {
        let value = arguments.value(0);
        if value.is_null() {
            return Ok(None);
        }
        let span = text(&[value], 0).and_then(|text| Ok(Interval::parse(&text)?));
        span.map(Some).map_err(|error| self.caller.fail(error))
    }
}

impl<C: Caller> Aggregate for Spans<C> {
    fn step(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        if let Some(span) = self.taken(arguments)? {
            self.count += 1;
            self.sum = self.sum.plus(span);
        }
        Ok(())
    }

    fn take_back(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        if let Some(span) = self.taken(arguments)? {
            self.count -= 1;
            self.sum = self.sum.plus(span.negated());
        }
        Ok(())
    }

    fn value(&self) -> Result<Value, String> {
        Ok(match self.count {
            0 => Value::Null,
            count if self.mean => Value::Text(self.sum.divided(count as f64).write()),
            _ => Value::Text(self.sum.write()),
        })
    }
}

/// How long two spans are beside each other. What is no span, which no column holds, sorts behind by its text.
pub(super) fn collate(left: &str, right: &str) -> Ordering {
    let order = |text: &str| Interval::parse(text).map_or(i64::MAX, Interval::order);
    let is_span = |text: &str| Interval::parse(text).is_ok();
    let texts = || if is_span(left) && is_span(right) { Ordering::Equal } else { left.cmp(right) };
    order(left).cmp(&order(right)).then_with(texts)
}

/// Makes the connection know the aggregates.
pub(super) fn register<C: Caller>(connection: &Connection, caller: &Rc<C>) -> Result<(), SqlError> {
    for (name, mean) in [("interval_sum", false), ("interval_avg", true)] {
        let caller = Rc::clone(caller);
        let made = move || Spans { mean, caller: Rc::clone(&caller), sum: Interval::default(), count: 0 };
        connection.create_aggregate(name, 1, made)?;
    }
    Ok(())
}
