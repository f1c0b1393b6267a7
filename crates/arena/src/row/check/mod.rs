//! CRC32C of a row's bytes.
//!
//! One step takes eight bytes and three cycles, but three steps can be under way at once. So what is longer than a few
//! steps is divided in three parts, whose checks are put together by a multiplication. The bytes begin anywhere in a
//! buffer, and are taken from where they begin.
//!
//! Of long rows, vectors of 64 bytes are folded into one another where the processor can (`folded.rs`): warm bytes take
//! less than half of the time.

use crate::limits::PART_WORDS_MAX;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod folded;

/// From so many bytes on the library is as fast, and folding faster.
#[cfg(target_arch = "x86_64")]
const LONG_BYTES: usize = 3 * 8 * (PART_WORDS_MAX + 1);
/// Words below which one part is as fast as three.
#[cfg(target_arch = "x86_64")]
const DIVIDED_WORDS: usize = 24;

/// The check of what was checked so far, and of these bytes behind it.
#[inline]
pub(crate) fn append(check: u32, bytes: &[u8]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes.len() < LONG_BYTES
        && std::arch::is_x86_feature_detected!("sse4.2")
        && std::arch::is_x86_feature_detected!("pclmulqdq")
    {
        // SAFETY: the processor has what the function is compiled for, as was just asked.
        return unsafe { wide::append(check, bytes) };
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes.len() >= LONG_BYTES && folded::is_there() {
        return folded::append(check, bytes);
    }
    crc32c::crc32c_append(check, bytes)
}

/// The same of pieces behind one another.
#[inline]
pub(crate) fn append_all(check: u32, pieces: &[&[u8]]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if pieces.iter().all(|piece| piece.len() < LONG_BYTES)
        && std::arch::is_x86_feature_detected!("sse4.2")
        && std::arch::is_x86_feature_detected!("pclmulqdq")
    {
        // SAFETY: as in `append`.
        return unsafe { wide::append_all(check, pieces) };
    }
    pieces.iter().fold(check, |check, piece| append(check, piece))
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod wide {
    use std::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u16, _mm_crc32_u32, _mm_crc32_u64, _mm_cvtsi64_si128,
        _mm_cvtsi128_si64,
    };

    use super::{DIVIDED_WORDS, PART_WORDS_MAX};

    /// The polynomial of CRC32C, the highest power in the lowest bit.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    /// For each number of words what a check is multiplied by to stand so many words further on.
    static SHIFTS: [u32; PART_WORDS_MAX + 1] = shifts();

    /// x to the power of 64 n - 33: a product of two such numbers lies one bit off, and the step that reduces it
    /// multiplies by x to the power of 32.
    const fn shifts() -> [u32; PART_WORDS_MAX + 1] {
        let mut shifts = [0; PART_WORDS_MAX + 1];
        let (mut power, mut value) = (0, 1_u32 << 31);
        let mut words = 1;
        while words <= PART_WORDS_MAX {
            while power < 64 * words - 33 {
                value = (value >> 1) ^ (POLYNOMIAL & (value & 1).wrapping_neg());
                power += 1;
            }
            shifts[words] = value;
            words += 1;
        }
        shifts
    }

    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    pub(super) fn append(check: u32, bytes: &[u8]) -> u32 {
        let (mut words, tail) = bytes.as_chunks::<8>();
        let mut state = u64::from(!check);
        if words.len() >= DIVIDED_WORDS {
            let part = words.len() / 3;
            let (divided, rest) = words.split_at(part * 3);
            state = thirds(state, divided, part);
            words = rest;
        }
        for word in words {
            state = _mm_crc32_u64(state, u64::from_le_bytes(*word));
        }
        let mut check = state as u32;
        let (halves, tail) = tail.as_chunks::<4>();
        if let [half] = halves {
            check = _mm_crc32_u32(check, u32::from_le_bytes(*half));
        }
        let (pairs, tail) = tail.as_chunks::<2>();
        if let [pair] = pairs {
            check = _mm_crc32_u16(check, u16::from_le_bytes(*pair));
        }
        if let [byte] = tail {
            check = _mm_crc32_u8(check, *byte);
        }
        !check
    }

    #[target_feature(enable = "sse4.2,pclmulqdq")]
    pub(super) fn append_all(mut check: u32, pieces: &[&[u8]]) -> u32 {
        for piece in pieces {
            check = append(check, piece);
        }
        check
    }

    /// The state behind three parts of as many words each.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    fn thirds(state: u64, words: &[[u8; 8]], part: usize) -> u64 {
        let (first, rest) = words.split_at(part);
        let (second, third) = rest.split_at(part);
        let (mut one, mut two, mut three) = (state, 0, 0);
        for ((a, b), c) in first.iter().zip(second).zip(third) {
            one = _mm_crc32_u64(one, u64::from_le_bytes(*a));
            two = _mm_crc32_u64(two, u64::from_le_bytes(*b));
            three = _mm_crc32_u64(three, u64::from_le_bytes(*c));
        }
        let shift = SHIFTS[part];
        shifted(shifted(one, shift) ^ two, shift) ^ three
    }

    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    fn shifted(state: u64, shift: u32) -> u64 {
        let (state, shift) = (_mm_cvtsi64_si128(state.cast_signed()), _mm_cvtsi64_si128(i64::from(shift)));
        let product = _mm_clmulepi64_si128::<0>(state, shift);
        _mm_crc32_u64(0, _mm_cvtsi128_si64(product).cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_is_that_of_the_library() {
        let bytes: Vec<u8> = (0..3_000_u32).map(|i| (i * 31 % 253) as u8).collect();
        for from in 0..8 {
            for to in (from..300).chain(995..1_100).chain(2_000..2_100).chain([3_000]) {
                let piece = &bytes[from..to];
                for before in [0, 1, 0xdead_beef] {
                    assert_eq!(
                        super::append(before, piece),
                        crc32c::crc32c_append(before, piece),
                        "{from}..{to}"
                    );
                }
            }
        }
        assert_eq!(
            super::append(0, b"123456789"),
            0xe306_9283,
            "the value that every description of it gives"
        );
    }

    #[test]
    fn long_rows_have_the_check_that_they_have_byte_by_byte() {
        let mut random = crate::tests::seeded("check");
        let bytes: Vec<u8> = (0..20_000).map(|_| random.u8(..)).collect();
        for round in 0..800 {
            let len = if round < 600 { 1_800 + round } else { random.usize(..18_000) };
            let from = random.usize(..2_000);
            let (before, piece) = (random.u32(..), &bytes[from..from + len]);
            let by_bytes = piece.iter().fold(before, |check, byte| crc32c::crc32c_append(check, &[*byte]));
            assert_eq!(super::append(before, piece), by_bytes, "{len} bytes from {from}, behind {before:#x}");
            let (first, second) = piece.split_at(random.usize(..=len));
            let in_two = super::append(super::append(before, first), second);
            assert_eq!(in_two, by_bytes, "cut after {}", first.len());
            assert_eq!(super::append_all(before, &[first, second]), by_bytes, "cut after {}", first.len());
        }
    }
}
