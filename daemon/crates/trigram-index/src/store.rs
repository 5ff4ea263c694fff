//! Persistence of trigram segments: which segments exist, and which files still need one.
//!
//! `file.grams` is 1 from the transaction that lists a segment with the file's trigrams until the
//! file is known to have changed. Files of a lost or damaged segment are indexed again.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cairn_index_base::{FileEntry, FileTable, lock, write_file, write_without_clock};
use cairn_protocol::error::Failure;
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, params};
use cairn_workspace::{Facts, Opener, Root};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::extract::Extractor;
use super::merge::{Builder, MAX_DOCS, merge};
use super::segment::{Doc, Segment};
use super::set::{TrigramIndex, file_of};

/// Number of files without trigrams from which a segment is built; a grep reads fewer in a few
/// milliseconds.
const MIN_FILES: usize = 128;
/// Bytes of files without trigrams from which a segment is built.
const MIN_BYTES: u64 = 8 * 1024 * 1024;
/// Number of files that are read in parallel before they are added.
const GROUP: usize = 256;
/// Pairs of a trigram and a file from which a segment is full: 12 MB, of which building needs two
/// copies.
const MAX_POSTINGS: usize = 3 << 20;
/// Bytes of the read buffer.
const BUFFER: usize = 256 * 1024;
/// Number of leading bytes that are searched for a NUL. A grep stops at a NUL in the first 64 KiB,
/// so text after it can be ignored.
const SNIFF: usize = 8 * 1024;
/// Age below which a later change of a file may have the same time: the resolution of the coarsest
/// common file system.
const RECENT: Duration = Duration::from_secs(2);

