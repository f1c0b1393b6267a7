//! Decimal numbers: their texts, which a `NUMERIC` column stores, and their order.
//!
//! A number is the text that clients see: all its digits, with the zeros that its scale asks for. `1.5` and `1.50` are
//! one number and two texts. So a column of such numbers has [`Collation::Numeric`](crate::definition::Collation): its
//! texts compare as numbers, and an index keeps them by [`folded`] texts.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::str::FromStr;

use bigdecimal::{BigDecimal, RoundingMode, Signed, ToPrimitive, Zero};

use super::Refusal;
pub use crate::limits::NUMERIC_DIGITS_MAX as DIGITS_MAX;
use crate::scalar::SqlType;
use crate::value::Value;

/// Significant digits that every float keeps, whatever they are (`DBL_DIG` of C).
pub const EXACT_DIGITS: u64 = 15;

/// Digits that [`small`] reads: their units fit 128 bits, also beside ten of the other scale.
const SMALL_DIGITS: usize = 36;

/// What is a number of no digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Less than all others.
    NegativeInfinity,
    /// Greater than all that have digits.
    Infinity,
    /// Greater than all others, and equal to itself.
    NaN,
}

impl Special {
    fn of_text(text: &str) -> Option<Self> {
        let (negative, word) = match text.strip_prefix('-') {
            Some(word) => (true, word),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        if is("infinity") || is("inf") {
            Some(if negative { Self::NegativeInfinity } else { Self::Infinity })
        } else {
            (text.eq_ignore_ascii_case("nan")).then_some(Self::NaN)
        }
    }

    /// As PostgreSQL writes it.
    pub fn text(self) -> &'static str {
        match self {
            Self::NegativeInfinity => "-Infinity",
            Self::Infinity => "Infinity",
            Self::NaN => "NaN",
        }
    }

    /// The float of this name, which computes as it does.
    pub fn float(self) -> f64 {
        match self {
            Self::NegativeInfinity => f64::NEG_INFINITY,
            Self::Infinity => f64::INFINITY,
            Self::NaN => f64::NAN,
        }
    }

    /// What a float is that has no digits.
    pub fn of_float(float: f64) -> Self {
        if float.is_nan() {
            Self::NaN
        } else if float < 0.0 {
            Self::NegativeInfinity
        } else {
            Self::Infinity
        }
    }
}

/// A decimal number.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// One with digits.
    Finite(BigDecimal),
    /// Infinite, or none.
    Special(Special),
}

impl Number {
    /// All its digits.
    pub fn text(&self) -> String {
        match self {
            Self::Finite(number) => text(number),
            Self::Special(special) => special.text().to_owned(),
        }
    }

    /// It, if it has digits.
    pub fn finite(self) -> Option<BigDecimal> {
        match self {
            Self::Finite(number) => Some(number),
            Self::Special(_) => None,
        }
    }
}

/// Why a text is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It spells none.
    Syntax,
    /// It has more than [`DIGITS_MAX`] digits on a side of its point.
    TooLong,
}

impl Malformed {
    /// The error that it is.
    pub fn refusal(self, text: &str) -> Refusal {
        match self {
            Self::Syntax => Refusal::syntax(SqlType::Numeric, text),
            Self::TooLong => Refusal::new("22003", "value overflows numeric format"),
        }
    }
}

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
    pub fn fit(self, number: Number) -> Result<Number, Refusal> {
        let number = match number {
            Number::Finite(number) => number,
            Number::Special(Special::NaN) => return Ok(number),
            Number::Special(_) => return Err(self.overflow()),
        };
        let rounded = plain(number.with_scale_round(self.scale, RoundingMode::HalfUp));
        let digits_before = if rounded.is_zero() {
            i64::MIN
        } else {
            i64::try_from(rounded.digits()).unwrap_or(i64::MAX) - rounded.fractional_digit_count()
        };
        if digits_before > self.precision - self.scale {
            Err(self.overflow())
        } else {
            Ok(Number::Finite(rounded))
        }
    }

    fn overflow(self) -> Refusal {
        let Self { precision, scale } = self;
        let message = format!("numeric field overflow: numeric({precision},{scale}) does not hold it");
        Refusal::new("22003", message)
    }

    /// Whether a text is what [`Modifier::fit`] makes of it.
    fn holds(self, text: &str) -> bool {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let length = |part: &str| i64::try_from(part.len()).unwrap_or(i64::MAX);
        let whole = if whole == "0" { 0 } else { length(whole) };
        is_canonical(text) && length(fraction) == self.scale && whole <= self.precision - self.scale
    }
}

