//! Builds candidates with everything the ranker needs from the segments. Words are counted by their postings, so that no
//! text is read for candidates that do not become results.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use rustc_hash::FxHashMap;

use crate::lexical::Term;
use cairn_index_base::{FileEntry, FileTable};
use cairn_text_index::{Position, Snapshot};
use cairn_tokenizer::words;

/// A definition that overlaps a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub name: String,
    pub kind: String,
    pub start_line: u32,
    pub end_line: u32,
}

/// A chunk that may become a result.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Position of its root in the query's list of roots.
    pub root: usize,
    pub chunk: i64,
    pub file: u32,
    pub path: Arc<str>,
    pub start_line: u32,
    pub end_line: u32,
    pub fingerprint: u64,
    pub tokens: u32,
    /// Definitions that overlap the chunk; empty until it is read.
    pub spans: Vec<Span>,
    /// Occurrences of each term in the body, in names that appear to be defined here, and in the path.
    pub counts: Vec<[u16; 3]>,
    /// Cosine with the query, if the chunk has a vector.
    pub cosine: Option<f32>,
}

/// Builds the candidates at the given positions of one root's snapshot, without those whose file was removed.
pub fn gather(
    snapshot: &Snapshot,
    table: &FileTable,
    root: usize,
    positions: &[Position],
    terms: &[Term],
) -> Vec<Candidate> {
    let mut files: FxHashMap<u32, (Arc<str>, Vec<u16>)> = FxHashMap::default();
    let mut all = Vec::with_capacity(positions.len());
    let mut by_position = Vec::with_capacity(positions.len());
    for position in positions {
        let doc = snapshot.segments[position.segment as usize].doc(position.doc);
        let Some(entry) = table.get(doc.file) else { continue };
        let (path, in_path) = match files.entry(doc.file) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(slot) => slot.insert(((&*entry.path).into(), path_counts(entry, terms))),
        };
        by_position.push((*position, all.len()));
        all.push(Candidate {
            root,
            chunk: doc.chunk as i64,
            file: doc.file,
            path: Arc::clone(path),
            start_line: doc.start_line,
            end_line: doc.end_line,
            fingerprint: doc.fingerprint,
            tokens: doc.tokens,
            spans: Vec::new(),
            counts: in_path.iter().map(|n| [0, 0, *n]).collect(),
            cosine: None,
        });
    }
    by_position.sort_unstable();
    count_terms(snapshot, terms, &by_position, &mut all);
    all
}

fn path_counts(entry: &FileEntry, terms: &[Term]) -> Vec<u16> {
    let mut counts = vec![0; terms.len()];
    words::each_lexical(entry.path.as_bytes(), |stem, _, _| {
        if let Some(i) = terms.iter().position(|t| t.stem == stem) {
            counts[i] += 1;
        }
    });
    counts
}

/// Looks each term up in each candidate's document; `positions` are in order.
fn count_terms(snapshot: &Snapshot, terms: &[Term], positions: &[(Position, usize)], all: &mut [Candidate]) {
    for group in positions.chunk_by(|a, b| a.0.segment == b.0.segment) {
        let segment = &snapshot.segments[group[0].0.segment as usize];
        for (t, term) in terms.iter().enumerate() {
            let Some(word) = segment.term(term.stem.as_bytes()) else { continue };
            let mut cursor = segment.cursor(word);
            for (position, candidate) in group {
                cursor.seek(position.doc);
                if cursor.doc() == position.doc {
                    let payload = cursor.payload();
                    let counts = &mut all[*candidate].counts[t];
                    counts[0] = payload.body().into();
                    counts[1] = payload.names().into();
                }
            }
        }
    }
}

/// Reads the definitions that overlap a candidate.
///
/// # Errors
/// When the database cannot be read.
pub fn spans(conn: &Connection, candidate: &Candidate) -> Result<Vec<Span>, StoreError> {
    let mut get = conn.prepare_cached(
        "SELECT name, kind, start_line, end_line FROM symbol
         WHERE file_id = ? AND start_line <= ? AND end_line >= ? ORDER BY start_line, end_line DESC",
    )?;
    let rows = get.query_map((candidate.file, candidate.end_line, candidate.start_line), |r| {
        Ok(Span { name: r.get(0)?, kind: r.get(1)?, start_line: r.get(2)?, end_line: r.get(3)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
