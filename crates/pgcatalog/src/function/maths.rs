//! Mathematical functions. SQLite has the same, but only where it was built with them.
//!
//! What is no number has no result, and neither has an argument beyond the function's domain: NULL, as in SQLite.

use sqltext::error::SqlError;
use store::definition::SqlType;
use store::value::{Affinity, Value};

use super::def::{FunctionDef, Now, Returns, Source};

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
    FunctionDef { name, arguments, returns, types: NUMBERS, source, meaning, example, answer }
}

/// Mathematical functions.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("acos", "(x)", REAL, "arc cosine", "acos(1)", "0.0",
        Source::Own(|_, v| one(v, f64::acos), 1, 1)),
    own("acosh", "(x)", REAL, "inverse hyperbolic cosine", "acosh(1)", "0.0",
        Source::Own(|_, v| one(v, f64::acosh), 1, 1)),
    own("asin", "(x)", REAL, "arc sine", "asin(0)", "0.0",
        Source::Own(|_, v| one(v, f64::asin), 1, 1)),
    own("asinh", "(x)", REAL, "inverse hyperbolic sine", "asinh(0)", "0.0",
        Source::Own(|_, v| one(v, f64::asinh), 1, 1)),
    own("atan", "(x)", REAL, "arc tangent", "atan(0)", "0.0",
        Source::Own(|_, v| one(v, f64::atan), 1, 1)),
    own("atan2", "(y, x)", REAL, "arc tangent of the quotient", "atan2(0, 1)", "0.0",
        Source::Own(|_, v| two(v, f64::atan2), 2, 2)),
    own("atanh", "(x)", REAL, "inverse hyperbolic tangent", "atanh(0)", "0.0",
        Source::Own(|_, v| one(v, f64::atanh), 1, 1)),
    own("ceil", "(number)", SAME, "the next whole number above", "ceil(1.2)", "2.0",
        Source::Own(|_, v| whole(v, f64::ceil), 1, 1)),
    own("ceiling", "(number)", SAME, "as `ceil`", "ceiling(1.2)", "2.0",
        Source::Own(|_, v| whole(v, f64::ceil), 1, 1)),
    own("cos", "(x)", REAL, "cosine", "cos(0)", "1.0",
        Source::Own(|_, v| one(v, f64::cos), 1, 1)),
    own("cosh", "(x)", REAL, "hyperbolic cosine", "cosh(0)", "1.0",
        Source::Own(|_, v| one(v, f64::cosh), 1, 1)),
    own("degrees", "(x)", REAL, "of radians", "round(degrees(pi()))", "180.0",
        Source::Own(|_, v| one(v, f64::to_degrees), 1, 1)),
    own("exp", "(x)", REAL, "e to the power of x", "exp(0)", "1.0",
        Source::Own(|_, v| one(v, f64::exp), 1, 1)),
    own("float_round", "(x)", REAL, "the next whole number, of two that are as near the even one; what `x::int` takes of a float",
        "2.5::float8::int", "2", Source::Own(|_, v| whole(v, f64::round_ties_even), 1, 1)),
    own("floor", "(number)", SAME, "the next whole number below", "floor(1.8)", "1.0",
        Source::Own(|_, v| whole(v, f64::floor), 1, 1)),
    own("ln", "(x)", REAL, "natural logarithm", "ln(1)", "0.0",
        Source::Own(|_, v| one(v, f64::ln), 1, 1)),
    own("log", "(x) or (base, x)", REAL, "logarithm, of base 10", "log(100)", "2.0",
        Source::Own(log, 1, 2)),
    own("log10", "(x)", REAL, "logarithm of base 10", "log10(1000)", "3.0",
        Source::Own(|_, v| one(v, f64::log10), 1, 1)),
    own("log2", "(x)", REAL, "logarithm of base 2", "log2(8)", "3.0",
        Source::Own(|_, v| one(v, f64::log2), 1, 1)),
    own("mod", "(a, b)", Returns::Common, "the rest of a division", "mod(7, 3)", "1",
        Source::Own(modulo, 2, 2)),
    own("pi", "()", REAL, "the number", "round(pi(), 2)", "3.14",
        Source::Raw(|_, _| Ok(Value::Real(std::f64::consts::PI)), 0, 0, false)),
    own("pow", "(x, y)", REAL, "x to the power of y", "pow(2, 10)", "1024.0",
        Source::Own(|_, v| two(v, f64::powf), 2, 2)),
    own("power", "(x, y)", REAL, "as `pow`; also `x ^ y`", "power(2, 3)", "8.0",
        Source::Own(|_, v| two(v, f64::powf), 2, 2)),
    own("radians", "(x)", REAL, "of degrees", "round(radians(180), 2)", "3.14",
        Source::Own(|_, v| one(v, f64::to_radians), 1, 1)),
    own("sin", "(x)", REAL, "sine", "sin(0)", "0.0",
        Source::Own(|_, v| one(v, f64::sin), 1, 1)),
    own("sinh", "(x)", REAL, "hyperbolic sine", "sinh(0)", "0.0",
        Source::Own(|_, v| one(v, f64::sinh), 1, 1)),
    own("sqrt", "(x)", REAL, "square root", "sqrt(16)", "4.0",
        Source::Own(|_, v| one(v, f64::sqrt), 1, 1)),
    own("tan", "(x)", REAL, "tangent", "tan(0)", "0.0",
        Source::Own(|_, v| one(v, f64::tan), 1, 1)),
    own("tanh", "(x)", REAL, "hyperbolic tangent", "tanh(0)", "0.0",
        Source::Own(|_, v| one(v, f64::tanh), 1, 1)),
    own("trunc", "(number)", SAME, "without its fraction", "trunc(1.8)", "1.0",
        Source::Own(|_, v| whole(v, f64::trunc), 1, 1)),
];

