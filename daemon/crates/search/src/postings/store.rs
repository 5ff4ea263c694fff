//! Segments and the database: which files there are, which chunks in them are gone, and what is made again at opening.

use std::sync::Arc;

use cairn_protocol::error::Failure;
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, params};
use rustc_hash::FxHashSet;

use super::segment::{Doc, Segment};
use super::set::{HELD_DOCS, Postings};
use super::{Builder, merge};
use crate::db::write_file;
use crate::ingest::quietly;
use crate::live::Live;
use crate::packed::Frames;

/// New windows as a transaction leaves them: what queries are to see once it is committed.
#[derive(Default)]
pub struct Pending {
    old: Vec<Arc<Segment>>,
    fresh: Vec<Segment>,
}

impl Pending {
    /// Shows queries what was written. Call it after the commit.
    pub fn publish(self, postings: &Postings) {
        postings.replace(&self.old, self.fresh);
        postings.tidy_held();
    }

    /// Takes back what was written before its transaction failed.
    pub fn withdraw(self, postings: &Postings) {
        for segment in self.fresh.iter().filter(|s| s.id != 0) {
            let _ = std::fs::remove_file(postings.file(segment.id));
        }
    }
}

/// Adds the windows of a builder, whose chunk ids begin at `first`: to a file, with what is in memory, when they are many.
/// `pending` is empty before.
pub fn add(
    tx: &Connection,
    postings: &Postings,
    builder: Builder,
    first: u64,
    pending: &mut Pending,
) -> Result<(), StoreError> {
    let Some(segment) = builder.finish(first) else { return Ok(()) };
    let Some(old) = postings.snapshot().to_file(segment.docs()) else {
        pending.fresh.push(segment);
        return Ok(());
    };
    let all: Vec<&Segment> = old.iter().map(|s| &**s).chain([&segment]).collect();
    let merged = if old.is_empty() { None } else { merge::merge(&all) };
    pending.fresh.push(match merged {
        Some(parts) => to_file(tx, postings, &parts.slices())?,
        None => to_file(tx, postings, &[segment.bytes()])?,
    });
    pending.old = old;
    Ok(())
}

/// Writes a segment's file, to the disk before the transaction that names it.
fn to_file(tx: &Connection, postings: &Postings, parts: &[&[u8]]) -> Result<Segment, StoreError> {
    tx.prepare_cached("INSERT INTO segment(bytes) VALUES(?)")?
        .execute([parts.iter().map(|part| part.len() as i64).sum::<i64>()])?;
    let id = tx.last_insert_rowid();
    let path = postings.file(id);
    let io = |source| StoreError::Io { path: path.clone(), source };
    write_file(&path, parts)?;
    let segment = Segment::mapped(&path, id).map_err(io)?;
    let segment = segment.ok_or_else(|| StoreError::Corrupt("a fresh segment cannot be read".into()))?;
    let (first, last) = segment.range();
    tx.prepare_cached("UPDATE segment SET first_chunk = ?, last_chunk = ?, docs = ? WHERE id = ?")?
        .execute(params![first as i64, last as i64, segment.docs(), id])?;
    Ok(segment)
}

/// Merges files until at most `limit` are left, or as many as can be.
pub fn tidy(live: &Live, conn: &mut Connection, limit: usize) -> Result<(), Failure> {
    while let Some(group) = live.postings.snapshot().untidy(limit) {
        if live.stopping() {
            return Ok(());
        }
        let refs: Vec<&Segment> = group.iter().map(|s| &**s).collect();
        // This thread alone kills documents, so that what is dead now is what the merge leaves out.
        let dead: Vec<u64> = group
            .iter()
            .flat_map(|s| (0..s.docs()).filter(|d| s.is_dead(*d)).map(|d| s.doc(d).chunk).collect::<Vec<_>>())
            .collect();
        let merged = merge::merge(&refs);
        let fresh = quietly(conn, |tx| {
            let fresh = merged.map(|parts| to_file(tx, &live.postings, &parts.slices())).transpose()?;
            let mut drop_row = tx.prepare_cached("DELETE FROM segment WHERE id = ?")?;
            group.iter().try_for_each(|s| drop_row.execute([s.id]).map(drop))?;
            let mut forget = tx.prepare_cached("DELETE FROM gone_chunk WHERE chunk_id = ?")?;
            dead.iter().try_for_each(|id| forget.execute([*id as i64]).map(drop))?;
            Ok(fresh)
        })?;
        live.postings.replace(&group, fresh.into_iter().collect());
    }
    Ok(())
}

