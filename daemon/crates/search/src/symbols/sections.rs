//! Markdown: its headings, each with what lies under it.

use super::extract::{MAX_NAME, MAX_SYMBOLS, Symbol};

/// The language's name.
pub const LANGUAGE: &str = "markdown";
/// The kind of a heading.
pub const KIND: &str = "section";
/// Levels of headings.
const LEVELS: usize = 6;

/// Headings in order; a section ends before the next heading of its level or a higher one, blank lines left out.
pub fn sections(text: &[u8]) -> Vec<Symbol> {
    let mut found: Vec<(usize, Symbol)> = Vec::new();
    // The sections that lie open, outermost first, as places in `found`.
    let mut open: Vec<usize> = Vec::new();
    let mut fence: Option<(u8, usize)> = None;
    let (mut row, mut last_text) = (0u32, 0u32);
    let mut before: &[u8] = b"";
    let mut in_front = text.starts_with(b"---\n") || text.starts_with(b"---\r\n");
    for line in text.split(|b| *b == b'\n') {
        row += 1;
        let plain = line.trim_ascii();
        if in_front {
            // Front matter is no text; where it has no end, neither has the file.
            in_front = row == 1 || plain != b"---";
            continue;
        }
        let is_code = matches!(line, [b' ', b' ', b' ', b' ', ..] | [b'\t', ..]);
        if let Some((mark, length)) = fence {
            if run(plain, mark) >= length && plain.len() == run(plain, mark) {
                fence = None;
            }
        } else if !is_code && let Some(opened) = opens_fence(plain) {
            fence = Some(opened);
        } else if found.len() < MAX_SYMBOLS && !is_code {
            let under = underlined(plain).filter(|_| is_paragraph(before));
            let heading = under
                .map(|level| (level, row - 1, before))
                .or_else(|| atx(plain).map(|(level, name)| (level, row, name)));
            if let Some((level, at, name)) = heading {
                // A title's own line is no text of the section before it.
                let last = if at < row { last_text.min(at - 1) } else { last_text };
                close(&mut found, &mut open, level, last.max(1));
                if let Some(name) = shown(name) {
                    let container = open.last().map(|o| found[*o].1.name.clone());
                    open.push(found.len());
                    let symbol = Symbol { name, kind: KIND, container, start_line: at, end_line: row };
                    found.push((level, symbol));
                }
            }
        }
        if !plain.is_empty() {
            last_text = row;
        }
        before = if is_code || fence.is_some() { b"" } else { plain };
    }
    close(&mut found, &mut open, 1, last_text.max(1));
    found.into_iter().map(|(_, s)| s).collect()
}

/// Ends the open sections of this level and below.
fn close(found: &mut [(usize, Symbol)], open: &mut Vec<usize>, level: usize, last: u32) {
    while let Some(at) = open.pop_if(|o| found[*o].0 >= level) {
        let symbol = &mut found[at].1;
        symbol.end_line = symbol.end_line.max(last);
    }
}

/// How often `mark` stands at the beginning.
fn run(line: &[u8], mark: u8) -> usize {
    line.iter().take_while(|b| **b == mark).count()
}

fn opens_fence(line: &[u8]) -> Option<(u8, usize)> {
    let mark = *line.first().filter(|b| matches!(b, b'`' | b'~'))?;
    let length = run(line, mark);
    // A line with more of them behind is code within a sentence.
    (length >= 3 && (mark == b'~' || !line[length..].contains(&mark))).then_some((mark, length))
}

/// `## Title ##`: its level and title.
fn atx(line: &[u8]) -> Option<(usize, &[u8])> {
    let level = run(line, b'#');
    let rest = line.get(level..)?;
    let spaced = rest.first().is_some_and(u8::is_ascii_whitespace);
    if !(1..=LEVELS).contains(&level) || !spaced {
        return None;
    }
    let title = rest.trim_ascii();
    let closed = title.iter().rev().take_while(|b| **b == b'#').count();
    let before = &title[..title.len() - closed];
    let title = if closed > 0 && before.last().is_none_or(u8::is_ascii_whitespace) { before } else { title };
    Some((level, title.trim_ascii()))
}

/// The level that a line under a title gives it.
fn underlined(line: &[u8]) -> Option<usize> {
    let mark = *line.first()?;
    if run(line, mark) != line.len() || line.len() < 2 {
        return None;
    }
    match mark {
        b'=' => Some(1),
        b'-' => Some(2),
        _ => None,
    }
}

/// Whether a line can be a title that is underlined: text, and no list, quote, table, heading or front matter.
fn is_paragraph(line: &[u8]) -> bool {
    !line.is_empty()
        && !matches!(line[0], b'>' | b'|' | b'#' | b'=')
        && !line.starts_with(b"- ")
        && !line.starts_with(b"* ")
        && !(line.iter().all(|b| matches!(b, b'-' | b'*' | b'_')))
}

/// A title as it is read: without emphasis, code marks and link targets.
fn shown(title: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(title);
    let mut name = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(at) = rest.find(['`', '*', ']', '[', '<']) {
        name.push_str(&rest[..at]);
        let mark = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        if mark == b']' && rest.starts_with('(') {
            rest = rest.find(')').map_or("", |n| &rest[n + 1..]);
        } else if mark == b'<' {
            match rest.find('>') {
                // A tag goes; what is less than something stays.
                Some(n) if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') => {
                    rest = &rest[n + 1..]
                }
                _ => name.push('<'),
            }
        }
    }
    name.push_str(rest);
    let mut name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = name.char_indices().find(|(i, c)| i + c.len_utf8() > MAX_NAME) {
        name.truncate(end);
    }
    (!name.is_empty()).then_some(name)
}
