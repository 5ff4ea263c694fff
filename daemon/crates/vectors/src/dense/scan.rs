//! The scan of all records for the nearest to a query, divided into pieces that several threads
//! claim.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashSet;

use super::{DenseIndex, Inner, SKIP, chunk_id, file_id, scale_of};
use crate::simd;
use cairn_index_base::{FileSet, lock};

/// Rows per piece: some 150 microseconds of work with AVX2, so that a thread that starts late or is
/// preempted delays the scan only briefly.
const PIECE_ROWS: usize = 8192;
/// Number of rows from which waking another thread pays off.
const SPLIT_ROWS: usize = 4 * PIECE_ROWS;
/// Rows that the coarse scan collects per requested row; the residuals then select the best of
/// them.
const OVERSAMPLE: usize = 3;
/// Number of scattered rows that are prefetched ahead.
const PREFETCH_ROWS: usize = 4;

pub struct Scan<'a> {
    parts: Vec<Part<'a>>,
    query: &'a [f32],
    packed: Vec<i8>,
    /// The value of one step of the packed query.
    unit: f32,
    k: usize,
    files: Option<&'a FileSet>,
}

/// The scan of the index's own records, or of those that it shares with another one.
struct Part<'a> {
    dense: &'a DenseIndex,
    /// Chunks of a shared index that do not count.
    hidden: Arc<FxHashSet<i64>>,
    /// The first row of the next unclaimed piece.
    next: AtomicUsize,
    hits: Mutex<Vec<RowHit>>,
}

#[derive(Debug, Clone, Copy)]
struct RowHit {
    score: f32,
    /// The generation of the files in which `row` is valid.
    generation: u32,
    id: i64,
    row: usize,
}

impl DenseIndex {
    /// Creates a scan for the `k` chunks nearest to `query`, restricted to `files` if given. Any
    /// number of threads may call [`Scan::run`]; [`Scan::finish`] returns the result. Locks are
    /// only taken within these two.
    pub fn scan<'a>(&'a self, query: &'a [f32], k: usize, files: Option<&'a FileSet>) -> Scan<'a> {
        let largest = query.iter().fold(0f32, |m, x| m.max(x.abs()));
        let unit = largest / 127.0;
        let is_empty = largest == 0.0 || k == 0 || query.len() != self.dim;
        let packed = if is_empty {
            Vec::new()
        } else {
            query.iter().map(|x| (x / unit).round() as i8).collect()
        };
        let part = |dense: &'a DenseIndex, hidden| Part {
            dense,
            hidden,
            next: AtomicUsize::new(0),
            hits: Mutex::default(),
        };
        let mut parts = vec![part(self, Arc::default())];
        if let Some(shared) = &self.shared {
            let hidden = shared.hidden.read().unwrap_or_else(|e| e.into_inner());
            parts.push(part(&shared.index, Arc::clone(&hidden)));
        }
        Scan { parts, query, packed, unit, k, files }
    }

    /// The `k` chunks nearest to `query` with their cosines, best first, restricted to `files` if
    /// given.
    pub fn nearest(&self, query: &[f32], k: usize, files: Option<&FileSet>) -> Vec<(i64, f32)> {
        let scan = self.scan(query, k, files);
        scan.run();
        scan.finish()
    }
}

