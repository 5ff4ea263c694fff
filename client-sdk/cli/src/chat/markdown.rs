//! Incremental rendering of a model's Markdown on a terminal.
//!
//! A line of the source becomes rows no wider than the terminal. A row is emitted once no further
//! text can change it, so that the output does not depend on how the text is split into deltas.

use std::time::Duration;

use console::Style;

use super::{
    inline::{self, LineStyle, RowWidths},
    table,
};
use crate::render::{highlight, output::plain, theme::Theme};

/// Maximum bytes of a source line; a longer one is broken here.
const MAX_LINE: usize = 16 * 1024;
/// Time limit for highlighting the code of one answer.
const HIGHLIGHT_TIME: Duration = Duration::from_secs(2);
/// Maximum bytes of a table; a longer one is continued without columns.
const MAX_TABLE: usize = 64 * 1024;
/// Languages whose lines are never broken: a part of a command that is copied is another command.
const SHELLS: [&str; 11] = [
    "sh",
    "bash",
    "zsh",
    "fish",
    "shell",
    "console",
    "shell-session",
    "powershell",
    "ps1",
    "bat",
    "cmd",
];

/// Renders text into rows.
pub struct Markdown {
    width: usize,
    theme: Theme,
    line: String,
    /// Widths of the emitted rows of `line`.
    emitted: Vec<usize>,
    /// Lines of a table, whose columns are known at its end.
    table: Vec<String>,
    /// The fence that ends the code, and its highlighter.
    fence: Option<Fence>,
    painter: Option<highlight::Painter>,
}

struct Fence {
    mark: String,
    code: Option<highlight::Code>,
    /// True if long lines are broken.
    is_wrapped: bool,
}

impl Markdown {
    /// Creates a renderer for a terminal of `width` columns.
    pub fn new(width: usize, theme: Theme) -> Self {
        Self {
            width: width.max(20),
            theme,
            line: String::new(),
            emitted: Vec::new(),
            table: Vec::new(),
            fence: None,
            painter: None,
        }
    }

    /// Sets the columns of the rows that follow.
    pub fn resize(&mut self, width: usize) {
        self.width = width.max(20);
    }

    /// Adds a delta and returns the rows that have become final, each with its line end.
    pub fn push(&mut self, piece: &str) -> String {
        let mut out = String::new();
        let mut rest = piece;
        while let Some((head, tail)) = rest.split_once('\n') {
            self.extend(head, &mut out);
            self.end_line(&mut out);
            rest = tail;
        }
        self.extend(rest, &mut out);
        self.emit_final_rows(&mut out);
        out
    }

    /// Returns the unfinished row.
    pub fn pending(&self) -> String {
        let mut rows = match &self.fence {
            Some(_) => inline::code_rows(&plain(&self.line), &[], self.theme, usize::MAX),
            None if self.line.is_empty() => {
                return self.table.last().map(|row| plain(row)).unwrap_or_default();
            }
            None => self.rows(&self.line),
        };
        if rows.len() > self.emitted.len() { rows.pop().unwrap_or_default() } else { String::new() }
    }

