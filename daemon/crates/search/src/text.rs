//! The text of new and changed files: read and cut by some threads, written batch by batch by one.

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use cairn_protocol::error::Failure;
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, params};
use cairn_workspace::{FileStat, Root, WorkspaceError};
use crossbeam_channel::{Receiver, Sender};

use crate::chunk;
use crate::db::{due, meta, set_meta};
use crate::digest::sha256_all;
use crate::ingest::{remove_chunks, remove_file, write};
use crate::live::{Counts, Live};
use crate::packed::{self, Packed};
use crate::postings::{Builder, Doc, Pending, add, tidy};

/// Text of a reader's first batch and of its later ones, in bytes: something can be found soon, and then the work is
/// done in pieces whose words stay in the processor's cache.
const BATCH_BYTES: (usize, usize) = (512 * 1024, 4 * 1024 * 1024);
/// Files of one batch.
const BATCH_FILES: usize = 4096;
/// Text and files that are hashed together.
const GROUP_BYTES: usize = 1024 * 1024;
const GROUP_FILES: usize = 128;
/// Batches that may wait for the writer.
const QUEUE: usize = 1;
/// Files that one thread brings in as fast as several.
const FEW: usize = 8;
/// Segments from which they are merged while the pass goes on.
const MANY_SEGMENTS: usize = 48;

/// A file read and cut, ready to be written.
struct Prepared {
    id: i64,
    path: String,
    stat: FileStat,
    sha256: Option<[u8; 32]>,
    skipped: Option<&'static str>,
    size: usize,
    chunks: Vec<PreparedChunk>,
}

struct PreparedChunk {
    window: chunk::Window,
    /// Its frame is in the batch's `texts`.
    packed: Packed,
    fingerprint: i64,
    tokens: u32,
}

/// A file, or the id of one that is gone.
type Handed = Result<Prepared, i64>;

/// What a reader hands the writer: files, or the ids of those that are gone, and the words of all their windows in
/// the same order.
#[derive(Default)]
struct Batch {
    files: Vec<Handed>,
    words: Builder,
    /// The frames of their text.
    texts: Vec<u8>,
    bytes: usize,
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
    let threads = if due.len() <= FEW { 1 } else { live.opts.threads.max(1) };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (tx, next, due) = (tx.clone(), &next, &due);
            scope.spawn(move || read_some(live, due, next, &tx));
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

fn read_some(live: &Live, due: &[Due], next: &AtomicUsize, tx: &Sender<Batch>) {
    let (mut group, mut batch, mut limit) = (Group::default(), Batch::default(), BATCH_BYTES.0);
    loop {
        let one = due.get(next.fetch_add(1, Ordering::Relaxed));
        if live.stopping() {
            return;
        }
        if let Some((id, path, sha256)) = one {
            group.read(&live.root, live.opts.max_file_bytes, *id, path, *sha256);
        }
        if one.is_none() || group.is_full() {
            group.cut_into(&mut batch);
        }
        let full = batch.bytes >= limit || batch.files.len() >= BATCH_FILES;
        if (full || one.is_none()) && !batch.files.is_empty() {
            if tx.send(std::mem::take(&mut batch)).is_err() {
                return;
            }
            limit = (limit * 2).min(BATCH_BYTES.1);
        }
        if one.is_none() {
            return;
        }
    }
}

/// Files read but not hashed yet: many are hashed at once.
#[derive(Default)]
struct Group {
    /// Each file, and the hash of what is indexed of it.
    files: Vec<(Handed, Option<[u8; 32]>)>,
    texts: Vec<Vec<u8>>,
    bytes: usize,
}

impl Group {
    fn is_full(&self) -> bool {
        self.bytes >= GROUP_BYTES || self.files.len() >= GROUP_FILES
    }

    fn read(&mut self, root: &Root, max_bytes: u64, id: i64, path: &str, known: Option<[u8; 32]>) {
        if self.texts.len() == self.files.len() {
            self.texts.push(Vec::new());
        }
        let text = &mut self.texts[self.files.len()];
        let made = prepare(root, max_bytes, id, path.to_owned(), text);
        self.bytes += text.len();
        self.files.push((made.ok_or(id), known));
    }

