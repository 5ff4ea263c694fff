//! The signs of an index's vectors: one bit for each value, read first, so that the int8 values are looked at only
//! where a row may be near.
//!
//! A record is `file id u32 | factor f32 | signs`, little-endian, made from the int8 record of the same row alone. The
//! signs of a row, as a vector of ±1, lie in about its direction: the dot product of a query with them, times the
//! factor, is about the row's dot product with the query (the estimator of RaBitQ, Gao and Long, SIGMOD 2024, without
//! its rotation). The query's values are rounded to 16 steps, so that counting bits is all there is to do.

use super::FileSet;
use crate::simd;

/// Bytes of a record before its signs.
const SKIP: usize = 8;

/// Bytes of a record.
pub fn stride(dim: usize) -> usize {
    // Whole words, so that the signs are read eight bytes at a time.
    SKIP + dim.div_ceil(64) * 8
}

/// Appends the record of a row: its file, and the int8 values whose size is `scale` for each step.
pub fn record(file: u32, values: &[u8], scale: f32, out: &mut Vec<u8>) {
    out.extend_from_slice(&file.to_le_bytes());
    let (mut sum, mut square) = (0i64, 0i64);
    for value in values {
        let value = i64::from(*value as i8);
        sum += value.abs();
        square += value * value;
    }
    // <row, signs> is the sum of the absolute values; with it the estimate of a row with itself is exact.
    let factor = if sum > 0 { square as f32 / sum as f32 * scale } else { 0.0 };
    out.extend_from_slice(&factor.to_le_bytes());
    for word in values.chunks(64) {
        let bits = word.iter().enumerate().fold(0u64, |bits, (n, v)| bits | (u64::from(*v as i8 > 0) << n));
        out.extend_from_slice(&bits.to_le_bytes());
    }
}

/// A query in 16 steps, as four planes of bits.
pub struct Query {
    planes: [Vec<u64>; 4],
    /// value = low + step * its number.
    low: f32,
    step: f32,
    sum: f32,
}

impl Query {
    /// Of a vector.
    pub fn new(vector: &[f32]) -> Self {
        let (low, high) =
            vector.iter().fold((f32::MAX, f32::MIN), |(low, high), x| (low.min(*x), high.max(*x)));
        let step = ((high - low) / 15.0).max(f32::MIN_POSITIVE);
        let mut planes = [const { Vec::new() }; 4];
        for plane in &mut planes {
            plane.resize(vector.len().div_ceil(64), 0);
        }
        for (at, value) in vector.iter().enumerate() {
            let number = ((value - low) / step).round().clamp(0.0, 15.0) as u64;
            for (n, plane) in planes.iter_mut().enumerate() {
                plane[at / 64] |= ((number >> n) & 1) << (at % 64);
            }
        }
        Self { planes, low, step, sum: vector.iter().sum() }
    }

    /// The `k` rows among `records` that seem nearest, in the order of the rows: those in `files` only, when given.
    pub fn candidates(&self, records: &[u8], dim: usize, k: usize, files: Option<&FileSet>) -> Vec<usize> {
        let stride = stride(dim);
        let mut best: Vec<(f32, usize)> = Vec::with_capacity(4 * k);
        let mut floor = f32::MIN;
        let planes = [0, 1, 2, 3].map(|n| &*self.planes[n]);
        simd::count_rows(records, stride, SKIP, planes, |row, set, weighted| {
            let head = &records[row * stride..row * stride + SKIP];
            let factor = f32::from_le_bytes([head[4], head[5], head[6], head[7]]);
            // Values where the row is positive count twice, less all of them: that is with ±1.
            let dot = 2.0 * (self.low * set as f32 + self.step * weighted as f32) - self.sum;
            let score = dot * factor;
            if score <= floor {
                return;
            }
            if files.is_some_and(|f| !f.contains(&u32::from_le_bytes([head[0], head[1], head[2], head[3]]))) {
                return;
            }
            best.push((score, row));
            if best.len() == 4 * k {
                best.select_nth_unstable_by(k - 1, |a, b| b.0.total_cmp(&a.0));
                best.truncate(k);
                floor = best[k - 1].0;
            }
        });
        if best.len() > k {
            best.select_nth_unstable_by(k - 1, |a, b| b.0.total_cmp(&a.0));
            best.truncate(k);
        }
        let mut rows: Vec<usize> = best.into_iter().map(|(_, row)| row).collect();
        rows.sort_unstable();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(count: usize, dim: usize, mut seed: u64) -> Vec<Vec<f32>> {
        let mut next = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        };
        let mut one = || {
            let v: Vec<f32> = (0..dim).map(|_| next() + next() + next()).collect();
            let norm = v.iter().map(|x| x * x).sum::<f32>().sqrt();
            v.iter().map(|x| x / norm).collect()
        };
        (0..count).map(|_| one()).collect()
    }

    fn packed(rows: &[Vec<f32>]) -> Vec<u8> {
        let mut out = Vec::new();
        for (n, row) in rows.iter().enumerate() {
            let scale = row.iter().fold(0f32, |m, x| m.max(x.abs())) / 127.0;
            let values: Vec<u8> = row.iter().map(|x| (x / scale).round() as i8 as u8).collect();
            record(n as u32 % 7, &values, scale, &mut out);
        }
        out
    }

    #[test]
    fn what_is_near_is_among_the_candidates() {
        for dim in [384, 100] {
            let rows = vectors(3000, dim, 7);
            let records = packed(&rows);
            assert_eq!(records.len(), rows.len() * stride(dim));
            for query in rows.iter().step_by(311) {
                // A row is the nearest to itself, and what it has in common with others is found again.
                let near: Vec<f32> = query.iter().zip(&rows[17]).map(|(a, b)| a * 0.7 + b * 0.7).collect();
                let found = Query::new(&near).candidates(&records, dim, 20, None);
                let own = rows.iter().position(|r| r == query).unwrap();
                assert!(found.contains(&own) && found.contains(&17), "{dim}: {own} not in {found:?}");
                assert!(found.len() == 20 && found.is_sorted());
                let files = FileSet::from_iter([own as u32 % 7]);
                let some = Query::new(&near).candidates(&records, dim, 20, Some(&files));
                assert!(some.contains(&own) && some.iter().all(|row| row % 7 == own % 7));
            }
        }
    }

    #[test]
    fn rows_of_nothing_do_no_harm() {
        let (mut out, zeros) = (Vec::new(), [0u8; 64]);
        record(1, &zeros, 1.0, &mut out);
        assert_eq!(Query::new(&[0.0; 64]).candidates(&out, 64, 2, None), [0]);
    }
}
