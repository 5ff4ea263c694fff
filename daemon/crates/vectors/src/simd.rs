//! Inner loops of vectors and tokenization, compiled for several instruction sets and selected at
//! run time.
#![expect(
    unsafe_code,
    reason = "a function compiled for an instruction set may only be called on a processor that supports it"
)]

/// Adds `weight * row[i]` to each element of `sum` for several int8 rows at once.
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
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            // SAFETY: the processor has AVX2 and FMA.
            return unsafe { add_scaled_avx2(sum, rows) };
        }
    }
    add_scaled_body::<N, false>(sum, rows);
}

/// Distance at which rows are prefetched, in bytes.
#[cfg(target_arch = "x86_64")]
const PREFETCH_BYTES: usize = 4096;

/// Number of dot products per callback.
const BATCH: usize = 64;

/// Computes the dot products of `query` with all rows and calls `each(index of the first row, dot
/// products)` per batch. Each row has `stride` bytes, with four-bit values from `skip` on in the
/// layout of [`quantize`].
pub fn dot_rows(
    rows: &[u8],
    stride: usize,
    skip: usize,
    query: &[i8],
    each: impl FnMut(usize, &[i32]),
) {
    let query_halves = query.split_at(query.len().div_ceil(2));
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512vnni")
        {
            // SAFETY: the processor has AVX-512 BW and VNNI.
            return unsafe { dot_rows_avx512(rows, (stride, skip), query_halves, each) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { dot_rows_avx2(rows, (stride, skip), query_halves, each) };
        }
    }
    dot_rows_body(rows, (stride, skip), query_halves, each);
}

/// Dot product of `query` with a row in the two parts that [`quantize`] writes.
pub fn dot_coarse_and_residual(coarse: &[u8], residual: &[u8], query: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has AVX2 and FMA.
        return unsafe { dot_coarse_and_residual_avx2(coarse, residual, query) };
    }
    dot_coarse_and_residual_body(coarse, residual, query)
}

/// Quantizes each value times `factor`, which must be below 7.5, to an integer from -8 to 7 and a
/// residual in 256ths. Appends the integers plus 8 to `coarse`, two per byte: the low four bits
/// belong to the first half of the values, the high four bits to the second half. Appends the
/// residuals to `residual` as int8.
pub fn quantize(values: &[f32], factor: f32, coarse: &mut Vec<u8>, residual: &mut Vec<u8>) {
    let (at, below) = (coarse.len(), residual.len());
    coarse.resize(at + values.len().div_ceil(2), 0);
    residual.resize(below + values.len(), 0);
    let (coarse, residual) = (&mut coarse[at..], &mut residual[below..]);
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { quantize_avx2(values, factor, coarse, residual) };
    }
    quantize_body(values, factor, coarse, residual);
}

/// The length of a vector. Sixteen partial sums avoid the latency of a single one.
pub fn norm(values: &[f32]) -> f32 {
    lanes(values, |lane, x| lane + x * x).iter().sum::<f32>().sqrt()
}

