//! A quantized copy of an index's vectors with four bits per value: an append-only, memory-mapped
//! file that is scanned completely, and a second file with the residuals, which is read only for
//! the best rows of a scan.
//!
//! A record is `chunk id i64 | file id u32 | scale f32 | dim × 4 bits`, little-endian; value =
//! (bits - 8) × scale. The low four bits of each byte belong to the first half of the values, the
//! high four bits to the second half. The second file has dim × i8 per record: value = (bits - 8 +
//! residual / 256) × scale. Both files are a cache of `chunk_vec`: a record of a removed chunk is
//! dead, and an existing chunk without a record is appended at the next opening. Chunk ids are
//! never reused, so a record is never wrong.

mod scan;

pub use scan::Scan;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use rustc_hash::FxHashSet;

use crate::simd;
use cairn_index_base::{Mapped, private_options};

const MAGIC: &[u8; 8] = b"CAIRNVE3";
/// Bytes before the records: magic, dimensions (u32), generation (u32), zeros, and the model's
/// hash.
const HEAD: usize = 64;
/// Bytes of a record before its values.
const SKIP: usize = 16;

/// The largest scaled magnitude of a value: 7.5 would be rounded to 8, which does not fit four
/// bits.
const MAX_MAGNITUDE: f32 = 7.49;

/// Records to append to both files.
#[derive(Default)]
pub struct Records {
    coarse: Vec<u8>,
    residual: Vec<u8>,
}

impl Records {
    /// Total size in bytes.
    pub fn len(&self) -> usize {
        self.coarse.len() + self.residual.len()
    }

    pub fn clear(&mut self) {
        self.coarse.clear();
        self.residual.clear();
    }
}

/// The vectors of one index.
pub struct DenseIndex {
    path: PathBuf,
    dim: usize,
    model: [u8; 32],
    inner: RwLock<Inner>,
    shared: Option<Shared>,
}

/// Vectors of another index, which is not written any more. Its chunk ids are lower than all others.
struct Shared {
    index: Arc<DenseIndex>,
    last_chunk: i64,
    /// Its chunks that this index does not have.
    hidden: RwLock<Arc<FxHashSet<i64>>>,
}

#[derive(Default)]
struct Inner {
    coarse: Option<Mapped>,
    residual: Option<Mapped>,
    rows: usize,
    /// Incremented by each compaction; both files must have the same generation.
    generation: u32,
    dead: FxHashSet<i64>,
    /// Runs of rows with ascending ids, for looking up a chunk.
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

impl DenseIndex {
    /// Creates the handle of the files in `folder` without opening them.
    pub fn new(folder: &Path, dim: usize, model: [u8; 32]) -> Self {
        Self { path: folder.join("vectors.i4"), dim, model, inner: RwLock::default(), shared: None }
    }

    /// Adds the vectors of an index that is not written any more, whose greatest chunk id is
    /// `last_chunk`.
    pub fn with_shared(mut self, index: Arc<DenseIndex>, last_chunk: i64) -> Self {
        self.shared = Some(Shared { index, last_chunk, hidden: RwLock::default() });
        self
    }

    /// Sets the shared chunks that this index does not have.
    pub fn set_hidden(&self, chunks: Vec<i64>) {
        if let Some(shared) = &self.shared {
            let mut hidden = shared.hidden.write().unwrap_or_else(|e| e.into_inner());
            *hidden = Arc::new(chunks.into_iter().collect());
        }
    }

    fn stride(&self) -> usize {
        SKIP + self.dim.div_ceil(2)
    }

