//! Turns ranked passages into result items: skips removed files, trims the range to the definition,
//! and fills in text, highlights and freshness.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use cairn_protocol::content::EntryKind;
use cairn_protocol::error::Failure;
use cairn_protocol::search::{SearchItem, SymbolRef};
use cairn_store::StoreError;
use cairn_store::rusqlite::OptionalExtension;
use cairn_workspace::language_of;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::candidates::{Candidate, Span};
use crate::parsed::QueryKind;
use crate::query::Query;
use crate::rank::{self, Passage};
use crate::ranking::Ranking;
use crate::root_index::RootIndex;
use cairn_text_index::packed;
use cairn_tokenizer::words;

/// Maximum bytes of an item's text.
const MAX_TEXT: usize = 64 * 1024;
/// Maximum number of highlights of an item.
const MAX_HIGHLIGHTS: usize = 500;

/// Ranks up to which a passage may extend an earlier one of its file, instead of being a result of
/// its own; its minimum share of that one's score; the lines between them, and the lines of both.
const MERGED_RANKS: usize = 20;
const MIN_SHARE: f32 = 0.7;
const MAX_GAP: u32 = 3;
const MAX_MERGED: u32 = 60;

/// A file of the answer, with the positions of its passages in the answer.
struct AnswerFile {
    state: Option<Arc<FileState>>,
    chosen: Vec<usize>,
}

/// The state of a file in the index compared with the disk.
struct FileState {
    content_hash: String,
    clock: u64,
    changed: bool,
}

/// A passage of the answer.
struct Chosen<'a> {
    passage: &'a Passage,
    score: f32,
    state: Arc<FileState>,
    symbol: Option<&'a Span>,
    lines: (u32, u32),
}

/// Builds the first `k` items of a query from the ranked passages.
///
/// # Errors
/// `cancelled`, or when the database cannot be read.
pub fn build(query: &Query<'_>, ranking: &Ranking) -> Result<Vec<SearchItem>, Failure> {
    let mut items = Vec::new();
    for chosen in choose(query, ranking)? {
        let c = &ranking.candidates[chosen.passage.candidate];
        let index = &query.roots[c.root].index;
        let loaded;
        let text = match ranking.texts.get(&chosen.passage.candidate) {
            Some(text) => text,
            None => {
                let Some(text) = packed::text_of(&*index.readers.get()?, c.chunk)? else {
                    continue;
                };
                loaded = text;
                &loaded
            }
        };
        let mut item = item(query, index, c, text, (chosen.symbol, chosen.lines), &chosen.state);
        item.score = f64::from(chosen.score);
        if query.params.explain {
            item.explain = chosen.passage.features.shares(ranking.weights(query), chosen.score);
        }
        items.push(item);
    }
    Ok(items)
}

/// The passages of the answer: neither the same text nor the same lines appear twice, and near
/// passages of a file are one.
fn choose<'a>(query: &Query<'_>, ranking: &'a Ranking) -> Result<Vec<Chosen<'a>>, Failure> {
    let mut files: FxHashMap<(usize, u32), AnswerFile> = FxHashMap::default();
    let mut texts: FxHashSet<u64> = FxHashSet::default();
    let mut all: Vec<Chosen<'a>> = Vec::new();
    let weights = ranking.weights(query);
    // Without the reduction of further results of a file.
    let quality = |passage: &Passage| passage.features.score(weights);
    for (rank, (i, score)) in ranking.scored.iter().enumerate() {
        if all.len() >= query.params.k as usize {
            break;
        }
        query.cancel.check()?;
        let passage = &ranking.passages[*i];
        let c = &ranking.candidates[passage.candidate];
        let file = match files.entry((c.root, c.file)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(slot) => {
                let state = current_state(&query.roots[c.root].index, c)?.map(Arc::new);
                slot.insert(AnswerFile { state, chosen: Vec::new() })
            }
        };
        let Some(state) = &file.state else { continue };
        let (symbol, lines) = answer_range(c, passage, state.changed);
        let is_known = |at: &usize| overlaps_by_half(all[*at].lines, lines);
        if file.chosen.iter().any(is_known)
            || passage.fingerprint.is_some_and(|fingerprint| !texts.insert(fingerprint))
        {
            continue;
        }
        let can_merge = rank < MERGED_RANKS
            && !state.changed
            && query.parsed.kind != QueryKind::Identifier
            && query.filters.kinds.is_empty();
        let merged = file.chosen.iter().find_map(|at| {
            let is_as_good = quality(passage) >= MIN_SHARE * quality(all[*at].passage);
            Some((*at, merged(all[*at].lines, lines).filter(|_| is_as_good && can_merge)?))
        });
        if let Some((at, lines)) = merged {
            all[at].lines = lines;
            continue;
        }
        file.chosen.push(all.len());
        all.push(Chosen { passage, score: *score, state: Arc::clone(state), symbol, lines });
    }
    Ok(all)
}

