//! Bold, italic, code and links inside a line, and line wrapping.

use std::ops::Range;

use console::{Style, measure_text_width};

use crate::render::{highlight::Piece, theme::Theme};

/// The appearance of a line.
pub struct LineStyle {
    /// The style of unmarked words.
    pub base: Style,
    /// Text before the first row.
    pub first: String,
    /// Indentation of further rows in columns.
    pub hang: usize,
}

/// Columns of the rows of a line: rows that are on the terminal keep theirs when its width changes.
#[derive(Debug, Clone, Copy)]
pub struct RowWidths<'a> {
    pub emitted: &'a [usize],
    pub next: usize,
}

impl RowWidths<'_> {
    fn of(&self, row: usize) -> usize {
        self.emitted.get(row).copied().unwrap_or(self.next)
    }
}

impl From<usize> for RowWidths<'_> {
    fn from(next: usize) -> Self {
        Self { emitted: &[], next }
    }
}

/// Indentation of a line of code.
const CODE_INDENT: usize = 2;
/// Further indentation of the rows that continue a line of code.
const CODE_HANG: usize = 4;

/// Renders a line of code with its pieces as rows that are broken at spaces.
pub fn code_rows(line: &str, pieces: &[Piece], theme: Theme, width: usize) -> Vec<String> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let hang = (indent + CODE_HANG).min(width / 2);
    let mut rows = Vec::new();
    let mut start = 0;
    while start < line.len() || rows.is_empty() {
        let space = if rows.is_empty() { CODE_INDENT } else { CODE_INDENT + hang };
        let end = start + row_end(&line[start..], width.saturating_sub(space).max(1));
        let text = code_row(line, start..end, pieces, theme);
        rows.push(format!("{}{text}", " ".repeat(space)));
        let rest = &line[end..];
        start = end + (rest.len() - rest.trim_start_matches(' ').len());
    }
    rows
}

/// Returns the end of the first row of a text: after its last space within the columns.
fn row_end(text: &str, columns: usize) -> usize {
    if text.len() <= columns || measure_text_width(text) <= columns {
        return text.len();
    }
    let mut used = 0;
    let mut last_space = None;
    let mut has_word = false;
    for (at, c) in text.char_indices() {
        used += measure_text_width(c.encode_utf8(&mut [0; 4]));
        if c == ' ' {
            last_space = has_word.then_some(at).or(last_space);
        } else if used > columns && at > 0 {
            return last_space.unwrap_or(at);
        } else {
            has_word = true;
        }
    }
    text.len()
}

fn code_row(line: &str, range: Range<usize>, pieces: &[Piece], theme: Theme) -> String {
    if pieces.is_empty() {
        return line.get(range).unwrap_or_default().to_owned();
    }
    let mut out = String::new();
    for (piece, look) in pieces {
        let visible = piece.start.max(range.start)..piece.end.min(range.end);
        if let Some(text) = line.get(visible).filter(|text| !text.is_empty()) {
            out.push_str(&look.style(theme).force_styling(true).apply_to(text).to_string());
        }
    }
    out
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    bold: bool,
    italic: bool,
    code: bool,
    /// Text of a link.
    link: bool,
    /// Address of a link.
    address: bool,
}

impl Marks {
    fn style(self, base: &Style) -> Style {
        let mut style = base.clone();
        if self.bold {
            style = style.bold().force_styling(true);
        }
        if self.italic {
            style = style.italic().force_styling(true);
        }
        if self.code {
            style = style.cyan().force_styling(true);
        }
        if self.link {
            style = style.underlined().force_styling(true);
        }
        if self.address {
            style = style.dim().force_styling(true);
        }
        style
    }
}

