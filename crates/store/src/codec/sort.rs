//! Values as bytes whose order is the values' order: the keys of ordered indexes.
//!
//! Each column is one tag byte and what the tag announces. Comparing two keys byte by byte compares their
//! columns one after another with [`ValueRef::compare`], and no key is the beginning of another key of the
//! same number of columns.
//!
//! ```text
//! 02                                NULL
//! 10  ~bits(8)                      reals up to -2^64
//! 20-n  ~u(n)  [~fraction(8)]       negative numbers, u in n bytes, complemented
//! 20                                0
//! 20+n  u(n)  [fraction(8)]         positive numbers, u in n bytes
//! 30  bits(8)                       reals from 2^64
//! 40  bytes, escaped  00            text
//! 48  bytes, escaped  00            blob
//! ```
//!
//! `u` is twice the whole part of the number's magnitude, plus one where a fraction follows, big-endian in as
//! few bytes as hold it; so 5, 5.5 and 6 are 10, 11 and 12, integers and reals interleave exactly, and an
//! integer below 128 takes two bytes. The fraction is a positive float below one, whose bits ascend with its
//! value; taking the whole part off a float leaves no rounding error. Bytes 00 and 01 of text and blobs are
//! escaped as 01 01 and 01 02.

use crate::definition::Collation;
use crate::limits::WHOLE_BYTES_MAX;
use crate::value::ValueRef;

const NULL: u8 = 0x02;
const HUGE_NEGATIVE: u8 = 0x10;
const ZERO: u8 = 0x20;
const HUGE_POSITIVE: u8 = 0x30;
const TEXT: u8 = 0x40;
const BLOB: u8 = 0x48;
const END: u8 = 0x00;
const ESCAPE: u8 = 0x01;

/// From this magnitude on (2^64) floats have no fraction and integers no equal.
const HUGE: f64 = 18_446_744_073_709_551_616.0;

/// Appends the sort key of these values.
pub fn sort_key(values: &[ValueRef<'_>], out: &mut Vec<u8>) {
    for value in values {
        match *value {
            ValueRef::Null => out.push(NULL),
            ValueRef::Integer(integer) => write_number(integer < 0, integer.unsigned_abs(), None, out),
            ValueRef::Real(real) => write_real(real, out),
            ValueRef::Text(text) => write_bytes(TEXT, text.as_bytes(), out),
            ValueRef::Blob(bytes) => write_bytes(BLOB, bytes, out),
        }
    }
}

/// Appends one column of a sort key. Texts compare by the collation; the bytes of a column that descends are
/// complemented, which reverses their order and keeps any column from being the beginning of another.
pub fn sort_key_column(value: ValueRef<'_>, collation: Collation, descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    match value {
        ValueRef::Text(text) if !collation.is_binary() => {
            write_bytes(TEXT, collation.fold(text).as_bytes(), out);
        }
        value => sort_key(&[value], out),
    }
    if descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Appends the beginning that the sort keys of all texts starting with `text` share; with [`prefix_end`] this
/// bounds `LIKE 'text%'`.
pub fn text_prefix(text: &str, out: &mut Vec<u8>) {
    out.push(TEXT);
    escape(text.as_bytes(), out);
}

/// The first byte string after all that begin with `prefix`: the exclusive upper bound of
/// "`prefix` followed by anything". `None` where nothing lies behind (an empty prefix).
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=kept].to_vec();
    end[kept] += 1;
    Some(end)
}

/// The first eight bytes of a sort key as a number, which orders as they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The bytes, big-endian, padded with zeros.
    pub bytes: u64,
    /// Whether these are all bytes there are. Since no key is the beginning of another, equal `bytes` of
    /// keys of one index are then equal keys.
    pub exact: bool,
}

/// The first eight bytes of a sort key.
pub fn prefix8(key: &[u8]) -> Prefix {
    let bytes = key.first_chunk::<8>().map_or_else(
        || key.iter().zip((0..8).rev()).fold(0, |sum, (&byte, at)| sum | u64::from(byte) << (8 * at)),
        |bytes| u64::from_be_bytes(*bytes),
    );
    Prefix { bytes, exact: key.len() <= 8 }
}

/// Where each column of a sort key ends; stops early at what is no column. Whether a column descends shows in its
/// first byte: tags lie below 0x80, complemented ones above.
pub fn column_ends(key: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = key.get(at..)?;
        at += if rest.first()? & 0x80 == 0 {
            column_len(rest)?
        } else {
            column_len(&rest.iter().map(|byte| !byte).collect::<Vec<u8>>())?
        };
        Some(at)
    })
}

