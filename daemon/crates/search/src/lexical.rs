//! Candidates by words: FTS5's BM25 over the rarest words of the query, within a time limit.
//!
//! FTS5 visits every row that matches, so its cost is the sum of its words' frequencies: words over a budget are left to
//! the ranker, which looks at the text of each candidate anyway.

use std::time::{Duration, Instant};

use cairn_protocol::error::Failure;
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, ErrorCode, OptionalExtension};

use crate::dense::FileSet;
use crate::live::Live;
use crate::sync::{CancelFlag, lock};
use crate::words::{Stem, is_stop};

/// Rows that the words of one OR may match together.
const BUDGET: u64 = 25_000;
/// Longest time of one query.
const MAX_TIME: Duration = Duration::from_millis(400);
/// Rows looked at for a filter.
const MAX_FILTERED: usize = 50_000;
/// Words of a query that count.
const MAX_STEMS: usize = 64;
/// Chunks from which a word's frequency is kept.
const COMMON: u64 = 1000;
/// Frequencies kept.
const MAX_KNOWN: usize = 20_000;

/// A word of the query and how many chunks have it.
#[derive(Debug, Clone)]
pub struct Term {
    pub stem: Stem,
    pub chunks: u64,
}

/// The words of a query that say something, in order, with their frequencies.
///
/// # Errors
/// When the database cannot be read.
pub fn terms(live: &Live, conn: &Connection, stems: &[Stem]) -> Result<Vec<Term>, StoreError> {
    let telling: Vec<Stem> = stems.iter().copied().filter(|s| !is_stop(s)).collect();
    let chosen = if telling.is_empty() { stems } else { &telling };
    chosen.iter().take(MAX_STEMS).map(|s| Ok(Term { stem: *s, chunks: frequency(live, conn, s)? })).collect()
}

fn frequency(live: &Live, conn: &Connection, stem: &str) -> Result<u64, StoreError> {
    let now = lock(&live.progress).counts.chunks;
    if let Some((chunks, at)) = lock(&live.frequencies).get(stem)
        && now.abs_diff(*at) * 10 <= *at
    {
        return Ok(*chunks);
    }
    let mut get = conn.prepare_cached("SELECT doc FROM chunk_words WHERE term = ?")?;
    let chunks: u64 = get.query_row([stem], |r| r.get(0)).optional()?.unwrap_or(0);
    // Rare words cost nothing to look up, and one file more matters to them.
    if chunks < COMMON {
        return Ok(chunks);
    }
    let mut known = lock(&live.frequencies);
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    known.insert(stem.into(), (chunks, now));
    Ok(chunks)
}

/// What was found, and whether the time ran out.
#[derive(Debug, Default)]
pub struct Found {
    pub chunks: Vec<i64>,
    pub late: bool,
}

/// Chunks that match the terms, best first, at most `limit`, in `files` only when given.
///
/// # Errors
/// `cancelled`, or when the database cannot be read.
pub fn candidates(
    conn: &mut Connection,
    terms: &[Term],
    limit: usize,
    files: Option<&FileSet>,
    cancel: &CancelFlag,
) -> Result<Found, Failure> {
    let mut known: Vec<&Term> = terms.iter().filter(|t| t.chunks > 0).collect();
    known.sort_by_key(|t| t.chunks);
    if known.is_empty() {
        return Ok(Found::default());
    }
    let (flag, until) = (cancel.clone(), Instant::now() + MAX_TIME);
    let watch = move || flag.is_cancelled() || Instant::now() > until;
    conn.progress_handler(2000, Some(watch)).map_err(StoreError::from)?;
    let found = search(conn, &known, limit, files);
    conn.progress_handler(0, None::<fn() -> bool>).map_err(StoreError::from)?;
    cancel.check()?;
    Ok(found?)
}

fn search(
    conn: &Connection,
    known: &[&Term],
    limit: usize,
    files: Option<&FileSet>,
) -> Result<Found, StoreError> {
    let mut found = Found::default();
    if known.len() > 1 {
        found.late |= !run(conn, &join(known, " AND "), limit, files, &mut found.chunks)?;
        if found.chunks.len() >= limit / 2 {
            return Ok(found);
        }
    }
    let mut sum = 0;
    let within = |t: &&&Term| {
        sum += t.chunks;
        sum <= BUDGET
    };
    let rare = known.iter().take_while(within).count().max(1);
    found.late |= !run(conn, &join(&known[..rare], " OR "), limit, files, &mut found.chunks)?;
    if found.late && found.chunks.is_empty() {
        let first = "SELECT rowid FROM chunk_fts WHERE chunk_fts MATCH ?1 LIMIT ?2";
        let mut some = conn.prepare_cached(first)?;
        let rows = some.query_map((join(&known[..1], ""), limit as i64), |r| r.get::<_, i64>(0));
        found.chunks.extend(rows?.filter_map(Result::ok));
    }
    Ok(found)
}

fn join(terms: &[&Term], with: &str) -> String {
    terms.iter().map(|t| format!("\"{}\"", &*t.stem)).collect::<Vec<_>>().join(with)
}

/// Adds what matches and is not there yet. False when the time ran out.
fn run(
    conn: &Connection,
    query: &str,
    limit: usize,
    files: Option<&FileSet>,
    into: &mut Vec<i64>,
) -> Result<bool, StoreError> {
    let mut ranked = conn.prepare_cached(
        "SELECT rowid FROM chunk_fts WHERE chunk_fts MATCH ?1 AND rank MATCH 'bm25(2.0, 3.0, 1.0, 0.8)' ORDER BY rank LIMIT ?2",
    )?;
    let mut file_of = conn.prepare_cached("SELECT file_id FROM chunk WHERE id = ?")?;
    let most = if files.is_some() { MAX_FILTERED } else { limit };
    let mut rows = ranked.query((query, most as i64))?;
    let from = into.len();
    loop {
        let id: i64 = match rows.next() {
            Ok(Some(row)) => row.get(0)?,
            Ok(None) => return Ok(true),
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => return Ok(false),
            Err(e) => return Err(e.into()),
        };
        if let Some(files) = files {
            let file: Option<u32> = file_of.query_row([id], |r| r.get(0)).optional()?;
            if file.is_none_or(|f| !files.contains(&f)) {
                continue;
            }
        }
        if !into[..from].contains(&id) {
            into.push(id);
        }
        if into.len() >= limit + from.min(limit) {
            return Ok(true);
        }
    }
}
