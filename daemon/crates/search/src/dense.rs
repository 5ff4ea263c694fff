//! The int8 copy of an index's vectors: an append-only, memory-mapped file that is scanned whole.
//!
//! A record is `chunk id i64 | file id u32 | scale f32 | dim × i8`, little-endian; value = int8 × scale. The file is a
//! cache of `chunk_vec`: a record whose chunk is gone is dead, a live chunk without a record is appended again at
//! the next opening. Ids of chunks are never used twice, so a record is never wrong.
#![expect(
    unsafe_code,
    reason = "mapping a file; it is only appended to, and replaced by renaming, never cut while mapped"
)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::RwLock;

use memmap2::Mmap;
use rustc_hash::FxHashSet;

use crate::simd;

const MAGIC: &[u8; 8] = b"CAIRNVE1";
/// Bytes before the records: magic, dimensions (u32), zeros, and the model's hash.
const HEAD: usize = 64;
/// Bytes of a record before its values.
const SKIP: usize = 16;

/// Rows from which a scan uses two threads.
const SPLIT_ROWS: usize = 30_000;

/// A set of file ids.
pub type FileSet = FxHashSet<u32>;

/// The matrix of one index.
pub struct Dense {
    path: PathBuf,
    dim: usize,
    model: [u8; 32],
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    map: Option<Mmap>,
    file: Option<File>,
    rows: usize,
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
        Self { path: folder.join("vectors.i8"), dim, model, inner: RwLock::default() }
    }

    fn stride(&self) -> usize {
        SKIP + self.dim
    }

    /// Opens the file, or makes it when it is missing, damaged or of another model. Returns the chunk ids it holds, in
    /// the order of the file.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(&self) -> std::io::Result<Vec<i64>> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        *inner = Inner::default();
        let mut file = private().read(true).append(true).create(true).open(&self.path)?;
        let mut head = [0u8; HEAD];
        head[..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&(self.dim as u32).to_le_bytes());
        head[32..].copy_from_slice(&self.model);
        let mut have = [0u8; HEAD];
        let same = std::io::Read::read_exact(&mut file, &mut have).is_ok() && have == head;
        if !same {
            std::fs::remove_file(&self.path)?;
            file = private().read(true).append(true).create(true).open(&self.path)?;
            file.write_all(&head)?;
        }
        // A torn last record is cut off; nothing is mapped yet.
        let rows = (file.metadata()?.len() as usize).saturating_sub(HEAD) / self.stride();
        file.set_len((HEAD + rows * self.stride()) as u64)?;
        inner.rows = rows;
        // SAFETY: see the module's reason.
        inner.map = Some(unsafe { Mmap::map(&file)? });
        inner.file = Some(file);
        let ids: Vec<i64> = inner.records(self.stride()).chunks_exact(self.stride()).map(chunk_id).collect();
        inner.add_runs(0, &ids);
        Ok(ids)
    }

    /// Marks chunks as gone.
    pub fn forget(&self, chunks: impl IntoIterator<Item = i64>) {
        self.inner.write().unwrap_or_else(|e| e.into_inner()).dead.extend(chunks);
    }

    /// Records and how many of them are dead.
    pub fn size(&self) -> (usize, usize) {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        (inner.rows, inner.dead.len())
    }

    /// A record for a chunk's vector; append some with [`Dense::append`].
    pub fn record(&self, chunk: i64, file: u32, vector: &[f32], out: &mut Vec<u8>) {
        let largest = vector.iter().fold(0f32, |m, x| m.max(x.abs()));
        let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        out.extend_from_slice(&chunk.to_le_bytes());
        out.extend_from_slice(&file.to_le_bytes());
        out.extend_from_slice(&scale.to_le_bytes());
        out.extend(vector.iter().map(|x| (x / scale).round() as i8 as u8));
    }

    /// Appends whole records.
    ///
    /// # Errors
    /// What the system says (a full disk); what was there stays.
    pub fn append(&self, records: &[u8]) -> std::io::Result<()> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        let good = (HEAD + inner.rows * self.stride()) as u64;
        let Some(file) = &mut inner.file else { return Ok(()) };
        if let Err(error) = file.write_all(records) {
            file.set_len(good)?;
            return Err(error);
        }
        // SAFETY: see the module's reason.
        let map = unsafe { Mmap::map(&*file)? };
        inner.map = Some(map);
        let (from, ids) = (inner.rows, records.chunks_exact(self.stride()).map(chunk_id).collect::<Vec<_>>());
        inner.rows += ids.len();
        inner.add_runs(from, &ids);
        Ok(())
    }

    /// Writes the file anew without its dead records.
    ///
    /// # Errors
    /// What the system says; the old file stays.
    pub fn compact(&self) -> std::io::Result<()> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        let Some(map) = &inner.map else { return Ok(()) };
        let fresh = self.path.with_extension("new");
        let mut out =
            std::io::BufWriter::new(private().write(true).create(true).truncate(true).open(&fresh)?);
        out.write_all(&map[..HEAD])?;
        let mut rows = 0;
        let mut seen = FxHashSet::default();
        for record in inner.records(self.stride()).chunks_exact(self.stride()) {
            let id = chunk_id(record);
            if !inner.dead.contains(&id) && seen.insert(id) {
                out.write_all(record)?;
                rows += 1;
            }
        }
        out.into_inner().map_err(|e| e.into_error())?.sync_all()?;
        std::fs::rename(&fresh, &self.path)?;
        let file = OpenOptions::new().read(true).append(true).open(&self.path)?;
        // SAFETY: see the module's reason.
        let map = unsafe { Mmap::map(&file)? };
        *inner = Inner { map: Some(map), file: Some(file), rows, ..Inner::default() };
        let ids: Vec<i64> = inner.records(self.stride()).chunks_exact(self.stride()).map(chunk_id).collect();
        inner.add_runs(0, &ids);
        Ok(())
    }

    /// The `k` chunks nearest to `query` by the int8 values, best first, with their cosine: those in `files` only, when
    /// given.
    pub fn nearest(&self, query: &[f32], k: usize, files: Option<&FileSet>) -> Vec<(i64, f32)> {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        let stride = self.stride();
        let largest = query.iter().fold(0f32, |m, x| m.max(x.abs()));
        if largest == 0.0 || k == 0 || query.len() != self.dim {
            return Vec::new();
        }
        let unit = largest / 2047.0;
        let packed: Vec<i16> = query.iter().map(|x| (x / unit).round() as i16).collect();
        let records = inner.records(stride);
        let scan = |records: &[u8]| inner.scan(records, stride, &packed, unit, k, files);
        let half = inner.rows / 2 * stride;
        let mut best = if inner.rows < SPLIT_ROWS {
            scan(records)
        } else {
            std::thread::scope(|scope| {
                let other = scope.spawn(|| scan(&records[half..]));
                let mut best = scan(&records[..half]);
                best.extend(other.join().unwrap_or_default());
                best
            })
        };
        best.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        best.dedup_by_key(|(_, id)| *id);
        best.truncate(k);
        best.into_iter().map(|(score, id)| (id, score)).collect()
    }
}