    /// Opens the files, or creates them if they are missing, damaged or of another model.
    ///
    /// # Errors
    /// Any I/O error.
    pub fn open(&self) -> std::io::Result<()> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        *inner = Inner::default();
        // An earlier version stored eight bits per value in this file, which mostly does not exist.
        let _missing = std::fs::remove_file(self.path.with_extension("i8"));
        let (mut coarse, one) = self.open_one(&self.path)?;
        let (mut residual, other) = self.open_one(&self.residual_path())?;
        if one != other {
            // A compaction was interrupted between its two files.
            for path in [&self.path, &self.residual_path()] {
                std::fs::remove_file(path)?;
            }
            coarse = self.open_one(&self.path)?.0;
            residual = self.open_one(&self.residual_path())?.0;
        }
        let rows_of = |file: &File, stride: usize| {
            file.metadata().map(|m| (m.len() as usize).saturating_sub(HEAD) / stride)
        };
        // Torn records, and records that only one file has, are truncated before the files are
        // mapped.
        let rows = rows_of(&coarse, self.stride())?.min(rows_of(&residual, self.dim)?);
        coarse.set_len((HEAD + rows * self.stride()) as u64)?;
        residual.set_len((HEAD + rows * self.dim) as u64)?;
        *inner = Inner {
            coarse: Some(Mapped::new(coarse)?),
            residual: Some(Mapped::new(residual)?),
            rows,
            generation: one.max(other),
            ..Inner::default()
        };
        inner.find_runs(self.stride());
        Ok(())
    }

    /// The chunks of all records in file order, including dead ones.
    pub fn ids(&self) -> Vec<i64> {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        inner.records(self.stride()).chunks_exact(self.stride()).map(chunk_id).collect()
    }

    fn residual_path(&self) -> PathBuf {
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

    /// Opens a file, or creates it if it is missing or has another head. Returns its generation as
    /// well.
    fn open_one(&self, path: &Path) -> std::io::Result<(File, u32)> {
        let mut file = private_options().read(true).append(true).create(true).open(path)?;
        let mut stored = [0u8; HEAD];
        let read = std::io::Read::read_exact(&mut file, &mut stored);
        let generation = u32::from_le_bytes([stored[12], stored[13], stored[14], stored[15]]);
        if read.is_ok() && stored == self.head(generation) {
            return Ok((file, generation));
        }
        std::fs::remove_file(path)?;
        file = private_options().read(true).append(true).create(true).open(path)?;
        file.write_all(&self.head(0))?;
        Ok((file, 0))
    }

    /// Marks chunks as removed.
    pub fn mark_dead(&self, chunks: impl IntoIterator<Item = i64>) {
        let last_shared = self.shared.as_ref().map_or(i64::MIN, |shared| shared.last_chunk);
        let (shared_chunks, own): (Vec<_>, Vec<_>) =
            chunks.into_iter().partition(|chunk| *chunk <= last_shared);
        self.inner.write().unwrap_or_else(|e| e.into_inner()).dead.extend(own);
        if let Some(shared) = self.shared.as_ref().filter(|_| !shared_chunks.is_empty()) {
            let mut hidden = shared.hidden.write().unwrap_or_else(|e| e.into_inner());
            Arc::make_mut(&mut hidden).extend(shared_chunks);
        }
    }

    /// Revives chunks that were marked as removed, and returns them. Their records still exist and
    /// are correct, since ids are never reused.
    pub fn revive(&self, chunks: impl IntoIterator<Item = i64>) -> FxHashSet<i64> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        chunks.into_iter().filter(|id| inner.dead.remove(id)).collect()
    }

    /// The numbers of all records and of dead ones.
    pub fn size(&self) -> (usize, usize) {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        (inner.rows, inner.dead.len())
    }

    /// Encodes the vector of a chunk as a record in `out`, for [`DenseIndex::append`].
    pub fn encode(&self, chunk: i64, file: u32, vector: &[f32], out: &mut Records) {
        let largest = simd::largest(vector);
        let scale = if largest > 0.0 { largest / MAX_MAGNITUDE } else { 1.0 };
        out.coarse.extend_from_slice(&chunk.to_le_bytes());
        out.coarse.extend_from_slice(&file.to_le_bytes());
        out.coarse.extend_from_slice(&scale.to_le_bytes());
        simd::quantize(vector, 1.0 / scale, &mut out.coarse, &mut out.residual);
    }

