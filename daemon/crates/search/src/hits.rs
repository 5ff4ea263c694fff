//! Ranked candidates to answers: what is gone is left out, the range is trimmed to the definition that answers, and
//! text, highlights and freshness are filled in.

use std::collections::hash_map::Entry;
use std::io::Read;

use cairn_protocol::content::EntryKind;
use cairn_protocol::error::Failure;
use cairn_protocol::search::{SearchItem, SymbolRef};
use cairn_store::StoreError;
use cairn_store::rusqlite::OptionalExtension;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::gather::{self, Candidate, Match, Span};
use crate::live::Live;
use crate::rank::Scored;
use crate::search::Query;
use crate::sync::CancelFlag;
use crate::words;

/// Bytes of one item's text.
const MAX_TEXT: usize = 64 * 1024;
/// Highlights of one item.
const MAX_HIGHLIGHTS: usize = 500;
/// Share of what matched that must lie in a definition for the answer to be trimmed to it.
const TRIM_SHARE: f32 = 0.9;

/// Lines up to which a definition that answers is told whole, beyond the window that was found.
const MAX_WHOLE: u32 = 80;
/// Words up to which two windows may be alike by chance.
const SHORT: u32 = 10;

/// A file of the answer as the index and the disk have it.
struct Fresh {
    content_hash: String,
    clock: u64,
    changed: bool,
}

/// The first `k` answers of a query.
///
/// # Errors
/// `cancelled`, or when the database cannot be read.
pub fn build(query: &Query<'_>, scored: &[Scored], cancel: &CancelFlag) -> Result<Vec<SearchItem>, Failure> {
    of_candidates(query, &query.candidates, scored, cancel)
}

/// The same for candidates that are not the query's own.
///
/// # Errors
/// `cancelled`, or when the database cannot be read.
pub fn of_candidates(
    query: &Query<'_>,
    candidates: &[Candidate],
    scored: &[Scored],
    cancel: &CancelFlag,
) -> Result<Vec<SearchItem>, Failure> {
    let mut files: FxHashMap<(usize, u32), Option<Fresh>> = FxHashMap::default();
    let mut texts: FxHashSet<(u64, u32)> = FxHashSet::default();
    let mut items = Vec::new();
    for (i, score) in scored {
        if items.len() >= query.params.k as usize {
            break;
        }
        cancel.check()?;
        let c = &candidates[*i];
        let live = &query.roots[c.root];
        let state = match files.entry((c.root, c.file)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(slot) => slot.insert(fresh(live, c)?),
        };
        let Some(state) = state else { continue };
        // The same text twice says nothing new.
        if c.tokens > SHORT && !texts.insert((c.fingerprint, c.tokens)) {
            continue;
        }
        let Some(text) = gather::text_of(&*live.readers.get()?, c.chunk)? else { continue };
        let made = item(query, live, c, &text, *score, state);
        // Two windows of one definition answer with the same lines.
        let again = |i: &SearchItem| {
            (i.start_line, i.end_line) == (made.start_line, made.end_line)
                && i.path == made.path
                && i.root == made.root
        };
        if !items.iter().any(again) {
            items.push(made);
        }
    }
    Ok(items)
}

/// Compares the indexed file with the disk. Nothing when it is gone from either.
fn fresh(live: &Live, c: &Candidate) -> Result<Option<Fresh>, Failure> {
    let Ok(stat) = live.root.stat(&c.path) else { return Ok(None) };
    if stat.kind != EntryKind::File {
        return Ok(None);
    }
    let conn = live.readers.get()?;
    let mut get = conn
        .prepare_cached("SELECT size_bytes, mtime_ns, inode, sha256, clock, due FROM file WHERE id = ?")
        .map_err(StoreError::from)?;
    let row: Option<Fresh> = get
        .query_row([c.file], |r| {
            let same = r.get::<_, i64>(0)? == stat.size as i64
                && r.get::<_, i64>(1)? == stat.mtime_ns
                && r.get::<_, i64>(2)? == stat.inode as i64;
            let hash: Option<Vec<u8>> = r.get(3)?;
            Ok(Fresh {
                content_hash: hex::encode(hash.unwrap_or_default()),
                clock: r.get::<_, i64>(4)? as u64,
                changed: !same,
            })
        })
        .optional()
        .map_err(StoreError::from)?;
    Ok(row)
}

