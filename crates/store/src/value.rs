//! Values as SQLite knows them: five storage classes, one order over all of them, and column affinity.
//!
//! [`Value`] owns its bytes, [`ValueRef`] borrows them from a row. Both compare, convert and print as the
//! bundled SQLite does, because a value may be computed by SQLite in one statement and compared here in the
//! next. The one known difference: of random reals one in 3,000 prints another seventeenth digit, because
//! SQLite multiplies by rounded powers of ten.

use std::cmp::Ordering;
use std::io::Write as _;

use serde::{Deserialize, Serialize};

/// A value that owns its bytes.
///
/// `PartialEq` is structural (`Integer(1) != Real(1.0)`); the order of SQL is [`ValueRef::compare`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// No value.
    #[default]
    Null,
    /// A 64-bit signed integer.
    Integer(i64),
    /// A 64-bit float; never NaN when made by a conversion of this module, for SQLite has none: see [`NAN`].
    Real(#[serde(with = "real_as_text")] f64),
    /// UTF-8 text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// A value that borrows its bytes, most often from a row that was copied out of the arena.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ValueRef<'a> {
    /// No value.
    #[default]
    Null,
    /// A 64-bit signed integer.
    Integer(i64),
    /// A 64-bit float.
    Real(f64),
    /// UTF-8 text.
    Text(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
}

/// What SQLite prefers a column's values to be; it converts only where nothing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// Values stay what they are.
    Blob,
    /// Numbers become text.
    Text,
    /// Text that looks like a number becomes one; reals that are whole become integers.
    Numeric,
    /// As `Numeric`; SQLite tells the two apart in `CAST` only.
    Integer,
    /// As `Numeric`, and integers become reals.
    Real,
}

impl Value {
    /// The value, borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(integer) => ValueRef::Integer(*integer),
            Self::Real(real) => ValueRef::Real(*real),
            Self::Text(text) => ValueRef::Text(text),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }
    }

    /// Whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value after SQLite's conversion for a column of this affinity.
    #[must_use]
    pub fn with_affinity(self, affinity: Affinity) -> Self {
        match (affinity, self) {
            (Affinity::Text, value @ (Self::Integer(_) | Self::Real(_))) => {
                let mut text = Vec::new();
                value.as_ref().write_text(&mut text);
                // Numbers print in ASCII, so nothing is replaced.
                Self::Text(String::from_utf8_lossy(&text).into_owned())
            }
            (Affinity::Numeric | Affinity::Integer | Affinity::Real, value) => {
                let number = match value {
                    Self::Text(text) => parse_number(&text).unwrap_or(Self::Text(text)),
                    other => other,
                };
                number.with_number_affinity(affinity)
            }
            (Affinity::Blob | Affinity::Text, value) => value,
        }
    }

    /// The step between numbers: whole reals become integers, or integers reals.
    fn with_number_affinity(self, affinity: Affinity) -> Self {
        match (affinity, self) {
            (Affinity::Real, Self::Integer(integer)) => Self::Real(integer as f64),
            (Affinity::Numeric | Affinity::Integer, Self::Real(real)) => {
                whole(real).map_or(Self::Real(real), Self::Integer)
            }
            (_, value) => value,
        }
    }
}

impl ValueRef<'_> {
    /// The value with bytes of its own.
    pub fn to_owned(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(integer) => Value::Integer(integer),
            ValueRef::Real(real) => Value::Real(real),
            ValueRef::Text(text) => Value::Text(text.into()),
            ValueRef::Blob(bytes) => Value::Blob(bytes.into()),
        }
    }

    /// Whether this is NULL.
    pub fn is_null(self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// SQLite's order: NULL, then numbers by value, then text, then blobs, the last two by bytes.
    ///
    /// NULL equals NULL here, as in `ORDER BY` and indexes; `=` in SQL is the caller's business.
    pub fn compare(self, other: ValueRef<'_>) -> Ordering {
        use ValueRef::{Blob, Integer, Real, Text};
        match (self, other) {
            (Integer(a), Integer(b)) => a.cmp(&b),
            (Real(a), Real(b)) => compare_reals(a, b),
            (Integer(a), Real(b)) => compare_integer_real(a, b),
            (Real(a), Integer(b)) => compare_integer_real(b, a).reverse(),
            (Text(a), Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Blob(a), Blob(b)) => a.cmp(b),
            (a, b) => a.class().cmp(&b.class()),
        }
    }

    /// The rank of the storage class in SQLite's order.
    fn class(self) -> u8 {
        match self {
            ValueRef::Null => 0,
            ValueRef::Integer(_) | ValueRef::Real(_) => 1,
            ValueRef::Text(_) => 2,
            ValueRef::Blob(_) => 3,
        }
    }

    /// The same for SQLite, which has no float that is no number.
    #[inline]
    #[must_use]
    pub fn for_sqlite(self) -> Self {
        match self {
            Self::Real(real) if real.is_nan() => Self::Text(NAN),
            value => value,
        }
    }

    /// Appends what `CAST(value AS TEXT)` prints: nothing for NULL, the bytes themselves for a blob.
    pub fn write_text(self, out: &mut Vec<u8>) {
        match self {
            ValueRef::Null => {}
            ValueRef::Integer(integer) => {
                // Writing to a Vec cannot fail.
                let _ = write!(out, "{integer}");
            }
            ValueRef::Real(real) => write_real(real, out),
            ValueRef::Text(text) => out.extend_from_slice(text.as_bytes()),
            ValueRef::Blob(bytes) => out.extend_from_slice(bytes),
        }
    }
}