/// Whether a text is as [`text`] writes the number: no blanks, no exponent, no zeros before it, no sign of zero.
fn is_canonical(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole)
        && digits(fraction)
        && unsigned.len() <= SMALL_DIGITS
        && (whole == "0" || !whole.starts_with('0'))
        && (unsigned.len() == text.len() || unsigned.bytes().any(|byte| matches!(byte, b'1'..=b'9')))
}

/// Without an exponent: no fewer than no digits behind the point.
fn plain(number: BigDecimal) -> BigDecimal {
    if number.fractional_digit_count() < 0 { number.with_scale(0) } else { number }
}

/// The number that a text spells, with the digits behind its point.
pub fn read(text: &str) -> Result<Number, Malformed> {
    let text = text.trim();
    if let Some(special) = Special::of_text(text) {
        return Ok(Number::Special(special));
    }
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let unsigned = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let length = |part: &str| i64::try_from(part.len()).unwrap_or(i64::MAX);
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return Err(Malformed::Syntax);
    }
    if length(whole.trim_start_matches('0')).saturating_add(exponent) > DIGITS_MAX
        || length(fraction).saturating_sub(exponent) > DIGITS_MAX
    {
        return Err(Malformed::TooLong);
    }
    let number = BigDecimal::from_str(mantissa).map_err(|_| Malformed::Syntax)?;
    let (digits, scale) = number.into_bigint_and_scale();
    Ok(Number::Finite(plain(BigDecimal::new(digits, scale - exponent))))
}

/// What stands behind the `e`. One that has too many digits itself is too great in either direction.
fn exponent(text: &str) -> Result<i64, Malformed> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Malformed::Syntax);
    }
    text.parse().map_err(|_| Malformed::TooLong)
}

/// The number that a text spells, if it has digits; `None`: it is none, or too long.
pub fn parse(text: &str) -> Option<BigDecimal> {
    read(text).ok().and_then(Number::finite)
}

/// The number that a float stands for, as PostgreSQL has it: 15 digits of it.
pub fn of_real(real: f64) -> Number {
    let digits = usize::try_from(EXACT_DIGITS).unwrap_or(0) - 1;
    match BigDecimal::from_str(&format!("{real:.digits$e}")) {
        Ok(number) if real.is_finite() => Number::Finite(plain(number.normalized())),
        _ => Number::Special(Special::of_float(real)),
    }
}

/// The number that a value is.
pub fn of_value(value: &Value) -> Result<Number, Refusal> {
    match value {
        Value::Integer(integer) => Ok(Number::Finite(BigDecimal::from(*integer))),
        Value::Real(real) => Ok(of_real(*real)),
        Value::Text(text) => read(text).map_err(|malformed| malformed.refusal(text)),
        Value::Null | Value::Blob(_) => Err(Refusal::of_kind(SqlType::Numeric, value)),
    }
}

/// All its digits.
pub fn text(number: &BigDecimal) -> String {
    number.to_plain_string()
}

/// The integer or float that is nearest.
pub fn nearest(number: &Number) -> Value {
    let number = match number {
        Number::Finite(number) => number,
        Number::Special(special) => return Value::Real(special.float()),
    };
    match number.is_integer().then(|| number.to_i64()).flatten() {
        Some(integer) => Value::Integer(integer),
        None => text(number).parse().map_or(Value::Null, Value::Real),
    }
}

/// The integer of 64 bits that is nearest to what a text spells: of two that are as near, the one away from zero.
pub fn nearest_integer(text: &str) -> Option<i64> {
    parse(text)?.with_scale_round(0, RoundingMode::HalfUp).to_i64()
}

/// A decimal number as a column stores it: its text.
pub fn accept(modifier: Option<Modifier>, value: Value) -> Result<Value, Refusal> {
    let fits = |text: &str| modifier.map_or_else(|| is_canonical(text), |modifier| modifier.holds(text));
    match value {
        Value::Text(text) if fits(&text) => return Ok(Value::Text(text)),
        Value::Integer(integer) if modifier.is_none() => return Ok(Value::Text(integer.to_string())),
        _ => {}
    }
    let number = of_value(&value)?;
    let number = match modifier {
        Some(modifier) => modifier.fit(number)?,
        None => number,
    };
    Ok(Value::Text(number.text()))
}