    /// Appends records.
    ///
    /// # Errors
    /// Any I/O error, such as a full disk; existing records are unaffected.
    pub fn append(&self, records: &Records) -> std::io::Result<()> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        let from = inner.rows;
        let Inner { coarse: Some(coarse), residual: Some(residual), .. } = &mut *inner else {
            return Ok(());
        };
        residual.append(HEAD + from * self.dim, &records.residual)?;
        if let Err(error) = coarse.append(HEAD + from * self.stride(), &records.coarse) {
            residual.file.set_len((HEAD + from * self.dim) as u64)?;
            return Err(error);
        }
        let ids: Vec<i64> = records.coarse.chunks_exact(self.stride()).map(chunk_id).collect();
        inner.rows += ids.len();
        inner.add_runs(from, &ids);
        Ok(())
    }

    /// Rewrites the files without dead records.
    ///
    /// # Errors
    /// Any I/O error; the old files remain, or are rebuilt at the next opening.
    pub fn compact(&self) -> std::io::Result<()> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        let generation = inner.generation.wrapping_add(1);
        let paths = [self.path.clone(), self.residual_path()];
        let fresh = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(".new");
            PathBuf::from(name)
        };
        let mut outs = Vec::new();
        for path in &paths {
            let file =
                private_options().write(true).create(true).truncate(true).open(fresh(path))?;
            let mut out = std::io::BufWriter::new(file);
            out.write_all(&self.head(generation))?;
            outs.push(out);
        }
        let mut seen = FxHashSet::default();
        let coarse = inner.records(self.stride()).chunks_exact(self.stride());
        for (record, residual) in coarse.zip(inner.residuals(self.dim).chunks_exact(self.dim)) {
            let id = chunk_id(record);
            if !inner.dead.contains(&id) && seen.insert(id) {
                outs[0].write_all(record)?;
                outs[1].write_all(residual)?;
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
        let (residual, coarse) = (opened.pop(), opened.pop());
        *inner = Inner { coarse, residual, rows: seen.len(), generation, ..Inner::default() };
        inner.find_runs(self.stride());
        Ok(())
    }
}

impl DenseIndex {
    /// Cosine similarities of chunks with `query`; `None` for a chunk without a vector.
    pub fn cosines(&self, query: &[f32], chunks: &[i64]) -> Vec<Option<f32>> {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        let records = inner.records(self.stride());
        let cosine =
            |id: &i64| inner.exact(inner.row(records, self.stride(), *id)?, self.dim, query);
        let mut cosines: Vec<Option<f32>> = chunks.iter().map(cosine).collect();
        if let Some(shared) = &self.shared {
            let others = shared.index.cosines(query, chunks);
            cosines.iter_mut().zip(others).for_each(|(own, other)| *own = own.or(other));
        }
        cosines
    }
}

impl Inner {
    /// Computes the runs of all records.
    fn find_runs(&mut self, stride: usize) {
        let ids: Vec<i64> = self.records(stride).chunks_exact(stride).map(chunk_id).collect();
        self.add_runs(0, &ids);
    }

    /// The cosine of a row, computed from both files.
    fn exact(&self, row: usize, dim: usize, query: &[f32]) -> Option<f32> {
        let stride = SKIP + dim.div_ceil(2);
        let record = self.records(stride).get(row * stride..(row + 1) * stride)?;
        let residual = self.residuals(dim).get(row * dim..(row + 1) * dim)?;
        Some(simd::dot_coarse_and_residual(&record[SKIP..], residual, query) * scale_of(record))
    }

    /// Prefetches both parts of a row.
    fn prefetch(&self, row: usize, dim: usize) {
        let stride = SKIP + dim.div_ceil(2);
        let (record, residual) = (row * stride, row * dim);
        (record..record + stride)
            .step_by(64)
            .for_each(|at| cairn_tokenizer::prefetch(self.records(stride), at));
        (residual..residual + dim)
            .step_by(64)
            .for_each(|at| cairn_tokenizer::prefetch(self.residuals(dim), at));
    }

    fn add_runs(&mut self, from: usize, ids: &[i64]) {
        for (row, id) in (from..).zip(ids) {
            match self.runs.last_mut() {
                Some(run) if run.last < *id => {
                    run.end = row + 1;
                    run.last = *id;
                }
                _ => self.runs.push(Run { start: row, end: row + 1, first: *id, last: *id }),
            }
        }
    }

