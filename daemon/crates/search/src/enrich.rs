//! What comes after the text: vectors of chunks, symbols and references of files, in small batches.

use std::time::{SystemTime, UNIX_EPOCH};

use cairn_protocol::error::{Failure, Reason};
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, Row, params};
use cairn_workspace::language_of;
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::db::{due, meta, set_meta};
use crate::dense::Records;
use crate::embed::Embedder;
use crate::ingest::write;
use crate::live::Live;
use crate::packed::{self, Frames, unpack};
use crate::postings;
use crate::symbols::extract::{self, Extracted};
use crate::vector;

/// Files of one batch of symbols.
const SYMBOL_BATCH: usize = 64;
/// Text of one batch of symbols, in bytes.
const SYMBOL_BYTES: i64 = 4 * 1024 * 1024;

struct Piece {
    id: i64,
    file: i64,
    text: Vec<u8>,
}

/// Opens the matrix, so that searches find by meaning what is in it and not known to be gone.
pub fn open_vectors(live: &Live, conn: &mut Connection) -> Result<(), Failure> {
    live.dense.open().map_err(|e| io_failure(live, &e))?;
    live.dense.forget(postings::gone(conn)?);
    Ok(())
}

/// Makes the open matrix and the database agree: vectors of another model are dropped, missing records appended. True when
/// there were such vectors.
pub fn check_vectors(live: &Live, conn: &mut Connection) -> Result<bool, Failure> {
    let model = i64::from_le_bytes(*live.opts.embedder.hash().first_chunk().unwrap_or(&[0; 8]));
    let have = meta(conn, "model")?;
    let stale = have.is_some_and(|have| have != model);
    if have != Some(model) {
        write(live, conn, |tx| {
            if stale {
                tx.execute("DELETE FROM chunk_vec", [])?;
                tx.execute("UPDATE file SET due = due | 2 WHERE skipped IS NULL", [])?;
            }
            set_meta(tx, "model", model)
        })?;
    }
    let held = live.dense.ids();
    let mut sql = conn
        .prepare(
            "SELECT c.id, c.file_id FROM chunk c INDEXED BY chunk_file JOIN file f ON f.id = c.file_id
         WHERE f.due & 2 = 0 OR EXISTS (SELECT 1 FROM chunk_vec v WHERE v.chunk_id = c.id)",
        )
        .map_err(StoreError::from)?;
    let current: Vec<(i64, u32)> = sql
        .query_map([], |r| Ok((r.get(0)?, r.get(1)?)))
        .and_then(Iterator::collect)
        .map_err(StoreError::from)?;
    if live.stopping() {
        return Ok(stale);
    }
    let alive: FxHashSet<i64> = current.iter().map(|(id, _)| *id).collect();
    let held_set: FxHashSet<i64> = held.iter().copied().collect();
    live.dense.forget(held.into_iter().filter(|id| !alive.contains(id)));
    let mut get =
        conn.prepare("SELECT vec, dim FROM chunk_vec WHERE chunk_id = ?").map_err(StoreError::from)?;
    let mut records = Records::default();
    for (id, file) in current.into_iter().filter(|(id, _)| !held_set.contains(id)) {
        let kept = |r: &Row<'_>| Ok(vector::unpack(r.get_ref(0)?.as_blob().unwrap_or(&[]), r.get(1)?));
        let found: Option<Vec<f32>> = get.query_row([id], kept).map_err(StoreError::from)?;
        if let Some(vector) = found.filter(|v| v.len() == live.opts.embedder.dim()) {
            live.dense.record(id, file, &vector, &mut records);
        }
        if records.len() > 1 << 20 {
            live.dense.append(&records).map_err(|e| io_failure(live, &e))?;
            records.clear();
        }
    }
    live.dense.append(&records).map_err(|e| io_failure(live, &e))?;
    Ok(stale)
}

fn io_failure(live: &Live, error: &std::io::Error) -> Failure {
    let reason = match error.kind() {
        std::io::ErrorKind::StorageFull => Reason::DiskFull,
        _ => Reason::StorageFailed,
    };
    Failure::new(reason, format!("vectors of {}: {error}", live.root.path.display()))
}

