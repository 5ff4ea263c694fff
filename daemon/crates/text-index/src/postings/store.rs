//! Persistence of segments: which files exist, which of their chunks were removed, and the repair
//! at opening.

use std::sync::Arc;

use cairn_index_base::{write_file, write_without_clock};
use cairn_protocol::error::Failure;
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, params};
use rustc_hash::FxHashSet;

use super::segment::{Doc, Segment};
use super::set::{MEMORY_DOCS, Postings};
use super::{Builder, merge};
use crate::packed::Frames;

/// Segments written by a transaction, which queries may see once it is committed.
#[derive(Default)]
pub struct Pending {
    old: Vec<Arc<Segment>>,
    fresh: Vec<Segment>,
}

impl Pending {
    /// Makes the new segments visible to queries. Call it after the commit.
    pub fn publish(self, postings: &Postings) {
        postings.replace(&self.old, self.fresh);
        postings.merge_in_memory();
    }

    /// Deletes the files that were written before the transaction failed.
    pub fn withdraw(self, postings: &Postings) {
        for segment in self.fresh.iter().filter(|s| s.id != 0) {
            let _ = std::fs::remove_file(postings.file(segment.id));
        }
    }
}

impl Postings {
    /// Adds the windows of a builder, whose chunk ids start at `first`. If they are many, they are
    /// written to a file together with the segments in memory. `pending` must be empty.
    pub fn add(
        &self,
        tx: &Connection,
        builder: Builder,
        first: u64,
        pending: &mut Pending,
    ) -> Result<(), StoreError> {
        let Some(segment) = builder.finish(first) else { return Ok(()) };
        let Some(old) = self.snapshot().spill_candidates(segment.docs()) else {
            pending.fresh.push(segment);
            return Ok(());
        };
        let all: Vec<&Segment> = old.iter().map(|s| &**s).chain([&segment]).collect();
        let merged = if old.is_empty() { None } else { merge::merge(&all) };
        pending.fresh.push(match merged {
            Some(parts) => write_segment(tx, self, &parts.slices())?,
            None => write_segment(tx, self, &[segment.bytes()])?,
        });
        pending.old = old;
        Ok(())
    }

    /// Opens the segments that the database lists; [`Postings::repair`] restores missing ones.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn open(&self, conn: &Connection) -> Result<(), StoreError> {
        let is_complete = |(id, first, last): &Row| {
            let segment = Segment::mapped(&self.file(*id), *id).ok()??;
            (segment.range() == (*first as u64, *last as u64)).then_some(segment)
        };
        let own = rows(conn)?.iter().filter_map(is_complete).collect();
        self.set(own);
        self.mark_dead(&removed_chunks(conn)?);
        Ok(())
    }

    /// Indexes the chunks that are in no segment again from their text: those that were only in
    /// memory when the index was closed, and those of damaged files.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub fn repair(&self, conn: &mut Connection) -> Result<(), Failure> {
        let rows = rows(conn)?;
        let readable: FxHashSet<i64> = self.snapshot().segments.iter().map(|s| s.id).collect();
        remove_orphans(self, &readable);
        purge_removed(self, conn)?;
        let mut damaged: Vec<Row> =
            rows.iter().filter(|r| !readable.contains(&r.0)).copied().collect();
        if !damaged.is_empty() {
            let root = self.context.root.display();
            tracing::warn!(%root, segments = damaged.len(), "word segments are damaged, rebuilding them");
        }
        damaged.push((0, rows.iter().map(|r| r.2).max().unwrap_or(0) + 1, i64::MAX));
        damaged
            .into_iter()
            .try_for_each(|(id, first, last)| rebuild_range(self, conn, id, first, last))
    }

    /// Merges segment files until at most `limit` remain, or no further merge is allowed.
    pub fn merge_segments(&self, conn: &mut Connection, limit: usize) -> Result<(), Failure> {
        while let Some(group) = self.snapshot().merge_candidates(limit) {
            if self.context.is_stopping() {
                return Ok(());
            }
            let refs: Vec<&Segment> = group.iter().map(|s| &**s).collect();
            // Only this thread marks documents as dead, so the merge omits exactly the documents
            // that are dead now.
            let dead: Vec<u64> = group
                .iter()
                .flat_map(|s| {
                    (0..s.docs())
                        .filter(|d| s.is_dead(*d))
                        .map(|d| s.doc(d).chunk)
                        .collect::<Vec<_>>()
                })
                .collect();
            let merged = merge::merge(&refs);
            let fresh = write_without_clock(conn, |tx| {
                let fresh =
                    merged.map(|parts| write_segment(tx, self, &parts.slices())).transpose()?;
                let mut drop_row = tx.prepare_cached("DELETE FROM segment WHERE id = ?")?;
                group.iter().try_for_each(|s| drop_row.execute([s.id]).map(drop))?;
                let mut delete_row =
                    tx.prepare_cached("DELETE FROM gone_chunk WHERE chunk_id = ?")?;
                dead.iter().try_for_each(|id| delete_row.execute([*id as i64]).map(drop))?;
                Ok(fresh)
            })?;
            self.replace(&group, fresh.into_iter().collect());
        }
        Ok(())
    }

    /// Writes the segments in memory to a file, so that the next opening need not index them again.
    pub fn flush(&self, conn: &mut Connection) -> Result<(), Failure> {
        let snapshot = self.snapshot();
        let Some(in_memory) =
            snapshot.spill_candidates(MEMORY_DOCS).filter(|in_memory| !in_memory.is_empty())
        else {
            return Ok(());
        };
        let refs: Vec<&Segment> = in_memory.iter().map(|s| &**s).collect();
        let Some(merged) = merge::merge(&refs) else { return Ok(()) };
        let fresh = write_without_clock(conn, |tx| write_segment(tx, self, &merged.slices()))?;
        self.replace(&in_memory, vec![fresh]);
        Ok(())
    }

    /// Compares the segments with the chunks and returns one line per kind of difference.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn verify(&self, conn: &Connection) -> Result<Vec<String>, StoreError> {
        let mut chunks: FxHashSet<i64> = {
            let mut all = conn.prepare("SELECT id FROM chunk")?;
            all.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?
        };
        let (mut orphans, mut known) = (0u64, FxHashSet::default());
        for segment in &self.snapshot().segments {
            for doc in (0..segment.docs()).filter(|d| !segment.is_dead(*d)) {
                let id = segment.doc(doc).chunk as i64;
                let is_new = known.insert(id);
                orphans += u64::from(!chunks.remove(&id) || !is_new);
            }
        }
        let mut problems = Vec::new();
        if orphans > 0 {
            problems.push(format!(
                "{orphans} windows of the word index belong to no chunk or are duplicates"
            ));
        }
        if !chunks.is_empty() {
            problems.push(format!("{} chunks are not in the word index", chunks.len()));
        }
        Ok(problems)
    }
}

