//! The text stage: several threads read and split new and changed files, one thread writes them in
//! batches.

use std::io::Read;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use cairn_protocol::error::Failure;
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, params};
use cairn_workspace::{FileStat, Root, WorkspaceError};
use crossbeam_channel::{Receiver, Sender};

use crate::base_index::insert_from_base;
use crate::db::{meta, pending, set_meta};
use crate::digest::sha256_all;
use crate::ingest::{remove_chunks, remove_file, write};
use crate::root_index::{Counts, RootIndex};
use cairn_text_index::chunk;
use cairn_text_index::packed::{self, Packed};
use cairn_text_index::{Builder, Doc, Pending};

/// Bytes of text in a reader's first batch and the limit of later ones. The first batch is small so
/// that searches find something early; later ones are as large as their words fit the processor's
/// cache.
const BATCH_BYTES: (usize, usize) = (512 * 1024, 4 * 1024 * 1024);
/// Maximum files of one batch.
const BATCH_FILES: usize = 4096;
/// Bytes of text from which a group is hashed.
const GROUP_BYTES: usize = 1024 * 1024;
/// Files from which a group is hashed.
const GROUP_FILES: usize = 128;
/// Batches that may wait for the writer.
const QUEUE: usize = 1;
/// Number of files up to which one thread is as fast as several.
const MIN_PARALLEL_FILES: usize = 8;
/// Number of segments above which they are merged during the pass.
const MANY_SEGMENTS: usize = 48;

/// A file that was read and split, ready to be written.
struct PreparedFile {
    id: i64,
    /// The id of its present row, if its new text needs another id: the present one is the base's.
    replaces: Option<i64>,
    /// The file of the base with its text.
    in_base: Option<i64>,
    path: String,
    stat: FileStat,
    sha256: Option<[u8; 32]>,
    skipped: Option<&'static str>,
    size: usize,
    chunks: Vec<PreparedChunk>,
}

struct PreparedChunk {
    window: chunk::Window,
    /// Its frame refers to the batch's `texts`.
    packed: Packed,
    fingerprint: i64,
    tokens: u32,
}

/// A file, or the id of one that does not exist any more.
type Item = Result<PreparedFile, i64>;

/// Files for the writer, and the words of all their windows in the same order.
#[derive(Default)]
struct Batch {
    files: Vec<Item>,
    words: Builder,
    /// Compressed frames of the files' text.
    texts: Vec<u8>,
    bytes: usize,
}

/// Indexes the text of every pending file in batches; lexical search sees each batch as soon as it
/// is written.
pub fn text_pass(index: &RootIndex, conn: &mut Connection) -> Result<(), Failure> {
    let files = pending_files(index, conn)?;
    index.update(|p| p.pending = files.len() as u64);
    if files.is_empty() {
        return Ok(());
    }
    let next = AtomicUsize::new(0);
    let ids = FileIds { last_of_base: index.last_base_file(), last: last_file(conn)?.into() };
    let (tx, rx) = crossbeam_channel::bounded(QUEUE);
    let threads = if files.len() <= MIN_PARALLEL_FILES { 1 } else { index.opts.threads.max(1) };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (tx, next, files, ids) = (tx.clone(), &next, &files, &ids);
            scope.spawn(move || read_files(index, files, next, ids, &tx));
        }
        drop(tx);
        // Every return drops `rx`, which ends the readers.
        write_all(index, conn, rx, files.len())
    })
}

/// A file whose text is pending.
struct PendingFile {
    id: i64,
    path: String,
    /// Hash of its indexed text.
    sha256: Option<[u8; 32]>,
    /// Id and hash of the base's file at its path.
    in_base: Option<(i64, [u8; 32])>,
}

