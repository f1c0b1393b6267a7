//! Copies between private bytes and shared words.
//!
//! Everything but copies accesses shared memory in whole aligned words. The compiler does not vectorise those, so on
//! x86-64 copies load and store in assembly (`wide.rs`), which the compiler cannot see into and therefore cannot take
//! for a data race: 54 ns against 69 ns for 1 KiB. What was copied is meaningless until the caller has validated it.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod wide;

/// Stores bytes, a multiple of 8, into as many words.
#[inline]
pub(crate) fn into_words(words: &[AtomicU64], bytes: &[u8]) {
    let (chunks, rest) = bytes.as_chunks::<8>();
    debug_assert!(rest.is_empty() && chunks.len() == words.len());
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes.len() >= wide::BYTES_MIN {
        return wide::store(words, bytes);
    }
    for (word, chunk) in words.iter().zip(chunks) {
        word.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
    }
}

/// Appends the bytes `from..from + len` of the words to `out`. Panics if the words hold fewer.
#[inline]
pub(crate) fn append(words: &[AtomicU64], from: usize, len: usize, out: &mut Vec<u8>) {
    let words = &words[from / 8..(from + len).div_ceil(8)];
    let skip = from % 8;
    out.reserve(len);
    let start = out.len();
    let spare = &mut out.spare_capacity_mut()[..len];
    fill(words, skip, spare);
    // SAFETY: `fill` initialised the `len` bytes of `spare`, which lie within the capacity.
    unsafe { out.set_len(start + len) };
}

/// Fills all of `out` from byte `skip` (0 to 7) of the first word on; `words` are those that hold a byte of it.
#[inline]
fn fill(words: &[AtomicU64], skip: usize, out: &mut [MaybeUninit<u8>]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if out.len() >= wide::BYTES_MIN {
        return wide::fill(words, skip, out);
    }
    fill_by_words(words, skip, out);
}

/// As [`fill`], word by word.
#[inline]
fn fill_by_words(words: &[AtomicU64], skip: usize, out: &mut [MaybeUninit<u8>]) {
    let Some(first) = words.first() else { return };
    let (head, body) = out.split_at_mut(out.len().min((8 - skip) % 8));
    let bytes = first.load(Ordering::Relaxed).to_le_bytes();
    for (to, byte) in head.iter_mut().zip(&bytes[skip..]) {
        to.write(*byte);
    }
    let words = &words[usize::from(skip > 0)..];
    let (chunks, tail) = body.as_chunks_mut::<8>();
    for (word, chunk) in words.iter().zip(&mut *chunks) {
        chunk.write_copy_of_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    if !tail.is_empty() {
        let last = words[chunks.len()].load(Ordering::Relaxed).to_le_bytes();
        for (to, byte) in tail.iter_mut().zip(last) {
            to.write(byte);
        }
    }
}

/// Whether the words begin with `bytes`.
#[inline]
pub(crate) fn equal(words: &[AtomicU64], bytes: &[u8]) -> bool {
    let (chunks, tail) = bytes.as_chunks::<8>();
    if words.len() < bytes.len().div_ceil(8) {
        return false;
    }
    for (word, chunk) in words.iter().zip(chunks) {
        if word.load(Ordering::Relaxed) != u64::from_le_bytes(*chunk) {
            return false;
        }
    }
    // Padding is zero, so the last word of an equal key equals the padded tail.
    tail.is_empty() || words[chunks.len()].load(Ordering::Relaxed) == padded(tail)
}

/// Up to seven bytes as a zero-padded word.
#[inline]
pub(crate) fn padded(tail: &[u8]) -> u64 {
    // Two pieces that may overlap: a copy of a length that is not known would be a call.
    if let (Some(first), Some(last)) = (tail.first_chunk(), tail.last_chunk()) {
        let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
        return first | (last << (8 * (tail.len() - 4)));
    }
    if let (Some(first), Some(last)) = (tail.first_chunk(), tail.last_chunk()) {
        let [first, last] = [first, last].map(|pair| u64::from(u16::from_le_bytes(*pair)));
        return first | (last << (8 * (tail.len() - 2)));
    }
    tail.first().map_or(0, |byte| u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offset_and_length_copies_exactly() {
        let bytes: Vec<u8> = (0..1024u32).map(|i| (i * 7 % 251) as u8).collect();
        let words: Vec<AtomicU64> = (0..128).map(|_| AtomicU64::new(0)).collect();
        into_words(&words, &bytes);
        for from in 0..80 {
            for len in (0..300).chain([500, 511, 512, 513, 900]) {
                let mut out = b"x".to_vec();
                append(&words, from, len, &mut out);
                assert_eq!(out[0], b'x');
                assert_eq!(&out[1..], &bytes[from..from + len], "from {from}, {len} bytes");
                let mut by_words = vec![MaybeUninit::new(0); len];
                fill_by_words(&words[from / 8..(from + len).div_ceil(8)], from % 8, &mut by_words);
                // SAFETY: they were initialised with zeros, and again by the copy.
                let by_words: Vec<u8> = by_words.iter().map(|byte| unsafe { byte.assume_init() }).collect();
                assert_eq!(by_words, bytes[from..from + len], "word by word, from {from}, {len} bytes");
            }
        }
    }

    #[test]
    fn whole_words_are_stored_and_nothing_beside_them() {
        for count in 0..128 {
            let bytes: Vec<u8> = (0..count * 8).map(|i| (i * 7 % 251) as u8).collect();
            let words: Vec<AtomicU64> = (0..count + 2).map(|_| AtomicU64::new(u64::MAX)).collect();
            into_words(&words[1..=count], &bytes);
            let mut out = Vec::new();
            append(&words, 8, count * 8, &mut out);
            assert_eq!(out, bytes);
            for outside in [&words[0], &words[count + 1]] {
                assert_eq!(outside.load(Ordering::Relaxed), u64::MAX, "{count} words");
            }
        }
    }

    #[test]
    fn a_padded_word_has_zeros_behind_its_bytes() {
        for len in 0..8 {
            let bytes = [0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8];
            let mut word = [0; 8];
            word[..len].copy_from_slice(&bytes[..len]);
            assert_eq!(padded(&bytes[..len]), u64::from_le_bytes(word), "{len} bytes");
        }
    }

    #[test]
    fn equality_looks_at_padding() {
        let words = [AtomicU64::new(u64::from_le_bytes(*b"abcdefgh")), AtomicU64::new(padded(b"ij"))];
        assert!(equal(&words, b"abcdefghij"));
        assert!(!equal(&words, b"abcdefghi"));
        assert!(!equal(&words, b"abcdefghijklmnopq"));
        assert!(equal(&words, b""));
    }
}
