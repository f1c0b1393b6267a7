//! Words of a command line, separated by spaces and by nothing else, and the numbers among them.

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
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        while let Some((b' ', rest)) = self.rest.split_first() {
            self.rest = rest;
        }
        let end = memchr::memchr(b' ', self.rest).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!word.is_empty()).then_some(word)
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

/// Whether `bytes` has a byte that may not be part of a key. It looks at all of them without leaving early, a
/// form that compilers turn into vector instructions.
#[inline]
pub(crate) fn has_space_or_control(bytes: &[u8]) -> bool {
    let mut found = false;
    for chunk in bytes.chunks(16) {
        for byte in chunk {
            found |= is_space_or_control(*byte);
        }
    }
    found
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

/// An expiry time. memcached keeps it in 32 bits with a sign, and refuses what does not fit.
#[inline]
pub(crate) fn exptime(word: &[u8]) -> Option<i64> {
    let number = match word.strip_prefix(b"-") {
        None => i64::try_from(unsigned(word)?).ok()?,
        Some(digits) => i64::try_from(unsigned(digits)?).ok()?.checked_neg()?,
    };
    (i64::from(i32::MIN)..=i64::from(i32::MAX)).contains(&number).then_some(number)
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
    fn expiry_times_have_32_bits_and_a_sign() {
        for (word, expected) in [
            (&b"-1"[..], Some(-1)),
            (b"2592000", Some(2_592_000)),
            (b"2147483647", Some(2_147_483_647)),
            (b"2147483648", None),
            (b"-2147483648", Some(-2_147_483_648)),
            (b"-2147483649", None),
            (b"-", None),
            (b"--1", None),
        ] {
            assert_eq!(exptime(word), expected, "{}", word.escape_ascii());
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
