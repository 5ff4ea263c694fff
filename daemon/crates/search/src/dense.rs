//! A copy of an index's vectors with four bits a value: an append-only, memory-mapped file that is scanned whole, and beside
//! it a file of what the rounding left, read for the best of a scan only.
//!
//! A record is `chunk id i64 | file id u32 | scale f32 | dim × 4 bits`, little-endian; value = (bits - 8) × scale. The low
//! bits of a byte are of the first half of the values, the high ones of the second. The second file has dim × i8 for each
//! record: value = (bits - 8 + rest / 256) × scale. Both are a cache of `chunk_vec`: a record whose chunk is gone is dead,
//! a live chunk without a record is appended again at the next opening. Ids of chunks are never used twice, so a record is
//! never wrong.

mod scan;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::RwLock;

use rustc_hash::FxHashSet;

use crate::mapped::{Mapped, private};
use crate::simd;

const MAGIC: &[u8; 8] = b"CAIRNVE3";
/// Bytes before the records: magic, dimensions (u32), zeros, and the model's hash.
const HEAD: usize = 64;
/// Bytes of a record before its values.
const SKIP: usize = 16;

/// The largest magnitude of a value in four bits: at 7.5 it would be rounded to 8, which they do not hold.
const LARGEST: f32 = 7.49;

/// A set of file ids.
pub type FileSet = FxHashSet<u32>;

/// Records to append: of the scanned file, and of the file of rests.
#[derive(Default)]
pub struct Records {
    high: Vec<u8>,
    low: Vec<u8>,
}

impl Records {
    /// Bytes of both.
    pub fn len(&self) -> usize {
        self.high.len() + self.low.len()
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.high.clear();
        self.low.clear();
    }
}

/// The matrix of one index.
pub struct Dense {
    path: PathBuf,
    dim: usize,
    model: [u8; 32],
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    high: Option<Mapped>,
    low: Option<Mapped>,
    rows: usize,
    /// Grows with each compaction; both files have it.
    generation: u32,
    dead: FxHashSet<i64>,
    /// Stretches of rows by ascending ids, for looking one up.
    runs: Vec<Run>,
}

/// Rows `start..end` whose ids ascend from `first` to `last`.
#[derive(Debug, Clone, Copy)]
struct Run {
    start: usize,
    end: usize,
    first: i64,
    last: i64,
}

impl Dense {
    /// The matrix in `folder`, not yet opened.
    pub fn new(folder: &Path, dim: usize, model: [u8; 32]) -> Self {
        Self { path: folder.join("vectors.i4"), dim, model, inner: RwLock::default() }
    }

    fn stride(&self) -> usize {
        SKIP + self.dim.div_ceil(2)
    }

