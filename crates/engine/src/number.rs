//! Numbers in values, as `incr` and `decr` read and write them.

/// The unsigned number at the beginning of a value, read as memcached reads it: leading white space and a plus sign
/// pass, and whatever follows white space or a zero byte after the digits is not looked at.
pub(crate) fn parse(value: &[u8]) -> Option<u64> {
    let blank = value.iter().take_while(|byte| is_space(**byte)).count();
    let value = value.split_at(blank).1;
    let value = value.strip_prefix(b"+").unwrap_or(value);
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = value.split_at(digits);
    if digits.is_empty() || rest.first().is_some_and(|byte| !is_space(*byte) && *byte != 0) {
        return None;
    }
    digits
        .iter()
        .try_fold(0_u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

/// What C calls white space, to which a vertical tab belongs.
fn is_space(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

/// Adds `delta` to the number in a value, wrapping at 2^64, or takes it away, stopping at 0, and appends the result as
/// it is stored. None: the value is no number.
pub(crate) fn step(value: &[u8], decrement: bool, delta: u64, out: &mut Vec<u8>) -> Option<u64> {
    let number = parse(value)?;
    let number = if decrement { number.saturating_sub(delta) } else { number.wrapping_add(delta) };
    write_padded(number, value.len(), out);
    Some(number)
}

/// Appends the number in decimal, padded with spaces to the length of the value that it replaces. memcached writes
/// in place and so never shortens a value; clients count on the length.
pub(crate) fn write_padded(number: u64, width: usize, out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(number.to_string().as_bytes());
    let end = out.len().max(begin + width);
    out.resize(end, b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_as_a_number() {
        let table: &[(&[u8], Option<u64>)] = &[
            (b"0", Some(0)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", None),
            (b"99 ", Some(99)),
            (b" 7", Some(7)),
            (b"7 apples", Some(7)),
            (b"\x0b7\x0bapples", Some(7)),
            (b"7\0apples", Some(7)),
            (b"\0", None),
            (b"7apples", None),
            (b"", None),
            (b"   ", None),
            (b"-1", None),
            (b"1.5", None),
            (b"0x10", None),
        ];
        for (value, expected) in table {
            assert_eq!(parse(value), *expected, "{:?}", String::from_utf8_lossy(value));
        }
    }

    #[test]
    fn padding_keeps_the_length() {
        let mut out = b"x".to_vec();
        write_padded(99, 3, &mut out);
        write_padded(1000, 3, &mut out);
        assert_eq!(out, b"x99 1000");
    }
}