/// The largest magnitude of a vector's values.
pub fn largest(values: &[f32]) -> f32 {
    lanes(values, |lane, x| if x.abs() > lane { x.abs() } else { lane })
        .into_iter()
        .fold(0.0, f32::max)
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

/// 1.5 × 2^23: the last bit of floats in this range has the value 1, for negative offsets as well.
const ROUNDING: f32 = 12_582_912.0;

#[inline(always)]
fn quantize_body(values: &[f32], factor: f32, coarse: &mut [u8], residual: &mut [u8]) {
    // Rounds to the nearest integer, ties to even, by adding a constant that shifts out the
    // fraction. A cast would check for values outside of i32 each time.
    let round = |x: f32| (x + ROUNDING).to_bits().wrapping_sub(ROUNDING.to_bits()) as i32;
    let half = coarse.len();
    let part = |value: &f32, residual: &mut u8| {
        let exact = value * factor;
        let nibble = round(exact).clamp(-8, 7);
        *residual = round((exact - nibble as f32) * 256.0).clamp(-128, 127) as i8 as u8;
        (nibble + 8) as u8
    };
    let (first, second) = residual.split_at_mut(half);
    for ((value, residual), coarse) in values.iter().zip(first).zip(&mut *coarse) {
        *coarse = part(value, residual);
    }
    for ((value, residual), coarse) in values[half..].iter().zip(second).zip(&mut *coarse) {
        *coarse |= part(value, residual) << 4;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn quantize_avx2(values: &[f32], factor: f32, coarse: &mut [u8], residual: &mut [u8]) {
    quantize_body(values, factor, coarse, residual);
}

#[inline(always)]
fn dot_coarse_and_residual_body(coarse: &[u8], residual: &[u8], query: &[f32]) -> f32 {
    let mut lanes = [0f32; 16];
    let half = coarse.len();
    let (residual, query) = (residual.split_at(half), query.split_at(half));
    let mut add = |shift: u32, residual: &[u8], query: &[f32]| {
        for ((coarse, residual), query) in
            coarse.chunks(16).zip(residual.chunks(16)).zip(query.chunks(16))
        {
            for (((lane, h), l), q) in lanes.iter_mut().zip(coarse).zip(residual).zip(query) {
                let both = (i32::from(*h >> shift & 15) - 8) * 256 + i32::from(*l as i8);
                *lane += both as f32 * q;
            }
        }
    };
    add(0, residual.0, query.0);
    add(4, residual.1, query.1);
    lanes.iter().sum::<f32>() / 256.0
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_coarse_and_residual_avx2(coarse: &[u8], residual: &[u8], query: &[f32]) -> f32 {
    dot_coarse_and_residual_body(coarse, residual, query)
}

/// `FUSED` uses multiply-add, which on processors without the instruction would be a function call
/// per value.
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
fn batches(
    rows: &[u8],
    stride: usize,
    mut each: impl FnMut(usize, &[i32]),
    dot: impl Fn(&[u8]) -> i32,
) {
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

/// Eight times the sum of a query's values: the excess of dot products with values that are stored
/// plus 8.
#[cfg(target_arch = "x86_64")]
fn bias_correction(blocks: &[&[i8]]) -> i32 {
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
        _MM_HINT_T0, _mm_prefetch, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256,
        _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_set1_epi8,
        _mm256_set1_epi16, _mm256_setzero_si256, _mm256_srli_epi16, _mm256_storeu_si256,
    };
    // With an odd length, the second half has one value less.
    let full = second.len() / 32;
    let (one, tail) = first.split_at(full * 32);
    let (two, end) = second.split_at(full * 32);
    let (excess, nibble_mask) = (bias_correction(&[one, two]), _mm256_set1_epi8(15));
    batches(rows, stride, each, |row| {
        let (values, rest) = row[skip..skip + first.len()].split_at(full * 32);
        let mut sum = _mm256_setzero_si256();
        let query_halves = one.as_chunks::<32>().0.iter().zip(two.as_chunks::<32>().0);
        for (v, (a, b)) in values.as_chunks::<32>().0.iter().zip(query_halves) {
            // SAFETY: all three are 32 bytes long, and the loads need no alignment; the prefetch
            // may use any address.
            let (v, a, b) = unsafe {
                _mm_prefetch::<_MM_HINT_T0>(v.as_ptr().wrapping_add(PREFETCH_BYTES).cast());
                (
                    _mm256_loadu_si256(v.as_ptr().cast()),
                    _mm256_loadu_si256(a.as_ptr().cast()),
                    _mm256_loadu_si256(b.as_ptr().cast()),
                )
            };
            // A product is at most 15 * 127, so four of them fit 16 bits.
            let low = _mm256_maddubs_epi16(_mm256_and_si256(v, nibble_mask), a);
            let high =
                _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16::<4>(v), nibble_mask), b);
            let both = _mm256_madd_epi16(_mm256_add_epi16(low, high), _mm256_set1_epi16(1));
            sum = _mm256_add_epi32(sum, both);
        }
        let mut lanes = [0i32; 8];
        // SAFETY: the array has the size of the stored register, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
        lanes.iter().sum::<i32>() - excess + dot_nibbles(rest, tail, end)
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
    // With an odd length, the second half has one value less.
    let full = second.len() / 64;
    let (one, tail) = first.split_at(full * 64);
    let (two, end) = second.split_at(full * 64);
    let (excess, nibble_mask) = (bias_correction(&[one, two]), _mm512_set1_epi8(15));
    batches(rows, stride, each, |row| {
        let (values, rest) = row[skip..skip + first.len()].split_at(full * 64);
        let mut sums = [_mm512_setzero_si512(); 2];
        let query_halves = one.as_chunks::<64>().0.iter().zip(two.as_chunks::<64>().0);
        for (v, (a, b)) in values.as_chunks::<64>().0.iter().zip(query_halves) {
            // SAFETY: all three are 64 bytes long, and the loads need no alignment; the prefetch
            // may use any address. The hardware prefetcher stops at the page boundary.
            let (v, a, b) = unsafe {
                _mm_prefetch::<_MM_HINT_T0>(v.as_ptr().wrapping_add(PREFETCH_BYTES).cast());
                (
                    _mm512_loadu_si512(v.as_ptr().cast()),
                    _mm512_loadu_si512(a.as_ptr().cast()),
                    _mm512_loadu_si512(b.as_ptr().cast()),
                )
            };
            let high = _mm512_and_si512(_mm512_srli_epi16::<4>(v), nibble_mask);
            sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_and_si512(v, nibble_mask), a);
            sums[1] = _mm512_dpbusd_epi32(sums[1], high, b);
        }
        let sum = _mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1]));
        sum - excess + dot_nibbles(rest, tail, end)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_equal_the_portable_code() {
        let rows: Vec<u8> = (0..(BATCH + 7) * 400).map(|i| (i * 37 % 251) as u8).collect();
        let query: Vec<i8> = (0..384).map(|i| ((i * 13 % 255) as i16 - 127) as i8).collect();
        for len in [384, 256, 101, 64, 3, 1] {
            let query_halves = query[..len].split_at(len.div_ceil(2));
            let (mut fast, mut plain) = (vec![], vec![]);
            dot_rows(&rows, 400, 16, &query[..len], |i, d| fast.push((i, d.to_vec())));
            dot_rows_body(&rows, (400, 16), query_halves, |i, d| plain.push((i, d.to_vec())));
            let counts: Vec<_> = fast.iter().map(|(i, d)| (*i, d.len())).collect();
            assert_eq!((counts, &fast), (vec![(0, BATCH), (BATCH, 7)], &plain));
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                fast.clear();
                // SAFETY: the processor has AVX2.
                unsafe {
                    dot_rows_avx2(&rows, (400, 16), query_halves, |i, d| fast.push((i, d.to_vec())))
                };
                assert_eq!(fast, plain);
            }
        }
        let (mut a, mut b) = (vec![0.5; 384], vec![0.5; 384]);
        let scaled_rows =
            [0, 400, 800, 1200].map(|at| (&rows[at..at + 384], 0.25 + at as f32 / 1000.0));
        add_scaled(&mut a, scaled_rows);
        for one in scaled_rows {
            add_scaled_body::<1, false>(&mut b, [one]);
        }
        assert!(a.iter().zip(&b).all(|(x, y)| (x - y).abs() < 1e-3));
        for len in [0, 1, 15, 16, 17, 384] {
            let values: Vec<f32> = query[..len].iter().map(|q| f32::from(*q) / 7.0).collect();
            let squares: f32 = values.iter().map(|x| x * x).sum();
            assert!((norm(&values) - squares.sqrt()).abs() < 1e-3);
            assert_eq!(largest(&values), values.iter().fold(0.0, |m, x| x.abs().max(m)));
        }
    }

    #[test]
    fn coarse_and_residual_parts_reconstruct_the_vector() {
        for len in [0usize, 1, 3, 64, 101, 384] {
            let values: Vec<f32> = (0..len).map(|i| ((i * 29 % 61) as f32 - 30.0) / 30.0).collect();
            let query: Vec<f32> = (0..len).map(|i| ((i * 17 % 37) as f32 - 18.0) / 18.0).collect();
            let (mut coarse, mut residual) = (vec![7], vec![]);
            quantize(&values, 7.49, &mut coarse, &mut residual);
            assert_eq!((coarse.len(), residual.len()), (1 + len.div_ceil(2), len));
            let expected: f32 = values.iter().zip(&query).map(|(a, b)| a * b).sum();
            let both = dot_coarse_and_residual(&coarse[1..], &residual, &query) / 7.49;
            assert!(
                (both - expected).abs() <= 1e-3 * (len as f32).sqrt(),
                "{len}: {both} {expected}"
            );
            // The coarse part alone is an approximation.
            let packed: Vec<i8> = query.iter().map(|q| (q * 127.0).round() as i8).collect();
            dot_rows(&coarse[1..], len.div_ceil(2).max(1), 0, &packed, |_, dots| {
                let near = dots[0] as f32 / 127.0 / 7.49;
                assert!(
                    (near - expected).abs() <= 0.08 * (len as f32).sqrt(),
                    "{len}: {near} {expected}"
                );
            });
        }
    }
}
