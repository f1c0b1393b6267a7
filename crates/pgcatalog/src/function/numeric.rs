//! Decimal numbers, computed exactly, with as many digits as PostgreSQL gives. A number is its text.

use std::cmp::Ordering;
use std::rc::Rc;

use bigdecimal::num_bigint::{BigInt, Sign};
use bigdecimal::{BigDecimal, One, RoundingMode, Signed, ToPrimitive, Zero};
use serde_json::value::RawValue;
use sqlite::{Aggregate, Arguments, Connection, meter};
use sqltext::error::{SqlError, state};
use store::definition::{NUMERIC_COLLATION, SqlType};
use store::scalar::numeric::{self, DIGITS_MAX, Modifier, Number, Special};
use store::value::Value;

use super::cast::take_elements;
use super::def::{Caller, FunctionDef, Now, Numeric, Returns, Source, integer, text};
use super::{digits, series};
use crate::limits::POWER_DIGITS_MAX;

const NUMERIC: Returns = Returns::Type(SqlType::Numeric);

const fn own(
    name: &'static str,
    arguments: &'static str,
    source: Source,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    FunctionDef {
        name,
        arguments,
        returns: NUMERIC,
        types: &[],
        source,
        numeric: Some(Numeric::Text),
        of_floats: None,
        of_spans: None,
        meaning,
        example,
        answer,
    }
}