impl Dense {
    /// Cosines of chunks with `query` by the int8 values; nothing for a chunk without a vector.
    pub fn cosines(&self, query: &[f32], chunks: &[i64]) -> Vec<Option<f32>> {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        let records = inner.records(self.stride());
        let cosine = |id: &i64| {
            let record = records.get(inner.row(records, self.stride(), *id)? * self.stride()..)?;
            let scale = f32::from_le_bytes([record[12], record[13], record[14], record[15]]);
            let values = record.get(SKIP..self.stride())?;
            Some(values.iter().zip(query).map(|(v, q)| f32::from(*v as i8) * q).sum::<f32>() * scale)
        };
        chunks.iter().map(cosine).collect()
    }
}

impl Inner {
    fn add_runs(&mut self, from: usize, ids: &[i64]) {
        for (row, id) in (from..).zip(ids) {
            match self.runs.last_mut() {
                Some(run) if run.last < *id => (run.end, run.last) = (row + 1, *id),
                _ => self.runs.push(Run { start: row, end: row + 1, first: *id, last: *id }),
            }
        }
    }

    /// The row of a chunk.
    fn row(&self, records: &[u8], stride: usize, id: i64) -> Option<usize> {
        let id_of = |row: usize| records.get(row * stride..).map_or(i64::MAX, chunk_id);
        self.runs.iter().filter(|r| (r.first..=r.last).contains(&id)).find_map(|run| {
            let (mut low, mut high) = (run.start, run.end);
            while low < high {
                let middle = (low + high) / 2;
                if id_of(middle) < id { low = middle + 1 } else { high = middle }
            }
            (low < run.end && id_of(low) == id).then_some(low)
        })
    }