    /// The row of a chunk. Ids within a run mostly ascend by one, so the search starts at the row
    /// for a run without gaps and gallops backwards.
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
        self.coarse.as_ref().and_then(|m| m.map.get(HEAD..HEAD + self.rows * stride)).unwrap_or(&[])
    }

    fn residuals(&self, dim: usize) -> &[u8] {
        self.residual.as_ref().and_then(|m| m.map.get(HEAD..HEAD + self.rows * dim)).unwrap_or(&[])
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
    use cairn_index_base::FileSet;

    use super::*;

    fn unit(values: &[f32]) -> Vec<f32> {
        let norm = values.iter().map(|x| x * x).sum::<f32>().sqrt();
        values.iter().map(|x| x / norm).collect()
    }

    #[test]
    fn nearest_rows_survive_reopening_removal_and_compaction() {
        let dir = tempfile::tempdir().unwrap();
        let dense = DenseIndex::new(dir.path(), 4, [7; 32]);
        dense.open().unwrap();
        assert!(dense.ids().is_empty());
        let mut records = Records::default();
        for (id, v) in
            [(1, [1.0, 0.0, 0.0, 0.1]), (2, [0.9, 0.5, 0.0, 0.0]), (3, [0.0, 1.0, 0.2, 0.0])]
        {
            dense.encode(id, 10 + id as u32, &unit(&v), &mut records);
        }
        dense.append(&records).unwrap();
        let query = unit(&[1.0, 0.2, 0.0, 0.0]);
        let ids = |d: &DenseIndex, files: Option<&FileSet>| {
            d.nearest(&query, 2, files).iter().map(|(id, _)| *id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&dense, None), [1, 2]);
        let exact = dense.cosines(&query, &[2, 99]);
        let expected: f32 =
            unit(&[0.9, 0.5, 0.0, 0.0]).iter().zip(&query).map(|(a, b)| a * b).sum();
        assert!((exact[0].unwrap() - expected).abs() < 5e-4 && exact[1].is_none());
        assert_eq!(ids(&dense, Some(&[13].into_iter().collect())), [3]);
        dense.mark_dead([1]);
        assert_eq!(ids(&dense, None), [2, 3]);
        dense.compact().unwrap();
        assert_eq!(dense.size(), (2, 0));
        drop(dense);
        let reopened = DenseIndex::new(dir.path(), 4, [7; 32]);
        reopened.open().unwrap();
        assert_eq!(reopened.ids(), [2, 3]);
        assert_eq!(ids(&reopened, None), [2, 3]);
        let other = DenseIndex::new(dir.path(), 4, [8; 32]);
        other.open().unwrap();
        assert!(other.ids().is_empty(), "vectors of two models are never mixed");
    }

    #[test]
    fn every_row_is_found_by_its_chunk_id() {
        let dir = tempfile::tempdir().unwrap();
        let dense = DenseIndex::new(dir.path(), 4, [7; 32]);
        dense.open().unwrap();
        // Ids without gaps, with small gaps, with a gap of a million; then a second run.
        let ids: Vec<i64> = (5..40)
            .chain((50..90).step_by(3))
            .chain([1_000_000, 1_000_001, 41, 42, 44, 2_000_000])
            .collect();
        let mut records = Records::default();
        ids.iter().for_each(|id| dense.encode(*id, 1, &[*id as f32, 1.0, 0.0, 0.0], &mut records));
        dense.append(&records).unwrap();
        let inner = dense.inner.read().unwrap();
        let row_of = |id| inner.row(inner.records(dense.stride()), dense.stride(), id);
        for (row, id) in ids.iter().enumerate() {
            assert_eq!(row_of(*id), Some(row), "{id}");
        }
        for gone in [0, 4, 40, 43, 51, 91, 500_000, 1_500_000, 2_000_001] {
            assert_eq!(row_of(gone), None, "{gone}");
        }
    }

    #[test]
    fn torn_record_is_truncated() {
        let dir = tempfile::tempdir().unwrap();
        let dense = DenseIndex::new(dir.path(), 4, [7; 32]);
        dense.open().unwrap();
        let mut records = Records::default();
        dense.encode(5, 1, &[0.5; 4], &mut records);
        dense.append(&records).unwrap();
        drop(dense);
        let mut file = OpenOptions::new().append(true).open(dir.path().join("vectors.i4")).unwrap();
        file.write_all(b"torn").unwrap();
        // Files of an earlier version are deleted.
        std::fs::write(dir.path().join("vectors.i8"), b"CAIRNVE2").unwrap();
        let reopened = DenseIndex::new(dir.path(), 4, [7; 32]);
        reopened.open().unwrap();
        assert_eq!(reopened.ids(), [5]);
        assert!(!dir.path().join("vectors.i8").exists());
    }
}
