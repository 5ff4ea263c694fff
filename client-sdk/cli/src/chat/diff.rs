//! Unified diffs in colours: the sign and the background of a line show its change, the text has
//! the colours of its language.

use std::{fmt::Write as _, time::Duration};

use console::{Style, style};

use super::{calls, screen::TerminalCapabilities};
use crate::render::{
    highlight::{Code, Painter, Piece},
    output::plain,
    theme::Theme,
};

/// Time limit for highlighting the diffs of one turn.
const HIGHLIGHT_TIME: Duration = Duration::from_secs(1);
/// Most lines of a diff that are highlighted.
const HIGHLIGHT_LINES: usize = 2000;

/// Renders the diffs of one turn.
pub struct DiffPainter {
    theme: Theme,
    /// Notes have colours.
    colours: bool,
    /// Loaded with the first diff.
    painter: Option<Painter>,
}

/// The highlighters of a file before and after the change.
#[derive(Default)]
struct File {
    before: Option<Code>,
    after: Option<Code>,
}

impl DiffPainter {
    pub fn new(capabilities: TerminalCapabilities) -> Self {
        let colours = capabilities.status && console::colors_enabled_stderr();
        Self { theme: capabilities.theme, colours, painter: None }
    }

    /// Renders a diff of at most `max` lines; `hint` follows the number of omitted ones.
    pub fn render(&mut self, text: &str, max: usize, hint: &str) -> String {
        let mut out = String::new();
        let mut file = File::default();
        let mut before_name = "";
        // Lines of the current hunk that are not printed yet, so that '--- ' inside a hunk is text.
        let mut pending = (0, 0);
        for (at, line) in text.lines().enumerate().take(max) {
            let row = if pending != (0, 0) {
                let pieces =
                    if at < HIGHLIGHT_LINES { self.pieces(&mut file, line) } else { Vec::new() };
                count(&mut pending, line);
                self.change(line, &pieces)
            } else if let Some(name) = line.strip_prefix("--- ") {
                before_name = name;
                style(plain(line)).bold().for_stderr().to_string()
            } else if let Some(name) = line.strip_prefix("+++ ") {
                let name = if name == "/dev/null" { before_name } else { name };
                file = self.file(name);
                style(plain(line)).bold().for_stderr().to_string()
            } else if let Some(size) = hunk(line) {
                pending = size;
                style(plain(line)).cyan().for_stderr().to_string()
            } else {
                plain(line)
            };
            let _infallible = writeln!(out, "  {row}");
        }
        out.push_str(&calls::omitted_note(text.lines().count().saturating_sub(max), hint));
        out
    }

    fn file(&mut self, name: &str) -> File {
        if !self.colours {
            return File::default();
        }
        let painter = self.painter.get_or_insert_with(|| Painter::load(HIGHLIGHT_TIME));
        File { before: painter.begin_file(name), after: painter.begin_file(name) }
    }

    fn pieces(&self, file: &mut File, line: &str) -> Vec<Piece> {
        let Some(painter) = &self.painter else { return Vec::new() };
        let next = |code: &mut Option<Code>, text: &str| {
            code.as_mut().map(|code| painter.next(code, text)).unwrap_or_default()
        };
        let text = plain(line.get(1..).unwrap_or_default());
        match line.as_bytes().first() {
            Some(b'-') => next(&mut file.before, &text),
            Some(b'+') => next(&mut file.after, &text),
            _ => {
                next(&mut file.before, &text);
                next(&mut file.after, &text)
            }
        }
    }

