//! Floats as PostgreSQL computes them: `NaN` is a value, and a result that no float holds is an error. SQLite would
//! give NULL, or an infinity.
//!
//! In SQLite a NaN is the text `NaN`. So operators and functions that would read a text as zero have functions here.

use std::rc::Rc;

use sqlite::{Aggregate, Arguments, Connection};
use sqltext::error::{SqlError, state};
use store::definition::SqlType;
use store::value::{Affinity, NAN, Value};

use super::def::{Caller, FunctionDef, Numeric, Returns, Source};
use super::numeric::division_by_zero;

const FLOATS: &[SqlType] = &[SqlType::Float8, SqlType::Float8];

const fn own(
    name: &'static str,
    arguments: &'static str,
    source: Source,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    let returns = Returns::Type(SqlType::Float8);
    let numeric = Some(Numeric::Nearest);
    FunctionDef {
        name,
        arguments,
        returns,
        types: FLOATS,
        source,
        numeric,
        of_floats: None,
        of_spans: None,
        meaning,
        example,
        answer,
    }
}

/// What operators and functions become where a side is a float, or an integer of 64 bits.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("float_add", "(a, b)", Source::Own(|_, v| computed(v, |a, b| a + b), 2, 2),
        "what `a + b` is of floats", "1.5::float8 + 'NaN'::float8", "NaN"),
    own("float_subtract", "(a, b)", Source::Own(|_, v| computed(v, |a, b| a - b), 2, 2),
        "what `a - b` is", "1.5::float8 - 1", "0.5"),
    own("float_multiply", "(a, b)", Source::Own(|_, v| computed(v, |a, b| a * b), 2, 2),
        "what `a * b` is", "1.5::float8 * 2", "3.0"),
    own("float_divide", "(a, b)", Source::Own(|_, v| divided(v), 2, 2),
        "what `a / b` is, or an error where b is zero", "3::float8 / 2", "1.5"),
    own("float_abs", "(x)", Source::Own(|_, v| one(v, f64::abs), 1, 1),
        "what `abs(x)` is", "abs(-1.5::float8)", "1.5"),
    own("float_even", "(x)", Source::Own(|_, v| one(v, f64::round_ties_even), 1, 1),
        "what `round(x)` is: halves go to the even neighbour", "round(2.5::float8)", "2.0"),
    own("float_sign", "(x)", Source::Own(|_, v| one(v, sign), 1, 1),
        "what `sign(x)` is", "sign(-1.5::float8)", "-1.0"),
    own("float_number", "(x)", Source::Own(|_, v| number(v, 0).and_then(finished_one), 1, 1),
        "the same, or an error where it is NaN, which SQLite's own functions do not know", "float_number(1.5)", "1.5"),
    own("integer_divide", "(a, b)", Source::Own(|_, v| whole(v, i64::checked_div, |a, b| a / b), 2, 2),
        "what `a / b` is of integers, or an error where b is zero", "7 / 2", "3"),
    own("integer_remainder", "(a, b)", Source::Own(|_, v| whole(v, |a, b| Some(a.wrapping_rem(b)), |a, b| a % b), 2, 2),
        "what `a % b` is of integers, or an error where b is zero", "7 % 2", "1"),
    FunctionDef { returns: Returns::Type(SqlType::Int8), types: &[], ..own("int8_fit", "(value)", Source::Own(|_, v| fit(v), 1, 1),
        "the same, or an error where 64 bits do not hold it; it stands around arithmetic of `BIGINT`", "int8_fit(5)", "5") },
];

/// An argument as a float.
pub(super) fn number(values: &[Value], at: usize) -> Result<f64, SqlError> {
    match values.get(at).cloned().unwrap_or_default().with_affinity(Affinity::Numeric) {
        Value::Integer(integer) => Ok(integer as f64),
        Value::Real(real) => Ok(real),
        Value::Text(text) => {
            of_word(&text).ok_or_else(|| SqlError::new(state::BAD_VALUE, "a number was expected"))
        }
        _ => Err(SqlError::new(state::BAD_VALUE, "a number was expected")),
    }
}

