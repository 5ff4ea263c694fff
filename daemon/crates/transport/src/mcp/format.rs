//! Formatting of answers for models: short, ranked, `path:line`, bounded, with a way to continue.

use std::fmt::Write as _;

use cairn_protocol::{
    id::RootId,
    index::RootStatus,
    map::MapAnswer,
    search::{GrepAnswer, SymbolsAnswer},
};

/// Maximum bytes of one answer, some 8,000 tokens.
pub const MAX_ANSWER: usize = 32 * 1024;
/// Tokens of an answer: least, default and most.
const TOKENS: (u32, u32, u32) = (200, 3000, 8000);
/// Bytes that count as one token, as in repository maps.
const TOKEN_BYTES: usize = 4;
/// Maximum characters of a line of a passage or match.
const MAX_LINE: usize = 200;

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

/// The size that an answer may have.
#[derive(Debug, Clone, Copy)]
pub struct Budget(usize);

impl Budget {
    /// The budget of a requested number of tokens.
    pub fn tokens(requested: Option<u32>) -> Self {
        let (least, default, most) = TOKENS;
        let tokens = requested.unwrap_or(default).clamp(least, most);
        Self(tokens as usize * TOKEN_BYTES)
    }

    pub fn bytes(self) -> usize {
        self.0
    }

    pub fn token_count(self) -> u32 {
        u32::try_from(self.0 / TOKEN_BYTES).unwrap_or(u32::MAX)
    }
}

/// A text of bounded size that states when it was truncated.
struct Page {
    text: String,
    budget: Budget,
}

impl Page {
    fn new(budget: Budget) -> Self {
        Self { text: String::new(), budget }
    }

    /// Appends a line or block; false when there is no space left. The first one always fits, so
    /// that every answer makes progress; a line has a maximum length.
    fn add(&mut self, text: &str) -> bool {
        if !self.text.is_empty() && !self.fits(text) {
            return false;
        }
        self.text.push_str(text);
        self.text.push('\n');
        true
    }

    fn fits(&self, text: &str) -> bool {
        self.text.len() + text.len() < self.budget.bytes()
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

/// Adds matching lines to a page until one does not fit; returns their number.
fn add_lines(page: &mut Page, answer: &GrepAnswer, style: &LocationStyle) -> usize {
    for (included, item) in answer.items.iter().enumerate() {
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
            return included;
        }
    }
    answer.items.len()
}

/// Returns the number of matching lines that fit into the budget.
pub fn fitting_lines(answer: &GrepAnswer, style: &LocationStyle, budget: Budget) -> usize {
    add_lines(&mut Page::new(budget), answer, style)
}

/// Formats the answer of `grep`.
pub fn lines(answer: &GrepAnswer, style: &LocationStyle, budget: Budget) -> String {
    let mut page = Page::new(budget);
    add_lines(&mut page, answer, style);
    let mut out = page.text;
    if answer.items.is_empty() {
        out.push_str("no lines match; search finds by meaning\n");
    } else if let Some(cursor) = &answer.next_cursor {
        let _ok = writeln!(
            out,
            "[more lines match: narrow with path or glob, or continue with cursor=\"{cursor}\"]"
        );
    }
    if !answer.unreadable.is_empty() {
        let _ok = writeln!(out, "[{} files could not be read]", answer.unreadable.len());
    }
    incomplete(&mut out, answer.complete);
    out
}

/// Formats the answer of `symbols`.
pub fn symbols(answer: &SymbolsAnswer, style: &LocationStyle, k: usize, budget: Budget) -> String {
    let mut page = Page::new(budget);
    let mut included = 0;
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
        included += 1;
    }
    let mut out = page.text;
    let total = answer.items.len();
    if answer.items.is_empty() {
        out.push_str("no definition matches; search finds by meaning\n");
    } else if included < total {
        let left_out = total - included;
        let _ok =
            writeln!(out, "[{left_out} left out: narrow with path or kind, or raise maxTokens]");
    } else if total >= k {
        out.push_str("[there may be more: raise k, or narrow with path or kind]\n");
    }
    incomplete(&mut out, answer.complete);
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

/// Formats the answer of `map`.
pub fn map(answer: &MapAnswer) -> String {
    let mut out = bounded(answer.text.clone(), MAX_ANSWER, "reduce it with maxTokens");
    if out.is_empty() {
        out.push_str("the map is empty: no definitions are known\n");
    }
    incomplete(&mut out, answer.complete);
    out
}

mod command;
mod file;
mod passages;
mod relations;

pub use command::command;
pub use file::{file, span};
pub use passages::passages;
pub use relations::{calls, impact, references};

#[cfg(test)]
mod tests;