fn pending_files(index: &RootIndex, conn: &Connection) -> Result<Vec<PendingFile>, StoreError> {
    let (columns, join) = match &index.base {
        Some(_) => {
            let join = "LEFT JOIN base.file b ON b.path = f.path AND b.skipped IS NULL \
                        AND b.sha256 IS NOT NULL AND b.pending_stages = 0";
            ("b.id, b.sha256", join)
        }
        None => ("NULL, NULL", ""),
    };
    let mut all = conn.prepare_cached(&format!(
        "SELECT f.id, f.path, iif(f.skipped IS NULL, f.sha256, NULL), {columns} FROM main.file f {join}
         WHERE f.pending_stages <> 0 AND f.pending_stages & 1 ORDER BY f.path",
    ))?;
    let rows = all.query_map([], |r| {
        let in_base = r.get::<_, Option<i64>>(3)?.zip(r.get(4)?);
        Ok(PendingFile { id: r.get(0)?, path: r.get(1)?, sha256: r.get(2)?, in_base })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Ids for files whose text is not that of the base any more.
struct FileIds {
    last_of_base: i64,
    last: AtomicI64,
}

fn last_file(conn: &Connection) -> Result<i64, StoreError> {
    let sql = "SELECT max(ifnull((SELECT max(id) FROM main.file), 0),
               ifnull((SELECT max(seq) FROM main.sqlite_sequence WHERE name = 'file'), 0))";
    Ok(conn.query_row(sql, [], |r| r.get(0))?)
}

fn read_files(
    index: &RootIndex,
    files: &[PendingFile],
    next: &AtomicUsize,
    ids: &FileIds,
    tx: &Sender<Batch>,
) {
    let (mut group, mut batch, mut limit) = (HashGroup::default(), Batch::default(), BATCH_BYTES.0);
    loop {
        let entry = files.get(next.fetch_add(1, Ordering::Relaxed));
        if index.is_stopping() {
            return;
        }
        if let Some(file) = entry {
            group.read(&index.root, index.opts.max_file_bytes, file);
        }
        if entry.is_none() || group.is_full() {
            group.index_into(&mut batch, ids);
        }
        let full = batch.bytes >= limit || batch.files.len() >= BATCH_FILES;
        if (full || entry.is_none()) && !batch.files.is_empty() {
            if tx.send(std::mem::take(&mut batch)).is_err() {
                return;
            }
            limit = (limit * 2).min(BATCH_BYTES.1);
        }
        if entry.is_none() {
            return;
        }
    }
}

/// Files that were read but not hashed yet, because many are hashed at once.
#[derive(Default)]
struct HashGroup<'a> {
    files: Vec<(Item, &'a PendingFile)>,
    texts: Vec<Vec<u8>>,
    bytes: usize,
}

impl<'a> HashGroup<'a> {
    fn is_full(&self) -> bool {
        self.bytes >= GROUP_BYTES || self.files.len() >= GROUP_FILES
    }

    fn read(&mut self, root: &Root, max_bytes: u64, known: &'a PendingFile) {
        if self.texts.len() == self.files.len() {
            self.texts.push(Vec::new());
        }
        let text = &mut self.texts[self.files.len()];
        let file = prepare(root, max_bytes, known.id, known.path.clone(), text);
        self.bytes += text.len();
        self.files.push((file.ok_or(known.id), known));
    }

    /// Hashes the files, indexes the changed ones and empties the group.
    fn index_into(&mut self, batch: &mut Batch, ids: &FileIds) {
        let texts: Vec<&[u8]> = self.texts[..self.files.len()].iter().map(Vec::as_slice).collect();
        let hashes = sha256_all(&texts);
        for (((file, known), text), hash) in self.files.drain(..).zip(texts).zip(hashes) {
            batch.files.push(file.map(|mut file| {
                if !matches!(file.skipped, Some("unreadable" | "too_large")) {
                    file.sha256 = Some(hash);
                    file.skipped = chunk::skip_reason(&file.path, text);
                }
                batch.bytes += file.size;
                let is_text = file.skipped.is_none();
                if is_text && known.sha256 == Some(hash) {
                    return file;
                }
                let in_base = known.in_base.filter(|(_, sha256)| is_text && *sha256 == hash);
                file.in_base = in_base.map(|(id, _)| id);
                if file.in_base.is_none() && known.id <= ids.last_of_base {
                    file.replaces = Some(known.id);
                    file.id = ids.last.fetch_add(1, Ordering::Relaxed) + 1;
                }
                if is_text && file.in_base.is_none() {
                    index_text(&mut file, text, &mut batch.words, &mut batch.texts);
                }
                file
            }));
        }
        if self.bytes > 4 * GROUP_BYTES {
            self.texts.clear();
        }
        self.bytes = 0;
    }
}

/// Reads a file. A file that cannot be read or is too large has its reason in `skipped`; `None` if
/// it does not exist.
fn prepare(
    root: &Root,
    max_bytes: u64,
    id: i64,
    path: String,
    buffer: &mut Vec<u8>,
) -> Option<PreparedFile> {
    buffer.clear();
    let read = root.open_file(&path).and_then(|file| {
        let unreadable = |source| WorkspaceError::Unreadable { path: path.clone(), source };
        let stat = FileStat::of_std(&file.metadata().map_err(unreadable)?);
        if stat.size <= max_bytes {
            file.take(max_bytes + 1).read_to_end(buffer).map_err(unreadable)?;
        }
        Ok(stat)
    });
    let mut file = PreparedFile {
        id,
        replaces: None,
        in_base: None,
        stat: FileStat {
            size: 0,
            mtime_ns: 0,
            inode: 0,
            kind: cairn_protocol::content::EntryKind::File,
        },
        sha256: None,
        skipped: None,
        size: 0,
        chunks: Vec::new(),
        path,
    };
    match read {
        Ok(stat) => file.stat = stat,
        Err(e) if e.is_not_found() => return None,
        Err(_) => {
            file.stat = root.stat(&file.path).ok()?;
            file.skipped = Some("unreadable");
            return Some(file);
        }
    }
    if file.stat.size > max_bytes || buffer.len() as u64 > max_bytes {
        buffer.clear();
        file.skipped = Some("too_large");
        return Some(file);
    }
    file.size = buffer.len();
    Some(file)
}

/// Splits a file's text into windows and adds their words.
fn index_text(file: &mut PreparedFile, text: &[u8], words: &mut Builder, texts: &mut Vec<u8>) {
    let path = words.path(&file.path);
    let windows = chunk::windows(text);
    let packed = packed::pack(text, &windows, texts);
    for (window, packed) in windows.into_iter().zip(packed) {
        let piece = &text[window.start..window.end];
        let fingerprint = chunk::fingerprint(piece);
        let doc = Doc {
            chunk: words.len() as u64,
            file: file.id as u32,
            start_line: window.start_line,
            end_line: window.end_line,
            tokens: 0,
            fingerprint: fingerprint as u64,
        };
        let tokens = words.add(doc, &path, piece);
        file.chunks.push(PreparedChunk { window, packed, fingerprint, tokens });
    }
}

fn write_all(
    index: &RootIndex,
    conn: &mut Connection,
    rx: Receiver<Batch>,
    total: usize,
) -> Result<(), Failure> {
    let (mut done, mut from_base) = (0, false);
    for (batches, batch) in (1..).zip(rx) {
        if index.is_stopping() {
            return Ok(());
        }
        done += batch.files.len();
        let other_ids = batch
            .files
            .iter()
            .flatten()
            .any(|file| file.in_base.is_some() || file.replaces.is_some());
        from_base |= batch.files.iter().flatten().any(|file| file.in_base.is_some());
        let mut delta = Counts::default();
        let mut pending = Pending::default();
        let mut removed_chunks = Vec::new();
        let written = write(index, conn, |tx| {
            write_batch(tx, index, batch, &mut pending, &mut removed_chunks, &mut delta)
        });
        if let Err(error) = written {
            pending.withdraw(&index.postings);
            return Err(error.into());
        }
        pending.publish(&index.postings);
        index.remove_chunks(removed_chunks);
        if other_ids {
            index.forget_files();
        }
        index.update(|p| {
            p.pending = (total - done.min(total)) as u64;
            p.counts.files += delta.files;
            p.counts.bytes += delta.bytes;
            p.counts.chunks += delta.chunks;
        });
        index.maybe_trim(batches);
        index.postings.merge_segments(conn, MANY_SEGMENTS)?;
    }
    if from_base {
        index.refresh_base(conn)?;
    }
    Ok(())
}

fn write_batch(
    tx: &Connection,
    index: &RootIndex,
    batch: Batch,
    pending: &mut Pending,
    removed_chunks: &mut Vec<i64>,
    delta: &mut Counts,
) -> Result<(), StoreError> {
    let first = meta(tx, "next_chunk")?.unwrap_or(1);
    let mut next = first;
    for file in &batch.files {
        match file {
            Ok(file) => {
                if let Some(id) = file.in_base {
                    remove_file(tx, index, file.id, removed_chunks)?;
                    let clock = meta(tx, "clock")?.unwrap_or(0);
                    insert_from_base(tx, id, &file.path, &file.stat, clock)?;
                    continue;
                }
                if let Some(old) = file.replaces {
                    remove_file(tx, index, old, removed_chunks)?;
                    insert_replacement(tx, file)?;
                }
                if !write_file(tx, file, &batch.texts, next, removed_chunks, delta)? {
                    // The builder already contains its windows.
                    removed_chunks.extend(next..next + file.chunks.len() as i64);
                }
                next += file.chunks.len() as i64;
            }
            Err(id) => remove_file(tx, index, *id, removed_chunks)?,
        }
    }
    set_meta(tx, "next_chunk", next)?;
    index.postings.add(tx, batch.words, first as u64, pending)
}

/// Adds the row of a file whose content differs from the base's file at its path.
fn insert_replacement(tx: &Connection, file: &PreparedFile) -> Result<(), StoreError> {
    let mut add = tx.prepare_cached(
        "INSERT INTO main.file(id, path, lang, size_bytes, mtime_ns, inode) VALUES(?, ?, ?, 0, 0, 0)",
    )?;
    add.execute(params![file.id, file.path, cairn_workspace::language_of(&file.path)])?;
    Ok(())
}

/// Writes the row of a file, and its chunks if its text has changed. Returns false if the chunks
/// are not used.
fn write_file(
    tx: &Connection,
    file: &PreparedFile,
    texts: &[u8],
    first: i64,
    removed_chunks: &mut Vec<i64>,
    delta: &mut Counts,
) -> Result<bool, StoreError> {
    let old: Option<(Option<[u8; 32]>, Option<String>, i64)> = {
        let mut get =
            tx.prepare_cached("SELECT sha256, skipped, pending_stages FROM file WHERE id = ?")?;
        let mut rows = get.query([file.id])?;
        match rows.next()? {
            Some(r) => Some((r.get(0)?, r.get(1)?, r.get(2)?)),
            None => None,
        }
    };
    let Some((old_hash, old_skip, old_pending)) = old else { return Ok(false) };
    let same =
        file.sha256.is_some() && old_hash == file.sha256 && old_skip.as_deref() == file.skipped;
    let still_pending = match (same, file.skipped) {
        (true, _) => old_pending & !pending::TEXT,
        (false, None) => pending::VECTORS | pending::SYMBOLS,
        (false, Some(_)) => 0,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
    update_row(tx, file, still_pending, same, now)?;
    if same {
        return Ok(false);
    }
    remove_chunks(tx, file.id, removed_chunks)?;
    if file.skipped.is_some() {
        tx.prepare_cached("DELETE FROM symbol WHERE file_id = ?")?.execute([file.id])?;
        tx.prepare_cached("DELETE FROM file_ref WHERE file_id = ?")?.execute([file.id])?;
        tx.prepare_cached("DELETE FROM file_import WHERE file_id = ?")?.execute([file.id])?;
        return Ok(false);
    }
    delta.files += 1;
    delta.bytes += file.size as u64;
    delta.chunks += file.chunks.len() as u64;
    write_chunks(tx, file, texts, first, now)?;
    Ok(true)
}

fn update_row(
    tx: &Connection,
    file: &PreparedFile,
    still_pending: i64,
    same: bool,
    now: i64,
) -> Result<(), StoreError> {
    let clock = meta(tx, "clock")?.unwrap_or(0);
    let mut set = tx.prepare_cached(
        "UPDATE file SET size_bytes = ?, mtime_ns = ?, inode = ?, sha256 = ?, skipped = ?, pending_stages = ?,
         indexed_at = iif(?7, indexed_at, ?8), clock = iif(?7, clock, ?9) WHERE id = ?10",
    )?;
    let (size, inode) = (file.stat.size as i64, file.stat.inode as i64);
    set.execute(params![
        size,
        file.stat.mtime_ns,
        inode,
        file.sha256,
        file.skipped,
        still_pending,
        same,
        now,
        clock,
        file.id
    ])?;
    Ok(())
}

fn write_chunks(
    tx: &Connection,
    file: &PreparedFile,
    texts: &[u8],
    first: i64,
    now: i64,
) -> Result<(), StoreError> {
    let mut add = tx.prepare_cached(
        "INSERT INTO chunk(id, file_id, start_line, end_line, byte_range_start, byte_range_end, lead, text,
         fingerprint, tokens, created_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for (id, c) in (first..).zip(&file.chunks) {
        let w = &c.window;
        add.execute(params![
            id,
            file.id,
            w.start_line,
            w.end_line,
            w.start as i64,
            w.end as i64,
            c.packed.lead,
            (c.packed.lead == 0).then(|| texts.get(c.packed.frame.clone()).unwrap_or(&[])),
            c.fingerprint,
            c.tokens,
            now
        ])?;
    }
    Ok(())
}