    /// Returns the remaining rows at the end of the text.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        if !self.line.is_empty() {
            self.end_line(&mut out);
        }
        self.end_table(&mut out);
        self.fence = None;
        out
    }

    fn extend(&mut self, mut text: &str, out: &mut String) {
        while self.line.len() + text.len() > MAX_LINE {
            let mut at = MAX_LINE.saturating_sub(self.line.len()).min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            self.line.push_str(&text[..at]);
            self.end_line(out);
            text = &text[at..];
        }
        self.line.push_str(text);
    }

    /// Emits the final rows of the unfinished line.
    fn emit_final_rows(&mut self, out: &mut String) {
        if self.fence.is_none() && !self.line.trim_start().is_empty() && !is_row(&self.line) {
            self.end_table(out);
        }
        if self.fence.is_some() || self.line.trim_start().starts_with(['`', '~', '|']) {
            return;
        }
        // The last word, and so the meaning of its marks, may still change.
        let end = inline::stable_end(&self.line);
        let mut rows = self.rows(&self.line[..end]);
        rows.pop();
        for row in rows.iter().skip(self.emitted.len()) {
            out.push_str(row);
            out.push('\n');
        }
        self.emitted.resize(self.emitted.len().max(rows.len()), self.width);
    }

    fn end_line(&mut self, out: &mut String) {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix('\r').unwrap_or(&line);
        if self.fence.is_some() {
            return self.end_code_line(line, out);
        }
        if is_row(line) {
            if self.table.iter().map(String::len).sum::<usize>() > MAX_TABLE {
                self.end_table(out);
            }
            return self.table.push(line.to_owned());
        }
        self.end_table(out);
        if let Some(mark) = fence_mark(line) {
            self.open(mark, line);
            return;
        }
        for row in self.rows(line).into_iter().skip(self.emitted.len()) {
            out.push_str(&row);
            out.push('\n');
        }
        self.emitted.clear();
    }

    fn end_code_line(&mut self, line: &str, out: &mut String) {
        let Some(fence) = &mut self.fence else { return };
        if line.trim() == fence.mark {
            self.fence = None;
            return;
        }
        let line = plain(line);
        let pieces = match (&mut fence.code, &self.painter) {
            (Some(code), Some(painter)) => painter.next(code, &line),
            _ => Vec::new(),
        };
        let width = if fence.is_wrapped { self.width } else { usize::MAX };
        for row in inline::code_rows(&line, &pieces, self.theme, width) {
            out.push_str(&row);
            out.push('\n');
        }
    }

    /// Emits the table before the current line.
    fn end_table(&mut self, out: &mut String) {
        let lines = std::mem::take(&mut self.table);
        let rows = table::render(&lines, self.width, &self.heading())
            .unwrap_or_else(|| lines.iter().flat_map(|line| self.rows(line)).collect());
        for row in rows {
            out.push_str(&row);
            out.push('\n');
        }
    }

    fn open(&mut self, mark: String, line: &str) {
        let language = line
            .trim_start()
            .trim_start_matches(['`', '~'])
            .split_whitespace()
            .next()
            .unwrap_or("");
        let painter = self.painter.get_or_insert_with(|| highlight::Painter::load(HIGHLIGHT_TIME));
        let code = painter.begin(language);
        let is_wrapped = !language.is_empty() && !SHELLS.contains(&language);
        self.fence = Some(Fence { mark, code, is_wrapped });
    }

    /// Returns the style of headings; yellow has no contrast to a light background.
    fn heading(&self) -> Style {
        let bold = Style::new().bold().force_styling(true);
        if self.theme == Theme::Light { bold } else { bold.yellow() }
    }

    /// Renders the rows of a line of prose.
    fn rows(&self, line: &str) -> Vec<String> {
        let line = plain(line);
        let widths = RowWidths { emitted: &self.emitted, next: self.width };
        let body = line.trim_start();
        let indent = line.len() - body.len();
        let level = body.bytes().take_while(|b| *b == b'#').count();
        if (1..=6).contains(&level) && body[level..].starts_with(' ') {
            let line_style = LineStyle { base: self.heading(), first: String::new(), hang: 0 };
            return inline::rows(body[level..].trim_start(), &line_style, widths);
        }
        if body.len() >= 3
            && ["-", "*", "_"].iter().any(|c| body.trim_end().replace(c, "").is_empty())
        {
            return vec![
                Style::new()
                    .dim()
                    .force_styling(true)
                    .apply_to("─".repeat(self.width.min(40)))
                    .to_string(),
            ];
        }
        let base = Style::new();
        let space = " ".repeat(indent);
        if body.starts_with('|') {
            let line_style = LineStyle { base, first: space, hang: indent };
            return inline::rows(body, &line_style, usize::MAX.into());
        }
        for bullet in ["- ", "* ", "+ "] {
            if let Some(rest) = body.strip_prefix(bullet) {
                let line_style =
                    LineStyle { base, first: format!("{space}• "), hang: indent + 2 };
                return inline::rows(rest, &line_style, widths);
            }
        }
        let digits = body.bytes().take_while(u8::is_ascii_digit).count();
        if (1..=9).contains(&digits) && body[digits..].starts_with(". ") {
            let line_style = LineStyle {
                base,
                first: format!("{space}{}. ", &body[..digits]),
                hang: indent + digits + 2,
            };
            return inline::rows(&body[digits + 2..], &line_style, widths);
        }
        if let Some(rest) = body.strip_prefix('>') {
            let base = Style::new().dim().force_styling(true);
            let line_style = LineStyle { base, first: format!("{space}│ "), hang: indent + 2 };
            return inline::rows(rest.trim_start(), &line_style, widths);
        }
        inline::rows(body, &LineStyle { base, first: space, hang: indent }, widths)
    }
}

/// True for a line of a table.
fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

