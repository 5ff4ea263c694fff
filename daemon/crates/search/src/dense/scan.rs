//! Looking through the rows for those nearest to a query.

use std::ops::Range;

use super::{FileSet, HEAD, Inner, SKIP, bits, chunk_id, file_id, scale};
use crate::simd;

/// A row of the scan.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    pub score: f32,
    pub id: i64,
    pub row: usize,
}

/// One look through the rows for a query.
pub struct Scan<'a> {
    pub inner: &'a Inner,
    pub stride: usize,
    pub query: &'a [i8],
    /// Size of a step of the query's values.
    pub unit: f32,
    /// Rows wanted.
    pub k: usize,
    /// Rows of a part to be looked at by their int8 values, where the signs are read first.
    pub look_at: usize,
    pub signs: Option<bits::Query>,
    pub files: Option<&'a FileSet>,
}

impl Scan<'_> {
    /// The best `k` of some rows in no order, and some more.
    pub fn part(&self, rows: Range<usize>) -> Vec<Found> {
        let (mut best, mut floor) = (Vec::with_capacity(4 * self.k), f32::MIN_POSITIVE);
        let records = self.inner.records(self.stride);
        let dim = self.stride - SKIP;
        let signs = bits::stride(dim);
        let signs = self
            .inner
            .signs
            .as_ref()
            .and_then(|m| m.bytes().get(HEAD + rows.start * signs..HEAD + rows.end * signs));
        if let (Some(query), Some(signs)) = (&self.signs, signs) {
            for row in query.candidates(signs, dim, self.look_at, self.files) {
                let row = rows.start + row;
                let record = &records[row * self.stride..(row + 1) * self.stride];
                simd::dot_rows(record, self.stride, SKIP, self.query, |_, dot| {
                    self.judge(row, record, dot, &mut best, &mut floor);
                });
            }
            return best;
        }
        let some = &records[rows.start * self.stride..rows.end * self.stride];
        simd::dot_rows(some, self.stride, SKIP, self.query, |n, dot| {
            self.judge(rows.start + n, &some[n * self.stride..], dot, &mut best, &mut floor);
        });
        best
    }

    /// Takes a row in if it is better than what is there.
    #[inline]
    fn judge(&self, row: usize, record: &[u8], dot: i32, best: &mut Vec<Found>, floor: &mut f32) {
        let score = dot as f32 * scale(record) * self.unit;
        if score <= *floor || self.files.is_some_and(|f| !f.contains(&file_id(record))) {
            return;
        }
        let id = chunk_id(record);
        if self.inner.dead.contains(&id) {
            return;
        }
        best.push(Found { score, id, row });
        if best.len() == 4 * self.k {
            best.select_nth_unstable_by(self.k - 1, |a, b| b.score.total_cmp(&a.score));
            best.truncate(self.k);
            *floor = best[self.k - 1].score;
        }
    }
}