/// Embeds some chunks. Returns how many, or nothing when none is waiting or the index is closing.
pub fn vector_batch(live: &Live, conn: &mut Connection) -> Result<Option<usize>, Failure> {
    let embedder = &live.opts.embedder;
    let (files, pieces) = vectors_due(conn, embedder)?;
    if files.is_empty() && pieces.is_empty() {
        return Ok(None);
    }
    let texts: Vec<[&[u8]; 3]> =
        pieces.iter().map(|(path, p)| [path.as_bytes(), b" ", p.text.as_slice()]).collect();
    let vectors = live.opts.pool.install(|| embedder.embed_all(&texts, &|| !live.stopping()))?;
    let Some(vectors) = vectors else { return Ok(None) };
    let mut made: Vec<(i64, i64, Vec<f32>)> =
        pieces.iter().zip(vectors).map(|((_, p), vector)| (p.id, p.file, vector)).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
    made.sort_unstable_by_key(|(id, _, _)| *id);
    // Records that a crash kept and whose rows in the database it did not.
    let revived = live.dense.revive(made.iter().map(|(id, _, _)| *id));
    let mut records = Records::default();
    for (id, file, vector) in made.iter().filter(|(id, _, _)| !revived.contains(id)) {
        live.dense.record(*id, *file as u32, vector, &mut records);
    }
    live.dense.append(&records).map_err(|e| io_failure(live, &e))?;
    write(live, conn, |tx| {
        let mut add = tx.prepare_cached(
            "INSERT OR REPLACE INTO chunk_vec(chunk_id, dim, vec, created_at) VALUES(?, ?, ?, ?)",
        )?;
        let (mut halves, mut bytes) = (Vec::new(), Vec::new());
        for (id, _, vector) in &made {
            vector::pack(vector, &mut halves, &mut bytes);
            add.execute(params![id, vector.len() as i64, bytes, now])?;
        }
        clear_due(tx, &files, due::VECTORS)
    })?;
    live.update(|p| p.counts.vectors += made.len() as u64);
    Ok(Some(made.len()))
}

fn clear_due(tx: &Connection, files: &[i64], bit: i64) -> Result<(), StoreError> {
    let mut clear = tx.prepare_cached("UPDATE file SET due = due & ~? WHERE id = ?")?;
    files.iter().try_for_each(|id| clear.execute([bit, *id]).map(drop))?;
    Ok(())
}

type Pieces = Vec<(std::sync::Arc<str>, Piece)>;

/// Files that have all their vectors with the chunks that are read, and those chunks. A table embeds whole files; a
/// transformer takes the chunks of a long file in parts, so that what changes meanwhile need not wait for the rest.
fn vectors_due(conn: &Connection, embedder: &Embedder) -> Result<(Vec<i64>, Pieces), StoreError> {
    let (most, parts) = (embedder.batch(), embedder.is_transformer());
    let mut waiting =
        conn.prepare_cached("SELECT id, path FROM file WHERE due <> 0 AND due & 2 LIMIT 512")?;
    let without =
        if parts { "AND NOT EXISTS (SELECT 1 FROM chunk_vec v WHERE v.chunk_id = chunk.id)" } else { "" };
    let sql = format!("SELECT {} FROM chunk WHERE file_id = ? {without} ORDER BY id", packed::COLUMNS);
    let mut chunks = conn.prepare_cached(&sql)?;
    let mut frames = Frames::default();
    let (mut files, mut pieces) = (Vec::new(), Pieces::new());
    let mut rows = waiting.query([])?;
    while let Some(row) = rows.next()? {
        let file: i64 = row.get(0)?;
        let path: std::sync::Arc<str> = row.get_ref(1)?.as_str().unwrap_or("").replace('/', " ").into();
        let mut own = chunks.query([file])?;
        while let Some(c) = own.next()? {
            if parts && pieces.len() >= most {
                return Ok((files, pieces));
            }
            let (id, text) = frames.piece(conn, c, 0)?;
            pieces.push((path.clone(), Piece { id, file, text: text.to_vec() }));
        }
        files.push(file);
        if pieces.len() >= most {
            break;
        }
    }
    Ok((files, pieces))
}