impl Scan<'_> {
    /// True if another thread would speed up the scan.
    pub fn is_large(&self) -> bool {
        self.parts.iter().map(|part| part.dense.size().0).sum::<usize>() >= SPLIT_ROWS
    }

    /// Scans pieces until none is left.
    pub fn run(&self) {
        if !self.packed.is_empty() {
            self.parts.iter().for_each(|part| self.run_part(part));
        }
    }

    fn run_part(&self, part: &Part<'_>) {
        // Locked until no piece is left, so that row numbers stay valid during the scan.
        let inner = part.dense.inner.read().unwrap_or_else(|e| e.into_inner());
        let limit = OVERSAMPLE * self.k;
        let (mut best, mut threshold) = (Vec::new(), f32::MIN_POSITIVE);
        loop {
            let first = part.next.fetch_add(PIECE_ROWS, Ordering::Relaxed).min(inner.rows);
            let end = inner.rows.min(first + PIECE_ROWS);
            if first == end {
                break;
            }
            if best.is_empty() {
                best.reserve(4 * limit);
            }
            self.scan_piece(part, &inner, first..end, &mut best, &mut threshold);
        }
        if !best.is_empty() {
            lock(&part.hits).append(&mut best);
        }
    }

    /// Adds the rows of a piece that may be among the best and exceed `threshold` to `best`.
    fn scan_piece(
        &self,
        part: &Part<'_>,
        inner: &Inner,
        rows: std::ops::Range<usize>,
        best: &mut Vec<RowHit>,
        threshold: &mut f32,
    ) {
        let (stride, from, generation) = (part.dense.stride(), rows.start, inner.generation);
        let limit = OVERSAMPLE * self.k;
        let rows_of_piece = &inner.records(stride)[from * stride..rows.end * stride];
        simd::dot_rows(rows_of_piece, stride, SKIP, &self.packed, |first, dots| {
            for (row, dot) in (first..).zip(dots) {
                let record = &rows_of_piece[row * stride..row * stride + SKIP];
                let score = *dot as f32 * scale_of(record) * self.unit;
                if score <= *threshold || self.files.is_some_and(|f| !f.contains(&file_id(record)))
                {
                    continue;
                }
                let id = chunk_id(record);
                if inner.dead.contains(&id) || part.hidden.contains(&id) {
                    continue;
                }
                best.push(RowHit { score, generation, id, row: from + row });
                if best.len() == 4 * limit {
                    best.select_nth_unstable_by(limit - 1, |a, b| b.score.total_cmp(&a.score));
                    best.truncate(limit);
                    *threshold = best[limit - 1].score;
                }
            }
        });
    }

    /// Returns the nearest chunks with their cosines, best first: the residuals re-order the best
    /// `k` × [`OVERSAMPLE`] rows of all threads. All calls of [`Scan::run`] must have returned.
    pub fn finish(self) -> Vec<(i64, f32)> {
        let order = |a: &RowHit, b: &RowHit| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id));
        let mut best: Vec<RowHit> =
            self.parts.iter().flat_map(|part| self.finish_part(part)).collect();
        best.sort_unstable_by(order);
        best.truncate(self.k);
        best.into_iter().map(|f| (f.id, f.score)).filter(|(_, score)| *score > 0.0).collect()
    }

    fn finish_part(&self, part: &Part<'_>) -> Vec<RowHit> {
        let inner = part.dense.inner.read().unwrap_or_else(|e| e.into_inner());
        let (dim, stride) = (part.dense.dim, part.dense.stride());
        let mut best = std::mem::take(&mut *lock(&part.hits));
        let order = |a: &RowHit, b: &RowHit| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id));
        best.sort_unstable_by(order);
        best.dedup_by_key(|f| f.id);
        best.truncate(OVERSAMPLE * self.k);
        for hits in best.iter_mut().filter(|f| f.generation != inner.generation) {
            // The files were compacted in the meantime; a row that was removed retains its coarse
            // score.
            hits.row = inner.row(inner.records(stride), stride, hits.id).unwrap_or(inner.rows);
        }
        for n in 0..best.len() {
            if let Some(upcoming) = best.get(n + PREFETCH_ROWS) {
                inner.prefetch(upcoming.row, dim);
            }
            best[n].score = inner.exact(best[n].row, dim, self.query).unwrap_or(best[n].score);
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::super::Records;
    use super::*;

    #[test]
    fn parallel_scan_equals_sequential_scan() {
        let dir = tempfile::tempdir().unwrap();
        let dense = DenseIndex::new(dir.path(), 8, [7; 32]);
        dense.open().unwrap();
        let mut records = Records::default();
        for id in 0..3 * PIECE_ROWS as i64 + 77 {
            let vector: Vec<f32> =
                (0..8).map(|d| ((id * 37 + d * d * 11) % 101) as f32 / 50.0 - 1.0).collect();
            dense.encode(id, (id / 9) as u32, &vector, &mut records);
        }
        dense.append(&records).unwrap();
        dense.mark_dead((0..500).map(|n| n * 3));
        let query = [0.4, -0.2, 0.9, 0.1, -0.7, 0.3, 0.0, 0.5];
        let expected = dense.nearest(&query, 300, None);
        let scan = dense.scan(&query, 300, None);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| scan.run());
            }
        });
        assert_eq!((expected.len(), scan.finish()), (300, expected.clone()));
        // A compaction between scan and finish renumbers the rows.
        let scan = dense.scan(&query, 300, None);
        scan.run();
        dense.compact().unwrap();
        assert_eq!(scan.finish(), expected);
        // Queries with the wrong dimension or without a direction find nothing.
        assert!(
            dense.nearest(&query[1..], 3, None).is_empty()
                && dense.nearest(&[0.0; 8], 3, None).is_empty()
        );
    }
}