/// An argument as a number; `None` for what is none.
fn number(values: &[Value], at: usize) -> Option<f64> {
    match values.get(at)?.clone().with_affinity(Affinity::Numeric) {
        Value::Integer(integer) => Some(integer as f64),
        Value::Real(real) => Some(real),
        _ => None,
    }
}

/// A number, or NULL where there is none.
fn real(value: Option<f64>) -> Value {
    value.filter(|value| !value.is_nan()).map_or(Value::Null, Value::Real)
}

#[expect(clippy::unnecessary_wraps, reason = "functions may fail, these do not")]
fn one(values: &[Value], function: fn(f64) -> f64) -> Result<Value, SqlError> {
    let result = number(values, 0).map(function);
    // The logarithm of 0 is no number either.
    Ok(real(result.filter(|result| *result != f64::NEG_INFINITY)))
}

#[expect(clippy::unnecessary_wraps, reason = "functions may fail, these do not")]
fn two(values: &[Value], function: fn(f64, f64) -> f64) -> Result<Value, SqlError> {
    Ok(real(number(values, 0).zip(number(values, 1)).map(|(a, b)| function(a, b))))
}

/// Integers stay what they are.
#[expect(clippy::unnecessary_wraps, reason = "functions may fail, these do not")]
fn whole(values: &[Value], function: fn(f64) -> f64) -> Result<Value, SqlError> {
    match values.first().cloned().unwrap_or_default().with_affinity(Affinity::Numeric) {
        Value::Integer(integer) => Ok(Value::Integer(integer)),
        Value::Real(number) => Ok(Value::Real(function(number))),
        _ => Ok(Value::Null),
    }
}

fn log(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    if values.len() < 2 {
        return one(values, f64::log10);
    }
    let positive = |at: usize| number(values, at).filter(|number| *number > 0.0);
    Ok(real(positive(0).zip(positive(1)).map(|(base, x)| x.ln() / base.ln())))
}

fn modulo(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    if let (Some(Value::Integer(a)), Some(Value::Integer(b))) = (values.first(), values.get(1)) {
        return match b {
            0 => Err(SqlError::new("22012", "division by zero")),
            _ => Ok(Value::Integer(a.wrapping_rem(*b))),
        };
    }
    two(values, |a, b| a % b)
}
