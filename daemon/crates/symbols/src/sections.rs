//! Markdown headings with their sections.

use super::extract::{MAX_NAME, MAX_SYMBOLS, Symbol};

/// Name of the language.
pub const LANGUAGE: &str = "markdown";
/// Kind of a heading.
pub const KIND: &str = "section";
/// Number of heading levels.
const LEVELS: usize = 6;

/// The headings in order. A section ends before the next heading of its level or a higher one,
/// without trailing blank lines.
pub fn sections(text: &[u8]) -> Vec<Symbol> {
    let mut sections_found: Vec<(usize, Symbol)> = Vec::new();
    // Positions of the open sections in `sections_found`, outermost first.
    let mut open: Vec<usize> = Vec::new();
    let mut fence: Option<(u8, usize)> = None;
    let (mut row, mut last_text) = (0u32, 0u32);
    let mut previous_line: &[u8] = b"";
    let mut in_front = text.starts_with(b"---\n") || text.starts_with(b"---\r\n");
    for line in text.split(|b| *b == b'\n') {
        row += 1;
        let plain = line.trim_ascii();
        if in_front {
            // Front matter is skipped; unterminated front matter extends to the end of the file.
            in_front = row == 1 || plain != b"---";
            continue;
        }
        let is_code = matches!(line, [b' ', b' ', b' ', b' ', ..] | [b'\t', ..]);
        if let Some((mark, length)) = fence {
            if run_length(plain, mark) >= length && plain.len() == run_length(plain, mark) {
                fence = None;
            }
        } else if !is_code && let Some(opened) = opens_fence(plain) {
            fence = Some(opened);
        } else if sections_found.len() < MAX_SYMBOLS && !is_code {
            let under = setext_level(plain).filter(|_| is_paragraph(previous_line));
            let heading = under
                .map(|level| (level, row - 1, previous_line))
                .or_else(|| atx_heading(plain).map(|(level, name)| (level, row, name)));
            if let Some((level, at, name)) = heading {
                // The line of a title does not belong to the preceding section.
                let last = if at < row { last_text.min(at - 1) } else { last_text };
                close(&mut sections_found, &mut open, level, last.max(1));
                if let Some(name) = title_text(name) {
                    let container = open.last().map(|o| sections_found[*o].1.name.clone());
                    open.push(sections_found.len());
                    let symbol =
                        Symbol { name, kind: KIND, container, start_line: at, end_line: row };
                    sections_found.push((level, symbol));
                }
            }
        }
        if !plain.is_empty() {
            last_text = row;
        }
        previous_line = if is_code || fence.is_some() { b"" } else { plain };
    }
    close(&mut sections_found, &mut open, 1, last_text.max(1));
    sections_found.into_iter().map(|(_, s)| s).collect()
}

/// Closes the open sections of this level and below.
fn close(sections_found: &mut [(usize, Symbol)], open: &mut Vec<usize>, level: usize, last: u32) {
    while let Some(at) = open.pop_if(|o| sections_found[*o].0 >= level) {
        let symbol = &mut sections_found[at].1;
        symbol.end_line = symbol.end_line.max(last);
    }
}

/// Number of leading `mark` bytes.
fn run_length(line: &[u8], mark: u8) -> usize {
    line.iter().take_while(|b| **b == mark).count()
}

fn opens_fence(line: &[u8]) -> Option<(u8, usize)> {
    let mark = *line.first().filter(|b| matches!(b, b'`' | b'~'))?;
    let length = run_length(line, mark);
    // A line with further marks is inline code.
    (length >= 3 && (mark == b'~' || !line[length..].contains(&mark))).then_some((mark, length))
}

/// The level and title of `## Title ##`.
fn atx_heading(line: &[u8]) -> Option<(usize, &[u8])> {
    let level = run_length(line, b'#');
    let rest = line.get(level..)?;
    let spaced = rest.first().is_some_and(u8::is_ascii_whitespace);
    if !(1..=LEVELS).contains(&level) || !spaced {
        return None;
    }
    let title = rest.trim_ascii();
    let closed = title.iter().rev().take_while(|b| **b == b'#').count();
    let unclosed = &title[..title.len() - closed];
    let title = if closed > 0 && unclosed.last().is_none_or(u8::is_ascii_whitespace) {
        unclosed
    } else {
        title
    };
    Some((level, title.trim_ascii()))
}

/// The level of a heading that is underlined by this line.
fn setext_level(line: &[u8]) -> Option<usize> {
    let mark = *line.first()?;
    if run_length(line, mark) != line.len() || line.len() < 2 {
        return None;
    }
    match mark {
        b'=' => Some(1),
        b'-' => Some(2),
        _ => None,
    }
}

/// True if a line can be an underlined title: text that is not a list, quote, table, heading or
/// front matter.
fn is_paragraph(line: &[u8]) -> bool {
    !line.is_empty()
        && !matches!(line[0], b'>' | b'|' | b'#' | b'=')
        && !line.starts_with(b"- ")
        && !line.starts_with(b"* ")
        && !(line.iter().all(|b| matches!(b, b'-' | b'*' | b'_')))
}

/// The text of a title without emphasis, code marks and link targets.
fn title_text(title: &[u8]) -> Option<String> {
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
                // Tags are removed; a less-than sign remains.
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
