//! Aggregates over the values of a group in an order: percentiles and the most frequent value.
//!
//! `percentile_cont(0.5) WITHIN GROUP (ORDER BY x)` reaches SQLite as `percentile_cont(x, 0.5 ORDER BY x)`: SQLite
//! sorts, and what is here counts.

use std::rc::Rc;

use sqlite::{Aggregate, Arguments, Connection, meter};
use sqltext::error::{SqlError, state};
use store::definition::SqlType;
use store::scalar::numeric;
use store::value::Value;

use super::def::{Caller, FunctionDef, Numeric, Returns, Source, Spans, length_of, real};

const fn own(
    name: &'static str,
    arguments: &'static str,
    returns: Returns,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    FunctionDef {
        name,
        arguments,
        returns,
        types: &[],
        source: Source::Group,
        numeric: Some(Numeric::Chosen),
        of_floats: None,
        of_spans: Some(Spans::Keys),
        meaning,
        example,
        answer,
    }
}

/// The functions' lines.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    FunctionDef { numeric: Some(Numeric::Nearest), of_spans: None, ..own("percentile_cont", "(share) WITHIN GROUP (ORDER BY x)", Returns::Type(SqlType::Float8),
        "the value below which this share of a group lies, between two values where none is there",
        "(SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY value) FROM json_each('[1,2]'))", "1.5") },
    own("percentile_disc", "(share) WITHIN GROUP (ORDER BY x)", Returns::Argument,
        "the first value of a group in its order up to which this share of it lies",
        "(SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY value) FROM json_each('[1,2,3]'))", "2"),
    FunctionDef { numeric: Some(Numeric::Exact("numeric_mode")), of_spans: Some(Spans::Function("interval_mode")), ..own("mode", "() WITHIN GROUP (ORDER BY x)", Returns::Argument,
        "the most frequent value of a group; of several, the first in its order",
        "(SELECT mode() WITHIN GROUP (ORDER BY value) FROM json_each('[1,2,2]'))", "2") },
    FunctionDef { numeric: None, ..own("interval_mode", "() WITHIN GROUP (ORDER BY x)", Returns::Type(SqlType::Interval),
        "what `mode()` is of intervals: `1 day` and `24:00:00` are equally long",
        "(SELECT mode() WITHIN GROUP (ORDER BY value::interval) FROM json_each('[\"1 day\",\"24:00:00\",\"2 days\"]')) = interval '1 day'", "1") },
    FunctionDef { numeric: Some(Numeric::Text), ..own("numeric_mode", "() WITHIN GROUP (ORDER BY x)", Returns::Type(SqlType::Numeric),
        "what `mode()` is of `NUMERIC`: `1.5` and `1.50` are one number",
        "(SELECT mode() WITHIN GROUP (ORDER BY value::numeric) FROM json_each('[\"1.5\",2,\"1.50\"]'))", "1.5") },
];

/// Whether it is one of the aggregates that need an order.
pub fn is_ordered(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.name == name)
}

/// What is asked of a group.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Between,
    First,
    Mode,
    /// The same of values that have several spellings: decimal numbers, and intervals.
    ModeBy(fn(&str, &str) -> std::cmp::Ordering),
}

impl Asked {
    fn named(name: &str) -> Self {
        match name {
            "percentile_cont" => Self::Between,
            "percentile_disc" => Self::First,
            "numeric_mode" => Self::ModeBy(numeric::compare),
            "interval_mode" => Self::ModeBy(super::span::collate),
            _ => Self::Mode,
        }
    }

    fn takes_share(self) -> bool {
        matches!(self, Self::Between | Self::First)
    }
}

/// A group under way.
struct Group<C> {
    asked: Asked,
    caller: Rc<C>,
    /// Without NULLs, in their order.
    values: Vec<Value>,
    /// The share that is asked for, once a row told it.
    share: Option<Value>,
}

impl<C: Caller> Group<C> {
    fn take(&mut self, arguments: &Arguments<'_>) -> Result<(), SqlError> {
        if self.asked.takes_share() {
            let share = arguments.value(1);
            if self.share.as_ref().is_some_and(|known| *known != share) {
                let message = "the share of a percentile differs within a group";
                return Err(SqlError::new(state::GROUPING, message).with_hint("name its column in GROUP BY"));
            }
            self.share = Some(share);
        }
        let value = arguments.value(0);
        if value.is_null() {
            return Ok(());
        }
        meter::take(size_of::<Value>() + length_of(Some(&value)))?;
        self.values.push(value);
        Ok(())
    }

    fn result(&self) -> Result<Value, SqlError> {
        let Some(last) = self.values.len().checked_sub(1) else { return Ok(Value::Null) };
        if !self.asked.takes_share() {
            return Ok(match self.asked {
                Asked::ModeBy(order) => most_frequent(&self.values, |one, other| is_same(order, one, other)),
                _ => most_frequent(&self.values, Value::eq),
            });
        }
        let Some(share) = self.share.as_ref().map_or(Ok(None), share)? else { return Ok(Value::Null) };
        if let Asked::First = self.asked {
            let place = (share * self.values.len() as f64).ceil();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and the length"
            )]
            return Ok(self.values[(place as usize).saturating_sub(1)].clone());
        }
        let place = share * last as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the last place"
        )]
        let (low, high) = (place.floor() as usize, place.ceil() as usize);
        let (from, to) = (real(&self.values, low)?, real(&self.values, high)?);
        Ok(Value::from(if low == high { from } else { from + (place - low as f64) * (to - from) }))
    }
}

/// A share of a group; `None` for NULL.
fn share(value: &Value) -> Result<Option<f64>, SqlError> {
    if value.is_null() {
        return Ok(None);
    }
    let share = real(std::slice::from_ref(value), 0)?;
    if (0.0..=1.0).contains(&share) {
        return Ok(Some(share));
    }
    let message = format!("percentile value {share} is not between 0 and 1");
    Err(SqlError::new(state::OUT_OF_RANGE, message))
}

/// The first of the values that stand there most often, equal ones side by side.
fn most_frequent(values: &[Value], is_same: impl Fn(&Value, &Value) -> bool) -> Value {
    let mut found: &[Value] = &[];
    for equal in values.chunk_by(is_same) {
        if equal.len() > found.len() {
            found = equal;
        }
    }
    found.first().cloned().unwrap_or_default()
}

fn is_same(order: fn(&str, &str) -> std::cmp::Ordering, one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => order(one, other).is_eq(),
        _ => one == other,
    }
}

impl<C: Caller> Aggregate for Group<C> {
    fn step(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        self.take(arguments).map_err(|error| self.caller.fail(error))
    }

    fn take_back(&mut self, _arguments: &Arguments<'_>) -> Result<(), String> {
        let message = "an aggregate with WITHIN GROUP is not supported as a window function";
        Err(self.caller.fail(SqlError::new(state::NOT_SUPPORTED, message)))
    }

    fn value(&self) -> Result<Value, String> {
        self.result().map_err(|error| self.caller.fail(error))
    }
}

/// Makes the connection know them.
pub(super) fn register<C: Caller>(connection: &Connection, caller: &Rc<C>) -> Result<(), SqlError> {
    for function in FUNCTIONS {
        let (asked, caller) = (Asked::named(function.name), Rc::clone(caller));
        let arguments = if asked.takes_share() { 2 } else { 1 };
        connection.create_aggregate(function.name, arguments, move || Group {
            asked,
            caller: Rc::clone(&caller),
            values: Vec::new(),
            share: None,
        })?;
    }
    Ok(())
}
