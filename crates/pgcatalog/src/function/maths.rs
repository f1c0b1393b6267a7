//! Mathematical functions. SQLite has the same, but only where it was built with them.
//!
//! What is no number has no result: NULL, as in SQLite. An argument beyond the function's domain is an error, as in
//! PostgreSQL; NaN is a number here.

use sqltext::error::{SqlError, state};
use store::definition::SqlType;
use store::value::{Affinity, Value};

use super::def::{FunctionDef, Now, Numeric, Returns, Source};
use super::float::{finished, of_word};
use super::numeric::division_by_zero;

const REAL: Returns = Returns::Type(SqlType::Float8);
const SAME: Returns = Returns::Argument;
const NUMBERS: &[SqlType] = &[SqlType::Float8, SqlType::Float8];

const fn own(
    name: &'static str,
    arguments: &'static str,
    returns: Returns,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
    source: Source,
) -> FunctionDef {
    FunctionDef {
        name,
        arguments,
        returns,
        types: NUMBERS,
        source,
        numeric: Some(Numeric::Nearest),
        of_floats: None,
        of_spans: None,
        meaning,
        example,
        answer,
    }
}

/// The bits of an integer moved. As in PostgreSQL the processor takes the count by the width: 33 of 32 bits is 1.
fn shifted(values: &[Value], left: bool) -> Result<Value, SqlError> {
    let [Value::Integer(own), Value::Integer(count), Value::Integer(bits)] = values else {
        let message = "only integers have bits that are moved";
        return Err(SqlError::new(state::UNKNOWN_FUNCTION, message));
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the low bits are what counts"
    )]
    Ok(Value::Integer(match (bits, left) {
        (64, true) => own.wrapping_shl(*count as u32),
        (64, false) => own.wrapping_shr(*count as u32),
        (32, true) => i64::from((*own as i32).wrapping_shl(*count as u32)),
        (32, false) => i64::from((*own as i32).wrapping_shr(*count as u32)),
        (_, true) => i64::from((*own as i32).wrapping_shl(*count as u32) as i16),
        (_, false) => i64::from((*own as i32).wrapping_shr(*count as u32) as i16),
    }))
}

