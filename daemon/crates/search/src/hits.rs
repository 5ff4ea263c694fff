//! Ranked candidates to answers: what is gone is left out, the range is trimmed to the definition that answers, and
//! text, highlights and freshness are filled in.

use std::collections::hash_map::Entry;
use std::io::Read;

use cairn_protocol::content::EntryKind;
use cairn_protocol::error::Failure;
use cairn_protocol::search::{SearchItem, SymbolRef};
use cairn_store::StoreError;
use cairn_store::rusqlite::OptionalExtension;
use cairn_workspace::language_of;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::gather::{Candidate, Span};
use crate::packed;
use crate::rank::{self, Passage, Scored};
use crate::root_index::RootIndex;
use crate::search::Query;
use crate::sync::CancelFlag;
use crate::words;

/// Bytes of one item's text.
const MAX_TEXT: usize = 64 * 1024;
/// Highlights of one item.
const MAX_HIGHLIGHTS: usize = 500;

/// Passages in their order, with what they are passages of.
pub struct Ranked<'a> {
    pub candidates: &'a [Candidate],
    pub passages: &'a [Passage],
    /// Best first.
    pub scored: Vec<Scored>,
    /// Texts of some candidates, by index; the others are read when needed.
    pub texts: &'a FxHashMap<usize, Vec<u8>>,
}

/// A file of the answer: how it is, and the lines of it that are told already.
struct AnswerFile {
    state: Option<Fresh>,
    ranges: Vec<(u32, u32)>,
}

/// A file of the answer as the index and the disk have it.
struct Fresh {
    content_hash: String,
    clock: u64,
    changed: bool,
}

/// The first `k` answers of a query: `scored` names the passages, best first.
///
/// # Errors
/// `cancelled`, or when the database cannot be read.
pub fn build(
    query: &Query<'_>,
    ranked: &Ranked<'_>,
    cancel: &CancelFlag,
) -> Result<Vec<SearchItem>, Failure> {
    let mut files: FxHashMap<(usize, u32), AnswerFile> = FxHashMap::default();
    let mut texts: FxHashSet<u64> = FxHashSet::default();
    let mut items = Vec::new();
    for (i, score) in &ranked.scored {
        if items.len() >= query.params.k as usize {
            break;
        }
        cancel.check()?;
        let passage = &ranked.passages[*i];
        let c = &ranked.candidates[passage.candidate];
        let index = &query.roots[c.root];
        let file = match files.entry((c.root, c.file)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(slot) => slot.insert(AnswerFile { state: fresh(index, c)?, ranges: Vec::new() }),
        };
        let Some(state) = &file.state else { continue };
        let (symbol, range) = answer_range(c, passage, state.changed);
        // Neither the same text nor the same lines twice.
        if file.ranges.iter().any(|r| share_lines(*r, range))
            || passage.print.is_some_and(|print| !texts.insert(print))
        {
            continue;
        }
        let loaded;
        let text = match ranked.texts.get(&passage.candidate) {
            Some(text) => text,
            None => {
                let Some(text) = packed::text_of(&*index.readers.get()?, c.chunk)? else { continue };
                loaded = text;
                &loaded
            }
        };
        let mut made = item(query, index, c, text, (symbol, range), state);
        made.score = f64::from(*score);
        if query.params.explain {
            made.explain = passage.features.shares(query.weights(), *score);
        }
        file.ranges.push(range);
        items.push(made);
    }
    Ok(items)
}

/// Whether two ranges share at least half of the shorter one.
fn share_lines(a: (u32, u32), b: (u32, u32)) -> bool {
    let both = (a.1.min(b.1) + 1).saturating_sub(a.0.max(b.0));
    2 * both > (a.1 - a.0).min(b.1 - b.0)
}

/// Compares the indexed file with the disk. Nothing when it is gone from either.
fn fresh(index: &RootIndex, c: &Candidate) -> Result<Option<Fresh>, Failure> {
    let Ok(stat) = index.root.stat(&c.path) else { return Ok(None) };
    if stat.kind != EntryKind::File {
        return Ok(None);
    }
    let conn = index.readers.get()?;
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

fn item(
    query: &Query<'_>,
    index: &RootIndex,
    c: &Candidate,
    own: &[u8],
    (symbol, (start_line, end_line)): (Option<&Span>, (u32, u32)),
    state: &Fresh,
) -> SearchItem {
    let mut made = SearchItem {
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
        let (text, first) = text_of(index, c, own, (start_line, end_line), context, state.changed);
        made.highlights = highlights(query, &text);
        made.text_start_line = (first != start_line).then_some(first);
        made.text = Some(text);
    }
    made
}

/// The definition that answers, or the one around the window, and the lines to show.
pub fn answer_range<'a>(
    c: &'a Candidate,
    passage: &Passage,
    changed: bool,
) -> (Option<&'a Span>, (u32, u32)) {
    let Some(span) = passage.span.and_then(|n| c.spans.get(n)) else {
        let around = |s: &&Span| s.start_line <= passage.lines.0 && s.end_line >= passage.lines.1;
        return (c.spans.iter().rfind(around), passage.lines);
    };
    // A window's edge is no edge of what it answers with.
    let fits = rank::is_shown_complete(span) && !changed;
    (Some(span), if fits { (span.start_line, span.end_line) } else { passage.lines })
}

/// Lines of the file with context; of what is indexed when the file has changed since. With the first line's number.
fn text_of(
    index: &RootIndex,
    c: &Candidate,
    own: &[u8],
    (from, to): (u32, u32),
    context: u32,
    changed: bool,
) -> (String, u32) {
    let beyond = from < c.start_line || to > c.end_line;
    if (context > 0 || beyond) && !changed {
        let mut bytes = Vec::new();
        let read = index
            .root
            .open_file(&c.path)
            .ok()
            .and_then(|f| f.take(index.opts.max_file_bytes).read_to_end(&mut bytes).ok());
        if read.is_some() {
            let first = from.saturating_sub(context).max(1);
            return (lines(&bytes, 1, first, to.saturating_add(context)), first);
        }
    }
    (lines(own, c.start_line, from, to), from)
}

/// Lines `from` to `to` of `bytes`, whose first line has the number `base`.
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
    fn ranges_that_share_half_of_the_shorter_are_alike() {
        assert!(share_lines((1, 40), (35, 44)) && share_lines((5, 5), (1, 9)));
        assert!(
            !share_lines((1, 40), (36, 60)) && !share_lines((1, 4), (5, 9)) && !share_lines((50, 60), (1, 9))
        );
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
