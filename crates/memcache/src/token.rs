//! Words of a command line, separated by spaces and by nothing else, and the numbers among them.

use crate::limits::DATA_MAX;

/// Bytes of the line end behind a value.
pub(crate) const LINE_END: usize = 2;

/// The words of a line, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words<'a> {
    /// What is left of the line.
    pub(crate) rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }
    /// The next word, expected to be a key: most are too long to be searched byte by byte.
    #[inline]
    pub(crate) fn next_key(&mut self) -> Option<&'a [u8]> {
        let rest = self.skip_spaces();
        self.take(memchr::memchr(b' ', rest).unwrap_or(rest.len()))
    }

    #[inline]
    fn skip_spaces(&mut self) -> &'a [u8] {
        while let Some((b' ', rest)) = self.rest.split_first() {
            self.rest = rest;
        }
        self.rest
    }

    #[inline]
    fn take(&mut self, end: usize) -> Option<&'a [u8]> {
        let (word, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    /// The next word, expected to be short: the start-up of a vector search costs more than a number or a verb.
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.skip_spaces();
        self.take(rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len()))
    }
}

/// Whether the last word is `noreply`. memcached looks at the last word wherever it stands, so that surplus
/// arguments before it are ignored and yet no answer surprises the client.
#[inline]
pub(crate) fn ends_in_noreply(rest: &[u8]) -> bool {
    let line = rest.trim_ascii_end();
    line.strip_suffix(b"noreply").is_some_and(|before| matches!(before.last(), None | Some(b' ')))
}

/// Whether a byte may not be part of a key: spaces end it, and control characters are refused because a client
/// that lets them through would let whole commands through (a line end in a key begins a new command).
#[inline]
const fn is_space_or_control(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f
}

/// Whether one of eight bytes may not be part of a key. Subtracting borrows into a byte's highest bit exactly when
/// some byte is smaller than what is taken away; bytes above 127 are taken out of it.
#[inline]
const fn has_space_or_control_of_8(bytes: [u8; 8]) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let bytes = u64::from_le_bytes(bytes);
    let control = bytes.wrapping_sub(EACH * 0x21) & !bytes;
    let delete = bytes ^ (EACH * 0x7f);
    let delete = delete.wrapping_sub(EACH) & !delete;
    (control | delete) & (EACH * 0x80) != 0
}

/// Whether `bytes` has a byte that may not be part of a key. The last eight are looked at together, although some
/// of them have been already, which is cheaper than one by one.
#[inline]
pub(crate) fn has_space_or_control(bytes: &[u8]) -> bool {
    let Some(last) = bytes.last_chunk::<8>() else {
        return bytes.iter().any(|byte| is_space_or_control(*byte));
    };
    let (chunks, _) = bytes.as_chunks::<8>();
    chunks.iter().any(|chunk| has_space_or_control_of_8(*chunk)) || has_space_or_control_of_8(*last)
}

/// Whether `key` is one that memcached's clients may use.
#[inline]
pub(crate) fn is_key(key: &[u8], key_max: usize) -> bool {
    !key.is_empty() && key.len() <= key_max && !has_space_or_control(key)
}

/// A number without sign, in decimal digits and nothing else.
#[inline]
pub(crate) fn unsigned(word: &[u8]) -> Option<u64> {
    let mut number: u64 = 0;
    for byte in word {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    (!word.is_empty()).then_some(number)
}

/// A number of at most 32 bits without sign.
pub(crate) fn unsigned_32(word: &[u8]) -> Option<u32> {
    u32::try_from(unsigned(word)?).ok()
}

/// A number without sign, or with the plus sign that C's functions skip.
#[inline]
pub(crate) fn unsigned_or_plus(word: &[u8]) -> Option<u64> {
    unsigned(word.strip_prefix(b"+").unwrap_or(word))
}

/// A number of 64 bits with a sign.
#[inline]
fn signed(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        None => i64::try_from(unsigned_or_plus(word)?).ok(),
        Some(digits) => i64::try_from(unsigned(digits)?).ok()?.checked_neg(),
    }
}

