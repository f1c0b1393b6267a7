//! Decimal numbers, computed exactly, with as many digits as PostgreSQL gives. A result is a text; what it is compared,
//! sorted and stored as is the number that `numeric_number` makes of it.

use std::collections::BTreeMap;
use std::rc::Rc;

use bigdecimal::num_bigint::{BigInt, Sign};
use bigdecimal::{BigDecimal, RoundingMode, Signed, Zero};
use sqlite::{Aggregate, Arguments, Connection};
use sqltext::error::{SqlError, state};
use store::definition::SqlType;
use store::scalar::numeric::{self, DIGITS_MAX, Modifier};
use store::value::Value;

use super::def::{Caller, FunctionDef, Now, Returns, Source, integer};

const NUMERIC: Returns = Returns::Type(SqlType::Numeric);

const fn own(
    name: &'static str,
    arguments: &'static str,
    source: Source,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    FunctionDef { name, arguments, returns: NUMERIC, types: &[], source, meaning, example, answer }
}

/// What operators and functions become where a side is `NUMERIC`.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("numeric_add", "(a, b)", Source::Own(|_, v| two(v, |a, b| Ok(a + b), i64::max), 2, 2),
        "what `a + b` is of `NUMERIC`", "0.1::numeric + 0.2", "0.3"),
    own("numeric_subtract", "(a, b)", Source::Own(|_, v| two(v, |a, b| Ok(a - b), i64::max), 2, 2),
        "what `a - b` is", "1.10::numeric - 1", "0.10"),
    own("numeric_multiply", "(a, b)", Source::Own(|_, v| two(v, |a, b| Ok(a * b), |a, b| a + b), 2, 2),
        "what `a * b` is", "1.10::numeric * 3", "3.30"),
    own("numeric_divide", "(a, b)", Source::Own(|_, v| shown(&quotient(&decimal(v, 0)?, &decimal(v, 1)?)?), 2, 2),
        "what `a / b` is, with at least 16 significant digits", "1::numeric / 3", "0.33333333333333333333"),
    own("numeric_remainder", "(a, b)", Source::Own(|_, v| two(v, remainder, i64::max), 2, 2),
        "what `a % b` and `mod(a, b)` are", "7.5::numeric % 2", "1.5"),
    own("numeric_quotient", "(a, b)", Source::Own(whole_quotient, 2, 2),
        "what `div(a, b)` is: the whole part of the quotient", "div(9::numeric, 4)", "2"),
    own("numeric_abs", "(a)", Source::Own(|_, v| shown(&decimal(v, 0)?.abs()), 1, 1),
        "what `abs(a)` is", "abs(-1.50::numeric)", "1.50"),
    own("numeric_ceil", "(a)", Source::Own(|_, v| rounded(v, RoundingMode::Ceiling), 1, 1),
        "what `ceil(a)` is", "ceil(1.2::numeric)", "2"),
    own("numeric_floor", "(a)", Source::Own(|_, v| rounded(v, RoundingMode::Floor), 1, 1),
        "what `floor(a)` is", "floor(-1.2::numeric)", "-2"),
    own("numeric_round", "(a, decimals)", Source::Own(|_, v| rounded(v, RoundingMode::HalfUp), 1, 2),
        "what `round(a, decimals)` is: halves away from zero", "round(2.345::numeric, 2)", "2.35"),
    own("numeric_trunc", "(a, decimals)", Source::Own(|_, v| rounded(v, RoundingMode::Down), 1, 2),
        "what `trunc(a, decimals)` is", "trunc(2.349::numeric, 2)", "2.34"),
    own("numeric_of", "(value)", Source::Own(|_, v| shown(&decimal(v, 0)?), 1, 1),
        "what `value::numeric` is", "'1.10'::numeric", "1.10"),
    own("numeric_fit", "(value, precision, scale)", Source::Own(fit, 3, 3),
        "what `value::numeric(precision, scale)` is", "'1.005'::numeric(10, 2)", "1.01"),
    own("numeric_scaled", "(value, scale)", Source::Own(scaled, 2, 2),
        "with at least so many digits behind the point", "numeric_scaled(1.1, 2)", "1.10"),
    own("numeric_number", "(value)", Source::Own(|_, v| Ok(numeric::nearest(&decimal(v, 0)?)), 1, 1),
        "the integer or float that is nearest, as which it is compared and sorted", "numeric_number('1.10')", "1.1"),
];

/// An argument as a decimal number.
fn decimal(values: &[Value], at: usize) -> Result<BigDecimal, SqlError> {
    let value = values.get(at).unwrap_or(&Value::Null);
    numeric::of_value(value).ok_or_else(|| {
        let words = match value {
            Value::Text(text) => {
                let shown: String = text.chars().take(40).collect();
                format!("invalid input syntax for type numeric: \"{shown}\"")
            }
            _ => "invalid input syntax for type numeric".to_owned(),
        };
        SqlError::new(state::BAD_VALUE, words)
    })
}

/// A number as a text with all its digits.
fn shown(number: &BigDecimal) -> Result<Value, SqlError> {
    let scale = number.fractional_digit_count();
    let digits = i64::try_from(number.digits()).unwrap_or(i64::MAX);
    if digits.saturating_sub(scale) > DIGITS_MAX || scale > DIGITS_MAX {
        return Err(SqlError::new(state::OUT_OF_RANGE, "value overflows numeric format"));
    }
    Ok(Value::Text(numeric::text(number)))
}

