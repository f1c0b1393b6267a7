//! Folding by vectors of 64 bytes.
//!
//! A block of bytes is a polynomial over one bit, the first bit its highest power; its CRC is the remainder by another
//! one. A lane of 16 bytes that stands `D` bits before another may be added to it after its halves were multiplied by
//! the remainders of `x^(D+32)` and `x^(D-32)`: the sum has the same remainder. All bits are mirrored, as the
//! checksum's are.

use std::arch::x86_64::{
    __m512i, _mm512_clmulepi64_epi128, _mm512_loadu_si512, _mm512_set_epi64, _mm512_storeu_si512,
    _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

/// Bytes of a vector.
const VECTOR: usize = 64;
/// Vectors that are folded side by side, so that one need not wait for another's product.
const VECTORS: usize = 4;
/// Fewer bytes are not worth folding.
pub(super) const BYTES_MIN: usize = 2 * VECTOR * VECTORS;
/// The checksum's polynomial but for its highest power, mirrored.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The remainder of `x^power`, mirrored, and one bit further up, where a product of mirrored factors has it.
const fn remainder(power: u32) -> i64 {
    let (mut remainder, mut done) = (1 << 31, 0);
    while done < power {
        let carry = remainder & 1;
        remainder = (remainder >> 1) ^ (POLYNOMIAL * carry);
        done += 1;
    }
    (remainder as i64) << 1
}

/// What the halves of a lane are multiplied by to be added to a lane so many bits behind it.
const fn factors(bits: u32) -> [i64; 2] {
    [remainder(bits + 32), remainder(bits - 32)]
}

/// Over all vectors that are folded side by side, and over one.
const FAR: [i64; 2] = factors((VECTORS * VECTOR * 8) as u32);
const NEAR: [i64; 2] = factors((VECTOR * 8) as u32);

/// Whether the processor can.
#[inline]
pub(super) fn is_there() -> bool {
    std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("vpclmulqdq")
}

/// See [`super::append`]; the processor can, and there are [`BYTES_MIN`] bytes.
pub(super) fn append(crc: u32, bytes: &[u8]) -> u32 {
    assert!(bytes.len() >= BYTES_MIN && is_there());
    let (vectors, rest) = bytes.as_chunks::<VECTOR>();
    let (groups, single) = vectors.as_chunks::<VECTORS>();
    let Some((first, groups)) = groups.split_first() else { return crc32c::crc32c_append(crc, bytes) };
    // SAFETY: the processor has the instructions, as asserted.
    let left = unsafe { fold_all(!crc, first, groups, single) };
    // The state that the bytes began with is among them now; both calls mirror it at their begin and end.
    crc32c::crc32c_append(crc32c::crc32c_append(!0, &left), rest)
}

/// Folds vectors into one; `state` is added to their first bits.
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold_all(
    state: u32,
    first: &[[u8; VECTOR]; VECTORS],
    groups: &[[[u8; VECTOR]; VECTORS]],
    single: &[[u8; VECTOR]],
) -> [u8; VECTOR] {
    let [mut a, mut b, mut c, mut d] = first.each_ref().map(|bytes| load(bytes));
    a = _mm512_xor_si512(a, _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, i64::from(state)));
    let far = factor(FAR);
    for [next_a, next_b, next_c, next_d] in groups {
        a = fold(a, far, load(next_a));
        b = fold(b, far, load(next_b));
        c = fold(c, far, load(next_c));
        d = fold(d, far, load(next_d));
    }
    let near = factor(NEAR);
    let mut sum = fold(fold(fold(a, near, b), near, c), near, d);
    for next in single {
        sum = fold(sum, near, load(next));
    }
    let mut left = [0; VECTOR];
    // SAFETY: `left` has as many bytes as are stored.
    unsafe { _mm512_storeu_si512(left.as_mut_ptr().cast(), sum) };
    left
}

/// Adds a vector, as far behind as the factor says, to the one that stands there.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold(vector: __m512i, factor: __m512i, behind: __m512i) -> __m512i {
    let low = _mm512_clmulepi64_epi128::<0x00>(vector, factor);
    let high = _mm512_clmulepi64_epi128::<0x11>(vector, factor);
    // The sum of three.
    _mm512_ternarylogic_epi64::<0x96>(low, high, behind)
}

/// The same factors for each lane.
#[inline]
#[target_feature(enable = "avx512f")]
fn factor([low, high]: [i64; 2]) -> __m512i {
    _mm512_set_epi64(high, low, high, low, high, low, high, low)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; VECTOR]) -> __m512i {
    // SAFETY: `bytes` has as many as are loaded.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}
