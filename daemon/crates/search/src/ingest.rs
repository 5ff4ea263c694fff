//! Files to rows: comparing a walk with the database, and the text of changed files.

use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cairn_protocol::error::{Failure, Reason};
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, Transaction, params};
use cairn_workspace::{FileStat, Root, Walked, language_of, walk};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use crate::db::{due, meta, set_meta};
use crate::live::{Counts, Live};
use crate::sync::lock;
use crate::{chunk, words};

/// Text of one transaction, in bytes, and its longest time.
const BATCH_BYTES: usize = 16 * 1024 * 1024;
const BATCH_TIME: Duration = Duration::from_millis(700);
/// Prepared files that may wait for the writer.
const QUEUE: usize = 16;
/// Rows of one transaction that only adds or removes files.
const BATCH_ROWS: usize = 20_000;

/// A file read and cut, ready to be written.
pub struct Prepared {
    id: i64,
    path: String,
    stat: FileStat,
    sha256: Option<[u8; 32]>,
    skipped: Option<&'static str>,
    size: usize,
    chunks: Vec<PreparedChunk>,
    path_words: String,
}

struct PreparedChunk {
    window: chunk::Window,
    packed: Vec<u8>,
    fingerprint: i64,
    defs: String,
    words: words::Tallied,
}

/// What a pass over a walk found to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Scan {
    pub added: usize,
    pub changed: usize,
    pub removed: usize,
}

