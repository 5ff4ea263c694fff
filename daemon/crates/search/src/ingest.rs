//! Files to rows: comparing a walk with the database.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use cairn_protocol::error::{Failure, Reason};
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, Transaction, params};
use cairn_workspace::{FileStat, Walked, language_of, walk};
use rustc_hash::FxHashMap;

use crate::db::{meta, set_meta};
use crate::grams::kill_paths;
use crate::live::Live;
use crate::sync::lock;
use crate::text::text_pass;

/// Rows of one transaction that only adds or removes files.
const BATCH_ROWS: usize = 20_000;

/// What a pass over a walk found to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Scan {
    pub added: usize,
    pub changed: usize,
    pub removed: usize,
}

/// Walks the root and marks what is new, changed or gone. Writes no row when nothing is.
pub fn scan(live: &Live, conn: &mut Connection) -> Result<Scan, Failure> {
    let found: Mutex<Vec<Walked>> = Mutex::default();
    // A walk waits for the disk more than for the processors.
    let (known, report) = std::thread::scope(|scope| {
        let report = scope.spawn(|| walk(&live.root, &live.opts.walk_options(), &|w| lock(&found).push(w)));
        (known_files(conn), report.join())
    });
    let report = report.map_err(|_| Failure::new(Reason::Internal, "the walk panicked"))?;
    let mut known = known?;
    let found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if live.root.path.metadata().is_err() {
        let text = format!("root {} is gone", live.root.path.display());
        return Err(Failure::new(Reason::PathNotFound, text));
    }
    let (mut added, mut changed) = (Vec::new(), Vec::new());
    for file in &found {
        match known.remove(file.rel.as_str()) {
            None => added.push(file),
            Some(row) if row.differs(&file.stat) => changed.push(row.id),
            Some(_) => {}
        }
    }
    let mut removed: Vec<i64> = known.into_values().map(|row| row.id).collect();
    // The walk comes in any order. Only what is to be done is put in one: most passes find nothing.
    added.sort_unstable_by(|a, b| a.rel.cmp(&b.rel));
    changed.sort_unstable();
    removed.sort_unstable();
    live.grams.kill(changed.iter().chain(&removed).map(|id| *id as u32));
    let result = Scan { added: added.len(), changed: changed.len(), removed: removed.len() };
    for part in added.chunks(BATCH_ROWS) {
        write(live, conn, |tx| part.iter().try_for_each(|f| insert_file(tx, &f.rel, &f.stat)))?;
    }
    for part in changed.chunks(BATCH_ROWS) {
        write(live, conn, |tx| {
            let mut mark = tx.prepare_cached("UPDATE file SET due = due | 1, grams = 0 WHERE id = ?")?;
            part.iter().try_for_each(|id| mark.execute([id]).map(drop))?;
            Ok(())
        })?;
    }
    for part in removed.chunks(256) {
        let gone = write(live, conn, |tx| {
            let mut gone = Vec::new();
            part.iter().try_for_each(|id| remove_file(tx, *id, &mut gone))?;
            Ok(gone)
        })?;
        live.forget(gone);
    }
    if result.added + result.removed > 0 {
        live.files_version.fetch_add(1, Ordering::Release);
    }
    note_walk(live, conn, &report)?;
    Ok(result)
}

/// Keeps what a walk could not give, for the status.
fn note_walk(live: &Live, conn: &Connection, report: &cairn_workspace::WalkReport) -> Result<(), StoreError> {
    for (key, value) in [("invalid_names", report.invalid_names), ("unreadable", report.unreadable_count)] {
        if meta(conn, key)?.unwrap_or(0) != value as i64 {
            set_meta(conn, key, value as i64)?;
        }
    }
    if let Some(first) = report.unreadable.first() {
        tracing::warn!(root = %live.root.path.display(), first, count = report.unreadable_count, "paths could not be walked");
    }
    Ok(())
}

struct Known {
    id: i64,
    size: u64,
    mtime_ns: i64,
    inode: i64,
    unreadable: bool,
}

impl Known {
    fn differs(&self, stat: &FileStat) -> bool {
        self.unreadable
            || self.size != stat.size
            || self.mtime_ns != stat.mtime_ns
            || self.inode != stat.inode as i64
    }
}

fn known_files(conn: &Connection) -> Result<FxHashMap<Box<str>, Known>, StoreError> {
    let mut all = conn.prepare_cached("SELECT id, path, size_bytes, mtime_ns, inode, skipped FROM file")?;
    let mut rows = all.query([])?;
    let mut known = FxHashMap::default();
    while let Some(row) = rows.next()? {
        let path: Box<str> = row.get_ref(1)?.as_str().unwrap_or("").into();
        let unreadable = row.get_ref(5)?.as_str().is_ok_and(|s| s == "unreadable");
        known.insert(
            path,
            Known {
                id: row.get(0)?,
                size: row.get(2)?,
                mtime_ns: row.get(3)?,
                inode: row.get(4)?,
                unreadable,
            },
        );
    }
    Ok(known)
}

