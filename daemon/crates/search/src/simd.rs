//! The inner loops of vectors and of words, compiled for several instruction sets and chosen at run time.
#![expect(
    unsafe_code,
    reason = "a function compiled for an instruction set may be called only after the processor was asked for it"
)]

/// Adds `weight * row[i]` to each element of `sum`, for several rows at once, whose values are int8.
pub fn add_scaled<const N: usize>(sum: &mut [f32], rows: [(&[u8], f32); N]) {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("avx512dq")
        {
            // SAFETY: the processor has AVX-512 F, BW, VL and DQ.
            return unsafe { add_scaled_avx512(sum, rows) };
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the processor has AVX2 and FMA.
            return unsafe { add_scaled_avx2(sum, rows) };
        }
    }
    add_scaled_body::<N, false>(sum, rows);
}

/// How far before its use a row is fetched, in bytes.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 4096;

/// Rows whose dot products are handed on together.
const BATCH: usize = 64;

/// Calls `each(index of the first row, dot products)` for all rows of `rows`, some at a time: a table with `stride` bytes a row
/// whose values of four bits begin at `skip`, laid out as [`split`] does.
pub fn dot_rows(rows: &[u8], stride: usize, skip: usize, query: &[i8], each: impl FnMut(usize, &[i32])) {
    let halves = query.split_at(query.len().div_ceil(2));
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512vnni")
        {
            // SAFETY: the processor has AVX-512 BW and VNNI.
            return unsafe { dot_rows_avx512(rows, (stride, skip), halves, each) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { dot_rows_avx2(rows, (stride, skip), halves, each) };
        }
    }
    dot_rows_body(rows, (stride, skip), halves, each);
}

/// Dot product of `query` with a row of both parts that [`split`] makes.
pub fn dot_parts(high: &[u8], low: &[u8], query: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has AVX2 and FMA.
        return unsafe { dot_parts_avx2(high, low, query) };
    }
    dot_parts_body(high, low, query)
}

/// Appends each value times `by` (below 7.5 then) as a whole number from -8 to 7, and what that rounding left as int8
/// 256ths. To `high` two in a byte, 8 more than they are: the low four bits are of the first half of the values, the high
/// ones of the second; to `low` one in a byte.
pub fn split(values: &[f32], by: f32, high: &mut Vec<u8>, low: &mut Vec<u8>) {
    let (at, below) = (high.len(), low.len());
    high.resize(at + values.len().div_ceil(2), 0);
    low.resize(below + values.len(), 0);
    let (high, low) = (&mut high[at..], &mut low[below..]);
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { split_avx2(values, by, high, low) };
    }
    split_body(values, by, high, low);
}

/// The length of a vector. (One sum after the other would wait for each; so does the largest.)
pub fn norm(values: &[f32]) -> f32 {
    lanes(values, |lane, x| lane + x * x).iter().sum::<f32>().sqrt()
}

/// The largest magnitude of a vector's values.
pub fn largest(values: &[f32]) -> f32 {
    lanes(values, |lane, x| if x.abs() > lane { x.abs() } else { lane }).into_iter().fold(0.0, f32::max)
}

#[inline(always)]
fn lanes(values: &[f32], join: impl Fn(f32, f32) -> f32) -> [f32; 16] {
    let mut lanes = [0f32; 16];
    let (full, rest) = values.as_chunks::<16>();
    for chunk in full {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane = join(*lane, *x));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, x)| *lane = join(*lane, *x));
    lanes
}

/// From here on to twice of it, a float's last digit is worth 1; half way, so that it holds for numbers below zero as well.
const ROUNDING: f32 = 12_582_912.0;