    /// Opens the file, or makes it when it is missing, damaged or of another model.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(&self) -> std::io::Result<()> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        *inner = Inner::default();
        // Of an earlier version, with eight bits a value; mostly there is none.
        let _old = std::fs::remove_file(self.path.with_extension("i8"));
        let (mut high, one) = self.open_one(&self.path)?;
        let (mut low, other) = self.open_one(&self.low_path())?;
        if one != other {
            // A compaction was cut off between its two files.
            for path in [&self.path, &self.low_path()] {
                std::fs::remove_file(path)?;
            }
            (high, low) = (self.open_one(&self.path)?.0, self.open_one(&self.low_path())?.0);
        }
        let rows_of = |file: &File, stride: usize| {
            file.metadata().map(|m| (m.len() as usize).saturating_sub(HEAD) / stride)
        };
        // A torn last record is cut off, and what only one of them has; nothing is mapped yet.
        let rows = rows_of(&high, self.stride())?.min(rows_of(&low, self.dim)?);
        high.set_len((HEAD + rows * self.stride()) as u64)?;
        low.set_len((HEAD + rows * self.dim) as u64)?;
        *inner = Inner {
            high: Some(Mapped::new(high)?),
            low: Some(Mapped::new(low)?),
            rows,
            generation: one.max(other),
            ..Inner::default()
        };
        inner.find_runs(self.stride());
        Ok(())
    }

    /// The chunks it has records of, in the order of the file, those that were forgotten too.
    pub fn ids(&self) -> Vec<i64> {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        inner.records(self.stride()).chunks_exact(self.stride()).map(chunk_id).collect()
    }

    fn low_path(&self) -> PathBuf {
        self.path.with_extension("rest")
    }

    fn head(&self, generation: u32) -> [u8; HEAD] {
        let mut head = [0u8; HEAD];
        head[..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&(self.dim as u32).to_le_bytes());
        head[12..16].copy_from_slice(&generation.to_le_bytes());
        head[32..].copy_from_slice(&self.model);
        head
    }

    /// Opens a file, or makes it when it is missing or has another head; with its generation.
    fn open_one(&self, path: &Path) -> std::io::Result<(File, u32)> {
        let mut file = private().read(true).append(true).create(true).open(path)?;
        let mut have = [0u8; HEAD];
        let read = std::io::Read::read_exact(&mut file, &mut have);
        let generation = u32::from_le_bytes([have[12], have[13], have[14], have[15]]);
        if read.is_ok() && have == self.head(generation) {
            return Ok((file, generation));
        }
        std::fs::remove_file(path)?;
        file = private().read(true).append(true).create(true).open(path)?;
        file.write_all(&self.head(0))?;
        Ok((file, 0))
    }

    /// Marks chunks as gone.
    pub fn forget(&self, chunks: impl IntoIterator<Item = i64>) {
        self.inner.write().unwrap_or_else(|e| e.into_inner()).dead.extend(chunks);
    }

    /// Takes chunks back that were marked as gone; returns those that were. Their records are there still, and right: ids
    /// are never used twice.
    pub fn revive(&self, chunks: impl IntoIterator<Item = i64>) -> FxHashSet<i64> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        chunks.into_iter().filter(|id| inner.dead.remove(id)).collect()
    }

    /// Records and how many of them are dead.
    pub fn size(&self) -> (usize, usize) {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        (inner.rows, inner.dead.len())
    }

    /// Adds the record of a chunk's vector to `out`; append some with [`Dense::append`].
    pub fn record(&self, chunk: i64, file: u32, vector: &[f32], out: &mut Records) {
        let largest = simd::largest(vector);
        let scale = if largest > 0.0 { largest / LARGEST } else { 1.0 };
        out.high.extend_from_slice(&chunk.to_le_bytes());
        out.high.extend_from_slice(&file.to_le_bytes());
        out.high.extend_from_slice(&scale.to_le_bytes());
        simd::split(vector, 1.0 / scale, &mut out.high, &mut out.low);
    }

    /// Appends whole records.
    ///
    /// # Errors
    /// What the system says (a full disk); what was there stays.
    pub fn append(&self, records: &Records) -> std::io::Result<()> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        let from = inner.rows;
        let Inner { high: Some(high), low: Some(low), .. } = &mut *inner else { return Ok(()) };
        low.append(HEAD + from * self.dim, &records.low)?;
        if let Err(error) = high.append(HEAD + from * self.stride(), &records.high) {
            low.file.set_len((HEAD + from * self.dim) as u64)?;
            return Err(error);
        }
        let ids: Vec<i64> = records.high.chunks_exact(self.stride()).map(chunk_id).collect();
        inner.rows += ids.len();
        inner.add_runs(from, &ids);
        Ok(())
    }

    /// Writes the files anew without their dead records.
    ///
    /// # Errors
    /// What the system says; the old files stay, or are made again at the next opening.
    pub fn compact(&self) -> std::io::Result<()> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        let generation = inner.generation.wrapping_add(1);
        let paths = [self.path.clone(), self.low_path()];
        let fresh = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(".new");
            PathBuf::from(name)
        };
        let mut outs = Vec::new();
        for path in &paths {
            let file = private().write(true).create(true).truncate(true).open(fresh(path))?;
            let mut out = std::io::BufWriter::new(file);
            out.write_all(&self.head(generation))?;
            outs.push(out);
        }
        let mut seen = FxHashSet::default();
        let high = inner.records(self.stride()).chunks_exact(self.stride());
        for (record, rest) in high.zip(inner.rests(self.dim).chunks_exact(self.dim)) {
            let id = chunk_id(record);
            if !inner.dead.contains(&id) && seen.insert(id) {
                outs[0].write_all(record)?;
                outs[1].write_all(rest)?;
            }
        }
        for out in outs {
            out.into_inner().map_err(|e| e.into_error())?.sync_all()?;
        }
        let mut opened = Vec::new();
        for path in &paths {
            std::fs::rename(fresh(path), path)?;
            opened.push(Mapped::new(OpenOptions::new().read(true).append(true).open(path)?)?);
        }
        let (low, high) = (opened.pop(), opened.pop());
        *inner = Inner { high, low, rows: seen.len(), generation, ..Inner::default() };
        inner.find_runs(self.stride());
        Ok(())
    }
}

