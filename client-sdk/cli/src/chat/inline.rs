//! Bold, italic and code inside a line, and line wrapping.

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

/// Renders a line of code with its pieces.
pub fn code_row(line: &str, pieces: &[Piece], theme: Theme) -> String {
    let mut out = "  ".to_owned();
    if pieces.is_empty() {
        out.push_str(line);
        return out;
    }
    for (range, look) in pieces {
        let text = line.get(range.clone()).unwrap_or_default();
        out.push_str(&look.style(theme).force_styling(true).apply_to(text).to_string());
    }
    out
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    bold: bool,
    italic: bool,
    code: bool,
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
        style
    }
}

/// Wraps a line into rows. Appending text after a space changes only the last row.
pub fn rows(line: &str, line_style: &LineStyle, width: usize) -> Vec<String> {
    let mut rows = Rows::new(line_style, width);
    let mut marks = Marks::default();
    for word in line.split_inclusive(' ') {
        rows.word(&split_marks(word, &mut marks));
    }
    rows.end()
}

/// Wraps a line without interpreting marks.
pub fn words(line: &str, line_style: &LineStyle, width: usize) -> Vec<String> {
    let mut rows = Rows::new(line_style, width);
    for word in line.split_inclusive(' ') {
        rows.word(&[(Marks::default(), word.to_owned())]);
    }
    rows.end()
}

/// Splits a word into pieces by its marks, which stay active after it.
fn split_marks(word: &str, marks: &mut Marks) -> Vec<(Marks, String)> {
    let mut pieces: Vec<(Marks, String)> = Vec::new();
    let chars: Vec<char> = word.chars().collect();
    let mut at = 0;
    while let Some(c) = chars.get(at) {
        let (mark, step) = mark_at(&chars, at, *marks);
        if let Some(next) = mark {
            *marks = next;
        } else {
            match pieces.last_mut() {
                Some((last, text)) if last == marks => text.push(*c),
                _ => pieces.push((*marks, c.to_string())),
            }
        }
        at += step;
    }
    pieces
}

struct Rows<'a> {
    line_style: &'a LineStyle,
    width: usize,
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
    fn new(line_style: &'a LineStyle, width: usize) -> Self {
        let row = line_style.first.clone();
        let used = measure_text_width(&row);
        Self {
            line_style,
            width,
            done: Vec::new(),
            row,
            used,
            marks: Marks::default(),
            run: String::new(),
        }
    }

    /// Adds a word and the space after it.
    fn word(&mut self, pieces: &[(Marks, String)]) {
        let text: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
        let columns = measure_text_width(text.trim_end());
        if self.used + columns > self.width && self.used > self.line_style.hang {
            self.wrap();
        }
        for (marks, text) in pieces {
            for c in text.chars() {
                let wide = measure_text_width(c.encode_utf8(&mut [0; 4]));
                // The word is wider than a row.
                if self.used + wide > self.width && c != ' ' {
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
    match get(at) {
        Some('`') => (Some(Marks { code: !now.code, ..now }), 1),
        Some('*') if now.code => (None, 1),
        Some('*') if get(at + 1) == Some('*') => {
            let turns = if now.bold { at > 0 } else { !ends(at + 2) && begins(at) };
            // Marks that open nothing are plain text.
            if turns { (Some(Marks { bold: !now.bold, ..now }), 2) } else { (None, 1) }
        }
        Some('*') => {
            let before = at > 0 && get(at - 1) == Some('*') && !now.bold;
            let turns = if now.italic { at > 0 } else { !ends(at + 1) && begins(at) && !before };
            if turns { (Some(Marks { italic: !now.italic, ..now }), 1) } else { (None, 1) }
        }
        _ => (None, 1),
    }
}