fn column_len(key: &[u8]) -> Option<usize> {
    let (&tag, rest) = key.split_first()?;
    match tag {
        NULL | ZERO => Some(1),
        HUGE_NEGATIVE | HUGE_POSITIVE => Some(9),
        TEXT | BLOB => Some(2 + rest.iter().position(|&byte| byte == END)?),
        _ => {
            let len = usize::from(tag.abs_diff(ZERO));
            let last = *key.get(len).filter(|_| len <= WHOLE_BYTES_MAX)?;
            // The lowest bit of `u`, complemented in negative numbers, announces the fraction.
            let fraction = (last & 1 == 1) == (tag > ZERO);
            Some(1 + len + if fraction { 8 } else { 0 })
        }
    }
}

fn write_real(real: f64, out: &mut Vec<u8>) {
    if real.is_nan() {
        // SQLite stores NULL for it, so no column holds one.
        return out.push(NULL);
    }
    let magnitude = real.abs();
    let negative = real < 0.0;
    if magnitude >= HUGE {
        out.push(if negative { HUGE_NEGATIVE } else { HUGE_POSITIVE });
        return write_bits(negative, &magnitude.to_bits().to_be_bytes(), out);
    }
    let fraction = magnitude.fract();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "below 2^64 and not negative"
    )]
    let whole = magnitude as u64;
    write_number(negative, whole, (fraction > 0.0).then_some(fraction), out);
}

fn write_number(negative: bool, whole: u64, fraction: Option<f64>, out: &mut Vec<u8>) {
    let u = u128::from(whole) << 1 | u128::from(fraction.is_some());
    let bytes = u.to_be_bytes();
    // At most 65 bits are set, so at most nine bytes follow the zeros.
    let zeros = u.leading_zeros() as usize / 8;
    let kept = &bytes[zeros..];
    #[expect(clippy::cast_possible_truncation, reason = "at most WHOLE_BYTES_MAX")]
    let len = kept.len() as u8;
    out.push(if negative { ZERO - len } else { ZERO + len });
    write_bits(negative, kept, out);
    if let Some(fraction) = fraction {
        write_bits(negative, &fraction.to_bits().to_be_bytes(), out);
    }
}

/// Appends bytes of a magnitude, complemented in a negative number, whose order is the reverse.
fn write_bits(negative: bool, bytes: &[u8], out: &mut Vec<u8>) {
    let mask = if negative { 0xff } else { 0 };
    out.extend(bytes.iter().map(|byte| byte ^ mask));
}

