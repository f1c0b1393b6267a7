//! Decimal numbers: what a `NUMERIC` column stores of them, and their texts.
//!
//! A column stores an integer of 64 bits or a float, so that it sorts, compares and lies in indexes as numbers do. A
//! float gives back every decimal of [`EXACT_DIGITS`] significant digits, so what has more is refused rather than
//! rounded.

use std::str::FromStr;

use bigdecimal::{BigDecimal, RoundingMode, Signed, ToPrimitive, Zero};

use super::Refusal;
pub use crate::limits::NUMERIC_DIGITS_MAX as DIGITS_MAX;
use crate::scalar::SqlType;
use crate::value::Value;

/// Significant digits that every float keeps, whatever they are (`DBL_DIG` of C).
pub const EXACT_DIGITS: u64 = 15;

/// What stands in parentheses: `NUMERIC(10, 2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modifier {
    /// All digits.
    pub precision: i64,
    /// Those behind the point; negative: so many before it are zero.
    pub scale: i64,
}

impl Modifier {
    /// Of the numbers in the parentheses; `None` where they are none that PostgreSQL takes.
    pub fn of_numbers(numbers: &[i64]) -> Option<Self> {
        let (precision, scale) = match *numbers {
            [precision] => (precision, 0),
            [precision, scale] => (precision, scale),
            _ => return None,
        };
        let fits = (1..=DIGITS_MAX).contains(&precision) && (-DIGITS_MAX..=DIGITS_MAX).contains(&scale);
        fits.then_some(Self { precision, scale })
    }

    /// Of a type as a column declares it.
    pub fn of_declared(declared: &str) -> Option<Self> {
        let (_, inside) = declared.split_once('(')?;
        let (inside, _) = inside.split_once(')')?;
        let numbers: Option<Vec<i64>> = inside.split(',').map(|number| number.trim().parse().ok()).collect();
        Self::of_numbers(&numbers?)
    }

    /// Digits behind the point that values are shown with.
    pub fn shown_scale(self) -> u16 {
        u16::try_from(self.scale).unwrap_or(0)
    }

    /// The number with as many digits as these.
    pub fn fit(self, number: &BigDecimal) -> Result<BigDecimal, Refusal> {
        let rounded = plain(number.with_scale_round(self.scale, RoundingMode::HalfUp));
        let digits_before = if rounded.is_zero() {
            i64::MIN
        } else {
            i64::try_from(rounded.digits()).unwrap_or(i64::MAX) - rounded.fractional_digit_count()
        };
        if digits_before > self.precision - self.scale {
            let Self { precision, scale } = self;
            let message = format!("numeric field overflow: numeric({precision},{scale}) does not hold it");
            return Err(Refusal::new("22003", message));
        }
        Ok(rounded)
    }
}

/// Without an exponent: no fewer than no digits behind the point.
fn plain(number: BigDecimal) -> BigDecimal {
    if number.fractional_digit_count() < 0 { number.with_scale(0) } else { number }
}

/// The number that a text spells, with the digits behind its point; `None`: it is none, or too long.
pub fn parse(text: &str) -> Option<BigDecimal> {
    let text = text.trim();
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i64>().ok()?),
        None => (text, 0),
    };
    let unsigned = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let length = |part: &str| i64::try_from(part.len()).unwrap_or(i64::MAX);
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    if length(whole).saturating_add(exponent) > DIGITS_MAX
        || length(fraction).saturating_sub(exponent) > DIGITS_MAX
    {
        return None;
    }
    let number = BigDecimal::from_str(mantissa).ok()?;
    let (digits, scale) = number.into_bigint_and_scale();
    Some(plain(BigDecimal::new(digits, scale - exponent)))
}

/// The number that a float stands for, as PostgreSQL has it: 15 digits of it.
pub fn of_real(real: f64) -> Option<BigDecimal> {
    let digits = usize::try_from(EXACT_DIGITS).unwrap_or(0) - 1;
    let number = BigDecimal::from_str(&format!("{real:.digits$e}")).ok()?;
    Some(plain(number.normalized()))
}

/// The number that a value is; `None`: it is none.
pub fn of_value(value: &Value) -> Option<BigDecimal> {
    match value {
        Value::Integer(integer) => Some(BigDecimal::from(*integer)),
        Value::Real(real) => of_real(*real),
        Value::Text(text) => parse(text),
        Value::Null | Value::Blob(_) => None,
    }
}

/// The same with at least so many digits behind the point.
pub fn with_scale(number: BigDecimal, scale: u16) -> BigDecimal {
    if number.fractional_digit_count() < i64::from(scale) {
        number.with_scale(i64::from(scale))
    } else {
        number
    }
}

/// All its digits.
pub fn text(number: &BigDecimal) -> String {
    number.to_plain_string()
}