/// The range over two near ones, if it is short enough for one result.
fn merged(a: (u32, u32), b: (u32, u32)) -> Option<(u32, u32)> {
    let both = (a.0.min(b.0), a.1.max(b.1));
    let gap = a.0.max(b.0).saturating_sub(a.1.min(b.1) + 1);
    (gap <= MAX_GAP && both.1 - both.0 < MAX_MERGED).then_some(both)
}

/// True if two ranges share at least half of the shorter one.
fn overlaps_by_half(a: (u32, u32), b: (u32, u32)) -> bool {
    let both = (a.1.min(b.1) + 1).saturating_sub(a.0.max(b.0));
    2 * both > (a.1 - a.0).min(b.1 - b.0)
}

/// Compares the indexed file with the disk; `None` if it is missing in either.
fn current_state(index: &RootIndex, c: &Candidate) -> Result<Option<FileState>, Failure> {
    let Ok(stat) = index.root.stat(&c.path) else { return Ok(None) };
    if stat.kind != EntryKind::File || index.root.is_other_name_of_hidden(&c.path) {
        return Ok(None);
    }
    let conn = index.readers.get()?;
    let mut get = conn
        .prepare_cached(
            "SELECT size_bytes, mtime_ns, inode, sha256, clock, pending_stages FROM file WHERE id = ?",
        )
        .map_err(StoreError::from)?;
    let row: Option<FileState> = get
        .query_row([c.file], |r| {
            let same = r.get::<_, i64>(0)? == stat.size as i64
                && r.get::<_, i64>(1)? == stat.mtime_ns
                && r.get::<_, i64>(2)? == stat.inode as i64;
            let hash: Option<Vec<u8>> = r.get(3)?;
            Ok(FileState {
                content_hash: hex::encode(hash.unwrap_or_default()),
                clock: r.get::<_, i64>(4)? as u64,
                changed: !same,
            })
        })
        .optional()
        .map_err(StoreError::from)?;
    Ok(row)
}

fn item(
    query: &Query<'_>,
    index: &RootIndex,
    c: &Candidate,
    window_text: &[u8],
    (symbol, (start_line, end_line)): (Option<&Span>, (u32, u32)),
    state: &FileState,
) -> SearchItem {
    let mut item = SearchItem {
        path: c.path.to_string(),
        root: index.root.id.clone(),
        start_line,
        end_line,
        score: 0.0,
        explain: Vec::new(),
        lang: language_of(&c.path).map(str::to_owned),
        symbol: symbol.map(|s| SymbolRef { name: s.name.clone(), kind: s.kind.clone() }),
        text: None,
        text_start_line: None,
        highlights: Vec::new(),
        content_hash: state.content_hash.clone(),
        clock: state.clock,
        changed: state.changed,
    };
    if query.params.include_text {
        let context = query.params.context_lines;
        let (text, first) = text_with_context(
            index,
            c,
            window_text,
            (start_line, end_line),
            context,
            state.changed,
        );
        item.highlights = highlights(query, &text);
        item.text_start_line = (first != start_line).then_some(first);
        item.text = Some(text);
    }
    item
}

