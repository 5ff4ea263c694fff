//! Trigram segments and the database: which files still need one, which segments there are, and what is made again.
//!
//! `file.grams` is 1 from the transaction that names a segment with the file's trigrams until the file is known to have
//! changed. A segment that is lost or damaged leaves its files without a document; they are made again.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cairn_protocol::error::Failure;
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, params};
use cairn_workspace::{Facts, Opener};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::extract::Extractor;
use super::merge::{Builder, MAX_DOCS, merge};
use super::segment::{Doc, Segment};
use crate::db::write_file;
use crate::ingest::quietly;
use crate::live::{FileEntry, Live};
use crate::sync::lock;

/// Files and bytes without trigrams from which a segment is worth it; a grep reads fewer in a few milliseconds.
const MIN_FILES: usize = 128;
const MIN_BYTES: u64 = 8 * 1024 * 1024;
/// Files read together, and pairs of a trigram and a file from which a segment is full: 12 MB, held twice.
const GROUP: usize = 256;
const MAX_POSTINGS: usize = 3 << 20;
/// Bytes read at once.
const BUFFER: usize = 256 * 1024;
/// Bytes looked at for a NUL. A search gives up at one in its first 64 KiB, so that what is behind it can be left out.
const SNIFF: usize = 8 * 1024;
/// Age below which a file's time does not tell a later change: the coarsest clock of a file system that is common.
const YOUNG: Duration = Duration::from_secs(2);

/// Opens the segments that the database names. Files whose trigrams are lost are marked.
///
/// # Errors
/// When the database cannot be read or written.
pub fn open(live: &Live, conn: &mut Connection) -> Result<(), Failure> {
    let rows = rows(conn)?;
    let (mut segments, mut lost) = (Vec::new(), Vec::new());
    for id in &rows {
        match Segment::mapped(&live.grams.file(*id), *id) {
            Ok(Some(segment)) => segments.push(segment),
            _ => lost.push(*id),
        }
    }
    remove_strangers(live, &rows, &lost);
    let mut wanted: FxHashSet<u32> = marked(conn)?;
    // The newest speaks for a file; where there is an older one, the file changed since.
    for segment in segments.iter().rev() {
        for doc in 0..segment.docs() {
            if !wanted.remove(&segment.file(doc)) {
                segment.kill(doc);
            }
        }
    }
    if !lost.is_empty() || !wanted.is_empty() {
        let root = live.root.path.display();
        tracing::warn!(%root, segments = lost.len(), files = wanted.len(), "trigrams are lost, making them again");
        quietly(conn, |tx| {
            let mut unmark = tx.prepare_cached("UPDATE file SET grams = 0 WHERE id = ?")?;
            wanted.iter().try_for_each(|file| unmark.execute([file]).map(drop))?;
            let mut drop_row = tx.prepare_cached("DELETE FROM gram_segment WHERE id = ?")?;
            lost.iter().try_for_each(|id| drop_row.execute([id]).map(drop))?;
            Ok(())
        })?;
    }
    live.grams.set(segments);
    Ok(())
}

/// Ids of the segments, oldest first.
fn rows(conn: &Connection) -> Result<Vec<i64>, StoreError> {
    let mut all = conn.prepare_cached("SELECT id FROM gram_segment ORDER BY id")?;
    Ok(all.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?)
}

/// Files for which trigrams speak, by the database.
fn marked(conn: &Connection) -> Result<FxHashSet<u32>, StoreError> {
    let mut all = conn.prepare_cached("SELECT id FROM file WHERE grams = 1")?;
    Ok(all.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?)
}