fn write_bytes(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    escape(bytes, out);
    out.push(END);
}

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&byte| byte <= ESCAPE) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[ESCAPE, rest[at] + 1]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;
    use std::cmp::Ordering;

    fn key(values: &[Value]) -> Vec<u8> {
        let values: Vec<_> = values.iter().map(Value::as_ref).collect();
        let mut out = Vec::new();
        sort_key(&values, &mut out);
        out
    }

    fn random_value(random: &mut fastrand::Rng) -> Value {
        let bytes = |random: &mut fastrand::Rng| -> Vec<u8> {
            (0..random.usize(0..6)).map(|_| random.choice([0, 1, 2, 0x61, 0x7f]).unwrap()).collect()
        };
        match random.u8(0..9) {
            0 => Value::Null,
            1 => Value::Integer(random.i64(-3..4)),
            2 => Value::Integer(random.i64(..) >> random.u8(0..64)),
            3 => Value::Real(random.i32(-30..30).into()),
            4 => Value::Real(f64::from(random.i32(-30..30)) / 8.0),
            5 => Value::from(f64::from_bits(random.u64(..))),
            #[expect(
                clippy::cast_precision_loss,
                reason = "a rounded neighbour of an integer is the case meant"
            )]
            6 => Value::Real((random.i64(..) >> random.u8(0..64)) as f64),
            7 => Value::Text(String::from_utf8(bytes(random)).unwrap()),
            _ => Value::Blob([bytes(random), vec![0xff]].concat()),
        }
    }

    #[test]
    fn bytes_order_as_values_do() {
        let mut random = crate::testing::seeded();
        for _ in 0..200_000 {
            let columns = random.usize(1..4);
            let a: Vec<_> = (0..columns).map(|_| random_value(&mut random)).collect();
            let mut b: Vec<_> = (0..columns).map(|_| random_value(&mut random)).collect();
            if random.bool() {
                b[0] = a[0].clone();
            }
            check(&a, &b);
        }
    }

    fn check(a: &[Value], b: &[Value]) {
        let order = a
            .iter()
            .zip(b)
            .map(|(a, b)| a.as_ref().compare(b.as_ref()))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal);
        let (a_key, b_key) = (key(a), key(b));
        assert_eq!(a_key.cmp(&b_key), order, "{a:?} {b:?} {a_key:02x?} {b_key:02x?}");
        assert!(order.is_eq() || !b_key.starts_with(&a_key), "{a:?} {b:?}");
        let (a_prefix, b_prefix) = (prefix8(&a_key), prefix8(&b_key));
        assert!(a_prefix.bytes == b_prefix.bytes || a_prefix.bytes.cmp(&b_prefix.bytes) == order);
        assert!(!(a_prefix.exact && a_prefix.bytes == b_prefix.bytes) || order.is_eq(), "{a:?} {b:?}");
        let ends: Vec<_> = column_ends(&a_key).collect();
        assert_eq!(ends.len(), a.len(), "{a:?} {a_key:02x?}");
        for (at, end) in ends.iter().enumerate() {
            assert_eq!(a_key[..*end], key(&a[..=at]));
        }
    }

    #[test]
    fn descending_and_collated_columns_order_as_declared() {
        let mut random = crate::testing::seeded();
        for _ in 0..100_000 {
            let columns = random.usize(1..4);
            let form: Vec<_> =
                (0..columns).map(|_| (random.choice(Collation::ALL).unwrap(), random.bool())).collect();
            let a: Vec<_> = (0..columns).map(|_| random_value(&mut random)).collect();
            let b: Vec<_> = (0..columns)
                .map(|at| if random.bool() { a[at].clone() } else { random_value(&mut random) })
                .collect();
            let key = |values: &[Value]| {
                let mut out = Vec::new();
                for (value, (collation, descending)) in values.iter().zip(&form) {
                    sort_key_column(value.as_ref(), *collation, *descending, &mut out);
                }
                out
            };
            let order = a.iter().zip(&b).zip(&form).map(|((a, b), (collation, descending))| {
                let order = collation.compare(a.as_ref(), b.as_ref());
                if *descending { order.reverse() } else { order }
            });
            let order = order.fold(Ordering::Equal, Ordering::then);
            let (a_key, b_key) = (key(&a), key(&b));
            assert_eq!(a_key.cmp(&b_key), order, "{form:?} {a:?} {b:?}");
            assert!(order.is_eq() || !b_key.starts_with(&a_key), "{form:?} {a:?} {b:?}");
            assert_eq!(column_ends(&a_key).count(), columns, "{form:?} {a:?}");
        }
    }

    #[test]
    fn extremes_order_too() {
        let mut values = vec![Value::Null];
        for magnitude in [f64::INFINITY, f64::MAX, 3e19, HUGE, HUGE.next_down()] {
            values.push(Value::Real(-magnitude));
        }
        values.extend([Value::Integer(i64::MIN), Value::Integer(i64::MIN + 1), Value::Real(-0.5)]);
        values.extend([Value::Real(-5e-324), Value::Integer(0), Value::Real(5e-324), Value::Real(0.5)]);
        values.extend([Value::Integer(i64::MAX), Value::Real(9_223_372_036_854_775_808.0)]);
        for magnitude in [HUGE.next_down(), HUGE, 3e19, f64::MAX, f64::INFINITY] {
            values.push(Value::Real(magnitude));
        }
        values.extend([Value::from(""), Value::from("\0"), Value::Blob(vec![]), Value::Blob(vec![0])]);
        for a in &values {
            for b in &values {
                check(std::slice::from_ref(a), std::slice::from_ref(b));
            }
        }
        check(&[Value::Real(-0.0)], &[Value::Integer(0)]);
    }

    #[test]
    fn small_values_take_few_bytes() {
        for (value, len) in [
            (Value::Null, 1),
            (Value::Integer(0), 1),
            (Value::Integer(127), 2),
            (Value::Integer(-127), 2),
            (Value::Integer(32_767), 3),
            (Value::Integer(i64::MAX), 9),
            (Value::Integer(i64::MIN), 10),
            (Value::Real(0.5), 10),
            (Value::from("en"), 4),
        ] {
            assert_eq!(key(std::slice::from_ref(&value)).len(), len, "{value:?}");
        }
    }

    #[test]
    fn prefixes_bound_what_begins_with_them() {
        let mut from = key(&[Value::Integer(7)]);
        text_prefix("p:17:", &mut from);
        let end = prefix_end(&from).unwrap();
        let inside = |text: &str| {
            let key = key(&[Value::Integer(7), Value::from(text)]);
            from <= key && key < end
        };
        for text in ["p:17:", "p:17:a", "p:17:\u{10ffff}", "p:17:\0"] {
            assert!(inside(text), "{text:?}");
        }
        for text in ["p:17", "p:17;", "p:1", "p:18:", ""] {
            assert!(!inside(text), "{text:?}");
        }
        assert_eq!(prefix_end(&[]), None);
        assert_eq!(prefix_end(&[0xff]), None);
        assert_eq!(prefix_end(&[1, 0xff]), Some(vec![2]));
    }
}