/// Puts everything in memory into a file, so that the next opening has nothing to make again.
pub fn settle(live: &Live, conn: &mut Connection) -> Result<(), Failure> {
    let snapshot = live.postings.snapshot();
    let Some(held) = snapshot.to_file(HELD_DOCS).filter(|held| !held.is_empty()) else { return Ok(()) };
    let refs: Vec<&Segment> = held.iter().map(|s| &**s).collect();
    let Some(merged) = merge::merge(&refs) else { return Ok(()) };
    let fresh = quietly(conn, |tx| to_file(tx, &live.postings, &merged.slices()))?;
    live.postings.replace(&held, vec![fresh]);
    Ok(())
}

/// A segment's row: its id, first and last chunk.
type Row = (i64, i64, i64);

fn rows(conn: &Connection) -> Result<Vec<Row>, StoreError> {
    let mut all =
        conn.prepare_cached("SELECT id, first_chunk, last_chunk FROM segment ORDER BY first_chunk")?;
    let rows = all.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Opens the segments the database names, so that searches find them; what is missing is left to [`heal`].
///
/// # Errors
/// When the database cannot be read.
pub fn open(live: &Live, conn: &Connection) -> Result<(), StoreError> {
    let is_whole = |(id, first, last): &Row| {
        let segment = Segment::mapped(&live.postings.file(*id), *id).ok()??;
        (segment.range() == (*first as u64, *last as u64)).then_some(segment)
    };
    let files = rows(conn)?.iter().filter_map(is_whole).collect();
    live.postings.set(files);
    live.postings.kill(&gone(conn)?);
    Ok(())
}

/// Makes again from the chunks' text what is in no segment: what was in memory when the index was closed, and what was
/// in a damaged file.
///
/// # Errors
/// When the database cannot be read or written.
pub fn heal(live: &Live, conn: &mut Connection) -> Result<(), Failure> {
    let rows = rows(conn)?;
    let whole: FxHashSet<i64> = live.postings.snapshot().segments.iter().map(|s| s.id).collect();
    remove_strangers(live, &whole);
    clear_gone(live, conn)?;
    let mut lost: Vec<Row> = rows.iter().filter(|r| !whole.contains(&r.0)).copied().collect();
    if !lost.is_empty() {
        let root = live.root.path.display();
        tracing::warn!(%root, segments = lost.len(), "word segments are damaged, making them again");
    }
    lost.push((0, rows.iter().map(|r| r.2).max().unwrap_or(0) + 1, i64::MAX));
    lost.into_iter().try_for_each(|(id, first, last)| again(live, conn, id, first, last))
}

/// Deletes segment files that the database does not name: of a transaction that never was.
fn remove_strangers(live: &Live, known: &FxHashSet<i64>) {
    let known: FxHashSet<_> = known.iter().map(|id| live.postings.file(*id)).collect();
    for entry in std::fs::read_dir(&live.folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "seg") && !known.contains(&path) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The chunks that are gone and that a segment's file may still have.
///
/// # Errors
/// When the database cannot be read.
pub fn gone(conn: &Connection) -> Result<Vec<i64>, StoreError> {
    let mut all = conn.prepare("SELECT chunk_id FROM gone_chunk")?;
    Ok(all.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?)
}

/// Drops the rows of chunks that no segment has any more.
fn clear_gone(live: &Live, conn: &mut Connection) -> Result<(), StoreError> {
    let snapshot = live.postings.snapshot();
    let mut useless = gone(conn)?;
    useless.retain(|id| snapshot.find(*id as u64).is_none());
    if useless.is_empty() {
        return Ok(());
    }
    quietly(conn, |tx| {
        let mut forget = tx.prepare_cached("DELETE FROM gone_chunk WHERE chunk_id = ?")?;
        useless.iter().try_for_each(|id| forget.execute([id]).map(drop))?;
        Ok(())
    })
}

/// Makes the words of the chunks `first..=last` again, in the place of the segment `id`.
fn again(live: &Live, conn: &mut Connection, id: i64, first: i64, last: i64) -> Result<(), Failure> {
    let mut from = first;
    loop {
        let mut builder = Builder::default();
        let next = write_again(conn, &mut builder, from, last)?;
        let mut pending = Pending::default();
        if builder.len() == 0 && id == 0 {
            return Ok(());
        }
        let segment = builder.finish(0);
        quietly(conn, |tx| {
            // What is still to be made again stays in the row, should this end before all of it is done.
            match next {
                Some(next) => tx
                    .prepare_cached("UPDATE segment SET first_chunk = ? WHERE id = ?")?
                    .execute([next, id])?,
                None => tx.prepare_cached("DELETE FROM segment WHERE id = ?")?.execute([id])?,
            };
            let Some(segment) = segment else { return Ok(()) };
            if id == 0 && segment.docs() <= HELD_DOCS {
                pending.fresh.push(segment);
            } else {
                pending.fresh.push(to_file(tx, &live.postings, &[segment.bytes()])?);
            }
            Ok(())
        })?;
        pending.publish(&live.postings);
        match next {
            Some(next) if !live.stopping() => from = next,
            _ => return Ok(()),
        }
    }
}

/// Adds chunks from `from` on; returns where to go on when there are more.
fn write_again(
    conn: &Connection,
    builder: &mut Builder,
    from: i64,
    last: i64,
) -> Result<Option<i64>, StoreError> {
    let mut all = conn.prepare_cached(
        "SELECT c.id, c.file_id, c.start_line, c.end_line, c.fingerprint, f.path, c.id, c.lead, c.byte_range_start,
         c.byte_range_end, c.text FROM chunk c JOIN file f ON f.id = c.file_id WHERE c.id BETWEEN ? AND ? ORDER BY c.id",
    )?;
    let mut frames = Frames::default();
    let mut rows = all.query([from, last])?;
    while let Some(row) = rows.next()? {
        let chunk: u64 = row.get(0)?;
        if builder.len() >= 16 * HELD_DOCS as usize {
            return Ok(Some(chunk as i64));
        }
        let path = builder.path(row.get_ref(5)?.as_str().unwrap_or(""));
        let (_, text) = frames.piece(conn, row, 6)?;
        let doc = Doc {
            chunk,
            file: row.get(1)?,
            start_line: row.get(2)?,
            end_line: row.get(3)?,
            tokens: 0,
            fingerprint: row.get::<_, i64>(4)? as u64,
        };
        builder.add(doc, &path, text);
    }
    Ok(None)
}

/// Compares the segments with the chunks: what is in one and not in the other, told once for each kind.
///
/// # Errors
/// When the database cannot be read.
pub fn verify(live: &Live, conn: &Connection) -> Result<Vec<String>, StoreError> {
    let mut chunks: FxHashSet<i64> = {
        let mut all = conn.prepare("SELECT id FROM chunk")?;
        all.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?
    };
    let (mut strange, mut known) = (0u64, FxHashSet::default());
    for segment in &live.postings.snapshot().segments {
        for doc in (0..segment.docs()).filter(|d| !segment.is_dead(*d)) {
            let id = segment.doc(doc).chunk as i64;
            let is_new = known.insert(id);
            strange += u64::from(!chunks.remove(&id) || !is_new);
        }
    }
    let mut found = Vec::new();
    if strange > 0 {
        found.push(format!("{strange} windows of the word index are of no chunk, or there twice"));
    }
    if !chunks.is_empty() {
        found.push(format!("{} chunks are not in the word index", chunks.len()));
    }
    Ok(found)
}