    /// Renders a line of a hunk: its sign, and its text in pieces.
    fn change(&self, line: &str, pieces: &[Piece]) -> String {
        let (sign, rest) = match line.as_bytes().first() {
            Some(b'+' | b'-' | b' ') => line.split_at(1),
            _ => return plain(line),
        };
        let rest = plain(rest);
        if !self.colours {
            return format!("{sign}{rest}");
        }
        let base = with_background(Style::new(), sign, self.theme);
        let plain_style = match (sign, self.theme) {
            ("+", Theme::Unknown) => base.clone().green(),
            ("-", Theme::Unknown) => base.clone().red(),
            _ => base.clone(),
        };
        let mark = match sign {
            "+" => base.clone().green().bold(),
            "-" => base.clone().red().bold(),
            _ => base.clone(),
        };
        let mut out = mark.force_styling(true).apply_to(sign).to_string();
        let mut put = |style: Style, text: &str| {
            if !text.is_empty() {
                out.push_str(&style.force_styling(true).apply_to(text).to_string());
            }
        };
        if pieces.is_empty() {
            put(plain_style, &rest);
            return out;
        }
        for (range, class) in pieces {
            let text = rest.get(range.clone()).unwrap_or_default();
            put(with_background(class.style(self.theme), sign, self.theme), text);
        }
        out
    }
}

/// Adds the background of a changed line to a style.
fn with_background(style: Style, sign: &str, theme: Theme) -> Style {
    match (sign, theme) {
        ("+", Theme::Dark) => style.on_color256(22),
        ("-", Theme::Dark) => style.on_color256(52),
        ("+", Theme::Light) => style.on_color256(194),
        ("-", Theme::Light) => style.on_color256(224),
        _ => style,
    }
}

/// Returns the numbers of lines before and after the change of the hunk that a line begins.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let inner = line.strip_prefix("@@ -")?.split(" @@").next()?;
    let (before, after) = inner.split_once(" +")?;
    let lines = |range: &str| match range.split_once(',') {
        Some((_, lines)) => lines.parse().ok(),
        None => Some(1),
    };
    Some((lines(before)?, lines(after)?))
}

/// Takes a printed line from the pending ones of its hunk.
fn count(pending: &mut (usize, usize), line: &str) {
    let sign = line.as_bytes().first();
    if !matches!(sign, Some(b'+' | b'\\')) {
        pending.0 = pending.0.saturating_sub(1);
    }
    if !matches!(sign, Some(b'-' | b'\\')) {
        pending.1 = pending.1.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,3 @@\n fn a() {}\n--- \"old\"\n+let b = \"new\";\n+// c\n";

    fn painter(theme: Theme, colours: bool) -> DiffPainter {
        DiffPainter { theme, colours, painter: None }
    }

    #[test]
    fn text_is_complete_in_every_theme_and_without_colours() {
        let expected = "  --- a/x.rs\n  +++ b/x.rs\n  @@ -1,2 +1,3 @@\n   fn a() {}\n  --- \"old\"\n  +let b = \"new\";\n  … 1 more line (Ctrl+O)\n";
        for theme in [Theme::Unknown, Theme::Dark, Theme::Light] {
            let got = painter(theme, true).render(TEXT, 6, " (Ctrl+O)");
            assert_eq!(console::strip_ansi_codes(&got), expected);
        }
        let plain = painter(Theme::Dark, false).render(TEXT, 6, " (Ctrl+O)");
        assert_eq!(console::strip_ansi_codes(&plain), expected);
    }

    #[test]
    fn changed_lines_have_the_colours_of_their_language() {
        let dark = painter(Theme::Dark, true).render(TEXT, 99, "");
        let added = dark.lines().find(|l| l.contains("let")).unwrap();
        assert!(added.contains("48;5;22") && added.contains("38;5;176"), "{added:?}");
        let removed = dark.lines().find(|l| l.contains("old")).unwrap();
        assert!(removed.contains("48;5;52"), "{removed:?}");
        let light = painter(Theme::Light, true).render(TEXT, 99, "");
        assert!(light.contains("48;5;194") && light.contains("48;5;224"), "{light:?}");
        let bare = painter(Theme::Light, false).render(TEXT, 99, "");
        assert!(!bare.contains("48;5"), "{bare:?}");
    }

    #[test]
    fn control_characters_are_escaped() {
        let text = "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+\u{1b}]52;c;eA==\u{7}\n";
        let got = painter(Theme::Dark, true).render(text, 99, "");
        assert!(!got.contains("\u{1b}]") && got.contains("\\u{1b}"), "{got:?}");
    }
}
