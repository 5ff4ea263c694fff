//! The stages after the text, in small batches: vectors of chunks, symbols and references of files.

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use cairn_code_graph::{FileImports, extract_imports, has_imports};
use cairn_protocol::error::{Failure, Reason};
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, Row, params};
use cairn_workspace::language_of;
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::base_index;
use crate::db::{meta, pending, set_meta};
use crate::ingest::write;
use crate::root_index::RootIndex;
use cairn_symbols::extract::{self, Extracted, ParseInput, Unavailable, try_extract};
use cairn_text_index::packed::{self, Frames, unpack};
use cairn_vectors::Embedder;
use cairn_vectors::Records;

/// Maximum files of one batch of symbols.
const SYMBOL_BATCH: usize = 64;
/// Maximum bytes of text in one batch of symbols.
const SYMBOL_BYTES: i64 = 4 * 1024 * 1024;

struct Piece {
    id: i64,
    file: i64,
    text: Vec<u8>,
}

/// Opens the matrix, so that semantic search finds its chunks that are not known to be removed.
pub fn open_vectors(index: &RootIndex, conn: &mut Connection) -> Result<(), Failure> {
    index.dense.open().map_err(|e| io_failure(index, &e))?;
    index.dense.mark_dead(cairn_text_index::removed_chunks(conn)?);
    Ok(())
}

/// Reconciles the open matrix with the database: drops vectors of another model and appends missing
/// records. Returns true if there were vectors of another model.
pub fn check_vectors(index: &RootIndex, conn: &mut Connection) -> Result<bool, Failure> {
    let model = base_index::model(&index.opts.embedder);
    let stored_model = meta(conn, "model")?;
    let stale = stored_model.is_some_and(|stored_model| stored_model != model);
    if stored_model != Some(model) {
        write(index, conn, |tx| {
            if stale {
                tx.execute("DELETE FROM chunk_vec", [])?;
                tx.execute(
                    "UPDATE file SET pending_stages = pending_stages | 2 WHERE skipped IS NULL",
                    [],
                )?;
            }
            set_meta(tx, "model", model)
        })?;
    }
    let stored_ids = index.dense.ids();
    let mut sql = conn
        .prepare(
            "SELECT c.id, c.file_id FROM chunk c INDEXED BY chunk_file JOIN file f ON f.id = c.file_id
         WHERE f.pending_stages & 2 = 0 OR EXISTS (SELECT 1 FROM chunk_vec v WHERE v.chunk_id = c.id)",
        )
        .map_err(StoreError::from)?;
    let current: Vec<(i64, u32)> = sql
        .query_map([], |r| Ok((r.get(0)?, r.get(1)?)))
        .and_then(Iterator::collect)
        .map_err(StoreError::from)?;
    if index.is_stopping() {
        return Ok(stale);
    }
    let alive: FxHashSet<i64> = current.iter().map(|(id, _)| *id).collect();
    let stored_set: FxHashSet<i64> = stored_ids.iter().copied().collect();
    index.dense.mark_dead(stored_ids.into_iter().filter(|id| !alive.contains(id)));
    let mut get = conn
        .prepare("SELECT vec, dim FROM chunk_vec WHERE chunk_id = ?")
        .map_err(StoreError::from)?;
    let mut records = Records::default();
    for (id, file) in current.into_iter().filter(|(id, _)| !stored_set.contains(id)) {
        let read_vector = |r: &Row<'_>| {
            Ok(cairn_vectors::unpack(r.get_ref(0)?.as_blob().unwrap_or(&[]), r.get(1)?))
        };
        let vector: Option<Vec<f32>> =
            get.query_row([id], read_vector).map_err(StoreError::from)?;
        if let Some(vector) = vector.filter(|v| v.len() == index.opts.embedder.dim()) {
            index.dense.encode(id, file, &vector, &mut records);
        }
        if records.len() > 1 << 20 {
            index.dense.append(&records).map_err(|e| io_failure(index, &e))?;
            records.clear();
        }
    }
    index.dense.append(&records).map_err(|e| io_failure(index, &e))?;
    Ok(stale)
}

fn io_failure(index: &RootIndex, error: &std::io::Error) -> Failure {
    let reason = match error.kind() {
        std::io::ErrorKind::StorageFull => Reason::DiskFull,
        _ => Reason::StorageFailed,
    };
    Failure::new(reason, format!("vectors of {}: {error}", index.root.path.display()))
}

