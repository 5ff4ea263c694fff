//! Formatting of passages: the best ones with most of their text, the others with the lines around
//! the best match.

use std::fmt::Write as _;

use cairn_protocol::search::{SearchAnswer, SearchItem};

use super::{Budget, LocationStyle, Page, incomplete, line, short_keeping_indent};

/// Results whose passage is printed at length.
const LONG_RESULTS: usize = 3;
/// Lines of a passage: of the first results, and of the others.
const PASSAGE_LINES: (usize, usize) = (30, 8);
/// Lines before the best match of a shortened passage.
const LINES_BEFORE: usize = 2;

/// One passage with the further results of the same definition.
struct Entry<'a> {
    item: &'a SearchItem,
    /// Line ranges of further results.
    further: Vec<(u32, u32)>,
}

/// Merges results that lie in an earlier one or in the same definition.
fn merged(items: &[SearchItem]) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for item in items {
        let same = entries.iter_mut().find(|entry| {
            let first = entry.item;
            let is_inside = first.start_line <= item.start_line && item.end_line <= first.end_line;
            let is_same_definition = item.symbol.is_some() && item.symbol == first.symbol;
            first.root == item.root && first.path == item.path && (is_inside || is_same_definition)
        });
        match same {
            Some(entry)
                if item.end_line > entry.item.end_line
                    || item.start_line < entry.item.start_line =>
            {
                entry.further.push((item.start_line, item.end_line));
            }
            Some(_) => {}
            None => entries.push(Entry { item, further: vec![] }),
        }
    }
    entries
}

/// Returns the index of the line with most matches, else of the first non-trivial one.
fn best_line(item: &SearchItem, text: &str) -> usize {
    let mut at = 0;
    let mut best: Option<(usize, usize)> = None;
    for (index, full) in text.split_inclusive('\n').enumerate() {
        let from = at;
        at += full.len();
        if full.chars().filter(|c| c.is_alphanumeric()).count() < 3 {
            continue;
        }
        let inside = |h: &&[u32; 2]| (h[0] as usize) >= from && (h[0] as usize) < at;
        let hits = item.highlights.iter().filter(inside).count();
        if best.is_none_or(|(best_hits, _)| hits > best_hits) {
            best = Some((hits, index));
        }
    }
    best.map_or(0, |(_, index)| index)
}

/// Writes at most `most` lines of a passage; returns true if some are missing.
fn write_text(entry: &mut String, item: &SearchItem, most: usize) -> bool {
    let text = item.text.as_deref().unwrap_or_default();
    let first = item.text_start_line.unwrap_or(item.start_line);
    let total = text.lines().count();
    let numbered = text.lines().zip(first..).enumerate();
    let start = if total <= most {
        0
    } else {
        best_line(item, text).saturating_sub(LINES_BEFORE).min(total - most)
    };
    for (index, (text, number)) in numbered {
        // The first line usually names the definition.
        if index == 0 && start > 0 {
            let gap = if start > 1 { "\n…" } else { "" };
            let _ok = write!(entry, "\n{number}|{}{gap}", short_keeping_indent(text));
        }
        if (start..start + most).contains(&index) {
            let _ok = write!(entry, "\n{number}|{}", short_keeping_indent(text));
        }
    }
    if start + most < total {
        entry.push_str("\n…");
    }
    total > most
}

fn head(entry: &Entry<'_>, style: &LocationStyle) -> String {
    let item = entry.item;
    let location = style.name(&item.root, &item.path);
    let mut head = format!("{location}:{}-{}", item.start_line, item.end_line);
    if let Some(symbol) = &item.symbol {
        let _ok = write!(head, " {} {}", symbol.kind, line(&symbol.name));
    }
    if !entry.further.is_empty() {
        let ranges = entry.further.iter().map(|(from, to)| format!("{from}-{to}"));
        let _ok = write!(head, " (also {})", ranges.collect::<Vec<_>>().join(", "));
    }
    if item.changed {
        head.push_str(" (changed since indexing)");
    }
    head
}

/// Formats the answer of `search`: `k` results starting at `from`.
pub fn passages(
    answer: &SearchAnswer,
    style: &LocationStyle,
    from: usize,
    k: usize,
    budget: Budget,
) -> String {
    let mut page = Page::new(budget);
    let end = answer.items.len().min(from.saturating_add(k));
    let selected = answer.items.get(from..end).unwrap_or_default();
    let entries = merged(selected);
    let mut is_shortened = false;
    let mut included = 0;
    for (rank, entry) in entries.iter().enumerate() {
        let most = if rank < LONG_RESULTS { PASSAGE_LINES.0 } else { PASSAGE_LINES.1 };
        // A passage that does not fit is printed shorter, and then by its best line alone.
        let forms = [most, PASSAGE_LINES.1, 1].map(|most| {
            let mut block = head(entry, style);
            let is_cut = write_text(&mut block, entry.item, most);
            (block, is_cut)
        });
        let [.., shortest] = &forms;
        let (block, is_cut) = forms.iter().find(|(block, _)| page.fits(block)).unwrap_or(shortest);
        if !page.add(block) {
            break;
        }
        is_shortened |= is_cut;
        included += 1;
    }
    let mut out = page.text;
    if answer.weak {
        out.insert_str(0, "[no good match: only the nearest; try other words, or grep]\n");
    }
    if answer.degraded.iter().any(|part| part == "script") {
        out.insert_str(0, "[this script is searched by words only, not by meaning]\n");
    }
    if selected.is_empty() {
        out.push_str("nothing was found; try other words, or grep for exact text\n");
    }
    if is_shortened {
        out.push_str("[… marks lines left out: read has them]\n");
    }
    let next = match entries.get(included) {
        Some(missing) => position(selected, missing.item) + from,
        None => end,
    };
    if next < answer.items.len() {
        let _ok = writeln!(out, "[more results: cursor=\"{next}\"]");
    }
    incomplete(&mut out, answer.complete);
    out
}

/// Returns the position of a result among those that were selected.
fn position(selected: &[SearchItem], item: &SearchItem) -> usize {
    selected.iter().position(|other| std::ptr::eq(other, item)).unwrap_or(0)
}