/// Mathematical functions.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("acos", "(x)", REAL, "arc cosine", "acos(1)", "0.0",
        Source::Own(|_, v| one(v, f64::acos), 1, 1)),
    own("acosh", "(x)", REAL, "inverse hyperbolic cosine", "acosh(1)", "0.0",
        Source::Own(|_, v| one(v, arc_cosine), 1, 1)),
    own("asin", "(x)", REAL, "arc sine", "asin(0)", "0.0",
        Source::Own(|_, v| one(v, f64::asin), 1, 1)),
    own("asinh", "(x)", REAL, "inverse hyperbolic sine", "asinh(0)", "0.0",
        Source::Own(|_, v| one(v, arc_sine), 1, 1)),
    own("atan", "(x)", REAL, "arc tangent", "atan(0)", "0.0",
        Source::Own(|_, v| one(v, f64::atan), 1, 1)),
    own("atan2", "(y, x)", REAL, "arc tangent of the quotient", "atan2(0, 1)", "0.0",
        Source::Own(|_, v| two(v, f64::atan2), 2, 2)),
    own("atanh", "(x)", REAL, "inverse hyperbolic tangent", "atanh(0)", "0.0",
        Source::Own(|_, v| hyperbolic(v), 1, 1)),
    own("ceil", "(number)", SAME, "the next whole number above", "ceil(1.2)", "2",
        Source::Own(|_, v| whole(v, f64::ceil), 1, 1)).numeric(Numeric::Exact("numeric_ceil")),
    own("ceiling", "(number)", SAME, "as `ceil`", "ceiling(1.2)", "2",
        Source::Own(|_, v| whole(v, f64::ceil), 1, 1)).numeric(Numeric::Exact("numeric_ceil")),
    own("cos", "(x)", REAL, "cosine", "cos(0)", "1.0",
        Source::Own(|_, v| one(v, f64::cos), 1, 1)),
    own("cosh", "(x)", REAL, "hyperbolic cosine", "cosh(0)", "1.0",
        Source::Own(|_, v| growing(v, f64::cosh), 1, 1)),
    own("degrees", "(x)", REAL, "of radians", "round(degrees(pi()))", "180.0",
        Source::Own(|_, v| one(v, f64::to_degrees), 1, 1)),
    own("exp", "(x)", REAL, "e to the power of x", "exp(0)", "1.0",
        Source::Own(|_, v| exponential(v), 1, 1)).numeric(Numeric::Exact("numeric_exp")),
    own("float_round", "(x)", REAL, "the next whole number, of two that are as near the even one; what `x::int` takes of a float",
        "2.5::float8::int", "2", Source::Own(|_, v| rounded(v), 1, 1)),
    own("floor", "(number)", SAME, "the next whole number below", "floor(1.8)", "1",
        Source::Own(|_, v| whole(v, f64::floor), 1, 1)).numeric(Numeric::Exact("numeric_floor")),
    FunctionDef { types: &[], numeric: None, ..own("shift_left", "(integer, count, bits)", SAME, "what `<<` is of an integer of 16, 32 or 64 bits", "1::int << 33", "2",
        Source::Own(|_, v| shifted(v, true), 3, 3)) },
    FunctionDef { types: &[], numeric: None, ..own("shift_right", "(integer, count, bits)", SAME, "what `>>` is of an integer of 16, 32 or 64 bits", "-8 >> 1", "-4",
        Source::Own(|_, v| shifted(v, false), 3, 3)) },
    own("ln", "(x)", REAL, "natural logarithm", "ln(1)", "0.0",
        Source::Own(|_, v| logarithm(v, f64::ln), 1, 1)).numeric(Numeric::Exact("numeric_ln")),
    own("log", "(x) or (base, x)", REAL, "logarithm, of base 10", "log(100)", "2.0",
        Source::Own(log, 1, 2)).numeric(Numeric::Exact("numeric_log")),
    own("log10", "(x)", REAL, "logarithm of base 10", "log10(1000)", "3.0",
        Source::Own(|_, v| logarithm(v, f64::log10), 1, 1)).numeric(Numeric::Exact("numeric_log")),
    own("log2", "(x)", REAL, "logarithm of base 2", "log2(8)", "3.0",
        Source::Own(|_, v| logarithm(v, f64::log2), 1, 1)),
    own("mod", "(a, b)", Returns::Common, "the rest of a division", "mod(7, 3)", "1",
        Source::Own(modulo, 2, 2)).numeric(Numeric::Exact("numeric_remainder")),
    own("pi", "()", REAL, "the number", "round(pi(), 2)", "3.14",
        Source::Raw(|_, _| Ok(Value::Real(std::f64::consts::PI)), 0, 0, false)),
    own("pow", "(x, y)", REAL, "x to the power of y", "pow(2, 10)", "1024.0",
        Source::Own(|_, v| power(v), 2, 2)).numeric(Numeric::Exact("numeric_power")),
    own("power", "(x, y)", REAL, "as `pow`; also `x ^ y`", "power(2, 3)", "8.0",
        Source::Own(|_, v| power(v), 2, 2)).numeric(Numeric::Exact("numeric_power")),
    own("radians", "(x)", REAL, "of degrees", "round(radians(180), 2)", "3.14",
        Source::Own(|_, v| one(v, f64::to_radians), 1, 1)),
    own("sin", "(x)", REAL, "sine", "sin(0)", "0.0",
        Source::Own(|_, v| one(v, f64::sin), 1, 1)),
    own("sinh", "(x)", REAL, "hyperbolic sine", "sinh(0)", "0.0",
        Source::Own(|_, v| growing(v, f64::sinh), 1, 1)),
    own("sqrt", "(x)", REAL, "square root", "sqrt(16)", "4.0",
        Source::Own(|_, v| square_root(v), 1, 1)).numeric(Numeric::Exact("numeric_sqrt")),
    own("tan", "(x)", REAL, "tangent", "tan(0)", "0.0",
        Source::Own(|_, v| one(v, f64::tan), 1, 1)),
    own("tanh", "(x)", REAL, "hyperbolic tangent", "tanh(0)", "0.0",
        Source::Own(|_, v| one(v, f64::tanh), 1, 1)),
    own("trunc", "(number)", SAME, "without its fraction", "trunc(1.8)", "1",
        Source::Own(|_, v| whole(v, f64::trunc), 1, 1)).numeric(Numeric::Exact("numeric_trunc")),
];

/// An argument as a number; `None` for what is none.
fn number(values: &[Value], at: usize) -> Option<f64> {
    match values.get(at)?.clone().with_affinity(Affinity::Numeric) {
        Value::Integer(integer) => Some(integer as f64),
        Value::Real(real) => Some(real),
        Value::Text(text) => of_word(&text),
        _ => None,
    }
}

/// A result of these numbers, which must be one.
fn real(of: &[f64], result: f64) -> Result<Value, SqlError> {
    if result.is_nan() && !of.iter().any(|number| number.is_nan()) {
        return Err(SqlError::new(state::OUT_OF_RANGE, "input is out of range"));
    }
    finished(of, result)
}

