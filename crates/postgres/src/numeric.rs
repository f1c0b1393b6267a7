//! `numeric` in binary: groups of four decimal digits, and back to text.

use std::fmt::Write as _;

use crate::limits::NUMERIC_GROUPS_MAX;

/// The sign words.
const POSITIVE: u16 = 0x0000;
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// Digits of a double that a decimal number has, as PostgreSQL converts one.
const REAL_DIGITS: usize = 15;

/// Appends a double as a decimal text.
pub(crate) fn write_real(number: f64, out: &mut Vec<u8>) {
    let digits = REAL_DIGITS - 1;
    let text = format!("{:.digits$e}", number.abs());
    let Some((whole, fraction)) = plain(&text).filter(|_| number.is_finite()) else {
        return crate::real::write(number, out);
    };
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    if number < 0.0 && !(whole.is_empty() && fraction.is_empty()) {
        out.push(b'-');
    }
    out.extend_from_slice(if whole.is_empty() { b"0" } else { whole.as_bytes() });
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction.as_bytes());
    }
}

/// Appends a decimal text as binary; false when the text is no number.
pub(crate) fn write_binary(text: &str, out: &mut Vec<u8>) -> bool {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (NEGATIVE, rest),
        None => (POSITIVE, text.strip_prefix('+').unwrap_or(text)),
    };
    let special = match text {
        "NaN" => Some(NAN),
        "Infinity" if sign == NEGATIVE => Some(NEGATIVE_INFINITY),
        "Infinity" => Some(INFINITY),
        _ => None,
    };
    if let Some(sign) = special {
        header(0, 0, sign, 0, out);
        return true;
    }
    let Some((whole, fraction)) = plain(text) else { return false };
    write_groups(sign, &whole, &fraction, out)
}

fn header(groups: u16, weight: i16, sign: u16, scale: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&groups.to_be_bytes());
    out.extend_from_slice(&weight.to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&scale.to_be_bytes());
}

/// The digits before and behind the point, the exponent applied.
fn plain(text: &str) -> Option<(String, String)> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    let (mut whole, mut fraction) = (whole.to_owned(), fraction.to_owned());
    if exponent.unsigned_abs() as usize > NUMERIC_GROUPS_MAX * 2 {
        return None;
    }
    for _ in 0..exponent {
        whole.push(if fraction.is_empty() { '0' } else { fraction.remove(0) });
    }
    for _ in exponent..0 {
        fraction.insert(0, whole.pop().unwrap_or('0'));
    }
    Some((whole, fraction))
}

fn write_groups(sign: u16, whole: &str, fraction: &str, out: &mut Vec<u8>) -> bool {
    let scale = fraction.len();
    let whole = format!("{}{whole}", "0".repeat((4 - whole.len() % 4) % 4));
    let fraction = format!("{fraction}{}", "0".repeat((4 - scale % 4) % 4));
    let digits = [whole.as_bytes(), fraction.as_bytes()].concat();
    let groups: Vec<u16> = digits
        .chunks(4)
        .map(|group| group.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
        .collect();
    let leading = groups.iter().take_while(|group| **group == 0).count();
    let end = groups.iter().rposition(|group| *group != 0).map_or(leading, |at| at + 1);
    let shown = &groups[leading..end];
    if shown.len() > NUMERIC_GROUPS_MAX || scale > NUMERIC_GROUPS_MAX * 4 {
        return false;
    }
    // Both are below the bounds just checked, or the texts would be longer.
    let weight = whole.len() / 4;
    let weight = i16::try_from(weight).unwrap_or(0) - 1 - i16::try_from(leading).unwrap_or(0);
    let weight = if shown.is_empty() { 0 } else { weight };
    let count = u16::try_from(shown.len()).unwrap_or(0);
    header(
        count,
        weight,
        if shown.is_empty() { POSITIVE } else { sign },
        u16::try_from(scale).unwrap_or(0),
        out,
    );
    for group in shown {
        out.extend_from_slice(&group.to_be_bytes());
    }
    true
}

/// The text of a binary number; none when the bytes are none.
pub(crate) fn read_binary(bytes: &[u8]) -> Option<String> {
    let words: Vec<u16> =
        bytes.chunks(2).map(|pair| pair.try_into().map(u16::from_be_bytes)).collect::<Result<_, _>>().ok()?;
    let [count, weight, sign, scale, groups @ ..] = &words[..] else { return None };
    if groups.len() != usize::from(*count)
        || groups.len() > NUMERIC_GROUPS_MAX
        || groups.iter().any(|group| *group > 9_999)
    {
        return None;
    }
    let weight = i32::from(weight.cast_signed());
    let scale = usize::from(*scale);
    if weight.unsigned_abs() as usize > NUMERIC_GROUPS_MAX || scale > NUMERIC_GROUPS_MAX * 4 {
        return None;
    }
    let sign = match *sign {
        POSITIVE => "",
        NEGATIVE => "-",
        NAN => return Some("NaN".into()),
        INFINITY => return Some("Infinity".into()),
        NEGATIVE_INFINITY => return Some("-Infinity".into()),
        _ => return None,
    };
    Some(text_of(sign, groups, weight, scale))
}

fn text_of(sign: &str, groups: &[u16], weight: i32, scale: usize) -> String {
    let group =
        |power: i32| usize::try_from(weight - power).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0);
    let mut whole = String::new();
    for power in (0..=weight.max(0)).rev() {
        let _written = write!(whole, "{:04}", group(power));
    }
    let whole = whole.trim_start_matches('0');
    let mut fraction = String::new();
    let mut power = -1;
    while fraction.len() < scale {
        let _written = write!(fraction, "{:04}", group(power));
        power -= 1;
    }
    fraction.truncate(scale);
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if scale > 0 { "." } else { "" };
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_have_fifteen_digits() {
        for (number, text) in [
            (0.1 + 0.2, "0.3"),
            (110.000_000_000_000_01, "110"),
            (-1.125, "-1.125"),
            (-0.0, "0"),
            (1e20, "100000000000000000000"),
            (1.5e-7, "0.00000015"),
        ] {
            let mut out = Vec::new();
            write_real(number, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn there_and_back() {
        let table = [
            ("0", "0"),
            ("0.00", "0.00"),
            ("1", "1"),
            ("-1", "-1"),
            ("10000", "10000"),
            ("12345678.9", "12345678.9"),
            ("0.0001", "0.0001"),
            ("0.00001234", "0.00001234"),
            ("1e3", "1000"),
            ("1.5e-3", "0.0015"),
            ("123456789012345678901234567890.5", "123456789012345678901234567890.5"),
            ("NaN", "NaN"),
            ("-Infinity", "-Infinity"),
            ("007", "7"),
            ("-0.5", "-0.5"),
            ("9999.9999", "9999.9999"),
        ];
        for (text, expected) in table {
            let mut out = Vec::new();
            assert!(write_binary(text, &mut out), "{text}");
            assert_eq!(read_binary(&out).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_none() {
        for text in ["", "-", ".", "x", "1.2.3", "1e", "1e99999", "--1"] {
            assert!(!write_binary(text, &mut Vec::new()), "{text}");
        }
        for bytes in [
            &b""[..],
            b"\0\x01\0\0\0\0\0\0",
            b"\0\0\0\0\x12\x34\0\0",
            b"\0\x01\0\0\0\0\0\0\xff\xff",
            b"\0\0\0",
        ] {
            assert_eq!(read_binary(bytes), None);
        }
    }
}