/// The integer or float that is nearest.
pub fn nearest(number: &BigDecimal) -> Value {
    match number.is_integer().then(|| number.to_i64()).flatten() {
        Some(integer) => Value::Integer(integer),
        None => text(number).parse().map_or(Value::Null, Value::Real),
    }
}

/// The integer or float that gives the number back; `None`: none does.
fn exact(number: &BigDecimal) -> Option<Value> {
    if number.is_integer()
        && let Some(integer) = number.to_i64()
    {
        return Some(Value::Integer(integer));
    }
    let kept = number.normalized();
    let size = i64::try_from(kept.digits()).ok()? - kept.fractional_digit_count();
    // Beyond these powers of ten a float has fewer digits, or is none.
    let within = (-290..=300).contains(&size);
    (kept.digits() <= EXACT_DIGITS && within).then(|| nearest(&kept))
}

/// A decimal number as a column stores it.
pub fn accept(modifier: Option<Modifier>, value: Value) -> Result<Value, Refusal> {
    if modifier.is_none() && matches!(value, Value::Integer(_)) {
        return Ok(value);
    }
    let Some(number) = of_value(&value) else { return Err(Refusal::of_kind(SqlType::Numeric, &value)) };
    let number = match modifier {
        Some(modifier) => modifier.fit(&number)?,
        None => number,
    };
    exact(&number).ok_or_else(|| {
        let shown = text(&number);
        let message = format!(
            "numeric value {} has more than {EXACT_DIGITS} significant digits, which a column cannot store; round it",
            super::shortened(&shown)
        );
        Refusal::new("22003", message)
    })
}

/// A number and its sign, for functions that need no more of them.
pub fn is_negative(number: &BigDecimal) -> bool {
    number.is_negative()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(declared: &str, value: Value) -> Result<Value, &'static str> {
        accept(Modifier::of_declared(declared), value).map_err(|refusal| refusal.state)
    }

    #[test]
    fn values_are_kept_or_refused() {
        for (declared, given, expected) in [
            ("NUMERIC", Value::from("1.10"), Ok(Value::Real(1.1))),
            ("NUMERIC", Value::from(" -5.00 "), Ok(Value::Integer(-5))),
            ("NUMERIC", Value::from("1.5e3"), Ok(Value::Integer(1_500))),
            ("NUMERIC", Value::from("9223372036854775807"), Ok(Value::Integer(i64::MAX))),
            ("NUMERIC", Value::from("9223372036854775808"), Err("22003")),
            ("NUMERIC", Value::from("123456789.012345"), Ok(Value::Real(123_456_789.012_345))),
            ("NUMERIC", Value::from("123456789.0123456"), Err("22003")),
            ("NUMERIC", Value::from("0.33333333333333333333"), Err("22003")),
            ("NUMERIC", Value::Real(0.1 + 0.2), Ok(Value::Real(0.3))),
            ("NUMERIC", Value::from("1e9999"), Err("22P02")),
            ("NUMERIC", Value::from("x"), Err("22P02")),
            ("NUMERIC", Value::from("1_0"), Err("22P02")),
            ("NUMERIC", Value::from(""), Err("22P02")),
            ("NUMERIC(10, 2)", Value::from("0.33333333333333333333"), Ok(Value::Real(0.33))),
            ("NUMERIC(10,2)", Value::from("2.345"), Ok(Value::Real(2.35))),
            ("NUMERIC(10,2)", Value::from("-2.345"), Ok(Value::Real(-2.35))),
            ("NUMERIC(10,2)", Value::Real(1.005), Ok(Value::Real(1.01))),
            ("NUMERIC(4,2)", Value::from("99.994"), Ok(Value::Real(99.99))),
            ("NUMERIC(4,2)", Value::from("99.995"), Err("22003")),
            ("NUMERIC(4,2)", Value::Integer(100), Err("22003")),
            ("NUMERIC(2,2)", Value::from("0.994"), Ok(Value::Real(0.99))),
            ("NUMERIC(2,2)", Value::Integer(0), Ok(Value::Integer(0))),
            ("NUMERIC(3)", Value::from("999.4"), Ok(Value::Integer(999))),
            ("NUMERIC(3)", Value::from("999.5"), Err("22003")),
            ("NUMERIC(3,-2)", Value::from("12345"), Ok(Value::Integer(12_300))),
        ] {
            assert_eq!(stored(declared, given.clone()), expected, "{declared} {given:?}");
        }
    }

    #[test]
    fn texts_keep_their_digits() {
        for (given, shown) in
            [("1.10", "1.10"), ("1.50e1", "15.0"), ("1e-3", "0.001"), ("-0.00", "0.00"), ("007", "7")]
        {
            assert_eq!(text(&parse(given).unwrap()), shown, "{given}");
        }
        assert_eq!(text(&of_real(110.000_000_000_000_01).unwrap()), "110");
    }
}
