//! Base64 (RFC 4648, with padding), in which meta commands carry keys that hold any bytes.

/// The six bits of a letter; 64 and above for what is none.
const fn bits_of(letter: u8) -> u8 {
    match letter {
        b'A'..=b'Z' => letter.wrapping_sub(b'A'),
        b'a'..=b'z' => letter.wrapping_sub(b'a').wrapping_add(26),
        b'0'..=b'9' => letter.wrapping_sub(b'0').wrapping_add(52),
        b'+' => 62,
        b'/' => 63,
        _ => 64,
    }
}

/// The letters in the order of their six bits.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends bytes as base64.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let mut word = [0; 4];
        for (place, byte) in word.iter_mut().skip(1).zip(group) {
            *place = *byte;
        }
        let word = u32::from_be_bytes(word);
        for (place, shift) in [18_u32, 12, 6, 0].into_iter().enumerate() {
            let letter = LETTERS.get((word >> shift & 63) as usize).copied().unwrap_or(b'=');
            out.push(if place > group.len() { b'=' } else { letter });
        }
    }
}

/// Letters of so many bytes.
pub(crate) fn letters(bytes: usize) -> usize {
    bytes.div_ceil(3).saturating_mul(4)
}

/// Decodes into the front of `buffer`. `None`: it is no base64 in its one right form, is empty, or is too long.
pub(crate) fn decode<'b>(text: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let (groups, odd) = text.as_chunks::<4>();
    if !odd.is_empty() {
        return None;
    }
    let mut used = 0_usize;
    for (at, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|letter| **letter == b'=').count();
        if padding > 2 || (padding > 0 && at.saturating_add(1) < groups.len()) {
            return None;
        }
        let letters = 4_usize.saturating_sub(padding);
        let mut word = 0_u32;
        for letter in group.iter().take(letters) {
            let bits = bits_of(*letter);
            if bits > 63 {
                return None;
            }
            word = (word << 6) | u32::from(bits);
        }
        word <<= 6_usize.saturating_mul(padding);
        let [_, bytes @ ..] = word.to_be_bytes();
        let (kept, rest) = bytes.split_at_checked(3_usize.saturating_sub(padding))?;
        // Bits that belong to no byte are 0, so that each key has one text.
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        let end = used.saturating_add(kept.len());
        buffer.get_mut(used..end)?.copy_from_slice(kept);
        used = end;
    }
    buffer.get(..used).filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for length in 1..=250_u8 {
            let bytes: Vec<u8> = (0..length).map(|at| at.wrapping_mul(37) ^ length).collect();
            let mut text = Vec::new();
            encode(&bytes, &mut text);
            assert_eq!(decode(&text, &mut [0; 250]), Some(&bytes[..]), "{length}");
        }
    }

    #[test]
    fn every_length_and_letter_is_decoded() {
        for (text, bytes) in [
            (&b"AA=="[..], &b"\0"[..]),
            (b"/w==", b"\xff"),
            (b"//4=", b"\xff\xfe"),
            (b"ABCDEFGHIJKLMNOP", b"\x00\x10\x83\x10\x51\x87\x20\x92\x8b\x30\xd3\x8f"),
            (b"YW55IGNhcm5hbCBwbGVhcw==", b"any carnal pleas"),
            (b"YSBiL/8=", b"a b/\xff"),
            (b"+/+/", b"\xfb\xff\xbf"),
        ] {
            assert_eq!(decode(text, &mut [0; 16]), Some(bytes), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in
            [&b""[..], b"A", b"AA", b"AAA", b"====", b"A===", b"AA=A", b"AA==AAAA", b"AB==", b"AAB=", b"A*AA"]
        {
            assert_eq!(decode(text, &mut [0; 16]), None, "{}", text.escape_ascii());
        }
        assert_eq!(decode(b"AAAAAAAA", &mut [0; 5]), None);
    }
}
