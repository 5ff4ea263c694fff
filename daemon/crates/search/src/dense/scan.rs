//! The scan of all records for the nearest to a query, in pieces that several threads take as they come to it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Dense, FileSet, Inner, SKIP, chunk_id, file_id, scale_of};
use crate::simd;
use crate::sync::lock;

/// Rows of a piece: some 150 microseconds of work with AVX2, so that whoever comes late or is interrupted is not waited for long.
const PIECE_ROWS: usize = 8192;
/// Rows from which it is worth to wake another thread for a scan.
const SPLIT_ROWS: usize = 4 * PIECE_ROWS;
/// Rows that a scan finds for each one asked for; of these the rests tell the best.
const WIDE: usize = 3;
/// How many rows ahead are asked for where they lie apart.
const AHEAD: usize = 4;

/// A scan under way.
pub struct Scan<'a> {
    dense: &'a Dense,
    query: &'a [f32],
    packed: Vec<i8>,
    /// What one step of the packed query is worth.
    unit: f32,
    k: usize,
    files: Option<&'a FileSet>,
    /// The next piece that nobody has taken.
    next: AtomicUsize,
    found: Mutex<Vec<Found>>,
}

/// A row of the scan.
#[derive(Debug, Clone, Copy)]
struct Found {
    score: f32,
    /// What the row is numbered in.
    generation: u32,
    id: i64,
    row: usize,
}

impl Dense {
    /// A scan for the `k` chunks nearest to `query`, of `files` only, when given. Whoever calls [`Scan::work`] takes part;
    /// [`Scan::finish`] tells what was found. It holds no lock but within these two.
    pub fn scan<'a>(&'a self, query: &'a [f32], k: usize, files: Option<&'a FileSet>) -> Scan<'a> {
        let largest = query.iter().fold(0f32, |m, x| m.max(x.abs()));
        let unit = largest / 127.0;
        let none = largest == 0.0 || k == 0 || query.len() != self.dim;
        let packed = if none { Vec::new() } else { query.iter().map(|x| (x / unit).round() as i8).collect() };
        let (next, found) = (AtomicUsize::new(0), Mutex::default());
        Scan { dense: self, query, packed, unit, k, files, next, found }
    }

    /// The `k` chunks nearest to `query`, best first, with their cosine: those in `files` only, when given.
    pub fn nearest(&self, query: &[f32], k: usize, files: Option<&FileSet>) -> Vec<(i64, f32)> {
        let scan = self.scan(query, k, files);
        scan.work();
        scan.finish()
    }
}

impl Scan<'_> {
    /// Whether another thread would be of use.
    pub fn is_large(&self) -> bool {
        self.dense.size().0 >= SPLIT_ROWS
    }

    /// Scans pieces until none is left.
    pub fn work(&self) {
        if self.packed.is_empty() {
            return;
        }
        // Kept until no piece is left: what rows are numbered in cannot change while one of them is not scanned.
        let inner = self.dense.inner.read().unwrap_or_else(|e| e.into_inner());
        let most = WIDE * self.k;
        let (mut best, mut floor) = (Vec::new(), f32::MIN_POSITIVE);
        loop {
            let first = self.next.fetch_add(PIECE_ROWS, Ordering::Relaxed).min(inner.rows);
            let end = inner.rows.min(first + PIECE_ROWS);
            if first == end {
                break;
            }
            if best.is_empty() {
                best.reserve(4 * most);
            }
            self.piece(&inner, first..end, most, &mut best, &mut floor);
        }
        if !best.is_empty() {
            lock(&self.found).append(&mut best);
        }
    }

    /// Adds the rows of a piece that may be among the best `most` to `best`; `floor` is what they must exceed.
    fn piece(
        &self,
        inner: &Inner,
        rows: std::ops::Range<usize>,
        most: usize,
        best: &mut Vec<Found>,
        floor: &mut f32,
    ) {
        let (stride, from, generation) = (self.dense.stride(), rows.start, inner.generation);
        let piece = &inner.records(stride)[from * stride..rows.end * stride];
        simd::dot_rows(piece, stride, SKIP, &self.packed, |first, dots| {
            for (row, dot) in (first..).zip(dots) {
                let record = &piece[row * stride..row * stride + SKIP];
                let score = *dot as f32 * scale_of(record) * self.unit;
                if score <= *floor || self.files.is_some_and(|f| !f.contains(&file_id(record))) {
                    continue;
                }
                let id = chunk_id(record);
                if inner.dead.contains(&id) {
                    continue;
                }
                best.push(Found { score, generation, id, row: from + row });
                if best.len() == 4 * most {
                    best.select_nth_unstable_by(most - 1, |a, b| b.score.total_cmp(&a.score));
                    best.truncate(most);
                    *floor = best[most - 1].score;
                }
            }
        });
    }

    /// The nearest by what all threads found, best first, with their cosine: the rests put the best [`WIDE`] times as many
    /// in order. Everyone's [`Scan::work`] has ended.
    pub fn finish(self) -> Vec<(i64, f32)> {
        let inner = self.dense.inner.read().unwrap_or_else(|e| e.into_inner());
        let (dim, stride) = (self.dense.dim, self.dense.stride());
        let mut best = std::mem::take(&mut *lock(&self.found));
        let by = |a: &Found, b: &Found| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id));
        best.sort_unstable_by(by);
        best.dedup_by_key(|f| f.id);
        best.truncate(WIDE * self.k);
        for found in best.iter_mut().filter(|f| f.generation != inner.generation) {
            // The files were written anew meanwhile; what is gone keeps its score by the first part.
            found.row = inner.row(inner.records(stride), stride, found.id).unwrap_or(inner.rows);
        }
        for n in 0..best.len() {
            if let Some(soon) = best.get(n + AHEAD) {
                inner.prefetch(soon.row, dim);
            }
            best[n].score = inner.exact(best[n].row, dim, self.query).unwrap_or(best[n].score);
        }
        best.sort_unstable_by(by);
        best.truncate(self.k);
        best.into_iter().map(|f| (f.id, f.score)).filter(|(_, score)| *score > 0.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Records;
    use super::*;

    #[test]
    fn threads_that_share_a_scan_find_what_one_finds() {
        let dir = tempfile::tempdir().unwrap();
        let dense = Dense::new(dir.path(), 8, [7; 32]);
        dense.open().unwrap();
        let mut records = Records::default();
        for id in 0..3 * PIECE_ROWS as i64 + 77 {
            let vector: Vec<f32> =
                (0..8).map(|d| ((id * 37 + d * d * 11) % 101) as f32 / 50.0 - 1.0).collect();
            dense.record(id, (id / 9) as u32, &vector, &mut records);
        }
        dense.append(&records).unwrap();
        dense.forget((0..500).map(|n| n * 3));
        let query = [0.4, -0.2, 0.9, 0.1, -0.7, 0.3, 0.0, 0.5];
        let wanted = dense.nearest(&query, 300, None);
        let scan = dense.scan(&query, 300, None);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| scan.work());
            }
        });
        assert_eq!((wanted.len(), scan.finish()), (300, wanted.clone()));
        // Between the scan and its end the files may be written anew, which numbers the rows anew.
        let scan = dense.scan(&query, 300, None);
        scan.work();
        dense.compact().unwrap();
        assert_eq!(scan.finish(), wanted);
        // Whoever does not fit finds nothing.
        assert!(
            dense.nearest(&query[1..], 3, None).is_empty() && dense.nearest(&[0.0; 8], 3, None).is_empty()
        );
    }
}
