//! Formatting of answers for models: short, ranked, `path:line`, bounded, with a way to continue.

use std::fmt::Write as _;

use cairn_protocol::{
    content::Span,
    id::RootId,
    index::RootStatus,
    map::MapAnswer,
    search::{GrepAnswer, SearchAnswer, SearchItem, SymbolsAnswer},
};

/// Maximum bytes of one answer, some 8,000 tokens.
pub const MAX_ANSWER: usize = 32 * 1024;
/// Maximum characters of a line of a passage or match.
const MAX_LINE: usize = 200;
/// Maximum lines of a passage.
const MAX_PASSAGE_LINES: usize = 30;

/// The form of locations.
pub enum LocationStyle {
    /// Relative to one root.
    Relative,
    /// Absolute, in any of these roots.
    Absolute(Vec<RootStatus>),
}

impl LocationStyle {
    fn name(&self, root: &RootId, path: &str) -> String {
        let root = match self {
            Self::Relative => None,
            Self::Absolute(roots) => roots.iter().find(|r| r.root == *root),
        };
        root.map_or_else(|| line(path), |r| line(&format!("{}/{path}", r.path)))
    }
}

/// A text of bounded size that states when it was truncated.
struct Page(String);

impl Page {
    /// Appends a line or block; false when there is no space left.
    fn add(&mut self, text: &str) -> bool {
        if self.0.len() + text.len() >= MAX_ANSWER {
            return false;
        }
        self.0.push_str(text);
        self.0.push('\n');
        true
    }
}

/// Reduces untrusted text to one line without control characters.
fn line(text: &str) -> String {
    let replace_tab = |c: char| if c == '\t' { ' ' } else { c };
    text.chars().map(replace_tab).filter(|c| !c.is_control()).collect()
}