/// What operators and functions become where a side is `NUMERIC`.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("numeric_add", "(a, b)", Source::Own(|_, v| computed(Operation::Add, v), 2, 2),
        "what `a + b` is of `NUMERIC`", "0.1::numeric + 0.2", "0.3"),
    own("numeric_subtract", "(a, b)", Source::Own(|_, v| computed(Operation::Subtract, v), 2, 2),
        "what `a - b` is", "1.10::numeric - 1", "0.10"),
    own("numeric_multiply", "(a, b)", Source::Own(|_, v| computed(Operation::Multiply, v), 2, 2),
        "what `a * b` is", "1.10::numeric * 3", "3.30"),
    own("numeric_divide", "(a, b)", Source::Own(|_, v| computed(Operation::Divide, v), 2, 2),
        "what `a / b` is, with at least 16 significant digits", "1::numeric / 3", "0.33333333333333333333"),
    own("numeric_remainder", "(a, b)", Source::Own(|_, v| computed(Operation::Remainder, v), 2, 2),
        "what `a % b` and `mod(a, b)` are", "7.5::numeric % 2", "1.5"),
    own("numeric_quotient", "(a, b)", Source::Own(|_, v| computed(Operation::Whole, v), 2, 2),
        "what `div(a, b)` is: the whole part of the quotient", "div(9::numeric, 4)", "2"),
    own("numeric_abs", "(a)", Source::Own(|_, v| absolute(v), 1, 1),
        "what `abs(a)` is", "abs(-1.50::numeric)", "1.50"),
    own("numeric_ceil", "(a)", Source::Own(|_, v| rounded(v, RoundingMode::Ceiling), 1, 1),
        "what `ceil(a)` is", "ceil(1.2::numeric)", "2"),
    own("numeric_floor", "(a)", Source::Own(|_, v| rounded(v, RoundingMode::Floor), 1, 1),
        "what `floor(a)` is", "floor(-1.2::numeric)", "-2"),
    own("numeric_round", "(a, decimals)", Source::Own(|_, v| rounded(v, RoundingMode::HalfUp), 1, 2),
        "what `round(a, decimals)` is: halves away from zero", "round(2.345::numeric, 2)", "2.35"),
    own("numeric_trunc", "(a, decimals)", Source::Own(|_, v| rounded(v, RoundingMode::Down), 1, 2),
        "what `trunc(a, decimals)` is", "trunc(2.349::numeric, 2)", "2.34"),
    own("numeric_of", "(value)", Source::Own(|_, v| shown(&number(v, 0)?), 1, 1),
        "what `value::numeric` is", "'1.10'::numeric", "1.10"),
    own("numeric_fit", "(value, precision, scale)", Source::Own(fit, 3, 3),
        "what `value::numeric(precision, scale)` is", "'1.005'::numeric(10, 2)", "1.01"),
    own("numeric_power", "(a, exponent)", Source::Own(power, 2, 2),
        "what `power(a, exponent)` is", "power(2::numeric, 3)",
        "8.0000000000000000"),
    own("numeric_exp", "(a)", Source::Own(|_, v| series::exponential(v), 1, 1),
        "what `exp(a)` is", "exp(1.0)", "2.7182818284590452"),
    own("numeric_ln", "(a)", Source::Own(|_, v| series::natural(v), 1, 1),
        "what `ln(a)` is", "ln(2.0)", "0.6931471805599453"),
    own("numeric_log", "(a) or (base, a)", Source::Own(|_, v| series::logarithm(v), 1, 2),
        "what `log(a)`, of base 10, and `log(base, a)` are", "log(2.0, 64.0)", "6.0000000000000000"),
    own("numeric_sqrt", "(a)", Source::Own(square_root, 1, 1),
        "what `sqrt(a)` is", "sqrt(2::numeric)", "1.414213562373095"),
    own("numeric_greatest", "(a, ...)", Source::Raw(|_, v| extreme(v, Ordering::Greater), -1, -1, false),
        "what `greatest(a, ...)` is", "greatest(1.50::numeric, NULL, 0.5)", "1.50"),
    own("numeric_least", "(a, ...)", Source::Raw(|_, v| extreme(v, Ordering::Less), -1, -1, false),
        "what `least(a, ...)` is", "least(10::numeric, 9)", "9"),
    own("numeric_sign", "(a)", Source::Own(sign, 1, 1),
        "what `sign(a)` is", "sign(-1.5::numeric)", "-1"),
    own("numeric_gcd", "(a, b)", Source::Own(|_, v| divisor(v).and_then(|divisor| shown(&divisor)), 2, 2),
        "what `gcd(a, b)` is", "gcd(12345678901234567890::numeric, 10)", "10"),
    own("numeric_lcm", "(a, b)", Source::Own(multiple, 2, 2),
        "what `lcm(a, b)` is", "lcm(1.5::numeric, 2)", "6.0"),
    FunctionDef { returns: Returns::Type(SqlType::Int4), ..own("numeric_width_bucket", "(number, low, high, count)", Source::Own(bucket, 4, 4),
        "what `width_bucket(number, low, high, count)` is", "width_bucket(5.35::numeric, 0.024, 10.06, 5)", "3") },
    FunctionDef { returns: Returns::Type(SqlType::Text), ..own("numeric_to_char", "(number, pattern)", Source::Own(digits::to_char, 2, 2),
        "what `to_char(number, pattern)` is", "to_char(1.005::numeric, 'FM9.99')", "1.01") },
    FunctionDef { returns: Returns::Argument, ..own("numeric_array_key", "(array)", Source::Own(|_, v| array_key(&text(v, 0)?), 1, 1),
        "a text that equal arrays of decimal numbers have in common", "numeric_array_key('[\"1.50\",null,2]')", "[\"1.5\",null,\"2\"]") },
    own("numeric_number", "(value)", Source::Own(|_, v| Ok(numeric::nearest(&number(v, 0)?)), 1, 1),
        "the integer or float that is nearest, which functions of floats take", "numeric_number('1.10')", "1.1"),
];

/// An argument as a decimal number.
pub(super) fn number(values: &[Value], at: usize) -> Result<Number, SqlError> {
    Ok(numeric::of_value(values.get(at).unwrap_or(&Value::Null))?)
}

/// A number as a text with all its digits.
pub(super) fn shown(number: &Number) -> Result<Value, SqlError> {
    if let Number::Finite(number) = number {
        let scale = number.fractional_digit_count();
        let digits = i64::try_from(number.digits()).unwrap_or(i64::MAX);
        if digits.saturating_sub(scale) > DIGITS_MAX || scale > DIGITS_MAX {
            return Err(overflow());
        }
    }
    Ok(Value::Text(number.text()))
}