/// A number that has no digits, as floats and decimal numbers are written.
pub(super) fn of_word(text: &str) -> Option<f64> {
    match text {
        NAN => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// A result of these numbers: NaN comes of nothing but NaN, and an infinity of nothing but infinities.
pub(super) fn finished(of: &[f64], result: f64) -> Result<Value, SqlError> {
    if result.is_infinite() && of.iter().all(|number| number.is_finite()) {
        return Err(SqlError::new(state::OUT_OF_RANGE, "value out of range: overflow"));
    }
    Ok(Value::from(result))
}

fn computed(values: &[Value], function: fn(f64, f64) -> f64) -> Result<Value, SqlError> {
    let (a, b) = (number(values, 0)?, number(values, 1)?);
    finished(&[a, b], function(a, b))
}

fn divided(values: &[Value]) -> Result<Value, SqlError> {
    let (a, b) = (number(values, 0)?, number(values, 1)?);
    // As in PostgreSQL, where NaN by zero is NaN.
    if b == 0.0 && !a.is_nan() { Err(division_by_zero()) } else { finished(&[a, b], a / b) }
}

/// A division of integers. A parameter beside one may be a float.
fn whole(
    values: &[Value],
    integers: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> f64,
) -> Result<Value, SqlError> {
    let counted = |at: usize| counted(values.get(at).cloned().unwrap_or_default());
    match [counted(0), counted(1)] {
        [Value::Integer(_), Value::Integer(0)] | [_, Value::Real(0.0)] => Err(division_by_zero()),
        [Value::Integer(a), Value::Integer(b)] => integers(a, b)
            .map(Value::Integer)
            .ok_or_else(|| SqlError::new(state::OUT_OF_RANGE, "bigint out of range")),
        sides => computed(&sides, floats),
    }
}

/// A value as SQLite computes with it: a text, which a column of type ANY may hold, counts for the number that it
/// begins with.
fn counted(value: Value) -> Value {
    let text = match value.with_affinity(Affinity::Numeric) {
        Value::Text(text) => text,
        Value::Blob(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        number => return number,
    };
    let text = text.trim_ascii_start();
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let begin = usize::from(text.starts_with(['-', '+']));
    let whole = begin + digits(begin);
    let fraction = if text[whole..].starts_with('.') { whole + 1 + digits(whole + 1) } else { whole };
    match text[..whole].parse::<i64>() {
        Ok(number) if fraction == whole => Value::Integer(number),
        _ => text[..fraction].parse().map_or(Value::Integer(0), Value::Real),
    }
}

fn one(values: &[Value], function: fn(f64) -> f64) -> Result<Value, SqlError> {
    number(values, 0).map(|number| Value::from(function(number)))
}

fn sign(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number.signum() }
}

fn finished_one(number: f64) -> Result<Value, SqlError> {
    if number.is_nan() {
        return Err(SqlError::not_supported("this function of NaN"));
    }
    Ok(Value::Real(number))
}

/// What SQLite computes of integers is a float where 64 bits do not hold it.
fn fit(values: &[Value]) -> Result<Value, SqlError> {
    match values.first() {
        Some(Value::Real(_)) => Err(SqlError::new(state::OUT_OF_RANGE, "bigint out of range")),
        value => Ok(value.cloned().unwrap_or_default()),
    }
}

/// What a group comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Sum,
    Mean,
    /// The sum, and zero of nothing.
    Total,
}

/// A sum under way, with what its additions lost, as SQLite has it.
struct Running<C> {
    of: Of,
    caller: Rc<C>,
    sum: f64,
    lost: f64,
    count: i64,
    /// How many are `-Infinity`, `Infinity` and NaN.
    specials: [i64; 3],
}

impl<C: Caller> Running<C> {
    fn take(&mut self, arguments: &Arguments<'_>, by: i64) -> Result<(), String> {
        let value = arguments.value(0);
        if value.is_null() {
            return Ok(());
        }
        let number = number(&[value], 0).map_err(|error| self.caller.fail(error))?;
        self.count += by;
        match number {
            f64::NEG_INFINITY => self.specials[0] += by,
            f64::INFINITY => self.specials[1] += by,
            number if number.is_nan() => self.specials[2] += by,
            number => self.add(if by < 0 { -number } else { number }),
        }
        Ok(())
    }

    fn add(&mut self, number: f64) {
        let sum = self.sum + number;
        self.lost +=
            if self.sum.abs() > number.abs() { self.sum - sum + number } else { number - sum + self.sum };
        self.sum = sum;
    }

    fn result(&self) -> Result<Value, SqlError> {
        let [below, above, nan] = self.specials.map(|count| count > 0);
        let sum = match (below, above) {
            _ if self.count == 0 => {
                return Ok(if self.of == Of::Total { Value::Real(0.0) } else { Value::Null });
            }
            _ if nan => f64::NAN,
            (true, true) => f64::NAN,
            (true, false) => f64::NEG_INFINITY,
            (false, true) => f64::INFINITY,
            (false, false) if self.sum.is_finite() => {
                return finished(&[], self.divided(self.sum + self.lost));
            }
            (false, false) => return finished(&[], f64::INFINITY),
        };
        Ok(Value::from(sum))
    }

    fn divided(&self, sum: f64) -> f64 {
        if self.of == Of::Mean { sum / self.count as f64 } else { sum }
    }
}

impl<C: Caller> Aggregate for Running<C> {
    fn step(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        self.take(arguments, 1)
    }

    fn take_back(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        self.take(arguments, -1)
    }

    fn value(&self) -> Result<Value, String> {
        self.result().map_err(|error| self.caller.fail(error))
    }
}

/// The aggregates with their names.
const TOTALS: &[(&str, Of)] = &[("float_sum", Of::Sum), ("float_avg", Of::Mean), ("float_total", Of::Total)];

/// Whether it is one of the aggregates.
pub(super) fn is_aggregate(name: &str) -> bool {
    TOTALS.iter().any(|(own, _)| *own == name)
}

/// Makes the connection know the aggregates.
pub(super) fn register<C: Caller>(connection: &Connection, caller: &Rc<C>) -> Result<(), SqlError> {
    for (name, of) in TOTALS {
        let (of, caller) = (*of, Rc::clone(caller));
        let made = move || Running {
            of,
            caller: Rc::clone(&caller),
            sum: 0.0,
            lost: 0.0,
            count: 0,
            specials: [0; 3],
        };
        connection.create_aggregate(name, 1, made)?;
    }
    Ok(())
}