    /// The best `k` of `records` in no order, and some more.
    fn scan(
        &self,
        records: &[u8],
        stride: usize,
        query: &[i16],
        unit: f32,
        k: usize,
        files: Option<&FileSet>,
    ) -> Vec<(f32, i64)> {
        let mut best: Vec<(f32, i64)> = Vec::with_capacity(4 * k);
        let mut floor = f32::MIN_POSITIVE;
        simd::dot_rows(records, stride, SKIP, query, |row, dot| {
            let record = &records[row * stride..row * stride + SKIP];
            let score =
                dot as f32 * f32::from_le_bytes([record[12], record[13], record[14], record[15]]) * unit;
            if score <= floor || files.is_some_and(|f| !f.contains(&file_id(record))) {
                return;
            }
            let id = chunk_id(record);
            if self.dead.contains(&id) {
                return;
            }
            best.push((score, id));
            if best.len() == 4 * k {
                best.select_nth_unstable_by(k - 1, |a, b| b.0.total_cmp(&a.0));
                best.truncate(k);
                floor = best[k - 1].0;
            }
        });
        best
    }

    fn records(&self, stride: usize) -> &[u8] {
        self.map.as_ref().and_then(|m| m.get(HEAD..HEAD + self.rows * stride)).unwrap_or(&[])
    }
}

/// How files are made: for their owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn chunk_id(record: &[u8]) -> i64 {
    record.first_chunk().map_or(0, |b| i64::from_le_bytes(*b))
}

fn file_id(record: &[u8]) -> u32 {
    u32::from_le_bytes([record[8], record[9], record[10], record[11]])
}

/// Dot product of a stored vector (Float32, little-endian) and a query; 0 where their lengths differ.
pub fn dot_blob(blob: &[u8], query: &[f32]) -> f32 {
    let (values, _) = blob.as_chunks::<4>();
    if values.len() != query.len() {
        return 0.0;
    }
    let mut lanes = [0f32; 8];
    for (v, q) in values.chunks(8).zip(query.chunks(8)) {
        for ((lane, v), q) in lanes.iter_mut().zip(v).zip(q) {
            *lane += f32::from_le_bytes(*v) * q;
        }
    }
    lanes.iter().sum()
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
        assert!(dense.open().unwrap().is_empty());
        let mut records = Vec::new();
        for (id, v) in [(1, [1.0, 0.0, 0.0, 0.1]), (2, [0.9, 0.5, 0.0, 0.0]), (3, [0.0, 1.0, 0.2, 0.0])] {
            dense.record(id, 10 + id as u32, &unit(&v), &mut records);
        }
        dense.append(&records).unwrap();
        let query = unit(&[1.0, 0.2, 0.0, 0.0]);
        let ids = |d: &Dense, files: Option<&FileSet>| {
            d.nearest(&query, 2, files).iter().map(|(id, _)| *id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&dense, None), [1, 2]);
        assert_eq!(ids(&dense, Some(&[13].into_iter().collect())), [3]);
        dense.forget([1]);
        assert_eq!(ids(&dense, None), [2, 3]);
        dense.compact().unwrap();
        assert_eq!(dense.size(), (2, 0));
        drop(dense);
        let again = Dense::new(dir.path(), 4, [7; 32]);
        assert_eq!(again.open().unwrap(), [2, 3]);
        assert_eq!(ids(&again, None), [2, 3]);
        let other = Dense::new(dir.path(), 4, [8; 32]);
        assert!(other.open().unwrap().is_empty(), "vectors of two models never mix");
    }

    #[test]
    fn a_torn_record_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let dense = Dense::new(dir.path(), 4, [7; 32]);
        dense.open().unwrap();
        let mut records = Vec::new();
        dense.record(5, 1, &[0.5; 4], &mut records);
        dense.append(&records).unwrap();
        drop(dense);
        let mut file = OpenOptions::new().append(true).open(dir.path().join("vectors.i8")).unwrap();
        file.write_all(b"torn").unwrap();
        let again = Dense::new(dir.path(), 4, [7; 32]);
        assert_eq!(again.open().unwrap(), [5]);
    }
}