/// Wraps a line into rows. Appending text after [`stable_end`] changes only the last row.
pub fn rows(line: &str, line_style: &LineStyle, widths: RowWidths<'_>) -> Vec<String> {
    let mut rows = Rows::new(line_style, widths);
    let mut word: Vec<(Marks, String)> = Vec::new();
    for (marks, text) in parse(line).0 {
        for part in text.split_inclusive(' ') {
            word.push((marks, part.to_owned()));
            if part.ends_with(' ') {
                rows.word(&word);
                word.clear();
            }
        }
    }
    if !word.is_empty() {
        rows.word(&word);
    }
    rows.end()
}

/// Returns the end of the words whose marks no further text can change.
pub fn stable_end(line: &str) -> usize {
    parse(line).1
}

/// Wraps a line without interpreting marks.
pub fn words(line: &str, line_style: &LineStyle, width: usize) -> Vec<String> {
    let mut rows = Rows::new(line_style, width.into());
    for word in line.split_inclusive(' ') {
        rows.word(&[(Marks::default(), word.to_owned())]);
    }
    rows.end()
}

/// Wraps a line of plain text.
pub fn wrap(line: &str, width: usize) -> Vec<String> {
    let line_style = LineStyle { base: Style::new(), first: String::new(), hang: 0 };
    words(line, &line_style, width)
}

/// Splits a line into pieces by its marks, and returns the end of those that further text cannot
/// change.
fn parse(line: &str) -> (Vec<(Marks, String)>, usize) {
    let mut pieces: Vec<(Marks, String)> = Vec::new();
    let mut push = |marks: Marks, text: &str| match pieces.last_mut() {
        Some((last, all)) if *last == marks => all.push_str(text),
        _ => pieces.push((marks, text.to_owned())),
    };
    let chars: Vec<char> = line.chars().collect();
    let mut marks = Marks::default();
    let (mut at, mut byte, mut stable) = (0, 0, 0);
    let mut is_open = false;
    while let Some(c) = chars.get(at) {
        let link = if *c == '[' && !marks.code { link(&chars[at..]) } else { Link::None };
        is_open |= link == Link::Open;
        let step = match (link, mark_at(&chars, at, marks)) {
            (Link::Complete { text, end }, _) => {
                let raw: String = chars[at + 1..at + text].iter().collect();
                let address: String = chars[at + text + 2..at + end - 1].iter().collect();
                let unmarked = raw.trim_matches(['*', '`']);
                let label = if unmarked.is_empty() { &raw } else { unmarked };
                push(Marks { link: true, ..marks }, label);
                if address != label {
                    push(Marks { address: true, ..Marks::default() }, &format!(" ({address})"));
                }
                end
            }
            (_, (Some(next), step)) => {
                marks = next;
                step
            }
            (_, (None, step)) => {
                push(marks, c.encode_utf8(&mut [0; 4]));
                step
            }
        };
        if *c == ' ' && !is_open {
            stable = byte;
        }
        byte += chars[at..at + step].iter().map(|c| c.len_utf8()).sum::<usize>();
        at += step;
    }
    (pieces, stable)
}

/// Longest text and address of a link, in characters.
const MAX_LINK: usize = 500;

/// A link `[text](address)` at the start of some characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// Positions of the bracket that ends the text, and of the end of the link.
    Complete {
        text: usize,
        end: usize,
    },
    /// Further characters decide.
    Open,
    None,
}

fn link(chars: &[char]) -> Link {
    let bracket = chars.iter().take(MAX_LINK).skip(1).position(|c| matches!(c, '[' | ']'));
    let text = match bracket.map(|at| at + 1) {
        Some(at) if at > 1 && chars[at] == ']' => at,
        Some(_) => return Link::None,
        None if chars.len() < MAX_LINK => return Link::Open,
        None => return Link::None,
    };
    match chars.get(text + 1) {
        None => return Link::Open,
        Some('(') => {}
        Some(_) => return Link::None,
    }
    let mut depth = 0_usize;
    for (at, c) in chars.iter().enumerate().skip(text + 1).take(MAX_LINK) {
        match c {
            '(' => depth += 1,
            ')' if depth > 1 => depth -= 1,
            ')' if at == text + 2 => return Link::None,
            ')' => return Link::Complete { text, end: at + 1 },
            c if c.is_whitespace() => return Link::None,
            _ => {}
        }
    }
    if chars.len() - text <= MAX_LINK { Link::Open } else { Link::None }
}