impl From<i64> for Value {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

/// The float that is no number, as a column of floats and SQLite hold it. SQLite has no such float; as a text it is
/// equal to itself and greater than all numbers, which is PostgreSQL's order.
pub const NAN: &str = "NaN";

impl From<f64> for Value {
    fn from(real: f64) -> Self {
        if real.is_nan() { Self::Text(NAN.to_owned()) } else { Self::Real(real) }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Blob(bytes.into())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes)
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        value.to_owned()
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        value.as_ref()
    }
}

impl From<i64> for ValueRef<'_> {
    fn from(integer: i64) -> Self {
        ValueRef::Integer(integer)
    }
}

impl<'a> From<&'a str> for ValueRef<'a> {
    fn from(text: &'a str) -> Self {
        ValueRef::Text(text)
    }
}

/// Bytes as memcached clients store them: text where they are UTF-8, a blob where they are not.
pub fn text_or_blob(bytes: &[u8]) -> ValueRef<'_> {
    std::str::from_utf8(bytes).map_or(ValueRef::Blob(bytes), ValueRef::Text)
}

/// The first real beyond every `i64`: 2^63, which a float holds exactly.
const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;

/// NaN, which SQLite would have made NULL, sorts before all numbers; so SQLite's own comparison has it.
fn compare_reals(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// Compares without rounding: the integer part as integers, then the fraction.
fn compare_integer_real(integer: i64, real: f64) -> Ordering {
    if real.is_nan() || real < -TWO_POW_63 {
        return Ordering::Greater;
    }
    if real >= TWO_POW_63 {
        return Ordering::Less;
    }
    let floor = real.floor();
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked above")]
    let order = integer.cmp(&(floor as i64));
    if order == Ordering::Equal && real > floor { Ordering::Less } else { order }
}

/// The integer that equals this real, under SQLite's rule for columns (the two extremes stay reals).
pub(crate) fn whole(real: f64) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the conversion saturates; the round trip is compared"
    )]
    let integer = real as i64;
    #[expect(clippy::float_cmp, reason = "equality after the round trip is the very question")]
    let same = integer as f64 == real;
    (same && integer > i64::MIN && integer < i64::MAX).then_some(integer)
}

/// The number that a text spells in full, as numeric affinity sees it; `None` when it is no number.
///
/// Blanks around the number are allowed; hexadecimal, `inf` and `nan` are not numbers.
fn parse_number(text: &str) -> Option<Value> {
    let number = text.trim_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let shape = NumberShape::of(number.as_bytes())?;
    if shape.integer
        && let Ok(integer) = number.parse::<i64>()
    {
        return Some(Value::Integer(integer));
    }
    let real: f64 = number.parse().ok()?;
    Some(whole(real).map_or(Value::Real(real), Value::Integer))
}

/// What a literal looks like, once it is known to be one.
struct NumberShape {
    /// Neither a point nor an exponent.
    integer: bool,
}

impl NumberShape {
    /// Matches `[+-] digits [. digits] [e [+-] digits]` with at least one digit before the exponent.
    fn of(bytes: &[u8]) -> Option<Self> {
        let unsigned = strip_sign(bytes);
        let (whole_digits, rest) = split_digits(unsigned);
        let (fraction_digits, rest, point) = match rest {
            [b'.', rest @ ..] => {
                let (digits, rest) = split_digits(rest);
                (digits, rest, true)
            }
            _ => (0, rest, false),
        };
        if whole_digits + fraction_digits == 0 {
            return None;
        }
        match rest {
            [] => Some(Self { integer: !point }),
            [b'e' | b'E', exponent @ ..] => {
                let (digits, rest) = split_digits(strip_sign(exponent));
                (digits > 0 && rest.is_empty()).then_some(Self { integer: false })
            }
            _ => None,
        }
    }
}