impl TrigramIndex {
    /// Opens the segments that the database lists, and those that the index shares with another
    /// one. Files whose trigrams are lost are marked as uncovered.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub fn open(&self, conn: &mut Connection, shared: &[Arc<Segment>]) -> Result<(), Failure> {
        let rows = rows(conn)?;
        let (mut segments, mut lost) = (Vec::new(), Vec::new());
        for id in &rows {
            match Segment::mapped(&self.file(*id), *id) {
                Ok(Some(segment)) => segments.push(segment),
                _ => lost.push(*id),
            }
        }
        remove_orphans(self, &rows, &lost);
        let mut marked_files: FxHashSet<u32> = covered_files(conn)?;
        let covered = marked_files.clone();
        // The newest segment covers a file; if an older one also contains it, the file has changed
        // since.
        for segment in segments.iter().rev() {
            for doc in 0..segment.docs() {
                if !marked_files.remove(&segment.file(doc)) {
                    segment.mark_dead(doc);
                }
            }
        }
        for segment in shared {
            (0..segment.docs()).for_each(|doc| {
                marked_files.remove(&segment.file(doc));
            });
        }
        if !lost.is_empty() || !marked_files.is_empty() {
            let root = self.context.root.display();
            tracing::warn!(%root, segments = lost.len(), files = marked_files.len(), "trigrams are missing, rebuilding them");
            write_without_clock(conn, |tx| {
                let mut unmark = tx.prepare_cached("UPDATE file SET grams = 0 WHERE id = ?")?;
                marked_files.iter().try_for_each(|file| unmark.execute([file]).map(drop))?;
                let mut drop_row = tx.prepare_cached("DELETE FROM gram_segment WHERE id = ?")?;
                lost.iter().try_for_each(|id| drop_row.execute([id]).map(drop))?;
                Ok(())
            })?;
        }
        self.set(segments);
        self.set_shared(shared, covered);
        Ok(())
    }

    /// Selects the files of the shared segments again after rows of files have changed.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn refresh_shared(
        &self,
        conn: &Connection,
        shared: &[Arc<Segment>],
    ) -> Result<(), StoreError> {
        self.set_shared(shared, covered_files(conn)?);
        Ok(())
    }

    /// Opens the segments in a folder whose index is not written any more, oldest first.
    ///
    /// # Errors
    /// When the database cannot be read or a segment is damaged.
    pub fn open_frozen(
        conn: &Connection,
        folder: &std::path::Path,
    ) -> Result<Vec<Arc<Segment>>, StoreError> {
        let open = |id: i64| {
            let path = file_of(folder, id);
            let segment = Segment::mapped(&path, id).ok().flatten();
            segment
                .map(Arc::new)
                .ok_or_else(|| StoreError::Corrupt(format!("{} cannot be read", path.display())))
        };
        rows(conn)?.into_iter().map(open).collect()
    }

    /// Marks the files at or below these paths as changed.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn invalidate_paths(
        &self,
        conn: &Connection,
        paths: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let mut at = conn.prepare_cached(
            "SELECT id FROM file WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')",
        )?;
        for path in paths {
            let ids: Vec<u32> = at.query_map([path], |r| r.get(0))?.collect::<Result<_, _>>()?;
            self.mark_changed(ids);
        }
        Ok(())
    }

    /// Builds a segment from files of `table` without trigrams. Returns false when too few of them
    /// remain.
    ///
    /// # Errors
    /// When a file of the index cannot be read or written.
    pub fn build_segment(
        &self,
        conn: &mut Connection,
        table: &FileTable,
        root: &Root,
        pool: &rayon::ThreadPool,
    ) -> Result<bool, Failure> {
        let file_ids = self.files_without_segment(table);
        if file_ids.is_empty()
            || (file_ids.len() < MIN_FILES && bytes_of(conn, &file_ids)? < MIN_BYTES)
        {
            return Ok(false);
        }
        let opener = root.opener()?;
        let idle: Mutex<Vec<FileReader>> = Mutex::default();
        let mut builder = Builder::default();
        let mut remaining = file_ids.len();
        for group in file_ids.chunks(GROUP) {
            if self.context.is_stopping() {
                return Ok(false);
            }
            let read = |id: &u32| {
                let mut reading = lock(&idle).pop().unwrap_or_else(FileReader::new);
                let documents = reading.file(&opener, table.get(*id)?);
                lock(&idle).push(reading);
                documents
            };
            let documents: Vec<_> = pool.install(|| group.par_iter().map(read).collect());
            documents.iter().flatten().for_each(|(doc, grams)| builder.add(*doc, grams));
            remaining -= group.len();
            // Remaining files that are too few for another segment go into this one.
            if (builder.len() >= MAX_POSTINGS && remaining >= MIN_FILES)
                || builder.docs().len() + GROUP > MAX_DOCS
            {
                break;
            }
        }
        drop(idle);
        write_segment(self, conn, builder)?;
        // Files that could not be read are not retried at once.
        Ok(remaining > 0)
    }

    /// Merges segments according to the merge policy.
    ///
    /// # Errors
    /// When a segment cannot be written.
    pub fn merge_segments(&self, conn: &mut Connection) -> Result<(), Failure> {
        while let Some(group) = self.merge_candidates() {
            if self.context.is_stopping() {
                return Ok(());
            }
            // Only this thread marks documents as dead, so the merge omits exactly the documents
            // that are dead now.
            let refs: Vec<&Segment> = group.iter().map(|s| &**s).collect();
            let Ok(merged) = merge(&refs) else { return drop_segments(self, conn, &group) };
            let fresh = write_without_clock(conn, |tx| {
                let fresh = merged.as_deref().map(|bytes| to_file(tx, self, bytes)).transpose()?;
                let mut drop_row = tx.prepare_cached("DELETE FROM gram_segment WHERE id = ?")?;
                group.iter().try_for_each(|s| drop_row.execute([s.id]).map(drop))?;
                Ok(fresh)
            })?;
            self.replace(&group, fresh);
        }
        Ok(())
    }

    /// Compares the segments with the files and returns one line per kind of difference.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn verify(&self, conn: &Connection) -> Result<Vec<String>, StoreError> {
        let mut files = covered_files(conn)?;
        let (mut orphans, mut damaged) = (0u64, 0u64);
        for segment in self.snapshot().iter() {
            damaged += u64::from(!segment.is_complete());
            orphans +=
                segment.alive().filter(|doc| !files.remove(&segment.file(*doc))).count() as u64;
        }
        let mut problems = Vec::new();
        if orphans > 0 {
            problems.push(format!(
                "{orphans} files of the trigram index are unknown, changed or duplicates"
            ));
        }
        if !files.is_empty() {
            problems.push(format!("{} files are not in the trigram index", files.len()));
        }
        if damaged > 0 {
            problems.push(format!("{damaged} trigram segments are damaged"));
        }
        Ok(problems)
    }
}

/// Ids of the listed segments, oldest first.
fn rows(conn: &Connection) -> Result<Vec<i64>, StoreError> {
    let mut all = conn.prepare_cached("SELECT id FROM gram_segment ORDER BY id")?;
    Ok(all.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?)
}

/// Ids of the files that are covered according to the database.
fn covered_files(conn: &Connection) -> Result<FxHashSet<u32>, StoreError> {
    let mut all = conn.prepare_cached("SELECT id FROM file WHERE grams = 1")?;
    Ok(all.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?)
}