fn item(query: &Query<'_>, live: &Live, c: &Candidate, own: &[u8], score: f32, state: &Fresh) -> SearchItem {
    let matches = gather::matches(own, c.start_line, query.terms(c.root));
    let (symbol, (start_line, end_line)) = answer_range(query, c, &matches, state.changed);
    let mut made = SearchItem {
        path: c.path.to_string(),
        root: live.root.id.clone(),
        start_line,
        end_line,
        score: f64::from(score),
        lang: c.lang.map(str::to_owned),
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
        let (text, first) = text_of(live, c, own, (start_line, end_line), context, state.changed);
        made.highlights = highlights(query, &text);
        made.text_start_line = (first != start_line).then_some(first);
        made.text = Some(text);
    }
    made
}

/// The definition that answers and the lines to show.
fn answer_range<'a>(
    query: &Query<'_>,
    c: &'a Candidate,
    matches: &[Match],
    changed: bool,
) -> (Option<&'a Span>, (u32, u32)) {
    let whole = (c.start_line, c.end_line);
    let weights: Vec<f32> = query.terms(c.root).iter().map(|t| t.rarity).collect();
    let value = |from: u32, to: u32| {
        let mut seen = vec![0f32; weights.len()];
        for m in matches.iter().filter(|m| (from..=to).contains(&m.line)) {
            let seen = &mut seen[m.term as usize];
            *seen = (*seen + 0.25).clamp(1.0, 2.0);
        }
        seen.iter().zip(&weights).map(|(s, w)| s * w).sum::<f32>()
    };
    let all = value(c.start_line, c.end_line);
    let mut best: Option<(f32, &Span)> = None;
    for span in &c.spans {
        let (from, to) = (span.start_line.max(c.start_line), span.end_line.min(c.end_line));
        let named = named(query, c.root, span);
        // Of two that hold the same, the shorter one says more.
        let length = (span.end_line - span.start_line + 1) as f32;
        let score = value(from, to) + 2.0 * named - 0.02 * all * length.ln() + 0.001 * (to - from) as f32;
        if best.is_none_or(|(s, _)| score > s) {
            best = Some((score, span));
        }
    }
    let Some((_, span)) = best else { return (None, whole) };
    let (from, to) = (span.start_line.max(c.start_line), span.end_line.min(c.end_line));
    let forced = !query.filters.kinds.is_empty();
    let clear = all > 0.0 && value(from, to) >= TRIM_SHARE * all && to > from;
    if !(clear || forced) {
        return (Some(span), whole);
    }
    // A window's edge is no edge of what it answers with.
    let fits = span.end_line - span.start_line < MAX_WHOLE;
    (Some(span), if fits && !changed { (span.start_line, span.end_line) } else { (from, to) })
}

/// How much of the query (by rarity) a definition's name covers.
fn named(query: &Query<'_>, root: usize, span: &Span) -> f32 {
    let stems = words::query_stems(&span.name);
    query.terms(root).iter().filter(|t| stems.contains(&t.stem)).map(|t| t.rarity).sum()
}

/// Lines of the file with context; of what is indexed when the file has changed since. With the first line's number.
fn text_of(
    live: &Live,
    c: &Candidate,
    own: &[u8],
    (from, to): (u32, u32),
    context: u32,
    changed: bool,
) -> (String, u32) {
    let beyond = from < c.start_line || to > c.end_line;
    if (context > 0 || beyond) && !changed {
        let mut bytes = Vec::new();
        let read = live
            .root
            .open_file(&c.path)
            .ok()
            .and_then(|f| f.take(live.opts.max_file_bytes).read_to_end(&mut bytes).ok());
        if read.is_some() {
            let first = from.saturating_sub(context).max(1);
            return (lines(&bytes, 1, first, to.saturating_add(context)), first);
        }
    }
    (lines(own, c.start_line, from, to), from)
}

/// Lines `from` to `to` of `bytes`, whose first line has the number `base`.
fn lines(bytes: &[u8], base: u32, from: u32, to: u32) -> String {
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
        if !query.has(&stem) || ranges.len() >= MAX_HIGHLIGHTS {
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
    fn lines_are_cut_by_number() {
        let text = b"a\nb\nc\nd\n";
        assert_eq!(lines(text, 1, 2, 3), "b\nc");
        assert_eq!(lines(text, 41, 41, 41), "a");
        assert_eq!(lines(text, 1, 4, 9), "d");
        assert_eq!(lines(text, 1, 7, 9), "");
        assert_eq!(lines(b"one line", 5, 5, 5), "one line");
    }
}