/// Deletes files of segments that are none of the database's, and damaged ones.
fn remove_strangers(live: &Live, known: &[i64], lost: &[i64]) {
    let whole = known.iter().filter(|id| !lost.contains(id));
    let known: FxHashSet<_> = whole.map(|id| live.grams.file(*id)).collect();
    for entry in std::fs::read_dir(&live.folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "tri") && !known.contains(&path) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Lets no trigrams speak for what lies at these paths, or below them.
///
/// # Errors
/// When the database cannot be read.
pub fn kill_paths(live: &Live, conn: &Connection, paths: &BTreeSet<String>) -> Result<(), StoreError> {
    let mut at = conn
        .prepare_cached("SELECT id FROM file WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')")?;
    for path in paths {
        let ids: Vec<u32> = at.query_map([path], |r| r.get(0))?.collect::<Result<_, _>>()?;
        live.grams.kill(ids);
    }
    Ok(())
}

/// Takes the trigrams of some files that have none. False when there are too few of them to be worth it.
///
/// # Errors
/// When a file of the index cannot be read or written.
pub fn batch(live: &Live, conn: &mut Connection) -> Result<bool, Failure> {
    let table = live.file_table()?;
    let due = live.grams.uncovered(&table);
    if due.is_empty() || (due.len() < MIN_FILES && bytes_of(conn, &due)? < MIN_BYTES) {
        return Ok(false);
    }
    let opener = live.root.opener()?;
    let spare: Mutex<Vec<Reading>> = Mutex::default();
    let mut builder = Builder::default();
    let mut left = due.len();
    for group in due.chunks(GROUP) {
        if live.stopping() {
            return Ok(false);
        }
        let read = |id: &u32| {
            let mut reading = lock(&spare).pop().unwrap_or_else(Reading::new);
            let made = reading.file(&opener, table.get(*id)?);
            lock(&spare).push(reading);
            made
        };
        let made: Vec<_> = live.opts.pool.install(|| group.par_iter().map(read).collect());
        made.iter().flatten().for_each(|(doc, grams)| builder.add(*doc, grams));
        left -= group.len();
        // Too few for a segment of their own go into this one.
        if (builder.len() >= MAX_POSTINGS && left >= MIN_FILES) || builder.docs().len() + GROUP > MAX_DOCS {
            break;
        }
    }
    drop(spare);
    write_segment(live, conn, builder)?;
    // What could not be read is not tried again at once.
    Ok(left > 0)
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

fn write_segment(live: &Live, conn: &mut Connection, builder: Builder) -> Result<(), Failure> {
    if builder.docs().is_empty() {
        return Ok(());
    }
    let (docs, bytes) = builder.finish();
    let fresh = quietly(conn, |tx| {
        let fresh = to_file(tx, live, &bytes)?;
        let mut mark = tx.prepare_cached("UPDATE file SET grams = 1 WHERE id = ?")?;
        docs.iter().try_for_each(|doc| mark.execute([doc.file]).map(drop))?;
        Ok(fresh)
    })?;
    live.grams.replace(&[], Some(fresh));
    Ok(())
}

/// Writes a segment's file, to the disk before the transaction that names it.
fn to_file(tx: &Connection, live: &Live, bytes: &[u8]) -> Result<Segment, StoreError> {
    tx.prepare_cached("INSERT INTO gram_segment(bytes) VALUES(?)")?.execute(params![bytes.len() as i64])?;
    let id = tx.last_insert_rowid();
    let path = live.grams.file(id);
    write_file(&path, &[bytes])?;
    let segment = Segment::mapped(&path, id).map_err(|source| StoreError::Io { path, source })?;
    segment.ok_or_else(|| StoreError::Corrupt("a fresh trigram segment cannot be read".into()))
}

/// Merges segments until they are few.
///
/// # Errors
/// When a segment cannot be written, or one is damaged.
pub fn tidy(live: &Live, conn: &mut Connection) -> Result<(), Failure> {
    while let Some(group) = live.grams.untidy() {
        if live.stopping() {
            return Ok(());
        }
        // This thread alone kills documents: what is dead now is what the merge leaves out.
        let refs: Vec<&Segment> = group.iter().map(|s| &**s).collect();
        let Ok(merged) = merge(&refs) else { return drop_all(live, conn, &group) };
        let fresh = quietly(conn, |tx| {
            let fresh = merged.as_deref().map(|bytes| to_file(tx, live, bytes)).transpose()?;
            let mut drop_row = tx.prepare_cached("DELETE FROM gram_segment WHERE id = ?")?;
            group.iter().try_for_each(|s| drop_row.execute([s.id]).map(drop))?;
            Ok(fresh)
        })?;
        live.grams.replace(&group, fresh);
    }
    Ok(())
}

/// Drops segments that somebody else has damaged since they were opened; their files are made again by a later pass.
fn drop_all(live: &Live, conn: &mut Connection, group: &[Arc<Segment>]) -> Result<(), Failure> {
    tracing::warn!(root = %live.root.path.display(), "trigram segments are damaged, making them again");
    quietly(conn, |tx| {
        let mut unmark = tx.prepare_cached("UPDATE file SET grams = 0 WHERE id = ?")?;
        let mut drop_row = tx.prepare_cached("DELETE FROM gram_segment WHERE id = ?")?;
        for segment in group {
            segment.alive().try_for_each(|doc| unmark.execute([segment.file(doc)]).map(drop))?;
            drop_row.execute([segment.id])?;
        }
        Ok(())
    })?;
    live.grams.replace(group, None);
    Ok(())
}

/// Compares the segments with the files: what is in one and not in the other, told once for each kind.
///
/// # Errors
/// When the database cannot be read.
pub fn verify(live: &Live, conn: &Connection) -> Result<Vec<String>, StoreError> {
    let mut files = marked(conn)?;
    let (mut strange, mut damaged) = (0u64, 0u64);
    for segment in live.grams.snapshot().iter() {
        damaged += u64::from(!segment.is_whole());
        strange += segment.alive().filter(|doc| !files.remove(&segment.file(*doc))).count() as u64;
    }
    let mut found = Vec::new();
    if strange > 0 {
        found.push(format!("{strange} files of the trigram index are unknown, changed, or there twice"));
    }
    if !files.is_empty() {
        found.push(format!("{} files are not in the trigram index", files.len()));
    }
    if damaged > 0 {
        found.push(format!("{damaged} trigram segments are damaged"));
    }
    Ok(found)
}

/// What one thread reads files with.
struct Reading {
    extractor: Extractor,
    buffer: Vec<u8>,
}

impl Reading {
    fn new() -> Self {
        Self { extractor: Extractor::new(), buffer: vec![0; BUFFER] }
    }

    /// A file and its trigrams. Nothing when it is gone, or was changed while it was read.
    fn file(&mut self, opener: &Opener, entry: &FileEntry) -> Option<(Doc, Vec<u32>)> {
        let nothing = Facts { size: 0, changed_ns: 0, inode: 0 };
        let unknown = || Some((Doc { file: entry.id, flags: Doc::ANY, facts: nothing }, Vec::new()));
        let file = match opener.open_file(&entry.path) {
            Ok((file, _)) => file,
            Err(e) if e.is_unreadable() => return unknown(),
            Err(_) => return None,
        };
        let before = Facts::of(&file).ok()?;
        let Ok((size, is_any)) = self.read(&file) else { return unknown() };
        let grams = self.extractor.take();
        let facts = Facts::of(&file).ok()?;
        if facts != before || size.is_some_and(|size| size != facts.size) {
            return None;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64);
        let is_young = now.saturating_sub(facts.changed_ns) < YOUNG.as_nanos() as i64;
        let flags = if is_any { Doc::ANY } else { 0 } | if is_young { Doc::YOUNG } else { 0 };
        Some((Doc { file: entry.id, flags, facts }, if is_any { Vec::new() } else { grams }))
    }

    /// Reads a file; its size, when it was read to the end, and whether any pattern may be in it.
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
                // The searcher translates UTF-16, and no byte of it is what a pattern says.
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
            if self.extractor.is_too_rich() {
                return Ok((None, true));
            }
            if count < self.buffer.len() {
                return Ok((Some(size), false));
            }
        }
    }
}

/// The segments of a folder as they are, for tests.
#[cfg(test)]
pub fn held(bytes: &[u8], folder: &std::path::Path) -> Arc<Segment> {
    let path = folder.join("held.tri");
    std::fs::write(&path, bytes).unwrap();
    Arc::new(Segment::mapped(&path, 1).unwrap().unwrap())
}