fn one(values: &[Value], function: fn(f64) -> f64) -> Result<Value, SqlError> {
    number(values, 0).map_or(Ok(Value::Null), |number| real(&[number], function(number)))
}

/// The same of a function that grows beyond all numbers.
#[expect(clippy::unnecessary_wraps, reason = "functions may fail, these do not")]
fn growing(values: &[Value], function: fn(f64) -> f64) -> Result<Value, SqlError> {
    Ok(number(values, 0).map_or(Value::Null, |number| Value::from(function(number))))
}

fn two(values: &[Value], function: fn(f64, f64) -> f64) -> Result<Value, SqlError> {
    match (number(values, 0), number(values, 1)) {
        (Some(a), Some(b)) => real(&[a, b], function(a, b)),
        _ => Ok(Value::Null),
    }
}

/// Above it the square of a number is none.
const SQUARED_MAX: f64 = 1e150;

fn arc_cosine(number: f64) -> f64 {
    if number > SQUARED_MAX { number.ln() + std::f64::consts::LN_2 } else { number.acosh() }
}

fn arc_sine(number: f64) -> f64 {
    let far = number.abs() > SQUARED_MAX && number.is_finite();
    if far { (number.abs().ln() + std::f64::consts::LN_2).copysign(number) } else { number.asinh() }
}

/// A power: neither of zero to less than it, nor of less than zero to a fraction.
fn power(values: &[Value]) -> Result<Value, SqlError> {
    let (Some(base), Some(exponent)) = (number(values, 0), number(values, 1)) else { return Ok(Value::Null) };
    if base == 0.0 && exponent < 0.0 {
        return Err(SqlError::new("2201F", "zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        let words = "a negative number raised to a non-integer power yields a complex result";
        return Err(SqlError::new("2201F", words));
    }
    underflow(&[base, exponent], base.powf(exponent), base != 0.0)
}

/// What is too near to zero for a float is none.
fn underflow(of: &[f64], result: f64, must_not_be_zero: bool) -> Result<Value, SqlError> {
    if result == 0.0 && must_not_be_zero && of.iter().all(|number| number.is_finite()) {
        return Err(SqlError::new(state::OUT_OF_RANGE, "value out of range: underflow"));
    }
    real(of, result)
}

/// Of one and less than one PostgreSQL's arc gives infinities.
fn hyperbolic(values: &[Value]) -> Result<Value, SqlError> {
    match number(values, 0) {
        Some(1.0) => Ok(Value::Real(f64::INFINITY)),
        Some(-1.0) => Ok(Value::Real(f64::NEG_INFINITY)),
        _ => one(values, f64::atanh),
    }
}

fn exponential(values: &[Value]) -> Result<Value, SqlError> {
    number(values, 0).map_or(Ok(Value::Null), |number| underflow(&[number], number.exp(), true))
}

fn square_root(values: &[Value]) -> Result<Value, SqlError> {
    match number(values, 0) {
        Some(negative) if negative < 0.0 => {
            Err(SqlError::new("2201F", "cannot take square root of a negative number"))
        }
        _ => one(values, f64::sqrt),
    }
}

/// A logarithm, of a number above zero.
fn logarithm(values: &[Value], function: fn(f64) -> f64) -> Result<Value, SqlError> {
    let refused = |what: &str| Err(SqlError::new("2201E", format!("cannot take logarithm of {what}")));
    match number(values, 0) {
        Some(0.0) => refused("zero"),
        Some(negative) if negative < 0.0 => refused("a negative number"),
        _ => one(values, function),
    }
}

/// Integers stay what they are.
fn whole(values: &[Value], function: fn(f64) -> f64) -> Result<Value, SqlError> {
    match values.first().cloned().unwrap_or_default().with_affinity(Affinity::Numeric) {
        Value::Integer(integer) => Ok(Value::Integer(integer)),
        _ => growing(values, function),
    }
}

/// The number that a cast to an integer takes.
fn rounded(values: &[Value]) -> Result<Value, SqlError> {
    match number(values, 0) {
        Some(number) if number.is_nan() => Err(SqlError::new(state::OUT_OF_RANGE, "NaN is no integer")),
        _ => whole(values, f64::round_ties_even),
    }
}

fn log(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    if values.len() < 2 {
        return logarithm(values, f64::log10);
    }
    logarithm(values, f64::ln)?;
    logarithm(&values[1..], f64::ln)?;
    two(values, |base, x| x.ln() / base.ln())
}

fn modulo(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    if let (Some(Value::Integer(a)), Some(Value::Integer(b))) = (values.first(), values.get(1)) {
        return match b {
            0 => Err(division_by_zero()),
            _ => Ok(Value::Integer(a.wrapping_rem(*b))),
        };
    }
    two(values, |a, b| a % b)
}
