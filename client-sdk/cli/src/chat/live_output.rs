//! The last lines of a running command, which the status shows until its result is there.

use std::collections::VecDeque;

use console::style;

use crate::render::output::plain;

/// Lines that are shown.
const LINES: usize = 4;
/// Most characters of a line without its end: a progress bar may never write one.
const MAX_LINE: usize = 2000;

/// The last lines of an output.
#[derive(Debug, Default)]
pub struct LiveOutput {
    lines: VecDeque<String>,
    unfinished: String,
}

impl LiveOutput {
    /// Adds a piece; `dropped` bytes before it are missing.
    pub fn push(&mut self, text: &str, dropped: u64) {
        if dropped > 0 {
            self.unfinished.clear();
        }
        for piece in text.split_inclusive('\n') {
            self.unfinished.push_str(piece);
            if self.unfinished.ends_with('\n') {
                let line = std::mem::take(&mut self.unfinished);
                self.lines.push_back(line);
                let over = self.lines.len().saturating_sub(LINES);
                self.lines.drain(..over);
            } else if self.unfinished.chars().count() > MAX_LINE {
                self.unfinished.clear();
            }
        }
    }

    /// Removes all lines: the command has ended.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.unfinished.clear();
    }

    /// Renders the lines, each cut to the width.
    pub fn rows(&self, width: usize) -> Vec<String> {
        let unfinished = Some(&self.unfinished).filter(|line| !line.is_empty());
        let all: Vec<&String> = self.lines.iter().chain(unfinished).collect();
        let last = &all[all.len().saturating_sub(LINES)..];
        let row = |line: &&String| {
            // A carriage return overwrites the text before it, as in a terminal.
            let seen = line.trim_end().rsplit('\r').next().unwrap_or_default();
            let cut =
                console::truncate_str(&plain(seen), width.saturating_sub(5), "…").into_owned();
            style(format!("  │ {cut}")).dim().for_stderr().to_string()
        };
        last.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(live: &LiveOutput, width: usize) -> Vec<String> {
        live.rows(width).iter().map(|row| console::strip_ansi_codes(row).into_owned()).collect()
    }

    #[test]
    fn last_lines_are_displayed_without_control_characters() {
        let mut live = LiveOutput::default();
        live.push("1\n2\n3\n4\n5\n", 0);
        assert_eq!(rows(&live, 80), ["  │ 2", "  │ 3", "  │ 4", "  │ 5"]);
        live.push("10 %\r20 %", 0);
        live.push("\r30 %", 0);
        assert_eq!(rows(&live, 80)[3], "  │ 30 %");
        live.push("\n\u{1b}[2Jx\u{7}\n", 0);
        assert!(!rows(&live, 80)[3].contains(['\u{1b}', '\u{7}']), "{:?}", rows(&live, 80));
        live.push(&"w".repeat(500), 7);
        assert_eq!(rows(&live, 20)[3].chars().count(), 19);
        live.push(&"w".repeat(5000), 0);
        assert!(live.unfinished.is_empty());
        live.clear();
        assert_eq!(rows(&live, 80), [""; 0]);
    }
}
