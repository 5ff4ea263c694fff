//! Inner loops of tokenization, and prefetching.
#![expect(
    unsafe_code,
    reason = "a function compiled for an instruction set may only be called on a processor that supports it"
)]

/// A bitmap of the bytes that are a letter, a digit or non-ASCII; the lowest bit is the first byte.
#[inline]
pub fn letters(block: &[u8; 64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let (parts, _) = block.as_chunks::<16>();
        parts.iter().rev().fold(0, |bits, part| bits << 16 | u64::from(letters_sse2(part)))
    }
    #[cfg(not(target_arch = "x86_64"))]
    letters_body(block)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn letters_body(block: &[u8; 64]) -> u64 {
    let is = |b: &u8| b.is_ascii_alphanumeric() || !b.is_ascii();
    block.iter().rev().fold(0, |bits, b| bits << 1 | u64::from(is(b)))
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn letters_sse2(part: &[u8; 16]) -> u16 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8, _mm_sub_epi8,
    };
    // SAFETY: every x86-64 has SSE2; the load reads sixteen bytes and needs no alignment.
    unsafe {
        let bytes = _mm_loadu_si128(part.as_ptr().cast());
        let small = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
        let letter = _mm_sub_epi8(small, _mm_set1_epi8(b'a' as i8));
        let digit = _mm_sub_epi8(bytes, _mm_set1_epi8(b'0' as i8));
        // Unsigned comparisons with 25 and 9.
        let letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(25)), letter);
        let digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
        // Non-ASCII bytes have the sign bit that movemask reads.
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(letter, digit), bytes)) as u16
    }
}

/// Prefetches `all[at]` into the processor's cache, if it exists.
#[inline]
pub fn prefetch<T>(all: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = all.get(at) {
        // SAFETY: a prefetch is a hint without a memory access.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                std::ptr::from_ref(entry).cast(),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (all, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_equal_the_portable_code() {
        let all: [u8; 256] = std::array::from_fn(|b| (b * 167 % 256) as u8);
        for block in all.as_chunks::<64>().0 {
            assert_eq!(letters(block), letters_body(block));
        }
    }
}
