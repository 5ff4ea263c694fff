//! The two inner loops of vectors, compiled for several instruction sets and chosen at run time.
#![expect(
    unsafe_code,
    reason = "a function compiled for an instruction set may be called only after the processor was asked for it"
)]

/// Adds `weight * row[i]` to each element of `sum`.
pub fn add_scaled(sum: &mut [f32], row: &[u8], weight: f32) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has AVX2 and FMA.
        return unsafe { add_scaled_avx2(sum, row, weight) };
    }
    add_scaled_body(sum, row, weight);
}

/// Calls `each(row index, dot product)` for every row of `rows`, a table with `stride` bytes a row whose int8
/// values begin at `skip`. The query has one i16 a value.
pub fn dot_rows(rows: &[u8], stride: usize, skip: usize, query: &[i16], each: impl FnMut(usize, i32)) {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512vnni")
        {
            // SAFETY: the processor has AVX-512 BW and VNNI.
            return unsafe { dot_rows_avx512(rows, stride, skip, query, each) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { dot_rows_avx2(rows, stride, skip, query, each) };
        }
    }
    dot_rows_body(rows, stride, skip, query, each);
}

#[inline(always)]
fn add_scaled_body(sum: &mut [f32], row: &[u8], weight: f32) {
    for (s, r) in sum.iter_mut().zip(row) {
        *s += weight * f32::from(*r as i8);
    }
}

#[inline(always)]
fn dot_rows_body(rows: &[u8], stride: usize, skip: usize, query: &[i16], mut each: impl FnMut(usize, i32)) {
    for (index, row) in rows.chunks_exact(stride).enumerate() {
        let row = &row[skip..skip + query.len()];
        let dot = row.iter().zip(query).map(|(r, q)| i32::from(*r as i8) * i32::from(*q)).sum();
        each(index, dot);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn add_scaled_avx2(sum: &mut [f32], row: &[u8], weight: f32) {
    add_scaled_body(sum, row, weight);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_rows_avx2(rows: &[u8], stride: usize, skip: usize, query: &[i16], each: impl FnMut(usize, i32)) {
    dot_rows_body(rows, stride, skip, query, each);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn dot_rows_avx512(rows: &[u8], stride: usize, skip: usize, query: &[i16], each: impl FnMut(usize, i32)) {
    dot_rows_body(rows, stride, skip, query, each);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_gives_the_plain_result() {
        let rows: Vec<u8> = (0..7 * 400).map(|i| (i * 37 % 251) as u8).collect();
        let query: Vec<i16> = (0..384).map(|i| (i * 13 % 255) as i16 - 127).collect();
        let (mut fast, mut plain) = (vec![], vec![]);
        dot_rows(&rows, 400, 16, &query, |i, d| fast.push((i, d)));
        dot_rows_body(&rows, 400, 16, &query, |i, d| plain.push((i, d)));
        assert_eq!(fast, plain);
        let (mut a, mut b) = (vec![0.5; 384], vec![0.5; 384]);
        add_scaled(&mut a, &rows[..384], 0.25);
        add_scaled_body(&mut b, &rows[..384], 0.25);
        assert!(a.iter().zip(&b).all(|(x, y)| (x - y).abs() < 1e-5));
    }
}