/// A number of few digits: the units of its last digit, and how many stand behind the point.
pub fn small(text: &str) -> Option<(i128, u32)> {
    let (negative, unsigned) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if unsigned.is_empty() || unsigned == b"." || unsigned.len() > SMALL_DIGITS {
        return None;
    }
    // The first digits fit a word, which is faster to count with.
    let (mut units, mut word, mut in_word) = (0_i128, 0_u64, 0);
    let mut point = None;
    for (at, &byte) in unsigned.iter().enumerate() {
        match byte {
            b'0'..=b'9' if in_word < 18 => {
                (word, in_word) = (word * 10 + u64::from(byte - b'0'), in_word + 1);
            }
            b'0'..=b'9' => {
                if word > 0 || in_word == 18 {
                    units = i128::from(word);
                    (word, in_word) = (0, usize::MAX);
                }
                units = units * 10 + i128::from(byte - b'0');
            }
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let units = if in_word == usize::MAX { units } else { i128::from(word) };
    let scale = point.map_or(0, |at| unsigned.len() - at - 1);
    Some((if negative { -units } else { units }, u32::try_from(scale).ok()?))
}

/// The power of ten.
fn power(of: u32) -> Option<i128> {
    10_i128.checked_pow(of)
}

/// The units of a number at a greater scale; `None`: 128 bits do not hold them.
pub fn at_scale((units, scale): (i128, u32), wanted: u32) -> Option<i128> {
    units.checked_mul(power(wanted.checked_sub(scale)?)?)
}

/// The order of two texts as numbers. What is no number comes last, by its bytes.
pub fn compare(a: &str, b: &str) -> Ordering {
    if let (Some(a), Some(b)) = (small(a), small(b)) {
        let scale = a.1.max(b.1);
        if let (Some(a), Some(b)) = (at_scale(a, scale), at_scale(b, scale)) {
            return a.cmp(&b);
        }
    }
    match (read(a), read(b)) {
        (Ok(Number::Finite(a)), Ok(Number::Finite(b))) => a.cmp(&b),
        (a_number, b_number) => {
            let rank = |number: &Result<Number, Malformed>| match number {
                Ok(Number::Special(Special::NegativeInfinity)) => 0,
                Ok(Number::Finite(_)) => 1,
                Ok(Number::Special(Special::Infinity)) => 2,
                Ok(Number::Special(Special::NaN)) => 3,
                Err(_) => 4,
            };
            let (a_rank, b_rank) = (rank(&a_number), rank(&b_number));
            let of_none = || if a_rank == 4 { a.cmp(b) } else { Ordering::Equal };
            a_rank.cmp(&b_rank).then_with(of_none)
        }
    }
}

/// A text whose bytes are equal for texts of one number, and in order for others: a letter for the sign, the place of
/// the first digit that is not zero, and the digits from there to the last. Those of a negative number are
/// complemented, with a sign behind them that is greater than they are.
pub fn folded(text: &str) -> String {
    let number = match read(text) {
        Ok(Number::Finite(number)) => number,
        Ok(Number::Special(Special::NegativeInfinity)) => return "a".to_owned(),
        Ok(Number::Special(Special::Infinity)) => return "e".to_owned(),
        Ok(Number::Special(Special::NaN)) => return "f".to_owned(),
        Err(_) => return format!("g{text}"),
    };
    if number.is_zero() {
        return "c".to_owned();
    }
    let negative = number.is_negative();
    let (digits, scale) = number.into_bigint_and_scale();
    let digits = digits.magnitude().to_string();
    // Not below zero, so that the texts of these have one length.
    let place = i64::try_from(digits.len()).unwrap_or(i64::MAX) - scale + PLACE_OF_ONE;
    let digits = digits.trim_end_matches('0');
    let mut out = String::with_capacity(digits.len() + 6);
    if negative {
        let _ = write!(out, "b{:04}", PLACES - place);
        out.extend(digits.bytes().map(|digit| char::from(b'0' + b'9' - digit)));
        out.push('~');
    } else {
        let _ = write!(out, "d{place:04}{digits}");
    }
    out
}

/// The place of the digit before the point, among [`PLACES`].
const PLACE_OF_ONE: i64 = DIGITS_MAX * 2;
/// So many digits write a place.
const PLACES: i64 = 9_999;

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(declared: &str, value: Value) -> Result<Value, &'static str> {
        accept(Modifier::of_declared(declared), value).map_err(|refusal| refusal.state)
    }

    #[test]
    fn values_are_kept_or_refused() {
        let text = |text: &str| Ok(Value::from(text));
        for (declared, given, expected) in [
            ("NUMERIC", Value::from("1.10"), text("1.10")),
            ("NUMERIC", Value::from(" -5.00 "), text("-5.00")),
            ("NUMERIC", Value::from("-0.00"), text("0.00")),
            ("NUMERIC", Value::from("007"), text("7")),
            ("NUMERIC", Value::from("1.5e3"), text("1500")),
            ("NUMERIC", Value::Integer(-7), text("-7")),
            ("NUMERIC", Value::from("9223372036854775808"), text("9223372036854775808")),
            ("NUMERIC", Value::from("0.33333333333333333333"), text("0.33333333333333333333")),
            ("NUMERIC", Value::Real(0.1 + 0.2), text("0.3")),
            ("NUMERIC", Value::from("nan"), text("NaN")),
            ("NUMERIC", Value::from("-inf"), text("-Infinity")),
            ("NUMERIC", Value::from("1e9999"), Err("22003")),
            ("NUMERIC", Value::from("1e-99999999999999999999"), Err("22003")),
            ("NUMERIC", Value::from("x"), Err("22P02")),
            ("NUMERIC", Value::from("1_0"), Err("22P02")),
            ("NUMERIC", Value::from(""), Err("22P02")),
            ("NUMERIC(10, 2)", Value::from("0.33333333333333333333"), text("0.33")),
            ("NUMERIC(10,2)", Value::from("2.345"), text("2.35")),
            ("NUMERIC(10,2)", Value::from("-2.345"), text("-2.35")),
            ("NUMERIC(10,2)", Value::from("12.50"), text("12.50")),
            ("NUMERIC(10,2)", Value::from("012.50"), text("12.50")),
            ("NUMERIC(10,2)", Value::from("12.5"), text("12.50")),
            ("NUMERIC(10,2)", Value::Real(1.005), text("1.01")),
            ("NUMERIC(4,2)", Value::from("99.994"), text("99.99")),
            ("NUMERIC(4,2)", Value::from("99.995"), Err("22003")),
            ("NUMERIC(4,2)", Value::from("100.00"), Err("22003")),
            ("NUMERIC(4,2)", Value::from("NaN"), text("NaN")),
            ("NUMERIC(4,2)", Value::from("Infinity"), Err("22003")),
            ("NUMERIC(4,2)", Value::Integer(100), Err("22003")),
            ("NUMERIC(2,2)", Value::from("0.994"), text("0.99")),
            ("NUMERIC(2,2)", Value::Integer(0), text("0.00")),
            ("NUMERIC(3)", Value::from("999.4"), text("999")),
            ("NUMERIC(3)", Value::from("999.5"), Err("22003")),
            ("NUMERIC(3,-2)", Value::from("12345"), text("12300")),
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
        assert_eq!(of_real(110.000_000_000_000_01).text(), "110");
    }

    /// A random number as somebody may write it.
    fn random_text(random: &mut fastrand::Rng) -> String {
        let digits = |random: &mut fastrand::Rng, most: usize| -> String {
            (0..random.usize(0..=most)).map(|_| random.choice(['0', '0', '1', '5', '9']).unwrap()).collect()
        };
        let most = random.choice([2, 3, 20, 40]).unwrap();
        if random.u8(0..12) == 0 {
            return random.choice(["NaN", "Infinity", "-Infinity", "0", "-0.0"]).unwrap().to_owned();
        }
        let sign = random.choice(["", "-"]).unwrap();
        format!("{sign}{}0.{}0", digits(random, most), digits(random, most))
    }

    #[test]
    fn folded_texts_order_as_numbers_do() {
        let mut random = crate::testing::seeded();
        for _ in 0..100_000 {
            let (a, b) = (random_text(&mut random), random_text(&mut random));
            let order = match (read(&a).unwrap(), read(&b).unwrap()) {
                (Number::Finite(a), Number::Finite(b)) => a.cmp(&b),
                (a, b) => {
                    // Floats order them, but for what is no number.
                    let float = |number: &Number| match number {
                        Number::Finite(_) => 0.0,
                        Number::Special(special) => special.float(),
                    };
                    let (a, b) = (float(&a), float(&b));
                    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
                }
            };
            assert_eq!(compare(&a, &b), order, "{a} {b}");
            assert_eq!(folded(&a).cmp(&folded(&b)), order, "{a} {b}: {} {}", folded(&a), folded(&b));
        }
    }
}