impl Dense {
    /// Cosines of chunks with `query`; nothing for a chunk without a vector.
    pub fn cosines(&self, query: &[f32], chunks: &[i64]) -> Vec<Option<f32>> {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        let records = inner.records(self.stride());
        let cosine = |id: &i64| inner.exact(inner.row(records, self.stride(), *id)?, self.dim, query);
        chunks.iter().map(cosine).collect()
    }
}

impl Inner {
    /// Learns the runs of all records.
    fn find_runs(&mut self, stride: usize) {
        let ids: Vec<i64> = self.records(stride).chunks_exact(stride).map(chunk_id).collect();
        self.add_runs(0, &ids);
    }

    /// The cosine of a row by both its parts.
    fn exact(&self, row: usize, dim: usize, query: &[f32]) -> Option<f32> {
        let stride = SKIP + dim.div_ceil(2);
        let record = self.records(stride).get(row * stride..(row + 1) * stride)?;
        let rest = self.rests(dim).get(row * dim..(row + 1) * dim)?;
        Some(simd::dot_parts(&record[SKIP..], rest, query) * scale_of(record))
    }

    /// Asks for both parts of a row, which will be needed soon.
    fn prefetch(&self, row: usize, dim: usize) {
        let stride = SKIP + dim.div_ceil(2);
        let (record, rest) = (row * stride, row * dim);
        (record..record + stride).step_by(64).for_each(|at| simd::prefetch(self.records(stride), at));
        (rest..rest + dim).step_by(64).for_each(|at| simd::prefetch(self.rests(dim), at));
    }

    fn add_runs(&mut self, from: usize, ids: &[i64]) {
        for (row, id) in (from..).zip(ids) {
            match self.runs.last_mut() {
                Some(run) if run.last < *id => (run.end, run.last) = (row + 1, *id),
                _ => self.runs.push(Run { start: row, end: row + 1, first: *id, last: *id }),
            }
        }
    }

    /// The row of a chunk. Ids ascend within a run by one at least, mostly by just that: it is looked for backwards from
    /// where it would be then.
    fn row(&self, records: &[u8], stride: usize, id: i64) -> Option<usize> {
        let id_of = |row: usize| records.get(row * stride..).map_or(i64::MAX, chunk_id);
        self.runs.iter().filter(|r| (r.first..=r.last).contains(&id)).find_map(|run| {
            let mut low = (run.start + (id - run.first) as usize).min(run.end - 1);
            let (mut high, mut step) = (low + 1, 1);
            while low > run.start && id_of(low) > id {
                (high, low, step) = (low, low.saturating_sub(step).max(run.start), 2 * step);
            }
            while low < high {
                let middle = (low + high) / 2;
                if id_of(middle) < id { low = middle + 1 } else { high = middle }
            }
            (low < run.end && id_of(low) == id).then_some(low)
        })
    }

    fn records(&self, stride: usize) -> &[u8] {
        self.high.as_ref().and_then(|m| m.map.get(HEAD..HEAD + self.rows * stride)).unwrap_or(&[])
    }

    fn rests(&self, dim: usize) -> &[u8] {
        self.low.as_ref().and_then(|m| m.map.get(HEAD..HEAD + self.rows * dim)).unwrap_or(&[])
    }
}

fn chunk_id(record: &[u8]) -> i64 {
    record.first_chunk().map_or(0, |b| i64::from_le_bytes(*b))
}

fn file_id(record: &[u8]) -> u32 {
    u32::from_le_bytes([record[8], record[9], record[10], record[11]])
}