/// Writes and syncs a segment's file before the transaction that lists it is committed.
fn write_segment(
    tx: &Connection,
    postings: &Postings,
    parts: &[&[u8]],
) -> Result<Segment, StoreError> {
    tx.prepare_cached("INSERT INTO segment(bytes) VALUES(?)")?
        .execute([parts.iter().map(|part| part.len() as i64).sum::<i64>()])?;
    let id = tx.last_insert_rowid();
    let path = postings.file(id);
    let io = |source| StoreError::Io { path: path.clone(), source };
    write_file(&path, parts)?;
    let segment = Segment::mapped(&path, id).map_err(io)?;
    let segment =
        segment.ok_or_else(|| StoreError::Corrupt("a new segment cannot be read".into()))?;
    let (first, last) = segment.range();
    tx.prepare_cached("UPDATE segment SET first_chunk = ?, last_chunk = ?, docs = ? WHERE id = ?")?
        .execute(params![first as i64, last as i64, segment.docs(), id])?;
    Ok(segment)
}

/// A row of `segment`: id, first chunk, last chunk.
type Row = (i64, i64, i64);

fn rows(conn: &Connection) -> Result<Vec<Row>, StoreError> {
    let mut all = conn
        .prepare_cached("SELECT id, first_chunk, last_chunk FROM segment ORDER BY first_chunk")?;
    let rows = all.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Deletes segment files that the database does not list, which uncommitted transactions left.
fn remove_orphans(postings: &Postings, known: &FxHashSet<i64>) {
    let known: FxHashSet<_> = known.iter().map(|id| postings.file(*id)).collect();
    for entry in std::fs::read_dir(&postings.context.folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "seg") && !known.contains(&path) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removed chunks that a segment file may still contain.
///
/// # Errors
/// When the database cannot be read.
pub fn removed_chunks(conn: &Connection) -> Result<Vec<i64>, StoreError> {
    let mut all = conn.prepare("SELECT chunk_id FROM gone_chunk")?;
    Ok(all.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?)
}

/// Deletes the rows of removed chunks that no segment contains any more.
fn purge_removed(postings: &Postings, conn: &mut Connection) -> Result<(), StoreError> {
    let snapshot = postings.snapshot();
    let mut useless = removed_chunks(conn)?;
    useless.retain(|id| snapshot.find(*id as u64).is_none());
    if useless.is_empty() {
        return Ok(());
    }
    write_without_clock(conn, |tx| {
        let mut delete_row = tx.prepare_cached("DELETE FROM gone_chunk WHERE chunk_id = ?")?;
        useless.iter().try_for_each(|id| delete_row.execute([id]).map(drop))?;
        Ok(())
    })
}

/// Indexes the chunks `first..=last` again and replaces the segment `id`; 0 stands for no segment.
fn rebuild_range(
    postings: &Postings,
    conn: &mut Connection,
    id: i64,
    first: i64,
    last: i64,
) -> Result<(), Failure> {
    let mut from = first;
    loop {
        let mut builder = Builder::default();
        let next = rebuild_some(conn, &mut builder, from, last)?;
        let mut pending = Pending::default();
        if builder.len() == 0 && id == 0 {
            return Ok(());
        }
        let segment = builder.finish(0);
        write_without_clock(conn, |tx| {
            // The row records the chunks that are still missing, in case the process stops before
            // the end.
            match next {
                Some(next) => tx
                    .prepare_cached("UPDATE segment SET first_chunk = ? WHERE id = ?")?
                    .execute([next, id])?,
                None => tx.prepare_cached("DELETE FROM segment WHERE id = ?")?.execute([id])?,
            };
            let Some(segment) = segment else { return Ok(()) };
            if id == 0 && segment.docs() <= MEMORY_DOCS {
                pending.fresh.push(segment);
            } else {
                pending.fresh.push(write_segment(tx, postings, &[segment.bytes()])?);
            }
            Ok(())
        })?;
        pending.publish(postings);
        match next {
            Some(next) if !postings.context.is_stopping() => from = next,
            _ => return Ok(()),
        }
    }
}

/// Adds chunks from `from` on; returns the next chunk if the builder is full.
fn rebuild_some(
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
        if builder.len() >= 16 * MEMORY_DOCS as usize {
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
