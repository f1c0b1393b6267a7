//! Copies between private bytes and shared words.
//!
//! Shared memory is only ever accessed in whole aligned words: the compiler does not vectorise those, so from
//! [`BULK_BYTES`] on x86-64 copies in assembly, which the compiler cannot see into and therefore cannot take
//! for a data race. What was copied is meaningless until the caller has validated it.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

/// From here on assembly is faster than a loop over words: 54 ns against 69 ns for 1 KiB.
#[cfg(target_arch = "x86_64")]
const BULK_BYTES: usize = 256;

/// Stores bytes, a multiple of 8, into as many words.
#[inline]
pub(crate) fn into_words(words: &[AtomicU64], bytes: &[u8]) {
    let (chunks, rest) = bytes.as_chunks::<8>();
    debug_assert!(rest.is_empty() && chunks.len() == words.len());
    let done = bulk_in(words, chunks);
    for (word, chunk) in words[done..].iter().zip(&chunks[done..]) {
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
    let filled = if skip == 0 { aligned(words, spare) } else { unaligned(words, skip, spare) };
    debug_assert_eq!(filled, len);
    // SAFETY: both copies initialise exactly the `len` bytes of `spare`, which lie within the capacity.
    unsafe { out.set_len(start + len) };
}

/// Fills `out` from the first byte of `words` on; returns the bytes filled, which is all.
#[inline]
fn aligned(words: &[AtomicU64], out: &mut [MaybeUninit<u8>]) -> usize {
    let len = out.len();
    let (chunks, tail) = out.as_chunks_mut::<8>();
    let done = bulk_out(words, chunks);
    for (word, chunk) in words[done..].iter().zip(&mut chunks[done..]) {
        chunk.write_copy_of_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    if !tail.is_empty() {
        let last = words[len / 8].load(Ordering::Relaxed).to_le_bytes();
        for (to, byte) in tail.iter_mut().zip(last) {
            to.write(byte);
        }
    }
    len
}

/// Fills `out` from byte `skip` (1 to 7) of the first word on; returns the bytes filled, which is all.
fn unaligned(words: &[AtomicU64], skip: usize, out: &mut [MaybeUninit<u8>]) -> usize {
    let Some(first) = words.first() else { return 0 };
    let head = out.len().min(8 - skip);
    let bytes = first.load(Ordering::Relaxed).to_le_bytes();
    for (to, byte) in out[..head].iter_mut().zip(&bytes[skip..]) {
        to.write(*byte);
    }
    head + aligned(&words[1..], &mut out[head..])
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
    let mut word = [0; 8];
    word[..tail.len()].copy_from_slice(tail);
    u64::from_le_bytes(word)
}

/// Copies a multiple of 64 bytes with the processor's vector registers; returns the words copied.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn bulk_out(words: &[AtomicU64], out: &mut [[MaybeUninit<u8>; 8]]) -> usize {
    let blocks = words.len().min(out.len()) / 8;
    if blocks * 64 < BULK_BYTES {
        return 0;
    }
    // SAFETY: both slices hold at least `blocks` times 64 bytes, and do not overlap: one is private memory.
    unsafe { copy_blocks(words.as_ptr().cast::<u8>(), out.as_mut_ptr().cast::<u8>(), blocks) };
    blocks * 8
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn bulk_in(words: &[AtomicU64], bytes: &[[u8; 8]]) -> usize {
    let blocks = words.len().min(bytes.len()) / 8;
    if blocks * 64 < BULK_BYTES {
        return 0;
    }
    // SAFETY: both slices hold at least `blocks` times 64 bytes, and do not overlap: one is private memory. The
    // words are atomics, so they may be written through a shared reference.
    unsafe { copy_blocks(bytes.as_ptr().cast::<u8>(), words.as_ptr().cast_mut().cast::<u8>(), blocks) };
    blocks * 8
}

/// # Safety
/// `from` and `to` are valid for `blocks` (at least one) times 64 bytes and do not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn copy_blocks(from: *const u8, to: *mut u8, blocks: usize) {
    // SAFETY: reads and writes exactly the ranges that the caller vouches for.
    unsafe {
        std::arch::asm!(
            "2:",
            "movups {a}, [{from}]",
            "movups {b}, [{from} + 16]",
            "movups {c}, [{from} + 32]",
            "movups {d}, [{from} + 48]",
            "movups [{to}], {a}",
            "movups [{to} + 16], {b}",
            "movups [{to} + 32], {c}",
            "movups [{to} + 48], {d}",
            "add {from}, 64",
            "add {to}, 64",
            "dec {blocks}",
            "jnz 2b",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            blocks = inout(reg) blocks => _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn bulk_out(_: &[AtomicU64], _: &mut [[MaybeUninit<u8>; 8]]) -> usize {
    0
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn bulk_in(_: &[AtomicU64], _: &[[u8; 8]]) -> usize {
    0
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
            for len in [0, 1, 7, 8, 9, 63, 64, 65, 255, 256, 257, 500, 900] {
                let mut out = b"x".to_vec();
                append(&words, from, len, &mut out);
                assert_eq!(out[0], b'x');
                assert_eq!(&out[1..], &bytes[from..from + len], "from {from}, {len} bytes");
            }
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
