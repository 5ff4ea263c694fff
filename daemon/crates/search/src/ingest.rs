//! Compares a walk with the database and updates the rows of files.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use cairn_protocol::error::{Failure, Reason};
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, Transaction, params};
use cairn_workspace::{FileStat, Walked, language_of, walk};
use rustc_hash::FxHashMap;

use crate::base_index::{Adoption, insert_from_base};
use crate::db::{meta, set_meta};
use crate::root_index::RootIndex;
use crate::text::text_pass;
use cairn_index_base::lock;

/// Maximum rows of one transaction that only adds or removes files.
const BATCH_ROWS: usize = 20_000;
/// Number of new files from which git's index is read.
const MANY_ADDED: usize = 32;
const MARK_CHANGED: &str =
    "UPDATE file SET pending_stages = pending_stages | 1, grams = 0 WHERE id = ?";

/// Numbers of files that a walk found to differ from the database.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Scan {
    pub added: usize,
    pub changed: usize,
    pub removed: usize,
}

/// Walks the root and marks new, changed and removed files. Writes no row when there is no change.
pub fn scan(index: &RootIndex, conn: &mut Connection) -> Result<Scan, Failure> {
    let entries: Mutex<Vec<Walked>> = Mutex::default();
    // The walk is bound by the disk, so the rows are loaded in parallel.
    let (known_rows, report) = std::thread::scope(|scope| {
        let report = scope
            .spawn(|| walk(&index.root, &index.opts.walk_options(), &|w| lock(&entries).push(w)));
        (load_known_files(conn), report.join())
    });
    let report = report.map_err(|_| Failure::new(Reason::Internal, "the walk panicked"))?;
    let mut known_rows = known_rows?;
    let entries = entries.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if index.root.path.metadata().is_err() {
        let text = format!("root {} no longer exists", index.root.path.display());
        return Err(Failure::new(Reason::PathNotFound, text));
    }
    let (mut added, mut changed) = (Vec::new(), Vec::new());
    for file in &entries {
        match known_rows.remove(file.rel.as_str()) {
            None => added.push(file),
            Some(row) if row.differs(&file.stat) => changed.push(row.id),
            Some(_) => {}
        }
    }
    let mut removed: Vec<i64> = known_rows.into_values().map(|row| row.id).collect();
    // The walk is unordered. Only the differences are sorted, because most passes find none.
    added.sort_unstable_by(|a, b| a.rel.cmp(&b.rel));
    changed.sort_unstable();
    removed.sort_unstable();
    index.grams.mark_changed(changed.iter().chain(&removed).map(|id| *id as u32));
    let result = Scan { added: added.len(), changed: changed.len(), removed: removed.len() };
    add_files(index, conn, &added)?;
    for rows in changed.chunks(BATCH_ROWS) {
        write(index, conn, |tx| {
            let mut mark = tx.prepare_cached(MARK_CHANGED)?;
            rows.iter().try_for_each(|id| mark.execute([id]).map(drop))?;
            Ok(())
        })?;
    }
    for rows in removed.chunks(256) {
        let removed_chunks = write(index, conn, |tx| {
            let mut removed_chunks = Vec::new();
            rows.iter().try_for_each(|id| remove_file(tx, index, *id, &mut removed_chunks))?;
            Ok(removed_chunks)
        })?;
        index.remove_chunks(removed_chunks);
    }
    if result.added + result.removed > 0 {
        index.files_version.fetch_add(1, Ordering::Release);
    }
    record_walk(index, conn, &report)?;
    Ok(result)
}

