//! Powers of e and logarithms of decimal numbers, with as many digits as PostgreSQL gives.

use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, One, RoundingMode, Signed, ToPrimitive, Zero};
use sqlite::meter;
use sqltext::error::SqlError;
use store::scalar::numeric::{DIGITS_MAX, Number, Special};
use store::value::Value;

use super::numeric::{SIGNIFICANT_MIN, divided, number, overflow, shown, units};
use crate::limits::EXPONENTIAL_DIGITS_MAX;

/// Digits behind those that are asked for: what rounding within a computation takes away is less.
const GUARD_DIGITS: i64 = 12;

/// `exp(x)`
pub(super) fn exponential(values: &[Value]) -> Result<Value, SqlError> {
    let number = match number(values, 0)? {
        Number::Finite(number) => number,
        Number::Special(Special::NegativeInfinity) => return shown(&Number::Finite(BigDecimal::zero())),
        special @ Number::Special(_) => return shown(&special),
    };
    let scale = scale_of_power(float(&number)).max(number.fractional_digit_count());
    shown(&Number::Finite(exp(&number, scale.clamp(0, DIGITS_MAX))?))
}

/// `ln(x)`
pub(super) fn natural(values: &[Value]) -> Result<Value, SqlError> {
    let number = match positive(values, 0)? {
        Number::Finite(number) => number,
        special @ Number::Special(_) => return shown(&special),
    };
    let scale = (SIGNIFICANT_MIN - weight_of_logarithm(&number)).max(number.fractional_digit_count());
    shown(&Number::Finite(ln(&number, scale.clamp(0, DIGITS_MAX))?))
}

/// `log(x)` and `log(base, x)`
pub(super) fn logarithm(values: &[Value]) -> Result<Value, SqlError> {
    let one = [Value::Integer(10), values.first().cloned().unwrap_or_default()];
    let values = if values.len() < 2 { &one[..] } else { values };
    let nan = Number::Special(Special::NaN);
    if number(values, 0)? == nan || number(values, 1)? == nan {
        return shown(&nan);
    }
    let (base, of) = match (positive(values, 0)?, positive(values, 1)?) {
        (Number::Finite(base), Number::Finite(of)) => (base, of),
        (base, of) => return shown(&special_logarithm(&base, &of)),
    };
    let weight = weight_of_logarithm(&of) - weight_of_logarithm(&base);
    let written = base.fractional_digit_count().max(of.fractional_digit_count());
    let scale = (SIGNIFICANT_MIN - weight).max(written).clamp(0, DIGITS_MAX);
    let (above, below) = (ln(&of, scale + GUARD_DIGITS)?, ln(&base, scale + GUARD_DIGITS)?);
    shown(&Number::Finite(divided(&above, &below, scale)?))
}

/// A positive number to the power of one that is no whole number.
pub(super) fn power(base: &BigDecimal, exponent: &BigDecimal) -> Result<BigDecimal, SqlError> {
    if base.is_zero() {
        return Ok(BigDecimal::zero().with_scale(SIGNIFICANT_MIN));
    }
    let written = base.fractional_digit_count().max(exponent.fractional_digit_count());
    let rough = approximate_ln(base) * float(exponent);
    let scale = scale_of_power(rough).max(written).clamp(0, DIGITS_MAX);
    // An error of the logarithm becomes one of the digits before the point, too.
    let before = whole_digits(rough)? + whole_digits(float(exponent).abs().ln())?;
    let logarithm = ln(base, scale + before + GUARD_DIGITS)?;
    exp(&(logarithm * exponent), scale)
}

/// Digits behind the point of a power of e.
fn scale_of_power(exponent: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
    let weight = (exponent * std::f64::consts::LOG10_E).clamp(-2e3, 2e3) as i64;
    SIGNIFICANT_MIN - weight
}

