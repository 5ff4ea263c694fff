//! Two streams that share a terminal: permanent lines, and a status below them that is redrawn.

use std::io::{self, IsTerminal as _, Write};

use console::truncate_str;

use crate::render::theme::Theme;

/// Text and its destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Out {
    /// Text of the model's answer.
    Answer(String),
    /// Text of any other kind.
    Note(String),
}

/// The capabilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalCapabilities {
    /// Standard output is a terminal with colours.
    pub rich: bool,
    /// Standard output is a terminal.
    pub terminal: bool,
    /// Standard error is a terminal, so that a status can be drawn.
    pub status: bool,
    /// Width of the terminal in columns.
    pub width: usize,
    /// The background that colours are chosen for.
    pub theme: Theme,
}

impl TerminalCapabilities {
    /// Detects the capabilities of this process's terminal.
    pub fn of_process(quiet: bool) -> Self {
        let out = io::stdout().is_terminal();
        let err = io::stderr().is_terminal();
        Self {
            rich: out && console::colors_enabled(),
            terminal: out,
            status: err && !quiet,
            width: columns(),
            theme: Theme::Unknown,
        }
    }
}

/// Returns the columns of the terminal; 80 if unknown.
fn columns() -> usize {
    crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns)).max(1)
}

pub struct Screen {
    capabilities: TerminalCapabilities,
    /// Number of status rows below the cursor's line.
    drawn: usize,
    /// Set in raw mode, in which carriage returns must be written explicitly.
    pub raw: bool,
}

impl Screen {
    pub fn new(capabilities: TerminalCapabilities) -> Self {
        Self { capabilities, drawn: 0, raw: false }
    }

    pub fn capabilities(&self) -> TerminalCapabilities {
        self.capabilities
    }

    /// Measures the width of the terminal.
    pub fn measure(&mut self) {
        self.capabilities.width = columns();
    }

    /// Writes permanent lines. This removes the status until it is drawn again.
    pub fn write(&mut self, out: &[Out]) -> io::Result<()> {
        let mut out = out.iter().filter(|o| !text(o).is_empty()).peekable();
        if out.peek().is_none() {
            return Ok(());
        }
        self.clear()?;
        for one in out {
            let text = self.ends(text(one));
            match one {
                Out::Answer(_) => flush(&mut io::stdout().lock(), &text)?,
                Out::Note(_) => flush(&mut io::stderr().lock(), &text)?,
            }
        }
        Ok(())
    }

    /// Draws the status; rows are truncated to the width.
    pub fn status(&mut self, rows: &[String]) -> io::Result<()> {
        if self.capabilities.status { self.draw(rows) } else { Ok(()) }
    }

    /// Draws the rows of a question, also where no other status is wanted: in raw mode its keys
    /// have an effect, and so they must be visible.
    pub fn question(&mut self, rows: &[String]) -> io::Result<()> {
        if self.raw || self.capabilities.status { self.draw(rows) } else { Ok(()) }
    }

    fn draw(&mut self, rows: &[String]) -> io::Result<()> {
        let mut text = String::from("\r\u{1b}[J");
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            // The last column stays free, because a terminal may wrap after it.
            text.push_str(&truncate_str(row, self.capabilities.width.saturating_sub(1), "…"));
        }
        if rows.len() > 1 {
            text.push_str(&format!("\u{1b}[{}A", rows.len() - 1));
        }
        text.push('\r');
        self.drawn = rows.len();
        flush(&mut io::stderr().lock(), &self.ends(&text))
    }

    /// Sends a control sequence that displays nothing.
    pub fn signal(&mut self, sequence: &str) -> io::Result<()> {
        flush(&mut io::stderr().lock(), sequence)
    }

    /// Removes the status from the terminal.
    pub fn clear(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.drawn) == 0 {
            return Ok(());
        }
        flush(&mut io::stderr().lock(), "\r\u{1b}[J")
    }

    fn ends(&self, text: &str) -> String {
        if self.raw { text.replace('\n', "\r\n") } else { text.to_owned() }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _closed = self.clear();
    }
}

fn text(out: &Out) -> &str {
    match out {
        Out::Answer(text) | Out::Note(text) => text,
    }
}

fn flush(to: &mut impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}