/// Adds rows for new files. Those whose content is in the base according to git are complete.
fn add_files(
    index: &RootIndex,
    conn: &mut Connection,
    added: &[&Walked],
) -> Result<(), StoreError> {
    let prepared = lock(&index.adoption).take();
    let known = prepared.or_else(|| {
        let base = index.base.as_ref().filter(|_| added.len() >= MANY_ADDED)?;
        Adoption::read(&index.root, &index.folder.with_file_name(&base.name))
    });
    let mut from_base = 0;
    for rows in added.chunks(BATCH_ROWS) {
        write(index, conn, |tx| {
            let clock = meta(tx, "clock")?.unwrap_or(0);
            for file in rows {
                let id = known.as_ref().and_then(|known| known.find(&file.rel, &file.stat));
                match id {
                    Some(id) => insert_from_base(tx, id, &file.rel, &file.stat, clock)?,
                    None => insert_file(tx, &file.rel, &file.stat)?,
                }
                from_base += usize::from(id.is_some());
            }
            Ok(())
        })?;
    }
    if from_base > 0 {
        index.refresh_base(conn)?;
        index.forget_files();
    }
    Ok(())
}

/// Stores the numbers of paths that the walk could not read, for the status.
fn record_walk(
    index: &RootIndex,
    conn: &Connection,
    report: &cairn_workspace::WalkReport,
) -> Result<(), StoreError> {
    for (key, value) in
        [("invalid_names", report.invalid_names), ("unreadable", report.unreadable_count)]
    {
        if meta(conn, key)?.unwrap_or(0) != value as i64 {
            set_meta(conn, key, value as i64)?;
        }
    }
    if let Some(first) = report.unreadable.first() {
        tracing::warn!(root = %index.root.path.display(), first, count = report.unreadable_count, "some paths could not be walked");
    }
    Ok(())
}

struct KnownFile {
    id: i64,
    size: u64,
    mtime_ns: i64,
    inode: i64,
    unreadable: bool,
}

impl KnownFile {
    fn differs(&self, stat: &FileStat) -> bool {
        self.unreadable
            || self.size != stat.size
            || self.mtime_ns != stat.mtime_ns
            || self.inode != stat.inode as i64
    }
}

fn load_known_files(conn: &Connection) -> Result<FxHashMap<Box<str>, KnownFile>, StoreError> {
    let mut all =
        conn.prepare_cached("SELECT id, path, size_bytes, mtime_ns, inode, skipped FROM file")?;
    let mut rows = all.query([])?;
    let mut known_rows = FxHashMap::default();
    while let Some(row) = rows.next()? {
        let path: Box<str> = row.get_ref(1)?.as_str().unwrap_or("").into();
        let unreadable = row.get_ref(5)?.as_str().is_ok_and(|s| s == "unreadable");
        known_rows.insert(
            path,
            KnownFile {
                id: row.get(0)?,
                size: row.get(2)?,
                mtime_ns: row.get(3)?,
                inode: row.get(4)?,
                unreadable,
            },
        );
    }
    Ok(known_rows)
}

/// Runs `work` in a transaction that advances the clock.
pub fn write<T>(
    index: &RootIndex,
    conn: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let tx = conn.transaction()?;
    let clock = meta(&tx, "clock")?.unwrap_or(0) + 1;
    set_meta(&tx, "clock", clock)?;
    let value = work(&tx)?;
    tx.commit()?;
    lock(&index.progress).clock = clock as u64;
    Ok(value)
}

/// Adds a row for a file whose text is pending.
pub fn insert_file(tx: &Connection, rel: &str, stat: &FileStat) -> Result<(), StoreError> {
    let mut add = tx.prepare_cached(
        "INSERT INTO file(path, lang, size_bytes, mtime_ns, inode) VALUES(?, ?, ?, ?, ?)",
    )?;
    add.execute(params![
        rel,
        language_of(rel),
        stat.size as i64,
        stat.mtime_ns,
        stat.inode as i64
    ])?;
    Ok(())
}

