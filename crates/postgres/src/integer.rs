//! Whole numbers as digits.

use crate::limits::DIGITS_MAX;

/// Appends a number in decimal.
#[inline]
pub(crate) fn write(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0; DIGITS_MAX];
    let mut at = DIGITS_MAX;
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        // A digit is below 10.
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::write;

    #[test]
    fn digits() {
        for number in [0, 7, -7, 10, 99, 100, i64::MAX, i64::MIN, 1_234_567_890] {
            let mut out = Vec::new();
            write(number, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