pub(super) fn overflow() -> SqlError {
    SqlError::new(state::OUT_OF_RANGE, "value overflows numeric format")
}

/// What two numbers are computed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    /// The whole part of the quotient.
    Whole,
}

impl Operation {
    fn divides(self) -> bool {
        matches!(self, Self::Divide | Self::Remainder | Self::Whole)
    }

    /// Of numbers that have digits.
    fn of(self, a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, SqlError> {
        if self.divides() && b.is_zero() {
            return Err(division_by_zero());
        }
        let (scale_a, scale_b) = (a.fractional_digit_count(), b.fractional_digit_count());
        let wider = scale_a.max(scale_b);
        Ok(match self {
            Self::Add => (a + b).with_scale(wider),
            Self::Subtract => (a - b).with_scale(wider),
            // PostgreSQL rounds what has more digits than it shows.
            Self::Multiply => {
                (a * b).with_scale_round((scale_a + scale_b).min(DIGITS_MAX), RoundingMode::HalfUp)
            }
            Self::Divide => quotient(a, b)?,
            Self::Remainder => (a % b).with_scale(wider),
            Self::Whole => divided(&(a - a % b), b, 0)?,
        })
    }

    /// Where a side has no digits, floats compute as PostgreSQL's numbers do.
    fn of_special(self, a: &Number, b: &Number) -> Result<Number, SqlError> {
        let nan = Number::Special(Special::NaN);
        if *a == nan || *b == nan {
            return Ok(nan);
        }
        let zero = Number::Finite(BigDecimal::zero());
        let (x, y) = (float(a), float(b));
        let result = match self {
            Self::Add => x + y,
            Self::Subtract => x - y,
            Self::Multiply => x * y,
            _ if y == 0.0 => return Err(division_by_zero()),
            Self::Remainder if x.is_finite() => return Ok(a.clone()),
            Self::Remainder => f64::NAN,
            Self::Divide | Self::Whole if x.is_finite() => return Ok(zero),
            Self::Divide | Self::Whole => x / y,
        };
        Ok(Number::Special(Special::of_float(result)))
    }

    /// Of units of powers of ten, where 128 bits hold them: as most numbers are.
    fn of_small(self, a: (i128, u32), b: (i128, u32)) -> Option<(i128, u32)> {
        let wider = a.1.max(b.1);
        let both = || Some((numeric::at_scale(a, wider)?, numeric::at_scale(b, wider)?));
        match self {
            Self::Add => both().and_then(|(a, b)| a.checked_add(b)).map(|sum| (sum, wider)),
            Self::Subtract => both().and_then(|(a, b)| a.checked_sub(b)).map(|rest| (rest, wider)),
            Self::Multiply => Some((a.0.checked_mul(b.0)?, a.1 + b.1)),
            Self::Divide | Self::Remainder | Self::Whole => None,
        }
    }
}

/// The float that stands for a number among such as have no digits.
fn float(number: &Number) -> f64 {
    match number {
        Number::Finite(number) => number.to_f64().unwrap_or(0.0),
        Number::Special(special) => special.float(),
    }
}

fn computed(operation: Operation, values: &[Value]) -> Result<Value, SqlError> {
    let small = |at: usize| match values.get(at) {
        Some(Value::Text(text)) => numeric::small(text),
        Some(Value::Integer(integer)) => Some((i128::from(*integer), 0)),
        _ => None,
    };
    if let (Some(a), Some(b)) = (small(0), small(1))
        && let Some(result) = operation.of_small(a, b)
    {
        return Ok(Value::Text(text_of_small(result)));
    }
    match (number(values, 0)?, number(values, 1)?) {
        (Number::Finite(a), Number::Finite(b)) => shown(&Number::Finite(operation.of(&a, &b)?)),
        (a, b) => shown(&operation.of_special(&a, &b)?),
    }
}

/// The text of so many units.
fn text_of_small((units, scale): (i128, u32)) -> String {
    let digits = units.unsigned_abs().to_string();
    let sign = if units < 0 { "-" } else { "" };
    let scale = scale as usize;
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

pub(super) fn division_by_zero() -> SqlError {
    SqlError::new("22012", "division by zero")
}

fn absolute(values: &[Value]) -> Result<Value, SqlError> {
    shown(&match number(values, 0)? {
        Number::Finite(number) => Number::Finite(number.abs()),
        Number::Special(Special::NegativeInfinity) => Number::Special(Special::Infinity),
        special @ Number::Special(_) => special,
    })
}

fn sign(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    Ok(Value::from(match number(values, 0)? {
        Number::Special(Special::NaN) => "NaN",
        Number::Finite(number) if number.is_zero() => "0",
        Number::Finite(number) if number.is_positive() => "1",
        Number::Special(Special::Infinity) => "1",
        Number::Finite(_) | Number::Special(Special::NegativeInfinity) => "-1",
    }))
}

/// The first of the numbers of which none is greater, or less. NULLs are left out.
fn extreme(values: &[Value], wanted: Ordering) -> Result<Value, SqlError> {
    let mut found: Option<String> = None;
    for value in values.iter().filter(|value| !value.is_null()) {
        let text = numeric::of_value(value)?.text();
        if found.as_ref().is_none_or(|found| numeric::compare(&text, found) == wanted) {
            found = Some(text);
        }
    }
    Ok(found.map_or(Value::Null, Value::Text))
}

/// The significant digits that results have at least, where their number is not known otherwise.
pub(super) const SIGNIFICANT_MIN: i64 = 16;
/// PostgreSQL's numbers consist of groups of so many digits, by which it counts significant ones.
const GROUP: i64 = 4;

/// A power. Of whole exponents it is exact, and then rounded; others have as many digits as PostgreSQL gives them.
fn power(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (base, exponent) = match (number(values, 0)?, number(values, 1)?) {
        (Number::Finite(base), Number::Finite(exponent)) => (base, exponent),
        (Number::Special(Special::NegativeInfinity), Number::Finite(exponent)) if !exponent.is_integer() => {
            return Err(complex());
        }
        (base, exponent) => return shown(&numeric::of_real(float(&base).powf(float(&exponent)))),
    };
    if base.is_zero() && exponent.is_negative() {
        let words = "zero raised to a negative power is undefined";
        return Err(SqlError::new("2201F", words));
    }
    let scale = SIGNIFICANT_MIN.max(base.fractional_digit_count());
    let whole = exponent.is_integer().then(|| exponent.to_i64()).flatten();
    let Some(whole) = whole else {
        if base.is_negative() {
            return Err(complex());
        }
        return shown(&Number::Finite(series::power(&base, &exponent)?));
    };
    let digits = base.digits().max(1).saturating_mul(whole.unsigned_abs());
    if digits > POWER_DIGITS_MAX && !base.abs().is_one() {
        return Err(overflow());
    }
    let (units, own_scale) = base.into_bigint_and_scale();
    let count = u32::try_from(whole.unsigned_abs()).map_err(|_| overflow())?;
    let raised = BigDecimal::new(units.pow(count), own_scale * i64::from(count));
    let result = if whole < 0 {
        divided(&BigDecimal::from(1), &raised, scale)?
    } else {
        raised.with_scale_round(scale, RoundingMode::HalfUp)
    };
    shown(&Number::Finite(result))
}

fn complex() -> SqlError {
    SqlError::new("2201F", "a negative number raised to a non-integer power yields a complex result")
}

fn square_root(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let number = match number(values, 0)? {
        Number::Finite(number) => number,
        Number::Special(Special::NegativeInfinity) => return Err(negative_root()),
        special @ Number::Special(_) => return shown(&special),
    };
    if number.is_negative() {
        return Err(negative_root());
    }
    let weight = (first_group(&number).0 + 1) * GROUP / 2 - 1;
    let scale = (SIGNIFICANT_MIN - weight).max(number.fractional_digit_count()).clamp(0, DIGITS_MAX);
    shown(&Number::Finite(root(&number, scale)))
}

/// The root with so many digits behind the point. One digit more tells how to round: what is cut off is never just a
/// half.
fn root(number: &BigDecimal, scale: i64) -> BigDecimal {
    let root = units(number, 2 * (scale + 1)).sqrt();
    BigDecimal::new(root, scale + 1).with_scale_round(scale, RoundingMode::HalfUp)
}

fn negative_root() -> SqlError {
    SqlError::new("2201F", "cannot take square root of a negative number")
}

/// The number as `digits` units of the power of ten that `scale` says.
pub(super) fn units(number: &BigDecimal, scale: i64) -> BigInt {
    number.with_scale(scale).into_bigint_and_scale().0
}

/// The quotient with so many digits behind the point, the last one rounded.
pub(super) fn divided(a: &BigDecimal, b: &BigDecimal, scale: i64) -> Result<BigDecimal, SqlError> {
    if b.is_zero() {
        return Err(division_by_zero());
    }
    let common = a.fractional_digit_count().max(b.fractional_digit_count());
    let above = units(a, common + scale);
    let below = units(b, common);
    let (negative, above, below) =
        ((above.sign() == Sign::Minus) != (below.sign() == Sign::Minus), above.abs(), below.abs());
    let doubled: BigInt = above * 2 + &below;
    let whole: BigInt = doubled / (below * 2);
    Ok(BigDecimal::new(if negative { -whole } else { whole }, scale))
}

/// The quotient as PostgreSQL's `numeric` has it.
fn quotient(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, SqlError> {
    divided(a, b, quotient_scale(a, b))
}

/// Digits behind the point of a quotient: at least 16 significant ones, as PostgreSQL counts them in groups of four.
fn quotient_scale(a: &BigDecimal, b: &BigDecimal) -> i64 {
    let ((weight_a, first_a), (weight_b, first_b)) = (first_group(a), first_group(b));
    let weight = weight_a - weight_b - i64::from(first_a <= first_b);
    let scale = SIGNIFICANT_MIN - weight * GROUP;
    scale.max(a.fractional_digit_count()).max(b.fractional_digit_count()).clamp(0, DIGITS_MAX)
}

/// The first group of four digits that is not zero: its place, from the point to the left, and what it is.
fn first_group(number: &BigDecimal) -> (i64, u32) {
    if number.is_zero() {
        return (0, 0);
    }
    let text = numeric::text(&number.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.trim_start_matches('0');
    let value = |digits: &str| format!("{digits:0<4}").parse::<u32>().unwrap_or(0);
    if whole.is_empty() {
        let zeros = fraction.len() - fraction.trim_start_matches('0').len();
        let group = zeros / 4;
        let digits = &fraction[group * 4..fraction.len().min(group * 4 + 4)];
        return (-1 - i64::try_from(group).unwrap_or(0), value(digits));
    }
    let groups = whole.len().div_ceil(4);
    let first = &whole[..whole.len() - (groups - 1) * 4];
    (i64::try_from(groups).unwrap_or(1) - 1, first.parse().unwrap_or(0))
}

/// The greatest common divisor: of what is no number, none.
fn divisor(values: &[Value]) -> Result<Number, SqlError> {
    let (Number::Finite(a), Number::Finite(b)) = (number(values, 0)?, number(values, 1)?) else {
        return Ok(Number::Special(Special::NaN));
    };
    let scale = a.fractional_digit_count().max(b.fractional_digit_count());
    let (mut a, mut b) = (units(&a, scale).abs(), units(&b, scale).abs());
    while !b.is_zero() {
        // A step halves the numbers every second time.
        meter::work(usize::try_from(b.bits() / 8).unwrap_or(usize::MAX))?;
        (a, b) = (b.clone(), a % b);
    }
    Ok(Number::Finite(BigDecimal::new(a, scale)))
}

fn multiple(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (Number::Finite(a), Number::Finite(b), Number::Finite(divisor)) =
        (number(values, 0)?, number(values, 1)?, divisor(values)?)
    else {
        return shown(&Number::Special(Special::NaN));
    };
    let scale = divisor.fractional_digit_count();
    if divisor.is_zero() {
        return shown(&Number::Finite(divisor));
    }
    let (a, b, divisor) = (units(&a, scale), units(&b, scale), units(&divisor, scale));
    shown(&Number::Finite(BigDecimal::new((a / divisor * b).abs(), scale)))
}

fn bucket(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let refused = |what: &str| Err(SqlError::new("2201G", what));
    let count = integer(values, 3)?.unwrap_or(0);
    if count <= 0 {
        return refused("count must be greater than zero");
    }
    let numbers = [number(values, 0)?, number(values, 1)?, number(values, 2)?];
    if numbers.contains(&Number::Special(Special::NaN)) {
        return refused("operand, lower bound, and upper bound cannot be NaN");
    }
    let [of, Number::Finite(low), Number::Finite(high)] = numbers else {
        return refused("lower and upper bounds must be finite");
    };
    if low == high {
        return refused("lower bound cannot equal upper bound");
    }
    let of = match of {
        Number::Finite(of) => of,
        Number::Special(special) => {
            let above = (special == Special::Infinity) == (low < high);
            return Ok(Value::Integer(if above { beyond(count)? } else { 0 }));
        }
    };
    let (from, width) = if low < high { (&of - &low, &high - &low) } else { (&low - &of, &low - &high) };
    Ok(Value::Integer(if from.is_negative() {
        0
    } else if from >= width {
        beyond(count)?
    } else {
        let scale = from.fractional_digit_count().max(width.fractional_digit_count());
        let share: BigInt = units(&from, scale) * count / units(&width, scale);
        share.to_i64().map_or_else(|| beyond(count), |share| Ok(share + 1))?
    }))
}

/// The bucket behind the last one.
fn beyond(count: i64) -> Result<i64, SqlError> {
    let behind = i32::try_from(count).ok().and_then(|count| count.checked_add(1));
    behind.map(i64::from).ok_or_else(|| SqlError::new(state::OUT_OF_RANGE, "integer out of range"))
}

fn rounded(values: &[Value], mode: RoundingMode) -> Result<Value, SqlError> {
    let decimals = integer(values, 1)?.unwrap_or(0).clamp(-DIGITS_MAX, DIGITS_MAX);
    let number = match number(values, 0)? {
        Number::Finite(number) => number.with_scale_round(decimals, mode),
        special @ Number::Special(_) => return shown(&special),
    };
    shown(&Number::Finite(if decimals < 0 { number.with_scale(0) } else { number }))
}

/// An array with each number in the shortest form of all that mean it.
fn array_key(array: &str) -> Result<Value, SqlError> {
    take_elements(array)?;
    let refused = || SqlError::new("22P02", "malformed array literal");
    let elements: Vec<&RawValue> = serde_json::from_str(array).map_err(|_| refused())?;
    let mut key = String::from("[");
    for element in elements {
        if key.len() > 1 {
            key.push(',');
        }
        let written = element.get();
        if written == "null" {
            key.push_str(written);
            continue;
        }
        let number = match numeric::of_value(&Value::from(written.trim_matches('"')))? {
            Number::Finite(number) => Number::Finite(number.normalized()).text(),
            special @ Number::Special(_) => special.text(),
        };
        key.extend(["\"", &number, "\""]);
    }
    key.push(']');
    Ok(Value::Text(key))
}

fn fit(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let numbers = [integer(values, 1)?.unwrap_or(0), integer(values, 2)?.unwrap_or(0)];
    let modifier = Modifier::of_numbers(&numbers).ok_or_else(|| {
        SqlError::new(state::BAD_PARAMETER, format!("NUMERIC precision must be between 1 and {DIGITS_MAX}"))
    })?;
    shown(&modifier.fit(number(values, 0)?)?)
}

/// What a group comes to.
#[derive(Clone, Copy, Debug)]
enum Of {
    Sum,
    Mean,
    /// How far they lie apart.
    Spread(Spread),
}

/// The sum of numbers under way.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    /// What 128 bits hold, as units of the power of ten that `scale` says.
    units: i128,
    scale: u32,
    /// The rest.
    rest: BigDecimal,
    count: i64,
    /// How many numbers have how many digits behind the point: the sum has as many as the longest that is there.
    scales: Vec<i64>,
    /// How many are `-Infinity`, `Infinity` and `NaN`.
    specials: [i64; 3],
}

impl Sum {
    /// That of so many numbers, in units of a power of ten.
    pub fn of(small: (i128, u32), count: i64) -> Self {
        let mut sum = Self::default();
        sum.add_small(small, 1);
        Self { count, ..sum }
    }

    /// Takes a number in (`by` is 1) or out (-1).
    #[inline]
    fn add_small(&mut self, (units, scale): (i128, u32), by: i64) {
        if scale > self.scale
            && let Some(units) = numeric::at_scale((self.units, self.scale), scale)
        {
            (self.units, self.scale) = (units, scale);
        }
        let sum = numeric::at_scale((units, scale), self.scale);
        let sum = sum.and_then(|units| units.checked_mul(i128::from(by))?.checked_add(self.units));
        match sum {
            Some(sum) => self.units = sum,
            None => {
                self.rest += BigDecimal::new(BigInt::from(units), i64::from(scale)) * BigDecimal::from(by);
            }
        }
        self.note(scale as usize, by);
    }

    fn note(&mut self, scale: usize, by: i64) {
        if self.scales.len() <= scale {
            self.scales.resize(scale + 1, 0);
        }
        self.scales[scale] += by;
        self.count += by;
    }

    fn add(&mut self, number: Number, by: i64) {
        match number {
            Number::Finite(number) => {
                let scale = number.fractional_digit_count();
                self.rest += number * BigDecimal::from(by);
                self.note(usize::try_from(scale).unwrap_or(0), by);
            }
            Number::Special(special) => {
                self.specials[special as usize] += by;
                self.count += by;
            }
        }
    }

    /// Whether no number was taken in.
    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn special(&self) -> Option<Special> {
        let [below, above, none] = self.specials.map(|count| count > 0);
        match (below, above) {
            _ if none => Some(Special::NaN),
            (true, true) => Some(Special::NaN),
            (true, false) => Some(Special::NegativeInfinity),
            (false, true) => Some(Special::Infinity),
            (false, false) => None,
        }
    }

    fn finite(&self) -> BigDecimal {
        let scale = self.scales.iter().rposition(|count| *count > 0).unwrap_or(0);
        let sum = BigDecimal::new(BigInt::from(self.units), i64::from(self.scale)) + &self.rest;
        sum.with_scale(i64::try_from(scale).unwrap_or(0))
    }

    /// The sum.
    pub fn total(&self) -> Result<Value, SqlError> {
        match self.special() {
            _ if self.is_empty() => Ok(Value::Null),
            Some(special) => shown(&Number::Special(special)),
            None => shown(&Number::Finite(self.finite())),
        }
    }

    /// The mean.
    pub fn mean(&self) -> Result<Value, SqlError> {
        match self.special() {
            _ if self.is_empty() => Ok(Value::Null),
            Some(special) => shown(&Number::Special(special)),
            None => shown(&Number::Finite(quotient(&self.finite(), &BigDecimal::from(self.count))?)),
        }
    }
}

/// A group under way.
struct Total<C> {
    of: Of,
    caller: Rc<C>,
    sum: Sum,
    /// That of their squares, where it is asked for.
    squares: Sum,
}

impl<C: Caller> Total<C> {
    fn take_square(&mut self, value: Value, by: i64) -> Result<(), SqlError> {
        if let Value::Null = value {
            return Ok(());
        }
        let square = match number(&[value], 0)? {
            Number::Finite(number) => Number::Finite(number.square()),
            special @ Number::Special(_) => special,
        };
        self.squares.add(square, by);
        Ok(())
    }

    fn take(&mut self, arguments: &Arguments<'_>, by: i64) -> Result<(), String> {
        if matches!(self.of, Of::Spread(_)) {
            self.take_square(arguments.value(0), by).map_err(|error| self.caller.fail(error))?;
        }
        match arguments.value(0) {
            Value::Null => {}
            Value::Integer(integer) => self.sum.add_small((i128::from(integer), 0), by),
            Value::Text(text) if let Some(small) = numeric::small(&text) => self.sum.add_small(small, by),
            value => {
                let number = number(&[value], 0).map_err(|error| self.caller.fail(error))?;
                self.sum.add(number, by);
            }
        }
        Ok(())
    }
}

impl<C: Caller> Aggregate for Total<C> {
    fn step(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        self.take(arguments, 1)
    }

    fn take_back(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        self.take(arguments, -1)
    }

    fn value(&self) -> Result<Value, String> {
        let result = match self.of {
            Of::Sum => self.sum.total(),
            Of::Mean => self.sum.mean(),
            Of::Spread(spread) => spread.of(&self.sum, &self.squares),
        };
        result.map_err(|error| self.caller.fail(error))
    }
}

/// A variance, or its root.
#[derive(Clone, Copy, Debug)]
struct Spread {
    /// The group is a sample of more.
    sample: bool,
    root: bool,
}

impl Spread {
    /// With as many digits as PostgreSQL gives.
    fn of(self, sum: &Sum, squares: &Sum) -> Result<Value, SqlError> {
        let count = sum.count;
        if count <= i64::from(self.sample) {
            return Ok(Value::Null);
        }
        if sum.special().is_some() {
            return shown(&Number::Special(Special::NaN));
        }
        let total = sum.finite();
        let scale = total.fractional_digit_count() * 2;
        let squares = squares.finite() * BigDecimal::from(count) - total.square();
        if !squares.is_positive() {
            return shown(&Number::Finite(BigDecimal::zero()));
        }
        let below = BigDecimal::from(count) * BigDecimal::from(if self.sample { count - 1 } else { count });
        let squares = squares.with_scale(scale);
        let scale = quotient_scale(&squares, &below);
        let variance = divided(&squares, &below, scale)?;
        shown(&Number::Finite(if self.root { root(&variance, scale) } else { variance }))
    }
}

/// The aggregates with their names.
const TOTALS: &[(&str, Of)] = &[
    ("numeric_sum", Of::Sum),
    ("numeric_avg", Of::Mean),
    ("numeric_stddev", Of::Spread(Spread { sample: true, root: true })),
    ("numeric_stddev_pop", Of::Spread(Spread { sample: false, root: true })),
    ("numeric_stddev_samp", Of::Spread(Spread { sample: true, root: true })),
    ("numeric_var_pop", Of::Spread(Spread { sample: false, root: false })),
    ("numeric_var_samp", Of::Spread(Spread { sample: true, root: false })),
    ("numeric_variance", Of::Spread(Spread { sample: true, root: false })),
];

/// Whether it is one of the aggregates.
pub(super) fn is_aggregate(name: &str) -> bool {
    TOTALS.iter().any(|(own, _)| *own == name)
}

/// Makes the connection know the aggregates, and the order of decimal numbers.
pub(super) fn register<C: Caller>(connection: &Connection, caller: &Rc<C>) -> Result<(), SqlError> {
    connection.create_collation(NUMERIC_COLLATION, numeric::compare)?;
    for (name, of) in TOTALS {
        let caller = Rc::clone(caller);
        let made = move || Total {
            of: *of,
            caller: Rc::clone(&caller),
            sum: Sum::default(),
            squares: Sum::default(),
        };
        connection.create_aggregate(name, 1, made)?;
    }
    Ok(())
}