/// Removes a file with its symbols and references; its chunk ids are added to `removed_chunks`.
pub fn remove_file(
    tx: &Connection,
    index: &RootIndex,
    id: i64,
    removed_chunks: &mut Vec<i64>,
) -> Result<(), StoreError> {
    if id <= index.last_base_file() {
        // Its content is that of the base, which other indexes use.
        let mut ids = tx.prepare_cached("SELECT id FROM base.chunk WHERE file_id = ?")?;
        for id in ids.query_map([id], |r| r.get(0))? {
            removed_chunks.push(id?);
        }
    } else {
        remove_chunks(tx, id, removed_chunks)?;
    }
    tx.prepare_cached("DELETE FROM symbol WHERE file_id = ?")?.execute([id])?;
    tx.prepare_cached("DELETE FROM file_ref WHERE file_id = ?")?.execute([id])?;
    tx.prepare_cached("DELETE FROM file_import WHERE file_id = ?")?.execute([id])?;
    tx.prepare_cached("DELETE FROM file WHERE id = ?")?.execute([id])?;
    Ok(())
}

/// Removes the chunks of a file; their ids are added to `removed_chunks`.
pub fn remove_chunks(
    tx: &Connection,
    file: i64,
    removed_chunks: &mut Vec<i64>,
) -> Result<(), StoreError> {
    let from = removed_chunks.len();
    let mut ids = tx.prepare_cached("SELECT id FROM chunk WHERE file_id = ?")?;
    for id in ids.query_map([file], |r| r.get(0))? {
        removed_chunks.push(id?);
    }
    let mut mark_removed =
        tx.prepare_cached("INSERT OR IGNORE INTO gone_chunk(chunk_id) VALUES(?)")?;
    let mut vec = tx.prepare_cached("DELETE FROM chunk_vec WHERE chunk_id = ?")?;
    for id in &removed_chunks[from..] {
        mark_removed.execute([id])?;
        vec.execute([id])?;
    }
    tx.prepare_cached("DELETE FROM chunk WHERE file_id = ?")?.execute([file])?;
    Ok(())
}

/// Updates single paths: files that were added, changed or removed, and removed folders.
pub fn apply_paths(
    index: &RootIndex,
    conn: &mut Connection,
    paths: &std::collections::BTreeSet<String>,
) -> Result<(), Failure> {
    let ignore = cairn_workspace::Ignore::build(&index.root, &index.opts.walk_options());
    let mut files_changed = false;
    index.grams.invalidate_paths(conn, paths)?;
    let removed_chunks = write(index, conn, |tx| {
        let mut removed_chunks = Vec::new();
        for rel in paths {
            let stat = index
                .root
                .stat(rel)
                .ok()
                .filter(|s| s.kind == cairn_protocol::content::EntryKind::File);
            let stat = stat.filter(|_| ignore.is_walked(rel, false));
            let known_rows: Option<i64> = {
                let mut get = tx.prepare_cached("SELECT id FROM file WHERE path = ?")?;
                let mut rows = get.query([rel])?;
                rows.next()?.map(|r| r.get(0)).transpose()?
            };
            match (stat, known_rows) {
                // An event counts even if size and time are unchanged.
                (Some(_), Some(id)) => {
                    tx.prepare_cached(MARK_CHANGED)?.execute([id])?;
                }
                (Some(stat), None) => {
                    insert_file(tx, rel, &stat)?;
                    files_changed = true;
                }
                (None, known_rows) => {
                    let mut ids: Vec<i64> = known_rows.into_iter().collect();
                    let mut rows_below = tx.prepare_cached(
                        "SELECT id FROM file WHERE path > ?1 || '/' AND path < ?1 || '0'",
                    )?;
                    for id in rows_below.query_map([rel], |r| r.get(0))? {
                        ids.push(id?);
                    }
                    files_changed |= !ids.is_empty();
                    ids.into_iter()
                        .try_for_each(|id| remove_file(tx, index, id, &mut removed_chunks))?;
                }
            }
        }
        Ok(removed_chunks)
    })?;
    index.remove_chunks(removed_chunks);
    if files_changed {
        index.files_version.fetch_add(1, Ordering::Release);
    }
    text_pass(index, conn)
}