/// Reduces untrusted text to one line of bounded length.
fn short(text: &str) -> String {
    let text = line(text.trim());
    match text.char_indices().nth(MAX_LINE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Truncates a text to `bytes` and then appends `more`.
pub fn bounded(text: String, bytes: usize, more: &str) -> String {
    if text.len() <= bytes {
        return text;
    }
    let end = (0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\n[cut: {end} of {} bytes; {more}]", &text[..end], text.len())
}

/// Selects the most informative line of a passage: the one with most matches, else the first
/// non-trivial one.
fn best_line(item: &SearchItem) -> Option<String> {
    let text = item.text.as_deref()?;
    let mut at = 0;
    let mut best: Option<(usize, &str)> = None;
    for full in text.split_inclusive('\n') {
        let from = at;
        let to = at + full.len();
        at = to;
        if full.chars().filter(|c| c.is_alphanumeric()).count() < 3 {
            continue;
        }
        let inside = |h: &&[u32; 2]| (h[0] as usize) >= from && (h[0] as usize) < to;
        let hits = item.highlights.iter().filter(inside).count();
        if best.is_none_or(|(best_hits, _)| hits > best_hits) {
            best = Some((hits, full));
        }
    }
    best.map(|(_, text)| short(text))
}

/// Formats the answer of `search`: `k` results starting at `from`.
pub fn passages(
    answer: &SearchAnswer,
    style: &LocationStyle,
    from: usize,
    k: usize,
    text: bool,
) -> String {
    let mut page = Page(String::new());
    let selected = answer.items.iter().enumerate().skip(from).take(k);
    let mut last = from;
    for (at, item) in selected {
        let location = style.name(&item.root, &item.path);
        let mut entry = format!("{}. {location}:{}-{}", at + 1, item.start_line, item.end_line);
        if let Some(symbol) = &item.symbol {
            let _ok = write!(entry, "  {} {}", symbol.kind, line(&symbol.name));
        }
        if item.changed {
            entry.push_str("  (changed since)");
        }
        if text {
            let lines = item.text.as_deref().unwrap_or_default().lines();
            let first = item.text_start_line.unwrap_or(item.start_line);
            lines.take(MAX_PASSAGE_LINES).zip(first..).for_each(|(text, number)| {
                let _ok = write!(entry, "\n{number:>6}| {}", short_keeping_indent(text));
            });
        } else if let Some(best_line) = best_line(item) {
            let _ok = write!(entry, "\n   {best_line}");
        }
        if !page.add(&entry) {
            break;
        }
        last = at + 1;
    }
    let mut out = page.0;
    if last == from {
        out.push_str("nothing was found; try other words, or search_lines for exact text\n");
    } else if answer.items.len() > last {
        let _ok = writeln!(out, "[more: the same call with cursor=\"{last}\"]");
    }
    incomplete(&mut out, answer.complete);
    out
}

/// Formats a line of a file, keeping its indentation, with bounded length.
fn short_keeping_indent(text: &str) -> String {
    let text = line(&text.replace('\t', "    "));
    let end = text.char_indices().nth(MAX_LINE).map_or(text.len(), |(at, _)| at);
    text[..end].trim_end().to_owned()
}

fn incomplete(out: &mut String, complete: bool) {
    if !complete {
        out.push_str("[the index is still being built: there may be more in a moment]\n");
    }
}

/// Formats the answer of `search_lines`.
pub fn lines(answer: &GrepAnswer, style: &LocationStyle) -> String {
    let mut page = Page(String::new());
    let mut included = 0;
    for item in &answer.items {
        let location = style.name(&item.root, &item.path);
        let first = item.line.saturating_sub(u32::try_from(item.before.len()).unwrap_or(0));
        let around = |(text, number): (&String, u32)| {
            format!("{location}-{number}- {}\n", short_keeping_indent(text))
        };
        let mut entry: String = item.before.iter().zip(first..).map(around).collect();
        let _ok = write!(entry, "{location}:{}: {}", item.line, short(&item.text));
        for (text, number) in item.after.iter().zip(item.line + 1..) {
            let _ok = write!(entry, "\n{}", around((text, number)).trim_end());
        }
        if !page.add(&entry) {
            break;
        }
        included += 1;
    }
    let mut out = page.0;
    if answer.items.is_empty() {
        out.push_str("no lines match\n");
    } else if included < answer.items.len() {
        let _ok = writeln!(
            out,
            "[cut at {included} of {} lines: narrow it with path or globs, or request fewer with k]",
            answer.items.len()
        );
    } else if let Some(cursor) = &answer.next_cursor {
        let _ok = writeln!(out, "[more: the same call with cursor=\"{cursor}\"]");
    }
    incomplete(&mut out, answer.complete);
    out
}

/// Formats the answer of `symbols`.
pub fn symbols(answer: &SymbolsAnswer, style: &LocationStyle, k: usize) -> String {
    let mut page = Page(String::new());
    for item in &answer.items {
        let location = style.name(&item.root, &item.path);
        let inside =
            item.container.as_deref().map_or_else(String::new, |c| format!(" in {}", line(c)));
        let entry = format!(
            "{location}:{}-{} {} {}{inside}",
            item.start_line,
            item.end_line,
            item.kind,
            line(&item.name)
        );
        if !page.add(&entry) {
            break;
        }
    }
    let mut out = page.0;
    if answer.items.is_empty() {
        out.push_str("no definition matches; search finds by meaning\n");
    } else if answer.items.len() >= k {
        let _ok = writeln!(out, "[there may be more: use a larger k, or path or kinds]");
    }
    incomplete(&mut out, answer.complete);
    out
}

/// Formats the answer of `read_span`; `open` if the caller did not choose the end.
pub fn span(span: &Span, open: bool) -> String {
    if span.end_line < span.start_line {
        let lines = span.total_lines.map_or_else(String::new, |n| format!(", it has {n}"));
        return format!("{} has no line {}{lines}\n", line(&span.path), span.start_line);
    }
    let mut page = Page(String::new());
    let total = span.total_lines.map_or_else(String::new, |n| format!(" of {n}"));
    page.add(&format!("{}:{}-{}{total}", line(&span.path), span.start_line, span.end_line));
    let mut next = span.start_line;
    for text in span.text.lines() {
        if !page.add(&format!("{next:>6}| {}", printable(text))) {
            break;
        }
        next += 1;
    }
    let mut out = page.0;
    let at_end = span.total_lines.is_some_and(|n| next > n);
    if !at_end && (open || span.truncated || next <= span.end_line) {
        let _ok = writeln!(out, "[more: the same call with start={next}]");
    }
    out
}

/// Maximum characters of one line of a file.
const MAX_FILE_LINE: usize = 2000;

/// Formats a line of a file unchanged except for terminal control characters.
fn printable(text: &str) -> String {
    let visible: String =
        text.chars().filter(|c| !c.is_control() || *c == '\t').take(MAX_FILE_LINE).collect();
    if text.chars().nth(MAX_FILE_LINE).is_some() { format!("{visible}…") } else { visible }
}

/// Formats the answer of `repo_map`.
pub fn map(answer: &MapAnswer) -> String {
    let mut out = bounded(answer.text.clone(), MAX_ANSWER, "reduce it with budget");
    if out.is_empty() {
        out.push_str("the map is empty: no definitions are known\n");
    }
    incomplete(&mut out, answer.complete);
    out
}

mod relations;

pub use relations::{calls, impact, references};

#[cfg(test)]
mod tests;
