//! Numbers with a fraction, as PostgreSQL writes them: the shortest digits that read back as the same number.

use std::io::Write as _;

/// From this power of ten on a number is written with an exponent.
const EXPONENT_FROM: i32 = 15;

/// Below this power of ten too.
const EXPONENT_BELOW: i32 = -4;

/// Appends a double.
pub(crate) fn write(number: f64, out: &mut Vec<u8>) {
    write_shortest(
        number.is_nan(),
        number.is_infinite(),
        number < 0.0,
        &format!("{number:e}"),
        EXPONENT_FROM,
        out,
    );
}

/// Appends a single: it has fewer digits, and goes over to exponents sooner.
pub(crate) fn write_single(number: f32, out: &mut Vec<u8>) {
    write_shortest(number.is_nan(), number.is_infinite(), number < 0.0, &format!("{number:e}"), 6, out);
}

fn write_shortest(nan: bool, infinite: bool, negative: bool, scientific: &str, from: i32, out: &mut Vec<u8>) {
    if nan {
        return out.extend_from_slice(b"NaN");
    }
    if infinite {
        return out.extend_from_slice(if negative { b"-Infinity" } else { b"Infinity" });
    }
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    out.extend_from_slice(sign.as_bytes());
    if (EXPONENT_BELOW..from).contains(&exponent) {
        let digits: String = mantissa.chars().filter(|digit| *digit != '.').collect();
        write_plain(&digits, exponent, out);
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a Vec never fails.
        let _written = write!(out, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
}

/// Digits with a point behind the one of the power `exponent`.
fn write_plain(digits: &str, exponent: i32, out: &mut Vec<u8>) {
    let Ok(whole) = usize::try_from(exponent) else {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', exponent.unsigned_abs() as usize - 1));
        return out.extend_from_slice(digits.as_bytes());
    };
    let whole = whole + 1;
    if digits.len() <= whole {
        out.extend_from_slice(digits.as_bytes());
        return out.extend(std::iter::repeat_n(b'0', whole - digits.len()));
    }
    out.extend_from_slice(&digits.as_bytes()[..whole]);
    out.push(b'.');
    out.extend_from_slice(&digits.as_bytes()[whole..]);
}

/// Reads a number as PostgreSQL does: with its words for what has no digits.
pub(crate) fn read(text: &str) -> Option<f64> {
    let text = text.trim();
    let word = text.trim_start_matches(['+', '-']);
    let known = ["nan", "inf", "infinity"].iter().any(|known| word.eq_ignore_ascii_case(known));
    // Rust reads the same words, and some that PostgreSQL does not have.
    if !known && !word.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_postgresql_writes_them() {
        let table = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (100.0, "100"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e15, "1e+15"),
            (1.234_567_890_123_456_8e17, "1.2345678901234568e+17"),
            (1e300, "1e+300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (number, text) in table {
            let mut out = Vec::new();
            write(number, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
        let mut out = Vec::new();
        write_single(0.1, &mut out);
        out.push(b' ');
        write_single(1_000_000.0, &mut out);
        assert_eq!(out, b"0.1 1e+06");
    }

    #[test]
    fn words_are_read() {
        assert_eq!(read(" 1.5 "), Some(1.5));
        assert_eq!(read("-inf"), Some(f64::NEG_INFINITY));
        assert!(read("NaN").unwrap().is_nan());
        for refused in ["", "x", "1.5x", "infinit", "e5"] {
            assert_eq!(read(refused), None, "{refused}");
        }
    }
}