/// Deletes segment files that the database does not list, and damaged ones.
fn remove_orphans(grams: &TrigramIndex, known: &[i64], lost: &[i64]) {
    let readable = known.iter().filter(|id| !lost.contains(id));
    let known: FxHashSet<_> = readable.map(|id| grams.file(*id)).collect();
    for entry in std::fs::read_dir(&grams.context.folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "tri") && !known.contains(&path) {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn bytes_of(conn: &Connection, files: &[u32]) -> Result<u64, StoreError> {
    let mut get = conn.prepare_cached("SELECT size_bytes FROM file WHERE id = ?")?;
    let mut sum = 0;
    for file in files {
        let mut rows = get.query([file])?;
        sum += rows.next()?.map_or(Ok(0), |r| r.get::<_, u64>(0))?;
    }
    Ok(sum)
}

fn write_segment(
    grams: &TrigramIndex,
    conn: &mut Connection,
    builder: Builder,
) -> Result<(), Failure> {
    if builder.docs().is_empty() {
        return Ok(());
    }
    let (docs, bytes) = builder.finish();
    let fresh = write_without_clock(conn, |tx| {
        let fresh = to_file(tx, grams, &bytes)?;
        let mut mark = tx.prepare_cached("UPDATE file SET grams = 1 WHERE id = ?")?;
        docs.iter().try_for_each(|doc| mark.execute([doc.file]).map(drop))?;
        Ok(fresh)
    })?;
    grams.replace(&[], Some(fresh));
    Ok(())
}

/// Writes and syncs a segment's file before the transaction that lists it is committed.
fn to_file(tx: &Connection, grams: &TrigramIndex, bytes: &[u8]) -> Result<Segment, StoreError> {
    tx.prepare_cached("INSERT INTO gram_segment(bytes) VALUES(?)")?
        .execute(params![bytes.len() as i64])?;
    let id = tx.last_insert_rowid();
    let path = grams.file(id);
    write_file(&path, &[bytes])?;
    let segment = Segment::mapped(&path, id).map_err(|source| StoreError::Io { path, source })?;
    segment.ok_or_else(|| StoreError::Corrupt("a new trigram segment cannot be read".into()))
}

/// Drops segments that were damaged since they were opened; a later pass indexes their files again.
fn drop_segments(
    grams: &TrigramIndex,
    conn: &mut Connection,
    group: &[Arc<Segment>],
) -> Result<(), Failure> {
    tracing::warn!(root = %grams.context.root.display(), "trigram segments are damaged, rebuilding them");
    write_without_clock(conn, |tx| {
        let mut unmark = tx.prepare_cached("UPDATE file SET grams = 0 WHERE id = ?")?;
        let mut drop_row = tx.prepare_cached("DELETE FROM gram_segment WHERE id = ?")?;
        for segment in group {
            segment.alive().try_for_each(|doc| unmark.execute([segment.file(doc)]).map(drop))?;
            drop_row.execute([segment.id])?;
        }
        Ok(())
    })?;
    grams.replace(group, None);
    Ok(())
}

/// The reusable buffers of a thread that reads files.
struct FileReader {
    extractor: Extractor,
    buffer: Vec<u8>,
}

impl FileReader {
    fn new() -> Self {
        Self { extractor: Extractor::new(), buffer: vec![0; BUFFER] }
    }

    /// Reads a file and its trigrams; `None` if it does not exist or has changed during the read.
    fn file(&mut self, opener: &Opener, entry: &FileEntry) -> Option<(Doc, Vec<u32>)> {
        let no_facts = Facts { size: 0, changed_ns: 0, inode: 0 };
        let any_pattern =
            || Some((Doc { file: entry.id, flags: Doc::ANY, facts: no_facts }, Vec::new()));
        let file = match opener.open_file(&entry.path) {
            Ok((file, _)) => file,
            Err(e) if e.is_unreadable() => return any_pattern(),
            Err(_) => return None,
        };
        let before = Facts::of(&file).ok()?;
        let Ok((size, is_any)) = self.read(&file) else { return any_pattern() };
        let grams = self.extractor.take();
        let facts = Facts::of(&file).ok()?;
        if facts != before || size.is_some_and(|size| size != facts.size) {
            return None;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64);
        let is_recent = now.saturating_sub(facts.changed_ns) < RECENT.as_nanos() as i64;
        let flags = if is_any { Doc::ANY } else { 0 } | if is_recent { Doc::RECENT } else { 0 };
        Some((Doc { file: entry.id, flags, facts }, if is_any { Vec::new() } else { grams }))
    }

    /// Reads a file. Returns its size if it was read to the end, and true if any pattern may match
    /// in it.
    fn read(&mut self, mut file: &std::fs::File) -> std::io::Result<(Option<u64>, bool)> {
        let mut size = 0;
        loop {
            let mut count = 0;
            while count < self.buffer.len() {
                match file.read(&mut self.buffer[count..]) {
                    Ok(0) => break,
                    Ok(more) => count += more,
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(e) => {
                        self.extractor.take();
                        return Err(e);
                    }
                }
            }
            let text = &self.buffer[..count];
            if size == 0 {
                // The searcher transcodes UTF-16, whose bytes do not match the trigrams of a
                // pattern.
                if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
                    return Ok((None, true));
                }
                if let Some(end) = memchr::memchr(0, &text[..count.min(SNIFF)]) {
                    self.extractor.add(&text[..end]);
                    return Ok((None, false));
                }
            }
            self.extractor.add(text);
            size += count as u64;
            if self.extractor.is_over_limit() {
                return Ok((None, true));
            }
            if count < self.buffer.len() {
                return Ok((Some(size), false));
            }
        }
    }
}

/// Opens a segment from bytes, for tests.
#[cfg(test)]
pub(crate) fn open_bytes(bytes: &[u8], folder: &std::path::Path) -> Arc<Segment> {
    let path = folder.join("test.tri");
    std::fs::write(&path, bytes).unwrap();
    Arc::new(Segment::mapped(&path, 1).unwrap().unwrap())
}