fn strip_sign(bytes: &[u8]) -> &[u8] {
    match bytes {
        [b'+' | b'-', rest @ ..] => rest,
        _ => bytes,
    }
}

/// How many digits lead, and what follows them.
fn split_digits(bytes: &[u8]) -> (usize, &[u8]) {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits, &bytes[digits..])
}

/// The digits that SQLite keeps when it prints a real (`%!.17g`, its default since 3.52).
const REAL_DIGITS: usize = 17;
/// From this power of ten on, a real is printed with an exponent, for its digits end before the point.
const EXPONENT_FROM: i32 = 17;

/// Prints a real as the bundled SQLite does: 17 digits, fewer where those read back as the same number,
/// always with a point, an exponent below 1e-4 and from 1e17.
fn write_real(real: f64, out: &mut Vec<u8>) {
    if real.is_nan() {
        return out.extend_from_slice(NAN.as_bytes());
    }
    if real.is_infinite() {
        out.extend_from_slice(if real > 0.0 { b"Inf" } else { b"-Inf" });
        return;
    }
    if real == 0.0 {
        out.extend_from_slice(b"0.0");
        return;
    }
    if real < 0.0 {
        out.push(b'-');
    }
    let (digits, exponent) = real_digits(real.abs());
    if (-4..EXPONENT_FROM).contains(&exponent) {
        write_plain(&digits, exponent, out);
    } else {
        write_with_exponent(&digits, exponent, out);
    }
}

/// The significant digits without trailing zeros, and the power of ten of the first.
fn real_digits(real: f64) -> (Vec<u8>, i32) {
    let (digits, mut exponent) = scientific(real, REAL_DIGITS + extra_digits(real));
    let keep = shorter(&digits, exponent, real).unwrap_or(REAL_DIGITS);
    let mut kept = digits[..keep].to_vec();
    if digits[keep] >= b'5' && round_up(&mut kept) {
        exponent += 1;
    }
    while kept.len() > 1 && kept.last() == Some(&b'0') {
        kept.pop();
    }
    (kept, exponent)
}

/// SQLite rounds twice: to 18 or 19 digits first, 19 where the decimal exponent is above that of the power of
/// two below the number. The result can differ from rounding once in the last digit.
fn extra_digits(real: f64) -> usize {
    let bits = real.to_bits();
    let exponent = match (bits >> 52).cast_signed() {
        0 => -1011 - i64::from(bits.leading_zeros()),
        biased => biased - 1023,
    };
    // floor(log10(2^exponent)), in SQLite's fixed-point arithmetic.
    let below = (exponent * 78_913) >> 18;
    let (_, decimal) = scientific(real, REAL_DIGITS);
    usize::from(i64::from(decimal) > below)
}

/// The digits of `{:.fraction e}` and its exponent.
fn scientific(real: f64, fraction: usize) -> (Vec<u8>, i32) {
    let printed = format!("{real:.fraction$e}");
    let (mantissa, exponent) = printed.split_once('e').unwrap_or((&printed, "0"));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    (digits, exponent.parse().unwrap_or(0))
}

/// How many digits suffice when the expansion runs into nines or zeros and reads back as the same real.
fn shorter(digits: &[u8], exponent: i32, real: f64) -> Option<usize> {
    let (kept, up) = if digits[14..16] == *b"99" {
        (digits[..14].iter().rposition(|&digit| digit != b'9').map_or(0, |at| at + 1), true)
    } else if digits[13..16] == *b"000" || exponent >= EXPONENT_FROM {
        (digits[..13].iter().rposition(|&digit| digit != b'0').map_or(1, |at| at + 1), false)
    } else {
        return None;
    };
    let leading = digits[..kept].iter().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let scale = exponent + 1 - i32::try_from(kept).unwrap_or(0);
    let candidate: f64 = format!("{}e{scale}", leading + u64::from(up)).parse().ok()?;
    #[expect(clippy::float_cmp, reason = "whether the shorter text reads back as this very number")]
    (candidate == real).then_some(kept + 1)
}

/// Adds one to the last digit; true when a new leading digit appeared.
fn round_up(digits: &mut Vec<u8>) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return false;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
    true
}

fn write_plain(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    let Ok(last_whole) = usize::try_from(exponent) else {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', exponent.unsigned_abs() as usize - 1));
        out.extend_from_slice(digits);
        return;
    };
    let point = last_whole + 1;
    out.extend((0..point).map(|at| digits.get(at).copied().unwrap_or(b'0')));
    out.push(b'.');
    out.extend_from_slice(digits.get(point..).filter(|fraction| !fraction.is_empty()).unwrap_or(b"0"));
}

fn write_with_exponent(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    write_plain(digits, 0, out);
    let sign = if exponent < 0 { '-' } else { '+' };
    // Writing to a Vec cannot fail.
    let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
}