/// Parses some files. Returns how many, or nothing when no file is waiting.
pub fn symbol_batch(live: &Live, conn: &mut Connection) -> Result<Option<usize>, Failure> {
    let files = symbols_due(conn)?;
    if files.is_empty() {
        return Ok(None);
    }
    let made: Vec<(i64, Option<Extracted>)> = live.opts.pool.install(|| {
        let parse = |(id, path, text): &(i64, String, Vec<u8>)| {
            let lang = language_of(path).filter(|_| !live.stopping());
            (*id, lang.and_then(|lang| extract::extract(lang, path, text, &live.stop)))
        };
        files.par_iter().map(parse).collect()
    });
    if live.stopping() {
        return Ok(None);
    }
    if files.iter().any(|(_, _, text)| text.len() > extract::LARGE) {
        (live.opts.give_back)();
    }
    let ids: Vec<i64> = made.iter().map(|(id, _)| *id).collect();
    let count = made.iter().filter_map(|(_, e)| e.as_ref()).map(|e| e.symbols.len() as u64).sum::<u64>();
    write(live, conn, |tx| {
        made.iter().try_for_each(|(id, found)| write_symbols(tx, *id, found.as_ref()))?;
        clear_due(tx, &ids, due::SYMBOLS)
    })?;
    live.update(|p| {
        p.counts.symbols += count;
        p.counts.symbol_files += ids.len() as u64;
    });
    Ok(Some(ids.len()))
}

fn symbols_due(conn: &Connection) -> Result<Vec<(i64, String, Vec<u8>)>, StoreError> {
    let mut waiting =
        conn.prepare_cached("SELECT id, path, size_bytes FROM file WHERE due <> 0 AND due & 4 LIMIT 512")?;
    let mut chunks =
        conn.prepare_cached("SELECT text FROM chunk WHERE file_id = ? AND lead = 0 ORDER BY id")?;
    let (mut files, mut bytes) = (Vec::new(), 0);
    let mut rows = waiting.query([])?;
    while let Some(row) = rows.next()? {
        let (id, path): (i64, String) = (row.get(0)?, row.get(1)?);
        let mut text = Vec::new();
        if extract::is_parsed(language_of(&path).unwrap_or("")) {
            let mut own = chunks.query([id])?;
            while let Some(c) = own.next()? {
                text.extend_from_slice(&unpack(c.get_ref(0)?.as_blob().unwrap_or(&[])));
            }
        }
        bytes += text.len() as i64;
        files.push((id, path, text));
        if bytes > SYMBOL_BYTES || (bytes > 0 && files.len() >= SYMBOL_BATCH) {
            break;
        }
    }
    Ok(files)
}

fn write_symbols(tx: &Connection, file: i64, found: Option<&Extracted>) -> Result<(), StoreError> {
    tx.prepare_cached("DELETE FROM symbol WHERE file_id = ?")?.execute([file])?;
    tx.prepare_cached("DELETE FROM file_ref WHERE file_id = ?")?.execute([file])?;
    let Some(found) = found else { return Ok(()) };
    let mut add = tx.prepare_cached(
        "INSERT INTO symbol(file_id, name, folded, kind, container, start_line, end_line) VALUES(?, ?, ?, ?, ?, ?, ?)",
    )?;
    for s in &found.symbols {
        add.execute(params![
            file,
            s.name,
            s.name.to_lowercase(),
            s.kind,
            s.container,
            s.start_line,
            s.end_line
        ])?;
    }
    let idents: Vec<u8> = found.idents.iter().flat_map(|h| h.to_le_bytes()).collect();
    tx.prepare_cached("INSERT INTO file_ref(file_id, idents) VALUES(?, ?)")?
        .execute(params![file, idents])?;
    Ok(())
}