/// Returns the mark of a line that opens a code block.
fn fence_mark(line: &str) -> Option<String> {
    let body = line.trim_start();
    ['`', '~'].into_iter().find_map(|c| {
        let n = body.chars().take_while(|x| *x == c).count();
        (n >= 3 && !body[n..].contains('`')).then(|| c.to_string().repeat(n))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn render_all(text: &str, width: usize) -> String {
        let mut markdown = Markdown::new(width, Theme::Unknown);
        let mut out = markdown.push(text);
        out.push_str(&markdown.finish());
        out
    }

    #[test]
    fn markdown_is_rendered() {
        for (text, expected) in [
            ("plain", "plain\n"),
            (
                "# Head *x*\n",
                "\u{1b}[33m\u{1b}[1mHead \u{1b}[0m\u{1b}[33m\u{1b}[1m\u{1b}[3mx\u{1b}[0m\n",
            ),
            ("a **b c** d", "a \u{1b}[1mb c\u{1b}[0m d\n"),
            ("2 * 3 ** 4", "2 * 3 ** 4\n"),
            ("use `a*b` now", "use \u{1b}[36ma*b\u{1b}[0m now\n"),
            ("- one\n  - two", "• one\n  • two\n"),
            ("12. one two three four five", "12. one two three\n    four five\n"),
            ("one two three four five", "one two three four\nfive\n"),
            ("a\u{1b}[31mb", "a\\u{1b}[31mb\n"),
            ("```\na  b **c**\n```\nd", "  a  b **c**\nd\n"),
            (
                "| a | b | a long row that is not broken |",
                "| a | b | a long row that is not broken |\n",
            ),
        ] {
            assert_eq!(render_all(text, 20), expected, "{text}");
        }
        let code = render_all("```rust\nfn main() {}\n```\n", 20);
        assert!(
            code.contains("\u{1b}[35mfn\u{1b}[0m")
                && console::strip_ansi_codes(&code) == "  fn main() {}\n",
            "{code:?}"
        );
    }

    #[test]
    fn rows_stay_within_the_width() {
        let text = "word ".repeat(40) + &"x".repeat(70) + " **bold words that go on and on** end";
        for width in [20, 33, 80] {
            for row in render_all(&text, width).lines() {
                assert!(console::measure_text_width(row) <= width, "{width}: {row}");
            }
        }
    }

    #[test]
    fn links_show_their_text_and_address() {
        let link = |text: &str| format!("\u{1b}[4m{text}\u{1b}[0m");
        let address = |text: &str| format!("\u{1b}[2m ({text})\u{1b}[0m");
        for (text, expected) in [
            ("see [a](b).", format!("see {}{}.\n", link("a"), address("b"))),
            ("[`a b`](b_(c))", format!("{}{}\n", link("a b"), address("b_(c)"))),
            ("[x.y](x.y)", format!("{}\n", link("x.y"))),
            ("`[a](b)`", "\u{1b}[36m[a](b)\u{1b}[0m\n".to_owned()),
            ("- [ ] a [b c", "• [ ] a [b c\n".to_owned()),
            ("a[0](1 2) [](b) [a]()", "a[0](1 2) [](b) [a]()\n".to_owned()),
        ] {
            assert_eq!(render_all(text, 60), expected, "{text}");
        }
    }

    #[test]
    fn code_is_broken_at_spaces_unless_it_is_a_command() {
        let code = |language: &str, line: &str| {
            let text = render_all(&format!("```{language}\n{line}\n```\n"), 24);
            console::strip_ansi_codes(&text).into_owned()
        };
        let line = "    let sum = first_value + second_value;";
        let expected = "      let sum =\n          first_value +\n          second_value;\n";
        assert_eq!(code("rust", line), expected);
        assert_eq!(
            code("bash", "rm -r /tmp/a /tmp/b/c /tmp/d"),
            "  rm -r /tmp/a /tmp/b/c /tmp/d\n"
        );
        assert_eq!(code("", "one two three four five six"), "  one two three four five six\n");
        assert_eq!(
            code("text", &"x".repeat(30)),
            format!("  {}\n      {}\n", "x".repeat(22), "x".repeat(8))
        );
        assert_eq!(code("rust", ""), "  \n");
    }

    #[test]
    fn rows_after_a_resize_have_the_new_width() {
        let mut markdown = Markdown::new(40, Theme::Unknown);
        let mut out = markdown.push(&"word ".repeat(12));
        assert_eq!(out, "word word word word word word word word\n");
        markdown.resize(20);
        out.push_str(&markdown.push(&"word ".repeat(6)));
        out.push_str(&markdown.finish());
        let widths: Vec<usize> = out.lines().map(str::len).collect();
        assert_eq!(widths, [39, 19, 19, 9], "{out}");
        markdown.resize(40);
        assert_eq!(markdown.push("a\n"), "a\n");
    }

    #[test]
    fn overlong_line_is_broken() {
        let mut markdown = Markdown::new(80, Theme::Unknown);
        for _ in 0..100 {
            markdown.push(&"é".repeat(1000));
            assert!(markdown.line.len() <= MAX_LINE);
        }
    }

    proptest! {
        #[test]
        fn output_does_not_depend_on_deltas(
            words in prop::collection::vec(prop::sample::select(vec![
                "word", " ", "\n", "**", "*", "`", "# ", "- ", "```", "\n```rust\n", "\n```\n", "1. ", "é", "日本", "fn a() {}",
                "> ", "a long run of words that must be broken somewhere", "\r\n", "| x |", "---",
                "\n| a | b |\n", "|-|-|\n", "| c d | [e](f) |\n", "[two words](http://x.y/z)", "[", "](", ")", "[a b]", "\u{1b}[1m", "\t",
            ]), 0..40),
            cuts in prop::collection::vec(1_usize..9, 1..60),
        ) {
            let text = words.concat();
            let expected = render_all(&text, 24);
            let mut markdown = Markdown::new(24, Theme::Unknown);
            let mut out = String::new();
            let mut rest = text.as_str();
            for cut in cuts.iter().cycle() {
                let at = rest.char_indices().nth(*cut).map_or(rest.len(), |(at, _)| at);
                out.push_str(&markdown.push(&rest[..at]));
                let _row = markdown.pending();
                rest = &rest[at..];
                if rest.is_empty() {
                    break;
                }
            }
            out.push_str(&markdown.finish());
            prop_assert_eq!(out, expected);
        }
    }
}