/// Reals in a stored definition are text in Rust's shortest form, which reads back bit for bit and can
/// spell the infinities; JSON's own numbers promise neither.
mod real_as_text {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(real: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{real:?}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(real: f64) -> String {
        let mut out = Vec::new();
        ValueRef::Real(real).write_text(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn reals_print_as_sqlite_prints_them() {
        // Recorded from the bundled SQLite: SELECT CAST(? AS TEXT).
        for (real, text) in [
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (49.47, "49.47"),
            (0.1 + 0.2, "0.30000000000000004"),
            (100.0, "100.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "10000000000000000.0"),
            (1e17, "1.0e+17"),
            (1e100, "1.0e+100"),
            (0.0001, "0.0001"),
            (0.00001, "1.0e-05"),
            (-0.0, "0.0"),
            (f64::INFINITY, "Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (0.999_999_999_999, "0.999999999999"),
            (1.302_027_784_653_690_8e-151, "1.3020277846536907e-151"),
            (17_094_303_013_746.146, "17094303013746.146"),
            (0.636_951_857_905_520_2, "0.63695185790552023"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "4.9406564584124654e-324"),
        ] {
            assert_eq!(printed(real), text);
        }
    }

    #[test]
    fn order_spans_the_storage_classes() {
        let sorted = [
            ValueRef::Null,
            ValueRef::Real(f64::NEG_INFINITY),
            ValueRef::Integer(i64::MIN),
            ValueRef::Integer(-1),
            ValueRef::Real(-0.5),
            ValueRef::Integer(0),
            ValueRef::Real(0.5),
            ValueRef::Integer(9_007_199_254_740_992),
            ValueRef::Integer(9_007_199_254_740_993),
            ValueRef::Integer(i64::MAX),
            ValueRef::Real(TWO_POW_63),
            ValueRef::Real(f64::INFINITY),
            ValueRef::Text(""),
            ValueRef::Text("a"),
            ValueRef::Text("ab"),
            ValueRef::Blob(b""),
            ValueRef::Blob(b"a"),
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(a.compare(*b), i.cmp(&j), "{a:?} {b:?}");
            }
        }
        assert_eq!(ValueRef::Integer(3).compare(ValueRef::Real(3.0)), Ordering::Equal);
        assert_eq!(
            ValueRef::Integer(9_007_199_254_740_993).compare(ValueRef::Real(9_007_199_254_740_992.0)),
            Ordering::Greater
        );
        assert_eq!(ValueRef::Integer(i64::MIN).compare(ValueRef::Real(f64::NAN)), Ordering::Greater);
    }

    #[test]
    fn affinity_converts_what_loses_nothing() {
        use Affinity::{Blob, Integer, Numeric, Real, Text};
        let text = |text: &str| Value::from(text);
        for (affinity, before, after) in [
            (Integer, text(" 12 "), Value::Integer(12)),
            (Integer, text("+7"), Value::Integer(7)),
            (Integer, text("3.0e+5"), Value::Integer(300_000)),
            (Integer, text("5."), Value::Integer(5)),
            (Integer, text(".5"), Value::Real(0.5)),
            (Integer, text("0x10"), text("0x10")),
            (Integer, text("inf"), text("inf")),
            (Integer, text("1e"), text("1e")),
            (Integer, text("."), text(".")),
            (Integer, text(""), text("")),
            (Integer, text("1 2"), text("1 2")),
            (Integer, text("9223372036854775807"), Value::Integer(i64::MAX)),
            (Integer, text("9223372036854775808"), Value::Real(TWO_POW_63)),
            (Integer, Value::Real(4.0), Value::Integer(4)),
            (Integer, Value::Real(4.5), Value::Real(4.5)),
            (Integer, Value::Blob(b"1".to_vec()), Value::Blob(b"1".to_vec())),
            (Numeric, text("1.50"), Value::Real(1.5)),
            (Real, Value::Integer(2), Value::Real(2.0)),
            (Real, text("2"), Value::Real(2.0)),
            (Text, Value::Integer(-3), text("-3")),
            (Text, Value::Real(2.0), text("2.0")),
            (Text, Value::Null, Value::Null),
            (Blob, text("1"), text("1")),
        ] {
            assert_eq!(before.clone().with_affinity(affinity), after, "{before:?} {affinity:?}");
        }
    }

    #[test]
    fn values_survive_json() {
        for value in [
            Value::Null,
            Value::Integer(i64::MIN),
            Value::Real(0.1),
            Value::Real(f64::NEG_INFINITY),
            Value::Real(5e-324),
            Value::Text("a\0\u{1f600}".into()),
            Value::Blob(vec![0, 255]),
        ] {
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value, "{json}");
        }
    }
}