type Operation = fn(&BigDecimal, &BigDecimal) -> Result<BigDecimal, SqlError>;

/// An operation whose result has a scale that follows from those of its sides.
fn two(values: &[Value], operation: Operation, scale: fn(i64, i64) -> i64) -> Result<Value, SqlError> {
    let (a, b) = (decimal(values, 0)?, decimal(values, 1)?);
    let scale = scale(a.fractional_digit_count(), b.fractional_digit_count());
    shown(&operation(&a, &b)?.with_scale_round(scale, RoundingMode::HalfUp))
}

fn division_by_zero() -> SqlError {
    SqlError::new("22012", "division by zero")
}

fn remainder(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, SqlError> {
    if b.is_zero() {
        return Err(division_by_zero());
    }
    Ok(a % b)
}

/// The number as `digits` units of the power of ten that `scale` says.
fn units(number: &BigDecimal, scale: i64) -> BigInt {
    number.with_scale(scale).into_bigint_and_scale().0
}

/// The quotient with so many digits behind the point, the last one rounded.
fn divided(a: &BigDecimal, b: &BigDecimal, scale: i64) -> Result<BigDecimal, SqlError> {
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
    const SIGNIFICANT_MIN: i64 = 16;
    const GROUP: i64 = 4;
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

fn whole_quotient(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (a, b) = (decimal(values, 0)?, decimal(values, 1)?);
    if b.is_zero() {
        return Err(division_by_zero());
    }
    let rest = remainder(&a, &b)?;
    shown(&divided(&(a - rest), &b, 0)?)
}

fn rounded(values: &[Value], mode: RoundingMode) -> Result<Value, SqlError> {
    let decimals = integer(values, 1)?.unwrap_or(0).clamp(-DIGITS_MAX, DIGITS_MAX);
    let number = decimal(values, 0)?.with_scale_round(decimals, mode);
    shown(&if decimals < 0 { number.with_scale(0) } else { number })
}

fn fit(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let numbers = [integer(values, 1)?.unwrap_or(0), integer(values, 2)?.unwrap_or(0)];
    let modifier = Modifier::of_numbers(&numbers).ok_or_else(|| {
        SqlError::new(state::BAD_PARAMETER, format!("NUMERIC precision must be between 1 and {DIGITS_MAX}"))
    })?;
    shown(&modifier.fit(&decimal(values, 0)?)?)
}

fn scaled(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let scale = integer(values, 1)?.and_then(|scale| u16::try_from(scale).ok()).unwrap_or(0);
    shown(&numeric::with_scale(decimal(values, 0)?, scale))
}

/// What a group comes to.
#[derive(Clone, Copy, Debug)]
enum Of {
    Sum,
    Mean,
}

/// The sum of a group under way.
struct Total<C> {
    of: Of,
    caller: Rc<C>,
    sum: BigDecimal,
    count: i64,
    /// How many of them have how many digits behind the point: the sum has as many as the longest that is there.
    scales: BTreeMap<i64, i64>,
}

impl<C: Caller> Total<C> {
    fn number(&self, arguments: &Arguments<'_>) -> Result<Option<BigDecimal>, String> {
        let value = arguments.value(0);
        if value.is_null() {
            return Ok(None);
        }
        decimal(&[value], 0).map(Some).map_err(|error| self.caller.fail(error))
    }

    fn result(&self) -> Result<Value, SqlError> {
        if self.count == 0 {
            return Ok(Value::Null);
        }
        let scale = self.scales.last_key_value().map_or(0, |(scale, _)| *scale);
        let sum = self.sum.with_scale(scale);
        match self.of {
            Of::Sum => shown(&sum),
            Of::Mean => shown(&quotient(&sum, &BigDecimal::from(self.count))?),
        }
    }
}

impl<C: Caller> Aggregate for Total<C> {
    fn step(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        if let Some(number) = self.number(arguments)? {
            *self.scales.entry(number.fractional_digit_count()).or_insert(0) += 1;
            self.sum += number;
            self.count += 1;
        }
        Ok(())
    }

    fn take_back(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        if let Some(number) = self.number(arguments)? {
            let scale = number.fractional_digit_count();
            if let Some(left) = self.scales.get_mut(&scale) {
                *left -= 1;
                if *left == 0 {
                    self.scales.remove(&scale);
                }
            }
            self.sum -= number;
            self.count -= 1;
        }
        Ok(())
    }

    fn value(&self) -> Result<Value, String> {
        self.result().map_err(|error| self.caller.fail(error))
    }
}

/// The aggregates' names.
pub(super) const AGGREGATES: &[&str] = &["numeric_sum", "numeric_avg"];

/// Makes the connection know the aggregates.
pub(super) fn register<C: Caller>(connection: &Connection, caller: &Rc<C>) -> Result<(), SqlError> {
    for (name, of) in AGGREGATES.iter().zip([Of::Sum, Of::Mean]) {
        let caller = Rc::clone(caller);
        connection.create_aggregate(name, 1, move || Total {
            of,
            caller: Rc::clone(&caller),
            sum: BigDecimal::zero(),
            count: 0,
            scales: BTreeMap::new(),
        })?;
    }
    Ok(())
}