/// By how many digits a logarithm is more than 1, as PostgreSQL estimates it.
fn weight_of_logarithm(number: &BigDecimal) -> i64 {
    let near = number - BigDecimal::one();
    if near.is_zero() {
        return 0;
    }
    if float(&near).abs() <= 0.1 {
        return i64::try_from(near.digits()).unwrap_or(0) - near.fractional_digit_count() - 1;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the logarithm of a logarithm")]
    let weight = approximate_ln(number).abs().log10() as i64;
    weight
}

/// A logarithm by floats, also of what no float holds.
fn approximate_ln(number: &BigDecimal) -> f64 {
    let digits = i64::try_from(number.digits()).unwrap_or(i64::MAX);
    let exponent = digits - number.fractional_digit_count();
    let (mantissa, scale) = number.clone().into_bigint_and_scale();
    let mantissa = BigDecimal::new(mantissa, scale + exponent);
    float(&mantissa).ln() + exponent as f64 * std::f64::consts::LN_10
}

fn float(number: &BigDecimal) -> f64 {
    number.to_f64().unwrap_or(0.0)
}

/// Digits before the point of `e` to the power of this.
fn whole_digits(exponent: f64) -> Result<i64, SqlError> {
    let digits = (exponent * std::f64::consts::LOG10_E).ceil().max(0.0);
    if digits > EXPONENTIAL_DIGITS_MAX {
        return Err(overflow());
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
    let digits = digits as i64;
    Ok(digits + 1)
}

/// `e` to the power of a number, with so many digits behind the point: of a small part of it by its series, which is
/// squared until it is the whole.
fn exp(number: &BigDecimal, scale: i64) -> Result<BigDecimal, SqlError> {
    let rough = float(number);
    if rough * std::f64::consts::LOG10_E < -(scale as f64) - 2.0 {
        return Ok(BigDecimal::zero().with_scale(scale));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the logarithm of a bounded number"
    )]
    let halvings = ((rough.abs() * 64.0).log2().ceil().max(0.0) as u32).min(64);
    let digits = scale + whole_digits(rough)? + i64::from(halvings) / 3 + GUARD_DIGITS;
    let one = power_of_ten(digits);
    let part = units(number, digits) >> halvings;
    let (mut sum, mut term) = (one.clone(), one.clone());
    for count in 1_u32.. {
        meter::work(usize::try_from(digits).unwrap_or(usize::MAX))?;
        term = term * &part / (&one * count);
        if term.is_zero() || (term.is_negative() && term == -BigInt::one()) {
            break;
        }
        sum += &term;
    }
    for _ in 0..halvings {
        meter::work(usize::try_from(digits).unwrap_or(usize::MAX))?;
        sum = &sum * &sum / &one;
    }
    Ok(BigDecimal::new(sum, digits).with_scale_round(scale, RoundingMode::HalfUp))
}

/// The natural logarithm of a positive number, with so many digits behind the point: what a float knows of it is made
/// better until it has them, each time to thrice as many digits.
fn ln(number: &BigDecimal, scale: i64) -> Result<BigDecimal, SqlError> {
    if number < &BigDecimal::one() {
        let digits = scale + GUARD_DIGITS + whole_digits(-approximate_ln(number))?;
        let inverse = divided(&BigDecimal::one(), number, digits)?;
        return Ok(-ln(&inverse, scale)?);
    }
    let start = approximate_ln(number);
    let digits = scale + GUARD_DIGITS;
    let behind = digits + whole_digits(start)?;
    let mut found =
        BigDecimal::try_from(start).map_err(|_| overflow())?.with_scale_round(digits, RoundingMode::HalfUp);
    // A float near 1 knows fewer digits of its logarithm than of others.
    let mut known = FLOAT_DIGITS;
    while known < digits {
        let power = exp(&found, behind)?;
        let (above, below) = ((number - &power) * BigDecimal::from(2), number + &power);
        found += divided(&above, &below, digits)?;
        known *= 3;
    }
    Ok(found.with_scale_round(scale, RoundingMode::HalfUp))
}

/// Digits that a float surely knows of a logarithm, in absolute terms.
const FLOAT_DIGITS: i64 = 11;

fn power_of_ten(digits: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(digits).unwrap_or(0))
}

/// An argument of a logarithm, which must be above zero.
fn positive(values: &[Value], at: usize) -> Result<Number, SqlError> {
    let refused = |what: &str| Err(SqlError::new("2201E", format!("cannot take logarithm of {what}")));
    match number(values, at)? {
        Number::Finite(number) if number.is_zero() => refused("zero"),
        Number::Finite(number) if number.is_negative() => refused("a negative number"),
        Number::Special(Special::NegativeInfinity) => refused("a negative number"),
        number => Ok(number),
    }
}

/// Where one of the numbers is infinite.
fn special_logarithm(base: &Number, of: &Number) -> Number {
    match (base, of) {
        (Number::Finite(_), _) => Number::Special(Special::Infinity),
        (_, Number::Finite(_)) => Number::Finite(BigDecimal::zero()),
        _ => Number::Special(Special::NaN),
    }
}