/// Embeds a batch of chunks and returns their number; `None` if none is pending or the index is
/// closing.
pub fn vector_batch(index: &RootIndex, conn: &mut Connection) -> Result<Option<usize>, Failure> {
    let embedder = &index.opts.embedder;
    let (files, pieces) = pending_vectors(conn, embedder)?;
    if files.is_empty() && pieces.is_empty() {
        return Ok(None);
    }
    let texts: Vec<[&[u8]; 3]> =
        pieces.iter().map(|(path, p)| [path.as_bytes(), b" ", p.text.as_slice()]).collect();
    let vectors =
        index.opts.pool.install(|| embedder.embed_all(&texts, &|| !index.is_stopping()))?;
    let Some(vectors) = vectors else { return Ok(None) };
    let mut embedded: Vec<(i64, i64, Vec<f32>)> =
        pieces.iter().zip(vectors).map(|((_, p), vector)| (p.id, p.file, vector)).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
    embedded.sort_unstable_by_key(|(id, _, _)| *id);
    // Records that survived a crash although their rows in the database did not.
    let revived = index.dense.revive(embedded.iter().map(|(id, _, _)| *id));
    let mut records = Records::default();
    for (id, file, vector) in embedded.iter().filter(|(id, _, _)| !revived.contains(id)) {
        index.dense.encode(*id, *file as u32, vector, &mut records);
    }
    index.dense.append(&records).map_err(|e| io_failure(index, &e))?;
    write(index, conn, |tx| {
        let mut add = tx.prepare_cached(
            "INSERT OR REPLACE INTO chunk_vec(chunk_id, dim, vec, created_at) VALUES(?, ?, ?, ?)",
        )?;
        let (mut halves, mut bytes) = (Vec::new(), Vec::new());
        for (id, _, vector) in &embedded {
            cairn_vectors::pack(vector, &mut halves, &mut bytes);
            add.execute(params![id, vector.len() as i64, bytes, now])?;
        }
        clear_pending(tx, &files, pending::VECTORS)
    })?;
    index.update(|p| p.counts.vectors += embedded.len() as u64);
    Ok(Some(embedded.len()))
}

fn clear_pending(tx: &Connection, files: &[i64], bit: i64) -> Result<(), StoreError> {
    let mut clear =
        tx.prepare_cached("UPDATE file SET pending_stages = pending_stages & ~? WHERE id = ?")?;
    files.iter().try_for_each(|id| clear.execute([bit, *id]).map(drop))?;
    Ok(())
}

type Pieces = Vec<(std::sync::Arc<str>, Piece)>;

