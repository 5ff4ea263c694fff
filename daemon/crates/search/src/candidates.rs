//! The first step of a search: candidates by words and by vectors, with everything the ranker needs
//! from the segments. Words are counted by their postings, so that no text is read for candidates
//! that do not become results.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use cairn_index_base::FileEntry;
use cairn_protocol::error::Failure;
use cairn_protocol::search::Corpus;
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use cairn_text_index::{Position, Snapshot};
use cairn_tokenizer::words;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::lexical::{self, Term};
use crate::query::Query;
use crate::rank::Mode;

/// Candidates of each list, unless `k` needs more.
const CANDIDATES_PER_LIST: usize = 200;

/// Candidates of each line that the text of an issue quotes.
const QUOTED: usize = 10;

/// A definition that overlaps a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub name: String,
    pub kind: String,
    pub container: Option<String>,
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
    /// Occurrences of each term in the body, in names that appear to be defined here, and in the
    /// path.
    pub counts: Vec<[u16; 3]>,
    /// Cosine with the query, if the chunk has a vector.
    pub cosine: Option<f32>,
    /// True if it contains a definition or a line that the query names.
    pub named: bool,
}

/// The position of a window, its chunk id and its cosine.
type Neighbour = (Position, i64, f32);

/// Receives the candidates of one list of one root, best first, as soon as the list is complete.
pub type OnList<'a> = &'a dyn Fn(Corpus, Vec<Candidate>) -> Result<(), Failure>;

/// Finds the candidates of all roots.
///
/// # Errors
/// `cancelled`, the error of `on_list`, or a storage failure.
pub fn collect(query: &Query<'_>, on_list: Option<OnList<'_>>) -> Result<Vec<Candidate>, Failure> {
    let mut all = Vec::new();
    for root in 0..query.roots.len() {
        all.append(&mut collect_root(query, root, on_list)?);
        query.cancel.check()?;
    }
    Ok(all)
}

fn collect_root(
    query: &Query<'_>,
    root: usize,
    on_list: Option<OnList<'_>>,
) -> Result<Vec<Candidate>, Failure> {
    let (words, nearest) = lists(query, root, on_list)?;
    let mut positions = words;
    let mut seen: FxHashSet<Position> = positions.iter().copied().collect();
    let (snapshot, chunks) = (&query.roots[root].snapshot, &query.named[root].chunks);
    let named = chunks.iter().filter_map(|chunk| snapshot.find(*chunk as u64));
    positions.extend(nearest.iter().map(|n| n.0).chain(named).filter(|p| seen.insert(*p)));
    let mut candidates = at_positions(query, root, &positions);
    candidates.iter_mut().for_each(|c| c.named = chunks.contains(&c.chunk));
    if !query.vector.is_empty() {
        let mut known: FxHashMap<i64, f32> =
            nearest.iter().map(|(_, chunk, cosine)| (*chunk, *cosine)).collect();
        let by_words: Vec<i64> =
            candidates.iter().map(|c| c.chunk).filter(|c| !known.contains_key(c)).collect();
        let cosines = query.roots[root].index.dense.cosines(&query.vector, &by_words);
        known.extend(
            by_words.iter().zip(cosines).filter_map(|(chunk, cosine)| Some((*chunk, cosine?))),
        );
        candidates.iter_mut().for_each(|c| c.cosine = known.get(&c.chunk).copied());
    }
    of_kinds(query, root, candidates)
}

/// Finds the best windows by words and by vectors in parallel, and passes each list on as soon as
/// it is complete.
fn lists(
    query: &Query<'_>,
    root: usize,
    on_list: Option<OnList<'_>>,
) -> Result<(Vec<Position>, Vec<Neighbour>), Failure> {
    let state = &query.roots[root];
    let (limit, files) = (list_len(query), state.files.as_ref());
    let emit = |corpus: Corpus, positions: &[Position]| {
        let Some(on_list) = on_list else { return Ok(()) };
        let first = &positions[..positions.len().min(query.params.k as usize)];
        on_list(corpus, of_kinds(query, root, at_positions(query, root, first))?)
    };
    let by_words = || {
        let hits =
            lexical::candidates(&state.snapshot, &query.terms[root], limit, files, &query.cancel)?;
        let mut positions: Vec<Position> = hits.iter().map(Position::from).collect();
        emit(Corpus::Lex, &positions)?;
        let mut seen: FxHashSet<Position> = positions.iter().copied().collect();
        for terms in query.quoted_terms(root) {
            let hits = lexical::candidates(&state.snapshot, &terms, QUOTED, files, &query.cancel)?;
            positions.extend(hits.iter().map(Position::from).filter(|p| seen.insert(*p)));
        }
        Ok::<_, Failure>(positions)
    };
    if query.vector.is_empty() {
        return Ok((by_words()?, Vec::new()));
    }
    let scan = state.index.dense.scan(&query.vector, limit, files);
    let mut words = Ok(Vec::new());
    state.index.opts.helpers.in_place_scope(|scope| {
        if query.mode == Mode::Hybrid || scan.is_large() {
            scope.spawn(|_| scan.run());
        }
        if query.mode == Mode::Hybrid {
            words = by_words();
        }
        scan.run();
    });
    let nearest = scan.finish().into_iter();
    let nearest: Vec<Neighbour> = nearest
        .filter_map(|(id, score)| Some((state.snapshot.find(id as u64)?, id, score)))
        .collect();
    if query.mode == Mode::Semantic {
        return Ok((Vec::new(), nearest));
    }
    let positions: Vec<Position> = nearest.iter().map(|n| n.0).collect();
    emit(Corpus::Sem, &positions)?;
    Ok((words?, nearest))
}

/// Length of each list. A semantic search needs few, because its list is already in order except
/// for secondary and removed files.
fn list_len(query: &Query<'_>) -> usize {
    let is_short = query.mode == Mode::Semantic && query.filters.kinds.is_empty();
    if is_short {
        30 + 2 * query.params.k as usize
    } else {
        CANDIDATES_PER_LIST.max(2 * query.params.k as usize)
    }
}

/// With a filter by kind, only candidates with a definition of that kind, and those definitions.
fn of_kinds(
    query: &Query<'_>,
    root: usize,
    mut candidates: Vec<Candidate>,
) -> Result<Vec<Candidate>, Failure> {
    let kinds = &query.filters.kinds;
    if kinds.is_empty() {
        return Ok(candidates);
    }
    let conn = query.roots[root].index.readers.get()?;
    for c in &mut candidates {
        c.spans = spans(&conn, c)?;
        c.spans.retain(|s| kinds.contains(&s.kind));
    }
    candidates.retain(|c| !c.spans.is_empty());
    Ok(candidates)
}

/// Builds the candidates at the given positions of one root, without those whose file was removed.
fn at_positions(query: &Query<'_>, root: usize, positions: &[Position]) -> Vec<Candidate> {
    let (snapshot, table) = (&*query.roots[root].snapshot, &*query.roots[root].table);
    let terms = &query.terms[root];
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
            named: false,
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
fn count_terms(
    snapshot: &Snapshot,
    terms: &[Term],
    positions: &[(Position, usize)],
    all: &mut [Candidate],
) {
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
        "SELECT name, kind, container, start_line, end_line FROM symbol
         WHERE file_id = ? AND start_line <= ? AND end_line >= ? ORDER BY start_line, end_line DESC",
    )?;
    let rows = get.query_map((candidate.file, candidate.end_line, candidate.start_line), |r| {
        Ok(Span {
            name: r.get(0)?,
            kind: r.get(1)?,
            container: r.get(2)?,
            start_line: r.get(3)?,
            end_line: r.get(4)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
