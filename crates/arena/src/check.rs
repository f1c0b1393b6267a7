//! CRC32C of a row's bytes.
//!
//! Most rows are a few dozen bytes that begin anywhere in a buffer. They are taken eight at a time from where they begin;
//! long ones go to the library, which takes three places at once.

/// From so many bytes on the library is faster: it has three checks under way where this has one.
#[cfg(target_arch = "x86_64")]
const LONG_BYTES: usize = 768;

/// The check of what was checked so far, and of these bytes behind it.
#[inline]
pub(crate) fn append(check: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() < LONG_BYTES && std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has what the function is compiled for, as was just asked.
        return unsafe { short(check, bytes) };
    }
    crc32c::crc32c_append(check, bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
#[inline]
fn short(check: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u16, _mm_crc32_u32, _mm_crc32_u64};
    let (words, tail) = bytes.as_chunks::<8>();
    let mut wide = u64::from(!check);
    for word in words {
        wide = _mm_crc32_u64(wide, u64::from_le_bytes(*word));
    }
    let mut check = wide as u32;
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_is_that_of_the_library() {
        let bytes: Vec<u8> = (0..1_000_u32).map(|i| (i * 31 % 253) as u8).collect();
        for from in 0..8 {
            for to in (from..200).chain([767, 768, 769, 1_000]) {
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
}
