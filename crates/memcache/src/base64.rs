//! Base64 (RFC 4648, with padding), in which meta commands carry keys that hold any bytes.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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

/// Appends the text of `bytes`.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let mut word = [0; 4];
        for (place, byte) in word.iter_mut().skip(1).zip(group) {
            *place = *byte;
        }
        let word = u32::from_be_bytes(word);
        for place in 0..4_usize {
            let shift = 18_usize.saturating_sub(place.saturating_mul(6));
            let letter = ALPHABET.get((word >> shift) as usize & 63).copied().unwrap_or(b'=');
            out.push(if place > group.len() { b'=' } else { letter });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let bytes: Vec<u8> = (0..=255).collect();
        for len in 1..bytes.len() {
            let (mut text, mut buffer) = (Vec::new(), [0; 256]);
            encode(&bytes[..len], &mut text);
            assert_eq!(decode(&text, &mut buffer), Some(&bytes[..len]));
            assert_eq!(text.len(), len.div_ceil(3) * 4);
        }
        let mut text = Vec::new();
        encode(b"any carnal pleas", &mut text);
        assert_eq!(text, b"YW55IGNhcm5hbCBwbGVhcw==");
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