    /// Hashes what was read, cuts what is new, and is empty again.
    fn cut_into(&mut self, batch: &mut Batch) {
        let texts: Vec<&[u8]> = self.texts[..self.files.len()].iter().map(Vec::as_slice).collect();
        let hashes = sha256_all(&texts);
        for (((made, known), text), hash) in self.files.drain(..).zip(texts).zip(hashes) {
            batch.files.push(made.map(|mut made| {
                if !matches!(made.skipped, Some("unreadable" | "too_large")) {
                    made.sha256 = Some(hash);
                    made.skipped = chunk::unfit(&made.path, text);
                }
                batch.bytes += made.size;
                if made.skipped.is_none() && known != Some(hash) {
                    cut(&mut made, text, &mut batch.words, &mut batch.texts);
                }
                made
            }));
        }
        if self.bytes > 4 * GROUP_BYTES {
            self.texts.clear();
        }
        self.bytes = 0;
    }
}

/// Reads a file. One that cannot be read or is left out has its reason; one that is gone is nothing.
fn prepare(root: &Root, max_bytes: u64, id: i64, path: String, buffer: &mut Vec<u8>) -> Option<Prepared> {
    buffer.clear();
    let read = root.open_file(&path).and_then(|file| {
        let unreadable = |source| WorkspaceError::Unreadable { path: path.clone(), source };
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
        path,
    };
    match read {
        Ok(stat) => made.stat = stat,
        Err(e) if e.is_not_found() => return None,
        Err(_) => {
            made.stat = root.stat(&made.path).ok()?;
            made.skipped = Some("unreadable");
            return Some(made);
        }
    }
    if made.stat.size > max_bytes || buffer.len() as u64 > max_bytes {
        buffer.clear();
        made.skipped = Some("too_large");
        return Some(made);
    }
    made.size = buffer.len();
    Some(made)
}

/// Cuts the text of a file that is to be indexed.
fn cut(made: &mut Prepared, text: &[u8], words: &mut Builder, texts: &mut Vec<u8>) {
    let path = words.path(&made.path);
    let windows = chunk::windows(text);
    let packed = packed::pack(text, &windows, texts);
    for (window, packed) in windows.into_iter().zip(packed) {
        let piece = &text[window.start..window.end];
        let fingerprint = chunk::fingerprint(piece);
        let doc = Doc {
            chunk: words.len() as u64,
            file: made.id as u32,
            start_line: window.start_line,
            end_line: window.end_line,
            tokens: 0,
            fingerprint: fingerprint as u64,
        };
        let tokens = words.add(doc, &path, piece);
        made.chunks.push(PreparedChunk { window, packed, fingerprint, tokens });
    }
}

fn write_all(live: &Live, conn: &mut Connection, rx: Receiver<Batch>, total: usize) -> Result<(), Failure> {
    let mut done = 0;
    for (batches, batch) in (1..).zip(rx) {
        if live.stopping() {
            return Ok(());
        }
        done += batch.files.len();
        let (mut delta, mut pending, mut gone) = (Counts::default(), Pending::default(), Vec::new());
        let written =
            write(live, conn, |tx| write_batch(tx, live, batch, &mut pending, &mut gone, &mut delta));
        if let Err(error) = written {
            pending.withdraw(&live.postings);
            return Err(error.into());
        }
        pending.publish(&live.postings);
        live.forget(gone);
        live.update(|p| {
            p.pending = (total - done.min(total)) as u64;
            p.counts.files += delta.files;
            p.counts.bytes += delta.bytes;
            p.counts.chunks += delta.chunks;
        });
        live.ease(batches);
        tidy(live, conn, MANY_SEGMENTS)?;
    }
    Ok(())
}

fn write_batch(
    tx: &Connection,
    live: &Live,
    batch: Batch,
    pending: &mut Pending,
    gone: &mut Vec<i64>,
    delta: &mut Counts,
) -> Result<(), StoreError> {
    let first = meta(tx, "next_chunk")?.unwrap_or(1);
    let mut next = first;
    for file in &batch.files {
        match file {
            Ok(made) => {
                if !write_file(tx, made, &batch.texts, next, gone, delta)? {
                    // Its windows are among the words already.
                    gone.extend(next..next + made.chunks.len() as i64);
                }
                next += made.chunks.len() as i64;
            }
            Err(id) => remove_file(tx, *id, gone)?,
        }
    }
    set_meta(tx, "next_chunk", next)?;
    add(tx, &live.postings, batch.words, first as u64, pending)
}

/// Writes one file: its row, and its chunks when its text is new. False when its chunks are not wanted.
fn write_file(
    tx: &Connection,
    made: &Prepared,
    texts: &[u8],
    first: i64,
    gone: &mut Vec<i64>,
    delta: &mut Counts,
) -> Result<bool, StoreError> {
    let old: Option<(Option<[u8; 32]>, Option<String>, i64)> = {
        let mut get = tx.prepare_cached("SELECT sha256, skipped, due FROM file WHERE id = ?")?;
        let mut rows = get.query([made.id])?;
        match rows.next()? {
            Some(r) => Some((r.get(0)?, r.get(1)?, r.get(2)?)),
            None => None,
        }
    };
    let Some((old_hash, old_skip, old_due)) = old else { return Ok(false) };
    let same = made.sha256.is_some() && old_hash == made.sha256 && old_skip.as_deref() == made.skipped;
    let left = match (same, made.skipped) {
        (true, _) => old_due & !due::TEXT,
        (false, None) => due::VECTORS | due::SYMBOLS,
        (false, Some(_)) => 0,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
    update_row(tx, made, left, same, now)?;
    if same {
        return Ok(false);
    }
    remove_chunks(tx, made.id, gone)?;
    if made.skipped.is_some() {
        tx.prepare_cached("DELETE FROM symbol WHERE file_id = ?")?.execute([made.id])?;
        tx.prepare_cached("DELETE FROM file_ref WHERE file_id = ?")?.execute([made.id])?;
        return Ok(false);
    }
    delta.files += 1;
    delta.bytes += made.size as u64;
    delta.chunks += made.chunks.len() as u64;
    write_chunks(tx, made, texts, first, now)?;
    Ok(true)
}

fn update_row(tx: &Connection, made: &Prepared, left: i64, same: bool, now: i64) -> Result<(), StoreError> {
    let clock = meta(tx, "clock")?.unwrap_or(0);
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
    Ok(())
}

fn write_chunks(
    tx: &Connection,
    made: &Prepared,
    texts: &[u8],
    first: i64,
    now: i64,
) -> Result<(), StoreError> {
    let mut add = tx.prepare_cached(
        "INSERT INTO chunk(id, file_id, start_line, end_line, byte_range_start, byte_range_end, lead, text,
         fingerprint, tokens, created_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for (id, c) in (first..).zip(&made.chunks) {
        let w = &c.window;
        add.execute(params![
            id,
            made.id,
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