/// The expiry time of a storage command. Of a longer number memcached keeps the lowest 32 bits: clients send -1 as
/// 4294967295, and rely on such a value being gone at once.
#[inline]
pub(crate) fn exptime_of_value(word: &[u8]) -> Option<i64> {
    let time = signed(word)?;
    // Arithmetic shifts: the sign is that of bit 31.
    Some(if time < 0 { time } else { (time << 32) >> 32 })
}

/// Any other expiry time, which has 32 bits.
#[inline]
pub(crate) fn exptime(word: &[u8]) -> Option<i64> {
    Some(i64::from(i32::try_from(signed(word)?).ok()?))
}

/// The length of a data block, if memcached would take it for one.
#[inline]
pub(crate) fn data_length(word: &[u8]) -> Option<usize> {
    let length = unsigned(word).filter(|length| *length <= DATA_MAX)?;
    usize::try_from(length).ok()
}

/// The peer's flags. memcached 1.6.45 takes a longer number and keeps its lowest 32 bits.
#[inline]
pub(crate) fn client_flags(word: &[u8]) -> Option<u32> {
    u32::try_from(unsigned_or_plus(word)? & u64::from(u32::MAX)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_separated_by_any_number_of_spaces() {
        let words: Vec<&[u8]> = Words::new(b"  one two   three ").collect();
        assert_eq!(words, [&b"one"[..], b"two", b"three"]);
        assert_eq!(Words::new(b"   ").next(), None);
        assert_eq!(Words::new(b"").next(), None);
        assert_eq!(Words::new(b"a\tb").next(), Some(&b"a\tb"[..]));
    }

    #[test]
    fn numbers_are_digits_and_nothing_else() {
        for (word, expected) in [
            (&b"0"[..], Some(0)),
            (b"007", Some(7)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", None),
            (b"99999999999999999999999", None),
            (b"", None),
            (b"-1", None),
            (b"+1", None),
            (b"1x", None),
            (b"0x10", None),
            (b"1.5", None),
        ] {
            assert_eq!(unsigned(word), expected, "{}", word.escape_ascii());
        }
    }

    #[test]
    fn expiry_times_are_read_as_memcached_reads_them() {
        for (word, of_value, other) in [
            (&b"-1"[..], Some(-1), Some(-1)),
            (b"+1", Some(1), Some(1)),
            (b"2592000", Some(2_592_000), Some(2_592_000)),
            (b"2147483647", Some(2_147_483_647), Some(2_147_483_647)),
            (b"2147483648", Some(-2_147_483_648), None),
            (b"4294967295", Some(-1), None),
            (b"4294967296", Some(0), None),
            (b"4294967396", Some(100), None),
            (b"9223372036854775807", Some(-1), None),
            (b"9223372036854775808", None, None),
            (b"-2147483648", Some(-2_147_483_648), Some(-2_147_483_648)),
            (b"-2147483649", Some(-2_147_483_649), None),
            (b"-9223372036854775807", Some(-i64::MAX), None),
            (b"-9223372036854775809", None, None),
            (b"-", None, None),
            (b"+", None, None),
            (b"--1", None, None),
            (b"+-1", None, None),
            (b"-+1", None, None),
            (b"1.5", None, None),
        ] {
            assert_eq!(exptime_of_value(word), of_value, "{}", word.escape_ascii());
            assert_eq!(exptime(word), other, "{}", word.escape_ascii());
        }
    }

    #[test]
    fn every_byte_is_either_part_of_a_key_or_refused() {
        for byte in 0..=255u8 {
            let refused = byte <= 0x20 || byte == 0x7f;
            for position in 0..40 {
                let mut key = vec![b'k'; 40];
                key[position] = byte;
                assert_eq!(is_key(&key, 250), !refused, "byte {byte} at {position}");
            }
        }
    }

    #[test]
    fn noreply_is_a_word() {
        assert!(ends_in_noreply(b"noreply"));
        assert!(ends_in_noreply(b" 1 noreply  "));
        assert!(!ends_in_noreply(b"xnoreply"));
        assert!(!ends_in_noreply(b"noreply 1"));
        assert!(!ends_in_noreply(b""));
    }
}