/// The definition of the passage, or the one around its window, and the lines of the result.
pub fn answer_range<'a>(
    c: &'a Candidate,
    passage: &Passage,
    changed: bool,
) -> (Option<&'a Span>, (u32, u32)) {
    let Some(span) = passage.span.and_then(|n| c.spans.get(n)) else {
        let around = |s: &&Span| s.start_line <= passage.lines.0 && s.end_line >= passage.lines.1;
        return (c.spans.iter().rfind(around), passage.lines);
    };
    // A short definition is shown completely, beyond the edge of the window.
    let fits = rank::is_returned_complete(span) && !changed;
    (Some(span), if fits { (span.start_line, span.end_line) } else { passage.lines })
}

/// The lines with context and the number of the first one, read from the file, or from the index if
/// the file has changed.
fn text_with_context(
    index: &RootIndex,
    c: &Candidate,
    window_text: &[u8],
    (from, to): (u32, u32),
    context: u32,
    changed: bool,
) -> (String, u32) {
    let exceeds_window = from < c.start_line || to > c.end_line;
    if (context > 0 || exceeds_window)
        && !changed
        && let Some(bytes) = index.read_file(&c.path)
    {
        let first = from.saturating_sub(context).max(1);
        return (lines(&bytes, 1, first, to.saturating_add(context)), first);
    }
    (lines(window_text, c.start_line, from, to), from)
}

/// Lines `from..=to` of `bytes`, whose first line has the number `base`.
pub fn lines(bytes: &[u8], base: u32, from: u32, to: u32) -> String {
    let (mut line, mut start, mut end) = (base, None, bytes.len());
    let mut at = 0;
    for piece in bytes.split_inclusive(|b| *b == b'\n') {
        if line == from && start.is_none() {
            start = Some(at);
        }
        at += piece.len();
        if line == to {
            end = at;
            break;
        }
        line += 1;
    }
    let cut = &bytes[start.unwrap_or(end).min(end)..end];
    let text = String::from_utf8_lossy(&cut[..cut.len().min(MAX_TEXT)]);
    text.trim_end_matches(['\n', '\r']).to_owned()
}

fn highlights(query: &Query<'_>, text: &str) -> Vec<[u32; 2]> {
    let mut ranges: Vec<[u32; 2]> = Vec::new();
    words::each_lexical(text.as_bytes(), |stem, start, end| {
        if !query.has_stem(&stem) || ranges.len() >= MAX_HIGHLIGHTS {
            return;
        }
        match ranges.last_mut() {
            Some(last) if start < last[1] as usize => last[1] = last[1].max(end as u32),
            _ => ranges.push([start as u32, end as u32]),
        }
    });
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_if_they_share_half_of_the_shorter_one() {
        assert!(overlaps_by_half((1, 40), (35, 44)) && overlaps_by_half((5, 5), (1, 9)));
        assert!(
            !overlaps_by_half((1, 40), (36, 60))
                && !overlaps_by_half((1, 4), (5, 9))
                && !overlaps_by_half((50, 60), (1, 9))
        );
    }

    #[test]
    fn near_ranges_are_merged_unless_they_are_long() {
        assert_eq!(merged((1, 10), (14, 20)), Some((1, 20)));
        assert_eq!(merged((14, 20), (1, 10)), Some((1, 20)));
        assert_eq!(merged((1, 10), (8, 20)), Some((1, 20)));
        assert_eq!(merged((1, 10), (15, 20)), None);
        assert_eq!([merged((1, 30), (31, 60)), merged((1, 30), (31, 61))], [Some((1, 60)), None]);
    }

    #[test]
    fn lines_are_cut_by_number() {
        let text = b"a\nb\nc\nd\n";
        assert_eq!(lines(text, 1, 2, 3), "b\nc");
        assert_eq!(lines(text, 41, 41, 41), "a");
        assert_eq!(lines(text, 1, 4, 9), "d");
        assert_eq!(lines(text, 1, 7, 9), "");
        assert_eq!(lines(b"one line", 5, 5, 5), "one line");
    }
}