/// Runs `work` in a transaction that moves the clock on.
pub fn write<T>(
    live: &Live,
    conn: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let tx = conn.transaction()?;
    let clock = meta(&tx, "clock")?.unwrap_or(0) + 1;
    set_meta(&tx, "clock", clock)?;
    let value = work(&tx)?;
    tx.commit()?;
    lock(&live.progress).clock = clock as u64;
    Ok(value)
}

/// Runs `work` in a transaction that leaves the clock alone: nothing that a client sees changes.
pub fn quietly<T>(
    conn: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let tx = conn.transaction()?;
    let value = work(&tx)?;
    tx.commit()?;
    Ok(value)
}

/// Adds a row for a file whose text is due.
pub fn insert_file(tx: &Connection, rel: &str, stat: &FileStat) -> Result<(), StoreError> {
    let mut add =
        tx.prepare_cached("INSERT INTO file(path, lang, size_bytes, mtime_ns, inode) VALUES(?, ?, ?, ?, ?)")?;
    add.execute(params![rel, language_of(rel), stat.size as i64, stat.mtime_ns, stat.inode as i64])?;
    Ok(())
}

/// Removes a file with all that hangs on it; its chunks are added to `gone`.
pub fn remove_file(tx: &Connection, id: i64, gone: &mut Vec<i64>) -> Result<(), StoreError> {
    remove_chunks(tx, id, gone)?;
    tx.prepare_cached("DELETE FROM symbol WHERE file_id = ?")?.execute([id])?;
    tx.prepare_cached("DELETE FROM file_ref WHERE file_id = ?")?.execute([id])?;
    tx.prepare_cached("DELETE FROM file WHERE id = ?")?.execute([id])?;
    Ok(())
}

/// Removes the chunks of a file; their ids are added to `gone`.
pub fn remove_chunks(tx: &Connection, file: i64, gone: &mut Vec<i64>) -> Result<(), StoreError> {
    let from = gone.len();
    let mut ids = tx.prepare_cached("SELECT id FROM chunk WHERE file_id = ?")?;
    for id in ids.query_map([file], |r| r.get(0))? {
        gone.push(id?);
    }
    let mut bury = tx.prepare_cached("INSERT OR IGNORE INTO gone_chunk(chunk_id) VALUES(?)")?;
    let mut vec = tx.prepare_cached("DELETE FROM chunk_vec WHERE chunk_id = ?")?;
    for id in &gone[from..] {
        bury.execute([id])?;
        vec.execute([id])?;
    }
    tx.prepare_cached("DELETE FROM chunk WHERE file_id = ?")?.execute([file])?;
    Ok(())
}

/// Looks at single paths again: files that came, changed or went, folders that went.
pub fn apply_paths(
    live: &Live,
    conn: &mut Connection,
    paths: &std::collections::BTreeSet<String>,
) -> Result<(), Failure> {
    let ignore = cairn_workspace::Ignore::build(&live.root, &live.opts.walk_options());
    let mut files_changed = false;
    kill_paths(live, conn, paths)?;
    let gone = write(live, conn, |tx| {
        let mut gone = Vec::new();
        for rel in paths {
            let stat =
                live.root.stat(rel).ok().filter(|s| s.kind == cairn_protocol::content::EntryKind::File);
            let stat = stat.filter(|_| ignore.is_walked(rel, false));
            let known: Option<i64> = {
                let mut get = tx.prepare_cached("SELECT id FROM file WHERE path = ?")?;
                let mut rows = get.query([rel])?;
                rows.next()?.map(|r| r.get(0)).transpose()?
            };
            match (stat, known) {
                // An event is believed even where size and time are the same.
                (Some(_), Some(id)) => {
                    tx.prepare_cached("UPDATE file SET due = due | 1, grams = 0 WHERE id = ?")?
                        .execute([id])?;
                }
                (Some(stat), None) => {
                    insert_file(tx, rel, &stat)?;
                    files_changed = true;
                }
                (None, known) => {
                    let mut ids: Vec<i64> = known.into_iter().collect();
                    let mut below =
                        tx.prepare_cached("SELECT id FROM file WHERE path > ?1 || '/' AND path < ?1 || '0'")?;
                    for id in below.query_map([rel], |r| r.get(0))? {
                        ids.push(id?);
                    }
                    files_changed |= !ids.is_empty();
                    ids.into_iter().try_for_each(|id| remove_file(tx, id, &mut gone))?;
                }
            }
        }
        Ok(gone)
    })?;
    live.forget(gone);
    if files_changed {
        live.files_version.fetch_add(1, Ordering::Release);
    }
    text_pass(live, conn)
}