/// Reads a batch of pending chunks. Returns the files that are complete with this batch, and its
/// chunks. A table embeds entire files; a transformer may split a long file over several batches,
/// so that changes do not wait for all of it.
fn pending_vectors(
    conn: &Connection,
    embedder: &Embedder,
) -> Result<(Vec<i64>, Pieces), StoreError> {
    let (most, parts) = (embedder.batch(), embedder.is_transformer());
    let mut pending_files = conn.prepare_cached(
        "SELECT id, path FROM file
         WHERE pending_stages <> 0 AND pending_stages & 2 LIMIT 512",
    )?;
    let without = if parts {
        "AND NOT EXISTS (SELECT 1 FROM chunk_vec v WHERE v.chunk_id = chunk.id)"
    } else {
        ""
    };
    let sql =
        format!("SELECT {} FROM chunk WHERE file_id = ? {without} ORDER BY id", packed::COLUMNS);
    let mut chunks = conn.prepare_cached(&sql)?;
    let mut frames = Frames::default();
    let (mut files, mut pieces) = (Vec::new(), Pieces::new());
    let mut rows = pending_files.query([])?;
    while let Some(row) = rows.next()? {
        let file: i64 = row.get(0)?;
        let path: std::sync::Arc<str> =
            row.get_ref(1)?.as_str().unwrap_or("").replace('/', " ").into();
        let mut rows = chunks.query([file])?;
        while let Some(c) = rows.next()? {
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

/// Parses a batch of files and returns their number; `None` if no file is pending.
///
/// # Errors
/// `overloaded` if no parser can be started: the files remain pending, so that the index is neither
/// complete now nor after a restart.
pub fn symbol_batch(index: &RootIndex, conn: &mut Connection) -> Result<Option<usize>, Failure> {
    let files = pending_symbols(conn)?;
    if files.is_empty() {
        return Ok(None);
    }
    let outcomes: Vec<Result<ParsedFile, Unavailable>> = index.opts.pool.install(|| {
        let parse = |(id, path, text): &(i64, String, Vec<u8>)| {
            let lang = language_of(path).filter(|_| !index.is_stopping());
            let extract = |l| try_extract(ParseInput::Reduced, l, path, text, &index.stop);
            Ok(ParsedFile {
                id: *id,
                definitions: lang.map(extract).transpose()?.flatten(),
                imports: lang.map(|lang| extract_imports(lang, path, text)).unwrap_or_default(),
            })
        };
        files.par_iter().map(parse).collect()
    });
    let (mut parsed, mut unavailable) = (Vec::with_capacity(outcomes.len()), None);
    for outcome in outcomes {
        match outcome {
            Ok(file) => parsed.push(file),
            Err(error) => unavailable = Some(error),
        }
    }
    if index.is_stopping() {
        return Ok(None);
    }
    if files.iter().any(|(_, _, text)| text.len() > extract::TRIM_BYTES) {
        (index.opts.trim_memory)();
    }
    let ids: Vec<i64> = parsed.iter().map(|file| file.id).collect();
    let count = parsed
        .iter()
        .filter_map(|file| file.definitions.as_ref())
        .map(|definitions| definitions.symbols.len() as u64)
        .sum::<u64>();
    let last_symbol = index.base.as_ref().map_or(0, |base| base.limits.symbol);
    write(index, conn, |tx| {
        parsed.iter().try_for_each(|file| write_parsed(tx, file, last_symbol))?;
        clear_pending(tx, &ids, pending::SYMBOLS)
    })?;
    index.imports_version.fetch_add(1, Ordering::Release);
    index.update(|p| {
        p.counts.symbols += count;
        p.counts.symbol_files += ids.len() as u64;
    });
    match unavailable {
        // The worker reports it, and tries again after a pause.
        Some(error) => {
            let pending = files.len() - ids.len();
            let text = format!("definitions of {pending} files or more are pending: {error}");
            Err(Failure::new(Reason::Overloaded, text))
        }
        None => Ok(Some(ids.len())),
    }
}

fn pending_symbols(conn: &Connection) -> Result<Vec<(i64, String, Vec<u8>)>, StoreError> {
    let mut pending_files = conn.prepare_cached(
        "SELECT id, path, size_bytes FROM file
         WHERE pending_stages <> 0 AND pending_stages & 4 LIMIT 512",
    )?;
    let mut chunks =
        conn.prepare_cached("SELECT text FROM chunk WHERE file_id = ? AND lead = 0 ORDER BY id")?;
    let (mut files, mut bytes) = (Vec::new(), 0);
    let mut rows = pending_files.query([])?;
    while let Some(row) = rows.next()? {
        let (id, path): (i64, String) = (row.get(0)?, row.get(1)?);
        let mut text = Vec::new();
        let lang = language_of(&path).unwrap_or("");
        if extract::has_definitions(lang) || has_imports(lang) {
            let mut rows = chunks.query([id])?;
            while let Some(c) = rows.next()? {
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

/// The definitions and imports of a file.
struct ParsedFile {
    id: i64,
    definitions: Option<Extracted>,
    imports: FileImports,
}

/// Writes the definitions of a file; their ids are higher than `last_symbol`.
fn write_parsed(tx: &Connection, parsed: &ParsedFile, last_symbol: i64) -> Result<(), StoreError> {
    let file = parsed.id;
    for table in ["symbol", "file_ref", "file_import"] {
        tx.prepare_cached(&format!("DELETE FROM {table} WHERE file_id = ?"))?.execute([file])?;
    }
    if parsed.imports != FileImports::default() {
        tx.prepare_cached("INSERT INTO file_import(file_id, imports) VALUES(?, ?)")?
            .execute(params![file, parsed.imports.encode()])?;
    }
    let Some(extracted) = &parsed.definitions else { return Ok(()) };
    let mut add = tx.prepare_cached(
        "INSERT INTO symbol(id, file_id, name, folded, kind, container, start_line, end_line)
         VALUES(max(ifnull((SELECT max(id) FROM main.symbol), 0), ?8) + 1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for s in &extracted.symbols {
        add.execute(params![
            file,
            s.name,
            s.name.to_lowercase(),
            s.kind,
            s.container,
            s.start_line,
            s.end_line,
            last_symbol
        ])?;
    }
    let idents: Vec<u8> = extracted.idents.iter().flat_map(|h| h.to_le_bytes()).collect();
    tx.prepare_cached("INSERT INTO file_ref(file_id, idents) VALUES(?, ?)")?
        .execute(params![file, idents])?;
    Ok(())
}