struct Rows<'a> {
    line_style: &'a LineStyle,
    widths: RowWidths<'a>,
    done: Vec<String>,
    row: String,
    /// Columns of `row` and `run`.
    used: usize,
    /// The marks of `run`.
    marks: Marks,
    /// Text of one style that is not in `row` yet.
    run: String,
}

impl<'a> Rows<'a> {
    fn new(line_style: &'a LineStyle, widths: RowWidths<'a>) -> Self {
        let row = line_style.first.clone();
        let used = measure_text_width(&row);
        Self {
            line_style,
            widths,
            done: Vec::new(),
            row,
            used,
            marks: Marks::default(),
            run: String::new(),
        }
    }

    /// Returns the columns of the current row.
    fn width(&self) -> usize {
        self.widths.of(self.done.len())
    }

    /// Adds a word and the space after it.
    fn word(&mut self, pieces: &[(Marks, String)]) {
        let text: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
        let columns = measure_text_width(text.trim_end());
        if self.used + columns > self.width() && self.used > self.line_style.hang {
            self.wrap();
        }
        for (marks, text) in pieces {
            for c in text.chars() {
                let wide = measure_text_width(c.encode_utf8(&mut [0; 4]));
                // The word is wider than a row.
                if self.used + wide > self.width() && c != ' ' {
                    self.wrap();
                }
                self.put(*marks, c);
                self.used += wide;
            }
        }
    }

    fn put(&mut self, marks: Marks, c: char) {
        if marks != self.marks {
            self.flush();
            self.marks = marks;
        }
        self.run.push(c);
    }

    fn flush(&mut self) {
        let run = std::mem::take(&mut self.run);
        if !run.is_empty() {
            self.row.push_str(&self.marks.style(&self.line_style.base).apply_to(run).to_string());
        }
    }

    fn wrap(&mut self) {
        let trimmed_len = self.run.trim_end().len();
        self.run.truncate(trimmed_len);
        self.flush();
        let row = std::mem::replace(&mut self.row, " ".repeat(self.line_style.hang));
        self.done.push(row.trim_end().to_owned());
        self.used = self.line_style.hang;
    }

    fn end(mut self) -> Vec<String> {
        let trimmed_len = self.run.trim_end().len();
        self.run.truncate(trimmed_len);
        self.flush();
        self.done.push(self.row.trim_end().to_owned());
        self.done
    }
}

/// Returns the marks after the mark at this position, and the number of its characters.
fn mark_at(chars: &[char], at: usize, now: Marks) -> (Option<Marks>, usize) {
    let get = |n: usize| chars.get(n).copied();
    let ends = |n: usize| get(n).is_none_or(char::is_whitespace);
    let begins = |n: usize| n == 0 || get(n - 1).is_some_and(|c| !c.is_alphanumeric());
    let follows = |n: usize| n > 0 && get(n - 1) != Some(' ');
    match get(at) {
        Some('`') => (Some(Marks { code: !now.code, ..now }), 1),
        Some('*') if now.code => (None, 1),
        Some('*') if get(at + 1) == Some('*') => {
            let turns = if now.bold { follows(at) } else { !ends(at + 2) && begins(at) };
            // Marks that open nothing are plain text.
            if turns { (Some(Marks { bold: !now.bold, ..now }), 2) } else { (None, 1) }
        }
        Some('*') => {
            let before = at > 0 && get(at - 1) == Some('*') && !now.bold;
            let turns =
                if now.italic { follows(at) } else { !ends(at + 1) && begins(at) && !before };
            if turns { (Some(Marks { italic: !now.italic, ..now }), 1) } else { (None, 1) }
        }
        _ => (None, 1),
    }
}
