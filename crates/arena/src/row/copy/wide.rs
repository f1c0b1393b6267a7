//! Copies in vector registers, in assembly.
//!
//! A load in assembly may be torn between words, and other processes may store meanwhile: what it yields is any mixture
//! of bytes that were there, which is all that callers count on before they have validated it. Each block is its own
//! piece of assembly, which the compiler takes to read and write any memory: it moves no atomic access and no fence
//! across one, and the processor keeps the order of loads and that of stores.

use std::arch::asm;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU64;

/// Fewer bytes are copied by words. At least 16: the last block may overlap the one before it.
pub(super) const BYTES_MIN: usize = 16;
/// From here on 32 bytes at a time are faster, where the processor can: below, beginning and ending with them costs
/// more.
const LONG_BYTES: usize = 256;

/// Fills all of `out`, at least [`BYTES_MIN`] bytes, from byte `skip` (0 to 7) of the first word on. Panics if the
/// words hold fewer.
#[inline]
pub(super) fn fill(words: &[AtomicU64], skip: usize, out: &mut [MaybeUninit<u8>]) {
    assert!(skip < 8 && skip + out.len() <= size_of_val(words) && out.len() >= BYTES_MIN);
    // SAFETY: the words hold `skip` bytes and those of `out` behind them, as asserted.
    let from = unsafe { words.as_ptr().cast::<u8>().add(skip) };
    // SAFETY: both are valid for the length of `out`, which is long enough; `out` is private memory, so they do not
    // overlap.
    unsafe { copy(from, out.as_mut_ptr().cast::<u8>(), out.len()) };
}

/// Stores bytes, at least [`BYTES_MIN`], into words that hold as many. Panics if they do not.
#[inline]
pub(super) fn store(words: &[AtomicU64], bytes: &[u8]) {
    assert!(bytes.len() == size_of_val(words) && bytes.len() >= BYTES_MIN);
    // SAFETY: both are valid for the length, which is long enough, and do not overlap, as `bytes` is private memory.
    // The words are atomics, so they may be written through a shared reference.
    unsafe { copy(bytes.as_ptr(), words.as_ptr().cast_mut().cast::<u8>(), bytes.len()) };
}

/// # Safety
/// `from` and `to` are valid for `len` bytes, at least [`BYTES_MIN`], and do not overlap.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    let mut at = 0;
    if len >= LONG_BYTES && std::arch::is_x86_feature_detected!("avx") {
        let blocks = len / 128;
        // SAFETY: both are valid for so many blocks of 128 bytes, at least one as `LONG_BYTES` is more; there is AVX.
        unsafe { blocks_of_128(from, to, blocks) };
        at = blocks * 128;
    }
    let last = len - 16;
    while at < last {
        // SAFETY: `at + 16` is less than `len`, so the block lies within both.
        unsafe { block_of_16(from.wrapping_add(at), to.wrapping_add(at)) };
        at += 16;
    }
    // SAFETY: the last 16 bytes of both. Some may have been copied before: nothing depends on which copy stays.
    unsafe { block_of_16(from.wrapping_add(last), to.wrapping_add(last)) };
}

/// # Safety
/// `from` and `to` are valid for 16 bytes and do not overlap.
#[inline]
unsafe fn block_of_16(from: *const u8, to: *mut u8) {
    // SAFETY: reads and writes exactly the 16 bytes that the caller vouches for, with SSE, which every x86-64 has.
    unsafe {
        asm!(
            "movups {block}, [{from}]",
            "movups [{to}], {block}",
            from = in(reg) from,
            to = in(reg) to,
            block = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// `from` and `to` are valid for `blocks` (at least one) times 128 bytes and do not overlap; the processor has AVX.
#[inline]
unsafe fn blocks_of_128(from: *const u8, to: *mut u8, blocks: usize) {
    // SAFETY: reads and writes exactly the ranges that the caller vouches for, with AVX, which it vouches for too. The
    // upper halves of the registers are cleared behind it, so that SSE code is not slowed down; all of them are named
    // as overwritten.
    unsafe {
        asm!(
            "2:",
            "vmovups ymm0, [{from}]",
            "vmovups ymm1, [{from} + 32]",
            "vmovups ymm2, [{from} + 64]",
            "vmovups ymm3, [{from} + 96]",
            "vmovups [{to}], ymm0",
            "vmovups [{to} + 32], ymm1",
            "vmovups [{to} + 64], ymm2",
            "vmovups [{to} + 96], ymm3",
            "add {from}, 128",
            "add {to}, 128",
            "dec {blocks}",
            "jnz 2b",
            "vzeroupper",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            blocks = inout(reg) blocks => _,
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
            out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
            out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
            out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
            options(nostack),
        );
    }
}