#[inline(always)]
fn split_body(values: &[f32], by: f32, high: &mut [u8], low: &mut [u8]) {
    // To the nearest whole number, halves to the even one: what is added leaves no room for digits behind the point. (A
    // conversion would look for values that no i32 holds, each time.)
    let round = |x: f32| (x + ROUNDING).to_bits().wrapping_sub(ROUNDING.to_bits()) as i32;
    let half = high.len();
    let part = |value: &f32, low: &mut u8| {
        let exact = value * by;
        let full = round(exact).clamp(-8, 7);
        *low = round((exact - full as f32) * 256.0).clamp(-128, 127) as i8 as u8;
        (full + 8) as u8
    };
    let (first, second) = low.split_at_mut(half);
    for ((value, low), high) in values.iter().zip(first).zip(&mut *high) {
        *high = part(value, low);
    }
    for ((value, low), high) in values[half..].iter().zip(second).zip(&mut *high) {
        *high |= part(value, low) << 4;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn split_avx2(values: &[f32], by: f32, high: &mut [u8], low: &mut [u8]) {
    split_body(values, by, high, low);
}

#[inline(always)]
fn dot_parts_body(high: &[u8], low: &[u8], query: &[f32]) -> f32 {
    let mut lanes = [0f32; 16];
    let half = high.len();
    let (low, query) = (low.split_at(half), query.split_at(half));
    let mut add = |shift: u32, low: &[u8], query: &[f32]| {
        for ((high, low), query) in high.chunks(16).zip(low.chunks(16)).zip(query.chunks(16)) {
            for (((lane, h), l), q) in lanes.iter_mut().zip(high).zip(low).zip(query) {
                let both = (i32::from(*h >> shift & 15) - 8) * 256 + i32::from(*l as i8);
                *lane += both as f32 * q;
            }
        }
    };
    add(0, low.0, query.0);
    add(4, low.1, query.1);
    lanes.iter().sum::<f32>() / 256.0
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_parts_avx2(high: &[u8], low: &[u8], query: &[f32]) -> f32 {
    dot_parts_body(high, low, query)
}

/// `FUSED` where the processor multiplies and adds in one step: elsewhere that would be a call for each value.
#[inline(always)]
fn add_scaled_body<const N: usize, const FUSED: bool>(sum: &mut [f32], rows: [(&[u8], f32); N]) {
    let rows = rows.map(|(row, weight)| (row[..sum.len()].as_chunks::<16>(), weight));
    let (blocks, rest) = sum.as_chunks_mut::<16>();
    for (b, block) in blocks.iter_mut().enumerate() {
        let mut sums = *block;
        for ((row, _), weight) in &rows {
            for (s, value) in sums.iter_mut().zip(&row[b]) {
                let value = f32::from(*value as i8);
                *s = if FUSED { weight.mul_add(value, *s) } else { *s + weight * value };
            }
        }
        *block = sums;
    }
    for ((_, row), weight) in &rows {
        rest.iter_mut().zip(*row).for_each(|(s, value)| *s += weight * f32::from(*value as i8));
    }
}

#[inline(always)]
fn dot_rows_body(
    rows: &[u8],
    (stride, skip): (usize, usize),
    (first, second): (&[i8], &[i8]),
    each: impl FnMut(usize, &[i32]),
) {
    batches(rows, stride, each, |row| dot_nibbles(&row[skip..skip + first.len()], first, second));
}

#[inline(always)]
fn batches(rows: &[u8], stride: usize, mut each: impl FnMut(usize, &[i32]), dot: impl Fn(&[u8]) -> i32) {
    let mut dots = [0; BATCH];
    for (n, batch) in rows.chunks(stride * BATCH).enumerate() {
        let batch = batch.chunks_exact(stride);
        let count = batch.len();
        for (row, out) in batch.zip(&mut dots) {
            *out = dot(row);
        }
        each(n * BATCH, &dots[..count]);
    }
}

#[inline(always)]
fn dot_nibbles(row: &[u8], first: &[i8], second: &[i8]) -> i32 {
    let of = |value: u8, q: &i8| (i32::from(value) - 8) * i32::from(*q);
    let low: i32 = row.iter().zip(first).map(|(r, q)| of(r & 15, q)).sum();
    low + row.iter().zip(second).map(|(r, q)| of(r >> 4, q)).sum::<i32>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn add_scaled_avx2<const N: usize>(sum: &mut [f32], rows: [(&[u8], f32); N]) {
    add_scaled_body::<N, true>(sum, rows);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,fma")]
fn add_scaled_avx512<const N: usize>(sum: &mut [f32], rows: [(&[u8], f32); N]) {
    add_scaled_body::<N, true>(sum, rows);
}

/// Eight times the sum of a query's values, by which products are too large where a value is taken as 8 more than it is.
#[cfg(target_arch = "x86_64")]
fn too_much(blocks: &[&[i8]]) -> i32 {
    8 * blocks.iter().flat_map(|b| b.iter()).map(|q| i32::from(*q)).sum::<i32>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_rows_avx2(
    rows: &[u8],
    (stride, skip): (usize, usize),
    (first, second): (&[i8], &[i8]),
    each: impl FnMut(usize, &[i32]),
) {
    use std::arch::x86_64::{
        _MM_HINT_T0, _mm_prefetch, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256, _mm256_loadu_si256,
        _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_setzero_si256,
        _mm256_srli_epi16, _mm256_storeu_si256,
    };
    // A query of an odd length has one value less in its second half.
    let full = second.len() / 32;
    let (one, tail) = first.split_at(full * 32);
    let (two, end) = second.split_at(full * 32);
    let (more, four) = (too_much(&[one, two]), _mm256_set1_epi8(15));
    batches(rows, stride, each, |row| {
        let (values, rest) = row[skip..skip + first.len()].split_at(full * 32);
        let mut sum = _mm256_setzero_si256();
        let halves = one.as_chunks::<32>().0.iter().zip(two.as_chunks::<32>().0);
        for (v, (a, b)) in values.as_chunks::<32>().0.iter().zip(halves) {
            // SAFETY: all three are 32 bytes long, and the loads ask for no alignment; the first is a hint that may
            // name any address.
            let (v, a, b) = unsafe {
                _mm_prefetch::<_MM_HINT_T0>(v.as_ptr().wrapping_add(AHEAD).cast());
                (
                    _mm256_loadu_si256(v.as_ptr().cast()),
                    _mm256_loadu_si256(a.as_ptr().cast()),
                    _mm256_loadu_si256(b.as_ptr().cast()),
                )
            };
            // A product is 15 * 127 at most: four of them are far from what 16 bits hold.
            let low = _mm256_maddubs_epi16(_mm256_and_si256(v, four), a);
            let high = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16::<4>(v), four), b);
            let both = _mm256_madd_epi16(_mm256_add_epi16(low, high), _mm256_set1_epi16(1));
            sum = _mm256_add_epi32(sum, both);
        }
        let mut lanes = [0i32; 8];
        // SAFETY: it is as long as what is stored, and the store asks for no alignment.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
        lanes.iter().sum::<i32>() - more + dot_nibbles(rest, tail, end)
    });
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn dot_rows_avx512(
    rows: &[u8],
    (stride, skip): (usize, usize),
    (first, second): (&[i8], &[i8]),
    each: impl FnMut(usize, &[i32]),
) {
    use std::arch::x86_64::{
        _MM_HINT_T0, _mm_prefetch, _mm512_add_epi32, _mm512_and_si512, _mm512_dpbusd_epi32,
        _mm512_loadu_si512, _mm512_reduce_add_epi32, _mm512_set1_epi8, _mm512_setzero_si512,
        _mm512_srli_epi16,
    };
    // A query of an odd length has one value less in its second half.
    let full = second.len() / 64;
    let (one, tail) = first.split_at(full * 64);
    let (two, end) = second.split_at(full * 64);
    let (more, four) = (too_much(&[one, two]), _mm512_set1_epi8(15));
    batches(rows, stride, each, |row| {
        let (values, rest) = row[skip..skip + first.len()].split_at(full * 64);
        let mut sums = [_mm512_setzero_si512(); 2];
        let halves = one.as_chunks::<64>().0.iter().zip(two.as_chunks::<64>().0);
        for (v, (a, b)) in values.as_chunks::<64>().0.iter().zip(halves) {
            // SAFETY: all three are 64 bytes long, and the loads ask for no alignment; the first is a hint that may
            // name any address. What the processor foresees by itself ends with the page.
            let (v, a, b) = unsafe {
                _mm_prefetch::<_MM_HINT_T0>(v.as_ptr().wrapping_add(AHEAD).cast());
                (
                    _mm512_loadu_si512(v.as_ptr().cast()),
                    _mm512_loadu_si512(a.as_ptr().cast()),
                    _mm512_loadu_si512(b.as_ptr().cast()),
                )
            };
            let high = _mm512_and_si512(_mm512_srli_epi16::<4>(v), four);
            sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_and_si512(v, four), a);
            sums[1] = _mm512_dpbusd_epi32(sums[1], high, b);
        }
        let sum = _mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1]));
        sum - more + dot_nibbles(rest, tail, end)
    });
}

/// A bit for each byte that is a letter, a digit or outside ASCII, the first byte the lowest.
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
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
        _mm_sub_epi8,
    };
    // SAFETY: every x86-64 has SSE2; the load reads the sixteen bytes and asks for no alignment.
    unsafe {
        let bytes = _mm_loadu_si128(part.as_ptr().cast());
        let small = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
        let letter = _mm_sub_epi8(small, _mm_set1_epi8(b'a' as i8));
        let digit = _mm_sub_epi8(bytes, _mm_set1_epi8(b'0' as i8));
        // At most 25 and at most 9, without a sign.
        let letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(25)), letter);
        let digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
        // A byte outside ASCII has the bit that is asked for.
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(letter, digit), bytes)) as u16
    }
}