/// Walks the root and marks what is new, changed or gone. Writes no row when nothing is.
pub fn scan(live: &Live, conn: &mut Connection) -> Result<Scan, Failure> {
    let known = known_files(conn)?;
    let found: Mutex<Vec<Walked>> = Mutex::new(Vec::with_capacity(known.len()));
    let report = walk(&live.root, &live.opts.walk_options(), &|w| lock(&found).push(w));
    let mut found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    found.sort_unstable_by(|a, b| a.rel.cmp(&b.rel));
    if live.root.path.metadata().is_err() {
        let text = format!("root {} is gone", live.root.path.display());
        return Err(Failure::new(Reason::PathNotFound, text));
    }
    let mut known = known;
    let (mut added, mut changed) = (Vec::new(), Vec::new());
    for file in &found {
        match known.remove(file.rel.as_str()) {
            None => added.push(file),
            Some(row) if row.differs(&file.stat) => changed.push(row.id),
            Some(_) => {}
        }
    }
    let removed: Vec<i64> = known.into_values().map(|row| row.id).collect();
    let result = Scan { added: added.len(), changed: changed.len(), removed: removed.len() };
    for part in added.chunks(BATCH_ROWS) {
        write(live, conn, |tx| part.iter().try_for_each(|f| insert_file(tx, &f.rel, &f.stat)))?;
    }
    for part in changed.chunks(BATCH_ROWS) {
        write(live, conn, |tx| {
            let mut mark = tx.prepare_cached("UPDATE file SET due = due | 1 WHERE id = ?")?;
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
        live.dense.forget(gone);
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

fn remove_chunks(tx: &Connection, file: i64, gone: &mut Vec<i64>) -> Result<(), StoreError> {
    let from = gone.len();
    let mut ids = tx.prepare_cached("SELECT id FROM chunk WHERE file_id = ?")?;
    for id in ids.query_map([file], |r| r.get(0))? {
        gone.push(id?);
    }
    let mut fts = tx.prepare_cached("DELETE FROM chunk_fts WHERE rowid = ?")?;
    let mut vec = tx.prepare_cached("DELETE FROM chunk_vec WHERE chunk_id = ?")?;
    for id in &gone[from..] {
        fts.execute([id])?;
        vec.execute([id])?;
    }
    tx.prepare_cached("DELETE FROM chunk WHERE file_id = ?")?.execute([file])?;
    Ok(())
}

/// Reads and cuts a file. A file that cannot be read or is left out has its reason.
pub fn prepare(root: &Root, max_bytes: u64, id: i64, path: String, buffer: &mut Vec<u8>) -> Option<Prepared> {
    buffer.clear();
    let read = root.open_file(&path).and_then(|file| {
        let unreadable = |e: std::io::Error| Failure::new(Reason::PathUnreadable, e.to_string());
        let stat = FileStat::of_std(&file.metadata().map_err(unreadable)?);
        if stat.size <= max_bytes {
            file.take(max_bytes + 1).read_to_end(buffer).map_err(unreadable)?;
        }
        Ok(stat)
    });
    let mut made = Prepared {
        id,
        stat: FileStat { size: 0, mtime_ns: 0, inode: 0, kind: cairn_protocol::content::EntryKind::File },
        sha256: None,
        skipped: None,
        size: 0,
        chunks: Vec::new(),
        path_words: String::new(),
        path,
    };
    match read {
        Ok(stat) => made.stat = stat,
        Err(e) if e.reason == Reason::PathNotFound => return None,
        Err(_) => {
            made.stat = root.stat(&made.path).ok()?;
            made.skipped = Some("unreadable");
            return Some(made);
        }
    }
    if made.stat.size > max_bytes || buffer.len() as u64 > max_bytes {
        made.skipped = Some("too_large");
        return Some(made);
    }
    made.size = buffer.len();
    made.sha256 = Some(Sha256::digest(&*buffer).into());
    made.skipped = chunk::unfit(&made.path, buffer);
    Some(made)
}

/// Cuts the text of a file that is to be indexed.
fn cut(made: &mut Prepared, text: &[u8], tally: &mut words::Tally) {
    words::lexical_into(made.path.as_bytes(), &mut made.path_words);
    for window in chunk::windows(text) {
        let piece = &text[window.start..window.end];
        let mut defs = String::new();
        chunk::defined_words(piece, &mut defs);
        made.chunks.push(PreparedChunk {
            packed: lz4_flex::compress_prepend_size(piece),
            fingerprint: chunk::fingerprint(piece),
            defs,
            words: tally.count(piece),
            window,
        });
    }
}

/// Brings the text of every file that is due into the index, in batches; lexical search sees each at once.
pub fn text_pass(live: &Live, conn: &mut Connection) -> Result<(), Failure> {
    let due = due_files(conn)?;
    live.update(|p| p.pending = due.len() as u64);
    if due.is_empty() {
        return Ok(());
    }
    let next = AtomicUsize::new(0);
    let (tx, rx) = crossbeam_channel::bounded(QUEUE);
    std::thread::scope(|scope| {
        for _ in 0..live.opts.threads.max(1) {
            let (tx, next, due) = (tx.clone(), &next, &due);
            scope.spawn(move || prepare_some(live, due, next, &tx));
        }
        drop(tx);
        // Whichever way it leaves, it drops `rx`, and with it the readers end.
        write_all(live, conn, rx, due.len())
    })
}

/// A file waiting for its text: id, path, and the hash of what is indexed of it now.
type Due = (i64, String, Option<[u8; 32]>);

fn due_files(conn: &Connection) -> Result<Vec<Due>, StoreError> {
    let mut all = conn.prepare_cached(
        "SELECT id, path, iif(skipped IS NULL, sha256, NULL) FROM file WHERE due <> 0 AND due & 1 ORDER BY path",
    )?;
    let rows = all.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What a reader hands the writer: a file, or the id of one that is gone.
type Handed = Result<Prepared, i64>;

fn prepare_some(live: &Live, due: &[Due], next: &AtomicUsize, tx: &crossbeam_channel::Sender<Handed>) {
    let (mut buffer, mut tally) = (Vec::new(), words::Tally::default());
    while let Some((id, path, sha256)) = due.get(next.fetch_add(1, Ordering::Relaxed)) {
        let made = prepare_due(live, *id, path, sha256.as_ref(), &mut buffer, &mut tally);
        if live.stopping() || tx.send(made.ok_or(*id)).is_err() {
            return;
        }
    }
}

fn prepare_due(
    live: &Live,
    id: i64,
    path: &str,
    known: Option<&[u8; 32]>,
    buffer: &mut Vec<u8>,
    tally: &mut words::Tally,
) -> Option<Prepared> {
    let mut made = prepare(&live.root, live.opts.max_file_bytes, id, path.to_owned(), buffer)?;
    if made.skipped.is_none() && (known.is_none() || known != made.sha256.as_ref()) {
        cut(&mut made, buffer, tally);
    }
    Some(made)
}

fn write_all(
    live: &Live,
    conn: &mut Connection,
    rx: crossbeam_channel::Receiver<Handed>,
    total: usize,
) -> Result<(), Failure> {
    let mut done = 0;
    let mut open = true;
    while open && !live.stopping() {
        let mut delta = Counts::default();
        let started = Instant::now();
        let gone = write(live, conn, |tx| {
            let (mut gone, mut bytes) = (Vec::new(), 0);
            while bytes < BATCH_BYTES && started.elapsed() < BATCH_TIME && !live.stopping() {
                match rx.recv() {
                    Ok(Ok(made)) => {
                        bytes += made.size + 256;
                        write_file(tx, &made, &mut gone, &mut delta)?;
                    }
                    Ok(Err(id)) => remove_file(tx, id, &mut gone)?,
                    Err(_) => {
                        open = false;
                        break;
                    }
                }
                done += 1;
            }
            Ok(gone)
        })?;
        live.dense.forget(gone);
        live.update(|p| {
            p.pending = (total - done.min(total)) as u64;
            p.counts.files += delta.files;
            p.counts.bytes += delta.bytes;
            p.counts.chunks += delta.chunks;
        });
    }
    Ok(())
}

/// Writes one file: its row, and its chunks when its text is new.
fn write_file(
    tx: &Connection,
    made: &Prepared,
    gone: &mut Vec<i64>,
    delta: &mut Counts,
) -> Result<(), StoreError> {
    let old: Option<(Option<[u8; 32]>, Option<String>, i64)> = {
        let mut get = tx.prepare_cached("SELECT sha256, skipped, due FROM file WHERE id = ?")?;
        let mut rows = get.query([made.id])?;
        match rows.next()? {
            Some(r) => Some((r.get(0)?, r.get(1)?, r.get(2)?)),
            None => None,
        }
    };
    let Some((old_hash, old_skip, old_due)) = old else { return Ok(()) };
    let same = made.sha256.is_some() && old_hash == made.sha256 && old_skip.as_deref() == made.skipped;
    let clock = meta(tx, "clock")?.unwrap_or(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
    let left = match (same, made.skipped) {
        (true, _) => old_due & !due::TEXT,
        (false, None) => due::VECTORS | due::SYMBOLS,
        (false, Some(_)) => 0,
    };
    let mut set = tx.prepare_cached(
        "UPDATE file SET size_bytes = ?, mtime_ns = ?, inode = ?, sha256 = ?, skipped = ?, due = ?,
         indexed_at = iif(?7, indexed_at, ?8), clock = iif(?7, clock, ?9) WHERE id = ?10",
    )?;
    let (size, inode) = (made.stat.size as i64, made.stat.inode as i64);
    set.execute(params![
        size,
        made.stat.mtime_ns,
        inode,
        made.sha256,
        made.skipped,
        left,
        same,
        now,
        clock,
        made.id
    ])?;
    if same {
        return Ok(());
    }
    remove_chunks(tx, made.id, gone)?;
    if made.skipped.is_some() {
        tx.prepare_cached("DELETE FROM symbol WHERE file_id = ?")?.execute([made.id])?;
        tx.prepare_cached("DELETE FROM file_ref WHERE file_id = ?")?.execute([made.id])?;
        return Ok(());
    }
    delta.files += 1;
    delta.bytes += made.size as u64;
    delta.chunks += made.chunks.len() as u64;
    write_chunks(tx, made, now)
}

fn write_chunks(tx: &Connection, made: &Prepared, now: i64) -> Result<(), StoreError> {
    let mut id = meta(tx, "next_chunk")?.unwrap_or(1);
    let mut add = tx.prepare_cached(
        "INSERT INTO chunk(id, file_id, start_line, end_line, byte_range_start, byte_range_end, text, fingerprint,
         tokens, created_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let mut fts =
        tx.prepare_cached("INSERT INTO chunk_fts(rowid, path, defs, body, often) VALUES(?, ?, ?, ?, ?)")?;
    for c in &made.chunks {
        let (start, end) = (c.window.start as i64, c.window.end as i64);
        let (first, last) = (c.window.start_line, c.window.end_line);
        add.execute(params![
            id,
            made.id,
            first,
            last,
            start,
            end,
            c.packed,
            c.fingerprint,
            c.words.tokens,
            now
        ])?;
        fts.execute(params![id, made.path_words, c.defs, c.words.once, c.words.often])?;
        id += 1;
    }
    set_meta(tx, "next_chunk", id)
}

/// Looks at single paths again: files that came, changed or went, folders that went.
pub fn apply_paths(
    live: &Live,
    conn: &mut Connection,
    paths: &std::collections::BTreeSet<String>,
) -> Result<(), Failure> {
    let ignore = cairn_workspace::Ignore::build(&live.root, &live.opts.walk_options());
    let mut files_changed = false;
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
                    tx.prepare_cached("UPDATE file SET due = due | 1 WHERE id = ?")?.execute([id])?;
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
    live.dense.forget(gone);
    if files_changed {
        live.files_version.fetch_add(1, Ordering::Release);
    }
    text_pass(live, conn)
}