fn scale_of(record: &[u8]) -> f32 {
    f32::from_le_bytes([record[12], record[13], record[14], record[15]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(values: &[f32]) -> Vec<f32> {
        let norm = values.iter().map(|x| x * x).sum::<f32>().sqrt();
        values.iter().map(|x| x / norm).collect()
    }

    #[test]
    fn nearest_survives_reopening_forgetting_and_compaction() {
        let dir = tempfile::tempdir().unwrap();
        let dense = Dense::new(dir.path(), 4, [7; 32]);
        dense.open().unwrap();
        assert!(dense.ids().is_empty());
        let mut records = Records::default();
        for (id, v) in [(1, [1.0, 0.0, 0.0, 0.1]), (2, [0.9, 0.5, 0.0, 0.0]), (3, [0.0, 1.0, 0.2, 0.0])] {
            dense.record(id, 10 + id as u32, &unit(&v), &mut records);
        }
        dense.append(&records).unwrap();
        let query = unit(&[1.0, 0.2, 0.0, 0.0]);
        let ids = |d: &Dense, files: Option<&FileSet>| {
            d.nearest(&query, 2, files).iter().map(|(id, _)| *id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&dense, None), [1, 2]);
        let exact = dense.cosines(&query, &[2, 99]);
        let wanted: f32 = unit(&[0.9, 0.5, 0.0, 0.0]).iter().zip(&query).map(|(a, b)| a * b).sum();
        assert!((exact[0].unwrap() - wanted).abs() < 5e-4 && exact[1].is_none());
        assert_eq!(ids(&dense, Some(&[13].into_iter().collect())), [3]);
        dense.forget([1]);
        assert_eq!(ids(&dense, None), [2, 3]);
        dense.compact().unwrap();
        assert_eq!(dense.size(), (2, 0));
        drop(dense);
        let rebuild_range = Dense::new(dir.path(), 4, [7; 32]);
        rebuild_range.open().unwrap();
        assert_eq!(rebuild_range.ids(), [2, 3]);
        assert_eq!(ids(&rebuild_range, None), [2, 3]);
        let other = Dense::new(dir.path(), 4, [8; 32]);
        other.open().unwrap();
        assert!(other.ids().is_empty(), "vectors of two models never mix");
    }

    #[test]
    fn every_row_is_found_by_its_id() {
        let dir = tempfile::tempdir().unwrap();
        let dense = Dense::new(dir.path(), 4, [7; 32]);
        dense.open().unwrap();
        // Without gaps, with some, with one of a million; then a second run.
        let ids: Vec<i64> =
            (5..40).chain((50..90).step_by(3)).chain([1_000_000, 1_000_001, 41, 42, 44, 2_000_000]).collect();
        let mut records = Records::default();
        ids.iter().for_each(|id| dense.record(*id, 1, &[*id as f32, 1.0, 0.0, 0.0], &mut records));
        dense.append(&records).unwrap();
        let inner = dense.inner.read().unwrap();
        let found = |id| inner.row(inner.records(dense.stride()), dense.stride(), id);
        for (row, id) in ids.iter().enumerate() {
            assert_eq!(found(*id), Some(row), "{id}");
        }
        for gone in [0, 4, 40, 43, 51, 91, 500_000, 1_500_000, 2_000_001] {
            assert_eq!(found(gone), None, "{gone}");
        }
    }

    #[test]
    fn a_torn_record_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let dense = Dense::new(dir.path(), 4, [7; 32]);
        dense.open().unwrap();
        let mut records = Records::default();
        dense.record(5, 1, &[0.5; 4], &mut records);
        dense.append(&records).unwrap();
        drop(dense);
        let mut file = OpenOptions::new().append(true).open(dir.path().join("vectors.i4")).unwrap();
        file.write_all(b"torn").unwrap();
        // What an earlier version left is nobody's any more.
        std::fs::write(dir.path().join("vectors.i8"), b"CAIRNVE2").unwrap();
        let rebuild_range = Dense::new(dir.path(), 4, [7; 32]);
        rebuild_range.open().unwrap();
        assert_eq!(rebuild_range.ids(), [5]);
        assert!(!dir.path().join("vectors.i8").exists());
    }
}