/// Asks the processor for `all[at]`, which will be needed soon; nothing when there is no such entry.
#[inline]
pub fn prefetch<T>(all: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = all.get(at) {
        // SAFETY: a hint; it reads nothing.
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
    fn every_kernel_gives_the_plain_result() {
        let rows: Vec<u8> = (0..(BATCH + 7) * 400).map(|i| (i * 37 % 251) as u8).collect();
        let query: Vec<i8> = (0..384).map(|i| ((i * 13 % 255) as i16 - 127) as i8).collect();
        for len in [384, 256, 101, 64, 3, 1] {
            let halves = query[..len].split_at(len.div_ceil(2));
            let (mut fast, mut plain) = (vec![], vec![]);
            dot_rows(&rows, 400, 16, &query[..len], |i, d| fast.push((i, d.to_vec())));
            dot_rows_body(&rows, (400, 16), halves, |i, d| plain.push((i, d.to_vec())));
            let counts: Vec<_> = fast.iter().map(|(i, d)| (*i, d.len())).collect();
            assert_eq!((counts, &fast), (vec![(0, BATCH), (BATCH, 7)], &plain));
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                fast.clear();
                // SAFETY: the processor has AVX2.
                unsafe { dot_rows_avx2(&rows, (400, 16), halves, |i, d| fast.push((i, d.to_vec()))) };
                assert_eq!(fast, plain);
            }
        }
        let (mut a, mut b) = (vec![0.5; 384], vec![0.5; 384]);
        let four = [0, 400, 800, 1200].map(|at| (&rows[at..at + 384], 0.25 + at as f32 / 1000.0));
        add_scaled(&mut a, four);
        for one in four {
            add_scaled_body::<1, false>(&mut b, [one]);
        }
        assert!(a.iter().zip(&b).all(|(x, y)| (x - y).abs() < 1e-3));
        let all: [u8; 256] = std::array::from_fn(|b| (b * 167 % 256) as u8);
        for block in all.as_chunks::<64>().0 {
            assert_eq!(letters(block), letters_body(block));
        }
        for len in [0, 1, 15, 16, 17, 384] {
            let values: Vec<f32> = query[..len].iter().map(|q| f32::from(*q) / 7.0).collect();
            let squares: f32 = values.iter().map(|x| x * x).sum();
            assert!((norm(&values) - squares.sqrt()).abs() < 1e-3);
            assert_eq!(largest(&values), values.iter().fold(0.0, |m, x| x.abs().max(m)));
        }
    }

    #[test]
    fn a_row_of_two_parts_is_the_vector() {
        for len in [0usize, 1, 3, 64, 101, 384] {
            let values: Vec<f32> = (0..len).map(|i| ((i * 29 % 61) as f32 - 30.0) / 30.0).collect();
            let query: Vec<f32> = (0..len).map(|i| ((i * 17 % 37) as f32 - 18.0) / 18.0).collect();
            let (mut high, mut low) = (vec![7], vec![]);
            split(&values, 7.49, &mut high, &mut low);
            assert_eq!((high.len(), low.len()), (1 + len.div_ceil(2), len));
            let wanted: f32 = values.iter().zip(&query).map(|(a, b)| a * b).sum();
            let both = dot_parts(&high[1..], &low, &query) / 7.49;
            assert!((both - wanted).abs() <= 1e-3 * (len as f32).sqrt(), "{len}: {both} {wanted}");
            // The first part alone is near.
            let full: Vec<i8> = query.iter().map(|q| (q * 127.0).round() as i8).collect();
            dot_rows(&high[1..], len.div_ceil(2).max(1), 0, &full, |_, dots| {
                let near = dots[0] as f32 / 127.0 / 7.49;
                assert!((near - wanted).abs() <= 0.08 * (len as f32).sqrt(), "{len}: {near} {wanted}");
            });
        }
    }
}
